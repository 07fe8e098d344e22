"""Trends: a coarse table of two attributes read as one correlation, which a finer table then has."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from vertimrf.model.copula import FAR, carried, normal_tables
from vertimrf.model.measurement import Measurement, bin_table, contrasted
from vertimrf.model.trend import Cut, as_trends, has_trend, without_noise
from vertimrf.plan.binning import finer_bins, halves

RECORDS = 4000
EDGES = st.lists(
    st.one_of(st.floats(-5, 5), st.sampled_from([-FAR, 1e-9, FAR])), min_size=0, max_size=4
)


def scores(inner):
    """Edges from one end to the other; none is 0, where Owen's function divides by it."""
    inner = np.array([x if abs(x) > 1e-9 else 1e-9 for x in sorted(inner)])
    return np.concatenate([[-FAR], inner, [FAR]])


def by_quadrature(one, other, r):
    """A cell's probability is an integral over the first variable; midpoints of 4000 parts of each row."""
    rows = []
    for low, high in itertools.pairwise(np.clip(one, -9, 9)):
        x = low + (high - low) * (np.arange(4000) + 0.5) / 4000
        below = special.ndtr((other[:, None] - r * x) / math.sqrt(1 - r * r))
        rows.append((np.diff(below, axis=0) * stats.norm.pdf(x)).sum(axis=1) * (high - low) / 4000)
    return np.array(rows)


@pytest.mark.parametrize("r", [-0.99, -0.5, 0.0, 0.3, 0.95])
def test_cells_have_the_probabilities_of_two_gaussian_variables(r):
    one, other = scores([-1.2, 0.0, 0.4]), scores([-0.3, 2.5])
    found = normal_tables(one, other, np.array([r]))[0]
    np.testing.assert_allclose(found, by_quadrature(one, other, r), atol=1e-5)
    law = stats.multivariate_normal([0, 0], [[1, r], [r, 1]])
    assert found[:2, :1].sum() == pytest.approx(law.cdf([0.0, -0.3]), abs=1e-5)


@given(EDGES, EDGES, st.floats(-0.99, 0.99))
@settings(max_examples=60)
def test_cells_are_probabilities_with_the_margins_of_their_edges(one, other, r):
    one, other = scores(one), scores(other)
    table, turned = normal_tables(one, other, np.array([r, -r]))
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), np.diff(special.ndtr(one)), atol=1e-7)
    np.testing.assert_allclose(table.sum(axis=0), np.diff(special.ndtr(other)), atol=1e-7)
    np.testing.assert_allclose(normal_tables(other, one, np.array([r]))[0], table.T, atol=1e-7)
    # The other sign is the table of one variable turned round.
    np.testing.assert_allclose(
        normal_tables(-one[::-1], other, np.array([r]))[0][::-1], turned, atol=1e-6
    )


def cut_of(counts, ordered=True, missing=False):
    """Halves of an attribute, and its cut into finer bins."""
    counts = np.asarray(counts, float)
    half = halves(counts, ordered, missing)
    return half, Cut(counts, finer_bins(counts, half, ordered, missing), halved=True)


def population(cuts, r):
    """Counts of values of two Gaussian variables with the cuts' margins [shape=sizes]."""
    edges = [
        scores(np.clip(special.ndtri(np.cumsum(c.counts)[:-1] / c.counts.sum()), -FAR, FAR))
        for c in cuts
    ]
    return RECORDS * normal_tables(*edges, np.array([r]))[0]


def measured(table, bins, sigma, noise=0.0, contrasts=(0, 1)):
    """A measurement of a table of values, in bins."""
    counts = bin_table(table, bins, [int(each.max()) + 1 for each in bins])
    return Measurement(
        (0, 1), tuple(bins), contrasted(counts + noise, contrasts), sigma, "", contrasts
    )


def correlation_of(table, one, other):
    """The correlation whose table is nearest, on a grid of its own."""
    grid = np.linspace(-0.99, 0.99, 397)
    return grid[
        np.square(normal_tables(one, other, grid) - table / table.sum()).sum(axis=(1, 2)).argmin()
    ]


UNEVEN = np.linspace(100, 300, 20)
FLAT = np.full(16, 250.0)


@pytest.mark.parametrize("r", [-0.7, 0.0, 0.85])
def test_a_trend_has_the_posterior_of_the_correlation(r):
    """By an oracle: the noise of a contrast is Gaussian, the prior is uniform, and halves that meet at medians have the
    known contrast n (2 / pi) asin r / 4 in each of four cells. Its error is that of the posterior in the finer table."""
    (half, one), (_, other) = cut_of(FLAT), cut_of(FLAT)
    sigma = 120.0
    (found,) = as_trends(
        [measured(population((one, other), r), (half, half), sigma)],
        {0: one, 1: other},
        RECORDS,
    )
    grid = np.linspace(-0.99, 0.99, 4001)
    contrast = RECORDS * np.arcsin(grid) / (2 * math.pi)
    exact = RECORDS * math.asin(r) / (2 * math.pi)
    # Four cells that are one number: their squares are four times its own.
    posterior = np.exp(-0.5 * 4 * np.square((contrast - exact) / sigma))
    posterior /= posterior.sum()
    mean = posterior @ grid
    spread = math.sqrt(posterior @ np.square(grid - mean))
    assert found.trend
    assert not found.contrasts
    assert found.counts.shape == (12, 12)
    edges = scores(special.ndtri(np.cumsum(np.bincount(one.finer, weights=FLAT) / 4000)[:-1]))
    near = [RECORDS * normal_tables(edges, edges, np.array([x]))[0] for x in (mean, mean + 1e-3)]
    np.testing.assert_allclose(found.counts, near[0], atol=0.5)
    slope = np.square((near[1] - near[0]) / 1e-3).sum()
    assert found.sigma / math.sqrt(slope) == pytest.approx(spread, rel=0.02)
    # One number's noise, however many cells there are.
    assert found.dimensions == pytest.approx(1)
    assert found.directions == 1


