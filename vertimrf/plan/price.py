"""What it would cost to release more than once for one plan: the reason why nobody may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from ..errors import PlanError, PrivacyError
from ..privacy.events import CountSketchEvent, Event, GaussianEvent, GRREvent, SketchEvent
from ..privacy.ledger import Ledger, LedgerEntry
from ..sketches.parameters import CountSketchPlan, SketchPlan
from .plan import Plan

__all__ = ["ledger_of_releases", "price_in_words"]


def ledger_of_releases(plan: Plan, messages: Sequence[int]) -> Ledger:
    """A plan's ledger if every party had released so many times, each time with fresh noise and phantoms.

    Noisy marginals and counts, and rows by randomised response, simply compose. Sketches do not: a plan's hashes are the same
    in every release, so that under one key a record touches one sketch *per release* of each party of the scheduled pair, all
    with the same level: with one more release of one party 3 sketches a key, of both 4, and each of both three times 6. So it is
    with count sketches: every release of a group is one group more, as often as its weight.

    Args:
        plan: the plan.
        messages: how many messages each party releases, in plan order; at least 1.

    Raises:
        PlanError: not one number of releases per party, or one below 1.
    """
    if len(messages) != len(plan.party_names) or min(messages) < 1:
        raise PlanError(
            f"Each of {len(plan.party_names)} parties releases at least once, not {list(messages)} times."
        )
    by_name = dict(zip(plan.party_names, messages, strict=True))
    out: list[LedgerEntry] = []
    # Their entries come before that of count sketches of values.
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
        elif isinstance(event, GaussianEvent):
            events = [structs.replace(event, count=event.count * by_name[entry.party])]
        else:
            events = [event]
        out += [structs.replace(entry, event=made) for made in events]
    # What a party that colludes would add to this has no price here.
    # It says nothing of parties that collude.
    return replace(plan.ledger(), entries=tuple(out), parties=())


def _sketches(plan: Plan, event: SketchEvent, times: Sequence[int]) -> list[Event]:
    """Sketches of scheduled pairs or shared keys: keys by how many sketches a record touches under them."""
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
    """Count sketches of so many groups, or numbers that a record adds to.

    Of persons with several records, or with far too little noise, they are priced as if buckets and signs were known, which costs
    more: a record then moves numbers of known places.
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
    """What one more message would cost, by one party and by all, as a sentence for who is refused it.

    Args:
        plan: the plan.
        party: who asks.
    """
    parties = len(plan.party_names)
    alone = [2 if i == party else 1 for i in range(parties)]
    try:
        spent = [ledger_of_releases(plan, times).epsilon for times in (alone, [2] * parties)]
    except PrivacyError:
        # Who is refused a second release must read that, whatever it would cost.
        return "What a second message would cost cannot be computed."
    return (
        f"A second message would take the run from epsilon {plan.ledger().epsilon:.3g} to {spent[0]:.3g}, and to {spent[1]:.3g} "
        f"once all parties sent one, at delta {plan.delta:.3g}."
    )
