"""A growing attribute graph whose cliques stay within a budget (VertiMRF, GraphCom)."""

from __future__ import annotations

import functools
import itertools
import math
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

__all__ = ["CliqueBudget"]

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
        self._cliques = [1 << i for i in range(len(self._sizes))]
        self._cells = list(self._sizes)
        self._tree: list[set[int]] = [set() for _ in self._cliques]
        # The cells of a clique. The same cliques are tried many times.
        self._size = functools.cache(lambda c: math.prod(self._sizes[i] for i in bits(c)))

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

    def try_edge(self, a: int, b: int) -> bool:
        """Add one edge if the limit allows it; returns whether it is in the graph."""
        return self.try_edges([(a, b)])

    def try_clique(self, attributes: Iterable[int]) -> bool:
        """Add all edges among some attributes, or none; returns whether they are in the graph."""
        return self.try_edges(itertools.combinations(attributes, 2))

    def has_room(self, attributes: Iterable[int]) -> bool:
        """Whether :meth:`try_clique` would succeed now."""
        _, cliques = self._with(itertools.combinations(attributes, 2))
        return cliques is self._cliques or not self._exceeds(cliques)

    def try_edges(self, edges: Iterable[Edge]) -> bool:
        """Add several edges, or none; returns whether they are in the graph."""
        neighbours, cliques = self._with(edges)
        if cliques is not self._cliques:
            if self._exceeds(cliques):
                return False
            # None of the present cliques contains another.
            new = set(cliques).difference(self._cliques)
            self._cliques = [
                c
                for c in dict.fromkeys(cliques)
                if not any(c != d and c & d == c for d in (cliques if c in new else new))
            ]
            self._cells = [self._size(c) for c in self._cliques]
            self._tree = spanning_forest(self._sizes, self._cliques)
        self._neighbours = neighbours
        return True

    def _exceeds(self, cliques: list[int]) -> bool:
        """Whether a clique of two or more attributes exceeds the limit."""
        return any(c & (c - 1) and self._size(c) > self.limit for c in cliques)

    def _with(self, edges: Iterable[Edge]) -> tuple[dict[int, int], list[int]]:
        """Neighbours and cliques with some edges added; the present list of cliques if they contain
        all edges.
        """
        neighbours = self._neighbours.copy()
        touched = 0
        for a, b in edges:
            check_edge(a, b, len(self._sizes))
            pair = 1 << a | 1 << b
            neighbours[a] |= 1 << b
            neighbours[b] |= 1 << a
            if not any(c & pair == pair for c in self._cliques):
                touched |= pair
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
        replaced = [
            c
            for part in components(local)
            for c in best_cliques(local, part, self._sizes, self.limit)
        ]
        cliques = [c for i, c in enumerate(self._cliques) if i not in affected] + replaced
        if self._exceeds(replaced):
            whole = [part for part in components(neighbours) if part & touched]
            if all(part.bit_count() <= SMALL_COMPONENT for part in whole):
                replaced = [
                    c
                    for part in whole
                    for c in best_cliques(neighbours, part, self._sizes, self.limit)
                ]
                cliques = [
                    c for c in self._cliques if not any(c & part for part in whole)
                ] + replaced
        return neighbours, cliques

    def _between(self, touched: int) -> set[int]:
        """Cliques of the smallest subtrees that contain all touched attributes."""
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
