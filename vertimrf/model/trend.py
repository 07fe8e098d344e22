"""Read a coarse table of two attributes as a trend: one correlation, which a finer table then has.

If noise hides the cells of a pair, its attributes are measured in halves. What the halves tell is
whether large values go together. The table of finer bins with that dependence, and no other, is
taken to be that of two Gaussian variables with a correlation, which are cut where the one-way
marginals say (a Gaussian copula; Pearson, 1900, for the estimate from four cells).

The correlation has a uniform prior between -1 and 1. Its posterior mean and standard deviation
given the measured cells determine the table. Its cells' errors are equal, and such that the table
tells the correlation as precisely as the halves did.

**Missing values are no large or small ones.** Where they have a bin of their own, a correlation is
that of the records with both values, and three more numbers say the rest of the pair: how many
records lack both; a correlation of who lacks the second column with the values of the first, of the
records that have the first; and the same the other way round. Each is estimated as above, one after
the other, from the cells that it decides (`normal_tables` with one edge between present and
missing), and is 0 where it is less than SHOWN standard errors from 0. The finer table has a block
for each number, with the error of that number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from ..arrays import Floats, Integers
from ..kernels.jit import for_each
from .measurement import Measurement

# Correlations that are compared: equally spaced angles, up to a correlation of 0.99.
CORRELATIONS = np.sin(np.linspace(-1.0, 1.0, 241) * math.asin(0.99))
# A table's change with the correlation is a difference over twice this step.
STEP = 1e-3
# Normal scores of the first and the last edge, and the least distance of others from 0, by which
# Owen's function divides.
FAR, TINY = 12.0, 1e-9
# Least error of a cell, in records.
LEAST_ERROR = 0.5
# A fit leaves a trend out whose correlation is less than this many standard errors from 0.
SHOWN = 2.0
# A table of more than four cells stays as it was measured if its distance from the best trend is above
# the mean of noise by this many standard deviations.
BEYOND = 3.0


@dataclass(frozen=True, eq=False)
class Cut:
    """How an attribute is cut into the bins of trends.

    Attributes:
        counts: the model's counts of values [shape=(size,), float64].
        finer: the map value -> bin, with bins within halves [shape=(size,), int64]. Two bins, the
            halves themselves, have no order.
        halved: whether it was measured in halves or coarse bins; others keep the bins that were
            measured.
        missing: whether the last bin is the missing value alone.
    """

    counts: Floats
    finer: Integers
    halved: bool = False
    missing: bool = False


def as_trends(
    measurements: Sequence[Measurement], cuts: Mapping[int, Cut], total: float
) -> list[Measurement]:
    """Replace the pairs of halved attributes by trends, and leave other measurements as they are.

    Args:
        measurements: noisy marginals.
        cuts: of the ordered attributes, and of those of two values or halves. None: no trends.
        total: number of records.

    Returns:
        The measurements, in the same order.
    """

    def trend(i: int) -> Measurement:
        m = measurements[i]
        return _as_trend(m, cuts, total) if has_trend(m, cuts) else m

    return for_each(len(measurements), trend)


def has_trend(m: Measurement, cuts: Mapping[int, Cut]) -> bool:
    """Whether a measurement is of a pair with finer bins than were measured, or one contrast."""
    if len(m.attributes) != 2 or m.asked or not cuts.keys() >= set(m.attributes):
        return False
    return (m.counts.shape == (2, 2) and len(m.contrasts) > 0) or any(
        cuts[a].halved and number_of_bins(cuts[a].finer) >= (count if count > 2 else 3)
        for a, count in zip(m.attributes, m.counts.shape, strict=True)
    )


def _as_trend(m: Measurement, cuts: Mapping[int, Cut], total: float) -> Measurement:
    """The trend of a pair; the measurement itself if no trend explains it."""
    mine = [cuts[a] for a in m.attributes]
    bins = [
        np.arange(len(cut.counts)) if measured is None else measured
        for cut, measured in zip(mine, m.bins, strict=True)
    ]
    missing = [
        cut.missing and int((measured == measured[-1]).sum()) == 1 and count > 2
        for cut, measured, count in zip(mine, bins, m.counts.shape, strict=True)
    ]
    if any(missing):
        return _with_missing(m, mine, bins, missing, total)
    one, other = (_scores(cut.counts, each) for cut, each in zip(mine, bins, strict=True))
    tables = total * normal_tables(one, other, CORRELATIONS)
    misfits = m.squares_of_each(tables)
    beyond = misfits.min() - m.dimensions
    if beyond > BEYOND * math.sqrt(2 * m.dimensions):
        return m
    correlation, error = _posterior(misfits)
    finer = [
        cut.finer if cut.halved and number_of_bins(cut.finer) > count else measured
        for cut, measured, count in zip(mine, bins, m.counts.shape, strict=True)
    ]
    one, other = (_scores(cut.counts, each) for cut, each in zip(mine, finer, strict=True))
    steps = np.array([-STEP, 0.0, STEP]) + correlation
    below, counts, above = total * normal_tables(one, other, steps)
    slope = math.sqrt(float(np.square(above - below).sum())) / (2 * STEP)
    sigma = max(error * slope, LEAST_ERROR)
    return replace(
        m, bins=tuple(finer), counts=counts, sigma=sigma, contrasts=(), completed=False, trend=1
    )


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


def _posterior(misfits: Floats) -> tuple[float, float]:
    """As :func:`posterior`, at CORRELATIONS; the error is no less than that of the grid."""
    correlation, error, rounding = posterior(misfits, CORRELATIONS)
    return correlation, max(error, rounding)


@dataclass(frozen=True)
class _Told:
    """What a pair's cells tell: an estimate and its standard error."""

    value: float
    error: float

    @property
    def shown(self) -> float:
        """The estimate, or 0 where noise may explain it."""
        return self.value if abs(self.value) >= SHOWN * self.error else 0.0


