"""Public parameters of count sketches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ...arrays import Ints, Pair
from ...errors import PlanError, PrivacyError
from ...files.convert import Number
from ...privacy.events import MAX_COUNT_VARIANCE, CountSketchEvent, Event
from ...privacy.ledger import LedgerEntry
from ..release import CrossPartyRelease, Groups, check_contrasts, check_sizes

# Core seconds per record and repetition of a group, per counter with its noise, packed and sealed,
# and per product of two counters; measured as those of plan/forecast.py.
SIGN, COUNTER, PRODUCT = 2e-9, 15e-9, 0.15e-9
MAX_REPETITIONS = 1 << 24
MAX_WEIGHT = 99
# Values of a group with an alternating contrast: two halves, and the missing value.
ALTERNATING = 3
BUCKETS = tuple(1 << power for power in range(1, 16))


@dataclass(frozen=True)
class CountSketches(CrossPartyRelease):
    """Public parameters of the count sketches.

    Every value of every group has a row of repetitions x buckets counters. All rows use the same
    secret buckets and signs. Some groups of two values have one row instead, for their contrast: a
    record of the first value adds its sign, and a record of the other subtracts it
    (:data:`CONTRAST_SIGNS`). A group of three values with a contrast consists of two halves and the
    missing value. A record of the missing value adds its sign times a public sign, which is a
    function of the group and the counter (:meth:`alternation`).

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
        contrasts: groups of two values, or of two halves and the missing value, that are published
            as contrasts, in order.
        weights: weight of every group; () means that all have weight 1.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    repetitions: int
    buckets: int
    variance: Number
    bits: int
    sizes: Ints
    contrasts: Ints = ()
    weights: Ints = ()
    encoder = "count-sketch"
    kind = "count sketches"
    priced_by = CountSketchEvent
    forecast = True
    prices_persons = True
    optional = ("weights",)
    # Counters have 32 bits until they are cut.
    width = 5
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
        check_sizes(self.sizes)
        check_contrasts(self.contrasts, self.sizes, ALTERNATING)
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

    def added(self, groups: Sequence[int]) -> int:
        """See :class:`CrossPartyRelease`; one counter of each repetition and group."""
        return self.repetitions * len(groups)

    def weight(self, group: int) -> int:
        """By how much a record moves a counter of a group."""
        return self.weights[group] if self.weights else 1

    def alternation(self, group: int) -> int:
        """The number of the Walsh function whose sign records without a value take in a group's
        contrast (:func:`vertimrf.kernels.count_sketch.alternating`); 0 if the group has none.

        Numbers differ by group, as far as there are counters to tell the functions apart.
        """
        of_three = [g for g in self.contrasts if self.sizes[g] == ALTERNATING]
        if group not in of_three:
            return 0
        return 1 + of_three.index(group) % max((1 << self.numbers.bit_length() - 1) - 1, 1)

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

    @classmethod
    def sentence(cls, entry: LedgerEntry, event: CountSketchEvent, who: str) -> str:
        """See :class:`CrossPartyRelease`."""
        record, step = f"a record is in {event.groups} of them", "1"
        noise = f"{math.sqrt(event.variance):,.1f}"
        if entry.weights is not None:
            least, most = entry.weights
            record = f"a record is in some tables of every attribute, and moves them by {event.groups} in all"
            step = f"{least} to {most}"
            noise = f"{math.sqrt(least * event.variance):,.1f} to {math.sqrt(most * event.variance):,.1f}"
        return (
            f"{who} mixed their records into tables of {event.repetitions * event.buckets:,} counters. There is one table for every "
            f"value of an attribute, or one for the difference between its two values; {record}. A secret that the server "
            "does not have decides which counters a record moves, and whether up or down. A record moves a counter "
            f"by {step}; random noise of typically {noise} was added, "
            "and the sum rounded. Only all counters together tell how many records two values of different parties have in "
            "common."
        )

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """See :class:`CrossPartyRelease`; who knows the secret knows the buckets and signs."""
        moved = sum(map(self.weight, groups))
        return replace(self.event, groups=moved, records=person).known_hashes if moved else None

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[Pair]:
        """See :class:`CrossPartyRelease`; one table for each group."""
        return [(self.rows(group), self.numbers) for group in groups]

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [(1 << self.bits) - 1] * len(groups)

    def encoding_work(self, parties: Groups, party: int, records: int) -> float:
        """See :class:`CrossPartyRelease`."""
        signs = SIGN * records * self.repetitions * len(parties[party])
        return signs + COUNTER * self.held(parties, party)

    def estimating_work(self) -> float:
        """See :class:`CrossPartyRelease`."""
        rows = sum(self.rows(g) for g in range(len(self.sizes)))
        return PRODUCT * self.numbers * rows**2 / 2

    def next_to(self, other: CrossPartyRelease) -> bool:
        """See :class:`CrossPartyRelease`; the other has at most one repetition more."""
        return (
            isinstance(other, CountSketches)
            and (self.buckets, self.bits) == (other.buckets, other.bits)
            and other.repetitions - self.repetitions <= 1
        )

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        per_weight = (
            f" times weights of {min(self.weights)} to {max(self.weights)}" if self.weights else ""
        )
        return (
            f"count sketches: {len(self.sizes)} attribute groups, {self.numbers:,} numbers a value ({self.repetitions:,} "
            f"repetitions of {self.buckets:,} buckets), noise variance {self.variance:.1f}{per_weight}, {self.bits} bits each."
        )
