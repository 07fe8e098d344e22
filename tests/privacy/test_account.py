"""`vertimrf account`: the price of a plan or of sketches before any data is touched."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from vertimrf.cli import main
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schema import Attribute, Schema

SKETCHES = "--sketch-keys 131072 --phantoms 6326 --floor 9 --ceiling 20 --attributes-per-key 2 --gamma 1 --delta 4.6352e-05"


def account(*arguments):
    return CliRunner().invoke(main, ["account", *arguments])


def test_sketches_alone():
    outcome = account(*SKETCHES.split(), "--json", "-")
    assert outcome.exit_code == 0
    priced = json.loads(outcome.output)
    assert 0.486 <= priced["epsilon"] <= 0.500
    assert priced["method"] == "pld"
    assert "epsilon 0.49" in account(*SKETCHES.split()).output


def test_a_plan(tmp_path):
    attributes = tuple(Attribute(name=n, kind="integer", codes=4) for n in "abxy")
    schema = Schema(attributes=attributes, parties=(("one", ("a", "b")), ("two", ("x", "y"))))
    plan = make_plan(schema, epsilon=0.7, expected_records=10_000, nonce="test", keys=1 << 12)
    plan.save(tmp_path / "plan.json")
    outcome = account("--plan", str(tmp_path / "plan.json"), "--json", str(tmp_path / "priced.json"))
    assert outcome.exit_code == 0
    assert "all parties" in outcome.output
    priced = json.loads((tmp_path / "priced.json").read_text())
    assert 0.68 < priced["epsilon"] <= 0.7
    # A smaller delta costs more.
    other = account("--plan", str(tmp_path / "plan.json"), "--delta", "1e-9", "--json", "-")
    assert json.loads(other.output)["epsilon"] > priced["epsilon"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("", "either --plan, or --sketch-keys"),
        ("--plan p --sketch-keys 5", "either --plan, or --sketch-keys"),
        ("--plan nowhere.json", "Cannot read"),
        ("--sketch-keys 5 --floor 3", "--phantoms, --ceiling, --delta"),
        (SKETCHES.replace("131072", "0"), "at least 1, not 0"),
        (SKETCHES.replace("6326", "0"), "at least 1, not 0"),
        (SKETCHES.replace("20", "8"), "below its ceiling"),
        (SKETCHES.replace("4.6352e-05", "1.5"), "between 0 and 1"),
    ],
)
def test_bad_input_is_one_sentence(change, said):
    outcome = account(*change.split())
    assert outcome.exit_code == 2
    assert said in outcome.output
    assert outcome.output.count("\n") == 1
