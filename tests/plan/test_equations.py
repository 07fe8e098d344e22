"""Equations of a schema: which text is one, what they may add up, and the domain of the sum."""

import math

import numpy as np
import pytest
from builders import temporal
from planning import plan_with

from vertimrf import Attribute, OpenSchema, PlanOptions, Schema, make_plan
from vertimrf.errors import PlanError, SchemaError
from vertimrf.party.private_domains import Finding, close
from vertimrf.plan.merge import merge_schemas
from vertimrf.plan.rules import parse_rule
from vertimrf.plan.summary import summary

DATES = ["2020-01-01", "2020-02-01", "2020-03-01"]
ONE = [
    Attribute.categorical("text", ["x", "y"]),
    temporal("day", "date", DATES, format="%d/%m/%Y", missing=True),
    temporal("later", "date", DATES),
    temporal("at", "timestamp", DATES),
    temporal("there", "timestamp", DATES, timezone="Europe/Vienna"),
    temporal("hour", "time", ["08:00", "12:00"]),
    Attribute.numeric("whole", [-2, 0, 10], integral=True),
    Attribute.numeric("cents", [0, 10], resolution=0.01, format=","),
    Attribute.numeric("any", [0, 10]),
    Attribute.integer("code", 4),
    Attribute.categorical("listed", [0.5, 1.0, 2.5]),
    temporal("weekly", "date", DATES, resolution=7),
    Attribute.integer("none", 1),
    Attribute.integer("nought", 1),
]
SCHEMA = Schema.of({"one": ONE})


@pytest.mark.parametrize(
    "rules, sentence",
    [
        (["x = 3"], "The rule 'x = 3' is not clear; .* an equation, as in total = base"),
        (["x = sqrt(whole)"], "is not clear"),
        (["x = log(x)"], "it names a column twice"),
        (["x = log(text)"], "'text' has no numbers, dates or times"),
        (["x = log(none)"], "'none' has no positive numbers"),
        (["x = day == 3"], "'day' has dates or times, which have no such function"),
        (["x = - whole + code"], "is not clear"),
        (["= whole + code"], "is not clear"),
        (["x = whole + "], "is not clear"),
        (["x = whole + code = any"], "is not clear"),
        (["x = whole * code + any"], "is not clear; .* area = width"),
        (["x = x * whole"], "it names a column twice"),
        (["x = day * code"], "do not add up; a number is a sum or product of numbers"),
        (["x = whole + whole"], "Rule x = whole .* whole: it names a column twice"),
        (["x = x + whole"], "it names a column twice"),
        (["x = whole + cod"], r"Rule x = whole \+ cod: there is no attribute 'cod'"),
        (["x = whole + text"], "'text' has no numbers, dates or times"),
        (["any = whole + code"], "it computes 'any'; delete the section of this column"),
        (["x = whole + code", "x = whole - code"], "or the other rule that computes it"),
        (["x = y + code", "y = x + any"], "The equations of [xy], [xy] compute each other"),
        (["x = whole + code", "any <= x"], r"Rule any <= x: 'x' is computed"),
        (["x = day + later"], "its columns do not add up; a number is a sum or product of"),
        (["x = day + any"], "do not add up"),
        (["x = day + cents"], "do not add up"),
        (["x = whole - day"], "do not add up"),
        (["x = at - there"], "do not add up"),
        (["x = at - day"], "do not add up"),
        (["x = hour + whole"], "do not add up"),
    ],
)  # fmt: skip
def test_bad_equations_are_named(rules, sentence):
    data = SCHEMA.to_json() | {"rules": rules}
    with pytest.raises(SchemaError, match=sentence):
        Schema.from_json(data)


def test_a_sum_beyond_the_calendar_is_refused():
    years = Attribute.numeric("days", [0, 4_000_000], integral=True)
    with pytest.raises(SchemaError, match="'x': edges must lie in the years 1 to 9999"):
        Schema.of({"one": [*ONE, years]}, rules=["x = day + days"])


