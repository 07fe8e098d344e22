"""Junction trees against their defining properties, and the clique budget against networkx."""

import itertools
import math
import random

import networkx as nx
import numpy as np
import pytest

from vertimrf.errors import ModelError
from vertimrf.kernels import eliminate
from vertimrf.model.clique_budget import CliqueBudget
from vertimrf.model.junction_tree import JunctionTree, junction_tree, spanning_forest


def random_graph(seed):
    rng = random.Random(seed)
    d = rng.randint(2, 14)
    pairs = list(itertools.combinations(range(d), 2))
    return [rng.randint(1, 9) for _ in range(d)], rng.sample(pairs, rng.randint(0, len(pairs) // 2))


def assert_junction_tree(tree, edges):
    for edge in edges:
        assert tree.covering(edge) >= 0
    assert all(parent < child for child, parent in enumerate(tree.parents))
    assert not any(set(a) < set(b) for a, b in itertools.permutations(tree.cliques, 2))
    for attribute in range(len(tree.sizes)):
        # The cliques of an attribute form one subtree: just one of them has no parent among them.
        tops = [
            c
            for c, parent in enumerate(tree.parents)
            if attribute in tree.cliques[c]
            and (parent < 0 or attribute not in tree.cliques[parent])
        ]
        assert len(tops) == 1


@pytest.mark.parametrize("seed", range(40))
def test_running_intersection(seed):
    sizes, edges = random_graph(seed)
    tree = junction_tree(sizes, edges)
    assert_junction_tree(tree, edges)
    assert tree.cells == sum(tree.clique_cells)
    assert tree.largest == max(math.prod(sizes[i] for i in c) for c in tree.cliques)
    for c, parent in enumerate(tree.parents):
        shared = set(tree.cliques[c]) & set(tree.cliques[parent]) if parent >= 0 else set()
        assert set(tree.separators[c]) == shared


@pytest.mark.parametrize("seed", range(20))
def test_chordal_graphs_get_no_fill(seed):
    rng = random.Random(seed)
    graph = nx.Graph()
    graph.add_nodes_from(range(10))
    for v in range(1, 10):
        u = rng.randrange(v)
        clique = [w for w in graph[u] if rng.random() < 0.5 and w < v]
        graph.add_edges_from(
            (v, w)
            for w in (u, *clique)
            if all(graph.has_edge(w, x) or w == x for x in (u, *clique))
        )
    assert nx.is_chordal(graph)
    tree = junction_tree([3] * 10, graph.edges)
    assert {frozenset(c) for c in tree.cliques} == set(nx.chordal_graph_cliques(graph))


def test_a_cycle_is_triangulated_through_its_small_attribute():
    # Any triangulation of a cycle of n has n - 2 triangles; all through the small attribute is cheapest.
    tree = junction_tree([9, 9, 2, 9, 9], [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    assert len(tree.cliques) == 3
    assert all(2 in c for c in tree.cliques)


def test_unconnected_attributes_are_roots():
    tree = junction_tree([2, 3, 4], [])
    assert sorted(tree.cliques) == [(0,), (1,), (2,)]
    assert tree.parents == (-1, -1, -1)
    assert tree.treewidth == 0
    assert tree.covering((0, 1)) == -1


@pytest.mark.parametrize(
    "sizes, edges",
    [([], []), ([2, 0], []), ([2, 2], [(0, 0)]), ([2, 2], [(0, 2)]), ([2, 2], [(-1, 0)])],
)
def test_bad_graphs(sizes, edges):
    with pytest.raises(ModelError):
        junction_tree(sizes, edges)


@pytest.mark.parametrize("seed", range(40))
def test_budget_keeps_a_triangulation_within_its_limit(seed):
    sizes, edges = random_graph(seed)
    limit = random.Random(seed).choice([30, 300, 3000])
    budget = CliqueBudget(sizes, limit)
    allowed = max(limit, *sizes)
    accepted = []
    for edge in edges:
        before = budget.largest
        if budget.try_edges([edge]):
            accepted.append(edge)
            assert budget.largest <= allowed
        else:
            assert budget.largest == before
    assert list(budget.edges) == sorted(accepted)
    tree = budget.tree()
    assert_junction_tree(tree, accepted)
    assert tree.largest <= allowed


@pytest.mark.parametrize("seed", range(20))
def test_budget_tells_what_has_room_and_stays_as_it_is(seed):
    sizes, edges = random_graph(seed)
    budget = CliqueBudget(sizes, random.Random(seed).choice([30, 300, 3000]))
    for edge in edges:
        before = budget.edges, budget.largest
        room = budget.has_room(edge)
        assert (budget.edges, budget.largest) == before
        assert budget.try_edges([edge]) == room
        assert budget.has_room(edge) == room


def test_budget_accepts_what_a_known_clique_already_holds():
    budget = CliqueBudget([4] * 5, 64)
    assert budget.try_clique([0, 1, 2])
    assert budget.largest == 64
    assert not budget.try_clique([0, 1, 2, 3])
    assert not budget.try_edges([(0, 3), (1, 3), (2, 3)])
    assert budget.edges == ((0, 1), (0, 2), (1, 2))
    assert budget.try_edges([(2, 3), (3, 4)])
    # The edge closes a cycle 0-2-3: a triangle, 64 cells.
    assert budget.try_edges([(0, 3)])


def test_budget_finds_another_triangulation_where_the_present_one_is_in_the_way():
    # A long cycle of large attributes closed through one small attribute fits only if all chords meet there.
    sizes = [10, 10, 10, 10, 2]
    budget = CliqueBudget(sizes, 10 * 10 * 2)
    assert all(budget.try_edges([e]) for e in [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    assert budget.largest == 200


def test_small_components_are_triangulated_afresh_before_an_edge_is_refused(monkeypatch):
    more = 0
    for seed in range(40):
        rng = random.Random(seed)
        sizes = [rng.choice([2, 3, 4]) for _ in range(24)]
        budgets = {small: CliqueBudget(sizes, 2000) for small in (0, 32)}
        for _ in range(80):
            edge, fits = rng.sample(range(24), 2), {}
            for small, budget in budgets.items():
                monkeypatch.setattr("vertimrf.model.clique_budget.SMALL_COMPONENT", small)
                fits[small] = budget.try_edges([edge])
            if fits[0] != fits[32]:
                more += fits[32]
                break
    assert more > 5


def test_a_clique_one_cell_above_the_limit_is_refused():
    size = (
        46_341  # Logs of these numbers of cells differ by less than their rounding is allowed to.
    )
    assert not CliqueBudget([size, size], size**2 - 1).try_edges([(0, 1)])
    assert CliqueBudget([size, size], size**2).try_edges([(0, 1)])


def test_the_tree_of_a_budget_keeps_to_it_where_fewer_cells_would_not(
    monkeypatch,
):
    budget = CliqueBudget([2, 3, 4, 5], 30)
    assert all(budget.try_edges([e]) for e in [(0, 1), (1, 2), (0, 3)])
    whole = JunctionTree((2, 3, 4, 5), ((0, 1, 2, 3),), (-1,))
    monkeypatch.setattr("vertimrf.model.clique_budget.junction_tree", lambda *_: whole)
    assert sorted(budget.tree().cliques) == [(0, 1), (0, 3), (1, 2)]
    assert_junction_tree(budget.tree(), [(0, 1), (1, 2), (0, 3)])


def test_an_attribute_above_the_limit_stays_alone():
    budget = CliqueBudget([100, 2, 3], 10)
    assert not budget.try_edges([(0, 1)])
    assert budget.try_edges([(1, 2)])


def grown(seed, attributes=24):
    """A budget into which random edges were entered: sparse, in several trees, or full."""
    rng = random.Random(seed)
    sizes = [rng.choice([1, 2, 3, 5, 9, 40]) for _ in range(attributes)]
    budget = CliqueBudget(sizes, rng.choice([40, 1000, 30_000]))
    for _ in range(rng.choice([8, 25, 120])):
        budget.try_clique(rng.sample(range(attributes), rng.choice([2, 2, 3])))
    return budget


@pytest.mark.parametrize("seed", range(20))
def test_the_cliques_between_two_attributes_are_those_of_the_shortest_path(seed):
    budget = grown(seed)
    cliques, cells, forest = budget._cliques, np.ones(24), nx.Graph()
    forest.add_nodes_from(range(len(cliques)))
    forest.add_edges_from((i, j) for i, j in enumerate(budget._links.tolist()) if j >= 0)
    for a, b in itertools.combinations(range(24), 2):
        ends = [cliques[:, x].nonzero()[0].tolist() for x in (a, b)]
        paths = [
            nx.shortest_path(forest, i, j)
            for i, j in itertools.product(*ends)
            if nx.has_path(forest, i, j)
        ]
        if not paths or set(ends[0]) & set(ends[1]):
            continue
        gone, new = np.empty(len(cliques), bool), np.empty((24, 24), bool)
        graph = cliques, budget._links, budget._neighbours.copy(), np.array([[a, b]])
        eliminate.grow(*graph, cells, np.log(cells), math.inf, 0, gone, new)
        assert set(gone.nonzero()[0].tolist()) == set(min(paths, key=len))


@pytest.mark.parametrize("seed", range(20))
def test_a_forest_of_cliques_has_the_largest_separators(seed):
    cliques = grown(seed)._cliques
    shared = nx.Graph()
    for i, j in itertools.combinations(range(len(cliques)), 2):
        if both := int((cliques[i] & cliques[j]).sum()):
            shared.add_edge(i, j, weight=both)
    best = nx.maximum_spanning_tree(shared)
    links = [link for link in enumerate(spanning_forest(cliques).tolist()) if link[1] >= 0]
    assert len(links) == best.number_of_edges()
    assert sum(shared.edges[link]["weight"] for link in links) == best.size("weight")


def test_a_forest_of_more_than_64_attributes():
    cliques = np.zeros((4, 130), bool)
    for clique, attributes in zip(cliques, [(3, 70), (70, 129), (129, 2), (64,)], strict=True):
        clique[list(attributes)] = True
    assert spanning_forest(cliques).tolist() == [-1, 0, 1, -1]
