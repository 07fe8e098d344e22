"""How precisely the marginals of a model are known, from what was measured of them.

A measured cell has the noise of all measurements that contain it. Its row and its column are known
better, from other measurements. A cell with fewer records than noise is held near zero by the fit,
so that its error is about its count. Marginals that were not measured follow from smaller ones by
the model's conditional independence, which may be wrong.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..arrays import Arrays, Flags, Floats, Integers, Ints, Pair
from ..errors import ModelError
from .evidence import smallest, upper_tail
from .markov_random_field import MarkovRandomField
from .measurement import Measurement, contrasted, padded
from .sample import MARGINAL_ROWS, expected_marginals

# Columns of whole numbers.
WHOLE = ("first", "second", "cells")
# What is known of a marginal.
MEASURED, IMPLIED, UNKNOWN = "measured", "implied", "unknown"
# Mean absolute value of Gaussian noise of standard deviation 1.
MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
# The error of a cell that the model has empty, in standard deviations of the noise: of columns, of
# pairs.
EMPTY = (0.5, 0.04)
# Errors of pairs exceed those of all measurements together by this factor, because fits end at the
# noise. Errors across parties exceed those stated by another, because the sets' sizes are estimates.
FITTED, ACROSS = 1.06, 1.2
# Relative error of a cell by conditional independence, and by a pair that was not measured.
STRUCTURE, UNSEEN = 0.3, 0.5
# A model is off a measurement by what its distance exceeds that of noise, and by this part of it
# over the root of cells: two standard deviations.
CHANCE = 1.5
# A model keeps a dependence if it has this part of it. A dependence of so many standard errors that it
# does not keep is dropped.
KEPT, SURE = 0.8, 5.0
# Pairs are known at this false-discovery rate. A dependence like that of a correlation of NEGLIGIBLE is
# none that anybody asks for: it is no more than what noise has to be told from.
FALSELY_KNOWN, NEGLIGIBLE = 0.05, 0.05


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured of columns and pairs, and how far the model is from it.

    Everything follows from released figures. Pairs have single figures and no tables, see
    :mod:`vertimrf.server.released_figures`.

    Attributes:
        one_way: standard error of a value's count, records [shape=(d,), float64].
        first, second: positions of the attributes of each pair [shape=(pairs,), int64].
        cells: number of cells [as first, int64].
        error: standard error of a cell in the best measurement, records.
        noise: expected distance of the best measurement from the truth, share of records.
        distance: distance between the best measurement and the model, share of records.
        dependence: distance from independence by the best measurement, less the expected
            contribution of noise.
        dependence_error: standard error of ``dependence``.
        chance: probability that noise and a negligible dependence look so dependent.
        model_dependence: distance from independence by the model.
        spread: standard error of a cell by all measurements, records.
    """

    one_way: Floats
    first: Integers
    second: Integers
    cells: Integers
    error: Floats
    noise: Floats
    distance: Floats
    dependence: Floats
    dependence_error: Floats
    chance: Floats
    model_dependence: Floats
    spread: Floats

    def __post_init__(self) -> None:
        pairs = self.first.shape
        for field in fields(self):
            values = getattr(self, field.name)
            if values.ndim != 1 or (field.name != "one_way" and values.shape != pairs):
                raise ModelError("What was measured has columns of different lengths.")
            if not np.isfinite(values).all():
                raise ModelError("What was measured has a figure that is not finite.")
        d = len(self.one_way)
        if not ((self.first >= 0) & (self.first < self.second) & (self.second < d)).all():
            raise ModelError("What was measured has pairs of unknown attributes.")

    @classmethod
    def of(
        cls,
        field: MarkovRandomField,
        local: Sequence[Measurement],
        crossing: Sequence[Measurement],
    ) -> Evidence:
        """Compare a model with its measurements.

        Args:
            field: the fitted model.
            local: marginals that were counted, with independent noise in every cell.
            crossing: marginals that were estimated, given those of single attributes.
        """
        one_way, spreads = _precision(field.sizes, local, crossing)
        columns: dict[str, list[float]] = {name.name: [] for name in fields(cls)[1:]}
        best = _best([*local, *crossing], field.total)
        bins = [[m.bins[m.attributes.index(a)] for a in pair] for pair, (m, *_) in best.items()]
        tables = expected_marginals(field, list(best), bins)
        for (pair, (m, counts, error)), table in zip(best.items(), tables, strict=True):
            expected = padded(table, counts.shape)
            apart = np.outer(expected.sum(axis=1), expected.sum(axis=0)) / field.total
            axes = [m.attributes.index(a) for a in pair]
            # Contrasts say nothing of margins, also where these were added.
            unknown = tuple(axes.index(axis) for axis in m.contrasts)
            counts = contrasted(counts, unknown)
            beyond = counts - contrasted(apart, unknown)
            beneath = size_beneath_noise(beyond, error)
            directions = m.directions if len(m.attributes) == 2 else _directions(counts)
            figures = {
                "first": pair[0],
                "second": pair[1],
                "cells": counts.size,
                "error": float(np.sqrt(np.square(error).mean())),
                "noise": _share(MEAN_ABSOLUTE * error, field.total),
                "distance": _share(np.abs(counts - contrasted(expected, unknown)), field.total),
                "dependence": _share(beneath, field.total),
                "dependence_error": _share(error, field.total) / math.sqrt(directions),
                "chance": _chance(beyond / error, directions, _negligible(expected, error)),
                "model_dependence": _share(np.abs(expected - apart), field.total),
                "spread": spreads[pair],
            }
            for name, figure in figures.items():
                columns[name].append(figure if name in WHOLE else float(f"{figure:.4g}"))
        return cls.of_columns({"one_way": one_way.tolist(), **columns})

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Evidence:
        """Evidence from lists of numbers by attribute of this class."""
        arrays: Arrays = {
            field.name: np.array(columns[field.name], np.float64) for field in fields(cls)
        }
        return cls(**arrays | {name: arrays[name].astype(np.int64) for name in WHOLE})

    def to_columns(self) -> dict[str, list[Any]]:
        """Lists of numbers by attribute of this class."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @functools.cached_property
    def places(self) -> dict[Pair, int]:
        """The place of each measured pair in the columns."""
        pairs = zip(self.first.tolist(), self.second.tolist(), strict=True)
        return {pair: i for i, pair in enumerate(pairs)}

    @property
    def columns(self) -> int:
        """Number of columns of several values."""
        return int((self.one_way > 0).sum())

    @property
    def _kept(self) -> Flags:
        """Whether the model keeps the measured dependence of each pair."""
        return self.model_dependence >= KEPT * self.dependence

    @property
    def dropped(self) -> list[Pair]:
        """Pairs with a measured dependence that the model does not keep, the greatest loss first:
        those of :data:`SURE` standard errors, and those that would be known.
        """
        sure = self.dependence >= SURE * self.dependence_error
        lost = (sure | self._stand_out) & (self.dependence > 0) & ~self._kept
        return self._pairs(lost, self.model_dependence - self.dependence)

    @property
    def known(self) -> list[Pair]:
        """Pairs that are known to depend on each other, and do so in the model; strongest first."""
        return self._pairs(self._stand_out & self._kept, -self.dependence)

    @functools.cached_property
    def _stand_out(self) -> Flags:
        """Whether each pair depends on each other, among all pairs of columns, by the procedure of
        Benjamini and Hochberg (1995). Pairs that were not measured count as chance.
        """
        every = max(math.comb(self.columns, 2), len(self.chance))
        return smallest(self.chance, FALSELY_KNOWN, every)

    def _pairs(self, which: Flags, by: Floats) -> list[Pair]:
        """Some of the pairs, in an order."""
        order = np.argsort(by, kind="stable")
        return [(int(self.first[i]), int(self.second[i])) for i in order if which[i]]

    def kind(self, attributes: Iterable[int]) -> str:
        """Whether a marginal was measured, is implied by measured pairs, or is unknown."""
        # What is beside a column of one value is known as well as alone.
        wanted = sorted(a for a in attributes if self.one_way[a])
        if len(wanted) < 2 or tuple(wanted) in self.places:
            return MEASURED
        return IMPLIED if len({self._parts[a] for a in wanted}) == 1 else UNKNOWN

    @functools.cached_property
    def _parts(self) -> list[int]:
        """A label of each attribute, the same for those that measured pairs connect."""
        part = list(range(len(self.one_way)))
        for a, b in self.places:
            low, high = sorted((part[a], part[b]))
            part = [low if label == high else label for label in part]
        return part

    def errors(self, field: MarkovRandomField, attributes: Sequence[int], counts: Floats) -> Floats:
        """Standard errors of a marginal: the truth is within 1.96 of them in about 95 % of cells.

        Args:
            field: the model.
            attributes: distinct attributes, in the order of the axes of ``counts``.
            counts: the model's counts.

        Returns:
            Standard errors, records [shape of ``counts``, float64]. Infinite for unknown marginals.
        """
        kind = self.kind(attributes)
        if kind == UNKNOWN:
            return np.full(counts.shape, np.inf)
        varying = [a for a in attributes if field.sizes[a] > 1] or list(attributes[:1])
        if len(varying) < len(attributes):
            alone = counts.reshape([field.sizes[a] for a in varying])
            return self.errors(field, varying, alone).reshape(counts.shape)
        drawn = 0.0
        if field.off_tree and field.tree.covering(attributes) < 0:
            drawn = field.total / MARGINAL_ROWS
        if kind == MEASURED:
            return self._measured(tuple(attributes), counts, drawn)
        relative = np.full(counts.shape, STRUCTURE**2)
        for axes in itertools.combinations(range(counts.ndim), 2):
            pair = attributes[axes[0]], attributes[axes[1]]
            if tuple(sorted(pair)) not in self.places:
                relative += UNSEEN**2
                continue
            rest = tuple(axis for axis in range(counts.ndim) if axis not in axes)
            table = counts.sum(axis=rest, keepdims=True)
            error = self._measured(pair, table, drawn)
            relative += np.square(error / np.maximum(table, 1e-9))
        out: Floats = np.sqrt(np.square(counts) * relative + (1 + drawn) * counts)
        return out

    def _measured(self, attributes: Ints, counts: Floats, drawn: float) -> Floats:
        """Standard errors of a measured column or pair."""
        if len(attributes) == 1:
            sigma, misfit = float(self.one_way[attributes[0]]), 0.0
        else:
            i = self.places[min(attributes), max(attributes)]
            sigma = float(self.spread[i])
            noise = float(self.noise[i]) * (1 + CHANCE / math.sqrt(self.cells[i]))
            misfit = 2 * max(float(self.distance[i]) - noise, 0.0)
        if not sigma:
            return np.zeros(counts.shape)
        size = counts + EMPTY[len(attributes) - 1] * sigma
        return np.sqrt(
            np.square(sigma * size / (sigma + size)) + np.square(misfit * counts) + drawn * counts
        )


def size_beneath_noise(values: Floats, sigma: Floats) -> Floats:
    """Estimate the absolute values of numbers with Gaussian noise; results may be negative.

    The estimate is unbiased for numbers that are zero or much larger than the noise. Otherwise it
    is too low, by at most half of sigma.

    Args:
        values: numbers with noise [any shape, float64].
        sigma: standard deviations of the noise [shape of ``values``, float64].

    Returns:
        Estimates [shape of ``values``, float64].
    """
    # The mean of exp(-z^2 / 2) for a standard Gaussian z is 1 / sqrt(2).
    return np.abs(values) - math.sqrt(2) * MEAN_ABSOLUTE * sigma * np.exp(
        -0.5 * np.square(values / sigma)
    )


def _directions(table: Floats) -> int:
    """Dimensions of the dependence in a pair's table."""
    return math.prod(max(count - 1, 1) for count in table.shape)


