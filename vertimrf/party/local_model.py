"""LocMRF: choose and release noisy marginals of a party's attributes (VertiMRF, phase 1).

1. Release all one-way marginals. 2. If cliques are limited, release the R-scores of all pairs, and
build a graph of the highest within the limit. 3. Choose pairs and larger marginals within the
graph's cliques, and significant pairs outside. 4. Release them, with measurement weights that
minimise the sum of their errors. If R-scores show little dependence, one-way marginals are measured
again with most of the weights.

With little data, R-scores of all pairs are noise. The plan then has pairs chosen one by one in place of
steps 2 to 4 (:mod:`.chosen_pairs`).

PrivMRF instead picks the worst fitted marginal again and again. Measuring many marginals at once
has more noise in each, but they overlap and the fit averages them, and no budget is spent on
picking.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..arrays import Floats, Integers, Ints, Pair
from ..model.clique_budget import CliqueBudget
from ..model.domain_compression import compressed_sizes
from ..model.junction_tree import JunctionTree
from ..model.local_marginal import LocalMarginal
from ..plan.local_bins import Cutting
from ..plan.local_plan import SCORE_GRID, LocalPlan
from ..plan.merging import Merging, merged_values
from ..plan.shares import EQUAL
from ..plan.workload import Workload
from ..privacy.noise import KeyedNoise
from ..progress import SILENT, Progress
from .chosen_pairs import ChosenPairs
from .measured import Marginals, measured

# Weight of a cell of a three-way marginal relative to a cell of a pair, if cliques are limited.
TRIPLE_WEIGHT = 0.25
# A pair outside the cliques is measured if its R-score is this many standard deviations, and more
# than this part of the error that noise will add to it.
SCORE_ERRORS, SCORE_PART = 4.0, 0.3
# Least share of the budget of a party's larger marginals for those of the workload.
ASKED_SHARE = 0.25
# Weight of a counter of three-way contrasts relative to one of a pair.
CONTRAST_WEIGHT = 0.15
# Shares of the budget of larger marginals that may go to one-way marginals, and the number of standard
# errors by which the sum of squared R-scores must exceed their noise to show dependence.
AGAIN = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
SHOWN = 2.0
# If cliques are not limited, marginals of every order are measured up to this number.
ENOUGH_MARGINALS = 500


def release_local_model(
    marginals: Marginals,
    sizes: Sequence[int],
    plan: LocalPlan,
    noise: KeyedNoise,
    progress: Progress = SILENT,
    workload: Workload | None = None,
    linked: Sequence[Sequence[int]] = (),
    long: Mapping[int, Merging] | None = None,
    cuttings: Sequence[Cutting] = (),
) -> tuple[LocalMarginal, ...]:
    """Release a party's local marginals.

    Args:
        marginals: returns exact counts of marginals; attributes are indices of ``sizes``.
        sizes: domain size of each attribute.
        plan: noise scales and limits; every query here is an event of the plan's ledger.
        noise: the noise source.
        progress: where the number of released cells is reported.
        workload: marginals with more weight, by indices of ``sizes``.
        linked: sets of attributes that structural zeros name. They enter the graph first, because
            the model has them in cliques. The workload's marginals and their pairs are next.
        long: attributes with domain compression in all but one-way marginals, and how their values
            are merged (:mod:`vertimrf.plan.merging`).
        cuttings: how each attribute is cut, if pairs are chosen one by one.

    Returns:
        Noisy marginals, with attributes as indices of ``sizes``; one-way marginals first.
    """
    sizes = tuple(sizes)
    d = len(sizes)
    wanted = Workload() if workload is None else workload
    released = [
        LocalMarginal((i,), noise.gaussian(counts, plan.one_way_sigma), plan.one_way_sigma)
        for i, counts in enumerate(marginals([(i,) for i in range(d)], {}))
    ]
    if not plan.units:
        return tuple(released)
    # All choices from here on follow from noisy figures.
    total = max(float(np.mean([m.counts.sum() for m in released])), 1.0)
    if plan.choices:
        one_by_one = ChosenPairs(marginals, released, cuttings, plan, noise, total)
        one_by_one.measure(wanted)
        return (*released, *one_by_one.released)
    maps = merged_values(
        {m.attributes[0]: m.counts for m in released}, plan.one_way_sigma, long or {}
    )
    sizes = compressed_sizes(sizes, maps)
    budget = CliqueBudget(sizes, plan.largest_clique)
    for attributes in (*linked, *wanted.in_order()):
        budget.try_clique(attributes)
    scores: dict[Pair, float] = {}
    if plan.score_sigma:
        pairs = list(itertools.combinations(range(d), 2))
        scores = _noisy_r_scores(marginals(pairs, maps), pairs, plan, noise)
        for pair in sorted(pairs, key=lambda pair: -scores[pair] * wanted.relevance(pair)):
            budget.try_edges([pair])
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
        bins = [maps.get(a) for a in attributes]
        released.append(measured(attributes, exact, units, bins, plan, noise))
        progress.advance(done, int(cells.sum()))
    return tuple(released)


def choose_marginals(
    tree: JunctionTree,
    total: float,
    plan: LocalPlan,
    workload: Workload | None = None,
    scores: Mapping[Pair, float] | None = None,
) -> list[tuple[Ints, int]]:
    """Choose the marginals to measure after the first one-way marginals, and their weights.

    All pairs in cliques are chosen; then three-way marginals, smallest first, while the average
    count exceeds the noise (larger ones too, if cliques are not limited); then pairs outside the
    cliques whose R-score is worth the cost (:mod:`vertimrf.model.off_tree`). The sum of L1 errors
    is least with weights proportional to counters^(2/3). A contrast also enters the error of larger
    marginals that do not measure it again. One-way marginals come first, if they are measured again
    (:func:`_part_of_one_way`).

    Args:
        tree: junction tree of the local attribute graph.
        total: approximate number of records.
        plan: the sum of the weights, and their noise.
        workload: marginals with more weight.
        scores: noisy R-scores of pairs, in records; empty if cliques contain all pairs.

    Returns:
        Attributes and weight of every chosen marginal.
    """
    sizes = tree.sizes
    wanted = Workload() if workload is None else workload
    largest = 3
    if plan.free:
        counted = np.cumsum([math.comb(len(sizes), k) for k in range(2, len(sizes) + 1)])
        largest = max(3, 1 + int((counted <= ENOUGH_MARGINALS).sum()))
    two = {a for a, size in enumerate(sizes) if size == 2 and plan.contrasts}

    def counters(marginal: Ints) -> int:
        return math.prod(sizes[a] for a in marginal if a not in two)

    weight_of: dict[Ints, float] = {}
    repeats: collections.Counter[Ints] = collections.Counter()
    asked = {marginal for marginal in wanted.asked_for if tree.covering(marginal) >= 0}
    for k in range(2, max([largest, *map(len, asked)]) + 1):
        candidates = {marginal for marginal in asked if len(marginal) == k}
        if k <= largest:
            candidates.update(*(itertools.combinations(clique, k) for clique in tree.cliques))
        for marginal in sorted(
            candidates, key=lambda marginal: (math.prod(sizes[a] for a in marginal), marginal)
        ):
            usual = plan.free or k == 2 or marginal in asked
            weight = 1.0 if usual else TRIPLE_WEIGHT
            scarce = weight if two.isdisjoint(marginal) else CONTRAST_WEIGHT ** (k - 2)
            weight_of[marginal] = (
                scarce * wanted.relevance(marginal) * counters(marginal) ** (2 / 3)
            )
            for less in itertools.chain.from_iterable(
                itertools.combinations(marginal, j) for j in range(2, k if two else 0)
            ):
                if not two.isdisjoint(set(marginal).difference(less)):
                    repeats[less] += 1
    for less, times in repeats.items():
        weight_of[less] *= 1 + times
    outside = _outside(tree, plan, wanted, scores or {}, counters, sum(weight_of.values()))
    # Every marginal has a weight of at least 1.
    chosen = list(weight_of)[: plan.units]
    weights = np.array([weight_of[marginal] for marginal in chosen])
    cells = np.array([counters(marginal) for marginal in chosen], np.float64)
    error = plan.unit_sigma * np.sqrt(np.cumsum(weights) / (plan.units * weights))
    useful = (total / cells >= error) | np.array([len(marginal) == 2 for marginal in chosen], bool)
    count = int(np.flatnonzero(useful)[-1]) + 1 if useful.any() else 0
    more = {marginal: weight_of[marginal] for marginal in chosen[count:] if marginal in asked}
    kept = {marginal: weight_of[marginal] for marginal in chosen[:count]} | dict(
        itertools.islice((more | outside).items(), plan.units - count)
    )
    return _in_units(kept, sizes, total, plan, wanted, scores or {})


def _in_units(
    weights: Mapping[Ints, float],
    sizes: Sequence[int],
    total: float,
    plan: LocalPlan,
    wanted: Workload,
    scores: Mapping[Pair, float],
) -> list[tuple[Ints, int]]:
    """Marginals with their units, by their weights; one-way marginals first if they have a part."""
    marginals = list(weights)
    share = _with_part(marginals, np.array(list(weights.values())), wanted)
    # What a workload asks for keeps its budget.
    seen = {} if wanted.asked_for else scores
    part = _part_of_one_way(sizes, total, plan, dict(zip(marginals, share, strict=True)), seen)
    if part:
        marginals = [*((a,) for a in range(len(sizes))), *marginals]
        share = np.concatenate([part * _one_way_shares(sizes), (1 - part) * share])
    units = 1 + ((plan.units - len(marginals)) * share).astype(int)
    return list(zip(marginals, units.tolist(), strict=True))


def _one_way_shares(sizes: Sequence[int]) -> Floats:
    """Shares of one-way marginals among themselves [shape=(attributes,), float64]."""
    weights = np.array(sizes, np.float64) ** (2 / 3)
    shares: Floats = weights / weights.sum()
    return shares


def _part_of_one_way(
    sizes: Sequence[int],
    total: float,
    plan: LocalPlan,
    chosen: Mapping[Ints, float],
    scores: Mapping[Pair, float],
) -> float:
    """Share of the budget of larger marginals that one-way marginals get.

    It is the share with the least forecast of the error (:mod:`vertimrf.plan.shares`), where the
    dependence is what the R-scores show. It is 0 if the dependence exceeds the noise of the pairs.

    Args:
        sizes: numbers of measured values.
        total: approximate number of records.
        plan: the sum of the weights, and their noise.
        chosen: the larger marginals, and their shares of the budget.
        scores: noisy R-scores of all pairs, in records. Without them the part is 0.
    """
    pairs = {marginal: share for marginal, share in chosen.items() if len(marginal) == 2}
    if not (scores and pairs) or plan.units <= len(sizes) + len(chosen):
        return 0.0
    dependence = _dependence(np.array(list(scores.values())) / total, len(pairs), plan, total)
    u, alone, shares = np.array(sizes, np.float64), _one_way_shares(sizes), list(pairs.values())
    first, second = np.array(list(pairs)).T
    counters = np.ones(len(pairs)) if plan.contrasts else u[first] * u[second]
    # Variance of a count that has all of the budget; squared distance by a unit of variance.
    least, scale = plan.unit_sigma**2 / plan.units, 1 / (2 * math.pi * total**2)
    noise = scale * np.square(counters) * least / np.array(shares)
    if dependence > noise.mean():
        return 0.0

    def error(part: float) -> float:
        precision = plan.one_way_sigma**-2 + part * alone / least
        if not plan.contrasts:
            cells = (1 - part) * np.array(shares) / least
            np.add.at(precision, first, cells / u[second])
            np.add.at(precision, second, cells / u[first])
        left = dependence / (1 + (1 - part) * dependence / noise)
        return math.sqrt((scale * np.square(u) / precision).mean() + left.sum() / len(scores))

    errors = {part: error(part) for part in AGAIN}
    best = min(errors, key=errors.__getitem__)
    return best if errors[0.0] > (1 + EQUAL) * errors[best] else 0.0


def _dependence(scores: Floats, chosen: int, plan: LocalPlan, total: float) -> float:
    """Squared distance of a chosen pair from independence, by the noisy scores of all pairs.

    It is the larger of two estimates. The square of the mean score sees many weak dependences. The
    sum of squared scores beyond their noise sees few strong ones, which are in the chosen pairs.

    Args:
        scores: R-scores as shares of the records [shape=(pairs,), float64].
        chosen: number of chosen pairs.
        plan: the noise of the scores.
        total: approximate number of records.
    """
    noise = (plan.score_sigma / SCORE_GRID / total) ** 2
    beyond = np.square(scores).sum() - noise * (scores.size + SHOWN * math.sqrt(2 * scores.size))
    return max(max(float(scores.mean()), 0.0) ** 2, float(beyond) / chosen)


def _outside(
    tree: JunctionTree,
    plan: LocalPlan,
    wanted: Workload,
    scores: Mapping[Pair, float],
    counters: Callable[[Ints], int],
    spent: float,
) -> dict[Ints, float]:
    """Weights of measured pairs outside the cliques: those asked for, and those of high scores."""
    above_noise = SCORE_ERRORS * plan.score_sigma / SCORE_GRID
    outside: dict[Ints, float] = {}
    for pair, score in scores.items():
        cells = math.prod(tree.sizes[a] for a in pair)
        if tree.covering(pair) >= 0 or cells > plan.largest_clique:
            continue
        weight = wanted.relevance(pair) * counters(pair) ** (2 / 3)
        noise = _distance_by_noise(counters(pair), plan, weight / (spent + weight))
        if pair in wanted.pairs or score > max(above_noise, SCORE_PART * noise):
            outside[pair] = weight
    return outside


def _with_part(marginals: Sequence[Ints], weights: Floats, wanted: Workload) -> Floats:
    """Shares of the budget: by weight, and :data:`ASKED_SHARE` or more for what the workload needs."""
    share: Floats = weights / weights.sum()
    asked = np.array([wanted.needs(m) for m in marginals], bool)
    part = float(share[asked].sum())
    if 0 < part < ASKED_SHARE:
        share *= np.where(asked, ASKED_SHARE / part, (1 - ASKED_SHARE) / (1 - part))
    return share


def _distance_by_noise(counters: int, plan: LocalPlan, share: float) -> float:
    """Half the expected L1 norm of the noise in a marginal with a share of the weights."""
    return counters * plan.unit_sigma / math.sqrt(plan.units * share) / math.sqrt(2 * math.pi)


def _noisy_r_scores(
    counted: Iterable[Integers],
    pairs: list[Pair],
    plan: LocalPlan,
    noise: KeyedNoise,
) -> dict[Pair, float]:
    """R-scores in records (VertiMRF, equation 2), each with the ledgered noise."""
    exact = np.empty(len(pairs))
    for i, table in enumerate(counted):
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
        exact[i] = 0.5 * np.abs(table - product).sum()
    noisy = (
        noise.gaussian(np.rint(exact * SCORE_GRID).astype(np.int64), plan.score_sigma) / SCORE_GRID
    )
    return {pair: float(score) for pair, score in zip(pairs, noisy, strict=True)}
