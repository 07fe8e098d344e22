"""CarEst for scheduled pairs: measure a pair of attributes of two parties from their sketches.

Under a key, let W and W' be the levels of two values' sketches, with set sizes a and b,
intersection T, and N phantoms in each. With F(l) = 1 - 2^-l,

    P(W <= x, W' <= y) = F(x)^(a + N) F(y)^(b + N) F(max(x, y))^(-T).

T is the maximum of the likelihood of all keys of the pair; a and b come from the parties' own
marginals, with Gaussian errors (docs/method.md, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from ...arrays import Bytes, Floats, Integers, Ints
from ...errors import MessageError
from ...kernels.intersections import joint_histograms, solve_intersections
from ...kernels.jit import threads
from ...model.measurement import Measurement
from ...plan.groups import BinMaps
from .parameters import ScheduledPairs

# Keys times cells that are worth another thread: a millisecond or two. Waking a thread on a busy
# machine takes longer.
THREAD_WORK = 1 << 21


@dataclass(frozen=True, eq=False)
class Side:
    """One party's half of a scheduled pair.

    Attributes:
        attribute: index into the schema.
        bins: the map code -> bin [shape=(size,), int64].
        sizes: estimated number of records in each bin [shape=(bins,), float64].
        levels: published sketch levels [shape=(bins, keys), uint8].
        sizes_sigma: standard error of each of ``sizes`` [shape=(bins,), float64]; None: no error.
    """

    attribute: int
    bins: Integers
    sizes: Floats
    levels: Bytes
    sizes_sigma: Floats | None = None

    @property
    def errors(self) -> Floats:
        """Standard error of each of ``sizes``, 0 where it is known [shape=(bins,), float64]."""
        return np.zeros(len(self.sizes)) if self.sizes_sigma is None else self.sizes_sigma


def level_log_cdf(plan: ScheduledPairs) -> Floats:
    """Log P(level <= x) of one draw, clipped to floor and ceiling.

    Args:
        plan: the sketches' floor and ceiling.

    Returns:
        For x = floor .. ceiling; 0 at the ceiling [shape=(levels,), float64].
    """
    levels = np.arange(plan.floor, plan.ceiling + 1, dtype=np.float64)
    # No draw has level 0. Its logarithm is finite, since -inf times 0 is not a number.
    log_cdf = np.log(np.maximum(-np.expm1(-levels * np.log(2)), 1e-300))
    log_cdf[-1] = 0.0
    out: Floats = log_cdf
    return out


def estimate_pair(plan: ScheduledPairs, left: Side, right: Side, total: float) -> Measurement:
    """Estimate every cell of a pair by maximum likelihood, each with its standard error.

    For a cell, the histogram of the two sketches' levels over the pair's keys is a sufficient
    statistic. Errors of cells that share a sketch are nearly uncorrelated, and are treated as
    independent.

    Args:
        plan: the sketches' phantoms, floor and ceiling.
        left: one side of the pair.
        right: the other side, encoded under the same keys.
        total: estimated number of records.

    Returns:
        A measurement of both attributes, in schema order; counts may be negative.

    Raises:
        MessageError: the two sides have different keys, levels outside floor .. ceiling, or sizes
            of another number of values.
    """
    if left.levels.shape[1] != right.levels.shape[1]:
        raise MessageError(
            f"The sketches of attributes {left.attribute} and {right.attribute} have {left.levels.shape[1]} and "
            f"{right.levels.shape[1]} keys: both parties must encode under the same plan."
        )
    for side in (left, right):
        if not len(side.levels) == len(side.sizes) == len(side.errors):
            raise MessageError(
                f"The sketches of attribute {side.attribute} have {len(side.levels)} values, their sizes {len(side.sizes)} and "
                f"{len(side.errors)} errors; each value needs one of each."
            )
        if side.levels.size and (
            side.levels.min() < plan.floor or side.levels.max() > plan.ceiling
        ):
            raise MessageError(
                f"The sketches of attribute {side.attribute} hold levels outside {plan.floor} .. {plan.ceiling}: "
                "the message does not follow the plan."
            )
    worth = 1 + left.levels.shape[1] * len(left.sizes) * len(right.sizes) // THREAD_WORK
    with threads(min(numba.get_num_threads(), worth)):
        histograms = joint_histograms(
            left.levels, right.levels, plan.floor, plan.ceiling - plan.floor + 1
        )
        counts, errors = solve_intersections(
            histograms,
            np.maximum(left.sizes, 0.0),
            np.maximum(right.sizes, 0.0),
            left.errors,
            right.errors,
            float(total),
            float(plan.phantoms),
            level_log_cdf(plan),
        )
    # A cell without keys has no information: a very large error makes its weight negligible.
    errors = np.where(np.isfinite(errors), errors, max(total, 1.0) * 1e3)
    attributes = (left.attribute,), (right.attribute,)
    return outer_measurement(attributes, ((left.bins,), (right.bins,)), counts, errors)


def outer_measurement(
    attributes: tuple[Ints, Ints],
    bins: tuple[BinMaps, BinMaps],
    counts: Floats,
    errors: Floats,
    contrasted: tuple[bool, bool] = (False, False),
) -> Measurement:
    """Make one measurement of two sides' counts, with an axis for each attribute in schema order.

    The values of a side of several attributes are their parities: two of them, of attributes of two
    bins each. They say what a contrast along every one of these attributes is, and nothing else.

    Args:
        attributes: of either side, indices into the schema.
        bins: of either side and attribute, the map code -> bin [shape=(size,), int64].
        counts: estimated records [shape=(left values, right values), float64].
        errors: their standard errors [as ``counts``].
        contrasted: of either side, whether contrasts were measured; always where values are
            parities.

    Returns:
        The measurement; its source is "sketches".
    """
    shape: list[int] = []
    for axis, side in enumerate(attributes):
        if len(side) == 1:
            shape.append(counts.shape[axis])
            continue
        parity = np.indices((2,) * len(side)).sum(axis=0).ravel() % 2
        # Each value's records are spread evenly over the cells of that parity. The noise has one
        # direction out of as many as there are cells, so that a cell's part of it is that much
        # smaller.
        counts = np.take(counts, parity, axis) / (parity.size / 2)
        errors = np.take(errors, parity, axis) * math.sqrt(2 / parity.size)
        shape += [2] * len(side)
    both = attributes[0] + attributes[1]
    maps = bins[0] + bins[1]
    order = sorted(range(len(both)), key=both.__getitem__)
    contrasts = [k for k in range(len(both)) if contrasted[k >= len(attributes[0])]]
    return Measurement(
        attributes=tuple(both[k] for k in order),
        bins=tuple(maps[k] for k in order),
        counts=np.ascontiguousarray(counts.reshape(shape).transpose(order)),
        sigma=np.ascontiguousarray(errors.reshape(shape).transpose(order)),
        source="sketches",
        contrasts=tuple(order.index(k) for k in contrasts),
        completed=len(both) == 2,
    )
