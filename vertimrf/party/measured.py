"""Measure one marginal of a party: add the noise that its units are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ..arrays import Floats, Integers, Ints
from ..model.local_marginal import LocalMarginal
from ..model.measurement import BinMap
from ..plan.local_plan import LocalPlan
from ..privacy.noise import KeyedNoise

# Exact counts of marginals in turn, with some attributes' values merged by their maps.
Marginals = Callable[[Sequence[Ints], Mapping[int, Integers]], Iterable[Integers]]

Counts = TypeVar("Counts", Integers, Floats)


def measured(
    attributes: Ints,
    exact: Integers,
    units: int,
    bins: Sequence[BinMap | None],
    plan: LocalPlan,
    noise: KeyedNoise,
    parts: Ints = (),
) -> LocalMarginal:
    """Release a larger marginal as ``units`` units of the plan's ledger (:class:`.LocalPlan`).

    Args:
        attributes: of the marginal.
        exact: its counts [one axis for each attribute, int64].
        units: number of units, at least 1.
        bins: by attribute, the map value -> merged value, None where values are not merged.
        plan: the noise of a unit, and whether attributes of two values are contrasted.
        noise: the noise source.
        parts: see :class:`.LocalMarginal`.

    Returns:
        The noisy marginal.
    """
    axes = plan.contrasted(exact.shape)
    sigma = plan.unit_sigma * math.sqrt(units)
    counts = noise.gaussian(units * differences(exact, axes), sigma)
    merged = tuple(bins) if any(each is not None for each in bins) else ()
    return LocalMarginal(attributes, counts, sigma, units, merged, axes, parts)


def differences(counts: Counts, axes: Sequence[int]) -> Counts:
    """Difference of the two counts along each of some axes, which keep a length of 1."""
    for axis in axes:
        counts = counts.take([0], axis) - counts.take([1], axis)  # type: ignore[assignment]
    return counts
