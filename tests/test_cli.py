"""The command line as a user meets it: the main jobs, and every bad input as one sentence with exit code 2."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from vertimrf.cli import main


@pytest.fixture
def folder(tmp_path):
    """Two parties' tables and their schema."""
    rng = np.random.default_rng(0)
    rows = 4000
    ids = [f"p{i:05}" for i in range(rows)]
    a = rng.integers(0, 3, rows)
    pd.DataFrame({"id": ids, "a": a, "b": rng.integers(0, 2, rows)}).to_csv(tmp_path / "left.csv", index=False)
    right = pd.DataFrame({"id": ids, "x": np.array(["red", "green", "blue"])[a], "age": rng.integers(0, 90, rows)})
    right.sample(frac=1, random_state=0).to_parquet(tmp_path / "right.parquet", index=False)
    (tmp_path / "schema.toml").write_text(
        """
[[party]]
name = "left"
[[party.attribute]]
name = "a"
codes = 3
[[party.attribute]]
name = "b"
codes = 2

[[party]]
name = "right"
[[party.attribute]]
name = "x"
values = ["red", "green", "blue"]
[[party.attribute]]
name = "age"
bounds = [0, 90]
bins = 6
integral = true
"""
    )
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def synthesize(folder, *more, **options):
    settings = {"id": "id", "schema": folder / "schema.toml", "epsilon": 2.0, "out": folder / "out.csv"} | options
    tables = settings.pop("tables", [folder / "left.csv", folder / "right.parquet"])
    flags = [part for name, value in settings.items() if value is not None for part in (f"--{name}", value)]
    return run("synthesize", *tables, *flags, *more)


