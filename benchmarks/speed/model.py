"""Markov random fields against `mbi` (JAX), the library of the field: fit, memory, bandwidth, sampling, correctness.

    python benchmarks/speed/model.py [--data FOLDER] [--quick | --smoke] [--json FILE]

FOLDER holds adult.csv.gz (record_id, integer codes) and adult-domain.json; without it, a stand-in with Adult's domain
is drawn. The peer is optional: `pip install "mbi==2.0.0"` (the extra `peers`); lines that need it are marked as not
measured otherwise. Both run in float64, on the same measurements, in one process, compiled before the clock starts;
JAX results are read back before it stops. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import datasets
from benchmarks.speed.measured import seconds
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish
from vertimrf import PlanOptions, Schema, make_plan
from vertimrf.kernels.contingency import all_pairs, contingency
from vertimrf.kernels.jit import threads
from vertimrf.model.clique_budget import CliqueBudget
from vertimrf.model.fit import FitOptions, fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.off_tree import fit_off_tree
from vertimrf.model.propagation import Propagation
from vertimrf.model.sample import sample
from vertimrf.server.global_graph import combine_graphs, used_in

SIGMA = 50.0


@dataclass(frozen=True)
class Problem:
    """A table's domain and noisy marginals of it."""

    sizes: tuple[int, ...]
    total: float
    measurements: list[Measurement]

    def tree(self):
        return junction_tree(self.sizes, pairs_of(self.measurements))

    def fit(self, warm=None, **options):
        return fit(
            self.sizes, self.measurements, self.total, warm=warm, options=FitOptions(**options)
        )


def pairs_of(measurements):
    return {pair for m in measurements for pair in itertools.combinations(m.attributes, 2)}


def measure_pairs(codes, sizes, limit, count):
    """All one-way marginals and the pairs of highest true R-score that keep cliques within a limit, with noise."""
    n = codes.shape[1]
    rng = np.random.default_rng(1)
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    tables = dict(zip(pairs, all_pairs(codes, sizes, pairs), strict=True))
    score = {p: np.abs(t - np.outer(t.sum(1), t.sum(0)) / n).sum() for p, t in tables.items()}
    budget = CliqueBudget(sizes, limit)
    kept = []
    for pair in sorted(pairs, key=lambda p: -score[p]):
        if len(kept) < count and budget.try_edge(*pair):
            kept.append(pair)
    wanted = [(i,) for i in range(len(sizes))] + kept
    measurements = []
    for attributes in wanted:
        table = contingency(codes, sizes, attributes).astype(np.float64)
        table += rng.normal(size=table.shape) * SIGMA
        measurements.append(Measurement(attributes, (None,) * len(attributes), table, SIGMA))
    return Problem(sizes, float(n), measurements)


def search_ratio(codes, sizes, every):
    """Seconds of the search of the graph over those of a fit of what it finds; two parties have half of the columns each."""
    n, half = codes.shape[1], (len(sizes) + 1) // 2
    schema = Schema.from_json({f"a{i}": size for i, size in enumerate(sizes)})
    plan = make_plan(schema.split((half, len(sizes) - half)), 0.8, PlanOptions(expected_records=n))
    crossing = [m for m in every if m.attributes[0] < half <= m.attributes[-1]]
    within = [m for m in every if m not in crossing]
    graph = combine_graphs(plan, within, crossing, n)
    used = used_in(graph.tree, within, graph.kept)
    with threads(1):
        search = seconds(lambda: combine_graphs(plan, within, crossing, n), 3)
        return search / seconds(lambda: fit(sizes, used, n, tree=graph.tree), 3)


def off_tree_ratio(problem, every):
    """Seconds of off-tree factors of all pairs outside a problem's cliques over NumPy's to count as many rows in them."""
    sizes = problem.sizes
    model = problem.fit()
    outside = [m.attributes for m in every if model.tree.covering(m.attributes) < 0]
    drawn = sample(model, 1 << 17, np.random.default_rng(0)).astype(np.int64)

    def count():
        for a, b in outside:
            np.bincount(drawn[a] * sizes[b] + drawn[b], minlength=sizes[a] * sizes[b])

    fit_off_tree(model, every)
    with threads(1):
        return seconds(lambda: fit_off_tree(model, every), 3) / seconds(count, 3)


