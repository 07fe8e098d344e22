"""The fit behind a Markov random field: log-linear factors on an engine, and the dual of a proximal step.

Factors are kept as logs and enter the engine as exp(log - mean), the mean taken under the model itself. Then the product
over a typical record is about 1 and the normaliser about the exponential of the entropy, whatever the parameters.
"""

from __future__ import annotations

import abc
import collections
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..kernels import propagation as kernels
from ..kernels import proximal_step as descent
from .junction_tree import JunctionTree
from .measurement import UNMEASURED, Measurement
from .propagation import Propagation

__all__ = ["Dual", "LogFactors", "StepDual"]

Array = npt.NDArray[np.float64]
Attributes = tuple[int, ...]

NO_PROBABILITY = "The model's factors leave no probability to anything; make it again."
OUT_OF_RANGE = "The model has left the range of double precision; give a larger proximal weight or fewer steps."
# Steps that the quasi-Newton method remembers.
MEMORY = 12
# Smallest standard deviation that is told apart, as a share of the typical one.
MIN_SIGMA = 1 / 30
# Logs this far above their mean call for moving what factors share into one of them.
LARGE_LOG, SWEEPS = 30.0, 20
# Log of a combination that cannot occur: its probability is exactly 0, and no parameter of a fit is large enough to change that;
# logs below the second are of such combinations.
FORBIDDEN, RULED_OUT = -1e30, -1e20


class LogFactors:
    """Logs of the factors of a model, on the engine that calibrates them.

    Args:
        tree: the junction tree.
        sets: attribute sets that factors are wanted for; those inside another are joined to it.

    Attributes:
        engine: the belief propagation.
        logs: logs of all factors, flat, in the engine's order [float64].
        marginals: their probabilities under the model at the last calibration, 0 before [as ``logs``].
    """

    def __init__(self, tree: JunctionTree, sets: Sequence[Attributes]) -> None:
        self.engine = Propagation(tree, _maximal(sets))
        self.logs = np.zeros(int(self.engine.offsets[-1]))
        self.marginals = np.zeros_like(self.logs)
        self._holding: dict[int, set[int]] = {a: set() for a in range(len(tree.sizes))}
        for f, own in enumerate(self.engine.factors):
            for a in own:
                self._holding[a].add(f)
        self._cells = np.diff(self.engine.offsets).tolist()

    def home(self, attributes: Attributes) -> int:
        """The smallest factor that holds some attributes."""
        holding = set.intersection(*(self._holding[a] for a in attributes))
        return min(holding, key=lambda f: (self._cells[f], f))

    def add(self, attributes: Attributes, logs: Array) -> None:
        """Add a table over some attributes, in the order of its axes, to the factor that holds them."""
        f = self.home(attributes)
        self._table(self.logs, f)[...] += _spread(logs, attributes, self.engine.factors[f])

    def rule_out(self, zeros: Sequence[tuple[Attributes, Array]]) -> None:
        """Take the mass from combinations that cannot occur, before anything is added: from those given by tables of logs, and in
        every factor from what follows from them.

        Measurements may give counts to what cannot occur. Were it ruled out in another factor alone, the parameters of these
        cells, which nothing holds back, would leave the range of double precision.

        Raises:
            ModelError: nothing can occur.
        """
        for attributes, logs in zeros:
            self.add(attributes, logs)
        nothing = Dual(self, [], 1.0)
        log_total, _ = nothing.calibrate(nothing.measured)
        if not math.isfinite(log_total):
            raise ModelError(
                "The structural zeros leave nothing that can occur; state fewer of them."
            )
        self.logs[:] = np.where(self.marginals == 0, FORBIDDEN, 0.0)
        self.marginals[:] = 0

    def tables(self) -> list[tuple[Attributes, Array]]:
        """Every factor's attributes, sorted, and its logs."""
        out = []
        for f, attributes in enumerate(self.engine.factors):
            table = self._table(self.logs, f).transpose(np.argsort(attributes))
            out.append((tuple(sorted(attributes)), np.ascontiguousarray(table)))
        return out

    def centre_alone(self) -> None:
        """Stand in for marginals that are not known: each factor as if there were no other.

        Raises:
            ModelError: a factor leaves no probability to anything.
        """
        for f in range(len(self.engine.factors)):
            logs = self._table(self.logs, f)
            if not math.isfinite(highest := logs.max()):
                raise ModelError(NO_PROBABILITY)
            weights = np.exp(logs - highest)
            self._table(self.marginals, f)[...] = weights / weights.sum()

    def rebalance(self) -> None:
        """Write the same product with smaller logs: centred, and, if they are large, without parts that cancel.

        Measurements that overlap but disagree pull their factors apart without end, one up and one down along what they
        share. Whatever depends on an intersection of factors alone (a mean given it, under the model) is moved to one of
        them, where it cancels; means given different intersections depend on each other, hence the sweeps.
        """
        self._centre()
        for _ in range(SWEEPS):
            if self.logs.max(initial=0.0) < LARGE_LOG:
                break
            for some, home, others in self._shared:
                for f in others:
                    self._move(some, f, home)
            self._centre()

    @functools.cached_property
    def _shared(self) -> list[tuple[frozenset[int], int, list[int]]]:
        """Every intersection of factors, large ones first: a home for what depends on it, and the others that hold it."""
        factors = self.engine.factors
        shared = {frozenset(a) & frozenset(b) for a, b in itertools.combinations(factors, 2)} - {
            frozenset()
        }
        out = []
        for some in sorted(shared, key=lambda s: (-len(s), sorted(s))):
            home = self.home(tuple(some))
            out.append(
                (some, home, [f for f, own in enumerate(factors) if f != home and some <= set(own)])
            )
        return out

    def _move(self, some: frozenset[int], f: int, home: int) -> None:
        """Move a factor's mean given some of its attributes to another factor."""
        own = self.engine.factors[f]
        logs, weights = self._table(self.logs, f), self._table(self.marginals, f)
        axes = tuple(i for i, a in enumerate(own) if a not in some)
        mass = weights.sum(axis=axes)
        # Where there is no mass the plain mean will do, but not with cells in it that were ruled out from the start.
        plain = np.where(logs.min(axis=axes) > RULED_OUT, logs.mean(axis=axes), 0.0)
        mean = np.divide((weights * logs).sum(axis=axes), mass, out=plain, where=mass > 0)
        kept = tuple(a for a in own if a in some)
        logs -= _spread(mean, kept, own)
        self._table(self.logs, home)[...] += _spread(mean, kept, self.engine.factors[home])

    def _centre(self) -> None:
        for f in range(len(self.engine.factors)):
            logs = self._table(self.logs, f)
            logs -= float((logs * self._table(self.marginals, f)).sum())

    def _table(self, flat: Array, f: int) -> Array:
        shape = [self.engine.tree.sizes[a] for a in self.engine.factors[f]]
        return flat[self.engine.offsets[f] : self.engine.offsets[f + 1]].reshape(shape)


