"""X25519 key pairs of the parties and the server, and files sealed by one of them for another.

Every party and the server make a key pair. The plan holds all public keys, so its fingerprint,
which people compare, covers them. No other trust in the transport is needed: a relay can withhold
files, but can neither read nor change them, nor pass off its own as another's.

The key of a file is derived from two key agreements, as in the authenticated mode of RFC 9180
(HPKE). (The cryptography library has only the other modes.) The first is between an ephemeral key
and the receiver's key. So each file has a key of its own, and the sender's key alone cannot open
the file later. The second is between the sender's key and the receiver's key. So nobody else can
have made the file. HKDF-SHA256 takes both agreements, both static public keys and the whole header
of the file (kind, plan, names, ephemeral key). Another name, plan or kind gives another key.

The ephemeral key is a function of the sender's private key, the header and the contents, as RFC
6979 derives the nonce of a signature. Sealing the same contents again gives the same bytes, from
any copy of the key. Other contents have another file key.

Two limits follow. The receiver could have made the file as well, so a file proves its sender to
nobody else. Anyone who obtains a receiver's private key can read all files sealed for it, including
earlier ones.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .arguments import DATA, PATH, TEXT, check, each, instance, maybe, takes
from .arrays import Fields
from .errors import MessageError, PlanError
from .files import sealed
from .files.atomic import MAX_KEY, read_json
from .files.convert import from_json, to_json
from .files.results import save

REMEDY = "`vertimrf inspect` shows what it is"
SIZE = 32
LONGEST_NAME = 200
K = TypeVar("K", "Offer", "PrivateKey")


@dataclass(frozen=True)
class Offer:
    """A public key with the name of its owner, for the plan.

    Attributes:
        party: the party's name in the plan; None for the server.
        public: X25519 public key [32 bytes].

    Raises:
        MessageError: the name or the key is not usable.
    """

    party: str | None
    public: bytes

    def __repr__(self) -> str:
        return f"<Offer of {called(self.party)}>"

    def __post_init__(self) -> None:
        check(MessageError, vars(self), party=maybe(TEXT), public=DATA)
        check_name(self.party)
        if len(self.public) != SIZE:
            raise MessageError(
                f"The offer of {called(self.party)} is not a usable public key: it has {len(self.public)} bytes."
            )
        try:
            # For a few points every agreement gives zero; exchange() refuses them.
            X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(self.public))
        except ValueError:
            raise MessageError(
                f"The offer of {called(self.party)} is not a usable public key: ask for another."
            ) from None

    @property
    def identity(self) -> str:
        """Digest of the public key in hexadecimal.

        It names the folder of the owner's release records.
        """
        return hashlib.sha256(b"vertimrf identity" + self.public).hexdigest()

    def to_text(self) -> str:
        """The public key as the text of a file."""
        return _text_of("offer", self)

    def save(self, path: str | Path) -> None:
        """Write the public key to a file, never in place of a link."""
        save(path, self.to_text())

    @classmethod
    def load(cls, path: str | Path) -> Offer:
        """Read a public key from a file.

        Raises:
            MessageError: the file is missing, or holds no public key.
        """
        return cls.from_json(read_json(path, "offer", MessageError, MAX_KEY), path)

    @classmethod
    @takes(MessageError, where=PATH)
    def from_json(cls, data: Any, where: str | Path = "The offer") -> Offer:
        """Read a public key from JSON.

        Raises:
            MessageError: the data is no public key.
        """
        return _owned(data, "offer", cls, where)


@dataclass(frozen=True)
class PrivateKey:
    """A private key, which stays with its owner.

    Attributes:
        party: the party's name in the plan; None for the server.
        value: X25519 private key [32 bytes].

    Raises:
        MessageError: the name or the length of the key is not usable.
    """

    party: str | None
    value: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check(MessageError, vars(self), party=maybe(TEXT), value=DATA)
        check_name(self.party)
        if len(self.value) != SIZE:
            raise MessageError(
                f"The key of {called(self.party)} has {len(self.value)} bytes, not {SIZE}."
            )

    @classmethod
    def new(cls, party: str | None) -> PrivateKey:
        """A new private key from the operating system."""
        return cls(party, X25519PrivateKey.generate().private_bytes_raw())

    @cached_property
    def offer(self) -> Offer:
        """The public key."""
        return Offer(self.party, self._x25519.public_key().public_bytes_raw())

    def save(self, path: str | Path) -> None:
        """Write the key to a file that only its owner can read."""
        save(path, _text_of("key", self), private=True, synced=True)

    @classmethod
    def load(cls, path: str | Path) -> PrivateKey:
        """Read a private key from a file.

        Raises:
            MessageError: the file is missing, or holds no private key.
        """
        return _owned(read_json(path, "key", MessageError, MAX_KEY), "key", cls, path)

    @takes(MessageError, public=DATA)
    def agree(self, public: bytes) -> bytes:
        """X25519 agreement with a public key that was checked when it was read [32 bytes].

        Raises:
            MessageError: it is none.
        """
        if len(public) != SIZE:
            raise MessageError(f"A public key has {SIZE} bytes, not {len(public)}.")
        return self._x25519.exchange(X25519PublicKey.from_public_bytes(public))

    @takes(MessageError, plan=DATA, purpose=TEXT)
    def derive(self, plan: bytes, purpose: str) -> bytes:
        """Secret key material for one purpose under one plan, by HKDF-SHA256 [32 bytes]."""
        return hkdf(self.value, plan, b"vertimrf own " + purpose.encode())

    @property
    def _x25519(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.value)


@dataclass(frozen=True)
class PublicKeys:
    """Public keys of all parties and the server, as in a plan.

    Attributes:
        parties: public keys of the parties, in plan order.
        server: public key of the server.

    Raises:
        PlanError: a public key is missing, repeated, or of the wrong role.
    """

    parties: tuple[Offer, ...]
    server: Offer

    def __repr__(self) -> str:
        return f"<PublicKeys of {', '.join(map(repr, self.parties))} and {self.server}>"

    def __post_init__(self) -> None:
        check(PlanError, vars(self), parties=each(instance("Offer")), server=instance("Offer"))
        names = [offer.party for offer in self.parties]
        if self.server.party is not None or None in names:
            raise PlanError("The plan needs one offer of the server and one of every party.")
        if doubled := sorted({str(name) for name in names if names.count(name) > 1}):
            raise PlanError(f"Two offers have the name {doubled[0]!r}; each party gives one.")
        if len({offer.public for offer in (*self.parties, self.server)}) <= len(self.parties):
            raise PlanError(
                "Two offers have the same key; each party and the server must make its own key pair."
            )

    @classmethod
    @takes(PlanError, offers=each(instance("Offer")), names=each(TEXT))
    def of(cls, offers: Sequence[Offer], names: Sequence[str]) -> PublicKeys:
        """Sort public keys that are given in any order.

        Args:
            offers: the public keys of the server and of every party.
            names: the parties of the plan.

        Raises:
            PlanError: a public key is missing, or there is one too many.
        """
        given = [offer.party for offer in offers]
        if unknown := [name for name in given if name not in (None, *names)]:
            raise PlanError(
                f"An offer has the name {unknown[0]!r}; the schema's parties are {', '.join(names)}."
            )
        if missing := [called(name) for name in (*names, None) if name not in given]:
            raise PlanError(
                f"The offer of {' and of '.join(missing)} is missing; give one of every party and the server's."
            )
        if given.count(None) > 1:
            raise PlanError(
                "There are two offers of the server; give only the one that the server's operator confirms."
            )
        # The server comes last.
        *parties, server = sorted(offers, key=lambda offer: [*names, None].index(offer.party))
        return cls(tuple(parties), server)

    @takes(PlanError, party=maybe(TEXT))
    def key_of(self, party: str | None) -> bytes | None:
        """Public key of a party or, for None, of the server; None if there is no such party."""
        if party is None:
            return self.server.public
        return next((offer.public for offer in self.parties if offer.party == party), None)

    @takes(PlanError, key=instance("PrivateKey"))
    def check(self, key: PrivateKey) -> None:
        """Check that the plan has the public key of a private key.

        Nothing else shows the owner that its key was swapped.

        Raises:
            PlanError: the plan has another key under this name, or lacks the name.
        """
        public = self.key_of(key.party)
        if public is None:
            names = ", ".join(str(offer.party) for offer in self.parties)
            raise PlanError(
                f"The key file belongs to {called(key.party)}, which the plan does not have; it has {names}."
            )
        if public != key.offer.public:
            raise PlanError(
                f"The plan holds another key for {called(key.party)} than this key file: the offer was swapped or made "
                "again; have the plan made again with the right offer, and compare its fingerprint."
            )

    def to_json(self) -> Fields:
        """The public keys as JSON fields."""
        return to_json(
            _PlanKeys(
                {str(offer.party): offer.public for offer in self.parties}, self.server.public
            )
        )

    @classmethod
    def from_json(cls, data: Any) -> PublicKeys:
        """Read public keys from JSON.

        Raises:
            PlanError: the data is malformed.
        """
        what, remedy = "The plan's public keys", "have it made again"
        keys = from_json(data, _PlanKeys, what, remedy, PlanError)
        try:
            parties = tuple(Offer(name, public) for name, public in keys.parties.items())
            return cls(parties, Offer(None, keys.server))
        except MessageError as error:
            raise PlanError(f"{what} are malformed ({error}); {remedy}.") from None


@dataclass(frozen=True)
class KeyRing:
    """All private keys of a run, for simulations and tests in one process.

    In a deployment everyone has only their own.

    Attributes:
        parties: private keys by name, in plan order.
        server: private key of the server.
    """

    parties: Mapping[str, PrivateKey]
    server: PrivateKey

    @classmethod
    def new(cls, names: Sequence[str]) -> KeyRing:
        """New keys for the server and the named parties."""
        return cls({name: PrivateKey.new(name) for name in names}, PrivateKey.new(None))

    @property
    def public(self) -> PublicKeys:
        """The public keys."""
        return PublicKeys(tuple(key.offer for key in self.parties.values()), self.server.offer)


def seal(
    contents: bytes, kind: str, plan: bytes, keys: PublicKeys, sender: PrivateKey, to: str | None
) -> bytes:
    """Seal a file for one receiver.

    Only the receiver can read it, and only the sender can have made it.

    Sealing the same contents again gives the same bytes.

    Args:
        contents: what to send.
        kind: kind of file; readable by anyone.
        plan: digest of the plan; readable by anyone.
        keys: public keys of that plan.
        sender: private key of the sending party.
        to: the receiving party; None for the server.

    Returns:
        The sealed file.

    Raises:
        MessageError: the sender is the server, or there is no such receiver.
        PlanError: the plan does not have the sender's key.
    """
    if sender.party is None:
        raise MessageError(f"The server's key cannot seal this {kind}; use a party's key.")
    keys.check(sender)
    receiver = keys.key_of(to)
    if receiver is None:
        raise MessageError(f"There is no party {to!r} to seal a {kind} for.")
    header = {"kind": kind, "plan": plan.hex(), "from": sender.party, "to": to}
    sealing = hashlib.sha256(
        sealed.pack_head(header) + receiver + hashlib.sha256(contents).digest()
    ).hexdigest()
    once = PrivateKey(None, sender.derive(plan, f"ephemeral key of {sealing}"))
    head = sealed.pack_head(header | {"ephemeral": to_base64(once.offer.public)})
    key = _file_key(
        once.agree(receiver), sender.agree(receiver), sender.offer.public, receiver, head
    )
    return sealed.seal_chunks(head, key, contents)


def open_sealed(
    data: bytes, kind: str, plan: bytes, keys: PublicKeys, receiver: PrivateKey, where: str
) -> tuple[str, bytes]:
    """Open a sealed file and identify its sender.

    Args:
        data: bytes of the file.
        kind, plan: kind and plan that the file must have.
        keys: public keys of the plan.
        receiver: private key that opens the file.
        where: name of the file, for errors.

    Returns:
        The sender's name in the plan, which is proved, and the contents.

    Raises:
        PlanError: the plan does not have the receiver's key.
        MessageError: the file is of another kind, plan or receiver, or was altered.
    """
    keys.check(receiver)
    header, head = read_head(data, where)
    if header.kind != kind:
        raise MessageError(f"{where} is a {header.kind}, not a {kind}.")
    if header.plan != plan.hex():
        raise MessageError(f"{where} was made for another plan; make it again with this plan.")
    if header.to != receiver.party:
        raise MessageError(f"{where} is for {called(header.to)}, not for {called(receiver.party)}.")
    name, sender = header.sender, keys.key_of(header.sender)
    if sender is None:
        raise MessageError(f"{where} claims to be from {name!r}, which is not a party of the plan.")
    try:
        shared = receiver.agree(header.ephemeral), receiver.agree(sender)
    except ValueError:
        raise MessageError(
            f"{where} is altered: its ephemeral key is not usable; have it sent again."
        ) from None
    contents = sealed.open_chunks(
        head, _file_key(*shared, sender, receiver.offer.public, head), data
    )
    if contents is None:
        raise MessageError(
            f"{where} cannot be opened: it is truncated or altered, or its sender lacks the key that the plan has for "
            f"{name!r}; have it sent again by {name!r}."
        )
    return name, contents


def called(party: str | None) -> str:
    """Name of a party, or of the server, in messages."""
    return "the server" if party is None else repr(party)


def to_base64(value: bytes) -> str:
    """Bytes as base64 text."""
    return base64.b64encode(value).decode()


class Head(msgspec.Struct, frozen=True):
    """What anyone can read of a sealed file. It is not authenticated until the file is opened.

    Attributes:
        kind: kind of the file.
        plan: digest of the plan, in hexadecimal.
        sender: name of the sending party.
        to: name of the receiving party; None for the server.
        ephemeral: public key of this file [32 bytes].
    """

    kind: str
    plan: str
    sender: str = msgspec.field(name="from")
    to: str | None
    ephemeral: bytes


def read_head(data: bytes, where: str) -> tuple[Head, bytes]:
    """Header of a sealed file, and the bytes that hold it.

    Raises:
        MessageError: the data is no sealed file of a run.
    """
    header, head = sealed.peek(data, where)
    return from_json(header, Head, where, "have it sent again", MessageError), head


class Envelopes(msgspec.Struct, frozen=True):
    """Sealed files of one party, by receiver, as a JSON file has them.

    Attributes:
        kind: kind of the JSON file.
        envelopes: the sealed files by the names of their receivers.
    """

    kind: str
    envelopes: dict[str, bytes]

    @classmethod
    def from_json(cls, data: Any, kind: str, where: str) -> Envelopes:
        """Read envelopes of one kind.

        Args:
            data: parsed JSON.
            kind: kind that the file must have.
            where: name of the file, for errors.

        Raises:
            MessageError: the data holds no such envelopes.
        """
        content = from_json(data, Fields, where, "have it sent again", MessageError)
        if content.get("kind") != kind:
            raise MessageError(f"{where} is no {kind}: its kind is {content.get('kind')!r}.")
        return from_json(content, cls, where, "have it sent again", MessageError)


class _PlanKeys(msgspec.Struct):
    """The public keys in a plan."""

    parties: dict[str, bytes]
    server: bytes


def _kind(what: str, party: object) -> str:
    return f"{'server' if party is None else 'party'} {what}"


def _text_of(what: str, key: Offer | PrivateKey) -> str:
    """The text of a key's JSON file. That of the server has no field for the party."""
    parts = {name: part for name, part in to_json(key).items() if part is not None}
    return json.dumps({"kind": _kind(what, key.party)} | parts) + "\n"


