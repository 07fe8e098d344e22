"""Small numbers packed into bytes, 1 to 4 bits each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["pack_bits", "packed_size", "unpack_bits"]

Bytes = npt.NDArray[np.uint8]


def packed_size(count: int, bits: int) -> int:
    """Bytes that so many numbers take."""
    return (count * bits + 7) // 8


def pack_bits(numbers: Bytes, bits: int) -> Bytes:
    """Pack numbers below 2^``bits``, the first in the lowest bits of the first byte.

    Args:
        numbers: of any shape [uint8].
        bits: 1 to 4.

    Returns:
        [shape=(packed_size(numbers.size, bits),), uint8]
    """
    flat = numbers.ravel()
    # Numbers that fill whole bytes together: 8 of 3 bits, one byte's otherwise.
    together = 8 if bits == 3 else 8 // bits
    short = -flat.size % together
    if short:
        flat = np.append(flat, np.zeros(short, np.uint8))
    if bits != 3:
        out = flat[0::together].copy()
        for i in range(1, together):
            out |= flat[i::together] << np.uint8(bits * i)
        return out[: packed_size(numbers.size, bits)]
    words = np.zeros(flat.size // 8, "<u4")
    for i in range(8):
        words |= flat[i::8].astype("<u4") << np.uint32(3 * i)
    out = words.view(np.uint8).reshape(-1, 4)[:, :3].ravel()
    return out[: packed_size(numbers.size, bits)]


def unpack_bits(packed: Bytes, count: int, bits: int) -> Bytes:
    """The first ``count`` numbers back [shape=(count,), uint8]."""
    mask = (1 << bits) - 1
    if bits != 3:
        together = 8 // bits
        out = np.empty(packed.size * together, np.uint8)
        for i in range(together):
            out[i::together] = packed >> np.uint8(bits * i) & np.uint8(mask)
        return out[:count]
    triples = np.append(packed, np.zeros(-packed.size % 3, np.uint8)).reshape(-1, 3)
    words = np.zeros((len(triples), 4), np.uint8)
    words[:, :3] = triples
    joined = words.view("<u4").ravel()
    out = np.empty(8 * joined.size, np.uint8)
    for i in range(8):
        out[i::8] = joined >> np.uint32(3 * i) & np.uint32(mask)
    return out[:count]
