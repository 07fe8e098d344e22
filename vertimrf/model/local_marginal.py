"""A party's noisy marginal, and what its marginals say about single attributes and the record count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Integers, Ints
from .measurement import BinMap, Measurement


def record_figures(
    count_sigma: float, marginals: Iterable[LocalMarginal], count: int | None
) -> list[tuple[float, float]]:
    """Numbers of records that a party's released figures state, each with its standard error."""
    counted = [] if count is None else [(float(count), count_sigma)]
    return counted + [
        (
            float(m.counts.sum(dtype=np.float64)) / m.units,
            m.error * math.sqrt(m.counts.size),
        )
        for m in marginals
        if not m.contrasts
    ]


def average(figures: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Average of figures by their precision, and its standard error."""
    weights = [error**-2 for _, error in figures]
    values = [value for value, _ in figures]
    return float(np.average(values, weights=weights)), sum(weights) ** -0.5


def one_way_counts(marginals: Iterable[LocalMarginal]) -> dict[int, Floats]:
    """By attribute, counts of a party's first one-way marginal of it [shape=(size,), float64]."""
    return {a: m.counts.astype(np.float64) for a, m in first_one_way(marginals).items()}


@dataclass(frozen=True, eq=False)
class LocalMarginal:
    """A marginal as a party releases it: ``units * count + noise`` in every cell.

    Along some axes, it may have contrasts in place of counts.

    Attributes:
        attributes: strictly increasing attribute indices.
        counts: units times the counts, plus noise [shape=(size, ...), int64]. The length along the
            axes of contrasts is 1.
        sigma: standard deviation of that noise.
        units: number of units spent on the marginal.
        bins: by attribute the map code -> merged value [shape=(size,), int64], or None if its
            values are not merged. Empty if no values are. The maps follow from the party's one-way
            marginals (:mod:`vertimrf.plan.merging`), and are not sent.
        contrasts: axes of two values along which counts are those of the first value minus those of
            the second.
        parts: of a chosen pair, the numbers of bins that its maps were made with
            (:mod:`vertimrf.plan.local_bins`); else empty.
    """

    attributes: Ints
    counts: Integers
    sigma: float
    units: int = 1
    bins: tuple[BinMap | None, ...] = ()
    contrasts: Ints = ()
    parts: Ints = ()

    @property
    def error(self) -> float:
        """Standard deviation of a count, or of a contrast, in records."""
        return self.sigma / self.units

    def measurement(self, source: str) -> Measurement:
        """The measurement that a model is fitted to."""
        bins = self.bins or (None,) * len(self.attributes)
        counts = self.counts / self.units
        for axis in self.contrasts:
            counts = np.concatenate([counts, -counts], axis) / 2
        # The noise of a contrast is spread over its cells. The least squares loss of the cells
        # equals that of the contrast.
        sigma = self.error / 2 ** (len(self.contrasts) / 2)
        return Measurement(self.attributes, bins, counts, sigma, source, self.contrasts)


def first_one_way(marginals: Iterable[LocalMarginal]) -> dict[int, LocalMarginal]:
    """By attribute, a party's first one-way marginal of it.

    Bins, merged values and steps of counters follow from these marginals. Later ones measure the
    same attributes again.
    """
    out: dict[int, LocalMarginal] = {}
    for m in marginals:
        if len(m.attributes) == 1:
            out.setdefault(m.attributes[0], m)
    return out