def _owned(data: Any, what: str, cls: type[K], where: str | Path) -> K:
    """The key of a JSON file.

    Raises:
        MessageError: the file is something else, or names no party.
    """
    parts = {"party": None} | from_json(data, Fields, str(where), REMEDY, MessageError)
    if parts.get("kind") != _kind(what, parts["party"]):
        raise MessageError(f"{where} is no {what} of a party or the server; {REMEDY}.")
    return from_json(parts, cls, str(where), REMEDY, MessageError)


def check_name(name: str | None) -> None:
    """Check that a party can have this name.

    Raises:
        MessageError: the name is empty, too long or no text.
    """
    if name is not None and (
        not (name.strip() and len(name) <= LONGEST_NAME)
        or any("\ud800" <= c <= "\udfff" for c in name)
    ):
        raise MessageError(
            f"A party needs a name of 1 to {LONGEST_NAME} characters, not {name!r}; use the plan's for it."
        )


def _file_key(
    with_ephemeral: bytes, with_sender: bytes, sender: bytes, receiver: bytes, head: bytes
) -> bytes:
    """Key of one sealed file [32 bytes].

    Both public keys have a fixed length, so the context is unambiguous.
    """
    return hkdf(with_ephemeral + with_sender, None, b"vertimrf sealed 1" + sender + receiver + head)


def hkdf(value: bytes, salt: bytes | None, info: bytes) -> bytes:
    """Key material from a secret value, by HKDF-SHA256 [32 bytes]."""
    return HKDF(algorithm=hashes.SHA256(), length=SIZE, salt=salt, info=info).derive(value)
