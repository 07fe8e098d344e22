"""Noisy marginals and contrasts of the joint table, which the model is fitted to."""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Floats, Integers, Ints
from ..errors import ModelError

BinMap = Integers
# A cell is unmeasured if its standard deviation is at least this multiple of the record count.
UNMEASURED = 1e3


def bin_of_value(bins: BinMap | None, count: int) -> Integers:
    """A map value -> bin, also where every value is a bin.

    Args:
        bins: the map [shape=(count,), int64], or None for values.
        count: how many values there are.

    Returns:
        The map [shape=(count,), int64].
    """
    return np.arange(count) if bins is None else bins


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy marginal of the joint table, or contrasts of it, with values or bins along each axis.

    A contrast along some axes is the difference of each cell from the mean of the cells along these
    axes.

    Attributes:
        attributes: strictly increasing indices into the global schema.
        bins: per attribute the map code -> bin [shape=(size,), int64], or None for values.
        counts: estimated record counts [shape=(bins of attribute 1, ..., bins of attribute l),
            float64]; may be negative.
        sigma: standard deviation of each count, a number or an array [shape of ``counts``,
            float64]. Of contrasts it is the one that least squares weights by, as if the noise had
            no correlations.
        source: what was measured and by whom, for messages ("age × smoker, by party hospital").
        contrasts: axes along which contrasts were measured.
        completed: whether ``counts`` includes the mean along contrasted axes.
        asked: whether a workload needs means of it, or it is of halves. Fits follow it more closely.
        trend: how many numbers determine the dependence in it, so that its noise has as many
            dimensions (:mod:`~.trend`); 0 if it is no trend. Fits follow trends more closely.
        settled: whether rare counts are estimates that decline (:mod:`~.tails`), so that fits need not
            raise them.

    Raises:
        ModelError: shapes disagree, a count is not finite, a standard deviation is not positive, or
            an axis does not exist.
    """

    attributes: Ints
    bins: tuple[BinMap | None, ...]
    counts: Floats
    sigma: float | Floats
    source: str = ""
    contrasts: Ints = ()
    completed: bool = False
    asked: bool = False
    trend: int = 0
    settled: bool = False

    def __post_init__(self) -> None:
        if not self.attributes or any(
            b <= a for a, b in zip(self.attributes, self.attributes[1:], strict=False)
        ):
            raise ModelError(
                f"{self.where}: attributes must be named in strictly increasing order."
            )
        if len(self.bins) != len(self.attributes) or self.counts.ndim != len(self.attributes):
            raise ModelError(
                f"{self.where}: needs one bin map (or None) and one axis of counts per attribute."
            )
        for axis, bins in enumerate(self.bins):
            if bins is not None and (bins.min() < 0 or bins.max() >= self.counts.shape[axis]):
                raise ModelError(
                    f"{self.where}: axis {axis} has {self.counts.shape[axis]} counts but bins up to {bins.max()}."
                )
        if not np.isfinite(self.counts).all():
            raise ModelError(f"{self.where}: holds a count that is not finite.")
        sigma = np.asarray(self.sigma)
        if sigma.size and not 0 < sigma.min() <= sigma.max() < math.inf:
            raise ModelError(f"{self.where}: standard deviations must be finite and above zero.")
        if not set(self.contrasts) <= set(range(self.counts.ndim)):
            raise ModelError(
                f"{self.where}: has contrasts along {self.contrasts}, but {self.counts.ndim} axes."
            )

    @property
    def where(self) -> str:
        """The measurement's name in error messages."""
        return (
            f"measurement of {self.source}"
            if self.source
            else f"measurement of attributes {self.attributes}"
        )

    @property
    def freedom(self) -> float:
        """Dimensions of the noise over the number of cells: 1/4 if one contrast determines a pair's
        four cells.
        """
        if self.trend:
            return self.trend / self.counts.size
        return math.prod((1 - 1 / self.counts.shape[axis] for axis in self.contrasts), start=1.0)

    @property
    def directions(self) -> int:
        """Dimensions of the dependence that was measured, beside the margins."""
        return self.trend or math.prod(max(count - 1, 1) for count in self.counts.shape)

    @property
    def unknown(self) -> Ints:
        """Axes along which the mean is unknown."""
        return () if self.completed else self.contrasts

    def contrasted(self, table: Floats) -> Floats:
        """Subtract a table's means along the axes where they are unknown [shape of ``counts``,
        float64].
        """
        return contrasted(table, self.unknown)

    @property
    def errors(self) -> Floats:
        """Standard deviation of every single count [shape of ``counts``, float64]."""
        return np.broadcast_to(self.sigma, self.counts.shape) * math.sqrt(self.freedom)

    @property
    def dimensions(self) -> float:
        """Dimensions of the noise: the expected sum of the truth's squared residuals, in units of
        sigma.
        """
        return self.freedom * self.counts.size

    def trimmed(self, **changes: Any) -> Measurement:
        """The measurement without empty bins at the end of an axis, and with other fields changed."""
        kept = tuple(map(slice, binned_sizes(self.counts.shape, self.bins)))
        sigma = np.broadcast_to(np.asarray(self.sigma, np.float64), self.counts.shape)
        # Parts of valid arrays need no checks, which would take most of the time for many pairs.
        out = object.__new__(Measurement)
        fields = {name: vars(self)[name] for name in self.__dataclass_fields__}
        vars(out).update(fields, counts=self.counts[kept], sigma=sigma[kept], **changes)
        return out

    @cached_property
    def misfit_by_noise(self) -> float:
        """Half the expected L1 norm of the noise, in records."""
        return float(noise_misfits([self])[0])

    @cached_property
    def margins(self) -> list[tuple[Floats, Floats]]:
        """By axis, the precision of each count of its margin, and the counts times that."""
        variance = np.broadcast_to(np.square(self.sigma), self.counts.shape)
        out = []
        for axis, sums in enumerate(self.sums):
            others = tuple(k for k in range(variance.ndim) if k != axis)
            weights = 1 / variance.sum(axis=others)
            out.append((weights, weights * sums))
        return out

    @cached_property
    def sums(self) -> list[Floats]:
        """By axis, the counts of its margin."""
        axes = range(self.counts.ndim)
        return [self.counts.sum(axis=tuple(k for k in axes if k != axis)) for axis in axes]

    @cached_property
    def variance(self) -> float:
        """Mean variance of a count."""
        return float(np.square(self.sigma).mean())

    def squares(self, expected: Floats) -> float:
        """Sum of a model's squared residuals, in units of sigma.

        Args:
            expected: the model's expected counts [shape of ``counts``, float64].
        """
        return float(squares([self], [expected])[0])

    def squares_of_each(self, tables: Floats) -> Floats:
        """Sums of the squared residuals of several models, in units of sigma [shape=(models,),
        float64].

        Args:
            tables: the models' expected counts [shape=(models, *shape of ``counts``), float64].
        """
        apart = contrasted(self.counts - tables, [axis + 1 for axis in self.unknown]) / self.sigma
        sums: Floats = np.square(apart).reshape(len(tables), -1).sum(axis=1)
        return sums

    def signal(self, expected: Floats) -> float:
        """Share of a model's squared residuals that noise does not explain, plus one standard
        deviation: 0 to 1.

        Args:
            expected: the model's expected counts [shape of ``counts``, float64].
        """
        squares = self.squares(expected)
        noise = max(self.dimensions - math.sqrt(2 * self.dimensions), 0.0)
        return max(1 - noise / squares, 0.0) if squares > 0 else 0.0


