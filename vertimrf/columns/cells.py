"""Cells of Arrow columns as codes, numbers and values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Flags, Floats, Integers, Integral, Texts
from ..errors import SchemaError, TableError
from .calendar import DAY
from .cell_types import plain_cells
from .notations.notation import Notation
from .text import MISSING_TEXT, Value, parse

if TYPE_CHECKING:
    from .column import Attribute
    from .dates import Dates

Arrays = TypeVar("Arrays", bound=tuple[npt.NDArray[Any], ...])
# Microseconds by unit, and those of the farthest date, in thirty thousand years, that a time zone is
# applied to.
MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}
FAR = 10**18
# Type of the decimals that double precision does not hold, among cells of other types. Its zeros at the end have no meaning.
EXACT_DECIMAL = pa.decimal256(76, 38)
# Arithmetic that keeps all digits of the longest numbers.
EVERY_DIGIT = Context(prec=2 * EXACT_DECIMAL.precision)
# Floating-point numbers of up to this are whole if they say so.
WHOLE = 2.0**53
# Cells that say whether a column is in a notation.
LOOKED_AT = 1 << 16
# Python parses no longer integers.
LONGEST_NUMBER = 4300


def by_type(
    column: pa.ChunkedArray,
    read: Callable[[pa.ChunkedArray], Arrays],
    unfit: tuple[Any, ...],
) -> Arrays:
    """Read a column, the cells of each type on their own if it has several.

    Args:
        column: the column.
        read: reads cells of one type into arrays [each shape=(n,)].
        unfit: NumPy scalars: what stands in each array for cells of a type that ``read`` refuses.

    Raises:
        SchemaError, TableError: the column has one type, which ``read`` refuses.
    """
    if not pa.types.is_union(column.type):
        return read(column)
    out = tuple(np.full(len(column), fill) for fill in unfit)
    before = 0
    for chunk in column.chunks:
        # Arrow's own properties of a slice do not begin where it begins.
        part = slice(chunk.offset, chunk.offset + len(chunk))
        _, codes, offsets, *_ = chunk.buffers()
        for i, code in enumerate(column.type.type_codes):
            rows = np.flatnonzero(np.frombuffer(codes, np.int8)[part] == code)
            if not len(rows):
                continue
            dense = column.type.mode == "dense"
            places = np.frombuffer(offsets, np.int32)[part][rows] if dense else rows
            cells = pa.chunked_array([chunk.field(i).take(pa.array(places))])
            with contextlib.suppress(SchemaError, TableError):
                for target, array in zip(out, read(cells), strict=True):
                    target[before + rows] = array
        before += len(chunk)
    return cast(Arrays, out)


def written_out(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose cells are values themselves, not places in a dictionary."""
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    if pa.types.is_string_view(kind.value_type):
        # Arrow cannot take such texts by their places.
        column = column.cast(pa.dictionary(kind.index_type, pa.large_string()))
    return column.cast(column.type.value_type)


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    r"""A column of bytes as texts; invalid bytes are written as ``\\xNN``. Any other column itself."""
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        return column
    cells = column.to_pylist()
    texts = [None if cell is None else cell.decode("utf-8", "backslashreplace") for cell in cells]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text, however stored."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def cell_value(cell: pa.Scalar) -> Any:
    """A cell's value as a Python object, or as text if Python has no such value."""
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        # Dates after the year 9999, and fractions of seconds finer than Python's.
        try:
            return cell.cast(pa.string()).as_py()
        except pa.ArrowException:
            return str(cell.type)


def shortest(number: Decimal) -> Decimal:
    """A decimal without zeros at the end, whose text has no exponent."""
    return Decimal(format(number.normalize(EVERY_DIGIT), "f"))


def cell_values(cells: pa.Array) -> list[Any]:
    """Python values of cells; values that Python cannot represent become text."""
    try:
        values: list[Any] = cells.to_pylist()
        if cells.type == EXACT_DECIMAL:
            return [value if value is None else shortest(value) for value in values]
        return values
    except (OverflowError, ValueError):
        return [cell_value(cell) for cell in cells]


def canonical(value: Any, sample: Value) -> str:
    """Text that equal values share, however they are stored.

    Args:
        value: the value.
        sample: a value of the declared type.
    """
    if isinstance(value, bool):
        return str(value).lower() if isinstance(sample, bool | str) else str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    if isinstance(sample, int | float) and isinstance(value, Decimal) and value.is_finite():
        whole = isinstance(sample, int) and value == int(value)
        return canonical(int(value) if whole else float(value), sample)
    if isinstance(value, str) and not isinstance(sample, str):
        if isinstance(sample, bool):
            return text.lower()
        if text.removeprefix("-").isdecimal() and len(text) <= LONGEST_NUMBER:
            return str(int(text))
        # Data frames with missing values store integers as decimals: 3.0 is 3.
        number = parse(text)
        if number.is_integer():
            return str(int(number))
        return str(number) if isinstance(sample, float) and number == number else text
    return text


