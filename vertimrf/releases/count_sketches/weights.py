"""Weights of count sketches' groups: the amount by which a record moves their counters.

The noise of a cell is the product of both sides' noise. If noise were the only error, the sum over
all cells would be smallest for weights proportional to values^(2/3). The weights here grow with
values^(1/3): cells whose noise is too large are shrunk towards independence, so a group of many
values gains less than the other groups lose.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...arrays import Ints
from ...plan.groups import Group
from .parameters import MAX_WEIGHT

# Weights grow with this power of the number of counters that a group publishes, and the group with
# the fewest counters has this weight.
EXPONENT, MIN_WEIGHT = 1 / 3, 5
# The smallest weight of an attribute if parties publish presence, which has a weight of 1 as
# parities have (benchmarks/results/constants.md).
BESIDE_PRESENCE = 15
# Attributes of asked-for pairs across parties weigh so many times more.
ASKED = 3
# Largest number of counters per record. Pricing more takes too long.
MAX_PRICED = 2000


def least_weights(groups: Sequence[Group], asked: Collection[int] = ()) -> list[int]:
    """Weights of groups before their sizes are considered. Parities and presence weigh 1."""
    attribute = BESIDE_PRESENCE if any(group.size == 1 for group in groups) else MIN_WEIGHT
    return [
        attribute * (ASKED if group.attributes[0] in asked else 1) if group.shows_attribute else 1
        for group in groups
    ]


def choose_weights(groups: Sequence[Group], rows: Sequence[int], asked: Collection[int]) -> Ints:
    """Choose the weights of groups.

    Args:
        groups: the published groups.
        rows: per group, the number of published counters per bucket: one per value, or one of a
            contrast.
        asked: attributes of pairs across parties that a workload needs.

    Returns:
        An odd weight per group; empty if all are equal.
    """
    least = least_weights(groups, asked)
    fewest = min(rows)
    weights = [
        min(2 * round((weight * (each / fewest) ** EXPONENT - 1) / 2) + 1, MAX_WEIGHT)
        for weight, each in zip(least, rows, strict=True)
    ]
    if sum(weights) > MAX_PRICED:
        weights = least_weights(groups)
    return tuple(weights) if len(set(weights)) > 1 else ()
