"""Rows as a model: weighed by log-linear factors, counted by their weights, and picked so that counts come out even.

Axes: c = columns of codes; n = rows; k = tables; t = terms, a column and its stride in a table each. Tables lie one after the
other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["add_logs", "even_out", "weighed_counts"]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)
# Rows at a time: their columns stay in the first cache while one table after the other is looked up.
BLOCK = 1024


@kernel(forceinline=True)
def _find_cells(columns, table, terms, begin, end, cells):  # type: ignore[no-untyped-def]
    """Cells of a table that rows lie in, into ``cells`` [shape=(BLOCK,), int64]."""
    first, last, offset = table[0], table[1], table[2]
    count = end - begin
    for t in range(first, last):
        column = columns[terms[t, 0]]
        stride = terms[t, 1]
        if t == first:
            for i in range(count):
                cells[i] = offset + column[begin + i] * stride
        else:
            for i in range(count):
                cells[i] += column[begin + i] * stride


@kernel
def add_logs(columns, tables, terms, logs, begin, end, out):  # type: ignore[no-untyped-def]
    """Add to every row's log weight the logs of its cells.

    Args:
        columns: codes [shape=(c, n), uint16].
        tables: first and last term, and first cell, of each [shape=(k, 3), int64].
        terms: column and stride [shape=(t, 2), int64].
        logs: of all cells [float64].
        begin, end: which rows.
        out: log weights, added to [shape=(n,), float64].
    """
    cells = np.empty(BLOCK, np.int64)
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        for k in range(tables.shape[0]):
            _find_cells(columns, tables[k], terms, start, stop, cells)
            for i in range(stop - start):
                out[start + i] += logs[cells[i]]


@kernel
def weighed_counts(columns, tables, terms, weights, begin, end, out):  # type: ignore[no-untyped-def]
    """Add every row's weight to its cells of some tables.

    Args:
        columns, tables, terms: as for :func:`add_logs`.
        weights: of the rows [shape=(n,), float64].
        begin, end: which tables.
        out: all cells, added to [float64].
    """
    cells = np.empty(BLOCK, np.int64)
    n = weights.size
    for k in range(begin, end):
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            _find_cells(columns, tables[k], terms, start, stop, cells)
            for i in range(stop - start):
                out[cells[i]] += weights[start + i]


@kernel
def _mixed(x):  # type: ignore[no-untyped-def]
    """SplitMix64's output function."""
    x = (x ^ (x >> S30)) * MIX1
    x = (x ^ (x >> S27)) * MIX2
    return x ^ (x >> S31)


@kernel
def even_out(rows, tables, terms, heap, picked, gaps, prices, tries, seed):  # type: ignore[no-untyped-def]
    """Exchange picked rows for others of a pool while that brings the picked rows' counts closer to what is wanted.

    One row after the other is compared with a row drawn by its weight, and gives way to it where the sum over all cells of
    price * (picked - wanted)^2 falls by that.

    Args:
        rows: the pool's codes, row by row [shape=(n, c), uint16]; ``tables``, ``terms``: as for :func:`add_logs`.
        heap: cumulative weights of the pool's rows, the last of them 1 [shape=(n,), float64].
        picked: rows of the pool, changed in place [shape=(m,), int64].
        gaps: counts of the picked rows less what is wanted, kept up to date [float64].
        prices: of the cells, above zero [as ``gaps``].
        tries: how many exchanges to try.
        seed: of the pseudo-random stream [uint64].

    Returns:
        How many rows were exchanged.
    """
    tables_count = tables.shape[0]
    mine, theirs = np.empty(tables_count, np.int64), np.empty(tables_count, np.int64)
    state = seed
    changed = 0
    place = 0
    for _ in range(tries):
        state += GAMMA
        position = np.float64(_mixed(state) >> S11) / 9007199254740992.0
        low, high = 0, heap.size - 1
        while low < high:
            middle = (low + high) // 2
            if heap[middle] > position:
                high = middle
            else:
                low = middle + 1
        old, new = picked[place], low
        gain = 0.0
        for k in range(tables_count):
            a = b = tables[k, 2]
            for t in range(tables[k, 0], tables[k, 1]):
                column, stride = terms[t, 0], terms[t, 1]
                a += rows[old, column] * stride
                b += rows[new, column] * stride
            mine[k], theirs[k] = a, b
            if a != b:
                gain += prices[a] * (2.0 * gaps[a] - 1.0) - prices[b] * (2.0 * gaps[b] + 1.0)
        if gain > 0.0:
            for k in range(tables_count):
                if mine[k] != theirs[k]:
                    gaps[mine[k]] -= 1.0
                    gaps[theirs[k]] += 1.0
            picked[place] = new
            changed += 1
        place += 1
        if place == picked.size:
            place = 0
    return changed
