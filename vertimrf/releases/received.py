"""What estimators of all releases share: their arguments, their result, and sizes of sets (VertiMRF, CarEst)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Floats, Integers, Ints, Pair
from ..kernels.jit import for_each
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement, bin_table, binned_sizes
from ..plan.groups import BinMaps, crossing_pairs
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..progress import Progress
from .scheduled_pairs.intersections import outer_measurement

if TYPE_CHECKING:
    from ..message import Message


@dataclass(frozen=True)
class CommonRecords:
    """Estimated number of records that two parties have in common.

    Attributes:
        parties: positions of the parties in the plan.
        records: the estimate.
        error: its standard error, in records.
    """

    parties: Pair
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
    shared: Mapping[Pair, Measurement] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Received:
    """What an estimator is given.

    Attributes:
        plan: the agreed plan.
        messages: one per party, in plan order.
        bins: of each group and attribute, the map code -> bin.
        initial: a model of the local marginals, for the sizes of the sketched sets.
        total: estimated number of records.
        progress: where the work is reported.
        party_counts: records of each party, if parties have different people; otherwise None.
    """

    plan: Plan
    messages: Sequence[Message]
    bins: Sequence[BinMaps]
    initial: MarkovRandomField
    total: float
    progress: Progress
    party_counts: Sequence[RecordCount] | None

    @property
    def counts(self) -> Sequence[RecordCount]:
        """Records of each party; the total where all have the same people."""
        return self.party_counts or [RecordCount(self.total, 0.0)] * len(self.messages)

    @property
    def wanted(self) -> list[Ints]:
        """Pairs of attributes across parties; of all without local models. For encoders with a group
        for each attribute.
        """
        if all(local.units == 0 for local in self.plan.local):
            published = [group.attributes[0] for group in self.plan.groups]
            return list(itertools.combinations(published, 2))
        return list(crossing_pairs(self.plan.schema))

    def of_parties(self, found: Sequence[Measurement]) -> CrossParty:
        """Measurements that say which parties' messages they are of."""
        schema = self.plan.schema
        return CrossParty(
            tuple(replace(m, source=source_of(schema, m.attributes, m.source)) for m in found)
        )


def one_axis(m: Measurement, axis: int) -> Measurement:
    """Sum a measurement onto one of its axes; the result names attribute 0."""
    others = tuple(k for k in range(m.counts.ndim) if k != axis)
    spread = np.sqrt(np.square(m.errors).sum(axis=others))
    return Measurement((0,), (m.bins[axis],), m.counts.sum(axis=others), spread, m.source)


def named(plan: Plan, measured: Measurement, what: str) -> Measurement:
    """A measurement that says what it is of and from, without empty bins."""
    # A mean takes all cells of a number together. Shares of rare values need the fit's caution.
    asked = plan.workload.needs(measured.attributes) and any(
        plan.schema.attributes[a].ordered and plan.schema.sizes[a] > 2 for a in measured.attributes
    )
    source = source_of(plan.schema, measured.attributes, what)
    return measured.trimmed(source=source, asked=asked)


def source_of(schema: Schema, attributes: Sequence[int], what: str) -> str:
    """The attributes of a measurement, what it is from, and the parties whose messages it is of."""
    names = " × ".join(schema.names[a] for a in attributes)
    parties = sorted({schema.party_of(a) for a in attributes})
    return f"{names}, from {what} of {' and '.join(schema.party_names[p] for p in parties)}"


def of_groups(
    plan: Plan,
    bins: Sequence[BinMaps],
    pair: Pair,
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
    sizes: Sequence[int],
    messages: Sequence[Message],
    merged: Mapping[int, Integers],
    attributes: Sequence[int],
) -> float:
    """Variance of one cell's count in the fitted local model, from all released marginals that
    contain the attributes.

    Inverse variances of the marginals add up. Without such a marginal the variance is infinite,
    because the error of the model's extrapolation is unknown. If larger marginals have compressed
    domains, the cell is of merged values: ``merged``, from :func:`merged_at_parties`.
    """
    cells = math.prod(binned_sizes([sizes[a] for a in attributes], map(merged.get, attributes)))
    precision = 0.0
    for message in messages:
        for marginal in message.marginals:
            if all(a in marginal.attributes for a in attributes):
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


def set_sizes(received: Received) -> list[tuple[Floats, Floats]]:
    """Sizes of every group's sets by the local model, and their standard errors [both
    shape=(values,), float64].
    """
    plan, messages, initial = received.plan, received.messages, received.initial
    merged, records_of = merged_at_parties(messages), [n.records for n in received.counts]
    _ = initial.beliefs  # Cached before threads use it.

    def sizes_of(g: int) -> tuple[Floats, Floats]:
        group, maps, records = plan.groups[g], received.bins[g], records_of[plan.group_parties[g]]
        # The first of each set of merged values represents the set.
        representing = [
            np.isin(np.arange(len(mapping)), np.unique(merged[a], return_index=True)[1])
            if a in merged
            else np.ones(len(mapping))
            for a, mapping in zip(group.attributes, maps, strict=True)
        ]
        cells = functools.reduce(np.multiply.outer, representing).astype(np.float64)
        variance = cell_variance(plan.schema.sizes, messages, merged, group.attributes)
        expected = initial.marginal(group.attributes) * (records / initial.total)
        sizes, sets = (group.sums(bin_table(x, maps, group.bins)) for x in (expected, cells))
        return sizes, np.minimum(np.sqrt(variance * sets), records)

    return for_each(len(plan.groups), sizes_of)
