"""GraphCom: which measured marginals, local and cross-party, the global model's cliques are spent on (VertiMRF, phase 3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from . import graph, model
from .cross_party import bin_table
from .estimate import r_score
from .measurement import Measurement
from .plan import Plan

__all__ = ["combine_graphs"]

# A marginal's misfit counts for less by this power of its cells: wide ones fill the cliques that others then lack.
CELL_PRICE = 0.2
# Marginals added between two fits, per attribute; and how many of the worst fitted are compared anew for each of them, since
# some will find no room.
ADDED_PER_ATTRIBUTE = 0.6
COMPARED = 3
# The fits in between end where a step gains less than this (see model.fit).
ROUGH_GAIN = 0.1


def combine_graphs(
    plan: Plan, local: Sequence[Measurement], crossing: Sequence[Measurement], total: float, num_threads: int | None = None
) -> tuple[tuple[Measurement, ...], graph.JunctionTree, tuple[str, ...]]:
    """The global graph: the worst-fitted marginals enter while the largest clique stays within tau.

    The paper keeps the local graphs whole and adds cross-party edges by their R-scores. Here local and cross-party
    marginals compete for the cliques, and a marginal's score is its misfit to a model of those that are in already: at first
    independent attributes, which makes it the R-score, later what the graph does not explain yet. All of it follows from
    messages, at no cost in privacy.

    Args:
        plan: the agreed plan.
        local: the parties' own marginals.
        crossing: measurements that span parties.
        total: record count.
        num_threads: threads for the fits.

    Returns:
        The cross-party measurements that found room, in the order given; the junction tree; warnings.
    """
    sizes = plan.schema.sizes
    if not crossing:
        return (), graph.junction_tree(sizes, {pair for m in local for pair in itertools.combinations(m.attributes, 2)}), ()
    budget = graph.CliqueBudget(sizes, plan.tau)
    larger = [m for m in (*local, *crossing) if len(m.attributes) > 1]
    if not budget.try_clique({a for m in larger for a in m.attributes}):
        _add_worst_fitted(plan, budget, [m for m in local if len(m.attributes) == 1], larger, total, num_threads)
    tree = budget.tree()
    kept = tuple(m for m in crossing if tree.covering(m.attributes) >= 0)
    warnings = []
    if crossing and not kept:
        warnings.append(
            f"No cross-party edge fits tau = {plan.tau} cells or stands above the noise: the parties' attributes are "
            "synthesised as independent; raise tau or epsilon."
        )
    return kept, tree, tuple(warnings)


def _add_worst_fitted(
    plan: Plan,
    budget: graph.CliqueBudget,
    one_way: Sequence[Measurement],
    larger: Sequence[Measurement],
    total: float,
    num_threads: int | None,
) -> None:
    """Fill the budget of cliques, a few marginals at a time."""
    sizes = plan.schema.sizes
    batch = max(int(ADDED_PER_ATTRIBUTE * len(sizes)), 1)
    fitted = model.fit(sizes, one_way, total, num_threads=num_threads)
    scores = np.array([_misfit(m, fitted) for m in larger])
    waiting = set(range(len(larger)))
    while True:
        added = 0
        for i in sorted(waiting, key=lambda i: (-scores[i], i)):
            if scores[i] <= 0 or added == batch:
                break
            waiting.remove(i)
            added += budget.try_clique(larger[i].attributes)
        edges = set(budget.edges)
        waiting = {i for i in waiting if not edges.issuperset(itertools.combinations(larger[i].attributes, 2))}
        if not added or not waiting:
            return
        tree = budget.tree()
        used = [m for m in (*one_way, *larger) if tree.covering(m.attributes) >= 0]
        fitted = model.fit(sizes, used, total, tree=tree, warm=fitted, gain=ROUGH_GAIN, num_threads=num_threads)
        # A model that explains more leaves smaller misfits: only what would still come first is compared again.
        stale = set(waiting)
        while worst := stale.intersection(sorted(waiting, key=lambda i: (-scores[i], i))[: COMPARED * batch]):
            for i in worst:
                scores[i] = _misfit(larger[i], fitted)
            stale -= worst


def _misfit(measurement: Measurement, fitted: model.MarkovRandomField) -> float:
    """Distance between a measured marginal and the model's, less what noise adds, at the price of its cells."""
    maps = [
        np.arange(size) if bins is None else bins
        for bins, size in zip(measurement.bins, (fitted.sizes[a] for a in measurement.attributes), strict=True)
    ]
    expected = bin_table(fitted.marginal(measurement.attributes), maps, measurement.values.shape)
    return float(r_score(measurement, expected) / math.prod(measurement.values.shape) ** CELL_PRICE)
