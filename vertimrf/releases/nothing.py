"""The release of a plan in which nothing is published across parties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arrays import Pair
from ..privacy.ledger import LedgerEntry
from .release import CrossPartyRelease

if TYPE_CHECKING:
    from ..plan.shares import Outlook
    from .received import CrossParty, Received


@dataclass(frozen=True)
class Nothing(CrossPartyRelease):
    """No tables, no events, no work: there is one party, or no budget for values across parties."""

    # What users ask for if they say nothing.
    encoder = "count-sketch"
    kind = "nothing"
    sizes = ()
    prices_persons = True
    bits = 1
    floor = 0
    ceiling = 0

    def entries(
        self,
        parties: Mapping[str, Sequence[int]],
        epsilon: float,
        delta: float,
        person: int = 1,
    ) -> list[LedgerEntry]:
        """See :class:`CrossPartyRelease`."""
        return []

    def shapes(self, groups: Sequence[int], rows: int) -> list[Pair]:
        """See :class:`CrossPartyRelease`."""
        return []

    def spent(self, outlook: Outlook) -> float:
        """See :class:`CrossPartyRelease`."""
        return 0.0

    def estimate(self, received: Received) -> CrossParty:
        """See :class:`CrossPartyRelease`."""
        none: CrossParty = self._room("received").CrossParty(())
        return none

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return "nothing across parties."


NOTHING = Nothing()
