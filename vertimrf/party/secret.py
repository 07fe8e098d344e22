"""The parties' shared secret, which the server must not know (VertiMRF, section 4.3).

One party draws the secret and seals it for every other party's public key in the plan. Anybody may
relay the wrapped secrets, including the server: only the addressed party can open one, only under
this plan, and only if a party of the plan sealed it. This requires that the plan's public keys are
authentic, so parties compare the plan's fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import MessageError
from ..files.atomic import write_text
from ..files.canonical import fingerprint
from ..keys import (
    PrivateKey,
    PublicKeys,
    called,
    open_sealed,
    read_base64,
    read_kind,
    seal,
    to_base64,
)

if TYPE_CHECKING:
    from ..tables.ids import IdKeys

__all__ = ["Secret", "derive", "id_keys", "open_envelope", "seal_secret"]

SIZE = 32
KIND = "secret"


@dataclass(frozen=True)
class Secret:
    """32 bytes that all parties share and the server does not know; ``repr`` hides them.

    Attributes:
        value: the secret [32 bytes].
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
        """A short text by which parties compare their secrets; it reveals nothing useful about the
        secret.
        """
        return fingerprint(hashlib.sha256(b"vertimrf fingerprint" + self.value).digest())

    def save(self, path: str | Path) -> None:
        """Write the secret, readable by its owner alone."""
        write_text(
            path,
            json.dumps({"kind": KIND, "value": to_base64(self.value)}) + "\n",
            private=True,
            synced=True,
        )

    @classmethod
    def load(cls, path: str | Path) -> Secret:
        """Read a secret file.

        Raises:
            MessageError: missing, or not a secret.
        """
        return cls(read_base64(read_kind(path, KIND, (KIND,), ("value",)), "value", path))


def seal_secret(secret: Secret, plan: bytes, keys: PublicKeys, key: PrivateKey) -> dict[str, Any]:
    """Seal the secret for every other party of a plan.

    Args:
        secret: the secret that this party drew.
        plan: the plan's digest.
        keys: the plan's public keys.
        key: this party's private key.

    Returns:
        Public envelopes, JSON-able.

    Raises:
        MessageError: the key is the server's.
        PlanError: the plan does not have this party's key.
    """
    others = [str(offer.party) for offer in keys.parties if offer.party != key.party]
    return {
        "kind": "envelopes",
        "envelopes": {
            name: to_base64(seal(secret.value, KIND, plan, keys, key, name)) for name in others
        },
    }


def open_envelope(data: Any, plan: bytes, keys: PublicKeys, key: PrivateKey) -> tuple[str, Secret]:
    """Open this party's wrapped secret.

    Args:
        data: result of :func:`seal_secret`, read from a file.
        plan: the plan's digest.
        keys: the plan's public keys.
        key: this party's private key.

    Returns:
        The authenticated name of the party that sealed it, and the secret.

    Raises:
        MessageError: there is no wrapped secret for this party, it is of another plan, or no party
            of the plan sealed it.
        PlanError: the plan does not have this party's key.
    """
    if (
        not isinstance(data, dict)
        or data.get("kind") != "envelopes"
        or not isinstance(data.get("envelopes"), dict)
    ):
        raise MessageError("These are no envelopes; have the secret sealed again.")
    if key.party is None or key.party not in data["envelopes"]:
        raise MessageError(
            f"There is no envelope for {called(key.party)}: have the secret sealed with the plan at hand."
        )
    sealed = read_base64(data["envelopes"], key.party, "The envelopes")
    sender, value = open_sealed(sealed, KIND, plan, keys, key, f"The envelope for {key.party!r}")
    return sender, Secret(value)


def derive(secret: Secret, plan_digest: bytes, *, purpose: str) -> bytes:
    """Derive key material for one purpose and plan, by HKDF-SHA256 [32 bytes]."""
    info = b"vertimrf " + purpose.encode()
    return HKDF(algorithm=hashes.SHA256(), length=SIZE, salt=plan_digest, info=info).derive(
        secret.value
    )


def id_keys(secret: Secret, plan_digest: bytes) -> IdKeys:
    """Keys of the digests of ids under a plan: equal at all its parties and unknown to others."""
    # The import loads Numba, which opening a secret does not need.
    from ..tables.ids import IdKeys

    records, persons = (
        derive(secret, plan_digest, purpose=purpose)[:16]
        for purpose in ("record ids", "person ids")
    )
    return IdKeys(records, persons)
