"""Evaluation: what is joined, compared and refused."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from builders import decode, temporal

from vertimrf import Attribute, Schema, evaluate, write_table
from vertimrf.errors import PlanError, SchemaError, TableError
from vertimrf.evaluation import EvaluationOptions
from vertimrf.tables.sources import read_arrow

SCHEMA = Schema.of(
    {
        "a": [
            Attribute.categorical("x", ["u", "v"], missing=True),
            Attribute.numeric("y", [0, 1, 2], integral=True),
        ],
        "b": [Attribute.integer("z", 4)],
    }
)


def compared(real, synthetic, id="id", **options):
    """What an evaluation gives with these options."""
    return evaluate(real, synthetic, id, SCHEMA, EvaluationOptions(**options))


def draw(rng, sizes, n):
    return np.stack([rng.integers(size, size=n) for size in sizes]).astype(np.uint16)


@pytest.fixture
def files(tmp_path):
    """Real tables of two parties in different record orders, all columns in one, and a synthetic table."""
    rng = np.random.default_rng(7)
    ids = pa.array([f"r{i}" for i in range(200)])
    real = decode(draw(rng, SCHEMA.sizes, 200), SCHEMA.attributes, rng).append_column("id", ids)
    tables = {
        "all": real,
        "a": real.select(["y", "id", "x"]),
        "b": real.select(["z", "id"]).take(rng.permutation(200)),
        "synthetic": decode(draw(rng, SCHEMA.sizes, 150), SCHEMA.attributes, rng).select(
            ["z", "y", "x"]
        ),
    }
    paths = {name: tmp_path / f"{name}.csv" for name in tables}
    for name, table in tables.items():
        write_table(table, paths[name])
    return paths


def test_tables_are_joined_and_compared(files):
    one = compared([files["all"]], files["synthetic"], ways=(1, 2, 3))
    assert list(one["tvd"]) == ["1", "2", "3"]
    assert list(one["tvd_across_parties"]) == ["2", "3"]
    assert one["records"] == {"real": 200, "synthetic": 150}
    assert 0 < one["tvd"]["1"] < one["tvd"]["2"] < one["tvd"]["3"] < 0.5
    for order in ("ab", "ba"):
        parts = [files[name] for name in order]
        assert compared(parts, files["synthetic"], ways=(1, 2, 3)) == one
    assert compared(parts, files["all"], ways=(3,))["tvd"] == {"3": 0.0}
    single = Schema.of({"p": SCHEMA.attributes})
    assert "tvd_across_parties" not in evaluate([files["all"]], files["all"], "id", single)


def test_distances_stand_beside_what_to_judge_them_by():
    """y follows x at party a; z is on its own; the synthetic table has y of its own and z a third too often 0."""
    rng = np.random.default_rng(8)
    n = 3000
    x, z = rng.integers(0, 2, n), rng.integers(0, 4, n)
    y = np.where(x == 1, 1.5, 0.5)
    real = pa.table({"id": range(n), "x": np.where(x == 1, "u", "v"), "y": y.astype(int), "z": z})
    made = real.drop_columns(["id"]).set_column(1, "y", [rng.permutation(real["y"].to_numpy())])
    made = made.set_column(2, "z", [np.where(rng.random(n) < 1 / 3, 0, z)])
    out = compared([real], made, ways=(1, 2))
    assert out["tvd_resampled"]["2"] < 0.03
    assert out["tvd_independent"]["1"] == 0
    columns = {tuple(marginal["columns"]): marginal["tvd"] for marginal in out["columns"]}
    assert out["columns"][0]["columns"] == ["z"]
    # A third of the three quarters that were not 0; standard error below 0.01.
    assert abs(columns["z",] - 0.25) < 0.05
    assert (columns["x",], columns["y",]) == (0, 0)
    assert out["pairs"][0]["columns"] == ["x", "y"]
    assert abs(out["pairs"][0]["tvd"] - 0.5) < 0.05
    assert list(out["numbers"]) == ["y"]
    assert out["numbers"]["y"]["real"] == out["numbers"]["y"]["synthetic"]
    figures = compared([real.select(["id", "x", "y"])], made, party="a")
    assert list(figures["tvd"]) == ["2"]
    assert [marginal["columns"] for marginal in figures["columns"]] == [["x"], ["y"]]
    with pytest.raises(SchemaError, match="no party 'c'"):
        compared([real], made, party="c")


def test_numbers_are_compared_as_they_were():
    schema = Schema.of(
        {
            "a": [
                Attribute.numeric("cost", [0, 10, 100], missing=True),
                temporal("day", "date", ["2020-01-01", "2020-01-11", "2020-02-01"]),
                Attribute.categorical("grade", [1, 2, 3]),
                Attribute.categorical("text", ["a"]),
            ]
        }
    )
    n = 1000
    rng = np.random.default_rng(9)
    days = rng.integers(0, 31, n)
    cost = 3.0 * days + 1
    real = pa.table(
        {
            "id": range(n),
            "cost": pa.array(cost, mask=days == 0),
            "day": pa.array((18262 + days).astype(np.int32)).cast(pa.date32()),
            "grade": 1 + days % 3,
            "text": ["a"] * n,
        }
    )
    made = real.drop_columns(["id"]).set_column(0, "cost", [rng.permutation(cost)])
    out = evaluate([real], made, "id", schema)
    costs = cost[days > 0]
    figures = out["numbers"]["cost"]["real"]
    assert figures["mean"] == pytest.approx(costs.mean())
    assert figures["deviation"] == pytest.approx(costs.std())
    assert figures["quantiles"]["0.95"] == pytest.approx(np.quantile(costs, 0.95))
    assert out["numbers"]["day"]["real"]["mean"] == pytest.approx(18262 + days.mean())
    assert list(out["numbers"]) == ["cost", "day", "grade"]
    values = out["values"]["columns"]
    assert values["cost"]["missing"]["real"] == pytest.approx((days == 0).mean())
    assert values["cost"]["commonest"][0]["value"] == pytest.approx(
        3 * np.bincount(days[days > 0]).argmax() + 1
    )
    # The synthetic table has no missing cost, but the cost of a missing one, 1.
    assert values["cost"]["off_grid"] == pytest.approx((cost == 1).mean())
    assert values["day"]["commonest"][0]["value"].startswith("2020-01-")
    assert values["text"] == {"missing": {"real": 0.0, "synthetic": 0.0}, "shape": 1.0}
    assert out["values"]["pairs"][0]["columns"] == ["cost", "day"]
    worst = out["correlations"][0]
    assert worst["columns"] == ["cost", "day"]
    assert worst["real"] == pytest.approx(1)
    # No correlation is left but by chance: five standard errors of 1 / sqrt(n).
    assert abs(worst["synthetic"]) < 5 / np.sqrt(n)


def test_values_that_the_schema_does_not_list_are_compared_as_they_are():
    """In the real table "other" is many values; a synthetic table that says "other" has none of them."""
    schema = Schema.of({"a": [Attribute.categorical("town", ["A"], missing=True, other="other")]})
    real = pa.table({"town": ["A", "A", "B", "C", "B", "other", None, "A"]})

    def shape(*towns):
        made = pa.table({"town": pa.array(towns, pa.string())})
        out = evaluate([real], made, None, schema, EvaluationOptions())
        return out["values"]["columns"]["town"]["shape"]

    assert shape(*real["town"].to_pylist()) == 1
    # B and C are three of seven.
    assert shape("A", "A", "A", "other", "other", "other", "other") == pytest.approx(4 / 7)
    assert shape("D", "D") == 0


def test_bad_input_of_an_evaluation(files, tmp_path):
    with pytest.raises(SchemaError, match="No real table has the column 'z'"):
        compared([files["a"]], files["synthetic"])
    with pytest.raises(SchemaError, match="Two real tables have the column 'z'"):
        compared([files["b"], files["all"]], files["synthetic"])
    with pytest.raises(SchemaError, match=r"b\.csv lacks the column 'x', 'y'"):
        compared([files["all"]], files["b"])
    with pytest.raises(TableError, match="no id column 'who'"):
        compared([files["all"]], files["synthetic"], "who")
    empty = tmp_path / "empty.csv"
    empty.write_text("x,y,z\n")
    with pytest.raises(TableError, match=r"empty\.csv has no records"):
        compared([files["all"]], empty)
    with pytest.raises(PlanError, match="no 4-way marginals"):
        compared([files["all"]], files["synthetic"], ways=(4,))
    real, other = tmp_path / "real.csv", tmp_path / "other.csv"
    real.write_text("id,x,y\n1,u,0\n")
    other.write_text("id,z\n2,0\n")
    with pytest.raises(TableError, match=r"real\.csv and .*other\.csv have no id in common"):
        compared([real, other], files["synthetic"])


def test_tables_of_different_people(files):
    """Those that all tables have are compared, or those that any has, what is not held being missing."""
    rng = np.random.default_rng(9)
    whole = read_arrow(files["all"])
    left = whole.select(["id", "x", "y"]).slice(0, 150)
    right = whole.select(["id", "z"]).slice(50).take(rng.permutation(150))
    both = whole.slice(50, 100)
    out = compared([left, right], both, ways=(1, 3))
    assert out["records"] == {"real": 100, "synthetic": 100, "tables": [150, 150]}
    assert out["tvd"] == {"1": 0.0, "3": 0.0}
    there = np.arange(200)
    outer = pa.table(
        {
            "x": pc.if_else(pa.array(there < 150), whole["x"], None),
            "y": pc.if_else(pa.array(there < 150), whole["y"], None),
            "z": pc.if_else(pa.array(there >= 50), whole["z"], None),
            "held_by": pa.array(["a+b"] * 200),
        }
    )
    out = compared([left, right], outer, ways=(1, 3), population="outer")
    assert out["records"] == {"real": 200, "synthetic": 200, "tables": [150, 150]}
    assert out["tvd"] == {"1": 0.0, "3": 0.0}
    assert compared([left, right], both, ways=(1,), population="outer")["tvd"]["1"] > 0.2
    with pytest.raises(TableError, match="no id in common"):
        compared([left.slice(0, 50), right], both)
    with pytest.raises(PlanError, match="inner or outer"):
        compared([left, right], both, population="left")
