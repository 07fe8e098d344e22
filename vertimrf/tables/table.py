"""Tables: record ids and integer codes out of files and data frames, and values of the original kind out of codes."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SchemaError, TableError
from ..plan.attribute import MISSING_TEXT, Attribute, Value
from ..plan.calendar import to_number
from ..plan.impossible import Combination
from .arrow import Pieces, Source, open_pieces
from .dropped import NONE, Dropped, Kind, Reason
from .ids import EXAMPLES, Absent, IdKeys, cell_value, digested, format_ids, is_text, repeated, repetition, shown
from .impossible import Broken, breaking
from .read_options import DEFAULT, ReadOptions

__all__ = [
    "Columns",
    "Encoded",
    "Table",
    "align",
    "cell_values",
    "check_same_records",
    "column_numbers",
    "encode_columns",
    "encode_table",
    "one_per_id",
    "warn_of_strangers",
]

LOG = logging.getLogger(__name__)

# Marks for cells without a code.
MISSING, OUTSIDE = -1, -2
# Python reads no longer numbers.
LONGEST_NUMBER = 4300
# Of the text of a row that cannot be read, so much is shown.
SHOWN = 60

Encode = Callable[[pa.ChunkedArray], npt.NDArray[np.int32]]
Watch = Callable[[pa.Table, Sequence[npt.NDArray[np.int32]]], None]


@dataclass(frozen=True, eq=False)
class Table:
    """One party's encoded records.

    Attributes:
        attributes: one per row of ``codes``.
        digests: 64-bit keyed digest of each record's id [shape=(n,), uint64], distinct.
        codes: attribute-major codes [shape=(d, n), uint16, C-contiguous], each below its attribute's size.
        persons: 64-bit keyed digest of the id of each record's person [shape=(n,), uint64]; None where every record is a person.
        dropped: what the table that was read has besides, for its holder's eyes; nothing that leaves is made of it.
    """

    attributes: tuple[Attribute, ...]
    digests: npt.NDArray[np.uint64]
    codes: npt.NDArray[np.uint16]
    persons: npt.NDArray[np.uint64] | None = None
    dropped: Dropped = NONE

    def __post_init__(self) -> None:
        if self.persons is not None and self.persons.shape != self.digests.shape:
            raise TableError(f"A table of {len(self.digests)} records has as many persons, not {len(self.persons)}.")
        shape = (len(self.attributes), len(self.digests))
        if self.codes.shape != shape or self.codes.dtype != np.uint16 or not self.codes.flags.c_contiguous:
            raise TableError(
                f"A table of {shape[0]} attributes and {shape[1]} records needs C-contiguous uint16 codes of that "
                f"shape, not {self.codes.dtype} of {self.codes.shape}."
            )

    def only(self, kept: npt.NDArray[np.bool_]) -> Table:
        """The table with some of its records."""
        persons = None if self.persons is None else self.persons[kept]
        # Row by row: all at once would be copied twice.
        codes = np.empty((len(self.codes), np.count_nonzero(kept)), np.uint16)
        for target, row in zip(codes, self.codes, strict=True):
            target[:] = row[kept]
        return Table(self.attributes, self.digests[kept], codes, persons, self.dropped)

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.digests)


def encode_table(
    source: Source,
    id: str | None,
    attributes: Sequence[Attribute],
    read: ReadOptions = DEFAULT,
    *,
    name: str | None = None,
    keys: IdKeys,
    impossible: Mapping[str, Combination] | None = None,
) -> Table:
    """Encode one party's table; of a file no more than a piece lies in memory, and codes and digests stay.

    Records that do not fit are left out, so that whether anything is released never hangs on one of them. What is left out is
    1-stable: tables that differ in all rows of one id give tables that differ in at most one record. *Proof.* Whether a row fits
    depends on that row alone. Of the rows of one id that fit, :func:`one_per_id` keeps one, chosen by those rows alone, whatever
    their order and whatever the rest of the table. So the result is a union, over ids, of at most one record that depends on the
    rows of that id alone; another set of rows for one id changes no other term.

    Args:
        source: what :func:`vertimrf.tables.arrow.read_arrow` reads.
        id: the column of record ids: text, whole numbers or UUIDs; the number 42 and the text "42" are the same id. None, where
            nobody else's table is to match: every row is a record of its own.
        attributes: the party's part of the schema; the table has these columns and the id, in any order.
        read: how it is read; persons are told apart as ids are.
        name: what to call the table in errors; default the file's path.
        keys: of the digests; those of tables whose ids are to meet are the same.
        impossible: combinations of codes that no record can have (:func:`vertimrf.tables.impossible.ruled_out`).

    Returns:
        The records that fit; ``dropped`` tells of the others. There may be none.

    Raises:
        TableError: no table, no id column, ids of a type that cannot be any, no such format.
        SchemaError: columns that the schema does not describe, or of a type that its values cannot have.
    """
    pieces = open_pieces(source, read)
    columns = Columns(id, tuple(attributes), name or pieces.where, keys, read, impossible or {})
    columns.check(pieces.names)
    encoded = columns.encode(pieces)
    encoded.check()
    return columns.settled(encoded, pieces)


def one_per_id(
    digests: npt.NDArray[np.uint64],
    codes: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.uint16]],
    persons: npt.NDArray[np.uint64] | None,
) -> npt.NDArray[np.int64]:
    """Of records with the same id all but one: that with the smallest codes, compared attribute by attribute.

    Which one stays depends on the records of that id alone: not on their order, and on no other record.

    Args:
        digests: of the records' ids [shape=(n,)].
        codes: gives the codes of some rows [shape=(d, m)].
        persons: digests of the persons' ids [shape=(n,)], which decide between records with the same codes; or None.

    Returns:
        The rows to leave out, increasing.
    """
    twice = repeated(digests)
    if not len(twice):
        return np.empty(0, np.int64)
    rows = np.flatnonzero(np.isin(digests, twice))
    keys = [digests[rows], *codes(rows), *([] if persons is None else [persons[rows]])]
    # The last key counts most; records that agree in all of them are the same record.
    rows = rows[np.lexsort(keys[::-1])]
    again = digests[rows[1:]] == digests[rows[:-1]]
    return np.sort(rows[1:][again])


@dataclass(frozen=True)
class Columns:
    """What is read of a table.

    Attributes:
        id: the column of record ids; None where every row is a record of its own.
        attributes: the schema's part.
        where: names the table in errors.
        keys: of the digests of ids.
        read: how it is read.
        impossible: combinations of codes that no record can have, by what the schema calls them; attributes by their place.
    """

    id: str | None
    attributes: tuple[Attribute, ...]
    where: str
    keys: IdKeys
    read: ReadOptions = DEFAULT
    impossible: Mapping[str, Combination] = field(default_factory=dict)

    @property
    def person(self) -> str | None:
        """The column that says whose a record is, or None."""
        return self.read.person

    @property
    def wanted(self) -> list[str]:
        """Names of all of them, each once."""
        named = (self.id, self.person, *(attribute.name for attribute in self.attributes))
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def ids(self) -> str:
        """Names the id column in errors."""
        return f"{self.where}, id column {self.id!r}"

    @property
    def owners(self) -> str:
        """Names the person column in errors."""
        return f"{self.where}, person column {self.person!r}"

    def check(self, names: Sequence[str]) -> None:
        """A table must have these columns, and no others unless they are ignored.

        Raises:
            TableError, SchemaError: it does not.
        """
        if self.id is not None and self.id not in names:
            raise TableError(f"{self.where} has no id column {self.id!r}; its columns are {some(names)}.")
        if self.person is not None and self.person not in names:
            raise without_person(self.where, self.person, names)
        kept = [name for name in names if name in self.wanted] if self.read.ignore_extra else names
        check_columns(kept, self.id, self.attributes, self.where, self.person)

    def settled(self, encoded: Encoded, pieces: Pieces) -> Table:
        """The records that fit, one per id.

        Args:
            found: what :meth:`encode` made of the table.
            pieces: the table, for examples of ids that several records have.
        """
        codes = encoded.joined_codes()
        out = Table(self.attributes, encoded.digests, codes, encoded.persons, Dropped(encoded.dropped, encoded.reasons(self)))
        again = one_per_id(encoded.digests, lambda rows: codes[:, rows], encoded.persons)
        # Without a column of ids no two rows have the same.
        if self.id is None or not len(again):
            return out
        examples = [shown(cell) for cell in pieces.cells(self.id, encoded.original(again[:EXAMPLES]).tolist())]
        kept = np.ones(out.records, bool)
        kept[again] = False
        return replace(out.only(kept), dropped=out.dropped.also(len(again), self.repeated(len(again), examples)))

    def repeated(self, count: int, examples: Sequence[str]) -> Reason:
        """The reason of so many records that have an id which another has, such as these."""
        return Reason("repeated id", str(self.id), count, repetition(count, examples, self.ids))

    def encode(self, pieces: Pieces, watch: Watch | None = None) -> Encoded:
        """Encode piece after piece; records that do not fit are left out, and counted.

        Args:
            pieces: a table with these columns.
            watch: is shown every piece, with the codes of all its records; those below 0 are of cells that have none.

        Raises:
            TableError: ids of a type that cannot be any, no such id format; the file cannot be read to its end.
        """
        encoders = [column_encoder(attribute, self.where) for attribute in self.attributes]
        uncoded = [Uncoded()] * len(encoders)
        codes: list[list[npt.NDArray[np.unsignedinteger]]] = [[] for _ in encoders]
        digests: list[npt.NDArray[np.uint64]] = []
        persons: list[npt.NDArray[np.uint64]] = []
        left_out: list[npt.NDArray[np.int64]] = []
        broken = [Broken()] * len(self.impossible)
        absent, ownerless, records, unreadable = Absent(), Absent(), 0, Ragged()

        def report(text: str, cells: int) -> None:
            nonlocal unreadable
            unreadable = unreadable.then(Ragged(1, text[:SHOWN]))

        for piece in pieces.read(self.wanted, report):
            fits = np.ones(piece.num_rows, bool)
            ids, owners, rows = np.arange(records, records + piece.num_rows, dtype=np.uint64), None, []
            if self.id is not None:
                ids, present = digested(self.keys.records, format_ids(piece[self.id], self.read.id_format, self.ids), self.ids)
                absent = absent.then(Absent.of(present, records))
                fits &= present
            if self.person is not None:
                owners, present = digested(self.keys.persons, piece[self.person], self.owners)
                ownerless = ownerless.then(Absent.of(present, records))
                fits &= present
            for i, (attribute, encoder) in enumerate(zip(self.attributes, encoders, strict=True)):
                column_codes, wrong = coded(attribute, encoder, piece, self.id, records)
                uncoded[i] = uncoded[i].then(wrong)
                rows.append(column_codes)
                if wrong != Uncoded():
                    fits &= column_codes >= 0
            if watch is not None:
                watch(piece, rows)
            fitting = fits.copy()
            for i, combination in enumerate(self.impossible.values()):
                marked = fitting & breaking(rows, combination)
                broken[i] = broken[i].then(Broken.of(marked, records))
                fits &= ~marked
            every = bool(fits.all())
            digests.append(ids if every else ids[fits])
            if owners is not None:
                persons.append(owners if every else owners[fits])
            for parts, attribute, row in zip(codes, self.attributes, rows, strict=True):
                # Narrow while they wait to be joined.
                parts.append((row if every else row[fits]).astype(np.uint8 if attribute.size <= 1 << 8 else np.uint16))
            if not every:
                left_out.append(records + np.flatnonzero(~fits))
            records += piece.num_rows
        owned = None if self.person is None else joined(persons, np.uint64)
        return Encoded(
            joined(digests, np.uint64), owned, codes, joined(left_out, np.int64), records, unreadable, absent, ownerless,
            tuple(uncoded), tuple(broken),
        )  # fmt: skip


@dataclass(frozen=True)
class Ragged:
    """Rows of a CSV file that have not as many cells as its header.

    Attributes:
        count: how many.
        first: the first one's text, at most 60 characters.
    """

    count: int = 0
    first: str = ""

    def then(self, later: Ragged) -> Ragged:
        """These, and later ones."""
        return Ragged(self.count + later.count, self.first if self.count else later.first)

    def reasons(self, where: str) -> list[Reason]:
        """Why such rows are dropped; ``where`` names the table."""
        if not self.count:
            return []
        several = self.count > 1
        sentence = (
            f"{where}: {self.count:,} row{'s have' if several else ' has'} more or fewer cells than the header "
            f"({'the first is ' if several else ''}{self.first!r}); correct {'them' if several else 'it'}."
        )
        return [Reason("unreadable", "", self.count, sentence)]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Records that fit, as they were encoded, and those that do not.

    Attributes:
        digests: of their ids [shape=(kept,), uint64].
        persons: of their persons' ids, or None.
        codes: per attribute, pieces that follow each other; given away by :meth:`joined_codes`.
        left: rows that were left out, increasing [shape=(left,), int64].
        rows: how many were read, these included.
        unreadable: rows that could not be read at all.
        absent: records without an id.
        ownerless: records without a person.
        uncoded: per attribute, cells that have no code.
        broken: per impossible combination, records that have it and nothing else wrong with them.
    """

    digests: npt.NDArray[np.uint64]
    persons: npt.NDArray[np.uint64] | None
    codes: list[list[npt.NDArray[np.unsignedinteger]]]
    left_out: npt.NDArray[np.int64]
    rows: int
    unreadable: Ragged
    absent: Absent
    ownerless: Absent
    uncoded: tuple[Uncoded, ...]
    broken: tuple[Broken, ...]

    @property
    def dropped(self) -> int:
        """How many records were left out."""
        return len(self.left_out) + self.unreadable.count

    def check(self) -> None:
        """No column may be of a type that its attribute cannot have.

        Raises:
            SchemaError: one is.
        """
        for uncoded in self.uncoded:
            if uncoded.wrong:
                raise SchemaError(uncoded.wrong)

    def reasons(self, columns: Columns) -> tuple[Reason, ...]:
        """Why records were left out."""
        absences: tuple[tuple[Kind, str | None, Absent, str], ...] = (
            ("no person", columns.person, self.ownerless, columns.owners),
            ("no id", columns.id, self.absent, columns.ids),
        )
        return (
            *self.unreadable.reasons(columns.where),
            *(Reason(kind, str(of), rows.count, rows.sentence(where)) for kind, of, rows, where in absences if rows.count),
            *itertools.chain(*map(Uncoded.reasons, self.uncoded, columns.attributes, itertools.repeat(columns.where))),
            *itertools.chain(*map(Broken.reasons, self.broken, columns.impossible, itertools.repeat(columns.where))),
        )

    def original(self, kept: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows, in the table that was read, of records by their place among those that fit [shape=(n,)]."""
        fits = np.ones(self.rows, bool)
        fits[self.left_out] = False
        return np.flatnonzero(fits)[kept]

    def then(self, later: Encoded) -> Encoded:
        """What is wrong with these records and those of a later partition; without the records themselves."""
        return Encoded(
            self.digests[:0],
            None,
            [],
            np.concatenate([self.left_out, self.rows + later.left_out]),
            self.rows + later.rows,
            self.unreadable.then(later.unreadable),
            self.absent.then(later.absent, self.rows),
            self.ownerless.then(later.ownerless, self.rows),
            tuple(earlier.then(more) for earlier, more in zip(self.uncoded, later.uncoded, strict=True)),
            tuple(earlier.then(more, self.rows) for earlier, more in zip(self.broken, later.broken, strict=True)),
        )

    def joined_codes(self) -> npt.NDArray[np.uint16]:
        """All codes [shape=(attributes, kept), uint16, C-contiguous]; once, for every piece is let go of on the way."""
        out = np.empty((len(self.codes), len(self.digests)), np.uint16)
        for row, pieces in zip(out, self.codes, strict=True):
            first = 0
            for piece in pieces:
                row[first : first + len(piece)] = piece
                first += len(piece)
            pieces.clear()
        return out


def joined(pieces: list[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    """One array of several, or of none."""
    return np.concatenate(pieces) if pieces else np.empty(0, kind)


def without_person(where: str, person: str, names: Sequence[str]) -> TableError:
    """The error of a table that lacks the person column."""
    return TableError(f"{where} has no person column {person!r}; its columns are {some(names)}.")


def check_columns(
    names: Sequence[str], id: str | None, attributes: Sequence[Attribute], where: str, person: str | None = None
) -> None:
    """The columns besides the ids must be those of the schema."""
    wanted = [attribute.name for attribute in attributes]
    for what, column in (("id", id), ("person", person)):
        if column in wanted:
            raise SchemaError(f"The {what} column {column!r} is an attribute of the schema; remove it there.")
    if absent := [name for name in wanted if name not in names]:
        raise SchemaError(f"{where} lacks the column {some(absent)} of the schema; add it, or change the schema.")
    if extra := [name for name in names if name not in wanted and name not in (id, person)]:
        raise SchemaError(f"{where} has the column {some(extra)}, not in the schema; remove it, or change the schema.")


def encode_columns(
    table: pa.Table, attributes: Sequence[Attribute], where: str, id: str | None = None
) -> npt.NDArray[np.uint16]:
    """Encode columns of an Arrow table.

    Args:
        table: has a column for each attribute.
        attributes: what to encode.
        where: names the table in errors.
        id: the id column, for examples in errors; None names records by row number, from 1.

    Returns:
        Codes [shape=(len(attributes), n), uint16, C-contiguous].

    Raises:
        SchemaError: a value outside the schema, or missing values that it does not allow.
    """
    codes = np.empty((len(attributes), table.num_rows), np.uint16)
    for attribute, row in zip(attributes, codes, strict=True):
        row[:], uncoded = coded(attribute, column_encoder(attribute, where), table, id)
        if uncoded.wrong:
            raise SchemaError(uncoded.wrong)
        Dropped(0, tuple(uncoded.reasons(attribute, where))).refuse()
    return codes


@dataclass(frozen=True)
class Uncoded:
    """Cells of a column that have no code.

    Attributes:
        missing: how many have no value where the schema allows for none.
        first_missing: the record of the first.
        outside: how many lie outside the schema.
        first_outside: the record of the first.
        value: what the first holds.
        wrong: what is wrong with the column as such.
    """

    missing: int = 0
    first_missing: str = ""
    outside: int = 0
    first_outside: str = ""
    value: str = ""
    wrong: str = ""

    def then(self, later: Uncoded) -> Uncoded:
        """These, and those of a later piece."""
        return Uncoded(
            self.missing + later.missing,
            self.first_missing or later.first_missing,
            self.outside + later.outside,
            self.first_outside or later.first_outside,
            self.value or later.value,
            self.wrong or later.wrong,
        )

    def reasons(self, attribute: Attribute, where: str) -> list[Reason]:
        """Why records with such cells are dropped; ``where`` names the table."""
        out, name = [], attribute.name
        if self.missing:
            sentence = (
                f"{where}: column {name!r} has {in_records(self.missing, self.first_missing)} without a value; "
                "set missing = true for it in the schema, or remove them at every party."
            )
            out.append(Reason("missing", name, self.missing, sentence))
        if self.outside:
            sentence = (
                f"{where}: column {name!r} holds {self.value}, outside the schema, "
                f"in {in_records(self.outside, self.first_outside)}; {remedy(attribute)}."
            )
            out.append(Reason("outside", name, self.outside, sentence))
        return out


def coded(
    attribute: Attribute, encoder: Encode, piece: pa.Table, id: str | None, before: int = 0
) -> tuple[npt.NDArray[np.int32], Uncoded]:
    """Codes of a piece of a column [shape=(n,)], and which cells have none: their codes are below 0.

    Args:
        attribute: its domain.
        encoder: of :func:`column_encoder`.
        piece: has the column.
        id: the id column, for examples in errors; None names records by row number.
        before: rows before the piece's first.
    """
    try:
        codes = encoder(piece[attribute.name])
    except SchemaError as error:
        return np.zeros(piece.num_rows, np.int32), Uncoded(wrong=str(error))

    def first(marked: npt.NDArray[np.bool_]) -> str:
        row = int(np.argmax(marked))
        return f"row {before + row + 1}" if id is None else f"id {shown(piece[id][row])}"

    out = Uncoded()
    # One look at the least code, where all cells have one.
    if codes.size and codes.min() < 0:
        missing, outside = codes == MISSING, codes == OUTSIDE
        if attribute.missing:
            codes[missing] = attribute.size - 1
        elif missing.any():
            out = Uncoded(missing=int(missing.sum()), first_missing=first(missing))
        if outside.any():
            value = shown(piece[attribute.name][int(np.argmax(outside))])
            out = replace(out, outside=int(outside.sum()), first_outside=first(outside), value=value)
    return codes, out


def in_records(count: int, first: str) -> str:
    """How many records, and the first of them."""
    return f"{count:,} record{'s' if count > 1 else ''} ({'the first is ' if count > 1 else ''}{first})"


def remedy(attribute: Attribute) -> str:
    """What to do about values outside an attribute's domain."""
    if attribute.kind == "categorical":
        return "correct the values, list them in the schema, or give it an 'other'"
    if attribute.calendar is not None:
        low_text, high_text = attribute.edge_text(0), attribute.edge_text(len(attribute.edges) - 1)
        return f"the bounds are {low_text} to {high_text}: correct the values, widen the bounds, or set clamp = true"
    if attribute.kind == "integer":
        return f"the codes are 0 to {attribute.codes - 1}: correct the values or the schema"
    low, high = attribute.edges[0], attribute.edges[-1]
    return f"the bounds are {low:g} to {high:g}: correct the values, widen the bounds, or set clamp = true"


def some(names: Sequence[str]) -> str:
    """Names for an error, at most five."""
    return ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def by_dictionary(column: pa.ChunkedArray, where: str) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """A column's distinct values, and per cell the index of its value, or -1 if null [shape=(n,)]."""
    if not pa.types.is_dictionary(column.type):
        try:
            column = column.dictionary_encode()
        except pa.ArrowException:
            raise SchemaError(f"{where} holds {column.type} cells, which are no categories; leave it out.") from None
    whole = column.unify_dictionaries().combine_chunks()
    chunk = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    indices = chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return chunk.dictionary, indices


def column_encoder(attribute: Attribute, where: str) -> Encode:
    """What turns pieces of an attribute's column into codes, or MISSING or OUTSIDE [shape=(n,)]; ``where`` names the table."""
    where = f"{where}: column {attribute.name!r}"
    if attribute.kind != "categorical":
        return lambda column: number_codes(attribute, column, where)
    sample = attribute.values[0]
    code_of = {canonical(value, value): code for code, value in enumerate(attribute.values)}
    other = OUTSIDE if attribute.other is None else code_of[canonical(attribute.other, sample)]

    def encode(column: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        distinct, indices = by_dictionary(column, where)
        codes = np.empty(len(distinct) + 1, np.int32)
        codes[-1] = MISSING  # the index -1 of nulls
        for i, value in enumerate(cell_values(distinct)):
            code = code_of.get(canonical(value, sample))
            if code is None:
                code = MISSING if value is None or value != value or value in MISSING_TEXT else other
            codes[i] = code
        return codes[indices]

    return encode


def cell_values(cells: pa.Array) -> list[Any]:
    """Values of cells; those that Python has no such value for as their text."""
    try:
        values: list[Any] = cells.to_pylist()
        return values
    except (OverflowError, ValueError):
        return [cell_value(cell) for cell in cells]


def canonical(value: Any, sample: Value) -> str:
    """Text that equal values share, however a file or frame stores them; ``sample`` is a value of the declared type."""
    if isinstance(value, bool):
        return str(value).lower() if isinstance(sample, bool | str) else str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value)
    if isinstance(sample, float) and isinstance(value, Decimal):
        return canonical(float(value), sample)
    if isinstance(value, str) and not isinstance(sample, str):
        if isinstance(sample, bool):
            return text.lower()
        if text.removeprefix("-").isdecimal() and len(text) <= LONGEST_NUMBER:
            return str(int(text))
        # Frames turn whole numbers with gaps into decimals: 3.0 is 3.
        number = parse(text)
        if number.is_integer():
            return str(int(number))
        return str(number) if isinstance(sample, float) and number == number else text
    return text


def parse(text: str) -> float:
    """The number that a text spells, or NaN."""
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


def number_codes(attribute: Attribute, column: pa.ChunkedArray, where: str) -> npt.NDArray[np.int32]:
    """Codes of an integer or numeric column, or MISSING or OUTSIDE [shape=(n,)]."""
    numbers, missing = column_numbers(attribute, column, where)
    with np.errstate(invalid="ignore"):
        if attribute.kind == "integer":
            fits = (numbers >= 0) & (numbers < attribute.codes) & (numbers == np.floor(numbers))
            codes = np.where(fits, numbers, OUTSIDE).astype(np.int32)
        else:
            edges = np.array(attribute.edges)
            if attribute.clamp:
                numbers = np.clip(numbers, edges[0], edges[-1])
            codes = np.searchsorted(edges, numbers, side="right").astype(np.int32) - 1
            codes[numbers == edges[-1]] = len(edges) - 2
            codes[~((numbers >= edges[0]) & (numbers <= edges[-1]))] = OUTSIDE
    codes[missing] = MISSING
    return codes


def column_numbers(
    attribute: Attribute, column: pa.ChunkedArray, where: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """An integer or numeric column as numbers, NaN where there is none, and which cells are missing; other NaN are no numbers.

    Raises:
        SchemaError: cells of a type that the attribute does not have.
    """
    return (read_numbers if attribute.calendar is None else read_instants)(attribute, column, where)


def read_numbers(
    attribute: Attribute, column: pa.ChunkedArray, where: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A column's numbers, NaN where there is none, and which cells are missing; the other NaN are not numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return read_texts(column.cast(pa.large_string()))
    try:
        numbers = column.cast(pa.float64(), safe=False).combine_chunks()
    except pa.ArrowException:
        raise SchemaError(
            f"{where} holds {column.type} cells, but the schema says {attribute.kind}; "
            "convert them to numbers, or list the values in the schema."
        ) from None
    values = numbers.to_numpy(zero_copy_only=False)
    return values, np.isnan(values)


def read_instants(
    attribute: Attribute, column: pa.ChunkedArray, where: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A column's dates or times as numbers, NaN where there is none, and which cells are missing."""
    calendar, zone = attribute.calendar, attribute.timezone
    assert calendar is not None
    if is_text(column.type):
        distinct, indices = by_dictionary(column, where)
        numbers = np.full(len(distinct) + 1, np.nan)
        absent = np.ones(len(distinct) + 1, bool)
        for i, text in enumerate(distinct.to_pylist()):
            absent[i] = text is None or text in MISSING_TEXT
            with contextlib.suppress(ValueError, OverflowError):
                numbers[i] = np.nan if absent[i] else to_number(calendar, text, zone)
        return numbers[indices], absent[indices]
    declared = calendar if calendar != "timestamp" else f"timestamp {f'of {zone}' if zone else 'without a time zone'}"
    wrong = SchemaError(f"{where} holds {column.type} cells, but the schema says {declared}; convert them, or change the schema.")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), np.ones(len(column), bool)
    try:
        if calendar == "time":
            if not pa.types.is_time(kind):
                raise wrong
            seconds = column.cast(pa.time64("us"), safe=False).cast(pa.int64())
        else:
            if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
                raise wrong
            aware = pa.types.is_timestamp(kind) and kind.tz is not None
            if aware and zone is None:
                raise wrong
            moments = column.cast(pa.timestamp("us", kind.tz if aware else None), safe=False)
            if zone is not None and not aware:
                # An hour that the clocks show twice is taken for the first, one that they skip for the one after.
                moments = pc.assume_timezone(moments, zone, ambiguous="earliest", nonexistent="latest")
            seconds = moments.cast(pa.int64())
    except pa.ArrowException:
        raise wrong from None
    missing = seconds.is_null().to_numpy(zero_copy_only=False)
    values = pc.fill_null(seconds, 0).to_numpy() / (86_400e6 if calendar == "date" else 1e6)
    values[missing] = np.nan
    return values, missing


def read_texts(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The numbers of a text column, as :func:`read_numbers`."""
    absent = pc.or_(column.is_null(), pc.is_in(column, value_set=pa.array(MISSING_TEXT, column.type))).to_numpy()
    present = column.filter(pa.array(~absent))
    numbers = np.full(len(column), np.nan)
    try:
        numbers[~absent] = present.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        # Some cell is no number; one by one shows which.
        numbers[~absent] = [parse(text) for text in present.to_pylist()]
    return numbers, absent


def check_same_records(tables: Sequence[Table], names: Sequence[str] | None = None) -> None:
    """Check that all tables hold the same ids; their order does not matter.

    Args:
        tables: one per party.
        names: what to call them in the error; default "table 1", "table 2", ...

    Raises:
        TableError: with the counts of ids that one table has and another lacks.
    """
    names = names or [f"table {i + 1}" for i in range(len(tables))]
    first = np.sort(tables[0].digests)
    for name, table in zip(names[1:], tables[1:], strict=True):
        if not np.array_equal(first, np.sort(table.digests)):
            lacks = len(np.setdiff1d(first, table.digests, assume_unique=True))
            adds = len(np.setdiff1d(table.digests, first, assume_unique=True))
            raise TableError(
                f"The parties hold different records: {name} lacks {lacks:,} of the {len(first):,} ids of {names[0]} "
                f"and has {adds:,} that {names[0]} lacks; keep the common ones at every party."
            )


def warn_of_strangers(tables: Sequence[Table], names: Sequence[str]) -> None:
    """Log a warning for every two tables that have no id in common; no error, for that may hang on one record."""
    for (name, table), (other, its) in itertools.combinations(zip(names, tables, strict=True), 2):
        if not np.isin(table.digests, its.digests).any():
            LOG.warning("%s and %s have no id in common: they write ids differently, or hold other people.", name, other)


def align(tables: Sequence[Table], names: Sequence[str] | None = None) -> npt.NDArray[np.uint16]:
    """Join tables by id; for trials and evaluation, where one machine sees all.

    Returns:
        Codes of all attributes, table after table, records as in the first [shape=(d, n), uint16, C-contiguous].

    Raises:
        TableError: the tables hold different ids.
    """
    check_same_records(tables, names)
    first = tables[0]
    rank = np.argsort(np.argsort(first.digests))
    codes = [first.codes, *(table.codes[:, np.argsort(table.digests)[rank]] for table in tables[1:])]
    return np.concatenate(codes)
