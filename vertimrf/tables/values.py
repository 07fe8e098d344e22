"""Read files whose cells are values of many types: JSON lines and spreadsheets.

A column has no type that follows from all of its cells: each cell counts by its own type
(:mod:`vertimrf.tables.objects`), so that whether a row is read depends on this row alone.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import zipfile
from collections.abc import Iterator, Sequence
from datetime import time
from pathlib import Path
from typing import Any

import msgspec

from ..arrays import Fields
from ..errors import TableError
from .arrow import Pieces, RecordBatches
from .before_1900 import BelowZero
from .csv_file import BLOCK, HEAD, MARK, START, unpacked
from .dropped import ENDLESS, LONGEST_ROW, NO_OBJECT, NO_VALUE, Unreadable
from .read_options import ReadOptions
from .rows import any_error, batches_of, installed, is_panic

LOG = logging.getLogger(__name__)

# What a workbook has and other ZIP archives lack.
WORKBOOKS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")


def json_lines(path: Path, read: ReadOptions) -> Pieces:
    """Open a file with a JSON object on each line.

    Its columns are those that are stated, or else any that are asked for: no line decides which the
    others have. Where a line lacks a key, its cell is missing.
    """
    batches = functools.partial(_json_batches, path)
    return Pieces(read.columns, str(path), batches, any_column=not read.columns)


def json_keys(path: Path) -> tuple[str, ...]:
    """The keys in a file's first :data:`HEAD` bytes, for drafts: they are read off records.

    Those that have nothing but lists and objects there are left out.
    """
    with unpacked(path, True) as file:
        head: bytes = file.read(HEAD)
    lines = head.split(b"\n")
    # The last line may be cut.
    found = [_object(line) for line in (lines[:-1] if len(head) == HEAD else lines)]
    seen: dict[str, bool] = {}
    for line in found:
        for name, value in (line or {}).items():
            if value is not None:
                seen[name] = seen.get(name, False) or not isinstance(value, list | dict)
            seen.setdefault(name, value is None)
    if nested := [name for name, plain in seen.items() if not plain]:
        LOG.warning("%s: left out, because its cells are lists or objects: %r.", path, nested[0])
    return tuple(name for name, plain in seen.items() if plain)


def _object(line: bytes) -> Fields | None:
    """The JSON object on a line; None if there is none."""
    try:
        found = msgspec.json.decode(line.removeprefix(MARK))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return found if isinstance(found, dict) else None


def _json_batches(path: Path, wanted: Sequence[str], unreadable: Unreadable) -> RecordBatches:
    def rows() -> Iterator[Sequence[Any]]:
        for line in _lines(path, unreadable):
            found = _object(line)
            if found is None:
                unreadable(NO_OBJECT, line[:START].decode(errors="ignore"), 1)
            else:
                yield [found.get(name) for name in wanted]

    yield from batches_of(rows(), wanted, wanted, unreadable)


def _lines(path: Path, unreadable: Unreadable) -> Iterator[bytes]:
    """The lines of a file that are not empty, without those that are too long, wherever blocks end."""
    carried, skipping = b"", False

    def too_long(line: bytes) -> bool:
        if len(line) > LONGEST_ROW:
            unreadable(ENDLESS, line[:START].decode(errors="ignore"), 1)
        return len(line) > LONGEST_ROW

    with unpacked(path, True) as file:
        while True:
            data: bytes = file.read(BLOCK)
            lines = (carried + data).split(b"\n")
            carried = lines.pop() if data else b""
            for line in lines:
                if not skipping and line.strip() and not too_long(line):
                    yield line
                skipping = False
            if skipping or too_long(carried):
                carried, skipping = b"", True
            if not data:
                return


def archive(path: Path, read: ReadOptions) -> Pieces:
    """Open a ZIP archive, which must be a workbook.

    Raises:
        TableError: it is none.
    """
    names: set[str] = set()
    # A damaged archive raises errors of many kinds.
    with contextlib.suppress(Exception), zipfile.ZipFile(path) as file:
        names.update(file.namelist())
    if names.intersection(WORKBOOKS):
        return workbook(path, read)
    raise TableError(f"{path} is a ZIP archive: unpack it, and name the table in it.")


def workbook(path: Path, read: ReadOptions) -> Pieces:
    """Open the only sheet of a spreadsheet file that has cells; its first row has the names."""
    calamine = installed("python_calamine", path, "a spreadsheet")
    what = f"{path} is a spreadsheet that"
    with any_error(what):
        book = calamine.CalamineWorkbook.from_path(str(path))
        sheets = [name for name in book.sheet_names if _cells(book, name)]
    if len(sheets) != 1:
        raise TableError(
            f"{path} is a spreadsheet of {len(sheets)} sheets with cells: save the one that is the table as a file of its own, "
            "such as CSV."
        )

    def rows() -> Iterator[list[Any] | None]:
        """The rows; None for one with a cell that calamine cannot read."""
        with any_error(what):
            book = calamine.CalamineWorkbook.from_path(str(path))
            sheet = book.get_sheet_by_name(sheets[0])
            early = BelowZero(path, sheets[0])
            row, column = sheet.start or (0, 0)
            for at, cells in enumerate(_read_one_by_one(sheet.iter_rows()), row):
                # To calamine, a date before 1900 is midnight.
                yield cells and [
                    early.cell(at, column + place)
                    if type(cell) is time and cell == time()
                    else None
                    if cell == ""
                    else cell
                    for place, cell in enumerate(cells)
                ]

    def batches(wanted: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        every = rows()
        names = list(map(_name, next(every) or ()))

        def full() -> Iterator[list[Any]]:
            for number, row in enumerate(every, 2):
                if row is None:
                    unreadable(NO_VALUE, f"row {number}", 1)
                elif any(cell is not None for cell in row):
                    yield [*row, *[None] * (len(names) - len(row))]

        yield from batches_of(full(), names, wanted, unreadable)

    header = next(rows())
    if header is None:
        raise TableError(
            f"{what} cannot be read as a table: its first row, which has the names, has a cell that is none."
        )
    return Pieces(tuple(filter(None, map(_name, header))), str(path), batches)


def _read_one_by_one(rows: Iterator[list[Any]]) -> Iterator[list[Any] | None]:
    """Rows, and None for each that makes the code that reads it panic: no cell costs another record."""
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except BaseException as error:
            if not is_panic(error):
                raise
            yield None


def _cells(book: Any, name: str) -> int:
    """The number of rows of a sheet; 0 if it has none, or is a chart."""
    with contextlib.suppress(Exception):
        return int(book.get_sheet_by_name(name).total_height)
    return 0


def _name(cell: Any) -> str:
    return (
        ""
        if cell is None
        else str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
    )
