"""The Markov random field against brute force, finite differences and non-negative least squares."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import marginal_of
from scipy.optimize import lsq_linear

from vertimrf.errors import ModelError
from vertimrf.files import container
from vertimrf.kernels.jit import threads
from vertimrf.model import passes
from vertimrf.model import propagation as layout
from vertimrf.model.fit import LEAST, MIN_ON_TOP, FitOptions, _free_parts, fit, positive_counts
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.model.measurement import Measurement
from vertimrf.model.propagation import Propagation
from vertimrf.model.proximal_step import Dual, LogFactors


def measurement(attributes, values, sigma=1.0, bins=None):
    maps = (None,) * len(attributes) if bins is None else bins
    return Measurement(attributes, maps, np.asarray(values, np.float64), sigma, "test")


def random_model(rng):
    """A small model, its joint probabilities and log normaliser by brute force."""
    d = int(rng.integers(1, 8))
    sizes = tuple(int(s) for s in rng.integers(1, 5, d))
    factors = []
    logs = np.zeros(sizes)
    for _ in range(rng.integers(1, 9)):
        attributes = tuple(
            sorted(int(a) for a in rng.choice(d, min(d, int(rng.integers(1, 5))), replace=False))
        )
        table = 3 * rng.normal(size=[sizes[a] for a in attributes])
        factors.append(Factor(attributes, table))
        logs += table.reshape([sizes[a] if a in attributes else 1 for a in range(d)])
    tree = junction_tree(
        sizes, {e for f in factors for e in itertools.combinations(f.attributes, 2)}
    )
    top = logs.max()
    joint = np.exp(logs - top)
    return (
        MarkovRandomField(tree, 1000.0, factors),
        joint / joint.sum(),
        top + math.log(joint.sum()),
    )


def logs_of(model):
    """The factors of a model, as fits have them."""
    factors = LogFactors(model.tree, [f.attributes for f in model.factors])
    for f in model.factors:
        factors.add(f.attributes, f.logs)
    return factors


def random_measurements(rng, model):
    """Measurements of the model's factors, some attributes binned."""
    out = []
    for f in model.factors:
        bins = [
            rng.integers(0, 2, model.sizes[a]) if rng.random() < 0.3 else None for a in f.attributes
        ]
        shape = [
            model.sizes[a] if b is None else 2 for a, b in zip(f.attributes, bins, strict=True)
        ]
        out.append(
            Measurement(
                f.attributes, tuple(bins), 10 * rng.normal(size=shape), 1 + rng.random(shape)
            )
        )
    return out


def test_marginals_equal_brute_force_on_random_models():
    rng = np.random.default_rng(0)
    for _ in range(200):
        model, joint, _ = random_model(rng)
        for _ in range(5):
            k = int(rng.integers(1, joint.ndim + 1))
            attributes = tuple(int(a) for a in rng.choice(joint.ndim, k, replace=False))
            np.testing.assert_allclose(
                model.marginal(attributes) / 1000,
                marginal_of(joint, attributes),
                rtol=0,
                atol=1e-12,
            )


