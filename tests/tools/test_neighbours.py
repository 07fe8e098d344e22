"""No record decides how another one's file is read, in any format; and where one would, the comparison notices."""

import pytest

from tools import neighbours
from tools.neighbouring import installed
from vertimrf.tables import objects


@pytest.fixture(scope="module")
def address():
    with neighbours.postgresql() as found:
        yield found


def test_a_record_changes_no_other_in_any_format(address):
    counts = neighbours.neighbours(76, seed=2, address=address)
    assert counts.wrong == []
    assert {name for name, _ in counts.pairs} >= installed() - {"PostgreSQL"}
    # Neither is everything refused nor everything blank.
    assert all(counts.records[name] for name, how in counts.pairs if how == "read")


@pytest.mark.slow
def test_a_record_changes_no_other_in_hundreds_of_tables(address):
    assert neighbours.neighbours(600, seed=3, address=address).wrong == []


@pytest.mark.slow
def test_a_cell_that_decides_for_others_is_noticed(monkeypatch):
    """A missing number that is one only where no date stands beside it."""
    known = objects._stored
    with monkeypatch.context() as patched:
        patched.setattr(objects, "_stored", lambda v: ("number", None) if v != v else known(v))
        counts = neighbours.neighbours(300, only=["pandas"])
    assert counts.wrong
    assert [verdict.holds for verdict in neighbours.verdicts(counts)] == [False]
    # The one record that may differ is the pair's own.
    pair = neighbours.drawn("pandas", 0, 0)
    assert neighbours.difference(pair, {1: (0,)}, {}) == "another record differs"


def test_a_refusal_that_comes_with_a_record_is_noticed():
    pair = neighbours.drawn("CSV", 0, 0)
    for two in (({}, "TableError: no"), ("TableError: no", {})):
        assert "one is refused" in neighbours.difference(pair, *two)
    assert "2 records differ" in neighbours.difference(pair, {1: (0,), 2: (0,)}, {})
