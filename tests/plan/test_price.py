"""What a second release for one plan costs: more than a second plan, by far, and nothing is left out of the price."""

import math
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from planning import plan_with

from vertimrf.errors import PlanError, PrivacyError
from vertimrf.plan import price
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.planner import CEILING_ABOVE_PHANTOMS, FLOOR_BELOW_PHANTOMS
from vertimrf.plan.price import ledger_of_releases, price_in_words
from vertimrf.plan.schema import Schema
from vertimrf.privacy.accountant import ORDERS, epsilon
from vertimrf.privacy.events import CountSketchEvent, GaussianEvent, GRREvent, SketchEvent

PARTIES = {
    "one": [Attribute.integer("a", 4), Attribute.integer("b", 3)],
    "two": [Attribute.integer("x", 4), Attribute.integer("y", 2)],
    "three": [Attribute.integer("s", 3)],
}


def plan_of(parties, **options):
    schema = Schema.of({name: PARTIES[name] for name in parties})
    settings = {"epsilon": 0.55, "expected_records": 30_000, "delta": 1 / 30_000, "nonce": "test"}
    settings |= {"keys": 1 << 19, "encoder": "scheduled-pairs"} | options
    return plan_with(schema, **settings)


@pytest.fixture(scope="module")
def two():
    return plan_of(["one", "two"])


def sketches(ledger):
    return [entry.event for entry in ledger.entries if isinstance(entry.event, SketchEvent)]


def test_released_once_it_costs_what_the_plan_says(two):
    assert replace(ledger_of_releases(two, (1, 1)), parties=two.party_names) == two.ledger()


@pytest.mark.parametrize(
    ("times", "touched", "least", "most"),
    [
        ((2, 1), 3, 2, 4),
        ((1, 2), 3, 2, 4),
        ((2, 2), 4, 13, 30),
        ((3, 3), 6, 70, 200),
    ],
)
def test_releases_of_one_plan_share_hashes(two, times, touched, least, most):
    """The review of this library priced a plan of epsilon 0.55 at 3.6, 28 and 147, with other numbers of phantoms."""
    ledger = ledger_of_releases(two, times)
    assert [(event.attributes_per_key, event.keys) for event in sketches(ledger)] == [
        (touched, sketches(two.ledger())[0].keys)
    ]
    assert least < ledger.epsilon < most
    # Two plans of 0.55 over the same people would cost far less.
    doubled = [entry.event for entry in two.entries()] * max(times)
    assert epsilon(doubled, two.delta).epsilon < 0.55 * max(times) * 1.001 < ledger.epsilon


def test_everything_a_party_releases_counts_as_often_as_it_does(two):
    counts = {
        name: sum(
            e.event.count
            for e in two.entries()
            if e.party == name and isinstance(e.event, GaussianEvent)
        )
        for name in two.party_names
    }
    ledger = ledger_of_releases(two, (2, 3))
    for name, times in (("one", 2), ("two", 3)):
        events = [e.event for e in ledger.entries if e.party == name]
        assert sum(event.count for event in events) == times * counts[name]
    assert {e.event.sigma for e in ledger.entries if e.party == "one"} == {
        e.event.sigma for e in two.entries() if e.party == "one"
    }


def test_of_three_parties_only_the_pairs_of_who_releases_twice_share():
    plan = plan_of(["one", "two", "three"])
    keys = {frozenset(p): 0 for p in ((0, 1), (0, 2), (1, 2))}
    for pair in plan.sketch.pairs:
        keys[
            frozenset(
                plan.schema.party_of(plan.groups[g].attributes[0]) for g in (pair.left, pair.right)
            )
        ] += pair.keys
    shared = {
        event.attributes_per_key: event.keys
        for event in sketches(ledger_of_releases(plan, (1, 1, 2)))
    }
    assert shared == {
        2: keys[frozenset((0, 1))],
        3: keys[frozenset((0, 2))] + keys[frozenset((1, 2))],
    }


