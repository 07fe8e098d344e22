"""CarEst for count sketches: every cell of every pair of groups, with its standard error, from one matrix product.

Two values' numbers correlate by rho = T / sqrt((n_a + N)(n_c + N)), with T the records that have both, n_a and n_c those that
have either, and N = variance * buckets the noise. What is published are codes of the numbers, whose correlation is a known
function of rho; it is inverted, and scaled by the sizes that the local models tell. Correlations, rather than products, leave
out the part of the error that known sizes explain.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ..errors import MessageError
from ..kernels.count_sketch import cross_products
from .count_sketch import STEPS, code_steps
from .parameters import CountSketchPlan

__all__ = ["Cells", "CountedGroup", "estimate_cells", "predicted_cell_errors"]

Floats = npt.NDArray[np.float64]

# Correlations at which the codes' law is computed; in between it is interpolated.
CORRELATIONS = np.sin(np.linspace(0, 0.5 * math.pi, 80))[:-1]
# Points that a Gaussian is integrated on, up to so many standard deviations.
GAUSS_POINTS, GAUSS_REACH = 4001, 8.0


@dataclass(frozen=True, eq=False)
class CountedGroup:
    """A group as the server has it.

    Attributes:
        codes: published [shape=(values, numbers), uint8].
        released: records of each value as its party's released figures told when steps were set [shape=(values,), float64].
        sizes: records of each value, as well as they are known now [shape=(values,), float64].
        sizes_sigma: their standard errors [shape=(values,), float64].
    """

    codes: npt.NDArray[np.uint8]
    released: Floats
    sizes: Floats
    sizes_sigma: Floats


@dataclass(frozen=True, eq=False)
class Cells:
    """Estimated records that have two values, for every two values of all groups, in order.

    Attributes:
        counts: [shape=(v, v), float64]; may be negative. Two values of one group: of no meaning.
        errors: standard errors [shape=(v, v), float64].
    """

    counts: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class _Curve:
    """What a correlation of two Gaussians becomes in their codes.

    Attributes:
        of_codes: correlation of the codes, at CORRELATIONS.
        error: standard error of a correlation inverted from one pair of codes, at CORRELATIONS.
        gain: covariance of a Gaussian with its code, over the code's standard deviation.
    """

    of_codes: Floats
    error: Floats
    gain: float


@functools.cache
def _curve(bits: int) -> _Curve:
    half = 1 << (bits - 1)
    code = 2.0 * np.arange(2 * half) + 1 - 2 * half
    inner = STEPS[bits] * np.arange(1 - half, half)
    cuts = np.concatenate([[-np.inf], inner, [np.inf]])
    x = np.linspace(-GAUSS_REACH, GAUSS_REACH, GAUSS_POINTS)
    # Points on a cut are half on either side.
    weight = np.exp(-0.5 * x**2)
    weight /= weight.sum()
    own = 0.5 * (code[np.searchsorted(inner, x, side="left")] + code[np.searchsorted(inner, x, side="right")])
    share = np.diff(special.ndtr(cuts))
    power = float((share * code**2).sum())
    gain = float(2 * np.exp(-0.5 * inner**2).sum() / math.sqrt(2 * math.pi * power))
    of_codes, spread = np.empty((2, len(CORRELATIONS)))
    for i, rho in enumerate(CORRELATIONS):
        given = np.diff(special.ndtr((cuts - rho * x[:, None]) / math.sqrt(1 - rho**2)), axis=1)
        moments = [given @ code**k for k in range(5)]
        correlation = float((weight * own * moments[1]).sum()) / power
        # Influence of one pair of codes on C / sqrt(V_a V_c): q_a q_c - (C / 2 V)(q_a^2 + q_c^2), over V.
        c = 0.5 * correlation
        square = own**2 * moments[2] + c**2 * (own**4 + 2 * own**2 * moments[2] + moments[4])
        square -= 2 * c * (own**3 * moments[1] + own * moments[3])
        of_codes[i], spread[i] = correlation, math.sqrt(float((weight * square).sum())) / power
    slope = np.gradient(of_codes, CORRELATIONS, edge_order=2)
    slope[0] = gain**2
    return _Curve(of_codes, spread / slope, gain)


def _gains(plan: CountSketchPlan, group: CountedGroup) -> Floats:
    """Covariance of a value's number with its code, over both standard deviations, relative to the best [shape=(values,)].

    Numbers are half-integers: a cut anywhere between two of them is a cut halfway.
    """
    sigma = np.sqrt(group.sizes / plan.buckets + plan.variance)[:, None]
    half = 1 << (plan.bits - 1)
    steps = code_steps(plan, group.released)[:, None]
    cuts = np.ceil(steps * np.arange(1 - half, half) - 0.5) / sigma
    code = 2.0 * np.arange(2 * half) + 1 - 2 * half
    edges = np.concatenate([np.full_like(sigma, -np.inf), cuts, np.full_like(sigma, np.inf)], axis=1)
    share = np.diff(special.ndtr(edges), axis=1)
    power = (share * code**2).sum(axis=1)
    out: Floats = 2 * np.exp(-0.5 * cuts**2).sum(axis=1) / np.sqrt(2 * math.pi * power)
    return out / _curve(plan.bits).gain


def estimate_cells(plan: CountSketchPlan, groups: Sequence[CountedGroup]) -> Cells:
    """All cells of all pairs of groups.

    Args:
        plan: the sketches' parameters.
        groups: any of the plan's, of one party or of several.

    Raises:
        MessageError: codes or sizes that do not fit the plan or each other.
    """
    for number, group in enumerate(groups):
        lengths = {len(group.codes), len(group.released), len(group.sizes), len(group.sizes_sigma)}
        if len(lengths) > 1 or group.codes.ndim != 2 or group.codes.shape[1] != plan.numbers:
            raise MessageError(f"Group {number} has codes of shape {group.codes.shape}, which do not fit its values or the plan.")
        if group.codes.size and group.codes.max() >= 1 << plan.bits:
            raise MessageError(f"Group {number} has codes beyond {plan.bits} bits: the message does not follow the plan.")
    curve = _curve(plan.bits)
    products = cross_products(np.concatenate([group.codes for group in groups]), plan.bits)
    power = np.sqrt(np.diag(products))
    gains = np.concatenate([_gains(plan, group) for group in groups])
    seen = products / np.outer(power, power) / np.outer(gains, gains)
    rho = np.interp(np.abs(seen), curve.of_codes, CORRELATIONS)
    sizes = np.concatenate([np.maximum(group.sizes, 0.0) for group in groups])
    sigmas = np.concatenate([group.sizes_sigma for group in groups])
    counts = np.copysign(rho, seen) * np.sqrt(np.outer(*2 * [sizes + plan.variance * plan.buckets]))
    return Cells(counts, _errors(plan, rho, sizes, sizes, sigmas, sigmas, np.outer(gains, gains)))


def _errors(
    plan: CountSketchPlan, rho: Floats, left: Floats, right: Floats, left_sigma: Floats, right_sigma: Floats,
    gain: Floats | float = 1.0,
) -> Floats:  # fmt: skip
    """Standard errors at correlations [shape=(left, right)]: of the codes, and of the sizes that scale them."""
    noise = plan.variance * plan.buckets
    left, right = left + noise, right + noise
    curve = _curve(plan.bits)
    own = np.interp(rho, CORRELATIONS, curve.error) / gain * np.sqrt(np.outer(left, right) / plan.numbers)
    scale = (0.5 * rho) ** 2 * (np.outer(left_sigma**2 / left, right) + np.outer(left, right_sigma**2 / right))
    out: Floats = np.sqrt(own**2 + scale)
    return out


def predicted_cell_errors(plan: CountSketchPlan, left_sizes: Floats, right_sizes: Floats, counts: Floats) -> Floats:
    """Standard errors before any sketch, sizes being known.

    Args:
        plan: the sketches' parameters.
        left_sizes, right_sizes: expected records per value [shape=(u,) and (w,)].
        counts: expected records per cell [shape=(u, w)].

    Returns:
        [shape=(u, w), float64]
    """
    noise = plan.variance * plan.buckets
    left, right = np.asarray(left_sizes, np.float64), np.asarray(right_sizes, np.float64)
    rho = np.minimum(np.asarray(counts) / np.sqrt(np.outer(left + noise, right + noise)), CORRELATIONS[-1])
    return _errors(plan, rho, left, right, np.zeros_like(left), np.zeros_like(right))
