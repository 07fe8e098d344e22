"""The parties' shared secret: agreed on in public, told to nobody, and never used twice the same way."""

import base64
import hashlib
import json
import re
import stat
import sys

import pytest
from builders import written

from vertimrf import PrivateKey, Secret
from vertimrf.errors import MessageError, PlanError
from vertimrf.files.canonical import ALPHABET
from vertimrf.keys import KeyRing
from vertimrf.party.secret import derive, open_envelope, seal_secret

PLAN = hashlib.sha256(b"a plan").digest()


@pytest.fixture(scope="module")
def ring():
    return KeyRing.new(("airline", "weather", "register"))


def test_three_parties_agree_through_a_public_file(ring):
    drawn = Secret.new()
    envelopes = json.loads(
        json.dumps(seal_secret(drawn, PLAN, ring.public, ring.parties["airline"]))
    )
    for name in ("weather", "register"):
        sender, opened = open_envelope(envelopes, PLAN, ring.public, ring.parties[name])
        assert (sender, opened) == ("airline", drawn)
        assert opened.fingerprint == drawn.fingerprint


def test_the_server_learns_nothing_from_what_it_relays(ring):
    drawn = Secret.new()
    sealed = seal_secret(drawn, PLAN, ring.public, ring.parties["airline"])
    public = json.dumps(sealed) + "".join(
        map(str, map(base64.b64decode, sealed["envelopes"].values()))
    )
    assert base64.b64encode(drawn.value).decode() not in public
    assert str(drawn.value)[2:-1] not in public
    assert drawn.value.hex() not in public
    assert not any(text in f"{drawn!r} {drawn}" for text in written(drawn.value))
    assert re.fullmatch("[0-9A-Z]{4}(-[0-9A-Z]{4}){6}", drawn.fingerprint)
    for text in sealed["envelopes"].values():
        with pytest.raises(MessageError):
            open_envelope(sealed | {"envelopes": {None: text}}, PLAN, ring.public, ring.server)
    with pytest.raises(MessageError, match="server's key"):
        seal_secret(drawn, PLAN, ring.public, ring.server)


def test_a_secret_file_is_for_its_owner_alone(tmp_path):
    drawn = Secret.new()
    drawn.save(tmp_path / "secret")
    assert Secret.load(tmp_path / "secret") == drawn
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_who_overhears_a_fingerprint_reads_nothing_of_the_secret():
    """A party tells its fingerprint by phone: its 140 bits are those of no part of the secret."""
    secret = Secret.new()
    bits = "".join(f"{ALPHABET.index(c):05b}" for c in secret.fingerprint if c in ALPHABET)
    assert len(bits) == 140
    whole = "".join(f"{byte:08b}" for byte in secret.value)
    # Sixty bits in a row agree by chance once in 2^45 draws.
    assert not any(whole[at : at + 60] in bits for at in range(len(whole) - 59))


def test_derived_keys_differ_by_everything_that_they_depend_on():
    secret = Secret(bytes(range(32)))
    base = derive(secret, b"plan", purpose="sketches")
    others = {
        derive(Secret(bytes(32)), b"plan", purpose="sketches"),
        derive(secret, b"other plan", purpose="sketches"),
        derive(secret, b"plan", purpose="phantoms"),
    }
    assert len(others | {base}) == 4
    assert base == derive(secret, b"plan", purpose="sketches")
    assert len(base) == 32


def test_altered_or_foreign_envelopes_are_refused(ring):
    sealed = seal_secret(Secret.new(), PLAN, ring.public, ring.parties["airline"])
    stranger = PrivateKey.new("weather")
    with pytest.raises(PlanError, match="another key for 'weather'"):
        open_envelope(sealed, PLAN, ring.public, stranger)
    with pytest.raises(MessageError, match="no envelope for 'airline'"):
        open_envelope(sealed, PLAN, ring.public, ring.parties["airline"])
    text = sealed["envelopes"]["weather"]
    flipped = text[:-9] + ("A" if text[-9] != "A" else "B") + text[-8:]
    for wrong, said in (
        (sealed | {"envelopes": {"weather": flipped}}, "altered"),
        (
            sealed | {"envelopes": {"weather": sealed["envelopes"]["register"]}},
            "is for 'register'",
        ),
        (sealed | {"envelopes": {"weather": "%"}}, "base64"),
        (sealed | {"envelopes": []}, "file of envelopes is malformed"),
        ({"kind": "envelopes"}, "missing required field `envelopes`"),
        ([], "file of envelopes is malformed"),
        ({}, "file of envelopes is no envelopes"),
    ):
        with pytest.raises(MessageError, match=said):
            open_envelope(wrong, PLAN, ring.public, ring.parties["weather"])


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "not valid JSON"),
        ("[]", "malformed"),
        ('{"kind": "party offer", "party": "x", "public": ""}', "malformed"),
        ('{"kind": "secret"}', "missing required field `value`"),
        ('{"value": "AAAA"}', "missing required field `kind`"),
        ('{"kind": "secret", "value": "%%%"}', "base64"),
        ('{"kind": "secret", "value": 5}', "expected `bytes`"),
        ('{"kind": "secret", "value": "AAAA"}', "32 bytes"),
    ],
)
def test_bad_secret_files_are_one_sentence(tmp_path, content, said):
    (tmp_path / "secret").write_text(content)
    with pytest.raises(MessageError, match=said):
        Secret.load(tmp_path / "secret")
    with pytest.raises(MessageError, match="Cannot read"):
        Secret.load(tmp_path / "nothing")
