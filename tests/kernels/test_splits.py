"""The cheapest split of a clique in loops, against prices that are computed with sets."""

import itertools
import math

import numpy as np
import pytest

from vertimrf.kernels.splits import ALL_SPLITS, GATHER, STREAM
from vertimrf.model.passes import LARGEST_INNER, ROW, _split


def price(inner, reads, writes, sizes, clique, any_order):
    """Cells that a pass streams and gathers, and rows that it begins."""
    outer, tables = clique - inner, [(t, False) for t in reads] + [(t, True) for t in writes]

    def cells(attributes):
        return math.prod(sizes[a] for a in attributes)

    within = [(t, w) for t, w in tables if inner.issuperset(t)]
    scalar = [t for t, _ in tables if outer.issuperset(t)]
    crossing = [(t, w) for t, w in tables if outer.intersection(t) and inner.intersection(t)]
    # Levels from the innermost: that with the fewest groups, and of these the largest.
    groups, order = {frozenset(outer.intersection(t)) for t, _ in crossing}, []
    while len(order) < len(outer):
        left = outer.difference(order)
        pending = [g for g in groups if not g.intersection(order)]
        order.append(min(left, key=lambda a: (sum(a in g for g in pending), -sizes[a], a)))
    order.reverse()

    def level(attributes):
        return max(order.index(a) for a in outer.intersection(attributes))

    width = cells(inner)
    cost = STREAM * width + GATHER * width * len(within)
    for t, _ in crossing:
        placed = len(t) > len(inner) and inner.issuperset(t[-len(inner) :])
        if not inner.issubset(t) if any_order else not placed:
            cost += (GATHER + STREAM) * cells(outer.intersection(t)) * width
    cost += sum(GATHER * cells(order[: level(t) + 1]) for t in scalar)
    carried = any(w for _, w in within)
    for i in range(max((level(t) for t, _ in crossing), default=-1) + 1):
        here = {(frozenset(outer.intersection(t)), w) for t, w in crossing if level(t) == i}
        cost += cells(order[: i + 1]) * (ROW + STREAM * width * max(len(here) + carried, 1))
        carried |= any(w for _, w in here)
    return cost + (2 * STREAM * cells(order) if order else 0), tuple(order)


def clique_of(rng, k):
    """Attributes with sizes, and tables of them in one storage order."""
    sizes = tuple(int(n) for n in rng.choice([2, 2, 3, 5, 17, 600], k + 2))
    clique = tuple(int(a) for a in rng.permutation(k + 2)[:k])

    def tables():
        return tuple(
            tuple(a for a in clique if rng.random() < 0.5) or clique[:1]
            for _ in range(rng.integers(1, 6))
        )

    return clique, tables(), tables(), sizes


@pytest.mark.parametrize("any_order", [False, True])
def test_of_few_attributes_no_split_is_cheaper(any_order):
    rng = np.random.default_rng(0)
    for _ in range(60):
        clique, reads, writes, sizes = clique_of(rng, int(rng.integers(1, 7)))
        limit = max(LARGEST_INNER, *(sizes[a] for a in clique))
        split = _split(clique, reads, writes, sizes, any_order)
        prices = {
            frozenset(inner): price({*inner}, reads, writes, sizes, {*clique}, any_order)
            for i in range(1, len(clique) + 1)
            for inner in itertools.combinations(clique, i)
            if math.prod(sizes[a] for a in inner) <= limit
        }
        least = min(cost for cost, _ in prices.values())
        assert prices[frozenset(split.inner)] == (least, split.outer)
        assert split.inner == tuple(a for a in clique if a in split.inner)


def test_of_many_attributes_no_move_or_swap_is_cheaper():
    rng = np.random.default_rng(1)
    for _ in range(8):
        clique, reads, writes, sizes = clique_of(rng, ALL_SPLITS + 2)
        split = _split(clique, reads, writes, sizes)
        inner = {*split.inner}
        limit = max(LARGEST_INNER, *(sizes[a] for a in clique))
        near = [inner ^ {a} for a in clique]
        near += [inner ^ {a, b} for a in inner for b in split.outer]
        fit = [m for m in near if m and math.prod(sizes[a] for a in m) <= limit]
        least = min(price(m, reads, writes, sizes, {*clique}, False)[0] for m in fit)
        assert price(inner, reads, writes, sizes, {*clique}, False)[0] <= least


def test_attributes_of_one_value_are_outer_loops_of_one_round():
    assert _split((1, 0, 2), ((0, 1),), ((2,),), (1, 1, 3)).outer == (1, 0)
    only = _split((1, 0), ((0, 1),), ((0,),), (1, 1))
    assert (only.outer, only.inner) == ((), (1, 0))


def test_a_clique_without_tables_has_a_split():
    assert _split((0, 1), (), (), (2, 3)).outer == ()
