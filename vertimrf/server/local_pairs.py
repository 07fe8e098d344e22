"""Read the pairs that parties chose: what was measured of each, as one table that a model is to have.

A party measures a pair in halves and, if it is a strong one, in more bins (:mod:`vertimrf.party.chosen_pairs`).

1. Of ordered columns, the records with both values are taken to have the correlation that all of the
   pair's tables tell together (:mod:`vertimrf.model.trend`). Records without one have the parts that
   these show beyond noise. Other columns are taken to be independent.
2. What the last table has beyond that is added where it is more than noise: of pairs with a
   correlation the cells that stand out, of others all cells, shrunk by the part that noise explains
   (James and Stein, 1961).
3. The table has the model's one-way counts, in many bins. Maps are read otherwise (:mod:`.maps`).

Fits leave out pairs that tell no more than noise; these are evidence against what others imply. A spanning forest of the tables is a model by itself
(:func:`chained`), which a fit starts from: else it would end before it has followed strong pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, Integers, Ints
from ..kernels.jit import for_each
from ..model.copula import LEAST_ERROR, SHOWN, carried, edge_scores, normal_tables, posterior
from ..model.domain_compression import compress
from ..model.junction_tree import JunctionTree
from ..model.markov_random_field import Factor, MarkovRandomField
from ..model.measurement import BinMap, Measurement, bin_of_value, contrasted
from ..model.raking import raked
from ..model.trend import BEYOND, STEP
from ..plan.binning import choose_bins
from ..plan.schema import Schema
from .maps import Margin, decided, of_map

# Correlations that are compared: equally spaced angles.
CORRELATIONS = np.sin(np.linspace(-1.0, 1.0, 241) * math.asin(0.999))
# Most bins of a column in the table of a pair; with fewer, bins lose the tails of long columns.
FINER = 32
# Least share of independent columns' records in a cell: where something was measured, and of any cell.
LEAST, TINY = 1e-4, 1e-9
# Rounds that fit a table to its margins.
RAKING = 30


@dataclass(frozen=True, eq=False)
class Side:
    """A column of pairs.

    Attributes:
        counts: the model's counts of values [shape=(size,), float64].
        finer: the map value -> bin of tables that are read [shape=(size,), int64].
        missing: whether the last value is a bin of its own, of records without a value.
        ordered: whether the other values have an order.
        error: standard error of a count of a value.
    """

    counts: Floats
    finer: Integers
    missing: bool
    ordered: bool
    error: float

    def bins(self, measured: BinMap | None) -> Integers:
        """A measurement's map value -> bin."""
        return bin_of_value(measured, len(self.counts))

    def margin(self, bins: Integers) -> Floats:
        """Counts of bins."""
        return np.bincount(bins, weights=self.counts).astype(np.float64)

    def of(self, bins: Integers) -> Margin:
        """The margin of some bins, with its errors."""
        values = np.bincount(bins).astype(np.float64)
        return Margin(self.margin(bins), values, self.error)


def read_pairs(
    schema: Schema, field: MarkovRandomField, local: Sequence[Measurement], total: float
) -> list[Measurement]:
    """Read what parties that choose their pairs have measured.

    Args:
        schema: the schema.
        field: a model of the one-way marginals.
        local: local measurements of these parties.
        total: number of records.

    Returns:
        One measurement for each pair, and those of other numbers of
        attributes as they are.
    """
    pairs: dict[Ints, list[Measurement]] = {}
    for m in local:
        if len(m.attributes) == 2:
            pairs.setdefault(m.attributes, []).append(m)
    errors = {m.attributes[0]: float(np.mean(m.sigma)) for m in local if len(m.attributes) == 1}
    maps: dict[int, list[BinMap | None]] = {}
    for pair, measured in pairs.items():
        for axis, a in enumerate(pair):
            maps.setdefault(a, []).extend(m.bins[axis] for m in measured)
    sides = {a: _side(schema, field, a, its, errors[a]) for a, its in maps.items()}
    groups = list(pairs.items())
    read = for_each(len(groups), lambda i: _read(*groups[i], sides, total))
    return [*(m for m in local if len(m.attributes) != 2), *read]


