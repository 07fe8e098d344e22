"""The sketch encoder beside hashing every pair, a Python loop, DataSketches, and the machine's own limit.

    pytest benchmarks/bench_encode.py             every measurement, with growth over n, t, d, u and threads
    python benchmarks/bench_encode.py [--json F]  the bars: ratios within one run

Set-up is outside the timed calls and kernels are warm. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict import Verdict, at_least, at_most, conclude, show
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
THREADS = [count for count in (1, 2, 4, 8, 16) if count <= numba.config.NUMBA_NUM_THREADS]


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


def datasketches_hll(n: int, u: int) -> Action:
    """One HyperLogLog sketch of 4,096 registers per value, updated from Python: what is off the shelf, without keys."""
    datasketches = pytest.importorskip("datasketches")
    digests, codes = table(n, 1, u)
    ids, held = digests.astype(np.int64).tolist(), codes[0].tolist()

    def action() -> None:
        sketches = [datasketches.hll_sketch(12) for _ in range(u)]
        for record, value in zip(ids, held, strict=True):
            sketches[value].update(record)

    return action


def string_ids(n: int, width: int = 15) -> tuple[Action, Action]:
    """Digests of n string ids of so many bytes: keyed, in bulk from an Arrow buffer; unkeyed, in a Python loop over xxhash."""
    ids = [f"{i:0{width}d}" for i in range(n)]
    data = np.frombuffer("".join(ids).encode(), np.uint8)
    offsets = np.arange(0, width * n + 1, width, dtype=np.int64)
    return lambda: digest_strings(SECRET[:16], offsets, data), lambda: [xxhash.xxh64_intdigest(x.encode()) for x in ids]


def measure(benchmark: Any, action: Action, pairs: int) -> None:
    """Time an action, and note its (record, key) pairs per second."""
    warmup()
    benchmark.pedantic(action, rounds=3, warmup_rounds=1)
    if not benchmark.disabled:
        benchmark.extra_info["pairs_per_second"] = pairs / benchmark.stats.stats.median


@pytest.mark.parametrize("n", [10**4, 10**5, 10**6, 10**7])
def test_growth_over_records(benchmark: Any, n: int) -> None:
    measure(benchmark, encode_pairs(n, 8, 8, 131_072, chunk=10**6), 2 * n * 131_072)


@pytest.mark.parametrize("t", [10**3, 10**4, 10**5, 131_072, 10**6])
def test_growth_over_keys(benchmark: Any, t: int) -> None:
    measure(benchmark, encode_pairs(10**6, 8, 8, t), 2 * 10**6 * t)


@pytest.mark.parametrize("d", [2, 4, 8, 16])
def test_growth_over_attributes(benchmark: Any, d: int) -> None:
    measure(benchmark, encode_pairs(10**6, d, 8, 131_072), 2 * 10**6 * 131_072)


@pytest.mark.parametrize("u", [2, 8, 41])
def test_growth_over_values(benchmark: Any, u: int) -> None:
    measure(benchmark, encode_pairs(10**6, 8, u, 131_072), 2 * 10**6 * 131_072)


@pytest.mark.parametrize("num_threads", THREADS)
def test_growth_over_threads(benchmark: Any, num_threads: int) -> None:
    with threads(num_threads):
        measure(benchmark, encode_pairs(10**6, 8, 8, 131_072), 2 * 10**6 * 131_072)


def test_roofline(benchmark: Any) -> None:
    plan = bench_plan(8, 8, 131_072)
    works = [roofline_work(plan, side, 10**6) for side in ([0, 1, 2, 3], [4, 5, 6, 7])]
    measure(benchmark, lambda: [work() for work in works], 2 * 10**6 * 131_072)


def test_shared_keys(benchmark: Any) -> None:
    measure(benchmark, encode_shared_keys(10**6, 8, 8, 2000), 10**6 * 2000)


def test_dense_kernel(benchmark: Any) -> None:
    measure(benchmark, encode_every_pair(1000, 1, 8, 131_072), 1000 * 131_072)


def test_dense_kernel_shared_keys(benchmark: Any) -> None:
    measure(benchmark, encode_every_pair(50_000, 8, 8, 2000), 50_000 * 2000)


def test_python_loop_over_xxhash(benchmark: Any) -> None:
    measure(benchmark, python_loop(500, 8, 1000), 500 * 1000)


def test_datasketches_hll(benchmark: Any) -> None:
    measure(benchmark, datasketches_hll(10**5, 8), 10**5)


@pytest.mark.parametrize("width", ID_BYTES)
@pytest.mark.parametrize("how", ["bulk", "loop"])
def test_digests_of_string_ids(benchmark: Any, how: str, width: int) -> None:
    measure(benchmark, string_ids(10**6, width)[how == "loop"], 10**6)


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


def bars() -> list[Verdict]:
    """Every bar: what was measured, and what it must reach."""
    warmup()
    million, keys = 10**6, 131_072
    plan = bench_plan(8, 8, keys)
    works = [roofline_work(plan, side, million) for side in ([0, 1, 2, 3], [4, 5, 6, 7])]
    base, roof, dense, loop, eightfold = medians(
        encode_pairs(million, 8, 8, keys),
        lambda: [work() for work in works],
        encode_every_pair(1000, 1, 8, keys),
        python_loop(500, 8, 1000),
        encode_pairs(million, 8, 8, 8 * keys),
    )
    pair = base / (2 * million * keys)
    few, many = medians(
        encode_pairs(million, 8, 8, keys), encode_pairs(10 * million, 8, 8, keys, chunk=million), rounds=3
    )
    small, large = medians(encode_pairs(10**5, 8, 8, 10**5), encode_pairs(million, 8, 8, million), rounds=3)
    one, two = medians(*(with_threads(count, encode_pairs(million, 8, 8, keys)) for count in (1, 2)))
    shared, dense_shared = medians(encode_shared_keys(million, 8, 8, 2000), encode_every_pair(20_000, 8, 8, 2000))
    hashed = {width: medians(*string_ids(million, width)) for width in ID_BYTES}
    cold, cached = compile_seconds()
    return [
        Verdict("encode n=1e6 d=8 u=8 t=131,072, both parties [s]", base),
        Verdict("  (record, key) pairs per second", 1 / pair),
        at_least("  per pair, times the dense kernel", dense / (1000 * keys) / pair, 150),
        at_least("  per pair, times the Python loop over xxhash", loop / (500 * 1000) / pair, 1e5),
        at_most("  times the roofline", base / roof, 3),
        at_most("t=1,048,576, times t=131,072", eightfold / base, 5),
        at_most("n=1e7 in chunks of 1e6, times n=1e6", many / few, 10),
        Verdict("(1e6, 1e6) over (1e5, 1e5), n*t being 100 times larger", large / small),
        at_least("published shared keys n=1e6 t=2,000, times dense", dense_shared / 20_000 / (shared / million), 100),
        *(
            at_least(f"1e6 string ids of {width} bytes to keyed digests, times a Python loop over xxhash", each / bulk, 10)
            for width, (bulk, each) in hashed.items()
        ),
        at_least("2 threads, times 1 thread", one / two, 1.8),
        at_most("cold compilation, whole process [s]", cold, 15),
        at_most("second process, from the cache [s]", cached, 1),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    with threads(arguments.threads):
        verdicts = show(bars())
    sys.exit(conclude(verdicts, arguments.json))


if __name__ == "__main__":
    main()
