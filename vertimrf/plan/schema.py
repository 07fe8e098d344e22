"""Public domains: the attributes, which values they take, and which party holds them (VertiMRF, section 2.4).

A schema is public knowledge that all parties and the server agree on. One that :func:`infer_schema` read off
private tables is marked ``public=False``: it serves trials, and no privacy guarantee covers it.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tomli_w

from ..errors import SchemaError
from ..files.atomic import MOST_JSON, read_bytes, write_text
from ..files.canonical import json_digest

if TYPE_CHECKING:
    pass

__all__ = ["MAX_SIZE", "Attribute", "Schema", "Value"]

Value = str | int | bool
# Codes are uint16, and one value stays free for "no code".
MAX_SIZE = 65_535
# Cells of text columns that say "no value", unless an attribute lists them as values.
MISSING_TEXT = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
ATTRIBUTE_KEYS = (
    "name", "values", "ordered", "other", "codes", "edges", "bounds", "bins", "integral", "clamp", "missing"
)  # fmt: skip


@dataclass(frozen=True)
class Attribute:
    """One attribute and its domain. Codes run over the values, or bins, in order; a missing value has the last code.

    Attributes:
        name: column name.
        kind: "categorical" (needs ``values``), "integer" (needs ``codes``) or "numeric" (needs ``edges``).
        values: categorical: the values as in the file, all text, all whole numbers or all true/false.
        codes: integer: the column holds the codes 0 to codes - 1 themselves.
        edges: numeric: public bounds and bins; bin i is [edges[i], edges[i+1]), the last one closed.
        integral: numeric: values are whole numbers, and so are decoded ones.
        clamp: numeric: values beyond the bounds count as the nearest bound, instead of being an error.
        missing: missing values are a category of their own, instead of being an error.
        other: categorical: stands for every value that is not listed; appended to ``values`` if not among them.
        ordered: neighbouring codes are alike; always true of integer and numeric attributes.

    Raises:
        SchemaError: the parts do not make a domain.
    """

    name: str
    kind: Literal["categorical", "integer", "numeric"]
    values: tuple[Value, ...] = ()
    codes: int = 0
    edges: tuple[float, ...] = ()
    integral: bool = False
    clamp: bool = False
    missing: bool = False
    other: Value | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SchemaError(f"An attribute's name is {self.name!r}; give every attribute a non-empty text name.")
        where = f"Attribute {self.name!r}"
        for flag in ("integral", "clamp", "missing", "ordered"):
            if not isinstance(getattr(self, flag), bool):
                raise SchemaError(f"{where}: {flag} is {getattr(self, flag)!r}; write true or false.")
        given = {"categorical": "values", "integer": "codes", "numeric": "edges"}
        if self.kind not in given:
            raise SchemaError(f"{where} has the kind {self.kind!r}; use one of {', '.join(given)}.")
        for kind, part in given.items():
            if kind != self.kind and getattr(self, part):
                raise SchemaError(f"{where} is {self.kind} and has {part}; give it {given[self.kind]} only.")
        if self.kind == "categorical":
            self._check_values(where)
        elif self.other is not None:
            raise SchemaError(f"{where} has 'other', which only categorical attributes can have; remove it.")
        if self.kind == "integer" and (type(self.codes) is not int or self.codes < 1):
            raise SchemaError(f"{where} has {self.codes!r} codes; it needs a whole number of at least 1.")
        if self.kind == "numeric":
            self._check_edges(where)
        elif self.integral or self.clamp:
            raise SchemaError(f"{where} has 'integral' or 'clamp', which only numeric attributes can have; remove it.")
        if self.kind != "categorical":
            object.__setattr__(self, "ordered", True)
        if self.size > MAX_SIZE:
            raise SchemaError(
                f"{where} has {self.size:,} codes; at most {MAX_SIZE:,} are possible, use wider bins or 'other'."
            )

    def _check_values(self, where: str) -> None:
        values = tuple(self.values)
        if not values:
            raise SchemaError(f"{where} has no values; list at least one.")
        kinds = {type(value) for value in values} | ({type(self.other)} if self.other is not None else set())
        if len(kinds) > 1 or not kinds <= {str, int, bool}:
            raise SchemaError(f"{where}: values and 'other' must be all text, all whole numbers or all true/false.")
        if self.other is not None and self.other not in values:
            values = (*values, self.other)
        object.__setattr__(self, "values", values)
        if len(set(values)) < len(values):
            twice = next(value for i, value in enumerate(values) if value in values[:i])
            raise SchemaError(f"{where} lists the value {twice!r} twice; list it once.")

    def _check_edges(self, where: str) -> None:
        try:
            edges = tuple(float(edge) for edge in self.edges)
        except (TypeError, ValueError):
            raise SchemaError(f"{where}: edges must be numbers.") from None
        object.__setattr__(self, "edges", edges)
        if len(edges) < 2:
            raise SchemaError(f"{where} has {len(edges)} edges; it needs at least 2, the public bounds.")
        if not all(map(math.isfinite, edges)):
            raise SchemaError(
                f"{where}: edges must be finite; give public bounds, and clamp = true if values may exceed them."
            )
        for low, high in itertools.pairwise(edges):
            if low >= high:
                raise SchemaError(f"{where}: edges must increase, but {low:g} is followed by {high:g}.")
        if self.integral:
            for code in range(len(edges) - 1):
                low, high = self.whole_range(code)
                if low > high:
                    raise SchemaError(
                        f"{where}: the bin from {edges[code]:g} to {edges[code + 1]:g} holds no whole number; "
                        "use wider bins or integral = false."
                    )

    @classmethod
    def categorical(
        cls,
        name: str,
        values: Iterable[Value],
        *,
        missing: bool = False,
        other: Value | None = None,
        ordered: bool = False,
    ) -> Attribute:
        """An attribute with listed values."""
        return cls(name, "categorical", values=tuple(values), missing=missing, other=other, ordered=ordered)

    @classmethod
    def integer(cls, name: str, codes: int, *, missing: bool = False) -> Attribute:
        """An attribute whose column holds the codes 0 to ``codes`` - 1."""
        return cls(name, "integer", codes=codes, missing=missing)

    @classmethod
    def numeric(
        cls,
        name: str,
        edges: Iterable[float],
        *,
        integral: bool = False,
        clamp: bool = False,
        missing: bool = False,
    ) -> Attribute:
        """A numeric attribute with public bin edges."""
        return cls(name, "numeric", edges=tuple(edges), integral=integral, clamp=clamp, missing=missing)

    @property
    def size(self) -> int:
        """Number of codes, the one of missing values included."""
        present = {"categorical": len(self.values), "integer": self.codes, "numeric": len(self.edges) - 1}
        return present[self.kind] + self.missing

    def whole_range(self, code: int) -> tuple[int, int]:
        """The least and greatest whole number of a bin of a numeric attribute."""
        low, high = self.edges[code], self.edges[code + 1]
        last = code == len(self.edges) - 2
        return math.ceil(low), math.floor(high) if last else math.ceil(high) - 1

    def to_json(self) -> dict[str, Any]:
        """The attribute as the mapping that a schema file holds; parts at their defaults are left out."""
        out: dict[str, Any] = {"name": self.name}
        if self.kind == "categorical":
            out["values"] = list(self.values)
            if self.ordered:
                out["ordered"] = True
        elif self.kind == "integer":
            out["codes"] = self.codes
        else:
            out["edges"] = [int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in self.edges]
        if self.other is not None:
            out["other"] = self.other
        out.update({flag: True for flag in ("integral", "clamp", "missing") if getattr(self, flag)})
        return out

    @classmethod
    def from_json(cls, data: Any) -> Attribute:
        """Read the mapping of a schema file; ``bounds`` and ``bins`` (equally wide) may stand for ``edges``.

        Raises:
            SchemaError: unknown or contradicting keys, or parts that do not make a domain.
        """
        if not isinstance(data, Mapping):
            raise SchemaError(f"An attribute of the schema is {data!r}; write a name and its values, codes or edges.")
        parts = dict(data)
        name = parts.setdefault("name", "")
        if unknown := sorted(map(str, parts.keys() - set(ATTRIBUTE_KEYS))):
            raise SchemaError(
                f"Attribute {name!r} has the unknown key {unknown[0]!r}; the keys are {', '.join(ATTRIBUTE_KEYS)}."
            )
        if "bounds" in parts or "bins" in parts:
            if "edges" in parts:
                raise SchemaError(f"Attribute {name!r} has edges as well as bounds or bins; give one or the other.")
            parts["edges"] = equal_edges(name, parts.pop("bounds", None), parts.pop("bins", None))
        kinds = {"values": "categorical", "codes": "integer", "edges": "numeric"}
        found = [key for key in kinds if key in parts]
        if len(found) != 1:
            raise SchemaError(
                f"Attribute {name!r} has {' and '.join(found) or 'no domain'}; "
                "give it exactly one of values, codes, edges, or bounds with bins."
            )
        for key in ("values", "edges"):
            if key in parts:
                if isinstance(parts[key], str) or not isinstance(parts[key], Sequence):
                    raise SchemaError(f"Attribute {name!r}: {key} is {parts[key]!r}; write a list.")
                parts[key] = tuple(parts[key])
        return cls(kind=kinds[found[0]], **parts)  # type: ignore[arg-type]


def equal_edges(name: str, bounds: Any, bins: Any) -> tuple[float, ...]:
    """Edges of equally wide bins between two bounds."""
    if not isinstance(bounds, Sequence) or len(bounds) != 2 or not all(isinstance(b, int | float) for b in bounds):
        raise SchemaError(
            f"Attribute {name!r}: bounds is {bounds!r}; write the two public bounds, as in bounds = [0, 100]."
        )
    if type(bins) is not int or not 1 <= bins <= MAX_SIZE:
        raise SchemaError(f"Attribute {name!r}: bins is {bins!r}; write how many equally wide bins, as in bins = 20.")
    low, high = bounds
    return (*(low + (high - low) * i / bins for i in range(bins)), high)


@dataclass(frozen=True)
class Schema:
    """All attributes and who holds them.

    Attributes:
        attributes: every attribute, in the order of the parties.
        parties: name and attribute names of each party; together they name every attribute once, in order.
        public: False when the domains were read off private data, which no privacy guarantee covers.

    Raises:
        SchemaError: attributes or parties that contradict each other.
    """

    attributes: tuple[Attribute, ...]
    parties: tuple[tuple[str, tuple[str, ...]], ...]
    public: bool = True

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SchemaError("The schema has no attributes; name at least one column besides the id.")
        if not isinstance(self.public, bool):
            raise SchemaError(f"The schema's 'public' is {self.public!r}; write true or false.")
        seen: dict[str, str] = {}
        names = set()
        for party, held in self.parties:
            if not isinstance(party, str) or not party:
                raise SchemaError(f"A party's name is {party!r}; give every party a non-empty text name.")
            if "/" in party or "\\" in party or party in (".", ".."):
                raise SchemaError(f"A party's name is {party!r}; files are named after parties, so leave slashes out.")
            if party in names:
                raise SchemaError(f"Two parties are called {party!r}; give every party a name of its own.")
            names.add(party)
            if not held:
                raise SchemaError(f"Party {party!r} has no attributes; give it some or leave it out.")
            for name in held:
                if name in seen:
                    where = "twice at party" if seen[name] == party else f"at party {seen[name]!r} and at party"
                    raise SchemaError(f"Attribute {name!r} is {where} {party!r}; keep it at one place.")
                seen[name] = party
        if tuple(seen) != self.names:
            raise SchemaError("The parties' attributes, one party after the other, must be the schema's, in order.")

    @classmethod
    def of(cls, parties: Mapping[str, Iterable[Attribute]], *, public: bool = True) -> Schema:
        """A schema from each party's attributes.

        Example:
            >>> schema = Schema.of({"a": [Attribute.integer("x", 2)], "b": [Attribute.categorical("y", ["n", "y"])]})
            >>> schema.sizes
            (2, 2)
        """
        held = {party: tuple(attributes) for party, attributes in parties.items()}
        return cls(
            attributes=tuple(itertools.chain(*held.values())),
            parties=tuple((party, tuple(a.name for a in attributes)) for party, attributes in held.items()),
            public=public,
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each attribute, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    def index(self, name: str) -> int:
        """Position of an attribute.

        Raises:
            SchemaError: no such attribute.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(f"The schema has no attribute {name!r}; it has {', '.join(self.names)}.") from None

    def party_attributes(self, party: str) -> tuple[int, ...]:
        """Positions of the attributes that a party holds, a contiguous run.

        Raises:
            SchemaError: no such party.
        """
        start = 0
        for name, held in self.parties:
            if name == party:
                return tuple(range(start, start + len(held)))
            start += len(held)
        raise SchemaError(f"The schema has no party {party!r}; it has {', '.join(name for name, _ in self.parties)}.")

    def party_of(self, attribute: int) -> int:
        """Position of the party that holds the attribute at a position."""
        return self._owners[attribute]

    @cached_property
    def _owners(self) -> tuple[int, ...]:
        """Per attribute, the position of its party."""
        return tuple(party for party, (_, held) in enumerate(self.parties) for _ in held)

    def part(self, party: str) -> tuple[Attribute, ...]:
        """The attributes that a party holds.

        Raises:
            SchemaError: no such party.
        """
        return tuple(self.attributes[i] for i in self.party_attributes(party))

    def split(self, counts: Sequence[int]) -> Schema:
        """The same attributes dealt, in order, to parties "party1", "party2", ... that hold ``counts`` of them.

        Raises:
            SchemaError: the counts are not positive or do not add up to the number of attributes.
        """
        if not counts or min(counts) < 1 or sum(counts) != len(self.attributes):
            raise SchemaError(
                f"A split into {', '.join(map(str, counts))} attributes does not deal all {len(self.attributes)}; "
                "give positive numbers that add up to it."
            )
        ends = list(itertools.accumulate(counts))
        parties = {
            f"party{i + 1}": self.attributes[end - count : end]
            for i, (count, end) in enumerate(zip(counts, ends, strict=True))
        }
        return Schema.of(parties, public=self.public)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, hexadecimal: equal schemas have equal digests."""
        return json_digest(self.to_json()).hex()

    def to_json(self) -> dict[str, Any]:
        """A JSON-able form that :meth:`from_json` reads back, and that a TOML schema file spells out."""
        return {
            "public": self.public,
            "party": [
                {"name": name, "attribute": [attribute.to_json() for attribute in self.part(name)]}
                for name, _ in self.parties
            ],
        }

    @classmethod
    def from_json(cls, data: Any) -> Schema:
        """Read a schema, or the field's ``{attribute: size}`` domain as integer codes at one party called "party1".

        Raises:
            SchemaError: malformed or contradicting content.
        """
        if not isinstance(data, Mapping):
            raise SchemaError("The schema is not a mapping; write [[party]] sections, or {attribute: size}.")
        if data and all(type(size) is int for size in data.values()):
            return cls.of({"party1": [Attribute.integer(name, size) for name, size in data.items()]})
        if unknown := sorted(map(str, data.keys() - {"party", "public"})):
            raise SchemaError(f"The schema has the unknown key {unknown[0]!r}; its keys are 'public' and 'party'.")
        parties: list[tuple[str, list[Attribute]]] = []
        for party in as_list(data.get("party"), "The schema's 'party'"):
            if not isinstance(party, Mapping):
                raise SchemaError(f"A party of the schema is {party!r}; write a [[party]] with a name and attributes.")
            name = party.get("name", "")
            if unknown := sorted(map(str, party.keys() - {"name", "attribute"})):
                raise SchemaError(
                    f"Party {name!r} has the unknown key {unknown[0]!r}; its keys are 'name' and 'attribute'."
                )
            listed = as_list(party.get("attribute"), f"The 'attribute' of party {name!r}")
            parties.append((name, [Attribute.from_json(attribute) for attribute in listed]))
        return cls(
            attributes=tuple(attribute for _, held in parties for attribute in held),
            parties=tuple((name, tuple(attribute.name for attribute in held)) for name, held in parties),
            public=data.get("public", True),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema file: JSON if the name ends in .json, else TOML.

        Raises:
            SchemaError: the file is missing, is not TOML or JSON, or is no schema; the message names the file.
        """
        path = Path(path)
        try:
            text = read_bytes(path, "schema", SchemaError, MOST_JSON).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SchemaError(f"The schema file {path} cannot be read ({error}).") from None
        try:
            data = json.loads(text, object_pairs_hook=distinct) if path.suffix == ".json" else tomllib.loads(text)
        except ValueError as error:
            language = "JSON" if path.suffix == ".json" else "TOML"
            raise SchemaError(f"The schema file {path} is not valid {language} ({error}).") from None
        try:
            return cls.from_json(data)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a schema file: JSON if the name ends in .json, else TOML. :meth:`load` gives back an equal schema.

        Raises:
            OSError: the file cannot be written.
        """
        text = json.dumps(self.to_json(), indent=1) + "\n" if Path(path).suffix == ".json" else self.to_toml()
        write_text(path, text)

    def to_toml(self) -> str:
        """The schema as TOML text."""
        text = tomli_w.dumps({key: value for key, value in self.to_json().items() if key != "public" or not value})
        return text if self.public else f"# Inferred from data: for trials, not private.\n{text}"


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys must be distinct."""
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for i, n in enumerate(names) if n in names[:i])!r} appears twice")
    return out


def as_list(value: Any, what: str) -> list[Any]:
    """A non-empty list out of a schema file."""
    if not isinstance(value, list) or not value:
        found = "missing" if value is None else repr(value)
        raise SchemaError(f"{what} is {found}; write a non-empty list of sections.")
    return value
