"""Belief propagation on a junction tree, compiled to integer tables that kernels interpret.

A pass visits one clique. It multiplies the clique's factors and messages, and sums the product onto
the messages and marginals that it writes. The clique's attributes are split in outer ones, over
which the kernel loops, and inner ones, which are contiguous. The compiler chooses the cheapest
split for every pass. A pass waits for the messages that it reads, so passes on different branches
run in parallel. A pass that is large for its tree is cut in blocks of rows, which run in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np

from ..arrays import Floats, Pair
from ..kernels import propagation as kernels
from ..kernels.carry import multiply_onto
from ..kernels.jit import for_each, in_order
from .junction_tree import JunctionTree
from .passes import (
    Attributes,
    PassTable,
    Program,
    aligned,
    cell_count,
    merged_axes,
    offsets_of,
    padded,
    passes_before,
    schedule,
    storage_ranks,
    strides_of,
)

# Least cells of a block of rows, and most blocks of a tree. They do not depend on the threads, so
# neither do results.
BLOCK_CELLS, MAX_BLOCKS = 1 << 18, 16
# Trees with fewer cells run on one thread.
PARALLEL_CELLS = 1 << 19


class Propagation:
    """Calibrate a product of factors on a junction tree.

    Args:
        tree: the junction tree.
        factors: attributes of every factor (distinct sets); a clique contains each.

    Attributes:
        factors: attributes of every factor in the order of its axes.
        offsets: first cell of every factor in ``memory`` [shape=(f + 1,), int64].
        marginals: first cell of the factors' marginals in ``memory``; they follow in the order of
            the factors.
        memory: factors, messages and marginals, flat, then scratch space [float64].
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Attributes]) -> None:
        self.tree = tree
        sizes = tree.sizes
        self.home = tuple(tree.covering(f) for f in factors)
        self._housed: list[list[int]] = [[] for _ in tree.cliques]
        for f, c in enumerate(self.home):
            self._housed[c].append(f)
        rank = storage_ranks(tree, factors, self.home)

        def stored(attributes: Attributes) -> Attributes:
            return tuple(sorted(attributes, key=rank.__getitem__))

        self.factors = tuple(stored(f) for f in factors)
        self._separators = tuple(stored(s) for s in tree.separators)
        self.offsets = offsets_of([cell_count(f, sizes) for f in factors])
        messages = offsets_of([cell_count(s, sizes) for s in self._separators])
        self._up = messages[:-1] + self.offsets[-1]
        self._down = self._up + messages[-1]
        self.marginals = int(self.offsets[-1] + 2 * messages[-1])
        tables = self.marginals + int(self.offsets[-1])

        block_cells = max(BLOCK_CELLS, tree.cells // MAX_BLOCKS)
        program = Program(sizes, block_cells, padded(tables))
        passes: dict[Pair, int] = {}
        for role, c in schedule(tree):
            reads, writes = self._tables_of(role, c)
            if writes or role == kernels.ROOT:
                children = tree.children[c] if role != kernels.COLLECT else ()
                links = [
                    [cell_count(self._separators[k], sizes), self._up[k], self._down[k]]
                    for k in children
                ]
                separator = cell_count(self._separators[c], sizes)
                program.add(
                    stored(tree.cliques[c]),
                    reads,
                    writes,
                    role,
                    int(self._up[c]),
                    separator,
                    links,
                    [passes[before] for before in passes_before(tree, role, c) if before in passes],
                )
                passes[role, c] = len(passes)
        self._tasks = tuple(program.tasks)
        # Work of each task and of the longest chain of tasks after it.
        self._rest = [task.cells for task in self._tasks]
        for i, task in reversed(list(enumerate(self._tasks))):
            for before in task.needs:
                rest = self._tasks[before].cells + self._rest[i]
                self._rest[before] = max(self._rest[before], rest)
        workers = numba.get_num_threads() if tree.cells >= PARALLEL_CELLS else 1
        self._programs = [program.arrays(worker) for worker in range(workers)]
        self._logs = np.zeros(len(passes))
        self._tables = tables
        self.memory = aligned(program.taken + workers * program.scratch)
        self.memory[:tables] = 1.0

    def run(self) -> float:
        """Compute the factors' marginals, each summing to 1; returns the log of the normaliser.

        Large trees use as many threads as Numba was set to when the object was made.
        """
        self.memory[self.marginals : self._tables] = 0.0

        def work(task: int, worker: int) -> None:
            one = self._tasks[task]
            self._run(one.parts, (one.number, one.number + 1), one.blocks, worker)

        if min(len(self._programs), numba.get_num_threads()) == 1:
            blocks = len(self._programs[0][-1])
            self._run(kernels.WHOLE, (0, len(self._logs)), (0, blocks), 0)
        else:
            needs = [task.needs for task in self._tasks]
            in_order(needs, self._rest, len(self._programs), work)
        return float(self._logs.sum())

    def _run(self, parts: int, passes: Pair, blocks: Pair, worker: int) -> None:
        """Run parts of passes in a worker's scratch space."""
        kernels.run_passes(
            parts, *passes, *blocks, *self._programs[worker], self.memory, self._logs
        )

    def belief(self, clique: int) -> Floats:
        """Probabilities of a clique after :meth:`run` [one axis per attribute of the clique,
        float64].
        """
        tree = self.tree
        attributes = tree.cliques[clique]
        shape = [tree.sizes[a] for a in attributes]
        role = kernels.DISTRIBUTE if tree.parents[clique] >= 0 else kernels.ROOT
        reads, _ = self._tables_of(role, clique)
        # The table grows by one attribute at a time, so that few multiplications are over all
        # cells.
        out = np.ones(1)
        for i, a in enumerate(attributes):
            out = np.repeat(out, shape[i])
            for axes, begin in ((t.attributes, t.offset) for t in reads):
                if a in axes and not set(attributes[i + 1 :]).intersection(axes):
                    strides = strides_of(axes, tree.sizes)
                    walk = merged_axes(
                        shape[: i + 1], [strides.get(x, 0) for x in attributes[: i + 1]]
                    )
                    multiply_onto(
                        out, *walk, self.memory[begin : begin + cell_count(axes, tree.sizes)]
                    )
        out /= out.sum()
        return out.reshape(shape)

    def beliefs(self) -> tuple[Floats, ...] | None:
        """Probabilities of every clique after :meth:`run`; None if all mass is ruled out, or if the
        factors leave the range of double precision: they are NaN then.
        """
        beliefs = tuple(for_each(len(self.tree.cliques), self.belief))
        return beliefs if all(0 < each.sum() < math.inf for each in beliefs) else None

    def _tables_of(self, role: int, c: int) -> tuple[list[PassTable], list[PassTable]]:
        """Tables that a pass reads and writes."""
        factors = self._housed[c]
        children = self.tree.children[c]
        reads = [PassTable(self.factors[f], int(self.offsets[f])) for f in factors]
        reads += [PassTable(self._separators[k], int(self._up[k])) for k in children]
        if role == kernels.COLLECT:
            return reads, [PassTable(self._separators[c], int(self._up[c]))]
        if role == kernels.DISTRIBUTE:
            reads.append(PassTable(self._separators[c], int(self._down[c])))
        writes = [
            PassTable(self.factors[f], self.marginals + int(self.offsets[f]), normalised=True)
            for f in factors
        ]
        writes += [PassTable(self._separators[k], int(self._down[k])) for k in children]
        return reads, writes
