"""Places inside bins: columns that depend on each other do so there, and each keeps its distribution."""

import numpy as np
import pytest
from scipy import stats

from vertimrf.columns.numbers import Numbers
from vertimrf.columns.places import MOST_CELLS, PARTS, Places

N = 40_000
EDGES = (-6, -1.5, -0.5, 0.5, 1.5, 6)
# A mean of N even chances is so close, at odds of 1e-6 for each of some hundred comparisons.
NEAR = 5.7
# Five bins of a normal column leave so much of a rank correlation open; a standard error is below 0.002. Even draws lose 0.1.
CLOSE = 0.03


def made(values, edges=EDGES, **parts):
    """Columns of numbers, their codes, and where numbers are drawn."""
    attributes = [Numbers(f"x{i}", edges, missing=True, **parts) for i in range(len(values))]
    codes = np.array([np.digitize(row, edges[1:-1]) for row in values])
    return attributes, codes, spans_of(attributes, codes)


def spans_of(attributes, codes):
    """Where numbers are drawn, of the counts of the codes."""
    return [
        a.span(np.bincount(c, minlength=a.size)) for a, c in zip(attributes, codes, strict=True)
    ]


def drawn(attributes, codes, spans, absent=None, seed=0):
    absent = np.broadcast_to(np.False_, codes.shape) if absent is None else absent
    places = Places.of(codes, attributes, spans, absent)
    at = places.drawn(codes, absent, np.random.default_rng(seed))
    return places, np.array(at)


def normal(correlation, rows=2, seed=1):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=N)
    own = rng.normal(size=(rows, N))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own


def ranks(values):
    return np.corrcoef([stats.rankdata(row) for row in values])[0, 1]


@pytest.mark.parametrize("correlation", [0.95, 0.8])
def test_numbers_inside_bins_depend_on_each_other_as_codes_say(correlation):
    """Of what even draws lose of the rank correlation, a third is lost at most.

    A standard error of a rank correlation here is below 0.002.
    """
    values = normal(correlation)
    attributes, codes, spans = made(values)
    _, at = drawn(attributes, codes, spans)
    alone = np.random.default_rng(2).random(codes.shape)
    truth, kept, lost = ranks(values), ranks(codes + at), ranks(codes + alone)
    assert truth - lost > 0.02
    assert abs(truth - kept) < (truth - lost) / 3


def test_every_bin_keeps_the_distribution_of_its_places():
    attributes, codes, spans = made(normal(0.9, rows=3))
    _, at = drawn(attributes, codes, spans)
    for row, inside in zip(codes, at, strict=True):
        for code in range(attributes[0].present):
            some = inside[row == code]
            counts = np.bincount((some * PARTS).astype(int), minlength=PARTS)
            assert counts.sum() == len(some)
            # Counts of a table that is raked until its margins hold to below a thousandth.
            spread = NEAR * np.sqrt(len(some) / PARTS) + len(some) * 1e-3
            assert np.abs(counts - len(some) / PARTS).max() < spread


def test_a_falling_dependence_falls_inside_bins():
    values = normal(0.9) * [[1], [-1]]
    attributes, codes, spans = made(values)
    _, at = drawn(attributes, codes, spans)
    for code in range(1, 4):
        # A standard error of a correlation of independent places is below 0.01.
        some = (codes[0] == code) & (codes[1] == 4 - code)
        assert np.corrcoef(at[:, some])[0, 1] < -0.1


def test_independent_columns_and_columns_without_bins_keep_even_chances():
    attributes, codes, spans = made(np.random.default_rng(3).normal(size=(3, N)))
    places, at = drawn(attributes, codes, spans)
    assert places.links == ()
    assert (at == np.random.default_rng(0).random(codes.shape)).all()
    attributes, codes, spans = made(normal(0.9))
    assert drawn(attributes, codes, [spans[0], None])[0].links == ()


