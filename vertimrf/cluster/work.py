"""Tasks of a worker on its partitions: arrays in, arrays out, no noise.

Every task is deterministic. If a worker is lost, another one repeats its tasks with the same
results.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..arrays import Codes, Flags, Integers, Ints, Pair, Words
from ..kernels.jit import threads
from ..kernels.multiset import record_sum
from ..party.persons import beyond, kept_records
from ..party.records import Composite, count_marginals, take_in
from ..plan.impossible import Combination
from ..plan.schema import Schema
from ..releases.encoder import Encoder
from ..tables import impossible
from ..tables.columns import Columns, Encoded
from ..tables.derived import party_table, with_derived
from ..tables.ids import repeated, shown
from ..tables.read_options import ReadOptions
from ..tables.sources import Source
from ..tables.table import one_per_id

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Quiet(Generic[T]):
    """Wraps a value so that no log shows it: Dask prints the arguments of a task that fails."""

    value: T

    def __repr__(self) -> str:
        return "Quiet(...)"


@dataclass(frozen=True, eq=False, repr=False)
class Part:
    """A partition's records.

    Attributes:
        digests: digests of the record ids [shape=(n,), uint64].
        persons: digests of the persons' ids [shape=(n,), uint64], or None.
        rows: codes by attribute [each shape=(n,)]. They are uint8 if they fit, to save the worker's
            memory.
        problems: problems of the records that do not fit, without the records themselves.
    """

    digests: Words
    persons: Words | None
    rows: tuple[npt.NDArray[np.unsignedinteger], ...]
    problems: Encoded

    def codes(self) -> Codes:
        """The codes in the form that kernels take [shape=(d, n), uint16]."""
        out = np.empty((len(self.rows), len(self.digests)), np.uint16)
        for row, narrow in zip(out, self.rows, strict=True):
            row[:] = narrow
        return out


def version() -> str:
    """The version of this package that a worker runs."""
    return __version__


def run(work: Quiet[Callable[..., T]], *given: Any) -> T:
    """Run a task on one thread: Dask runs as many tasks at once as the worker has threads."""
    with threads(1):
        return work.value(*given)


def encode(columns: Columns, schema: Schema, source: Source) -> Part:
    """Encode the records of a partition that fit the schema, from a file or a frame.

    Columns that the partition lacks and an equation gives are derived.

    Raises:
        TableError, SchemaError: the partition cannot be read, or lacks columns.
    """
    names = [attribute.name for attribute in columns.own]
    table = party_table(source, columns.read, columns.id, names)
    (pieces,) = with_derived([table], schema, names, columns.read)
    columns.check(pieces.names)
    encoded = columns.encode(pieces)
    rows = tuple(
        np.concatenate(codes) if codes else np.empty(0, np.uint8) for codes in encoded.codes
    )
    rest = replace(encoded, digests=np.empty(0, np.uint64), persons=None, codes=[])
    return Part(encoded.digests, encoded.persons, rows, rest)


def account(part: Part) -> tuple[int, Encoded]:
    """Number of records of a partition that fit, and problems of the others."""
    return len(part.digests), part.problems


def in_range(bits: int, number: int, persons: bool, part: Part) -> tuple[Words, Words, Integers]:
    """Records of a partition in one range of digests.

    Args:
        bits: number of leading bits that a range is given by.
        number: value of these bits.
        persons: whether the range is of persons' digests, instead of records' digests.
        part: the partition.

    Returns:
        Digests of the records, the digests that the range is of, and rows of the records.
    """
    digests = part.persons if persons else part.digests
    assert digests is not None
    rows = (
        np.flatnonzero(digests >> np.uint64(64 - bits) == number)
        if bits
        else np.arange(len(digests))
    )
    return part.digests[rows], digests[rows], rows


def twice(pieces: Sequence[tuple[Words, Words, Integers]]) -> Words:
    """Digests in a range that several rows have.

    Pieces are results of :func:`in_range`.
    """
    return repeated(np.concatenate([digests for digests, _, _ in pieces]))


def those_of(digests: Words, part: Part) -> tuple[Integers, Words, Codes]:
    """Rows, digests, and codes [shape=(d, n)] of records with some digests."""
    rows = np.flatnonzero(np.isin(part.digests, digests))
    codes = np.array([row[rows] for row in part.rows], np.uint16).reshape(len(part.rows), len(rows))
    return rows, part.digests[rows], codes


def further(
    pieces: Sequence[tuple[Integers, Words, Codes]],
) -> list[Integers]:
    """Rows of each partition to leave out so that every record remains once.

    Pieces are results of :func:`those_of`.
    """
    rows, digests, codes = zip(*pieces, strict=True)
    together = np.concatenate(codes, axis=1)
    left = np.zeros(together.shape[1], bool)
    left[one_per_id(np.concatenate(digests), together)] = True
    cuts = np.cumsum([len(of_part) for of_part in rows])[:-1]
    return [of_part[out] for of_part, out in zip(rows, np.split(left, cuts), strict=True)]


def cells(column: str, rows: Sequence[int], read: ReadOptions, source: Source) -> list[str]:
    """Some cells of a partition, as errors show them."""
    pieces = party_table(source, read, column, ())
    return [shown(cell) for cell in pieces.cells(column, rows)]


def left_out(
    most: int, key: bytes, pieces: Sequence[tuple[Words, Words, Integers]]
) -> list[Integers]:
    """Rows of each partition to leave out so that no person has more than ``most`` records."""
    records, persons = (np.concatenate([piece[i] for piece in pieces]) for i in range(2))
    kept = kept_records(records, persons, most, key)
    cuts = np.cumsum([len(rows) for _, _, rows in pieces])[:-1]
    return [rows[~stays] for (_, _, rows), stays in zip(pieces, np.split(kept, cuts), strict=True)]


def above(most: int, pieces: Sequence[tuple[Words, Words, Integers]]) -> Pair:
    """Number of records above the limit, and of persons who have such, in a range of persons."""
    return beyond(np.concatenate([owners for _, owners, _ in pieces]), most)


def keep(number: int, part: Part, dropped: Sequence[Sequence[Integers]]) -> Part:
    """A partition without the rows that the ranges leave out of it.

    ``number`` is the number of the partition.
    """
    kept = np.ones(len(part.digests), bool)
    for by_part in dropped:
        kept[by_part[number]] = False
    return some_of(part, kept)


def possible(combinations: Sequence[Combination], part: Part) -> Part:
    """The records of a partition that have none of these combinations of codes."""
    return some_of(part, impossible.possible(part.rows, combinations))


def some_of(part: Part, kept: Flags) -> Part:
    """Some of a partition's records."""
    persons = None if part.persons is None else part.persons[kept]
    return Part(part.digests[kept], persons, tuple(row[kept] for row in part.rows), part.problems)


def original(kept: Integers, part: Part) -> Integers:
    """Rows in the source partition of records that fit, given by position."""
    return part.problems.original(kept)


def count(
    sizes: Sequence[int],
    wanted: Sequence[Ints],
    merged: Mapping[int, Integers],
    part: Part,
) -> list[Integers]:
    """Counts of the cells of marginals."""
    return list(count_marginals(part.codes(), sizes, wanted, merged))


def hashed(key: bytes, part: Part) -> int:
    """The records' keyed sum."""
    return record_sum(key, part.digests, part.codes())


def fold(
    make: Callable[[], Encoder],
    composites: Sequence[Composite],
    words: Words | None,
    encoder: Encoder | None,
    part: Part,
) -> Encoder:
    """A copy of an encoder, updated with a partition.

    The original does not change, because Dask may need it again.
    """
    out = make() if encoder is None else copy.deepcopy(encoder)
    take_in(out, part.digests, part.codes(), composites, words=words)
    return out


def merge(make: Callable[[], Encoder], encoders: Sequence[Encoder]) -> Encoder:
    """An encoder with the merged states of several encoders."""
    out = make()
    for encoder in encoders:
        out.merge_state(encoder.state())
    return out
