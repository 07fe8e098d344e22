"""The split of a clique's attributes in outer and inner loops that makes a pass cheapest.

A pass loops over the outer attributes; the inner ones are one contiguous block. All splits of a few
attributes are priced. Otherwise a local search moves attributes in and out of the block, from
several starts. Sets of attributes are bit masks of int64. Prices are in units of one cell of a
contiguous loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import callee, kernel

# Relative costs: a cell in a contiguous loop, and one gathered or scattered through an index map.
# Measured on x86-64.
STREAM, GATHER = 1.0, 1.5
# Most cells of the block from which a search starts.
LARGEST_START = 128
# For cliques of at most so many attributes, all splits are compared: as fast as the search, and 0.3 %
# cheaper on 241 columns.
ALL_SPLITS = 10
# A bare 0 is a separate type to Numba, which would compile its callees again.
NONE: Any = np.int64(0)


@callee
def _cells(members, sizes):  # type: ignore[no-untyped-def]
    cells = 1
    for a in range(sizes.size):
        if members >> a & 1:
            cells *= sizes[a]
    return cells


@callee
def _order_outer(outer, groups, count, sizes, order, last_of):  # type: ignore[no-untyped-def]
    """Order outer attributes so that levels with many rows have few groups; attributes without
    groups come last. ``last_of`` gets the depth of every group's last attribute.
    """
    depth = 0
    for a in range(sizes.size):
        depth += outer >> a & 1
    left = outer
    for i in range(count):
        last_of[i] = -1
    for level in range(depth - 1, -1, -1):
        best, fewest = -1, count + 1
        for a in range(sizes.size):
            if left >> a & 1:
                carried = 0
                for i in range(count):
                    if last_of[i] < 0:
                        carried += groups[i] >> a & 1
                if carried < fewest or (carried == fewest and sizes[a] > sizes[best]):
                    best, fewest = a, carried
        order[level] = best
        left ^= 1 << best
        for i in range(count):
            if last_of[i] < 0 and groups[i] >> best & 1:
                last_of[i] = level
    return depth


@callee
def _price(inner, masks, numbers, ends, sizes, any_order, row, order):  # type: ignore[no-untyped-def]
    """Price of a split; ``order`` gets the outer attributes, slowest first."""
    everything = (1 << sizes.size) - 1
    outer = everything & ~inner
    width = _cells(inner, sizes)
    chosen = 0
    for a in range(sizes.size):
        chosen += inner >> a & 1
    cost = STREAM * width
    # Sets of outer attributes of tables that have inner ones too, and of tables that have not.
    groups, ways = np.empty(masks.size, np.int64), np.zeros(masks.size, np.int64)
    scalars, times = np.empty(masks.size, np.int64), np.empty(masks.size, np.int64)
    last_of = np.empty(masks.size, np.int64)
    count = scalar = NONE
    carries = False
    for t in range(masks.size):
        rows, number = masks[t] & outer, numbers[t, 0] + numbers[t, 1]
        if rows == 0:
            cost += GATHER * width * number
            carries |= numbers[t, 1] > 0
        elif rows == masks[t]:
            scalars[scalar], times[scalar] = rows, number
            scalar += 1
        else:
            g = 0
            while g < count and groups[g] != rows:
                g += 1
            if g == count:
                groups[g], count = rows, count + 1
            ways[g] |= (numbers[t, 0] > 0) + 2 * (numbers[t, 1] > 0)
            # A table whose rows are not contiguous is gathered.
            if inner & ~masks[t] != 0 if any_order else ends[t, chosen] != inner:
                cost += number * (GATHER + STREAM) * _cells(rows, sizes) * width
    depth = _order_outer(outer, groups, count, sizes, order, last_of)
    active = -1
    for g in range(count):
        active = max(active, last_of[g])
    rows = 1
    for level in range(depth):
        rows *= sizes[order[level]]
        if level <= active:
            streams, written = 0, False
            for g in range(count):
                if last_of[g] == level:
                    streams += (ways[g] & 1) + (ways[g] >> 1)
                    written |= ways[g] > 1
            cost += rows * (row + width * STREAM * max(streams + carries, 1))
            carries |= written
        # A table without inner attributes is read once for every row down to its last attribute.
        for i in range(scalar):
            scalars[i] &= ~(1 << order[level])
            if scalars[i] == 0 and times[i]:
                cost += times[i] * GATHER * rows
                times[i] = 0
    return cost + 2 * STREAM * rows if depth else cost


@kernel
def cheapest(masks, numbers, ends, sizes, starts, any_order, row, limit, order):  # type: ignore[no-untyped-def]
    """Find the cheapest split of a clique.

    Args:
        masks: attributes of every set of them that is a table's [shape=(t,), int64].
        numbers: how many tables of these attributes are read and written [shape=(t, 2), int64].
        ends: the last ``i`` axes of these tables, 0 where there are no others [shape=(t, k + 1),
            int64].
        sizes: domain size of every attribute, at least 2 [shape=(k,), int64].
        starts: orders in which a search fills its first block [shape=(s, k), int64].
        any_order: whether the order of the tables' axes is still to be chosen.
        row: price of beginning a row.
        limit: most cells of the inner block, unless one attribute has more.
        order: gets the outer attributes of the cheapest split, slowest first [shape=(k,), int64].

    Returns:
        The mask of inner attributes. Of equally cheap splits, the first that was tried.
    """
    k = sizes.size
    for a in range(k):
        limit = max(limit, sizes[a])
    best, lowest = NONE, np.inf
    if k <= ALL_SPLITS:
        for inner in range(1, 1 << k):
            if _cells(inner, sizes) <= limit:
                price = _price(inner, masks, numbers, ends, sizes, any_order, row, order)
                if price < lowest:
                    best, lowest = inner, price
    else:
        for s in range(len(starts)):
            inner = NONE
            for a in starts[s]:
                if inner == 0 or _cells(inner, sizes) * sizes[a] <= min(LARGEST_START, limit):
                    inner |= 1 << a
            price = _price(inner, masks, numbers, ends, sizes, any_order, row, order)
            for _ in range(2 * k):
                # Swaps are many, so they are tried only if no single move helps.
                after, least = inner, price
                for swap in range(2):
                    for a in range(k):
                        for b in range(a + 1 if swap else k - 1, k):
                            move = inner ^ 1 << a
                            if swap:
                                if inner >> a & 1 == inner >> b & 1:
                                    continue
                                move ^= 1 << b
                            if move == 0 or _cells(move, sizes) > limit:
                                continue
                            tried = _price(move, masks, numbers, ends, sizes, any_order, row, order)
                            if tried < least:
                                after, least = move, tried
                    if after != inner:
                        break
                if after == inner:
                    break
                inner, price = after, least
            if price < lowest:
                best, lowest = inner, price
    _price(best, masks, numbers, ends, sizes, any_order, row, order)
    return best
