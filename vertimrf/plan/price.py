"""The privacy cost of releasing more than once for one plan. It is why a plan is released once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from ..errors import PlanError, PrivacyError
from ..privacy.events import CountSketchEvent, Event, GaussianEvent, GRREvent, SketchEvent
from ..privacy.ledger import Kind, Ledger, LedgerEntry
from ..sketches.parameters import CountSketchPlan, SketchPlan
from .plan import Plan

__all__ = ["ledger_of_releases", "price_in_words"]


def ledger_of_releases(plan: Plan, messages: Sequence[int]) -> Ledger:
    """A plan's ledger if parties had released several times, each time with fresh noise.

    Noisy marginals, counts and randomised responses compose as usual. Sketches do not, because the
    hashes of a plan are the same in every release. For scheduled pairs, a record touches one sketch
    per key *and release* of each of the two parties, always at the same level. With a second
    release of one party that is 3 sketches per key, of both parties 4, and with three releases of
    both 6. For count sketches, every release of a group adds a group of the same weight.

    Args:
        plan: the plan.
        messages: number of messages of each party, in plan order; at least 1.

    Raises:
        PlanError: there is not one number per party, or one is below 1.
    """
    if len(messages) != len(plan.party_names) or min(messages) < 1:
        raise PlanError(
            f"Each of {len(plan.party_names)} parties releases at least once, not {list(messages)} times."
        )
    by_name = dict(zip(plan.party_names, messages, strict=True))
    out: list[LedgerEntry] = []
    # The entries of agreement come before the entry of the count sketches of values.
    agreed = [
        sum(messages[party] for party in plan.schema.holders[a])
        for a in plan.schema.shared[: len(plan.agreement)]
    ]
    for entry in plan.entries():
        event = entry.event
        if isinstance(event, SketchEvent):
            events = _sketches(plan, event, messages)
        elif isinstance(event, CountSketchEvent) and agreed:
            events = [_count_sketches(event, agreed.pop(0))]
        elif isinstance(event, CountSketchEvent):
            assert isinstance(plan.sketch, CountSketchPlan)
            sketch = plan.sketch
            times = [
                sketch.weight(group) * messages[owner]
                for group, owner in enumerate(plan.group_parties)
            ]
            events = [_count_sketches(event, sum(times))]
        elif isinstance(event, GRREvent):
            owners = plan.group_parties
            repeated = [
                size for i, size in enumerate(event.sizes) for _ in range(messages[owners[i]])
            ]
            events = [GRREvent(event.epsilon, tuple(repeated))]
        elif entry.kind is Kind.ENCRYPTED_COUNTS:
            # Two releases of either party might average one of the two noises away.
            most = max(by_name[part.party] for part in entry.parts)
            single = entry.parts[0].event
            assert isinstance(single, GaussianEvent)
            events = [structs.replace(single, count=single.count * most) if most > 1 else event]
        elif isinstance(event, GaussianEvent):
            events = [structs.replace(event, count=event.count * by_name[entry.party])]
        else:
            events = [event]
        out += [structs.replace(entry, event=made) for made in events]
    # This ledger does not cover collusion.
    return replace(plan.ledger(), entries=tuple(out), parties=())


def _sketches(plan: Plan, event: SketchEvent, times: Sequence[int]) -> list[Event]:
    """The events of scheduled pairs or shared keys.

    Keys are grouped by the number of sketches that a record touches under them.
    """
    keys: Counter[int] = Counter()
    owners = plan.group_parties
    if isinstance(plan.sketch, SketchPlan):
        for pair in plan.sketch.pairs:
            keys[times[owners[pair.left]] + times[owners[pair.right]]] += pair.keys
    else:
        keys[sum(times[owner] for owner in owners)] += event.keys
    return [
        structs.replace(event, keys=count, attributes_per_key=touched)
        for touched, count in sorted(keys.items())
    ]


def _count_sketches(event: CountSketchEvent, groups: int) -> Event:
    """The event of count sketches in which a record adds to so many counters.

    Persons with several records, and noise that is too small for the exact law, are priced as if
    buckets and signs were known. This costs more, because a record then moves known counters.
    """
    try:
        priced = structs.replace(event, groups=groups)
        if priced.records > 1:
            _ = priced.law
    except PrivacyError:
        return GaussianEvent(
            math.sqrt(groups * event.variance), groups * event.records, event.repetitions
        )
    return priced


def price_in_words(plan: Plan, party: int) -> str:
    """A sentence with the cost of one more message by one party and by all parties, for refusals.

    Args:
        plan: the plan.
        party: position of the party that asks.
    """
    parties = len(plan.party_names)
    alone = [2 if i == party else 1 for i in range(parties)]
    try:
        spent = [ledger_of_releases(plan, times).epsilon for times in (alone, [2] * parties)]
    except PrivacyError:
        # The refusal must be shown even if the cost cannot be computed.
        return "What a second message would cost cannot be computed."
    return (
        f"A second message would take the run from epsilon {plan.ledger().epsilon:.3g} to {spent[0]:.3g}, and to {spent[1]:.3g} "
        f"once all parties sent one, at delta {plan.delta:.3g}."
    )
