"""Rows as a model: weight by log-linear factors, count by weight, rake, and pick with balanced counts.

Axes: c = columns of codes; n = rows; k = tables; t = terms (a column and its stride in a table).
Tables lie one after the other in one flat array of cells.
"""

from __future__ import annotations

import numpy as np

from .jit import callee, kernel

# Rows per block; their columns stay in the first-level cache for all tables. Rows of a cache line.
BLOCK, NEAR = 1024, 32
# Share of the rows in a cell that close its gap, by trial on adult.
SHARED = 0.5
# By how much gaps are larger than they are. With 0, of 300 generated rows a value that one row has is drawn 0.3 times too often, with 0.2
# another is drawn 0.14 times too seldom. The counts of values spread alike.
AHEAD = 0.15
# A cell of 32 bits has a gap and, in the last bits, a fall. A gap that starts below HIGHEST has room for
# the rows of a round; none rises beyond FULL.
FALL_BITS, FALLS = np.int64(16), np.int64((1 << 16) - 1)
HIGHEST, FULL = 16_000.0, 32_000 << 16
# The golden ratio spreads fractions evenly.
SPREAD, WIDTH = np.int64(0x9E3779B9), 4294967296.0


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
def _stem_cell(spots, stems, s, i):  # type: ignore[no-untyped-def]
    """What leads from the spot of a row's value to its cell in each table of a stem."""
    one, two = spots[i, stems[s, 0]], spots[i, stems[s, 2]]
    return stems[s, 4] + (one * stems[s, 1] + two * stems[s, 3])


@callee(forceinline=True)
def _read_rows(columns, firsts, begin, end, n, near):  # type: ignore[no-untyped-def]
    """Write the codes of all candidates of some rows, in the order of ``firsts``."""
    for k in range(firsts.shape[0]):
        for j in range(near.shape[1]):
            column = columns[firsts[k, 0], j * n + begin : j * n + end]
            for i in range(column.size):
                near[i, j, k] = column[i]


@kernel
def start_gaps(taken, expected, prices, rows, first, last, blocks, unit, begin, end, cells):  # type: ignore[no-untyped-def]
    """Count what blocks took, and write the gaps with which every block of the next round starts.

    Where these rows have many in a cell, each block starts with its share of the gap, because all of
    them close it. Where they have few, it starts with all of it. Every gap is AHEAD larger: a row
    that closes a gap of less would open one on the other side, and rare values would be drawn too often.

    Args:
        taken: price * count of the rows that are decided, updated [shape=(cells,), int32].
        expected: expected count of all rows [shape=(cells,), float64].
        prices, unit: as for :func:`pick`.
        rows: number of all rows.
        first, last: range of the rows that the blocks decide.
        blocks: number of blocks.
        begin, end: range of cells.
        cells: those of each block after the round before, as for :func:`pick`, and those with which all
            of them started; written [shape=(blocks + 1 or more, cells), int32].
    """
    done, more = np.float64(first) / rows, np.float64(last - first) / rows
    counts, wanted, price = taken[begin:end], expected[begin:end], prices[begin:end]
    start = cells[-1, begin:end]
    for b in range(cells.shape[0] - 1):
        mine = cells[b, begin:end]
        for c in range(start.size):
            counts[c] += (mine[c] >> FALL_BITS) - (start[c] >> FALL_BITS)
    if first == 0:
        for c in range(start.size):
            # Rounded up as often as down, the same in every round.
            up = np.float64(np.uint32((begin + c) * SPREAD)) / WIDTH
            start[c] = np.int32(price[c] * wanted[c] / (rows * unit) + up)
    for c in range(start.size):
        cost = np.float64(price[c])
        parts = min(max(SHARED * more * wanted[c], 1.0), np.float64(blocks))
        gap = (counts[c] - done * cost * wanted[c]) / parts + AHEAD * cost
        # Conversion cuts numbers above zero, and so rounds.
        rounded = np.int32(min(max(gap, -HIGHEST), HIGHEST) + (HIGHEST + 0.5)) - np.int32(HIGHEST)
        start[c] = (rounded << FALL_BITS) | (start[c] & FALLS)
    for b in range(cells.shape[0] - 1):
        mine = cells[b, begin:end]
        for c in range(start.size):
            mine[c] = start[c]


