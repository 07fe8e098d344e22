"""The audit by record and replay finds nothing in what ships, and every planted mistake."""

import functools
import logging
import tempfile
from pathlib import Path

import pytest

from benchmarks.audit.faults import FAULTS, found
from benchmarks.audit.register import CASES, NOT_AUDITED
from benchmarks.audit.tight import (
    PRECISE,
    PURE,
    SKETCHES,
    TRIES,
    TRIES_OF_A_TENTH,
    USUAL,
    LessNoise,
    encrypted,
    outside,
)
from vertimrf.privacy.ledger import Kind
from vertimrf.releases.register import KINDS, kind_of

# They play whole runs, again and again.
pytestmark = pytest.mark.slow

# A mistake of each new sort is planted in the fast tests; the slow ones plant all.
SOME = (
    "a record enters two sketches under a key",
    "responses depend on the record before",
    "records that do not fit have no responses",
    "files between parties are as long as the table",
    "tables of encrypted counts have half of their noise",
    "a search has half of its noise",
    "bounds follow from the numbers",
    "a plan is made for the exact number of records",
    "noise keys are the same under all plans",
    "noise follows from the plan alone",
)


@pytest.fixture(autouse=True)
def quiet():
    """Tables with records that do not fit are what the audit is about."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@functools.cache
def outcome_of(place):
    """The outcome of the case at a place of the register, once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        return CASES[place].audit(Path(folder))


@pytest.mark.parametrize("place", range(len(CASES)), ids=lambda place: CASES[place].name)
def test_neighbouring_files_differ_by_what_the_ledger_allows(place):
    case, outcome = CASES[place], outcome_of(place)
    assert outcome.faults == ()
    assert outcome.draws > 10
    if outcome.part is not None:
        # The pairs of files are ones that use what is paid for; never more. A replaced record costs
        # two changes by one, and the ledger states one by two.
        least = 0.45 if "replacing" in case.name else 0.9
        assert least < outcome.part <= 1 + 1e-9


def test_every_kind_of_release_is_audited_or_named():
    kinds = frozenset().union(*(outcome_of(place).kinds for place in range(len(CASES))))
    known = {str(kind) for kind in Kind} | {kind_of(name).kind for name in KINDS}
    assert known - kinds == NOT_AUDITED.keys()


@pytest.mark.parametrize("name", SOME)
def test_a_planted_mistake_of_a_new_sort_is_found(name, tmp_path):
    assert found(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_mistake_is_found(name, tmp_path):
    assert found(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("test", PURE, ids=lambda test: test.__name__)
def test_a_pure_epsilon_is_found_from_outside_and_no_more(test):
    # Errors are .02 of what is stated and less.
    outcome = test(TRIES[test])
    assert not outcome.broken
    assert outcome.ratio > 0.9
    assert test(2000, less=0.1).broken


@pytest.mark.parametrize("test", SKETCHES, ids=lambda test: test.__name__)
def test_mu_across_parties_is_found_from_outside_and_no_more(test):
    # A standard error of .017 of what is stated and less, of slow encrypted counts .07; codes of 4 bits
    # keep .994 of it.
    outcome = test(250 if test is encrypted else TRIES[test])
    assert not outcome.broken
    assert abs(outcome.ratio - 0.994) < 5 * outcome.error / outcome.stated
    assert outcome.at_least > (0.5 if test is encrypted else 0.8) * outcome.stated
    assert test(TRIES_OF_A_TENTH[test], less=0.1).broken


@pytest.mark.slow
def test_mu_is_found_from_outside_and_no_more(tmp_path):
    case, _ = PRECISE[0]
    for one in outside(case, tmp_path, 400):
        assert not one.broken
        if one.release in ("record count", "one-way marginals"):
            # Five standard errors of .06 and .05 of what is stated.
            assert abs(one.ratio - 1) < 5 * one.error / one.stated
    scores, _ = PRECISE[2]
    (one,) = (each for each in outside(scores, tmp_path, 200) if each.release == "R-scores")
    # Rounding to sixteenths is priced, so .97; the standard error is .06.
    assert not one.broken
    assert abs(one.ratio - 32 / 33) < 5 * one.error / one.stated
    # With a tenth of the noise: ten times as much, and the bound passes what is stated.
    less = {one.release: one for one in outside(USUAL[0], tmp_path, 300, source=LessNoise)}
    assert less["one-way marginals"].broken
    assert less["record count"].broken
