"""Figures of values: against SDMetrics, and where they are known."""

import numpy as np
import pytest

from vertimrf.utility.values import (
    MISSING,
    compare_column,
    compare_values,
)

N = 3000


def table(rng, shift=0.0):
    """Numbers of every shape, some missing, and labels."""
    z = rng.normal(shift, 1, N)
    zeros = np.where(rng.random(N) < 0.6, 0, np.exp(z)).round(2)
    gaps = np.where(rng.random(N) < 0.1, np.nan, z + rng.normal(size=N))
    days = np.floor(1000 + 30 * z)
    town = np.where(rng.random(N) < 0.05, MISSING, np.digitize(z, [-1, 0, 1]))
    return {
        "zeros": zeros,
        "gaps": gaps,
        "days": days,
        "same": np.full(N, 2.0),
        "none": np.full(N, np.nan),
        "town": town,
        "kind": rng.integers(0, 3, N) + np.round(10 * shift).astype(int),
        "street": rng.integers(0, 2000, N),
        "house": rng.integers(0, 2000, N),
    }


def test_the_scores_are_those_of_sdmetrics():
    sdmetrics = pytest.importorskip("sdmetrics")
    pd = pytest.importorskip("pandas")
    from sdmetrics.reports.single_table._properties import ColumnPairTrends, ColumnShapes

    real, made = table(np.random.default_rng(0)), table(np.random.default_rng(1), 0.4)

    def frame(values):
        return pd.DataFrame(
            {
                name: column
                if column.dtype.kind == "f"
                else pd.Series(column).astype(object).mask(column == MISSING)
                for name, column in values.items()
            }
        )

    sdtypes = {
        name: {"sdtype": "numerical" if column.dtype.kind == "f" else "categorical"}
        for name, column in real.items()
    }
    given = frame(real), frame(made), {"columns": sdtypes}
    ours = compare_values(real, made)
    shapes, trends = ColumnShapes(), ColumnPairTrends()
    # SDMetrics gives a millionth of a record to each synthetic label that no true record has.
    assert ours["column_shapes"] == pytest.approx(shapes.get_score(*given), abs=1e-6)
    assert ours["pair_trends"] == pytest.approx(trends.get_score(*given), abs=1e-12)
    for _, row in shapes.details.iterrows():
        score = ours["columns"][row["Column"]]["shape"]
        assert (np.nan if score is None else score) == pytest.approx(
            row["Score"], abs=1e-6, nan_ok=True
        )
    pairs = {frozenset(pair["columns"]): pair for pair in ours["pairs"]}
    for _, row in trends.details.iterrows():
        pair = pairs.get(frozenset((row["Column 1"], row["Column 2"])), {"score": np.nan})
        assert pair["score"] == pytest.approx(row["Score"], abs=1e-12, nan_ok=True)
    # The report of SDMetrics counts pairs that depend in the real table alone.
    report = sdmetrics.reports.single_table.QualityReport()
    report.generate(*given, verbose=False)
    counted = report.get_properties().set_index("Property")["Score"]
    assert ours["dependent_pair_trends"] == pytest.approx(counted["Column Pair Trends"], abs=1e-12)
    assert 0 < sum(pair["dependent"] for pair in ours["pairs"]) < len(ours["pairs"])
    assert ours["pair_trends"] != pytest.approx(ours["dependent_pair_trends"], abs=1e-3)


def test_shares_of_the_commonest_values_and_of_values_that_no_record_has():
    real = np.repeat([0.0, 5.0, 0.1 + 0.2, 7.0, np.nan], [50, 25, 12, 3, 10])
    made = np.repeat([0.0, 0.3, 7.0, 7.5, np.nan], [20, 20, 20, 20, 20])
    out = compare_column(real, made)
    assert out["missing"] == pytest.approx({"real": 0.1, "synthetic": 0.2})
    assert [one["value"] for one in out["commonest"]] == [0.0, 5.0, pytest.approx(0.3)]
    assert [one["real"] for one in out["commonest"]] == [0.5, 0.25, 0.12]
    # Floating point has no values of its own.
    assert [one["synthetic"] for one in out["commonest"]] == [0.2, 0.0, 0.2]
    assert out["off_grid"] == 0.25
    assert out["off_grid_by_chance"] == 0.0
    # Up to 0.3 there are 87 of 90 true records, and 40 of 80 synthetic ones.
    assert out["ks"] == pytest.approx(87 / 90 - 40 / 80)
    assert out["shape"] == 1 - out["ks"]


def test_a_continuum_has_no_grid():
    rng = np.random.default_rng(0)
    real = rng.normal(size=N)
    out = compare_column(real, rng.normal(size=N))
    assert out["off_grid"] is None
    assert out["off_grid_by_chance"] is None
    # A tenth of the values once each: a further record has a new one as often.
    real[: 9 * N // 10] = np.round(real[: 9 * N // 10])
    out = compare_column(real, real)
    assert out["off_grid"] == 0
    assert out["off_grid_by_chance"] == pytest.approx(0.1, abs=0.005)


def test_values_that_arithmetic_cannot_take():
    wild = np.concatenate([np.linspace(0, 1, N - 2), [1e308, -1e308]])
    labels = np.arange(N) % 3
    out = compare_values({"x": wild, "y": wild, "z": labels}, {"x": wild, "y": wild, "z": labels})
    assert out["column_shapes"] == 1
    assert out["pair_trends"] == 1
    empty = np.empty(0)
    assert compare_column(empty, wild)["shape"] is None
