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
    LEAST_ERROR,
    SHOWN,
    Pair,
    carried,
    told_by,
)
from .jointly import together
from .measurement import Measurement, bin_of_value

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

    def read(i: int) -> _Read | None:
        m = measurements[i]
        return _read(m, cuts, total) if has_trend(m, cuts) else None

    found = for_each(len(measurements), read)
    places = [i for i, each in enumerate(found) if each is not None]
    some = [each for each in found if each is not None]
    missing = {
        a: float(cut.counts[-1]) / total
        for each in some
        for a, cut in zip(each.m.attributes, each.cuts, strict=True)
        if cut.missing
    }
    pairs = together([each.m.attributes for each in some], [each.pair for each in some], missing)
    tables = for_each(len(some), lambda i: some[i].table(pairs[i]))
    out = list(measurements)
    for i, table in zip(places, tables, strict=True):
        out[i] = table
    return out


def has_trend(m: Measurement, cuts: Mapping[int, Cut]) -> bool:
    """Whether a measurement is of a pair with finer bins than were measured, or one contrast."""
    if len(m.attributes) != 2 or m.asked or not cuts.keys() >= set(m.attributes):
        return False
    return (m.counts.shape == (2, 2) and len(m.contrasts) > 0) or any(
        cuts[a].halved and number_of_bins(cuts[a].finer) >= (count if count > 2 else 3)
        for a, count in zip(m.attributes, m.counts.shape, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _Read:
    """A pair that is read as a trend.

    Attributes:
        m: what was measured.
        cuts: of both attributes.
        pair: what the cells tell.
    """

    m: Measurement
    cuts: tuple[Cut, Cut]
    pair: Pair

    def table(self, pair: Pair) -> Measurement:
        """The table of finer bins with a pair's correlations."""
        finer = [
            cut.finer
            if cut.halved and number_of_bins(cut.finer) > count
            else bin_of_value(measured, len(cut.counts))
            for cut, measured, count in zip(
                self.cuts, self.m.bins, self.m.counts.shape, strict=True
            )
        ]
        masses = [
            _masses(cut.counts, each, pair.total)
            for cut, each in zip(self.cuts, finer, strict=True)
        ]
        slopes = np.square(pair.table(masses, STEP) - pair.table(masses, -STEP)) / (2 * STEP) ** 2
        counts, sigma = pair.table(masses), np.empty(slopes.shape)
        rows, columns = (n - gone for n, gone in zip(counts.shape, pair.missing, strict=True))
        for block, told in (
            ((slice(rows), slice(columns)), pair.present),
            ((slice(rows), slice(columns, None)), pair.lacking[1]),
            ((slice(rows, None), slice(columns)), pair.lacking[0]),
            ((slice(rows, None), slice(columns, None)), pair.both),
        ):
            sigma[block] = told.error * math.sqrt(float(slopes[block].sum()))
        sigma = np.maximum(carried(counts, sigma, pair.missing), LEAST_ERROR)
        return replace(
            self.m,
            bins=tuple(finer),
            counts=counts,
            sigma=sigma if any(pair.missing) else float(sigma[0, 0]),
            contrasts=(),
            completed=False,
            trend=1 + sum(told.shown != 0 for told in (pair.both, *pair.lacking)),
        )


def _read(m: Measurement, cuts: Mapping[int, Cut], total: float) -> _Read | None:
    """A pair as a trend; None if no trend explains it."""
    one, other = (cuts[a] for a in m.attributes)
    bins = [
        bin_of_value(measured, len(cut.counts))
        for cut, measured in zip((one, other), m.bins, strict=True)
    ]
    missing = [
        cut.missing and int((measured == measured[-1]).sum()) == 1 and count > 2
        for cut, measured, count in zip((one, other), bins, m.counts.shape, strict=True)
    ]
    masses = [_masses(cut.counts, b, total) for cut, b in zip((one, other), bins, strict=True)]
    pair, misfit = told_by(Pair((missing[0], missing[1]), total), m, masses)
    if misfit - m.dimensions > BEYOND * math.sqrt(2 * m.dimensions):
        return None
    return _Read(m, (one, other), pair)


def _masses(counts: Floats, bins: Integers, total: float) -> Floats:
    """Records of bins [shape=(bins,), float64], of all records."""
    mass: Floats = np.bincount(bins, weights=np.maximum(counts, 0.0)).astype(np.float64)
    # Without a record all are in the last bin.
    mass[-1] += not mass.any()
    return mass * (total / float(mass.sum()))


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
