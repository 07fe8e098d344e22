"""Encrypted counts: accuracy, time and size of the whole run, and what collusion reads, each against its bar.

    python benchmarks/accuracy/encrypted.py [--data FOLDER] [--quick | --smoke] [--json FILE]

Accuracy is that of the decrypted counts, and so it is measured without the encryption (`plain_counts.py`): five seeds, delta =
1 / n, 3-way TVD over 300 marginals. Adult is encrypted once, with fresh keys. --quick takes one seed, leaves fire out, and plays the collusion
on nltcs and encrypted counts alone; --smoke takes a small generated table. Only the full size encrypts two larger generated tables.
"""

import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import datasets
from benchmarks.attacks import encrypted_collusion
from benchmarks.attacks.deployment import dealt
from benchmarks.datasets import Dataset
from benchmarks.plain_counts import without_encryption
from benchmarks.reproduce.methods import Centralized, VertiMRF
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish
from vertimrf import PlanOptions, make_plan
from vertimrf.runs.files import between
from vertimrf.utility.distances import tvd

EPSILON = 0.8
SPLITS = {"nltcs": 8, "adult": 8, "br2000": 7, "fire": 8}
ENCRYPTED = VertiMRF("encrypted", "encrypted counts", {"encoder": "encrypted"})
SKETCHES = VertiMRF("count-sketches", "count sketches")


def generated(attributes=110, records=19_000):
    """A table of 2 to 8 values an attribute, each of which follows one of the five before it in 60 of 100 records."""
    rng = np.random.default_rng(36)
    sizes = tuple(rng.integers(2, 9, attributes).tolist())
    codes = np.array([rng.integers(0, size, records) for size in sizes], np.uint16)
    for a in range(1, attributes):
        before = int(rng.integers(max(a - 5, 0), a))
        follows = rng.random(records) < 0.6
        codes[a, follows] = codes[before, follows] % sizes[a]
    names = tuple(f"x{a}" for a in range(attributes))
    return Dataset(f"generated, {attributes} attributes", names, sizes, codes)


def split_at(data, first):
    """The first attributes at one party, the others at another."""
    return tuple(range(first)), tuple(range(first, len(data.sizes)))


def distance(data, method, first, seed, encrypted=False):
    """3-way TVD of one synthetic table."""
    with nullcontext() if encrypted else without_encryption():
        made = method.synthesize(
            data.codes, data.sizes, split_at(data, first), EPSILON, 1 / data.records, seed
        )
    return tvd(data.codes, made.codes, data.sizes, (3,), 300)[3]


def accuracy(tables, seeds):
    """Mean 3-way TVD of some tables."""
    for data, first in tables:
        found = [distance(data, ENCRYPTED, first, seed) for seed in range(seeds)]
        yield Verdict(f"{data.name}, epsilon {EPSILON:g}: 3-way TVD", float(np.mean(found)))


def wide(folder):
    """The same of wide tables, over that of one holder."""
    tables = [generated()]
    if datasets.present("pisa", folder):
        tables.append(datasets.load("pisa", folder))
    for data in tables:
        ours, theirs = (
            distance(data, method, (len(data.sizes) + 1) // 2, 0)
            for method in (ENCRYPTED, Centralized())
        )
        yield Verdict(f"{data.name}: 3-way TVD over that of one holder", ours / theirs)


def whole_run(data, first):
    """Seconds and bytes of a run with encryption, keys included, and its 3-way TVD, beside those of count sketches of the default size."""

    def timed(method):
        start = time.perf_counter()
        made = method.synthesize(
            data.codes, data.sizes, split_at(data, first), EPSILON, 1 / data.records, 0
        )
        return made, time.perf_counter() - start

    # Reading and compiling kernels is not timed.
    small = data.part(np.arange(min(data.records, 5000)))
    for method in (ENCRYPTED, SKETCHES):
        distance(small, method, first, 0, encrypted=True)
    (made, seconds), (sketched, others) = map(timed, (ENCRYPTED, SKETCHES))
    yield Verdict(f"{data.name}: whole run of both parties and server, fresh keys, s", seconds)
    yield Verdict(f"{data.name}: whole run over that of count sketches", seconds / others)
    options = PlanOptions(
        encoder="encrypted", expected_records=data.records, delta=1 / data.records
    )
    plan = make_plan(dealt(data, first)[0], EPSILON, options)
    # Headers and seals included, whose sizes are rounded up.
    sent = sum(file.max_bytes for file in between(plan)) + sum(made.message_bytes)
    yield Verdict(f"{data.name}: all that is sent, MB", sent / 1e6)
    ours, theirs = (
        tvd(data.codes, one.codes, data.sizes, (3,), 300)[3] for one in (made, sketched)
    )
    yield Verdict(f"{data.name}: 3-way TVD of that run", ours)
    yield Verdict(f"{data.name}: 3-way TVD over that of count sketches", ours / theirs)


def large(attributes, records):
    """The same for a generated table."""
    data = generated(attributes, records)
    yield from whole_run(replace(data, name=f"{data.name} of {records:,} records"), attributes // 2)


def rows(size, folder):
    """All figures of one size."""
    if size == SMOKE:
        small = replace(generated(8, 400), name="small")
        yield from accuracy([(small, 4)], 1)
        yield from whole_run(small, 4)
        return
    seeds = 5 if size == FULL else 1
    there = {
        name: datasets.load(name, folder)
        for name in SPLITS
        if (size == FULL or name != "fire") and datasets.present(name, folder)
    }
    yield from accuracy([(data, SPLITS[name]) for name, data in there.items()], seeds)
    if size == FULL:
        yield from wide(folder)
    yield from whole_run(datasets.load("adult", folder), SPLITS["adult"])
    if size == FULL:
        yield from large(20, 1 << 17)
        yield from large(16, 1_000_000)
        yield from encrypted_collusion.rows()
    else:
        yield from encrypted_collusion.rows(("nltcs",), sketched=False)


def main():
    quick = "one seed, and the collusion on nltcs alone"
    options = arguments(__doc__, quick=quick, data="the paper's tables").parse_args()
    finish(rows(options.size, options.data), "encrypted", options)


if __name__ == "__main__":
    main()
