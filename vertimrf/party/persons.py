"""Limit the records of each person, so that every party keeps the same ones.

Of each person, the records with the smallest keyed digests are kept.

A person is identified by the keyed digest of the person's id (:mod:`vertimrf.kernels.digest`). Two
persons with one digest would count as one, and removing one of them could change twice as many
records as the plan is priced for. This happens to a given person with probability n / 2^64 among n
persons, and nobody without the parties' key can cause it.
"""

from __future__ import annotations

import secrets

import numpy as np
import pyarrow as pa

from ..arrays import Flags, Words
from ..errors import TableError
from ..kernels.prf import fill_words, tail
from ..tables.ids import IdKeys, digested
from ..tables.table import Table, without_column

# A block of the pseudorandom function that sketches do not use.
PERSON_BLOCK = np.uint64(0xFFFFFFFF)
# Approximate number of records that are sorted at a time.
SORTED_RECORDS = 1 << 20


def kept_records(records: Words, persons: Words, most: int, key: bytes) -> Flags:
    """Choose the records of every person that are kept.

    The choice depends on the key and on the person's records alone, as long as no other person has
    the same digest. It does not depend on their order.

    Args:
        records: keyed digests of the records' ids, distinct [shape=(n,), uint64].
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
    order = np.lexsort((records, words, persons))
    grouped = persons[order]
    first = np.append(True, grouped[1:] != grouped[:-1]) if len(order) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    rank = np.arange(len(order)) - starts[np.cumsum(first) - 1]
    kept = np.zeros(len(order), bool)
    kept[order] = rank < most
    return kept


def limited(table: Table, most: int, key: bytes) -> Table:
    """A party's table with at most ``most`` records of every person.

    Args:
        table: the party's records.
        most: largest number of records of a person.
        key: secret key that selects the records of a person.

    Raises:
        TableError: ``most`` is above 1, and the table has no column of persons.
    """
    if table.persons is None:
        if most > 1:
            raise unnamed(most)
        return table
    kept = kept_records(table.digests, table.persons, most, key)
    return table if kept.all() else table.only(kept)


def unnamed(most: int) -> TableError:
    """The error of a table without a column of persons."""
    return TableError(
        f"The plan is for persons with up to {most} records, so every table must say whose a record is: name that column "
        "(--person)."
    )


def beyond(persons: Words, most: int) -> tuple[int, int]:
    """Number of records above the limit, and of persons who have such. Both are exact, so only the
    party may see them.
    """
    _, counts = np.unique(persons, return_counts=True)
    return int(np.maximum(counts - most, 0).sum()), int((counts > most).sum())


def sample_rows(
    table: pa.Table, person: str, most: int, where: str, key: bytes | None = None
) -> pa.Table:
    """Keep at most ``most`` records of every person, and none without a person.

    Args:
        table: the table.
        person: name of the column of persons.
        most: most records of a person.
        where: the table's name in errors.
        key: the choice of records depends on it [16 bytes or more]; default a fresh one.

    Returns:
        The rows that are kept.

    Raises:
        TableError: the table has no such column, or the column's type cannot be that of ids.
    """
    if person not in table.column_names:
        raise without_column(where, "person", person, table.column_names)
    persons, present = digested(
        IdKeys.drawn().persons, table[person], f"{where}, person column {person!r}"
    )
    rows = np.flatnonzero(present)
    kept = kept_records(
        rows.astype(np.uint64), persons[rows], most, secrets.token_bytes(16) if key is None else key
    )
    return table.take(pa.array(rows[kept]))
