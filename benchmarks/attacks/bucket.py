"""The bucket reader: a party that reads another's message where all messages are put, or on the wire.

It holds the parties' secret and knows who the people are, so it computes every record's hash under every key. A value's
published level is the highest hash of all records that have it, or a phantom's: a record whose hash is above the level does not
have the value. After some ten thousand keys one value is left. Noise does not help: phantoms only raise levels, and hashes above
all phantoms are what sketches are read by.

Count sketches withstand it hardly better. The reader knows every record's buckets and signs: summed with a record's signs, the
numbers of a value that it has exceed by one for each repetition those of a value that it has not. A few hundred repetitions
outweigh the noise, which was made for somebody who knows neither.
"""

import math
from dataclasses import replace

import numpy as np

from vertimrf import Party, Secret
from vertimrf.files import container, sealed
from vertimrf.files.bits import packed_size, unpack_bits
from vertimrf.keys import KeyRing
from vertimrf.party.secret import derive
from vertimrf.releases.count_sketches.parameters import CountSketches
from vertimrf.releases.release import CONTRAST_SIGNS
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder

from ..verdict import at_least, at_most
from .deployment import NAMES, plan_for, signs_of, tables_for

TARGETS = 150
ROWS = 20_000
PAIRS, COUNTS = "scheduled-pairs", "count-sketch"
# Keys, and numbers of a value, of a usual message about so many people.
KEYS = {PAIRS: 1 << 20, COUNTS: 1 << 17}


class Bucket:
    """One party's message as it lies in a bucket, and what its reader knows and wants.

    Attributes:
        plan, secret: known to every party.
        party: whose message it is.
        digests: of the people whose rows are wanted [shape=(targets,), uint64]; parties know all ids.
        truth: their values at that party, which is what nobody else is to know [shape=(groups, targets)].
        plain, file: the message before and after it is sealed.
    """

    def __init__(self, encoder, rows, keys, targets=TARGETS, seed=0):
        ring = KeyRing.new(NAMES)
        self.plan = plan_for(ring, rows, keys, nonce=f"bucket {seed}", encoder=encoder)
        self.secret = Secret.new()
        self.party = NAMES[0]
        table = tables_for(self.plan, rows, seed)[0]
        message = Party(self.plan, self.party, self.secret).run(table)
        self.digests = table.digests[:targets].copy()
        index = self.plan.party_names.index(self.party)
        columns = self.plan.schema.party_attributes(self.party)
        truth = []
        for number, group in enumerate(self.plan.groups_of(index)):
            value = np.zeros(targets, np.int64)
            parts = zip(
                self.plan.groups[group].attributes,
                self.plan.groups[group].bins,
                message.bins[number],
                strict=True,
            )
            for attribute, bins, mapping in parts:
                value = value * bins + mapping[table.codes[columns.index(attribute), :targets]]
            truth.append(value)
        self.truth = np.array(truth)
        self.plain = message.to_bytes(self.plan)
        self.file = message.seal(self.plan, ring.parties[self.party])


def recovered(bucket, contents):
    """How many of the wanted rows a reader of these bytes writes down in full, and rightly.

    Args:
        bucket: for what the reader knows, and for counting.
        contents: a message as it was before sealing, or bytes taken for one: the sketches are looked for where a message has
            them, whatever its header and checksum are.
    """
    published = published_at_the_end(
        contents, bucket.plan, bucket.plan.party_names.index(bucket.party)
    )
    guessed = (
        _by_counts(bucket, published)
        if isinstance(bucket.plan.sketch, CountSketches)
        else _by_levels(bucket, published)
    )
    return int((guessed == bucket.truth).all(axis=0).sum())


