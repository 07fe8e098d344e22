"""Markov random fields beside mbi and NumPy: tables, propagation, fits, search, off-tree factors, rows.

Adult's table and 25 of its pairs, or a table of Adult's shape. Where two threads would hide what is compared, there is one.
"""

import functools
import itertools
import math
import multiprocessing
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import datasets
from benchmarks.speed.conftest import TWO
from benchmarks.speed.problems import Problem, measure_pairs
from vertimrf import PlanOptions, Schema, make_plan
from vertimrf.cli.bench import median_seconds
from vertimrf.kernels.contingency import all_pairs, contingency
from vertimrf.model.fit import fit
from vertimrf.model.off_tree import fit_off_tree
from vertimrf.model.propagation import Propagation
from vertimrf.model.sample import sample
from vertimrf.server.global_graph import combine_graphs, used_in

LOSS_ALONE = {"proximal_weight": 10.0, "min_improvement": 0.0}  # steps go for it, as mbi's do


def pairs_of(sizes):
    return list(itertools.combinations(range(len(sizes)), 2))


def bincounts(codes, sizes, pairs):
    for a, b in pairs:
        np.bincount(
            codes[a].astype(np.int64, copy=False) * sizes[b] + codes[b],
            minlength=sizes[a] * sizes[b],
        )


@pytest.mark.usual(10**6)
def test_contingency_tables(speed, hold, adult, rows, on):
    sizes, picked = adult.sizes, np.random.default_rng(0).integers(0, adult.records, rows)
    codes, every = np.ascontiguousarray(adult.codes[:, picked]), pairs_of(sizes)
    mine, numpy = speed(
        lambda: all_pairs(codes, sizes, every),
        on,
        median_seconds(lambda: bincounts(codes, sizes, every)),
        rows=rows,
        counters=rows * len(every),
    )
    if on == TWO:
        hold(f"all two-way counts of {rows:,} records: times faster than np.bincount", numpy / mine)


@pytest.fixture(scope="session")
def large(adult, smoke, problem):
    return problem if smoke else measure_pairs(adult.codes, adult.sizes, 3e6, 40)


@pytest.mark.parametrize("cells", ["problem", "large"])
def test_belief_propagation(speed, hold, request, cells, on):
    """Beside reading and writing every clique table once per pass: two passes, one at the roots."""
    problem = request.getfixturevalue(cells)
    tree = problem.tree()
    engine = Propagation(tree, sorted({m.attributes for m in problem.measurements}))
    arrays = [np.ones(cells) for cells in tree.clique_cells for _ in range(2)]
    pairs = list(zip(arrays[::2], arrays[1::2], tree.parents, strict=True))

    def stream():
        for one, other, parent in pairs:
            for _ in range(1 if parent < 0 else 2):
                np.copyto(other, one)

    least = median_seconds(stream, 25)
    mine, _ = speed(engine.run, on, least, rounds=25, cells=tree.cells)
    if on == 1:
        many = f" with {tree.cells:,} cells" if cells == "large" else ""
        hold(f"one propagation{many}, share of roofline", mine / least)


def test_fit(speed, problem, on):
    speed(problem.fit, on, rounds=3)


@pytest.fixture(scope="module", params=[300, pytest.param(1200, marks=pytest.mark.slow)])
def fits(request, problem, peer, smoke):
    """Iterations of mbi, its model, seconds and loss, and the fit that has this loss first."""
    iterations = 10 if smoke else request.param
    peer.fit(problem, min(iterations, 50))
    begin = time.perf_counter()
    theirs = peer.fit(problem, iterations)
    seconds, loss = time.perf_counter() - begin, peer.loss(theirs, problem)
    for steps in range(1, 40):
        ours = problem.fit(steps=steps, **LOSS_ALONE)
        if ours.loss <= loss:
            break
    return SimpleNamespace(**locals())


def test_fit_beside_mbi(speed, hold, problem, fits):
    """An iteration is a propagation, a gradient and a direction of L-BFGS."""
    clock = []
    problem.fit(
        steps=1,
        tolerance=0.0,
        iterations=200,
        progress=lambda *_: clock.append(time.perf_counter()),
    )
    once = float(np.median(np.diff(clock)))
    hold("one iteration: times faster than mbi", fits.seconds / fits.iterations / once)
    mine, theirs = speed(
        lambda: problem.fit(steps=fits.steps, **LOSS_ALONE), reference=fits.seconds, rounds=3
    )
    # A loss that is never reached takes for ever.
    share = mine / theirs if fits.ours.loss <= fits.loss else math.inf
    hold(f"time to mbi's loss after {fits.iterations} iterations, share of mbi's", share)
    final = problem.fit(steps=fits.steps + 5, **LOSS_ALONE).loss
    hold("final loss, share of mbi's", final / fits.loss)