def double_precision_mbi():
    """The library, compiling anew in every process."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi

    return mbi


class Peer:
    """mbi, told the same measurements."""

    def __init__(self):
        self.mbi = double_precision_mbi()

    def domain(self, problem):
        return self.mbi.Domain([str(i) for i in range(len(problem.sizes))], problem.sizes)

    def fit(self, problem, iterations, warm=None):
        measurements = [
            self.mbi.LinearMeasurement(
                m.counts.ravel(), tuple(map(str, m.attributes)), float(m.sigma)
            )
            for m in problem.measurements
        ]
        model = self.mbi.estimation.MirrorDescent().estimate(
            self.domain(problem),
            measurements,
            known_total=problem.total,
            iters=iterations,
            warm_start=warm,
        )
        self.marginal(model, (0,))
        return model

    def marginal(self, model, attributes):
        return np.asarray(model.project(tuple(map(str, attributes))).datavector(flatten=False))

    def loss(self, model, problem):
        return sum(
            0.5 * float((((self.marginal(model, m.attributes) - m.counts) / m.sigma) ** 2).sum())
            for m in problem.measurements
        )

    def rows(self, model, rows):
        data = model.synthetic_data(rows=rows)
        return np.stack(
            [np.asarray(data.to_dict()[str(i)]) for i in range(len(model.domain.attributes))]
        )

    def calibrated(self, model):
        """Marginals from our factors, by mbi's message passing."""
        domain = self.mbi.Domain([str(i) for i in range(len(model.sizes))], model.sizes)
        factors = {}
        for f in model.factors:
            names = tuple(map(str, f.attributes))
            factor = self.mbi.Factor(domain.project(names), np.asarray(f.logs))
            factors[names] = factors[names] + factor if names in factors else factor
        potentials = self.mbi.CliqueVector(domain, tuple(factors), factors)
        return self.mbi.marginal_oracles.message_passing_stable(potentials, model.total)


def iteration(problem):
    """Seconds of one L-BFGS iteration: propagation, gradient, direction."""
    seen = []
    problem.fit(
        steps=1,
        tolerance=0.0,
        iterations=200,
        progress=lambda *_: seen.append(time.perf_counter()),
    )
    return float(np.median(np.diff(seen)))


def roofline(tree):
    """Seconds to read and write every clique table once per pass: two passes, one at the roots."""
    arrays = [np.ones(cells) for cells in tree.clique_cells]
    times = [1 if parent < 0 else 2 for parent in tree.parents]
    copies = [np.ones_like(a) for a in arrays]

    def stream():
        for a, b, k in zip(arrays, copies, times, strict=True):
            for _ in range(k):
                np.copyto(b, a)

    return seconds(stream, 25)


def propagation_seconds(problem):
    """Seconds of one belief propagation on one thread, as the roofline is."""
    engine = Propagation(problem.tree(), sorted({m.attributes for m in problem.measurements}))
    with threads(1):
        return seconds(engine.run, 25)


def mean_tvd(codes, problem, marginal):
    """Mean distance of a sample from its model over the measured marginals."""
    distances = []
    for m in problem.measurements:
        p = contingency(codes, problem.sizes, m.attributes) / codes.shape[1]
        distances.append(0.5 * np.abs(p - marginal(m.attributes) / problem.total).sum())
    return float(np.mean(distances))


def peak_memory(data):
    """Peak resident memory of fit, beliefs and sampling over the clique tables, in a process of its own."""
    out = subprocess.run(
        [sys.executable, __file__, "--data", str(data), "--memory"],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(out.stdout)


def print_peak_memory(data):
    """Body of that process; Linux only. Compiling and loading are over when the clock of the peak is set back."""
    adult = datasets.adult(data)
    codes, sizes = adult.codes, adult.sizes
    small = measure_pairs(codes, sizes, 1e3, 5)
    sample(small.fit(), 100, np.random.default_rng(0))
    problem = measure_pairs(codes, sizes, 3e6, 40)
    tree = problem.tree()

    def status(key):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(text.split()[1]) for text in lines if text.startswith(key))

    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    model = problem.fit(steps=1, iterations=5)
    sample(model, 1000, np.random.default_rng(0))
    print((status("VmHWM") - before) / (8 * tree.cells))


def rounds(problem, count, peer):
    """Seconds and final loss of a loop that adds a pair each round and fits again, warm; ours and the peer's."""
    base = [m for m in problem.measurements if len(m.attributes) == 1]
    pairs = [m for m in problem.measurements if len(m.attributes) == 2][:count]
    steps = [
        Problem(problem.sizes, problem.total, base + pairs[: i + 1]) for i in range(len(pairs))
    ]
    start = time.perf_counter()
    model = None
    for step in steps:
        model = step.fit(warm=model)
    ours = time.perf_counter() - start
    if peer is None:
        return ours, None, model.loss, None
    start = time.perf_counter()
    theirs = None
    for step in steps:
        theirs = peer.fit(step, 100, theirs)
    return ours, time.perf_counter() - start, model.loss, peer.loss(theirs, steps[-1])


def counting_ratio(codes, sizes, records):
    """Time of np.bincount per pair over that of all pairs at once."""
    many = np.ascontiguousarray(
        codes[:, np.random.default_rng(0).integers(0, codes.shape[1], records)]
    )
    pairs = list(itertools.combinations(range(len(sizes)), 2))

    def one_by_one():
        for a, b in pairs:
            np.bincount(
                many[a].astype(np.int64) * sizes[b] + many[b], minlength=sizes[a] * sizes[b]
            )

    all_pairs(many, sizes, pairs)
    return seconds(one_by_one, 3) / seconds(lambda: all_pairs(many, sizes, pairs))


