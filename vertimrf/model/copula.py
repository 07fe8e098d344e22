"""Two Gaussian variables that are cut into bins, of which either may be missing (a Gaussian copula).

**Missing values are no large or small ones.** A correlation is that of the records with both values, and three more
numbers say the rest of the pair: how many records lack both; a correlation of who lacks the second column
with the values of the first, of the records that have the first; and the same the other way round. Each
is estimated one after the other, from the cells that it decides (`normal_tables` with one edge between
present and missing), and is 0 where it is less than SHOWN standard errors from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ..arrays import Floats

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
    """What a pair's cells tell: an estimate and its standard error."""

    value: float
    error: float

    @property
    def shown(self) -> float:
        """The estimate, or 0 where noise may explain it."""
        return self.value if abs(self.value) >= SHOWN * self.error else 0.0


@dataclass(frozen=True, eq=False)
class Pair:
    """The numbers of a pair with missing values, of two columns or of one.

    Attributes:
        missing: of either column, whether its last bin is the missing value.
        total: number of records.
        both: records that lack both columns beyond what is expected of independent columns.
        lacking: of either column, the correlation of who lacks it with the other's values.
        present: the correlation of the records with both values.
    """

    missing: tuple[bool, bool]
    total: float
    both: Told = Told(0.0, LEAST_ERROR)
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

    def corner(self, masses: Sequence[Floats]) -> float:
        """Records that lack both columns."""
        one, other = (float(mass[-1]) for mass in masses)
        lowest, highest = max(one + other - self.total, 0.0), min(one, other)
        return min(max(one * other / self.total + self.both.shown, lowest), highest)

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
            out[-1, -1] = self.corner(masses)
        return out


def told_by(
    pair: Pair, counts: Floats, errors: Floats, masses: Sequence[Floats]
) -> tuple[Pair, float]:
    """What cells tell of a pair, and the squared residuals that are left, in units of the errors.

    Args:
        pair: its columns.
        counts: measured cells [shape=(bins, other bins), float64].
        errors: their standard errors [as ``counts``].
        masses: of either column, the records of its bins.
    """
    left = 0.0
    if all(pair.missing):
        alone = float(masses[0][-1] * masses[1][-1]) / pair.total
        pair = replace(pair, both=Told(float(counts[-1, -1]) - alone, float(errors[-1, -1])))
    rows, columns = (len(mass) - gone for mass, gone in zip(masses, pair.missing, strict=True))
    for column, cells in ((0, (-1, slice(columns))), (1, (slice(rows), -1))):
        if pair.missing[column]:
            apart = pair.lack(masses, column, CORRELATIONS)[:, :, 1] - counts[cells]
            misfits = np.square(apart / errors[cells]).sum(axis=1)
            told, left = Told(*posterior_of(misfits)), left + float(misfits.min())
            one, other = pair.lacking
            pair = replace(pair, lacking=(told, other) if column == 0 else (one, told))
    present = slice(rows), slice(columns)
    apart = pair.with_both(masses, CORRELATIONS) - counts[present]
    misfits = np.square(apart / errors[present]).sum(axis=(1, 2))
    pair = replace(pair, present=Told(*posterior_of(misfits)))
    return pair, left + float(misfits.min())


def posterior(misfits: Floats, correlations: Floats) -> tuple[float, float, float]:
    """Mean and standard deviation of a correlation with a uniform prior, and the error of the grid,
    which is that of rounding.

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
    return correlation, error, float(widths[chances.argmax()]) / math.sqrt(12)


def posterior_of(misfits: Floats) -> tuple[float, float]:
    """As :func:`posterior`, at CORRELATIONS; the error is no less than that of the grid."""
    correlation, error, rounding = posterior(misfits, CORRELATIONS)
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
