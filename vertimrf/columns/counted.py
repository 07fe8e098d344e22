"""Count the distinct values of a column, for drafts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .cell_types import plain_cells
from .cells import cell_values, is_text, written_out
from .excluded import Excluded
from .text import MISSING_TEXT

# Most values listed of a column of text: the most frequent ones; all others become OTHER.
LISTED_TEXTS = 256
ENDLESS = [sign + text for sign in ("", "-", "+") for text in ("inf", "infinity")]
SCALARS = (str, int, float, Decimal, date, time)


@dataclass(frozen=True)
class Counted:
    """What a column has.

    Attributes:
        values: records by value, as Python has it.
        absent: records by text that counts as missing.
        missing: whether some cells are missing.
        infinite: number of infinite values.
        declared: the values that the column may have, in their order; empty if it does not say.
        ordered: whether that order has a meaning.
    """

    values: dict[Any, int]
    absent: dict[str, int]
    missing: bool
    infinite: int
    declared: tuple[Any, ...] = ()
    ordered: bool = False


def counted(column: pa.ChunkedArray, typed: bool) -> Counted:
    """What a column has; ``typed`` as for :func:`draft_attribute`.

    Raises:
        Excluded: its cells are no categories.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    no_values = Excluded(
        f"holds {kind} cells, which are no categories",
        f"{kind} cells",
        "make a column of numbers or texts of it",
    )
    declared: tuple[Any, ...] = ()
    try:
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            column = column.unify_dictionaries()
            declared = tuple(cell_values(column.chunk(0).dictionary))
        pairs = plain_cells(written_out(column)).value_counts()
        cells, records = pairs.field("values"), pairs.field("counts")
        # Arrow cannot filter views.
        cells = cells.cast(pa.large_string()) if is_text(cells.type) else cells
        usual = _usual(cells, typed)
        rest = pc.invert(usual)
        values, counts = cell_values(cells.filter(usual)), records.filter(usual).to_pylist()
        odd, often = cell_values(cells.filter(rest)), records.filter(rest).to_pylist()
    except (NotImplementedError, pa.ArrowException):
        raise no_values from None
    kinds = {*map(type, (*values, *odd, *declared))} - {type(None)}
    if not all(issubclass(one, SCALARS) for one in kinds):
        raise no_values
    found: dict[Any, int] = dict(zip(values, counts, strict=True))
    if len(found) < len(values):
        # Such as 0.0 and -0.0.
        found, odd, often = {}, [*values, *odd], [*counts, *often]
    absent: dict[str, int] = {}
    endless: dict[str, int] = {}
    missing, infinite = False, 0
    for value, count in zip(odd, often, strict=True):
        text = isinstance(value, str)
        if value is None or value != value or (not typed and value in MISSING_TEXT):
            missing = True
            if value and text:
                absent[value] = count
        elif (isinstance(value, float | Decimal) and math.isinf(value)) or (
            text and not typed and value.lower() in ENDLESS
        ):
            infinite += count
            if text:
                endless[value] = count
        else:
            found[value] = found.get(value, 0) + count
    if endless and any(isinstance(v, str) and not any(map(str.isdigit, v)) for v in found):
        # Among words, as names of cars, Infinity is one.
        found, infinite = found | endless, infinite - sum(endless.values())
    ordered = getattr(column.type, "ordered", False)
    declared = tuple(dict.fromkeys(v for v in declared if v is not None and v == v))
    plain = is_text(kind) or (ordered and all(type(v) in (int, float) for v in declared))
    if not typed or not plain or infinite or len(declared) > LISTED_TEXTS:
        declared = ()
    return Counted(found, absent, missing, infinite, declared, ordered)


def _usual(values: pa.Array, typed: bool) -> pa.Array:
    """Which distinct values are surely neither missing nor infinite; ``typed`` as for :func:`draft_attribute`."""
    if is_text(values.type):
        if typed:
            return values.is_valid()
        absent = pc.is_in(values, value_set=pa.array(MISSING_TEXT, values.type))
        endless = pc.is_in(pc.ascii_lower(values), value_set=pa.array(ENDLESS, values.type))
        return pc.and_(values.is_valid(), pc.invert(pc.or_(absent, endless)))
    if pa.types.is_floating(values.type):
        return pc.fill_null(pc.is_finite(values), False)
    return pc.and_(values.is_valid(), not pa.types.is_decimal(values.type))
