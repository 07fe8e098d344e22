"""Metadata of a single table as SDV writes it: read as a schema with private domains, and written from a schema.

SDV's metadata says what kind of values a column has, and not which. So a search with noise finds
the domains. Columns of ids and of personal information are left out.

Source: https://docs.sdv.dev/sdv/concepts/metadata/metadata-json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arrays import Fields
from ..columns.cell_types import WHOLE
from ..columns.column import PRIVATE, Attribute
from ..errors import SchemaError

# The field that SDV's metadata has, and the version that is written.
VERSION, SINGLE_TABLE = "METADATA_SPEC_VERSION", "SINGLE_TABLE_V1"
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
        {"name": column, "missing": True, **domain}
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
        case {"sdtype": "categorical"}:
            return {"values": PRIVATE}
        case {"sdtype": "numerical"}:
            said_type = str(said.get("computer_representation"))
            narrow = said_type.lower() in WHOLE and said_type != "Int64"
            domain = {"bins": PRIVATE, "integral": "Int" in said_type}
            return domain | {"type": said_type.lower()} if narrow else domain
        case {"sdtype": "datetime", "datetime_format": str(format)}:
            timed, dated = (any(code in format for code in codes) for codes in (HOURS, DAYS))
            calendar = "timestamp" if timed and dated else "time" if timed else "date"
            return {"bins": PRIVATE, "calendar": calendar, "format": format}
        case {"sdtype": "datetime"}:
            raise SchemaError(
                f"SDV's metadata has no datetime_format of column {column!r}; write it as of '%Y-%m-%d'."
            )
        case {"sdtype": str()}:
            return None
    raise SchemaError(f"SDV's metadata has no sdtype of column {column!r}; save it again by SDV.")


def metadata_of(attributes: Sequence[Attribute]) -> Fields:
    """SDV's metadata of a table with these columns."""
    return {VERSION: SINGLE_TABLE, "columns": {a.name: a.sdv() for a in attributes}}
