"""Geometric sketches, event by event: the maximum level of the records under each of many keys.

Not every pair of record and key is hashed.

Under one key, the level H of a record has P(H <= l) = F(l) = 1 - 2^-l, clipped at the ceiling. Give
every key a hazard axis [0, inf) with a unit-rate Poisson process. With probability F(l), the
process has no point below h(l) = -ln F(l). So the level whose interval [h(l), h(l - 1)) holds the
first point has exactly this law, independently for every key.

For a block of K keys, join their axes level by level, the highest level first, and within a level
key by key. One Poisson process runs through all of them, and a record's exponential gaps jump from
event to event. A sketch row whose smallest level is s needs only the points below K h(s), because
later points cannot raise it. A stream without such points costs one keyed word and one comparison.

The j-th gap is -ln of the j-th keyed word (``prf``), a function of the secret, the record and the
block alone. So parties, chunks, threads and record orders agree. All arithmetic that decides a
level is integer or plain IEEE and written out here, because libm differs between platforms. So
levels are the same on every machine. A gap has a relative error of a few 2^-53 and steps of 2^-64.

Axes: n = records, d = attributes, k = keys of a block, r = sketch rows (values), t = tasks, l =
levels.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np

from ..arrays import Bytes, Codes, Floats, Integers, Words
from .jit import callee, for_each, in_slices, kernel
from .prf import fill_words, tail

# Records per tile; the work arrays of a tile stay in the first-level cache.
TILE = 512
# Fewest records worth a thread if each needs little work.
SHARE = 1 << 15
U64 = np.uint64
LN2 = 0.6931471805599453
# 2^-64, and the high bits of sqrt(1/2) as a double.
UNIT = 1.0 / 18446744073709551616.0
SQRT_HALF = np.int64(0x3FE6A09E00000000)
# 2 artanh(s) / s as a polynomial in s^2. At s = (1 - sqrt(1/2)) / (1 + sqrt(1/2)) the remainder is
# below 2^-55.
C0, C1, C2, C3, C4, C5, C6, C7, C8, C9 = (2.0 / (2 * k + 1) for k in range(10))
LEVEL_SHIFT = 20
ODD = (1 << 20) - 1


def hazards(ceiling: int) -> tuple[Floats, Floats]:
    """Start of each level's interval on the hazard axis, and the reciprocal of its length.

    Args:
        ceiling: highest level; its interval contains all levels above.

    Returns:
        ``start`` and ``per_length`` by level [both shape=(ceiling + 1,), float64]. start[l] is
        -ln(1 - 2^-l) below the ceiling and 0 at it. Values are rounded once from exact arithmetic,
        so they are the same on every platform.
    """
    with localcontext() as context:
        context.prec = 60
        exact = [-(1 - Decimal(2) ** -level).ln() for level in range(1, ceiling)] + [Decimal(0)]
        start = [math.inf] + [float(x) for x in exact]
        # Sketches start at level 1. Below level 2 nothing is walked through; only the sign of a
        # sliver counts.
        per_length = [1.0, 1.0] + [float(1 / (above - x)) for above, x in itertools.pairwise(exact)]
    return np.array(start[: ceiling + 1]), np.array(per_length[: ceiling + 1])


def group_by_value(
    digests: Words,
    codes: Codes,
    size: int,
    grouped: Words,
) -> Integers:
    """Sort the records by value, stably, by counting.

    Args:
        digests: record digests [shape=(n,), uint64].
        codes: values below ``size`` [shape=(n,), uint16].
        size: number of values.
        grouped: the sorted digests, written [shape=(n,), uint64].

    Returns:
        Where the group of each value starts, and their end [shape=(size + 1,), int64].
    """
    least = max(SHARE, 4 * size)
    counted = in_slices(
        codes.size, least, lambda begin, end: (begin, _count(codes, begin, end, size))
    )
    # Where each slice puts its first record of each value: ordered by value, then by slice.
    record_counts = np.stack([counts for _, counts in counted], axis=1)
    ends = record_counts.cumsum().reshape(record_counts.shape)
    places = dict(
        zip(
            [begin for begin, _ in counted],
            np.ascontiguousarray((ends - record_counts).T),
            strict=True,
        )
    )
    starts = np.append(places[0], ends[-1, -1])
    in_slices(
        codes.size,
        least,
        lambda begin, end: _place(digests, codes, begin, end, places[begin], grouped),
    )
    return starts


@kernel
def _count(codes, begin, end, size):  # type: ignore[no-untyped-def]
    counts = np.zeros(size, np.int64)
    for i in range(begin, end):
        counts[codes[i]] += 1
    return counts


@kernel
def _place(digests, codes, begin, end, position, grouped):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        v = codes[i]
        grouped[position[v]] = digests[i]
        position[v] += 1


@kernel
def count_values(codes, first_row, counts):  # type: ignore[no-untyped-def]
    """Add the number of records with each value to ``counts``.

    Args:
        codes: values [shape=(d, n), uint16].
        first_row: row of each attribute's value 0 [shape=(d,), int64].
        counts: counts per row, updated [shape=(r,), int64].
    """
    for j in range(first_row.size):
        for i in range(codes.shape[1]):
            counts[first_row[j] + codes[j, i]] += 1


@kernel
def advance(words, count, per_key, position, fraction, complement):  # type: ignore[no-untyped-def]
    """Move each stream by an exponential gap: position += -ln(word / 2^64) * per_key.

    Args:
        words: keyed words [shape=(at least count,), uint64].
        count: number of streams.
        per_key: 1 / number of keys.
        position: positions, updated [shape=(at least count,), float64].
        fraction, complement: work arrays of the same shape.
    """
    for a in range(count):
        fraction[a] = np.float64(words[a] | np.uint64(1)) * UNIT
        complement[a] = np.float64(~words[a]) * UNIT
    bits = fraction.view(np.int64)
    for a in range(count):
        # fraction = g * 2^octave with g in [sqrt(1/2), sqrt(2)), and -ln g = 2 artanh((1 - g) / (1
        # + g)). In the top octave 1 - g is computed from the word's complement, which keeps tiny
        # gaps exact.
        octave = (bits[a] - SQRT_HALF) >> 52
        bits[a] -= octave << 52
        g = fraction[a]
        short = complement[a] if octave == 0 else 1.0 - g
        s = short / (1.0 + g)
        z = s * s
        z2 = z * z
        z4 = z2 * z2
        low = (C0 + C1 * z) + z2 * (C2 + C3 * z)
        high = ((C4 + C5 * z) + z2 * (C6 + C7 * z)) + z4 * (C8 + C9 * z)
        position[a] += (s * (low + z4 * high) - np.float64(octave) * LN2) * per_key


@kernel
def locate(position, count, start, per_length, keys, place):  # type: ignore[no-untyped-def]
    """Level and key of each point of the hazard axis, packed as level << LEVEL_SHIFT | key.

    h(l) is slightly above 2^-l. So the binary exponent of a position gives its level, except in the
    sliver from 2^-l to h(l), which belongs to level l + 1. There, and where rounding reaches past
    the last key, the key is ODD.
    """
    bits = position.view(np.uint64)
    ceiling = np.uint64(start.size - 1)
    for a in range(count):
        level = min(U64(1023) - (bits[a] >> U64(52)), ceiling)
        key = np.floor((position[a] - start[level]) * per_length[level] * keys)
        place[a] = (level << U64(LEVEL_SHIFT)) | U64(
            np.int64(key if (key >= 0.0) & (key < keys) else ODD)
        )


@kernel
def settle(x, start, per_length, keys):  # type: ignore[no-untyped-def]
    """Packed level and key of the rare points that :func:`locate` marked as ODD."""
    level = min(1023 - (np.float64(x).view(np.int64) >> 52), start.size - 1)
    level += x < start[level]
    key = np.int64((x - start[level]) * per_length[level] * keys)
    return (level << LEVEL_SHIFT) | max(min(key, keys - 1), 0)


@callee(forceinline=True)
def quiet_below(bound, keys):  # type: ignore[no-untyped-def]
    """A bound on first words whose streams have no point under ``bound``, safe under rounding."""
    return np.uint64(np.exp(-bound * keys) * (1.0 - 1e-9) * 18446744073709551616.0)


@kernel
def raise_row(k0, k1, digests, block, stop, row, start, per_length, work, real):  # type: ignore[no-untyped-def]
    """Raise one sketch row to every level above ``stop`` that the given records reach.

    Args:
        k0, k1: secret key [uint64].
        digests: records with the row's value [shape=(n,), uint64].
        block: number of the key block.
        stop: levels up to this one are skipped.
        row: sketch row, updated [shape=(k,), uint8].
        start, per_length: from :func:`hazards`.
        work, real: work arrays [shape=(3, TILE), uint64] and [shape=(3, TILE), float64].
    """
    keys = row.size
    per_key = 1.0 / keys
    bound = start[stop]
    quiet = quiet_below(bound, keys)
    digest = work[0]
    word = work[1]
    place = work[2]
    position = real[0]
    for first in range(0, digests.size, TILE):
        count = min(TILE, digests.size - first)
        tile = digests[first : first + count]
        fill_words(k0, k1, tile, count, tail(block, np.int64(0)), word)
        # A bare 0 is a separate type to Numba, which would compile every callee again.
        kept = np.int64(0)
        for a in range(count):
            u = word[a]
            word[kept] = u
            digest[kept] = tile[a]
            kept += u >= quiet
        count = kept
        for a in range(count):
            position[a] = 0.0
        counter = 0
        while count > 0:
            advance(word, count, per_key, position, real[1], real[2])
            kept = np.int64(0)
            for a in range(count):
                x = position[a]
                position[kept] = x
                digest[kept] = digest[a]
                kept += x < bound
            count = kept
            locate(position, count, start, per_length, keys, place)
            for a in range(count):
                at = np.int64(place[a])
                if at & ODD == ODD:
                    at = np.int64(settle(position[a], start, per_length, keys))
                key = at & ODD
                row[key] = max(row[key], np.uint8(at >> LEVEL_SHIFT))
            counter += 1
            fill_words(k0, k1, digest, count, tail(block, counter), word)


@callee
def smallest(row):  # type: ignore[no-untyped-def]
    """Smallest level of a row."""
    low = row[0]
    for level in row:
        low = min(low, level)
    return low


def encode_rows(
    k0: np.uint64,
    k1: np.uint64,
    digests: Words,
    tasks: Integers,
    shares: Integers,
    start: Floats,
    per_length: Floats,
    state: Bytes,
    minima: Bytes,
) -> None:
    """Raise sketch rows, each by the records with its value (scheduled pairs).

    A task stops at a guess of the row's final minimum. If the row has not reached it, the task
    repeats with the next lower level. So in the end every level is that of all records of the row,
    whatever the guess.

    Args:
        k0, k1: secret key [uint64].
        digests: records grouped by value [shape=(n,), uint64].
        tasks: first record, past-the-last record, key block, keys, offset of the row in ``state``,
            guessed stop level [shape=(t, 6), int64].
        shares: tasks ``shares[w]`` to ``shares[w + 1]`` belong to worker w [shape=(workers + 1,),
            int64].
        start, per_length: from :func:`hazards`.
        state: all sketch rows, updated [flat, uint8].
        minima: a lower bound of each row's levels, updated [shape=(t,), uint8].
    """

    def encode(worker: int) -> None:
        some = slice(shares[worker], shares[worker + 1])
        _encode_tasks(k0, k1, digests, tasks[some], start, per_length, state, minima[some])

    for_each(len(shares) - 1, encode)


@kernel
def _encode_tasks(k0, k1, digests, tasks, start, per_length, state, minima):  # type: ignore[no-untyped-def]
    work = np.empty((3, TILE), np.uint64)
    real = np.empty((3, TILE), np.float64)
    for t in range(minima.size):
        records = digests[tasks[t, 0] : tasks[t, 1]]
        row = state[tasks[t, 4] : tasks[t, 4] + tasks[t, 3]]
        low = np.int64(minima[t])
        stop = max(tasks[t, 5], low)
        if records.size == 0 or low >= start.size - 1:
            continue
        again = True
        while again:
            raise_row(k0, k1, records, tasks[t, 2], stop, row, start, per_length, work, real)
            again = False
            if stop > low:
                low = smallest(row)
                if low < stop:
                    stop = max(low, stop - 1)
                    again = True
        minima[t] = low


def encode_shared(
    k0: np.uint64,
    k1: np.uint64,
    digests: Words,
    codes: Codes,
    first_row: Integers,
    stops: Bytes,
    block: int,
    start: Floats,
    per_length: Floats,
    tables: Bytes,
) -> None:
    """Raise the sketch rows of attributes that share their keys (VertiMRF, Algorithm 3).

    Under a key, a record has the same level in all its attributes. Each worker takes a slice of the
    records and writes to its own table.

    Args:
        k0, k1: secret key [uint64].
        digests: record digests [shape=(n,), uint64].
        codes: values [shape=(d, n), uint16].
        first_row: row of each attribute's value 0 [shape=(d,), int64].
        stops: per row, levels up to this one are skipped [shape=(r,), uint8].
        block: number of the key block.
        start, per_length: from :func:`hazards`.
        tables: one table per worker, updated [shape=(workers, r, k), uint8].
    """
    workers = len(tables)
    cuts = [digests.size * w // workers for w in range(workers + 1)]

    def encode(worker: int) -> None:
        some = (cuts[worker], cuts[worker + 1])
        _encode_slice(
            k0,
            k1,
            digests,
            codes,
            *some,
            first_row,
            stops,
            block,
            start,
            per_length,
            tables[worker],
        )

    for_each(workers, encode)


@kernel
def _encode_slice(  # type: ignore[no-untyped-def]
    k0, k1, digests, codes, begin, end, first_row, stops, block, start, per_length, table
):
    keys = table.shape[1]
    attributes = first_row.size
    per_key = 1.0 / keys
    quiet = np.empty(start.size, np.uint64)
    for level in range(start.size):
        quiet[level] = quiet_below(start[level], keys)
    digest = np.empty(TILE, np.uint64)
    word = np.empty(TILE, np.uint64)
    record = np.empty(TILE, np.int64)
    place = np.empty(TILE, np.uint64)
    stop = np.empty(TILE, np.uint8)
    bound = np.empty(TILE, np.float64)
    position = np.empty(TILE, np.float64)
    fraction = np.empty(TILE, np.float64)
    complement = np.empty(TILE, np.float64)
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        fill_words(k0, k1, digests[first:], count, tail(block, np.int64(0)), word)
        for a in range(count):
            stop[a] = start.size - 1
        for j in range(attributes):
            for a in range(count):
                stop[a] = min(stop[a], stops[first_row[j] + codes[j, first + a]])
        kept = np.int64(0)
        for a in range(count):
            u = word[a]
            word[kept] = u
            digest[kept] = digests[first + a]
            record[kept] = first + a
            bound[kept] = start[stop[a]]
            kept += u >= quiet[stop[a]]
        count = kept
        for a in range(count):
            position[a] = 0.0
        counter = 0
        while count > 0:
            advance(word, count, per_key, position, fraction, complement)
            kept = np.int64(0)
            for a in range(count):
                x = position[a]
                limit = bound[a]
                position[kept] = x
                bound[kept] = limit
                digest[kept] = digest[a]
                record[kept] = record[a]
                kept += x < limit
            count = kept
            locate(position, count, start, per_length, keys, place)
            for a in range(count):
                at = np.int64(place[a])
                if at & ODD == ODD:
                    at = np.int64(settle(position[a], start, per_length, keys))
                key = at & ODD
                reached = np.uint8(at >> LEVEL_SHIFT)
                for j in range(attributes):
                    row = first_row[j] + codes[j, record[a]]
                    table[row, key] = max(table[row, key], reached)
            counter += 1
            fill_words(k0, k1, digest, count, tail(block, counter), word)
