"""A column of CSVW-EO, and the section of a schema that stands for it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...arrays import Fields
from ...columns.column import PRIVATE
from ...errors import SchemaError

WHOLE = frozenset(
    (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
        *("nonPositiveInteger", "negativeInteger"),
    )
)
DECIMALS = frozenset(("decimal", "double", "float", "number"))
CALENDARS = {"date": "date", "dateTime": "timestamp", "datetime": "timestamp", "time": "time"}
# A moment with its offset; its cells are written in UTC.
STAMP, UTC = "dateTimeStamp", "UTC"
DURATIONS, DURATION, SECONDS = frozenset(("duration", "dayTimeDuration")), "PnDTnHnMnS", "duration["
OTHER = "other"
LOW, HIGH = "lowerBound", "upperBound"


def base_of(column: Mapping[str, Any]) -> str:
    """The name of a column's datatype; W3C's default is a text."""
    datatype = column.get("datatype", "string")
    if isinstance(datatype, Mapping):
        datatype = datatype.get("base", "string")
    if not isinstance(datatype, str):
        raise SchemaError(f"{_called(column)} has the datatype {datatype!r}; write its name.")
    return datatype


def section_of(column: Mapping[str, Any], intervals: Sequence[Any] = ()) -> Fields | None:
    """The section of a schema that stands for a column; None if it is left out, as ids are.

    Args:
        column: the column's terms, without nulls.
        intervals: predicates of a group of this column alone.

    Raises:
        SchemaError: terms of other types.
    """
    kind, name = base_of(column), column["name"]
    if column.get("privacyId") is True:
        return None
    common = {"name": name, "missing": column.get("required") is not True}
    keys, closed = _keys(column)
    if kind == "boolean":
        return common | {"values": keys if closed else [False, True]}
    if kind == "string":
        if not keys:
            return common | {"values": PRIVATE}
        return common | {"values": keys} | ({} if closed else {"other": OTHER})
    numbers = _number_kind(kind)
    if numbers is None:
        return None
    return common | _numbers(column, numbers, intervals)


def _called(column: Mapping[str, Any]) -> str:
    return f"Column {column.get('name')!r} of the CSVW metadata"


def _number_kind(kind: str) -> Fields | None:
    """What a datatype says of numbers; None if it is none of numbers, dates or times."""
    if kind in WHOLE:
        return {"integral": True}
    if kind in DECIMALS:
        return {}
    if kind in CALENDARS:
        return {"calendar": CALENDARS[kind]}
    if kind == STAMP:
        return {"calendar": "timestamp", "timezone": UTC}
    return {"format": DURATION} if kind in DURATIONS else None


def _keys(column: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The public values of a column, and whether there are no others."""
    keys = column.get("keyValues", column.get("publicKeys"))
    closed = column.get("exhaustiveKeys") is True or column.get("invariantPublicKeys") is True
    if keys is None:
        keys = [
            predicate["partitionValue"]
            for predicate in predicates(column)
            if "partitionValue" in predicate
        ]
        closed = closed or column.get("exhaustivePartitions") is True
    if not isinstance(keys, list) or not all(isinstance(key, str | int | float) for key in keys):
        raise SchemaError(f"{_called(column)} has keyValues {keys!r}; write a list of values.")
    kept = list(dict.fromkeys(keys))
    return kept, closed and bool(kept)


def check_terms(column: Mapping[str, Any]) -> None:
    """Check the terms of a column that have parts.

    Raises:
        SchemaError: they are of other types than the vocabulary's.
    """
    name = column.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaError("A column of the CSVW metadata has no name; give it one.")
    _check_partitions(column, _called(column))
    given = column.get("rowDependencies", [])
    if not isinstance(given, list) or not all(
        isinstance(each, Mapping)
        and isinstance(each.get("dependsOn"), str)
        and isinstance(each.get("valueMap", {}), Mapping)
        for each in given
    ):
        raise SchemaError(
            f"{_called(column)} has rowDependencies {given!r}; write a list of them, each with dependsOn, and a valueMap of values."
        )


