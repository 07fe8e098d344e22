"""Values of long domains that are measured as one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf import Attribute, Impossible, Schema
from vertimrf.plan.binning import merge_light
from vertimrf.plan.merging import (
    LIGHT_SIGMAS,
    LONG_DOMAIN,
    Merging,
    kept_apart,
    merged_values,
    merging,
)

COUNTS = st.lists(
    st.one_of(st.integers(-50, 50), st.integers(-50, 10_000)), min_size=1, max_size=80
)


@given(COUNTS, st.integers(0, 200))
def test_neighbours_merge_while_they_count_little_and_no_longer(counts, light):
    weights = np.maximum(np.array(counts, float), 0)
    mapping = merge_light(np.array(counts, float), light, ordered=True)
    assert mapping[0] == 0
    assert set(np.diff(mapping)) <= {0, 1}
    sums, values = np.bincount(mapping, weights=weights), np.bincount(mapping)
    # What was merged counts little, and what could still be merged does not.
    assert (sums[values > 1] <= 2 * light).all()
    assert (sums[:-1] + sums[1:] > 2 * light).all()


@given(COUNTS, st.integers(-10, 200))
def test_rare_categories_are_one_and_the_others_stay_apart(counts, light):
    mapping = merge_light(np.array(counts, float), light, ordered=False)
    rare = np.array(counts) < light
    assert len(set(mapping[rare])) <= 1
    assert len(set(mapping)) == (~rare).sum() + rare.any()
    # Numbered by their first value.
    assert [mapping.tolist().index(b) for b in range(mapping.max() + 1)] == sorted(
        mapping.tolist().index(b) for b in range(mapping.max() + 1)
    )


def test_long_domains_of_one_holder_that_no_combination_is_about():
    long, short = LONG_DOMAIN + 1, LONG_DOMAIN
    both = Attribute.integer("both", long)
    labels = Attribute.categorical("labels", [str(i) for i in range(long)])
    schema = Schema.of(
        {
            "one": [
                Attribute.integer("long", long),
                Attribute.integer("short", short),
                Attribute.integer("ruled", long),
                both,
            ],
            "two": [both, labels],
        },
        impossible=[Impossible.of(ruled=3, short=2)],
    )
    assert merging(schema, "one") == {schema.index("long"): Merging(ordered=True)}
    assert merging(schema, "two") == {schema.index("labels"): Merging(ordered=False)}
    assert {schema.names[a] for a in kept_apart(schema)} == {"short", "ruled", "both"}


@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=60),
    st.floats(1e-3, 1e6),
    st.booleans(),
)
@settings(max_examples=60)
def test_maps_are_the_same_from_whole_and_from_rounded_numbers(counts, sigma, ordered):
    """Sums of whole numbers are exact: a party that keeps its counts as floats and a server that has read integers agree."""
    how = Merging(ordered)
    whole = merged_values({0: np.array(counts, np.int64)}, sigma, {0: how})
    floats = merged_values({0: np.array(counts, np.float64)}, sigma, {0: how})
    np.testing.assert_array_equal(whole[0], floats[0])
    np.testing.assert_array_equal(
        whole[0], merge_light(np.array(counts, float), LIGHT_SIGMAS * sigma, ordered)
    )
