"""Belief propagation kernels: fused multiply-and-marginalise over clique tables that are never stored.

A pass visits every cell of one clique once, multiplies its factors and messages and sums the product onto every table
wanted. The clique's attributes are split in an outer part, walked row by row with the first attribute slowest, and an inner
part, one contiguous block of J cells. A factor (or wanted marginal) is then of one of three kinds:

* inner only: multiplied once into the block's start vector; read off the sum A of all rows;
* outer only: a scalar per row, multiplied level by level; read off the row sums T;
* crossing: with outer attributes U it belongs to the group of U, whose factors are first merged into one matrix
  G [rows of U, J]; its marginals are read off H [rows of U, J].

A group acts at the level of its last outer attribute: the running product w of a level is reused by all rows below it, and
sums are carried upwards when a level's index advances. So whatever the number of factors, a cell costs about one
multiplication and three additions in contiguous loops, and memory traffic is confined to G, H and a few vectors of J.

Rows are cut in blocks that do not depend on the number of threads; their sums are merged in order, so results do not either.

Axes: p = passes; g = groups; t = terms (a factor read or a marginal written); q = rows of the levels that carry groups.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from .jit import kernel, parallel_kernel

__all__ = ["expected_counts", "potentials", "propagate", "propagate_parallel"]

# Columns of the integer tables that describe passes, levels, groups and terms; built in vertimrf.propagation.
P_INNER, P_STRIDE, P_ROWS, P_LEVELS, P_ACTIVE, P_LEVEL0, P_GROUP0, P_GROUP1, P_BASE0, P_BASE1, P_OUT0, P_OUT1 = range(12)
P_CHANGE, P_WORK, P_SUMS, P_MERGED, P_BLOCK0, P_BLOCK1, P_ROLE, P_UP, P_DOWN, P_SEPARATOR = range(12, 22)
P_CHILD0, P_CHILD1, P_COLUMNS = range(22, 25)
L_ROWS, L_PRODUCTS, L_IN0, L_IN1, L_OUT0, L_OUT1, L_GROUP0, L_GROUP1, L_CARRIED, L_COLUMNS = range(10)
G_ROWS, G_MAP, G_FACTOR, G_SUM, G_IN0, G_IN1, G_OUT0, G_OUT1, G_COLUMNS = range(9)
T_TABLE, T_ROWS, T_INNER, T_COLUMNS = range(4)

COLLECT, DISTRIBUTE, ROOT = range(3)

# Sums may be reassociated so that they vectorise; nothing else is relaxed.
VECTOR = {"reassoc", "contract", "nsz"}


@kernel(fastmath=VECTOR)
def _prepare(info, levels, groups, terms, maps, tables, work):  # type: ignore[no-untyped-def]
    """Start vector, row scalars and group matrices of one pass."""
    inner = info[P_INNER]
    base = work[info[P_WORK] : info[P_WORK] + inner]
    base[:] = 1.0
    for t in range(info[P_BASE0], info[P_BASE1]):
        table = tables[terms[t, T_TABLE] :]
        columns = maps[terms[t, T_INNER] : terms[t, T_INNER] + inner]
        for j in range(inner):
            base[j] *= table[columns[j]]
    above = 1
    for level in range(info[P_LEVEL0], info[P_LEVEL0] + info[P_LEVELS]):
        rows = levels[level, L_ROWS]
        size = rows // above
        products = work[levels[level, L_PRODUCTS] : levels[level, L_PRODUCTS] + rows]
        if level == info[P_LEVEL0]:
            products[:] = 1.0
        else:
            upper = work[levels[level - 1, L_PRODUCTS] : levels[level - 1, L_PRODUCTS] + above]
            for i in range(above):
                products[i * size : (i + 1) * size] = upper[i]
        for t in range(levels[level, L_IN0], levels[level, L_IN1]):
            table = tables[terms[t, T_TABLE] :]
            index = maps[terms[t, T_ROWS] : terms[t, T_ROWS] + rows]
            for i in range(rows):
                products[i] *= table[index[i]]
        above = rows
    # Levels below the last one that carries a group only matter through their sum.
    scale = work[info[P_SUMS] : info[P_SUMS] + info[P_ROWS]]
    if info[P_LEVELS] == 0:
        scale[0] = 1.0
    else:
        last = info[P_LEVEL0] + info[P_LEVELS] - 1
        products = work[levels[last, L_PRODUCTS] : levels[last, L_PRODUCTS] + levels[last, L_ROWS]]
        tail = levels[last, L_ROWS] // info[P_ROWS]
        for q in range(info[P_ROWS]):
            total = 0.0
            for k in range(q * tail, (q + 1) * tail):
                total += products[k]
            scale[q] = total
    for g in range(info[P_GROUP0], info[P_GROUP1]):
        if groups[g, G_FACTOR] < 0:
            continue
        for r in range(groups[g, G_ROWS]):
            begin = groups[g, G_FACTOR] + r * info[P_STRIDE]
            row = work[begin : begin + inner]
            first = True
            for t in range(groups[g, G_IN0], groups[g, G_IN1]):
                table = tables[terms[t, T_TABLE] + maps[terms[t, T_ROWS] + r] :]
                columns = maps[terms[t, T_INNER] : terms[t, T_INNER] + inner]
                if first:
                    for j in range(inner):
                        row[j] = table[columns[j]]
                    first = False
                else:
                    for j in range(inner):
                        row[j] *= table[columns[j]]


@kernel(fastmath=VECTOR)
def _dot(above, factor):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(above.size):
        total += above[j] * factor[j]
    return total


@kernel(fastmath=VECTOR)
def _dot_add(above, factor, scale, out):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(above.size):
        value = above[j] * factor[j]
        total += value
        out[j] += value * scale
    return total


@kernel(fastmath=VECTOR)
def _dot_add_both(above, factor, scale, out, other):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(above.size):
        value = above[j] * factor[j]
        total += value
        value *= scale
        out[j] += value
        other[j] += value
    return total


@kernel(fastmath=VECTOR)
def _run_rows(info, levels, groups, maps, work, sums, q0, q1):  # type: ignore[no-untyped-def]
    """Rows q0 .. q1 of one pass; ``sums`` is this block's own: the matrices H, then A, then scratch."""
    inner = info[P_INNER]
    stride = info[P_STRIDE]
    active = info[P_ACTIVE]
    sums[:] = 0.0
    scale = work[info[P_SUMS] : info[P_SUMS] + info[P_ROWS]]
    totals = work[info[P_SUMS] + info[P_ROWS] : info[P_SUMS] + 2 * info[P_ROWS]]
    base = work[info[P_WORK] : info[P_WORK] + inner]
    if active == 0:
        total = 0.0
        everything = sums[info[P_MERGED] - stride :]
        for j in range(inner):
            everything[j] = scale[0] * base[j]
            total += base[j]
        totals[0] = total
        return
    # carried[k] takes the sums of the rows below active level k - 1; carried[0] is A. products[k] stands above level k.
    carried = sums[info[P_MERGED] - stride : info[P_MERGED] + (active - 1) * stride]
    products = sums[info[P_MERGED] + (active - 1) * stride : info[P_MERGED] + (2 * active - 1) * stride]
    temporary = sums[info[P_MERGED] + (2 * active - 1) * stride :][:inner]
    products[:inner] = base
    place = np.empty(active, np.int64)
    a = 0
    for level in range(info[P_LEVEL0], info[P_LEVEL0] + info[P_LEVELS]):
        if levels[level, L_GROUP1] > levels[level, L_GROUP0]:
            place[a] = level
            a += 1
    changes = maps[info[P_CHANGE] : info[P_CHANGE] + info[P_ROWS]]
    deepest = place[active - 1]
    d0 = levels[deepest, L_GROUP0]
    d1 = levels[deepest, L_GROUP1]
    carries = levels[deepest, L_CARRIED] > 0
    factors = 0
    outs = 0
    factor_group = d0
    out_group = d0
    for g in range(d0, d1):
        if groups[g, G_FACTOR] >= 0:
            factors += 1
            factor_group = g
        if groups[g, G_SUM] >= 0:
            outs += 1
            out_group = g
    factor_map = maps[groups[factor_group, G_MAP] : groups[factor_group, G_MAP] + info[P_ROWS]]
    out_map = maps[groups[out_group, G_MAP] : groups[out_group, G_MAP] + info[P_ROWS]]
    factor_matrix = work[max(groups[factor_group, G_FACTOR], 0) :]
    out_matrix = sums[max(groups[out_group, G_SUM], 0) :]
    above = products[(active - 1) * stride : (active - 1) * stride + inner]
    target = carried[(active - 1) * stride : (active - 1) * stride + inner]
    for q in range(q0, q1):
        changed = changes[q] if q > q0 else 0
        if changed < active - 1:
            if q > q0:
                _carry(levels, groups, maps, place, carried, sums, inner, stride, active, changed, q - 1)
            _descend(levels, groups, maps, place, products, work, inner, stride, active, changed, q)
        s = scale[q]
        if factors == 1 and outs <= 1:
            row = factor_map[q] * stride
            factor = factor_matrix[row : row + inner]
            if outs == 1:
                row = out_map[q] * stride
                out = out_matrix[row : row + inner]
                if carries:
                    totals[q] = _dot_add_both(above, factor, s, out, target)
                else:
                    totals[q] = _dot_add(above, factor, s, out)
            elif carries:
                totals[q] = _dot_add(above, factor, s, target)
            else:
                totals[q] = _dot(above, factor)
            continue
        temporary[:] = above
        for g in range(d0, d1):
            if groups[g, G_FACTOR] >= 0:
                begin = groups[g, G_FACTOR] + maps[groups[g, G_MAP] + q] * stride
                factor = work[begin : begin + inner]
                for j in range(inner):
                    temporary[j] *= factor[j]
        total = 0.0
        for j in range(inner):
            total += temporary[j]
            temporary[j] *= s
        totals[q] = total
        if carries:
            for j in range(inner):
                target[j] += temporary[j]
        for g in range(d0, d1):
            if groups[g, G_SUM] >= 0:
                begin = groups[g, G_SUM] + maps[groups[g, G_MAP] + q] * stride
                out = sums[begin : begin + inner]
                for j in range(inner):
                    out[j] += temporary[j]
    if q1 > q0:
        _carry(levels, groups, maps, place, carried, sums, inner, stride, active, 0, q1 - 1)


