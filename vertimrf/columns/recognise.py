"""Recognise what numbers of a column have in common: their step, values that stand out, lists, codes and written dates.

Everything here is a function of the distinct values and of the records that have each. Dates and times are numbers as well
(:mod:`vertimrf.columns.calendar`). Rules are tried on generated tables and on public ones (``tests/columns/test_recognise.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Flags, Floats, Integers, Pair, Words
from .edges import drafted_edges
from .notations import epoch

Number = int | float
Reals = Floats | Integers

# Columns with at most this many distinct numbers are lists, with a code for each.
LISTED = 64
# Most values of a grid, which is a list whose values share bins.
LONGEST_GRID = 1000
# A grid is complete if a further record is new with at most this probability: the part of records whose value no other has (Good and
# Turing). It says more than the step if at most FILLED of the step's multiples occur.
# Codes may lack more: what lies between them is none.
UNSEEN, UNSEEN_CODES, FILLED = 0.01, 0.05, 0.5
# This part of the records may lie off the step, or out of reach. They are rounded and clamped.
STRAY = 0.001
# A value is out of reach if it is this many times the size of the values of nearly all records: more steps than double precision has
# between them and 0, with a few left for the bin's width.
REACH = 2.0**40
# A value is a point if it exceeds what its neighbours suggest by this part of the records, by this factor, and by this many
# standard errors. The part is smaller for 0 and the least and greatest value, which mostly have a meaning, and still smaller for a
# value that lies alone: as far from the next as most records spread. Lighter heaps are left to the fine marginal inside bins.
POINT, END, ALONE, FACTOR, ERRORS = 0.01, 0.005, 0.001, 3.0, 5.0
# They suggest the second largest count of this many on a side, so that heaps as regular as the step are no points.
POINTS, NEIGHBOURS = 20, 6
# Most bins of the values that are no points, and fewest. An edge is not moved to a point if a bin then has more than HEAVY of the records.
BINS, FEWEST, HEAVY = 16, 8, 0.25
# Numbers whose squares are to be summed are smaller.
LARGE = 1e100
# Digits after the decimal point that a step may have, and the largest number of steps from 0, so that rounding errors of double
# precision are no steps. A step that leaves strays spans the values in at most COARSE times as many steps as there are records: numbers
# of seven significant digits fit any step that is fine enough, except some.
DIGITS, COARSE = 9, 1000
STEPS, ROUNDING = 1e12, 16 * 2.0**-52
# The same for numbers of single precision.
SINGLE_STEPS, SINGLE_ROUNDING = 1e6, 2.0**-23
# Codes have at least this many digits, and all the same number, or one less.
CODE_DIGITS = 4
# How written dates are read, and the years that people mean.
WRITTEN = ("%Y%m%d", "%Y%m", "%H%M")
YEARS = (1850, 2100)
# Moments that are written as numbers, as HL7 does, and what their clock is below.
MOMENTS = {"%Y%m%d%H%M%S": 10**6, "%Y%m%d%H%M": 10**4}
# Probability that numbers without a meaning pass as dates.
CHANCE = 1e-4
# Times go on to this minute of an hour, or would with one step more.
LAST_MINUTE = 55
# Fewer records than this part are within the first hour of the day. Of small counts, most are.
FIRST_HOUR = 0.5


@dataclass(frozen=True)
class Shape:
    """What the values of a column have in common.

    Attributes:
        listed: whether the values are few, so that each is a category; ``grid`` then holds them, and nothing else is set.
        step, offset: values, except points and strays, are ``offset`` plus multiples of ``step``; 0 if they have no step.
        digits: digits after the decimal point that ``step`` and ``offset`` have. So ``round(offset + i * step, digits)`` is the
            double that a decimal text has.
        single: whether only the rounding to single precision of that double is the value, as 1.399999976 for 1.4.
        strays: records with values off the step. They are to be rounded to the nearest value: a step that holds for all but
            them is what people know of the column.
        points: values that stand out of their neighbours, ascending. Each is a value of its own and may lie off the step, as 0 among
            prices that end in .99, or a sentinel.
        edges: edges of bins for all other values, ascending, each of them one of the values on the step; the last bin includes its upper
            edge. The first and last are the least and greatest of those values. A bin is without the points in it, and is not empty
            then; where a point is between bins, it is an edge. Empty if the points are all.
        grid: all values, ascending, if they are a list that seems complete and of which the step does not tell; else empty.
        codes: whether the values are whole numbers that name something, as occupations and counties, rather than count it.
        clamp: whether values lie beyond the cells, so far that arithmetic cannot take them.
    """

    listed: bool = False
    step: Number = 0
    offset: Number = 0
    digits: int = 0
    single: bool = False
    strays: int = 0
    points: tuple[Number, ...] = ()
    edges: tuple[Number, ...] = ()
    grid: tuple[Number, ...] = ()
    codes: bool = False
    clamp: bool = False


def recognise(values: Reals, counts: Integers, *, day: int = 0, clamp: bool = False) -> Shape:
    """What the values of a column have in common.

    Args:
        values: the distinct values, ascending and finite, at least one [shape=(k,), float64, or int64 for whole numbers, which are
            then exact beyond 2**53].
        counts: records with each of them, at least 1 [shape=(k,), int64].
        day: length of a day in the values' unit if they are dates (1) or timestamps (86,400); 0 for other values.
        clamp: whether the column has further values that are to be clamped, as infinite ones. It then needs bounds, and is no list.

    Returns:
        The shape.
    """
    if len(values) <= LISTED and not clamp:
        return Shape(listed=True, grid=tuple(values.tolist()))
    records = int(counts.sum())
    near = _within_reach(values, counts)
    clamp, values, counts = clamp or not near.all(), values[near], counts[near]
    heavy = _points(values, counts, records)
    if np.count_nonzero(~heavy) == 1:
        heavy[:] = True
    rest, weights = values[~heavy], counts[~heavy]
    step, offset, digits, single, fits = _step(rest, weights)
    strays = int(weights[~fits].sum())
    # The bounds are on the step, so that what is rounded stays within them.
    rest, weights = rest[fits], weights[fits]
    edges: tuple[Number, ...] = ()
    if len(rest) > 1:
        beside = heavy.copy()
        if step:
            beside[heavy] = [_is_multiple(p, step, offset, single) for p in values[heavy].tolist()]
        drawn = _edges(rest, weights, records)
        edges = _beside(drawn, values[beside], rest, weights, records)
    grid = _months(values, counts, day) if day else ()
    codes = not (day or digits) and _codes(values, counts, step)
    if not grid and len(values) <= LONGEST_GRID and (codes or _complete(values, counts, step)):
        grid = tuple(values.tolist())
    return Shape(
        step=step,
        offset=offset,
        digits=digits,
        single=single,
        strays=strays,
        points=tuple(values[heavy].tolist()),
        edges=edges,
        grid=grid,
        codes=codes,
        clamp=clamp,
    )


def _within_reach(values: Reals, counts: Integers) -> Flags:
    """Whether arithmetic on all values at once can take each value."""
    size = np.abs(values.astype(float))
    order = np.argsort(size)
    few = max(2, int(STRAY * counts.sum()))
    largest = size[order][np.cumsum(counts[order]) <= counts.sum() - few]
    usual = largest[-1] if len(largest) else size.max()
    if usual == 0:
        usual = np.median(size[size > 0]) if size.any() else 0.0
    near: Flags = size / REACH <= usual
    return near


def _places(values: Reals) -> Floats:
    """The values between 0 and 1, the least and the greatest; without overflow."""
    whole = values.dtype.kind == "i"
    away = _away(values).astype(float) if whole else values / 2 - values[0] / 2
    places: Floats = away / max(float(away[-1]), math.ulp(0.0))
    return places


def _away(values: Reals) -> Words:
    """Distances of whole numbers from the first, which is the least; exact, also beyond 2**63."""
    away: Words = values.astype(np.uint64) - values[:1].astype(np.uint64)
    return away


def _bulk(counts: Integers) -> Pair:
    """Positions of the values at the first and the last percent of the records."""
    below = np.cumsum(counts)
    first, last = np.searchsorted(below, [0.01 * below[-1], 0.99 * below[-1]])
    return int(first), int(last)


def _points(values: Reals, counts: Integers, records: int) -> Flags:
    """Which values stand out of their neighbours: at most POINTS of them, the heaviest."""
    places = _places(values)
    first, last = _bulk(counts)
    gaps = np.diff(places, prepend=-np.inf, append=np.inf)
    gap = np.minimum(gaps[:-1], gaps[1:])
    spread = places[last] - places[first]
    end = values == 0
    end[[0, -1]] = True
    share = np.where(gap >= spread, ALONE, np.where(end, END, POINT))
    excess = np.zeros(len(values))
    for at in np.flatnonzero(counts >= records * share).tolist():
        low, high = max(0, at - NEIGHBOURS), at + 1 + NEIGHBOURS
        around = [np.sort(side)[-2:] for side in (counts[low:at], counts[at + 1 : high])]
        steps = np.diff(places[low:high])
        usual = float(np.median(steps)) if len(steps) else 0.0
        # Neighbours say less of a value, the farther they lie.
        expected = max((float(side[0]) for side in around if len(side)), default=0.0)
        if gap[at] > usual:
            expected *= usual / gap[at]
        more = counts[at] - expected
        if (
            more >= records * share[at]
            and counts[at] >= FACTOR * expected
            and more >= ERRORS * math.sqrt(max(1.0, expected))
        ):
            excess[at] = more
    heavy = np.zeros(len(values), bool)
    heavy[np.argsort(-excess, kind="stable")[:POINTS]] = True
    return heavy & (excess > 0)


def _step(values: Reals, counts: Integers) -> tuple[Number, Number, int, bool, Flags]:
    """The largest step that all but strays are multiples of.

    Returns:
        The step, the offset, their digits, whether values have single precision; and which values fit. All fit the step 0, which
        stands for none.
    """
    records = int(counts.sum())
    strays = STRAY * records
    for digits, single, scaled, whole in _scaled(values):
        if counts[~whole].sum() > strays or np.count_nonzero(whole) < 2:
            continue
        away, weights = _away(scaled[whole]), counts[whole]
        allowed = strays - (records - int(weights.sum()))
        for step in sorted(_divisors(away, weights), reverse=True):
            left = away % np.uint64(step)
            residues, which = np.unique(left, return_inverse=True)
            among = np.bincount(which, weights)
            usual = int(among.argmax())
            if among.sum() - among[usual] <= allowed:
                break
        else:
            continue
        fits = whole.copy()
        fits[whole] = which == usual
        steps = int(away[fits[whole]][-1] - away[fits[whole]][0]) // step
        if steps == 0 or (not fits.all() and steps > COARSE * records):
            continue
        offset = (int(scaled[whole][0]) + int(residues[usual])) % step
        if digits == 0:
            return step, offset, 0, False, fits
        return step / 10**digits, offset / 10**digits, digits, single, fits
    return 0, 0, 0, False, np.ones(len(values), bool)


def _scaled(values: Reals) -> Iterator[tuple[int, bool, Integers, Flags]]:
    """The values as whole numbers of 1, 0.1, 0.01, ...

    Yields:
        Digits; whether the values are taken for decimals that were rounded to single precision; the whole numbers; and which of the
        values these are, within rounding.
    """
    if values.dtype.kind == "i":
        yield 0, False, values.astype(np.int64), np.ones(len(values), bool)
        return
    for single, most, rounding in (
        (False, STEPS, ROUNDING),
        (True, SINGLE_STEPS, SINGLE_ROUNDING),
    ):
        # Reading texts may be off by a unit in the last place.
        if single and not _alike(values, values.clip(-1e38, 1e38).astype(np.float32), ROUNDING):
            return
        for digits in range(single, DIGITS + 1):
            limit = most if digits else 2.0**53
            scaled = np.where(np.abs(values) < limit / 10**digits, values, np.nan) * 10**digits
            nearest = np.rint(scaled)
            whole = np.abs(scaled - nearest) <= rounding * np.abs(nearest) * (digits > 0)
            yield digits, single, np.where(whole, nearest, 0).astype(np.int64), whole


def _alike(values: Any, others: Any, rounding: float) -> bool:
    """Whether numbers are the same, within rounding."""
    return bool((np.abs(values - others) <= rounding * np.abs(values)).all())


def _divisors(away: Words, counts: Integers) -> set[int]:
    """Greatest common divisors of the differences of all values, and of samples, some of which have no strays.

    Samples are drawn as the records are, so that the result does not depend on the number of distinct strays. Each size is drawn
    often enough that a value of half a percent of the records is not overlooked in all of them.
    """
    rng = np.random.default_rng(0)
    below = np.cumsum(counts)
    found = {int(np.gcd.reduce(away))}
    for size in (32, 256):
        for _ in range(8):
            drawn = away[np.searchsorted(below, rng.integers(0, below[-1], size), side="right")]
            found.add(int(np.gcd.reduce(drawn - drawn.min())))
    return found - {0}


def _is_multiple(value: Number, step: Number, offset: Number, single: bool) -> bool:
    """Whether a value is the offset plus a multiple of the step."""
    if isinstance(value, int):
        return (value - int(offset)) % int(step) == 0
    nearest = offset + round((value - offset) / step) * step
    return _alike(value, nearest, SINGLE_ROUNDING if single else ROUNDING)


def _edges(values: Reals, counts: Integers, records: int) -> Reals:
    """Edges of bins, from the least value to the greatest; fewer bins if the values have few of all records."""
    bins = max(FEWEST, math.ceil(BINS * counts.sum() / records))
    # Whole numbers beyond 2**53 keep their digits, and squares of large numbers are finite.
    away: Floats = _away(values).astype(float) if values.dtype.kind == "i" else values.astype(float)
    away = away if np.abs(away).max() < LARGE else _places(values)
    kept = np.searchsorted(away, drafted_edges(away, counts, bins))
    kept[-1] = len(values) - 1
    chosen: Reals = values[np.unique(kept)]
    return chosen


def _beside(
    edges: Reals, points: Reals, values: Reals, counts: Integers, records: int
) -> tuple[Number, ...]:
    """The edges, of which some are moved to a point, so that it parts few bins in two.

    An edge moves to the nearest point between the edges beside it, which stay: so edges keep their order. It stays where it is if a
    bin beside it would have more than HEAVY of all records.

    Args:
        edges: edges of the bins of ``values``.
        points: the points that edges may be moved to, ascending.
        values: the values that are no points, ascending.
        counts: records of each of them.
        records: records of the column.
    """
    below = np.append(0, np.cumsum(counts))
    moved, left = edges.copy(), points

    def part(low: Number, high: Number) -> int:
        """Records of a bin."""
        begin, end = np.searchsorted(values, [low, high])
        return int(below[end] - below[begin])

    for at in range(1, len(edges) - 1):
        low, high = moved[at - 1], edges[at + 1]
        near = left[(left > low) & (left < high)]
        if len(near):
            point = near[np.argmin(np.abs(near / 2 - edges[at] / 2))]
            if max(part(low, point), part(point, high)) <= HEAVY * records:
                moved[at], left = point, left[left != point]
    # A bin that has no value of its own is joined with the one before.
    _, kept = np.unique(np.searchsorted(values, moved[:-1]), return_index=True)
    return tuple(np.append(moved[kept], moved[-1:]).tolist())


def _complete(values: Reals, counts: Integers, step: Number, unseen: float = UNSEEN) -> bool:
    """Whether the values are a list that lacks few, and that says more than their step."""
    again = np.count_nonzero(counts == 1) <= unseen * counts.sum()
    return bool(again and _filled(values, counts, step) <= FILLED)


def _filled(values: Reals, counts: Integers, step: Number) -> float:
    """The part of the step's multiples that occur, where nearly all records are."""
    first, last = _bulk(counts)
    steps = (float(values[last]) - float(values[first])) / step if step else math.inf
    return (last - first + 1) / (steps + 1)


