"""Dimension reduction undone (VertiMRF, section 6.1): from the counts of bins to counts of values, by name.

HisRec spreads each bin's count over its values in proportion to released one-way counts, Pr[A, B] = sum over the bins of
Pr[X, Y] Pr[A | X] Pr[B | Y]; UniSam spreads it evenly. Both are linear: one multiplication per axis, for any number of axes.
"""

from dataclasses import replace

import numpy as np


def hisrec(measurement, one_way):
    """Histogram recovery: each bin's count in proportion to the one-way counts of its values.

    The error stated is the bins' own, times the shares. A share below one record's counts as one record's there, so that no
    error is 0. Errors of the one-way counts, and how far attributes depend on each other within their bins, are not in it.

    Args:
        measurement: counts over binned attributes; unbinned ones stay as they are.
        one_way: per binned attribute, released counts of its values [shape=(size,)]; negative ones count as 0, and a bin
            without any is spread evenly.

    Returns:
        A measurement over the same attributes, none binned.
    """
    return _spread(measurement, one_way, "HisRec")


def unisam(measurement):
    """Uniform allocation: each bin's count, and its error, evenly over its values; otherwise as :func:`hisrec`."""
    even = {
        a: np.ones(bins.size)
        for a, bins in zip(measurement.attributes, measurement.bins, strict=True)
        if bins is not None
    }
    return _spread(measurement, even, "UniSam")


def _spread(measurement, one_way, how):
    """Axis by axis, the values of a bin take their shares of its count (the paper's U)."""
    values = measurement.counts
    sigma = np.broadcast_to(measurement.sigma, values.shape)
    for axis, (attribute, bins) in enumerate(
        zip(measurement.attributes, measurement.bins, strict=True)
    ):
        if bins is None:
            continue
        counts = np.maximum(one_way[attribute], 0.0)
        width, whole = np.bincount(bins)[bins], np.bincount(bins, weights=counts)[bins]
        share = np.divide(counts, whole, out=1 / width, where=whole > 0)
        along = [-1 if i == axis else 1 for i in range(values.ndim)]
        values = values.take(bins, axis=axis) * share.reshape(along)
        least = np.maximum(share, 1 / np.maximum(whole, width))
        sigma = sigma.take(bins, axis=axis) * least.reshape(along)
    source = f"{measurement.source}, {how}" if measurement.source else how
    return replace(
        measurement, bins=(None,) * values.ndim, counts=values, sigma=sigma, source=source
    )
