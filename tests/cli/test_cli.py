"""The command line as a user meets it: the main jobs, and every bad input as one sentence with exit code 2."""

import json
import shutil
from collections import namedtuple
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from builders import schema_of
from commands import good, run

from vertimrf.cli import trial
from vertimrf.party.party import Party


@pytest.fixture
def folder(tmp_path):
    """Two parties' tables and their schema."""
    rng = np.random.default_rng(0)
    rows = 4000
    ids = [f"p{i:05}" for i in range(rows)]
    a = rng.integers(0, 3, rows)
    pd.DataFrame({"id": ids, "a": a, "b": rng.integers(0, 2, rows)}).to_csv(
        tmp_path / "left.csv", index=False
    )
    right = pd.DataFrame(
        {"id": ids, "x": np.array(["red", "green", "blue"])[a], "age": rng.integers(0, 90, rows)}
    )
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


def synthesize(folder, *more, **options):
    settings = {
        "id": "id",
        "schema": folder / "schema.toml",
        "epsilon": 2.0,
        "out": folder / "out.csv",
        "message-mb": None if options.keys() & {"encoder", "tables"} else 1,
    } | options
    tables = settings.pop("tables", [folder / "left.csv", folder / "right.parquet"])
    flags = [
        part
        for name, value in settings.items()
        if value is not None
        for part in (f"--{name}", value)
    ]
    return run("synthesize", *tables, *flags, *more)


def evaluated(folder, *more):
    """The synthetic table beside both parties'."""
    real = f"--real {folder}/left.csv --real {folder}/right.parquet --id id"
    made = () if "--synthetic" in more else ("--synthetic", folder / "out.csv")
    return run(f"evaluate {real} --schema {folder}/schema.toml", *made, *more)


def went_well(result):
    """A command's result, which ended well."""
    assert result.exit_code == 0, result.output
    return result


def refused(result, *words):
    """One sentence, exit code 2, no traceback."""
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    lines = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, result.output
    for word in words:
        assert word in lines[0], lines[0]


def test_synthesize_then_evaluate(folder):
    went_well(synthesize(folder, json=folder / "report.json", seed=1))
    table = pd.read_csv(folder / "out.csv")
    assert list(table.columns) == ["a", "b", "x", "age"]
    assert set(table["x"]) <= {"red", "green", "blue"}
    assert table["age"].between(0, 90).all()
    # x is a function of a at the other party: independent parties would agree on a third of the rows.
    assert (table["x"] == np.array(["red", "green", "blue"])[table["a"]]).mean() > 0.8
    report = json.loads((folder / "report.json").read_text())
    assert report["epsilon"] <= 2.0
    for key in (
        "delta",
        "ledger",
        "seconds",
        "message_bytes",
        "cliques",
        "junction_tree_cells",
        "private",
        "colluding_epsilon",
    ):
        assert key in report
    assert sum(entry["share"] for entry in report["ledger"]) == pytest.approx(1)
    assert set(report["message_bytes"]) == {"left", "right"}
    went_well(evaluated(folder, "--ways 2,3 --json", folder / "tvd.json"))
    assert 0 < json.loads((folder / "tvd.json").read_text())["tvd"]["2"] < 0.1


def test_synthesize_says_what_is_to_be_had_before_it_measures_and_what_is_known_after(
    folder, monkeypatch
):
    order = []
    monkeypatch.setattr(Party, "run", _noted(order, "measured", Party.run))
    monkeypatch.setattr(trial, "print_verdict", _noted(order, "verdict", trial.print_verdict))
    printed = went_well(synthesize(folder)).stderr
    assert order[:2] == ["verdict", "measured"]
    assert "three columns together are predicted to be wrong for" in printed
    assert "pairs of columns are predicted to be known" in printed
    assert "are known to depend on each other" in printed


def _noted(order, what, function):
    """A function that notes that it was called."""

    def noting(*some, **named):
        order.append(what)
        return function(*some, **named)

    return noting