def _chance(beyond: Floats, directions: int, negligible: float) -> float:
    """Probability that noise, and a negligible dependence, are as far from independence as measured.

    The squares are those of a non-central chi-square, which is nearly a multiple of a central one
    (Patnaik, 1949).

    Args:
        beyond: what exceeds independence in each cell, in standard errors.
        directions: dimensions of the dependence that was measured.
        negligible: mean square of a negligible dependence in a cell, in squared standard errors.
    """
    more = directions * negligible
    factor = (directions + 2 * more) / (directions + more)
    degrees = (directions + more) / factor
    squared = directions * float(np.square(beyond).mean())
    return upper_tail(squared / factor / degrees, degrees)


def _negligible(expected: Floats, error: Floats) -> float:
    """Mean square, over a table's cells, of a correlation of :data:`NEGLIGIBLE`, in squared standard
    errors.

    A correlation r of scores x and y moves the share of a cell by r p x q y. The sum of p² x² is taken
    to be that of scores whose squares are in proportion to 1/p - 1, which is exact for two values.
    """
    total = float(expected.sum())
    size = NEGLIGIBLE * total
    for axis in (0, 1):
        shares = expected.sum(axis=1 - axis) / total
        spread = max(float((shares * (1 - shares)).sum()), 0.0)
        size *= math.sqrt(spread / max(len(shares) - 1, 1))
    return size**2 / expected.size / float(np.square(error).mean())


