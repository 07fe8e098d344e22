"""The second round: where the remaining keys are worth most, by what the first round has told."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ..errors import PlanError
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement
from ..plan.follow_up import FollowUp
from ..plan.plan import Plan
from ..plan.schedule import (
    CHOSEN_TRIPLE,
    KEY_COST,
    Schedule,
    crossing_pairs,
    cut_groups,
    draft_schedule,
    smallest_triples,
    triple_rule,
)
from ..sketches.parameters import SketchPlan
from .global_graph import combine_graphs

__all__ = ["plan_second_round"]

# Standard errors of an average cell in the second round, and the multiples of it (and of those that a three-way marginal
# needs) that are tried in turn.
SECOND_CELL_ERRORS = 5.0
COARSER = (1.0, 1.5, 2.0, 4.0, 8.0)


def plan_second_round(
    plan: Plan, local: Sequence[Measurement], crossing: Sequence[Measurement], initial: MarkovRandomField, total: float
) -> FollowUp:
    """Keys go to the pairs that the first round finds dependent and the graph has room for, in finer bins, and to three-way
    marginals within the graph's cliques.

    Args:
        plan: the agreed plan.
        local, crossing: what the first round measured, at parties and across them.
        initial: the model of the local marginals.
        total: estimated record count.

    Raises:
        PlanError: the plan has one round.
    """
    if not (plan.second_keys and isinstance(plan.sketch, SketchPlan)):
        raise PlanError("The plan has one round; plan with two for a follow-up.")
    graph = combine_graphs(plan, local, crossing, total)
    pairs, triples = crossing_pairs(plan.schema), smallest_triples(plan.schema)
    if math.prod(plan.schema.sizes) > plan.tau:
        # Cliques are scarce: what has no place in the graph needs no keys.
        pairs = sorted(m.attributes for m in graph.kept) or pairs
        inside = {own for clique in graph.tree.cliques for own in itertools.combinations(clique, 3)}
        parties_of = {own: {plan.schema.party_of(a) for a in own} for own in inside}
        triples = sorted(own for own in inside if len(parties_of[own]) == 2 and not plan.schema.held_together(own))
    # What the remaining keys may spend, by the plan's own arithmetic.
    rho = plan.second_keys * KEY_COST / (2 * plan.sketch.phantoms**2)
    records = max(round(total), 1)
    least, weight = triple_rule(plan.schema, plan.tau, CHOSEN_TRIPLE)
    left = plan.message_bytes - max(plan.message_size(party) for party in range(len(plan.local)))
    # Where all keys would not fit into the messages, coarser bins and fewer triples cost less than keys left unused.
    for coarser in COARSER:
        rule = (coarser * least, weight)
        draft = draft_schedule(plan.schema, rho, records, pairs, triples, rule, coarser * SECOND_CELL_ERRORS)
        fitting = draft.within(plan.schema, plan.second_keys, left)
        if fitting is not None:
            draft = fitting
            break
    margins = {a: initial.marginal((a,)) for group in draft.groups for a in group.attributes}
    bins = cut_groups(plan.schema, draft.groups, margins, initial.class_maps)
    affordable = int(left / draft.bytes_per_key(plan.schema))
    keys = min(plan.second_keys, max(affordable, len(draft.pairs)))
    return FollowUp(plan, Schedule.of(plan.schema, draft.groups, draft.with_keys(keys)), bins)
