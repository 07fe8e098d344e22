"""Read a coarse table of two attributes as a trend: one correlation, which a finer table then has.

If noise hides the cells of a pair, its attributes are measured in halves. What the halves tell is
whether large values go together. The table of finer bins with that dependence, and no other, is
taken to be that of two Gaussian variables with a correlation, which are cut where the one-way
marginals say (a Gaussian copula; Pearson, 1900, for the estimate from four cells).

The correlation has a uniform prior between -1 and 1. Its posterior mean and standard deviation
given the measured cells determine the table. Its cells' errors are equal, and such that the table
tells the correlation as precisely as the halves did.

**Missing values are no large or small ones.** Where they have a bin of their own, four numbers say what
a pair is (:mod:`.copula`). The finer table has a block for each number, with the error of that number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, Integers
from ..kernels.jit import for_each
from .copula import (
    CORRELATIONS,
    LEAST_ERROR,
    SHOWN,
    TINY,
    Pair,
    edge_scores,
    normal_tables,
    posterior_of,
    told_by,
)
from .measurement import Measurement

# A table's change with the correlation is a difference over twice this step.
STEP = 1e-3
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
    correlation, error = posterior_of(misfits)
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
    pair, misfit = told_by(Pair((missing[0], missing[1]), total), m.counts, errors, masses)
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


def _masses(counts: Floats, bins: Integers, total: float) -> Floats:
    """Records of bins [shape=(bins,), float64], of all records."""
    mass: Floats = np.bincount(bins, weights=np.maximum(counts, 0.0)).astype(np.float64)
    return mass * (total / max(float(mass.sum()), TINY))


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


def _scores(counts: Floats, bins: Integers) -> Floats:
    """Normal scores of the edges of bins [shape=(bins + 1,), float64]."""
    return edge_scores(np.bincount(bins, weights=np.maximum(counts, 0.0)).astype(np.float64))
