"""The planner: make a plan from public figures whose events together meet (epsilon, delta).

1. Choose what the parties release across parties (``SketchChoice``), and the shares of the budget
   for the record count, the local models and the sketches.
2. For any zCDP budget rho, compute all parameters of the plan from rho and the shares.
3. Find the largest rho at which the accountant says that the plan meets (epsilon, delta).
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from ..errors import PlanError
from ..keys import PublicKeys
from ..privacy.accountant import calibrate
from ..privacy.events import MAX_COUNT_VARIANCE, MIN_COUNT_VARIANCE, GaussianEvent
from ..privacy.ledger import LedgerEntry, coalitions
from ..privacy.person_sketch import MIN_BUCKETS
from ..releases.count_sketches.parameters import BUCKETS, CountSketches
from ..releases.count_sketches.weights import choose_weights, least_weights
from ..releases.encrypted_counts.parameters import (
    COUNT_REACH,
    MAX_CAPACITY,
    MAX_ENCRYPTED_SIGMA,
    MIN_ENCRYPTED_SIGMA,
    SAMPLE_REACH,
    EncryptedCounts,
)
from ..releases.randomised_responses.parameters import RandomisedResponses
from ..releases.release import HIGHEST_CEILING, CrossPartyRelease
from ..releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from ..releases.scheduled_pairs.planning import KEY_COST, schedule_pairs
from ..releases.shared_keys.parameters import SharedKeys
from ..releases.shared_keys.published_claim import claimed_floor, claimed_phantoms
from .collusion import within_cap
from .defaults import MESSAGE_BYTES, OUTER, PAIRS_BYTES, SHARES, default_delta
from .groups import Group, crossing_pairs
from .merging import mergeable
from .options import DEFAULT, MIN_MESSAGE_BYTES, PlanOptions
from .plan import MIN_UNIT_SIGMA, SCORE_SENSITIVITY, LocalPlan, Plan, check_target
from .schema import Schema
from .shares import (
    FINE_SHARE,
    ONE_WAY_OF_CONTRASTS,
    ONE_WAY_SHARE,
    SCORE_SHARE,
    USUAL,
    Outlook,
    Shares,
    cell_error,
    longest_seen,
)
from .verdict import useful
from .workload import Workload

# Released levels of a sketch, around the level of the phantoms. Lower levels have no information; a
# higher one would single out one record.
FLOOR_BELOW_PHANTOMS = 4
CEILING_ABOVE_PHANTOMS = 7
# Sum of the measurement weights of a party's larger marginals: enough for a few hundred marginals.
UNITS = 4096
# Count sketches: share of a Gaussian's information that the best codes of 1 to 4 bits keep.
CODE_EFFICIENCY = {1: 0.637, 2: 0.881, 3: 0.963, 4: 0.988}
# Least noise variance of a counter per group, up to a factor of two. More noise hardly lowers a
# record's cost.
VARIANCE_PER_GROUP = 2.0
# A contrast's error may exceed its limit for many counters by this share. With t counters the error
# is proportional to records / sqrt(t) + d / sqrt(4 rho), of which the second part is the limit.
ABOVE_MIN_ERROR = 1 / 16
# High Rényi orders need a larger variance, which is divided by this number; see _hash_shape.
NEAR_KNOWN = 3.0
# Most repetitions, because each takes encoding time.
MAX_COUNT_REPETITIONS = 1 << 13
# Most bins of an attribute.
COUNT_BINS = 256
# Bins of an asked-for ordered attribute: so many times (records / error of a cell)^(2/5), and at
# least so many.
ASKED_BINS = 0.6
MIN_ASKED_BINS = 4
# Agreement sketches of shared attributes: share of the sketches' budget and of a party's message,
# for all attributes together; bits of a counter, and most counters. If the noise is as large as all
# records, the standard error is 1.5 times its limit for many counters.
AGREEMENT_SHARE = 0.04
AGREEMENT_BYTES = 1 / 16
AGREEMENT_BITS = 4
AGREEMENT_COUNTERS = 1 << 17
# Variance as above. Agreement sketches need more, because few records with little noise are not
# Gaussian.
AGREEMENT_VARIANCE_PER_GROUP = 20.0
# Walsh-Hadamard coefficients of order 2 are released if the standard error of contrasts is at most
# this share of the records. They are those of this number of rings of attribute pairs.
CONTRAST_NOISE = 0.003
PARITY_RINGS = 3
# The same of encrypted counts, whose contrasts have less noise. A table of counts costs the same
# whatever its size, and two parties have a table for every two groups, so that fewer are worth it.
ENCRYPTED_CONTRAST_NOISE = 0.01
ENCRYPTED_PARITY_RINGS = 1
# The paper's encoder: keys, bins of an attribute, and levels above the floor, which one sketch in
# 30,000 exceeds.
PUBLISHED_KEYS = 2000
PUBLISHED_BINS = 8
PUBLISHED_LEVELS = 15


# What is published across parties: groups, and the parameters of the release, if there is one; and
# that as a function of the budget (zCDP), of which it spends about so much.
Released = tuple[tuple[Group, ...], CrossPartyRelease | None]
SketchChoice = Callable[[float], Released]


def plan_local(
    sizes: Sequence[int],
    rho: float,
    largest_clique: int,
    free: bool,
    one_way: float | None = None,
    alone: bool = False,
    halved: bool = False,
    fine: int = 0,
) -> LocalPlan:
    """LocMRF parameters that spend ``rho`` (zCDP) at one party, from public figures only.

    Args:
        sizes: domain sizes of the party's attributes with several values.
        rho: the party's budget.
        largest_clique: most cells of a local clique.
        free: whether one clique of the global model contains all attributes.
        one_way: share of one-way marginals; None is the usual one. At 1 no other marginals are
            measured.
        alone: whether no other party has attributes. Then contrasts are measured if all attributes
            have two values, or if an attribute is in two halves.
        halved: whether an attribute is in two halves. If contrasts are measured, those of all pairs
            are, without R-scores.
        fine: number of attributes that have finer cells.

    Returns:
        Noise scales and measurement weights.
    """
    d = len(sizes)
    if d == 0:
        return LocalPlan(0.0, 0.0, 0, 0.0, largest_clique, free)
    fine_sigma = math.sqrt(fine / (2 * FINE_SHARE * rho))
    rho *= 1 - FINE_SHARE * bool(fine)
    if d == 1 or one_way == 1:
        sigma = math.sqrt(0.5 * d / rho)
        return LocalPlan(sigma, 0.0, 0, 0.0, largest_clique, free, fine_sigma=fine_sigma)
    pairs = d * (d - 1) // 2
    contrasts = alone and (halved or max(sizes) == 2)
    limited = math.prod(sizes) > largest_clique
    scores = SCORE_SHARE if limited and not (alone and halved) else 0.0
    if one_way is None:
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
        fine_sigma=fine_sigma,
    )


def no_sketches(rho: float) -> Released:
    """No release: the parties' columns are independent, or there is only one party."""
    return (), None


