"""Belief propagation on a junction tree: lays out once what the kernels then run many times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from .graph import JunctionTree
from .kernels import propagation as kernels

__all__ = ["Propagation", "axis_map"]

Attributes = tuple[int, ...]

# Relative prices behind the split of a clique in outer and inner attributes: a cell in a contiguous loop, a cell gathered or
# scattered through an index map, and the fixed cost of a row. Only their ratios matter; measured on x86-64.
STREAM, GATHER, ROW = 1.0, 3.0, 100.0
LARGEST_INNER = 1024
LINE = 8
# Fewest cells of a block of rows that a thread takes at once, and most blocks: fixed, so that results are.
BLOCK_CELLS, MOST_BLOCKS = 1 << 18, 16
# Below this many cells in a stage, starting threads costs more than it gains, and much more on a busy machine.
PARALLEL_CELLS = 1 << 19


def axis_map(shape: Sequence[int], strides: Sequence[int]) -> npt.NDArray[np.int64]:
    """Flat offsets, row-major over ``shape``, of an array with the given strides in cells (0 on axes it lacks)."""
    out = np.zeros(1, np.int64)
    for n, stride in zip(shape, strides, strict=True):
        out = (out[:, None] + np.arange(n, dtype=np.int64) * stride).ravel()
    return out


@dataclass(frozen=True)
class _Split:
    """How one pass walks its clique: outer attributes in order (slowest first), inner attributes in order."""

    outer: Attributes
    inner: Attributes


def _strides(attributes: Attributes, sizes: Sequence[int]) -> dict[int, int]:
    strides = {}
    step = 1
    for a in reversed(attributes):
        strides[a] = step
        step *= sizes[a]
    return strides


def _padded(cells: int) -> int:
    """Cells rounded up to whole cache lines."""
    return -(-cells // LINE) * LINE


def _aligned(cells: int) -> npt.NDArray[np.float64]:
    """Scratch space that starts at a cache line, so that vectors of a line's width never straddle two."""
    space = np.empty(cells + LINE)
    first = -space.ctypes.data // space.itemsize % LINE
    return space[first : first + cells]


def _cells(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[a] for a in attributes)


def _order_outer(outer: Iterable[int], groups: set[frozenset[int]], sizes: Sequence[int]) -> Attributes:
    """Outer attributes such that the levels of many rows carry few groups; those without any come last."""
    left = set(outer)
    pending = set(groups)
    order: list[int] = []
    while left:
        last = min(left, key=lambda a: (sum(a in g for g in pending), -sizes[a], a))
        order.append(last)
        left.remove(last)
        pending = {g for g in pending if last not in g}
    return tuple(reversed(order))


def _price(
    outer: frozenset[int],
    inner: frozenset[int],
    inputs: Sequence[frozenset[int]],
    outputs: Sequence[frozenset[int]],
    sizes: Sequence[int],
) -> tuple[float, Attributes]:
    width = _cells(inner, sizes)
    crossing: dict[frozenset[int], int] = {}
    cost = 0.0
    scalars = []
    for table in itertools.chain(inputs, outputs):
        rows = table & outer
        if not rows:
            cost += GATHER * width
        elif table & inner:
            crossing[rows] = crossing.get(rows, 0) + 1
        else:
            scalars.append(rows)
    wanted = {t & outer for t in outputs if t & outer and t & inner}
    read = {t & outer for t in inputs if t & outer and t & inner}
    carries = any(t <= inner for t in outputs)
    order = _order_outer(outer, set(crossing), sizes)
    depth = {a: i for i, a in enumerate(order)}
    for rows, count in crossing.items():
        cost += _cells(rows, sizes) * width * (GATHER * count + 2 * STREAM)
    counts = list(itertools.accumulate((sizes[a] for a in order), lambda x, y: x * y))
    last = [max(depth[a] for a in rows) for rows in crossing]
    active = max(last, default=-1)
    for i in range(active + 1):
        here = [rows for rows, level in zip(crossing, last, strict=True) if level == i]
        streams = sum((rows in read) + (rows in wanted) for rows in here) + carries
        cost += counts[i] * (ROW + width * STREAM * max(streams, 1))
        carries = carries or any(rows in wanted for rows in here)
    for rows in scalars:
        cost += GATHER * counts[max(depth[a] for a in rows)]
    if counts:
        cost += 2 * STREAM * counts[-1]
    return cost + width * STREAM, order


