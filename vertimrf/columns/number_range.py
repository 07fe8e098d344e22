"""Find the range, the points and the bins of a column's numbers from noisy histograms.

1. The first histogram has a cell for every power of two on either side of zero. It needs no bounds.
2. The second divides the significant range of the first.
3. If a cell of the second holds many records, single values are searched in it
   (:mod:`.private_points`). Without those found, the range is found again.
4. The last divides the significant range. Its counts give the bins.

A person is in one cell of each histogram, so that each costs as much as one count. With public
bounds, step 1 is left out. Sources: Karwa and Vadhan (2018); SmartNoise's ``approx_bounds``
is step 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..arrays import Floats, Integers
from .edges import merge_cells
from .partition import Lattice
from .private_points import BITS, CELLS_CUT, SHARE, Histogram, find_points, needed, rounds_of

# Parts of the budget: of a histogram of octaves, which public bounds save; of one that divides the
# range; of those that find points in its cells; and of one that divides the range without points.
# The rest is for the last histogram, whose counts give the bins.
OCTAVES, RANGE, POINTS_PART, AGAIN = 0.3, 0.2, 0.25, 0.08
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


def find_domain(
    histogram: Histogram,
    bins: int,
    lattice: Lattice,
    bounds: tuple[float, float] | None = None,
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Find the bounds, the bins and the points of a column.

    Args:
        histogram: releases noisy counts, with parts of the budget that sum to 1 at most.
        bins: most bins.
        lattice: which numbers there are.
        bounds: public bounds, if any.

    Returns:
        Increasing edges, at least 2, or none if the points are all; and the points. None if no cell
        is significant.
    """
    step, whole, spent = lattice.step, 1.0, 0.0
    coarse: tuple[Floats, Integers, float] | None = None
    if bounds is None:
        edges, spent = octaves(step), OCTAVES
        coarse = (edges, *histogram(edges, OCTAVES, ()))
        cells = significant_range(*coarse[1:], CLEAR)
        if cells is None:
            return None
        low, high = float(edges[cells[0]]), float(edges[cells[1]])
    else:
        whole, (low, high) = 1 / (1 - OCTAVES), bounds
    edges = divide(low, high, step)
    counts, scale = histogram(edges, whole * RANGE, ())
    points, used = _points(histogram, edges, counts, scale, lattice, whole)
    spent += whole * RANGE + used
    if points:
        if coarse is not None:
            cells = significant_range(_without(*coarse[:2], points), coarse[2], CLEAR)
            if cells is None:
                return (), tuple(points)
            low, high = float(coarse[0][cells[0]]), float(coarse[0][cells[1]])
        edges = divide(low, high, step)
        counts, scale = histogram(edges, whole * AGAIN, tuple(points))
        spent += whole * AGAIN
    merged = _bins(histogram, (edges, counts, scale), bins, step, 1 - spent, tuple(points))
    if bounds is not None:
        merged = (
            *((bounds[0],) if bounds[0] < merged[0] else ()),
            *merged,
            *((bounds[1],) if bounds[1] > merged[-1] else ()),
        )
    return merged, tuple(points)


def _points(
    histogram: Histogram,
    edges: Floats,
    counts: Integers,
    scale: float,
    lattice: Lattice,
    whole: float,
) -> tuple[dict[float, float], float]:
    """Points in the heaviest cells between edges, if their counts exceed the noise of a search.

    Returns:
        Noisy counts by point, and the part of the budget that was spent.
    """
    records = max(float(counts.sum()), 1.0)
    heavy = [
        i for i in np.argsort(-counts, kind="stable")[:CELLS_CUT] if counts[i] >= SHARE * records
    ]
    # The last cell has its upper edge.
    ends = [*edges[1:-1].tolist(), lattice.after(float(edges[-1]))]
    while heavy:
        ranges = [(float(edges[i]), ends[i]) for i in heavy]
        noise = scale * RANGE / (POINTS_PART / rounds_of(ranges, lattice))
        if counts[heavy[-1]] > needed(len(heavy) << BITS, noise):
            return find_points(histogram, ranges, lattice, whole * POINTS_PART, records)
        heavy.pop()
    return {}, 0.0


def _without(edges: Floats, counts: Integers, points: Mapping[float, float]) -> Integers:
    """Counts of cells less those of points."""
    left = counts.astype(float)
    places = np.searchsorted(edges, list(points), side="right") - 1
    np.subtract.at(left, np.clip(places, 0, len(left) - 1), list(points.values()))
    rounded: Integers = np.rint(left).astype(np.int64)
    return rounded


def _bins(
    histogram: Histogram,
    before: tuple[Floats, Integers, float],
    bins: int,
    step: float,
    part: float,
    points: tuple[float, ...],
) -> tuple[float, ...]:
    """Edges of bins from one more histogram, of the significant range of the one before."""
    edges, counts, scale = before
    first, end = significant_range(counts, scale, 1.0) or (0, len(counts))
    level = min(max(PART_OF_MEAN * float(counts[first:end].mean()) / scale, FAINT), PLAIN)
    first, end = significant_range(counts, scale, level) or (first, end)
    edges = divide(float(edges[first]), float(edges[end]), step)
    counts, scale = histogram(edges, part, points)
    first, end = significant_range(counts, scale, FAINT) or (0, len(counts))
    mass = np.maximum(counts[first:end] - SHRINK * scale, 0.0)
    return merge_cells(edges[first : end + 1], mass if mass.any() else mass + 1, bins)


def octaves(step: float) -> Floats:
    """Edges at zero and at powers of two times the step, on either side."""
    least = step or MIN_SIZE
    sizes = least * 2.0 ** np.arange(math.floor(math.log2(MAX_SIZE / least)) + 1)
    return np.concatenate([-sizes[::-1], [0.0], sizes])


def divide(low: float, high: float, step: float) -> Floats:
    """Divide a range into cells of equal width, and into narrower ones near zero."""
    even = np.linspace(low, high, CELLS + 1)
    size = max(abs(low), abs(high))
    powers = size * 2.0 ** (
        -np.arange(STEPS_PER_OCTAVE * math.log2(1 / FINEST) + 1) / STEPS_PER_OCTAVE
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


def significant_range(counts: Integers, scale: float, level: float) -> tuple[int, int] | None:
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
    runs: list[tuple[int, int]] = []
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
