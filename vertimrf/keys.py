"""Who is who: everyone's X25519 key pair, and files sealed by one of them for another.

Every party and the server make a key pair; the public halves of all stand in the plan, and so under the fingerprint that people
compare. Nothing else has to be trusted on the way: whoever relays files can hold them back, but can neither read them, nor
change them, nor pass off his own as somebody's.

A file's key comes from two agreements, as in the authenticated mode of RFC 9180 (HPKE), of which the cryptography library has
the other modes only: of an ephemeral key with the receiver's, so that no two contents have one key and the sender's key alone
does not open the file later; and of the sender's with the receiver's, so that nobody else can have made it. HKDF-SHA256 takes
both, with both static public keys and the file's whole header (kind, plan, names, ephemeral key): another name, plan or kind is
another key. The ephemeral key is a function of the sender's private key, the header and the contents, as the nonce of a
signature is by RFC 6979: the same contents sealed again are the same bytes, from whatever copy of the key, and other contents
have another file key. The receiver could have made the file as well. That is no loss, for it is the one who believes it; but a
file convinces nobody else of who wrote it. Whoever gets hold of a receiver's private key can read what was sealed for it,
earlier files included.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .errors import MessageError, PlanError
from .files import sealed
from .files.atomic import MAX_KEY, read_json, write_text

__all__ = [
    "KeyRing",
    "Offer",
    "PrivateKey",
    "PublicKeys",
    "called",
    "check_name",
    "open_sealed",
    "read_base64",
    "read_kind",
    "seal",
    "to_base64",
]

SIZE = 32
LONGEST_NAME = 200


@dataclass(frozen=True)
class Offer:
    """The public half of a key pair, for the plan.

    Attributes:
        party: the party's name in the plan; None for the server.
        public: X25519 public key [32 bytes].
    """

    party: str | None
    public: bytes

    def __post_init__(self) -> None:
        check_name(self.party)
        if len(self.public) != SIZE:
            raise MessageError(f"The offer of {called(self.party)} is not a usable public key: it has {len(self.public)} bytes.")
        try:
            # The few points under which every agreement gives zero.
            X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(self.public))
        except ValueError:
            raise MessageError(f"The offer of {called(self.party)} is not a usable public key: ask for another.") from None

    @property
    def identity(self) -> str:
        """By which a machine knows whose records of releases it has: a digest of the public key, in hexadecimal."""
        return hashlib.sha256(b"vertimrf identity" + self.public).hexdigest()

    def to_text(self) -> str:
        """The offer as a file holds it; it is public."""
        return json.dumps(_with_name("offer", self.party) | {"public": to_base64(self.public)}) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the offer; it is public."""
        write_text(path, self.to_text())

    @classmethod
    def load(cls, path: str | Path) -> Offer:
        """Read an offer file.

        Raises:
            MessageError: missing, or not an offer.
        """
        return cls.from_json(read_json(path, "offer", MessageError, MAX_KEY), path)

    @classmethod
    def from_json(cls, data: Any, where: str | Path = "The offer") -> Offer:
        """Read an offer back.

        Raises:
            MessageError: not an offer.
        """
        _check_kind(data, "offer", ("party offer", "server offer"), ("public",), where)
        return cls(_name(data, where), read_base64(data, "public", where))


@dataclass(frozen=True)
class PrivateKey:
    """The private half of a key pair; it stays with its owner.

    Attributes:
        party: the party's name in the plan; None for the server.
        value: X25519 private key [32 bytes].
    """

    party: str | None
    value: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_name(self.party)
        if len(self.value) != SIZE:
            raise MessageError(f"The key of {called(self.party)} has {len(self.value)} bytes, not {SIZE}.")

    @classmethod
    def new(cls, party: str | None) -> PrivateKey:
        """A fresh key from the operating system."""
        return cls(party, X25519PrivateKey.generate().private_bytes_raw())

    @property
    def offer(self) -> Offer:
        """The public half."""
        return Offer(self.party, self._x25519.public_key().public_bytes_raw())

    def save(self, path: str | Path) -> None:
        """Write the key, readable by its owner alone."""
        text = json.dumps(_with_name("key", self.party) | {"value": to_base64(self.value)})
        write_text(path, text + "\n", private=True, synced=True)

    @classmethod
    def load(cls, path: str | Path) -> PrivateKey:
        """Read a key file.

        Raises:
            MessageError: missing, or not a private key.
        """
        data = read_kind(path, "key", ("party key", "server key"), ("value",))
        return cls(_name(data, path), read_base64(data, "value", path))

    def agree(self, public: bytes) -> bytes:
        """X25519 of this key and a public one that was checked when it was read [32 bytes]."""
        return self._x25519.exchange(X25519PublicKey.from_public_bytes(public))

    def derive(self, plan: bytes, purpose: str) -> bytes:
        """Key material for one purpose under one plan, which nobody else can compute, by HKDF-SHA256 [32 bytes]."""
        info = b"vertimrf own " + purpose.encode()
        return HKDF(algorithm=hashes.SHA256(), length=SIZE, salt=plan, info=info).derive(self.value)

    @property
    def _x25519(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.value)


