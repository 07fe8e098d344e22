"""The command line as a user meets it: the main jobs, and every bad input as one sentence with exit code 2."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from vertimrf.cli import main
from vertimrf.model import beyond


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


def offers(folder):
    """Everyone's key pair, and the offers for the plan."""
    for command, name in ((("secret", "offer", "left"), "left"), (("secret", "offer", "right"), "right"),
                          (("server", "offer"), "server")):  # fmt: skip
        made = run(*command, "--key", folder / f"{name}.key", "--out", folder / f"{name}.offer")
        assert made.exit_code == 0, made.output
    return [folder / f"{name}.offer" for name in ("server", "right", "left")]


def planned(folder, *options, out="plan.json", epsilon=2):
    """A plan with everyone's keys."""
    keys = sorted(folder.glob("*.offer")) or offers(folder)
    result = run("plan", *keys, "--schema", folder / "schema.toml", "--epsilon", epsilon, "--expected-records", 4000, *options,
                 "--out", folder / out)  # fmt: skip
    assert result.exit_code == 0, result.output
    return result


def own(folder, name):
    """A party's plan, key, secret and id column."""
    return ("--plan", folder / "plan.json", "--key", folder / f"{name}.key", "--secret", folder / f"{name}.secret", "--id", "id")


def test_a_deployment_role_by_role(folder):
    fingerprint = planned(folder).output.split("Fingerprint ")[1].split(":")[0]
    plan, server = ("--plan", folder / "plan.json"), ("--key", folder / "server.key")
    steps = [
        *(("compare", folder / "plan.json", fingerprint.lower().replace("-", " "), "--key", folder / f"{name}.key")
          for name in ("left", "right", "server")),
        ("secret", "seal", *plan, "--key", folder / "left.key", "--secret", folder / "left.secret",
         "--out", folder / "envelopes.json"),
        ("secret", "join", folder / "envelopes.json", *plan, "--key", folder / "right.key", "--secret", folder / "right.secret"),
        ("party", folder / "left.csv", *own(folder, "left"), "--out", folder / "left.message"),
        ("party", folder / "right.parquet", *own(folder, "right"), "--out", folder / "right.message"),
        ("server", folder / "right.message", folder / "left.message", *plan, *server,
         "--out", folder / "synthetic.parquet", "--model", folder / "model", "--json", folder / "server.json"),
    ]  # fmt: skip
    for step in steps:
        result = run(*step)
        assert result.exit_code == 0, result.output
    table = pd.read_parquet(folder / "synthetic.parquet")
    assert (table["x"] == np.array(["red", "green", "blue"])[table["a"]]).mean() > 0.8
    assert json.loads((folder / "server.json").read_text())["private"] is True
    drawn = run("sample", folder / "model", "--rows", 30, "--where", "x=red", "--out", folder / "red.csv")
    assert drawn.exit_code == 0, drawn.output
    assert set(pd.read_csv(folder / "red.csv")["x"]) == {"red"}
    refused(run(*steps[7]), "synthetic.parquet exists", "--overwrite")
    assert run(*steps[7], "--overwrite").exit_code == 0
    # Told again, a party gives the same message again, under whatever name; from another table it gives none.
    sent = (folder / "left.message").read_bytes()
    for out in ("left.message", "again.message"):
        again = run(*steps[5][:-1], folder / out)
        assert again.exit_code == 0, again.output
        assert "Private (add or remove one record): epsilon 2" in again.output
        assert (folder / out).read_bytes() == sent
    (folder / "notes.txt").write_text("of somebody")
    refused(run(*steps[5][:-1], folder / "notes.txt"), "something else")
    pd.read_csv(folder / "left.csv").assign(b=0).to_csv(folder / "mended.csv", index=False)
    refused(run("party", folder / "mended.csv", *steps[5][2:-1], folder / "mended.message"),
            "from another table", "epsilon 2", "all parties", "make a new plan")  # fmt: skip
    assert not (folder / "mended.message").exists()
    header = run("inspect", folder / "left.message").output
    assert "A sealed party message" in header
    assert f"from 'left' for the server, under the plan {fingerprint}" in header
    assert "marginal" not in header
    inside = run("inspect", folder / "left.message", *plan, *server).output
    assert "proved to be from 'left'" in inside
    assert "marginal0" in inside
    refused(run("inspect", folder / "left.message", *plan), "both")
    refused(run("inspect", folder / "left.message", *plan, "--key", folder / "right.key"), "is for the server")
    cut = (folder / "left.message").read_bytes()[:-7]
    (folder / "left.message").write_bytes(cut)
    refused(run(*steps[7], "--overwrite"), "left.message", "truncated")
    for name in ("left.secret", "right.secret", "left.key", "server.key"):
        assert (folder / name).stat().st_mode & 0o077 == 0


