"""Columns that several parties hold: one attribute of the model, and how far its holders contradict each other.

Each holder measures such a column with its other ones. The fit weighs all measurements by their precision, so that contradictions
end between the holders, and what only one of them measures is left as it is.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..message import Message
from ..model.junction_tree import JunctionTree, junction_tree
from ..model.markov_random_field import Factor
from ..model.measurement import BinMap, Measurement
from ..model.structural_zeros import budget_holding
from ..model.value_classes import sizes_in_classes
from ..plan.plan import Plan
from ..sketches.agreement import agreeing

__all__ = ["Disagreement", "disagreements", "local_tree"]

# Holders who contradict each other are told from so many standard errors.
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Disagreement:
    """How far two holders of a column contradict each other.

    Attributes:
        attribute: its position in the schema.
        parties: their positions in the plan.
        share: estimated part of all records for which their values differ; unbiased, so that it may be below 0.
        error: its standard error.
    """

    attribute: int
    parties: tuple[int, int]
    share: float
    error: float

    @property
    def significant(self) -> bool:
        """Whether it is more than noise."""
        return self.share > SIGNIFICANT * self.error

    def sentence(self, plan: Plan) -> str:
        """For people."""
        one, other = (plan.party_names[party] for party in self.parties)
        column = repr(plan.schema.names[self.attribute])
        if not self.significant:
            most = max(self.share, 0) + SIGNIFICANT * self.error
            return f"{one} and {other} agree on {column}, as far as can be told: for all but at most {most:.1%} of the records."
        return (
            f"{one} and {other} contradict each other on {column} for {self.share:.1%} of the records (standard error "
            f"{self.error:.2%}); the table has one such column, between theirs."
        )

    def to_json(self, plan: Plan) -> dict[str, Any]:
        """JSON-able, by name."""
        return {
            "column": plan.schema.names[self.attribute],
            "parties": [plan.party_names[party] for party in self.parties],
            "disagreement": round(self.share, 6),
            "standard_error": round(self.error, 6),
        }


def disagreements(
    plan: Plan, messages: Sequence[Message], total: float
) -> tuple[Disagreement, ...]:
    """What the sketches of agreement tell of every two holders of every shared column.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
        total: estimated record count.
    """
    asked = [plan.agreement_of(party) for party in range(len(messages))]
    tables = [
        dict(zip(held, message.agreement, strict=True))
        for held, message in zip(asked, messages, strict=True)
    ]
    released = [
        {m.attributes[0]: float(m.counts.sum()) for m in own.marginals if len(m.attributes) == 1}
        for own in messages
    ]
    out = []
    for attribute, sketch in zip(plan.schema.shared, plan.agreement, strict=False):
        holders = plan.schema.holders[attribute]
        found = agreeing(
            sketch,
            [tables[p][attribute] for p in holders],
            [released[p][attribute] for p in holders],
            total,
        )
        out += [
            Disagreement(attribute, (holders[i], holders[j]), 1 - records / total, error / total)
            for (i, j), (records, error) in found.items()
        ]
    return tuple(out)


def local_tree(
    plan: Plan, local: Sequence[Measurement], zeros: Sequence[Factor], classes: Mapping[int, BinMap]
) -> JunctionTree:
    """A junction tree of the parties' own marginals, and of structural zeros; of attributes in classes of values where they are.

    A party's graph keeps within its limit; pairs that it measured beside, which come last, stay out. Columns that several hold
    join their graphs, and cliques may grow together: then some marginals find no room within tau.
    """
    sizes = sizes_in_classes(plan.schema.sizes, classes)
    if not plan.schema.shared:
        ruled_out = [f.attributes for f in zeros]
        held, least = list(ruled_out), _joined(sizes, ruled_out).largest
        for party, limits in enumerate(plan.local):
            own = [m.attributes for m in local if plan.schema.party_of(m.attributes[0]) == party]
            limit = max(limits.largest_clique, least)
            held += own[
                : bisect.bisect_right(
                    range(1, len(own) + 1), limit, key=lambda n: _joined(sizes, own[:n]).largest
                )
            ]
        return _joined(sizes, held)
    budget = budget_holding(sizes, plan.tau, zeros)
    for m in local:
        budget.try_clique(m.attributes)
    return budget.tree()


def _joined(sizes: Sequence[int], held: Sequence[tuple[int, ...]]) -> JunctionTree:
    """A junction tree that holds some marginals."""
    return junction_tree(sizes, {pair for own in held for pair in itertools.combinations(own, 2)})
