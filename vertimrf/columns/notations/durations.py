"""Durations as texts, which are numbers of seconds: 35:00:00, 35:00, 1:28.50, 1 days 11:00:00, 1 day 11:00:00, 1.11:00:00 and P1DT11H.

Excel, SPSS and databases write the first two, results of races the third, pandas, PostgreSQL and Python days in words, SAS and .NET days
before a mark, and polars and Java the last (ISO 8601).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..calendar import DAY
from .notation import DateOrder, Notation, Recognised

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Floats

HOURS, MINUTES, DAYS, ISO = "[h]:mm:ss", "[h]:mm", "[d] days hh:mm:ss", "PnDTnHnMnS"
HOURS_ISO, POSTGRES, PYTHON = "PTnHnMnS", "[d] day(s) hh:mm:ss", "[d] day(s), h:mm:ss"
# In the order in which they are tried. Times of day without a date are tried before. Besides, [hh] and [mm] have two digits at least, and
# ss.00 two decimals always.
PATTERNS = (
    *(HOURS, MINUTES, "[m]:ss", DAYS, POSTGRES, PYTHON, "[d] hh:mm:ss", "[d]:hh:mm:ss"),
    *("[d].hh:mm:ss", ISO, HOURS_ISO),
)
ISO_TEXT = r"(?P<sign>-)?P(?=\d|T\d)((?P<d>\d{1,6})D)?(T((?P<h>\d{1,7})H)?((?P<m>\d{1,8})M)?((?P<s>\d{1,9}(\.\d{1,9})?)S)?)?"
LAST = {"mm": r":(?P<m>[0-5]\d)", "ss": r":(?P<s>[0-5]\d(?:\.\d{1,9})?)"}
# A clock after days, which may have a sign of its own: -1 days +23:00:00 is minus an hour.
CLOCK = r"(?P<clock>[-+])?(?P<h>\d{1,2}):(?P<m>[0-5]\d):(?P<s>[0-5]\d(?:\.\d{1,9})?)"
IN_WORDS = rf"(?=.)(?:(?P<d>-?\d{{1,6}}) days?)?(?:,? ?{CLOCK})?"
# Texts that decide how durations are written.
SEEN = 200


@dataclass(frozen=True)
class Durations(Notation):
    """Durations in a format.

    Attributes:
        pattern: one of :data:`PATTERNS`, perhaps with [hh] and [mm], or with decimals.
    """

    pattern: str

    of_texts: ClassVar[bool] = True

    @property
    def format(self) -> str:
        """See :class:`Notation`."""
        return self.pattern

    @classmethod
    def named(cls, format: str) -> Durations | None:
        """See :class:`Notation`."""
        base = re.sub(r"(ss)\.0{1,9}$", r"\1", format)
        base = base.replace("[hh]", "[h]").replace("[mm]", "[m]")
        return cls(format) if base in PATTERNS else None

    @classmethod
    def recognise(cls, counts: Mapping[str, int], order: DateOrder | None) -> Recognised | None:
        """See :class:`Notation`. Up to 24:00, which ends a day, hours and minutes may be times of day."""
        seen = [text.strip() for text in itertools.islice(counts, SEEN)]
        fitting = [
            one
            for one in map(cls, PATTERNS)
            if not any(math.isnan(one.number(text)) for text in seen)
        ]
        fitting = [cls(_as_seen(one.pattern, counts)) for one in fitting]
        # That which writes most texts as they are, and half of them at least; of several, the first.
        same = [sum(one.text(one.number(text)) == text for text in seen) for one in fitting]
        for one in sorted(fitting, key=lambda one: -same[fitting.index(one)]):
            if 2 * same[fitting.index(one)] < len(seen):
                break
            numbers: dict[float, int] = {}
            for text, count in counts.items():
                number = one.number(text)
                numbers[number] = numbers.get(number, 0) + count
                if math.isnan(number):
                    break
            if not any(map(math.isnan, numbers)) and one.is_surely(counts, max(numbers)):
                return Recognised(
                    one,
                    numbers,
                    f"has durations such as {max(counts, key=len)!r}",
                    f"read as seconds, written as {one.pattern}; correct the format if they are something else",
                )
        return None

    def is_surely(self, counts: Mapping[str, int], longest: float) -> bool:
        """Whether texts of the notation can be nothing else.

        Args:
            counts: records by text.
            longest: the longest duration.
        """
        if self.pattern in (POSTGRES, PYTHON):
            # Days alone are numbers with a unit.
            return any("day" in text for text in counts) and any(":" in text for text in counts)
        if self.pattern.startswith("[m"):
            # Hours and minutes have no decimals.
            return any("." in text for text in counts)
        return not self.pattern.startswith("[h") or longest > DAY

    def parsed(self, texts: pa.ChunkedArray) -> Floats:
        """See :class:`Notation`."""
        encoded = texts.combine_chunks().dictionary_encode()
        numbers = np.array([*map(self.number, encoded.dictionary.to_pylist())], float)
        every: Floats = numbers[encoded.indices.to_numpy(zero_copy_only=False)]
        return every

    def number(self, text: str) -> float:
        """See :class:`Notation`."""
        found = _reader(self.pattern).fullmatch(text.strip())
        if found is None:
            return np.nan
        parts = found.groupdict()
        hours, minutes = (int(parts.get(key) or 0) for key in "hm")
        # The sum is exact, and then rounded once.
        clock = hours * 3600 + minutes * 60 + Decimal(parts.get("s") or 0)
        days = int(parts.get("d") or 0) * DAY
        seconds = float(days + (-clock if parts.get("clock") == "-" else clock))
        return -seconds if parts.get("sign") else seconds

    def written(self, values: pa.Array) -> pa.Array:
        """See :class:`Notation`."""
        import pyarrow as pa

        encoded = values.dictionary_encode()
        texts = pa.array([*map(self._text, encoded.dictionary.to_pylist())], pa.string())
        return texts.take(encoded.indices)

    def _text(self, number: float) -> str:
        exact = Decimal(repr(number) if isinstance(number, float) else number)
        places = len(DECIMALS.findall(self.pattern))
        if self.pattern.endswith("mm"):
            exact -= exact % 60
        elif places:
            exact = round(exact, places)
        # Python and pandas count days before 0, and the clock from there.
        floored = self.pattern.startswith((DAYS, PYTHON))
        sign = "-" if exact < 0 and not floored else ""
        exact = exact if floored else abs(exact)
        whole = math.floor(exact)
        _, _, digits = f"{exact - whole:f}".rstrip("0").partition(".")
        if self.pattern in (ISO, HOURS_ISO):
            return sign + _iso(whole, digits, self.pattern == ISO)
        digits = digits.ljust(places, "0")
        rest = f"{whole % 60:02}" + f".{digits}" * bool(digits)
        minutes = whole // 60
        if not self.pattern.startswith("[d]"):
            least = 2 if self.pattern.startswith(("[hh", "[mm")) else 1
            if self.pattern.startswith("[m"):
                return f"{sign}{minutes:0{least}}:{rest}"
            clock = f"{sign}{minutes // 60:0{least}}:{minutes % 60:02}"
            return clock if self.pattern.endswith("mm") else f"{clock}:{rest}"
        days, hour = divmod(minutes // 60, 24)
        clock = f"{hour}" if ", h:" in self.pattern else f"{hour:02}"
        return self._in_days(days, f"{clock}:{minutes % 60:02}:{rest}", sign)

    def _in_days(self, days: int, clock: str, sign: str) -> str:
        """Days and a clock as text."""
        if self.pattern.startswith(DAYS):
            return f"{days} days {'+' * (days < 0)}{clock}"
        if self.pattern.startswith(PYTHON):
            return f"{days} day{'s' * (abs(days) != 1)}, {clock}" if days else clock
        if self.pattern.startswith(POSTGRES):
            before = f"{sign}{days} day{'s' * (days != 1 or sign == '-')}" if days else ""
            after = "" if before and not clock.strip("0:.") else sign + clock
            return f"{before} {after}".strip()
        mark = self.pattern[len("[d]")]
        # .NET leaves out days where there are none.
        return f"{sign}{days}{mark}{clock}" if days or mark != "." else sign + clock


# The zeros after ss.
DECIMALS = re.compile(r"(?<=[.0])0")


def _iso(whole: int, digits: str, with_days: bool) -> str:
    """A duration of ISO 8601, which leaves out what is 0."""
    days, rest = divmod(whole, DAY) if with_days else (0, whole)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    clock = f"{hour}H" * (hour > 0) + f"{minute}M" * (minute > 0)
    if second or digits or not (days or clock):
        clock += f"{second}{f'.{digits}' * bool(digits)}S"
    return "P" + f"{days}D" * (days > 0) + f"T{clock}" * bool(clock)


@lru_cache
def _reader(pattern: str) -> re.Pattern[str]:
    """What reads texts of a pattern."""
    if pattern in (ISO, HOURS_ISO):
        return re.compile(ISO_TEXT)
    if " day" in pattern:
        return re.compile(IN_WORDS)
    if pattern.startswith("[d]"):
        mark = pattern[len("[d]")]
        days = rf"\+?(?P<d>\d{{1,6}}){re.escape(mark)}"
        return re.compile(rf"(?P<sign>-)?(?:{days}){'?' if mark == '.' else ''}{CLOCK}")
    first, *rest = re.sub(r"\.0+$", "", pattern).split(":")
    width = {"h": r"\d{1,7}", "m": r"\d{1,8}"}[first[1]]
    return re.compile(rf"(?P<sign>-)?(?P<{first[1]}>{width})" + "".join(LAST[one] for one in rest))


def _as_seen(pattern: str, texts: Collection[str]) -> str:
    """The pattern with the digits of texts, which are all of it."""
    ends = [re.search(r"\.(\d+)\s*$", text) for text in texts]
    places = {len(match[1]) if match else 0 for match in ends}
    if any(re.match(r"\s*-?0\d", text) for text in texts):
        pattern = pattern.replace("[h]", "[hh]").replace("[m]", "[mm]")
    if len(places) == 1 and pattern.endswith("ss") and (width := places.pop()):
        pattern += "." + "0" * width
    return pattern
