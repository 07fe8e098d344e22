"""Keys and streams that must not be used twice: over plans, over tables, and within a message.

Two releases with the same noise on tables that differ by a record show that record; so do two with
the same hashes and other noise. Here a party has its private key, as in a run, and every stream of
random bytes is recorded by its seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from vertimrf import Party, PlanOptions, make_plan
from vertimrf.keys import KeyRing
from vertimrf.privacy import noise
from vertimrf.releases.encoder import Encoder

from .cases import RECORDS, SECRET, Audited, Case, neighbours, schema_of


@dataclass(frozen=True)
class Used:
    """The secrets of one message.

    Attributes:
        streams: seed of each stream of noise, in order.
        hashes: secrets of hashes, of sketches and of ids.
    """

    streams: tuple[bytes, ...]
    hashes: frozenset[bytes]


@dataclass(frozen=True)
class Keys:
    """Keys of two plans, and of neighbouring tables under one plan.

    Attributes:
        name: what is looked at.
    """

    name: str

    def audit(self, folder: Path, seed: int = 1) -> Audited:
        """Compare the secrets of three messages (:class:`.cases.Audit`)."""
        case = Case(self.name, shared=True)
        ring = KeyRing.new(("hospital", "insurer"))
        planning = PlanOptions(expected_records=RECORDS, message_bytes=20_000, even_if_useless=True)
        plans = [
            make_plan(schema_of(case), 1.0, planning, nonce=f"{seed}, {i}", public_keys=ring.public)
            for i in range(2)
        ]
        _, one, other = next(neighbours(case, folder))
        first, again = (used(plans[0], one, ring) for _ in range(2))
        table, plan = used(plans[0], other, ring), used(plans[1], one, ring)
        found = []
        if first != again:
            found.append("a message that is made again has other noise")
        if len(set(first.streams)) < len(first.streams):
            found.append("two draws of a message have the same noise")
        if set(first.streams) & set(table.streams):
            found.append("two tables have the same noise under a plan")
        if set(first.streams) & set(plan.streams):
            found.append("two plans have the same noise for a table")
        if first.hashes & plan.hashes:
            found.append("two plans have the same hashes")
        faults = tuple(f"{self.name}: {fault}" for fault in found)
        return Audited(len(first.streams), faults, None, frozenset())


def used(plan, path: Path, ring: KeyRing) -> Used:
    """The secrets with which the hospital makes its message about a file."""
    streams: list[bytes] = []
    hashes: set[bytes] = set()
    made, began = noise.Stream, Encoder.__init__

    def stream(key):
        streams.append(bytes(key))
        return made(key)

    def init(self, secret, *rest):
        hashes.add(secret)
        began(self, secret, *rest)

    party = Party(plan, "hospital", SECRET, key=ring.parties["hospital"])
    with mock.patch.object(noise, "Stream", stream), mock.patch.object(Encoder, "__init__", init):
        hashes.update(vars(party.id_keys).values())
        party.run(party.encode(path, "id"))
    return Used(tuple(streams), frozenset(hashes))
