"""Vector operations of the fit: value and gradient of the dual, and L-BFGS directions.

These sums do not use BLAS, which starts threads for long vectors and sums in an order that depends
on them.

Axes: m = remembered steps, oldest first; n = parameters.
"""

from __future__ import annotations

import numpy as np

from .jit import VECTOR, kernel


@kernel(fastmath=VECTOR, forceinline=True)
def dot(a, b):  # type: ignore[no-untyped-def]
    """Inner product [both shape=(n,), float64]."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(fastmath=VECTOR)
def root_mean_square(a, unit):  # type: ignore[no-untyped-def]
    """Root mean square of a / unit [both shape=(n,), float64]."""
    total = 0.0
    for i in range(a.size):
        x = a[i] / unit[i]
        total += x * x
    return np.sqrt(total / a.size)


@kernel(fastmath=VECTOR)
def regularised(theta, measured, pull, counts):  # type: ignore[no-untyped-def]
    """The parameters' part of the dual's value: -<theta, measured> + 1/2 sum pull theta^2.

    Args:
        theta, measured, pull: vectors [each shape=(n,), float64].
        counts: expected counts; updated to the gradient, counts - measured + pull * theta
            [shape=(n,), float64].

    Returns:
        The value.
    """
    value = 0.0
    for i in range(theta.size):
        drawn = pull[i] * theta[i]
        value += theta[i] * (0.5 * drawn - measured[i])
        counts[i] += drawn - measured[i]
    return value


@kernel(fastmath=VECTOR)
def products(gradient, scale, steps, changes, newest, begin, end, out):  # type: ignore[no-untyped-def]
    """The inner products of a range of parameters that :func:`weights` needs, by remembered step.

    Args:
        gradient: gradient [shape=(n,), float64].
        scale: diagonal of the initial inverse Hessian [shape=(n,), float64].
        steps, changes: differences of parameters and of gradients [both shape=(m, n), float64].
        newest: the row of the newest step.
        begin, end: the range.
        out: step times gradient, change times scaled gradient, and change times newest step,
            written [shape=(3, m), float64].
    """
    first, latest = gradient[begin:end], steps[newest, begin:end]
    way = scale[begin:end] * first
    for k in range(steps.shape[0]):
        step, change = steps[k, begin:end], changes[k, begin:end]
        a, b, c = 0.0, 0.0, 0.0
        for i in range(first.size):
            a += step[i] * first[i]
            b += change[i] * way[i]
            c += change[i] * latest[i]
        out[0, k], out[1, k], out[2, k] = a, b, c


@kernel
def weights(known, mixed, squares, order):  # type: ignore[no-untyped-def]
    """The L-BFGS direction as weights of steps and changes (two-loop recursion).

    All follows from inner products (Chen, Wang and Zhou, 2014), so that steps and changes are read
    twice for a direction, not twice for each of them. The initial inverse Hessian is diagonal,
    rescaled by the newest step.

    Args:
        known: step times gradient, and change times scaled gradient [shape=(>= 2, m), float64].
        mixed: step (row) times change (column) [shape=(m, m), float64].
        squares: change times scaled change [shape=(m, m), float64].
        order: rows in use, oldest first, 1 or more [int64].

    Returns:
        Weights of the steps, and of the scaled gradient (1) and changes, before ``factor`` [shape=(2, m), float64];
        and the factor.
    """
    out = np.zeros((2, known.shape[1]))
    for at in range(order.size - 1, -1, -1):
        k = order[at]
        left = -known[0, k]
        for other in order[at + 1 :]:
            left -= out[1, other] * mixed[k, other]
        out[1, k] = left / mixed[k, k]
    last = order[order.size - 1]
    factor = mixed[last, last] / squares[last, last]
    for at in range(order.size):
        k = order[at]
        right = -known[1, k]
        for other in order:
            right -= out[1, other] * squares[k, other]
        right *= factor
        for other in order[:at]:
            right += out[0, other] * mixed[other, k]
        out[0, k] = out[1, k] - right / mixed[k, k]
    return out, factor


@kernel(fastmath=VECTOR)
def direction(gradient, scale, steps, changes, order, weights, factor, begin, end, out):  # type: ignore[no-untyped-def]
    """The direction of :func:`weights` for a range of parameters.

    Args:
        gradient, scale, steps, changes, begin, end: as for :func:`products`.
        order, weights, factor: of and from :func:`weights`.
        out: the direction, written [shape=(n,), float64].
    """
    n = end - begin
    way, its, part = gradient[begin:end], scale[begin:end], out[begin:end]
    for i in range(n):
        part[i] = -way[i]
    for k in order:
        change, weight = changes[k, begin:end], weights[1, k]
        for i in range(n):
            part[i] -= weight * change[i]
    for i in range(n):
        part[i] *= its[i] * factor
    for k in order:
        step, weight = steps[k, begin:end], weights[0, k]
        for i in range(n):
            part[i] += weight * step[i]
