"""The path of a new user, as the pages say it, has no dead end."""

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from commands import good, refused, run

from vertimrf import Schema, Synthesizer

NOTE = "the schema does not have it: column 'note'"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table as people have it: with ids, and a column that a draft leaves out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 3000)
    smoker = np.where(rng.random(3000) < 0.9 - age / 125, "yes", "no")
    note = [f"Seen by {name:x}" for name in rng.integers(0, 1 << 60, 3000)]
    people = pd.DataFrame({"age": age, "smoker": smoker, "ward": age // 25, "note": note})
    people.to_csv("people.csv", index_label="key")
    return tmp_path


def test_a_draft_that_leaves_a_column_out_serves_every_command(folder, caplog):
    pytest.importorskip("jinja2")
    assert "column 'note' has 3,000 distinct values" in good(
        "schema draft people.csv --id key --out s.toml"
    )
    out = "--epsilon 1 --out made.csv --model m --json r.json"
    for words in (
        "check people.csv --schema s.toml --id key",
        f"synthesize people.csv --schema s.toml --id key {out}",
        "evaluate --real people.csv --synthetic made.csv --schema s.toml --id key",
        "report m r.json --real people.csv --id key --out page.html",
    ):
        assert good(words).count(NOTE) == 1, words
    # One table has no other to be joined with, so it needs no id.
    good("evaluate --real people.csv --synthetic made.csv")
    caplog.clear()
    Synthesizer(Schema.load("s.toml"), id="key").fit("people.csv", epsilon=1.0)
    assert [NOTE in line for line in caplog.messages] == [True]


def test_the_domains_that_a_run_chose_serve_its_evaluation(folder):
    (folder / "s.toml").write_text(
        """
[[party]]
name = "clinic"
[[party.attribute]]
name = "smoker"
values = "private"
[[party.attribute]]
name = "note"
values = "private"
[[party.attribute]]
name = "ward"
codes = 4
[[impossible]]
note = "nobody"
ward = 1
"""
    )
    assert "is ready for s.toml" in good("check people.csv --schema s.toml")
    out = good("synthesize people.csv --schema s.toml --epsilon 4 --out made.csv")
    assert "domain of 'note' found nothing" in out
    assert set(pd.read_csv("made.csv")["note"]) == {"other"}
    assert "no" in Schema.load("made.csv.schema.toml").attributes[0].values
    for schema in ("", "--schema s.toml"):
        assert "2-way TVD" in good("evaluate --real people.csv --synthetic made.csv", schema)


def test_a_column_of_three_values_names_no_record(folder):
    assert "only 4 ids" in refused("schema draft people.csv --id ward --out s.toml")
    good("schema draft people.csv --drop note --drop ward --out s.toml")
    assert "only 4 ids" in refused("check people.csv --schema s.toml --id ward")
    # A release that stopped for it would depend on records. Its holder is told.
    made = "synthesize people.csv --schema s.toml --id ward --epsilon 1 --out made.csv"
    assert "only 4 ids" in good(made)


def test_a_column_that_another_party_holds_is_left_out_as_in_the_run(folder):
    people = pd.read_csv("people.csv")
    people[["key", "ward"]].to_csv("insurer.csv", index=False)
    people.to_csv("hospital.csv", index=False)
    good("schema draft people.csv --id key --drop ward --name hospital --out h.toml")
    good("schema draft insurer.csv --id key --name insurer --out i.toml")
    good("schema merge h.toml i.toml --out s.toml")
    tables = "hospital.csv insurer.csv --id key --schema s.toml"
    said = good(f"synthesize {tables} --epsilon 4 --out made.csv")
    assert "does not have it: column 'ward', 'note'" in said
    real = "--real hospital.csv --real insurer.csv"
    said = good(f"evaluate {real} --id key --synthetic made.csv --schema s.toml")
    assert "does not have it: column 'ward', 'note'" in said


HOSPITAL = """
[[party]]
name = "hospital"
[[party.attribute]]
name = "smoker"
values = ["no", "yes"]
"""
INSURER = """
[[party]]
name = "insurer"
[[party.attribute]]
name = "ward"
codes = 4
"""


@pytest.fixture
def two(folder):
    """A hospital that writes B000123, and an insurer that writes 123.0 for the same person."""
    people = pd.read_csv("people.csv")
    key = [f"B{key:06d}" for key in people["key"]]
    people.assign(key=key)[["key", "smoker"]].to_csv("hospital.csv", index=False)
    people.assign(key=people["key"].astype(float))[["key", "ward"]].to_csv(
        "insurer.csv", index=False
    )
    return folder


def test_ids_written_in_two_ways_are_refused_before_there_is_a_plan(two):
    for name in ("hospital", "insurer"):
        good(f"schema draft {name}.csv --id key --name {name} --out {name}.toml")
    said = refused("schema merge hospital.toml insurer.toml --out s.toml")
    assert "of hospital the form 'A000000', and of insurer the form '9.9'" in said
    assert not (two / "s.toml").exists()
    # Forms are drafted from the data like domains, and released in the same way.
    assert "public = false" in (two / "hospital.toml").read_text()
    assert "the form of ids" in good("schema draft hospital.csv --id key --out h.toml")
    # No character of an id is copied.
    assert "B0" not in (two / "hospital.toml").read_text()
    said = good("schema draft hospital.csv insurer.csv --id key --out both.toml")
    assert "ids of different forms, 'A000000' at party1, '9.9' at party2" in said
    assert Schema.load("both.toml").ids is None


def test_check_says_how_many_ids_do_not_fit(two):
    (two / "hospital.toml").write_text(f'ids = "A000000"{HOSPITAL}')
    (two / "insurer.toml").write_text(INSURER)
    said = good("schema merge hospital.toml insurer.toml --out s.toml")
    assert "insurer.toml does not state the form of its ids" in said
    assert "is ready" in good("check hospital.csv --schema s.toml --name hospital --id key")
    said = refused("check insurer.csv --schema s.toml --name insurer --id key")
    assert "3,000 of 3,000 ids do not have the form 'A000000'" in said
    assert "The form of ids: '9.9'" in said
    (two / "none.toml").write_text(HOSPITAL + INSURER)
    said = good("check insurer.csv --schema none.toml --name insurer --id key")
    assert "does not state the form of ids" in said
    assert "vertimrf align" in said


def begin(folder, schema):
    """Both parties and the server, up to the plan, whose fingerprint it gives."""
    (folder / "x").mkdir()
    (folder / "s.toml").write_text(schema)
    good("run server server --schema s.toml --epsilon 1 --expected-records 3000 --exchange x")
    for name in ("hospital", "insurer"):
        good(f"run party {name} --name {name} --table {name}.csv --id key --exchange x")
    good("run server server")
    for name in ("hospital", "insurer"):
        good(f"run party {name}")
    return json.loads(good("status server --json -"))["plan"]


def test_the_form_of_ids_is_shown_where_the_fingerprint_is(two):
    fingerprint = begin(two, f'ids = "A000000"{HOSPITAL}{INSURER}')
    form = "of the form 'A000000'"
    for words in ("inspect server/plan", "status hospital"):
        assert form in good(words), words
    assert "3,000 of 3,000 ids do not have" in refused("check insurer")
    assert f"{form}. " in good(f"accept hospital {fingerprint}")


def to_messages(fingerprint):
    """From the plan to both messages at the server."""
    for name in ("hospital", "insurer"):
        good(f"accept {name} {fingerprint}")
    good("run party hospital")
    run("run server server")
    good("run party insurer")
    assert "asks for it" in good("status insurer")


def test_after_a_bad_match_every_role_says_so_and_names_the_remedy(two):
    to_messages(begin(two, HOSPITAL + INSURER))
    assert "align" in refused("run server server")
    for name in ("hospital", "insurer"):
        good(f"run party {name}")
    for role in ("hospital", "insurer", "server"):
        said = good(f"status {role}")
        assert "FAR FEWER people in common than the plan expects" in said
        assert "vertimrf align" in said
    # In one process, the end of the run says it.
    tables = "hospital.csv insurer.csv --id key --schema s.toml --epsilon 1 --out made.csv"
    assert "align" in refused(f"synthesize {tables}")


def test_after_a_good_match_every_role_says_so(two):
    people = pd.read_csv("people.csv")
    people["key"] = people["key"].astype(float)
    people[["key", "smoker"]].to_csv("hospital.csv", index=False)
    to_messages(begin(two, HOSPITAL + INSURER))
    good("run server server")
    for role in ("hospital", "insurer", "server"):
        if role != "server":
            good(f"run party {role}")
        assert "the ids of the parties match" in good(f"status {role}")


def test_a_party_name_that_the_run_does_not_have_is_refused_at_once_at_both_sides(two):
    (two / "s.toml").write_text(HOSPITAL + INSURER)
    good("run server server --schema s.toml --epsilon 1 --expected-records 3000 --exchange x")
    start = "--table hospital.csv --id key --exchange x"
    said = refused(f"run party clinic --name hospitl {start}")
    assert "'hospitl' is no party of this run, whose parties are hospital, insurer" in said
    assert "'hospitl' is no party of this run" in good("status clinic")
    # Nothing of it went to the others.
    assert not (two / "x" / "parties").exists()
    good(f"run party hospital --name hospital {start}")
    # A party that came before the server is named there.
    (two / "x" / "parties" / "hospitl").mkdir()
    said = good("run server server")
    assert "x/parties/hospitl is of no party of this run" in said
    assert "x/parties/hospitl is of no party of this run" in good("status server")
    (two / "x" / "parties" / "hospitl").rmdir()
    good("run server server")
    assert "no party of this run" not in good("status server")


@pytest.mark.parametrize("content", [b"", b"[", b'{"a": 1}'])
def test_a_list_of_parties_that_somebody_broke_stops_nobody(two, content):
    (two / "x" / "server").mkdir(parents=True)
    (two / "x" / "server" / "of.parties").write_bytes(
        content + hashlib.sha256(content).digest() if content else content
    )
    good("run party h --name hospital --table hospital.csv --id key --exchange x")


def test_the_folder_for_files_is_made_with_the_run_and_never_again(two):
    (two / "s.toml").write_text(HOSPITAL + INSURER)
    good("run server server --schema s.toml --epsilon 1 --expected-records 3000 --exchange x")
    assert (two / "x").is_dir()
    shutil.rmtree(two / "x")
    # A share that is not mounted is not replaced by a folder.
    for words in ("run server server", "run party h --name h --table hospital.csv --id key"):
        place = "" if "server" in words else "--exchange gone/x"
        assert "There is no folder" in refused(f"{words} {place}")
    assert not (two / "x").exists()


def test_edits_of_the_settings_show_in_every_status(two):
    begin(two, HOSPITAL + INSURER)
    for role in ("hospital", "server"):
        assert "Edited" not in good(f"status {role}")
    path = two / "hospital" / "run.toml"
    path.write_text(path.read_text().replace("id_format = []", 'id_format = ["strip"]'))
    edited = "Edited: run.toml has id_format = ['strip']; the run began with []."
    assert edited in good("status hospital")
    assert edited in good("run party hospital")
    assert json.loads(good("status hospital --json -"))["edited"]
    path = two / "server" / "run.toml"
    path.write_text(path.read_text().replace("epsilon = 1.0", "epsilon = 2.0"))
    assert "run.toml has epsilon = 2.0; the run began with 1.0" in good("status server")


def test_check_names_all_that_is_wrong_in_one_pass(folder):
    people = pd.read_csv("people.csv").head(100)
    people["key"] = [[key] for key in people["key"]]
    people.drop(columns="ward").assign(smoker="perhaps").to_parquet("odd.parquet")
    (folder / "s.toml").write_text(
        HOSPITAL + INSURER.partition("\n[[party.attribute]]")[2].join(["\n[[party.attribute]]", ""])
    )
    said = refused("check odd.parquet --schema s.toml --id key")
    for problem in ("ids are of the type list", "lacks the column 'ward'", "holds 'perhaps'"):
        assert problem in said, problem


def test_inspect_says_what_a_model_and_a_table_are_in_a_readers_terms(folder):
    good("schema draft people.csv --id key --drop note --name clinic --out s.toml")
    draft = (folder / "s.toml").read_text()
    (folder / "s.toml").write_text(draft.replace("public = false", "public = true"))
    good("synthesize people.csv --schema s.toml --id key --epsilon 1 --out made.csv --model m")
    said = good("inspect m")
    assert "A model of 3 columns and" in said
    assert "clinic: age (16), smoker (2), ward (4)" in said
    assert "record count, one-way marginals" in said
    assert "epsilon 1" in said
    assert "vertimrf sample m" in said
    # Neither arrays nor their types.
    assert "float64" not in said
    rows = len(pd.read_csv("made.csv"))
    said = good("inspect made.csv")
    assert f"A table of 3 columns and {rows:,} rows" in said
    assert "age, smoker, ward" in said
    assert "epsilon 1" in said
    assert "NOT PRIVATE" in good("inspect people.csv")


def test_a_ledger_fits_a_terminal(folder):
    names = [f"{name}_of_the_county_with_a_long_name" for name in ("hospital", "insurer")]
    schema = HOSPITAL.replace("hospital", names[0]) + INSURER.replace("insurer", names[1])
    (folder / "s.toml").write_text(schema)
    said = good("plan --schema s.toml --epsilon 1 --expected-records 3000")
    table = said[said.index("party  ") :].partition("\nTotal:")[0].splitlines()
    assert len(table) > 8
    assert max(map(len, table)) <= 100
    # Nothing is lost by it.
    for word in ("one-way", "marginals", "county", "discrete", "Gaussian", "sketches"):
        assert word in " ".join(table)
