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
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..arguments import DATA, check, instance, takes
from ..arrays import Fields
from ..errors import MessageError
from ..files.atomic import MAX_KEY, read_json
from ..files.canonical import fingerprint
from ..files.convert import from_json, to_json
from ..files.results import save
from ..keys import Envelopes, PrivateKey, PublicKeys, called, hkdf, open_sealed, seal

if TYPE_CHECKING:
    from ..tables.ids import IdKeys

SIZE = 32
KIND, ENVELOPES = "secret", "envelopes"


@dataclass(frozen=True)
class Secret:
    """32 bytes that all parties share and the server does not know; ``repr`` hides them.

    Attributes:
        value: the secret [32 bytes].
    """

    value: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check(MessageError, vars(self), value=DATA)
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
        text = json.dumps(to_json(_SecretFile("secret", self.value)))
        save(path, text + "\n", private=True, synced=True)

    @classmethod
    def load(cls, path: str | Path) -> Secret:
        """Read a secret file.

        Raises:
            MessageError: missing, or not a secret.
        """
        data = read_json(path, KIND, MessageError, MAX_KEY)
        remedy = "`vertimrf inspect` shows what it is"
        return cls(from_json(data, _SecretFile, str(path), remedy, MessageError).value)


class _SecretFile(msgspec.Struct):
    """A secret in its file."""

    kind: Literal["secret"]
    value: bytes


@takes(
    MessageError,
    secret=instance("Secret"),
    plan=DATA,
    keys=instance("PublicKeys"),
    key=instance("PrivateKey"),
)
def seal_secret(secret: Secret, plan: bytes, keys: PublicKeys, key: PrivateKey) -> Fields:
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
    envelopes = {name: seal(secret.value, KIND, plan, keys, key, name) for name in others}
    return to_json(Envelopes(ENVELOPES, envelopes))


@takes(MessageError, plan=DATA, keys=instance("PublicKeys"), key=instance("PrivateKey"))
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
    envelopes = Envelopes.from_json(data, ENVELOPES, "The file of envelopes").envelopes
    if key.party is None or key.party not in envelopes:
        raise MessageError(
            f"There is no envelope for {called(key.party)}: have the secret sealed with the plan at hand."
        )
    sealed = envelopes[key.party]
    sender, value = open_sealed(sealed, KIND, plan, keys, key, f"The envelope for {key.party!r}")
    return sender, Secret(value)


def derive(secret: Secret, plan_digest: bytes, *, purpose: str) -> bytes:
    """Derive key material for one purpose and plan, by HKDF-SHA256.

    Args:
        secret: the parties' secret.
        plan_digest: digest of the plan [32 bytes].
        purpose: text that separates the uses of the secret.

    Returns:
        Key material [32 bytes].
    """
    return hkdf(secret.value, plan_digest, b"vertimrf " + purpose.encode())


def id_keys(secret: Secret, plan_digest: bytes) -> IdKeys:
    """Keys of the digests of ids under a plan: equal at all its parties and unknown to others."""
    # The import loads Numba, which opening a secret does not need.
    from ..tables.ids import IdKeys

    records, persons, pairs = (
        derive(secret, plan_digest, purpose=purpose)[:16]
        for purpose in ("record ids", "person ids", "record ids of persons")
    )
    return IdKeys(records, persons, pairs)
