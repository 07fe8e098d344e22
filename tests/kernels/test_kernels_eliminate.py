"""The best of several triangulations, against each of them on its own."""

import math
import random

import numpy as np
import pytest

from vertimrf.kernels import eliminate


def graph(seed):
    """A random graph, and the log sizes of its vertices."""
    rng = random.Random(seed)
    n = rng.randint(1, 20)
    joined = np.zeros((n, n), bool)
    for a in range(n):
        for b in range(a):
            joined[a, b] = joined[b, a] = rng.random() < 0.3
    return joined, np.log([rng.choice([1, 2, 3, 5, 9, 300]) for _ in range(n)])


def each(joined, logs, limit):
    """Cells of the cliques of every heuristic's triangulation; none where it exceeds a limit."""
    out = []
    for heuristic in range(eliminate.HEURISTICS):
        cells = np.empty(logs.size)
        count, _ = eliminate._eliminate(
            joined, logs, heuristic, limit, np.empty(joined.shape, bool), cells
        )
        out.append(np.exp(cells[:count]))
    return out


def best(joined, logs, limit):
    """Cliques, and their cells."""
    cliques, cells = np.empty(joined.shape, bool), np.empty(logs.size)
    count = eliminate.fewest_cells(joined, logs, limit, cliques, cells)
    return cliques[:count], np.exp(cells[:count])


def test_without_a_limit_the_fewest_cells_are_found():
    others = 0
    for seed in range(300):
        joined, logs = graph(seed)
        totals = [cells.sum() for cells in each(joined, logs, math.inf)]
        cliques, cells = best(joined, logs, math.inf)
        assert cells.sum() == pytest.approx(min(totals), rel=1e-8)
        np.testing.assert_allclose(cells, np.exp(cliques @ logs))
        others += min(totals) < totals[0] * (1 - 1e-6)
    # Often enough another heuristic than the first is the best.
    assert others > 20


def test_with_a_limit_the_first_triangulation_within_it_is_found():
    others = none = 0
    for seed in range(600):
        joined, logs = graph(seed)
        # Any single vertex is allowed.
        all_cells = each(joined, logs, math.inf)
        largest = [
            max((c for c in cells if c > np.exp(logs).max() * (1 + 1e-9)), default=1.0)
            for cells in all_cells
        ]
        limit = random.Random(seed).choice(largest) * random.Random(-seed).choice([0.99, 1.01])
        if limit < np.exp(logs).max():
            continue
        fits = [cells for cells, most in zip(all_cells, largest, strict=True) if most <= limit]
        _, cells = best(joined, logs, math.log(limit))
        assert cells.tolist() == (fits[0].tolist() if fits else [])
        none += not fits
        others += bool(fits) and largest[0] > limit
    assert none > 20
    assert others > 10


def test_a_vertex_above_the_limit_is_a_clique_alone():
    joined, logs = np.zeros((2, 2), bool), np.log([300.0, 2.0])
    assert best(joined, logs, math.log(10))[1].tolist() == pytest.approx([2.0, 300.0])
    joined[0, 1] = joined[1, 0] = True
    assert best(joined, logs, math.log(10))[1].size == 0
