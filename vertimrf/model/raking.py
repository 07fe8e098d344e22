"""Give a table of two columns other margins (raking, or iterative proportional fitting)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Floats


def raked(table: Floats, margins: Sequence[Floats], rounds: int) -> Floats:
    """Scale rows and columns in turn until their sums are nearly as given.

    Source: Deming and Stephan (1940).

    Args:
        table: counts above 0 [shape=(rows, columns), float64].
        margins: sums of the rows [shape=(rows,), float64] and of the columns [shape=(columns,),
            float64].
        rounds: how often both are met.

    Returns:
        The scaled table [shape=(rows, columns), float64].
    """
    for _ in range(rounds):
        for axis, margin in enumerate(margins):
            sums = table.sum(axis=1 - axis, keepdims=True)
            table = table * (np.expand_dims(margin, 1 - axis) / sums)
    return table
