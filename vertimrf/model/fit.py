"""Fit a Markov random field to noisy measurements by proximal steps (VertiMRF, phases 4, 5).

The fit takes proximal steps towards the weighted least squares solution. It starts at
independent attributes, or at a given model. Each step goes to the distribution p that minimises

    sum of (total * p_cell - measured)^2 / (2 sigma^2) + weight * total * KL(p || previous p).

A few steps fit what noise cannot explain; many converge to least squares, with a loss that
falls as 1 / steps. So the steps end when they gain little. Each step is solved by its dual,
which is smooth, strictly convex and unconstrained, with one parameter per measured cell:

    F = total * log Z(reference + theta) - <theta, measured> + weight / 2 * sum sigma^2 theta^2,
    gradient = expected counts - measured + weight * sigma^2 * theta.

One belief propagation gives a value and its gradient. The curvature is about expected count +
weight * sigma^2, so L-BFGS with a diagonal preconditioner needs tens of evaluations; mirror
descent on the primal would need short steps for large counts.

From independent attributes, and without a given least improvement, the relative entropy has a
larger weight for a marginal whose distance from independence is mostly noise (like the shrinkage of
James and Stein, 1961).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arguments import check_fields
from ..arrays import Flags, Floats, Ints, Pair
from ..errors import ModelError
from .domain_compression import Compression, compress, compressed_sizes, value_counts
from .evidence import stand_out
from .junction_tree import JunctionTree, junction_tree
from .markov_random_field import MAX_CELLS, Factor, MarkovRandomField
from .measurement import BinMap, Measurement, by_measurement, one_way_margins, squares
from .proximal_step import Dual, LogFactors

# Least weight of a marginal that shows no more than independent attributes do.
MIN_FOLLOWED = 0.02
# Noise moves a step in fewer directions than there are cells, because marginals share margins.
# Their number is this part of the geometric mean of the cells and of the degrees of freedom that a
# marginal does not share.
NOISE_DIRECTIONS = 0.65
# The relative entropy has so many times less weight for marginals of which a workload needs means:
# a fit that ends early has their differences too small.
ASKED = 4.0
# The same for trends, whose cells have no noise that a fit could follow.
TREND = 30.0
# Steps end when they lower the mean squared residual by less than the first, or after a warm start
# by less than the second.
MIN_IMPROVEMENT, MIN_ON_TOP = 0.001, 0.02
# A step is solved to the tolerance or, if the step before it gained more, to this part of its gain.
EARLY = 0.1
# At the start a value has at least this part of its count's standard deviation. Less scatters the
# quartiles of smooth columns, more has too many records of rare values.
LEAST = 0.25
# The same of columns whose rare values are estimates that decline already.
LEAST_SETTLED = 0.02
# A sum of counts contradicts the record count if it is off by this many standard deviations and by
# half the records.
CONTRADICTION = 30.0

# A fit that leaves the range of double precision goes on with steps that are this many times as short,
# at most so many times.
SHORTER, MOST_SHORTER = 4.0, 6


def _check(sizes: Sequence[int], measurements: Sequence[Measurement], total: float) -> None:
    if not (math.isfinite(total) and total > 0):
        raise ModelError(f"The record count must be finite and above zero, not {total}.")
    for m in measurements:
        where = m.where
        if not all(0 <= a < len(sizes) for a in m.attributes):
            raise ModelError(
                f"The {where} names an attribute outside the model, which has 0 .. {len(sizes) - 1}."
            )
        for a, bins, count in zip(m.attributes, m.bins, m.counts.shape, strict=True):
            if (count if bins is None else len(bins)) != sizes[a]:
                raise ModelError(
                    f"The {where} does not fit attribute {a}, which has {sizes[a]} values."
                )
        try:
            spread = math.sqrt(float(np.broadcast_to(np.square(m.sigma), m.counts.shape).sum()))
        except ValueError:
            raise ModelError(
                f"The {where} has standard deviations of another shape than its counts."
            ) from None
        missed = abs(float(m.counts.sum()) - total)
        if not m.unknown and missed > max(CONTRADICTION * spread, 0.5 * total):
            raise ModelError(
                f"The {where} counts {m.counts.sum():,.0f} records where the model has {total:,.0f}, which its standard "
                "deviations rule out; check its scale and the record count."
            )


@dataclass(frozen=True)
class FitOptions:
    """When the steps of a fit end.

    Attributes:
        proximal_weight: weight of the relative entropy, above zero, in units of 1 / sigma (90th
            percentile over all cells). A smaller weight gives longer steps.
        min_improvement: the steps end with the first that lowers the mean squared residual, in
            units of sigma, by less than this. None ends them when they mostly follow the noise or,
            after a warm start, when they gain little.
        steps: most proximal steps, 1 or more.
        tolerance: a step ends when the gradient, per cell in units of its standard deviation, is
            this small (root mean square). Early steps, which gain much, end at a larger one.
        iterations: most iterations in a step.
        progress: called with step, iteration and gradient.

    Raises:
        ModelError: an option out of range.
    """

    proximal_weight: float = 30.0
    min_improvement: float | None = None
    steps: int = 50
    tolerance: float = 0.02
    iterations: int = 300
    progress: Callable[[int, int, float], None] | None = None

    def __post_init__(self) -> None:
        check_fields(self, ModelError)
        weight, least = self.proximal_weight, self.min_improvement
        if (
            not (weight > 0 and math.isfinite(weight))
            or self.steps < 1
            or not 0 <= (least or 0) < 1
        ):
            raise ModelError(
                f"Give a proximal weight above zero, a least improvement in [0, 1) and at least one step, not "
                f"{weight}, {least} and {self.steps}."
            )


DEFAULT = FitOptions()


def fit(
    sizes: Sequence[int],
    measurements: Sequence[Measurement],
    total: float,
    *,
    tree: JunctionTree | None = None,
    warm: MarkovRandomField | None = None,
    zeros: Sequence[Factor] = (),
    classes: Mapping[int, BinMap] | None = None,
    options: FitOptions = DEFAULT,
) -> MarkovRandomField:
    """Fit a Markov random field to noisy measurements.

    See the module for the algorithm.

    Args:
        sizes: domain size of every attribute.
        measurements: noisy marginals; they may disagree and have negative counts.
        total: record count.
        tree: a junction tree that covers every measurement and structural zero; by default it is
            made from their attributes.
        warm: a model to start from; its factors that fit in the tree are used.
        zeros: factors under which some combinations have no mass (:mod:`~.structural_zeros`); the
            fit gives them none.
        classes: domain compression: by attribute, the map value -> class
            (:mod:`~.domain_compression`). The tree, ``warm`` and ``zeros`` are then of classes.
        options: when the steps end.

    Returns:
        The fitted model.

    Raises:
        ModelError: a measurement or structural zero does not fit the sizes or the tree; a
            measurement contradicts the total; the total is not positive; the zeros leave no
            combination; a clique is too large.
    """
    sizes = tuple(int(s) for s in sizes)
    _check(sizes, measurements, total)
    values, classes = measurements, classes or {}
    sizes = compressed_sizes(sizes, classes)
    records = _records(values, classes, total)
    measurements = [compress(_settled(m, classes, records), classes) for m in values]
    tree = _covering(sizes, measurements, zeros, tree)
    kept = [] if warm is None else [f for f in warm.factors if tree.covering(f.attributes) >= 0]
    factors = LogFactors(
        tree, [*(m.attributes for m in measurements), *(f.attributes for f in (*kept, *zeros))]
    )
    if zeros:
        factors.rule_out([(f.attributes, f.logs) for f in zeros])
    for f in kept:
        factors.add(f.attributes, f.logs)
    held = {a for f in kept for a in f.attributes}
    others = [m for m in measurements if not held.issuperset(m.attributes)]
    for attribute, logs in _independent(others, total).items():
        if attribute not in held:
            factors.add((attribute,), logs)
    dual = Dual(factors, measurements, total)
    expected = dual.calibrate_at_factors()
    if measurements:
        expected = _descend(dual, measurements, expected, warm is not None, options)
    apart = squares(measurements, by_measurement(expected, measurements))
    loss = sum((0.5 * apart).tolist())
    out = MarkovRandomField(
        tree, total, [Factor(names, logs) for names, logs in factors.tables()], loss, factors.engine
    )
    spread = {
        a: Compression(by, records[a] / np.bincount(by, weights=records[a])[by])
        for a, by in classes.items()
    }
    return (
        MarkovRandomField(tree, total, out.factors, loss, factors.engine, spread) if spread else out
    )


def _covering(
    sizes: Ints,
    measurements: Sequence[Measurement],
    zeros: Sequence[Factor],
    tree: JunctionTree | None,
) -> JunctionTree:
    """A junction tree that covers all measurements and zeros; see :func:`fit`."""
    if tree is None:
        tree = junction_tree(sizes, _edges([*measurements, *zeros]))
    if tree.sizes != sizes:
        raise ModelError(f"The junction tree is for attribute sizes {tree.sizes}, not {sizes}.")
    for clique, cells in zip(tree.cliques, tree.clique_cells, strict=True):
        if cells > MAX_CELLS:
            raise ModelError(
                f"The clique of attributes {clique} has {cells:,} cells, more than {MAX_CELLS:,}; measure fewer pairs."
            )
    for m in measurements:
        if tree.covering(m.attributes) < 0:
            raise ModelError(f"No clique of the junction tree holds the {m.where}.")
    for f in zeros:
        if tree.covering(f.attributes) < 0:
            raise ModelError(
                f"No clique of the junction tree holds the structural zeros of attributes {f.attributes}."
            )
    return tree


def _descend(
    dual: Dual,
    measurements: Sequence[Measurement],
    expected: Floats,
    warm: bool,
    options: FitOptions,
) -> Floats:
    """Take proximal steps until they gain too little; see :func:`fit`.

    Returns:
        The model's expected counts, flat over the measurements' cells [float64].
    """
    theta, min_improvement = np.zeros_like(dual.measured), options.min_improvement
    weight = np.full_like(theta, options.proximal_weight / dual.typical)
    weight /= _per_cell(
        measurements, [TREND if m.trend else ASKED if m.asked else 1.0 for m in measurements]
    )
    freedom = np.ones_like(theta)
    if min_improvement is None and warm:
        min_improvement = MIN_ON_TOP
    if min_improvement is None:
        weight /= _followed(measurements, expected)
        freedom = np.sqrt(_free_parts(measurements))
    # Trends are few cells among others, and are followed until they gain as little.
    parts: list[slice | Flags] = [slice(None)]
    if any(m.trend for m in measurements):
        parts.append(_per_cell(measurements, [m.trend for m in measurements]) > 0)
    misfit, gain = dual.misfits(expected, parts), 1.0
    unfollowed, shorter = np.ones_like(theta), 0
    for step in range(options.steps):
        report = None if options.progress is None else functools.partial(options.progress, step)
        # Later steps correct what early ones leave.
        tolerance = max(options.tolerance, EARLY * min(gain, 1.0))
        try:
            theta, expected = dual.step(weight, theta, tolerance, options.iterations, report)
        except ModelError:
            # Precise measurements that contradict each other pull factors out of range. What a
            # step could not do, shorter ones do, until the last of them.
            expected, shorter = dual.calibrate_at_factors(), shorter + 1
            if shorter > MOST_SHORTER:
                break
            theta, weight = np.zeros_like(theta), weight * SHORTER
            continue
        before, misfit = misfit, dual.misfits(expected, parts)
        gain = float((before - misfit).max())
        least = min_improvement
        if least is None:
            # If a cell were alone, a step would fit this part of its remaining noise. A step that
            # fits only noise lowers the squared residual by less than twice that part, and raises
            # the squared error.
            left = unfollowed / (1 + expected / (weight * np.square(dual.sigma)))
            least = max(
                MIN_IMPROVEMENT,
                2 * NOISE_DIRECTIONS * float((freedom * (unfollowed - left)).mean()),
            )
            unfollowed = left
        if step and gain < least and tolerance == options.tolerance:
            break
    return expected


def _records(
    measurements: Sequence[Measurement], classes: Mapping[int, BinMap], total: float
) -> dict[int, Floats]:
    """Records of the values of compressed attributes, by their one-way measurements; equal numbers
    without one.
    """
    out = {}
    for a, class_map in classes.items():
        # Every party that shares an attribute measures it.
        alone = [m for m in measurements if _is_of_values(m, a)]
        weights = [float(np.mean(m.sigma)) ** -2 for m in alone]
        counts = np.zeros(len(class_map))
        if alone:
            counts = np.average([m.counts for m in alone], axis=0, weights=weights)
        out[a] = value_counts(counts, sum(weights or [1.0]) ** -0.5, total)
    return out


def _is_of_values(m: Measurement, attribute: int) -> bool:
    return m.attributes == (attribute,) and m.bins[0] is None


def _settled(
    m: Measurement, classes: Mapping[int, BinMap], records: Mapping[int, Floats]
) -> Measurement:
    """A one-way measurement without the noise by which classes are chosen. Classes of neighbours are
    chosen by sums of counts, in which that is little.
    """
    a = m.attributes[0]
    if a not in classes or not _is_of_values(m, a):
        return m
    neighbours = classes[a].any() and (np.diff(classes[a]) >= 0).all()
    return m if neighbours else replace(m, counts=records[a])


def _per_cell(measurements: Sequence[Measurement], values: Sequence[float] | Floats) -> Floats:
    """Repeat each measurement's value for its cells [flat over the cells, float64]."""
    return np.repeat(np.array(values, np.float64), [m.counts.size for m in measurements])


