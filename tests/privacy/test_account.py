"""`vertimrf account`: the price of a plan or of sketches before any data is touched."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from planning import plan_with

from vertimrf.cli import main
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.schema import Schema

SKETCHES = "--sketch-keys 131072 --phantoms 6326 --floor 9 --ceiling 20 --attributes-per-key 2 --gamma 1 --delta 4.6352e-05"


COUNTS = "--groups 15 --variance 22.5 --buckets 1508 --repetitions 172 --delta 2.2113e-05"


def account(*arguments):
    return CliRunner().invoke(main, ["account", *arguments])


def test_sketches_alone():
    outcome = account(*SKETCHES.split(), "--json", "-")
    assert outcome.exit_code == 0
    priced = json.loads(outcome.output)
    assert 0.486 <= priced["epsilon"] <= 0.500
    assert priced["method"] == "pld"
    assert "epsilon 0.49" in account(*SKETCHES.split()).output


def test_count_sketches_alone():
    outcome = account(*COUNTS.split(), "--json", "-")
    assert outcome.exit_code == 0
    assert 0.5436 < json.loads(outcome.output)["epsilon"] < 0.546
    assert "add or remove one record" in account(*COUNTS.split()).output


def test_a_plan(tmp_path):
    attributes = tuple(Attribute(name=n, kind="integer", codes=4) for n in "abxy")
    schema = Schema(attributes=attributes, parties=(("one", ("a", "b")), ("two", ("x", "y"))))
    plan = plan_with(schema, epsilon=0.7, expected_records=10_000, nonce="test", keys=1 << 12)
    plan.save(tmp_path / "plan.json")
    outcome = account(str(tmp_path / "plan.json"), "--json", str(tmp_path / "priced.json"))
    assert outcome.exit_code == 0
    assert "all parties" in outcome.output
    priced = json.loads((tmp_path / "priced.json").read_text())
    assert 0.68 < priced["epsilon"] <= 0.7
    # A smaller delta costs more.
    other = account(str(tmp_path / "plan.json"), "--delta", "1e-9", "--json", "-")
    assert json.loads(other.output)["epsilon"] > priced["epsilon"]


def test_plans_over_the_same_people_add_up(tmp_path):
    schema = Schema.of({"one": [Attribute.integer("a", 4)], "two": [Attribute.integer("x", 4)]})
    for name, epsilon in (("small", 0.3), ("large", 0.7)):
        plan_with(schema, epsilon=epsilon, delta=1e-5, expected_records=10_000, nonce=name, keys=1 << 12).save(tmp_path / name)
    both = account(str(tmp_path / "small"), str(tmp_path / "large"), "--json", str(tmp_path / "both.json"))
    assert both.exit_code == 0, both.output
    assert "2 plans over the same people" in both.output
    assert "delta is the sum" in both.output
    assert "Private (add or remove one record)" in both.output
    priced = json.loads((tmp_path / "both.json").read_text())
    assert priced["delta"] == pytest.approx(2e-5)
    assert 0.7 < priced["epsilon"] < 1.0
    assert len(priced["entries"]) == 2 * len(json.loads(account(str(tmp_path / "small"), "--json", "-").output)["entries"])
    # At the delta of each it costs more than at the sum.
    other = account(str(tmp_path / "small"), str(tmp_path / "large"), "--delta", "1e-5", "--json", "-")
    assert json.loads(other.output)["epsilon"] > priced["epsilon"]
    again = account(str(tmp_path / "small"), str(tmp_path / "small"))
    assert again.exit_code == 2
    assert "given twice" in again.output
    person = account(str(tmp_path / "small"), "--records-per-person", "3", "--json", "-")
    assert 0.9 < json.loads(person.output)["epsilon"] < 2
    assert "with 3 records in every table: epsilon" in account(str(tmp_path / "small"), "--records-per-person", "3").output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("", "either plans, or --sketch-keys"),
        ("p --sketch-keys 5", "either plans, or --sketch-keys"),
        ("nowhere.json", "Cannot read"),
        (f"{COUNTS} --sketch-keys 5", "either plans, or --sketch-keys"),
        ("--groups 5 --variance 30", "--buckets, --repetitions, --delta"),
        (COUNTS.replace("22.5", "1.4"), "number from 4"),
        (COUNTS.replace("172", "0"), "at least 1, not 0"),
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