def test_parties_find_out_that_their_ids_are_written_differently(folder):
    planned(folder)
    plan = ("--plan", folder / "plan.json")
    for step in (
        ("secret", "seal", *plan, "--key", folder / "left.key", "--secret", folder / "left.secret",
         "--out", folder / "envelopes.json"),
        ("secret", "join", folder / "envelopes.json", *plan, "--key", folder / "right.key", "--secret", folder / "right.secret"),
    ):  # fmt: skip
        assert run(*step).exit_code == 0
    left, right = pd.read_csv(folder / "left.csv"), pd.read_parquet(folder / "right.parquet")
    left["id"] = [f" P{i:07}" for i in range(len(left))]
    left.to_csv(folder / "padded.csv", index=False)
    right["id"] = [f"p{int(text[1:]):07}" for text in right["id"]]
    right.to_csv(folder / "right.csv", index=False)
    sampled = run("align", folder / "padded.csv", *own(folder, "left"), "--out", folder / "left.ids")
    assert "which of their people are among 4,000 of yours" in sampled.output
    # Only the other party can open it, and nothing of an id can be read in it.
    sealed = (folder / "left.ids").read_text()
    assert list(json.loads(sealed)["envelopes"]) == ["right"]
    compared = ("align", folder / "right.csv", *own(folder, "right"), "--with", folder / "left.ids")
    assert run(*compared).output.splitlines() == [
        "left: 0 of your 4,000 sampled ids match as they are written.",
        "  4,000 would with another --id-format: none here, strip,lower at left.",
    ]
    refused(run("align", folder / "padded.csv", *own(folder, "left"), "--with", folder / "left.ids"), "nothing for 'left'")
    refused(run("align", folder / "padded.csv", *own(folder, "left")), "--out", "--with")
    refused(run("align", folder / "padded.csv", *own(folder, "left"), "--with", folder / "plan.json"), "is no id sample")
    changed = json.loads(sealed)
    changed["envelopes"]["right"] = changed["envelopes"]["right"][:-8] + "AAAAAAA="
    (folder / "changed.ids").write_text(json.dumps(changed))
    refused(run(*compared[:-1], folder / "changed.ids"), "cannot be opened")
    # So written, and checked first, both can run.
    for table, name, more in (("padded.csv", "left", ("--id-format", "strip, lower")), ("right.csv", "right", ())):
        checked = run("check", folder / table, *plan, "--name", name, "--id", "id", *more, "--out", folder / f"{name}.message")
        assert checked.exit_code == 0, checked.output
        assert "is ready for the plan" in checked.output
        result = run("party", folder / table, *own(folder, name), *more, "--out", folder / f"{name}.message")
        assert result.exit_code == 0, result.output
    made = run("server", folder / "left.message", folder / "right.message", *plan, "--key", folder / "server.key",
               "--out", folder / "synthetic.parquet")  # fmt: skip
    assert made.exit_code == 0, made.output
    refused(run("party", folder / "padded.csv", *own(folder, "left"), "--id-format", "upper", "--out", folder / "m"), "'upper'")


