"""Tables: encode record ids and values from files and data frames as digests and integer codes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..arrays import Codes, Flags, Int32s, Integers, Words
from ..columns.column import Attribute
from ..columns.text import MISSING, OUTSIDE
from ..errors import SchemaError, TableError
from .dropped import NONE, Dropped, Kind, Tally
from .ids import (
    only_in,
    repeated,
    shown,
)

if TYPE_CHECKING:
    from ..columns.column import Encode

LOG = logging.getLogger(__name__)


# Records by kind of problem and by column, or combination, that has it.
Problems = dict[tuple[Kind, str], Tally]
Watch = Callable[[pa.Table, Sequence[Int32s]], None]


# Problems of a cell.
CELL_PROBLEMS: tuple[Kind, ...] = ("missing", "outside")


@dataclass(frozen=True, eq=False)
class Table:
    """Encoded records of one party.

    Attributes:
        attributes: one per row of ``codes``.
        digests: 64-bit keyed digests of the record ids, or of person and id together if ``persons``
            is given; distinct [shape=(n,), uint64].
        codes: attribute-major codes, each below its attribute's size [shape=(d, n), uint16,
            C-contiguous].
        persons: 64-bit keyed digests of the ids of the records' persons [shape=(n,), uint64]; None
            if every record is a person.
        dropped: records of the source that were left out, for their holder only. No output depends
            on it.
        blanks: digests of the ids of which every record was left out, each once
            [shape=(k,), uint64]. Encrypted counts keep a blank row for them.

    Raises:
        TableError: the arrays do not fit each other.
    """

    attributes: tuple[Attribute, ...]
    digests: Words
    codes: Codes
    persons: Words | None = None
    dropped: Dropped = NONE
    blanks: Words = field(default_factory=lambda: np.empty(0, np.uint64))

    def __repr__(self) -> str:
        return f"<Table of {len(self.attributes)} attributes, {self.records:,} records>"

    def __post_init__(self) -> None:
        if self.persons is not None and self.persons.shape != self.digests.shape:
            raise TableError(
                f"A table of {len(self.digests)} records needs as many persons, not {len(self.persons)}."
            )
        shape = (len(self.attributes), len(self.digests))
        if (
            self.codes.shape != shape
            or self.codes.dtype != np.uint16
            or not self.codes.flags.c_contiguous
        ):
            raise TableError(
                f"A table of {shape[0]} attributes and {shape[1]} records needs C-contiguous uint16 codes of that "
                f"shape, not {self.codes.dtype} of {self.codes.shape}."
            )

    def only(self, kept: Flags) -> Table:
        """The table with the marked records only [kept: shape=(n,), bool]."""
        persons = None if self.persons is None else self.persons[kept]
        # Row by row, because all rows at once would be copied twice.
        codes = np.empty((len(self.codes), np.count_nonzero(kept)), np.uint16)
        for target, row in zip(codes, self.codes, strict=True):
            target[:] = row[kept]
        digests = self.digests[kept]
        blanks = np.union1d(self.blanks, only_in(self.digests[~kept], digests))
        return Table(self.attributes, digests, codes, persons, self.dropped, blanks)

    @property
    def own(self) -> Codes:
        """Codes of the columns, without their finer cells [shape=(columns, n)]."""
        return self.codes[: len({attribute.name for attribute in self.attributes})]

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.digests)


def one_per_id(
    digests: Words,
    codes: Codes,
) -> Integers:
    """Rows to leave out so that one of every record remains.

    It is the one with the smallest codes, attribute by attribute.

    The choice depends on the rows of that record alone, not on their order or on other records.

    Args:
        digests: digests of the records [shape=(n,), uint64].
        codes: codes of the rows [shape=(d, n), uint16].

    Returns:
        Rows to leave out, increasing [shape=(k,), int64].
    """
    twice = repeated(digests)
    if not len(twice):
        return np.empty(0, np.int64)
    rows = np.flatnonzero(np.isin(digests, twice))
    keys = [digests[rows], *codes[:, rows]]
    # lexsort sorts by its last key first. Records that agree in all keys are the same record.
    rows = rows[np.lexsort(keys[::-1])]
    again = digests[rows[1:]] == digests[rows[:-1]]
    return np.sort(rows[1:][again])


def rows_again(ids: Words, rows: Sequence[Int32s], fits: Flags) -> Integers:
    """Rows of a piece to leave out so that of those that fit, one per id remains.

    Args:
        ids: digests of the records [shape=(n,), uint64].
        rows: codes by attribute [each shape=(n,), int32].
        fits: rows that fit [shape=(n,), bool].

    Returns:
        Rows, increasing [shape=(k,), int64].
    """
    places = np.flatnonzero(fits)
    if not len(repeated(ids[places])):
        return places[:0]
    codes = np.empty((len(rows), len(places)), np.uint16)
    for target, row in zip(codes, rows, strict=True):
        target[:] = row[places]
    return places[one_per_id(ids[places], codes)]


def encode_columns(table: pa.Table, attributes: Sequence[Attribute], where: str) -> Codes:
    """Encode columns of an Arrow table, all of whose records must fit.

    Args:
        table: a table with a column per attribute.
        attributes: the attributes to encode.
        where: name of the table, for errors.

    Returns:
        Codes [shape=(len(attributes), n), uint16, C-contiguous].

    Raises:
        SchemaError: a value lies outside the schema, or is missing where the schema does not allow
            it.
    """
    codes = np.empty((len(attributes), table.num_rows), np.uint16)
    for attribute, row in zip(attributes, codes, strict=True):
        row[:], without = coded(
            attribute, attribute.encoder(f"{where}: column {attribute.name!r}"), table, None
        )
        for kind, problem in without.items():
            raise SchemaError(uncoded(kind, attribute, where, problem))
    return codes


def uncoded(kind: Kind, attribute: Attribute, where: str, problem: Tally) -> str:
    """A sentence about records whose cell has no code; ``where`` names the table."""
    column = f"{where}: column {attribute.name!r}"
    if kind == "missing":
        return (
            f"{column} has {problem.records} without a value; "
            "set missing = true for it in the schema, or remove them at every party."
        )
    return f"{column} holds {problem.value}, outside the schema, in {problem.records}; {attribute.remedy}."


def coded(
    attribute: Attribute, encoder: Encode, piece: pa.Table, id: str | None, before: int = 0
) -> tuple[Int32s, dict[Kind, Tally]]:
    """Codes of a piece of a column, and its cells without a code.

    Args:
        attribute: the attribute.
        encoder: from :meth:`Attribute.encoder`.
        piece: a table with this column.
        id: id column, for examples in errors; None counts rows from 1 instead.
        before: number of rows before this piece.

    Returns:
        Codes, below 0 for cells without one [shape=(n,), int32]; and the records of these cells by
        problem.

    Raises:
        SchemaError: the column has a type that the attribute cannot have.
    """
    return tallied(attribute, encoder(piece[attribute.name]), piece, id, before)


def uncodable(
    attribute: Attribute, piece: pa.Table, id: str | None, before: int
) -> tuple[Int32s, dict[Kind, Tally]]:
    """As :func:`coded`, for a column of a type that the attribute cannot have: no cell has a code.

    A missing cell has no type. So a column of which all cells are missing fits every attribute.
    """
    absent = piece[attribute.name].is_null(nan_is_null=True).to_numpy()
    codes = np.where(absent, MISSING, OUTSIDE).astype(np.int32)
    return tallied(attribute, codes, piece, id, before)


def tallied(
    attribute: Attribute, codes: Int32s, piece: pa.Table, id: str | None, before: int
) -> tuple[Int32s, dict[Kind, Tally]]:
    """What :func:`coded` says of codes, in which missing cells get the code that they may have."""
    column = piece[attribute.name]
    problems: dict[Kind, Tally] = {}
    # If all cells have a code, one look at the least code suffices.
    if codes.size and codes.min() < 0:
        if attribute.missing:
            codes[codes == MISSING] = attribute.size - 1
        for kind, code in zip(CELL_PROBLEMS, (MISSING, OUTSIDE), strict=True):
            problem = Tally.of(codes == code, before)
            if problem.count:
                row = problem.rows[0] - before
                name = "" if id is None else f"id {shown(piece[id][row])}"
                problems[kind] = replace(problem, name=name, value=shown(column[row]))
    return codes, problems


def warn_of_strangers(tables: Sequence[Table], names: Sequence[str]) -> None:
    """Log a warning for every two tables without a common id.

    It is no error, because it may depend on one record.
    """
    for (name, table), (other, its) in itertools.combinations(zip(names, tables, strict=True), 2):
        if not np.intersect1d(table.digests, its.digests, assume_unique=True).size:
            LOG.warning(
                "%s and %s have no id in common: they write ids differently, or hold other people.",
                name,
                other,
            )
