"""The engine under other front ends: OpenDP's AIM, MST and AIM on mbi, each against mbi's own estimator; and our Synthesizer.

    python benchmarks/front_ends.py [--data FOLDER] [--quick | --smoke] [--json FILE]

FOLDER holds adult.csv.gz and adult-domain.json; without it, a stand-in with Adult's domain is drawn, and accuracy has no bar.
A line is measured where what it needs is installed: mbi 2 (the extra `mbi`) or mbi 1.1 (`mbi1`) for MST and AIM, OpenDP with mbi
1.1 (`opendp`) for its own AIM. The two mbi exclude each other, so that all lines take two environments.

On mbi, MST (McKenna, Miklau, Sheldon, 2021; also with rare values merged, as in mbi's repository) and AIM (McKenna, Mullins, Sheldon, Miklau, 2022; with rounds of equal budget) are
written out here (and AIM with its published budget, for benchmarks/peers). They run with mbi's estimator first; then the same
selections and the same noisy counts are gone through again with ours, with all the work in between: so rounds and measurements
are the same, and times compare. OpenDP draws its noise itself: there the times of whole releases are compared per fit, and loss
and accuracy on the measurements of mbi's run.

Times are of all that a user waits for, JAX's compilation included, which mbi needs for every new set of cliques; ours is compiled
once and cached on disk, and loaded beforehand. Noise is seeded: no output of this script is private. --quick takes five columns
and few rounds.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import math
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.model import double_precision_mbi
from benchmarks.reproduce.methods import METHODS
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf.kernels.contingency import contingency
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.sample import sample
from vertimrf.privacy.accountant import calibrate
from vertimrf.privacy.events import GaussianEvent
from vertimrf.utility.distances import tvd

EPSILON = 1.0
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


def loss_of(model, measurements):
    """Half the weighted squares that are left, on the same counts for everybody."""
    return sum(
        0.5
        * float(
            np.square(
                (np.asarray(m.query(model.project(m.clique))).ravel() - m.noisy_measurement)
                / m.stddev
            ).sum()
        )
        for m in measurements
        if len(m.clique)
    )


def budget(data):
    """What Gaussian noise may spend, as rho of zCDP, at EPSILON and a delta of 1/n."""
    return calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], EPSILON, 1 / data.records)


def on_mbi(whole, part, scale):
    """MST, and AIM on part of the table, on mbi: its estimator and ours on the same rounds."""
    if not importlib.util.find_spec("mbi"):
        yield from (Verdict(f"{name} on mbi, share of its time", None) for name in ("MST", "AIM"))
        return
    mbi = Mbi()
    estimators = mbi.estimators()
    AIM.scale = scale
    for mechanism, data in ((MST, whole), (CompressedMST, whole), (AIM, part)):
        rho = budget(data)
        mbi.forget()
        name = f"{mechanism.__name__} on mbi {'2' if mbi.second else '1.1'}"
        theirs = mechanism(data, mbi, estimators["mbi"], None, rho).run()
        ours = mechanism(data, mbi, estimators["ours"], theirs.selected, rho).run()
        yield Verdict(f"{name}, mbi's estimator, s", theirs.seconds)
        yield Verdict(f"{name}, ours, s", ours.seconds)
        yield Verdict(f"{name}, share of its time", ours.seconds / theirs.seconds)
        yield Verdict(
            f"{name}, time in the estimator alone, over mbi's", ours.estimating / theirs.estimating
        )
        losses = [loss_of(outcome.model, theirs.measurements) for outcome in (ours, theirs)]
        yield Verdict(f"{name}, final loss, share of mbi's", losses[0] / losses[1])
        yield from accuracy(name, data, ours.codes, theirs.codes)
        yield Verdict(
            f"{name}, marginals against mbi's at the same factors",
            worst_difference(mbi, ours.model),
        )


def accuracy(name, data, ours, theirs):
    """Three-way distances of two tables of synthetic rows from the data."""
    figures = {
        whose: tvd(data.codes, codes, data.sizes, (3,))[3]
        for whose, codes in (("ours", ours), ("mbi's", theirs))
    }
    return [
        *(Verdict(f"{name}, 3-way TVD, {whose}", value) for whose, value in figures.items()),
        Verdict(f"{name}, 3-way TVD, share of mbi's", figures["ours"] / figures["mbi's"]),
    ]


def worst_difference(mbi, model, marginals=5):
    """Between our marginals and mbi's own at the model's factors: of its cliques, and of a few attributes that none holds."""
    exact = mbi.mbi.marginal_oracles.message_passing_stable(model.potentials, model.total)
    peer = mbi.mbi.MarkovRandomField(
        potentials=model.potentials, marginals=exact, total=model.total
    )
    apart = list(itertools.combinations(model.domain.attributes, 2))
    rng = np.random.default_rng(0)
    wanted = [
        *model.cliques,
        *(apart[i] for i in rng.choice(len(apart), min(marginals, len(apart)), replace=False)),
    ]
    return max(
        float(np.abs(np.asarray(peer.project(c).values) - model.project(c).values).max())
        for c in wanted
    )


def under_opendp(data, scale):
    """OpenDP's AIM, the estimator swapped by one argument."""
    name = "OpenDP's AIM"
    mbi = Mbi() if importlib.util.find_spec("mbi") else None
    if mbi is None or mbi.second or not importlib.util.find_spec("polars"):
        yield Verdict(f"{name}, time of a fit and its round, share of mbi's", None)
        return
    import opendp.prelude as dp
    import polars as pl

    from vertimrf.adapters.opendp import estimator

    dp.enable_features("contrib")
    # OpenDP serialises its query some thousand times while it looks for noise scales: a file's name, not its content.
    folder = tempfile.TemporaryDirectory()
    pl.DataFrame(dict(zip(data.names, data.codes.astype(np.int64), strict=True))).write_parquet(
        f"{folder.name}/table.parquet"
    )
    frame = pl.scan_parquet(f"{folder.name}/table.parquet")
    rho = budget(data)
    keys = {a: list(range(size)) for a, size in zip(data.names, data.sizes, strict=True)}
    tables, per_fit, estimating = {}, {}, {}
    for whose, chosen in (("mbi's", dp.mbi.mirror_descent), ("ours", estimator)):
        calls = []

        def timed(*arguments, chosen=chosen, calls=calls, **options):
            start = time.perf_counter()
            model = chosen(*arguments, **options)
            np.asarray(model.project(data.names[:1]).values)
            calls.append(time.perf_counter() - start)
            return model

        context = dp.Context.compositor(
            data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
        )
        algorithm = dp.mbi.AIM(estimator=timed, queries=scale.degree, rounds=scale.rounds)
        start = time.perf_counter()
        tables[whose] = (
            context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm).release()
        )
        seconds = time.perf_counter() - start
        per_fit[whose], estimating[whose] = seconds / len(calls), float(np.mean(calls))
        yield Verdict(f"{name}, {whose}, s", seconds)
    folder.cleanup()
    theirs = tables["mbi's"].model
    measured = tables["mbi's"].marginals.flatten()
    ours = estimator(theirs.domain, measured)
    rows = [rows_of(model, data) for model in (ours, theirs)]
    yield Verdict(
        f"{name}, time of a fit and its round, share of mbi's", per_fit["ours"] / per_fit["mbi's"]
    )
    yield Verdict(
        f"{name}, time of a fit alone, share of mbi's", estimating["ours"] / estimating["mbi's"]
    )
    yield Verdict(
        f"{name}, final loss, share of mbi's", loss_of(ours, measured) / loss_of(theirs, measured)
    )
    # OpenDP adds a key for nulls, behind the others, which no record has.
    yield from accuracy(
        name, Dataset(data.name, data.names, theirs.domain.shape, data.codes), *rows
    )