def test_normaliser_and_gradient_equal_finite_differences():
    rng = np.random.default_rng(1)
    for _ in range(20):
        model, joint, log_total = random_model(rng)
        measurements = random_measurements(rng, model)
        factors = logs_of(model)
        dual = Dual(factors, measurements, 50.0)
        theta = np.zeros_like(dual.measured)
        normaliser, counts = dual.calibrate(theta)
        assert normaliser == pytest.approx(log_total, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(
            counts,
            50 * np.concatenate([binned(joint, m).ravel() for m in measurements]),
            atol=1e-11,
        )
        pull = 0.3 * dual.sigma**2
        theta = rng.normal(size=theta.shape)
        _, gradient = dual.value(pull, theta)
        step = 1e-5
        for i in rng.choice(theta.size, min(theta.size, 12), replace=False):
            unit = np.eye(theta.size)[i] * step
            slope = (dual.value(pull, theta + unit)[0] - dual.value(pull, theta - unit)[0]) / (
                2 * step
            )
            # The difference quotient's error: third derivatives of a total of 50, and rounding of the value.
            assert slope == pytest.approx(gradient[i], rel=1e-5, abs=1e-4)


def binned(joint, m):
    out = np.zeros(m.counts.shape)
    table = marginal_of(joint, m.attributes)
    for cell in np.ndindex(table.shape):
        out[tuple(c if b is None else b[c] for c, b in zip(cell, m.bins, strict=True))] += table[
            cell
        ]
    return out


def test_settling_keeps_the_distribution():
    rng = np.random.default_rng(8)
    for _ in range(20):
        model, joint, _ = random_model(rng)
        if not model.factors:
            continue
        factors = logs_of(model)
        # Parts that cancel, far beyond what products of factors could stand.
        sets = factors.engine.factors
        for a, b in itertools.combinations(range(len(sets)), 2):
            for attribute in set(sets[a]) & set(sets[b]):
                part = 300 * rng.normal(size=model.sizes[attribute])
                for f, sign in ((a, 1), (b, -1)):
                    shape = [-1 if i == attribute else 1 for i in sets[f]]
                    factors._table(factors.logs, f)[...] += sign * part.reshape(shape)
        for f in range(len(sets)):
            factors._table(factors.marginals, f)[...] = marginal_of(joint, sets[f])
        factors.rebalance()
        assert np.abs(factors.logs).max() < 200
        settled = MarkovRandomField(model.tree, 1000.0, [Factor(*t) for t in factors.tables()])
        for clique in model.tree.cliques:
            np.testing.assert_allclose(
                settled.marginal(clique) / 1000, marginal_of(joint, clique), rtol=0, atol=1e-9
            )


def random_factors(rng, sizes):
    d = len(sizes)
    wide = {
        tuple(sorted(int(a) for a in rng.choice(d, k, replace=False)))
        for k in (1, 2, 2, 2, 3, 3, d - 1)
    }
    return sorted(wide)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("blocks", [1 << 18, 50])
def test_passes_over_one_large_clique(seed, blocks, monkeypatch):
    """All kinds of tables, levels and blocks, serial and parallel: equal to numpy, and to each other bit by bit."""
    monkeypatch.setattr(layout, "BLOCK_CELLS", blocks)
    monkeypatch.setattr(layout, "PARALLEL_CELLS", 0)
    monkeypatch.setattr(passes, "LARGE_TABLE", 8)
    monkeypatch.setattr(passes, "ROW", [150.0, 1.0][seed % 2])
    monkeypatch.setattr(passes, "LARGEST_INNER", [512, 1, 1, 8][seed % 4])
    rng = np.random.default_rng(seed)
    sizes = tuple(int(s) for s in rng.integers(1, 7, 5)) if seed % 3 else (2,) * 11
    factors = random_factors(rng, sizes)
    # One clique of all but the last two attributes, and one that overlaps it in a large separator.
    cliques = [tuple(range(len(sizes) - 1)), tuple(range(1, len(sizes)))]
    edges = {e for c in cliques for e in itertools.combinations(c, 2)}
    tree = junction_tree(sizes, edges)
    factors = [f for f in factors if tree.covering(f) >= 0]
    engine = Propagation(tree, factors)
    joint = np.ones(sizes)
    for f, begin, end in zip(engine.factors, engine.offsets[:-1], engine.offsets[1:], strict=True):
        values = rng.random(end - begin) ** 3
        engine.memory[begin:end] = values
        table = values.reshape([sizes[a] for a in f]).transpose(np.argsort(f))
        joint *= table.reshape([sizes[a] if a in f else 1 for a in range(len(sizes))])
    results = []
    for count in (1, 2):
        with threads(count):
            results.append(
                (
                    engine.run(),
                    engine.memory[engine.marginals : engine.marginals + engine.offsets[-1]].copy(),
                )
            )
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][0] == pytest.approx(math.log(joint.sum()), rel=1e-12, abs=1e-12)
    for f, begin, end in zip(engine.factors, engine.offsets[:-1], engine.offsets[1:], strict=True):
        np.testing.assert_allclose(
            results[0][1][begin:end], marginal_of(joint / joint.sum(), f).ravel(), rtol=1e-11
        )
    for c, clique in enumerate(tree.cliques):
        np.testing.assert_allclose(
            engine.belief(c), marginal_of(joint / joint.sum(), clique), rtol=1e-11
        )