def refused(result, *words):
    """One sentence, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    lines = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, result.output
    for word in words:
        assert word in lines[0], lines[0]


def test_synthesize_then_evaluate(folder):
    result = synthesize(folder, json=folder / "report.json", seed=1)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(folder / "out.csv")
    assert list(table.columns) == ["a", "b", "x", "age"]
    assert set(table["x"]) <= {"red", "green", "blue"}
    assert table["age"].between(0, 90).all()
    # x is a function of a at the other party: independent parties would agree on a third of the rows.
    assert (table["x"] == np.array(["red", "green", "blue"])[table["a"]]).mean() > 0.8
    report = json.loads((folder / "report.json").read_text())
    assert report["epsilon"] <= 2.0
    for key in ("delta", "ledger", "seconds", "message_bytes", "cliques", "junction_tree_cells", "private"):
        assert key in report
    assert sum(entry["share"] for entry in report["ledger"]) == pytest.approx(1)
    assert set(report["message_bytes"]) == {"left", "right"}
    arguments = ["--synthetic", folder / "out.csv", "--id", "id", "--schema", folder / "schema.toml", "--ways", "2,3"]
    for real in (["--real", folder / "left.csv", folder / "right.parquet"],
                 ["--real", folder / "left.csv", "--real", folder / "right.parquet"]):  # fmt: skip
        result = run("evaluate", *real, *arguments, "--json", folder / "tvd.json")
        assert result.exit_code == 0, result.output
        assert 0 < json.loads((folder / "tvd.json").read_text())["tvd"]["2"] < 0.1


def test_one_table_is_dealt_to_parties(folder):
    left = pd.read_csv(folder / "left.csv").assign(c=0)
    left.to_csv(folder / "one.csv.gz", index=False)
    (folder / "domain.json").write_text('{"a": 3, "b": 2, "c": 1}')
    result = synthesize(folder, tables=[folder / "one.csv.gz"], schema=folder / "domain.json", split="2,1", rows=50)
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(folder / "out.csv")) == 50


def test_a_deployment_role_by_role(folder):
    steps = [
        ("plan", "--schema", folder / "schema.toml", "--epsilon", 2, "--expected-records", 4000, "--out", folder / "plan.json"),
        ("secret", "offer", "left", "--key", folder / "left.key", "--out", folder / "left.offer"),
        ("secret", "offer", "right", "--key", folder / "right.key", "--out", folder / "right.offer"),
        ("secret", "seal", folder / "left.offer", folder / "right.offer", "--key", folder / "left.key",
         "--secret", folder / "left.secret", "--out", folder / "envelopes.json"),
        ("secret", "join", folder / "envelopes.json", "--key", folder / "right.key", "--secret", folder / "right.secret"),
        ("party", folder / "left.csv", "--plan", folder / "plan.json", "--name", "left", "--secret", folder / "left.secret",
         "--id", "id", "--out", folder / "left.message"),
        ("party", folder / "right.parquet", "--plan", folder / "plan.json", "--name", "right",
         "--secret", folder / "right.secret", "--id", "id", "--out", folder / "right.message"),
        ("server", folder / "right.message", folder / "left.message", "--plan", folder / "plan.json",
         "--out", folder / "synthetic.parquet", "--model", folder / "model", "--json", folder / "server.json"),
    ]  # fmt: skip
    for step in steps:
        result = run(*step)
        assert result.exit_code == 0, result.output
    table = pd.read_parquet(folder / "synthetic.parquet")
    assert (table["x"] == np.array(["red", "green", "blue"])[table["a"]]).mean() > 0.8
    assert json.loads((folder / "server.json").read_text())["private"] is True
    again = run(*steps[5])
    refused(again, "one message per plan")
    cut = (folder / "left.message").read_bytes()[:-7]
    (folder / "left.message").write_bytes(cut)
    refused(run(*steps[7]), "left.message", "truncated")
    assert (folder / "left.secret").stat().st_mode & 0o077 == 0


def test_a_deployment_of_two_rounds(folder):
    from vertimrf.party.secret import Secret

    Secret.new().save(folder / "secret")
    plan = ("--plan", folder / "plan.json")
    private = ("--secret", folder / "secret", "--id", "id")
    follow_up = ("--follow-up", folder / "follow-up.json")
    tables = {"left": folder / "left.csv", "right": folder / "right.parquet"}
    steps = [
        ("plan", "--schema", folder / "schema.toml", "--epsilon", 2, "--expected-records", 4000, "--rounds", 2,
         "--message-mb", 3, "--out", folder / "plan.json"),
        *(("party", table, *plan, "--name", n, *private, "--out", folder / f"{n}.message") for n, table in tables.items()),
        ("follow-up", folder / "left.message", folder / "right.message", *plan, "--out", folder / "follow-up.json"),
        *(("answer", table, *plan, *follow_up, "--name", n, *private, "--out", folder / f"{n}.answer")
          for n, table in tables.items()),
        ("inspect", folder / "follow-up.json"),
        ("inspect", folder / "left.answer"),
        ("server", folder / "left.message", folder / "right.message", *plan, *follow_up, "--answer", folder / "left.answer",
         "--answer", folder / "right.answer", "--out", folder / "synthetic.csv"),
    ]  # fmt: skip
    for step in steps:
        result = run(*step)
        assert result.exit_code == 0, result.output
    table = pd.read_csv(folder / "synthetic.csv")
    assert (table["x"] == np.array(["red", "green", "blue"])[table["a"]]).mean() > 0.8
    refused(run(*steps[4]), "one follow-up per plan")
    refused(run("server", folder / "left.message", folder / "right.message", *plan, "--out", folder / "s.csv"), "two rounds")
    refused(run("server", folder / "left.message", folder / "right.message", *plan, "--answer", folder / "left.answer",
                "--out", folder / "s.csv"), "--follow-up")  # fmt: skip


def test_a_drafted_schema_is_marked_as_not_private(folder):
    result = run("schema", folder / "left.csv", folder / "right.parquet", "--id", "id", "--out", folder / "draft.toml")
    assert result.exit_code == 0, result.output
    result = synthesize(folder, schema=folder / "draft.toml", json=folder / "report.json")
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.output
    assert json.loads((folder / "report.json").read_text())["private"] is False


def test_small_tau_warns_and_goes_on(folder):
    result = synthesize(folder, tau=2)
    assert result.exit_code == 0, result.output
    assert "Warning" in result.output


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_bad_epsilon(folder, epsilon):
    refused(synthesize(folder, epsilon=epsilon), "epsilon")
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("delta", ["0", "1", "-0.1", "nan"])
def test_bad_delta(folder, delta):
    refused(synthesize(folder, delta=delta), "delta")


def broken(folder, change):
    """The left table after a change, in place."""
    left = pd.read_csv(folder / "left.csv")
    change(left).to_csv(folder / "left.csv", index=False)


def repeat_first(left):
    return pd.concat([left, left.iloc[:1]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda left: left.rename(columns={"id": "key"}), ["left.csv", "id"]),
        (repeat_first, ["left.csv", "repeat", "p00000"]),
        (lambda left: left.assign(id=left["id"].where(left.index > 2)), ["left.csv", "id", "3"]),
        (lambda left: left.iloc[5:], ["different records"]),
        (lambda left: left.assign(a=left["a"].replace(2, 7)), ["left.csv", "'a'", "7"]),
        (lambda left: left.drop(columns="b"), ["left.csv", "'b'"]),
        (lambda left: left.assign(extra=1), ["left.csv", "'extra'"]),
        (lambda left: left.assign(x=1), ["left.csv", "'x'"]),
        (lambda left: left.iloc[:0], ["left.csv", "no records"]),
        (lambda left: left.assign(b=left["b"].where(left.index > 1)), ["left.csv", "'b'", "2"]),
    ],
    ids=["no id column", "duplicate id", "null ids", "other records", "value outside", "column missing", "column added",
         "attribute of the other party", "empty table", "missing values"],
)  # fmt: skip
def test_bad_tables_are_one_sentence_and_nothing_is_written(folder, change, words):
    broken(folder, change)
    before = set(folder.iterdir())
    refused(synthesize(folder, json=folder / "report.json"), *words)
    assert set(folder.iterdir()) == before


def test_files_that_are_not_there_or_no_tables(folder):
    refused(synthesize(folder, tables=[folder / "left.csv", folder / "nowhere.csv"]), "nowhere.csv")
    (folder / "noise.parquet").write_bytes(b"not a table")
    refused(synthesize(folder, tables=[folder / "left.csv", folder / "noise.parquet"]), "noise.parquet")
    refused(synthesize(folder, schema=folder / "nowhere.toml"), "nowhere.toml")
    refused(synthesize(folder, out=folder / "nowhere" / "out.csv"), "folder does not exist")
    refused(synthesize(folder, out=folder / "out.xyz"), "out.xyz")
    refused(synthesize(folder, tables=[folder / "left.csv"]), "left.csv")


def test_the_same_attribute_at_two_parties(folder):
    (folder / "domain.json").write_text('{"a": 3, "b": 2}')
    tables = [folder / "left.csv", folder / "left.csv"]
    refused(synthesize(folder, tables=tables, schema=folder / "domain.json"), "'a'", "two parties")


def test_bad_options(folder):
    refused(synthesize(folder, split="2,x"), "--split")
    refused(synthesize(folder, encoder="magic"), "magic")
    refused(synthesize(folder, rows=0), "--rows")
    refused(synthesize(folder, tau=1), "tau")
    refused(run("evaluate", "--real", folder / "left.csv", folder / "right.parquet", "--synthetic", folder / "none.csv",
                "--id", "id", "--schema", folder / "schema.toml"), "none.csv")  # fmt: skip


def test_another_plans_message_is_refused(folder):
    for name in ("one", "two"):
        result = run("plan", "--schema", folder / "schema.toml", "--epsilon", 1, "--expected-records", 4000,
                     "--out", folder / f"{name}.json")  # fmt: skip
        assert result.exit_code == 0, result.output
    run("secret", "offer", "left", "--key", folder / "k", "--out", folder / "o")
    run("secret", "seal", folder / "o", "--key", folder / "k", "--secret", folder / "s", "--out", folder / "e")
    made = run("party", folder / "left.csv", "--plan", folder / "one.json", "--name", "left", "--secret", folder / "s",
               "--id", "id", "--out", folder / "m")  # fmt: skip
    assert made.exit_code == 0, made.output
    refused(run("server", folder / "m", "--plan", folder / "two.json", "--out", folder / "t.csv"), "another plan")
    refused(run("server", folder / "m", "--plan", folder / "one.json", "--out", folder / "t.csv"), "right", "missing")
    assert not (folder / "t.csv").exists()


def test_what_cannot_be_had_again_is_not_written_over(folder):
    offer = ("secret", "offer", "left", "--key", folder / "left.key", "--out", folder / "left.offer")
    planned = ("plan", "--schema", folder / "schema.toml", "--epsilon", 2, "--expected-records", 4000, "--out", folder / "plan")
    assert run(*offer).exit_code == 0
    assert run("secret", "offer", "right", "--key", folder / "right.key", "--out", folder / "right.offer").exit_code == 0
    offers = (folder / "left.offer", folder / "right.offer")
    seal = ("secret", "seal", *offers, "--key", folder / "left.key", "--secret", folder / "secret", "--out", folder / "sealed")
    join = ("secret", "join", folder / "sealed", "--key", folder / "right.key", "--secret", folder / "joined")
    for command in (seal, join, planned):
        assert run(*command).exit_code == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for command in (offer, seal, join, planned):
        refused(run(*command), "exists")
    refused(run("schema", folder / "left.csv", "--id", "id", "--out", folder / "schema.toml"), "may hold edits")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_inspect_tells_the_files_of_the_agreement(folder):
    assert run("secret", "offer", "left", "--key", folder / "key", "--out", folder / "left.offer").exit_code == 0
    assert run("secret", "offer", "right", "--key", folder / "other", "--out", folder / "right.offer").exit_code == 0
    arguments = ("--key", folder / "key", "--secret", folder / "secret", "--out", folder / "envelopes.json")
    sealed = run("secret", "seal", folder / "left.offer", folder / "right.offer", *arguments)
    fingerprint = sealed.output.split("Fingerprint ")[1].split(":")[0]
    for file, words in {
        "secret": fingerprint, "key": "private key behind 'left'", "left.offer": "offer of 'left'", "envelopes.json": "right"
    }.items():  # fmt: skip
        result = run("inspect", folder / file)
        assert result.exit_code == 0
        assert words in result.output
        assert json.loads((folder / file).read_text()).get("value", "no value") not in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", "1e9"), "between 0.0001 and 1000"),
        (("--epsilon", "1e-9"), "between 0.0001 and 1000"),
        (("--epsilon", "nan"), "above 0"),
        (("--epsilon", "1", "--message-mb", "nan"), "--message-mb"),
        (("--epsilon", "1", "--message-mb", "inf"), "--message-mb"),
        (("--epsilon", "1", "--split", "2,2"), "names its parties"),
        (("--epsilon", "1", "--out", "."), "is a folder"),
    ],
)
def test_plans_that_cannot_be_made(folder, options, words):
    out = () if "--out" in options else ("--out", folder / "plan.json")
    refused(run("plan", "--schema", folder / "schema.toml", "--expected-records", 4000, *options, *out), words)
    assert not (folder / "plan.json").exists()


def test_numbers_out_of_range_are_refused_before_the_work(folder):
    for options in ({"seed": -5}, {"threads": 0}, {"rows": 0}):
        assert synthesize(folder, **options).exit_code == 2
    refused(run("demo", "--folder", folder / "demo", "--epsilon", 0), "above 0")
    refused(run("demo", "--folder", folder / "left.csv"), "is a file")
    assert not (folder / "demo").exists()


def test_evaluate_takes_as_many_ways_as_there_are_attributes(folder):
    assert synthesize(folder, rows=500).exit_code == 0
    real = ("--real", folder / "left.csv", folder / "right.parquet")
    result = run("evaluate", *real, "--synthetic", folder / "out.csv", "--id", "id", "--schema", folder / "schema.toml")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == ["3-way", "4-way"]
    assert "across parties" in result.output
