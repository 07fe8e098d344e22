"""Find single values that many records share, by noisy histograms that each zoom in on the last.

A record is in one cell of each histogram, so a histogram costs as much as one count, however many
cells it has. A value that holds a few percent of the records shows above the noise of millions of
cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..arrays import Floats, Integers
from .partition import Lattice

# Returns noisy counts of the k cells between edges [shape=(k + 1,)] for a part of the budget, and
# the scale of their noise. Numbers listed last are left out.
Histogram = Callable[[Floats, float, Sequence[float]], tuple[Integers, float]]

# A cell is cut in 2**BITS cells at a time. So numbers of double precision are found in three
# histograms at most. CELLS_CUT cells are cut first, and POINTS points found at most.
BITS, CELLS_CUT, POINTS = 17, 6, 20
# A point has this many times the records of BESIDE cells on either side.
FACTOR, BESIDE = 3.0, 3
# Least share of the records of a point, and scales of the noise that a count exceeds noise in so
# many cells by: more than noise alone with a probability of exp(-MARGIN).
SHARE, MARGIN = 0.02, 7.0


def rounds_of(ranges: Sequence[tuple[float, float]], lattice: Lattice) -> int:
    """How many histograms find points within ranges of numbers."""
    widths = [_key(high, lattice) - _key(low, lattice) for low, high in ranges]
    return max(-(-max(width - 1, 1).bit_length() // BITS) for width in widths)


def needed(cells: int, scale: float) -> float:
    """The count that noise does not reach in so many cells."""
    return scale * (math.log(cells) + MARGIN)


def find_points(
    histogram: Histogram,
    ranges: Sequence[tuple[float, float]],
    lattice: Lattice,
    part: float,
    records: float,
) -> tuple[dict[float, float], float]:
    """Find points within some ranges.

    Args:
        histogram: releases noisy counts.
        ranges: ranges of numbers, each with its end excluded, apart from each other.
        lattice: which numbers there are.
        part: part of the budget that may be spent.
        records: about how many records there are.

    Returns:
        Noisy counts by point, and the part of the budget that was spent.
    """
    rounds = rounds_of(ranges, lattice)
    waiting = sorted((_key(low, lattice), _key(high, lattice)) for low, high in ranges)
    found: dict[float, float] = {}
    spent = 0.0
    for _ in range(rounds):
        firsts, ends = (
            np.concatenate(sides)
            for sides in zip(*map(_cut, *zip(*waiting, strict=True)), strict=True)
        )
        edges = np.union1d(firsts, ends)
        numbers = np.concatenate([[-np.inf], _numbers(edges, lattice), [np.inf]])
        counts, scale = histogram(numbers, part / rounds, ())
        spent += part / rounds
        inside = counts[np.searchsorted(edges, firsts) + 1]
        least = max(needed(len(firsts), scale), SHARE * records)
        heavy = np.argsort(-inside, kind="stable")[:POINTS]
        heavy = heavy[inside[heavy] > least]
        alone = heavy[ends[heavy] - firsts[heavy] == 1]
        beside = alone[:, None] + [BESIDE + i for i in range(-BESIDE, BESIDE + 1) if i]
        usual = np.median(np.pad(inside, BESIDE)[beside], axis=1)
        alone = alone[inside[alone] > FACTOR * usual]
        found |= dict(
            zip(_numbers(firsts[alone], lattice).tolist(), inside[alone].tolist(), strict=True)
        )
        wide = np.sort(heavy[ends[heavy] - firsts[heavy] > 1])
        waiting = list(zip(firsts[wide].tolist(), ends[wide].tolist(), strict=True))
        if not waiting:
            break
    kept = sorted(found, key=lambda point: -found[point])[:POINTS]
    return {point: float(found[point]) for point in sorted(kept)}, spent


def _cut(first: int, end: int) -> tuple[Integers, Integers]:
    """First and end of each cell of a range of keys; 0 has a cell of its own."""
    step = max(-(-(end - first) >> BITS), 1)
    edges = np.append(np.arange(first, end, step, dtype=np.int64), np.int64(end))
    if first <= 0 < end:
        edges = np.union1d(edges, np.array([0, 1], np.int64))
    return edges[:-1], edges[1:]


def _key(number: float, lattice: Lattice) -> int:
    """A whole number for each number, in their order: steps, or the place among all doubles."""
    if lattice.step:
        return math.ceil(lattice.place(number))
    bits = int(np.float64(number).view(np.int64))
    return bits if bits >= 0 else -(bits & ((1 << 63) - 1))


def _numbers(keys: Integers, lattice: Lattice) -> Floats:
    """The numbers of keys [shape=(n,), float64]."""
    if lattice.step:
        return lattice.value(keys)
    numbers: Floats = np.abs(keys).view(np.float64)
    return np.where(keys >= 0, numbers, -numbers)
