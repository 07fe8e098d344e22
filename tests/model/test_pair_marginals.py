"""Marginals of all pairs in one pass over the tree, against each by elimination."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.errors import ModelError
from vertimrf.model import pair_marginals as module
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.model.measurement import bin_table


def random_model(seed, sizes, factors, order):
    """Random factors of up to ``order`` attributes; forests where they are few."""
    rng = np.random.default_rng(seed)
    sets = [
        tuple(
            sorted(
                rng.choice(
                    len(sizes), min(len(sizes), int(rng.integers(1, order + 1))), replace=False
                ).tolist()
            )
        )
        for _ in range(factors)
    ]
    made = [Factor(s, 2 * rng.normal(size=[sizes[a] for a in s])) for s in sets]
    return MarkovRandomField(
        junction_tree(sizes, {e for s in sets for e in itertools.combinations(s, 2)}), 1.0, made
    )


def random_bins(rng, size):
    """No bins, or some, of which a few in between may have no values."""
    return None if rng.random() < 0.4 else rng.integers(0, 3, size)


def binned(table, maps):
    return bin_table(
        table,
        maps,
        [n if m is None else int(m.max()) + 1 for n, m in zip(table.shape, maps, strict=True)],
    )


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=14).map(tuple),
    density=st.floats(0, 1.5),
    order=st.integers(1, 3),
)
def test_all_pairs_equal_each_by_elimination(seed, sizes, density, order):
    model = random_model(seed, sizes, int(density * len(sizes)), order)
    rng = np.random.default_rng(seed)
    pairs = list(itertools.permutations(range(len(sizes)), 2))
    # The same attribute is binned in different ways.
    maps = [[random_bins(rng, sizes[a]) for a in pair] for pair in pairs]
    for pair, table in zip(pairs, model.marginals(pairs), strict=True):
        np.testing.assert_allclose(table, model.marginal(pair), rtol=0, atol=1e-12)
    for pair, pair_bins, table in zip(pairs, maps, model.marginals(pairs, maps), strict=True):
        np.testing.assert_allclose(
            table, binned(model.marginal(pair), pair_bins), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("limits", [(4, 1 << 22), (64, 1), (1, 1)])
def test_tiles_and_their_memory_do_not_matter(monkeypatch, limits):
    model = random_model(3, (7, 3, 9, 4, 2, 6, 5, 8, 3, 4), 12, 3)
    pairs = list(itertools.combinations(range(10), 2))
    expected = model.marginals(pairs)
    monkeypatch.setattr(module, "COLUMNS", limits[0])
    monkeypatch.setattr(module, "CARRIED_CELLS", limits[1])
    for table, truth in zip(model.marginals(pairs), expected, strict=True):
        np.testing.assert_allclose(table, truth, rtol=0, atol=1e-14)


def test_wide_domains_cost_what_their_bins_do():
    # A chain whose ends have ten thousand values: unbinned, their pair would have 10^8 cells.
    sizes = (10_000, 3, 4, 10_000)
    rng = np.random.default_rng(5)
    sets = [(0, 1), (1, 2), (2, 3)]
    factors = [Factor(s, rng.normal(size=[sizes[a] for a in s])) for s in sets]
    model = MarkovRandomField(junction_tree(sizes, sets), 50.0, factors)
    bins = np.arange(10_000) // 2500
    with pytest.raises(ModelError, match="100,000,000 cells"):
        model.marginals([(0, 3)])
    (table,) = model.marginals([(3, 0)], [(bins, bins)])
    # By hand: through the attributes between.
    given_first = binned(model.marginal((0, 1)), [bins, None]) / model.marginal((1,))
    given_last = binned(model.marginal((3, 2)), [bins, None]) / model.marginal((2,))
    np.testing.assert_allclose(
        table, given_last @ model.marginal((2, 1)) @ given_first.T, rtol=1e-9
    )


def test_cells_without_probability_are_carried_as_none():
    logs = np.zeros((3, 3))
    logs[1] = -np.inf
    tree = junction_tree((3, 3, 2), [(0, 1), (1, 2)])
    with np.errstate(divide="ignore", invalid="ignore"):
        model = MarkovRandomField(
            tree, 1.0, [Factor((0, 1), np.maximum(logs, -2000)), Factor((1, 2), np.zeros((3, 2)))]
        )
    (table,) = model.marginals([(0, 2)])
    np.testing.assert_allclose(table, [[0.25, 0.25], [0, 0], [0.25, 0.25]], atol=1e-15)


def test_a_list_of_any_marginals():
    model = random_model(6, (3, 4, 2, 5, 3), 6, 2)
    wanted = [(0, 1, 4), (2,), (4, 0), (3, 1), ()]
    for attributes, table in zip(wanted, model.marginals(wanted), strict=True):
        np.testing.assert_allclose(table, model.marginal(attributes), rtol=0, atol=1e-12)
    bins = [
        (None, np.array([0, 0, 1, 1]), None),
        (np.array([1, 0]),),
        (None, None),
        (np.arange(5) // 2, None),
        (),
    ]
    for attributes, maps, table in zip(wanted, bins, model.marginals(wanted, bins), strict=True):
        np.testing.assert_allclose(
            table, binned(model.marginal(attributes), list(maps)), rtol=0, atol=1e-12
        )
    with pytest.raises(ModelError, match="name different ones"):
        model.marginals([(1, 1)])
    with pytest.raises(ModelError, match="name different ones"):
        model.marginals([(1, 5)])
