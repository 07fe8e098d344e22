"""A schema's file: its sections, checked as they are read."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import tomli_w

from ..arguments import PATH, check
from ..arrays import Fields, Texts
from ..errors import SchemaError
from ..files.atomic import MAX_JSON, AnyPath, read_bytes
from ..files.canonical import check_depth, json_of
from ..files.convert import from_json
from ..privacy.ledger import LedgerEntry
from .csvw.tables import Kept, is_csvw
from .csvw.tables import sections_of as sections_of_csvw
from .impossible import Impossible
from .sdv import VERSION, sections_of
from .value_files import read_lists

# Largest TOML file that is read, in bytes. TOML takes a hundred times as long to read as JSON.
MAX_TOML = 1 << 22
# Most parts of a dotted key in TOML: time and memory of its parser grow with their square. Schemas
# have two.
MAX_PARTS = 8
# Strings, quoted keys and comments of TOML. What nothing closes goes on to the end.
QUOTED = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z)|"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?|#[^\n]*',
    re.DOTALL,
)
# A key of more parts. In a value there are no dots outside of strings, but for the one of a decimal.
LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}")

# A number of other bases may have any length, and then no text.
LONG_NUMBER = re.compile(r"0[xob](?:_?[0-9a-fA-F]){65}")

REMEDY = (
    "write [[party]] sections with a name and [[party.attribute]] sections, or {attribute: size}"
)
# Width of the lines of a schema file, and the values of a list in it, each on a line.
WIDTH, LISTED = 120, re.compile(r"(?:^    [^\n]*,\n)+", re.MULTILINE)
T = TypeVar("T")
# A list of sections in a schema file. It may be left out, but not empty.
Sections = Annotated[list[Any], msgspec.Meta(min_length=1)]


def _wrapped(lines: str) -> str:
    """Values of a TOML list, each on a line, on lines that they fill."""
    out = [""]
    for value in (line.strip(" ") for line in lines.removesuffix("\n").split("\n")):
        if len(out[-1]) + len(value) >= WIDTH:
            out.append("")
        out[-1] += f" {value}" if out[-1] else f"    {value}"
    return "\n".join(out) + "\n"


def toml_text(stated: Fields, drafted: bool) -> str:
    """A schema's sections as TOML text.

    A list is written value by value: as many as fit go on a line.
    """
    public = stated["public"]
    if public and not drafted:
        del stated["public"]
    text = LISTED.sub(lambda values: _wrapped(values[0]), tomli_w.dumps(stated))
    return text if public else f"# Inferred from data: for trials, not private.\n{text}"


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the ids and the file of a party are read; see ``ReadOptions``."""

    id_format: Texts = ()
    delimiter: str = ""
    encoding: str = ""
    skip_rows: Annotated[int, msgspec.Meta(ge=0)] = 0
    no_header: bool = False
    columns: Texts = ()


class PartySections(msgspec.Struct, forbid_unknown_fields=True):
    """A party in a schema file.

    Attributes:
        attribute: sections of its attributes, for :func:`.read_attribute`.
        name: name of the party.
        read: how its table is read.
        impossible: sections of combinations of its values, for :meth:`Impossible.from_json`.
        csvw: what CSVW metadata said of its table, and a schema has no word for.
    """

    attribute: Sections
    name: str = ""
    read: Reading = Reading()
    impossible: Sections = []
    csvw: Kept = Kept()


