"""What a run costs if a party colludes with the server: the law against enumeration, and the ledger's second total."""

import functools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from builders import schema_of
from oracles import half_integer_gaussian
from planning import plan_with

from vertimrf import Ledger
from vertimrf.privacy.accountant import delta, epsilon
from vertimrf.privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
)
from vertimrf.privacy.ledger import LedgerEntry, Part
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches

TWO = schema_of(left=(16, 7, 4, 2), right=(5, 3))
THREE = schema_of(left=(16, 7, 4, 2), middle=(5, 3, 4), right=(6,))


EPSILONS = np.array([0.0, 0.3, 0.7, 1.1, 1.9])


def curve(moves):
    """Delta at each epsilon when a record is added and removed: over every combination of the noise of counters.

    A move has the counter's shift by the record, and the variance of its noise.
    """
    laws = []
    for shift, variance in moves:
        values, p = half_integer_gaussian(variance)
        # With the record, noise + shift; without it, noise: both on the same values.
        grid = np.arange(values[0], values[-1] + shift + 1)
        without, with_it = np.zeros(len(grid)), np.zeros(len(grid))
        without[: len(p)], with_it[shift:] = p, p
        laws.append((without, with_it))
    without = functools.reduce(np.multiply.outer, [law[0] for law in laws])
    with_it = functools.reduce(np.multiply.outer, [law[1] for law in laws])
    added = [np.maximum(with_it - math.exp(e) * without, 0).sum() for e in EPSILONS]
    removed = [np.maximum(without - math.exp(e) * with_it, 0).sum() for e in EPSILONS]
    return np.array(added), np.array(removed)


def weighed(kappa, *weights):
    """A move by each weight, whose noise grows with it."""
    return [(weight, weight * kappa) for weight in weights]


@pytest.mark.parametrize(
    "event, moves, priced_as",
    [
        # An even number of unit moves in all: exact.
        *(
            (
                CountSketchEvent(sum(weights), kappa, 8, 1),
                weighed(kappa, *weights),
                weighed(kappa, *weights),
            )
            for weights in ((1, 1), (1, 3), (1, 1, 1, 1))
            for kappa in (max(4.0, float(sum(weights))),)
        ),
        pytest.param(
            CountSketchEvent(6, 6.0, 8, 1),
            weighed(6.0, 1, 3, 1, 1),
            weighed(6.0, 1, 3, 1, 1),
            marks=pytest.mark.slow,
        ),
        # An odd number, over groups and repetitions, is priced as one more.
        *(
            (
                CountSketchEvent(groups, 4.0, 8, repetitions),
                weighed(4.0, *ones),
                weighed(4.0, 1, *ones),
            )
            for groups, repetitions in ((1, 1), (1, 3), (3, 1))
            for ones in ((1,) * (groups * repetitions),)
        ),
        # Two records of a person in two groups, in one place with one sign, or in two places: no more than the former.
        (CountSketchEvent(2, 6.0, 64, 1, 2), [(2, 6.0)] * 2, [(2, 6.0)] * 2),
        (CountSketchEvent(2, 6.0, 64, 1, 2), [(1, 6.0)] * 4, [(2, 6.0)] * 2),
    ],
)
def test_known_hashes_are_priced_by_all_combinations_of_noise(event, moves, priced_as):
    priced = np.array([delta([event.known_hashes], float(e)) for e in EPSILONS])
    added, removed = curve(moves)
    np.testing.assert_allclose(added, removed, rtol=1e-6)
    # Never below, but for double precision; and above by what the accountant's grid rounds up.
    assert (priced >= np.maximum(added, removed) * (1 - 1e-9)).all()
    np.testing.assert_allclose(priced, curve(priced_as)[0], rtol=5e-3)


def test_repetitions_and_groups_count_alike():
    one = CountSketchEvent(6, 12.0, 64, 50).known_hashes
    assert one == CountSketchEvent(2, 12.0, 256, 150).known_hashes
    assert one == GaussianEvent(math.sqrt(300 * 12.0), 300)
    # Of plans with so many numbers that a query has no such sensitivity, there are several.
    many = CountSketchEvent(10_000, 10_000.0, 64, 1 << 20).known_hashes
    assert many.count > 1
    assert many.rho == pytest.approx(10_000 * 2**20 / 2 / 10_000.0, rel=1e-6)


def moved(plan, groups, digests, codes):
    """What these records add to every published number, over the deviation of its noise, squared and summed: by the encoder."""
    encoder = CountSketchEncoder(plan, groups, bytes(range(32)))
    encoder.update(np.asarray(digests, np.uint64), np.asarray(codes, np.uint16))
    rows = [plan.rows(group) for group in groups]
    counters = np.frombuffer(encoder.state(), "<i4")[-plan.repetitions * sum(rows) * plan.buckets :]
    by_row = counters.reshape(plan.repetitions, sum(rows), plan.buckets)
    weight = np.repeat([plan.weight(group) for group in groups], rows)
    return float(((weight[:, None] * by_row) ** 2 / (weight[:, None] * plan.variance)).sum())


