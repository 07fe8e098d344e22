"""Files of SPSS, Stata and SAS, by pyreadstat: numbers in double precision and texts, with formats, labels, levels and missing codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...arrays import Texts
from ..codebook import SCALE, Code, Variable
from ..rows import installed
from .cells import (
    CLOCK,
    DATE,
    DAY,
    EPOCH,
    MOMENT,
    NUMBER,
    SPAN,
    TEXT,
    Column,
    Say,
    columns_of,
    cut,
    names_for,
    shortened,
    within,
)
from .program import About, Program

NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Whole numbers that Stata's longest type of whole numbers holds.
STATA_WHOLE = (-2_147_483_647, 2_147_483_620)


@dataclass(frozen=True)
class Kind:
    """What differs between these programs.

    Attributes:
        writer: name of pyreadstat's function.
        origin: the day that dates are counted from.
        day, second: what a day and a second of a date and of a timestamp count.
        first, last: the first and the last day that it has.
        formats: of dates, timestamps, times of day and durations; a kind without one is a number there.
        own: formats that it has.
        valid: names that it takes.
        longest: most bytes of a name, and of a text.
        label: most bytes and most characters of a column's label.
        meaning: most bytes of a value's label.
        largest: the largest number.
        whole: the format of whole numbers, for their width; empty: the writer's own.
        options: for the writer.
        labelled: whether numbers have labels.
        reserved: words that are no names, in small letters.
    """

    writer: str
    origin: datetime
    day: int
    second: int
    first: date
    last: date
    formats: Mapping[str, str]
    own: re.Pattern[str]
    valid: re.Pattern[str]
    longest: tuple[int, int]
    label: tuple[int, int]
    meaning: int
    largest: float
    whole: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    labelled: bool = True
    reserved: Texts = ()


SPSS = Kind(
    "write_sav",
    datetime(1582, 10, 14),
    DAY,
    1,
    date(1582, 10, 15),
    date(9999, 12, 31),
    {DATE: "DATE11", MOMENT: "DATETIME20", CLOCK: "TIME8", SPAN: "DTIME14"},
    re.compile(r"(F|COMMA|DOT|DOLLAR|PCT|E|[AEJS]?DATE|DATETIME|YMDHMS|[DM]?TIME)\d+(\.\d+)?"),
    # Letters of any script.
    re.compile(r"[^\W\d_][\w.@#$]*(?<![._])"),
    (64, 32_767),
    (256, 256),
    120,
    np.finfo(float).max,
    whole="F{}.0",
    reserved=("all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"),
)
STATA = Kind(
    "write_dta",
    datetime(1960, 1, 1),
    1,
    1000,
    date(100, 1, 1),
    date(9999, 12, 31),
    {DATE: "%td", MOMENT: "%tc"},
    re.compile("%.*"),
    NAMES,
    (32, 2045),
    (320, 80),
    32_000,
    # Larger ones are its kinds of missing.
    float.fromhex("0x1.fffffffffffffp+1022"),
    # Release 118. That of version 15 is for more than 32,767 columns, and Stata/MP alone opens it.
    options={"version": 14},
    reserved=(
        *("_all", "_b", "_coef", "_cons", "_n", "_pi", "_pred", "_rc", "_skip", "byte", "double", "float", "if"),
        *("in", "int", "long", "strl", "using", "with", *(f"str{width}" for width in range(1, 2046))),
    ),
)  # fmt: skip
SAS = Kind(
    "write_xport",
    datetime(1960, 1, 1),
    1,
    1,
    date(1582, 1, 1),
    date(9999, 12, 31),
    {DATE: "DATE9.", MOMENT: "DATETIME20.", CLOCK: "TIME8.", SPAN: "TIME14."},
    re.compile("[^%].*"),
    NAMES,
    (32, 32_767),
    (256, 256),
    0,
    # The floating-point numbers of mainframes end at 16^63, and those that pyreadstat writes before 10^75.
    16.0**62,
    labelled=False,
)


def _write(kind: Kind, table: pa.Table, path: Path, about: About, say: Say) -> None:
    """See :class:`Program`."""
    columns = [_moved(kind, each, say) for each in columns_of(table, about, kind.labelled, say)]
    names = names_for(table.column_names, kind.valid, kind.longest[0], kind.reserved, say)
    frame = _frame(kind, columns, names, say)
    variables = {each.name: about.get(each.name, Variable(each.name)) for each in columns}
    more: dict[str, Any] = {
        "column_labels": {
            names[name]: _cut_label(kind, name, one.about or name * (names[name] != name), say)
            for name, one in variables.items()
        },
        "variable_format": {
            names[each.name]: form
            for each in columns
            if (form := _format(kind, each, variables[each.name]))
        },
    }
    if kind.labelled:
        labels = {each.name: _labels(each, variables[each.name]) for each in columns}
        if kind is STATA:
            labels = {name: _for_stata(name, its, say) for name, its in labels.items()}
        more["variable_value_labels"] = {
            names[name]: _cut_meanings(kind, name, its, say) for name, its in labels.items() if its
        }
    if kind is SPSS:
        more["variable_measure"] = {names[e.name]: _level(e, variables[e.name]) for e in columns}
        more["missing_ranges"] = {
            names[e.name]: [{"lo": low, "hi": high} if low != high else low for low, high in ranges]
            for e in columns
            if (ranges := variables[e.name].missing)
            and all(isinstance(low, str) == (e.kind == TEXT) for low, _ in ranges)
        }
    package = installed("pyreadstat", path, "a file for pyreadstat")
    getattr(package, kind.writer)(frame, str(path), **more, **kind.options)


def _moved(kind: Kind, column: Column, say: Say) -> Column:
    """Dates and times counted from the program's own day."""
    if column.kind not in (DATE, MOMENT):
        if column.kind in (CLOCK, SPAN) and column.kind not in kind.formats:
            what = "times of day" if column.kind == CLOCK else "durations"
            say(
                f"{column.name!r} has {what}, for which there is no format: they are numbers of seconds"
            )
        return _in_range(kind, column, say)
    column = within(column, kind.first, kind.last, say)
    assert column.numbers is not None
    days = (EPOCH - kind.origin).days
    if column.kind == DATE:
        numbers = (column.numbers + days) * kind.day
    else:
        numbers = np.round(
            (column.numbers + days * DAY) * kind.second, 3 if kind.second == 1 else 0
        )
    return Column(column.name, column.kind, numbers, whole=column.whole)


