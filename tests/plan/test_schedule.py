"""Scheduled pairs: which marginals are sketched, in how many bins and under how many keys, and what becomes of it."""

from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with
from roles import messages_of

from vertimrf import Message, RunOptions, Secret, Server
from vertimrf.errors import MessageError, PlanError
from vertimrf.keys import KeyRing
from vertimrf.model.measurement import bin_table
from vertimrf.releases.scheduled_pairs.planning import schedule_pairs
from vertimrf.trial import run_protocol

ROWS = 20_000
SCHEMA = schema_of(a=(4, 3, 2), b=(4, 2, 2))
RING = KeyRing.new(("a", "b"))


def tables_of(seed=0):
    """b0 follows a0, and nothing else depends on anything."""
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, attribute.size, ROWS) for attribute in SCHEMA.attributes])
    codes[3] = np.where(rng.random(ROWS) < 0.8, codes[0], codes[3])
    return dealt(SCHEMA, codes)


@pytest.fixture(scope="module")
def plan():
    return plan_with(
        SCHEMA,
        epsilon=2.0,
        expected_records=ROWS,
        nonce="schedule",
        keys=1 << 18,
        encoder="scheduled-pairs",
        public_keys=RING.public,
    )


@pytest.fixture(scope="module")
def secret():
    return Secret.new()


@pytest.fixture(scope="module")
def messages(plan, secret):
    return messages_of(plan, tables_of(), secret)


def test_nothing_in_a_message_of_sketches_is_trusted(plan, messages):
    whole = messages[0].to_bytes(plan)
    assert plan.message_size(0) < len(whole) < plan.message_size(0) + 20_000
    with pytest.raises(MessageError, match="each seals its own"):
        messages[0].seal(plan, RING.parties["b"])
    short = replace(messages[0], sketches=messages[0].sketches[:-1])
    with pytest.raises(MessageError, match="lacks"):
        Message.from_bytes(short.to_bytes(plan), plan)
    first, *rest = messages[0].sketches
    high = replace(messages[0], sketches=(np.full_like(first, plan.sketch.floor + 15), *rest))
    with pytest.raises(MessageError, match="above its highest level"):
        Message.from_bytes(high.to_bytes(plan), plan)


def test_dependence_across_parties_survives(plan):
    codes = run_protocol(plan, tables_of(), RunOptions(seed=0)).result.codes
    # 0.85 in the truth, 0.25 without sketches.
    assert np.mean(codes[0] == codes[3]) > 0.8


@pytest.mark.parametrize("parties", [((2, 3), (5,), (2,)), ((1,), (1,))])
def test_parties_of_few_attributes(parties):
    schema = schema_of(**dict(zip("abc", parties, strict=False)))
    plan = plan_with(
        schema,
        expected_records=500,
        nonce="odd",
        keys=1 << 12,
        encoder="scheduled-pairs",
    )
    rng = np.random.default_rng(0)
    tables = dealt(schema, np.array([rng.integers(0, a.size, 500) for a in schema.attributes]))
    codes = run_protocol(plan, tables, RunOptions(rows=100, seed=0)).result.codes
    assert codes.shape == (len(schema.attributes), 100)


def test_bins_and_keys_follow_what_can_be_measured():
    schema = schema_of(a=(20, 2, 2), b=(30, 2))
    poor, rich = (schedule_pairs(schema, rho, 10_000, 10**6) for rho in (1e-5, 10.0))
    for groups, pairs in (poor, rich):
        crossing = [(groups[pair.left].attributes, groups[pair.right].attributes) for pair in pairs]
        assert crossing == [((a,), (b,)) for a in range(3) for b in (3, 4)]
    assert all(group.size <= 4 for group in poor[0])
    groups, pairs = rich
    assert {group.size for group in groups if group.attributes == (0,)} == {20}
    # Keys are in proportion to cells^(2/3), and the busiest party's levels take half a byte each.
    cells = np.array([groups[pair.left].size * groups[pair.right].size for pair in pairs])
    keys = np.array([pair.keys for pair in pairs])
    np.testing.assert_allclose(keys / cells ** (2 / 3), keys.sum() / (cells ** (2 / 3)).sum(), 1e-3)
    levels = max(
        sum(groups[side].size * pair.keys for side, pair in zip(sides, pairs, strict=True))
        for sides in ([pair.left for pair in pairs], [pair.right for pair in pairs])
    )
    assert 0.999 * 10**6 < levels / 2 <= 10**6


def test_a_pair_of_many_values_is_cut_on_its_longer_side():
    schema = schema_of(a=(1000, 3), b=(400,))
    groups, pairs = schedule_pairs(schema, 0.5, 10_000, 10**6)
    sizes = [(groups[pair.left].size, groups[pair.right].size) for pair in pairs]
    # Both pairs have nearly as many cells as an average of 6 standard errors leaves room for.
    most = 10_000 / (6 * np.sqrt(1.4 / (2 * 0.5) * 2))
    assert sizes[0][0] == sizes[0][1] == int(np.sqrt(most))
    assert sizes[1] == (3, int(most / 3))
    assert [pair.keys for pair in schedule_pairs(schema, 0.5, 10_000, 10**6, keys=1)[1]] == [1, 1]


def test_messages_stay_within_their_budget():
    schema = schema_of(a=(40,) * 6, b=(40,) * 6)
    plan = plan_with(schema, expected_records=10**6, nonce="large", message_bytes=5_000_000)
    assert 0.9 * 5_000_000 < max(plan.message_size(party) for party in (0, 1)) <= 5_000_000
    with pytest.raises(PlanError, match="message_bytes"):
        plan_with(schema, expected_records=10**6, nonce="large", message_bytes=3)


@pytest.mark.slow
def test_stated_errors_are_those_achieved():
    """Even, independent attributes, 200 cells in all from 20 runs: every marginal's error, and all of them together.

    Over 92 runs the ratios of marginals are 0.98 to 1.02. Of 20 runs they have the standard errors of as many independent cells,
    0.020 to 0.067, and all together 0.015: both bounds are five of them away.
    """
    schema = schema_of(a=(4, 3), b=(5, 2))
    rng = np.random.default_rng(3)
    codes = np.array([rng.integers(0, a.size, ROWS) for a in schema.attributes], np.uint16)
    tables = dealt(schema, codes)
    stated, achieved = {}, {}
    runs = 20
    for run in range(runs):
        plan = plan_with(
            schema,
            expected_records=ROWS,
            nonce=f"predicted {run}",
            keys=1 << 15,
            local_models=False,
            encoder="scheduled-pairs",
        )
        first = Server(plan).read(messages_of(plan, tables))
        for m in first.crossing:
            table = np.zeros([schema.sizes[a] for a in m.attributes])
            np.add.at(table, tuple(codes[a] for a in m.attributes), 1.0)
            stated.setdefault(m.attributes, []).append(m.sigma)
            achieved.setdefault(m.attributes, []).append(
                m.counts - bin_table(table, m.bins, m.counts.shape)
            )
    ratios = []
    for attributes, errors in achieved.items():
        variances = np.square(errors), np.square(stated[attributes])
        ratios.append(np.sqrt(np.divide(*map(np.mean, variances))))
        assert ratios[-1] == pytest.approx(1, abs=6 / np.sqrt(2 * runs * errors[0].size))
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(1, abs=0.08)
