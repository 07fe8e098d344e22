"""Belief propagation on a junction tree: lays out once what the kernels then run many times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numba
import numpy as np
import numpy.typing as npt

from .graph import JunctionTree
from .kernels import propagation as kernels

__all__ = ["Propagation", "axis_map"]

Attributes = tuple[int, ...]
Array = npt.NDArray[np.float64]

# Relative prices behind the split of a clique in outer and inner attributes: a cell in a contiguous loop, a cell
# gathered or scattered through an index map, and the fixed cost of a row. Only their ratios matter; measured on x86-64.
STREAM, GATHER, ROW = 1.0, 1.5, 150.0
# Most cells of the inner block: a few such vectors stay in the first-level cache.
LARGEST_INNER = 512
# Cells of a cache line.
LINE = 8
# Columns that follow each other in a table are worth a loop of their own from here on.
SHORTEST_RUN = 4
# Fewest cells of a block of rows that a thread takes at once, and most blocks: fixed, so that results are.
BLOCK_CELLS, MOST_BLOCKS = 1 << 18, 16
# Below this many cells in a stage, starting threads costs more than it gains, and much more on a busy machine.
PARALLEL_CELLS = 1 << 19
# Tables from this size on, and from this share of their clique, are worth an order of axes of their own.
LARGE_TABLE, LARGE_SHARE = 1 << 14, 1 / 8


def axis_map(shape: Sequence[int], strides: Sequence[int]) -> npt.NDArray[np.int64]:
    """Flat offsets, row-major over ``shape``, of an array with the given strides in cells (0 on axes it lacks)."""
    out = np.zeros(1, np.int64)
    for n, stride in zip(shape, strides, strict=True):
        out = (out[:, None] + np.arange(n, dtype=np.int64) * stride).ravel()
    return out


@dataclass(frozen=True)
class _Table:
    """A factor or message that a pass reads or writes: axes in storage order, first cell, whether to normalise it."""

    attributes: Attributes
    offset: int
    normalised: bool = False


@dataclass(frozen=True)
class _Split:
    """How one pass walks its clique: outer attributes in order (slowest first), inner attributes in storage order."""

    outer: Attributes
    inner: Attributes


class Propagation:
    """Calibrates a product of factors on a junction tree.

    Args:
        tree: the junction tree.
        factors: attributes of every factor (distinct sets); each fits in some clique.

    Attributes:
        factors: attributes of every factor in the order of its axes.
        offsets: first cell of every factor in ``memory`` [shape=(f + 1,), int64].
        marginals: first cell of the factors' marginals in ``memory``; they follow in the order of the factors.
        memory: factors, messages and marginals, flat, then scratch space [float64].
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Attributes]) -> None:
        self.tree = tree
        sizes = tree.sizes
        self.home = tuple(tree.covering(f) for f in factors)
        rank = _storage_ranks(tree, factors, self.home)

        def stored(attributes: Attributes) -> Attributes:
            return tuple(sorted(attributes, key=rank.__getitem__))

        self.factors = tuple(stored(f) for f in factors)
        self._separators = tuple(stored(s) for s in tree.separators)
        self.offsets = _offsets([_cells(f, sizes) for f in factors])
        messages = _offsets([_cells(s, sizes) for s in self._separators])
        self._up = messages[:-1] + self.offsets[-1]
        self._down = self._up + messages[-1]
        self.marginals = int(self.offsets[-1] + 2 * messages[-1])
        tables = self.marginals + int(self.offsets[-1])

        program = _Program(sizes, _padded(tables))
        for role, stage in _schedule(tree):
            for c in stage:
                reads, writes = self._tables_of(role, c)
                if writes or role == kernels.ROOT:
                    children = tree.children[c] if role != kernels.COLLECT else ()
                    links = [[_cells(self._separators[k], sizes), self._up[k], self._down[k]] for k in children]
                    separator = _cells(self._separators[c], sizes)
                    program.add(stored(tree.cliques[c]), reads, writes, role, int(self._up[c]), separator, links)
            program.end_stage()
        self._program = (*program.arrays(), int(self.offsets[-1]), tables)
        self.memory = _aligned(program.memory)
        self.memory[:tables] = 1.0
        self._parallel = any(program.wide)

    def run(self) -> float:
        """Calibrate: factors to their marginals, each summing to 1; returns the log of the normaliser."""
        parallel = self._parallel and numba.get_num_threads() > 1
        function = kernels.propagate_parallel if parallel else kernels.propagate
        return float(function(*self._program, self.memory))

    def belief(self, clique: int) -> Array:
        """Probabilities of a clique after :meth:`run` [one axis per attribute of the clique, float64]."""
        tree = self.tree
        attributes = tree.cliques[clique]
        out = np.ones([tree.sizes[a] for a in attributes])
        own: list[tuple[Attributes, int]] = []
        own += [(self.factors[f], int(self.offsets[f])) for f, home in enumerate(self.home) if home == clique]
        own += [(self._separators[k], int(self._up[k])) for k in tree.children[clique]]
        if tree.parents[clique] >= 0:
            own.append((self._separators[clique], int(self._down[clique])))
        for axes, begin in own:
            table = self.memory[begin : begin + _cells(axes, tree.sizes)].reshape([tree.sizes[a] for a in axes])
            table = table.transpose([axes.index(a) for a in attributes if a in axes])
            out *= table.reshape([tree.sizes[a] if a in axes else 1 for a in attributes])
        out /= out.sum()
        return out

    @property
    def bytes(self) -> int:
        """Memory held by the layout, the tables and the scratch space."""
        arrays = [a for a in self._program if isinstance(a, np.ndarray)]
        return sum(a.nbytes for a in (*arrays, self.memory))

    def _tables_of(self, role: int, c: int) -> tuple[list[_Table], list[_Table]]:
        """What a pass reads and writes."""
        own = [f for f, home in enumerate(self.home) if home == c]
        children = self.tree.children[c]
        reads = [_Table(self.factors[f], int(self.offsets[f])) for f in own]
        reads += [_Table(self._separators[k], int(self._up[k])) for k in children]
        if role == kernels.COLLECT:
            return reads, [_Table(self._separators[c], int(self._up[c]))]
        if role == kernels.DISTRIBUTE:
            reads.append(_Table(self._separators[c], int(self._down[c])))
        writes = [_Table(self.factors[f], self.marginals + int(self.offsets[f]), normalised=True) for f in own]
        writes += [_Table(self._separators[k], int(self._down[k])) for k in children]
        return reads, writes