def test_records_that_do_not_fit_are_a_warning(folder):
    left = pd.read_csv(folder / "left.csv")
    left.loc[:2, "a"] = 99
    left.to_csv(folder / "some.csv", index=False)
    tables = [folder / "some.csv", folder / "right.parquet"]
    printed = went_well(synthesize(folder, tables=tables)).stderr
    assert "Warning: 3 records do not fit and are left out" in printed


def test_one_table_is_dealt_to_parties(folder):
    left = pd.read_csv(folder / "left.csv").assign(c=0)
    left.to_csv(folder / "one.csv.gz", index=False)
    schema_of(one={"a": 3, "b": 2}, two={"c": 1}).save(folder / "dealt.json")
    went_well(
        synthesize(folder, tables=[folder / "one.csv.gz"], schema=folder / "dealt.json", rows=50)
    )
    assert len(pd.read_csv(folder / "out.csv")) == 50


def priced(folder, *options, epsilon=2):
    """A plan to price and to check tables with."""
    known = f"--schema {folder}/schema.toml --epsilon {epsilon} --expected-records 4000"
    return good(f"plan {known}", *options, f"--out {folder}/plan.json")


TABLES = {"left": "left.csv", "right": "right.parquet"}


def started(folder, *options, epsilon=2, tables=TABLES):
    """Everybody's run folder, as far as the plan, which all have; returns its fingerprint."""
    (folder / "x").mkdir()
    known = (
        f"--schema {folder}/schema.toml --epsilon {epsilon} --expected-records 4000 --message-mb 1"
    )
    good(f"run server {folder}/server", known, *options, f"--exchange {folder}/x")
    for name, table in tables.items():
        words = f"--name {name} --table {folder}/{table} --id id"
        good(f"run party {folder}/{name}", words, f"--exchange {folder}/x")
    good(f"run server {folder}/server")
    for name in tables:
        good(f"run party {folder}/{name}")
    return json.loads(good(f"status {folder}/server --json -"))["plan"]


def finished(folder):
    """From the accepted plan to the table; returns what the server says."""
    for name in ("left", "right"):
        good(f"run party {folder}/{name}")
        good(f"run server {folder}/server")
    good(f"run party {folder}/right")
    return good(f"run server {folder}/server")


def test_inspect_opens_a_message_with_the_key_of_its_receiver_alone(folder):
    fingerprint = started(folder)
    for name in TABLES:
        good(f"accept --anyway {folder}/{name}", fingerprint.lower().replace("-", " "))
    assert "done   result" in finished(folder)
    received = folder / "server" / "received" / "left" / "message"
    header = run(f"inspect {received}").output
    assert "A sealed party message" in header
    assert f"from 'left' for the server, under the plan {fingerprint}" in header
    assert "marginal" not in header
    plan = f"--plan {folder}/server/plan"
    inside = run(f"inspect {received}", plan, f"--key {folder}/server/key").output
    assert "proved to be from 'left'" in inside
    assert "marginal0" in inside
    refused(run(f"inspect {received}", plan), "both")
    refused(run(f"inspect {received}", plan, f"--key {folder}/right/key"), "is for the server")
    received.write_bytes(received.read_bytes()[:-7])
    refused(run(f"inspect {received}", plan, f"--key {folder}/server/key"), "message", "truncated")


