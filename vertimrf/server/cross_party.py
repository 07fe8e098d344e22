"""Cross-party marginals from the parties' messages, whatever they were encoded with (VertiMRF, CarEst)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ..errors import MessageError, PlanError
from ..message import Message
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement, bin_table
from ..options import RunOptions
from ..plan.groups import Group, crossing_pairs, released_sizes
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..published.randomised_response import count_marginal
from ..published.shared_keys_estimate import published_estimates
from ..sketches.count_intersections import (
    Cells,
    CountedGroup,
    estimate_cells,
    estimate_overlapping,
    predicted_cell_errors,
)
from ..sketches.intersections import Side, estimate_pair, outer_measurement, predicted_errors
from ..sketches.parameters import CountSketchPlan, ResponsePlan, SharedKeyPlan, SketchPlan

__all__ = [
    "CrossParty",
    "Holding",
    "Match",
    "Prediction",
    "cell_variance",
    "cross_party_marginals",
    "one_axis",
    "predicted_marginals",
]

Floats = npt.NDArray[np.float64]
BinMaps = tuple[npt.NDArray[np.int64], ...]


@dataclass(frozen=True)
class Match:
    """How many records two parties have in common, as sketches tell.

    Attributes:
        parties: their positions in the plan.
        records: estimate; ``error``: its standard error.
    """

    parties: tuple[int, int]
    records: float
    error: float


@dataclass(frozen=True)
class Holding:
    """How many records a party has, as its own released marginals tell.

    Attributes:
        records: estimate; ``error``: its standard error.
    """

    records: float
    error: float


@dataclass(frozen=True, eq=False)
class CrossParty:
    """What messages tell across parties.

    Attributes:
        measurements: of marginals.
        matches: one for every two parties, where the encoder can tell.
        shared: where parties hold different people, and count sketches tell: by attribute and other party, how many of each
            value's records that party has as well.
    """

    measurements: tuple[Measurement, ...]
    matches: tuple[Match, ...] = ()
    shared: Mapping[tuple[int, int], Measurement] = field(default_factory=dict)


def one_axis(m: Measurement, axis: int) -> Measurement:
    """A measurement of one of several attributes, by what it adds up to; as of attribute 0, and its noise in cells of its own."""
    others = tuple(k for k in range(m.counts.ndim) if k != axis)
    spread = np.sqrt(np.square(m.errors).sum(axis=others))
    return Measurement((0,), (m.bins[axis],), m.counts.sum(axis=others), spread, m.source)


def cross_party_marginals(
    plan: Plan,
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    options: RunOptions | None = None,
    holdings: Sequence[Holding] | None = None,
) -> CrossParty:
    """Estimate marginals across parties from their messages.

    Scheduled pairs give the plan's pairs. Count sketches give all pairs of groups, also those of one
    party. Shared keys and randomised responses give all cross-party pairs, and all other pairs as
    well where parties publish no local model.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
        initial: a model of the parties' local marginals, for the sizes of the sketched sets.
        total: estimated number of records.
        options: for its progress.
        holdings: how many records each party has, if they hold different ones; None if all hold the
            same.

    Returns:
        The measurements, and how many records parties have in common if the encoder shows it.

    Raises:
        PlanError: an encoder that this version does not know.
        MessageError: messages that do not fit together.
    """
    order = [group for party in range(len(messages)) for group in plan.groups_of(party)]
    maps = dict(zip(order, [each for message in messages for each in message.bins], strict=True))
    bins = [maps[group] for group in range(len(order))]
    match plan.sketch:
        case None:
            return CrossParty(())
        case SketchPlan():
            measured = _scheduled_marginals(
                plan, plan.sketch, bins, messages, initial, total, options, holdings
            )
            return CrossParty(tuple(measured), scheduled_matches(plan.schema, measured))
        case CountSketchPlan():
            return _counted_marginals(
                plan, plan.sketch, bins, messages, initial, total, options, holdings
            )
    # Here every attribute that varies is a group of its own, in schema order.
    attributes = [group.attributes[0] for group in plan.groups]
    wanted = crossing_pairs(plan.schema)
    if all(local.units == 0 for local in plan.local):
        wanted = list(itertools.combinations(attributes, 2))
    levels = [table for message in messages for table in message.sketches]
    cuts = [maps[0] for maps in bins]
    match plan.sketch:
        case SharedKeyPlan():
            return CrossParty(
                tuple(published_estimates(plan.sketch, attributes, cuts, levels, wanted, total))
            )
        case ResponsePlan():
            return CrossParty(tuple(_responses(plan.sketch, attributes, levels, cuts, wanted)))
    raise PlanError(
        f"This version cannot estimate from {plan.sketch.encoder!r}; use the one that made the plan."
    )


def _scheduled_marginals(
    plan: Plan,
    sketch: SketchPlan,
    bins: Sequence[BinMaps],
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    options: RunOptions | None,
    holdings: Sequence[Holding] | None,
) -> list[Measurement]:
    """Estimate scheduled pairs; arguments as :func:`cross_party_marginals`.

    ``bins`` has the map code -> bin of each group and attribute.
    """
    schema, groups, parties = plan.schema, plan.groups, plan.group_parties
    sizes, errors = [], []
    for group, maps, party in zip(groups, bins, parties, strict=True):
        records = total if holdings is None else holdings[party].records
        size, error = _set_sizes(schema, messages, initial, group, maps, records)
        sizes.append(size)
        errors.append(error)
    # If parties hold different people, the likelihood starts from independence in the larger table.
    total = total if holdings is None else max(each.records for each in holdings)
    waiting = [iter(message.sketches) for message in messages]
    out = []
    progress = (RunOptions() if options is None else options).progress
    for done, pair in enumerate(sketch.pairs):
        progress.advance(done, len(sketch.pairs))
        left, right = (
            Side(
                groups[g].attributes[0], bins[g][0], sizes[g], next(waiting[parties[g]]), errors[g]
            )
            for g in (pair.left, pair.right)
        )
        measured = estimate_pair(sketch, left, right, total)
        names = " × ".join(schema.names[a] for a in measured.attributes)
        out.append(replace(measured, source=f"{names}, from sketches").trimmed())
    return out


def scheduled_matches(schema: Schema, measurements: Sequence[Measurement]) -> tuple[Match, ...]:
    """Estimate how many records parties have in common, from scheduled pairs.

    The cells of a pair sum to this number. Every pair has keys of its own, so that the estimates
    are independent and are averaged by their precision.
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
        out.append(Match(parties, records, 1 / math.sqrt(sum(precision))))
    return tuple(out)