def _split(
    clique: Attributes, inputs: Sequence[Attributes], outputs: Sequence[Attributes], sizes: Sequence[int]
) -> _Split:
    """The cheapest split found: all of them for a few attributes, else a local search from a few starts."""
    reads = [frozenset(t) for t in inputs]
    writes = [frozenset(t) for t in outputs]
    everything = frozenset(clique)
    seen: dict[frozenset[int], tuple[float, Attributes]] = {}

    def price(inner: frozenset[int]) -> float:
        if inner not in seen:
            seen[inner] = _price(everything - inner, inner, reads, writes, sizes)
        return seen[inner][0]

    limit = max(LARGEST_INNER, max(sizes[a] for a in clique))
    if len(clique) <= 8:
        for k in range(1, len(clique) + 1):
            for chosen in itertools.combinations(clique, k):
                if _cells(chosen, sizes) <= limit:
                    price(frozenset(chosen))
    else:
        for start in (clique, clique[::-1], tuple(sorted(clique, key=lambda a: sizes[a]))):
            inner = frozenset[int]()
            for a in start:
                if not inner or _cells(inner, sizes) * sizes[a] <= 128:
                    inner |= {a}
            for _ in range(2 * len(clique)):
                moves = [inner ^ {a} for a in clique]
                moves += [inner ^ {a, b} for a in inner for b in everything - inner]
                moves = [m for m in moves if m and _cells(m, sizes) <= limit]
                best = min(moves, key=price)
                if price(best) >= price(inner):
                    break
                inner = best
    inner = min(seen, key=lambda s: (seen[s][0], sorted(s)))
    return _Split(seen[inner][1], tuple(a for a in clique if a in inner))


