"""Keyed digests of record ids in bulk: 64-bit SipHash-2-4 (Aumasson and Bernstein, 2012).

Strings are hashed as UTF-8 and integers as their decimal text, so 42 in one party's file matches
"42" in another's.

SipHash-2-4 is a pseudo-random function with a key of 128 bits and a state of 256 bits. To anyone
without the key, digests of distinct ids are independent uniform words, as far as is known. Its
authors claim 64 bits of security for its output, and the differential characteristic found by
cryptanalysis has probability 2^-236 (Dobraunig, Mendel and Schläffer, 2014). So someone who chooses
ids without the key hits the digest of another id with probability 2^-64 per try. Failed tries do
not help the next one: q tries succeed with probability q / 2^64 at most. Someone with the key can
find an id with a given digest in 2^64 tries at most. By chance alone, two of n ids have the same
digest with probability n^2 / 2^65 at most: 3e-6 for ten million ids.

The ids of a block are hashed side by side: arrays hold the state of all of them, and the loops over
these compile to SIMD.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..arrays import Bytes, Integral, Words
from .jit import callee, in_slices, kernel
from .prf import INIT0, INIT1, INIT2, INIT3, absorb, finished

U64 = np.uint64
KEY_BYTES = 16
LONGEST_INTEGER = 20
# Fewest ids worth a thread.
SHARE = 1 << 15
# Ids that are hashed together.
BLOCK = 64
# Bytes of an id that are hashed side by side with others; the rest of a longer id is hashed alone.
TOGETHER = np.uint64(128)
# Where the parts of the scratch memory begin: four words of state and the next eight bytes, for
# every id.
V1, V2, V3, WORD = (np.uint64(BLOCK * i) for i in range(1, 5))
SCRATCH = 5 * BLOCK


@callee(forceinline=True)
def read64(data, at):  # type: ignore[no-untyped-def]
    """Little-endian 64-bit word at a byte offset [uint64].

    A signed offset might count from the end, which costs eight loads.
    """
    return (
        U64(data[at])
        | (U64(data[at + U64(1)]) << U64(8))
        | (U64(data[at + U64(2)]) << U64(16))
        | (U64(data[at + U64(3)]) << U64(24))
        | (U64(data[at + U64(4)]) << U64(32))
        | (U64(data[at + U64(5)]) << U64(40))
        | (U64(data[at + U64(6)]) << U64(48))
        | (U64(data[at + U64(7)]) << U64(56))
    )


@callee(forceinline=True)
def eight_bytes(data, at):  # type: ignore[no-untyped-def]
    """Up to eight bytes from ``at`` on as a little-endian word; ``data`` has at least eight."""
    begin = min(at, U64(data.size - 8))
    return read64(data, begin) >> min((at - begin) << U64(3), U64(63))


@callee(forceinline=True)
def message_word(word, done, length):  # type: ignore[no-untyped-def]
    """SipHash's message word after ``done`` bytes.

    It has eight bytes, or the remaining ones and the length modulo 256.
    """
    remaining = length - done
    kept = (U64(1) << ((remaining & U64(7)) << U64(3))) - U64(1)
    return word if remaining >= U64(8) else (word & kept) | (length << U64(56))


@callee
def _hash_block(k0, k1, data, begins, lengths, scratch, out):  # type: ignore[no-untyped-def]
    """Digests of ``data[begins[i]:begins[i] + lengths[i]]`` for the ids of ``out``, at most BLOCK.

    Args:
        k0, k1: key [uint64].
        data: bytes [shape=(at least 8,), uint8].
        begins, lengths: ranges within the data [shape=(BLOCK,), uint64].
        scratch: overwritten [shape=(SCRATCH,), uint64].
        out: digests, written [shape=(n,), uint64].
    """
    n = U64(out.size)
    longest = U64(0)
    for i in range(n):
        scratch[i] = k0 ^ INIT0
        scratch[i + V1] = k1 ^ INIT1
        scratch[i + V2] = k0 ^ INIT2
        scratch[i + V3] = k1 ^ INIT3
        longest = max(longest, lengths[i])
    for done in range(U64(0), min(longest + U64(1), TOGETHER), U64(8)):
        for i in range(n):
            scratch[i + WORD] = eight_bytes(data, begins[i] + done)
        for i in range(n):
            word = message_word(scratch[i + WORD], done, lengths[i])
            a, b, c, d = absorb(scratch[i], scratch[i + V1], scratch[i + V2], scratch[i + V3], word)
            # All ones if an id has ended, so that its state stays; a branch would prevent SIMD
            # without AVX-512.
            ended = U64(np.int64(lengths[i] - done) >> np.int64(63))
            scratch[i] = a ^ ((a ^ scratch[i]) & ended)
            scratch[i + V1] = b ^ ((b ^ scratch[i + V1]) & ended)
            scratch[i + V2] = c ^ ((c ^ scratch[i + V2]) & ended)
            scratch[i + V3] = d ^ ((d ^ scratch[i + V3]) & ended)
    if longest >= TOGETHER:
        for i in range(n):
            a, b, c, d = scratch[i], scratch[i + V1], scratch[i + V2], scratch[i + V3]
            for done in range(TOGETHER, lengths[i] + U64(1), U64(8)):
                a, b, c, d = absorb(
                    a, b, c, d, message_word(eight_bytes(data, begins[i] + done), done, lengths[i])
                )
            scratch[i], scratch[i + V1], scratch[i + V2], scratch[i + V3] = a, b, c, d
    for i in range(n):
        a, b, c, d = scratch[i], scratch[i + V1], scratch[i + V2], scratch[i + V3]
        a, b, c, d = finished(a, b, c, d, U64(0xFF))
        out[i] = a ^ b ^ c ^ d


@kernel
def _strings(k0, k1, offsets, data, size, first, last, out):  # type: ignore[no-untyped-def]
    """Digests of strings in Arrow layout; returns the number of invalid offsets."""
    begins, lengths, scratch = (
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
        np.empty(SCRATCH, np.uint64),
    )
    bad = 0
    for block in range(first, last, BLOCK):
        stop = min(block + BLOCK, last)
        for i in range(block, stop):
            begin, end = offsets[i], offsets[i + 1]
            fits = 0 <= begin <= end <= size
            bad += not fits
            begins[i - block] = U64(begin if fits else 0)
            lengths[i - block] = U64(end - begin if fits else 0)
        _hash_block(k0, k1, data, begins, lengths, scratch, out[block:stop])
    return bad


@callee
def _write_decimal(magnitude, negative, text, end):  # type: ignore[no-untyped-def]
    """Write decimal text right-aligned in ``text`` [uint8] up to ``end``; returns its begin."""
    at = end
    while True:
        quotient = magnitude // U64(10)
        at -= 1
        text[at] = np.uint8(48) + np.uint8(magnitude - quotient * U64(10))
        magnitude = quotient
        if magnitude == U64(0):
            break
    if negative:
        at -= 1
        text[at] = 45
    return at


@kernel
def _integers(k0, k1, magnitudes, signed, first, last, out):  # type: ignore[no-untyped-def]
    begins, lengths, scratch = (
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
        np.empty(SCRATCH, np.uint64),
    )
    text = np.empty(BLOCK * LONGEST_INTEGER, np.uint8)
    for block in range(first, last, BLOCK):
        stop = min(block + BLOCK, last)
        for i in range(block, stop):
            magnitude = magnitudes[i]
            negative = signed and (magnitude >> U64(63)) != U64(0)
            if negative:
                magnitude = U64(0) - magnitude
            end = (i - block + 1) * LONGEST_INTEGER
            begin = _write_decimal(magnitude, negative, text, end)
            begins[i - block] = U64(begin)
            lengths[i - block] = U64(end - begin)
        _hash_block(k0, k1, text, begins, lengths, scratch, out[block:stop])


def key_words(key: bytes) -> tuple[np.uint64, np.uint64]:
    """The two words of a key.

    Raises:
        ValueError: the key does not have 16 bytes.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(
            f"A key of digests has {KEY_BYTES} bytes, not {len(key)}; draw them with secrets.token_bytes."
        )
    k0, k1 = np.frombuffer(key, "<u8").astype(np.uint64)
    return k0, k1


