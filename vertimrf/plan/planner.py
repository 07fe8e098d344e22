"""The planner: from public figures and a target to a plan whose events together meet it."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

from ..errors import PlanError
from ..keys import PublicKeys
from ..privacy.accountant import calibrate
from ..privacy.events import LEAST_COUNT_VARIANCE, MOST_COUNT_VARIANCE, MOST_PERSON_RECORDS, GaussianEvent
from ..privacy.ledger import LedgerEntry
from ..privacy.person_sketch import LEAST_BUCKETS
from ..sketches.claims import claimed_floor, claimed_phantoms
from ..sketches.parameters import (
    BUCKETS,
    HIGHEST_CEILING,
    KINDS,
    CountSketchPlan,
    CrossPartyRelease,
    ResponsePlan,
    ScheduledPair,
    SharedKeyPlan,
    SketchPlan,
)
from .collusion import check_cap, within_cap
from .defaults import INNER, MESSAGE_BYTES, OUTER, PAIRS_BYTES, TAU, default_delta, default_encoder
from .plan import LEAST_UNIT_SIGMA, SCORE_SENSITIVITY, LocalPlan, Plan, Shares, check_target
from .schedule import (
    KEY_COST,
    RIVAL_TRIPLE,
    Group,
    ScheduleDraft,
    choose_keys,
    crossing_pairs,
    draft_schedule,
    smallest_triples,
    triple_rule,
)
from .schema import Schema
from .weights import choose_weights, least_weights
from .workload import Workload

__all__ = ["make_plan", "split_parties"]

# Levels published per sketch: below the floor phantoms hide everything, above the ceiling a level would single out one record.
FLOOR_BELOW_PHANTOMS = 4
CEILING_ABOVE_PHANTOMS = 7
# A party's larger marginals share so many units of measurement, each a count with the same noise: fine enough to weight a few
# hundred marginals.
UNITS = 4096
# Parts of a party's budget for one-way marginals, also where it measures contrasts (NLTCS at epsilon 0.2: 0.25 and 0.45 were 5
# and 8 % worse); and, where it has to choose its graph, for R-scores.
ONE_WAY_SHARE = 0.08
ONE_WAY_OF_CONTRASTS = 0.33
SCORE_SHARE = 0.08
# Part of the keys that the first of two rounds takes, to find out where the second round's are worth most.
FIRST_ROUND = 0.15
# Bytes of a key in the second round, as a multiple of what they would be over all pairs.
CONCENTRATION = 1.25
LEAST_MESSAGE_BYTES = 1000
# Count sketches: part of a Gaussian's information that its best codes of 1 to 4 bits keep; the variance of a number's noise over
# the number of groups, up to a factor of two, above which a record's cost no longer falls by much; repetitions beyond which
# encoding takes long; and bins of an attribute, or values of a few attributes taken together.
CODE_EFFICIENCY = {1: 0.637, 2: 0.881, 3: 0.963, 4: 0.988}
VARIANCE_PER_GROUP = 2.0
# By how much a contrast's error may be above the least that any number of counters reaches. With t of them it is in proportion to
# records / sqrt(t) + d / sqrt(4 rho), of which the second part stays.
ABOVE_LEAST_ERROR = 1 / 16
# Variances that a Rényi order asks for may be so many times smaller than keeps that case negligible: at 3 the noise is within 2 %
# of the least (epsilon 0.05 to 2, 10^5 and 10^6 records) and encoding up to four times as fast as at 1; at 4 10 % are lost.
NEAR_KNOWN = 3.0
MOST_COUNT_REPETITIONS = 1 << 13
COUNT_BINS = 256
# Sketches of whether parties agree on the attributes that several hold: their part of what sketches may spend and of a party's
# messages, all attributes together; bits, and the most numbers of one. With numbers such that the noise weighs as much as all
# records, the standard error is 1.5 times what ever more of them would come to; with few, at most twice.
AGREEMENT_SHARE = 0.04
AGREEMENT_BYTES = 1 / 16
AGREEMENT_BITS = 4
AGREEMENT_NUMBERS = 1 << 17
# Fewer buckets, and so more noise in each, than where encoding takes long: signs of a few records and little noise are not
# Gaussian, which at a variance of 2 a group took 0.4 % of the records off the estimate.
AGREEMENT_VARIANCE_PER_GROUP = 20.0
# Standard error of contrasts, over the number of records, up to which parities of two attributes pay; and how many
# rings of pairs are published.
CONTRAST_NOISE = 0.003
PARITY_RINGS = 3
# The published encoder: keys, bins of an attribute, and how far above its floor a level is cut: a sketch in 30,000 is.
PUBLISHED_KEYS = 2000
PUBLISHED_BINS = 8
PUBLISHED_LEVELS = 15


def plan_local(
    sizes: Sequence[int], rho: float, largest_clique: int, free: bool, larger: bool = True, alone: bool = False
) -> LocalPlan:
    """LocMRF parameters that spend ``rho`` (zCDP) at one party, from public figures only.

    Without ``larger``, one-way marginals are all it measures; without attributes, which ``sizes`` are of, nothing at all. A party
    that is ``alone`` measures contrasts where all its attributes have two values: NLTCS came 6 to 8 % nearer. With sketches,
    which tell pairs as well, or other attributes beside, marginals as they are tell more of each attribute alone, and were as
    good or better (Adult, two of whose 15 attributes have two values, at epsilon 0.2: 0.0628, with contrasts 0.0657).
    """
    d = len(sizes)
    if d == 0:
        return LocalPlan(0.0, 0.0, 0, 0.0, largest_clique, free)
    if d == 1 or not larger:
        return LocalPlan(math.sqrt(0.5 * d / rho), 0.0, 0, 0.0, largest_clique, free)
    pairs = d * (d - 1) // 2
    scores = SCORE_SHARE if math.prod(sizes) > largest_clique else 0.0
    contrasts = alone and max(sizes) == 2
    one_way = ONE_WAY_OF_CONTRASTS if contrasts else ONE_WAY_SHARE
    measure = 1 - one_way - scores
    return LocalPlan(
        one_way_sigma=math.sqrt(d / (2 * one_way * rho)),
        score_sigma=SCORE_SENSITIVITY * math.sqrt(pairs / (2 * scores * rho)) if scores else 0.0,
        units=UNITS,
        unit_sigma=max(math.sqrt(UNITS / (2 * measure * rho)), LEAST_UNIT_SIGMA),
        largest_clique=largest_clique,
        free=free,
        contrasts=contrasts,
    )


class SketchChoice(Protocol):
    """How values across parties are to be published, but for the noise, which follows from the budget."""

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """What is published, with parameters that spend about ``rho`` (zCDP) in all rounds."""


@dataclass(frozen=True)
class NoSketches:
    """Parties stay independent; or there is one."""

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`."""
        return (), None


