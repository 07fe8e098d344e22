"""Belief propagation kernels: multiply and marginalise clique tables without storing them.

A pass visits every cell of one clique once, multiplies its factors and messages and sums the
product onto every table that is needed. The attributes of the clique are split into an outer part,
walked row by row with the first attribute slowest, and an inner part, one contiguous block of J
cells. A factor (or a marginal) is then of one of three kinds:

* inner only: multiplied once into the block's start vector; read from the sum A of all rows;
* outer only: a scalar per row, multiplied level by level; read from the row sums T;
* crossing: a factor with outer attributes U belongs to the group of U. The factors of a group are
  first merged into one matrix G [rows of U, J]; marginals are read from H [rows of U, J]. A table
  whose last axes are exactly the inner attributes is such a matrix already, and is read and written
  in place. Large separators are of this kind.

A group acts at the level of its last outer attribute. The running product of a level is reused by
all rows below it, and sums are carried upwards when the index of a level advances. So, whatever the
number of factors, a cell costs about one multiplication and three additions in contiguous loops,
and memory traffic is limited to G, H and a few vectors of J. Rows that differ in the deepest level
only form a run, which one call handles.

Rows are cut into blocks that do not depend on the number of threads, and the sums of blocks are
merged in order. So results do not depend on it either. Everything lies in one flat array with
unsigned offsets, because slices would cost as much as the arithmetic.

Axes: p = passes; l = levels; g = groups; t = terms (a factor read or a marginal written); b =
blocks of rows.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import VECTOR, callee, kernel

# Columns of the integer tables that describe passes, levels, groups, terms, children and blocks of
# rows; vertimrf.model.propagation fills them in. Names ending in 0 and 1 are a first index and one past
# the last.
P_INNER, P_STRIDE, P_ROWS, P_RUN, P_LEVELS, P_ACTIVE, P_LEVEL0, P_GROUP0, P_GROUP1, P_BASE0 = range(
    10
)
P_BASE1, P_OUT0, P_OUT1, P_CHANGE, P_WORK, P_SCALE, P_TOTALS, P_MERGED, P_BLOCK0, P_BLOCK1 = range(
    10, 20
)
P_ROLE, P_UP, P_SEPARATOR, P_CHILD0, P_CHILD1, P_COLUMNS = range(20, 26)
L_ROWS, L_PRODUCTS, L_IN0, L_IN1, L_OUT0, L_OUT1, L_GROUP0, L_GROUP1, L_CARRIED, L_COLUMNS = range(
    10
)
# A group's matrices begin at G_FACTOR and G_SUM (-1: none). The row of a run lies G_STEP times its
# map's entry further on, and the rows of a run are G_ADVANCE apart. In place (G_PLACE), the sums
# are a table, of which G_CELLS cells are normalised probabilities; otherwise they are relative to
# the block's own sums.
(
    G_ROWS,
    G_MAP,
    G_STEP,
    G_ADVANCE,
    G_PLACE,
    G_CELLS,
    G_FACTOR,
    G_SUM,
    G_IN0,
    G_IN1,
    G_OUT0,
    G_OUT1,
) = range(12)
G_COLUMNS = 12
# Columns of a term advance in runs of T_RUN cells, all on one cell of the table or, with T_ALONG,
# along it.
T_TABLE, T_ROWS, T_INNER, T_RUN, T_ALONG, T_COLUMNS = range(6)
C_CELLS, C_UP, C_DOWN, C_COLUMNS = range(4)
B_FIRST, B_LAST, B_SUMS, B_COLUMNS = range(4)

COLLECT, DISTRIBUTE, ROOT = range(3)
# Parts of a pass; sums select several.
PREPARE, BLOCKS, FINISH = 1, 2, 4
WHOLE = PREPARE | BLOCKS | FINISH

# A bare 0 is a separate type to Numba, which would compile its callees again.
NONE, ONE = np.int64(0), np.int64(1)


@callee
def _fill(memory, begin, cells, value):  # type: ignore[no-untyped-def]
    for i in range(np.uint64(begin), np.uint64(begin + cells)):
        memory[i] = value


@callee
def _multiply(memory, first, second, out, cells):  # type: ignore[no-untyped-def]
    a, b, o = np.uint64(first), np.uint64(second), np.uint64(out)
    for j in range(np.uint64(cells)):
        memory[o + j] = memory[a + j] * memory[b + j]


@callee
def _add(memory, source, out, cells, factor):  # type: ignore[no-untyped-def]
    a, o = np.uint64(source), np.uint64(out)
    for j in range(np.uint64(cells)):
        memory[o + j] += memory[a + j] * factor


@callee(fastmath=VECTOR, forceinline=True)
def _sum(memory, begin, cells):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(np.uint64(begin), np.uint64(begin + cells)):
        total += memory[i]
    return total


@callee
def _scale(memory, begin, cells):  # type: ignore[no-untyped-def]
    """Divide non-negative cells by their maximum, which is returned.

    The bits of such numbers have their order, and the maximum of whole numbers is vectorised.
    """
    bits = memory.view(np.int64)
    highest = NONE
    for i in range(np.uint64(begin), np.uint64(begin + cells)):
        highest = max(highest, bits[i])
    one = np.empty(1)
    one.view(np.int64)[0] = highest
    top = one[0]
    factor = 1.0 / top
    for i in range(np.uint64(begin), np.uint64(begin + cells)):
        memory[i] *= factor
    return top


@callee(fastmath=VECTOR, forceinline=True)
def _dots(memory, above, factor, step, rows, cells, totals):  # type: ignore[no-untyped-def]
    """Row sums of ``above`` times every factor row."""
    a = np.uint64(above)
    for x in range(rows):
        f = np.uint64(factor + x * step)
        total = 0.0
        for j in range(np.uint64(cells)):
            total += memory[a + j] * memory[f + j]
        memory[totals + x] = total


@callee(fastmath=VECTOR, forceinline=True)
def _dots_add(memory, above, factor, step, out, out_step, rows, cells, scale, totals):  # type: ignore[no-untyped-def]
    """As :func:`_dots`; also add each product times its row's scale to ``out``."""
    a = np.uint64(above)
    for x in range(rows):
        f, o = np.uint64(factor + x * step), np.uint64(out + x * out_step)
        s = memory[scale + x]
        total = 0.0
        for j in range(np.uint64(cells)):
            value = memory[a + j] * memory[f + j]
            total += value
            memory[o + j] += value * s
        memory[totals + x] = total


