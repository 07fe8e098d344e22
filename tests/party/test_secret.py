"""The parties' shared secret: agreed on in public, told to nobody, and never used twice the same way."""

from __future__ import annotations

import json
import re
import stat
import sys

import pytest

from vertimrf.errors import MessageError
from vertimrf.party.secret import Offer, OfferKey, Secret, derive, open_envelope, seal


@pytest.fixture(scope="module")
def keys():
    return [OfferKey.new(name) for name in ("airline", "weather", "register")]


def test_three_parties_agree_through_public_files(keys, tmp_path):
    offers = []
    for key in keys:
        (tmp_path / key.party).write_text(json.dumps(key.offer.to_json()))
        offers.append(Offer.load(tmp_path / key.party))
    drawn = Secret.new()
    envelopes = json.loads(json.dumps(seal(drawn, keys[0], offers)))
    for key in keys[1:]:
        opened = open_envelope(envelopes, key)
        assert opened == drawn
        assert opened.fingerprint == drawn.fingerprint


def test_the_server_learns_nothing_from_what_it_relays(keys):
    drawn = Secret.new()
    public = json.dumps(seal(drawn, keys[0], [key.offer for key in keys]))
    import base64

    assert base64.b64encode(drawn.value).decode() not in public
    assert drawn.value.hex() not in public
    assert drawn.value.hex() not in repr(drawn)
    assert keys[0].value.hex() not in repr(keys[0])
    assert re.fullmatch("[0-9a-f]{4}(-[0-9a-f]{4}){3}", drawn.fingerprint)


def test_files_are_for_their_owner_alone(keys, tmp_path):
    drawn = Secret.new()
    drawn.save(tmp_path / "secret")
    keys[0].save(tmp_path / "key")
    assert Secret.load(tmp_path / "secret") == drawn
    assert OfferKey.load(tmp_path / "key") == keys[0]
    if sys.platform != "win32":
        for name in ("secret", "key"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


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


def test_altered_or_foreign_envelopes_are_refused(keys):
    envelopes = seal(Secret.new(), keys[0], [key.offer for key in keys[:2]])
    stranger = OfferKey.new("weather")
    with pytest.raises(MessageError, match="altered, or sealed for another offer"):
        open_envelope(envelopes, stranger)
    with pytest.raises(MessageError, match="no envelope for 'register'"):
        open_envelope(envelopes, keys[2])
    text = envelopes["envelopes"]["weather"]
    flipped = text[:20] + ("A" if text[20] != "A" else "B") + text[21:]
    with pytest.raises(MessageError, match="altered"):
        open_envelope({**envelopes, "envelopes": {"weather": flipped}}, keys[1])
    with pytest.raises(MessageError, match="no envelopes"):
        open_envelope([], keys[1])
    with pytest.raises(MessageError, match="bear one name"):
        seal(Secret.new(), keys[0], [keys[1].offer, keys[1].offer])
    with pytest.raises(MessageError, match="name 'airline' with another key"):
        seal(Secret.new(), keys[0], [OfferKey.new("airline").offer, keys[1].offer])


@pytest.mark.parametrize("public", [bytes(32), b"short"])
def test_unusable_public_keys_are_refused(keys, public):
    with pytest.raises(MessageError, match="not a usable public key"):
        seal(Secret.new(), keys[0], [Offer("weather", public)])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"kind": "offer key", "party": "x", "value": "AAAA"}', "3 bytes, not 32"),
        ('{"kind": "offer key", "party": "", "value": "AAAA"}', "needs a name"),
        ('{"kind": "offer key", "party": 7, "value": "AAAA"}', "needs a name, not 7"),
        ('{"kind": "offer key", "value": "AAAA"}', "incomplete"),
    ],
)
def test_bad_key_files_are_one_sentence(tmp_path, content, said):
    (tmp_path / "key").write_text(content)
    with pytest.raises(MessageError, match=said):
        OfferKey.load(tmp_path / "key")
    (tmp_path / "offer").write_text(content.replace("offer key", "offer").replace("value", "public"))
    with pytest.raises(MessageError, match=said.replace("3 bytes, not 32", "not a usable public key")):
        Offer.load(tmp_path / "offer")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "no secret"),
        ('{"kind": "offer", "party": "x", "public": ""}', "no secret"),
        ('{"kind": "secret"}', "incomplete"),
        ('{"kind": "secret", "value": "%%%"}', "base64"),
        ('{"kind": "secret", "value": 5}', "base64"),
        ('{"kind": "secret", "value": "AAAA"}', "32 bytes"),
    ],
)
def test_bad_secret_files_are_one_sentence(tmp_path, content, said):
    (tmp_path / "secret").write_text(content)
    with pytest.raises(MessageError, match=said) as caught:
        Secret.load(tmp_path / "secret")
    assert "\n" not in str(caught.value)
    with pytest.raises(MessageError, match="Cannot read"):
        Secret.load(tmp_path / "nothing")