@pytest.mark.slow
def test_correlations_are_as_near_the_truth_as_their_errors_say():
    """300 contrasts of a correlation of 0.4: errors in units of their standard deviations have a mean square that is 1 up to
    4.42 sqrt(2 / 300) = 0.36 with a chance of 1e-5. That of the estimate exceeds the posterior's by the prior's pull."""
    (half, one), (_, other) = cut_of(FLAT), cut_of(UNEVEN)
    table, rng = population((one, other), 0.4), np.random.default_rng(1)
    bins = half, halves(UNEVEN, True, False)
    edges = [
        scores(
            special.ndtri(np.cumsum(np.bincount(c.finer, weights=c.counts / c.counts.sum()))[:-1])
        )
        for c in (one, other)
    ]
    slopes = np.diff(normal_tables(*edges, np.array([0.399, 0.401])), axis=0) * RECORDS / 2e-3
    squares = []
    for _ in range(300):
        noise = 150.0 * rng.standard_normal((2, 2))
        (found,) = as_trends([measured(table, bins, 150.0, noise)], {0: one, 1: other}, RECORDS)
        error = found.sigma / math.sqrt(np.square(slopes).sum())
        squares.append(((correlation_of(found.counts, *edges) - 0.4) / error) ** 2)
    assert abs(np.mean(squares) - 1) < 0.36


@pytest.mark.parametrize(
    "counts, missing, ordered, finer",
    [
        (FLAT, False, True, 12),
        # Fewer values than bins.
        ([5, 9, 4, 7], False, True, 4),
        # Nearly all of one value, and all of it.
        ([4000, 1, 0, 0], False, True, 4),
        ([0, 0, 4000, 0, 0], False, True, 5),
        ([0, 0, 0, 0], False, True, 4),
        ([0, 0, 0, 0], True, True, 2),
        # Records without a value are a half.
        ([*FLAT, 9000], True, True, 2),
        ([*FLAT, 500], True, True, 12),
        (FLAT, False, False, 2),
    ],
)
def test_any_cut_gives_finer_counts_of_all_records_with_its_margins(
    counts, missing, ordered, finer
):
    (half, one), (evenly, other) = cut_of(counts, ordered, missing), cut_of(FLAT)
    noise = np.array([[90.0, -20.0], [10.0, 40.0]])
    m = measured(np.zeros((len(one.counts), 16)), (half, evenly), 80.0, noise)
    assert has_trend(m, {0: one, 1: other})
    (found,) = as_trends([m], {0: one, 1: other}, RECORDS)
    assert found.counts.shape == (finer, 12)
    assert np.isfinite(found.counts).all()
    assert found.sigma > 0
    assert found.counts.sum() == pytest.approx(RECORDS)
    for axis, cut in enumerate((one, other)):
        np.testing.assert_array_equal(found.bins[axis], cut.finer)
        if total := cut.counts.sum():
            share = np.bincount(cut.finer, weights=cut.counts) / total
            np.testing.assert_allclose(found.counts.sum(axis=1 - axis) / RECORDS, share, atol=1e-6)


def test_a_table_that_no_trend_explains_stays():
    """Large and small values of one attribute go with the middle of the other: no correlation is near."""
    half, one = cut_of(FLAT)
    other = Cut(np.full(4, 1000.0), np.arange(4))
    table = np.zeros((16, 4))
    table[:8, [0, 3]] = table[8:, [1, 2]] = 250.0
    m = measured(table, (half, np.arange(4)), 30.0, contrasts=(0,))
    assert as_trends([m], {0: one, 1: other}, RECORDS) == [m]
    # Noise hides it: three dimensions are not above their mean by three standard deviations.
    (read,) = as_trends(
        [measured(table, (half, np.arange(4)), 1500.0)], {0: one, 1: other}, RECORDS
    )
    assert read.trend