@callee(fastmath=VECTOR, forceinline=True)
def _dots_add_both(  # type: ignore[no-untyped-def]
    memory, above, factor, step, out, out_step, other, other_step, rows, cells, scale, totals
):
    """As :func:`_dots_add`, adding to two places."""
    a = np.uint64(above)
    for x in range(rows):
        f, o, p = (
            np.uint64(factor + x * step),
            np.uint64(out + x * out_step),
            np.uint64(other + x * other_step),
        )
        s = memory[scale + x]
        total = 0.0
        for j in range(np.uint64(cells)):
            value = memory[a + j] * memory[f + j]
            total += value
            value *= s
            memory[o + j] += value
            memory[p + j] += value
        memory[totals + x] = total


@callee
def _times_table(terms, maps, memory, t, offset, out, cells):  # type: ignore[no-untyped-def]
    """Multiply a vector by a term's table, read at the columns' cells."""
    table = np.uint64(terms[t, T_TABLE] + offset)
    columns = maps[terms[t, T_INNER] : terms[t, T_INNER] + cells]
    o = np.uint64(out)
    run = terms[t, T_RUN]
    if run == 1:
        for j in range(np.uint64(cells)):
            memory[o + j] *= memory[table + np.uint64(columns[j])]
        return
    for begin in range(0, cells, run):
        source = table + np.uint64(columns[begin])
        target = o + np.uint64(begin)
        if terms[t, T_ALONG]:
            for j in range(np.uint64(run)):
                memory[target + j] *= memory[source + j]
        else:
            factor = memory[source]
            for j in range(np.uint64(run)):
                memory[target + j] *= factor


