"""Contingency tables: count records by the cells of marginals.

Each record costs one increment per table. So marginals that are needed together are counted
together: a few attributes form one joint table that fits in the cache, and the marginals inside it
are summed from it.

Axes: d = attributes, n = records.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence

import numba
import numpy as np

from ..arrays import Codes, Integers
from .jit import for_each, in_slices, kernel

# Most cells of a joint table: two copies of 4 bytes per cell stay in the second-level cache.
JOINT_CELLS = 1 << 15
# Records per chunk of cell numbers, and fewest records worth a thread.
CHUNK, SHARE = 4096, 1 << 20
# Most cells of two-way tables that are counted at once if they are needed one after the other.
MAX_CELLS = 1 << 24


def contingency(codes: Codes, sizes: Sequence[int], attributes: Sequence[int]) -> Integers:
    """Count the records in every cell of one marginal.

    Args:
        codes: the table, records contiguous [shape=(d, n), uint16].
        sizes: domain size of each attribute.
        attributes: attributes of the marginal, in the order of its axes.

    Returns:
        Counts [one axis per attribute, int64].

    Raises:
        ValueError: a code is not below the size of its attribute.
    """
    shape = tuple(int(sizes[a]) for a in attributes)
    _check(codes, sizes, attributes)
    return count_records(codes, shape, attributes).reshape(shape)


def all_pairs(
    codes: Codes,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
) -> list[Integers]:
    """Count the records in every cell of many two-way marginals.

    Args:
        codes: the table, records contiguous [shape=(d, n), uint16].
        sizes: domain size of each attribute.
        pairs: attributes of each marginal, in the order of its axes.

    Returns:
        Counts in the order of ``pairs`` [each shape=(size of the first, size of the second),
        int64].

    Raises:
        ValueError: a code is not below the size of its attribute.
    """
    _check(codes, sizes, {a for pair in pairs for a in pair})
    # A joint table costs a pass over its cells per pair; with more cells than records it cannot pay
    # off.
    limit = min(JOINT_CELLS, max(codes.shape[1] // 4, 1))
    chosen = joints(sizes, {(min(p), max(p)) for p in pairs}, limit)

    def count(number: int) -> dict[tuple[int, int], Integers]:
        joint, served = chosen[number]
        shape = tuple(int(sizes[a]) for a in joint)
        table = count_records(codes, shape, joint).reshape(shape)
        return {
            p: table.sum(axis=tuple(k for k, a in enumerate(joint) if a not in p)) for p in served
        }

    # Many joint tables are counted by one thread each; for few, threads share the records of each.
    apart = len(chosen) >= 2 * numba.get_num_threads()
    tables = for_each(len(chosen), count) if apart else map(count, range(len(chosen)))
    out = {pair: table for some in tables for pair, table in some.items()}
    return [out[a, b] if a < b else np.ascontiguousarray(out[b, a].T) for a, b in pairs]


def pair_tables(
    codes: Codes, sizes: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Iterator[Integers]:
    """As :func:`all_pairs`, one table after the other, with limited memory for large domains.

    Raises:
        ValueError: a code is not below the size of its attribute.
    """
    ends = itertools.accumulate(int(sizes[a]) * int(sizes[b]) for a, b in pairs)
    batches = itertools.groupby(zip(pairs, ends, strict=True), lambda pair: pair[1] // MAX_CELLS)
    for _, batch in batches:
        yield from all_pairs(codes, sizes, [pair for pair, _ in batch])


def joints(
    sizes: Sequence[int], pairs: set[tuple[int, int]], limit: int
) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """Sets of attributes that together contain every pair, chosen greedily.

    Args:
        sizes: domain size of each attribute.
        pairs: pairs of attributes, the lower one first.
        limit: most cells of a set, unless it is a single pair.

    Returns:
        Per set its attributes, and the pairs that it is the first to contain.
    """
    uncovered = np.zeros((len(sizes), len(sizes)), np.bool_)
    for a, b in pairs:
        uncovered[a, b] = uncovered[b, a] = True
    counts = np.array(sizes, np.int64)
    logs = np.log(counts + 1.0)
    out = []
    for a, b in sorted(pairs, key=lambda p: (sizes[p[0]] * sizes[p[1]], p), reverse=True):
        if not uncovered[a, b]:
            continue
        joint = [a, b]
        cells = int(counts[a] * counts[b])
        served = uncovered[a].astype(np.int64) + uncovered[b]
        while True:
            # The attribute with the most new pairs per logarithm of its size.
            gains = np.where(cells * counts <= limit, served / logs, 0.0)
            gains[joint] = 0.0
            chosen = int(gains.argmax())
            if not gains[chosen] > 0:
                break
            joint.append(chosen)
            cells *= int(counts[chosen])
            served += uncovered[chosen]
        ordered = sorted(joint)
        out.append(
            (tuple(ordered), [p for p in itertools.combinations(ordered, 2) if uncovered[p]])
        )
        uncovered[np.ix_(ordered, ordered)] = False
    return out


def _check(codes: Codes, sizes: Sequence[int], attributes: Sequence[int] | set[int]) -> None:
    for a in attributes:
        if codes.shape[1] and codes[a].max() >= sizes[a]:
            raise ValueError(
                f"Attribute {a} has code {codes[a].max()}, but only {sizes[a]} values."
            )


def count_records(codes: Codes, shape: Sequence[int], attributes: Sequence[int]) -> Integers:
    """Count as :func:`contingency`, without a check of the codes [shape=(cells,), int64]."""
    cells = math.prod(shape)
    strides = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
    chosen = np.array(attributes, np.int64)
    counts: list[Integers] = in_slices(
        codes.shape[1],
        max(SHARE, 4 * cells),
        lambda begin, end: _count_records(codes, chosen, strides, cells, begin, end),
    )
    return functools.reduce(operator.iadd, counts)


@kernel
def _count_records(codes, attributes, strides, cells, begin, end):  # type: ignore[no-untyped-def]
    # Two tables in turns, because neighbouring records are often equal and one counter would wait
    # for its own store. Both are 32 bits wide, which fewer than 2^32 records cannot overflow.
    counts = np.zeros((2, cells), np.uint32)
    even = counts[0]
    odd = counts[1]
    index = np.empty(CHUNK, np.uint32)
    for start in range(begin, end, CHUNK):
        length = min(CHUNK, end - start)
        place = index[:length]
        place[:] = 0
        for k in range(attributes.size):
            column = codes[attributes[k], start : start + length]
            stride = np.uint32(strides[k])
            for i in range(length):
                place[i] += column[i] * stride
        for i in range(0, length - 1, 2):
            even[place[i]] += 1
            odd[place[i + 1]] += 1
        if length % 2:
            even[place[length - 1]] += 1
    out = np.empty(cells, np.int64)
    for i in range(cells):
        out[i] = np.int64(even[i]) + np.int64(odd[i])
    return out
