"""The parts of a schema: checks of what they are, and how columns of one name differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..arguments import SEQUENCE, TEXT, Kind, check, each, instance, maybe
from ..columns.text import is_text
from ..errors import SchemaError

if TYPE_CHECKING:
    from ..columns.column import Attribute
    from .equations import Rule
    from .impossible import Impossible

IMPOSSIBLE, RULE = instance("Impossible"), instance("Rule")
RULE_OR_TEXT = Kind("a rule or its text", lambda given: TEXT.fits(given) or RULE.fits(given))
PARTY = Kind(
    "a name and the names of its columns",
    lambda given: SEQUENCE.fits(given) and len(given) == 2 and each(TEXT).fits(given[1]),
)
READ = Kind(
    "a party's name and how its table is read",
    lambda given: SEQUENCE.fits(given) and len(given) == 2 and instance("Reading").fits(given[1]),
)
CSVW = Kind(
    "a party's name and what CSVW metadata said of its table",
    lambda given: SEQUENCE.fits(given) and len(given) == 2 and instance("Kept").fits(given[1]),
)


def check_parts(parts: Mapping[str, Any]) -> None:
    """Check that the parts of a schema are such, by name.

    Raises:
        SchemaError: one is not.
    """
    check(
        SchemaError,
        parts,
        attributes=each(instance("Attribute")),
        parties=each(PARTY),
        impossible=each(IMPOSSIBLE),
        spent=each(instance("LedgerEntry")),
        ids=maybe(TEXT),
        rules=each(RULE),
        ids_source=maybe(TEXT),
        reads=each(READ),
        csvw=each(CSVW),
    )


def check_party(name: Any) -> None:
    """Check a party's name.

    Raises:
        SchemaError: it is empty, no text, or names no file.
    """
    if not isinstance(name, str) or not name:
        raise SchemaError(f"A party's name is {name!r}; give every party a non-empty text name.")
    if not is_text(name) or "\0" in name:
        raise SchemaError(f"A party's name is {name!r}, which is no text; correct it.")
    if "/" in name or "\\" in name or name in (".", ".."):
        raise SchemaError(
            f"A party's name is {name!r}; files are named after parties, so leave slashes out."
        )


def check_stated(
    impossible: Iterable[Impossible], rules: Iterable[str | Rule]
) -> tuple[tuple[Impossible, ...], tuple[str | Rule, ...]]:
    """Structural zeros and rules, each once, as several merged parts may state the same.

    Raises:
        SchemaError: one is none.
    """
    zeros, ruled = tuple(impossible), tuple(rules)
    given = {"impossible": zeros, "rules": ruled}
    check(SchemaError, given, impossible=each(IMPOSSIBLE), rules=each(RULE_OR_TEXT))
    return tuple(dict.fromkeys(zeros)), tuple(dict.fromkeys(ruled))


def clash(one: Attribute, other: Attribute, party: str, elsewhere: str) -> str:
    """Describe how the attributes of one name at two parties differ."""
    how = (
        "with different domains"
        if one.kind == other.kind
        else f"{other.kind} at one and {one.kind} at the other"
    )
    return f"Attribute {one.name!r} is at parties {elsewhere!r} and {party!r}, {how}"
