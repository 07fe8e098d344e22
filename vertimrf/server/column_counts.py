"""Counts of a column's values from all that a party measured of it: alone, and in the pairs that it chose.

A party that chooses its pairs has little budget for columns alone. Example: 20 values with noise of 80
records each say how many records are in the lower half with an error of 180, and one pair of it, in three
by three bins with noise of 138, with an error of 240. A column is in several pairs, so these say it better.

Least squares: the noise of all figures is independent, and the total is known. The counts of single
values hardly change, and keep their errors; sums of many change most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Floats
from ..model.measurement import Measurement, bin_of_value
from ..releases.received import RecordCount


def counted_together(measured: Sequence[Measurement], records: RecordCount) -> list[Measurement]:
    """Improve a party's one-way counts by the margins of its larger marginals.

    Args:
        measured: the local marginals of a party that chooses its pairs.
        records: its number of records.

    Returns:
        The marginals in their order, of which the first one-way marginals of values have other counts.
    """
    out = list(measured)
    first = dict[int, int]()
    for i, m in enumerate(measured):
        if len(m.attributes) == 1 and m.bins[0] is None:
            first.setdefault(m.attributes[0], i)
    sums: dict[int, list[tuple[Floats, Floats, float]]] = {}
    for m in measured:
        for axis, a in enumerate(m.attributes if len(m.attributes) > 1 else ()):
            if a in first and set(m.unknown) <= {axis}:
                size = len(measured[first[a]].counts)
                sums.setdefault(a, []).append(_margin(m, axis, size))
    for a, its in sums.items():
        alone = measured[first[a]]
        its.append((np.ones((1, len(alone.counts))), np.array([records.records]), records.error**2))
        out[first[a]] = replace(alone, counts=_least_squares(alone, its))
    return out


def _margin(m: Measurement, axis: int, size: int) -> tuple[Floats, Floats, float]:
    """What a marginal says of one of its columns: which sums of values it has [shape=(sums, size)],
    these sums, and their variance.
    """
    bins, count = m.bins[axis], m.counts.shape[axis]
    which = (np.arange(count)[:, None] == bin_of_value(bins, size)).astype(np.float64)
    margin = m.sums[axis]
    variance = m.variance * m.counts.size / count
    if m.unknown:
        # The difference of two values was measured.
        return which[:1] - which[1:], margin[:1] - margin[1:], 2 * variance
    return which, margin, variance


def _least_squares(alone: Measurement, sums: Sequence[tuple[Floats, Floats, float]]) -> Floats:
    """Counts that noisy counts and noisy sums of them tell together [shape=(size,), float64]."""
    which, found = (np.concatenate(parts) for parts in ([s[0] for s in sums], [s[1] for s in sums]))
    variances = np.repeat([s[2] for s in sums], [len(s[1]) for s in sums])
    own = np.broadcast_to(np.square(alone.sigma), alone.counts.shape)
    across = which * own
    weights = np.linalg.solve(across @ which.T + np.diag(variances), found - which @ alone.counts)
    out: Floats = alone.counts + across.T @ weights
    return out
