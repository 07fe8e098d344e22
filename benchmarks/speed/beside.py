"""What the encoders' speed is measured beside: hashing every pair, a Python loop, and the machine's own limit."""

import math

import numpy as np
import xxhash
from numba import prange

from vertimrf.kernels.jit import kernel
from vertimrf.kernels.prf import fill_words, keyed_word, tail
from vertimrf.releases.encoder import guess_stops

TILE = 512
# Count sketches: number of records whose places fit into the second-level cache.
PLACES = 1 << 14
# A counter that event streams never use, so these levels are independent of the event-driven ones.
COUNTER = (1 << 24) - 1
SLICE = 512


@kernel(parallel=True)
def encode_dense(k0, k1, digests, codes, first_row, ceiling, table):
    """Raise every sketch to the highest level of its records.

    Args:
        k0, k1: secret key [uint64].
        digests: record digests [shape=(n,), uint64].
        codes: values of the attributes that share these keys [shape=(d, n), uint16].
        first_row: row of each attribute's value 0 [shape=(d,), int64].
        ceiling: highest level; higher ones are clipped.
        table: sketches, updated [shape=(r, k), uint8].
    """
    keys = table.shape[1]
    attributes = first_row.size
    for s in prange(-(-keys // SLICE)):
        begin = s * SLICE
        width = min(SLICE, keys - begin)
        level = np.empty(SLICE, np.uint8)
        number = np.empty(SLICE, np.float64)
        bits = number.view(np.uint64)
        for i in range(digests.size):
            digest = digests[i]
            for k in range(width):
                number[k] = np.float64(
                    keyed_word(k0, k1, digest, tail(begin + k, COUNTER)) | np.uint64(1)
                )
            # Leading zeros plus one, from the exponent of the word as a double (rounding errs once
            # in 2^53).
            for k in range(width):
                level[k] = min(
                    np.uint64(1023 + 64) - (bits[k] >> np.uint64(52)), np.uint64(ceiling)
                )
            for j in range(attributes):
                row = table[first_row[j] + codes[j, i], begin : begin + width]
                for k in range(width):
                    row[k] = max(row[k], level[k])


def roofline_work(plan, party, rows):
    """Only the keyed words and scattered maxima of encoding evenly spread values at a party."""
    tasks = []
    for pair in plan.pairs:
        size = plan.sizes[pair.left if pair.left in party else pair.right]
        counts = np.full(size, -(-rows // size))
        events = pair.keys * 2.0 ** -guess_stops(counts, pair.keys, plan) * counts
        tasks += [
            (pair.keys, round(count) + each, round(count))
            for each, count in zip(counts, events, strict=True)
        ]
    work = np.array(tasks)
    state = np.zeros(int(work[:, 0].sum()), np.uint8)
    offsets = np.cumsum(work[:, 0]) - work[:, 0]
    digests = np.arange(TILE, dtype=np.uint64)
    return lambda: _draw_and_scatter(work, offsets, digests, state)


@kernel(parallel=True)
def _draw_and_scatter(work, offsets, digests, state):
    """Per row: keys, words to draw, writes to scatter [shape=(t, 3)]."""
    for t in prange(len(work)):
        keys = np.uint64(work[t, 0])
        row = state[offsets[t] : offsets[t] + work[t, 0]]
        word = np.empty(TILE, np.uint64)
        written = 0
        for tile in range(-(-work[t, 1] // TILE)):
            fill_words(np.uint64(1), np.uint64(2), digests, TILE, tail(t, tile), word)
            write = min(TILE, work[t, 2] - written)
            written += write
            for a in range(write):
                key = ((word[a] >> np.uint64(32)) * keys) >> np.uint64(32)
                row[key] = max(row[key], np.uint8(word[a] & np.uint64(15)))


def additions_work(plan, codes):
    """Only the additions of encoding some groups' values [shape=(groups, records)], at places that
    need no hash.
    """
    places = np.random.default_rng(0).integers(0, 2 * plan.buckets, PLACES).astype(np.uint32)
    values = sum(plan.sizes[: len(codes)])
    return lambda: _add(places, codes, np.zeros((plan.repetitions, values, plan.buckets), np.int32))


@kernel(parallel=True)
def _add(places, codes, state):
    """Places are twice a bucket plus a sign bit [shape=(PLACES,), uint32]. All groups have the same
    number of values.
    """
    repetitions, values, _ = state.shape
    groups, n = codes.shape
    for j in prange(repetitions):
        for first in range(0, n, places.size):
            count = min(places.size, n - first)
            for g in range(groups):
                table = state[j, g * (values // groups) :]
                code = codes[g, first : first + count]
                for a in range(count):
                    table[code[a], places[a] >> np.uint32(1)] += 1 - 2 * np.int32(
                        places[a] & np.uint32(1)
                    )


def python_work(digests, codes, values, keys):
    """The usual hash: xxhash called from Python for every record and key, and the level from a
    logarithm.
    """
    ids, values_of = [str(digest) for digest in digests.tolist()], codes.tolist()

    def work():
        table = [[0] * keys for _ in range(values)]
        for record, value in zip(ids, values_of, strict=True):
            row = table[value]
            for key in range(keys):
                uniform = (xxhash.xxh64(record.encode(), seed=key).intdigest() + 1) / 2**64
                level = math.floor(-math.log2(uniform)) + 1
                if row[key] < level:
                    row[key] = level

    return work
