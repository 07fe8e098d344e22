"""Empirical privacy audit: what a distinguisher really finds out about one record, against what the ledger says.

Every trial runs the code that a party runs, with fresh hashes and fresh noise from the operating system, on a table with and
on one without a certain record. Keys are independent, so one run of an encoder under a fresh secret serves a batch of trials,
each with its own keys. A statistic (the likelihood ratio where it is known) tells the two apart; the Clopper-Pearson
bounds on its error rates give an epsilon that the mechanism certainly exceeds at delta. That must stay below the ledger's
epsilon for everything the product ships, and far exceeds the claim for the encoder that the paper publishes.

    python benchmarks/attacks/audit.py [--quick | --smoke] [--json FILE]
"""

from __future__ import annotations

import math
import secrets
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from msgspec import structs
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.verdict import (
    FULL,
    QUICK,
    SMOKE,
    Verdict,
    arguments,
    at_least,
    at_most,
    finish,
)
from vertimrf import Attribute, Party, PlanOptions, Schema, Secret, make_plan
from vertimrf.party.secret import derive
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, SketchEvent
from vertimrf.privacy.noise import SystemNoise
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder, code_steps
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.encrypted_counts.encoding import Steps
from vertimrf.releases.encrypted_counts.lattice import PrivateKey
from vertimrf.releases.encrypted_counts.parameters import table_weight
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.tables.table import Table

# Both error rates' bounds hold together with this probability.
CONFIDENCE = 0.9999
CAUTION = 2.0
BATCH = 500
# Trials with the record, and as many without.
TRIALS = {FULL: 100_000, QUICK: 5000, SMOKE: 200}