@dataclass(frozen=True)
class PublicKeys:
    """Everyone's public keys, as they stand in a plan.

    Attributes:
        parties: the parties' offers, in plan order.
        server: the server's.

    Raises:
        PlanError: an offer that is missing, doubled, of another role, or with another's key.
    """

    parties: tuple[Offer, ...]
    server: Offer

    def __post_init__(self) -> None:
        names = [offer.party for offer in self.parties]
        if self.server.party is not None or None in names:
            raise PlanError("The plan needs one offer of the server (`vertimrf server offer`) and one of every party.")
        if doubled := sorted({str(name) for name in names if names.count(name) > 1}):
            raise PlanError(f"Two offers bear the name {doubled[0]!r}; each party gives one.")
        if len({offer.public for offer in (*self.parties, self.server)}) <= len(self.parties):
            raise PlanError("Two offers hold the same key; everyone makes a key pair of its own.")

    @classmethod
    def of(cls, offers: Sequence[Offer], names: Sequence[str]) -> PublicKeys:
        """Sort out offers given in any order.

        Args:
            offers: the server's and every party's.
            names: the plan's parties.

        Raises:
            PlanError: an offer too few or too many.
        """
        servers = [offer for offer in offers if offer.party is None]
        given = [offer.party for offer in offers if offer.party is not None]
        if unknown := [str(name) for name in given if name not in names]:
            raise PlanError(f"An offer bears the name {unknown[0]!r}; the schema's parties are {', '.join(names)}.")
        missing = [repr(name) for name in names if name not in given] + ["the server"] * (not servers)
        if missing:
            raise PlanError(f"The offer of {' and of '.join(missing)} is missing; give one of every party and the server's.")
        if len(servers) > 1:
            raise PlanError("There are two offers of the server; give the one that the server's operator vouches for.")
        return cls(tuple(sorted((o for o in offers if o.party is not None), key=lambda o: names.index(str(o.party)))), servers[0])

    def key_of(self, party: str | None) -> bytes | None:
        """A party's public key, or the server's; None if there is no such party."""
        if party is None:
            return self.server.public
        return next((offer.public for offer in self.parties if offer.party == party), None)

    def check(self, key: PrivateKey) -> None:
        """Refuse a plan that has another key under one's own name: the one trace that a swapped offer leaves with its owner.

        Raises:
            PlanError: it has, or does not know the name.
        """
        public = self.key_of(key.party)
        if public is None:
            names = ", ".join(str(offer.party) for offer in self.parties)
            raise PlanError(f"The key file is {called(key.party)}'s, whom the plan does not name; its parties are {names}.")
        if public != key.offer.public:
            raise PlanError(
                f"The plan holds another key for {called(key.party)} than this key file's: the offer was swapped on its way, or "
                "made anew; have the plan made again with the right offer, and compare its fingerprint."
            )

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "parties": {str(offer.party): to_base64(offer.public) for offer in self.parties},
            "server": to_base64(self.server.public),
        }

    @classmethod
    def from_json(cls, data: Any) -> PublicKeys:
        """Read it back.

        Raises:
            PlanError: malformed.
        """
        try:
            parties = tuple(Offer(name, read_base64(data["parties"], name, "The plan")) for name in data["parties"])
            return cls(parties, Offer(None, read_base64(data, "server", "The plan")))
        except (KeyError, TypeError, AttributeError, MessageError) as error:
            raise PlanError(f"The plan's public keys are malformed ({error}); make it again with `vertimrf plan`.") from None


@dataclass(frozen=True)
class KeyRing:
    """All private keys of a run in one process, for trials and tests; in a deployment nobody has more than its own.

    Attributes:
        parties: by name, in plan order.
        server: the server's.
    """

    parties: Mapping[str, PrivateKey]
    server: PrivateKey

    @classmethod
    def new(cls, names: Sequence[str]) -> KeyRing:
        """Fresh keys for everyone."""
        return cls({name: PrivateKey.new(name) for name in names}, PrivateKey.new(None))

    @property
    def public(self) -> PublicKeys:
        """Their public halves."""
        return PublicKeys(tuple(key.offer for key in self.parties.values()), self.server.offer)


def seal(
    contents: bytes, kind: str, plan: bytes, keys: PublicKeys, sender: PrivateKey, to: str | None
) -> bytes:
    """Seal a file that only its receiver can read and only its sender can have made; the same file is the same bytes.

    Args:
        contents: what is to be sent.
        kind: what it is; readable.
        plan: digest of the plan that it belongs to; readable.
        keys: that plan's public keys.
        sender: whose file it is.
        to: the party that it is for; None for the server.

    Raises:
        MessageError: the key is the server's, or there is no such receiver.
        PlanError: the plan does not have the sender's key.
    """
    if sender.party is None:
        raise MessageError(f"The server's key seals no {kind}: give a party's.")
    keys.check(sender)
    receiver = keys.key_of(to)
    if receiver is None:
        raise MessageError(f"There is no party {to!r} to seal a {kind} for.")
    header = {"kind": kind, "plan": plan.hex(), "from": sender.party, "to": to}
    sealing = hashlib.sha256(sealed.pack_head(header) + receiver + hashlib.sha256(contents).digest()).hexdigest()
    once = PrivateKey(None, sender.derive(plan, f"ephemeral key of {sealing}"))
    head = sealed.pack_head(header | {"ephemeral": to_base64(once.offer.public)})
    key = _file_key(once.agree(receiver), sender.agree(receiver), sender.offer.public, receiver, head)
    return sealed.seal_chunks(head, key, contents)


