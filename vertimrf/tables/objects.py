"""Columns of Python objects: each cell is stored by its own type, as a column of that type would be.

A column of objects has no type. One that followed from all its cells would let a single cell, such
as a text among numbers, decide how the others are read. So it is an Arrow union, and what reads a
column reads the cells of each type on their own (:func:`by_type`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from ..columns.cells import EXACT_DECIMAL, shortest

# Most digits of a whole number; longer ones are stored as floating-point numbers.
DIGITS = EXACT_DECIMAL.precision
# Most digits on each side of the mark of numbers that double precision does not hold; others are stored as floating-point numbers.
EXACT_DIGITS = EXACT_DECIMAL.scale
# Types of the cells, by name.
TYPES = {
    "text": pa.large_string(),
    "whole": pa.int64(),
    "large": pa.decimal256(DIGITS),
    "exact": EXACT_DECIMAL,
    "number": pa.float64(),
    "flag": pa.bool_(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "moment": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "UTC"),
    "span": pa.duration("us"),
}
NAMES = list(TYPES)
# Scalars of pandas that stand for a missing value.
ABSENT = ("NAType", "NaTType")
# Objects of pandas that are read as their text, as columns of nothing else are.
SPANS = ("Interval", "Period")
# Types of a whole column, by the types of its cells.
ONE_TYPE: tuple[tuple[set[type], pa.DataType | None], ...] = (
    ({int}, pa.int64()),
    ({int, float}, pa.float64()),
    ({int, Decimal}, None),
    ({int, float, Decimal}, None),
    ({int, float, Decimal}, pa.float64()),
    ({bool}, pa.bool_()),
    ({time}, pa.time64("us")),
    ({timedelta}, pa.duration("us")),
    ({datetime}, None),
)
# A column, and by row the types of objects that are left out.
Cells = tuple[pa.Array, dict[int, str]]
EPOCH, MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)


def from_objects(values: Iterable[Any], mixed: bool = False) -> Cells:
    """Store objects: text, bytes, numbers, dates, times and UUIDs, each by its type.

    Other objects, such as lists, are left out: their text may differ from run to run.

    Args:
        values: the objects of a column.
        mixed: give the type of columns with several types in any case, as for one piece of many.

    Returns:
        The column, of text if it has nothing else; and by row, the types of objects that are left
        out, which are null in the column.
    """
    kinds, places, unfit = [], [], {}
    cells: dict[str, list[Any]] = {name: [] for name in NAMES}
    for row, value in enumerate(values):
        try:
            name, cell = _stored(value)
        except Exception:  # whatever an object raises that is asked for its value
            name, cell = "text", None
            unfit[row] = type(value).__name__
        kinds.append(NAMES.index(name))
        places.append(len(cells[name]))
        cells[name].append(cell)
    children = [pa.array(cells[name], kind) for name, kind in TYPES.items()]
    if len(children[0]) == len(kinds) and not mixed:
        return children[0], unfit
    types, offsets = pa.array(kinds, pa.int8()), pa.array(places, pa.int32())
    return pa.UnionArray.from_dense(types, offsets, children, NAMES), unfit


def of_one_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of objects as a column of the one type that its cells have, else of text.

    Whole numbers count as numbers beside others, and dates as moments.
    """
    if not pa.types.is_union(column.type):
        return column
    if (numbers := _only_numbers(column)) is not None:
        return numbers
    values = [value for value in column.to_pylist() if value is not None]
    kinds = {type(value) for value in values}
    if kinds <= {date, datetime} and all(
        not isinstance(value, datetime) or (value.time() == time() and value.tzinfo is None)
        for value in values
    ):
        return column_of(column, pa.date32(), lambda v: v.date() if isinstance(v, datetime) else v)
    for fitting, kind in ONE_TYPE:
        if kinds <= fitting:
            with contextlib.suppress(pa.ArrowException, ArithmeticError, TypeError, ValueError):
                return column_of(column, kind, _made(kinds, kind))
    return column_of(column, pa.large_string(), csv_text)


