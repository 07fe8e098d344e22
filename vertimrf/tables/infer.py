"""A schema read off private tables, for trials: no privacy guarantee covers it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ..errors import SchemaError, TableError

if TYPE_CHECKING:
    import pyarrow as pa
from ..plan.schema import MAX_SIZE, MISSING_TEXT, Attribute, Schema

__all__ = ["infer_schema"]

# An inferred schema lists up to so many whole numbers; more, and decimal numbers, it bins.
LISTED_NUMBERS = 64
INFERRED_BINS = 16
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def infer_schema(tables: Sequence[pa.Table], id: str | None) -> Schema:
    """A schema read off the tables themselves, for trials: it is marked ``public=False``.

    Text, and up to 64 distinct whole numbers, become categorical; other numbers get their bounds and up to 16 bins of
    about equal counts; missing values become a category where there are any. A text column that holds nothing but
    numbers counts as numbers, because all columns of CSV files are read as text.

    Args:
        tables: one Arrow table per party, which becomes "party1", "party2", ...
        id: the id column, which is left out; None if there is none.

    Raises:
        TableError: a table has no id column or no records.
        SchemaError: the same attribute in two tables, or a column without values or with too many.
    """
    parties = {}
    for i, table in enumerate(tables):
        if id is not None and id not in table.column_names:
            raise TableError(f"Table {i + 1} has no id column {id!r}; its columns are {', '.join(table.column_names)}.")
        if not table.num_rows:
            raise TableError(f"Table {i + 1} has no records.")
        held = [infer_attribute(name, table[name]) for name in table.column_names if name != id]
        parties[f"party{i + 1}"] = held
    return Schema.of(parties, public=False)


def infer_attribute(name: str, column: pa.ChunkedArray) -> Attribute:
    """An attribute whose domain is what a column holds."""
    counts: dict[Any, int] = {}
    missing = False
    try:
        pairs = column.value_counts().to_pylist()
    except NotImplementedError:
        raise SchemaError(f"Column {name!r} holds {column.type} cells, not categories; leave it out.") from None
    for pair in pairs:
        value = pair["values"]
        if value is None or value != value or value in MISSING_TEXT:
            missing = True
        else:
            counts[value] = counts.get(value, 0) + pair["counts"]
    if not counts:
        raise SchemaError(f"Column {name!r} has no values at all; leave it out.")
    numbers = as_numbers(counts)
    if numbers is not None:
        whole = all(float(value).is_integer() for value in numbers)
        if whole and len(numbers) <= LISTED_NUMBERS:
            return Attribute.categorical(name, sorted(map(int, numbers)), missing=missing, ordered=True)
        return Attribute.numeric(name, balanced_edges(numbers), integral=whole, missing=missing)
    if len(counts) + missing > MAX_SIZE:
        raise SchemaError(
            f"Column {name!r} has {len(counts):,} distinct values; leave it out, or give it an 'other' in a schema."
        )
    if {type(value) for value in counts} == {bool}:
        return Attribute.categorical(name, [False, True], missing=missing)
    return Attribute.categorical(name, sorted(map(str, counts)), missing=missing)


def as_numbers(counts: Mapping[Any, int]) -> dict[float, int] | None:
    """The same counts by number, or None if a value is no finite number, or a text like 007 that would change."""
    numbers: dict[float, int] = {}
    for value, count in counts.items():
        text = isinstance(value, str) and PLAIN_NUMBER.fullmatch(value)
        if not text and (isinstance(value, bool) or not isinstance(value, int | float | Decimal)):
            return None
        number = float(value)
        if not math.isfinite(number):
            return None
        numbers[number] = numbers.get(number, 0) + count
    return numbers


def balanced_edges(counts: Mapping[float, int]) -> tuple[float, ...]:
    """Edges, at values, of up to 16 bins with about equal counts [at least 2 edges]."""
    values = sorted(counts)
    share = sum(counts.values()) / INFERRED_BINS
    edges = [values[0]]
    inside = 0
    for value in values:
        if inside >= share:
            edges.append(value)
            inside = 0
        inside += counts[value]
    if edges[-1] < values[-1]:
        edges.append(values[-1])
    return tuple(edges) if len(edges) > 1 else (values[0], values[0] + 1)
