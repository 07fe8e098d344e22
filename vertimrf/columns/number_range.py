"""Find the range and the bins of a column's numbers from three noisy histograms.

1. The first histogram has a cell for every power of two on either side of zero. It needs no bounds.
2. The second divides the significant range of the first.
3. The third divides the significant range of the second. Its counts give the bins.

A person is in one cell of each histogram, so together they cost as much as three counts. With
public bounds, step 1 is left out. Sources: Karwa and Vadhan (2018); SmartNoise's ``approx_bounds``
is step 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Floats, Integers, Pair
from .edges import merge_cells

# Returns noisy counts of the k cells between edges [shape=(k + 1,)] for a part of the budget, and
# the scale of their noise.
Histogram = Callable[[Floats, float], tuple[Integers, float]]

# Parts of the budget for the three histograms. With public bounds, the last two share the first's
# part.
PARTS = (0.4, 0.25, 0.35)
# Smallest and largest size of numbers in the first histogram; a step replaces the smallest.
MIN_SIZE, MAX_SIZE = 2.0**-30, 2.0**63
# A range is divided into CELLS cells of equal width. Near zero, cells are narrower:
# STEPS_PER_OCTAVE to each power of two, down to the share FINEST of the range's larger end.
CELLS = 40
STEPS_PER_OCTAVE = 4
FINEST = 2.0**-12
# Probability that noise alone is significant somewhere in a histogram.
CHANCE = 1e-3
# The sum of noise in adjacent cells, less 1.5 scales each, exceeds x scales with a probability that
# falls as exp(-0.85 x).
FALL = 0.8
# Count of a significant cell, in noise scales: in the first histogram, in the second, and in the
# last. In the second it is lower, a share PART_OF_MEAN of the mean count, if counts are small.
CLEAR, PLAIN, FAINT = 1.5, 1.0, 0.3
PART_OF_MEAN = 1 / 8
# Noise scales that are subtracted from the counts of the last histogram, so that empty cells have
# little weight.
SHRINK = 0.5


def find_edges(
    histogram: Histogram, bins: int, step: float, bounds: tuple[float, float] | None = None
) -> tuple[float, ...] | None:
    """Find the bounds and bins of a column.

    Args:
        histogram: releases noisy counts. It is called two or three times, with parts of the budget
            that sum to 1.
        bins: most bins.
        step: numbers are multiples of it; 0 if they are not.
        bounds: public bounds, if any.

    Returns:
        Increasing edges, at least 2, or None if no cell is significant.
    """
    if bounds is None:
        edges, part = octaves(step), PARTS[0]
        counts, scale = histogram(edges, part)
        cells = significant_range(counts, scale, CLEAR)
        if cells is None:
            return None
        low, high = float(edges[cells[0]]), float(edges[cells[1]])
    else:
        part, (low, high) = 0.0, bounds
    rest = (1 - part) / (PARTS[1] + PARTS[2])
    # Cells that are narrow near zero, and nearly empty, would part the numbers on either side of it.
    edges = divide(low, high, step, finest=1.0)
    counts, scale = histogram(edges, rest * PARTS[1])
    first, end = significant_range(counts, scale, 1.0) or (0, len(counts))
    level = min(max(PART_OF_MEAN * float(counts[first:end].mean()) / scale, FAINT), PLAIN)
    first, end = significant_range(counts, scale, level) or (first, end)
    edges = divide(float(edges[first]), float(edges[end]), step)
    counts, scale = histogram(edges, rest * PARTS[2])
    first, end = significant_range(counts, scale, FAINT) or (0, len(counts))
    mass = np.maximum(counts[first:end] - SHRINK * scale, 0.0)
    merged = merge_cells(edges[first : end + 1], mass if mass.any() else mass + 1, bins)
    if bounds is not None:
        merged = (
            *((bounds[0],) if bounds[0] < merged[0] else ()),
            *merged,
            *((bounds[1],) if bounds[1] > merged[-1] else ()),
        )
    return merged


def octaves(step: float) -> Floats:
    """Edges at zero and at powers of two times the step, on either side."""
    least = step or MIN_SIZE
    sizes = least * 2.0 ** np.arange(math.floor(math.log2(MAX_SIZE / least)) + 1)
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def divide(low: float, high: float, step: float, finest: float = FINEST) -> Floats:
    """Divide a range into cells of equal width, and into narrower ones near zero.

    Args:
        low, high, step: the range, and of what edges are multiples; 0 if of nothing.
        finest: share of the range's larger end down to which cells are narrower.
    """
    even = np.linspace(low, high, CELLS + 1)
    size = max(abs(low), abs(high))
    powers = size * 2.0 ** (
        -np.arange(STEPS_PER_OCTAVE * math.log2(1 / finest) + 1) / STEPS_PER_OCTAVE
    )
    near_zero = np.concatenate([-powers, [0.0], powers[::-1]])
    # Only the cells next to zero are divided.
    near_zero = near_zero[
        (np.abs(near_zero) < (high - low) / CELLS * 4) & (near_zero > low) & (near_zero < high)
    ]
    edges = np.concatenate([even, near_zero])
    if step:
        # Edges are multiples of the step.
        edges = np.round(edges / step) * step
    edges = np.unique(np.array([float(f"{edge:.12g}") for edge in edges]))
    # Cells narrower than a tenth of their distance from zero are joined.
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if edge - kept[-1] >= min((high - low) / CELLS, max(abs(edge), abs(kept[-1])) * 0.1) * 0.5:
            kept.append(edge)
    return np.array(
        [*kept, edges[-1]] if edges[-1] > kept[-1] else [*kept, kept[-1] + (step or 1.0)]
    )


def significant_range(counts: Integers, scale: float, level: float) -> Pair | None:
    """The range of all significant runs of cells.

    A run is significant if its counts, less ``level`` noise scales each, sum to more than noise
    does with a probability of CHANCE.

    Args:
        counts: noisy counts [shape=(cells,), int64].
        scale: scale of their noise.
        level: noise scales that are subtracted from each count.

    Returns:
        First cell and one past the last; None if no run is significant.
    """
    above = counts - level * scale
    needed = scale * math.log(len(counts) / (2 * CHANCE)) / FALL
    runs: list[Pair] = []
    waiting = [(0, len(counts))]
    while waiting:
        first, end = waiting.pop()
        best, best_run, total, start = needed, None, 0.0, first
        for i in range(first, end):
            if total <= 0:
                total, start = 0.0, i
            total += float(above[i])
            if total > best:
                best, best_run = total, (start, i + 1)
        if best_run is not None:
            runs.append(best_run)
            waiting += [(first, best_run[0]), (best_run[1], end)]
    return (min(runs)[0], max(run[1] for run in runs)) if runs else None
