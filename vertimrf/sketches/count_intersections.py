"""CarEst for count sketches: every cell of every pair of groups, with its standard error, from one matrix product.

Two values' numbers have covariance T / buckets, with T the records that have both, and variances (n + N) / buckets, with n the
records that have either and N = variance * buckets the noise, or that over the group's weight, which its numbers are taken to be
divided by. What is published are codes of the numbers, whose correlation is a known function of the numbers'; it is inverted.

Every group's numbers add up to the same sum over all records, and its own noise. That sum is in every cell's error, and it is
known: what all groups' sums tell of a value's numbers is taken out of them first, and what it adds to their covariances, a
function of set sizes alone, is put back. All of this acts on the matrix of products. Last, correlations rather than covariances
leave out the part of the error that known sizes explain.

Groups that are published as contrasts (:data:`~.parameters.CONTRAST_SIGNS`) have no such sum: every record is in each of their
numbers, with one sign or the other. Cells follow from the covariances of contrasts and, as contrasts leave out how many records
there are and how many of the other group's values, from known sizes.

A group of one value is a sum over all records and nothing else. Parties whose only other group is a contrast publish one, so that
the server can tell who is there.

Parties may hold different people. T counts those that both hold, whoever else there is; but the sum of another party's group
covaries with a value's number by those of its records that the other party holds too, which no size tells. The codes do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from ..errors import MessageError
from ..kernels.count_sketch import cross_products
from ..progress import Progress, Silent
from .count_sketch import STEPS, adding, code_steps, number_sigmas
from .parameters import CONTRAST_SIGNS, CountSketchPlan

__all__ = [
    "Cells",
    "CountedGroup",
    "Held",
    "estimate_cells",
    "estimate_overlapping",
    "predicted_cell_errors",
]

Floats = npt.NDArray[np.float64]
# A SciPy matrix by rows, which has no types.
Sparse = Any

# Correlations at which the codes' law is computed; in between it is interpolated.
CORRELATIONS = np.sin(np.linspace(0, 0.5 * math.pi, 80))[:-1]
# Errors of correlations beyond its root are no smaller than at it.
HIGHEST_SQUARE = 0.99
# What the law of codes may be off by, as a part of all records: a bucket's sum is no Gaussian; of two bits 400,000 records were
# counted 0.2 to 0.4 % too low with up to 50 of a value's in a bucket (six runs). That is far below the error of any cell.
CODES_LAW = 0.003
# Points that a Gaussian is integrated on, up to so many standard deviations.
GAUSS_POINTS, GAUSS_REACH = 4001, 8.0


@dataclass(frozen=True, eq=False)
class CountedGroup:
    """A group as the server has it.

    Attributes:
        codes: published [shape=(values, numbers), uint8]; one row less where they are contrasts.
        released: records of each value as its party's released figures told when steps were set [shape=(values,), float64].
        sizes: records of each value, as well as they are known now [shape=(values,), float64].
        sizes_sigma: their standard errors [shape=(values,), float64].
        contrasted: whether rows of the codes are contrasts instead of values.
        weight: by which a record moves its numbers.
    """

    codes: npt.NDArray[np.uint8]
    released: Floats
    sizes: Floats
    sizes_sigma: Floats
    contrasted: bool = False
    weight: int = 1


@dataclass(frozen=True, eq=False)
class Cells:
    """Estimated records that have two values, for every two values of all groups, in order.

    Attributes:
        counts: [shape=(v, v), float64]; may be negative. Two values of one group: of no meaning.
        errors: standard errors, of groups that are contrasted those of the contrasts alone, as if each cell had noise of its own
            [shape=(v, v), float64].
        common: records that two groups' tables have in common, by the codes alone, where ``counts`` take it that they have all
            [shape=(groups, groups), float64]. A group and itself: of no meaning.
        noise: what is in the variance of a group's sum beside one for every record; infinite where no sum is published
            [shape=(groups,), float64].
    """

    counts: Floats
    errors: Floats
    common: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class Held:
    """How many people parties hold, and have in common.

    Attributes:
        records: two parties' in common, a party's own on the diagonal [shape=(parties, parties), float64].
        errors: their standard errors [shape=(parties, parties), float64].
        of_values: of each value's records those that each party has [shape=(v, parties), float64]; may be negative.
        of_values_errors: their standard errors, at least a record, and but for what those of ``records`` add
            [shape=(v, parties), float64].
    """

    records: Floats
    errors: Floats
    of_values: Floats
    of_values_errors: Floats


@dataclass(frozen=True, eq=False)
class _Populations:
    """Whose records the groups have.

    Attributes:
        of_group: each group's population, as 1 among 0 [shape=(groups, populations), float64].
        common: records that two populations have in common, their own on the diagonal [shape=(populations, populations)].
        inside: a row's sum over the records that are of each population [shape=(rows, populations), float64].
        errors: their standard errors [shape=(rows, populations), float64].
    """

    of_group: Floats
    common: Floats
    inside: Floats
    errors: Floats

    @property
    def records(self) -> Floats:
        """Of every group [shape=(groups,)]."""
        return self.of_group @ np.diag(self.common)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Rows of groups, and their values; most values are a row of their own.

    Attributes:
        own: 1 where a row is of a group, 0 elsewhere, and where the group is contrasted [shape=(rows, groups)].
        group: each row's group [shape=(rows,), int].
        signs: with which values add to rows [shape=(v, rows), sparse].
        values: what rows add to indicators of values [as ``signs``]; ``constant``: what is added besides [shape=(v,)].
        spread: what squared errors of rows add to those of values [as ``signs``].
    """

    own: Floats
    group: npt.NDArray[np.int64]
    signs: Sparse
    values: Sparse
    constant: Floats
    spread: Sparse

    @property
    def plain(self) -> bool:
        """Whether rows are the values."""
        return not self.constant.any()

    def sums_noise(self, told: Floats, records: Floats) -> Floats:
        """What is in the variances of groups' sums beside one for every one of their ``records`` [both shape=(groups,)]."""
        return np.maximum(told @ self.own - records, 1.0)

    def of_values(self, of_group: Floats) -> Floats:
        """Every value's population, given every group's, as 1 among 0 [shape=(v, populations)]."""
        out: Floats = np.sign(self.spread @ of_group[self.group])
        return out

    def spread_out(self, variance: Floats) -> Floats:
        """Variances of values' cells [shape=(v, v)] from those of rows'."""
        out: Floats = variance if self.plain else self.spread @ variance @ self.spread.T
        return out


