"""Secret count sketches: signed counters that records are hashed into, discrete Gaussian noise, and a few bits of each.

In every repetition a record has one bucket and one sign, taken from a keyed word (``prf``): a function of the secret, the record
and the repetition alone. As many repetitions share a word as fit. Counters are sums, so chunks, threads and parts of a table
add up, and can be taken out again, in any order and bit for bit.

Noise lives on the half-integers, P(z) proportional to exp(-z^2 / (2 variance)) for z = ..., -1/2, 1/2, ...: no noised counter is
zero, so that its sign alone is unbiased. Where a record moves a counter by a weight, the noise has so many times the variance. A
draw takes 16 bits of entropy, and 128 more where those do not settle it (a few in a thousand); the result is that of comparing
144 uniform bits with thresholds rounded to 2^-144.

Axes: n = records, d = groups, v = rows (values or contrasts) of all groups together, r = repetitions, b = buckets, m = unsettled
draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from .jit import for_each, in_slices, kernel
from .prf import fill_words, tail

__all__ = [
    "UNSETTLED",
    "NoiseTable",
    "add_noise",
    "add_products",
    "add_records",
    "cross_products",
    "noise_table",
    "quantise",
    "settle_noise",
    "words_needed",
]

# Records per tile: their words and places stay in the second-level cache.
TILE = 1 << 14
WORD_BITS = 64
# Twice a draw is odd; an even number marks the first words that do not settle it.
UNSETTLED = np.int16(0)
# Noise is drawn up to so many standard deviations: P(beyond) < 2^-128.
REACH = 13.5
FIRST_BITS, MORE_BITS = 16, 128
# Columns of a product at a time: they stay in the second-level cache, and sums of products of 4-bit codes far within the 24 bits
# that float32 has.
PRODUCT_COLUMNS = 1 << 11
# Between two reports of progress a thread goes through so many words of every record, or columns of a product.
STEP_WORDS = 8
STEP_COLUMNS = 8 * PRODUCT_COLUMNS


def silent(done: int, of: int) -> None:
    """Tells nobody of progress."""


def words_needed(repetitions: int, log_buckets: int) -> tuple[int, int]:
    """Keyed words per record, and repetitions that share one, for 2^``log_buckets`` buckets and a sign."""
    per_word = WORD_BITS // (log_buckets + 1)
    return -(-repetitions // per_word), per_word


def add_records(
    k0: np.uint64,
    k1: np.uint64,
    digests: npt.NDArray[np.uint64],
    codes: npt.NDArray[np.uint16],
    layout: npt.NDArray[np.int64],
    log_buckets: int,
    direction: int,
    state: npt.NDArray[np.int32],
    advance: Callable[[int, int], None] = silent,
) -> None:
    """Add every record's signs to its counters, or take them out.

    Args:
        k0, k1: secret key [uint64].
        digests: [shape=(n,), uint64].
        codes: values, group-major [shape=(d, n), uint16].
        layout: of every group its first row; and 1 where this is the group's contrast, to which code 0 adds and from which code 1
            takes away, or 0 where each value adds to the row as far below as its code [shape=(d, 2), int64].
        log_buckets: binary logarithm of the number of buckets, at most 15.
        direction: 1 to add the records, -1 to take them out.
        state: counters [shape=(r, v, b), int32], updated; the caller sees to it that they cannot overflow.
        advance: told how many of the words that hold all repetitions have been gone through, and of how many.
    """
    words, _ = words_needed(len(state), log_buckets)
    data = (digests, codes, layout, log_buckets, np.int32(direction), state)
    step = STEP_WORDS * numba.get_num_threads()
    for first in range(0, words, step):
        last = min(first + step, words)

        def add(begin: int, end: int, first: int = first) -> None:
            _add_words(k0, k1, first + begin, first + end, *data)

        in_slices(last - first, 1, add)
        advance(last, words)


@kernel
def _add_words(k0, k1, begin, end, digests, codes, layout, log_buckets, direction, state):  # type: ignore[no-untyped-def]
    repetitions = state.shape[0]
    slot_bits = log_buckets + 1
    per_word = WORD_BITS // slot_bits
    buckets = np.uint64((1 << log_buckets) - 1)
    n = digests.size
    word = np.empty(TILE, np.uint64)
    place = np.empty(TILE, np.uint32)
    for w in range(begin, end):
        for first in range(0, n, TILE):
            count = min(TILE, n - first)
            fill_words(k0, k1, digests[first:], count, tail(w, np.int64(0)), word)
            for j in range(w * per_word, min((w + 1) * per_word, repetitions)):
                shift = np.uint64((j - w * per_word) * slot_bits)
                for a in range(count):
                    slot = word[a] >> shift
                    # Bucket above, sign in the lowest bit.
                    place[a] = ((slot & buckets) << np.uint64(1)) | ((slot >> np.uint64(log_buckets)) & np.uint64(1))
                for i in range(len(layout)):
                    table = state[j, layout[i, 0] :]
                    code = codes[i, first : first + count]
                    if layout[i, 1] == 0:
                        for a in range(count):
                            sign = direction - 2 * direction * np.int32(place[a] & np.uint32(1))
                            table[code[a], place[a] >> np.uint32(1)] += sign
                        continue
                    row = table[0]
                    for a in range(count):
                        odd = np.uint32(code[a]) ^ (place[a] & np.uint32(1))
                        row[place[a] >> np.uint32(1)] += direction - 2 * direction * np.int32(odd)


class NoiseTable(NamedTuple):
    """Half-integer Gaussian draws by inverting their distribution; everything is doubled, so that it is whole.

    Attributes:
        settled: twice the draw for each 16-bit word, or UNSETTLED where more bits decide [shape=(65536,), int16].
        first: first 16 bits of each threshold, which the draw exceeds its i-th lowest value from on [shape=(k,), uint16].
        high, low: the 64 bits after those, and the last 64 [shape=(k,), uint64].
        lowest: twice the lowest value.
    """

    settled: npt.NDArray[np.int16]
    first: npt.NDArray[np.uint16]
    high: npt.NDArray[np.uint64]
    low: npt.NDArray[np.uint64]
    lowest: int


def noise_table(variance: float) -> NoiseTable:
    """Tables of the discrete Gaussian on the half-integers.

    A draw's total variation distance from the exact law is below 2^-128 for the tail and 2^-145 for each of its values.

    Args:
        variance: kappa in exp(-z^2 / (2 kappa)), from 1 to 10^6.

    Raises:
        ValueError: a variance outside that range.
    """
    if not 1 <= variance <= 1e6:
        raise ValueError(f"Noise is drawn with a variance from 1 to 1,000,000, not {variance}.")
    reach = math.ceil(REACH * math.sqrt(variance))
    doubled = range(-2 * reach + 1, 2 * reach, 2)
    with localcontext() as context:
        context.prec = 80
        # Of 1/2, 3/2, ... relative to the first: q, q^3, q^6, ... for q = exp(-1 / variance).
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
    # A first word settles the draw unless a threshold begins with it.
    rank = np.searchsorted(first, np.arange(1 << FIRST_BITS), side="right")
    settled = (doubled[0] + 2 * rank).astype(np.int16)
    settled[first] = UNSETTLED
    return NoiseTable(settled, first, high, low, doubled[0])


@kernel
def add_noise(counters, weight, words, settled, unsettled):  # type: ignore[no-untyped-def]
    """Double counters, times their weight, and add twice their noise where the first 16 bits settle it.

    Args:
        counters: [shape=(n,), int32], updated; the caller sees to it that they cannot overflow.
        weight: by which a record moves what is published of them.
        words: uniform [shape=(n,), uint16].
        settled: of a :class:`NoiseTable`.
        unsettled: indices that :func:`settle_noise` is to take, written [shape=(n,), int64].

    Returns:
        How many those are.
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
    """Add twice their noise to the counters that :func:`add_noise` has doubled and left.

    Args:
        counters, words: as there.
        unsettled: their indices [shape=(m,), int64].
        more: uniform [shape=(m, 2), uint64].
        first, high, low, lowest: of a :class:`NoiseTable`.
    """
    for j in range(unsettled.size):
        i = unsettled[j]
        # Thresholds increase: those that the first word alone exceeds, and those that begin with it and are reached.
        rank = np.searchsorted(first, words[i])
        while rank < first.size and first[rank] == words[i]:
            if more[j, 0] < high[rank] or (more[j, 0] == high[rank] and more[j, 1] < low[rank]):
                break
            rank += 1
        counters[i] += lowest + 2 * rank


