"""Contingency tables: records counted by the cells of marginals.

Axes: d = attributes, n = records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["all_pairs", "contingency"]


def contingency(codes: npt.NDArray[np.uint16], sizes: Sequence[int], attributes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Count the records in every cell of one marginal.

    Args:
        codes: the table [shape=(d, n), uint16].
        sizes: domain size of each attribute.
        attributes: the marginal's attributes, in the order of its axes.

    Returns:
        Counts [one axis per attribute, int64].
    """
    shape = tuple(sizes[i] for i in attributes)
    flat = np.zeros(codes.shape[1], np.int64)
    for i in attributes:
        flat *= sizes[i]
        flat += codes[i]
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.int64).reshape(shape)


def all_pairs(
    codes: npt.NDArray[np.uint16], sizes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> list[npt.NDArray[np.int64]]:
    """Count the records in every cell of many two-way marginals (tables in the order of ``pairs``)."""
    return [contingency(codes, sizes, pair) for pair in pairs]
