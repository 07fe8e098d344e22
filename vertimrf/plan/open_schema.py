"""A schema with private domains: bins or values that a search with noise finds before planning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import SchemaError
from ..privacy.ledger import LedgerEntry
from .attribute import MAX_SIZE, PRIVATE, Attribute, Value
from .equations import Equation, Rule
from .impossible import Impossible
from .rules import check_rules, parse_rule
from .schema import Schema, SchemaSections, read_impossible, read_schema

# Default of `most`: bins and values of a private domain.
BINS, VALUES = 16, 256
OTHER = "other"
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class PrivateDomain:
    """The public knowledge of an attribute whose domain is private.

    Attributes:
        known: the attribute with all that is public. Numbers have a single bin, between public
            bounds if there are any. Values are ``other`` alone.
        most: largest number of bins or values.
        bounded: whether numbers have public bounds.
        asked: the section of the schema file. It identifies a domain that was found before.
    """

    known: Attribute
    most: int
    bounded: bool
    asked: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the attribute."""
        return self.known.name

    @property
    def numeric(self) -> bool:
        """Whether the search is for bounds and bins. Otherwise it is for frequent values."""
        return self.known.kind == "numeric"

    @property
    def unknown(self) -> Attribute:
        """The attribute if the search was without result: its values are missing or ``other``."""
        if not self.numeric:
            return self.known
        return Attribute.categorical(self.name, [OTHER], other=OTHER, missing=self.known.missing)

    def binned(self, edges: tuple[float, ...]) -> Attribute:
        """The attribute with the edges that were found.

        Without public bounds, numbers beyond the edges go to the nearest bin.
        """
        return replace(self.known, edges=edges, clamp=self.known.clamp or not self.bounded)

    def listed(self, values: tuple[Value, ...]) -> Attribute:
        """The attribute with the values that were found; all other values are ``other``."""
        return replace(self.known, values=tuple(v for v in values if v != self.known.other))

    @classmethod
    def from_json(cls, asked: Mapping[str, Any]) -> PrivateDomain:
        """Read a section of a schema file that has private bins or values.

        Args:
            asked: the section, with ``bins = "private"`` or ``values = "private"``.

        Raises:
            SchemaError: the section has keys that do not fit a private domain.
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
            # The bounds of a day are public.
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
    """A schema with private domains that are not known yet.

    Attributes:
        schema: all attributes. Those with private domains have only what is known of them, so that
            no plan can be made with it.
        wanted: the private domains by attribute name, in schema order.
        impossible: impossible combinations of attributes with private domains.
        rules: all rules, if there are private domains; ``schema`` then has the equations alone.
    """

    schema: Schema
    wanted: Mapping[str, PrivateDomain]
    impossible: tuple[Impossible, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Open{str(self.schema)[1:-1]}, private domains: {', '.join(self.wanted) or 'none'}>"
        )

    def closed(self, domains: Mapping[str, Attribute], spent: tuple[LedgerEntry, ...]) -> Schema:
        """The schema with the domains that were found, and with their cost.

        Args:
            domains: an attribute for every name in ``wanted``.
            spent: ledger entries, one or more for every search.
        """
        attributes = tuple(domains.get(a.name, a) for a in self.schema.attributes)
        schema = self.schema
        return replace(
            schema,
            attributes=attributes,
            spent=(*schema.spent, *spent),
            impossible=(*schema.impossible, *self.impossible),
            rules=self.rules if self.wanted else schema.rules,
        )

    @classmethod
    def from_json(cls, data: Any) -> OpenSchema:
        """Read a schema with or without private domains.

        Raises:
            SchemaError: the content is malformed or contradicts itself.
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
        for party in sections.party:
            party.attribute = [read(attribute) for attribute in party.attribute]
        if not wanted:
            return cls(Schema.of_sections(sections), wanted)
        # Conditions on private values are checked when the values are known.
        later: list[Impossible] = []
        sections.impossible = _without(sections.impossible, wanted, "of the schema", later)
        for party in sections.party:
            party.impossible = _without(party.impossible, wanted, "of a party", later)
        rules, sections.rules = tuple(map(parse_rule, sections.rules)), []
        schema = Schema.of_sections(sections)
        known = tuple(wanted[a.name].known if a.name in wanted else a for a in schema.attributes)
        check_rules(rules, known)
        for combination in later:
            if unknown := [
                c.attribute for c in combination.conditions if c.attribute not in schema.names
            ]:
                raise SchemaError(
                    f"The impossible combination ({combination}) names {unknown[0]!r}, which the schema has not."
                )
        equations = tuple(rule for rule in rules if isinstance(rule, Equation))
        schema = replace(schema, attributes=known, rules=equations)
        return cls(schema, wanted, tuple(later), rules)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OpenSchema:
        """Read a schema file, as :meth:`Schema.load`.

        Raises:
            SchemaError: the file is missing, is neither TOML nor JSON, or is no schema. The message
                names the file.
        """
        return read_schema(path, cls.from_json)


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
