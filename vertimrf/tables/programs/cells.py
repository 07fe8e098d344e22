"""Columns as numbers and texts, which is all that programs of statistics have: dates and times are numbers with a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...arrays import Flags, Floats
from ...columns.cell_types import plain_cells
from ...columns.cells import is_text, written_out
from ..codebook import Code, Variable
from .program import About

EPOCH = datetime(1970, 1, 1)
DAY = 86_400
# Whole numbers beyond are rounded in double precision.
EXACT = 2**53
NUMBER, DATE, MOMENT, CLOCK, SPAN, TEXT = "number", "date", "moment", "clock", "span", "text"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Column:
    """A column as a program has it.

    Attributes:
        name: its name in the table.
        kind: number, date (days since 1970), moment, clock or span (seconds), or text.
        numbers: the numbers, NaN for missing ones [shape=(n,)]; None of texts.
        texts: the texts, None for missing ones; empty of numbers.
        labels: what numbers mean.
        ordered: whether the labels are in order; None if the numbers are no codes.
        whole: whether all numbers are whole.
    """

    name: str
    kind: str
    numbers: Floats | None = None
    texts: tuple[str | None, ...] = ()
    labels: Mapping[Code, str] = field(default_factory=dict)
    ordered: bool | None = None
    whole: bool = False


def columns_of(table: pa.Table, about: About, labelled: bool, say: Say) -> list[Column]:
    """The columns of a table.

    Args:
        table: the table.
        about: a codebook, whose codes labels get.
        labelled: whether the program has labels of numbers.
        say: told what no program of statistics holds.
    """
    return [
        _column(name, table[name], about.get(name), labelled, say) for name in table.column_names
    ]


def _column(
    name: str, column: pa.ChunkedArray, variable: Variable | None, labelled: bool, say: Say
) -> Column:
    kind = column.type
    if pa.types.is_dictionary(kind) and is_text(kind):
        known = column.unify_dictionaries().chunk(0).dictionary if len(column) else ()
        order = [str(value) for value in known if value.is_valid]
        texts = written_out(column).to_pylist()
        if labelled and (variable is None or not variable.shown):
            return _coded(name, texts, dict(enumerate(order, 1)), kind.ordered)
        return _of_texts(name, texts, variable, labelled)
    if is_text(kind):
        return _of_texts(name, column.to_pylist(), variable, labelled)
    if pa.types.is_boolean(kind):
        numbers = _floats(column.cast(pa.int8()))
        labels: dict[Code, str] = {0: "false", 1: "true"} if labelled else {}
        return Column(name, NUMBER, numbers, labels=labels, ordered=False, whole=True)
    if pa.types.is_date(kind):
        return Column(name, DATE, _floats(column.cast(pa.date32()).cast(pa.int32())), whole=True)
    if pa.types.is_duration(kind):
        return Column(name, SPAN, _floats(plain_cells(column)))
    if pa.types.is_time(kind):
        return Column(
            name, CLOCK, _floats(plain_cells(column).cast(pa.time64("us")).cast(pa.int64())) / 1e6
        )
    if pa.types.is_timestamp(kind):
        ticks = plain_cells(on_clocks(name, column, say)).cast(pa.timestamp("us")).cast(pa.int64())
        return Column(name, MOMENT, _floats(ticks) / 1e6)
    if pa.types.is_integer(kind) and _beyond(column):
        say(
            f"{name!r} has whole numbers beyond 9,007,199,254,740,992, of which the last digits are rounded"
        )
    if pa.types.is_floating(kind) and pc.any(pc.is_inf(column)).as_py():
        say(f"{name!r} has infinite numbers, which are written as missing")
    numbers = _floats(column)
    present = numbers[~np.isnan(numbers)]
    return Column(name, NUMBER, numbers, whole=bool((present % 1 == 0).all()))


def on_clocks(name: str, column: pa.ChunkedArray, say: Say) -> pa.ChunkedArray:
    """Timestamps as clocks of their zone show them, without the zone."""
    zone = column.type.tz
    if zone is not None:
        say(
            f"{name!r} has times of the zone {zone}, and no zone: they are written as clocks there show them"
        )
        column = pc.local_timestamp(column)
    ticks = plain_cells(column).cast(pa.timestamp("us")).cast(pa.int64())
    if (_floats(ticks) % 1000 > 0).any():
        say(f"{name!r} has times of less than a millisecond, which are rounded to milliseconds")
    return column


def _floats(column: pa.ChunkedArray) -> Floats:
    """Cells as numbers in double precision; missing and infinite ones are NaN."""
    cells = column.cast(pa.float64(), safe=False).combine_chunks()
    absent = cells.is_null().to_numpy(zero_copy_only=False)
    numbers: Floats = cells.fill_null(0.0).to_numpy(zero_copy_only=False).copy()
    numbers[absent | ~np.isfinite(numbers)] = np.nan
    return numbers


def _beyond(column: pa.ChunkedArray) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and (ends["min"] < -EXACT or ends["max"] > EXACT)


def _of_texts(
    name: str, texts: Sequence[str | None], variable: Variable | None, labelled: bool
) -> Column:
    """Texts; codes where the codebook has labels of them."""
    if variable is None or not labelled or not variable.shown or not variable.coded:
        return Column(name, TEXT, texts=tuple(texts))
    return _coded(name, texts, variable.texts, variable.level == "ordinal", variable)


def _coded(
    name: str,
    texts: Sequence[str | None],
    labels: Mapping[Any, str],
    ordered: bool,
    variable: Variable | None = None,
) -> Column:
    """Texts as the codes that have them as labels. Others are the numbers that they are, or get the next codes."""
    codes = {label: code for code, label in labels.items()}
    if any(isinstance(code, str) for code in codes.values()):
        # Codes that are texts: of string variables.
        cells = tuple(text if text is None else str(codes.get(text, text)) for text in texts)
        return Column(name, TEXT, texts=cells, labels=_original(labels, variable))
    taken = [code for code in codes.values() if not isinstance(code, str)]
    taken += [end for ends in variable.missing for end in ends] if variable is not None else []
    following = max((int(code) for code in taken if abs(code) < EXACT), default=0) + 1
    found = _original(labels, variable)
    for text in dict.fromkeys(texts):
        if text is None or text in codes:
            continue
        if re.fullmatch(r"-?\d+(\.\d+)?", text):
            codes[text] = float(text)
            continue
        codes[text], found[following] = following, text
        following += 1
    numbers = np.array([np.nan if text is None else codes[text] for text in texts], float)
    return Column(name, NUMBER, numbers, labels=found, ordered=ordered, whole=True)


def _original(labels: Mapping[Any, str], variable: Variable | None) -> dict[Code, str]:
    """The labels as the codebook has them: of several codes the same, and of missing ones, too."""
    return dict(labels) if variable is None else dict(variable.labels)


def within(column: Column, first: date, last: date, say: Say) -> Column:
    """A column of dates or timestamps without those that the program does not have."""
    assert column.numbers is not None
    unit = 1 if column.kind == DATE else DAY
    low, high = ((day - EPOCH.date()).days * unit for day in (first, last))
    outside: Flags = (column.numbers < low) | (column.numbers >= high + unit)
    if not outside.any():
        return column
    say(f"{column.name!r} has dates before {first} or after {last}, which are written as missing")
    numbers = np.where(outside, np.nan, column.numbers)
    return Column(column.name, column.kind, numbers, whole=column.whole)


def names_for(
    names: Iterable[str], valid: re.Pattern[str], most: int, reserved: Iterable[str], say: Say
) -> dict[str, str]:
    """By name of a column, a name that the program takes: other characters are replaced by _, and names are told apart whatever their case.

    Args:
        names: the columns.
        valid: a valid name.
        most: most bytes of a name.
        reserved: words that are no names, in small letters.
        say: told which names are changed.
    """
    found: dict[str, str] = {}
    used = {*reserved}
    for name in names:
        made = name
        if not valid.fullmatch(name) or len(name.encode()) > most or name.lower() in used:
            made = re.sub(r"\W", "_", name, flags=re.ASCII)
            made = made if re.match("[A-Za-z]", made) else f"v_{made}"
            stem, number = made[:most], 2
            made = stem
            while made.lower() in used:
                end = f"_{number}"
                made, number = stem[: most - len(end)] + end, number + 1
            say(
                f"{name!r} is no name there: the column is called {made}, and its label has the name"
            )
        used.add(made.lower())
        found[name] = made
    return found


def cut(column: Column, most: int, say: Say) -> list[str | None]:
    """Texts of at most so many bytes."""
    if all(text is None or len(text.encode()) <= most for text in column.texts):
        return list(column.texts)
    say(f"{column.name!r} has texts of more than {most:,} bytes, which are cut")
    return [text if text is None else shortened(text, most) for text in column.texts]


def shortened(text: str, most: int) -> str:
    """The beginning of a text, of at most so many bytes."""
    return text.encode()[:most].decode(errors="ignore")
