"""A growing attribute graph whose cliques stay within a budget (VertiMRF, GraphCom)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from ..arrays import Flags
from ..kernels import eliminate as kernels
from .junction_tree import (
    Edge,
    JunctionTree,
    check_edge,
    checked_sizes,
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
        cells = np.array(self._sizes, np.float64)
        self._cells = cells, np.log(cells)
        self._neighbours = np.zeros((len(self._sizes),) * 2, np.bool_)
        self._take(np.eye(len(self._sizes), dtype=np.bool_))

    @property
    def largest(self) -> int:
        """Cells of the largest clique of the accepted graph's triangulation."""
        return max(math.prod(itertools.compress(self._sizes, c)) for c in self._cliques)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Accepted edges, sorted."""
        return tuple((a, b) for a, b in np.argwhere(np.triu(self._neighbours)).tolist())

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
        self._neighbours, cliques, kept = grown
        if cliques is not self._cliques:
            self._take(cliques[kernels.maximal(cliques, np.int64(kept))])
        return True

    def _take(self, cliques: Flags) -> None:
        """Replace the cliques, and link them in a forest."""
        self._cliques, self._links = cliques, spanning_forest(cliques)

    def _with(self, edges: Iterable[Edge]) -> tuple[Flags, Flags, int] | None:
        """Neighbours and cliques with some edges added, and how many cliques remain; the present
        cliques if they contain all edges. None if a clique would exceed the limit.
        """
        added = np.array([*edges], np.int64).reshape(-1, 2)
        for a, b in added.tolist():
            check_edge(a, b, len(self._sizes))
        neighbours, gone = self._neighbours.copy(), np.empty(len(self._cliques), np.bool_)
        new = np.empty_like(neighbours)
        tree = self._cliques, self._links, neighbours, added
        limit = float(self.limit), SMALL_COMPONENT
        count = kernels.grow(*tree, *self._cells, *limit, gone, new)
        if count < 0:
            return None
        if not count:
            return neighbours, self._cliques, len(self._cliques)
        kept = self._cliques[~gone]
        return neighbours, np.concatenate([kept, new[:count]]), len(kept)
