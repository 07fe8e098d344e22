"""Count sketches whose groups are published as contrasts: cells unbiased, with noise in as many directions and as large as stated."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from vertimrf.errors import MessageError
from vertimrf.sketches.count_intersections import CountedGroup, estimate_cells, estimate_overlapping, predicted_cell_errors
from vertimrf.sketches.count_sketch import CountSketchEncoder, adding, code_steps
from vertimrf.sketches.parameters import CountSketchPlan, contrast_signs, touched

# Two groups of two values, two of four, one of three and one of two as values; four are contrasts.
SIZES, CONTRASTS = (2, 2, 4, 4, 3, 2), (0, 1, 2, 3)
PLAN = CountSketchPlan(repetitions=128, buckets=32, variance=40.0, bits=4, sizes=SIZES, contrasts=CONTRASTS)
RECORDS = 3000
FIRST = np.cumsum([0, *SIZES])


def table(rng, records=RECORDS):
    """Columns that depend on each other, uneven."""
    base = rng.random(records)
    columns = []
    for i, size in enumerate(SIZES):
        mixed = np.where(rng.random(records) < 0.5, base, rng.random(records))
        columns.append(np.minimum((mixed**1.4 * size).astype(int), size - 1) if i % 2 else rng.integers(0, size, records))
    columns[0] = np.where(rng.random(records) < 0.7, columns[1], columns[0])
    columns[2] = np.where(rng.random(records) < 0.4, columns[3], columns[2])
    return np.array(columns, np.uint16)


def published(plan, codes, digests, secret, rng, groups=None):
    """Groups as the server has them, sizes known."""
    groups = range(len(plan.sizes)) if groups is None else groups
    encoder = CountSketchEncoder(plan, groups, secret)
    encoder.update(digests, codes)
    sizes = [np.bincount(own, minlength=plan.sizes[g]).astype(float) for g, own in zip(groups, codes, strict=True)]
    tables = encoder.result(sizes, rng.bytes)
    return [
        CountedGroup(t, s, s, np.zeros(len(s)), g in plan.contrasts) for g, t, s in zip(groups, tables, sizes, strict=True)
    ]


def both(one, other, i, j):
    """Exact counts of two columns' values."""
    return np.bincount(one.astype(int) * SIZES[j] + other, minlength=SIZES[i] * SIZES[j]).reshape(SIZES[i], SIZES[j])


def block(table_of_cells, i, j):
    return table_of_cells[FIRST[i] : FIRST[i + 1], FIRST[j] : FIRST[j + 1]]


def told(residual, i, j, contrasts=CONTRASTS):
    """What two groups' codes tell of cells: without means over the values of a group that is contrasted."""
    for axis, group in enumerate((i, j)):
        if group in contrasts:
            residual = residual - residual.mean(axis=axis, keepdims=True)
    return residual


PAIRS = list(itertools.combinations(range(len(SIZES)), 2))
# Two parties, the second one's groups being two of contrasts, one of three values and one of two.
PARTIES = (0, 0, 1, 1, 1, 0)


def kind(pair):
    """What a pair is of: sizes of contrasted groups, 0 for values."""
    return tuple(sorted(SIZES[group] if group in CONTRASTS else 0 for group in pair))


def released(estimate, codes, rng, releases=400):
    """Of several releases of one table: residuals by pair [shape=(releases, values, values)], and what the estimate states of a
    cell [same shape], of directions [shape=(groups, groups)]."""
    residuals, errors = {pair: [] for pair in PAIRS}, {pair: [] for pair in PAIRS}
    for _ in range(releases):
        cells, truth = estimate(codes, rng)
        for i, j in PAIRS:
            residuals[i, j].append(block(cells.counts, i, j) - truth(i, j))
            errors[i, j].append(block(cells.errors, i, j))
    return {p: np.array(r) for p, r in residuals.items()}, {p: np.array(e) for p, e in errors.items()}, cells.freedom


def of_all(codes, rng):
    digests = rng.integers(0, 2**64, RECORDS, dtype=np.uint64)
    cells = estimate_cells(PLAN, published(PLAN, codes, digests, rng.bytes(32), rng), RECORDS)
    return cells, lambda i, j: both(codes[i], codes[j], i, j)


HELD = (slice(0, 2400), slice(600, 3000))


def of_parts(codes, rng):
    digests, secret = rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32)
    groups = []
    for group, party in enumerate(PARTIES):
        groups += published(PLAN, codes[[group], HELD[party]], digests[HELD[party]], secret, rng, [group])
    records = np.array([2400.0, 2400.0])
    cells, _ = estimate_overlapping(PLAN, groups, PARTIES, records, np.zeros(2))
    shared = slice(600, 2400)

    def truth(i, j):
        rows = shared if PARTIES[i] != PARTIES[j] else HELD[PARTIES[i]]
        return both(codes[i, rows], codes[j, rows], i, j)

    return cells, truth


@pytest.mark.parametrize("estimate", [of_all, of_parts])
def test_explore(estimate):
    rng = np.random.default_rng(0)
    residuals, errors, freedom = released(estimate, table(rng), rng)
    for pair in PAIRS:
        i, j = pair
        left = residuals[pair]
        projected = np.array([told(r, i, j) for r in left])
        sq = np.square(projected / errors[pair]).sum(axis=(1, 2)) / (freedom[pair] * left[0].size)
        full = np.square(left / errors[pair]).sum(axis=(1, 2)) / (freedom[pair] * left[0].size)
        z = np.abs(left.mean(axis=0)) / (left.std(axis=0) / np.sqrt(len(left)) + 1e-9)
        print(pair, kind(pair), PARTIES[i] != PARTIES[j], sq.mean().round(3), (sq.std() / 20).round(3), full.mean().round(2), z.max().round(2), left.std(axis=0).mean().round(1))