def _codes(values: Reals, counts: Integers, step: Number) -> bool:
    """Whether whole numbers name something: they have one length, leave gaps, and come again."""
    low, high = abs(int(values[0])), abs(int(values[-1]))
    if values[0] < 0 or not 1 <= step < 10 or len(str(low)) < max(CODE_DIGITS, len(str(high)) - 1):
        return False
    return _complete(values, counts, step, UNSEEN_CODES)


def _months(values: Reals, counts: Integers, day: int) -> tuple[Number, ...]:
    """All first, or last, days of months, quarters or years between the least and the greatest, if nearly all values are such days."""
    days = np.floor_divide(values, day).astype(np.int64)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    for which, back in ((days == _first_days(months), 0), (days == _first_days(months + 1) - 1, 1)):
        which &= values % day == 0
        if counts[~which].sum() > STRAY * counts.sum():
            continue
        number = months[which]
        every = int(np.gcd.reduce(number - number[0]))
        if every and (number[-1] - number[0]) // every < LONGEST_GRID:
            all_months = np.arange(number[0], number[-1] + 1, every) + back
            listed = (_first_days(all_months) - back) * day
            return tuple(listed.astype(values.dtype).tolist())
    return ()


def _first_days(months: Integers) -> Integers:
    """The first days of months, both counted from January 1970."""
    # Whole numbers: to add one to a date is an error of coming versions of NumPy.
    days: Integers = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return days