def _schedule(tree: JunctionTree) -> list[tuple[int, list[int]]]:
    """Stages of cliques that may run at once: towards the roots, the roots, and back."""
    depth: list[int] = []
    for parent in tree.parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    by_depth = [[c for c, d in enumerate(depth) if d == k] for k in range(max(depth) + 1)]
    up = [(kernels.COLLECT, stage) for stage in reversed(by_depth[1:])]
    down = [(kernels.DISTRIBUTE, stage) for stage in by_depth[1:]]
    return [*up, (kernels.ROOT, by_depth[0]), *down]


def _storage_ranks(tree: JunctionTree, factors: Sequence[Attributes], home: Sequence[int]) -> list[int]:
    """Order of axes in all tables: attributes that the cliques of large tables would walk innermost come last, then large."""
    weight = [0] * len(tree.sizes)
    for c, clique in enumerate(tree.cliques):
        tables = [factors[f] for f, h in enumerate(home) if h == c]
        tables += [tree.separators[k] for k in (*tree.children[c], c)]
        largest = max((_cells(t, tree.sizes) for t in tables), default=0)
        if largest >= max(LARGE_TABLE, LARGE_SHARE * tree.clique_cells[c]):
            for a in _split(clique, tables, tables, tree.sizes, anyhow=True).inner:
                weight[a] += tree.clique_cells[c]
    order = sorted(range(len(weight)), key=lambda a: (weight[a], tree.sizes[a], a))
    ranks = [0] * len(order)
    for rank, a in enumerate(order):
        ranks[a] = rank
    return ranks


