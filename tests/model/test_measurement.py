"""Measurements: binning, and misfits less what noise adds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vertimrf.errors import ModelError
from vertimrf.model.measurement import Measurement, best_measured, by_measurement


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


def test_told_is_what_is_more_than_noise() -> None:
    rng = np.random.default_rng(3)
    table = np.full((6, 6), 100.0)
    noisy = [Measurement((0, 1), (None, None), table + rng.normal(0, 20, (6, 6)), 20.0) for _ in range(400)]
    # Of 36 cells: with a standard deviation of doubt, 1 - (36 - 8.49) / chi^2 has a mean of 0.20, give or take 0.16.
    told = [m.told(table) for m in noisy]
    assert abs(np.mean(told) - 0.20) < 0.05
    # As much signal as noise: half of it is told, and the doubt.
    signal = 20 * rng.choice([-1.0, 1.0], (6, 6))
    assert 0.5 < np.mean([m.told(table + signal) for m in noisy]) < 0.7
    assert Measurement((0,), (None,), np.array([1e6, 0.0]), 1.0).told(np.array([5e5, 5e5])) > 0.999
    assert Measurement((0,), (None,), np.array([10.0]), 1.0).told(np.array([10.0])) == 0.0


def test_binning_sums_values_axis_by_axis() -> None:
    table = np.arange(12.0).reshape(3, 4)
    measured = Measurement((2, 5), (np.array([1, 0, 1]), None), np.zeros((3, 4)), 1.0)
    # The third bin has no values.
    np.testing.assert_array_equal(measured.binned(table), [table[1], table[0] + table[2], np.zeros(4)])


CONTRAST = np.array([[1.0, -1.0], [-1.0, 1.0]])


def test_noise_in_one_direction_of_four_is_told_as_such() -> None:
    """A pair of contrasts: all four cells have the same noise, with one sign or the other."""
    rng = np.random.default_rng(4)
    product = np.outer([3000.0, 7000.0], [6000.0, 4000.0]) / 10_000
    sigma, freedom, runs = 50.0, 0.25, 4000
    noisy = [
        Measurement((0, 1), (None, None), product + rng.normal(0, sigma / 2) * CONTRAST, sigma, freedom=freedom)
        for _ in range(runs)
    ]
    one = noisy[0]
    assert one.dimensions == 1
    np.testing.assert_array_equal(one.errors, np.full((2, 2), 25.0))
    # A cell is off by its error, and the squares in units of sigma are those of one normal number, of variance 2.
    off = np.array([m.counts[0, 0] - product[0, 0] for m in noisy])
    assert abs(off.std() / 25 - 1) < 5 / math.sqrt(2 * runs)
    squares = [np.square((m.counts - product) / m.sigma).sum() for m in noisy]
    assert abs(np.mean(squares) - 1) < 5 * math.sqrt(2 / runs)
    # Half the sum of four folded normals that are one: standard deviation 50 * 0.603.
    assert abs(np.mean([m.misfit(product) for m in noisy])) < 5 * 50 * 0.603 / math.sqrt(runs)
    # One direction has a standard deviation of doubt of more than all of it: whatever differs is told in full.
    assert [m.told(product) for m in noisy[:5]] == [1.0] * 5
    assert one.told(one.counts) == 0.0


def test_told_of_noise_in_a_part_of_the_directions() -> None:
    rng = np.random.default_rng(5)
    table, sigma = np.full((8, 8), 100.0), 20.0
    # Of 64 directions a quarter: with a standard deviation of doubt, 1 - (16 - 5.66) / chi^2 of 16.
    basis = np.linalg.qr(rng.normal(size=(64, 16)))[0]
    noisy = [
        Measurement((0, 1), (None, None), table + sigma * (basis @ rng.normal(size=16)).reshape(8, 8), sigma, freedom=0.25)
        for _ in range(2000)
    ]
    told = np.array([m.told(table) for m in noisy])
    drawn = 1 - (16 - math.sqrt(32)) / rng.chisquare(16, 400_000)
    expected = np.maximum(drawn, 0)
    assert abs(told.mean() - expected.mean()) < 5 * expected.std() / math.sqrt(len(told))
    # Taken for noise in all directions, nothing would be told.
    alone = [Measurement((0, 1), (None, None), m.counts, sigma).told(table) for m in noisy[:200]]
    assert max(alone) == 0.0


def test_the_least_noise_of_a_marginal_counts_its_freedom() -> None:
    cells = np.full((2, 2), 10.0)
    one = Measurement((0, 1), (None, None), cells, 4.0, freedom=0.25)
    other = Measurement((0, 1), (None, None), cells, 3.0)
    assert best_measured([other, one]) == [one]
    assert best_measured([one, Measurement((0, 1), (None, None), cells, 1.9)])[0].sigma == 1.9


@pytest.mark.parametrize("freedom", [0.0, -0.25, 1.01, math.nan, math.inf])
def test_a_freedom_that_is_no_part_is_refused(freedom: float) -> None:
    with pytest.raises(ModelError, match=r"^measurement of a × b: noise has a part of its cells' directions, above 0 and"):
        Measurement((0, 1), (None, None), np.ones((2, 2)), 1.0, "a × b", freedom)


def test_flat_cells_are_taken_apart_by_measurement() -> None:
    shapes = ((2, 3), (4,), (1, 2))
    every = [Measurement(tuple(range(len(s))), (None,) * len(s), np.ones(s), 1.0) for s in shapes]
    parts = by_measurement(np.arange(12.0), every)
    assert [part.shape for part in parts] == list(shapes)
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts]), np.arange(12.0))
    assert by_measurement(np.empty(0), []) == []
