"""A model of people that only some parties hold: presence beside every attribute, as one more attribute.

Its values are the sets of parties that somebody is held by (:class:`~.population.Overlap`). It stands behind the others and is in
every clique, so that parties' attributes agree on who is there. A party's marginal is of the people that it holds, a cross-party
cell of those that both hold: of the others such a measurement says nothing. Values that no party holds are in the model, as the
rest of it would have them, and mean nothing: they are left out of rows, and summed away in marginals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..model.fit import fit
from ..model.junction_tree import JunctionTree
from ..model.markov_random_field import Factor, MarkovRandomField
from ..model.measurement import UNMEASURED, Measurement
from ..options import RunOptions
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..progress import fitting
from .global_graph import GlobalGraph, combine_graphs
from .population import Overlap

__all__ = ["as_of_one_population", "fit_presence", "graph_of", "held_by_all", "with_presence"]

Array = npt.NDArray[np.float64]

# How far a fit goes (see fit), per measured cell.
IMPROVEMENT, TOLERANCE = 0.02, 0.02


def as_of_one_population(schema: Schema, measurements: Sequence[Measurement], overlap: Overlap) -> list[Measurement]:
    """Measurements as they would be if all were of the people that all parties hold, who are like the others."""
    out = []
    for m in measurements:
        scale = overlap.inner / max(overlap.records(_parties(schema, m)), 1.0)
        out.append(replace(m, counts=m.counts * scale, sigma=m.sigma * scale))
    return out


def graph_of(
    plan: Plan, local: Sequence[Measurement], crossing: Sequence[Measurement], overlap: Overlap, options: RunOptions
) -> GlobalGraph:
    """GraphCom of the people that all parties hold, leaving room for presence in every clique."""
    narrower = replace(plan, tau=max(plan.tau // len(overlap.patterns), 2))
    own, across = (as_of_one_population(plan.schema, measured, overlap) for measured in (local, crossing))
    return combine_graphs(narrower, own, across, overlap.inner, options.progress)


def fit_presence(
    plan: Plan,
    local: Sequence[Measurement],
    crossing: Sequence[Measurement],
    initial: MarkovRandomField,
    overlap: Overlap,
    graph: GlobalGraph,
    options: RunOptions,
) -> MarkovRandomField:
    """OptMRF of everybody.

    Args:
        plan: the agreed plan.
        local, crossing: measurements of whom the parties hold.
        initial: the model of the local marginals, for where to start.
        overlap: who is where.
        graph: what :func:`graph_of` found.
        options: progress.

    Returns:
        A model of all attributes and, last, presence: code i is pattern i of ``overlap``.
    """
    schema, tree = plan.schema, graph.tree
    held = [m for m in (*local, *crossing) if tree.covering(m.attributes) >= 0]
    # All of them, though cells of those that found room are in the fit as well: so it is the more accurate, by 2 to 4 % of the
    # three-way distance (Adult, a tenth and seven tenths of the people at one party alone, presence dependent on an attribute).
    shares = _row_sums(schema, crossing)
    presence = len(schema.sizes)
    counted = Measurement((presence,), (None,), overlap.counts, np.maximum(overlap.errors, 1.0), "presence at parties")
    used = [counted, *(with_presence(schema, m, overlap) for m in held)]
    used += [with_presence(schema, m, overlap, parties) for m, parties in shares]
    # At first presence has nothing to do with any attribute.
    first = graph.start.factors if graph.start is not None else [
        Factor((a,), np.log(np.maximum(initial.marginal((a,)), 0.5))) for a in range(presence)
    ]  # fmt: skip
    apart = Factor((presence,), np.log(np.maximum(overlap.counts, 0.5)))
    start = MarkovRandomField(_beside(tree, len(overlap.patterns)), overlap.outer, [*first, apart])
    # What is not measured cannot get better, and is no part of how good a fit is.
    measured = sum(float((np.broadcast_to(m.sigma, m.counts.shape) < UNMEASURED * overlap.outer).sum()) for m in used)
    part = measured / sum(m.counts.size for m in used)
    return fit(
        start.sizes, used, overlap.outer, tree=start.tree, warm=start, min_improvement=IMPROVEMENT * part,
        tolerance=TOLERANCE * part**0.5, progress=fitting(options.progress),
    )  # fmt: skip


def held_by_all(field: MarkovRandomField, overlap: Overlap) -> MarkovRandomField:
    """The people that all parties hold: the model given that presence, exactly, and without it.

    Args:
        field: what :func:`fit_presence` gave.
        overlap: who is where.
    """
    presence = len(field.sizes) - 1
    code = len(overlap.patterns) - 1
    factors = []
    for f in field.factors:
        own = tuple(a for a in f.attributes if a != presence)
        logs = np.take(f.logs, code, axis=f.attributes.index(presence)) if presence in f.attributes else f.logs
        if own:
            factors.append(Factor(own, np.ascontiguousarray(logs)))
    cliques = tuple(tuple(a for a in clique if a != presence) for clique in field.tree.cliques)
    parents = tuple(
        parent if parent >= 0 and set(clique) & set(cliques[parent]) else -1
        for clique, parent in zip(cliques, field.tree.parents, strict=True)
    )
    tree = JunctionTree(field.sizes[:-1], cliques, parents)
    return MarkovRandomField(tree, overlap.inner, factors, field.loss)


def with_presence(
    schema: Schema, measurement: Measurement, overlap: Overlap, parties: Sequence[int] | None = None
) -> Measurement:
    """A measurement of the people that some parties hold as one of everybody: of the others it says nothing.

    Args:
        schema: attributes and parties.
        measurement: of schema attributes.
        overlap: who is where.
        parties: who holds the people; default those whose attributes are measured.
    """
    inside = overlap.holding(_parties(schema, measurement) if parties is None else parties)
    if len(inside) == len(overlap.patterns):
        return measurement
    outside = np.ones(len(overlap.patterns), np.int64)
    outside[inside] = 0
    counts = measurement.counts
    rest = np.full(counts.shape, max(overlap.outer - counts.sum(), 0.0) / counts.size)
    sigma = np.broadcast_to(measurement.sigma, counts.shape)
    return Measurement(
        (*measurement.attributes, len(schema.sizes)),
        (*measurement.bins, outside),
        np.stack([counts, rest], axis=-1),
        np.stack([sigma, np.full(counts.shape, UNMEASURED * overlap.outer)], axis=-1),
        measurement.source,
    )


def _parties(schema: Schema, measurement: Measurement) -> list[int]:
    return sorted({schema.party_of(a) for a in measurement.attributes})


def _beside(tree: JunctionTree, patterns: int) -> JunctionTree:
    """A junction tree with presence in every clique, which joins its components."""
    presence = len(tree.sizes)
    parents = tuple(0 if parent < 0 and c > 0 else parent for c, parent in enumerate(tree.parents))
    return JunctionTree((*tree.sizes, patterns), tuple((*clique, presence) for clique in tree.cliques), parents)


def _row_sums(schema: Schema, measurements: Sequence[Measurement]) -> list[tuple[Measurement, list[int]]]:
    """What cross-party measurements tell of each attribute alone: how many of a value's records the other party holds as well.

    With the two parties; several of one attribute are averaged.
    """
    found: dict[tuple[int, tuple[int, ...], bytes], tuple[Measurement, list[Array], list[Array]]] = {}
    for m in measurements:
        parties = tuple(_parties(schema, m))
        if len(parties) < 2:
            continue
        variance = np.broadcast_to(np.square(m.sigma), m.counts.shape)
        for axis, (a, bins) in enumerate(zip(m.attributes, m.bins, strict=True)):
            others = tuple(k for k in range(m.counts.ndim) if k != axis)
            counts, spread = m.counts.sum(axis=others), variance.sum(axis=others)
            cut = b"" if bins is None else bins.tobytes()
            names = f"{schema.names[a]}, at {' and '.join(schema.parties[p][0] for p in parties)}"
            sums = Measurement((a,), (bins,), counts, np.sqrt(spread), names)
            _, every, weights = found.setdefault((a, parties, cut), (sums, [], []))
            every.append(counts)
            weights.append(1 / spread)
    out = []
    for (_, parties, _), (sums, every, weights) in found.items():
        average = np.average(every, axis=0, weights=weights)
        out.append((replace(sums, counts=average, sigma=np.sqrt(1 / np.sum(weights, axis=0))), list(parties)))
    return out
