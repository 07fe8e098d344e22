"""GraphCom: marginals compete for cliques, those that the model misses most come first."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from oracles import crossed
from planning import plan_with

from vertimrf import Attribute, Schema
from vertimrf.model.clique_budget import CliqueBudget
from vertimrf.model.fit import FitOptions, fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.server import global_graph
from vertimrf.server.global_graph import _spanning_forest, combine_graphs, used_in

N = 10_000.0


def plan_of(sizes, first_party, tau):
    attributes = [Attribute.integer(f"a{i}", s) for i, s in enumerate(sizes)]
    schema = Schema.of({"one": attributes[:first_party], "two": attributes[first_party:]})
    return plan_with(schema, expected_records=int(N), nonce="graph", tau=tau, keys=1000)


def measured(codes, sizes, attributes, sigma=5.0, bins=None):
    maps = tuple(
        np.arange(sizes[a]) if bins is None else np.arange(sizes[a]) * bins // sizes[a]
        for a in attributes
    )
    shape = [sizes[a] if bins is None else bins for a in attributes]
    counts = crossed([m[codes[a]] for a, m in zip(attributes, maps, strict=True)], shape)
    return Measurement(
        attributes, (None,) * len(attributes) if bins is None else maps, counts, sigma
    )


def chain(sizes, noise, seed=0):
    """Every attribute follows the one before it, but for a part of the records."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, sizes[0], int(N))]
    for size in sizes[1:]:
        fresh = rng.integers(0, size, int(N))
        codes.append(np.where(rng.random(int(N)) < noise, fresh, codes[-1] % size))
    return np.array(codes)


def everything(codes, sizes, first_party, **settings):
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    local = [measured(codes, sizes, (a,)) for a in range(len(sizes))]
    local += [
        measured(codes, sizes, p) for p in pairs if (p[0] < first_party) == (p[1] < first_party)
    ]
    return local, [
        measured(codes, sizes, p, **settings)
        for p in pairs
        if (p[0] < first_party) != (p[1] < first_party)
    ]


@pytest.mark.parametrize("bins", [None, 2])
def test_with_room_for_a_tree_the_chain_is_found(bins):
    # Cliques of two attributes: of all pairs, direct neighbours explain the rest.
    sizes = (4,) * 6
    codes = chain(sizes, 0.3)
    plan = plan_of(sizes, 3, tau=16)
    local, crossing = everything(codes, sizes, 3, bins=bins)
    graph = combine_graphs(plan, local, crossing, N)
    kept, tree, warnings = graph.kept, graph.tree, graph.warnings
    assert [m.attributes for m in kept] == [(2, 3)]
    assert {c for c in tree.cliques if len(c) == 2} == {(i, i + 1) for i in range(5)}
    assert not warnings


def test_graphs_of_many_marginals_are_grown_from_pairs(monkeypatch):
    # Three-way marginals are set aside while the graph grows, and kept where it turns out to hold them.
    monkeypatch.setattr(global_graph, "MANY_MARGINALS", 5)
    sizes = (3,) * 8
    codes = chain(sizes, 0.3)
    local, crossing = everything(codes, sizes, 4)
    crossing += [measured(codes, sizes, (a, a + 1, a + 2)) for a in (2, 3)]
    graph = combine_graphs(plan_of(sizes, 4, tau=27), local, crossing, N)
    kept, tree = graph.kept, graph.tree
    edges = {pair for clique in tree.cliques for pair in itertools.combinations(clique, 2)}
    assert edges >= {(i, i + 1) for i in range(7)}
    assert tree.largest <= 27
    assert [m for m in crossing if tree.covering(m.attributes) >= 0] == list(kept)
    # The fit starts from the model on the way.
    assert graph.start is not None


@pytest.fixture
def of_nine():
    """The arguments of a graph of nine attributes, whose cliques have three."""
    sizes = (4,) * 9
    codes = chain(sizes, 0.5, seed=3)
    return plan_of(sizes, 4, tau=64), *everything(codes, sizes, 4), N


