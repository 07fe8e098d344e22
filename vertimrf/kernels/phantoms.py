"""Phantom maxima: the highest level of N independent geometric draws, one per sketch, by inverting their distribution function.

A draw takes 16 bits of entropy; only where those do not settle the level (a few in ten thousand) it takes 48 more. The result is that
of comparing a uniform 64-bit word with thresholds rounded to 2^-64.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

from .jit import kernel

__all__ = ["phantom_table", "phantom_thresholds", "raise_by_phantoms", "raise_unsettled"]

UNSETTLED = np.uint8(255)


def phantom_thresholds(phantoms: int, floor: int, ceiling: int) -> npt.NDArray[np.uint64]:
    """2^64 P(max of ``phantoms`` draws <= l) for l = floor .. ceiling - 1, rounded [shape=(ceiling - floor,), uint64]."""
    with localcontext() as context:
        context.prec = 60
        exact = [(1 - Decimal(2) ** -level) ** phantoms * 2**64 for level in range(floor, ceiling)]
        return np.array([min(int(x.to_integral_value()), 2**64 - 1) for x in exact], np.uint64)


def phantom_table(thresholds: npt.NDArray[np.uint64], floor: int) -> npt.NDArray[np.uint8]:
    """Level for each value of a word's first 16 bits, or UNSETTLED where a threshold falls among the words that begin so.

    Returns:
        [shape=(65536,), uint8]
    """
    first = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    low = np.searchsorted(thresholds, first, side="right")
    high = np.searchsorted(thresholds, first | np.uint64((1 << 48) - 1), side="right")
    return np.where(low == high, floor + low, UNSETTLED).astype(np.uint8)


@kernel
def raise_by_phantoms(levels, words, table):  # type: ignore[no-untyped-def]
    """Raise levels to their phantoms where 16 bits settle it.

    Args:
        levels: [shape=(n,), uint8], updated.
        words: uniform [shape=(n,), uint16].
        table: from :func:`phantom_table`.

    Returns:
        How many are unsettled; :func:`raise_unsettled` takes those.
    """
    unsettled = 0
    for i in range(levels.size):
        level = table[words[i]]
        if level == UNSETTLED:
            unsettled += 1
        elif levels[i] < level:
            levels[i] = level
    return unsettled


@kernel
def raise_unsettled(levels, words, table, more, thresholds, floor):  # type: ignore[no-untyped-def]
    """Raise the levels that :func:`raise_by_phantoms` left, with one more uniform word each.

    Args:
        levels, words, table: as there.
        more: uniform [shape=(unsettled,), uint64].
        thresholds: from :func:`phantom_thresholds`.
        floor: level below the first threshold.
    """
    taken = 0
    for i in range(levels.size):
        if table[words[i]] == UNSETTLED:
            word = (np.uint64(words[i]) << np.uint64(48)) | (more[taken] >> np.uint64(16))
            taken += 1
            level = floor
            for threshold in thresholds:
                level += word >= threshold
            if levels[i] < level:
                levels[i] = level
