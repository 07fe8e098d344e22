"""The parties' shared secret, which the server must not know (VertiMRF, section 4.3).

Any number of parties agree on it through files that the server may relay: every party publishes an offer (an X25519 public
key); the first party draws the secret and seals it for each other party. The server follows the protocol but is curious, so
the exchange is protected against reading, not against a relay that swaps offers: parties compare the fingerprint by phone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import MessageError
from ..files.atomic import read_json, replacing
from ..files.canonical import fingerprint

__all__ = ["Offer", "OfferKey", "Secret", "derive", "open_envelope", "seal"]

SIZE = 32


@dataclass(frozen=True)
class Secret:
    """32 bytes that all parties share and the server does not know; its text form hides them.

    Attributes:
        value: the bytes.
    """

    value: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.value) != SIZE:
            raise MessageError(f"A secret has {SIZE} bytes, not {len(self.value)}.")

    @classmethod
    def new(cls) -> Secret:
        """A fresh secret from the operating system."""
        return cls(secrets.token_bytes(SIZE))

    @property
    def fingerprint(self) -> str:
        """Four groups of four hexadecimal digits that parties compare by phone; they tell nothing useful about the secret.

        64 bits: whoever swaps offers on the way would have to try as many secrets to find a second one that passes.
        """
        return fingerprint(hashlib.sha256(b"vertimrf fingerprint" + self.value).digest())

    def save(self, path: str | Path) -> None:
        """Write the secret, readable by its owner alone."""
        _write_private(path, {"kind": "secret", "value": _text(self.value)})

    @classmethod
    def load(cls, path: str | Path) -> Secret:
        """Read a secret file.

        Raises:
            MessageError: missing, or not a secret.
        """
        return cls(_bytes(_read(path, "secret"), "value", path))


@dataclass(frozen=True)
class OfferKey:
    """A party's private half of the agreement; it stays with the party.

    Attributes:
        party: the party's name.
        value: X25519 private key [32 bytes].
    """

    party: str
    value: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _check_party(self.party)
        if len(self.value) != SIZE:
            raise MessageError(f"The offer key of {self.party!r} has {len(self.value)} bytes, not {SIZE}.")

    @classmethod
    def new(cls, party: str) -> OfferKey:
        """A fresh key from the operating system."""
        return cls(party, X25519PrivateKey.generate().private_bytes_raw())

    @property
    def offer(self) -> Offer:
        """The public half."""
        return Offer(self.party, X25519PrivateKey.from_private_bytes(self.value).public_key().public_bytes_raw())

    def save(self, path: str | Path) -> None:
        """Write the key, readable by its owner alone."""
        _write_private(path, {"kind": "offer key", "party": self.party, "value": _text(self.value)})

    @classmethod
    def load(cls, path: str | Path) -> OfferKey:
        """Read a key file.

        Raises:
            MessageError: missing, or not an offer key.
        """
        data = _read(path, "offer key")
        return cls(data["party"], _bytes(data, "value", path))


@dataclass(frozen=True)
class Offer:
    """What a party publishes.

    Attributes:
        party: the party's name.
        public: X25519 public key [32 bytes].
    """

    party: str
    public: bytes

    def __post_init__(self) -> None:
        _check_party(self.party)
        if len(self.public) != SIZE:
            raise MessageError(f"The offer of {self.party!r} is not a usable public key: it has {len(self.public)} bytes.")

    def to_json(self) -> dict[str, str]:
        """JSON-able form."""
        return {"kind": "offer", "party": self.party, "public": _text(self.public)}

    @classmethod
    def load(cls, path: str | Path) -> Offer:
        """Read an offer file.

        Raises:
            MessageError: missing, or not an offer.
        """
        data = _read(path, "offer")
        return cls(data["party"], _bytes(data, "public", path))


def seal(secret: Secret, key: OfferKey, offers: Sequence[Offer]) -> dict[str, Any]:
    """Seal the secret for every other party.

    Args:
        secret: drawn by this party.
        key: this party's private key.
        offers: all parties' offers, this one's among them or not.

    Returns:
        Public envelopes, JSON-able.

    Raises:
        MessageError: two offers of one party, or another party's offer under this one's name.
    """
    names = [offer.party for offer in offers]
    if len(set(names)) < len(names):
        raise MessageError(f"Two offers bear one name ({', '.join(sorted(names))}); each party gives one.")
    if any(offer.party == key.party and offer != key.offer for offer in offers):
        raise MessageError(f"An offer bears the name {key.party!r} with another key; make offer and key file together.")
    envelopes = {}
    for offer in offers:
        if offer.party != key.party:
            nonce = os.urandom(12)
            cipher = ChaCha20Poly1305(_pair_key(key, offer))
            envelopes[offer.party] = _text(nonce + cipher.encrypt(nonce, secret.value, offer.party.encode()))
    return {"kind": "envelopes", "from": key.offer.to_json(), "envelopes": envelopes}


def open_envelope(data: Any, key: OfferKey) -> Secret:
    """Open this party's envelope.

    Args:
        data: what :func:`seal` returned, read back.
        key: this party's private key.

    Raises:
        MessageError: no envelope for this party, or one that was altered or sealed for another key.
    """
    if not isinstance(data, dict) or data.get("kind") != "envelopes":
        raise MessageError("These are no envelopes; pass the file that `vertimrf secret seal` wrote.")
    try:
        sender = Offer(data["from"]["party"], _bytes(data["from"], "public", "the envelopes"))
        sealed = _bytes(data["envelopes"], key.party, "the envelopes")
    except (KeyError, TypeError):
        raise MessageError(f"There is no envelope for {key.party!r}; give its offer to the party that seals.") from None
    try:
        cipher = ChaCha20Poly1305(_pair_key(key, sender))
        return Secret(cipher.decrypt(sealed[:12], sealed[12:], key.party.encode()))
    except (InvalidTag, ValueError):
        raise MessageError(f"The envelope for {key.party!r} was altered, or sealed for another offer.") from None


def derive(secret: Secret, plan_digest: bytes, *, purpose: str) -> bytes:
    """Key material for one purpose under one plan or follow-up, by HKDF-SHA256 [32 bytes].

    Two plans, follow-ups or purposes never share hashes.
    """
    info = b"vertimrf " + purpose.encode()
    return HKDF(algorithm=hashes.SHA256(), length=SIZE, salt=plan_digest, info=info).derive(secret.value)


def _check_party(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise MessageError(f"A party needs a name, not {name!r}; use the one that the plan gives it.")


def _pair_key(key: OfferKey, other: Offer) -> bytes:
    try:
        shared = X25519PrivateKey.from_private_bytes(key.value).exchange(X25519PublicKey.from_public_bytes(other.public))
    except ValueError:
        raise MessageError(f"The offer of {other.party!r} is not a usable public key.") from None
    salt = b"".join(sorted([key.offer.public, other.public]))
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=b"vertimrf envelope").derive(shared)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(data: Any, name: str, where: Any) -> bytes:
    try:
        value = base64.b64decode(data[name], validate=True)
    except (KeyError, TypeError, binascii.Error):
        if isinstance(data, dict) and name in data:
            raise MessageError(f"{where}: {name} is not valid base64.") from None
        raise
    return value


def _read(path: str | Path, kind: str) -> dict[str, Any]:
    data = read_json(path, kind, MessageError)
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise MessageError(f"{path} is no {kind}; `vertimrf inspect` says what it is.")
    fields = {"secret": ["value"], "offer key": ["value", "party"], "offer": ["public", "party"]}
    if any(name not in data for name in fields[kind]):
        raise MessageError(f"{path} is an incomplete {kind}.")
    return data


def _write_private(path: str | Path, data: dict[str, Any]) -> None:
    with replacing(path) as draft:
        draft.chmod(0o600)
        draft.write_text(json.dumps(data) + "\n")
