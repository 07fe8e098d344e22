"""Bins from a released one-way marginal."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.plan.binning import MISSING_HALF, TREND_BINS, choose_bins, finer_bins, halves


def merged_slowly(counts, bins, ordered):
    """Always the two lightest, looked for among all."""
    weights = [float(w) for w in np.maximum(counts, 0.0)]
    members = [[value] for value in range(len(weights))]
    while len(weights) > bins:
        if ordered:
            left = int(np.argmin([a + b for a, b in itertools.pairwise(weights)]))
            right = left + 1
        else:
            left, right = sorted(int(i) for i in np.argsort(weights, kind="stable")[:2])
        weights[left] += weights.pop(right)
        members[left] += members.pop(right)
    out = np.empty(len(counts), np.int64)
    for number, values in enumerate(sorted(members, key=min)):
        out[values] = number
    return out


@given(
    counts=st.lists(
        st.one_of(st.integers(-2, 5).map(float), st.floats(-10, 1e6)), min_size=1, max_size=60
    ),
    part=st.floats(0, 1),
    ordered=st.booleans(),
)
@settings(max_examples=300)
def test_bins_are_those_of_merging_one_by_one(counts, part, ordered):
    bins = max(round(part * len(counts)), 1)
    np.testing.assert_array_equal(
        choose_bins(np.array(counts), bins, ordered), merged_slowly(np.array(counts), bins, ordered)
    )


COUNTS = st.lists(
    st.one_of(st.integers(-9, 9).map(float), st.floats(-10, 1e6)), min_size=3, max_size=40
)


@given(COUNTS, st.booleans(), st.booleans())
@settings(max_examples=200)
def test_halves_are_two_and_bins_lie_within_them(counts, ordered, missing):
    counts = np.array(counts)
    half = halves(counts, ordered, missing)
    assert set(half) == {0, 1}
    finer = finer_bins(counts, half, ordered, missing)
    assert set(finer) == set(range(finer.max() + 1))
    assert finer.max() < TREND_BINS
    # Each bin is in one half.
    assert len({*zip(finer.tolist(), half.tolist(), strict=True)}) == finer.max() + 1
    if not ordered:
        np.testing.assert_array_equal(finer, half)
        return
    assert (np.diff(half) >= 0).all()
    assert (np.diff(finer) >= 0).all()
    weights, at = np.maximum(counts, 0.0), int(half.sum())
    part = weights[-1] / max(weights.sum(), 1.0)
    if missing and part > MISSING_HALF + 1e-9:
        assert at == 1
        np.testing.assert_array_equal(finer, half)
    elif weights.sum() > 1 and part < MISSING_HALF - 1e-9:
        # No other cut among values is nearer to the middle.
        share = np.cumsum(weights)[:-1] / weights.sum()
        nearest = np.abs(share[: len(share) - missing] - 0.5).min()
        assert abs(share[len(counts) - at - 1] - 0.5) == nearest


@pytest.mark.parametrize(
    "counts, ordered, missing, half, finer",
    [
        ([5, 5, 5, 5], True, False, [0, 0, 1, 1], [0, 1, 2, 3]),
        # One value that is most of it is a half.
        ([1, 90, 5, 4], True, False, [0, 0, 1, 1], [0, 1, 2, 3]),
        ([90, 1, 5, 4], True, False, [0, 1, 1, 1], [0, 1, 2, 3]),
        # From a third on, those without a value are the upper half; below, they are in it.
        ([3, 3, 3, 5], True, True, [0, 0, 0, 1], [0, 0, 0, 1]),
        ([4, 4, 4, 5], True, True, [0, 0, 1, 1], [0, 1, 2, 3]),
        # They are not the upper half because the rest is one value.
        ([1, 60, 29], True, True, [0, 1, 1], [0, 1, 2]),
        ([0, 0, 0, 0], True, False, [0, 1, 1, 1], [0, 1, 2, 3]),
        ([0, 0, 0], True, True, [0, 0, 1], [0, 0, 1]),
        # One value, or none: a box that is ticked or empty.
        ([90, 10], True, True, [0, 1], [0, 1]),
        # Labels are merged, two by two.
        ([9, 1, 2, 8], False, False, [0, 1, 1, 1], [0, 1, 1, 1]),
    ],
)
def test_halves_by_hand(counts, ordered, missing, half, finer):
    counts = np.array(counts, float)
    assert halves(counts, ordered, missing).tolist() == half
    assert finer_bins(counts, np.array(half), ordered, missing).tolist() == finer
