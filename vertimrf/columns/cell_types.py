"""The types of a column's cells: their names in a schema, their cells as plain ones, and plain values as such cells.

Plain cells are whole numbers of 64 bits, numbers in double precision, texts, dates, and times in seconds. Durations are numbers of
seconds. A schema names a type only if cells are not plain.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Floats, Texts
from ..errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Doubles that were numbers of single precision: 0.10000000149 for 0.1.
SINGLES = "float32 as double"
# The largest numbers of narrow floating-point types.
FLOATS = {"float16": 65504.0, "float32": 3.4028234663852886e38, SINGLES: 3.4028234663852886e38}
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DECIMAL = re.compile(r"decimal\((\d{1,2}), (\d{1,2})\)")
DURATION = re.compile(r"duration\[(s|ms|us|ns)\]")
# Types of dates, times of day and timestamps; a text or a whole number is written as the format says.
MOMENTS = {
    "date": ("date64",),
    "time": ("time32[ms]", "time64[us]", "time64[ns]"),
    "timestamp": ("timestamp[ms]", "timestamp[us]", "timestamp[ns]"),
}
DICTIONARY, TEXT = "dictionary", "string"
# Microseconds of a day, and most days of an interval.
DAY, LONGEST_DAYS = 86_400 * 10**6, 10**8
MOST_DIGITS = 38


def check_number_type(
    where: str, name: Any, low: float, high: float, whole: bool, digits: int | None
) -> None:
    """Check that numbers from ``low`` to ``high`` can have a type.

    Args:
        where: begins the sentence of an error.
        name: the type, from a schema.
        low, high: the least and the greatest number.
        whole: whether they are all whole.
        digits: decimals of the numbers, None if they have any number of them.

    Raises:
        SchemaError: they cannot.
    """
    least, most, every = -math.inf, math.inf, False
    text = name if isinstance(name, str) else ""
    if text in WHOLE:
        sign, bits = WHOLE[name]
        least, most = (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        every = True
    elif text in FLOATS:
        least, most = -FLOATS[name], FLOATS[name]
    elif match := DECIMAL.fullmatch(text):
        precision, scale = map(int, match.groups())
        if not 0 <= scale <= precision <= MOST_DIGITS or precision == 0:
            raise SchemaError(
                f"{where}: type is {name!r}; a decimal has 1 to {MOST_DIGITS} digits, of which some are decimals."
            )
        most = 10.0 ** (precision - scale) - (precision == scale or 10.0**-scale)
        least = -most
        every = scale == 0
        if digits is not None and digits > scale:
            raise SchemaError(
                f"{where}: type is {name!r}, but its values have {digits} decimals; correct one of them."
            )
    elif not DURATION.fullmatch(text):
        raise unknown_type(
            where, name, (*WHOLE, *FLOATS, "decimal(10, 2)", *(f"duration[{u}]" for u in UNITS))
        )
    if not (least <= low and high <= most) or (every and not whole):
        raise SchemaError(
            f"{where}: type is {name!r}, which does not hold all of its values; use a wider type, or leave it out."
        )


def unknown_type(where: str, name: Any, known: Texts) -> SchemaError:
    """The error about a type that the attribute cannot have."""
    return SchemaError(
        f"{where}: type is {name!r}; use one of {', '.join(known)}, or leave it out."
    )


def type_name(kind: pa.DataType) -> str | None:
    """The name of a type in a schema; None if its cells are plain, or have no name."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return DICTIONARY
    if pa.types.is_decimal(kind):
        scale = min(max(kind.scale, 0), MOST_DIGITS)
        return f"decimal({min(max(kind.precision, scale, 1), MOST_DIGITS)}, {scale})"
    if pa.types.is_interval(kind):
        # Of DuckDB, which has no other durations. No file holds it.
        return "duration[us]"
    # As Arrow calls it, but for a time zone.
    name = re.sub(", tz=.*", "]", str(kind))
    name = {"halffloat": "float16", "float": "float32", "date64[ms]": "date64"}.get(name, name)
    if name == "int64":
        return None
    known = (
        name in FLOATS
        or name in WHOLE
        or DURATION.fullmatch(name)
        or any(name in m for m in MOMENTS.values())
    )
    return name if known else None


