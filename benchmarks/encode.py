"""The encoders' speed, within one run: count sketches beside the same additions without a hash, and ten times the rows in chunks;
scheduled pairs beside hashing every pair, a Python loop, and the machine's own limit.

    python benchmarks/encode.py [--quick | --smoke] [--json FILE]

Set-up is outside the timed calls and kernels are warm. Run it on an otherwise idle machine. --quick leaves out what takes
longest: more keys and records, ids, compilation.
"""

import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.baselines import additions_work, encode_dense, python_work, roofline_work
from benchmarks.verdict import QUICK, SMOKE, Verdict, arguments, finish
from vertimrf.bench import bench_plan
from vertimrf.files.bits import pack_bits
from vertimrf.kernels import warmup
from vertimrf.kernels.digest import digest_integers, digest_strings
from vertimrf.kernels.geometric import encode_rows, hazards
from vertimrf.kernels.jit import threads
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.sketch import CEILING, Sketch

SECRET = bytes(32)
# The last is a UUID's.
ID_BYTES = (8, 16, 24, 36)
# t = 262,144 counters a value, 8 attributes of 8 values at one party.
COUNTED = CountSketches(128, 2048, 32.0, 4, (8,) * 8)
CHUNK = 10**6


def table(n, d, u):
    """Digests and uniform codes of a random table."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 2**64, n, dtype=np.uint64), rng.integers(0, u, (d, n), dtype=np.uint16)


def encode_pairs(n, d, u, t, chunk=None):
    """Both parties of a table of d attributes, from arrays to published levels."""
    plan = bench_plan(d, u, t)
    digests, codes = table(n, d, u)
    sides = (range(d // 2), range(d // 2, d))

    def action():
        for side in sides:
            encoder = SketchEncoder(plan, tuple(side), SECRET)
            for at in range(0, n, chunk or n):
                part = slice(at, at + (chunk or n))
                encoder.update(digests[part], codes[side.start : side.stop, part])
            encoder.result()

    return action


def encode_counted(rows, chunk=CHUNK):
    """Count sketches of a party, from arrays to packed codes."""
    size = min(rows, chunk)
    digests, codes = table(size, 8, 8)
    totals = [np.full(8, rows / 8)] * 8

    def action():
        encoder = CountSketchEncoder(COUNTED, range(8), SECRET)
        for first in range(0, rows, size):
            # Fresh records for every chunk, at next to no cost.
            encoder.update(digests + np.uint64(first), codes)
        for counters in encoder.result(totals):
            pack_bits(counters, COUNTED.bits)

    return action


def encode_shared_keys(n, d, u, t):
    """The published encoder: d attributes at one party, all under the same keys."""
    plan = SharedKeys(6326, 9, 20, t, (u,) * d)
    digests, codes = table(n, d, u)

    def action():
        encoder = SharedKeyEncoder(plan, range(d), SECRET)
        encoder.update(digests, codes)
        encoder.result()

    return action


def encode_every_pair(n, d, u, t):
    """The dense kernel, d attributes under the same keys."""
    digests, codes = table(n, d, u)
    first_row = np.arange(d) * u
    levels = np.ones((d * u, t), np.uint8)
    return lambda: encode_dense(np.uint64(1), np.uint64(2), digests, codes, first_row, 20, levels)


def sketches(n, keys=4096):
    """A sketch of n integer ids: through its checked class, and by the kernels alone, with the axis of levels at hand."""
    ids, axis = np.arange(n), hazards(CEILING)
    guess = int(np.log2(n / (np.log(keys) + 1.5)))
    tasks = np.array([[0, n, 0, keys, 0, guess]])

    def bare():
        digests = digest_integers(SECRET[:16], ids)
        levels, minima = np.ones(keys, np.uint8), np.ones(1, np.uint8)
        one, two = np.uint64(1), np.uint64(2)
        encode_rows(one, two, digests, tasks, np.array([0, 1]), *axis, levels, minima)

    return lambda: Sketch.encode(ids, SECRET, keys), bare


def python_loop(n, u, t):
    """xxhash called from Python for every record and key."""
    digests, codes = table(n, 1, u)
    return python_work(digests, codes[0], u, t)


def string_ids(n, width):
    """Digests of n string ids of so many bytes: keyed, in bulk from an Arrow buffer; unkeyed, in a Python loop over xxhash."""
    ids = [f"{i:0{width}d}" for i in range(n)]
    data = np.frombuffer("".join(ids).encode(), np.uint8)
    offsets = np.arange(0, width * n + 1, width, dtype=np.int64)
    return lambda: digest_strings(SECRET[:16], offsets, data), lambda: [
        xxhash.xxh64_intdigest(x.encode()) for x in ids
    ]


def medians(*actions, rounds=5, clock=time.perf_counter):
    """Median seconds of each action; they take turns, so that a disturbance hits all of them alike."""
    for action in actions:
        action()
    seconds = [[] for _ in actions]
    for _ in range(rounds):
        for action, taken in zip(actions, seconds, strict=True):
            begin = clock()
            action()
            taken.append(clock() - begin)
    return [statistics.median(taken) for taken in seconds]


def compile_seconds():
    """A fresh process's warm-up into an empty cache, and another's from it (interpreter and imports included)."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        seconds = []
        for _ in range(2):
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", "from vertimrf.kernels import warmup; warmup()"],
                env=environment,
                check=True,
            )
            seconds.append(time.perf_counter() - begin)
    return seconds[0], seconds[1]


