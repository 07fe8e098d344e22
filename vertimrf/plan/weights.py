"""Weights of count sketches' groups: by how much a record moves their numbers, and so how much the noise weighs in each.

A cell's noise is the product of both sides'. Were noise all of the error, the sum over all cells would be least with weights in
proportion to values^(2/3); but what noise drowns is shrunk to what independence says, so that a group of many values gains less
by what others lose for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .groups import Group

__all__ = ["choose_weights", "least_weights"]

# Weights grow with this power of the numbers that a group publishes, from this one of the fewest on.
EXPONENT, MIN_WEIGHT = 1 / 3, 5
# The same, where parties publish presence. That has a weight of 1, as parities have: what is no attribute tells less. A fifteenth
# for presence adds 7 % to the noise of parties' only attributes, and tells how many records parties share to 5 % (NLTCS, 16
# parties, epsilon 0.8).
BESIDE_PRESENCE = 15
# Beyond so many numbers a record, pricing takes long.
MAX_PRICED = 2000


def least_weights(groups: Sequence[Group]) -> list[int]:
    """Weights of groups before their sizes count: those of attributes, and the smaller ones of parities and of presence."""
    attribute = BESIDE_PRESENCE if any(group.size == 1 for group in groups) else MIN_WEIGHT
    return [attribute if group.shows_attribute else 1 for group in groups]


def choose_weights(groups: Sequence[Group], rows: Sequence[int]) -> tuple[int, ...]:
    """Weights of groups; () where all are the same.

    Args:
        groups: what is published.
        rows: how many numbers of a bucket are published of each: one a value, or its contrast.
    """
    least = least_weights(groups)
    fewest = min(rows)
    weights = [
        2 * round((weight * (each / fewest) ** EXPONENT - 1) / 2) + 1
        for weight, each in zip(least, rows, strict=True)
    ]
    if sum(weights) > MAX_PRICED:
        weights = least
    return tuple(weights) if len(set(weights)) > 1 else ()
