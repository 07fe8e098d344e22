"""The whole protocol through messages: shapes, privacy bookkeeping, roles, and what it is for, cross-party correlation."""

import threading
from dataclasses import replace
from functools import partial

import numba
import numpy as np
import pandas as pd
import pytest
from builders import schema_of
from planning import plan_with
from roles import messages_of, run_server

from vertimrf import Message, Party, PrivateKey, RunOptions, Secret, Server
from vertimrf.errors import MessageError, PlanError, SchemaError, TableError
from vertimrf.files import sealed
from vertimrf.keys import KeyRing
from vertimrf.message import largest_message
from vertimrf.model import off_tree
from vertimrf.trial import open_tables, run_protocol

ROWS = 20_000


def correlated_tables(rows=ROWS):
    """Two parties whose first attributes are nearly the same variable; the second ones are independent."""
    rng = np.random.default_rng(0)
    ids = [f"person-{i}" for i in range(rows)]
    a = rng.integers(0, 4, rows)
    x = np.where(rng.random(rows) < 0.85, a, rng.integers(0, 4, rows))
    left = pd.DataFrame({"id": ids, "a": a, "b": rng.integers(0, 3, rows)})
    right = pd.DataFrame({"id": ids, "x": x, "y": rng.integers(0, 2, rows)}).sample(
        frac=1.0, random_state=1
    )
    return left, right


SCHEMA = schema_of(one={"a": 4, "b": 3}, two={"x": 4, "y": 2})
plan_of_two = partial(plan_with, SCHEMA, expected_records=ROWS, nonce="test", keys=1 << 16)


@pytest.fixture(scope="module")
def plan():
    return plan_of_two()


@pytest.fixture(scope="module")
def parts():
    return open_tables(correlated_tables(), "id", SCHEMA)[1]


@pytest.fixture(scope="module")
def messages(plan, parts):
    return messages_of(plan, parts)


def of_other_people(table, share):
    """The table with new ids for a share of its records."""
    changed = np.random.default_rng(0).random(table.digests.size) < share
    return replace(
        table, digests=np.where(changed, table.digests ^ np.uint64(1 << 40), table.digests)
    )


def test_parties_whose_records_do_not_match_are_told(plan, parts):
    one, two = parts
    assert run_protocol(plan, parts, RunOptions(rows=10)).result.warnings == ()
    (warning,) = run_protocol(
        plan, [one, of_other_people(two, 0.25)], RunOptions(rows=10)
    ).result.warnings
    assert "are at one and two" in warning
    for encoder in ("count-sketch", "scheduled-pairs"):
        with pytest.raises(
            MessageError, match=r"between one .* and two .*none: they used different secrets"
        ):
            run_protocol(
                plan_of_two(encoder=encoder), [one, of_other_people(two, 1.0)], RunOptions(rows=10)
            )


def test_cross_party_correlation_survives(plan, parts):
    trial = run_protocol(plan, parts, RunOptions(seed=1))
    codes = trial.result.codes
    # Agreement of a and x is 0.85 + 0.15 / 4 = 0.8875 in the truth and 0.25 for independent parties.
    assert np.mean(codes[0] == codes[2]) > 0.8
    assert abs(codes.shape[1] - ROWS) < 6 * plan.count_sigma
    assert (0, 2) in trial.result.crossing


def test_parties_may_publish_one_way_marginals_alone(parts):
    plan = plan_of_two(local_models=False)
    assert all(local.units == 0 for local in plan.local)
    result = run_protocol(plan, parts, RunOptions(seed=1)).result
    assert np.mean(result.codes[0] == result.codes[2]) > 0.8
    published = plan_of_two(
        local_models=False, encoder="published", claim_as_published=True, keys=500
    )
    crossing = run_protocol(published, parts, RunOptions(seed=1)).result.crossing
    assert all(isinstance(attributes, tuple) for attributes in crossing)


def test_without_a_sketch_share_parties_are_independent(parts):
    plan = plan_of_two(shares=(0.01, 0.99, 0.0))
    codes = run_protocol(plan, parts, RunOptions(seed=1)).result.codes
    assert np.mean(codes[0] == codes[2]) < 0.3