def run(data, size):
    """All lines, each as soon as it is known."""
    quick, smoke = size != FULL, size == SMOKE
    peer = Peer() if importlib.util.find_spec("mbi") else None
    adult = datasets.adult(data)
    codes, sizes = adult.codes, adult.sizes
    problem = measure_pairs(codes, sizes, *((1e4, 3) if smoke else (6e5, 25)))
    tree = problem.tree()
    print(
        f"Adult: {len(problem.measurements)} measurements, {tree.cells:,} cells, largest clique {tree.largest:,}"
    )

    problem.fit(steps=1, iterations=3)
    ours = iteration(problem)
    yield Verdict("one iteration, ms", 1e3 * ours)
    iterations = 10 if smoke else 300 if quick else 1200
    theirs = loss = None
    if peer is not None:
        peer.fit(problem, min(iterations, 50))
        start = time.perf_counter()
        peer_model = peer.fit(problem, iterations)
        theirs = time.perf_counter() - start
        loss = peer.loss(peer_model, problem)
        yield Verdict(f"mbi: one iteration, ms (mean of {iterations})", 1e3 * theirs / iterations)
    yield Verdict(
        "one iteration: times faster than mbi", theirs / iterations / ours if theirs else None
    )

    model = problem.fit()
    share = final = None
    if loss is not None and theirs is not None:
        yield Verdict(f"mbi: loss after {iterations} iterations", loss)
        # Steps that go for the loss alone, as mbi's do.
        exact = {"proximal_weight": 10.0, "min_improvement": 0.0}
        for steps in range(1, 40):
            model = problem.fit(steps=steps, **exact)
            if model.loss <= loss:
                break
        taken = seconds(lambda: problem.fit(steps=steps, **exact))
        # A loss that is never reached takes for ever.
        share = taken / theirs if model.loss <= loss else math.inf
        final = problem.fit(steps=steps + 5, **exact).loss / loss
    yield Verdict(f"time to mbi's loss after {iterations} iterations, share of mbi's", share)
    yield Verdict("final loss, share of mbi's", final)

    count = 1 if smoke else 4 if quick else 20
    mine, others, my_loss, peer_loss = rounds(problem, count, peer)
    yield Verdict(f"{count} rounds that add a marginal, s", mine)
    yield Verdict(
        f"{count} rounds, share of mbi's time (its 100 iterations a round)",
        mine / others if others else None,
    )
    yield Verdict(
        f"{count} rounds, share of mbi's loss", my_loss / peer_loss if peer_loss else None
    )

    yield Verdict(
        "peak memory of fit and sample, clique tables", None if smoke else peak_memory(data)
    )
    stream = roofline(tree)
    yield Verdict("read and write clique tables once per pass (roofline), ms", 1e3 * stream)
    once = propagation_seconds(problem)
    yield Verdict("one propagation, ms", 1e3 * once)
    yield Verdict("one propagation, share of roofline", once / stream)
    large = problem if smoke else measure_pairs(codes, sizes, 3e6, 40)
    share = propagation_seconds(large) / roofline(large.tree())
    yield Verdict(f"one propagation with {large.tree().cells:,} cells, share of roofline", share)

    every = measure_pairs(codes, sizes, math.inf, len(sizes) ** 2).measurements
    search = search_ratio(codes, sizes, every)
    yield Verdict("search of the graph, times a fit of what it finds", search)
    off_tree = off_tree_ratio(problem, every)
    yield Verdict("off-tree factors, times np.bincount of their tables", off_tree)

    rows = 2000 if smoke else 200_000 if quick else 1_000_000
    sample(model, 100, np.random.default_rng(0))
    mine = seconds(lambda: sample(model, rows, np.random.default_rng(0)))
    yield Verdict(f"{rows:,} rows sampled, s", mine)
    distance = mean_tvd(sample(model, rows, np.random.default_rng(0)), problem, model.marginal)
    yield Verdict("their distance from the model, mean TVD of measured marginals", distance)
    ratio = distances = None
    if peer is not None:
        start = time.perf_counter()
        drawn = peer.rows(peer_model, rows)
        ratio = (time.perf_counter() - start) / mine
        distances = distance / mean_tvd(
            drawn, problem, lambda attributes: peer.marginal(peer_model, attributes)
        )
    yield Verdict("sampling: times faster than mbi synthetic_data", ratio)
    yield Verdict("sampling: distance from the model, share of mbi's", distances)

    records = 10_000 if smoke else 1_000_000
    ratio = counting_ratio(codes, sizes, records)
    yield Verdict(
        f"all two-way counts of {records:,} records: times faster than np.bincount", ratio
    )
    worst = None
    if peer is not None:
        calibrated = peer.calibrated(model)
        worst = max(
            float(
                np.abs(peer.marginal(calibrated, m.attributes) - model.marginal(m.attributes)).max()
            )
            / model.total
            for m in problem.measurements
        )
    yield Verdict("marginals against mbi at the same factors, Adult", worst)


def main():
    parser = arguments(__doc__, quick="fewer iterations, rounds and rows", data="adult")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print_peak_memory(options.data)
        return
    finish(run(options.data, options.size), "model", options)


if __name__ == "__main__":
    main()
