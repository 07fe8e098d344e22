"""Plans with count sketches: within the target and the messages, from public figures alone."""

from dataclasses import replace

import numpy as np
import pytest
from builders import schema_of
from planning import plan_with

from vertimrf.errors import PlanError
from vertimrf.plan.choice import COUNT_BINS
from vertimrf.plan.defaults import SHARES
from vertimrf.plan.groups import Group, released_sizes
from vertimrf.plan.plan import Plan
from vertimrf.privacy.events import CountSketchEvent
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.count_sketches.planning import VARIANCE_PER_GROUP

ROWS = 20_000


def plan_of(left=(4, 3), right=(4, 2), **changes):
    settings = {
        "epsilon": 1.0,
        "expected_records": ROWS,
        "nonce": "test",
        "encoder": "count-sketch",
    } | changes
    return plan_with(schema_of(one=left, two=right), **settings)


@pytest.mark.parametrize("message_bytes", [3_000, 100_000, 4_000_000])
@pytest.mark.parametrize("epsilon", [0.1, 0.8, 5.0])
def test_plans_keep_the_target_and_the_message_budget(message_bytes, epsilon):
    plan = plan_of((16, 7, 9), (41, 2), message_bytes=message_bytes, epsilon=epsilon, tau=1000)
    assert isinstance(plan.sketch, CountSketches)
    assert 0.9 * epsilon < plan.ledger().epsilon <= epsilon
    assert plan.ledger().private
    assert max(plan.message_size(party) for party in (0, 1)) <= message_bytes
    # The price of a record is near its limit.
    assert plan.sketch.variance >= 0.6 * VARIANCE_PER_GROUP * len(plan.groups)


def test_fewer_bits_where_messages_are_the_limit():
    bits = [
        plan_of((16, 7, 9), (41, 2), tau=1000, message_bytes=size).sketch.bits
        for size in (10_000, 200_000, 20_000_000)
    ]
    assert bits == sorted(bits)
    assert bits[0] < bits[-1]


def groups_of(left, right, **changes):
    """Attributes of every group, and which groups are contrasts."""
    plan = plan_of(left, right, **changes)
    return [group.attributes for group in plan.groups], plan.sketch.contrasts


