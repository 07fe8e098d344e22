"""CSVW-EO both ways: what metadata say survives a schema, and what a schema says survives metadata that can hold it."""

import itertools
import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf import Attribute, Impossible, OpenSchema, Schema
from vertimrf.columns.read import read_attribute
from vertimrf.errors import SchemaError
from vertimrf.plan.csvw.dependencies import alike
from vertimrf.plan.csvw.tables import metadata_of, sections_of, without_nulls
from vertimrf.privacy.events import GeometricEvent
from vertimrf.privacy.ledger import Kind, LedgerEntry
from vertimrf.trial import open_tables

# A table with every term of the vocabulary, as its package 0.2.1 writes them.
VISITS = {
    "@context": ["http://www.w3.org/ns/csvw", "csvw-eo-context.jsonld"],
    "@type": "Table",
    "privacyUnit": "patient",
    "maxContributions": 3,
    "maxLength": 5000,
    "publicLength": None,
    "tableSchema": {
        "columns": [
            {"@type": "Column", "name": "patient", "datatype": "positiveInteger", "required": True, "privacyId": True, "minimum": 1},
            {
                "@type": "Column",
                "name": "town",
                "datatype": "string",
                "required": True,
                "privacyId": False,
                "nullableProportion": 0.0,
                "rowDependencies": [
                    {"dependsOn": "country", "dependencyType": "mapping", "valueMap": {"CH": ["Bern"], "FR": ["Lyon", "Paris"]}},
                    {"dependsOn": "patient", "dependencyType": "fixedPerEntity"},
                ],
                "keyValues": ["Bern", "Paris", "Lyon"],
                "exhaustiveKeys": True,
                "maxGroupsPerUnit": 2,
            },
            {"@type": "Column", "name": "country", "datatype": "string", "keyValues": ["CH", "FR"], "invariantPublicKeys": True},
            {"@type": "Column", "name": "cause", "datatype": "string", "keyValues": ["fall", "burn"], "maxNumPartitions": 9},
            {
                "@type": "Column",
                "name": "stay",
                "datatype": "double",
                "required": False,
                "nullableProportion": 0.3,
                "minimum": 0.0,
                "maximum": 90.0,
                "partitions": [
                    {"@type": "Partition", "predicate": {"lowerBound": low, "upperBound": high}, "maxLength": 100, "maxGroupsPerUnit": 1, "maxContributions": 1}
                    for low, high in ((0.0, 10.0), (10.0, 30.0), (30.0, 90.0))
                ],
            },
            {"@type": "Column", "name": "age", "datatype": "positiveInteger", "minimum": 0, "maximum": 120},
            {"@type": "Column", "name": "smoker", "datatype": "boolean", "required": True},
            {"@type": "Column", "name": "born", "datatype": "date", "minimum": "1900-01-01", "maximum": "2020-12-31"},
            {
                "@type": "Column",
                "name": "died",
                "datatype": "date",
                "rowDependencies": [{"dependsOn": "born", "dependencyType": "bigger"}],
            },
            {"@type": "Column", "name": "photo", "datatype": "anyURI", "titles": "Photograph"},
        ]
    },
    "additionalInformation": [
        {"@type": "ColumnGroup", "columnsInGroup": ["town", "smoker"], "maxContributions": 3, "invariantPublicKeys": True}
    ],
}  # fmt: skip


def lost(one, other, where=""):
    """The terms of metadata that other metadata have not: order of dependencies, groups and their values aside."""
    if isinstance(one, dict):
        for key, value in one.items():
            if key == "rowDependencies":
                kept = other.get(key, [])
                yield from (f"{where} {d}" for d in value if not any(alike(d, k) for k in kept))
            elif key == "additionalInformation":
                yield from (
                    f"{where} {group}" for group in value if group not in other.get(key, [])
                )
            elif key not in other:
                yield f"{where}/{key}"
            else:
                yield from lost(value, other[key], f"{where}/{key}")
    elif isinstance(one, list) and one and isinstance(one[0], dict):
        assert len(one) == len(other), where
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from lost(a, b, f"{where}[{number}]")
    elif one != other:
        yield f"{where}: {one} != {other}"


