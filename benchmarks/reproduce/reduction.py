"""Dimension reduction undone (VertiMRF, section 6.1): from the counts of bins to counts of values, by name.

HisRec spreads each bin's count over its values in proportion to released one-way counts, Pr[A, B] = sum over the bins of
Pr[X, Y] Pr[A | X] Pr[B | Y]; UniSam spreads it evenly. Both are linear: one multiplication per axis, for any number of axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vertimrf.errors import ModelError
from vertimrf.model.measurement import Measurement

__all__ = ["hisrec", "unisam"]

Floats = npt.NDArray[np.float64]


def hisrec(
    measurement: Measurement,
    one_way: Mapping[int, Floats],
    one_way_sigma: float | Mapping[int, float] = 0.0,
) -> Measurement:
    """Histogram recovery: each bin's count in proportion to the one-way counts of its values.

    The error stated is the bins' own, times the shares, and that of the shares, to first order: each axis turns a variance
    V of count T into V s^2 + T^2 sd(s)^2. How far attributes depend on each other within their bins is not in it: that is
    what recovery assumes away. A share below one record's counts as one record's there, so that no error is 0.

    Args:
        measurement: counts over binned attributes; unbinned ones stay as they are.
        one_way: per binned attribute, released counts of its values [shape=(size,)]; negative ones count as 0, and a bin
            without any is spread evenly.
        one_way_sigma: standard deviation of the one-way counts, of all attributes or per attribute; 0 = known.

    Returns:
        A measurement over the same attributes, none binned.

    Raises:
        ModelError: a binned attribute without one-way counts, with a wrong number of them, or with one that is not
            finite; a bin without values.
    """
    shares: list[_Shares | None] = []
    for attribute, bins in zip(measurement.attributes, measurement.bins, strict=True):
        if bins is None:
            shares.append(None)
            continue
        if attribute not in one_way:
            raise ModelError(
                f"Histogram recovery needs the one-way counts of attribute {attribute}; add them."
            )
        counts = np.asarray(one_way[attribute], np.float64)
        if counts.shape != bins.shape or not np.isfinite(counts).all():
            raise ModelError(
                f"The one-way counts of attribute {attribute} must be {bins.size} finite numbers, one per value of its bin map."
            )
        sigma = (
            one_way_sigma
            if isinstance(one_way_sigma, float | int)
            else one_way_sigma.get(attribute, 0.0)
        )
        shares.append(_value_distribution(np.maximum(counts, 0.0), bins, float(sigma)))
    return _expand(measurement, shares, "HisRec")


def unisam(measurement: Measurement) -> Measurement:
    """Uniform allocation: each bin's count evenly over its values.

    The error stated is the bins' own, divided by the number of values; how far values are from even is not in it.

    Args:
        measurement: counts over binned attributes; unbinned ones stay as they are.

    Returns:
        A measurement over the same attributes, none binned.

    Raises:
        ModelError: a bin without values.
    """
    shares: list[_Shares | None] = []
    for bins in measurement.bins:
        if bins is None:
            shares.append(None)
        else:
            even = 1 / np.bincount(bins)[bins]
            shares.append(_Shares(even, even, np.zeros_like(even)))
    return _expand(measurement, shares, "UniSam")


class _Shares(NamedTuple):
    """What each value takes of its bin [all shape=(size,)]: its share, what of the bin's error, and its own error."""

    of_count: Floats
    of_error: Floats
    error: Floats


def _value_distribution(counts: Floats, bins: npt.NDArray[np.int64], sigma: float) -> _Shares:
    """Each value's share of its bin's count (the paper's U), from non-negative counts of standard deviation ``sigma``."""
    width = np.bincount(bins)[bins]
    whole = np.bincount(bins, weights=counts)[bins]
    share = np.divide(counts, whole, out=1 / width, where=whole > 0)
    # d share = ((1 - share) d count - share d others) / whole; never more than a share between 0 and 1 can err.
    error = sigma * np.sqrt((1 - share) ** 2 + (width - 1) * share**2)
    error = np.minimum(
        np.divide(error, whole, out=np.full(whole.shape, 0.5 * (sigma > 0)), where=whole > 0), 0.5
    )
    return _Shares(share, np.maximum(share, 1 / np.maximum(whole, width)), error)


def _expand(measurement: Measurement, shares: Sequence[_Shares | None], how: str) -> Measurement:
    """Axis by axis, the values of a bin take their shares of its count."""
    values = measurement.counts
    variance = np.broadcast_to(np.square(measurement.sigma), values.shape)
    for axis, (bins, share) in enumerate(zip(measurement.bins, shares, strict=True)):
        if bins is None or share is None:
            continue
        if np.bincount(bins, minlength=values.shape[axis]).min() == 0:
            raise ModelError(
                f"Axis {axis} of the measurement of attributes {measurement.attributes} has a bin without values: its count "
                "has nowhere to go; use a bin map that fills every bin."
            )
        along = [1] * values.ndim
        along[axis] = -1
        of_count, of_error, error = (part.reshape(along) for part in share)
        values = values.take(bins, axis=axis)
        variance = variance.take(bins, axis=axis) * of_error**2 + (values * error) ** 2
        values = values * of_count
    source = f"{measurement.source}, {how}" if measurement.source else how
    return replace(
        measurement,
        bins=(None,) * values.ndim,
        counts=values,
        sigma=np.sqrt(variance),
        source=source,
    )
