"""Rows as a model: weighed by log-linear factors, counted by their weights, and halved so that counts come out even.

Axes: c = columns of codes; n = rows; k = tables; t = terms, a column and its stride in a table each. Tables lie one after the
other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["add_logs", "count_rows", "even_out", "weighed_counts"]

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


@kernel(forceinline=True)
def _stem_cell(row, stems, s):  # type: ignore[no-untyped-def]
    """First of the cells that lie side by side for all tables of a stem, where their attributes but the last are a row's."""
    return stems[s, 4] + (row[stems[s, 0]] * stems[s, 1] + row[stems[s, 2]] * stems[s, 3])


@kernel
def count_rows(rows, stems, lasts, begin, end, out):  # type: ignore[no-untyped-def]
    """Count rows in the cells of some stems' tables.

    Args:
        rows, stems, lasts: as for :func:`even_out`.
        begin, end: which stems.
        out: all cells, added to [float64].
    """
    for s in range(begin, end):
        for i in range(rows.shape[0]):
            row = rows[i]
            cell = _stem_cell(row, stems, s)
            for t in range(stems[s, 5], stems[s, 6]):
                out[cell + (lasts[t, 1] + row[lasts[t, 0]])] += 1.0


@kernel
def _pull(taken, other, stems, lasts, cells, step):  # type: ignore[no-untyped-def]
    """Above zero where the sum of price * gap^2 is less with the other row of a pair: gaps are with half of either (a step of 0),
    or with the row that is taken (0.5)."""
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
    """Move the gaps of two rows' cells: of those of ``taken`` down, of those of ``other`` up."""
    for s in range(stems.shape[0]):
        mine, theirs = _stem_cell(taken, stems, s), _stem_cell(other, stems, s)
        for t in range(stems[s, 5], stems[s, 6]):
            column, start = lasts[t, 0], lasts[t, 1]
            cells[mine + (start + taken[column]), 0] -= by
            cells[theirs + (start + other[column]), 0] += by


@kernel
def even_out(rows, stems, lasts, second, cells, passes):  # type: ignore[no-untyped-def]
    """Of each two rows take one, so that counts of what is taken come close to half of what there is.

    Pairs are decided one after the other: the row is taken that brings the sum over all cells of price * gap^2 down, gap being
    the count of what is taken less half of what pairs decided so far have; where both do as well, the coin stands that
    ``second`` came with. Then pairs are gone through again, and the other row is taken where that brings the sum down. Turning
    all coins turns all decisions, as every gap changes its sign and nothing else: by fair coins, either row of a pair is as
    likely to be taken in the end.

    Tables of two and three attributes that differ in their last one alone are a stem, and their cells lie side by side, for a
    row's look-ups to fall close together.

    Args:
        rows: codes, row by row, the pairs one after the other [shape=(2 * m, c), uint16].
        stems: of each the column and the stride of its tables' first attribute, and of the second (a stride of 0 where they have
            fewer before the last), its first cell, and its first and last place in ``lasts`` [shape=(s, 7), uint64].
        lasts: each table's column of the last attribute, and its first cell within its stem's [shape=(k, 2), uint64].
        second: coins, and then whether the second row of a pair is taken, changed in place [shape=(m,), uint8].
        cells: gaps, zero at first, and prices, above zero [shape=(cells, 2), float32]; gaps are changed in place.
        passes: how often to go through the pairs again.

    Returns:
        How many coins were turned.
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
