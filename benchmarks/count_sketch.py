"""Count sketches: encoding beside the same additions without a hash, and all pairs of a table to measurements.

    python benchmarks/count_sketch.py [--smoke] [--json FILE]

Then ten times the rows in chunks: how much longer it takes, and whether it takes more memory.

Kernels are warm and set-up is outside the timed calls. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict import SMOKE, Verdict, arguments, conclude, show
from vertimrf.bench import additions_work
from vertimrf.files.bits import pack_bits
from vertimrf.sketches.count_intersections import CountedGroup, estimate_cells
from vertimrf.sketches.count_sketch import CountSketchEncoder
from vertimrf.sketches.parameters import CountSketchPlan

Action = Callable[[], Any]
# t = 262,144 numbers a value, 8 attributes of 8 values at one party; 15 attributes of two.
PLAN = CountSketchPlan(128, 2048, 32.0, 4, (8,) * 8)
ADULT = CountSketchPlan(128, 2048, 30.0, 4, (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2))
CHUNK = 10**6


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


def seconds(action: Action) -> tuple[float, float]:
    """Median wall and processor seconds of three calls, warm."""
    action()
    spent = []
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        action()
        spent.append((time.perf_counter() - wall, time.process_time() - processor))
    return tuple(statistics.median(column) for column in zip(*spent, strict=True))  # type: ignore[return-value]


def measured(rows: int) -> Iterator[Verdict]:
    """Encoding, the same additions, all pairs; then ten times the rows."""
    timed = {"encoding": encode(rows), "the same additions without a hash": additions(rows), "all pairs of Adult": all_pairs()}
    spent = {name: seconds(action) for name, action in timed.items()}
    for name, (wall, processor) in spent.items():
        yield Verdict(f"{name}, {rows:,} rows: s", wall)
        yield Verdict(f"{name}, {rows:,} rows: s of processors", processor)
    (_, hashed), (_, bare), _ = spent.values()
    yield Verdict("encoding, times the additions, by processor time", hashed / bare)
    taken, peak = [], []
    for many in (rows, 10 * rows):
        begin = time.process_time()
        encode(many)()
        taken.append(time.process_time() - begin)
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    yield Verdict("ten times the rows in chunks, times as long, by processor time", taken[1] / taken[0])
    yield Verdict("ten times the rows in chunks, times the memory", peak[1] / peak[0])


def main() -> None:
    options = arguments(__doc__).parse_args()
    verdicts = show(measured(10_000 if options.size == SMOKE else CHUNK), "count_sketch", options.size)
    sys.exit(conclude(verdicts, options.json, options.size))


if __name__ == "__main__":
    main()