def test_impossible_factors_have_no_normaliser():
    engine = Propagation(junction_tree((2, 3), [(0, 1)]), [(0, 1)])
    engine.memory[: engine.offsets[-1]] = 0.0
    assert math.isnan(engine.run())


@pytest.mark.parametrize(
    "sizes, wanted",
    [
        ((3, 4, 2), [((0, 1), ()), ((1, 2), ()), ((0, 2), ()), ((1,), ())]),
        (
            (2, 4, 2),
            [
                *(((0,), ()), ((2,), ()), ((1,), ())),
                *(((0, 1), (0,)), ((0, 2), (0, 1)), ((0, 1, 2), (0, 2))),
            ],
        ),
    ],
    ids=["counts", "contrasts, whose means are left alone"],
)
def test_many_steps_reach_non_negative_least_squares(sizes, wanted):
    rng = np.random.default_rng(5)
    total, cells = 200.0, math.prod(sizes)
    truth = rng.dirichlet(np.full(cells, 0.5)).reshape(sizes) * total
    measurements, rows, values = [], [], []
    for attributes, contrasts in wanted:
        table = marginal_of(truth, attributes)
        # Equal along the axes of contrasts.
        spread = [1 if i in contrasts else n for i, n in enumerate(table.shape)]
        sigma = np.ones(table.shape) * (2 + 6 * rng.random(spread))
        noisy = table + rng.normal(size=table.shape) * sigma
        m = Measurement(attributes, (None,) * table.ndim, noisy, sigma, "", contrasts)
        measurements.append(m)
        units = (marginal_of(cell.reshape(sizes), attributes) for cell in np.eye(cells))
        rows.append(np.array([(m.contrasted(unit) / sigma).ravel() for unit in units]).T)
        values.append((m.contrasted(m.counts) / sigma).ravel())
    # The total is a constraint: a row of large weight.
    weighted = (
        np.vstack([*rows, np.full((1, cells), 1e4)]),
        np.concatenate([*values, [1e4 * total]]),
    )
    # Not nnls, which may turn in circles in SciPy 1.12.
    best = lsq_linear(*weighted, (0, np.inf), method="bvls", tol=1e-14).x
    least = 0.5 * float(np.sum((np.vstack(rows) @ best - np.concatenate(values)) ** 2))
    exact = {"proximal_weight": 10.0, "min_improvement": 0.0, "tolerance": 1e-5}
    losses = [
        fit(sizes, measurements, total, options=FitOptions(steps=steps, **exact)).loss
        for steps in (1, 5, 400)
    ]
    assert losses[0] > losses[1] > losses[2]
    # A proximal step's excess loss is at most weight * total * KL(optimum || start) / steps.
    assert least <= losses[2] * (1 + 1e-9)
    assert losses[2] <= least + 0.05


def test_steps_end_where_they_gain_little():
    rng = np.random.default_rng(11)
    table = rng.dirichlet(np.ones(12)).reshape(3, 4) * 1e4
    measurements = [measurement((0, 1), table + rng.normal(0, 300, (3, 4)), 300.0)]
    losses = [
        fit((3, 4), measurements, 1e4, options=FitOptions(min_improvement=0.0, steps=steps)).loss
        for steps in range(1, 12)
    ]
    # Losses are half of the 12 cells' squared residuals.
    last = next(i for i in range(1, 11) if 2 / 12 * (losses[i - 1] - losses[i]) < 0.1)
    assert 0 < last < 10
    assert fit(
        (3, 4), measurements, 1e4, options=FitOptions(min_improvement=0.1)
    ).loss == pytest.approx(losses[last], rel=1e-6)


