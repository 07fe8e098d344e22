"""Columns of numbers that are equal, or follow from others: found in a few hundred records, then checked in all.

A column's weighted sum over these records is compared first: of equal columns it is equal, so that one
search among the sorted sums finds what a column equals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Flags, Floats, Integers, Texts
from ..columns.column import Attribute
from ..plan.equations import ROUNDED
from .derived import differ

# Records that are compared first, and those that are compared next.
FIRST, NEXT = 400, 20_000
# Sums of equal columns differ by no more than this part of the sum of their sizes.
NEAR = 1e-5
# Fewest records on either side of a comparison.
EACH = 10
# Part of the records that must have both columns of an order.
FEWEST = 0.2
# Significant digits of constants.
PLAIN = 6


@dataclass(frozen=True, eq=False)
class Alike:
    """Columns of numbers of a table, some of whose records are compared first.

    Attributes:
        names: of the columns.
        numbers: by column, all its numbers, NaN where one is missing [each shape=(n,), float64].
        whole: by column, whether it has whole numbers only.
        rows: the records that are compared first [shape=(m,), int64].
        some: their numbers [shape=(columns, m), float64].
    """

    names: Texts
    numbers: dict[str, Floats]
    whole: dict[str, bool]
    rows: Integers
    some: Floats

    @classmethod
    def of(
        cls, numbers: Mapping[str, Floats], attributes: Sequence[Attribute], records: int
    ) -> Alike:
        """Compare some columns.

        Args:
            numbers: by column, all its numbers [each shape=(records,), float64].
            attributes: the columns to compare.
            records: number of records.
        """
        numbers = {a.name: numbers[a.name] for a in attributes}
        rows = [np.arange(FIRST) * records // FIRST]
        for values in numbers.values():
            # Rare values are among them, so that no column seems to be constant.
            known = np.where(np.isnan(values), 0.0, values)
            rows.append(np.array([known.argmin(), known.argmax()]))
        every = np.unique(np.concatenate(rows))
        some = np.array([values[every] for values in numbers.values()]).reshape(-1, len(every))
        whole = {a.name: a.digits == 0 for a in attributes}
        return cls(tuple(numbers), numbers, whole, every, some)

    @cached_property
    def _weights(self) -> Floats:
        """Weights of the records, which no table's numbers follow [shape=(m,), float64]."""
        weights: Floats = 1 + np.modf(np.arange(len(self.rows)) * (np.sqrt(5) - 1) / 2)[0]
        return weights

    def _sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Weighted sums of columns over the first records, and of their sizes [each shape=(k,)]."""
        with np.errstate(all="ignore"):
            plain = np.where(np.isfinite(values), values, 0.0)
            return plain @ self._weights, np.abs(plain) @ self._weights

    @cached_property
    def _sorted(self) -> tuple[Floats, Integers]:
        """The columns' sums, increasing, and whose each is."""
        sums, _ = self._sums(self.some)
        order = np.argsort(sums, kind="stable")
        return sums[order], order

    def _like(self, values: Floats) -> Iterator[tuple[int, int]]:
        """By row of some columns' first records, each column of the table with nearly its sum."""
        sums, sizes = self._sums(values)
        near = NEAR * np.maximum(sizes, 1e-9)
        ordered, order = self._sorted
        low, high = (
            np.searchsorted(ordered, sums - near),
            np.searchsorted(ordered, sums + near, "right"),
        )
        for row in np.flatnonzero(high > low):
            for place in range(low[row], high[row]):
                yield int(row), int(order[place])

    def _same(self, name: str, values: Floats, tolerance: float) -> bool:
        """Whether a column has some numbers, all of them."""
        stated = self.numbers[name]
        parts = (slice(None, NEXT), slice(NEXT, None))
        return not any(differ(stated[part], values[part], tolerance).any() for part in parts)

    def equal(self, values: Floats) -> str | None:
        """The column that has some numbers, if there is one."""
        for _, column in self._like(values[self.rows][None]):
            if self._same(self.names[column], values, 0.0):
                return self.names[column]
        return None

    def lines(self) -> Iterator[tuple[str, str, int, float, float | None]]:
        """Columns that follow an earlier one along a line: its name, the other's, 1 or -1 and what is
        added, or a factor and nothing added.
        """
        low, high = (
            np.nanmin(self.some, axis=1, keepdims=True),
            np.nanmax(self.some, axis=1, keepdims=True),
        )
        with np.errstate(all="ignore"):
            wide = (high - low)[:, 0]
            risen = (self.some - low) / (high - low)
        # Constant columns, and those with infinite numbers, follow from none.
        apt = (wide > 0) & np.isfinite(wide)
        done: set[int] = set()
        for sign, scaled in ((1, risen), (-1, 1 - risen)):
            ours, sizes = self._sums(risen)
            theirs, _ = self._sums(scaled)
            order = np.argsort(ours, kind="stable")
            for b in range(len(self.names)):
                near = NEAR * max(sizes[b], 1e-9)
                first, last = np.searchsorted(ours[order], [theirs[b] - near, theirs[b] + near])
                for a in sorted(order[first:last].tolist()):
                    if a >= b or a in done or b in done or not (apt[a] and apt[b]):
                        continue
                    line = self._line(a, b, sign, float(wide[b] / wide[a]))
                    if line is not None:
                        done.add(b)
                        yield self.names[b], self.names[a], *line

    def _line(
        self, a: int, b: int, sign: int, slope: float
    ) -> tuple[int, float, float | None] | None:
        """The line that column b follows from column a; None if it is none that a rule can state."""
        one = self.numbers[self.names[a]]
        slope = float(f"{slope:.{PLAIN}g}")
        row = int(np.argmax(~np.isnan(self.some[a] * self.some[b])))
        shift = float(f"{self.some[b, row] - sign * slope * self.some[a, row]:.{PLAIN}g}")
        if slope == 1 and self._same(self.names[b], sign * one + shift, 0.0):
            return sign, shift, None
        if sign > 0 and not shift and self._same(self.names[b], slope * one, ROUNDED):
            return sign, 0.0, slope
        return None

    def comparisons(self) -> Iterator[tuple[str, str, str, float]]:
        """Columns of 0 and 1, each with another column, a sign and a number that it is compared with."""
        for b, name in enumerate(self.names):
            if not self._binary[b]:
                continue
            one, zero = self.some[b] == 1, self.some[b] == 0
            absent = ~(one | zero)
            low1, low0 = (np.where(r, self.some, np.inf).min(axis=1) for r in (one, zero))
            high1, high0 = (np.where(r, self.some, -np.inf).max(axis=1) for r in (one, zero))
            missing = np.isnan(self.some)
            fits = (missing == absent).all(axis=1) & ~self._binary
            point1 = (low1 == high1) & ~(self.some[:, zero] == low1[:, None]).any(axis=1)
            point0 = (low0 == high0) & ~(self.some[:, one] == low0[:, None]).any(axis=1)
            for which, sign in (
                (point1, "=="),
                (point0, "!="),
                (low1 > high0, ">="),
                (high1 < low0, "<="),
            ):
                others = (self.names[a] for a in np.flatnonzero(which & fits))
                told = ((other, self._compared(name, other, sign)) for other in others)
                found = next(
                    ((other, number) for other, number in told if number is not None), None
                )
                if found is not None:
                    yield name, found[0], sign, found[1]
                    break

    @cached_property
    def _binary(self) -> Flags:
        """Which columns have 0 and 1 alone, and several of each [shape=(columns,), bool]."""
        fits = ((self.some == 0) | (self.some == 1) | np.isnan(self.some)).all(axis=1)
        for b in np.flatnonzero(fits):
            values = self.numbers[self.names[b]]
            counts = [int((values == which).sum()) for which in (0, 1)]
            fits[b] = min(counts) >= EACH and sum(counts) == int((~np.isnan(values)).sum())
        found: Flags = fits
        return found

    def _compared(self, name: str, other: str, sign: str) -> float | None:
        """The number that a comparison of another column is with; None if not all records keep it."""
        from ..plan.functions import COMPARED

        values, stated = self.numbers[other], self.numbers[name]
        some, others = values[stated == (sign != "!=")], values[stated == (sign == "!=")]
        number = float(some.max() if sign == "<=" else some.min())
        if sign == ">=":
            number = _roundest(number, lambda tried: others.max() < tried <= number)
        if sign == "<=":
            number = _roundest(number, lambda tried: number <= tried < others.min())
        told = np.where(np.isnan(values), np.nan, COMPARED[sign](values, number))
        return number if self._same(name, told, 0.0) else None

    def logarithms(self) -> Iterator[tuple[str, str]]:
        """Columns that are the logarithm of another."""
        with np.errstate(all="ignore"):
            logs = np.log(self.some)
        for a, b in self._like(logs):
            with np.errstate(all="ignore"):
                values = np.log(self.numbers[self.names[a]])
            values[~np.isfinite(values)] = np.nan
            if a != b and self._same(self.names[b], values, ROUNDED):
                yield self.names[b], self.names[a]

    def pairs(self, sign: str) -> Iterator[tuple[str, str, str]]:
        """Columns that are the sum or the product of two others, or the square of one.

        Args:
            sign: + or *.
        """
        combine = np.add if sign == "+" else np.multiply
        for a, one in enumerate(self.names):
            rest = range(a + (sign == "+"), len(self.names))
            if not rest:
                continue
            with np.errstate(all="ignore"):
                values = combine(self.some[a], self.some[rest.start :])
            for row, column in self._like(values):
                other, name = self.names[rest[row]], self.names[column]
                if name in (one, other):
                    continue
                with np.errstate(all="ignore"):
                    every = combine(self.numbers[one], self.numbers[other])
                whole = sign == "+" or (self.whole[one] and self.whole[other])
                if self._same(name, every, 0.0 if whole else ROUNDED):
                    yield name, one, other

    def partitions(self, most: int) -> Iterator[list[str]]:
        """Sets of three columns or more of 0 and 1 of which every record has exactly one 1, the commonest first.

        Args:
            most: the most columns of a set.
        """
        places = np.flatnonzero(self._binary & ~np.isnan(self.some).any(axis=1))
        together = self.some[places] @ self.some[places].T
        order = np.argsort(-together.diagonal(), kind="stable")
        free = [int(i) for i in order]
        while free:
            chosen = [free.pop(0)]
            for i in list(free):
                if len(chosen) < most and not together[i, chosen].any():
                    chosen.append(i)
                if together[chosen, chosen].sum() == len(self.rows):
                    break
            names = [self.names[places[i]] for i in chosen]
            whole = together[chosen, chosen].sum() == len(self.rows) and len(chosen) > 2
            if whole and (np.sum([self.numbers[name] for name in names], axis=0) == 1).all():
                yield names
                free = [i for i in free if i not in chosen]

    def orders(self, share: float, least: float) -> set[tuple[str, str]]:
        """Pairs of columns of which the first is never above the second.

        Args:
            share: of the records that would break the order of independent columns, at least.
            least: how many records that is, at least.
        """
        out: set[tuple[str, str]] = set()
        for (a, low), (b, high) in itertools.permutations(enumerate(self.names), 2):
            one, other = self.some[a], self.some[b]
            both = ~np.isnan(one + other)
            one, other = one[both], other[both]
            if len(one) < FEWEST * len(self.rows) or (one > other).any():
                continue
            # As if the columns were independent.
            broken = float((one > np.roll(other, 1 + len(other) // 3)).mean())
            records = len(one) / len(self.rows) * len(self.numbers[low])
            if broken < share or broken * records < least:
                continue
            if not (self.numbers[low] > self.numbers[high]).any():
                out.add((low, high))
        return out


def _roundest(number: float, fits: Callable[[float], bool]) -> float:
    """The number of fewest digits near another that fits; the other one if none does."""
    tried = (float(f"{number:.{digits}g}") for digits in range(1, PLAIN + 1))
    return next(filter(fits, tried), number)