def _scheduled_plan(
    groups: tuple[Group, ...], pairs: tuple[ScheduledPair, ...], rho: float
) -> Released:
    """Geometric sketches with separate keys for every pair of groups, which spend about ``rho``."""
    keys = sum(pair.keys for pair in pairs)
    phantoms = max(math.ceil(math.sqrt(keys * KEY_COST / (2 * rho))), 2)
    # With very many phantoms, all levels lie below them and have no information.
    level = min(math.log2(phantoms), HIGHEST_CEILING - CEILING_ABOVE_PHANTOMS)
    return groups, ScheduledPairs(
        phantoms=phantoms,
        floor=max(int(level) - FLOOR_BELOW_PHANTOMS, 0),
        ceiling=round(level) + CEILING_ABOVE_PHANTOMS,
        pairs=pairs,
        sizes=tuple(group.size for group in groups),
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
) -> CountSketches:
    """Count sketches that spend about ``rho`` (zCDP), for up to ``person`` records of a person."""
    # The chi-square of a repetition, (cosh(groups / variance) - 1) / buckets, is its share of the
    # budget.
    d = sum(weights) or len(sizes)
    single = 2 * rho * buckets / repetitions
    if person > 1:
        # With several records: (1 + chi-square of one bucket)^person = 1 + spend / person, see
        # person_sketch.
        single = math.expm1(math.log1p(single / person) / person)
    variance = d / math.acosh(1 + single)
    # An integer, so that no weight times it exceeds the largest variance.
    most = MAX_COUNT_VARIANCE // max(weights, default=1)
    return CountSketches(
        repetitions=repetitions,
        buckets=buckets,
        variance=min(max(variance, d * person, MIN_COUNT_VARIANCE), most),
        bits=bits,
        sizes=sizes,
        contrasts=contrasts,
        weights=weights,
    )


