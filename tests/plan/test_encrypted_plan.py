"""Plans of encrypted counts: both totals meet the target, whoever colludes, and plans that cannot be are refused."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
from builders import schema_of
from msgspec import structs
from scipy import stats

from tests.planning import plan_with
from vertimrf.columns.column import Attribute
from vertimrf.errors import PlanError
from vertimrf.plan.defaults import SHARES
from vertimrf.plan.plan import Plan
from vertimrf.plan.schema import Schema
from vertimrf.plan.summary import summary
from vertimrf.privacy.accountant import epsilon
from vertimrf.privacy.events import GaussianEvent
from vertimrf.privacy.ledger import Ledger
from vertimrf.releases.encrypted_counts.parameters import MAX_CAPACITY, EncryptedCounts
from vertimrf.releases.nothing import NOTHING

TWO = schema_of(one=(4, 2, 9), two=(5, 2))
FOUR = schema_of(a=(3, 4), b=(6,), c=(2, 5, 7, 3), d=(4, 4, 2))
KNOWN = {"epsilon": 0.8, "expected_records": 20_000, "delta": 1e-5, "encoder": "encrypted"}


def brute_force(plan):
    """The worst epsilon over all coalitions, from the plan's parameters alone."""
    sketch, names = plan.sketch, plan.party_names
    worst = 0.0
    for size in range(1, len(names)):
        for others in itertools.combinations(range(len(names)), size):
            events = [GaussianEvent(plan.count_sigma)] * (0 in others)
            for i in others:
                local, d = plan.local[i], len(plan.schema.varying(names[i]))
                events.append(GaussianEvent(local.one_way_sigma, 1, d))
                if local.units:
                    events.append(GaussianEvent(local.unit_sigma, 1, local.units))
                assert not local.score_sigma
            for i, j in itertools.combinations(range(len(names)), 2):
                noises, tables = (i in others) + (j in others), Counter()
                if noises:
                    for two in itertools.product(plan.groups_of(i), plan.groups_of(j)):
                        numbers = math.prod(map(sketch.rows, two))
                        sigma = sketch.sigma / math.sqrt(2 ** round(math.log2(numbers) / 3))
                        tables[sigma * math.sqrt(noises)] += 1
                events += [GaussianEvent(sigma, 1, count) for sigma, count in tables.items()]
            worst = max(worst, epsilon(events, plan.delta).epsilon)
    return worst


@pytest.mark.parametrize("schema", [TWO, FOUR, schema_of(lone=(2,), wide=(3,) * 9)])
def test_the_target_holds_against_the_server_and_every_coalition(schema):
    plan = plan_with(schema, **KNOWN, tau=500)
    ledger = plan.ledger()
    assert 0.999 * 0.8 < ledger.epsilon <= 0.8
    assert ledger.colluding_epsilon <= 0.8
    # Shares are such that the server's view costs as much as the worst coalition's.
    assert ledger.colluding_epsilon > 0.97 * 0.8


@pytest.mark.parametrize("schema", [TWO, FOUR])
def test_the_second_total_is_that_of_the_worst_of_all_coalitions(schema):
    plan = plan_with(schema, **KNOWN, tau=10**6)
    assert plan.ledger().colluding_epsilon == pytest.approx(brute_force(plan), rel=1e-9)


def test_with_many_parties_the_worst_coalition_is_no_single_party():
    """With tables alone, nearly a third of the attributes cost the others most."""
    plan = plan_with(schema_of(**{f"p{i}": (3, 3) for i in range(6)}), **KNOWN)
    entries = tuple(e for e in plan.entries() if e.kind == EncryptedCounts.kind)
    names = plan.party_names

    def spent(coalition):
        events = [kept.event for entry in entries for kept in entry.against(coalition)]
        return epsilon(events, plan.delta).epsilon

    total = Ledger(entries, plan.delta, parties=names).colluding_epsilon
    assert total == pytest.approx(spent(names[:2]), rel=1e-9)
    assert total > 1.01 * spent(names[:1])


def test_who_knows_one_noise_faces_the_other():
    """Tables of one, 4 to 20, and 45 numbers have weights of 1, 2 and 4."""
    plan = plan_with(TWO, **KNOWN, tau=500)
    entries = [e for e in plan.entries() if e.kind == EncryptedCounts.kind]
    sigmas = [plan.sketch.sigma / math.sqrt(weight) for weight in (4, 2, 1)]
    assert [e.event.count for e in entries] == [1, 4, 1]
    for entry, sigma in zip(entries, sigmas, strict=True):
        assert entry.event == GaussianEvent(math.sqrt(2) * sigma, 1, entry.event.count)
        for colluder, other in (("one", "two"), ("two", "one")):
            (kept,) = entry.against((colluder,))
            assert (kept.event.sigma, kept.party) == (sigma, other)
        assert entry.against(("one", "two")) == ()
        assert entry.against(("elsewhere",)) == (entry,)


def test_an_edited_plan_is_refused():
    data = plan_with(FOUR, **KNOWN).to_json()
    data["sketch"]["sigma"] *= 0.99
    with pytest.raises(PlanError, match="more than its target"):
        Plan.from_json(data)


