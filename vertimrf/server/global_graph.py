"""GraphCom: choose the marginals that the global model's cliques contain (VertiMRF, phase 3).

1. Start from a model of independent attributes, and a graph of the structural zeros and of the
   workload as far as it fits.
2. Score each marginal by its misfit to the model.
3. Add the marginals with the highest scores while the largest clique stays within
   ``max_clique_cells``: first a spanning forest (Chow and Liu, 1968), then a batch at a time.
4. Fit a rough model to the graph after each batch, and go to 2.

Rough models follow noise. The final fit starts from the last one only if the pairs' misfits to
independent attributes are above what noise adds to them.

If all marginals fit in one clique, they are all added. The paper keeps the local graphs whole and
adds cross-party edges by their R-scores; here local and cross-party marginals compete.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Pair, Texts
from ..errors import ModelError
from ..kernels.jit import for_each
from ..model.clique_budget import CliqueBudget
from ..model.domain_compression import compressed_sizes, compression_maps
from ..model.evidence import stand_out
from ..model.fit import FitOptions, fit
from ..model.jointly import LEAST_VARIABLES
from ..model.junction_tree import JunctionTree
from ..model.markov_random_field import Factor, MarkovRandomField
from ..model.measurement import (
    BinMap,
    Measurement,
    best_measured,
    misfits,
    noise_misfits,
    one_way_margins,
    padded,
)
from ..model.structural_zeros import budget_holding, ruling_out
from ..plan.merging import in_order, kept_apart
from ..plan.plan import Plan
from ..progress import SILENT, Progress, towards
from .local_pairs import chained
from .shared_columns import local_tree

# A marginal's misfit is divided by its cells to this power, because wide marginals use up the
# cliques.
CELL_PRICE = 0.2
# With more marginals than this, the graph grows from pairs alone.
MANY_MARGINALS = 600
# A batch is this fraction (1 / STEPS) of the pairs.
STEPS = 8
# Marginals of three and more attributes that are scored again, as a multiple of the batch.
COMPARED = 3
# Marginals of three and more attributes that need a larger table are compared with independent
# attributes.
MAX_CELLS = 1 << 22
# `min_improvement` and `tolerance` of the rough fits.
ROUGH_IMPROVEMENT = 0.5
ROUGH_TOLERANCE = 0.3
# `tolerance` of the last rough fit, which has one step and is only the start of the final fit.
LAST_TOLERANCE = 0.8


@dataclass(frozen=True, eq=False)
class GlobalGraph:
    """The graph of the global model.

    Attributes:
        kept: the cross-party measurements within its cliques, in the given order.
        tree: the junction tree.
        start: the last rough model, to start the fit from; None if all marginals fit in one clique,
            or if pairs are mostly noise.
        classes: domain compression: by attribute, the map value -> class. The tree is of classes.
        warnings: sentences about cliques above the plan's ``tau``.
    """

    kept: tuple[Measurement, ...]
    tree: JunctionTree
    start: MarkovRandomField | None
    classes: Mapping[int, BinMap]
    warnings: Texts


def combine_graphs(
    plan: Plan,
    local: Sequence[Measurement],
    crossing: Sequence[Measurement],
    total: float,
    progress: Progress = SILENT,
    raw: Sequence[Measurement] = (),
) -> GlobalGraph:
    """Build the global graph: add the worst-fitted marginals while the largest clique stays within
    the limit.

    The scores follow from messages, so they cost no privacy.

    Args:
        plan: the agreed plan.
        local: the parties' local marginals.
        crossing: measurements that span parties.
        total: record count.
        progress: where the growth of the graph is reported.
        raw: what the read pairs of ``local`` were measured as (:mod:`.local_pairs`), in whose bins
            classes are not merged. A spanning forest of the read pairs is in the graph first.

    Returns:
        The graph and a model to start the final fit from.
    """
    zeros = ruling_out(plan.schema.sizes, plan.schema.combinations)
    classes = compression_maps(
        (*local, *crossing, *raw), kept_apart(plan.schema, plan.coarse), in_order(plan.schema)
    )
    sizes = compressed_sizes(plan.schema.sizes, classes)
    if not (crossing or plan.coarse or raw):
        return GlobalGraph((), local_tree(plan, local, zeros, classes), None, classes, ())
    larger = [
        m
        for m in (*local, *crossing)
        if len(m.attributes) > 1 and math.prod(sizes[a] for a in m.attributes) <= plan.tau
    ]
    larger = best_measured(larger)
    warnings = []
    budget = budget_holding(sizes, plan.tau, zeros)
    if budget.limit > plan.tau:
        warnings.append(
            f"The schema's impossible combinations alone need cliques of {budget.limit:,.0f} cells, more than tau = {plan.tau:,}."
        )
    if not raw and budget.try_clique({a for m in larger for a in m.attributes}):
        tree, start = budget.tree(), None
    else:
        one_way = one_way_margins(local)
        independent = fit(plan.schema.sizes, one_way, total, zeros=zeros, classes=classes)
        pairs = [m for m in larger if len(m.attributes) == 2]
        forest = _forest(local, larger) if raw else _of_trends(larger)
        for m in forest:
            budget.try_clique(m.attributes)
        if forest:
            independent = chained(forest, budget.tree(), independent)
        if len(larger) > MANY_MARGINALS:
            larger = pairs
        tables = _expected(larger, independent)
        batch = max(len(pairs) // STEPS, 1)
        apart = misfits(larger, tables)
        scores = np.where(stand_out(larger, tables), apart, 0.0)
        tree, start = _grown(
            plan, local, larger, zeros, independent, scores, batch, progress, forest
        )
        of_pairs = apart[[len(m.attributes) == 2 for m in larger]]
        if not forest and of_pairs.sum() < sum(noise_misfits(pairs).tolist()):
            start = None
    kept = tuple(m for m in crossing if tree.covering(m.attributes) >= 0)
    return GlobalGraph(kept, tree, start, classes, tuple(warnings))


def used_in(
    tree: JunctionTree, local: Sequence[Measurement], larger: Sequence[Measurement]
) -> list[Measurement]:
    """What a model of a tree is fitted to: the marginals that its cliques contain, and the one-way
    margins of the parties' others.

    Args:
        tree: the junction tree.
        local: the parties' local marginals.
        larger: marginals of several attributes.
    """
    inside = {m for m in larger if len(m.attributes) > 1 and tree.covering(m.attributes) >= 0}
    alone = one_way_margins([m for m in local if m not in inside])
    return [*alone, *filter(inside.__contains__, larger)]


def _grown(
    plan: Plan,
    local: Sequence[Measurement],
    larger: Sequence[Measurement],
    zeros: Sequence[Factor],
    independent: MarkovRandomField,
    scores: Floats,
    batch: int,
    progress: Progress,
    forest: Sequence[Measurement],
) -> tuple[JunctionTree, MarkovRandomField]:
    """Grow a graph to the limit; see the module. The model to begin with has a forest of pairs.

    Returns:
        The junction tree and the last rough model.
    """
    sizes, classes = independent.tree.sizes, independent.class_maps
    budget = _begun(plan, sizes, zeros, forest)
    value, fitted = _values(plan, larger), independent
    scores = scores * value
    waiting = set(np.flatnonzero(scores > 0).tolist())
    # For progress only: about so many attributes fit in a clique.
    varying = [size for size in sizes if size > 1]
    together = math.log(plan.tau) / max(float(np.mean(np.log(varying))), 0.1)

    def order() -> list[int]:
        return sorted((i for i in waiting if scores[i] > 0), key=lambda i: (-scores[i], i))

    def enter(marginals: Sequence[int], most: int) -> Pair:
        """Add up to ``most`` marginals; returns how many were added and how many did not fit."""
        added = refused = 0
        for i in marginals:
            if added == most:
                break
            # A marginal that does not fit now will not fit later.
            waiting.remove(i)
            if budget.try_clique(larger[i].attributes):
                added += 1
            else:
                refused += 1
        return added, refused

    added, refused = enter(_spanning_forest(larger, order()), len(sizes))
    while True:
        progress.advance(*towards(len(budget.edges), max(len(varying) * (together - 1), 1.0)))
        edges = set(budget.edges)
        waiting = {
            i
            for i in waiting
            if not edges.issuperset(itertools.combinations(larger[i].attributes, 2))
        }
        if refused > added:
            # The graph is nearly full, so marginals that no longer fit are removed.
            waiting = _fitting(budget, larger, sorted(waiting))
        ending = len(waiting) < batch
        if ending:
            enter(order(), batch)
        tree = budget.tree()
        rough = functools.partial(
            fit,
            plan.schema.sizes,
            used_in(tree, local, larger),
            independent.total,
            tree=tree,
            warm=fitted,
            zeros=zeros,
            classes=classes,
        )
        if ending:
            return tree, rough(options=FitOptions(steps=1, tolerance=LAST_TOLERANCE))
        fitted = rough(
            options=FitOptions(min_improvement=ROUGH_IMPROVEMENT, tolerance=ROUGH_TOLERANCE)
        )
        # A better model mostly has smaller misfits, so only marginals with high scores are scored
        # again.
        _compare_again(larger, fitted, value, scores, waiting, COMPARED * batch)
        added, refused = enter(order(), batch)
        if added < batch:
            # No marginal with a positive score is left.
            return budget.tree(), fitted


def _begun(
    plan: Plan, sizes: Sequence[int], zeros: Sequence[Factor], forest: Sequence[Measurement]
) -> CliqueBudget:
    """A graph of the structural zeros, and of the workload and a forest of pairs as far as they fit."""
    budget = budget_holding(sizes, plan.tau, zeros)
    for attributes in (*plan.workload.in_order(), *(m.attributes for m in forest)):
        budget.try_clique(attributes)
    return budget


def _fitting(
    budget: CliqueBudget, larger: Sequence[Measurement], waiting: Sequence[int]
) -> set[int]:
    """The marginals for which a graph has room."""
    room = for_each(len(waiting), lambda i: budget.has_room(larger[waiting[i]].attributes))
    return set(itertools.compress(waiting, room))


def _values(plan: Plan, larger: Sequence[Measurement]) -> Floats:
    """Weight of each marginal's misfit [shape=(marginals,), float64]."""
    return np.array(
        [
            math.prod(m.counts.shape) ** -CELL_PRICE * plan.workload.relevance(m.attributes)
            for m in larger
        ]
    )


