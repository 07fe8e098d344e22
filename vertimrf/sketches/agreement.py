"""For how many records several parties hold the same value of one attribute, from one small table of each.

A count sketch in which a record counts not by its id but by id and value: each party publishes its sum over all of its records,
a group of a single value. Two parties' numbers then have as covariance the records whose values agree, however many values
there are, where a table of values by values would have the error of all its cells.

What it costs is what a count sketch of as many groups as there are holders does: a record whose values agree adds one sign to one
bucket of all the tables. Where they differ, it adds another sign to another bucket of some of them, each drawn independently.
That is the former followed by a random permutation and a random sign of these tables' buckets, which leave the law of their noise
as it is: post-processing, so the exact price of the former bounds it. (See :mod:`vertimrf.privacy.count_sketch`; what other
records add depends on keyed words of other ids, whatever their values.)
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..kernels.count_sketch import cross_products
from .count_intersections import (
    CORRELATIONS,
    HIGHEST_SQUARE,
    CountedGroup,
    code_curve,
    code_moments,
)
from .parameters import CountSketchPlan

__all__ = ["agreeing", "value_words"]


def value_words(secret: bytes, values: int) -> npt.NDArray[np.uint64]:
    """A secret word for each value: id and value together make a digest of their own, that of the id with the word mixed in.

    Args:
        secret: 32 bytes derived for this attribute from the parties' secret and the plan, the same at all of them.
        values: number of values.

    Returns:
        [shape=(values,), uint64]
    """
    return np.frombuffer(
        hashlib.shake_256(b"vertimrf values" + secret).digest(8 * values), "<u8"
    ).astype(np.uint64)


def agreeing(
    plan: CountSketchPlan,
    tables: Sequence[npt.NDArray[np.uint8]],
    released: Sequence[float],
    total: float,
) -> dict[tuple[int, int], tuple[float, float]]:
    """Records for which two holders have the same value.

    Args:
        plan: public parameters.
        tables: per holder, the sketch of its records under the words of :func:`value_words`, all in one group of one value
            [shape=(1, numbers)].
        released: per holder, records as it released them.
        total: record count.

    Returns:
        For every two holders, by position: the records, and their standard error.
    """
    products = cross_products(np.concatenate(tables), plan.bits)
    # By the sums' own variances: what their number of records explains of the codes' products is left out of the error.
    seen = products / np.sqrt(np.outer(np.diag(products), np.diag(products)))
    known, exact = np.array([total]), np.zeros(1)
    groups = [
        CountedGroup(table, np.array([told]), known, exact)
        for table, told in zip(tables, released, strict=True)
    ]
    gains = np.array([float(code_moments(plan, group)[0][0]) for group in groups])
    curve = code_curve(plan.bits)
    summed = total + plan.variance * plan.buckets
    out = {}
    for i, j in itertools.combinations(range(len(tables)), 2):
        both = gains[i] * gains[j]
        correlation = float(np.interp(abs(seen[i, j]) / both, curve.of_codes, CORRELATIONS))
        error = (1 - min(float(seen[i, j]) ** 2, HIGHEST_SQUARE)) / (
            both * curve.gain**2 * math.sqrt(plan.numbers)
        )
        out[i, j] = math.copysign(correlation, seen[i, j]) * summed, error * summed
    return out
