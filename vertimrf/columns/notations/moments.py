"""Dates, times of day and timestamps in a format such as 31/12/2019."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import SchemaError
from ..calendar import EPOCH, Calendar, to_number
from .moment_text import ISO, as_seen, bare, is_read_as_iso, of_iso, written
from .notation import DateOrder, Notation, Recognised

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats

DATES = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%d%b%Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
    *("%Y-%m-%d", "%Y.%m.%d"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", " %I:%M:%S.%f %p")
# As SAS, Oracle, SQL Server, web servers, browsers and e-mail write them.
OF_TOOLS = (
    *("%d%b%Y:%H:%M:%S", "%d%b%Y:%H:%M:%S.%f", "%d%b%y:%H:%M:%S", "%d-%b-%y %I.%M.%S.%f %p"),
    *("%b %d %Y %I:%M%p", "%d/%b/%Y:%H:%M:%S", "%a, %d %b %Y %H:%M:%S"),
    *("%a %b %d %H:%M:%S %Y", "%d.%m.%Y, %H:%M", "%d.%m.%Y, %H:%M:%S", "%d/%m/%Y, %H:%M:%S"),
    *(
        "%m/%d/%Y, %I:%M %p",
        "%d/%m/%Y, %H:%M",
        "%m/%d/%Y, %I:%M:%S %p",
        "%d.%m.%Y %H:%M Uhr",
        "%d.%m.%Y %H.%M Uhr",
    ),
)
# Those of ISO 8601 but for the name of the time zone, which Python does not read.
ZONED = ("%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%dT%H:%M:%S UTC", "%Y-%m-%d %H:%M UTC")
CLOCKS = (
    *("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M:%S.%f %p"),
    *("%H:%M Uhr", "%H.%M Uhr", "%Hh%M", "%H%Mh"),
)
FORMS = (*CLOCKS, *ZONED, *map("".join, itertools.product(DATES, TIMES)), *OF_TOOLS)


@dataclass(frozen=True)
class Moments(Notation):
    """Dates, times of day or timestamps.

    Attributes:
        kind: "date", "time" or "timestamp".
        timezone: of timestamps, see :func:`.to_number`.
        pattern: how texts are written (:mod:`.moment_text`); None for ISO 8601.
    """

    kind: Calendar
    timezone: str | None = None
    pattern: str | None = None

    of_texts: ClassVar[bool] = True

    @property
    def calendar(self) -> Calendar:
        """See :class:`Notation`."""
        return self.kind

    @property
    def zone(self) -> str | None:
        """See :class:`Notation`."""
        return self.timezone

    @property
    def format(self) -> str | None:
        """See :class:`Notation`."""
        return self.pattern

    @classmethod
    def recognise(cls, counts: Mapping[str, int], order: DateOrder | None) -> Recognised | None:
        """See :class:`Notation`."""
        fitting: list[tuple[str, Calendar, dict[float, int]]] = []
        for form in FORMS:
            calendar: Calendar = (
                "time" if form in CLOCKS else "timestamp" if "%M" in form else "date"
            )
            moments: dict[float, int] = {}
            with suppress(ValueError):
                for text, count in counts.items():
                    moment = datetime.strptime(text.strip(), form)
                    at = to_number(calendar, moment.time() if calendar == "time" else moment)
                    moments[at] = moments.get(at, 0) + count
                fitting.append((form, calendar, moments))
        if order is not None:
            first = order == "day-first"
            fitting = [
                one for one in fitting if (one[0].find("%d") < one[0].find("%m")) == first
            ] or fitting
        if any(one[2] != fitting[0][2] for one in fitting):
            raise SchemaError(
                f"has dates that may be {' or '.join(one[0] for one in fitting)}: say dates='day-first' or 'month-first' (--dates)"
            )
        if not fitting:
            return None
        form, calendar, moments = fitting[0]
        years = ", the years 00 to 68 as 2000 to 2068" if "%y" in form else ""
        return Recognised(
            cls(calendar, "UTC" if form in ZONED else None, as_seen(form, counts)),
            moments,
            f"has {calendar}s as {form}",
            f"so it is read{years}; correct the format if it is another",
        )

    def parsed(self, texts: pa.ChunkedArray) -> Floats:
        """See :class:`Notation`."""
        if (
            self._patterns[0] is None
            and (numbers := of_iso(self.kind, texts, self.timezone)) is not None
        ):
            return numbers
        numbers = np.full(len(texts), np.nan)
        for i, text in enumerate(texts.to_pylist()):
            numbers[i] = self.number(text)
        return numbers

    @property
    def width(self) -> int:
        """Fewest digits of whole numbers in the format, which may lack leading zeros."""
        return len(EPOCH.strftime(bare(self.pattern or "")))

    @property
    def is_usual(self) -> bool:
        """Whether texts are those that a date or time has without a format."""
        return self.pattern in (None, ISO[self.kind])

    def number(self, text: str) -> float:
        """One text as a number; NaN if it is in another notation."""
        first, second = self._patterns
        try:
            return to_number(self.kind, text, self.timezone, first)
        except (ValueError, OverflowError):
            if second is None:
                return np.nan
        try:
            return to_number(self.kind, text, self.timezone, second)
        except (ValueError, OverflowError):
            return np.nan

    @cached_property
    def _patterns(self) -> tuple[str | None, str | None]:
        """What texts are read as, and what others are; ISO 8601, which is read fastest, is None."""
        if self.pattern is None:
            return None, None
        plain = bare(self.pattern)
        return (None, plain) if is_read_as_iso(self.pattern) else (plain, None)

    def written(self, values: pa.Array) -> pa.Array:
        """See :class:`Notation`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        pattern = self.pattern or self._iso
        encoded = values.dictionary_encode()
        if 2 * len(encoded.dictionary) < len(values):
            return self.written(encoded.dictionary).take(encoded.indices)
        whole = not pa.types.is_floating(values.type) or self.kind == "date"
        return written(
            self.kind,
            self.timezone,
            pattern,
            pc.floor(values).cast(pa.int64()) if whole else values,
        )

    @property
    def _iso(self) -> str:
        """How texts are written without a pattern."""
        return ISO[self.kind] + "%.f" * (self.kind != "date") + ("%:z" if self.timezone else "")
