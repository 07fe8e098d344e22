"""Planning of count sketches, and of the agreement sketches of shared columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from ...arrays import Ints, Pair
from ...plan.choice import Choice, SketchChoice, Target, groups_of, no_sketches, shares_of
from ...plan.defaults import OUTER
from ...plan.groups import Group, crossing_pairs
from ...plan.options import PlanOptions
from ...plan.schema import Schema
from ...privacy.events import MAX_COUNT_VARIANCE, MIN_COUNT_VARIANCE
from ...privacy.person_sketch import MIN_BUCKETS
from .parameters import BUCKETS, CountSketches
from .weights import choose_weights, least_weights

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


def planned(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """See :meth:`.CrossPartyRelease.planned`."""
    return beside_agreement(schema, planning, target, _count_sketches)


def beside_agreement(
    schema: Schema,
    planning: PlanOptions,
    target: Target,
    choose: Callable[[Schema, float, PlanOptions, Target], SketchChoice],
) -> Choice:
    """Sketches, and agreement sketches of the shared columns.

    Args:
        schema, planning, target: as for :meth:`.CrossPartyRelease.planned`.
        choose: gives the sketches across parties for a budget.
    """
    shares = shares_of(schema, planning, target)
    if not shares.sketches:
        return Choice(no_sketches, (), shares.without_sketches())
    # The sketches get their share of the rho that one Gaussian mechanism would have.
    rho = shares.sketches * target.rho
    agreement: list[Pair] = []
    # Agreement sketches can be priced for one record per person only.
    if schema.shared and planning.records_per_person == 1:
        agreement = agreement_shapes(schema, AGREEMENT_SHARE * rho, target)
        rho *= 1 - AGREEMENT_SHARE
        target = replace(target, message_bytes=round(target.message_bytes * (1 - AGREEMENT_BYTES)))
    # If every pair of attributes is at one party, there are no cross-party pairs.
    choice = choose(schema, rho, planning, target) if crossing_pairs(schema) else no_sketches
    return Choice(choice, tuple(agreement), shares)


def count_sketches_of(
    sizes: Ints,
    repetitions: int,
    buckets: int,
    bits: int,
    rho: float,
    person: int = 1,
    contrasts: Ints = (),
    weights: Ints = (),
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
    rows = [1 if group in contrasts else size for group, size in enumerate(sizes)]
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
    order = renyi_order(rho, target.delta)
    least = MIN_BUCKETS if person > 1 else 1
    repetitions, buckets = _hash_shape(
        math.ceil(d), rho, counters, VARIANCE_PER_GROUP * person, order, least
    )
    # The price for persons has no weights.
    weights = choose_weights(groups, rows, asked) if person == 1 else ()
    plan = partial(
        count_sketches_of,
        tuple(sizes),
        repetitions,
        buckets,
        -bits,
        person=person,
        contrasts=contrasts,
        weights=weights,
    )
    return lambda rho: (groups, plan(rho=rho))


def renyi_order(rho: float, delta: float) -> float:
    """The Rényi order that determines epsilon at delta for a budget ``rho``."""
    return math.sqrt(-math.log(delta) / (2 * rho))


def _hash_shape(
    groups: int,
    rho: float,
    counters: float,
    variance_per_group: float,
    order: float,
    least: int = 1,
) -> Pair:
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


def agreement_shapes(schema: Schema, rho: float, target: Target) -> list[Pair]:
    """Repetitions and buckets of the agreement sketches, per shared attribute."""
    rho /= len(schema.shared)
    affordable = 8 * AGREEMENT_BYTES * target.message_bytes / (AGREEMENT_BITS * len(schema.shared))
    out = []
    for attribute in schema.shared:
        holders = len(schema.holders[attribute])
        wanted = 4 * rho * (target.records / holders) ** 2
        counters = max(min(wanted, affordable, AGREEMENT_COUNTERS), 2.0)
        order = renyi_order(rho, target.delta)
        out.append(_hash_shape(holders, rho, counters, AGREEMENT_VARIANCE_PER_GROUP, order))
    return out


def _count_groups(
    schema: Schema, rho: float, planning: PlanOptions, target: Target
) -> tuple[tuple[Group, ...], Ints]:
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
    - A halved attribute has two values, its halves, or the target's bins. If it has missing values,
      these are a third value beside the halves, which alternates in the contrast.
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
    asked = partial(groups_of, schema, columns, target, alternating=True)
    groups, contrasts = asked(presence=not (person or everybody))
    if everybody:
        return groups, ()
    if math.prod(schema.sizes) <= planning.tau and not person:
        with_parities = asked(presence=True, parities=PARITY_RINGS)
        if _equal_groups(with_parities[0]) / math.sqrt(4 * rho) <= CONTRAST_NOISE * target.records:
            return with_parities
    return groups, contrasts


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


def _equal_groups(groups: Sequence[Group]) -> float:
    """Number of groups that a record adds to, in units of the largest weight."""
    weights = least_weights(groups)
    return sum(weights) / max(weights)
