"""Tell maps among noisy pairs: one column decides the other, as a year decides its dummies.

Noise of a pair's cells puts records beside a map, and so would a model of them. If a pair's table is a
map but for noise, the model has the map. Example: of 3,850 records in seven years, the dummy of 1995 has
the value 1 in 550; with noise of 58 records in a cell, other years have 40, -30, ... of these. Such a
table might also come of exceptions that noise hides: up to :data:`MAP_PART` of the records that the
decided column has outside its largest bin. Exact relations are far more frequent among such pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Flags, Floats
from ..model.copula import LEAST_ERROR, SHOWN
from ..model.measurement import Measurement

# A pair is a map if the records outside of it are fewer than SHOWN errors of their number, and this error
# is at most these shares of all records, and of those outside the largest bin of the decided column.
MAP_ERROR, MAP_PART = 0.05, 0.4
# Error of a cell outside a map, over that of a measured cell; and what it has of its independent count.
MAP_SIGMA, OUTSIDE = 0.05, 1e-9


@dataclass(frozen=True, eq=False)
class Margin:
    """Counts of a column's bins.

    Attributes:
        counts: by bin [shape=(bins,), float64].
        values: number of values of each bin [shape=(bins,), float64].
        error: standard error of a value's count.
    """

    counts: Floats
    values: Floats
    error: float

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of the bins, where all records are known [shape=(bins,), float64]."""
        out: Floats = self.error * np.sqrt(self.values * (1 - self.values / self.values.sum()))
        return out


def decided(m: Measurement, margins: Sequence[Margin]) -> Flags | None:
    """The cells of a map, if one column of a pair decides the other but for noise.

    Records outside are few in all, and in no bin of the deciding column more than noise explains.

    Args:
        m: the pair's measurement.
        margins: of both columns, in its bins.

    Returns:
        Which cells the map has [shape=(bins, other bins), bool]; None if there is none.
    """
    counts, total = m.counts, float(margins[0].counts.sum())
    for axis in m.contrasts:
        half = np.expand_dims(margins[1 - axis].counts, axis) / 2
        counts = counts - counts.mean(axis=axis, keepdims=True) + half
    best: Flags | None = None
    for axis in (0, 1):
        mine, other = margins[axis], margins[1 - axis]
        held: Flags = counts == counts.max(axis=1 - axis, keepdims=True)
        each = float(np.mean(m.errors))
        error = each * math.sqrt(held.sum())
        outside = mine.counts - (counts * held).sum(axis=1 - axis)
        weight = 0.5 if 1 - axis in m.contrasts else 1.0
        variance = each**2 + np.square(weight * mine.errors)
        if axis in m.contrasts:
            variance += float(np.square(0.5 * other.errors).mean())
        squares = np.square(outside) / np.broadcast_to(variance, outside.shape)
        few = float(outside.sum()) < SHOWN * error
        even = squares.sum() < squares.size + SHOWN * math.sqrt(2 * squares.size)
        # Records outside the largest bin of the decided column, less their error.
        minor = outside_largest(counts, held, axis) - math.sqrt(float(variance.mean()))
        seen = error < min(MAP_ERROR * total, MAP_PART * minor)
        several = held.any(axis=axis).sum() > 1
        if few and even and seen and several and (best is None or held.sum() < best.sum()):
            best = held
    return best


def outside_largest(counts: Floats, held: Flags, axis: int) -> float:
    """Records of a map outside the largest bin of the column that is decided along an axis."""
    by_bin = (counts * held).sum(axis=axis)
    return float(by_bin.sum() - by_bin.max())


def of_map(
    m: Measurement, table: Floats, held: Flags, margins: Sequence[Margin]
) -> tuple[Floats, Floats]:
    """The counts of a map, in which the one-way counts of both columns are reconciled.

    Args:
        m: the pair's measurement.
        table: counts without the map [shape=(rows, columns), float64].
        held: which cells the map has [shape of ``table``, bool].
        margins: of both columns, in these bins.

    Returns:
        Counts and their standard errors [each shape of ``table``, float64].
    """
    table = np.where(held, table, OUTSIDE * table)
    rows, columns = (margin.counts for margin in margins)
    by_rows = table * (rows / table.sum(axis=1))[:, None]
    by_columns = table * (columns / table.sum(axis=0))[None, :]
    weights = [max(margin.error, LEAST_ERROR) ** -2 for margin in margins]
    mean = (weights[0] * by_rows + weights[1] * by_columns) / sum(weights)
    sigma = math.sqrt(m.variance)
    return mean, np.where(held, sigma, max(MAP_SIGMA * sigma, LEAST_ERROR))