def test_parties_find_out_that_their_ids_are_written_differently(folder):
    left, right = pd.read_csv(folder / "left.csv"), pd.read_parquet(folder / "right.parquet")
    left["id"] = [f" P{i:07}" for i in range(len(left))]
    left.to_csv(folder / "padded.csv", index=False)
    right["id"] = [f"p{int(text[1:]):07}" for text in right["id"]]
    right.to_csv(folder / "right.csv", index=False)
    fingerprint = started(folder, tables={"left": "padded.csv", "right": "right.csv"})
    sample = f"align {folder}/left --out {folder}/left.ids"
    refused(run(sample), "does not have the parties' secret yet", "waits for you")
    for name in TABLES:
        good(f"accept {folder}/{name} {fingerprint} --anyway")
    assert "which of their people are among 4,000 of yours" in good(sample)
    # Only the other party can open it, and nothing of an id can be read in it.
    sealed = (folder / "left.ids").read_text()
    assert list(json.loads(sealed)["envelopes"]) == ["right"]
    compared = f"align {folder}/right --with {folder}/left.ids"
    refused(
        run(compared), "does not have the parties' secret yet", "waits for the envelope of 'left'"
    )
    good(f"run server {folder}/server")
    assert good(compared).splitlines() == [
        "left: 0 of your 4,000 sampled ids match as they are written.",
        "  4,000 match with this id_format in run.toml: none here, strip,lower at left.",
    ]
    refused(run(f"align {folder}/left --with {folder}/left.ids"), "nothing for 'left'")
    refused(run(f"align {folder}/left"), "--out", "--with")
    refused(run(f"align {folder}/left --with {folder}/server/plan"), "is no id sample")
    refused(
        run(f"align {folder}/left --out {folder}/padded.csv"),
        "padded.csv is read and would be overwritten",
    )
    changed = json.loads(sealed)
    changed["envelopes"]["right"] = changed["envelopes"]["right"][:-8] + "AAAAAAA="
    (folder / "changed.ids").write_text(json.dumps(changed))
    refused(run(f"align {folder}/right --with {folder}/changed.ids"), "cannot be opened")
    # Nothing was released by any of this.
    sent = sorted(path.name for path in (folder / "x" / "parties").rglob("*") if path.is_file())
    assert sent == ["envelopes", "offer", "offer"]
    # So written, and checked first, both can run.
    refused(
        run(f"run party {folder}/left --id-format strip,lower"),
        "run.toml says how the table is read: edit it there",
    )
    settings = folder / "left" / "run.toml"
    settings.write_text(
        settings.read_text().replace("id_format = []", 'id_format = ["strip", "lower"]')
    )
    for name in TABLES:
        assert "is ready for the plan" in good(f"check {folder}/{name}")
    # Read in another way, it is another table: the run waits for the operator's word on it.
    assert "run.toml edited, after you accepted" in good(f"run party {folder}/left")
    good(f"accept {folder}/left {fingerprint} --anyway")
    finished(folder)
    table = pd.read_parquet(folder / "server" / "result" / "synthetic.parquet")
    assert (table["x"] == np.array(["red", "green", "blue"])[table["a"]]).mean() > 0.8
    # Afterwards as well, and from the same secret.
    assert "left: 0 of your 4,000" in good(compared)


def test_a_run_folder_is_checked_by_its_own_settings(folder):
    (folder / "x").mkdir()
    words = f"--name left --table {folder}/left.csv --id id --exchange {folder}/x"
    good(f"run party {folder}/left", words)
    refused(run(f"check {folder}/left"), "No plan has come to")
    for more in (("--id", "id"), ("--delimiter", ";")):
        refused(run(f"check {folder}/left", *more), "run.toml", "leave the options out")
    refused(
        run(f"check {folder}/left.csv --id id"),
        "left.csv is no run folder",
        "give --schema or --plan",
    )
    (folder / "left" / "run.toml").unlink()
    shutil.rmtree(folder / "left")
    shutil.rmtree(folder / "x")
    started(folder)
    assert "left.csv is ready for the plan" in good(f"check {folder}/left")
    # Nor is a second table beside it left out in silence.
    both = f"--real {folder}/left --real {folder}/right.parquet"
    for compared in (f"evaluate --synthetic {folder}/left.csv", f"report x --out {folder}/x.html"):
        refused(run(compared, both), "run.toml", "leave the options out")
    pd.read_csv(folder / "left.csv").assign(a=9).to_csv(folder / "left.csv", index=False)
    refused(run(f"check {folder}/left"), "1 problem")
    refused(run(f"check {folder}/server"), "not of a party")