def _free_parts(measurements: Sequence[Measurement]) -> Floats:
    """Degrees of freedom of each marginal given its margins, over its cells [shape=(cells,)].

    A table of u by v cells has (u - 1) (v - 1) of them, and a trend has one.
    """
    return _per_cell(
        measurements,
        [
            m.freedom if m.trend else math.prod(1 - 1 / count for count in m.counts.shape)
            for m in measurements
        ],
    )


def _followed(measurements: Sequence[Measurement], expected: Floats) -> Floats:
    """Share of each marginal's distance from independence that is signal [shape=(cells,)].

    It is 1 for marginals of one attribute.
    """
    tables = by_measurement(expected, measurements)
    shares = np.ones(len(measurements))
    larger = [i for i, m in enumerate(measurements) if len(m.attributes) > 1]
    seen = stand_out([measurements[i] for i in larger], [tables[i] for i in larger])
    for i, stands in zip(larger, seen, strict=True):
        signal = measurements[i].signal(tables[i]) if stands else 0.0
        shares[i] = max(signal, MIN_FOLLOWED)
    return _per_cell(measurements, shares)


def _independent(measurements: Sequence[Measurement], total: float) -> dict[int, Floats]:
    """Centred logs of every measured attribute's counts."""
    logs: dict[int, Floats] = {}
    for m in one_way_margins(measurements):
        # A bin's count is spread equally over its values.
        least = LEAST_SETTLED if m.settled else LEAST
        counts, (bins,) = positive_counts(m.counts, m.errors, total, least), m.bins
        if bins is not None:
            counts = (counts / np.maximum(np.bincount(bins, minlength=counts.size), 1))[bins]
        logs[m.attributes[0]] = np.log(counts) - float(
            (counts * np.log(counts)).sum() / counts.sum()
        )
    return logs


