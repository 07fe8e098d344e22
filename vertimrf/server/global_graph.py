"""GraphCom: which measured marginals, local and cross-party, the global model's cliques are spent on (VertiMRF, phase 3)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..model.clique_budget import CliqueBudget
from ..model.fit import fit
from ..model.junction_tree import JunctionTree, junction_tree
from ..model.markov_random_field import MarkovRandomField
from ..model.measurement import Measurement
from ..plan.plan import Plan
from ..sketches.intersections import r_score
from .cross_party import bin_table

__all__ = ["combine_graphs"]

# A marginal's misfit counts for less by a power of its cells: wide ones fill the cliques that others then lack. How much less is
# tried out.
CELL_PRICES = (0.0, 0.2, 0.4)
# With more marginals than so many, the middle one alone is; the graph is grown from pairs, and in larger steps.
MANY_MARGINALS = 600
LARGER_STEPS = 4
# Marginals added between two fits, per attribute; and how many of the worst fitted are compared anew for each of them, since
# some will find no room.
ADDED_PER_ATTRIBUTE = 0.6
COMPARED = 3
# Marginals that take a table of more cells are compared with independent attributes instead.
MOST_CELLS = 1 << 22
# The fits in between end where a step gains less than this (see fit).
ROUGH_IMPROVEMENT = 0.1


def combine_graphs(
    plan: Plan, local: Sequence[Measurement], crossing: Sequence[Measurement], total: float
) -> tuple[tuple[Measurement, ...], JunctionTree, tuple[str, ...]]:
    """The global graph: the worst-fitted marginals enter while the largest clique stays within tau.

    The paper keeps the local graphs whole and adds cross-party edges by their R-scores. Here local and cross-party
    marginals compete for the cliques, and a marginal's score is its misfit to a model of those that are in already: at first
    independent attributes, which makes it the R-score, later what the graph does not explain yet. Greedy graphs vary, so a
    few are grown, and the one is kept whose model misses all measured pairs the least. All of it follows from messages, at no
    cost in privacy.

    Args:
        plan: the agreed plan.
        local: the parties' own marginals.
        crossing: measurements that span parties.
        total: record count.

    Returns:
        The cross-party measurements that found room, in the order given; the junction tree; warnings.
    """
    sizes = plan.schema.sizes
    if not crossing:
        return (), junction_tree(sizes, {pair for m in local for pair in itertools.combinations(m.attributes, 2)}), ()
    one_way = [m for m in local if len(m.attributes) == 1]
    larger = [
        m for m in (*local, *crossing) if len(m.attributes) > 1 and math.prod(sizes[a] for a in m.attributes) <= plan.tau
    ]
    budget = CliqueBudget(sizes, plan.tau)
    if budget.try_clique({a for m in larger for a in m.attributes}):
        tree = budget.tree()
    else:
        independent = fit(sizes, one_way, total)
        many = len(larger) > MANY_MARGINALS
        prices = CELL_PRICES[1:2] if many else CELL_PRICES
        if many:
            larger = [m for m in larger if len(m.attributes) == 2]
        scores = np.array([_misfit(m, independent) for m in larger])
        batch = max(int(ADDED_PER_ATTRIBUTE * len(sizes)), 1) * (LARGER_STEPS if many else 1)
        grown = [_grown(plan, one_way, larger, scores, independent, price, batch) for price in prices]
        best = grown[0] if many else min(grown, key=lambda one: sum(_misfit(m, one) for m in larger if len(m.attributes) == 2))
        tree = best.tree
    kept = tuple(m for m in crossing if tree.covering(m.attributes) >= 0)
    warnings = []
    if not kept:
        warnings.append(
            f"No cross-party edge fits tau = {plan.tau} cells or stands above the noise: the parties' attributes are "
            "synthesised as independent; raise tau or epsilon."
        )
    return kept, tree, tuple(warnings)


def _grown(
    plan: Plan,
    one_way: Sequence[Measurement],
    larger: Sequence[Measurement],
    scores: npt.NDArray[np.float64],
    independent: MarkovRandomField,
    price: float,
    batch: int,
) -> MarkovRandomField:
    """A model of a graph grown to tau, a few marginals at a time."""
    budget = CliqueBudget(plan.schema.sizes, plan.tau)
    value = np.array([math.prod(m.counts.shape) ** -price for m in larger])
    scores = scores * value
    fitted = independent
    waiting = set(range(len(larger)))
    while True:
        added = 0
        for i in sorted(waiting, key=lambda i: (-scores[i], i)):
            if scores[i] <= 0 or added == batch:
                break
            waiting.remove(i)
            added += budget.try_clique(larger[i].attributes)
        if not added:
            return fitted
        edges = set(budget.edges)
        waiting = {i for i in waiting if not edges.issuperset(itertools.combinations(larger[i].attributes, 2))}
        tree = budget.tree()
        used = [m for m in (*one_way, *larger) if tree.covering(m.attributes) >= 0]
        fitted = fit(
            plan.schema.sizes, used, independent.total, tree=tree, warm=fitted,
            min_improvement=ROUGH_IMPROVEMENT,
        )  # fmt: skip
        # A model that explains more leaves smaller misfits: only what would still come first is compared again.
        stale = set(waiting)
        while worst := stale.intersection(sorted(waiting, key=lambda i: (-scores[i], i))[: COMPARED * batch]):
            for i in worst:
                scores[i] = _misfit(larger[i], fitted) * value[i]
            stale -= worst


def _misfit(measurement: Measurement, fitted: MarkovRandomField) -> float:
    """Records by which a measured marginal differs from the model's, less what noise adds."""
    maps = [
        np.arange(size) if bins is None else bins
        for bins, size in zip(measurement.bins, (fitted.sizes[a] for a in measurement.attributes), strict=True)
    ]
    attributes = measurement.attributes
    try:
        table = fitted.marginal(attributes, max_cells=max(MOST_CELLS, fitted.tree.largest))
    except ModelError:
        # Attributes far apart in the graph, and wide ones between them.
        singles = [fitted.marginal((a,)) / fitted.total for a in attributes]
        table = functools.reduce(np.multiply.outer, singles) * fitted.total
    expected = bin_table(table, maps, measurement.counts.shape)
    return r_score(measurement, expected)
