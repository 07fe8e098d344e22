"""The bucket reader: a party that reads another's message where all messages are put, or on the wire.

It holds the parties' secret and knows who the people are, so it computes every record's hash under every key. A value's
published level is the highest hash of all records that have it, or a phantom's: a record whose hash is above the level does not
have the value. After some ten thousand keys one value is left. Noise does not help: phantoms only raise levels, and hashes above
all phantoms are what sketches are read by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from vertimrf.files import container, sealed
from vertimrf.files.bits import pack_bits, unpack_bits
from vertimrf.keys import KeyRing
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret, derive
from vertimrf.plan.plan import Plan
from vertimrf.sketches.encoder import SketchEncoder
from vertimrf.sketches.parameters import SketchPlan

from ..verdict import Verdict, at_least, at_most
from .deployment import NAMES, plan_for, tables_for

__all__ = ["Bucket", "fill", "recovered", "rows"]

Levels = list[npt.NDArray[np.uint8]]
TARGETS = 150


class Bucket:
    """One party's message as it lies in a bucket, and what its reader knows and wants.

    Attributes:
        plan, secret: known to every party.
        party: whose message it is.
        digests: of the people whose rows are wanted [shape=(targets,), uint64]; parties know all ids.
        truth: their values at that party, which is what nobody else is to know [shape=(groups, targets)].
        plain, file: the message before and after it is sealed.
    """

    def __init__(self, rows: int, keys: int, targets: int = TARGETS, seed: int = 0) -> None:
        ring = KeyRing.new(NAMES)
        self.plan: Plan = plan_for(ring, rows, keys, rounds=1, nonce=f"bucket {seed}")
        self.secret = Secret.new()
        self.party = NAMES[0]
        table = tables_for(self.plan, rows, seed)[0]
        message = Party(self.plan, self.party, self.secret).run(table)
        self.digests = table.digests[:targets].copy()
        index = self.plan.party_names.index(self.party)
        own = self.plan.schema.party_attributes(self.party)
        truth = []
        for number, group in enumerate(self.plan.schedule.of_party(index)):
            value = np.zeros(targets, np.int64)
            parts = zip(self.plan.groups[group].attributes, self.plan.groups[group].bins, message.bins[number], strict=True)
            for attribute, bins, mapping in parts:
                value = value * bins + mapping[table.codes[own.index(attribute), :targets]]
            truth.append(value)
        self.truth = np.array(truth)
        self.plain = message.to_bytes(self.plan)
        self.file = message.seal(self.plan, ring.parties[self.party])


def recovered(bucket: Bucket, contents: bytes) -> int:
    """How many of the wanted rows a reader of these bytes writes down in full, and rightly.

    Args:
        bucket: for what the reader knows, and for counting.
        contents: a message as it was before sealing, or bytes taken for one: the sketches are looked for where a message has
            them, whatever its header and checksum are.
    """
    plan, sketch = bucket.plan, bucket.plan.sketch
    assert isinstance(sketch, SketchPlan)
    index = plan.party_names.index(bucket.party)
    groups = plan.schedule.of_party(index)
    published = levels_at_the_end(contents, plan, index)
    # Every wanted record is a value of its own, and phantoms are at the floor: the levels are the records' hashes.
    wanted = len(bucket.digests)
    alone = replace(sketch, pairs=tuple(replace(p, left_bins=wanted, right_bins=wanted) for p in sketch.pairs))
    encoder = SketchEncoder(alone, groups, derive(bucket.secret, plan.digest(), purpose="sketches"))
    encoder.update(bucket.digests, np.tile(np.arange(wanted, dtype=np.uint16), (len(groups), 1)))
    hashes = encoder.result(bytes)
    possible = [np.ones((plan.groups[group].size, wanted), bool) for group in groups]
    mine = iter(zip(published, hashes, strict=True))
    for pair in sketch.pairs:
        for group in (pair.left, pair.right):
            if group in groups:
                levels, own = next(mine)
                for value, row in enumerate(levels):
                    possible[groups.index(group)][value] &= (own <= row).all(axis=1)
    settled = np.array([table.sum(axis=0) == 1 for table in possible]).all(axis=0)
    guessed = np.array([table.argmax(axis=0) for table in possible])
    return int((settled & (guessed == bucket.truth).all(axis=0)).sum())


def levels_at_the_end(contents: bytes, plan: Plan, party: int) -> Levels:
    """Sketches out of a message's last bytes before its checksum, where a message has them."""
    assert isinstance(plan.sketch, SketchPlan)
    shapes = plan.sketch.shapes(plan.schedule.of_party(party), 0)
    sizes = [(values * keys + 1) // 2 for values, keys in shapes]
    raw = np.frombuffer(contents, np.uint8)[: len(contents) - container.DIGEST][-sum(sizes) :]
    parts = np.split(raw, np.cumsum(sizes)[:-1])
    return [
        (unpack_bits(part, shape[0] * shape[1], 4) + np.uint8(plan.sketch.floor)).reshape(shape)
        for part, shape in zip(parts, shapes, strict=True)
    ]


def ciphertext(file: bytes) -> bytes:
    """A sealed file's chunks without header and tags: as many bytes, in the same places, as what was sealed."""
    _, head = sealed.peek(file, "file")
    body, size = file[len(head) :], sealed.CHUNK + sealed.TAG
    return b"".join(body[i : i + size][: -sealed.TAG] for i in range(0, len(body), size))


def agreement(bucket: Bucket) -> float:
    """Share of the published levels that the ciphertext shows where they stand; 1/16 by chance."""
    index = bucket.plan.party_names.index(bucket.party)
    assert isinstance(bucket.plan.sketch, SketchPlan)
    floor = bucket.plan.sketch.floor
    flat = [
        np.concatenate([(pack_bits(t - np.uint8(floor), 4)[:, None] >> np.array([0, 4], np.uint8) & 15).ravel() for t in tables])
        for tables in (levels_at_the_end(data, bucket.plan, index) for data in (bucket.plain, ciphertext(bucket.file)))
    ]
    return float(np.mean(flat[0] == flat[1]))


def fill(rows: int = 20_000, keys: int = 1 << 20, seed: int = 0) -> Bucket:
    """A bucket with a message of a usual size."""
    return Bucket(rows, keys, seed=seed)


def rows() -> Iterator[Verdict]:
    """Rows out of the plain message, which show that the attack works, and out of the sealed file."""
    bucket = fill()
    plain = recovered(bucket, bucket.plain)
    yield at_least(f"bucket reader: rows of {TARGETS} from the plain message (the attack works)", plain, TARGETS * 9 // 10)
    hidden = recovered(bucket, ciphertext(bucket.file))
    yield at_most(f"bucket reader: rows of {TARGETS} from the sealed file", hidden, 0)
