"""Pick one of several candidates for each synthetic row, so that the counts of low-order marginals stay
close to the expected ones.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Codes, Floats, Integers, Ints, Words
from ..kernels import carry
from ..kernels import rows as kernels
from ..kernels.contingency import count_records
from ..kernels.jit import for_each, in_slices
from .passes import merged_axes
from .row_tables import lookups

# The price of a gap at a cell is (expected count + 1) to the power of minus this.
PRICE = 0.5
# Kernels hold prices as numbers of 8 bits.
SCALE = 255
# Bounds on the marginals that are balanced: cells per row, cells and lookups (one or two seconds) in
# all. An order of marginals with more than LISTED members is left out.
CELLS_PER_ROW, MAX_CELLS, MAX_LOOKUPS, SLOW, LISTED = 0.5, 1 << 22, 5e8, 1 << 11, 50_000
# Most cells of a joint table from which marginals are summed, and most marginals that are.
MAX_JOINT, MAX_GROUPED = 1 << 16, 2000
# Of MIN_BLOCKS rows or more, BLOCKS blocks are decided at once, in rounds of ROUND rows, and one
# LAST-th of the rows, MAX_LAST at most, one after the other.
BLOCKS, MIN_BLOCKS, ROUND, LAST, MAX_LAST = 4, 1 << 15, 1 << 11, 8, 1 << 13
# Stems from which candidates are compared in two stages, and cells from which in three: caches keep fewer.
MIN_STAGED, LARGE = 16, 1 << 16
# Least cells of a slice, which one thread writes.
SLICE = 1 << 14


class Balance:
    """Marginals whose counts are balanced.

    Args:
        sizes: number of values of every attribute.
        marginals: attributes of each, one to three, in ascending order.
        rows: number of rows that :meth:`shares` takes.
    """

    def __init__(self, sizes: Sequence[int], marginals: Sequence[Ints], rows: int) -> None:
        self._sizes = sizes
        self._groups = _groups(sizes, marginals, min(MAX_JOINT, rows))
        self._firsts, self._stems, self._tables, self._cells = stems_of(sizes, marginals)

    def shares(self, codes: Codes, weights: Floats | None) -> Floats:
        """Sums of the weights of many rows in all cells [shape=(cells,), float64].

        Args:
            codes: rows [shape=(d, n), uint16].
            weights: weights of the rows, which sum to 1 [shape=(n,), float64]; None if they are equal.
        """
        out = np.zeros(self._cells)

        def count(i: int) -> None:
            group, inside = self._groups[i]
            shape = [self._sizes[a] for a in group]
            if weights is None:
                joint = count_records(codes, shape, group) / codes.shape[1]
            else:
                joint = np.zeros(math.prod(shape))
                table = lookups([(group, shape)])
                kernels.weighed_counts(codes, *table, weights, 0, 1, joint)
            for marginal in inside:
                cell, strides = self._tables[marginal]
                axes = merged_axes([1, *shape], [0, *(strides.get(a, 0) for a in group)])
                carry.sum_onto(joint, *axes, out[cell:])

        for_each(len(self._groups), count)
        return out

    def pick(self, codes: Codes, size: int, expected: Floats, blocks: int) -> Integers:
        """Take one of several candidates for each row (:func:`vertimrf.kernels.rows.pick`).

        Blocks of rows are decided at the same time, and do not see each other's rows before the next
        round. What they leave is closed in the last rows, one after the other. All of this depends on
        the number of rows alone.

        Args:
            codes: candidates; the j-th of row i is row j * n + i [shape=(d, k * n), uint16].
            size: number n of rows to take.
            expected: counts of the n rows, from :meth:`shares` [shape=(cells,), float64].
            blocks: most blocks.

        Returns:
            Positions in ``codes`` [shape=(n,), int64].
        """
        count, places = len(self._stems), np.arange(size)
        # The stems of a stage are spread over all of them, and those of a length follow each other.
        order = np.argsort(self._stems[:, 6] - self._stems[:, 5], kind="stable")
        stems = np.concatenate([self._stems[order[i::4]] for i in range(4)])
        # The last two candidates are compared at the end alone.
        halvings = (codes.shape[1] // size >> 2).bit_length() if count >= MIN_STAGED else 0
        quarters = ([2] if self._cells < LARGE else [1, 2])[:halvings]
        ends = np.array([-(-count * q // 4) for q in (*quarters, 4)])
        prices = np.maximum(np.rint(SCALE * (expected + 1) ** -PRICE), 1).astype(np.uint8)
        # The falls of a row, and a unit for each that is rounded up, are less than 2^16 units.
        falls = float((prices * expected).max(initial=0.0)) / size * len(self._tables)
        unit = max(falls, 1e-9) / (kernels.FALLS - len(self._tables))
        taken, chosen = np.zeros(self._cells, np.int32), np.empty(size, np.int64)
        blocks = blocks if size >= MIN_BLOCKS else 1
        alone = size - min(size // LAST, MAX_LAST) if blocks > 1 else 0
        cells = np.zeros((1 + blocks, self._cells), np.int32)

        def decide(first: int, last: int, blocks: int) -> None:
            run = expected, prices, size, first, last, blocks, unit
            in_slices(
                self._cells,
                SLICE,
                lambda begin, end: kernels.start_gaps(taken, *run, begin, end, cells),
            )
            cuts = [first + (last - first) * i // blocks for i in range(blocks + 1)]
            table = codes, self._firsts, stems, ends, prices, unit
            for_each(blocks, lambda i: kernels.pick(*table, cells[i], cuts[i], cuts[i + 1], chosen))

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
    # The attributes that one or two others have marginals with.
    beside = collections.defaultdict[Ints, set[int]](set)
    for marginal in marginals if len(marginals) <= MAX_GROUPED else ():
        for others, a in _parted(marginal):
            beside[others].add(a)
    for marginal in reversed(marginals):
        if marginal not in left:
            continue
        group, cells = list(marginal), math.prod(sizes[a] for a in marginal)
        subsets = [m for way in (1, 2) for m in itertools.combinations(marginal, way)]
        gains = collections.Counter(itertools.chain(*(beside[m] for m in subsets if m in beside)))
        while more := [a for a in gains if a not in group and cells * sizes[a] <= most]:
            best = max(more, key=lambda a: (gains[a], -sizes[a], -a))
            for others in ((best,), *((min(best, a), max(best, a)) for a in group)):
                gains.update(beside.get(others, ()))
            group.append(best)
            cells *= sizes[best]
        inside = {m for way in (1, 2, 3) for m in itertools.combinations(sorted(group), way)} & left
        left -= inside
        for others, a in itertools.chain(*map(_parted, inside if beside else ())):
            beside[others].discard(a)
        groups.append((tuple(sorted(group)), sorted(inside)))
    return groups


def _parted(marginal: Ints) -> list[tuple[Ints, int]]:
    """Each attribute of a marginal, after the others."""
    return [((*marginal[:i], *marginal[i + 1 :]), a) for i, a in enumerate(marginal)]


Tables = dict[Ints, tuple[int, dict[int, int]]]


def stems_of(sizes: Sequence[int], marginals: Sequence[Ints]) -> tuple[Words, Words, Tables, int]:
    """The kernels' columns and stems of marginals of one to three attributes; the first cell of each
    marginal, and the strides of its attributes; and the number of cells.

    Source: :func:`vertimrf.kernels.rows.pick` describes both arrays.
    """
    # The longest attribute of a marginal comes last, so that those with too many cells leave no holes.
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    spots = [0, *itertools.accumulate(sizes[a] for a in order)]
    after: dict[Ints, list[int]] = {}
    for attributes in marginals:
        places = tuple(sorted(map(order.index, attributes)))
        after.setdefault(places[:-1], []).append(places[-1])
    stems, tables, cells = list[Ints](), Tables(), 0
    for first, ends in after.items():
        # Neighbours in the order: places less ranks are the same.
        for _, some in itertools.groupby(enumerate(sorted(ends)), lambda pair: pair[1] - pair[0]):
            lasts = [last for _, last in some]
            start, end = spots[lasts[0]], lasts[-1] + 1
            strides: dict[int, int] = {}
            combinations, lead = spots[end] - start, start
            for t in reversed(first):
                strides[t] = combinations
                lead += spots[t] * combinations
                combinations *= sizes[order[t]]
            columns = itertools.chain(*strides.items(), (0,) * 4)
            stems.append((*itertools.islice(columns, 4), cells - lead, lasts[0], end))
            for t in lasts:
                mine = {order[one]: stride for one, stride in (strides | {t: 1}).items()}
                tables[tuple(sorted(mine))] = cells + spots[t] - start, mine
            cells += combinations
    return (
        np.array(list(zip(order, spots, strict=False)), np.uint64).reshape(-1, 2),
        np.array(stems, np.int64).reshape(-1, 7).astype(np.uint64),
        tables,
        cells,
    )


def balanced_marginals(
    sizes: Sequence[int], rows: int, batches: int, candidates: int
) -> list[Ints]:
    """Marginals that are balanced: those of one attribute, of two and of three, smallest first."""
    most = CELLS_PER_ROW * rows / batches
    varying = [a for a, size in enumerate(sizes) if 1 < size <= most]
    out: list[Ints] = []
    cells, lookups = 0, 0.0
    for way in (1, 2, 3):
        if math.comb(len(varying), way) > LISTED:
            break
        for attributes in sorted(
            itertools.combinations(varying, way),
            key=lambda attributes: math.prod(map(sizes.__getitem__, attributes)),
        ):
            more = math.prod(sizes[a] for a in attributes)
            cells += more
            # Look-ups in a table of SLOW cells take twice as long: caches keep fewer.
            lookups += rows * candidates * (1 + more / SLOW)
            if more > most or cells > MAX_CELLS or lookups > MAX_LOOKUPS:
                break
            out.append(attributes)
    return out
