"""Whole files of CSVW-EO: a table is a party.

What a schema has no word for is kept beside it (``Kept``), so that nothing is lost on the way back.
What the schema says wins over what was kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec

from ...arrays import Fields
from ...columns.column import PRIVATE
from ...errors import SchemaError
from .columns import (
    check_group,
    check_terms,
    column_of,
    edges_of,
    group_of,
    predicates,
    section_of,
)
from .dependencies import alike, dependencies_of, stated_by

CONTEXT = ["http://www.w3.org/ns/csvw", "https://w3id.org/csvw-eo"]
# What a section of numbers says besides its domain, as the datatype has it.
KINDS = ("integral", "calendar", "timezone", "format", "type")
TABLES, SCHEMA, GROUPS, DEPENDENCIES = "tables", "tableSchema", "additionalInformation", "rowDependencies"  # fmt: skip
VOCABULARY = "@context"


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What CSVW metadata say of a party's table and a schema does not.

    Attributes:
        table: terms of the table, such as ``maxContributions``.
        columns: terms of columns, with their names; all of those that the schema leaves out.
        order: names of all columns, if the schema leaves some out.
        groups: groups of columns.
        group: terms of the group of tables that it was in.
    """

    table: dict[str, Any] = {}
    columns: list[dict[str, Any]] = []
    order: list[str] = []
    groups: list[dict[str, Any]] = []
    group: dict[str, Any] = {}


def is_csvw(data: Any) -> bool:
    """Whether the content of a JSON file is CSVW metadata."""
    if not isinstance(data, Mapping):
        return False
    if SCHEMA in data:
        return True
    tables = data.get(TABLES)
    return isinstance(tables, list) and any(isinstance(t, Mapping) and SCHEMA in t for t in tables)


def sections_of(metadata: Mapping[str, Any]) -> Fields:
    """The sections of a schema file that CSVW metadata stand for.

    Args:
        metadata: the content of a metadata file, of a table or of a group of tables.

    Raises:
        SchemaError: a table has no columns, or terms are of other types than the vocabulary's.
    """
    metadata = without_nulls(metadata)
    tables = metadata.get(TABLES, [metadata])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise SchemaError("A table of the CSVW metadata is no object; write a tableSchema.")
    group = {key: value for key, value in metadata.items() if key != TABLES}
    usual = {SCHEMA: group[SCHEMA]} if SCHEMA in group else {}
    parties, rules, impossible = [], [], []
    for number, table in enumerate(tables, 1):
        shared = {"@type": "TableGroup"} | group if TABLES in metadata else {}
        party, stated = _party(usual | dict(table), f"party{number}", shared)
        parties.append(party)
        rules += [rule for rule in stated["rules"] if rule not in rules]
        impossible += stated["impossible"]
    out: Fields = {"party": parties}
    return out | ({"rules": rules} if rules else {}) | ({"impossible": impossible} if impossible else {})  # fmt: skip


def without_nulls(value: Any) -> Any:
    """A JSON value without nulls, which say nothing in these metadata."""
    if isinstance(value, Mapping):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value if part is not None]
    return value


def _party(table: Fields, usual: str, shared: Fields) -> tuple[Fields, Fields]:
    """The section of a party, and what dependencies of its columns say.

    Args:
        table: its table's terms.
        usual: its name if the table has none.
        shared: terms of the group that the table is in.
    """
    schema = table.get(SCHEMA)
    columns = schema.get("columns") if isinstance(schema, Mapping) else None
    if not isinstance(columns, list) or not columns:
        raise SchemaError("A table of the CSVW metadata has no columns; write a tableSchema.")
    groups = table.get(GROUPS, [])
    if not isinstance(groups, list) or not all(isinstance(g, Mapping) for g in [*groups, *columns]):
        raise SchemaError("A column or group of the CSVW metadata is no object; write its terms.")
    for column in columns:
        check_terms(column)
    for group in groups:
        check_group(group)
    found = [(column, section_of(column, _alone(groups, column))) for column in columns]
    sections = [section for _, section in found if section is not None]
    if not sections:
        raise SchemaError("All columns of a table of the CSVW metadata are ids, or of datatypes that have no bins.")  # fmt: skip
    stated = stated_by(columns, sections)
    name = _name(table, usual)
    party: Fields = {"name": name, "attribute": sections}
    kept = _kept(table, written(party, stated["impossible"], stated["rules"], Kept()))
    kept |= {"group": shared} if shared else {}
    return party | ({"csvw": kept} if kept else {}), stated


def _name(table: Mapping[str, Any], usual: str) -> str:
    """The name of a table: its own, or that of its file."""
    name, url = table.get("name"), table.get("url")
    stem = PurePosixPath(url).stem if isinstance(url, str) else ""
    return name if isinstance(name, str) and name else stem or usual


def _alone(groups: Sequence[Mapping[str, Any]], column: Mapping[str, Any]) -> list[Any]:
    """Predicates of the groups of a column alone."""
    name = column.get("name")
    own = [group for group in groups if group.get("columnsInGroup") == [name]]
    keys = [key for group in own for key in (*predicates(group), *group.get("keyValues", []))]
    found = [key.get(name) for key in keys if isinstance(key, Mapping)]
    return [predicate for predicate in found if isinstance(predicate, Mapping)]