def test_a_check_finds_all_problems_at_once_and_releases_nothing(folder):
    planned(folder)
    table = pd.read_parquet(folder / "right.parquet").head(1000)
    table.loc[table.index[0], "x"] = "violet"
    table.loc[table.index[1], "age"] = 91
    table.loc[table.index[2], "id"] = table.loc[table.index[3], "id"]
    table["more"] = 1
    table.to_csv(folder / "bad.csv", index=False)
    before = set(folder.iterdir())
    result = run("check", folder / "bad.csv", "--plan", folder / "plan.json", "--name", "right", "--id", "id",
                 "--out", folder / "nowhere" / "m")  # fmt: skip
    refused(result, "5 problems", "nothing was released")
    problems = [line for line in result.output.splitlines() if line.startswith("Problem: ")]
    for problem, words in zip(problems, ("'more', not in the schema", "holds 'violet'", "holds '91'", "repeats an id",
                                         "its folder does not exist"), strict=True):  # fmt: skip
        assert words in problem
    assert "1,000 records, 2 attributes" in result.output
    assert "The plan expects 4,000 records" in result.output
    assert set(folder.iterdir()) == before
    checked = ("check", folder / "left.csv", "--plan", folder / "plan.json")
    refused(run(*checked, "--name", "middle", "--id", "id"), "no party 'middle'")
    lone = run(*checked, "--name", "left", "--id", "who")
    assert "has no id column 'who'" in lone.output


def test_tables_of_other_dialects_and_more_columns(folder):
    planned(folder)
    left = pd.read_csv(folder / "left.csv")
    left.assign(ward="Gynäkologie").to_csv(folder / "dialect.csv", index=False, sep=";", encoding="latin-1")
    checked = ("check", folder / "dialect.csv", "--plan", folder / "plan.json", "--name", "left", "--id", "id")
    dialect = ("--delimiter", ";", "--encoding", "latin-1")
    refused(run(*checked), "problems")
    assert "has no id column 'id'" in run(*checked).output
    # In the other encoding the same column, with other text.
    refused(run(*checked, "--delimiter", ";"), "1 problem")
    refused(run(*checked, "--encoding", "latin-1"), "problems")
    assert "has the column 'ward', not in the schema" in run(*checked, *dialect).output
    result = run(*checked, *dialect, "--ignore-extra-columns")
    assert "is ready for the plan" in result.output, result.output
    refused(run(*checked, "--delimiter", ";;"), "one ASCII character")
    refused(run(*checked, "--encoding", "klingon"), "no encoding 'klingon'")
    drafted = run("schema", folder / "dialect.csv", "--id", "id", *dialect, "--out", folder / "drafted.toml")
    assert drafted.exit_code == 0, drafted.output
    assert "Gynäkologie" in (folder / "drafted.toml").read_text()


def test_parts_of_a_schema_are_drafted_apart_and_merged(folder):
    for table, name, more in (("left.csv", "left", ()), ("right.parquet", "right", ("--drop", "age"))):
        drafted = run("schema", folder / table, "--id", "id", "--name", name, *more, "--out", folder / f"{name}.toml")
        assert drafted.exit_code == 0, drafted.output
    merged = run("schema", "merge", folder / "left.toml", folder / "right.toml", "--out", folder / "both.toml")
    assert "3 attributes of left, right" in merged.output
    assert "set public = true" in merged.output
    refused(run("schema", "merge", folder / "left.toml", folder / "right.toml", "--out", folder / "both.toml"), "may hold edits")
    again = folder / "again.toml"
    again.write_text((folder / "left.toml").read_text())
    refused(run("schema", "merge", folder / "left.toml", again, "--out", folder / "c.toml"), "Party 'left' is in", "again.toml")


