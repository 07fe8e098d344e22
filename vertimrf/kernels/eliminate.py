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


@callee
def _least_largest(neighbours, logs, enough):  # type: ignore[no-untyped-def]
    """A bound that the largest clique of every triangulation reaches: minor-min-width (Gogate and
    Dechter, 2004) by cells.

    A triangulation has a vertex whose neighbours are a clique, so its largest clique has the cells of
    some vertex and its neighbours, in every subgraph. Nor does it grow if two neighbours become one
    vertex of the smaller size. So the vertex with the fewest is merged with a neighbour, the one with
    which it has the fewest in common, over and over.

    Args:
        neighbours, logs: as for :func:`_eliminate`.
        enough: a bound above this is returned as soon as it is found.

    Returns:
        Log of the cells.
    """
    n = logs.size
    joined, size = neighbours.copy(), logs.copy()
    present = np.ones(n, np.bool_)
    most = 0.0
    for _ in range(n):
        v = np.int64(-1)
        fewest = np.inf
        for a in range(n):
            if present[a]:
                cells = size[a]
                for b in range(n):
                    if joined[a, b]:
                        cells += size[b]
                if cells < fewest:
                    v, fewest = np.int64(a), cells
        u = np.int64(-1)
        least = n
        for a in range(n):
            if joined[v, a]:
                common = 0
                for b in range(n):
                    if joined[v, b] and joined[a, b]:
                        common += 1
                if common < least:
                    u, least = np.int64(a), common
        present[v] = False
        if u < 0:
            continue
        most = max(most, fewest)
        if most > enough:
            break
        size[u] = min(size[u], size[v])
        for b in range(n):
            if joined[v, b]:
                joined[v, b] = joined[b, v] = False
                if b != u:
                    joined[u, b] = joined[b, u] = True
    return most


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
    enough = limit + 2 * ROUNDING
    if limit < np.inf and _least_largest(neighbours, logs, enough) > enough:
        return np.int64(0)
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
def triangulate(neighbours, present, sizes, logs, limit, cliques):  # type: ignore[no-untyped-def]
    """Triangulate the components of some vertices by :func:`fewest_cells`, that of the lowest first.

    Args:
        neighbours: whether two vertices are joined [shape=(n, n), bool].
        present: the vertices; none of them is joined to another [shape=(n,), bool].
        sizes, logs: of every vertex, and their logs [shape=(n,), float64].
        limit: most cells of a clique of two or more vertices; infinite for none.
        cliques: maximal cliques, one per row, written [shape=(n, n), bool].

    Returns:
        The number of cliques; -1 if a component has no triangulation within the limit.
    """
    n = logs.size
    waiting = present.copy()
    within = np.empty(n, np.bool_)
    members = np.empty(n, np.int64)
    count = np.int64(0)
    for first in range(n):
        if not waiting[first]:
            continue
        for v in range(n):
            within[v] = False
        within[first] = True
        members[0] = first
        found = np.int64(1)
        at = np.int64(0)
        while at < found:
            for v in range(n):
                if neighbours[members[at], v] and not within[v]:
                    within[v] = True
                    members[found] = v
                    found += 1
            at += 1
        at = np.int64(0)
        for v in range(n):
            if within[v]:
                members[at] = v
                at += 1
                waiting[v] = False
        joined = np.empty((found, found), np.bool_)
        their = np.empty(found)
        for i in range(found):
            their[i] = logs[members[i]]
            for j in range(found):
                joined[i, j] = neighbours[members[i], members[j]]
        some = np.empty((found, found), np.bool_)
        new = fewest_cells(joined, their, math.log(limit), some, np.empty(found))
        if new == 0:
            return np.int64(-1)
        for c in range(new):
            # Logs of cells, by which cliques are compared, are rounded.
            cells = 1.0
            width = 0
            for v in range(n):
                cliques[count, v] = False
            for i in range(found):
                if some[c, i]:
                    cliques[count, members[i]] = True
                    cells *= sizes[members[i]]
                    width += 1
            if width > 1 and cells > limit:
                return np.int64(-1)
            count += 1
    return count


