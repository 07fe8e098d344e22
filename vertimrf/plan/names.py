"""Names of columns: in text that people write, plain or between backticks; and one name of two columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..columns.column import Attribute
from ..errors import SchemaError

QUOTED = r"`(?:[^`]|``)+`"
# A number in a rule.
NUMBER = r"\d+(?:\.\d+)?"


def written(name: str) -> str:
    """The text of a column's name, between backticks where it needs them."""
    plain = re.fullmatch(r"[\w.]+", name) and not re.fullmatch(NUMBER, name)
    return name if plain else f"`{name.replace('`', '``')}`"


def unquoted(text: str) -> str:
    """The name that a text means."""
    name = text.strip()
    return name[1:-1].replace("``", "`") if re.fullmatch(QUOTED, name) else name


def columns_of(parties: Any) -> dict[str, tuple[Attribute, ...]]:
    """The attributes of each party, as :meth:`.Schema.of` is given them.

    Raises:
        SchemaError: the parties are not lists of attributes by name.
    """
    said = type(parties).__name__
    if isinstance(parties, Mapping):
        given = {name: some for name, some in parties.items() if hasattr(some, "__iter__")}
        out = {name: tuple(some) for name, some in given.items()}
        other = [a for some in out.values() for a in some if not isinstance(a, Attribute)]
        if len(out) == len(parties) and not other:
            return out
        said = f"dict of {type(other[0]).__name__ if other else 'other values'}"
    raise SchemaError(f"The parties are a {said}; give a list of Attribute by name of party.")


def clash(one: Attribute, other: Attribute, party: str, elsewhere: str) -> str:
    """Describe how the attributes of one name at two parties differ."""
    how = (
        "with different domains"
        if one.kind == other.kind
        else f"{other.kind} at one and {one.kind} at the other"
    )
    return f"Attribute {one.name!r} is at parties {elsewhere!r} and {party!r}, {how}"