def by_dictionary(column: pa.ChunkedArray, where: str) -> tuple[list[Any], Integers]:
    """Distinct values of a column, and their index by cell [shape=(n,), int64].

    The index is -1 of null, and -2 of a cell that is no category, in a column of several types.

    Raises:
        SchemaError: the column has one type, of which cells are no categories.
    """
    values: list[Any] = []

    def read(cells: pa.ChunkedArray) -> tuple[Integers]:
        distinct, indices = _dictionary(decoded(cells), where)
        indices[indices >= 0] += len(values)
        values.extend(cell_values(distinct))
        return (indices,)

    (indices,) = by_type(column, read, (np.int64(-2),))
    return values, indices


def _dictionary(column: pa.ChunkedArray, where: str) -> tuple[pa.Array, Integers]:
    """As :func:`by_dictionary`, for cells of one type."""
    with contextlib.suppress(pa.ArrowException):
        # Fails if one of several dictionaries has a null, or all have too many values for an index.
        if pa.types.is_dictionary(column.type):
            column = pa.chunked_array([column.unify_dictionaries().combine_chunks()])
    try:
        whole = written_out(column) if column.num_chunks > 1 else column
        whole = plain_cells(whole) if pa.types.is_decimal(whole.type) else whole
        if not pa.types.is_dictionary(whole.type):
            whole = whole.dictionary_encode()
    except pa.ArrowException:
        raise SchemaError(
            f"{where} holds {column.type} cells, which are no categories; leave it out."
        ) from None
    chunk = whole.combine_chunks()
    indices = chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return plain_cells(pa.chunked_array([chunk.dictionary])).combine_chunks(), np.array(indices)


def column_numbers(
    attribute: Attribute, column: pa.ChunkedArray, where: str
) -> tuple[Floats, Flags]:
    """See :meth:`vertimrf.columns.column.Attribute.numbers`."""

    def read(cells: pa.ChunkedArray) -> tuple[Floats, Flags]:
        cells = decoded(written_out(cells))
        if is_text(cells.type):
            return read_texts(
                cells.cast(pa.large_string()), attribute.notation, attribute.missing_text or ()
            )
        try:
            cells = plain_cells(cells)
            if pa.types.is_decimal(cells.type):
                # Arrow's own conversion is off by the last bit.
                cells = cells.cast(pa.string())
            numbers = cells.cast(pa.float64(), safe=False).combine_chunks()
        except pa.ArrowException:
            raise SchemaError(
                f"{where} holds {cells.type} cells, but the schema says {attribute.kind}; "
                "convert them to numbers, or list the values in the schema."
            ) from None
        values = numbers.to_numpy(zero_copy_only=False)
        return values, np.isnan(values)

    return by_type(column, read, (np.nan, np.False_))


def read_texts(
    column: pa.ChunkedArray, notation: Notation | None, absent_texts: Texts
) -> tuple[Floats, Flags]:
    """As :func:`column_numbers`, for texts, which are plain numbers without a notation.

    Args:
        column: the texts.
        notation: how they are written.
        absent_texts: texts that stand for a missing value, besides the usual ones.
    """
    if notation is None:
        # Looking for texts of missing values takes as long as reading numbers, which only NaN is.
        with contextlib.suppress(pa.ArrowInvalid):
            numbers = np.array(column.cast(pa.float64()).to_numpy())
            if np.isnan(numbers).sum() == column.null_count:
                return numbers, column.is_null().to_numpy()
    absent = pc.or_(
        column.is_null(),
        pc.is_in(column, value_set=pa.array([*MISSING_TEXT, *absent_texts], column.type)),
    ).to_numpy()
    present = column.filter(pa.array(~absent))
    numbers = np.full(len(column), np.nan)
    if notation is not None:
        numbers[~absent] = notation.parsed(present)
        return numbers, absent
    try:
        numbers[~absent] = present.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        # Some cell is not a number; parse each cell to find out which.
        numbers[~absent] = [parse(text) for text in present.to_pylist()]
    return numbers, absent


def in_notation(attribute: Attribute, plain: Attribute, column: pa.ChunkedArray) -> bool:
    """Whether a column of a synthetic table is in an attribute's notation, and not plain.

    Args:
        attribute: the attribute.
        plain: the same without its notation.
        column: the cells.
    """
    if not is_text(column.type):
        return not attribute.is_text and pa.types.is_integer(column.type)
    assert attribute.notation is not None
    cells = column.slice(0, LOOKED_AT)
    absent = pa.array([*MISSING_TEXT, *(attribute.missing_text or ())], pa.string())
    texts = cells.filter(pc.invert(pc.is_in(cells.cast(pa.string()), value_set=absent)))
    if attribute.notation.is_of(texts):
        return True
    read = [np.isfinite(each.numbers(texts, "x")[0]).sum() for each in (attribute, plain)]
    return bool(read[0] > read[1])


