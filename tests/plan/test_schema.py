"""Schemas: what makes a domain, the file format, and inference for trials."""

import json

import numpy as np
import pyarrow as pa
import pytest
from builders import KEYS
from hypothesis import given
from hypothesis import strategies as st

from vertimrf import Attribute, Schema, draft_schema
from vertimrf.columns.read import read_attribute
from vertimrf.columns.text import MAX_SIZE
from vertimrf.errors import SchemaError, TableError
from vertimrf.plan.groups import crossing_pairs
from vertimrf.plan.merge import merge_schemas
from vertimrf.tables.columns import encode_table

EXAMPLE = """
[[party]]
name = "hospital"

[[party.attribute]]
name = "age"
bounds = [0, 100]
bins = 20
integral = true
missing = true

[[party.attribute]]
name = "sex"
values = ["F", "M"]

[[party]]
name = "insurer"

[[party.attribute]]
name = "claims"
codes = 5

[[party.attribute]]
name = "plan"
values = ["basic", "plus"]
other = "else"
ordered = true
"""


def example():
    return Schema.of(
        {
            "hospital": [
                Attribute.numeric("age", range(0, 101, 5), integral=True, missing=True),
                Attribute.categorical("sex", ["F", "M"]),
            ],
            "insurer": [
                Attribute.integer("claims", 5),
                Attribute.categorical("plan", ["basic", "plus"], other="else", ordered=True),
            ],
        }
    )