@callee(fastmath=VECTOR, forceinline=True)
def _onto_table(terms, maps, memory, t, offset, source, cells, unit):  # type: ignore[no-untyped-def]
    """Sum a vector times ``unit`` onto a term's table, written at the columns' cells."""
    table = np.uint64(terms[t, T_TABLE] + offset)
    columns = maps[terms[t, T_INNER] : terms[t, T_INNER] + cells]
    s = np.uint64(source)
    run = terms[t, T_RUN]
    if run == 1:
        for j in range(np.uint64(cells)):
            memory[table + np.uint64(columns[j])] += memory[s + j] * unit
        return
    for begin in range(0, cells, run):
        target = table + np.uint64(columns[begin])
        first = s + np.uint64(begin)
        if terms[t, T_ALONG]:
            for j in range(np.uint64(run)):
                memory[target + j] += memory[first + j] * unit
        else:
            total = 0.0
            for j in range(np.uint64(run)):
                total += memory[first + j]
            memory[target] += total * unit


@callee
def _prepare(info, levels, groups, terms, maps, children, memory):  # type: ignore[no-untyped-def]
    """Start vector, row scalars and group matrices of one pass; the messages that it writes, at 0."""
    inner = info[P_INNER]
    if info[P_ROLE] == COLLECT:
        _fill(memory, info[P_UP], info[P_SEPARATOR], 0.0)
    for c in range(info[P_CHILD0], info[P_CHILD1]):
        _fill(memory, children[c, C_DOWN], children[c, C_CELLS], 0.0)
    _fill(memory, info[P_WORK], inner, 1.0)
    for t in range(info[P_BASE0], info[P_BASE1]):
        _times_table(terms, maps, memory, t, NONE, info[P_WORK], inner)
    above = 1
    for level in range(info[P_LEVEL0], info[P_LEVEL0] + info[P_LEVELS]):
        rows = levels[level, L_ROWS]
        size = rows // above
        here = levels[level, L_PRODUCTS]
        for i in range(above):
            upper = 1.0 if level == info[P_LEVEL0] else memory[levels[level - 1, L_PRODUCTS] + i]
            _fill(memory, here + i * size, size, upper)
        for t in range(levels[level, L_IN0], levels[level, L_IN1]):
            table = np.uint64(terms[t, T_TABLE])
            index = maps[terms[t, T_ROWS] : terms[t, T_ROWS] + rows]
            first = np.uint64(here)
            for i in range(np.uint64(rows)):
                memory[first + i] *= memory[table + np.uint64(index[i])]
        above = rows
    # Levels below the last one that carries a group only matter through their sum.
    if info[P_LEVELS] == 0:
        memory[info[P_SCALE]] = 1.0
    else:
        last = info[P_LEVEL0] + info[P_LEVELS] - 1
        tail = levels[last, L_ROWS] // info[P_ROWS]
        for q in range(info[P_ROWS]):
            memory[info[P_SCALE] + q] = _sum(memory, levels[last, L_PRODUCTS] + q * tail, tail)
    for g in range(info[P_GROUP0], info[P_GROUP1]):
        if groups[g, G_FACTOR] < 0 or groups[g, G_PLACE]:
            continue
        for r in range(groups[g, G_ROWS]):
            row = groups[g, G_FACTOR] + r * info[P_STRIDE]
            _fill(memory, row, inner, 1.0)
            for t in range(groups[g, G_IN0], groups[g, G_IN1]):
                _times_table(
                    terms, maps, memory, t, np.int64(maps[terms[t, T_ROWS] + r]), row, inner
                )


@callee
def _factor_row(groups, maps, g, run):  # type: ignore[no-untyped-def]
    return groups[g, G_FACTOR] + maps[groups[g, G_MAP] + run] * groups[g, G_STEP]