@pytest.mark.parametrize(
    "rule, domain",
    [
        ("x = whole - code", {"edges": (-5, 10), "integral": True}),
        ("x = whole + listed", {"edges": (-1.5, 12.5), "resolution": 0.1}),
        ("x = cents + listed", {"edges": (0.5, 12.5), "resolution": 0.01, "format": ","}),
        ("x = cents + any", {"edges": (0, 20), "format": ","}),
        ("x = later - day", {"edges": (-60, 60), "integral": True, "missing": True}),
        ("x = hour - code", None),
        ("x = weekly + code", {"calendar": "date", "resolution": None}),
        ("x = whole * whole", {"edges": (-20, 100), "integral": True}),
        ("x = whole * listed * any", {"edges": (-50, 250)}),
        ("x = cents * listed", {"edges": (0, 25), "resolution": 0.001, "format": ","}),
        ("x = none + nought", {"edges": (0, 1), "integral": True}),
        ("x = whole", {"edges": (-2, 10), "integral": True}),
        ("x = 1 - whole", {"edges": (-9, 3), "integral": True}),
        ("x = whole - 0.5", {"edges": (-2.5, 9.5), "resolution": 0.1}),
        ("x = 1000 * whole", {"edges": (-2000, 10_000), "integral": True}),
        ("x = day + 3", {"calendar": "date", "missing": True}),
        ("x = log(code)", {"edges": (0, math.log(3)), "missing": True}),
        ("x = log(listed)", {"edges": (math.log(0.5), math.log(2.5))}),
        ("x = whole == -2", {"edges": (0, 1), "integral": True}),
        ("x = at + code", {"calendar": "timestamp", "edges": (1577836800, 1583020803)}),
        ("x = there - code", {"timezone": "Europe/Vienna", "calendar": "timestamp"}),
        (
            "x = later - whole",
            {"calendar": "date", "edges": (18252, 18324), "format": None, "missing": False},
        ),
        ("x = day + later - later2", None),
    ],
)
def test_the_domain_of_a_sum_is_that_of_its_terms(rule, domain):
    if domain is None:
        with pytest.raises(SchemaError):
            Schema.of({"one": ONE}, rules=[rule])
        return
    made = Schema.of({"one": ONE}, rules=[rule]).domains["x"]
    assert {key: getattr(made, key) for key in domain} == domain
    unstated = {"integral", "missing"} - domain.keys()
    assert not any(getattr(made, key) for key in unstated)


def assert_lacking(rule, numbers, attributes, name):
    """A record that lacks a term has no total, and all others have one."""
    numbers[name][5] = np.nan
    totals = rule.total(numbers, rule.attribute(attributes))
    assert np.flatnonzero(np.isnan(totals)).tolist() == [5]


def test_sums_and_their_terms_give_each_other():
    """Of random decimals, against integer arithmetic in hundredths."""
    rng = np.random.default_rng(0)
    rule = parse_rule("x = a - b + c")
    cents = {name: rng.integers(-(10**9), 10**9, 1000) for name in "abc"}
    numbers = {name: values / 100 for name, values in cents.items()}
    attributes = [Attribute.numeric(name, [-1e7, 1e7], resolution=0.01) for name in "abc"]
    whole = cents["a"] - cents["b"] + cents["c"]
    numbers["x"] = rule.total(numbers, rule.attribute(attributes))
    assert (numbers["x"] == whole / 100).all()
    for name, attribute in zip("abc", attributes, strict=True):
        assert rule.solved(name).columns == {*"abcx"} - {name}
        assert (rule.solved(name).total(numbers, attribute) == numbers[name]).all()
    assert_lacking(rule, numbers, attributes, "b")


def test_products_are_those_of_whole_numbers():
    """Of random decimals, against integer arithmetic in ten-thousandths."""
    rng = np.random.default_rng(0)
    rule = parse_rule("x = a * `b c` * a")
    assert str(rule) == "x = a * `b c` * a"
    assert parse_rule(str(rule)) == rule == rule.solved("a")
    tenths = {name: rng.integers(-999, 999, 1000) for name in ("a", "b c")}
    numbers = {name: values / 10 for name, values in tenths.items()}
    attributes = [Attribute.numeric(name, [-100, 100], resolution=0.1) for name in tenths]
    whole = tenths["a"] ** 2 * tenths["b c"]
    assert (rule.total(numbers, rule.attribute(attributes)) == whole / 1000).all()
    assert_lacking(rule, numbers, attributes, "a")


def test_equations_are_part_of_the_fingerprint_and_cost_nothing(tmp_path):
    rules = ["x = whole + code", "day <= later"]
    stated = Schema.of({"one": ONE}, rules=rules)
    stated.save(tmp_path / "a.toml")
    assert Schema.load(tmp_path / "a.toml") == stated
    assert [rule.name for rule in stated.equations] == ["x"]
    assert len(stated.orders) == 1
    plans = [
        plan_with(Schema.of({"one": ONE}, rules=some), epsilon=1.0, expected_records=1000)
        for some in ([], ["x = whole + code"], ["x = whole - code"])
    ]
    assert len({plan.digest() for plan in plans}) == 3
    assert len({repr(plan.local) for plan in plans}) == 1
    assert "rules that every row keeps: x = whole + code." in summary(plans[1])
    part = Schema.of({"two": [Attribute.integer("z", 2)]})
    assert merge_schemas({"a": stated, "b": part}).rules == stated.rules