def test_the_trial_goes_through_sealed_files(plan, parts, messages, tmp_path):
    ring = KeyRing.new(plan.party_names)
    agreed = replace(plan, public_keys=ring.public)
    trial = run_protocol(agreed, parts, RunOptions(rows=10), tmp_path, ring)
    assert trial.result.plan.digest() == agreed.digest()
    for name, key in ring.parties.items():
        data = (tmp_path / f"{name}.message").read_bytes()
        assert data[:4] == sealed.MAGIC
        assert trial.message_bytes[name] == len(data)
        message = Message.load(tmp_path / f"{name}.message", agreed, ring.server)
        plain = message.to_bytes(agreed)
        assert len(plain) < len(data) < len(plain) + 2000
        assert all(plain[i : i + 16] not in data for i in range(0, len(plain), len(plain) // 50))
        with pytest.raises(PlanError, match="another key for the server"):
            Message.load(tmp_path / f"{name}.message", agreed, PrivateKey.new(None))
        with pytest.raises(MessageError, match="for the server"):
            Message.load(tmp_path / f"{name}.message", agreed, key)
    with pytest.raises(PlanError, match="no public keys"):
        messages[0].save(tmp_path / "m", plan, ring.parties["one"])
    with pytest.raises(PlanError, match="no public keys"):
        Message.unseal(b"", plan, ring.server)
    # Without a ring everyone gets fresh keys, and the plan of the result has them.
    assert run_protocol(plan, parts, RunOptions(rows=10)).result.plan.public_keys is not None


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS == 1, reason="Numba has one thread")
def test_parties_run_at_the_same_time(plan, parts, monkeypatch):
    together, run = threading.Barrier(2, timeout=60), Party.run

    def meeting(self, *given):
        together.wait()
        return run(self, *given)

    monkeypatch.setattr(Party, "run", meeting)
    trial = run_protocol(plan, parts, RunOptions(rows=10, num_threads=2))
    assert set(trial.message_bytes) == {"one", "two"}
    assert trial.seconds["LocEnc"] > 0


def test_a_party_that_fails_ends_the_trial(plan, parts, monkeypatch):
    def failing(self, table, answers=None):
        raise TableError("The disk is gone.")

    monkeypatch.setattr(Party, "run", failing)
    with pytest.raises(TableError, match=r"The disk is gone\."):
        run_protocol(plan, parts, RunOptions(rows=10))


def test_a_file_larger_than_any_message_is_not_read(plan, tmp_path):
    ring = KeyRing.new(plan.party_names)
    with (tmp_path / "m").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(MessageError, match="the limit for a message"):
        Message.load(tmp_path / "m", replace(plan, public_keys=ring.public), ring.server)


def test_message_size_is_what_the_plan_said(plan, messages):
    for i, message in enumerate(messages):
        size = len(message.to_bytes(plan))
        assert plan.message_size(i) < size < plan.message_size(i) + 20_000
        assert size <= largest_message(plan)


def test_messages_that_do_not_fit_are_refused(plan, messages):
    data = messages[0].to_bytes(plan)
    with pytest.raises(MessageError, match="another plan"):
        Message.from_bytes(data, plan_of_two(epsilon=2.0))
    with pytest.raises(MessageError, match="truncated"):
        Message.from_bytes(data[:-100], plan)
    # Of other parameters, also where the digest is forged.
    for change in ({"bits": 2}, {"repetitions": 1}, {"buckets": 2}):
        other = replace(plan, sketch=replace(plan.sketch, **change))
        forged = replace(messages[0], plan_digest=other.digest())
        with pytest.raises(MessageError, match="sketch0 has shape"):
            Message.from_bytes(forged.to_bytes(plan), other)
    sharper = replace(
        messages[0], marginals=tuple(replace(m, sigma=0.5) for m in messages[0].marginals)
    )
    with pytest.raises(MessageError, match="ledger"):
        Message.from_bytes(sharper.to_bytes(plan), plan)
    with pytest.raises(MessageError, match="lacks bins"):
        Message.from_bytes(replace(messages[0], bins=messages[0].bins[:-1]).to_bytes(plan), plan)
    with pytest.raises(MessageError, match="record count"):
        Message.from_bytes(replace(messages[0], count=None).to_bytes(plan), plan)
    with pytest.raises(MessageError, match="two is missing"):
        run_server(plan, messages[:1])
    with pytest.raises(MessageError, match="two messages"):
        run_server(plan, [messages[0], messages[0]])


def test_fixed_noise_marks_the_run_as_not_private(plan, parts):
    fixed = messages_of(plan, parts, fixed=True)
    ledger = run_server(plan, fixed, seed=0).ledger
    assert not ledger.private
    assert run_server(plan, fixed, seed=0).to_json()["private"] is False


def test_a_seed_fixes_the_sampling_alone(plan, messages):
    first = Server(plan).read(messages)
    one, again, other = (Server(plan, RunOptions(seed=s)).run(first).codes for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_small_tau_warns_where_nothing_spans_the_parties(parts, monkeypatch):
    """No clique of two cells does; beyond cliques what stands out does, and nothing where all is noise."""
    result = run_protocol(plan_of_two(tau=2), parts, RunOptions(seed=0)).result
    assert result.codes.shape[0] == 4
    assert (0, 2) in result.crossing
    assert np.mean(result.codes[0] == result.codes[2]) > 0.8
    assert result.warnings == ()
    monkeypatch.setattr(off_tree, "stand_out", lambda some, _: np.zeros(len(some), bool))
    result = run_protocol(plan_of_two(tau=2), parts, RunOptions(seed=0)).result
    assert result.crossing == ()
    warning, *lost = result.warnings
    assert "tau = 2 cells" in warning
    assert any("depend on each other" in sentence for sentence in lost)
    assert result.codes.shape[0] == 4
    assert abs(np.mean(result.codes[0] == result.codes[2]) - 0.25) < 0.05


def test_a_party_refuses_another_partys_table(plan, parts):
    with pytest.raises(TableError, match="columns"):
        Party(plan, "one", Secret.new()).run(parts[1])
    with pytest.raises(PlanError, match="no party"):
        Party(plan, "three", Secret.new())


def test_parties_with_other_records_altogether_are_warned_of(caplog):
    left, right = correlated_tables(100)
    _, parts = open_tables([left, right.iloc[1:]], "id", SCHEMA)
    assert [part.records for part in parts] == [100, 99]
    assert not caplog.records
    open_tables([left, right.assign(id=right["id"] + "x")], "id", SCHEMA)
    assert "table 1 and table 2 have no id in common" in caplog.text


def test_columns_are_dealt_by_the_tables_that_have_them():
    left, right = correlated_tables(100)
    flat = schema_of(all={"a": 4, "b": 3})
    with pytest.raises(SchemaError, match="Party 'party2' has no attributes"):
        open_tables([left, right], "id", flat)
    # A column that both tables have is one attribute at two parties.
    dealt, _ = open_tables([left, left[["id", "b"]]], "id", flat)
    assert dealt.parties == (("party1", ("a", "b")), ("party2", ("b",)))
