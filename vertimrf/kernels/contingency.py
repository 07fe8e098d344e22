"""Contingency tables: records counted by the cells of marginals.

Counting is bound by one increment per record and table, so marginals that are wanted together are counted together: a few
attributes form one joint table small enough for the cache, and every wanted marginal inside it is summed off afterwards.

Axes: d = attributes, n = records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import numpy.typing as npt

from .jit import kernel

__all__ = ["all_pairs", "contingency"]

Counts = npt.NDArray[np.int64]

# Most cells of a table that several pairs share: two copies of 4 bytes a cell stay in the second-level cache.
JOINT_CELLS = 1 << 15
# Records whose cell numbers are worked out at once, and fewest records worth a thread.
CHUNK, SHARE = 4096, 1 << 20


def contingency(
    codes: npt.NDArray[np.uint16], sizes: Sequence[int], attributes: Sequence[int]
) -> Counts:
    """Count the records in every cell of one marginal.

    Args:
        codes: the table [shape=(d, n), uint16], records contiguous.
        sizes: domain size of each attribute.
        attributes: the marginal's attributes, in the order of its axes.

    Returns:
        Counts [one axis per attribute, int64].

    Raises:
        ValueError: a code is not below its attribute's size.
    """
    shape = tuple(int(sizes[a]) for a in attributes)
    _check(codes, sizes, attributes)
    return _count(codes, shape, attributes).reshape(shape)


def all_pairs(
    codes: npt.NDArray[np.uint16],
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
) -> list[Counts]:
    """Count the records in every cell of many two-way marginals.

    Args:
        codes: the table [shape=(d, n), uint16], records contiguous.
        sizes: domain size of each attribute.
        pairs: the attributes of each marginal, in the order of its axes.

    Returns:
        Counts [shape=(size of the first, size of the second), int64], in the order of ``pairs``.

    Raises:
        ValueError: a code is not below its attribute's size.
    """
    _check(codes, sizes, {a for pair in pairs for a in pair})
    # A joint table costs a pass over its cells for every pair it serves; more cells than records cannot pay.
    limit = min(JOINT_CELLS, max(codes.shape[1] // 4, 1))
    out: dict[tuple[int, int], Counts] = {}
    for joint in _joints(sizes, {(min(p), max(p)) for p in pairs}, limit):
        shape = tuple(int(sizes[a]) for a in joint)
        table = _count(codes, shape, joint).reshape(shape)
        for i, a in enumerate(joint):
            for j in range(i + 1, len(joint)):
                if (a, joint[j]) not in out:
                    out[a, joint[j]] = table.sum(axis=tuple(k for k in range(len(joint)) if k not in (i, j)))
    return [out[a, b] if a < b else np.ascontiguousarray(out[b, a].T) for a, b in pairs]


def _joints(sizes: Sequence[int], pairs: set[tuple[int, int]], limit: int) -> list[tuple[int, ...]]:
    """Attribute sets of at most ``limit`` cells (pairs excepted) that together hold every pair, found greedily."""
    left = set(pairs)
    out = []
    while left:
        best = max(left, key=lambda p: (sizes[p[0]] * sizes[p[1]], p))
        joint = set(best)
        cells = sizes[best[0]] * sizes[best[1]]
        while True:
            # The attribute that serves the most new pairs for the logarithm of its size.
            gains = {}
            for a in {a for p in left for a in p} - joint:
                if cells * sizes[a] <= limit:
                    served = sum((min(a, b), max(a, b)) in left for b in joint)
                    if served:
                        gains[a] = served / math.log(sizes[a] + 1)
            if not gains:
                break
            chosen = max(sorted(gains), key=gains.__getitem__)
            joint.add(chosen)
            cells *= sizes[chosen]
        ordered = tuple(sorted(joint))
        left -= {(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]}
        out.append(ordered)
    return out


def _check(codes: npt.NDArray[np.uint16], sizes: Sequence[int], attributes: Sequence[int] | set[int]) -> None:
    for a in attributes:
        if codes.shape[1] and codes[a].max() >= sizes[a]:
            raise ValueError(f"Attribute {a} has code {codes[a].max()}, but only {sizes[a]} values.")


def _count(codes: npt.NDArray[np.uint16], shape: tuple[int, ...], attributes: Sequence[int]) -> Counts:
    cells = math.prod(shape)
    strides = np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
    chosen = np.array(attributes, np.int64)
    records = codes.shape[1]
    parts = min(numba.get_num_threads(), records // max(SHARE, 4 * cells))
    if parts <= 1:
        counts: Counts = _count_records(codes, chosen, strides, cells, 0, records)
        return counts
    cuts = [records * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        shares = pool.map(lambda i: _count_records(codes, chosen, strides, cells, cuts[i], cuts[i + 1]), range(parts))
        counts = np.sum(list(shares), axis=0, dtype=np.int64)
    return counts


@kernel
def _count_records(codes, attributes, strides, cells, begin, end):  # type: ignore[no-untyped-def]
    # Two tables in turns: neighbouring records are often equal, and one counter would serialise on its store. Both are
    # 32 bits wide, which a run of fewer than 2^32 records cannot overflow.
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

