"""Public domains: attributes, their values, and the parties that hold them (VertiMRF, section 2.4).

A schema is public knowledge that all parties and the server agree on. A schema that
:func:`draft_schema` drafted from private tables has ``public=False``: it is for trials, and no
privacy guarantee covers it.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ..arguments import FLAG, MANY, PATH, TEXT, WHOLE, each, shown, takes
from ..arrays import Fields, Ints, Texts
from ..columns.column import DRAFTED, Attribute
from ..columns.read import read_attribute
from ..errors import OutputError, SchemaError
from ..files.canonical import json_digest
from ..files.results import save
from ..privacy.ledger import LedgerEntry
from .csvw.tables import Kept
from .csvw.tables import metadata_of as csvw_of
from .equations import Equation, Rule, computed_domains
from .id_form import check_form
from .impossible import Combination, Impossible, contradiction, never
from .names import columns_of
from .parts import check_parts, check_party, check_stated, clash
from .rules import Order, parse_rule, ruled_out
from .sdv import metadata_of
from .sections import (
    Reading,
    SchemaSections,
    read_impossible,
    read_own_impossible,
    read_schema,
    toml_text,
)
from .value_files import take_lists_out

# Limits on parties, attributes, impossible combinations and rules. Checks take time quadratic in these.
MAX_PARTIES, MAX_ATTRIBUTES, MAX_IMPOSSIBLE, MAX_RULES = 1000, 10_000, 10_000, 100
# Number of impossible combinations that an error message lists.
MAX_NAMED = 5

_DISORDER = "The parties' attributes, one party after the other, must be the schema's, in order."


@dataclass(frozen=True)
class Schema:
    """All attributes, and the parties that hold them.

    Attributes:
        attributes: every attribute, in the order of the parties.
        parties: name and attribute names of each party, in the order of the attributes. An
            attribute at several parties is one column of the same people, of which each party has a
            copy. Its place is that at the first of these parties.
        public: False if the domains were read off private data, which no privacy guarantee covers.
        impossible: combinations of values that no record can have. Several parties may hold the
            attributes.
        spent: the cost of finding domains with noise. It is part of the ledger of every plan with
            this schema.
        ids: the form of the record ids at every party (:mod:`vertimrf.plan.id_form`). None if it is
            not stated.
        rules: orders and equations of columns, which every synthetic row keeps.
        same_people: whether all parties state that they hold records of the same people. It is
            public, and no data may be read for it.
        reads: by party, how its table is read.
        csvw: by party, what CSVW metadata said of its table besides.

    Raises:
        SchemaError: attributes or parties contradict each other, or the combinations leave no
            record possible.
    """

    attributes: tuple[Attribute, ...]
    parties: tuple[tuple[str, Texts], ...]
    public: bool = True
    impossible: tuple[Impossible, ...] = ()
    spent: tuple[LedgerEntry, ...] = ()
    ids: str | None = None
    rules: tuple[Rule, ...] = ()
    ids_source: str | None = field(default=None, compare=False)
    reads: tuple[tuple[str, Reading], ...] = field(default=(), compare=False)
    csvw: tuple[tuple[str, Kept], ...] = field(default=(), compare=False)
    same_people: bool = False

    def __post_init__(self) -> None:
        check_parts(vars(self))
        if not self.attributes:
            raise SchemaError(
                "The schema has no attributes; name at least one column besides the id."
            )
        for what, count, most in (
            ("attributes", len(self.attributes), MAX_ATTRIBUTES),
            ("parties", len(self.parties), MAX_PARTIES),
            ("impossible combinations", len(self.impossible), MAX_IMPOSSIBLE),
            ("rules", len(self.rules), MAX_RULES),
        ):
            if count > most:
                raise SchemaError(
                    f"The schema has {count:,} {what}; at most {most:,} are possible."
                )
        for name in ("public", "same_people"):
            if not isinstance(given := getattr(self, name), bool):
                raise SchemaError(f"The schema's {name!r} is {shown(given)}; write true or false.")
        if self.ids is not None:
            check_form(self.ids)
        if self.ids_source == "":
            raise SchemaError("ids_source is empty; write where the form of ids is from.")
        place = self._places
        seen: dict[str, None] = {}
        names = set()
        for party, columns in self.parties:
            check_party(party)
            if party in names:
                raise SchemaError(
                    f"Two parties are called {party!r}; give every party a name of its own."
                )
            names.add(party)
            if not columns:
                raise SchemaError(
                    f"Party {party!r} has no attributes; give it some or leave it out."
                )
            if len(set(columns)) < len(columns):
                (twice, _), *_ = Counter(columns).most_common(1)
                raise SchemaError(
                    f"Attribute {twice!r} is twice at party {party!r}; keep it at one place."
                )
            if any(name not in place for name in columns) or list(columns) != sorted(
                columns, key=place.__getitem__
            ):
                raise SchemaError(_DISORDER)
            seen |= dict.fromkeys(columns)
        if tuple(seen) != self.names:
            raise SchemaError(_DISORDER)
        if together := contradiction(self.combinations, self.sizes):
            single = len(set(map(self.text, together))) == 1
            raise SchemaError(
                f"{self.named(together)} leave{'s' * single} no record possible; "
                f"{'it' if single else 'one of them'} cannot be true."
            )

    def __repr__(self) -> str:
        parties = ", ".join(f"{party} {len(columns)}" for party, columns in self.parties)
        return f"<Schema of {len(self.names)} attributes: {parties}{'' if self.public else ', NOT PUBLIC'}>"

    @classmethod
    @takes(SchemaError, impossible=MANY, rules=MANY)
    def of(
        cls,
        parties: Mapping[str, Iterable[Attribute]],
        *,
        public: bool = True,
        impossible: Iterable[Impossible] = (),
        rules: Iterable[str | Rule] = (),
    ) -> Schema:
        """Make a schema from each party's attributes.

        Args:
            parties: attributes by party name, in the order of the parties.
            public: whether the domains are public knowledge.
            impossible: combinations of values that no record can have.
            rules: orders and equations of columns, or their text ("arrival <= departure",
                "total = base + bonus").

        Raises:
            SchemaError: as the class; or attributes of one name differ. The message lists all of
                them.

        Example:
            >>> x, y = Attribute.integer("x", 2), Attribute.categorical("y", ["n", "y"])
            >>> schema = Schema.of({"a": [x], "b": [y]})
            >>> schema.sizes
            (2, 2)
        """
        given = columns_of(parties)
        first: dict[str, tuple[Attribute, str]] = {}
        attributes, clashes = [], []
        for party, columns in given.items():
            for attribute in columns:
                known, where = first.get(attribute.name, (attribute, party))
                if where == party:
                    first[attribute.name] = attribute, party
                    attributes.append(attribute)
                elif known != attribute:
                    clashes.append(clash(attribute, known, party, where))
        if clashes:
            raise SchemaError(
                f"{'; '.join(clashes)}. Where this is one column, describe it alike at all of them; where it is not, rename it."
            )
        place = {name: position for position, name in enumerate(first)}
        named = [
            (party, sorted((a.name for a in columns), key=place.__getitem__))
            for party, columns in given.items()
        ]
        # Several merged parts may state the same combination.
        stated, ruled = check_stated(impossible, rules)
        return cls(
            tuple(attributes),
            tuple((party, tuple(names)) for party, names in named),
            public,
            stated,
            rules=tuple(dict.fromkeys(r if isinstance(r, Rule) else parse_rule(r) for r in ruled)),
        )

    @cached_property
    def drafted(self) -> bool:
        """Whether a domain or the form of ids has "data" as its source."""
        return DRAFTED in (self.ids_source, *(attribute.source for attribute in self.attributes))

    @cached_property
    def party_names(self) -> Texts:
        """Names of the parties, in order."""
        return tuple(name for name, _ in self.parties)

    @cached_property
    def names(self) -> Texts:
        """Attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Position by name."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def sizes(self) -> Ints:
        """Number of codes of each attribute, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """The rules that order two columns."""
        return tuple(rule for rule in self.rules if isinstance(rule, Order))

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """The rules that compute a column."""
        return tuple(rule for rule in self.rules if isinstance(rule, Equation))

    @cached_property
    def domains(self) -> dict[str, Attribute]:
        """The columns of a synthetic table: the attributes, and what equations compute of them."""
        computed = computed_domains(self.equations, self.attributes).values()
        return {attribute.name: attribute for attribute in (*self.attributes, *computed)}

    @takes(SchemaError, name=TEXT)
    def index(self, name: str) -> int:
        """Position of an attribute.

        Raises:
            SchemaError: no such attribute.
        """
        try:
            return self.names.index(name)
        except ValueError:
            for equation in self.equations:
                if equation.name == name:
                    raise SchemaError(
                        f"{name!r} is computed ({equation}); name the columns that it is computed of."
                    ) from None
            raise SchemaError(
                f"The schema has no attribute {name!r}; it has {', '.join(self.names)}."
            ) from None

    @takes(SchemaError, party=TEXT)
    def party_attributes(self, party: str) -> Ints:
        """Positions of the attributes that a party holds, in increasing order.

        Raises:
            SchemaError: no such party.
        """
        for name, columns in self.parties:
            if name == party:
                return tuple(self._places[attribute] for attribute in columns)
        raise SchemaError(
            f"The schema has no party {party!r}; it has {', '.join(self.party_names)}."
        )

    def varying(self, party: str) -> Ints:
        """Positions of the attributes of two values or more that a party holds.

        Attributes of one value are never measured.

        Raises:
            SchemaError: no such party.
        """
        return tuple(i for i in self.party_attributes(party) if self.sizes[i] > 1)

    @cached_property
    def combinations(self) -> tuple[Combination, ...]:
        """The codes that each impossible combination rules out, and then those that rules do.

        Raises:
            SchemaError: a combination or a rule names an attribute or a value that does not exist.
        """
        out = []
        for number, combination in enumerate(self.impossible):
            try:
                out.append(combination.combination(self.attributes))
            except SchemaError as error:
                raise SchemaError(f"{self.named([number])}: {error}") from None
        return (*out, *(codes for _, codes in self._ordered))

    @cached_property
    def _ordered(self) -> list[tuple[str, Combination]]:
        """The codes that rules rule out, with the rules' text."""
        return ruled_out(self.rules, self.attributes)

    def text(self, number: int) -> str:
        """The text of what rules out a combination of codes, by its position in ``combinations``."""
        stated = len(self.impossible)
        if number < stated:
            return str(self.impossible[number])
        return self._ordered[number - stated][0]

    @cached_property
    def stated(self) -> dict[str, list[int]]:
        """Positions in ``combinations`` by text; rules have several."""
        out: dict[str, list[int]] = {}
        for number in range(len(self.combinations)):
            out.setdefault(self.text(number), []).append(number)
        return out

    def combinations_at(self, party: str) -> dict[int, Combination]:
        """Impossible combinations of one party's attributes alone.

        Returns:
            By position in ``combinations``, the combination, with attributes numbered within the
            party.

        Raises:
            SchemaError: no such party.
        """
        columns = self.party_attributes(party)
        return {
            number: tuple((columns.index(place), codes) for place, codes in combination)
            for number, combination in enumerate(self.combinations)
            if all(place in columns for place, _ in combination)
        }

    def named(self, numbers: Iterable[int], start: bool = True) -> str:
        """Name some of the impossible combinations and rules in an error message.

        Args:
            numbers: their positions in ``combinations``.
            start: whether the text starts a sentence.
        """
        every = {self.text(number): number for number in numbers}
        parts = [
            f"impossible combination {number + 1} ({text})"
            if number < len(self.impossible)
            else f"rule ({text})"
            for text, number in list(every.items())[:MAX_NAMED]
        ]
        parts += [f"{len(every) - MAX_NAMED:,} more"] if len(every) > MAX_NAMED else []
        listed = " and ".join(parts)
        return listed[0].upper() + listed[1:] if start else listed

    def remarks(self) -> list[str]:
        """Warnings about impossible combinations.

        They name bins that stay possible because they lie only partly within a condition, and
        values that no record can have.
        """
        out = []
        for number, combination in enumerate(self.impossible):
            for condition in combination.conditions:
                attribute = self.attributes[self.index(condition.attribute)]
                for code in condition.cut(attribute):
                    out.append(
                        f"{self.named([number])}: the bin {attribute.code_text(code)} of {attribute.name!r} lies only partly within it, "
                        "and stays possible as a whole; an edge there would tell its parts apart."
                    )
        for place, codes in never(self.combinations, self.sizes):
            attribute = self.attributes[place]
            listed = ", ".join(attribute.code_text(code) for code in codes)
            out.append(
                f"The impossible combinations{' and rules' * bool(self.orders)} leave no record with {attribute.name!r} {listed}."
            )
        return out

    @cached_property
    def holders(self) -> tuple[Ints, ...]:
        """Per attribute, the positions of the parties that hold it."""
        parties = [*enumerate(set(columns) for _, columns in self.parties)]
        return tuple(tuple(i for i, held in parties if name in held) for name in self.names)

    @cached_property
    def _held(self) -> Ints:
        """Per attribute, a bit for each party that holds it."""
        return tuple(sum(1 << party for party in parties) for parties in self.holders)

    def party_of(self, attribute: int) -> int:
        """Position of the first party that holds the attribute at a position."""
        return self.holders[attribute][0]

    @cached_property
    def shared(self) -> Ints:
        """Positions of the attributes of two values or more that several parties hold."""
        return tuple(
            a for a, holders in enumerate(self.holders) if len(holders) > 1 and self.sizes[a] > 1
        )

    def holder(self, attributes: Iterable[int]) -> int | None:
        """Position of the first party that holds all of these attributes, given by position, or None."""
        held = (1 << len(self.parties)) - 1
        for a in attributes:
            held &= self._held[a]
        return (held & -held).bit_length() - 1 if held else None

    def at_one_party(self, attributes: Iterable[int]) -> bool:
        """Whether some party holds all of these attributes, given by position."""
        return self.holder(attributes) is not None

    def part(self, party: str) -> tuple[Attribute, ...]:
        """The attributes that a party holds.

        Raises:
            SchemaError: no such party.
        """
        return tuple(self.attributes[i] for i in self.party_attributes(party))

    @cached_property
    def fine(self) -> dict[int, Attribute]:
        """By position, the finer cells of each attribute that varies and has some."""
        cells = {place: attribute.fine for place, attribute in enumerate(self.attributes)}
        return {a: fine for a, fine in cells.items() if fine is not None and self.sizes[a] > 1}

    def fine_of(self, party: str) -> Ints:
        """Positions of a party's attributes of which there are finer cells."""
        return tuple(a for a in self.party_attributes(party) if a in self.fine)

    def with_fine(self, places: Iterable[int]) -> tuple[Attribute, ...]:
        """What the records of some attributes are encoded by: these, then their finer cells."""
        places = list(places)
        fine = (self.fine[a] for a in places if a in self.fine)
        return (*(self.attributes[a] for a in places), *fine)

    def encoding(self, party: str) -> tuple[Attribute, ...]:
        """What a party's records are encoded by (:meth:`with_fine`)."""
        return self.with_fine(self.party_attributes(party))

    def lines(self) -> list[str]:
        """By party, its attributes with their sizes, for people."""
        return [
            f"  {party}: {', '.join(f'{a.name} ({a.size})' for a in self.part(party))}"
            for party in self.party_names
        ]

    @takes(SchemaError, counts=each(WHOLE))
    def split(self, counts: Sequence[int]) -> Schema:
        """Deal the same attributes, in order, to parties "party1", "party2", ...

        Args:
            counts: number of attributes of each party.

        Raises:
            SchemaError: the counts are not positive or do not add up to the number of attributes.
        """
        if not counts or min(counts) < 1 or sum(counts) != len(self.attributes):
            raise SchemaError(
                f"A split into {', '.join(map(str, counts))} attributes does not deal all {len(self.attributes)}; "
                "give positive numbers that add up to it."
            )
        ends = zip(counts, itertools.accumulate(counts), strict=True)
        parties = tuple(
            (f"party{i}", self.names[end - count : end]) for i, (count, end) in enumerate(ends, 1)
        )
        return replace(self, parties=parties)

    def as_plain(self) -> Schema:
        """The domains of rows that have plain numbers, dates and times (:meth:`.Attribute.as_plain`)."""
        return replace(self, attributes=tuple(each.as_plain() for each in self.attributes))

    @takes(SchemaError, party=TEXT)
    def reading(self, party: str) -> Reading:
        """How a party's table is read."""
        return dict(self.reads).get(party, Reading())

    def digest(self) -> str:
        """SHA-256 of the canonical JSON form in hexadecimal. Equal schemas have equal digests."""
        return json_digest(self.to_json()).hex()

    def to_json(self) -> Fields:
        """A JSON-able form that :meth:`from_json` reads back, with the fields of a TOML file."""
        kept = dict(self.csvw)
        sections = {
            "ids": self.ids,
            "ids_source": self.ids_source,
            "same_people": self.same_people,
            "party": [
                {"name": name}
                | ({"read": read} if (read := msgspec.to_builtins(self.reading(name))) else {})
                | {"attribute": [attribute.to_json() for attribute in self.part(name)]}
                | ({"csvw": more} if (more := msgspec.to_builtins(kept.get(name, Kept()))) else {})
                for name in self.party_names
            ],
            "impossible": [combination.to_json() for combination in self.impossible],
            "rules": list(map(str, self.rules)),
            "spent": [entry.to_json() for entry in self.spent],
        }
        return {"public": self.public} | {key: part for key, part in sections.items() if part}

    @classmethod
    def from_json(cls, data: Any) -> Schema:
        """Read a schema from JSON, or from a domain (:meth:`.SchemaSections.read`).

        Raises:
            SchemaError: the content is malformed or contradicts itself.
        """
        return cls.of_sections(SchemaSections.read(data))

    @classmethod
    def of_sections(cls, sections: SchemaSections) -> Schema:
        """Make the schema that a file describes.

        Raises:
            SchemaError: as :meth:`from_json`.
        """
        parties: dict[str, list[Attribute]] = {}
        impossible = read_impossible(sections.impossible, "of the schema")
        for party in sections.party:
            attributes = list(map(read_attribute, party.attribute))
            if parties.setdefault(party.name, attributes) is not attributes:
                raise SchemaError(
                    f"Two parties are called {party.name!r}; give every party a name of its own."
                )
            impossible += read_own_impossible(party, {a.name for a in attributes})
        schema = replace(
            cls.of(
                parties,
                public=sections.public is not False,
                impossible=impossible,
                rules=sections.rules,
            ),
            spent=sections.spent,
            ids=sections.ids,
            ids_source=sections.ids_source,
            same_people=sections.same_people,
            reads=tuple((party.name, party.read) for party in sections.party),
            csvw=tuple((party.name, party.csvw) for party in sections.party),
        )
        if sections.public is msgspec.UNSET and schema.drafted:
            # A draft stays one until its owner says so, or gives every domain and the ids a source.
            return replace(schema, public=False)
        return schema

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file: JSON if the name ends in .json, else TOML.

        Raises:
            SchemaError: the file is missing, is neither TOML nor JSON, or is no schema. The message
                names the file.
        """
        return read_schema(path, cls.from_json)

    @takes(OutputError, path=PATH, lists_apart=FLAG)
    def save(self, path: str | os.PathLike[str], *, lists_apart: bool = False) -> None:
        """Write a schema file: JSON if the name ends in .json, else TOML.

        :meth:`load` returns an equal schema. A name that ends in .sdv.json is that of SDV's metadata,
        which has no domains, and one that ends in .csvw.json that of metadata of CSV on the Web.

        Args:
            path: the file.
            lists_apart: write long lists of values to files beside it, see
                :mod:`vertimrf.plan.value_files`.

        Raises:
            SchemaError: such a file exists, or CSVW metadata cannot state what the domains have cost.
            OutputError, OSError: a file cannot be written.
        """
        path = Path(path)
        content = self.to_json()
        if path.name.endswith(".sdv.json"):
            content = metadata_of(self.attributes)
        elif path.name.endswith(".csvw.json"):
            content = csvw_of(content)
        lists = take_lists_out(content, path) if lists_apart else {}
        if there := [file for file in lists if file.exists()]:
            raise SchemaError(f"{there[0]} exists, and may hold edits; name another schema file.")
        for file, text in lists.items():
            save(file, text)
        json_text = json.dumps(content, indent=1) + "\n"
        save(path, json_text if path.suffix == ".json" else toml_text(content, self.drafted))

    def to_toml(self) -> str:
        """The schema as TOML text."""
        return toml_text(self.to_json(), self.drafted)
