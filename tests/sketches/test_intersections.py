"""CarEst by likelihood: unbiased, near the Cramér-Rao bound, and honest about its error."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import highest_levels

from vertimrf.errors import MessageError
from vertimrf.kernels.intersections import joint_histograms
from vertimrf.sketches.intersections import Side, estimate_pair, level_log_cdf
from vertimrf.sketches.parameters import ScheduledPair, SketchPlan


def simulate(rng, table, plan, keys):
    """Sketches of both attributes of a pair whose contingency table is given."""
    cells = np.array([[highest_levels(rng, c, keys) for c in row] for row in table])
    left = cells.max(axis=1)
    right = cells.max(axis=0)
    for side in (left, right):
        for row in side:
            np.maximum(row, highest_levels(rng, plan.phantoms, keys), out=row)
    return tuple(np.clip(side, plan.floor, plan.ceiling).astype(np.uint8) for side in (left, right))


def plan_of(phantoms):
    top = int(np.log2(phantoms))
    return SketchPlan(
        phantoms=phantoms,
        floor=max(top - 4, 0),
        ceiling=top + 7,
        pairs=(ScheduledPair(0, 1, 10),),
        sizes=(2, 2),
    )


def sides(table, left, right):
    table = np.asarray(table, float)
    u, w = table.shape
    return (
        Side(0, np.arange(u), table.sum(axis=1), left),
        Side(1, np.arange(w), table.sum(axis=0), right),
    )


@pytest.mark.parametrize("phantoms", [500, 5_000, 50_000])
@pytest.mark.parametrize(
    "cells", [[[0, 3000], [2000, 15000]], [[200, 9800], [10, 9990]], [[10000, 0], [0, 10000]]]
)
def test_estimates_are_unbiased_and_as_precise_as_stated(phantoms, cells):
    rng = np.random.default_rng(phantoms)
    plan = plan_of(phantoms)
    keys, repetitions = 2000, 60
    truth = np.array(cells, float)
    estimates, sigmas = [], []
    for _ in range(repetitions):
        measured = estimate_pair(
            plan, *sides(truth, *simulate(rng, cells, plan, keys)), total=truth.sum()
        )
        estimates.append(measured.counts)
        sigmas.append(measured.sigma)
    error = np.array(estimates) - truth
    sigma = np.mean(sigmas, axis=0)
    # Bias within 3.5 standard errors (12 x 3 cells tested); the chi^2 spread of 60 squared errors is 1 +- 0.18.
    assert np.all(np.abs(error.mean(axis=0)) < 3.5 * sigma / np.sqrt(repetitions))
    ratio = np.sqrt((error**2).mean(axis=0)) / sigma
    assert np.all(ratio < 1.35)
    assert np.all(ratio > 0.65)


def test_sketches_of_one_value_and_of_equal_attributes():
    rng = np.random.default_rng(5)
    plan = plan_of(1000)
    measured = estimate_pair(
        plan, *sides([[7000]], *simulate(rng, [[7000]], plan, 4000)), total=7000
    )
    assert abs(measured.counts[0, 0] - 7000) < 4 * measured.sigma[0, 0]


def test_attributes_come_out_in_schema_order():
    rng = np.random.default_rng(6)
    plan = plan_of(1000)
    table = np.array([[100, 2000, 300], [50, 20, 4000]])
    left, right = sides(table, *simulate(rng, table, plan, 500))
    forward = estimate_pair(plan, left, right, total=table.sum())
    swapped = estimate_pair(plan, right, left, total=table.sum())
    assert forward.attributes == swapped.attributes == (0, 1)
    np.testing.assert_allclose(forward.counts, swapped.counts)


@pytest.mark.parametrize("keys, levels", [(1, 2), (3, 5), (1001, 12)])
def test_histograms_equal_a_slow_count(keys, levels):
    rng = np.random.default_rng(keys)
    floor = 3
    left = rng.integers(floor, floor + levels, (3, keys)).astype(np.uint8)
    right = rng.integers(floor, floor + levels, (2, keys)).astype(np.uint8)
    slow = np.zeros((3, 2, levels, levels), int)
    for i in range(3):
        for j in range(2):
            for k in range(keys):
                slow[i, j, left[i, k] - floor, right[j, k] - floor] += 1
    np.testing.assert_array_equal(joint_histograms(left, right, floor, levels), slow)


def test_level_law_is_the_clipped_geometric():
    plan = SketchPlan(
        phantoms=10, floor=2, ceiling=5, pairs=(ScheduledPair(0, 1, 1),), sizes=(1, 1)
    )
    np.testing.assert_allclose(np.exp(level_log_cdf(plan)), [0.75, 0.875, 0.9375, 1.0])


def test_sketches_of_another_plan_are_refused():
    rng = np.random.default_rng(1)
    plan = plan_of(1000)
    table = [[10, 20], [30, 40]]
    left, right = sides(table, *simulate(rng, table, plan, 100))
    short = replace(right, levels=right.levels[:, :50])
    with pytest.raises(MessageError, match="100 and 50 keys"):
        estimate_pair(plan, left, short, total=100)
    high = replace(right, levels=right.levels + np.uint8(20))
    many = replace(left, sizes=np.append(left.sizes, 1.0))
    with pytest.raises(MessageError, match="2 values, their sizes 3"):
        estimate_pair(plan, many, right, total=100)
    with pytest.raises(MessageError, match="levels outside"):
        estimate_pair(plan, left, high, total=100)


@pytest.mark.parametrize("phantoms", [2_000, 20_000])
def test_errors_of_the_margins_are_part_of_the_stated_error(phantoms):
    rng = np.random.default_rng(phantoms)
    plan = plan_of(phantoms)
    truth = np.array([[4000.0, 5000.0], [3000.0, 8000.0]])
    repetitions, keys, spread = 100, 8000, 400.0
    errors = {True: [], False: []}
    sigmas = []
    for _ in range(repetitions):
        left, right = sides(truth, *simulate(rng, truth.astype(int), plan, keys))
        noisy = [
            replace(side, sizes=side.sizes + rng.normal(0, spread, 2)) for side in (left, right)
        ]
        for known, off in errors.items():
            sigma = np.full(2, spread) if known else None
            measured = estimate_pair(
                plan, *(replace(side, sizes_sigma=sigma) for side in noisy), total=truth.sum()
            )
            off.append(measured.counts - truth)
            if known:
                sigmas.append(measured.sigma)
    stated, plugged = (np.array(errors[known]) for known in (True, False))
    sigma = np.mean(sigmas, axis=0)
    # Bias within 3.5 standard errors (8 cells tested); the spread of 100 squared errors is 1 +- 0.14.
    assert np.all(np.abs(stated.mean(axis=0)) < 3.5 * sigma / np.sqrt(repetitions))
    ratio = np.sqrt((stated**2).mean(axis=0)) / sigma
    assert np.all((ratio > 0.7) & (ratio < 1.3))
    assert np.sqrt((stated**2).mean()) < np.sqrt((plugged**2).mean())


def test_floor_at_the_lowest_level():
    rng = np.random.default_rng(8)
    plan = SketchPlan(
        phantoms=4, floor=0, ceiling=8, pairs=(ScheduledPair(0, 1, 10),), sizes=(2, 2)
    )
    truth = [[5, 0], [3, 9]]
    measured = estimate_pair(plan, *sides(truth, *simulate(rng, truth, plan, 20_000)), total=17)
    assert np.all(np.abs(measured.counts - truth) < 4 * measured.sigma)


@pytest.mark.parametrize("spread", [0.0, 300.0])
@pytest.mark.parametrize("phantoms", [2_000, 40_000])
def test_errors_are_as_stated(phantoms, spread):
    rng = np.random.default_rng(phantoms)
    plan, keys, repetitions = plan_of(phantoms), 2000, 40
    truth = np.outer([2000, 3000, 5000], [0.4, 0.6]).astype(int)
    squares, stated = [], []
    for _ in range(repetitions):
        noisy = [
            replace(
                side,
                sizes=side.sizes + rng.normal(0, spread, len(side.sizes)),
                sizes_sigma=np.full(len(side.sizes), spread),
            )
            for side in sides(truth, *simulate(rng, truth, plan, keys))
        ]
        measured = estimate_pair(plan, *noisy, total=truth.sum())
        squares.append((measured.counts - truth) ** 2)
        stated.append(measured.sigma)
    # The pair's RMSE: 40 repetitions of 6 cells of which at least 2 are independent, so 8 % at one standard error.
    assert abs(np.sqrt(np.mean(squares) / np.mean(np.square(stated))) - 1) < 0.2


def test_few_keys_and_many_phantoms_bias_neither_estimate_nor_error():
    rng = np.random.default_rng(9)
    plan, keys, repetitions = plan_of(100_000), 500, 100
    truth = np.array([[250, 250, 500], [250, 1250, 500]])
    values, sigmas = [], []
    for _ in range(repetitions):
        measured = estimate_pair(
            plan, *sides(truth, *simulate(rng, truth, plan, keys)), total=truth.sum()
        )
        values.append(measured.counts)
        sigmas.append(measured.sigma)
    # 600 squared errors, nearly independent: their mean is 1 +- 0.06, and 4 standard errors allow for tails. Iterating the
    # likelihood gives far more than 1: estimates and stated errors then fall together.
    assert abs(np.mean(((np.array(values) - truth) / sigmas) ** 2) - 1) < 0.25
    assert np.all(
        np.abs(np.mean(values, axis=0) - truth)
        < 3.5 * np.mean(sigmas, axis=0) / np.sqrt(repetitions)
    )
