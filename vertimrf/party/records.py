"""Exact queries of a party's records, on one machine or on many.

The answers never leave the party without noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from ..arrays import Codes, Int32s, Integers, Integral, Ints, Words
from ..columns.column import Attribute
from ..kernels.contingency import contingency, pair_tables
from ..kernels.multiset import record_sum
from ..model.domain_compression import compressed_sizes
from ..model.measurement import BinMap
from ..plan.impossible import Combination
from ..progress import SILENT, Progress, Silent
from ..releases.encoder import Encoder
from ..tables.impossible import possible
from ..tables.table import Table
from .persons import limited

# Values of groups that are computed at a time: 128 MB. Fewer pieces make the encoding of scheduled
# pairs faster.
CELLS_AT_ONCE = 1 << 26


E = TypeVar("E", bound=Encoder)


@dataclass(frozen=True, eq=False)
class Composite:
    """A sketched value: the bin of one attribute, or the parity of the bins of several.

    Attributes:
        places: rows of the attributes in the codes.
        maps: per attribute, the map code -> bin [shape=(size,), integer]; 0 or 1 in a parity.
    """

    places: Ints
    maps: tuple[Integral, ...]

    def values(self, codes: Codes, out: Codes) -> None:
        """Write the values of records [shape=(n,), uint16], from their codes [shape=(d, n)]."""
        out[:] = 0
        for place, mapping in zip(self.places, self.maps, strict=True):
            out ^= mapping.astype(np.uint16)[codes[place]]


class Records(Protocol):
    """A party's encoded records. All answers are exact and stay with the party."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Attributes, in the order of the codes."""

    @property
    def count(self) -> int:
        """Number of records."""

    def limited(self, most: int, key: bytes) -> Records:
        """Keep at most ``most`` records of every person (:func:`vertimrf.party.persons.limited`).

        Raises:
            TableError: as for :func:`vertimrf.party.persons.check_named`.
        """

    def possible(self, combinations: Sequence[Combination]) -> Records:
        """Keep the records that have none of these structural zeros."""

    def marginals(self, wanted: Sequence[Ints], merged: Mapping[int, BinMap]) -> Iterator[Integers]:
        """Count the records in the cells of marginals, one marginal after the other.

        Args:
            wanted: per marginal, positions of its attributes.
            merged: by position, the map code -> merged value.
        """

    def encoded(
        self,
        make: Callable[[], E],
        composites: Sequence[Composite],
        progress: Progress = SILENT,
        words: Words | None = None,
    ) -> E:
        """Encode all records.

        Args:
            make: returns a new encoder.
            composites: the values to encode, in the encoder's order.
            progress: where the work is reported.
            words: with one composite, a word per value that is combined with the record's digest;
                all records are then of one group [shape=(values,), uint64].

        Returns:
            The encoder with all records.
        """

    def with_blanks(self, composites: Sequence[Composite]) -> tuple[Words, Int32s]:
        """Digests of all ids [shape=(n,), uint64], and their values [shape=(composites, n), int32].

        The values are -1 for an id whose record does not fit.

        Raises:
            PlanError: the records do not fit in memory.
        """

    def keyed_sum(self, key: bytes) -> int:
        """A keyed sum that is equal for tables of the same records
        (:mod:`vertimrf.kernels.multiset`).
        """


@dataclass(frozen=True, eq=False)
class InMemory:
    """Records in the memory of one process.

    Attributes:
        table: the encoded records.
    """

    table: Table

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """See :class:`Records`."""
        return self.table.attributes

    @property
    def count(self) -> int:
        """See :class:`Records`."""
        return self.table.records

    def limited(self, most: int, key: bytes) -> InMemory:
        """See :class:`Records`."""
        return InMemory(limited(self.table, most, key))

    def possible(self, combinations: Sequence[Combination]) -> InMemory:
        """See :class:`Records`."""
        kept = possible(self.table.codes, combinations)
        return self if kept.all() else InMemory(self.table.only(kept))

    def marginals(self, wanted: Sequence[Ints], merged: Mapping[int, BinMap]) -> Iterator[Integers]:
        """See :class:`Records`."""
        return count_marginals(
            self.table.codes, [attribute.size for attribute in self.attributes], wanted, merged
        )

    def encoded(
        self,
        make: Callable[[], E],
        composites: Sequence[Composite],
        progress: Progress = SILENT,
        words: Words | None = None,
    ) -> E:
        """See :class:`Records`."""
        encoder = make()
        take_in(encoder, self.table.digests, self.table.codes, composites, progress, words)
        return encoder

    def with_blanks(self, composites: Sequence[Composite]) -> tuple[Words, Int32s]:
        """See :class:`Records`."""
        digests, blanks = self.table.digests, self.table.blanks
        codes = _values(self.table.codes, composites).astype(np.int32)
        values = np.pad(codes, ((0, 0), (0, len(blanks))), constant_values=-1)
        return np.concatenate([digests, blanks]), values

    def keyed_sum(self, key: bytes) -> int:
        """See :class:`Records`."""
        return record_sum(key, self.table.digests, self.table.codes)


def count_marginals(
    codes: Codes,
    sizes: Sequence[int],
    wanted: Iterable[Ints],
    merged: Mapping[int, BinMap],
) -> Iterator[Integers]:
    """Count the records in every cell of some marginals. Consecutive pairs are counted together.

    Args:
        codes: codes of the records [shape=(d, n), uint16].
        sizes: domain size of every attribute.
        wanted: per marginal, rows of its attributes.
        merged: by row, the map code -> merged value.

    Yields:
        Counts of each marginal [one axis per attribute, int64].
    """
    if merged:
        codes = codes.copy()
        for row, values in merged.items():
            codes[row] = values.astype(np.uint16)[codes[row]]
        sizes = compressed_sizes(sizes, merged)
    for paired, marginals in itertools.groupby(wanted, lambda attributes: len(attributes) == 2):
        if paired:
            yield from pair_tables(
                codes, sizes, [(marginal[0], marginal[1]) for marginal in marginals]
            )
        else:
            for marginal in marginals:
                yield contingency(codes, sizes, marginal)


def take_in(
    encoder: Encoder,
    digests: Words,
    codes: Codes,
    composites: Sequence[Composite],
    progress: Progress = SILENT,
    words: Words | None = None,
) -> None:
    """Add records to an encoder, in pieces.

    Args:
        encoder: the encoder; updated.
        digests: keyed digests of the records [shape=(n,), uint64].
        codes: codes of the records [shape=(d, n), uint16].
        composites, progress, words: as for :meth:`Records.encoded`.
    """
    together = max(CELLS_AT_ONCE // max(len(composites), 1), 1)
    for first in range(0, len(digests), together):
        piece = slice(first, first + together)
        keys, values = digests[piece], _values(codes[:, piece], composites)
        if words is not None:
            keys, values = keys ^ words[values[0]], np.zeros_like(values)
        encoder.update(keys, values, _Share(progress, first, len(keys), len(digests)))


@dataclass(frozen=True)
class _Share(Silent):
    """The progress of a piece, reported as part of the whole."""

    whole: Progress
    before: int
    records: int
    of: int

    def advance(self, done: int, of: int, unit: str = "") -> None:
        """Report records of the whole, in units of a piece's record."""
        self.whole.advance(self.before * of + done * self.records, self.of * of)


def _values(codes: Codes, composites: Sequence[Composite]) -> Codes:
    """Values of composites [shape=(composites, n), uint16]."""
    rows = np.empty((len(composites), codes.shape[1]), np.uint16)
    for row, composite in zip(rows, composites, strict=True):
        composite.values(codes, row)
    return rows
