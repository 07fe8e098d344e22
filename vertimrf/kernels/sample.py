"""Sampling kernels: distribute rows over the cells of conditional distributions by rounded counts.

Axes: n = rows; s = groups (values of a separator); r = cells of the new attributes.
"""

from __future__ import annotations

import numpy as np

from .jit import callee, kernel

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
LOW = np.uint64(0xFFFFFFFF)
S27, S30, S31, S32, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)


@callee
def _mixed(x):  # type: ignore[no-untyped-def]
    """SplitMix64's output function."""
    x = (x ^ (x >> S30)) * MIX1
    x = (x ^ (x >> S27)) * MIX2
    return x ^ (x >> S31)


@callee(forceinline=True)
def _swap(cells, i, bits):  # type: ignore[no-untyped-def]
    """Swap a cell with itself or one before it, by 32 random bits."""
    j = np.int64((bits * np.uint64(i + 1)) >> S32)
    cells[i], cells[j] = cells[j], cells[i]


@kernel
def number_groups(codes, attributes, strides, groups, begin, end, numbers):  # type: ignore[no-untyped-def]
    """Number the groups of rows by the values of some attributes.

    Args:
        codes: codes [shape=(d, n), uint16].
        attributes, strides: the attributes and their strides in the group number [both int64].
        groups: number of groups.
        begin, end: range of rows.
        numbers: group of each row, written [shape=(n,), uint32].

    Returns:
        Number of rows of each group in the range [shape=(s,), int64].
    """
    mine = numbers[begin:end]
    for i in range(mine.size):
        mine[i] = 0
    for k in range(attributes.size):
        column = codes[attributes[k], begin:end]
        stride = np.uint32(strides[k])
        for i in range(mine.size):
            mine[i] += column[i] * stride
    counts = np.zeros(groups, np.int64)
    for i in range(mine.size):
        counts[mine[i]] += 1
    return counts


@kernel
def share_out(belief, offsets, columns, width, starts, first, last, seed, out):  # type: ignore[no-untyped-def]
    """Give every row of some groups a cell by systematic sampling.

    Each group has one random start, and its rows are in random order.

    A cell that is expected e times in its group is given floor(e) or ceil(e) times. The same holds
    for any run of consecutive cells.

    Args:
        belief: probabilities of a clique [flat, float64].
        offsets: first cell of each group [shape=(s,), int64].
        columns: cells of a group relative to its first; empty if they are consecutive [shape=(r,),
            int64].
        width: number of cells of a group.
        starts: first row of each group, one group after the other, and the number of rows
            [shape=(s + 1,), int64].
        first, last: range of groups.
        seed: seed of the pseudo-random stream [uint64].
        out: cell of each row, 0 .. width - 1, written [shape=(n,), uint32].
    """
    for s in range(first, last):
        begin = starts[s]
        rows = starts[s + 1] - begin
        if rows == 0:
            continue
        state = _mixed(seed + np.uint64(s + 1) * GAMMA)
        offset = offsets[s]
        mass = 0.0
        if columns.size == 0:
            for r in range(width):
                mass += belief[offset + r]
        else:
            for r in range(width):
                mass += belief[offset + columns[r]]
        state += GAMMA
        position = np.float64(_mixed(state) >> S11) / 9007199254740992.0
        scale = rows / mass if mass > 0.0 else 0.0
        share = 0.0
        given = 0
        likely = 0
        for r in range(width):
            p = belief[offset + (columns[r] if columns.size else r)]
            if p > 0.0:
                share += p * scale
                likely = r
                while given + position < share and given < rows:
                    out[begin + given] = r
                    given += 1
        while given < rows:
            out[begin + given] = likely
            given += 1
        mine = out[begin : begin + rows]
        for i in range(rows - 1, 0, -2):
            state += GAMMA
            bits = _mixed(state)
            _swap(mine, i, bits >> S32)
            # The first of an even number of rows is swapped with itself.
            _swap(mine, i - 1, bits & LOW)


@kernel
def assign(codes, numbers, cells, places, attributes, sizes, begin, end):  # type: ignore[no-untyped-def]
    """Give each row the next cell of its group, and write the attributes of this cell.

    The last attribute of a cell varies fastest.

    Args:
        codes: codes, written [shape=(d, n), uint16].
        numbers: group of each row, overwritten [shape=(n,), uint32].
        cells: from :func:`share_out` [shape=(n,), uint32].
        places: place in ``cells`` of each group's next row, updated [shape=(s,), int64].
        attributes, sizes: the attributes of a cell and their sizes [both int64].
        begin, end: range of rows.
    """
    mine = numbers[begin:end]
    for i in range(mine.size):
        group = mine[i]
        mine[i] = cells[places[group]]
        places[group] += 1
    for k in range(attributes.size - 1, 0, -1):
        column = codes[attributes[k], begin:end]
        size = np.uint32(sizes[k])
        # As cells are halfway between whole numbers, rounding moves no quotient. Division is slower.
        share = 1.0 / sizes[k]
        for i in range(mine.size):
            quotient = np.uint32(np.int32((np.int32(mine[i]) + 0.5) * share))
            column[i] = mine[i] - quotient * size
            mine[i] = quotient
    column = codes[attributes[0], begin:end]
    for i in range(mine.size):
        column[i] = mine[i]
