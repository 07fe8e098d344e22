"""Everything public that parties and server agree on before any data is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .attribute import Attribute
    from .plan import LocalPlan, Plan, Shares
    from .planner import make_plan
    from .schema import Schema

__all__ = [
    "Attribute",
    "LocalPlan",
    "Plan",
    "Schema",
    "Shares",
    "make_plan",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Attribute": "attribute",
        "LocalPlan": "plan",
        "Plan": "plan",
        "Schema": "schema",
        "Shares": "plan",
        "make_plan": "planner",
    },
)