def column_instants(attribute: Dates, column: pa.ChunkedArray, where: str) -> tuple[Floats, Flags]:
    """As :func:`column_numbers`, for dates, times of day and timestamps."""
    calendar, zone, format = attribute.calendar, attribute.timezone, attribute.format
    notation, none = attribute.notation, {*MISSING_TEXT, *(attribute.missing_text or ())}

    def written(texts: pa.ChunkedArray) -> tuple[Floats, Flags]:
        distinct, indices = by_dictionary(texts, where)
        numbers = np.full(len(distinct) + 1, np.nan)
        absent = np.ones(len(distinct) + 1, bool)
        absent[:-1] = [text is None or text in none for text in distinct]
        present = [text for text, lacks in zip(distinct, absent[:-1], strict=True) if not lacks]
        read = pa.chunked_array([pa.array(present, pa.large_string())])
        numbers[~absent] = notation.parsed(read)
        return numbers[indices], absent[indices]

    def read(cells: pa.ChunkedArray) -> tuple[Floats, Flags]:
        cells = decoded(cells)
        if format is not None and pa.types.is_floating(cells.type):
            # Whole numbers beside missing ones.
            absent = cells.is_null(nan_is_null=True).to_numpy()
            values = np.where(absent, 0.5, np.nan_to_num(cells.cast(pa.float64()).to_numpy()))
            whole = (values == np.floor(values)) & (np.abs(values) <= WHOLE)
            places = np.where(whole, values, 0).astype(np.int64)
            numbers, _ = read(pa.chunked_array([pa.array(places, mask=~whole)]))
            return numbers, absent
        if format is not None and pa.types.is_integer(written_out(cells).type):
            # Numbers such as 20190131 and 730 are dates and times without leading zeros.
            texts = written_out(cells).cast(pa.string())
            return written(pc.utf8_lpad(texts, notation.width, "0"))
        if is_text(cells.type):
            return written(cells)
        declared = (
            calendar
            if calendar != "timestamp"
            else f"timestamp {f'of {zone}' if zone else 'without a time zone'}"
        )
        cells = written_out(cells)
        kind = cells.type
        if pa.types.is_null(kind):
            return np.full(len(cells), np.nan), np.ones(len(cells), bool)
        if calendar == "time" and pa.types.is_duration(kind):
            # SPSS and SAS keep times of day so.
            spans = plain_cells(cells).cast(pa.float64(), safe=False).to_numpy()
            within = (spans >= 0) & (spans < DAY)
            return np.where(within, spans, np.nan), cells.is_null().to_numpy()
        aware = getattr(kind, "tz", None) is not None
        fits = (
            pa.types.is_time(kind)
            if calendar == "time"
            else pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        )
        if not fits or (aware and zone is None):
            raise SchemaError(
                f"{where} holds {kind} cells, but the schema says {declared}; convert them, or change the schema."
            )
        seconds, missing = _seconds(cells, None if aware else zone)
        seconds[missing] = np.nan
        return seconds / (86_400 if calendar == "date" else 1), missing

    return by_type(column, read, (np.nan, np.False_))


def _seconds(column: pa.ChunkedArray, zone: str | None) -> tuple[Floats, Flags]:
    """Seconds of dates or times, read in a time zone if they have none, and which are missing.

    No date is too far away: Arrow's own conversion to another unit would wrap around.
    """
    kind = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False)
    whole = column.cast(pa.int32()) if kind.bit_width == 32 else column
    ticks = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy()
    if getattr(kind, "unit", None) == "ns":
        ticks, each = ticks // 1000, 1
    else:
        each = (
            86_400_000_000
            if pa.types.is_date32(kind)
            else MICROSECONDS[getattr(kind, "unit", "ms")]
        )
    near = (ticks <= FAR // each) & (ticks >= -FAR // each)
    moments = np.where(near, ticks, 0) * each
    if zone is not None:
        # An hour that clocks repeat counts as the first one; an hour that they skip counts as the
        # one after.
        local = pa.array(moments, pa.timestamp("us"))
        there = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
        moments = there.cast(pa.int64()).to_numpy()
    return np.where(near, moments / 1e6, ticks * (each / 1e6)), missing


def present_codes(codes: Integral, present: int) -> pa.Array:
    """Codes below ``present``, null instead of the others [int64]."""
    return pa.array(codes.astype(np.int64), mask=codes >= present)
