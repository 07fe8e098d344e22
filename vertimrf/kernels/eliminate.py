"""Triangulation by vertex elimination.

Vertices are removed one by one, and the neighbours of each become a clique.

Axes: n = vertices.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

__all__ = ["HEURISTICS", "eliminate"]

# Costs of a vertex. All but the first differ from it in the main criterion among vertices that need
# fill edges.
FILL, CELLS, WEIGHT, DEGREE, RELATIVE = range(5)
HEURISTICS = 5


@kernel
def _prices(adjacent, logs, v, heuristic, price):  # type: ignore[no-untyped-def]
    """Cost of eliminating a vertex: whether it needs fill edges, and two heuristic figures."""
    n = adjacent.shape[0]
    cells = logs[v]
    weight = 0.0
    fill = 0
    degree = 0
    around = np.empty(n, np.int64)
    for u in range(n):
        if adjacent[v, u]:
            around[degree] = u
            degree += 1
    for i in range(degree):
        u = around[i]
        cells += logs[u]
        missing = 0
        for j in range(degree):
            if j != i and not adjacent[u, around[j]]:
                missing += 1
        fill += missing
        weight += logs[u] * missing
    price[0] = 1.0 if fill else 0.0
    price[2] = cells
    if heuristic == FILL:
        price[1] = fill
    elif heuristic == CELLS:
        price[1] = cells
        price[2] = fill
    elif heuristic == WEIGHT:
        price[1] = weight
    elif heuristic == DEGREE:
        # Fill, which is below the square of the number of vertices, breaks ties between degrees.
        price[1] = degree + fill / (1.0 + n * n)
    else:
        price[1] = fill / (degree + 1.0)


@kernel
def eliminate(neighbours, logs, heuristic, cliques, cells):  # type: ignore[no-untyped-def]
    """Eliminate all vertices, cheapest first.

    Args:
        neighbours: whether two vertices are joined; the diagonal is false [shape=(n, n), bool].
        logs: log size of every vertex [shape=(n,), float64].
        heuristic: 0 .. HEURISTICS - 1.
        cliques: maximal cliques of the triangulation, one per row, written [shape=(n, n), bool].
        cells: log number of cells of each clique, written [shape=(n,), float64].

    Returns:
        The number of cliques, and whether any edge was filled in.
    """
    n = logs.size
    adjacent = neighbours.copy()
    price = np.full((n, 3), np.inf)
    present = np.ones(n, np.bool_)
    stale = np.ones(n, np.bool_)
    around = np.empty(n, np.int64)
    count = 0
    filled = False
    for _ in range(n):
        v = -1
        for u in range(n):
            if not present[u]:
                continue
            if stale[u]:
                _prices(adjacent, logs, u, heuristic, price[u])
                stale[u] = False
            if v < 0:
                v = u
                continue
            for k in range(3):
                if price[u, k] != price[v, k]:
                    if price[u, k] < price[v, k]:
                        v = u
                    break
        degree = 0
        for u in range(n):
            if adjacent[v, u]:
                around[degree] = u
                degree += 1
        # A clique inside an earlier one is not maximal.
        inside = False
        for c in range(count):
            if cliques[c, v]:
                inside = True
                for i in range(degree):
                    if not cliques[c, around[i]]:
                        inside = False
                        break
                if inside:
                    break
        if not inside:
            for u in range(n):
                cliques[count, u] = adjacent[v, u]
            cliques[count, v] = True
            total = logs[v]
            for i in range(degree):
                total += logs[around[i]]
            cells[count] = total
            count += 1
        present[v] = False
        for i in range(degree):
            u = around[i]
            adjacent[u, v] = False
            stale[u] = True
            for j in range(degree):
                w = around[j]
                if w != u and not adjacent[u, w]:
                    # Vertices joined to both ends of a new edge have less to fill in.
                    filled = True
                    adjacent[u, w] = adjacent[w, u] = True
                    for x in range(n):
                        if adjacent[u, x] and adjacent[w, x]:
                            stale[x] = True
    return count, filled
