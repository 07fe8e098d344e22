"""Keyed pseudo-random words: SipHash-2-4 of a record, a key block and a counter.

Source: Aumasson and Bernstein (2012).

The message of every word has 15 bytes, little-endian: the record's digest (8), the key block (4)
and the counter (3). Both parties of a scheduled pair compute the same words from their secret. To
anyone else the words look random.
"""

from __future__ import annotations

import numpy as np

from .jit import callee, kernel

U64 = np.uint64
LENGTH = np.uint64(15 << 56)
INIT0 = np.uint64(0x736F6D6570736575)
INIT1 = np.uint64(0x646F72616E646F6D)
INIT2 = np.uint64(0x6C7967656E657261)
INIT3 = np.uint64(0x7465646279746573)


@callee(forceinline=True)
def rotate(x, k):  # type: ignore[no-untyped-def]
    """Rotate a 64-bit word left by ``k`` [uint64: Numba would compile a bare number separately]."""
    return (x << k) | (x >> (U64(64) - k))


@callee(forceinline=True)
def sip_round(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    """One SipRound."""
    v0 = v0 + v1
    v1 = rotate(v1, U64(13)) ^ v0
    v0 = rotate(v0, U64(32))
    v2 = v2 + v3
    v3 = rotate(v3, U64(16)) ^ v2
    v0 = v0 + v3
    v3 = rotate(v3, U64(21)) ^ v0
    v2 = v2 + v1
    v1 = rotate(v1, U64(17)) ^ v2
    v2 = rotate(v2, U64(32))
    return v0, v1, v2, v3


@callee(forceinline=True)
def absorb(v0, v1, v2, v3, word):  # type: ignore[no-untyped-def]
    """The state after one more message word."""
    v3 = v3 ^ word
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@callee(forceinline=True)
def finished(v0, v1, v2, v3, mark):  # type: ignore[no-untyped-def]
    """The state at the end; its words combined by ``^`` are the output. A mark tells outputs apart."""
    v2 = v2 ^ mark
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return sip_round(v0, v1, v2, v3)


@kernel(forceinline=True)
def tail(block, counter):  # type: ignore[no-untyped-def]
    """Second message word: key block (below 2^32), counter (below 2^24) and length byte."""
    return U64(block) | (U64(counter) << U64(32)) | LENGTH


@kernel(forceinline=True)
def keyed_word(k0, k1, digest, last):  # type: ignore[no-untyped-def]
    """SipHash-2-4 under key (k0, k1) of message words ``digest`` and ``last`` (:func:`tail`)."""
    v0, v1, v2, v3 = absorb(k0 ^ INIT0, k1 ^ INIT1, k0 ^ INIT2, k1 ^ INIT3, digest)
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, last)
    v0, v1, v2, v3 = finished(v0, v1, v2, v3, U64(0xFF))
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def fill_words(k0, k1, digests, count, last, out):  # type: ignore[no-untyped-def]
    """Write the keyed words of the first ``count`` digests; the loop compiles to SIMD.

    Args:
        k0, k1: key [uint64].
        digests: record digests [shape=(at least count,), uint64].
        count: number of words.
        last: second message word, from :func:`tail` [uint64].
        out: keyed words, written [shape=(at least count,), uint64].
    """
    for i in range(count):
        out[i] = keyed_word(k0, k1, digests[i], last)
