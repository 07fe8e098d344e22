"""Draw numbers inside bins, as a fine marginal says how they are spread there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..arrays import Floats, Integers

if TYPE_CHECKING:
    from .numbers import Numbers
    from .partition import Partition

# A cell holds more than its neighbours if its count exceeds theirs by this many standard errors of
# the noise; PLAIN neighbours on either side are compared.
SPIKE_ERRORS, PLAIN = 4.0, 4
# Where the ends of a bin differ by this factor, records below x grow as a power of x, from LEAST to MOST; it takes STEPS halvings to find.
WIDE, LEAST, MOST, STEPS = 2.0, -3.0, 4.0, 30
# A half of a bin differs from the straight line by what exceeds this many standard errors.
HALF_ERRORS = 1.5


@dataclass(frozen=True, eq=False)
class Span:
    """Where the numbers of a column are drawn.

    Attributes:
        low, high: the least and the greatest number.
        counts: records of each code, without missing values [shape=(codes,)].
        shape: records of each cell inside the codes, from :meth:`Attribute.shape`
            [shape=(fine cells,), float64]; None if no fine marginal is known.
    """

    low: float
    high: float
    counts: npt.NDArray[np.number]
    shape: Floats | None = None


def numbers_inside(attribute: Numbers, codes: Integers, span: Span, places: Floats) -> Floats:
    """The numbers at some places inside the cells of codes [shape=(n,), float64].

    A place is the share of the code's records with smaller numbers, from 0 to 1. In a cell of the
    fine marginal, all numbers have equal shares.
    """
    cells, _ = _cells_of(attribute)
    owners, shape, within = _shares(attribute, span)
    first = np.searchsorted(owners, np.arange(len(attribute.partition) + 1))
    sums = np.append(0.0, np.cumsum(shape * within))
    below, total = sums[first[codes]], sums[first[codes + 1]]
    at = below + (total - below) * places
    # The last cell with records that begins at or below; cells without records are skipped.
    chosen = np.searchsorted(sums, at, side="right") - 1
    chosen = np.minimum(chosen, first[codes + 1] - 1)
    mass = sums[chosen + 1] - sums[chosen]
    place = np.divide(at - sums[chosen], mass, out=np.zeros(len(at)), where=mass > 0)
    low, high = np.maximum(cells.lows[chosen], span.low), np.minimum(cells.highs[chosen], span.high)
    lattice = attribute.lattice
    if lattice.dense:
        dense: Floats = np.clip(low + (high - low) * np.minimum(place, 1.0), low, high)
        return dense
    # All numbers of a cell have the same chance.
    least, most = lattice.within(low, np.nextafter(high, np.inf))
    most = np.maximum(least, most)
    inside = lattice.at(np.minimum(least + np.floor(place * (most - least + 1)), most))
    # A point beyond the bounds need not be on the grid.
    return np.where(cells.points[chosen], cells.lows[chosen], inside)


def shares_inside(attribute: Numbers, span: Span) -> Floats:
    """Share of each code's records that are drawn within a span [shape=(codes,), float64]."""
    owners, shape, within = _shares(attribute, span)
    part = np.bincount(owners, shape * within, len(attribute.partition))
    every = np.bincount(owners, shape, len(attribute.partition))
    shares: Floats = np.divide(part, every, out=np.zeros(len(part)), where=every > 0)
    return shares


def _cells_of(attribute: Numbers) -> tuple[Partition, Integers]:
    """The cells to draw from, and the code that each is inside [shape=(cells,), int64]."""
    if attribute.fine is None:
        return attribute.partition, np.arange(len(attribute.partition))
    return attribute.fine.partition, attribute.fine.owners


def _shares(attribute: Numbers, span: Span) -> tuple[Integers, Floats, Floats]:
    """By cell: its code, its share of the code's records, and the part of it within the span."""
    cells, owners = _cells_of(attribute)
    codes = len(attribute.partition)
    shape = span.shape
    if shape is None and attribute.fine is not None:
        counts = np.maximum(np.asarray(span.counts, float), 0.0)
        # A code without records in the model has a shape, too.
        shape = attribute.shape(counts + max(counts.sum(), 1.0) * 1e-9, None, 0.0)
    shape = np.ones(len(cells)) if shape is None else np.maximum(shape, 0.0)
    total = np.bincount(owners, shape, codes)[owners]
    alike = 1 / np.bincount(owners, minlength=codes)[owners]
    shape = np.divide(shape, total, out=alike, where=total > 0)
    everywhere = span.low == -np.inf and span.high == np.inf
    return owners, shape, np.ones(len(cells)) if everywhere else _parts(attribute, cells, span)