def with_threads(count, action):
    """The same on so many threads."""

    def run():
        with threads(count):
            action()

    return run


def counted_rows(smoke):
    """Count sketches: encoding beside the same additions; then ten times the rows, by processor time."""
    rows = 10_000 if smoke else CHUNK
    additions = additions_work(COUNTED, table(rows, 8, 8)[1])
    hashed, bare = medians(encode_counted(rows), additions, rounds=3, clock=time.process_time)
    yield Verdict("encoding, times the additions, by processor time", hashed / bare)
    taken, peak = [], []
    for many in (rows, 10 * rows):
        begin = time.process_time()
        encode_counted(many)()
        taken.append(time.process_time() - begin)
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    yield Verdict(
        "ten times the rows in chunks, times as long, by processor time", taken[1] / taken[0]
    )
    yield Verdict("ten times the rows in chunks, times the memory", peak[1] / peak[0])


def rows(size):
    """Scheduled pairs and what else encodes; at smoke size of a hundredth of the records and keys."""
    warmup()
    smoke = size == SMOKE
    million, keys = (10_000, 1024) if smoke else (10**6, 131_072)
    plan = bench_plan(8, 8, keys)
    works = [roofline_work(plan, side, million) for side in ([0, 1, 2, 3], [4, 5, 6, 7])]
    base, roof, dense, loop = medians(
        encode_pairs(million, 8, 8, keys),
        lambda: [work() for work in works],
        encode_every_pair(1000, 1, 8, keys),
        python_loop(5 if smoke else 500, 8, 1000),
    )
    pair = base / (2 * million * keys)
    yield Verdict(f"encode n={million:,} d=8 u=8 t={keys:,}, both parties [s]", base)
    yield Verdict("  per pair, times the dense kernel", dense / (1000 * keys) / pair)
    yield Verdict(
        "  per pair, times the Python loop over xxhash",
        loop / (5000 if smoke else 500 * 1000) / pair,
    )
    yield Verdict("  times the roofline", base / roof)
    if size == QUICK:
        return
    few, eightfold, many = medians(
        encode_pairs(million, 8, 8, keys),
        encode_pairs(million, 8, 8, 8 * keys),
        encode_pairs(10 * million, 8, 8, keys, chunk=million),
        rounds=3,
    )
    yield Verdict("eight times the keys, times as long", eightfold / few)
    yield Verdict("ten times the records in chunks, times as long", many / few)
    shared, dense_shared = medians(
        encode_shared_keys(million, 8, 8, 2000), encode_every_pair(million // 50, 8, 8, 2000)
    )
    yield Verdict(
        "published shared keys, t=2,000, times dense",
        dense_shared / (million // 50) / (shared / million),
    )
    checked, bare = medians(*sketches(million), rounds=15)
    yield Verdict("a sketch of a set, times the bare kernels", checked / bare)
    for width in ID_BYTES:
        bulk, each = medians(*string_ids(million, width))
        yield Verdict(
            f"string ids of {width} bytes to keyed digests, times a Python loop over xxhash",
            each / bulk,
        )
    one, two = medians(
        *(with_threads(count, encode_pairs(million, 8, 8, keys)) for count in (1, 2))
    )
    yield Verdict("2 threads, times 1 thread", one / two)
    if not smoke:
        cold, cached = compile_seconds()
        yield Verdict("cold compilation, whole process [s]", cold)
        yield Verdict("second process, from the cache [s]", cached)


def main():
    options = arguments(__doc__, quick="fewer comparisons").parse_args()
    # Memory is the peak of the process: what takes more comes behind.
    works = counted_rows(options.size == SMOKE), rows(options.size)
    finish(itertools.chain(*works), "encode", options)


if __name__ == "__main__":
    main()
