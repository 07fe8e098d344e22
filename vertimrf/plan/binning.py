"""Cut an attribute into bins by its released one-way marginal (post-processing)."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np

from ..arrays import Floats, Integers


def choose_bins(counts: Floats, bins: int, ordered: bool) -> Integers:
    """Merge the two bins with the lowest counts again and again, until ``bins`` bins remain.

    Args:
        counts: released, noisy counts of the attribute's values [shape=(size,), float64].
        bins: number of bins, at most ``size``.
        ordered: whether only adjacent bins are merged.

    Returns:
        Map code -> bin [shape=(size,), int64]; bins are numbered in the order of their first value.
    """
    weights = np.maximum(counts, 0.0).tolist()
    return _numbered(
        _merge_neighbours(weights, bins, math.inf) if ordered else _merge_any(weights, bins)
    )


def merge_light(counts: Floats, light: float, ordered: bool) -> Integers:
    """Merge values with low counts.

    Without an order, all values with counts below ``light`` share a bin. With an order, the two
    adjacent bins with the lowest sum are merged again and again, while the sum is at most ``2 *
    light``.

    Args:
        counts: released, noisy counts of the attribute's values [shape=(size,), float64].
        light: limit of a low count, in records.
        ordered: whether only adjacent bins are merged.

    Returns:
        Map code -> bin [shape=(size,), int64]; bins are numbered in the order of their first value.
    """
    if ordered:
        return _numbered(_merge_neighbours(np.maximum(counts, 0.0).tolist(), 1, 2 * light))
    rare = np.flatnonzero(counts < light)
    into = np.arange(len(counts))
    into[rare] = rare[:1]
    return _numbered(into.tolist())


def _numbered(into: list[int]) -> Integers:
    """Number bins in the order of their first value [shape=(size,), int64].

    ``into`` has for every value an earlier value of its bin, or the value itself.
    """
    first = np.empty(len(into), np.int64)
    for value, earlier in enumerate(into):
        first[value] = value if earlier == value else first[earlier]
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _merge_neighbours(weights: list[float], bins: int, most: float) -> list[int]:
    """Merge adjacent bins while their sum is at most ``most``; returns ``into`` of
    :func:`_numbered`.
    """
    into = list(range(len(weights)))
    # A bin is named by its first value. The heap has sums of adjacent bins; outdated sums are
    # skipped.
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
    """Merge bins of values without an order; returns ``into`` of :func:`_numbered`."""
    into = list(range(len(weights)))
    lightest = list(zip(weights, into, strict=True))
    heapq.heapify(lightest)
    for _ in range(len(weights) - bins):
        (one, a), (other, b) = heapq.heappop(lightest), heapq.heappop(lightest)
        into[max(a, b)] = min(a, b)
        heapq.heappush(lightest, (one + other, min(a, b)))
    return into
