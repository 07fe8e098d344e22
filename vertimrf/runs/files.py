"""The files that parties and server send each other in a run: their names and checks.

Each party sends its offer (a public key) and its message. The first party of the plan also sends
the envelopes of the secret. The server sends the plan, and forwards the envelopes. No other files
are sent.
"""

from __future__ import annotations

import hashlib
import string

from ..errors import MessageError, PlanError
from ..files import sealed
from ..files.atomic import parse_json
from ..keys import Offer, PrivateKey, called, read_base64
from ..plan.plan import Plan

__all__ = [
    "ENVELOPES",
    "MESSAGE",
    "OFFER",
    "PLAN",
    "RESULT",
    "SERVER",
    "check_envelopes",
    "file_name",
    "read_offer",
    "read_plan",
]

SERVER = "the server"
# Folder of the results in the server's run folder.
RESULT = "result"
OFFER, PLAN, ENVELOPES, MESSAGE = "offer", "plan", "envelopes", "message"
# Longer names of parties are cut and get a digest, because file systems allow 255 bytes.
MAX_LENGTH = 100
# Characters that stay as they are. Some file systems do not distinguish capital letters from small
# ones.
PLAIN = frozenset(string.ascii_lowercase + string.digits + "_-")


def file_name(party: str) -> str:
    """A unique file name for a party's name. It cannot lead out of a folder."""
    name = "".join(
        c if c in PLAIN else "".join(f"%{byte:02X}" for byte in c.encode()) for c in party
    )
    return (
        name
        if len(name) <= MAX_LENGTH
        else f"{name[:MAX_LENGTH]}-{hashlib.sha256(party.encode()).hexdigest()[:32]}"
    )


def read_offer(party: str, data: bytes) -> Offer:
    """Read a party's offer.

    Raises:
        MessageError: the data is no offer, or another party's.
    """
    offer = Offer.from_json(parse_json(data, "The offer", "offer", MessageError))
    if offer.party != party:
        raise MessageError(
            f"The offer is that of {called(offer.party)}, not of {party!r}; each party must send its own."
        )
    return offer


def read_plan(key: PrivateKey, data: bytes) -> Plan:
    """Read a plan that a party may accept.

    Args:
        key: the party's private key.
        data: the plan file.

    Raises:
        PlanError: the data is no plan, the plan lacks this party's key, or its encoder is not
            private.
    """
    plan = Plan.from_json(parse_json(data, "The plan", "plan", PlanError))
    plan.sealing_keys().check(key)
    if plan.sketch is not None and plan.sketch.claimed_share:
        raise PlanError(
            "The plan asks for the published encoder, which gives complete records away: do not accept it."
        )
    return plan


def check_envelopes(plan: Plan, data: bytes) -> None:
    """Check envelopes without opening them. There must be one for each party but the first.

    Raises:
        MessageError: the data are no envelopes, or those of another plan or party.
    """
    content = parse_json(data, "The file of envelopes", "file of envelopes", MessageError)
    if not isinstance(content, dict) or not isinstance(content.get("envelopes"), dict):
        raise MessageError("The file of envelopes holds none; ask for it again.")
    envelopes = content["envelopes"]
    sender, *others = plan.party_names
    if sorted(envelopes) != sorted(others):
        raise MessageError(
            f"The envelopes are not for {', '.join(others)}: they are of another run."
        )
    for name in others:
        header, _ = sealed.peek(
            read_base64(envelopes, name, "The envelopes"), f"The envelope for {name!r}"
        )
        if (header.get("plan"), header.get("from"), header.get("to")) != (
            plan.digest().hex(),
            sender,
            name,
        ):
            raise MessageError(
                f"The envelope for {name!r} is of another plan or party: it is of another run."
            )
