"""Record and replay on the drawn files with odd cells of ``tests/tools/neighbours.py``, in every format that is read."""

import functools
import warnings

import pytest
from tools import neighbours
from tools.neighbouring import FORMATS, NAMES, SCHEMA, installed

from benchmarks.audit.cases import SECRET, entries_of
from benchmarks.audit.faults import FAULTS
from benchmarks.audit.replay import Recorder, compared, same_message
from vertimrf import Party, PlanOptions, VertiMRFError, make_plan

# Pairs of each format.
FEW, MANY = 3, 30
TRIED = sorted(installed() - {"PostgreSQL"})


@functools.cache
def plan():
    planning = PlanOptions(expected_records=100, even_if_useless=True, tau=2000)
    return make_plan(SCHEMA, 8.0, planning, nonce="drawn")


def message_of(source, read, noise):
    party = Party(plan(), "one", SECRET, noise)
    try:
        return party.run(party.encode(source, NAMES[0], read))
    except VertiMRFError:
        return None


def faults_of(name, number, folder, make):
    """By what two files of a drawn pair differ; None if both are refused, or if they differ by no whole record."""
    pair = neighbours.drawn(name, number, 5)
    codes = [neighbours.outcome(*make(folder, rows, pair)) for rows in pair.tables()]
    if any(isinstance(each, str) for each in codes):
        return None
    one, other = codes
    if any(one[id] != other[id] for id in one.keys() & other.keys()):
        # A further row of an id that both files have takes the place of the first.
        return None
    first = Recorder(seed=1)
    noises = first, Recorder(first.draws)
    sent = []
    for rows, noise in zip(pair.tables(), noises, strict=True):
        sent.append(message_of(*make(folder, rows, pair), noise))
    if None in sent:
        return [] if sent == [None, None] else ["one of the two is refused"]
    found = [*compared(first, noises[1], entries_of(plan().ledger(), "one"))]
    return [*found, *same_message(*sent, first.draws)]


def found_in(name, pairs, folder):
    """What the audit finds in drawn pairs of a format, and the number of those that were compared."""
    with neighbours.short_rows(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = [faults_of(name, number, folder, FORMATS[name][1]) for number in range(pairs)]
    some = [faults for faults in every if faults is not None]
    return [fault for faults in some for fault in faults], len(some)


@pytest.mark.parametrize("name", TRIED)
def test_drawn_files_differ_by_what_the_ledger_allows(name, tmp_path):
    faults, tried = found_in(name, FEW, tmp_path)
    assert faults == []
    assert tried


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_many_drawn_files_differ_by_what_the_ledger_allows(name, tmp_path):
    faults, tried = found_in(name, MANY, tmp_path)
    assert faults == []
    assert tried > MANY / 2


def test_a_larger_change_than_stated_is_found_in_drawn_files(tmp_path):
    with FAULTS["each record counts twice in marginals"]():
        assert found_in("CSV", MANY, tmp_path)[0]
