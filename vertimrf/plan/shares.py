"""Divide the budget by a forecast of the result's error, from public figures alone.

More budget for pairs of attributes helps only where pairs are seen through their noise. The
forecast compares divisions of the budget by the expected distance of three-way marginals:

- An attribute of u values with noise sigma in each count is off by T1 = u sigma / (n sqrt(2 pi)), a
  total variation distance. Marginals of pairs at its party contain it too, and lower sigma.
- A pair of c cells is off by T2 alike. Its dependence is assumed to be ``DEPENDENCE``, D. An
  estimate that weighs noise against dependence leaves D T2 / sqrt(D^2 + T2^2), and a pair that is
  not measured leaves D.
- A halved attribute has two values in all but one-way marginals, and a pair of it one number, the
  trend (:mod:`vertimrf.model.trend`). Its distance is the standard error of the correlation.
- A three-way marginal has three attributes and three pairs:
  error^2 = 3 (mean of T1^2) + 3 (mean of what pairs leave, squared).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Flags, Floats, Ints
from ..releases.count_sketches.parameters import CountSketches
from ..releases.release import CrossPartyRelease
from .defaults import SHARES
from .local_plan import MOST_CHOICES, UNITS

# Shares of a party's budget: one-way marginals, also with contrasts, and R-scores if cliques are
# limited.
ONE_WAY_SHARE = 0.08
ONE_WAY_OF_CONTRASTS = 0.33
SCORE_SHARE = 0.08
# Where pairs are chosen one by one: shares of one-way marginals, and of the choices in what these leave;
# and the largest mean distance of columns by noise at which pairs are worth that: of nhefs (1,629 records of 61
# columns, 0.27) .78 is left of the strongest pairs at a party, and none without; columns' mean KS is .095, and .077.
ONE_WAY_OF_CHOSEN, CHOICE_SHARE, MOST_ONE_WAY = 0.33, 0.3, 0.29
# Share of the dependence that unmeasured pairs keep from the chosen ones. With 0.5 the forecast of Adult
# at epsilon 0.2 is below that of R-scores, whose pairs are twice as near.
BY_TREE = 0.3
# R-scores choose among pairs where their noise is at most this share of the records. Of Adult (15
# columns, one holder) they keep .90 of the strongest correlations of 10,000 records at an epsilon of 1
# (noise .04), as chosen pairs do, with two thirds of these' distance of three columns; of 3,000 records
# (noise .12) they keep .07, and chosen pairs .84.
BLIND = 0.06
# Share of fine marginals in the budget of a party that has some, before the rest is divided.
FINE_SHARE = 0.06
# Least share of one-way marginals in all of the budget if most columns are halved. Pairs of
# independent columns then cost at most a fifth of the precision of the columns.
ONE_WAY_OF_HALVES = 0.68
# Assumed total variation distance of a pair from independence.
DEPENDENCE = 0.25
# Divisions of the budget that are compared: share of the sketches in all, and of one-way marginals
# in a party's. Divisions whose forecasts are above the least by no more than this part are equal.
SKETCH_SHARES = (0.5, 0.3, 0.2, 0.1, 0.0)
ONE_WAY_SHARES = (0.15, 0.3, 0.6, 1.0)
EQUAL = 0.005
# Attributes are halved if a pair of two such is off by more than this by noise: the records of all
# cells would have to change.
NOISE_ALONE = 1.0
# Halved attributes have this part of the most values seen as bins across parties: noise is then below
# a usual dependence. With fewer than LEAST_BINS, halves tell more.
BINNED, LEAST_BINS = 0.333, 7
# The standard error of a correlation that halves tell is pi / 2 times the noise of their contrast
# over the records (at a correlation of 0); the distance of one cell is that over sqrt(2 pi).
TREND_ERROR = math.pi / 2 * math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Shares:
    """Shares of the budget.

    Attributes:
        count, local, sketches: shares of all: the record count, local models and sketches.
        one_way: share of one-way marginals in a party's local model. None is the usual one. At 1
            nothing else is measured there.
    """

    count: float
    local: float
    sketches: float
    one_way: float | None = None

    def without_sketches(self) -> Shares:
        """The share of sketches goes to the others."""
        kept = self.count + self.local
        return Shares(self.count / kept, self.local / kept, 0.0, self.one_way)


USUAL = Shares(*SHARES)


@dataclass(frozen=True)
class Outlook:
    """What is known of a run before its plan.

    Attributes:
        columns: domain sizes of the attributes of several values, by party.
        records: expected number of records.
        rho: the whole budget (zCDP).
        largest_clique: most cells of a local clique.
        message_bytes: budget for the sketches in a party's message; 0 if there are none.
        kind: the release that pairs across parties come from.
        halved: by party, whether each of its columns is halved; empty if none is.
        bins: number of bins that halved columns have across parties.
        chosen: whether parties choose their pairs one by one.
    """

    columns: tuple[Ints, ...]
    records: int
    rho: float
    largest_clique: int
    message_bytes: int
    kind: type[CrossPartyRelease] = CountSketches
    halved: tuple[tuple[bool, ...], ...] = ()
    bins: int = 2
    chosen: bool = False

    @cached_property
    def by_party(self) -> list[tuple[Floats, Flags]]:
        """Of each party, the sizes of its columns and whether they are halved."""
        halved = self.halved or tuple((False,) * len(sizes) for sizes in self.columns)
        return [
            (np.array(sizes, np.float64), np.array(flags, bool))
            for sizes, flags in zip(self.columns, halved, strict=True)
        ]

    @property
    def pairs_across(self) -> int:
        """Number of pairs of columns of different parties."""
        d = sum(map(len, self.columns))
        return math.comb(d, 2) - sum(math.comb(len(some), 2) for some in self.columns)

    @property
    def mostly_halved(self) -> bool:
        """Whether half of the columns or more are halved."""
        halved = np.concatenate([flags for _, flags in self.by_party])
        return bool(self.bins == 2 and halved.any() and 2 * halved.sum() >= halved.size)

    @cached_property
    def counters(self) -> list[Floats]:
        """Of each party, the counters of its columns across parties: one, a contrast, of a halved
        column.
        """
        of_halved = self.bins if self.bins > 2 else 1.0
        return [np.where(halved, of_halved, sizes) for sizes, halved in self.by_party]

    @cached_property
    def most_counters(self) -> float:
        """Counters of the party that has most."""
        return max(float(some.sum()) for some in self.counters)

    def _one_way_shares(self, local: float) -> tuple[float | None, ...]:
        """The shares of one-way marginals in a party's budget that are compared.

        Args:
            local: share of the parties' budget.
        """
        if self.chosen:
            return (None,)
        if not self.mostly_halved or self.kind.exchanges:
            return (None, *ONE_WAY_SHARES)
        least = ONE_WAY_OF_HALVES / local
        # The rest is for larger marginals beside R-scores, or for nothing.
        return (least, 1.0) if least < 1 - 2 * SCORE_SHARE else (1.0,) * (least <= 1)

    def best(self, usual: Shares = USUAL) -> Shares:
        """The shares with the least forecast of the error.

        Of equal ones the usual are best, then those with the least noise of one-way marginals: they
        cost nothing if pairs depend on each other, and less if no pair does.
        """
        # Where parties exchange files, the share follows from the costs of coalitions.
        sketches: Sequence[float] = (usual.sketches, 0.0) if self.kind.exchanges else SKETCH_SHARES
        if not self.message_bytes:
            usual, sketches = usual.without_sketches(), (0.0,)
        if not any(self.columns):
            return usual
        options = [
            Shares(usual.count, local, across, alone)
            for across, local in ((across, 1 - usual.count - across) for across in sketches)
            for alone in self._one_way_shares(local)
        ]
        if not self.mostly_halved or self.kind.exchanges:
            options.append(usual)
        errors = {shares: error(self, shares) for shares in options}
        most = (1 + EQUAL) * min(errors.values())
        if errors.get(usual, math.inf) <= most:
            return usual
        equal = (shares for shares in options if errors[shares] <= most)
        return min(equal, key=lambda shares: sum(distances(self, shares).one_way ** 2))


@dataclass(frozen=True, eq=False)
class Distances:
    """Total variation distances by noise alone; infinite where nothing is measured.

    Attributes:
        one_way: of attributes [shape=(attributes,), float64].
        within, across: of pairs at one party, and of different parties [shape=(pairs,), float64].
    """

    one_way: Floats
    within: Floats
    across: Floats


def distances(outlook: Outlook, shares: Shares) -> Distances:
    """Distances by the noise of a division of the budget.

    Args:
        outlook: what is known of the run.
        shares: the division of the budget.
    """
    d = sum(map(len, outlook.columns))
    local = shares.local * outlook.rho / d
    sketched = shares.sketches * outlook.rho
    one_way, within, across = [], [], [np.empty(0)]
    for i, party in enumerate(outlook.by_party):
        alone, pairs = _at_one_party(party, local * len(party[0]), shares, outlook)
        if party[1].any() and not outlook.kind.exchanges:
            # Sketches tell a party's pairs as well, and more of halved ones than its own marginals.
            both = _between(outlook, sketched, i, i)[np.triu_indices(len(party[0]), 1)]
            with np.errstate(divide="ignore"):
                pairs = 1 / np.sqrt(1 / np.square(pairs) + 1 / np.square(both))
        one_way.append(alone)
        within.append(pairs)
    for i, j in itertools.combinations(range(len(outlook.columns)), 2):
        across.append(_between(outlook, sketched, i, j).ravel())
    return Distances(np.concatenate(one_way), np.concatenate(within), np.concatenate(across))


def cell_error(outlook: Outlook, shares: Shares) -> float:
    """Standard error of a count in the table of a pair, in records, if all pairs are equal.

    It is that of pairs across parties or, if nothing is measured across parties, of the party with
    most columns.

    Args:
        outlook: what is known of the run.
        shares: the division of the budget.
    """
    if rho := shares.sketches * outlook.rho * bool(outlook.message_bytes):
        return outlook.kind.usual_error(outlook, rho)
    most = max(map(len, outlook.columns))
    rho = (1 - ONE_WAY_SHARE) * shares.local * outlook.rho * most / sum(map(len, outlook.columns))
    return math.sqrt(math.comb(most, 2) / (2 * rho))


def longest_seen(records: float, error: float) -> float:
    """Number of values of two columns at which the distance by noise of their pair is
    :data:`NOISE_ALONE`.

    Args:
        records: number of records.
        error: standard error of a cell, in records.
    """
    # Without any pair there is no noise.
    if not error:
        return math.inf
    return math.sqrt(NOISE_ALONE * math.sqrt(2 * math.pi) * records / error)


def levels(outlook: Outlook, usual: Shares) -> tuple[float, int]:
    """The most values of a column that pairs show through their noise, and the number of bins of
    longer ones: two halves, or more if several parties see them.

    Args:
        outlook: what is known of the run.
        usual: shares of the budget.
    """
    most = max(longest_seen(outlook.records, cell_error(outlook, usual)), 2.0)
    bins = min(BINNED * most, max(map(max, filter(None, outlook.columns)))) // 1
    return most, int(bins) if bins >= LEAST_BINS and outlook.message_bytes else 2


def in_halves(
    outlook: Outlook, usual: Shares = USUAL, able: Sequence[Sequence[bool]] = ()
) -> Outlook:
    """The outlook with the columns halved that are too long for it (:func:`levels`).

    A single holder has no halves: it measures its pairs' values, or chooses its pairs.

    Args:
        outlook: what is known of the run; its own halves do not count.
        usual: shares of the budget.
        able: by party, whether each column can be halved; empty if all can.
    """
    whole = replace(outlook, halved=(), bins=2)
    most, bins = levels(whole, usual if outlook.message_bytes else usual.without_sketches())
    able = able or [[True] * len(sizes) for sizes in outlook.columns]
    long = tuple(
        tuple(can and size > most for size, can in zip(*two, strict=True))
        for two in zip(outlook.columns, able, strict=True)
    )
    if sum(map(bool, outlook.columns)) < 2:
        return whole
    return replace(outlook, halved=long, bins=bins)


def error(outlook: Outlook, shares: Shares) -> float:
    """Forecast of the mean distance of three-way marginals, which may exceed 1.

    Args:
        outlook: what is known of the run.
        shares: the division of the budget.
    """
    noise = distances(outlook, shares)
    pairs = left(np.concatenate([noise.within, noise.across]), DEPENDENCE)
    squares = np.square(noise.one_way).mean() + np.square(pairs).sum() / max(pairs.size, 1)
    return math.sqrt(3 * squares)


def left(noise: Floats, dependence: float) -> Floats:
    """The distances that pairs leave, by the distances of their noise."""
    out: Floats = dependence / np.sqrt(1 + np.square(dependence / noise))
    return out


def _at_one_party(
    party: tuple[Floats, Flags], rho: float, shares: Shares, outlook: Outlook
) -> tuple[Floats, Floats]:
    """Distances of a party's attributes and of its pairs."""
    sizes = party[0]
    d = len(sizes)
    pairs = np.full(math.comb(d, 2), np.inf)
    if not d:
        return sizes, pairs
    if outlook.chosen and choices(d) and shares.one_way != 1:
        return _of_chosen(sizes, rho, shares, outlook)
    contrasts = len(outlook.columns) == 1 and sizes.max() == 2
    usual = ONE_WAY_OF_CONTRASTS if contrasts else ONE_WAY_SHARE
    one_way = 1.0 if d == 1 else usual if shares.one_way is None else shares.one_way
    precision = np.full(d, 2 * one_way * rho / d)
    if one_way < 1:
        limited = math.prod(map(int, sizes)) > outlook.largest_clique
        scores = SCORE_SHARE if limited else 0.0
        first, second = np.triu_indices(d, 1)
        # A contrast is one counter, and does not contain its attributes' counts.
        counters = np.ones(d) if contrasts else sizes
        cells = counters[first] * counters[second]
        weights = cells ** (2 / 3)
        variance = weights.sum() / weights / (2 * (1 - one_way - scores) * rho)
        pairs = cells * np.sqrt(variance) / (outlook.records * math.sqrt(2 * math.pi))
        if not contrasts:
            np.add.at(precision, first, 1 / (sizes[second] * variance))
            np.add.at(precision, second, 1 / (sizes[first] * variance))
        if scores:
            pairs = _seen(pairs, _score_noise(len(pairs), scores * rho), outlook.records)
    return sizes / np.sqrt(precision) / (outlook.records * math.sqrt(2 * math.pi)), pairs


