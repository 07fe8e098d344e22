"""Look up and count rows in many marginals at once.

Marginals that share attributes form groups. The cell of a row in a group's joint table is computed
once, so that each further pass over the rows takes one look-up a group instead of several a
marginal.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Sequence

import numpy as np

from ..arrays import Codes, Floats, Integers, Ints, Pair
from ..kernels import rows as kernels
from ..kernels.contingency import joints
from ..kernels.jit import for_each, in_slices
from .measurement import BinMap, Measurement, by_measurement
from .pair_marginals import class_bins, merge_maps
from .proximal_step import cell_terms

# Number of 16-bit codes. A group grows up to MAX_GROUP cells, which the caches keep.
CODES, MAX_GROUP = 1 << 16, 1 << 13
# Rows that :meth:`RowTables.marginals` counts at once.
AT_ONCE = 1 << 15


def lookups(wanted: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[Integers, Integers]:
    """The kernels' tables and terms of marginals (:func:`vertimrf.kernels.rows.add_logs`).

    Args:
        wanted: per marginal, the columns of its attributes and its shape.

    Returns:
        Tables [shape=(marginals, 3), int64] and terms [shape=(columns of all, 2), int64].
    """
    tables: list[tuple[int, int, int]] = []
    terms: list[Pair] = []
    offset = 0
    for columns, shape in wanted:
        tables.append((len(terms), len(terms) + len(columns), offset))
        terms += [(column, math.prod(shape[i + 1 :])) for i, column in enumerate(columns)]
        offset += math.prod(shape)
    return np.array(tables, np.int64).reshape(-1, 3), np.array(terms, np.int64).reshape(-1, 2)


class RowTables:
    """Some marginals as tables in which rows are looked up and counted.

    Args:
        marginals: their attributes, bins and shapes.
    """

    def __init__(self, marginals: Sequence[Measurement]) -> None:
        self._marginals = marginals
        self._classes, self._sizes = _merged(marginals)
        bins = [
            [class_bins(self._classes[a], b) for a, b in zip(m.attributes, m.bins, strict=True)]
            for m in marginals
        ]
        groups, homes = _grouped([m.attributes for m in marginals], self._sizes)
        ends = np.cumsum([0, *(self._count(group) for group in groups)])
        # A joint table of more cells than codes has is looked up by several columns.
        columns = [
            [group] if self._count(group) <= CODES else [(a,) for a in group] for group in groups
        ]
        self._columns = list(itertools.chain.from_iterable(columns))
        places = iter(range(len(self._columns)))
        self._tables, self._terms = lookups(
            ([next(places) for _ in parts], list(map(self._count, parts))) for parts in columns
        )
        self._logs, self._counts = np.empty(ends[-1]), np.empty(ends[-1])
        self._cells = sum(m.counts.size for m in marginals)
        self._parts = cell_terms(groups, ends, self._sizes, homes, marginals, bins)

    def _count(self, attributes: Ints) -> int:
        """Number of cells of a joint table."""
        return math.prod(self._sizes[a] for a in attributes)

    def place(self, codes: Codes) -> Codes:
        """Joint codes of rows, which the other methods take [shape=(columns, n), uint16].

        Args:
            codes: rows [shape=(d, n), uint16].
        """
        by_class = {
            a: codes[a] if classes is None else classes.astype(np.uint16)[codes[a]]
            for a, classes in self._classes.items()
        }
        out = np.empty((len(self._columns), codes.shape[1]), np.uint16)

        def write(column: int) -> None:
            first, *others = self._columns[column]
            out[column] = by_class[first]
            for a in others:
                out[column] *= np.uint16(self._sizes[a])
                out[column] += by_class[a]

        for_each(len(out), write)
        return out

    def add_logs(self, places: Codes, theta: Floats, logs: Floats) -> None:
        """Add the logs of its cells in all marginals to the log weight of every row.

        Args:
            places: from :meth:`place` [shape=(columns, n), uint16].
            theta: logs, flat over the marginals' cells [shape=(cells,), float64].
            logs: log weights, updated [shape=(n,), float64].
        """
        self._logs[:] = 0.0
        self._parts.absorb(self._logs, theta)
        in_slices(
            logs.size,
            kernels.BLOCK,
            lambda begin, end: kernels.add_logs(
                places, self._tables, self._terms, self._logs, begin, end, logs
            ),
        )

    def counts(self, places: Codes, weights: Floats) -> Floats:
        """Sums of the rows' weights, flat over the marginals' cells [shape=(cells,), float64].

        Args:
            places: from :meth:`place` [shape=(columns, n), uint16].
            weights: weights of the rows [shape=(n,), float64].
        """
        self._counts[:] = 0.0
        in_slices(
            len(self._tables),
            1,
            lambda begin, end: kernels.weighed_counts(
                places, self._tables, self._terms, weights, begin, end, self._counts
            ),
        )
        return self._parts.expected_counts(self._counts, 0, 1.0, self._cells)

    def marginals(self, codes: Codes, weights: Floats) -> list[Floats]:
        """Sums of the weights of many rows [each shaped as its marginal].

        Args:
            codes: rows [shape=(d, n), uint16].
            weights: weights of the rows [shape=(n,), float64].
        """
        counts = np.zeros(self._cells)
        for begin in range(0, weights.size, AT_ONCE):
            rows = slice(begin, begin + AT_ONCE)
            counts += self.counts(self.place(codes[:, rows]), weights[rows])
        return by_measurement(counts, self._marginals)


def _merged(marginals: Sequence[Measurement]) -> tuple[dict[int, BinMap | None], list[int]]:
    """The common refinement of every attribute's bins, and the number of its classes; 1 for
    attributes of no marginal.
    """
    maps, sizes = collections.defaultdict(list), collections.defaultdict[int, int](lambda: 1)
    for m in marginals:
        for a, bins, size in zip(m.attributes, m.bins, m.counts.shape, strict=True):
            maps[a].append(bins)
            sizes[a] = max(sizes[a], size)
    merged = {a: merge_maps(maps[a]) for a in maps}
    for a, classes in merged.items():
        if classes is not None:
            sizes[a] = int(classes.max()) + 1
    return merged, [sizes[a] for a in range(max(maps, default=-1) + 1)]


def _grouped(sets: Sequence[Ints], sizes: Sequence[int]) -> tuple[list[Ints], list[int]]:
    """Cover sets of attributes by groups: those of pairs have at most MAX_GROUP cells.

    Args:
        sets: attributes of each marginal.
        sizes: number of values or classes of every attribute.

    Returns:
        Attributes of the groups, and the index of a group that contains each set.
    """
    groups: list[Ints] = []
    # Per attribute the groups that contain it, as a bit mask.
    containing = [0] * len(sizes)

    def find(attributes: Ints) -> int:
        mask = functools.reduce(operator.and_, (containing[a] for a in attributes))
        return mask.bit_length() - 1

    larger = sorted(set(sets), key=lambda s: (-len(s), s))
    pairs = {(s[0], s[1]) for s in larger if len(s) == 2}
    for group in itertools.chain((group for group, _ in joints(sizes, pairs, MAX_GROUP)), larger):
        if find(group) < 0:
            for a in group:
                containing[a] |= 1 << len(groups)
            groups.append(group)
    return groups, [find(attributes) for attributes in sets]
