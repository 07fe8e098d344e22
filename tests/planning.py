"""Plans by keyword, as tests ask for them."""

from __future__ import annotations

from typing import Any

from vertimrf.plan.options import PlanOptions
from vertimrf.plan.plan import Plan
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Schema

# What make_plan takes beside its options.
BESIDE = ("nonce", "prior", "public_keys")


def plan_with(schema: Schema, *, epsilon: float, **options: Any) -> Plan:
    """A plan of these options of ``PlanOptions``, and of ``nonce``, ``prior`` and ``public_keys``."""
    beside = {name: options.pop(name) for name in BESIDE if name in options}
    return make_plan(schema, epsilon, PlanOptions(**options), **beside)
