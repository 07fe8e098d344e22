"""Redraw a fitted model: draw other people and other noise, measure them again, and fit again.

Redrawn models have the bias and the spread of the estimate (parametric bootstrap; Efron, 1979). The
spread contains the sampling of n people from a population, and the noise of the measurements. A
redraw needs the fitted model and standard errors, but no measured count.

1. Count every measured marginal of n rows of the model, with its off-tree factors, and add Gaussian
noise. 2. Fit to these counts as the model was fitted. This fit has the model's bias: it ends before
it follows the noise. 3. Draw n independent people from this fit, count again, and add noise. 4. Fit
to these counts by least squares. It follows the noise, and so it has the spread that the fit of step
2 lacks.

Pairs that the fit read as trends are measured in halves, and read so again.

An estimate across parties has the margins that the parties measured. So in a clique its contrasts
along all axes are measured again. The cliques stay. Where the model is wrong about the population,
all redrawn models are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Arrays, Codes, Ints
from ..errors import ModelError
from ..kernels.contingency import contingency
from .couple import codes_of
from .empty_cells import noise_alone
from .fit import DEFAULT, FitOptions, fit
from .markov_random_field import MAX_CELLS, Factor, MarkovRandomField
from .measurement import BinMap, Measurement, bin_table, binned_sizes, contrasted
from .off_tree import fit_off_tree
from .sample import draw_people, sample
from .trend import Cut, as_trends, has_trend, without_noise
from .trust import ACROSS

# The second fit goes to least squares. A fit that ends early follows noise only in part, and its
# spread is too small.
REFIT = FitOptions(proximal_weight=1.0, min_improvement=0.01, tolerance=0.05)


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of the measurements that a model was fitted to.

    Attributes:
        measurements: the measurements with one standard error each, and counts of 0.
        trends: indices of those that fits read as trends (:mod:`~.trend`).
        missing: attributes of these whose missing value has a bin of its own, the last.
    """

    measurements: tuple[Measurement, ...]
    trends: Ints = ()
    missing: Ints = ()

    @classmethod
    def of(
        cls,
        field: MarkovRandomField,
        local: Sequence[Measurement],
        crossing: Sequence[Measurement],
        cuts: Mapping[int, Cut] | None = None,
    ) -> Noise:
        """The noise of a model's measurements.

        Args:
            field: the fitted model.
            local: marginals that were counted.
            crossing: marginals that were estimated across parties.
            cuts: of attributes whose pairs were read as trends, if there are any.
        """
        weighed = {f.attributes for f in field.off_tree}
        out: list[Measurement] = []
        trends: list[int] = []
        for i, m in enumerate((*local, *crossing)):
            across, inside = i >= len(local), field.tree.covering(m.attributes) >= 0
            if not _splits(field, m) if inside else m.attributes in weighed:
                sigma = (ACROSS if across else 1.0) * np.sqrt(np.square(m.sigma).mean())
                kind = m.contrasts, m.completed
                if across and inside:
                    kind = tuple(range(m.counts.ndim)), False
                if cuts and has_trend(m, cuts):
                    trends.append(len(out))
                # Four digits are enough.
                blank = _blank(field, m.attributes, m.bins, float(f"{sigma:.4g}"), *kind)
                out.append(replace(blank, asked=m.asked))
        read = {a for i in trends for a in out[i].attributes}
        return cls(
            tuple(out), tuple(trends), tuple(a for a in sorted(read) if cuts and cuts[a].missing)
        )

    def redrawn(
        self,
        field: MarkovRandomField,
        zeros: Sequence[Factor],
        numbers: Sequence[int],
        rng: np.random.Generator,
    ) -> MarkovRandomField:
        """A model of other people and other noise.

        Args:
            field: the fitted model.
            zeros: its structural zeros.
            numbers: as for :func:`~.empty_corners.empty_corners`.
            rng: draws people and noise; never for privacy.
        """
        rows = max(round(field.total), 1)
        biased = _fitted(
            field, self._measured(field, sample(field, rows, rng), rng), zeros, numbers
        )
        again = self._measured(biased, draw_people(biased, rows, rng), rng)
        return _fitted(biased, again, zeros, numbers, biased, REFIT)

    def _measured(
        self, field: MarkovRandomField, rows: Codes, rng: np.random.Generator
    ) -> list[Measurement]:
        """The measurements of rows, with noise."""
        out = []
        for m in self.measurements:
            counts = contingency(rows, field.sizes, m.attributes).astype(float)
            counts = bin_table(counts, m.bins, m.counts.shape)
            counts += contrasted(m.sigma * rng.standard_normal(counts.shape), m.contrasts)
            out.append(replace(m, counts=counts))
        halved = {a for i in self.trends for a in self.measurements[i].attributes}
        # The model has the bins of trends as classes.
        cuts = {
            a: Cut(
                field.marginal((a,)),
                field.classes[a].classes if a in field.classes else np.arange(field.sizes[a]),
                halved=True,
                missing=a in self.missing,
            )
            for a in halved
        }
        read = as_trends([out[i] for i in self.trends], cuts, field.total)
        for i, trend in zip(self.trends, read, strict=True):
            out[i] = trend
        return without_noise(out)

    def parts(self) -> Arrays:
        """The noise as named arrays of a file."""
        maps = {
            bins.tobytes(): bins for m in self.measurements for bins in m.bins if bins is not None
        }
        place = {key: i for i, key in enumerate(maps)}
        axes = [
            (
                i,
                a,
                -1 if bins is None else place[bins.tobytes()],
                (axis in m.contrasts) * (1 + m.completed),
            )
            for i, m in enumerate(self.measurements)
            for axis, (a, bins) in enumerate(zip(m.attributes, m.bins, strict=True))
        ]
        asked = np.flatnonzero([m.asked for m in self.measurements])
        return {
            "noise": np.array([m.sigma for m in self.measurements], np.float64),
            "noise.axes": np.array(axes, np.int64).reshape(-1, 4),
            **({"noise.asked": asked} if asked.size else {}),
            **({"noise.trends": np.array(self.trends, np.int64)} if self.trends else {}),
            **({"noise.missing": np.array(self.missing, np.int64)} if self.missing else {}),
        } | {f"noise.bins{i}": bins for i, bins in enumerate(maps.values())}

    @classmethod
    def of_parts(cls, field: MarkovRandomField, arrays: Mapping[str, npt.NDArray[Any]]) -> Noise:
        """The noise from what :meth:`parts` returns.

        Raises:
            ModelError, KeyError, ValueError: the parts are not the noise of this model.
        """
        axes, sigma = arrays["noise.axes"].reshape(-1, 4), arrays["noise"].reshape(-1).tolist()
        asked = arrays["noise.asked"].reshape(-1).tolist() if "noise.asked" in arrays else []
        if not set(asked) <= set(range(len(sigma))):
            raise ModelError("A workload needs a measurement that the model does not have.")
        trends = (
            tuple(arrays["noise.trends"].reshape(-1).tolist()) if "noise.trends" in arrays else ()
        )
        ends = np.searchsorted(axes[:, 0], np.arange(len(sigma)), side="right")
        out, (*groups, beyond) = [], np.split(axes, ends)
        if beyond.size:
            raise ModelError("The model's noise has axes of no measurement.")
        for i, (rows, error) in enumerate(zip(groups, sigma, strict=True)):
            names = tuple(rows[:, 1].tolist())
            bins = tuple(None if b < 0 else arrays[f"noise.bins{b}"] for b in rows[:, 2].tolist())
            contrasts = tuple(np.flatnonzero(rows[:, 3]).tolist())
            blank = _blank(field, names, bins, error, contrasts, bool((rows[:, 3] > 1).any()))
            out.append(replace(blank, asked=i in asked))
        if not all(0 <= i < len(out) and len(out[i].attributes) == 2 for i in trends):
            raise ModelError("A trend of the model is of no pair that was measured.")
        missing = (
            tuple(arrays["noise.missing"].reshape(-1).tolist()) if "noise.missing" in arrays else ()
        )
        if not set(missing) <= {a for i in trends for a in out[i].attributes}:
            raise ModelError("A missing value of the model is of no trend.")
        return cls(tuple(out), trends, missing)


