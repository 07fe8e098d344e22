"""Declining tails: what is replaced, and that columns with long tails keep their means under noise."""

from dataclasses import replace

import numpy as np
import pytest
from builders import temporal

from vertimrf import Attribute
from vertimrf.model.fit import LEAST, LEAST_SETTLED, fit, positive_counts
from vertimrf.model.measurement import Measurement
from vertimrf.model.tails import DECLINE, declining_tails

ERRORS = np.full(10, 10.0)


def test_rare_counts_at_an_end_decline_and_keep_their_sum():
    """The positive counts nearest to 4, -30, 12 and 9 have the sum that these replace."""
    counts = np.array([3.0, 40, 200, 300, 150, 60, 4, -30, 12, 9])
    out = declining_tails(counts, ERRORS, range(10))
    np.testing.assert_array_equal(out[:6], counts[:6])
    tail = out[6:]
    np.testing.assert_allclose(tail[1:] / tail[:-1], DECLINE)
    assert 0 < tail.sum() <= 25 + 30
    assert counts[7] == -30


def test_a_tail_begins_no_higher_than_what_stands_before_it():
    """Twenty rare values that add up to much: they decline slowly."""
    counts = np.append(np.array([30.0, 400, 28]), np.full(20, 20.0))
    out = declining_tails(counts, np.full(23, 10.0), range(23))
    assert out[3] <= out[2] * 1.6
    assert (np.diff(out[3:]) <= 0).all()
    assert out[3:].sum() == pytest.approx(counts[3:].sum(), rel=0.1)


def test_single_values_among_bins_and_one_rare_value_are_left_alone():
    counts = np.array([50.0, 200, 300, 4, 8, 2, 6, 1, 9, 5])
    out = declining_tails(counts, ERRORS, [0, 1, 2, 4, 6, 8])
    np.testing.assert_array_equal(out[[3, 5, 7, 9]], counts[[3, 5, 7, 9]])
    few = np.array([50.0, 200, 300, 200, 90, 50, 60, 70, 30, 9])
    np.testing.assert_array_equal(declining_tails(few, ERRORS, range(10)), few)
    # Where all are rare, nothing is known of tails; and three numbers have none.
    rare = np.full(10, 20.0)
    assert declining_tails(rare, ERRORS, range(10)) is rare
    assert declining_tails(counts, ERRORS, [0, 4, 6]) is counts


def test_only_numbers_that_have_an_order_have_tails():
    numbers = Attribute.numeric("a", [0, 1, 5, 9], integral=True, points=[0.0], missing=True)
    listed = Attribute.categorical("b", [1, 2, 5], missing=True, ordered=True)
    assert len(numbers.in_tails) == numbers.present - 1
    assert listed.in_tails == (0, 1, 2)
    for other in (
        Attribute.categorical("c", ["x", "y", "z"], ordered=True),
        Attribute.categorical("d", [1, 2, 5]),
        Attribute.integer("e", 9),
        temporal("f", "date", ["2020-01-01", "2020-02-01", "2020-03-01"]),
    ):
        assert other.in_tails == ()


def test_the_mean_of_a_column_with_a_long_tail_is_not_raised_by_noise():
    """Log-normal amounts, by 1,000 draws of noise of 2 % of the records in each count: the mean is 1.46 times the true one
    with noisy counts raised to be positive, and 1.11 times with declining tails. Both standard errors are 0.01."""
    rng = np.random.default_rng(0)
    amounts = rng.lognormal(0, 1.5, 2000)
    edges = np.array([0, *np.geomspace(0.1, amounts.max() + 1, 16)])
    exact, _ = np.histogram(amounts, edges)
    middles = (edges[1:] + edges[:-1]) / 2
    errors = np.full(len(exact), 40.0)

    def mean(counts, least=LEAST):
        return float((positive_counts(counts, errors, 2000.0, least) * middles).sum() / 2000)

    truth = mean(exact.astype(float), 0.0)
    means = []
    for _ in range(1000):
        noisy = exact + errors * rng.standard_normal(len(exact))
        settled = declining_tails(noisy, errors, range(len(exact)))
        means.append((mean(noisy) / truth, mean(settled, LEAST_SETTLED) / truth))
    before, after = np.mean(means, axis=0)
    assert before > 1.41
    assert 1 < after < 1.16


def test_a_fit_does_not_raise_what_declines():
    """Of two columns with the same counts, one of which is settled."""
    counts = np.array([500.0, 300, 150, 40, 0.5, 0.25])
    noisy = Measurement((0,), (None,), counts, 20.0)
    raised, kept = (
        fit((6,), [m], 991.0).marginal((0,)) for m in (noisy, replace(noisy, settled=True))
    )
    assert kept[4:].sum() < 0.3 * raised[4:].sum()
    assert raised[4:].min() > 3