def _encrypted_plan(
    groups: tuple[Group, ...],
    contrasts: tuple[int, ...],
    tables: int,
    records: int,
    count_share: float,
    rho: float,
) -> Released:
    """Encrypted counts: a table of every two groups of different parties.

    Args:
        groups: the counted groups.
        contrasts: indices of groups that are counted as contrasts.
        tables: number of tables.
        records: expected number of records.
        count_share: budget of the record count, as a multiple of that of the counts.
        rho: what the server's view costs (zCDP).
    """
    # The server sees the noise of two parties.
    sigma = math.sqrt(tables / (4 * rho))
    filled = records + COUNT_REACH * math.sqrt(0.5 / (count_share * rho))
    capacity = (SAMPLE_REACH + math.sqrt(SAMPLE_REACH**2 + 4 * filled)) ** 2 / 4
    return groups, EncryptedCounts(
        sigma=min(max(sigma, MIN_ENCRYPTED_SIGMA), MAX_ENCRYPTED_SIGMA),
        capacity=min(math.ceil(capacity), MAX_CAPACITY),
        sizes=tuple(group.size for group in groups),
        contrasts=contrasts,
    )


def _published_plan(groups: tuple[Group, ...], target: Target, keys: int) -> SharedKeys:
    """The paper's shared-key sketches, with its claim instead of their true cost (VertiMRF,
    Algorithms 1, 3).
    """
    epsilon, delta = (SharedKeys.claimed_share * part for part in (target.epsilon, target.delta))
    floor = claimed_floor(epsilon, delta, keys, len(groups))
    return SharedKeys(
        phantoms=claimed_phantoms(epsilon, delta, keys, len(groups)),
        floor=floor,
        ceiling=floor + PUBLISHED_LEVELS,
        keys=keys,
        sizes=tuple(group.size for group in groups),
    )


def _responses_plan(groups: tuple[Group, ...], rho: float) -> Released:
    """Randomised responses (VertiMRF, section 4.2) that spend about ``rho`` (zCDP)."""
    sizes = tuple(group.size for group in groups)
    # The loss of one attribute is +-epsilon, each with probability about 1 / size.
    return groups, RandomisedResponses(math.sqrt(rho / sum(1 / size for size in sizes)), sizes)


