"""Rows as a model: weight by log-linear factors, count by weight, and halve with balanced counts.

Axes: c = columns of codes; n = rows; k = tables; t = terms (a column and its stride in a table).
Tables lie one after the other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["add_logs", "count_rows", "thin", "weighed_counts"]

# Rows per block; their columns stay in the first-level cache for all tables.
BLOCK = 1024


@kernel(forceinline=True)
def _find_cells(columns, table, terms, begin, end, cells):  # type: ignore[no-untyped-def]
    """Write the cells of a table in which rows lie into ``cells`` [shape=(BLOCK,), int64]."""
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
    """Add the logs of its cells to the log weight of every row.

    Args:
        columns: codes [shape=(c, n), uint16].
        tables: first and last term, and first cell, of each table [shape=(k, 3), int64].
        terms: column and stride [shape=(t, 2), int64]; the stride of a table's only column is 1.
        logs: logs of all cells [float64].
        begin, end: range of rows.
        out: log weights, updated [shape=(n,), float64].
    """
    cells = np.empty(BLOCK, np.int64)
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        for k in range(tables.shape[0]):
            if tables[k, 1] - tables[k, 0] == 1:
                column = columns[terms[tables[k, 0], 0]]
                part = logs[tables[k, 2] :]
                for i in range(start, stop):
                    out[i] += part[np.uint64(column[i])]
                continue
            _find_cells(columns, tables[k], terms, start, stop, cells)
            for i in range(stop - start):
                out[start + i] += logs[cells[i]]


@kernel
def weighed_counts(columns, tables, terms, weights, begin, end, out):  # type: ignore[no-untyped-def]
    """Add the weight of every row to its cells of some tables.

    Args:
        columns, tables, terms: as for :func:`add_logs`.
        weights: weights of the rows [shape=(n,), float64].
        begin, end: range of tables.
        out: all cells, updated [float64].
    """
    cells = np.empty(BLOCK, np.int64)
    n = weights.size
    for k in range(begin, end):
        if tables[k, 1] - tables[k, 0] == 1:
            column = columns[terms[tables[k, 0], 0]]
            part = out[tables[k, 2] :]
            for i in range(n):
                part[np.uint64(column[i])] += weights[i]
            continue
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            _find_cells(columns, tables[k], terms, start, stop, cells)
            for i in range(stop - start):
                out[cells[i]] += weights[start + i]


@kernel(forceinline=True)
def _stem_cell(row, stems, s):  # type: ignore[no-untyped-def]
    """First of the neighbouring cells of all tables of a stem at a row's values.

    The last attribute of each table is left open.
    """
    return stems[s, 4] + (row[stems[s, 0]] * stems[s, 1] + row[stems[s, 2]] * stems[s, 3])


@kernel
def count_rows(rows, stems, lasts, begin, end, out):  # type: ignore[no-untyped-def]
    """Count rows in the cells of the tables of some stems.

    Args:
        rows, stems, lasts: as for :func:`thin`.
        begin, end: range of stems.
        out: all cells, updated [float64].
    """
    for s in range(begin, end):
        for i in range(rows.shape[0]):
            row = rows[i]
            cell = _stem_cell(row, stems, s)
            for t in range(stems[s, 5], stems[s, 6]):
                out[cell + (lasts[t, 1] + row[lasts[t, 0]])] += 1.0


@kernel
def _pull(taken, other, stems, lasts, cells, step):  # type: ignore[no-untyped-def]
    """Positive if the sum of price * gap^2 is smaller with the other row of a pair.

    With a step of 0, gaps include half of either row; with 0.5, the row that is taken.
    """
    out = np.float32(0.0)
    for s in range(stems.shape[0]):
        mine, theirs = _stem_cell(taken, stems, s), _stem_cell(other, stems, s)
        for t in range(stems[s, 5], stems[s, 6]):
            column, start = lasts[t, 0], lasts[t, 1]
            a, b = mine + (start + taken[column]), theirs + (start + other[column])
            if a != b:
                out += cells[a, 1] * (cells[a, 0] - step) - cells[b, 1] * (cells[b, 0] + step)
    return out


@kernel
def _move(taken, other, stems, lasts, cells, by):  # type: ignore[no-untyped-def]
    """Lower the gaps of the cells of ``taken`` and raise those of ``other`` by ``by``."""
    for s in range(stems.shape[0]):
        mine, theirs = _stem_cell(taken, stems, s), _stem_cell(other, stems, s)
        for t in range(stems[s, 5], stems[s, 6]):
            column, start = lasts[t, 0], lasts[t, 1]
            cells[mine + (start + taken[column]), 0] -= by
            cells[theirs + (start + other[column]), 0] += by


@kernel
def thin(rows, stems, lasts, second, cells, passes):  # type: ignore[no-untyped-def]
    """Take one row of each pair so that the taken rows have nearly half of all counts.

    The gap of a cell is the count of rows taken minus half of all rows, over the pairs decided so
    far. Pairs are decided one after the other: the row is taken that lowers the sum over all cells
    of price * gap^2. In a tie the initial coin in ``second`` stands. Then the pairs are visited
    again, and the other row is taken if that lowers the sum. Inverting all coins inverts all
    decisions, because it changes the sign of every gap and nothing else. So with fair coins, either
    row of a pair is equally likely to be taken in the end.

    Tables of two and three attributes that differ only in their last attribute form a stem. Their
    cells lie side by side, so that the look-ups of a row are close together.

    Args:
        rows: codes row by row, each pair in neighbouring rows [shape=(2 * m, c), uint16].
        stems: per stem, column and stride of its tables' first attribute, the same of the second (a
            stride of 0 if there is none before the last), first cell, and first and last place in
            ``lasts`` [shape=(s, 7), uint64].
        lasts: column of each table's last attribute, and its first cell within its stem [shape=(k,
            2), uint64].
        second: coins, then whether the second row of a pair is taken; updated [shape=(m,), uint8].
        cells: gaps, initially zero, and prices, above zero [shape=(cells, 2), float32]; gaps are
            updated.
        passes: number of further visits to the pairs.

    Returns:
        Number of coins that were inverted.
    """
    turned = 0
    half, one = np.float32(0.5), np.float32(1.0)
    for again in range(passes + 1):
        step = np.float32(0.0) if again == 0 else half
        for pair in range(second.size):
            taken, other = rows[2 * pair + second[pair]], rows[2 * pair + 1 - second[pair]]
            turn = _pull(taken, other, stems, lasts, cells, step) > np.float32(0.0)
            if turn:
                second[pair] = 1 - second[pair]
                turned += 1
            if again == 0:
                _move(taken, other, stems, lasts, cells, half if turn else -half)
            elif turn:
                _move(taken, other, stems, lasts, cells, one)
    return turned
