"""Columns of one party's tables, found by name and encoded piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..arrays import Bytes, Codes, Flags, Int32s, Integers, Texts, Words
from ..columns.column import Attribute
from ..columns.text import MISSING, OUTSIDE
from ..errors import SchemaError, TableError, VertiMRFError, some
from ..kernels.jit import for_each
from ..plan.impossible import Combination
from .arrow import Pieces, header_doubt
from .dropped import EXAMPLES, SHOWN, UNREADABLE, Dropped, Kind, Reason, Tally
from .ids import (
    IdKeys,
    digested,
    few_ids,
    format_ids,
    named_ids,
    of_persons,
    only_in,
    places_of,
    shown,
    without_id,
)
from .impossible import possible
from .read_options import DEFAULT, ReadOptions
from .sources import Source, open_pieces

if TYPE_CHECKING:
    from ..columns.column import Encode
from .table import (
    CELL_PROBLEMS,
    LOG,
    Problems,
    Table,
    Watch,
    coded,
    one_per_id,
    rows_again,
    uncodable,
    uncoded,
)


@dataclass(frozen=True)
class Columns:
    """The columns to read from a table, and how.

    Attributes:
        id: column of record ids; None if every row is a separate record.
        attributes: the party's part of the schema, then finer cells of some of these.
        where: name of the table, for errors.
        keys: keys of the digests.
        read: how to read the table.
        impossible: combinations of codes that no record can have, by their text in the schema;
            attributes are rows.
    """

    id: str | None
    attributes: tuple[Attribute, ...]
    where: str
    keys: IdKeys
    read: ReadOptions = DEFAULT
    impossible: Mapping[str, Sequence[Combination]] = field(default_factory=dict)

    @property
    def person(self) -> str | None:
        """Column of person ids, or None."""
        return self.read.person

    @property
    def own(self) -> tuple[Attribute, ...]:
        """The party's part of the schema, in which every name is once."""
        return self.attributes[: len({attribute.name for attribute in self.attributes})]

    @property
    def wanted(self) -> list[str]:
        """Names of all columns to read, without repetitions."""
        named = (self.id, self.person, *(attribute.name for attribute in self.own))
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def ids(self) -> str:
        """Name of the id column in errors."""
        return f"{self.where}, id column {self.id!r}"

    @property
    def owners(self) -> str:
        """Name of the person column in errors."""
        return f"{self.where}, person column {self.person!r}"

    def check(self, names: Sequence[str]) -> None:
        """Check that a table has these columns.

        Raises:
            TableError, SchemaError: a column is missing.
        """
        for error in self.errors(names):
            raise error

    def errors(self, names: Sequence[str]) -> Iterator[VertiMRFError]:
        """The errors about missing columns of a table with these names."""
        wanted = [attribute.name for attribute in self.own]
        for what, column in (("id", self.id), ("person", self.person)):
            if column is not None and column not in names:
                yield without_column(self.where, what, column, names)
            if column in wanted:
                yield SchemaError(
                    f"The {what} column {column!r} is an attribute of the schema; remove it there."
                )
        try:
            check_present(wanted, names, self.where)
        except SchemaError as error:
            yield error

    @property
    def possible_problems(self) -> list[tuple[Kind, str]]:
        """Kind and column, or combination, of every problem that a record may have.

        They are in the order in which reasons are given.
        """
        return [
            *(("unreadable", why) for why in UNREADABLE),
            ("no person", self.person or ""),
            ("no id", self.id or ""),
            *((kind, a.name) for a in self.own for kind in CELL_PROBLEMS),
            *(("impossible", combination) for combination in self.impossible),
            ("repeated id", self.id or ""),
        ]

    def settled(self, encoded: Encoded, pieces: Pieces) -> Table:
        """The records that fit, each once.

        Args:
            encoded: from :meth:`encode`.
            pieces: the table, for examples of repeated ids.
        """
        codes, digests, persons = encoded.joined_codes(), encoded.digests, encoded.persons
        if self.id is None and persons is not None:
            # A number of the row would depend on other persons' rows.
            places = places_of(persons).astype(np.uint64)
            digests = of_persons(self.keys.pairs, persons, places)
        out = Table(
            self.attributes,
            digests,
            codes,
            persons,
            Dropped(encoded.dropped, encoded.reasons(self)),
            only_in(encoded.blanks, digests),
        )
        again = one_per_id(digests, codes)
        before = encoded.repeats
        count = before.count + len(again)
        # Without an id column, ids do not repeat.
        if self.id is None or not count:
            return out
        rows = sorted([*before.rows, *encoded.original(again[:EXAMPLES]).tolist()])[:EXAMPLES]
        examples = [shown(cell) for cell in pieces.cells(self.id, rows)]
        reason = self.repeated(count, out.records + before.count, examples)
        kept = np.ones(out.records, bool)
        kept[again] = False
        return replace(out.only(kept), dropped=out.dropped.also(len(again), reason))

    def repeated(self, count: int, records: int, examples: Sequence[str]) -> Reason:
        """The reason for dropping ``count`` of ``records`` whose id another has, with examples."""
        whose = "" if self.person is None else " of the same person"
        sentence = few_ids(records - count, records, self.ids) or (
            f"{self.ids}: {count:,} record{'s repeat' if count > 1 else ' repeats'} an id that another{whose} has "
            f"(such as {', '.join(dict.fromkeys(examples))}); keep one record per id."
        )
        return Reason("repeated id", str(self.id), count, sentence)

    def reason(
        self, kind: Kind, what: str, problem: Tally, wrong: Mapping[str, str] = MappingProxyType({})
    ) -> Reason:
        """The reason for dropping the records that have a problem.

        Args:
            kind: kind of problem.
            what: the column, the impossible combination in words, or what unreadable rows have.
            problem: the records, at least one.
            wrong: by column, an error about its type.
        """
        several = problem.count > 1
        match kind:
            case "no id" if self.ids in wrong:
                sentence = wrong[self.ids]
            case "no person" if self.owners in wrong:
                sentence = wrong[self.owners]
            case "outside" if what in wrong:
                sentence = wrong[what]
            case "unreadable":
                sentence = (
                    f"{self.where}: {problem.count:,} row{'s have' if several else ' has'} {what} "
                    f"({'the first is ' * several}{problem.value!r}); correct {'them' if several else 'it'}."
                )
            case "no id":
                sentence = without_id(problem, self.ids)
            case "no person":
                sentence = without_id(problem, self.owners)
            case "impossible":
                sentence = (
                    f"{self.where}: {problem.records} {'have' if several else 'has'} what the schema calls impossible: "
                    f"{what}; correct the record{'s' * several}, or leave the combination out of the schema."
                )
            case _:
                attribute = next(a for a in self.attributes if a.name == what)
                sentence = uncoded(kind, attribute, self.where, problem)
        return Reason(kind, what, problem.count, sentence)

    def _digested(
        self, key: bytes, column: pa.ChunkedArray, where: str, wrong: dict[str, str]
    ) -> tuple[Words, Flags]:
        """Digests of normalised ids, and which rows have one [both shape=(n,)].

        In a column of a type that cannot hold ids no row has one.
        """
        try:
            return digested(key, format_ids(column, self.read.id_format, where), where)
        except TableError as error:
            wrong.setdefault(where, str(error))
            return np.zeros(len(column), np.uint64), np.zeros(len(column), bool)

    def _identified(
        self,
        piece: pa.Table,
        before: int,
        add: Callable[[Kind, str, Tally], None],
        wrong: dict[str, str],
    ) -> tuple[Words, Words | None, Flags, Flags]:
        """Digests of the records and persons of a piece.

        Args:
            piece: the piece.
            before: number of rows before it, which number records without an id column.
            add: called with the kind of problem, the column, and the records that have it.
            wrong: gets an error for a column of a type that cannot hold ids.

        Returns:
            Digests of the records, and of the persons or None [both shape=(n,), uint64]; whether a
            record has an id, and whether it fits so far [both shape=(n,), bool].
        """
        fits, present = np.ones(piece.num_rows, bool), np.zeros(piece.num_rows, bool)
        ids, owners = np.arange(before, before + piece.num_rows, dtype=np.uint64), None
        if self.id is not None:
            ids, present = self._digested(self.keys.records, piece[self.id], self.ids, wrong)
            add("no id", self.id, Tally.of(~present, before))
            fits &= present
        if self.person is not None:
            owners, owned = self._digested(
                self.keys.persons, piece[self.person], self.owners, wrong
            )
            add("no person", self.person, Tally.of(~owned, before))
            fits &= owned
            if self.id is not None:
                ids, present = of_persons(self.keys.pairs, owners, ids), present & owned
        return ids, owners, present, fits

    def _encoders(self) -> list[tuple[Attribute, Encode, Int32s | None]]:
        """By column, how its cells are encoded; if in finer cells, also the code that each is in."""
        finer = {a.name: a for a in self.attributes[len(self.own) :]}
        domains = [(finer.get(a.name, a), a) for a in self.own]
        return [
            (
                domain,
                domain.encoder(f"{self.where}: column {a.name!r}"),
                None if domain is a else _within(a, domain),
            )
            for domain, a in domains
        ]

    def _coded(
        self,
        encoders: Sequence[tuple[Attribute, Encode, Any]],
        piece: pa.Table,
        before: int,
        wrong: dict[str, str],
    ) -> list[tuple[Int32s, dict[Kind, Tally]]]:
        """As :func:`coded`, for all columns."""

        def one(i: int) -> tuple[Int32s, dict[Kind, Tally]]:
            attribute, encode, _ = encoders[i]
            try:
                return coded(attribute, encode, piece, self.id, before)
            except SchemaError as error:
                wrong.setdefault(attribute.name, str(error))
                return uncodable(attribute, piece, self.id, before)

        return for_each(len(encoders), one)

    def encode(self, pieces: Pieces, watch: Watch | None = None) -> Encoded:
        """Encode a table piece by piece. Records that do not fit are left out and counted.

        Args:
            pieces: a table with these columns.
            watch: called with every piece and the codes of all its records; codes below 0 mark
                cells without a code.

        Raises:
            TableError: the file cannot be read to its end.
        """
        encoders = self._encoders()
        codes: list[list[npt.NDArray[np.unsignedinteger]]] = [[] for _ in self.attributes]
        digests: list[Words] = []
        persons: list[Words] = []
        kept: list[tuple[int, Bytes]] = []
        blanks: list[Words] = []
        problems: Problems = {key: Tally() for key in self.possible_problems}
        wrong: dict[str, str] = {}
        records = 0

        def add(kind: Kind, what: str | None, problem: Tally) -> None:
            problems[kind, what or ""] = problems[kind, what or ""].then(problem)

        def report(why: str, row: str, count: int, read: pa.Table | None = None) -> None:
            add("unreadable", why, Tally(count, value=row[:SHOWN]))
            # Such a row has an id, though no cells.
            names = [] if read is None else read.column_names
            if read is not None and self.person is None and self.id in names:
                of_rows, present = self._digested(self.keys.records, read[self.id], self.ids, wrong)
                blanks.append(np.unique(of_rows[present]))

        for piece in pieces.read(self.wanted, report):
            ids, owners, present, fits = self._identified(piece, records, add, wrong)
            rows: list[Int32s] = []
            inside: list[Int32s] = []
            for (attribute, _, within), (column_codes, without) in zip(
                encoders, self._coded(encoders, piece, records, wrong), strict=True
            ):
                if within is not None:
                    inside.append(column_codes)
                    column_codes = within[column_codes]
                rows.append(column_codes)
                for kind, problem in without.items():
                    add(kind, attribute.name, problem)
                    fits &= column_codes >= 0
            rows += inside
            if watch is not None:
                watch(piece, rows)
            broken = {text: fits & ~possible(rows, c) for text, c in self.impossible.items()}
            for text, marked in broken.items():
                add("impossible", text, Tally.of(marked, records))
                fits &= ~marked
            # Of a piece, an id takes the memory of one record, however often a file repeats it.
            if self.id is not None:
                again = rows_again(ids, rows, fits)
                fits[again] = False
                add("repeated id", self.id, Tally.at(records + again))
            every = bool(fits.all())
            digests.append(ids if every else ids[fits])
            if owners is not None:
                persons.append(owners if every else owners[fits])
            for parts, attribute, row in zip(codes, self.attributes, rows, strict=True):
                # Codes wait to be joined in the narrowest type.
                narrow = np.uint8 if attribute.size <= 1 << 8 else np.uint16
                parts.append((row if every else row[fits]).astype(narrow))
            kept.append((piece.num_rows, np.packbits(fits)))
            blanks.append(np.unique(ids[present & ~fits]))
            records += piece.num_rows
        return Encoded(
            joined(digests, np.uint64),
            None if self.person is None else joined(persons, np.uint64),
            codes,
            tuple(kept),
            joined(blanks, np.uint64),
            records,
            problems,
            wrong,
            tuple(name for name in pieces.names if name not in self.wanted),
        )


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded records that fit, and a description of those that do not.

    Attributes:
        digests: digests of the records; numbers of the rows without an id column
            [shape=(kept,), uint64].
        persons: digests of the persons' ids [shape=(kept,), uint64], or None.
        codes: consecutive pieces of the codes, per attribute; emptied by :meth:`joined_codes`.
        kept: by piece, the number of rows read, and a bit for each: whether it fits.
        blanks: digests of those that do not fit and have one [shape=(b,), uint64].
        rows: number of rows read.
        problems: records left out; those of impossible combinations have no other problem, and
            those that repeat an id of their piece have none.
        wrong: by column, an error about its type, for which records are left out.
        extra: columns outside the schema, which are left out.
    """

    digests: Words
    persons: Words | None
    codes: list[list[npt.NDArray[np.unsignedinteger]]]
    kept: tuple[tuple[int, Bytes], ...]
    blanks: Words
    rows: int
    problems: Problems
    wrong: Mapping[str, str]
    extra: Texts

    @property
    def dropped(self) -> int:
        """Number of records left out."""
        unread = (self.problems["unreadable", why].count for why in UNREADABLE)
        fit = (int(np.unpackbits(bits, count=rows).sum()) for rows, bits in self.kept)
        return self.rows - sum(fit) + sum(unread)

    def name_extra(self, where: str) -> None:
        """Name columns outside the schema in the log; ``where`` names the table."""
        for sentence in extra_columns(self.extra, where):
            LOG.warning("%s", sentence)

    def reasons(self, columns: Columns) -> tuple[Reason, ...]:
        """Why records were left out."""
        return tuple(
            columns.reason(kind, what, problem, self.wrong)
            for (kind, what), problem in self.problems.items()
            if problem.count and kind != "repeated id"
        )

    @property
    def repeats(self) -> Tally:
        """Records that repeat an id of their piece; other repeats are found later."""
        (problem,) = (each for (kind, _), each in self.problems.items() if kind == "repeated id")
        return problem

    def original(self, records: Integers) -> Integers:
        """Rows in the source of records that fit, given by position, increasing [shape=(n,), int64]."""
        out, before, first = [], 0, 0
        for rows, bits in self.kept:
            places = np.flatnonzero(np.unpackbits(bits, count=rows))
            here = (records >= before) & (records < before + len(places))
            out.append(first + places[records[here] - before])
            before, first = before + len(places), first + rows
        return joined(out, np.int64)

    def then(self, later: Encoded) -> Encoded:
        """The problems of these records and of those of a later partition, without the records."""
        return Encoded(
            self.digests[:0],
            None,
            [],
            self.kept + later.kept,
            self.blanks[:0],
            self.rows + later.rows,
            {
                key: problem.then(later.problems[key], self.rows)
                for key, problem in self.problems.items()
            },
            {**later.wrong, **self.wrong},
            tuple(dict.fromkeys(self.extra + later.extra)),
        )

    def joined_codes(self) -> Codes:
        """All codes [shape=(attributes, kept), uint16, C-contiguous].

        It can be called once, because it frees the pieces.
        """
        out = np.empty((len(self.codes), len(self.digests)), np.uint16)
        for row, pieces in zip(out, self.codes, strict=True):
            first = 0
            for piece in pieces:
                row[first : first + len(piece)] = piece
                first += len(piece)
            pieces.clear()
        return out


def _within(attribute: Attribute, fine: Attribute) -> Int32s:
    """The code that each finer cell is in [shape=(cells + 2,), int32].

    The last two are OUTSIDE and MISSING, which stand there as indices from the end.
    """
    places = np.searchsorted(attribute.ends()[0], fine.ends()[0], side="right") - 1
    own = places.tolist() + [attribute.present] * fine.missing + [OUTSIDE, MISSING]
    return np.array(own, np.int32)


def joined(pieces: list[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Concatenate arrays, possibly none."""
    return np.concatenate(pieces) if pieces else np.empty(0, kind)


