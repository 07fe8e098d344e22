"""CarEst for count sketches: every cell of every pair of groups, with its standard error, from one matrix product.

Two values' numbers have covariance T / buckets, with T the records that have both, and variances (n + N) / buckets, with n the
records that have either and N = variance * buckets the noise. What is published are codes of the numbers, whose correlation is
a known function of the numbers'; it is inverted.

Every group's numbers add up to the same sum over all records, and its own noise. That sum is in every cell's error, and it is
known: what all groups' sums tell of a value's numbers is taken out of them first, and what it adds to their covariances, a
function of set sizes alone, is put back. All of this acts on the matrix of products. Last, correlations rather than covariances
leave out the part of the error that known sizes explain.
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
from ..progress import Progress, Silent
from .count_sketch import STEPS, code_steps
from .parameters import CountSketchPlan

__all__ = ["Cells", "CountedGroup", "estimate_cells", "predicted_cell_errors"]

Floats = npt.NDArray[np.float64]

# Correlations at which the codes' law is computed; in between it is interpolated.
CORRELATIONS = np.sin(np.linspace(0, 0.5 * math.pi, 80))[:-1]
# Errors of correlations beyond its root are no smaller than at it.
HIGHEST_SQUARE = 0.99
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
        common: records that two groups' tables have in common, by the codes alone, where ``counts`` take it that they have all
            [shape=(groups, groups), float64]. A group and itself: of no meaning.
        noise: what is in the variance of a group's sum beside one for every record [shape=(groups,), float64].
    """

    counts: Floats
    errors: Floats
    common: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class _Curve:
    """What a correlation of two Gaussians becomes in their codes.

    Attributes:
        of_codes: correlation of the codes, at CORRELATIONS.
        gain: covariance of a Gaussian with its code, over the code's standard deviation.
    """

    of_codes: Floats
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
    power = float((np.diff(special.ndtr(cuts)) * code**2).sum())
    gain = float(2 * np.exp(-0.5 * inner**2).sum() / math.sqrt(2 * math.pi * power))
    of_codes = np.empty(len(CORRELATIONS))
    for i, rho in enumerate(CORRELATIONS):
        given = np.diff(special.ndtr((cuts - rho * x[:, None]) / math.sqrt(1 - rho**2)), axis=1) @ code
        of_codes[i] = float((weight * own * given).sum()) / power
    return _Curve(of_codes, gain)