def _counted_matches(
    plan: Plan, sketch: CountSketchPlan, cells: Cells, total: float
) -> tuple[Match, ...]:
    """Estimate how many records parties have in common, from count sketches.

    It is the covariance of two parties' sums over all records.
    """
    owner = np.array(plan.group_parties)
    out = []
    for parties in itertools.combinations(range(len(plan.party_names)), 2):
        precision = [np.where(owner == party, 1 / cells.noise, 0.0) for party in parties]
        if not all(each.any() for each in precision):
            continue
        # All groups of a party have the same sum; the best average of them has this variance.
        left, right = (each / each.sum() for each in precision)
        spread = math.prod(total + 1 / each.sum() for each in precision)
        records = float(left @ cells.common @ right)
        out.append(Match(parties, records, math.sqrt((spread + total**2) / sketch.numbers)))
    return tuple(out)


def _counted_marginals(
    plan: Plan,
    sketch: CountSketchPlan,
    bins: Sequence[BinMaps],
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    options: RunOptions | None,
    holdings: Sequence[Holding] | None,
) -> CrossParty:
    """Estimate every two groups of count sketches; arguments as :func:`_scheduled_marginals`."""
    groups, parties = plan.groups, plan.group_parties
    progress = (RunOptions() if options is None else options).progress
    waiting = [iter(message.sketches) for message in messages]
    # A group's steps follow from what the party that sketches it released.
    one_way = {
        m.attributes[0]: m.counts.astype(np.float64)
        for message in messages
        for m in message.marginals
        if len(m.attributes) == 1 and plan.schema.party_of(m.attributes[0]) == message.party
    }
    counted: list[CountedGroup] = []
    for group, maps, party, released in zip(
        groups, bins, parties, released_sizes(groups, bins, one_way), strict=True
    ):
        records = total if holdings is None else holdings[party].records
        sizes, errors = _set_sizes(plan.schema, messages, initial, group, maps, records)
        g = len(counted)
        kind = g in sketch.contrasts, sketch.weight(g)
        counted.append(
            CountedGroup(next(waiting[party]), released, np.maximum(sizes, 0.0), errors, *kind)
        )
    shared: dict[tuple[int, int], Measurement] = {}
    first = np.cumsum([0, *(group.size for group in groups)])
    if holdings is None:
        cells = estimate_cells(sketch, counted, total, progress)
        matches = _counted_matches(plan, sketch, cells, total)
    else:
        numbers = np.array([each.records for each in holdings])
        errors = np.array([each.error for each in holdings])
        cells, common = estimate_overlapping(sketch, counted, parties, numbers, errors, progress)
        matches = tuple(
            Match(pair, float(common.records[pair]), float(common.errors[pair]))
            for pair in itertools.combinations(range(len(holdings)), 2)
        )
        for g, other in itertools.product(range(len(groups)), range(len(holdings))):
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
    plan: Plan, sketch: CountSketchPlan, bins: Sequence[BinMaps], cells: Cells
) -> tuple[Measurement, ...]:
    """Make a measurement for every two groups of which the sketches have new information."""
    groups, parties = plan.groups, plan.group_parties
    first = np.cumsum([0, *(group.size for group in groups)])
    out = []
    for i, j in itertools.combinations(range(len(groups)), 2):
        if 1 in (groups[i].size, groups[j].size):
            # Presence has no values.
            continue
        if parties[i] == parties[j] and (groups[i].parity or groups[j].parity):
            # The party's local marginals are far more accurate.
            continue
        block = np.ix_(range(first[i], first[i + 1]), range(first[j], first[j + 1]))
        measured = outer_measurement(
            (groups[i].attributes, groups[j].attributes),
            (tuple(bins[i]), tuple(bins[j])),
            cells.counts[block],
            cells.errors[block],
            (i in sketch.contrasts, j in sketch.contrasts),
        )
        names = " × ".join(plan.schema.names[a] for a in measured.attributes)
        out.append(replace(measured, source=f"{names}, from count sketches").trimmed())
    return tuple(out)


