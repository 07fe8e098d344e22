"""Public parameters of the five kinds of release across parties.

The kinds are count sketches, encrypted counts, scheduled pairs, the published encoder's shared
keys, and randomised responses. Each states its privacy events, the shapes of its tables, and why it may not be private.
Only the party that encodes and the server that estimates distinguish between them.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from ..errors import PlanError, PrivacyError
from ..files.bits import packed_size
from ..files.convert import Number, from_json, to_json
from ..privacy.accountant import epsilon as composed_epsilon
from ..privacy.events import (
    MAX_COUNT_VARIANCE,
    CountSketchEvent,
    Event,
    GaussianEvent,
    GRREvent,
    SketchEvent,
)
from ..privacy.ledger import Kind, LedgerEntry, Part
from .encrypted_counts.packing import Layout
from .shared_keys.published_claim import claimed_phantoms

REMEDY = "have the plan made again"
HIGHEST_CEILING = 40
MAX_KEYS = 1 << 31
# Keys of a scheduled pair are cut into blocks of at most this many. Each block has random streams
# of its own, so that this number is part of the hash.
BLOCK_KEYS = 1 << 16
MAX_VALUES = 1 << 16
MAX_REPETITIONS = 1 << 24
# Signs of a group's two values in its contrast.
CONTRAST_SIGNS = (1, -1)
MAX_WEIGHT = 99
BUCKETS = tuple(1 << power for power in range(1, 16))
# Most rows that a party encrypts. Of more records, a sample takes part.
MAX_CAPACITY = 1 << 18
# The error of the record count, in its standard deviations, and the spread of the sample's size, in
# square roots of the capacity, for which rows are kept free. The chance that the sample has more
# records than there are rows is below 2^-57 (Chernoff).
COUNT_REACH, SAMPLE_REACH = 12.0, 9.0
# Most parties of encrypted counts, because every set of them might collude.
MAX_ENCRYPTED_PARTIES = 8
# Least and largest noise of encrypted counts. Above the least, the sum of two discrete Gaussians
# has the price of one (see LocalPlan). The largest fits into a packed counter.
MIN_ENCRYPTED_SIGMA, MAX_ENCRYPTED_SIGMA = 4.0, 1e9


class CrossPartyRelease(ABC):
    """Base class of the five kinds of release.

    Attributes:
        encoder: the name by which users ask for this kind.
        tells_matches: whether the server can estimate how many records two parties have in common.
        publishes_rows: whether the exact number of records is released. Neighbouring tables then
            differ by replacing one record.
        claimed_share: part of (epsilon, delta) that this release claims without a proof. All other
            releases must keep to the rest.
        prices_persons: whether it has a price for persons with several records.
        reasons: why a run with it is not private, whatever the ledger's target says.
        kind: kind of the ledger's entries.
        sizes: number of values of every group, of all parties.
        floor, ceiling: lowest and highest level in a table.
        bits: bits of every number of a table in a message.
        contrasts: groups of two values of which the contrast is published, in order.
    """

    encoder: ClassVar[str]
    tells_matches: ClassVar[bool] = False
    publishes_rows: ClassVar[bool] = False
    claimed_share: ClassVar[float] = 0.0
    prices_persons: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[Kind]
    sizes: tuple[int, ...]
    floor: int
    ceiling: int
    bits: int
    contrasts: tuple[int, ...] = ()

    def rows(self, group: int) -> int:
        """Number of counters of a group: one for each value, or one for its contrast."""
        return 1 if group in self.contrasts else self.sizes[group]

    def entries(
        self,
        parties: Mapping[str, Sequence[int]],
        epsilon: float,
        delta: float,
        person: int = 1,
    ) -> list[LedgerEntry]:
        """The ledger's entries of the release: one of all parties.

        Args:
            parties: by party name, its groups by the plan's numbers.
            epsilon: the run's target.
            delta: the run's target.
            person: records of a person at most; above 1 only where :attr:`prices_persons`.
        """
        said = ("all parties", *self.in_words(epsilon, delta))
        parts = self.parts(parties, person)
        return [LedgerEntry(self.event, *said, parts=parts, kind=self.kind)]

    @property
    def event(self) -> Event:
        """The privacy event of the entry."""
        raise NotImplementedError

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """What the entry says is released, and how protected; arguments as :meth:`entries`."""
        raise NotImplementedError

    def parts(self, parties: Mapping[str, Sequence[int]], person: int = 1) -> tuple[Part, ...]:
        """The parts of parties that have a price (:meth:`part`); arguments as :meth:`entries`."""
        priced = ((name, self.part(groups, person)) for name, groups in parties.items())
        return tuple(Part(name, event) for name, event in priced if event is not None)

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """Price one party's groups by themselves, against a reader who knows the parties' secret.

        Given the secret, the parts of different parties are independent.

        Args:
            groups: the party's groups, by the plan's numbers.
            person: records of a person at most.

        Returns:
            The privacy event; None if no event bounds the loss, or if the groups show nothing.
        """
        return None

    @abstractmethod
    def shapes(self, groups: Sequence[int], rows: int) -> list[tuple[int, int]]:
        """Shapes of the tables that a party publishes for its groups, in publishing order.

        Args:
            groups: the party's groups, by the plan's numbers.
            rows: number of records; used only where each record has a column of its own.

        Returns:
            (rows, columns) of each table.
        """

    def highest(self, groups: Sequence[int]) -> list[int]:
        """Highest level that is allowed in each of these tables."""
        return [self.ceiling] * len(self.shapes(groups, 0))

    def check(self, sizes: Sequence[int], parties: Sequence[int]) -> None:
        """Check that the parameters fit the plan's groups.

        Args:
            sizes: number of values of every group.
            parties: position of the party that publishes each group.

        Raises:
            PlanError: they do not fit.
        """
        if self.sizes != tuple(sizes):
            raise PlanError("The plan's sketches do not fit its groups.")

    @abstractmethod
    def summary(self) -> str:
        """One line for people."""

    def keeps_claim(self, epsilon: float, delta: float) -> bool:
        """Whether the parameters are those that the claim asks for under a run's target."""
        return True


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
class SketchPlan(CrossPartyRelease):
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
    sizes: tuple[int, ...]
    encoder = "scheduled-pairs"
    kind = Kind.PAIR_SKETCHES
    tells_matches = True
    bits = 4

    def __post_init__(self) -> None:
        _check_levels(self.phantoms, self.floor, self.ceiling)
        _check_sizes(self.sizes)
        for number, pair in enumerate(self.pairs):
            for group in (pair.left, pair.right):
                if not 0 <= group < len(self.sizes):
                    raise PlanError(
                        f"{_pair(number, pair)} needs two of the {len(self.sizes)} groups."
                    )
            if pair.left == pair.right:
                raise PlanError(f"{_pair(number, pair)} needs two different groups.")
            _check_keys(_pair(number, pair), pair.keys)

    @property
    def event(self) -> SketchEvent:
        """The privacy event of the sketches: under each key a record enters two of them."""
        keys = sum(pair.keys for pair in self.pairs)
        return SketchEvent(self.phantoms, self.floor, self.ceiling, keys, attributes_per_key=2)

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """See :class:`CrossPartyRelease`."""
        released = f"sketches of {len(self.pairs)} pairs of attributes under {self.event.keys} keys"
        return released, f"{self.phantoms} phantoms, levels {self.floor} to {self.ceiling}"

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
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

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        keys = [pair.keys for pair in self.pairs]
        return (
            f"sketches: {len(keys)} cross-party pairs, {sum(keys):,} keys ({min(keys):,} to {max(keys):,} each), "
            f"{self.phantoms:,} phantoms, levels {self.floor} to {self.ceiling}."
        )