def assert_nothing_lost(metadata):
    metadata = without_nulls(metadata)
    sections = sections_of(metadata)
    OpenSchema.from_json(json.loads(json.dumps(sections)))
    again = metadata_of(sections)
    assert [*lost(metadata, again)] == []
    assert metadata_of(sections_of(again)) == again
    return sections, again


def test_metadata_are_a_schema_and_come_back_whole():
    sections, again = assert_nothing_lost(VISITS)
    (party,) = sections["party"]
    domains = {section.pop("name"): section for section in party["attribute"]}
    assert domains == {
        "town": {"missing": False, "values": ["Bern", "Paris", "Lyon"]},
        "country": {"missing": True, "values": ["CH", "FR"]},
        "cause": {"missing": True, "values": ["fall", "burn"], "other": "other"},
        "stay": {"missing": True, "edges": [0.0, 10.0, 30.0, 90.0]},
        "age": {"missing": True, "integral": True, "bins": "private", "bounds": [0, 120]},
        "smoker": {"missing": False, "values": [False, True]},
        "born": {"missing": True, "calendar": "date", "bins": "private", "bounds": ["1900-01-01", "2020-12-31"]},
        "died": {"missing": True, "calendar": "date", "bins": "private"},
    }  # fmt: skip
    assert sections["rules"] == ["born <= died"]
    assert sections["impossible"] == [
        {"country": ["CH"], "town": ["Paris", "Lyon"]},
        {"country": ["FR"], "town": ["Bern"]},
    ]
    assert [column["name"] for column in again["tableSchema"]["columns"]] == [
        column["name"] for column in VISITS["tableSchema"]["columns"]
    ]


def test_metadata_come_back_whole_through_a_file_of_a_schema(tmp_path):
    known = {"born", "died", "age"}
    table = VISITS | {
        "tableSchema": {"columns": [c for c in VISITS["tableSchema"]["columns"] if c["name"] not in known]}
    }  # fmt: skip
    (tmp_path / "visits.csvw.json").write_text(json.dumps(table))
    schema = Schema.load(tmp_path / "visits.csvw.json")
    schema.save(tmp_path / "visits.toml")
    again = Schema.load(tmp_path / "visits.toml")
    assert again == schema
    again.save(tmp_path / "again.csvw.json")
    written = json.loads((tmp_path / "again.csvw.json").read_text())
    assert [*lost(without_nulls(table), written)] == []
    # What the schema says now wins over what was kept: other bins are no longer those of the partitions.
    edited = (tmp_path / "visits.toml").read_text().replace("30.0,", "40.0,").replace("30,", "40,")
    (tmp_path / "visits.toml").write_text(edited)
    Schema.load(tmp_path / "visits.toml").save(tmp_path / "edited.csvw.json")
    written = json.loads((tmp_path / "edited.csvw.json").read_text())
    (stay,) = [c for c in written["tableSchema"]["columns"] if c["name"] == "stay"]
    assert "partitions" not in stay
    (bins,) = [g for g in written["additionalInformation"] if g["columnsInGroup"] == ["stay"]]
    assert [key["stay"]["upperBound"] for key in bins["keyValues"]] == [10, 40, 90]


names = st.text("abcdefg_", min_size=1, max_size=4)
texts = st.text("xyz äß", min_size=1, max_size=3).filter(lambda text: text.strip() == text)
wholes = st.integers(-(10**6), 10**6)
counts = st.integers(0, 10**6)


