"""Geometric sketches by hashing every record under every key, for tests and benchmarks."""

from __future__ import annotations

import numpy as np
from numba import prange

from .jit import parallel_kernel
from .prf import keyed_word, tail

__all__ = ["encode_dense"]

# A counter that event streams never use, so these levels are independent of the event-driven ones.
COUNTER = (1 << 24) - 1
SLICE = 512


@parallel_kernel
def encode_dense(k0, k1, digests, codes, first_row, ceiling, table):  # type: ignore[no-untyped-def]
    """Raise every sketch to the highest level of its records.

    Args:
        k0, k1: secret key [uint64].
        digests: record digests [shape=(n,), uint64].
        codes: values of the attributes that share these keys [shape=(d, n), uint16].
        first_row: row of each attribute's value 0 [shape=(d,), int64].
        ceiling: highest level; higher ones are clipped.
        table: sketches, updated [shape=(r, k), uint8].
    """
    keys = table.shape[1]
    attributes = first_row.size
    for s in prange(-(-keys // SLICE)):
        begin = s * SLICE
        width = min(SLICE, keys - begin)
        level = np.empty(SLICE, np.uint8)
        number = np.empty(SLICE, np.float64)
        bits = number.view(np.uint64)
        for i in range(digests.size):
            digest = digests[i]
            for k in range(width):
                number[k] = np.float64(
                    keyed_word(k0, k1, digest, tail(begin + k, COUNTER)) | np.uint64(1)
                )
            # Leading zeros plus one, from the exponent of the word as a double (rounding errs once
            # in 2^53).
            for k in range(width):
                level[k] = min(
                    np.uint64(1023 + 64) - (bits[k] >> np.uint64(52)), np.uint64(ceiling)
                )
            for j in range(attributes):
                row = table[first_row[j] + codes[j, i], begin : begin + width]
                for k in range(width):
                    row[k] = max(row[k], level[k])
