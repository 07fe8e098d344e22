"""CarEst by likelihood: unbiased, near the Cramér-Rao bound, and honest about its error."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import highest_levels

from vertimrf.errors import MessageError
from vertimrf.kernels.intersections import joint_histograms
from vertimrf.releases.scheduled_pairs.intersections import Side, estimate_pair, level_log_cdf
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs


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
    return ScheduledPairs(
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


def estimated(phantoms, cells, keys, spread, runs, known=True):
    """Of so many runs, how far estimates are off and their standard errors [both shape=(runs, *cells)].

    Sizes of sets have errors of ``spread``, which the estimator is told if they are ``known``.
    """
    rng, plan, truth = np.random.default_rng(phantoms), plan_of(phantoms), np.array(cells)
    off, sigmas = [], []
    for _ in range(runs):
        noisy = [
            replace(
                side,
                sizes=side.sizes + rng.normal(0, spread, len(side.sizes)),
                sizes_sigma=np.full(len(side.sizes), spread) if known else None,
            )
            for side in sides(truth, *simulate(rng, truth, plan, keys))
        ]
        measured = estimate_pair(plan, *noisy, total=truth.sum())
        off.append(measured.counts - truth)
        sigmas.append(measured.sigma)
    return np.array(off), np.array(sigmas)


EVEN = np.outer([2000, 3000, 5000], [0.4, 0.6]).astype(int)
FEW_KEYS = 100_000, [[250, 250, 500], [250, 1250, 500]], 500
MARGINS = [[4000, 5000], [3000, 8000]]


@pytest.mark.parametrize(
    "phantoms, cells, keys, spread, runs",
    [
        *(
            (phantoms, cells, 2000, 0.0, 60)
            for phantoms in (500, 5_000, 50_000)
            for cells in (
                [[0, 3000], [2000, 15000]],
                [[200, 9800], [10, 9990]],
                [[10000, 0], [0, 10000]],
            )
        ),
        *(
            (phantoms, EVEN, 2000, spread, 80)
            for phantoms in (2_000, 40_000)
            for spread in (0.0, 300.0)
        ),
        *((phantoms, MARGINS, 8000, 400.0, 100) for phantoms in (2_000, 20_000)),
        (1_000, [[7000]], 4000, 0.0, 20),
        # Levels from the lowest on.
        (4, [[5, 0], [3, 9]], 20_000, 0.0, 20),
        (*FEW_KEYS, 0.0, 100),
    ],
)
def test_estimates_are_unbiased_and_as_precise_as_stated(phantoms, cells, keys, spread, runs):
    off, sigmas = estimated(phantoms, cells, keys, spread, runs)
    sigma = sigmas.mean(axis=0)
    # Bias within 3.5 standard errors (84 cells tested), and each cell's spread within four of its own.
    assert np.all(np.abs(off.mean(axis=0)) < 3.5 * sigma / np.sqrt(runs))
    ratio = np.sqrt((off**2).mean(axis=0)) / sigma
    assert np.all(np.abs(ratio - 1) < 4 / np.sqrt(2 * runs))
    # All cells together: at least a third of them are independent.
    together = np.mean(off**2) / np.mean(sigmas**2)
    assert abs(together - 1) < 4 * np.sqrt(2 / (runs * off[0].size / 3))


def test_errors_of_few_keys_and_many_phantoms_do_not_fall_with_the_estimates():
    """600 squared errors, nearly independent, have a mean of 1 +- 0.06, and four standard errors allow for tails.

    Iterating the likelihood gives far more.
    """
    off, sigmas = estimated(*FEW_KEYS, 0.0, 100)
    assert abs(np.mean((off / sigmas) ** 2) - 1) < 0.25


@pytest.mark.parametrize("phantoms", [2_000, 20_000])
def test_errors_of_the_margins_are_weighed(phantoms):
    stated, plugged = (
        estimated(phantoms, MARGINS, 8000, 400.0, 100, known)[0] for known in (True, False)
    )
    assert np.mean(stated**2) < np.mean(plugged**2)


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
    plan = ScheduledPairs(
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
