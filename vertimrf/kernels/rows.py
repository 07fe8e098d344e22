"""Rows as a model: weighed by log-linear factors, counted by their weights, and halved so that counts come out even.

Axes: c = columns of codes; n = rows; k = tables; t = terms, a column and its stride in a table each. Tables lie one after the
other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["add_logs", "even_out", "weighed_counts"]

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
def even_out(rows, tables, terms, second, gaps, prices, passes):  # type: ignore[no-untyped-def]
    """Of each pair of rows take the other one while that brings the counts of what is taken closer to half of what there is.

    One pair after the other is changed where the sum over all cells of price * (taken - half)^2 falls by that. Taking all the
    others instead changes the sign of every gap and nothing else: where ``second`` comes with random bits, either row of a pair
    is as likely to be taken in the end.

    Args:
        rows: codes, row by row, the pairs one after the other [shape=(2 * m, c), uint16]; ``tables``, ``terms``: as for
            :func:`add_logs`.
        second: whether the second row of a pair is taken, changed in place [shape=(m,), uint8].
        gaps: counts of the rows taken less half of all rows', kept up to date [float64].
        prices: of the cells, above zero [as ``gaps``].
        passes: how often to go through the pairs.

    Returns:
        How many pairs were changed.
    """
    count = tables.shape[0]
    mine, theirs = np.empty(count, np.int64), np.empty(count, np.int64)
    changed = 0
    for _ in range(passes):
        for pair in range(second.size):
            old, new = 2 * pair + second[pair], 2 * pair + 1 - second[pair]
            gain = 0.0
            for k in range(count):
                a = b = tables[k, 2]
                for t in range(tables[k, 0], tables[k, 1]):
                    column, stride = terms[t, 0], terms[t, 1]
                    a += rows[old, column] * stride
                    b += rows[new, column] * stride
                mine[k], theirs[k] = a, b
                if a != b:
                    gain += prices[a] * (2.0 * gaps[a] - 1.0) - prices[b] * (2.0 * gaps[b] + 1.0)
            if gain > 0.0:
                for k in range(count):
                    if mine[k] != theirs[k]:
                        gaps[mine[k]] -= 1.0
                        gaps[theirs[k]] += 1.0
                second[pair] = 1 - second[pair]
                changed += 1
    return changed
