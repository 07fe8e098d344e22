"""Numbers between public bounds, in bins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arguments import shown
from ..arrays import Fields, Flags, Floats, Int32s, Integers, Integral, Ints, Texts
from ..errors import SchemaError
from .cell_types import SINGLES, as_decimals, check_number_type, typed_numbers
from .column import Attribute, Limits
from .edges import drafted_edges
from .inside import Span, numbers_inside, shape_inside, shares_inside
from .notations.register import named
from .partition import Lattice, Partition, decimals
from .text import MISSING, OUTSIDE, Value, check_texts, nearest_listed, no_domain

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from .column import Encode
    from .notations.notation import Notation

# Steps of a resolution, counted from 0, that double precision can represent.
MAX_STEPS = 2.0**53
# Numbers with more decimals have any number of them.
MAX_DECIMALS = 9
# Largest edge that is searched for, and largest step.
LARGEST = 1e300
# Part of a step that rounding errors stay below.
ROUNDING = 1e-6
# Most points of an attribute.
MAX_POINTS = 1000


@dataclass(frozen=True, repr=False)
class Numbers(Attribute, domain="edges"):
    """An attribute of numbers with public bounds and bins.

    Attributes:
        edges: bin i is [edges[i], edges[i+1]), and the last one includes its upper edge.
        integral: values are whole numbers, also decoded ones.
        clamp: values outside the bounds count as the nearest bound, instead of being an error.
        resolution: values are multiples of it, also decoded ones (0.01 for prices); None if they
            are not.
        offset: values are multiples of the resolution beyond it (0.99 for prices such as 4.99).
        grid: all values that there are, if they are few and on no regular grid.
        points: single values with a code of their own, inside bins or beyond them.
        format: how texts are written, which may have separators of thousands and signs of
            currencies or percent: a pattern such as "#,##0.00", or the decimal mark alone; None for
            plain numbers.
        missing_text: texts that stand for a missing value, besides the usual ones
            (:data:`.MISSING_TEXT`).
    """

    edges: tuple[float, ...] = ()
    _: KW_ONLY
    integral: bool = False
    clamp: bool = False
    resolution: float | None = None
    offset: float = 0.0
    grid: tuple[float, ...] = ()
    points: tuple[float, ...] = ()
    format: str | None = None
    missing_text: Texts | None = None

    kind: ClassVar[str] = "numeric"
    noun: ClassVar[str] = "bin"

    def _check(self, where: str) -> None:
        if not self.edges:
            raise no_domain(where)
        self._check_grid(where)
        for key in ("edges", "points", "grid"):
            object.__setattr__(self, key, self._finite(where, key))
        self._check_edges(where)
        self._check_points(where)
        check_texts(where, self.missing_text)

    def _check_grid(self, where: str) -> None:
        if self.format is not None and not self._is_format:
            raise SchemaError(
                f"{where}: format is {self.format!r}; of dates write '%d/%m/%Y' and the like, of numbers '#,##0.00' or their decimal mark."
            )
        if self.resolution is not None and (
            isinstance(self.resolution, bool)
            or not isinstance(self.resolution, int | float)
            or not 0 < self.resolution <= LARGEST
        ):
            raise SchemaError(
                f"{where}: resolution is {shown(self.resolution)}; write a number above 0, as 0.01 for hundredths."
            )
        if (
            isinstance(self.offset, bool)
            or not isinstance(self.offset, int | float)
            or not (
                abs(self.offset) <= LARGEST and (self.offset == 0 or self.resolution is not None)
            )
        ):
            raise SchemaError(
                f"{where}: offset is {shown(self.offset)}; write a number, beside a resolution."
            )
        object.__setattr__(self, "offset", float(self.offset))
        if self.integral and (self.resolution is not None or self.instants is not None):
            raise SchemaError(
                f"{where} is integral and has a resolution or a calendar; give it one of them."
            )

    @property
    def _is_format(self) -> bool:
        """Whether texts can be written in the format."""
        return isinstance(self.format, str) and named(self.format) is not None

    @cached_property
    def notation(self) -> Notation | None:
        """See :class:`Attribute`."""
        return None if self.format is None else named(self.format)

    def _check_edges(self, where: str) -> None:
        edges = self.edges
        if len(edges) < 2:
            raise SchemaError(
                f"{where} has {len(edges)} edges; it needs at least 2, the public bounds."
            )
        self._check_range(where)
        if self.step and max(map(abs, edges)) / self.step >= MAX_STEPS:
            raise SchemaError(
                f"{where}: edges lie more than {MAX_STEPS:g} steps of {self.step:g} from 0; use a coarser resolution."
            )
        for low, high in itertools.pairwise(edges):
            if low >= high:
                raise SchemaError(
                    f"{where}: edges must increase, but {self.value_text(low)} is followed by {self.value_text(high)}."
                )
        every = [*map(self.lattice.snapped, edges)]
        ends = (*every[:-1], math.nextafter(every[-1], math.inf))
        for low, high in itertools.pairwise(ends):
            if self.lattice.ends(low, high) is None:
                kind = "whole number" if self.integral else f"multiple of {self.step:g}"
                kind = "value of the grid" if self.grid else kind
                raise SchemaError(
                    f"{where}: the bin from {self.value_text(low)} to {self.value_text(min(high, edges[-1]))} holds no {kind}; "
                    f"use wider bins or {'integral = false' if self.integral else 'a finer resolution'}."
                )

    def _finite(self, where: str, key: str) -> tuple[float, ...]:
        """Numbers of a key, each finite."""
        try:
            numbers = tuple(float(number) for number in getattr(self, key))
        except (TypeError, ValueError, OverflowError):
            raise SchemaError(f"{where}: {key} must be numbers.") from None
        if not all(map(math.isfinite, numbers)):
            raise SchemaError(
                f"{where}: {key} must be finite; give public bounds, and clamp = true if values may exceed them."
            )
        return numbers

    def _check_points(self, where: str) -> None:
        """Check the points, and the listed values."""
        for key, numbers in (("points", self.points), ("grid", self.grid)):
            if list(numbers) != sorted(set(numbers)):
                raise SchemaError(f"{where}: {key} must increase; sort them, each once.")
        if self.grid and (self.step and self.resolution is not None):
            raise SchemaError(f"{where} has a grid and a resolution; give it one of them.")
        if len(self.points) > MAX_POINTS:
            raise SchemaError(
                f"{where} has {len(self.points):,} points; at most {MAX_POINTS:,} are possible."
            )
        # Beside a resolution, a point may lie off it: 0 among prices that end in .99.
        if self.integral and (odd := [p for p in self.points if not p.is_integer()]):
            raise SchemaError(
                f"{where} is integral, and its point {odd[0]:g} is no whole number; correct one of them."
            )

    def _check_type(self, where: str) -> None:
        least, most = (self.origin + int(end) if self.origin else end for end in self.extremes)
        check_number_type(where, self.type, least, most, self.whole, self.digits)

    def _check_range(self, where: str) -> None:
        """Check that edges can be written as texts."""

    @property
    def _domain(self) -> str:
        return f"{self.present:,} bins from {self.bounds_text}"

    @property
    def present(self) -> int:
        """See :class:`Attribute`."""
        return len(self.partition)

    @property
    def limits(self) -> tuple[float, float]:
        """See :class:`Attribute`."""
        return self.edges[0], self.edges[-1]

    @property
    def in_tails(self) -> Ints:
        """See :class:`Attribute`."""
        dated = self.instants is not None
        return () if dated else tuple(np.flatnonzero(~self.partition.points).tolist())

    @property
    def extremes(self) -> tuple[float, float]:
        """See :class:`Attribute`."""
        return float(self.partition.lows[0]), float(self.partition.highs[-1])

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest number that an edge may be."""
        most = MAX_STEPS / 2 * self.step if self.step else LARGEST
        return -most, most

    @property
    def step(self) -> float:
        """See :class:`Attribute`."""
        return 1.0 if self.integral else float(self.resolution or 0.0)

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        if self.grid:
            return all(map(float.is_integer, (*self.grid, *self.points)))
        return bool(self.step) and all(
            map(float.is_integer, (self.step, self.offset, *self.points))
        )

    def bare(self) -> Attribute:
        """See :class:`Attribute`."""
        return replace(self, clamp=False, format=None)

    def as_plain(self) -> Attribute:
        """See :class:`Attribute`."""
        return replace(self, format=None)

    @property
    def is_text(self) -> bool:
        """See :class:`Attribute`."""
        return self.format is not None and self.type is None

    def binned_as(self, numbers: Floats) -> Attribute:
        """See :class:`Attribute`."""
        edges = drafted_edges(*np.unique(numbers, return_counts=True))
        return replace(self, edges=edges, points=(), grid=(), missing=True, type=None)

    def numbers(self, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags]:
        """See :class:`Attribute`."""
        numbers, missing = super().numbers(column, where)
        return (as_decimals(numbers) if self.type == SINGLES else numbers), missing

    @cached_property
    def lattice(self) -> Lattice:
        """Which numbers there are."""
        return Lattice(self.step, self.offset, self.grid)

    @cached_property
    def partition(self) -> Partition:
        """The cells that codes stand for."""
        return Partition.of(self.edges, self.points, self.lattice)

    @cached_property
    def fine(self) -> Fine | None:
        """See :class:`Attribute`."""
        finer = self.partition.finer(self.lattice)
        if finer is None:
            return None
        return Fine(self.name, self.edges, missing=self.missing, clamp=self.clamp, of=self)

    def shape(self, counts: Floats, fine: Floats | None, error: float) -> Floats:
        """See :class:`Attribute`."""
        assert self.fine is not None
        measured = None if fine is None else fine[: self.fine.present]
        return shape_inside(self, counts[: self.present], measured, error)

    def value_text(self, number: float) -> str:
        """A number as text."""
        return f"{number:.10g}"

    @property
    def bounds_text(self) -> str:
        """See :class:`Attribute`."""
        return f"{self.value_text(self.edges[0])} to {self.value_text(self.edges[-1])}"

    def _text(self, code: int) -> str:
        cells = self.partition
        if cells.points[code]:
            return self.value_text(cells.lows[code])
        start, stop = cells.starts[code], cells.stops[code]
        after = code > 0 and cells.points[code - 1] and cells.stops[code - 1] == start
        begin = cells.lows[code - 1] if after else start
        end = min(stop, self.edges[-1])
        return f"{'above' if after else 'from'} {self.value_text(begin)} to {self.value_text(end)}"

    def _label(self, code: int) -> str:
        text = self._text(code)
        return text.removeprefix("from ").partition(" to ")[0].replace("above", ">")

    @property
    def remedy(self) -> str:
        """See :class:`Attribute`."""
        return f"the bounds are {self.bounds_text}: correct the values, widen the bounds, or set clamp = true"

    @property
    def found(self) -> str:
        """See :class:`Attribute`."""
        return f"{self.bounds_text}, {self.present} bins"

    def near(self, value: Any) -> str:
        """See :class:`Attribute`."""
        return f"the bounds are {self.bounds_text}"

    def limit(self, text: str) -> str | float:
        """See :class:`Attribute`: a plain number, or one in the column's notation."""
        plain = super().limit(text)
        if self.notation is None:
            return plain
        number = self.notation.number(text)
        if math.isnan(number) or number == plain:
            return plain
        if isinstance(plain, float):
            raise SchemaError(
                f"{text!r} may be {plain:g}, or {number:g} as column {self.name!r} is written; write {number:.10g} or "
                f"{self.notation.text(plain)}."
            )
        return number

    def codes_of(self, value: Value) -> list[int]:
        """See :class:`Attribute`."""
        return self.between((("from", value), ("to", value)))[0]

    def number(self, limit: Value) -> float:
        """See :class:`Attribute`."""
        return self.lattice.snapped(super().number(limit))

    def spans(self) -> list[tuple[float, float, bool]]:
        """See :class:`Attribute`."""
        cells = self.partition
        if not self.lattice.dense:
            ends = zip(cells.lows.tolist(), cells.highs.tolist(), strict=True)
            return [(low, high, False) for low, high in ends]
        lasts = np.where(cells.points, cells.lows, np.minimum(cells.stops, self.edges[-1]))
        open_ = ~cells.points & (cells.stops <= self.edges[-1])
        return list(zip(cells.lows.tolist(), lasts.tolist(), open_.tolist(), strict=True))

    def _holds_any(self, begin: float, end: float, begin_open: bool, end_open: bool) -> bool:
        if begin_open:
            begin = math.nextafter(begin, math.inf)
        if end_open:
            end = math.nextafter(end, -math.inf)
        return self.lattice.ends(begin, math.nextafter(end, math.inf)) is not None

    def ends(self) -> tuple[Floats, Floats]:
        """See :class:`Attribute`."""
        return self.partition.lows, self.partition.highs

    def nearest(self, limits: Floats, *, strict: bool = False, up: bool = True) -> Floats:
        """See :class:`Attribute`."""
        if self.grid:
            return nearest_listed(np.array(self.grid), limits, strict, up)
        sign, step = (1.0 if up else -1.0), self.step
        if not step:
            inward = np.nextafter(limits, sign * np.inf)
            return inward if strict else limits
        with np.errstate(invalid="ignore"):
            steps = np.floor(sign * (limits - self.offset) / step) - 1
        finite = np.isfinite(limits)
        while True:
            values = np.where(finite, self.lattice.value(np.where(finite, sign * steps, 0)), limits)
            short = sign * values <= sign * limits if strict else sign * values < sign * limits
            short &= finite
            if not short.any():
                return values
            steps[short] += 1

    @property
    def digits(self) -> int | None:
        """See :class:`Attribute`."""
        if self.lattice.dense:
            return None
        digits = max(map(decimals, self.grid)) if self.grid else self.lattice.digits
        return digits if digits <= MAX_DECIMALS else None

    def within(
        self, limits: Limits, counts: Callable[[], Floats]
    ) -> tuple[Sequence[int], Span | None] | None:
        """See :class:`Attribute`."""
        low, high, low_open, high_open = self.interval(limits)
        low = math.nextafter(low, math.inf) if low_open else low
        high = math.nextafter(high, -math.inf) if high_open else high
        span = Span(low, high, counts()[: self.present])
        return np.flatnonzero(self.shares(span) > 0).tolist(), span

    def encoder(self, where: str) -> Encode:
        """See :class:`Attribute`."""
        cells, (low, high) = self.partition, self.limits

        def encode(column: pa.ChunkedArray) -> Int32s:
            numbers, missing = self.numbers(column, where)
            codes = cells.codes(numbers)
            if self.step and not self.whole:
                # A number just below a multiple of the step is that multiple, but for rounding.
                above = cells.codes(numbers + ROUNDING * self.step)
                codes = np.where(above == OUTSIDE, codes, above)
            if self.clamp:
                beyond = np.flatnonzero((codes == OUTSIDE) & ~np.isnan(numbers))
                codes[beyond] = cells.nearest(np.clip(numbers[beyond], low, high))
            codes[missing] = MISSING
            return codes

        return encode

    def original(self, column: pa.ChunkedArray, codes: Integral, where: str) -> Floats | None:
        """See :class:`Attribute`."""
        values, _ = self.numbers(column, where)
        return np.where(np.isfinite(values), values, np.nan)

    def span(self, counts: npt.NDArray[np.number], shape: Floats | None = None) -> Span | None:
        """See :class:`Attribute`."""
        return Span(-np.inf, np.inf, counts[: self.present], shape)

    def shares(self, span: Span) -> Floats:
        """See :class:`Attribute`."""
        return shares_inside(self, span)

    def drawn(self, codes: Integral, span: Span, places: Floats) -> Floats:
        """See :class:`Attribute`."""
        numbers = np.full(len(codes), np.nan)
        known = codes < self.present
        numbers[known] = numbers_inside(self, codes[known].astype(np.int64), span, places[known])
        return numbers

    def arrow(self, codes: Integral, drawn: Floats | None) -> pa.Array:
        """See :class:`Attribute`."""
        assert drawn is not None
        return self.typed(drawn)

    def typed(self, numbers: Floats) -> pa.Array:
        """See :class:`Attribute`."""
        import pyarrow as pa

        missing = np.isnan(numbers)
        if self.whole:
            # Sums wrap around, so that numbers of 64 bits without a sign have their bits.
            whole = np.where(missing, 0, numbers).astype(np.int64).view(np.uint64)
            whole += np.uint64(self.origin % 2**64)
            wide = whole if self.type == "uint64" else whole.view(np.int64)
            values = pa.array(wide, mask=missing)
        else:
            values = pa.array(numbers, mask=missing)
        if self.is_text:
            assert self.notation is not None
            return self.notation.written(values)
        return typed_numbers(values, self.type)

    def sdv(self) -> Fields:
        """See :class:`Attribute`."""
        known = {} if self.digits is None else {"decimal_places": self.digits}
        return {"sdtype": "numerical", **known}

    def _written(self) -> Fields:
        lists = {"edges": self.edges, "points": self.points, "grid": self.grid}
        if self.grid and all(lists[key] == of for key, of in listed_numbers(self.grid).items()):
            # The grid says it all.
            lists = {"edges": (), "points": (), "grid": self.grid}
        written: Fields = {
            key: [self._number(n) for n in numbers] or None for key, numbers in lists.items()
        }
        texts = None if self.missing_text is None else list(self.missing_text)
        return written | {"missing_text": texts}

    def _number(self, number: float) -> Any:
        """A number as a schema file has it."""
        return int(number) if number.is_integer() and abs(number) < 1e15 else number


@dataclass(frozen=True, repr=False)
class Fine(Numbers):
    """The cells of a fine marginal of numbers.

    Attributes:
        of: the attribute whose codes they are inside.
    """

    _: KW_ONLY
    of: Numbers

    def _check(self, where: str) -> None:
        """Nothing: the attribute was checked."""

    @property
    def step(self) -> float:
        """See :class:`Attribute`."""
        return self.of.step

    @property
    def whole(self) -> bool:
        """See :class:`Numbers`."""
        return self.of.whole

    @cached_property
    def _finer(self) -> tuple[Partition, Integers]:
        finer = self.of.partition.finer(self.of.lattice)
        assert finer is not None
        return finer

    @property
    def partition(self) -> Partition:  # type: ignore[override]
        """The cells."""
        return self._finer[0]

    @property
    def owners(self) -> Integers:
        """The code that each cell is inside [shape=(cells,), int64]."""
        return self._finer[1]

    def numbers(self, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags]:
        """See :class:`Attribute`."""
        return self.of.numbers(column, where)


def listed_numbers(grid: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    """Edges, points and grid of numbers that each have a code of their own."""
    first, last = grid[0], grid[-1]
    return {"edges": (first, last if last > first else first + 1), "points": grid, "grid": grid}
