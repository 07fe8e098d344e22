"""What goes between parties and server in a run: names of files, how large each may be, and whether it is what it ought to be.

A file is named for what it is. Parties send an offer and a message, and the first of the plan the envelopes of the secret; the
server sends the plan, and passes the envelopes on. Nothing else goes anywhere.
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
    "check_envelopes",
    "file_name",
    "read_offer",
    "read_plan",
]

OFFER, PLAN, ENVELOPES, MESSAGE = "offer", "plan", "envelopes", "message"
# Longer names of parties are cut and told apart by a digest: file systems take 255 bytes.
LONGEST = 100
# Characters of names that stand for themselves. Some file systems do not tell capital letters from small ones.
PLAIN = frozenset(string.ascii_lowercase + string.digits + "_-")


def file_name(party: str) -> str:
    """A party's name as a file's: nothing in it leads out of a folder, and no two are alike, even where case is not told."""
    name = "".join(
        c if c in PLAIN else "".join(f"%{byte:02X}" for byte in c.encode()) for c in party
    )
    return (
        name
        if len(name) <= LONGEST
        else f"{name[:LONGEST]}-{hashlib.sha256(party.encode()).hexdigest()[:32]}"
    )


def read_offer(party: str, data: bytes) -> Offer:
    """A party's offer.

    Raises:
        MessageError: not an offer, or not this party's.
    """
    offer = Offer.from_json(parse_json(data, "The offer", "offer", MessageError))
    if offer.party != party:
        raise MessageError(
            f"The offer is that of {called(offer.party)}, not of {party!r}; each gives its own."
        )
    return offer


def read_plan(key: PrivateKey, data: bytes) -> Plan:
    """A plan that a party may be asked to accept.

    Raises:
        PlanError: not a plan, or one that does not name this party with its key, or that gives records away.
    """
    plan = Plan.from_json(parse_json(data, "The plan", "plan", PlanError))
    plan.sealing_keys().check(key)
    if plan.sketch is not None and plan.sketch.claimed_share:
        raise PlanError(
            "The plan asks for the published encoder, which gives complete records away: refuse it."
        )
    return plan


def check_envelopes(plan: Plan, data: bytes) -> None:
    """Look at envelopes from outside, as who relays them can: one for every other party of this plan, from its first.

    Raises:
        MessageError: no envelopes, or of another plan or party.
    """
    content = parse_json(data, "The file of envelopes", "file of envelopes", MessageError)
    if not isinstance(content, dict) or not isinstance(content.get("envelopes"), dict):
        raise MessageError("The file of envelopes holds none; have it sent again.")
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