def test_a_check_finds_all_problems_at_once_and_releases_nothing(folder):
    priced(folder)
    table = pd.read_parquet(folder / "right.parquet").head(1000)
    table.loc[table.index[0], "x"] = "violet"
    table.loc[table.index[1], "age"] = 91
    table.loc[table.index[2], "id"] = table.loc[table.index[3], "id"]
    table["more"] = 1
    table.to_csv(folder / "bad.csv", index=False)
    before = set(folder.iterdir())
    result = run(f"check {folder}/bad.csv --plan {folder}/plan.json --name right --id id")
    refused(result, "3 problems", "Nothing was released")
    problems = [line for line in result.output.splitlines() if line.startswith("Problem: ")]
    expected = ("holds 'violet'", "holds '91'", "repeats an id")
    for problem, words in zip(problems, expected, strict=True):
        assert words in problem
    assert "1,000 records, 2 attributes" in result.output
    assert "left out, because the schema does not have it: column 'more'" in result.output
    assert "The plan expects 4,000 records" in result.output
    assert set(folder.iterdir()) == before
    checked = f"check {folder}/left.csv --plan {folder}/plan.json"
    refused(run(checked, "--name middle --id id"), "no party 'middle'")
    lone = run(checked, "--name left --id who")
    assert "has no id column 'who'" in lone.output


def test_tables_of_other_dialects_and_more_columns(folder):
    priced(folder)
    left = pd.read_csv(folder / "left.csv")
    left.assign(ward="Gynäkologie").to_csv(
        folder / "dialect.csv", index=False, sep=";", encoding="latin-1"
    )
    checked = f"check {folder}/dialect.csv --plan {folder}/plan.json --name left --id id"
    dialect = "--delimiter ; --encoding latin-1"
    # The header has semicolons. A wrong delimiter and a wrong encoding are the user's to correct.
    assert "is ready for the plan" in good(checked)
    refused(run(checked, "--delimiter ,"), "problems")
    assert "has no id column 'id'" in run(checked, "--delimiter ,").output
    result = good(checked, dialect)
    assert "the schema does not have it: column 'ward'" in result
    assert "is ready for the plan" in result
    refused(run(checked, "--delimiter ;;"), "one ASCII character")
    refused(run(checked, "--encoding klingon"), "no text encoding 'klingon'")
    good(
        f"schema draft {folder}/dialect.csv --id id",
        dialect,
        f"--out {folder}/drafted.toml",
    )
    assert "Gynäkologie" in (folder / "drafted.toml").read_text()


def test_parts_of_a_schema_are_drafted_apart_and_merged(folder):
    for table, name, more in (
        ("left.csv", "left", ()),
        ("right.parquet", "right", ("--drop", "age")),
    ):
        good(
            f"schema draft {folder}/{table} --id id --name {name}",
            *more,
            f"--out {folder}/{name}.toml",
        )
    merged = run(
        f"schema merge {folder}/left.toml {folder}/right.toml --out {folder}/both.toml",
    )
    assert "3 attributes of left, right" in merged.output
    assert "set public = true" in merged.output
    refused(
        run(
            f"schema merge {folder}/left.toml {folder}/right.toml --out {folder}/both.toml",
        ),
        "may hold edits",
    )
    again = folder / "again.toml"
    again.write_text((folder / "left.toml").read_text())
    refused(
        run(f"schema merge {folder}/left.toml {again} --out {folder}/c.toml"),
        "Party 'left' is in",
        "again.toml",
    )