@callee
def _sum_row(groups, maps, g, run, sums):  # type: ignore[no-untyped-def]
    begin = groups[g, G_SUM] + maps[groups[g, G_MAP] + run] * groups[g, G_STEP]
    return begin if groups[g, G_PLACE] else begin + sums


@callee
def _active_levels(info, levels):  # type: ignore[no-untyped-def]
    """The levels that have groups, in order."""
    place = np.empty(info[P_ACTIVE], np.int64)
    a = 0
    for level in range(info[P_LEVEL0], info[P_LEVEL0] + info[P_LEVELS]):
        if levels[level, L_GROUP1] > levels[level, L_GROUP0]:
            place[a] = level
            a += 1
    return place


@callee
def _groups_with(groups, first, last, column):  # type: ignore[no-untyped-def]
    """Those of some groups that have a matrix: factors (G_FACTOR) or sums (G_SUM)."""
    out = np.empty(last - first, np.int64)
    count = 0
    for g in range(first, last):
        if groups[g, column] >= 0:
            out[count] = g
            count += 1
    return out[:count]


@callee
def _run_block(info, block, levels, groups, maps, memory):  # type: ignore[no-untyped-def]
    """The rows of one block.

    Its own space in ``memory`` holds the matrices H, then A, then scratch.
    """
    inner = info[P_INNER]
    stride = info[P_STRIDE]
    active = info[P_ACTIVE]
    sums = block[B_SUMS]
    # carried + k * stride takes the sums of the rows below active level k - 1, the first of them
    # being A; products + k * stride stands above active level k.
    carried = sums + info[P_MERGED] - stride
    products = carried + active * stride
    temporary = products + active * stride
    _fill(memory, sums, info[P_MERGED] + max(active - 1, 0) * stride, 0.0)
    if active == 0:
        memory[info[P_TOTALS]] = _sum(memory, info[P_WORK], inner)
        _add(memory, info[P_WORK], sums + info[P_MERGED] - stride, inner, memory[info[P_SCALE]])
        return
    _fill(memory, products, inner, 1.0)
    _multiply(memory, products, info[P_WORK], products, inner)
    _fill(memory, temporary, inner, 1.0)
    place = _active_levels(info, levels)
    deepest = levels[place[active - 1]]
    reads = _groups_with(groups, deepest[L_GROUP0], deepest[L_GROUP1], np.int64(G_FACTOR))
    writes = _groups_with(groups, deepest[L_GROUP0], deepest[L_GROUP1], np.int64(G_SUM))
    # Places that a run's products are added to, and how far apart its rows are there.
    targets = np.empty(writes.size + 1, np.int64)
    steps = np.zeros(writes.size + 1, np.int64)
    targets[writes.size] = carried + (active - 1) * stride
    goals = (targets, steps, writes.size + (deepest[L_CARRIED] > 0))
    where = (place, carried, products, sums, inner, stride, active)
    above = products + (active - 1) * stride
    rows = info[P_RUN]
    first = block[B_FIRST] // rows
    last = block[B_LAST] // rows
    for run in range(first, last):
        changed = maps[info[P_CHANGE] + run] if run > first else 0
        if changed < active - 1:
            if run > first:
                _carry(levels, groups, maps, memory, where, changed, run - 1)
            _descend(levels, groups, maps, memory, where, changed, run)
        for i in range(writes.size):
            targets[i] = _sum_row(groups, maps, writes[i], run, sums)
            steps[i] = groups[writes[i], G_ADVANCE]
        scale = info[P_SCALE] + run * rows
        totals = info[P_TOTALS] + run * rows
        if reads.size == 1:
            row = _factor_row(groups, maps, reads[0], run)
            step = groups[reads[0], G_ADVANCE]
            _run_rows(memory, above, row, step, goals, NONE, rows, inner, scale, totals)
            continue
        for x in range(rows):
            # All factors but the last are multiplied first. Without any, the row is one of ones.
            factor, row = above, temporary
            for i in range(reads.size):
                row = _factor_row(groups, maps, reads[i], run) + x * groups[reads[i], G_ADVANCE]
                if i < reads.size - 1:
                    _multiply(memory, factor, row, temporary, inner)
                    factor = temporary
            _run_rows(memory, factor, row, NONE, goals, x, ONE, inner, scale + x, totals + x)
    if last > first:
        _carry(levels, groups, maps, memory, where, NONE, last - 1)


