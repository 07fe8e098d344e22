"""Chosen ids: whoever may pick an id, say a person who registers, picks one that has the digest of somebody else's.

Every step of xxHash64 can be undone, so without a key a twin is computed. It is played twice. As a record id the twin makes the
party find a repeated id, and do something else, exactly if the victim is in the table. As a person's id it makes two persons
one, so that removing the victim changes which of the other's records are kept: more records than the plan is priced for.
"""

import hashlib

import numpy as np
import pyarrow as pa
import xxhash

from vertimrf import (
    Attribute,
    Party,
    PlanOptions,
    ReadOptions,
    Schema,
    Secret,
    VertiMRFError,
    make_plan,
)
from vertimrf.party.persons import kept_records

from ..verdict import at_least, at_most

VICTIM, PARTY = "patient-000123", "hospital"
MOST = 2
TRIES = 40
MASK = 2**64 - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def rotated(x, k):
    """A 64-bit word rotated left."""
    k %= 64
    return (x << k | x >> (64 - k)) & MASK


def unshifted(x, k):
    """The y of which x is ``y ^ (y >> k)``."""
    y = x
    for _ in range(64 // k):
        y = x ^ (y >> k)
    return y


def over(factor):
    """The inverse of an odd factor modulo 2^64."""
    return pow(factor, -1, 2**64)


def twin(victim):
    """Another id, of 24 printable characters, with the xxHash64 of the victim's; computed from its last eight bytes back."""
    digest = xxhash.xxh64_intdigest(victim.encode())
    # The final mixing, undone.
    wanted = unshifted(digest, 32)
    wanted = unshifted(wanted * over(P3) & MASK, 29)
    wanted = unshifted(wanted * over(P2) & MASK, 33)
    before = rotated((wanted - P4) * over(P1) & MASK, -27)
    for number in range(10**7):
        start = f"id-{number:013d}"
        state = P5 + 24 & MASK
        for at in (0, 8):
            word = int.from_bytes(start[at : at + 8].encode(), "little")
            state = (
                rotated(state ^ rotated(word * P2 & MASK, 31) * P1 & MASK, 27) * P1 + P4
            ) & MASK
        last = rotated((before ^ state) * over(P1) & MASK, -31) * over(P2) & MASK
        end = last.to_bytes(8, "little")
        if all(32 < byte < 127 for byte in end):
            return start + end.decode()
    raise AssertionError("one start in three thousand has a printable end")


def unkeyed(ids):
    """The digests that parties once computed."""
    return np.array([xxhash.xxh64_intdigest(id.encode()) for id in ids], np.uint64)


def plan_of(most):
    """A plan for the victim's hospital and another party."""
    schema = Schema.of(
        {PARTY: [Attribute.integer("smoker", 2)], "insurer": [Attribute.integer("tariff", 2)]}
    )
    planning = PlanOptions(expected_records=1000, records_per_person=most, message_bytes=20_000)
    return make_plan(schema, 1.0, planning, nonce="chosen ids")


def refused_with_twin(plan, secret, others):
    """Whether the party treats a table with the victim and a twin otherwise than one without the victim."""

    def taken(ids):
        table = pa.table({"id": ids, "smoker": [0] * len(ids)})
        try:
            return Party(plan, PARTY, secret).encode(table, "id").records == len(ids)
        except VertiMRFError:
            return False

    planted = [*others, twin(VICTIM)]
    return taken(planted) != taken([*planted, VICTIM])


def changed_records(kept_with, kept_without):
    """How many records take part either with the victim or without her; her own are the first."""
    victims = len(kept_with) - len(kept_without)
    return int(kept_with[:victims].sum() + (kept_with[victims:] != kept_without).sum())


def two_persons(secret, plan):
    """Records that the victim's removal changes: with unkeyed digests, and with those of the party."""
    persons = [VICTIM] * MOST + [twin(VICTIM)] * MOST
    visits = [f"visit-{i}" for i in range(len(persons))]
    key = secret.value
    without = slice(MOST, None)
    old = [
        kept_records(unkeyed(visits[some]), unkeyed(persons[some]), MOST, key)
        for some in (slice(None), without)
    ]
    new = []
    for some in (slice(None), without):
        table = pa.table(
            {"id": visits[some], "smoker": [0] * len(visits[some]), "who": persons[some]}
        )
        records = Party(plan, PARTY, secret).encode(table, "id", read=ReadOptions(person="who"))
        new.append(kept_records(records.digests, records.persons, MOST, key))
    return changed_records(*old), changed_records(*new)


def rows():
    """Both games, against unkeyed digests and against a party."""
    second = twin(VICTIM)
    same = second != VICTIM and len(set(unkeyed([VICTIM, second]))) == 1
    yield at_least(f"chosen ids: {second} has the unkeyed digest of {VICTIM}", float(same), 1)
    others = [f"patient-{i:06d}" for i in range(500, 600)]
    shown = len(set(unkeyed([*others, second, VICTIM]))) < len(others) + 2 and len(
        set(unkeyed([*others, second]))
    ) > len(others)
    yield at_least(
        "chosen ids: a repeated unkeyed digest tells whether the victim is there", float(shown), 1
    )
    one, several = plan_of(1), plan_of(MOST)
    # Always the same, among them some under which unkeyed digests keep two records of the victim.
    secrets = [Secret(hashlib.sha256(bytes([number])).digest()) for number in range(TRIES)]
    revealing = sum(refused_with_twin(one, secret, others) for secret in secrets)
    yield at_most(
        f"chosen ids: of {TRIES} parties that a twin is planted at, those that tell of the victim",
        revealing,
        0,
    )
    changed = [two_persons(secret, several) for secret in secrets]
    name = f"chosen ids: most records that removing a person changes, at {MOST} a person,"
    yield at_least(
        f"{name} with unkeyed digests of a twin person", max(old for old, _ in changed), MOST + 1
    )
    yield at_most(f"{name} at a party", max(new for _, new in changed), MOST)
