"""Triangulation by vertex elimination, and junction forests.

Vertices are removed one by one, and the neighbours of each become a clique.

Axes: n = vertices; m = cliques; w = words of a bit mask.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import callee, kernel

# Costs of a vertex. All but the first differ from it in the main criterion among vertices that need
# fill edges.
FILL, CELLS, WEIGHT, DEGREE, RELATIVE = range(5)
HEURISTICS = 5
# Differences within the rounding error of logs do not count.
ROUNDING = 1e-9


@callee
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
def _eliminate(neighbours, logs, heuristic, limit, cliques, cells):  # type: ignore[no-untyped-def]
    """Eliminate all vertices, cheapest first, or until a clique exceeds a limit.

    Args:
        neighbours: whether two vertices are joined; the diagonal is false [shape=(n, n), bool].
        logs: log size of every vertex [shape=(n,), float64].
        heuristic: 0 .. HEURISTICS - 1.
        limit: log of the most cells of a clique of two or more vertices.
        cliques: maximal cliques of the triangulation, one per row, written [shape=(n, n), bool].
        cells: log number of cells of each clique, written [shape=(n,), float64].

    Returns:
        The number of cliques, 0 if one exceeds the limit; and whether edges have to be filled in.
    """
    n = logs.size
    adjacent = neighbours.copy()
    price = np.empty((n, 3))
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
            if degree > 0 and total > limit:
                return np.int64(0), filled or price[v, 0] > 0.0
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


@kernel
def fewest_cells(neighbours, logs, limit, cliques, cells):  # type: ignore[no-untyped-def]
    """Triangulate by one heuristic after the other, and keep the best.

    Without a limit the best has the fewest cells. With a limit the first triangulation within it
    is taken.

    Args:
        neighbours, logs: as for :func:`_eliminate`.
        limit: log of the most cells of a clique of two or more vertices; infinite for none.
        cliques: maximal cliques, one per row, written [shape=(n, n), bool].
        cells: log number of cells of each clique, written [shape=(n,), float64].

    Returns:
        The number of cliques; 0 if no triangulation is within the limit.
    """
    n = logs.size
    tried = np.empty((n, n), np.bool_)
    tried_cells = np.empty(n)
    best = np.int64(0)
    fewest = np.inf
    smallest = np.inf
    for heuristic in range(HEURISTICS):
        count, filled = _eliminate(
            neighbours, logs, np.int64(heuristic), limit + ROUNDING, tried, tried_cells
        )
        total = 0.0
        largest = 0.0
        for c in range(count):
            here = math.exp(tried_cells[c])
            total += here
            largest = max(largest, here)
        bar = fewest * (1.0 - ROUNDING)
        if count > 0 and (best == 0 or total < bar or (total == bar and largest < smallest)):
            best, fewest, smallest = count, total, largest
            for c in range(count):
                cells[c] = tried_cells[c]
                for u in range(n):
                    cliques[c, u] = tried[c, u]
        if not filled or (best > 0 and limit < np.inf):
            break
    return best


@kernel
def forest(masks, links):  # type: ignore[no-untyped-def]
    """Maximum spanning forest of cliques by the number of shared vertices (Prim, 1957).

    Args:
        masks: the cliques as bit masks [shape=(m, w), uint64].
        links: the neighbour by which each clique was joined, or -1, written [shape=(m,), int64].
            The clique joined first has none.
    """
    one = np.uint64(1)
    m = links.size
    weights = np.zeros(m, np.int64)
    near = np.zeros(m, np.int64)
    waiting = np.empty(m, np.int64)
    for i in range(m):
        waiting[i] = i
    links[0] = -1
    last = np.int64(0)
    left = m
    place = np.int64(0)
    while left > 1:
        # The order of those that wait decides between equal weights.
        left -= 1
        for k in range(place, left):
            waiting[k] = waiting[k + 1]
        most = np.int64(-1)
        added = last
        for k in range(left):
            i = waiting[k]
            shared = np.int64(0)
            for word in range(masks.shape[1]):
                both = masks[i, word] & masks[added, word]
                while both:
                    both &= both - one
                    shared += 1
            if shared > weights[i]:
                weights[i] = shared
                near[i] = added
            if weights[i] > most:
                most = weights[i]
                last = i
                place = np.int64(k)
        links[last] = near[last] if most > 0 else np.int64(-1)
