"""Attribute graphs: triangulation, junction trees, and cliques kept within a budget (VertiMRF, GraphCom)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from .errors import ModelError

__all__ = ["CliqueBudget", "JunctionTree", "junction_tree"]

Edge = tuple[int, int]

# Attributes of a component that is cheap to triangulate as a whole.
SMALL_COMPONENT = 32


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
    sizes = _checked_sizes(sizes)
    neighbours = dict.fromkeys(range(len(sizes)), 0)
    for a, b in edges:
        _check_edge(a, b, len(sizes))
        neighbours[a] |= 1 << b
        neighbours[b] |= 1 << a
    cliques = [c for component in _components(neighbours) for c in _best_cliques(neighbours, component, sizes)]
    return _rooted(sizes, [tuple(_bits(c)) for c in cliques])


class CliqueBudget:
    """A growing attribute graph whose triangulation keeps every clique within a limit (VertiMRF, GraphCom).

    A candidate is priced before it is added, and only the part of the graph that it can change is triangulated again:
    the cliques on the tree paths between its attributes, with the separators to the rest held complete. Where that
    exceeds the limit and the component is small, the whole component is tried before the candidate is refused.

    Args:
        sizes: domain size of every attribute.
        limit: most cells a clique may have. Attributes larger than it on their own are left as they are.

    Raises:
        ModelError: a size below 1.
    """

    def __init__(self, sizes: Sequence[int], limit: float) -> None:
        self._sizes = _checked_sizes(sizes)
        self._limit = limit
        self._neighbours = dict.fromkeys(range(len(self._sizes)), 0)
        self._cliques = [1 << i for i in range(len(self._sizes))]
        self._cells = list(self._sizes)
        self._tree: list[set[int]] = [set() for _ in self._cliques]

    @property
    def largest(self) -> int:
        """Cells of the largest clique of the accepted graph's triangulation."""
        return max(self._cells)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Accepted edges, sorted."""
        return tuple((a, b) for a, mask in self._neighbours.items() for b in _bits(mask) if a < b)

    def tree(self) -> JunctionTree:
        """A junction tree of the accepted graph within the limit: the one of fewest cells, unless that exceeds it."""
        best = junction_tree(self._sizes, self.edges)
        own = [tuple(_bits(c)) for c in self._cliques]
        return best if best.largest <= max(self._limit, self.largest) else _rooted(self._sizes, own)

    def largest_with(self, edges: Iterable[Edge]) -> int:
        """Cells of the largest clique if all these edges were added; nothing is added."""
        _, cliques = self._with(edges)
        return max(self._size(c) for c in cliques)

    def try_edge(self, a: int, b: int) -> bool:
        """Add one edge if the limit allows; says whether it is in."""
        return self.try_edges([(a, b)])

    def try_clique(self, attributes: Iterable[int]) -> bool:
        """Add all edges among some attributes, or none; says whether they are in."""
        return self.try_edges(itertools.combinations(attributes, 2))

    def try_edges(self, edges: Iterable[Edge]) -> bool:
        """Add several edges, or none; says whether they are in."""
        neighbours, cliques = self._with(edges)
        if cliques is not self._cliques:
            if self._exceeds(cliques):
                return False
            self._cliques = [c for c in dict.fromkeys(cliques) if not any(c != d and c & d == c for d in cliques)]
            self._cells = [self._size(c) for c in self._cliques]
            self._tree = _spanning_forest(self._cliques)
        self._neighbours = neighbours
        return True

    def _exceeds(self, cliques: list[int]) -> bool:
        """Whether a clique of two or more attributes (more than one bit) is over the limit; single ones are there anyway."""
        return any(c & (c - 1) and self._size(c) > self._limit for c in cliques)

    def _size(self, clique: int) -> int:
        return math.prod(self._sizes[i] for i in _bits(clique))

    def _with(self, edges: Iterable[Edge]) -> tuple[dict[int, int], list[int]]:
        """Neighbours and cliques with some edges added; the cliques are the present ones where all edges lie in them."""
        neighbours = self._neighbours.copy()
        touched = 0
        for a, b in edges:
            _check_edge(a, b, len(self._sizes))
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
        local = {v: neighbours[v] & inside for v in _bits(inside)}
        for i in affected:
            for j in self._tree[i] - affected:
                separator = self._cliques[i] & self._cliques[j]
                for v in _bits(separator):
                    local[v] |= separator & ~(1 << v)
        found = [c for part in _components(local) for c in _best_cliques(local, part, self._sizes, self._limit)]
        cliques = [c for i, c in enumerate(self._cliques) if i not in affected] + found
        if self._exceeds(found):
            whole = [part for part in _components(neighbours) if part & touched]
            if all(part.bit_count() <= SMALL_COMPONENT for part in whole):
                found = [c for part in whole for c in _best_cliques(neighbours, part, self._sizes, self._limit)]
                cliques = [c for c in self._cliques if not any(c & part for part in whole)] + found
        return neighbours, cliques

    def _between(self, touched: int) -> set[int]:
        """Cliques of the smallest subtrees that hold all touched attributes: leaves that add none are taken off."""
        alive = set(range(len(self._cliques)))
        links = [set(tree) for tree in self._tree]
        leaves = [i for i in alive if len(links[i]) <= 1]
        while leaves:
            i = leaves.pop()
            if i not in alive or len(links[i]) > 1:
                continue
            held = self._cliques[i] & touched
            if links[i]:
                (j,) = links[i]
                if held & ~self._cliques[j] == 0:
                    alive.discard(i)
                    links[j].discard(i)
                    leaves.append(j)
            elif not held:
                alive.discard(i)
        return alive


def _checked_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(s) for s in sizes)
    if not sizes or min(sizes) < 1:
        raise ModelError(f"Attribute sizes must be 1 or more, one per attribute; got {sizes}.")
    return sizes


def _check_edge(a: int, b: int, count: int) -> None:
    if a == b or not (0 <= a < count and 0 <= b < count):
        raise ModelError(f"Edge ({a}, {b}) must join two different attributes among 0 .. {count - 1}.")


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _components(neighbours: dict[int, int]) -> list[int]:
    """Connected components, as bit masks."""
    left = sum(1 << v for v in neighbours)
    out = []
    while left:
        component = frontier = left & -left
        while frontier:
            grown = 0
            for v in _bits(frontier):
                grown |= neighbours[v]
            frontier = grown & ~component
            component |= grown
        out.append(component)
        left &= ~component
    return out


def _spanning_forest(cliques: list[int]) -> list[set[int]]:
    """Maximum-weight spanning forest over the cliques by shared attributes: a junction forest, as adjacency."""
    tree: list[set[int]] = [set() for _ in cliques]
    waiting = set(range(1, len(cliques)))
    nearest = {i: (0, 0) for i in waiting}
    last = 0
    while waiting:
        for i in waiting:
            shared = (cliques[i] & cliques[last]).bit_count()
            if shared > nearest[i][0]:
                nearest[i] = (shared, last)
        chosen = max(waiting, key=lambda i: (nearest[i][0], -i))
        shared, link = nearest[chosen]
        if shared:
            tree[chosen].add(link)
            tree[link].add(chosen)
        waiting.discard(chosen)
        last = chosen
    return tree


# A heuristic prices the elimination of a vertex from (log cells of its clique, fill edges, fill weight, degree).
_HEURISTICS: tuple[Callable[[float, int, float, int], tuple[float, ...]], ...] = (
    lambda cells, fill, weight, degree: (fill, cells),
    lambda cells, fill, weight, degree: (cells, fill),
    lambda cells, fill, weight, degree: (weight, cells),
    lambda cells, fill, weight, degree: (degree, fill, cells),
    lambda cells, fill, weight, degree: (fill / (degree + 1) if degree else 0.0, cells),
)


def _best_cliques(
    neighbours: dict[int, int], component: int, sizes: tuple[int, ...], limit: float | None = None
) -> list[int]:
    """Maximal cliques of the triangulation of one component with the fewest cells; or of the first within a limit."""
    best: list[int] = []
    best_cost: tuple[float, float] = (math.inf, math.inf)
    for heuristic in _HEURISTICS:
        cliques, filled = _eliminate(neighbours, component, sizes, heuristic)
        cells = [math.prod(sizes[i] for i in _bits(c)) for c in cliques]
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
    adjacent = {v: neighbours[v] for v in _bits(component)}
    logs = {v: math.log(sizes[v]) for v in adjacent}
    prices: dict[int, tuple[float, ...]] = {}
    stale = component
    cliques: list[int] = []
    filled = False
    while adjacent:
        for v in _bits(stale):
            around = adjacent[v]
            cells = logs[v]
            fill = 0
            weight = 0.0
            for u in _bits(around):
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
        for u in _bits(around):
            grown = (adjacent[u] | around) & ~(1 << u | 1 << v)
            if grown & ~adjacent[u]:
                # Whoever sees both ends of a new edge has less to fill in.
                filled = True
                stale |= grown
            adjacent[u] = grown
    return cliques, filled


def _rooted(sizes: tuple[int, ...], cliques: list[tuple[int, ...]]) -> JunctionTree:
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
