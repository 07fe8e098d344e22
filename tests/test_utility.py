"""Utility: trees trained on synthetic records, and trees that tell them from real ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble  # noqa: F401  (so that the limit below finds its threads)
from click.testing import CliRunner
from threadpoolctl import threadpool_limits

from vertimrf.cli import main
from vertimrf.errors import PlanError, SchemaError, TableError
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.schema import Schema
from vertimrf.server.rows import decode
from vertimrf.tables.arrow import write_table
from vertimrf.utility import _auc, utility

ATTRIBUTES = (
    Attribute.integer("age", 8), Attribute.categorical("job", ["a", "b", "c"]), Attribute.categorical("ill", ["no", "yes"]),
    Attribute.integer("grade", 3),
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small fits on a busy machine spend their time waiting for each other's threads."""
    with threadpool_limits(1):
        yield


def draw(rng: np.random.Generator, n: int) -> np.ndarray:
    age, job = rng.integers(0, 8, n), rng.integers(0, 3, n)
    ill = rng.random(n) < np.where(job == 1, 0.9, 0.1)
    return np.array([age, job, ill, np.minimum(age // 3, 2)]).astype(np.uint16)


def shuffled(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    return np.array([rng.permutation(row) for row in codes])


def test_records_of_the_same_law_are_as_good_as_real_ones_and_independent_columns_worth_nothing() -> None:
    rng = np.random.default_rng(1)
    real = draw(rng, 6000)
    same = utility(real, draw(rng, 6000), ATTRIBUTES, "ill")
    nothing = utility(real, shuffled(rng, real), ATTRIBUTES, "ill")
    # Naming the job's usual value is right for 0.9 of the records. Standard errors are about 0.006 each.
    assert same["synthetic"]["accuracy"] == pytest.approx(0.9, abs=0.03)
    assert same["synthetic"]["auc"] == pytest.approx(same["real"]["auc"], abs=0.04)
    assert same["propensity"] == pytest.approx(0.5, abs=0.05)
    assert nothing["synthetic"]["auc"] == pytest.approx(0.5, abs=0.06)
    assert nothing["real"]["auc"] > 0.85
    assert nothing["propensity"] > 0.7
    assert (same["trained"], same["tried"]) == (3000, 3000)


def test_a_label_of_several_values_and_of_one_that_no_synthetic_record_has() -> None:
    rng = np.random.default_rng(2)
    real, made = draw(rng, 4000), draw(rng, 3000)
    found = utility(real, made[:, made[3] < 2], ATTRIBUTES, "grade")
    assert found["real"]["accuracy"] > 0.99
    assert found["synthetic"]["accuracy"] == pytest.approx(6 / 8, abs=0.05)
    assert utility(real, np.where(made == made, 0, made).astype(np.uint16), ATTRIBUTES, "ill")["synthetic"]["auc"] == 0.5


def test_the_area_is_that_of_pairs_in_the_right_order() -> None:
    rng = np.random.default_rng(3)
    truth, scores = rng.integers(0, 3, 60).astype(np.uint16), rng.random((60, 3))
    expected = 0.0
    for value in range(3):
        pairs = np.sign(scores[truth == value, value][:, None] - scores[truth != value, value])
        expected += (0.5 + pairs.mean() / 2) * (truth == value).mean()
    assert _auc(scores, truth) == pytest.approx(expected)


def test_what_cannot_be_a_label() -> None:
    rng = np.random.default_rng(4)
    real = draw(rng, 400)
    with pytest.raises(SchemaError, match="no attribute 'sex'"):
        utility(real, real, ATTRIBUTES, "sex")
    with pytest.raises(SchemaError, match="60 values"):
        utility(real, real, (*ATTRIBUTES[:3], Attribute.integer("grade", 60)), "grade")
    with pytest.raises(TableError, match="50 synthetic"):
        utility(real, real[:, :50], ATTRIBUTES, "ill")
    real[2] = 1
    with pytest.raises(TableError, match="the same 'ill'"):
        utility(real, real, ATTRIBUTES, "ill")


def test_the_command_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    schema = Schema.of({"all": ATTRIBUTES})
    schema.save(tmp_path / "schema.json")
    table = decode(draw(rng, 1000), ATTRIBUTES, rng)
    write_table(table.append_column("id", [list(range(1000))]), tmp_path / "real.parquet")
    write_table(decode(draw(rng, 1000), ATTRIBUTES, rng), tmp_path / "made.parquet")
    asked = [
        "evaluate", "--real", str(tmp_path / "real.parquet"), "--synthetic", str(tmp_path / "made.parquet"), "--id", "id",
        "--schema", str(tmp_path / "schema.json"), "--marginals", "5", "--utility", "ill",
    ]  # fmt: skip
    answer = CliRunner().invoke(main, [*asked, "--json", str(tmp_path / "found.json")])
    assert answer.exit_code == 0, answer.output
    assert "Trees trained on 500 synthetic records tell ill of 500 real ones" in answer.output
    assert json.loads((tmp_path / "found.json").read_text())["utility"]["label"] == "ill"
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 2
    assert "vertimrf[utility]" in refused.output
    with pytest.raises(PlanError):
        utility(draw(rng, 400), draw(rng, 400), ATTRIBUTES, "ill")