def one_of_28_pairs(seed, dependence):
    """Measurements of eight attributes of four values, of which the first pair depends on each other; its exact counts."""
    size, total, sigma, attributes = 4, 1e4, 60.0, 8
    apart = np.full((size, size), total / size**2)
    exact = (1 - dependence) * apart + dependence * total * np.eye(size) / size
    rng = np.random.default_rng(seed)
    measurements = [measurement((a,), np.full(size, total / size), 5.0) for a in range(attributes)]
    for pair in itertools.combinations(range(attributes), 2):
        counts = exact if pair == (0, 1) else apart
        measurements.append(measurement(pair, counts + rng.normal(0, sigma, (size, size)), sigma))
    return measurements, exact


def test_marginals_that_are_mostly_noise_are_followed_less():
    """Beside three steps that treat all alike, the pair that holds something comes closer, and others' noise stays out."""
    taken = {"shrunk": [], "followed": []}
    for seed in range(20):
        measurements, exact = one_of_28_pairs(seed, 0.5)
        for name, options in (("shrunk", {}), ("followed", {"min_improvement": 0.0, "steps": 3})):
            model = fit((4,) * 8, measurements, 1e4, options=FitOptions(**options))
            noise = [
                np.abs(model.marginal(pair) - 1e4 / 16).mean()
                for pair in itertools.combinations(range(8), 2)
                if pair != (0, 1)
            ]
            taken[name].append(
                (float(np.mean(noise)), float(np.abs(model.marginal((0, 1)) - exact).mean()))
            )
    shrunk, followed = (np.mean(values, axis=0) for values in taken.values())
    # In records: 18 and 42 beside 21 and 160, with standard errors of 0.6 and 2.
    assert shrunk[0] < 0.95 * followed[0]
    assert shrunk[1] < 0.5 * followed[1]


def test_what_a_workload_needs_is_followed_more_closely():
    """Of 4,000 records on the diagonal independence has 2,500, and a fit that ends early loses some."""
    lost = {False: [], True: []}
    for seed in range(40):
        measurements, exact = one_of_28_pairs(seed, 0.2)
        for asked, traces in lost.items():
            flagged = [replace(m, asked=asked and m.attributes == (0, 1)) for m in measurements]
            table = fit((4,) * 8, flagged, 1e4).marginal((0, 1))
            traces.append(np.trace(exact - table))
    plain, asked = (np.mean(traces) for traces in lost.values())
    # In records: 44 and 18. The standard error of the difference is 4.6, that of each 20.
    assert plain - asked > 26 - 4.3 * 4.6
    assert abs(asked) < 18 + 4.3 * 20


def test_trends_are_followed_to_the_end():
    """Beside 27 pairs of noise alone, a table of one number. Of the 3,000 records by which it differs from independence, fits
    leave 178, with a standard error of 45; 390 if they end by all cells' residuals, and nearly all of those that have noise in
    every direction."""
    lost = []
    for seed in range(10):
        measurements, exact = one_of_28_pairs(seed, 0.2)
        read = [
            replace(m, trend=True, counts=exact, sigma=300.0) if m.attributes == (0, 1) else m
            for m in measurements
        ]
        lost.append(np.abs(fit((4,) * 8, read, 1e4).marginal((0, 1)) - exact).sum())
    assert np.mean(lost) < 290


def test_the_margins_of_a_table_leave_the_rest_of_its_cells_free():
    measurements = [measurement((0,), np.ones(4), 1.0), measurement((0, 1), np.ones((4, 3)), 1.0)]
    # 3 of 4 cells, and 3 * 2 of 12.
    np.testing.assert_allclose(_free_parts(measurements), [0.75] * 4 + [0.5] * 12)
    # What contrasts leave free is never less.
    contrast = Measurement((0, 1), (None, None), np.ones((2, 2)), 1.0, contrasts=(0, 1))
    np.testing.assert_allclose(_free_parts([contrast]), [0.25] * 4)
    assert contrast.freedom == 0.25


