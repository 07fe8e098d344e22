"""Impossible combinations in a schema: which codes they rule out, what is said of bad ones, and what they leave possible."""

import json
import tomllib

import numpy as np
import pytest
from builders import schema_of, temporal
from hypothesis import given
from hypothesis import strategies as st
from oracles import drawn_combinations, possible
from planning import plan_with

from vertimrf import Attribute, Impossible, Schema
from vertimrf.errors import PlanError, SchemaError
from vertimrf.plan.impossible import Condition, contradiction, never
from vertimrf.plan.merge import merge_schemas
from vertimrf.plan.summary import summary

AGE = Attribute.numeric("age", range(0, 101, 5), integral=True, missing=True)
BMI = Attribute.numeric("bmi", [10, 20, 30, 40])
PRICE = Attribute.numeric("price", [0, 0.3, 0.7, 1.0], resolution=0.1)
BORN = temporal("born", "date", ["2020-01-01", "2020-02-01", "2020-03-01", "2020-12-31"])
AT = temporal("at", "time", ["00:00", "06:00", "12:00", "18:00"], missing=True)
SEEN = temporal(
    "seen", "timestamp", ["2020-01-01", "2020-07-01", "2021-01-01"], timezone="Europe/Vienna"
)
SEX = Attribute.categorical("sex", ["F", "M"])
GRADE = Attribute.categorical("grade", [1, 2, 3], missing=True)
SHARE = Attribute.categorical("share", [0.5, 1.5])
PAID = Attribute.categorical("paid", [False, True])
CLAIMS = Attribute.integer("claims", 5)
ODD = Attribute.categorical("odd", ["missing", "there"], missing=True)

EXAMPLE = """
[[impossible]]
age = {below = 15}
married = ["yes", "widowed"]

[[impossible]]
cancelled = true
left = {missing = false}

[[party]]
name = "people"
[[party.attribute]]
name = "age"
bounds = [0, 90]
bins = 18
[[party.attribute]]
name = "married"
values = ["no", "yes", "widowed"]
[[party.impossible]]
age = {from = 85}
married = "no"

[[party]]
name = "flights"
[[party.attribute]]
name = "cancelled"
values = [false, true]
[[party.attribute]]
name = "left"
bounds = [00:00:00, 23:59:59]
bins = "hour"
missing = true
"""


@pytest.mark.parametrize(
    "attribute, given, codes",
    [
        (AGE, {"below": 15}, (0, 1, 2)),
        (AGE, {"from": 95}, (19,)),
        (AGE, "missing", (20,)),
        (AGE, None, (20,)),
        (AGE, {"missing": True}, (20,)),
        (AGE, {"missing": False}, tuple(range(20))),
        (BMI, {"above": 20}, (2,)),  # the bin from 20 has 20 itself
        (BMI, {"to": 40}, (0, 1, 2)),
        (PRICE, {"below": 0.3}, (0,)),
        (PRICE, {"from": 0.3, "to": 0.6}, (1,)),  # 0.6 is the last multiple below 0.7
        (PRICE, {"above": 0.6}, (2,)),
        (BORN, {"below": "2020-03-01"}, (0, 1)),
        (BORN, {"to": "2020-01-31"}, (0,)),
        (AT, {"from": "12:00"}, (2,)),
        (AT, ["missing"], (3,)),
        (SEEN, {"below": "2020-07-01"}, (0,)),
        (SEX, "F", (0,)),
        (SEX, ["M", "F"], (0, 1)),
        (GRADE, {"above": 1}, (1, 2)),
        (GRADE, [3, "missing"], (2, 3)),
        (SHARE, {"below": 1}, (0,)),
        (SHARE, 1.5, (1,)),
        (PAID, True, (1,)),
        (CLAIMS, {"from": 3}, (3, 4)),
        (CLAIMS, [0, 4], (0, 4)),
        (ODD, "missing", (0,)),  # a value of that name comes first
        (ODD, None, (2,)),
    ],
)
def test_codes_of_conditions(attribute, given, codes):
    condition = Condition.from_json(attribute.name, given)
    assert condition.codes(attribute) == codes
    assert (
        Condition.from_json(attribute.name, json.loads(json.dumps(condition.to_json()))).codes(
            attribute
        )
        == codes
    )