@dataclass(frozen=True)
class ScheduledPairs:
    """Keys of their own for every scheduled marginal.

    Attributes:
        draft: marginals, bins and shares of the keys.
        keys, second_keys: hash keys of the first and of the second round.
    """

    draft: ScheduleDraft
    keys: int
    second_keys: int

    @cached_property
    def _pairs(self) -> tuple[ScheduledPair, ...]:
        return self.draft.with_keys(self.keys)

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`."""
        phantoms = max(math.ceil(math.sqrt((self.keys + self.second_keys) * KEY_COST / (2 * rho))), 2)
        # So many phantoms that the levels end below them leave nothing to see, which is as it should be.
        level = min(math.log2(phantoms), HIGHEST_CEILING - CEILING_ABOVE_PHANTOMS)
        return self.draft.groups, SketchPlan(
            phantoms=phantoms,
            floor=max(int(level) - FLOOR_BELOW_PHANTOMS, 0),
            ceiling=round(level) + CEILING_ABOVE_PHANTOMS,
            pairs=self._pairs,
            second_keys=self.second_keys,
        )


@dataclass(frozen=True)
class CountSketches:
    """Every group under the same secret buckets and signs.

    Attributes:
        groups: what is published; ``contrasts``: of which as contrasts; ``weights``: of each.
        repetitions, buckets, bits: see :class:`CountSketchPlan`.
        person: records of a person at most.
    """

    groups: tuple[Group, ...]
    contrasts: tuple[int, ...]
    weights: tuple[int, ...]
    repetitions: int
    buckets: int
    bits: int
    person: int = 1

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`."""
        sizes = tuple(group.size for group in self.groups)
        shape = self.repetitions, self.buckets, self.bits
        return self.groups, _count_sketch_plan(sizes, *shape, rho, self.person, self.contrasts, self.weights)


def _count_sketch_plan(
    sizes: tuple[int, ...],
    repetitions: int,
    buckets: int,
    bits: int,
    rho: float,
    person: int = 1,
    contrasts: tuple[int, ...] = (),
    weights: tuple[int, ...] = (),
) -> CountSketchPlan:
    """Count sketches that spend about ``rho`` (zCDP), for persons with so many records at most."""
    # The chi-square of a repetition, (cosh(groups / variance) - 1) / buckets, is what all of them may spend, shared out.
    d = sum(weights) or len(sizes)
    single = 2 * rho * buckets / repetitions
    if person > 1:
        # Of several records: (1 + what one bucket's ratio may vary by)^person = 1 + spend / person, see person_sketch.
        single = math.expm1(math.log1p(single / person) / person)
    variance = d / math.acosh(1 + single)
    # Whole, so that no weight times it is rounded up beyond what can be drawn.
    most = MOST_COUNT_VARIANCE // max(weights, default=1)
    return CountSketchPlan(
        repetitions=repetitions,
        buckets=buckets,
        variance=min(max(variance, d * person, LEAST_COUNT_VARIANCE), most),
        bits=bits,
        sizes=sizes,
        contrasts=contrasts,
        weights=weights,
    )


@dataclass(frozen=True)
class Published:
    """Shared keys for which the paper claims (epsilon, delta), whatever they cost (VertiMRF, Algorithms 1 and 3).

    Attributes:
        attributes: those that vary; ``sizes``: their domain sizes.
        epsilon, delta: the claim.
        keys: hash keys.
    """

    attributes: tuple[int, ...]
    sizes: tuple[int, ...]
    epsilon: float
    delta: float
    keys: int

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`; the budget has no say."""
        groups = _coarse_groups(self.attributes, self.sizes)
        floor = claimed_floor(self.epsilon, self.delta, self.keys, len(groups))
        return groups, SharedKeyPlan(
            phantoms=claimed_phantoms(self.epsilon, self.delta, self.keys, len(groups)),
            floor=floor,
            ceiling=floor + PUBLISHED_LEVELS,
            keys=self.keys,
            sizes=tuple(group.size for group in groups),
        )