def test_steps_go_on_where_few_of_many_cells_hold_anything():
    """The mean residual then falls by little, but not by following the noise: the error of the pair falls as well."""
    rng = np.random.default_rng(12)
    size, total, sigma = 120, 1e5, 20.0
    table = np.zeros((size, size))
    table[rng.permutation(size), np.arange(size)] = rng.dirichlet(np.ones(size)) * total
    margins = [measurement((a,), table.sum(axis=1 - a), 10.0) for a in (0, 1)]
    measurements = [*margins, measurement((0, 1), table + rng.normal(0, sigma, table.shape), sigma)]

    def error(**options):
        return float(
            np.abs(
                fit((size, size), measurements, total, options=FitOptions(**options)).marginal(
                    (0, 1)
                )
                - table
            ).sum()
            / (2 * total)
        )

    by_steps = [error(min_improvement=0.0, steps=steps) for steps in (8, 16, 32)]
    assert error() <= min(by_steps)
    assert error(min_improvement=0.02) > 1.5 * min(by_steps)


def test_one_way_measurements_give_independent_attributes():
    first, second = np.array([30.0, 50, 20]), np.array([90.0, 10])
    model = fit((3, 2), [measurement((0,), first, 0.1), measurement((1,), second, 0.1)], 100.0)
    np.testing.assert_allclose(model.marginal((0, 1)), np.outer(first, second) / 100, rtol=1e-3)
    np.testing.assert_allclose(model.marginal((1, 0)), model.marginal((0, 1)).T)


@given(
    st.lists(st.tuples(st.floats(-99, 999), st.floats(0.1, 50)), min_size=1, max_size=30),
    st.floats(1, 5000),
)
def test_positive_counts_are_the_nearest_that_have_the_sum(cells, total):
    """The conditions of Karush, Kuhn and Tucker."""
    counts, errors = np.array(cells).T
    found, least = positive_counts(counts, errors, total), LEAST * errors
    assert (found >= least).all()
    if total > least.sum():
        assert math.isclose(found.sum(), total, rel_tol=1e-9)
    lowered = (counts - found) / np.square(errors)
    above = found > least
    if above.any():
        common = lowered[above].mean()
        scale = 1e-9 * (1 + np.abs(counts / np.square(errors)).max() + total)
        np.testing.assert_allclose(lowered[above], common, atol=scale)
        assert (lowered[~above] <= common + scale).all()


def test_rare_values_start_with_no_more_records_than_their_noise_shows():
    """A skewed column of 100 values in 1,500 records with noise of 10, whose mean is 0.67. After one step, the fit's is 7.8; it
    was 11.5 when noisy counts were raised first and then scaled down to the total. The draw is fixed."""
    true = np.round(500 * 2.0 ** -np.arange(100))
    true[0] += 500
    noisy = true + np.random.default_rng(5).normal(0, 10, len(true))
    start = measurement((0,), noisy, 10.0)
    model = fit((len(true),), [start], true.sum(), options=FitOptions(steps=1))
    assert model.marginal((0,)) @ np.arange(100) / true.sum() < 9.5


def test_binned_pairs_are_refined_by_one_way_marginals():
    """HisRec: Pr[A, B] = sum of Pr[X, Y] Pr[A|X] Pr[B|Y] is the maximum-entropy fit."""
    rng = np.random.default_rng(3)
    bins = (np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1]))
    a, b = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(3))
    x, y = np.bincount(bins[0], a), np.bincount(bins[1], b)
    delta = np.array([[0.01, -0.01], [-0.005, 0.005], [-0.005, 0.005]])
    pair = np.outer(x, y) + delta
    total = 1e5
    measurements = [
        measurement((0,), a * total),
        measurement((1,), b * total),
        measurement((0, 1), pair * total, 1.0, bins),
    ]
    model = fit(
        (5, 3),
        measurements,
        total,
        options=FitOptions(proximal_weight=10.0, min_improvement=0.0, steps=8, tolerance=1e-3),
    )
    expected = pair[np.ix_(*bins)] * np.outer(a / x[bins[0]], b / y[bins[1]])
    np.testing.assert_allclose(model.marginal((0, 1)) / total, expected, atol=2e-5)