def _fitted(
    field: MarkovRandomField,
    measurements: Sequence[Measurement],
    zeros: Sequence[Factor],
    numbers: Sequence[int],
    warm: MarkovRandomField | None = None,
    options: FitOptions = DEFAULT,
) -> MarkovRandomField:
    """A model on the cliques of another, fitted to other measurements."""
    inside = [m for m in measurements if field.tree.covering(m.attributes) >= 0]
    fitted = fit(
        field.sizes,
        inside,
        field.total,
        tree=field.tree,
        warm=warm,
        zeros=(*zeros, *noise_alone(inside, numbers, field.tree, field.class_maps)),
        classes=field.class_maps,
        options=options,
    )
    together = [f for f in field.off_tree if codes_of(f) is not None]
    return fit_off_tree(fitted.weighed(together), measurements)[0]


def _splits(field: MarkovRandomField, m: Measurement) -> bool:
    """Whether a measurement parts values that the model has in one class, so that no fit used it."""
    return any(
        bins is not None and a in field.classes and field.classes[a].merged(bins) is None
        for a, bins in zip(m.attributes, m.bins, strict=True)
    )


def _blank(
    field: MarkovRandomField,
    attributes: Ints,
    bins: tuple[BinMap | None, ...],
    sigma: float,
    contrasts: Ints,
    completed: bool,
) -> Measurement:
    """A measurement without counts.

    Raises:
        ModelError: it does not fit the model.
    """
    if not all(0 <= a < len(field.sizes) for a in attributes) or any(
        kept is not None and (kept.shape != (field.sizes[a],) or kept.dtype != np.int64)
        for a, kept in zip(attributes, bins, strict=True)
    ):
        raise ModelError("A measurement's noise does not fit the model's attributes.")
    shape = binned_sizes([field.sizes[a] for a in attributes], bins)
    if math.prod(shape) > MAX_CELLS:
        raise ModelError(f"A measurement has more than {MAX_CELLS:,} cells.")
    counts = np.broadcast_to(0.0, shape)
    return Measurement(attributes, bins, counts, sigma, "", contrasts, completed)
