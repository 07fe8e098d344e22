"""Public parameters of randomised responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ...arrays import Ints, Pair
from ...errors import PlanError
from ...files.convert import Number
from ...privacy.events import Event, GRREvent
from ...privacy.ledger import LedgerEntry
from ..release import CrossPartyRelease, check_sizes


@dataclass(frozen=True)
class RandomisedResponses(CrossPartyRelease):
    """Public parameters of the randomised responses.

    Attributes:
        epsilon: local epsilon of each attribute.
        sizes: number of values of each attribute, of all parties; at most 16.

    Raises:
        PlanError: parameters that no response can have.
    """

    epsilon: Number
    sizes: Ints
    encoder = "grr"
    kind = "responses"
    priced_by = GRREvent
    compared = True
    bits = 4
    publishes_rows = True
    floor = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise PlanError(f"Randomised responses need an epsilon above 0, not {self.epsilon}.")
        check_sizes(self.sizes, most=16)

    @property
    def event(self) -> GRREvent:
        """The privacy event of all responses of one record."""
        return GRREvent(self.epsilon, self.sizes)

    def unchanged(self, size: int) -> float:
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
        return f"every row's {len(self.sizes)} attributes, and how many ids there are", noise

    @classmethod
    def sentence(cls, entry: LedgerEntry, event: GRREvent, who: str) -> str:
        """See :class:`CrossPartyRelease`."""
        return (
            f"{who} published every record, with each value replaced by a random one so often that no published value can "
            "be held against anybody. The number of ids is exact."
        )

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """See :class:`CrossPartyRelease`; responses do not depend on the secret."""
        sizes = tuple(self.sizes[group] for group in groups)
        return replace(self.event, sizes=sizes) if any(size > 1 for size in sizes) else None

    def shapes(self, groups: Sequence[int], rows: int) -> list[Pair]:
        """See :class:`CrossPartyRelease`; a row of responses for each attribute."""
        return [(1, rows)] * len(groups)

    def highest(self, groups: Sequence[int]) -> list[int]:
        """See :class:`CrossPartyRelease`."""
        return [self.sizes[group] - 1 for group in groups]

    def summary(self) -> str:
        """See :class:`CrossPartyRelease`."""
        return f"every row by randomised response, epsilon {self.epsilon:.4f} an attribute."