def test_leaving_out_what_has_no_room_changes_no_graph(of_nine, monkeypatch):
    # Steps of one marginal, before which several are refused.
    monkeypatch.setattr(global_graph, "STEPS", 1000)
    graph = combine_graphs(*of_nine)
    steps = []

    def has_room(budget, attributes):
        steps.append(has_room_of(budget, attributes))
        return True

    has_room_of = CliqueBudget.has_room
    monkeypatch.setattr(CliqueBudget, "has_room", has_room)
    assert combine_graphs(*of_nine).tree == graph.tree
    assert not all(steps)


def test_the_rest_that_has_room_enters_without_another_comparison(of_nine, monkeypatch):
    # After a forest and five pairs more, fewer than that have room.
    monkeypatch.setattr(global_graph, "STEPS", 7)
    fits = []
    monkeypatch.setattr(
        global_graph,
        "fit",
        lambda *arguments, **options: fits.append(options) or fit(*arguments, **options),
    )
    graph = combine_graphs(*of_nine)
    assert graph.tree.largest <= 64
    assert graph.start is not None
    assert graph.start.tree == graph.tree
    # Independent attributes, a forest, and what has room then.
    assert [options.get("options", FitOptions()).steps for options in fits] == [50, 50, 1]
    # Direct neighbours stand first and entered first.
    assert all(graph.tree.covering((i, i + 1)) >= 0 for i in range(8))


def test_what_the_graph_explains_already_takes_no_room():
    # 0 and 1 are copies; 2 follows them. After (0, 1) and (0, 2), the pair (1, 2) is explained, (3, 4) is not.
    rng = np.random.default_rng(1)
    first = rng.integers(0, 4, int(N))
    third = np.where(rng.random(int(N)) < 0.5, rng.integers(0, 4, int(N)), first)
    other = rng.integers(0, 4, int(N))
    weak = np.where(rng.random(int(N)) < 0.8, rng.integers(0, 4, int(N)), other)
    codes, sizes = np.array([first, first, other, third, weak]), (4,) * 5
    local, crossing = everything(codes, sizes, 3)
    graph = combine_graphs(plan_of(sizes, 3, tau=16), local, crossing, N)
    kept, tree = graph.kept, graph.tree
    assert (2, 4) in [m.attributes for m in kept]
    assert tree.largest <= 16
    assert len({(0, 3), (1, 3)} & {m.attributes for m in kept}) == 1


def test_where_everything_fits_one_clique_everything_is_kept():
    sizes = (3, 2, 2, 3)
    codes = chain(sizes, 0.3)
    local, crossing = everything(codes, sizes, 2)
    graph = combine_graphs(plan_of(sizes, 2, tau=36), local, crossing, N)
    kept, tree = graph.kept, graph.tree
    assert len(tree.cliques) == 1
    assert kept == tuple(crossing)


@pytest.mark.parametrize("tau", [2, 30, 200, 2000])
def test_cliques_stay_within_tau_and_every_kept_marginal_has_one(tau):
    sizes = (5, 3, 4, 2, 6, 3)
    codes = chain(sizes, 0.4)
    local, crossing = everything(codes, sizes, 3)
    crossing.append(measured(codes, sizes, (0, 3, 5)))
    graph = combine_graphs(plan_of(sizes, 3, tau=tau), local, crossing, N)
    kept, tree = graph.kept, graph.tree
    assert tree.largest <= max(tau, max(sizes))
    assert all(tree.covering(m.attributes) >= 0 for m in kept)


def test_domains_of_ten_thousand_values():
    rng = np.random.default_rng(2)
    sizes = (10_000, 3, 10_000, 3)
    codes = np.array([rng.integers(0, s, int(N)) for s in sizes])
    codes[3] = codes[1]
    local, crossing = everything(codes, sizes, 2, sigma=1.0, bins=3)
    graph = combine_graphs(plan_of(sizes, 2, tau=40_000), local[:4], crossing, N)
    kept, tree = graph.kept, graph.tree
    assert (1, 3) in [m.attributes for m in kept]
    assert tree.largest <= 40_000


