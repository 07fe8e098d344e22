"""Utility: what rows of the same law, and of none, are found to be good for; and what the command tells of it."""

import json
import sys

import numpy as np
import pytest
from builders import decode
from commands import good, refused

from vertimrf import Attribute, Schema, write_table
from vertimrf.errors import PlanError, SchemaError, TableError
from vertimrf.utility.figures import utility

ATTRIBUTES = (
    Attribute.integer("age", 8),
    Attribute.categorical("job", ["a", "b", "c"]),
    Attribute.categorical("ill", ["no", "yes"]),
    Attribute.integer("grade", 3),
)


def draw(rng, n):
    age, job = rng.integers(0, 8, n), rng.integers(0, 3, n)
    ill = rng.random(n) < np.where(job == 1, 0.9, 0.1)
    return np.array([age, job, ill, np.minimum(age // 3, 2)]).astype(np.uint16)


def shuffled(rng, codes):
    return np.array([rng.permutation(row) for row in codes])


def test_records_of_the_same_law_are_as_good_as_real_ones_and_independent_columns_worth_nothing() -> (
    None
):
    rng = np.random.default_rng(1)
    real = draw(rng, 6000)
    same = utility(real, draw(rng, 6000), ATTRIBUTES, "ill")
    nothing = utility(real, shuffled(rng, real), ATTRIBUTES, "ill")
    trees, useless = same["trees"], nothing["trees"]
    # Naming the job's usual value is right for 0.9 of the records. Standard errors are about 0.006 each.
    assert trees["synthetic"]["accuracy"] == pytest.approx(0.9, abs=0.03)
    assert trees["synthetic"]["auc"] == pytest.approx(trees["real"]["auc"], abs=0.04)
    assert useless["synthetic"]["auc"] == pytest.approx(0.5, abs=0.06)
    assert useless["real"]["auc"] > 0.85
    assert same["propensity"] == pytest.approx(0.5, abs=0.05)
    assert nothing["propensity"] > 0.7
    assert (same["trained"], same["tried"]) == (3000, 3000)


def test_a_label_of_several_values_and_of_one_that_no_synthetic_record_has():
    rng = np.random.default_rng(2)
    real, made = draw(rng, 4000), draw(rng, 3000)
    scores = utility(real, made[:, made[3] < 2], ATTRIBUTES, "grade")["trees"]
    assert scores["real"]["accuracy"] > 0.99
    assert scores["synthetic"]["accuracy"] == pytest.approx(6 / 8, abs=0.05)
    one = utility(real, np.zeros_like(made), ATTRIBUTES, "ill")
    assert one["trees"]["synthetic"]["auc"] == 0.5


def test_what_cannot_be_a_label():
    rng = np.random.default_rng(4)
    real = draw(rng, 400)
    with pytest.raises(SchemaError, match="no attribute 'sex'"):
        utility(real, real, ATTRIBUTES, "sex")
    with pytest.raises(SchemaError, match="60 values"):
        utility(real, real, (*ATTRIBUTES[:3], Attribute.integer("grade", 60)), "grade")
    with pytest.raises(SchemaError, match="only attribute"):
        utility(real[:1], real[:1], ATTRIBUTES[:1], "age")
    with pytest.raises(TableError, match="50 synthetic"):
        utility(real, real[:, :50], ATTRIBUTES, "ill")
    real[2] = 1
    with pytest.raises(TableError, match="the same 'ill'"):
        utility(real, real, ATTRIBUTES, "ill")


def asked_of(folder):
    """A command on two tables of the same law."""
    rng = np.random.default_rng(5)
    Schema.of({"all": ATTRIBUTES}).save(folder / "schema.json")
    table = decode(draw(rng, 1000), ATTRIBUTES, rng)
    write_table(table.append_column("id", [list(range(1000))]), folder / "real.parquet")
    write_table(decode(draw(rng, 1000), ATTRIBUTES, rng), folder / "made.parquet")
    return (
        f"evaluate --real {folder}/real.parquet --synthetic {folder}/made.parquet --id id"
        f" --schema {folder}/schema.json --marginals 5 --utility ill"
    )


def test_the_command_tells_the_figures_and_refuses_where_there_are_no_trees(tmp_path, monkeypatch):
    answer = good(asked_of(tmp_path), f"--json {tmp_path}/found.json")
    assert "Trees trained on 500 synthetic records predict ill of 500 real ones" in answer
    scores = json.loads((tmp_path / "found.json").read_text())["utility"]
    assert scores["label"] == "ill"
    trees = scores["trees"]
    assert f"  AUC {trees['synthetic']['auc']:.3f} (real {trees['real']['auc']:.3f})" in answer
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    assert "vertimrf[utility]" in refused(asked_of(tmp_path))
    with pytest.raises(PlanError):
        utility(
            draw(np.random.default_rng(5), 400),
            draw(np.random.default_rng(6), 400),
            ATTRIBUTES,
            "ill",
        )
