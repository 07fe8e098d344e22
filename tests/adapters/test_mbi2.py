"""The engine as mbi 2's estimator: the same answers at the same factors, losses no higher, and what it leaves to mbi."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
from oracles import marginal_of
from oracles import mbi_loss as loss

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mbi = pytest.importorskip("mbi")
    if not hasattr(mbi.estimation, "MirrorDescent"):
        pytest.skip("mbi is not version 2", allow_module_level=True)

from vertimrf.adapters.mbi2 import Estimator, Model

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
DOMAIN = mbi.Domain(["a", "b", "c", "d"], [3, 4, 2, 3])
CLIQUES = [("a", "b"), ("c", "b"), ("c", "d"), ("a",)]
TOTAL = 5000.0

pytestmark = pytest.mark.usefixtures("double_precision")


def truth(seed=0):
    rng = np.random.default_rng(seed)
    joint = rng.gamma(0.5, size=DOMAIN.shape)
    return joint * TOTAL / joint.sum()


def counts(joint, clique):
    return marginal_of(joint, [DOMAIN.attributes.index(a) for a in clique])


def measured(joint, cliques=CLIQUES, sigma=10.0, seed=1, query=None):
    rng = np.random.default_rng(seed)
    query = mbi.DatavectorQuery() if query is None else query
    out = []
    for clique in cliques:
        exact = np.asarray(query(mbi.Factor(DOMAIN.project(clique), counts(joint, clique))))
        out.append(
            mbi.LinearMeasurement(
                exact + sigma * rng.normal(size=exact.shape), clique, sigma, query
            )
        )
    return out


def test_it_is_an_estimator_and_its_model_a_model_of_mbi():
    model = Estimator().estimate(DOMAIN, measured(truth()))
    assert isinstance(Estimator(), mbi.Estimator)
    assert isinstance(model, mbi.MarkovRandomField)
    assert model.domain == DOMAIN
    assert model.supports(("a", "d"))
    assert model.supports("a")
    assert not model.supports(("a", "z"))
    with pytest.raises(ValueError, match="z"):
        model.project(("z",))
    with pytest.raises(AttributeError):
        model.total = 3


def test_project_marginals_and_total_are_mbis_own_at_the_same_factors():
    model = Estimator().estimate(DOMAIN, measured(truth()), known_total=TOTAL)
    assert model.total == TOTAL
    exact = mbi.marginal_oracles.message_passing_stable(model.potentials, model.total)
    peer = mbi.MarkovRandomField(potentials=model.potentials, marginals=exact, total=model.total)
    for attributes in [
        (),
        ("a",),
        "d",
        ("b", "a"),
        ("a", "d"),
        ("d", "a", "c"),
        ("d", "c", "b", "a"),
    ]:
        ours, theirs = model.project(attributes), peer.project(attributes)
        assert ours.domain == theirs.domain
        np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-6)
    for clique in model.cliques:
        np.testing.assert_allclose(
            model.marginals[clique].values, exact[clique].values, rtol=0, atol=1e-6
        )
    for rows, method in ((20_000, "round"), (20_000, "sample")):
        made, others = model.synthetic_data(rows, method), peer.synthetic_data(rows, method)
        assert made.domain == others.domain
        for clique in [("a", "b"), ("a", "d")]:
            expected = np.asarray(peer.project(clique).values) * rows / TOTAL
            # Five standard errors of independent rows, which mbi's rounding keeps within as well.
            for result in (made, others):
                off = np.abs(np.asarray(result.project(clique).values) - expected)
                assert (off < 5 * np.sqrt(expected) + 2).all()
    assert len(model.synthetic_data().to_dict()["a"]) == round(TOTAL)


def test_the_loss_is_no_higher_than_mbis():
    measurements = measured(truth())
    theirs = mbi.estimation.MirrorDescent().estimate(DOMAIN, measurements, known_total=TOTAL)
    ours = Estimator().estimate(DOMAIN, measurements, known_total=TOTAL)
    assert loss(ours, measurements) <= loss(theirs, measurements) + 0.5


def test_the_total_is_mbis_estimate_unless_given():
    measurements = measured(truth())
    expected = mbi.estimation.minimum_variance_unbiased_total(measurements)
    assert Estimator().estimate(DOMAIN, measurements).total == pytest.approx(expected)


@pytest.mark.parametrize(
    "query",
    [
        mbi.WeightedQuery(np.array([0.5, 2.0, -1.0, 0.0] * 3)),
        mbi.SlicedQuery(2),
        mbi.Factor.datavector,
        lambda f: f.datavector() * np.array([0.5, 2.0, -1.0, 0.0] * 3),
        lambda f: f.datavector()[np.array([4, 0, 11, 0, 2])],
        lambda f: np.linalg.qr(np.random.default_rng(0).normal(size=(20, 12)))[0] @ f.datavector(),
    ],
)
def test_linear_queries_that_keep_cells_apart_are_fitted_by_the_engine(query):
    joint = truth(3)
    measurements = [
        *measured(joint, [("a", "b")], query=query),
        *measured(joint, [("c",), ("c", "d")]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = Estimator().estimate(DOMAIN, measurements, known_total=TOTAL)
    assert isinstance(model, Model)
    # mbi's own loss of the truth is about half the number of measured cells, and the least squares fit's is below it.
    expected = 0.5 * sum(np.size(m.noisy_measurement) for m in measurements)
    assert loss(model, measurements) < expected + 4 * np.sqrt(expected)
    for m in measurements:
        off = (np.asarray(m.query(model.project(m.clique))) - m.noisy_measurement) / m.stddev
        assert np.abs(off).max() < 5


@pytest.mark.parametrize("precise", [True, False])
def test_a_query_of_unknown_form_is_the_one_that_it_equals(precise):
    """As in mbi's MST, which weights a column's counts by a lambda."""
    import jax

    jax.config.update("jax_enable_x64", precise)
    weights = np.array([0.5, 2.0, -1.0, 0.0] * 3)
    known = measured(truth(3), [("b", "a")], query=mbi.WeightedQuery(weights))[0]
    unknown = dataclasses.replace(known, query=lambda f: f.datavector() * weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        models = [Estimator().estimate(DOMAIN, [m], known_total=TOTAL) for m in (known, unknown)]
    np.testing.assert_allclose(
        models[1].field.marginal((0, 1)), models[0].field.marginal((0, 1)), atol=1e-3 * TOTAL
    )


@pytest.mark.parametrize("precise", [True, False])
def test_small_counts_beside_large_ones_are_fitted_in_either_precision(precise):
    """mbi's own estimators fit the count of 1 as 2.25 to 35,926 (findings/mbi-far-counts.sh)."""
    import jax

    jax.config.update("jax_enable_x64", precise)
    counts = np.array([2e7, 1.0, 5.0, 3e6, 1.0, 2.0])
    domain = mbi.Domain(["a", "b"], [3, 2])
    measurements = [mbi.LinearMeasurement(counts, ("a", "b"), stddev=1.0)]
    model = Estimator().estimate(domain, measurements, known_total=counts.sum())
    # In single precision, counts of twenty million are two apart.
    off = np.asarray(model.project(("a", "b")).values, float).ravel() - counts
    assert np.abs(off).max() < 2.5
    assert np.abs(off[counts < 10]).max() < 0.5


