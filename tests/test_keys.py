"""Keys: who is who, and files that one seals for another."""

import hashlib
import json
import stat
import sys
from dataclasses import dataclass, replace

import pytest
from builders import written
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf import Offer, PrivateKey, PublicKeys, VertiMRFError
from vertimrf.errors import MessageError, PlanError
from vertimrf.files import sealed
from vertimrf.keys import KeyRing, open_sealed, seal

NAMES = ("airline", "weather", "register")
PLAN = hashlib.sha256(b"a plan").digest()
RING = KeyRing.new(NAMES)
KEYS = RING.public
KIND = "party message"


def sealed_by(name, contents=b"levels", to=None, **changes):
    return seal(
        contents,
        **{"kind": KIND, "plan": PLAN, "keys": KEYS, "sender": RING.parties[name], "to": to}
        | changes,
    )


def opened(data, receiver=RING.server, **changes):
    return open_sealed(
        data,
        **{"kind": KIND, "plan": PLAN, "keys": KEYS, "receiver": receiver, "where": "a.file"}
        | changes,
    )


@dataclass(frozen=True)
class Impostor(PrivateKey):
    """Plays the owner of a name in the plan with the public keys and a private key of its own.

    It cannot compute the agreements that take the owner's private key, and has ``guess`` in their place.
    """

    guess: bytes = bytes(32)

    @property
    def offer(self):
        return Offer(self.party, KEYS.key_of(self.party))

    def agree(self, public):
        return self.guess


def with_header(data, **changes):
    """A sealed file under a header of one's own."""
    header, head = sealed.peek(data, "file")
    return sealed.pack_head({**header, **changes}) + data[len(head) :]


@settings(max_examples=50)
@given(st.binary(max_size=3000), st.sampled_from(NAMES), st.none() | st.sampled_from(NAMES))
def test_what_is_sealed_opens_for_its_receiver_alone(contents, name, to):
    data = sealed_by(name, contents, to)
    for key in (*RING.parties.values(), RING.server):
        if key.party == to:
            assert opened(data, key) == (name, contents)
        else:
            with pytest.raises(MessageError, match="is for"):
                opened(data, key)
            # Nor with the check of the name out of the way.
            with pytest.raises(MessageError, match="cannot be opened"):
                opened(with_header(data, to=key.party), key)


def test_every_part_of_the_context_is_bound():
    """Each claim is refused by its check; and, were the header changed to agree with the claim, by the key."""
    data = sealed_by("airline")
    other = hashlib.sha256(b"another plan").digest()
    with pytest.raises(MessageError, match="another plan"):
        opened(data, plan=other)
    with pytest.raises(MessageError, match="not a id sample"):
        opened(data, kind="id sample")
    for claims, header in (
        ({"plan": other}, {"plan": other.hex()}),
        ({"kind": "id sample"}, {"kind": "id sample"}),
        ({}, {"from": "weather"}),
        ({}, {"more": 1}),
    ):
        with pytest.raises(MessageError, match="cannot be opened"):
            opened(with_header(data, **header), **claims)
    for header, said in (
        ({"from": "nobody"}, "is not a party of the plan"),
        ({"from": None}, "malformed .*from"),
        ({"from": ["airline"]}, "malformed .*from"),
        ({"ephemeral": "AAAA"}, "ephemeral"),
        ({"ephemeral": 7}, "ephemeral"),
        ({"ephemeral": "A" * 43 + "="}, "ephemeral"),
    ):
        with pytest.raises(MessageError, match=said):
            opened(with_header(data, **header))


