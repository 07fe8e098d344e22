"""CarEst of scheduled pairs: the marginals of the schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arrays import Floats
from ...message import Message
from ...model.measurement import Measurement
from ...plan.plan import Plan
from ...plan.schema import Schema
from ...progress import Progress
from ..received import BinMaps, CommonRecords, CrossParty, Received, RecordCount, named, set_sizes
from .intersections import Side, estimate_pair
from .parameters import ScheduledPairs


def estimate(sketch: ScheduledPairs, received: Received) -> CrossParty:
    """See :meth:`.CrossPartyRelease.estimate`."""
    r = received
    sizes = set_sizes(r.plan, r.bins, r.messages, r.initial, r.counts)
    measurements = _scheduled_marginals(
        r.plan, sketch, r.bins, r.messages, sizes, r.counts, r.progress
    )
    return CrossParty(tuple(measurements), scheduled_matches(r.plan.schema, measurements))


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
        plan, messages, progress: as of :class:`.Received`.
        sketch: the plan's sketches.
        bins: of each group and attribute, the map code -> bin.
        sizes: from :func:`.set_sizes`.
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
        out.append(named(plan, estimate_pair(sketch, left, right, total), "sketches"))
    return out


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
