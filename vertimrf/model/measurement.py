"""Noisy linear views of the data: what estimation gives and the model is fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..errors import ModelError

__all__ = ["UNMEASURED", "BinMap", "Measurement", "best_measured", "bin_table", "by_measurement"]

Array = npt.NDArray[np.float64]
BinMap = npt.NDArray[np.int64]
# A cell whose standard deviation is so many times the total, or more, counts as not measured.
UNMEASURED = 1e3


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy marginal of the joint table, each attribute possibly binned.

    Attributes:
        attributes: strictly increasing indices into the global schema.
        bins: per attribute the map code -> bin [shape=(size,), int], or None where values are not binned.
        counts: estimated record counts [shape=(bins of attribute 1, ..., bins of attribute l), float64]; may be negative.
        sigma: standard deviation of each count, one number or an array of the shape of ``counts``; where contrasts were measured,
            what it would be if the noise had no correlations, as least squares weigh it.
        source: what it measures and where it came from, for people ("age × smoker, by party hospital").
        contrasts: axes along which contrasts were measured: how cells differ from their mean along the axis, and not the mean.
        completed: whether ``counts`` includes the means along these axes, known well enough to be fitted like the rest.
            Otherwise the fit ignores them.

    Raises:
        ModelError: shapes disagree, a count is not finite, a standard deviation is not positive, or there is no such axis.
    """

    attributes: tuple[int, ...]
    bins: tuple[BinMap | None, ...]
    counts: npt.NDArray[np.float64]
    sigma: float | npt.NDArray[np.float64]
    source: str = ""
    contrasts: tuple[int, ...] = ()
    completed: bool = False

    def __post_init__(self) -> None:
        where = self.where
        if not self.attributes or any(
            b <= a for a, b in zip(self.attributes, self.attributes[1:], strict=False)
        ):
            raise ModelError(f"{where}: attributes must be named in strictly increasing order.")
        if len(self.bins) != len(self.attributes) or self.counts.ndim != len(self.attributes):
            raise ModelError(
                f"{where}: needs one bin map (or None) and one axis of counts per attribute."
            )
        for axis, bins in enumerate(self.bins):
            if bins is not None and (bins.min() < 0 or bins.max() >= self.counts.shape[axis]):
                raise ModelError(
                    f"{where}: axis {axis} has {self.counts.shape[axis]} counts but bins up to {bins.max()}."
                )
        if not np.isfinite(self.counts).all():
            raise ModelError(f"{where}: holds a count that is not finite.")
        if not np.all(np.isfinite(self.sigma)) or not np.all(np.asarray(self.sigma) > 0):
            raise ModelError(f"{where}: standard deviations must be finite and above zero.")
        if not set(self.contrasts) <= set(range(self.counts.ndim)):
            raise ModelError(
                f"{where}: has contrasts along {self.contrasts}, but {self.counts.ndim} axes."
            )

    @property
    def where(self) -> str:
        """What to call it in errors."""
        return (
            f"measurement of {self.source}"
            if self.source
            else f"measurement of attributes {self.attributes}"
        )

    @property
    def freedom(self) -> float:
        """Directions that the noise lies in, over the number of cells: 1/4 where one number tells four cells of a pair apart."""
        return math.prod((1 - 1 / self.counts.shape[axis] for axis in self.contrasts), start=1.0)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Axes along which the mean is unknown."""
        return () if self.completed else self.contrasts

    def contrasted(self, table: Array) -> Array:
        """Of a table of counts what is to be met: without means along the axes of contrasts, unless known [as ``counts``]."""
        for axis in self.unknown:
            table = table - table.mean(axis=axis, keepdims=True)
        return table

    @property
    def errors(self) -> Array:
        """Standard deviation of every count by itself [as ``counts``]."""
        return np.broadcast_to(self.sigma, self.counts.shape) * math.sqrt(self.freedom)

    @property
    def dimensions(self) -> float:
        """In how many directions the noise lies: what the squared residuals of the truth, in units of sigma, come to."""
        return self.freedom * self.counts.size

    def binned(self, table: Array) -> Array:
        """Counts of values as counts of this measurement's cells [as ``counts``]."""
        return bin_table(table, self.bins, self.counts.shape)

    def trimmed(self) -> Measurement:
        """It without the bins at the end of an axis that no value falls into."""
        shape = [
            n if bins is None else int(bins.max()) + 1
            for n, bins in zip(self.counts.shape, self.bins, strict=True)
        ]
        kept = tuple(slice(n) for n in shape)
        sigma = np.broadcast_to(np.asarray(self.sigma, np.float64), self.counts.shape)
        return replace(self, counts=self.counts[kept], sigma=sigma[kept])

    def misfit(self, expected: Array) -> float:
        """R-score against a model, less what noise alone would add (VertiMRF, phase 3; PrivMRF's R-score, debiased).

        Args:
            expected: what the model says the cells should count [as ``counts``].

        Returns:
            Half the L1 distance, in records, between the two, minus its expectation where the model is right.
        """
        apart = np.abs(self.contrasted(self.counts - expected)).sum()
        return float(0.5 * (apart - np.sqrt(2 / np.pi) * self.errors.sum()))

    def squares(self, expected: Array) -> float:
        """Sum of the squared residuals of a model, in units of sigma.

        Args:
            expected: what the model says the cells should count [as ``counts``].
        """
        return float(np.square(self.contrasted(self.counts - expected) / self.sigma).sum())

    def told(self, expected: Array) -> float:
        """How much of the squared distance from a model is more than noise, with a standard deviation of doubt: 0 to 1.

        Args:
            expected: what the model says the cells should count [as ``counts``].
        """
        squares = self.squares(expected)
        noise = max(self.dimensions - math.sqrt(2 * self.dimensions), 0.0)
        return max(1 - noise / squares, 0.0) if squares > 0 else 0.0


def bin_table(table: Array, maps: Sequence[BinMap | None], shape: Sequence[int]) -> Array:
    """Counts of bins from those of values: sums over the values of each bin, axis by axis [shape=shape].

    Args:
        table: counts of values [one axis per map].
        maps: per axis the map value -> bin, or None where values are not binned.
        shape: bins per axis.
    """
    for axis, (bins, count) in enumerate(zip(maps, shape, strict=True)):
        if bins is not None:
            moved = np.moveaxis(table, axis, 0)
            out = np.zeros((count, *moved.shape[1:]))
            np.add.at(out, bins, moved)
            table = np.moveaxis(out, 0, axis)
    return np.ascontiguousarray(table)


def by_measurement(cells: Array, measurements: Sequence[Measurement]) -> list[Array]:
    """What lies flat over the cells of measurements, one after the other, as a table of each [as its ``counts``]."""
    ends = np.cumsum([m.counts.size for m in measurements])
    parts = np.split(cells, ends[:-1]) if measurements else []
    return [part.reshape(m.counts.shape) for part, m in zip(parts, measurements, strict=True)]


def best_measured(measurements: Sequence[Measurement]) -> list[Measurement]:
    """One measurement of each marginal, that of least noise: count sketches also have pairs that a party measured."""
    best: dict[tuple[int, ...], tuple[float, Measurement]] = {}
    for m in measurements:
        noise = float(m.errors.sum())
        if m.attributes not in best or noise < best[m.attributes][0]:
            best[m.attributes] = noise, m
    return [m for _, m in best.values()]