@dataclass(frozen=True)
class CountSketchPlan(CrossPartyRelease):
    """Public parameters of the count sketches.

    Every value of every group has a row of repetitions x buckets counters. All rows use the same
    secret buckets and signs. Some groups of two values have one row instead, for their contrast: a
    record of the first value adds its sign, and a record of the other subtracts it
    (:data:`CONTRAST_SIGNS`).

    A group's weight is by how much a record moves its counters; their noise has a variance as many
    times larger. So a larger weight means less noise relative to the counts. A weight w is priced
    as w equal groups, of which the sum of the counters is published. Weights are odd, so that the
    sum of w half-integers is a half-integer.

    Attributes:
        repetitions: repetitions of the hash.
        buckets: buckets of a repetition, a power of two so that all are equally likely.
        variance: parameter of the discrete Gaussian noise of a counter of weight 1.
        bits: bits of every counter as published.
        sizes: number of values of every group, of all parties.
        contrasts: groups of two values that are published as contrasts, in order.
        weights: weight of every group; () means that all have weight 1.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    repetitions: int
    buckets: int
    variance: Number
    bits: int
    sizes: tuple[int, ...]
    contrasts: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    encoder = "count-sketch"
    kind = Kind.COUNT_SKETCHES
    prices_persons = True
    tells_matches = True
    floor = 0

    def __post_init__(self) -> None:
        if not 1 <= self.repetitions <= MAX_REPETITIONS:
            raise PlanError(
                f"Count sketches take 1 to {MAX_REPETITIONS:,} repetitions, not {self.repetitions}."
            )
        if self.buckets not in BUCKETS:
            raise PlanError(
                f"Count sketches take a power of two of buckets, 2 to {BUCKETS[-1]:,}, not {self.buckets}."
            )
        if not 1 <= self.bits <= 4:
            raise PlanError(f"Count sketches publish 1 to 4 bits of a number, not {self.bits}.")
        if not self.sizes:
            raise PlanError("A count sketch needs at least one group.")
        _check_sizes(self.sizes)
        _check_contrasts(self.contrasts, self.sizes)
        if self.weights and len(self.weights) != len(self.sizes):
            raise PlanError(
                f"There are {len(self.weights)} weights of {len(self.sizes)} groups; give each group one."
            )
        for weight in self.weights:
            if weight % 2 == 0 or not 1 <= weight <= MAX_WEIGHT:
                raise PlanError(
                    f"A group's weight is an odd number from 1 to {MAX_WEIGHT}, not {weight}."
                )
        try:
            moved = self.event.groups
        except PrivacyError as error:
            raise PlanError(f"These count sketches have no price: {error}") from None
        if self.variance < moved:
            raise PlanError(
                f"These count sketches have noise of variance {self.variance:g} where a record moves {moved} counters: "
                "the variance must be at least that number, or the record alone would show."
            )
        if (most := max(self.weights, default=1) * self.variance) > MAX_COUNT_VARIANCE:
            raise PlanError(
                f"Noise of variance {most:,.0f} is more than can be drawn ({MAX_COUNT_VARIANCE:,.0f})."
            )

    @property
    def numbers(self) -> int:
        """Number of counters of every value (t)."""
        return self.repetitions * self.buckets

    @property
    def event(self) -> CountSketchEvent:
        """The privacy event of the sketches: a record moves one counter of each group."""
        moved = sum(self.weights) or len(self.sizes)
        return CountSketchEvent(moved, self.variance, self.buckets, self.repetitions)

    def weight(self, group: int) -> int:
        """By how much a record moves a counter of a group."""
        return self.weights[group] if self.weights else 1

    def noise(self, weight: int = 1) -> float:
        """Number of records that add as much variance to a group's counters as the noise does."""
        return self.variance * self.buckets / weight

    def entries(
        self,
        parties: Mapping[str, Sequence[int]],
        epsilon: float,
        delta: float,
        person: int = 1,
    ) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`."""
        (entry,) = super().entries(parties, epsilon, delta, person)
        steps = (min(self.weights), max(self.weights)) if self.weights else None
        # With one record of a person, other ids at other parties cost nothing.
        holders = sum(map(bool, parties.values())) if person > 1 else 1
        event = replace(self.event, records=person, parties=holders)
        return [replace(entry, event=event, weights=steps)]

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """See :class:`CrossPartyRelease`."""
        weights = self.weights
        per_weight = (
            f" for every 1 by which a record moves it ({min(weights)} to {max(weights)})"
            if weights
            else ""
        )
        released = f"count sketches of {len(self.sizes)} attribute groups, {self.repetitions:,} repetitions of {self.buckets:,} buckets"
        noise = f"discrete Gaussian of variance {self.variance:.2f} in each{per_weight}, {self.bits} bits published"
        return released, noise

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """See :class:`CrossPartyRelease`; who knows the secret knows the buckets and signs."""
        moved = sum(map(self.weight, groups))
        return replace(self.event, groups=moved, records=person).known_hashes if moved else None

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; one table for each group."""
        return [(self.rows(group), self.numbers) for group in groups]

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [(1 << self.bits) - 1] * len(groups)

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        per_weight = (
            f" times weights of {min(self.weights)} to {max(self.weights)}" if self.weights else ""
        )
        return (
            f"count sketches: {len(self.sizes)} attribute groups, {self.numbers:,} numbers a value ({self.repetitions:,} "
            f"repetitions of {self.buckets:,} buckets), noise variance {self.variance:.1f}{per_weight}, {self.bits} bits each."
        )


@dataclass(frozen=True)
class EncryptedCountsPlan(CrossPartyRelease):
    """Public parameters of encrypted counts.

    Of every two parties, the earlier one encrypts its rows, and the later one adds them for each of
    its values. The result is a table of exact counts for every two of their groups. Both parties
    add noise to it. A group of two values may have one counter, for its contrast: records of the
    first value minus records of the second (:data:`CONTRAST_SIGNS`).

    A record moves one number of each table by 1. Its row stays, blank, where it does not fit. Rows
    have the order of keyed digests of the ids, which all parties hold. Rows are as many as the
    capacity, whatever the number of records.

    Attributes:
        sigma: noise of either party on every number, in records.
        capacity: number of encrypted rows.
        sizes: number of values of every group, of all parties.
        contrasts: groups of two values that are counted as contrasts, in order.

    Raises:
        PlanError: parameters that no counts can have.
    """

    sigma: Number
    capacity: int
    sizes: tuple[int, ...]
    contrasts: tuple[int, ...] = ()
    encoder = "encrypted"
    kind = Kind.ENCRYPTED_COUNTS
    bits = 4
    floor = 0
    ceiling = 0

    def __post_init__(self) -> None:
        if not MIN_ENCRYPTED_SIGMA <= self.sigma <= MAX_ENCRYPTED_SIGMA:
            raise PlanError(
                f"Encrypted counts have noise of {MIN_ENCRYPTED_SIGMA:g} to {MAX_ENCRYPTED_SIGMA:g} records, not {self.sigma:g}."
            )
        if not 1 <= self.capacity <= MAX_CAPACITY:
            raise PlanError(
                f"Encrypted counts take 1 to {MAX_CAPACITY:,} rows, not {self.capacity:,}."
            )
        _check_sizes(self.sizes)
        _check_contrasts(self.contrasts, self.sizes)

    def layout(self, groups: Sequence[int]) -> Layout:
        """The layout of the encrypted rows of a party with these groups."""
        return Layout(
            tuple(self.sizes[g] for g in groups),
            self.capacity,
            self.sigma,
            contrasts=tuple(i for i, g in enumerate(groups) if g in self.contrasts),
            signed=bool(self.contrasts),
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
        """See :class:`CrossPartyRelease`; an entry for every two parties.

        The server sees the noise of both. Who colludes with one of them knows that one's noise.
        """
        noise = f"discrete Gaussian by each of the two, sigma {self.sigma:.1f}"
        out = []
        for (one, left), (other, right) in itertools.combinations(parties.items(), 2):
            if tables := len(left) * len(right):
                single = GaussianEvent(self.sigma, 1, tables)
                both = replace(single, sigma=math.sqrt(2) * self.sigma)
                said = (f"{one} and {other}", f"{tables} tables of counts", noise)
                parts = (Part(one, single), Part(other, single))
                out.append(LedgerEntry(both, *said, parts=parts, kind=self.kind))
        return out

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
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

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"encrypted counts: {len(self.sizes)} attribute groups, {self.capacity:,} encrypted rows, noise of "
            f"{self.sigma:.1f} records by each of two parties."
        )


@dataclass(frozen=True)
class SharedKeyPlan(CrossPartyRelease):
    """Public parameters of the published encoder's sketches.

    Attributes:
        phantoms, floor, ceiling: as in :class:`SketchPlan`.
        keys: number of hash keys (t), which all attributes share.
        sizes: number of values of every attribute, of all parties.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    phantoms: int
    floor: int
    ceiling: int
    keys: int
    sizes: tuple[int, ...]
    encoder = "published"
    kind = Kind.SHARED_KEY_SKETCHES
    bits = 4
    claimed_share = 0.5
    reasons = (
        "claim as published, which does not hold: sketches under shared keys give complete records away",
    )

    def __post_init__(self) -> None:
        _check_levels(self.phantoms, self.floor, self.ceiling)
        _check_keys("The plan", self.keys)
        _check_sizes(self.sizes)

    @property
    def event(self) -> SketchEvent:
        """The privacy event of the sketches: a key has one sketch of each attribute."""
        return SketchEvent(
            self.phantoms, self.floor, self.ceiling, self.keys, attributes_per_key=len(self.sizes)
        )

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """See :class:`CrossPartyRelease`."""
        claimed, at = epsilon * self.claimed_share, delta * self.claimed_share
        exact = composed_epsilon([self.event], at).epsilon
        noise = (
            f"{self.phantoms} phantoms, levels {self.floor} to {self.ceiling}; claimed epsilon {claimed:g}, exactly {exact:.1f}, "
            f"at delta {at:.3g}"
        )
        return (
            f"sketches of {len(self.sizes)} attributes, all under the same {self.keys} keys",
            noise,
        )

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; one table for each attribute."""
        return [(self.sizes[group], self.keys) for group in groups]

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"sketches: {self.keys:,} keys shared by all attributes, {self.phantoms:,} phantoms, levels {self.floor} to "
            f"{self.ceiling}."
        )

    def keeps_claim(self, epsilon: float, delta: float) -> bool:
        """See :class:`CrossPartyRelease`; the claim asks for the paper's number of phantoms."""
        share = self.claimed_share
        return self.phantoms >= claimed_phantoms(
            epsilon * share, delta * share, self.keys, len(self.sizes)
        )


def _check_levels(phantoms: int, floor: int, ceiling: int) -> None:
    if phantoms < 1:
        raise PlanError(
            f"Sketches need at least 1 phantom, not {phantoms}; without phantoms they are not private."
        )
    if not 0 <= floor < ceiling <= HIGHEST_CEILING:
        raise PlanError(
            f"Levels need 0 <= floor < ceiling <= {HIGHEST_CEILING}, not floor {floor} and ceiling {ceiling}."
        )


def _check_contrasts(contrasts: Sequence[int], sizes: Sequence[int]) -> None:
    possible = {g for g in contrasts if 0 <= g < len(sizes) and sizes[g] == 2}
    if list(contrasts) != sorted(possible):
        raise PlanError(f"Contrasts are of groups of 2 values, in order, not of {list(contrasts)}.")


def _pair(number: int, pair: ScheduledPair) -> str:
    return f"Scheduled pair {number} (groups {pair.left} and {pair.right})"


def _check_keys(where: str, keys: int) -> None:
    if not 1 <= keys <= MAX_KEYS:
        raise PlanError(f"{where} has {keys} keys; it needs at least 1 and at most 2^31.")


def _check_sizes(sizes: Sequence[int], most: int = MAX_VALUES) -> None:
    for group, size in enumerate(sizes):
        if not 1 <= size <= most:
            raise PlanError(f"Group {group} has {size} values; this encoder takes 1 to {most:,}.")


@dataclass(frozen=True)
class ResponsePlan(CrossPartyRelease):
    """Public parameters of the randomised responses.

    Attributes:
        epsilon: local epsilon of each attribute.
        sizes: number of values of each attribute, of all parties; at most 16.

    Raises:
        PlanError: parameters that no response can have.
    """

    epsilon: Number
    sizes: tuple[int, ...]
    encoder = "grr"
    kind = Kind.RESPONSES
    bits = 4
    publishes_rows = True
    floor = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise PlanError(f"Randomised responses need an epsilon above 0, not {self.epsilon}.")
        _check_sizes(self.sizes, most=16)

    @property
    def event(self) -> GRREvent:
        """The privacy event of all responses of one record."""
        return GRREvent(self.epsilon, self.sizes)

    def kept(self, size: int) -> float:
        """Probability that a value is reported unchanged: e^eps / (e^eps + size - 1).

        Args:
            size: number of values.
        """
        return 1 / (1 + (size - 1) * math.exp(-self.epsilon))

    def claimed_epsilon(self, delta: float) -> float:
        """The paper's claim for d attributes (Theorem 3).

        It is min(d eps / 2, 2 eps sqrt(2 d log(1 / delta))). The paper counts a replacement as two
        steps, although the number of rows is published. The exact value of :attr:`event` at delta =
        0 is d eps.

        Args:
            delta: at which delta.
        """
        d = len(self.sizes)
        return min(d * self.epsilon / 2, 2 * self.epsilon * math.sqrt(2 * d * math.log(1 / delta)))

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """See :class:`CrossPartyRelease`."""
        claimed = self.claimed_epsilon(delta)
        noise = f"randomised response, epsilon {self.epsilon:.4f} each (Theorem 3 states {claimed:.3g} for all)"
        return f"every row's {len(self.sizes)} attributes, and how many rows there are", noise

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """See :class:`CrossPartyRelease`; responses do not depend on the secret."""
        sizes = tuple(self.sizes[group] for group in groups)
        return replace(self.event, sizes=sizes) if any(size > 1 for size in sizes) else None

    def shapes(self, groups: Sequence[int], rows: int) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; a row of responses for each attribute."""
        return [(1, rows)] * len(groups)

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [self.sizes[group] - 1 for group in groups]

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return f"every row by randomised response, epsilon {self.epsilon:.4f} an attribute."


def packed_bytes(shapes: Sequence[tuple[int, int]], bits: int) -> int:
    """Bytes of tables in a message.

    Args:
        shapes: (rows, columns) of each table.
        bits: bits of each number.
    """
    return sum(packed_size(values * keys, bits) for values, keys in shapes)


KINDS: Mapping[str, type[CrossPartyRelease]] = {
    kind.encoder: kind
    for kind in (CountSketchPlan, EncryptedCountsPlan, SketchPlan, SharedKeyPlan, ResponsePlan)
}


def release_to_json(release: CrossPartyRelease | None) -> dict[str, Any] | None:
    """The fields of a release with the name of its kind, as JSON-able values."""
    if release is None:
        return None
    named = to_json(release)
    # Without weights they are left out, as in plans from before there were any.
    if not named.get("weights", True):
        del named["weights"]
    return {"encoder": release.encoder, **named}


def release_from_json(data: Any) -> CrossPartyRelease | None:
    """Read a release from the JSON of :func:`release_to_json`.

    Raises:
        PlanError: an unknown kind, or parameters that it cannot have.
    """
    if data is None:
        return None
    named = from_json(data, dict[str, Any], "The plan's sketch", REMEDY, PlanError)
    encoder = named.pop("encoder", None)
    if encoder not in [*KINDS]:
        raise PlanError(f"Unknown encoder {encoder!r}; this version knows {', '.join(KINDS)}.")
    kind = KINDS[encoder]
    return from_json(named, kind, "The plan's sketch", REMEDY, PlanError, known_only=True)
