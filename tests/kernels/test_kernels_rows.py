"""Kernels of rows against loops over dictionaries: weights, counts, and halving that only ever comes nearer."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.kernels.rows import BLOCK, add_logs, count_rows, thin, weighed_counts
from vertimrf.model.sample import stems_of

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


def evened(
    rows,
    stems,
    lasts,
    second,
    prices,
    passes,
):
    """Choices, gaps and how many turns, pair by pair, from what all cells would come to either way."""
    choice, gaps, turned = second.astype(int), np.zeros(prices.size), 0
    where = [list(itertools.chain(*cells_of(stems, lasts, row))) for row in rows]
    for again in range(passes + 1):
        for pair in range(len(choice)):
            sums = []
            for taken in (0, 1):
                new = gaps.copy()
                if again:
                    np.add.at(new, where[2 * pair + choice[pair]], -0.5)
                    np.add.at(new, where[2 * pair + 1 - choice[pair]], 0.5)
                np.add.at(new, where[2 * pair + taken], 0.5)
                np.add.at(new, where[2 * pair + 1 - taken], -0.5)
                sums.append((float(prices @ new**2), new))
            turn = sums[1 - choice[pair]][0] < sums[choice[pair]][0]
            choice[pair] ^= turn
            turned += turn
            gaps = sums[choice[pair]][1]
    return choice, gaps, turned


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6, unique=True),
    st.integers(0, 25),
    st.integers(0, 3),
    st.integers(0, 2**32),
)
def test_halving_decides_as_sums_over_all_cells_do(wanted, pairs, passes, seed):
    rng = np.random.default_rng(seed)
    codes = rows_of(rng, 2 * pairs)
    rows = np.ascontiguousarray(codes.T)
    stems, lasts, size = stems_of(SIZES, wanted)
    # Powers of two: sums are exact in any order and at either width.
    cells = np.stack([np.zeros(size), 0.5 ** rng.integers(4, size=size)], axis=1).astype(np.float32)
    coins = rng.integers(2, size=pairs, dtype=np.uint8)
    mine, kept = coins.copy(), cells.copy()
    turned = thin(rows, stems, lasts, mine, kept, passes)
    choice, gaps, turns = evened(rows, stems, lasts, coins, cells[:, 1].astype(float), passes)
    np.testing.assert_array_equal(mine, choice)
    np.testing.assert_array_equal(kept[:, 0], gaps)
    np.testing.assert_array_equal(kept[:, 1], cells[:, 1])
    assert turned == turns
    # Gaps are counts of what is taken less half of what there is.
    order = [
        subset
        for first in dict.fromkeys(subset[:-1] for subset in wanted)
        for subset in wanted
        if subset[:-1] == first
    ]
    counts = counted(codes, order, np.stack([0.5 - mine, mine - 0.5], axis=1).ravel())
    assert np.abs(counts).sum() == np.abs(gaps).sum()
    # The other coins lead to the other rows: so each row of a pair is as likely as the other.
    other, turned_over = 1 - coins, cells.copy()
    assert thin(rows, stems, lasts, other, turned_over, passes) == turned
    np.testing.assert_array_equal(other, 1 - mine)
    np.testing.assert_array_equal(turned_over[:, 0], -kept[:, 0])


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