def make_plan(
    schema: Schema,
    epsilon: float,
    planning: PlanOptions = DEFAULT,
    *,
    nonce: str | None = None,
    prior: Sequence[LedgerEntry] = (),
    public_keys: PublicKeys | None = None,
) -> Plan:
    """Plan a run from public information, calibrated so that all events together meet (epsilon,
    delta).

    Args:
        schema: attributes and parties.
        epsilon: target, for adding or removing one record.
        planning: all other options; ``expected_records`` is required.
        nonce: public text, fresh for every run; default random.
        prior: ledger entries that were spent to make the plan, with pure epsilon; they are part of
            the target. If one of them gave ``expected_records``, give delta explicitly, because the
            default follows from it.
        public_keys: public keys of the parties and the server; required if messages are files.

    Returns:
        The plan.

    Raises:
        PlanError: parameters out of range, or the result is predicted to be useless.
        PrivacyError: no noise meets the target.
    """
    check_target(epsilon, planning.delta)
    records = planning.expected_records
    if records is None:
        raise PlanError(
            "A plan needs expected_records, a public order of magnitude of the number of records."
        )
    nonce = secrets.token_hex(16) if nonce is None else nonce
    origin: dict[str, Any] = {"nonce": nonce, "prior": tuple(prior), "public_keys": public_keys}
    largest = PAIRS_BYTES if planning.encoder == ScheduledPairs.encoder else MESSAGE_BYTES
    cap = planning.collusion_epsilon
    if cap is not None:
        if len(schema.parties) < 2:
            raise PlanError(
                "No party can collude where one holds everything: leave the cap on epsilon if a party colludes out."
            )
        uncapped = replace(planning, collusion_epsilon=None, even_if_useless=True)
        capped = within_cap(
            lambda size: make_plan(
                schema, epsilon, replace(uncapped, message_bytes=size), **origin
            ),
            cap,
            MIN_MESSAGE_BYTES,
            largest,
        )
        return capped if planning.even_if_useless else useful(capped)
    delta = default_delta(records) if planning.delta is None else planning.delta
    # Parties without an attribute of several values get no budget.
    parties = sum(bool(schema.varying(name)) for name in schema.party_names)
    target = Target(
        epsilon,
        delta,
        records,
        largest if planning.message_bytes is None else planning.message_bytes,
        Workload.of(schema, planning.workload, planning.tau),
        # The paper's limit is tau / (m u^2), which leaves room for cross-party attributes. Here the
        # server chooses among local and cross-party edges, so local graphs may be larger.
        planning.tau if parties < 2 else max(planning.tau // (2 * parties), 2),
        parties > 1,
    )
    target = replace(target, halved=_halved(schema, planning, target))
    choice = _choose(schema, planning, target)
    at = _plans(schema, planning, target, choice, origin)
    _, most, guess = at(1.0).accounted()
    made = at(calibrate(lambda rho: at(rho).accounted()[0], most, guess))
    return made if planning.even_if_useless else useful(made)


@dataclass(frozen=True)
class Target:
    """The targets of a plan.

    Attributes:
        epsilon, delta: the privacy target.
        records: expected number of records.
        message_bytes: budget for the sketches in a party's message.
        workload: what the result is for.
        largest_clique: most cells of a local clique.
        several: whether several parties have attributes of several values.
        halved: positions of the halved attributes (:func:`_halved`).
    """

    epsilon: float
    delta: float
    records: int
    message_bytes: int
    workload: Workload
    largest_clique: int
    several: bool
    halved: frozenset[int] = frozenset()

    @cached_property
    def rho(self) -> float:
        """The budget (zCDP) that one Gaussian mechanism would have."""
        return calibrate(
            lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], self.epsilon, self.delta
        )


@dataclass(frozen=True)
class Choice:
    """The cross-party releases of a plan, and the shares of the budget.

    Attributes:
        sketches: the cross-party release, at any budget.
        agreement: repetitions and buckets of the agreement sketches, per shared attribute.
        shares: shares of the budget.
    """

    sketches: SketchChoice
    agreement: tuple[tuple[int, int], ...]
    shares: Shares


def _shares(schema: Schema, planning: PlanOptions, target: Target, usual: Shares = USUAL) -> Shares:
    """The given shares of the budget; otherwise, those of the least forecast of the error."""
    encrypted = planning.encoder == EncryptedCounts.encoder
    given = usual if planning.shares is None else Shares(*planning.shares)
    if not planning.local_models:
        return replace(given, one_way=1.0)
    if given is not usual or not (encrypted or planning.encoder == CountSketches.encoder):
        return given
    return _outlook(schema, planning, target).best(usual)


def _outlook(schema: Schema, planning: PlanOptions, target: Target) -> Outlook:
    """What is known of the run before its plan."""
    columns = [schema.varying(name) for name in schema.party_names]
    across = target.several and (schema.shared or crossing_pairs(schema))
    return Outlook(
        tuple(tuple(schema.sizes[a] for a in some) for some in columns),
        target.records,
        target.rho / planning.records_per_person**2,
        target.largest_clique,
        target.message_bytes if across else 0,
        planning.encoder == EncryptedCounts.encoder,
        tuple(tuple(a in target.halved for a in some) for some in columns),
    )


def _halved(schema: Schema, planning: PlanOptions, target: Target) -> frozenset[int]:
    """Attributes that are in two halves in all but one-way marginals.

    These are the attributes of so many values that a pair of two such would be noise alone at the
    usual shares. What a workload names keeps its values. A single holder halves if most attributes
    are so long: else it finds the pairs worth measuring by their R-scores.
    """
    encoders = (CountSketches.encoder, EncryptedCounts.encoder)
    if (
        planning.encoder not in encoders
        or not planning.local_models
        or planning.population == OUTER
    ):
        return frozenset()
    varying = set(itertools.chain(*map(schema.varying, schema.party_names)))
    if len(varying) < 2:
        return frozenset()
    usual = USUAL if planning.shares is None else Shares(*planning.shares)
    outlook = _outlook(schema, planning, target)
    if not outlook.message_bytes:
        usual = usual.without_sketches()
    most = max(longest_seen(target.records, cell_error(outlook, usual)), 2.0)
    able = mergeable(schema) - target.workload.attributes
    long = frozenset(a for a in varying & able if schema.sizes[a] > most)
    return long if target.several or 2 * len(long) >= len(varying) else frozenset()


