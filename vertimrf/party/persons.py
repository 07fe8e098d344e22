"""Limit the records of each person, so that every party keeps the same ones.

Of each person, the records with the smallest keyed digests are kept.

Tables name persons if a plan is for several records of a person, and only then. A record is then a
person and an id together, at every party. In a plan for one record of a person, a person is a
record id.

A person is identified by the keyed digest of the person's id (:mod:`vertimrf.kernels.digest`). Two
persons with one digest would count as one, and removing one of them could change twice as many
records as the plan is priced for. This happens to a given person with probability n / 2^64 among n
persons, and nobody without the parties' key can cause it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ..arrays import Flags, Pair, Words
from ..errors import TableError
from ..kernels.prf import fill_words, tail
from ..keys import hkdf
from ..tables.columns import without_column
from ..tables.ids import IdKeys, digested, format_ids, named_ids, of_persons, places_of
from ..tables.read_options import DEFAULT, ReadOptions
from ..tables.sources import open_pieces
from ..tables.table import Table

# A block of the pseudorandom function that sketches do not use.
PERSON_BLOCK = np.uint64(0xFFFFFFFF)
# Approximate number of records that are sorted at a time.
SORTED_RECORDS = 1 << 20


def kept_records(records: Words, persons: Words, most: int, key: bytes) -> Flags:
    """Choose the records of every person that are kept.

    The choice depends on the key and on the person's records alone, as long as no other person has
    the same digest. It does not depend on their order.

    Args:
        records: keyed digests of the records, distinct [shape=(n,), uint64].
        persons: keyed digests of the persons' ids [shape=(n,), uint64].
        most: most records of a person.
        key: 16 bytes or more.

    Returns:
        Whether each record is kept [shape=(n,), bool].
    """
    bits = max(len(records) // SORTED_RECORDS, 1).bit_length() - 1
    if not bits:
        return _kept(records, persons, most, key)
    # Persons are sorted in ranges of their digests, because sorting takes several times the memory
    # of its input.
    kept = np.zeros(len(records), bool)
    for number in range(1 << bits):
        rows = np.flatnonzero(persons >> np.uint64(64 - bits) == number)
        kept[rows] = _kept(records[rows], persons[rows], most, key)
    return kept


def _kept(records: Words, persons: Words, most: int, key: bytes) -> Flags:
    k0, k1 = np.frombuffer(key[:16], "<u8").astype(np.uint64)
    words = np.empty_like(records)
    fill_words(
        k0, k1, np.ascontiguousarray(records), len(records), tail(PERSON_BLOCK, np.uint64(0)), words
    )
    # By person, then by word; the digest decides between equal words.
    kept: Flags = places_of(persons, np.lexsort((records, words, persons))) < most
    return kept


def limited(table: Table, most: int, key: bytes) -> Table:
    """A party's table with at most ``most`` records of every person.

    Args:
        table: the party's records.
        most: largest number of records of a person.
        key: secret key that selects the records of a person.

    Raises:
        TableError: as for :func:`check_named`.
    """
    check_named(table.persons is not None, most)
    if table.persons is None:
        return table
    kept = kept_records(table.digests, table.persons, most, key)
    return table if kept.all() else table.only(kept)


def check_named(named: bool, most: int) -> None:
    """Check that a table names persons if the plan is for several records of a person.

    All tables of a plan do, or none does: where one does, its records are joined by person and id.

    Args:
        named: whether the table has a column of persons.
        most: largest number of records of a person.

    Raises:
        TableError: it names them and should not, or the other way round.
    """
    for error in naming_errors(named, most):
        raise error


def naming_errors(named: bool, most: int) -> Iterator[TableError]:
    """The errors of :func:`check_named`."""
    if most > 1 and not named:
        yield TableError(
            f"The plan is for persons with up to {most} records, so every table must say whose a record is: name that column, "
            "person (--person)."
        )
    if most == 1 and named:
        yield TableError(
            "The plan is for one record of a person, so a record id is a person and no table may name others: leave out "
            "person (--person), or plan with records_per_person (--records-per-person) above 1."
        )


def beyond(persons: Words, most: int) -> Pair:
    """Number of records above the limit, and of persons who have such. Both are exact, so only the
    party may see them.
    """
    _, counts = np.unique(persons, return_counts=True)
    return int(np.maximum(counts - most, 0).sum()), int((counts > most).sum())


def sample_rows(
    table: pa.Table,
    id: str | None,
    most: int,
    where: str,
    read: ReadOptions = DEFAULT,
    key: bytes | None = None,
) -> pa.Table:
    """Keep at most ``most`` rows of every person, and none without a person.

    The choice depends on the key, the person's id, and the number of the person's rows alone.

    Args:
        table: the table.
        id: column of record ids, which are persons if ``most`` is 1; None if every row is a
            separate record.
        most: most rows of a person.
        where: the table's name in errors.
        read: how ids are read; names the column of persons if ``most`` is above 1.
        key: the choice of rows depends on it [16 bytes or more]; default a fresh one.

    Returns:
        The rows that are kept.

    Raises:
        TableError: the table has no such column, the column's type cannot be that of ids, or as for
            :func:`check_named`.
    """
    check_named(read.person is not None, most)
    what, column = ("id", id) if read.person is None else ("person", read.person)
    if column is None:
        return table
    pieces = named_ids(open_pieces(table), read, column)
    if column not in pieces.names:
        raise without_column(where, what, column, table.column_names)
    said = f"{where}, {what} column {column!r}"
    key = secrets.token_bytes(32) if key is None else key
    keys = IdKeys(*(hkdf(key, b"", name)[:16] for name in (b"ids", b"persons", b"rows")))
    ids = (table if column in table.column_names else pieces.whole(None))[column]
    persons, present = digested(keys.persons, format_ids(ids, read.id_format, said), said)
    rows = np.flatnonzero(present)
    persons = persons[rows]
    records = of_persons(keys.pairs, persons, places_of(persons).astype(np.uint64))
    return table.take(pa.array(rows[kept_records(records, persons, most, key)]))
