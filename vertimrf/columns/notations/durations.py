"""Durations as texts, which are numbers of seconds: 35:00:00, 35:00, 1 days 11:00:00 and P1DT11H.

Excel, SPSS and databases write the first two, pandas and Python the third, polars and Java the last (ISO 8601).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from ..calendar import DAY
from .notation import DateOrder, Notation, Recognised

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats

HOURS, MINUTES, DAYS, ISO = "[h]:mm:ss", "[h]:mm", "[d] days hh:mm:ss", "PnDTnHnMnS"
REST = r"(?P<h>\d{1,2}):(?P<m>[0-5]\d):(?P<s>[0-5]\d(\.\d{1,9})?)"
# In the order in which they are tried. Times of day without a date are tried before.
SHAPES = {
    HOURS: re.compile(r"(?P<sign>-)?(?P<h>\d{1,7}):(?P<m>[0-5]\d):(?P<s>[0-5]\d(\.\d{1,9})?)"),
    MINUTES: re.compile(r"(?P<sign>-)?(?P<h>\d{1,7}):(?P<m>[0-5]\d)"),
    # Only the days have the minus: -1 days +23:00:00 is minus an hour.
    DAYS: re.compile(rf"((?P<d>-?\d{{1,6}}) days?,? \+?)?{REST}"),
    ISO: re.compile(
        r"(?P<sign>-)?P(?=\d|T\d)((?P<d>\d{1,6})D)?(T((?P<h>\d{1,7})H)?((?P<m>\d{1,8})M)?((?P<s>\d{1,9}(\.\d{1,9})?)S)?)?"
    ),
}


@dataclass(frozen=True)
class Durations(Notation):
    """Durations in a format.

    Attributes:
        pattern: one of :data:`SHAPES`.
    """

    pattern: str

    @property
    def format(self) -> str:
        """See :class:`Notation`."""
        return self.pattern

    @classmethod
    def named(cls, format: str) -> Durations | None:
        """See :class:`Notation`."""
        return cls(format) if format in SHAPES else None

    @classmethod
    def recognise(cls, counts: Mapping[str, int], order: DateOrder | None) -> Recognised | None:
        """See :class:`Notation`. Up to 24:00, which ends a day, hours and minutes may be times of day."""
        for pattern in SHAPES:
            numbers: dict[float, int] = {}
            for text, count in counts.items():
                number = cls(pattern).number(text)
                numbers[number] = numbers.get(number, 0) + count
                if np.isnan(number):
                    break
            if any(map(np.isnan, numbers)):
                continue
            if pattern == ISO or max(numbers) > DAY:
                longest = max(counts, key=len)
                return Recognised(
                    cls(pattern),
                    numbers,
                    f"has durations such as {longest!r}",
                    f"read as seconds, written as {pattern}; correct the format if they are something else",
                )
        return None

    def parsed(self, texts: pa.ChunkedArray) -> Floats:
        """See :class:`Notation`."""
        encoded = texts.combine_chunks().dictionary_encode()
        numbers = np.array([*map(self.number, encoded.dictionary.to_pylist())], float)
        every: Floats = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return every

    def number(self, text: str) -> float:
        """See :class:`Notation`."""
        found = SHAPES[self.pattern].fullmatch(text.strip())
        if found is None:
            return np.nan
        parts = found.groupdict()
        days, hours, minutes = (int(parts.get(key) or 0) for key in "dhm")
        whole = days * DAY + hours * 3600 + minutes * 60
        # The sum is exact, and then rounded once.
        seconds = float(whole + Decimal(parts.get("s") or 0))
        return -seconds if parts.get("sign") else seconds

    def written(self, values: pa.Array) -> pa.Array:
        """See :class:`Notation`."""
        import pyarrow as pa

        encoded = values.dictionary_encode()
        texts = pa.array([*map(self._text, encoded.dictionary.to_pylist())], pa.string())
        return texts.take(encoded.indices)

    def _text(self, number: float) -> str:
        exact = Decimal(repr(number) if isinstance(number, float) else number)
        sign = "-" if exact < 0 and self.pattern != DAYS else ""
        exact = exact if self.pattern == DAYS else abs(exact)
        whole = math.floor(exact)
        _, point, digits = f"{exact - whole:f}".rstrip("0").partition(".")
        fraction = point + digits if digits else ""
        minutes, second = divmod(whole, 60)
        hours, minute = divmod(minutes, 60)
        days, hour = divmod(hours, 24)
        if self.pattern == MINUTES:
            return f"{sign}{hours}:{minute:02}"
        if self.pattern == HOURS:
            return f"{sign}{hours}:{minute:02}:{second:02}{fraction}"
        if self.pattern == DAYS:
            plus = "+" * (days < 0)
            return f"{days} days {plus}{hour:02}:{minute:02}:{second:02}{fraction}"
        clock = f"{hour}H" * (hour > 0) + f"{minute}M" * (minute > 0)
        if second or fraction or not (days or clock):
            clock += f"{second}{fraction}S"
        return f"{sign}P" + f"{days}D" * (days > 0) + f"T{clock}" * bool(clock)
