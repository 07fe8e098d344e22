"""Public parameters of scheduled pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ...arrays import Ints, Pair
from ...errors import PlanError
from ...plan.defaults import PAIRS_BYTES
from ...privacy.events import SketchEvent
from ...privacy.ledger import LedgerEntry
from ..release import CrossPartyRelease, Groups, check_keys, check_levels, check_sizes

# Keys of a scheduled pair are cut into blocks of at most this many. Each block has random streams
# of its own, so that this number is part of the hash.
BLOCK_KEYS = 1 << 16
# Core seconds per record and block of keys, per level, packed and sealed, and per key and estimated
# cell; measured as those of plan/forecast.py.
RECORD, LEVEL, CELL_KEY = 7e-9, 50e-9, 1.1e-9


class ScheduledPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Hash keys under which two attributes of two parties are sketched, and no others.

    Attributes:
        left, right: the groups, each one attribute in some number of bins, by the plan's numbers.
        keys: number of hash keys.
    """

    left: int
    right: int
    keys: int


@dataclass(frozen=True)
class ScheduledPairs(CrossPartyRelease):
    """Public parameters of the sketches of scheduled pairs.

    The hash's parameter gamma is 1.

    Attributes:
        phantoms: number of phantom draws joined to each sketch (k_p).
        floor, ceiling: lowest and highest level published; a draw has level 1 or more.
        pairs: in publishing order.
        sizes: number of values of every group, of all parties.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    phantoms: int
    floor: int
    ceiling: int
    pairs: tuple[ScheduledPair, ...]
    sizes: Ints
    encoder = "scheduled-pairs"
    kind = "pair sketches"
    priced_by = SketchEvent
    tells_matches = True
    usual_bytes = PAIRS_BYTES
    bits = 4

    def __post_init__(self) -> None:
        check_levels(self.phantoms, self.floor, self.ceiling)
        check_sizes(self.sizes)
        for number, pair in enumerate(self.pairs):
            for group in (pair.left, pair.right):
                if not 0 <= group < len(self.sizes):
                    raise PlanError(
                        f"{_pair(number, pair)} needs two of the {len(self.sizes)} groups."
                    )
            if pair.left == pair.right:
                raise PlanError(f"{_pair(number, pair)} needs two different groups.")
            check_keys(_pair(number, pair), pair.keys)

    @property
    def event(self) -> SketchEvent:
        """The privacy event of the sketches: under each key a record enters two of them."""
        keys = sum(pair.keys for pair in self.pairs)
        return SketchEvent(self.phantoms, self.floor, self.ceiling, keys, attributes_per_key=2)

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """See :class:`CrossPartyRelease`."""
        released = f"sketches of {len(self.pairs)} pairs of attributes under {self.event.keys} keys"
        return released, f"{self.phantoms} phantoms, levels {self.floor} to {self.ceiling}"

    @classmethod
    def sentence(cls, entry: LedgerEntry, event: SketchEvent, who: str) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"{who} published sketches under {event.keys:,} secret keys, each for attributes of two parties. A sketch is the "
            f"largest of random numbers drawn for every record; {event.phantoms:,} invented records are mixed in. The sketches "
            "tell about how many records two values have in common."
        )

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[Pair]:
        """See :class:`CrossPartyRelease`; a table for each pair that a group is in."""
        wanted = set(groups)
        return [
            (self.sizes[group], pair.keys)
            for pair in self.pairs
            for group in (pair.left, pair.right)
            if group in wanted
        ]

    def check(self, sizes: Sequence[int], parties: Sequence[int]) -> None:
        """See :class:`CrossPartyRelease`; the groups of a pair must belong to two parties."""
        super().check(sizes, parties)
        for number, pair in enumerate(self.pairs):
            if parties[pair.left] == parties[pair.right]:
                raise PlanError(f"{_pair(number, pair)} needs groups of two different parties.")

    def encoding_work(self, parties: Groups, party: int, records: int) -> float:
        """See :class:`CrossPartyRelease`."""
        blocks = [
            math.ceil(pair.keys / BLOCK_KEYS)
            for pair in self.pairs
            for g in (pair.left, pair.right)
            if g in parties[party]
        ]
        return RECORD * records * sum(blocks) + LEVEL * self.held(parties, party)

    def estimating_work(self) -> float:
        """See :class:`CrossPartyRelease`."""
        sizes = self.sizes
        return sum(
            CELL_KEY * sizes[pair.left] * sizes[pair.right] * pair.keys for pair in self.pairs
        )

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        keys = [pair.keys for pair in self.pairs]
        return (
            f"sketches: {len(keys)} cross-party pairs, {sum(keys):,} keys ({min(keys):,} to {max(keys):,} each), "
            f"{self.phantoms:,} phantoms, levels {self.floor} to {self.ceiling}."
        )


def _pair(number: int, pair: ScheduledPair) -> str:
    return f"Scheduled pair {number} (groups {pair.left} and {pair.right})"
