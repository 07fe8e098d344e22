"""A ledger in words: every mechanism has its own, and what the guarantee says is true."""

import math

import pytest
from builders import schema_of
from planning import plan_with
from scipy.stats import norm

from vertimrf import Ledger, Schema
from vertimrf.model.trust import MEASURED, UNKNOWN
from vertimrf.privacy.events import GaussianEvent, GeometricEvent, ThresholdEvent
from vertimrf.privacy.ledger import Kind, LedgerEntry
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.report.words import (
    MAX_LINKS,
    errors_in_words,
    guarantee,
    in_words,
    links,
    odds,
    one_in,
    rests_on,
    steps,
)

TWO = schema_of(left=(3, 4, 2, 5, 2), right=(2, 3, 4))
SHARED = Schema.of({"left": TWO.part("left"), "right": (TWO.attributes[0], *TWO.part("right"))})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"encoder": "scheduled-pairs"},
        {"encoder": "encrypted"},
        {"encoder": "grr"},
        {"encoder": "published", "claim_as_published": True},
        {"records_per_person": 3},
        {"schema": SHARED},
        {"schema": schema_of(one=(2, 3, 4, 5, 6, 7))},
    ],
    ids=[
        "default",
        "pairs",
        "encrypted",
        "responses",
        "published",
        "several records",
        "shared column",
        "one holder",
    ],
)
def test_every_line_of_a_ledger_has_a_sentence_of_its_own(options):
    given = {"schema": TWO, "epsilon": 4.0, "expected_records": 20_000} | options
    plan = plan_with(**given)
    ledger = plan.ledger()
    sentences = steps(ledger)
    assert len(sentences) == len(ledger.entries)
    assert math.isclose(sum(step.share for step in sentences), 1.0)
    assert all(step.entry.kind is not Kind.OTHER for step in sentences)
    weighed = [step.sentence for step in sentences if step.entry.weights is not None]
    agreed = [step.sentence for step in sentences if step.entry.kind is Kind.AGREEMENT]
    assert len(agreed) == (options.get("schema") is SHARED)
    assert all(f"agree on {TWO.names[0]}." in sentence for sentence in agreed)
    for sentence in weighed:
        least, most = min(plan.sketch.weights), max(plan.sketch.weights)
        assert f"A record moves a counter by {least} to {most}" in sentence
    assert bool(weighed) == (not options or options.get("schema") is SHARED)
    for step in sentences:
        assert "protected by" not in step.sentence, step.entry
        assert ("not private" in step.sentence) == (step.entry.kind == SharedKeys.kind)
        assert step.sentence.endswith(".")
        assert step.sentence.lower().startswith((step.entry.party.lower(), "the coordinator"))


def test_lines_of_what_is_found_beforehand_too():
    entries = [
        LedgerEntry(
            GeometricEvent(50.0),
            "coordinator",
            "record count, to plan with",
            "…",
            kind=Kind.PLANNING_COUNT,
        ),
        LedgerEntry(GeometricEvent(20.0), "left", "bounds and bins of 'age'", "…", kind=Kind.EDGES),
        LedgerEntry(
            ThresholdEvent(20.0, 400), "left", "frequent values of 'town'", "…", kind=Kind.VALUES
        ),
    ]
    sentences = [in_words(entry) for entry in entries]
    assert sentences[0].startswith("The coordinator counted the records")
    assert "bounds and bins of 'age' from counts" in sentences[1]
    assert "400 records or more" in sentences[2]
    # An entry without a kind, or whose mechanism is not of its kind, is told in its own words; these are not parsed.
    for odd in (
        LedgerEntry(GaussianEvent(3.0), "left", "6 R-scores", "noise"),
        LedgerEntry(GeometricEvent(3.0), "left", "6 R-scores", "noise", kind=Kind.R_SCORES),
        LedgerEntry(GaussianEvent(3.0), "left", "6 R-scores", "noise", kind=SharedKeys.kind),
    ):
        assert in_words(odd) == "left released 6 R-scores; protected by noise."


