"""Proximal steps of the fit: log-linear factors, and the dual that L-BFGS minimises.

Factors are stored as logs. Belief propagation gets exp(log - mean), with the mean under the model
itself. So the product over a typical record is about 1, and the normaliser is about the exponential
of the entropy, whatever the parameters.
"""

from __future__ import annotations

import abc
import collections
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Flags, Floats, Int32s, Integers
from ..errors import ModelError
from ..kernels import potentials
from ..kernels import proximal_step as descent
from ..kernels.jit import in_slices
from .descent import OUT_OF_RANGE, Curvature, minimise
from .junction_tree import JunctionTree
from .measurement import UNMEASURED, BinMap, Measurement, bin_of_value
from .propagation import Propagation

Attributes = tuple[int, ...]

NO_PROBABILITY = "The model's factors give no combination a probability; fit it again."
# Least cells of all measurements in a part of the factors that a thread takes.
PART_CELLS = 1 << 16
# Least standard deviation, as a share of the typical one.
MIN_SIGMA = 1 / 30
# If a log is this far above its mean, parts that factors share are moved into one of them, in at
# most so many sweeps.
LARGE_LOG, SWEEPS = 30.0, 20
# Products of factors with smaller logs are in range, as a clique has few factors.
DOUBTFUL_LOG = 100.0
# Log of a structural zero: its probability is exactly 0 whatever a fit adds. Logs below the second
# are of structural zeros.
FORBIDDEN, RULED_OUT = -1e30, -1e20


