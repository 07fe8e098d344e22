"""A hundred small count sketches that freeze the hash, the noise drawn from given entropy, and the published codes.

They change only together with COUNTING_VERSION, for parties of different versions could not work together. To write the file
anew after such a change: ``python tests/releases/count_sketches/test_golden_count_sketch.py``.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import xxhash
from oracles import fingerprints

from vertimrf.releases.count_sketches.encoding import COUNTING_VERSION, CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches

GOLDEN = Path(__file__).parent / "data" / "golden_count_sketch.json"
GROUP = 10


def entropy(seed, count):
    """The same under every NumPy."""
    return hashlib.shake_256(seed.encode()).digest(count)


def below(seed, bound, count):
    words = np.frombuffer(entropy(seed, 8 * count), "<u8").astype(np.uint64)
    return (words % np.uint64(bound)).astype(np.int64)


def sketches(number):
    """The counters before noise and the published tables of one small table, plan and secret."""
    name = f"vertimrf golden count {number}"
    sizes = tuple(int(size) for size in 1 + below(f"{name} sizes", 9, 3))
    plan = CountSketches(
        repetitions=1 + number % 13,
        buckets=2 << number % 12,
        variance=4.0 + 0.37 * number,
        bits=1 + number % 4,
        sizes=sizes,
    )
    n = int(below(f"{name} n", 60, 1)[0])
    # Given digests, so that counters are frozen whatever makes digests of ids.
    ids = np.sort(below(f"{name} ids", 2**62, n)).tolist()
    digests = np.array([xxhash.xxh64_intdigest(str(record).encode()) for record in ids], np.uint64)
    codes = np.stack([below(f"{name} codes {i}", size, n) for i, size in enumerate(sizes)])
    out = []
    for party in ((0, 2), (1,)):
        encoder = CountSketchEncoder(plan, party, entropy(f"{name} secret", 32))
        encoder.update(digests, codes[list(party)])
        out.append(np.frombuffer(encoder.state()[24:], "<i4"))
        totals = [np.full(sizes[i], n / sizes[i]) for i in party]
        asked = iter(range(1 << 30))
        out += encoder.result(
            totals, lambda count, asked=asked: entropy(f"{name} noise {next(asked)}", count)
        )
    return out


def test_a_hundred_small_count_sketches_are_as_they_were():
    golden = json.loads(GOLDEN.read_text())
    assert golden["version"] == COUNTING_VERSION, "write the golden file anew for the new version"
    assert list(fingerprints(sketches, 100, GROUP)) == golden["sha256"], (
        "numbers changed: raise COUNTING_VERSION and write the file anew"
    )


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(
        json.dumps(
            {"version": COUNTING_VERSION, "sha256": list(fingerprints(sketches, 100, GROUP))},
            indent=1,
        )
        + "\n"
    )
