"""Similarity of two tables: NIST's k-marginal score, and the quality score of SDMetrics."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Codes
from ..distances import tvd
from ..plan.attribute import Attribute

__all__ = ["BEST", "k_marginal", "quality"]


# The k-marginal score of equal tables.
BEST = 1000.0
# Our names of the properties of SDMetrics.
PROPERTIES = {"Column Shapes": "column_shapes", "Column Pair Trends": "pair_trends"}
TABLE = "table"


def k_marginal(
    real: Codes, synthetic: Codes, sizes: Sequence[int], marginals: int = 300, seed: int = 0
) -> dict[str, float]:
    """NIST's k-marginal score of pairs and of triples: 1000 (1 - mean total variation distance).

    NIST's code (usnistgov/SDNist, ``metrics/kmarginal.py``) computes ``(2 - mean) * 500`` over
    every pair of attributes, with the mean of sum |p - q|. NIST's challenge of 2018 used random
    triples.

    Args:
        real, synthetic: codes [shape=(d, n) and (d, m), uint16].
        sizes: number of codes of each attribute [length d].
        marginals: number of random marginals of each k. All are used if there are no more.
        seed: seed of the choice.

    Returns:
        ``{"2": score, "3": score}``, as far as there are so many attributes. Equal tables have
        1000, disjoint ones 0.
    """
    ways = [k for k in (2, 3) if k <= len(sizes)]
    return {
        str(k): BEST * (1 - mean)
        for k, mean in tvd(real, synthetic, sizes, ways, marginals, seed).items()
    }


def quality(
    real: Codes, synthetic: Codes, attributes: Sequence[Attribute]
) -> dict[str, float] | None:
    """The quality score of SDMetrics (``sdmetrics.reports.QualityReport``) of codes.

    Ordered attributes are treated as numbers, others as categories. Column shapes are 1 minus the
    Kolmogorov-Smirnov statistic or the total variation distance of every column. Pair trends
    compare the correlation or the contingency table of every pair that is dependent in the real
    table (correlation above 0.5, association above 0.3).

    Args:
        real, synthetic: codes [shape=(d, n) and (d, m), uint16].
        attributes: domains of the codes.

    Returns:
        ``"score"``, the mean of ``"column_shapes"`` and ``"pair_trends"``, each 0 to 1.
        ``"pair_trends"`` is left out if no pair is dependent enough. None if SDMetrics is not
        installed.
    """
    try:
        import pandas as pd
        from sdmetrics.reports import QualityReport
    except ImportError:
        return None

    def frame(codes: Codes) -> Any:
        return pd.DataFrame(
            {
                str(i): _column(row, domain)
                for i, (row, domain) in enumerate(zip(codes, attributes, strict=True))
            }
        )

    columns = {
        str(i): {"sdtype": "numerical" if domain.ordered else "categorical"}
        for i, domain in enumerate(attributes)
    }
    report = QualityReport()
    with warnings.catch_warnings():
        # SDMetrics warns of p-values, which are not used here.
        warnings.simplefilter("ignore")
        report.generate(
            {TABLE: frame(real)},
            {TABLE: frame(synthetic)},
            {"tables": {TABLE: {"columns": columns}}},
            verbose=False,
        )
    scores = {"score": float(report.get_score())}
    for name, score in zip(
        *(report.get_properties()[part] for part in ("Property", "Score")), strict=True
    ):
        scores[PROPERTIES[name]] = float(score)
    return {name: score for name, score in scores.items() if math.isfinite(score)}


def _column(row: Codes, attribute: Attribute) -> npt.NDArray[Any]:
    """A column in the form for SDMetrics. Missing values of ordered attributes are NaN."""
    if attribute.ordered and attribute.missing:
        return np.where(row == attribute.size - 1, np.nan, row.astype(np.float64))
    return row.astype(np.int64)
