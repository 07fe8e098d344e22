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

A contrast of two halves and the missing value has counters of two kinds. With x(r) = 1 or -1 for
the halves and 0 for a missing value, and u(r) = 1 for a missing value and 0 otherwise, a record adds
its sign times x + h u, where h = 1 or -1 is a Walsh function of the counter. The counters with h = 1
are those of the contrast x + u, in which the missing value is in the first half; those with h = -1
are of x - u. So the group has *two rows, each of half of the counters* (:class:`_Rows`), and both are
contrasts as above. Steps 1 and 3 hold for them; in step 2 nothing is subtracted from them. The values' indicators are

    lower half = (1 + (x - u)) / 2,    upper half = (1 - (x + u)) / 2,    missing = ((x + u) - (x - u)) / 2.

Two rows meet in the counters that both have: all, a half, or a quarter of them where two columns'
functions differ. The pair's four numbers (x y, x v, u y, u v for columns x, u and y, v) are sums over
all counters of products times 1, h_c, h_a or h_a h_c, half or a quarter of which are the rows'
products: they have the standard error of one contrast, ((n + N)^2 + T^2) / t, and are uncorrelated.
With the one-way marginals they fill the table of three values by three. Rows of one group, and those
of two groups with the same function, share no counters; such cells have an error as large as the
records.

A group of one value is the sum over all records of its party. Parties whose only other group is a
contrast publish one, to show which records they hold.

If parties hold different people, T counts those that both hold. The sum of another party's group
then covaries with a value's counter by those of its records that the other party holds too. No set
size says how many these are, and they are estimated from the codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Bytes, Flags, Floats, Integers
from ...kernels.count_sketch import alternating, cross_products
from ...progress import SILENT, Progress
from ..release import CONTRAST_SIGNS
from .codes import CORRELATIONS, CountedGroup, code_curve, code_moments
from .parameters import CountSketches

# Errors of correlations do not fall any further beyond the root of this.
HIGHEST_SQUARE = 0.99
# Error of counts of all records because a bucket's sum is not exactly Gaussian, as a part of the
# records (docs/constants.md). It is far below the error of any cell.
CODES_LAW = 0.003


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
class _Rows:
    """The counters of the rows: all of them, or half of an alternating group's for each of its two rows.

    Attributes:
        codes: published codes [shape=(c, counters), uint8]. An alternating group has them twice:
            the second time the other way round where its Walsh function is -1.
        second: where codes are those of a second time [shape=(c,), bool].
        overlaps: counters that two rows have in common [shape=(c, c), float64].
    """

    codes: Bytes
    second: Flags
    overlaps: Floats

    def products(self, bits: int, progress: Progress) -> Floats:
        """Mean products of the codes of any two rows over their common counters, 0 where they have
        none [shape=(c, c), float64].
        """
        mean = cross_products(self.codes, bits, progress.advance)
        if not self.second.any():
            return mean
        out: Floats = _halved(mean, self.second) * self.codes.shape[1]
        return out / np.maximum(self.overlaps, 1.0)


@dataclass(frozen=True, eq=False)
class _Layout:
    """How the rows of groups relate to their values: a row for each value, one for a contrast, or two
    for one that alternates.

    Attributes:
        members: 1 where a row is a value of a group, 0 elsewhere, also for rows of contrasts
            [shape=(rows, groups), float64].
        alternating: whether a row is of an alternating group [shape=(rows,), bool].
        group: each row's group [shape=(rows,), int64].
        row: each value's row [shape=(v,), int64].
        parts: the indicator of a value is its row times this, plus ``constant``: 1/2 or -1/2 for the
            values of contrasts, 1 for others [shape=(v,), float64].
        constant: 1/2 for the values of contrasts, 0 for others, and for missing values, whose
            indicator is half the difference of two rows [shape=(v,), float64].
        spread: squares of ``parts``, as if each cell of a contrasted group had noise of its own
            [shape=(v,), float64].
        other: of missing values, the second row, which is taken less ``parts`` times; -1 for others
            [shape=(v,), int64].
    """

    members: Floats
    alternating: Flags
    group: Integers
    row: Integers
    parts: Floats
    constant: Floats
    spread: Floats
    other: Integers

    @property
    def plain(self) -> bool:
        """Whether each row is one value."""
        return not self.constant.any()

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

    def combined(self, of_rows: Floats) -> Floats:
        """The part of values that rows tell [shape=(v, ...)], from rows' figures [shape=(rows, ...)]."""
        return self._taken(self.parts, of_rows, -1)

    def variances(self, of_rows: Floats) -> Floats:
        """Variances of values' figures [shape=(v, ...)] from those of rows [shape=(rows, ...)]."""
        return self._taken(np.square(self.parts), of_rows, 1)

    def spread_out(self, of_rows: Floats) -> Floats:
        """The same as if each cell of a contrasted group had noise of its own: the values share that
        of the group's rows.
        """
        return self._taken(self.spread, of_rows, 1)

    def _taken(self, weights: Floats, of_rows: Floats, sign: int) -> Floats:
        """Each value's row times its weight, and of missing values the second row too."""
        shape = -1, *(1,) * (of_rows.ndim - 1)
        out: Floats = weights.reshape(shape) * of_rows[self.row]
        if (two := self.other >= 0).any():
            out[two] += sign * weights[two].reshape(shape) * of_rows[self.other[two]]
        return out


