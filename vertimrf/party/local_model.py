"""LocMRF: a party's noisy marginals of its own attributes (VertiMRF, phase 1)."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..message import LocalMarginal
from ..model.clique_budget import CliqueBudget
from ..model.junction_tree import JunctionTree
from ..plan.merging import merged_values
from ..plan.plan import SCORE_GRID, LocalPlan
from ..plan.workload import Workload
from ..privacy.noise import Noise
from ..progress import Progress

__all__ = ["release_local_model"]

# Exact counts of marginals, one after the other as they are asked for, of values merged by the maps of some attributes.
Marginals = Callable[
    [Sequence[tuple[int, ...]], Mapping[int, npt.NDArray[np.int64]]],
    Iterable[npt.NDArray[np.int64]],
]

# What a cell of a marginal of three attributes weighs beside a cell of a pair, where cliques are scarce.
TRIPLE_WEIGHT = 0.25
# A pair that no clique holds is measured where its R-score stands so many standard deviations above noise, and is so large a part
# of the distance that noise will add to it: measured, it costs the others precision. With a part of 1 Adult's distance at one
# party (epsilon 0.8) falls by 4 %, with 0.3 by 7 %; with 0 a loan book of 30 columns and long domains loses 7 % (two runs each).
SCORE_ERRORS, SCORE_PART = 4.0, 0.3
# What a number of a marginal of three attributes weighs beside that of a pair, where they are contrasts.
CONTRAST_WEIGHT = 0.15
# Where cliques are not scarce, marginals of every order are measured while they are so many or fewer.
ENOUGH_MARGINALS = 500


def release_local_model(
    marginals: Marginals,
    sizes: Sequence[int],
    plan: LocalPlan,
    noise: Noise,
    progress: Progress | None = None,
    workload: Workload | None = None,
    linked: Sequence[Sequence[int]] = (),
    long: Mapping[int, bool] | None = None,
) -> tuple[LocalMarginal, ...]:
    """Run LocMRF on one party's table: all that it publishes.

    PrivMRF measures a few marginals, each picked as the worst fitted so far. Measuring many at once costs each more noise, but
    they overlap, and the fit averages what they share; nothing is spent on picking, and nothing is fitted at the party. On
    the paper's data that is the more accurate by a tenth to a half.

    Args:
        marginals: counts the party's records in the cells of marginals, attributes numbered as in ``sizes``.
        sizes: domain size of each attribute.
        plan: noise scales and limits; every query made here is an event of the plan's ledger.
        noise: the noise source.
        progress: told of how many cells have been released.
        workload: marginals that matter most, attributes numbered within the party.
        linked: attributes that the schema's impossible combinations link: the model holds them in cliques, so they come first.
        long: attributes whose light values are merged for all but one-way marginals (:mod:`vertimrf.plan.merging`), with whether
            they are ordered.

    Returns:
        Measured marginals, attributes numbered within the party; one-way marginals first.
    """
    sizes = tuple(sizes)
    d = len(sizes)
    wanted = Workload() if workload is None else workload
    measured = [
        LocalMarginal((i,), noise.gaussian(counts, plan.one_way_sigma), plan.one_way_sigma)
        for i, counts in enumerate(marginals([(i,) for i in range(d)], {}))
    ]
    if not plan.units:
        return tuple(measured)
    # From here on only noisy figures steer.
    total = max(float(np.mean([m.counts.sum() for m in measured])), 1.0)
    maps = merged_values(
        {m.attributes[0]: m.counts for m in measured}, plan.one_way_sigma, long or {}
    )
    sizes = tuple(int(maps[a].max()) + 1 if a in maps else size for a, size in enumerate(sizes))
    budget = CliqueBudget(sizes, plan.largest_clique)
    for own in linked:
        budget.try_clique(own)
    scores: dict[tuple[int, int], float] = {}
    if plan.score_sigma:
        pairs = list(itertools.combinations(range(d), 2))
        scores = _noisy_r_scores(marginals(pairs, maps), pairs, plan, noise)
        for pair in sorted(pairs, key=lambda pair: -scores[pair] * wanted.relevance(pair)):
            budget.try_edge(*pair)
    else:
        budget.try_clique(range(d))
    chosen = choose_marginals(budget.tree(), total, plan, wanted, scores)
    cells = np.array(
        [math.prod(sizes[a] for a in attributes) for attributes, _ in chosen], np.int64
    )
    counted = marginals([attributes for attributes, _ in chosen], maps)
    for (attributes, units), exact, done in zip(
        chosen, counted, np.cumsum(cells).tolist(), strict=True
    ):
        sigma = plan.unit_sigma * math.sqrt(units)
        bins = tuple(maps.get(a) for a in attributes) if maps.keys() & set(attributes) else ()
        axes = plan.contrasted(exact.shape)
        counts = noise.gaussian(units * _contrasts(exact, axes), sigma)
        measured.append(LocalMarginal(attributes, counts, sigma, units, bins, axes))
        if progress is not None:
            progress.advance(done, int(cells.sum()))
    return tuple(measured)


def _contrasts(counts: npt.NDArray[np.int64], axes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Along axes of two values, the first one's records less the second one's; they keep a length of 1."""
    for axis in axes:
        counts = counts.take([0], axis) - counts.take([1], axis)
    return counts


