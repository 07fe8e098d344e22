"""Privacy loss from outside: how well the strongest test tells a table from its neighbour, against what is stated.

By Neyman and Pearson no test is stronger than the likelihood ratio. It is a function of what was
released and of both tables, and record and replay computes it exactly: run on one table, and replay on
the other to learn what noise would have been added to there, release by release, whatever was chosen on
the way. For Gaussian noise the log ratio has two normal laws, mu apart in units of their standard
deviation (Dong, Roth and Su, 2022), and mu is stated by the ledger: the root of twice its rho.

Bounds are those of :mod:`.found`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import special

from vertimrf import Party
from vertimrf.kernels.count_sketch import quantise
from vertimrf.party.records import InMemory
from vertimrf.privacy.choice import ChoiceEvent
from vertimrf.privacy.count_sketch import ratio_law
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, GeometricEvent
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.count_sketches.encoding import STEPS, CountSketchEncoder, code_steps
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.randomised_responses.encoding import respond
from vertimrf.releases.randomised_responses.parameters import RandomisedResponses

from .cases import SECRET, Case, neighbours, plan_of
from .found import Found, epsilon_of, lower, mu_of
from .replay import Recorder, entries_of
from .tight_pairs import distance, encrypted, pair

# Plans and runs that tell tables apart well, each for the releases that those before lack, whose noise
# is a record or so at least: below, discrete noise is no longer like the normal law. A record moves
# R-scores most that differs in all columns from all others, which are alike. And plans as people make
# them, for noise that is cut.
PRECISE = (
    (
        Case("", {"epsilon": 12.0, "local_models": False, "shares": (0.3, 0.7, 0.0)}, alone=True),
        4000,
    ),
    (Case("", {"epsilon": 30.0, "tau": 2000}, alone=True), 2000),
    (Case("", {"epsilon": 100.0, "tau": 40}, wide=6, alike=True), 1000),
)
USUAL = (
    Case("", {"epsilon": 4.0, "tau": 2000}, alone=True),
    Case("", {"epsilon": 8.0, "tau": 40}, wide=6, alike=True),
)
# Releases whose price a pair of tables reaches: all that are tried.
TIGHT = (
    "record count",
    "one-way marginals",
    "larger marginals",
    "fine marginals",
    "R-scores",
    "counts of searches, and to plan with",
    "responses",
    "choices",
    "count sketches",
    "count sketches, hashes known",
    "scheduled pairs",
    "encrypted counts",
)


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
        mu_of(
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
    return epsilon_of("counts of searches, and to plan with", event.pure_epsilon, *counts, tries)


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
    return epsilon_of("responses", stated, *counts, tries)


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
        low = lower(hits, tries) if which == 0 else 1 - lower(tries - hits, tries)
        bounds.append(float(special.logit(low)))
    apart = bounds[0] - bounds[1]
    return Found("choices", "range", event.range, odds[0] - odds[1], error, apart)


# Count sketches that tell well: values of a record, buckets, noise variance, bits of a code, and
# repetitions in a try, for somebody who knows no hashes and for one who knows them.
VALUES, BUCKETS, VARIANCE, BITS, REPETITIONS, KNOWN = 8, 8, 12.0, 4, 100, 6
# Repetitions that are encoded at a time.
AT_ONCE = 25_000


def sketch(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """Count sketches of one record, against none, to somebody who does not know the hashes.

    No other records: these only hide it. Stated is the distance of the two laws of the log ratio that
    the ledger composes, of counters without codes.
    """
    stated = VARIANCE / less**2
    ratio, mass, _ = ratio_law(VALUES, stated, BUCKETS)
    some = mass > 0
    mu = math.sqrt(REPETITIONS) * distance(np.log(mass[some]), np.log(ratio[some]))
    # The best test knows by which variance noise was drawn.
    table = _code_ratios(VARIANCE)

    def log_ratio(codes: np.ndarray, _: np.ndarray) -> np.ndarray:
        up, down = (table[sign][codes].sum(axis=0) for sign in (0, 1))
        return np.log(((np.exp(up) + np.exp(down)) / 2).mean(axis=-1))

    return mu_of("count sketches", mu, *_sketched(tries, REPETITIONS, seed, log_ratio))


def colluding(tries: int, seed: int = 1, less: float = 1.0) -> Found:
    """The same sketches, to somebody who knows each record's buckets and signs."""
    event = CountSketchEvent(VALUES, VARIANCE / less**2, BUCKETS, KNOWN).known_hashes
    table = _code_ratios(VARIANCE)

    def log_ratio(codes: np.ndarray, signs: np.ndarray) -> np.ndarray:
        sums = [table[sign][codes].sum(axis=0) for sign in (0, 1)]
        return np.where(signs > 0, sums[0], np.where(signs < 0, sums[1], 0.0)).sum(axis=-1)

    mu = math.sqrt(2 * event.rho)
    found = _sketched(tries, KNOWN, seed, log_ratio)
    return mu_of("count sketches, hashes known", mu, *found)


