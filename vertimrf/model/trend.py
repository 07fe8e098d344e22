"""Read a coarse table of two attributes as a trend: one correlation, which a finer table then has.

If noise hides the cells of a pair, its attributes are measured in halves. What the halves tell is
whether large values go together. The table of finer bins with that dependence, and no other, is
taken to be that of two Gaussian variables with a correlation, which are cut where the one-way
marginals say (a Gaussian copula; Pearson, 1900, for the estimate from four cells).

The correlation has a uniform prior between -1 and 1. Its posterior mean and standard deviation
given the measured cells determine the table. Its cells' errors are equal, and such that the table
tells the correlation as precisely as the halves did.
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
    """

    counts: Floats
    finer: Integers
    halved: bool = False


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
    one, other = (_scores(cut.counts, each) for cut, each in zip(mine, bins, strict=True))
    tables = total * normal_tables(one, other, CORRELATIONS)
    misfits = m.squares_of_each(tables)
    beyond = misfits.min() - m.dimensions
    if beyond > BEYOND * math.sqrt(2 * m.dimensions):
        return m
    chances = np.exp(-0.5 * (misfits - misfits.min())) * np.gradient(CORRELATIONS)
    chances /= chances.sum()
    correlation = float(chances @ CORRELATIONS)
    error = math.sqrt(float(chances @ np.square(CORRELATIONS - correlation)))
    finer = [
        cut.finer if cut.halved and number_of_bins(cut.finer) > count else measured
        for cut, measured, count in zip(mine, bins, m.counts.shape, strict=True)
    ]
    one, other = (_scores(cut.counts, each) for cut, each in zip(mine, finer, strict=True))
    steps = np.array([-STEP, 0.0, STEP]) + correlation
    below, counts, above = total * normal_tables(one, other, steps)
    slope = math.sqrt(float(np.square(above - below).sum())) / (2 * STEP)
    # The error of the grid is that of rounding.
    error = max(error, float(np.gradient(CORRELATIONS)[chances.argmax()]) / math.sqrt(12))
    sigma = max(error * slope, LEAST_ERROR)
    return replace(
        m, bins=tuple(finer), counts=counts, sigma=sigma, contrasts=(), completed=False, trend=True
    )


def without_noise(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements without trends that noise may explain: fits would follow their noise."""
    return [m for m in measurements if not m.trend or m.squares(_apart(m)) >= SHOWN**2]


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