def choices(columns: int) -> int:
    """Number of pairs that a party with so many columns chooses: a tree, and one more for each; 0 if
    there is nothing to choose.
    """
    return min(2 * columns - 1, math.comb(columns, 2)) if columns > 2 else 0


def choosing_is_better(outlook: Outlook, usual: Shares, fixed: bool = False) -> bool:
    """Whether choosing pairs one by one has the lower forecast of what pairs lose, where not all pairs
    can be measured and R-scores do not show which.

    The error of three columns counts little what an analyst sees first, the dependence of two: with
    few records it is lowest where nothing but columns is measured.

    Args:
        outlook: what is known of the run.
        usual: shares of the budget.
        fixed: whether the shares are given.
    """
    held = [some for some in outlook.columns if some]
    limited = [some for some in held if math.prod(some) > outlook.largest_clique]
    if not limited or max(map(choices, map(len, held))) > MOST_CHOICES * UNITS:
        return False
    if not any(map(choices, map(len, limited))):
        return False
    lost, nothing = [], False
    for chosen in (False, True):
        other = replace(outlook, chosen=chosen)
        shares = usual if fixed else other.best(usual)
        # Several parties' sketches tell their own pairs as well.
        nothing |= not chosen and shares.one_way == 1 and len(held) == 1
        noise = distances(other, shares)
        lost.append(float(np.square(left(noise.within, DEPENDENCE)).mean()))
    if not lost[1] < lost[0] or not float(noise.one_way.mean()) < MOST_ONE_WAY:
        return False
    whole = usual if fixed or len(held) > 1 else usual.without_sketches()
    each = SCORE_SHARE * whole.local * outlook.rho / sum(map(len, held))
    blind = all(
        _score_noise(math.comb(len(some), 2), each * len(some)) > BLIND * outlook.records
        for some in limited
    )
    # Without choices no pair at all might be measured, where columns are long.
    return blind or nothing


