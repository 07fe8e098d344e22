"""Unions of complements, for the published CarEst (VertiMRF, Algorithm 4): levels of shared keys in, counts with errors out.

A cell's value of attribute i misses only its own sketch: the highest of the others is the largest level of all, unless the
value itself holds it, and then the second largest. So under one key a cell's level depends only on *which* of its l values
hold the largest: 2^l combinations, whatever the number of cells. A table with one place more per axis ("any value") takes
them as signed terms (inclusion and exclusion), scattered key by key; at the end the "any value" places are added to all
others, axis by axis. The work is O(keys 2^l + cells), not O(keys l cells), and since terms are whole multiples of
2^-ceiling, sums are exact: threads and blocks change nothing.

Axes: r = sketch rows (values) of all attributes, k = keys, a = attributes, m = marginals, c = cells, g = grid points.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .jit import parallel_kernel

__all__ = ["invert_shares", "largest_two", "union_shares"]

# Keys taken at a time; the work arrays of a strip stay in the first-level cache.
STRIP = 256


@parallel_kernel
def largest_two(levels, first_row, floor, ceiling, largest, second, holder):  # type: ignore[no-untyped-def]
    """Per key and attribute the largest level, the value that holds it (the first of equals), and the second largest.

    Args:
        levels: sketches of all attributes, one after another [shape=(r, k), uint8].
        first_row: where each attribute's rows start, and their end [shape=(a + 1,), int64].
        floor, ceiling: levels allowed.
        largest, second: [shape=(a, k), uint8], written; ``second`` is 0 where there is one value.
        holder: [shape=(a, k), uint16], written.

    Returns:
        Per attribute, whether all levels are allowed [shape=(a,), bool].
    """
    attributes, keys = largest.shape
    strips = (keys + STRIP - 1) // STRIP
    allowed = np.ones((attributes, strips), np.bool_)
    for task in prange(attributes * strips):
        i = task // strips
        begin = task % strips * STRIP
        end = min(begin + STRIP, keys)
        high = largest[i, begin:end]
        next_high = second[i, begin:end]
        at = holder[i, begin:end]
        outside = np.uint8(0)
        high[:] = 0
        next_high[:] = 0
        at[:] = 0
        for r in range(first_row[i], first_row[i + 1]):
            value = np.uint16(r - first_row[i])
            row = levels[r, begin:end]
            for k in range(row.size):
                x = row[k]
                h = high[k]
                beaten = min(x, h)
                next_high[k] = max(next_high[k], beaten)
                at[k] = value if x > h else at[k]
                high[k] = max(x, h)
                outside |= np.uint8(x < floor) | np.uint8(x > ceiling)
        allowed[i, task % strips] = outside == 0
    out = np.ones(attributes, np.bool_)
    for i in range(attributes):
        out[i] = allowed[i].all()
    return out


@parallel_kernel
def union_shares(largest, second, holder, sizes, members, first_member, first_cell, ceiling, blocks):  # type: ignore[no-untyped-def]
    """Sum over the keys of 2^(ceiling - level), level the highest among the sketches of each cell's other values.

    Args:
        largest, second, holder: from :func:`largest_two`.
        sizes: values of each attribute, at least 2 [shape=(a,), int64].
        members: attributes of the marginals, one marginal after another [shape=(sum of l,), int64].
        first_member: where each marginal's attributes start, and their end [shape=(m + 1,), int64].
        first_cell: where each marginal's cells start, and their end; C order [shape=(m + 1,), int64].
        ceiling: the highest level.
        blocks: into how many pieces to cut the keys, for the threads; the sums do not depend on it.

    Returns:
        [shape=(c,), int64]; wraps around unless keys * 2^(ceiling - lowest level) < 2^63.
    """
    keys = largest.shape[1]
    marginals = first_member.size - 1
    room = np.zeros(marginals + 1, np.int64)
    for m in range(marginals):
        places = 1
        for j in range(first_member[m], first_member[m + 1]):
            places *= sizes[members[j]] + 1
        room[m + 1] = room[m] + places
    tables = np.zeros((blocks, room[marginals]), np.int64)
    for task in prange(marginals * blocks):
        m = task % marginals
        block = task // marginals
        table = tables[block, room[m] : room[m + 1]]
        chosen = members[first_member[m] : first_member[m + 1]]
        combinations = 1 << chosen.size
        strip = max(STRIP >> max(chosen.size - 4, 0), 16)
        level = np.empty((combinations, strip), np.uint8)
        place = np.empty((combinations, strip), np.int32)
        term = np.empty((combinations, strip), np.int64)
        anywhere = table.size - 1
        rest = np.int64(0)
        for begin in range(keys * block // blocks, keys * (block + 1) // blocks, strip):
            width = min(strip, keys * (block + 1) // blocks - begin)
            for k in range(width):
                level[0, k] = 0
                place[0, k] = anywhere
            held = 1
            stride = table.size
            for j in range(chosen.size):
                i = chosen[j]
                stride //= sizes[i] + 1
                high = largest[i, begin : begin + width]
                next_high = second[i, begin : begin + width]
                at = holder[i, begin : begin + width]
                step = np.int32(stride)
                back = np.int32(stride * sizes[i])
                for s in range(held):
                    for k in range(width):
                        x = level[s, k]
                        level[s + held, k] = max(x, next_high[k])
                        level[s, k] = max(x, high[k])
                        place[s + held, k] = place[s, k] + np.int32(at[k]) * step - back
                held *= 2
            for s in range(combinations):
                for k in range(width):
                    term[s, k] = np.int64(1) << (np.int64(ceiling) - np.int64(level[s, k]))
            # What a combination adds beyond all that it contains.
            bit = 1
            while bit < combinations:
                for s in range(combinations):
                    if s & bit:
                        for k in range(width):
                            term[s, k] -= term[s ^ bit, k]
                bit *= 2
            for k in range(width):
                rest += term[0, k]
            for s in range(1, combinations):
                for k in range(width):
                    table[place[s, k]] += term[s, k]
        table[anywhere] += rest
    out = np.empty(first_cell[marginals], np.int64)
    for m in prange(marginals):
        table = tables[0, room[m] : room[m + 1]]
        for block in range(1, blocks):
            table += tables[block, room[m] : room[m + 1]]
        # Axis by axis, drop the "any value" place into all others; the table shrinks towards its start.
        chosen = members[first_member[m] : first_member[m + 1]]
        inner = 1
        outer = table.size
        for j in range(chosen.size - 1, -1, -1):
            size = sizes[chosen[j]]
            outer //= size + 1
            for o in range(outer):
                source = o * (size + 1) * inner
                target = o * size * inner
                for q in range(inner):
                    shared = table[source + size * inner + q]
                    for v in range(size):
                        table[target + v * inner + q] = table[source + v * inner + q] + shared
            inner *= size
        out[first_cell[m] : first_cell[m + 1]] = table[:inner]
    return out


@parallel_kernel
def invert_shares(shares, low, high, scale, position, log_size, slope, factor, error, sizes, errors):  # type: ignore[no-untyped-def]
    """From summed shares to numbers of items, through a tabulated law (cubic Hermite in the logarithms).

    Args:
        shares: sums from :func:`union_shares` [shape=(c,), int64].
        low, high: mean share of infinitely many items, and of none.
        scale: mean share per unit of the sums, 1 / keys.
        position: log((high - mean) / (mean - low)) at every grid point, increasing [shape=(g,), float64].
        log_size: logarithm of the number of items [shape=(g,), float64].
        slope: d log_size / d position [shape=(g,), float64].
        factor: what to multiply the number with, for its bias [shape=(g,), float64].
        error: its relative standard error [shape=(g,), float64].
        sizes, errors: number of items and standard error [shape=(c,), float64], written.
    """
    last = position.size - 1
    for cell in prange(shares.size):
        mean = shares[cell] * scale
        if mean >= high:
            y = position[0]
        elif mean <= low:
            y = position[last]
        else:
            y = min(max(np.log((high - mean) / (mean - low)), position[0]), position[last])
        left = 0
        right = last
        while right - left > 1:
            middle = (left + right) // 2
            if position[middle] <= y:
                left = middle
            else:
                right = middle
        width = position[right] - position[left]
        t = (y - position[left]) / width
        rise = log_size[right] - log_size[left]
        bend_left = width * slope[left] - rise
        bend_right = rise - width * slope[right]
        x = log_size[left] + t * rise + t * (1 - t) * ((1 - t) * bend_left + t * bend_right)
        size = np.exp(x) * (factor[left] + t * (factor[right] - factor[left]))
        sizes[cell] = size
        errors[cell] = size * (error[left] + t * (error[right] - error[left]))