def test_a_schema_file_says_what_the_code_says(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(EXAMPLE)
    schema = Schema.load(path)
    assert schema == example()
    assert schema.sizes == (21, 2, 5, 3)
    assert schema.names == ("age", "sex", "claims", "plan")
    assert [attribute.ordered for attribute in schema.attributes] == [True, False, True, True]
    assert schema.attributes[3].values == ("basic", "plus", "else")
    assert schema.party_attributes("insurer") == (2, 3)
    assert schema.part("hospital") == schema.attributes[:2]
    assert [schema.party_of(i) for i in range(4)] == [0, 0, 1, 1]
    assert schema.index("claims") == 2


# With 60 more the list is broken into lines.
ODD = [
    '"',
    "\\",
    "a,\n    b",
    "  x",
    "],",
    "'",
    "\x7f\t\x01",
    "é" * 130,
    "\x85,\u2028",
    "[",
    "#",
    "1",
    "",
]
ODD += [f"value {i}, and more" for i in range(60)]


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_saving_round_trips(tmp_path, suffix):
    schema = Schema.of(
        {
            'a "party"\n': [
                Attribute.categorical("x\\y", ODD, missing=True),
                Attribute.categorical("zip", [f"{i:05}" for i in range(100)]),
                Attribute.categorical("int", [3, -1, 10**17], other=0),
                Attribute.categorical("bool", [True, False], ordered=True),
            ],
            "b": [
                Attribute.numeric("n", [-1e300, -0.1, 0, 1 / 3, 1e16, 1e300], clamp=True),
                Attribute.integer("i", 1, missing=True),
            ],
        },
        public=False,
    )
    path = tmp_path / f"schema{suffix}"
    schema.save(path)
    loaded = Schema.load(path)
    assert loaded == schema
    assert loaded.digest() == schema.digest()
    assert [type(value) for value in loaded.attributes[3].values] == [bool, bool]
    assert not loaded.public
    assert list(tmp_path.iterdir()) == [path]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
WHOLE = st.integers(1 - 2**63, 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
parties = texts.filter(lambda name: not {"/", "\\", "\0"} & set(name) and name not in (".", ".."))
domains = st.one_of(
    st.builds(
        lambda v, m: {"values": v, "missing": m},
        st.lists(texts, min_size=1, unique=True),
        st.booleans(),
    ),
    st.builds(
        lambda v, o: {"values": v, "other": o}, st.lists(WHOLE, min_size=1, unique=True), WHOLE
    ),
    st.builds(
        lambda e: {"edges": sorted(e)}, st.lists(finite, min_size=2, max_size=9, unique=True)
    ),
    st.builds(lambda c: {"codes": c}, st.integers(1, MAX_SIZE)),
)


@given(st.dictionaries(texts, domains, min_size=1, max_size=4), parties)
def test_any_schema_survives_toml(tmp_path_factory, listed, party):
    schema = Schema.of(
        {party: [read_attribute({"name": name, **domain}) for name, domain in listed.items()]}
    )
    path = tmp_path_factory.getbasetemp() / "any.toml"
    schema.save(path)
    assert Schema.load(path) == schema


def test_the_digest_sees_every_part_and_nothing_else():
    schema = example()
    assert schema.digest() == Schema.from_json(json.loads(json.dumps(schema.to_json()))).digest()
    variants = [
        schema.split([1, 3]),
        Schema(schema.attributes, schema.parties, public=False),
        Schema.of({"hospital": schema.attributes[:2], "insurer": schema.attributes[2:3]}),
        Schema.of({"hospital": schema.attributes[:2], "other": schema.attributes[2:]}),
        Schema.of({"hospital": schema.attributes[1::-1], "insurer": schema.attributes[2:]}),
    ]
    digests = {schema.digest(), *(variant.digest() for variant in variants)}
    assert len(digests) == 1 + len(variants)
    # Plans name the schema by this digest: a new version must not change it silently.
    assert example().digest() == "72a990ad0359645012051506e34292964670a71a12ba262b2531310e37c4912a"


def test_the_domain_json_of_the_field_is_integer_codes(tmp_path):
    path = tmp_path / "domain.json"
    path.write_text('{"party": 2, "b": 41, "c": 16}')
    schema = Schema.load(path)
    assert schema.sizes == (2, 41, 16)
    assert {attribute.kind for attribute in schema.attributes} == {"integer"}
    assert len(schema.parties) == 1
    two = schema.split([2, 1])
    assert two.parties == (("party1", ("party", "b")), ("party2", ("c",)))
    assert two.attributes == schema.attributes


def attribute(**parts):
    return {"party": [{"name": "p", "attribute": [{"name": "x", **parts}]}]}


BAD = [
    (attribute(), "exactly one of values, codes, edges"),
    (attribute(codes=2, values=["a"]), "exactly one of"),
    (attribute(codes=0), "no domain, or an empty one; give it exactly one"),
    (attribute(codes=True), "True codes"),
    (attribute(codes=70_000), "70,000 codes; at most 65,535"),
    (attribute(codes=MAX_SIZE, missing=True), "65,536 codes"),
    (attribute(values=[]), "no domain, or an empty one;"),
    (attribute(values="ab"), "write a list"),
    (attribute(values=["a", "b", "a"]), "'a' twice"),
    (attribute(values=["a", 1]), "all text"),
    (attribute(values=[1, True]), "all text"),
    (attribute(values=[1.5, float("nan")]), "all text"),
    (attribute(values=[1.5, "a"]), "all text"),
    (attribute(values=["a"], other=1), "all text"),
    (attribute(values=["a"], clamp=True), "only numeric"),
    (attribute(codes=2, other="x"), "only categorical"),
    (attribute(edges=[1]), "at least 2"),
    (attribute(edges=[0, 2, 1]), "2 is followed by 1"),
    (attribute(edges=[0, 0]), "must increase"),
    (attribute(edges=[0, float("inf")]), "finite"),
    (attribute(edges=[0, "a"]), "must be numbers"),
    (attribute(edges=[0.2, 0.8, 3], integral=True), "no whole number"),
    (attribute(edges=[0, 1], missing="yes"), "true or false"),
    (attribute(bounds=[0, 1]), "bins is None"),
    (attribute(bins=3), "bounds is None"),
    (attribute(bounds=[0, 1], bins=0), "bins is 0"),
    (attribute(bounds=[0, 1], bins=2, edges=[0, 1]), "one or the other"),
    (attribute(bounds=[1, 0], bins=2), "must increase"),
    (attribute(codes=2, size=2), "unknown key 'size'"),
    (attribute(codes=2, resolution=0.5), "'resolution', which only numeric"),
    (attribute(values=["a"], calendar="date"), "'calendar', which only numeric"),
    (attribute(edges=[0, 1], resolution=0), "a number above 0"),
    (attribute(edges=[0, 1], resolution=True), "a number above 0"),
    (attribute(edges=[0, 1], integral=True, resolution=0.5), "integral and has a resolution"),
    (attribute(edges=[0.1, 0.2, 1], resolution=0.5), "from 0.1 to 0.2 holds no multiple of 0.5"),
    (attribute(edges=["2020-01-01", "2020-01-03"], calendar="day"), "the calendar 'day'"),
    (
        attribute(edges=["2020-01-03", "2020-01-01"], calendar="date"),
        "2020-01-03 is followed by 2020-01-01",
    ),
    (attribute(edges=["2020-01-01", "soon"], calendar="date"), "of the calendar 'date'"),
    (attribute(edges=["2020-01-01", "2020-01-02 10:00"], calendar="date"), "is no date"),
    (attribute(edges=["2020-01-01", "2020-01-02T00:00Z"], calendar="timestamp"), "has an offset"),
    (
        attribute(edges=["2020-01-01", "2020-01-02"], calendar="date", timezone="UTC"),
        "only timestamps",
    ),
    (
        attribute(
            edges=["2020-01-01", "2020-01-02"], calendar="timestamp", timezone="Mars/Olympus"
        ),
        "time zone",
    ),
    (
        attribute(bounds=["2020-01-01", "2020-02-01"], bins="fortnight", calendar="date"),
        "one of hour, day",
    ),
    (
        attribute(bounds=["2020-01-01", "2020-02-01"], bins="hour", calendar="date"),
        "a day at least",
    ),
    (
        attribute(bounds=["0001-01-01", "2020-02-01"], bins="day", calendar="date"),
        "more than 65,535 bins of a day",
    ),
    (attribute(bounds=["10:00", "12:00"], bins="day", calendar="time"), "bins of an hour"),
    (attribute(bounds=["2020-01-01"], bins="day", calendar="date"), "the first and the last date"),
    ({"party": [{"name": "p", "attribute": [{"codes": 2}]}]}, "non-empty text name"),
    (
        {"party": [{"name": "p", "attribute": [{"name": "x", "codes": 2}] * 2}]},
        "'x' is twice at party 'p'",
    ),
    (
        {
            "party": [
                {"name": n, "attribute": [{"name": "x", "codes": 2 + (n == "q")}]} for n in "pq"
            ]
        },
        "'x' is at parties 'p' and 'q', with different domains",
    ),
    (
        {"party": [{"name": "p", "attribute": [{"name": n, "codes": 2}]} for n in "xy"]},
        "Two parties are called 'p'",
    ),
    ({"party": [{"attribute": [{"name": "x", "codes": 2}]}]}, "party's name is ''"),
    ({"party": [{"name": "p"}]}, "missing required field `attribute` at `party[0]`"),
    ({"party": [{"name": "p", "attributes": []}]}, "unknown field `attributes` at `party[0]`"),
    ({"party": {"name": "p"}}, "expected `array`, got `object` at `party`"),
    ({"party": ["p"]}, "expected `object`, got `str` at `party[0]`"),
    ({"party": [{"name": "p", "attribute": ["x"]}]}, "write a name"),
    ({"parties": []}, "unknown field `parties`"),
    ({}, "missing required field `party`"),
    ([], "expected `object`, got `array`"),
    ({"party": []}, "expected `array` of length >= 1 at `party`"),
    ({"a": 2, "b": 0}, "'b' has no domain, or an empty one"),
    ({**attribute(codes=2), "public": "no"}, "expected `bool`, got `str` at `public`"),
]


@pytest.mark.parametrize("data, message", BAD, ids=[message for _, message in BAD])
def test_bad_schemas_are_told_apart(data, message):
    with pytest.raises(SchemaError) as caught:
        Schema.from_json(data)
    assert message in str(caught.value)


def test_bad_schema_files_are_named(tmp_path):
    with pytest.raises(SchemaError, match=r"Cannot read the schema .*absent\.toml"):
        Schema.load(tmp_path / "absent.toml")
    with pytest.raises(SchemaError, match="Cannot read the schema"):
        Schema.load(tmp_path)
    for name, content, message in [
        ("a.toml", "party = [", "not valid TOML"),
        ("a.json", "{", "not valid JSON"),
        ("b.json", '{"a": 2, "a": 3}', "'a' appears twice"),
        ("b.toml", "", "b.toml: The schema is malformed .*`party`.*; write"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(SchemaError, match=message):
            Schema.load(tmp_path / name)
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.load(tmp_path / "c.toml")


@pytest.mark.parametrize("counts", [[], [4], [1, 1], [0, 3], [-1, 4], [1, 1, 2]])
def test_bad_splits(counts):
    schema = Schema.from_json({"a": 2, "b": 2, "c": 2})
    with pytest.raises(SchemaError, match="does not deal all 3"):
        schema.split(counts)


def test_unknown_names():
    with pytest.raises(SchemaError, match="no attribute 'weight'; it has age"):
        example().index("weight")
    with pytest.raises(SchemaError, match="no party 'bank'; it has hospital, insurer"):
        example().party_attributes("bank")
    with pytest.raises(SchemaError, match="in order"):
        Schema(example().attributes, (("p", ("sex", "age", "claims", "plan")),))


def test_a_draft_names_every_odd_column_at_once_and_goes_on():
    n = 2000
    table = pa.table(
        {
            "id": range(n),
            "name": [f"v{i}" for i in range(n)],
            "prose": [
                f"seen on ward {i % 500} by a doctor who wrote a long sentence" for i in range(n)
            ],
            "job": [f"job{i % 700 if i % 2 else 0}" for i in range(n)],
            "list": [[1]] * n,
            "empty": pa.nulls(n, pa.string()),
            "constant": ["x"] * n,
            "ratio": [float("inf") if i == 7 else i / 8 for i in range(n)],
            "number text": [str(i) for i in range(n)],
            "fine": [i // 2 % 2 for i in range(n)],
            "dropped": range(n),
        }
    )
    draft = draft_schema([table], "id", ["ward"], drop=["dropped"])
    flags = {flag.column: flag for flag in draft.flags}
    assert {name for name, flag in flags.items() if flag.done == "left out"} == {
        "name",
        "prose",
        "list",
        "empty",
        "number text",
    }
    assert {name for name, flag in flags.items() if flag.done != "left out"} == {
        "job",
        "constant",
        "ratio",
    }
    assert str(flags["empty"]) == "ward: column 'empty' has no values at all: left out."
    domain = {attribute.name: attribute for attribute in draft.schema.attributes}
    assert list(domain) == ["job", "constant", "ratio", "fine"]
    # Of job0, all of the even ones, and 350 odd jobs.
    assert (domain["job"].size, domain["job"].other) == (256, "other")
    assert "351 distinct values: the 255 most frequent are listed" in str(flags["job"])
    assert (domain["ratio"].clamp, domain["ratio"].resolution) == (True, 0.125)
    encode_table(
        table.select(["id", *domain]), "id", draft.schema.attributes, name="ward", keys=KEYS
    )


def test_inference_refuses_what_has_no_domain():
    with pytest.raises(TableError, match="Table 1 has no id column 'id'"):
        draft_schema([pa.table({"x": [1]})], "id")
    with pytest.raises(TableError, match="Table 2 has no records"):
        draft_schema(
            [pa.table({"id": [1], "x": [1]}), pa.table({"id": pa.array([], pa.int64())})], "id"
        )
    with pytest.raises(
        SchemaError,
        match="no column with a domain except the id; party1: column 'x' has no values at all",
    ):
        draft_schema([pa.table({"id": [1], "x": pa.nulls(1, pa.string())})], "id")
    with pytest.raises(TableError, match="No table has the column 'z'"):
        draft_schema([pa.table({"id": [1], "x": [1]})], "id", drop=["z"])
    with pytest.raises(SchemaError, match="2 names for 1 tables"):
        draft_schema([pa.table({"id": [1], "x": [1]})], "id", ["a", "b"])
    with pytest.raises(
        SchemaError, match="at parties 'party1' and 'party2', with different domains"
    ):
        draft_schema([pa.table({"id": [1], "x": x}) for x in ([1], ["f"])], "id")


def test_a_column_that_several_tables_have_is_drafted_from_all_of_them():
    draft = draft_schema(
        [
            pa.table({"id": [1, 2], "x": x, name: [1, 2]})
            for x, name in (([1, 2], "a"), ([5, 2], "b"))
        ],
        "id",
    )
    assert draft.schema.parties == (("party1", ("x", "a")), ("party2", ("x", "b")))
    assert draft.schema.attributes[0].values == (1, 2, 5)
    assert [str(flag) for flag in draft.flags if flag.column == "x"] == [
        f"party{i}: column 'x' is in several tables: treated as one column; rename it in one of them if they differ."
        for i in (1, 2)
    ]


CALENDAR = """
[[party]]
name = "hospital"

[[party.attribute]]
name = "admitted"
bounds = [2020-01-15, 2020-12-31]
bins = "month"

[[party.attribute]]
name = "seen"
bounds = [2020-03-27 00:00:00, 2020-03-31 00:00:00]
bins = "day"
timezone = "Europe/Vienna"
resolution = 60

[[party.attribute]]
name = "shift"
edges = [06:00:00, 14:00:00, 22:00:00]
"""


def test_dates_and_times_have_bins_of_the_calendar(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(CALENDAR)
    schema = Schema.load(path)
    admitted, seen, shift = schema.attributes
    assert [a.calendar for a in schema.attributes] == ["date", "timestamp", "time"]
    assert admitted.size == 12
    assert [admitted.value_text(admitted.edges[i]) for i in (0, 1, 12)] == [
        "2020-01-15",
        "2020-02-01",
        "2020-12-31",
    ]
    # The clocks went forward on the 29th: that day had 23 hours.
    assert np.diff(seen.edges).tolist() == [86400, 86400, 82800, 86400]
    assert (seen.partition.lows[2], seen.partition.highs[2]) == (seen.edges[2], seen.edges[3] - 60)
    assert shift.edges == (6 * 3600, 14 * 3600, 22 * 3600)
    for name in ("again.toml", "again.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema


@pytest.mark.parametrize(
    "bounds, bins, starts",
    [
        (
            ["2019-12-30", "2020-01-14"],
            "week",
            ["2019-12-30", "2020-01-06", "2020-01-13", "2020-01-14"],
        ),
        (
            ["2019-12-30", "2020-08-01"],
            "quarter",
            ["2019-12-30", "2020-01-01", "2020-04-01", "2020-07-01", "2020-08-01"],
        ),
        (["2019-01-01", "2020-06-01"], "year", ["2019-01-01", "2020-01-01", "2020-06-01"]),
        (
            ["1969-12-30", "1970-01-02"],
            "day",
            ["1969-12-30", "1969-12-31", "1970-01-01", "1970-01-02"],
        ),
        (["1969-12-30", "1970-01-02"], 2, ["1969-12-30", "1970-01-01", "1970-01-02"]),
    ],
)
def test_bins_of_dates(bounds, bins, starts):
    domain = read_attribute({"name": "x", "calendar": "date", "bounds": bounds, "bins": bins})
    assert [*map(domain.value_text, domain.edges)] == starts


def part(party, *attributes, public=True):
    return Schema.of({party: attributes}, public=public)


def test_parts_written_apart_make_one_schema():
    age, sex = Attribute.integer("age", 5), Attribute.categorical("sex", ["f", "m"])
    merged = merge_schemas({"a.toml": part("a", age), "b.toml": part("b", sex, public=False)})
    assert merged == Schema.of({"a": [age], "b": [sex]}, public=False)
    with pytest.raises(SchemaError, match=r"Party 'a' is in a\.toml and in b\.toml"):
        merge_schemas({"a.toml": part("a", age), "b.toml": part("a", sex)})
    with pytest.raises(SchemaError) as caught:
        merge_schemas(
            {
                "a.toml": part("a", age, sex),
                "b.toml": part(
                    "b", Attribute.numeric("age", [0, 1]), Attribute.categorical("sex", ["f"])
                ),
                "c.toml": part("c", sex),
            }
        )
    assert str(caught.value) == (
        "Attribute 'age' is at parties 'a' and 'b', integer at one and numeric at the other; "
        "Attribute 'sex' is at parties 'a' and 'b', with different domains. "
        "Where this is one column, describe it alike at all of them; where it is not, rename it."
    )


def test_an_attribute_of_several_parties_is_one():
    sizes = {"age": 5, "sex": 2, "x": 3, "y": 4, "z": 6}
    age, sex, x, y, z = (Attribute.integer(name, size) for name, size in sizes.items())
    parts = {
        "a.toml": part("a", x, age, sex),
        "b.toml": part("b", y, sex, age),
        "c.toml": part("c", z, sex),
    }
    merged = merge_schemas(parts)
    assert merged.names == ("x", "age", "sex", "y", "z")
    # A party's part is in the schema's order, whatever order it was written in.
    assert merged.parties == (
        ("a", ("x", "age", "sex")),
        ("b", ("age", "sex", "y")),
        ("c", ("sex", "z")),
    )
    assert merged.part("b") == (age, sex, y)
    assert merged.party_attributes("c") == (2, 4)
    assert merged.holders == ((0,), (0, 1), (0, 1, 2), (1,), (2,))
    assert merged.shared == (1, 2)
    assert [merged.party_of(i) for i in range(5)] == [0, 0, 0, 1, 2]
    assert merged.at_one_party((1, 2, 3))
    assert not merged.at_one_party((0, 3))
    assert Schema.from_json(merged.to_json()) == merged
    assert crossing_pairs(merged) == [(0, 3), (0, 4), (1, 4), (3, 4)]
    with pytest.raises(SchemaError, match="in order"):
        Schema(merged.attributes, (("a", ("x", "age", "sex")), ("b", ("y", "age")), ("c", ("z",))))
    with pytest.raises(SchemaError, match="in order"):
        Schema(merged.attributes, (("a", ("x", "age", "sex")), ("b", ("age", "w")), ("c", ("z",))))


@pytest.mark.parametrize("parties", [None, 3, "a", [1], {"a": 3}, {"a": [3]}, {"a": "xy"}])
def test_parties_of_wrong_types_are_one_sentence(parties):
    with pytest.raises(SchemaError, match="give a list of Attribute by name of party"):
        Schema.of(parties)
