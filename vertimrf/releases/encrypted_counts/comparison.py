"""Whether two parties have the same ids: each learns this one bit, and nothing else.

A digest of the ids must not be shown to a party, not even one under a key: parties have the key, so
that whoever sees the digest tries sets of ids that differ from its own by a few people. Here nobody
is shown anything that can be tried:

1. Each party maps the digest of its ids to a point of Curve25519, multiplies the point by a secret
   number of its own, and sends the product to the other.
2. Each multiplies what it got by the same number, and sends the product back.
3. The ids are the same if the own number times what came in step 1 is what came in step 2.

This is the comparison of Meadows (1986) and of Huberman, Franklin and Hogg (1999), for one element.

*What a party sees.* Let P and R be the points of its own digest and of the other's, b its own number
and a the other's. It is sent a R and a b P, hence a P. If R = P, both follow from a P, which is
random. If not, then P and R are independent random points (the map is a random oracle), and a P and
a R are indistinguishable from two independent random points, also for somebody who knows P and can
compute R for every guess: that is the decisional Diffie-Hellman assumption. So a guess cannot be
tried, whatever the party computes and however few people are in question. It is the same for a
coalition of several parties and the server, since the numbers of every two parties are their own.

*What a deviating party sees.* It can send the point of one other set of ids, and learns whether the
other party has exactly that set. Each party compares once for every two parties and plan
(:mod:`vertimrf.party.releases`), so that is one guess a plan, and the other party's operator sees
that the run stops, unless the guess is right.

The server passes on sealed files. The numbers follow from the party's private key, the plan and the
digest, so that the same table gives the same bytes, and another one has nothing in common with it.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from ...errors import MessageError
from ...files import container
from ...plan.plan import Plan

POINT = 32
# Curve25519 is v^2 = u^3 + A u^2 + u modulo this prime (RFC 7748).
PRIME, A = 2**255 - 19, 486662
KINDS = ("hidden ids", "ids hidden twice")


def point_of(digest: bytes) -> bytes:
    """A point of Curve25519 whose logarithm nobody knows, as its coordinate u [32 bytes].

    Candidates are hashed until one is on the curve: one on its twist would show a bit of the digest
    (Boneh, Lynn and Shacham, 2001, "MapToGroup").
    """
    for tried in itertools.count():
        drawn = hashlib.sha512(b"vertimrf ids 1" + tried.to_bytes(8, "little") + digest).digest()
        u = int.from_bytes(drawn, "little") % PRIME
        if pow(u**3 + A * u**2 + u, (PRIME - 1) // 2, PRIME) == 1:
            return u.to_bytes(POINT, "little")
    raise AssertionError


def hidden(number: bytes, point: bytes) -> bytes:
    """A number times a point [both 32 bytes], by X25519, which makes every number one of 8.

    Raises:
        ValueError: the product is the neutral element.
    """
    return X25519PrivateKey.from_private_bytes(number).exchange(
        X25519PublicKey.from_public_bytes(point)
    )


def pack(plan: Plan, sender: int, receiver: int, point: bytes, again: bool) -> bytes:
    """A file with a point.

    Args:
        plan: the agreed plan.
        sender, receiver: positions of the parties.
        point: the point.
        again: whether it is that of step 2.
    """
    header = {"plan": plan.digest().hex(), "party": sender, "receiver": receiver}
    return container.pack(KINDS[again], header, {"point": np.frombuffer(point, np.uint8)})


def opened(plan: Plan, sender: int, receiver: int, data: bytes, again: bool) -> bytes:
    """The point in a file; arguments as :func:`pack`.

    Raises:
        MessageError: the file is of another plan or party, or damaged.
    """
    where = f"The file of {KINDS[again]} of {plan.party_names[sender]!r}"
    header, arrays = container.unpack(data, KINDS[again], where)
    if header.get("plan") != plan.digest().hex():
        raise MessageError(f"{where} was made for another plan; make it again with this plan.")
    if (header.get("party"), header.get("receiver")) != (sender, receiver):
        raise MessageError(f"{where} is another party's, or for another party.")
    point = arrays.get("point")
    if point is None or point.dtype != np.uint8 or point.shape != (POINT,):
        raise MessageError(f"{where} lacks its point: have it sent again.")
    try:
        hidden(bytes(POINT), point.tobytes())
    except ValueError:
        raise MessageError(f"{where} has a point that hides nothing: have it sent again.") from None
    return point.tobytes()


def check_same(plan: Plan, party: int, other: int, mine: bytes, theirs: bytes) -> None:
    """Check that two parties have the same ids.

    Args:
        plan: the agreed plan.
        party, other: positions of the parties.
        mine: the own number times what the other party sent in step 1.
        theirs: what it sent in step 2.

    Raises:
        MessageError: they have not. The sentence has the remedy.
    """
    if mine != theirs:
        one, two = plan.party_names[other], plan.party_names[party]
        raise MessageError(
            f"{one!r} and {two!r} do not hold the same ids, which encrypted counts need, so that nothing is counted and no budget is "
            "spent. Which ids differ is told to nobody. Look at both for records whose id cannot be read (`vertimrf check`), and "
            "compare how ids are written (`vertimrf align`); then make a new plan, with count sketches if the people differ."
        )
