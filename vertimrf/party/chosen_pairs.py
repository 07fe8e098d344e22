"""Choose the pairs of columns that a party measures, one after the other, and measure them.

With little data, scores of all pairs have so much noise that a choice among them is blind. Here each
choice is an event of its own, the exponential mechanism (McSherry and Talwar, 2007), whose noise does
not grow with the number of pairs.

1. Columns are cut by their one-way marginals: in two halves, or few groups where values have no order,
   with missing values apart.
2. The score of a pair is how far its exact table is from one that follows from released figures: the
   sum of absolute differences of its cells, where the cells of two halves count as one number, their
   difference. One record moves it by at most 1, because it is in one cell.
3. A spanning tree is chosen by the distance from independent columns, and its pairs are measured. The
   smallest part that is not connected yet chooses among the pairs that lead out of it (Boruvka, 1926).
   Without noise that is the tree of the highest scores, and there are fewer candidates than for the best
   of all pairs (as MST has it; McKenna, Miklau and Sheldon, 2021).
4. Each column chooses a further pair, by the distance from what the tree implies. These are measured.
5. The strongest pairs are measured again, in as many bins as their noise leaves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..arrays import Floats, Integers, Ints, Pair
from ..model.local_marginal import LocalMarginal
from ..model.measurement import bin_of_value
from ..model.raking import raked
from ..plan.local_bins import Cutting
from ..plan.local_plan import LocalPlan
from ..plan.workload import Workload
from ..privacy.noise import KeyedNoise
from .measured import Counts, Marginals, differences, measured

# Groups of a column without an order, for its choice, and most values of one that keeps them.
GROUPS = 7
# Share of the units that all chosen pairs are measured with, and of those for what a workload asks for.
COARSE, ASKED = 0.5, 0.25
# A pair is measured again if its distance from independence is this share of the records. The number of
# pairs is such that a table of LEAST_CELLS has on average one standard deviation of noise in a cell, and
# the number of its bins is the largest that does; at most MOST_PARTS along an axis.
STRONG, LEAST_CELLS, MOST_PARTS = 0.3, 9, 24
# It is also measured again if it is this part of what its margins allow, and so many standard deviations
# of its noise: one column may decide the other.
NEAR, CLEAR = 0.5, 4.0
# Values without an order get so many times as many bins as others.
LISTS = 4
# Least share of independent columns' records that a released table has in a cell, and rounds that fit
# it to its margins.
LEAST, RAKING = 1e-3, 20


class ChosenPairs:
    """The choice and the measurements of one party.

    Args:
        marginals: exact counts of marginals.
        one_way: the party's released one-way marginals, of all attributes in order.
        cuttings: by attribute, how it is cut.
        plan: noise scales.
        noise: the noise source.
        total: number of records, by released figures.

    Attributes:
        released: what was measured, in this order.
    """

    def __init__(
        self,
        marginals: Marginals,
        one_way: Sequence[LocalMarginal],
        cuttings: Sequence[Cutting],
        plan: LocalPlan,
        noise: KeyedNoise,
        total: float,
    ) -> None:
        self._marginals, self._plan, self._noise, self._total = marginals, plan, noise, total
        self._one_way, self._cuttings = [m.counts for m in one_way], cuttings
        self.released: list[LocalMarginal] = []
        self._tables: dict[Pair, Floats] = {}
        self._coarse = [
            2 if cut.ordered and len(counts) > GROUPS + cut.missing else min(GROUPS, len(counts))
            for cut, counts in zip(cuttings, self._one_way, strict=True)
        ]
        self._maps = [self._map(a, parts) for a, parts in enumerate(self._coarse)]
        self._margins, self._errors, self._halved = [], [], []
        for counts, bins, cut in zip(self._one_way, self._maps, cuttings, strict=True):
            bin_of = bin_of_value(bins, len(counts))
            binned, values = np.bincount(bin_of, weights=counts), np.bincount(bin_of)
            # All records are known better than bins of many values: least squares.
            binned += (total - binned.sum()) * values / len(counts)
            positive = np.maximum(binned, LEAST * total)
            self._margins.append(positive * (total / positive.sum()))
            variance = float((values * (1 - values / len(counts))).mean())
            self._errors.append(plan.one_way_sigma * math.sqrt(variance))
            halves = cut.ordered and not cut.kept and len(binned) == 2 + cut.missing
            self._halved.append(len(binned) == 2 or halves)

    def measure(self, wanted: Workload) -> None:
        """Choose pairs and measure them.

        Args:
            wanted: marginals that are measured without being chosen.
        """
        d, plan = len(self._margins), self._plan
        # A pair with more cells than a clique may have is no candidate.
        pairs = [
            (a, b)
            for a, b in itertools.combinations(range(d), 2)
            if len(self._margins[a]) * len(self._margins[b]) <= plan.largest_clique
        ]
        maps = {a: bins for a, bins in enumerate(self._maps) if bins is not None}
        exact = dict(zip(pairs, self._marginals(pairs, maps), strict=True))
        asked = [m for m in wanted.in_order() if len(m) > 1] if wanted.asked_for else []
        left = plan.units - self._asked(asked)
        units = max(int(COARSE * left) // plan.choices, 1)
        self._units_of_one = units
        tree = self._tree(exact, [m for m in asked if m in exact])
        # What a workload asks for may have been measured so.
        for pair in [each for each in tree if each not in self._tables]:
            self._release(pair, self._coarse_of(pair), exact[pair], units)
        more = self._further(exact)
        for pair in more:
            self._release(pair, self._coarse_of(pair), exact[pair], units)
        self._finer([*tree, *more], left - units * (len(tree) + len(more)))

    def _map(self, a: int, parts: int) -> Integers | None:
        return self._cuttings[a].bins(self._one_way[a], self._plan.one_way_sigma, parts)

    def _coarse_of(self, pair: Ints) -> Ints:
        return tuple(self._coarse[a] for a in pair)

    def _tree(self, exact: Mapping[Pair, Integers], first: Sequence[Pair]) -> list[Pair]:
        """The pairs of a spanning tree, with some pairs before others are chosen."""
        part, tree = list(range(len(self._margins))), []

        def join(pair: Pair) -> None:
            one, other = part[pair[0]], part[pair[1]]
            part[:] = [one if label == other else label for label in part]
            tree.append(pair)

        for pair in first:
            if part[pair[0]] != part[pair[1]]:
                join(pair)
        scores = self._scores(exact, {pair: self._apart(pair) for pair in exact})
        for _ in range(self._plan.choices):
            across = [(a, b) for a, b in exact if part[a] != part[b]]
            if not across:
                break
            labels = {part[a] for pair in across for a in pair}
            smallest = min(labels, key=lambda label: (part.count(label), label))
            leading = [pair for pair in across if smallest in (part[pair[0]], part[pair[1]])]
            join(self._choose(leading, scores))
        return tree

    def _further(self, exact: Mapping[Pair, Integers]) -> list[Pair]:
        """Pairs that the tree explains least: one of each column, while there are choices left."""
        d, out = len(self._margins), list[Pair]()
        rest = [pair for pair in exact if pair not in self._tables]
        scores = self._scores(exact, self._by_tree(rest))
        for a in range(min(self._plan.choices - (d - 1), d)):
            its = [pair for pair in rest if a in pair and pair not in out]
            if its:
                out.append(self._choose(its, scores))
        return out

    def _choose(self, pairs: Sequence[Pair], scores: Mapping[Pair, int]) -> Pair:
        candidates = np.array([scores[pair] for pair in pairs], np.int64)
        return pairs[self._noise.choose(candidates, self._plan.choice_scale)]

    def _scores(
        self, exact: Mapping[Pair, Integers], expected: Mapping[Pair, Floats]
    ) -> dict[Pair, int]:
        """How far exact tables are from what is expected, less what chance and the errors of released
        margins add, in records. Expected counts are rounded, so that one record moves a score by 1.
        """
        out = {}
        for pair, table in expected.items():
            numbers = self._numbers(pair, exact[pair] - np.rint(table).astype(np.int64))
            out[pair] = int(np.abs(numbers).sum()) - round(self._by_chance(pair))
        return out

    def _numbers(self, pair: Pair, table: Counts) -> Counts:
        """A table with the difference of two halves in place of both."""
        for axis, a in enumerate(pair):
            if self._halved[a]:
                low, high, *rest = np.moveaxis(table, axis, 0)
                table = np.moveaxis(np.stack([low - high, *rest]), 0, axis)
        return table

    def _by_chance(self, pair: Pair) -> float:
        """About how far tables of independent columns are from what released margins say, in records:
        by the scatter of the records, and by the errors of the margins.
        """
        out = 0.0
        for a, b in (pair, pair[::-1]):
            share = self._margins[b] / self._total
            lean = abs(share[0] - share[1]) + share[2:].sum() if self._halved[b] else 1.0
            of = math.sqrt(2.0) if self._halved[a] else 0.8 * len(self._margins[a])
            out = math.hypot(out, lean * of * self._errors[a])
        numbers = math.prod(len(self._margins[a]) - self._halved[a] for a in pair)
        return out + math.sqrt(2 / math.pi * numbers * self._total)

    def _apart(self, pair: Pair) -> Floats:
        """Counts of independent columns."""
        a, b = pair
        out: Floats = np.outer(self._margins[a], self._margins[b]) / self._total
        return out

    def _by_tree(self, pairs: Sequence[Pair]) -> dict[Pair, Floats]:
        """Counts of pairs if columns are independent given those between them in the tree."""
        beside: list[dict[int, Floats]] = [{} for _ in self._margins]
        for (a, b), table in self._tables.items():
            beside[a][b], beside[b][a] = table, table.T
        out: dict[Pair, Floats] = {}
        for a, some in itertools.groupby(pairs, key=lambda pair: pair[0]):
            reached, stack = {a: np.diag(self._margins[a])}, [a]
            while stack:
                at = stack.pop()
                for b, table in beside[at].items():
                    if b not in reached:
                        reached[b] = reached[at] @ (table / table.sum(axis=1, keepdims=True))
                        stack.append(b)
            out |= {
                pair: reached[pair[1]] if pair[1] in reached else self._apart(pair) for pair in some
            }
        return out

    def _release(self, attributes: Ints, parts: Ints, exact: Integers, units: int) -> None:
        """Release a marginal in some parts, with noise."""
        maps = [self._map(a, k) for a, k in zip(attributes, parts, strict=True)]
        m = measured(attributes, exact, units, maps, self._plan, self._noise, parts)
        self.released.append(m)
        if parts == self._coarse_of(attributes) and len(attributes) == 2:
            self._tables[attributes[0], attributes[1]] = self._completed(m)

    def _completed(self, m: LocalMarginal) -> Floats:
        """Counts of a released pair, with the margins of the released one-way marginals."""
        a, b = m.attributes
        apart = self._apart((a, b))
        gap = m.counts / m.units - differences(apart, m.contrasts)
        for axis in m.contrasts:
            gap = np.concatenate([gap, -gap], axis) / 2
        table = np.maximum(apart + gap, LEAST * apart)
        return raked(table, (self._margins[a], self._margins[b]), RAKING)

    def _finer(self, pairs: Sequence[Pair], units: int) -> None:
        """Measure the strongest of some pairs in more bins, with so many units in all."""
        noise = self._plan.unit_sigma / math.sqrt(self._units_of_one)
        strength = {}
        for pair in pairs:
            apart, table = self._apart(pair), self._tables[pair]
            far = float(np.abs(self._numbers(pair, table - apart)).sum())
            near = far > NEAR * _reach(apart, table) and far > CLEAR * noise
            if near or far > STRONG * self._total:
                strength[pair] = far
        strong = sorted(strength, key=lambda pair: -strength[pair])
        while strong and self._cells(units // len(strong)) < LEAST_CELLS:
            strong.pop()
        for pair in strong:
            each = units // len(strong)
            parts = self._most(pair, self._cells(each))
            # No finer bins: once more, in those that a number above the values gives.
            again = parts == self._coarse_of(pair)
            self._in_bins(pair, tuple(k + again for k in parts), each)

    def _asked(self, asked: Sequence[Ints]) -> int:
        """Measure what a workload asks for, and return the number of units spent."""
        each = int(ASKED * self._plan.units) // max(len(asked), 1)
        for attributes in asked:
            parts = self._most(attributes, self._cells(each))
            if math.prod(self._sizes(attributes)) <= self._plan.largest_clique:
                self._in_bins(attributes, parts, each)
        return sum(m.units for m in self.released)

    def _in_bins(self, attributes: Ints, parts: Ints, units: int) -> None:
        """Measure a marginal in some parts, unless it has been."""
        if units < 1 or any((m.attributes, m.parts) == (attributes, parts) for m in self.released):
            return
        maps = {a: self._map(a, k) for a, k in zip(attributes, parts, strict=True)}
        merged = {a: bins for a, bins in maps.items() if bins is not None}
        (exact,) = self._marginals([attributes], merged)
        if exact.size <= self._plan.largest_clique:
            self._release(attributes, parts, exact, units)

    def _cells(self, units: int) -> float:
        """Cells of a table that on average hold one standard deviation of noise."""
        return self._total * math.sqrt(units) / self._plan.unit_sigma

    def _sizes(self, attributes: Iterable[int]) -> list[int]:
        return [len(self._one_way[a]) for a in attributes]

    def _most(self, attributes: Iterable[int], cells: float) -> Ints:
        """The numbers of bins of a table of at most so many cells, as equal as values allow."""
        some = list(attributes)
        sizes = [min(size, MOST_PARTS) for size in self._sizes(some)]
        parts = [2] * len(some)
        weight = [1 if self._cuttings[a].ordered else LISTS for a in some]
        while True:
            order = sorted(range(len(some)), key=lambda i: parts[i] / weight[i])
            for i in order:
                if parts[i] < sizes[i] and math.prod(parts) * (parts[i] + 1) / parts[i] <= cells:
                    parts[i] += 1
                    break
            else:
                return tuple(parts)


def _reach(apart: Floats, table: Floats) -> float:
    """How far a table of these margins can be from independence: the sum of absolute differences."""
    rows, columns = (apart.sum(axis=axis) / apart.sum() for axis in (1, 0))
    if apart.shape == (2, 2):
        p, q = rows[0], columns[0]
        joint = min(p, q) if table[0, 0] > apart[0, 0] else max(p + q - 1, 0.0)
        return float(4 * apart.sum() * abs(joint - p * q))
    return float(2 * apart.sum() * (1 - max((rows**2).sum(), (columns**2).sum())))
