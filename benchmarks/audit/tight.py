"""Privacy loss from outside: how well the strongest test tells a table from its neighbour, against what is stated.

By Neyman and Pearson no test is stronger than the likelihood ratio. It is a function of what was
released and of both tables, and record and replay computes it exactly: run on one table, and replay on
the other to learn what noise would have been added to there, release by release, whatever was chosen on
the way. For Gaussian noise the log ratio has two normal laws, mu apart in units of their standard
deviation (Dong, Roth and Su, 2022), and mu is stated by the ledger: the root of twice its rho.

Bounds are Clopper and Pearson's, at a chance of error of 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special, stats

from vertimrf import Party
from vertimrf.party.records import InMemory
from vertimrf.privacy.choice import ChoiceEvent
from vertimrf.privacy.events import GaussianEvent, GeometricEvent
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.randomised_responses.encoding import respond
from vertimrf.releases.randomised_responses.parameters import RandomisedResponses

from .cases import SECRET, Case, neighbours, plan_of
from .replay import Recorder, entries_of

CHANCE = 1e-5
# Plans and runs that tell tables apart well, with a noise of at least a record or so: below, discrete
# noise is no longer like the normal law. And plans as people make them, for noise that is cut.
PRECISE = (
    (
        Case("", {"epsilon": 12.0, "local_models": False, "shares": (0.3, 0.7, 0.0)}, alone=True),
        4000,
    ),
    (Case("", {"epsilon": 30.0, "tau": 2000}, alone=True), 3000),
    (Case("", {"epsilon": 12.0, "tau": 40}, wide=6), 300),
)
USUAL = (
    Case("", {"epsilon": 4.0, "tau": 2000}, alone=True),
    Case("", {"epsilon": 4.0, "tau": 40}, wide=6),
)
# Releases whose price a pair of tables reaches. A record moves all R-scores less than their price allows.
TIGHT = (
    "record count",
    "one-way marginals",
    "larger marginals",
    "fine marginals",
    "counts of searches, and to plan with",
    "responses",
    "choices",
)


@dataclass(frozen=True)
class Found:
    """What a test from outside found of one kind of release.

    Attributes:
        release: its kind.
        unit: "mu" or "epsilon"; "range" for choices.
        stated: what the ledger states.
        empirical: what was found.
        error: standard error of ``empirical``.
        at_least: a bound that is below the truth but for a chance of 1e-5.
    """

    release: str
    unit: str
    stated: float
    empirical: float
    error: float
    at_least: float

    @property
    def ratio(self) -> float:
        """What was found, as a part of what is stated."""
        return self.empirical / self.stated

    @property
    def broken(self) -> bool:
        """Whether more was found than is stated, beyond chance."""
        return self.at_least > self.stated


class LessNoise(Recorder):
    """A source of noise with a tenth of the scale that it is asked for."""

    def _added(self, draw, law, values, parameter):
        return super()._added(draw, law, values, parameter / 10)


def outside(
    case: Case, folder: Path, runs: int, seed: int = 1, source: type[Recorder] = Recorder
) -> tuple[Found, ...]:
    """Tell a table from its neighbour by a party's noisy figures, kind by kind.

    Args:
        case: a party's plan.
        folder: for files.
        runs: of each of the two tables.
        seed: of the first run's noise.
        source: the noise.
    """
    plan = plan_of(case)
    entries = [
        e for e in entries_of(plan.ledger(), "hospital") if isinstance(e.event, GaussianEvent)
    ]
    kind = {float(e.event.sigma): str(e.kind) for e in entries}
    _, *paths = next(neighbours(case, folder))
    party = Party(plan, "hospital", SECRET, FixedNoise(0))
    tables = [InMemory(party.encode(path, "id")) for path in paths]
    ratios: list[list[Mapping[str, float]]] = [[], []]
    for run in range(runs):
        for which in (0, 1):
            first = source(seed=2 * (seed + run) + which)
            _released(party, tables[which], first)
            second = Recorder(first.draws)
            _released(party, tables[1 - which], second)
            sign = 1 - 2 * which
            losses = _losses(first.draws, second.draws, kind)
            ratios[which].append({name: sign * loss for name, loss in losses.items()})
    return tuple(
        _mu(
            str(e.kind),
            math.sqrt(2 * e.event.rho),
            *(np.array([each.get(str(e.kind), 0.0) for each in some]) for some in ratios),
        )
        for e in entries
    )


def _released(party: Party, table: InMemory, noise: Recorder) -> None:
    """The count and the local model of a table."""
    party._count(table, None, noise)
    party._local(table, noise)


def _losses(first: Sequence, second: Sequence, kind: Mapping[float, str]) -> dict[str, float]:
    """Log of the ratio of the likelihoods of what was released, by kind."""
    out: dict[str, float] = {}
    for one, other in zip(first, second, strict=True):
        if one.law != "gaussian":
            continue
        result = np.asarray(one.result, np.float64)
        near, far = result - one.exact, result - other.exact
        loss = float((far**2 - near**2).sum()) / (2 * one.parameter**2)
        # Several units are released together, with the root of their number times the noise.
        name = kind.get(one.parameter) or next(
            name
            for sigma, name in kind.items()
            if abs((ratio := (one.parameter / sigma) ** 2) - round(ratio)) < 1e-6 * ratio
            and name == "larger marginals"
        )
        out[name] = out.get(name, 0.0) + loss
    return out


def _mu(name: str, stated: float, one: np.ndarray, other: np.ndarray) -> Found:
    """How far apart the log ratios of two tables are."""
    spread = math.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    empirical = float(one.mean() - other.mean()) / spread
    hits, alarms = int((one > 0).sum()), int((other > 0).sum())
    low = _lower(hits, len(one)), 1 - _lower(len(other) - alarms, len(other))
    at_least = float(special.ndtri(low[0]) - special.ndtri(low[1]))
    error = math.sqrt(2 / len(one) + empirical**2 / (4 * len(one)))
    return Found(name, "mu", stated, empirical, error, at_least)


def _lower(hits: int, tries: int) -> float:
    """A bound of a probability from below, at half of the chance of error."""
    return float(stats.beta.ppf(CHANCE / 2, hits, tries - hits + 1)) if hits else 0.0


def _epsilon(name: str, stated: float, hits: int, alarms: int, tries: int) -> Found:
    """Epsilon from how often an outcome occurs with a table and its neighbour."""
    low, high = _lower(hits, tries), 1 - _lower(tries - alarms, tries)
    hit, alarm = max(hits, 0.5), max(alarms, 0.5)
    error = math.sqrt(1 / hit + 1 / alarm)
    at_least = math.log(low / high) if low else -math.inf
    return Found(name, "epsilon", stated, math.log(hit / alarm), error, at_least)


def geometric(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """Noisy counts of searches and of the number to plan with; ``less`` times the noise."""
    event = GeometricEvent(2.0)
    counts = [
        int(
            (
                FixedNoise(2 * seed + i).geometrics(np.full(tries, 400 + i), less * event.scale)
                > 400
            ).sum()
        )
        for i in (1, 0)
    ]
    return _epsilon("counts of searches, and to plan with", event.pure_epsilon, *counts, tries)


def response(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """Randomised responses of one attribute of four values."""
    stated = 1.0
    plan = RandomisedResponses(stated / less, (4,))
    digests = np.arange(tries, dtype=np.uint64)
    counts = []
    for value in (0, 1):
        codes = np.full((1, tries), value, np.uint16)
        source = FixedNoise(2 * seed + value).stream(lambda: b"")
        (reported,) = respond(plan, (0,), digests, codes, bytes(16), source)
        counts.append(int((reported == 0).sum()))
    return _epsilon("responses", stated, *counts, tries)


def choice(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """A choice of two candidates whose scores a record moves apart: its odds change by the range."""
    event = ChoiceEvent(2.0)
    odds, bounds, error = [], [], 0.0
    for which, scores in enumerate(([401, 399], [400, 400])):
        source = FixedNoise(2 * seed + which)
        exact = np.array(scores, np.int64)
        hits = sum(source.choose(exact, less * event.scale) == 0 for _ in range(tries))
        # Half a hit more of each, where one never occurs.
        odds.append(math.log((hits + 0.5) / (tries - hits + 0.5)))
        error = math.hypot(error, math.sqrt(1 / (hits + 0.5) + 1 / (tries - hits + 0.5)))
        low = _lower(hits, tries) if which == 0 else 1 - _lower(tries - hits, tries)
        bounds.append(float(special.logit(low)))
    apart = bounds[0] - bounds[1]
    return Found("choices", "range", event.range, odds[0] - odds[1], error, apart)


PURE: tuple[Callable[..., Found], ...] = (geometric, response, choice)
# Tries of what has a pure epsilon.
TRIES = {geometric: 200_000, response: 200_000, choice: 20_000}


def tight(folder: Path, more: float = 1.0) -> tuple[Found, ...]:
    """Every kind of release with noise as it ships; where several plans have it, the most precise.

    Args:
        folder: for files.
        more: times the usual number of runs.
    """
    out: dict[str, Found] = {}
    for case, runs in PRECISE:
        for found in outside(case, folder, max(round(more * runs), 20)):
            best = out.setdefault(found.release, found)
            if found.error / found.stated < best.error / best.stated:
                out[found.release] = found
    return (*out.values(), *(test(TRIES[test]) for test in PURE))


def of_a_tenth(folder: Path, trials: int, runs: int) -> dict[str, float]:
    """The part of trials in which noise of a tenth is found, by kind of release.

    Args:
        folder: for files.
        trials: number of trials.
        runs: of each of two tables in a trial.
    """
    seen: dict[str, list[bool]] = {}
    for trial in range(trials):
        found = [
            one
            for case in USUAL
            for one in outside(case, folder, runs, 1 + trial * runs, LessNoise)
        ]
        found += [test(2000, 100 + trial, 0.1) for test in PURE]
        for name in {one.release for one in found}:
            broken = any(one.broken for one in found if one.release == name)
            seen.setdefault(name, []).append(broken)
    return {name: sum(some) / len(some) for name, some in seen.items()}
