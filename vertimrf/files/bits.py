"""Pack numbers of 1 to 4 bits into bytes.

``numpy.packbits`` over the single bits gives the same bytes, in two to fifteen times the time.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Bytes


def packed_size(count: int, bits: int) -> int:
    """Bytes needed for ``count`` numbers of ``bits`` bits."""
    return (count * bits + 7) // 8


def pack_bits(numbers: Bytes, bits: int) -> Bytes:
    """Pack numbers below 2^``bits``; the first number takes the lowest bits of the first byte.

    Args:
        numbers: numbers [any shape, uint8].
        bits: bits per number, 1 to 4.

    Returns:
        Packed bytes [shape=(packed_size(numbers.size, bits),), uint8].
    """
    word, together, used = _units(bits)
    flat = np.append(numbers, np.zeros(-numbers.size % together, np.uint8))
    words = np.zeros(flat.size // together, word)
    for i in range(together):
        words |= flat[i::together].astype(word, copy=False) << word.type(bits * i)
    return (
        words.view(np.uint8)
        .reshape(-1, word.itemsize)[:, :used]
        .ravel()[: packed_size(numbers.size, bits)]
    )


def unpack_bits(packed: Bytes, count: int, bits: int) -> Bytes:
    """Unpack the first ``count`` numbers.

    Args:
        packed: from :func:`pack_bits` [uint8].
        count: how many numbers.
        bits: bits per number, 1 to 4.

    Returns:
        Numbers [shape=(count,), uint8].
    """
    word, together, used = _units(bits)
    units = np.zeros((-(-packed.size // used), word.itemsize), np.uint8)
    units[:, :used] = np.append(packed, np.zeros(-packed.size % used, np.uint8)).reshape(-1, used)
    words = units.view(word).ravel()
    out = np.empty(words.size * together, np.uint8)
    for i in range(together):
        out[i::together] = words >> word.type(bits * i) & word.type((1 << bits) - 1)
    return out[:count]


def _units(bits: int) -> tuple[np.dtype[np.unsignedinteger], int, int]:
    """The word type for packed numbers, how many numbers it holds, and how many bytes are used."""
    return (np.dtype("<u4"), 8, 3) if bits == 3 else (np.dtype("u1"), 8 // bits, 1)
