"""Domain compression: values that only one-way marginals distinguish become one class.

The maximum-entropy distribution with given marginals has P(value | class) independent of the other
attributes, if only the attribute's one-way marginal distinguishes the values of a class. So a model
of classes, together with P(value | class), is the same distribution as a model of values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, Integers, Ints
from ..errors import ModelError
from .measurement import BinMap, Measurement, bin_table, binned_sizes, by_class
from .pair_marginals import merge_maps

# Least records of a value. Its noisy count may be negative, but a condition on it must have mass.
MIN_RECORDS = 1e-3
# Of any distribution, records are multiples of so many standard errors, the least ones, and how often
# each occurs is found in so many rounds. Its log-likelihood must be larger by so much than that of a
# normal one, which has fewer parameters: at 3, equal counts lose nothing (simulated).
LEVEL, MAX_LEVELS, ROUNDS, BETTER = 0.5, 256, 30, 3.0


@dataclass(frozen=True, eq=False)
class Compression:
    """The compression of one attribute.

    Attributes:
        classes: the map value -> class [shape=(size,), int64]; every class has a value.
        shares: P(value | class) of every value [shape=(size,), float64].
    """

    classes: BinMap
    shares: Floats

    def merged(self, bins: BinMap | None) -> BinMap | None:
        """Convert the map value -> bin to a map class -> bin; None if it splits a class, or for
        ``None``.
        """
        if bins is None:
            return None
        out = by_class(self.classes, bins)
        return out if (out[self.classes] == bins).all() else None

    def spread(self, table: Floats, axis: int, bins: BinMap | None = None) -> Floats:
        """Convert counts of classes along an axis to counts of values, or of bins of values."""
        along = [-1 if k == axis else 1 for k in range(table.ndim)]
        out: Floats = table.take(self.classes, axis=axis) * self.shares.reshape(along)
        if bins is None:
            return out
        maps = [bins if k == axis else None for k in range(out.ndim)]
        return bin_table(out, maps, binned_sizes(out.shape, maps))

    def restricted(self, kept: Integers, part: Floats) -> tuple[Integers, Floats, Compression]:
        """Restrict the attribute to some values.

        Args:
            kept: codes of the values [shape=(k,), int64].
            part: share of each value's records that remain [shape=(k,), float64].

        Returns:
            Classes that remain; the previous probability of their kept values, given the class; and
            the new compression.
        """
        left, classes = np.unique(self.classes[kept], return_inverse=True)
        shares = self.shares[kept] * part
        mass = np.bincount(classes, weights=shares).astype(np.float64)
        return (
            left,
            mass,
            Compression(classes.reshape(-1).astype(np.int64), shares / mass[classes]),
        )


def compression_maps(
    measurements: Sequence[Measurement],
    except_for: Collection[int] = (),
    ordered: Collection[int] = (),
) -> dict[int, BinMap]:
    """Find the values that no measurement of two or more attributes distinguishes.

    Args:
        measurements: all measurements of the fit.
        except_for: attributes that are not compressed.
        ordered: attributes that are not compressed by their one-way marginals alone: noise moves
            their means less than shrinking would.

    Returns:
        By attribute, the map value -> class [shape=(size,), int64]; only attributes with fewer
        classes than values.
    """
    maps: dict[int, list[BinMap | None]] = {}
    for m in measurements:
        for a, bins, count in zip(m.attributes, m.bins, m.counts.shape, strict=True):
            if len(m.attributes) > 1:
                maps.setdefault(a, []).append(bins)
            elif a not in ordered:
                # A one-way marginal distinguishes none.
                alone = np.zeros(count if bins is None else len(bins), np.int64)
                maps.setdefault(a, []).append(alone)
    out = {}
    for a, bin_maps in maps.items():
        classes = merge_maps(bin_maps) if a not in except_for else None
        if classes is not None:
            # Bins without values become no classes.
            compressed = np.unique(classes, return_inverse=True)[1].reshape(-1).astype(np.int64)
            if int(compressed.max()) + 1 < len(compressed):
                out[a] = compressed
    return out


def compressed_sizes(sizes: Sequence[int], classes: Mapping[int, BinMap]) -> Ints:
    """Number of classes of every attribute; of values where it is not compressed."""
    return binned_sizes(sizes, map(classes.get, range(len(sizes))))


def compress(m: Measurement, classes: Mapping[int, BinMap]) -> Measurement:
    """Convert a measurement of values to one of classes, with counts summed by class.

    Raises:
        ModelError: a bin of the measurement splits a class.
    """
    if not any(a in classes for a in m.attributes):
        return m
    sums: list[BinMap | None] = []
    bins: list[BinMap | None] = []
    shape = list(m.counts.shape)
    for axis, (a, axis_bins) in enumerate(zip(m.attributes, m.bins, strict=True)):
        if a not in classes:
            sums.append(None)
            bins.append(axis_bins)
        elif axis_bins is None:
            sums.append(classes[a])
            bins.append(None)
            shape[axis] = int(classes[a].max()) + 1
        else:
            merged = Compression(classes[a], np.ones(len(axis_bins))).merged(axis_bins)
            if merged is None:
                raise ModelError(
                    f"The {m.where} parts values of attribute {a} that the model has in one class."
                )
            sums.append(None)
            bins.append(merged)
    sigma: float | Floats = m.sigma
    if any(axis_bins is not None for axis_bins in sums):
        sigma = np.sqrt(bin_table(np.broadcast_to(np.square(m.sigma), m.counts.shape), sums, shape))
    return replace(m, bins=tuple(bins), counts=bin_table(m.counts, sums, shape), sigma=sigma)


def value_counts(counts: Floats, sigma: float, total: float) -> Floats:
    """Estimate how many records values have from noisy one-way counts (empirical Bayes).

    Each count is shrunk towards their mean, by the ratio of noise to their spread (Efron and Morris,
    1973). Where another distribution than a normal one explains the counts better, values have the
    means of the one that explains them best (Kiefer and Wolfowitz, 1956): one far above all others
    stays there. So classes may be chosen by the noisy counts: those of a class of large ones are too
    large, and estimates are not.

    Args:
        counts: noisy counts [shape=(size,), float64], in records.
        sigma: standard deviation of each count, in records.
        total: number of records.

    Returns:
        Records of each value, above 0 [shape=(size,), float64].
    """
    counts = counts + (total - counts.sum()) / counts.size
    gap = counts - counts.mean()
    spread = max(float(np.square(gap).sum()) / max(counts.size - 1, 1), sigma**2)
    means = counts.mean() + (1 - sigma**2 / spread) * gap
    normal = np.square(gap).sum() / spread + counts.size * np.log(spread / sigma**2)
    others, log_likelihood = _any_distribution(counts, sigma)
    if log_likelihood + normal / 2 > BETTER:
        means = others
    means = np.maximum(means, MIN_RECORDS)
    out: Floats = means * (total / means.sum())
    return out


def _any_distribution(counts: Floats, sigma: float) -> tuple[Floats, float]:
    """Means of values given their noisy counts, of any distribution [shape=(size,), float64], and
    the logarithm of the counts' likelihood.
    """
    step = sigma * LEVEL
    at = np.round(np.maximum(counts, 0.0) / step)
    levels = np.unique(np.append(at, 0.0))[:MAX_LEVELS]
    # Counts beyond the last level stay as they are.
    inside = at <= levels[-1]
    shares = np.bincount(np.searchsorted(levels, at[inside]), minlength=len(levels)) / inside.sum()
    misfits = np.square((counts[inside, None] - step * levels) / sigma) / 2
    least = misfits.min(axis=1)
    likely = np.exp(least[:, None] - misfits)
    for _ in range(ROUNDS):
        shares = shares * (1 / (likely @ shares) @ likely) / len(likely)
    chances = likely @ shares
    means = counts.copy()
    means[inside] = likely @ (shares * step * levels) / chances
    return means, float((np.log(chances) - least).sum())