def test_odds_are_those_of_the_best_guess():
    # Randomised response attains (epsilon, 0): it tells the truth e^eps / (1 + e^eps) of the time.
    assert odds(1.0, 0.0) == pytest.approx(math.e / (1 + math.e))
    assert odds(0.0, 0.0) == 0.5
    assert odds(0.0, 1.0) == 1.0
    assert odds(700.0, 1e-9) == 1.0
    # No mechanism beats it: the Gaussian's best guess, at the delta that goes with each epsilon.
    for mu in (0.3, 1.0, 2.5):
        best = norm.cdf(mu / 2)
        for epsilon in (0.0, 0.5, 1.0, 3.0):
            delta = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(
                -epsilon / mu - mu / 2
            )
            assert best <= odds(epsilon, delta) + 1e-12
    # At the epsilon where the two laws cross, it is attained.
    assert norm.cdf(0.5) == pytest.approx(odds(0.0, 2 * norm.cdf(0.5) - 1))


def test_the_guarantee_is_told_for_what_it_is():
    plan = plan_with(TWO, expected_records=20_000)
    text = " ".join(guarantee(plan.label, True))
    assert "73.1 times out of 100" in text
    assert "but for the parties' secret" in text
    assert "add or remove one record" in text
    assert "secret" not in " ".join(guarantee(plan.label, False))
    several = plan_with(TWO, expected_records=20_000, records_per_person=3).label
    assert "with all of up to 3 records" in " ".join(guarantee(several, True, 3))
    replaced = plan_with(TWO, epsilon=4.0, expected_records=20_000, encoder="grr").label
    assert "which of two possible records" in " ".join(guarantee(replaced, True))
    assert "hardly any protection" in " ".join(
        guarantee(plan_with(TWO, epsilon=9.0, expected_records=20_000).label, True)
    )
    not_private = Ledger(plan.entries(), plan.delta).not_private("noise was fixed").label
    assert guarantee(not_private, True)[0] == "No privacy guarantee covers this run."
    assert "noise was fixed" in guarantee(not_private, True)[1]
    assert rests_on(True, False) == ()
    assert len(rests_on(True, True)) > len(rests_on(False, True))


def test_what_holds_if_a_party_colludes_is_told():
    unknown, none, much, little = (
        " ".join(rests_on(True, True, epsilon)) for epsilon in (None, math.inf, 69.21, 1.0)
    )
    assert unknown == none
    assert "discloses what the others' sketches hold" in none
    assert "not covered by the proof" in none
    assert "ε = 69.21" in much
    assert "right nearly always" in much
    assert "right up to 73.1 times out of 100" in little
    assert "The same ε holds for what a party" in little
    assert "ε =" not in " ".join(rests_on(False, True, 1.0))


def test_small_probabilities_as_people_say_them():
    assert one_in(1 / 90e9) == "1 in 90,000,000,000"
    assert one_in(1e-5) == "1 in 100,000"
    assert one_in(0.4) == "1 in 2"


def test_errors_stand_as_predicted_and_in_truth():
    predicted = {"three": 0.132, "column": 0.004, "correlation": 0.0612, "mean": 0.1}
    assert errors_in_words(predicted, {"three": 0.2, "within": 0.031}) == [
        ("single columns", "0.40 %", "–"),
        ("pairs of columns at one party", "–", "3.1 %"),
        ("three columns together", "13.2 %", "20.0 %"),
        ("correlations across parties, typical error", "± 0.061", "–"),
    ]


def test_pairs_are_named_by_what_is_known():
    pairs = {UNKNOWN: ["a × b"], MEASURED: [f"{i} × c" for i in range(MAX_LINKS + 2)]}
    known, unknown = links(pairs)
    assert known.startswith(
        "22 of 23 are known to depend on each other, and do so in the rows (in parts of the records, ± one standard error): 0 × c, "
    )
    assert known.endswith(", 19 × c, and 2 more.")
    assert unknown == "1 of 23 are not known: do not read their relation from the result: a × b."
