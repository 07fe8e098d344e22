"""CarEst for count sketches: every cell of every two groups, with its standard error.

Divide counters by their group's weight. Two values' counters then have covariance T / buckets,
where T is the number of records with both values, and variances (n + N) / buckets, where n is the
number of records with that value and N = variance * buckets / weight is the noise. All cells follow
from one matrix product, in three steps:

1. The published codes of two rows have a correlation that is a known function of the counters'
   correlation. It is inverted.
2. The counters of all values of a group sum to the same signed sum over all records, plus noise.
   This sum adds to the error of every cell, and it can be estimated. Its best linear prediction is
   subtracted from every row, and what known set sizes say of the predictions' covariances is added
   back. All of this acts on the matrix of products.
3. Correlations of the rest, rather than covariances, leave out the part of the error that known
   sizes explain.

A group that is published as a contrast (:data:`~.parameters.CONTRAST_SIGNS`) has one row, to which
every record adds with one sign or the other, and no such sum. Its cells follow from the covariances
of contrasts, the number of records, and the set sizes of the other group.

A group of one value is the sum over all records of its party. Parties whose only other group is a
contrast publish one, to show which records they hold.

If parties hold different people, T counts those that both hold. The sum of another party's group
then covaries with a value's counter by those of its records that the other party holds too. No set
size says how many these are, and they are estimated from the codes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ...arrays import Bytes, Floats, Integers
from ...kernels.count_sketch import cross_products
from ...kernels.jit import for_each
from ...progress import SILENT, Progress
from ..release import CONTRAST_SIGNS
from .encoding import STEPS, adding, code_steps, number_sigmas
from .parameters import CountSketches

# Correlations at which the correlation of codes is computed. In between it is interpolated.
CORRELATIONS = np.sin(np.linspace(0, 0.5 * math.pi, 80))[:-1]
# Errors of correlations do not fall any further beyond the root of this.
HIGHEST_SQUARE = 0.99
# Error of counts of all records because a bucket's sum is not exactly Gaussian, as a part of the
# records (docs/constants.md). It is far below the error of any cell.
CODES_LAW = 0.003
# A Gaussian is integrated on GAUSS_POINTS points, up to GAUSS_REACH standard deviations.
GAUSS_POINTS, GAUSS_REACH = 4001, 8.0


@dataclass(frozen=True, eq=False)
class CountedGroup:
    """A published group with its set sizes.

    Attributes:
        codes: published codes [shape=(rows, counters), uint8]; a row for each value, or one for the
            contrast.
        released: records of each value from its party's released figures, by which the party set
            the steps [shape=(values,), float64].
        sizes: best estimate of the records of each value [shape=(values,), float64].
        sizes_sigma: standard errors of ``sizes`` [shape=(values,), float64].
        contrasted: whether the group is published as a contrast.
        weight: by how much a record moves the counters.
    """

    codes: Bytes
    released: Floats
    sizes: Floats
    sizes_sigma: Floats
    contrasted: bool = False
    weight: int = 1


@dataclass(frozen=True, eq=False)
class Cells:
    """Estimated number of records with two values, for every two values of all groups, in order.

    Attributes:
        counts: records [shape=(v, v), float64]; may be negative. Entries of two values of one group
            are meaningless.
        errors: standard errors [shape=(v, v), float64]. Those of contrasted groups are of the
            contrasts alone, as if each cell had noise of its own.
        common: records that two groups' tables have in common, from the codes alone
            [shape=(groups, groups), float64]. The diagonal is meaningless.
        noise: variance of a group's sum beyond 1 for every record; infinite for contrasts, which
            have no sum [shape=(groups,), float64].
    """

    counts: Floats
    errors: Floats
    common: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class SharedRecords:
    """How many records parties have in common.

    Attributes:
        records: number that two parties have in common, and on the diagonal each party's number
            [shape=(parties, parties), float64].
        errors: standard errors of ``records`` [shape=(parties, parties), float64].
        of_values: how many of each value's records each party has [shape=(v, parties), float64];
            may be negative.
        of_values_errors: standard errors of ``of_values``, at least one record, without what errors
            of ``records`` add [shape=(v, parties), float64].
    """

    records: Floats
    errors: Floats
    of_values: Floats
    of_values_errors: Floats


@dataclass(frozen=True, eq=False)
class _Populations:
    """The populations whose records the groups count: one for all parties, or one for each party.

    Attributes:
        of_group: 1 for each group's population, 0 elsewhere [shape=(groups, populations), float64].
        common: records that two populations have in common, and on the diagonal each one's number
            [shape=(populations, populations), float64].
        inside: each row's sum over the records of each population [shape=(rows, populations),
            float64].
        errors: standard errors of ``inside`` [shape=(rows, populations), float64].
    """

    of_group: Floats
    common: Floats
    inside: Floats
    errors: Floats

    @property
    def records(self) -> Floats:
        """Number of records of every group [shape=(groups,), float64]."""
        return self.of_group @ np.diag(self.common)


@dataclass(frozen=True, eq=False)
class _Layout:
    """How the rows of groups relate to their values: a row for each value, or one for a contrast.

    Attributes:
        members: 1 where a row is a value of a group, 0 elsewhere, also for rows of contrasts
            [shape=(rows, groups), float64].
        group: each row's group [shape=(rows,), int64].
        row: each value's row [shape=(v,), int64].
        signs: signs with which records of a value add to its row [shape=(v,), float64].
        parts: the indicator of a value is its row times ``signs`` and this, plus ``constant``: 1/2
            for the values of contrasts, 1 for others [shape=(v,), float64].
    """

    members: Floats
    group: Integers
    row: Integers
    signs: Floats
    parts: Floats

    @property
    def plain(self) -> bool:
        """Whether each row is one value."""
        return not self.constant.any()

    @property
    def constant(self) -> Floats:
        """1/2 for the values of contrasts, 0 for others [shape=(v,), float64]."""
        return 1 - self.parts

    def sums_noise(self, variances: Floats, records: Floats) -> Floats:
        """Variance of the groups' sums beyond 1 for every record, at least 1.

        Args:
            variances: of the rows [shape=(rows,), float64].
            records: of the groups [shape=(groups,), float64].

        Returns:
            [shape=(groups,), float64]
        """
        return np.maximum(variances @ self.members - records, 1.0)

    def of_values(self, of_group: Floats) -> Floats:
        """1 for each value's population, 0 elsewhere [shape=(v, populations)], from groups'."""
        return of_group[self.group[self.row]]

    def spread_out(self, variance: Floats) -> Floats:
        """Variances of values' cells [shape=(v, v)] from those of rows [shape=(rows, rows)]: both
        values of a contrasted group share the noise of its contrast.
        """
        return variance if self.plain else _weighed(variance, self.row, self.parts)


@dataclass(frozen=True, eq=False)
class _Products:
    """Covariances from the codes, in records, and the set sizes that go with them.

    Attributes:
        layout: of rows and values.
        sums: each row's sum over all records: the records of a value, or a contrast
            [shape=(rows,)].
        sigmas: standard errors of ``sums`` [shape=(rows,)].
        adding: records that add to each row [shape=(rows,)].
        variances: of each row's counters as estimated from codes, by known sizes and noise
            [shape=(rows,)].
        covariances: of rows; on the diagonal the observed variances [shape=(rows, rows)].
        with_sums: covariances of rows with groups' sums [shape=(rows, groups)].
        common: covariances of groups' sums [shape=(groups, groups)].
    """

    layout: _Layout
    sums: Floats
    sigmas: Floats
    adding: Floats
    variances: Floats
    covariances: Floats
    with_sums: Floats
    common: Floats


@dataclass(frozen=True, eq=False)
class _Curve:
    """How correlations of codes follow from those of Gaussian counters.

    Attributes:
        of_codes: correlation of the codes for each of CORRELATIONS [shape=(79,), float64].
        gain: correlation of a Gaussian with its own code.
    """

    of_codes: Floats
    gain: float


@functools.cache
def code_curve(bits: int) -> _Curve:
    """Compute the curve for codes of a number of bits."""
    inner = STEPS[bits] * _cuts(bits)
    code, edges, gains, powers = _quantised(bits, inner[None])
    x = np.linspace(-GAUSS_REACH, GAUSS_REACH, GAUSS_POINTS)
    # A point on a cut counts half on either side.
    weight = np.exp(-0.5 * x**2)
    weight /= weight.sum()
    average = 0.5 * (
        code[np.searchsorted(inner, x, side="left")] + code[np.searchsorted(inner, x, side="right")]
    )

    def of_codes(i: int) -> float:
        rho = CORRELATIONS[i]
        below = special.ndtr((edges - rho * x[:, None]) / math.sqrt(1 - rho**2))
        given = np.diff(below, axis=1) @ code
        return float((weight * average * given).sum()) / float(powers[0])

    return _Curve(np.array(for_each(len(CORRELATIONS), of_codes)), float(gains[0]))


def _cuts(bits: int) -> Floats:
    """Where one code ends and the next begins, in steps [shape=(codes - 1,), float64]."""
    half = 1 << (bits - 1)
    return np.arange(1 - half, half, dtype=np.float64)


def _quantised(bits: int, cuts: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """What codes keep of Gaussian counters.

    Args:
        bits: of a code.
        cuts: between codes, in standard deviations [shape=(rows, codes - 1), float64].

    Returns:
        The codes as numbers [shape=(codes,)]; their edges [shape=(rows, codes + 1)]; and per row the
        correlation of a counter with its code, and the mean square of the codes [both
        shape=(rows,)] [all float64].
    """
    code = 2.0 * np.arange(1 << bits, dtype=np.float64) + 1 - (1 << bits)
    edges = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
    power = (np.diff(special.ndtr(edges), axis=1) * code**2).sum(axis=1)
    gain = 2 * np.exp(-0.5 * cuts**2).sum(axis=1) / np.sqrt(2 * math.pi * power)
    return code, edges, gain, power


def code_moments(plan: CountSketches, group: CountedGroup) -> tuple[Floats, Floats]:
    """Gains and mean squares of a group's codes, with the steps that its party used.

    Counters are half-integers: a cut anywhere between two of them is a cut halfway.

    Args:
        plan: the sketches' parameters.
        group: the group.

    Returns:
        Per row the correlation of a counter with its code, relative to that of the best steps; and
        the mean square of its codes [both shape=(rows,), float64].
    """
    sigma = number_sigmas(plan, adding(group.sizes, group.contrasted), group.weight)[:, None]
    steps = code_steps(plan, adding(group.released, group.contrasted), group.weight)[:, None]
    *_, gain, power = _quantised(plan.bits, np.ceil(steps * _cuts(plan.bits) - 0.5) / sigma)
    return gain / code_curve(plan.bits).gain, power


def estimate_cells(
    plan: CountSketches,
    groups: Sequence[CountedGroup],
    total: float,
    progress: Progress = SILENT,
) -> Cells:
    """Estimate all cells of all pairs of groups, if all parties hold the same records.

    Args:
        plan: the sketches' parameters.
        groups: any of the plan's groups, of one party or of several.
        total: estimated number of records.
        progress: receives the number of counters that are done.

    Returns:
        The cells.
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
    plan: CountSketches,
    groups: Sequence[CountedGroup],
    parties: Sequence[int],
    records: Floats,
    errors: Floats,
    progress: Progress = SILENT,
) -> tuple[Cells, SharedRecords]:
    """Estimate all cells of all pairs of groups, if parties hold different people.

    Args:
        plan: the sketches' parameters.
        groups: of two parties or more.
        parties: the party of each group.
        records: number of records of each party [shape=(parties,), float64].
        errors: standard errors of ``records`` [shape=(parties,), float64].
        progress: receives the number of counters that are done.

    Returns:
        The cells, over the records that both parties hold; and how many records parties have in
        common, where a party without groups counts as having all.
    """
    products = _products(plan, groups, progress)
    of_group = np.eye(len(records))[list(parties)]
    layout = products.layout
    common, common_errors, inside, inside_errors = _shared_records(
        plan, products, of_group, records, errors
    )
    at_most = np.clip(common, 0, np.minimum.outer(records, records))
    populations = _Populations(of_group, at_most, inside, inside_errors)
    party = layout.of_values(of_group)
    of_values = (layout.parts * layout.signs)[:, None] * inside[layout.row]
    of_values += layout.constant[:, None] * (party @ at_most)
    # Errors of values with hardly any records are small, but not zero.
    shared = SharedRecords(
        common,
        common_errors,
        of_values,
        np.maximum(layout.parts[:, None] * inside_errors[layout.row], 1.0),
    )
    return _cells(plan, products, populations), shared


