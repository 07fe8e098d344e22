"""Phantom maxima: the highest level of N independent geometric draws per sketch, by inversion.

A draw uses 8 bits of entropy, and 56 more if these do not determine the level (a few in a hundred).
The result equals that of comparing a uniform 64-bit word with thresholds rounded to 2^-64.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from ..arrays import Bytes, Words
from .jit import kernel

UNSETTLED = np.uint8(0)


def phantom_thresholds(phantoms: int, floor: int, ceiling: int) -> Words:
    """2^64 P(max of ``phantoms`` draws <= l), rounded, for l from floor to ceiling - 1
    [shape=(levels - 1,), uint64].
    """
    with localcontext() as context:
        context.prec = 60
        exact = [(1 - Decimal(2) ** -level) ** phantoms * 2**64 for level in range(floor, ceiling)]
        return np.array([min(int(x.to_integral_value()), 2**64 - 1) for x in exact], np.uint64)


def phantom_table(thresholds: Words, floor: int) -> Bytes:
    """Level for each first byte of a 64-bit word, or UNSETTLED if a threshold begins with it.

    Returns:
        Levels [shape=(256,), uint8].
    """
    first = np.arange(256, dtype=np.uint64) << np.uint64(56)
    low = np.searchsorted(thresholds, first, side="right")
    high = np.searchsorted(thresholds, first | np.uint64((1 << 56) - 1), side="right")
    return np.where(low == high, floor + low, UNSETTLED).astype(np.uint8)


@kernel
def raise_by_phantoms(levels, words, table, unsettled):  # type: ignore[no-untyped-def]
    """Raise levels to their phantoms where the first byte determines them.

    Args:
        levels: levels, all at least 1, updated [shape=(n,), uint8].
        words: uniform words [shape=(n,), uint8].
        table: from :func:`phantom_table`.
        unsettled: indices left to :func:`raise_unsettled`, written [shape=(n,), int64].

    Returns:
        Number of these indices.
    """
    count = 0
    for i in range(levels.size):
        level = table[words[i]]
        levels[i] = max(levels[i], level)
        unsettled[count] = i
        count += level == UNSETTLED
    return count


@kernel
def raise_unsettled(levels, words, unsettled, more, thresholds, floor):  # type: ignore[no-untyped-def]
    """Raise the levels left by :func:`raise_by_phantoms`, with one more uniform word each.

    Args:
        levels, words: as there.
        unsettled: their indices [shape=(m,), int64].
        more: uniform words [shape=(m,), uint64].
        thresholds: from :func:`phantom_thresholds`.
        floor: level below the first threshold.
    """
    for j in range(unsettled.size):
        i = unsettled[j]
        word = (np.uint64(words[i]) << np.uint64(56)) | (more[j] >> np.uint64(8))
        level = floor
        for threshold in thresholds:
            level += word >= threshold
        levels[i] = max(np.int64(levels[i]), level)
