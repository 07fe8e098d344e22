"""Structural zeros: combinations of values that have exactly no mass in a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from ..arrays import Flags, Ints
from .clique_budget import CliqueBudget
from .junction_tree import junction_tree
from .markov_random_field import Factor
from .proximal_step import FORBIDDEN


def allowing(attributes: Sequence[int], allowed: Flags) -> Factor:
    """A factor under which only some combinations of values can occur.

    Args:
        attributes: positions in the domain, in the order of the axes.
        allowed: whether each combination can occur [one axis per attribute, bool].
    """
    order = np.argsort(attributes)
    logs = np.where(allowed, 0.0, FORBIDDEN).transpose(order)
    return Factor(tuple(int(a) for a in np.sort(attributes)), np.ascontiguousarray(logs))


def ruling_out(
    sizes: Sequence[int], combinations: Iterable[Sequence[tuple[int, Sequence[int]]]]
) -> tuple[Factor, ...]:
    """Factors under which the given combinations cannot occur: one factor per set of attributes.

    Args:
        sizes: domain size of every attribute.
        combinations: each is a sequence of attributes (increasing) with codes. It rules out the
            product of the codes.
    """
    allowed: dict[Ints, Flags] = {}
    for combination in combinations:
        attributes = tuple(attribute for attribute, _ in combination)
        table = allowed.setdefault(attributes, np.ones([sizes[a] for a in attributes], bool))
        table[np.ix_(*(list(codes) for _, codes in combination))] = False
    return tuple(allowing(attributes, table) for attributes, table in allowed.items())


def budget_holding(sizes: Sequence[int], limit: int, zeros: Iterable[Factor]) -> CliqueBudget:
    """A growing graph in which a clique contains the attributes of every structural zero.

    Args:
        sizes: domain size of every attribute.
        limit: most cells of a clique. It is raised to what the structural zeros alone need.
        zeros: factors of structural zeros.
    """
    edges = {pair for f in zeros for pair in itertools.combinations(f.attributes, 2)}
    tree = junction_tree(sizes, edges)
    needed = max(
        (
            cells
            for clique, cells in zip(tree.cliques, tree.clique_cells, strict=True)
            if len(clique) > 1
        ),
        default=0,
    )
    budget = CliqueBudget(sizes, max(limit, needed))
    budget.try_edges(edges)
    return budget