def _share(sizes: Floats, total: float) -> float:
    """Half of a sum, as a share of the records."""
    return 0.5 * float(sizes.sum()) / total


def _best(
    measurements: Sequence[Measurement], total: float
) -> dict[Pair, tuple[Measurement, Floats, Floats]]:
    """By pair, the measurement of least noise, with its counts of the pair and their errors.

    Pairs that are noise alone are left out.
    """
    best: dict[Pair, tuple[float, Measurement, Floats, Floats]] = {}
    for m in measurements:
        for pair, rest in _pairs_of(m):
            error = np.sqrt(np.square(m.errors).sum(axis=rest))
            noise = _share(MEAN_ABSOLUTE * error, total)
            if noise < 1 and (pair not in best or noise < best[pair][0]):
                best[pair] = noise, m, m.counts.sum(axis=rest), error
    return {pair: best[pair][1:] for pair in sorted(best)}


def _pairs_of(m: Measurement) -> list[tuple[Pair, Ints]]:
    """The pairs that a marginal contains, each with the other axes.

    Contrasts along other axes do not contain a pair.
    """
    axes = range(len(m.attributes))
    pairs = [
        ((m.attributes[i], m.attributes[j]), tuple(axis for axis in axes if axis not in (i, j)))
        for i, j in itertools.combinations(axes, 2)
    ]
    return [(pair, rest) for pair, rest in pairs if not set(m.contrasts).intersection(rest)]


