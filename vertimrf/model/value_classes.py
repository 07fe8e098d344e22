"""Values that no larger marginal tells apart: they are one value of the model, a class, and are spread again by their own counts.

Of all distributions with given marginals, the one of most entropy has P(value | class) the same whatever the other attributes
are, where nothing but the attribute's own marginal tells the values of a class apart. So a model of classes, with that
conditional beside it, is the same distribution as one of values, and its cliques have the cells of classes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .measurement import Array, BinMap, Measurement, bin_table
from .pair_marginals import merge_maps

__all__ = ["ValueClasses", "in_classes", "sizes_in_classes", "spread_within", "told_apart"]

# Least part of a record that a value keeps: what is released of it may be far below zero, and whoever asks for it gets rows.
MIN_RECORDS = 1e-3


@dataclass(frozen=True, eq=False)
class ValueClasses:
    """An attribute's values in classes.

    Attributes:
        classes: the map value -> class [shape=(size,), int64]; every class has a value.
        shares: the probability of each value, given its class [shape=(size,), float64].
    """

    classes: BinMap
    shares: Array

    def merged(self, bins: BinMap | None) -> BinMap | None:
        """A bin map of values as one of classes; None where it parts a class, or leaves every value apart."""
        if bins is None:
            return None
        out = np.zeros(int(self.classes.max()) + 1, np.int64)
        out[self.classes] = bins
        return out if (out[self.classes] == bins).all() else None

    def spread(self, table: Array, axis: int, bins: BinMap | None = None) -> Array:
        """Counts of classes along an axis as counts of values, or of bins of theirs."""
        along = [-1 if k == axis else 1 for k in range(table.ndim)]
        out: Array = table.take(self.classes, axis=axis) * self.shares.reshape(along)
        if bins is None:
            return out
        shape = [int(bins.max()) + 1 if k == axis else n for k, n in enumerate(out.shape)]
        return bin_table(out, [bins if k == axis else None for k in range(out.ndim)], shape)

    def restricted(
        self, kept: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], Array, ValueClasses]:
        """What is left of it where only some values can be: classes, the probability of each before, and the values in them."""
        left, classes = np.unique(self.classes[kept], return_inverse=True)
        mass = np.bincount(classes, weights=self.shares[kept]).astype(np.float64)
        return (
            left,
            mass,
            ValueClasses(classes.reshape(-1).astype(np.int64), self.shares[kept] / mass[classes]),
        )


def told_apart(
    measurements: Sequence[Measurement], except_for: Collection[int] = ()
) -> dict[int, BinMap]:
    """Classes of values that no measurement of two or more attributes tells apart: per attribute the map value -> class.

    Args:
        measurements: all that the model will be fitted to.
        except_for: attributes whose values are to stay apart.
    """
    maps: dict[int, list[BinMap | None]] = {}
    for m in measurements:
        if len(m.attributes) > 1:
            for a, bins in zip(m.attributes, m.bins, strict=True):
                maps.setdefault(a, []).append(bins)
    out = {}
    for a, own in maps.items():
        classes = merge_maps(own).classes if a not in except_for else None
        if classes is not None:
            # Bins that no value falls into are none of the model's.
            found = np.unique(classes, return_inverse=True)[1].reshape(-1).astype(np.int64)
            if int(found.max()) + 1 < len(found):
                out[a] = found
    return out


def sizes_in_classes(sizes: Sequence[int], classes: Mapping[int, BinMap]) -> tuple[int, ...]:
    """Sizes of attributes, of which some are in classes."""
    return tuple(
        int(classes[a].max()) + 1 if a in classes else int(size) for a, size in enumerate(sizes)
    )


def in_classes(m: Measurement, classes: Mapping[int, BinMap]) -> Measurement:
    """A measurement as one of classes; counts of values in one class are added up.

    Raises:
        ModelError: it has bins that part a class.
    """
    if not any(a in classes for a in m.attributes):
        return m
    sums: list[BinMap | None] = []
    bins: list[BinMap | None] = []
    shape = list(m.counts.shape)
    for axis, (a, own) in enumerate(zip(m.attributes, m.bins, strict=True)):
        if a not in classes:
            sums.append(None)
            bins.append(own)
        elif own is None:
            sums.append(classes[a])
            bins.append(None)
            shape[axis] = int(classes[a].max()) + 1
        else:
            merged = ValueClasses(classes[a], np.ones(len(own))).merged(own)
            if merged is None:
                raise ModelError(
                    f"The {m.where} parts values of attribute {a} that the model has in one class."
                )
            sums.append(None)
            bins.append(merged)
    sigma: float | Array = m.sigma
    if any(own is not None for own in sums):
        sigma = np.sqrt(bin_table(np.broadcast_to(np.square(m.sigma), m.counts.shape), sums, shape))
    return replace(m, bins=tuple(bins), counts=bin_table(m.counts, sums, shape), sigma=sigma)


def spread_within(classes: BinMap, records: Array, counts: Array, sigma: float) -> ValueClasses:
    """How the records of classes are shared out over their values.

    Values are in a class because their counts hardly stand above noise, so that each is moved towards the average of its class,
    by as much as the counts' spread within it would have it (empirical Bayes; Efron and Morris, 1973). On a generated payroll at
    one party that took the distance of its one-way marginals from 0.035 to 0.025, and of three-way ones from 0.247 to 0.239
    (epsilon 0.2), beside least squares without negative counts.

    Args:
        classes: the map value -> class [shape=(size,)].
        records: of each class, by the model [shape=(classes,)].
        counts: released counts of the values [shape=(size,)]; ``sigma``: their standard deviation.
    """
    width = np.bincount(classes)
    gap = counts - (np.bincount(classes, weights=counts) / width)[classes]
    variance = np.maximum(
        np.bincount(classes, weights=np.square(gap)) / np.maximum(width - 1, 1) - sigma**2, 0.0
    )
    kept = np.divide(
        variance, variance + sigma**2, out=np.ones(len(width)), where=variance + sigma**2 > 0
    )
    found = np.maximum((records / width)[classes] + kept[classes] * gap, MIN_RECORDS)
    return ValueClasses(classes, found / np.bincount(classes, weights=found)[classes])
