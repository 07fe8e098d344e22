"""The attackers, at work and at bay."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import datasets
from benchmarks.attacks import (
    bucket,
    collusion,
    deviation,
    encrypted_collusion,
    exchange,
    forgotten,
    id_sets,
    ids,
    refusals,
    relay,
)
from benchmarks.attacks.deployment import NAMES, deploy
from vertimrf.files import sealed
from vertimrf.keys import PublicKeys
from vertimrf.message import Message

# They play whole runs, again and again.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run():
    return deploy()


@pytest.fixture(scope="module")
def positions(run):
    return list(relay.play(run))


def test_the_relay_is_noticed_in_every_position(positions):
    assert [name for name, noticed in positions if not noticed] == []
    assert len({name for name, _ in positions}) == len(positions) >= 130
    # No party, role or file is left out.
    for name in NAMES:
        for what in (
            f"offer of {name!r} swapped, one plan",
            f"offer of {name!r} swapped, a plan",
            f"wrapped again for {name!r}",
            f"the secret of {name!r} opened",
            f"party message of {name!r}",
            f"message of {name!r} held back",
        ):
            assert any(what in position for position, _ in positions), what
    assert sum("offer of the server swapped" in position for position, _ in positions) == 3
    assert (
        Counter(position.split(":")[0] for position, _ in positions)["envelope for 'insurer'"] == 11
    )


def test_chosen_ids_work_against_unkeyed_digests_and_not_against_parties(monkeypatch):
    monkeypatch.setattr(ids, "TRIES", 20)
    rows = list(ids.rows())
    assert [row.name for row in rows if not row.holds] == []
    assert [row.value for row in rows] == [1, 1, 0, 4, 2]


def test_few_people_whose_ids_differ_are_found_by_the_old_digest_and_not_by_what_is_seen_now():
    rows = list(id_sets.rows(games=12))
    assert [row.name for row in rows if not row.holds] == []
    assert sum(row.value == 12 for row in rows) == 10


def test_without_a_relay_nothing_is_refused(run):
    """Or else the positions would prove nothing."""
    for name in NAMES:
        message = Message.unseal(run.sealed_messages[name], run.plan, run.ring.server)
        assert message.to_bytes(run.plan) == run.messages[name].to_bytes(run.plan)
        assert not relay.refused(
            lambda name=name: run.plan.sealing_keys().check(run.ring.parties[name])
        )
    assert not relay.seen_apart(run.plan, replace(run.plan))


def test_the_old_exchange_is_what_the_relay_was_after(run, monkeypatch):
    """With roles that do not look for their own keys in the plan, the relay reads and writes what it likes: it is the check, and
    the keys under the fingerprint, that stop it, not a slip in the attack."""
    monkeypatch.setattr(PublicKeys, "check", lambda self, key: None)
    unseen = [name for name, noticed in relay.swapped_offers(run) if not noticed]
    assert "offer of 'insurer' swapped, one plan for all, step 1" in unseen


@pytest.fixture(scope="module", params=[bucket.PAIRS, bucket.COUNTS])
def filled(request):
    return bucket.fill(request.param)


def chance(filled):
    """Levels exclude values, and here all of them; of counts there is always a likeliest, right at times."""
    return 0 if filled.plan.encoder == bucket.PAIRS else bucket.chance(filled)


def test_a_plain_message_gives_whole_rows_to_whoever_has_the_secret(filled):
    # 142 to 150 of 150 from levels and 134 to 141 from counts in repeated runs, whose hashes differ by the system's entropy.
    assert bucket.recovered(filled, filled.plain) >= 0.75 * bucket.TARGETS


def test_a_sealed_message_gives_none(filled):
    hidden = bucket.ciphertext(filled.file)
    assert len(hidden) == len(filled.plain)
    assert bucket.recovered(filled, hidden) <= chance(filled)
    # Two numbers to a byte, 16 of them: chance alone makes them agree. A million numbers have a standard error of 0.0002.
    assert (
        abs(bucket.agreement(filled) - 1 / 16)
        < 5 * (15 / 256 / (2 * filled.plan.message_size(0))) ** 0.5
    )
    assert filled.plain[:-32] not in filled.file
    header, _ = sealed.peek(filled.file, "file")
    assert set(header) == {"kind", "plan", "from", "to", "ephemeral"}


def test_without_the_secret_the_plain_message_gives_none(filled):
    other = bucket.Secret.new()
    known, filled.secret = filled.secret, other
    try:
        assert bucket.recovered(filled, filled.plain) <= chance(filled)
    finally:
        filled.secret = known


def test_who_writes_into_an_exchange_gets_out_of_it_only_where_names_are_opened_as_they_come(
    monkeypatch,
):
    monkeypatch.setattr(exchange, "PATIENCE", 2.0)
    assert [name for name, won in exchange.play(exchange.PlainStore) if not won] == []
    assert [name for name, won in exchange.play(None) if won] == []


@pytest.mark.slow
def test_a_party_that_colludes_reads_large_messages_and_not_small_ones():
    data = datasets.adult_like().part(np.arange(10_000))
    large, small = (collusion.Collusion.of(data, size, tried=100) for size in (15_000_000, 20_000))
    assert large.plan.ledger().colluding_epsilon > 5 * small.plan.ledger().colluding_epsilon
    # 0.3 to 0.4 of the rows, with a standard error of 0.05 at most, and 0.03 by the counts alone.
    assert large.rows() > 0.1
    assert small.rows() < 0.03 + 5 * 0.02
    assert large.rows(known=False) < 0.03 + 5 * 0.02


def test_who_departs_from_encrypted_counts_reads_rows_as_the_threat_model_says():
    read, marked = deviation.read_whole(100)
    assert read == marked > 400


def test_a_coalition_reads_rows_of_encrypted_counts_where_the_other_party_forgets_its_noise():
    assert encrypted_collusion.read_alone(encrypted_collusion.NoNoise()) == 200
    # By chance 3 of 200 rows are right with a probability of 5e-9.
    assert encrypted_collusion.read_alone(encrypted_collusion.SystemNoise()) < 3


@pytest.mark.parametrize(
    "noise",
    [forgotten.NOISE, forgotten.ZERO, pytest.param(forgotten.FLOODING, marks=pytest.mark.slow)],
)
def test_a_selector_that_forgets_one_of_its_noises_is_read_and_no_other(noise):
    """24 words. Without the flooding one is wrong with a chance of 1e-3. With all noises 23 are right with a chance of 2e-6."""
    assert forgotten.right(noise, noise, 24) >= 21
    assert forgotten.right(None, noise, 24) < 23


def test_no_victim_is_told_by_a_refusal():
    before, now = refusals.rows()
    assert (before.value, before.holds) == (len(refusals.VICTIMS), True)
    assert (now.value, now.holds) == (0, True)
