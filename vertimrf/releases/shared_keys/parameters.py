"""Public parameters of the published encoder's shared keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...arrays import Ints, Pair
from ...privacy.accountant import epsilon as composed_epsilon
from ...privacy.events import SketchEvent
from ...privacy.ledger import LedgerEntry
from ..release import CrossPartyRelease, check_keys, check_levels, check_sizes
from .published_claim import claimed_phantoms

if TYPE_CHECKING:
    from ...plan.options import PlanOptions


@dataclass(frozen=True)
class SharedKeys(CrossPartyRelease):
    """Public parameters of the published encoder's sketches.

    Attributes:
        phantoms, floor, ceiling: as in :class:`.ScheduledPairs`.
        keys: number of hash keys (t), which all attributes share.
        sizes: number of values of every attribute, of all parties.

    Raises:
        PlanError: parameters that no sketch can have.
    """

    phantoms: int
    floor: int
    ceiling: int
    keys: int
    sizes: Ints
    encoder = "published"
    kind = "shared-key sketches"
    priced_by = SketchEvent
    compared = True
    bits = 4
    claimed_share = 0.5
    reasons = (
        "claim as published, which does not hold: sketches under shared keys give complete records away",
    )

    @classmethod
    def refused(cls, planning: PlanOptions) -> str | None:
        """See :class:`CrossPartyRelease`."""
        if planning.claim_as_published:
            return None
        return (
            "The published encoder does not keep the epsilon that it claims and gives complete records away; "
            "use 'count-sketch', or reproduce the paper with claim_as_published=True (--claim-as-published)."
        )

    def __post_init__(self) -> None:
        check_levels(self.phantoms, self.floor, self.ceiling)
        check_keys("The plan", self.keys)
        check_sizes(self.sizes)

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

    @classmethod
    def sentence(cls, entry: LedgerEntry, event: SketchEvent, who: str) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"{who} published sketches of all {event.attributes_per_key} attributes under the same {event.keys:,} secret keys, as the original "
            "paper does. This is not private: complete records can be read off."
        )

    def shapes(self, groups: Sequence[int], rows: int = 0) -> list[Pair]:
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
