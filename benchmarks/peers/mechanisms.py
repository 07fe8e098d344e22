"""MST and AIM on mbi, written out, with either estimator: the package has none itself."""

from __future__ import annotations

import functools
import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import Dataset
from benchmarks.verdict import FULL, QUICK, SMOKE
from vertimrf.kernels.contingency import contingency
from vertimrf.model.junction_tree import junction_tree

# Cells of a model's cliques that AIM may reach at the end (80 MB, as it is published).
MAX_CELLS = 10_000_000
# Rounds, an attribute, among which AIM as published shares its budget at first.
PLANNED_ROUNDS = 16
Clique = tuple[str, ...]


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes:
        degree: attributes of AIM's candidates, at most.
        rounds: of AIM.
        seeds: of the Synthesizer.
        columns: of the table that AIM runs on, the first ones: of all, mbi's AIM takes hours. MST has all in a full run.
    """

    degree: int
    rounds: int
    seeds: int
    columns: int


SCALES = {
    FULL: Scale(degree=3, rounds=10, seeds=5, columns=7),
    QUICK: Scale(degree=2, rounds=4, seeds=4, columns=5),
    SMOKE: Scale(degree=2, rounds=2, seeds=1, columns=3),
}


def double_precision_mbi():
    """The library, compiling anew in every process."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi

    return mbi


