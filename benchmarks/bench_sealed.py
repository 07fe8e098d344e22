"""Sealing and opening a message of the largest usual size, 64 MB, beside writing its checksum.

    pytest benchmarks/bench_sealed.py
"""

from __future__ import annotations

import hashlib
import os

import pytest

from vertimrf.keys import KeyRing, open_sealed, seal

SIZE = 64_000_000
PLAN = bytes(32)
KIND = "party message"


@pytest.fixture(scope="module")
def ring():
    return KeyRing.new(("one", "two"))


@pytest.fixture(scope="module")
def contents():
    return os.urandom(SIZE)


def test_seal(benchmark, ring, contents):
    benchmark.extra_info["bytes"] = SIZE
    data = benchmark(seal, contents, KIND, PLAN, ring.public, ring.parties["one"], None)
    assert len(data) > SIZE


def test_open(benchmark, ring, contents):
    benchmark.extra_info["bytes"] = SIZE
    data = seal(contents, KIND, PLAN, ring.public, ring.parties["one"], None)
    assert benchmark(open_sealed, data, KIND, PLAN, ring.public, ring.server, "file") == ("one", contents)


def test_sha256_of_as_many_bytes(benchmark, contents):
    """What a container's checksum takes, for comparison."""
    benchmark.extra_info["bytes"] = SIZE
    assert len(benchmark(lambda: hashlib.sha256(contents).digest())) == 32