class LogFactors:
    """Logs of a model's factors, and the belief propagation that calibrates them.

    Args:
        tree: the junction tree.
        sets: attribute sets of the factors; a set inside another one gets no factor.

    Attributes:
        engine: the belief propagation.
        logs: logs of all factors, flat, in the engine's order [shape=(cells,), float64].
        marginals: probabilities of the factors' cells at the last calibration, 0 before
            [shape=(cells,), float64].
    """

    def __init__(self, tree: JunctionTree, sets: Sequence[Attributes]) -> None:
        self.engine = Propagation(tree, _maximal(sets))
        self.logs = np.zeros(int(self.engine.offsets[-1]))
        self.marginals = np.zeros_like(self.logs)
        self._holding: dict[int, set[int]] = {a: set() for a in range(len(tree.sizes))}
        for f, attributes in enumerate(self.engine.factors):
            for a in attributes:
                self._holding[a].add(f)
        self._cells = np.diff(self.engine.offsets).tolist()

    def home(self, attributes: Attributes) -> int:
        """Index of the smallest factor that contains some attributes."""
        holding = set.intersection(*(self._holding[a] for a in attributes))
        return min(holding, key=lambda f: (self._cells[f], f))

    def add(self, attributes: Attributes, logs: Floats) -> None:
        """Add a table over some attributes, in the order of its axes, to the smallest factor that
        contains them.
        """
        f = self.home(attributes)
        self._table(self.logs, f)[...] += _spread(logs, attributes, self.engine.factors[f])

    def rule_out(self, zeros: Sequence[tuple[Attributes, Floats]]) -> None:
        """Set structural zeros, and in every factor the cells whose mass they make zero. Call it
        before :meth:`add`.

        A measurement may have positive counts in such cells. If only another factor ruled them out,
        nothing would bound their parameters.

        Args:
            zeros: attributes and logs of every factor of structural zeros.

        Raises:
            ModelError: the zeros leave no combination.
        """
        for attributes, logs in zeros:
            self.add(attributes, logs)
        nothing = Dual(self, [], 1.0)
        log_total, _ = nothing.calibrate(nothing.measured)
        if not math.isfinite(log_total):
            raise ModelError(
                "The structural zeros leave no combination possible; state fewer of them."
            )
        self.logs[:] = np.where(self.marginals == 0, FORBIDDEN, 0.0)
        self.marginals[:] = 0

    def tables(self) -> list[tuple[Attributes, Floats]]:
        """Every factor's attributes, sorted, and its logs."""
        out = []
        for f, attributes in enumerate(self.engine.factors):
            table = self._table(self.logs, f).transpose(np.argsort(attributes))
            out.append((tuple(sorted(attributes)), np.ascontiguousarray(table)))
        return out

    def centre_alone(self) -> None:
        """Set each factor's marginals as if there were no other factor.

        Raises:
            ModelError: a factor has no mass.
        """
        for f in range(len(self.engine.factors)):
            logs = self._table(self.logs, f)
            if not math.isfinite(highest := logs.max()):
                raise ModelError(NO_PROBABILITY)
            weights = np.exp(logs - highest)
            self._table(self.marginals, f)[...] = weights / weights.sum()

    def rebalance(self) -> None:
        """Rewrite the product of factors with smaller logs: centre them, and remove large parts
        that cancel.

        Measurements that overlap but disagree make one factor grow and another shrink along their
        common attributes. The mean of each factor given its intersection with others is moved to
        one factor, where these parts cancel. Means given different intersections depend on each
        other, so several sweeps are needed.
        """
        self._centre()
        for _ in range(SWEEPS):
            if self.logs.max(initial=0.0) < LARGE_LOG:
                break
            for common, home, others in self._shared:
                for f in others:
                    self._move(common, f, home)
            self._centre()

    @functools.cached_property
    def _shared(self) -> list[tuple[frozenset[int], int, list[int]]]:
        """Every intersection of factors, large ones first: the smallest factor that contains it,
        and the others.
        """
        factors = self.engine.factors
        shared = {frozenset(a) & frozenset(b) for a, b in itertools.combinations(factors, 2)} - {
            frozenset()
        }
        out = []
        for common in sorted(shared, key=lambda s: (-len(s), sorted(s))):
            home = self.home(tuple(common))
            out.append(
                (
                    common,
                    home,
                    [
                        f
                        for f, attributes in enumerate(factors)
                        if f != home and common <= set(attributes)
                    ],
                )
            )
        return out

    def _move(self, given: frozenset[int], f: int, home: int) -> None:
        """Move a factor's mean given some of its attributes to the factor ``home``."""
        attributes = self.engine.factors[f]
        logs, weights = self._table(self.logs, f), self._table(self.marginals, f)
        axes = tuple(i for i, a in enumerate(attributes) if a not in given)
        mass = weights.sum(axis=axes)
        # Without mass the unweighted mean is used, unless it includes structural zeros.
        plain = np.where(logs.min(axis=axes) > RULED_OUT, logs.mean(axis=axes), 0.0)
        mean = np.divide((weights * logs).sum(axis=axes), mass, out=plain, where=mass > 0)
        kept = tuple(a for a in attributes if a in given)
        logs -= _spread(mean, kept, attributes)
        self._table(self.logs, home)[...] += _spread(mean, kept, self.engine.factors[home])

    def _centre(self) -> None:
        means = np.add.reduceat(self.logs * self.marginals, self.engine.offsets[:-1])
        self.logs -= np.repeat(means, self._cells)

    def _table(self, flat: Floats, f: int) -> Floats:
        shape = [self.engine.tree.sizes[a] for a in self.engine.factors[f]]
        return flat[self.engine.offsets[f] : self.engine.offsets[f + 1]].reshape(shape)