def test_what_is_asked_for_or_of_no_halved_attribute_stays():
    half, one = cut_of(FLAT)
    cuts = {0: one, 1: one}
    m = measured(population((one, one), 0.5), (half, half), 30.0)
    whole = Measurement((0, 1), (None, None), population((one, one), 0.5), 30.0)
    asked = Measurement((0, 1), m.bins, m.counts, 30.0, "", (0, 1), False, True)
    alone = Measurement((0,), (None,), FLAT, 30.0)
    three = Measurement((0, 1, 2), (half, half, None), np.ones((2, 2, 2)), 30.0)
    unknown = Measurement((0, 2), m.bins, m.counts, 30.0, "", (0, 1))
    others = [whole, asked, alone, three, unknown]
    assert as_trends(others, cuts, RECORDS) == others
    # Bins of a pair without a halved attribute stay, as a workload asks for them.
    kept = dict.fromkeys((0, 1), replace(one, halved=False))
    thirds = RECORDS * np.array([[2.0, 1.0], [1.0, 2.0]]) / 6
    binned = Measurement((0, 1), m.bins, thirds, 30.0)
    assert as_trends([binned], kept, RECORDS) == [binned]
    assert as_trends([m, *others], {}, RECORDS) == [m, *others]
    # Two values each, measured as a contrast: a trend of two by two.
    two = Measurement((0, 1), (None, None), np.array([[9.0, -9], [-9, 9]]), 3.0, "", (0, 1))
    pair = dict.fromkeys((0, 1), Cut(np.array([50.0, 50.0]), np.arange(2)))
    (read,) = as_trends([two], pair, 100)
    assert read.counts.shape == (2, 2)
    assert read.trend


def test_trends_that_noise_may_explain_are_left_out_of_fits():
    half, one = cut_of(FLAT)
    cuts = {0: one, 1: one}

    def read(correlation, noise):
        table = measured(population((one, one), correlation), (half, half), noise)
        return as_trends([table], cuts, RECORDS)

    (strong,) = read(0.6, 30.0)
    alone = Measurement((0,), (None,), FLAT, 30.0)
    assert without_noise([strong, alone]) == [strong, alone]
    assert without_noise(read(0.0, 30.0)) == []
    assert without_noise(read(0.6, 30_000.0)) == []


def test_bins_are_read_as_a_trend_unless_they_contradict_it():
    """Seven bins of 14 values: exact counts of two Gaussian variables, and of a U shape."""
    bins = np.arange(14) // 2
    cut = Cut(np.full(14, 700.0), finer_bins(np.full(14, 700.0), bins, True, False), halved=True)
    assert (cut.finer == bins).all()
    edges = np.concatenate([[-12.0], special.ndtri(np.arange(1, 7) / 7), [12.0]])
    (gaussian,) = 9800 * normal_tables(edges, edges, np.array([0.5]))
    middle = np.abs(np.arange(7) - 3)
    shape = 1 + 0.5 * np.outer(middle - middle.mean(), middle - middle.mean())
    for counts, read in ((gaussian, True), (200 * shape, False)):
        m = Measurement((0, 1), (bins, bins), counts, 30.0)
        (found,) = as_trends([m], {0: cut, 1: cut}, 9800.0)
        assert found.trend == read
        assert np.abs(found.counts - counts).max() < 3


def test_errors_of_missing_values_carry_over_to_the_other_cells():
    """A column of two values whose second half of records lacks the other column: as the rows have known
    sums, the cells with a value are as uncertain as those without, and what is known of who lacks both
    is an error of those who lack one.
    """
    counts = np.array([[90.0, 0.0, 10.0], [30.0, 30.0, 40.0], [5.0, 5.0, 70.0]])
    alone = np.zeros((3, 3))
    alone[0, 2], alone[2, 2] = 3.0, 10.0
    found = carried(counts, alone, (True, True))
    second = [math.hypot(3.0, 10.0 * 10 / 50), 10.0 * 40 / 50]
    np.testing.assert_allclose(found[:2, 2], second)
    np.testing.assert_allclose(found[2], [5.0, 5.0, 10.0])
    expected = [
        [math.hypot(second[0], 5.0 * 90 / 120), 0.0],
        [math.hypot(second[1] / 2, 5.0 / 4), math.hypot(second[1] / 2, 5.0)],
    ]
    np.testing.assert_allclose(found[:2, :2], expected, atol=1e-8)
    np.testing.assert_array_equal(alone[0, 2], 3.0)
    np.testing.assert_array_equal(carried(counts, alone, (False, False)), alone)


def test_few_values_without_the_other_column_are_as_uncertain_as_the_records_without():
    """Of 100 records 60 lack the second column, with an error of 8. So the 40 that have it are known no better."""
    m = Measurement((0, 1), (None, None), np.array([[30.0, 5.0, 60.0], [2.0, 3.0, 0.0]]), 8.0)
    cuts = {
        0: Cut(np.array([95.0, 5.0]), np.array([0, 1])),
        1: Cut(np.array([16.0, 16.0, 4.0, 4.0, 60.0]), np.array([0, 1, 2, 3, 4]), True, True),
    }
    m = replace(m, bins=(None, np.array([0, 0, 1, 1, 2])))
    (read,) = as_trends([m], cuts, 100.0)
    assert read.sigma[0, :4].min() < read.sigma[0, 4]
    assert math.sqrt(np.square(read.sigma[0, :4]).sum()) > read.sigma[0, 4] / 2