def test_a_plan_is_priced_and_kept_where_that_is_asked_for(folder):
    before = set(folder.iterdir())
    known = f"--schema {folder}/schema.toml --epsilon 2 --expected-records 4000"
    assert "For pricing" in good(f"plan {known}")
    assert json.loads(good(f"plan {known}", "--json -"))["entries"]
    assert set(folder.iterdir()) == before
    priced(folder)
    assert "without public keys" in run(f"inspect {folder}/plan.json").output
    assert "Total: epsilon" in good(f"plan {folder}/plan.json")
    refused(
        run(f"plan --schema {folder}/schema.toml"),
        "A new plan also needs --epsilon, --expected-records",
    )
    for more in ("--schema schema.toml", "--epsilon 2", "--tau 50", "--out other.json"):
        refused(run(f"plan {folder}/plan.json", more), "priced as they are")
    refused(
        run(f"plan {folder}/plan.json --json {folder}/plan.json"),
        "plan.json is read and would be overwritten",
    )


def test_replaced_records_and_a_large_delta_are_noted_everywhere(folder):
    files = {"out": folder / "out.parquet", "json": folder / "report.json"}
    options = {"encoder": "grr", "delta": 0.005}
    result = went_well(synthesize(folder, "--expected-records", 4000, **options, **files))
    for text in (
        result.output,
        run(f"inspect {folder}/out.parquet").output,
        run(f"inspect {folder}/report.json").output,
    ):
        assert "Private (replace one record)" in text
        assert "Note: the exact number of ids is published." in text
        assert "Note: delta is above 1 / expected records" in text


def test_bad_tables_are_one_sentence_and_nothing_is_written(folder):
    pd.read_csv(folder / "left.csv").drop(columns="b").to_csv(folder / "left.csv", index=False)
    before = set(folder.iterdir())
    refused(synthesize(folder, json=folder / "report.json"), "left.csv", "'b'")
    assert set(folder.iterdir()) == before


def test_records_that_do_not_fit_are_left_out_and_told_of(folder):
    left = pd.read_csv(folder / "left.csv")
    pd.concat([left, left.iloc[:1]]).to_csv(folder / "left.csv", index=False)
    made = went_well(synthesize(folder, json=folder / "report.json"))
    for words in ("left out; this stays here", "left.csv", "1 record repeats", "p00000"):
        assert words in made.stderr
    assert "left out" not in made.stdout + (folder / "report.json").read_text()


def test_files_that_are_not_there_or_no_tables(folder):
    refused(synthesize(folder, tables=[folder / "left.csv", folder / "nowhere.csv"]), "nowhere.csv")
    (folder / "noise.parquet").write_bytes(b"not a table")
    refused(
        synthesize(folder, tables=[folder / "left.csv", folder / "noise.parquet"]), "noise.parquet"
    )
    refused(synthesize(folder, schema=folder / "nowhere.toml"), "nowhere.toml")
    refused(synthesize(folder, out=folder / "out.xyz"), "out.xyz")
    refused(synthesize(folder, tables=[folder / "left.csv"]), "left.csv")


def test_bad_options(folder):
    """Numbers out of range are in `test_limits.py`, and outputs that cannot be written in `test_outputs.py`."""
    refused(synthesize(folder, encoder="magic"), "magic")
    refused(evaluated(folder, "--synthetic", folder / "none.csv"), "none.csv")
    refused(run(f"demo --folder {folder}/left.csv"), "is a file")


def test_inspect_tells_the_files_of_the_agreement(folder):
    from vertimrf.party.secret import Secret

    good(f"accept --anyway {folder}/left", started(folder))
    good(f"run party {folder}/left")
    fingerprint = Secret.load(folder / "left" / "secret").fingerprint
    for file, words in {
        "left/secret": fingerprint,
        "left/key": "private key of 'left'",
        "server/received/left/offer": "offer of 'left'",
        "left/envelopes": "right",
        "server/key": "private key of the server",
        "left/received/plan": "with everyone's public keys",
    }.items():
        assert words in good(f"inspect {folder}/{file}")
        assert json.loads((folder / file).read_text()).get("value", "no value") not in good(
            f"inspect {folder}/{file}"
        )