@st.composite
def terms(draw, name, others):
    """A column with terms of the vocabulary, most of them left out."""
    kind = draw(st.sampled_from(["string", "boolean", "integer", "positiveInteger", "double", "decimal", "date", "dateTime", "duration", "anyURI"]))  # fmt: skip
    column = {"@type": "Column", "name": name, "datatype": kind}
    more = {
        "required": st.booleans(), "privacyId": st.booleans(), "nullableProportion": st.floats(0, 1), "maxLength": counts,
        "maxGroupsPerUnit": counts, "maxContributions": counts, "maxNumPartitions": counts, "invariantPublicKeys": st.booleans(),
        "exhaustiveKeys": st.booleans(), "exhaustivePartitions": st.booleans(), "titles": texts,
    }  # fmt: skip
    column |= {key: draw(of) for key, of in more.items() if draw(st.integers(0, 2)) == 0}
    values = {"string": texts, "boolean": st.booleans(), "integer": wholes, "positiveInteger": counts, "double": wholes.map(float)}  # fmt: skip
    if kind in values and draw(st.booleans()):
        column["keyValues"] = draw(st.lists(values[kind], min_size=1, max_size=4, unique=True))
    if kind in ("integer", "double", "positiveInteger") and draw(st.booleans()):
        column["minimum"], column["maximum"] = sorted(draw(st.lists(counts, min_size=2, max_size=2, unique=True)))  # fmt: skip
    if kind in ("integer", "double") and draw(st.booleans()):
        ends = sorted(draw(st.lists(wholes, min_size=2, max_size=4, unique=True)))
        column["partitions"] = [
            {"@type": "Partition", "predicate": {"lowerBound": low, "upperBound": high}, "maxLength": draw(counts), "maxGroupsPerUnit": 1, "maxContributions": 1}
            for low, high in itertools.pairwise(ends)
        ]  # fmt: skip
    if others and draw(st.booleans()):
        kinds = [{"dependencyType": "bigger"}, {"dependencyType": "fixedPerEntity"}, {"dependencyType": "mapping", "valueMap": {"x": ["y"], "true": False, "1": [1, 2]}}]  # fmt: skip
        column["rowDependencies"] = [{"dependsOn": draw(st.sampled_from(others)), **draw(st.sampled_from(kinds))}]  # fmt: skip
    return column


@st.composite
def tables(draw, prefix=""):
    unique = draw(st.lists(names.map(prefix.__add__), min_size=1, max_size=5, unique=True))
    columns = [draw(terms(name, unique[:i])) for i, name in enumerate(unique)]
    columns.append({"@type": "Column", "name": "always there", "datatype": "boolean"})
    table = {"@context": ["http://www.w3.org/ns/csvw"], "@type": "Table", "tableSchema": {"columns": columns}}  # fmt: skip
    table |= {key: draw(counts) for key in ("maxContributions", "maxLength", "publicLength") if draw(st.booleans())}  # fmt: skip
    if draw(st.booleans()):
        table["privacyUnit"] = draw(st.sampled_from(unique))
    if draw(st.booleans()):
        table["additionalInformation"] = [{"@type": "ColumnGroup", "columnsInGroup": unique[:2], "maxGroupsPerUnit": draw(counts)}]  # fmt: skip
    return table


@settings(max_examples=100, deadline=None)
@given(tables())
def test_any_metadata_come_back_whole(table):
    metadata = without_nulls(table)
    sections = sections_of(metadata)
    again = metadata_of(sections)
    assert [*lost(metadata, again)] == []
    assert metadata_of(sections_of(again)) == again
    # A schema, or one sentence: keys need not fit their bounds here.
    with suppress(SchemaError):
        assert [*OpenSchema.from_json(json.loads(json.dumps(sections))).schema.names]


@st.composite
def groups(draw):
    inner = [
        {key: value for key, value in draw(tables(f"{number} ")).items() if key not in left} | {"url": f"{number}.csv"}
        for number, left in enumerate(draw(st.lists(st.sampled_from([("@context",), ("@context", "@type"), ()]), min_size=1, max_size=3)))
    ]  # fmt: skip
    terms = {"@context": ["http://www.w3.org/ns/csvw", {"@language": "fr"}], "@type": "TableGroup", "dc:title": draw(texts)}  # fmt: skip
    shared = inner.pop()["tableSchema"] if len(inner) > 1 and draw(st.booleans()) else None
    if shared is not None:
        # A table without columns of its own has those of the group.
        terms["tableSchema"] = shared
        inner.append({"url": "shared.csv"})
    left_out = draw(st.sets(st.sampled_from(["@type", "dc:title"])))
    return {key: value for key, value in terms.items() if key not in left_out} | {"tables": inner}