class Propagation:
    """Calibrates a product of factors on a junction tree.

    Args:
        tree: the junction tree.
        factors: attributes of every factor (sorted, distinct sets); each fits in some clique.

    Attributes:
        offsets: first cell of every factor in the flat arrays [shape=(f + 1,), int64].
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Attributes]) -> None:
        self.tree = tree
        self.factors = tuple(factors)
        sizes = tree.sizes
        lengths = [_cells(f, sizes) for f in factors]
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        cells = int(self.offsets[-1])
        self.home = tuple(tree.covering(f) for f in factors)
        separators = tree.separators
        count = len(tree.cliques)
        separator_cells = [_cells(s, sizes) for s in separators]
        separator_offset = np.concatenate([[0], np.cumsum(separator_cells)]).astype(np.int64)
        messages = int(separator_offset[-1])
        up = [cells + int(o) for o in separator_offset[:-1]]
        down = [cells + messages + int(o) for o in separator_offset[:-1]]
        belief = up
        self._up, self._down = up, down
        self.tables = np.ones(cells + 2 * messages)
        self.marginals = np.zeros(cells + messages)

        own: list[list[int]] = [[] for _ in range(count)]
        for f, home in enumerate(self.home):
            own[home].append(f)
        children: list[list[int]] = [[] for _ in range(count)]
        depth = [0] * count
        for c, parent in enumerate(tree.parents):
            if parent >= 0:
                children[parent].append(c)
                depth[c] = depth[parent] + 1

        self._levels: list[list[int]] = []
        self._groups: list[list[int]] = []
        self._terms: list[list[int]] = []
        self._maps: list[npt.NDArray[np.int32]] = []
        self._map_cells = 0
        self._map_cache: dict[tuple[tuple[int, int], ...], int] = {}
        self._work = 0
        passes: list[list[int]] = []
        child_rows: list[list[int]] = []
        blocks: list[list[int]] = []
        stages: list[int] = [0]
        order: list[int] = []
        wide: list[bool] = []
        stage_sums = 0

        deepest = max(depth)
        plan = [(kernels.COLLECT, d) for d in range(deepest, 0, -1)]
        plan += [(kernels.DISTRIBUTE, d) for d in range(deepest + 1)]
        for role, d in plan:
            sums = 0
            stage_cells = 0
            for c in range(count):
                if depth[c] != d:
                    continue
                collecting = role == kernels.COLLECT
                inputs = [(factors[f], int(self.offsets[f])) for f in own[c]]
                inputs += [(separators[k], up[k]) for k in children[c]]
                outputs = []
                if collecting:
                    outputs.append((separators[c], belief[c]))
                else:
                    if d:
                        inputs.append((separators[c], down[c]))
                    outputs += [(factors[f], int(self.offsets[f])) for f in own[c]]
                    outputs += [(separators[k], belief[k]) for k in children[c]]
                    if d and not outputs:
                        continue
                row = self._lay_out(tree.cliques[c], inputs, outputs, sizes)
                length = row.pop()
                first = len(blocks)
                rows = row[kernels.P_ROWS]
                pieces = max(1, min(MOST_BLOCKS, rows * row[kernels.P_INNER] // BLOCK_CELLS, rows))
                for b in range(pieces):
                    blocks.append([len(passes), rows * b // pieces, rows * (b + 1) // pieces, sums, length])
                    sums += length
                row[kernels.P_BLOCK0], row[kernels.P_BLOCK1] = first, len(blocks)
                row[kernels.P_ROLE] = role if collecting or d else kernels.ROOT
                row[kernels.P_SEPARATOR] = separator_cells[c]
                row[kernels.P_UP], row[kernels.P_DOWN] = up[c], belief[c]
                row[kernels.P_CHILD0] = len(child_rows)
                if not collecting:
                    child_rows += [[separator_cells[k], belief[k], up[k], down[k]] for k in children[c]]
                row[kernels.P_CHILD1] = len(child_rows)
                order.append(len(passes))
                passes.append(row)
                stage_cells += rows * row[kernels.P_INNER]
            if len(order) > stages[-1]:
                stages.append(len(order))
                wide.append(stage_cells >= PARALLEL_CELLS)
            stage_sums = max(stage_sums, sums)

        def table(rows: list[list[int]], columns: int) -> npt.NDArray[np.int64]:
            return np.array(rows, np.int64).reshape(len(rows), columns)

        self._program = (
            np.array(stages, np.int64),
            np.array(wide, np.bool_),
            np.array(order, np.int64),
            table(passes, kernels.P_COLUMNS),
            table(self._levels, kernels.L_COLUMNS),
            table(self._groups, kernels.G_COLUMNS),
            table(self._terms, kernels.T_COLUMNS),
            np.concatenate([*self._maps, np.zeros(1, np.int32)]),
            table(child_rows, 4),
            table(blocks, 5),
        )
        self._scratch = (_aligned(self._work), _aligned(stage_sums))
        self._parallel = any(wide)

    def run(self) -> float:
        """Calibrate: reads the factors in ``tables``, writes their marginals (each sums to 1); log of the normaliser."""
        parallel = self._parallel and numba.get_num_threads() > 1
        function = kernels.propagate_parallel if parallel else kernels.propagate
        return float(function(*self._program, self.tables, self.marginals, *self._scratch))

    @property
    def bytes(self) -> int:
        """Memory held by the layout, the tables and the scratch space."""
        return sum(a.nbytes for a in (*self._program, *self._scratch, self.tables, self.marginals))

    def _map(self, attributes: Attributes, strides: dict[int, int], sizes: Sequence[int]) -> int:
        key = tuple((sizes[a], strides.get(a, 0)) for a in attributes)
        if key not in self._map_cache:
            self._map_cache[key] = self._map_cells
            made = axis_map([n for n, _ in key], [s for _, s in key]).astype(np.int32)
            self._maps.append(made)
            self._map_cells += made.size
        return self._map_cache[key]

    def _take(self, cells: int) -> int:
        begin = self._work
        self._work += _padded(cells)
        return begin

    def _lay_out(
        self,
        clique: Attributes,
        inputs: Sequence[tuple[Attributes, int]],
        outputs: Sequence[tuple[Attributes, int]],
        sizes: Sequence[int],
    ) -> list[int]:
        """Rows of the program for one pass; the pass row is returned, with the length of a block's sums appended."""
        split = _split(clique, [t for t, _ in inputs], [t for t, _ in outputs], sizes)
        outer, inner = split.outer, split.inner
        width = _cells(inner, sizes)
        depth = {a: i for i, a in enumerate(outer)}

        def kind(attributes: Attributes) -> tuple[Attributes, bool]:
            return tuple(a for a in outer if a in attributes), any(a in inner for a in attributes)

        reads = [(*kind(t), t, offset) for t, offset in inputs]
        writes = [(*kind(t), t, offset) for t, offset in outputs]

        def terms_of(tables: list[tuple[Attributes, bool, Attributes, int]], span: Attributes) -> tuple[int, int]:
            begin = len(self._terms)
            for _, crosses, attributes, offset in tables:
                strides = _strides(attributes, sizes)
                rows = self._map(span, strides, sizes) if span else 0
                columns = self._map(inner, strides, sizes) if crosses else 0
                self._terms.append([offset, rows, columns])
            return begin, len(self._terms)

        row = [0] * kernels.P_COLUMNS
        row[kernels.P_INNER] = width
        row[kernels.P_LEVELS] = len(outer)
        row[kernels.P_BASE0], row[kernels.P_BASE1] = terms_of([t for t in reads if not t[0]], ())
        row[kernels.P_OUT0], row[kernels.P_OUT1] = terms_of([t for t in writes if not t[0]], ())
        row[kernels.P_WORK] = self._take(width)

        crossing = sorted({t[0] for t in (*reads, *writes) if t[0] and t[1]}, key=lambda u: (depth[u[-1]], u))
        active_depths = sorted({depth[u[-1]] for u in crossing})
        last_active = active_depths[-1] if active_depths else -1
        rows = _cells(outer[: last_active + 1], sizes)
        row[kernels.P_ROWS] = rows
        row[kernels.P_ACTIVE] = len(active_depths)
        row[kernels.P_SUMS] = self._take(2 * rows)
        walked = outer[: last_active + 1]
        stride = _padded(width)
        row[kernels.P_STRIDE] = stride
        sums = 0
        row[kernels.P_GROUP0] = len(self._groups)
        group_span = {}
        for u in crossing:
            mine = [t for t in reads if t[0] == u and t[1]]
            wanted = [t for t in writes if t[0] == u and t[1]]
            n = _cells(u, sizes)
            in0, in1 = terms_of(mine, u)
            out0, out1 = terms_of(wanted, u)
            factor = self._take(n * stride) if mine else -1
            total = sums if wanted else -1
            sums += n * stride if wanted else 0
            level = depth[u[-1]]
            first, _ = group_span.get(level, (len(self._groups), 0))
            group_span[level] = (first, len(self._groups) + 1)
            self._groups.append([n, self._map(walked, _strides(u, sizes), sizes), factor, total, in0, in1, out0, out1])
        row[kernels.P_GROUP1] = len(self._groups)
        row[kernels.P_MERGED] = sums + stride
        # Whether anything further out wants the sums that pass by an active level.
        carried = row[kernels.P_OUT1] > row[kernels.P_OUT0]
        row[kernels.P_LEVEL0] = len(self._levels)
        for i, a in enumerate(outer):
            span = outer[: i + 1]
            n = _cells(span, sizes)
            in0, in1 = terms_of([t for t in reads if not t[1] and t[0] and t[0][-1] == a], span)
            out0, out1 = terms_of([t for t in writes if not t[1] and t[0] and t[0][-1] == a], span)
            g0, g1 = group_span.get(i, (0, 0))
            self._levels.append([n, self._take(n), in0, in1, out0, out1, g0, g1, int(carried)])
            carried = carried or any(self._groups[g][kernels.G_SUM] >= 0 for g in range(g0, g1))
        # For every row the outermost active level whose index differs from the row before.
        changes = np.full(rows, max(len(active_depths) - 1, 0), np.int32)
        for k in range(len(active_depths) - 2, -1, -1):
            changes[:: rows // _cells(outer[: active_depths[k] + 1], sizes)] = k
        changes[0] = 0
        row[kernels.P_CHANGE] = self._map_cells
        self._maps.append(changes)
        self._map_cells += rows
        return [*row, sums + stride * (2 * len(active_depths) + 1)]

    def belief(self, clique: int) -> npt.NDArray[np.float64]:
        """Probabilities of a clique after :meth:`run` [one axis per attribute of the clique, float64]."""
        tree = self.tree
        attributes = tree.cliques[clique]
        shape = tuple(tree.sizes[a] for a in attributes)
        out = np.ones(shape)

        def multiply(own: Attributes, begin: int) -> None:
            table = self.tables[begin : begin + _cells(own, tree.sizes)]
            np.multiply(out, table.reshape([tree.sizes[a] if a in own else 1 for a in attributes]), out=out)

        for f, home in enumerate(self.home):
            if home == clique:
                multiply(self.factors[f], int(self.offsets[f]))
        for k, parent in enumerate(tree.parents):
            if parent == clique:
                multiply(tree.separators[k], self._up[k])
        if tree.parents[clique] >= 0:
            multiply(tree.separators[clique], self._down[clique])
        out /= out.sum()
        return out
