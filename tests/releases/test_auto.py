"""What "auto" stands for follows from public statements alone, and the plan says why."""

from dataclasses import replace

import pytest
from builders import schema_of

from tests.planning import edited, plan_with
from vertimrf import Plan, Schema
from vertimrf.errors import PlanError, SchemaError
from vertimrf.plan.merge import merge_schemas
from vertimrf.plan.summary import summary
from vertimrf.releases.auto import ENCODERS, MOST_NUMBERS, STATED
from vertimrf.releases.nothing import NOTHING

TWO = replace(schema_of(one=(4, 2, 9), two=(5, 2)), same_people=True)
KNOWN = {"expected_records": 20_000, "nonce": "n"}


LONG = replace(
    schema_of(one=(8, 9, 16, 7, 15, 6, 5, 2), two=(16, 8, 8, 10, 41, 2, 8)), same_people=True
)
SHARED = schema_of(one={"a": 4, "b": 3}, two={"a": 4, "c": 3})
CASES = [
    ("two parties", replace(schema_of(one=(4,), two=(5,), three=(2, 3)), same_people=True), {}),
    ("same_people", replace(TWO, same_people=False), {}),
    ("one party holds", replace(SHARED, same_people=True), {}),
    ("who holds a person", TWO, {"population": "outer"}),
    ("several records", TWO, {"records_per_person": 2}),
    ("size of sketches", TWO, {"collusion_epsilon": 9.0}),
    ("size of sketches", TWO, {"message_bytes": 100_000}),
    ("size of sketches", TWO, {"keys": 1000}),
    ("40,000,000 numbers", TWO, {"expected_records": MOST_NUMBERS // 15 + 1}),
    ("useless", LONG, {"expected_records": 1000, "epsilon": 1.0}),
    (STATED, TWO, {"expected_records": MOST_NUMBERS // 15}),
]


@pytest.mark.parametrize("reason, schema, options", CASES)
def test_the_plan_is_that_of_the_chosen_encoder_and_says_why(reason, schema, options):
    plan = plan_with(schema, **KNOWN | options)
    assert reason in plan.because
    encoder = "encrypted" if reason == STATED else "count-sketch"
    asked = plan_with(schema, encoder=encoder, **KNOWN | options)
    assert plan == replace(asked, because=plan.because)
    assert f"  encoder: {encoder}, because {plan.because}." in summary(plan).splitlines()


def test_every_reason_has_a_case():
    assert all(any(reason in why for reason, *_ in CASES) for why in ENCODERS)


def test_without_sketches_or_a_choice_there_is_no_reason():
    assert plan_with(TWO, encoder="count-sketch", **KNOWN).because == ""
    alone = plan_with(TWO, encoder="auto", shares=(0.1, 0.9, 0.0), **KNOWN)
    assert (alone.sketch, alone.because) == (NOTHING, "")


def test_a_plan_with_another_reason_is_refused():
    content = plan_with(TWO, **KNOWN).to_json()
    for reason in ("it was asked for", [*ENCODERS][1]):
        with pytest.raises(PlanError, match="is no reason"):
            Plan.from_json(edited(content, "because", value=reason))


def test_all_parties_state_that_they_hold_the_same_people(tmp_path):
    one, two = (schema_of(**{name: (3, 2)}) for name in ("one", "two"))
    agreed = {name: replace(part, same_people=True) for name, part in (("a", one), ("b", two))}
    merged = merge_schemas(agreed)
    assert merged.same_people
    assert not merge_schemas(agreed | {"b": two}).same_people
    for name in ("schema.toml", "schema.json"):
        merged.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == merged != replace(merged, same_people=False)
    with pytest.raises(SchemaError, match="'same_people' is 1; write true or false"):
        replace(one, same_people=1)
    with pytest.raises(SchemaError, match="same_people"):
        Schema.from_json(merged.to_json() | {"same_people": "yes"})
