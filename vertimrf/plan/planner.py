"""The planner: from public figures and a target to a plan whose events together meet it."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from ..errors import PlanError
from ..keys import PublicKeys
from ..privacy.accountant import calibrate
from ..privacy.events import MAX_COUNT_VARIANCE, MIN_COUNT_VARIANCE, GaussianEvent
from ..privacy.ledger import LedgerEntry
from ..privacy.person_sketch import MIN_BUCKETS
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
from .collusion import within_cap
from .defaults import MESSAGE_BYTES, OUTER, PAIRS_BYTES, default_delta
from .groups import Group, crossing_pairs
from .options import DEFAULT, MIN_MESSAGE_BYTES, PlanOptions
from .pairs import KEY_COST, schedule_pairs
from .plan import MIN_UNIT_SIGMA, SCORE_SENSITIVITY, LocalPlan, Plan, check_target
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
# Count sketches: part of a Gaussian's information that its best codes of 1 to 4 bits keep; the variance of a number's noise over
# the number of groups, up to a factor of two, above which a record's cost no longer falls by much; repetitions beyond which
# encoding takes long; and bins of an attribute, or values of a few attributes taken together.
CODE_EFFICIENCY = {1: 0.637, 2: 0.881, 3: 0.963, 4: 0.988}
VARIANCE_PER_GROUP = 2.0
# By how much a contrast's error may be above the least that any number of counters reaches. With t of them it is in proportion to
# records / sqrt(t) + d / sqrt(4 rho), of which the second part stays.
ABOVE_MIN_ERROR = 1 / 16
# Variances that a Rényi order asks for may be so many times smaller than keeps that case negligible: at 3 the noise is within 2 %
# of the least (epsilon 0.05 to 2, 10^5 and 10^6 records) and encoding up to four times as fast as at 1; at 4 10 % are lost.
NEAR_KNOWN = 3.0
MAX_COUNT_REPETITIONS = 1 << 13
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
    sizes: Sequence[int],
    rho: float,
    largest_clique: int,
    free: bool,
    larger: bool = True,
    alone: bool = False,
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
        unit_sigma=max(math.sqrt(UNITS / (2 * measure * rho)), MIN_UNIT_SIGMA),
        largest_clique=largest_clique,
        free=free,
        contrasts=contrasts,
    )


class SketchChoice(Protocol):
    """How values across parties are to be published, but for the noise, which follows from the budget."""

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """What is published, with parameters that spend about ``rho`` (zCDP)."""


@dataclass(frozen=True)
class NoSketches:
    """Parties stay independent; or there is one."""

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`."""
        return (), None