def test_sources_are_weighted_by_their_precision():
    near, far = np.array([600.0, 400]), np.array([500.0, 500])
    model = fit(
        (2,),
        [measurement((0,), near, 1.0), measurement((0,), far, 3.0)],
        1000.0,
        options=FitOptions(steps=50, tolerance=1e-4),
    )
    np.testing.assert_allclose(model.marginal((0,)), 0.9 * near + 0.1 * far, atol=0.05)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 30.0, 1e4])
def test_any_scale_of_noise_ends_in_a_distribution(sigma):
    rng = np.random.default_rng(4)
    sizes = (4, 5, 3)
    measurements = [
        measurement(
            p,
            rng.normal(size=(sizes[p[0]], sizes[p[1]])) * sigma
            + 1000 / (sizes[p[0]] * sizes[p[1]]),
            sigma,
        )
        for p in [(0, 1), (1, 2), (0, 2)]
    ]
    model = fit(sizes, measurements, 1000.0)
    table = model.marginal((0, 1, 2))
    assert table.min() >= 0
    assert table.sum() == pytest.approx(1000)


def test_disagreeing_sources_of_very_different_noise():
    """Overlapping measurements that disagree pull their factors apart; the distribution must not mind."""
    rng = np.random.default_rng(9)
    sizes = (4,) * 6
    joint = rng.dirichlet(np.ones(4**6)).reshape(sizes) * 1e4
    measurements = []
    for pair in itertools.combinations(range(6), 2):
        sigma = 1.0 if sum(pair) % 2 else 1000.0
        noise = sigma * rng.normal(size=(4, 4))
        measurements.append(measurement(pair, marginal_of(joint, pair) + noise, sigma))
    for entropy in (1.0, 10.0):
        model = fit(sizes, measurements, 1e4, options=FitOptions(proximal_weight=entropy, steps=20))
        table = model.marginal(range(6))
        assert np.isfinite(table).all()
        assert table.sum() == pytest.approx(1e4)
        assert model.loss < 2 * 16 * 15


@pytest.mark.parametrize("total, sigma", [(1e4, 10.0), (1e6, 10.0), (1e6, 100.0)])
def test_precise_measurements_that_contradict_each_other_share_the_misfit(total, sigma):
    """Of three columns of two values each two are equal, says one pair, and the last two are not: a
    step of a fit with such narrow errors leaves the range of double precision.
    """
    equal, unequal = np.eye(2) * total / 2, (1 - np.eye(2)) * total / 2
    pairs = {(0, 1): equal, (1, 2): equal, (0, 2): unequal}
    measurements = [Measurement(p, (None, None), table, 1e-3) for p, table in pairs.items()]
    one_way = [Measurement((a,), (None,), np.full(2, total / 2), sigma) for a in (0, 1, 2)]
    model = fit((2, 2, 2), measurements + 12 * one_way, total)
    found = [model.marginal(p) / total for p in pairs]
    expected = np.array([[1 / 3, 1 / 6], [1 / 6, 1 / 3]])
    np.testing.assert_allclose(found, [expected, expected, expected[::-1]], atol=0.02)


def test_factors_are_as_before_a_step_that_leaves_the_range():
    tree = junction_tree((2, 2, 2), [(0, 1), (1, 2), (0, 2)])
    pairs = [(0, 1), (1, 2), (0, 2)]
    measurements = [Measurement(p, (None, None), np.ones((2, 2)), 1.0) for p in pairs]
    factors = LogFactors(tree, pairs)
    factors.logs[:] = np.linspace(-1, 1, factors.logs.size)
    dual = Dual(factors, measurements, 12.0)
    dual.calibrate_at_factors()
    before = factors.logs.copy(), factors.marginals.copy()
    equal = 900 * np.eye(2).ravel()
    with pytest.raises(ModelError, match="left the range"):
        dual.absorb(np.concatenate([equal, equal, 900 - equal]))
    np.testing.assert_array_equal((factors.logs, factors.marginals), before)