def _parts(attribute: Numbers, cells: Partition, span: Span) -> Floats:
    """Part of each cell that lies within the span [shape=(cells,), float64]."""
    low, high = np.maximum(cells.lows, span.low), np.minimum(cells.highs, span.high)
    lattice = attribute.lattice
    if not lattice.dense:
        first, last = lattice.within(low, np.nextafter(high, np.inf))
        every = lattice.counts(cells.lows, cells.highs)
        inside = np.maximum(last - first + 1, 0) / np.maximum(every, 1)
    else:
        width = cells.highs - cells.lows
        inside = np.divide(high - low, width, out=np.ones(len(low)), where=width > 0)
    alone = cells.points | (cells.lows == cells.highs)
    parts: Floats = np.where(low > high, 0.0, np.where(alone, 1.0, np.clip(inside, 0.0, 1.0)))
    return parts


def shape_inside(
    attribute: Numbers, counts: Floats, measured: Floats | None, error: float
) -> Floats:
    """Records by cell, whose sums over the cells of a code are the records of the code.

    Without a measurement, the density inside a bin is linear (:func:`_tilts`). A measurement moves
    it by what exceeds the noise: first the cells that hold far more than their neighbours, as heaps
    of round values do, then halves of bins, halves of these, and so on.

    Args:
        attribute: the attribute, with finer cells.
        counts: records of each code, none negative [shape=(codes,)].
        measured: noisy counts of the cells [shape=(cells,)], or None.
        error: standard deviation of that noise.

    Returns:
        Records of each cell [shape=(cells,), float64].
    """
    counts = np.maximum(np.asarray(counts, float), 0.0)
    if measured is None:
        return _line(attribute, counts)
    cells, owners = _cells_of(attribute)
    measured = np.asarray(measured, float)
    spikes = _spikes(cells, owners, measured, error)
    plain = measured - spikes
    left = np.maximum(counts - np.bincount(owners, spikes, len(counts)), 0.0)
    spread = _halves(owners, plain, _line(attribute, left), error)
    out = spikes + spread
    total = np.bincount(owners, out, len(counts))
    scale = np.divide(counts, total, out=np.ones(len(counts)), where=total > 0)
    shape: Floats = out * scale[owners]
    return shape


def _spikes(
    cells: Partition,
    owners: Integers,
    measured: Floats,
    error: float,
) -> Floats:
    """Records of cells beyond those of their neighbours in the bin [shape=(cells,), float64]."""
    usual = np.empty((2 * PLAIN, len(measured)))
    for row, shift in enumerate([s for s in range(-PLAIN, PLAIN + 1) if s]):
        neighbour = np.roll(measured, shift)
        beside = np.roll(owners, shift) == owners
        beside[:shift] &= shift < 0
        usual[row] = np.where(beside, neighbour, np.nan)
    level = measured.copy()
    known = ~np.isnan(usual).all(axis=0)
    level[known] = np.maximum(np.nanmedian(usual[:, known], axis=0), 0.0)
    excess = measured - level
    return np.where((excess > SPIKE_ERRORS * error) & ~cells.points, excess, 0.0)


def _halves(owners: Integers, measured: Floats, line: Floats, error: float) -> Floats:
    """Records by cell: each half of a bin follows the measurement as far as it exceeds the noise.

    Args:
        owners: the bin that each cell is in, increasing [shape=(cells,), int64].
        measured: noisy counts [shape=(cells,)].
        line: records of the cells along straight lines [shape=(cells,)].
        error: standard deviation of the noise of a count.
    """
    count = int(owners[-1]) + 1
    first = np.searchsorted(owners, np.arange(count))
    end = np.searchsorted(owners, np.arange(count), side="right")
    noisy, straight = (np.append(0.0, np.cumsum(values)) for values in (measured, line))
    mass = straight[end] - straight[first]
    out = np.zeros(len(owners))
    while len(first):
        single = end - first == 1
        out[first[single]] = mass[single]
        first, end, mass = first[~single], end[~single], mass[~single]
        middle = (first + end) // 2
        left, right = noisy[middle] - noisy[first], noisy[end] - noisy[middle]
        along = straight[middle] - straight[first]
        every = straight[end] - straight[first]
        part = np.divide(along, every, out=(middle - first) / (end - first), where=every > 0)
        # How far the left half exceeds its part of the whole, and the error of that.
        beyond = left * (1 - part) - right * part
        spread = error * np.sqrt((middle - first) * (1 - part) ** 2 + (end - middle) * part**2)
        kept = 1 - np.square(
            np.divide(HALF_ERRORS * spread, beyond, out=np.ones(len(part)), where=beyond != 0)
        )
        lefts = np.clip(part * mass + np.maximum(kept, 0.0) * beyond, 0.0, mass)
        first, end = np.concatenate([first, middle]), np.concatenate([middle, end])
        mass = np.concatenate([lefts, mass - lefts])
    return out


