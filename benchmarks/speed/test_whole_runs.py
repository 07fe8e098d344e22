"""Whole runs of two parties and the server; a process that compiles kernels, and one that loads them."""

import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.speed.measured import KEPT
from vertimrf import synthesize


@pytest.mark.usual(10**5)
def test_whole_runs(speed, rows, on):
    steps = np.random.default_rng(0).integers(0, 3, (8, rows))
    columns = {f"a{i}": codes for i, codes in enumerate(np.cumsum(steps, axis=0) % 6)}
    ids = {"id": np.arange(rows)}
    tables = [
        pa.table(ids | dict(half))
        for half in (list(columns.items())[:4], list(columns.items())[4:])
    ]
    speed(lambda: synthesize(tables, "id", 1.0), on, rounds=1, rows=rows)


@pytest.mark.slow
def test_start(speed, hold):
    warm = [sys.executable, "-c", "from vertimrf.kernels import warmup; warmup()"]
    with tempfile.TemporaryDirectory() as cache:

        def cold():
            with tempfile.TemporaryDirectory() as empty:
                subprocess.run(warm, env=KEPT | {"NUMBA_CACHE_DIR": empty}, check=True)

        def cached():
            subprocess.run(warm, env=KEPT | {"NUMBA_CACHE_DIR": cache}, check=True)

        cached()
        second, first = speed(cached, rounds=1, reference=cold)
    hold("cold compilation, whole process [s]", first)
    hold("second process, from the cache [s]", second)
