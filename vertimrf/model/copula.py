"""Two Gaussian variables that are cut into bins, of which either may be missing (a Gaussian copula).

**Missing values are no large or small ones.** A correlation is that of the records with both values, and three more
correlations say the rest of the pair: of who lacks either column; of who lacks the second with the values
of the first, of the records that have the first; and the same the other way round. Each is estimated one
after the other, from the cells that it decides (`normal_tables`, for who lacks a column with one edge
between present and missing), and is 0 where it is less than SHOWN standard errors from 0, unless other
pairs tell it too (:mod:`.jointly`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ..arrays import Floats
from .measurement import Measurement

# Correlations that are compared: equally spaced angles, up to a correlation of 0.99.
CORRELATIONS = np.sin(np.linspace(-1.0, 1.0, 241) * math.asin(0.99))
# Normal scores of the first and the last edge, and the least distance of others from 0, by which
# Owen's function divides.
FAR, TINY = 12.0, 1e-9
# Least error of a cell, in records.
LEAST_ERROR = 0.5
# A fit leaves a trend out whose correlation is less than this many standard errors from 0.
SHOWN = 2.0


@dataclass(frozen=True)
class Told:
    """What is known of a correlation: an estimate and its standard error.

    Attributes:
        value: the estimate.
        error: its standard error.
        sure: whether it counts however small it is beside its error.
    """

    value: float
    error: float
    sure: bool = False

    @property
    def shown(self) -> float:
        """The estimate, or 0 where noise may explain it."""
        return self.value if self.sure or abs(self.value) >= SHOWN * self.error else 0.0


@dataclass(frozen=True, eq=False)
class Pair:
    """The correlations of two columns, of which either may have missing values.

    Attributes:
        missing: of either column, whether its last bin is the missing value.
        total: number of records.
        both: the correlation of two columns of 0 and 1, which are 1 where a column is missing.
        lacking: of either column, the correlation of who lacks it with the other's values, if it is a
            Gaussian variable above an edge.
        present: the correlation of the records with both values.
    """

    missing: tuple[bool, bool]
    total: float
    both: Told = Told(0.0, 1.0)
    lacking: tuple[Told, Told] = (Told(0.0, 1.0), Told(0.0, 1.0))
    present: Told = Told(0.0, 1.0)

    def lack(self, masses: Sequence[Floats], column: int, correlations: Floats) -> Floats:
        """Records with each present bin of the other column that have the column, and that lack it
        [shape=(c, bins, 2), float64].

        Args:
            masses: of either column, the records of its bins, the missing value included.
            column: 0 or 1.
            correlations: of who lacks it with the other's values [shape=(c,), float64].
        """
        mine, others = masses[column], masses[1 - column]
        records = others[:-1] if self.missing[1 - column] else others
        if not self.missing[column]:
            return np.stack([records, np.zeros_like(records)], axis=1)[None]
        lacking = mine[-1] - (self.corner(masses) if self.missing[1 - column] else 0.0)
        alone = max(float(records.sum()), TINY)
        split = np.array([alone - lacking, lacking])
        return alone * normal_tables(edge_scores(records), edge_scores(split), correlations)

    def corner(self, masses: Sequence[Floats], step: float = 0.0) -> float:
        """Records that lack both columns, with the correlation changed by a step."""
        one, other = (float(mass[-1]) for mass in masses)
        lowest, highest = max(one + other - self.total, 0.0), min(one, other)
        alone, slope = self.alone(masses)
        return min(max(alone + (self.both.shown + step) * slope, lowest), highest)

    def alone(self, masses: Sequence[Floats]) -> tuple[float, float]:
        """Records that lack both of two independent columns, and how these grow with the correlation."""
        shares = [float(mass[-1]) / self.total for mass in masses]
        slope = self.total * math.sqrt(max(math.prod(p * (1 - p) for p in shares), TINY))
        return self.total * math.prod(shares), slope

    def with_both(self, masses: Sequence[Floats], correlations: Floats) -> Floats:
        """Records with both values [shape=(c, bins, other bins), float64]."""
        having = [
            self.lack(masses, 1 - column, np.array([self.lacking[1 - column].shown]))[0, :, 0]
            for column in (0, 1)
        ]
        one, other = map(edge_scores, having)
        return float(having[0].sum()) * normal_tables(one, other, correlations)

    def table(self, masses: Sequence[Floats], step: float = 0.0) -> Floats:
        """The records of all cells, with the correlations changed by a step
        [shape=(bins, other bins), float64].
        """
        out = np.zeros([len(mass) for mass in masses])
        rows, columns = (len(mass) - gone for mass, gone in zip(masses, self.missing, strict=True))
        out[:rows, :columns] = self.with_both(masses, np.array([self.present.value + step]))[0]
        first, second = (
            self.lack(masses, column, np.array([self.lacking[column].shown + step]))[0, :, 1]
            for column in (0, 1)
        )
        if self.missing[1]:
            out[:rows, -1] = second
        if self.missing[0]:
            out[-1, :columns] = first
        if all(self.missing):
            out[-1, -1] = self.corner(masses, step)
        return out


def carried(counts: Floats, errors: Floats, missing: Sequence[bool]) -> Floats:
    """Errors of a pair's cells, with what errors of missing values carry over to other cells.

    One-way counts are known by themselves, so records that one cell has too many are too few in others of
    its row and of its column.

    Args:
        counts: of the cells, missing values last [shape=(rows, columns), float64].
        errors: of the cells by themselves [shape=(rows, columns), float64].
        missing: of either column, whether its last bin is the missing value.

    Returns:
        [shape=(rows, columns), float64]
    """
    out, counts = errors.copy(), np.maximum(counts, TINY)
    last = [slice(n - gone) for n, gone in zip(counts.shape, missing, strict=True)]
    present, lacking = (last[0], last[1]), ((-1, last[1]), (last[0], -1))
    for axis in np.flatnonzero(missing):
        cells = lacking[axis]
        if all(missing):
            out[cells] = np.hypot(out[cells], out[-1, -1] * counts[cells] / counts[cells].sum())
        parts = counts[present] / counts[present].sum(axis=axis, keepdims=True)
        out[present] = np.hypot(out[present], np.expand_dims(out[cells], axis) * parts)
    return out


def seen(share: float) -> float:
    """The correlation of a Gaussian variable with a column that is 1 in a share of the records, where
    another is above an edge, over that of the two variables.
    """
    share = min(max(share, TINY), 1 - TINY)
    edge = float(special.ndtri(share))
    return math.exp(-0.5 * edge**2) / math.sqrt(2 * math.pi * share * (1 - share))


def told_by(pair: Pair, m: Measurement, masses: Sequence[Floats]) -> tuple[Pair, float]:
    """What cells tell of a pair, and the squared residuals that are left, in units of the errors.

    Args:
        pair: its columns.
        m: the measured cells, missing values last.
        masses: of either column, the records of its bins.
    """
    if not any(pair.missing):
        misfits = m.squares_of_each(pair.with_both(masses, CORRELATIONS))
        return replace(pair, present=Told(*posterior(misfits))), float(misfits.min())
    # The noise of a contrast of two cells lies in one direction of two.
    doubled = sum(m.counts.shape[axis] == 2 for axis in m.contrasts)
    errors = m.errors * 2 ** (doubled / 2)
    left = 0.0
    if all(pair.missing):
        alone, slope = pair.alone(masses)
        both = Told(float(m.counts[-1, -1] - alone) / slope, float(errors[-1, -1]) / slope)
        pair = replace(pair, both=both)
    rows, columns = (len(mass) - gone for mass, gone in zip(masses, pair.missing, strict=True))
    for column, cells in ((0, (-1, slice(columns))), (1, (slice(rows), -1))):
        if pair.missing[column]:
            gap = pair.lack(masses, column, CORRELATIONS)[:, :, 1] - m.counts[cells]
            misfits = np.square(gap / errors[cells]).sum(axis=1)
            told, left = Told(*posterior(misfits)), left + float(misfits.min())
            one, other = pair.lacking
            pair = replace(pair, lacking=(told, other) if column == 0 else (one, told))
    present = slice(rows), slice(columns)
    gaps = pair.with_both(masses, CORRELATIONS) - m.counts[present]
    misfits = np.square(gaps / errors[present]).sum(axis=(1, 2))
    pair = replace(pair, present=Told(*posterior(misfits)))
    return pair, left + float(misfits.min())


def posterior(misfits: Floats, correlations: Floats = CORRELATIONS) -> tuple[float, float]:
    """Mean and standard deviation of a correlation with a uniform prior; the latter is no less than the
    error of rounding to the grid.

    Args:
        misfits: squared residuals at each of the correlations, in units of sigma [shape=(n,),
            float64].
        correlations: a grid, in order [shape=(n,), float64].
    """
    widths = np.gradient(correlations)
    chances = np.exp(-0.5 * (misfits - misfits.min())) * widths
    chances /= chances.sum()
    correlation = float(chances @ correlations)
    error = math.sqrt(float(chances @ np.square(correlations - correlation)))
    rounding = float(widths[chances.argmax()]) / math.sqrt(12)
    return correlation, max(error, rounding)


def normal_tables(one: Floats, other: Floats, correlations: Floats) -> Floats:
    """Probabilities of two correlated Gaussian variables in the cells of a table, by Owen's
    function (1956).

    Args:
        one, other: normal scores of the edges of the rows and of the columns, increasing
            [shape=(rows + 1,), (columns + 1,), float64].
        correlations: between -1 and 1 [shape=(c,), float64].

    Returns:
        [shape=(c, rows, columns), float64]
    """
    r = correlations[:, None, None]
    x, y = one[:, None], other[None, :]
    root = np.sqrt(1 - r**2)
    below = 0.5 * (special.ndtr(x) + special.ndtr(y) - (x * y < 0))
    below = below - special.owens_t(x, (y / x - r) / root) - special.owens_t(y, (x / y - r) / root)
    out: Floats = np.maximum(np.diff(np.diff(below, axis=1), axis=2), 0.0)
    return out


def edge_scores(mass: Floats) -> Floats:
    """Normal scores of the edges of bins of so many records [shape=(bins + 1,), float64]."""
    below = np.cumsum(mass)[:-1] / max(float(mass.sum()), TINY)
    inner = np.clip(special.ndtri(np.clip(below, 0.0, 1.0)), -FAR, FAR)
    inner[np.abs(inner) < TINY] = TINY
    return np.concatenate([[-FAR], inner, [FAR]])