def test_everyone_has_its_own_key_or_is_refused(folder):
    planned(folder)
    plan = ("--plan", folder / "plan.json")
    secret = ("--secret", folder / "left.secret")
    seal = ("secret", "seal", *plan, *secret, "--out", folder / "envelopes.json")
    party = ("party", folder / "left.csv", *plan, *secret, "--id", "id", "--out", folder / "m")
    server = ("server", folder / "m", *plan, "--out", folder / "t.csv")
    before = set(folder.iterdir())
    for command in (seal, party):
        refused(run(*command, "--key", folder / "server.key"), "is the server's key", "secret offer")
    refused(run(*server, "--key", folder / "left.key"), "is a party's key", "server offer")
    refused(run("server", "offer", "--key", folder / "server.key", "--out", folder / "more"), "exists")
    # The relay has put its own offers into the plan: everybody notices before doing anything.
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "schema.toml").write_text((folder / "schema.toml").read_text())
    planned(folder / "elsewhere")
    swapped = (folder / "elsewhere" / "plan.json").read_text()
    (folder / "swapped.json").write_text(swapped)
    for command, key in ((seal, "left.key"), (party, "left.key"), (server, "server.key")):
        changed = [folder / "swapped.json" if part == folder / "plan.json" else part for part in command]
        refused(run(*changed, "--key", folder / key), "another key for", "swapped")
    fingerprint = run("inspect", folder / "plan.json").output.split("fingerprint ")[1].split(",")[0]
    refused(run("compare", folder / "swapped.json", fingerprint), "NOT the plan")
    refused(run("compare", folder / "plan.json", fingerprint[:19]), "whole fingerprint")
    refused(run("compare", folder / "swapped.json",
                run("inspect", folder / "swapped.json").output.split("fingerprint ")[1].split(",")[0],
                "--key", folder / "left.key"), "another key for 'left'")  # fmt: skip
    refused(run("compare", folder / "left.offer", fingerprint), "has no fingerprint")
    (folder / "swapped.json").unlink()
    assert set(folder.iterdir()) - before == {folder / "elsewhere"}


def test_a_plan_without_keys_can_be_priced_and_no_more(folder):
    result = run("plan", "--schema", folder / "schema.toml", "--epsilon", 2, "--expected-records", 4000,
                 "--out", folder / "plan.json")  # fmt: skip
    assert result.exit_code == 0
    assert "For pricing" in result.output
    assert "without public keys" in run("inspect", folder / "plan.json").output
    assert run("account", folder / "plan.json").exit_code == 0
    keys = offers(folder)
    refused(run("secret", "seal", "--plan", folder / "plan.json", "--key", folder / "left.key", "--secret", folder / "s",
                "--out", folder / "e"), "no public keys", "vertimrf plan OFFER")  # fmt: skip
    refused(run("party", folder / "left.csv", *own(folder, "left"), "--out", folder / "m"), "no public keys")
    for some, said in ((keys[1:], "the server is missing"), (keys[:2], "'left' is missing"), ([*keys, keys[2]], "'left'")):
        refused(run("plan", *some, "--schema", folder / "schema.toml", "--epsilon", 2, "--expected-records", 4000,
                    "--out", folder / "p"), said)  # fmt: skip


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_party_killed_around_its_record_sends_one_message(folder, when):
    """SIGKILL just before the record is there, and just after, when the message file is not yet."""
    from vertimrf.keys import PrivateKey
    from vertimrf.party.releases import Releases
    from vertimrf.party.secret import Secret

    planned(folder, "--message-mb", 1)
    Secret.new().save(folder / "left.secret")
    arguments = ["party", folder / "left.csv", *own(folder, "left"), "--out", folder / "left.message"]
    code = f"""
import os, signal, sys
from vertimrf.cli import main
link = os.link
def killed(*paths, **more):
    if {when == "after"}:
        link(*paths, **more)
    os.kill(os.getpid(), signal.SIGKILL)
os.link = killed
main(sys.argv[1:])
"""
    assert subprocess.run([sys.executable, "-c", code, *map(str, arguments)]).returncode == -signal.SIGKILL
    assert not (folder / "left.message").exists()
    releases = Releases.of(PrivateKey.load(folder / "left.key")).folder
    records = [path.read_bytes() for path in releases.glob("message-*")]
    assert len(records) == (when == "after")
    assert run(*arguments).exit_code == 0
    sent = (folder / "left.message").read_bytes()
    assert all(sent in record for record in records)
    (folder / "left.message").unlink()
    assert run(*arguments).exit_code == 0
    assert (folder / "left.message").read_bytes() == sent
    assert [path.name for path in releases.iterdir() if path.name.startswith(".")] == []


def test_a_drafted_schema_is_marked_as_not_private(folder):
    result = run("schema", folder / "left.csv", folder / "right.parquet", "--id", "id", "--out", folder / "draft.toml")
    assert result.exit_code == 0, result.output
    result = synthesize(folder, schema=folder / "draft.toml", json=folder / "report.json")
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.output
    assert json.loads((folder / "report.json").read_text())["private"] is False


