"""CarEst of count sketches: all pairs of groups, including pairs of one party."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ...arrays import Pair
from ...model.local_marginal import one_way_counts
from ...model.measurement import Measurement
from ...plan.groups import BinMaps, released_sizes
from ...plan.plan import Plan
from ..received import (
    CommonRecords,
    CrossParty,
    Received,
    named,
    of_groups,
    one_axis,
    set_sizes,
)
from .codes import CountedGroup
from .intersections import Cells, estimate_cells, estimate_overlapping
from .parameters import CountSketches


def estimate(sketch: CountSketches, received: Received) -> CrossParty:
    """See :meth:`.CrossPartyRelease.estimate`."""
    return _counted_marginals(sketch, received, _counted_groups(sketch, received))


def _counted_groups(sketch: CountSketches, received: Received) -> list[CountedGroup]:
    """The groups of count sketches."""
    plan, messages, sizes = received.plan, received.messages, set_sizes(received)
    waiting = [iter(message.sketches) for message in messages]
    # A group's steps follow from the one-way marginals that its party released.
    one_way = {
        a: counts
        for message in messages
        for a, counts in one_way_counts(message.marginals).items()
        if plan.schema.party_of(a) == message.party
    }
    released = released_sizes(plan.groups, received.bins, one_way)
    return [
        CountedGroup(
            next(waiting[party]),
            released[g],
            np.maximum(sizes[g][0], 0.0),
            sizes[g][1],
            g in sketch.contrasts,
            sketch.weight(g),
            sketch.alternation(g),
        )
        for g, party in enumerate(plan.group_parties)
    ]


def _counted_marginals(
    sketch: CountSketches, received: Received, counted: Sequence[CountedGroup]
) -> CrossParty:
    """CarEst of count sketches: estimate every two groups."""
    plan, bins, party_counts = received.plan, received.bins, received.party_counts
    total, progress = received.total, received.progress
    groups, parties = plan.groups, plan.group_parties
    shared: dict[Pair, Measurement] = {}
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
        block = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
        counts, errors = cells.counts[block], cells.errors[block]
        measured = of_groups(plan, bins, (i, j), counts, errors, sketch.contrasts)
        out.append(named(plan, measured, "count sketches"))
    return tuple(m for m in out if m.dimensions)
