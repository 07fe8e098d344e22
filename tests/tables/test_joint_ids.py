"""Ids in several columns: a pair of cells is one id, and no other pair is the same; in every command."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import good, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from runs.conversation import RECORDS, Conversation

from vertimrf import Attribute, ReadOptions, Schema
from vertimrf.errors import TableError
from vertimrf.party.check import check_ids
from vertimrf.party.persons import sample_rows
from vertimrf.plan.options import PlanOptions
from vertimrf.runs.folder import SETTINGS
from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import IdKeys, format_ids, named_ids
from vertimrf.tables.read_options import FORMATS
from vertimrf.tables.sources import open_pieces

KEYS = IdKeys(*(bytes([i]) * 16 for i in range(3)))
X = [Attribute.categorical("x", ["f", "m"])]


def ids_of(rows, read=None):
    a, b = zip(*rows, strict=True)
    pieces = open_pieces(pa.table({"a": list(a), "x": ["f"] * len(a), "b": list(b)}))
    named = named_ids(pieces, read or ReadOptions(), "a,b")
    assert named.names == ("x", "a,b")
    (piece,) = named.read(["a,b"])
    return piece["a,b"].to_pylist()


def test_different_pairs_have_different_ids():
    pairs = [
        ("a,b", "c"),
        ("a", "b,c"),
        ("a\\", ",c"),
        ("a", "\\,c"),
        ("a\\,", "c"),
        ("a,b,c", "d"),
    ]
    assert len({*ids_of(pairs)}) == len(pairs)
    assert ids_of([("A1", "7")]) == ["A1,7"]
    assert ids_of([(None, "7"), ("", "7"), ("A1", None)]) == [None, None, None]


@given(
    st.lists(st.tuples(*[st.text(alphabet="ab,\\ 0.", min_size=1)] * 2), min_size=1, unique=True)
)
@settings(max_examples=60, deadline=None)
def test_pairs_are_told_apart_and_formats_apply_to_each_part_once(rows):
    assert len({*ids_of(rows)}) == len(rows)
    for formats in itertools.combinations(FORMATS, 2):
        ids = pa.chunked_array(
            [pa.array(ids_of(rows, ReadOptions(id_format=formats)), pa.string())]
        )
        assert format_ids(ids, formats).to_pylist() == ids.to_pylist()


def test_formats_apply_to_every_part():
    read = ReadOptions(id_format=("strip", "lower", "whole", "unpad"))
    assert ids_of([(" A1", "007.0")], read) == ["a1,7"]


def test_a_column_of_that_name_is_the_id_itself():
    table = pa.table({"a": ["1"], "b": ["2"], "a,b": ["3"], "x": ["f"]})
    assert named_ids(open_pieces(table), ReadOptions(), "a,b").names == ("a", "b", "a,b", "x")


def test_a_pair_is_the_id_of_its_numbers_and_texts():
    texts = pa.table({"a": ["1", "2"], "b": ["x", "y"], "x": ["f", "m"]})
    numbers = pa.table({"site": [2.0, 1.0], "nr": ["y", "x"], "x": ["m", "f"]})
    one = encode_table(texts, "a,b", X, keys=KEYS)
    other = encode_table(numbers, "site,nr", X, keys=KEYS)
    assert (one.digests[::-1] == other.digests).all()
    assert check_ids(numbers, "site,nr") == ""
    kept = sample_rows(texts, "a,b", 1, "t")
    assert kept.num_rows == 2
    with pytest.raises(TableError, match=r"has no id column 'a,c'; its columns are 'a', 'b', 'x'"):
        encode_table(texts, "a,c", X, keys=KEYS)


def test_a_part_may_be_the_person():
    table = pa.table({"person": ["1", "1", "2"], "nr": [1, 2, 1], "x": ["f", "m", "f"]})
    read = ReadOptions(person="person")
    encoded = encode_table(table, "person,nr", X, read, keys=KEYS)
    assert encoded.records == 3
    assert len({*encoded.persons.tolist()}) == 2


def test_every_command_takes_ids_in_two_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    keys = {"site": [f"S{i % 7}" for i in range(300)], "nr": [i // 7 for i in range(300)]}
    pd.DataFrame(keys | {"x": rng.choice(["f", "m"], 300)}).to_csv("left.csv", index=False)
    pd.DataFrame(keys | {"y": rng.choice(["n", "o"], 300)})[::-1].to_csv("right.csv", index=False)
    for name in ("left", "right"):
        good(f"schema draft {name}.csv --id site,nr --name {name} --out {name}.toml")
        assert Schema.load(f"{name}.toml").ids == "A9,9"
    good("schema merge left.toml right.toml --out schema.toml")
    good("check left.csv --schema schema.toml --name left --id site,nr")
    good(
        "synthesize left.csv right.csv --id site,nr --schema schema.toml --epsilon 5 --out made.csv"
    )
    printed = good(
        "evaluate --real left.csv --real right.csv --id site,nr --schema schema.toml --synthetic made.csv"
    )
    assert "left out" not in printed
    section = 'name = "x"\nvalues = "private"'
    (tmp_path / "open.toml").write_text(
        f'[[party]]\nname = "left"\n[[party.attribute]]\n{section}\n'
    )
    good("schema domains left.csv --id site,nr --schema open.toml --epsilon 5 --out found.toml")
    assert Schema.load("found.toml").domains["x"].size >= 2
    good("run party run --name left --table left.csv --id site,nr")
    assert "has no id column 'site,no'" in refused("check left.csv --schema left.toml --id site,no")


def test_parties_compare_ids_in_two_columns(tmp_path):
    planning = PlanOptions(expected_records=RECORDS, message_bytes=50_000)
    run = Conversation.begun(tmp_path / "run", planning)
    for name, party in run.parties.items():
        table = pd.read_csv(run.folder / f"{name}.csv")
        table.assign(site=table["id"] % 7).to_csv(run.folder / f"{name}.csv", index=False)
        text = (party.folder / SETTINGS).read_text()
        (party.folder / SETTINGS).write_text(text.replace('id = "id"', 'id = "site,id"'))
        run.accept(name)
    good(f"align {run.folder}/hospital.run --out {tmp_path}/ids")
    printed = good(f"align {run.folder}/insurer.run --with {tmp_path}/ids")
    assert "300 of your 300 sampled ids match as they are written" in printed