def test_no_number_of_a_ruled_out_bin_is_outside_the_limits():
    """Against the numbers themselves, drawn inside bins; the bins that are cut have numbers on both sides."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        edges = np.unique(rng.integers(0, 60, 8))
        step = rng.choice([0, 1, 2])
        if len(edges) < 2 or (step and (np.diff(edges) < 2).any()):
            continue
        attribute = Attribute.numeric("x", edges.tolist(), resolution=float(step) or None)
        low, high = sorted(rng.integers(0, 60, 2).tolist())
        limits = {rng.choice(["from", "above"]): low, rng.choice(["below", "to"]): high}
        condition = Condition.from_json("x", limits)
        values = np.arange(edges[0] * 8, edges[-1] * 8 + 1) / 8
        values = values[values % step == 0] if step else values
        inside = np.ones(len(values), bool)
        for key, limit in limits.items():
            compare = {
                "from": np.greater_equal,
                "above": np.greater,
                "below": np.less,
                "to": np.less_equal,
            }[key]
            inside &= compare(values, limit)
        codes = np.minimum(np.searchsorted(edges, values, side="right") - 1, len(edges) - 2)
        all_in = tuple(c for c in range(len(edges) - 1) if inside[codes == c].all())
        some_in = tuple(
            c for c in range(len(edges) - 1) if inside[codes == c].any() and c not in all_in
        )
        if all_in:
            assert condition.codes(attribute) == all_in
        else:
            with pytest.raises(SchemaError, match="no bin of 'x' lies wholly within"):
                condition.codes(attribute)
        assert condition.cut(attribute) == some_in


def test_a_file_says_what_the_code_says(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(EXAMPLE)
    schema = Schema.load(path)
    assert schema.impossible == (
        Impossible.of(age={"below": 15}, married=["yes", "widowed"]),
        Impossible.of(cancelled=True, left={"missing": False}),
        Impossible.of(age={"from": 85}, married="no"),
    )
    assert schema.combinations == (
        ((0, (0, 1, 2)), (1, (1, 2))),
        ((2, (1,)), (3, tuple(range(24)))),
        ((0, (17,)), (1, (0,))),
    )
    assert schema.combinations_at("people") == {
        0: schema.combinations[0],
        2: schema.combinations[2],
    }
    assert schema.combinations_at("flights") == {1: ((0, (1,)), (1, tuple(range(24))))}
    for name in ("again.toml", "again.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
        assert Schema.load(tmp_path / name).digest() == schema.digest()
    assert str(schema.impossible[0]) == "age below 15 and married = 'yes' or 'widowed'"
    assert str(schema.impossible[1]) == "cancelled = True and left not missing"
    dates = Schema.of(
        {"p": [BORN, SEX]},
        impossible=[Impossible.of(sex="F", **tomllib.loads("born = {from = 2020-03-01}"))],
    )
    assert dates.combinations == (((0, (2,)), (1, (0,))),)
    dates.save(tmp_path / "dates.toml")
    assert Schema.load(tmp_path / "dates.toml") == dates


def test_parts_keep_theirs_when_they_are_merged_or_dealt():
    one, two = Impossible.of(age={"below": 15}, sex="M"), Impossible.of(claims=4, grade=1)
    parts = {
        "one.toml": Schema.of({"one": [AGE, SEX]}, impossible=[one]),
        "two.toml": Schema.of({"two": [CLAIMS, GRADE]}, impossible=[two, two]),
    }
    merged = merge_schemas(parts)
    assert merged.impossible == (one, two)
    assert merged.combinations[1] == ((2, (4,)), (3, (0,)))
    pooled = Schema.of({"all": merged.attributes}, impossible=merged.impossible)
    assert pooled.split([1, 3]).impossible == (one, two)
    assert pooled.split([1, 3]).combinations_at("party2") == {1: ((1, (4,)), (2, (0,)))}


@pytest.mark.parametrize(
    "impossible, words",
    [
        ([{"size": 3}], "Impossible combination 1 (size = 3): there is no attribute 'size'."),
        (
            [{"sex": "X"}],
            "Impossible combination 1 (sex = 'X'): 'X' is no value of 'sex' in the schema.",
        ),
        ([{"sex": 0}], "0 is no value of 'sex'"),
        ([{"paid": 1}], "1 is no value of 'paid'"),
        ([{"claims": True}], "True is no value of 'claims'"),
        ([{"claims": 5}], "5 is no value of 'claims'"),
        ([{"sex": "missing"}], "'sex' has no missing values; set missing = true for it"),
        ([{"bmi": {"missing": True}}], "'bmi' has no missing values"),
        (
            [{"age": 3}],
            "no bin of 'age' lies wholly within 'age = 3'; cut its bins there, by edges.",
        ),
        ([{"age": {"below": 3}}], "no bin of 'age' lies wholly within 'age below 3'"),
        (
            [{"grade": {"above": 3}}],
            "no value of 'grade' lies wholly within 'grade above 3'; its values are others.",
        ),
        (
            [{"sex": {"below": 3}}],
            "'sex' has no numbers that 3 could be a limit of; list its values.",
        ),
        ([{"age": {"below": "x"}}], "'x' is no number, which 'age' holds."),
        ([{"born": {"below": 3}}], "3 is no date, which 'born' holds."),
        ([{"at": {"below": "2020-01-01"}}], "'2020-01-01' is no time, which 'at' holds."),
        (
            [{"age": {"under": 3}}],
            "Impossible combination 1 of the schema: 'age' is {'under': 3}; write 'from' or 'above'",
        ),
        ([{"age": {"from": 3, "above": 4}}], "write 'from' or 'above', 'below' or 'to'"),
        ([{"age": {}}], "write 'from' or 'above', 'below' or 'to'"),
        ([{"age": {"missing": 1}}], "or 'missing' with true or false"),
        ([{"age": {"below": [3]}}], "write 'from' or 'above', 'below' or 'to'"),
        ([{"age": []}], "write a value, a list of values, or limits"),
        ([{"age": [None, 3]}], "write a value, a list of values, or limits"),
        ([{"age": [[1]]}], "write a value, a list of values, or limits"),
        (
            [{"sex": "F", "claims": 4}, {}],
            "Impossible combination 2 of the schema: it is {}; write attributes",
        ),
        ([3], "Impossible combination 1 of the schema: it is 3; write attributes"),
        (3, "expected `array`, got `int` at `impossible`"),
        ([], "expected `array` of length >= 1 at `impossible`"),
        (
            [{"sex": ["F", "M"]}],
            "Impossible combination 1 (sex = 'F' or 'M') leaves no record possible; it cannot be true.",
        ),
        (
            [
                {"claims": 4, "sex": "F"},
                {"sex": "F"},
                {"sex": "M", "paid": True},
                {"sex": "M", "paid": False},
            ],
            "Impossible combination 2 (sex = 'F') and impossible combination 3 (paid = True and sex = 'M') and impossible "
            "combination 4 (paid = False and sex = 'M') leave no record possible; one of them cannot be true.",
        ),
    ],
)
def test_bad_ones_are_one_sentence(impossible, words):
    schema = Schema.of({"p": [AGE, BMI, BORN, AT, SEX, GRADE, PAID, CLAIMS]})
    with pytest.raises(SchemaError) as caught:
        Schema.from_json(schema.to_json() | {"impossible": impossible})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_party_states_only_its_own():
    data = Schema.of({"one": [AGE], "two": [SEX]}).to_json()
    data["party"][0]["impossible"] = [{"age": "missing", "sex": "F"}]
    with pytest.raises(
        SchemaError, match=r"combination \(.*\) of party 'one' names 'sex', which it does not hold"
    ):
        Schema.from_json(data)
    data["party"][0]["impossible"] = [{"age": 3.5, "sax": {}}]
    with pytest.raises(SchemaError, match="Impossible combination 1 of party 'one': 'sax' is"):
        Schema.from_json(data)


def test_one_that_needs_more_than_tau_is_no_plan():
    wide = Impossible.of(age="missing", claims=4, grade=1)
    schema = Schema.of({"one": [AGE, CLAIMS], "two": [SEX, GRADE]}, impossible=[wide])
    plan_with(schema, epsilon=1.0, expected_records=1000, tau=21 * 5 * 4)
    with pytest.raises(
        PlanError,
        match=r"Impossible combination 1 \(.*\) needs a clique of 420 cells, more than tau = 419;",
    ):
        plan_with(schema, epsilon=1.0, expected_records=1000, tau=419)


def test_long_lists_are_cut():
    many = [Impossible.of(claims=c, grade=g) for c in range(4) for g in (1, 2)]
    schema = Schema.of({"p": [CLAIMS, GRADE]}, impossible=many)
    assert schema.named(range(8)).endswith(
        "impossible combination 5 (claims = 2 and grade = 1) and 3 more"
    )
    assert schema.named([1], start=False) == "impossible combination 2 (claims = 0 and grade = 2)"
    said = summary(plan_with(schema, epsilon=1.0, expected_records=1000))
    assert "in no row: claims = 0 and grade = 1;" in said
    assert "; claims = 2 and grade = 1; and 3 more." in said


def test_they_cost_no_privacy():
    """Public knowledge: the same events as without."""
    parties = {"one": [AGE, CLAIMS], "two": [SEX, GRADE]}
    stated = Schema.of(parties, impossible=[Impossible.of(age={"below": 15}, grade=1)])
    with_any, without = (
        plan_with(s, epsilon=1.0, expected_records=10_000, nonce="t")
        for s in (stated, Schema.of(parties))
    )
    assert with_any.entries() == without.entries()
    assert with_any.digest() != without.digest()
    assert "impossible, and so in no row: age below 15 and grade = 1." in summary(with_any)


def test_attributes_of_one_value_take_no_part():
    """What all records have says nothing: the rest of the combination is what counts."""
    schema = schema_of(one={"k": 1, "a": 3}, two={"x": 2})
    stated = Schema.from_json(schema.to_json() | {"impossible": [{"k": 0, "a": 2}]})
    assert stated.combinations == (((1, (2,)),),)


def test_remarks_name_bins_that_are_cut_and_values_that_cannot_be():
    stated = [
        {"age": {"below": 17}, "claims": 4},
        {"sex": "F", "claims": 3},
        {"sex": "M", "claims": 3},
    ]
    schema = Schema.of(
        {"p": [AGE, SEX, CLAIMS]}, impossible=[Impossible.from_json(one) for one in stated]
    )
    assert schema.remarks() == [
        "Impossible combination 1 (age below 17 and claims = 4): the bin from 15 to 20 of 'age' lies only partly within it, and "
        "stays possible as a whole; an edge there would tell its parts apart.",
        "The impossible combinations leave no record with 'claims' 3.",
    ]


@st.composite
def puzzles(draw):
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=5)))
    return sizes, drawn_combinations(draw, sizes, 0, 8)


@given(puzzles(), st.data())
def test_what_is_left_possible_equals_brute_force(case, data):
    sizes, combinations = case
    left = np.argwhere(possible(sizes, combinations)).tolist()
    named = contradiction(combinations, sizes)
    assert bool(named) == (not left)
    if named:
        # Those named are enough, and none of them is too many.
        assert not possible(sizes, [combinations[i] for i in named]).any()
        for one in named:
            assert possible(sizes, [combinations[i] for i in named if i != one]).any()
    else:
        places = {a for combination in combinations for a, _ in combination}
        expected = [
            (a, tuple(c for c in range(sizes[a]) if all(r[a] != c for r in left)))
            for a in sorted(places)
        ]
        assert never(combinations, sizes) == [(a, codes) for a, codes in expected if codes]
    asked = {
        a: sorted(data.draw(st.sets(st.integers(0, sizes[a] - 1), min_size=1)))
        for a in range(0, len(sizes), 2)
    }
    fitting = [r for r in left if all(r[a] in codes for a, codes in asked.items())]
    assert bool(contradiction(combinations, sizes, asked)) == (not fitting)


def test_many_combinations_are_looked_through_at_once():
    """A city lies in one state: a combination for each of a thousand cities; and seven that cannot share six places."""
    cities = [((0, (c,)), (1, tuple(s for s in range(50) if s != c % 50))) for c in range(1000)]
    assert contradiction(cities, (1000, 50)) == ()
    assert never([*cities, ((1, (7,)),)], (1000, 50)) == [(0, tuple(range(7, 1000, 50))), (1, (7,))]
    apart = [((a, (v,)), (b, (v,))) for b in range(7) for a in range(b) for v in range(6)]
    assert contradiction(apart, (6,) * 7) == tuple(range(len(apart)))
    assert contradiction(apart, (7,) * 7) == ()