class StepDual(abc.ABC):
    """The dual of a proximal step over the parameters of measurements, whatever distribution stands behind it.

    Args:
        measurements: noisy marginals.
        total: record count.

    Attributes:
        total: record count.
        measured, sigma: counts, of contrasts alone where nothing else is known, and standard deviations, flat over the
            measurements' cells [float64].
        typical: the 90th percentile of the standard deviations of cells that are measured (see ``UNMEASURED``); the least ones
            are raised to a share of it. They still outweigh the rest a thousandfold, but where they disagree among themselves
            their parameters stay in range.
    """

    def __init__(self, measurements: Sequence[Measurement], total: float) -> None:
        nothing = [np.zeros(0)]
        self.total = total
        self._alike = _alike(measurements)
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

    @abc.abstractmethod
    def calibrate(self, theta: Array) -> tuple[float, Array]:
        """Log of the normaliser, and expected counts of the measured cells [shape=(n,), float64].

        Args:
            theta: parameters, flat over the measurements' cells [shape=(n,), float64].
        """

    @abc.abstractmethod
    def absorb(self, theta: Array) -> Array:
        """Let the distribution take up parameters; returns the expected counts of the measured cells then.

        Raises:
            ModelError: it is beyond double precision.
        """

    def contrasted(self, cells: Array) -> Array:
        """Cells without their means along the axes of contrasts [shape=(n,), float64]."""
        out = cells.copy() if self._alike else cells
        for some in self._alike:
            out[some] -= out[some].mean(axis=1, keepdims=True)
        return out

    def value(self, pull: Array, theta: Array) -> tuple[float, Array]:
        """F and its gradient; ``pull`` is weight * sigma^2 [all shape=(n,), float64].

        Where contrasts were measured, parameters are contrasts too: they start as such, and their gradient stays among them.
        """
        log_total, counts = self.calibrate(theta)
        value = self.total * log_total + descent.regularised(theta, self.measured, pull, counts)
        # Beyond the range of double precision, steps are taken back.
        return value, self.contrasted(counts) if math.isfinite(value) else counts

    def step(
        self,
        weight: float | Array,
        theta: Array,
        tolerance: float,
        iterations: int,
        progress: Callable[[int, float], None] | None,
    ) -> tuple[Array, Array]:
        """Take a proximal step: minimise F, and let the distribution take up what was found.

        Args:
            weight: of the relative entropy; the same for all parameters, or one each [shape=(n,), float64].
            theta: where to start.
            tolerance: end when the gradient, per cell in units of its sigma, is this small (root mean square).
            iterations: most iterations.
            progress: told iteration and gradient.

        Returns:
            The parameters found, where the next step may start; and the expected counts of the measured cells.

        Raises:
            ModelError: the model is beyond double precision.
        """
        pull = weight * self.sigma**2
        # Measured counts stand in for expected ones in the Hessian's diagonal; half a sigma for those that noise has eaten.
        scale = 1.0 / (np.maximum(self.measured, 0.5 * self.sigma) + pull)
        for some in self._alike:
            scale[some] = scale[some].mean(axis=1, keepdims=True)
        found = _minimise(
            functools.partial(self.value, pull),
            theta,
            scale,
            self.sigma,
            tolerance,
            iterations,
            progress,
        )
        return found, self.absorb(found)


