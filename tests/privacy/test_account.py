"""Prices of plans and of lone sketches, before any data is touched."""

import json

import pytest
from commands import run
from msgspec.structs import replace
from planning import plan_with

from vertimrf.errors import PrivacyError
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.schema import Schema
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import CountSketchEvent, SketchEvent

# Of one lone sketch encoder each, and the delta at which it is priced.
SKETCHES = (
    SketchEvent(phantoms=6326, floor=9, ceiling=20, keys=131_072, gamma=1.0, attributes_per_key=2),
    4.6352e-05,
)
COUNTS = CountSketchEvent(groups=15, variance=22.5, buckets=1508, repetitions=172), 2.2113e-05


def price(*arguments):
    return run("plan", *arguments)


def test_lone_sketches_are_priced_in_python():
    event, delta = SKETCHES
    spent = epsilon([event], delta)
    assert 0.486 <= spent.epsilon <= 0.500
    assert spent.method == "pld"
    event, delta = COUNTS
    assert 0.5436 < epsilon([event], delta).epsilon < 0.546


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"variance": 1.4}, "number from 4"),
        ({"repetitions": 0}, "at least 1, not 0"),
        ({"keys": 0}, "at least 1, not 0"),
        ({"phantoms": 0}, "at least 1, not 0"),
        ({"ceiling": 8}, "below its ceiling"),
    ],
)
def test_sketches_that_cannot_be_have_no_price(change, said):
    event, _ = COUNTS if change.keys() & {"variance", "repetitions"} else SKETCHES
    with pytest.raises(PrivacyError, match=said):
        replace(event, **change)


@pytest.mark.parametrize("delta", [0.0, 1.5])
def test_a_price_is_at_a_delta_between_0_and_1(delta):
    with pytest.raises(PrivacyError, match="between 0 and 1"):
        epsilon([SKETCHES[0]], delta)


def test_a_plan(tmp_path):
    attributes = tuple(Attribute(name=n, kind="integer", codes=4) for n in "abxy")
    schema = Schema(attributes=attributes, parties=(("one", ("a", "b")), ("two", ("x", "y"))))
    plan = plan_with(schema, epsilon=0.7, expected_records=10_000, nonce="test", keys=1 << 12)
    plan.save(tmp_path / "plan.json")
    outcome = price(str(tmp_path / "plan.json"), "--json", str(tmp_path / "priced.json"))
    assert outcome.exit_code == 0
    assert "all parties" in outcome.output
    priced = json.loads((tmp_path / "priced.json").read_text())
    assert 0.68 < priced["epsilon"] <= 0.7
    # A smaller delta costs more.
    other = price(str(tmp_path / "plan.json"), "--delta 1e-9 --json -")
    assert json.loads(other.output)["epsilon"] > priced["epsilon"]


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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "needs --schema, --epsilon, --expected-records"),
        ("p --tau 5", "priced as they are"),
        ("nowhere.json", "Cannot read"),
    ],
)
def test_bad_input_is_one_sentence(given, said):
    outcome = price(*given.split())
    assert outcome.exit_code == 2
    assert said in outcome.output
    assert outcome.output.count("\n") == 1
