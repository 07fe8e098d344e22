"""Keep spreadsheets from running what stands in a table.

A spreadsheet takes a cell that begins with certain signs for a formula, which may fetch addresses or
start programs ("CSV injection", OWASP). Names and values of a synthetic table are the schema's, and
others may have written it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# What begins a formula, also behind blanks and signs that nobody sees: those of ASCII, and the wide
# ones of East Asian texts. A tab or a line's end may begin a new cell.
FORMULA = r"^[\s\p{Z}\p{C}]*[=+\-@＝＋－＠]|^[\t\r\n]"
# A number as it is, which begins no formula.
NUMBER = r"^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$"
# What a spreadsheet takes for the beginning of a text.
PREFIX = "'"


def without_formulas(table: pa.Table) -> pa.Table:
    """A table in which every text and every column name that begins a formula has a prefix.

    Numbers stay as they are, also those that are texts. So do dates and missing values.
    """
    columns = [_prefixed(column) for column in table.columns]
    names = _prefixed(pa.chunked_array([pa.array(table.column_names, pa.string())]))
    return pa.table(columns, names=names.to_pylist())


def _prefixed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    runs = pc.and_not(
        pc.match_substring_regex(column, FORMULA), pc.match_substring_regex(column, NUMBER)
    )
    marked = pc.binary_join_element_wise(
        pa.scalar(PREFIX, column.type), column, pa.scalar("", column.type)
    )
    return pc.if_else(runs, marked, column)