class Dual(StepDual):
    """The dual of a proximal step from the factors' present model, over the parameters of measurements.

    With A the map from the joint distribution to the measured cells, it is

        F(theta) = total * log Z(factors + theta) - <theta, measured> + 1/2 * weight * sum sigma^2 theta^2,

    whose gradient is expected counts - measured + weight * sigma^2 * theta.

    Args:
        factors: the model to start from; each measurement's attributes lie in one of its factors.
        measurements: noisy marginals.
        total: record count.
    """

    def __init__(
        self, factors: LogFactors, measurements: Sequence[Measurement], total: float
    ) -> None:
        super().__init__(measurements, total)
        self.factors = factors
        engine = factors.engine
        homes = [factors.home(m.attributes) for m in measurements]
        begins = np.cumsum([0, *(m.counts.size for m in measurements)])
        rows: list[list[int]] = []
        terms: list[list[int]] = []
        maps: list[npt.NDArray[np.int32]] = []
        cells = 0
        for f, attributes in enumerate(engine.factors):
            first = len(terms)
            for m, home, begin in zip(measurements, homes, begins[:-1], strict=True):
                if home == f:
                    terms.append([int(begin), cells])
                    maps.append(_cell_map(attributes, engine.tree.sizes, m))
                    cells += maps[-1].size
            rows.append(
                [
                    int(engine.offsets[f]),
                    int(engine.offsets[f + 1] - engine.offsets[f]),
                    first,
                    len(terms),
                ]
            )
        self._factors = np.array(rows, np.int64).reshape(len(rows), 4)
        self._terms = np.array(terms, np.int64).reshape(len(terms), 2)
        self._maps = np.concatenate([*maps, np.zeros(1, np.int32)])

    def calibrate(self, theta: Array) -> tuple[float, Array]:
        """See :class:`StepDual`."""
        engine, factors = self.factors.engine, self.factors
        arguments = (self._factors, self._terms, self._maps, engine.memory)
        shift = kernels.potentials(factors.logs, theta, factors.marginals, *arguments)
        log_total = engine.run() + shift
        counts = np.empty_like(theta)
        kernels.expected_counts(*arguments, engine.marginals, self.total, counts)
        if math.isfinite(log_total):
            factors.marginals[:] = engine.memory[
                engine.marginals : engine.marginals + factors.logs.size
            ]
        return log_total, counts

    def calibrate_at_factors(self) -> Array:
        """Calibrate at the factors themselves; returns the expected counts of the measured cells.

        Raises:
            ModelError: the model is beyond double precision, or leaves no probability to anything.
        """
        nothing = np.zeros_like(self.measured)
        log_total, counts = self.calibrate(nothing)
        if not math.isfinite(log_total):
            self.factors.centre_alone()
            log_total, counts = self.calibrate(nothing)
        if not math.isfinite(log_total):
            raise ModelError(OUT_OF_RANGE)
        return counts

    def absorb(self, theta: Array) -> Array:
        """See :class:`StepDual`."""
        self.calibrate(theta)
        kernels.absorb(self.factors.logs, theta, self._factors, self._terms, self._maps)
        self.factors.rebalance()
        return self.calibrate_at_factors()