def test_small_tau_warns_and_goes_on(folder, monkeypatch):
    # Nothing spans the parties, neither within cliques nor beyond them.
    monkeypatch.setattr(beyond, "STANDS_OUT", math.inf)
    result = synthesize(folder, tau=2)
    assert result.exit_code == 0, result.output
    assert "Warning" in result.output


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf"])
def test_bad_epsilon(folder, epsilon):
    refused(synthesize(folder, epsilon=epsilon), "epsilon")
    assert not (folder / "out.csv").exists()


def test_a_large_delta_is_noted_everywhere(folder):
    result = synthesize(folder, "--expected-records", 4000, delta=0.005, json=folder / "report.json")
    assert result.exit_code == 0, result.output
    assert "Note: delta is above 1 / expected records" in result.output
    assert "delta is above" in json.loads((folder / "report.json").read_text())["standing"]["notes"][0]
    assert "Note: delta is above" in run("inspect", folder / "out.csv").output


def test_replaced_records_are_named_as_such(folder):
    files = {"out": folder / "out.parquet", "json": folder / "report.json"}
    result = synthesize(folder, "--expected-records", 4000, encoder="grr", **files)
    assert result.exit_code == 0, result.output
    for text in (result.output, run("inspect", folder / "out.parquet").output, run("inspect", folder / "report.json").output):
        assert "Private (replace one record)" in text
        assert "Note: the exact number of records is published." in text


@pytest.mark.parametrize("delta", ["0", "1", "-0.1", "nan", "0.5", "0.011"])
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
        (lambda left: left.drop(columns="b"), ["left.csv", "'b'"]),
        (lambda left: left.assign(extra=1), ["left.csv", "'extra'"]),
        (lambda left: left.assign(x=1), ["left.csv", "'x'"]),
    ],
    ids=["no id column", "column missing", "column added", "attribute of the other party"],
)
def test_bad_tables_are_one_sentence_and_nothing_is_written(folder, change, words):
    broken(folder, change)
    before = set(folder.iterdir())
    refused(synthesize(folder, json=folder / "report.json"), *words)
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (repeat_first, ["1 record repeats", "p00000"]),
        (lambda left: left.assign(id=left["id"].where(left.index > 2)), ["3 records have no id"]),
        (lambda left: left.assign(a=left["a"].mask(left.index < 9, 7)), ["'a' holds '7'"]),
        (lambda left: left.assign(b=left["b"].where(left.index > 1)), ["'b' has 2 records"]),
    ],
    ids=["duplicate id", "null ids", "value outside", "missing values"],
)
def test_records_that_do_not_fit_are_left_out_and_told_of(folder, change, words):
    broken(folder, change)
    made = synthesize(folder, json=folder / "report.json")
    assert made.exit_code == 0, made.output
    for word in ["left out; this stays here", "left.csv", *words]:
        assert word in made.stderr
    assert "left out" not in made.stdout + (folder / "report.json").read_text()


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
    made = synthesize(folder, tables=tables, schema=folder / "domain.json")
    assert made.exit_code == 0, made.output
    assert "party1 and party2 agree on 'a'" in made.stderr


def test_bad_options(folder):
    refused(synthesize(folder, split="2,x"), "--split")
    refused(synthesize(folder, encoder="magic"), "magic")
    refused(synthesize(folder, rows=0), "--rows")
    refused(synthesize(folder, tau=1), "tau")
    refused(run("evaluate", "--real", folder / "left.csv", folder / "right.parquet", "--synthetic", folder / "none.csv",
                "--id", "id", "--schema", folder / "schema.toml"), "none.csv")  # fmt: skip