def _choose(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """Choose the cross-party release; see :func:`make_plan`."""
    encoder = planning.encoder
    if target.several and encoder == EncryptedCounts.encoder:
        return _encrypted_counts(schema, planning, target)
    shares = _shares(schema, planning, target)
    if not target.several or not shares.sketches:
        return Choice(no_sketches, (), shares.without_sketches())
    varying = sorted(set(itertools.chain(*(schema.varying(name) for name in schema.party_names))))
    # The paper's encoders: one group per attribute.
    coarse = tuple(Group((a,), (min(schema.sizes[a], PUBLISHED_BINS),)) for a in varying)
    if encoder == SharedKeys.encoder:
        published = coarse, _published_plan(coarse, target, planning.keys or PUBLISHED_KEYS)
        # The rest of the target is for the count and the local models.
        return Choice(lambda rho: published, (), shares.without_sketches())
    if encoder == RandomisedResponses.encoder:
        return Choice(partial(_responses_plan, coarse), (), shares)
    # The sketches get their share of the rho that one Gaussian mechanism would have.
    rho = shares.sketches * target.rho
    agreement: list[tuple[int, int]] = []
    # Agreement sketches can be priced for one record per person only.
    if schema.shared and planning.records_per_person == 1:
        agreement = _agreement_shapes(schema, AGREEMENT_SHARE * rho, target)
        rho *= 1 - AGREEMENT_SHARE
        target = replace(target, message_bytes=round(target.message_bytes * (1 - AGREEMENT_BYTES)))
    choice: SketchChoice = no_sketches
    # If every pair of attributes is at one party, there are no cross-party pairs.
    if crossing_pairs(schema):
        if encoder == ScheduledPairs.encoder:
            choice = partial(
                _scheduled_plan,
                *schedule_pairs(
                    schema,
                    rho,
                    target.records,
                    target.message_bytes,
                    planning.keys,
                    target.workload,
                ),
            )
        else:
            choice = _count_sketches(schema, rho, planning, target)
    return Choice(choice, tuple(agreement), shares)


def _encrypted_counts(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """Choose groups and budget shares of encrypted counts.

    Every attribute is a group, and one of two values is a contrast. If one clique contains all
    attributes, and noise is small compared to the records, parities are added, as for count
    sketches.
    """
    if schema.shared:
        names = ", ".join(schema.names[a] for a in schema.shared)
        raise PlanError(
            f"Encrypted counts are for columns that one party holds, and several hold {names}: use count sketches, or drop "
            "the column at all parties but one."
        )
    columns = [schema.varying(name) for name in schema.party_names]

    def chosen(parities: int) -> tuple[Choice, float]:
        groups, contrasts = _groups_of(
            schema, columns, target.halved, parities=parities, values=False
        )
        parties = [group.party(schema) for group in groups]
        counts = [parties.count(party) for party in range(len(columns))]
        tables = (len(groups) ** 2 - sum(count**2 for count in counts)) // 2
        usual = _encrypted_shares([len(some) for some in columns], counts)
        shares = _shares(schema, planning, target, usual)
        if not shares.sketches:
            return Choice(no_sketches, (), shares.without_sketches()), math.inf
        ratio = shares.count / shares.sketches
        release = partial(_encrypted_plan, groups, contrasts, tables, target.records, ratio)
        # The noise of both parties, at the rho that one Gaussian mechanism would have.
        rho = shares.sketches * target.rho
        return Choice(release, (), shares), math.sqrt(tables / (2 * rho))

    if math.prod(schema.sizes) <= planning.tau:
        with_parities, noise = chosen(ENCRYPTED_PARITY_RINGS)
        if noise <= ENCRYPTED_CONTRAST_NOISE * target.records:
            return with_parities
    return chosen(0)[0]


def _encrypted_shares(attributes: Sequence[int], groups: Sequence[int]) -> Shares:
    """Shares of the budget at which the server's view costs as much as that of the worst coalition.

    The server alone sees everything with the noise of two parties. A coalition sees what is the
    others', and knows one of the two noises of their tables with its parties. A smaller share of
    the tables would leave their noise larger than the coalitions need it. A larger one would leave
    part of the budget against the server unused.

    Args:
        attributes: number of attributes of each party that vary; local models are paid by it.
        groups: number of groups of each party.
    """
    count = SHARES[0]
    tables = (sum(groups) ** 2 - sum(some**2 for some in groups)) / 2
    crossing = 1 - count
    for others in coalitions(range(len(groups))):
        among = sum(groups[i] for i in others)
        inside = (among**2 - sum(groups[i] ** 2 for i in others)) / 2
        # Tables of the others and the coalition have one noise, which costs twice as much.
        cost = (2 * among * (sum(groups) - among) + inside) / tables
        local = sum(attributes[i] for i in others) / sum(attributes)
        if cost > local:
            left = 1 - count * (0 in others) - (1 - count) * local
            crossing = min(crossing, left / (cost - local))
    return Shares(count, 1 - count - crossing, crossing)


def _plans(
    schema: Schema,
    planning: PlanOptions,
    target: Target,
    choice: Choice,
    origin: Mapping[str, Any],
) -> Callable[[float], Plan]:
    """The plan as a function of the approximate zCDP budget; ``origin`` has further parts of it."""
    columns = [schema.varying(name) for name in schema.party_names]
    shares, limit = choice.shares, target.largest_clique
    free = math.prod(schema.sizes) <= planning.tau

    def local_plan(attributes: Sequence[int], rho: float) -> LocalPlan:
        budget = rho * shares.local * len(attributes) / max(sum(map(len, columns)), 1)
        alone = not target.several
        halved = alone and not target.halved.isdisjoint(attributes)
        sizes = [2 if alone and i in target.halved else schema.sizes[i] for i in attributes]
        fine = len(schema.fine.keys() & set(attributes))
        return plan_local(sizes, budget, limit, free, shares.one_way, alone, halved, fine)

    def agreement(attribute: int, shape: tuple[int, int], rho: float) -> CountSketches:
        budget = rho * shares.sketches * AGREEMENT_SHARE / len(choice.agreement)
        return _count_sketch_plan(
            (1,) * len(schema.holders[attribute]), *shape, AGREEMENT_BITS, budget
        )

    def at(rho: float) -> Plan:
        groups, sketch = choice.sketches(
            rho * shares.sketches * (1 - AGREEMENT_SHARE if choice.agreement else 1)
        )
        # Replacing a record doubles every sensitivity, and a person's multiplies with their
        # records; the cost has their squares.
        replaced = sketch is not None and sketch.publishes_rows
        others = (0.25 if replaced else 1.0 / planning.records_per_person**2) * rho
        shared = zip(schema.shared, choice.agreement, strict=False)
        return Plan(
            schema=schema,
            epsilon=target.epsilon,
            delta=target.delta,
            expected_records=target.records,
            tau=planning.tau,
            count_sigma=math.sqrt(0.5 / (others * shares.count)),
            local=tuple(local_plan(attributes, others) for attributes in columns),
            groups=groups,
            sketch=sketch,
            message_bytes=target.message_bytes,
            workload=target.workload,
            agreement=tuple(agreement(attribute, shape, rho) for attribute, shape in shared),
            records_per_person=planning.records_per_person,
            population=planning.population,
            halved=tuple(sorted(target.halved)),
            **origin,
        )

    return at


def _count_sketches(
    schema: Schema, rho: float, planning: PlanOptions, target: Target
) -> SketchChoice:
    """Choose the counters and bits of count sketches that spend ``rho``, so that the average cell
    has the least error.

    With t counters the noise is that of N = d * sqrt(t / (4 rho)) records, where a record adds to d
    groups. A cell's variance is (set + N)^2 / (t * efficiency^2). Fewer bits allow more counters,
    which stop helping once N exceeds the sets.
    """
    records, person = target.records, planning.records_per_person
    # To first order, the records of a person cost as much as one record at this budget.
    rho /= person**2
    groups, contrasts = _count_groups(schema, rho, planning, target)
    asked = target.workload.across(schema)
    groups = _fewer_bins(schema, groups, asked, records, rho)
    sizes = [group.size for group in groups]
    d = _equal_groups(groups)
    rows = [size - (group in contrasts) for group, size in enumerate(sizes)]
    owners = [schema.party_of(group.attributes[0]) for group in groups]
    most_rows = max(
        sum(k for k, owner in zip(rows, owners, strict=True) if owner == i)
        for i in range(len(schema.parties))
    )
    records_per_row = records * len(groups) / sum(rows)
    most = max(4 * rho * (records / (ABOVE_MIN_ERROR * d)) ** 2, 2.0)
    options = []
    for bits, efficiency in CODE_EFFICIENCY.items():
        counters = planning.keys or max(
            min(8 * target.message_bytes / (bits * most_rows), most), 2.0
        )
        noise = d * math.sqrt(counters / (4 * rho))
        options.append(
            ((records_per_row + noise) ** 2 / (counters * efficiency**2), -bits, counters, noise)
        )
    _, bits, counters, _ = min(options)
    order = _order(rho, target.delta)
    least = MIN_BUCKETS if person > 1 else 1
    repetitions, buckets = _hash_shape(
        math.ceil(d), rho, counters, VARIANCE_PER_GROUP * person, order, least
    )
    # The price for persons has no weights.
    weights = choose_weights(groups, rows, asked) if person == 1 else ()
    plan = partial(
        _count_sketch_plan,
        tuple(sizes),
        repetitions,
        buckets,
        -bits,
        person=person,
        contrasts=contrasts,
        weights=weights,
    )
    return lambda rho: (groups, plan(rho=rho))


def _order(rho: float, delta: float) -> float:
    """The Rényi order that determines epsilon at delta for a budget ``rho``."""
    return math.sqrt(-math.log(delta) / (2 * rho))


def _hash_shape(
    groups: int,
    rho: float,
    counters: float,
    variance_per_group: float,
    order: float,
    least: int = 1,
) -> tuple[int, int]:
    """Repetitions and buckets for about ``counters`` counters a row.

    High orders of the privacy loss depend on the case that a record's buckets are known. It has a
    probability of buckets^(1 - order) and a moment of exp(order^2 groups / (2 variance)). The
    variance keeps this small up to about ``order``.

    Args:
        groups: groups that a record adds to.
        rho: budget of the sketches.
        counters: counters of a row.
        variance_per_group: least noise variance of a counter, per group.
        order: Rényi order that determines epsilon.
        least: least number of buckets.
    """
    noise = groups * math.sqrt(counters / (4 * rho))
    variances = {
        b: groups * max(variance_per_group, order / (NEAR_KNOWN * math.log(b)))
        for b in BUCKETS
        if b <= counters
    }
    buckets = max(
        max((b for b, variance in variances.items() if noise / b >= variance), default=BUCKETS[0]),
        least,
    )
    return min(max(int(counters / buckets), 1), MAX_COUNT_REPETITIONS), buckets


def _agreement_shapes(schema: Schema, rho: float, target: Target) -> list[tuple[int, int]]:
    """Repetitions and buckets of the agreement sketches, per shared attribute."""
    rho /= len(schema.shared)
    affordable = 8 * AGREEMENT_BYTES * target.message_bytes / (AGREEMENT_BITS * len(schema.shared))
    out = []
    for attribute in schema.shared:
        holders = len(schema.holders[attribute])
        wanted = 4 * rho * (target.records / holders) ** 2
        counters = max(min(wanted, affordable, AGREEMENT_COUNTERS), 2.0)
        order = _order(rho, target.delta)
        out.append(_hash_shape(holders, rho, counters, AGREEMENT_VARIANCE_PER_GROUP, order))
    return out


def _count_groups(
    schema: Schema, rho: float, planning: PlanOptions, target: Target
) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """Groups of count sketches, and the indices of those that are released as contrasts.

    - Every attribute is a group. A shared attribute is sketched by the first party that has it. An
      attribute of all parties is not sketched if there are local models, because each party
      measures its pairs with it.
    - An attribute of two values is released as a contrast, whose noise variance is half of that of
      the two values' counters.
    - One group of every party stays as values: its sum gives the common records of two parties. If
      several parties have only one attribute of two values, these are contrasts too, and each such
      party adds a presence group of one value and low weight. Persons with several records have no
      weights, and so no presence groups.
    - A halved attribute has two values: its halves.
    - If the rows are of all people, all groups stay as values: each group's sum says who is at
      which party.
    - If one clique contains all attributes, and the noise of contrasts is small compared to the
      records, Walsh-Hadamard coefficients of order 2 (parities) of a party's attributes of two
      values are added. They improve marginals of three and four attributes.
    """
    everywhere = {
        a
        for a in schema.shared
        if len(schema.holders[a]) == len(schema.parties) and planning.local_models
    }
    columns = [
        [a for a in schema.varying(name) if schema.party_of(a) == party and a not in everywhere]
        for party, (name, _) in enumerate(schema.parties)
    ]
    person, everybody = planning.records_per_person > 1, planning.population == OUTER
    halved = target.halved
    groups, contrasts = _groups_of(schema, columns, halved, presence=not (person or everybody))
    if everybody:
        return groups, ()
    if math.prod(schema.sizes) <= planning.tau and not person:
        with_parities = _groups_of(schema, columns, halved, presence=True, parities=PARITY_RINGS)
        if _equal_groups(with_parities[0]) / math.sqrt(4 * rho) <= CONTRAST_NOISE * target.records:
            return with_parities
    return groups, contrasts


def _groups_of(
    schema: Schema,
    columns: Sequence[Sequence[int]],
    halved: Collection[int] = (),
    *,
    presence: bool = False,
    parities: int = 0,
    values: bool = True,
) -> tuple[tuple[Group, ...], tuple[int, ...]]:
    """One group for each attribute that parties sketch, and the indices of contrasts.

    ``parities`` adds groups of two attributes of two values, those of so many rings; ``presence``
    adds groups of one value for parties with one contrast alone, if there are several; ``values``
    keeps one group of every party as values.
    """
    size = [2 if a in halved else min(u, COUNT_BINS) for a, u in enumerate(schema.sizes)]
    lone = [len(attributes) == 1 and size[attributes[0]] == 2 for attributes in columns]
    groups: list[Group] = []
    contrasts: list[int] = []
    for attributes, alone in zip(columns, lone, strict=True):
        first = len(groups)
        groups += [Group((a,), (size[a],)) for a in attributes]
        two = [g for g in range(first, len(groups)) if groups[g].size == 2]
        present = presence and alone and sum(lone) > 1
        contrasts += two[values and len(two) == len(groups) - first and not present :]
        if present:
            groups.append(Group((attributes[0],), (1,)))
        if parities:
            crossed = _far_apart([groups[g].attributes[0] for g in two], parities)
            contrasts += range(len(groups), len(groups) + len(crossed))
            groups += [Group(pair, (2, 2)) for pair in crossed]
    return tuple(groups), tuple(contrasts)


def _fewer_bins(
    schema: Schema, groups: Sequence[Group], asked: Collection[int], records: int, rho: float
) -> tuple[Group, ...]:
    """Groups in which asked-for ordered attributes have no more bins than their means need.

    With K bins, the noise of an attribute's mean in a group of records grows with K^(1/2), and what
    bins hide of differences between means falls with K^-2. So the best K is proportional to the
    power 2/5 of the records over the error of a cell. A record still adds to one value of a group,
    and the price is the same; parties cut bins by figures that they have released.
    """
    error = _equal_groups(groups) / math.sqrt(4 * rho)
    most = max(round(ASKED_BINS * (records / error) ** 0.4), MIN_ASKED_BINS)
    return tuple(
        replace(group, bins=(min(group.size, most),))
        if group.shows_attribute
        and group.attributes[0] in asked
        and schema.attributes[group.attributes[0]].ordered
        else group
        for group in groups
    )


def _far_apart(attributes: Sequence[int], rings: int) -> list[tuple[int, int]]:
    """Pairs of attributes whose parities are released: those that are farthest apart on a ring.

    Adjacent attributes tend to be correlated, and their parity then has little information.
    """
    n = len(attributes)
    farthest = n // 2
    places = [
        sorted((i, (i + apart) % n))
        for apart in range(farthest, max(farthest - rings, 0), -1)
        for i in range(n)
    ]
    return list(dict.fromkeys((attributes[i], attributes[j]) for i, j in places))


def _equal_groups(groups: Sequence[Group]) -> float:
    """Number of groups that a record adds to, in units of the largest weight."""
    weights = least_weights(groups)
    return sum(weights) / max(weights)