@dataclass(frozen=True)
class Responses:
    """Randomised responses (VertiMRF, section 4.2).

    Attributes:
        attributes: those that vary; ``sizes``: their domain sizes.
    """

    attributes: tuple[int, ...]
    sizes: tuple[int, ...]

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`."""
        groups = _coarse_groups(self.attributes, self.sizes)
        sizes = tuple(group.size for group in groups)
        # The loss of one attribute is +-epsilon, each with probability about 1 / size.
        return groups, ResponsePlan(math.sqrt(rho / sum(1 / size for size in sizes)), sizes)


def _coarse_groups(attributes: Sequence[int], sizes: Sequence[int]) -> tuple[Group, ...]:
    """Every attribute a group of its own, in as few bins as the paper's encoders take."""
    return tuple(Group((a,), (min(size, PUBLISHED_BINS),)) for a, size in zip(attributes, sizes, strict=True))


def split_parties(schema: Schema, counts: Sequence[int]) -> Schema:
    """Deal the attributes of a schema that names no parties.

    Raises:
        PlanError: it names some.
        SchemaError: see :meth:`Schema.split`.
    """
    if len(schema.parties) > 1:
        raise PlanError(f"The schema names its parties ({', '.join(name for name, _ in schema.parties)}); leave --split out.")
    return schema.split(counts)


def make_plan(
    schema: Schema,
    *,
    epsilon: float,
    expected_records: int,
    nonce: str | None = None,
    delta: float | None = None,
    tau: int = TAU,
    encoder: str | None = None,
    claim_as_published: bool = False,
    keys: int | None = None,
    message_bytes: int | None = None,
    rounds: int = 1,
    shares: Shares | None = None,
    local_models: bool = True,
    prior: Sequence[LedgerEntry] = (),
    public_keys: PublicKeys | None = None,
    workload: Mapping[Sequence[str], float] | Sequence[Sequence[str]] | None = None,
    records_per_person: int = 1,
    population: str = INNER,
    collusion_epsilon: float | None = None,
) -> Plan:
    """Plan a run from public information, calibrated so that all events together meet (epsilon, delta).

    Args:
        schema: attributes and parties.
        epsilon: target, add/remove one record.
        expected_records: public order of magnitude of the number of records.
        nonce: public text, fresh for every run; default random.
        delta: target; default 1 / expected_records squared, at most 1e-6 (:func:`~.defaults.default_delta`).
        tau: limit on the cells of a clique of the global model (VertiMRF, phase 3: 10^5 to 5*10^6).
        encoder: "count-sketch", the default in one round; "scheduled-pairs", that in two, which needs larger messages; "grr",
            the paper's baseline of randomised responses, whose target is about replacing one record; or "published" to
            reproduce the paper's, whose claim of privacy does not hold.
        claim_as_published: says that you know; without it the published encoder is refused.
        keys: hash keys t, over all scheduled marginals; default: :func:`choose_keys`, or 2000 shared ones. Of count sketches:
            numbers of a value, about.
        message_bytes: budget for the sketches in any party's messages, which bounds the default of ``keys``; default 15 MB, with
            scheduled pairs 64 MB. Local marginals come on top.
        rounds: 1; or 2: a small part of the keys first, over all pairs, and the rest where the server finds them worth most.
        shares: budget division; default :class:`Shares`.
        local_models: False leaves each party's one-way marginals as its whole local model, for comparison.
        prior: ledger entries already spent to make the plan, purely private; the others get what they leave of epsilon. Where
            ``expected_records`` is one of their outcomes, delta must not follow from it: give one.
        public_keys: of everyone who takes part; needed wherever messages are files.
        workload: marginals that somebody cares about, each a list of attribute names, all alike or with a weight each: the
            graphs' cliques, and what parties measure of their own attributes, go to them first. None has all alike.
        records_per_person: how many records of one person take part at most; above 1 with count sketches alone. Epsilon is then
            about a person, and noise that many times larger.
        population: whom the result is of, where parties turn out to hold different people: "inner", those that all parties hold;
            or "outer", everybody that any party holds.
        collusion_epsilon: cap on epsilon if a party colludes with the server (``plan.ledger().colluding_epsilon``): messages are
            as large as it allows, and at most of the default size. Not together with ``keys`` or ``message_bytes``.

    Raises:
        PlanError: parameters out of range.
        PrivacyError: no noise meets the target.
    """
    target = _target(epsilon, delta, expected_records)
    if encoder is None:
        encoder = default_encoder(rounds)
    most_bytes = PAIRS_BYTES if encoder == SketchPlan.encoder else MESSAGE_BYTES
    nonce = secrets.token_hex(16) if nonce is None else nonce
    if collusion_epsilon is not None:
        check_cap(collusion_epsilon, len(schema.parties), sized=(keys, message_bytes) != (None, None))
        sized = partial(
            make_plan, schema, epsilon=epsilon, expected_records=expected_records, nonce=nonce, delta=delta, tau=tau,
            encoder=encoder, claim_as_published=claim_as_published, rounds=rounds, shares=shares, local_models=local_models,
            prior=prior, public_keys=public_keys, workload=workload, records_per_person=records_per_person, population=population,
        )  # fmt: skip
        return within_cap(lambda size: sized(message_bytes=size), collusion_epsilon, LEAST_MESSAGE_BYTES, most_bytes)
    message_bytes = most_bytes if message_bytes is None else message_bytes
    _check_options(encoder, claim_as_published, keys, message_bytes, rounds, tau)
    # An attribute of one value has nothing to tell: it takes no part of the budget, no keys, no marginal.
    parties = [schema.varying(name) for name, _ in schema.parties]
    telling = sum(bool(held) for held in parties)
    varying = tuple(sorted(set(itertools.chain(*parties))))
    sizes = tuple(schema.sizes[i] for i in varying)
    several = telling > 1
    _check_persons(records_per_person, encoder if several else None)
    if shares is None:
        shares = Shares() if several else Shares(count=0.02, local=0.98, sketches=0.0)
    sketched = several and shares.sketches > 0
    choice: SketchChoice = NoSketches()
    agreement: list[tuple[int, int]] = []
    if sketched and encoder in (SketchPlan.encoder, CountSketchPlan.encoder):
        # What a lone Gaussian mechanism would have; the sketches get their share of about that.
        rho = shares.sketches * calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], *target)
        left = message_bytes
        # Sketches of agreement have a price for one record per person alone.
        if schema.shared and records_per_person == 1:
            agreement = _agreement_shapes(schema, AGREEMENT_SHARE * rho, expected_records, message_bytes, target[1])
            rho *= 1 - AGREEMENT_SHARE
            left = round(message_bytes * (1 - AGREEMENT_BYTES))
        # Where some party holds every two attributes together, nothing crosses.
        if crossing_pairs(schema) and encoder == SketchPlan.encoder:
            choice = _scheduled_pairs(schema, rho, expected_records, tau, rounds, keys, left)
        elif crossing_pairs(schema):
            groups, contrasts = _count_groups(
                schema,
                tau,
                local_models,
                rho / records_per_person**2,
                expected_records,
                records_per_person > 1,
                population == OUTER,
            )
            choice = _count_sketches(
                schema, groups, contrasts, rho, expected_records, keys, left, records_per_person, target[1]
            )
    elif sketched and encoder == SharedKeyPlan.encoder:
        claim = SharedKeyPlan.claimed_share
        choice = Published(varying, sizes, claim * epsilon, claim * target[1], keys or PUBLISHED_KEYS)
        # The rest of the target is for the others alone.
        shares = Shares(shares.count / (1 - shares.sketches), shares.local / (1 - shares.sketches), 0.0)
    elif sketched:
        choice = Responses(varying, sizes)
    # The paper leaves room for cross-party attributes in local cliques (tau / (m u^2)). Here the server weighs local edges
    # against cross-party ones and drops what does not fit, so that local graphs need to leave little.
    largest_clique = max(tau // (2 * telling), 2) if several else tau
    free = math.prod(schema.sizes) <= tau
    # Replacing a record counts twice in every sensitivity, four times in the cost; and a person as often as she has records.
    others = 0.25 if isinstance(choice, Responses) else 1.0 / records_per_person**2
    wanted = Workload.of(schema, workload)

    def plan_at(rho: float) -> Plan:
        crossing = rho * shares.sketches * (1 - AGREEMENT_SHARE if agreement else 1)
        groups, sketch = choice.configure(crossing)
        return Plan(
            schema=schema,
            epsilon=epsilon,
            delta=target[1],
            expected_records=expected_records,
            tau=tau,
            count_sigma=math.sqrt(0.5 / (others * rho * shares.count)),
            local=tuple(
                plan_local(
                    [schema.sizes[i] for i in held],
                    others * rho * shares.local * len(held) / max(sum(map(len, parties)), 1),
                    largest_clique,
                    free,
                    local_models,
                    alone=not several,
                )
                for held in parties
            ),
            groups=groups,
            sketch=sketch,
            nonce=nonce,
            message_bytes=message_bytes,
            prior=tuple(prior),
            public_keys=public_keys,
            workload=wanted,
            agreement=tuple(
                _count_sketch_plan(
                    (1,) * len(schema.holders[attribute]),
                    *shape,
                    AGREEMENT_BITS,
                    rho * shares.sketches * AGREEMENT_SHARE / len(agreement),
                )
                for attribute, shape in zip(schema.shared, agreement, strict=False)
            ),
            records_per_person=records_per_person,
            population=population,
        )

    _, most, at = plan_at(1.0).accounted()
    return plan_at(calibrate(lambda rho: plan_at(rho).accounted()[0], most, at))


def _check_persons(records: int, encoder: str | None) -> None:
    """Refuse several records of a person where they have no price, before anything is calibrated."""
    if type(records) is not int or not 1 <= records <= MOST_PERSON_RECORDS:
        raise PlanError(f"A person has 1 to {MOST_PERSON_RECORDS} records in a plan, not {records}.")
    if records > 1 and encoder is not None and not KINDS[encoder].prices_persons:
        raise PlanError(
            f"With {records} records of a person there is no price for {encoder}: use count sketches, or one record per person."
        )


def _target(epsilon: float, delta: float | None, expected_records: int) -> tuple[float, float]:
    """The target, with the default delta."""
    check_target(epsilon, delta)
    if expected_records < 1:
        raise PlanError(f"expected_records must be at least 1, not {expected_records}.")
    return epsilon, default_delta(expected_records) if delta is None else delta


def _check_options(
    encoder: str, claim_as_published: bool, keys: int | None, message_bytes: int, rounds: int, tau: int
) -> None:
    """Refuse what no plan can be made of; see :func:`make_plan`."""
    if encoder not in KINDS:
        raise PlanError(
            f"Unknown encoder {encoder!r}; use 'count-sketch' or 'scheduled-pairs', or 'grr' or 'published' to compare."
        )
    if rounds not in (1, 2) or (rounds == 2 and encoder != SketchPlan.encoder):
        raise PlanError(f"There are one or two rounds, not {rounds}, and two only with scheduled pairs.")
    if message_bytes < LEAST_MESSAGE_BYTES:
        raise PlanError(f"message_bytes must be at least {LEAST_MESSAGE_BYTES:,}, not {message_bytes}.")
    if keys is not None and keys < 1:
        raise PlanError(f"keys must be at least 1, not {keys}.")
    if tau < 2:
        raise PlanError(f"tau must be at least 2 cells, not {tau}.")
    if encoder == SharedKeyPlan.encoder and not claim_as_published:
        raise PlanError(
            "The published encoder does not keep the epsilon that it claims and gives complete records away; "
            "use 'count-sketch', or reproduce the paper with --claim-as-published."
        )


def _scheduled_pairs(
    schema: Schema, rho: float, records: int, tau: int, rounds: int, keys: int | None, message_bytes: int
) -> ScheduledPairs:
    """Marginals, bins and keys of scheduled pairs that may spend ``rho``."""
    pairs = crossing_pairs(schema)
    if rounds == 1:
        rule = triple_rule(schema, tau, RIVAL_TRIPLE)
        draft = draft_schedule(schema, rho, records, pairs, smallest_triples(schema), rule)
        keys = keys or choose_keys(draft.bytes_per_key(schema), rho, records, message_bytes)
        return ScheduledPairs(draft, keys, 0)
    draft = draft_schedule(schema, FIRST_ROUND * rho, records, pairs, (), RIVAL_TRIPLE)
    # The second round's schedule is not known yet: finer bins, and the busiest party may hold most of the wide ones.
    later = draft_schedule(schema, (1 - FIRST_ROUND) * rho, records, pairs, (), RIVAL_TRIPLE)
    bytes_per_key = FIRST_ROUND * draft.bytes_per_key(schema) + (1 - FIRST_ROUND) * CONCENTRATION * later.bytes_per_key(schema)
    keys = keys or choose_keys(bytes_per_key, rho, records, message_bytes)
    second = round(keys * (1 - FIRST_ROUND))
    if keys - second < len(pairs):
        raise PlanError(
            f"{keys:,} keys in two rounds leave some of {len(pairs):,} pairs without any; allow larger messages, or one round."
        )
    return ScheduledPairs(draft, keys - second, second)


def _count_sketches(
    schema: Schema,
    groups: tuple[Group, ...],
    contrasts: tuple[int, ...],
    rho: float,
    records: int,
    keys: int | None,
    message_bytes: int,
    person: int,
    delta: float,
) -> CountSketches:
    """Numbers and bits of count sketches that may spend ``rho``, whose average cell then has the least error.

    With t numbers the noise weighs N = d * sqrt(t / (4 rho)) records, where a record adds to d groups, and a cell's
    variance is (set + N)^2 / (t * efficiency^2): fewer bits buy numbers, which stop helping once the noise outweighs the sets by
    far, at d^2 / (4 rho).
    """
    # A person's records cost what one does at a budget that many times smaller, to first order.
    rho /= person**2
    sizes = [group.size for group in groups]
    d = _alike(groups)
    rows = [size - (group in contrasts) for group, size in enumerate(sizes)]
    owners = [schema.party_of(group.attributes[0]) for group in groups]
    most_rows = max(sum(k for k, owner in zip(rows, owners, strict=True) if owner == i) for i in range(len(schema.parties)))
    held = records * len(groups) / sum(rows)
    most = max(4 * rho * (records / (ABOVE_LEAST_ERROR * d)) ** 2, 2.0)
    options = []
    for bits, efficiency in CODE_EFFICIENCY.items():
        numbers = keys or max(min(8 * message_bytes / (bits * most_rows), most), 2.0)
        noise = d * math.sqrt(numbers / (4 * rho))
        options.append(((held + noise) ** 2 / (numbers * efficiency**2), -bits, numbers, noise))
    _, bits, numbers, _ = min(options)
    order = _order(rho, delta)
    least = LEAST_BUCKETS if person > 1 else 1
    repetitions, buckets = _hash_shape(math.ceil(d), rho, numbers, VARIANCE_PER_GROUP * person, order, least)
    # The price for persons follows sums that are few and small.
    weights = choose_weights(groups, rows) if person == 1 else ()
    return CountSketches(groups, contrasts, weights, repetitions, buckets, -bits, person)


def _order(rho: float, delta: float) -> float:
    """The order of the moments of the privacy loss that decide epsilon at delta, where all is to spend ``rho``."""
    return math.sqrt(-math.log(delta) / (2 * rho))


def _hash_shape(
    groups: int, rho: float, numbers: float, variance_per_group: float, order: float, least: int = 1
) -> tuple[int, int]:
    """Repetitions and buckets of about so many numbers a row, where sketches may spend ``rho`` to which a record adds so often.

    Moments of high order see the case that the record's buckets are known, which has a probability of buckets^(1 - order) and a
    moment of exp(order^2 groups / (2 variance)): the variance is such that this stays small up to about ``order``.
    """
    noise = groups * math.sqrt(numbers / (4 * rho))
    asked = {b: groups * max(variance_per_group, order / (NEAR_KNOWN * math.log(b))) for b in BUCKETS if b <= numbers}
    buckets = max(max((b for b, variance in asked.items() if noise / b >= variance), default=BUCKETS[0]), least)
    return min(max(int(numbers / buckets), 1), MOST_COUNT_REPETITIONS), buckets


def _agreement_shapes(schema: Schema, rho: float, records: int, message_bytes: int, delta: float) -> list[tuple[int, int]]:
    """Repetitions and buckets of the sketches of agreement, per attribute that several parties hold."""
    rho /= len(schema.shared)
    affordable = 8 * AGREEMENT_BYTES * message_bytes / (AGREEMENT_BITS * len(schema.shared))
    out = []
    for attribute in schema.shared:
        holders = len(schema.holders[attribute])
        wanted = 4 * rho * (records / holders) ** 2
        numbers = max(min(wanted, affordable, AGREEMENT_NUMBERS), 2.0)
        order = _order(rho, delta)
        out.append(_hash_shape(holders, rho, numbers, AGREEMENT_VARIANCE_PER_GROUP, order))
    return out


def _count_groups(
    schema: Schema, tau: int, local_models: bool, rho: float, records: int, person: bool, everybody: bool
) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """Groups of count sketches, and which of them are published as contrasts.

    Every attribute is a group of its own. What several parties hold is the first one's to sketch, and what all of them hold
    nobody's: each measures its own pairs with it, if any. Of an attribute of two values the contrast is published: its noise,
    as variances go, is half of what the two values' numbers would put into it, on either side of a pair. One group of every
    party stays as values, whose sum over all records tells how many people parties have in common. Where two parties or
    more have no other group, theirs are contrasts too, and each publishes a group of one value besides, of low weight: presence.
    (NLTCS at 16 parties, epsilon 0.8: 0.0057 instead of 0.0074; of one such party alone, with Adult's last column, no gain could
    be seen.) Persons of several records have no weights, and so no presence. Where the result is of ``everybody``, all stay
    values: every group's sum tells who is held by whom (NLTCS in halves, 60 % of the people in common by an attribute, four runs:
    0.018 with contrasts, 0.013 without).

    Where one clique holds all attributes, parities of two of a party's attributes of two values are published besides, if records
    are so many that the noise of contrasts is small beside them: pairs then have a little more noise, but what pairs do not tell
    of marginals of three and four attributes comes with them. Persons of several records have no weights, which keep that little.
    """
    everywhere = {a for a in schema.shared if len(schema.holders[a]) == len(schema.parties) and local_models}
    held = [
        [a for a in schema.varying(name) if schema.party_of(a) == party and a not in everywhere]
        for party, (name, _) in enumerate(schema.parties)
    ]
    groups, contrasts = _groups_of(schema, held, presence=not (person or everybody))
    if everybody:
        return groups, ()
    if math.prod(schema.sizes) <= tau and not person:
        with_them = _groups_of(schema, held, presence=True, parities=True)
        if _alike(with_them[0]) / math.sqrt(4 * rho) <= CONTRAST_NOISE * records:
            return with_them
    return groups, contrasts


def _groups_of(
    schema: Schema, held: Sequence[Sequence[int]], *, presence: bool = False, parities: bool = False
) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """Groups, one for each of the attributes that parties are to sketch, and which of them are contrasts.

    With ``parities`` also one for some of those of two values taken two by two; with ``presence`` also one of one value for each
    of several parties that would have a contrast alone.
    """
    lone = [len(own) == 1 and schema.sizes[own[0]] == 2 for own in held]
    groups: list[Group] = []
    contrasts: list[int] = []
    for attributes, alone in zip(held, lone, strict=True):
        sizes = {a: min(schema.sizes[a], COUNT_BINS) for a in attributes}
        first = len(groups)
        groups += [Group((a,), (sizes[a],)) for a in attributes]
        two = [g for g in range(first, len(groups)) if groups[g].size == 2]
        present = presence and alone and sum(lone) > 1
        contrasts += two[len(two) == len(groups) - first and not present :]
        if present:
            groups.append(Group((attributes[0],), (1,)))
        if parities:
            crossed = _far_apart([groups[g].attributes[0] for g in two])
            contrasts += range(len(groups), len(groups) + len(crossed))
            groups += [Group(own, (2, 2), parity=True) for own in crossed]
    return tuple(groups), tuple(contrasts)


def _far_apart(attributes: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of attributes of which the parities are published: in a ring, those that are farthest apart, so many rings of pairs.

    Attributes that stand side by side tend to say much the same, and their parity then says little.
    """
    n = len(attributes)
    farthest = n // 2
    places = [
        sorted((i, (i + apart) % n)) for apart in range(farthest, max(farthest - PARITY_RINGS, 0), -1) for i in range(n)
    ]
    return list(dict.fromkeys((attributes[i], attributes[j]) for i, j in places))


def _alike(groups: Sequence[Group]) -> float:
    """Groups that a record adds to, as many as if all had the weight of the heaviest."""
    weights = least_weights(groups)
    return sum(weights) / max(weights)
