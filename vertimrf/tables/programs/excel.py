"""Workbooks of Excel, by XlsxWriter: one sheet, whose first row has the names."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...columns.cell_types import for_csv
from ..rows import installed
from .cells import Say, on_clocks
from .program import About, Program

# Rows of a sheet below its names, its columns, and characters of a cell.
ROWS, COLUMNS, CHARACTERS = 1_048_575, 16_384, 32_767
# Excel's calendar has a 29 February 1900, and nothing before 1900.
FIRST = date(1900, 3, 1)
# Excel keeps so many digits of a number.
DIGITS = 10**15
FORMATS = {
    "date": "yyyy-mm-dd",
    "moment": "yyyy-mm-dd hh:mm:ss",
    "clock": "hh:mm:ss",
    "span": "[h]:mm:ss",
}


def write(table: pa.Table, path: Path, about: About, say: Say) -> None:
    """See :class:`Program`."""
    columns = [_cells(name, table[name], say) for name in table.column_names]
    package = installed("xlsxwriter", path, "a workbook")
    with package.Workbook(str(path)) as book:
        sheet = book.add_worksheet("table")
        forms = {kind: book.add_format({"num_format": code}) for kind, code in FORMATS.items()}
        for place, (name, (kind, cells)) in enumerate(
            zip(table.column_names, columns, strict=True)
        ):
            sheet.write_string(0, place, name)
            for row, cell in enumerate(cells, 1):
                _put(sheet, row, place, cell, forms.get(kind))


def _put(sheet: Any, row: int, place: int, cell: Any, form: Any) -> None:
    if isinstance(cell, str):
        # No text becomes a formula or a link.
        sheet.write_string(row, place, cell)
    elif isinstance(cell, bool):
        sheet.write_boolean(row, place, cell)
    elif isinstance(cell, date | time | timedelta):
        sheet.write_datetime(row, place, cell, form)
    elif cell is not None:
        sheet.write_number(row, place, float(cell))


def _cells(name: str, column: pa.ChunkedArray, say: Say) -> tuple[str, list[Any]]:
    """The kind of a column and its cells, as Excel has them."""
    kind = column.type
    if pa.types.is_duration(kind):
        # XlsxWriter cannot write negative ones as durations.
        spans = column.cast(pa.duration("us")).to_pylist()
        return "span", spans
    if pa.types.is_timestamp(kind):
        column = on_clocks(name, column, say)
    cells: list[Any] = for_csv(pa.table({name: column}))[name].to_pylist()
    known = [cell for cell in cells if cell is not None]
    early = [c for c in known if isinstance(c, date) and _day(c) < FIRST]
    if early:
        say(f"{name!r} has dates before {FIRST}, which are written as texts")
        cells = [
            cell.isoformat(*[" "] * isinstance(cell, datetime))
            if isinstance(cell, date) and _day(cell) < FIRST
            else cell
            for cell in cells
        ]
    if any(isinstance(cell, int | Decimal) and abs(float(cell)) >= DIGITS for cell in known):
        say(f"{name!r} has numbers of more than 15 digits, of which the last are rounded")
    if any(isinstance(cell, str) and len(cell) > CHARACTERS for cell in known):
        say(f"{name!r} has texts of more than {CHARACTERS:,} characters, which are cut")
        cells = [cell[:CHARACTERS] if isinstance(cell, str) else cell for cell in cells]
    cells = [None if isinstance(c, float) and not math.isfinite(c) else c for c in cells]
    if pa.types.is_timestamp(kind):
        return "moment", cells
    return ("clock" if pa.types.is_time(kind) else "date" if pa.types.is_date(kind) else ""), cells


def _day(cell: date) -> date:
    return cell.date() if isinstance(cell, datetime) else cell


PROGRAMS = (Program("Excel", (".xlsx",), ("xlsxwriter",), write, ROWS, COLUMNS),)
