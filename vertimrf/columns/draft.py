"""Draft an attribute from the values of a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Floats, Integers
from ..errors import SchemaError
from .calendar import CALENDARS, DAY, EPOCH, Calendar, calendar_of, to_number
from .cells import is_missing
from .column import Attribute, Value, folded
from .dates import Dates
from .formats import UNDECODED, DateOrder, dates_written, plain_numbers
from .numbers import Numbers, listed_numbers
from .recognise import LISTED, Shape, recognise, written_dates

# Most values listed of a column of text: the most frequent ones; all others become OTHER.
LISTED_TEXTS = 256
OTHER = "other"
# With more values than are listed, text is prose if longer than this on average, and names records
# if its values are more than this part of the records.
PROSE = 40
UNIQUE = 0.5
# Whole numbers name records if there are more than this part of the records, and they have more
# than LONG_NUMBER digits, or are more than COUNTED and leave few gaps.
UNIQUE_NUMBERS, LONG_NUMBER, COUNTED = 0.9, 6, 500
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)
ISO = {
    "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "time": re.compile(r"\d{2}:\d{2}(:\d{2})?"),
    "timestamp": re.compile(
        r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[-+]\d{2}:?\d{2})?"
    ),
}


class Excluded(Exception):
    """The column has no domain; the text says what it has instead."""


def draft_attribute(
    name: str,
    column: pa.ChunkedArray,
    flag: Callable[[str, str], None],
    dates: DateOrder | None = None,
) -> Attribute:
    """Draft an attribute from a column; ``flag`` receives each problem and its solution."""
    if not name:
        raise Excluded("has no name")
    counts, missing, infinite = counted(column)
    if not counts:
        raise Excluded("has no values at all" if not infinite else "has no finite values")
    if infinite:
        flag(f"has {infinite:,} infinite values", "each is replaced by the nearest bound")
    if len(counts) == 1 and not missing:
        flag("has the same value in every record", "kept; it costs no budget")
    if {type(value) for value in counts} == {bool}:
        return Attribute.categorical(name, [False, True], missing=missing)
    format, instants = None, as_instants(counts, column.type)
    texts = all(isinstance(value, str) for value in counts)
    if instants is None and texts:
        try:
            written = dates_written(counts, dates)
        except SchemaError as error:
            raise Excluded(f"{error}: say --dates day-first or month-first") from None
        if written is not None:
            format, instants = written[0], (written[1], None, written[2])
            years = ", the years 00 to 68 as 2000 to 2068" if "%y" in format else ""
            flag(
                f"has dates as {format}",
                f"so it is read{years}; correct the format if it is another",
            )
    if instants is not None:
        return drafted_instants(name, *instants, missing, format)
    numbers = as_numbers(counts.items())
    if numbers is None and texts and (marked := as_written(counts)) is not None:
        format, example, numbers = marked
        flag(
            f"has numbers such as {example!r}",
            f"read with the decimal mark {format!r}; correct the format if it is another",
        )
    if numbers is not None:
        if not infinite and identify(numbers):
            raise Excluded(
                "has another whole number in nearly every record, as ids and telephone numbers have"
            )
        return drafted_numbers(name, numbers, missing, bool(infinite), format, flag)
    if infinite:
        raise Excluded("has infinite values among text")
    return drafted_text(name, counts, missing, flag)


def counted(column: pa.ChunkedArray) -> tuple[dict[Any, int], bool, int]:
    """Number of records by value, whether some are missing, and the number of infinite values."""
    try:
        pairs = column.value_counts().to_pylist()
    except (NotImplementedError, pa.ArrowException):
        raise Excluded(f"holds {column.type} cells, which are no categories") from None
    counts: dict[Any, int] = {}
    missing, infinite = False, 0
    for pair in pairs:
        value = pair["values"]
        if is_missing(value):
            missing = True
        elif (isinstance(value, float) and math.isinf(value)) or (
            isinstance(value, str) and INFINITE.fullmatch(value)
        ):
            infinite += pair["counts"]
        else:
            counts[value] = counts.get(value, 0) + pair["counts"]
    return counts, missing, infinite


def as_numbers(counts: Iterable[tuple[Any, int]]) -> dict[float, int] | None:
    """The counts by number.

    None if a value is not a finite number, or a text such as 007 that would change.
    """
    numbers: dict[float, int] = {}
    for value, count in counts:
        text = isinstance(value, str) and PLAIN_NUMBER.fullmatch(value)
        if not text and (isinstance(value, bool) or not isinstance(value, int | float | Decimal)):
            return None
        number = float(value)
        if not math.isfinite(number):
            return None
        numbers[number] = numbers.get(number, 0) + count
    return numbers


def as_written(counts: Mapping[Any, int]) -> tuple[str, str, dict[float, int]] | None:
    """The decimal mark of written numbers such as $1,200 or 1 234,5, a text, and counts by number.

    None if a value is no such number.
    """
    texts = pa.chunked_array([pa.array(list(counts), pa.large_string())])
    for mark in (".", ","):
        plain = plain_numbers(texts, mark).to_pylist()
        if (numbers := as_numbers(zip(plain, counts.values(), strict=True))) is not None:
            return mark, max(counts, key=len), numbers
    return None


def identify(numbers: Mapping[float, int]) -> bool:
    """Whether numbers seem to name records: nearly all differ, and they count up or have the
    length of telephone numbers.
    """
    records = sum(numbers.values())
    if len(numbers) <= max(LISTED, UNIQUE_NUMBERS * records):
        return False
    low, high = min(numbers), max(numbers)
    whole = all(number.is_integer() for number in numbers)
    counting = len(numbers) > COUNTED and high - low < 1.5 * len(numbers)
    return whole and (counting or low >= 10**LONG_NUMBER)


def as_instants(
    counts: Mapping[Any, int], kind: pa.DataType
) -> tuple[Calendar, str | None, dict[float, int]] | None:
    """The kind of calendar, the time zone, and the counts by date or time as a number.

    None if a value is neither a date nor a time.
    """
    zone: str | None = getattr(kind, "tz", None)
    calendar = calendar_of(next(iter(counts)))
    if calendar is None:
        if not all(isinstance(value, str) for value in counts):
            return None
        every = (k for k in CALENDARS if all(ISO[k].fullmatch(value) for value in counts))
        if (calendar := next(every, None)) is None:
            return None
        if calendar == "timestamp" and any(
            re.search(r"(Z|[-+]\d{2}:?\d{2})$", value[11:]) for value in counts
        ):
            zone = "UTC"
    moments: dict[float, int] = {}
    for value, count in counts.items():
        try:
            at = float(math.floor(to_number(calendar, value, zone)))
        except (ValueError, OverflowError):
            return None
        moments[at] = moments.get(at, 0) + count
    return calendar, zone, moments


def drafted_instants(
    name: str,
    calendar: Calendar,
    zone: str | None,
    moments: Mapping[float, int],
    missing: bool,
    format: str | None,
) -> Attribute:
    """Dates or times, in bins or listed."""
    values, counts = _sorted(moments)
    day = {"date": 1, "timestamp": DAY, "time": 0}[calendar]
    parts = _domain(recognise(values, counts, day=day), values)
    if parts.pop("integral", False):
        parts["resolution"] = 1
    if parts.get("resolution") == 1:
        del parts["resolution"]
    return Dates(name, missing=missing, calendar=calendar, timezone=zone, format=format, **parts)


def drafted_numbers(
    name: str,
    numbers: Mapping[float, int],
    missing: bool,
    clamp: bool,
    format: str | None,
    flag: Callable[[str, str], None],
) -> Attribute:
    """A numeric attribute, or a categorical one if there are few numbers."""
    values, counts = _sorted(numbers)
    shape = recognise(values, counts, clamp=clamp)
    if shape.listed and format is None:
        whole = all(map(float.is_integer, values.tolist()))
        listed: list[Value] = [int(value) if whole else value for value in values.tolist()]
        return Attribute.categorical(name, listed, missing=missing, ordered=True)
    if (
        format is None
        and not clamp
        and (written := written_dates(values, counts))
        and (written == "%Y%m%d" or not shape.grid)
    ):
        return _written_numbers(name, numbers, missing, written, flag)
    if shape.codes and not shape.grid:
        flag(
            "has whole numbers that leave gaps, as codes do",
            "kept as numbers in bins, so most synthetic ones are no codes; list the values, or leave it out",
        )
    if shape.clamp and not clamp:
        flag("has values that are far beyond all others", "each is replaced by the nearest bound")
    return Numbers(name, missing=missing, format=format, **_domain(shape, values))


def _written_numbers(
    name: str,
    numbers: Mapping[float, int],
    missing: bool,
    format: str,
    flag: Callable[[str, str], None],
) -> Attribute:
    """Dates or times that are written as whole numbers."""
    calendar: Calendar = "time" if format == "%H%M" else "date"
    width = len(EPOCH.strftime(format))
    moments: dict[float, int] = {}
    for number, count in numbers.items():
        with suppress(ValueError):
            at = to_number(calendar, f"{number:0{width}.0f}", format=format)
            moments[at] = moments.get(at, 0) + count
    flag(
        f"has {calendar}s as numbers, such as {max(numbers):.0f}",
        f"read as {format}; delete calendar and format, and give edges as numbers, if they are quantities",
    )
    attribute = drafted_instants(name, calendar, None, moments, missing, format)
    # The few numbers that are no dates count as the nearest ones.
    return attribute


def _sorted(numbers: Mapping[float, int]) -> tuple[Floats, Integers]:
    """Values, increasing, and the records of each."""
    values = np.array(sorted(numbers), float)
    return values, np.array([numbers[value] for value in values.tolist()], np.int64)


def _domain(shape: Shape, values: Floats) -> dict[str, Any]:
    """The parts of an attribute whose numbers have a shape."""
    grid = tuple(map(float, shape.grid or (() if shape.edges else shape.points)))
    parts: dict[str, Any] = {"clamp": shape.clamp or shape.strays > 0}
    if grid and (shape.listed or not shape.edges):
        return parts | listed_numbers(grid)
    parts |= {"edges": tuple(map(float, shape.edges)), "points": tuple(map(float, shape.points))}
    if grid:
        return parts | {"grid": grid}
    if shape.single:
        return parts
    if shape.step == 1 and not shape.offset:
        return parts | {"integral": True}
    if shape.step:
        # The points between bins may lie off the step.
        parts |= {"resolution": float(shape.step), "offset": float(shape.offset)}
    return parts


def drafted_text(
    name: str, counts: Mapping[Any, int], missing: bool, flag: Callable[[str, str], None]
) -> Attribute:
    """A categorical attribute of the most frequent texts."""
    records = sum(counts.values())
    texts: dict[str, int] = {}
    for value, count in counts.items():
        texts[str(value)] = texts.get(str(value), 0) + count
    spelled: dict[str, str] = {}
    merged: tuple[str, ...] = ()
    for text in sorted(texts, key=lambda text: (-texts[text], text)):
        if (usual := spelled.setdefault(folded(text), text)) != text:
            texts[usual] += texts.pop(text)
            merged = merged or (usual, text)
    many = len(texts) > LISTED_TEXTS
    if many and len(texts) > UNIQUE * records:
        raise Excluded(
            f"has {len(texts):,} distinct values in {records:,} records, as names and numbers of people have"
        )
    if many and sum(map(len, texts)) > PROSE * len(texts):
        raise Excluded(
            f"has {len(texts):,} distinct values of {PROSE} letters and more, as free text has"
        )
    if odd := [text for text in texts if re.search(UNDECODED, text)]:
        flag(
            f"has texts such as {odd[0]!r}, with bytes of another encoding",
            "kept as they are; give the file's --encoding, perhaps cp1252",
        )
    if merged:
        flag(
            f"has the values {merged[0]!r} and {merged[1]!r}",
            "values that differ by case and spaces alone count as one; list both if they are two",
        )
    if not many:
        return Attribute.categorical(name, sorted(texts), missing=missing)
    kept = sorted(texts, key=lambda text: (-texts[text], text))[: LISTED_TEXTS - 1]
    other = OTHER
    while other in texts:
        other = f"({other})"
    share = 1 - sum(texts[text] for text in kept) / records
    flag(
        f"has {len(texts):,} distinct values",
        f"the {len(kept)} most frequent are listed, the rest, {100 * share:.1f} % of its records, is {other!r}",
    )
    return Attribute.categorical(name, sorted(kept), other=other, missing=missing)
