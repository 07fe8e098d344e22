"""Merge the parties' parts of a schema, each drafted where its table lies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from ..columns.column import DRAFTED, Attribute
from ..errors import SchemaError
from ..privacy.ledger import distinct_releases
from .schema import Schema


def merge_schemas(parts: Mapping[str, Schema]) -> Schema:
    """Merge the parts that parties wrote separately into one schema.

    Args:
        parts: the parts, by a name for errors such as the file's. Their order is that of the
            parties.

    Raises:
        SchemaError: a party is in two parts, the forms of ids differ, or attributes of one name
            differ. The message lists all of these and how they differ.
    """
    if not parts:
        raise SchemaError("There are no parts to merge; give each party's.")
    parties: dict[str, tuple[Attribute, ...]] = {}
    source: dict[str, str] = {}
    forms: dict[str, str] = {}
    for where, part in parts.items():
        if part.ids is not None:
            forms.setdefault(part.ids, " and ".join(part.party_names))
        for party, _ in part.parties:
            if party in source:
                raise SchemaError(
                    f"Party {party!r} is in {source[party]} and in {where}; give every party one part."
                )
            parties[party], source[party] = part.part(party), where
    if len(forms) > 1:
        written = ", and ".join(f"{form!r} at {who}" for form, who in forms.items())
        raise SchemaError(
            f"Ids have the form {written}, so no records would match: write ids alike, or draft a part again with the "
            "id_format that makes them so."
        )
    sources = [part.ids_source for part in parts.values() if part.ids_source is not None]
    impossible = itertools.chain(*(part.impossible for part in parts.values()))
    merged = Schema.of(
        parties,
        public=all(part.public for part in parts.values()),
        impossible=impossible,
        rules=itertools.chain(*(part.rules for part in parts.values())),
    )
    return replace(
        merged,
        same_people=all(part.same_people for part in parts.values()),
        spent=distinct_releases([entry for part in parts.values() for entry in part.spent]),
        ids=next(iter(forms), None),
        ids_source=DRAFTED if DRAFTED in sources else next(iter(sources), None),
        reads=tuple(itertools.chain(*(part.reads for part in parts.values()))),
        csvw=tuple(itertools.chain(*(part.csvw for part in parts.values()))),
    )
