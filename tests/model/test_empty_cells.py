"""Nearly empty cells of pairs: emptied where a map leaves noise alone in them, and not where records may be."""

import math

import numpy as np
import pytest

from vertimrf.model.empty_cells import NEAR, estimated, noise_alone, standard_errors
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement, one_way_margins
from vertimrf.model.proximal_step import FORBIDDEN

SIGMA = 30.0
# Two values decide whether the column of 12 is below 5; the first rows are rare.
MAP = np.where((np.arange(12) < 5)[:, None] == (True, False), 1.0, 0.0)
ROWS = np.array([40, 50, 60, 900, 1800, 3000, 1800, 1600, 1400, 900, 900, 900.0])
DECIDED = MAP * ROWS[:, None]


def measured(rng, table, sigma=SIGMA, pair=(0, 1), bins=(None, None)):
    """A pair and its margins, each with noise of its own."""
    tables = (*(table.sum(axis=1 - i) for i in (0, 1)), table)
    wanted = [((a,), (None,)) for a in pair] + [(pair, bins)]
    return [
        Measurement(a, b, t + sigma * rng.standard_normal(t.shape), sigma)
        for (a, b), t in zip(wanted, tables, strict=True)
    ]


def emptied(measurements, sizes, pairs=((0, 1),), classes=None):
    """The cells of the first pair that are emptied."""
    tree = junction_tree(sizes, pairs)
    factors = noise_alone(measurements, [0] * 8, tree, classes or {})
    assert all(set(np.unique(f.logs)) <= {0.0, FORBIDDEN} for f in factors)
    return factors[0].logs < 0 if factors else np.zeros(sizes[:2], bool)


def shares(table):
    """In which share of runs each cell is emptied."""
    rng = np.random.default_rng(0)
    return np.mean([emptied(measured(rng, table), table.shape) for _ in range(300)], axis=0)


def test_a_map_is_kept_by_the_model_and_its_records_stay():
    seen = shares(DECIDED)
    # Six cells in a thousand are above 2.5 standard errors, and all of them add up to more in as many runs. Rare values are seen only
    # together.
    assert (seen[3:][MAP[3:] == 0] > 0.93).all()
    assert (seen[:3, 1] > 0.4).all()
    assert (seen[:3, 0] < 0.02).all()
    assert (seen[3:][MAP[3:] > 0] == 0).all()
    measurements = measured(np.random.default_rng(1), DECIDED)
    tree = junction_tree((12, 2), [(0, 1)])
    zeros = noise_alone(measurements, [0, 0], tree, {})
    records = [
        fit((12, 2), measurements, ROWS.sum(), tree=tree, zeros=z).marginal((0, 1))[MAP == 0].sum()
        for z in ((), zeros)
    ]
    assert records[0] > 100
    assert records[1] < 30


@pytest.mark.parametrize(
    "k", [2.0, *(pytest.param(k, marks=pytest.mark.slow) for k in (3.0, 4.0, 5.0))]
)
def test_a_cell_of_k_standard_errors_is_emptied_no_more_often_than_stated(k):
    _, precisions = estimate(measured(np.random.default_rng(0), DECIDED))
    sigma = standard_errors([np.ones(12), np.ones(2)], precisions)[0, 0]
    assert 0.6 * SIGMA < sigma < SIGMA
    table = DECIDED.copy()
    table[5, 0] += k * sigma
    limit = 0.5 * math.erfc((k - NEAR) / math.sqrt(2))
    # 4.3 standard errors of a share of 300 runs.
    assert shares(table)[5, 0] < limit + 4.3 * math.sqrt(limit * (1 - limit) / 300)


def test_rare_values_keep_their_records_where_noise_hides_each_cell():
    """Of two columns that are nearly the same, the last bins have fewer records than noise shows in a cell, and more in their own counts."""
    counts = np.diag([400.0, 1000, 1300, 1100, 800, 560, 320, 61, 47, 32, 20, 10])
    tree, kept = junction_tree(counts.shape, [(0, 1)]), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        measurements = [*measured(rng, counts, 10.0)[:2], measured(rng, counts, 20.0)[2]]
        zeros = noise_alone(measurements, counts.shape, tree, {})
        assert zeros
        field = fit(counts.shape, measurements, counts.sum(), tree=tree, zeros=zeros)
        kept.append(field.marginal((0,))[7:].sum())
    # Each of five bins has an error of 10 or less: 4.3 standard errors of 20 runs are 22. Without room, 120 records are lost.
    assert np.mean(kept) > counts[7:].sum() - 22


