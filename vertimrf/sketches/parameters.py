"""Public parameters of what parties release about values across parties: scheduled pairs, count sketches, shared keys,
randomised responses.

The kinds speak for themselves: what they cost, which tables they publish, and why they may not be private. Only the party
that encodes and the server that estimates need to tell them apart.
"""

from __future__ import annotations

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
from ..privacy.events import MAX_COUNT_VARIANCE, CountSketchEvent, Event, GRREvent, SketchEvent
from ..privacy.ledger import Kind, LedgerEntry
from .claims import claimed_phantoms

__all__ = [
    "BLOCK_KEYS",
    "CONTRAST_SIGNS",
    "CountSketchPlan",
    "CrossPartyRelease",
    "ResponsePlan",
    "ScheduledPair",
    "SharedKeyPlan",
    "SketchPlan",
    "packed_bytes",
    "release_from_json",
    "release_to_json",
]

REMEDY = "have the plan made again"
HIGHEST_CEILING = 40
MAX_KEYS = 1 << 31
# Keys of a scheduled pair are cut into blocks of at most this many, each with its own streams: part of the hash.
BLOCK_KEYS = 1 << 16
MAX_VALUES = 1 << 16
MAX_REPETITIONS = 1 << 24
# Of a group's two values in its contrast.
CONTRAST_SIGNS = (1, -1)
MAX_WEIGHT = 99
BUCKETS = tuple(1 << power for power in range(1, 16))


class CrossPartyRelease(ABC):
    """What the kinds have in common.

    Attributes:
        encoder: the name by which users ask for this kind.
        tells_matches: whether the server learns how many records two parties have in common.
        publishes_rows: whether the exact number of records is released; neighbours then differ by replacing one.
        claimed_share: part of (epsilon, delta) that is a mere claim for this release; what else is released is held to the rest.
        prices_persons: whether it has a price for persons with several records.
        reasons: why a run with it is not private, whatever the ledger's target says.
        floor: lowest level that a table holds.
        bits: of every number of a table in a message.
    """

    encoder: ClassVar[str]
    tells_matches: ClassVar[bool] = False
    publishes_rows: ClassVar[bool] = False
    claimed_share: ClassVar[float] = 0.0
    prices_persons: ClassVar[bool] = False
    reasons: ClassVar[tuple[str, ...]] = ()
    floor: int
    bits: int

    @abstractmethod
    def entries(self, epsilon: float, delta: float, person: int = 1) -> list[LedgerEntry]:
        """Its events, of all parties together, under a run's target; where :attr:`prices_persons`, for a person's records."""

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """What one party's groups cost by themselves, against somebody who knows the parties' secret.

        Parts of different parties are independent given the secret. None where no event bounds it, or the groups tell nothing.
        """
        return None

    @abstractmethod
    def shapes(self, groups: Sequence[int], rows: int) -> list[tuple[int, int]]:
        """Shape (values, keys) of every table that a party publishes for its groups, in publishing order.

        Args:
            groups: the party's groups, by the plan's numbers.
            rows: records; counts only where each has a place in the tables.
        """

    @abstractmethod
    def highest(self, groups: Sequence[int]) -> list[int]:
        """Highest level that each of these tables may hold."""

    @abstractmethod
    def check(self, sizes: Sequence[int]) -> None:
        """Check that it fits the plan's groups.

        Args:
            sizes: number of values of every group.

        Raises:
            PlanError: it does not.
        """

    @abstractmethod
    def summary(self) -> str:
        """A line on it for people."""

    def keeps_claim(self, epsilon: float, delta: float) -> bool:
        """Whether it is what it claims to be under a run's target."""
        return True


class ScheduledPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys under which one group of each of two parties is sketched.

    Attributes:
        left, right: the groups (attributes), at two different parties, numbered as the plan numbers them.
        keys: hash keys of this pair.
        left_bins, right_bins: values published per key on either side.
    """

    left: int
    right: int
    keys: int
    left_bins: int
    right_bins: int


@dataclass(frozen=True)
class SketchPlan(CrossPartyRelease):
    """Public parameters of the scheduled-pair sketches; the hash's parameter gamma is 1.

    Attributes:
        phantoms: phantom draws joined into each sketch (k_p).
        floor, ceiling: published levels lie within; level 1 is the lowest a draw can have.
        pairs: the key schedule, in publishing order.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    phantoms: int
    floor: int
    ceiling: int
    pairs: tuple[ScheduledPair, ...]
    encoder = "scheduled-pairs"
    tells_matches = True
    bits = 4

    def __post_init__(self) -> None:
        _check_levels(self.phantoms, self.floor, self.ceiling)
        sizes: dict[int, int] = {}
        for number, pair in enumerate(self.pairs):
            if pair.left == pair.right:
                raise PlanError(f"{_pair(number, pair)} needs two different groups.")
            if not (
                type(pair.keys) is type(pair.left) is type(pair.right) is int
                and 1 <= pair.keys <= MAX_KEYS
            ):
                if type(pair.left) is not int or type(pair.right) is not int:
                    raise PlanError(f"{_pair(number, pair)} needs the numbers of two groups.")
                _check_keys(_pair(number, pair), pair.keys)
            for group, bins in ((pair.left, pair.left_bins), (pair.right, pair.right_bins)):
                if type(bins) is not int or not 1 <= bins <= MAX_VALUES:
                    _check_size(f"{_pair(number, pair)}, group {group}", bins)
                if sizes.setdefault(group, bins) != bins:
                    raise PlanError(
                        f"{_pair(number, pair)} has {bins} values of group {group}, an earlier pair {sizes[group]}; make them "
                        "equal."
                    )

    @property
    def event(self) -> SketchEvent:
        """The privacy event of the sketches: keys independent, two sketches to a key."""
        keys = sum(pair.keys for pair in self.pairs)
        return SketchEvent(self.phantoms, self.floor, self.ceiling, keys, attributes_per_key=2)

    def entries(self, epsilon: float, delta: float, person: int = 1) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`."""
        noise = f"{self.phantoms} phantoms, levels {self.floor} to {self.ceiling}"
        released = (
            f"sketches of {len(self.pairs)} pairs of attribute groups under {self.event.keys} keys"
        )
        return [LedgerEntry(self.event, "all parties", released, noise, kind=Kind.PAIR_SKETCHES)]

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; a table per scheduled pair that one of the groups takes part in."""
        mine = set(groups)
        return [
            (bins, pair.keys)
            for pair in self.pairs
            for group, bins in ((pair.left, pair.left_bins), (pair.right, pair.right_bins))
            if group in mine
        ]

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [self.ceiling] * len(self.shapes(groups))

    def check(self, sizes: Sequence[int]) -> None:
        """See :class:`CrossPartyRelease`."""
        for pair in self.pairs:
            if not (0 <= pair.left < len(sizes) and 0 <= pair.right < len(sizes)):
                raise PlanError(
                    f"A key serves the groups {pair.left} and {pair.right}, of which there are {len(sizes)}."
                )
            if sizes[pair.left] != pair.left_bins or sizes[pair.right] != pair.right_bins:
                raise PlanError(
                    f"The keys of groups {pair.left} and {pair.right} do not fit their values."
                )

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        keys = [pair.keys for pair in self.pairs]
        return (
            f"sketches: {len(keys)} cross-party marginals, {sum(keys):,} keys ({min(keys):,} to {max(keys):,} each), "
            f"{self.phantoms:,} phantoms, levels {self.floor} to {self.ceiling}."
        )


@dataclass(frozen=True)
class CountSketchPlan(CrossPartyRelease):
    """Public parameters of the count sketches: every value of every group has a table of repetitions x buckets numbers, all
    under the same secret buckets and signs. Some groups of two values have one table instead, of their contrast: a record of the
    first value adds its sign, and one of the other takes it away (:data:`CONTRAST_SIGNS`).

    Attributes:
        repetitions, buckets: of the hash; buckets are a power of two, so that all are equally likely.
        variance: parameter of the discrete Gaussian noise of every number.
        bits: of every number as published.
        sizes: number of values of every group, of all parties.
        contrasts: groups of two values that are published as contrasts, in order.
        weights: of every group: by how much a record moves its numbers, whose noise has a variance so many times larger; () = 1.
            Beside the counts, noise is then the smaller the larger the weight. A weight w is priced as w groups that are the
            same: the sum of their numbers is what is published. It is odd, so that the sum of so many half-integers is one.

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
    prices_persons = True
    tells_matches = True
    floor = 0

    def __post_init__(self) -> None:
        whole = (self.repetitions, self.buckets, self.bits, *self.sizes)
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in whole):
            raise PlanError(
                "A count sketch's repetitions, buckets, bits and sizes are whole numbers."
            )
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
        for group, size in enumerate(self.sizes):
            _check_size(f"Group {group}", size)
        known = {
            g
            for g in self.contrasts
            if type(g) is int and 0 <= g < len(self.sizes) and self.sizes[g] == 2
        }
        if list(self.contrasts) != sorted(known):
            raise PlanError(
                f"Contrasts are of groups of 2 values, in order, not of {list(self.contrasts)}."
            )
        if self.weights and len(self.weights) != len(self.sizes):
            raise PlanError(
                f"There are {len(self.weights)} weights of {len(self.sizes)} groups; give each group one."
            )
        for weight in self.weights:
            if type(weight) is not int or weight % 2 == 0 or not 1 <= weight <= MAX_WEIGHT:
                raise PlanError(
                    f"A group's weight is an odd number from 1 to {MAX_WEIGHT}, not {weight}."
                )
        try:
            moved = self.event.groups
        except PrivacyError as error:
            raise PlanError(f"These count sketches have no price: {error}") from None
        if self.variance < moved:
            raise PlanError(
                f"These count sketches have noise of variance {self.variance:g} where a record adds to {moved} numbers: it takes "
                "at least that much, or the record alone would show."
            )
        if (most := max(self.weights, default=1) * self.variance) > MAX_COUNT_VARIANCE:
            raise PlanError(
                f"Noise of variance {most:,.0f} is more than can be drawn ({MAX_COUNT_VARIANCE:,.0f})."
            )

    @property
    def numbers(self) -> int:
        """Numbers of every value (t)."""
        return self.repetitions * self.buckets

    @property
    def event(self) -> CountSketchEvent:
        """The privacy event of all sketches: a record adds to one number of every group, or takes from it, as often as the
        group's weight says.
        """
        moved = sum(self.weights) or len(self.sizes)
        return CountSketchEvent(moved, self.variance, self.buckets, self.repetitions)

    def rows(self, group: int) -> int:
        """Numbers of a bucket that are published of a group: one a value, or its contrast."""
        return 1 if group in self.contrasts else self.sizes[group]

    def weight(self, group: int) -> int:
        """By how much a record moves a number of a group."""
        return self.weights[group] if self.weights else 1

    def noise(self, weight: int = 1) -> float:
        """What a group's noise weighs as much as in its numbers, in records."""
        return self.variance * self.buckets / weight

    def entries(self, epsilon: float, delta: float, person: int = 1) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`."""
        weights = self.weights
        weighed = (
            f" for every 1 by which a record moves it ({min(weights)} to {max(weights)})"
            if weights
            else ""
        )
        noise = f"discrete Gaussian of variance {self.variance:.2f} in each{weighed}, {self.bits} bits published"
        released = f"count sketches of {len(self.sizes)} attribute groups, {self.repetitions:,} repetitions of {self.buckets:,} buckets"
        steps = (min(weights), max(weights)) if weights else None
        event = replace(self.event, records=person)
        return [
            LedgerEntry(
                event, "all parties", released, noise, kind=Kind.COUNT_SKETCHES, weights=steps
            )
        ]

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """See :class:`CrossPartyRelease`; buckets and signs follow from the secret."""
        moved = sum(map(self.weight, groups))
        return replace(self.event, groups=moved, records=person).known_hashes if moved else None

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; a table per group."""
        return [(self.rows(group), self.numbers) for group in groups]

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [(1 << self.bits) - 1] * len(groups)

    def check(self, sizes: Sequence[int]) -> None:
        """See :class:`CrossPartyRelease`."""
        _check_sizes(self.sizes, sizes)

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        weighed = (
            f" times weights of {min(self.weights)} to {max(self.weights)}" if self.weights else ""
        )
        return (
            f"count sketches: {len(self.sizes)} attribute groups, {self.numbers:,} numbers a value ({self.repetitions:,} "
            f"repetitions of {self.buckets:,} buckets), noise variance {self.variance:.1f}{weighed}, {self.bits} bits each."
        )