def _score_noise(pairs: int, rho: float) -> float:
    """Noise of the R-scores of so many pairs, in records."""
    return 2 * math.sqrt(pairs / (2 * rho))


def of_chosen(one_way: float | None) -> tuple[float, float, float]:
    """Shares of one-way marginals, choices and measurements where pairs are chosen one by one.

    Args:
        one_way: share of one-way marginals; None is the usual one.
    """
    alone = ONE_WAY_OF_CHOSEN if one_way is None else one_way
    return alone, CHOICE_SHARE * (1 - alone), (1 - CHOICE_SHARE) * (1 - alone)


def _of_chosen(
    sizes: Floats, rho: float, shares: Shares, outlook: Outlook
) -> tuple[Floats, Floats]:
    """Distances of the attributes and of the pairs of a party that chooses its pairs."""
    one_way, choice, measure = of_chosen(shares.one_way)
    d, pairs = len(sizes), math.comb(len(sizes), 2)
    scale = outlook.records * math.sqrt(2 * math.pi)
    alone = sizes * math.sqrt(d / (2 * one_way * rho)) / scale
    part = choices(d) / pairs
    contrast = math.sqrt(choices(d) / (measure * rho))
    measured = float(left(np.array(TREND_ERROR * contrast / scale), DEPENDENCE))
    # Of a pair that is not measured, the chosen ones between tell a part.
    implied = math.hypot(measured, (1 - BY_TREE) * DEPENDENCE)
    lost = math.sqrt(part * measured**2 + (1 - part) * min(implied, DEPENDENCE) ** 2)
    of_pairs = _noise_of(np.full(pairs, min(lost, 0.99999 * DEPENDENCE)))
    # The best of d candidates exceeds what chance gives them by this. A score is twice a distance.
    blind = math.sqrt(choices(d) / (2 * choice * rho)) * math.log(d) / 2
    return alone, _seen(of_pairs, blind, outlook.records)


