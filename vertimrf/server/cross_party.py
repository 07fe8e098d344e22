"""Estimate cross-party marginals with the estimator of the plan's encoder (VertiMRF, CarEst)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import Bytes, Floats, Integers
from ..errors import MessageError, PlanError
from ..message import Message, one_way_counts
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement, bin_table, binned_sizes
from ..plan.groups import crossing_pairs, released_sizes
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..progress import Progress
from ..releases.count_sketches.intersections import (
    Cells,
    CountedGroup,
    estimate_cells,
    estimate_overlapping,
)
from ..releases.count_sketches.parameters import CountSketches
from ..releases.encrypted_counts.parameters import EncryptedCounts
from ..releases.randomised_responses.encoding import count_marginal
from ..releases.randomised_responses.parameters import RandomisedResponses
from ..releases.scheduled_pairs.intersections import Side, estimate_pair, outer_measurement
from ..releases.scheduled_pairs.parameters import ScheduledPairs
from ..releases.shared_keys.estimation import published_estimates
from ..releases.shared_keys.parameters import SharedKeys

BinMaps = tuple[Integers, ...]


@dataclass(frozen=True)
class CommonRecords:
    """Estimated number of records that two parties have in common.

    Attributes:
        parties: positions of the parties in the plan.
        records: the estimate.
        error: its standard error, in records.
    """

    parties: tuple[int, int]
    records: float
    error: float


@dataclass(frozen=True)
class RecordCount:
    """Estimated number of a party's records.

    Attributes:
        records: the estimate.
        error: its standard error, in records.
    """

    records: float
    error: float


@dataclass(frozen=True, eq=False)
class CrossParty:
    """Cross-party estimates.

    Attributes:
        measurements: the cross-party marginals.
        matches: common records of every two parties, if the encoder estimates them.
        shared: by attribute and other party, each value's records that the other party also has;
            from count sketches, if parties have different people.
    """

    measurements: tuple[Measurement, ...]
    matches: tuple[CommonRecords, ...] = ()
    shared: Mapping[tuple[int, int], Measurement] = field(default_factory=dict)


def one_axis(m: Measurement, axis: int) -> Measurement:
    """Sum a measurement onto one of its axes; the result names attribute 0."""
    others = tuple(k for k in range(m.counts.ndim) if k != axis)
    spread = np.sqrt(np.square(m.errors).sum(axis=others))
    return Measurement((0,), (m.bins[axis],), m.counts.sum(axis=others), spread, m.source)


def cross_party_marginals(
    plan: Plan,
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    progress: Progress,
    party_counts: Sequence[RecordCount] | None = None,
) -> CrossParty:
    """Estimate the marginals that the plan's encoder measures across parties.

    - Scheduled pairs give the marginals of the schedule.
    - Count sketches give all pairs of groups, including pairs of one party.
    - Encrypted counts give all pairs of groups of different parties.
    - The paper's encoders (shared keys and randomised responses) give all cross-party pairs.
      Without local models they also give the pairs within each party.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
        initial: a model of the local marginals, for the sizes of the sketched sets.
        total: estimated number of records.
        progress: where the work is reported.
        party_counts: records of each party, if parties have different people; otherwise None.

    Returns:
        The measurements, and the common records of every two parties.

    Raises:
        PlanError: an encoder that this version does not know.
        MessageError: messages that do not fit together.
    """
    order = [group for party in range(len(messages)) for group in plan.groups_of(party)]
    maps = dict(
        zip(order, [group_bins for message in messages for group_bins in message.bins], strict=True)
    )
    bins = [maps[group] for group in range(len(order))]
    counts = party_counts or [RecordCount(total, 0.0)] * len(messages)
    match plan.sketch:
        case None:
            return CrossParty(())
        case ScheduledPairs():
            sizes = _set_sizes(plan, bins, messages, initial, counts)
            measurements = _scheduled_marginals(
                plan, plan.sketch, bins, messages, sizes, counts, progress
            )
            return CrossParty(tuple(measurements), scheduled_matches(plan.schema, measurements))
        case CountSketches():
            sizes = _set_sizes(plan, bins, messages, initial, counts)
            groups = _counted_groups(plan, plan.sketch, bins, messages, sizes)
            return _counted_marginals(
                plan, plan.sketch, bins, groups, total, progress, party_counts
            )
        case EncryptedCounts():
            return CrossParty(_encrypted_marginals(plan, plan.sketch, bins, messages, total))
    # With the paper's encoders, every attribute with several values is one group, in schema order.
    attributes = [group.attributes[0] for group in plan.groups]
    wanted = crossing_pairs(plan.schema)
    if all(local.units == 0 for local in plan.local):
        wanted = list(itertools.combinations(attributes, 2))
    levels = [table for message in messages for table in message.sketches]
    cuts = [group_bins[0] for group_bins in bins]
    match plan.sketch:
        case SharedKeys():
            found = published_estimates(plan.sketch, attributes, cuts, levels, wanted, total)
        case RandomisedResponses():
            _check_rows(plan, messages)
            found = _responses(plan.sketch, attributes, levels, cuts, wanted)
        case _:
            raise PlanError(
                f"This version cannot estimate from {plan.sketch.encoder!r}; use the one that made the plan."
            )
    return CrossParty(
        tuple(replace(m, source=_source(plan.schema, m.attributes, m.source)) for m in found)
    )


def _scheduled_marginals(
    plan: Plan,
    sketch: ScheduledPairs,
    bins: Sequence[BinMaps],
    messages: Sequence[Message],
    sizes: Sequence[tuple[Floats, Floats]],
    counts: Sequence[RecordCount],
    progress: Progress,
) -> list[Measurement]:
    """Estimate scheduled pairs.

    Args:
        plan, messages, progress: as for :func:`cross_party_marginals`.
        sketch: the plan's sketches.
        bins: of each group and attribute, the map code -> bin.
        sizes: from :func:`_set_sizes`.
        counts: records of each party.
    """
    # If parties have different people, the largest party's count is used.
    total = max(count.records for count in counts)
    waiting = [iter(message.sketches) for message in messages]
    out = []
    for done, pair in enumerate(sketch.pairs):
        progress.advance(done, len(sketch.pairs))
        left, right = (
            Side(
                plan.groups[g].attributes[0],
                bins[g][0],
                sizes[g][0],
                next(waiting[plan.group_parties[g]]),
                sizes[g][1],
            )
            for g in (pair.left, pair.right)
        )
        out.append(_named(plan, estimate_pair(sketch, left, right, total), "sketches"))
    return out


def _named(plan: Plan, measured: Measurement, what: str) -> Measurement:
    """A measurement that says what it is of and from, without empty bins."""
    # A mean takes all cells of a number together. Shares of rare values need the fit's caution.
    asked = plan.workload.needs(measured.attributes) and any(
        plan.schema.attributes[a].ordered and plan.schema.sizes[a] > 2 for a in measured.attributes
    )
    source = _source(plan.schema, measured.attributes, what)
    return replace(measured, source=source, asked=asked).trimmed()


def _source(schema: Schema, attributes: Sequence[int], what: str) -> str:
    """The attributes of a measurement, what it is from, and the parties whose messages it is of."""
    names = " × ".join(schema.names[a] for a in attributes)
    parties = sorted({schema.party_of(a) for a in attributes})
    return f"{names}, from {what} of {' and '.join(schema.party_names[p] for p in parties)}"


def scheduled_matches(
    schema: Schema, measurements: Sequence[Measurement]
) -> tuple[CommonRecords, ...]:
    """Common records from scheduled pairs: each marginal's cells sum to them, with independent
    noise.
    """
    by_parties: dict[tuple[int, int], list[Measurement]] = {}
    for m in measurements:
        one, other = sorted({schema.party_of(a) for a in m.attributes})
        by_parties.setdefault((one, other), []).append(m)
    out = []
    for parties, measured in by_parties.items():
        precision = [
            1 / np.square(np.broadcast_to(m.sigma, m.counts.shape)).sum() for m in measured
        ]
        records = float(np.average([m.counts.sum() for m in measured], weights=precision))
        out.append(CommonRecords(parties, records, 1 / math.sqrt(sum(precision))))
    return tuple(out)


def _counted_matches(
    plan: Plan, sketch: CountSketches, cells: Cells, total: float
) -> tuple[CommonRecords, ...]:
    """Common records from count sketches: the covariance of two parties' sums over all records."""
    owner = np.array(plan.group_parties)
    out = []
    for parties in itertools.combinations(range(len(plan.party_names)), 2):
        precisions = [np.where(owner == party, 1 / cells.noise, 0.0) for party in parties]
        if not all(precision.any() for precision in precisions):
            continue
        # All groups of a party have the same sum; this is the variance of their best weighted
        # average.
        left, right = (precision / precision.sum() for precision in precisions)
        spread = math.prod(total + 1 / precision.sum() for precision in precisions)
        records = float(left @ cells.common @ right)
        out.append(CommonRecords(parties, records, math.sqrt((spread + total**2) / sketch.numbers)))
    return tuple(out)