def test_releases_of_count_sketches_share_buckets_and_signs():
    """Every release of a group is as many groups more as it weighs."""
    plan = plan_of(["one", "two", "three"], encoder="count-sketch", keys=1 << 14)
    (event,) = [
        entry.event for entry in plan.entries() if isinstance(entry.event, CountSketchEvent)
    ]
    assert plan.sketch.weights
    sketch = plan.sketch
    weights = [sum(sketch.weight(group) for group in plan.groups_of(party)) for party in range(3)]

    def released(*times):
        return next(
            e.event for e in ledger_of_releases(plan, times).entries if e.released == shared
        )

    (shared,) = [entry.released for entry in plan.entries() if entry.event == event]
    assert released(1, 1, 1) == event
    assert released(2, 1, 1) == structs.replace(event, groups=sum(weights) + weights[0])
    # More groups than the noise of a number has variance are priced as exactly.
    assert 3 * sum(weights) > event.variance
    assert released(3, 3, 3) == structs.replace(event, groups=3 * sum(weights))
    known = GaussianEvent(
        math.sqrt(3 * sum(weights) * event.variance), 3 * sum(weights), event.repetitions
    )
    assert (
        epsilon([released(3, 3, 3)], plan.delta).epsilon
        < 0.1 * epsilon([known], plan.delta).epsilon
    )
    # Two plans over the same people would cost less.
    doubled = [entry.event for entry in plan.entries()] * 2
    assert epsilon(doubled, plan.delta).epsilon < 0.9 * ledger_of_releases(plan, (2, 2, 2)).epsilon


def test_rows_by_randomised_response_are_drawn_again():
    plan = plan_of(["one", "two"], encoder="grr")
    event = next(
        e.event for e in ledger_of_releases(plan, (1, 2)).entries if isinstance(e.event, GRREvent)
    )
    assert event.sizes == (4, 3, 4, 4, 2, 2)
    assert ledger_of_releases(plan, (1, 2)).epsilon > plan.ledger().epsilon


def test_shared_keys_touch_every_attribute_of_every_release():
    plan = plan_of(["one", "two"], encoder="published", claim_as_published=True, keys=100)
    assert [event.attributes_per_key for event in sketches(ledger_of_releases(plan, (1, 3)))] == [8]


@pytest.mark.parametrize("times", [(1,), (1, 0), (1, 1, 1)])
def test_numbers_that_are_none_are_refused(two, times):
    with pytest.raises(PlanError, match="at least once"):
        ledger_of_releases(two, times)


@pytest.mark.parametrize("phantoms", [2, 10, 50, 100, 1000, 6326, 100_000, 1_000_000])
def test_a_person_under_two_ids_is_no_worse_off_than_under_one(phantoms):
    """Whose ids differ between two parties touches one sketch under either of two hashes, not two under one.

    Under a single key that can be worse at one epsilon, by a few per cent. In Rényi divergence, which adds up over keys, it is
    better at every order that decides an epsilon, with the levels that the planner chooses; and over a run's keys by far.
    """
    level = math.log2(phantoms)
    floor = max(int(level) - FLOOR_BELOW_PHANTOMS, 0)
    both = SketchEvent(phantoms, floor, round(level) + CEILING_ABOVE_PHANTOMS, 1 << 14)
    apart = structs.replace(both, attributes_per_key=1)
    orders = ORDERS[ORDERS <= 100]
    assert np.all(2 * apart.renyi(orders) <= both.renyi(orders))
    assert epsilon([apart, apart], 1e-6).epsilon < 0.6 * epsilon([both], 1e-6).epsilon


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.1, "expected_records": 1000},
        {"epsilon": 10.0, "expected_records": 1000},
        {"epsilon": 30.0, "expected_records": 10_000},
        {"records_per_person": 2},
    ],
)
def test_every_second_release_has_a_price(options):
    """Of 72 small plans 13 had none, and who was refused read of that alone."""
    plan = plan_of(
        ["one", "two"], encoder="count-sketch", **({"keys": None, "delta": None} | options)
    )
    said = price_in_words(plan, 0)
    assert said.startswith("A second message would take the run from epsilon")
    for times in ((2, 1), (2, 2), (3, 3)):
        assert plan.ledger().epsilon < ledger_of_releases(plan, times).epsilon < math.inf


def test_persons_with_several_records_are_priced_as_if_buckets_were_known_where_there_is_little_noise():
    plan = plan_of(["one", "two"], encoder="count-sketch", keys=None, records_per_person=2)
    (event,) = [
        entry.event for entry in plan.entries() if isinstance(entry.event, CountSketchEvent)
    ]
    roomy = replace(plan, sketch=replace(plan.sketch, variance=4.0 * event.groups))
    priced = ledger_of_releases(roomy, (3, 3)).entries[-1].event
    many = 3 * event.groups
    assert priced == GaussianEvent(
        math.sqrt(many * 4.0 * event.groups), 2 * many, event.repetitions
    )


def test_without_a_price_the_refusal_is_still_a_sentence(two, monkeypatch):
    def unpriced(*_, **__):
        raise PrivacyError("No price.")

    monkeypatch.setattr(price, "ledger_of_releases", unpriced)
    assert price_in_words(two, 0) == "What a second message would cost cannot be computed."