def eight_or_more(data: npt.NDArray) -> Bytes:
    """The bytes for kernels: read-only like Arrow's, padded with zeros to at least one word."""
    out = np.ascontiguousarray(
        data if len(data) >= 8 else np.append(data, np.zeros(8, np.uint8)), np.uint8
    ).view()
    out.flags.writeable = False
    return out


def digest_strings(key: bytes, offsets: Integral, data: Bytes) -> Words:
    """Digests of strings or byte strings in Arrow layout.

    Args:
        key: key, unknown to everyone who can choose an id [16 bytes].
        offsets: string i is ``data[offsets[i]:offsets[i + 1]]`` [shape=(n + 1,), int32 or int64,
            non-decreasing].
        data: UTF-8 bytes [uint8].

    Returns:
        Digests [shape=(n,), uint64].

    Raises:
        ValueError: offsets decrease or lie outside the data, or the key has another length.
    """
    if len(offsets) == 0:
        raise ValueError(
            "offsets must hold one more entry than there are strings; give [0] for none."
        )
    k0, k1 = key_words(key)
    out = np.empty(len(offsets) - 1, np.uint64)
    begins, text = np.require(offsets, np.int64, ["C", "W"]), eight_or_more(data)
    if any(
        in_slices(
            out.size,
            SHARE,
            lambda begin, end: _strings(k0, k1, begins, text, len(data), begin, end, out),
        )
    ):
        raise ValueError(
            f"offsets must not decrease, and must stay within the data's {len(data)} bytes."
        )
    return out


def digest_integers(key: bytes, values: Integral) -> Words:
    """Digests of the decimal text of integers.

    Args:
        key: as for :func:`digest_strings`.
        values: integers of any dtype [shape=(n,)].

    Returns:
        Digests [shape=(n,), uint64].

    Raises:
        ValueError: the key has another length.
    """
    k0, k1 = key_words(key)
    signed = values.dtype.kind == "i"
    wide = np.require(
        values.astype(np.int64 if signed else np.uint64, copy=False).view(np.uint64),
        None,
        ["C", "W"],
    )
    out = np.empty(wide.size, np.uint64)
    in_slices(out.size, SHARE, lambda begin, end: _integers(k0, k1, wide, signed, begin, end, out))
    return out
