"""LocMRF: a party's noisy marginals of its own attributes (VertiMRF, phase 1; PrivMRF)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import graph, model
from .kernels.contingency import all_pairs, contingency
from .measurement import Measurement
from .plan import SCORE_GRID, LocalPlan
from .privacy.noise import Noise

__all__ = ["LocalRelease", "release_local_model"]

Codes = npt.NDArray[np.uint16]

# Larger marginals compared in every round, of each number of attributes.
CANDIDATES_PER_ORDER = 200


@dataclass(frozen=True, eq=False)
class LocalRelease:
    """What LocMRF publishes; everything else is computed from it.

    Attributes:
        marginals: measured marginals, attributes numbered within the party: (attributes, noisy counts int64, sigma).
        edges: the local attribute graph, within the party.
    """

    marginals: tuple[tuple[tuple[int, ...], npt.NDArray[np.int64], float], ...]
    edges: tuple[tuple[int, int], ...]


def release_local_model(codes: Codes, sizes: Sequence[int], plan: LocalPlan, noise: Noise) -> LocalRelease:
    """Run LocMRF on one party's table.

    Args:
        codes: the party's table [shape=(attributes, records), uint16].
        sizes: domain size of each attribute.
        plan: noise scales and limits; every query made here is an event of the plan's ledger.
        noise: the noise source.
    """
    sizes = tuple(sizes)
    d = len(sizes)

    def measure(attributes: tuple[int, ...], sigma: float) -> tuple[tuple[int, ...], npt.NDArray[np.int64], float]:
        return attributes, noise.gaussian(contingency(codes, sizes, attributes), sigma), sigma

    measured = [measure((i,), plan.one_way_sigma) for i in range(d)]
    if plan.whole:
        everything = tuple(range(d))
        measured.append(measure(everything, plan.round_sigma))
        return LocalRelease(tuple(measured), tuple(itertools.combinations(everything, 2)))
    if not plan.rounds:
        return LocalRelease(tuple(measured), ())
    # From here on only noisy figures steer; the estimate of the record count is one of them.
    total = max(float(np.mean([counts.sum() for _, counts, _ in measured])), 1.0)
    pairs = list(itertools.combinations(range(d), 2))
    scores = _noisy_r_scores(codes, sizes, pairs, plan, noise)
    budget = graph.CliqueBudget(sizes, plan.largest_clique)
    edges = tuple(pair for pair in sorted(pairs, key=lambda pair: -scores[pair]) if budget.try_edge(*pair))
    tree = budget.tree()
    candidates = _useful_candidates(tree, sizes, total, scores, plan)

    for attributes in _cover(candidates, sizes, scores, plan):
        measured.append(measure(attributes, plan.round_sigma))
        candidates.remove(attributes)
    tables = {attributes: contingency(codes, sizes, attributes) for attributes in candidates}
    fitted = None
    for _ in range(plan.rounds - plan.initial):
        if not candidates:
            break
        fitted = model.fit(sizes, [as_measurement(m) for m in measured], total, tree=tree, warm=fitted)
        chosen = candidates[_choose_worst(tables, candidates, fitted, plan, noise)]
        measured.append(measure(chosen, plan.round_sigma))
        candidates.remove(chosen)
    return LocalRelease(tuple(measured), edges)


def as_measurement(marginal: tuple[tuple[int, ...], npt.NDArray[np.int64], float]) -> Measurement:
    """A released marginal as a Measurement, attributes numbered as they are."""
    attributes, counts, sigma = marginal
    return Measurement(attributes, (None,) * len(attributes), counts.astype(np.float64), sigma, "local")


def _noisy_r_scores(
    codes: Codes, sizes: tuple[int, ...], pairs: list[tuple[int, int]], plan: LocalPlan, noise: Noise
) -> dict[tuple[int, int], float]:
    """R-scores in records (VertiMRF, equation 2), each with the ledgered noise, less what sampling adds under independence."""
    n = codes.shape[1]
    exact = np.empty(len(pairs))
    for i, table in enumerate(all_pairs(codes, sizes, pairs)):
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(n, 1)
        exact[i] = 0.5 * np.abs(table - product).sum()
    noisy = noise.gaussian(np.rint(exact * SCORE_GRID).astype(np.int64), plan.score_sigma) / SCORE_GRID
    return {pair: float(score) for pair, score in zip(pairs, noisy, strict=True)}


def _useful_candidates(
    tree: graph.JunctionTree,
    sizes: tuple[int, ...],
    total: float,
    scores: dict[tuple[int, int], float],
    plan: LocalPlan,
) -> list[tuple[int, ...]]:
    """Marginals of two or more attributes inside a clique whose average count exceeds theta times the expected noise.

    All pairs; of the others, so many of each order, those whose pairs have the largest (noisy) R-scores.
    """
    least = plan.usefulness * math.sqrt(2 / math.pi) * plan.round_sigma
    pairs = {pair for clique in tree.cliques for pair in itertools.combinations(clique, 2)}
    out: list[tuple[int, ...]] = sorted(pairs)
    for k in range(3, max(map(len, tree.cliques)) + 1):
        useful = {
            attributes
            for clique in tree.cliques
            for attributes in itertools.combinations(clique, k)
            if total / math.prod(sizes[i] for i in attributes) >= least
        }
        if not useful:
            break
        strength = {own: sum(scores[pair] for pair in itertools.combinations(own, 2)) for own in useful}
        out += sorted(sorted(useful, key=lambda own: (-strength[own], own))[:CANDIDATES_PER_ORDER])
    return out


def _cover(
    candidates: list[tuple[int, ...]], sizes: tuple[int, ...], scores: dict[tuple[int, int], float], plan: LocalPlan
) -> list[tuple[int, ...]]:
    """The first marginals: a spanning forest of the strongest pairs, so that no attribute is left out (noisy scores only)."""
    connected = list(range(len(sizes)))
    chosen: list[tuple[int, ...]] = []
    for pair in sorted((c for c in candidates if len(c) == 2), key=lambda pair: -scores[pair[0], pair[1]]):
        a, b = connected[pair[0]], connected[pair[1]]
        if a != b and len(chosen) < plan.initial:
            connected = [a if c == b else c for c in connected]
            chosen.append(pair)
    return chosen


def _choose_worst(
    tables: dict[tuple[int, ...], npt.NDArray[np.int64]],
    candidates: list[tuple[int, ...]],
    fitted: model.MarkovRandomField,
    plan: LocalPlan,
    noise: Noise,
) -> int:
    """Index of a candidate picked by the exponential mechanism on L1 error less expected noise; sensitivity 1."""
    quality = np.empty(len(candidates))
    for i, attributes in enumerate(candidates):
        table = tables[attributes]
        error = np.abs(table - fitted.marginal(attributes)).sum()
        quality[i] = error - math.sqrt(2 / math.pi) * plan.round_sigma * table.size
    return noise.select(quality, plan.selection_epsilon, 1.0)


