"""Cardinality estimation kernels: from the sketches of a scheduled pair to counts with known errors.

Axes: u, w = values of the left and right group; k = hash keys; l = levels above the floor (0 = floor, last = ceiling).
"""

from __future__ import annotations

import numpy as np
from numba import prange

from .jit import kernel, parallel_kernel

__all__ = ["joint_histograms", "solve_intersections"]


@parallel_kernel
def joint_histograms(left, right, floor, levels):  # type: ignore[no-untyped-def]
    """Count, for every cell (value of left, value of right), the pairs of levels over the keys.

    Args:
        left: published levels [shape=(u, k), uint8], each in floor .. floor + levels - 1.
        right: published levels [shape=(w, k), uint8], under the same keys.
        floor: the lowest level published.
        levels: number of distinct levels l.

    Returns:
        Histograms [shape=(u, w, l, l), int32]; each sums to k.
    """
    rows, keys = left.shape
    columns = right.shape[0]
    out = np.zeros((rows, columns, levels, levels), np.int32)
    for cell in prange(rows * columns):
        i = cell // columns
        j = cell % columns
        # Four interleaved histograms: equal neighbouring levels are common, and one counter would serialise on its store.
        parts = np.zeros((4, levels * levels), np.int32)
        a = left[i]
        b = right[j]
        whole = keys - keys % 4
        for k in range(0, whole, 4):
            for q in range(4):
                parts[q, (np.int64(a[k + q]) - floor) * levels + np.int64(b[k + q]) - floor] += 1
        for k in range(whole, keys):
            parts[0, (np.int64(a[k]) - floor) * levels + np.int64(b[k]) - floor] += 1
        for x in range(levels):
            for y in range(levels):
                s = x * levels + y
                out[i, j, x, y] = parts[0, s] + parts[1, s] + parts[2, s] + parts[3, s]
    return out


@kernel
def _score_and_information(log_cdf, a, b, c, histogram, cdf, slope):  # type: ignore[no-untyped-def]
    """Score of the histogram and Fisher information of one key at intersection ``c`` (work arrays: cdf, slope [shape=(l, l)])."""
    levels = log_cdf.shape[0]
    for x in range(levels):
        for y in range(levels):
            top = log_cdf[max(x, y)]
            cdf[x, y] = np.exp(a * log_cdf[x] + b * log_cdf[y] - c * top)
            slope[x, y] = -top * cdf[x, y]
    score = 0.0
    information = 0.0
    for x in range(levels):
        for y in range(levels):
            p = cdf[x, y]
            d = slope[x, y]
            if x > 0:
                p -= cdf[x - 1, y]
                d -= slope[x - 1, y]
            if y > 0:
                p -= cdf[x, y - 1]
                d -= slope[x, y - 1]
            if x > 0 and y > 0:
                p += cdf[x - 1, y - 1]
                d += slope[x - 1, y - 1]
            # Far tails lose all digits to cancellation; they carry no information worth a wrong ratio.
            if p > 1e-14:
                score += histogram[x, y] * d / p
                information += d * d / p
    return score, information


@parallel_kernel
def solve_intersections(histograms, left_sizes, right_sizes, total, phantoms, log_cdf):  # type: ignore[no-untyped-def]
    """Maximum-likelihood size of every cell's intersection, margins known, by Fisher scoring.

    With F the distribution of one hash level, P(W <= x, W' <= y) = F(x)^(a+N) F(y)^(b+N) F(max(x, y))^(-c) for set sizes
    a, b, phantoms N and intersection c. Estimates may be negative, so that they are unbiased at c = 0.

    Args:
        histograms: joint level counts [shape=(u, w, l, l), int32].
        left_sizes: set sizes of the left values [shape=(u,), float64], records.
        right_sizes: set sizes of the right values [shape=(w,), float64], records.
        total: number of records; starts the iteration at independence.
        phantoms: phantom records per sketch.
        log_cdf: log F at every published level, 0 at the ceiling [shape=(l,), float64].

    Returns:
        Counts and their standard errors from the Fisher information [both shape=(u, w), float64].
    """
    rows, columns, levels, _ = histograms.shape
    counts = np.empty((rows, columns))
    errors = np.empty((rows, columns))
    for cell in prange(rows * columns):
        i = cell // columns
        j = cell % columns
        histogram = histograms[i, j]
        keys = 0.0
        for x in range(levels):
            for y in range(levels):
                keys += histogram[x, y]
        cdf = np.empty((levels, levels))
        slope = np.empty((levels, levels))
        a = left_sizes[i] + phantoms
        b = right_sizes[j] + phantoms
        # Beyond these bounds an exponent changes sign and the law is no distribution.
        low = -0.5 * phantoms
        high = min(a, b) - 0.5 * phantoms
        c = min(max(left_sizes[i] * right_sizes[j] / max(total, 1.0), 0.0), high)
        step = 0.0
        information = 1.0
        for _ in range(25):
            score, information = _score_and_information(log_cdf, a, b, c, histogram, cdf, slope)
            if information <= 0.0:
                step = 0.0
                break
            step = score / (keys * information)
            nearer = min(max(c + step, low), high)
            moved = abs(nearer - c)
            if moved < 1e-3 / np.sqrt(keys * information) or moved == 0.0:
                break
            c = nearer
            step = 0.0
        # The last step is taken unclamped, so that the estimate stays unbiased at the bounds.
        counts[i, j] = c + step
        errors[i, j] = 1.0 / np.sqrt(keys * information) if information > 0.0 else np.inf
    return counts, errors