@dataclass(frozen=True)
class Prediction:
    """What the estimate of a cross-party pair will be worth.

    Attributes:
        attributes: left side and right side.
        cells: number of cells.
        average: average count of a cell, records.
        error: predicted root mean square error of a cell, records.
    """

    attributes: tuple[int, int]
    cells: int
    average: float
    error: float


def predicted_marginals(plan: Plan) -> list[Prediction]:
    """Predict the errors of all cross-party pairs from public figures.

    Bins are taken to be equally full, and parties to be independent.

    Args:
        plan: a plan with scheduled pairs or count sketches; empty for others.
    """
    n = float(plan.expected_records)
    out = []
    if isinstance(plan.sketch, CountSketchPlan):
        sizes = [group.size for group in plan.groups]
        errors = predicted_cell_errors(plan.sketch, [np.full(size, n / size) for size in sizes], n)
        first = np.cumsum([0, *sizes])
        telling = [i for i, group in enumerate(plan.groups) if group.shows_attribute]
        for i, j in itertools.combinations(telling, 2):
            if plan.group_parties[i] != plan.group_parties[j]:
                cells = sizes[i] * sizes[j]
                attributes = plan.groups[i].attributes[0], plan.groups[j].attributes[0]
                freedom = plan.sketch.rows(i) * plan.sketch.rows(j) / cells
                out.append(
                    Prediction(
                        attributes,
                        cells,
                        n / cells,
                        float(errors[first[i], first[j]]) * math.sqrt(freedom),
                    )
                )
    if not isinstance(plan.sketch, SketchPlan):
        return out
    for pair in plan.sketch.pairs:
        left, right = plan.groups[pair.left], plan.groups[pair.right]
        error = predicted_errors(
            plan.sketch, pair.keys, np.array([n / left.size]), np.array([n / right.size]), n
        )
        cells = left.size * right.size
        attributes = left.attributes[0], right.attributes[0]
        out.append(Prediction(attributes, cells, n / cells, float(error[0, 0])))
    return out


