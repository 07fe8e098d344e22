"""Count sketches: encoding beside the same additions without a hash, and all pairs of a table to measurements.

    pytest benchmarks/bench_count_sketch.py
    python -m benchmarks.bench_count_sketch [--rows 1000000]   the ratio, within one run
    python -m benchmarks.bench_count_sketch --stream           ten times the rows in chunks: times as long, and no more memory

Kernels are warm and set-up is outside the timed calls. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vertimrf.bench import additions_work
from vertimrf.files.bits import pack_bits
from vertimrf.sketches.count_intersections import CountedGroup, estimate_cells
from vertimrf.sketches.count_sketch import CountSketchEncoder
from vertimrf.sketches.parameters import CountSketchPlan

from .verdict import at_most, conclude

Action = Callable[[], Any]
# t = 262,144 numbers a value, 8 attributes of 8 values at one party; 15 attributes of two.
PLAN = CountSketchPlan(128, 2048, 32.0, 4, (8,) * 8)
ADULT = CountSketchPlan(128, 2048, 30.0, 4, (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2))
CHUNK = 10**6
STREAMED_RATIO, STREAMED_MEMORY = 10.5, 1.05


def encode(rows: int, chunk: int = CHUNK) -> Action:
    """From arrays to packed codes."""
    rng = np.random.default_rng(0)
    size = min(rows, chunk)
    digests = rng.integers(0, 2**64, size, dtype=np.uint64)
    codes = rng.integers(0, 8, (8, size)).astype(np.uint16)
    held = [np.full(8, rows / 8)] * 8

    def action() -> None:
        encoder = CountSketchEncoder(PLAN, range(8), bytes(32))
        for first in range(0, rows, size):
            # Fresh records for every chunk, at next to no cost.
            encoder.update(digests + np.uint64(first), codes)
        for table in encoder.result(held):
            pack_bits(table, PLAN.bits)

    return action


def additions(rows: int) -> Action:
    """The same additions without a hash, noise or codes."""
    return additions_work(PLAN, np.random.default_rng(0).integers(0, 8, (8, rows)).astype(np.uint16))


def all_pairs() -> Action:
    """Every pair of Adult's attributes, from unpacked codes to counts with errors."""
    rng = np.random.default_rng(0)
    groups = [
        CountedGroup(rng.integers(0, 16, (u, ADULT.numbers)).astype(np.uint8), *[np.full(u, 45_222 / u)] * 2, np.zeros(u))
        for u in ADULT.sizes
    ]
    return lambda: estimate_cells(ADULT, groups, 45_222)


@pytest.mark.parametrize(
    ("make", "rows"), [(encode, 10**5), (encode, 10**6), (additions, 10**6)], ids=["10^5", "10^6", "10^6, additions alone"]
)
def test_encoding(benchmark: Any, make: Callable[[int], Action], rows: int) -> None:
    benchmark.pedantic(make(rows), rounds=3, warmup_rounds=1)


def test_all_pairs_of_adult(benchmark: Any) -> None:
    benchmark.pedantic(all_pairs(), rounds=3, warmup_rounds=1)


def seconds(action: Action) -> tuple[float, float]:
    """Median wall and processor seconds of three calls, warm."""
    action()
    spent = []
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        action()
        spent.append((time.perf_counter() - wall, time.process_time() - processor))
    return tuple(statistics.median(column) for column in zip(*spent, strict=True))  # type: ignore[return-value]


def stream(rows: int) -> int:
    """Streams a table, and one of ten times the rows, and holds the second against the first."""
    encode(min(rows, CHUNK))()
    spent, peak = [], []
    for many in (rows, 10 * rows):
        begin = time.process_time()
        encode(many)()
        spent.append(time.process_time() - begin)
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print(f"{many:,} rows streamed: {spent[-1]:.2f} s of processors, {peak[-1]:.0f} MiB at most so far")
    return conclude([
        at_most("time of ten times the rows, over", spent[1] / spent[0], STREAMED_RATIO),
        at_most("memory of ten times the rows, over", peak[1] / peak[0], STREAMED_MEMORY),
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--stream", action="store_true", help="compare with ten times the rows")
    options = parser.parse_args()
    rows = options.rows
    if options.stream:
        sys.exit(stream(rows))
    timed = {"encoding": encode(rows), "the same additions without a hash": additions(rows), "all pairs of Adult": all_pairs()}
    spent = {name: seconds(action) for name, action in timed.items()}
    for name, (wall, processor) in spent.items():
        print(f"{name}: {wall:.2f} s, {processor:.2f} s of processors")
    (_, hashed), (_, bare), _ = spent.values()
    print(f"encoding / additions: {hashed / bare:.2f} by processor time")


if __name__ == "__main__":
    main()
