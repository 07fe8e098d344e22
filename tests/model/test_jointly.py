"""Correlations of many columns, estimated together."""

import itertools
import math

import numpy as np
import pytest

from vertimrf.model.copula import Pair, Told, edge_scores, normal_tables, seen
from vertimrf.model.jointly import LEAST_VARIABLES, jointly, together

VARIABLES, ERROR = 40, 0.5
ENDS = np.array(list(itertools.combinations(range(VARIABLES), 2)))


def of_causes(seed, causes=3):
    """Correlations of variables that depend on each other by a few causes."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((VARIABLES, causes))
    parts *= 0.9 / np.linalg.norm(parts, axis=1, keepdims=True)
    return (parts @ parts.T)[tuple(ENDS.T)]


def measured(true, seed, error=ERROR):
    noise = np.random.default_rng(seed).standard_normal(len(true))
    return true + error * noise, np.full(len(true), error**-2)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_tell_of_each_other(seed):
    """Three causes are 120 numbers of 780: with each fitted freely an error is that of one pair times
    sqrt(120 / 780) = 0.39. The stated errors have a ratio to true ones that is within a quarter of 1 (their
    squares are dependent, as of about 120 free numbers: 0.13 is one standard deviation of a mean square)."""
    true = of_causes(seed)
    found, errors = jointly(*measured(true, seed + 10), ENDS)
    apart = found - true
    assert np.sqrt(np.square(apart).mean()) < 0.5 * ERROR
    assert np.sqrt(np.square(apart / errors).mean()) == pytest.approx(1, abs=0.35)
    # A cause has 10.8 of 40 variables and noise a norm of 6.3, so that the best estimate keeps
    # 0.84 of it; with the whole of the trace's weight it would be 0.46.
    assert found @ true / (true @ true) > 0.7


def test_noise_alone_tells_nothing():
    """What is left of a correlation of 0 is a tenth of its noise; alone it would have all of it."""
    values, precisions = measured(np.zeros(len(ENDS)), 5)
    found, _ = jointly(values, precisions, ENDS)
    assert np.sqrt(np.square(found).mean()) < 0.25 * ERROR


def test_a_pair_that_shares_no_cause_is_as_it_was_measured():
    """One pair of 780 has a correlation of ten standard errors. Noise of one among them is beyond
    sqrt(2 log 780) = 3.65 of them with a chance of 0.2."""
    true = np.zeros(len(ENDS))
    true[17] = 0.9
    values, precisions = measured(true, 6, 0.09)
    found, errors = jointly(values, precisions, ENDS)
    assert found[17] == values[17]
    assert errors[17] == pytest.approx(0.09)
    assert np.median(np.abs(found)) < 0.03


def test_a_precise_pair_counts_more_than_a_noisy_one():
    true = of_causes(1)
    values, precisions = measured(true, 11)
    precisions[:400] /= 400
    values[:400] += 19 * (values[:400] - true[:400])
    found, _ = jointly(values, precisions, ENDS)
    assert np.abs(found - true)[:400].mean() < 0.5


def lone(value, error=0.3):
    return Pair((False, False), 1000.0, present=Told(value, error))


def test_few_columns_are_as_they_are():
    few = list(itertools.combinations(range(LEAST_VARIABLES - 1), 2))
    pairs = [lone(0.1) for _ in few]
    assert together(few, pairs, {}) == pairs
    more = list(itertools.combinations(range(LEAST_VARIABLES), 2))
    assert together(more, [lone(0.1) for _ in more], {}) != [lone(0.1) for _ in more]
    assert together([], [], {}) == []


def test_who_lacks_columns_is_a_variable_of_its_own():
    """Columns are missing together, half of the records, and have no other link: all pairs tell it."""
    pairs = [
        Pair(
            (True, True),
            1000.0,
            both=Told(0.9, 0.5),
            lacking=(Told(0.0, 0.4), Told(0.0, 0.4)),
            present=Told(0.0, 0.4),
        )
        for _ in range(190)
    ]
    attributes = list(itertools.combinations(range(20), 2))
    found = together(attributes, pairs, dict.fromkeys(range(20), 0.5))
    both = np.array([each.both.value for each in found])
    assert (both > 0.7).all()
    assert all(each.both.error < 0.25 for each in found)
    assert all(abs(each.present.value) < 0.05 for each in found)
    assert all(abs(told.value) < 0.05 for each in found for told in each.lacking)
    # They count, however small they are.
    assert all(each.present.sure for each in found)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
def test_what_an_edge_leaves_of_a_correlation(share):
    """By a table: a Gaussian variable in 400 bins, and another above an edge."""
    fine = edge_scores(np.ones(400))
    edge = edge_scores(np.array([1 - share, share]))
    (table,) = normal_tables(fine, edge, np.array([0.5]))
    middles = np.array([table[i, 0] + table[i, 1] for i in range(400)])
    density = np.exp(-0.5 * np.square(np.clip(fine, -9, 9))) / math.sqrt(2 * math.pi)
    values = -np.diff(density) / middles
    covariance = values @ (table[:, 1] - middles * share)
    spread = math.sqrt(share * (1 - share) * float(middles @ np.square(values)))
    assert seen(share) * 0.5 == pytest.approx(covariance / spread, rel=0.02)


def test_a_joint_estimate_counts_however_small():
    """Half of 1,000 records lack each column: 250 both if independent, and 25 more with a correlation of 0.1."""
    masses = [np.array([250.0, 250.0, 500.0])] * 2
    for sure, lacking in ((True, 275.0), (False, 250.0)):
        pair = Pair((True, True), 1000.0, both=Told(0.1, 0.5, sure))
        assert pair.table(masses)[-1, -1] == pytest.approx(lacking)