@dataclass(frozen=True)
class SharedKeyPlan(CrossPartyRelease):
    """Public parameters of the published encoder's sketches.

    Attributes:
        phantoms, floor, ceiling: as in :class:`SketchPlan`.
        keys: hash keys (t), shared by all attributes.
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
    bits = 4
    claimed_share = 0.5
    reasons = (
        "claim as published, which does not hold: sketches under shared keys give complete records away",
    )

    def __post_init__(self) -> None:
        _check_levels(self.phantoms, self.floor, self.ceiling)
        _check_keys("The plan", self.keys)
        for attribute, size in enumerate(self.sizes):
            _check_size(f"Attribute {attribute}", size)

    @property
    def event(self) -> SketchEvent:
        """The privacy event of all sketches: a record touches one of every attribute under each key."""
        return SketchEvent(
            self.phantoms, self.floor, self.ceiling, self.keys, attributes_per_key=len(self.sizes)
        )

    def entries(self, epsilon: float, delta: float, person: int = 1) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`."""
        claimed, at = epsilon * self.claimed_share, delta * self.claimed_share
        exact = composed_epsilon([self.event], at).epsilon
        noise = (
            f"{self.phantoms} phantoms, levels {self.floor} to {self.ceiling}; claimed epsilon {claimed:g}, exactly {exact:.1f}, "
            f"at delta {at:.3g}"
        )
        released = f"sketches of {len(self.sizes)} attributes, all under the same {self.keys} keys"
        return [
            LedgerEntry(self.event, "all parties", released, noise, kind=Kind.SHARED_KEY_SKETCHES)
        ]

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; a table per attribute."""
        return [(self.sizes[group], self.keys) for group in groups]

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [self.ceiling] * len(groups)

    def check(self, sizes: Sequence[int]) -> None:
        """See :class:`CrossPartyRelease`."""
        _check_sizes(self.sizes, sizes)

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"sketches: {self.keys:,} keys shared by all attributes, {self.phantoms:,} phantoms, levels {self.floor} to "
            f"{self.ceiling}."
        )

    def keeps_claim(self, epsilon: float, delta: float) -> bool:
        """See :class:`CrossPartyRelease`: as many phantoms as the paper asks for."""
        share = self.claimed_share
        return self.phantoms >= claimed_phantoms(
            epsilon * share, delta * share, self.keys, len(self.sizes)
        )


def _check_levels(phantoms: int, floor: int, ceiling: int) -> None:
    if not all(type(number) is int for number in (phantoms, floor, ceiling)):
        raise PlanError(
            f"Phantoms, floor and ceiling are whole numbers, not {phantoms!r}, {floor!r} and {ceiling!r}."
        )
    if phantoms < 1:
        raise PlanError(
            f"Sketches need at least 1 phantom, not {phantoms}; without phantoms they are not private."
        )
    if not 0 <= floor < ceiling <= HIGHEST_CEILING:
        raise PlanError(
            f"Levels need 0 <= floor < ceiling <= {HIGHEST_CEILING}, not floor {floor} and ceiling {ceiling}."
        )


def _pair(number: int, pair: ScheduledPair) -> str:
    return f"Scheduled pair {number} (groups {pair.left} and {pair.right})"


def _check_keys(where: str, keys: int) -> None:
    if type(keys) is not int or not 1 <= keys <= MAX_KEYS:
        raise PlanError(f"{where} has {keys} keys; it needs at least 1 and at most 2^31.")


def _check_size(where: str, size: int) -> None:
    if type(size) is not int or not 1 <= size <= MAX_VALUES:
        raise PlanError(f"{where} has {size} values; sketches take 1 to 65,536.")


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
    bits = 4
    publishes_rows = True
    floor = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise PlanError(f"Randomised responses need an epsilon above 0, not {self.epsilon}.")
        for attribute, size in enumerate(self.sizes):
            if type(size) is not int or not 1 <= size <= 16:
                raise PlanError(
                    f"Attribute {attribute} has {size} values; randomised responses take 1 to 16."
                )

    @property
    def event(self) -> GRREvent:
        """The privacy event of all responses of one record."""
        return GRREvent(self.epsilon, self.sizes)

    def kept(self, size: int) -> float:
        """Probability that a value out of ``size`` is reported as it is: e^eps / (e^eps + size - 1)."""
        return 1 / (1 + (size - 1) * math.exp(-self.epsilon))

    def claimed_epsilon(self, delta: float) -> float:
        """What the paper states for d attributes: the smaller of d eps / 2 and 2 eps sqrt(2 d log(1 / delta)) (Theorem 3).

        Its halves come from taking a replacement for two steps although the number of rows is published: the exact value of
        :attr:`event` at delta = 0 is d eps.
        """
        d = len(self.sizes)
        return min(d * self.epsilon / 2, 2 * self.epsilon * math.sqrt(2 * d * math.log(1 / delta)))

    def entries(self, epsilon: float, delta: float, person: int = 1) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`."""
        claimed = self.claimed_epsilon(delta)
        noise = f"randomised response, epsilon {self.epsilon:.4f} each (Theorem 3 states {claimed:.3g} for all)"
        released = f"every row's {len(self.sizes)} attributes, and how many rows there are"
        return [LedgerEntry(self.event, "all parties", released, noise, kind=Kind.RESPONSES)]

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """See :class:`CrossPartyRelease`; responses owe nothing to the secret."""
        sizes = tuple(self.sizes[group] for group in groups)
        return replace(self.event, sizes=sizes) if any(size > 1 for size in sizes) else None

    def shapes(self, groups: Sequence[int], rows: int) -> list[tuple[int, int]]:
        """See :class:`CrossPartyRelease`; a row of responses per attribute."""
        return [(1, rows)] * len(groups)

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [self.sizes[group] - 1 for group in groups]

    def check(self, sizes: Sequence[int]) -> None:
        """See :class:`CrossPartyRelease`."""
        _check_sizes(self.sizes, sizes)

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return f"every row by randomised response, epsilon {self.epsilon:.4f} an attribute."


def packed_bytes(shapes: Sequence[tuple[int, int]], bits: int) -> int:
    """Bytes of tables of some shapes in a message, each number of so many bits."""
    return sum(packed_size(values * keys, bits) for values, keys in shapes)


KINDS: Mapping[str, type[CrossPartyRelease]] = {
    kind.encoder: kind for kind in (SketchPlan, CountSketchPlan, SharedKeyPlan, ResponsePlan)
}


def release_to_json(release: CrossPartyRelease | None) -> dict[str, Any] | None:
    """JSON-able fields with the kind's name."""
    if release is None:
        return None
    named = to_json(release)
    # Without weights they are left out, as in plans from before there were any.
    if not named.get("weights", True):
        del named["weights"]
    return {"encoder": release.encoder, **named}


def release_from_json(data: Any) -> CrossPartyRelease | None:
    """Read one back.

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


def _check_sizes(own: Sequence[int], sizes: Sequence[int]) -> None:
    if tuple(own) != tuple(sizes):
        raise PlanError("The plan's sketches do not fit its groups.")
