"""The keyed sum over records against SipHash's published vectors and a slow oracle; its order and its parts do not matter."""

import numpy as np
import pytest
from oracles import siphash

from vertimrf.kernels.multiset import MODULUS, record_sum

KEY = bytes(range(16))
# Of the reference implementation, for the messages 00 01 02 ... of 8 and of 12 bytes under the key 00 01 ... 0f.
PUBLISHED = {8: "3b62a9ba6258f5610f83e264f31497b4", 12: "d626b266905ef35882634df68532c125"}


@pytest.mark.parametrize("length", list(PUBLISHED))
def test_one_record_has_the_published_hash(length):
    message = bytes(range(length))
    codes = np.frombuffer(message[8:], "<u2")[:, None]
    hashed = record_sum(KEY, np.frombuffer(message[:8], "<u8"), codes)
    assert hashed.to_bytes(16, "little").hex() == PUBLISHED[length]


@pytest.mark.parametrize("attributes", [0, 1, 3, 4, 5, 24, 130])
def test_records_are_hashed_and_added(attributes):
    rng = np.random.default_rng(attributes)
    digests = rng.integers(0, 1 << 64, 50, dtype=np.uint64)
    codes = rng.integers(0, 1 << 16, (attributes, 50)).astype(np.uint16)
    key = rng.bytes(16)
    messages = [
        d.tobytes() + np.ascontiguousarray(row).tobytes()
        for d, row in zip(digests, codes.T, strict=True)
    ]
    words = [siphash(key, message, wide=True) for message in messages]
    assert record_sum(key, digests, codes) == sum(words) % MODULUS


def test_parts_in_any_order_add_up(monkeypatch):
    rng = np.random.default_rng(1)
    digests = rng.integers(0, 1 << 64, 1000, dtype=np.uint64)
    codes = rng.integers(0, 9, (5, 1000)).astype(np.uint16)
    whole = record_sum(KEY, digests, codes)
    order = rng.permutation(1000)
    parts = [record_sum(KEY, digests[part], codes[:, part]) for part in np.split(order, [1, 400])]
    assert sum(parts) % MODULUS == whole
    monkeypatch.setattr("vertimrf.kernels.multiset.SHARE", 7)
    assert record_sum(KEY, digests, codes) == whole
    assert record_sum(KEY[::-1], digests, codes) != whole
    assert record_sum(KEY, digests[:0], codes[:, :0]) == 0