def _counted_groups(
    plan: Plan,
    sketch: CountSketches,
    bins: Sequence[BinMaps],
    messages: Sequence[Message],
    sizes: Sequence[tuple[Floats, Floats]],
) -> list[CountedGroup]:
    """The groups of count sketches; arguments as for :func:`_scheduled_marginals`."""
    waiting = [iter(message.sketches) for message in messages]
    # A group's steps follow from the one-way marginals that its party released.
    one_way = {
        a: counts
        for message in messages
        for a, counts in one_way_counts(message.marginals).items()
        if plan.schema.party_of(a) == message.party
    }
    released = released_sizes(plan.groups, bins, one_way)
    return [
        CountedGroup(
            next(waiting[party]),
            released[g],
            np.maximum(sizes[g][0], 0.0),
            sizes[g][1],
            g in sketch.contrasts,
            sketch.weight(g),
        )
        for g, party in enumerate(plan.group_parties)
    ]


def _counted_marginals(
    plan: Plan,
    sketch: CountSketches,
    bins: Sequence[BinMaps],
    counted: Sequence[CountedGroup],
    total: float,
    progress: Progress,
    party_counts: Sequence[RecordCount] | None,
) -> CrossParty:
    """CarEst of count sketches: estimate every two groups."""
    groups, parties = plan.groups, plan.group_parties
    shared: dict[tuple[int, int], Measurement] = {}
    first = np.cumsum([0, *(group.size for group in groups)])
    if party_counts is None:
        cells = estimate_cells(sketch, counted, total, progress)
        matches = _counted_matches(plan, sketch, cells, total)
    else:
        sizes, errors = (
            np.array(column)
            for column in zip(*((n.records, n.error) for n in party_counts), strict=True)
        )
        cells, common = estimate_overlapping(sketch, counted, parties, sizes, errors, progress)
        matches = tuple(
            CommonRecords(pair, float(common.records[pair]), float(common.errors[pair]))
            for pair in itertools.combinations(range(len(party_counts)), 2)
        )
        for g, other in itertools.product(range(len(groups)), range(len(party_counts))):
            if other != parties[g] and groups[g].shows_attribute:
                at = slice(first[g], first[g + 1]), other
                of_group = Measurement(
                    groups[g].attributes,
                    tuple(bins[g]),
                    common.of_values[at],
                    common.of_values_errors[at],
                    "count sketches",
                )
                shared[groups[g].attributes[0], other] = one_axis(of_group.trimmed(), 0)
    return CrossParty(_between_groups(plan, sketch, bins, cells), matches, shared)