class StepDual(abc.ABC):
    """The dual of a proximal step, whatever the distribution behind it.

    Args:
        measurements: noisy marginals.
        total: record count.

    Attributes:
        total: record count.
        measured: counts without unknown means, flat over the measurements' cells [shape=(n,),
            float64].
        sigma: standard deviations, at least a share of ``typical``, so that parameters stay in
            range where precise measurements disagree [shape=(n,), float64].
        typical: the 90th percentile of the standard deviations of measured cells (see
            ``UNMEASURED``).
    """

    def __init__(self, measurements: Sequence[Measurement], total: float) -> None:
        nothing = [np.zeros(0)]
        self.total = total
        self._mean_groups = _mean_groups(measurements)
        counts = np.concatenate([m.counts.ravel() for m in measurements] or nothing).astype(
            np.float64
        )
        self.measured = self.contrasted(counts)
        sigma = np.concatenate(
            [np.broadcast_to(m.sigma, m.counts.shape).ravel() for m in measurements] or nothing
        )
        known = sigma[sigma < UNMEASURED * total]
        self.typical = (
            float(np.quantile(known if known.size else sigma, 0.9)) if measurements else 1.0
        )
        self.sigma = np.maximum(sigma, MIN_SIGMA * self.typical).astype(np.float64)
        self._curvature = Curvature(*np.zeros((2, 0)))

    @abc.abstractmethod
    def calibrate(self, theta: Floats) -> tuple[float, Floats]:
        """Log of the normaliser, and expected counts of the measured cells [shape=(n,), float64].

        Args:
            theta: parameters of the measured cells [shape=(n,), float64].
        """

    @abc.abstractmethod
    def absorb(self, theta: Floats) -> None:
        """Add the parameters of the last calibration to the distribution [shape=(n,), float64]."""

    def contrasted(self, cells: Floats) -> Floats:
        """Subtract the means that the measurements do not know [shape=(n,), float64]."""
        out = cells.copy() if self._mean_groups else cells
        for cells_of_mean in self._mean_groups:
            out[cells_of_mean] -= out[cells_of_mean].mean(axis=1, keepdims=True)
        return out

    def misfits(self, counts: Floats, parts: Sequence[slice | Flags]) -> Floats:
        """Mean squared residual of counts of the measured cells, in units of sigma.

        Args:
            counts: of all cells [shape=(n,), float64].
            parts: cells over which to take the mean.

        Returns:
            One for each part [shape=(parts,), float64].
        """
        squares = np.square((self.contrasted(counts) - self.measured) / self.sigma)
        return np.array([squares[part].mean() for part in parts])

    def value(self, pull: Floats, theta: Floats) -> tuple[float, Floats]:
        """F and its gradient; ``pull`` is weight * sigma^2 [all shape=(n,), float64].

        Parameters of contrasts are contrasts: they start at zero and their gradient has no means.
        """
        log_total, counts = self.calibrate(theta)
        self._at, self._expected = theta, counts.copy()
        value = self.total * log_total + descent.regularised(theta, self.measured, pull, counts)
        # If F is not finite, the line search shortens the step and the gradient is not used.
        return value, self.contrasted(counts) if math.isfinite(value) else counts

    def step(
        self,
        weight: float | Floats,
        theta: Floats,
        tolerance: float,
        iterations: int,
        progress: Callable[[int, float], None] | None,
    ) -> tuple[Floats, Floats]:
        """Take a proximal step: minimise F, and add the solution to the distribution.

        Args:
            weight: weight of the relative entropy; one for all parameters, or one each [shape=(n,),
                float64].
            theta: start of the minimisation [shape=(n,), float64].
            tolerance: end when the gradient, per cell in units of its sigma, is this small (root
                mean square).
            iterations: most iterations.
            progress: called with iteration and gradient.

        Returns:
            The solution, where the next step may start, and the expected counts of the measured
            cells [shape=(n,), float64].

        Raises:
            ModelError: the model leaves the range of double precision.
        """
        pull = weight * self.sigma**2
        # The next step goes on near the solution of this one, where the Hessian is nearly the same.
        if not np.array_equal(pull, self._curvature.pull):
            # The Hessian's diagonal has measured counts, at least half a sigma, in place of
            # expected ones.
            scale = 1.0 / (np.maximum(self.measured, 0.5 * self.sigma) + pull)
            for cells in self._mean_groups:
                scale[cells] = scale[cells].mean(axis=1, keepdims=True)
            self._curvature = Curvature(pull, scale)
        solution = minimise(
            functools.partial(self.value, pull),
            theta,
            self.sigma,
            self._curvature,
            tolerance,
            iterations,
            progress,
        )
        if self._at is not solution:
            self.value(pull, solution)
        self.absorb(solution)
        return solution, self._expected


