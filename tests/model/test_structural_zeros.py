"""Structural zeros against brute force: no mass, no rows, and nothing lost elsewhere."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import drawn_combinations, joint_of, marginal_of, possible

from vertimrf.errors import ModelError
from vertimrf.model.fit import FitOptions, fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import MarkovRandomField
from vertimrf.model.measurement import Measurement, bin_table
from vertimrf.model.sample import sample
from vertimrf.model.structural_zeros import allowing, budget_holding, ruling_out


@st.composite
def cases(draw):
    """Sizes of a few attributes, combinations of up to three of them, and a seed."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=5)))
    return sizes, drawn_combinations(draw, sizes, 1, 6), draw(st.integers(0, 1 << 30))


def measurements(rng, sizes, joint, noise):
    """One-way marginals, and pairs of which some are binned, with noise that knows nothing of what is possible."""
    out = []
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    some = [pairs[i] for i in rng.choice(len(pairs), min(len(pairs), 4), replace=False)]
    for attributes in [*((a,) for a in range(len(sizes))), *some]:
        bins = [
            rng.integers(0, 2, sizes[a]) if len(attributes) > 1 and rng.random() < 0.4 else None
            for a in attributes
        ]
        shape = [sizes[a] if b is None else 2 for a, b in zip(attributes, bins, strict=True)]
        exact = bin_table(marginal_of(joint, attributes), bins, shape)
        out.append(
            Measurement(attributes, tuple(bins), exact + noise * rng.normal(size=shape), noise)
        )
    return out


@settings(max_examples=40)
@given(cases())
def test_no_fit_gives_them_mass_and_no_row_has_them(
    case,
):
    sizes, combinations, seed = case
    can = possible(sizes, combinations)
    assume(can.any())
    rng = np.random.default_rng(seed)
    joint = np.where(can, rng.dirichlet(np.full(can.size, 0.5)).reshape(sizes), 0.0) + can * 1e-3
    joint *= 1000 / joint.sum()
    zeros = ruling_out(sizes, combinations)
    rough = fit(
        sizes,
        measurements(rng, sizes, joint, 30.0),
        1000.0,
        zeros=zeros,
        options=FitOptions(steps=1, tolerance=0.5),
    )
    # Another graph, started from the model of the first, as a growing graph does.
    measured = measurements(rng, sizes, joint, 30.0)
    model = fit(sizes, measured, 1000.0, zeros=zeros, warm=rough)
    table = joint_of(model)
    assert not table[~can].any()
    for k in range(1, len(sizes) + 1):
        for attributes in itertools.combinations(range(len(sizes)), k):
            marginal = model.marginal(attributes)
            np.testing.assert_allclose(marginal / 1000, marginal_of(table, attributes), atol=1e-9)
            # Exactly nothing, not a little.
            assert not marginal[marginal_of(can.astype(int), attributes) == 0].any()
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    for attributes, marginal in zip(pairs, model.marginals(pairs), strict=True):
        assert not marginal[marginal_of(can.astype(int), attributes) == 0].any()
    assert can[tuple(sample(model, 500, rng))].all()
    header, arrays = model.parts()
    again = MarkovRandomField.of_parts(header, arrays)
    assert can[tuple(sample(again, 500, rng))].all()
    # Given a value that some record has.
    attribute = int(rng.integers(len(sizes)))
    values = np.flatnonzero(model.marginal((attribute,)) > 1e-6)
    if values.size:
        rows = sample(again, 200, rng, {attribute: values[:1]})
        assert (rows[attribute] == values[0]).all()
        assert can[tuple(rows)].all()


@pytest.mark.parametrize("seed", range(5))
def test_what_is_possible_is_fitted_as_well_as_ever(seed):
    """Noiseless measurements of a table with zeros: the model has them all, to the tolerance of a fit that goes on for long."""
    rng = np.random.default_rng(seed)
    sizes = (4, 3, 5, 2)
    combinations = [
        ((0, (0, 1)), (1, (2,))),
        ((1, (0,)), (2, (3, 4)), (3, (1,))),
        ((2, (0,)),),
    ]
    can = possible(sizes, combinations)
    joint = np.where(can, rng.dirichlet(np.full(can.size, 0.5)).reshape(sizes), 0.0)
    joint *= 10_000 / joint.sum()
    cliques = [(0, 1), (1, 2, 3), (2,)]
    measured = [Measurement(a, (None,) * len(a), marginal_of(joint, a), 1.0) for a in cliques]
    zeros = ruling_out(sizes, combinations)
    model = fit(
        sizes,
        measured,
        10_000.0,
        zeros=zeros,
        options=FitOptions(proximal_weight=1.0, min_improvement=0.0, tolerance=1e-3),
    )
    for a in cliques:
        # A record of ten thousand.
        np.testing.assert_allclose(model.marginal(a), marginal_of(joint, a), atol=1.0)


