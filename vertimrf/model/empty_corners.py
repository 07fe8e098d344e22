"""Empty the corners of measured pairs that noise alone fills, where columns hold numbers.

A fit gives nearly empty cells some records, because no count is negative. Where large values of one
column never go with small ones of another, such records are far away from all others, and spoil
correlations. What is emptied follows from what was released, and costs no privacy.

A corner of a table consists of cells from which every rectangle to the corner has a sum of fewer than
some standard errors, as do the cells beside them. The largest corner is emptied whose sum is at most
ERRORS of its standard errors, if one of these is at most PART of the records that independent columns
have there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import Flags, Floats, Ints
from .junction_tree import JunctionTree
from .measurement import BinMap, Measurement

# Chosen on the demo's delays, not on the four data sets of the paper.
SHOWN, ERRORS, PART = np.arange(4.0, 0.5, -0.5), 1.5, 0.2


def empty_corners(
    measurements: Sequence[Measurement],
    numbers: Sequence[int],
    tree: JunctionTree,
    classes: Mapping[int, BinMap],
) -> dict[Ints, Flags]:
    """Find the corners of pairs that noise alone fills.

    Args:
        measurements: noisy marginals. Pairs count that they hold value by value.
        numbers: how many codes of each attribute are numbers in order, the first ones.
        tree: pairs that none of its cliques holds are left alone.
        classes: domain compression. Attributes that have it are left alone.

    Returns:
        The cells of each pair with such corners [one axis per attribute, bool].
    """
    sums: dict[Ints, tuple[Floats, float]] = {}
    for m in measurements:
        if m.contrasts or m.trend:
            continue
        known = [
            k
            for k, a in enumerate(m.attributes)
            if numbers[a] and a not in classes and m.bins[k] is None
        ]
        for axes in itertools.combinations(known, 2):
            pair = tuple(m.attributes[k] for k in axes)
            if tree.covering(pair) >= 0:
                others = tuple(k for k in range(m.counts.ndim) if k not in axes)
                squares = np.broadcast_to(np.square(m.sigma), m.counts.shape)
                precision = 1 / float(squares.sum(axis=others).mean())
                counts = precision * m.counts.sum(axis=others)
                before, more = sums.get(pair, (np.zeros(counts.shape), 0.0))
                sums[pair] = before + counts, more + precision
    out = {}
    for pair, (counts, precision) in sums.items():
        cells = tuple(slice(numbers[a]) for a in pair)
        empty = np.zeros(counts.shape, np.bool_)
        empty[cells] = _corners(counts[cells] / precision, precision**-0.5)
        if empty.any():
            out[pair] = empty
    return out


def _corners(counts: Floats, error: float) -> Flags:
    """Which cells are in corners that are emptied [shape=(u, v), bool]; see the module."""
    rows, columns = (np.maximum(counts.sum(axis=axis), 0.0) for axis in (1, 0))
    independent = np.outer(rows, columns) / max(rows.sum(), 1.0)
    errors = error * np.sqrt(np.outer(*(np.arange(1, size + 1) for size in counts.shape)))
    out = np.zeros(counts.shape, np.bool_)
    for steps in itertools.product((1, -1), repeat=2):
        turned = tuple(slice(None, None, step) for step in steps)
        shown = counts[turned].cumsum(axis=0).cumsum(axis=1) / errors
        for axis in (0, 1):
            shown = np.maximum.accumulate(shown, axis=axis)
        for most in SHOWN:
            corner = np.pad(shown < most, (0, 1))[1:, 1:]
            spread = error * corner.sum() ** 0.5
            if (
                counts[turned][corner].sum() <= ERRORS * spread
                and spread <= PART * independent[turned][corner].sum()
            ):
                out[turned] |= corner
                break
    return out
