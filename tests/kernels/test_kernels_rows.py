"""Kernels of rows against loops over dictionaries: weights, counts, and halving that only ever comes nearer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.kernels.rows import BLOCK, add_logs, even_out, weighed_counts

SIZES = (3, 2, 4, 1)
SUBSETS = [own for way in (1, 2, 3) for own in itertools.combinations(range(len(SIZES)), way)]


def lookups(wanted: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray, int]:
    """Tables and terms of marginals in C order, and how many cells they have together."""
    tables, terms, offset = [], [], 0
    for own in wanted:
        tables.append((len(terms), len(terms) + len(own), offset))
        terms += [(a, math.prod(SIZES[b] for b in own[i + 1 :])) for i, a in enumerate(own)]
        offset += math.prod(SIZES[a] for a in own)
    return np.array(tables, np.int64).reshape(-1, 3), np.array(terms, np.int64).reshape(-1, 2), offset


def rows_of(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.array([rng.integers(0, size, n) for size in SIZES], np.uint16)


def counted(codes: np.ndarray, wanted: Sequence[tuple[int, ...]], weights: np.ndarray) -> np.ndarray:
    """Cells of all tables, one row after the other."""
    tables = [np.zeros([SIZES[a] for a in own]) for own in wanted]
    for i in range(codes.shape[1]):
        for own, table in zip(wanted, tables, strict=True):
            table[tuple(codes[a, i] for a in own)] += weights[i]
    return np.concatenate([np.zeros(0), *(table.ravel() for table in tables)])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6),
    st.integers(0, 50),
    st.integers(0, 2**32),
)
def test_weights_and_counts_equal_loops(wanted: list[tuple[int, ...]], n: int, seed: int) -> None:
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
def test_slices_add_up_to_the_whole(n: int) -> None:
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


def gaps_of(codes: np.ndarray, wanted: Sequence[tuple[int, ...]], second: np.ndarray) -> np.ndarray:
    """Counts of the rows taken less half of all."""
    return counted(codes, wanted, np.stack([0.5 - second, second - 0.5], axis=1).ravel())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SUBSETS), max_size=6, unique=True),
    st.integers(0, 40),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_halving_only_comes_nearer_and_keeps_its_books(wanted: list[tuple[int, ...]], pairs: int, passes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rows_of(rng, 2 * pairs)
    rows = np.ascontiguousarray(codes.T)
    tables, terms, cells = lookups(wanted)
    prices = 0.1 + rng.random(cells)
    second = rng.integers(2, size=pairs, dtype=np.uint8)
    gaps = gaps_of(codes, wanted, second)
    before, other = float(prices @ gaps**2), 1 - second
    other_gaps, mine = -gaps, second.copy()
    changed = even_out(rows, tables, terms, mine, gaps, prices, passes)
    assert set(mine) <= {0, 1}
    np.testing.assert_allclose(gaps, gaps_of(codes, wanted, mine), atol=1e-9)
    after = float(prices @ gaps**2)
    assert after <= before + 1e-9
    # With one pass nothing is changed back.
    assert changed == (mine != second).sum() or passes > 1
    assert (after < before) == (changed > 0) or math.isclose(after, before, abs_tol=1e-9)
    # The other coins lead to the other rows: so each row of a pair is as likely as the other.
    assert even_out(rows, tables, terms, other, other_gaps, prices, passes) == changed
    np.testing.assert_array_equal(other, 1 - mine)
    np.testing.assert_array_equal(other_gaps, -gaps)


def test_halving_leaves_much_smaller_gaps_than_coins() -> None:
    rng = np.random.default_rng(0)
    codes = rows_of(rng, 4000)
    tables, terms, cells = lookups(SUBSETS)
    second = rng.integers(2, size=2000, dtype=np.uint8)
    gaps = gaps_of(codes, SUBSETS, second)
    before = np.square(gaps).sum()
    assert even_out(np.ascontiguousarray(codes.T), tables, terms, second, gaps, np.ones(cells), 2) > 0
    assert np.square(gaps).sum() < before / 20
