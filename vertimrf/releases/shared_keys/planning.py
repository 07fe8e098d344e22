"""Planning of the published encoder."""

from __future__ import annotations

from ...plan.choice import Choice, Target, coarse_groups, no_sketches, shares_of
from ...plan.groups import Group
from ...plan.options import PlanOptions
from ...plan.schema import Schema
from .parameters import SharedKeys
from .published_claim import claimed_floor, claimed_phantoms

# The paper's encoder: keys, bins of an attribute, and levels above the floor, which one sketch in
# 30,000 exceeds.
PUBLISHED_KEYS = 2000
PUBLISHED_LEVELS = 15


def planned(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """See :meth:`.CrossPartyRelease.planned`."""
    shares = shares_of(schema, planning, target)
    if not shares.sketches:
        return Choice(no_sketches, (), shares.without_sketches())
    groups = coarse_groups(schema)
    published = groups, _published_plan(groups, target, planning.keys or PUBLISHED_KEYS)
    # The rest of the target is for the count and the local models.
    return Choice(lambda rho: published, (), shares.without_sketches())


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
