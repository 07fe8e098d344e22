"""The keyed sum over records against SipHash's published vectors and a slow oracle; its order and its parts do not matter."""

from __future__ import annotations

import numpy as np
import pytest

from vertimrf.kernels.multiset import MODULUS, record_sum

KEY = bytes(range(16))
MASK = (1 << 64) - 1
# Of the reference implementation, for the messages 00 01 02 ... of 8 and of 12 bytes under the key 00 01 ... 0f.
PUBLISHED = {8: "3b62a9ba6258f5610f83e264f31497b4", 12: "d626b266905ef35882634df68532c125"}


def siphash128(key: bytes, message: bytes) -> int:
    """SipHash-2-4 with 128 bits of output, byte by byte as its authors define it."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:16], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turned(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) & 0xFF])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return low | (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64


@pytest.mark.parametrize("length", list(PUBLISHED))
def test_one_record_has_the_published_hash(length: int) -> None:
    message = bytes(range(length))
    codes = np.frombuffer(message[8:], "<u2")[:, None]
    found = record_sum(KEY, np.frombuffer(message[:8], "<u8"), codes)
    assert found.to_bytes(16, "little").hex() == PUBLISHED[length]


@pytest.mark.parametrize("attributes", [0, 1, 3, 4, 5, 24, 130])
def test_records_are_hashed_and_added(attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    digests = rng.integers(0, 1 << 64, 50, dtype=np.uint64)
    codes = rng.integers(0, 1 << 16, (attributes, 50)).astype(np.uint16)
    key = rng.bytes(16)
    words = [siphash128(key, d.tobytes() + np.ascontiguousarray(row).tobytes()) for d, row in zip(digests, codes.T, strict=True)]
    assert record_sum(key, digests, codes) == sum(words) % MODULUS


def test_parts_in_any_order_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    digests = rng.integers(0, 1 << 64, 1000, dtype=np.uint64)
    codes = rng.integers(0, 9, (5, 1000)).astype(np.uint16)
    whole = record_sum(KEY, digests, codes)
    order = rng.permutation(1000)
    parts = [record_sum(KEY, digests[own], codes[:, own]) for own in np.split(order, [1, 400])]
    assert sum(parts) % MODULUS == whole
    monkeypatch.setattr("vertimrf.kernels.multiset.SHARE", 7)
    assert record_sum(KEY, digests, codes) == whole
    assert record_sum(KEY[::-1], digests, codes) != whole
    assert record_sum(KEY, digests[:0], codes[:, :0]) == 0
