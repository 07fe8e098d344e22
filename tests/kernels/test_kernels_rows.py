"""Kernels of rows against loops over dictionaries: weights, counts, and candidates that are picked."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.kernels.jit import threads
from vertimrf.kernels.rows import (
    AHEAD,
    BLOCK,
    FALL_BITS,
    FALLS,
    HIGHEST,
    NEAR,
    SHARED,
    add_logs,
    pick,
    start_gaps,
    weighed_counts,
)
from vertimrf.model.picking import stems_of
from vertimrf.model.sample import RAKED_ROWS, SLICE, _rake

SIZES = (3, 2, 4, 1)
SUBSETS = [subset for way in (1, 2, 3) for subset in itertools.combinations(range(len(SIZES)), way)]


def lookups(wanted):
    """Tables and terms of marginals in C order, and how many cells they have together."""
    tables, terms, offset = [], [], 0
    for subset in wanted:
        tables.append((len(terms), len(terms) + len(subset), offset))
        terms += [(a, math.prod(SIZES[b] for b in subset[i + 1 :])) for i, a in enumerate(subset)]
        offset += math.prod(SIZES[a] for a in subset)
    return (
        np.array(tables, np.int64).reshape(-1, 3),
        np.array(terms, np.int64).reshape(-1, 2),
        offset,
    )


def rows_of(rng, n):
    return np.array([rng.integers(0, size, n) for size in SIZES], np.uint16)


def counted(codes, wanted, weights):
    """Cells of all tables, one row after the other."""
    tables = [np.zeros([SIZES[a] for a in subset]) for subset in wanted]
    for i in range(codes.shape[1]):
        for subset, table in zip(wanted, tables, strict=True):
            table[tuple(codes[a, i] for a in subset)] += weights[i]
    return np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6),
    st.integers(0, 50),
    st.integers(0, 2**32),
)
def test_weights_and_counts_equal_loops(wanted, n, seed):
    rng = np.random.default_rng(seed)
    codes = rows_of(rng, n)
    tables, terms, cells = lookups(wanted)
    logs, weights = rng.normal(size=cells), rng.random(n)
    counts = np.zeros(cells)
    weighed_counts(codes, tables, terms, weights, 0, len(tables), counts)
    np.testing.assert_allclose(counts, counted(codes, wanted, weights), rtol=1e-12)
    out = np.ones(n)
    add_logs(codes, tables, terms, logs, 0, n, out)
    # The log of a row is what one unit of its weight would add to the sum of logs times counts.
    expected = [1 + float(logs @ counted(codes[:, [i]], wanted, np.ones(1))) for i in range(n)]
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


def test_raking_scales_weights_to_the_wanted_sums_of_one_table_after_the_other():
    rng, n = np.random.default_rng(5), SLICE + BLOCK + 3
    codes = rows_of(rng, n)
    cells = lookups(SUBSETS)[2]
    weights, wanted = rng.random(n), n * rng.uniform(0, 3 / len(SUBSETS), cells)
    # Cells to leave alone, to bound, and without rows.
    wanted[rng.random(cells) < 0.2] = 0.5 * RAKED_ROWS / n
    expected, known = weights.copy(), []
    begin = 0
    for subset in SUBSETS:
        where = np.ravel_multi_index(codes[list(subset)], [SIZES[a] for a in subset])
        table = np.bincount(where, expected, math.prod(SIZES[a] for a in subset))
        want = wanted[begin : begin + table.size]
        known.append((subset, want.reshape([SIZES[a] for a in subset])))
        begin += table.size
        kept = (table <= 0) | (want < RAKED_ROWS / n)
        factors = np.divide(want, table, out=np.ones(table.size), where=~kept)
        expected *= np.clip(factors, 0.25, 4)[where]
    several = weights.copy()
    with threads(1):
        _rake(codes, known, weights)
    with threads(3):
        _rake(codes, known, several)
    np.testing.assert_allclose(weights, expected, rtol=1e-9)
    np.testing.assert_array_equal(weights, several)


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_slices_add_up_to_the_whole(n):
    rng = np.random.default_rng(n)
    codes = rows_of(rng, n)
    tables, terms, cells = lookups(SUBSETS)
    logs, weights = rng.normal(size=cells), rng.random(n)
    whole, parts = np.zeros(n), np.zeros(n)
    add_logs(codes, tables, terms, logs, 0, n, whole)
    for begin, end in itertools.pairwise([0, n // 3, n // 2, n]):
        add_logs(codes, tables, terms, logs, begin, end, parts)
    np.testing.assert_array_equal(whole, parts)
    counts, of_parts = np.zeros(cells), np.zeros(cells)
    weighed_counts(codes, tables, terms, weights, 0, len(tables), counts)
    for begin, end in itertools.pairwise([0, 1, 5, len(tables)]):
        weighed_counts(codes, tables, terms, weights, begin, end, of_parts)
    np.testing.assert_array_equal(counts, of_parts)
    np.testing.assert_allclose(counts, counted(codes, SUBSETS, weights), rtol=1e-9)


def cells_of(firsts, stems, row):
    """Where a row lies in every table of every stem."""
    spots = [int(first) + int(row[column]) for column, first in firsts.astype(int)]
    return [
        [base + spots[one] * stride + spots[two] * other + spots[t] for t in range(begin, end)]
        for one, stride, two, other, base, begin, end in stems.astype(np.int64).tolist()
    ]


@given(st.lists(st.sampled_from(SUBSETS), max_size=12, unique=True))
def test_every_cell_of_stems_is_of_one_table_and_one_combination_of_values(wanted):
    firsts, stems, tables, cells = stems_of(SIZES, wanted)
    assert cells == sum(math.prod(SIZES[a] for a in subset) for subset in wanted)
    assert set(tables) == set(wanted)
    owner = {}
    for row in itertools.product(*map(range, SIZES)):
        mine = {
            subset: first + sum(row[a] * strides[a] for a in subset)
            for subset, (first, strides) in tables.items()
        }
        assert sorted(mine.values()) == sorted(itertools.chain(*cells_of(firsts, stems, row)))
        for subset, cell in mine.items():
            owner.setdefault(cell, set()).add((subset, tuple(row[a] for a in subset)))
    assert set(owner) == set(range(cells))
    assert all(len(combinations) == 1 for combinations in owner.values())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6, unique=True),
    st.integers(0, 2 * NEAR),
    st.sampled_from([1, 2, 5, 10]),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_candidates_are_picked_by_sums_over_their_cells(wanted, n, candidates, stages, seed):
    rng = np.random.default_rng(seed)
    columns = rows_of(rng, candidates * n)
    rows = columns.T
    firsts, stems, _, size = stems_of(SIZES, wanted)
    ends = np.array([*sorted(rng.integers(0, len(stems) + 1, stages - 1)), len(stems)])
    prices = rng.integers(1, 256, size).astype(np.uint8)
    gaps, falls = rng.integers(-999, 1000, size), rng.integers(0, 999, size)
    cells, unit = (gaps << FALL_BITS | falls).astype(np.int32), 0.5
    begin = n // 3
    best = np.full(n, -1)
    for i in range(begin, n):
        left, pulls, first = list(range(candidates)), np.zeros(candidates), 0
        for end in ends:
            for j in left:
                places = list(itertools.chain(*cells_of(firsts, stems[first:end], rows[j * n + i])))
                pulls[j] += gaps[places].sum() - (i - begin) * unit * falls[places].sum()
            left.sort(key=lambda j: pulls[j])
            best[i] = left[0]
            left, first = left[: max(2, len(left) // 2)], end
        places = list(itertools.chain(*cells_of(firsts, stems, rows[best[i] * n + i])))
        np.add.at(gaps, places, prices[places])
    chosen = np.full(n, -1)
    pick(columns, firsts, stems, ends, prices, unit, cells, begin, n, chosen)
    np.testing.assert_array_equal(chosen, best)
    np.testing.assert_array_equal(cells, gaps << FALL_BITS | falls)


def test_a_gap_that_is_full_rises_no_further():
    """All rows lie in one cell, of the highest price."""
    columns = np.zeros((1, 2000), np.uint16)
    firsts, stems, _, size = stems_of([1], [(0,)])
    cells, chosen = np.array([7], np.int32), np.zeros(1000, np.int64)
    prices, ends = np.full(size, 255, np.uint8), np.array([1])
    pick(columns, firsts, stems, ends, prices, 1.0, cells, 0, 1000, chosen)
    assert 32_000 <= cells[0] >> FALL_BITS < 32_000 + 255
    assert cells[0] & FALLS == 7


def test_blocks_start_with_a_share_of_the_gaps_that_all_of_them_close():
    rng, size, unit = np.random.default_rng(0), 5000, 0.125
    counts, expected = rng.integers(0, 9, size), 10 ** rng.uniform(-2, 3, size)
    prices = rng.integers(1, 256, size).astype(np.uint8)
    # Three blocks have taken some rows of every cell since they started.
    cells = np.stack([*rng.integers(0, 3, (3, size)), np.zeros(size, int)]) * prices << FALL_BITS
    before, cells = (counts * prices).astype(np.int32), cells.astype(np.int32)
    counts = counts + (cells[:3] >> FALL_BITS).sum(axis=0) // prices
    start_gaps(before, expected, prices, 1000, 0, 100, 4, unit, 10, size, cells)
    np.testing.assert_array_equal(before[10:], (counts * prices)[10:])
    falls = (cells[:, 10:] & FALLS)[0]
    exact = (prices * expected / 1000 / unit)[10:]
    assert (np.abs(falls - exact) < 1).all()
    # Fractions up to 1 are rounded up as often as down: the mean of 5,000 is off by 0.5 / 5,000 ** 0.5 at most.
    assert abs((falls - exact).mean()) < 0.01
    # The blocks decide a tenth of the rows, after a fifth of them; nothing was taken since, and falls stay.
    start_gaps(before, expected, prices, 1000, 200, 300, 4, unit, 10, size, cells)
    parts = np.clip(SHARED * expected / 10, 1, 4)
    assert set(parts) > {1.0, 4.0}
    gaps = prices * ((counts - expected / 5) / parts + AHEAD)
    assert (np.abs((cells[:, 10:] >> FALL_BITS) - gaps[10:]) < 0.500001).all()
    np.testing.assert_array_equal(cells[:, 10:] & FALLS, [falls] * 4)
    # Beyond all gaps of tables.
    before[10:12] = 10**8, -(10**8)
    start_gaps(before, expected, prices, 1000, 300, 400, 4, unit, 10, 12, cells)
    np.testing.assert_array_equal(cells[0, 10:12] >> FALL_BITS, [HIGHEST, -HIGHEST])