@kernel
def _descend(levels, groups, maps, place, products, work, inner, stride, active, changed, q):  # type: ignore[no-untyped-def]
    """Running products of the levels above the deepest, from the outermost whose index changed."""
    for k in range(changed, active - 1):
        above = products[k * stride : k * stride + inner]
        below = products[(k + 1) * stride : (k + 1) * stride + inner]
        first = True
        for g in range(levels[place[k], L_GROUP0], levels[place[k], L_GROUP1]):
            if groups[g, G_FACTOR] < 0:
                continue
            begin = groups[g, G_FACTOR] + maps[groups[g, G_MAP] + q] * stride
            factor = work[begin : begin + inner]
            if first:
                for j in range(inner):
                    below[j] = above[j] * factor[j]
                first = False
            else:
                for j in range(inner):
                    below[j] *= factor[j]
        if first:
            below[:] = above


@kernel
def _carry(levels, groups, maps, place, carried, sums, inner, stride, active, changed, q):  # type: ignore[no-untyped-def]
    """Add the sums of finished levels to their groups and to the level above, where anything there needs them."""
    for k in range(active - 2, changed - 1, -1):
        if levels[place[k + 1], L_CARRIED] == 0:
            return
        source = carried[(k + 1) * stride : (k + 1) * stride + inner]
        for g in range(levels[place[k], L_GROUP0], levels[place[k], L_GROUP1]):
            if groups[g, G_SUM] >= 0:
                begin = groups[g, G_SUM] + maps[groups[g, G_MAP] + q] * stride
                out = sums[begin : begin + inner]
                for j in range(inner):
                    out[j] += source[j]
        if levels[place[k], L_CARRIED] > 0:
            target = carried[k * stride : k * stride + inner]
            for j in range(inner):
                target[j] += source[j]
        source[:] = 0.0