@callee(forceinline=True)
def _add_cells(spots, stems, cells, first, last, i, j, sums):  # type: ignore[no-untyped-def]
    """Add two rows' cells in the tables of some stems to their sums."""
    one, two = np.int64(0), np.int64(0)
    for s in range(first, last):
        cell, cells_of = _stem_cell(spots, stems, s, i), _stem_cell(spots, stems, s, j)
        for t in range(stems[s, 5], stems[s, 6]):
            one += cells[cell + spots[i, t]]
            two += cells[cells_of + spots[j, t]]
    sums[i] += one
    if i != j:
        sums[j] += two


@kernel
def pick(columns, firsts, stems, ends, prices, unit, cells, begin, end, chosen):  # type: ignore[no-untyped-def]
    """Take one of several candidates for each row so that counts stay close to the expected ones.

    The gap of a cell is the count of rows taken minus what is expected of as many rows. Rows are
    decided one after the other: the candidate is taken whose cells have the smallest sum of price *
    gap, the first of several. It is found in stages. After each but the last, of an odd or even
    number of candidates the half with the smallest sums over the stems so far stays.

    Tables of one to three attributes that differ only in their last attribute form a stem, if these last
    attributes follow each other in ``firsts``. Their cells lie side by side, so that the look-ups of a row
    are close together.

    Args:
        columns: codes; candidate j of row i is row j * n + i [shape=(c, k * n), uint16].
        firsts: columns in the order of stems, and the spot of the first value of each: the spot of
            a value is its place among the values of all columns [shape=(c, 2), uint64].
        stems: per stem, place in ``firsts`` of its tables' first attribute, and its stride; the same of
            the second (a stride of 0 if there is none before the last); what is added to spots; and the
            range of last attributes in ``firsts`` [shape=(s, 7), uint64].
        ends: the last stem of each stage [int64].
        prices: what a row adds to the gaps of its cells, 1 to 255 [shape=(cells,), uint8].
        unit: unit of a fall. All falls of a row are less than 2^16 units.
        cells: price * gap before the first row, and by how much it falls with every row, in the last
            FALL_BITS bits; updated for the rows taken alone [shape=(cells,), int32].
        begin, end: range of rows.
        chosen: the candidate taken for each row, written [shape=(n,), int64].
    """
    n = chosen.size
    candidates = columns.shape[1] // n
    order, sums = np.empty(candidates, np.int64), np.empty(candidates, np.int64)
    pulls = np.empty(candidates)
    spots = np.empty((candidates, firsts.shape[0]), np.uint64)
    near = np.empty((NEAR, candidates, firsts.shape[0]), np.uint16)
    for i in range(begin, end):
        here = (i - begin) % NEAR
        if here == 0:
            _read_rows(columns, firsts, i, min(i + NEAR, end), n, near)
        age = (i - begin) * unit
        for j in range(candidates):
            order[j] = j
            sums[j] = 0
            for k in range(firsts.shape[0]):
                spots[j, k] = firsts[k, 1] + near[here, j, k]
        left, first = candidates, 0
        for stage in range(ends.size):
            for j in range(0, left, 2):
                a, b = order[j], order[min(j + 1, left - 1)]
                _add_cells(spots, stems, cells, first, ends[stage], a, b, sums)
            for j in range(left):
                a = order[j]
                pulls[a] = (sums[a] >> FALL_BITS) - age * (sums[a] & FALLS)
                while j > 0 and pulls[order[j - 1]] > pulls[a]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = a
            left, first = min(left, max(left // 2, 2)), ends[stage]
        taken = order[0]
        chosen[i] = taken
        for s in range(stems.shape[0]):
            cell = _stem_cell(spots, stems, s, taken)
            for t in range(stems[s, 5], stems[s, 6]):
                place = cell + spots[taken, t]
                if cells[place] < FULL:
                    cells[place] += np.int32(prices[place]) << FALL_BITS