def _line(attribute: Numbers, counts: Floats) -> Floats:
    """Records by cell along a straight line, or a power, in each bin [shape=(cells,), float64].

    Listed numbers of a bin have the same chance.
    """
    lattice, coarse = attribute.lattice, attribute.partition
    cells, owners = _cells_of(attribute)
    if lattice.listed:
        mass = np.maximum(lattice.counts(cells.lows, cells.highs), 1).astype(float)
    else:
        # A multiple of a step has the width of the step.
        bins = np.flatnonzero(~coarse.points)
        tilt, power = np.zeros(len(coarse)), np.full(len(coarse), np.nan)
        begin, stop = coarse.lows, coarse.highs + lattice.step
        tilt[bins] = _tilts(begin[bins], stop[bins], counts[bins])
        power[bins] = _powers(begin[bins], stop[bins], counts[bins])
        sides, width = (cells.lows, cells.highs + lattice.step), (stop - begin)[owners]
        below, above = (
            place * (1 - tilt[owners] * (1 - place))
            for place in (
                np.divide(end - begin[owners], width, out=np.ones(len(owners)), where=width > 0)
                for end in sides
            )
        )
        mass = np.maximum(above - below, 0.0)
        bent = ~np.isnan(power[owners])
        power, unit = power[owners[bent]], np.maximum(np.abs(begin), np.abs(stop))[owners[bent]]
        below, above = (_grown(side[bent] / unit, power) for side in sides)
        mass[bent] = np.abs(above - below)
    total = np.bincount(owners, mass, len(coarse))
    mass = np.where((total > 0)[owners], mass / np.where(total > 0, total, 1)[owners], 1.0)
    line: Floats = mass * counts[owners]
    return line


def _tilts(starts: Floats, stops: Floats, counts: Floats) -> Floats:
    """By bin: the density inside it rises from 1 - tilt to 1 + tilt times its mean.

    The line keeps the bin's count and stays between the densities of the neighbours; it is level if
    both neighbours are higher or both are lower (van Leer's limiter).
    """
    width, middle = stops - starts, starts / 2 + stops / 2
    density = np.divide(counts, width, out=np.zeros(len(counts)), where=width > 0)
    # The density beyond the bounds is 0.
    beside = np.concatenate([[0], density, [0]])
    at = np.concatenate([starts[:1], middle, stops[-1:]])
    fall, rise = density - beside[:-2], beside[2:] - density
    apart = at[2:] - at[:-2]
    slope = (beside[2:] - beside[:-2]) * width / 2
    slope = np.divide(slope, apart, out=np.zeros(len(slope)), where=apart > 0)
    limit = np.minimum(np.minimum(np.abs(fall), np.abs(rise)), np.abs(slope))
    tilt: Floats = np.where(np.sign(fall) * np.sign(rise) > 0, np.sign(fall) * limit, 0) / np.where(
        density > 0, density, 1
    )
    return tilt


def _powers(starts: Floats, stops: Floats, counts: Floats) -> Floats:
    """By bin: the power of x as which the records below x grow in it; NaN if they grow along a line.

    It is the mean of the powers under which the bin and either neighbour have their records, if
    these are on one side of 0, and the density falls or rises throughout. The last bin of a tail,
    far from 0, has one neighbour.
    """
    out = np.full(len(starts), np.nan)
    if len(starts) < 2:
        return out
    sizes = np.abs([starts, stops])
    low, high = sizes.min(axis=0), sizes.max(axis=0)
    # Of neighbours, the one with the smaller numbers.
    near = np.arange(len(starts) - 1) + (stops[1:] <= 0)
    far = 2 * np.arange(len(starts) - 1) + 1 - near
    least = np.where(np.minimum(low[near], low[far]) > 0, LEAST, 1 / MOST)
    most = np.full(len(near), MOST)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        density = counts / (stops - starts)
        for _ in range(STEPS):
            power = (least + most) / 2
            here, there = (
                _grown(high[at] / high[near], power) - _grown(low[at] / high[near], power)
                for at in (near, far)
            )
            more = counts[far] * here > counts[near] * there
            least, most = np.where(more, power, least), np.where(more, most, power)
    wide, rise, apart = high >= WIDE * low, np.sign(np.diff(density)), (starts < 0) & (stops > 0)
    bent = wide[1:-1] & (rise[1:] * rise[:-1] > 0)
    bent &= (starts[:-2] >= 0) | (stops[2:] <= 0)
    out[1:-1][bent] = (power[1:] / 2 + power[:-1] / 2)[bent]
    for end, beside in ((0, 1), (-1, -2)):
        tail = wide[end] and density[end] < density[beside] and counts[end] < counts[beside]
        if tail and low[end] >= high[beside] and not apart[beside]:
            out[end] = power[end]
    # Beyond what double precision can take, there is a line.
    with np.errstate(invalid="ignore"):
        out[~np.isfinite(_grown(low / high, out))] = np.nan
    return out


def _grown(numbers: Floats, power: Floats) -> Floats:
    """The size of numbers to a power, less 1, over it: nearly the logarithm for a power of 0."""
    power = np.where(np.abs(power) < 1e-6, 1e-6, power)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        grown: Floats = np.expm1(power * np.log(np.abs(numbers))) / power
    return grown