@kernel(fastmath=VECTOR)
def _finish(info, levels, groups, terms, maps, children, tables, marginals, work, sums, blocks):  # type: ignore[no-untyped-def]
    """Merge the blocks of one pass, write its marginals and messages; returns the log of its scale."""
    inner = info[P_INNER]
    merged = sums[0]
    for b in range(1, blocks):
        part = sums[b]
        for i in range(info[P_MERGED]):
            merged[i] += part[i]
    everything = merged[info[P_MERGED] - info[P_STRIDE] :]
    rows = info[P_ROWS]
    scale = work[info[P_SUMS] : info[P_SUMS] + rows]
    totals = work[info[P_SUMS] + rows : info[P_SUMS] + 2 * rows]
    mass = 0.0
    for q in range(rows):
        mass += scale[q] * totals[q]
    if not (mass > 0.0 and mass < np.inf):
        return np.nan
    unit = 1.0 / mass
    for t in range(info[P_OUT0], info[P_OUT1]):
        out = marginals[terms[t, T_TABLE] :]
        columns = maps[terms[t, T_INNER] : terms[t, T_INNER] + inner]
        for j in range(inner):
            out[columns[j]] += everything[j] * unit
    for g in range(info[P_GROUP0], info[P_GROUP1]):
        if groups[g, G_SUM] < 0:
            continue
        for r in range(groups[g, G_ROWS]):
            begin = groups[g, G_SUM] + r * info[P_STRIDE]
            row = merged[begin : begin + inner]
            for t in range(groups[g, G_OUT0], groups[g, G_OUT1]):
                out = marginals[terms[t, T_TABLE] + maps[terms[t, T_ROWS] + r] :]
                columns = maps[terms[t, T_INNER] : terms[t, T_INNER] + inner]
                for j in range(inner):
                    out[columns[j]] += row[j] * unit
    # Row sums, from the last level upwards; each level's products make room for them.
    for level in range(info[P_LEVEL0] + info[P_LEVELS] - 1, info[P_LEVEL0] - 1, -1):
        count = levels[level, L_ROWS]
        here = work[levels[level, L_PRODUCTS] : levels[level, L_PRODUCTS] + count]
        if level == info[P_LEVEL0] + info[P_LEVELS] - 1:
            tail = count // rows
            for q in range(rows):
                weight = totals[q] * unit
                for k in range(q * tail, (q + 1) * tail):
                    here[k] *= weight
        else:
            size = levels[level + 1, L_ROWS] // count
            lower = work[levels[level + 1, L_PRODUCTS] : levels[level + 1, L_PRODUCTS] + count * size]
            for i in range(count):
                total = 0.0
                for k in range(i * size, (i + 1) * size):
                    total += lower[k]
                here[i] = total
        for t in range(levels[level, L_OUT0], levels[level, L_OUT1]):
            out = marginals[terms[t, T_TABLE] :]
            index = maps[terms[t, T_ROWS] : terms[t, T_ROWS] + count]
            for i in range(count):
                out[index[i]] += here[i]
    if info[P_ROLE] == COLLECT:
        n = info[P_SEPARATOR]
        message = tables[info[P_UP] : info[P_UP] + n]
        belief = marginals[info[P_DOWN] : info[P_DOWN] + n]
        top = 0.0
        for i in range(n):
            top = max(top, belief[i])
        for i in range(n):
            message[i] = belief[i] / top
            belief[i] = 0.0
        return math.log(mass * top)
    for c in range(info[P_CHILD0], info[P_CHILD1]):
        # The child's own message is divided out of the belief it helped to form.
        n = children[c, 0]
        belief = marginals[children[c, 1] : children[c, 1] + n]
        up = tables[children[c, 2] : children[c, 2] + n]
        down = tables[children[c, 3] : children[c, 3] + n]
        top = 0.0
        for i in range(n):
            down[i] = belief[i] / up[i] if up[i] > 0.0 else 0.0
            top = max(top, down[i])
        for i in range(n):
            down[i] /= top
    return math.log(mass) if info[P_ROLE] == ROOT else 0.0


