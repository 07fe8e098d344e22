"""The ledger: shares, running totals, its file, and its terminal table."""

import copy
import json
import math

import pytest

from vertimrf.errors import PrivacyError
from vertimrf.files.canonical import json_digest
from vertimrf.privacy.accountant import epsilon, group_epsilon
from vertimrf.privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
)
from vertimrf.privacy.ledger import Kind, Ledger, LedgerEntry
from vertimrf.releases.count_sketches.parameters import CountSketches


def entry(event, party="clinic", released="a count", **more):
    return LedgerEntry(event, party, released, "noise", **more)


ENTRIES = (
    LedgerEntry(GaussianEvent(40.0), "clinic", "record count", "discrete Gaussian, sigma 40.0"),
    LedgerEntry(
        GaussianEvent(900.0, 1, 512),
        "clinic",
        "larger marginals, 512 units",
        "discrete Gaussian, sigma 900.0",
    ),
    LedgerEntry(GeometricEvent(30.0), "registry", "a count", "geometric, scale 30"),
    LedgerEntry(
        SketchEvent(6326, 9, 20, 4096), "all parties", "sketches under 4096 keys", "6326 phantoms"
    ),
)


@pytest.fixture
def ledger():
    return Ledger(ENTRIES, 1e-5)


def test_totals_and_shares(ledger):
    assert ledger.epsilon == pytest.approx(
        epsilon([one.event for one in ENTRIES], 1e-5).epsilon, rel=1e-9
    )
    assert ledger.method in ("pld", "renyi")
    assert sum(ledger.shares) == pytest.approx(1)
    running = [spent.epsilon for spent in ledger.spent]
    assert running == sorted(running)
    assert running[-1] == ledger.epsilon
    assert ledger.private
    assert "(add or remove one record; " in ledger.table()


def test_the_method_is_that_of_the_total_not_of_a_part():
    """In count sketches, what counts as an infinite loss exceeds so small a delta; the other entries have no such part."""
    ledger = Ledger((*ENTRIES, entry(CountSketchEvent(7, 60.0, 1024, 200))), 1e-24)
    assert [spent.method for spent in ledger.spent] == ["pld"] * len(ENTRIES) + ["renyi"]
    assert ledger.method == "renyi"


def test_what_was_exposed_beforehand_weighs_more_for_a_person_with_several_records():
    """(e, d) for one record is (k e, d (1 + exp(e) + ... )) for k, at most d k exp((k - 1) e)."""
    values, one = entry(ThresholdEvent(4.0, 90)), entry(GaussianEvent(900.0))
    exposed = values.event.exposed
    for k in (2, 5):
        least = exposed * k * math.exp((k - 1) * 0.25)
        scarce, enough = (Ledger((values, one), least * part, prior=1) for part in (1 - 1e-6, 1.2))
        assert scarce.group_epsilon(k) == math.inf
        rest = group_epsilon([one.event], 0.2 * least, k)
        assert enough.group_epsilon(k) == pytest.approx(k * 0.25 + rest, rel=1e-6)


def test_a_ledger_survives_its_file(ledger):
    marked = ledger.not_private("a party fixed its noise")
    for one in (ledger, marked):
        back = Ledger.from_json(json.loads(json.dumps(one.to_json())))
        assert back == one
        assert back.private == one.private


def test_an_entry_keeps_what_it_is_in_a_file():
    plain = ENTRIES[0]
    event = CountSketchEvent(7, 60.0, 1024, 200)
    weighted = entry(event, kind=CountSketches.kind, weights=(2, 5))
    agreed = entry(event, "a, b", kind=Kind.AGREEMENT, column="sex")
    for one in (plain, weighted, agreed):
        assert LedgerEntry.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert LedgerEntry.from_json(weighted.to_json()).kind == CountSketches.kind
    assert plain.to_json().keys() == {"party", "released", "noise", "event"}
    for change in (
        {"kind": 3},
        {"weights": [1]},
        {"weights": 7},
        {"weights": ["a", "b"]},
    ):
        with pytest.raises(PrivacyError, match="ledger entry is malformed"):
            LedgerEntry.from_json(weighted.to_json() | change)


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


@pytest.mark.parametrize(
    "change", [{"delta": None}, {"delta": "x"}, {"reasons": 3}, {"notes": 1}, {"prior": "x"}]
)
def test_a_malformed_ledger_with_a_fitting_digest_is_refused_too(ledger, change):
    body = {key: value for key, value in ledger.to_json().items() if key != "digest"} | change
    with pytest.raises(PrivacyError, match="ledger is malformed"):
        Ledger.from_json(body | {"digest": json_digest(body).hex()})
    (name,) = change
    del body[name]
    with pytest.raises(PrivacyError, match="ledger is malformed"):
        Ledger.from_json(body | {"digest": json_digest(body).hex()})