def positive_counts(
    counts: Floats, errors: Floats, total: float, least_part: float = LEAST
) -> Floats:
    """Positive counts with a given sum that are nearest to noisy ones, in standard errors.

    Noisy counts that are raised to be positive have a larger sum. If all were scaled down to the total, a
    column with many rare values would have too many records of these, and often a mean that is too
    large.

    Args:
        counts: noisy counts [shape=(size,), float64].
        errors: their standard deviations [shape=(size,), float64].
        total: record count.
        least_part: the least count, in standard deviations.

    Returns:
        Counts of at least so many standard deviations each [shape=(size,), float64]: all others are
        lowered by one multiple of their variances.
    """
    least, variances = least_part * errors, np.square(errors)
    if not variances.all():
        return np.maximum(counts, least)
    # Counts reach their least in this order, as the multiple grows.
    multiples = (counts - least) / variances
    order = np.argsort(-multiples)
    rest = np.cumsum(np.append(0.0, least[order[::-1]]))[-2::-1]
    lowering = (np.cumsum(counts[order]) + rest - total) / np.cumsum(variances[order])
    above = np.flatnonzero(multiples[order] > lowering)
    multiple = lowering[above[-1]] if above.size else np.inf
    out: Floats = np.maximum(counts - multiple * variances, least)
    return out


def _edges(sets: Sequence[Measurement | Factor]) -> set[Pair]:
    return {pair for m in sets for pair in itertools.combinations(m.attributes, 2)}
