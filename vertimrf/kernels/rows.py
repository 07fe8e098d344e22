"""Rows as a model: weight by log-linear factors, count by weight, rake, and pick with balanced counts.

Axes: c = columns of codes; n = rows; k = tables; t = terms (a column and its stride in a table).
Tables lie one after the other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import callee, kernel

# Rows per block; their columns stay in the first-level cache for all tables.
BLOCK = 1024


@callee(forceinline=True)
def _find_cells(columns, table, terms, begin, end, cells):  # type: ignore[no-untyped-def]
    """Write the cells of a table in which rows lie, from its first one on, into ``cells`` [uint32]."""
    first, last = table[0], table[1]
    count = end - begin
    for t in range(first, last):
        column = columns[terms[t, 0], begin:end]
        stride = np.uint32(terms[t, 1])
        if t == first:
            for i in range(count):
                cells[i] = column[i] * stride
        else:
            for i in range(count):
                cells[i] += column[i] * stride


@kernel
def add_logs(columns, tables, terms, logs, begin, end, out):  # type: ignore[no-untyped-def]
    """Add the logs of its cells to the log weight of every row.

    Args:
        columns: codes [shape=(c, n), uint16].
        tables: first and last term, and first cell, of each table, which has fewer than 2^32 cells
            [shape=(k, 3), int64].
        terms: column and stride [shape=(t, 2), int64]; the stride of a table's only column is 1.
        logs: logs of all cells [float64].
        begin, end: range of rows.
        out: log weights, updated [shape=(n,), float64].
    """
    cells = np.empty(BLOCK, np.uint32)
    for start in range(begin, end, BLOCK):
        stop = min(start + BLOCK, end)
        mine = out[start:stop]
        for k in range(tables.shape[0]):
            part = logs[tables[k, 2] :]
            if tables[k, 1] - tables[k, 0] == 1:
                column = columns[terms[tables[k, 0], 0], start:stop]
                for i in range(mine.size):
                    mine[i] += part[np.uint64(column[i])]
                continue
            _find_cells(columns, tables[k], terms, start, stop, cells)
            for i in range(mine.size):
                mine[i] += part[np.uint64(cells[i])]


@kernel
def weighed_counts(columns, tables, terms, weights, begin, end, out):  # type: ignore[no-untyped-def]
    """Add the weight of every row to its cells of some tables.

    Args:
        columns, tables, terms: as for :func:`add_logs`.
        weights: weights of the rows [shape=(n,), float64].
        begin, end: range of tables.
        out: all cells, updated [float64].
    """
    cells = np.empty(BLOCK, np.uint32)
    n = weights.size
    for k in range(begin, end):
        part = out[tables[k, 2] :]
        if tables[k, 1] - tables[k, 0] == 1:
            column = columns[terms[tables[k, 0], 0]]
            for i in range(n):
                part[np.uint64(column[i])] += weights[i]
            continue
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            _find_cells(columns, tables[k], terms, start, stop, cells)
            for i in range(stop - start):
                part[np.uint64(cells[i])] += weights[start + i]


@kernel
def rake(columns, tables, terms, wanted, least, weights):  # type: ignore[no-untyped-def]
    """Scale the weights of rows so that their sums in one table after the other are the wanted ones.

    Source: Deming and Stephan (1940).

    Args:
        columns, tables, terms: as for :func:`add_logs`; the first table begins at cell 0.
        wanted: sums of all cells [float64].
        least: cells of smaller wanted sums are left alone; others change by a factor of four at most.
        weights: weights of the rows, updated [shape=(n,), float64].
    """
    n = weights.size
    cells, all_sums = np.empty(n, np.uint32), np.empty(wanted.size)
    for k in range(tables.shape[0]):
        end = tables[k + 1, 2] if k + 1 < tables.shape[0] else wanted.size
        want, sums = wanted[tables[k, 2] : end], all_sums[tables[k, 2] : end]
        for c in range(want.size):
            sums[c] = 0.0
        _find_cells(columns, tables[k], terms, np.int64(0), n, cells)
        for i in range(n):
            sums[np.uint64(cells[i])] += weights[i]
        for c in range(want.size):
            kept = want[c] < least or sums[c] <= 0.0
            sums[c] = 1.0 if kept else min(max(want[c] / sums[c], 0.25), 4.0)
        for i in range(n):
            weights[i] *= sums[np.uint64(cells[i])]


@callee(forceinline=True)
def _stem_cell(row, stems, s):  # type: ignore[no-untyped-def]
    """First of the neighbouring cells of all tables of a stem at a row's values.

    The last attribute of each table is left open.
    """
    return stems[s, 4] + (row[stems[s, 0]] * stems[s, 1] + row[stems[s, 2]] * stems[s, 3])


@kernel
def count_rows(rows, stems, lasts, begin, end, out):  # type: ignore[no-untyped-def]
    """Count rows in the cells of the tables of some stems.

    Args:
        rows, stems, lasts: as for :func:`pick`.
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
def pick(rows, stems, lasts, cells, chosen):  # type: ignore[no-untyped-def]
    """Take one of several candidates for each row so that counts stay close to those of all candidates.

    The gap of a cell is the count of rows taken minus the mean count of their candidates. Rows are
    decided one after the other: the candidate is taken whose cells have the smallest sum of price *
    gap, the first of several.

    Tables of two and three attributes that differ only in their last attribute form a stem. Their
    cells lie side by side, so that the look-ups of a row are close together.

    Args:
        rows: codes row by row; candidate j of row i is row j * n + i [shape=(k * n, c), uint16].
        stems: per stem, column and stride of its tables' first attribute, the same of the second (a
            stride of 0 if there is none before the last), first cell, and first and last place in
            ``lasts`` [shape=(s, 7), uint64].
        lasts: column of each table's last attribute, and its first cell within its stem [shape=(k,
            2), uint64].
        cells: gaps, initially zero, and prices, above zero [shape=(cells, 2), float32]; gaps are
            updated.
        chosen: the candidate taken for each row, written [shape=(n,), int64].
    """
    n = chosen.size
    candidates = rows.shape[0] // n
    share = np.float32(1.0) / np.float32(candidates)
    places = np.empty((candidates, lasts.shape[0]), np.uint32)
    for i in range(n):
        least = np.float32(np.inf)
        for j in range(candidates):
            row = rows[j * n + i]
            pull = np.float32(0.0)
            for s in range(stems.shape[0]):
                cell = _stem_cell(row, stems, s)
                for t in range(stems[s, 5], stems[s, 6]):
                    place = cell + (lasts[t, 1] + row[lasts[t, 0]])
                    places[j, t] = place
                    pull += cells[place, 1] * cells[place, 0]
            if pull < least:
                least = pull
                chosen[i] = j
        for j in range(candidates):
            for t in range(lasts.shape[0]):
                cells[places[j, t], 0] -= share
        for t in range(lasts.shape[0]):
            cells[places[chosen[i], t], 0] += np.float32(1.0)
