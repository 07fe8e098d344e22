"""Attribute graphs: triangulation, junction trees, and cliques kept within a budget (VertiMRF, GraphCom)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from ..errors import ModelError

__all__ = ["JunctionTree", "junction_tree"]

Edge = tuple[int, int]


@dataclass(frozen=True)
class JunctionTree:
    """A junction tree (a forest where attributes are independent), rooted at the largest clique of each component.

    Attributes:
        sizes: domain size of every attribute.
        cliques: sorted attribute indices of every clique; parents come before their children.
        parents: index of each clique's parent, -1 at roots.
    """

    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]

    @cached_property
    def separators(self) -> tuple[tuple[int, ...], ...]:
        """Attributes each clique shares with its parent; empty at roots."""
        return tuple(
            () if p < 0 else tuple(sorted(set(c) & set(self.cliques[p])))
            for c, p in zip(self.cliques, self.parents, strict=True)
        )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each clique's children."""
        return tuple(tuple(k for k, p in enumerate(self.parents) if p == c) for c in range(len(self.cliques)))

    @cached_property
    def clique_cells(self) -> tuple[int, ...]:
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
        """Index of the smallest clique that holds all attributes, or -1."""
        wanted = set(attributes)
        holding = [i for i, c in enumerate(self.cliques) if wanted.issubset(c)]
        return min(holding, key=lambda i: self.clique_cells[i], default=-1)


def junction_tree(sizes: Sequence[int], edges: Iterable[Edge]) -> JunctionTree:
    """Triangulate an attribute graph and join its cliques to a maximum-weight junction tree.

    Several elimination heuristics run; per component the one with the smallest total of clique cells wins. A clique is
    joined to the others by the separators of most attributes (fewest cells among equals), which a junction tree needs.

    Args:
        sizes: domain size of every attribute.
        edges: pairs of attribute indices, in any order, repeats allowed.

    Raises:
        ModelError: a size below 1, or an edge whose ends are equal or outside the attributes.
    """
    sizes = checked_sizes(sizes)
    neighbours = dict.fromkeys(range(len(sizes)), 0)
    for a, b in edges:
        check_edge(a, b, len(sizes))
        neighbours[a] |= 1 << b
        neighbours[b] |= 1 << a
    cliques = [c for component in components(neighbours) for c in best_cliques(neighbours, component, sizes)]
    return rooted(sizes, [tuple(bits(c)) for c in cliques])


def checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(s) for s in sizes)
    if not sizes or min(sizes) < 1:
        raise ModelError(f"Attribute sizes must be 1 or more, one per attribute; got {sizes}.")
    return sizes


def check_edge(a: int, b: int, count: int) -> None:
    if a == b or not (0 <= a < count and 0 <= b < count):
        raise ModelError(f"Edge ({a}, {b}) must join two different attributes among 0 .. {count - 1}.")


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def components(neighbours: dict[int, int]) -> list[int]:
    """Connected components, as bit masks."""
    left = sum(1 << v for v in neighbours)
    out = []
    while left:
        component = frontier = left & -left
        while frontier:
            grown = 0
            for v in bits(frontier):
                grown |= neighbours[v]
            frontier = grown & ~component
            component |= grown
        out.append(component)
        left &= ~component
    return out


# A heuristic prices the elimination of a vertex from (log cells of its clique, fill edges, fill weight, degree).
_HEURISTICS: tuple[Callable[[float, int, float, int], tuple[float, ...]], ...] = (
    lambda cells, fill, weight, degree: (fill, cells),
    lambda cells, fill, weight, degree: (cells, fill),
    lambda cells, fill, weight, degree: (weight, cells),
    lambda cells, fill, weight, degree: (degree, fill, cells),
    lambda cells, fill, weight, degree: (fill / (degree + 1) if degree else 0.0, cells),
)


def best_cliques(
    neighbours: dict[int, int], component: int, sizes: tuple[int, ...], limit: float | None = None
) -> list[int]:
    """Maximal cliques of the triangulation of one component with the fewest cells; or of the first within a limit."""
    best: list[int] = []
    best_cost: tuple[float, float] = (math.inf, math.inf)
    for heuristic in _HEURISTICS:
        cliques, filled = _eliminate(neighbours, component, sizes, heuristic)
        cells = [math.prod(sizes[i] for i in bits(c)) for c in cliques]
        cost = (sum(cells), max(cells)) if limit is None else (max(cells), sum(cells))
        if cost < best_cost:
            best, best_cost = cliques, cost
        if not filled or (limit is not None and max(cells) <= limit):
            break
    return best


def _eliminate(
    neighbours: dict[int, int],
    component: int,
    sizes: tuple[int, ...],
    heuristic: Callable[[float, int, float, int], tuple[float, ...]],
) -> tuple[list[int], bool]:
    """Eliminate a component's vertices, cheapest first; maximal cliques, and whether any edge was filled in."""
    adjacent = {v: neighbours[v] for v in bits(component)}
    logs = {v: math.log(sizes[v]) for v in adjacent}
    prices: dict[int, tuple[float, ...]] = {}
    stale = component
    cliques: list[int] = []
    filled = False
    while adjacent:
        for v in bits(stale):
            around = adjacent[v]
            cells = logs[v]
            fill = 0
            weight = 0.0
            for u in bits(around):
                cells += logs[u]
                missing = around & ~adjacent[u] & ~(1 << u)
                if missing:
                    fill += missing.bit_count()
                    weight += logs[u] * missing.bit_count()
            prices[v] = (1.0 if fill else 0.0, *heuristic(cells, fill, weight, around.bit_count()))
        v = min(prices, key=prices.__getitem__)
        del prices[v]
        around = adjacent.pop(v)
        clique = around | 1 << v
        if not any(clique & c == clique for c in cliques):
            cliques.append(clique)
        stale = around
        for u in bits(around):
            grown = (adjacent[u] | around) & ~(1 << u | 1 << v)
            if grown & ~adjacent[u]:
                # Whoever sees both ends of a new edge has less to fill in.
                filled = True
                stale |= grown
            adjacent[u] = grown
    return cliques, filled


def rooted(sizes: tuple[int, ...], cliques: list[tuple[int, ...]]) -> JunctionTree:
    """Maximum spanning forest over separators, rooted at each component's largest clique, parents first."""
    cells = [math.prod(sizes[i] for i in c) for c in cliques]
    joint = nx.Graph()
    joint.add_nodes_from(range(len(cliques)))
    for i, j in itertools.combinations(range(len(cliques)), 2):
        shared = set(cliques[i]) & set(cliques[j])
        if shared:
            joint.add_edge(i, j, weight=len(shared) - math.log(math.prod(sizes[k] for k in shared)) * 1e-6)
    forest = nx.maximum_spanning_tree(joint)
    order: list[int] = []
    parents: list[int] = []
    place: dict[int, int] = {}
    for component in sorted(nx.connected_components(forest), key=min):
        root = max(sorted(component), key=lambda i: cells[i])
        place[root] = len(order)
        order.append(root)
        parents.append(-1)
        for parent, child in nx.bfs_edges(forest, root):
            place[child] = len(order)
            order.append(child)
            parents.append(place[parent])
    return JunctionTree(sizes, tuple(cliques[i] for i in order), tuple(parents))
