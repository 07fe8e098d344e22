"""The encoder of scheduled pairs beside hashing every pair, a Python loop, and the machine's own limit, within one run.

    python benchmarks/encode.py [--smoke] [--json FILE]

Set-up is outside the timed calls and kernels are warm. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict import SMOKE, Verdict, arguments, conclude, show
from vertimrf.bench import bench_plan, python_work, roofline_work
from vertimrf.kernels import warmup
from vertimrf.kernels.dense import encode_dense
from vertimrf.kernels.digest import digest_strings
from vertimrf.kernels.jit import threads
from vertimrf.published.shared_keys import SharedKeyEncoder
from vertimrf.sketches.encoder import SketchEncoder
from vertimrf.sketches.parameters import SharedKeyPlan

Action = Callable[[], Any]
SECRET = bytes(32)
# The last is a UUID's.
ID_BYTES = (8, 16, 24, 36)


def table(n: int, d: int, u: int) -> tuple[np.ndarray, np.ndarray]:
    """Digests and uniform codes of a random table."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 2**64, n, dtype=np.uint64), rng.integers(0, u, (d, n), dtype=np.uint16)


def encode_pairs(n: int, d: int, u: int, t: int, chunk: int | None = None) -> Action:
    """Both parties of a table of d attributes, from arrays to published levels."""
    plan = bench_plan(d, u, t)
    digests, codes = table(n, d, u)
    sides = (range(d // 2), range(d // 2, d))

    def action() -> None:
        for side in sides:
            encoder = SketchEncoder(plan, tuple(side), SECRET)
            for at in range(0, n, chunk or n):
                part = slice(at, at + (chunk or n))
                encoder.update(digests[part], codes[side.start : side.stop, part])
            encoder.result()

    return action


def encode_shared_keys(n: int, d: int, u: int, t: int) -> Action:
    """The published encoder: d attributes at one party, all under the same keys."""
    plan = SharedKeyPlan(6326, 9, 20, t, (u,) * d)
    digests, codes = table(n, d, u)

    def action() -> None:
        encoder = SharedKeyEncoder(plan, range(d), SECRET)
        encoder.update(digests, codes)
        encoder.result()

    return action


def encode_every_pair(n: int, d: int, u: int, t: int) -> Action:
    """The dense kernel, d attributes under the same keys."""
    digests, codes = table(n, d, u)
    first_row = np.arange(d) * u
    levels = np.ones((d * u, t), np.uint8)
    return lambda: encode_dense(np.uint64(1), np.uint64(2), digests, codes, first_row, 20, levels)


def python_loop(n: int, u: int, t: int) -> Action:
    """xxhash called from Python for every record and key."""
    digests, codes = table(n, 1, u)
    return python_work(digests, codes[0], u, t)


def string_ids(n: int, width: int) -> tuple[Action, Action]:
    """Digests of n string ids of so many bytes: keyed, in bulk from an Arrow buffer; unkeyed, in a Python loop over xxhash."""
    ids = [f"{i:0{width}d}" for i in range(n)]
    data = np.frombuffer("".join(ids).encode(), np.uint8)
    offsets = np.arange(0, width * n + 1, width, dtype=np.int64)
    return lambda: digest_strings(SECRET[:16], offsets, data), lambda: [xxhash.xxh64_intdigest(x.encode()) for x in ids]


def medians(*actions: Action, rounds: int = 5) -> list[float]:
    """Median seconds of each action; they take turns, so that a disturbance hits all of them alike."""
    for action in actions:
        action()
    seconds: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for action, taken in zip(actions, seconds, strict=True):
            begin = time.perf_counter()
            action()
            taken.append(time.perf_counter() - begin)
    return [statistics.median(taken) for taken in seconds]


def compile_seconds() -> tuple[float, float]:
    """A fresh process's warm-up into an empty cache, and another's from it (interpreter and imports included)."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        seconds = []
        for _ in range(2):
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", "from vertimrf.kernels import warmup; warmup()"], env=environment, check=True
            )
            seconds.append(time.perf_counter() - begin)
    return seconds[0], seconds[1]


def with_threads(count: int, action: Action) -> Action:
    """The same on so many threads."""

    def run() -> None:
        with threads(count):
            action()

    return run


def rows(smoke: bool) -> Iterator[Verdict]:
    """Every figure; at smoke size of a hundredth of the records and keys."""
    warmup()
    million, keys = (10_000, 1024) if smoke else (10**6, 131_072)
    plan = bench_plan(8, 8, keys)
    works = [roofline_work(plan, side, million) for side in ([0, 1, 2, 3], [4, 5, 6, 7])]
    base, roof, dense, loop, eightfold = medians(
        encode_pairs(million, 8, 8, keys),
        lambda: [work() for work in works],
        encode_every_pair(1000, 1, 8, keys),
        python_loop(5 if smoke else 500, 8, 1000),
        encode_pairs(million, 8, 8, 8 * keys),
    )
    pair = base / (2 * million * keys)
    yield Verdict(f"encode n={million:,} d=8 u=8 t={keys:,}, both parties [s]", base)
    yield Verdict("  (record, key) pairs per second", 1 / pair)
    yield Verdict("  per pair, times the dense kernel", dense / (1000 * keys) / pair)
    yield Verdict("  per pair, times the Python loop over xxhash", loop / (5000 if smoke else 500 * 1000) / pair)
    yield Verdict("  times the roofline", base / roof)
    yield Verdict("eight times the keys, times as long", eightfold / base)
    few, many = medians(
        encode_pairs(million, 8, 8, keys), encode_pairs(10 * million, 8, 8, keys, chunk=million), rounds=3
    )
    yield Verdict("ten times the records in chunks, times as long", many / few)
    shared, dense_shared = medians(encode_shared_keys(million, 8, 8, 2000), encode_every_pair(million // 50, 8, 8, 2000))
    yield Verdict("published shared keys, t=2,000, times dense", dense_shared / (million // 50) / (shared / million))
    for width in ID_BYTES:
        bulk, each = medians(*string_ids(million, width))
        yield Verdict(f"string ids of {width} bytes to keyed digests, times a Python loop over xxhash", each / bulk)
    one, two = medians(*(with_threads(count, encode_pairs(million, 8, 8, keys)) for count in (1, 2)))
    yield Verdict("2 threads, times 1 thread", one / two)
    if not smoke:
        cold, cached = compile_seconds()
        yield Verdict("cold compilation, whole process [s]", cold)
        yield Verdict("second process, from the cache [s]", cached)


def main() -> None:
    options = arguments(__doc__).parse_args()
    verdicts = show(rows(options.size == SMOKE), "encode", options.size)
    sys.exit(conclude(verdicts, options.json, options.size))


if __name__ == "__main__":
    main()
