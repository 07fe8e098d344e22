"""Sketches of agreement: for how many records do parties hold the same value of a shared attribute?

Every holder publishes a count sketch with one row, in which a record's bucket and sign follow from
its id and its value together. The covariance of two holders' counters is the number of records
whose values agree, however many values the attribute has. A table of all pairs of values would have
the errors of all its cells.

The price is that of a count sketch with one group for each holder. A record whose values agree adds
one sign to one bucket of all tables. If some values differ, it adds independent signs to
independent buckets of those tables. This is the first case followed by a random permutation and a
random sign of these tables' buckets. The law of the noise does not change under them, so that they
are post-processing, and the exact price of the first case is a bound. See
:mod:`vertimrf.privacy.count_sketch`. What other records add depends on keyed words of other ids,
whatever their values.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence

import numpy as np

from ...arrays import Bytes, Pair, Words
from ...kernels.count_sketch import cross_products
from .codes import CORRELATIONS, CountedGroup, code_curve, code_moments
from .intersections import HIGHEST_SQUARE
from .parameters import CountSketches


def value_words(secret: bytes, values: int) -> Words:
    """Derive a secret word for each value; a digest of id and value is the id's xor this word.

    Args:
        secret: 32 bytes derived for this attribute from the parties' secret and the plan, the same
            at all of them.
        values: number of values.

    Returns:
        [shape=(values,), uint64]
    """
    return np.frombuffer(
        hashlib.shake_256(b"vertimrf values" + secret).digest(8 * values), "<u8"
    ).astype(np.uint64)


def agreeing(
    plan: CountSketches,
    tables: Sequence[Bytes],
    released: Sequence[float],
    total: float,
) -> dict[Pair, tuple[float, float]]:
    """Estimate for how many records two holders have the same value.

    Args:
        plan: public parameters.
        tables: per holder, the codes of its sketch under the words of :func:`value_words`
            [shape=(1, counters), uint8].
        released: per holder, its number of records from its released marginals.
        total: estimated number of records.

    Returns:
        For every two holders, by position: the number of records, and its standard error.
    """
    products = cross_products(np.concatenate(tables), plan.bits)
    # Correlations divide by the observed variances, which removes the part of the error that the
    # number of records explains.
    observed = products / np.sqrt(np.outer(np.diag(products), np.diag(products)))
    known, exact = np.array([total]), np.zeros(1)
    groups = [
        CountedGroup(table, np.array([records]), known, exact)
        for table, records in zip(tables, released, strict=True)
    ]
    gains = np.array([float(code_moments(plan, group)[0][0]) for group in groups])
    curve = code_curve(plan.bits)
    summed = total + plan.variance * plan.buckets
    out = {}
    for i, j in itertools.combinations(range(len(tables)), 2):
        both = gains[i] * gains[j]
        correlation = float(np.interp(abs(observed[i, j]) / both, curve.of_codes, CORRELATIONS))
        error = (1 - min(float(observed[i, j]) ** 2, HIGHEST_SQUARE)) / (
            both * curve.gain**2 * math.sqrt(plan.numbers)
        )
        out[i, j] = math.copysign(correlation, observed[i, j]) * summed, error * summed
    return out
