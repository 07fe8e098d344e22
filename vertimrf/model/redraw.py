"""Redraw a fitted model: draw other people and other noise, measure them again, and fit again.

The spread of redrawn models is that of the estimate (parametric bootstrap; Efron, 1979). It
contains the sampling of n people from a population, and the noise of the measurements. A redraw
needs the fitted model and standard errors, but no measured count.

1. Draw n independent people from the model, with its off-tree factors. 2. Count every measured
marginal of them, and add Gaussian noise. 3. Fit to these counts, starting at the model.

The cliques stay. Where the model is wrong about the population, all redrawn models are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from ..kernels.contingency import contingency
from .fit import FitOptions, fit
from .markov_random_field import MAX_CELLS, Factor, MarkovRandomField
from .measurement import BinMap, Measurement, bin_table, binned_sizes, contrasted
from .off_tree import fit_off_tree
from .sample import draw_people
from .trust import ACROSS

__all__ = ["Noise"]

# Refits go to least squares. A fit that ends early follows noise only in part, and its spread is
# too small.
REFIT = FitOptions(proximal_weight=1.0, min_improvement=0.01, tolerance=0.05)


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of the measurements that a model was fitted to.

    Attributes:
        measurements: the measurements with one standard error each, and counts of 0.
    """

    measurements: tuple[Measurement, ...]

    @classmethod
    def of(
        cls,
        field: MarkovRandomField,
        local: Sequence[Measurement],
        crossing: Sequence[Measurement],
    ) -> Noise:
        """The noise of a model's measurements.

        Args:
            field: the fitted model.
            local: marginals that were counted.
            crossing: marginals that were estimated across parties.
        """
        weighed = {f.attributes for f in field.off_tree}
        factors = [1.0] * len(local) + [ACROSS] * len(crossing)
        return cls(
            tuple(
                replace(
                    _blank(field, m.attributes, m.bins, _typical(m, factor)),
                    contrasts=m.contrasts,
                    completed=m.completed,
                )
                for m, factor in zip((*local, *crossing), factors, strict=True)
                if (
                    m.attributes in weighed
                    if field.tree.covering(m.attributes) < 0
                    else not _splits(field, m)
                )
            )
        )

    def redrawn(
        self, field: MarkovRandomField, zeros: Sequence[Factor], rng: np.random.Generator
    ) -> MarkovRandomField:
        """A model of other people and other noise.

        Args:
            field: the fitted model.
            zeros: its structural zeros.
            rng: draws people and noise; never for privacy.
        """
        people = draw_people(field, max(round(field.total), 1), rng)
        again = []
        for m in self.measurements:
            counts = bin_table(
                contingency(people, field.sizes, m.attributes).astype(float), m.bins, m.counts.shape
            )
            noise = contrasted(m.sigma * rng.standard_normal(counts.shape), m.contrasts)
            again.append(replace(m, counts=counts + noise))
        fitted = fit(
            field.sizes,
            [m for m in again if field.tree.covering(m.attributes) >= 0],
            field.total,
            tree=field.tree,
            warm=field,
            zeros=zeros,
            classes=field.class_maps,
            options=REFIT,
        )
        return fit_off_tree(fitted, again)[0] if field.off_tree else fitted

    def parts(self) -> dict[str, npt.NDArray[Any]]:
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
        return {
            "noise": np.array([m.sigma for m in self.measurements], np.float64),
            "noise.axes": np.array(axes, np.int64).reshape(-1, 4),
        } | {f"noise.bins{i}": bins for i, bins in enumerate(maps.values())}

    @classmethod
    def of_parts(cls, field: MarkovRandomField, arrays: Mapping[str, npt.NDArray[Any]]) -> Noise:
        """The noise from what :meth:`parts` returns.

        Raises:
            ModelError, KeyError, ValueError: the parts are not the noise of this model.
        """
        axes, sigma = arrays["noise.axes"].reshape(-1, 4), arrays["noise"].reshape(-1).tolist()
        ends = np.searchsorted(axes[:, 0], np.arange(len(sigma)), side="right")
        out, (*groups, beyond) = [], np.split(axes, ends)
        if beyond.size:
            raise ModelError("The model's noise has axes of no measurement.")
        for rows, error in zip(groups, sigma, strict=True):
            names = tuple(rows[:, 1].tolist())
            bins = tuple(None if i < 0 else arrays[f"noise.bins{i}"] for i in rows[:, 2].tolist())
            contrasts = tuple(np.flatnonzero(rows[:, 3]).tolist())
            blank = _blank(field, names, bins, error)
            out.append(replace(blank, contrasts=contrasts, completed=bool((rows[:, 3] > 1).any())))
        return cls(tuple(out))


def _typical(m: Measurement, factor: float) -> float:
    """Root mean square of a measurement's standard deviations times a factor, in four digits."""
    return float(f"{factor * np.sqrt(np.square(m.sigma).mean()):.4g}")


def _splits(field: MarkovRandomField, m: Measurement) -> bool:
    """Whether a measurement parts values that the model has in one class, so that no fit used it."""
    return any(
        bins is not None and a in field.classes and field.classes[a].merged(bins) is None
        for a, bins in zip(m.attributes, m.bins, strict=True)
    )


def _blank(
    field: MarkovRandomField,
    attributes: tuple[int, ...],
    bins: tuple[BinMap | None, ...],
    sigma: float,
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
    return Measurement(attributes, bins, np.broadcast_to(0.0, shape), sigma)
