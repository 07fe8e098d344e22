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


@kernel
def direction(gradient, scale, steps, changes, order):  # type: ignore[no-untyped-def]
    """The L-BFGS direction (two-loop recursion).

    The initial inverse Hessian is diagonal, rescaled by the newest step.

    Args:
        gradient: gradient [shape=(n,), float64].
        scale: diagonal of the initial inverse Hessian [shape=(n,), float64].
        steps, changes: differences of parameters and of gradients [both shape=(m, n), float64].
        order: rows of both in use, oldest first [int64].

    Returns:
        The direction [shape=(n,), float64].
    """
    n = gradient.size
    count = order.size
    out = np.empty(n)
    for i in range(n):
        out[i] = -gradient[i]
    weights = np.empty(count)
    curvatures = np.empty(count)
    for k in range(count - 1, -1, -1):
        s = steps[order[k]]
        c = changes[order[k]]
        curvatures[k] = dot(s, c)
        weights[k] = dot(s, out) / curvatures[k]
        for i in range(n):
            out[i] -= weights[k] * c[i]
    factor = 1.0
    if count:
        c = changes[order[count - 1]]
        size = 0.0
        for i in range(n):
            size += c[i] * c[i] * scale[i]
        factor = curvatures[count - 1] / size
    for i in range(n):
        out[i] *= scale[i] * factor
    for k in range(count):
        s = steps[order[k]]
        w = weights[k] - dot(changes[order[k]], out) / curvatures[k]
        for i in range(n):
            out[i] += w * s[i]
    return out
