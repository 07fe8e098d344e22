"""Draft an attribute from the values of a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import SchemaError
from .calendar import CALENDARS, DAY, Calendar, calendar_of, to_number
from .cells import is_missing
from .column import Attribute, Value, folded
from .edges import decimals_of, drafted_edges
from .formats import UNDECODED, DateOrder, dates_written, plain_numbers

# Columns with at most this many numbers are listed; others are binned.
LISTED_NUMBERS = 64
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
        calendar, zone, moments = instants
        step = next(
            s
            for s in (DAY, 3600, 60, 1)
            if (calendar != "date" and all(at % s == 0 for at in moments)) or s == 1
        )
        edges = drafted_edges({at / step: count for at, count in moments.items()})
        return Attribute.temporal(
            name,
            calendar,
            [edge * step for edge in edges],
            timezone=zone,
            missing=missing,
            resolution=step if step > 1 else None,
            format=format,
        )
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
        return drafted_numbers(name, numbers, missing, bool(infinite), format)
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
    if len(numbers) <= max(LISTED_NUMBERS, UNIQUE_NUMBERS * records):
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


def drafted_numbers(
    name: str,
    numbers: Mapping[float, int],
    missing: bool,
    clamp: bool,
    format: str | None = None,
) -> Attribute:
    """A numeric attribute, or a categorical one if there are few numbers."""
    values = sorted(numbers)
    digits = decimals_of(np.array(values))
    if len(values) <= LISTED_NUMBERS and not clamp and format is None:
        listed: list[Value] = [int(value) for value in values] if digits == 0 else list(values)
        return Attribute.categorical(name, listed, missing=missing, ordered=True)
    return Attribute.numeric(
        name,
        drafted_edges(numbers),
        integral=digits == 0,
        resolution=10.0**-digits if digits else None,
        clamp=clamp,
        missing=missing,
        format=format,
    )


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
