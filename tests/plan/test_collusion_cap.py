"""A cap on epsilon if a party colludes with the server: the largest messages that keep it."""

import json
import math

import pytest
from builders import schema_of
from commands import good
from planning import plan_with

from vertimrf import Plan
from vertimrf.errors import PlanError
from vertimrf.plan.collusion import UNUSED, within_cap
from vertimrf.plan.options import MIN_MESSAGE_BYTES
from vertimrf.releases.nothing import NOTHING

TWO = schema_of(left=(16, 7, 4, 2), right=(5, 3))
SHARED = schema_of(left=(16, 7, 4, 2), right={"left0": 16, "right0": 5, "right1": 3})
KNOWN = {"epsilon": 1.0, "expected_records": 20_000, "nonce": "test"}


@pytest.mark.parametrize("schema, cap", [(TWO, 10.0), (SHARED, 20.0)])
def test_messages_are_as_large_as_the_cap_allows(schema, cap):
    plan = plan_with(schema, **KNOWN, collusion_epsilon=cap)
    spent = plan.ledger().colluding_epsilon
    assert spent <= cap
    # It is the plan of that size, which nothing else in it follows from.
    assert plan == plan_with(schema, **KNOWN, message_bytes=plan.message_bytes)
    assert "collusion" not in json.dumps(plan.to_json())
    if spent < cap * (1 - UNUSED):
        # Whole repetitions: two more, whatever they are made of, do not fit.
        larger = round(plan.message_bytes * (1 + 2.5 / plan.sketch.repetitions))
        assert plan_with(schema, **KNOWN, message_bytes=larger).ledger().colluding_epsilon > cap


def test_a_cap_that_the_usual_size_keeps_changes_nothing():
    usual = plan_with(TWO, **KNOWN)
    assert (
        plan_with(TWO, **KNOWN, collusion_epsilon=math.ceil(usual.ledger().colluding_epsilon))
        == usual
    )
    # Without sketches there is nothing to make smaller, and only the others' own counts are left.
    responses = plan_with(TWO, **KNOWN, encoder="grr")
    assert plan_with(TWO, **KNOWN, encoder="grr", collusion_epsilon=0.99) == responses


def test_a_cap_out_of_reach_is_refused_with_the_least_that_is_not():
    least = plan_with(TWO, **KNOWN, message_bytes=MIN_MESSAGE_BYTES).ledger().colluding_epsilon
    with pytest.raises(
        PlanError,
        match=rf"^No message is so small.*the smallest reach {least:.3g}; raise the cap, or lower eps",
    ):
        plan_with(TWO, **KNOWN, collusion_epsilon=0.9 * least)
    assert (
        plan_with(TWO, **KNOWN, collusion_epsilon=1.05 * least).ledger().colluding_epsilon
        <= 1.05 * least
    )


@pytest.mark.parametrize(
    "options, text",
    [
        ({"collusion_epsilon": 20.0, "message_bytes": 10**6}, "give the cap or a size, not both"),
        ({"collusion_epsilon": 20.0, "keys": 100}, "give the cap or a size, not both"),
        ({"collusion_epsilon": 0.0}, "must be a number above 0"),
        ({"collusion_epsilon": math.nan}, "must be a number above 0"),
        ({"collusion_epsilon": math.inf}, "must be a number above 0"),
        (
            {"collusion_epsilon": 20.0, "encoder": "scheduled-pairs"},
            "With scheduled-pairs no epsilon holds",
        ),
        (
            {"collusion_epsilon": 20.0, "encoder": "published", "claim_as_published": True},
            "With published no epsilon holds",
        ),
    ],
)
def test_what_a_cap_does_not_go_with_is_refused_in_a_sentence(options, text):
    with pytest.raises(PlanError, match=text):
        plan_with(TWO, **KNOWN, **options)


def test_where_one_holds_everything_nobody_colludes():
    with pytest.raises(PlanError, match="No party can collude where one holds everything"):
        plan_with(schema_of(one=(3, 4)), **KNOWN, collusion_epsilon=3.0)


def test_the_search_ends_whatever_the_planner_does():
    """Of sizes whose price jumps, the last one below; plans are made few times."""
    asked = []

    class Priced:
        def __init__(self, size):
            self.size, self.sketch, self.agreement = size, NOTHING, ()
            self.colluding_epsilon = 3.0 if size < 54_321 else 30.0

        def ledger(self):
            return self

    def make(size):
        asked.append(size)
        return Priced(size)

    assert within_cap(make, 10.0, 1000, 15_000_000).size == 54_320
    assert len(asked) < 60


def planning(folder):
    TWO.save(folder / "schema.toml")
    known = f"--schema {folder}/schema.toml --epsilon 1 --expected-records 20000"
    return f"plan {known} --out {folder}/plan.json"


def test_the_command_prints_the_second_total_and_takes_the_cap(tmp_path):
    done = good(planning(tmp_path), "--collusion-epsilon 15")
    plan = Plan.load(tmp_path / "plan.json")
    spent = plan.ledger().colluding_epsilon
    assert 14.5 < spent <= 15
    line = f"If a party colludes with the server: epsilon {spent:.4g} at the same delta, for what the other parties hold."
    assert line in done
    for command in ("plan", "inspect"):
        assert line in good(f"{command} {tmp_path}/plan.json")
    printed = json.loads(good(f"plan {tmp_path}/plan.json --json -"))
    assert printed["colluding_epsilon"] == pytest.approx(spent)
