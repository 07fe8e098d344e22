"""Timings of the field engine's parts for pytest-benchmark: pytest benchmarks/bench_model.py --benchmark-enable.

Adult's domain when the data sets are beside the checkout, a stand-in of the same shape otherwise; compiled before timing.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.model import Problem, adult_codes, measure_pairs
from vertimrf.kernels.contingency import all_pairs
from vertimrf.model.clique_budget import CliqueBudget
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.propagation import Propagation
from vertimrf.model.sample import sample


@pytest.fixture(scope="module")
def adult() -> tuple[np.ndarray, tuple[int, ...]]:
    return adult_codes(datasets.FOLDER)


@pytest.fixture(scope="module", params=[6e5, 3e6], ids=["600k", "3M"])
def problem(request: pytest.FixtureRequest, adult: tuple[np.ndarray, tuple[int, ...]]) -> Problem:
    return measure_pairs(*adult, limit=request.param, count=25 if request.param < 1e6 else 40)


def test_propagation(benchmark: Any, problem: Problem) -> None:
    engine = Propagation(problem.tree(), sorted({m.attributes for m in problem.measurements}))
    engine.run()
    benchmark(engine.run)


def test_layout(benchmark: Any, problem: Problem) -> None:
    factors = sorted({m.attributes for m in problem.measurements})
    benchmark(lambda: Propagation(problem.tree(), factors))


def test_fit(benchmark: Any, problem: Problem) -> None:
    fit(problem.sizes, problem.measurements, problem.total, steps=1, iterations=2)
    benchmark.pedantic(lambda: fit(problem.sizes, problem.measurements, problem.total), rounds=3)


def test_sample(benchmark: Any, problem: Problem) -> None:
    model = fit(problem.sizes, problem.measurements, problem.total, steps=1)
    sample(model, 100, np.random.default_rng(0))
    benchmark.pedantic(lambda: sample(model, 1_000_000, np.random.default_rng(0)), rounds=3)


def test_all_pairs(benchmark: Any, adult: tuple[np.ndarray, tuple[int, ...]]) -> None:
    codes, sizes = adult
    many = np.ascontiguousarray(codes[:, np.random.default_rng(0).integers(0, codes.shape[1], 1_000_000)])
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    all_pairs(many, sizes, pairs)
    benchmark(lambda: all_pairs(many, sizes, pairs))


def test_bincount_per_pair(benchmark: Any, adult: tuple[np.ndarray, tuple[int, ...]]) -> None:
    codes, sizes = adult
    many = np.ascontiguousarray(codes[:, np.random.default_rng(0).integers(0, codes.shape[1], 1_000_000)])
    pairs = list(itertools.combinations(range(len(sizes)), 2))

    def count() -> None:
        for a, b in pairs:
            np.bincount(many[a].astype(np.int64) * sizes[b] + many[b], minlength=sizes[a] * sizes[b])

    benchmark.pedantic(count, rounds=3)


@pytest.mark.parametrize("attributes", [15, 100])
def test_candidate_edges(benchmark: Any, attributes: int) -> None:
    rng = np.random.default_rng(0)
    sizes = [int(s) for s in rng.integers(2, 20, attributes)]
    pairs = list(itertools.combinations(range(attributes), 2))
    order = [pairs[i] for i in rng.permutation(len(pairs))[:300]]

    def grow() -> CliqueBudget:
        budget = CliqueBudget(sizes, 1e5)
        for pair in order:
            budget.try_edge(*pair)
        return budget

    budget = benchmark.pedantic(grow, rounds=1)
    assert junction_tree(sizes, budget.edges).cells
