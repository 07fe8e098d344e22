"""The privacy target of a run: the range of epsilon and delta, and warnings about targets that protect little."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

from ..arguments import shown
from ..errors import PlanError
from ..privacy.accountant import check_delta
from .defaults import MAX_DELTA, UNCOUNTED_DELTA, default_delta

if TYPE_CHECKING:
    from .options import PlanOptions

# Smallest and largest epsilon of a target.
MIN_TARGET_EPSILON, MAX_TARGET_EPSILON = 1e-4, 1e3
# From this epsilon on, a warning says that it gives little protection.
WEAK_EPSILON = 8.0


def check_target(epsilon: float, delta: float | None) -> None:
    """Refuse a privacy target for which no run can be planned.

    Args:
        epsilon, delta: the target; no delta: the default.

    Raises:
        PlanError: epsilon or delta is out of range.
    """
    if not isinstance(epsilon, Real) or isinstance(epsilon, bool) or not epsilon > 0:
        raise PlanError(f"epsilon must be a number above 0, not {shown(epsilon)}.")
    if not MIN_TARGET_EPSILON <= epsilon <= MAX_TARGET_EPSILON:
        raise PlanError(
            f"epsilon must lie between {MIN_TARGET_EPSILON:g} and {MAX_TARGET_EPSILON:g}, not {epsilon}: less leaves nothing but noise, "
            "and more protects nobody."
        )
    if delta is None:
        return
    check_delta(delta, PlanError)
    if delta > MAX_DELTA:
        raise PlanError(
            f"delta must be at most {MAX_DELTA:g}, not {delta}: to publish that part of all records outright would meet it; "
            "take one far below 1 / records."
        )


def target_in_words(epsilon: float, delta: float | None, records: int | None) -> list[str]:
    """Warnings about a target that protects little, one sentence each; empty for a usual target.

    Args:
        epsilon, delta: the target; no delta: the default.
        records: approximate number of records; None if it is not known.
    """
    out = []
    if epsilon >= WEAK_EPSILON:
        odds = (
            f"e^{epsilon:g}"
            if epsilon > 500
            else f"{math.exp(epsilon):,.0f}"
            if epsilon < 20
            else f"{math.exp(epsilon):.0e}"
        )
        out.append(
            f"epsilon {epsilon:g} allows that whoever sees the result becomes {odds} times surer of anything about a person than "
            "without her record: that is hardly any protection. Usual are 1 and below, and seldom above 3."
        )
    if delta is not None and records is None and delta > MAX_DELTA:
        out.append(
            f"delta {delta:g} allows to give out that part of all records as they are; take one far below 1 / records."
        )
    elif delta is not None and records is not None and delta * records >= 1:
        out.append(
            f"delta {delta:.3g} with about {records:,} records allows to give out about {delta * records:,.0f} whole "
            f"record{'s' * (delta * records >= 1.5)} as they are; take one far below 1 / records, {1 / records:.2g}, such as the "
            "default."
        )
    return out


def domain_budget(epsilon: float, planning: PlanOptions) -> tuple[float, float]:
    """Epsilon and delta for finding private domains: a share of the whole run's target."""
    delta = planning.delta
    if delta is None:
        records = planning.expected_records
        delta = UNCOUNTED_DELTA if records is None else default_delta(records)
    return planning.domain_share * epsilon, planning.domain_share * delta