def open_sealed(
    data: bytes, kind: str, plan: bytes, keys: PublicKeys, receiver: PrivateKey, where: str
) -> tuple[str, bytes]:
    """Open a sealed file, and say who sealed it.

    Args:
        data: the file's bytes.
        kind, plan: what it must be, and what it must belong to.
        keys: the plan's public keys.
        receiver: whose private key opens it.
        where: its name, for errors.

    Returns:
        The sender's name in the plan, which is proved, and the contents.

    Raises:
        PlanError: the plan does not have the receiver's key.
        MessageError: no such file, of another kind, plan or receiver, or not as its sender sealed it.
    """
    keys.check(receiver)
    header, head = sealed.peek(data, where)
    if header.get("kind") != kind:
        raise MessageError(f"{where} is a {header.get('kind')}, not a {kind}.")
    if header.get("plan") != plan.hex():
        raise MessageError(f"{where} was made for another plan; make it again with this plan.")
    if header.get("to") != receiver.party:
        raise MessageError(f"{where} is for {called(header.get('to'))}, not for {called(receiver.party)}.")
    name = header.get("from")
    sender = keys.key_of(name) if isinstance(name, str) else None
    if not isinstance(name, str) or sender is None:
        raise MessageError(f"{where} says that it is from {name!r}, whom the plan does not name.")
    try:
        ephemeral = read_base64(header, "ephemeral", where)
        shared = receiver.agree(ephemeral), receiver.agree(sender)
    except (KeyError, ValueError):
        raise MessageError(f"{where} is altered: its ephemeral key is not usable; have it sent again.") from None
    contents = sealed.open_chunks(head, _file_key(*shared, sender, receiver.offer.public, head), data)
    if contents is None:
        raise MessageError(
            f"{where} does not open: it is truncated or altered, or was sealed by somebody without the key that the plan has for "
            f"{name!r}; have it sent again by {name!r}."
        )
    return name, contents


def called(party: str | None) -> str:
    """Whom a name means."""
    return "the server" if party is None else repr(party)


def to_base64(value: bytes) -> str:
    """Bytes as text for JSON."""
    return base64.b64encode(value).decode()


def read_base64(data: Mapping[str, Any], name: str, where: Any) -> bytes:
    """Bytes out of a JSON field.

    Raises:
        KeyError: there is no such field.
        MessageError: it is not base64.
    """
    try:
        return base64.b64decode(data[name], validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise MessageError(f"{where}: {name} is not valid base64.") from None


def read_kind(path: str | Path, what: str, kinds: Sequence[str], fields: Sequence[str]) -> dict[str, Any]:
    """Read a small JSON file that says what kind it is.

    Raises:
        MessageError: missing, too large, of another kind, or without one of the fields.
    """
    data: dict[str, Any] = read_json(path, what, MessageError, MAX_KEY)
    _check_kind(data, what, kinds, fields, path)
    return data


def _check_kind(data: Any, what: str, kinds: Sequence[str], fields: Sequence[str], where: str | Path) -> None:
    if not isinstance(data, dict) or data.get("kind") not in kinds:
        raise MessageError(f"{where} is no {what}; `vertimrf inspect` says what it is.")
    if any(name not in data for name in (*fields, *(["party"] if data["kind"].startswith("party ") else []))):
        raise MessageError(f"{where} is an incomplete {what}.")


def _with_name(what: str, party: str | None) -> dict[str, Any]:
    return {"kind": f"server {what}"} if party is None else {"kind": f"party {what}", "party": party}


def _name(data: Mapping[str, Any], path: str | Path) -> str | None:
    if data["kind"].startswith("server "):
        return None
    if not isinstance(data["party"], str):
        raise MessageError(f"{path}: a party needs a name, not {data['party']!r}; use the one that the plan gives it.")
    return data["party"]


def check_name(name: str | None) -> None:
    """Refuse what no party can be called.

    Raises:
        MessageError: empty, too long, or no text.
    """
    if name is not None and (not (name.strip() and len(name) <= LONGEST_NAME) or any("\ud800" <= c <= "\udfff" for c in name)):
        raise MessageError(f"A party needs a name of 1 to {LONGEST_NAME} characters, not {name!r}; use the plan's for it.")


def _file_key(with_ephemeral: bytes, with_sender: bytes, sender: bytes, receiver: bytes, head: bytes) -> bytes:
    """The key of one sealed file [32 bytes]. Both public keys have a fixed length, so that no two contexts read alike."""
    info = b"vertimrf sealed 1" + sender + receiver + head
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(with_ephemeral + with_sender)
