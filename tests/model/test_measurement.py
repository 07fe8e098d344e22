"""Measurements: binning, and misfits less what noise adds."""

from __future__ import annotations

import numpy as np

from vertimrf.model.measurement import Measurement


def test_misfit_of_independence_is_near_zero_and_of_equality_large() -> None:
    rng = np.random.default_rng(2)
    product = np.outer([3000.0, 7000.0], [6000.0, 4000.0]) / 10_000
    nothing = (None, None)
    scores = [
        Measurement((0, 1), nothing, product + rng.normal(0, 50, (2, 2)), 50.0).misfit(product) for _ in range(400)
    ]
    # Half the sum of four folded normals: standard deviation 50 * 0.603; mean over 400 within 4 standard errors of 0.
    assert abs(np.mean(scores)) < 4 * 50 * 0.61 / 20
    assert Measurement((0, 1), nothing, np.diag([5000.0, 5000.0]), 1.0).misfit(np.full((2, 2), 2500.0)) > 4990


def test_binning_sums_values_axis_by_axis() -> None:
    table = np.arange(12.0).reshape(3, 4)
    measured = Measurement((2, 5), (np.array([1, 0, 1]), None), np.zeros((3, 4)), 1.0)
    # The third bin has no values.
    np.testing.assert_array_equal(measured.binned(table), [table[1], table[0] + table[2], np.zeros(4)])
