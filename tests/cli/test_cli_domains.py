"""Private domains and several records of a person, by the command line: what a user sees, and what stops him."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import good, refused

from vertimrf import Plan, Schema
from vertimrf.privacy.noise import KeyedNoise

PART = """
[[party]]
name = "{name}"
[[party.attribute]]
name = "pay"
bins = "private"
integral = true
[[party.attribute]]
name = "job"
values = "private"
"""
OTHER = '[[party]]\nname = "town"\n[[party.attribute]]\nname = "sex"\nvalues = ["f", "m"]\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    # All have the same cells: on one machine they would be one search.
    monkeypatch.setenv("VERTIMRF_STATE", str(tmp_path / "state"))
    rng = np.random.default_rng(0)
    rows = 6000
    frame = pd.DataFrame({"id": range(rows), "who": rng.integers(0, rows // 3, rows)})
    frame["pay"] = np.round(np.exp(rng.normal(10, 0.5, rows)))
    frame["job"] = [f"j{k}" for k in np.minimum(rng.zipf(1.8, rows), 99)]
    frame["sex"] = rng.choice(["f", "m"], rows)
    frame[["id", "pay", "job"]].to_csv(tmp_path / "firm.csv", index=False)
    frame[["id", "sex"]].to_csv(tmp_path / "town.csv", index=False)
    frame[["id", "who", "pay", "job"]].to_csv(tmp_path / "firm-visits.csv", index=False)
    frame[["id", "who", "sex"]].to_csv(tmp_path / "town-visits.csv", index=False)
    frame[["pay", "job", "sex"]].to_csv(tmp_path / "whole.csv", index=False)
    (tmp_path / "firm.toml").write_text(PART.format(name="firm"))
    (tmp_path / "town.toml").write_text(OTHER)
    return tmp_path


def test_domains_are_found_once_and_go_into_the_plan(folder):
    part = folder / "firm.toml"
    out = good(
        f"schema domains {folder}/firm.csv --id id --schema {part} --epsilon 0.4 --out {folder}/found.toml",
    )
    assert "pay: " in out
    assert "values, 'other' for the rest" in out
    assert "has spent epsilon 0.4 and delta" in out
    schema = Schema.load(folder / "found.toml")
    assert schema.public
    assert len(schema.spent) == 5
    assert not (folder / "firm.toml.domains").exists()
    # Asked again, from whatever table and epsilon, it is the same and costs nothing more.
    other = f"--schema {part} --epsilon 3 --out {folder}/again.toml"
    again = good(f"schema domains {folder}/firm-visits.csv --id id", other)
    assert "(on record)" in again
    assert Schema.load(folder / "again.toml") == schema
    assert "exists, and may hold edits" in refused(
        f"schema domains {folder}/firm.csv --id id --schema {part} --epsilon 1 --out {folder}/found.toml"
    )
    good(
        f"schema merge {folder}/found.toml {folder}/town.toml --out {folder}/schema.toml",
    )
    planning = "--epsilon 1 --expected-records 6000"
    planned = good(f"plan --schema {folder}/schema.toml", planning, f"--out {folder}/plan.json")
    assert "bounds and bins of 'pay'" in planned
    assert "frequent values of 'job'" in planned
    plan = Plan.load(folder / "plan.json")
    assert plan.ledger().prior == 5
    assert 0.99 < plan.ledger().epsilon <= 1.0
    priced = good(f"plan {folder}/plan.json --json -")
    assert json.loads(priced)["prior"] == 5
    # The part itself cannot be planned with.
    assert "has a private domain, which has not been found yet" in refused(
        f"plan --schema {part} --epsilon 1 --expected-records 6000 --out {folder}/p.json"
    )


def test_one_holder_finds_domains_and_synthesises_in_one_go(folder):
    whole = folder / "whole.toml"
    whole.write_text(
        PART.format(name="firm") + '[[party.attribute]]\nname = "sex"\nvalues = ["f", "m"]\n'
    )
    options = f"--schema {whole} --epsilon 4 --domain-share 0.1"
    out = good(f"synthesize {folder}/whole.csv", options, f"--out {folder}/s.csv")
    assert "Domains of 2 attributes are found with 10 % of epsilon: pay, job." in out
    assert "bounds and bins of 'pay'" in out
    assert "Private (add or remove one record)" in out
    assert len(pd.read_csv(folder / "s.csv")) > 5000
    assert "must lie between 0 and 1" in refused(
        f"synthesize {folder}/whole.csv --schema {whole} --epsilon 4 --domain-share 1 --out {folder}/t.csv"
    )


def test_noise_of_a_search_depends_on_the_rows_that_count(folder, monkeypatch):
    """Ids decide which rows count: under the same noise, two searches would show the rest without any."""
    keys = []

    class Noted(KeyedNoise):
        def __init__(self, key):
            keys.append(key)
            super().__init__(key)

    monkeypatch.setattr("vertimrf.privacy.noise.KeyedNoise", Noted)
    for i, column in enumerate(["id", "id", "who"]):
        good(
            f"schema domains {folder}/firm-visits.csv --id {column} --schema {folder}/firm.toml",
            f"--epsilon 0.4 --out {folder}/found{i}.toml",
        )
        # The record is lost, and the key is not.
        (folder / "state" / "domains" / "found.json").unlink()
    assert keys[0] == keys[1] != keys[2]
    assert Schema.load(folder / "found0.toml") == Schema.load(folder / "found1.toml")


@pytest.mark.parametrize(
    "text, options, sentence",
    [
        (OTHER, "", 'no attribute with bins = "private"'),
        (PART.format(name="firm") + OTHER, "", "each party must find the domains of its part"),
        (
            PART.format(name="firm"),
            "--records-per-person 2",
            "every table must say whose a record is: name that column, person (--person)",
        ),
        (
            PART.format(name="firm"),
            "--person id",
            "a record id is a person and no table may name others: leave out person (--person)",
        ),
        (
            PART.format(name="firm"),
            "--person nobody --records-per-person 2",
            "no person column 'nobody'",
        ),
        (PART.format(name="firm").replace('"pay"', '"wage"'), "", "lacks the column 'wage'"),
        (
            PART.format(name="firm").replace('"job"', '"id"').replace("values", "bins"),
            "--epsilon 0",
            "epsilon between 1e-09 and 1000, not 0.0",
        ),
    ],
)
def test_what_cannot_be_found_is_one_sentence_and_writes_nothing(folder, text, options, sentence):
    part = folder / "odd.toml"
    part.write_text(text)
    finding = f"--schema {part} --epsilon 0.4 {options} --out {folder}/odd-found.toml"
    out = refused(f"schema domains {folder}/firm.csv --id id", finding)
    assert sentence in out
    assert out.startswith("Error: ")
    assert out.count("\n") == 1
    assert not (folder / "odd-found.toml").exists()


def test_several_records_of_a_person_from_plan_to_table(folder):
    part = folder / "firm.toml"
    options = "--person who --records-per-person 2"
    finding = f"--schema {part} --epsilon 1 {options} --out {folder}/found.toml"
    good(f"schema domains {folder}/firm-visits.csv --id id", finding)
    good(
        f"schema merge {folder}/found.toml {folder}/town.toml --out {folder}/schema.toml",
    )
    planning = (
        f"--schema {folder}/schema.toml --epsilon 5 --expected-records 4000 --records-per-person 2"
    )
    planned = good(
        f"plan {planning}",
        f"--encoder count-sketch --message-mb 0.3 --out {folder}/plan.json",
    )
    assert "a person has up to 2 records" in planned
    assert "add or remove one person with up to 2 records" in planned
    plan = f"--plan {folder}/plan.json"
    checked = good(
        f"check {folder}/firm-visits.csv",
        plan,
        "--name firm --id id --person who",
    )
    assert "persons with more than 2 will be left out" in checked
    assert "every table must say whose a record is" in refused(
        f"check {folder}/firm.csv", plan, "--name firm --id id"
    )
    (folder / "x").mkdir()
    place = f"--exchange {folder}/x"
    good(
        f"run server {folder}/server",
        planning,
        "--message-mb 0.3 --out s.csv",
        place,
    )
    for name in ("firm", "town"):
        table = folder / f"{name}-visits.csv"
        good(
            f"run party {folder}/{name} --name {name} --table {table} --id id --person who",
            place,
        )
    good(f"run server {folder}/server")
    fingerprint = json.loads(good(f"status {folder}/server --json -"))["plan"]
    said = []
    for name in ("firm", "town"):
        good(f"run party {folder}/{name}")
        good(f"accept {folder}/{name} {fingerprint} --anyway")
        # Without whose a record is, nothing is released.
        settings = folder / name / "run.toml"
        written = settings.read_text()
        settings.write_text(written.replace('person = "who"', "").replace("-visits.csv", ".csv"))
        if name == "firm":
            good(f"accept {folder}/{name} {fingerprint} --anyway")
            assert "every table must say whose a record is" in refused(f"run party {folder}/{name}")
        settings.write_text(written)
        good(f"accept {folder}/{name} {fingerprint} --anyway")
        said.append(good(f"run party {folder}/{name}"))
        good(f"run server {folder}/server")
    # Both leave out as many records of as many persons.
    left_out = [
        line
        for text in said
        for line in text.splitlines()
        if "are left out, the same at every party" in line
    ]
    assert len(left_out) == 2
    assert len(set(left_out)) == 1
    good(f"run server {folder}/server")
    result = folder / "server" / "result"
    assert "one person with up to 2 records" in good(f"inspect {result}/s.csv")
    visits = pd.read_csv(folder / "firm-visits.csv")
    kept = int(np.minimum(visits.groupby("who").size(), 2).sum())
    assert abs(len(pd.read_csv(result / "s.csv")) - kept) < 150 < len(visits) - kept
    assert "covers them all" in refused(f"plan {folder}/plan.json --records-per-person 3")
    assert "no price for scheduled-pairs" in refused(
        f"plan --schema {folder}/schema.toml --epsilon 5 --expected-records 4000 --records-per-person 2 --encoder scheduled-pairs --out {folder}/q.json"
    )
    assert "find them with records_per_person=3 (--records-per-person)" in refused(
        f"plan --schema {folder}/schema.toml --epsilon 5 --expected-records 4000 --records-per-person 3 --out {folder}/q.json"
    )