def check_group(group: Mapping[str, Any]) -> None:
    """Check the terms of a group of columns that have parts.

    Raises:
        SchemaError: they are of other types than the vocabulary's.
    """
    names, keys = group.get("columnsInGroup", []), group.get("keyValues", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(
            f"A group of the CSVW metadata has columnsInGroup {names!r}; write a list of names."
        )
    if not isinstance(keys, list):
        raise SchemaError(f"A group of the CSVW metadata has keyValues {keys!r}; write a list.")
    _check_partitions(group, "A group of the CSVW metadata")


def _check_partitions(owner: Mapping[str, Any], called: str) -> None:
    partitions = owner.get("partitions", [])
    if not isinstance(partitions, list):
        raise SchemaError(f"{called} has partitions {partitions!r}; write a list.")


def predicates(owner: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The predicates of the partitions of a column or a group."""
    partitions = owner.get("partitions", [])
    found = [part.get("predicate") for part in partitions if isinstance(part, Mapping)]
    return [predicate for predicate in found if isinstance(predicate, Mapping)]


def _numbers(column: Mapping[str, Any], kind: Fields, intervals: Sequence[Any]) -> Fields:
    """The domain of numbers, dates or times, of which ``kind`` says what they are."""
    keys, closed = _keys(column)
    ends = [column.get("minimum"), column.get("maximum")]
    bounded = edges_of([{LOW: ends[0], HIGH: ends[1]}]) if None not in ends else []
    edges = edges_of([*predicates(column), *intervals])
    if len(edges) > 1 and bounded:
        # Numbers beyond the partitions have bins of their own.
        beyond = (e for e in bounded if e not in keys and not edges[0] <= e <= edges[-1])
        edges = sorted([*edges, *beyond])
    if len(edges) > 1:
        within = closed and all(edges[0] <= key <= edges[-1] for key in keys)
        return kind | {"edges": edges} | ({"grid" if within else "points": keys} if keys else {})
    if closed and (bounded or kind.keys() - {"integral"}):
        return kind | {"grid": keys}
    if closed:
        # Keys without bounds are names, whose order has no meaning.
        return {"codes": len(keys)} if keys == [*range(len(keys))] else {"values": keys}
    return kind | {"bins": PRIVATE} | ({"bounds": ends} if len(bounded) > 1 else {})


def edges_of(intervals: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The bounds of intervals, each once and in order; none if they do not compare."""
    ends = [interval[key] for interval in intervals for key in (LOW, HIGH) if key in interval]
    if len({isinstance(end, str) for end in ends}) > 1:
        return []
    if any(isinstance(end, bool) or not isinstance(end, str | int | float) for end in ends):
        return []
    return sorted({_as_xsd(end) for end in ends})


def _as_xsd(value: Any) -> Any:
    """A moment as XML Schema writes it, with a T between date and time; other values as they are."""
    if isinstance(value, str) and len(value) > 10 and value[10:11] == " ":
        return f"{value[:10]}T{value[11:]}"
    return value


def column_of(section: Mapping[str, Any]) -> Fields:
    """The terms of a column that stands for a section of a schema, as :meth:`.Attribute.to_json` gives it."""
    out = {"@type": "Column", "name": section["name"], "datatype": _datatype(section)}
    out |= {"required": not section.get("missing", False), "privacyId": False}
    keys, closed = _listed(section)
    edges = section.get("edges") or section.get("bounds") or []
    ends = edges or (section.get("grid") or [])[:1] + (section.get("grid") or [])[-1:]
    if ends:
        out |= {"minimum": _as_xsd(ends[0]), "maximum": _as_xsd(ends[-1])}
    if keys:
        out |= {"keyValues": keys, "exhaustiveKeys": closed}
        out |= {"invariantPublicKeys": True, "maxNumPartitions": len(keys)} if closed else {}
    return out


def names_of(section: Mapping[str, Any]) -> list[Any] | None:
    """The listed values of a section, without the place of others; None if there are none."""
    if "codes" in section:
        return [*range(section["codes"])]
    values = section.get("values")
    if not isinstance(values, list):
        return None
    return [value for value in values if value != section.get("other")]


def _listed(section: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The public values of a section, and whether there are no others."""
    if (named := names_of(section)) is not None:
        return named, section.get("other") is None
    if "grid" in section:
        return [*map(_as_xsd, section["grid"])], True
    return [*map(_as_xsd, section.get("points", []))], False


def _datatype(section: Mapping[str, Any]) -> str:
    values = section.get("values")
    if values is not None:
        kinds = {type(value) for value in values} if isinstance(values, list) else {str}
        return "string" if str in kinds else _of_numbers(kinds)
    if "codes" in section or section.get("integral"):
        return "integer"
    calendar = section.get("calendar")
    if calendar == "timestamp":
        return STAMP if section.get("timezone") else "dateTime"
    if calendar is not None:
        return str(calendar)
    lasting = section.get("format") == DURATION or str(section.get("type")).startswith(SECONDS)
    return "dayTimeDuration" if lasting else "double"


def _of_numbers(kinds: Collection[type[Any]]) -> str:
    if set(kinds) == {bool}:
        return "boolean"
    return "integer" if set(kinds) == {int} else "double"


def group_of(section: Mapping[str, Any]) -> Fields | None:
    """The public bins of a section, as a group of one column; None if it has none."""
    edges = section.get("edges")
    if not edges:
        return None
    name, ends = section["name"], [*map(_as_xsd, edges)]
    keys = [{name: {LOW: low, HIGH: high}} for low, high in itertools.pairwise(ends)]
    return {
        "@type": "ColumnGroup",
        "columnsInGroup": [name],
        "keyValues": keys,
        "exhaustiveKeys": True,
    }
