"""Pick one of several candidates for each synthetic row, so that the counts of low-order marginals stay
close to the expected ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Codes, Integers, Ints, Words
from ..kernels import rows as kernels
from ..kernels.jit import in_slices

# The price of a gap at a cell is (expected count + 1) to the power of minus this.
PRICE = 0.5
# Bounds on the marginals that are balanced: cells per row, cells and lookups (one or two seconds) in
# all. An order of marginals with more than LISTED members is left out.
CELLS_PER_ROW, MAX_CELLS, MAX_LOOKUPS, LISTED = 0.5, 1 << 22, 4e8, 50_000


def pick_rows(rows: Codes, balanced: tuple[Words, Words, int], size: int) -> Integers:
    """Take ``size`` rows from the proposed ones, a multiple of it, with balanced counts in the
    marginals of some stems.

    Returns:
        Positions in ``rows`` [shape=(size,), int64].
    """
    stems, lasts, cells = balanced
    counts = np.zeros(cells)
    in_slices(
        len(stems),
        1,
        lambda begin, end: kernels.count_rows(rows[:size], stems, lasts, begin, end, counts),
    )
    gaps = np.stack([np.zeros(cells), (counts + 1) ** -PRICE], axis=1).astype(np.float32)
    chosen = np.empty(size, np.int64)
    kernels.pick(rows, stems, lasts, gaps, chosen)
    return chosen * size + np.arange(size)


def stems_of(sizes: Sequence[int], marginals: Sequence[Ints]) -> tuple[Words, Words, int]:
    """The kernels' stems and last attributes of marginals of one to three attributes, and the
    number of cells.

    Source: :func:`vertimrf.kernels.rows.pick` describes both arrays.
    """
    after: dict[Ints, list[int]] = {}
    for attributes in marginals:
        after.setdefault(attributes[:-1], []).append(attributes[-1])
    stems: list[Ints] = []
    lasts: list[tuple[int, int]] = []
    cells = 0
    for first, ends in after.items():
        starts = [0, *itertools.accumulate(sizes[a] for a in ends)]
        strides = [
            math.prod(sizes[a] for a in first[i + 1 :]) * starts[-1] for i in range(len(first))
        ]
        columns = itertools.chain(*zip((*first, 0, 0), (*strides, 0, 0), strict=True))
        stems.append((*itertools.islice(columns, 4), cells, len(lasts), len(lasts) + len(ends)))
        lasts += zip(ends, starts, strict=False)
        cells += math.prod(sizes[a] for a in first) * starts[-1]
    return (
        np.array(stems, np.uint64).reshape(-1, 7),
        np.array(lasts, np.uint64).reshape(-1, 2),
        cells,
    )


def balanced_marginals(
    sizes: Sequence[int], rows: int, batches: int, candidates: int
) -> list[Ints]:
    """Marginals that are balanced: those of one attribute, of two and of three, smallest first."""
    varying = [a for a, size in enumerate(sizes) if size > 1]
    out: list[Ints] = []
    cells = lookups = 0
    for way in (1, 2, 3):
        if math.comb(len(varying), way) > LISTED:
            break
        for attributes in sorted(
            itertools.combinations(varying, way),
            key=lambda attributes: math.prod(sizes[a] for a in attributes),
        ):
            more = math.prod(sizes[a] for a in attributes)
            cells += more
            lookups += rows * candidates
            if more > CELLS_PER_ROW * rows / batches or cells > MAX_CELLS or lookups > MAX_LOOKUPS:
                break
            out.append(attributes)
    return out
