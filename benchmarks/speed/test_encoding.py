"""Encoders of ``vertimrf bench``, their parts, and what their speed is held to."""

import itertools
import time

import numpy as np
import pytest

from benchmarks.speed.beside import encode_dense, python_work, roofline_work
from vertimrf.cli.bench import COLUMNS, MOST_ENCRYPTED, SECRET, VALUES, planned, work_of
from vertimrf.kernels.jit import threads
from vertimrf.releases.register import KINDS
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys

STREAMED = ["count-sketch", "scheduled-pairs", "published"]
SIDES = range(4), range(4, 8)


def table(n, d=8, u=8):
    rng = np.random.default_rng(0)
    return rng.integers(0, 2**64, n, dtype=np.uint64), rng.integers(0, u, (d, n), dtype=np.uint16)


def pairs_plan(keys):
    each = tuple(
        ScheduledPair(left, right, keys // 16) for left, right in itertools.product(*SIDES)
    )
    return ScheduledPairs(6326, 9, 20, each, (8,) * 8)


def both_parties(n, keys, chunk=None):
    """Scheduled pairs at both parties, from arrays to published levels."""
    plan, (digests, codes) = pairs_plan(keys), table(n)

    def action():
        for side in SIDES:
            encoder = SketchEncoder(plan, tuple(side), SECRET)
            for at in range(0, n, chunk or n):
                part = slice(at, at + (chunk or n))
                encoder.update(digests[part], codes[side.start : side.stop, part])
            encoder.result()

    return action


def dense(n, d, keys):
    """The kernel that hashes every pair, d attributes under the same keys."""
    digests, codes = table(n, d)
    first, levels = np.arange(d) * 8, np.ones((d * 8, keys), np.uint8)
    return lambda: encode_dense(np.uint64(1), np.uint64(2), digests, codes, first, 20, levels)


@pytest.mark.usual(10**5)
@pytest.mark.parametrize("encoder", KINDS)
def test_encoding(speed, encoder, rows, on):
    if encoder == "encrypted" and rows > MOST_ENCRYPTED:
        pytest.skip("rows have hundreds of bytes each")
    work = work_of(encoder, rows)
    scattered = {"scattered": work.counters, "width": work.width, "moved": work.moved}
    speed(work.encode, on, rounds=3, rows=rows, **(scattered if work.counters else {}))


@pytest.mark.parametrize("encoder", STREAMED)
def test_merging(speed, encoder):
    """Of states that caches hold."""
    plan = planned(encoder, 10**4)
    held = plan.sketch.held(plan.groups_by_party, 0)
    speed(work_of(encoder, 10**4).merge, counters=held)


@pytest.mark.parametrize("encoder", STREAMED)
def test_estimates_of_all_cells(speed, encoder, on):
    speed(work_of(encoder, 10**5).estimate, on, cells=(COLUMNS * VALUES) ** 2)


def test_pairs_beside_every_pair(speed, hold, million):
    keys = 131_072 if million == 10**6 else 1024
    every, (digests, codes) = dense(1000, 1, keys), table(500, 1)
    mine, hashed = speed(both_parties(million, keys), reference=every, rows=million)
    pair = mine / (2 * million * keys)
    hold("  per pair, times the dense kernel", hashed / (1000 * keys) / pair)
    begin = time.perf_counter()
    python_work(digests, codes[0], 8, 1000)()
    loop = (time.perf_counter() - begin) / (500 * 1000)
    hold("  per pair, times the Python loop over xxhash", loop / pair)


def test_pairs_beside_the_roofline(speed, hold, million):
    keys = 131_072 if million == 10**6 else 1024
    works = [roofline_work(pairs_plan(keys), list(side), million) for side in SIDES]
    mine, least = speed(
        both_parties(million, keys), reference=lambda: [work() for work in works], rows=million
    )
    hold("  times the roofline", mine / least)


@pytest.mark.slow
def test_more_keys_and_records(speed, hold, million):
    few = both_parties(million, 131_072)
    eightfold, once = speed(both_parties(million, 8 * 131_072), rounds=3, reference=few)
    hold("eight times the keys, times as long", eightfold / once)
    many = both_parties(10 * million, 131_072, million)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        many()
        seconds.append(time.perf_counter() - begin)
    hold("ten times the records in chunks, times as long", sorted(seconds)[1] / once)


@pytest.mark.slow
def test_published_beside_every_pair(speed, hold, million):
    plan, (digests, codes) = SharedKeys(6326, 9, 20, 2000, (8,) * 8), table(million)

    def action():
        encoder = SharedKeyEncoder(plan, range(8), SECRET)
        encoder.update(digests, codes)
        encoder.result()

    mine, every = speed(action, reference=dense(million // 50, 8, 2000), rows=million)
    hold("published shared keys, t=2,000, times dense", 50 * every / mine)


@pytest.mark.slow
def test_two_threads(speed, hold, million):
    work = both_parties(million, 131_072)

    def single():
        with threads(1):
            work()

    two, one = speed(work, 2, single, rows=million)
    hold("2 threads, times 1 thread", one / two)
