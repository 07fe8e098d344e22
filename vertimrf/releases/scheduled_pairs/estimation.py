"""CarEst of scheduled pairs: the marginals of the schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arrays import Pair
from ...model.measurement import Measurement
from ...plan.schema import Schema
from ..received import CommonRecords, CrossParty, Received, named, set_sizes
from .intersections import Side, estimate_pair
from .parameters import ScheduledPairs


def estimate(sketch: ScheduledPairs, received: Received) -> CrossParty:
    """See :meth:`.CrossPartyRelease.estimate`."""
    measurements = _scheduled_marginals(sketch, received)
    return CrossParty(tuple(measurements), scheduled_matches(received.plan.schema, measurements))


def _scheduled_marginals(sketch: ScheduledPairs, received: Received) -> list[Measurement]:
    """Estimate scheduled pairs."""
    plan, bins, sizes = received.plan, received.bins, set_sizes(received)
    # If parties have different people, the largest party's count is used.
    total = max(count.records for count in received.counts)
    waiting = [iter(message.sketches) for message in received.messages]
    out = []
    for done, pair in enumerate(sketch.pairs):
        received.progress.advance(done, len(sketch.pairs))
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
    by_parties: dict[Pair, list[Measurement]] = {}
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
