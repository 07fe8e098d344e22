"""What a party asks of its records, held by one machine or by many: exact answers, which stay with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..kernels.contingency import contingency, pair_tables
from ..kernels.multiset import record_sum
from ..model.measurement import BinMap
from ..plan.attribute import Attribute
from ..plan.impossible import Combination
from ..progress import Progress, Silent
from ..tables.impossible import breaking
from ..tables.table import Table
from .persons import limited

__all__ = ["Composite", "InMemory", "Records", "count_marginals", "merged_sizes", "take_in"]

Codes = npt.NDArray[np.uint16]
Counts = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
# Values of groups that are worked out at a time: 128 MB. Scheduled pairs are encoded the faster, the fewer the pieces.
CELLS_AT_ONCE = 1 << 26


class Encoder(Protocol):
    """What records are taken into: :class:`vertimrf.sketches.encoder.Encoder` or a count sketch's."""

    def update(
        self, digests: Digests, codes: npt.NDArray[np.integer], progress: Progress | None = None
    ) -> None:
        """Take in a chunk of records."""

    def state(self) -> bytes:
        """What has been taken in, for another encoder to merge."""

    def merge_state(self, state: bytes) -> None:
        """Take over another encoder's state."""


E = TypeVar("E", bound=Encoder)


@dataclass(frozen=True, eq=False)
class Composite:
    """A value that is sketched: the bin of one attribute of the party, or the parity of the bins of several.

    Attributes:
        places: the attributes, by their rows of the codes.
        maps: per attribute, the bin of each code [shape=(size,), integer]; 0 or 1 in a parity.
    """

    places: tuple[int, ...]
    maps: tuple[npt.NDArray[np.integer], ...]

    def values(self, codes: Codes, out: Codes) -> None:
        """Write the values of records [shape=(n,), uint16], from their codes [shape=(d, n)]."""
        out[:] = 0
        for place, mapping in zip(self.places, self.maps, strict=True):
            out ^= mapping.astype(np.uint16)[codes[place]]


class Records(Protocol):
    """A party's records, encoded. All answers are exact: what leaves the party is made of them with noise."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What each record has a code of."""

    @property
    def count(self) -> int:
        """How many records there are."""

    def limited(self, most: int, key: bytes) -> Records:
        """Those of the records that take part: at most so many of every person (:func:`vertimrf.party.persons.limited`).

        Raises:
            TableError: persons may have several records, and nobody can tell whose a record is.
        """

    def possible(self, combinations: Sequence[Combination]) -> Records:
        """Those of the records that have none of these combinations of codes; the others were dropped when the table was read."""

    def marginals(
        self, wanted: Sequence[tuple[int, ...]], merged: Mapping[int, BinMap]
    ) -> Iterator[Counts]:
        """Counts of the cells of marginals, one after the other.

        Args:
            wanted: attributes of each, by their place.
            merged: by place, the map code -> merged value of attributes whose values are not counted apart.
        """

    def encoded(
        self,
        make: Callable[[], E],
        composites: Sequence[Composite],
        progress: Progress | None = None,
        words: Digests | None = None,
    ) -> E:
        """An encoder that has taken in all records.

        Args:
            make: a fresh encoder.
            composites: the values that it is for, in its order.
            progress: told of how far the work has come.
            words: with a single composite, a word for each of its values: records count by id *and* value, in one group.
        """

    def gathered(self, composites: Sequence[Composite]) -> tuple[Digests, Codes]:
        """All digests and values in one place, for what cannot do with less.

        Raises:
            PlanError: the records do not fit there.
        """

    def keyed_sum(self, key: bytes) -> int:
        """Tells whether two tables hold the same records (:mod:`vertimrf.kernels.multiset`)."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Records whose codes one process holds.

    Attributes:
        table: the codes.
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
        kept = np.ones(self.count, bool)
        for combination in combinations:
            kept &= ~breaking(self.table.codes, combination)
        return self if kept.all() else InMemory(self.table.only(kept))

    def marginals(
        self, wanted: Sequence[tuple[int, ...]], merged: Mapping[int, BinMap]
    ) -> Iterator[Counts]:
        """See :class:`Records`."""
        return count_marginals(
            self.table.codes, [attribute.size for attribute in self.attributes], wanted, merged
        )

    def encoded(
        self,
        make: Callable[[], E],
        composites: Sequence[Composite],
        progress: Progress | None = None,
        words: Digests | None = None,
    ) -> E:
        """See :class:`Records`."""
        encoder = make()
        take_in(encoder, self.table.digests, self.table.codes, composites, progress, words)
        return encoder

    def gathered(self, composites: Sequence[Composite]) -> tuple[Digests, Codes]:
        """See :class:`Records`."""
        return self.table.digests, _values(self.table.codes, composites)

    def keyed_sum(self, key: bytes) -> int:
        """See :class:`Records`."""
        return record_sum(key, self.table.digests, self.table.codes)


def merged_sizes(sizes: Sequence[int], merged: Mapping[int, BinMap]) -> list[int]:
    """Sizes of attributes, of which some have merged values."""
    return [int(merged[a].max()) + 1 if a in merged else size for a, size in enumerate(sizes)]


def count_marginals(
    codes: Codes,
    sizes: Sequence[int],
    wanted: Iterable[tuple[int, ...]],
    merged: Mapping[int, BinMap],
) -> Iterator[Counts]:
    """Count the records in every cell of marginals, one after the other; pairs that follow each other together.

    Args:
        codes: [shape=(d, n), uint16].
        sizes: of the attributes.
        wanted: attributes of each, by their row.
        merged: by row, the map code -> merged value of attributes whose values are not counted apart.
    """
    if merged:
        codes = codes.copy()
        for row, values in merged.items():
            codes[row] = values.astype(np.uint16)[codes[row]]
        sizes = merged_sizes(sizes, merged)
    for paired, some in itertools.groupby(wanted, lambda attributes: len(attributes) == 2):
        if paired:
            yield from pair_tables(codes, sizes, [(own[0], own[1]) for own in some])
        else:
            for own in some:
                yield contingency(codes, sizes, own)


def take_in(
    encoder: Encoder,
    digests: Digests,
    codes: Codes,
    composites: Sequence[Composite],
    progress: Progress | None = None,
    words: Digests | None = None,
) -> None:
    """Have an encoder take in records, some at a time; arguments as for :meth:`Records.encoded`.

    Args:
        digests: [shape=(n,), uint64].
        codes: [shape=(d, n), uint16].
    """
    together = max(CELLS_AT_ONCE // max(len(composites), 1), 1)
    told = Silent() if progress is None else progress
    for first in range(0, len(digests), together):
        some = slice(first, first + together)
        own, rows = digests[some], _values(codes[:, some], composites)
        if words is not None:
            own, rows = own ^ words[rows[0]], np.zeros_like(rows)
        encoder.update(own, rows, _Share(told, first, len(own), len(digests)))


@dataclass(frozen=True)
class _Share:
    """A piece's progress, as part of the whole's."""

    whole: Progress
    before: int
    records: int
    of: int

    def step(self, name: str) -> None:
        """Pieces have no steps of their own."""

    def advance(self, done: int, of: int) -> None:
        """Units of the pieces, taken to be equal."""
        self.whole.advance(self.before * of + done * self.records, self.of * of)


def _values(codes: Codes, composites: Sequence[Composite]) -> Codes:
    """Values of composites [shape=(composites, n), uint16]."""
    rows = np.empty((len(composites), codes.shape[1]), np.uint16)
    for row, composite in zip(rows, composites, strict=True):
        composite.values(codes, row)
    return rows
