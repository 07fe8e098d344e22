"""Rules of a schema: which text is one, and which bins they rule out, against every value of every bin."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from builders import temporal
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import plan_with

from vertimrf import Attribute, OpenSchema, Schema
from vertimrf.columns.listed import Listed
from vertimrf.errors import SchemaError
from vertimrf.plan.equations import Equation
from vertimrf.plan.merge import merge_schemas
from vertimrf.plan.rules import Order, parse_rule
from vertimrf.plan.summary import summary
from vertimrf.server.rows import decode_pieces
from vertimrf.tables.table import encode_columns

DATES = ["2020-01-01", "2020-02-01", "2020-03-01"]
OTHERS = [
    Attribute.categorical("text", ["x", "y"]),
    temporal("day", "date", DATES),
    Attribute.numeric("low", [0, 10]),
    Attribute.numeric("high", [20, 30]),
    Attribute.integer("same", 4),
    Attribute.integer("again", 4),
    Attribute.integer("long", 3000),
    Attribute.integer("longer", 3000),
]


@pytest.mark.parametrize(
    "text, rule",
    [
        ("a <= b", Order("a", "b")),
        (" a<b ", Order("a", "b", strict=True)),
        ("a b >= `c < ``d`", Order("c < `d", "a b")),
        ("`>` > a", Order("a", ">", strict=True)),
        ("x = a + b", Equation("x", (("a", 1), ("b", 1)))),
        ("x=a-b+c", Equation("x", (("a", 1), ("b", -1), ("c", 1)))),
        (" `x-y` = `a + b` - c d", Equation("x-y", (("a + b", 1), ("c d", -1)))),
    ],
)
def test_a_rule_reads_its_own_text(text, rule):
    assert parse_rule(text) == parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "rules, sentence",
    [
        (["low == high"], "The rule 'low == high' is not clear; write two columns and one of <=, <"),
        (["<= low"], "is not clear"),
        (["low <= high <= same"], "is not clear"),
        ([3], "give a list of which each is a rule or its text"),
        (["low <= " + "x" * 400], "is not clear; write .* in at most 400 characters"),
        (["low <= hihg"], "Rule low <= hihg: there is no attribute 'hihg'"),
        (["low <= text"], "'text' has no numbers, dates or times to compare"),
        (["low <= day"], "'low' is a number and 'day' a date; both must be of one kind"),
        (["low <= same", "same < low"], r"The rules form a circle \((low|same) <= .*leave one of them"),
        (["long <= longer"], "Rule long <= longer: with it the rules take too long to check; use wider"),
        (["low <= low"], r"The rules form a circle \(low <= low\)"),
        (["high <= low"], r"Rule \(high <= low\) leaves no record possible; it cannot be true"),
        ([f"low <= x{i}" for i in range(101)], "The schema has 101 rules; at most 100"),
    ],
)  # fmt: skip
def test_bad_rules_are_named(rules, sentence):
    data = Schema.of({"one": OTHERS}).to_json() | {"rules": rules}
    with pytest.raises(SchemaError, match=sentence):
        Schema.from_json(data)


def test_rules_are_part_of_the_fingerprint_and_of_merged_and_open_schemas(tmp_path):
    rule = Order("same", "again", strict=True)
    stated = Schema.of({"one": OTHERS}, rules=[rule, "again > same"])
    assert stated.rules == (rule,)
    stated.save(tmp_path / "a.toml")
    assert Schema.load(tmp_path / "a.toml") == stated
    plans = [
        plan_with(schema, epsilon=1.0, expected_records=1000)
        for schema in (stated, Schema.of({"one": OTHERS}))
    ]
    assert plans[0].digest() != plans[1].digest()
    assert "rules that every row keeps: same < again." in summary(plans[0])
    other = Schema.of({"two": [Attribute.integer("x", 2)]})
    assert merge_schemas({"a": stated, "b": other}).rules == (rule,)
    part = {"name": "p", "attribute": [{"name": "x", "bins": "private"}, {"name": "y", "codes": 3}]}
    opened = OpenSchema.from_json({"party": [part], "rules": ["x <= y"]})
    assert opened.schema.rules == ()
    assert opened.closed({"x": Attribute.numeric("x", [0, 1])}, ()).rules == opened.rules
    with pytest.raises(SchemaError, match="there is no attribute 'z'"):
        OpenSchema.from_json({"party": [part], "rules": ["x <= z"]})


@st.composite
def discrete(draw, name):
    missing = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        return Attribute.categorical(name, draw(st.permutations([-3, 0, 4, 9])), missing=missing)
    step = draw(st.sampled_from([1, 2, 0.5, 3]))
    edges = draw(st.lists(st.integers(-3, 4), min_size=2, max_size=4, unique=True))
    return Attribute.numeric(
        name, [3 * edge for edge in sorted(edges)], resolution=step, missing=missing
    )


def values_of(attribute, code):
    """All values of a code; None is a missing one."""
    if attribute.missing and code == attribute.size - 1:
        return [None]
    if isinstance(attribute, Listed):
        return [attribute.values[code]]
    low, high = attribute.partition.lows[code], attribute.partition.highs[code]
    first = round(low / attribute.step)
    return [attribute.step * (first + i) for i in range(round((high - low) / attribute.step) + 1)]


def keeps(rules, row):
    return all(
        None in (row[r.low], row[r.high])
        or (row[r.low] < row[r.high] if r.strict else row[r.low] <= row[r.high])
        for r in rules
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.tuples(*(discrete(name) for name in "abc")),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([("ab", "bc"), ("ab", "ac"), ("ac", "bc"), ("cb", "ba")]),
)
def test_bins_are_ruled_out_that_have_no_values_and_others_get_values(attributes, strict, pairs):
    rules = [Order(*pair, s) for pair, s in zip(pairs, strict, strict=True)]
    every = list(itertools.product(*(range(a.size) for a in attributes)))
    possible = [
        codes
        for codes in every
        if any(
            keeps(rules, dict(zip("abc", row, strict=True)))
            for row in itertools.product(*map(values_of, attributes, codes))
        )
    ]
    try:
        schema = Schema.of({"one": attributes}, rules=rules)
    except SchemaError:
        assert not possible
        return
    assert possible == [
        codes
        for codes in every
        if not any(all(codes[p] in c for p, c in ruled) for ruled in schema.combinations)
    ]
    codes = np.repeat(np.array(possible, np.uint16).T, 3, axis=1)
    rng = np.random.default_rng(0)
    table = pa.concat_tables(decode_pieces(codes, attributes, rng, rules=rules))
    assert all(keeps(rules, row) for row in table.to_pylist())
    assert (encode_columns(table, attributes, "test") == codes).all()