@dataclass(frozen=True, eq=False)
class _Pair:
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
    both: _Told = _Told(0.0, LEAST_ERROR)
    lacking: tuple[_Told, _Told] = (_Told(0.0, 1.0), _Told(0.0, 1.0))
    present: _Told = _Told(0.0, 1.0)

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


def _with_missing(
    m: Measurement,
    mine: Sequence[Cut],
    bins: Sequence[Integers],
    missing: Sequence[bool],
    total: float,
) -> Measurement:
    """The trend of a pair in which a missing value has a bin of its own; the measurement itself if no
    trend explains it.
    """
    masses = [_masses(cut.counts, each, total) for cut, each in zip(mine, bins, strict=True)]
    # The noise of a contrast of two cells lies in one direction of two.
    doubled = sum(m.counts.shape[axis] == 2 for axis in m.contrasts)
    errors = m.errors * 2 ** (doubled / 2)
    pair, misfit = _told(_Pair((missing[0], missing[1]), total), m.counts, errors, masses)
    if misfit - m.dimensions > BEYOND * math.sqrt(2 * m.dimensions):
        return m
    finer = [
        cut.finer if cut.halved and number_of_bins(cut.finer) > count else measured
        for cut, measured, count in zip(mine, bins, m.counts.shape, strict=True)
    ]
    masses = [_masses(cut.counts, each, total) for cut, each in zip(mine, finer, strict=True)]
    slopes = np.square(pair.table(masses, STEP) - pair.table(masses, -STEP)) / (2 * STEP) ** 2
    counts, sigma = pair.table(masses), np.empty(slopes.shape)
    rows, columns = (count - gone for count, gone in zip(counts.shape, missing, strict=True))
    for block, told in (
        ((slice(rows), slice(columns)), pair.present),
        ((slice(rows), slice(columns, None)), pair.lacking[1]),
        ((slice(rows, None), slice(columns)), pair.lacking[0]),
    ):
        sigma[block] = told.error * math.sqrt(float(slopes[block].sum()))
    sigma[rows:, columns:] = pair.both.error
    return replace(
        m,
        bins=tuple(finer),
        counts=counts,
        sigma=np.maximum(sigma, LEAST_ERROR),
        contrasts=(),
        completed=False,
        trend=1 + sum(told.shown != 0 for told in (pair.both, *pair.lacking)),
    )


def _told(
    pair: _Pair, counts: Floats, errors: Floats, masses: Sequence[Floats]
) -> tuple[_Pair, float]:
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
        pair = replace(pair, both=_Told(float(counts[-1, -1]) - alone, float(errors[-1, -1])))
    rows, columns = (len(mass) - gone for mass, gone in zip(masses, pair.missing, strict=True))
    for column, cells in ((0, (-1, slice(columns))), (1, (slice(rows), -1))):
        if pair.missing[column]:
            apart = pair.lack(masses, column, CORRELATIONS)[:, :, 1] - counts[cells]
            misfits = np.square(apart / errors[cells]).sum(axis=1)
            told, left = _Told(*_posterior(misfits)), left + float(misfits.min())
            one, other = pair.lacking
            pair = replace(pair, lacking=(told, other) if column == 0 else (one, told))
    present = slice(rows), slice(columns)
    apart = pair.with_both(masses, CORRELATIONS) - counts[present]
    misfits = np.square(apart / errors[present]).sum(axis=(1, 2))
    pair = replace(pair, present=_Told(*_posterior(misfits)))
    return pair, left + float(misfits.min())


def _masses(counts: Floats, bins: Integers, total: float) -> Floats:
    """Records of bins [shape=(bins,), float64], of all records."""
    mass: Floats = np.bincount(bins, weights=np.maximum(counts, 0.0)).astype(np.float64)
    return mass * (total / max(float(mass.sum()), TINY))


def without_noise(measurements: Sequence[Measurement], shown: float = SHOWN) -> list[Measurement]:
    """The measurements without trends that noise may explain: fits would follow their noise.

    Args:
        measurements: noisy marginals.
        shown: least distance of a trend from 0, in standard errors.
    """
    return [m for m in measurements if not m.trend or m.squares(_apart(m)) >= shown**2]


def _apart(m: Measurement) -> Floats:
    """A pair's counts if its attributes are independent."""
    rows, columns = m.counts.sum(axis=1), m.counts.sum(axis=0)
    apart: Floats = np.outer(rows, columns) / m.counts.sum()
    return apart


def number_of_bins(finer: Integers) -> int:
    """Number of bins of a map."""
    return int(finer.max()) + 1


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


def _scores(counts: Floats, bins: Integers) -> Floats:
    """Normal scores of the edges of bins [shape=(bins + 1,), float64]."""
    return edge_scores(np.bincount(bins, weights=np.maximum(counts, 0.0)).astype(np.float64))


def edge_scores(mass: Floats) -> Floats:
    """Normal scores of the edges of bins of so many records [shape=(bins + 1,), float64]."""
    below = np.cumsum(mass)[:-1] / max(float(mass.sum()), TINY)
    inner = np.clip(special.ndtri(np.clip(below, 0.0, 1.0)), -FAR, FAR)
    inner[np.abs(inner) < TINY] = TINY
    return np.concatenate([[-FAR], inner, [FAR]])