def test_warm_start_takes_over_what_is_measured_again():
    rng = np.random.default_rng(5)
    sizes = (4, 5, 3)
    old = [measurement((0, 1), 50 + 40 * rng.random((4, 5)), 5.0)]
    new = [*old, measurement((1, 2), 70 + 40 * rng.random((5, 3)), 5.0)]
    first = fit(sizes, old, 1500.0)
    seen = []
    fit(sizes, old, 1500.0, warm=first, options=FitOptions(progress=lambda *at: seen.append(at)))
    cold = []
    fit(sizes, old, 1500.0, options=FitOptions(progress=lambda *at: cold.append(at)))
    assert seen[0][:2] == (0, 0)
    assert seen[0][2] < cold[0][2]
    grown = fit(sizes, new, 1500.0, warm=first)
    fresh = fit(sizes, new, 1500.0)
    assert grown.loss <= fresh.loss * 1.01
    other = Measurement((0, 1), (np.array([0, 0, 1, 1]), None), np.full((2, 5), 150.0), 5.0)
    assert fit(sizes, [other], 1500.0, warm=first).loss < 1.0


def test_a_warm_start_goes_on_as_long_as_steps_gain_something():
    rng = np.random.default_rng(6)
    tables = {(0, 1): 50 + 40 * rng.random((4, 5)), (1, 2): 70 + 40 * rng.random((5, 3))}
    measurements = [measurement(pair, table, 5.0) for pair, table in tables.items()]
    first = fit((4, 5, 3), measurements[:1], 1500.0)
    again = fit((4, 5, 3), measurements, 1500.0, warm=first)
    stated = fit(
        (4, 5, 3),
        measurements,
        1500.0,
        warm=first,
        options=FitOptions(min_improvement=MIN_ON_TOP),
    )
    for pair in ((0, 1), (1, 2)):
        np.testing.assert_array_equal(again.marginal(pair), stated.marginal(pair))


def test_no_measurements_and_single_values():
    model = fit((2, 3), [], 60.0)
    np.testing.assert_allclose(model.marginal((0, 1)), np.full((2, 3), 10.0))
    assert model.marginal(()) == 60.0
    model = fit((1, 3), [measurement((0, 1), [[10, 20, 30]], 0.1)], 60.0)
    np.testing.assert_allclose(model.marginal((1, 0))[:, 0], [10, 20, 30], atol=0.1)


def test_threads_do_not_change_a_fit(monkeypatch):
    monkeypatch.setattr(layout, "BLOCK_CELLS", 100)
    monkeypatch.setattr(layout, "PARALLEL_CELLS", 0)
    rng = np.random.default_rng(6)
    sizes = (6, 5, 7, 4)
    measurements = [
        measurement(p, 100 * rng.random((sizes[p[0]], sizes[p[1]])), 5.0)
        for p in itertools.combinations(range(4), 2)
    ]
    fits = []
    for count in (1, 2):
        with threads(count):
            fits.append(fit(sizes, measurements, 2000.0))
    for a, b in zip(fits[0].factors, fits[1].factors, strict=True):
        np.testing.assert_array_equal(a.logs, b.logs)


def test_a_given_tree_is_used():
    tree = junction_tree((2, 3, 2), [(0, 1), (1, 2), (0, 2)])
    model = fit((2, 3, 2), [measurement((0, 1), np.full((2, 3), 10.0))], 60.0, tree=tree)
    assert model.tree is tree
    np.testing.assert_allclose(model.marginal((2, 0)), np.full((2, 2), 15.0))


def bad_fits():
    good = measurement((0, 1), np.full((2, 3), 10.0))
    base = {"sizes": (2, 3), "measurements": [good], "total": 60.0}
    return {
        "outside": (
            {**base, "measurements": [measurement((0, 2), np.ones((2, 2)))]},
            "outside the model",
        ),
        "size": (
            {**base, "measurements": [measurement((0,), np.ones(3))]},
            "does not fit attribute 0",
        ),
        "bins": (
            {**base, "measurements": [measurement((1,), np.ones(2), bins=(np.array([0, 1]),))]},
            "attribute 1",
        ),
        "sigma shape": (
            {**base, "measurements": [Measurement((0,), (None,), np.ones(2), np.ones(3))]},
            "standard deviations of another shape",
        ),
        "contradiction": (
            {**base, "measurements": [measurement((0,), [0.4, 0.6], 0.1)]},
            "rule out",
        ),
        "zero total": ({**base, "total": 0.0}, "above zero"),
        "nan total": ({**base, "total": math.nan}, "finite"),
        "memory": (
            {
                "sizes": (1 << 14, 1 << 14),
                "measurements": [measurement((0,), np.full(1 << 14, 10.0))],
                "total": 10.0 * (1 << 14),
                "tree": junction_tree((1 << 14, 1 << 14), [(0, 1)]),
            },
            r"attributes \(0, 1\) has 268,435,456 cells",
        ),
        "tree of others": ({**base, "tree": junction_tree((2, 2), [])}, "junction tree is for"),
        "tree too small": ({**base, "tree": junction_tree((2, 3), [])}, "No clique"),
    }


