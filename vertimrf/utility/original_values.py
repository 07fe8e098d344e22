"""The values of tables as they are in their columns, beside the codes of the schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Codes, Integers
from ..columns.column import Attribute
from .values import MISSING, Column

# By column, the numbers of the texts that the schema does not list.
Book = dict[str, dict[str, int]]


def original_values(
    attributes: tuple[Attribute, ...], table: pa.Table, codes: Codes, where: str, book: Book
) -> dict[str, Column]:
    """The values in columns of a table, by name.

    Args:
        attributes: domains of the columns.
        table: the original values.
        codes: the same columns, encoded [shape=(d, n)].
        where: name of the table in errors.
        book: numbers of texts that the schema calls "other"; new ones are added. The same book is
            given for all tables that are compared.

    Returns:
        Numbers, with dates and times as days and seconds, and NaN where they are missing [float64].
        Of other columns, a number for each value, and MISSING [int64].
    """
    out: dict[str, Column] = {}
    for attribute, row in zip(attributes, codes, strict=True):
        column = f"{where}: column {attribute.name!r}"
        numbers = attribute.original(table[attribute.name], row, column)
        if numbers is not None:
            out[attribute.name] = numbers
        else:
            labels = row.astype(np.int64)
            if attribute.missing:
                labels[row == attribute.size - 1] = MISSING
            if attribute.other_code is not None:
                _spell_out(attribute, attribute.other_code, table[attribute.name], labels, book)
            out[attribute.name] = labels
    return out


def _spell_out(
    attribute: Attribute, other: int, column: pa.ChunkedArray, labels: Integers, book: Book
) -> None:
    """Number the values that the schema calls "other", in place."""
    numbers = book.setdefault(attribute.name, {str(attribute.other): other})
    places = np.flatnonzero(labels == other)
    cells = column.take(pa.array(places)).cast(pa.string()).combine_chunks()
    cells = pc.dictionary_encode(pc.fill_null(cells, str(attribute.other)))
    new = [
        numbers.setdefault(text, attribute.size + len(numbers))
        for text in cells.dictionary.to_pylist()
    ]
    if new:
        labels[places] = np.array(new)[cells.indices.to_numpy()]
