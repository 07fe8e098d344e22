"""Factors beyond the junction tree: what is measured there is met, what the tree holds stays, and noise alone is left alone."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders import named_model, schema_of
from oracles import joint_of, marginal_of

from vertimrf.kernels.contingency import contingency
from vertimrf.kernels.jit import threads
from vertimrf.model import evidence, off_tree
from vertimrf.model.fit import fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement
from vertimrf.model.off_tree import RowDual, fit_off_tree
from vertimrf.model.sample import marginals_of_rows, propose, sample
from vertimrf.model.structural_zeros import allowing
from vertimrf.named_model import Model

SIZES = (4, 5, 3, 4)
CHAIN = [(0, 1), (1, 2), (2, 3)]
OUTSIDE = [(0, 3), (0, 2), (1, 3)]
TOTAL, SIGMA = 20_000.0, 15.0


def truth(seed=0):
    """A joint table of a cycle of four, counts."""
    rng = np.random.default_rng(seed)
    logs = np.zeros(SIZES)
    for pair in (*CHAIN, (0, 3)):
        logs += 0.8 * rng.normal(size=[SIZES[a] if a in pair else 1 for a in range(4)])
    joint = np.exp(logs)
    return TOTAL * joint / joint.sum()


def measured(joint, pairs, seed, sigma=SIGMA):
    rng = np.random.default_rng(seed)
    return [
        Measurement(
            p,
            (None,) * len(p),
            (c := marginal_of(joint, p)) + sigma * rng.normal(size=c.shape),
            sigma,
        )
        for p in pairs
    ]


def of_chain(measurements):
    """Fitted to what the chain holds."""
    tree = junction_tree(SIZES, CHAIN)
    return fit(
        SIZES, [m for m in measurements if tree.covering(m.attributes) >= 0], TOTAL, tree=tree
    )


def test_rows_meet_what_is_measured_beyond_the_tree_and_keep_what_it_holds():
    joint = truth()
    measurements = measured(joint, [*CHAIN, *OUTSIDE], 1)
    model = of_chain(measurements)
    closed = fit_off_tree(model, measurements)[0]
    assert closed.off_tree
    assert closed.tree is model.tree
    assert {(0, 3), *CHAIN} <= {f.attributes for f in closed.off_tree}
    for pair in (*CHAIN, *OUTSIDE):
        far, near = (
            np.abs(marginals_of_rows(m, [pair])[0] - marginal_of(joint, pair))
            for m in (model, closed)
        )
        # Noise of the measurement, of 2^17 rows that weights are fitted on and of 2^18 that answer, weighed.
        spread = np.sqrt(SIGMA**2 + 4 * TOTAL**2 / 2**17 * marginal_of(joint, pair) / TOTAL)
        assert (near < 5 * spread).all(), pair
        if pair == (0, 3):
            assert (far > 10 * spread).any()
            assert near.sum() < far.sum() / 8
    rows = 20_000
    counts = contingency(sample(closed, rows, np.random.default_rng(0)), SIZES, (0, 3))
    assert (
        np.abs(counts - marginal_of(joint, (0, 3)))
        < 5 * np.sqrt(SIGMA**2 + marginal_of(joint, (0, 3)))
    ).all()


def test_bins_and_three_attributes_are_met_as_well():
    joint = truth(2)
    bins = np.array([0, 0, 1, 1, 1])
    table = marginal_of(joint, (0, 1, 3))
    rough = np.stack([table[:, bins == b].sum(axis=1) for b in (0, 1)], axis=1)
    rng = np.random.default_rng(3)
    measurements = measured(joint, CHAIN, 3)
    model = of_chain(measurements)
    triple = Measurement(
        (0, 1, 3), (None, bins, None), rough + SIGMA * rng.normal(size=rough.shape), SIGMA
    )
    closed = fit_off_tree(model, [*measurements, triple])[0]
    factor = next(f for f in closed.off_tree if f.attributes == (0, 1, 3))
    assert factor.logs.shape == (4, 5, 4)
    np.testing.assert_array_equal(factor.logs[:, 0], factor.logs[:, 1])
    np.testing.assert_array_equal(factor.logs[:, 2], factor.logs[:, 4])
    by_rows = marginals_of_rows(closed, [(0, 1, 3)])[0]
    met = np.stack([by_rows[:, bins == b].sum(axis=1) for b in (0, 1)], axis=1)
    assert (np.abs(met - rough) < 5 * np.sqrt(SIGMA**2 + 4 * TOTAL / 2**17 * rough)).all()


@pytest.mark.parametrize(
    "lookups, of_few_cells, rows_per_cell, tables",
    # Tables have 16, 12, 20, 20, 15 and 12 cells, 48 of them outside.
    [
        (6, 6, 1e9, 6),
        (2, 6, 1e9, 2),
        (0, 6, 1e9, 1),
        (2, 6, (1 << 17) / 48, 3),
        (2, 6, (1 << 17) / 47, 2),
        (2, 4, 1, 4),
    ],
)
def test_more_tables_are_looked_up_where_their_cells_are_few(
    monkeypatch,
    lookups,
    of_few_cells,
    rows_per_cell,
    tables,
):
    rows = 1 << 17
    monkeypatch.setattr(off_tree, "MAX_LOOKUPS", lookups * rows)
    monkeypatch.setattr(off_tree, "MAX_LOOKUPS_OF_FEW_CELLS", of_few_cells * rows)
    monkeypatch.setattr(off_tree, "ROWS_PER_CELL", rows_per_cell)
    joint = truth()
    measurements = measured(joint, [*CHAIN, *OUTSIDE], 13)
    assert sorted(m.counts.size for m in measurements if m.attributes in OUTSIDE) == [12, 16, 20]
    assert len(fit_off_tree(of_chain(measurements), measurements)[0].off_tree) == tables


@pytest.mark.parametrize(
    "worth, steps, final",
    [
        # Each step that is taken back is followed by one five times shorter, three times where none has stood.
        ([0.1, 0.1, 0.1, 0.9, 0.1], [1, 5, 25, 125, 125], True),
        ([0.1, 0.1, 0.1, 0.1], [1, 5, 25, 125], False),
        ([0.1, 0.9, 0.1], [1, 5, 5], True),
        ([0.9, 0.1, 0.1], [1, 1, 5], True),
    ],
)
def test_steps_after_which_rows_are_worth_little_are_taken_back_and_shorter_ones_tried(
    monkeypatch, worth, steps, final
):
    worths, weights = iter(worth), []
    step = RowDual.step

    def noted(self, weight, *rest):
        weights.append(weight)
        return step(self, weight, *rest)

    monkeypatch.setattr(RowDual, "effective", property(lambda _: next(worths)))
    monkeypatch.setattr(RowDual, "step", noted)
    # Nothing else ends the steps.
    monkeypatch.setattr(off_tree, "NOISE_ALONE", 0.0)
    monkeypatch.setattr(off_tree, "MIN_IMPROVEMENT", -np.inf)
    measurements = measured(truth(), [*CHAIN, *OUTSIDE], 14)
    fitted = fit_off_tree(of_chain(measurements), measurements)[0]
    np.testing.assert_allclose(np.divide(weights, weights[0]), steps)
    assert next(worths, None) is None
    # What is taken back leaves nothing but rounding.
    assert (max(np.abs(f.logs).max() for f in fitted.off_tree) > 1e-3) == final


def test_where_nothing_lies_outside_or_stands_out_the_model_is_left_as_it_is():
    joint = truth()
    inside = measured(joint, CHAIN, 4)
    model = of_chain(inside)
    assert fit_off_tree(model, inside) == (model, frozenset())
    assert fit_off_tree(model, []) == (model, frozenset())
    # What the model says itself, with noise.
    rng = np.random.default_rng(5)
    said = [
        Measurement(
            p, (None, None), (c := model.marginal(p)) + SIGMA * rng.normal(size=c.shape), SIGMA
        )
        for p in OUTSIDE
    ]
    quiet = [replace(m, sigma=2 * SIGMA) for m in said]
    assert fit_off_tree(model, [*inside, *quiet]) == (model, frozenset())


def test_no_more_stands_out_of_noise_than_chance_has_it(monkeypatch):
    """Of 66 pairs of noise alone, 3 would be taken in each run if one in twenty were.

    Noise is well above the sampling error of the rows that stand for the model.
    """
    monkeypatch.setattr(evidence, "NOISE_AMONG", 0.05)
    rng = np.random.default_rng(7)
    even = np.full((4, 4), TOTAL / 16)
    model = fit((4,) * 12, [], TOTAL)
    out = 0
    for _ in range(10):
        measurements = [
            Measurement(pair, (None, None), even + 6 * SIGMA * rng.normal(size=(4, 4)), 6 * SIGMA)
            for pair in itertools.combinations(range(12), 2)
        ]
        out += fit_off_tree(model, measurements)[0] is not model
    # P(6 or more of 10 at a chance of 0.05) is 3e-6.
    assert out < 6


def test_a_function_of_its_arguments_alone():
    measurements = measured(truth(), [*CHAIN, *OUTSIDE], 8)
    model = of_chain(measurements)
    fitted = []
    for number in (1, 2, 2):
        with threads(number):
            fitted.append(fit_off_tree(model, measurements)[0])
    for other in fitted[1:]:
        assert [f.attributes for f in other.off_tree] == [f.attributes for f in fitted[0].off_tree]
        for a, b in zip(other.off_tree, fitted[0].off_tree, strict=True):
            np.testing.assert_array_equal(a.logs, b.logs)
    calls = []
    fit_off_tree(model, measurements, progress=lambda *call: calls.append(call))
    assert calls
    assert [step for step, _, _ in calls] == sorted(step for step, _, _ in calls)


def test_combinations_that_cannot_occur_stay_impossible():
    joint = truth(9)
    measurements = measured(joint, [*CHAIN, *OUTSIDE], 9)
    tree = junction_tree(SIZES, CHAIN)
    ruled_out = np.zeros((4, 5), bool)
    ruled_out[1, 2] = ruled_out[3, 0] = True
    zeros = [allowing((0, 1), ~ruled_out)]
    inside = [m for m in measurements if tree.covering(m.attributes) >= 0]
    model = fit_off_tree(fit(SIZES, inside, TOTAL, tree=tree, zeros=zeros), measurements)[0]
    assert model.off_tree
    counts = contingency(sample(model, 50_000, np.random.default_rng(0)), SIZES, (0, 1))
    assert not counts[ruled_out].any()
    assert counts[~ruled_out].all()


def test_attributes_of_one_value_and_none_that_is_measured():
    sizes = (1, 3, 2)
    tree = junction_tree(sizes, [])
    singles = [
        Measurement((a,), (None,), np.full(size, 300.0 / size), 1.0) for a, size in enumerate(sizes)
    ]
    model = fit(sizes, singles, 300.0, tree=tree)
    pair = Measurement((1, 2), (None, None), np.array([[100.0, 0], [0, 100], [50, 50]]), 1.0)
    lone = Measurement((0, 1), (None, None), np.full((1, 3), 100.0), 1.0)
    closed = fit_off_tree(model, [*singles, pair, lone])[0]
    assert np.abs(marginals_of_rows(closed, [(1, 2)])[0] - pair.counts).max() < 10
    assert sample(closed, 1, np.random.default_rng(0)).shape == (3, 1)


def test_a_saved_model_draws_the_same_rows(tmp_path):
    measurements = measured(truth(), [*CHAIN, *OUTSIDE], 10)
    field = fit_off_tree(of_chain(measurements), measurements)[0]
    schema = schema_of(one=SIZES[:2], two=SIZES[2:])
    model = named_model(schema, field)
    model.save(tmp_path / "a.model")
    back = Model.load(tmp_path / "a.model")
    assert [f.attributes for f in back.field.off_tree] == [f.attributes for f in field.off_tree]
    assert back.sample(500, seed=1).equals(model.sample(500, seed=1))
    names = schema.names
    pair = [names[0], names[3]]
    np.testing.assert_allclose(back.marginal(pair), model.marginal(pair), rtol=1e-9)
    # By rows where no clique holds them, and as the rows have it; by the tree where one does.
    np.testing.assert_array_equal(model.marginal(pair), marginals_of_rows(field, [(0, 3)])[0])
    np.testing.assert_array_equal(model.marginal(list(names[:2])), field.marginal((0, 1)))
    assert np.abs(model.marginal(pair) - field.marginal((0, 3))).max() > 20 * SIGMA
    # So many rows on a condition as the marginal says.
    drawn = model.sample(given={names[0]: 1, names[3]: 2}, seed=1)
    assert (
        abs(drawn.num_rows - model.marginal(pair)[1, 2])
        < 5 * np.sqrt(4 * TOTAL / 2**18 * model.marginal(pair)[1, 2]) + 1
    )


@pytest.mark.parametrize("given", [{0: [1, 3]}, {3: [0], 1: [4, 2]}])
def test_conditions_follow_the_fitted_factors(given):
    measurements = measured(truth(), [*CHAIN, *OUTSIDE], 11)
    model = fit_off_tree(of_chain(measurements), measurements)[0]
    joint = joint_of(model)
    kept = np.zeros(SIZES)
    chosen = np.ix_(*(given.get(a, range(size)) for a, size in enumerate(SIZES)))
    kept[chosen] = joint[chosen] / joint[chosen].sum()
    rows = 20_000
    codes = sample(model, rows, np.random.default_rng(12), given)
    for pair in itertools.combinations(range(4), 2):
        counts, expected = contingency(codes, SIZES, pair), rows * marginal_of(kept, pair)
        assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


def test_the_rows_own_error_counts_as_noise_and_steps_can_be_taken_back():
    # Without it, weights go by the rows' noise where measurements are precise and records many.
    joint = truth(3)
    measurements = measured(joint, OUTSIDE, 5, sigma=2.0)
    codes = propose(of_chain(measured(joint, CHAIN, 6)), 1000, np.random.default_rng(0))
    dual = RowDual(codes, measurements, TOTAL, codes)
    counts = np.concatenate([m.counts.ravel() for m in measurements])
    assert dual.constrained.mean() > 0.5
    # A row stands for twenty records: a cell of c of them has the variance 20 c, at most.
    np.testing.assert_allclose(
        dual.sigma[dual.constrained], np.sqrt(4 + 20 * np.maximum(counts, 1))[dual.constrained]
    )
    before = dual.calibrate(np.zeros_like(counts))[1]
    assert dual.effective == pytest.approx(1)
    theta, after = dual.step(0.01, np.zeros_like(counts), 0.1, 300, None)
    assert dual.effective < 0.99
    assert np.abs(after - before).max() > 1
    dual.absorb(-theta)
    assert dual.effective == pytest.approx(1)
    np.testing.assert_allclose(dual.calibrate(np.zeros_like(counts))[1], before)
    np.testing.assert_allclose(dual.theta, 0, atol=1e-12)


def test_weights_are_tried_out_on_fresh_rows():
    # None of the rows has a value that the measurement gives many records; of the fresh ones one in a hundred has.
    codes = np.stack([np.repeat([0, 1], 500), np.tile([0, 1], 500)]).astype(np.uint16)
    fresh = np.where(np.arange(1000) % 100 == 0, 2, codes).astype(np.uint16)
    counts = np.zeros((3, 3))
    counts[2, 2], counts[:2, :2] = 500.0, 250.0
    dual = RowDual(codes, [Measurement((0, 1), (None, None), counts, 5.0)], 1000.0, fresh)
    assert dual.constrained.reshape(3, 3)[2].sum() == 0
    theta, _ = dual.step(0.01, np.zeros(9), 0.1, 300, None)
    # Nothing pulls at what no row has, so that weights are as good on fresh rows.
    assert abs(theta[8]) < 1e-3
    assert dual.effective > 0.9
    dual.theta[8] = 20.0
    assert dual.effective < 0.1
