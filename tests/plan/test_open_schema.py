"""Schemas whose domains are yet to be found: what may be asked, and what closing them keeps."""

import pytest
from planning import plan_with

from vertimrf import Attribute, Ledger, OpenSchema, Schema
from vertimrf.errors import PlanError, SchemaError
from vertimrf.plan.merge import merge_schemas
from vertimrf.plan.sdv import sections_of
from vertimrf.privacy.events import GeometricEvent, ThresholdEvent
from vertimrf.privacy.ledger import LedgerEntry


def asked(*attributes):
    return {"party": [{"name": "a", "attribute": list(attributes)}]}


def test_what_is_public_of_a_private_domain_is_kept():
    data = asked(
        {"name": "pay", "bins": "private", "resolution": 0.01, "missing": True, "most": 8},
        {"name": "job", "values": "private", "other": "rest"},
        {"name": "sex", "values": ["f", "m"]},
        {"name": "at", "bins": "private", "calendar": "time"},
        {"name": "age", "bins": "private", "bounds": [0, 110], "integral": True},
    )
    schema = OpenSchema.from_json(data)
    assert list(schema.wanted) == ["pay", "job", "at", "age"]
    assert schema.schema.names == ("pay", "job", "sex", "at", "age")
    pay = schema.wanted["pay"].binned((1.0, 2.5, 9.0), (0.0,))
    assert (pay.edges, pay.resolution, pay.missing, pay.clamp) == (
        (1.0, 2.5, 9.0),
        0.01,
        True,
        True,
    )
    assert schema.wanted["pay"].most == 8
    assert schema.wanted["job"].listed(("nurse", "rest")).values == ("nurse", "rest")
    # A day has its bounds, and public ones need no clamp.
    assert schema.wanted["at"].bounded
    assert not schema.wanted["age"].binned((0.0, 50.0, 110.0), ()).clamp


@pytest.mark.parametrize(
    "attribute, sentence",
    [
        ({"name": "x", "bins": "private", "values": ["a"]}, "private bins as well as values"),
        ({"name": "x", "values": "private", "bounds": [0, 1]}, "private values as well as bounds"),
        ({"name": "x", "bins": "private", "most": 1}, "most is 1"),
        ({"name": "x", "bins": "private", "most": True}, "most is True"),
        ({"name": "x", "bins": "private", "edges": [0, 1]}, "private bins as well as edges"),
        ({"name": "x", "values": "private", "other": 3}, "private values are text"),
        ({"name": "x", "bins": "private", "bounds": [1, 0]}, "edges must increase"),
        ({"name": "x", "bins": "private", "colour": 1}, "unknown key 'colour'"),
    ],
)
def test_what_does_not_go_together_is_refused(attribute, sentence):
    with pytest.raises(SchemaError, match=sentence):
        OpenSchema.from_json(asked(attribute))


def test_an_open_schema_cannot_be_planned_with(tmp_path):
    path = tmp_path / "part.toml"
    path.write_text('[[party]]\nname = "a"\n[[party.attribute]]\nname = "pay"\nbins = "private"\n')
    with pytest.raises(
        SchemaError,
        match=r"part.toml: Attribute 'pay' has a private domain, which has not been found yet",
    ):
        Schema.load(path)
    assert list(OpenSchema.load(path).wanted) == ["pay"]


def entry(name, epsilon=0.1, exposed=0.0):
    scale = 1 / epsilon
    event = (
        ThresholdEvent(scale, ThresholdEvent.least_threshold(scale, exposed))
        if exposed
        else GeometricEvent(scale)
    )
    return LedgerEntry(event, "a", f"bounds and bins of {name!r}", "noise", f"id-{name}")


def closed(*entries, party="a"):
    attributes = [Attribute.integer(f"{party}{i}", 3) for i in range(2)]
    return OpenSchema(Schema.of({party: attributes}), {}).closed({}, entries)


def test_what_was_spent_on_domains_goes_along_to_the_plan_and_its_ledger(tmp_path):
    one, other = closed(entry("x")), closed(entry("y", 0.05, 1e-12), party="b")
    merged = merge_schemas({"one": one, "other": other})
    assert merged.spent == (entry("x"), entry("y", 0.05, 1e-12))
    for name in ("schema.toml", "schema.json"):
        merged.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == merged
    plan = plan_with(merged, delta=1e-9, expected_records=5000, encoder="count-sketch", nonce="x")
    ledger = plan.ledger()
    assert [e.release for e in ledger.entries[:2]] == ["id-x", "id-y"]
    assert ledger.prior == 2
    assert 0.99 < ledger.epsilon <= 1.0
    # The rest alone costs what is left, at the delta that is left.
    plain = merge_schemas({"one": closed(), "other": closed(party="b")})
    alone = plan_with(
        plain, epsilon=0.85, delta=1e-9, expected_records=5000, encoder="count-sketch", nonce="x"
    )
    assert plan.count_sigma == pytest.approx(alone.count_sigma, rel=5e-3)
    assert merged.split([1, 3]).spent == merged.spent


def test_domains_found_once_are_paid_for_once_by_two_plans():
    merged = merge_schemas({"one": closed(entry("x")), "other": closed(party="b")})
    plans = [
        plan_with(
            merged,
            delta=1e-9,
            expected_records=5000,
            encoder="count-sketch",
            nonce=nonce,
        ).ledger()
        for nonce in "xy"
    ]
    together = Ledger.together(plans)
    assert together.prior == 1
    assert [e.release for e in together.entries].count("id-x") == 1
    # Two counts to plan with are two releases, however alike.
    count = LedgerEntry(GeometricEvent(50.0), "coordinator", "record count, to plan with", "noise")
    counted = Ledger((count, *plans[0].entries[1:]), 1e-9, prior=1)
    assert Ledger.together([counted, counted]).prior == 2


def test_nothing_left_of_the_target_is_said():
    schema = merge_schemas({"one": closed(entry("x", 2.0)), "other": closed(party="b")})
    with pytest.raises(
        PlanError, match=r"has spent epsilon 2 .*nothing is left of the target, epsilon 1"
    ):
        plan_with(schema, delta=1e-9, expected_records=5000)
    late = merge_schemas({"one": closed(entry("x", 0.1, 1e-8)), "other": closed(party="b")})
    with pytest.raises(PlanError, match=r"delta .*raise it"):
        plan_with(late, delta=1e-9, expected_records=5000)


def test_a_part_without_private_domains_is_itself():
    plain = {"party": [{"name": "a", "attribute": [{"name": "x", "codes": 3}]}]}
    read = OpenSchema.from_json(plain)
    assert not read.wanted
    assert read.schema == Schema.from_json(plain)
    assert "spent" not in read.schema.to_json()
    for spent in ("no", [], 3, [1]):
        with pytest.raises((SchemaError, Exception), match=r"spent|ledger entry"):
            Schema.from_json(plain | {"spent": spent})


def test_sdvs_metadata_keeps_no_personal_column_and_tells_timestamps():
    columns = {
        "name": {"sdtype": "categorical", "pii": True},
        "at": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M"},
    }
    (party,) = sections_of({"columns": columns})["party"]
    (kept,) = party["attribute"]
    assert (kept["name"], kept["calendar"]) == ("at", "timestamp")
