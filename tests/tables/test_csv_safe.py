"""Cells that a spreadsheet would run: as they are by default, and with an apostrophe on request."""

import csv
import gzip
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from builders import named_model
from commands import good, refused
from hypothesis import given
from hypothesis import strategies as st

from vertimrf import Attribute, PlanOptions, RunOptions, Schema, write_table
from vertimrf.errors import TableError
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.runs.server_run import ServerRun
from vertimrf.tables.csv_safe import without_formulas

RUN = [
    "=cmd()",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1",
    "＋a",
    "－a",
    "＠a",
]
RUN += [
    "=",
    "-",
    "+",
    "@",
    "-a",
    "-5 %",
    "\u00a0=1",
    "\ufeff=1",
    "\u200b@x",
    '=HYPERLINK("x")',
    "\tx",
]
STAY = [
    "a",
    "",
    "a=b",
    "5",
    "-5",
    "+5",
    "-5.25",
    "+.5",
    "-1e-3",
    "-7.",
    "1-2",
    "'=a",
    "a@b",
    "é",
    "a\n=b",
]
# What begins a formula in a spreadsheet (OWASP, CSV injection).
SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cells(path):
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_texts_and_names_get_an_apostrophe_and_numbers_none(tmp_path, suffix):
    texts = [*RUN, *STAY]
    rows = len(texts)
    table = pa.table(
        {
            "=name": texts,
            "-5": pa.array(np.arange(rows) - 5),
            "plain": pa.array(-np.arange(rows) / 7),
            "+dictionary": pa.array(texts).dictionary_encode(),
            "large": pa.array(texts, pa.large_string()),
            "day": pa.array([None] * rows, pa.date32()),
            "none": pa.array([None, *texts[1:]]),
        }
    )
    path = tmp_path / f"table{suffix}"
    assert write_table([table.slice(0, 5), table.slice(5)], path, csv_safe=True) == rows
    header, *read = cells(path)
    assert header == ["'=name", "-5", "plain", "'+dictionary", "large", "day", "none"]
    safe = [f"'{text}" for text in RUN] + STAY
    for place in (0, 3, 4):
        assert [row[place] for row in read] == safe
    assert [row[6] for row in read] == ["", *safe[1:]]
    assert [int(row[1]) for row in read] == list(range(-5, rows - 5))
    assert [float(row[2]) for row in read] == pytest.approx(-np.arange(rows) / 7)
    # By default all is as it was.
    write_table(table, path)
    header, *read = cells(path)
    assert header == table.column_names
    assert [row[0] for row in read] == texts


@given(st.lists(st.text(), min_size=1))
def test_nothing_begins_a_formula_afterwards(texts):
    out = without_formulas(pa.table({"x": pa.array(texts, pa.string())}))["x"].to_pylist()
    for before, after in zip(texts, out, strict=True):
        assert after in (before, f"'{before}")
        bare = after.lstrip()
        if after.startswith(SIGNS) or bare.startswith(SIGNS):
            float(after)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_other_formats_have_no_use_for_it(tmp_path, suffix):
    with pytest.raises(TableError, match=r"has no meaning for .*: leave it out\.$"):
        write_table(pa.table({"x": ["=a"]}), tmp_path / f"x{suffix}", csv_safe=True)
    assert not list(tmp_path.iterdir())


SCHEMA = Schema.of(
    {
        "one": [Attribute.categorical("=name", ["=cmd()", "-1", "x"])],
        "two": [Attribute.integer("b", 2)],
    }
)
HEADER = ["'=name", "b"]


def model():
    tree = junction_tree(SCHEMA.sizes, [(0, 1)])
    uniform = MarkovRandomField(tree, 60.0, [Factor((0, 1), np.zeros((3, 2)))])
    return named_model(SCHEMA, uniform)


def column(path):
    header, *read = cells(path)
    assert header == HEADER[: len(header)]
    return {row[0] for row in read}


def test_commands_write_it_on_request(tmp_path):
    saved = tmp_path / "model"
    model().save(saved)
    sampled = f"sample {saved} --rows 60 --out {tmp_path}/x.csv"
    good(sampled)
    assert cells(tmp_path / "x.csv")[0] == ["=name", "b"]
    good(sampled, f"--csv-safe --trust {tmp_path}/trust.parquet")
    assert column(tmp_path / "x.csv") == {"'=cmd()", "-1", "x"}
    good(f"sample {saved} --rows 60 --csv-safe --out {tmp_path}/x.arrow --trust {tmp_path}/t.csv")
    assert {row[0] for row in cells(tmp_path / "t.csv")[1:]} == {"'=name", "b", "'=name × b"}
    said = refused(f"sample {saved} --csv-safe --out {tmp_path}/y.parquet")
    assert "csv_safe (--csv-safe) has no meaning for" in said

    part = Schema.of({"one": SCHEMA.part("one")})
    part.save(tmp_path / "schema.toml")
    table = pa.table({"=name": ["=cmd()", "-1", "x"] * 200})
    write_table(table, tmp_path / "table.csv")
    made = f"synthesize {tmp_path}/table.csv --schema {tmp_path}/schema.toml --epsilon 5 --out"
    good(made, tmp_path / "z.csv", "--csv-safe")
    assert column(tmp_path / "z.csv") == {"'=cmd()", "-1", "x"}
    assert "has no meaning for" in refused(made, tmp_path / "z.arrow", "--csv-safe")
    assert not (tmp_path / "z.arrow").exists()


def test_a_run_keeps_it_in_its_settings(tmp_path, monkeypatch):
    """As it keeps rows and seed: it is written when the messages have come."""
    planning = PlanOptions(expected_records=300, message_bytes=50_000, even_if_useless=True)
    made = {"schema": SCHEMA, "epsilon": 1.0, "planning": planning}
    safe = RunOptions(csv_safe=True)
    with pytest.raises(TableError, match="has no meaning for"):
        ServerRun.create(tmp_path / "run", **made, options=safe)
    assert not (tmp_path / "run").exists()
    ServerRun.create(tmp_path / "run", **made, options=safe, out="x.csv")
    assert ServerRun(tmp_path / "run").settings.csv_safe
    role = ServerRun(tmp_path / "run")
    made = SimpleNamespace(
        warnings=(),
        ledger=model().ledger,
        pieces=lambda: iter([pa.table({"=name": ["=cmd()", "-1", "x"], "b": [0, 1, 0]})]),
        to_json=dict,
    )
    monkeypatch.setattr("vertimrf.named_model.Model.of", lambda _: model())
    role._write(made)
    assert column(tmp_path / "run" / "result" / "x.csv") == {"'=cmd()", "-1", "x"}
