"""Kernels for marginals that no clique contains.

They multiply and sum clique tables, and carry conditionals along a tree.

Tables are flat and addressed by strides. Callers merge neighbouring axes that the other table
treats in the same way, so that few long axes remain. The last axis is the inner loop.

Axes: k = merged axes of a table; s = cells of a separator; w = columns carried at once (values of
attributes left behind).
"""

from __future__ import annotations

import numpy as np

from .jit import VECTOR, callee, kernel


@kernel
def multiply_onto(out, shape, strides, table):  # type: ignore[no-untyped-def]
    """Multiply a table into one that has all of its axes.

    Args:
        out: larger table, updated [flat over ``shape``, float64].
        shape: merged axes of ``out``, two or more [shape=(k,), int64].
        strides: strides of ``table`` along them, 0 for axes that it lacks [shape=(k,), int64].
        table: smaller table [flat, float64].
    """
    middle, inner = shape[-2], shape[-1]
    across, step = strides[-2], strides[-1]
    index = np.zeros(shape.size, np.int64)
    place = np.int64(0)
    for begin in range(0, out.size, middle * inner):
        for i in range(middle):
            target = np.uint64(begin + i * inner)
            source = np.uint64(place + i * across)
            if step == 0:
                factor = table[source]
                for j in range(np.uint64(inner)):
                    out[target + j] *= factor
            else:
                for j in range(np.uint64(inner)):
                    out[target + j] *= table[source + j * np.uint64(step)]
        place = _advance(index, shape, strides, place)


@kernel
def add_bins(table, bins, out):  # type: ignore[no-untyped-def]
    """Sum the middle axis of a table over bins.

    Args:
        table: [shape=(before, values, after), float64].
        bins: the map value -> bin [shape=(values,), int64].
        out: updated [shape=(before, number of bins, after), float64].
    """
    for x in range(table.shape[0]):
        for i in range(bins.size):
            for j in range(table.shape[2]):
                out[x, bins[i], j] += table[x, i, j]


@kernel(fastmath=VECTOR)
def sum_onto(table, shape, strides, out):  # type: ignore[no-untyped-def]
    """Sum a table onto one that lacks some of its axes.

    Args:
        table: larger table [flat over ``shape``, float64].
        shape: its merged axes, two or more [shape=(k,), int64].
        strides: strides of ``out`` along them, 0 for axes that are summed [shape=(k,), int64].
        out: smaller table, updated [flat, float64].
    """
    middle, inner = shape[-2], shape[-1]
    across, step = strides[-2], strides[-1]
    index = np.zeros(shape.size, np.int64)
    place = np.int64(0)
    for begin in range(0, table.size, middle * inner):
        if step == 0:
            for i in range(middle):
                source = np.uint64(begin + i * inner)
                total = 0.0
                for j in range(np.uint64(inner)):
                    total += table[source + j]
                out[np.uint64(place + i * across)] += total
        else:
            for i in range(middle):
                source = np.uint64(begin + i * inner)
                target = np.uint64(place + i * across)
                for j in range(np.uint64(inner)):
                    out[target + j * np.uint64(step)] += table[source + j]
        place = _advance(index, shape, strides, place)


@callee
def _advance(index, shape, strides, place):  # type: ignore[no-untyped-def]
    """Step to the next walk over the last two axes, and return its place in the strided table."""
    for axis in range(shape.size - 3, -1, -1):
        index[axis] += 1
        place += strides[axis]
        if index[axis] < shape[axis]:
            return place
        place -= shape[axis] * strides[axis]
        index[axis] = 0
    return place


@kernel(fastmath=VECTOR)
def carry(given, first, rows, steps, joint, mass, out, place, width):  # type: ignore[no-untyped-def]
    """Carry conditionals between separators of a clique: P(x | s') = sum over s of P(x | s) P(s |
    s').

    Args:
        given: P(x | s) at the first separator [shape=(s, columns), float64].
        first: first column of ``given`` to carry.
        rows: row of ``given`` at which each cell of the other separator begins [shape=(s',),
            int64].
        steps: offsets from there of the rows of cells that agree on the shared attributes
            [shape=(a,), int64].
        joint: P(s', s) [shape=(s', a), float64].
        mass: P(s') [shape=(s',), float64].
        out: the result, written from column ``place`` on [shape=(s', columns), float64].
        place, width: first column written, and number of columns.
    """
    many = steps.size
    for i in range(out.shape[0]):
        row = out[i, place : place + width]
        for x in range(width):
            row[x] = 0.0
        if not mass[i] > 0.0:
            continue
        begin = rows[i]
        unit = 1.0 / mass[i]
        a = 0
        while a + 4 <= many:
            p, q, r, s = (
                joint[i, a] * unit,
                joint[i, a + 1] * unit,
                joint[i, a + 2] * unit,
                joint[i, a + 3] * unit,
            )
            g, h = given[begin + steps[a], first:], given[begin + steps[a + 1], first:]
            k, m = given[begin + steps[a + 2], first:], given[begin + steps[a + 3], first:]
            for x in range(width):
                row[x] += p * g[x] + q * h[x] + r * k[x] + s * m[x]
            a += 4
        while a < many:
            p = joint[i, a] * unit
            g = given[begin + steps[a], first:]
            for x in range(width):
                row[x] += p * g[x]
            a += 1


@kernel(fastmath=VECTOR)
def collect(given, begin, joint, out):  # type: ignore[no-untyped-def]
    """Marginals of an attribute and the carried ones: P(b, x) = sum over s of P(b, s) P(x | s).

    Args:
        given: P(x | s) [shape=(s, columns), float64].
        begin: first column to use.
        joint: P(b, s) [shape=(values, s), float64].
        out: marginals, written [shape=(values, w), float64].
    """
    width = out.shape[1]
    many = given.shape[0]
    out[:, :] = 0.0
    # A few rows at a time stay in the first-level cache for all values.
    for first in range(0, many, 32):
        last = min(first + 32, many)
        for b in range(out.shape[0]):
            row = out[b]
            s = first
            while s + 4 <= last:
                p, q, r, t = joint[b, s], joint[b, s + 1], joint[b, s + 2], joint[b, s + 3]
                g, h, k, m = (
                    given[s, begin:],
                    given[s + 1, begin:],
                    given[s + 2, begin:],
                    given[s + 3, begin:],
                )
                for x in range(width):
                    row[x] += p * g[x] + q * h[x] + r * k[x] + t * m[x]
                s += 4
            while s < last:
                p = joint[b, s]
                g = given[s, begin:]
                for x in range(width):
                    row[x] += p * g[x]
                s += 1