@kernel
def quantise(doubled, steps, bits, out):  # type: ignore[no-untyped-def]
    """Uniform quantiser, symmetric about zero: codes 0 .. 2^bits - 1, cut at 0 and at multiples of the step.

    Args:
        doubled: twice the noised counters, odd numbers [shape=(r, v, b), int32].
        steps: width of a code, per value [shape=(v,), float64].
        bits: 1 to 4.
        out: codes, all of a value's counters in one row [shape=(v, r * b), uint8], written.
    """
    repetitions, values, buckets = doubled.shape
    half = 1 << (bits - 1)
    for j in range(repetitions):
        for v in range(values):
            scale = 0.5 / steps[v]
            row = out[v, j * buckets : (j + 1) * buckets]
            for b in range(buckets):
                # Compared before it is cut: far out, a quotient may not fit an integer.
                at = min(max(np.floor(doubled[j, v, b] * scale), -1.0 * half), half - 1.0)
                row[b] = np.uint8(np.int64(at) + half)


# Sums are of whole numbers that float32 holds exactly, in any order.
@kernel(fastmath={"reassoc", "contract", "nsz"})
def add_products(codes, offset, first, last, total):  # type: ignore[no-untyped-def]
    """Add up products of all pairs of rows, the second row of a pair not after the first.

    Args:
        codes: [shape=(v, t), uint8].
        offset: what to add to twice a code.
        first, last: columns taken.
        total: rows padded to a multiple of 4 [shape=(v, v + 3 or less), float64], updated.
    """
    values, padded = total.shape
    odd = np.zeros((padded, PRODUCT_COLUMNS), np.float32)
    for begin in range(first, last, PRODUCT_COLUMNS):
        count = min(PRODUCT_COLUMNS, last - begin)
        for i in range(values):
            for k in range(count):
                odd[i, k] = np.float32(2 * np.int32(codes[i, begin + k]) + offset)
        for i in range(values):
            one = odd[i]
            for j in range(0, i + 1, 4):
                p, q, r, s = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
                for k in range(count):
                    x = one[k]
                    p += x * odd[j, k]
                    q += x * odd[j + 1, k]
                    r += x * odd[j + 2, k]
                    s += x * odd[j + 3, k]
                total[i, j] += p
                total[i, j + 1] += q
                total[i, j + 2] += r
                total[i, j + 3] += s


