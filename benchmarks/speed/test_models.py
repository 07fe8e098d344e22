"""Contingency tables, belief propagation, fits, sampling."""

import itertools

import numpy as np
import pytest

from benchmarks.speed.paths import (
    Measurement,
    Propagation,
    all_pairs,
    fit,
    junction_tree,
    sample,
)

SIZES = (8,) * 12
PAIRS = list(itertools.pairwise(range(len(SIZES))))


def codes_of(rows):
    steps = np.random.default_rng(0).integers(0, 3, (len(SIZES), rows))
    return (np.cumsum(steps, axis=0) % 8).astype(np.uint16)


@pytest.fixture(scope="module")
def measured():
    rng, codes = np.random.default_rng(1), codes_of(10**4)
    tables = all_pairs(codes, SIZES, PAIRS)
    return [
        Measurement(pair, (None, None), counts + rng.normal(size=counts.shape), 1.0)
        for pair, counts in zip(PAIRS, tables, strict=True)
    ]


def test_contingency_tables(speed, rows, on):
    codes, every = codes_of(rows), list(itertools.combinations(range(len(SIZES)), 2))

    def one_by_one():
        for a, b in every:
            np.bincount(codes[a].astype(np.int64) * 8 + codes[b], minlength=64)

    counted = rows * len(every)
    speed(
        lambda: all_pairs(codes, SIZES, every),
        rows,
        on,
        reference=one_by_one,
        counters=counted,
        moved=codes.nbytes,
        scattered=counted,
    )


def test_belief_propagation(speed, on):
    engine = Propagation(junction_tree(SIZES, PAIRS), PAIRS)
    speed(engine.run, 10**4, on)


def test_fit(speed, on, measured):
    speed(lambda: fit(SIZES, measured, 1e4), 10**4, on)


def test_sampling(speed, rows, on, measured):
    model = fit(SIZES, measured, 1e4)
    moved = 2 * rows * len(SIZES)
    speed(lambda: sample(model, rows, np.random.default_rng(0)), rows, on, moved=moved)
