"""L-BFGS directions from inner products in blocks, against the two-loop recursion."""

import numpy as np
import pytest

from vertimrf.model import descent as model


def two_loops(gradient, scale, steps, changes):
    """Nocedal and Wright (2006), algorithm 7.4; steps and changes oldest first."""
    out, weights = -gradient, []
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        weights.append(s @ out / (s @ y))
        out = out - weights[-1] * y
    y = changes[-1]
    out = out * scale * (steps[-1] @ y) / (y * y * scale).sum()
    for s, y, weight in zip(steps, changes, weights[::-1], strict=True):
        out = out + (weight - y @ out / (s @ y)) * s
    return out


@pytest.mark.parametrize("n", [3, model.BLOCK + 1])
def test_directions_are_those_of_the_two_loop_recursion(n):
    rng = np.random.default_rng(n)
    scale, hessian = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)
    curvature, gradient, steps, changes = model.Curvature(scale, scale), rng.normal(size=n), [], []
    np.testing.assert_array_equal(curvature.direction(gradient), -scale * gradient)
    for turn in range(2 * model.MEMORY):
        # Steps that lower the curvature are not kept.
        step = curvature.direction(gradient) + 0.1 * rng.normal(size=n)
        change = (-1 if turn % 10 == 3 else 1) * hessian * step
        curvature.add(step, gradient + change)
        gradient = gradient + change
        if turn % 10 != 3:
            steps, changes = [*steps, step][-model.MEMORY :], [*changes, change][-model.MEMORY :]
        if turn % 7 == 6:  # A new descent starts from another gradient.
            gradient = rng.normal(size=n)
        wanted = two_loops(gradient, scale, steps, changes)
        np.testing.assert_allclose(
            curvature.direction(gradient), wanted, rtol=1e-6, atol=1e-9 * np.abs(wanted).max()
        )