@kernel
def propagate(stages, wide, order, passes, levels, groups, terms, maps, children, blocks, tables, marginals, work, sums):  # type: ignore[no-untyped-def]
    """Run all passes: collect towards the roots, then distribute; on one thread.

    Args:
        stages: begin of each stage in ``order`` [shape=(stages + 1,)]; passes of a stage are independent.
        wide: which stages are worth several threads [shape=(stages,), bool].
        order: pass indices.
        passes, levels, groups, terms, children: the program [int64; columns as named above].
        maps: index maps [int32].
        blocks: pass, first row, last row, offset and length in ``sums`` [shape=(blocks, 5), int64].
        tables: factors and messages, flat [float64]; messages are written.
        marginals: factors' marginals and separator beliefs, flat [float64]; written, each sums to 1.
        work: scratch [float64].
        sums: scratch, the blocks' sums [float64].

    Returns:
        The log of the sum over all cells of the product of the factors; NaN when that is 0 or not finite.
    """
    marginals[:] = 0.0
    log_total = 0.0
    for s in range(stages.size - 1):
        for i in range(stages[s], stages[s + 1]):
            p = order[i]
            _prepare(passes[p], levels, groups, terms, maps, tables, work)
            for b in range(passes[p, P_BLOCK0], passes[p, P_BLOCK1]):
                part = sums[blocks[b, 3] : blocks[b, 3] + blocks[b, 4]]
                _run_rows(passes[p], levels, groups, maps, work, part, blocks[b, 1], blocks[b, 2])
            log_total += _finish_pass(
                passes[p], levels, groups, terms, maps, children, blocks, tables, marginals, work, sums
            )
    return log_total


