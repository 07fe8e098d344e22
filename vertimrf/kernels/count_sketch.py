"""Secret count sketches: signed counters of hashed records with noise, cut to a few bits.

The noise is discrete Gaussian.

In every repetition, a record has one bucket and one sign. Both come from a keyed word (``prf``), a
function of the secret, the record and the repetition. Several repetitions share one word. Counters
are sums. So chunks, threads and parts of a table can be added in any order with the same bits.

The noise is half-integral: P(z) is proportional to exp(-z^2 / (2 variance)) for z = ..., -1/2, 1/2,
.... So no noisy counter is zero, and its sign is unbiased. If a record changes a counter by a
weight, the variance of its noise is multiplied by the weight. A draw uses 16 bits of entropy, and
128 more if these do not determine it (a few in a thousand). The result equals that of comparing 144
uniform bits with thresholds rounded to 2^-144.

Axes: n = records, d = groups, v = rows (values or contrasts) of all groups, r = repetitions, b =
buckets, m = undetermined draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from ..arrays import Bytes, Codes, Floats, Int32s, Integers, Words
from .jit import VECTOR, callee, for_each, in_slices, kernel
from .prf import fill_words, tail

# Records per tile; their words and places stay in the second-level cache.
TILE = 1 << 14
WORD_BITS = 64
# Twice a draw is odd, so an even number marks words that do not determine it.
UNSETTLED = np.int16(0)
# Noise is cut at this many standard deviations: P(beyond) < 2^-128.
REACH = 13.5
FIRST_BITS, MORE_BITS = 16, 128
# Columns of a product at a time: they stay in the second-level cache, and sums of products of 4-bit
# codes stay far within the 24 bits of float32.
PRODUCT_COLUMNS = 1 << 10
# Words per record, or columns of a product, per thread between two reports of progress.
STEP_WORDS = 8
STEP_COLUMNS = 16 * PRODUCT_COLUMNS


def silent(done: int, of: int) -> None:
    """Ignores progress."""


def words_needed(repetitions: int, log_buckets: int) -> tuple[int, int]:
    """Keyed words per record and repetitions per word, for 2^``log_buckets`` buckets and a sign."""
    per_word = WORD_BITS // (log_buckets + 1)
    return -(-repetitions // per_word), per_word


def add_records(
    k0: np.uint64,
    k1: np.uint64,
    digests: Words,
    codes: Codes,
    layout: Integers,
    log_buckets: int,
    state: Int32s,
    advance: Callable[[int, int], None] = silent,
) -> None:
    """Add the signs of all records to their counters.

    Args:
        k0, k1: secret key [uint64].
        digests: record digests [shape=(n,), uint64].
        codes: values, group-major [shape=(d, n), uint16].
        layout: per group, its first row, its kind, and the number of its Walsh function
            [shape=(d, 3), int64]. Kind 1 is a contrast: code 0 adds to the row and code 1 subtracts
            from it; code 2 adds or subtracts as the function says (:func:`alternating`). Kind 0 has
            one row per value.
        log_buckets: binary logarithm of the number of buckets, at most 15.
        state: counters, updated [shape=(r, v, b), int32]. The caller ensures that they cannot
            overflow.
        advance: called with the number of words done, and of all words.
    """
    words, _ = words_needed(len(state), log_buckets)
    data = (digests, codes, layout, log_buckets, state)
    step = STEP_WORDS * numba.get_num_threads()
    for first in range(0, words, step):
        last = min(first + step, words)

        def add(begin: int, end: int, first: int = first) -> None:
            _add_words(k0, k1, first + begin, first + end, *data)

        in_slices(last - first, 1, add)
        advance(last, words)


def alternating(number: int, counters: Integers) -> Integers:
    """Signs of a Walsh function: -1 where the number and the counter have an odd number of ones in
    common as binary numbers.

    Different functions are orthogonal over any 2^k successive counters from a multiple of 2^k on,
    if their numbers are below 2^k.

    Args:
        number: of the function; that of number 0 is 1 everywhere.
        counters: numbers of counters, repetition * buckets + bucket [shape=(n,), int64].

    Returns:
        [shape=(n,), int64]
    """
    common = counters & number
    for shift in (32, 16, 8, 4, 2, 1):
        common = common ^ (common >> shift)
    return 1 - 2 * (common & 1)


@callee(forceinline=True)
def odd(bits):  # type: ignore[no-untyped-def]
    """Whether a number has an odd number of ones [uint32]."""
    bits ^= bits >> np.uint32(16)
    bits ^= bits >> np.uint32(8)
    bits ^= bits >> np.uint32(4)
    bits ^= bits >> np.uint32(2)
    bits ^= bits >> np.uint32(1)
    return bits & np.uint32(1)


@callee
def _turns(layout, log_buckets):  # type: ignore[no-untyped-def]
    """By alternating group and bucket, the sign of its function in a repetition of even parity
    [shape=(d, buckets), int8]; no bucket without such a group.
    """
    some = False
    for i in range(len(layout)):
        some = some or layout[i, 2] != 0
    turns = np.empty((len(layout), (1 << log_buckets) if some else 0), np.int8)
    for i in range(len(layout)):
        for b in range(turns.shape[1]):
            turns[i, b] = 1 - 2 * np.int8(odd(np.uint32(layout[i, 2] & b)))
    return turns


@callee
def _add_apart(apart, turns, number, j, row):  # type: ignore[no-untyped-def]
    """Add the rows of two halves and of the missing value to a contrast's counters, and clear them.

    Args:
        apart: one row for each value [shape=(3, buckets), int32].
        turns: signs of the group's function by bucket [shape=(buckets,), int8].
        number: the part of its number that repetitions decide.
        j: repetition.
        row: counters, updated [shape=(buckets,), int32].
    """
    sign = 1 - 2 * np.int32(odd(np.uint32(np.uint64(number) & np.uint64(j))))
    for b in range(len(row)):
        row[b] += apart[0, b] - apart[1, b] + sign * np.int32(turns[b]) * apart[2, b]
        apart[0, b] = apart[1, b] = apart[2, b] = 0


@kernel
def _add_words(k0, k1, begin, end, digests, codes, layout, log_buckets, state):  # type: ignore[no-untyped-def]
    repetitions = state.shape[0]
    slot_bits = log_buckets + 1
    per_word = WORD_BITS // slot_bits
    buckets = np.uint64((1 << log_buckets) - 1)
    n = digests.size
    word = np.empty(TILE, np.uint64)
    place = np.empty(TILE, np.uint32)
    sign = np.empty(TILE, np.int32)
    turns = _turns(layout, log_buckets)
    apart = np.zeros((6, turns.shape[1]), np.int32)
    for w in range(begin, end):
        for first in range(0, n, TILE):
            count = min(TILE, n - first)
            fill_words(k0, k1, digests[first:], count, tail(w, np.int64(0)), word)
            for j in range(w * per_word, min((w + 1) * per_word, repetitions)):
                shift = np.uint64((j - w * per_word) * slot_bits)
                for a in range(count):
                    slot = word[a] >> shift
                    place[a] = slot & buckets
                    sign[a] = 1 - 2 * np.int32((slot >> np.uint64(log_buckets)) & np.uint64(1))
                i = 0
                while i < len(layout):
                    table = state[j, layout[i, 0] :]
                    code = codes[i, first : first + count]
                    i += 1
                    if layout[i - 1, 2]:
                        # Records of each value first have a row of their own.
                        if i < len(layout) and layout[i, 2]:
                            # Two groups at once: a record's place and sign are read once.
                            its_code = codes[i, first : first + count]
                            i += 1
                            for a in range(count):
                                bucket, change = place[a], sign[a]
                                apart[code[a], bucket] += change
                                apart[3 + np.int64(its_code[a]), bucket] += change
                            other = state[j, layout[i - 1, 0]]
                            _add_apart(
                                apart[3:], turns[i - 1], layout[i - 1, 2] >> log_buckets, j, other
                            )
                            _add_apart(
                                apart[:3],
                                turns[i - 2],
                                layout[i - 2, 2] >> log_buckets,
                                j,
                                table[0],
                            )
                        else:
                            for a in range(count):
                                apart[code[a], place[a]] += sign[a]
                            _add_apart(
                                apart[:3],
                                turns[i - 1],
                                layout[i - 1, 2] >> log_buckets,
                                j,
                                table[0],
                            )
                    elif layout[i - 1, 1]:
                        for a in range(count):
                            table[0, place[a]] += sign[a] * (1 - 2 * np.int32(code[a]))
                    elif i < len(layout) and not layout[i, 1]:
                        # Two groups at once: a record's place and sign are read once.
                        other, its_code = state[j, layout[i, 0] :], codes[i, first : first + count]
                        i += 1
                        for a in range(count):
                            bucket, change = place[a], sign[a]
                            table[code[a], bucket] += change
                            other[its_code[a], bucket] += change
                    else:
                        for a in range(count):
                            table[code[a], place[a]] += sign[a]


class NoiseTable(NamedTuple):
    """Tables for half-integer Gaussian draws by inversion. All values are doubled to be integers.

    Attributes:
        settled: twice the draw for each 16-bit word, or UNSETTLED if more bits decide
            [shape=(65536,), int16].
        first: first 16 bits of each threshold; from the i-th threshold on, the draw exceeds its
            i-th lowest value [shape=(k,), uint16].
        high, low: the next 64 bits and the last 64 [both shape=(k,), uint64].
        lowest: twice the lowest value.
    """

    settled: npt.NDArray[np.int16]
    first: Codes
    high: Words
    low: Words
    lowest: int


def noise_table(variance: float) -> NoiseTable:
    """Tables of the discrete Gaussian on the half-integers.

    The total variation distance of a draw from the exact law is below 2^-128 for the tail plus
    2^-145 for each value.

    Args:
        variance: kappa in exp(-z^2 / (2 kappa)), from 1 to 10^6.

    Returns:
        The tables.

    Raises:
        ValueError: the variance lies outside this range.
    """
    if not 1 <= variance <= 1e6:
        raise ValueError(f"Noise is drawn with a variance from 1 to 1,000,000, not {variance}.")
    reach = math.ceil(REACH * math.sqrt(variance))
    doubled = range(-2 * reach + 1, 2 * reach, 2)
    with localcontext() as context:
        context.prec = 80
        # Masses of 1/2, 3/2, ... relative to the first: 1, q, q^3, q^6, ... with q = exp(-1 /
        # variance).
        ratio = power = (-1 / Decimal(variance)).exp()
        half = [Decimal(1)]
        for _ in range(len(doubled) // 2 - 1):
            half.append(half[-1] * power)
            power *= ratio
        weights = half[::-1] + half
        total = sum(weights)
        whole = 1 << (FIRST_BITS + MORE_BITS)
        below, exact = Decimal(0), []
        for weight in weights[:-1]:
            below += weight
            exact.append(min(int((below / total * whole).to_integral_value()), whole - 1))
    first = np.array([x >> MORE_BITS for x in exact], np.uint16)
    high = np.array([(x >> 64) & (2**64 - 1) for x in exact], np.uint64)
    low = np.array([x & (2**64 - 1) for x in exact], np.uint64)
    # A first word determines the draw unless a threshold begins with it.
    rank = np.searchsorted(first, np.arange(1 << FIRST_BITS), side="right")
    settled = (doubled[0] + 2 * rank).astype(np.int16)
    settled[first] = UNSETTLED
    return NoiseTable(settled, first, high, low, doubled[0])


@kernel
def add_noise(counters, weight, words, settled, unsettled):  # type: ignore[no-untyped-def]
    """Double weighted counters, and add twice their noise where 16 bits determine it.

    Args:
        counters: counters, updated [shape=(n,), int32]. The caller ensures that they cannot
            overflow.
        weight: change of the published counters by one record.
        words: uniform words [shape=(n,), uint16].
        settled: from :class:`NoiseTable`.
        unsettled: indices left to :func:`settle_noise`, written [shape=(n,), int64].

    Returns:
        Number of these indices.
    """
    count = 0
    scale = np.int32(2 * weight)
    for i in range(counters.size):
        noise = settled[words[i]]
        counters[i] = scale * counters[i] + noise
        unsettled[count] = i
        count += noise == UNSETTLED
    return count


@kernel
def settle_noise(counters, words, unsettled, more, first, high, low, lowest):  # type: ignore[no-untyped-def]
    """Add twice their noise to the counters left by :func:`add_noise`.

    Args:
        counters, words: as there.
        unsettled: their indices [shape=(m,), int64].
        more: uniform words [shape=(m, 2), uint64].
        first, high, low, lowest: from :class:`NoiseTable`.
    """
    for j in range(unsettled.size):
        i = unsettled[j]
        # Thresholds increase. Count those below the first word, and those that begin with it and
        # are reached.
        rank, above = np.int64(0), first.size
        while rank < above:
            middle = (rank + above) >> 1
            if first[middle] < words[i]:
                rank = middle + 1
            else:
                above = middle
        while rank < first.size and first[rank] == words[i]:
            if more[j, 0] < high[rank] or (more[j, 0] == high[rank] and more[j, 1] < low[rank]):
                break
            rank += 1
        counters[i] += lowest + 2 * rank


@kernel
def quantise(doubled, steps, bits, out):  # type: ignore[no-untyped-def]
    """Quantise uniformly and symmetrically about zero, with cuts at 0 and at multiples of the step.

    Args:
        doubled: twice the noisy counters, odd [shape=(r, v, b), int32].
        steps: width of a code, per row [shape=(v,), float64].
        bits: 1 to 4.
        out: codes, 0 to 2^bits - 1, all counters of a row together, written [shape=(v, r * b),
            uint8].
    """
    repetitions, values, buckets = doubled.shape
    half = 1 << (bits - 1)
    for j in range(repetitions):
        for v in range(values):
            scale = 0.5 / steps[v]
            row = out[v, j * buckets : (j + 1) * buckets]
            for b in range(buckets):
                # Clip before conversion, because a large quotient may not fit an integer.
                at = min(max(np.floor(doubled[j, v, b] * scale), -1.0 * half), half - 1.0)
                row[b] = np.uint8(np.int32(at) + np.int32(half))


# The sums below are integers that float32 holds exactly in any order.


@callee(forceinline=True, fastmath=VECTOR)
def plus(sums, x, four):  # type: ignore[no-untyped-def]
    """Four sums, each with the product of ``x`` and one of four numbers added."""
    return (
        sums[0] + x * four[0],
        sums[1] + x * four[1],
        sums[2] + x * four[2],
        sums[3] + x * four[3],
    )


@kernel(fastmath=VECTOR)
def add_products(codes, offset, first, last, total):  # type: ignore[no-untyped-def]
    """Add up the products of all pairs of rows, the second row not after the first.

    Products of four rows with four others are summed at once, so that what is loaded is used four
    times.

    Args:
        codes: codes [shape=(v, t), uint8].
        offset: added to twice a code.
        first, last: range of columns.
        total: sums, rows padded to a multiple of 4, updated [shape=(v + 3 or less, v + 3 or less),
            float64].
    """
    odd = np.zeros((len(total), PRODUCT_COLUMNS), np.float32)
    zero = np.float32(0)
    for begin in range(first, last, PRODUCT_COLUMNS):
        count = min(PRODUCT_COLUMNS, last - begin)
        for i in range(len(codes)):
            for k in range(count):
                odd[i, k] = np.float32(2 * np.int32(codes[i, begin + k]) + offset)
        for i in range(0, len(codes), 4):
            for j in range(0, i + 4, 4):
                p = q = r = s = (zero, zero, zero, zero)
                for k in range(count):
                    four = odd[j, k], odd[j + 1, k], odd[j + 2, k], odd[j + 3, k]
                    p = plus(p, odd[i, k], four)
                    q = plus(q, odd[i + 1, k], four)
                    r = plus(r, odd[i + 2, k], four)
                    s = plus(s, odd[i + 3, k], four)
                for a, sums in enumerate((p, q, r, s)):
                    for b in range(4):
                        total[i + a, j + b] += sums[b]


def cross_products(codes: Bytes, bits: int, advance: Callable[[int, int], None] = silent) -> Floats:
    """Mean products of all pairs of rows, where code c stands for the odd number 2 c + 1 - 2^bits.

    All sums are exact.

    Args:
        codes: codes [shape=(v, t), uint8].
        bits: bits per code, 1 to 4.
        advance: called with the number of columns done, and of all columns.

    Returns:
        Mean products [shape=(v, v), float64].
    """
    values, columns = codes.shape
    compact = np.ascontiguousarray(codes)
    # One table of sums per thread.
    workers = numba.get_num_threads()
    padded = values + -values % 4
    totals = np.zeros((workers, padded, padded))
    step = STEP_COLUMNS * workers
    for first in range(0, columns, step):
        last = min(first + step, columns)
        cuts = [first + (last - first) * w // workers for w in range(workers + 1)]

        def add(worker: int, cuts: list[int] = cuts) -> None:
            add_products(compact, 1 - (1 << bits), cuts[worker], cuts[worker + 1], totals[worker])

        for_each(workers, add)
        advance(last, columns)
    lower = np.tril(totals.sum(axis=0)[:values, :values])
    out: Floats = (lower + np.tril(lower, -1).T) / columns
    return out
