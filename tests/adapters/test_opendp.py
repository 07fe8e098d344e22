"""The engine under OpenDP's contingency tables; needs the extra `opendp`."""

import numpy as np
import pytest
from oracles import crossed

pl = pytest.importorskip("polars")
mbi = pytest.importorskip("mbi")
if not hasattr(mbi.estimation, "mirror_descent"):
    pytest.skip("OpenDP needs mbi 1.1", allow_module_level=True)
dp = pytest.importorskip("opendp.prelude")

from vertimrf.adapters.mbi1 import Model  # noqa: E402
from vertimrf.adapters.opendp import estimator  # noqa: E402

ROWS = 3000


def context(delta=None):
    dp.enable_features("contrib")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, ROWS)
    frame = pl.LazyFrame(
        {"a": a, "b": (a + (rng.random(ROWS) < 0.2)) % 3, "c": rng.integers(0, 2, ROWS)}
    )
    loss = dp.loss_of(rho=2.0) if delta is None else dp.loss_of(rho=2.0, delta=delta)
    return dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=loss
    ), frame


@pytest.mark.parametrize(
    "algorithm", [dp.mbi.MST(estimator=estimator), dp.mbi.AIM(estimator=estimator, queries=2)]
)
def test_its_algorithms_fit_by_the_engine(algorithm):
    made, frame = context()
    keys = {"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1]}
    table = made.query(rho=2.0).contingency_table(keys=keys, algorithm=algorithm).release()
    assert isinstance(table.model, Model)
    rows = table.synthesize(rows=2000)
    assert rows.height == 2000
    # The keys come first, and a null that nothing falls on; noise is below 20 records.
    truth = crossed(frame.collect()[["a", "b"]].to_numpy().T, (3, 3))
    assert np.abs(np.asarray(table.project(("a", "b")))[:3, :3] - truth).max() < 200


def test_columns_without_keys_leave_a_cell_unmeasured():
    made, _ = context(delta=1e-6)
    algorithm = dp.mbi.MST(estimator=estimator)
    table = made.query(rho=2.0, delta=1e-6).contingency_table(algorithm=algorithm).release()
    assert isinstance(table.model, Model)
    assert (
        sum(m.query.__class__.__name__ == "SelectPrefixQuery" for m in table.marginals.flatten())
        == 3
    )
    estimate = np.asarray(table.project("a"))
    assert np.abs(estimate[:3] - ROWS / 3).max() < 200