def _precision(
    sizes: Sequence[int], local: Sequence[Measurement], crossing: Sequence[Measurement]
) -> tuple[Floats, dict[Pair, float]]:
    """Standard errors by all measurements: of each attribute's counts, and of pairs' cells.

    Inverse variances of measurements add up. Of a pair's cell with variance v, the interaction has
    the share (1 - 1/a)(1 - 1/b), and its row and its column the rest, which one-way marginals
    tell too.
    """
    alone: dict[int, float] = collections.defaultdict(float)
    together: dict[Pair, float] = collections.defaultdict(float)
    counted: set[Pair] = set()
    for m in local:
        if not m.contrasts:
            for axis, a in enumerate(m.attributes):
                alone[a] += m.counts.shape[axis] / float(np.square(m.errors).sum())
    for measurements, factor in ((local, 1.0), (crossing, ACROSS)):
        for m in measurements:
            noise = np.broadcast_to(np.square(factor * m.sigma), m.counts.shape)
            for pair, rest in _pairs_of(m):
                together[pair] += 1 / float(noise.sum(axis=rest).mean())
    for m in local:
        if not m.contrasts:
            counted.update(pair for pair, _ in _pairs_of(m))
    one_way = np.array(
        [math.sqrt(1 / alone[a]) if alone[a] and size > 1 else 0.0 for a, size in enumerate(sizes)]
    )

    def margin(pair: Pair, of: int, other: int, variance: float) -> float:
        """Variance of a cell by its row or column."""
        row = one_way[of] ** 2 / sizes[other]
        if pair in counted:
            row = row * variance / (row + variance)
        return float((1 - 1 / sizes[of]) * row / sizes[other])

    spreads = {}
    for (a, b), precision in together.items():
        variance = 1 / precision
        total = (1 - 1 / sizes[a]) * (1 - 1 / sizes[b]) * variance
        total += margin((a, b), a, b, variance) + margin((a, b), b, a, variance)
        spreads[a, b] = FITTED * math.sqrt(total)
    return one_way, spreads
