"""Scores of two tables' likeness that others defined: NIST's k-marginal score, and the quality score of SDMetrics."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..distances import tvd
from ..plan.attribute import Attribute

__all__ = ["BEST", "k_marginal", "quality"]

Codes = npt.NDArray[np.uint16]

# The k-marginal score of equal tables.
BEST = 1000.0
# SDMetrics' name of a property, and ours.
PROPERTIES = {"Column Shapes": "column_shapes", "Column Pair Trends": "pair_trends"}
TABLE = "table"


def k_marginal(
    real: Codes, synthetic: Codes, sizes: Sequence[int], marginals: int = 300, seed: int = 0
) -> dict[str, float]:
    """NIST's k-marginal score, of pairs and of triples of attributes: the mean of 1000 (2 - sum |p - q|) / 2 over them.

    As its code defines it (usnistgov/SDNist, ``metrics/kmarginal.py``: ``(2 - mean) * 500``), of every pair of attributes;
    NIST's challenge of 2018 took random triples. It is 1000 (1 - the mean total variation distance).

    Args:
        real, synthetic: codes [shape=(d, n) and (d, m), uint16].
        sizes: number of codes of each attribute [length d].
        marginals: random ones of each k, or all where there are no more.
        seed: of which.

    Returns:
        ``{"2": score, "3": score}``, as far as there are so many attributes; 1000 is equal, 0 disjoint.
    """
    ways = [k for k in (2, 3) if k <= len(sizes)]
    return {str(k): BEST * (1 - mean) for k, mean in tvd(real, synthetic, sizes, ways, marginals, seed).items()}


def quality(real: Codes, synthetic: Codes, attributes: Sequence[Attribute]) -> dict[str, float] | None:
    """The quality score of SDMetrics (``sdmetrics.reports.QualityReport``) of codes.

    Ordered attributes are numbers to it, others categories. Column shapes are one less the Kolmogorov-Smirnov statistic or the
    total variation distance of every column; pair trends compare the correlation or the contingency table of every pair that
    is dependent in the real table (a correlation beyond 0.5, an association beyond 0.3).

    Args:
        real, synthetic: codes [shape=(d, n) and (d, m), uint16].
        attributes: whose codes they are.

    Returns:
        ``"score"``, the mean of ``"column_shapes"`` and ``"pair_trends"``, each 0 to 1; without the latter where no pair is
        dependent enough to count. None where SDMetrics is not installed.
    """
    try:
        import pandas as pd
        from sdmetrics.reports import QualityReport
    except ImportError:
        return None

    def frame(codes: Codes) -> Any:
        return pd.DataFrame({str(i): _column(row, own) for i, (row, own) in enumerate(zip(codes, attributes, strict=True))})

    columns = {str(i): {"sdtype": "numerical" if own.ordered else "categorical"} for i, own in enumerate(attributes)}
    report = QualityReport()
    with warnings.catch_warnings():
        # Statistics are wanted, not their p-values, of which the tests below warn.
        warnings.simplefilter("ignore")
        report.generate(
            {TABLE: frame(real)}, {TABLE: frame(synthetic)}, {"tables": {TABLE: {"columns": columns}}}, verbose=False
        )
    found = {"score": float(report.get_score())}
    for name, score in zip(*(report.get_properties()[part] for part in ("Property", "Score")), strict=True):
        found[PROPERTIES[name]] = float(score)
    return {name: score for name, score in found.items() if math.isfinite(score)}


def _column(row: npt.NDArray[np.uint16], attribute: Attribute) -> npt.NDArray[Any]:
    """A column as SDMetrics takes it: what is missing of an order is no number."""
    if attribute.ordered and attribute.missing:
        return np.where(row == attribute.size - 1, np.nan, row.astype(np.float64))
    return row.astype(np.int64)
