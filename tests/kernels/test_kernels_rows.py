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
    SHARED,
    add_logs,
    count_rows,
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


def cells_of(stems, lasts, row):
    """Where a row lies in every table of every stem."""
    out = []
    for first, stride, second, strides, base, begin, end in stems.astype(int):
        cell = base + int(row[first]) * stride + int(row[second]) * strides
        out.append(
            [int(cell + start + row[column]) for column, start in lasts[begin:end].astype(int)]
        )
    return out


@given(st.lists(st.sampled_from(SUBSETS), max_size=12, unique=True))
def test_every_cell_of_stems_is_of_one_table_and_one_combination_of_values(
    wanted,
):
    stems, lasts, cells = stems_of(SIZES, wanted)
    assert cells == sum(math.prod(SIZES[a] for a in subset) for subset in wanted)
    assert len(lasts) == len(wanted)
    rows = list(itertools.product(*map(range, SIZES)))
    # In the order of stems: those that differ in their last attribute alone, where the first of them comes.
    order = [
        subset
        for first in dict.fromkeys(subset[:-1] for subset in wanted)
        for subset in wanted
        if subset[:-1] == first
    ]
    owner = {}
    for row in rows:
        for subset, cell in zip(order, itertools.chain(*cells_of(stems, lasts, row)), strict=True):
            owner.setdefault(cell, set()).add((subset, tuple(row[a] for a in subset)))
    assert set(owner) == set(range(cells))
    assert all(len(combinations) == 1 for combinations in owner.values())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6, unique=True),
    st.integers(0, 25),
    st.sampled_from([1, 2, 5, 10]),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_candidates_are_picked_by_sums_over_their_cells(wanted, n, candidates, stages, seed):
    rng = np.random.default_rng(seed)
    rows = np.ascontiguousarray(rows_of(rng, candidates * n).T)
    stems, lasts, size = stems_of(SIZES, wanted)
    ends = np.array([*sorted(rng.integers(0, len(stems) + 1, stages - 1)), len(stems)])
    # Multiples of powers of two: sums are exact in any order and at either width.
    prices, gaps, slopes = 0.5 ** rng.integers(4, size=(3, size))
    gaps *= rng.integers(-4, 5, size)
    cells = np.stack([gaps, slopes], axis=1).astype(np.float32)
    begin = n // 3
    best = np.full(n, -1)
    for i in range(begin, n):
        left, pulls, first = list(range(candidates)), np.zeros(candidates), 0
        for end in ends:
            for j in left:
                places = list(itertools.chain(*cells_of(stems[first:end], lasts, rows[j * n + i])))
                pulls[j] += gaps[places].sum() - (i - begin) * slopes[places].sum()
            left.sort(key=lambda j: pulls[j])
            best[i] = left[0]
            left, first = left[: max(2, len(left) // 2)], end
        places = list(itertools.chain(*cells_of(stems, lasts, rows[best[i] * n + i])))
        np.add.at(gaps, places, prices[places])
    chosen = np.full(n, -1)
    pick(rows, stems, lasts, ends, prices.astype(np.float32), cells, begin, n, chosen)
    np.testing.assert_array_equal(chosen, best)
    np.testing.assert_array_equal(cells, np.stack([gaps, slopes], axis=1))


def test_blocks_start_with_a_share_of_the_gaps_that_all_of_them_close():
    rng = np.random.default_rng(0)
    taken, expected = rng.integers(0, 9, 50).astype(float), 10 ** rng.uniform(-2, 3, 50)
    prices = rng.random(50).astype(np.float32)
    cells = np.zeros((50, 2), np.float32)
    start_gaps(taken, expected, prices, 1000, 200, 300, 4, 10, 50, cells)
    # The blocks decide a tenth of the rows, after a fifth of them.
    parts = np.clip(SHARED * expected / 10, 1, 4)
    assert set(parts) > {1.0, 4.0}
    gaps = prices * ((taken - expected / 5) / parts + AHEAD)
    wanted = np.stack([gaps, prices * expected / 1000], axis=1)
    np.testing.assert_allclose(cells[10:], wanted[10:], rtol=1e-5, atol=1e-6)
    assert not cells[:10].any()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6, unique=True),
    st.integers(0, 25),
    st.integers(0, 2**32),
)
def test_rows_are_counted_stem_by_stem(wanted, n, seed):
    columns = rows_of(np.random.default_rng(seed), n)
    stems, lasts, size = stems_of(SIZES, wanted)
    counts, parts, expected = np.zeros(size), np.zeros(size), np.zeros(size)
    count_rows(columns, stems, lasts, 0, len(stems), counts)
    for begin, end in itertools.pairwise([0, len(stems) // 2, len(stems)]):
        count_rows(columns, stems, lasts, begin, end, parts)
    for row in columns.T:
        np.add.at(expected, list(itertools.chain(*cells_of(stems, lasts, row))), 1)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(parts, expected)
