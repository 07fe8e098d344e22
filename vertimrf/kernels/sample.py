"""Sampling kernels: distribute rows over the cells of conditional distributions by rounded counts.

Axes: n = rows; s = groups (values of a separator); r = cells of the new attributes.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["assign", "group_rows", "share_out"]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32), np.uint64(11)


@kernel
def _mixed(x):  # type: ignore[no-untyped-def]
    """SplitMix64's output function."""
    x = (x ^ (x >> S30)) * MIX1
    x = (x ^ (x >> S27)) * MIX2
    return x ^ (x >> S31)


@kernel
def group_rows(codes, attributes, strides, groups):  # type: ignore[no-untyped-def]
    """Sort rows by the values of some attributes, stably.

    Args:
        codes: codes [shape=(d, n), uint16].
        attributes, strides: the attributes and their strides in the group number [both int64].
        groups: number of groups.

    Returns:
        Rows ordered by group [shape=(n,), uint32], and the number of rows of each group
        [shape=(s,), int64].
    """
    n = codes.shape[1]
    number = np.zeros(n, np.uint32)
    for k in range(attributes.size):
        column = codes[attributes[k]]
        stride = np.uint32(strides[k])
        for i in range(n):
            number[i] += column[i] * stride
    counts = np.zeros(groups, np.int64)
    for i in range(n):
        counts[number[i]] += 1
    place = np.empty(groups, np.int64)
    total = 0
    for s in range(groups):
        place[s] = total
        total += counts[s]
    order = np.empty(n, np.uint32)
    for i in range(n):
        s = number[i]
        order[place[s]] = i
        place[s] += 1
    return order, counts


@kernel
def share_out(belief, offsets, columns, width, counts, seed):  # type: ignore[no-untyped-def]
    """Give every row of every group a cell by systematic sampling.

    Each group has one random start, and its rows are in random order.

    A cell that is expected e times in its group is given floor(e) or ceil(e) times. The same holds
    for any run of consecutive cells.

    Args:
        belief: probabilities of a clique [flat, float64].
        offsets: first cell of each group [shape=(s,), int64].
        columns: cells of a group relative to its first; empty if they are consecutive [shape=(r,),
            int64].
        width: number of cells of a group.
        counts: number of rows of each group [shape=(s,), int64].
        seed: seed of the pseudo-random stream [uint64].

    Returns:
        Cell of each row, 0 .. width - 1, one group after the other [shape=(n,), uint32].
    """
    out = np.empty(counts.sum(), np.uint32)
    begin = 0
    for s in range(offsets.size):
        rows = counts[s]
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
        last = 0
        for r in range(width):
            p = belief[offset + (columns[r] if columns.size else r)]
            if p > 0.0:
                share += p * scale
                last = r
                while given + position < share and given < rows:
                    out[begin + given] = r
                    given += 1
        while given < rows:
            out[begin + given] = last
            given += 1
        for i in range(rows - 1, 0, -1):
            state += GAMMA
            j = np.int64(((_mixed(state) >> S32) * np.uint64(i + 1)) >> S32)
            swapped = out[begin + i]
            out[begin + i] = out[begin + j]
            out[begin + j] = swapped
        begin += rows
    return out


@kernel
def assign(codes, order, cells, attributes, sizes):  # type: ignore[no-untyped-def]
    """Write the attributes of each row's cell into ``codes`` [shape=(d, n), uint16].

    The last attribute of a cell varies fastest.
    """
    for i in range(order.size):
        row = order[i]
        cell = np.uint32(cells[i])
        for k in range(attributes.size - 1, -1, -1):
            size = np.uint32(sizes[k])
            quotient = cell // size
            codes[attributes[k], row] = cell - quotient * size
            cell = quotient
