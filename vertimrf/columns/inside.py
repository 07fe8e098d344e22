"""Draw numbers inside bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..arrays import Floats, Integers
from .numbers import times

if TYPE_CHECKING:
    from .numbers import Numbers


@dataclass(frozen=True, eq=False)
class Span:
    """Limits between which all numbers of a column are drawn.

    Attributes:
        low, high: the limits. Where numbers are multiples of a step, they count steps, and ``high``
            is excluded.
        counts: records of each bin, which decide the density inside bins [shape=(bins,)].
    """

    low: float
    high: float
    counts: npt.NDArray[np.number]


def numbers_inside(
    attribute: Numbers,
    codes: Integers,
    span: Span,
    rng: np.random.Generator,
) -> Floats:
    """Draw numbers inside the bins of a numeric attribute [shape=(n,), float64].

    The density inside a bin is linear. It keeps the bin's count and stays between the densities of
    the neighbours; it is constant if both neighbours are higher or both are lower (van Leer's
    limiter). A constant density would widen the tails.
    """
    bounds = bounds_of(attribute)
    tilt = _tilts(bounds, span.counts)
    low, high = (below[codes] for below in _below(bounds, tilt, span))
    u, tilt = low + (high - low) * rng.random(len(codes)), tilt[codes]
    share = 2 * u / (1 - tilt + np.sqrt((1 - tilt) ** 2 + 4 * tilt * u))
    numbers = bounds[codes] + np.diff(bounds)[codes] * share
    if attribute.step:
        first = np.maximum(bounds[codes], span.low)
        last = np.minimum(bounds[codes + 1], span.high) - 1
        numbers = times(np.clip(np.floor(numbers), first, last), attribute.step)
    if attribute.counts:
        return numbers
    # Rounding may reach the upper edge, which belongs to the next bin.
    edges = np.array(attribute.edges)
    last_bin = codes == len(edges) - 2
    first, below = (
        edges[codes],
        np.where(last_bin, edges[-1], np.nextafter(edges[codes + 1], -np.inf)),
    )
    if not attribute.step:
        first, below = np.maximum(first, span.low), np.minimum(below, span.high)
    clipped: Floats = np.clip(numbers, first, below)
    return clipped


def bounds_of(attribute: Numbers) -> Floats:
    """Where the bins of a numeric attribute begin, and the end of the last one.

    A multiple of the step represents all numbers up to the next multiple: bounds then count steps.
    """
    if not attribute.step:
        return np.array(attribute.edges)
    multiples = [attribute.multiples(code) for code in range(len(attribute.edges) - 1)]
    return np.array([*(low for low, _ in multiples), multiples[-1][1] + 1], float)


def shares_inside(attribute: Numbers, span: Span) -> Floats:
    """Share of each bin's records that are drawn between limits [shape=(bins,), float64]."""
    bounds = bounds_of(attribute)
    low, high = _below(bounds, _tilts(bounds, span.counts), span)
    return high - low


def _tilts(bounds: Floats, counts: npt.NDArray[np.number]) -> Floats:
    """By bin: the density inside it rises from 1 - tilt to 1 + tilt times its mean."""
    width, middle = np.diff(bounds), (bounds[1:] + bounds[:-1]) / 2
    density = counts / width
    # The density beyond the bounds is 0.
    beside = np.concatenate([[0], density, [0]])
    at = np.concatenate([bounds[:1], middle, bounds[-1:]])
    fall, rise = density - beside[:-2], beside[2:] - density
    slope = (beside[2:] - beside[:-2]) / (at[2:] - at[:-2]) * width / 2
    limit = np.minimum(np.minimum(np.abs(fall), np.abs(rise)), np.abs(slope))
    tilt: Floats = np.where(fall * rise > 0, np.sign(fall) * limit, 0) / np.where(
        density > 0, density, 1
    )
    return tilt


def _below(bounds: Floats, tilt: Floats, span: Span) -> list[Floats]:
    """Share of each bin's records below either limit [each shape=(bins,), float64]."""
    places = [
        np.clip((limit - bounds[:-1]) / np.diff(bounds), 0, 1) for limit in (span.low, span.high)
    ]
    return [place * (1 - tilt * (1 - place)) for place in places]