def test_attributes_of_two_values_are_contrasts():
    alone = [(a,) for a in range(6)]
    # One group of every party stays as values: the first where all have two.
    many = {"tau": 10, "expected_records": 10 * ROWS}
    assert groups_of((2, 3, 2), (2, 2, 41), **many) == (alone, (0, 2, 3, 4))
    # With few records, 41 values are halved.
    few = {"tau": 10, "expected_records": ROWS // 10}
    assert groups_of((2, 3, 2), (2, 2, 41), **few) == (alone, (0, 2, 4, 5))
    assert groups_of((2, 2, 2), (2, 2, 2), tau=10) == (alone, (1, 2, 4, 5))
    assert groups_of((2, 2, 2), (3, 2, 4), tau=10) == (alone, (1, 2, 4))
    # Those of other sizes never are.
    assert groups_of((3, 4, 5), (4, 4, 16), tau=10) == (alone, ())
    plan = plan_of((2, 3, 2), (2, 2, 41), **many)
    assert replace(plan.sketch, weights=()).event.groups == 6
    assert [plan.sketch.rows(group) for group in range(6)] == [1, 3, 1, 1, 1, 41]


def test_parties_of_one_attribute_of_two_values_tell_presence():
    schema = schema_of(a=(2,), b=(3, 2), c=(2,), d=(2, 2), e=(4,))
    plan = plan_with(schema, expected_records=ROWS, tau=10)
    assert [group.attributes for group in plan.groups] == [
        (a,) for a in (0, 0, 1, 2, 3, 3, 4, 5, 6)
    ]
    assert plan.sketch.sizes == (2, 1, 3, 2, 2, 1, 2, 2, 4)
    assert plan.sketch.contrasts == (0, 3, 4, 7)
    # An attribute weighs fifteen times as much, and more if it has more values.
    assert plan.sketch.weights == (15, 1, 21, 15, 15, 1, 19, 15, 23)
    assert plan.sketch.event.groups == sum(plan.sketch.weights)
    # One alone stays as values; so do all where everybody is wanted, and where persons have several records.
    assert groups_of((2,), (2, 2), epsilon=4.0) == ([(0,), (1,), (2,), (1, 2)], (2, 3))
    assert groups_of((2,), (2, 2), epsilon=4.0, tau=4) == ([(0,), (1,), (2,)], (2,))
    assert 1 not in plan_of((2,), (3, 3)).sketch.sizes
    for changes, contrasts in (({"population": "outer"}, ()), ({"records_per_person": 2}, (2, 5))):
        other = plan_with(schema, expected_records=ROWS, tau=10, **changes)
        assert other.sketch.sizes == (2, 3, 2, 2, 2, 2, 4)
        assert other.sketch.contrasts == contrasts


def test_what_cannot_be_priced_soon_has_the_least_weights():
    """Presence keeps its low weight where there are too many attributes to weigh them by their sizes."""
    schema = schema_of(a=(2,), b=(2,), c=(50,) * 60)
    plan = plan_with(schema, expected_records=50 * ROWS, tau=10, shares=SHARES)
    assert plan.sketch.weights == (15, 1, 15, 1, *[15] * 60)


def test_parities_come_with_them_where_one_clique_holds_all_and_noise_is_small():
    left = [(0,), (1,), (2,), (3,), (0, 2), (1, 3), (0, 1), (1, 2), (2, 3), (0, 3)]
    right = [(4,), (5,), (6,), (4, 5), (5, 6), (4, 6)]
    plan = plan_of((2, 2, 2, 2), (2, 2, 2), epsilon=4.0)
    assert groups_of((2, 2, 2, 2), (2, 2, 2), epsilon=4.0) == (
        left + right,
        (*range(1, 10), *range(11, 16)),
    )
    assert [group.parity for group in plan.groups] == [
        len(attributes) == 2 for attributes in left + right
    ]
    assert plan.sketch.sizes == (2,) * 16
    # A record counts in parities once, and in the others as often as they weigh.
    assert plan.sketch.weights == (7, 5, 5, 5, *[1] * 6, 7, 5, 5, 1, 1, 1)
    assert plan.sketch.event.groups == sum(plan.sketch.weights)
    assert plan.sketch.shapes((0, 1, 4)) == [
        (2, plan.sketch.numbers),
        *[(1, plan.sketch.numbers)] * 2,
    ]
    # Whatever is between them; those of other sizes have none.
    assert groups_of((2, 4, 2, 3), (2, 2), epsilon=4.0) == (
        [(0,), (1,), (2,), (3,), (0, 2), (4,), (5,), (4, 5)],
        (0, 2, 4, 6, 7),
    )
    # Farthest first, in a ring, and no more than so many rings.
    parities = [
        attributes
        for attributes in groups_of((2,) * 8, (2,), epsilon=8.0)[0]
        if len(attributes) == 2
    ]
    assert parities[:6] == [(0, 4), (1, 5), (2, 6), (3, 7), (0, 3), (1, 4)]
    assert sorted(parities) == [
        (i, j) for i in range(8) for j in range(i + 1, 8) if 2 <= j - i <= 6
    ]
    # Cliques are scarce, or there is much noise, or no weights: none.
    alone = [(a,) for a in range(7)]
    for changes in ({"tau": 100}, {"epsilon": 0.3}, {"records_per_person": 2}):
        assert groups_of((2, 2, 2, 2), (2, 2, 2), **({"epsilon": 4.0} | changes)) == (
            alone,
            (1, 2, 3, 5, 6),
        )
    assert groups_of((2, 2, 2, 2), (5, 2, 2), epsilon=4.0)[0] == [*left, (4,), (5,), (6,), (5, 6)]
    assert (
        groups_of((2, 2, 2, 2), (2, 2, 2), epsilon=0.3, expected_records=100 * ROWS)[0]
        == left + right
    )


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"parity": 1}, "is no parity"),
        ({"parity": "yes"}, "is no parity"),
        ({"attributes": [0], "bins": [2]}, "is no parity"),
        ({"attributes": [0, 1], "bins": [2, 1]}, "is no parity"),
        ({"attributes": [0, 4]}, "not one party's attributes"),
        ({"attributes": [0, 0]}, "not one party's attributes"),
        ({"parity": False}, "is no parity"),
    ],
)
def test_parities_that_no_group_has_are_refused(changes, said):
    data = plan_of((2, 2, 2, 2), (2, 2, 2), epsilon=4.0).to_json()
    groups = list(data["groups"])
    assert groups[4] == {"attributes": (0, 2), "bins": (2, 2), "parity": True}
    groups[4] = groups[4] | changes
    with pytest.raises(PlanError, match=said):
        Plan.from_json(data | {"groups": groups})


