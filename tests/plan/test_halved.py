"""Halved attributes: chosen by public figures alone, where a pair of two such would be noise alone."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from builders import schema_of
from planning import edited, plan_with

from vertimrf import Attribute, Impossible, Plan, Schema
from vertimrf.errors import PlanError
from vertimrf.plan.binning import halves
from vertimrf.plan.groups import cut_groups
from vertimrf.plan.merging import kept_apart, mergeable, merging
from vertimrf.plan.shares import (
    BINNED,
    LEAST_BINS,
    TREND_ERROR,
    USUAL,
    Outlook,
    cell_error,
    distances,
    levels,
    longest_seen,
)
from vertimrf.plan.verdict import CORRELATION, TREND_FORM, correlation_error, links, verdict
from vertimrf.releases.encrypted_counts.parameters import EncryptedCounts
from vertimrf.releases.register import kind_of

LONG = schema_of(one={"a": 40, "b": 5}, two={"x": 40, "y": 2})
RECORDS = 1000


def halved(schema, records=RECORDS, **options):
    """Names of the halved attributes of a plan."""
    plan = plan_with(schema, expected_records=records, nonce="t", **options)
    return {schema.names[a] for a in plan.halved}


def test_attributes_are_halved_where_their_pairs_are_noise_alone():
    """By hand, at the usual shares: u values twice have the distance u^2 sigma / (n sqrt(2 pi)), at most 1."""
    outlook = Outlook(((40, 5), (40, 2)), RECORDS, 0.02, 10**5, 10**6)
    sigma = 4 / math.sqrt(4 * 0.5 * 0.02)
    assert cell_error(outlook, USUAL) == pytest.approx(sigma)
    most = longest_seen(RECORDS, sigma)
    assert most**2 * sigma / (RECORDS * math.sqrt(2 * math.pi)) == pytest.approx(1)
    assert longest_seen(RECORDS, 0.0) == math.inf
    encrypted = Outlook(((40, 5), (40, 2)), RECORDS, 0.02, 10**5, 10**6, EncryptedCounts)
    assert cell_error(encrypted, USUAL) == pytest.approx(math.sqrt(4 / (2 * 0.5 * 0.02)))
    alone = Outlook(((40, 5, 40, 2),), RECORDS, 0.02, 10**5, 0)
    pairs = USUAL.without_sketches().local * 0.02 * 0.92
    assert cell_error(alone, USUAL.without_sketches()) == pytest.approx(math.sqrt(6 / (2 * pairs)))


@pytest.mark.parametrize("encoder", ["count-sketch", "encrypted"])
def test_long_attributes_are_halved_until_records_or_budget_show_their_values(encoder):
    assert halved(LONG, encoder=encoder) == {"a", "x"}
    assert halved(LONG, 100 * RECORDS, encoder=encoder) == set()
    assert halved(LONG, epsilon=60.0, encoder=encoder) == set()
    plan = plan_with(LONG, expected_records=RECORDS, encoder=encoder)
    assert [group.size for group in plan.groups if not group.parity] == [2, 5, 2, 2]
    # As contrasts, which are priced as those of two values.
    assert {0, 2} & set(plan.sketch.contrasts)
    assert plan.coarse == {0, 2}
    assert plan.ledger().epsilon <= 1


@pytest.mark.parametrize("encoder", ["count-sketch", "encrypted"])
def test_they_have_more_bins_than_halves_where_noise_leaves_enough(encoder):
    """By hand: a third of the most values seen."""
    plan = plan_with(LONG, expected_records=6 * RECORDS, encoder=encoder, nonce="t")
    bins = plan.groups[0].size
    assert [group.size for group in plan.groups if not group.parity] == [bins, 5, bins, 2]
    outlook = Outlook(((40, 5), (40, 2)), 9 * RECORDS, 0.02, 10**5, 10**6, kind_of(encoder))
    most, seen = levels(outlook, USUAL)
    assert seen == int(BINNED * most) >= LEAST_BINS
    assert levels(replace(outlook, records=RECORDS), USUAL)[1] == 2
    assert levels(replace(outlook, records=10**9), USUAL)[1] == 40
    assert levels(replace(outlook, message_bytes=0), USUAL)[1] == 2
    # Parties cut them as any bins, and the plan keeps them.
    assert plan.halved == (0, 2)
    assert Plan.from_json(plan.to_json()).digest() == plan.digest()
    one_way = {a: np.full(size, 100.0) for a, size in enumerate(LONG.sizes)}
    (first,) = cut_groups(LONG, plan.groups[:1], one_way, {}, plan.halved)[0]
    assert (np.bincount(first) >= 40 // bins - 1).all()
    assert first.max() + 1 == bins > 2
    assert "by a trend alone" not in " ".join(links(plan))


def test_a_single_holder_halves_nothing():
    """It measures values, or chooses its pairs."""
    for sizes in ((40, 5, 30, 2), (40,) * 12):
        assert halved(schema_of(one=sizes)) == set()
    # A party whose partner has only columns of one value is one, too.
    assert halved(schema_of(one=(40, 5), two=(1,))) == set()


def test_what_has_to_keep_its_values_is_never_halved():
    assert halved(LONG, workload=["a ~ x"]) == set()
    assert halved(LONG, workload=["mean(a) by y"]) == {"x"}
    for options in ({"population": "outer"}, {"encoder": "scheduled-pairs", "keys": 1 << 12}):
        assert halved(LONG, **options) == set()
    both = Attribute.integer("both", 40)
    schema = Schema.of(
        {
            "one": [both, Attribute.integer("a", 40), Attribute.integer("ruled", 40)],
            "two": [both, Attribute.integer("x", 40)],
        },
        impossible=[Impossible.of(ruled=3, x=2)],
    )
    assert {schema.names[a] for a in mergeable(schema)} == {"a"}
    assert halved(schema) == {"a"}
    # Nor is the only column of all, which is in no pair.
    assert halved(schema_of(one=(400,))) == set()


def test_attributes_that_pairs_merge_are_not_kept_apart():
    a, b, x, y = range(4)
    assert merging(LONG, "one") == {}
    assert kept_apart(LONG) == {a, b, x, y}
    assert kept_apart(LONG, (a, x)) == {b, y}


def test_a_file_keeps_them_and_one_that_cannot_have_them_is_refused():
    plan = plan_with(LONG, expected_records=RECORDS)
    content = plan.to_json()
    assert content["halved"] == [0, 2]
    assert "halved" not in plan_with(LONG, expected_records=100 * RECORDS).to_json()
    without = {name: value for name, value in content.items() if name != "halved"}
    assert Plan.from_json(without).digest() != plan.digest()
    shared = Attribute.integer("a", 40)
    schema = Schema.of({"one": [shared], "two": [shared, Attribute.integer("x", 40)]})
    other = plan_with(schema, expected_records=100 * RECORDS).to_json()
    for data in (
        *(
            edited(content, "halved", value=value)
            for value in ([2, 0], [0, 0], [0, 3], [0, 99], [-4, 0])
        ),
        edited(other, "halved", value=[schema.index("a")]),
    ):
        with pytest.raises(
            PlanError, match=r"halves the attributes .* of one party, of three values or more"
        ):
            Plan.from_json(data)
    # The other attribute's group has five bins.
    with pytest.raises(PlanError, match="halved attribute has fewer bins than values"):
        Plan.from_json(edited(content, "halved", value=[0, 1, 2]))


def test_groups_of_halved_attributes_have_two_bins_and_those_that_tell_presence_one():
    schema = schema_of(one=(40,), two=(30,))
    plan = plan_with(schema, expected_records=RECORDS)
    assert [(group.attributes, group.bins) for group in plan.groups] == [
        ((a,), (bins,)) for a in (0, 1) for bins in (2, 1)
    ]
    one_way = {a: np.arange(size, dtype=float) for a, size in enumerate(schema.sizes)}
    bins = cut_groups(schema, plan.groups, one_way, {}, plan.halved)
    assert [int(maps[0].max()) + 1 for maps in bins] == [2, 1, 2, 1]
    # At the median, 39 / sqrt(2), where merging neighbours would cut elsewhere.
    np.testing.assert_array_equal(bins[0][0], halves(one_way[0], True, False))
    assert int((bins[0][0] == 0).sum()) == 28
    # Where all values are rare, their merged value has no halves.
    rare = cut_groups(schema, plan.groups, one_way, {0: np.zeros(40, np.int64)}, plan.halved)
    np.testing.assert_array_equal(rare[0][0], bins[0][0])


def test_the_forecast_takes_a_trend_for_one_number():
    """By hand: a contrast's error over the records, times pi / 2, and as much as a trend leaves out."""
    sizes, flags = ((40, 40), (40, 40)), ((True, True), (True, True))
    whole = Outlook(sizes, RECORDS, 0.02, 10**5, 10**6)
    trends = Outlook(sizes, RECORDS, 0.02, 10**5, 10**6, halved=flags)
    pairs = Outlook(((2, 2), (2, 2)), RECORDS, 0.02, 10**5, 10**6, EncryptedCounts)
    ours = Outlook(sizes, RECORDS, 0.02, 10**5, 10**6, EncryptedCounts, flags)
    for few, many in itertools.pairwise((trends, whole)):
        assert correlation_error(few, USUAL) < correlation_error(many, USUAL)
    assert distances(ours, USUAL).across[0] == pytest.approx(
        TREND_ERROR * distances(pairs, USUAL).across[0] / 4
    )
    noise = math.hypot(math.pi / 2 * cell_error(trends, USUAL) / RECORDS, TREND_FORM)
    expected = CORRELATION * noise / math.hypot(CORRELATION, noise)
    assert correlation_error(trends, USUAL) == pytest.approx(expected)
    assert math.isnan(correlation_error(trends, USUAL.without_sketches()))


def test_the_verdict_says_what_correlations_across_parties_are_off_by():
    plan = plan_with(LONG, expected_records=RECORDS)
    error = verdict(plan).errors.correlation
    assert 0.02 < error < 0.1
    assert f"; correlations across parties ± {error:.2g}; half the bins" in str(verdict(plan))
    # It falls with the records, and nobody has any across if one holds all.
    errors = [
        verdict(plan_with(LONG, expected_records=n)).errors.correlation
        for n in (1000, 3000, 9000, 10**6)
    ]
    assert errors == sorted(errors, reverse=True)
    alone = verdict(plan_with(schema_of(one=(40, 5)), expected_records=RECORDS))
    assert math.isnan(alone.errors.correlation)
    assert "correlations" not in str(alone)