def _halved(products: Floats, second: Flags) -> Floats:
    """Products of rows [shape=(c, c)], where those of codes and of their second time are given: a
    group's two rows are half the sum, and half the difference, of these.
    """
    out, first = products.copy(), np.flatnonzero(second) - 1
    for whole in (out, out.T):
        plus, minus = whole[first] + whole[second], whole[first] - whole[second]
        whole[first], whole[second] = 0.5 * plus, 0.5 * minus
    return out


@dataclass(frozen=True, eq=False)
class _Products:
    """Covariances from the codes, in records, and the set sizes that go with them.

    Attributes:
        layout: of rows and values.
        overlaps: counters that two rows have in common, at least 1 [shape=(rows, rows)].
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
    overlaps: Floats
    sums: Floats
    sigmas: Floats
    adding: Floats
    variances: Floats
    covariances: Floats
    with_sums: Floats
    common: Floats


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
    of_values = layout.combined(inside)
    of_values += layout.constant[:, None] * (party @ at_most)
    # Errors of values with hardly any records are small, but not zero.
    shared = SharedRecords(
        common,
        common_errors,
        of_values,
        np.maximum(np.sqrt(layout.variances(np.square(inside_errors))), 1.0),
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
    counters = np.diag(products.overlaps)[:, None]
    sums_errors = np.sqrt((np.outer(products.variances, spread) + sums**2) / counters)
    least = np.where(layout.members.any(axis=1, keepdims=True), 0, -most)
    inside = np.where(all_inside, known_sums, np.clip(sums, least, most))
    inside_errors = np.where(all_inside, sigmas, np.minimum(sums_errors, most))
    return common, common_errors, inside, inside_errors


def _products(plan: CountSketches, groups: Sequence[CountedGroup], progress: Progress) -> _Products:
    """The products of all groups."""
    rows = _rows(plan, groups)
    # The rows of an alternating group have the same law.
    gains, powers = (
        np.concatenate(each)
        for each in zip(
            *(
                [
                    np.repeat(moment, len(group.signs) // len(moment))
                    for moment in code_moments(plan, group)
                ]
                for group in groups
            ),
            strict=True,
        )
    )
    sizes = [np.maximum(group.sizes, 0.0) for group in groups]
    records = np.concatenate(
        [np.abs(group.signs) @ each for each, group in zip(sizes, groups, strict=True)]
    )
    exact_variances = records + np.concatenate(
        [np.full(len(g.signs), plan.noise(g.weight)) for g in groups]
    )
    # Codes lose information: counters estimated from them have a larger variance.
    variances = exact_variances / (gains * code_curve(plan.bits).gain) ** 2
    layout = _layout(groups)
    products = rows.products(plan.bits, progress)
    scale = gains * np.sqrt(powers)
    covariances = _covariances(plan.bits, products / np.outer(scale, scale), exact_variances)
    np.fill_diagonal(covariances, np.diag(products) / powers * variances)
    with_sums = covariances @ layout.members
    sums = np.concatenate([group.signs @ each for each, group in zip(sizes, groups, strict=True)])
    squares = [np.square(group.signs) @ np.square(group.sizes_sigma) for group in groups]
    sigmas = np.sqrt(np.concatenate(squares))
    overlaps = np.maximum(rows.overlaps, 1.0)
    common = layout.members.T @ with_sums
    return _Products(
        layout, overlaps, sums, sigmas, records, variances, covariances, with_sums, common
    )


def _rows(plan: CountSketches, groups: Sequence[CountedGroup]) -> _Rows:
    """The rows of all groups."""
    codes: list[Bytes] = []
    numbers: list[int] = []
    for group in groups:
        codes.append(group.codes)
        numbers += [0] * len(group.codes)
        if group.alternation:
            signs = alternating(group.alternation, np.arange(plan.numbers))
            last = np.uint8((1 << plan.bits) - 1)
            codes.append(np.where(signs > 0, group.codes, last - group.codes))
            numbers.append(group.alternation)
    second = np.array(numbers) > 0
    if not second.any():
        return _Rows(
            np.concatenate(codes), second, np.full((len(numbers),) * 2, plan.numbers, float)
        )
    # All counters of 2^k successive ones together are in as many pairs of either sign.
    block = 1 << max(numbers).bit_length()
    rest = np.array([alternating(number, np.arange(plan.numbers % block)) for number in numbers])
    sums = rest @ rest.T + plan.numbers // block * block * np.equal.outer(numbers, numbers)
    return _Rows(np.concatenate(codes), second, _halved(sums.astype(np.float64), second))


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
    squares = np.minimum(correlations**2, HIGHEST_SQUARE)
    variance = np.square((1 - squares) * np.outer(sd, sd)) / products.overlaps
    if layout.alternating.any():
        # Rows are normalised by all of their counters, of which products have a part.
        part = products.overlaps / np.diag(products.overlaps)[:, None]
        spread = 1 + squares - 1.5 * squares * (part + part.T) + squares**2 * part * part.T
        apart = (part < 1) | (part.T < 1)
        variance = np.where(
            apart, spread * np.square(np.outer(sd, sd)) / products.overlaps, variance
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
        errors=np.sqrt(layout.spread_out(layout.spread_out(variance).T).T),
        common=products.common,
        noise=np.where(members.any(axis=0), noise, np.inf),
    )


def _of_values(layout: _Layout, populations: _Populations, counts: Floats) -> Floats:
    """Cells of values [shape=(v, v)] from those of rows; sums give what contrasts leave out."""
    if layout.plain:
        return counts
    constant = layout.constant
    population = layout.of_values(populations.of_group)
    # Products of constants with rows, and of constants with constants.
    sums = population @ layout.combined(populations.inside).T
    out = layout.combined(layout.combined(counts).T).T + constant[:, None] * sums
    out += (constant[:, None] * sums).T
    out += np.outer(constant, constant) * (population @ populations.common @ population.T)
    return out


def _layout(groups: Sequence[CountedGroup]) -> _Layout:
    """The layout of groups."""
    sizes = [len(group.sizes) for group in groups]
    rows = [len(group.signs) for group in groups]
    contrasted = np.array([group.contrasted for group in groups])
    row, parts, other = [], [], []
    for first, group, values in zip(np.cumsum([0, *rows[:-1]]), groups, sizes, strict=True):
        if group.alternation:
            # (1 + (x - u)) / 2, (1 - (x + u)) / 2 and ((x + u) - (x - u)) / 2.
            row += [first + 1, first, first]
            parts += [0.5, -0.5, 0.5]
            other += [-1, -1, first + 1]
        else:
            row += [first] * values if group.contrasted else range(first, first + values)
            parts += [0.5 * sign for sign in CONTRAST_SIGNS] if group.contrasted else [1.0] * values
            other += [-1] * values
    weights, in_contrast = np.array(parts), np.repeat(contrasted, sizes)
    freedom = np.where(in_contrast, 1 - 1 / np.repeat(sizes, sizes), 1.0)
    return _Layout(
        members=np.repeat(np.eye(len(sizes)) * ~contrasted, rows, axis=0),
        alternating=np.repeat([group.alternation > 0 for group in groups], rows),
        group=np.repeat(np.arange(len(sizes)), rows),
        row=np.array(row),
        parts=weights,
        constant=np.where(in_contrast & (np.array(other) < 0), 0.5, 0.0),
        spread=np.square(weights) / freedom,
        other=np.array(other),
    )


def _sums_predictions(
    layout: _Layout, variances: Floats, populations: _Populations
) -> tuple[Floats, Floats]:
    """Best linear predictions of rows from groups' sums; contrasted groups have no sums, and rows of
    alternating groups no predictions.

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
    sums = everyone + np.diag(noise[summed])
    weights[:, summed] = np.linalg.solve(sums, with_sums.T).T
    explained = weights[:, summed] @ with_sums.T
    if layout.alternating.any():
        # Rows of alternating groups have no predictions: their products are of other counters than
        # their products with sums.
        weights[layout.alternating] = 0.0
        predicted = weights[:, summed]
        cross = predicted @ with_sums.T
        explained = cross + cross.T - predicted @ sums @ predicted.T
    return weights, explained


def _covariances(bits: int, of_codes: Floats, variances: Floats) -> Floats:
    """Covariances of rows [shape=(rows, rows)], from variances and correlations of codes."""
    out: Floats = np.interp(np.abs(of_codes), code_curve(bits).of_codes, CORRELATIONS)
    return np.copysign(out, of_codes) * np.sqrt(np.outer(variances, variances))
