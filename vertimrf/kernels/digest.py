"""Digests of record ids: xxHash64 (seed 0) of their bytes, in bulk, bit for bit that of the ``xxhash`` library.

Strings are hashed as UTF-8 and whole numbers as their decimal text, so 42 in one party's file meets "42" in another's.
A digest is no secret and protects nothing; the keyed words (``prf``) do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .jit import in_slices, kernel
from .prf import rotate

__all__ = ["digest_fixed", "digest_integers", "digest_strings"]

U64 = np.uint64
P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)
LONGEST_INTEGER = 20
# Fewest ids worth a thread.
SHARE = 1 << 15


@kernel(forceinline=True)
def read64(data, at):  # type: ignore[no-untyped-def]
    """Little-endian 64-bit word at a byte offset [uint64: a signed one might count from the end, and cost eight loads]."""
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


@kernel(forceinline=True)
def read32(data, at):  # type: ignore[no-untyped-def]
    """Little-endian 32-bit word at a byte offset [uint64]."""
    return (
        U64(data[at])
        | (U64(data[at + U64(1)]) << U64(8))
        | (U64(data[at + U64(2)]) << U64(16))
        | (U64(data[at + U64(3)]) << U64(24))
    )


@kernel(forceinline=True)
def mix(accumulator, lane):  # type: ignore[no-untyped-def]
    """One xxHash64 round."""
    return rotate(accumulator + lane * P2, U64(31)) * P1


@kernel(forceinline=True)
def merge(h, accumulator):  # type: ignore[no-untyped-def]
    """Fold one of the four accumulators into the hash."""
    return (h ^ mix(U64(0), accumulator)) * P1 + P4


@kernel
def xxh64(data, at, end):  # type: ignore[no-untyped-def]
    """xxHash64 of ``data[at:end]`` [uint8; offsets uint64], seed 0."""
    length = end - at
    if length >= U64(32):
        a = P1 + P2
        b = P2
        c = U64(0)
        d = U64(0) - P1
        while end - at >= U64(32):
            a = mix(a, read64(data, at))
            b = mix(b, read64(data, at + U64(8)))
            c = mix(c, read64(data, at + U64(16)))
            d = mix(d, read64(data, at + U64(24)))
            at += U64(32)
        h = rotate(a, U64(1)) + rotate(b, U64(7)) + rotate(c, U64(12)) + rotate(d, U64(18))
        h = merge(merge(merge(merge(h, a), b), c), d)
    else:
        h = P5
    h = h + length
    while end - at >= U64(8):
        h = rotate(h ^ mix(U64(0), read64(data, at)), U64(27)) * P1 + P4
        at += U64(8)
    if end - at >= U64(4):
        h = rotate(h ^ (read32(data, at) * P1), U64(23)) * P2 + P3
        at += U64(4)
    while at < end:
        h = rotate(h ^ (U64(data[at]) * P5), U64(11)) * P1
        at += U64(1)
    h = (h ^ (h >> U64(33))) * P2
    h = (h ^ (h >> U64(29))) * P3
    return h ^ (h >> U64(32))


@kernel
def _strings(offsets, data, first, last, out):  # type: ignore[no-untyped-def]
    bad = 0
    for i in range(first, last):
        begin = np.int64(offsets[i])
        end = np.int64(offsets[i + 1])
        if 0 <= begin <= end <= data.size:
            out[i] = xxh64(data, U64(begin), U64(end))
        else:
            bad += 1
    return bad


@kernel
def _write_decimal(magnitude, negative, text):  # type: ignore[no-untyped-def]
    """Decimal text right-aligned in ``text`` [shape=(LONGEST_INTEGER,), uint8]; returns where it begins."""
    at = LONGEST_INTEGER
    while True:
        rest = magnitude // U64(10)
        at -= 1
        text[at] = np.uint8(48) + np.uint8(magnitude - rest * U64(10))
        magnitude = rest
        if magnitude == U64(0):
            break
    if negative:
        at -= 1
        text[at] = 45
    return at


@kernel
def _integers(magnitudes, signed, first, last, out):  # type: ignore[no-untyped-def]
    text = np.empty(LONGEST_INTEGER, np.uint8)
    for i in range(first, last):
        magnitude = magnitudes[i]
        negative = signed and (magnitude >> U64(63)) != U64(0)
        if negative:
            magnitude = U64(0) - magnitude
        begin = _write_decimal(magnitude, negative, text)
        out[i] = xxh64(text, U64(begin), U64(LONGEST_INTEGER))


@kernel
def _fixed_bytes(flat, width, first, last, out):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        end = (i + 1) * width
        while end > i * width and flat[end - 1] == 0:
            end -= 1
        out[i] = xxh64(flat, U64(i * width), U64(end))


@kernel
def _write_utf8(points, text):  # type: ignore[no-untyped-def]
    """UTF-8 of code points up to the trailing zeros; returns its length."""
    used = points.size
    while used > 0 and points[used - 1] == 0:
        used -= 1
    at = 0
    for i in range(used):
        p = points[i]
        if p < 0x80:
            text[at] = p
            at += 1
        elif p < 0x800:
            text[at] = 0xC0 | (p >> 6)
            text[at + 1] = 0x80 | (p & 0x3F)
            at += 2
        elif p < 0x10000:
            text[at] = 0xE0 | (p >> 12)
            text[at + 1] = 0x80 | ((p >> 6) & 0x3F)
            text[at + 2] = 0x80 | (p & 0x3F)
            at += 3
        else:
            text[at] = 0xF0 | (p >> 18)
            text[at + 1] = 0x80 | ((p >> 12) & 0x3F)
            text[at + 2] = 0x80 | ((p >> 6) & 0x3F)
            text[at + 3] = 0x80 | (p & 0x3F)
            at += 4
    return at


@kernel
def _fixed_points(rows, first, last, out):  # type: ignore[no-untyped-def]
    text = np.empty(4 * rows.shape[1], np.uint8)
    for i in range(first, last):
        out[i] = xxh64(text, U64(0), U64(_write_utf8(rows[i], text)))


def digest_strings(offsets: npt.NDArray[np.integer], data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Digests of strings (or byte strings) in Arrow layout.

    Args:
        offsets: string i is ``data[offsets[i]:offsets[i + 1]]`` [shape=(n + 1,), int32 or int64, non-decreasing].
        data: UTF-8 bytes [uint8].

    Returns:
        [shape=(n,), uint64]

    Raises:
        ValueError: offsets that decrease, or reach outside the data.
    """
    if len(offsets) == 0:
        raise ValueError("offsets must hold one more entry than there are strings; give [0] for none.")
    out = np.empty(len(offsets) - 1, np.uint64)
    begins, text = np.require(offsets, np.int64, ["C", "W"]), np.require(data, np.uint8, ["C", "W"])
    if any(in_slices(out.size, SHARE, lambda begin, end: _strings(begins, text, begin, end, out))):
        raise ValueError(f"offsets must not decrease, and must stay within the data's {len(data)} bytes.")
    return out