def _side(
    schema: Schema, field: MarkovRandomField, a: int, maps: Sequence[BinMap | None], error: float
) -> Side:
    """How a column is cut in what is read."""
    attribute, counts = schema.attributes[a], field.marginal((a,))
    missing = attribute.missing and all(b is None or (b == b[-1]).sum() == 1 for b in maps)
    values = counts[: len(counts) - missing]
    bins = choose_bins(values, min(FINER, len(values)), attribute.ordered)
    finer = np.append(bins, bins.max() + 1) if missing else bins
    return Side(counts, finer, missing, attribute.ordered or len(values) == 2, error)


def _read(
    pair: Ints, measured: Sequence[Measurement], sides: Mapping[int, Side], total: float
) -> Measurement:
    """The table of a pair, with the error of its cells."""
    two = (sides[pair[0]], sides[pair[1]])
    measured = _together(measured)
    cells = _Absent.of(measured, two, total)
    correlation = error = 0.0
    if two[0].ordered and two[1].ordered and max(len(side.counts) for side in two) > 2:
        correlation, error = _correlation(measured, cells, two)
    finer, m = [side.finer for side in two], measured[-1]
    bins = [side.bins(b) for side, b in zip(two, m.bins, strict=True)]
    table, base = (cells.tables(b, np.array([correlation]))[0] for b in (bins, finer))
    apart = np.outer(*(side.margin(b) for side, b in zip(two, bins, strict=True))) / total
    places = np.ix_(*(_bins_of_bins(f, b) for f, b in zip(finer, bins, strict=True)))
    held = decided(m, [side.of(b) for side, b in zip(two, bins, strict=True)])
    if held is not None:
        margins = [side.of(side.finer) for side in two]
        counts, errors = of_map(m, np.maximum(base, TINY * total), held[places], margins)
        return Measurement(pair, tuple(finer), counts, errors, m.source, trend=1)
    gap, signal = _beyond(m, table, two, found=abs(correlation) >= SHOWN * error > 0)
    sigma = (signal if error else 1.0) * math.sqrt(m.variance)
    if signal:
        ratio = np.maximum(table + signal * gap, LEAST * apart) / np.maximum(table, TINY * total)
        base = np.maximum(base, TINY * total) * ratio[places]
    if error:
        steps = np.clip(np.array([-STEP, STEP]) + correlation, STEP - 1, 1 - STEP)
        below, above = cells.tables(finer, steps)
        slope = math.sqrt(float(np.square(above - below).sum())) / max(steps[1] - steps[0], STEP)
        sigma = math.hypot(sigma, error * slope)
    positive = np.maximum(base, TINY * base.sum())
    counts = raked(positive, [side.margin(side.finer) for side in two], RAKING)
    errors = np.full(counts.shape, max(sigma, LEAST_ERROR))
    for axis, side in enumerate(two):
        if side.missing:
            few = m.counts.shape[1 - axis] / counts.shape[1 - axis]
            errors[(slice(None), -1) if axis else -1] = max(
                few * math.sqrt(m.variance), LEAST_ERROR
            )
    errors = carried(counts, errors, [side.missing for side in two])
    return Measurement(pair, tuple(finer), counts, errors, m.source, trend=1)


def _together(measured: Sequence[Measurement]) -> list[Measurement]:
    """Measurements of a pair, with those of the same bins as one: their mean, by precision."""
    out: list[Measurement] = []
    for m in measured:
        last = out[-1] if out else None
        if last is None or not _same_bins(last, m):
            out.append(m)
            continue
        part = m.variance / (m.variance + last.variance)
        counts = (1 - part) * m.counts + part * last.counts
        out[-1] = replace(m, counts=counts, sigma=math.sqrt(part * last.variance))
    return out