@dataclass(frozen=True, eq=False)
class _Products:
    """What codes tell by themselves, in records.

    Attributes:
        layout: of rows and values.
        sums, sigmas: of each row over the records, and their standard errors: records of a value, or a contrast of all
            [shape=(rows,)].
        adding: records that add to each row [shape=(rows,)].
        told: variances of what rows' codes tell of their numbers [shape=(rows,)].
        covariances: of rows' numbers; on the diagonal, the variance that is found [shape=(rows, rows)].
        with_sums: covariances of rows' numbers with groups' sums [shape=(rows, groups)].
        common: of groups' sums [shape=(groups, groups)].
    """

    layout: _Layout
    sums: Floats
    sigmas: Floats
    adding: Floats
    told: Floats
    covariances: Floats
    with_sums: Floats
    common: Floats


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
def code_curve(bits: int) -> _Curve:
    half = 1 << (bits - 1)
    code = 2.0 * np.arange(2 * half) + 1 - 2 * half
    inner = STEPS[bits] * np.arange(1 - half, half)
    cuts = np.concatenate([[-np.inf], inner, [np.inf]])
    x = np.linspace(-GAUSS_REACH, GAUSS_REACH, GAUSS_POINTS)
    # Points on a cut are half on either side.
    weight = np.exp(-0.5 * x**2)
    weight /= weight.sum()
    own = 0.5 * (
        code[np.searchsorted(inner, x, side="left")] + code[np.searchsorted(inner, x, side="right")]
    )
    power = float((np.diff(special.ndtr(cuts)) * code**2).sum())
    gain = float(2 * np.exp(-0.5 * inner**2).sum() / math.sqrt(2 * math.pi * power))
    of_codes = np.empty(len(CORRELATIONS))
    for i, rho in enumerate(CORRELATIONS):
        given = (
            np.diff(special.ndtr((cuts - rho * x[:, None]) / math.sqrt(1 - rho**2)), axis=1) @ code
        )
        of_codes[i] = float((weight * own * given).sum()) / power
    return _Curve(of_codes, gain)


