"""Dates, times of day and timestamps: numbers with another reader and writer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Fields, Flags, Floats
from ..errors import SchemaError
from .calendar import CALENDARS, DAY, Calendar, to_number, to_text, zone_of
from .cell_types import MOMENTS, TEXT, WHOLE, unknown_type
from .column import Attribute
from .notations.moment_text import ISO, bare
from .notations.moments import Moments
from .notations.register import of_moments
from .numbers import Numbers
from .partition import Lattice
from .text import Value

if TYPE_CHECKING:
    import pyarrow as pa

# Decimals of a second that are microseconds, the finest that times may have, and milliseconds.
FINEST, MILLI = 6, 3


@dataclass(frozen=True, repr=False)
class Dates(Numbers):
    """An attribute of dates, times of day or timestamps.

    Edges are numbers of :mod:`vertimrf.columns.calendar`: days of dates, else seconds. The
    resolution is 1 by default. That of times may be 0.001, or any other whole number of
    microseconds.

    Attributes:
        calendar: "date", "time" or "timestamp".
        timezone: timestamps: the IANA name of their zone, such as "Europe/Vienna", or their offset,
            such as "+02:00"; None for local time.
        format: how texts are written, such as "%d/%m/%Y" (:mod:`.notations.moment_text`); None for
            ISO 8601.
    """

    _: KW_ONLY
    calendar: Calendar
    timezone: str | None = None

    def _check_grid(self, where: str) -> None:
        if self.calendar not in CALENDARS:
            raise SchemaError(
                f"{where} has the calendar {self.calendar!r}; use one of {', '.join(CALENDARS)}."
            )
        if self.timezone is not None:
            if self.calendar != "timestamp":
                raise no_timezone(where)
            check_zone(self.name, self.timezone)
        super()._check_grid(where)
        if self.resolution is not None and not self._is_resolution(float(self.resolution)):
            raise SchemaError(
                f"{where}: resolution is {self.resolution!r}; that of dates is a whole number of days, and that of times one of seconds, "
                "or of parts of them down to 0.000001."
            )

    def _is_resolution(self, resolution: float) -> bool:
        """Whether dates or times can have a resolution."""
        return resolution.is_integer() or (
            self.calendar != "date" and resolution == round(resolution, FINEST) > 0
        )

    @property
    def _is_format(self) -> bool:
        return isinstance(self.format, str) and "%" in self.format

    @cached_property
    def notation(self) -> Moments:
        """See :class:`Attribute`."""
        return of_moments(self.calendar, self.timezone, self.format)

    def _check_type(self, where: str) -> None:
        known = (*MOMENTS[self.calendar], TEXT, *(WHOLE if self.format else ()))
        if self.type not in known:
            raise unknown_type(where, self.type, known)

    @property
    def is_text(self) -> bool:
        """See :class:`Attribute`."""
        return self.type == TEXT or (self.type is None and not self.notation.is_usual)

    def as_plain(self) -> Attribute:
        """See :class:`Attribute`."""
        written = self.type == TEXT or self.type in WHOLE
        return replace(self, format=None, type=None if written else self.type)

    def bare(self) -> Attribute:
        """See :class:`Attribute`."""
        return replace(self, clamp=False, format=None, type=None)

    def _check_range(self, where: str) -> None:
        every = (*self.edges, *self.points, *self.grid)
        try:
            _ = [self.value_text(edge) for edge in (min(every), max(every))]
        except (OverflowError, ValueError, OSError):
            raise SchemaError(f"{where}: edges must lie in the years 1 to 9999.") from None

    @property
    def step(self) -> float:
        """See :class:`Attribute`."""
        return float(self.resolution or 1.0)

    @property
    def whole(self) -> bool:
        """See :class:`Numbers`."""
        return self.digits == 0

    @cached_property
    def digits(self) -> int:
        """See :class:`Attribute`: those of seconds; 0 of dates."""
        every = (*(self.grid or (self.step, self.offset)), *self.points)
        return max(map(decimals_of_seconds, every))

    @property
    def reach(self) -> tuple[float, float]:
        """See :class:`Numbers`: the years 2 to 9998, in which every time zone has a date."""
        if self.calendar == "time":
            return 0.0, float(DAY)
        scale = 1 if self.calendar == "date" else DAY
        ends = (to_number("date", f"{year}-01-01") for year in ("0002", "9999"))
        low, high = (scale * end for end in ends)
        return low, high

    @property
    def instants(self) -> tuple[Calendar, str | None]:
        """See :class:`Attribute`."""
        return self.calendar, self.timezone

    def value_text(self, number: float) -> str:
        """See :class:`Numbers`."""
        return to_text(self.calendar, number, self.timezone)

    def limit(self, text: str) -> str | float:
        """See :class:`Attribute`."""
        # As in schemas, or as in the column.
        iso = Moments(self.calendar, self.timezone).number(text)
        number = self.notation.number(text) if math.isnan(iso) else math.nan
        return text.strip() if math.isnan(number) else self.value_text(number)

    def number(self, limit: Value) -> float:
        """See :class:`Attribute`."""
        try:
            number = to_number(self.calendar, limit, self.timezone)
        except (ValueError, TypeError, AttributeError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise SchemaError(f"{limit!r} is no {self.calendar}, which {self.name!r} holds.")
        return self.lattice.snapped(number)

    def sums(self, name: str, edges: tuple[float, float], missing: bool) -> Attribute:
        """See :class:`Attribute`."""
        return replace(
            self,
            name=name,
            edges=edges,
            resolution=10.0**-self.digits if self.digits else None,
            offset=0.0,
            grid=(),
            points=(),
            clamp=True,
            missing=missing,
        )

    def numbers(self, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags]:
        """See :class:`Attribute`."""
        from .cells import column_instants

        numbers, missing = column_instants(self, column, where)
        # What is finer than seconds, or than their parts that the resolution has, is cut.
        return (numbers if self.calendar == "date" else self._cut(numbers)), missing

    def _cut(self, seconds: Floats) -> Floats:
        """Seconds without what is finer than the resolution, as far as that is finer than a second."""
        if self.whole:
            return np.floor(seconds)
        return Lattice(10.0**-self.digits).floored(seconds)

    def typed(self, numbers: Floats) -> pa.Array:
        """See :class:`Attribute`."""
        import pyarrow as pa

        missing = np.isnan(numbers)
        known = np.where(missing, 0, numbers)
        if self.is_text or self.type in WHOLE:
            whole = known.astype(np.int64) if self.whole else known
            texts = self.notation.written(pa.array(whole, mask=missing))
            return texts if self.is_text else texts.cast(pa.type_for_alias(str(self.type)))
        unit = "s" if self.whole else "ms" if self.digits <= MILLI else "us"
        each = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
        ticks = known.astype(np.int64) if self.whole else np.rint(known * each).astype(np.int64)
        cells = pa.array(ticks, mask=missing)
        if self.calendar == "timestamp":
            chosen = self.type[len("timestamp[") : -1] if self.type else unit
            return cells.cast(pa.timestamp(unit, self.timezone)).cast(
                pa.timestamp(chosen, self.timezone)
            )
        if self.calendar == "date":
            return (
                cells.cast(pa.int32())
                .cast(pa.date32())
                .cast(pa.type_for_alias(self.type or "date32[day]"))
            )
        if unit == "us":
            usual = pa.time64("us")
        else:
            cells, usual = cells.cast(pa.int32()), pa.time32(unit)
        return cells.cast(usual).cast(pa.type_for_alias(self.type or str(usual)))

    def sdv(self) -> Fields:
        """See :class:`Attribute`."""
        return {
            "sdtype": "datetime",
            "datetime_format": bare(self.format or ISO[self.calendar]),
        }

    def _number(self, number: float) -> Any:
        return self.value_text(number)


def decimals_of_seconds(seconds: float) -> int:
    """Decimals of a number of seconds, which has as many as microseconds have at most."""
    return len(f"{seconds:.{FINEST}f}".rstrip("0").partition(".")[2])


def no_timezone(where: str) -> SchemaError:
    """The error about a time zone of something else than timestamps."""
    return SchemaError(f"{where} has a timezone, which only timestamps can have; remove it.")


def check_zone(name: str, timezone: Any) -> None:
    """Check the name of a time zone.

    Raises:
        SchemaError: there is no such zone.
    """
    try:
        zone_of(timezone)
    except (KeyError, ValueError, OSError, TypeError, AttributeError):
        raise SchemaError(
            f"Attribute {name!r}: no time zone is called {timezone!r}; use a name as 'Europe/Vienna', or an offset as '+02:00'."
        ) from None


def instants(
    name: str, calendar: Calendar, values: Iterable[Any], timezone: str | None
) -> tuple[float, ...]:
    """Convert dates or times to numbers.

    Raises:
        SchemaError: one is of another calendar, or there is no such zone.
    """
    if timezone is not None:
        check_zone(name, timezone)
    try:
        numbers = tuple(
            float(v) if type(v) in (int, float) else to_number(calendar, v, timezone)
            for v in values
        )
        if not all(map(math.isfinite, numbers)):
            raise ValueError("one is no finite number")
        return numbers
    except (ValueError, TypeError, AttributeError, OSError, OverflowError) as error:
        raise SchemaError(
            f"Attribute {name!r}: edges and bounds must be of the calendar {calendar!r} ({error})."
        ) from None
