"""CarEst over every cell of Adult's 56 pairs across 8 and 7 attributes: scheduled pairs by likelihood, and the paper's shared keys."""

import itertools
import multiprocessing
import resource

import numpy as np
import pytest

from benchmarks.speed.conftest import TWO
from vertimrf.cli.bench import median_seconds
from vertimrf.kernels.jit import threads
from vertimrf.releases.scheduled_pairs.intersections import Side, estimate_pair
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.estimation import estimate_cells
from vertimrf.releases.shared_keys.parameters import SharedKeys

CROSSING = list(itertools.product(range(8), range(8, 15)))
RECORDS = 45_222


def random_levels(rng, plan, records, shape):
    """Levels of independent sets."""
    drawn = np.ceil(-np.log2(-np.expm1(np.log(rng.random(shape)) / (records + plan.phantoms))))
    return np.clip(drawn, plan.floor, plan.ceiling).astype(np.uint8)


def likelihood(sizes, keys):
    """An estimate of all cells, and how many there are."""
    rng = np.random.default_rng(5)
    plan = ScheduledPairs(20_000, 10, 21, (ScheduledPair(0, 1, keys),), (1, 1))
    weights = np.array([(sizes[a] * sizes[b]) ** (2 / 3) for a, b in CROSSING])

    def side(attribute, u, each):
        # Row by row, so that making them leaves no peak of memory for the estimator to hide under.
        levels = np.empty((u, each), np.uint8)
        for row in levels:
            row[:] = random_levels(rng, plan, RECORDS // u, (1, each))[0]
        return Side(attribute, np.arange(u), np.full(u, RECORDS / u), levels, np.full(u, 50.0))

    pairs = [
        (side(a, sizes[a], int(k)), side(b, sizes[b], int(k)))
        for (a, b), k in zip(CROSSING, keys * weights / weights.sum(), strict=True)
    ]
    estimate_pair(plan, side(0, 2, 10), side(8, 2, 10), RECORDS)
    cells = sum(sizes[a] * sizes[b] for a, b in CROSSING)
    return lambda: [estimate_pair(plan, left, right, RECORDS) for left, right in pairs], cells


def growth(sizes, keys):
    """Growth of peak memory [MB], kernels warm, in a process of its own."""
    estimate, _ = likelihood(sizes, keys)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with threads(TWO):
        estimate()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


@pytest.mark.parametrize("keys", [1 << 17, pytest.param(1 << 20, marks=pytest.mark.slow)])
def test_likelihood_of_all_cells(speed, hold, adult, smoke, keys, on):
    keys = 1 << 13 if smoke else keys
    estimate, cells = likelihood(adult.sizes, keys)
    mine, _ = speed(estimate, on, rounds=1, cells=cells)
    if on == TWO:
        head = f"likelihood, every one of {cells} cells of the 56 pairs, t={keys:,}"
        hold(f"{head}: seconds", mine)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            memory = pool.apply(growth, (adult.sizes, keys))
        hold(f"{head}: memory beyond the sketches [MB]", memory)


def in_numpy(levels, marginals, phantoms, total):
    """Algorithm 4, all cells of a marginal at once; HyperLogLog's formula, no law of the cuts, no errors."""
    share = np.exp2(-np.arange(256.0)).astype(np.float32)
    keys = levels[0].shape[1]
    others = []
    for table in levels:
        second, first = np.partition(table, -2, axis=0)[-2:]
        highest = np.broadcast_to(first, table.shape).copy()
        np.put_along_axis(highest, table.argmax(axis=0)[None], second[None], axis=0)
        others.append(highest)
    out = []
    for marginal in marginals:
        level = others[marginal[0]]
        for a in marginal[1:]:
            level = np.maximum(level[..., None, :], others[a])
        items = 0.7213 / (1 + 1.079 / keys) * keys / share[level].sum(axis=-1)
        out.append(
            np.maximum(total - (items - phantoms * sum(len(others[a]) - 1 for a in marginal)), 0)
        )
    return out


def test_published_counts_of_all_cells(speed, hold, adult, smoke, on):
    """Beside vectorised NumPy, each by itself: threads that sleep while NumPy works would be timed waking up."""
    sizes = list(adult.sizes)
    rng = np.random.default_rng(6)
    plan = SharedKeys(3000, 9, 22, 100 if smoke else 2000, adult.sizes)
    levels = [random_levels(rng, plan, RECORDS // u, (u, plan.keys)) for u in sizes]
    every = np.concatenate(levels)
    theirs = median_seconds(lambda: in_numpy(levels, CROSSING, plan.phantoms, RECORDS), 20)
    mine, numpy = speed(
        lambda: estimate_cells(plan, every, sizes, CROSSING, RECORDS),
        on,
        theirs,
        rounds=20,
        cells=sum(sizes[a] * sizes[b] for a, b in CROSSING),
    )
    if on == TWO:
        hold("  NumPy / all counts and errors, all values", numpy / mine)