def test_the_encoder_moves_numbers_as_far_as_the_event_says():
    """Values, contrasts and weights, of one record and of several of a person."""
    plan = CountSketches(40, 64, 60.0, 4, (5, 2, 2, 3), contrasts=(1, 2), weights=(7, 3, 5, 9))
    groups = (0, 1, 2, 3)
    for group in (*[(g,) for g in groups], groups):
        event = plan.part(group)
        codes = np.array([[0, 1]] * 4)[: len(group), :1]
        assert event.rho == pytest.approx(0.5 * moved(plan, group, [77], codes))
    # Two records of a person with the same values: on average twice as far, and four times only where hashes coincide.
    person = plan.part(groups, 2)
    apart = moved(plan, groups, [77, 78], np.zeros((4, 2)))
    assert apart < 2 * person.rho
    same = moved(plan, groups, [77, 77], np.zeros((4, 2)))
    assert (
        2 * person.rho
        == pytest.approx(same)
        == pytest.approx(4 * moved(plan, groups, [77], np.zeros((4, 1))))
    )


def against(plan, colluder):
    """What colluding with one party costs, from the plan's own figures and not from its entries' parts."""
    events = [
        e.event
        for e in plan.entries()
        if e.party in plan.party_names and e.party != plan.party_names[colluder]
    ]
    sketch = plan.sketch
    owners = plan.group_parties
    numbers = (
        sum(sketch.weight(g) for g, owner in enumerate(owners) if owner != colluder)
        * sketch.repetitions
    )
    person = plan.records_per_person
    events.append(GaussianEvent(math.sqrt(numbers * sketch.variance), person * numbers))
    for attribute, agreed in zip(plan.schema.shared, plan.agreement, strict=False):
        holders = [party for party in plan.schema.holders[attribute] if party != colluder]
        numbers = len(holders) * agreed.repetitions
        events.append(GaussianEvent(math.sqrt(numbers * agreed.variance), numbers))
    return epsilon(events, plan.delta).epsilon


@pytest.mark.parametrize(
    "schema, changes",
    [
        (TWO, {"message_bytes": 40_000}),
        (TWO, {"records_per_person": 2}),
        (THREE, {}),
        (THREE, {"epsilon": 3.0, "delta": 1e-9}),
    ],
)
def test_the_total_is_that_of_the_worst_colluder(schema, changes):
    plan = plan_with(
        schema,
        **{"epsilon": 1.0, "expected_records": 20_000, "nonce": "test", "message_bytes": 200_000}
        | changes,
    )
    assert plan.sketch.weights or plan.records_per_person > 1
    each = [against(plan, colluder) for colluder in range(len(plan.party_names))]
    # Numbers are rounded up to even ones, of hundreds and more, and several events by more than one.
    assert plan.ledger().colluding_epsilon == pytest.approx(max(each), rel=5e-3)
    assert max(each) > 1.2 * min(each)
    # The ledger's own total, about somebody without the secret, is far below.
    assert plan.ledger().colluding_epsilon > 2 * plan.ledger().epsilon


def test_sketches_of_agreement_are_part_of_it():
    shared = schema_of(left=(16, 7, 4, 2), right={"left0": 16, "right0": 5, "right1": 3})
    plan = plan_with(shared, expected_records=20_000, nonce="test", message_bytes=200_000)
    assert plan.agreement
    assert plan.ledger().colluding_epsilon == pytest.approx(
        max(against(plan, 0), against(plan, 1)), rel=1e-3
    )
    without = [entry for entry in plan.entries() if "agree on" not in entry.released]
    assert (
        replace(plan.ledger(), entries=tuple(without)).colluding_epsilon
        < plan.ledger().colluding_epsilon
    )


def test_a_party_without_attributes_that_vary_may_collude_too():
    plan = plan_with(
        schema_of(left=(4, 3), none=(1,), right=(5,)),
        expected_records=20_000,
        message_bytes=100_000,
    )
    # Against it everything of both others counts.
    sketch = plan.sketch
    numbers = sum(map(sketch.weight, range(3))) * sketch.repetitions
    others = [entry.event for entry in plan.entries()][:-1]
    event = GaussianEvent(math.sqrt(numbers * sketch.variance), numbers)
    assert plan.ledger().colluding_epsilon == pytest.approx(
        epsilon([*others, event], plan.delta).epsilon, rel=5e-3
    )