def contrasted(table: Floats, axes: Iterable[int]) -> Floats:
    """Subtract a table's means along some axes."""
    for axis in axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def binned_sizes(sizes: Iterable[int], maps: Iterable[BinMap | None]) -> Ints:
    """Number of bins of each map value -> bin; the size where there is no map."""
    return tuple(
        int(size) if bins is None else int(bins.max()) + 1
        for size, bins in zip(sizes, maps, strict=True)
    )


def bin_table(table: Floats, maps: Sequence[BinMap | None], shape: Sequence[int]) -> Floats:
    """Sum counts of values over bins, axis by axis [shape=shape, float64].

    Args:
        table: counts of values [one axis per map].
        maps: per axis the map value -> bin, or None for values.
        shape: number of bins per axis.
    """
    from ..kernels.carry import add_bins  # Who reads plans and messages loads no kernel.

    # Kernels take no read-only arrays.
    table = np.array(table, np.float64, order="C")
    for axis, (bins, count) in enumerate(zip(maps, shape, strict=True)):
        if bins is not None:
            before, after = table.shape[:axis], table.shape[axis + 1 :]
            rows, columns = math.prod(before), math.prod(after)
            out = np.zeros((rows, count, columns))
            add_bins(table.reshape(rows, len(bins), columns), np.array(bins, np.int64), out)
            table = out.reshape(*before, count, *after)
    return table


def by_class(classes: BinMap, bins: BinMap) -> BinMap:
    """Convert a map value -> bin to a map class -> bin [shape=(classes,), int64].

    Args:
        classes: the map value -> class [shape=(size,), int64].
        bins: the map value -> bin, the same for all values of a class [shape=(size,), int64].
    """
    out = np.zeros(int(classes.max()) + 1, np.int64)
    out[classes] = bins
    return out


def padded(table: Floats, shape: Sequence[int]) -> Floats:
    """Add empty bins at the end of each axis of a table, up to a shape."""
    if table.shape == tuple(shape):
        return table
    return np.pad(table, [(0, n - m) for n, m in zip(shape, table.shape, strict=True)])


def by_measurement(cells: Floats, measurements: Sequence[Measurement]) -> list[Floats]:
    """Split a flat array over the cells of all measurements into one table per measurement [shape
    of its ``counts``].
    """
    ends = np.cumsum([m.counts.size for m in measurements])
    parts = np.split(cells, ends[:-1]) if measurements else []
    return [part.reshape(m.counts.shape) for part, m in zip(parts, measurements, strict=True)]


