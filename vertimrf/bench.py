"""Sketch throughput on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numba
import numpy as np

from .errors import PlanError
from .kernels import warmup
from .kernels.jit import threads
from .releases.count_sketches.encoding import CountSketchEncoder
from .releases.count_sketches.parameters import BUCKETS, CountSketches
from .releases.encoder import SketchEncoder
from .releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs

PHANTOMS, FLOOR, CEILING = 6326, 9, 20
REPEATS = 3
# Count sketches: largest number of buckets of a repetition.
MAX_BUCKETS = 2048
# Most cells of the table, and most counters of all values and attributes: some gigabytes each.
MAX_CELLS, MAX_COUNTERS = 1 << 31, 1 << 31


def bench_plan(attributes: int, values: int, keys: int) -> ScheduledPairs:
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
    return ScheduledPairs(PHANTOMS, FLOOR, CEILING, pairs, (values,) * attributes)


def count_bench_plan(attributes: int, values: int, keys: int) -> CountSketches:
    """A plan for count sketches with about as many counters for each value as there are keys."""
    buckets = max((b for b in BUCKETS if b <= min(keys, MAX_BUCKETS)), default=BUCKETS[0])
    return CountSketches(
        max(keys // buckets, 1), buckets, 2.0 * attributes, 4, (values,) * attributes
    )


def run_bench(
    rows: int = 1_000_000,
    attributes: int = 8,
    values: int = 8,
    keys: int = 131_072,
    num_threads: int | None = None,
) -> dict[str, float]:
    """Time the encoding of a random table at both parties.

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
        - ``count_sketch_seconds``: both parties' count sketches with as many counters a value.

    Raises:
        PlanError: a parameter is below 1, there are too few attributes or keys, or the tables would
            be too large.
    """
    if min(rows, values, keys) < 1:
        raise PlanError(
            f"Rows, values and keys must be at least 1, not {rows}, {values} and {keys}."
        )
    if rows * attributes > MAX_CELLS or attributes * values * keys > MAX_COUNTERS:
        raise PlanError(
            f"A benchmark has at most {MAX_CELLS:,} cells (rows times attributes) and {MAX_COUNTERS:,} counters (attributes times "
            "values times keys); lower one of them."
        )
    plan = bench_plan(attributes, values, keys)
    rng = np.random.default_rng(0)
    digests = rng.integers(0, 2**64, rows, dtype=np.uint64)
    codes = rng.integers(0, values, (attributes, rows), dtype=np.uint16)
    half = attributes // 2
    parties = [list(range(half)), list(range(half, attributes))]
    secret = bytes(32)

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
            "count_sketch_seconds": _median(count),
        }


def _median(action: Callable[[], object]) -> float:
    """Median time of a few calls, seconds."""
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)
