"""Digests of ids, beside xxhash called from Python."""

import numpy as np
import pytest
import xxhash

from vertimrf import Sketch
from vertimrf.cli.bench import SECRET
from vertimrf.kernels.digest import digest_integers, digest_strings
from vertimrf.kernels.geometric import encode_rows, hazards
from vertimrf.sketch import CEILING


@pytest.mark.parametrize("width", [8, 16, 24, 36])
def test_string_ids(speed, hold, million, width):
    ids = [f"{i:0{width}d}" for i in range(million)]
    data = np.frombuffer("".join(ids).encode(), np.uint8)
    offsets = np.arange(0, data.size + 1, width, dtype=np.int64)
    mine, loop = speed(
        lambda: digest_strings(SECRET[:16], offsets, data),
        reference=lambda: [xxhash.xxh64_intdigest(x.encode()) for x in ids],
        rows=len(ids),
        moved=data.size + 16 * len(ids),
    )
    row = f"string ids of {width} bytes to keyed digests, times a Python loop over xxhash"
    hold(row, loop / mine)


@pytest.mark.usual(10**6)
def test_integer_ids(speed, rows, on):
    ids = np.arange(rows)
    speed(lambda: digest_integers(SECRET[:16], ids), on, rows=rows, moved=16 * rows)


@pytest.mark.usual(10**5)
def test_set_beside_datasketches(speed, rows, on):
    """A sketch of 4,096 levels each: a HyperLogLog of datasketches takes one id a call."""
    datasketches = pytest.importorskip("datasketches")
    ids = np.arange(rows)
    numbers = ids.tolist()

    def theirs():
        sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
        for number in numbers:
            sketch.update(number)

    speed(lambda: Sketch.encode(ids, SECRET), on, theirs, rows=rows)


def test_sketch_of_a_set(speed, hold, million):
    """Through its checked class, and by the kernels alone, with the axis of levels at hand."""
    ids, axis, keys = np.arange(million), hazards(CEILING), 4096
    guess = int(np.log2(million / (np.log(keys) + 1.5)))
    tasks = np.array([[0, million, 0, keys, 0, guess]])
    one, two = np.uint64(1), np.uint64(2)

    def bare():
        digests = digest_integers(SECRET[:16], ids)
        levels, minima = np.ones(keys, np.uint8), np.ones(1, np.uint8)
        encode_rows(one, two, digests, tasks, np.array([0, 1]), *axis, levels, minima)

    checked, kernels = speed(
        lambda: Sketch.encode(ids, SECRET, keys), rounds=15, reference=bare, rows=million
    )
    hold("a sketch of a set, times the bare kernels", checked / kernels)