def test_parities_are_contrasts_of_count_sketches():
    data = plan_of((2, 2, 2, 2), (2, 2, 2), epsilon=4.0).to_json()
    contrasts = [group for group in data["sketch"]["contrasts"] if group != 4]
    with pytest.raises(PlanError, match="as contrasts, by count sketches or encrypted counts"):
        Plan.from_json(data | {"sketch": data["sketch"] | {"contrasts": contrasts, "weights": []}})
    pairs = plan_of((2, 2), (2, 2), encoder="scheduled-pairs").to_json()
    with pytest.raises(PlanError, match="as contrasts, by count sketches or encrypted counts"):
        Plan.from_json(
            pairs
            | {
                "groups": [
                    *pairs["groups"],
                    {"attributes": [0, 1], "bins": [2, 2], "parity": True},
                ],
                "sketch": pairs["sketch"] | {"sizes": [*pairs["sketch"]["sizes"], 2]},
            }
        )


def test_wide_domains_are_cut():
    assert plan_of((300, 3), (4,), tau=1000, expected_records=10**6).groups[0].bins == (COUNT_BINS,)


def test_an_edited_plan_is_refused():
    data = plan_of().to_json()
    for change in (
        {"variance": data["sketch"]["variance"] / 2},
        {"repetitions": 2 * data["sketch"]["repetitions"]},
    ):
        with pytest.raises(PlanError, match="more than its target"):
            Plan.from_json(data | {"sketch": data["sketch"] | change})


@pytest.mark.parametrize(
    "contrasts", [[3], [2, 0], [0, 0], [4], [-1], [0, 9], [True], [0.0], ["0"], [[0]]]
)
def test_contrasts_that_no_group_has_are_refused(contrasts):
    data = plan_of((2, 3, 2), (4, 5), tau=10).to_json()
    said = r"^Contrasts are of groups of 2 or 3 values, in order, not of \[[^]]*\]+\.$"
    if not all(type(group) is int for group in contrasts):
        said = r"sketch is malformed \(expected `int`, got .* at `contrasts\[0\]`\); have the plan made again\.$"
    with pytest.raises(PlanError, match=said):
        Plan.from_json(data | {"sketch": data["sketch"] | {"contrasts": contrasts}})


def test_groups_of_many_values_have_larger_weights():
    plan = plan_of((2, 3, 16), (41, 2, 2), epsilon=2.0, expected_records=100_000, tau=10)
    sketch = plan.sketch
    assert sketch.contrasts == (0, 4, 5)
    # Grow with the numbers that are published, 1 to 41, and are alike where those are.
    two, three, sixteen, wide, *others = sketch.weights
    assert [two, two] == others
    assert two < three < sixteen < wide
    assert all(weight % 2 for weight in sketch.weights)
    assert sketch.event.groups == sum(sketch.weights)
    assert 1.9 < plan.ledger().epsilon <= 2.0
    (entry,) = [entry for entry in plan.entries() if isinstance(entry.event, CountSketchEvent)]
    assert f"(5 to {wide})" in entry.noise
    assert entry.event == sketch.event
    # So it is with the group that stays as values among contrasts.
    assert plan_of((2, 2, 2), (2, 2, 2), tau=10).sketch.weights == (7, 5, 5, 7, 5, 5)


def test_weights_are_the_same_where_groups_are_and_of_persons_with_several_records():
    for left, right, changes in (
        ((4, 4, 4), (4, 4), {}),
        ((2, 3, 16), (41, 2, 2), {"records_per_person": 2}),
    ):
        plan = plan_of(left, right, tau=10, **changes)
        assert plan.sketch.weights == ()
        assert "weights" not in plan.to_json()["sketch"]


def test_released_sizes_of_parities_take_attributes_for_independent():
    maps = (np.array([0, 0, 1]), np.array([0, 1]))
    one_way = {3: np.array([10.0, 20.0, 70.0]), 5: np.array([-5.0, 40.0])}
    alone, parity = released_sizes(
        [Group((3,), (2,)), Group((3, 5), (2, 2))], [maps[:1], maps], one_way
    )
    np.testing.assert_allclose(alone, [30, 70])
    np.testing.assert_allclose(parity, [70, 30])
    one_way[5] = np.array([10.0, 40.0])
    (parity,) = released_sizes([Group((3, 5), (2, 2))], [maps], one_way)
    np.testing.assert_allclose(parity, [6 + 56, 24 + 14])


def test_parities_sum_cells():
    cells = np.arange(8.0).reshape(2, 2, 2)
    parity = Group((0, 1, 2), (2, 2, 2))
    np.testing.assert_array_equal(parity.sums(cells), [0 + 3 + 5 + 6, 1 + 2 + 4 + 7])
    np.testing.assert_array_equal(Group((0,), (8,)).sums(np.arange(8.0)), np.arange(8))