@callee
def _run_rows(  # type: ignore[no-untyped-def]
    memory, above, factor, step, goals, x, rows, cells, scale, totals
):
    """Products of a run's rows, from row ``x`` on, onto all targets, two at a time."""
    targets, steps, count = goals
    if count == 0:
        _dots(memory, above, factor, step, rows, cells, totals)
    for i in range(0, count - 1, 2):
        out = targets[i] + x * steps[i]
        j = i + 1
        other = targets[j] + x * steps[j]
        _dots_add_both(
            memory, above, factor, step, out, steps[i], other, steps[j], rows, cells, scale, totals
        )
    if count % 2:
        i = count - 1
        out = targets[i] + x * steps[i]
        _dots_add(memory, above, factor, step, out, steps[i], rows, cells, scale, totals)


@callee
def _descend(levels, groups, maps, memory, where, changed, run):  # type: ignore[no-untyped-def]
    """Running products of the levels above the deepest, from the outermost whose index changed."""
    place, _, products, _, inner, stride, active = where
    for k in range(changed, active - 1):
        source = products + k * stride
        below = source + stride
        for g in range(levels[place[k], L_GROUP0], levels[place[k], L_GROUP1]):
            if groups[g, G_FACTOR] >= 0:
                _multiply(memory, source, _factor_row(groups, maps, g, run), below, inner)
                source = below
        if source != below:
            _fill(memory, below, inner, 0.0)
            _add(memory, source, below, inner, 1.0)


@callee
def _carry(levels, groups, maps, memory, where, changed, run):  # type: ignore[no-untyped-def]
    """Add the sums of finished levels to their groups and to the level above, if needed there."""
    place, carried, _, sums, inner, stride, active = where
    for k in range(active - 2, changed - 1, -1):
        if levels[place[k + 1], L_CARRIED] == 0:
            return
        source = carried + (k + 1) * stride
        for g in range(levels[place[k], L_GROUP0], levels[place[k], L_GROUP1]):
            if groups[g, G_SUM] >= 0:
                _add(memory, source, _sum_row(groups, maps, g, run, sums), inner, 1.0)
        if levels[place[k], L_CARRIED] > 0:
            _add(memory, source, carried + k * stride, inner, 1.0)
        _fill(memory, source, inner, 0.0)


