"""What no clique holds: factors beyond the junction tree, by which rows of its model are weighed.

A junction tree holds few of the marginals that are measured where domains are long or attributes many. The others still tell
something: here the model's own rows, many of them, stand for it, and further proximal steps (see :mod:`.fit`) are taken from
there towards all that is measured. That takes no more than a weight for every row, whatever the graph: the normaliser, and with
it the dual and its gradient, are sums over rows. A step's solution is log-linear, so what comes of it are factors like the
tree's, only of marginals that no clique holds. Rows are then drawn from the tree's model and weighed by them (importance
sampling; Rubin's sampling importance resampling, 1987): :mod:`.sample`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..kernels import rows as kernels
from ..kernels.jit import in_slices
from .markov_random_field import Factor, MarkovRandomField
from .measurement import UNMEASURED, BinMap, Measurement, best_measured, by_measurement
from .proximal_step import StepDual
from .sample import add_counts, lookups, propose

__all__ = ["fit_beyond"]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint16]
Integers = npt.NDArray[np.int64]

# Rows that stand for the model, as a multiple of the records, and at least and at most: fewer say too little of marginals that
# no clique holds, and weights follow that (Fire lost all gain with half as many rows as records).
ROWS, MIN_ROWS, MAX_ROWS = 3.0, 1 << 17, 1 << 18
# Most cells of a factor beyond the tree, and most lookups, rows by tables, in one evaluation: of any tables, and of those that
# have one cell for so many rows, all together. Tables of few values are many before they follow noise (81 attributes of PISA cut
# to two values at epsilon 3.2: 0.0110 with 499 tables, 0.0071 with 1,999; cut to three at 0.8: 0.0284 and, with 1,424, 0.0238; as
# they are, in 14,000 cells already, 0.0430 and, with 999, 0.0442).
MAX_CELLS = 1 << 20
MAX_LOOKUPS, MAX_LOOKUPS_OF_FEW_CELLS, ROWS_PER_CELL = 1e8, 4e8, 12
# A measured marginal stands out where its mean squared residual, in units of sigma, is by so many of its standard deviations
# above that of noise alone: one in twenty does so by chance. The others hold to the model: unheld, or held to what was measured,
# they go by the noise of the sketches and of the weights, and BR2000 lost 7 % where Adult gained 9.
STANDS_OUT = 1.645
# Cells that fewer of the rows fall into are not held to anything: hardly a row holds their parameters back.
FEW_ROWS = 8
# Steps end where the mean squared residual is as large as noise has it (Morozov's discrepancy principle, 1966), or falls by less.
NOISE_ALONE, MIN_IMPROVEMENT = 1.0, 0.005
STEPS = 50
# Where rows, or fresh ones, are worth less than this part of them after a step, it is taken back, and one so much shorter tried,
# once, or so often where no step has stood yet. Weights that suit the fit's rows alone let a few others outweigh the rest (the
# flights at epsilon 3.2: 0.40, not 0.04), and steps that are ever shorter lead where they nearly do (0.042, and not 0.040).
MIN_EFFECTIVE, SHORTER, TIMES_SHORTER = 0.3, 5.0, 3
# Solved so far: half of it gained nothing on Adult, Fire and a payroll of long domains.
TOLERANCE = 0.2


class RowDual(StepDual):
    """The dual of a proximal step from weighed rows, as :class:`~.proximal_step.Dual` has it from a tree.

    Args:
        codes: rows of the model to start from [shape=(d, n), uint16].
        measurements: noisy marginals.
        total: record count.
        fresh: other rows of it, by which weights are tried out [as ``codes``].

    Attributes:
        measured, sigma, typical: as there, but that sigma holds the rows' own error as well.
        held: whether enough of the rows fall into a cell [bool, as these].
        theta: parameters of all steps together, flat over the measurements' cells [float64].
    """

    def __init__(
        self, codes: Codes, measurements: Sequence[Measurement], total: float, fresh: Codes
    ) -> None:
        super().__init__(measurements, total)
        # Rows say what the model has of a cell with an error of their own; without it, weights follow that where measurements are
        # precise and records many (Fire at epsilon 3.2: a distance of 0.49 instead of 0.019).
        each = total / codes.shape[1]
        self.sigma = np.sqrt(
            np.square(self.sigma) + each * np.maximum(self.measured, 0.5 * self.sigma)
        )
        self.theta = np.zeros_like(self.measured)
        self._columns, self._tables, self._terms = _lookups(codes, measurements)
        self._logs = np.zeros(codes.shape[1])
        self._fresh = _lookups(fresh, measurements)[0]
        self.held = self.calibrate(self.theta)[1] >= FEW_ROWS * each
        for some in self._alike:
            self.held[some] = self.held[some].all(axis=1, keepdims=True)
        self.sigma[~self.held] = UNMEASURED * total

    def calibrate(self, theta: Array) -> tuple[float, Array]:
        """See :class:`StepDual`."""
        logs = self._logs.copy()
        arguments = self._columns, self._tables, self._terms
        in_slices(
            logs.size,
            kernels.BLOCK,
            lambda begin, end: kernels.add_logs(*arguments, theta, begin, end, logs),
        )
        highest = float(logs.max())
        weights = np.exp(logs - highest)
        mass = float(weights.sum())
        weights *= self.total / mass
        counts = np.zeros_like(theta)
        add_counts(*arguments, weights, counts)
        return highest + math.log(mass / logs.size), counts

    def absorb(self, theta: Array) -> Array:
        """See :class:`StepDual`."""
        self._add(theta)
        return self.calibrate(np.zeros_like(theta))[1]

    @property
    def effective(self) -> float:
        """The part of the rows, and of fresh ones, that weighed ones are worth: the lesser one (Kish's effective sample size over
        their number). Weights may suit the rows that they were found with alone.
        """
        logs = np.zeros(self._fresh.shape[1])
        arguments = self._fresh, self._tables, self._terms, self.theta
        in_slices(
            logs.size,
            kernels.BLOCK,
            lambda begin, end: kernels.add_logs(*arguments, begin, end, logs),
        )
        return min(_worth(self._logs), _worth(logs))

    def undo(self, theta: Array) -> None:
        """Take the last step back, which found these parameters."""
        self._add(-theta)

    def _add(self, theta: Array) -> None:
        kernels.add_logs(
            self._columns, self._tables, self._terms, theta, 0, self._logs.size, self._logs
        )
        self.theta += theta


def _worth(logs: Array) -> float:
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / np.square(weights).sum() / weights.size)


def fit_beyond(
    model: MarkovRandomField,
    measurements: Sequence[Measurement],
    *,
    proximal_weight: float = 30.0,
    iterations: int = 300,
    progress: Callable[[int, int, float], None] | None = None,
) -> tuple[MarkovRandomField, frozenset[tuple[int, ...]]]:
    """Give a fitted model factors of what was measured and no clique of it holds.

    Args:
        model: fitted to what its cliques hold.
        measurements: all that was measured. Of what the cliques hold, and of what the model misses by no more than noise, pairs
            are held where the model has them.
        proximal_weight, iterations, progress: as for :func:`~.fit.fit`.

    Returns:
        The model with factors beyond its tree, a function of the arguments alone; the model itself where there are none. And
        attributes of the marginals by which it was too far off without.
    """
    sizes, tree = model.sizes, model.tree
    best = best_measured(
        [m for m in measurements if math.prod(sizes[a] for a in m.attributes) <= MAX_CELLS]
    )
    outside = [m for m in best if tree.covering(m.attributes) < 0]
    if not outside:
        return model, frozenset()
    rows = int(min(max(ROWS * model.total, MIN_ROWS), MAX_ROWS))
    codes = propose(model, rows, np.random.default_rng(0))
    others = [m for m in best if tree.covering(m.attributes) >= 0 and len(m.attributes) <= 2]
    by_model = _counted([*outside, *others], codes, model.total)
    scores = {m.attributes: _standing_out(m, by_model[m.attributes]) for m in outside}
    outside.sort(key=lambda m: -scores[m.attributes])
    told = [m for m in outside if scores[m.attributes] > STANDS_OUT]
    if not told:
        return model, frozenset()
    held = [
        replace(m, counts=by_model[m.attributes])
        for m in (*others, *outside[len(told) :])
        if len(m.attributes) <= 2
    ]
    used = _affordable([*told, *held], rows)
    dual = RowDual(codes, used, model.total, propose(model, rows, np.random.default_rng(1)))
    _descend(dual, told[: len(used)], proximal_weight, iterations, progress)
    tables: dict[tuple[int, ...], Array] = {}
    for m, full in zip(used, by_measurement(dual.theta, used), strict=True):
        for axis, bins in enumerate(m.bins):
            if bins is not None:
                full = np.take(full, bins, axis=axis)
        tables[m.attributes] = full
    weighed = model.weighed(
        [Factor(attributes, tables[attributes]) for attributes in sorted(tables)]
    )
    return weighed, frozenset(m.attributes for m in told if m.attributes in tables)


def _descend(
    dual: RowDual,
    told: Sequence[Measurement],
    proximal_weight: float,
    iterations: int,
    progress: Callable[[int, int, float], None] | None,
) -> None:
    """Take steps until what stands out, which comes first of what is measured, is met to the size of its noise."""
    weight = proximal_weight / dual.typical
    theta = np.zeros_like(dual.measured)
    misfit, shorter = math.inf, 0
    tolerance = TOLERANCE * math.sqrt(float(dual.held.mean()))
    cells = sum(m.counts.size for m in told)
    held = dual.held[:cells]
    noise = np.repeat([m.freedom for m in told], [m.counts.size for m in told])[held]
    for step in range(STEPS):
        report = None if progress is None else functools.partial(progress, step)
        theta, expected = dual.step(weight, theta, tolerance, iterations, report)
        if dual.effective < MIN_EFFECTIVE:
            dual.undo(theta)
            if shorter >= (TIMES_SHORTER if math.isinf(misfit) else 1):
                return
            shorter += 1
            weight *= SHORTER
            theta = np.zeros_like(theta)
            continue
        squares = np.square((dual.contrasted(expected) - dual.measured) / dual.sigma)[:cells][held]
        before, misfit = misfit, float(squares.sum() / noise.sum())
        if misfit < NOISE_ALONE or before - misfit < MIN_IMPROVEMENT:
            return


def _affordable(measurements: Sequence[Measurement], rows: int) -> Sequence[Measurement]:
    """The first of the measurements, as many as rows can be looked up in and say enough of."""
    cells = np.cumsum([m.counts.size for m in measurements])
    of_few_cells = min(
        int(np.searchsorted(cells, rows / ROWS_PER_CELL, side="right")),
        int(MAX_LOOKUPS_OF_FEW_CELLS / rows),
    )
    return measurements[: max(int(MAX_LOOKUPS / rows), of_few_cells, 1)]


def _counted(
    measurements: Sequence[Measurement], codes: Codes, total: float
) -> dict[tuple[int, ...], Array]:
    """What rows say of measured marginals, by attributes [each as its counts]."""
    columns, tables, terms = _lookups(codes, measurements)
    counts = np.zeros(sum(m.counts.size for m in measurements))
    weights = np.full(codes.shape[1], total / codes.shape[1])
    add_counts(columns, tables, terms, weights, counts)
    return {
        m.attributes: table
        for m, table in zip(measurements, by_measurement(counts, measurements), strict=True)
    }


def _standing_out(m: Measurement, expected: Array) -> float:
    """By how many standard deviations of what noise alone would give the mean squared residual is above it."""
    return (m.squares(expected) / m.dimensions - 1) * math.sqrt(m.dimensions / 2)


def _lookups(codes: Codes, measurements: Sequence[Measurement]) -> tuple[Codes, Integers, Integers]:
    """Columns of codes, by attribute and bins, each once; and tables and terms of measurements, as the kernels want them."""
    columns: list[npt.NDArray[np.uint16]] = []
    places: dict[tuple[int, bytes], int] = {}

    def place(attribute: int, bins: BinMap | None) -> int:
        key = attribute, b"" if bins is None else bins.tobytes()
        if key not in places:
            places[key] = len(columns)
            own = codes[attribute]
            columns.append(own if bins is None else bins.astype(np.uint16)[own])
        return places[key]

    tables, terms = lookups(
        ([place(a, bins) for a, bins in zip(m.attributes, m.bins, strict=True)], m.counts.shape)
        for m in measurements
    )
    return np.stack(columns), tables, terms
