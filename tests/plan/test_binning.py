"""Bins from a released one-way marginal."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.plan.binning import choose_bins


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