def _split(
    clique: Attributes,
    reads: Sequence[Attributes],
    writes: Sequence[Attributes],
    sizes: Sequence[int],
    anyhow: bool = False,
) -> _Split:
    """The cheapest split found: of all for a few attributes, else by local search from a few starts."""
    everything = frozenset(clique)
    seen: dict[frozenset[int], tuple[float, Attributes]] = {}

    def price(inner: frozenset[int]) -> float:
        if inner not in seen:
            seen[inner] = _price(everything - inner, inner, reads, writes, sizes, anyhow)
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


def _price(
    outer: frozenset[int],
    inner: frozenset[int],
    reads: Sequence[Attributes],
    writes: Sequence[Attributes],
    sizes: Sequence[int],
    anyhow: bool,
) -> tuple[float, Attributes]:
    """Price of a split, with the best order of its outer attributes."""
    width = _cells(inner, sizes)
    cost = STREAM * width
    crossing: list[tuple[frozenset[int], bool, bool]] = []
    scalars: list[frozenset[int]] = []
    for tables, writing in ((reads, False), (writes, True)):
        for table in tables:
            rows = outer.intersection(table)
            if not rows:
                cost += GATHER * width
            elif len(rows) == len(table):
                scalars.append(rows)
            else:
                in_place = inner.issubset(table) if anyhow else _in_place(table, inner)
                crossing.append((rows, writing, in_place))
    order = _order_outer(outer, {rows for rows, _, _ in crossing}, sizes)
    depth = {a: i for i, a in enumerate(order)}
    counts = list(itertools.accumulate((sizes[a] for a in order), lambda x, y: x * y))
    streams: list[set[tuple[frozenset[int], bool]]] = [set() for _ in order]
    for rows, writing, in_place in crossing:
        streams[max(depth[a] for a in rows)].add((rows, writing))
        if not in_place:
            cost += (GATHER + STREAM) * _cells(rows, sizes) * width
    carries = any(inner.issuperset(table) for table in writes)
    active = max((i for i, s in enumerate(streams) if s), default=-1)
    for i in range(active + 1):
        cost += counts[i] * (ROW + width * STREAM * max(len(streams[i]) + carries, 1))
        carries = carries or any(writing for _, writing in streams[i])
    for rows in scalars:
        cost += GATHER * counts[max(depth[a] for a in rows)]
    if counts:
        cost += 2 * STREAM * counts[-1]
    return cost, order


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


def _in_place(table: Attributes, inner: frozenset[int]) -> bool:
    """Whether the table's last axes are just the inner attributes, so that its rows are read or written as they lie."""
    return len(table) > len(inner) and inner.issuperset(table[-len(inner) :])