def test_missing_and_absent_values_take_no_part():
    """A third of the second column is missing, and a third belongs to nobody: its code there tells nothing."""
    attributes, codes, spans = made(normal(0.95))
    first, last = np.arange(N) % 3 == 0, np.arange(N) % 3 == 1
    codes[1, first] = attributes[1].present
    absent = np.zeros(codes.shape, bool)
    codes[1, last], absent[1, last] = 0, True
    _, at = drawn(attributes, codes, spans, absent)
    even = np.random.default_rng(0).random(codes.shape)
    assert (at[:, first | last] == even[:, first | last]).all()
    both = ~(first | last)
    kept = ranks((codes + at)[:, both])
    assert kept > ranks((codes + even)[:, both]) + 0.05


def test_each_column_is_drawn_beside_the_one_that_it_depends_on_most():
    """A chain: the second column follows the first, and the third the second; the fourth is alone."""
    rng = np.random.default_rng(4)
    chain = [rng.normal(size=N)]
    for share in (0.8, 0.9):
        chain.append(share**0.5 * chain[-1] + (1 - share) ** 0.5 * rng.normal(size=N))
    attributes, codes, spans = made([*chain, rng.normal(size=N)])
    places, at = drawn(attributes, codes, spans)
    assert [(link.first, link.second) for link in places.links] == [(1, 2), (1, 0)]
    values = codes + at
    # The second column's places follow its own codes and the third column alone.
    assert ranks(values[:2]) > ranks((codes + np.random.default_rng(5).random(at.shape))[:2]) + 0.02
    assert abs(ranks(values[1:3]) - ranks(chain[1:3])) < CLOSE


def test_rows_in_pieces_have_the_same_law_and_few_rows_none():
    attributes, codes, spans = made(normal(0.95))
    absent = np.broadcast_to(np.False_, codes.shape)
    places = Places.of(codes, attributes, spans, absent)
    rng = np.random.default_rng(5)
    pieces = [
        places.drawn(codes[:, s], absent[:, s], rng) for s in (slice(0, 9000), slice(9000, N))
    ]
    assert abs(ranks(codes + np.hstack(pieces)) - ranks(normal(0.95))) < CLOSE
    few = slice(0, 20)
    assert Places.of(codes[:, few], attributes, spans, absent[:, few]).links == ()


def test_many_bins_have_fewer_parts():
    edges = tuple(np.linspace(-6, 6, 61))
    attributes, codes, spans = made(normal(0.95), edges)
    places, at = drawn(attributes, codes, spans)
    (link,) = places.links
    assert link.parts == int((MOST_CELLS / 60**2) ** 0.5) < PARTS
    assert (at >= 0).all()
    assert (at < 1).all()


@pytest.mark.parametrize("unit", [1e-290, 1.0, 1e290])
def test_numbers_of_any_size_give_places(unit):
    attributes, codes, spans = made(normal(0.95) * unit, tuple(np.array(EDGES) * unit))
    _, at = drawn(attributes, codes, spans)
    assert ranks(codes + at) == pytest.approx(ranks(normal(0.95)), abs=CLOSE)


def test_points_and_whole_numbers_stay_where_they_are():
    """Half of both columns are 0, which has a code of its own."""
    rng = np.random.default_rng(6)
    values = np.round(np.maximum(normal(0.9), 0) * 100)
    edges = (0, 50, 100, 150, 600)
    attributes = [Numbers(f"x{i}", edges, points=(0,), integral=True) for i in range(2)]
    codes = np.array([np.where(v == 0, 0, 1 + np.digitize(v, edges[1:-1])) for v in values])
    spans = spans_of(attributes, codes)
    _, at = drawn(attributes, codes, spans, seed=rng)
    numbers = [a.drawn(*each) for a, *each in zip(attributes, codes, spans, at, strict=True)]
    for number, code, value in zip(numbers, codes, values, strict=True):
        assert ((number == 0) == (value == 0)).all()
        assert (number % 1 == 0).all()
        assert (np.digitize(number[code > 0], edges[1:-1]) + 1 == code[code > 0]).all()