def code_moments(plan: CountSketchPlan, group: CountedGroup) -> tuple[Floats, Floats]:
    """Of every row: the covariance of its number with its code, over both standard deviations, relative to the best; and the
    mean square of its codes [each shape=(rows,)].

    Numbers are half-integers: a cut anywhere between two of them is a cut halfway.
    """
    sigma = number_sigmas(plan, adding(group.sizes, group.contrasted), group.weight)[:, None]
    half = 1 << (plan.bits - 1)
    steps = code_steps(plan, adding(group.released, group.contrasted), group.weight)[:, None]
    cuts = np.ceil(steps * np.arange(1 - half, half) - 0.5) / sigma
    code = 2.0 * np.arange(2 * half) + 1 - 2 * half
    edges = np.concatenate(
        [np.full_like(sigma, -np.inf), cuts, np.full_like(sigma, np.inf)], axis=1
    )
    share = np.diff(special.ndtr(edges), axis=1)
    power = (share * code**2).sum(axis=1)
    gain: Floats = 2 * np.exp(-0.5 * cuts**2).sum(axis=1) / np.sqrt(2 * math.pi * power)
    return gain / code_curve(plan.bits).gain, power


def estimate_cells(
    plan: CountSketchPlan,
    groups: Sequence[CountedGroup],
    total: float,
    progress: Progress | None = None,
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
    products = _products(plan, groups, progress)
    everybody = _Populations(
        np.ones((len(groups), 1)),
        np.array([[total]]),
        products.sums[:, None],
        products.sigmas[:, None],
    )
    return _cells(plan, products, everybody)


def estimate_overlapping(
    plan: CountSketchPlan,
    groups: Sequence[CountedGroup],
    parties: Sequence[int],
    records: Floats,
    errors: Floats,
    progress: Progress | None = None,
) -> tuple[Cells, Held]:
    """All cells of all pairs of groups, where parties hold different people: the records that both hold.

    Args:
        plan: the sketches' parameters.
        groups: of two parties or more.
        parties: of each group [length groups].
        records: how many records each party holds, and their standard ``errors`` [shape=(parties,), float64].
        progress: told of how many numbers have been gone through.

    Returns:
        The cells, and how many records parties have in common; those of a party without groups count as everybody's.

    Raises:
        MessageError: codes or sizes that do not fit the plan or each other.
    """
    products = _products(plan, groups, progress)
    of_group = np.eye(len(records))[list(parties)]
    layout = products.layout
    common, common_errors, inside, inside_errors = _shared_records(
        plan, products, of_group, records, errors
    )
    at_most = np.clip(common, 0, np.minimum.outer(records, records))
    populations = _Populations(of_group, at_most, inside, inside_errors)
    own = layout.of_values(of_group)
    of_values = layout.values @ inside + layout.constant[:, None] * (own @ at_most)
    # Of a value that its own party hardly has, little can be missed; but not nothing.
    held = Held(
        common,
        common_errors,
        of_values,
        np.maximum(np.sqrt(layout.values.power(2) @ inside_errors**2), 1.0),
    )
    return _cells(plan, products, populations), held


def _shared_records(
    plan: CountSketchPlan, products: _Products, of_group: Floats, records: Floats, errors: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """How many records parties share [shape=(parties, parties)], with the errors; and every row's sum over every party's records
    [shape=(rows, parties)], with theirs.
    """
    layout = products.layout
    noise = layout.sums_noise(products.told, of_group @ records)
    # Every group of a party has the same sum; this is the best average of them, and the variance of its noise.
    precision = of_group * (layout.own.any(axis=0) / noise)[:, None]
    silent = precision.sum(axis=0) == 0
    average = precision / np.where(silent, 1, precision.sum(axis=0))
    spread = records + np.where(silent, 0, 1 / np.where(silent, 1, precision.sum(axis=0)))
    sums = products.with_sums @ average
    common = average.T @ products.common @ average
    common_errors = np.sqrt(
        (np.outer(spread, spread) + common**2) / plan.numbers + (CODES_LAW * common) ** 2
    )
    known = np.eye(len(records), dtype=bool) | np.logical_or.outer(silent, silent)
    common = np.where(known, np.minimum.outer(records, records), common)
    common_errors = np.where(known, np.maximum.outer(errors, errors), common_errors)
    known_sums, sigmas, most = (
        products.sums[:, None],
        products.sigmas[:, None],
        products.adding[:, None],
    )
    mine = (of_group[layout.group] > 0) | silent
    sums_errors = np.sqrt((np.outer(products.told, spread) + sums**2) / plan.numbers)
    least = np.where(layout.own.any(axis=1, keepdims=True), 0, -most)
    inside = np.where(mine, known_sums, np.clip(sums, least, most))
    return common, common_errors, inside, np.where(mine, sigmas, np.minimum(sums_errors, most))


def _products(
    plan: CountSketchPlan, groups: Sequence[CountedGroup], progress: Progress | None
) -> _Products:
    """Raises as :func:`estimate_cells`."""
    for number, group in enumerate(groups):
        lengths = {
            len(group.codes) + group.contrasted,
            len(group.released),
            len(group.sizes),
            len(group.sizes_sigma),
        }
        if len(lengths) > 1 or group.codes.ndim != 2 or group.codes.shape[1] != plan.numbers:
            raise MessageError(
                f"Group {number} has codes of shape {group.codes.shape}, which do not fit its values or the plan."
            )
        if group.codes.size and group.codes.max() >= 1 << plan.bits:
            raise MessageError(
                f"Group {number} has codes beyond {plan.bits} bits: the message does not follow the plan."
            )
    gains, powers = (
        np.concatenate(each)
        for each in zip(*(code_moments(plan, group) for group in groups), strict=True)
    )
    held = [np.maximum(group.sizes, 0.0) for group in groups]
    every = np.concatenate(
        [adding(sizes, group.contrasted) for sizes, group in zip(held, groups, strict=True)]
    )
    variances = every + np.concatenate(
        [np.full(len(g.codes), plan.noise(g.weight)) for g in groups]
    )
    # In records: covariances of the numbers, and on the diagonal the variances of what their codes tell of them.
    told = variances / (gains * code_curve(plan.bits).gain) ** 2
    layout = _layout([len(sizes) for sizes in held], [group.contrasted for group in groups])
    codes = np.concatenate([group.codes for group in groups])
    products = cross_products(
        codes, plan.bits, (Silent() if progress is None else progress).advance
    )
    scale = gains * np.sqrt(powers)
    covariances = _covariances(plan.bits, products / np.outer(scale, scale), variances)
    np.fill_diagonal(covariances, np.diag(products) / powers * told)
    with_sums = covariances @ layout.own
    sums = layout.signs.T @ np.concatenate(held)
    sigmas = np.sqrt(
        abs(layout.signs.T) @ np.concatenate([group.sizes_sigma for group in groups]) ** 2
    )
    return _Products(
        layout, sums, sigmas, every, told, covariances, with_sums, layout.own.T @ with_sums
    )


def _cells(plan: CountSketchPlan, products: _Products, populations: _Populations) -> Cells:
    """All cells, with what sums tell taken out and put back."""
    layout, told, covariances = products.layout, products.told, products.covariances
    own = layout.own
    weights, explained = _known_sums(own, told, populations)
    cross = weights @ products.with_sums.T
    rest = covariances - cross - cross.T + weights @ products.common @ weights.T
    # A group of a single value is its sum, which leaves nothing.
    found = np.sqrt(np.maximum(np.diag(rest), 1.0))
    left = np.clip(rest / np.outer(found, found), -1, 1)
    known = np.sqrt(np.maximum(told - np.diag(explained), 1.0))
    variance = (
        np.square((1 - np.minimum(left**2, HIGHEST_SQUARE)) * np.outer(known, known)) / plan.numbers
    )
    # A record more of a value adds to what the sums of a population explain, and in its own to the variance of its number.
    slopes = weights @ populations.of_group
    mine = own @ populations.of_group
    for slope, whose, error in zip(slopes.T, mine.T, populations.errors.T, strict=True):
        by_size = (
            slope + 0.5 * left * known / known[:, None] * (whose - 2 * slope)[:, None]
        ) * error[:, None]
        variance += by_size**2 + by_size.T**2
    return Cells(
        counts=_of_values(layout, populations, left * np.outer(known, known) + explained),
        errors=np.sqrt(layout.spread_out(variance)),
        common=products.common,
        noise=np.where(own.any(axis=0), layout.sums_noise(told, populations.records), np.inf),
    )


def _of_values(layout: _Layout, populations: _Populations, counts: Floats) -> Floats:
    """Cells of values from those of rows; what contrasts leave out follows from sums [shape=(v, v)]."""
    if layout.plain:
        return counts
    values, constant = layout.values, layout.constant
    mine = layout.of_values(populations.of_group)
    # By value and population: records of the value, as far as rows tell; and as far as the constant does, of all.
    told = mine @ (values @ populations.inside).T
    out: Floats = (
        values @ counts @ values.T + constant[:, None] * told + (constant[:, None] * told).T
    )
    out += np.outer(constant, constant) * (mine @ populations.common @ mine.T)
    return out


def _layout(sizes: Sequence[int], contrasted: Sequence[bool]) -> _Layout:
    """Of groups of so many values each."""
    of_two = np.array(CONTRAST_SIGNS, np.float64)[:, None]
    signs = [of_two if own else np.eye(n) for n, own in zip(sizes, contrasted, strict=True)]
    rows = [own.shape[1] for own in signs]
    parts = [0.5 if own else 1.0 for own in contrasted]
    return _Layout(
        own=np.repeat(np.eye(len(sizes)) * ~np.array(contrasted), rows, axis=0),
        group=np.repeat(np.arange(len(sizes)), rows),
        signs=_blocks(signs),
        values=_blocks([part * own for part, own in zip(parts, signs, strict=True)]),
        constant=np.repeat(
            [part * own for part, own in zip(parts, contrasted, strict=True)], sizes
        ),
        # Both values of a contrasted group share its contrast's noise.
        spread=_blocks([np.abs(own) * part for part, own in zip(parts, signs, strict=True)]),
    )


def _blocks(parts: Sequence[Floats]) -> Sparse:
    """Matrices along the diagonal of one."""
    return sparse.csr_array(sparse.block_diag([sparse.coo_array(part) for part in parts]))


def _known_sums(own: Floats, told: Floats, populations: _Populations) -> tuple[Floats, Floats]:
    """What groups' sums tell of rows' numbers, in records; those of contrasted groups, which have none, nothing.

    Args:
        own: of :class:`_Layout`.
        told: variances of what is told of rows' numbers [shape=(rows,)].
        populations: who is where.

    Returns:
        Weights of the sums in the best guess of a number [shape=(rows, groups)], and covariances of these guesses
        [shape=(rows, rows)].
    """
    summed = own.any(axis=0)
    of_group = populations.of_group[summed]
    everyone = of_group @ populations.common @ of_group.T
    with_sums = np.where(own[:, summed] > 0, told[:, None], populations.inside @ of_group.T)
    weights = np.zeros(own.shape)
    noise = np.maximum(told @ own - populations.records, 1.0)
    weights[:, summed] = np.linalg.solve(everyone + np.diag(noise[summed]), with_sums.T).T
    return weights, weights[:, summed] @ with_sums.T


def _covariances(bits: int, seen: Floats, variances: Floats) -> Floats:
    """Covariances of numbers of some variances, from their codes' correlations [shape=(rows, rows)]."""
    out: Floats = np.interp(np.abs(seen), code_curve(bits).of_codes, CORRELATIONS)
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
    contrasted = [group in plan.contrasts for group in range(len(sizes))]
    layout = _layout([len(each) for each in sizes], contrasted)
    held = [np.asarray(each, np.float64) for each in sizes]
    every = np.concatenate([adding(each, own) for each, own in zip(held, contrasted, strict=True)])
    noise = np.array([plan.noise(plan.weight(group)) for group in layout.group])
    told = (every + noise) / code_curve(plan.bits).gain ** 2
    inside = (layout.signs.T @ np.concatenate(held))[:, None]
    everybody = _Populations(
        np.ones((len(sizes), 1)), np.array([[total]]), inside, np.zeros_like(inside)
    )
    _, explained = _known_sums(layout.own, told, everybody)
    known = np.maximum(told - np.diag(explained), 1.0)
    out: Floats = np.sqrt(layout.spread_out(np.outer(known, known) / plan.numbers))
    return out
