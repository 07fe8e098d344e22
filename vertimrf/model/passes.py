"""The program of belief propagation: its passes, levels, groups and blocks of rows as integer tables."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Floats, Int32s, Integers
from ..kernels import propagation as kernels
from ..kernels import splits
from .junction_tree import JunctionTree

# Cost of a row, in cells of a contiguous loop; measured on x86-64.
ROW = 150.0
# Most cells of the inner block: a few such vectors stay in the first-level cache.
LARGEST_INNER = 1024
# Cells of a cache line.
LINE = 8
# Least length of contiguous columns that get a separate loop.
SHORTEST_RUN = 4


# Least cells, and least share of its clique's cells, of a table that affects the order of axes.
LARGE_TABLE, LARGE_SHARE = 1 << 14, 1 / 8
Attributes = tuple[int, ...]
# Rows of the integer tables.
Rows = list[list[int]]


def axis_map(shape: Sequence[int], strides: Sequence[int]) -> Integers:
    """Flat offsets, row-major over ``shape``, of an array with these strides in cells (0 on axes
    that it lacks).
    """
    out = np.zeros(1, np.int64)
    for n, stride in zip(shape, strides, strict=True):
        out = (out[:, None] + np.arange(n, dtype=np.int64) * stride).ravel()
    return out


def merged_axes(shape: Sequence[int], strides: Sequence[int]) -> tuple[Integers, Integers]:
    """The same offsets with as few axes as possible, but at least two."""
    out: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if out and out[-1][1] == stride * size:
            out[-1] = (out[-1][0] * size, stride)
        else:
            out.append((size, stride))
    out = [(1, 0)] * (2 - len(out)) + out
    return np.array([n for n, _ in out], np.int64), np.array([s for _, s in out], np.int64)


@dataclass(frozen=True)
class PassTable:
    """A factor or message that a pass reads or writes: axes in storage order, first cell, whether
    it is normalised.
    """

    attributes: Attributes
    offset: int
    normalised: bool = False


@dataclass(frozen=True)
class _Split:
    """The loops of a pass: outer attributes, slowest first; inner ones in storage order."""

    outer: Attributes
    inner: Attributes


@dataclass(frozen=True)
class _Task:
    """Parts of a pass, or one of its blocks: pass, parts, blocks, tasks that end before it, cells."""

    number: int
    parts: int
    blocks: tuple[int, int]
    needs: tuple[int, ...]
    cells: int


def schedule(tree: JunctionTree) -> list[tuple[int, int]]:
    """Role and clique of every pass: towards the roots, at the roots, and back."""
    cliques = range(len(tree.cliques))
    roots = [(kernels.ROOT, c) for c in cliques if tree.parents[c] < 0]
    others = [c for c in cliques if tree.parents[c] >= 0]
    up = [(kernels.COLLECT, c) for c in reversed(others)]
    return [*up, *roots, *((kernels.DISTRIBUTE, c) for c in others)]


def passes_before(tree: JunctionTree, role: int, c: int) -> list[tuple[int, int]]:
    """Role and clique of the passes that a pass waits for."""
    if role == kernels.DISTRIBUTE:
        return [(kernels.DISTRIBUTE, tree.parents[c]), (kernels.ROOT, tree.parents[c])]
    return [(kernels.COLLECT, k) for k in tree.children[c]]


def storage_ranks(
    tree: JunctionTree, factors: Sequence[Attributes], home: Sequence[int]
) -> list[int]:
    """Order of axes in all tables: attributes that the cliques of large tables would have as inner
    ones come last.
    """
    weight = [0] * len(tree.sizes)
    for c, clique in enumerate(tree.cliques):
        tables = [factors[f] for f, h in enumerate(home) if h == c]
        tables += [tree.separators[k] for k in (*tree.children[c], c)]
        largest = max((cell_count(t, tree.sizes) for t in tables), default=0)
        if largest >= max(LARGE_TABLE, LARGE_SHARE * tree.clique_cells[c]):
            for a in _split(
                clique, tuple(tables), tuple(tables), tuple(tree.sizes), any_order=True
            ).inner:
                weight[a] += tree.clique_cells[c]
    order = sorted(range(len(weight)), key=lambda a: (weight[a], tree.sizes[a], a))
    ranks = [0] * len(order)
    for rank, a in enumerate(order):
        ranks[a] = rank
    return ranks


@functools.lru_cache(maxsize=4096)
def _split(
    clique: Attributes,
    reads: tuple[Attributes, ...],
    writes: tuple[Attributes, ...],
    sizes: tuple[int, ...],
    any_order: bool = False,
) -> _Split:
    """The cheapest split. Splits are cached, as the cliques of a growing graph recur.

    Args:
        clique: attributes in storage order.
        reads, writes: attributes of the tables that a pass reads and writes, in storage order.
        sizes: domain size of every attribute.
        any_order: whether the storage order is still to be chosen.
    """
    # Attributes of one value are loops of one round.
    trivial = tuple(a for a in clique if sizes[a] == 1)
    names = sorted(set(clique).difference(trivial))
    if not names:
        return _Split((), clique)
    rank = {a: i for i, a in enumerate(names)}
    ends: dict[int, list[int]] = {}
    numbers: dict[int, list[int]] = {}
    for tables, way in ((reads, 0), (writes, 1)):
        for table in tables:
            bits = [1 << rank[a] for a in table if a in rank]
            mask = sum(bits)
            trailing = list(itertools.accumulate(reversed(bits[1:]), initial=0))
            ends[mask] = trailing + [0] * (len(names) + 1 - len(trailing))
            numbers.setdefault(mask, [0, 0])[way] += 1
    starts = (clique, clique[::-1], sorted(clique, key=lambda a: sizes[a]))
    order = np.empty(len(names), np.int64)
    inner = splits.cheapest(
        np.array(list(ends), np.int64),
        np.array(list(numbers.values()), np.int64).reshape(-1, 2),
        np.array(list(ends.values()), np.int64).reshape(-1, len(names) + 1),
        np.array([sizes[a] for a in names], np.int64),
        np.array([[rank[a] for a in start if a in rank] for start in starts], np.int64),
        any_order,
        ROW,
        LARGEST_INNER,
        order,
    )
    inside = {a for a in names if inner >> rank[a] & 1}
    outer = trivial + tuple(names[i] for i in order[: len(names) - len(inside)])
    return _Split(outer, tuple(a for a in clique if a in inside))


def _in_place(table: Attributes, inner: frozenset[int]) -> bool:
    """Whether the table's last axes are the inner attributes, so that its rows are contiguous."""
    return len(table) > len(inner) and inner.issuperset(table[-len(inner) :])


