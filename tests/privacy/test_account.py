"""Prices of plans and of lone sketches, before any data is touched."""

import json

import pytest
from commands import run
from planning import plan_with

from vertimrf.plan.attribute import Attribute
from vertimrf.plan.schema import Schema


def price(*arguments):
    return run("plan", *arguments)


def test_plans_over_the_same_people_add_up(tmp_path):
    schema = Schema.of({"one": [Attribute.integer("a", 4)], "two": [Attribute.integer("x", 4)]})
    for name, target in (("small", 0.3), ("large", 0.7)):
        plan_with(
            schema, epsilon=target, delta=1e-5, expected_records=10_000, nonce=name, keys=1 << 12
        ).save(tmp_path / name)
    both = price(
        str(tmp_path / "small"), str(tmp_path / "large"), "--json", str(tmp_path / "both.json")
    )
    assert both.exit_code == 0, both.output
    assert "2 plans over the same people" in both.output
    assert "delta is the sum" in both.output
    assert "Private (add or remove one record)" in both.output
    priced = json.loads((tmp_path / "both.json").read_text())
    assert priced["delta"] == pytest.approx(2e-5)
    assert 0.7 < priced["epsilon"] < 1.0
    assert len(priced["entries"]) == 2 * len(
        json.loads(price(str(tmp_path / "small"), "--json -").output)["entries"]
    )
    # At the delta of each it costs more than at the sum.
    other = price(str(tmp_path / "small"), str(tmp_path / "large"), "--delta 1e-5 --json -")
    assert json.loads(other.output)["epsilon"] > priced["epsilon"]
    again = price(str(tmp_path / "small"), str(tmp_path / "small"))
    assert again.exit_code == 2
    assert "given twice" in again.output
    person = price(str(tmp_path / "small"), f"--records-per-person 3 --json {tmp_path}/person")
    assert 0.9 < json.loads((tmp_path / "person").read_text())["epsilon"] < 2
    assert "with 3 records in every table: epsilon" in person.output
