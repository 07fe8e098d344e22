"""Halved attributes with missing values: the missing value is a value of its own in bins, groups and plans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning import edited, plan_with

from vertimrf import Attribute, Plan, Schema
from vertimrf.errors import PlanError
from vertimrf.plan.binning import (
    TREND_BINS,
    beside_missing,
    choose_bins,
    finer_bins,
    halves,
    missing_alone,
)
from vertimrf.plan.groups import cut_groups

RECORDS = 1000
COUNTS = st.lists(
    st.one_of(st.integers(-9, 9).map(float), st.floats(-10, 1e6)), min_size=3, max_size=40
)


def schema_with(missing):
    """Two parties of two long columns, some of which have missing values."""
    a, b, x, y = (
        Attribute.integer(name, 40, missing=name in missing) for name in ("a", "b", "x", "y")
    )
    return Schema.of({"one": [a, b], "two": [x, y]})


@given(COUNTS, st.booleans(), st.booleans(), st.data())
@settings(max_examples=200)
def test_the_missing_value_has_the_last_bin_alone(counts, ordered, halved, data):
    counts = np.array(counts)
    bins = data.draw(st.integers(3, len(counts)))
    cut = beside_missing(counts, bins, ordered, halved)
    assert cut[-1] == bins - 1 == cut.max()
    assert (cut[:-1] < bins - 1).all()
    assert missing_alone(cut, True)
    of_values = halves(counts[:-1], ordered, False) if halved and bins == 3 else None
    if of_values is None:
        of_values = choose_bins(counts[:-1], bins - 1, ordered)
    np.testing.assert_array_equal(cut[:-1], of_values)
    finer = finer_bins(counts, cut, ordered, True)
    if not ordered:
        np.testing.assert_array_equal(finer, cut)
        return
    # Others are cut as if it were not there, and bins do not grow in number.
    assert finer.max() < max(TREND_BINS, bins)
    assert (finer[:-1] < finer[-1]).all()
    np.testing.assert_array_equal(
        finer[:-1], finer_bins(counts[:-1], cut[:-1], True, False, TREND_BINS - 1)
    )


def test_it_does_not_move_the_middle_of_the_others():
    """A third of the records lack the value. The halves are even without them, where the upper half had them too before."""
    counts = np.array([10.0, 10, 10, 10, 20])
    assert beside_missing(counts, 3, True, True).tolist() == [0, 0, 1, 1, 2]
    assert halves(counts, True, True).tolist() != [0, 0, 1, 1, 1]
    assert not missing_alone(halves(counts, True, True), True)
    # A box that is ticked or empty has no present values to tell apart.
    assert not missing_alone(np.array([0, 1]), True)


def test_groups_are_contrasts_of_three_values_where_values_are_missing():
    plan = plan_with(schema_with("ax"), expected_records=RECORDS)
    assert plan.halved == (0, 1, 2, 3)
    sizes = [group.size for group in plan.groups]
    assert sizes == [3, 2, 3, 2]
    # Groups without missing values are told by values, if one has to be.
    assert plan.sketch.contrasts == (0, 2)
    assert [plan.sketch.alternation(g) for g in range(4)] == [1, 0, 2, 0]
    one_way = {a: np.full(size, 100.0) for a, size in enumerate(plan.schema.sizes)}
    bins = [maps[0] for maps in cut_groups(plan.schema, plan.groups, one_way, {}, plan.halved)]
    assert [int(each.max()) + 1 for each in bins] == sizes
    assert (bins[0] == 2).nonzero()[0].tolist() == [40]
    all_missing = plan_with(schema_with("abxy"), expected_records=RECORDS)
    assert [group.size for group in all_missing.groups] == [3] * 4
    assert all_missing.sketch.contrasts == (1, 3)


def test_noise_and_price_are_those_without_missing_values():
    """The counters of a group with missing values are as many, and a record moves them as far."""
    plain, missing = (
        plan_with(schema_with(some), expected_records=RECORDS, nonce="t").sketch
        for some in ("", "ax")
    )
    for of in ("event", "numbers", "bits", "repetitions"):
        assert getattr(plain, of) == getattr(missing, of)
    # Which of a party's two groups is told by values, and weighs more, may differ.
    assert sorted(plain.weights) == sorted(missing.weights)
    assert sorted(plain.shapes(range(4))) == sorted(missing.shapes(range(4)))


def test_contrasts_of_three_values_without_a_missing_one_are_refused():
    content = plan_with(schema_with("ax"), expected_records=RECORDS).to_json()
    assert Plan.from_json(content).sketch.contrasts == (0, 2)
    other = plan_with(schema_with("x"), expected_records=RECORDS).to_json()
    with pytest.raises(PlanError, match="of the halves of an attribute with missing values"):
        Plan.from_json(
            edited(
                edited(other, "groups", 0, value={"attributes": [0], "bins": [3]}),
                "sketch",
                value=content["sketch"],
            )
        )


def test_encrypted_counts_and_single_holders_keep_two_halves():
    plan = plan_with(schema_with("ax"), expected_records=RECORDS, encoder="encrypted")
    assert [group.size for group in plan.groups if not group.parity] == [2, 2, 2, 2]