class Mbi:
    """Either mbi, with its own estimator or ours."""

    def __init__(self):
        self.mbi = double_precision_mbi()
        self.second = hasattr(self.mbi.estimation, "MirrorDescent")

    def estimators(self):
        """Functions of domain, measurements, total and a model to start from: mbi's own first."""
        if self.second:
            from vertimrf.adapters.mbi2 import Estimator

            def through(estimator):
                return lambda domain, measured, total, warm: estimator.estimate(
                    domain, measured, total, warm_start=warm
                )

            return {
                "mbi": through(self.mbi.estimation.MirrorDescent()),
                "ours": through(Estimator()),
            }
        from vertimrf.adapters.mbi1 import estimate

        def with_potentials(estimator):
            return lambda domain, measured, total, warm: estimator(
                domain,
                measured,
                known_total=total,
                potentials=None if warm is None else warm.potentials,
            )

        return {
            "mbi": with_potentials(self.mbi.estimation.mirror_descent),
            "ours": with_potentials(estimate),
        }

    def forget(self):
        """Drop what was compiled, as where a mechanism has a process of its own."""
        import jax

        jax.clear_caches()

    def answers(self, model, cliques):
        """Marginals of a model; many at once where the model is mbi's own and it offers that."""
        at_once = getattr(self.mbi.marginal_oracles, "bulk_variable_elimination", None)
        if at_once is not None and type(model) is self.mbi.MarkovRandomField:
            tables = at_once(model.potentials, list(cliques), model.total)
            return [np.asarray(tables.project(c).values) for c in cliques]
        return [np.asarray(model.project(c).values) for c in cliques]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A mechanism's run.

    Attributes:
        selected: the cliques it chose, in order.
        measurements: all it measured.
        model: the last.
        codes: synthetic rows [shape=(d, n), uint16].
        seconds: wall time, sampling included.
        estimating: the part of it in the estimator.
    """

    selected: list[Clique]
    measurements: list[Any]
    model: Any
    codes: np.ndarray
    seconds: float
    estimating: float


class Mechanism:
    """What MST and AIM share: exact tables, seeded noise, selections that are drawn or gone through again.

    Args:
        data: the table.
        mbi: the peer.
        estimate: whose estimator.
        again: selections of an earlier run; None draws them.
        rho: the budget, as zCDP.
        seed: of noise and selections.
    """

    def __init__(self, data, mbi, estimate, again, rho, seed=0):
        self.data, self.mbi, self.estimate = data, mbi, estimate
        self.again = None if again is None else list(again)
        self.domain = mbi.mbi.Domain(list(data.names), data.sizes)
        self.rho, self.seed = rho, seed
        self.selected = []
        self.measurements = []
        self.model = None
        self.estimating = 0.0
        self.tables = {}

    def exact(self, clique):
        if clique not in self.tables:
            attributes = [self.data.names.index(a) for a in clique]
            self.tables[clique] = contingency(self.data.codes, self.data.sizes, attributes).astype(
                np.float64
            )
        return self.tables[clique]

    def measure(self, cliques, sigma):
        for clique in cliques:
            # By place in the list, so that a second run meets the same noise.
            rng = np.random.default_rng([1, len(self.measurements), self.seed])
            noisy = self.exact(clique).ravel() + sigma * rng.normal(size=self.exact(clique).size)
            self.measurements.append(self.mbi.mbi.LinearMeasurement(noisy, clique, sigma))

    def refit(self):
        start = time.perf_counter()
        self.model = self.estimate(
            self.domain, list(self.measurements), float(self.data.records), self.model
        )
        # JAX computes in the background until somebody asks.
        np.asarray(self.model.project(self.data.names[:1]).values)
        self.estimating += time.perf_counter() - start

    def choose(self, candidates, scores, epsilon, sensitivity):
        """The exponential mechanism; or what the earlier run drew."""
        place = len(self.selected)
        if self.again is None:
            gumbel = np.random.default_rng([2, place, self.seed]).gumbel(size=len(candidates))
            best = candidates[
                int(np.argmax(0.5 * epsilon / sensitivity * np.asarray(scores) + gumbel))
            ]
        else:
            best = self.again[place]
        self.selected.append(best)
        return best

    def run(self):
        start = time.perf_counter()
        self.steps()
        codes = self.undone(rows_of(self.model, self.data))
        return Outcome(
            self.selected,
            self.measurements,
            self.model,
            codes,
            time.perf_counter() - start,
            self.estimating,
        )

    def steps(self):
        raise NotImplementedError

    def undone(self, codes):
        return codes


class MST(Mechanism):
    """A spanning tree of the worst fitted pairs, a third of the budget each for one-way marginals, choice and pairs."""

    def steps(self):
        names, d = self.data.names, len(self.data.names)
        self.measure([(a,) for a in names], math.sqrt(3 * d / (2 * self.rho)))
        self.compress()
        self.refit()
        pairs = list(itertools.combinations(names, 2))
        answers = dict(zip(pairs, self.mbi.answers(self.model, pairs), strict=True))
        scores = {pair: float(np.abs(self.exact(pair) - answers[pair]).sum()) for pair in pairs}
        epsilon = math.sqrt(8 * self.rho / (3 * (d - 1)))
        component = {a: a for a in names}
        chosen = []
        for _ in range(d - 1):
            apart = [(a, b) for a, b in pairs if component[a] != component[b]]
            a, b = self.choose(apart, [scores[pair] for pair in apart], epsilon, 1.0)
            chosen.append((a, b))
            joined = component[b]
            component = {x: component[a] if c == joined else c for x, c in component.items()}
        self.measure(chosen, math.sqrt(3 * (d - 1) / (2 * self.rho)))
        self.refit()

    def compress(self):
        """Nothing by default."""


class CompressedMST(MST):
    """MST as in mbi's repository: a column's rare values are one, counted by a query that is a lambda."""

    def compress(self):
        self.merged, codes, sizes = {}, self.data.codes.copy(), list(self.data.sizes)
        for a, m in enumerate(self.measurements):
            rare = np.flatnonzero(m.noisy_measurement < 3 * m.stddev)
            if len(rare) < 2:
                continue
            kept = np.setdiff1d(np.arange(sizes[a]), rare)
            of = np.full(sizes[a], len(kept))
            of[kept] = np.arange(len(kept))
            weights = np.append(np.ones(len(kept)), len(rare) ** -0.5)
            noisy = np.bincount(of, m.noisy_measurement) * weights
            self.measurements[a] = self.mbi.mbi.LinearMeasurement(
                noisy, m.clique, m.stddev, lambda f, weights=weights: f.datavector() * weights
            )
            self.merged[a], codes[a], sizes[a] = (kept, rare), of[codes[a]], len(weights)
        self.data = Dataset(self.data.name, self.data.names, tuple(sizes), codes)
        self.domain = self.mbi.mbi.Domain(list(self.data.names), self.data.sizes)
        self.tables = {}

    def undone(self, codes):
        """Rare values are drawn at random."""
        rng = np.random.default_rng([3, self.seed])
        for a, (kept, rare) in self.merged.items():
            drawn = rng.choice(rare, codes.shape[1])
            codes[a] = np.where(codes[a] < len(kept), np.append(kept, 0)[codes[a]], drawn)
        return codes


class AIM(Mechanism):
    """The worst fitted of all marginals up to a degree, weighted by what else they tell, round by round."""

    scale = SCALES[FULL]

    def steps(self):
        names, rounds = self.data.names, self.scale.rounds
        sigma, epsilon = of_round(self.rho, len(names) + rounds)[0], of_round(self.rho, rounds)[1]
        self.measure([(a,) for a in names], sigma)
        self.refit()
        for done in range(rounds):
            self.round(sigma, epsilon, (done + 1) / rounds)

    def round(self, sigma, epsilon, reached):
        """Measure what the model fits worst, among what keeps it within its share of cells, and fit."""
        candidates = [c for c in self.weights if self.cells_with(c) <= MAX_CELLS * reached]
        scores = [
            self.weights[c]
            * (float(np.abs(self.exact(c) - answer).sum()) - noise_of(sigma, answer.size))
            for c, answer in zip(candidates, self.mbi.answers(self.model, candidates), strict=True)
        ]
        chosen = self.choose(candidates, scores, epsilon, max(self.weights[c] for c in candidates))
        self.measure([chosen], sigma)
        self.refit()
        return chosen

    @functools.cached_property
    def weights(self):
        """Of every candidate, how much of the workload it tells."""
        names = self.data.names
        workload = list(itertools.combinations(names, min(self.scale.degree, len(names))))
        closure = sorted(
            {
                subset
                for c in workload
                for k in range(1, len(c) + 1)
                for subset in itertools.combinations(c, k)
            }
        )
        return {c: float(sum(len(set(c) & set(w)) for w in workload)) for c in closure}

    def cells_with(self, clique):
        place = {a: i for i, a in enumerate(self.data.names)}
        sets = [*(m.clique for m in self.measurements), clique]
        edges = {
            tuple(sorted((place[a], place[b])))
            for subset in sets
            for a, b in itertools.combinations(subset, 2)
        }
        return junction_tree(self.data.sizes, edges).cells


class AnnealedAIM(AIM):
    """AIM with its published budget: shares for 16 rounds an attribute, and four of them a round from where one told nothing.

    After a round whose marginal moved by no more than its noise, sigma is halved and epsilon doubled; the last takes all that is
    left. Rounds go by what those before them found: an earlier run's selections have no place here.
    """

    def steps(self):
        names = self.data.names
        sigma, epsilon = of_round(self.rho, PLANNED_ROUNDS * len(names))
        self.measure([(a,) for a in names], sigma)
        self.refit()
        left = self.rho - len(names) / (2 * sigma**2)
        while left > 0:
            if left < 2 * cost_of(sigma, epsilon):
                sigma, epsilon = of_round(left, 1)
                left = 0.0
            else:
                left -= cost_of(sigma, epsilon)
            before = self.model
            chosen = self.round(sigma, epsilon, 1 - left / self.rho)
            old, new = (self.mbi.answers(model, [chosen])[0] for model in (before, self.model))
            if float(np.abs(new - old).sum()) <= noise_of(sigma, new.size):
                sigma, epsilon = sigma / 2, 2 * epsilon


def of_round(rho, rounds):
    """Noise of a measurement and epsilon of a selection, where so many rounds share a budget: a tenth of it for selections."""
    return math.sqrt(rounds / (2 * 0.9 * rho)), math.sqrt(8 * 0.1 * rho / rounds)


def cost_of(sigma, epsilon):
    """What a measurement and a selection spend, as rho of zCDP."""
    return 1 / (2 * sigma**2) + epsilon**2 / 8


def noise_of(sigma, cells):
    """Expected sum of the absolute noise of a marginal."""
    return math.sqrt(2 / math.pi) * sigma * cells


def rows_of(model, data):
    """Synthetic rows, as many as there are records [shape=(d, n), uint16]."""
    made = model.synthetic_data(data.records).to_dict()
    return np.stack([np.asarray(made[a]) for a in data.names]).astype(np.uint16)
