"""Empty the cells of measured pairs that noise alone fills, where one column nearly decides another.

A fit gives nearly empty cells some records, because no count is negative. Where independent columns
would have many records in them, and the measurements show none, they get none. This follows from
what was released, and costs no privacy.

1. A pair's counts are estimated by least squares, from all marginals that hold it and the one-way
   margins of others. Rows, and columns, without a count of more than FAR standard errors are added up.
2. A cell is nearly empty if its count is less than NEAR standard errors, and if its row and its
   column have a count of more than FAR.
3. The records in nearly empty cells are estimated. The sum of their counts is too small, because they
   were chosen by their noise, by the variance times the density of counts at NEAR.
4. The cells are emptied if this, and at least 0, is at most ERRORS of its standard errors and, with
   one more, at most PART of the records that independent columns have there.

So a cell of k standard errors is emptied in a share Phi(NEAR - k) of the runs, or fewer. Where rows
or columns were added up, errors are those of the sums.

Each cell may hold too few records to be seen where all cells of a rare value hold many: what is emptied
leaves room for the one-way counts (:func:`_with_room`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Flags, Floats, Ints
from .domain_compression import compress
from .empty_corners import empty_corners
from .junction_tree import JunctionTree
from .markov_random_field import Factor
from .measurement import BinMap, Measurement, bin_table, one_way_margins
from .structural_zeros import allowing

# Chosen on the education of CPS, of 0 to 18 years in 15,992 records. At epsilon 1 adult has two emptied pairs in most runs: education twice, and
# relationship with sex.
NEAR, FAR, ERRORS, PART = 2.5, 3.0, 2.5, 0.06
# Least squares of one-way counts: standard errors that a value may lack, rounds, and what is above zero.
ROOM, ROUNDS, SMALL = 2.0, 100, 1e-12

# Measurements that hold a pair in the same bins, and its axes in each.
Group = Sequence[tuple[Measurement, Ints]]


def noise_alone(
    measurements: Sequence[Measurement],
    numbers: Sequence[int],
    tree: JunctionTree,
    classes: Mapping[int, BinMap],
) -> list[Factor]:
    """Rule out the cells (:func:`empty_cells`) and the corners of pairs that noise alone fills.

    Args:
        measurements, numbers, tree, classes: as for :func:`~.empty_corners.empty_corners`.

    Returns:
        A factor for each pair with such cells or corners.
    """
    compressed = [compress(m, classes) for m in measurements]
    alone = {m.attributes[0]: m for m in one_way_margins(compressed)}
    emptied = empty_cells(compressed, alone, tree)
    for pair, corners in empty_corners(measurements, numbers, tree, classes).items():
        emptied[pair] = emptied.get(pair, False) | corners
    out = []
    for pair, empty in emptied.items():
        empty = _with_room(empty, [alone[a] for a in pair])
        if empty.any():
            out.append(allowing(pair, ~empty))
    return out


def empty_cells(
    measurements: Sequence[Measurement], alone: Mapping[int, Measurement], tree: JunctionTree
) -> dict[Ints, Flags]:
    """Find the cells of pairs that noise alone fills.

    Args:
        measurements: noisy marginals, of classes.
        alone: their :func:`~.measurement.one_way_margins`, by attribute.
        tree: of classes. Pairs that none of its cliques holds are left alone.

    Returns:
        The cells of each pair with such cells [one axis per attribute, bool].
    """
    groups: dict[Any, list[tuple[Measurement, Ints]]] = {}
    for m in measurements:
        # Contrasts and trends determine no single cell.
        if not (m.contrasts or m.trend):
            for axes in itertools.combinations(range(len(m.attributes)), 2):
                maps = tuple(None if (b := m.bins[k]) is None else b.tobytes() for k in axes)
                pair = m.attributes[axes[0]], m.attributes[axes[1]]
                groups.setdefault((pair, maps), []).append((m, axes))
    out: dict[Ints, Flags] = {}
    for (pair, _), group in groups.items():
        if tree.covering(pair) >= 0:
            empty = _emptied(group, [alone[a] for a in pair])
            for axis, k in enumerate(group[0][1]):
                if (bins := group[0][0].bins[k]) is not None:
                    empty = empty.take(bins, axis)
            if empty.any():
                out[pair] = out.get(pair, False) | empty
    return out


def _with_room(empty: Flags, alone: Sequence[Measurement]) -> Flags:
    """Keep all cells of values whose records the others leave no room for.

    Least squares put records into the cells that are not emptied, as the one-way counts ask. A value
    that lacks half of its records then, or more than ROOM standard errors, keeps its cells.

    Args:
        empty: cells that would be emptied [shape=(u, v), bool].
        alone: :func:`~.measurement.one_way_margins` of both attributes.

    Returns:
        Cells that are emptied [shape=(u, v), bool].
    """
    if any(m.bins[0] is not None for m in alone):
        return empty
    counts = [np.expand_dims(np.maximum(m.counts, 0.0), 1 - k) for k, m in enumerate(alone)]
    errors = [np.expand_dims(m.errors, 1 - k) for k, m in enumerate(alone)]
    wanted = sum(count / error**2 for count, error in zip(counts, errors, strict=True))
    out = empty.copy()
    while True:
        records = np.where(out, 0.0, counts[0] * counts[1])
        for _ in range(ROUNDS):
            sums = [records.sum(axis=1 - k, keepdims=True) for k in (0, 1)]
            got = sum(one / error**2 for one, error in zip(sums, errors, strict=True))
            records *= wanted / np.maximum(got, SMALL)
        for k, (count, error) in enumerate(zip(counts, errors, strict=True)):
            lost = count - records.sum(axis=1 - k, keepdims=True)
            out &= lost <= np.minimum(count / 2, ROOM * error)
        if (out == empty).all():
            return out
        empty = out.copy()


def _emptied(group: Group, alone: Sequence[Measurement]) -> Flags:
    """Which cells of a pair are emptied [shape=(u, v), bool]; arguments as :func:`estimated`."""
    counts, precisions = estimated(group, alone)
    far = counts > FAR * standard_errors([np.ones(size) for size in counts.shape], precisions)
    apart = [far.any(axis=1 - axis) for axis in (0, 1)]
    maps = [np.where(rows, np.cumsum(rows) - 1, rows.sum()) for rows in apart]
    merged = [np.bincount(map).astype(np.float64) for map in maps]
    counts, errors = (
        bin_table(counts, maps, [*map(len, merged)]),
        standard_errors(merged, precisions),
    )
    far = counts > FAR * errors
    inside = far.any(axis=1, keepdims=True) & far.any(axis=0, keepdims=True)
    empty = inside & (counts < NEAR * errors)
    if not empty.any():
        return np.zeros(tuple(map(len, maps)), np.bool_)
    near = inside & (np.abs(counts - NEAR * errors) < errors / 2)
    records = max(counts[empty].sum() + errors[near].sum(), 0.0)
    total = max(counts.sum(), 1.0)
    independent = np.outer(counts.sum(axis=1), counts.sum(axis=0))[empty].sum() / total
    out: Flags = empty[maps[0][:, None], maps[1]]
    parts = _parts(out.astype(np.float64))
    squares = [np.square(part).sum() * (out.size / part.size) for part in parts]
    error = math.sqrt(float((squares / precisions).sum()))
    return out & bool(records <= min(ERRORS * error, PART * independent - error))


def estimated(group: Group, alone: Sequence[Measurement]) -> tuple[Floats, Floats]:
    """The least squares estimate of a pair's counts.

    The noise of a table's mean, of its rows, of its columns and of the rest is independent.

    Args:
        group: the measurements of the pair, each of one standard deviation.
        alone: :func:`~.measurement.one_way_margins` of both attributes, from these and others.

    Returns:
        Counts [shape=(u, v), float64], and the precision of each of the four parts
        [shape=(4,), float64].
    """
    tables = [_margin(m, axes) for m, axes in group]
    weighed = np.sum([counts * precision for counts, precision in tables], axis=0)
    precisions = np.full(4, sum(precision for _, precision in tables))
    for side in (0, 1):
        counts, precision = _beside(group, side, alone[side])
        weighed += counts * precision if side else (counts * precision)[:, None]
        precisions[[0, 1 + side]] += precision * weighed.shape[1 - side]
    parts = zip(_parts(weighed), precisions, strict=True)
    out: Floats = sum(part / precision for part, precision in parts)
    return out, precisions


def standard_errors(merged: Sequence[Floats], precisions: Floats) -> Floats:
    """Standard errors of sums of cells of a table, each of so many rows and columns.

    Args:
        merged: numbers of rows [shape=(u,), float64], and of columns [shape=(v,), float64].
        precisions: of the table's parts, from :func:`estimated`.

    Returns:
        An error for each [shape=(u, v), float64].
    """
    (rows, columns), (u, v) = (merged[0][:, None], merged[1]), (each.sum() for each in merged)
    squares = rows * columns, columns * (u - rows), rows * (v - columns), (u - rows) * (v - columns)
    shares = sum(square / p for square, p in zip(squares, precisions, strict=True))
    errors: Floats = np.sqrt(rows * columns / (u * v) * shares)
    return errors


def _parts(table: Floats) -> list[Floats]:
    """A table's mean, and what its rows, its columns and its cells have beside [each broadcasts to its
    shape].
    """
    u, v = table.shape
    mean = table.sum(keepdims=True) / table.size
    rows = table.sum(axis=1, keepdims=True) / v - mean
    columns = table.sum(axis=0, keepdims=True) / u - mean
    return [mean, rows, columns, table - mean - rows - columns]


def _margin(m: Measurement, axes: Ints) -> tuple[Floats, float]:
    """Counts along some axes, and the precision of each."""
    if len(axes) == 1:
        counts = m.sums[axes[0]]
    else:
        counts = m.counts.sum(axis=tuple({*range(m.counts.ndim)}.difference(axes)))
    return counts, counts.size / m.counts.size / m.variance


def _beside(group: Group, side: int, alone: Measurement) -> tuple[Floats, float]:
    """Counts of an attribute in the bins of a pair from other measurements than the pair's, and the
    precision of each.
    """
    m, axes = group[0]
    bins, size = m.bins[axes[side]], m.counts.shape[axes[side]]
    counts, every = _margin(alone, (0,))
    counts, precision = counts * every, every
    for m, axes in group:
        its, its_precision = _margin(m, axes[side : side + 1])
        if its.shape == counts.shape:
            counts, precision = counts - its * its_precision, precision - its_precision
    # What is left without other measurements is rounding.
    if alone.bins[0] is not None or precision < 1e-6 * every:
        return np.zeros(size), 0.0
    counts = bin_table(counts / precision, [bins], [size])
    return counts, precision * size / len(alone.counts)