def _by_levels(bucket, published):
    """The one value of each group that no level excludes, or -1 [shape=(groups, targets)]."""
    plan, sketch = bucket.plan, bucket.plan.sketch
    groups = plan.groups_of(plan.party_names.index(bucket.party))
    # Every wanted record is a value of its own, and phantoms are at the floor: the levels are the records' hashes.
    wanted = len(bucket.digests)
    alone = replace(sketch, sizes=(wanted,) * len(sketch.sizes))
    encoder = SketchEncoder(alone, groups, derive(bucket.secret, plan.digest(), purpose="sketches"))
    encoder.update(bucket.digests, np.tile(np.arange(wanted, dtype=np.uint16), (len(groups), 1)))
    hashes = encoder.result(bytes)
    possible = [np.ones((plan.groups[group].size, wanted), bool) for group in groups]
    mine = iter(zip(published, hashes, strict=True))
    for pair in sketch.pairs:
        for group in (pair.left, pair.right):
            if group in groups:
                levels, target_levels = next(mine)
                for value, row in enumerate(levels):
                    possible[groups.index(group)][value] &= (target_levels <= row).all(axis=1)
    return np.array(
        [np.where(table.sum(axis=0) == 1, table.argmax(axis=0), -1) for table in possible]
    )


def _by_counts(bucket, published):
    """The likeliest value of each group, all held to be about equally frequent [shape=(groups, targets)]."""
    plan, sketch = bucket.plan, bucket.plan.sketch
    signs = signs_of(plan, bucket.secret, bucket.digests)
    guessed = []
    groups = plan.groups_of(plan.party_names.index(bucket.party))
    for group, table in zip(groups, published, strict=True):
        numbers = table.astype(np.float32) - (2**sketch.bits - 1) / 2
        scores = (numbers / numbers.std(axis=1, keepdims=True)) @ signs.T
        if group in sketch.contrasts:
            scores = np.outer(CONTRAST_SIGNS, scores)
        guessed.append(scores.argmax(axis=0))
    return np.array(guessed)


def published_at_the_end(contents, plan, party):
    """Sketches out of a message's last bytes before its checksum, where a message has them."""
    shapes = plan.sketch.shapes(plan.groups_of(party), 0)
    bits = plan.sketch.bits
    sizes = [packed_size(values * keys, bits) for values, keys in shapes]
    raw = np.frombuffer(contents, np.uint8)[: len(contents) - container.DIGEST][-sum(sizes) :]
    parts = np.split(raw, np.cumsum(sizes)[:-1])
    return [
        (unpack_bits(part, shape[0] * shape[1], bits) + np.uint8(plan.sketch.floor)).reshape(shape)
        for part, shape in zip(parts, shapes, strict=True)
    ]


def ciphertext(file):
    """A sealed file's chunks without header and tags: as many bytes, in the same places, as what was sealed."""
    _, head = sealed.peek(file, "file")
    body, size = file[len(head) :], sealed.CHUNK + sealed.TAG
    return b"".join(body[i : i + size][: -sealed.TAG] for i in range(0, len(body), size))


def agreement(bucket):
    """Share of the published numbers that the ciphertext shows where they stand; 1 in 2^bits by chance."""
    index = bucket.plan.party_names.index(bucket.party)
    plain, sealed_up = (
        published_at_the_end(data, bucket.plan, index)
        for data in (bucket.plain, ciphertext(bucket.file))
    )
    return float(
        np.mean(np.concatenate([(a == b).ravel() for a, b in zip(plain, sealed_up, strict=True)]))
    )


def chance(bucket):
    """Rows that somebody gets right who draws every value: five standard deviations more than on average."""
    share = 1 / math.prod(bucket.plan.groups[group].size for group in bucket.plan.groups_of(0))
    wanted = len(bucket.digests)
    return wanted * share + 5 * math.sqrt(wanted * share * (1 - share))


def fill(encoder=PAIRS, seed=0):
    """A bucket with a message of a usual size."""
    return Bucket(encoder, ROWS, KEYS[encoder], seed=seed)


def rows():
    """Rows out of the plain message, which show that the attack works, and out of the sealed file."""
    for encoder in (PAIRS, COUNTS):
        bucket = fill(encoder)
        plain = recovered(bucket, bucket.plain)
        name = f"bucket reader, {encoder}: rows of {TARGETS} from the"
        yield at_least(f"{name} plain message (the attack works)", plain, TARGETS * 8 // 10)
        # Levels exclude values, and so all of them at times; of counts there is always a likeliest.
        most = 0 if encoder == PAIRS else round(chance(bucket))
        yield at_most(f"{name} sealed file", recovered(bucket, ciphertext(bucket.file)), most)