def cell_variance(
    sizes: Sequence[int], messages: Sequence[Message], attributes: Sequence[int]
) -> float:
    """Variance of one cell's count in a party's marginal, from all released marginals that contain its attributes.

    Marginals add up by their inverse variances; a fitted model is at least about as precise as that. Infinite where no
    marginal contains them: the model then extrapolates, with an error that nobody knows. Where larger marginals are of merged
    values, so is the cell.
    """
    cells = _cells(sizes, messages, attributes)
    precision = 0.0
    for message in messages:
        for marginal in message.marginals:
            if set(attributes) <= set(marginal.attributes):
                precision += cells / (marginal.error**2 * marginal.counts.size)
    return 1.0 / precision if precision else math.inf


def _cells(sizes: Sequence[int], messages: Sequence[Message], attributes: Sequence[int]) -> int:
    """Cells of a marginal, of merged values where they are."""
    merged = merged_at_parties(messages)
    return math.prod(int(merged[a].max()) + 1 if a in merged else sizes[a] for a in attributes)


def merged_at_parties(messages: Sequence[Message]) -> dict[int, npt.NDArray[np.int64]]:
    """By attribute, the map code -> merged value, where larger marginals are of such."""
    held = (
        pair
        for own in messages
        for m in own.marginals
        for pair in zip(m.attributes, m.bins, strict=bool(m.bins))
    )
    return {a: bins for a, bins in held if bins is not None}


def _responses(
    sketch: ResponsePlan,
    published: Sequence[int],
    tables: Sequence[npt.NDArray[np.uint8]],
    bins: Sequence[npt.NDArray[np.int64]],
    wanted: Sequence[tuple[int, ...]],
) -> list[Measurement]:
    if len({table.size for table in tables}) > 1:
        raise MessageError(
            "The parties sent different numbers of rows; they must encode the same records."
        )
    out = []
    for attributes in wanted:
        places = [published.index(a) for a in attributes]
        values, errors = count_marginal(sketch, places, [tables[i] for i in places])
        maps = tuple(bins[i] for i in places)
        out.append(Measurement(tuple(attributes), maps, values, errors, "randomised responses"))
    return out


def _set_sizes(
    schema: Schema,
    messages: Sequence[Message],
    initial: MarkovRandomField,
    group: Group,
    maps: BinMaps,
    records: float,
) -> tuple[Floats, Floats]:
    """Sizes of a group's sets, by the model of the parties' own marginals, and their standard errors [both shape=(values,)].

    ``records`` are the party's, the model's total where all have the same.
    """
    sizes = group.sums(
        bin_table(initial.marginal(group.attributes) * (records / initial.total), maps, group.bins)
    )
    return sizes, np.minimum(_set_errors(schema, messages, group, maps), records)


def _set_errors(schema: Schema, messages: Sequence[Message], group: Group, maps: BinMaps) -> Floats:
    """Standard errors of the sizes of a group's sets [shape=(values,)]."""
    variance = cell_variance(schema.sizes, messages, group.attributes)
    merged = merged_at_parties(messages)
    # Where values are merged, the first of each stands for all.
    counted = [
        np.isin(np.arange(len(mapping)), np.unique(merged[a], return_index=True)[1])
        if a in merged
        else np.ones(len(mapping))
        for a, mapping in zip(group.attributes, maps, strict=True)
    ]
    cells = bin_table(
        functools.reduce(np.multiply.outer, counted).astype(np.float64), maps, group.bins
    )
    out: Floats = np.sqrt(variance * group.sums(cells))
    return out
