"""A schema with private domains: bins or values that a search with noise finds before planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..columns.column import PRIVATE, Attribute
from ..columns.private import PrivateDomain
from ..errors import SchemaError
from ..files.atomic import AnyPath
from ..privacy.ledger import LedgerEntry
from .equations import Equation, Rule
from .impossible import Impossible
from .rules import check_rules, parse_rule
from .schema import Schema
from .sections import SchemaSections, read_impossible, read_schema


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
    def load(cls, path: AnyPath) -> OpenSchema:
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