def test_an_outsider_cannot_write_and_nobody_can_write_for_another():
    forged = replace(RING.parties["weather"], party="airline")
    with pytest.raises(PlanError, match="another key for 'airline'"):
        sealed_by("airline", sender=forged)
    # With a plan of one's own at hand the file can be made, but the true plan's keys do not open it.
    for liar in (PrivateKey.new("airline"), forged):
        ring = KeyRing(
            {**RING.parties, "airline": liar, "weather": PrivateKey.new("weather")}, RING.server
        ).public
        with pytest.raises(MessageError, match="cannot be opened"):
            opened(sealed_by("airline", keys=ring, sender=liar))
    with pytest.raises(MessageError, match="server's key cannot seal"):
        sealed_by("airline", sender=RING.server)
    with pytest.raises(MessageError, match="no party 'nobody'"):
        sealed_by("airline", to="nobody")


@pytest.mark.parametrize("to", [None, "weather"])
def test_nobody_seals_for_another_by_public_keys_alone(to):
    """The forger draws the ephemeral key, so that half of the file's key is its own to choose."""
    own = PrivateKey.new("airline")
    receiver = RING.server if to is None else RING.parties[to]
    guesses = [bytes(32), *(own.agree(KEYS.key_of(name)) for name in ("airline", to))]
    for guess in guesses:
        forged = sealed_by("airline", sender=Impostor("airline", own.value, guess), to=to)
        with pytest.raises(MessageError, match="cannot be opened"):
            opened(forged, receiver)


def test_who_takes_a_senders_key_reads_none_of_its_files():
    """Not even with the agreement of the two static keys, which the thief can compute."""
    known = RING.parties["airline"].agree(KEYS.server.public)
    for guess in (known, bytes(32)):
        with pytest.raises(MessageError, match="cannot be opened"):
            opened(sealed_by("airline"), Impostor(None, RING.parties["airline"].value, guess))


def test_contents_cannot_be_guessed_by_the_ephemeral_key():
    """A relay has a dictionary of contents, and makes the header of each as far as it can."""
    sent = sealed.peek(sealed_by("airline", b"yes"), "file")[0]
    relay = Impostor("airline", PrivateKey.new("airline").value)
    tried = [sealed.peek(sealed_by("airline", c, sender=relay), "file")[0] for c in (b"no", b"yes")]
    assert sent not in tried
    assert all({**sent, "ephemeral": one["ephemeral"]} == one for one in tried)


def test_the_same_file_sealed_again_is_the_same_bytes_and_any_other_shares_nothing_with_it():
    one = sealed_by("airline", bytes(5000))
    assert sealed_by("airline", bytes(5000)) == one
    others = [
        sealed_by("airline", bytes(4999) + b"1"),
        sealed_by("weather", bytes(5000)),
        sealed_by("airline", bytes(5000), "weather"),
        sealed_by("airline", bytes(5000), kind="id sample"),
        sealed_by("airline", bytes(5000), plan=bytes(32)),
        # The server's key is another one.
        sealed_by(
            "airline", bytes(5000), keys=replace(KEYS, server=KeyRing.new(NAMES).server.offer)
        ),
    ]
    heads = [sealed.peek(data, "file") for data in (one, *others)]
    assert len({head["ephemeral"] for head, _ in heads}) == len(heads)
    assert len(
        {data[len(head) :][:5000] for data, (_, head) in zip((one, *others), heads, strict=True)}
    ) == len(heads)
    assert set(heads[0][0]) == {"kind", "plan", "from", "to", "ephemeral"}
    # Without the contents the sender does not know the ephemeral key: its own key does not open what it sent.
    with pytest.raises(MessageError, match="cannot be opened"):
        opened(with_header(one, to="airline"), RING.parties["airline"])


@pytest.mark.parametrize("party", [*NAMES, None])
def test_keys_and_offers_survive_their_files(tmp_path, party):
    key = PrivateKey.new(party)
    key.save(tmp_path / "key")
    key.offer.save(tmp_path / "offer")
    assert PrivateKey.load(tmp_path / "key") == key
    assert Offer.load(tmp_path / "offer") == key.offer
    assert not any(text in f"{key!r} {RING!r} {key}" for text in written(key.value))
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    for load, wrong in ((PrivateKey.load, "offer"), (Offer.load, "key")):
        with pytest.raises(MessageError, match="inspect"):
            load(tmp_path / wrong)