def central(data, scale):
    """Our Synthesizer, at the delta that published figures go by."""
    split = [range(len(data.sizes))]
    distances, seconds, computing = [], [], []
    for seed in range(scale.seeds + 1):
        start, busy = time.perf_counter(), time.process_time()
        made = METHODS["centralized"].synthesize(
            data.codes, data.sizes, split, 0.8, 1 / data.records, seed
        )
        # The first loads compiled kernels.
        if seed:
            seconds.append(time.perf_counter() - start)
            computing.append(time.process_time() - busy)
            distances.append(tvd(data.codes, made.codes, data.sizes, (3,))[3])
    mean = float(np.mean(distances))
    yield Verdict(
        f"Synthesizer on {data.name}, epsilon 0.8, delta 1/n: 3-way TVD, mean of {scale.seeds}",
        mean,
    )
    yield Verdict("Synthesizer: fit and sample, warm, s (median)", float(np.median(seconds)))
    # On a machine that does nothing else the wall time is no more than this; others' load does not enter.
    yield Verdict(
        "Synthesizer: the same, processor time of all threads, s (median)",
        float(np.median(computing)),
    )


def warm_up(data):
    """Load our compiled kernels."""
    sizes = data.sizes[:3]
    table = contingency(data.codes, data.sizes, (0, 1)).astype(np.float64)
    sample(
        fit(sizes, [Measurement((0, 1), (None, None), table, 10.0)], float(data.records)),
        10,
        np.random.default_rng(0),
    )


def main():
    """Run all sections, print one line a figure."""
    options = arguments(__doc__, quick="five columns and few rounds", data="adult").parse_args()
    warnings.simplefilter("ignore", UserWarning)
    adult = datasets.adult(options.data)
    scale = SCALES[options.size]
    few = slice(0, scale.columns)
    part = Dataset(
        adult.name, adult.names[few], adult.sizes[few], np.ascontiguousarray(adult.codes[few])
    )
    warm_up(adult)
    data = part if options.size == SMOKE else adult
    of_mst = adult if options.size == FULL else part
    sections = central(data, scale), on_mbi(of_mst, part, scale), under_opendp(part, scale)
    finish(itertools.chain(*sections), "front_ends", options)


if __name__ == "__main__":
    main()