def _seen(noise: Floats, error: float, records: int) -> Floats:
    """Distances by noise of pairs that are measured only if they are seen to depend, by scores of so
    large an error in records.
    """
    chance = 1 / (1 + (error / (DEPENDENCE * records)) ** 2)
    lost = chance * np.square(left(noise, DEPENDENCE)) + (1 - chance) * DEPENDENCE**2
    return _noise_of(np.sqrt(np.minimum(lost, 0.99999 * DEPENDENCE**2)))


def _noise_of(lost: Floats) -> Floats:
    """The distance by noise that leaves so much of the dependence: the inverse of :func:`left`."""
    out: Floats = lost / np.sqrt(1 - np.square(lost / DEPENDENCE))
    return out


def _between(outlook: Outlook, rho: float, i: int, j: int) -> Floats:
    """Distances of pairs of sketched columns of parties i and j
    [shape=(columns of one, of the other), float64].
    """
    one, other = outlook.by_party[i], outlook.by_party[j]
    if not rho:
        return np.full((len(one[0]), len(other[0])), np.inf)
    cells = np.outer(outlook.counters[i], outlook.counters[j])
    errors = cells * np.sqrt(outlook.kind.pair_variance(outlook, rho, i, j))
    if outlook.bins == 2:
        errors *= np.where(np.logical_or.outer(one[1], other[1]), TREND_ERROR, 1.0)
    return errors / (outlook.records * math.sqrt(2 * math.pi))
