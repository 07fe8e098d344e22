"""Public parameters of encrypted counts."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from ...arrays import Floats, Ints, Pair
from ...errors import PlanError, several
from ...files.convert import Number
from ...plan.options import PlanOptions, flag
from ...privacy.events import GaussianEvent
from ...privacy.ledger import LedgerEntry, Part
from ..release import (
    AGAIN,
    ANSWERS,
    IDS,
    ROWS,
    CrossPartyRelease,
    Groups,
    check_contrasts,
    check_sizes,
)
from .packing import Layout

if TYPE_CHECKING:
    from ...plan.shares import Outlook

# Most rows that a party encrypts. Of more records, a sample takes part.
MAX_CAPACITY = 1 << 24
# The error of the record count, in its standard deviations, and the spread of the sample's size, in
# square roots of the capacity, for which rows are kept free. The chance that the sample has more
# records than there are rows is below 2^-57 (Chernoff).
COUNT_REACH, SAMPLE_REACH = 12.0, 9.0
# Core seconds for a block of rows: per slot that is encrypted; per sum; per sum and slot, which is
# also what a sum's opening takes. Measured as those of plan/forecast.py.
ENCRYPTION, ADDITION, WEIGHING = 0.27e-3, 0.2e-3, 10e-6
# Most parties of encrypted counts, because every set of them might collude.
MAX_ENCRYPTED_PARTIES = 8
# Bytes of a point by which ids are compared.
POINT_BYTES = 32
# Least and largest noise of encrypted counts. Above the least, the sum of two discrete Gaussians
# has the price of one (see LocalPlan). The largest fits into a packed counter.
MIN_ENCRYPTED_SIGMA, MAX_ENCRYPTED_SIGMA = 4.0, 1e9
# Weights of tables grow with this power of their numbers: half of 2/3, at which the sum of errors
# would be least if noise were the only one, as for count sketches (count_sketches/weights.py).
TABLE_EXPONENT = 1 / 3


def table_weight(numbers: npt.ArrayLike) -> Floats:
    """Weights of tables of so many numbers: powers of 2, so that there are few noises to price
    [shape of ``numbers``, float64].
    """
    return 2 ** np.rint(TABLE_EXPONENT * np.log2(numbers))


def table_weights(counters: Sequence[Floats]) -> dict[Pair, Floats]:
    """Weights of the tables of every two parties.

    Args:
        counters: by party, the number of counters of each of its groups.

    Returns:
        By positions of two parties, the weights [shape=(groups of one, of the other), float64].
    """
    pairs = itertools.combinations(range(len(counters)), 2)
    return {(i, j): table_weight(np.outer(counters[i], counters[j])) for i, j in pairs}


def least_noise(sizes: Sequence[int]) -> float:
    """Least noise in a table of weight 1, for groups of these sizes."""
    return MIN_ENCRYPTED_SIGMA * math.sqrt(table_weight(math.prod(sorted(sizes)[-2:])))


@dataclass(frozen=True)
class EncryptedCounts(CrossPartyRelease):
    """Public parameters of encrypted counts.

    Of every two parties, the earlier one encrypts its rows, and the later one adds them for each of
    its values. The result is a table of exact counts for every two of their groups. Both parties
    add noise to it. A group of two values may have one counter, for its contrast: records of the
    first value minus records of the second (:data:`CONTRAST_SIGNS`).

    A record moves one number of each table by 1. Its row stays, blank, where it does not fit. Rows
    have the order of keyed digests of the ids, which all parties hold. Rows are as many as the
    capacity, whatever the number of records.

    Attributes:
        sigma: noise of either party on every number of a table of weight 1 (:func:`table_weight`), in
            records. The variance in others is divided by their weights.
        capacity: number of encrypted rows.
        sizes: number of values of every group, of all parties.
        contrasts: groups of two values that are counted as contrasts, in order.

    Raises:
        PlanError: parameters that no counts can have.
    """

    sigma: Number
    capacity: int
    sizes: Ints
    contrasts: Ints = ()
    encoder = "encrypted"
    kind = "encrypted counts"
    priced_by = GaussianEvent
    forecast = True
    exchanges = True
    # Files are packed, sealed and recorded.
    width = 5
    bits = 4
    floor = 0
    ceiling = 0

    @classmethod
    def refused(cls, planning: PlanOptions) -> str | None:
        """See :class:`CrossPartyRelease`."""
        for name in ("collusion_epsilon", "keys", "message_bytes"):
            if getattr(planning, name) is not None:
                return f"Encrypted counts have a fixed size, and their epsilon holds if parties collude: leave {flag(name)} out."
        return None

    def __post_init__(self) -> None:
        check_sizes(self.sizes)
        least = least_noise(self.sizes)
        if not least <= self.sigma <= MAX_ENCRYPTED_SIGMA:
            raise PlanError(
                f"Encrypted counts of these groups have noise of {least:g} to {MAX_ENCRYPTED_SIGMA:g} records, not {self.sigma:g}."
            )
        if not 1 <= self.capacity <= MAX_CAPACITY:
            raise PlanError(
                f"Encrypted counts take 1 to {MAX_CAPACITY:,} rows, not {self.capacity:,}."
            )
        check_contrasts(self.contrasts, self.sizes)

    def noise(self, one: int, other: int) -> float:
        """Noise of either party on every number of the table of two groups, in records."""
        return self.sigma / math.sqrt(table_weight(self.rows(one) * self.rows(other)))

    def layout(self, groups: Sequence[int]) -> Layout:
        """The layout of the encrypted rows of a party with these groups; the rest may be others'."""
        others = [g for g in range(len(self.sizes)) if g not in groups]
        return Layout(
            tuple(self.sizes[g] for g in groups),
            self.capacity,
            max(
                itertools.starmap(self.noise, itertools.product(groups, others)), default=self.sigma
            ),
            contrasts=tuple(i for i, g in enumerate(groups) if g in self.contrasts),
            signed=bool(self.contrasts),
            sums=sum(map(self.rows, others)),
        )

    def sampled(self, count: float, sigma: float) -> float:
        """Share of the records that take part.

        The rest of the capacity is for the error of the count and for the spread of the sample.

        Args:
            count: the noisy record count.
            sigma: its noise.
        """
        reserve = COUNT_REACH * sigma + SAMPLE_REACH * math.sqrt(self.capacity)
        return min(max(self.capacity - reserve, 1.0) / max(count, 1.0), 1.0)

    def entries(
        self,
        parties: Mapping[str, Sequence[int]],
        epsilon: float,
        delta: float,
        person: int = 1,
    ) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`; an entry for every two parties and noise.

        The server sees the noise of both. Who colludes with one of them knows that one's noise.
        """
        out = []
        for (one, left), (other, right) in itertools.combinations(parties.items(), 2):
            noises = itertools.starmap(self.noise, itertools.product(left, right))
            for sigma, tables in sorted(collections.Counter(noises).items()):
                single = GaussianEvent(sigma, 1, tables)
                both = replace(single, sigma=math.sqrt(2) * sigma)
                noise = f"discrete Gaussian by each of the two, sigma {sigma:.1f}"
                said = (f"{one} and {other}", f"{several(tables, 'table')} of counts", noise)
                parts = (Part(one, single), Part(other, single))
                out.append(LedgerEntry(both, *said, parts=parts, kind=self.kind))
        return out

    @classmethod
    def sentence(cls, entry: LedgerEntry, event: GaussianEvent, who: str) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"{who} counted their common records by a value of one and a value of the other, in {several(event.count, 'table')}, without "
            "seeing each other's records. Each added random noise to every count: typically "
            f"{event.sigma:,.0f} records up or down in all."
        )

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[Pair]:
        """See :class:`CrossPartyRelease`; a message has counts in place of levels."""
        return []

    def check(self, sizes: Sequence[int], parties: Sequence[int]) -> None:
        """See :class:`CrossPartyRelease`; two to eight parties have groups."""
        super().check(sizes, parties)
        if not 2 <= len(set(parties)) <= MAX_ENCRYPTED_PARTIES:
            raise PlanError(
                f"Encrypted counts are for 2 to {MAX_ENCRYPTED_PARTIES} parties with attributes, not {len(set(parties))}: use "
                "count sketches."
            )

    def counted_pairs(self, parties: Groups, party: int) -> list[Pair]:
        """See :class:`CrossPartyRelease`."""
        return [(g, mine) for some in parties[party + 1 :] for g in some for mine in parties[party]]

    @property
    def count_noise(self) -> float:
        """See :class:`CrossPartyRelease`; it is that of two parties, at most."""
        return math.sqrt(2) * self.sigma

    def files(self, parties: Groups) -> list[tuple[str, int, int, int, int]]:
        """See :class:`CrossPartyRelease`; every two parties compare their ids. Then the earlier one
        sends rows, and the later one answers them.
        """
        holders = [party for party, groups in enumerate(parties) if groups]
        two = list(itertools.permutations(holders, 2))
        out = [(kind, one, other, 0, POINT_BYTES) for kind in (IDS, AGAIN) for one, other in two]
        for one, other in itertools.combinations(holders, 2):
            layout = self.layout(parties[one])
            answers = layout.answer_bytes(sum(map(self.rows, parties[other])))
            pieces = [layout.piece_bytes(piece) for piece in range(len(layout.pieces))]
            out += [(ROWS, one, other, piece, size) for piece, size in enumerate(pieces)]
            out.append((ANSWERS, other, one, 0, answers))
        return out

    def packed_size(self, parties: Groups, party: int, rows: int) -> int:
        """See :class:`CrossPartyRelease`."""
        pairs = self.counted_pairs(parties, party)
        return 8 * sum(self.rows(one) * self.rows(other) for one, other in pairs)

    def held(self, parties: Groups, party: int) -> float:
        """See :class:`CrossPartyRelease`; the largest file."""
        return float(max(size for *_, size in self.files(parties)))

    def encoding_work(self, parties: Groups, party: int, records: int) -> float:
        """See :class:`CrossPartyRelease`; a party encrypts its rows, and adds and opens others'."""
        sums = [sum(map(self.rows, some)) for some in parties]
        if not sums[party]:
            return 0.0
        mine = self.layout(parties[party])
        work = mine.slots * WEIGHING * sum(sums[party + 1 :])
        work += mine.slots * ENCRYPTION * (mine.blocks + 1) * any(sums[party + 1 :])
        for earlier in filter(None, parties[:party]):
            theirs = self.layout(earlier).slots
            work += sums[party] * (mine.blocks + 1) * (ADDITION + theirs * WEIGHING)
        return work

    def spent(self, outlook: Outlook) -> float | None:
        """See :class:`CrossPartyRelease`."""
        return _total(_weights(outlook)) / (4 * self.sigma**2)

    @classmethod
    def usual_error(cls, outlook: Outlook, rho: float) -> float:
        """See :class:`CrossPartyRelease`."""
        return _sample_scale(outlook) * math.sqrt(outlook.pairs_across / (2 * rho))

    @classmethod
    def pair_variance(cls, outlook: Outlook, rho: float, i: int, j: int) -> Floats:
        """See :class:`CrossPartyRelease`; a table has the noise of two parties, and is scaled from the
        sample to all records.
        """
        weights = _weights(outlook)
        return _sample_scale(outlook) ** 2 * _total(weights) / (2 * rho) / weights[i, j]

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"encrypted counts: {len(self.sizes)} attribute groups, {self.capacity:,} encrypted rows, noise of at most "
            f"{self.sigma:.1f} records by each of two parties, less in larger tables."
        )


def _weights(outlook: Outlook) -> dict[Pair, Floats]:
    """Weights of the tables of columns; those of two values have one counter, their contrast."""
    return table_weights(
        [
            np.where(sizes == 2, 1.0, counters)
            for (sizes, _), counters in zip(outlook.by_party, outlook.counters, strict=True)
        ]
    )


def _total(weights: Mapping[Pair, Floats]) -> float:
    return sum(float(some.sum()) for some in weights.values())


def _sample_scale(outlook: Outlook) -> float:
    """Records for each row that there is room for."""
    return max(outlook.records / MAX_CAPACITY, 1.0)