@pytest.mark.bars
@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_rounds_beside_mbi(speed, hold, problem, peer, smoke, count):
    """A loop that adds a pair each round and fits again, warm."""
    count = 1 if smoke else count
    base = [m for m in problem.measurements if len(m.attributes) == 1]
    added = [m for m in problem.measurements if len(m.attributes) == 2][:count]
    steps = [Problem(problem.sizes, problem.total, base + added[: i + 1]) for i in range(count)]

    def loop(fitted):
        return functools.reduce(lambda warm, step: fitted(step, warm), steps, None)

    begin = time.perf_counter()
    other = loop(lambda step, warm: peer.fit(step, 100, warm))
    seconds = time.perf_counter() - begin
    mine, _ = speed(lambda: loop(Problem.fit), reference=seconds, rounds=1)
    hold(f"{count} rounds, share of mbi's time (its 100 iterations a round)", mine / seconds)
    loss = peer.loss(other, steps[-1])
    hold(f"{count} rounds, share of mbi's loss", loop(Problem.fit).loss / loss)


def peak(data):
    """Peak resident memory of fit and sampling over the clique tables, in a process of its own; Linux only."""
    adult = datasets.adult(data)
    # Compiling and loading are over when the clock of the peak is set back.
    sample(measure_pairs(adult.codes, adult.sizes, 1e3, 5).fit(), 100, np.random.default_rng(0))
    problem = measure_pairs(adult.codes, adult.sizes, 3e6, 40)
    tree = problem.tree()

    def status(key):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(text.split()[1]) for text in lines if text.startswith(key))

    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    sample(problem.fit(steps=1, iterations=5), 1000, np.random.default_rng(0))
    return (status("VmHWM") - before) / (8 * tree.cells)


@pytest.mark.bars
def test_memory_of_a_model(speed, hold, smoke, pytestconfig):
    if smoke or sys.platform != "linux":
        pytest.skip("a minute, on Linux")
    figures = []
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        arguments = (pytestconfig.getoption("--data"),)
        speed(lambda: figures.append(pool.apply(peak, arguments)), rounds=1)
    hold("peak memory of fit and sample, clique tables", figures[0])


def test_search(speed, hold, adult):
    """Of the graph from all pairs, beside a fit of what it finds; two parties have half of the columns each."""
    codes, sizes, n = adult.codes, adult.sizes, adult.records
    half = (len(sizes) + 1) // 2
    schema = Schema.from_json({f"a{i}": size for i, size in enumerate(sizes)})
    plan = make_plan(schema.split((half, len(sizes) - half)), 0.8, PlanOptions(expected_records=n))
    every = measure_pairs(codes, sizes, math.inf, len(sizes) ** 2).measurements
    crossing = [m for m in every if m.attributes[0] < half <= m.attributes[-1]]
    within = [m for m in every if m not in crossing]
    graph = combine_graphs(plan, within, crossing, n)
    used = used_in(graph.tree, within, graph.kept)
    mine, fitting = speed(
        lambda: combine_graphs(plan, within, crossing, n),
        on=1,
        reference=lambda: fit(sizes, used, n, tree=graph.tree),
        rounds=3,
    )
    hold("search of the graph, times a fit of what it finds", mine / fitting)


def test_off_tree_factors(speed, hold, adult, problem, fitted):
    """Of all pairs outside the cliques, beside NumPy's counts of 131,072 rows in them."""
    sizes = problem.sizes
    every = measure_pairs(adult.codes, sizes, math.inf, len(sizes) ** 2).measurements
    outside = [m.attributes for m in every if fitted.tree.covering(m.attributes) < 0]
    rows = sample(fitted, 1 << 17, np.random.default_rng(0))
    mine, counting = speed(
        lambda: fit_off_tree(fitted, every),
        on=1,
        reference=lambda: bincounts(rows, sizes, outside),
        rounds=3,
        cells=sum(sizes[a] * sizes[b] for a, b in outside),
    )
    hold("off-tree factors, times np.bincount of their tables", mine / counting)


@pytest.mark.usual(10**5)
def test_sampling(speed, fitted, rows, on):
    speed(lambda: sample(fitted, rows, np.random.default_rng(0)), on, rounds=1, rows=rows)


@pytest.mark.bars
def test_sampling_beside_mbi(speed, hold, problem, peer, smoke, fits):
    """Rows of either's model, and how far they are from it; and mbi's marginals at our factors."""
    ours, count = fits.ours, 200_000 if fits.iterations == 300 else 1_000_000
    count = 2000 if smoke else count
    measured = [m.attributes for m in problem.measurements]

    def distance(codes, marginal):
        each = [
            np.abs(contingency(codes, problem.sizes, a) / count - marginal(a) / problem.total).sum()
            for a in measured
        ]
        return float(np.mean(each)) / 2

    begin = time.perf_counter()
    rows = peer.rows(fits.theirs, count)
    seconds = time.perf_counter() - begin
    mine, _ = speed(
        lambda: sample(ours, count, np.random.default_rng(0)),
        reference=seconds,
        rounds=3,
        rows=count,
    )
    hold("sampling: times faster than mbi synthetic_data", seconds / mine)
    near = distance(sample(ours, count, np.random.default_rng(0)), ours.marginal)
    far = distance(rows, functools.partial(peer.marginal, fits.theirs))
    hold("sampling: distance from the model, share of mbi's", near / far)
    calibrated = peer.calibrated(ours)
    apart = max(np.abs(peer.marginal(calibrated, a) - ours.marginal(a)).max() for a in measured)
    hold("marginals against mbi at the same factors, Adult", float(apart / ours.total))
