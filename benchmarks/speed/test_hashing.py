"""Digests of ids, beside xxhash called from Python."""

import numpy as np
import pytest
import xxhash

from benchmarks.speed.paths import (
    CEILING,
    SECRET,
    Sketch,
    digest_integers,
    digest_strings,
    encode_rows,
    hazards,
)


@pytest.mark.parametrize("width", [8, 16, 24, 36])
def test_string_ids(speed, hold, million, width):
    ids = [f"{i:0{width}d}" for i in range(million)]
    data = np.frombuffer("".join(ids).encode(), np.uint8)
    offsets = np.arange(0, data.size + 1, width, dtype=np.int64)
    mine, loop = speed(
        lambda: digest_strings(SECRET[:16], offsets, data),
        len(ids),
        reference=lambda: [xxhash.xxh64_intdigest(x.encode()) for x in ids],
        moved=data.size + 16 * len(ids),
    )
    row = f"string ids of {width} bytes to keyed digests, times a Python loop over xxhash"
    hold(row, loop / mine)


def test_integer_ids(speed, rows, on):
    ids = np.arange(rows)
    speed(lambda: digest_integers(SECRET[:16], ids), rows, on, moved=16 * rows)


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
        lambda: Sketch.encode(ids, SECRET, keys), million, rounds=15, reference=bare
    )
    hold("a sketch of a set, times the bare kernels", checked / kernels)
