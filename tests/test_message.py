"""Messages: each party speaks for itself alone, and nobody passes off a release for more than it is."""

from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with

from vertimrf import Message, Party, Secret
from vertimrf.errors import MessageError
from vertimrf.files import container
from vertimrf.keys import KeyRing, seal
from vertimrf.message import KIND
from vertimrf.privacy.noise import FixedNoise

SECRET = Secret(bytes(range(32)))
RING = KeyRing.new(("hospital", "insurer"))
SCHEMA = schema_of(hospital={"a": 3, "b": 2}, insurer={"c": 4})
PLAN = plan_with(SCHEMA, expected_records=500, public_keys=RING.public, nonce="messages")


def message_of(name, plan=PLAN, noise=None):
    """A party's message, about a table that anybody can make up."""
    codes = np.random.default_rng(0).integers(0, 2, (len(SCHEMA.sizes), 500))
    table = dealt(SCHEMA, codes)[plan.party_names.index(name)]
    return Party(plan, name, SECRET, noise).run(table)


def sealed_by(name, contents, plan=PLAN):
    """Contents under a party's own key, without any check of what they are."""
    return seal(contents, KIND, plan.digest(), RING.public, RING.parties[name], None)


@pytest.mark.parametrize("name, other", [("hospital", "insurer"), ("insurer", "hospital")])
def test_no_party_speaks_for_another(name, other):
    """A party knows the plan and the secret, and so can make a message as another one would. It has only its own key.

    The server, too, may swap the files of two parties: who a message is from does not depend on its file's name.
    """
    message = message_of(other)
    with pytest.raises(MessageError, match=f"what '{other}' releases, under the key of '{name}'"):
        Message.unseal(sealed_by(name, message.to_bytes(PLAN)), PLAN, RING.server)
    with pytest.raises(MessageError, match=f"what '{other}' releases, under the key of '{name}'"):
        message.seal(PLAN, RING.parties[name])
    own = Message.unseal(message.seal(PLAN, RING.parties[other]), PLAN, RING.server)
    assert PLAN.party_names[own.party] == other


def test_a_message_of_another_plan_is_refused_under_this_plans_envelope():
    """A party seals again what it has released under an earlier plan over the same people, with the same hashes."""
    earlier = replace(PLAN, nonce="earlier")
    old = message_of("insurer", earlier).to_bytes(earlier)
    with pytest.raises(MessageError, match="made for another plan"):
        Message.unseal(sealed_by("insurer", old), PLAN, RING.server)


def test_a_message_is_private_only_with_real_noise_and_the_plans_own_label():
    """A party that has fixed its noise, or that writes another label into its message, takes the label off the whole run."""
    message = message_of("insurer")
    real = Message.from_bytes(message.to_bytes(PLAN), PLAN)
    assert real.private
    fixed = message_of("insurer", noise=FixedNoise(1))
    assert not fixed.private
    assert not Message.from_bytes(fixed.to_bytes(PLAN), PLAN).private
    header, arrays = container.unpack(message.to_bytes(PLAN), KIND, "it")
    stated = header["label"]
    for label in (
        None,
        {},
        stated | {"epsilon": stated["epsilon"] / 2},
        stated | {"private": False},
    ):
        relabelled = container.pack(KIND, header | {"label": label}, arrays)
        assert not Message.from_bytes(relabelled, PLAN).private


@pytest.mark.parametrize("part", [0, -1], ids=["one-way", "larger"])
def test_a_noise_that_the_ledger_does_not_have_is_refused(part):
    """A party that adds less noise than the plan says, and says so, would void the guarantee that the server states."""
    message = message_of("hospital")
    marginals = list(message.marginals)
    marginals[part] = replace(marginals[part], sigma=0.9 * marginals[part].sigma)
    with pytest.raises(MessageError, match="not those of the plan's ledger"):
        Message.from_bytes(replace(message, marginals=tuple(marginals)).to_bytes(PLAN), PLAN)


def test_only_the_first_party_states_a_record_count():
    """A second count, with noise of its own, is no event of the ledger."""
    for name, count in (("insurer", 500), ("hospital", None)):
        wrong = replace(message_of(name), count=count)
        with pytest.raises(MessageError, match="the first party, and it alone"):
            Message.from_bytes(wrong.to_bytes(PLAN), PLAN)


def test_a_message_has_no_room_for_more_than_the_plan_asks():
    """A party's software may smuggle rows out in an array that nobody reads."""
    header, arrays = container.unpack(message_of("insurer").to_bytes(PLAN), KIND, "it")
    more = container.pack(KIND, header, arrays | {"rows": np.zeros(500, np.uint8)})
    with pytest.raises(MessageError, match="arrays where the plan asks for"):
        Message.from_bytes(more, PLAN)


def test_no_level_lies_above_the_highest_that_a_sketch_can_have():
    """Levels are sent in whole bits, which can say more than a sketch does."""
    plan = plan_with(
        SCHEMA, expected_records=500, encoder="scheduled-pairs", keys=64, public_keys=RING.public
    )
    message, highest = message_of("insurer", plan), plan.sketch.ceiling
    assert highest - plan.sketch.floor < (1 << plan.sketch.bits) - 1
    wrong = [levels.copy() for levels in message.sketches]
    wrong[0][0, 0] = highest + 1
    with pytest.raises(
        MessageError, match=f"holds {highest + 1}, above its highest level {highest}"
    ):
        Message.from_bytes(replace(message, sketches=tuple(wrong)).to_bytes(plan), plan)