@dataclass(frozen=True)
class Audit:
    """Outcome of one audit.

    Attributes:
        name: what was audited.
        claim: epsilon that somebody claims at delta.
        exact: epsilon that the accountant gives.
        lower_bound: epsilon that the distinguisher certainly exceeds, at CONFIDENCE.
        delta: at which all three are stated.
        trials: with the record; as many without.
        reach: what would be found if the record's presence were plain in every trial: no audit of so many trials finds more.
    """

    name: str
    claim: float
    exact: float
    lower_bound: float
    delta: float
    trials: int

    @property
    def reach(self):
        plain = np.ones(self.trials - self.trials // 2)
        return _bound(plain, -plain, 0.0, self.delta)

    def verdicts(self):
        """The ledger's epsilon is never exceeded; a claim below it, as the published encoder's, plainly is."""
        head = f"{self.name}, {self.trials} trials, delta {self.delta:.1e}: "
        certain = f"{head}epsilon certainly exceeded"
        broken = at_least(f"{certain}, against the published claim", self.lower_bound, self.claim)
        return [
            at_most(f"{certain}, against the ledger's", self.lower_bound, self.exact),
            *([broken] if self.claim < self.exact else []),
            Verdict(f"{head}most that so many trials can show", self.reach),
        ]


def certain_epsilon(present, absent, delta):
    """Lower bound on epsilon at delta from the statistic of independent trials, large where the record seems present.

    The threshold and the direction are chosen on the first half of the trials and judged on the second. The choice takes every
    count for CAUTION standard errors worse than it is, or else the best of so many thresholds would be the luckiest.
    """
    half = len(present) // 2
    best, chosen = -1.0, (present, absent, 0.0)
    for one, other in ((present, absent), (-absent, -present)):
        for threshold in np.quantile(one[:half], 1 - np.geomspace(min(4 / half, 1), 1, 100)):
            bound = _bound(one[:half], other[:half], threshold, delta, CAUTION)
            if bound > best:
                best, chosen = bound, (one, other, threshold)
    one, other, threshold = chosen
    return _bound(one[half:], other[half:], threshold, delta)


def _bound(one, other, threshold, delta, caution=0.0):
    doubt = (1 - CONFIDENCE) / 2
    hits, alarms = float((one >= threshold).sum()), float((other >= threshold).sum())
    hits, alarms = (
        max(hits - caution * math.sqrt(hits), 0.0),
        min(alarms + caution * math.sqrt(alarms + 1), len(other)),
    )
    hit_rate = stats.beta.ppf(doubt, hits, len(one) - hits + 1) if hits else 0.0
    alarm_rate = (
        stats.beta.ppf(1 - doubt, alarms + 1, len(other) - alarms) if alarms < len(other) else 1.0
    )
    return max(math.log((hit_rate - delta) / alarm_rate), 0.0) if hit_rate > delta else 0.0


def log_ratio(phantoms, floor, ceiling, attributes):
    """log LR of the touched sketches of one key by their lowest level m and how many lie there, s [shape=(ceiling + 1, d + 1)].

    F(m - 1) + f(m) (G(m) / g(m))^s, written down as it stands, apart from the accountant.
    """
    one = np.append(1 - 2.0 ** -np.arange(floor, ceiling), 1.0)
    f = np.diff(one, prepend=0.0)
    # 1 - F^N rather than F^N, so that the differences at high levels keep their digits.
    with np.errstate(divide="ignore"):
        beyond = np.append(-np.expm1(phantoms * np.log(one[:-1])), 0.0)
    g = -np.diff(beyond, prepend=1.0)
    table = np.zeros((ceiling + 1, attributes + 1))
    for m in range(len(one)):
        before = one[m - 1] if m else 0.0
        for s in range(1, attributes + 1):
            if g[m] > 0:
                table[floor + m, s] = np.logaddexp(
                    np.log(before) if before else -np.inf,
                    np.log(f[m]) + s * np.log((1 - beyond[m]) / g[m]),
                )
    return table


def evidence(touched, table, keys):
    """Sum of the log likelihood ratio of the touched sketches [shape=(d, trials * keys)] over every trial's keys."""
    lowest = touched.min(axis=0)
    return table[lowest, (touched == lowest).sum(axis=0)].reshape(-1, keys).sum(axis=1)


def audited(name, event, delta, number, run, claim=None):
    """What comes out of so many trials with the record and as many without, from runs of BATCH trials each.

    Args:
        name: what is audited.
        event: what the ledger would have.
        delta: at which epsilon is stated.
        number: trials with the record.
        run: the statistic of some trials, from whether the record is there and how many they are.
        claim: epsilon that somebody claims; default the ledger's.
    """
    sizes = [BATCH] * (number // BATCH) + [number % BATCH] * (number % BATCH > 0)
    present, absent = (
        np.concatenate([run(here, size) for size in sizes]) for here in (True, False)
    )
    exact = epsilon([event], delta).epsilon
    lower_bound = certain_epsilon(present, absent, delta)
    return Audit(name, exact if claim is None else claim, exact, lower_bound, delta, number)


def against(others):
    return f"among {others} others" if others else "one record against none"


def audit_pairs(number, others=0, keys=2000, phantoms=150):
    """Scheduled pairs; one record against none, or among ``others`` that share its two values or not."""
    delta = 1e-5
    event = SketchEvent(
        phantoms, max(int(math.log2(phantoms)) - 4, 0), round(math.log2(phantoms)) + 7, keys
    )
    table = log_ratio(event.phantoms, event.floor, event.ceiling, 2)
    digests = np.arange(1, others + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    codes = np.array([np.arange(others + 1) % 2, np.arange(others + 1) // 2 % 2], np.uint16)

    def run(present, size):
        plan = ScheduledPairs(
            event.phantoms, event.floor, event.ceiling, (ScheduledPair(0, 1, size * keys),), (2, 2)
        )
        secret = secrets.token_bytes(32)
        rows = slice(0 if present else 1, None)
        touched = []
        for side in (0, 1):
            encoder = SketchEncoder(plan, [side], secret)
            encoder.update(digests[rows], np.ascontiguousarray(codes[side : side + 1, rows]))
            touched.append(encoder.result()[0][codes[side, 0]])
        return evidence(np.array(touched), table, keys)

    return audited(f"scheduled pairs, {against(others)}", event, delta, number, run)


def audit_counts(
    number,
    others=0,
    groups=8,
    buckets=8,
    repetitions=60,
    variance=12.0,
    stated=None,
    weights=(),
):
    """Count sketches of 4 bits; one record against none, or among ``others`` that share its values or not.

    The statistic takes each code for the middle of its numbers: nearly the likelihood ratio of the numbers underneath.

    Args:
        number: trials with the record; as many without.
        others: further records.
        groups, buckets, repetitions, variance: of the sketches.
        stated: variance that the ledger would state; default the one used.
        weights: of the groups, with which the variance has to be at least their sum.
    """
    delta = 1e-5
    of_group = np.array(weights or [1] * groups)
    digests = np.arange(1, others + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    codes = np.array([np.arange(others + 1) // 2**group % 2 for group in range(groups)], np.uint16)

    def run(present, size):
        plan = CountSketches(
            size * repetitions, buckets, variance, 4, (2,) * groups, weights=weights
        )
        encoder = CountSketchEncoder(plan, range(groups), secrets.token_bytes(32))
        rows = slice(0 if present else 1, None)
        encoder.update(digests[rows], np.ascontiguousarray(codes[:, rows]))
        sizes = [np.bincount(codes[group], minlength=2).astype(float) for group in range(groups)]
        total = np.zeros(plan.numbers)
        for table, totals, weight in zip(encoder.result(sizes), sizes, of_group, strict=True):
            total += (table[0] - 7.5) * code_steps(plan, totals, weight)[0]
        # What is known of a bucket's sum is its likelihood under this variance, that of the other records included.
        present_too = float(of_group**2 @ [totals[0] for totals in sizes])
        spread = variance + present_too / buckets / of_group.sum()
        ratio = math.exp(-of_group.sum() / (2 * spread)) * np.cosh(total / spread)
        return np.log(ratio.reshape(size, repetitions, buckets).mean(axis=2)).sum(axis=1)

    priced = CountSketchEvent(int(of_group.sum()), stated or variance, buckets, repetitions)
    name = f"count sketches, {against(others)}"
    name += f", weights {min(weights)} to {max(weights)}" if weights else ""
    return audited(name, priced, delta, number, run)


def audit_known(
    number,
    repetitions=8,
    variance=385.0,
    weights=(13, 9, 13, 13, 13, 9, 13, 9),
    delta=1e-2,
    stated=None,
):
    """Count sketches of 4 bits whose buckets and signs are known, as to a party that colludes; one record against none.

    Noise and weights are those of Adult's first party at epsilon 0.8 and 15 MB, the repetitions a few of its 298, and delta is
    large: so many trials show no more.

    Args:
        number: trials with the record; as many without.
        repetitions, variance, weights: of the sketches.
        delta: at which epsilon is stated.
        stated: sum of weights that the ledger would state; default theirs.
    """
    buckets, groups = 8, range(len(weights))
    digest, codes = np.array([12345], np.uint64), np.zeros((len(weights), 1), np.uint16)

    def run(present, size):
        plan = CountSketches(
            size * repetitions, buckets, variance, 4, (1,) * len(weights), weights=weights
        )
        secret = secrets.token_bytes(32)
        encoder, alone = (
            CountSketchEncoder(plan, groups, secret),
            CountSketchEncoder(plan, (0,), secret),
        )
        alone.update(digest, codes[:1])
        signs = np.frombuffer(alone.state(), "<i4")[-plan.numbers :]
        if present:
            encoder.update(digest, codes)
        sizes = [np.zeros(1)] * len(weights)
        total = np.zeros(plan.numbers)
        for table, weight in zip(encoder.result(sizes), weights, strict=True):
            total += (table[0] - 7.5) * code_steps(plan, np.zeros(1), weight)[0]
        return (total * signs).reshape(size, -1).sum(axis=1)

    priced = CountSketchEvent(stated or sum(weights), variance, buckets, repetitions).known_hashes
    return audited("count sketches, buckets and signs known", priced, delta, number, run)


def audit_encrypted(number, knows=None, sigma=4.0, tables=16, others=40):
    """Encrypted counts, from rows to tables, under fresh keys (:func:`encrypted_counts`).

    Args:
        number: trials with the record; as many without.
        knows, sigma, tables, others: see there.
    """
    planning, run = encrypted_counts(knows, sigma, tables, others)
    event = GaussianEvent(sigma * (1 if knows in (0, 1) else math.sqrt(2)), 1, tables)
    who = "the server" if knows is None else f"the server and the {('packer', 'selector')[knows]}"
    return audited(f"encrypted counts against {who}", event, planning.delta, number, run)


def encrypted_counts(knows, sigma, tables, others, source=SystemNoise, together=BATCH):
    """A run of trials of encrypted counts: a record's values at one party against a blank, among others.

    A trial has some of the tables of a plan of many groups, whose noises are independent.

    Args:
        knows: position of the party that colludes with the server, which knows that one's noise. The record is the other's.
            None: the server knows neither noise.
        sigma, tables: noise of either party, and tables of a trial.
        others: further records.
        source: makes a party's noise.
        together: most trials of a run.

    Returns:
        The plan's options, and a function that gives the sum of a trial's counts, less that of the others, from whether the record
        is there and the number of trials.
    """
    groups = math.isqrt(together * tables) + 1
    # A contrast and three counts, so that all tables have the same noise.
    columns = {
        name: [Attribute.integer(f"{name}{i}", size) for i in range(groups)]
        for name, size in (("one", 2), ("two", 3))
    }
    planning = PlanOptions(
        delta=1e-5, expected_records=7000, encoder="encrypted", even_if_useless=True
    )
    plan = make_plan(Schema.of(columns), 1.0, planning)
    weight = table_weight(plan.sketch.rows(0) * plan.sketch.rows(groups))
    sketch = replace(plan.sketch, sigma=sigma * math.sqrt(weight))
    plan = replace(plan, sketch=sketch)
    digests = np.arange(others + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rng = np.random.default_rng(0)
    sizes = np.array([group.size for group in plan.groups]).reshape(2, groups, 1)
    codes = rng.integers(0, sizes, (2, groups, others + 1)).astype(np.int32)
    # The record has the first value everywhere, and adds 1 to the first number of every table.
    codes[:, :, 0] = 0
    known = SimpleNamespace(gaussian=lambda values, _: values)
    first = (codes == 0).astype(int) - ((codes == 1) & (sizes == 2))
    exact = (first[1, :, 1:] @ first[0, :, 1:].T).ravel()

    def run(present, size):
        secret, values = Secret.new(), codes.copy()
        values[1 if knows == 0 else 0, :, 0] = 0 if present else -1
        noises = [known if party == knows else source() for party in (0, 1)]
        packer, selector = (
            Steps(
                plan,
                sketch,
                party,
                lambda purpose: derive(secret, plan.digest(), purpose=purpose),
                digests,
                values[party],
                PrivateKey.new(),
            )
            for party in (0, 1)
        )
        answer = selector.answer(0, [packer.rows()], lambda _: noises[1])
        counts = (
            np.array([table[0, 0] for table in packer.tables({1: answer}, lambda _: noises[0])])
            - exact
        )
        return counts[: size * tables].reshape(size, tables).sum(axis=1)

    return planning, run


def audit_published(number, claim=0.4, attributes=16, keys=2000):
    """The published encoder with the phantoms that Theorem 4 and Lemma 1 ask for at delta = 1/21,574; one record against none."""
    delta = 1 / 21_574
    phantoms = math.ceil(
        1 / math.expm1(claim / (4 * math.sqrt(keys * attributes * math.log(1 / delta))))
    )
    event = SketchEvent(
        phantoms, math.ceil(math.log2(phantoms)), 40, keys, attributes_per_key=attributes
    )
    table = log_ratio(event.phantoms, event.floor, event.ceiling, attributes)
    digest = np.array([12345], np.uint64)
    codes = np.zeros((attributes, 1), np.uint16)

    def run(present, size):
        plan = SharedKeys(
            event.phantoms, event.floor, event.ceiling, size * keys, (1,) * attributes
        )
        encoder = SharedKeyEncoder(plan, range(attributes), secrets.token_bytes(32))
        if present:
            encoder.update(digest, codes)
        return evidence(np.concatenate(encoder.result()), table, keys)

    return audited(f"published encoder, {attributes} attributes", event, delta, number, run, claim)


def audit_local(number, one_clique, target=1.0):
    """A party's count and local marginals: 40 records with and without one, through ``Party.run``.

    The plan expects as many as leave every value apart.
    """
    sizes = (4, 2, 4)
    attributes = [Attribute.integer(n, size) for n, size in zip("bc", sizes[1:], strict=True)]
    schema = Schema.of({"one": [Attribute.numeric("a", [0, 10, 20, 30, 40]), *attributes]})
    tau = 500_000 if one_clique else 20
    planning = PlanOptions(
        delta=1e-5, expected_records=10_000, tau=tau, shares=(0.3, 0.7, 0.0), even_if_useless=True
    )
    plan = make_plan(schema, target, planning, nonce="audit")
    assert (plan.local[0].score_sigma == 0) == one_clique
    # Marginals as they are and contrasts in one message.
    plan = replace(plan, local=(structs.replace(plan.local[0], contrasts=True),))
    rng = np.random.default_rng(0)
    # The last row has the finer cells of the first one's values, 256 of each.
    codes = rng.integers(0, np.array(sizes)[:, None], (3, 41)).astype(np.uint16)
    codes = np.vstack([codes, 256 * codes[:1]])
    digests = np.arange(1, 42, dtype=np.uint64)
    full, less = (
        Table(schema.encoding("one"), digests[rows], codes[:, rows].copy())
        for rows in (slice(0, None), slice(1, None))
    )

    def run(present):
        message = Party(plan, "one", Secret.new()).run(full if present else less)
        statistic = (message.count - 40) / plan.count_sigma**2
        fine = message.fine[0][codes[3, 0]] - (codes[3, 1:] == codes[3, 0]).sum()
        statistic += fine / plan.local[0].fine_sigma ** 2
        for marginal in message.marginals:
            # In a contrast the record is added or taken away, and so are the others.
            apart = [a for axis, a in enumerate(marginal.attributes) if axis in marginal.contrasts]
            cell = tuple(0 if a in apart else codes[a, 0] for a in marginal.attributes)
            signs = np.prod(1 - 2 * codes[apart].astype(np.int64), axis=0)
            matching = np.all(
                [codes[a, 1:] == codes[a, 0] for a in marginal.attributes if a not in apart], axis=0
            )
            others = (signs[1:] * matching).sum()
            statistic += (
                signs[0] * (marginal.counts[cell] / marginal.units - others) / marginal.error**2
            )
        return float(statistic)

    ledger = plan.ledger()
    present, absent = np.array([(run(True), run(False)) for _ in range(number)]).T
    lower_bound = certain_epsilon(present, absent, plan.delta)
    name = "count and " + ("all local marginals" if one_clique else "marginals of a local graph")
    return Audit(name, target, ledger.epsilon, lower_bound, plan.delta, number)


def main():
    parser = arguments(
        __doc__, quick=f"{TRIALS[QUICK]:,} trials instead of {TRIALS[FULL]:,}: a minute"
    )
    options = parser.parse_args()
    trials = TRIALS[options.size]
    local = max(trials // 10, 100) if options.size != SMOKE else 20
    audits = (
        lambda: audit_pairs(trials),
        lambda: audit_pairs(trials, others=40),
        lambda: audit_counts(trials),
        lambda: audit_counts(trials, others=40),
        lambda: audit_counts(trials, variance=48.0, weights=(1, 3, 5, 7) * 2),
        lambda: audit_known(trials),
        lambda: audit_local(local, one_clique=True),
        lambda: audit_local(local // 2, one_clique=False),
        *(partial(audit_encrypted, max(trials // 5, 40), knows) for knows in (None, 0, 1)),
        lambda: audit_published(trials),
    )
    finish((row for run in audits for row in run().verdicts()), "audit", options)


if __name__ == "__main__":
    main()