def digest_integers(values: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Digests of whole numbers: those of their decimal text.

    Args:
        values: any integer dtype [shape=(n,)].

    Returns:
        [shape=(n,), uint64]
    """
    signed = values.dtype.kind == "i"
    wide = np.require(values.astype(np.int64 if signed else np.uint64, copy=False).view(np.uint64), None, ["C", "W"])
    out = np.empty(wide.size, np.uint64)
    in_slices(out.size, SHARE, lambda begin, end: _integers(wide, signed, begin, end, out))
    return out


def digest_fixed(values: npt.NDArray) -> npt.NDArray[np.uint64]:
    """Digests of fixed-width NumPy strings: bytes (``S``) as they are, text (``U``) as UTF-8, without trailing zeros.

    Args:
        values: [shape=(n,), dtype S or U].

    Returns:
        [shape=(n,), uint64]
    """
    unit = np.uint8 if values.dtype.kind == "S" else np.uint32
    width = values.dtype.itemsize // np.dtype(unit).itemsize
    out = np.empty(values.size, np.uint64)
    native = np.require(values.astype(values.dtype.newbyteorder("="), copy=False), None, ["C", "W"])
    rows = (
        np.frombuffer(native, unit).reshape(values.size, width)
        if native.size and width
        else np.zeros((values.size, 1), unit)
    )
    if unit is np.uint8:
        flat = rows.reshape(-1)
        in_slices(len(rows), SHARE, lambda begin, end: _fixed_bytes(flat, rows.shape[1], begin, end, out))
    else:
        in_slices(len(rows), SHARE, lambda begin, end: _fixed_points(rows, begin, end, out))
    return out