def _only_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The cells of a column of objects that are all numbers in double precision; None of any other."""
    place, found = NAMES.index("number"), []
    if column.type.mode != "dense" or column.type.num_fields != len(NAMES):
        return None
    for chunk in column.chunks:
        _, kinds, places, *_ = chunk.buffers()
        part = slice(chunk.offset, chunk.offset + len(chunk))
        if (np.frombuffer(kinds, np.int8)[part] != place).any():
            return None
        found.append(chunk.field(place).take(pa.array(np.frombuffer(places, np.int32)[part])))
    return pa.chunked_array(found, pa.float64())


def _made(kinds: set[type], kind: pa.DataType | None) -> Callable[[Any], Any]:
    """How a value of a column with these types becomes one of a type; Arrow makes no other numbers of decimals."""
    if Decimal not in kinds:
        return lambda value: value
    return _exact if kind is None else float


def column_of(
    column: pa.ChunkedArray, kind: pa.DataType | None, made: Callable[[Any], Any]
) -> pa.ChunkedArray:
    """A column of a type, made cell by cell; nulls stay."""
    cells = [None if value is None else made(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(cells, kind)])


def csv_text(value: Any) -> str:
    """A value as a CSV file would hold it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal) and value.is_finite():
        return str(shortest(value))
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return text.encode("utf-8", "backslashreplace").decode()


def _stored(value: Any) -> tuple[str, Any]:
    """The name of a value's type, and the value as Arrow takes it.

    Raises:
        Exception: it has no such type.
    """
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if isinstance(value, complex) and not value.imag:
        # One complex cell makes complex numbers of all others in its column.
        value = value.real
    # A missing cell has no type: it is one beside cells of any type.
    if value is None or type(value).__name__ in ABSENT or _is_nan(value):
        return "text", None
    if isinstance(value, bool):
        return "flag", value
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return "whole", int(value)
        return (
            ("large", Decimal(int(value))) if abs(value) < 10**DIGITS else ("number", float(value))
        )
    if isinstance(value, float):
        return "number", float(value)
    if isinstance(value, str):
        # Without surrogates, which UTF-8 does not have.
        return "text", str.encode(value, "utf-8", "backslashreplace").decode()
    if isinstance(value, bytes):
        return "text", value.decode("utf-8", "backslashreplace")
    if isinstance(value, UUID) or type(value).__name__ in SPANS:
        return "text", str(value)
    if isinstance(value, Decimal):
        short = value.is_finite() and value.adjusted() < DIGITS
        if short and value == int(value):
            return _stored(int(value))
        number = float(value)
        if value.is_finite() and _exact(number) != value and _fits(value):
            return "exact", value
        return _stored(number)
    return _stored_moment(value)


def _fits(value: Decimal) -> bool:
    exponent = shortest(value).as_tuple().exponent
    return (
        value.adjusted() < EXACT_DIGITS and isinstance(exponent, int) and exponent >= -EXACT_DIGITS
    )


def _exact(value: float | Decimal) -> Decimal:
    """A number as a decimal with the digits that it has, without zeros at the end."""
    return shortest(value if isinstance(value, Decimal) else Decimal(repr(value)))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | Decimal) and value != value


def _stored_moment(value: Any) -> tuple[str, Any]:
    """As :func:`_stored`, for dates and times."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return "moment", _whole((value - EPOCH) // MICROSECOND)
        return "zoned", _whole((value - EPOCH.replace(tzinfo=UTC)) // MICROSECOND)
    if isinstance(value, date):
        return "date", (value - EPOCH.date()).days
    if isinstance(value, timedelta):
        return "span", _whole(value // MICROSECOND)
    if isinstance(value, time) and value.tzinfo is None:
        return "time", value
    raise TypeError(type(value).__name__)


def _whole(number: int) -> int:
    """An integer of 64 bits.

    Raises:
        OverflowError: it has more.
    """
    return int(np.int64(number))