@callee(fastmath=VECTOR, forceinline=True)
def _finish(info, levels, groups, terms, maps, children, blocks, memory):  # type: ignore[no-untyped-def]
    """Merge the blocks of one pass and write its results; returns the log of its scale."""
    inner = info[P_INNER]
    rows = info[P_ROWS]
    sums = blocks[info[P_BLOCK0], B_SUMS]
    for b in range(info[P_BLOCK0] + 1, info[P_BLOCK1]):
        _add(memory, blocks[b, B_SUMS], sums, info[P_MERGED], 1.0)
    mass = 0.0
    for q in range(rows):
        mass += memory[info[P_SCALE] + q] * memory[info[P_TOTALS] + q]
    if not (mass > 0.0 and mass < np.inf):
        return np.nan
    # Messages are scaled to a maximum of 1 below; only marginals are normalised.
    unit = 1.0 if info[P_ROLE] == COLLECT else 1.0 / mass
    for t in range(info[P_OUT0], info[P_OUT1]):
        _onto_table(
            terms, maps, memory, t, NONE, sums + info[P_MERGED] - info[P_STRIDE], inner, unit
        )
    for g in range(info[P_GROUP0], info[P_GROUP1]):
        if groups[g, G_SUM] < 0:
            continue
        if groups[g, G_PLACE]:
            for i in range(
                np.uint64(groups[g, G_SUM]), np.uint64(groups[g, G_SUM] + groups[g, G_CELLS])
            ):
                memory[i] *= unit
            continue
        for r in range(groups[g, G_ROWS]):
            row = sums + groups[g, G_SUM] + r * info[P_STRIDE]
            for t in range(groups[g, G_OUT0], groups[g, G_OUT1]):
                _onto_table(
                    terms, maps, memory, t, np.int64(maps[terms[t, T_ROWS] + r]), row, inner, unit
                )
    # Row sums, from the last level upwards; each level's products make room for them.
    last = info[P_LEVEL0] + info[P_LEVELS] - 1
    for level in range(last, info[P_LEVEL0] - 1, -1):
        count = levels[level, L_ROWS]
        here = levels[level, L_PRODUCTS]
        if level == last:
            tail = count // rows
            for q in range(rows):
                weight = memory[info[P_TOTALS] + q] * unit
                for k in range(here + q * tail, here + (q + 1) * tail):
                    memory[k] *= weight
        else:
            size = levels[level + 1, L_ROWS] // count
            for i in range(count):
                memory[here + i] = _sum(memory, levels[level + 1, L_PRODUCTS] + i * size, size)
        for t in range(levels[level, L_OUT0], levels[level, L_OUT1]):
            table = np.uint64(terms[t, T_TABLE])
            index = maps[terms[t, T_ROWS] : terms[t, T_ROWS] + count]
            first = np.uint64(here)
            for i in range(np.uint64(count)):
                memory[table + np.uint64(index[i])] += memory[first + i]
    if info[P_ROLE] == COLLECT:
        return math.log(_scale(memory, info[P_UP], info[P_SEPARATOR]))
    for c in range(info[P_CHILD0], info[P_CHILD1]):
        # The child's own message is divided out of the belief it helped to form.
        up, down = np.uint64(children[c, C_UP]), np.uint64(children[c, C_DOWN])
        for i in range(np.uint64(children[c, C_CELLS])):
            ratio = memory[down + i] / memory[up + i]
            memory[down + i] = ratio if memory[up + i] > 0.0 else 0.0
        _scale(memory, children[c, C_DOWN], children[c, C_CELLS])
    return math.log(mass) if info[P_ROLE] == ROOT else 0.0


@kernel
def run_passes(  # type: ignore[no-untyped-def]
    parts, p0, p1, b0, b1, passes, levels, groups, terms, maps, children, blocks, memory, logs
):
    """Run passes in order, or parts of them.

    Passes that do not wait for each other may run at the same time, and so may the blocks of a pass
    once it is prepared. One kernel serves all parts, because it takes longest to compile.

    Args:
        parts: sum of PREPARE, BLOCKS and FINISH.
        p0, p1: first pass, and one past the last.
        b0, b1: range of blocks of rows to run, among those of the passes.
        passes, levels, groups, terms, children, blocks: the program [int64; columns as named
            above].
        maps: index maps [int32].
        memory: factors, messages up, messages down and marginals of the factors, initially 0, then
            scratch space [float64].
        logs: log of each pass's scale, written; NaN if a product is 0 everywhere or not finite
            [float64]. Over all passes they sum to the log of the sum over all cells of the product
            of the factors.
    """
    for p in range(p0, p1):
        if parts & PREPARE:
            _prepare(passes[p], levels, groups, terms, maps, children, memory)
        if parts & BLOCKS:
            for b in range(max(b0, passes[p, P_BLOCK0]), min(b1, passes[p, P_BLOCK1])):
                _run_block(passes[p], blocks[b], levels, groups, maps, memory)
        if parts & FINISH:
            logs[p] = _finish(passes[p], levels, groups, terms, maps, children, blocks, memory)
