"""Corners that noise alone fills, against tables whose true counts are known."""

import numpy as np
import pytest
from scipy import stats

from vertimrf.model.empty_cells import noise_alone
from vertimrf.model.empty_corners import empty_corners
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.redraw import Noise
from vertimrf.model.structural_zeros import allowing

SIZES = (10, 8, 2)
TREE = junction_tree(SIZES, [(0, 1), (1, 2)])
IN_ORDER = (10, 8, 0)
SIGMA = 50.0


def ridge(correlation, records=100_000.0):
    """Counts of two normal columns in bins of equal shares."""
    u, v = (stats.norm.ppf(np.linspace(0, 1, size + 1)[1:-1]) for size in SIZES[:2])
    edges = [np.concatenate([[-8], each, [8]]) for each in (u, v)]
    law = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    below = law.cdf(np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1))
    return np.diff(np.diff(below, axis=0), axis=1) * records


def emptied(counts, seed, ordered=IN_ORDER, tree=TREE, **parts):
    noise = np.random.default_rng(seed).normal(0, SIGMA, counts.shape)
    m = Measurement((0, 1), (None, None), counts + noise, SIGMA, **parts)
    return m, empty_corners([m], ordered, tree, {})


def test_corners_without_records_are_emptied_and_others_are_not():
    """Two corners without records are each emptied with a chance above 0.9: in fewer than half of 40 by one below 1e-9."""
    counts, shares = ridge(0.98), []
    for sign in (1, -1):
        table = counts[:, ::sign]
        for seed in range(20):
            ((pair, empty),) = emptied(table, seed)[1].items()
            assert pair == (0, 1)
            shares.append(empty[table < 1].mean())
            # A cell is emptied with a sum of less than four standard errors: above ten by a chance below 1e-8.
            assert not empty[table > 10 * SIGMA].any()
    assert np.mean(shares) > 0.5


@pytest.mark.parametrize("records", [100_000.0, 1_000.0])
def test_independent_columns_keep_all_cells(records):
    """Also where noise hides every cell."""
    for seed in range(50):
        assert emptied(ridge(0.0, records), seed)[1] == {}


def test_only_pairs_in_order_and_in_cliques_are_emptied():
    counts = ridge(0.98)
    assert emptied(counts, 0, (10, 0, 0))[1] == {}
    assert emptied(counts, 0, tree=junction_tree(SIZES, []))[1] == {}
    assert emptied(counts, 0, contrasts=(0, 1))[1] == {}
    assert not emptied(counts, 0, (9, 8, 0))[1][0, 1][9].any()


def test_a_fit_with_empty_corners_has_less_mass_far_from_the_truth():
    counts = ridge(0.98)
    wrong = []
    for zeros in (True, False):
        m, corners = emptied(counts, 1)
        factors = [allowing(pair, ~empty) for pair, empty in corners.items()]
        field = fit(SIZES, [m], counts.sum(), tree=TREE, zeros=factors if zeros else ())
        wrong.append(float(field.marginal((0, 1))[counts < 1].sum()))
    assert wrong[0] < wrong[1] / 2


@pytest.mark.slow
def test_redrawn_models_have_empty_corners_too():
    """In 60 runs together, fewer than 0.8 of the records that are there otherwise: 0.39, with a standard error of 0.09."""
    counts, wrong = ridge(0.98), np.zeros(2)
    for seed in range(60):
        m, _ = emptied(counts, seed)
        field = fit(SIZES, [m], counts.sum(), tree=TREE, zeros=noise_alone([m], IN_ORDER, TREE, {}))
        noise = Noise.of(field, [m], ())
        for i, numbers in enumerate((IN_ORDER, (0, 0, 0))):
            again = noise.redrawn(field, (), numbers, np.random.default_rng(seed))
            wrong[i] += again.marginal((0, 1))[counts < 1].sum()
    assert wrong[0] < 0.8 * wrong[1]
