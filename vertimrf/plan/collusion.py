"""Find the message size at which a plan's epsilon against a colluding party stays within a cap."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..errors import PlanError
from .plan import Plan

# Share of the cap that may be left unused; calibration leaves as much of a plan's epsilon.
UNUSED = 2e-3
MAX_PLANS = 60


def within_cap(make: Callable[[int], Plan], cap: float, least: int, most: int) -> Plan:
    """The plan with the largest messages whose epsilon, if a party colludes with the server, is
    within a cap.

    That epsilon grows with about the fourth root of the size; it may fall slightly where the
    planner changes buckets or bits. So the size is found by interpolation of logarithms. The plan
    leaves at most :data:`UNUSED` of the cap, or one repetition of its sketches, unused.

    Args:
        make: makes a plan for a message size, in bytes.
        cap: largest epsilon.
        least, most: smallest and largest size, in bytes.

    Returns:
        The plan.

    Raises:
        PlanError: no size meets the cap.
    """
    plan, high = make(most), most
    spent = _spent(plan)
    if spent <= cap:
        return plan
    if math.isinf(spent):
        raise PlanError(
            f"With {plan.encoder} no epsilon holds if a party colludes with the server, whatever the message size: use count "
            "sketches, or leave the cap out."
        )
    best, low = make(least), least
    high_spent, low_spent = spent, _spent(best)
    if low_spent > cap:
        raise PlanError(
            f"No message is so small that epsilon stays within {cap:g} if a party colludes with the server: the smallest reach "
            f"{low_spent:.3g}; raise the cap, or lower epsilon."
        )
    above = plan
    for _ in range(MAX_PLANS):
        if low_spent >= cap * (1 - UNUSED) or high - low <= 1 or _next_to(best, above):
            break
        part = math.log(cap * (1 - UNUSED / 2) / low_spent) / math.log(high_spent / low_spent)
        size = round(math.exp(math.log(low) + min(max(part, 0.05), 0.95) * math.log(high / low)))
        size = min(max(size, low + 1), high - 1)
        plan = make(size)
        spent = _spent(plan)
        if spent <= cap:
            best, low, low_spent = plan, size, spent
        else:
            above, high, high_spent = plan, size, spent
    return best


def _spent(plan: Plan) -> float:
    """Epsilon if a party colludes, above 0 for its logarithm."""
    return max(plan.ledger().colluding_epsilon or 0.0, 1e-12)


def _next_to(one: Plan, other: Plan) -> bool:
    """Whether no plan has a message size between those of two plans."""
    pairs = zip((one.sketch, *one.agreement), (other.sketch, *other.agreement), strict=True)
    return all(a.next_to(b) for a, b in pairs)