def _compare_again(
    larger: Sequence[Measurement],
    fitted: MarkovRandomField,
    value: Floats,
    scores: Floats,
    waiting: set[int],
    first: int,
) -> None:
    """Update the scores by another model: of all pairs, and of other marginals among the ``first``
    highest.
    """
    pairs = [i for i in waiting if len(larger[i].attributes) == 2]
    some = [larger[i] for i in pairs]
    scores[pairs] = misfits(some, _expected(some, fitted)) * value[pairs]
    stale = waiting.difference(pairs)
    while worst := sorted(
        stale.intersection(sorted(waiting, key=lambda i: (-scores[i], i))[:first])
    ):
        some = [larger[i] for i in worst]
        scores[worst] = misfits(some, _expected(some, fitted)) * value[worst]
        stale.difference_update(worst)


def _spanning_forest(larger: Sequence[Measurement], order: Sequence[int]) -> list[int]:
    """Marginals, in this order, that connect attributes which no earlier one has connected
    (Kruskal, 1956).
    """
    out, part = [], {a: a for i in order for a in larger[i].attributes}
    for i in order:
        joined = {part[a] for a in larger[i].attributes}
        if len(joined) > 1:
            out.append(i)
            part = {a: min(joined) if label in joined else label for a, label in part.items()}
    return out