def test_another_plans_message_is_refused(folder):
    for out in ("plan.json", "two.json"):
        planned(folder, out=out, epsilon=1)
    run("secret", "seal", "--plan", folder / "plan.json", "--key", folder / "left.key", "--secret", folder / "left.secret",
        "--out", folder / "e")  # fmt: skip
    made = run("party", folder / "left.csv", *own(folder, "left"), "--out", folder / "m")
    assert made.exit_code == 0, made.output
    server = ("--key", folder / "server.key", "--out", folder / "t.csv")
    refused(run("server", folder / "m", "--plan", folder / "two.json", *server), "another plan")
    refused(run("server", folder / "m", "--plan", folder / "plan.json", *server), "right", "missing")
    refused(run("secret", "join", folder / "e", "--plan", folder / "two.json", "--key", folder / "right.key",
                "--secret", folder / "joined"), "another plan")  # fmt: skip
    assert not (folder / "t.csv").exists()
    assert not (folder / "joined").exists()


def test_what_cannot_be_had_again_is_not_written_over(folder):
    planned(folder)
    plan = ("--plan", folder / "plan.json")
    offer = ("secret", "offer", "left", "--key", folder / "left.key", "--out", folder / "left.offer")
    again = ("plan", "--schema", folder / "schema.toml", "--epsilon", 2, "--expected-records", 4000, "--out", plan[1])
    seal = ("secret", "seal", *plan, "--key", folder / "left.key", "--secret", folder / "secret", "--out", folder / "sealed")
    join = ("secret", "join", folder / "sealed", *plan, "--key", folder / "right.key", "--secret", folder / "joined")
    for command in (seal, join):
        assert run(*command).exit_code == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for command in (offer, seal, join, again):
        refused(run(*command), "exists")
    refused(run("schema", folder / "left.csv", "--id", "id", "--out", folder / "schema.toml"), "may hold edits")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_inspect_tells_the_files_of_the_agreement(folder):
    from vertimrf.party.secret import Secret

    planned(folder)
    sealed = run("secret", "seal", "--plan", folder / "plan.json", "--key", folder / "left.key", "--secret", folder / "secret",
                 "--out", folder / "envelopes.json")  # fmt: skip
    assert sealed.exit_code == 0
    fingerprint = Secret.load(folder / "secret").fingerprint
    for file, words in {
        "secret": fingerprint, "left.key": "private key of 'left'", "left.offer": "offer of 'left'", "envelopes.json": "right",
        "server.key": "private key of the server", "server.offer": "offer of the server",
        "plan.json": "with everyone's public keys",
    }.items():  # fmt: skip
        result = run("inspect", folder / file)
        assert result.exit_code == 0
        assert words in result.output
        assert json.loads((folder / file).read_text()).get("value", "no value") not in result.output
    assert run("compare", folder / "secret", fingerprint).exit_code == 0
    refused(run("compare", folder / "secret", fingerprint, "--key", folder / "left.key"), "leave --key out")


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
    assert [line.split()[0] for line in result.stdout.splitlines() if "-way" in line] == ["3-way", "4-way"]
    assert "These figures: NOT PRIVATE: exact statistics of the real tables, do not publish." in result.stderr
    assert "The synthetic table: Private (add or remove one record)" in result.stderr
    assert "across parties" in result.output


def test_steps_and_times_are_told_in_a_pipe_when_asked_for(folder):
    made = synthesize(folder, "--verbose")
    assert made.exit_code == 0, made.output
    lines = [line.partition(" ")[2] for line in made.stderr.splitlines() if line[2:3] == ":"]
    assert {"reading tables", "party left", "global model", "sampling"} <= set(lines)
    assert any(line.startswith("party right: took ") for line in lines)
    silent = synthesize(folder, out=folder / "again.csv")
    assert silent.exit_code == 0
    assert "reading tables" not in silent.output


def test_kernels_that_have_to_be_compiled_first_are_told_in_a_pipe_too(folder, monkeypatch):
    monkeypatch.setattr("vertimrf.kernels.warm.missing", lambda wanted=None: ["one", "two"])
    monkeypatch.setattr("vertimrf.kernels.warm.compile_missing", lambda jobs, told: None)
    assert "Compiling 2 kernels, once on this machine" in synthesize(folder).stderr


