"""Sketch throughput on this machine, compared with hashing every record under every key."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import numba
import numpy as np
import xxhash
from numba import prange

from .arrays import Codes, Words
from .errors import PlanError
from .kernels import warmup
from .kernels.dense import encode_dense
from .kernels.jit import parallel_kernel, threads
from .kernels.prf import fill_words, tail
from .sketches.count_sketch import CountSketchEncoder
from .sketches.encoder import SketchEncoder, guess_stops
from .sketches.parameters import BUCKETS, CountSketchPlan, ScheduledPair, SketchPlan

__all__ = [
    "additions_work",
    "bench_plan",
    "count_bench_plan",
    "python_work",
    "roofline_work",
    "run_bench",
]

PHANTOMS, FLOOR, CEILING = 6326, 9, 20
REPEATS = 3
# Number of (record, key) pairs for the slow references: enough for a timing.
DENSE_PAIRS = 200_000_000
PYTHON_PAIRS = 200_000
TILE = 512
# Count sketches: largest number of buckets of a repetition, and number of records whose places fit
# into the second-level cache.
MAX_BUCKETS = 2048
PLACES = 1 << 14


def bench_plan(attributes: int, values: int, keys: int) -> SketchPlan:
    """A plan with every pair across two parties scheduled.

    The columns of a table are split equally between the parties.

    Args:
        attributes: number of columns.
        values: number of codes of each column.
        keys: number of hash keys over all pairs.

    Raises:
        PlanError: there are fewer than two attributes, or fewer keys than pairs.
    """
    if attributes < 2:
        raise PlanError(
            f"A benchmark needs at least 2 attributes, one for each party, not {attributes}."
        )
    half = attributes // 2
    sides = [(left, right) for left in range(half) for right in range(half, attributes)]
    if keys < len(sides):
        raise PlanError(
            f"{keys} keys cannot serve {len(sides)} scheduled pairs; give at least one to each."
        )
    edges = [keys * i // len(sides) for i in range(len(sides) + 1)]
    pairs = tuple(
        ScheduledPair(left, right, edges[i + 1] - edges[i]) for i, (left, right) in enumerate(sides)
    )
    return SketchPlan(PHANTOMS, FLOOR, CEILING, pairs, (values,) * attributes)


def count_bench_plan(attributes: int, values: int, keys: int) -> CountSketchPlan:
    """A plan for count sketches with about as many counters for each value as there are keys."""
    buckets = max((b for b in BUCKETS if b <= min(keys, MAX_BUCKETS)), default=BUCKETS[0])
    return CountSketchPlan(
        max(keys // buckets, 1), buckets, 2.0 * attributes, 4, (values,) * attributes
    )


def run_bench(
    rows: int = 1_000_000,
    attributes: int = 8,
    values: int = 8,
    keys: int = 131_072,
    num_threads: int | None = None,
) -> dict[str, float]:
    """Time the encoding of a random table at both parties, and alternatives on a part of it.

    Args:
        rows: number of records.
        attributes: number of columns. Each party has half of them.
        values: domain size of each column.
        keys: number of hash keys in total.
        num_threads: number of threads of the kernels. None keeps the setting.

    Returns:
        The parameters, and:

        - ``encode_seconds``: median of the encoding at both parties, including phantoms;
        - ``pairs_per_second``: (record, key) pairs of both parties per second of that time;
        - ``dense_pairs_per_second``: the same for a compiled kernel that hashes every pair;
        - ``python_pairs_per_second``: the same for xxhash, called from Python for every pair;
        - ``roofline_seconds``: time of only the encoder's random words and scattered maxima;
        - ``count_sketch_seconds``: both parties' count sketches with as many counters a value;
        - ``count_sketch_roofline_seconds``: time of only their additions, at given places.

    Raises:
        PlanError: a parameter is below 1, or there are too few attributes or keys.
    """
    if min(rows, values, keys) < 1:
        raise PlanError(
            f"Rows, values and keys must be at least 1, not {rows}, {values} and {keys}."
        )
    plan = bench_plan(attributes, values, keys)
    rng = np.random.default_rng(0)
    digests = rng.integers(0, 2**64, rows, dtype=np.uint64)
    codes = rng.integers(0, values, (attributes, rows), dtype=np.uint16)
    half = attributes // 2
    parties = [list(range(half)), list(range(half, attributes))]
    secret = bytes(32)
    few = min(PYTHON_PAIRS // 1000, rows)

    def encode() -> None:
        for party in parties:
            encoder = SketchEncoder(plan, party, secret)
            encoder.update(digests, codes[party[0] : party[-1] + 1])
            encoder.result()

    counting = count_bench_plan(attributes, values, keys)
    counts = np.full(values, rows / values)

    def count() -> None:
        for party in parties:
            encoder = CountSketchEncoder(counting, party, secret)
            encoder.update(digests, codes[party[0] : party[-1] + 1])
            encoder.result([counts] * len(party))

    with threads(num_threads):
        warmup()
        seconds = _median(encode)
        return {
            "rows": rows,
            "attributes": attributes,
            "values": values,
            "keys": keys,
            "threads": numba.get_num_threads(),
            "encode_seconds": seconds,
            "pairs_per_second": 2 * rows * keys / seconds,
            "dense_pairs_per_second": _dense(digests, codes[:1], values, keys),
            "python_pairs_per_second": few
            * 1000
            / _median(python_work(digests[:few], codes[0, :few], values, 1000)),
            "roofline_seconds": sum(_median(roofline_work(plan, party, rows)) for party in parties),
            "count_sketch_seconds": _median(count),
            "count_sketch_roofline_seconds": sum(
                _median(additions_work(counting, codes[party[0] : party[-1] + 1]))
                for party in parties
            ),
        }


def roofline_work(plan: SketchPlan, party: list[int], rows: int) -> Callable[[], None]:
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


@parallel_kernel
def _draw_and_scatter(work, offsets, digests, state):  # type: ignore[no-untyped-def]
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


def additions_work(plan: CountSketchPlan, codes: Codes) -> Callable[[], None]:
    """Only the additions of encoding some groups' values [shape=(groups, records)], at places that
    need no hash.
    """
    places = np.random.default_rng(0).integers(0, 2 * plan.buckets, PLACES).astype(np.uint32)
    values = sum(plan.sizes[: len(codes)])
    return lambda: _add(places, codes, np.zeros((plan.repetitions, values, plan.buckets), np.int32))


@parallel_kernel
def _add(places, codes, state):  # type: ignore[no-untyped-def]
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


def _dense(digests: Words, codes: Codes, values: int, keys: int) -> float:
    """(record, key) pairs per second of the dense kernel."""
    records = min(max(DENSE_PAIRS // keys, 1), len(digests))
    few, codes = digests[:records], np.ascontiguousarray(codes[:, :records])
    first_row = np.zeros(1, np.int64)
    table = np.zeros((values, keys), np.uint8)
    encode_dense(
        np.uint64(1), np.uint64(2), few[:1], codes[:, :1].copy(), first_row, CEILING, table
    )
    seconds = _median(
        lambda: encode_dense(np.uint64(1), np.uint64(2), few, codes, first_row, CEILING, table)
    )
    return records * keys / seconds


def python_work(digests: Words, codes: Codes, values: int, keys: int) -> Callable[[], None]:
    """The usual hash: xxhash called from Python for every record and key, and the level from a
    logarithm.
    """
    ids, values_of = [str(digest) for digest in digests.tolist()], codes.tolist()

    def work() -> None:
        table = [[0] * keys for _ in range(values)]
        for record, value in zip(ids, values_of, strict=True):
            row = table[value]
            for key in range(keys):
                uniform = (xxhash.xxh64(record.encode(), seed=key).intdigest() + 1) / 2**64
                level = math.floor(-math.log2(uniform)) + 1
                if row[key] < level:
                    row[key] = level

    return work


def _median(action: Callable[[], object]) -> float:
    """Median time of a few calls, seconds."""
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)
