"""Metadata of a single table as SDV writes it: read as a schema with private domains, and written from a schema.

SDV's metadata says what kind of values a column has, and seldom which. So a search with noise finds
the domains that it does not state. Columns of ids and of personal information are left out.

Metadata of SDV 1 and 2 are read, and those of SDV 2 are written, of one table.

Source: https://docs.sdv.dev/sdv/concepts/metadata/metadata-json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arrays import Fields
from ..columns.calendar import Calendar, to_number, to_text
from ..columns.cell_types import WHOLE
from ..columns.column import PRIVATE, Attribute
from ..columns.numbers import MAX_DECIMALS
from ..errors import SchemaError

# The field that SDV's metadata has, the version that is written, and SDV's name of a table without one.
VERSION, WRITTEN, TABLE = "METADATA_SPEC_VERSION", "V2", "table"
# Codes of a format that belong to a time of day, and to a date.
HOURS, DAYS = ("%H", "%I", "%T", "%X", "%c"), ("%d", "%j", "%D", "%x", "%F", "%c", "%Y", "%y")


def sections_of(metadata: Mapping[str, Any]) -> Fields:
    """The sections of a schema file that SDV's metadata stands for.

    Args:
        metadata: the content of a metadata file, of one table.

    Raises:
        SchemaError: it has several tables or no columns, or a column is described in another way.
    """
    tables = metadata.get("tables", {"party1": metadata})
    if not isinstance(tables, Mapping) or len(tables) != 1:
        raise SchemaError("SDV's metadata must describe one table; give that of each party's.")
    ((name, table),) = tables.items()
    columns = table.get("columns") if isinstance(table, Mapping) else None
    if not isinstance(columns, Mapping):
        raise SchemaError(
            f"SDV's metadata lists no columns of table {name!r}; save it again by SDV."
        )
    attributes = [
        {"name": column, "missing": said.get("range_is_nullable") is not False, **domain}
        for column, said in columns.items()
        if (domain := _domain(column, said)) is not None
    ]
    return {"party": [{"name": name, "attribute": attributes}]}


def _domain(column: str, said: Any) -> Fields | None:
    """The domain of a column; None if it is left out."""
    match said:
        case {"pii": True}:
            return None
        case {"sdtype": "boolean"}:
            return {"values": [False, True]}
        case {"sdtype": "categorical" | "ordinal" as kind, "range_values": list(values)}:
            return {"values": values} | ({"ordered": True} if kind == "ordinal" else {})
        case {"sdtype": "categorical"}:
            return {"values": PRIVATE}
        case {"sdtype": "ordinal"}:
            # SDV takes whole numbers of few values for these.
            return {"bins": PRIVATE, "integral": True}
        case {"sdtype": "numerical"}:
            return {"bins": PRIVATE} | _bounds(column, said) | _numbers(said)
        case {"sdtype": "datetime", "datetime_format": str(format)}:
            domain = {"bins": PRIVATE, "calendar": _calendar(format), "format": format}
            return domain | _bounds(column, said, format)
        case {"sdtype": "datetime"}:
            raise SchemaError(
                f"SDV's metadata has no datetime_format of column {column!r}; write it as of '%Y-%m-%d'."
            )
        case {"sdtype": str()}:
            return None
    raise SchemaError(f"SDV's metadata has no sdtype of column {column!r}; save it again by SDV.")


def _numbers(said: Mapping[str, Any]) -> Fields:
    """What metadata say of numbers: their decimals in SDV 2, their type in SDV 1."""
    match said.get("decimal_places"), str(said.get("computer_representation")):
        case 0, _:
            return {"integral": True}
        case int(digits), _ if 0 < digits <= MAX_DECIMALS:
            return {"resolution": float(f"1e-{digits}")}
        case _, type if type.lower() in WHOLE and type != "Int64":
            return {"integral": True, "type": type.lower()}
        case _, type:
            return {"integral": "Int" in type}


def _calendar(format: str) -> Calendar:
    timed, dated = (any(code in format for code in codes) for codes in (HOURS, DAYS))
    return "timestamp" if timed and dated else "time" if timed else "date"


def _bounds(column: str, said: Mapping[str, Any], format: str | None = None) -> Fields:
    """The public bounds of a column; nothing if one of them is not stated."""
    ends = [said.get("range_min"), said.get("range_max")]
    if None in ends:
        return {}
    if format is None:
        return {"bounds": ends}
    try:
        calendar = _calendar(format)
        return {
            "bounds": [to_text(calendar, to_number(calendar, end, format=format)) for end in ends]
        }
    except (AttributeError, TypeError, ValueError):
        raise SchemaError(
            f"SDV's metadata has a range_min or range_max of column {column!r} that is not in its format {format!r}; correct it."
        ) from None


def metadata_of(attributes: Sequence[Attribute]) -> Fields:
    """SDV's metadata of a table with these columns."""
    columns = {attribute.name: attribute.sdv() for attribute in attributes}
    return {VERSION: WRITTEN, "tables": {TABLE: {"columns": columns}}, "relationships": []}
