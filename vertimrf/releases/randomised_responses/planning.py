"""Planning of randomised responses."""

from __future__ import annotations

import math
from functools import partial

from ...plan.choice import Choice, Released, Target, coarse_groups, no_sketches, shares_of
from ...plan.groups import Group
from ...plan.options import PlanOptions
from ...plan.schema import Schema
from .parameters import RandomisedResponses


def planned(schema: Schema, planning: PlanOptions, target: Target) -> Choice:
    """See :meth:`.CrossPartyRelease.planned`."""
    shares = shares_of(schema, planning, target)
    if not shares.sketches:
        return Choice(no_sketches, (), shares.without_sketches())
    groups = coarse_groups(schema)
    return Choice(partial(_responses_plan, groups), (), shares)


def _responses_plan(groups: tuple[Group, ...], rho: float) -> Released:
    """Randomised responses (VertiMRF, section 4.2) that spend about ``rho`` (zCDP)."""
    sizes = tuple(group.size for group in groups)
    # The loss of one attribute is +-epsilon, each with probability about 1 / size.
    return groups, RandomisedResponses(math.sqrt(rho / sum(1 / size for size in sizes)), sizes)