@settings(max_examples=60, deadline=None)
@given(groups())
def test_any_group_of_tables_comes_back_whole(group):
    sections = sections_of(group)
    again = metadata_of(sections)
    assert [*lost(group, again)] == []
    assert metadata_of(sections_of(again)) == again
    assert len(sections["party"]) == len(group["tables"])


def test_a_group_of_tables_comes_back_whole_through_a_file_of_a_schema(tmp_path):
    columns = [
        [{"name": "id", "privacyId": True}, {"name": "x", "datatype": "boolean"}],
        [{"name": "y", "keyValues": ["a", "b"], "exhaustiveKeys": True}],
    ]
    group = {
        "@context": ["http://www.w3.org/ns/csvw", "csvw-eo-context.jsonld"],
        "dc:title": "two offices",
        "tables": [
            {"url": f"{name}.csv", "maxContributions": 2, "tableSchema": {"columns": some}}
            for name, some in zip("ab", columns, strict=True)
        ],
    }
    (tmp_path / "both.csvw.json").write_text(json.dumps(group))
    Schema.load(tmp_path / "both.csvw.json").save(tmp_path / "both.toml")
    Schema.load(tmp_path / "both.toml").save(tmp_path / "again.csvw.json")
    written = json.loads((tmp_path / "again.csvw.json").read_text())
    assert [*lost(group, written)] == []
    assert written["@type"] == "TableGroup"
    # Terms of the group are its own, and no table's.
    assert [table["@type"] for table in written["tables"]] == ["Table", "Table"]
    assert not [table for table in written["tables"] if {"@context", "dc:title"} & table.keys()]


HELD = {
    "hospital": [
        Attribute.categorical("room", ["b", "a"], missing=True),
        Attribute.categorical("cause", ["fall", "burn"], other="other"),
        Attribute.categorical("smoker", [False, True]),
        Attribute.integer("ward", 5),
        Attribute.categorical("county", [7, 3]),
        read_attribute({"name": "age", "bounds": [0, 100], "bins": 5, "integral": True}),
        read_attribute({"name": "fee", "edges": [0, 1.5, 20], "points": [0, 99], "missing": True}),
        read_attribute({"name": "stars", "grid": [0.5, 1, 1.5]}),
        read_attribute({"name": "large", "edges": [2**60, 2**60 + 5, 2**60 + 7], "integral": True}),
    ],
    "insurer": [
        read_attribute({"name": "from", "bounds": ["2020-01-01", "2021-01-01"], "bins": 4, "calendar": "date"}),
        read_attribute({"name": "to", "bounds": ["2020-01-01", "2021-01-01"], "bins": 4, "calendar": "date"}),
        read_attribute({"name": "paid", "edges": ["2020-01-01 00:00:00", "2021-01-01 12:00:00"], "calendar": "timestamp"}),
        read_attribute({"name": "seen", "bounds": ["2020-01-01T00:00:00+00:00", "2021-01-01T00:00:00+00:00"], "bins": 2, "calendar": "timestamp", "timezone": "UTC"}),
        read_attribute({"name": "open", "edges": ["08:00:00", "10:30:00", "18:00:00"], "calendar": "time"}),
    ],
}  # fmt: skip
ZEROS = [Impossible.of(room="a", cause=["fall"]), Impossible.of(ward=[0, 4], county=7)]


def test_a_schema_comes_back_from_metadata(tmp_path):
    schema = Schema.of(HELD, impossible=ZEROS, rules=["from <= to"])
    schema.save(tmp_path / "both.csvw.json")
    again = Schema.load(tmp_path / "both.csvw.json")
    assert again.parties == schema.parties
    assert again.attributes == schema.attributes
    assert again.rules == schema.rules
    assert cells(again) == cells(schema)
    assert again.public


def cells(schema):
    """The pairs of codes that a schema rules out."""
    return {
        (a, x, b, y) for ((a, xs), (b, ys)) in schema.combinations for x in xs for y in ys
    }  # fmt: skip