def test_the_demo_refuses_before_its_work(folder):
    refused(run(f"demo --folder {folder}/demo --epsilon 0"), "above 0")
    refused(run(f"demo --folder {folder}/left.csv"), "is a file")
    assert not (folder / "demo").exists()


def test_evaluate_takes_as_many_ways_as_there_are_attributes(folder):
    assert synthesize(folder, rows=500).exit_code == 0
    result = went_well(evaluated(folder))
    assert [line.split()[0] for line in result.stdout.splitlines() if "-way" in line] == [
        "3-way",
        "4-way",
    ]
    assert (
        "These figures: NOT PRIVATE: exact statistics of the real tables, do not publish."
        in result.stderr
    )
    assert "The synthetic table: Private (add or remove one record)" in result.stderr
    assert "across parties" in result.output


def test_steps_and_times_are_told_in_a_pipe_when_asked_for(folder):
    made = went_well(synthesize(folder, "--verbose"))
    lines = [line.partition(" ")[2] for line in made.stderr.splitlines() if line[2:3] == ":"]
    assert {"reading tables", "parties left, right", "global model", "sampling"} <= set(lines)
    assert any(line.startswith("parties left, right: took ") for line in lines)
    silent = went_well(synthesize(folder, out=folder / "again.csv"))
    assert "reading tables" not in silent.output


def test_kernels_that_have_to_be_compiled_first_are_told_in_a_pipe_too(folder, monkeypatch):
    monkeypatch.setattr("vertimrf.kernels.warm.missing", lambda wanted=None: ["one", "two"])
    monkeypatch.setattr("vertimrf.kernels.warm.compile_missing", lambda jobs, say: None)
    assert "Compiling 2 kernels, once on this machine" in synthesize(folder).stderr


@contextmanager
def full_disk():
    """There is no room, and the server's work must not begin."""
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: usage)
        patch.setattr("vertimrf.server.server.Server.run", lambda *_: pytest.fail("worked first"))
        yield patch


def without_room(folder, outcome):
    """One sentence, nothing written."""
    refused(outcome, "MB left", "make room or name another folder")
    assert not list(folder.rglob("synthetic*"))
    assert not (folder / "out.csv").exists()


def test_a_disk_without_room_is_told_before_a_table_is_read(folder):
    with full_disk() as patch:
        for module in ("sources", "columns"):
            patch.setattr(
                f"vertimrf.tables.{module}.open_pieces", lambda *_: pytest.fail("read a table")
            )
        without_room(folder, synthesize(folder))


def test_a_disk_without_room_is_told_every_role_before_the_work(folder):
    fingerprint, message = started(folder), folder / "x" / "parties" / "left" / "message"
    for name in TABLES:
        good(f"accept {folder}/{name} {fingerprint} --anyway")
    with full_disk():
        checked = run(f"check {folder}/left")
        refused(checked, "1 problem")
        assert "MB left" in checked.output
        # A run's table is read first, as what is left out of it is said in any case.
        without_room(folder, run(f"run party {folder}/left"))
        assert not message.exists()
    good(f"run party {folder}/left")
    assert message.exists()
    good(f"run server {folder}/server")
    good(f"run party {folder}/right")
    with full_disk():
        without_room(folder, run(f"run server {folder}/server"))


