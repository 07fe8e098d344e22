"""Intervals of draws beside those of NAPSU-MQ, on data like its authors' toy data: do they cover, how wide are they, how long do they take?

    python benchmarks/accuracy/napsu.py [--smoke] [--json FILE]

A table has 2,000 records of three binary columns. Two are coins, and the third follows a logistic regression on them with
coefficients 1 and 0. Both mechanisms have epsilon 1 and delta = 1 / n^2 (our default), and are asked for all three columns together. Rubin's
rules for NAPSU-MQ are the authors' (variance (1 + 1/m) B - U, or U where that is not positive).

NAPSU-MQ is run on the first tables only, where VERTIMRF_PEERS names a folder for its environment.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.accuracy.trust import Analyses, intervals, result_of
from benchmarks.datasets import Dataset
from benchmarks.peers.on_twinify import TWINIFY
from benchmarks.peers.peer import FOLDER, default_folder, surroundings
from benchmarks.verdict import FULL, Verdict, arguments, finish
from vertimrf.named_model import Model

NAMES = ("x0", "x1", "x2")
RECORDS, EPSILON, DRAWS = 2000, 1.0, 20
# Tables, and how many of them NAPSU-MQ has: one takes it a minute.
RUNS, PEER_RUNS = 200, 12
ANALYSES = Analyses("x2", ("x2", "x0"), ("x2", "x0", "x1"), ("x2", "x0", "x1"))
# What infinitely many records would give.
SHARES = 1 / (1 + np.exp([-0.0, -1.0]))
TRUTH = {
    "means": SHARES.mean(keepdims=True),
    "differences of groups": np.diff(SHARES),
    "linear coefficients": np.array([SHARES[1] - SHARES[0], 0.0]),
    "logistic coefficients": np.array([1.0, 0.0]),
}


def toy(rng):
    """One table's codes [shape=(3, RECORDS), uint16]."""
    coins = rng.integers(2, size=(2, RECORDS))
    return np.array([*coins, rng.random(RECORDS) < SHARES[coins[0]]], np.uint16)


def ours(codes, holders, seed):
    """By kind, the limits of intervals [shape=(2, coefficients)]."""
    table = Dataset("toy", NAMES, (2, 2, 2), codes)
    model = Model.of(result_of(table, holders, EPSILON, [NAMES]))
    return intervals(model, ANALYSES, RECORDS, DRAWS, seed)


def by_rubin(tables):
    """By kind, the limits by the authors' rules."""
    found = [ANALYSES.estimates(dict(zip(NAMES, codes * 1.0, strict=True))) for codes in tables]
    limits = {}
    for kind in TRUTH:
        q, u = np.stack([of[kind] for of in found], axis=1)
        between, within = (1 + 1 / len(q)) * q.var(axis=0, ddof=1), u.mean(axis=0)
        total = np.where(between > within, between - within, within)
        freedom = (len(q) - 1) * np.square(1 - within / between)
        limits[kind] = stats.t.interval(0.95, freedom, q.mean(axis=0), np.sqrt(total))
    return limits


def theirs(tables):
    """Limits of each table, and processor seconds."""
    python = TWINIFY.python(default_folder())
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "tables.npy"), Path(folder, "draws.npy")
        np.save(given, tables)
        words = [python, "-P", "-m", "benchmarks.peers.on_twinify", given, made]
        words += ["--epsilon", str(EPSILON), "--draws", str(DRAWS)]
        before = os.times()
        subprocess.run(words, env=surroundings(), check=True, stderr=subprocess.DEVNULL)
        after = os.times()
        used = sum(after[2:4]) - sum(before[2:4])
        return [by_rubin(draws) for draws in np.load(made, allow_pickle=False)], used


def described(whose, limits):
    """How often intervals cover, and rows of the table."""
    for kind, truth in TRUTH.items():
        inside = [(low <= truth) & (truth <= high) for low, high in (of[kind] for of in limits)]
        yield Verdict(f"share of 95 % intervals that cover {kind}: {whose}", np.mean(inside))


def width(limits, kind):
    return np.median([np.subtract(*of[kind][::-1]) for of in limits])


def rows(size):
    runs, peers = (RUNS, PEER_RUNS) if size == FULL else (2, 0)
    rng = np.random.default_rng(1)
    tables = np.array([toy(rng) for _ in range(runs)])
    ours(tables[0], 1, 0)  # Compiles.
    sides, used = {}, {}
    for holders in (1, 2):
        before = time.process_time()
        sides[holders] = [ours(codes, holders, seed) for seed, codes in enumerate(tables)]
        used[holders] = (time.process_time() - before) / runs
        yield from described(f"holders {holders}", sides[holders])
        yield Verdict(f"processor seconds of a table: holders {holders}", used[holders])
    if FOLDER in os.environ and peers:
        limits, seconds = theirs(tables[:peers])
        yield from described("NAPSU-MQ", limits)
        for kind in TRUTH:
            ratio = width(sides[1], kind) / width(limits, kind)
            yield Verdict(f"width of intervals, times NAPSU-MQ's: {kind}", ratio)
        yield Verdict("processor time, NAPSU-MQ's over ours", seconds / peers / used[1])


def main():
    options = arguments(__doc__).parse_args()
    finish(rows(options.size), "napsu", options)


if __name__ == "__main__":
    main()