@dataclass(frozen=True)
class ScheduledPairs:
    """Hash keys of their own for every pair of attributes across parties.

    Attributes:
        groups: the attributes, each in some number of bins; ``pairs``: of groups.
    """

    groups: tuple[Group, ...]
    pairs: tuple[ScheduledPair, ...]

    def configure(self, rho: float) -> tuple[tuple[Group, ...], CrossPartyRelease | None]:
        """See :class:`SketchChoice`."""
        keys = sum(pair.keys for pair in self.pairs)
        phantoms = max(math.ceil(math.sqrt(keys * KEY_COST / (2 * rho))), 2)
        # So many phantoms that the levels end below them leave nothing to see, which is as it should be.
        level = min(math.log2(phantoms), HIGHEST_CEILING - CEILING_ABOVE_PHANTOMS)
        return self.groups, SketchPlan(
            phantoms=phantoms,
            floor=max(int(level) - FLOOR_BELOW_PHANTOMS, 0),
            ceiling=round(level) + CEILING_ABOVE_PHANTOMS,
            pairs=self.pairs,
            sizes=tuple(group.size for group in self.groups),
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
        return self.groups, _count_sketch_plan(
            sizes, *shape, rho, self.person, self.contrasts, self.weights
        )


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
    most = MAX_COUNT_VARIANCE // max(weights, default=1)
    return CountSketchPlan(
        repetitions=repetitions,
        buckets=buckets,
        variance=min(max(variance, d * person, MIN_COUNT_VARIANCE), most),
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
    return tuple(
        Group((a,), (min(size, PUBLISHED_BINS),)) for a, size in zip(attributes, sizes, strict=True)
    )


def split_parties(schema: Schema, counts: Sequence[int]) -> Schema:
    """Deal the attributes of a schema that names no parties.

    Raises:
        PlanError: it names some.
        SchemaError: see :meth:`Schema.split`.
    """
    if len(schema.parties) > 1:
        raise PlanError(
            f"The schema names its parties ({', '.join(name for name, _ in schema.parties)}); leave --split out."
        )
    return schema.split(counts)


def make_plan(
    schema: Schema,
    epsilon: float,
    planning: PlanOptions = DEFAULT,
    *,
    nonce: str | None = None,
    prior: Sequence[LedgerEntry] = (),
    public_keys: PublicKeys | None = None,
) -> Plan:
    """Plan a run from public information, calibrated so that all events together meet (epsilon, delta).

    Args:
        schema: attributes and parties.
        epsilon: target, add/remove one record.
        planning: everything else that a plan is made by; ``expected_records`` is needed.
        nonce: public text, fresh for every run; default random.
        prior: ledger entries already spent to make the plan, purely private; the others get what they leave of epsilon. Where
            ``expected_records`` is one of their outcomes, delta must not follow from it: give one.
        public_keys: of everyone who takes part; needed wherever messages are files.

    Raises:
        PlanError: parameters out of range.
        PrivacyError: no noise meets the target.
    """
    check_target(epsilon, planning.delta)
    records = planning.expected_records
    if records is None:
        raise PlanError(
            "A plan needs expected_records, a public order of magnitude of the number of records."
        )
    if planning.split is not None:
        schema = split_parties(schema, planning.split)
    nonce = secrets.token_hex(16) if nonce is None else nonce
    largest = PAIRS_BYTES if planning.encoder == SketchPlan.encoder else MESSAGE_BYTES
    cap = planning.collusion_epsilon
    if cap is not None:
        if len(schema.parties) < 2:
            raise PlanError(
                "No party can collude where one holds everything: leave the cap on epsilon if a party colludes out."
            )
        sized = partial(
            make_plan, schema, epsilon, nonce=nonce, prior=prior, public_keys=public_keys
        )
        uncapped = replace(planning, collusion_epsilon=None, split=None)
        return within_cap(
            lambda size: sized(replace(uncapped, message_bytes=size)),
            cap,
            MIN_MESSAGE_BYTES,
            largest,
        )
    delta = default_delta(records) if planning.delta is None else planning.delta
    target = Target(
        epsilon,
        delta,
        records,
        largest if planning.message_bytes is None else planning.message_bytes,
    )
    choice = _choose(schema, planning, target)
    at = _plans(schema, planning, target, choice, Origin(nonce, tuple(prior), public_keys))
    _, most, guess = at(1.0).accounted()
    return at(calibrate(lambda rho: at(rho).accounted()[0], most, guess))


@dataclass(frozen=True)
class Target:
    """What a plan has to meet: epsilon at delta, for so many records, with messages of so many bytes."""

    epsilon: float
    delta: float
    records: int
    message_bytes: int


@dataclass(frozen=True)
class Choice:
    """What a plan releases across parties, and how the budget is shared.

    Attributes:
        sketches: marginals across parties, at any budget.
        agreement: repetitions and buckets of the sketches of agreement, per attribute that several parties hold.
        shares: parts of the budget for the count, for local models and for sketches.
    """

    sketches: SketchChoice
    agreement: tuple[tuple[int, int], ...]
    shares: tuple[float, float, float]


@dataclass(frozen=True)
class Origin:
    """What a plan takes over as it is: its nonce, what is spent already, and everyone's public keys."""

    nonce: str
    prior: tuple[LedgerEntry, ...]
    public_keys: PublicKeys | None


def _without_sketches(shares: tuple[float, float, float]) -> tuple[float, float, float]:
    """Shares of the others, where sketches have none."""
    count, local, _ = shares
    return count / (count + local), local / (count + local), 0.0


def _choose(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """What crosses parties; see :func:`make_plan`."""
    encoder, shares = planning.encoder, planning.shares
    several = _telling(schema) > 1
    if several and planning.records_per_person > 1 and not KINDS[encoder].prices_persons:
        raise PlanError(
            f"With {planning.records_per_person} records of a person there is no price for {encoder}: use count sketches, or one "
            "record per person."
        )
    if not several or not shares[2]:
        return Choice(NoSketches(), (), _without_sketches(shares))
    varying = tuple(
        sorted(set(itertools.chain(*(schema.varying(name) for name, _ in schema.parties))))
    )
    sizes = tuple(schema.sizes[i] for i in varying)
    if encoder == SharedKeyPlan.encoder:
        claim = SharedKeyPlan.claimed_share
        published = Published(
            varying,
            sizes,
            claim * target.epsilon,
            claim * target.delta,
            planning.keys or PUBLISHED_KEYS,
        )
        # The rest of the target is for the others alone.
        return Choice(published, (), _without_sketches(shares))
    if encoder == ResponsePlan.encoder:
        return Choice(Responses(varying, sizes), (), shares)
    # What a lone Gaussian mechanism would have; the sketches get their share of about that.
    rho = shares[2] * calibrate(
        lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], target.epsilon, target.delta
    )
    agreement: list[tuple[int, int]] = []
    # Sketches of agreement have a price for one record per person alone.
    if schema.shared and planning.records_per_person == 1:
        agreement = _agreement_shapes(schema, AGREEMENT_SHARE * rho, target)
        rho *= 1 - AGREEMENT_SHARE
        target = replace(target, message_bytes=round(target.message_bytes * (1 - AGREEMENT_BYTES)))
    choice: SketchChoice = NoSketches()
    # Where some party holds every two attributes together, nothing crosses.
    if crossing_pairs(schema):
        if encoder == SketchPlan.encoder:
            choice = ScheduledPairs(
                *schedule_pairs(schema, rho, target.records, target.message_bytes, planning.keys)
            )
        else:
            choice = _count_sketches(schema, rho, planning, target)
    return Choice(choice, tuple(agreement), shares)


def _telling(schema: Schema) -> int:
    """How many parties hold an attribute of more than one value; others have nothing to tell, and take no part of the budget."""
    return sum(bool(schema.varying(name)) for name, _ in schema.parties)


def _plans(
    schema: Schema, planning: PlanOptions, target: Target, choice: Choice, origin: Origin
) -> Callable[[float], Plan]:
    """Plans of all events at a budget (zCDP, about)."""
    several = _telling(schema) > 1
    held = [schema.varying(name) for name, _ in schema.parties]
    count, local, sketches = choice.shares
    # The paper leaves room for cross-party attributes in local cliques (tau / (m u^2)). Here the server weighs local edges
    # against cross-party ones and drops what does not fit, so that local graphs need to leave little.
    largest_clique = max(planning.tau // (2 * _telling(schema)), 2) if several else planning.tau
    free = math.prod(schema.sizes) <= planning.tau
    # Replacing a record counts twice in every sensitivity, four times in the cost; and a person as often as she has records.
    others = (
        0.25 if isinstance(choice.sketches, Responses) else 1.0 / planning.records_per_person**2
    )
    workload = Workload.of(schema, planning.workload or None)

    def local_plan(own: Sequence[int], rho: float) -> LocalPlan:
        budget = others * rho * local * len(own) / max(sum(map(len, held)), 1)
        sizes = [schema.sizes[i] for i in own]
        return plan_local(
            sizes, budget, largest_clique, free, planning.local_models, alone=not several
        )

    def agreement(attribute: int, shape: tuple[int, int], rho: float) -> CountSketchPlan:
        budget = rho * sketches * AGREEMENT_SHARE / len(choice.agreement)
        return _count_sketch_plan(
            (1,) * len(schema.holders[attribute]), *shape, AGREEMENT_BITS, budget
        )

    def at(rho: float) -> Plan:
        groups, sketch = choice.sketches.configure(
            rho * sketches * (1 - AGREEMENT_SHARE if choice.agreement else 1)
        )
        shared = zip(schema.shared, choice.agreement, strict=False)
        return Plan(
            schema=schema,
            epsilon=target.epsilon,
            delta=target.delta,
            expected_records=target.records,
            tau=planning.tau,
            count_sigma=math.sqrt(0.5 / (others * rho * count)),
            local=tuple(local_plan(own, rho) for own in held),
            groups=groups,
            sketch=sketch,
            nonce=origin.nonce,
            message_bytes=target.message_bytes,
            prior=origin.prior,
            public_keys=origin.public_keys,
            workload=workload,
            agreement=tuple(agreement(attribute, shape, rho) for attribute, shape in shared),
            records_per_person=planning.records_per_person,
            population=planning.population,
        )

    return at


def _count_sketches(
    schema: Schema, rho: float, planning: PlanOptions, target: Target
) -> CountSketches:
    """Numbers and bits of count sketches that may spend ``rho``, whose average cell then has the least error.

    With t numbers the noise weighs N = d * sqrt(t / (4 rho)) records, where a record adds to d groups, and a cell's
    variance is (set + N)^2 / (t * efficiency^2): fewer bits buy numbers, which stop helping once the noise outweighs the sets by
    far, at d^2 / (4 rho).
    """
    records, person = target.records, planning.records_per_person
    # A person's records cost what one does at a budget that many times smaller, to first order.
    rho /= person**2
    groups, contrasts = _count_groups(schema, rho, planning, records)
    sizes = [group.size for group in groups]
    d = _alike(groups)
    rows = [size - (group in contrasts) for group, size in enumerate(sizes)]
    owners = [schema.party_of(group.attributes[0]) for group in groups]
    most_rows = max(
        sum(k for k, owner in zip(rows, owners, strict=True) if owner == i)
        for i in range(len(schema.parties))
    )
    held = records * len(groups) / sum(rows)
    most = max(4 * rho * (records / (ABOVE_MIN_ERROR * d)) ** 2, 2.0)
    options = []
    for bits, efficiency in CODE_EFFICIENCY.items():
        numbers = planning.keys or max(
            min(8 * target.message_bytes / (bits * most_rows), most), 2.0
        )
        noise = d * math.sqrt(numbers / (4 * rho))
        options.append(((held + noise) ** 2 / (numbers * efficiency**2), -bits, numbers, noise))
    _, bits, numbers, _ = min(options)
    order = _order(rho, target.delta)
    least = MIN_BUCKETS if person > 1 else 1
    repetitions, buckets = _hash_shape(
        math.ceil(d), rho, numbers, VARIANCE_PER_GROUP * person, order, least
    )
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
    asked = {
        b: groups * max(variance_per_group, order / (NEAR_KNOWN * math.log(b)))
        for b in BUCKETS
        if b <= numbers
    }
    buckets = max(
        max((b for b, variance in asked.items() if noise / b >= variance), default=BUCKETS[0]),
        least,
    )
    return min(max(int(numbers / buckets), 1), MAX_COUNT_REPETITIONS), buckets


def _agreement_shapes(schema: Schema, rho: float, target: Target) -> list[tuple[int, int]]:
    """Repetitions and buckets of the sketches of agreement, per attribute that several parties hold."""
    rho /= len(schema.shared)
    affordable = 8 * AGREEMENT_BYTES * target.message_bytes / (AGREEMENT_BITS * len(schema.shared))
    out = []
    for attribute in schema.shared:
        holders = len(schema.holders[attribute])
        wanted = 4 * rho * (target.records / holders) ** 2
        numbers = max(min(wanted, affordable, AGREEMENT_NUMBERS), 2.0)
        order = _order(rho, target.delta)
        out.append(_hash_shape(holders, rho, numbers, AGREEMENT_VARIANCE_PER_GROUP, order))
    return out


def _count_groups(
    schema: Schema, rho: float, planning: PlanOptions, records: int
) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """Groups of count sketches, and which of them are published as contrasts.

    Every attribute is a group of its own. What several parties hold is the first one's to sketch, and what all of them hold
    nobody's: each measures its own pairs with it, if any. Of an attribute of two values the contrast is published: its noise,
    as variances go, is half of what the two values' numbers would put into it, on either side of a pair. One group of every
    party stays as values, whose sum over all records tells how many people parties have in common. Where two parties or
    more have no other group, theirs are contrasts too, and each publishes a group of one value besides, of low weight: presence.
    (NLTCS at 16 parties, epsilon 0.8: 0.0057 instead of 0.0074; of one such party alone, with Adult's last column, no gain could
    be seen.) Persons of several records have no weights, and so no presence. Where the result is of everybody, all stay
    values: every group's sum tells who is held by whom (NLTCS in halves, 60 % of the people in common by an attribute, four runs:
    0.018 with contrasts, 0.013 without).

    Where one clique holds all attributes, parities of two of a party's attributes of two values are published besides, if records
    are so many that the noise of contrasts is small beside them: pairs then have a little more noise, but what pairs do not tell
    of marginals of three and four attributes comes with them. Persons of several records have no weights, which keep that little.
    """
    everywhere = {
        a
        for a in schema.shared
        if len(schema.holders[a]) == len(schema.parties) and planning.local_models
    }
    held = [
        [a for a in schema.varying(name) if schema.party_of(a) == party and a not in everywhere]
        for party, (name, _) in enumerate(schema.parties)
    ]
    person, everybody = planning.records_per_person > 1, planning.population == OUTER
    groups, contrasts = _groups_of(schema, held, presence=not (person or everybody))
    if everybody:
        return groups, ()
    if math.prod(schema.sizes) <= planning.tau and not person:
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
            groups += [Group(pair, (2, 2)) for pair in crossed]
    return tuple(groups), tuple(contrasts)


def _far_apart(attributes: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of attributes of which the parities are published: in a ring, those that are farthest apart, so many rings of pairs.

    Attributes that stand side by side tend to say much the same, and their parity then says little.
    """
    n = len(attributes)
    farthest = n // 2
    places = [
        sorted((i, (i + apart) % n))
        for apart in range(farthest, max(farthest - PARITY_RINGS, 0), -1)
        for i in range(n)
    ]
    return list(dict.fromkeys((attributes[i], attributes[j]) for i, j in places))


def _alike(groups: Sequence[Group]) -> float:
    """Groups that a record adds to, as many as if all had the weight of the heaviest."""
    weights = least_weights(groups)
    return sum(weights) / max(weights)
