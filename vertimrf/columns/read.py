"""Read an attribute of a schema file: the register of the kinds of columns."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..arrays import Fields
from ..errors import SchemaError
from .calendar import CALENDARS, UNITS, Calendar, calendar_of, unit_edges
from .column import FLAGS, KEYS, PRIVATE, Attribute
from .dates import Dates, instants, no_timezone
from .large import Large, from_origin, is_large
from .listed import Listed
from .numbers import Numbers, listed_numbers
from .text import MAX_SIZE, check_name, no_domain

# Keys that belong to one kind, in the order in which errors name them.
NUMERIC = (
    *("integral", "clamp", "resolution", "calendar", "timezone", "format"),
    *("offset", "grid", "points"),
)


def read_attribute(data: Any) -> Attribute:
    """Read the mapping of a schema file; ``bounds`` and ``bins`` (a number of equally wide
    ones, or a unit of the calendar) may stand for ``edges``, and the edges' kind for
    ``calendar``.

    Raises:
        SchemaError: unknown or contradicting keys, or parts that do not make a domain.
    """
    if not isinstance(data, Mapping):
        raise SchemaError(
            f"An attribute of the schema is {data!r}; write a name and its values, codes or edges."
        )
    parts = dict(data)
    name = parts.setdefault("name", "")
    if PRIVATE in (parts.get("bins"), parts.get("values")):
        raise SchemaError(
            f"Attribute {name!r} has a private domain, which has not been found yet: `vertimrf schema domains` finds it, "
            "with noise."
        )
    keys = [*KEYS, "bounds", "bins"]
    if unknown := sorted(map(str, parts.keys() - set(keys))):
        raise SchemaError(
            f"Attribute {name!r} has the unknown key {unknown[0]!r}; the keys are {', '.join(keys)}."
        )
    if ("bounds" in parts or "bins" in parts) and "edges" in parts:
        raise SchemaError(
            f"Attribute {name!r} has edges as well as bounds or bins; give one or the other."
        )
    bounds, bins = parts.pop("bounds", None), parts.pop("bins", None)
    given = parts.get("edges", bounds)
    given = given if given is not None else parts.get("grid")
    if _is_list(given) and given and calendar_of(given[0]) is not None:
        parts.setdefault("calendar", calendar_of(given[0]))
    if parts.get("calendar") in CALENDARS:
        zone = parts.get("timezone")
        if bounds is not None or bins is not None:
            parts["edges"] = calendar_edges(name, parts["calendar"], bounds, bins, zone)
        elif _is_list(parts.get("edges")):
            parts["edges"] = instants(name, parts["calendar"], parts["edges"], zone)
        for key in ("points", "grid"):
            if _is_list(parts.get(key)) and parts[key]:
                parts[key] = instants(name, parts["calendar"], parts[key], zone)
    elif bounds is not None or bins is not None:
        parts["edges"] = equal_edges(name, bounds, bins)
    if parts.get("grid") and bounds is None and "edges" not in parts and _is_list(parts["grid"]):
        with contextlib.suppress(TypeError):
            parts = listed_numbers(tuple(parts["grid"])) | parts
    for key in ("values", "edges", "points", "grid", "missing_text"):
        if key in parts:
            if not _is_list(parts[key]):
                raise SchemaError(f"Attribute {name!r}: {key} is {parts[key]!r}; write a list.")
            parts[key] = tuple(parts[key])
    return _made(parts)


def _made(parts: Fields) -> Attribute:
    """The attribute with these parts."""
    check_name(parts["name"])
    where = f"Attribute {parts['name']!r}"
    for flag in FLAGS:
        if not isinstance(parts.get(flag, False), bool):
            raise SchemaError(f"{where}: {flag} is {parts[flag]!r}; write true or false.")
    domains = [part for part in Attribute.kinds if parts.get(part)]
    if len(domains) != 1:
        raise no_domain(where, domains)
    source = parts.get("source")
    if source is not None and (not isinstance(source, str) or not source):
        raise SchemaError(f"{where}: source is {source!r}; write where the domain is from.")
    kind: Any = Attribute.kinds[domains[0]]
    for key in ("other", "missing_text"):
        numbers_too = key == "missing_text" and kind is Numbers
        if parts.get(key) is not None and kind is not Listed and not numbers_too:
            raise SchemaError(
                f"{where} has {key!r}, which only categorical attributes can have; remove it."
            )
    if kind is Numbers and parts.get("calendar") is not None:
        kind = Dates
    elif kind is Numbers and parts.get("timezone") is not None:
        raise no_timezone(where)
    elif kind is not Numbers:
        for key in NUMERIC:
            if parts.get(key) not in (None, False, 0, ()):
                raise SchemaError(
                    f"{where} has {key!r}, which only numeric attributes can have; remove it."
                )
    stepped = parts.get("integral") or parts.get("grid") or parts.get("resolution")
    if kind is Numbers and stepped and is_large(parts):
        kind, parts = Large, from_origin(where, parts)
    known = {part.name for part in fields(kind)}
    made: Attribute = kind(**{key: value for key, value in parts.items() if key in known})
    return made


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def equal_edges(name: str, bounds: Any, bins: Any) -> tuple[float, ...]:
    """Edges of bins of equal width between two bounds."""
    _check_bounds(name, bounds, "the two public bounds, as in bounds = [0, 100]", int | float)
    if type(bins) is not int or not 1 <= bins <= MAX_SIZE:
        raise SchemaError(
            f"Attribute {name!r}: bins is {bins!r}; write how many equally wide bins, as in bins = 20."
        )
    try:
        low, high = map(float, bounds)
    except OverflowError:
        raise SchemaError(
            f"Attribute {name!r}: a bound is too large for a number; give other bounds."
        ) from None
    return (*(low + (high - low) * i / bins for i in range(bins)), high)


def calendar_edges(
    name: str, calendar: Calendar, bounds: Any, bins: Any, timezone: str | None
) -> tuple[float, ...]:
    """Edges between two dates or times: bins of equal width, in whole days or seconds, or units of
    the calendar.
    """
    _check_bounds(name, bounds, f"the first and the last {calendar}", object)
    low, high = instants(name, calendar, bounds, timezone)
    if bins in UNITS:
        try:
            return unit_edges(calendar, low, high, bins, MAX_SIZE, timezone)
        except (ValueError, OverflowError) as error:
            raise SchemaError(f"Attribute {name!r}: bins is {bins!r}, but {error}.") from None
    if isinstance(bins, str):
        raise SchemaError(
            f"Attribute {name!r}: bins is {bins!r}; write a number, or one of {', '.join(UNITS)}."
        )
    return tuple(float(round(edge)) for edge in equal_edges(name, (low, high), bins))


def _check_bounds(name: str, bounds: Any, remedy: str, kind: Any) -> None:
    pair = _is_list(bounds) and len(bounds) == 2
    if not pair or not all(isinstance(bound, kind) for bound in bounds):
        raise SchemaError(f"Attribute {name!r}: bounds is {bounds!r}; write {remedy}.")
