"""GraphCom: which measured marginals, local and cross-party, the global model's cliques are spent on (VertiMRF, phase 3)."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..model.fit import FitOptions, fit
from ..model.junction_tree import JunctionTree
from ..model.markov_random_field import Factor, MarkovRandomField
from ..model.measurement import BinMap, Measurement, best_measured
from ..model.structural_zeros import budget_holding, ruling_out
from ..model.value_classes import sizes_in_classes, told_apart
from ..plan.merging import kept_apart
from ..plan.plan import Plan
from ..progress import Progress, Silent, towards
from .shared_columns import local_tree

__all__ = ["GlobalGraph", "combine_graphs"]

# A marginal's misfit counts for less by a power of its cells: wide ones fill the cliques that others then lack. Growing three
# graphs, at 0, 0.2 and 0.4, and keeping the best fitted was no better (Adult, BR2000 at epsilon 0.8, five seeds: 0.0441 and
# 0.0275 against 0.0442 and 0.0271 with this one alone).
CELL_PRICE = 0.2
# With more marginals than so many, the graph is grown from pairs alone. Where they are fewer, pairs alone lose (BR2000: 0.0280
# against 0.0271).
MANY_MARGINALS = 600
# Between two fits one in so many of the pairs enters. On Adult steps of 9 to 36 marginals are the same but for noise (epsilon
# 0.8, four or five seeds: 0.0439 to 0.0450).
STEPS = 8
# How many of the worst fitted marginals of three and more attributes are compared anew for each that is added, since some will
# find no room.
COMPARED = 3
# Such marginals that take a table of more cells are compared with independent attributes instead.
MAX_CELLS = 1 << 22
# The fits in between end where a step gains less than this, and each step where its gradient is this small (see fit). At 0.1
# and 0.1 they take longer and find no better graphs (Adult, BR2000: 0.0442 and 0.0272 against 0.0443 and 0.0273).
ROUGH_IMPROVEMENT = 0.5
ROUGH_TOLERANCE = 0.3
# The last of them, of a graph that is all but full, is a start for the final fit alone: one step to this tolerance. So the two
# took 27 s on PISA, against 30 with one as good as the others and 40 with none, and the final model is as accurate (three-way
# distance 0.0650, 0.0648, 0.0658).
LAST_TOLERANCE = 0.8


@dataclass(frozen=True, eq=False)
class GlobalGraph:
    """What the global model's cliques are spent on.

    Attributes:
        kept: the cross-party measurements that found room, in the order given.
        tree: the junction tree.
        start: the last, rough model of the graph's growth, to start the fit from; None where nothing was grown.
        classes: by attribute, the map value -> class of values that the model has as one; the tree is of these.
        warnings: sentences about cliques beyond the plan's tau.
    """

    kept: tuple[Measurement, ...]
    tree: JunctionTree
    start: MarkovRandomField | None
    classes: Mapping[int, BinMap]
    warnings: tuple[str, ...]


def combine_graphs(
    plan: Plan,
    local: Sequence[Measurement],
    crossing: Sequence[Measurement],
    total: float,
    progress: Progress | None = None,
) -> GlobalGraph:
    """The global graph: the worst-fitted marginals enter while the largest clique stays within tau.

    The paper keeps the local graphs whole and adds cross-party edges by their R-scores. Here local and cross-party
    marginals compete for the cliques, and a marginal's score is its misfit to a model of those that are in already: at first
    independent attributes, which makes it the R-score, later what the graph does not explain yet. All of it follows from
    messages, at no cost in privacy. The schema's impossible combinations are in from the start.

    Args:
        plan: the agreed plan.
        local: the parties' own marginals.
        crossing: measurements that span parties.
        total: record count.
        progress: told of how far the graph has grown.

    Returns:
        The graph, and where the fit may start.
    """
    zeros = ruling_out(plan.schema.sizes, plan.schema.combinations)
    classes = told_apart((*local, *crossing), kept_apart(plan.schema))
    sizes = sizes_in_classes(plan.schema.sizes, classes)
    if not crossing:
        return GlobalGraph((), local_tree(plan, local, zeros, classes), None, classes, ())
    one_way = [m for m in local if len(m.attributes) == 1]
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
    if budget.try_clique({a for m in larger for a in m.attributes}):
        tree, start = budget.tree(), None
    else:
        independent = fit(plan.schema.sizes, one_way, total, zeros=zeros, classes=classes)
        pairs = [m for m in larger if len(m.attributes) == 2]
        if len(larger) > MANY_MARGINALS:
            larger = pairs
        batch = max(len(pairs) // STEPS, 1)
        tree, start = _grown(plan, one_way, larger, zeros, independent, batch, progress or Silent())
    kept = tuple(m for m in crossing if tree.covering(m.attributes) >= 0)
    return GlobalGraph(kept, tree, start, classes, tuple(warnings))


def _grown(
    plan: Plan,
    one_way: Sequence[Measurement],
    larger: Sequence[Measurement],
    zeros: Sequence[Factor],
    independent: MarkovRandomField,
    batch: int,
    progress: Progress,
) -> tuple[JunctionTree, MarkovRandomField]:
    """A graph grown to tau, and the last model on the way.

    First a forest enters (Chow and Liu, 1968): what would close a circle is explained by the rest of it, perhaps. Then marginals
    do a few at a time, by what the model fitted to those before them leaves.
    """
    sizes, classes = independent.tree.sizes, independent.class_maps
    budget = budget_holding(sizes, plan.tau, zeros)
    value = _values(plan, larger)
    fitted = independent
    scores = _misfits(larger, independent) * value
    waiting = {i for i in range(len(larger)) if scores[i] > 0}
    # A clique of tau cells holds so many attributes, and every attribute is joined to about all others of one.
    varying = [size for size in sizes if size > 1]
    together = math.log(plan.tau) / max(float(np.mean(np.log(varying))), 0.1)

    def order() -> list[int]:
        return sorted((i for i in waiting if scores[i] > 0), key=lambda i: (-scores[i], i))

    def enter(marginals: Sequence[int], most: int) -> tuple[int, int]:
        """Give marginals room, one after the other: how many found some, at most so many, and how many none."""
        added = refused = 0
        for i in marginals:
            if added == most:
                break
            # What finds no room now will find none later.
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
            # The graph fills up: what has no room any more need not be compared.
            waiting = {i for i in waiting if budget.has_room(larger[i].attributes)}
        ending = len(waiting) < batch
        if ending:
            # They enter in the order in which they stand.
            enter(order(), batch)
        tree = budget.tree()
        used = [m for m in (*one_way, *larger) if tree.covering(m.attributes) >= 0]
        rough = functools.partial(
            fit,
            plan.schema.sizes,
            used,
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
        # A model that explains more leaves smaller misfits: only what would still come first is compared again.
        _compare_again(larger, fitted, value, scores, waiting, COMPARED * batch)
        added, refused = enter(order(), batch)
        if added < batch:
            # All that stood above the noise has been tried.
            return budget.tree(), fitted


def _values(plan: Plan, larger: Sequence[Measurement]) -> npt.NDArray[np.float64]:
    """What a unit of misfit of each marginal counts for."""
    return np.array(
        [
            math.prod(m.counts.shape) ** -CELL_PRICE * plan.workload.relevance(m.attributes)
            for m in larger
        ]
    )


def _compare_again(
    larger: Sequence[Measurement],
    fitted: MarkovRandomField,
    value: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    waiting: set[int],
    first: int,
) -> None:
    """Scores by another model, in place: of all pairs, and of the others among so many of the highest."""
    pairs = [i for i in waiting if len(larger[i].attributes) == 2]
    scores[pairs] = _misfits([larger[i] for i in pairs], fitted) * value[pairs]
    stale = waiting.difference(pairs)
    while worst := sorted(
        stale.intersection(sorted(waiting, key=lambda i: (-scores[i], i))[:first])
    ):
        scores[worst] = _misfits([larger[i] for i in worst], fitted) * value[worst]
        stale.difference_update(worst)


def _spanning_forest(larger: Sequence[Measurement], order: Sequence[int]) -> list[int]:
    """Of marginals, in this order, those that join attributes which none before them has joined (Kruskal, 1956)."""
    out, part = [], {a: a for i in order for a in larger[i].attributes}
    for i in order:
        joined = {part[a] for a in larger[i].attributes}
        if len(joined) > 1:
            out.append(i)
            part = {a: min(joined) if own in joined else own for a, own in part.items()}
    return out


def _misfits(
    measurements: Sequence[Measurement], fitted: MarkovRandomField
) -> npt.NDArray[np.float64]:
    """Records by which each measured marginal differs from the model's, less what noise adds."""
    out = np.empty(len(measurements))
    pairs = [i for i, m in enumerate(measurements) if len(m.attributes) == 2]
    for i, table in zip(pairs, _tables([measurements[i] for i in pairs], fitted), strict=True):
        out[i] = measurements[i].misfit(table)
    for i in set(range(len(measurements))).difference(pairs):
        m = measurements[i]
        try:
            (table,) = fitted.marginals(
                [m.attributes], [m.bins], max(MAX_CELLS, fitted.tree.largest)
            )
        except ModelError:
            # Attributes far apart in the graph, and wide ones between them.
            singles = fitted.marginals([(a,) for a in m.attributes], [(bins,) for bins in m.bins])
            table = (
                functools.reduce(np.multiply.outer, [own / fitted.total for own in singles])
                * fitted.total
            )
        out[i] = m.misfit(_widened(table, m.counts.shape))
    return out


def _tables(
    pairs: Sequence[Measurement], fitted: MarkovRandomField
) -> list[npt.NDArray[np.float64]]:
    """What a model says of measured pairs [each as its counts]."""
    tables = fitted.marginals([m.attributes for m in pairs], [m.bins for m in pairs])
    return [_widened(table, m.counts.shape) for m, table in zip(pairs, tables, strict=True)]


def _widened(table: npt.NDArray[np.float64], shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """With empty bins at the end, as a measurement has them."""
    return np.pad(table, [(0, n - m) for n, m in zip(shape, table.shape, strict=True)])
