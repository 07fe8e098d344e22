"""Limited-memory quasi-Newton directions.

Axes: m = remembered steps, oldest first; n = parameters.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["direction"]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def direction(gradient, scale, steps, changes, order):  # type: ignore[no-untyped-def]
    """The L-BFGS direction (two-loop recursion) with a diagonal start, rescaled by the newest step.

    Args:
        gradient: [shape=(n,), float64].
        scale: diagonal of the first inverse Hessian [shape=(n,), float64].
        steps, changes: differences of parameters and of gradients [shape=(m, n), float64].
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
        curvatures[k] = _dot(s, c)
        weights[k] = _dot(s, out) / curvatures[k]
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
        w = weights[k] - _dot(changes[order[k]], out) / curvatures[k]
        for i in range(n):
            out[i] += w * s[i]
    return out
