"""A growing attribute graph whose cliques stay within a budget (VertiMRF, GraphCom)."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Sequence

from .junction_tree import (
    Edge,
    JunctionTree,
    best_cliques,
    bits,
    check_edge,
    checked_sizes,
    components,
    junction_tree,
    rooted,
    spanning_forest,
)

# Attributes of a component that is cheap to triangulate as a whole.
SMALL_COMPONENT = 32


class CliqueBudget:
    """A growing attribute graph whose triangulation keeps every clique within a limit (VertiMRF,
    GraphCom).

    An edge is added only if the cliques stay within the limit. Only the part of the graph that the
    edge can change is triangulated again: the cliques on the tree paths between its attributes,
    with complete separators to the rest. If that exceeds the limit and the component is small, the
    whole component is triangulated before the edge is refused.

    Args:
        sizes: domain size of every attribute.
        limit: most cells of a clique (``max_clique_cells``). Cliques of one attribute may exceed
            it.

    Attributes:
        limit: as given.

    Raises:
        ModelError: a size below 1.
    """

    def __init__(self, sizes: Sequence[int], limit: float) -> None:
        self._sizes = checked_sizes(sizes)
        self.limit = limit
        self._neighbours = dict.fromkeys(range(len(self._sizes)), 0)
        # The cells of a clique. The same cliques are tried many times.
        self._size = functools.cache(lambda c: math.prod(self._sizes[i] for i in bits(c)))
        self._take([1 << i for i in range(len(self._sizes))])

    @property
    def largest(self) -> int:
        """Cells of the largest clique of the accepted graph's triangulation."""
        return max(self._cells)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Accepted edges, sorted."""
        return tuple((a, b) for a, mask in self._neighbours.items() for b in bits(mask) if a < b)

    def tree(self) -> JunctionTree:
        """A junction tree of the accepted graph: the one with the fewest cells, if it is within the
        limit.
        """
        best = junction_tree(self._sizes, self.edges)
        return (
            best
            if best.largest <= max(self.limit, self.largest)
            else rooted(self._sizes, self._cliques)
        )

    def try_clique(self, attributes: Iterable[int]) -> bool:
        """Add all edges among some attributes, or none; returns whether they are in the graph."""
        return self.try_edges(itertools.combinations(attributes, 2))

    def has_room(self, attributes: Iterable[int]) -> bool:
        """Whether :meth:`try_clique` would succeed now."""
        return self._with(itertools.combinations(attributes, 2)) is not None

    def try_edges(self, edges: Iterable[Edge]) -> bool:
        """Add several edges, or none; returns whether they are in the graph."""
        grown = self._with(edges)
        if grown is None:
            return False
        self._neighbours, cliques = grown
        if cliques is not self._cliques:
            # None of the present cliques contains another.
            new = set(cliques).difference(self._cliques)
            self._take(
                [
                    c
                    for c in dict.fromkeys(cliques)
                    if not any(c != d and c & d == c for d in (cliques if c in new else new))
                ]
            )
        return True

    def _take(self, cliques: list[int]) -> None:
        """Replace the cliques, and link them in a forest."""
        self._cliques = cliques
        self._cells = [self._size(c) for c in cliques]
        self._tree = spanning_forest(cliques)
        # By attribute, the places of its cliques, as a bit mask.
        self._places = [0] * len(self._sizes)
        for i, clique in enumerate(cliques):
            for a in bits(clique):
                self._places[a] |= 1 << i
        # By place, all attributes of the clique's tree as a bit mask, its distance from the root
        # and its parent.
        self._wholes, self._depths, self._parents = ([0] * len(cliques) for _ in range(3))
        for root in range(len(cliques)):
            queue = [] if self._wholes[root] else [root]
            for i in queue:
                children = self._tree[i] if i == root else self._tree[i] - {self._parents[i]}
                for j in children:
                    self._depths[j], self._parents[j] = self._depths[i] + 1, i
                queue += children
            whole = functools.reduce(operator.or_, (cliques[i] for i in queue), 0)
            for i in queue:
                self._wholes[i] = whole

    def _whole(self, a: int) -> int:
        """The attributes of an attribute's tree, as a bit mask."""
        return self._wholes[self._places[a].bit_length() - 1]

    def _with(self, edges: Iterable[Edge]) -> tuple[dict[int, int], list[int]] | None:
        """Neighbours and cliques with some edges added; the present list of cliques if they contain
        all edges. None if a clique would exceed the limit.
        """
        neighbours = self._neighbours.copy()
        touched = 0
        for a, b in edges:
            check_edge(a, b, len(self._sizes))
            neighbours[a] |= 1 << b
            neighbours[b] |= 1 << a
            if not self._places[a] & self._places[b]:
                touched |= 1 << a | 1 << b
        if not touched:
            return neighbours, self._cliques
        affected = self._between(touched)
        inside = 0
        for i in affected:
            inside |= self._cliques[i]
        local = {v: neighbours[v] & inside for v in bits(inside)}
        for i in affected:
            for j in self._tree[i] - affected:
                separator = self._cliques[i] & self._cliques[j]
                for v in bits(separator):
                    local[v] |= separator & ~(1 << v)
        replaced = self._triangulated(local, components(local))
        if replaced is not None:
            return neighbours, [
                c for i, c in enumerate(self._cliques) if i not in affected
            ] + replaced
        # Mostly a component is too large before the edges join it to others.
        if any(self._whole(a).bit_count() > SMALL_COMPONENT for a in bits(touched)):
            return None
        whole = [part for part in components(neighbours) if part & touched]
        if any(part.bit_count() > SMALL_COMPONENT for part in whole):
            return None
        replaced = self._triangulated(neighbours, whole)
        if replaced is None:
            return None
        return neighbours, [
            c for c in self._cliques if not any(c & part for part in whole)
        ] + replaced

    def _triangulated(self, neighbours: dict[int, int], parts: Sequence[int]) -> list[int] | None:
        """Cliques of some components; None if a clique of two or more attributes exceeds the limit."""
        out: list[int] = []
        for part in parts:
            cliques = best_cliques(neighbours, part, self._sizes, self.limit)
            # Logs of cells, by which the kernel compares, are rounded.
            if not cliques or any(c & (c - 1) and self._size(c) > self.limit for c in cliques):
                return None
            out += cliques
        return out

    def _between(self, touched: int) -> set[int]:
        """Cliques of the smallest subtrees that contain all touched attributes."""
        if touched.bit_count() == 2 and (path := self._path(*bits(touched))):
            return path
        alive = set(range(len(self._cliques)))
        links = [set(tree) for tree in self._tree]
        leaves = [i for i in alive if len(links[i]) <= 1]
        while leaves:
            i = leaves.pop()
            if i not in alive or len(links[i]) > 1:
                continue
            kept = self._cliques[i] & touched
            if links[i]:
                (j,) = links[i]
                if kept & ~self._cliques[j] == 0:
                    alive.discard(i)
                    links[j].discard(i)
                    leaves.append(j)
            elif not kept:
                alive.discard(i)
        return alive

    def _path(self, a: int, b: int) -> set[int]:
        """Cliques on the path between two attributes that no clique contains both; none if they are
        in different trees.
        """
        if not self._whole(a) >> b & 1:
            return set()
        # The cliques of an attribute are a subtree. Climb from the top of each towards the other.
        ends = [min(bits(self._places[x]), key=self._depths.__getitem__) for x in (a, b)]
        climbed = [{end} for end in ends]
        while True:
            lower = int(self._depths[ends[1]] > self._depths[ends[0]])
            ends[lower] = self._parents[ends[lower]]
            if self._places[(a, b)[1 - lower]] >> ends[lower] & 1:
                return climbed[lower] | {ends[lower]}
            climbed[lower].add(ends[lower])
            if ends[0] == ends[1]:
                return climbed[0] | climbed[1]
