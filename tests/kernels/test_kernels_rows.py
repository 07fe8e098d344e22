"""Kernels of rows against loops over dictionaries: weights, counts, and candidates that are picked."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.kernels.rows import BLOCK, add_logs, count_rows, pick, rake, weighed_counts
from vertimrf.model.picking import stems_of

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
    rng, n = np.random.default_rng(5), 2 * BLOCK + 3
    codes = rows_of(rng, n)
    tables, terms, cells = lookups(SUBSETS)
    weights, wanted = rng.random(n), n * rng.uniform(0, 3 / len(SUBSETS), cells)
    # Cells to leave alone, to bound, and without rows.
    wanted[rng.random(cells) < 0.2] = 0.5
    expected = weights.copy()
    begin = 0
    for subset in SUBSETS:
        table = counted(codes, [subset], expected)
        want = wanted[begin : begin + table.size]
        begin += table.size
        factors = np.divide(want, table, out=np.ones(table.size), where=(table > 0) & (want >= 1))
        expected *= [
            counted(codes[:, [i]], [subset], np.ones(1)) @ np.clip(factors, 0.25, 4)
            for i in range(n)
        ]
    rake(codes, tables, terms, wanted, 1.0, weights)
    np.testing.assert_allclose(weights, expected, rtol=1e-9)


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
    st.sampled_from([1, 2, 4, 8]),
    st.integers(0, 2**32),
)
def test_candidates_are_picked_by_sums_over_their_cells(wanted, n, candidates, seed):
    rng = np.random.default_rng(seed)
    rows = np.ascontiguousarray(rows_of(rng, candidates * n).T)
    stems, lasts, size = stems_of(SIZES, wanted)
    # Powers of two: sums are exact in any order and at either width.
    cells = np.stack([np.zeros(size), 0.5 ** rng.integers(4, size=size)], axis=1).astype(np.float32)
    gaps, prices = np.zeros(size), cells[:, 1].astype(float)
    where = [list(itertools.chain(*cells_of(stems, lasts, row))) for row in rows]
    best = np.zeros(n, np.int64)
    for i in range(n):
        mine = where[i::n]
        best[i] = np.argmin([float(prices[places] @ gaps[places]) for places in mine])
        for places in mine:
            np.add.at(gaps, places, -1 / candidates)
        np.add.at(gaps, mine[best[i]], 1)
    chosen = np.empty(n, np.int64)
    pick(rows, stems, lasts, cells, chosen)
    np.testing.assert_array_equal(chosen, best)
    np.testing.assert_array_equal(cells[:, 0], gaps)
    np.testing.assert_array_equal(cells[:, 1], prices)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6, unique=True),
    st.integers(0, 25),
    st.integers(0, 2**32),
)
def test_rows_are_counted_stem_by_stem(wanted, n, seed):
    rows = np.ascontiguousarray(rows_of(np.random.default_rng(seed), n).T)
    stems, lasts, size = stems_of(SIZES, wanted)
    counts, parts, expected = np.zeros(size), np.zeros(size), np.zeros(size)
    count_rows(rows, stems, lasts, 0, len(stems), counts)
    for begin, end in itertools.pairwise([0, len(stems) // 2, len(stems)]):
        count_rows(rows, stems, lasts, begin, end, parts)
    for row in rows:
        np.add.at(expected, list(itertools.chain(*cells_of(stems, lasts, row))), 1)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(parts, expected)
