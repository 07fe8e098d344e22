"""Triangulate attribute graphs and build junction trees (VertiMRF, GraphCom)."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Flags, Integers, Ints, Pair
from ..errors import ModelError
from ..kernels import eliminate as kernels

Edge = Pair


@dataclass(frozen=True)
class JunctionTree:
    """A junction tree, or a forest if attributes are independent, rooted at the largest clique of
    each component.

    Attributes:
        sizes: domain size of every attribute.
        cliques: sorted attribute indices of every clique; parents come before their children.
        parents: index of each clique's parent, -1 at roots.
    """

    sizes: Ints
    cliques: tuple[Ints, ...]
    parents: Ints

    @cached_property
    def separators(self) -> tuple[Ints, ...]:
        """Attributes each clique shares with its parent; empty at roots."""
        return tuple(
            () if p < 0 else tuple(sorted(set(c) & set(self.cliques[p])))
            for c, p in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def children(self) -> tuple[Ints, ...]:
        """Indices of each clique's children."""
        return tuple(
            tuple(k for k, p in enumerate(self.parents) if p == c) for c in range(len(self.cliques))
        )

    @cached_property
    def levels(self) -> list[list[int]]:
        """Indices of the cliques at each distance from their root, roots first."""
        depth: list[int] = []
        for parent in self.parents:
            depth.append(0 if parent < 0 else depth[parent] + 1)
        return [[c for c, d in enumerate(depth) if d == k] for k in range(max(depth) + 1)]

    @cached_property
    def clique_cells(self) -> Ints:
        """Cells of each clique's table."""
        return tuple(math.prod(self.sizes[i] for i in c) for c in self.cliques)

    @property
    def cells(self) -> int:
        """Cells of all clique tables."""
        return sum(self.clique_cells)

    @property
    def largest(self) -> int:
        """Cells of the largest clique."""
        return max(self.clique_cells)

    @property
    def treewidth(self) -> int:
        """Attributes of the widest clique, less one."""
        return max(len(c) for c in self.cliques) - 1

    def covering(self, attributes: Iterable[int]) -> int:
        """Index of the smallest clique that contains all attributes, or -1."""
        holding = functools.reduce(
            operator.and_, (self._holding[a] for a in attributes), (1 << len(self.cliques)) - 1
        )
        return self._by_size[(holding & -holding).bit_length() - 1] if holding else -1

    @cached_property
    def _by_size(self) -> list[int]:
        """The cliques from the smallest to the largest."""
        return sorted(range(len(self.cliques)), key=self.clique_cells.__getitem__)

    @cached_property
    def _holding(self) -> dict[int, int]:
        """Per attribute the places of its cliques by size, as a bit mask."""
        holding = collections.defaultdict[int, int](int)
        for place, c in enumerate(self._by_size):
            for a in self.cliques[c]:
                holding[a] |= 1 << place
        return holding


def checked_tree(
    sizes: Sequence[int], cliques: Sequence[Sequence[int]], parents: Sequence[int]
) -> JunctionTree:
    """A junction tree from a file, after validation.

    Raises:
        ModelError: cliques are not in order, a parent comes after its child, or an attribute is in
            no clique or in cliques that are not connected.
    """
    if not all(_whole(size) and size >= 1 for size in sizes) or not sizes:
        raise ModelError("The sizes of a model's attributes are whole numbers, 1 or more.")
    if len(cliques) != len(parents) or not all(
        _whole(p) and -1 <= p < c for c, p in enumerate(parents)
    ):
        raise ModelError("Every clique of a model has a parent before it, or none.")
    tops = collections.Counter[int]()
    for clique, parent in zip(cliques, parents, strict=True):
        in_order = all(_whole(a) for a in clique) and all(
            a < b for a, b in itertools.pairwise(clique)
        )
        if not clique or not in_order or clique[0] < 0 or clique[-1] >= len(sizes):
            raise ModelError(
                f"A model's clique must list different attributes among 0 .. {len(sizes) - 1}, in order."
            )
        tops.update(set(clique) - set(() if parent < 0 else cliques[parent]))
    if len(tops) < len(sizes) or max(tops.values()) > 1:
        raise ModelError(
            "A model's cliques must be a junction tree: those of each attribute must be connected."
        )
    return JunctionTree(tuple(sizes), tuple(map(tuple, cliques)), tuple(parents))