class Dual(StepDual):
    """The dual of a proximal step from the model of some factors.

    It is a function of theta, the parameters of the measured cells:

        F = total * log Z(factors + theta) - <theta, measured> + weight / 2 * sum sigma^2 theta^2,
        gradient = expected counts - measured + weight * sigma^2 * theta.

    Args:
        factors: the model to start from; a factor contains each measurement's attributes.
        measurements: noisy marginals.
        total: record count.
    """

    def __init__(
        self, factors: LogFactors, measurements: Sequence[Measurement], total: float
    ) -> None:
        super().__init__(measurements, total)
        self.factors = factors
        engine = factors.engine
        self._terms = cell_terms(
            engine.factors,
            engine.offsets,
            engine.tree.sizes,
            [factors.home(m.attributes) for m in measurements],
            measurements,
            [m.bins for m in measurements],
        )

    def calibrate(self, theta: Floats) -> tuple[float, Floats]:
        """See :class:`StepDual`."""
        engine, factors = self.factors.engine, self.factors
        shift = self._terms.potentials(factors, theta)
        log_total = engine.run() + shift
        counts = self._terms.expected_counts(
            engine.memory, engine.marginals, self.total, theta.size
        )
        if math.isfinite(log_total):
            factors.marginals[:] = engine.memory[
                engine.marginals : engine.marginals + factors.logs.size
            ]
        return log_total, counts

    def calibrate_at_factors(self) -> Floats:
        """Calibrate the factors; returns the expected counts of the measured cells [shape=(n,),
        float64].

        Raises:
            ModelError: the model leaves the range of double precision, or has no mass.
        """
        nothing = np.zeros_like(self.measured)
        log_total, counts = self.calibrate(nothing)
        if not math.isfinite(log_total):
            self.factors.centre_alone()
            log_total, counts = self.calibrate(nothing)
        if not math.isfinite(log_total):
            raise ModelError(OUT_OF_RANGE)
        return counts

    def absorb(self, theta: Floats) -> None:
        """See :class:`StepDual`.

        Raises:
            ModelError: the model leaves the range of double precision; the factors are as before.
        """
        factors = self.factors
        before = factors.logs.copy(), factors.marginals.copy()
        self._terms.absorb(factors.logs, theta)
        factors.rebalance()
        # Only factors with large logs, which mostly cancel, can leave the range.
        if not factors.logs.max(initial=0.0) < DOUBTFUL_LOG:
            log_total, _ = self.calibrate(np.zeros_like(theta))
            if not math.isfinite(log_total) or factors.engine.beliefs() is None:
                factors.logs[:], factors.marginals[:] = before
                raise ModelError(OUT_OF_RANGE)


class CellTerms(NamedTuple):
    """How the cells of measurements relate to those of factors, as :mod:`vertimrf.kernels.potentials` takes it."""

    factors: Integers
    terms: Integers
    maps: Int32s

    def _for_parts(self, work: Callable[[int, int], object]) -> None:
        """Work on the factors from one to another, in parts of enough cells."""
        least = len(self.factors) * PART_CELLS // self.maps.size
        in_slices(len(self.factors), least, lambda begin, end: work(begin, end))

    def potentials(self, factors: LogFactors, theta: Floats) -> float:
        """Write the factors to their engine's memory; returns the sum of the means that were
        subtracted from their logs.

        Args:
            factors: the factors.
            theta: parameters of the measured cells [shape=(n,), float64].
        """
        given, means = (factors.logs, theta, factors.marginals), np.empty(len(self.factors))

        def work(begin: int, end: int) -> None:
            some = self.factors[begin:end], *self[1:], factors.engine.memory
            potentials.potentials(*given, *some, means[begin:end])

        self._for_parts(work)
        return sum(means.tolist(), 0.0)

    def absorb(self, logs: Floats, theta: Floats) -> None:
        """Add parameters of the measured cells [shape=(n,)] to factors' logs [both float64]."""
        self._for_parts(lambda b, e: potentials.absorb(logs, theta, self.factors[b:e], *self[1:]))

    def expected_counts(self, memory: Floats, begin: int, total: float, cells: int) -> Floats:
        """Counts of the measured cells [shape=(cells,), float64].

        Args:
            memory: the factors' marginals, from ``begin`` on [float64].
            begin: where they begin.
            total: what they are multiplied by.
            cells: number of measured cells.
        """
        counts, given = np.zeros(cells), (*self[1:], memory, begin, total)
        self._for_parts(lambda b, e: potentials.expected_counts(self.factors[b:e], *given, counts))
        return counts


