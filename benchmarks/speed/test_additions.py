"""Count sketches beside the same additions. This file is the first: memory is the process's peak."""

import resource
import time

import numpy as np
import pytest

from benchmarks.speed.beside import additions_work
from benchmarks.speed.test_encoding import table
from vertimrf.cli.bench import SECRET
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches

# 262,144 counters a value, 8 attributes of 8 values at one party.
COUNTED = CountSketches(128, 2048, 32.0, 4, (8,) * 8)


@pytest.mark.bars
def test_count_sketches_beside_additions(speed, hold, million):
    """By processor time; and ten times the rows in chunks."""

    def encode(rows):
        digests, codes = table(million)
        encoder = CountSketchEncoder(COUNTED, range(8), SECRET)
        for first in range(0, rows, million):
            # Fresh records for every chunk, at next to no cost.
            encoder.update(digests + np.uint64(first), codes)
        encoder.result([np.full(8, rows / 8)] * 8)

    def worked(action):
        begin = time.process_time()
        action()
        return time.process_time() - begin

    additions = additions_work(COUNTED, table(million)[1])
    speed(lambda: encode(million), rounds=1, rows=million)
    additions()
    turns = [(worked(lambda: encode(million)), worked(additions)) for _ in range(3)]
    once, bare = (sorted(each)[1] for each in zip(*turns, strict=True))
    hold("encoding, times the additions, by processor time", once / bare)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = worked(lambda: encode(10 * million))
    hold("ten times the rows in chunks, times as long, by processor time", many / once)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hold("ten times the rows in chunks, times the memory", after / before)