def _whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def junction_tree(sizes: Sequence[int], edges: Iterable[Edge]) -> JunctionTree:
    """Triangulate an attribute graph and join its cliques to a maximum-weight junction tree.

    Several elimination heuristics triangulate each component; the result with the fewest clique
    cells is used. Separators have as many attributes as possible, which a junction tree needs, and
    among these the fewest cells.

    Args:
        sizes: domain size of every attribute.
        edges: pairs of attribute indices, in any order; repeats are allowed.

    Returns:
        The junction tree.

    Raises:
        ModelError: a size below 1, or an edge with equal ends or unknown attributes.
    """
    sizes = checked_sizes(sizes)
    count = len(sizes)
    neighbours = np.zeros((count, count), np.bool_)
    for a, b in edges:
        check_edge(a, b, count)
        neighbours[a, b] = neighbours[b, a] = True
    cliques, cells = np.empty_like(neighbours), np.array(sizes, np.float64)
    found = kernels.triangulate(
        neighbours, np.ones(count, np.bool_), cells, np.log(cells), math.inf, cliques
    )
    return rooted(sizes, cliques[:found])


def checked_sizes(sizes: Sequence[int]) -> Ints:
    """The sizes as integers; raises ModelError if there is none, or one below 1."""
    sizes = tuple(int(s) for s in sizes)
    if not sizes or min(sizes) < 1:
        raise ModelError(f"Attribute sizes must be 1 or more, one per attribute; got {sizes}.")
    return sizes


def check_edge(a: int, b: int, count: int) -> None:
    """Raise ModelError unless an edge joins two different attributes below ``count``."""
    if a == b or not (0 <= a < count and 0 <= b < count):
        raise ModelError(
            f"Edge ({a}, {b}) must join two different attributes among 0 .. {count - 1}."
        )


def bits(mask: int) -> Iterator[int]:
    """Positions of the ones of a bit mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def spanning_forest(cliques: Flags) -> Integers:
    """A junction forest: the maximum spanning forest of cliques by the number of shared attributes.

    All such forests have the same separators.

    Args:
        cliques: maximal cliques of a chordal graph [shape=(m, n), bool].

    Returns:
        The neighbour by which each clique was joined, or -1 [shape=(m,), int64].
    """
    packed = np.packbits(cliques, axis=1)
    words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    links = np.empty(len(packed), np.int64)
    kernels.forest(words.view(np.uint64), links)
    return links


def rooted(sizes: Ints, rows: Flags) -> JunctionTree:
    """A junction tree of cliques [shape=(m, n), bool], rooted at each component's largest clique,
    with parents first.
    """
    cliques = [tuple(np.flatnonzero(row).tolist()) for row in rows]
    forest: list[set[int]] = [set() for _ in cliques]
    for i, j in enumerate(spanning_forest(rows).tolist()):
        if j >= 0:
            forest[i].add(j)
            forest[j].add(i)
    cells = [math.prod(sizes[a] for a in c) for c in cliques]
    order: list[int] = []
    parents: list[int] = []
    seen: set[int] = set()
    for first in range(len(cliques)):
        if first in seen:
            continue
        component = [first]
        seen.add(first)
        for c in component:
            component += sorted(forest[c] - seen)
            seen |= forest[c]
        queue = [max(component, key=lambda i: (cells[i], -i))]
        place = {queue[0]: len(order)}
        order.append(queue[0])
        parents.append(-1)
        for c in queue:
            for child in sorted(forest[c] - place.keys()):
                place[child] = len(order)
                order.append(child)
                parents.append(place[c])
                queue.append(child)
    return JunctionTree(sizes, tuple(cliques[i] for i in order), tuple(parents))