def test_the_outer_population_needs_the_name_of_its_column():
    parts = {"one": [ONE[6]], "two": [Attribute.integer("z", 4)]}
    schema = Schema.of(parts, rules=["held_by = whole + z"])
    planning = PlanOptions(population="outer", expected_records=10_000)
    with pytest.raises(PlanError, match="a column 'held_by' says who holds somebody"):
        make_plan(schema, 10.0, planning)


def test_an_open_schema_has_equations_of_private_domains():
    part = {
        "name": "p",
        "attribute": [{"name": "a", "bins": "private"}, {"name": "b", "codes": 3}],
    }
    opened = OpenSchema.from_json({"party": [part], "rules": ["x = a + b", "b <= a"]})
    assert [str(rule) for rule in opened.schema.rules] == ["x = a + b"]
    closed = opened.closed({"a": Attribute.numeric("a", [0, 5])}, ())
    assert closed.rules == opened.rules
    assert closed.domains["x"].edges == (0, 7)
    # A domain that noise did not find has no numbers to add.
    lost = close(opened, [Finding(opened.wanted["a"], None, ())])
    assert lost.rules == ()
    with pytest.raises(SchemaError, match="there is no attribute 'z'"):
        OpenSchema.from_json({"party": [part], "rules": ["x = a + z"]})


def test_functions_have_their_numbers_and_their_text():
    """Missing where there is no number; and the text of a rule is the rule."""
    values = {"a": np.array([np.nan, -1.0, 0.0, 1.0, 2.5])}
    told = {
        "x = log(a)": [np.nan, np.nan, np.nan, 0.0, np.log(2.5)],
        "x = a == 1": [np.nan, 0, 0, 1, 0],
        "x = a != 1": [np.nan, 1, 1, 0, 1],
        "x = a >= -1": [np.nan, 1, 1, 1, 1],
        "x = a <= 0": [np.nan, 1, 1, 0, 0],
        "x = a > 0.5": [np.nan, 0, 0, 1, 1],
        "x = a < 1": [np.nan, 1, 1, 0, 0],
        "x = a": values["a"],
        "x = 1 - a": 1 - values["a"],
        "x = a - 2": values["a"] - 2,
        "x = 0.5 * a": values["a"] / 2,
    }
    attribute = Attribute.numeric("a", [-2, 5], missing=True)
    for text, wanted in told.items():
        rule = parse_rule(text)
        assert str(rule) == text
        domain = rule.attribute([attribute])
        np.testing.assert_allclose(rule.total(values, domain), wanted)
        low, high = domain.extremes
        assert domain.missing
        assert low <= np.nanmin(wanted) <= np.nanmax(wanted) <= high


def test_what_a_constant_is_added_to_is_computed_from_the_sum():
    for text in ("x = a - b + 3", "x = 1 - a - b"):
        rule = parse_rule(text)
        numbers = {"a": np.array([2.0, 5.0]), "b": np.array([7.0, -1.0])}
        attributes = [Attribute.numeric(name, [-9, 9]) for name in "ab"]
        total = rule.total(numbers, rule.attribute(attributes))
        back = rule.solved("b")
        given = {"x": total, "a": numbers["a"]}
        np.testing.assert_allclose(back.total(given, attributes[1]), numbers["b"])


def test_an_equation_may_name_a_computed_column_in_any_order():
    rules = ["z = y * y", "y = log(code)", "x = z - 1"]
    made = Schema.of({"one": ONE}, rules=rules).domains
    assert list(made)[-3:] == ["y", "z", "x"]
    assert all(made[name].missing for name in "xyz")
    again = Schema.from_json(Schema.of({"one": ONE}, rules=rules).to_json())
    assert [str(rule) for rule in again.rules] == rules
    with pytest.raises(SchemaError, match="orders name the columns that it is computed of"):
        Schema.of({"one": ONE}, rules=["y = 2 * any", "whole <= y"])


def test_a_name_that_is_a_number_stands_between_backticks():
    rule = parse_rule("x = `2010` - 2010")
    assert rule.columns == {"2010"}
    assert rule.constant == -2010
    assert str(rule) == "x = `2010` - 2010"