def _alike(measurements: Sequence[Measurement]) -> Iterator[tuple[list[int], list[Measurement]]]:
    """Places of measurements of one shape with the same unknown means, and these measurements: one
    array operation takes all of them.
    """
    alike = collections.defaultdict[tuple[Ints, Ints], list[int]](list)
    for i, m in enumerate(measurements):
        alike[m.counts.shape, m.unknown].append(i)
    for places in alike.values():
        yield places, [measurements[i] for i in places]


def _sigmas(some: Sequence[Measurement]) -> Floats:
    """Standard deviations of measurements of one shape [shape=(measurements, *shape)]."""
    out = np.empty((len(some), *some[0].counts.shape))
    for row, m in zip(out, some, strict=True):
        row[...] = m.sigma
    return out


def noise_misfits(measurements: Sequence[Measurement]) -> Floats:
    """Half the expected L1 norm of each measurement's noise, in records [shape=(measurements,)]."""
    for _, some in _alike([m for m in measurements if "misfit_by_noise" not in m.__dict__]):
        freedom = np.sqrt([m.freedom for m in some])
        errors = _sigmas(some).reshape(len(some), -1) * freedom[:, None]
        norms = 0.5 * np.sqrt(2 / np.pi) * errors.sum(axis=1)
        for m, norm in zip(some, norms.tolist(), strict=True):
            m.__dict__["misfit_by_noise"] = norm  # Kept, as that of one is.
    return np.array([m.misfit_by_noise for m in measurements])


def _apart(
    measurements: Sequence[Measurement],
    expected: Sequence[Floats],
    score: Callable[[Floats, Sequence[Measurement]], Floats],
) -> Floats:
    """Sum over each measurement's cells of a score of its counts less a model's, which is taken for
    measurements of one kind at once [shape=(measurements,)].
    """
    out = np.empty(len(measurements))
    for places, some in _alike(measurements):
        apart = np.array([m.counts for m in some]) - np.array([expected[i] for i in places])
        scores = score(contrasted(apart, [axis + 1 for axis in some[0].unknown]), some)
        out[places] = scores.reshape(len(some), -1).sum(axis=1)
    return out


def misfits(measurements: Sequence[Measurement], expected: Sequence[Floats]) -> Floats:
    """R-scores against a model, minus their expectation under noise alone (VertiMRF, phase 3;
    PrivMRF).

    Args:
        measurements: noisy marginals.
        expected: the model's expected counts of each [shape of its ``counts``].

    Returns:
        For each, half the L1 distance between ``counts`` and ``expected``, in records, minus its
        expectation if the model is right [shape=(measurements,), float64].
    """
    distances = _apart(measurements, expected, lambda apart, _: np.abs(apart))
    return 0.5 * distances - noise_misfits(measurements)


def squares(measurements: Sequence[Measurement], expected: Sequence[Floats]) -> Floats:
    """Sums of a model's squared residuals, in units of sigma [shape=(measurements,), float64].

    Args:
        measurements, expected: as for :func:`misfits`.
    """
    return _apart(measurements, expected, lambda apart, some: np.square(apart / _sigmas(some)))


def best_measured(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Select the measurement of least noise for each set of attributes."""
    best: dict[Ints, tuple[float, Measurement]] = {}
    for m, noise in zip(measurements, noise_misfits(measurements).tolist(), strict=True):
        if m.attributes not in best or noise < best[m.attributes][0]:
            best[m.attributes] = noise, m
    return [m for _, m in best.values()]


def one_way_margins(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Every attribute's counts: the mean of its margins of most values in the same bins, weighted
    by their precision.

    Args:
        measurements: noisy marginals. Those with unknown means are left out.

    Returns:
        One measurement for each measured attribute.
    """
    margins: dict[int, dict[tuple[int, bytes], list[tuple[Measurement, int]]]] = {}
    for m in measurements:
        for axis, (a, bins, count) in enumerate(
            zip(m.attributes, m.bins, m.counts.shape, strict=True)
        ):
            if not m.unknown:
                cells = count, _values(count) if bins is None else bins.tobytes()
                margins.setdefault(a, {}).setdefault(cells, []).append((m, axis))
    out = []
    for a, by_bins in margins.items():
        finest = by_bins[max(by_bins, key=lambda cells: cells[0])]
        weights, counts = zip(*(m.margins[axis] for m, axis in finest), strict=True)
        precision = np.sum(weights, axis=0)
        m, axis = finest[0]
        total = np.sum(counts, axis=0) / precision
        known = any(each.settled for each, _ in finest)
        of_values = Measurement((a,), (m.bins[axis],), total, precision**-0.5, m.source)
        out.append(replace(of_values, settled=known))
    return out


@functools.cache
def _values(count: int) -> bytes:
    """The bins of an attribute of so many values, each its own, as bytes."""
    return np.arange(count).tobytes()