def test_what_was_spent_beforehand_adds_up_whatever_followed_from_it():
    count = entry(GeometricEvent(50.0, sensitivity=2))
    ledger = Ledger((count, *ENTRIES), 1e-5, prior=1)
    rest = epsilon([one.event for one in ENTRIES], 1e-5).epsilon
    assert ledger.spent[0].epsilon == pytest.approx(2 / 50)
    assert ledger.epsilon == pytest.approx(2 / 50 + rest, rel=1e-12)
    # Composing all losses would have hidden that the others' noise follows the count.
    assert ledger.epsilon > Ledger((count, *ENTRIES), 1e-5).epsilon
    assert "added to the first 1" in ledger.table()
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json()))) == ledger
    assert Ledger((count,), 1e-5, prior=1).epsilon == 2 / 50


def test_only_pure_noise_can_be_spent_beforehand():
    with pytest.raises(PrivacyError, match=r"record count.*pure epsilon"):
        Ledger(ENTRIES, 1e-5, prior=1)
    with pytest.raises(PrivacyError, match="cannot have 5"):
        Ledger(ENTRIES, 1e-5, prior=5)


def test_runs_over_the_same_people_add_up(ledger):
    count = entry(GeometricEvent(50.0))
    planned = Ledger((count, *ENTRIES[:2]), 1e-6, ("noise was fixed",), ("seconds",), prior=1)
    total = Ledger.together([ledger, planned])
    assert total.delta == pytest.approx(1.1e-5)
    assert total.prior == 1
    assert total.entries == (count, *ENTRIES, *ENTRIES[:2])
    both = epsilon([one.event for one in (*ENTRIES, *ENTRIES[:2])], 1.1e-5).epsilon
    assert total.epsilon == pytest.approx(0.02 + both)
    # Composed as one they cost less than what each costs, summed, and more than either.
    assert max(ledger.epsilon, planned.epsilon) < total.epsilon < ledger.epsilon + planned.epsilon
    assert not total.private
    assert total.notes == ("seconds",)
    assert Ledger.together([ledger, planned], 1e-9).delta == 1e-9
    replaced = Ledger((entry(GRREvent(0.5, (2, 3))),), 1e-5)
    with pytest.raises(PrivacyError, match="no total"):
        Ledger.together([ledger, replaced])
    with pytest.raises(PrivacyError, match="no ledgers"):
        Ledger.together([])
    persons = Ledger(ENTRIES, 1e-5, records_per_person=3)
    assert Ledger.together([persons, persons]).neighbours == persons.neighbours
    with pytest.raises(PrivacyError, match="no total"):
        Ledger.together([ledger, persons])


def test_a_person_with_several_records_pays_for_each_and_more():
    sigma = 20.0
    ledger = Ledger((entry(GaussianEvent(sigma)),), 1e-6)
    once = ledger.group_epsilon(1)
    assert ledger.epsilon <= once < 1.1 * ledger.epsilon
    for records in (2, 3, 10):
        # A Gaussian count under so many records is one with so many times the sensitivity; the general lemma costs more.
        exact = epsilon([GaussianEvent(sigma, records)], 1e-6).epsilon
        assert records * once < ledger.group_epsilon(records) < 3 * exact
        assert exact < ledger.group_epsilon(records)
    assert Ledger((entry(GeometricEvent(50.0)), *ledger.entries), 1e-6, prior=1).group_epsilon(
        3
    ) == pytest.approx(3 / 50 + ledger.group_epsilon(3))
    with pytest.raises(PrivacyError, match="A person has 1 to"):
        ledger.group_epsilon(0)


def test_a_ledger_states_its_label(ledger):
    assert ledger.label.private
    assert (ledger.label.epsilon, ledger.label.delta) == (ledger.epsilon, 1e-5)
    assert ledger.not_private("a party fixed its noise").label.reasons == (
        "a party fixed its noise",
    )
    responses = Ledger((entry(GRREvent(0.5, (2, 3))),), 1e-5)
    assert responses.label.neighbours == "replace one record"


@pytest.mark.parametrize("data", [None, [], {}, {"epsilon": 1}, {"entries": []}])
def test_what_is_no_ledger_is_refused(data):
    with pytest.raises(PrivacyError, match="not a ledger"):
        Ledger.from_json(data)
    with pytest.raises(PrivacyError, match="ledger entry is malformed"):
        LedgerEntry.from_json(data)


def test_the_table_shows_everything_once(ledger):
    text = ledger.not_private("a party fixed its noise").table()
    for one in ENTRIES:
        assert one.released in text
        assert one.noise in text
    assert f"epsilon {ledger.epsilon:.4f}" in text
    assert "NOT PRIVATE: a party fixed its noise." in text
    assert "NOT PRIVATE" not in ledger.table()