def _in_range(kind: Kind, column: Column, say: Say) -> Column:
    """A column without numbers that the program does not have."""
    if column.numbers is None or not (np.abs(column.numbers) > kind.largest).any():
        return column
    say(f"{column.name!r} has numbers beyond {kind.largest:.4g}, which are written as missing")
    inside = np.abs(column.numbers) <= kind.largest
    return replace(column, numbers=np.where(inside, column.numbers, np.nan))


def _cut_label(kind: Kind, name: str, label: str, say: Say) -> str | None:
    """The label of a column, as far as the program has it."""
    size, characters = kind.label
    short = shortened(label[:characters], size)
    if short != label:
        say(
            f"{name!r} has a label of more than {characters} characters or {size} bytes, which is cut"
        )
    return short or None


def _cut_meanings(kind: Kind, name: str, labels: Mapping[Code, str], say: Say) -> dict[Code, str]:
    """Labels of values, as far as the program has them."""
    short = {code: shortened(label, kind.meaning) for code, label in labels.items()}
    if short != labels:
        say(f"{name!r} has labels of values of more than {kind.meaning:,} bytes, which are cut")
    return short


def _frame(kind: Kind, columns: list[Column], names: Mapping[str, str], say: Say) -> Any:
    """A frame of pandas, which pyreadstat asks for."""
    pandas = installed("pandas", "The table", "for pyreadstat")
    cells: dict[str, Any] = {}
    for column in columns:
        if column.numbers is None:
            cells[names[column.name]] = np.array(cut(column, kind.longest[1], say), object)
            continue
        numbers = column.numbers
        low, high = STATA_WHOLE
        # Comparisons with missing numbers are false.
        beyond = (numbers < low) | (numbers > high)
        if kind is STATA and column.kind == NUMBER and column.whole and not beyond.any():
            cells[names[column.name]] = pandas.array(numbers, "Float64").astype("Int32")
        else:
            cells[names[column.name]] = numbers
    return pandas.DataFrame(cells)


def _format(kind: Kind, column: Column, variable: Variable) -> str | None:
    """How a column is shown: as the codebook says if it is that program's, and its cells are of the kind that it shows."""
    usual = kind.formats.get(column.kind)
    if column.kind == NUMBER and column.whole and kind.whole:
        assert column.numbers is not None
        largest = np.nanmax(np.abs(column.numbers), initial=0.0)
        usual = kind.whole.format(min(max(8, len(f"-{largest:.0f}")), 40))
    theirs = variable.format
    if column.kind == TEXT or not kind.own.fullmatch(theirs):
        return usual
    temporal = shown_as(theirs)
    if temporal == column.kind or {temporal, column.kind} == {CLOCK, SPAN}:
        return theirs + "." * (kind is SAS and not theirs.endswith(".") and "." not in theirs)
    return usual


def shown_as(form: str) -> str:
    """What a format of SPSS, Stata or SAS shows: dates, moments, durations, or numbers."""
    word = form.upper()
    if word.startswith(("%TC", "%-TC", "DATETIME", "YMDHMS", "E8601DT", "B8601DT")):
        return MOMENT
    if re.match(r"%-?TD|%-?D|[AEJS]?DATE\d*|MMDDYY|DDMMYY|YYMMDD|YYDATE|E8601DA|B8601DA", word):
        return DATE
    return SPAN if re.match(r"D?TIME|MTIME|HHMM|TOD", word) else NUMBER


def _labels(column: Column, variable: Variable) -> dict[Code, str]:
    """What codes of a column mean: those that it was made with, or those of the codebook for numbers that stay numbers."""
    if column.labels:
        return dict(column.labels)
    if column.kind != NUMBER:
        return {}
    return {code: label for code, label in variable.labels if not isinstance(code, str)}


def _for_stata(name: str, labels: Mapping[Code, str], say: Say) -> dict[Code, str]:
    """Labels that Stata takes: those of whole numbers."""
    low, high = STATA_WHOLE
    kept: dict[Code, str] = {
        int(code): label
        for code, label in labels.items()
        if not isinstance(code, str) and code % 1 == 0 and low <= code <= high
    }
    if len(kept) < len(labels):
        say(
            f"{name!r} has labels of codes that are no whole numbers, or of kinds of missing, which are left out"
        )
    return kept


def _level(column: Column, variable: Variable) -> str:
    """The level of measurement."""
    if variable.level != "unknown":
        return variable.level
    if column.kind == TEXT:
        return "nominal"
    if column.ordered is None:
        return SCALE
    return "ordinal" if column.ordered else "nominal"


def _program(name: str, kind: Kind, suffix: str, columns: int | None = None) -> Program:
    write: Callable[..., None] = partial(_write, kind)
    return Program(name, (suffix,), ("pyreadstat", "pandas"), write, columns=columns)


PROGRAMS = (
    _program("SPSS", SPSS, ".sav"),
    _program("Stata", STATA, ".dta", columns=32_767),
    _program("SAS", SAS, ".xpt"),
)
