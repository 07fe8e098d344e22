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
from ..tables.arrow import Source, open_pieces
from ..tables.ids import repeated, shown
from ..tables.impossible import breaking
from ..tables.read_options import ReadOptions
from ..tables.table import Columns, Encoded, one_per_id

__all__ = [
    "Part",
    "Quiet",
    "account",
    "cells",
    "count",
    "encode",
    "fold",
    "further",
    "hashed",
    "in_range",
    "keep",
    "left_out",
    "merge",
    "original",
    "possible",
    "run",
    "state",
    "those_of",
    "twice",
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


def encode(columns: Columns, source: Source) -> Part:
    """The records of a partition that fit, out of a file or a frame.

    Raises:
        TableError, SchemaError: it cannot be read, has other columns, or some of a type that cannot be.
    """
    pieces = open_pieces(source, columns.read)
    columns.check(pieces.names)
    found = columns.encode(pieces)
    rows = tuple(np.concatenate(own) if own else np.empty(0, np.uint8) for own in found.codes)
    return Part(found.digests, found.persons, rows, replace(found, digests=np.empty(0, np.uint64), persons=None, codes=[]))


def account(part: Part) -> tuple[int, Encoded]:
    """How many records of a partition fit, and what is wrong with the others."""
    return len(part.digests), part.found


def in_range(bits: int, number: int, persons: bool, part: Part) -> tuple[Digests, Digests, Rows]:
    """Records of a partition whose digests, or persons' digests, begin with certain bits: the records', those, and their rows."""
    own = part.persons if persons else part.digests
    assert own is not None
    rows = np.flatnonzero(own >> np.uint64(64 - bits) == number) if bits else np.arange(len(own))
    return part.digests[rows], own[rows], rows


def twice(pieces: Sequence[tuple[Digests, Digests, Rows]]) -> Digests:
    """Digests of ids of a range that several records have; pieces as :func:`in_range` gives them."""
    return repeated(np.concatenate([own for own, _, _ in pieces]))


def those_of(digests: Digests, part: Part) -> tuple[Rows, Digests, npt.NDArray[np.uint16], Digests | None]:
    """A partition's records with these digests: their rows, digests, codes [shape=(d, n)] and persons."""
    rows = np.flatnonzero(np.isin(part.digests, digests))
    codes = np.array([row[rows] for row in part.rows], np.uint16).reshape(len(part.rows), len(rows))
    return rows, part.digests[rows], codes, None if part.persons is None else part.persons[rows]


def further(pieces: Sequence[tuple[Rows, Digests, npt.NDArray[np.uint16], Digests | None]]) -> list[Rows]:
    """Rows of each partition that leave one record of every id; pieces as :func:`those_of` gives them."""
    rows, digests, codes, persons = zip(*pieces, strict=True)
    together = np.concatenate(codes, axis=1)
    owners = None if persons[0] is None else np.concatenate(persons)
    left = np.zeros(together.shape[1], bool)
    left[one_per_id(np.concatenate(digests), lambda some: together[:, some], owners)] = True
    cuts = np.cumsum([len(own) for own in rows])[:-1]
    return [own[out] for own, out in zip(rows, np.split(left, cuts), strict=True)]


def cells(column: str, rows: Sequence[int], read: ReadOptions, source: Source) -> list[str]:
    """Some cells of a partition, as errors show them."""
    return [shown(cell) for cell in open_pieces(source, read).cells(column, rows)]


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
    return some_of(part, kept)


def possible(combinations: Sequence[Combination], part: Part) -> Part:
    """Those of a partition's records that have none of these combinations of codes."""
    kept = np.ones(len(part.digests), bool)
    for combination in combinations:
        kept &= ~breaking(part.rows, combination)
    return some_of(part, kept)


def some_of(part: Part, kept: npt.NDArray[np.bool_]) -> Part:
    """Some of a partition's records."""
    persons = None if part.persons is None else part.persons[kept]
    return Part(part.digests[kept], persons, tuple(row[kept] for row in part.rows), part.found)


def original(kept: Rows, part: Part) -> Rows:
    """Rows of records in the partition as it was read, by their place among those that fit."""
    return part.found.original(kept)


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