def test_a_schema_that_is_not_public_is_written_without_domains(tmp_path):
    drafted = [
        read_attribute(attribute.to_json() | {"source": "data"}) for attribute in HELD["hospital"]
    ]
    Schema.of({"a": drafted}, public=False, impossible=ZEROS).save(tmp_path / "draft.csvw.json")
    written = json.loads((tmp_path / "draft.csvw.json").read_text())
    for column in written["tableSchema"]["columns"]:
        assert column.keys() == {"@type", "name", "datatype", "required", "privacyId"}
        assert column["required"] is False
    assert written.keys() == {"@context", "@type", "name", "tableSchema"}


def test_domains_that_cost_epsilon_are_not_written_without_their_cost(tmp_path):
    entry = LedgerEntry(GeometricEvent(3.0), "a", "values", "noise", kind=Kind.VALUES)
    schema = replace(Schema.of({"a": HELD["hospital"]}), spent=(entry,))
    with pytest.raises(SchemaError, match="spent epsilon, which CSVW metadata cannot state"):
        schema.save(tmp_path / "found.csvw.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "table, words",
    [
        ({"tableSchema": {}}, "has no columns; write a tableSchema"),
        ({"tableSchema": {"columns": [{"datatype": "string"}]}}, "has no name; give it one"),
        ({"tableSchema": {"columns": [{"name": "x", "datatype": 3}]}}, "'x' of the CSVW metadata has the datatype 3"),
        ({"tableSchema": {"columns": [{"name": "x", "keyValues": "a"}]}}, "'x' of the CSVW metadata has keyValues 'a'"),
        ({"tableSchema": {"columns": [{"name": "x", "partitions": 1}]}}, "'x' of the CSVW metadata has partitions 1; write a list"),
        ({"tableSchema": {"columns": [{"name": "x", "rowDependencies": {}}]}}, "has rowDependencies {}; write a list"),
        ({"tableSchema": {"columns": [{"name": "x", "privacyId": True}]}}, "are ids, or of datatypes"),
        ({"tableSchema": {"columns": ["x"]}}, "is no object; write its terms"),
        ({"tableSchema": {"columns": [{"name": "x", "rowDependencies": [{"dependsOn": {}}]}]}}, "each with dependsOn"),
        ({"tableSchema": {"columns": [{"name": "x"}]}, "additionalInformation": [{"columnsInGroup": 3}]}, "columnsInGroup 3; write a list"),
        ({"tableSchema": {}, "tables": 3}, "is no object; write a tableSchema"),
        ({"tables": [3, {"tableSchema": {}}]}, "is no object; write a tableSchema"),
    ],
)  # fmt: skip
def test_metadata_that_say_something_else_are_refused_in_a_sentence(table, words):
    with pytest.raises(SchemaError, match=words):
        OpenSchema.from_json(table)


def test_the_vocabularys_own_package_takes_what_is_written():
    csvw_eo = pytest.importorskip("csvw_eo")
    # Its datatypes have no time of day and no address, and its bounds are of double precision.
    columns = [
        a for of in HELD.values() for a in of if a.name not in ("open", "large")
    ]  # fmt: skip
    ours = Schema.of({"all": columns}, impossible=ZEROS, rules=["from <= to"])
    theirs = VISITS | {"tableSchema": {"columns": VISITS["tableSchema"]["columns"][:-1]}}
    for metadata in (metadata_of(ours.to_json()), metadata_of(sections_of(theirs))):
        told = csvw_eo.validate_metadata(json.loads(json.dumps(metadata))).to_dict()
        # Its model holds all of it, but for a table's name.
        del metadata["name"]
        assert [*lost(without_nulls(metadata), without_nulls(json.loads(json.dumps(told))))] == []


def test_rows_that_the_vocabularys_own_package_makes_fit_the_schema():
    csvw_eo = pytest.importorskip("csvw_eo")
    # It makes no rows of open lists of keys, and none of listed numbers.
    columns = [a for a in HELD["hospital"] if a.name in ("room", "smoker", "age")]  # fmt: skip
    schema = Schema.of({"a": columns})
    rows = csvw_eo.make_dummy_from_metadata(metadata_of(schema.to_json()), nb_rows=200, seed=1)
    _, (table,) = open_tables([rows.assign(id=range(200))], "id", schema)
    assert table.records == 200
