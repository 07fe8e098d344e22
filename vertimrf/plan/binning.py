"""Cutting an attribute into fewer bins: by its size alone, or by its already released one-way marginal (post-processing)."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from ..errors import PlanError

__all__ = ["choose_bins", "equal_width"]


def equal_width(size: int, bins: int) -> npt.NDArray[np.int64]:
    """Neighbouring values in bins of equal width, up to one value (VertiMRF, section 6.1): tells nothing about the data.

    Args:
        size: number of values; ``bins``: bins to cut them into, at most ``size``.

    Returns:
        Map code -> bin [shape=(size,), int64].

    Raises:
        PlanError: fewer than one bin, or more than values.
    """
    if not 1 <= bins <= size:
        raise PlanError(f"{size} values cannot be cut into {bins} bins; take 1 to {size}.")
    return np.arange(size, dtype=np.int64) * bins // size


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
