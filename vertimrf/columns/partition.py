"""Cells of numbers: single values and intervals, in order."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Flags, Floats, Int32s, Integers
from .text import OUTSIDE

# Most cells of a fine marginal.
FINE_CELLS = 1024
# An interval whose ends differ by this factor is cut in cells of equal ratio, down to the share
# FINEST of the farther end. Amounts of money often span several powers of ten.
RATIO, FINEST = 3.0, 2.0**-12
# A number is a multiple of a step if it is within this part of the step, or of itself.
NEAR, ERROR = 5e-7, 2.0**-50


@dataclass(frozen=True)
class Lattice:
    """Which numbers there are: all; multiples of a step, beyond an offset; or listed ones.

    Attributes:
        step: distance of neighbours; 0 if there is none.
        offset: one of the numbers.
        listed: the numbers, increasing; empty if they are not listed.
    """

    step: float = 0.0
    offset: float = 0.0
    listed: tuple[float, ...] = ()

    @cached_property
    def digits(self) -> int:
        """Decimals of the step and the offset."""
        return max(decimals(self.step), decimals(self.offset))

    @property
    def dense(self) -> bool:
        """Whether there is a number between any two."""
        return not (self.step or self.listed)

    @cached_property
    def _values(self) -> Floats:
        return np.array(self.listed)

    def place(self, number: float) -> float:
        """A number in steps beyond the offset."""
        return float(self._places(np.array([number]))[0])

    def snapped(self, number: float) -> float:
        """The multiple of the step that a number is, but for rounding, or the number."""
        place = self.place(number) if self.step else 0.5
        return float(self.value(round(place))) if place == round(place) else number

    def value(self, steps: np.ndarray | int) -> Floats:
        """The numbers of whole steps beyond the offset."""
        # Rounding removes errors such as 3 * 0.1 = 0.30000000000000004.
        product: Floats = np.round(np.asarray(steps, float) * self.step + self.offset, self.digits)
        return product

    def at(self, places: Floats | Integers) -> Floats:
        """The numbers at places, which count listed numbers or steps, if they are not dense."""
        if not self.listed:
            return self.value(places)
        return self._values[np.clip(places, 0, len(self.listed) - 1).astype(np.int64)]

    def within(self, lows: Floats, stops: Floats) -> tuple[Floats | Integers, Floats | Integers]:
        """Places of the least and the greatest number of ranges, from ``lows`` to below ``stops``.

        The greatest is before the least where there is no number. All are arrays [shape=(n,)].
        """
        if self.listed:
            least, end = (np.searchsorted(self._values, side) for side in (lows, stops))
            return least, end - 1
        first, last = np.ceil(self._places(lows)), np.ceil(self._places(stops)) - 1
        # What lies beside a multiple rounds to it.
        first += self.value(first) < lows
        last += self.value(last + 1) < stops
        return first, last

    def ends(self, low: float, stop: float) -> tuple[float, float] | None:
        """The least and the greatest number from ``low`` to below ``stop``; None if there is none."""
        least, most, held = self.all_ends(np.array([low]), np.array([stop]))
        return (float(least[0]), float(most[0])) if held[0] else None

    def all_ends(self, lows: Floats, stops: Floats) -> tuple[Floats, Floats, Flags]:
        """As :meth:`ends`, of many ranges: least, greatest, and whether there is one [each shape=(n,)]."""
        if self.dense:
            return lows, np.nextafter(stops, -np.inf), lows < stops
        first, last = self.within(lows, stops)
        return self.at(first), self.at(last), first <= last

    def _places(self, numbers: Floats) -> Floats:
        """As :meth:`place`, of many numbers."""
        places = (numbers - self.offset) / self.step
        # Rounding removes errors such as 0.7 / 0.1 = 6.999..., which are as large as the places are.
        nearest = np.rint(places)
        near = np.abs(places - nearest) <= np.maximum(NEAR, ERROR * np.abs(places))
        rounded: Floats = np.where(near, nearest, places)
        return rounded

    def floored(self, numbers: Floats) -> Floats:
        """The multiples of the step that numbers are, or else those before [shape=(n,)]."""
        return self.value(np.floor(self._places(numbers)))

    def after(self, number: float) -> float:
        """The next multiple of the step after a number."""
        return float(self.value(math.floor(self.place(number)) + 1))

    def counts(self, lows: Floats, highs: Floats) -> Integers:
        """How many numbers there are from one to another one; 0 if they are dense [shape=(n,)]."""
        if self.listed:
            first = np.searchsorted(self._values, lows)
            return np.searchsorted(self._values, highs, side="right") - first
        if not self.step:
            return np.zeros(len(lows), np.int64)
        return np.rint((highs - lows) / self.step).astype(np.int64) + 1


def decimals(number: Any) -> int:
    """Decimals of a number, at most 12."""
    return len(f"{number:.12f}".rstrip("0").partition(".")[2])


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells in order, each a single value or an interval.

    Attributes:
        starts: where cells begin [shape=(cells,), float64, increasing].
        stops: where they end; the end belongs to no cell [shape=(cells,), float64].
        lows: least number of each cell [shape=(cells,), float64].
        highs: greatest number of each cell [shape=(cells,), float64].
        points: cells that stand for a point of the domain [shape=(cells,), bool].
    """

    starts: Floats
    stops: Floats
    lows: Floats
    highs: Floats
    points: Flags

    @classmethod
    def of(cls, edges: tuple[float, ...], points: tuple[float, ...], lattice: Lattice) -> Partition:
        """Bins between edges, the last with its upper edge, and points, which bins do not hold.

        A bin without a number of the lattice beside its points is left out.
        """
        edges = tuple(map(lattice.snapped, edges))
        cells: list[tuple[float, float, bool]] = [
            (point, _after(point, edges, lattice), True) for point in points
        ]
        ends = (*edges[:-1], math.nextafter(edges[-1], math.inf))
        inside = np.array(points)
        for low, high in itertools.pairwise(ends):
            for point in inside[(inside >= low) & (inside < high)].tolist():
                cells.append((low, point, False))
                low = _after(point, edges, lattice)
            cells.append((low, high, False))
        kept = []
        for start, stop, is_point in sorted(cells):
            held = (start, start) if is_point else lattice.ends(start, stop)
            if start < stop and held is not None:
                kept.append((start, stop, *held, is_point))
        columns = zip(*kept, strict=True)
        starts, stops, lows, highs = (np.array(next(columns)) for _ in range(4))
        return cls(starts, stops, lows, highs, np.array(next(columns)))

    def __len__(self) -> int:
        return len(self.starts)

    def codes(self, numbers: Floats) -> Int32s:
        """The cell of each number; OUTSIDE of those in no cell and of NaN [shape=(n,), int32]."""
        codes = np.searchsorted(self.starts, numbers, side="right").astype(np.int32) - 1
        codes[~(numbers < self.stops[codes]) | (codes < 0)] = OUTSIDE
        return codes

    def nearest(self, numbers: Floats) -> Int32s:
        """The cell nearest to each number [shape=(n,), int32]."""
        above = np.clip(np.searchsorted(self.starts, numbers, side="right"), 0, len(self) - 1)
        below = np.maximum(above - 1, 0)
        with np.errstate(over="ignore", invalid="ignore"):
            nearer = np.abs(numbers - self.highs[below]) <= np.abs(self.lows[above] - numbers)
        last = numbers >= self.starts[-1]
        return np.where(last, len(self) - 1, np.where(nearer, below, above)).astype(np.int32)

    def finer(self, lattice: Lattice) -> tuple[Partition, Integers] | None:
        """Cells inside these cells, FINE_CELLS at most, and the cell that each is inside.

        None if no cell has several.
        """
        if len(self) >= FINE_CELLS:
            return None
        numbers = lattice.counts(self.lows, self.highs)
        each = (FINE_CELLS - int(self.points.sum())) // max(int((~self.points).sum()), 1)
        every = not lattice.dense and numbers.sum() <= FINE_CELLS
        inside = [
            [(self.starts[i], self.stops[i], self.lows[i], self.highs[i])]
            if self.points[i] or self.lows[i] == self.highs[i]
            else self._cut(i, lattice, int(numbers[i]), int(numbers[i]) if every else each)
            for i in range(len(self))
        ]
        owners = np.repeat(np.arange(len(self)), [len(cells) for cells in inside])
        if len(owners) == len(self):
            return None
        starts, stops, lows, highs = np.array([cell for cells in inside for cell in cells]).T.copy()
        return Partition(starts, stops, lows, highs, self.points[owners]), owners

    def _cut(self, cell: int, lattice: Lattice, count: int, most: int) -> list[tuple[float, ...]]:
        """Cells inside one cell of ``count`` numbers, ``most`` at most."""
        start, stop = float(self.starts[cell]), float(self.stops[cell])
        low, high = float(self.lows[cell]), float(self.highs[cell])
        if 0 < count <= most:
            first, _ = lattice.within(self.lows[[cell]], self.stops[[cell]])
            values = lattice.at(first + np.arange(count))
            between = (values[1:] + values[:-1]) / 2 if lattice.listed else values[1:]
        else:
            between = _cuts(low, high, most)
            if lattice.step and not lattice.listed:
                steps = np.ceil((between - lattice.offset) / lattice.step - 1e-6)
                between = lattice.value(np.unique(steps))
        between = between[(between > start) & (between < stop)]
        ends = [start, *between.tolist(), stop]
        starts, stops = np.array(ends[:-1]), np.array(ends[1:])
        lows, highs, held = lattice.all_ends(starts, stops)
        cells = np.array([starts, stops, lows, highs])[:, held]
        return [(*cell,) for cell in cells.T.tolist()]


def _after(point: float, edges: tuple[float, ...], lattice: Lattice) -> float:
    """Where the cell of a point ends: a multiple of a step stands for all numbers up to the next."""
    least = math.nextafter(point, math.inf)
    if not lattice.step or not edges[0] <= point <= edges[-1]:
        return least
    return max(least, min(lattice.after(point), math.nextafter(edges[-1], math.inf)))


def _cuts(low: float, high: float, cells: int) -> Floats:
    """Where an interval is cut: in equal ratios if its ends differ by much, else in equal parts."""
    if high <= 0:
        return -_cuts(-high, -low, cells)[::-1]
    least = max(low, high * FINEST)
    if low < 0 or high < RATIO * least:
        # Half of each, so that no end overflows.
        parts = np.arange(1, cells) / cells
        return low * (1 - parts) + high * parts
    # The first cell is wider where the interval goes on below.
    ratios: Floats = np.geomspace(least, high, cells + (least == low))[:-1]
    return ratios[1:] if least == low else ratios