def _code_moments(plan: CountSketchPlan, group: CountedGroup) -> tuple[Floats, Floats]:
    """Of every value: the covariance of its number with its code, over both standard deviations, relative to the best; and the
    mean square of its codes [each shape=(values,)].

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
    gain: Floats = 2 * np.exp(-0.5 * cuts**2).sum(axis=1) / np.sqrt(2 * math.pi * power)
    return gain / _curve(plan.bits).gain, power


def estimate_cells(
    plan: CountSketchPlan, groups: Sequence[CountedGroup], total: float, progress: Progress | None = None
) -> Cells:
    """All cells of all pairs of groups.

    Args:
        plan: the sketches' parameters.
        groups: any of the plan's, of one party or of several.
        total: record count.
        progress: told of how many numbers have been gone through.

    Raises:
        MessageError: codes or sizes that do not fit the plan or each other.
    """
    for number, group in enumerate(groups):
        lengths = {len(group.codes), len(group.released), len(group.sizes), len(group.sizes_sigma)}
        if len(lengths) > 1 or group.codes.ndim != 2 or group.codes.shape[1] != plan.numbers:
            raise MessageError(f"Group {number} has codes of shape {group.codes.shape}, which do not fit its values or the plan.")
        if group.codes.size and group.codes.max() >= 1 << plan.bits:
            raise MessageError(f"Group {number} has codes beyond {plan.bits} bits: the message does not follow the plan.")
    products = cross_products(
        np.concatenate([group.codes for group in groups]), plan.bits, (Silent() if progress is None else progress).advance
    )
    gains, powers = (np.concatenate(each) for each in zip(*(_code_moments(plan, group) for group in groups), strict=True))
    sizes = np.concatenate([np.maximum(group.sizes, 0.0) for group in groups])
    sigmas = np.concatenate([group.sizes_sigma for group in groups])
    variances = sizes + plan.variance * plan.buckets
    # In records: covariances of the numbers, and on the diagonal the variances of what their codes tell of them.
    told = variances / (gains * _curve(plan.bits).gain) ** 2
    covariances = _covariances(plan.bits, products / np.sqrt(np.outer(powers, powers)) / np.outer(gains, gains), variances)
    np.fill_diagonal(covariances, np.diag(products) / powers * told)

    own = _members([len(group.sizes) for group in groups])
    sums = _known_sums(own, sizes, told, total)
    weights, explained = sums.weights, sums.explained
    summed = covariances @ own
    common = own.T @ summed
    cross = weights @ summed.T
    rest = covariances - cross - cross.T + weights @ common @ weights.T
    # A group of a single value is its sum, which leaves nothing.
    found = np.sqrt(np.maximum(np.diag(rest), 1.0))
    left = np.clip(rest / np.outer(found, found), -1, 1)
    known = np.sqrt(np.maximum(told - np.diag(explained), 1.0))
    errors = (1 - np.minimum(left**2, HIGHEST_SQUARE)) * np.outer(known, known) / math.sqrt(plan.numbers)
    # A record more of a value adds to what sums explain, and to the variance of what they do not.
    slope = weights.sum(axis=1)
    by_size = (slope + 0.5 * left * known / known[:, None] * (1 - 2 * slope[:, None])) * sigmas[:, None]
    return Cells(
        counts=left * np.outer(known, known) + explained,
        errors=np.sqrt(errors**2 + by_size**2 + by_size.T**2),
        common=common,
        noise=sums.noise,
    )


@dataclass(frozen=True, eq=False)
class _Sums:
    """What groups' sums tell of values' numbers, in records.

    Attributes:
        weights: of the sums in the best guess of a number [shape=(v, groups)].
        explained: covariances of these guesses [shape=(v, v)].
        noise: what is in the variance of a group's sum beside one for every record [shape=(groups,)].
    """

    weights: Floats
    explained: Floats
    noise: Floats


def _members(sizes: Sequence[int]) -> Floats:
    """1 where a value is of a group, 0 elsewhere [shape=(v, groups)]."""
    return np.repeat(np.eye(len(sizes)), sizes, axis=0)


def _known_sums(own: Floats, sizes: Floats, told: Floats, total: float) -> _Sums:
    """From records of values and variances of what is told of their numbers [both shape=(v,)]."""
    with_sums = np.where(own > 0, told[:, None], sizes[:, None])
    noise: Floats = np.maximum(told @ own - total, 1.0)
    weights = np.asarray(np.linalg.solve(total + np.diag(noise), with_sums.T).T, np.float64)
    return _Sums(weights, weights @ with_sums.T, noise)


def _covariances(bits: int, seen: Floats, variances: Floats) -> Floats:
    """Covariances of numbers of some variances, from their codes' correlations [shape=(v, v)]."""
    out: Floats = np.interp(np.abs(seen), _curve(bits).of_codes, CORRELATIONS)
    out = np.copysign(out, seen) * np.sqrt(np.outer(variances, variances))
    return out


def predicted_cell_errors(plan: CountSketchPlan, sizes: Sequence[Floats], total: float) -> Floats:
    """Standard errors before any sketch, if values are independent.

    Args:
        plan: the sketches' parameters.
        sizes: expected records of each value, by group [each shape=(values,)].
        total: expected records.

    Returns:
        As the errors of :class:`Cells` [shape=(v, v), float64].
    """
    every = np.concatenate([np.asarray(each, np.float64) for each in sizes])
    told = (every + plan.variance * plan.buckets) / _curve(plan.bits).gain ** 2
    sums = _known_sums(_members([len(each) for each in sizes]), every, told, total)
    known = np.sqrt(np.maximum(told - np.diag(sums.explained), 1.0))
    out: Floats = np.outer(known, known) / math.sqrt(plan.numbers)
    return out