class SchemaSections(msgspec.Struct, forbid_unknown_fields=True):
    """The sections of a schema file.

    Attributes:
        party: the parties.
        public, spent, ids, ids_source, same_people: as in :class:`Schema`.
        impossible: sections of combinations of values of several parties, for
            :meth:`Impossible.from_json`.
        rules: texts for :func:`parse_rule`.
    """

    party: Annotated[list[PartySections], msgspec.Meta(min_length=1)]
    public: bool | msgspec.UnsetType = msgspec.UNSET
    impossible: Sections = []
    rules: Sections = []
    spent: Annotated[tuple[LedgerEntry, ...], msgspec.Meta(min_length=1)] = ()
    ids: str | None = None
    ids_source: str | None = None
    same_people: bool = False

    @classmethod
    def read(cls, data: Any) -> SchemaSections:
        """Read the content of a schema file, a domain ``{attribute: size}``, or metadata of SDV or CSVW.

        A domain is integer codes at one party called "party1".

        Raises:
            SchemaError: an unknown key, or content of another type.
        """
        if isinstance(data, Mapping) and VERSION in data:
            data = sections_of(data)
        if is_csvw(data):
            data = sections_of_csvw(data)
        if isinstance(data, Mapping) and data and all(type(size) is int for size in data.values()):
            attributes = [{"name": name, "codes": size} for name, size in data.items()]
            data = {"party": [{"name": "party1", "attribute": attributes}]}
        return from_json(data, cls, "The schema", REMEDY, SchemaError)


def read_impossible(sections: Iterable[Any], of_whom: str) -> list[Impossible]:
    """The impossible combinations of a schema file, or of one of its parties."""
    out: list[Impossible] = []
    for combination in sections:
        try:
            out.append(Impossible.from_json(combination))
        except SchemaError as error:
            raise SchemaError(f"Impossible combination {len(out) + 1} {of_whom}: {error}") from None
    return out


def read_own_impossible(party: PartySections, names: Collection[str]) -> list[Impossible]:
    """The impossible combinations of a party's section, which name its own attributes alone."""
    out = read_impossible(party.impossible, f"of party {party.name!r}")
    for combination in out:
        if others := [c.attribute for c in combination.conditions if c.attribute not in names]:
            raise SchemaError(
                f"The impossible combination ({combination}) of party {party.name!r} names {others[0]!r}, which it does not hold; "
                "write it outside the party, as [[impossible]]."
            )
    return out


def read_schema(path: AnyPath, make: Callable[[Any], T]) -> T:
    """Read a schema file: JSON if the name ends in .json, else TOML.

    Args:
        path: the file. Values in files beside it become lists.
        make: makes the result from the content.

    Raises:
        SchemaError: the file is missing, or is neither TOML nor JSON, or a file of values cannot be
            read, or it is no schema. The message names the file.
    """
    check(SchemaError, {"path": path}, path=PATH)
    path = Path(path)
    try:
        text = read_bytes(
            path, "schema", SchemaError, MAX_JSON if path.suffix == ".json" else MAX_TOML
        ).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError(f"The schema file {path} cannot be read ({error}).") from None
    try:
        data = json_of(text, distinct) if path.suffix == ".json" else _toml_of(text)
    except (ValueError, RecursionError) as error:
        language = "JSON" if path.suffix == ".json" else "TOML"
        why = "it nests too deeply" if isinstance(error, RecursionError) else error
        raise SchemaError(f"The schema file {path} is not valid {language} ({why}).") from None
    read_lists(data, path)
    try:
        return make(data)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def _toml_of(text: str) -> Any:
    """Parse TOML from an untrusted source.

    Raises:
        ValueError: the text is not TOML, or nests too deeply.
        RecursionError: it nests too deeply.
    """
    bare = QUOTED.sub(lambda found: "" if found[0][0] == "#" else "q", text)
    if LONG_KEY.search(bare):
        raise ValueError(f"a key has more than {MAX_PARTS} parts")
    if LONG_NUMBER.search(bare):
        raise ValueError("a whole number has more than 64 bits")
    return check_depth(tomllib.loads(text))


def distinct(pairs: list[tuple[str, Any]]) -> Fields:
    """Make a JSON object; raise ValueError if a key appears twice."""
    out = dict(pairs)
    if len(out) < len(pairs):
        twice = next(name for name, times in Counter(n for n, _ in pairs).items() if times > 1)
        raise ValueError(f"key {twice!r} appears twice")
    return out
