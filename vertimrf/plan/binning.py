"""Cutting an attribute into fewer bins: by its size alone, or by its already released one-way marginal (post-processing)."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import numpy.typing as npt

from ..errors import PlanError

__all__ = ["choose_bins", "equal_width", "merge_light"]


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
    weights = np.maximum(counts, 0.0).tolist()
    return _numbered(
        _merge_neighbours(weights, bins, math.inf) if ordered else _merge_any(weights, bins)
    )


def merge_light(
    counts: npt.NDArray[np.float64], light: float, ordered: bool
) -> npt.NDArray[np.int64]:
    """Merge values that count little. Where they are ordered, the two neighbours that are lightest together merge for as long as
    they count ``2 * light`` or less; else all that count less than ``light`` share a bin.

    Args:
        counts: released, noisy counts of the attribute's values [shape=(size,)].
        light: records.
        ordered: whether only neighbours may share a bin.

    Returns:
        Map code -> bin [shape=(size,), int64]; bins are numbered in the order of their first value.
    """
    if ordered:
        return _numbered(_merge_neighbours(np.maximum(counts, 0.0).tolist(), 1, 2 * light))
    rare = np.flatnonzero(counts < light)
    into = np.arange(len(counts))
    into[rare] = rare[:1]
    return _numbered(into.tolist())


def _numbered(into: list[int]) -> npt.NDArray[np.int64]:
    """Bins in the order of their first value, from what values point at [shape=(size,)]."""
    # A bin is known by its first value, and every value points at an earlier one of its bin, or at itself.
    first = np.empty(len(into), np.int64)
    for value, earlier in enumerate(into):
        first[value] = value if earlier == value else first[earlier]
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _merge_neighbours(weights: list[float], bins: int, most: float) -> list[int]:
    """Bins of ordered values, each known by its first one: per value, itself or an earlier one of its bin. No two bins merge that
    weigh more than ``most`` together.
    """
    into = list(range(len(weights)))
    # Who stands next to a bin on either side, and the weights of neighbours together; sums that no longer hold are passed over.
    before, after = list(range(-1, len(weights) - 1)), list(range(1, len(weights) + 1))
    together = [(a + b, left, left + 1) for left, (a, b) in enumerate(itertools.pairwise(weights))]
    heapq.heapify(together)
    for _ in range(len(weights) - bins):
        while True:
            weight, left, right = heapq.heappop(together)
            if (
                into[left] == left
                and after[left] == right
                and weights[left] + weights[right] == weight
            ):
                break
        if weight > most:
            break
        into[right] = left
        weights[left] = weight
        after[left] = after[right]
        if after[left] < len(weights):
            before[after[left]] = left
            heapq.heappush(together, (weight + weights[after[left]], left, after[left]))
        if before[left] >= 0:
            heapq.heappush(together, (weights[before[left]] + weight, before[left], left))
    return into


def _merge_any(weights: list[float], bins: int) -> list[int]:
    """Bins of values without an order; as above."""
    into = list(range(len(weights)))
    lightest = list(zip(weights, into, strict=True))
    heapq.heapify(lightest)
    for _ in range(len(weights) - bins):
        (one, a), (other, b) = heapq.heappop(lightest), heapq.heappop(lightest)
        into[max(a, b)] = min(a, b)
        heapq.heappush(lightest, (one + other, min(a, b)))
    return into
