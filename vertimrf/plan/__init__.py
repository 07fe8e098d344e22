"""Everything public that parties and server agree on before any data is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .attribute import Attribute
    from .options import PlanOptions
    from .plan import LocalPlan, Plan
    from .planner import make_plan
    from .schema import Schema

__all__ = [
    "Attribute",
    "LocalPlan",
    "Plan",
    "PlanOptions",
    "Schema",
    "make_plan",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Attribute": "attribute",
        "LocalPlan": "plan",
        "Plan": "plan",
        "PlanOptions": "options",
        "Schema": "schema",
        "make_plan": "planner",
    },
)