def _minimise(
    evaluate: Callable[[Array], tuple[float, Array]],
    theta: Array,
    scale: Array,
    sigma: Array,
    tolerance: float,
    iterations: int,
    progress: Callable[[int, float], None] | None,
) -> Array:
    """Preconditioned L-BFGS with a weak Wolfe line search."""
    value, gradient = evaluate(theta)
    if not math.isfinite(value):
        theta = np.zeros_like(theta)
        value, gradient = evaluate(theta)
    steps = np.empty((MEMORY, theta.size))
    changes = np.empty((MEMORY, theta.size))
    kept = 0
    for iteration in range(iterations):
        error = float(descent.root_mean_square(gradient, sigma))
        if progress:
            progress(iteration, error)
        if error <= tolerance:
            break
        order = np.arange(max(0, kept - MEMORY), kept) % MEMORY
        way = descent.direction(gradient, scale, steps, changes, order)
        slope = float(descent.dot(way, gradient))
        # Bracket a length with enough decrease and a slope that has flattened; the first try nearly always does.
        low, high, length = 0.0, math.inf, 1.0
        for _ in range(40):
            candidate = theta + length * way
            new_value, new_gradient = evaluate(candidate)
            # The slack is what rounding takes from a value of this size.
            if not new_value <= value + 1e-4 * length * slope + 1e-13 * abs(value):
                high = length
            elif descent.dot(new_gradient, way) < 0.9 * slope:
                low = length
            else:
                break
            length = 2 * low if math.isinf(high) else 0.5 * (low + high) if low else 0.25 * high
        else:
            if not math.isfinite(new_value) and error > 1:
                raise ModelError(OUT_OF_RANGE)
            return theta
        step, change = candidate - theta, new_gradient - gradient
        theta, value, gradient = candidate, new_value, new_gradient
        if descent.dot(step, change) > 0:
            steps[kept % MEMORY], changes[kept % MEMORY] = step, change
            kept += 1
    return theta


def _alike(measurements: Sequence[Measurement]) -> list[npt.NDArray[np.int64]]:
    """Flat cells that differ along one contrasted axis only, a row of them for every mean.

    First come those of all measurements' first contrasts, then of their second ones, by the number
    of cells.
    """
    found: dict[tuple[int, int], list[npt.NDArray[np.int64]]] = collections.defaultdict(list)
    begin = 0
    for m in measurements:
        cells = begin + np.arange(m.counts.size).reshape(m.counts.shape)
        begin += m.counts.size
        for turn, axis in enumerate(m.unknown):
            count = m.counts.shape[axis]
            found[turn, count].append(np.moveaxis(cells, axis, -1).reshape(-1, count))
    return [np.concatenate(found[turn]) for turn in sorted(found)]


def _maximal(sets: Sequence[Attributes]) -> list[Attributes]:
    """Sets that lie in no other, without repeats."""
    kept: list[Attributes] = []
    # Per attribute the sets kept that hold it, as bits.
    holding: dict[int, int] = collections.defaultdict(int)
    for some in sorted({tuple(sorted(s)) for s in sets}, key=lambda s: (-len(s), s)):
        if not functools.reduce(operator.and_, (holding[a] for a in some)):
            for a in some:
                holding[a] |= 1 << len(kept)
            kept.append(some)
    return kept


def _spread(table: Array, own: Attributes, attributes: Attributes) -> Array:
    """A table over ``own`` as one that broadcasts over ``attributes``."""
    order = sorted(range(len(own)), key=lambda i: attributes.index(own[i]))
    shape = [table.shape[own.index(a)] if a in own else 1 for a in attributes]
    return table.transpose(order).reshape(shape)


def _cell_map(
    attributes: Attributes, sizes: Sequence[int], measurement: Measurement
) -> npt.NDArray[np.int32]:
    """For every cell over ``attributes`` the measurement's flat cell."""
    out = np.zeros(1, np.int64)
    shape = measurement.counts.shape
    for a in attributes:
        step = np.zeros(sizes[a], np.int64)
        if a in measurement.attributes:
            axis = measurement.attributes.index(a)
            bins = measurement.bins[axis]
            step += (np.arange(sizes[a]) if bins is None else bins) * math.prod(shape[axis + 1 :])
        out = (out[:, None] + step).ravel()
    return out.astype(np.int32)
