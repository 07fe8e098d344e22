"""Shared columns: how far parties contradict each other, and the local junction tree.

Such a column is one attribute of the model. Every party that has it measures it together with its
other columns. The fit weights all measurements by their precision, so contradictory values are
averaged.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..arrays import Fields, Ints, Pair
from ..message import Message
from ..model.domain_compression import compressed_sizes
from ..model.junction_tree import JunctionTree, junction_tree
from ..model.local_marginal import first_one_way
from ..model.markov_random_field import Factor
from ..model.measurement import BinMap, Measurement
from ..model.structural_zeros import budget_holding
from ..plan.plan import Plan
from ..releases.count_sketches.agreement import agreeing

# A disagreement is significant above this many standard errors.
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Disagreement:
    """How far two parties contradict each other on a column.

    Attributes:
        attribute: position of the column in the schema.
        parties: positions of the parties in the plan.
        share: estimated share of records whose values differ; it is unbiased and may be negative.
        error: standard error of ``share``.
    """

    attribute: int
    parties: Pair
    share: float
    error: float

    @property
    def significant(self) -> bool:
        """Whether the share is larger than noise explains."""
        return self.share > SIGNIFICANT * self.error

    def sentence(self, plan: Plan) -> str:
        """A message that describes the disagreement."""
        one, other = (plan.party_names[party] for party in self.parties)
        column = repr(plan.schema.names[self.attribute])
        if not self.significant:
            most = max(self.share, 0) + SIGNIFICANT * self.error
            return f"{one} and {other} agree on {column} within the noise, for all but at most {most:.1%} of the records."
        return (
            f"{one} and {other} contradict each other on {column} for {self.share:.1%} of the records (standard error "
            f"{self.error:.2%}); the synthetic column lies between theirs."
        )

    def to_json(self, plan: Plan) -> Fields:
        """The disagreement in values that JSON can represent, with names."""
        return {
            "column": plan.schema.names[self.attribute],
            "parties": [plan.party_names[party] for party in self.parties],
            "disagreement": round(self.share, 6),
            "standard_error": round(self.error, 6),
        }


def disagreements(
    plan: Plan, messages: Sequence[Message], total: float
) -> tuple[Disagreement, ...]:
    """Estimate the disagreement of every two parties on every shared column, from the agreement
    sketches.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
        total: estimated record count.

    Returns:
        One disagreement per column and pair of parties.
    """
    columns = [plan.agreement_of(party) for party in range(len(messages))]
    tables = [
        dict(zip(attributes, message.agreement, strict=True))
        for attributes, message in zip(columns, messages, strict=True)
    ]
    released = [
        {a: float(m.counts.sum()) for a, m in first_one_way(message.marginals).items()}
        for message in messages
    ]
    out = []
    for attribute, sketch in zip(plan.schema.shared, plan.agreement, strict=False):
        holders = plan.schema.holders[attribute]
        agreements = agreeing(
            sketch,
            [tables[p][attribute] for p in holders],
            [released[p][attribute] for p in holders],
            total,
        )
        out += [
            Disagreement(attribute, (holders[i], holders[j]), 1 - records / total, error / total)
            for (i, j), (records, error) in agreements.items()
        ]
    return tuple(out)


def local_tree(
    plan: Plan, local: Sequence[Measurement], zeros: Sequence[Factor], classes: Mapping[int, BinMap]
) -> JunctionTree:
    """Build a junction tree of the parties' local marginals and the structural zeros, over
    compressed domains.

    Without shared columns, each party's marginals enter in order while its cliques stay within the
    plan's local limit. With shared columns the parties' graphs are connected, so a marginal enters
    only if all cliques stay within ``max_clique_cells``.
    """
    sizes = compressed_sizes(plan.schema.sizes, classes)
    if not plan.schema.shared:
        ruled_out = [f.attributes for f in zeros]
        kept, least = list(ruled_out), _joined(sizes, ruled_out).largest
        for party, limits in enumerate(plan.local):
            marginals = [
                m.attributes for m in local if plan.schema.party_of(m.attributes[0]) == party
            ]
            limit = max(limits.largest_clique, least)
            kept += marginals[
                : bisect.bisect_right(
                    range(1, len(marginals) + 1),
                    limit,
                    key=lambda n: _joined(sizes, marginals[:n]).largest,
                )
            ]
        return _joined(sizes, kept)
    budget = budget_holding(sizes, plan.tau, zeros)
    for m in local:
        budget.try_clique(m.attributes)
    return budget.tree()


def _joined(sizes: Sequence[int], marginals: Sequence[Ints]) -> JunctionTree:
    """A junction tree that covers some marginals."""
    return junction_tree(
        sizes, {pair for attributes in marginals for pair in itertools.combinations(attributes, 2)}
    )