@pytest.mark.parametrize("case", bad_fits())
def test_bad_fits(case):
    arguments, message = bad_fits()[case]
    with pytest.raises(ModelError, match=message):
        fit(**arguments)


@pytest.mark.parametrize(
    "options", [{"proximal_weight": 0.0}, {"min_improvement": 1.0}, {"steps": 0}]
)
def test_bad_options(options):
    with pytest.raises(ModelError, match="Give a proximal weight above zero"):
        FitOptions(**options)


@pytest.mark.parametrize(
    "values, sigma", [([math.nan, 1], 1.0), ([1, 1], 0.0), ([1, 1], -1.0), ([1, math.inf], 1.0)]
)
def test_bad_measurements(values, sigma):
    with pytest.raises(ModelError):
        measurement((0,), values, sigma)


def test_bad_marginals():
    chain = [measurement((i, i + 1), np.full((20, 20), 1.0)) for i in range(5)]
    model = fit((20,) * 6, chain, 400.0, options=FitOptions(steps=1))
    for attributes in [(0, 0), (6,), (-1,)]:
        with pytest.raises(ModelError, match="name different ones"):
            model.marginal(attributes)
    with pytest.raises(ModelError, match="64,000,000 cells"):
        model.marginal(range(6), max_cells=10_000)
    with pytest.raises(ModelError, match="400 cells, more than 100"):
        model.marginal((0, 5), max_cells=100)
    np.testing.assert_allclose(model.marginal((0, 5)).sum(), 400.0)


def test_a_marginal_across_the_tree_may_need_too_large_a_table():
    # A star: leaves are independent given the hub, and a marginal over them all carries the hub along.
    star = [measurement((0, i), np.full((30, 6), 1.0)) for i in range(1, 5)]
    model = fit((30, 6, 6, 6, 6), star, 180.0, options=FitOptions(steps=1))
    with pytest.raises(ModelError, match="intermediate table of 6,480 cells, more than 2,000"):
        model.marginal((1, 2, 3, 4), max_cells=2000)
    assert model.marginal((1, 2, 3, 4)).sum() == pytest.approx(180)


def test_save_and_load(tmp_path):
    rng = np.random.default_rng(7)
    bins = (np.array([0, 0, 1, 1, 2]), None)
    measurements = [
        measurement((0, 1), 30 * rng.random((3, 3)), 2.0, bins),
        measurement((1, 2), 30 * rng.random((3, 2)), 2.0),
    ]
    model = fit((5, 3, 2), measurements, 130.0)
    header, arrays = container.unpack(container.pack("model", *model.parts()), "model", "model")
    again = MarkovRandomField.of_parts(header, arrays)
    assert again.tree == model.tree
    assert (again.total, again.loss) == (model.total, model.loss)
    # A fitted model has its tables from the fit, a loaded one works them out again: the same but for the last digits.
    np.testing.assert_allclose(again.marginal((0, 2)), model.marginal((0, 2)), rtol=1e-12)
    assert fit((5, 3, 2), measurements, 130.0, warm=again).loss <= model.loss


def test_size_of_a_tree():
    tree = junction_tree((4, 5, 6), [(0, 1), (1, 2)])
    assert (len(tree.cliques), tree.cells, tree.largest, tree.treewidth) == (2, 50, 30, 1)
