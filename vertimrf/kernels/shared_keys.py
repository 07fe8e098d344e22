"""Unions of complements for the published CarEst (VertiMRF, Algorithm 4).

The kernels compute counts with errors from levels of shared keys.

Under one key, a value's complement has the largest level h of its attribute, unless the value
itself holds this level; then it has the second largest. Take the attributes of a marginal in
descending order of h. A cell's level is the first h whose holder is not the cell's value, or a
higher second largest of an earlier attribute. So it depends only on *how many* of the first
attributes the cell agrees with: one of l + 1 cases, whatever the number of cells.

Per key, l + 1 terms go into a table with one extra place per axis ("any value"). The term of a case
is its share minus that of the case before. It is added at the holders with which the case agrees,
and at "any value" elsewhere. In the end the "any value" places are added to all others, axis by
axis. The work is O(keys l + cells) instead of O(keys l cells). Shares are multiples of 2^-ceiling,
so sums are exact in any order.

Axes: r = sketch rows (values) of all attributes, k = keys, a = attributes, m = marginals, c =
cells, g = grid points.
"""

from __future__ import annotations

import numpy as np

from .jit import callee, kernel

# Keys at a time; the work arrays of a strip stay in the cache of the core.
STRIP = 512
# A key's view of an attribute in one word, ordered by level: level, second level, offset from "any
# value" to the holder.
LEVEL, SECOND = 56, 48
WAY = (1 << 32) - 1


@kernel
def largest_two(levels, first_row, begin, end, largest, second, holder):  # type: ignore[no-untyped-def]
    """Per key and attribute, the largest level, its first holder, and the second largest level.

    Args:
        levels: sketches of all attributes, one after another [shape=(r, k), uint8].
        first_row: where the rows of each attribute start, and their end [shape=(a + 1,), int64].
        begin, end: range of attributes.
        largest, second: written; ``second`` is 0 if there is only one value [both shape=(a, k),
            uint8].
        holder: written [shape=(a, k), uint16].
    """
    keys = largest.shape[1]
    for i in range(begin, end):
        for first in range(0, keys, STRIP):
            last = min(first + STRIP, keys)
            high = largest[i, first:last]
            next_high = second[i, first:last]
            at = holder[i, first:last]
            for k in range(at.size):
                high[k] = 0
                next_high[k] = 0
                at[k] = 0
            for r in range(first_row[i], first_row[i + 1]):
                value = np.uint16(r - first_row[i])
                row = levels[r, first:last]
                for k in range(row.size):
                    x = row[k]
                    h = high[k]
                    beaten = min(x, h)
                    next_high[k] = max(next_high[k], beaten)
                    at[k] = value if x > h else at[k]
                    high[k] = max(x, h)


@callee
def _pack(high, next_high, at, stride, words):  # type: ignore[no-untyped-def]
    """Pack one strip of an attribute into one word per key."""
    for k in range(high.size):
        way = (np.int64(at[k]) + 1) * (stride & WAY)
        words[k] = (np.int64(high[k]) << LEVEL) | (np.int64(next_high[k]) << SECOND) | way


@callee
def _exchange(above, below):  # type: ignore[no-untyped-def]
    """Put the larger word of every key into ``above``."""
    for k in range(above.size):
        x = above[k]
        y = below[k]
        above[k] = max(x, y)
        below[k] = min(x, y)


@callee
def _agree(words, seconds, place):  # type: ignore[no-untyped-def]
    """Move on to the cells that agree with one more holder."""
    for k in range(place.size):
        seconds[k] = max(seconds[k], (words[k] >> SECOND) & 255)
        place[k] += words[k] & WAY


@callee
def _differ(seconds, following, ceiling, share, term):  # type: ignore[no-untyped-def]
    """The share of this case, and its difference from that of the case before."""
    for k in range(seconds.size):
        now = np.int64(1) << (ceiling - max(seconds[k], following[k] >> LEVEL))
        term[k] = now - share[k]
        share[k] = now