def _kept(table: Mapping[str, Any], said: Mapping[str, Any]) -> Fields:
    """What a table has and ``said``, which the schema alone gives, has not."""
    terms = {
        key: value
        for key, value in table.items()
        if key not in (SCHEMA, GROUPS) and said.get(key) != value
    }
    own = {column["name"]: column for column in said[SCHEMA]["columns"]}
    columns = [_more(column, own.get(column["name"], {})) for column in table[SCHEMA]["columns"]]
    schema = {key: value for key, value in table[SCHEMA].items() if key != "columns"}
    names = [column["name"] for column in columns]
    groups = [group for group in table.get(GROUPS, []) if group not in said.get(GROUPS, [])]
    kept = Kept(
        terms | ({SCHEMA: schema} if schema else {}),
        [column for column in columns if len(column) > 1],
        names if names != [*own] else [],
        groups,
    )
    fields: Fields = msgspec.to_builtins(kept)
    return fields


def _more(column: Mapping[str, Any], said: Mapping[str, Any]) -> Fields:
    """The name of a column, and those of its terms that are not said."""
    out = {key: value for key, value in column.items() if said.get(key) != value}
    known = said.get(DEPENDENCIES, [])
    left = [one for one in out.pop(DEPENDENCIES, []) if not any(alike(one, two) for two in known)]
    return {"name": column["name"]} | out | ({DEPENDENCIES: left} if left else {})


def written(
    party: Mapping[str, Any], impossible: Iterable[Fields], rules: Iterable[str], kept: Kept
) -> Fields:
    """The table of CSVW-EO that stands for a party's section, and for what was kept."""
    sections = party["attribute"]
    depending = dependencies_of(sections, impossible, rules)
    more = {column["name"]: column for column in kept.columns}
    columns, groups = [], []
    for section in sections:
        own = more.pop(section["name"], {})
        column = column_of(section) | {k: v for k, v in own.items() if k != DEPENDENCIES}
        if "partitions" in own and not _still(own, section):
            del column["partitions"]
        if dependencies := [*depending.get(section["name"], []), *own.get(DEPENDENCIES, [])]:
            column[DEPENDENCIES] = dependencies
        columns.append(column)
        group = group_of(section)
        if group is not None and edges_of(predicates(column)) != edges_of(_alone([group], column)):
            groups.append(group)
    columns += [column for column in more.values() if "datatype" in column or "privacyId" in column]
    place = {name: number for number, name in enumerate(kept.order)}
    columns.sort(key=lambda column: place.get(column["name"], len(place)))
    more_terms = kept.table.get(SCHEMA)
    schema = (more_terms if isinstance(more_terms, dict) else {}) | {"columns": columns}
    out = {VOCABULARY: CONTEXT, "@type": "Table", "name": party["name"]} | kept.table
    out[SCHEMA] = schema
    names = {column["name"] for column in columns}
    groups += [group for group in kept.groups if names.issuperset(group.get("columnsInGroup", []))]
    return out | ({GROUPS: groups} if groups else {})


def _still(own: Mapping[str, Any], section: Mapping[str, Any]) -> bool:
    """Whether the partitions that were kept are still those of the section's values or bins."""
    bounds = edges_of(predicates(own))
    edges = edges_of([{"lowerBound": edge} for edge in section.get("edges", [])])
    if bounds:
        return not edges or set(bounds) <= set(edges)
    values = section.get("values")
    listed = [p["partitionValue"] for p in predicates(own) if "partitionValue" in p]
    return not isinstance(values, list) or set(listed) <= set(values)


def metadata_of(stated: Mapping[str, Any]) -> Fields:
    """CSVW-EO metadata of a schema, from the content of its file (:meth:`.Schema.to_json`).

    Of a schema that is not public they have names and datatypes alone: what CSVW-EO states is public.

    Raises:
        SchemaError: finding the domains has a cost. The metadata cannot state it, so that a plan with
            them would not count it.
    """
    if stated.get("spent"):
        raise SchemaError(
            "Finding the domains of this schema has spent epsilon, which CSVW metadata cannot state: a plan with them would not "
            "count it. Write the schema as .toml or .json."
        )
    if stated.get("public") is False:
        stated = {"party": [_undisclosed(party) for party in stated["party"]]}
    every, rules = stated.get("impossible", []), stated.get("rules", [])
    tables: list[Fields] = []
    shared: Fields = {}
    for party in stated["party"]:
        kept = msgspec.convert(party.get("csvw", {}), Kept)
        for column in kept.columns:
            check_terms(column)
        for group in kept.groups:
            check_group(group)
        own = [*every, *party.get("impossible", [])]
        tables.append(written(party, own, rules, kept))
        shared = kept.group | shared
    if len(tables) == 1 and not shared:
        return tables[0]
    shared = {VOCABULARY: tables[0][VOCABULARY], "@type": "TableGroup"} | shared
    known = (shared[VOCABULARY], CONTEXT)
    return shared | {TABLES: [_inner(table, known) for table in tables]}


def _inner(table: Fields, known: Collection[Any]) -> Fields:
    """A table in a group, which has the context, unless its own is another one."""
    return {k: v for k, v in table.items() if k != VOCABULARY or v not in known}


def _undisclosed(party: Mapping[str, Any]) -> Fields:
    """A party's section without what was read off its data, but the names and kinds of its columns."""
    sections = []
    for section in party["attribute"]:
        said = {key: section[key] for key in KINDS if key in section}
        if "values" in section or "codes" in section:
            texts = column_of(section)["datatype"] == "string"
            said = {"values": PRIVATE} if texts else {"bins": PRIVATE, "integral": True}
        sections.append({"name": section["name"], "missing": True, **said})
    return {"name": party["name"], "attribute": sections}