@pytest.mark.parametrize("command", ["party", "server", "synthesize"])
def test_a_disk_without_room_is_told_before_the_work(folder, monkeypatch, command):
    """One sentence, no table read, nothing written."""
    from collections import namedtuple

    planned(folder)
    plan = ("--plan", folder / "plan.json")
    monkeypatch.setattr("shutil.disk_usage", lambda _: namedtuple("usage", "total used free")(10**9, 10**9, 100))
    for module in ("arrow", "table"):
        monkeypatch.setattr(f"vertimrf.tables.{module}.open_pieces", lambda *_: pytest.fail("read a table first"))
    before = set(folder.iterdir())
    if command == "party":
        arguments = ("party", folder / "left.csv", *plan, "--key", folder / "left.key", "--secret", folder / "left.secret")
        outcome = run(*arguments, "--id", "id", "--out", folder / "left.message")
    elif command == "server":
        outcome = run("server", folder / "left.message", *plan, "--key", folder / "server.key", "--out", folder / "out.csv")
    else:
        outcome = synthesize(folder)
    refused(outcome, "MB left", "make room or name another folder")
    assert set(folder.iterdir()) == before


def test_what_a_disk_refuses_is_one_sentence(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", str(folder / "plan.json"))

    monkeypatch.setattr("vertimrf.plan.plan.write_text", full)
    outcome = run(
        "plan", "--schema", folder / "schema.toml", "--epsilon", 1, "--expected-records", 4000, "--out", folder / "plan.json"
    )
    refused(outcome, "Cannot write or read", "plan.json: No space left on device.")


def test_a_target_that_protects_little_is_told_in_plain_words(folder):
    def planned_for(epsilon, delta, out):
        outcome = run(
            "plan", "--schema", folder / "schema.toml", "--epsilon", epsilon, "--delta", delta, "--expected-records", 4000,
            "--out", folder / out,
        )  # fmt: skip
        assert outcome.exit_code == 0, outcome.output
        return outcome.stderr

    assert planned_for(1, 1e-6, "fine.json") == ""
    weak = planned_for(1000, 0.001, "weak.json")
    assert "Warning: epsilon 1000 allows that whoever sees the result becomes e^1000 times surer of anything about a pers" in weak
    assert "Warning: delta 0.001 with about 4,000 records allows to give out about 4 whole records as they are" in weak
    assert "2,981 times surer" in planned_for(8, 1e-6, "eight.json")
    priced = run("account", folder / "weak.json")
    assert "that is hardly any protection" in priced.stderr
    assert "about 4 whole records" in priced.stderr
    made = synthesize(folder, epsilon=20.0)
    assert "Warning: epsilon 20 allows" in made.stderr
    refused(synthesize(folder, delta=0.5), "delta must be at most 0.01, not 0.5: to publish that part of all records outright")
    sketches = run("account", "--sketch-keys", 100, "--phantoms", 1000, "--floor", 2, "--ceiling", 14, "--delta", 0.5)
    assert "Warning: delta 0.5 allows to give out that part of all records as they are" in sketches.stderr


def overlapping(folder):
    """Parties of which each lacks a quarter of the people: half of all are at both."""
    pd.read_csv(folder / "left.csv").iloc[1000:].to_csv(folder / "left.csv", index=False)
    right = pd.read_parquet(folder / "right.parquet")
    right[right["id"] < "p03000"].to_parquet(folder / "right.parquet", index=False)


def test_parties_may_hold_different_people(folder):
    """Half of 4,000 people are at both; at epsilon 8 the estimate is 60 records off or so."""
    overlapping(folder)
    options = {"encoder": "count-sketch", "epsilon": 8.0, "json": folder / "report.json", "seed": 1}
    result = synthesize(folder, **options)
    assert result.exit_code == 0, result.output
    assert "Warning: The parties hold different people (left" in result.output
    report = json.loads((folder / "report.json").read_text())
    inner = report["overlap"]["inner"]
    assert report["population"] == "inner"
    assert abs(inner["records"] - 2000) < 5 * inner["error"]
    # The report has a tenth of a record.
    assert report["rows"] == len(pd.read_csv(folder / "out.csv")) == pytest.approx(inner["records"], abs=0.551)
    evaluated = ("evaluate", "--real", folder / "left.csv", folder / "right.parquet", "--synthetic", folder / "out.csv",
                 "--id", "id", "--schema", folder / "schema.toml", "--ways", 2)  # fmt: skip
    result = run(*evaluated, "--json", folder / "tvd.json")
    assert result.exit_code == 0, result.output
    assert "The real tables have 3,000, 3,000 records; 2,000 are compared." in result.output
    assert json.loads((folder / "tvd.json").read_text())["tvd"]["2"] < 0.15

    result = synthesize(folder, population="outer", model=folder / "a.model", **options)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(folder / "out.csv")
    assert list(table.columns) == ["a", "b", "x", "age", "held_by"]
    assert set(table["held_by"]) == {"left", "right", "left+right"}
    assert (table["a"].isna() == (table["held_by"] == "right")).all()
    assert (table["age"].isna() == (table["held_by"] == "left")).all()
    result = run(*evaluated, "--population", "outer", "--json", folder / "tvd.json")
    assert result.exit_code == 0, result.output
    assert json.loads((folder / "tvd.json").read_text())["tvd"]["2"] < 0.15
    result = run("sample", folder / "a.model", "--where", "held_by=left", "--rows", 10, "--out", folder / "more.csv")
    assert result.exit_code == 0, result.output
    assert pd.read_csv(folder / "more.csv")["x"].isna().all()
    assert "held_by" in refused_where(folder, "held_by=nobody")


def refused_where(folder, condition):
    """What is said of a condition that a model cannot fulfil."""
    result = run("sample", folder / "a.model", "--where", condition, "--out", folder / "none.csv")
    refused(result)
    return result.output


def test_a_deployment_of_different_people(folder):
    overlapping(folder)
    plan = planned(folder, "--encoder", "count-sketch", "--population", "outer", epsilon=8)
    assert "population: everybody that any party holds" in plan.output
    run("secret", "seal", "--plan", folder / "plan.json", "--key", folder / "left.key", "--secret", folder / "left.secret",
        "--out", folder / "envelopes.json")  # fmt: skip
    run("secret", "join", folder / "envelopes.json", "--plan", folder / "plan.json", "--key", folder / "right.key",
        "--secret", folder / "right.secret")  # fmt: skip
    for name, table in (("left", "left.csv"), ("right", "right.parquet")):
        result = run("check", folder / table, "--plan", folder / "plan.json", "--name", name, "--id", "id")
        assert result.exit_code == 0, result.output
        result = run("party", folder / table, *own(folder, name), "--out", folder / f"{name}.message")
        assert result.exit_code == 0, result.output
    result = run("server", folder / "left.message", folder / "right.message", "--plan", folder / "plan.json",
                 "--key", folder / "server.key", "--out", folder / "out.csv", "--model", folder / "a.model")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "hold different people" in result.output
    assert set(pd.read_csv(folder / "out.csv")["held_by"]) == {"left", "right", "left+right"}
    result = run("sample", folder / "a.model", "--where", "held_by=left+right", "--out", folder / "inner.csv")
    assert result.exit_code == 0, result.output
    assert not pd.read_csv(folder / "inner.csv").isna().any(axis=None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoder": "grr", "population": "outer"}, ["outer population needs sketches"]),
        ({"tables": 1, "population": "outer"}, ["One holder", "--population"]),
    ],
)
def test_populations_that_cannot_be(folder, options, words):
    if "tables" in options:
        options = options | {"tables": [folder / "left.csv"], "schema": None}
    refused(synthesize(folder, **options), *words)


def test_results_that_would_overwrite_each_other_or_what_is_read_are_refused(folder):
    refused(synthesize(folder, model=folder / "out.csv"), "Two results would be written to", "out.csv")
    refused(synthesize(folder, json=folder / "schema.toml"), "schema.toml is read and would be overwritten")
    planned(folder)
    plan = (folder / "plan.json").read_bytes()
    outcome = run("server", folder / "left.message", "--plan", folder / "plan.json", "--key", folder / "server.key",
                  "--out", folder / "out.csv", "--json", folder / "plan.json")  # fmt: skip
    refused(outcome, "plan.json is read and would be overwritten")
    assert (folder / "plan.json").read_bytes() == plan