def _between_groups(
    plan: Plan, sketch: CountSketches, bins: Sequence[BinMaps], cells: Cells
) -> tuple[Measurement, ...]:
    """Measurements of every two groups, except those that the sketches add nothing to.

    If all values of an attribute are merged into one bin, a contrast of it says nothing.
    """
    groups, parties = plan.groups, plan.group_parties
    first = np.cumsum([0, *(group.size for group in groups)])
    out = []
    for i, j in itertools.combinations(range(len(groups)), 2):
        if 1 in (groups[i].size, groups[j].size):
            # A presence group has no values.
            continue
        if parties[i] == parties[j] and (groups[i].parity or groups[j].parity):
            # The party's local marginals are much more precise.
            continue
        block = np.ix_(range(first[i], first[i + 1]), range(first[j], first[j + 1]))
        counts, errors = cells.counts[block], cells.errors[block]
        measured = _of_groups(plan, bins, (i, j), counts, errors, sketch.contrasts)
        out.append(_named(plan, measured, "count sketches"))
    return tuple(m for m in out if m.dimensions)


def _encrypted_marginals(
    plan: Plan,
    sketch: EncryptedCounts,
    bins: Sequence[BinMaps],
    messages: Sequence[Message],
    total: float,
) -> tuple[Measurement, ...]:
    """Measurements of encrypted counts: counts of the sample, scaled to all records.

    The sampling variance of a count T at a share t is T (1 - t) / t. Contrasts of a single bin are
    left out.
    """
    count = messages[0].count
    share = sketch.sampled(0.0 if count is None else count, plan.count_sigma)
    noise = 2 * (sketch.sigma / share) ** 2
    out = []
    for message in messages:
        for (g, mine), table in zip(plan.counted_pairs(message.party), message.tables, strict=True):
            counts = table / share
            axes = [axis for axis, group in enumerate((g, mine)) if group in sketch.contrasts]
            # A contrast has either sign, and its records are as many as a usual value's.
            records = np.full(counts.shape, total / counts.size) if axes else np.maximum(counts, 0)
            errors = np.sqrt(noise + records * (1 - share) / share)
            for axis in axes:
                # As for contrasts of local marginals.
                counts = np.concatenate([counts, -counts], axis) / 2
                errors = np.concatenate([errors, errors], axis) / math.sqrt(2)
            measured = _of_groups(plan, bins, (g, mine), counts, errors, sketch.contrasts)
            named = _named(plan, measured, "encrypted counts")
            out.append(replace(named, completed=False))
    return tuple(m for m in out if m.dimensions)


