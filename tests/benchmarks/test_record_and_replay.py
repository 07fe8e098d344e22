"""The audit by record and replay finds nothing in what ships, and every planted mistake."""

import logging

import pytest

from benchmarks.audit.cases import CASES, audited
from benchmarks.audit.faults import FAULTS, found


@pytest.fixture(autouse=True)
def quiet():
    """Tables with records that do not fit are what the audit is about."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_neighbouring_files_differ_by_what_the_ledger_allows(case, tmp_path):
    outcome = audited(case, tmp_path)
    assert outcome.faults == ()
    assert outcome.draws > 50
    # The pairs of files are ones that use what is paid for; never more.
    assert 0.9 < outcome.part <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_mistake_is_found(name, tmp_path):
    assert found(name, tmp_path)
