"""The path of a new user, as the pages say it, has no dead end."""

import numpy as np
import pandas as pd
import pytest
from commands import good, refused

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
    made = "synthesize people.csv --schema s.toml --id ward --epsilon 1 --out made.csv --even-if-useless"
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