def _of_groups(
    plan: Plan,
    bins: Sequence[BinMaps],
    pair: tuple[int, int],
    counts: Floats,
    errors: Floats,
    contrasts: Sequence[int],
) -> Measurement:
    """A measurement of two groups from their cells; ``contrasts`` are the contrasted groups."""
    one, other = pair
    return outer_measurement(
        (plan.groups[one].attributes, plan.groups[other].attributes),
        (tuple(bins[one]), tuple(bins[other])),
        counts,
        errors,
        (one in contrasts, other in contrasts),
    )


def cell_variance(
    sizes: Sequence[int], messages: Sequence[Message], attributes: Sequence[int]
) -> float:
    """Variance of one cell's count in the fitted local model, from all released marginals that
    contain the attributes.

    Inverse variances of the marginals add up. Without such a marginal the variance is infinite,
    because the error of the model's extrapolation is unknown. If larger marginals have compressed
    domains, the cell is of merged values.
    """
    merged = merged_at_parties(messages)
    cells = math.prod(binned_sizes([sizes[a] for a in attributes], map(merged.get, attributes)))
    precision = 0.0
    for message in messages:
        for marginal in message.marginals:
            if set(attributes) <= set(marginal.attributes):
                precision += cells / (marginal.error**2 * marginal.counts.size)
    return 1.0 / precision if precision else math.inf


def merged_at_parties(messages: Sequence[Message]) -> dict[int, Integers]:
    """By attribute, the map code -> merged value, if larger marginals have a compressed domain."""
    bin_maps = (
        pair
        for message in messages
        for m in message.marginals
        for pair in zip(m.attributes, m.bins, strict=bool(m.bins))
    )
    return {a: bins for a, bins in bin_maps if bins is not None}


def _check_rows(plan: Plan, messages: Sequence[Message]) -> None:
    """Refuse randomised responses of different numbers of rows.

    Raises:
        MessageError: two parties have different numbers.
    """
    rows = {plan.party_names[m.party]: table.size for m in messages for table in m.sketches}
    if len(set(rows.values())) > 1:
        stated = ", ".join(f"{name} {count:,}" for name, count in rows.items())
        raise MessageError(
            f"The parties sent different numbers of rows ({stated}); they must encode the same records."
        )


def _responses(
    sketch: RandomisedResponses,
    published: Sequence[int],
    tables: Sequence[Bytes],
    bins: Sequence[Integers],
    wanted: Sequence[tuple[int, ...]],
) -> list[Measurement]:
    out = []
    for attributes in wanted:
        places = [published.index(a) for a in attributes]
        values, errors = count_marginal(sketch, places, [tables[i] for i in places])
        maps = tuple(bins[i] for i in places)
        out.append(Measurement(tuple(attributes), maps, values, errors, "randomised responses"))
    return out


def _set_sizes(
    plan: Plan,
    bins: Sequence[BinMaps],
    messages: Sequence[Message],
    initial: MarkovRandomField,
    counts: Sequence[RecordCount],
) -> list[tuple[Floats, Floats]]:
    """Sizes of every group's sets by the local model, and their standard errors [both
    shape=(values,), float64]; arguments as for :func:`_scheduled_marginals`.
    """
    merged = merged_at_parties(messages)
    out = []
    for group, maps, party in zip(plan.groups, bins, plan.group_parties, strict=True):
        records = counts[party].records
        # The first of each set of merged values represents the set.
        representing = [
            np.isin(np.arange(len(mapping)), np.unique(merged[a], return_index=True)[1])
            if a in merged
            else np.ones(len(mapping))
            for a, mapping in zip(group.attributes, maps, strict=True)
        ]
        cells = functools.reduce(np.multiply.outer, representing).astype(np.float64)
        variance = cell_variance(plan.schema.sizes, messages, group.attributes)
        expected = initial.marginal(group.attributes) * (records / initial.total)
        sizes, sets = (group.sums(bin_table(x, maps, group.bins)) for x in (expected, cells))
        out.append((sizes, np.minimum(np.sqrt(variance * sets), records)))
    return out