def _same_bins(one: Measurement, other: Measurement) -> bool:
    """Whether two measurements of a pair are in the same bins."""
    return one.contrasts == other.contrasts and all(
        (a is b) if a is None or b is None else np.array_equal(a, b)
        for a, b in zip(one.bins, other.bins, strict=True)
    )


def _beyond(
    m: Measurement, table: Floats, two: tuple[Side, Side], found: bool
) -> tuple[Floats, float]:
    """What a measurement has beyond a table of the same margins, and the part of it that neither its
    noise nor that of the margins explains; 0 if that is no more than chance.
    """
    gap = contrasted(m.contrasted(m.counts - table), (0, 1))
    dimensions = math.prod(count - 1 for count in gap.shape)
    noise = dimensions * m.variance
    for side in two:
        # If one column decides the other, an error of a count moves from cell to cell in its row.
        noise += side.error**2 * len(side.counts) / 4 * float(np.square(gap.shape).min() > 4)
    squares = float(np.square(gap).sum())
    spread = (BEYOND if found else SHOWN) * noise * math.sqrt(2 / dimensions)
    if squares <= noise + spread:
        return gap, 0.0
    if found:
        # A trend explains most cells, and noise in these would blur a strong one.
        error = math.sqrt(noise / dimensions)
        far: Floats = np.where(np.abs(gap) > BEYOND * error, gap, 0.0)
        return far, float(far.any())
    return gap, 1 - noise / squares


def _correlation(
    measured: Sequence[Measurement], cells: _Absent, two: tuple[Side, Side]
) -> tuple[float, float]:
    """Posterior mean and standard deviation of the correlation of records with both values."""
    misfits = np.zeros(len(CORRELATIONS))
    for m in measured:
        tables = cells.tables(
            [side.bins(b) for side, b in zip(two, m.bins, strict=True)], CORRELATIONS
        )
        # What is missing is as it was measured.
        inner = [n - side.missing for n, side in zip(m.counts.shape, two, strict=True)]
        free = np.broadcast_to(m.counts, tables.shape).copy()
        free[:, : inner[0], : inner[1]] = tables[:, : inner[0], : inner[1]]
        misfits += m.squares_of_each(free) / (1 + _of_margins(m, two))
    return posterior(misfits, CORRELATIONS)


def _of_margins(m: Measurement, two: tuple[Side, Side]) -> float:
    """Variance that errors of the margins add to a count, over that of its noise. Where most records
    have one value of a column, an error of the other's margin looks like dependence.
    """
    out = 0.0
    margins = [side.of(side.bins(b)) for side, b in zip(two, m.bins, strict=True)]
    for axis, (mine, other) in enumerate((margins, margins[::-1])):
        variance = float(np.square(mine.errors).mean())
        share = other.counts / other.counts.sum()
        if 1 - axis in m.contrasts:
            lean = float(share[0] - share[1]) ** 2
            out += variance * lean * len(m.contrasts) / (2 * m.variance)
        else:
            out += variance * float(np.square(share).mean()) / (m.variance * m.freedom)
    return out