def estimate(measurements):
    pair = next(m for m in measurements if len(m.attributes) == 2)
    group = [(m, (0, 1)) for m in measurements if m.attributes[:2] == pair.attributes]
    return estimated(group, one_way_margins(measurements))


def test_records_that_noise_does_not_explain_stay():
    # Each is within its noise, and together they are not.
    assert shares(4 * DECIDED + (1 - MAP) * 1.5 * SIGMA).max() < 0.05
    # Some of many counts near the limit are below it by noise: these alone would seem to be few.
    assert shares(4 * DECIDED + (1 - MAP) * 3 * SIGMA).max() < 0.03
    # A rare value that independent columns would hardly have with another says nothing.
    rare = np.outer([0.02, 0.98], [0.02, 0.98]) * 8000
    assert shares(rare).max() == 0


def test_the_estimate_is_least_squares():
    rng = np.random.default_rng(0)
    table = rng.uniform(50, 100, (4, 3))
    triple = rng.uniform(20, 60, (4, 3, 2))
    measurements = [
        *measured(rng, table),
        Measurement((0, 1, 2), (None,) * 3, triple, 20.0),
        Measurement((1, 2), (None, None), rng.uniform(100, 200, (3, 2)), 25.0),
    ]
    counts, precisions = estimate(measurements)
    # By its definition: rows of a design are sums of cells.
    cells = np.eye(12).reshape(12, 4, 3)
    design, told = [], []
    for sums, m, sigma in (
        ([cells[:, i].sum(1) for i in range(4)], measurements[0].counts, SIGMA),
        ([cells[:, :, i].sum(1) for i in range(3)], measurements[1].counts, SIGMA),
        (np.eye(12), measurements[2].counts, SIGMA),
        (np.eye(12), triple.sum(2), 20 * 2**0.5),
        ([cells[:, :, i].sum(1) for i in range(3)], measurements[4].counts.sum(1), 25 * 2**0.5),
    ):
        design += [row / sigma for row in sums]
        told += [*(np.ravel(m) / sigma)]
    inverse = np.linalg.inv(np.transpose(design) @ design)
    np.testing.assert_allclose(counts.ravel(), inverse @ np.transpose(design) @ told)
    alone = standard_errors([np.ones(4), np.ones(3)], precisions)
    np.testing.assert_allclose(alone.ravel(), np.sqrt(np.diag(inverse)))
    some = np.outer([0, 1, 1, 1], [1, 0, 1]).ravel()
    pooled = standard_errors([np.array([1.0, 3.0]), np.array([1.0, 2.0])], precisions)[1, 1]
    assert pooled == pytest.approx(math.sqrt(some @ inverse @ some))


def test_bins_classes_and_pairs_that_are_left_alone():
    rng = np.random.default_rng(3)
    bins = np.arange(12) // 2 * 2 // 2
    merged = np.zeros((6, 2))
    np.add.at(merged, bins, DECIDED)
    one, other, pair = measured(rng, DECIDED)
    of_bins = [one, other, measured(rng, merged, bins=(bins, None))[2]]
    seen = emptied(of_bins, (12, 2))
    assert seen.any()
    assert (seen == seen[2 * bins]).all()
    assert not seen[:4, 0].any()
    assert (emptied(of_bins, (6, 2), classes={0: bins}) == seen[::2]).all()
    assert emptied([one, other, pair], (12, 2)).any()
    assert not emptied([one, other, pair], (12, 2), pairs=()).any()
    for odd in ({"contrasts": (1,)}, {"trend": True}):
        pair_of = Measurement(pair.attributes, pair.bins, pair.counts, SIGMA, **odd)
        assert not emptied([one, other, pair_of], (12, 2)).any()