class _Kinds:
    """Some tables of a pass by their kind under a split.

    Attributes:
        within: tables with inner attributes only.
        crossing: by outer attributes, tables that have some inner ones too.
        scalar: by the innermost outer attribute, tables with outer attributes only.
    """

    def __init__(self, tables: Iterable[PassTable], outer: Attributes) -> None:
        self.within: list[PassTable] = []
        self.crossing: dict[Attributes, list[PassTable]] = {}
        self.scalar: dict[int, list[PassTable]] = {}
        for t in tables:
            rows = tuple(a for a in outer if a in t.attributes)
            if not rows:
                self.within.append(t)
            elif len(rows) < len(t.attributes):
                self.crossing.setdefault(rows, []).append(t)
            else:
                self.scalar.setdefault(rows[-1], []).append(t)


class _Walk:
    """A split, and the kind of every table under it.

    ``spans`` are the sets of outer attributes of crossing tables, in the order of their levels.
    ``active`` are these levels. ``walked`` are the outer attributes down to the last active level;
    they make ``rows`` in runs of ``run``.
    """

    def __init__(
        self,
        outer: Attributes,
        inner: Attributes,
        sizes: Sequence[int],
        reads: Sequence[PassTable],
        writes: Sequence[PassTable],
    ) -> None:
        self.outer, self.inner, self.sizes = outer, inner, sizes
        self.reads, self.writes = _Kinds(reads, outer), _Kinds(writes, outer)
        self.width = cell_count(inner, sizes)
        self.stride = padded(self.width)
        spans = {*self.reads.crossing, *self.writes.crossing}
        self.spans = sorted(spans, key=lambda u: (outer.index(u[-1]), u))
        self.active = sorted({outer.index(u[-1]) for u in spans})
        self.walked = outer[: self.active[-1] + 1] if self.active else ()
        self.rows = cell_count(self.walked, sizes)
        self.run = sizes[self.walked[-1]] if self.walked else 1

    def changes(self) -> Int32s:
        """Per run, the outermost active level whose index differs from the previous run."""
        runs = self.rows // self.run
        out = np.full(runs, max(len(self.active) - 1, 0), np.int32)
        for k in range(len(self.active) - 2, -1, -1):
            out[:: runs // cell_count(self.outer[: self.active[k] + 1], self.sizes)] = k
        return out


class Program:
    """Builder of the integer tables that the kernels interpret.

    Passes of several blocks have scratch space of their own, up to ``taken``. The others use the
    ``scratch`` cells of the worker that runs them; ``movable`` has where they were placed first.
    """

    def __init__(self, sizes: Sequence[int], block_cells: int, taken: int) -> None:
        self.sizes, self.block_cells, self.taken = sizes, block_cells, taken
        self.passes: Rows = []
        self.levels: Rows = []
        self.groups: Rows = []
        self.terms: Rows = []
        self.children: Rows = []
        self.blocks: Rows = []
        self.tasks: list[_Task] = []
        self.last_tasks: list[int] = []
        self.movable: dict[int, int] = {}
        self.maps: list[Int32s] = []
        self.map_cells = self.scratch = 0
        self.known_maps: dict[tuple[tuple[int, int], ...], int] = {}

    def arrays(self, worker: int) -> tuple[npt.NDArray, ...]:
        """The kernels' arguments before ``memory``, for one worker."""

        def table(rows: Rows, columns: int) -> Integers:
            return np.array(rows, np.int64).reshape(len(rows), columns)

        passes = table(self.passes, kernels.P_COLUMNS)
        levels = table(self.levels, kernels.L_COLUMNS)
        groups = table(self.groups, kernels.G_COLUMNS)
        blocks = table(self.blocks, kernels.B_COLUMNS)
        for p, begin in self.movable.items():
            by, row = self.taken + worker * self.scratch - begin, passes[p]
            row[[kernels.P_WORK, kernels.P_SCALE, kernels.P_TOTALS]] += by
            first = row[kernels.P_LEVEL0]
            levels[first : first + row[kernels.P_LEVELS], kernels.L_PRODUCTS] += by
            some = groups[row[kernels.P_GROUP0] : row[kernels.P_GROUP1]]
            moved = (some[:, kernels.G_PLACE] == 0) & (some[:, kernels.G_FACTOR] >= 0)
            some[moved, kernels.G_FACTOR] += by
            blocks[row[kernels.P_BLOCK0], kernels.B_SUMS] += by
        return (
            passes,
            levels,
            groups,
            table(self.terms, kernels.T_COLUMNS),
            np.concatenate([*self.maps, np.zeros(1, np.int32)]),
            table(self.children, kernels.C_COLUMNS),
            blocks,
        )

    def add(
        self,
        clique: Attributes,
        reads: Sequence[PassTable],
        writes: Sequence[PassTable],
        role: int,
        up: int,
        separator: int,
        links: Sequence[Sequence[int]],
        before: Sequence[int],
    ) -> None:
        """Append a pass over a clique (attributes in storage order) that waits for other passes."""
        begin = self.taken
        split = _split(
            clique,
            tuple(t.attributes for t in reads),
            tuple(t.attributes for t in writes),
            tuple(self.sizes),
        )
        walk = _Walk(split.outer, split.inner, self.sizes, reads, writes)
        base = self._terms(walk.reads.within, (), walk.inner)
        out = self._terms(walk.writes.within, (), walk.inner)
        scratch = [self._take(cells) for cells in (walk.width, walk.rows, walk.rows)]
        levels, groups, blocks = len(self.levels), len(self.groups), len(self.blocks)
        level_groups, sums = self._add_groups(walk)
        self._add_levels(walk, level_groups)
        change = self._keep(walk.changes())
        self._add_blocks(walk, self.groups[groups:], sums)
        children = len(self.children)
        self.children += [list(map(int, link)) for link in links]
        # In the order of the columns of the kernels.
        row = [
            *(walk.width, walk.stride, walk.rows, walk.run, len(walk.outer), len(walk.active)),
            *(levels, groups, len(self.groups), *base, *out, change, *scratch, sums + walk.stride),
            *(blocks, len(self.blocks), role, up, separator, children, len(self.children)),
        ]
        if len(self.blocks) - blocks == 1:
            self.movable[len(self.passes)] = begin
            self.scratch, self.taken = max(self.scratch, self.taken - begin), begin
        self._add_tasks(row, tuple(self.last_tasks[p] for p in before))
        self.passes.append(row)

    def _add_tasks(self, row: Sequence[int], needs: tuple[int, ...]) -> None:
        """Add the tasks of a pass."""

        def add(parts: int, blocks: tuple[int, int], needs: tuple[int, ...], rows: int) -> int:
            cells = rows * row[kernels.P_INNER]
            self.tasks.append(_Task(len(self.passes), parts, blocks, needs, cells))
            return len(self.tasks) - 1

        first, last = row[kernels.P_BLOCK0], row[kernels.P_BLOCK1]
        if last - first == 1:
            end = add(kernels.WHOLE, (first, last), needs, row[kernels.P_ROWS])
        else:
            start = add(kernels.PREPARE, (first, first), needs, 0)
            parts = [
                add(
                    kernels.BLOCKS,
                    (b, b + 1),
                    (start,),
                    self.blocks[b][kernels.B_LAST] - self.blocks[b][kernels.B_FIRST],
                )
                for b in range(first, last)
            ]
            end = add(kernels.FINISH, (first, first), tuple(parts), 0)
        self.last_tasks.append(end)

    def _add_groups(self, walk: _Walk) -> tuple[dict[int, tuple[int, int]], int]:
        """Add groups of crossing tables; returns first and last group of every level, and the cells
        of their sums.
        """
        spans: dict[int, tuple[int, int]] = {}
        sums = 0
        for u in walk.spans:
            first = len(self.groups)
            rows = cell_count(u, self.sizes)
            deepest = u[-1] == walk.walked[-1]
            reads, writes = (kinds.crossing.get(u, []) for kinds in (walk.reads, walk.writes))
            # A contiguous table needs no matrix. Several are merged, unless they are large.
            placed = {
                t.offset
                for tables in (reads, writes)
                for t in tables
                if _in_place(t.attributes, frozenset(walk.inner))
                and (len(tables) == 1 or 4 * rows >= walk.rows)
            }
            for tables, reading in ((reads, True), (writes, False)):
                for t in tables:
                    if t.offset in placed:
                        strides = strides_of(t.attributes, self.sizes)
                        place = self._map(walk.walked[:-1], strides)
                        advance = strides[u[-1]] if deepest else 0
                        cells = cell_count(t.attributes, self.sizes) if t.normalised else 0
                        begin = (t.offset, -1) if reading else (-1, t.offset)
                        self.groups.append([rows, place, 1, advance, 1, cells, *begin, 0, 0, 0, 0])
            reads = [t for t in reads if t.offset not in placed]
            writes = [t for t in writes if t.offset not in placed]
            if reads or writes:
                terms = (*self._terms(reads, u, walk.inner), *self._terms(writes, u, walk.inner))
                factor = self._take(rows * walk.stride) if reads else -1
                begin = (factor, sums if writes else -1)
                place = self._map(walk.walked[:-1], strides_of(u, self.sizes))
                advance = walk.stride if deepest else 0
                self.groups.append([rows, place, walk.stride, advance, 0, 0, *begin, *terms])
                sums += rows * walk.stride if writes else 0
            level = walk.outer.index(u[-1])
            spans[level] = (spans.get(level, (first, 0))[0], len(self.groups))
        return spans, sums

    def _add_levels(self, walk: _Walk, level_groups: dict[int, tuple[int, int]]) -> None:
        # Whether an outer level needs the sums of this one.
        carried = bool(walk.writes.within)
        for i, a in enumerate(walk.outer):
            span = walk.outer[: i + 1]
            rows = cell_count(span, self.sizes)
            terms = (
                *self._terms(walk.reads.scalar.get(a, ()), span, ()),
                *self._terms(walk.writes.scalar.get(a, ()), span, ()),
            )
            first, last = level_groups.get(i, (0, 0))
            self.levels.append([rows, self._take(rows), *terms, first, last, int(carried)])
            carried = carried or any(self.groups[g][kernels.G_SUM] >= 0 for g in range(first, last))

    def _add_blocks(self, walk: _Walk, groups: Sequence[Sequence[int]], sums: int) -> None:
        """Cut the rows in blocks of whole runs; no two blocks write the same row of a table."""
        unit = walk.run
        pieces = walk.rows * walk.width // self.block_cells
        if any(g[kernels.G_PLACE] and g[kernels.G_SUM] >= 0 for g in groups):
            apart = all(walk.outer[0] in u for u in walk.writes.crossing)
            unit = max(walk.rows // self.sizes[walk.outer[0]], walk.run) if apart else walk.rows
        units = walk.rows // unit
        pieces = max(1, min(pieces, units))
        # Sums, running sums and products of the active levels, and one row of scratch.
        length = sums + walk.stride * (2 * len(walk.active) + 2)
        for b in range(pieces):
            cut = [units * i // pieces * unit for i in (b, b + 1)]
            self.blocks.append([*cut, self._take(length)])

    def _terms(
        self, tables: Iterable[PassTable], span: Attributes, inner: Attributes
    ) -> tuple[int, int]:
        begin = len(self.terms)
        for table in tables:
            strides = strides_of(table.attributes, self.sizes)
            rows = self._map(span, strides) if span else 0
            columns = self._map(inner, strides) if inner else 0
            self.terms.append([table.offset, rows, columns, *self._run_of(inner, strides)])
        return begin, len(self.terms)

    def _run_of(self, inner: Attributes, strides: dict[int, int]) -> tuple[int, int]:
        """Length of runs of inner columns that stay at one cell (0) or are contiguous in the table
        (1); (1, 0) if short.
        """
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

    def _keep(self, offsets: Int32s) -> int:
        self.maps.append(offsets)
        self.map_cells += offsets.size
        return self.map_cells - offsets.size

    def _take(self, cells: int) -> int:
        begin = self.taken
        self.taken += padded(cells)
        return begin


def strides_of(
    attributes: Sequence[int], sizes: Sequence[int] | Mapping[int, int]
) -> dict[int, int]:
    """By attribute, the distance of its values in a row-major table, in cells."""
    strides = {}
    step = 1
    for a in reversed(attributes):
        strides[a] = step
        step *= sizes[a]
    return strides


def offsets_of(lengths: Sequence[int]) -> Integers:
    """Where each of several pieces begins, and where the last ends [int64]."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def padded(cells: int) -> int:
    """Cells rounded up to whole cache lines."""
    return -(-cells // LINE) * LINE


def aligned(cells: int) -> Floats:
    """Uninitialised cells that start at a cache line."""
    space = np.empty(cells + LINE)
    first = -space.ctypes.data // space.itemsize % LINE
    return space[first : first + cells]


def cell_count(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    """Cells of a table over these attributes."""
    return math.prod(sizes[a] for a in attributes)