def test_a_loss_made_of_measurements_is_the_same_as_they():
    measurements = measured(truth())
    made = mbi.marginal_loss.from_linear_measurements(measurements, DOMAIN)
    direct = Estimator().estimate(DOMAIN, measurements, known_total=TOTAL)
    assert np.allclose(
        Estimator().estimate(DOMAIN, made, known_total=TOTAL).project("d").values,
        direct.project("d").values,
    )


class HandedOn(mbi.estimation.MirrorDescent):
    def estimate(self, *arguments):
        return arguments


@pytest.mark.parametrize(
    "case, word",
    [
        ("l1", "squares"),
        ("normalised", "squares"),
        (lambda f: f.datavector().sum() * np.ones(3), "mixes cells"),
        (lambda f: f.datavector().cumsum(), "mixes cells"),
        (lambda f: f.datavector() + 1.0, "not linear"),
        (lambda f: f.datavector().clip(0.0, 500.0), "not linear"),
        (lambda f: f.datavector() / f.datavector().sum(), "not linear"),
        (lambda f: f.datavector()[:2], "2 answers for 3 values"),
        ("cells", "12 cells, more than 11"),
        ("sigma", "far apart"),
        ("total", "records"),
    ],
)
def test_what_the_engine_lacks_is_mbis_with_a_warning(case, word, monkeypatch):
    measurements, known = measured(truth()), TOTAL
    given = measurements
    if case in ("l1", "normalised"):
        norm = {"l1": {"norm": "l1"}, "normalised": {"normalize": True}}[case]
        given = mbi.marginal_loss.from_linear_measurements(measurements, DOMAIN, **norm)
    elif callable(case):
        given = [*measurements, mbi.LinearMeasurement(np.full(3, 9.0), ("a",), 1.0, case)]
    elif case == "cells":
        monkeypatch.setattr("vertimrf.adapters.linear.MAX_PROBES", 11)
        given = measured(truth(), query=lambda f: 2 * f.datavector())
    elif case == "sigma":
        given = [*measurements, mbi.LinearMeasurement(counts(truth(), ("d",)), ("d",), 1e-9)]
    else:
        known = 10.0
    # One is really estimated; of the others it is enough that they are handed on as they came.
    with pytest.warns(RuntimeWarning, match=word):
        made = Estimator(**({} if case == "l1" else {"fallback": HandedOn()})).estimate(
            DOMAIN, given, known, iters=50
        )
    if case == "l1":
        assert not isinstance(made, Model)
        assert isinstance(made, mbi.MarkovRandomField)
    else:
        assert made == (DOMAIN, given, known, (), 50, None, None, None, 2)


