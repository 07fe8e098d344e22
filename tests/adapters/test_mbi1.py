"""The engine as an estimation function of mbi 1.1, which OpenDP and SmartNoise pin; skipped where mbi 2 is installed."""

import numpy as np
import pytest
from oracles import mbi_loss as loss

mbi = pytest.importorskip("mbi")
if not hasattr(mbi.estimation, "mirror_descent"):
    pytest.skip("mbi is not version 1.1", allow_module_level=True)

from vertimrf.adapters.mbi1 import Model, estimate  # noqa: E402

DOMAIN = mbi.Domain(["a", "b", "c", "d"], [3, 4, 2, 3])
TOTAL = 5000.0

pytestmark = pytest.mark.usefixtures("double_precision")


@pytest.fixture
def measurements():
    rng = np.random.default_rng(0)
    joint = rng.gamma(0.5, size=DOMAIN.shape)
    data = mbi.Factor(DOMAIN, joint * TOTAL / joint.sum())
    return [
        mbi.LinearMeasurement(
            np.asarray(data.project(c).datavector()) + 10 * rng.normal(size=DOMAIN.size(c)), c, 10.0
        )
        for c in [("a", "b"), ("c", "b"), ("c", "d"), ("a",), ()]
    ]


def test_the_model_is_mbis_and_answers_as_it(measurements):
    model = estimate(DOMAIN, measurements, known_total=TOTAL)
    assert isinstance(model, Model)
    assert isinstance(model, mbi.MarkovRandomField)
    exact = mbi.marginal_oracles.message_passing_stable(model.potentials, model.total)
    peer = mbi.MarkovRandomField(potentials=model.potentials, marginals=exact, total=model.total)
    for attributes in [("a",), "d", ("b", "a"), ("a", "d"), ("d", "c", "b", "a")]:
        ours, theirs = model.project(attributes), peer.project(attributes)
        np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-6)
    rows = model.synthetic_data(1000)
    assert rows.df.shape == (1000, 4)
    theirs = mbi.estimation.mirror_descent(DOMAIN, measurements, known_total=TOTAL)
    assert loss(model, measurements) <= loss(theirs, measurements) + 0.5


def test_warm_starts_and_what_goes_to_mbi(measurements):
    first = estimate(DOMAIN, measurements[:2])
    warm = estimate(DOMAIN, measurements, potentials=first.potentials)
    assert loss(warm, measurements) <= loss(estimate(DOMAIN, measurements), measurements) + 1.0
    made = mbi.marginal_loss.from_linear_measurements(measurements[:2], domain=DOMAIN)
    with pytest.warns(RuntimeWarning, match="does not say"):
        model = estimate(DOMAIN, made, known_total=TOTAL, iters=10)
    assert not isinstance(model, Model)
    odd = mbi.LinearMeasurement(
        np.array([TOTAL]), ("a",), 1.0, lambda f: f.datavector().sum(keepdims=True)
    )
    with pytest.warns(RuntimeWarning, match="mixes cells"):
        assert not isinstance(estimate(DOMAIN, [*measurements, odd], iters=10), Model)
    halved = mbi.LinearMeasurement(
        np.full(3, TOTAL / 6), ("a",), 1.0, lambda f: f.datavector() * 0.5
    )
    model = estimate(DOMAIN, [*measurements, halved])
    assert isinstance(model, Model)
    assert np.allclose(model.project("a").values, TOTAL / 3, atol=0.02 * TOTAL)