@dataclass
class _Program:
    """Builds the integer tables that the kernels interpret."""

    sizes: Sequence[int]
    memory: int
    passes: list[list[int]] = field(default_factory=list)
    levels: list[list[int]] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    terms: list[list[int]] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)
    blocks: list[list[int]] = field(default_factory=list)
    stages: list[int] = field(default_factory=lambda: [0])
    wide: list[bool] = field(default_factory=list)
    maps: list[npt.NDArray[np.int32]] = field(default_factory=list)
    map_cells: int = 0
    known_maps: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)
    stage_cells: int = 0

    def arrays(self) -> tuple[npt.NDArray, ...]:
        """Everything that comes before the tables in the kernels' arguments."""

        def table(rows: list[list[int]], columns: int) -> npt.NDArray[np.int64]:
            return np.array(rows, np.int64).reshape(len(rows), columns)

        return (
            np.array(self.stages, np.int64),
            np.array(self.wide, np.bool_),
            table(self.passes, kernels.P_COLUMNS),
            table(self.levels, kernels.L_COLUMNS),
            table(self.groups, kernels.G_COLUMNS),
            table(self.terms, kernels.T_COLUMNS),
            np.concatenate([*self.maps, np.zeros(1, np.int32)]),
            table(self.children, kernels.C_COLUMNS),
            table(self.blocks, kernels.B_COLUMNS),
        )

    def end_stage(self) -> None:
        """What was added since the last call may run at once."""
        if len(self.passes) > self.stages[-1]:
            self.stages.append(len(self.passes))
            self.wide.append(self.stage_cells >= PARALLEL_CELLS)
        self.stage_cells = 0

    def add(
        self,
        clique: Attributes,
        reads: Sequence[_Table],
        writes: Sequence[_Table],
        role: int,
        up: int,
        separator: int,
        links: Sequence[Sequence[int]],
    ) -> None:
        """Append one pass over a clique (attributes in storage order)."""
        sizes = self.sizes
        split = _split(clique, [t.attributes for t in reads], [t.attributes for t in writes], sizes)
        outer, inner = split.outer, split.inner
        width = _cells(inner, sizes)
        stride = _padded(width)
        inside = frozenset(inner)

        def rows_of(table: _Table) -> Attributes:
            return tuple(a for a in outer if a in table.attributes)

        def crosses(table: _Table) -> bool:
            return 0 < len(rows_of(table)) < len(table.attributes)

        def scalar_of(tables: Sequence[_Table], last: int) -> list[_Table]:
            return [t for t in tables if rows_of(t) and not crosses(t) and rows_of(t)[-1] == last]

        row = [0] * kernels.P_COLUMNS
        row[kernels.P_INNER], row[kernels.P_STRIDE], row[kernels.P_LEVELS] = width, stride, len(outer)
        row[kernels.P_ROLE], row[kernels.P_UP], row[kernels.P_SEPARATOR] = role, up, separator
        row[kernels.P_BASE0], row[kernels.P_BASE1] = self._terms((t for t in reads if not rows_of(t)), (), inner)
        row[kernels.P_OUT0], row[kernels.P_OUT1] = self._terms((t for t in writes if not rows_of(t)), (), inner)
        row[kernels.P_WORK] = self._take(width)
        row[kernels.P_CHILD0] = len(self.children)
        self.children += [list(map(int, link)) for link in links]
        row[kernels.P_CHILD1] = len(self.children)

        spans = sorted({rows_of(t) for t in (*reads, *writes) if crosses(t)}, key=lambda u: outer.index(u[-1]))
        active = sorted({outer.index(u[-1]) for u in spans})
        walked = outer[: active[-1] + 1] if active else ()
        rows = _cells(walked, sizes)
        row[kernels.P_ROWS], row[kernels.P_ACTIVE] = rows, len(active)
        run = sizes[walked[-1]] if walked else 1
        row[kernels.P_RUN] = run
        row[kernels.P_SCALE], row[kernels.P_TOTALS] = self._take(rows), self._take(rows)

        sums = 0
        together = True
        level_groups: dict[int, list[int]] = {}
        row[kernels.P_GROUP0] = len(self.groups)
        for u in spans:
            mine = [t for t in reads if crosses(t) and rows_of(t) == u]
            wanted = [t for t in writes if crosses(t) and rows_of(t) == u]
            # One table that lies right needs no matrix; several are merged, unless large.
            placed = [
                t
                for tables in (mine, wanted)
                for t in tables
                if _in_place(t.attributes, inside) and (len(tables) == 1 or _cells(u, sizes) * 4 >= rows)
            ]
            deepest = walked[-1] == u[-1]
            for t in placed:
                strides = _strides(t.attributes, sizes)
                place = self._map(walked[:-1], strides)
                advance = strides[u[-1]] if deepest else 0
                read = t in mine
                cells = _cells(t.attributes, sizes) if t.normalised else 0
                begin = (t.offset, -1) if read else (-1, t.offset)
                self.groups.append([_cells(u, sizes), place, 1, advance, 1, cells, *begin, 0, 0, 0, 0])
                together = together and (read or outer[0] in u)
            mine = [t for t in mine if t not in placed]
            wanted = [t for t in wanted if t not in placed]
            n = _cells(u, sizes)
            if mine or wanted:
                terms = (*self._terms(mine, u, inner), *self._terms(wanted, u, inner))
                factor = self._take(n * stride) if mine else -1
                total = sums if wanted else -1
                sums += n * stride if wanted else 0
                place = self._map(walked[:-1], _strides(u, sizes))
                advance = stride if deepest else 0
                self.groups.append([n, place, stride, advance, 0, 0, factor, total, *terms])
            span = level_groups.setdefault(outer.index(u[-1]), [len(self.groups) - len(placed) - bool(mine or wanted), 0])
            span[1] = len(self.groups)
        row[kernels.P_GROUP1] = len(self.groups)
        row[kernels.P_MERGED] = sums + stride

        # Whether anything further out wants the sums that pass by an active level.
        carried = row[kernels.P_OUT1] > row[kernels.P_OUT0]
        row[kernels.P_LEVEL0] = len(self.levels)
        for i, a in enumerate(outer):
            span = outer[: i + 1]
            n = _cells(span, sizes)
            terms = (*self._terms(scalar_of(reads, a), span, ()), *self._terms(scalar_of(writes, a), span, ()))
            first, last = level_groups.get(i, (0, 0))
            self.levels.append([n, self._take(n), *terms, first, last, int(carried)])
            carried = carried or any(self.groups[g][kernels.G_SUM] >= 0 for g in range(first, last))

        # For every run the outermost active level whose index differs from the run before.
        runs = rows // run
        changes = np.full(runs, max(len(active) - 1, 0), np.int32)
        for k in range(len(active) - 2, -1, -1):
            changes[:: runs // _cells(outer[: active[k] + 1], sizes)] = k
        row[kernels.P_CHANGE] = self.map_cells
        self._keep(changes)

        # Blocks are cut between runs; those that write tables in place must not meet in one row, so along the first
        # attribute.
        in_place = any(g[kernels.G_PLACE] for g in self.groups[row[kernels.P_GROUP0] :])
        unit = max(rows // sizes[outer[0]], run) if in_place else run
        pieces = max(1, min(MOST_BLOCKS, rows * width // BLOCK_CELLS, rows // unit)) if together else 1
        length = sums + stride * (2 * len(active) + 2)
        row[kernels.P_BLOCK0] = len(self.blocks)
        for b in range(pieces):
            cut = [rows // unit * i // pieces * unit for i in (b, b + 1)]
            self.blocks.append([len(self.passes), *cut, self._take(length), length])
        row[kernels.P_BLOCK1] = len(self.blocks)
        self.stage_cells += rows * width
        self.passes.append(row)

    def _terms(self, tables: Iterable[_Table], span: Attributes, inner: Attributes) -> tuple[int, int]:
        begin = len(self.terms)
        for table in tables:
            strides = _strides(table.attributes, self.sizes)
            rows = self._map(span, strides) if span else 0
            columns = self._map(inner, strides) if inner else 0
            self.terms.append([table.offset, rows, columns, *self._run_of(inner, strides)])
        return begin, len(self.terms)

    def _run_of(self, inner: Attributes, strides: dict[int, int]) -> tuple[int, int]:
        """Length of the runs in which the last inner attributes stay on one cell, or go along the table (1), if long."""
        still = along = 1
        for a in reversed(inner):
            if a in strides:
                break
            still *= self.sizes[a]
        for a in reversed(inner):
            if strides.get(a) != along:
                break
            along *= self.sizes[a]
        run = max(still, along)
        return (run, int(along > still)) if run >= SHORTEST_RUN else (1, 0)

    def _map(self, attributes: Attributes, strides: dict[int, int]) -> int:
        key = tuple((self.sizes[a], strides.get(a, 0)) for a in attributes)
        if key not in self.known_maps:
            self.known_maps[key] = self.map_cells
            self._keep(axis_map([n for n, _ in key], [s for _, s in key]).astype(np.int32))
        return self.known_maps[key]

    def _keep(self, made: npt.NDArray[np.int32]) -> None:
        self.maps.append(made)
        self.map_cells += made.size

    def _take(self, cells: int) -> int:
        begin = self.memory
        self.memory += _padded(cells)
        return begin


def _strides(attributes: Attributes, sizes: Sequence[int]) -> dict[int, int]:
    strides = {}
    step = 1
    for a in reversed(attributes):
        strides[a] = step
        step *= sizes[a]
    return strides


def _offsets(lengths: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _padded(cells: int) -> int:
    """Cells rounded up to whole cache lines."""
    return -(-cells // LINE) * LINE


def _aligned(cells: int) -> Array:
    """Scratch space that starts at a cache line, so that vectors of a line's width never straddle two."""
    space = np.empty(cells + LINE)
    first = -space.ctypes.data // space.itemsize % LINE
    return space[first : first + cells]


def _cells(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[a] for a in attributes)