# These loops are separate and take few arrays each, because compilers do not vectorise loops over
# many possibly overlapping arrays.


@kernel
def union_shares(  # type: ignore[no-untyped-def]
    largest, second, holder, sizes, members, first_member, first_cell, ceiling, begin, end, out
):
    """Sum over the keys of 2^(ceiling - level).

    The level is the highest among the sketches of each cell's other values.

    Args:
        largest, second, holder: from :func:`largest_two`.
        sizes: number of values of each attribute, at least 2 [shape=(a,), int64].
        members: attributes of the marginals, one marginal after another [shape=(sum of l,), int64].
        first_member: where each marginal's attributes start, and their end [shape=(m + 1,), int64].
        first_cell: where each marginal's cells start, and their end; C order [shape=(m + 1,),
            int64].
        ceiling: the highest level.
        begin, end: range of marginals.
        out: sums, written; they wrap around unless keys * 2^(ceiling - lowest level) < 2^63
            [shape=(c,), int64].
    """
    keys = largest.shape[1]
    work = np.empty((4, STRIP), np.int64)
    seconds, place, share, term = work[0], work[1], work[2], work[3]
    for m in range(begin, end):
        chosen = members[first_member[m] : first_member[m + 1]]
        places = 1
        for j in range(chosen.size):
            places *= sizes[chosen[j]] + 1
        table = np.zeros(places, np.int64)
        # The last row stays 0, because nothing follows the last attribute.
        words = np.zeros((chosen.size + 1, STRIP), np.int64)
        outside = np.int64(0)
        for first in range(0, keys, STRIP):
            last = min(first + STRIP, keys)
            width = last - first
            stride = places
            for j in range(chosen.size):
                i = chosen[j]
                stride //= sizes[i] + 1
                _pack(
                    largest[i, first:last],
                    second[i, first:last],
                    holder[i, first:last],
                    stride,
                    words[j],
                )
                for above in range(j - 1, -1, -1):
                    _exchange(words[above, :width], words[above + 1, :width])
            for k in range(STRIP):
                seconds[k] = 0
                place[k] = 0
                share[k] = 0
            _differ(seconds[:width], words[0], ceiling, share, term)
            for k in range(width):
                outside += term[k]
            for j in range(chosen.size):
                _agree(words[j], seconds, place[:width])
                _differ(seconds[:width], words[j + 1], ceiling, share, term)
                for k in range(width):
                    table[place[k]] += term[k]
        table[0] += outside
        # Axis by axis, add the "any value" place, the first, to all others. The table shrinks
        # towards its start.
        inner = 1
        outer = places
        for j in range(chosen.size - 1, -1, -1):
            size = sizes[chosen[j]]
            outer //= size + 1
            for o in range(outer):
                source = o * (size + 1) * inner
                target = o * size * inner
                for q in range(inner):
                    shared = table[source + q]
                    for v in range(size):
                        table[target + v * inner + q] = table[source + (v + 1) * inner + q] + shared
            inner *= size
        for cell in range(inner):
            out[first_cell[m] + cell] = table[cell]


@kernel
def invert_shares(  # type: ignore[no-untyped-def]
    shares, low, high, scale, position, log_size, slope, factor, error, begin, end, sizes, errors
):
    """Numbers of items from summed shares, by interpolation in a tabulated law.

    The interpolation is cubic Hermite in the logarithms.

    Args:
        shares: sums from :func:`union_shares` [shape=(c,), int64].
        low, high: mean share for infinitely many items, and for none.
        scale: mean share per unit of the sums, 1 / keys.
        position: log((high - mean) / (mean - low)) at every grid point, increasing [shape=(g,),
            float64].
        log_size: log number of items [shape=(g,), float64].
        slope: d log_size / d position [shape=(g,), float64].
        factor: factor that corrects the bias of the number [shape=(g,), float64].
        error: relative standard error of the number [shape=(g,), float64].
        begin, end: range of cells.
        sizes, errors: number of items and its standard error, written [both shape=(c,), float64].
    """
    last = position.size - 1
    for cell in range(begin, end):
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