def written_dates(values: Reals, counts: Integers) -> str | None:
    """How whole numbers such as 20190131, 201901 or 1730 are written dates or times.

    Args:
        values: the distinct values, ascending and finite, at least one [shape=(k,)].
        counts: records with each of them [shape=(k,)].

    Returns:
        The format in the codes of ``datetime.strptime``: "%Y%m%d", "%Y%m" or "%H%M", whose texts have leading zeros (0730); one
        of MOMENTS; or one of :mod:`.notations.epoch`.
        None if fewer than 99.9 % of the records are such dates between 1850 and 2100, or if numbers with the same range and
        step would be by chance.
    """
    if (since := epoch.seen(values)) is not None:
        return since
    for format, clock in MOMENTS.items():
        if counts[~_are_moments(values, clock)].sum() <= STRAY * counts.sum():
            return format
    for format in WRITTEN:
        low, high = (0, 2359) if format == "%H%M" else (YEARS[0] * 100, YEARS[1] * 100 + 12)
        if format == "%Y%m%d":
            low, high = low * 100, high * 100 + 31
        usual = (values >= low) & (values <= high) & (values % 1 == 0)
        if counts[~usual].sum() > STRAY * counts.sum():
            continue
        numbers = values[usual].astype(np.int64)
        meant = _are(numbers, format)
        if counts[usual][~meant].sum() + counts[~usual].sum() > STRAY * counts.sum():
            continue
        if format == "%H%M" and counts[values < 100].sum() >= FIRST_HOUR * counts.sum():
            continue
        dates = numbers[meant]
        every = int(np.gcd.reduce(dates - dates[0]))
        if every == 0:
            continue
        possible = _are(np.arange(dates[0], dates[-1] + 1, every), format).mean()
        # Numbers of two parts, as 101 to 137 and 201 to 231, rarely have as many of the second as an hour has minutes.
        ends = dates[-1] if format != "%H%M" else (dates % 100).max() + np.gcd.reduce(dates % 100)
        if ends >= LAST_MINUTE and (len(dates) - 2) * math.log(possible) <= math.log(CHANCE):
            return format
    return None


def _are_moments(values: Reals, clock: int) -> Flags:
    """Which numbers are a date and, below ``clock``, hours, minutes and perhaps seconds."""
    first, last = (year * 10_000 * clock for year in (YEARS[0], YEARS[1] + 1))
    held: Flags = (values >= first) & (values < last) & (values % 1 == 0)
    numbers = np.where(held, values, first).astype(np.int64)
    held &= _are(numbers // clock, "%Y%m%d") & (numbers % clock // (clock // 100) < 24)
    while clock > 100:
        clock //= 100
        held &= numbers % clock // (clock // 100) < 60
    return held


def _are(numbers: Integers, format: str) -> Flags:
    """Which whole numbers are dates or times of this format."""
    if format == "%H%M":
        times: Flags = numbers % 100 < 60
        return times
    months = numbers if format == "%Y%m" else numbers // 100
    good: Flags = (months % 100 >= 1) & (months % 100 <= 12)
    if format == "%Y%m":
        return good
    month = (months // 100 - 1970) * 12 + months % 100 - 1
    length = _first_days(month + 1) - _first_days(month)
    good &= (numbers % 100 >= 1) & (numbers % 100 <= length)
    return good