def _code_ratios(variance: float) -> np.ndarray:
    """Log of the ratio of a code's probabilities with the record and without
    [shape=(signs up and down, codes)].
    """
    reach = math.ceil(30 * math.sqrt(variance))
    # Noise lies halfway between whole numbers.
    doubled = 2 * np.arange(-reach, reach) + 1
    step = STEPS[BITS] * math.sqrt(variance)
    plan = CountSketches(1, BUCKETS, variance, BITS, (1,) * VALUES)
    assert math.isclose(code_steps(plan, np.zeros(1))[0], step)
    code = np.empty((1, doubled.size), np.uint8)
    # The code that parties run decides which numbers share a code.
    quantise(doubled.astype(np.int32)[None, None], np.full(1, step), BITS, code)
    chance = [np.exp(-((doubled / 2 - shift) ** 2) / (2 * variance)) for shift in (1, -1, 0)]
    up, down, none = (np.bincount(code[0], some / some.sum(), 1 << BITS) for some in chance)
    return np.log(np.array([up, down]) / none)


def _sketched(
    tries: int, repetitions: int, seed: int, log_ratio: Callable[..., np.ndarray]
) -> list[np.ndarray]:
    """Log ratios of sketches with a record and without, of all repetitions of a try together.

    Args:
        tries: of each of the two tables.
        repetitions: of a try.
        seed: of noise and hashes.
        log_ratio: of codes [shape=(values, repetitions, buckets)] and of the sign of the record in each
            bucket, 0 elsewhere [shape=(repetitions, buckets)]; gives that of each repetition.
    """
    digest, codes = np.array([12345], np.uint64), np.zeros((VALUES, 1), np.uint16)
    together, out = AT_ONCE // repetitions, []
    for present in (True, False):
        ratios = []
        for first in range(0, tries, together):
            size = min(together, tries - first) * repetitions
            plan = CountSketches(size, BUCKETS, VARIANCE, BITS, (1,) * VALUES)
            secret = hashlib.blake2b(f"{seed} {first} {present}".encode(), digest_size=32).digest()
            encoder, alone = (CountSketchEncoder(plan, range(VALUES), secret) for _ in range(2))
            alone.update(digest, codes)
            signs = alone._state[:, 0].copy()
            if present:
                encoder.update(digest, codes)
            noise = FixedNoise(1_000_000 * seed + 2 * first + present).stream(lambda: b"")
            released = np.array(encoder.result([np.zeros(1)] * VALUES, noise))
            each = log_ratio(released.reshape(VALUES, size, BUCKETS), signs)
            ratios.append(each.reshape(-1, repetitions).sum(axis=1))
        out.append(np.concatenate(ratios))
    return out


PURE: tuple[Callable[..., Found], ...] = (geometric, response, choice)
SKETCHES: tuple[Callable[..., Found], ...] = (sketch, colluding, pair, encrypted)
# Tries with noise as it ships, and with a tenth of it.
TRIES = {
    geometric: 200_000,
    response: 200_000,
    choice: 20_000,
    sketch: 4000,
    colluding: 4000,
    pair: 4000,
    encrypted: 1000,
}
TRIES_OF_A_TENTH = dict.fromkeys(PURE, 2000) | dict.fromkeys(SKETCHES, 250) | {encrypted: 200}


def tight(folder: Path, more: float = 1.0) -> tuple[Found, ...]:
    """Every kind of release with noise as it ships, each under the first plan that has it.

    Args:
        folder: for files.
        more: times the usual number of runs.
    """
    out: dict[str, Found] = {}
    for case, runs in PRECISE:
        for found in outside(case, folder, max(round(more * runs), 20)):
            out.setdefault(found.release, found)
    return (*out.values(), *(test(tries) for test, tries in TRIES.items()))


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
        found += [test(tries, 100 + trial, 0.1) for test, tries in TRIES_OF_A_TENTH.items()]
        for name in {one.release for one in found}:
            broken = any(one.broken for one in found if one.release == name)
            seen.setdefault(name, []).append(broken)
    return {name: sum(some) / len(some) for name, some in seen.items()}
