"""A keyed sum over records that distinguishes two tables.

It does not depend on the order of rows or on their division into parts.

The bytes of each record's digest and codes, little-endian, are hashed by SipHash-2-4 with 128 bits
of output (Aumasson and Bernstein, 2012). The hashes are added modulo 2^128 (MSet-Add-Hash of Clarke
et al., 2003). So the sums of parts of a table add up, and a sum reveals nothing to anyone without
the key. Two different tables have the same sum with probability 2^-128.

Axes: d = attributes, n = records.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Codes, Words
from .jit import in_slices, kernel
from .prf import INIT0, INIT1, INIT2, INIT3, absorb, finished

U64 = np.uint64
MODULUS = 1 << 128
# Fewest records worth a thread.
SHARE = 1 << 15


@kernel
def _record_sum(k0, k1, digests, codes, first, last, out):  # type: ignore[no-untyped-def]
    length = (U64(8 + 2 * codes.shape[0]) & U64(0xFF)) << U64(56)
    low = U64(0)
    high = U64(0)
    for i in range(first, last):
        v0 = k0 ^ INIT0
        v1 = k1 ^ INIT1 ^ U64(0xEE)
        v2 = k0 ^ INIT2
        v3 = k1 ^ INIT3
        word = digests[i]
        shift = U64(64)
        # Four codes per word; the last word has fewer, and the length.
        for k in range(codes.shape[0] + 1):
            if shift == U64(64):
                v0, v1, v2, v3 = absorb(v0, v1, v2, v3, word)
                word = U64(0)
                shift = U64(0)
            if k < codes.shape[0]:
                word = word | (U64(codes[k, i]) << shift)
                shift = shift + U64(16)
        v0, v1, v2, v3 = absorb(v0, v1, v2, v3, word | length)
        v0, v1, v2, v3 = finished(v0, v1, v2, v3, U64(0xEE))
        one = v0 ^ v1 ^ v2 ^ v3
        v0, v1, v2, v3 = finished(v0, v1 ^ U64(0xDD), v2, v3, U64(0))
        low = low + one
        high = high + (v0 ^ v1 ^ v2 ^ v3) + U64(low < one)
    out[0] = low
    out[1] = high


def record_sum(key: bytes, digests: Words, codes: Codes) -> int:
    """Sum of the keyed hashes of all records modulo :data:`MODULUS`.

    Args:
        key: at least 16 bytes.
        digests: record digests [shape=(n,), uint64].
        codes: values [shape=(d, n), uint16].
    """
    k0, k1 = np.frombuffer(key[:16], "<u8").astype(np.uint64)
    ids, table = (
        np.require(digests, np.uint64, ["C", "W"]),
        np.require(codes, np.uint16, ["C", "W"]),
    )

    def add(begin: int, end: int) -> int:
        words = np.empty(2, np.uint64)
        _record_sum(k0, k1, ids, table, begin, end, words)
        return int(words[0]) | int(words[1]) << 64

    return sum(in_slices(ids.size, SHARE, add)) % MODULUS
