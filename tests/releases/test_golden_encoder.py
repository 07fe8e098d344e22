"""A thousand small sketches that freeze the hash and the layout of the published levels.

They change only together with ENCODING_VERSION, for parties of different versions could not work together. To write the file
anew after such a change: ``python tests/releases/test_golden_encoder.py``.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import xxhash
from oracles import fingerprints

from vertimrf.releases.encoder import ENCODING_VERSION
from vertimrf.releases.scheduled_pairs.encoding import SketchEncoder
from vertimrf.releases.scheduled_pairs.parameters import ScheduledPair, ScheduledPairs
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.parameters import SharedKeys

GOLDEN = Path(__file__).parent / "data" / "golden_encoder.json"
GROUP = 50


class Stream:
    """Numbers and bytes from SHA-256, the same under every NumPy."""

    def __init__(self, seed):
        self._seed, self._count = seed, 0

    def bytes(self, count):
        self._count += 1
        return hashlib.shake_256(f"{self._seed} {self._count}".encode()).digest(count)

    def below(self, bound, count=1):
        words = np.frombuffer(self.bytes(8 * count), "<u8").astype(np.uint64)
        return (words % np.uint64(bound)).astype(np.int64)

    def one(self, low, high):
        return low + int(self.below(high - low + 1)[0])


def sketches(number):
    """The published tables of one small table, plan and secret."""
    draw = Stream(f"vertimrf golden {number}")
    n = draw.one(0, 60)
    sizes = [draw.one(1, 9) for _ in range(4)]
    floor = draw.one(0, 4)
    levels = {"phantoms": draw.one(1, 30), "floor": floor, "ceiling": draw.one(floor + 1, 30)}
    # A few tables have more keys than one block.
    keys = [draw.one(1, 70_000 if number % 100 == 99 else 150) for _ in range(3)]
    ids = (
        np.sort(draw.below(2**62, n))
        if number % 2
        else np.array([f"id {x}" for x in draw.below(10**6, n).tolist()], "U")
    )
    # Given digests, so that levels are frozen whatever makes digests of ids.
    digests = np.array(
        [xxhash.xxh64_intdigest(str(record).encode()) for record in ids.tolist()], np.uint64
    )
    codes = np.stack([draw.below(size, n) for size in sizes])
    secret = draw.bytes(32)
    if number % 5 == 4:
        plan = SharedKeys(**levels, keys=keys[0], sizes=tuple(sizes))
        encoder = SharedKeyEncoder(plan, (2, 0, 3), secret)
        encoder.update(digests, codes[[2, 0, 3]])
        return list(encoder.result(draw.bytes))
    sides = ((0, 2), (3, 0), (1, 2))
    pairs = tuple(ScheduledPair(a, b, k) for (a, b), k in zip(sides, keys, strict=True))
    out = []
    for party in ((0, 1), (2, 3)):
        encoder = SketchEncoder(
            ScheduledPairs(**levels, pairs=pairs, sizes=tuple(sizes)), party, secret
        )
        encoder.update(digests, codes[list(party)])
        out += encoder.result(draw.bytes)
    return out


def test_a_thousand_small_sketches_are_as_they_were():
    golden = json.loads(GOLDEN.read_text())
    assert golden["version"] == ENCODING_VERSION, (
        "write the golden file anew for the new encoding version"
    )
    assert list(fingerprints(sketches, 1000, GROUP)) == golden["sha256"], (
        "levels changed: raise ENCODING_VERSION and write the file anew"
    )


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(
        json.dumps(
            {"version": ENCODING_VERSION, "sha256": list(fingerprints(sketches, 1000, GROUP))},
            indent=1,
        )
        + "\n"
    )