def _shared_records(
    plan: CountSketches, products: _Products, of_group: Floats, records: Floats, errors: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Estimate how many records parties share, and every row's sum over every party's records.

    Args:
        plan: the sketches' parameters.
        products: of all groups.
        of_group: 1 for each group's party, 0 elsewhere [shape=(groups, parties), float64].
        records: number of records of each party [shape=(parties,), float64].
        errors: standard errors of ``records`` [shape=(parties,), float64].

    Returns:
        Records that two parties share and their standard errors [both shape=(parties, parties)],
        rows' sums and their standard errors [both shape=(rows, parties)].
    """
    layout = products.layout
    noise = layout.sums_noise(products.variances, of_group @ records)
    # All groups of a party have the same sum. Average them by the precision of their noise.
    precision = of_group * (layout.members.any(axis=0) / noise)[:, None]
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
    all_inside = (of_group[layout.group] > 0) | silent
    sums_errors = np.sqrt((np.outer(products.variances, spread) + sums**2) / plan.numbers)
    least = np.where(layout.members.any(axis=1, keepdims=True), 0, -most)
    inside = np.where(all_inside, known_sums, np.clip(sums, least, most))
    inside_errors = np.where(all_inside, sigmas, np.minimum(sums_errors, most))
    return common, common_errors, inside, inside_errors


def _products(plan: CountSketches, groups: Sequence[CountedGroup], progress: Progress) -> _Products:
    """The products of all groups."""
    gains, powers = (
        np.concatenate(each)
        for each in zip(*(code_moments(plan, group) for group in groups), strict=True)
    )
    sizes = [np.maximum(group.sizes, 0.0) for group in groups]
    records = np.concatenate(
        [adding(each, group.contrasted) for each, group in zip(sizes, groups, strict=True)]
    )
    exact_variances = records + np.concatenate(
        [np.full(len(g.codes), plan.noise(g.weight)) for g in groups]
    )
    # Codes lose information: counters estimated from them have a larger variance.
    variances = exact_variances / (gains * code_curve(plan.bits).gain) ** 2
    layout = _layout([len(each) for each in sizes], [group.contrasted for group in groups])
    codes = np.concatenate([group.codes for group in groups])
    products = cross_products(codes, plan.bits, progress.advance)
    scale = gains * np.sqrt(powers)
    covariances = _covariances(plan.bits, products / np.outer(scale, scale), exact_variances)
    np.fill_diagonal(covariances, np.diag(products) / powers * variances)
    with_sums = covariances @ layout.members
    sums: Floats = np.bincount(layout.row, layout.signs * np.concatenate(sizes)).astype(np.float64)
    squares = np.concatenate([group.sizes_sigma for group in groups]) ** 2
    sigmas = np.sqrt(np.bincount(layout.row, squares))
    common = layout.members.T @ with_sums
    return _Products(layout, sums, sigmas, records, variances, covariances, with_sums, common)


def _cells(plan: CountSketches, products: _Products, populations: _Populations) -> Cells:
    """Estimate all cells from products: steps 2 and 3 of the module's docstring."""
    layout, variances, covariances = products.layout, products.variances, products.covariances
    members = layout.members
    weights, explained = _sums_predictions(layout, variances, populations)
    cross = weights @ products.with_sums.T
    rest = covariances - cross - cross.T + weights @ products.common @ weights.T
    # Nothing is left of a group of one value, which is its sum.
    observed = np.sqrt(np.maximum(np.diag(rest), 1.0))
    correlations = np.clip(rest / np.outer(observed, observed), -1, 1)
    # Standard deviations of what is left of the rows, by known sizes and noise.
    sd = np.sqrt(np.maximum(variances - np.diag(explained), 1.0))
    variance = (
        np.square((1 - np.minimum(correlations**2, HIGHEST_SQUARE)) * np.outer(sd, sd))
        / plan.numbers
    )
    # One more record of a value adds to what the sums of a population explain, and in its own
    # population to the variance of its row.
    slopes = weights @ populations.of_group
    inside = members @ populations.of_group
    for slope, in_population, error in zip(slopes.T, inside.T, populations.errors.T, strict=True):
        by_size = (
            slope + 0.5 * correlations * sd / sd[:, None] * (in_population - 2 * slope)[:, None]
        ) * error[:, None]
        variance += by_size**2 + by_size.T**2
    noise = layout.sums_noise(variances, populations.records)
    return Cells(
        counts=_of_values(layout, populations, correlations * np.outer(sd, sd) + explained),
        errors=np.sqrt(layout.spread_out(variance)),
        common=products.common,
        noise=np.where(members.any(axis=0), noise, np.inf),
    )


def _of_values(layout: _Layout, populations: _Populations, counts: Floats) -> Floats:
    """Cells of values [shape=(v, v)] from those of rows; sums give what contrasts leave out."""
    if layout.plain:
        return counts
    values, constant = layout.parts * layout.signs, layout.constant
    population = layout.of_values(populations.of_group)
    # Products of constants with rows, and of constants with constants.
    sums = population @ (values[:, None] * populations.inside[layout.row]).T
    out = _weighed(counts, layout.row, values) + constant[:, None] * sums
    out += (constant[:, None] * sums).T
    out += np.outer(constant, constant) * (population @ populations.common @ population.T)
    return out


def _layout(sizes: Sequence[int], contrasted: Sequence[bool]) -> _Layout:
    """The layout of groups, from their numbers of values and whether each is contrasted."""
    rows = np.where(contrasted, 1, sizes)
    second = np.concatenate(
        [contrast & (np.arange(n) > 0) for n, contrast in zip(sizes, contrasted, strict=True)]
    )
    return _Layout(
        members=np.repeat(np.eye(len(sizes)) * ~np.array(contrasted), rows, axis=0),
        group=np.repeat(np.arange(len(sizes)), rows),
        row=np.arange(len(second)) - np.cumsum(second),
        signs=np.array(CONTRAST_SIGNS, np.float64)[second.astype(np.int64)],
        parts=np.repeat(np.where(contrasted, 0.5, 1.0), sizes),
    )


def _weighed(matrix: Floats, row: Integers, weights: Floats) -> Floats:
    """Entries of rows [shape=(rows, rows)] for every two values, times both weights [shape=(v, v)]."""
    return weights[:, None] * matrix[np.ix_(row, row)] * weights


def _sums_predictions(
    layout: _Layout, variances: Floats, populations: _Populations
) -> tuple[Floats, Floats]:
    """Best linear predictions of rows from groups' sums; contrasted groups have no sums.

    Args:
        layout: of rows and values.
        variances: of rows [shape=(rows,)].
        populations: whose records the groups count.

    Returns:
        Weights of the sums in the prediction of a row [shape=(rows, groups)], and covariances of
        these predictions, in records [shape=(rows, rows)].
    """
    members = layout.members
    summed = members.any(axis=0)
    of_group = populations.of_group[summed]
    everyone = of_group @ populations.common @ of_group.T
    with_sums = np.where(
        members[:, summed] > 0, variances[:, None], populations.inside @ of_group.T
    )
    weights = np.zeros(members.shape)
    noise = layout.sums_noise(variances, populations.records)
    weights[:, summed] = np.linalg.solve(everyone + np.diag(noise[summed]), with_sums.T).T
    return weights, weights[:, summed] @ with_sums.T


def _covariances(bits: int, of_codes: Floats, variances: Floats) -> Floats:
    """Covariances of rows [shape=(rows, rows)], from variances and correlations of codes."""
    out: Floats = np.interp(np.abs(of_codes), code_curve(bits).of_codes, CORRELATIONS)
    return np.copysign(out, of_codes) * np.sqrt(np.outer(variances, variances))
