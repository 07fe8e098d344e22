"""Measurements: binning, and misfits less what noise adds."""

from dataclasses import replace

import numpy as np
import pytest

from vertimrf.errors import ModelError
from vertimrf.model.measurement import (
    Measurement,
    best_measured,
    bin_table,
    by_measurement,
    misfits,
    one_way_margins,
)


def test_misfit_of_independence_is_near_zero_and_of_equality_large():
    rng = np.random.default_rng(2)
    product = np.outer([3000.0, 7000.0], [6000.0, 4000.0]) / 10_000
    nothing = (None, None)
    noisy = [
        Measurement((0, 1), nothing, product + rng.normal(0, 50, (2, 2)), 50.0) for _ in range(400)
    ]
    scores = misfits(noisy, [product] * 400)
    # Half the sum of four folded normals: standard deviation 50 * 0.603; mean over 400 within 4 standard errors of 0.
    assert abs(np.mean(scores)) < 4 * 50 * 0.61 / 20
    equal = Measurement((0, 1), nothing, np.diag([5000.0, 5000.0]), 1.0)
    assert misfits([equal], [np.full((2, 2), 2500.0)])[0] > 4990


def test_told_is_what_is_more_than_noise():
    rng = np.random.default_rng(3)
    table = np.full((6, 6), 100.0)
    noisy = [
        Measurement((0, 1), (None, None), table + rng.normal(0, 20, (6, 6)), 20.0)
        for _ in range(400)
    ]
    # Of 36 cells: with a standard deviation of doubt, 1 - (36 - 8.49) / chi^2 has a mean of 0.20, give or take 0.16.
    shares = [m.signal(table) for m in noisy]
    assert abs(np.mean(shares) - 0.20) < 0.05
    # As much signal as noise: the share is a half, and the standard deviation.
    signal = 20 * rng.choice([-1.0, 1.0], (6, 6))
    assert 0.5 < np.mean([m.signal(table + signal) for m in noisy]) < 0.7
    assert (
        Measurement((0,), (None,), np.array([1e6, 0.0]), 1.0).signal(np.array([5e5, 5e5])) > 0.999
    )
    assert Measurement((0,), (None,), np.array([10.0]), 1.0).signal(np.array([10.0])) == 0.0


def test_binning_sums_values_axis_by_axis():
    table = np.arange(12.0).reshape(3, 4)
    measured = Measurement((2, 5), (np.array([1, 0, 1]), None), np.zeros((3, 4)), 1.0)
    # The third bin has no values.
    np.testing.assert_array_equal(
        bin_table(table, measured.bins, (3, 4)), [table[1], table[0] + table[2], np.zeros(4)]
    )


def test_contrasts_are_told_from_what_was_not_measured():
    rng = np.random.default_rng(4)
    m = Measurement(
        (0, 1),
        (None, None),
        np.array([[30.0, 10.0, 5.0], [10.0, 20.0, 5.0]]),
        2.0,
        contrasts=(0,),
    )
    assert m.freedom == 0.5
    assert m.dimensions == 3
    np.testing.assert_allclose(m.errors, np.sqrt(2))
    np.testing.assert_allclose(m.contrasted(m.counts), [[10, -5, 0], [-10, 5, 0]])
    # What lies in the mean along the axis is neither told nor missed.
    other = m.counts + np.array([100.0, -40.0, 7.0])
    assert m.squares(other) < 1e-20
    assert m.signal(other) == 0
    np.testing.assert_allclose(m.squares(m.counts + np.array([[2.0], [-2.0]])), 6)
    # Several models at once.
    tables = rng.normal(size=(5, 2, 3)) * 10
    each = [m.squares(table) for table in tables]
    np.testing.assert_allclose(m.squares_of_each(tables), each)
    # Where the mean is known, it is met like the rest, and adds no noise.
    known = replace(m, completed=True)
    assert known.dimensions == 3
    np.testing.assert_allclose(known.contrasted(m.counts), m.counts)
    assert known.squares(other) > 0
    both = Measurement((0, 1), (None, None), np.zeros((2, 2)), 1.0, contrasts=(0, 1))
    assert both.freedom == 0.25
    # Noise of a contrast, as least squares see it: a sum of squares of 1 for each.
    noise = rng.normal(size=(4_000, 1, 1)) * 0.5 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    squares = [both.squares(draw) for draw in noise]
    assert abs(np.mean(squares) - both.dimensions) < 5 * np.sqrt(2 / 4_000)
    # Half the L1 norm of such noise is 2 |z| / 2, of a mean that misfits leave out, give or take 0.6.
    scores = misfits([both] * len(noise), list(noise))
    assert abs(np.mean(scores)) < 5 * 0.61 / np.sqrt(4_000)
    with pytest.raises(ModelError, match="contrasts along"):
        Measurement((0,), (None,), np.zeros(2), 1.0, contrasts=(1,))


def test_the_least_noise_of_a_marginal_counts_its_freedom():
    cells = np.full((2, 2), 10.0)
    one = Measurement((0, 1), (None, None), cells, 4.0, contrasts=(0, 1))
    other = Measurement((0, 1), (None, None), cells, 3.0)
    assert best_measured([other, one]) == [one]
    assert best_measured([one, Measurement((0, 1), (None, None), cells, 1.9)])[0].sigma == 1.9


def test_flat_cells_are_taken_apart_by_measurement():
    shapes = ((2, 3), (4,), (1, 2))
    every = [Measurement(tuple(range(len(s))), (None,) * len(s), np.ones(s), 1.0) for s in shapes]
    parts = by_measurement(np.arange(12.0), every)
    assert [part.shape for part in parts] == list(shapes)
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts]), np.arange(12.0))
    assert by_measurement(np.empty(0), []) == []


def test_one_way_margins_are_weighted_by_precision_and_leave_coarser_bins_out():
    table = np.arange(6.0).reshape(2, 3)
    halves = np.array([0, 0, 1])
    measured = [
        Measurement((1,), (None,), np.full(3, 10.0), 1.0),
        Measurement((0, 1), (None, None), table, 1.0),
        Measurement((0, 1), (None, halves), np.ones((2, 2)), 1.0),
        Measurement((2, 3), (None, None), np.ones((2, 2)), 1.0, contrasts=(0,)),
    ]
    one, other = sorted(one_way_margins(measured), key=lambda m: m.attributes)
    assert (one.attributes, other.attributes) == ((0,), (1,))
    # Margins of three and of two cells.
    weights = np.array([1 / 3, 1 / 2])
    expected = (weights[0] * table.sum(axis=1) + weights[1] * 2.0) / weights.sum()
    np.testing.assert_allclose(one.counts, expected)
    np.testing.assert_allclose(one.sigma, weights.sum() ** -0.5)
    # One marginal of variance 1, and a margin of variance 2.
    np.testing.assert_allclose(other.counts, (10.0 + 0.5 * table.sum(axis=0)) / 1.5)
    np.testing.assert_allclose(other.sigma, 1.5**-0.5)


def test_margins_with_a_bin_of_no_value_are_not_pooled_with_those_without():
    together = np.zeros(2, np.int64)
    one, two = (Measurement((0,), (together,), np.full(n, 10.0), 1.0) for n in (1, 2))
    assert [m.counts.tolist() for m in one_way_margins([one, two])] == [[10.0, 10.0]]
