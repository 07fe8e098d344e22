"""Means, deviations, quantiles and correlations of numbers in real and synthetic tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from .arrays import Codes, Floats
from .columns.column import Attribute

Numbers = Mapping[str, Floats]

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def original_numbers(
    attributes: tuple[Attribute, ...], table: pa.Table, codes: Codes, where: str
) -> dict[str, Floats]:
    """The numbers in columns of a table, by name. Missing ones are NaN; dates and times are days
    and seconds.

    Args:
        attributes: domains of the columns. Columns of text and of true/false are left out.
        table: the original values.
        codes: the same columns, encoded [shape=(d, n)].
        where: name of the table in errors.
    """
    out = {}
    for attribute, row in zip(attributes, codes, strict=True):
        column = f"{where}: column {attribute.name!r}"
        numbers = attribute.original(table[attribute.name], row, column)
        if numbers is not None:
            out[attribute.name] = numbers
    return out


def compare_numbers(real: Numbers, synthetic: Numbers) -> dict[str, Any]:
    """Mean, standard deviation and quantiles of every column, real and synthetic. Columns without
    numbers are left out.
    """
    out = {}
    for name, values in real.items():
        one, other = values[~np.isnan(values)], synthetic[name][~np.isnan(synthetic[name])]
        if len(one) and len(other):
            out[name] = {"real": _moments(one), "synthetic": _moments(other)}
    return out


def _moments(values: Floats) -> dict[str, Any]:
    quantiles = dict(zip(map(str, QUANTILES), np.quantile(values, QUANTILES).tolist(), strict=True))
    return {"mean": float(values.mean()), "deviation": float(values.std()), "quantiles": quantiles}


def compare_correlations(real: Numbers, synthetic: Numbers) -> list[dict[str, Any]]:
    """Pearson's correlation of every two columns, over records that have both. The pairs that
    differ most come first.
    """
    pairs = []
    for one, other in itertools.combinations(real, 2):
        r, s = _correlation(real[one], real[other]), _correlation(synthetic[one], synthetic[other])
        if r is not None and s is not None:
            pairs.append({"columns": [one, other], "real": r, "synthetic": s})
    return sorted(pairs, key=lambda pair: -abs(pair["real"] - pair["synthetic"]))


def _correlation(one: Floats, other: Floats) -> float | None:
    both = ~(np.isnan(one) | np.isnan(other))
    a, b = one[both], other[both]
    if len(a) < 2 or not (np.ptp(a) and np.ptp(b)):
        return None
    return float(np.corrcoef(a, b)[0, 1])
