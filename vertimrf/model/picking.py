"""Pick one of several candidates for each synthetic row, so that the counts of low-order marginals stay
close to the expected ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..arrays import Codes, Floats, Integers, Ints, Words
from ..kernels import carry
from ..kernels import rows as kernels
from ..kernels.jit import for_each, in_slices
from .passes import merged_axes
from .row_tables import lookups

# The price of a gap at a cell is (expected count + 1) to the power of minus this.
PRICE = 0.5
# Bounds on the marginals that are balanced: cells per row, cells and lookups (one or two seconds) in
# all. An order of marginals with more than LISTED members is left out.
CELLS_PER_ROW, MAX_CELLS, MAX_LOOKUPS, LISTED = 0.5, 1 << 22, 5e8, 50_000
# Most cells of a joint table from which marginals are summed, and most marginals that are.
MAX_JOINT, MAX_GROUPED = 1 << 16, 2000
# Of MIN_BLOCKS rows or more, BLOCKS blocks are decided at once, in rounds of ROUND rows, and one
# LAST-th of the rows one after the other.
BLOCKS, MIN_BLOCKS, ROUND, LAST = 4, 1 << 15, 1 << 11, 8
# Stems from which candidates are compared in two stages, and cells from which in three: caches keep fewer.
MIN_STAGED, LARGE = 16, 1 << 16
# Least cells of a slice, which one thread writes.
SLICE = 1 << 14


class Balance:
    """Marginals whose counts are balanced.

    Args:
        sizes: number of values of every attribute.
        marginals: attributes of each, one to three, in ascending order.
        rows: number of rows that :meth:`counts` takes.
    """

    def __init__(self, sizes: Sequence[int], marginals: Sequence[Ints], rows: int) -> None:
        self._sizes = sizes
        self._groups = _groups(sizes, marginals, min(MAX_JOINT, rows))
        self._stems, self._lasts, self._cells = stems_of(sizes, marginals)
        # First cell of each marginal, and the strides of its attributes.
        self._tables: dict[Ints, tuple[int, dict[int, int]]] = {}
        for a, stride, b, other, cell, begin, end in self._stems.tolist():
            first = {x: y for x, y in ((a, stride), (b, other)) if y}
            for last, start in self._lasts[begin:end].tolist():
                self._tables[(*first, last)] = cell + start, first | {last: 1}

    def counts(self, codes: Codes, weights: Floats) -> Floats:
        """Sums of the weights of many rows in all cells [shape=(cells,), float64].

        Args:
            codes: rows [shape=(d, n), uint16].
            weights: weights of the rows [shape=(n,), float64].
        """
        out = np.zeros(self._cells)

        def count(i: int) -> None:
            group, inside = self._groups[i]
            shape = [self._sizes[a] for a in group]
            joint = np.zeros(math.prod(shape))
            table = lookups([(group, shape)])
            kernels.weighed_counts(codes, *table, weights, 0, 1, joint)
            for marginal in inside:
                cell, strides = self._tables[marginal]
                axes = merged_axes([1, *shape], [0, *(strides.get(a, 0) for a in group)])
                carry.sum_onto(joint, *axes, out[cell:])

        for_each(len(self._groups), count)
        return out

    def pick(self, rows: Codes, size: int, expected: Floats, blocks: int) -> Integers:
        """Take one of several candidates for each row (:func:`vertimrf.kernels.rows.pick`).

        Blocks of rows are decided at the same time, and do not see each other's rows before the next
        round. What they leave is closed in the last rows, one after the other. All of this depends on
        the number of rows alone.

        Args:
            rows: candidates; the j-th of row i is row j * n + i [shape=(k * n, d), uint16].
            size: number n of rows to take.
            expected: counts of the n rows, from :meth:`counts` [shape=(cells,), float64].
            blocks: most blocks.

        Returns:
            Positions in ``rows`` [shape=(n,), int64].
        """
        count, places = len(self._stems), np.arange(size)
        # The stems of a stage are spread over all of them.
        stems = np.concatenate([self._stems[i::4] for i in range(4)])
        quarters = [2, 4] if self._cells < LARGE else [1, 2, 4]
        ends = np.array([-(-count * q // 4) for q in quarters[-1 if count < MIN_STAGED else 0 :]])
        prices = ((expected + 1) ** -PRICE).astype(np.float32)
        taken, chosen = np.zeros(self._cells), np.empty(size, np.int64)
        start = np.empty((self._cells, 2), np.float32)
        # As many as work at the same time.
        spare: list[npt.NDArray[np.float32]] = []

        def decide(first: int, last: int, blocks: int) -> None:
            in_slices(
                self._cells,
                SLICE,
                lambda begin, end: kernels.start_gaps(
                    taken, expected, prices, size, first, last, blocks, begin, end, start
                ),
            )
            cuts = [first + (last - first) * i // blocks for i in range(blocks + 1)]

            def block(i: int) -> None:
                try:
                    mine = spare.pop()
                except IndexError:
                    mine = np.empty_like(start)
                np.copyto(mine, start)
                kernels.pick(
                    rows, stems, self._lasts, ends, prices, mine, cuts[i], cuts[i + 1], chosen
                )
                spare.append(mine)

            for_each(blocks, block)
            if last < size:
                here = np.ascontiguousarray(rows[chosen[first:last] * size + places[first:last]].T)
                in_slices(
                    count,
                    1,
                    lambda begin, end: kernels.count_rows(
                        here, self._stems, self._lasts, begin, end, taken
                    ),
                )

        alone = size - size // LAST if blocks > 1 and size >= MIN_BLOCKS else 0
        cuts = [*range(0, alone, ROUND), *range(alone, size, ROUND), size]
        for first, last in itertools.pairwise(cuts):
            decide(first, last, blocks if last <= alone else 1)
        return chosen * size + places


def _groups(
    sizes: Sequence[int], marginals: Sequence[Ints], most: int
) -> list[tuple[Ints, list[Ints]]]:
    """Sets of attributes with at most ``most`` cells, or those of one marginal, and the marginals
    that their joint tables contain, each in one of them.
    """
    left, groups = set(marginals), []
    for marginal in reversed(marginals):
        if marginal not in left:
            continue
        group = list(marginal)
        rest = set(range(len(sizes))) - set(group) if len(marginals) <= MAX_GROUPED else set()
        while True:
            cells = math.prod(sizes[a] for a in group)
            more = {
                a: len(new)
                for a in sorted(rest - set(group))
                if cells * sizes[a] <= most and (new := _with(a, group) & left)
            }
            if not more:
                break
            group.append(max(more, key=lambda a: (more[a], -sizes[a])))
        inside = {m for way in (1, 2, 3) for m in itertools.combinations(sorted(group), way)} & left
        left -= inside
        groups.append((tuple(sorted(group)), sorted(inside)))
    return groups


def _with(attribute: int, others: Sequence[int]) -> set[Ints]:
    """An attribute with each and each two of others."""
    return {
        tuple(sorted((attribute, *some)))
        for way in (1, 2)
        for some in itertools.combinations(others, way)
    }


def stems_of(sizes: Sequence[int], marginals: Sequence[Ints]) -> tuple[Words, Words, int]:
    """The kernels' stems and last attributes of marginals of one to three attributes, and the
    number of cells.

    Source: :func:`vertimrf.kernels.rows.pick` describes both arrays.
    """
    after: dict[Ints, list[int]] = {}
    for attributes in marginals:
        after.setdefault(attributes[:-1], []).append(attributes[-1])
    stems: list[Ints] = []
    lasts: list[tuple[int, int]] = []
    cells = 0
    for first, ends in after.items():
        starts = [0, *itertools.accumulate(sizes[a] for a in ends)]
        strides = [
            math.prod(sizes[a] for a in first[i + 1 :]) * starts[-1] for i in range(len(first))
        ]
        columns = itertools.chain(*zip((*first, 0, 0), (*strides, 0, 0), strict=True))
        stems.append((*itertools.islice(columns, 4), cells, len(lasts), len(lasts) + len(ends)))
        lasts += zip(ends, starts, strict=False)
        cells += math.prod(sizes[a] for a in first) * starts[-1]
    return (
        np.array(stems, np.uint64).reshape(-1, 7),
        np.array(lasts, np.uint64).reshape(-1, 2),
        cells,
    )


def balanced_marginals(
    sizes: Sequence[int], rows: int, batches: int, candidates: int
) -> list[Ints]:
    """Marginals that are balanced: those of one attribute, of two and of three, smallest first."""
    varying = [a for a, size in enumerate(sizes) if size > 1]
    out: list[Ints] = []
    cells = lookups = 0
    for way in (1, 2, 3):
        if math.comb(len(varying), way) > LISTED:
            break
        for attributes in sorted(
            itertools.combinations(varying, way),
            key=lambda attributes: math.prod(sizes[a] for a in attributes),
        ):
            more = math.prod(sizes[a] for a in attributes)
            cells += more
            lookups += rows * candidates
            if more > CELLS_PER_ROW * rows / batches or cells > MAX_CELLS or lookups > MAX_LOOKUPS:
                break
            out.append(attributes)
    return out
