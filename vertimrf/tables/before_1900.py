"""Dates before 1900 in workbooks of Excel, which are negative day numbers there, and day 0 where the cell's format is that of a date.

openpyxl and LibreOffice write them, Excel shows none, and calamine reads each as midnight. So they are read from the sheet's XML.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

# Day 0.
ORIGIN = datetime(1899, 12, 30)
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
OFFICE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
# A cell with a negative number or 0, in a sheet's XML, and its style.
CELL = re.compile(
    rb'<c\b([^<>]*?\br="([A-Z]{1,3})(\d{1,7})"[^<>]*)>\s*(?:<f\b[^<>]*/>|<f\b[^<>]*>[^<>]*</f>)?\s*<v>(-[\d.eE+-]+|0)</v>'
)
STYLE = re.compile(rb'\bs="(\d{1,6})"')
# Formats of dates that have no code in the file, and what is no code of a format: texts, colours, units of durations.
DATE_FORMATS, NO_CODE = frozenset({*range(14, 18), 22}), re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
# Bytes of XML that are searched at a time, and those that are searched again, as a cell may be cut.
BLOCK, AGAIN = 1 << 20, 1 << 10


class BelowZero:
    """The cells of a sheet with a negative day number, or with 0 as a date.

    Args:
        path: the workbook.
        sheet: name of the sheet.
    """

    def __init__(self, path: Path, sheet: str) -> None:
        self._path, self._sheet = path, sheet

    def cell(self, row: int, column: int) -> Any:
        """What a cell is that calamine reads as midnight; row and column are counted from 0. A day that is no date
        stays a number: it costs its record.
        """
        days = self._days.get((row, column))
        if days is None:
            return time()
        try:
            moment = ORIGIN + timedelta(seconds=round(days * 86_400))
        except (OverflowError, ValueError):
            return days
        return moment if moment.time() != time() else date(moment.year, moment.month, moment.day)

    @cached_property
    def _days(self) -> dict[tuple[int, int], float]:
        """Day numbers by row and column; empty for workbooks of other kinds."""
        with zipfile.ZipFile(self._path) as file:
            try:
                part, dates = self._part(file), _date_styles(file)
            except (KeyError, ValueError, ElementTree.ParseError):
                return {}
            with file.open(part) as xml:
                return dict(_early(xml, dates))

    def _part(self, file: zipfile.ZipFile) -> str:
        """The part of the file that has the sheet."""
        book = ElementTree.fromstring(file.read("xl/workbook.xml"))
        links = ElementTree.fromstring(file.read("xl/_rels/workbook.xml.rels"))
        (key,) = (
            each.get(f"{OFFICE}id")
            for each in book.iter(f"{MAIN}sheet")
            if each.get("name") == self._sheet
        )
        (target,) = (each.get("Target", "") for each in links if each.get("Id") == key)
        return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/")


def _date_styles(file: zipfile.ZipFile) -> frozenset[int]:
    """Numbers of the styles whose format is that of a date."""
    if "xl/styles.xml" not in file.namelist():
        return frozenset()
    styles = ElementTree.fromstring(file.read("xl/styles.xml"))
    codes = {
        int(each.get("numFmtId", 0)): NO_CODE.sub("", each.get("formatCode", ""))
        for each in styles.iter(f"{MAIN}numFmt")
    }
    dates = {number for number, code in codes.items() if re.search("[yYdD]", code)}
    dates |= DATE_FORMATS - codes.keys()
    used = [int(each.get("numFmtId", 0)) for each in styles.findall(f"{MAIN}cellXfs/{MAIN}xf")]
    return frozenset(place for place, number in enumerate(used) if number in dates)


def _early(xml: Any, dates: frozenset[int]) -> Iterator[tuple[tuple[int, int], float]]:
    """Row, column and number of the negative numbers in a sheet's XML, and of the zeros that are dates."""
    carried = b""
    while block := xml.read(BLOCK):
        text = carried + block
        for attributes, letters, row, number in CELL.findall(text):
            style = STYLE.search(attributes)
            if number == b"0" and (style is None or int(style[1]) not in dates):
                continue
            column = 0
            for letter in letters:
                column = 26 * column + letter - ord("A") + 1
            yield (int(row) - 1, column - 1), float(number)
        carried = text[-AGAIN:]
