"""A schema whose domains are not all known beforehand: what is still to be found, with noise, before anything can be planned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import SchemaError
from ..privacy.ledger import LedgerEntry
from .attribute import MAX_SIZE, PRIVATE, Attribute, Value
from .impossible import Impossible
from .schema import Schema, SchemaSections, read_impossible, read_schema

__all__ = ["OpenSchema", "PrivateDomain"]

# How many bins, and values at most, a private domain gets unless `most` says otherwise.
BINS, VALUES = 16, 256
OTHER = "other"
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class PrivateDomain:
    """What is publicly known of an attribute whose domain is to be found.

    Attributes:
        known: the attribute with everything that is public: of numbers a single bin, between public bounds where there are any;
            of values `other` alone.
        most: bins or values at most.
        bounded: numbers have public bounds.
        asked: as the schema file says it, by which a domain that was found before is known again.
    """

    known: Attribute
    most: int
    bounded: bool
    asked: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The attribute's."""
        return self.known.name

    @property
    def numeric(self) -> bool:
        """Whether bounds and bins are to be found, or frequent values."""
        return self.known.kind == "numeric"

    def binned(self, edges: tuple[float, ...]) -> Attribute:
        """The attribute with edges that were found; numbers beyond found bounds count as the nearest."""
        return replace(self.known, edges=edges, clamp=self.known.clamp or not self.bounded)

    def listed(self, values: tuple[Value, ...]) -> Attribute:
        """The attribute with values that were found; all others are `other`."""
        return replace(self.known, values=tuple(v for v in values if v != self.known.other))

    @classmethod
    def from_json(cls, asked: Mapping[str, Any]) -> PrivateDomain:
        """Read the mapping of a schema file that has ``bins = "private"`` or ``values = "private"``.

        Raises:
            SchemaError: keys that do not go with that.
        """
        parts = dict(asked)
        name = parts.get("name", "")
        numeric = parts.get("bins") == PRIVATE
        most = parts.pop("most", BINS if numeric else VALUES)
        if type(most) is not int or not 2 <= most <= MAX_SIZE // 2:
            raise SchemaError(
                f"Attribute {name!r}: most is {most!r}; write how many bins or values there may be, 2 or more."
            )
        others = ("values", "codes", "edges") if numeric else ("bins", "bounds", "codes", "edges")
        if given := [key for key in others if key in parts]:
            raise SchemaError(
                f"Attribute {name!r} has private {'bins' if numeric else 'values'} as well as {given[0]}; give one of them."
            )
        bounded = "bounds" in parts
        if not numeric:
            if isinstance(parts.get("other", OTHER), str):
                parts |= {"values": [parts.setdefault("other", OTHER)]}
                return cls(Attribute.from_json(parts), most, False, asked)
            raise SchemaError(
                f"Attribute {name!r}: private values are text, so 'other' is text too, not {parts['other']!r}."
            )
        if parts.get("calendar") == "time" and not bounded:
            # A day has the bounds that it has.
            parts["bounds"], bounded = [0, DAY_SECONDS], True
        if bounded:
            parts["bins"] = 1
        else:
            del parts["bins"]
            step = parts.get("resolution")
            parts["edges"] = [0, step if isinstance(step, int | float) and step > 1 else 1]
        return cls(Attribute.from_json(parts), most, bounded, asked)


@dataclass(frozen=True)
class OpenSchema:
    """A schema some of whose domains are to be found.

    Attributes:
        schema: all attributes, those to be found with what is known of them; not to be planned with.
        wanted: what is to be found, by attribute name, in schema order.
        impossible: combinations of values that no record can have, of attributes whose domains are to be found.
    """

    schema: Schema
    wanted: Mapping[str, PrivateDomain]
    impossible: tuple[Impossible, ...] = ()

    def closed(
        self, domains: Mapping[str, Attribute], spent: tuple[LedgerEntry, ...], public: bool = True
    ) -> Schema:
        """The schema with the domains that were found, and what finding them has cost.

        Args:
            found: an attribute for every name in ``wanted``.
            spent: ledger entries, one or more for everything that was looked for.
            public: False where the noise was no privacy noise.
        """
        attributes = tuple(domains.get(a.name, a) for a in self.schema.attributes)
        schema = self.schema
        return replace(
            schema,
            attributes=attributes,
            spent=(*schema.spent, *spent),
            public=schema.public and public,
            impossible=(*schema.impossible, *self.impossible),
        )

    @classmethod
    def from_json(cls, data: Any) -> OpenSchema:
        """Read a schema with or without private domains.

        Raises:
            SchemaError: malformed or contradicting content.
        """
        wanted: dict[str, PrivateDomain] = {}

        def read(attribute: Any) -> Any:
            if not isinstance(attribute, Mapping) or PRIVATE not in (
                attribute.get("bins"),
                attribute.get("values"),
            ):
                return attribute
            domain = PrivateDomain.from_json(attribute)
            wanted[domain.name] = domain
            # The file's structure is checked with a domain that fits any name.
            return {"name": domain.name, "codes": 1}

        sections = SchemaSections.read(data)
        # Conditions on values that are not known yet are checked once these are.
        later: list[Impossible] = []
        for party in sections.party:
            party.attribute = [read(attribute) for attribute in party.attribute]
        if wanted:
            sections.impossible = _without(sections.impossible, wanted, "of the schema", later)
            for party in sections.party:
                party.impossible = _without(party.impossible, wanted, "of a party", later)
        schema = Schema.of_sections(sections)
        for combination in later:
            if unknown := [
                c.attribute for c in combination.conditions if c.attribute not in schema.names
            ]:
                raise SchemaError(
                    f"The impossible combination ({combination}) names {unknown[0]!r}, which the schema has not."
                )
        known = tuple(wanted[a.name].known if a.name in wanted else a for a in schema.attributes)
        return cls(replace(schema, attributes=known), wanted, tuple(later))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OpenSchema:
        """Read a schema file, as :meth:`Schema.load`.

        Raises:
            SchemaError: the file is missing, is not TOML or JSON, or is no schema; the message names the file.
        """
        try:
            return cls.from_json(read_schema(Path(path)))
        except SchemaError as error:
            raise SchemaError(
                str(error) if str(path) in str(error) else f"{path}: {error}"
            ) from None


def _without(
    written: list[Any], wanted: Mapping[str, PrivateDomain], of_whom: str, later: list[Impossible]
) -> list[Any]:
    """Impossible combinations as written, without those that name a private domain.

    These are added to ``later``.
    """
    kept = []
    for section, combination in zip(written, read_impossible(written, of_whom), strict=True):
        if any(condition.attribute in wanted for condition in combination.conditions):
            later.append(combination)
        else:
            kept.append(section)
    return kept