@dataclass(frozen=True, eq=False)
class _Absent:
    """Which records of a pair lack a value.

    Attributes:
        both: values of the records with both [each shape=(size,), float64]; 0 where one is missing.
        lacking: values of each column where the other is missing [each shape=(size,), float64].
        sides: the columns.
    """

    both: tuple[Floats, Floats]
    lacking: tuple[Floats, Floats]
    sides: tuple[Side, Side]

    @classmethod
    def of(cls, measured: Sequence[Measurement], sides: tuple[Side, Side], total: float) -> _Absent:
        """From a pair's measurements, in which missing values are apart. The parts of values that lack
        the other column are equal, but for what each measurement shows beyond noise.
        """
        lacking = [np.zeros(len(side.counts)) for side in sides]
        for axis, (side, other) in enumerate((sides, sides[::-1])):
            if not other.missing:
                continue
            records = float(other.counts[-1])
            less = side.counts * (records / max(float(side.counts.sum()), TINY))
            for m in measured:
                bins = side.bins(m.bins[axis])
                margin = side.margin(bins)
                column: Floats = m.counts.take([-1], 1 - axis).ravel()
                if axis in m.contrasts:
                    column = column + (records - column.sum()) / column.size
                expected = np.bincount(bins, weights=less)
                gap = column - expected
                noise, squares = gap.size * m.variance, float(np.square(gap).sum())
                if squares > noise * (1 + SHOWN * math.sqrt(2 / gap.size)):
                    column = np.clip(expected + (1 - noise / squares) * gap, 0.0, margin)
                    column *= records / max(float(column.sum()), TINY)
                    less = side.counts * np.minimum(column / np.maximum(margin, TINY), 1.0)[bins]
            lacking[axis] = less
        both = []
        for side, less in zip(sides, lacking, strict=True):
            left: Floats = np.maximum(side.counts - less, TINY * total)
            left[left.size - side.missing :] = 0.0
            both.append(left)
        return cls((both[0], both[1]), (lacking[0], lacking[1]), sides)

    def tables(self, bins: Sequence[Integers], correlations: Floats) -> Floats:
        """Tables in some bins, by the correlation of the records with both values
        [shape=(correlations, rows, columns), float64].
        """
        shape = [int(b.max()) + 1 for b in bins]
        inner = [n - side.missing for n, side in zip(shape, self.sides, strict=True)]
        mass = [
            np.bincount(b, weights=have, minlength=n)[:k]
            for b, have, n, k in zip(bins, self.both, shape, inner, strict=True)
        ]
        records = min(float(each.sum()) for each in mass)
        if (correlations == 0).all():
            block = (np.outer(*mass) * (records / max(math.prod(m.sum() for m in mass), TINY)))[
                None
            ]
        else:
            scores = [edge_scores(each.astype(np.float64)) for each in mass]
            block = records * normal_tables(scores[0], scores[1], correlations)
        out = np.zeros((len(correlations), *shape))
        out[:, : inner[0], : inner[1]] = block
        for axis in (0, 1):
            if self.sides[1 - axis].missing:
                lacks = np.bincount(bins[axis], weights=self.lacking[axis], minlength=shape[axis])
                out[(slice(None), -1) if axis else (slice(None), slice(None), -1)] = lacks
        return out


def _bins_of_bins(finer: Integers, bins: Integers) -> Integers:
    """The bin of most values of each finer bin [shape=(finer bins,), int64]."""
    table = np.zeros((int(finer.max()) + 1, int(bins.max()) + 1))
    np.add.at(table, (finer, bins), 1)
    out: Integers = table.argmax(axis=1)
    return out


def chained(
    pairs: Sequence[Measurement],
    tree: JunctionTree,
    independent: MarkovRandomField,
) -> MarkovRandomField:
    """A model that has the tables of a forest of pairs, and else independent columns.

    Args:
        pairs: tables with the model's one-way counts, of which no edges form a cycle.
        tree: a junction tree whose cliques hold them.
        independent: a model of the one-way counts, with the tree's classes.

    Returns:
        The model.
    """
    factors = list(independent.factors)
    for m in pairs:
        m = compress(m, independent.class_maps)
        apart = np.outer(*m.sums) / m.counts.sum()
        logs = np.log(np.maximum(m.counts, TINY * apart) / np.maximum(apart, 1e-300))
        for axis, bins in enumerate(m.bins):
            logs = logs if bins is None else logs.take(bins, axis)
        factors.append(Factor(m.attributes, logs))
    return MarkovRandomField(tree, independent.total, factors, classes=independent.classes)