def allowed_of(constraint):
    return np.asarray(constraint.potential.values) == 0


@pytest.mark.parametrize(
    "constraint",
    [
        mbi.Constraint(DOMAIN.project(("a", "b")), invalid=np.array([[0, 1], [2, 3], [1, 1]])),
        mbi.Constraint(
            DOMAIN.project(("d", "a")), valid=np.array([[0, 1], [1, 1], [2, 0], [0, 2], [2, 2]])
        ),
        mbi.Constraint(DOMAIN.project(("b", "c")), mapping=np.array([0, 0, 1, 1])),
    ],
)
def test_structural_zeros_hold_exactly_and_cost_no_accuracy(constraint):
    joint = truth(4)
    # Noisy counts in forbidden cells, as the mechanism would measure them.
    measurements = measured(joint, sigma=20.0)
    model = Estimator().estimate(DOMAIN, measurements, known_total=TOTAL, constraints=[constraint])
    assert isinstance(model, Model)
    attributes = constraint.domain.attributes
    allowed = allowed_of(constraint)
    assert (np.asarray(model.project(attributes).values)[~allowed] == 0).all()
    rows = model.synthetic_data(2000).to_dict()
    assert allowed[tuple(rows[a] for a in attributes)].all()
    if constraint.invalid is not None:
        theirs = mbi.estimation.MirrorDescent().estimate(
            DOMAIN, measurements, TOTAL, [constraint], iters=3000
        )
        assert loss(model, measurements) <= 1.02 * loss(theirs, measurements)
    again = Estimator().estimate(DOMAIN, measurements, TOTAL, [constraint], warm_start=model)
    assert (np.asarray(again.project(attributes).values)[~allowed] == 0).all()


def test_warm_starts_from_either_side():
    measurements = measured(truth())
    first = Estimator().estimate(DOMAIN, measurements[:2], known_total=TOTAL)
    cold = Estimator().estimate(DOMAIN, measurements, known_total=TOTAL)
    for start in (first, first.potentials):
        model = Estimator().estimate(DOMAIN, measurements, known_total=TOTAL, warm_start=start)
        assert loss(model, measurements) <= loss(cold, measurements) + 1.0
    assert isinstance(
        mbi.estimation.MirrorDescent().estimate(
            DOMAIN, measurements, TOTAL, iters=50, warm_start=first
        ),
        mbi.MarkovRandomField,
    )


def test_callbacks_and_compilation():
    seen = []
    Estimator().estimate(DOMAIN, measured(truth()), callback_fn=seen.append)
    assert isinstance(seen[0], mbi.CliqueVector)
    assert Estimator().precompile(DOMAIN).done()


def test_nothing_measured_is_uniform():
    model = Estimator().estimate(DOMAIN, [], known_total=12.0)
    assert np.allclose(model.project(("a", "b")).values, 1.0)


def test_every_pair_of_a_larger_domain():
    """Attributes in any order, integer names, a tree of several cliques."""
    domain = mbi.Domain(range(6), [2, 3, 2, 3, 2, 3])
    rng = np.random.default_rng(0)
    measurements = [
        mbi.LinearMeasurement(rng.dirichlet(np.ones(domain.size(c))) * 1000, c, 5.0)
        for c in [(1, 0), (1, 2), (3, 2), (5, 4)]
    ]
    model = Estimator().estimate(domain, measurements, known_total=1000.0)
    for pair in itertools.permutations(range(6), 2):
        assert np.asarray(model.project(pair).values).shape == tuple(domain[a] for a in pair)
        assert np.allclose(
            model.project(pair).values, np.asarray(model.project(pair[::-1]).values).T
        )
