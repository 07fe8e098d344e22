"""Cut an attribute into bins by its released one-way marginal (post-processing)."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np

from ..arrays import Floats, Integers

# Records without a value are a half of their own from this share on.
MISSING_HALF = 1 / 3
# Bins of a halved attribute where a pair is read as a trend (:mod:`vertimrf.model.trend`).
TREND_BINS = 12


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


def halves(counts: Floats, ordered: bool, missing: bool) -> Integers:
    """Cut an attribute in two, as evenly as its order allows.

    If more than a part :data:`MISSING_HALF` of the records has no value, these are one half.

    Args:
        counts: released, noisy counts of the attribute's values [shape=(size,), float64].
        ordered: whether the halves are the lower and the upper values.
        missing: whether the last value stands for records without one.

    Returns:
        Map code -> half [shape=(size,), int64].
    """
    if not ordered:
        return choose_bins(counts, 2, False)
    below = np.cumsum(np.maximum(counts, 0.0))
    share = below[:-1] / max(float(below[-1]), 1.0)
    if missing and (len(share) == 1 or share[-1] < 1 - MISSING_HALF):
        cut = len(share)
    else:
        cut = 1 + int(np.argmin(np.abs(share[: len(share) - missing] - 0.5)))
    return (np.arange(len(counts)) >= cut).astype(np.int64)


def beside_missing(counts: Floats, bins: int, ordered: bool, halved: bool = False) -> Integers:
    """Cut an attribute into bins of which the last is the missing value, and no other.

    Args:
        counts: released, noisy counts of the attribute's values, of which the last is the missing
            value [shape=(size,), float64].
        bins: number of bins, from 3 to ``size``.
        ordered: whether only adjacent bins are merged.
        halved: whether three bins are halves (:func:`halves`) and the missing value.

    Returns:
        Map code -> bin [shape=(size,), int64].
    """
    present = counts[:-1]
    if halved and bins == 3:
        values = halves(present, ordered, False)
    else:
        values = choose_bins(present, bins - 1, ordered)
    return np.append(values, values.max() + 1)


def missing_alone(bins: Integers, missing: bool) -> bool:
    """Whether the missing value has a bin of its own, beside two or more of present values.

    Args:
        bins: the map value -> bin [shape=(size,), int64].
        missing: whether the last value stands for records without one.
    """
    return bool(missing and (bins == bins[-1]).sum() == 1 and bins.max() >= 2)


def finer_bins(
    counts: Floats, half: Integers, ordered: bool, missing: bool, most: int = TREND_BINS
) -> Integers:
    """Cut each half, or coarse bin, of an attribute into bins of similar counts.

    Args:
        counts: counts of values [shape=(size,), float64].
        half: the map value -> half (:func:`halves`), or coarse bin [shape=(size,), int64].
        ordered: whether values have an order. Otherwise the halves stay.
        missing: whether the last value stands for records without one. If these have a bin of their
            own, they keep it, and it is the last. If they are one of two halves, the order says
            nothing of the halves, which stay.
        most: most bins.

    Returns:
        The map value -> bin [shape=(size,), int64].
    """
    if ordered and missing_alone(half, missing):
        present = finer_bins(counts[:-1], half[:-1], True, False, most - 1)
        return np.append(present, present.max() + 1)
    if not ordered or (missing and (half == half[-1]).sum() == 1):
        return half
    out = np.zeros_like(half)
    parts = int(half.max()) + 1
    for part in range(parts):
        of_part = half == part
        bins = min(max(most // parts, 1), int(of_part.sum()))
        out[of_part] = choose_bins(counts[of_part], bins, True) + (out.max() + 1 if part else 0)
    return out


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
