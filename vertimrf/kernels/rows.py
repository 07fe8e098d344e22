"""Rows as a model: weight by log-linear factors, count by weight, rake, and pick with balanced counts.

Axes: c = columns of codes; n = rows; k = tables; t = terms (a column and its stride in a table).
Tables lie one after the other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import callee, kernel

# Rows per block; their columns stay in the first-level cache for all tables.
BLOCK = 1024
# Share of the rows in a cell that close its gap, by trial on adult.
SHARED = 0.5
# By how much gaps are larger than they are. With 0, of 300 generated rows a value that one row has is drawn 0.3 times too often, with 0.2
# another is drawn 0.14 times too seldom. The counts of values spread alike.
AHEAD = 0.15


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
def rake(columns, tables, terms, k, factors, weights, begin, end, cells, sums):  # type: ignore[no-untyped-def]
    """One step of raking on some rows: scale the weights by the factors of the table before, and sum
    them in the cells of the next one.

    Source: Deming and Stephan (1940).

    Args:
        columns, tables, terms: as for :func:`add_logs`.
        k: the next table; none, if there are no more.
        factors: factors of the cells of table k - 1 [float64]; not read for table 0.
        weights: weights of the rows, updated [shape=(n,), float64].
        begin, end: range of rows.
        cells: where each row lies in table k - 1, overwritten by table k [shape=(n,), uint32].
        sums: sums of table k's cells over these rows, updated [float64].
    """
    mine, where = weights[begin:end], cells[begin:end]
    if k > 0:
        for i in range(mine.size):
            mine[i] *= factors[np.uint64(where[i])]
    if k < tables.shape[0]:
        _find_cells(columns, tables[k], terms, begin, end, where)
        for i in range(mine.size):
            sums[np.uint64(where[i])] += mine[i]


@callee(forceinline=True)
def _stem_cell(row, stems, s):  # type: ignore[no-untyped-def]
    """First of the neighbouring cells of all tables of a stem at a row's values.

    The last attribute of each table is left open.
    """
    return stems[s, 4] + (row[stems[s, 0]] * stems[s, 1] + row[stems[s, 2]] * stems[s, 3])


@kernel
def count_rows(columns, stems, lasts, begin, end, out):  # type: ignore[no-untyped-def]
    """Count rows in the cells of the tables of some stems.

    Args:
        columns: codes [shape=(c, n), uint16].
        stems, lasts: as for :func:`pick`.
        begin, end: range of stems.
        out: all cells, updated [float64].
    """
    n = columns.shape[1]
    cells = np.empty(n, np.uint64)
    for s in range(begin, end):
        one, two = columns[stems[s, 0]], columns[stems[s, 2]]
        for i in range(n):
            cells[i] = stems[s, 4] + (one[i] * stems[s, 1] + two[i] * stems[s, 3])
        for t in range(stems[s, 5], stems[s, 6]):
            column, part = columns[lasts[t, 0]], out[lasts[t, 1] :]
            for i in range(n):
                part[cells[i] + column[i]] += 1.0


@kernel
def start_gaps(taken, expected, prices, rows, first, last, blocks, begin, end, cells):  # type: ignore[no-untyped-def]
    """Gaps with which every block starts, of some that are decided at the same time.

    Where these rows have many in a cell, each block starts with its share of the gap, because all of
    them close it. Where they have few, it starts with all of it. Every gap is AHEAD larger: a row
    that closes a gap of less would open one on the other side, and rare values would be drawn too often.

    Args:
        taken: count of the rows that are decided [shape=(cells,), float64].
        expected: expected count of all rows [shape=(cells,), float64].
        prices: price of a gap [shape=(cells,), float32].
        rows: number of all rows.
        first, last: range of the rows that the blocks decide.
        blocks: number of blocks.
        begin, end: range of cells.
        cells: as for :func:`pick`, written.
    """
    done, more = np.float64(first) / rows, np.float64(last - first) / rows
    for c in range(begin, end):
        parts = min(max(SHARED * more * expected[c], 1.0), np.float64(blocks))
        cells[c, 0] = prices[c] * ((taken[c] - done * expected[c]) / parts + AHEAD)
        cells[c, 1] = prices[c] * expected[c] / rows


@callee(forceinline=True)
def _add_pulls(rows, stems, lasts, cells, first, last, age, one, two, i, j, pulls):  # type: ignore[no-untyped-def]
    """Add the prices times gaps of two rows' cells in the tables of some stems to their sums, ``i``
    and ``j`` of ``pulls``.
    """
    row, other = rows[one], rows[two]
    gap, slope = np.float32(0.0), np.float32(0.0)
    gaps, slopes = np.float32(0.0), np.float32(0.0)
    for s in range(first, last):
        cell, cells_of = _stem_cell(row, stems, s), _stem_cell(other, stems, s)
        for t in range(stems[s, 5], stems[s, 6]):
            place = cell + (lasts[t, 1] + row[lasts[t, 0]])
            gap += cells[place, 0]
            slope += cells[place, 1]
            place = cells_of + (lasts[t, 1] + other[lasts[t, 0]])
            gaps += cells[place, 0]
            slopes += cells[place, 1]
    pulls[j] += gaps - age * slopes
    if i != j:
        pulls[i] += gap - age * slope


@kernel
def pick(rows, stems, lasts, ends, prices, cells, begin, end, chosen):  # type: ignore[no-untyped-def]
    """Take one of several candidates for each row so that counts stay close to the expected ones.

    The gap of a cell is the count of rows taken minus what is expected of as many rows. Rows are
    decided one after the other: the candidate is taken whose cells have the smallest sum of price *
    gap, the first of several. It is found in stages. After each but the last, of an odd or even
    number of candidates the half with the smallest sums over the stems so far stays.

    Tables of two and three attributes that differ only in their last attribute form a stem. Their
    cells lie side by side, so that the look-ups of a row are close together.

    Args:
        rows: codes row by row; candidate j of row i is row j * n + i [shape=(k * n, c), uint16].
        stems: per stem, column and stride of its tables' first attribute, the same of the second (a
            stride of 0 if there is none before the last), first cell, and first and last place in
            ``lasts`` [shape=(s, 7), uint64].
        lasts: column of each table's last attribute, and its first cell within its stem [shape=(k,
            2), uint64].
        ends: the last stem of each stage [int64].
        prices: what a row adds to its cells, above zero [shape=(cells,), float32].
        cells: price * gap before the first row, updated for the rows taken alone, and by how much
            it falls with every row [shape=(cells, 2), float32].
        begin, end: range of rows.
        chosen: the candidate taken for each row, written [shape=(n,), int64].
    """
    n = chosen.size
    candidates = rows.shape[0] // n
    order, pulls = np.empty(candidates, np.int64), np.empty(candidates, np.float32)
    for i in range(begin, end):
        age = np.float32(i - begin)
        for j in range(candidates):
            order[j] = j
            pulls[j] = np.float32(0.0)
        left, first = candidates, 0
        for stage in range(ends.size):
            for j in range(0, left, 2):
                a, b = order[j], order[min(j + 1, left - 1)]
                _add_pulls(
                    rows,
                    stems,
                    lasts,
                    cells,
                    first,
                    ends[stage],
                    age,
                    a * n + i,
                    b * n + i,
                    a,
                    b,
                    pulls,
                )
            for j in range(1, left):
                a = order[j]
                while j > 0 and pulls[order[j - 1]] > pulls[a]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = a
            left, first = min(left, max(left // 2, 2)), ends[stage]
        chosen[i] = order[0]
        row = rows[order[0] * n + i]
        for s in range(stems.shape[0]):
            cell = _stem_cell(row, stems, s)
            for t in range(stems[s, 5], stems[s, 6]):
                place = cell + (lasts[t, 1] + row[lasts[t, 0]])
                cells[place, 0] += prices[place]