def test_less_noise_in_tables_is_refused_even_where_the_server_alone_would_not_notice():
    """Local models with half their budget leave room in the server's view, and none in a coalition's."""
    plan = plan_with(TWO, **KNOWN)
    quiet = tuple(
        structs.replace(
            local, one_way_sigma=1.5 * local.one_way_sigma, unit_sigma=1.5 * local.unit_sigma
        )
        for local in plan.local
    )
    sketch = replace(plan.sketch, sigma=0.8 * plan.sketch.sigma)
    edited = replace(plan, local=quiet, sketch=sketch)
    assert edited.ledger().epsilon < 0.8 < (edited.ledger().colluding_epsilon or 0)
    with pytest.raises(PlanError, match="more than its target"):
        Plan.from_json(edited.to_json())


@pytest.mark.parametrize("records", [100, 20_000, 10**6])
def test_capacity_leaves_room_for_the_count_and_the_sample(records):
    plan = plan_with(TWO, **(KNOWN | {"expected_records": records, "shares": SHARES}))
    sketch = plan.sketch
    assert sketch.capacity <= MAX_CAPACITY
    for count in (records / 2, records, 3 * records):
        share = sketch.sampled(count, plan.count_sigma)
        # The count may be 12 standard deviations too small, and the sample 9 too large.
        most = (count + 12 * plan.count_sigma) * share
        assert most + 9 * math.sqrt(sketch.capacity) <= sketch.capacity + 1 or share == 1
        assert share == 1 or count > 0.99 * min(records, 0.9 * MAX_CAPACITY)


@pytest.mark.parametrize(
    "records, epsilon", [(1000, 0.8), (20_000, 0.02), (20_000, 0.8), (10**6, 0.8)]
)
def test_a_sample_never_has_more_records_than_rows(records, epsilon):
    """With more, a record that is removed would make room for another, and change two rows.

    The adversary has the tables' size. The noisy count may be as far below it as 12 standard deviations.
    """
    plan = plan_with(TWO, **(KNOWN | {"expected_records": records, "epsilon": epsilon}))
    sketch, sigma = plan.sketch, plan.count_sigma
    for times in (1, 1.05, 1.2, 2, 5):
        there = round(times * max(records, sketch.capacity))
        share = sketch.sampled(there - 12 * sigma, sigma)
        assert share < 1
        assert stats.binom.sf(sketch.capacity, there, share) < 2.0**-57


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"records_per_person": 2}, "use count sketches, or one"),
        ({"population": "outer"}, "scheduled pairs or count sketches"),
        ({"collusion_epsilon": 3.0}, "leave --collusion-epsilon out"),
        ({"message_bytes": 10**6}, "leave --message-mb out"),
        ({"keys": 10}, "leave --keys out"),
    ],
)
def test_what_encrypted_counts_cannot_do_is_refused(options, sentence):
    with pytest.raises(PlanError, match=sentence):
        plan_with(TWO, **KNOWN, **options)


def test_shared_columns_are_refused():
    both = Attribute.integer("both", 3)
    schema = Schema.of(
        {"one": (both, Attribute.integer("a", 3)), "two": (both, Attribute.integer("b", 3))}
    )
    with pytest.raises(PlanError, match="several hold both: use count sketches"):
        plan_with(schema, **KNOWN)


def test_too_many_parties_are_refused():
    with pytest.raises(PlanError, match="2 to 8 parties with attributes, not 9: use count"):
        plan_with(schema_of(**{f"p{i}": (2,) for i in range(9)}), **KNOWN)


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"sigma": 5.6}, "noise of 5.65685 to"),
        ({"sigma": math.nan}, "noise of 5.65685 to"),
        ({"capacity": 0}, "1 to 16,777,216 rows, not 0"),
        ({"capacity": MAX_CAPACITY + 1}, "1 to 16,777,216 rows"),
        ({"contrasts": (0,)}, "Contrasts are of groups of 2 values"),
        ({"sizes": (0, 2)}, "Group 0 has 0 values"),
    ],
)
def test_parameters_that_no_counts_can_have(fields, sentence):
    sound = EncryptedCounts(50.0, 1000, (3, 2), (1,))
    with pytest.raises(PlanError, match=sentence):
        replace(sound, **fields)


@pytest.mark.parametrize("schema", [TWO, FOUR])
def test_little_signal_leaves_one_way_marginals(schema):
    """Where noise hides all pairs, the columns are independent: the forecast is then below that of encrypted counts."""
    few = KNOWN | {"expected_records": 100, "delta": 1e-4}
    plan = plan_with(schema, **few)
    assert plan.sketch == NOTHING
    said = ("the result has independent columns", "columns of different parties are independent")
    assert any(sentence in summary(plan) for sentence in said)
    assert plan.ledger().epsilon <= 0.8
    assert (plan.ledger().colluding_epsilon or 0) <= 0.8
    assert plan_with(schema, **few, shares=SHARES).groups
