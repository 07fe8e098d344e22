"""Couple two columns that are missing together, in rows drawn from a junction tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Codes, Ints
from .junction_tree import JunctionTree
from .markov_random_field import Factor

# The log of an off-tree factor at combinations that no row may have.
APART = -100.0


def together(attributes: Ints, sizes: Sequence[int], codes: Sequence[int]) -> Factor:
    """A factor by which no row has one of two codes without the other.

    Args:
        attributes: the two attributes.
        sizes: number of codes of each.
        codes: the code of each.
    """
    first, second = (np.arange(size) == code for size, code in zip(sizes, codes, strict=True))
    return Factor(attributes, np.where(first[:, None] != second, APART, 0.0))


def codes_of(factor: Factor) -> Ints | None:
    """The code of each of two attributes that occurs with the other's alone; None for a factor that
    is not of :func:`together`.
    """
    low = factor.logs <= APART
    if low.ndim != 2:
        return None
    alone = tuple(int(low.sum(axis=1 - axis).argmax()) for axis in (0, 1))
    made = together(factor.attributes, low.shape, alone)
    return alone if (low == (made.logs <= APART)).all() else None


def couple(codes: Codes, tree: JunctionTree, factor: Factor) -> None:
    """Exchange values of one column among rows until few have one of two codes without the other.

    The tree draws two columns that share no clique as if they were nearly independent. A row with
    the first code alone gives its other value to a row with the second code alone, one with
    similar values of the columns that are in cliques with it. No column's counts change.

    Args:
        codes: rows in random order, changed [shape=(d, n), uint16].
        tree: the tree that they were drawn from.
        factor: rows are left alone unless :func:`codes_of` knows its codes.
    """
    if (alone := codes_of(factor)) is None:
        return
    told = [
        (*_near(codes, tree, a, code), a, code)
        for a, code in zip(factor.attributes, alone, strict=True)
    ]
    # The column moves whose code depends less on other columns.
    (_, near, moved, code), (_, _, kept, other) = sorted(told, key=lambda each: each[0])
    left, right = codes[moved] == code, codes[kept] == other
    here, there = np.flatnonzero(right & ~left), np.flatnonzero(left & ~right)
    count = min(here.size, there.size)
    here, there = (
        rows[np.lexsort(codes[[kept, *near]][:, rows])] for rows in (here[:count], there[:count])
    )
    codes[moved, there] = codes[moved, here]
    codes[moved, here] = code


def _near(codes: Codes, tree: JunctionTree, a: int, code: int) -> tuple[float, list[int]]:
    """How far a code of an attribute depends on those in its cliques, and these: the attribute
    depends most on the last.
    """
    tie, distances = 0.0, {}
    for other in {b for clique in tree.cliques if a in clique for b in clique} - {a}:
        sizes = [int(codes[each].max()) + 1 for each in (a, other)]
        cells = codes[a].astype(np.int64) * sizes[1] + codes[other]
        joint = np.bincount(cells, minlength=sizes[0] * sizes[1]).reshape(sizes) / cells.size
        gaps = np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum(axis=1)
        distances[other] = float(gaps.sum())
        tie = max(tie, float(gaps[code]) if code < len(gaps) else 0.0)
    return tie, sorted(distances, key=distances.__getitem__)