def test_public_keys_survive_the_plan_file():
    assert PublicKeys.from_json(json.loads(json.dumps(KEYS.to_json()))) == KEYS
    for broken in (
        {},
        [],
        {"parties": [], "server": ""},
        {"parties": {"a": "AAAA"}, "server": "AAAA"},
        {"parties": {"a": 7}},
        {**KEYS.to_json(), "server": "%"},
    ):
        with pytest.raises(PlanError, match="malformed"):
            PublicKeys.from_json(broken)


def test_a_plan_takes_one_offer_of_everyone():
    offers = [RING.server.offer, *(RING.parties[name].offer for name in reversed(NAMES))]
    assert PublicKeys.of(offers, NAMES) == KEYS
    for some, said in (
        (offers[1:], "of the server is missing"),
        (offers[:-1], "'airline' is missing"),
        ([], "'airline' and of 'weather' and of 'register' and of the server is missing"),
        ([*offers, PrivateKey.new(None).offer], "two offers of the server"),
        ([*offers, PrivateKey.new("airline").offer], "have the name 'airline'"),
        ([*offers, PrivateKey.new("stranger").offer], "'stranger'"),
        ([replace(offers[0], public=offers[1].public), *offers[1:]], "same key"),
        ([*offers[:3], replace(offers[3], public=offers[2].public)], "same key"),
    ):
        with pytest.raises(PlanError, match=said):
            PublicKeys.of(some, NAMES)


def test_everyone_finds_its_own_key_in_the_plan_or_refuses():
    for key in (*RING.parties.values(), RING.server):
        KEYS.check(key)
        with pytest.raises(PlanError, match="holds another key for"):
            KEYS.check(PrivateKey.new(key.party))
    with pytest.raises(PlanError, match="which the plan does not have"):
        KEYS.check(PrivateKey.new("stranger"))


@pytest.mark.parametrize(
    "public", [bytes(32), bytes([1]) + bytes(31), b"short", b"\xec" + b"\xff" * 30 + b"\x7f"]
)
def test_unusable_public_keys_are_refused(public):
    """Too short, or of small order: every agreement under it would give zero."""
    with pytest.raises(MessageError, match="not a usable public key"):
        Offer("weather", public)


@pytest.mark.parametrize(
    "content, said",
    [
        ('{"kind": "party key", "party": "x", "value": "AAAA"}', "3 bytes, not 32"),
        ('{"kind": "server key", "value": "AAAA"}', "3 bytes, not 32"),
        ('{"kind": "party key", "party": "", "value": "AAAA"}', "needs a name"),
        ('{"kind": "party key", "party": 7, "value": "AAAA"}', "got `int`"),
        ('{"kind": "party key", "party": null, "value": "AAAA"}', "of a party or the server"),
        ('{"kind": "party key", "value": "AAAA"}', "of a party or the server"),
        ('{"kind": "server key", "value": 7}', "expected `bytes`"),
        ('{"kind": "server key", "value": "%"}', "base64"),
        ('{"kind": ["party key"]}', "inspect"),
        ("[]", "inspect"),
        ("{", "not valid JSON"),
    ],
)
def test_bad_key_files_are_one_sentence(tmp_path, content, said):
    (tmp_path / "key").write_text(content)
    with pytest.raises(VertiMRFError, match=said):
        PrivateKey.load(tmp_path / "key")
    (tmp_path / "offer").write_text(content.replace("key", "offer").replace("value", "public"))
    with pytest.raises(
        VertiMRFError, match=said.replace("3 bytes, not 32", "not a usable public key")
    ):
        Offer.load(tmp_path / "offer")
    (tmp_path / "key").write_bytes(bytes(1 << 21))
    with pytest.raises(MessageError, match="the limit for a key"):
        PrivateKey.load(tmp_path / "key")
