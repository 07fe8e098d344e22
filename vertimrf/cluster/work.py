"""What a worker does with the partitions that it holds: arrays in, arrays out, and no noise.

Every task is deterministic, so that what a lost worker has done is done again elsewhere with the same result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..kernels.jit import threads
from ..kernels.multiset import record_sum
from ..party.persons import kept_records
from ..party.records import Composite, Encoder, count_marginals, take_in
from ..plan.impossible import Combination
from ..tables.arrow import CsvFormat, Source, open_pieces
from ..tables.ids import EXAMPLES, shown
from ..tables.impossible import Broken, count_broken
from ..tables.table import Columns, Encoded

__all__ = [
    "Part",
    "Quiet",
    "account",
    "broken",
    "cells",
    "count",
    "encode",
    "fold",
    "hashed",
    "in_range",
    "keep",
    "left_out",
    "merge",
    "repeated",
    "run",
    "state",
]

T = TypeVar("T")
Digests = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Quiet(Generic[T]):
    """Something that no log shows: Dask prints the arguments of a task that fails."""

    value: T

    def __repr__(self) -> str:
        return "Quiet(...)"


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """A partition's records.

    Attributes:
        digests: of their ids [shape=(n,), uint64].
        persons: of their persons' ids, or None.
        rows: per attribute, the codes [shape=(n,)]: uint8 where they fit, since this is what a worker's memory holds.
        found: what is wrong with them, without the records themselves.
    """

    digests: Digests
    persons: Digests | None
    rows: tuple[npt.NDArray[np.unsignedinteger], ...]
    found: Encoded

    def codes(self) -> npt.NDArray[np.uint16]:
        """The codes as kernels take them [shape=(d, n), uint16]."""
        out = np.empty((len(self.rows), len(self.digests)), np.uint16)
        for row, narrow in zip(out, self.rows, strict=True):
            row[:] = narrow
        return out


def run(work: Quiet[Callable[..., T]], *given: Any) -> T:
    """Do a task on one thread: Dask runs as many at once as the worker has."""
    with threads(1):
        return work.value(*given)


def encode(columns: Columns, ignore_extra: bool, csv: CsvFormat, source: Source) -> Part:
    """A partition's records, out of a file or a frame.

    Raises:
        TableError, SchemaError: it cannot be read, has other columns, or ids of a type that cannot be any.
    """
    pieces = open_pieces(source, csv)
    columns.check(pieces.names, ignore_extra)
    found = columns.encode(pieces.read(columns.wanted))
    rows = tuple(np.concatenate(own) if own else np.empty(0, np.uint8) for own in found.codes)
    empty = np.empty(0, np.uint64)
    return Part(found.digests, found.persons, rows, replace(found, digests=empty, persons=None, codes=[]))


def account(part: Part) -> Encoded:
    """How many records a partition has, and what is wrong with them."""
    return part.found


def in_range(bits: int, number: int, persons: bool, part: Part) -> tuple[Digests, Digests, Rows]:
    """Records of a partition whose digests, or persons' digests, begin with certain bits: the records', those, and their rows."""
    own = part.persons if persons else part.digests
    assert own is not None
    rows = np.flatnonzero(own >> np.uint64(64 - bits) == number) if bits else np.arange(len(own))
    return part.digests[rows], own[rows], rows


def repeated(before: Sequence[int], pieces: Sequence[tuple[Digests, Digests, Rows]]) -> tuple[int, list[int]]:
    """How many records of a range repeat an id of an earlier one, and the first rows that do, in the whole table.

    Args:
        before: records before each partition.
        pieces: of all partitions, as :func:`in_range` gives them.
    """
    digests = np.concatenate([own for own, _, _ in pieces])
    ordered = np.sort(digests)
    count = int(np.count_nonzero(ordered[1:] == ordered[:-1]))
    if not count:
        return 0, []
    rows = np.concatenate([first + rows for first, (_, _, rows) in zip(before, pieces, strict=True)])
    # Stable, and partitions follow each other: the first of equals is the earliest.
    order = np.argsort(digests, kind="stable")
    again = np.sort(rows[order[1:][digests[order[1:]] == digests[order[:-1]]]])
    return count, again[:EXAMPLES].tolist()


def cells(column: str, rows: Sequence[int], csv: CsvFormat, source: Source) -> list[str]:
    """Some cells of a partition, as errors show them."""
    return [shown(cell) for cell in open_pieces(source, csv).cells(column, rows)]


def left_out(most: int, key: bytes, pieces: Sequence[tuple[Digests, Digests, Rows]]) -> list[Rows]:
    """Rows of each partition that are more than so many of their person, of the persons of a range."""
    records, persons = (np.concatenate([piece[i] for piece in pieces]) for i in range(2))
    kept = kept_records(records, persons, most, key)
    cuts = np.cumsum([len(rows) for _, _, rows in pieces])[:-1]
    return [rows[~own] for (_, _, rows), own in zip(pieces, np.split(kept, cuts), strict=True)]


def keep(number: int, part: Part, dropped: Sequence[Sequence[Rows]]) -> Part:
    """A partition without what the ranges leave out of it; ``number`` is the partition's."""
    kept = np.ones(len(part.digests), bool)
    for own in dropped:
        kept[own[number]] = False
    persons = None if part.persons is None else part.persons[kept]
    found = replace(part.found, records=int(kept.sum()))
    return Part(part.digests[kept], persons, tuple(row[kept] for row in part.rows), found)


def broken(combinations: Sequence[Combination], part: Part) -> tuple[Broken, ...]:
    """Records that have what the schema says cannot be."""
    return count_broken(part.codes(), combinations)


def count(
    sizes: Sequence[int], wanted: Sequence[tuple[int, ...]], merged: Mapping[int, npt.NDArray[np.int64]], part: Part
) -> list[npt.NDArray[np.int64]]:
    """Counts of the cells of marginals."""
    return list(count_marginals(part.codes(), sizes, wanted, merged))


def hashed(key: bytes, part: Part) -> int:
    """The records' keyed sum."""
    return record_sum(key, part.digests, part.codes())


def fold(
    make: Callable[[], Encoder], composites: Sequence[Composite], words: Digests | None, encoder: Encoder | None, part: Part
) -> Encoder:
    """An encoder that has taken in what another has, and a partition.

    The other one stays as it is: Dask may need it again.
    """
    out = make() if encoder is None else copy.deepcopy(encoder)
    take_in(out, part.digests, part.codes(), composites, None, words)
    return out


def merge(make: Callable[[], Encoder], encoders: Sequence[Encoder]) -> Encoder:
    """An encoder that has taken in what all of these have."""
    out = make()
    for encoder in encoders:
        out.merge_state(encoder.state())
    return out


def state(encoder: Encoder) -> bytes:
    """What an encoder has taken in, for the party's own process."""
    return encoder.state()
