"""Weights of count sketches' groups: by how much a record moves their numbers, and so how much the noise weighs in each.

A cell's noise is the product of both sides'. Were noise all of the error, the sum over all cells would be least with noise in
proportion to values^(-2/3); but what noise drowns is shrunk to what independence says, so that a group of many values may gain
nothing by what others lose for it. How much can be told depends on how much there is to tell, which nobody knows beforehand: it
is taken to be as much as in an average table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..sketches.parameters import CountSketchPlan
from .schedule import Group

__all__ = ["choose_weights", "expected_error", "least_weights"]

# Weights grow with this power of the numbers that a group publishes, from this one of the fewest on.
EXPONENT, LEAST_WEIGHT = 1 / 3, 5
# Weight of parities: there are more of them than of attributes, and each tells less.
PARITY_WEIGHT = 1
# Presence has a weight of 1. Where there is any, all else has so many times its own, an attribute 15. That adds 7 % to the
# noise of parties' only attributes, and tells how many records parties share to 5 % (NLTCS, 16 parties, epsilon 0.8).
BESIDE_PRESENCE = 3
# Deviation of a pair's cells from independence: root mean square over the mean cell, of two attributes of two values; it grows
# with the fourth root of the degrees of freedom.
DEPENDENCE = 0.1
# Beyond so many numbers a record, pricing takes long.
MOST_PRICED = 2000

Floats = npt.NDArray[np.float64]


def least_weights(groups: Sequence[Group]) -> list[int]:
    """Weights of groups before their sizes count: those of attributes, and the smaller ones of parities and of presence."""
    times = BESIDE_PRESENCE if any(group.size == 1 for group in groups) else 1
    return [1 if group.size == 1 else times * (PARITY_WEIGHT if group.parity else LEAST_WEIGHT) for group in groups]


def choose_weights(
    plan: CountSketchPlan, groups: Sequence[Group], parties: Sequence[int], records: int
) -> tuple[int, ...]:
    """Weights of a plan's groups, where pairs across parties are expected to be told better with them; () where not.

    Args:
        plan: the sketches without weights, whose budget they are to keep.
        groups: what is published; with parities or presence there are weights in any case.
        parties: of each group.
        records: expected.
    """
    rows = [plan.rows(group) for group in range(len(plan.sizes))]
    least = least_weights(groups)
    weights = tuple(
        2 * round((weight * (each / min(rows)) ** EXPONENT - 1) / 2) + 1 for weight, each in zip(least, rows, strict=True)
    )
    if sum(weights) > MOST_PRICED:
        weights = tuple(least)
    if len(set(weights)) == 1:
        return ()
    if len(set(least)) > 1:
        return weights
    across = np.not_equal.outer(parties, parties)
    with_them, without = (expected_error(plan, each, across, records) for each in (weights, ()))
    return weights if with_them < without else ()


def expected_error(plan: CountSketchPlan, weights: Sequence[int], across: npt.NDArray[np.bool_], records: int) -> float:
    """Sum over pairs of groups of their cells' absolute errors over the records, if shrunk as far as noise asks for.

    Args:
        plan: the sketches without weights.
        weights: to try, at the plan's price.
        across: which pairs of groups count [shape=(groups, groups)].
        records: expected.
    """
    sizes = np.array(plan.sizes, np.float64)
    weight = np.array(weights or [1] * len(sizes))
    noise = plan.noise() * weight.mean() / weight
    # What a side puts into a cell's variance: its own number's, or a share of its contrast's.
    contrasted = np.isin(np.arange(len(sizes)), plan.contrasts)
    side = np.where(contrasted, (records + noise) / sizes**2, records / sizes + noise)
    error = np.sqrt(np.outer(side, side) / plan.numbers)
    cells = np.outer(sizes, sizes)
    told = records * DEPENDENCE * np.outer(sizes - 1, sizes - 1) ** 0.25 / cells
    both = np.hypot(error, told)
    expected = np.divide(cells * error * told, both, out=np.zeros_like(both), where=both > 0)
    return math.fsum(expected[across]) / records