def test_what_is_too_wide_to_compute_is_compared_with_independent_attributes(monkeypatch):
    sizes = (4,) * 6
    local, crossing = everything(chain(sizes, 0.3), sizes, 3)
    expected = combine_graphs(plan_of(sizes, 3, tau=16), local, crossing, N).tree
    monkeypatch.setattr("vertimrf.server.global_graph.MAX_CELLS", 1)
    graph = combine_graphs(plan_of(sizes, 3, tau=16), local, crossing, N).tree
    assert graph.largest <= 16
    assert graph.covering((2, 3)) >= 0
    assert expected.covering((2, 3)) >= 0


def test_noise_alone_adds_no_edge():
    rng = np.random.default_rng(3)
    sizes = (4,) * 6
    one_way = [Measurement((a,), (None,), np.full(4, N / 4), 1.0) for a in range(6)]
    crossing = [
        Measurement((a, b), (None, None), N / 16 + 40 * rng.normal(size=(4, 4)), 40.0)
        for a in range(3)
        for b in range(3, 6)
    ]
    scores = sum(np.abs(m.counts - N / 16).sum() > np.sqrt(2 / np.pi) * 40 * 16 for m in crossing)
    kept = combine_graphs(plan_of(sizes, 3, tau=16), one_way, crossing, N).kept
    # Those that chance lifts above their own expected noise, and no others.
    assert len(kept) <= scores < len(crossing)


def test_one_party_keeps_its_local_graph():
    sizes = (3, 3, 3)
    codes = chain(sizes, 0.3)
    local, _ = everything(codes, sizes, 3)
    graph = combine_graphs(plan_of(sizes, 2, tau=200), local, [], N)
    kept, tree, warnings = graph.kept, graph.tree, graph.warnings
    assert kept == ()
    assert warnings == ()
    assert tree.covering((0, 1, 2)) >= 0


def test_pairs_that_a_party_measured_beside_its_graph_stay_out():
    sizes = (3, 3, 3, 2)
    local, _ = everything(chain(sizes, 0.3), sizes, 3)
    last = [m for m in local if m.attributes == (0, 2)]
    # Cliques of a party have up to 40 / 4 cells here: a triangle has 27.
    tree = combine_graphs(
        plan_of(sizes, 3, tau=40), [m for m in local if m not in last] + last, [], N
    ).tree
    assert tree.covering((0, 1)) >= 0
    assert tree.covering((1, 2)) >= 0
    assert tree.covering((0, 2)) < 0


def test_a_marginal_measured_twice_competes_once(monkeypatch):
    # Beside a step's other candidates, a second measurement of a pair that is in already would be counted as added.
    sizes = (4,) * 6
    local, crossing = everything(chain(sizes, 0.3), sizes, 3)
    plan = plan_of(sizes, 3, tau=64)
    expected = combine_graphs(plan, local, crossing, N)
    again = [
        measured(chain(sizes, 0.3), sizes, m.attributes, sigma=20.0)
        for m in local
        if len(m.attributes) == 2
    ]
    offered = []
    grown = global_graph._grown

    def noting(plan, one_way, larger, *rest):
        offered.append(larger)
        return grown(plan, one_way, larger, *rest)

    monkeypatch.setattr(global_graph, "_grown", noting)
    graph = combine_graphs(plan, local, [*crossing, *again], N)
    assert graph.tree == expected.tree
    assert [m.sigma for m in offered[0]] == [5.0] * 15
    # Both tell the fit what they know, if a clique holds them.
    assert len(graph.kept) == len(expected.kept) + sum(
        graph.tree.covering(m.attributes) >= 0 for m in again
    )


def test_first_those_enter_that_join_attributes_which_none_before_has_joined():
    sizes, codes = (2,) * 7, chain((2,) * 7, 0.5)
    order = [(0, 1), (2, 3), (0, 2), (1, 3), (4, 5, 6), (4, 6), (1, 2), (3, 5), (0, 6)]
    larger = [measured(codes, sizes, attributes) for attributes in sorted(order)]
    places = [sorted(order).index(attributes) for attributes in order]
    graph = [larger[i].attributes for i in _spanning_forest(larger, places)]
    assert graph == [(0, 1), (2, 3), (0, 2), (4, 5, 6), (3, 5)]


