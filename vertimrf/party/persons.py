"""Whose a record is: at most so many records of one person take part, the same ones at every party.

A person is the digest of a person's id. Two persons with one digest would be one, and removing one of them could change up to
twice as many records as the plan is priced for. Digests are keyed (:mod:`vertimrf.kernels.digest`): by chance this happens to a
given person with probability n / 2^64 among n persons, and nobody who lacks the parties' key can bring it about.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import TableError
from ..kernels.prf import fill_words, tail
from ..tables.ids import IdKeys, digested
from ..tables.table import Table, without_person

__all__ = ["excess_records", "kept_records", "limited", "sample_rows", "unnamed"]

Digests = npt.NDArray[np.uint64]
# Apart from the key blocks of sketches, whose counters are other words of other keys anyway.
PERSON_BLOCK = np.uint64(0xFFFFFFFF)
# Records that are sorted at a time, about.
SORTED_RECORDS = 1 << 20


def kept_records(
    records: Digests, persons: Digests, most: int, key: bytes
) -> npt.NDArray[np.bool_]:
    """Which records take part: of every person those, at most so many, whose keyed digests are smallest.

    Whoever has the key and the same records of a person keeps the same ones, whatever the order of the table. What is kept of one
    person depends on nobody else's records, as long as no other person has the same digest.

    Args:
        records: keyed digests of the records' ids, distinct [shape=(n,), uint64].
        persons: keyed digests of the persons' ids [shape=(n,), uint64].
        most: records that are kept of a person.
        key: 16 bytes or more.
    """
    bits = max(len(records) // SORTED_RECORDS, 1).bit_length() - 1
    if not bits:
        return _kept(records, persons, most, key)
    # Persons are looked at in ranges of their digests: sorting takes several times the memory of what is sorted.
    kept = np.zeros(len(records), bool)
    for number in range(1 << bits):
        rows = np.flatnonzero(persons >> np.uint64(64 - bits) == number)
        kept[rows] = _kept(records[rows], persons[rows], most, key)
    return kept


def _kept(records: Digests, persons: Digests, most: int, key: bytes) -> npt.NDArray[np.bool_]:
    k0, k1 = np.frombuffer(key[:16], "<u8").astype(np.uint64)
    words = np.empty_like(records)
    fill_words(
        k0, k1, np.ascontiguousarray(records), len(records), tail(PERSON_BLOCK, np.uint64(0)), words
    )
    # By person, then by word; two records with one word are told apart by their digest.
    order = np.lexsort((records, words, persons))
    grouped = persons[order]
    first = np.append(True, grouped[1:] != grouped[:-1]) if len(order) else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    rank = np.arange(len(order)) - starts[np.cumsum(first) - 1]
    kept = np.zeros(len(order), bool)
    kept[order] = rank < most
    return kept


def limited(table: Table, most: int, key: bytes) -> Table:
    """A party's table with at most so many records of every person.

    Raises:
        TableError: persons may have several records, and the table does not say whose a record is.
    """
    if table.persons is None:
        if most > 1:
            raise unnamed(most)
        return table
    kept = kept_records(table.digests, table.persons, most, key)
    return table if kept.all() else table.only(kept)


def unnamed(most: int) -> TableError:
    """The error of a table that does not say whose a record is."""
    return TableError(
        f"The plan is for persons with up to {most} records, so every party's table must say whose a record is: name "
        "that column (--person)."
    )


def excess_records(persons: Digests, most: int) -> tuple[int, int]:
    """How many records are more than so many of their person, and how many persons have such; exact, for the party's own eyes."""
    _, counts = np.unique(persons, return_counts=True)
    return int(np.maximum(counts - most, 0).sum()), int((counts > most).sum())


def sample_rows(
    table: pa.Table, person: str, most: int, where: str, key: bytes | None = None
) -> pa.Table:
    """The table with at most so many records of every person, without those that are nobody's.

    Args:
        table: has the column of persons.
        person: that column.
        most: records that are kept of a person.
        where: names the table in errors.
        key: which records are kept is drawn under it [16 bytes or more]; default a fresh one.

    Raises:
        TableError: no such column, or ids of a type that cannot be any.
    """
    if person not in table.column_names:
        raise without_person(where, person, table.column_names)
    persons, present = digested(
        IdKeys.drawn().persons, table[person], f"{where}, person column {person!r}"
    )
    rows = np.flatnonzero(present)
    kept = kept_records(
        rows.astype(np.uint64), persons[rows], most, secrets.token_bytes(16) if key is None else key
    )
    return table.take(pa.array(rows[kept]))
