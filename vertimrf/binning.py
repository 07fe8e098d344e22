"""Cutting an attribute into fewer bins, from its already released one-way marginal (post-processing)."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

__all__ = ["choose_bins"]


def choose_bins(counts: npt.NDArray[np.float64], bins: int, ordered: bool) -> npt.NDArray[np.int64]:
    """Merge values until ``bins`` bins remain, always the two lightest ones: adjacent ones only where values are ordered.

    Args:
        counts: released, noisy counts of the attribute's values [shape=(size,)].
        bins: bins to keep; at most ``size``.
        ordered: whether only neighbours may share a bin.

    Returns:
        Map code -> bin [shape=(size,), int64]; bins are numbered in the order of their first value.
    """
    weights = [float(w) for w in np.maximum(counts, 0.0)]
    members = [[value] for value in range(len(weights))]
    while len(weights) > bins:
        if ordered:
            left = int(np.argmin([a + b for a, b in itertools.pairwise(weights)]))
            right = left + 1
        else:
            left, right = sorted(int(i) for i in np.argsort(weights, kind="stable")[:2])
        weights[left] += weights.pop(right)
        members[left] += members.pop(right)
    out = np.empty(len(counts), np.int64)
    for number, values in enumerate(sorted(members, key=min)):
        out[values] = number
    return out
