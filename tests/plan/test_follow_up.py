"""The second round: what the server may ask, what parties answer, and that it pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, schema_of
from roles import run_server

from vertimrf.errors import MessageError, PlanError, PrivacyError
from vertimrf.keys import KeyRing
from vertimrf.message import Answer, Message
from vertimrf.model.measurement import bin_table
from vertimrf.options import RunOptions
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.plan.attribute import Attribute
from vertimrf.plan.follow_up import FollowUp
from vertimrf.plan.plan import Plan
from vertimrf.plan.planner import make_plan
from vertimrf.plan.schedule import Group, Schedule, crossing_pairs, draft_schedule, smallest_triples
from vertimrf.plan.schema import Schema
from vertimrf.server.cross_party import predicted_marginals
from vertimrf.server.server import Server
from vertimrf.sketches.parameters import ScheduledPair, SketchPlan
from vertimrf.trial import run_protocol

ROWS = 20_000
SCHEMA = schema_of(a=(4, 3, 2), b=(4, 2, 2))
RING = KeyRing.new(("a", "b"))


def tables_of(seed=0):
    """b0 follows a0; b1 is the exclusive or of a2 and another bit that b2 holds: no pair shows it, a triple does."""
    rng = np.random.default_rng(seed)
    a0 = rng.integers(0, 4, ROWS)
    b0 = np.where(rng.random(ROWS) < 0.8, a0, rng.integers(0, 4, ROWS))
    a2, b2 = rng.integers(0, 2, ROWS), rng.integers(0, 2, ROWS)
    b1 = np.where(rng.random(ROWS) < 0.95, a2 ^ b2, rng.integers(0, 2, ROWS))
    return dealt(SCHEMA, np.array([a0, rng.integers(0, 3, ROWS), a2, b0, b1, b2]))


def plan_of(**changes):
    settings = {"epsilon": 2.0, "expected_records": ROWS, "nonce": "follow-up", "keys": 1 << 18, "rounds": 2} | changes
    return make_plan(SCHEMA, public_keys=RING.public, **settings)


@pytest.fixture(scope="module")
def plan():
    return plan_of()


@pytest.fixture(scope="module")
def secret():
    return Secret.new()


@pytest.fixture(scope="module")
def messages(plan, secret):
    return [Party(plan, name, secret).run(table) for name, table in zip(plan.party_names, tables_of(), strict=True)]


@pytest.fixture(scope="module")
def follow_up(plan, messages):
    server = Server(plan)
    return server.follow_up(server.read(messages))


@pytest.fixture(scope="module")
def answers(plan, secret, follow_up):
    return [Party(plan, name, secret).answer(table, follow_up) for name, table in zip(plan.party_names, tables_of(), strict=True)]


def test_both_rounds_are_in_the_ledger_before_any_data_is_touched(plan):
    assert isinstance(plan.sketch, SketchPlan)
    first = sum(pair.keys for pair in plan.sketch.pairs)
    assert plan.second_keys > 4 * first
    sketches = [entry.event for entry in plan.entries() if "sketches" in entry.released]
    assert [event.keys for event in sketches] == [first, plan.second_keys]
    assert sketches[0].phantoms == sketches[1].phantoms
    assert 0.95 * plan.epsilon < plan.ledger().epsilon <= plan.epsilon * (1 + 1e-6)
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(plan.to_json()).digest() == plan.digest()


def test_keys_go_where_the_first_round_points(plan, follow_up):
    assert sum(pair.keys for pair in follow_up.schedule.pairs) <= plan.second_keys
    groups = follow_up.schedule.groups
    scheduled = {groups[p.left].attributes + groups[p.right].attributes for p in follow_up.schedule.pairs}
    assert (0, 3) in scheduled
    assert any(len(attributes) == 3 for attributes in scheduled)


def test_a_follow_up_survives_its_file(plan, follow_up, tmp_path):
    follow_up.save(tmp_path / "f")
    back = FollowUp.load(tmp_path / "f", plan)
    assert back.digest() == follow_up.digest()
    assert (back.schedule.groups, back.schedule.pairs) == (follow_up.schedule.groups, follow_up.schedule.pairs)
    with pytest.raises(MessageError, match="another plan"):
        FollowUp.load(tmp_path / "f", plan_of(epsilon=1.0))
    with pytest.raises(MessageError, match="Cannot read"):
        FollowUp.load(tmp_path / "g", plan)
    (tmp_path / "f").write_text("[]")
    with pytest.raises(MessageError, match="malformed"):
        FollowUp.load(tmp_path / "f", plan)


def test_a_follow_up_that_costs_more_than_agreed_is_refused(plan, follow_up):
    data = follow_up.to_json()
    data["pairs"][0]["keys"] += plan.second_keys
    with pytest.raises(MessageError, match="more privacy"):
        FollowUp.from_json(data, plan)


@pytest.mark.parametrize("widened", [[0], [-1], [0, 1, 2]], ids=["the first pair", "the last pair", "three pairs"])
def test_exactly_the_keys_that_were_paid_for_may_be_asked(plan, follow_up, widened):
    """As many keys as the ledger has for the second round, wherever they go, and not one more."""
    (event,) = [entry.event for entry in plan.entries() if entry.released.startswith("second round")]
    assert event.keys == plan.second_keys
    data = follow_up.to_json()
    left = plan.second_keys - sum(pair["keys"] for pair in data["pairs"])
    for position, number in enumerate(widened):
        data["pairs"][number]["keys"] += left // len(widened) + (position < left % len(widened))
    exact = FollowUp.from_json(data, plan)
    assert sum(pair.keys for pair in exact.schedule.pairs) == plan.second_keys
    for pair in data["pairs"]:
        pair["keys"] += 1
        with pytest.raises(MessageError, match="more privacy"):
            FollowUp.from_json(data, plan)
        with pytest.raises(MessageError, match="more privacy"):
            replace(exact, schedule=replace(exact.schedule, pairs=tuple(ScheduledPair(**p) for p in data["pairs"])))
        pair["keys"] -= 1


def test_a_follow_up_of_gigabytes_is_refused():
    schema = Schema.of({"a": [Attribute.integer("wide", 10_000)], "b": [Attribute.integer("x", 3)]})
    plan = make_plan(schema, epsilon=1.0, expected_records=10_000, nonce="wide", rounds=2)
    groups = (Group((0,), (10_000,)), Group((1,), (3,)))
    bins = ((np.arange(10_000),), (np.arange(3),))
    with pytest.raises(MessageError, match="bytes"):
        FollowUp(plan, Schedule.of(schema, groups, (ScheduledPair(0, 1, plan.second_keys, 10_000, 3),)), bins)
    small = FollowUp(plan, Schedule.of(schema, groups, (ScheduledPair(0, 1, 100, 10_000, 3),)), bins)
    assert small.message_size(0) < 10**6


def test_two_rounds_need_keys_for_every_pair():
    with pytest.raises(PlanError, match="without any"):
        plan_of(keys=3)


def test_a_party_releases_once(plan, follow_up, secret):
    one, two = tables_of()[0], tables_of()[0]
    two.codes[0, 0] = (two.codes[0, 0] + 1) % 2
    key = RING.parties["a"]

    def message(table):
        """Another process, as it were: nothing is left of the last but its records."""
        return Party(plan, "a", secret, key=key).release(table)

    def answer(table, asked):
        return Party(plan, "a", secret, key=key).release_answer(table, asked)

    # Whoever has no key has other noise each time.
    one_off = Party(plan, "a", secret)
    assert message(one) == message(one) != one_off.run(one).seal(plan, key)
    assert answer(one, follow_up) == answer(one, follow_up) != one_off.answer(one, follow_up).seal(follow_up, key)
    assert Message.unseal(message(one), plan, RING.server).private
    with pytest.raises(PlanError, match="needs the private key of 'a'"):
        one_off.release(one)
    with pytest.raises(PrivacyError, match=r"message was released already, from another table.*from epsilon .* to .*all parties"):
        message(two)
    with pytest.raises(PrivacyError, match=r"answer was released already, from another table.*from epsilon .* to .*all parties"):
        answer(two, follow_up)
    pairs = follow_up.schedule.pairs[:-1]
    other = FollowUp(plan, Schedule.of(plan.schema, follow_up.schedule.groups, pairs), follow_up.bins)
    with pytest.raises(PrivacyError, match=r"answer was released already, to another follow-up.*all parties"):
        answer(one, other)


def test_a_key_serves_two_parties(plan, follow_up):
    data = follow_up.to_json()
    data["groups"] += [{"attributes": [1], "bins": [3]}, {"attributes": [2], "bins": [2]}]
    data["bins"] += [[[0, 1, 2]], [[0, 1]]]
    g = len(data["groups"])
    data["pairs"] = [{"left": g - 2, "right": g - 1, "keys": 5, "left_bins": 3, "right_bins": 2}]
    with pytest.raises(MessageError, match="two parties"):
        FollowUp.from_json(data, plan)
    data["groups"][-1] = {"attributes": [2, 3], "bins": [2, 4]}
    with pytest.raises(MessageError, match="not one party's"):
        FollowUp.from_json(data, plan)


DAMAGE = [
    {"bins": [[[0, 9, 1, 1]]]},
    {"bins": [[[0, -1, 1, 1]]]},
    {"bins": [[[0]]]},
    {"groups": []},
    {"pairs": [{}]},
    {"follow_up": 7},
]


@pytest.mark.parametrize("change", DAMAGE)
def test_a_damaged_follow_up_is_refused(plan, follow_up, change):
    data = follow_up.to_json()
    for key, value in change.items():
        data[key] = value + data[key][1:] if key == "bins" else value
    with pytest.raises(MessageError):
        FollowUp.from_json(data, plan)


def test_answers_survive_their_files_and_nothing_in_them_is_trusted(follow_up, answers, messages, plan, tmp_path):
    size = answers[0].save(tmp_path / "a", follow_up, RING.parties["a"])
    back = Answer.load(tmp_path / "a", follow_up, RING.server)
    for mine, theirs in zip(back.sketches, answers[0].sketches, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert follow_up.message_size(0) < size < follow_up.message_size(0) + 20_000
    with pytest.raises(MessageError, match="truncated"):
        Answer.from_bytes(answers[0].to_bytes(follow_up)[:-9], follow_up)
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-9])
    with pytest.raises(MessageError, match="truncated"):
        Answer.load(tmp_path / "a", follow_up, RING.server)
    with pytest.raises(MessageError, match="each seals its own"):
        answers[0].save(tmp_path / "b", follow_up, RING.parties["b"])
    with (tmp_path / "a").open("wb") as file:
        file.truncate(follow_up.message_size(0) + (1 << 24))
    with pytest.raises(MessageError, match="more than any answer"):
        Answer.load(tmp_path / "a", follow_up, RING.server)
    short = replace(answers[0], sketches=answers[0].sketches[:-1])
    with pytest.raises(MessageError, match="lacks"):
        Answer.from_bytes(short.to_bytes(follow_up), follow_up)
    high = replace(answers[0], sketches=(answers[0].sketches[0] | np.uint8(15), *answers[0].sketches[1:]))
    high.sketches[0][:] = follow_up.sketch.floor + 15
    with pytest.raises(MessageError, match="above its highest level"):
        Answer.from_bytes(high.to_bytes(follow_up), follow_up)
    server = Server(plan)
    first = server.read(messages)
    with pytest.raises(MessageError, match="two rounds"):
        server.run(first)
    with pytest.raises(MessageError, match="is missing"):
        server.run(first, follow_up, answers[:1])
    with pytest.raises(MessageError, match="two answers"):
        server.run(first, follow_up, [answers[0], answers[0]])


def test_fixed_noise_in_an_answer_marks_the_run(plan, messages, follow_up, answers):
    assert run_server(plan, messages, follow_up, answers, rows=10).ledger.private
    fixed = [replace(answers[0], private=False), answers[1]]
    assert not run_server(plan, messages, follow_up, fixed, rows=10).ledger.private


def test_three_way_dependence_across_parties_survives(plan):
    """What no pair shows: a2, b1 and b2 are each pairwise independent, and any two determine the third."""
    result = run_protocol(plan, tables_of(), RunOptions(seed=0)).result
    codes = result.codes
    agreement = np.mean(codes[4] == (codes[2] ^ codes[5]))
    # 0.975 in the truth, 0.5 from pairs alone; a cell of the triple is known to well within 500 of 20,000 records.
    assert agreement > 0.9
    assert np.mean(codes[0] == codes[3]) > 0.8
    one_round = run_protocol(plan_of(rounds=1), tables_of(), RunOptions(seed=0)).result.codes
    assert np.mean(one_round[4] == (one_round[2] ^ one_round[5])) > 0.9


def test_a_plan_of_one_round_takes_no_follow_up(secret):
    plain = plan_of(rounds=1)
    parts = zip(plain.party_names, tables_of(), strict=True)
    first = Server(plain).read([Party(plain, name, secret).run(table) for name, table in parts])
    with pytest.raises(PlanError, match="one round"):
        Server(plain).follow_up(first)
    with pytest.raises(PlanError, match="one or two rounds"):
        plan_of(rounds=3)
    with pytest.raises(PlanError, match="scheduled pairs"):
        plan_of(encoder="grr")


@pytest.mark.parametrize("parties", [((2, 3), (5,), (2,)), ((1,), (1,))])
def test_two_rounds_with_odd_parties(parties):
    schema = schema_of(**dict(zip("abc", parties, strict=False)))
    plan = make_plan(schema, epsilon=1.0, expected_records=500, nonce="odd", keys=1 << 12, rounds=2)
    rng = np.random.default_rng(0)
    tables = dealt(schema, np.array([rng.integers(0, a.size, 500) for a in schema.attributes]))
    codes = run_protocol(plan, tables, RunOptions(rows=100, seed=0)).result.codes
    assert codes.shape == (len(schema.attributes), 100)


def test_schedules_are_cut_to_what_can_be_measured():
    schema = schema_of(a=(20, 2, 2), b=(30, 2))
    poor, rich = (
        draft_schedule(schema, rho, 10_000, crossing_pairs(schema), smallest_triples(schema), (4.0, 1.0)) for rho in (1e-5, 10.0)
    )
    assert poor.shares.sum() == pytest.approx(1)
    assert len(poor.pairs) == 6
    assert all(size <= 4 for group in poor.groups for size in group.bins)
    assert Group((1, 2), (2, 2)) in rich.groups
    assert Group((0,), (20,)) in rich.groups
    # The busiest party's bytes: half a byte per level of each of its tables.
    keys = 1 << 20
    scheduled = rich.with_keys(keys)
    spent = [0.0, 0.0]
    for pair in scheduled:
        for group in (pair.left, pair.right):
            spent[schema.party_of(rich.groups[group].attributes[0])] += rich.groups[group].size * pair.keys / 2
    assert max(spent) == pytest.approx(keys * rich.bytes_per_key(schema), rel=1e-3)


def test_messages_stay_within_their_budget():
    schema = schema_of(a=(40,) * 6, b=(40,) * 6)
    plan = make_plan(schema, epsilon=1.0, expected_records=10**6, nonce="large", message_bytes=5_000_000)
    assert 0.9 * 5_000_000 < max(plan.message_size(party) for party in (0, 1)) <= 5_000_000
    with pytest.raises(PlanError, match="message_bytes"):
        make_plan(schema, epsilon=1.0, expected_records=10**6, nonce="large", message_bytes=3)


def test_predicted_errors_are_those_achieved():
    """Even, independent attributes, 200 cells in all from 20 runs: every marginal's error, and all of them together.

    Over 92 runs the ratios of marginals are 0.98 to 1.02. Of 20 runs they have the standard errors of as many independent cells,
    0.020 to 0.067, and all together 0.015: both bounds are five of them away.
    """
    schema = schema_of(a=(4, 3), b=(5, 2))
    rng = np.random.default_rng(3)
    codes = np.array([rng.integers(0, a.size, ROWS) for a in schema.attributes], np.uint16)
    tables = dealt(schema, codes)
    truth = {}
    found: dict = {}
    runs = 20
    for run in range(runs):
        plan = make_plan(
            schema, epsilon=1.0, expected_records=ROWS, nonce=f"predicted {run}", keys=1 << 15, local_models=False,
            encoder="scheduled-pairs",
        )  # fmt: skip
        secret = Secret.new()
        messages = [Party(plan, name, secret).run(own) for name, own in zip(plan.party_names, tables, strict=True)]
        first = Server(plan).read(messages)
        for m, p in zip(first.crossing, predicted_marginals(plan), strict=True):
            table = np.zeros([schema.sizes[a] for a in m.attributes])
            np.add.at(table, tuple(codes[a] for a in m.attributes), 1.0)
            truth[m.attributes] = p.error
            found.setdefault(m.attributes, []).append(m.counts - bin_table(table, m.bins, m.counts.shape))
    ratios = []
    for attributes, errors in found.items():
        ratios.append(np.sqrt(np.mean(np.square(errors))) / truth[attributes])
        assert ratios[-1] == pytest.approx(1, abs=6 / np.sqrt(2 * runs * errors[0].size))
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(1, abs=0.08)
