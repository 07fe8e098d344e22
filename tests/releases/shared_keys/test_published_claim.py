"""The published encoder end to end: refused without consent, its claim beside the exact value, and marked wherever it goes."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from builders import schema_of
from commands import good, refused
from planning import plan_with
from roles import run_server

from vertimrf import Message, Model, Party, Plan, Secret, write_table
from vertimrf.errors import PlanError, PrivacyError
from vertimrf.files import container
from vertimrf.keys import KeyRing
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import SketchEvent
from vertimrf.releases.shared_keys.published_claim import claimed_floor, claimed_phantoms

ROWS = 4000


SCHEMA = schema_of(left={"a": 3, "b": 2}, right={"x": 3, "y": 2})


@pytest.fixture(scope="module")
def plan():
    return plan_with(
        SCHEMA,
        epsilon=2.0,
        expected_records=ROWS,
        nonce="test",
        encoder="published",
        claim_as_published=True,
    )


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, ROWS)
    pd.DataFrame({"id": range(ROWS), "a": a, "b": rng.integers(0, 2, ROWS)}).to_csv(
        tmp_path / "left.csv", index=False
    )
    pd.DataFrame({"id": range(ROWS), "x": a, "y": rng.integers(0, 2, ROWS)}).to_csv(
        tmp_path / "right.csv", index=False
    )
    SCHEMA.save(tmp_path / "schema.json")
    return tmp_path


def test_the_claim_is_the_papers():
    # Fire: d = 16, t = 2000, delta = 1/21,574, epsilon = 0.4.
    phantoms = [claimed_phantoms(e, 1 / 21_574, 2000, 16) for e in (0.1, 0.4, 1.6)]
    assert phantoms == [22_604, 5651, 1413]
    assert claimed_floor(0.4, 1 / 21_574, 2000, 16) == 13
    for bad in ((0.0, 0.1), (1.0, 0.0), (1.0, 1.0), (float("nan"), 0.1)):
        with pytest.raises(PrivacyError, match="claim needs"):
            claimed_phantoms(*bad, 2000, 16)


def test_the_ledger_shows_claim_and_exact_value(plan):
    entry = plan.entries()[-1]
    event = SketchEvent(
        plan.sketch.phantoms, plan.sketch.floor, plan.sketch.ceiling, 2000, attributes_per_key=4
    )
    assert entry.event == event
    exact = epsilon([event], plan.delta / 2).epsilon
    assert exact > 10
    assert f"claimed epsilon 1, exactly {exact:.1f}" in entry.noise
    ledger = plan.ledger()
    assert not ledger.private
    assert "claim as published" in ledger.reasons[0]
    assert ledger.epsilon > exact * 0.9
    assert "NOT PRIVATE: claim as published" in ledger.table()
    # What does not come from the claim meets its half exactly.
    assert 0.97 < epsilon([e.event for e in plan.entries()[:-1]], plan.delta / 2).epsilon <= 1.0


def test_a_published_plan_notices_edits(plan):
    for change in ({"phantoms": plan.sketch.phantoms - 1}, {"keys": plan.sketch.keys * 2}):
        with pytest.raises(PlanError, match="fewer phantoms than it claims: it was edited"):
            Plan.from_json(replace(plan, sketch=replace(plan.sketch, **change)).to_json())
    with pytest.raises(PlanError, match="more than its target"):
        Plan.from_json(replace(plan, count_sigma=plan.count_sigma / 100).to_json())


def test_a_whole_run_says_everywhere_that_it_is_not_private(folder):
    arguments = f"synthesize {folder}/left.csv {folder}/right.csv --id id --schema {folder}/schema.json --epsilon 8 --expected-records {ROWS} --encoder published --out {folder}/out.csv --json {folder}/out.json"
    assert "gives complete records away" in refused(arguments)
    assert not (folder / "out.csv").exists()
    assert "NOT PRIVATE: claim as published" in good(f"{arguments} --claim-as-published")
    stated = json.loads((folder / "out.csv.label.json").read_text())["label"]
    assert stated["private"] is False
    assert "claim as published" in stated["reasons"][0]
    report = json.loads((folder / "out.json").read_text())
    assert report["private"] is False
    assert "claim as published" in report["label"]["reasons"][0]
    assert report["epsilon"] > 10
    assert len(pd.read_csv(folder / "out.csv")) == report["rows"]


def test_role_by_role_every_file_says_so(folder, plan):
    """In Python: run folders refuse such a plan."""
    ring = KeyRing.new(("left", "right"))
    agreed = replace(plan, public_keys=ring.public)
    agreed.save(folder / "plan.json")
    ring.server.save(folder / "server.key")
    messages = []
    for name in ("left", "right"):
        party = Party(agreed, name, Secret(bytes(range(32))), key=ring.parties[name])
        (folder / f"{name}.message").write_bytes(
            party.release(party.encode(folder / f"{name}.csv", "id"))
        )
        messages.append(Message.load(folder / f"{name}.message", agreed, ring.server))
        opened = container.unpack(messages[-1].to_bytes(agreed), "party message", name)
        assert "claim as published" in opened[0]["label"]["reasons"][0]
    result = run_server(agreed, messages)
    write_table(result.pieces(), folder / "out.csv", result.ledger.label)
    Model(agreed.schema, result.model, result.ledger, result.others).save(folder / "model")
    (folder / "out.json").write_text(json.dumps(result.to_json()))
    for name in ("plan.json", "left.message", "right.message", "out.csv", "model", "out.json"):
        sealed = (
            ("--plan", folder / "plan.json", "--key", folder / "server.key")
            if name.endswith("message")
            else ()
        )
        assert "NOT PRIVATE: claim as published" in good(f"inspect {folder}/{name}", *sealed)