def choose_marginals(
    tree: JunctionTree,
    total: float,
    plan: LocalPlan,
    workload: Workload | None = None,
    scores: Mapping[tuple[int, int], float] | None = None,
) -> list[tuple[tuple[int, ...], int]]:
    """Which larger marginals are measured, and with how many units of measurement each.

    All pairs within the tree's cliques, and of the three-way marginals, smallest first, as many as keep an average count above
    the noise; where cliques are not scarce, also larger ones. Pairs that no clique holds, last, where that is worth its cost: the
    server's rows are held to them (:mod:`vertimrf.model.beyond`). The sum of the marginals' L1 errors is least with units in
    proportion to cells^(2/3), of contrasts to the numbers that are released; a contrast is in the error of every larger marginal
    that does not tell it again, too.

    Args:
        tree: junction tree of the local attribute graph.
        total: about how many records there are.
        plan: units to spend and their noise.
        workload: marginals that matter most; the others' units are cut by their relevance.
        scores: noisy R-scores of pairs, in records; none where cliques hold all pairs.
    """
    sizes = tree.sizes
    wanted = Workload() if workload is None else workload
    largest = 3
    if plan.free:
        counted = np.cumsum([math.comb(len(sizes), k) for k in range(2, len(sizes) + 1)])
        largest = max(3, 1 + int((counted <= ENOUGH_MARGINALS).sum()))
    two = {a for a, size in enumerate(sizes) if size == 2 and plan.contrasts}

    def numbers(own: tuple[int, ...]) -> int:
        return math.prod(sizes[a] for a in own if a not in two)

    inside: dict[tuple[int, ...], float] = {}
    again: collections.Counter[tuple[int, ...]] = collections.Counter()
    for k in range(2, largest + 1):
        found = {own for clique in tree.cliques for own in itertools.combinations(clique, k)}
        weight = 1.0 if plan.free or k == 2 else TRIPLE_WEIGHT
        for own in sorted(found, key=lambda own: (math.prod(sizes[a] for a in own), own)):
            scarce = weight if two.isdisjoint(own) else CONTRAST_WEIGHT ** (k - 2)
            inside[own] = scarce * wanted.relevance(own) * numbers(own) ** (2 / 3)
            for less in itertools.chain.from_iterable(
                itertools.combinations(own, j) for j in range(2, k if two else 0)
            ):
                if not two.isdisjoint(set(own).difference(less)):
                    again[less] += 1
    for less, times in again.items():
        inside[less] *= 1 + times
    spent = sum(inside.values())
    above_noise = SCORE_ERRORS * plan.score_sigma / SCORE_GRID
    apart: dict[tuple[int, ...], float] = {}
    for pair, score in (scores or {}).items():
        cells_of_pair = math.prod(sizes[a] for a in pair)
        if tree.covering(pair) >= 0 or cells_of_pair > plan.largest_clique or score <= above_noise:
            continue
        weight = wanted.relevance(pair) * numbers(pair) ** (2 / 3)
        if score > SCORE_PART * _distance_by_noise(numbers(pair), plan, weight / (spent + weight)):
            apart[pair] = weight
    # A unit each at least.
    chosen = list(inside)[: plan.units]
    weights = np.array([inside[own] for own in chosen])
    cells = np.array([numbers(own) for own in chosen], np.float64)
    error = plan.unit_sigma * np.sqrt(np.cumsum(weights) / (plan.units * weights))
    useful = (total / cells >= error) | np.array([len(own) == 2 for own in chosen], bool)
    count = int(np.flatnonzero(useful)[-1]) + 1 if useful.any() else 0
    kept = {own: inside[own] for own in chosen[:count]} | dict(
        itertools.islice(apart.items(), plan.units - count)
    )
    share = np.array(list(kept.values())) / sum(kept.values())
    units = 1 + ((plan.units - len(kept)) * share).astype(int)
    return [(own, int(u)) for own, u in zip(kept, units, strict=True)]


def _distance_by_noise(numbers: int, plan: LocalPlan, share: float) -> float:
    """Half the expected L1 norm of the noise in a marginal that gets a share of the units, in records."""
    return numbers * plan.unit_sigma / math.sqrt(plan.units * share) / math.sqrt(2 * math.pi)


def _noisy_r_scores(
    counted: Iterable[npt.NDArray[np.int64]],
    pairs: list[tuple[int, int]],
    plan: LocalPlan,
    noise: Noise,
) -> dict[tuple[int, int], float]:
    """R-scores in records (VertiMRF, equation 2), each with the ledgered noise."""
    exact = np.empty(len(pairs))
    for i, table in enumerate(counted):
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
        exact[i] = 0.5 * np.abs(table - product).sum()
    noisy = (
        noise.gaussian(np.rint(exact * SCORE_GRID).astype(np.int64), plan.score_sigma) / SCORE_GRID
    )
    return {pair: float(score) for pair, score in zip(pairs, noisy, strict=True)}