@callee
def _between(cliques, links, touched, alive):  # type: ignore[no-untyped-def]
    """Find the cliques of the smallest subtrees that contain all touched vertices.

    Args:
        cliques, links: as for :func:`grow`.
        touched: vertices [shape=(n,), bool].
        alive: whether a clique is one of them, written [shape=(m,), bool].
    """
    m, n = cliques.shape
    # Neighbours that are left of each clique: how many, and the exclusive or of their indices, which
    # is the last one's index.
    near, last = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for i in range(m):
        alive[i] = True
        j = links[i]
        if j >= 0:
            near[i] += 1
            near[j] += 1
            last[i] ^= j
            last[j] ^= i
    ends, found = np.empty(n, np.int64), 0
    for v in range(n):
        if touched[v]:
            ends[found] = v
            found += 1
    leaves = np.empty(2 * m, np.int64)
    count = 0
    for i in range(m):
        if near[i] <= 1:
            leaves[count] = i
            count += 1
    while count:
        count -= 1
        i = leaves[count]
        if not alive[i] or near[i] > 1:
            continue
        j = last[i] if near[i] else np.int64(-1)
        needed = False
        for e in range(found):
            v = ends[e]
            if cliques[i, v] and (j < 0 or not cliques[j, v]):
                needed = True
        if not needed:
            alive[i] = False
            if j >= 0:
                near[j] -= 1
                last[j] ^= i
                leaves[count] = j
                count += 1


@kernel
def grow(cliques, links, neighbours, edges, sizes, logs, limit, small, gone, new):  # type: ignore[no-untyped-def]
    """Add edges to a triangulated graph, and triangulate again what they can change.

    Args:
        cliques: maximal cliques of the triangulation [shape=(m, n), bool].
        links: their forest, from :func:`forest` [shape=(m,), int64].
        neighbours: whether two vertices are joined; updated [shape=(n, n), bool].
        edges: pairs of vertices [shape=(e, 2), int64].
        sizes, logs, limit: as for :func:`triangulate`.
        small: most vertices of a component that is triangulated as a whole.
        gone: whether a clique is replaced, written [shape=(m,), bool].
        new: cliques that replace them, written [shape=(n, n), bool].

    Returns:
        The number of new cliques; -1 if one would exceed the limit.
    """
    m, n = cliques.shape
    touched = np.zeros(n, np.bool_)
    any_touched = False
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        neighbours[a, b] = neighbours[b, a] = True
        together = False
        for i in range(m):
            if cliques[i, a] and cliques[i, b]:
                together = True
                break
        if not together:
            touched[a] = touched[b] = any_touched = True
    for i in range(m):
        gone[i] = False
    if not any_touched:
        return np.int64(0)
    _between(cliques, links, touched, gone)
    inside = np.zeros(n, np.bool_)
    for i in range(m):
        if gone[i]:
            for v in range(n):
                inside[v] |= cliques[i, v]
    local = np.zeros((n, n), np.bool_)
    for v in range(n):
        if inside[v]:
            for u in range(n):
                local[v, u] = neighbours[v, u] and inside[u]
    # Separators to the rest are complete.
    part = np.empty(n, np.int64)
    for i in range(m):
        j = links[i]
        if j >= 0 and gone[i] != gone[j]:
            found = 0
            for v in range(n):
                if cliques[i, v] and cliques[j, v]:
                    for e in range(found):
                        local[v, part[e]] = local[part[e], v] = True
                    part[found] = v
                    found += 1
    count = triangulate(local, inside, sizes, logs, limit, new)
    if count >= 0:
        return count
    for v in range(n):
        inside[v] = touched[v]
    for first in range(n):
        if touched[first]:
            part[0] = first
            found, at = 1, 0
            seen = np.zeros(n, np.bool_)
            seen[first] = True
            while at < found:
                for v in range(n):
                    if neighbours[part[at], v] and not seen[v]:
                        seen[v] = inside[v] = True
                        part[found] = v
                        found += 1
                at += 1
            if found > small:
                return np.int64(-1)
    for i in range(m):
        gone[i] = False
        for v in range(n):
            if cliques[i, v] and inside[v]:
                gone[i] = True
    return triangulate(neighbours, inside, sizes, logs, limit, new)


@kernel
def maximal(cliques, known):  # type: ignore[no-untyped-def]
    """Whether each clique is the first of its kind, and in no larger one [shape=(m,), bool].

    Args:
        cliques: [shape=(m, n), bool].
        known: so many of the first are in none of each other.
    """
    m, n = cliques.shape
    out = np.ones(m, np.bool_)
    for c in range(m):
        for d in range(known if c < known else np.int64(0), m):
            larger = False
            inside = c != d
            for v in range(n):
                if cliques[c, v] != cliques[d, v]:
                    if cliques[c, v]:
                        inside = False
                        break
                    larger = True
            if inside and (larger or d < c):
                out[c] = False
                break
    return out


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
