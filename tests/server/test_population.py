"""Who is at which party: the arithmetic of overlaps, and what is told of them."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.errors import MessageError
from vertimrf.model.local_marginal import LocalMarginal
from vertimrf.releases.received import CommonRecords, RecordCount
from vertimrf.server.population import (
    estimate_total,
    find_overlap,
    pattern_counts,
    same_people,
    same_sizes,
)

NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def overlap(sizes, common):
    """Of some parties, with what every two have in common [by pair, in order]."""
    pairs = itertools.combinations(range(len(sizes)), 2)
    matches = [
        CommonRecords(pair, records, 50.0) for pair, records in zip(pairs, common, strict=True)
    ]
    return find_overlap(NAMES[: len(sizes)], [RecordCount(size, 30.0) for size in sizes], matches)


def test_of_two_parties_three_counts_tell_all():
    result = overlap((10_000, 7_000), (3_000,))
    assert result.patterns == ((0,), (1,), (0, 1))
    np.testing.assert_allclose(result.counts, [7_000, 4_000, 3_000], atol=0.01)
    # Errors of a difference, and of a sum of three figures.
    np.testing.assert_allclose(result.errors, [np.hypot(30, 50), np.hypot(30, 50), 50], rtol=1e-6)
    assert result.outer == pytest.approx(14_000)
    assert result.outer_error == pytest.approx(np.sqrt(30**2 + 30**2 + 50**2), rel=1e-6)
    assert result.between == (3_000, 3_000)


def test_a_party_whose_people_the_other_has_all_has_none_alone():
    result = overlap((10_000, 3_010), (3_000,))
    assert result.patterns == ((0,), (0, 1))
    assert result.inner == pytest.approx(3_000, abs=1)
    assert result.share(1, 0) == 1


def test_more_common_records_than_a_party_has_are_no_estimate():
    """An error of 50 and one of 30: five of both together are 292 records."""
    assert overlap((10_000, 3_000), (3_280,)).inner == pytest.approx(3_000, abs=1)
    with pytest.raises(
        MessageError,
        match=r"match 3,310 ± 50 records between one \(10,000 records\) and two \(3,000 records\), more than there are",
    ):
        overlap((10_000, 3_000), (3_310,))


@given(st.lists(st.floats(0.2, 0.9), min_size=3, max_size=5))
@settings(deadline=None, max_examples=30)
def test_parties_that_hold_random_people_have_what_chance_gives_them(shares):
    people = 1e6
    share = np.array(shares)
    common = people * np.outer(share, share)
    patterns = [
        pattern
        for k in range(1, len(share) + 1)
        for pattern in itertools.combinations(range(len(share)), k)
    ]
    counts = pattern_counts(patterns, people * share, common)
    at = np.array([[p in pattern for p in range(len(share))] for pattern in patterns])
    np.testing.assert_allclose(
        counts, people * np.where(at, share, 1 - share).prod(axis=1), rtol=1e-3, atol=1
    )


def test_counts_of_three_parties_keep_those_of_two():
    result = overlap((10_000, 9_000, 8_000), (5_000, 4_000, 6_000))
    for (p, q), wanted in zip(((0, 1), (0, 2), (1, 2)), (5_000, 4_000, 6_000), strict=True):
        assert result.counts[result.holding((p, q))].sum() == pytest.approx(wanted, abs=1)
    for p, wanted in enumerate((10_000, 9_000, 8_000)):
        assert result.counts[result.holding((p,))].sum() == pytest.approx(wanted, abs=1)
    assert (result.counts >= 0).all()
    least, most = result.between
    assert (least, most) == (2_000, 4_000)
    assert least <= result.inner <= most
    assert result.to_json()["inner"]["between"] == [2_000, 4_000]


def test_the_same_within_noise_is_the_same():
    counts = [RecordCount(20_000, 50.0), RecordCount(20_300, 60.0)]
    assert same_sizes(counts)
    assert not same_sizes([counts[0], RecordCount(20_600, 60.0)])
    assert same_people(counts, [CommonRecords((0, 1), 19_600, 150.0)])
    assert not same_people(counts, [CommonRecords((0, 1), 19_400, 150.0)])
    # A hundredth of the records is hidden by what noise does to all else.
    assert same_people([RecordCount(1e6, 1.0)] * 2, [CommonRecords((0, 1), 0.991e6, 10.0)])


def test_the_record_count_leaves_contrasts_out():
    """The sum of a contrast is a difference of counts, not a count of records."""
    plan = SimpleNamespace(count_sigma=10.0)
    one_way = LocalMarginal((0,), np.array([700, 300]), 10.0)
    contrast = LocalMarginal((0, 1), np.array([[-350]]), 10.0, 1, (), (0, 1))
    message = SimpleNamespace(count=1000, marginals=[one_way, contrast])
    assert estimate_total(plan, [message]) == pytest.approx(1000)


def test_nobody_in_common_is_a_sentence():
    with pytest.raises(
        MessageError,
        match=r"match 240 ± 50 records between one .10,000 records. and two.*vertimrf align",
    ):
        overlap((10_000, 8_000), (240,))
    assert overlap((10_000, 8_000), (260,)).inner == pytest.approx(260)


def test_too_many_ways_are_a_sentence():
    assert len(overlap((10_000,) * 8, (5_000,) * 28).patterns) == 255
    with pytest.raises(MessageError, match="9 parties overlap in 511 ways"):
        overlap((10_000,) * 9, (5_000,) * 36)


def test_what_is_told():
    result = overlap((10_000, 7_000), (3_000,))
    inner, outer = result.sentence("inner"), result.sentence("outer")
    assert "one 10,000, two 7,000" in inner
    assert "3,000 ± 50 are at one and two" in inner
    assert "the 3,000 that all parties hold" in inner
    assert "all 14,000, null where" in outer
    figures = result.to_json()
    assert figures["in_common"] == [{"parties": ["one", "two"], "records": 3_000.0, "error": 50.0}]
    assert [entry["parties"] for entry in figures["held_by"]] == [["one"], ["two"], ["one", "two"]]
