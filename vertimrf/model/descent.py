"""Minimise the dual of a proximal step by preconditioned L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Floats
from ..errors import ModelError
from ..kernels import proximal_step as descent
from ..kernels.jit import for_each

OUT_OF_RANGE = "The model has left the range of double precision; give a larger proximal weight or fewer steps."
# Past steps in the L-BFGS approximation. Fits of Adult and PISA need 70 and 127 evaluations with 24 of them, 81 and more with 12, 63 and
# 124 with 48.
MEMORY = 24
# Parameters of a block. Blocks do not depend on the threads, so neither do sums over them.
BLOCK = 1 << 12


class Curvature:
    """The last steps of L-BFGS and how they changed the gradient, from which it knows the Hessian.

    Args:
        pull: weight * sigma^2 of the dual [shape=(n,), float64].
        scale: diagonal of an approximate inverse Hessian [shape=(n,), float64].
    """

    def __init__(self, pull: Floats, scale: Floats) -> None:
        self.pull, self._scale = pull, scale
        self._steps, self._changes = np.empty((2, MEMORY, pull.size))
        # Inner products of steps with changes, of changes with scaled changes, and of the last
        # gradient with steps and, scaled, with changes.
        self._mixed, self._squares = np.empty((2, MEMORY, MEMORY))
        self._last = np.empty((2, 0))
        self._kept, self._added, self._gradient = 0, False, pull

    def direction(self, gradient: Floats) -> Floats:
        """Where to go from a point with this gradient [both shape=(n,), float64]."""
        if self._added and gradient is not self._gradient:
            self.direction(self._gradient)  # The last descent ended where this one does not begin.
        order = np.arange(max(0, self._kept - MEMORY), self._kept) % MEMORY
        kept, cuts = order.size, [*range(0, gradient.size, BLOCK), gradient.size]
        given = gradient, self._scale, self._steps[:kept], self._changes[:kept]
        weights, factor, out = np.zeros((2, kept)), 1.0, np.empty_like(gradient)
        if kept:
            newest, parts = order[-1], np.empty((len(cuts) - 1, 3, kept))
            for_each(
                len(parts), lambda i: descent.products(*given, newest, *cuts[i : i + 2], parts[i])
            )
            found = parts.sum(axis=0)
            if self._added:
                # The newest change is the difference of the last two gradients.
                others = order[:-1]
                self._mixed[others, newest], squares = found[:2, others] - self._last[:, others]
                self._squares[others, newest] = self._squares[newest, others] = squares
                self._mixed[newest, others] = found[2, others]
            self._last, self._added = found[:2], False
            weights, factor = descent.weights(found, self._mixed, self._squares, order)
        self._gradient = gradient
        for_each(
            len(cuts) - 1,
            lambda i: descent.direction(*given, order, weights, factor, *cuts[i : i + 2], out),
        )
        return out

    def add(self, step: Floats, gradient: Floats) -> None:
        """Remember a step to a point with this gradient, if it grew along the step [both
        shape=(n,), float64].
        """
        change, self._gradient = gradient - self._gradient, gradient
        if (curvature := descent.dot(step, change)) > 0:
            place = self._kept % MEMORY
            self._steps[place], self._changes[place] = step, change
            self._mixed[place, place] = curvature
            self._squares[place, place] = descent.dot(change, self._scale * change)
            self._kept += 1
            self._added = True


def minimise(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    theta: Floats,
    sigma: Floats,
    curvature: Curvature,
    tolerance: float,
    iterations: int,
    progress: Callable[[int, float], None] | None,
) -> Floats:
    """Preconditioned L-BFGS with a weak Wolfe line search."""
    value, gradient = evaluate(theta)
    if not math.isfinite(value):
        theta = np.zeros_like(theta)
        value, gradient = evaluate(theta)
        if not math.isfinite(value):
            raise ModelError(OUT_OF_RANGE)
    for iteration in range(iterations):
        error = float(descent.root_mean_square(gradient, sigma))
        if progress:
            progress(iteration, error)
        if error <= tolerance:
            break
        way = curvature.direction(gradient)
        slope = float(descent.dot(way, gradient))
        # Bisect for a length with enough decrease and a flatter slope. The first one is nearly
        # always accepted.
        low, high, length = 0.0, math.inf, 1.0
        for _ in range(40):
            candidate = theta + length * way
            new_value, new_gradient = evaluate(candidate)
            # The last term allows for the rounding error of the value.
            if not new_value <= value + 1e-4 * length * slope + 1e-13 * abs(value):
                high = length
            elif descent.dot(new_gradient, way) < 0.9 * slope:
                low = length
            else:
                break
            length = 2 * low if math.isinf(high) else 0.5 * (low + high) if low else 0.25 * high
        else:
            if not math.isfinite(new_value) and error > 1:
                raise ModelError(OUT_OF_RANGE)
            return theta
        curvature.add(candidate - theta, new_gradient)
        theta, value, gradient = candidate, new_value, new_gradient
    return theta