def plain_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column's cells as plain ones, as far as their type is narrow.

    A number of 16 or 32 bits becomes the shortest decimal that it stands for: 0.1 is 0.1. A duration becomes seconds. What is finer than
    Python's times is cut to microseconds. A cell's value depends on this cell alone.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return column.cast(pa.decimal128(MOST_DIGITS, kind.scale))
    if pa.types.is_float32(kind):
        return column.cast(pa.string()).cast(pa.float64())
    if pa.types.is_float16(kind):
        cells = column.combine_chunks()
        halves, places = np.unique(
            cells.cast(pa.float32()).fill_null(0).to_numpy(zero_copy_only=False),
            return_inverse=True,
        )
        decimals = np.array([float(str(half)) for half in halves.astype(np.float16)])
        absent = cells.is_null().to_numpy(zero_copy_only=False)
        return pa.chunked_array([pa.array(decimals[places], mask=absent)])
    if pa.types.is_interval(kind):
        return plain_cells(pa.chunked_array([*map(_intervals, column.chunks)], pa.duration("us")))
    if pa.types.is_duration(kind):
        if kind.unit == "ns":
            return plain_cells(_in_microseconds(column).cast(pa.duration("us")))
        each = UNITS[kind.unit]
        ticks = column.cast(pa.int64())
        if each == 1:
            return ticks
        whole = pc.divide(ticks, each)
        if pc.all(pc.equal(pc.multiply(whole, each), ticks)).as_py() is not False:
            return whole
        # A whole number of seconds stays that, whatever the other cells are.
        rest = pc.divide(
            pc.subtract(ticks, pc.multiply(whole, each)).cast(pa.float64()), float(each)
        )
        return pc.add(whole.cast(pa.float64(), safe=False), rest)
    if getattr(kind, "unit", None) == "ns":
        zone = getattr(kind, "tz", None)
        coarse = pa.time64("us") if pa.types.is_time(kind) else pa.timestamp("us", zone)
        return _in_microseconds(column).cast(coarse)
    return column


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nanoseconds as whole microseconds, the ones before [int64]."""
    import pyarrow as pa

    cells = column.cast(pa.int64()).combine_chunks()
    absent = cells.is_null().to_numpy(zero_copy_only=False)
    ticks = cells.fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return pa.chunked_array([pa.array(ticks, mask=absent)])


def _intervals(cells: pa.Array) -> pa.Array:
    """Intervals as durations [us]. A month counts as 30 days, as in PostgreSQL and DuckDB."""
    import pyarrow as pa

    layout = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    every = np.frombuffer(cells.buffers()[1], layout)[cells.offset : cells.offset + len(cells)]
    absent = cells.is_null().to_numpy(zero_copy_only=False)
    days = every["months"].astype(np.int64) * 30 + every["days"]
    # The longest ones, of 290,000 years, stand for those that are longer.
    days = np.clip(days, -LONGEST_DAYS, LONGEST_DAYS)
    return pa.array(days * DAY + every["nanoseconds"] // 1000, mask=absent).cast(pa.duration("us"))


def for_csv(table: pa.Table) -> pa.Table:
    """A table as a CSV file has it: plain cells, and times in seconds unless they are finer."""
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        column = table.column(place)
        kind = column.type
        if pa.types.is_float16(kind) or pa.types.is_duration(kind):
            table = table.set_column(place, name, plain_cells(column))
        elif getattr(kind, "unit", "s") != "s":
            coarse = pa.time32("s") if pa.types.is_time(kind) else pa.timestamp("s", kind.tz)
            try:
                table = table.set_column(place, name, column.cast(coarse))
            except pa.ArrowInvalid:
                continue
        elif kind == pa.date64():
            table = table.set_column(place, name, column.cast(pa.date32()))
    return table


def as_decimals(singles: Floats) -> Floats:
    """The shortest decimals that numbers of single precision stand for; NaN stays [shape=(n,)]."""
    import pyarrow as pa

    with np.errstate(over="ignore"):
        cells = pa.chunked_array([pa.array(singles.astype(np.float32))])
    decimals: Floats = plain_cells(cells).to_numpy()
    return decimals


def typed_numbers(values: pa.Array, name: str | None) -> pa.Array:
    """Plain numbers as cells of a type, rounded to the nearest one.

    Args:
        values: the numbers, within the range of the type [int64, uint64 or double].
        name: name of the type; None for plain cells.
    """
    import pyarrow as pa

    if name is None:
        return values
    if name in WHOLE:
        return values.cast(pa.type_for_alias(name), safe=False)
    if name in FLOATS:
        narrow = values.cast(pa.float16() if name == "float16" else pa.float32(), safe=False)
        return narrow.cast(pa.float64()) if name == SINGLES else narrow
    if match := DECIMAL.fullmatch(name):
        precision, scale = map(int, match.groups())
        if not pa.types.is_floating(values.type):
            return values.cast(pa.decimal256(76, scale)).cast(pa.decimal128(precision, scale))
        return values.cast(pa.decimal128(precision, scale))
    unit = name[len("duration[") : -1]
    absent = values.is_null().to_numpy(zero_copy_only=False)
    seconds = values.fill_null(0).to_numpy(zero_copy_only=False)
    ticks = (
        seconds * UNITS[unit]
        if seconds.dtype.kind == "i"
        else np.rint(seconds * float(UNITS[unit]))
    )
    return pa.array(ticks.astype(np.int64), mask=absent).cast(pa.duration(unit))