def test_what_rests_on_the_secret_alone_has_no_epsilon_and_what_owes_it_nothing_keeps_its_own():
    options = {"epsilon": 1.0, "expected_records": 20_000, "nonce": "test"}
    for more in (
        {"encoder": "scheduled-pairs"},
        {"encoder": "published", "claim_as_published": True},
    ):
        ledger = plan_with(TWO, **options, message_bytes=1_000_000, **more).ledger()
        assert math.isinf(ledger.colluding_epsilon)
        assert "with the server: no epsilon" in ledger.table()
    responses = plan_with(TWO, **options, encoder="grr").ledger()
    assert responses.colluding_epsilon < responses.epsilon
    event = responses.entries[-1].event
    assert [part.event.sizes for part in responses.entries[-1].parts] == [
        event.sizes[:4],
        event.sizes[4:],
    ]
    # Nobody colludes where one holds everything.
    alone = plan_with(schema_of(one=(3, 4)), **options).ledger()
    assert alone.colluding_epsilon is None
    assert "collude" not in alone.table()


def entry(event, party, parts=()):
    return LedgerEntry(event, party, "something", "noise", parts=parts)


def test_what_was_spent_beforehand_and_what_nobody_owns_counts():
    parts = (Part("one", GaussianEvent(2.0)), Part("two", GaussianEvent(4.0)))
    entries = (
        entry(GeometricEvent(10.0), "coordinator"),
        entry(GeometricEvent(5.0), "one"),
        entry(GaussianEvent(20.0), "two"),
        entry(CountSketchEvent(2, 5.0, 64, 10), "all parties", parts),
    )
    ledger = Ledger(entries, 1e-6, prior=2, parties=("one", "two"))
    against_one = 0.1 + epsilon([GaussianEvent(20.0), GaussianEvent(4.0)], 1e-6).epsilon
    against_two = 0.3 + epsilon([GaussianEvent(2.0)], 1e-6).epsilon
    assert against_two > against_one
    assert ledger.colluding_epsilon == pytest.approx(against_two, rel=1e-12)
    # Of a party that releases nothing there is nobody else's to add.
    lone = Ledger((entry(GaussianEvent(3.0), "one"),), 1e-6, parties=("one", "two"))
    assert lone.colluding_epsilon == lone.epsilon
    assert Ledger(entries[:1] + entries[2:3], 1e-6, prior=1).colluding_epsilon is None


def test_what_was_exposed_beforehand_takes_its_part_of_delta_from_a_colluder_too():
    """The colluder sees what the other party spent, nothing else: the ledger of that party alone has the same total."""
    exposing = ThresholdEvent(2.0, ThresholdEvent.least_threshold(2.0, 0.9e-6))
    assert exposing.exposed > 0.5e-6
    spent = entry(exposing, "two"), entry(GaussianEvent(20.0), "two")
    own = entry(GaussianEvent(50.0), "one")
    both = Ledger((*spent, own), 1e-6, prior=1, parties=("one", "two"))
    assert both.colluding_epsilon == pytest.approx(Ledger(spent, 1e-6, prior=1).epsilon, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"encoder": "scheduled-pairs"}, {"encoder": "grr"}])
def test_a_ledger_with_it_survives_its_file(options):
    ledger = plan_with(TWO, expected_records=20_000, nonce="test", **options).ledger()
    data = json.loads(json.dumps(ledger.to_json(), allow_nan=False))
    back = Ledger.from_json(data)
    assert back == ledger
    assert back.colluding_epsilon == ledger.colluding_epsilon
    stated = data["colluding_epsilon"]
    assert stated == (None if math.isinf(ledger.colluding_epsilon) else ledger.colluding_epsilon)


def test_a_ledger_from_before_has_none():
    old = Ledger((entry(GaussianEvent(3.0), "one"),), 1e-6)
    assert {"parties", "colluding_epsilon"}.isdisjoint(old.to_json())
    assert Ledger.from_json(old.to_json()).colluding_epsilon is None


def test_several_plans_add_up_against_one_party_that_colludes_in_all():
    plans = [
        plan_with(
            TWO,
            expected_records=20_000,
            nonce=nonce,
            message_bytes=100_000,
            delta=1e-7,
        )
        for nonce in "ab"
    ]
    both = Ledger.together([plan.ledger() for plan in plans])
    one = plans[0].ledger().colluding_epsilon
    assert 1.3 * one < both.colluding_epsilon < 2 * one
    pairs = plan_with(
        TWO,
        expected_records=20_000,
        encoder="scheduled-pairs",
        message_bytes=100_000,
        delta=1e-7,
    )
    assert math.isinf(Ledger.together([plans[0].ledger(), pairs.ledger()]).colluding_epsilon)


def test_an_event_that_rests_on_the_secret_is_never_taken_as_it_stands():
    for event in (SketchEvent(6326, 9, 20, 4096), CountSketchEvent(4, 8.0, 64, 10)):
        assert math.isinf(
            Ledger((entry(event, "all parties"),), 1e-6, parties=("one", "two")).colluding_epsilon
        )
    assert (
        Ledger(
            (entry(GRREvent(0.1, (2, 3)), "all parties"),), 1e-6, parties=("one", "two")
        ).colluding_epsilon
        < 0.3
    )