def cross_products(
    codes: npt.NDArray[np.uint8], bits: int, advance: Callable[[int, int], None] = silent
) -> npt.NDArray[np.float64]:
    """Mean products of all pairs of rows, codes c standing for the odd numbers 2 c + 1 - 2^bits; exact integers all along.

    Args:
        codes: [shape=(v, t), uint8]; ``bits``: 1 to 4.
        advance: told how many columns have been gone through, and of how many.

    Returns:
        [shape=(v, v), float64]
    """
    values, columns = codes.shape
    compact = np.ascontiguousarray(codes)
    # A table of sums for every thread, and no more.
    workers = numba.get_num_threads()
    totals = np.zeros((workers, values, values + -values % 4))
    step = STEP_COLUMNS * workers
    for first in range(0, columns, step):
        last = min(first + step, columns)
        cuts = [first + (last - first) * w // workers for w in range(workers + 1)]

        def add(worker: int, cuts: list[int] = cuts) -> None:
            add_products(compact, 1 - (1 << bits), cuts[worker], cuts[worker + 1], totals[worker])

        for_each(workers, add)
        advance(last, columns)
    lower = np.tril(totals.sum(axis=0)[:, :values])
    out: npt.NDArray[np.float64] = (lower + np.tril(lower, -1).T) / columns
    return out
