"""Whether two parties have the same ids: each learns this one bit, and nothing else.

A digest of the ids must not be shown to a party, not even one under a key: parties have the key, so
that whoever sees the digest tries sets of ids that differ from its own by a few people. Here nobody
is shown anything that can be tried:

1. Each party maps the digest of its ids to a point of Curve25519, multiplies the point by a secret
   number of its own, and sends the product to the other.
2. Each multiplies what it got by the same number, and sends back a hash of the product, of the plan,
   and of who sends it to whom (:func:`confirmation`).
3. The ids are the same if what came in step 2 is the hash, as the other party makes it, of the own
   number times what came in step 1.

This is the comparison of Meadows (1986) and of Huberman, Franklin and Hogg (1999), for one element.

*What a party sees.* Let P and R be the points of its own digest and of the other's, b its own number
and a the other's. It is sent a R, and a function of a b P, hence of a P. If R = P, both follow from a P,
which is random. If not, then P and R are independent random points (the map is a random oracle), and
a P and a R are indistinguishable from two independent random points, also for somebody who knows P and
can compute R for every guess: that is the decisional Diffie-Hellman assumption. So a guess cannot be
tried, whatever the party computes and however few people are in question. It is the same for a
coalition of several parties and the server, since the numbers of every two parties are their own.

*What a deviating party sees.* It can send the point of one other set of ids, and learns whether the
other party has exactly that set. Each party compares once for every two parties and plan
(:mod:`vertimrf.party.releases`), so that is one guess a plan of each party that deviates. Unless the
guess is right, the other party stops, and its operator sees it: to make it go on, the deviating party
needs the hash in its own name of the product, which it cannot compute (the computational Diffie-Hellman
assumption; the hash is a random oracle). The hash that it was sent names the other as its sender, so
sending that back is of no use.

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


def confirmation(plan: Plan, sender: int, receiver: int, product: bytes) -> bytes:
    """What a party sends in step 2: a hash that only who knows the product can make [32 bytes].

    Args:
        plan: the agreed plan.
        sender, receiver: positions of the parties.
        product: the sender's number times what the receiver sent in step 1 [32 bytes].
    """
    who = sender.to_bytes(4, "little") + receiver.to_bytes(4, "little")
    return hashlib.sha256(b"vertimrf ids 2" + plan.digest() + who + product).digest()


def pack(plan: Plan, sender: int, receiver: int, point: bytes, again: bool) -> bytes:
    """A file with a point, or with the hash of one.

    Args:
        plan: the agreed plan.
        sender, receiver: positions of the parties.
        point: the point of step 1, or the product of step 2, of which the file has the hash.
        again: whether it is of step 2.
    """
    if again:
        point = confirmation(plan, sender, receiver, point)
    header = {"plan": plan.digest().hex(), "party": sender, "receiver": receiver}
    return container.pack(KINDS[again], header, {"point": np.frombuffer(point, np.uint8)})


def opened(plan: Plan, sender: int, receiver: int, data: bytes, again: bool) -> bytes:
    """The point in a file, or the hash of step 2; arguments as :func:`pack`.

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
    if again:
        return point.tobytes()
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
        mine: the own number times what the other party sent in step 1 [32 bytes].
        theirs: the hash that it sent in step 2 [32 bytes].

    Raises:
        MessageError: they have not. The sentence has the remedy.
    """
    if confirmation(plan, other, party, mine) != theirs:
        one, two = plan.party_names[other], plan.party_names[party]
        raise MessageError(
            f"{one!r} and {two!r} do not hold the same ids, which encrypted counts need, so that nothing is counted and nothing of this plan is "
            "spent. Which ids differ is told to nobody. Look at both for records whose id cannot be read (`vertimrf check`), and "
            "compare how ids are written (`vertimrf align`); then make a new plan, with count sketches if the people differ."
        )
