"""The ledger: shares, running totals, its file, and its terminal table."""

from __future__ import annotations

import copy
import json

import pytest

from vertimrf.errors import PrivacyError
from vertimrf.files.canonical import json_digest
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import GaussianEvent, GeometricEvent, GRREvent, SketchEvent
from vertimrf.privacy.ledger import Ledger, LedgerEntry

ENTRIES = (
    LedgerEntry(GaussianEvent(40.0), "clinic", "record count", "discrete Gaussian, sigma 40.0"),
    LedgerEntry(GaussianEvent(900.0, 1, 512), "clinic", "larger marginals, 512 units", "discrete Gaussian, sigma 900.0"),
    LedgerEntry(GeometricEvent(30.0), "registry", "a count", "geometric, scale 30"),
    LedgerEntry(SketchEvent(6326, 9, 20, 4096), "all parties", "sketches under 4096 keys", "6326 phantoms"),
)


@pytest.fixture
def ledger():
    return Ledger(ENTRIES, 1e-5)


def test_totals_and_shares(ledger):
    assert ledger.epsilon == epsilon([entry.event for entry in ENTRIES], 1e-5).epsilon
    assert ledger.method in ("pld", "renyi")
    assert sum(ledger.shares) == pytest.approx(1)
    running = [spent.epsilon for spent in ledger.spent]
    assert running == sorted(running)
    assert running[-1] == ledger.epsilon
    assert ledger.private
    assert "(add or remove one record; " in ledger.table()


def test_randomised_responses_are_about_replacing_a_record():
    entry = LedgerEntry(GRREvent(0.5, (2, 3)), "clinic", "responses", "GRR")
    ledger = Ledger((entry,), 1e-5)
    assert ledger.neighbours == "replace one record"
    assert "(replace one record; " in ledger.table()


def test_a_ledger_survives_its_file(ledger):
    marked = ledger.not_private("a party fixed its noise")
    for one in (ledger, marked):
        back = Ledger.from_json(json.loads(json.dumps(one.to_json())))
        assert back == one
        assert back.private == one.private


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.update(epsilon=0.01),
        lambda data: data.update(private=True, reasons=[]),
        lambda data: data["entries"].pop(),
        lambda data: data["entries"][0]["event"].update(sigma=400.0),
        lambda data: data.pop("digest"),
    ],
)
def test_an_edited_ledger_is_refused(ledger, edit):
    data = copy.deepcopy(ledger.not_private("a party fixed its noise").to_json())
    edit(data)
    with pytest.raises(PrivacyError, match=r"edited.*use the file that the run wrote\.$"):
        Ledger.from_json(data)


@pytest.mark.parametrize("change", [{"delta": None}, {"delta": "x"}, {"reasons": 3}, {"entries": [1]}])
def test_a_malformed_ledger_with_a_fitting_digest_is_refused_too(ledger, change):
    body = {key: value for key, value in ledger.to_json().items() if key != "digest"} | change
    with pytest.raises(PrivacyError, match=r"malformed|no ledger entry"):
        Ledger.from_json(body | {"digest": json_digest(body).hex()})


@pytest.mark.parametrize("data", [None, [], {}, {"epsilon": 1}, {"entries": []}])
def test_what_is_no_ledger_is_refused(data):
    with pytest.raises(PrivacyError, match="no ledger"):
        Ledger.from_json(data)
    with pytest.raises(PrivacyError, match="no ledger entry"):
        LedgerEntry.from_json(data)


def test_the_table_shows_everything_once(ledger):
    text = ledger.not_private("a party fixed its noise").table()
    for entry in ENTRIES:
        assert entry.released in text
        assert entry.noise in text
    assert f"epsilon {ledger.epsilon:.4f}" in text
    assert "NOT PRIVATE: a party fixed its noise." in text
    assert "NOT PRIVATE" not in ledger.table()