def cell_terms(
    factors: Sequence[Attributes],
    offsets: Integers,
    sizes: Sequence[int],
    homes: Sequence[int],
    measurements: Sequence[Measurement],
    bins: Sequence[Sequence[BinMap | None]],
) -> CellTerms:
    """Relate the cells of measurements to those of the factors that contain them.

    Args:
        factors: attributes of every factor.
        offsets: first cell of each factor, and the number of all cells [shape=(f + 1,), int64].
        sizes: domain size of every attribute.
        homes: index of a factor that contains each measurement's attributes.
        measurements: noisy marginals.
        bins: of each, the maps from the factors' values to its bins.
    """
    begins = np.cumsum([0, *(m.counts.size for m in measurements)])
    inside: list[list[int]] = [[] for _ in factors]
    for i, home in enumerate(homes):
        inside[home].append(i)
    lengths = np.diff(offsets).tolist()
    ends = np.cumsum([0, *(len(some) * n for some, n in zip(inside, lengths, strict=True))])
    maps = np.zeros(int(ends[-1]) + 1, np.int32)
    rows: list[list[int]] = []
    terms: list[list[int]] = []
    for f, (attributes, length) in enumerate(zip(factors, lengths, strict=True)):
        first, shape = len(terms), [sizes[a] for a in attributes]
        for place, i in enumerate(inside[f]):
            begin = int(ends[f]) + place * length
            terms.append([int(begins[i]), begin])
            maps[begin : begin + length].reshape(shape)[...] = _cell_map(
                attributes, shape, measurements[i], bins[i]
            )
        rows.append([int(offsets[f]), length, first, len(terms)])
    return CellTerms(
        np.array(rows, np.int64).reshape(len(rows), 4),
        np.array(terms, np.int64).reshape(len(terms), 2),
        maps,
    )


def _mean_groups(measurements: Sequence[Measurement]) -> list[Integers]:
    """Groups of flat cells whose mean is unknown: one matrix per order of contrast and number of
    cells, one row per mean.

    The matrices of all first contrasts precede those of all second ones, as the means of a
    measurement must be subtracted in turn.
    """
    groups: dict[tuple[int, int], list[Integers]] = collections.defaultdict(list)
    begin = 0
    for m in measurements:
        cells = begin + np.arange(m.counts.size).reshape(m.counts.shape)
        begin += m.counts.size
        for turn, axis in enumerate(m.unknown):
            count = m.counts.shape[axis]
            groups[turn, count].append(np.moveaxis(cells, axis, -1).reshape(-1, count))
    return [np.concatenate(groups[turn]) for turn in sorted(groups)]


def _maximal(sets: Sequence[Attributes]) -> list[Attributes]:
    """Sets that no other set contains, without repeats."""
    kept: list[Attributes] = []
    # Per attribute the kept sets that contain it, as a bit mask.
    holding: dict[int, int] = collections.defaultdict(int)
    for attributes in sorted({tuple(sorted(s)) for s in sets}, key=lambda s: (-len(s), s)):
        if not functools.reduce(operator.and_, (holding[a] for a in attributes)):
            for a in attributes:
                holding[a] |= 1 << len(kept)
            kept.append(attributes)
    return kept


def _spread(table: Floats, axes: Attributes, attributes: Attributes) -> Floats:
    """Transpose and reshape a table over ``axes`` so that it broadcasts over ``attributes``."""
    order = sorted(range(len(axes)), key=lambda i: attributes.index(axes[i]))
    shape = [table.shape[axes.index(a)] if a in axes else 1 for a in attributes]
    return table.transpose(order).reshape(shape)


def _cell_map(
    attributes: Attributes,
    sizes: Sequence[int],
    measurement: Measurement,
    bins: Sequence[BinMap | None],
) -> Integers:
    """The measurement's flat cell for every cell over ``attributes``, of these ``sizes`` [broadcasts
    to them].
    """
    out = np.zeros((1,) * len(sizes), np.int64)
    shape = measurement.counts.shape
    for axis, (a, its) in enumerate(zip(measurement.attributes, bins, strict=True)):
        place = attributes.index(a)
        step = bin_of_value(its, sizes[place]) * math.prod(shape[axis + 1 :])
        out = out + step.reshape([-1 if k == place else 1 for k in range(len(sizes))])
    return out
