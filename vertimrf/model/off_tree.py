"""Off-tree factors: fit measured marginals that no clique of the junction tree contains.

The model draws many rows from its junction tree. Proximal steps (see :mod:`.fit`) towards the
measurements then change the rows' weights instead of clique tables: the normaliser, the dual and
its gradient are sums over rows. The solution of a step is log-linear, so it consists of factors
over the measured marginals. :mod:`.sample` draws rows from the tree and weights them by these
factors (importance sampling; Rubin's sampling importance resampling, 1987).

Domains with many values, or many attributes, leave most measured marginals outside the tree.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Codes, Floats, Ints
from ..kernels.jit import for_each
from .evidence import stand_out
from .fit import DEFAULT
from .markov_random_field import Factor, MarkovRandomField
from .measurement import UNMEASURED, Measurement, best_measured, by_measurement
from .proximal_step import StepDual
from .row_tables import RowTables
from .sample import propose

# Rows drawn from the tree: a multiple of the records, and its bounds. With fewer rows, weights
# follow the rows' sampling error.
ROWS, MIN_ROWS, MAX_ROWS = 3.0, 1 << 17, 1 << 18
# Most cells of an off-tree factor. Most lookups (rows x tables) in one evaluation: MAX_LOOKUPS for
# any tables, and MAX_LOOKUPS_OF_FEW_CELLS while all tables together have at most one cell for
# ROWS_PER_CELL rows.
MAX_CELLS = 1 << 20
MAX_LOOKUPS, MAX_LOOKUPS_OF_FEW_CELLS, ROWS_PER_CELL = 1e8, 4e8, 12
# Cells that contain fewer rows are not fitted, because too few rows limit their parameters.
FEW_ROWS = 8
# Steps end when the mean squared residual is that of noise (Morozov's discrepancy principle, 1966),
# or falls by less than this.
NOISE_ALONE, MIN_IMPROVEMENT = 1.0, 0.005
STEPS = 50
# A step is undone if it leaves a smaller effective share of the rows. The next step is SHORTER
# times as short. The fit ends at the second such step, or after TIMES_SHORTER of them if no step
# has succeeded.
MIN_EFFECTIVE, SHORTER, TIMES_SHORTER = 0.3, 5.0, 3
# A step is solved to this gradient, per cell in units of sigma (root mean square).
TOLERANCE = 0.2


class RowDual(StepDual):
    """The dual of a proximal step over weighted rows (:class:`~.proximal_step.Dual` is the one over
    a junction tree).

    Args:
        codes: rows drawn from the model [shape=(d, n), uint16].
        measurements: noisy marginals.
        total: record count.
        fresh: other rows from the model, which test the weights [shape=(d, n), uint16].

    Attributes:
        measured, sigma, typical: as in :class:`StepDual`; sigma includes the sampling error of the
            rows.
        constrained: whether a cell contains enough rows to be fitted [shape=(cells,), bool].
        theta: sum of the parameters of all steps, flat over the measurements' cells
            [shape=(cells,), float64].
    """

    def __init__(
        self, codes: Codes, measurements: Sequence[Measurement], total: float, fresh: Codes
    ) -> None:
        super().__init__(measurements, total)
        # Counts of rows have a sampling error. Without it, weights would follow that error where
        # measurements are precise.
        records_per_row = total / codes.shape[1]
        self.sigma = np.sqrt(
            np.square(self.sigma) + records_per_row * np.maximum(self.measured, 0.5 * self.sigma)
        )
        self.theta = np.zeros_like(self.measured)
        self._tables = RowTables(measurements)
        self._rows, self._fresh = self._tables.place(codes), self._tables.place(fresh)
        self._logs = np.zeros(codes.shape[1])
        # Counts are rounded multiples of the records per row.
        self.constrained = self.calibrate(self.theta)[1] > (FEW_ROWS - 0.5) * records_per_row
        for cells in self._mean_groups:
            self.constrained[cells] = self.constrained[cells].all(axis=1, keepdims=True)
        self.sigma[~self.constrained] = UNMEASURED * total

    def calibrate(self, theta: Floats) -> tuple[float, Floats]:
        """See :class:`StepDual`."""
        logs = self._logs.copy()
        self._tables.add_logs(self._rows, theta, logs)
        highest = float(logs.max())
        weights = np.exp(logs - highest)
        mass = float(weights.sum())
        weights *= self.total / mass
        counts = self._tables.counts(self._rows, weights)
        return highest + math.log(mass / logs.size), counts

    def absorb(self, theta: Floats) -> None:
        """See :class:`StepDual`."""
        self._tables.add_logs(self._rows, theta, self._logs)
        self.theta += theta

    @property
    def effective(self) -> float:
        """Kish's effective sample size over the number of rows: the smaller of the fitted rows' and
        the fresh rows'.

        Weights may suit only the rows that they were fitted on.
        """
        logs = np.zeros(self._fresh.shape[1])
        self._tables.add_logs(self._fresh, self.theta, logs)
        return min(_effective_share(self._logs), _effective_share(logs))


def _effective_share(logs: Floats) -> float:
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / np.square(weights).sum() / weights.size)


def fit_off_tree(
    model: MarkovRandomField,
    measurements: Sequence[Measurement],
    progress: Callable[[int, int, float], None] | None = None,
) -> tuple[MarkovRandomField, frozenset[Ints]]:
    """Add off-tree factors to a fitted model.

    Marginals outside the tree whose residuals stand out (:mod:`.evidence`) are fitted. Other
    measured marginals of one or two attributes are constrained to the model's counts.

    Args:
        model: fitted to the measurements that its cliques contain. It keeps its off-tree factors.
        measurements: all measurements.
        progress: called with step, iteration and gradient.

    Returns:
        The model with off-tree factors, or the same model if no residual is significant; it depends
        on the arguments alone. And the attributes of the marginals that were significant and got a
        factor.
    """
    sizes, tree = model.sizes, model.tree
    best = best_measured(
        [m for m in measurements if math.prod(sizes[a] for a in m.attributes) <= MAX_CELLS]
    )
    outside = [m for m in best if tree.covering(m.attributes) < 0]
    if not outside:
        return model, frozenset()
    rows = int(min(max(ROWS * model.total, MIN_ROWS), MAX_ROWS))
    _ = model.beliefs  # Cached before threads use it.
    codes, fresh = for_each(2, lambda seed: propose(model, rows, np.random.default_rng(seed)))
    others = [m for m in best if tree.covering(m.attributes) >= 0 and len(m.attributes) <= 2]
    by_model = _model_counts([*outside, *others], codes, model.total)
    expected = [by_model[m.attributes] for m in outside]
    taken = set(itertools.compress(outside, stand_out(outside, expected)))
    if not taken:
        return model, frozenset()
    # The first are those whose mean squared residuals exceed that of noise the most.
    outside.sort(
        key=lambda m: (1 - m.squares(by_model[m.attributes]) / m.dimensions) * m.dimensions**0.5
    )
    significant = [m for m in outside if m in taken]
    # Others are constrained to the model's counts, so that they do not follow noise.
    kept = [
        replace(m, counts=by_model[m.attributes])
        for m in (*others, *outside)
        if m not in taken and len(m.attributes) <= 2
    ]
    used = _affordable([*significant, *kept], rows)
    dual = RowDual(codes, used, model.total, fresh)
    _descend(dual, significant[: len(used)], progress)
    tables: dict[Ints, Floats] = {}
    for m, full in zip(used, by_measurement(dual.theta, used), strict=True):
        for axis, bins in enumerate(m.bins):
            if bins is not None:
                full = np.take(full, bins, axis=axis)
        tables[m.attributes] = full
    weighed = model.weighed(
        [
            *model.off_tree,
            *(Factor(attributes, tables[attributes]) for attributes in sorted(tables)),
        ]
    )
    return weighed, frozenset(m.attributes for m in significant if m.attributes in tables)


def _descend(
    dual: RowDual,
    significant: Sequence[Measurement],
    progress: Callable[[int, int, float], None] | None,
) -> None:
    """Take steps until the residuals of the significant marginals, the first in the dual, are as
    small as noise. Without a cell of enough rows there are none.
    """
    weight = DEFAULT.proximal_weight / dual.typical
    theta = np.zeros_like(dual.measured)
    misfit, shorter = math.inf, 0
    tolerance = TOLERANCE * math.sqrt(float(dual.constrained.mean()))
    cells = sum(m.counts.size for m in significant)
    constrained = dual.constrained[:cells]
    if not constrained.any():
        return
    noise = np.repeat([m.freedom for m in significant], [m.counts.size for m in significant])[
        constrained
    ]
    for step in range(STEPS):
        report = None if progress is None else functools.partial(progress, step)
        theta, expected = dual.step(weight, theta, tolerance, DEFAULT.iterations, report)
        if dual.effective < MIN_EFFECTIVE:
            dual.absorb(-theta)
            if shorter >= (TIMES_SHORTER if math.isinf(misfit) else 1):
                return
            shorter += 1
            weight *= SHORTER
            theta = np.zeros_like(theta)
            continue
        squares = np.square((dual.contrasted(expected) - dual.measured) / dual.sigma)[:cells][
            constrained
        ]
        before, misfit = misfit, float(squares.sum() / noise.sum())
        if misfit < NOISE_ALONE or before - misfit < MIN_IMPROVEMENT:
            return


def _affordable(measurements: Sequence[Measurement], rows: int) -> Sequence[Measurement]:
    """The first measurements, up to the bounds on lookups and cells."""
    cells = np.cumsum([m.counts.size for m in measurements])
    of_few_cells = min(
        int(np.searchsorted(cells, rows / ROWS_PER_CELL, side="right")),
        int(MAX_LOOKUPS_OF_FEW_CELLS / rows),
    )
    return measurements[: max(int(MAX_LOOKUPS / rows), of_few_cells, 1)]


def _model_counts(
    measurements: Sequence[Measurement], codes: Codes, total: float
) -> dict[Ints, Floats]:
    """The rows' counts of the measured marginals, by attributes [each shaped as its counts]."""
    weights = np.full(codes.shape[1], total / codes.shape[1])
    tables = RowTables(measurements).marginals(codes, weights)
    return {m.attributes: table for m, table in zip(measurements, tables, strict=True)}