def without_column(where: str, what: str, column: str, names: Sequence[str]) -> TableError:
    """The error about a missing column of record or person ids."""
    return TableError(
        f"{where} has no {what} column {column!r}; its columns are {some(names)}{header_doubt(names)}."
    )


def extra_columns(extra: Sequence[str], where: str) -> Iterator[str]:
    """A sentence about the columns outside the schema, if there are any."""
    if extra:
        yield f"{where}: left out, because the schema does not have it: column {some(extra)}."


def check_joined(id: str | None, tables: Sequence[Source]) -> None:
    """Check that several tables have an id column to be joined by.

    Raises:
        TableError: they have none.
    """
    if id is None and len(tables) > 1:
        raise TableError("Several tables are joined by record ids: name their column, id (--id).")


def check_present(wanted: Iterable[str], names: Sequence[str], where: str) -> None:
    """Check that a table has some columns of the schema.

    Raises:
        SchemaError: a column is missing.
    """
    if absent := [name for name in wanted if name not in names]:
        raise SchemaError(
            f"{where} lacks the column {some(absent)} of the schema; add it, or change the schema{header_doubt(names)}."
        )


def encode_table(
    source: Source,
    id: str | None,
    attributes: Sequence[Attribute],
    read: ReadOptions = DEFAULT,
    *,
    name: str | None = None,
    keys: IdKeys,
    impossible: Mapping[str, Sequence[Combination]] | None = None,
) -> Table:
    """Encode the table of one party.

    Of a file, only one piece is in memory at a time, plus codes and digests.

    Records that do not fit the schema are left out, also those with cells of a type that their
    attribute cannot have. So whether anything is released never depends on a single record.

    A record is an id; if the table names persons, it is a person and an id together. So the same
    id of two persons is two records.

    Leaving out is 1-stable: two tables that differ in any rows of one record give results that
    differ in at most that record. *Proof.* How a table is read is fixed before its rows are
    (:func:`vertimrf.tables.derived.party_table`; the exceptions, such as a quote that nothing closes, are
    in ``docs/privacy-engineer.md``: there the rows are those that are read), and a cell's value and missingness follow from
    this cell. So whether a row fits depends on this row alone. Of the
    fitting rows of one record, :func:`one_per_id` keeps one. Its choice depends on these rows
    alone, not on their order or on other rows. So the result is a union over records of at most one
    row each, which depends on the rows of that record alone. In particular, nobody's rows decide
    about those of another person. :func:`vertimrf.party.persons.limited` then keeps some records of
    each person.

    The ids that have a record of blanks (:attr:`.Table.blanks`) are 1-stable, too: an id is one of
    them if rows have it, and none of these fits. Which id a row has depends on this row alone, also
    if it cannot be read: in a CSV file, with more or fewer cells than the header, it is that of its
    first cell, if ids are the first column. A row whose id cannot be read has none, and changes
    nothing.

    Args:
        source: anything that :func:`vertimrf.tables.sources.read_arrow` reads.
        id: column of record ids: text, integers or UUIDs; the number 42 and the text "42" are the
            same id. None if no other table is to match; then every row is a separate record, named
            by its place among the rows of its person.
        attributes: the party's part of the schema. The table has these columns and the ids, in any
            order. Its other columns are left out, and the log names them. Finer cells of some
            (:attr:`.Attribute.fine`) may follow; a cell fits both or neither.
        read: how to read the table; ids of persons are normalised as ids of records are.
        name: name of the table in errors; default the path.
        keys: keys of the digests; tables whose ids must match share them.
        impossible: combinations of codes that no record can have
            (:func:`vertimrf.tables.impossible.ruled_out`).

    Returns:
        The records that fit, possibly none; ``dropped`` describes the others.

    Raises:
        TableError: the source is no table, it is not stated how to read it, or it has no column of
            ids.
        SchemaError: columns are missing.
    """
    names = [attribute.name for attribute in attributes]
    pieces = open_pieces(source, read).asked([id, read.person, *names])
    pieces = named_ids(pieces, read, id, read.person)
    columns = Columns(id, tuple(attributes), name or pieces.where, keys, read, impossible or {})
    columns.check(pieces.names)
    encoded = columns.encode(pieces)
    encoded.name_extra(columns.where)
    return columns.settled(encoded, pieces)