def _forest(local: Sequence[Measurement], larger: Sequence[Measurement]) -> list[Measurement]:
    """The first of the read local pairs that form no cycle, in the order in which they were chosen."""
    able = set(larger)
    read = [m for m in local if m.trend and m in able]
    return [read[i] for i in _spanning_forest(read, range(len(read)))]


def _of_trends(larger: Sequence[Measurement]) -> list[Measurement]:
    """The spanning forest of the trends that tell most (Chow and Liu, 1968); none if few columns have
    trends, which then are estimated alone.
    """
    trends = [m for m in larger if m.trend]
    if len({a for m in trends for a in m.attributes}) < LEAST_VARIABLES:
        return []
    told = np.array([_told(m) for m in trends])
    order = sorted(np.flatnonzero(told > 0).tolist(), key=lambda i: (-told[i], i))
    return [trends[i] for i in _spanning_forest(trends, order)]


def _told(m: Measurement) -> float:
    """What the columns of a table tell of each other, in nats times records."""
    apart = np.outer(*m.sums) / m.counts.sum()
    some = m.counts > 0
    return float((m.counts[some] * np.log(m.counts[some] / apart[some])).sum())


def _expected(measurements: Sequence[Measurement], fitted: MarkovRandomField) -> list[Floats]:
    """A model's counts of measured marginals [each shaped as its counts]."""
    pairs = [i for i, m in enumerate(measurements) if len(m.attributes) == 2]
    tables = fitted.marginals(
        [measurements[i].attributes for i in pairs], [measurements[i].bins for i in pairs]
    )
    out = dict(zip(pairs, tables, strict=True))
    others = sorted(set(range(len(measurements))).difference(pairs))
    larger = for_each(len(others), lambda i: _expected_larger(measurements[others[i]], fitted))
    out.update(zip(others, larger, strict=True))
    return [padded(out[i], m.counts.shape) for i, m in enumerate(measurements)]


def _expected_larger(m: Measurement, fitted: MarkovRandomField) -> Floats:
    """A model's counts of a marginal of any attributes."""
    try:
        (table,) = fitted.marginals([m.attributes], [m.bins], max(MAX_CELLS, fitted.tree.largest))
    except ModelError:
        # Elimination between attributes that are far apart can need a large table.
        singles = fitted.marginals([(a,) for a in m.attributes], [(bins,) for bins in m.bins])
        shares = [single / fitted.total for single in singles]
        return functools.reduce(np.multiply.outer, shares) * fitted.total
    return table