@pytest.mark.parametrize("seed", range(5))
def test_zeros_never_make_a_noisy_fit_worse(seed):
    """What is known without noise can only help: less distance to the truth, over all cells, by a mean of five tables each."""
    rng = np.random.default_rng([3, seed])
    sizes = (4, 3, 5, 2)
    combinations = [
        ((0, (0, 1)), (1, (1, 2))),
        ((1, (0,)), (2, (3, 4))),
        ((2, (0,)), (3, (1,))),
    ]
    can = possible(sizes, combinations)
    known, blind = 0.0, 0.0
    for _ in range(5):
        joint = np.where(can, rng.dirichlet(np.full(can.size, 1.0)).reshape(sizes), 0.0)
        joint *= 1000 / joint.sum()
        cliques = [(0, 1), (1, 2), (2, 3), (0, 3)]
        measured = [
            Measurement(
                a, (None, None), (t := marginal_of(joint, a)) + 20 * rng.normal(size=t.shape), 20.0
            )
            for a in cliques
        ]
        # The graphs are alike, so that the zeros alone differ.
        with_zeros, without = (
            fit(sizes, measured, 1000.0, zeros=z) for z in (ruling_out(sizes, combinations), ())
        )
        for a in cliques:
            known += float(np.abs(with_zeros.marginal(a) - marginal_of(joint, a)).sum())
            blind += float(np.abs(without.marginal(a) - marginal_of(joint, a)).sum())
    assert known < blind


def test_combinations_of_the_same_attributes_are_one_factor():
    zeros = ruling_out((2, 3, 2), [((0, (0,)), (1, (1, 2))), ((0, (1,)), (1, (0,))), ((2, (1,)),)])
    assert [f.attributes for f in zeros] == [(0, 1), (2,)]
    np.testing.assert_array_equal(zeros[0].logs == 0, [[True, False, False], [False, True, True]])
    axes = allowing((2, 0), np.array([[True, False], [True, True]]))
    assert axes.attributes == (0, 2)
    np.testing.assert_array_equal(axes.logs == 0, [[True, True], [False, True]])


def test_a_graph_holds_them_from_the_start():
    sizes = (4, 4, 4, 4, 4)
    combinations = [((a, (0,)), (a + 1, (0,))) for a in range(4)]
    zeros = ruling_out(sizes, combinations)
    budget = budget_holding(sizes, 16, zeros)
    assert budget.limit == 16
    assert budget.try_edges([(0, 2)]) is False
    tree = budget.tree()
    assert all(tree.covering(f.attributes) >= 0 for f in zeros)
    # A ring of four needs a clique of three, whatever the limit.
    ring = ruling_out(sizes, [*combinations[:3], ((0, (1,)), (3, (1,)))])
    wide = budget_holding(sizes, 16, ring)
    assert wide.limit == 64
    assert all(wide.tree().covering(f.attributes) >= 0 for f in ring)
    assert budget_holding(sizes, 16, ()).limit == 16


def test_a_tree_without_them_is_refused():
    sizes = (2, 2, 2)
    one_way = [Measurement((a,), (None,), np.full(2, 50.0), 1.0) for a in range(3)]
    zeros = ruling_out(sizes, [((0, (0,)), (1, (0,)))])
    with pytest.raises(ModelError, match="holds the structural zeros of attributes"):
        fit(sizes, one_way, 100.0, tree=junction_tree(sizes, []), zeros=zeros)


def test_a_model_keeps_them_when_asked_across_cliques(tmp_path):
    """A chain of implications: what the ends may not be together is exactly nothing too, though no clique holds both."""
    sizes = (2,) * 6
    combinations = [((a, (1,)), (a + 1, (0,))) for a in range(5)]
    one_way = [Measurement((a,), (None,), np.array([500.0, 500.0]), 1.0) for a in range(6)]
    model = fit(sizes, one_way, 1000.0, zeros=ruling_out(sizes, combinations))
    assert model.tree.treewidth == 1
    assert model.marginal((0, 5))[1, 0] == 0.0
    assert model.marginals([(0, 5)])[0][1, 0] == 0.0
    assert model.restricted({0: [1]}).marginal((5,))[0] == 0.0
    rows = sample(model, 3000, np.random.default_rng(0), {0: [1]})
    assert functools.reduce(np.logical_and, rows).all()


@pytest.mark.parametrize("seed", range(4))
def test_measurements_of_what_cannot_be_are_fitted_as_near_as_may_be(seed):
    """Half of a table is ruled out; precise measurements of that half neither bring it back nor break the fit."""
    rng = np.random.default_rng(seed)
    sizes = (2, 5, 2, 4)
    combinations = [((0, (0,)), (2, (0,))), ((0, (0,)), (2, (1,)))]
    # The half that is left has the others' margins.
    joint = np.stack([rng.dirichlet(np.full(40, 2.0)).reshape(sizes[1:])] * 2) * 10_000
    cliques = [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 2), (0, 3), (2, 3)]
    measured = [Measurement(a, (None,) * len(a), marginal_of(joint, a), 0.1) for a in cliques]
    model = fit(sizes, measured, 20_000.0, zeros=ruling_out(sizes, combinations))
    assert model.marginal((0,))[0] == 0.0
    assert not model.marginal((0, 1))[0].any()
    for a in (1, 2, 3):
        np.testing.assert_allclose(model.marginal((a,)), marginal_of(joint, (a,)), rtol=0.1)


def test_zeros_that_leave_nothing_are_one_sentence():
    zeros = ruling_out((2, 2), [((0, (0,)), (1, (0, 1))), ((0, (1,)), (1, (0,))), ((1, (1,)),)])
    with pytest.raises(ModelError, match="The structural zeros leave no combination possible"):
        fit((2, 2), [Measurement((0,), (None,), np.full(2, 50.0), 1.0)], 100.0, zeros=zeros)