def test_a_target_that_protects_little_is_told_in_plain_words(folder):
    def planned_for(epsilon, delta, out):
        outcome = went_well(
            run(
                f"plan --schema {folder}/schema.toml --epsilon {epsilon} --delta {delta} --expected-records 4000 --out {folder}/{out}",
            )
        )
        return outcome.stderr

    assert planned_for(1, 1e-6, "fine.json") == ""
    weak = planned_for(1000, 0.001, "weak.json")
    assert (
        "Warning: epsilon 1000 allows that whoever sees the result becomes e^1000 times surer of anything about a pers"
        in weak
    )
    assert (
        "Warning: delta 0.001 with about 4,000 records allows to give out about 4 whole records as they are"
        in weak
    )
    assert "2,981 times surer" in planned_for(8, 1e-6, "eight.json")
    again = run(f"plan {folder}/weak.json")
    assert "that is hardly any protection" in again.stderr
    assert "about 4 whole records" in again.stderr
    made = synthesize(folder, epsilon=20.0)
    assert "Warning: epsilon 20 allows" in made.stderr
    refused(
        synthesize(folder, delta=0.5),
        "delta must be at most 0.01, not 0.5: to publish that part of all records outright",
    )


def overlapping(folder):
    """Parties of which each lacks a quarter of the people: half of all are at both."""
    pd.read_csv(folder / "left.csv").iloc[1000:].to_csv(folder / "left.csv", index=False)
    right = pd.read_parquet(folder / "right.parquet")
    right[right["id"] < "p03000"].to_parquet(folder / "right.parquet", index=False)


def test_parties_may_hold_different_people(folder):
    """Half of 4,000 people are at both; at epsilon 8 the estimate is 60 records off or so."""
    overlapping(folder)
    options = {"encoder": "count-sketch", "epsilon": 8.0, "json": folder / "report.json", "seed": 1}
    result = went_well(synthesize(folder, **options))
    assert "Warning: The parties hold different people (left" in result.output
    report = json.loads((folder / "report.json").read_text())
    inner = report["overlap"]["inner"]
    assert report["population"] == "inner"
    assert abs(inner["records"] - 2000) < 5 * inner["error"]
    # The report has a tenth of a record.
    assert (
        report["rows"]
        == len(pd.read_csv(folder / "out.csv"))
        == pytest.approx(inner["records"], abs=0.551)
    )
    figures = f"--ways 2 --json {folder}/tvd.json"
    result = went_well(evaluated(folder, figures))
    assert "The real tables have 3,000, 3,000 records; 2,000 are compared." in result.output
    assert json.loads((folder / "tvd.json").read_text())["tvd"]["2"] < 0.15

    went_well(synthesize(folder, population="outer", model=folder / "a.model", **options))
    table = pd.read_csv(folder / "out.csv")
    assert list(table.columns) == ["a", "b", "x", "age", "held_by"]
    assert set(table["held_by"]) == {"left", "right", "left+right"}
    assert (table["a"].isna() == (table["held_by"] == "right")).all()
    assert (table["age"].isna() == (table["held_by"] == "left")).all()
    went_well(evaluated(folder, "--population outer", figures))
    assert json.loads((folder / "tvd.json").read_text())["tvd"]["2"] < 0.15
    with full_disk():
        refused(run(f"sample {folder}/a.model --out {folder}/none.csv"), "0 MB are needed")
    good(f"sample {folder}/a.model --where held_by=left --rows 10 --out {folder}/more.csv")
    assert pd.read_csv(folder / "more.csv")["x"].isna().all()
    none = f"sample {folder}/a.model --where held_by=nobody --out {folder}/none.csv"
    refused(run(none), "held_by")


def test_a_deployment_of_different_people(folder):
    overlapping(folder)
    options = "--encoder count-sketch --population outer"
    assert "population: everybody that any party holds" in priced(folder, options, epsilon=8)
    fingerprint = started(folder, options, "--out out.csv", epsilon=8)
    for name in TABLES:
        good(f"check {folder}/{name}")
        good(f"accept {folder}/{name} {fingerprint} --anyway")
    finished(folder)
    result = folder / "server" / "result"
    assert set(pd.read_csv(result / "out.csv")["held_by"]) == {"left", "right", "left+right"}
    good(f"sample {result}/model --where held_by=left+right --out {folder}/inner.csv")
    assert not pd.read_csv(folder / "inner.csv").isna().any(axis=None)