@kernel
def _finish_pass(info, levels, groups, terms, maps, children, blocks, tables, marginals, work, sums):  # type: ignore[no-untyped-def]
    b0 = info[P_BLOCK0]
    count = info[P_BLOCK1] - b0
    length = blocks[b0, 4]
    parts = sums[blocks[b0, 3] : blocks[b0, 3] + count * length].reshape((count, length))
    return _finish(info, levels, groups, terms, maps, children, tables, marginals, work, parts, count)


@parallel_kernel
def propagate_parallel(  # type: ignore[no-untyped-def]
    stages, wide, order, passes, levels, groups, terms, maps, children, blocks, tables, marginals, work, sums
):
    """As :func:`propagate`, the passes of a stage and the blocks of a pass on several threads; the same bits."""
    marginals[:] = 0.0
    log_total = 0.0
    for s in range(stages.size - 1):
        begin = stages[s]
        count = stages[s + 1] - begin
        b0 = passes[order[begin], P_BLOCK0]
        b1 = passes[order[stages[s + 1] - 1], P_BLOCK1]
        if not wide[s]:
            for i in range(begin, stages[s + 1]):
                p = order[i]
                _prepare(passes[p], levels, groups, terms, maps, tables, work)
                for b in range(passes[p, P_BLOCK0], passes[p, P_BLOCK1]):
                    part = sums[blocks[b, 3] : blocks[b, 3] + blocks[b, 4]]
                    _run_rows(passes[p], levels, groups, maps, work, part, blocks[b, 1], blocks[b, 2])
                log_total += _finish_pass(
                    passes[p], levels, groups, terms, maps, children, blocks, tables, marginals, work, sums
                )
            continue
        for i in prange(count):
            _prepare(passes[order[begin + i]], levels, groups, terms, maps, tables, work)
        for b in prange(b0, b1):
            p = blocks[b, 0]
            part = sums[blocks[b, 3] : blocks[b, 3] + blocks[b, 4]]
            _run_rows(passes[p], levels, groups, maps, work, part, blocks[b, 1], blocks[b, 2])
        logs = np.empty(count)
        for i in prange(count):
            logs[i] = _finish_pass(
                passes[order[begin + i]], levels, groups, terms, maps, children, blocks, tables, marginals, work, sums
            )
        for i in range(count):
            log_total += logs[i]
    return log_total


@kernel
def potentials(theta, factors, terms, maps, tables):  # type: ignore[no-untyped-def]
    """Factors in linear space, each with maximum 1, from the parameters of the measurements.

    Args:
        theta: parameters, flat over the measurements' cells [float64].
        factors: first cell in ``tables``, cells, first and last term [shape=(f, 4), int64].
        terms: offset in ``theta`` and in ``maps`` of each measurement read by a factor [shape=(t, 2), int64].
        maps: for every cell of a factor the measurement's cell [int32].
        tables: written [float64].

    Returns:
        The sum of the logs that were taken off.
    """
    shift = 0.0
    for f in range(factors.shape[0]):
        n = factors[f, 1]
        table = tables[factors[f, 0] : factors[f, 0] + n]
        table[:] = 0.0
        for t in range(factors[f, 2], factors[f, 3]):
            part = theta[terms[t, 0] :]
            cells = maps[terms[t, 1] : terms[t, 1] + n]
            for i in range(n):
                table[i] += part[cells[i]]
        top = table[0]
        for i in range(n):
            top = max(top, table[i])
        for i in range(n):
            table[i] = math.exp(table[i] - top)
        shift += top
    return shift


@kernel
def expected_counts(marginals, factors, terms, maps, total, counts):  # type: ignore[no-untyped-def]
    """Add the factors' marginals, times ``total``, to the measurements' cells (the transpose of :func:`potentials`)."""
    counts[:] = 0.0
    for f in range(factors.shape[0]):
        n = factors[f, 1]
        table = marginals[factors[f, 0] : factors[f, 0] + n]
        for t in range(factors[f, 2], factors[f, 3]):
            part = counts[terms[t, 0] :]
            cells = maps[terms[t, 1] : terms[t, 1] + n]
            for i in range(n):
                part[cells[i]] += total * table[i]
