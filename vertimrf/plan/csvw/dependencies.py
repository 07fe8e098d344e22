"""Dependencies of columns in CSVW-EO, and the rules and impossible combinations that stand for them.

``bigger`` is an order of two columns. ``mapping`` lists the values that a column may have beside each
value of another one; all others are impossible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...arrays import Fields
from ..rules import Order, parse_rule
from .columns import names_of

BIGGER, MAPPING = "bigger", "mapping"


def stated_by(columns: Iterable[Mapping[str, Any]], sections: Sequence[Fields]) -> Fields:
    """The rules and impossible combinations of a table's dependencies, as a schema file has them.

    Args:
        columns: the terms of the columns.
        sections: the sections that stand for them.
    """
    of = {section["name"]: section for section in sections}
    rules: list[str] = []
    impossible: list[Fields] = []
    for column in columns:
        name = column["name"]
        for dependency in column.get("rowDependencies", []):
            on, kind = dependency.get("dependsOn"), dependency.get("dependencyType")
            if name not in of or on not in of or on == name:
                continue
            if kind == BIGGER and _comparable(of[name], of[on]):
                rules.append(str(Order(str(on), name)))
            if kind == MAPPING:
                impossible += _ruled_out(of[on], of[name], dependency.get("valueMap", {}))
    return {"rules": rules, "impossible": impossible}


def _comparable(one: Fields, other: Fields) -> bool:
    """Whether both are numbers, or dates or times of one kind."""
    numeric = all("bins" in each or "edges" in each or "grid" in each for each in (one, other))
    return numeric and one.get("calendar") == other.get("calendar")


def text_of(value: Any) -> str:
    """A value as the name of a JSON object's field."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ruled_out(on: Fields, of: Fields, given: Mapping[str, Any]) -> list[Fields]:
    """Impossible combinations of a mapping from values to the values beside them."""
    keys, values = names_of(on), names_of(of)
    if keys is None or values is None:
        return []
    named = {text_of(key): key for key in keys}
    out = []
    for text, allowed in given.items():
        listed = allowed if isinstance(allowed, list) else [allowed]
        never = [value for value in values if value not in listed]
        if text in named and never and all(value in values for value in listed):
            out.append({on["name"]: [named[text]], of["name"]: never})
    return out


def dependencies_of(
    sections: Sequence[Mapping[str, Any]], impossible: Iterable[Fields], rules: Iterable[str]
) -> dict[str, list[Fields]]:
    """By column, the dependencies that stand for rules and impossible combinations of a table."""
    of = {section["name"]: section for section in sections}
    out: dict[str, list[Fields]] = defaultdict(list)
    for text in rules:
        rule = parse_rule(text)
        if isinstance(rule, Order) and {rule.low, rule.high} <= of.keys():
            out[rule.high].append({"dependsOn": rule.low, "dependencyType": BIGGER})
    never: dict[tuple[str, str], dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for combination in impossible:
        if len(combination) != 2 or not combination.keys() <= of.keys():
            continue
        (one, keys), (other, values) = combination.items()
        keys, values = _listed(of[one], keys), _listed(of[other], values)
        if keys and values:
            for key in keys:
                never[one, other][text_of(key)] += values
    for (one, other), by_key in never.items():
        listed = names_of(of[other]) or []
        allowed = {
            key: [value for value in listed if value not in values]
            for key, values in by_key.items()
        }
        out[other].append({"dependsOn": one, "dependencyType": MAPPING, "valueMap": allowed})
    return out


def _listed(section: Mapping[str, Any], condition: Any) -> list[Any]:
    """The values of a condition; none if it says something else than listed values."""
    given = condition if isinstance(condition, list) else [condition]
    values = names_of(section)
    fits = values is not None and all(not isinstance(v, Mapping) and v in values for v in given)
    return given if fits else []


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two dependencies say the same: the order of values has no meaning, nor a list of one."""
    maps = [{k: _set(v) for k, v in d.get("valueMap", {}).items()} for d in (one, other)]
    bare = [{k: v for k, v in d.items() if k != "valueMap"} for d in (one, other)]
    return maps[0] == maps[1] and bare[0] == bare[1]


def _set(values: Any) -> frozenset[str]:
    return frozenset(map(repr, values if isinstance(values, list) else [values]))