def test_what_a_first_pair_explains_does_not_enter_with_it():
    """Three copies of one attribute: two pairs join them, and a third would take the room of a pair that tells more."""
    rng = np.random.default_rng(4)
    copied, other = rng.integers(0, 4, int(N)), rng.integers(0, 4, int(N))
    weak = np.where(rng.random(int(N)) < 0.7, rng.integers(0, 4, int(N)), other)
    codes, sizes = np.array([copied, copied, copied, other, weak]), (4,) * 5
    local, crossing = everything(codes, sizes, 2)
    graph = combine_graphs(plan_of(sizes, 2, tau=16), local, crossing, N)
    assert {clique for clique in graph.tree.cliques if len(clique) == 2} >= {(3, 4)}
    edges = {pair for clique in graph.tree.cliques for pair in itertools.combinations(clique, 2)}
    assert len(edges & {(0, 1), (0, 2), (1, 2)}) == 2


def test_pairs_without_a_clique_still_tell_their_one_way_margins():
    sizes = (3, 3, 3)
    local, crossing = everything(chain(sizes, 0.3), sizes, 2)
    tree = junction_tree(sizes, {(1, 2)})
    used = used_in(tree, local, (*local, *crossing))
    assert sorted(m.attributes for m in used) == [(0,), (1,), (1, 2), (2,)]
    # The pair (0, 1) of the first party is outside the tree: a margin of three cells.
    precision = {m.attributes: float(np.mean(np.square(m.sigma))) ** -1 for m in used}
    alone = 1 / 25
    assert precision[0,] == pytest.approx(alone * (1 + 1 / 3))
    assert precision[2,] == pytest.approx(alone)


def test_the_fit_starts_afresh_if_pairs_are_mostly_noise():
    sizes = (4,) * 6
    local, crossing = everything(chain(sizes, 0.9), sizes, 3)
    rng = np.random.default_rng(2)
    noisy = [
        replace(m, counts=m.counts + 200 * rng.normal(size=m.counts.shape), sigma=200.0)
        for m in crossing
    ]
    assert combine_graphs(plan_of(sizes, 3, tau=16), local, crossing, N).start is not None
    assert combine_graphs(plan_of(sizes, 3, tau=16), local, noisy, N).start is None


@pytest.mark.parametrize("count", [12, 11])
def test_a_forest_of_trends_is_what_the_fit_starts_from(count):
    """Of a chain of trends, each neighbour's table is in the start as it is; of few columns, which are estimated alone, it is
    not known so well."""
    sizes = (4,) * count
    codes = chain(sizes, 0.05)
    local, crossing = everything(codes, sizes, count // 2)
    local = [m for m in local if len(m.attributes) == 1 or m.attributes[1] == m.attributes[0] + 1]
    local, crossing = (
        [replace(m, trend=1) if len(m.attributes) == 2 else m for m in each]
        for each in (local, crossing)
    )
    forest = global_graph._of_trends([m for m in (*local, *crossing) if len(m.attributes) == 2])
    if count == 11:
        assert not forest
        return
    assert sorted(m.attributes for m in forest) == [(i, i + 1) for i in range(11)]
    graph = combine_graphs(plan_of(sizes, 6, tau=16), local, crossing, N)
    assert {c for c in graph.tree.cliques if len(c) == 2} == {(i, i + 1) for i in range(11)}
    for m in forest:
        np.testing.assert_allclose(graph.start.marginal(m.attributes), m.counts, atol=0.05 * N)


def test_without_a_step_a_fit_starts_from_the_forest(monkeypatch):
    """Rough fits that take no step leave the tables of the forest: they are the start."""
    sizes = (4,) * 12
    codes = chain(sizes, 0.05)
    local, crossing = everything(codes, sizes, 6)
    local, crossing = (
        [replace(m, trend=1) if len(m.attributes) == 2 else m for m in each]
        for each in (local, crossing)
    )
    monkeypatch.setattr(
        global_graph, "fit", lambda *args, warm=None, **more: warm or fit(*args, **more)
    )
    graph = combine_graphs(plan_of(sizes, 6, tau=16), local, crossing, N)
    for a in range(11):
        table = graph.start.marginal((a, a + 1))
        assert np.trace(table) > 0.9 * N
