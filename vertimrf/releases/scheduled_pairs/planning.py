"""Scheduled pairs: into how many bins each cross-party pair is cut, and how many hash keys it gets.

All of it follows from public figures.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ...plan.choice import Choice, Released, SketchChoice, Target
from ...plan.groups import Group, crossing_pairs
from ...plan.options import PlanOptions
from ...plan.schema import Schema
from ...plan.workload import Workload
from ..count_sketches.planning import beside_agreement
from ..release import HIGHEST_CEILING
from .parameters import ScheduledPair, ScheduledPairs

NOTHING = Workload()
# N² χ²(Q ‖ P) of one key at the planner's ceiling, for the first guess of the phantoms N. The
# accountant computes the exact cost.
KEY_COST = 7.0
# Privacy cost of a key over its information on an intersection (C / I) at the planner's ceiling: a
# cell's variance over that of a trusted curator.
COST_OF_INFORMATION = 1.4
# More phantoms than so many times the records gain nothing: they already dominate the variance.
PHANTOMS_OVER_RECORDS = 8
# Bounds on the number of keys: fewer save nothing, more cost encoding time.
MIN_KEYS = 1 << 20
MAX_KEYS = 1 << 25
# A pair is cut into so many bins that an average cell has this many standard errors.
CELL_ERRORS = 6.0
# Released levels of a sketch, around the level of the phantoms. Lower levels have no information; a
# higher one would single out one record.
FLOOR_BELOW_PHANTOMS = 4
CEILING_ABOVE_PHANTOMS = 7


def schedule_pairs(
    schema: Schema,
    rho: float,
    records: int,
    message_bytes: int,
    keys: int | None = None,
    workload: Workload = NOTHING,
) -> tuple[tuple[Group, ...], tuple[ScheduledPair, ...]]:
    """Choose the bins and the number of keys of every cross-party pair.

    A pair is cut so that an average cell has :data:`CELL_ERRORS` standard errors. The sum of the
    pairs' L1 errors is then least with keys in proportion to cells^(2/3).

    The number of all keys is such that the phantoms N are :data:`PHANTOMS_OVER_RECORDS` times the
    records, if messages stay within their budget. The variance of a cell of sets a and b is about
    (a + N)(b + N) / (keys * information), and N grows with the root of the keys, so that more keys
    gain little.

    Args:
        schema: attributes and parties; at least one pair of attributes crosses parties.
        rho: what the sketches may spend (zCDP).
        records: expected number of records.
        message_bytes: budget for the sketches in any party's message.
        keys: number of keys of all pairs together; None follows from the other figures.
        workload: its pairs get more keys.

    Returns:
        The groups, each an attribute in some number of bins, and the pairs of them. Every pair has
        at least one key.
    """
    crossing = np.array(crossing_pairs(schema))
    # Standard error of a cell of a pair that has an equal part of the keys, if phantoms outnumber
    # the sets.
    error = math.sqrt(COST_OF_INFORMATION / (2 * rho) * len(crossing))
    cells = max(records / (CELL_ERRORS * error), 4.0)
    # About so many cells, or all values if they are fewer; at least two bins of an attribute.
    sizes = np.array(schema.sizes)[crossing]
    bins = np.minimum(sizes, np.maximum(math.sqrt(cells), cells / sizes[:, ::-1])).astype(np.int64)
    bins = np.maximum(bins, 2)
    shares = np.prod(bins, axis=1) ** (2 / 3)
    shares *= [workload.relevance(pair) for pair in crossing.tolist()]
    shares /= shares.sum()
    if keys is None:
        # Two levels of a sketch take a byte.
        key_bytes = np.zeros(len(schema.parties))
        owners = np.array([schema.party_of(a) for a in range(len(schema.sizes))])
        np.add.at(key_bytes, owners[crossing], shares[:, None] * bins / 2)
        wanted = max(2 * rho * (PHANTOMS_OVER_RECORDS * records) ** 2 / KEY_COST, MIN_KEYS)
        keys = int(min(wanted, message_bytes / key_bytes.max(), MAX_KEYS))
    groups: dict[Group, int] = {}
    pairs = []
    for (a, b), (u, w), share in zip(
        crossing.tolist(), bins.tolist(), shares.tolist(), strict=True
    ):
        left, right = (
            groups.setdefault(Group((attribute,), (count,)), len(groups))
            for attribute, count in ((a, u), (b, w))
        )
        pairs.append(ScheduledPair(left, right, max(int(keys * share), 1)))
    return tuple(groups), tuple(pairs)


def planned(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """See :meth:`.CrossPartyRelease.planned`."""
    return beside_agreement(schema, planning, target, _scheduled)


def _scheduled(schema: Schema, rho: float, planning: PlanOptions, target: Target) -> SketchChoice:
    scheduled = schedule_pairs(
        schema, rho, target.records, target.message_bytes, planning.keys, target.workload
    )
    return partial(_scheduled_plan, *scheduled)


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
