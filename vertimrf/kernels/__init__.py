"""Compiled kernels: plain arrays in, plain arrays out, no I/O, no state; only NumPy and Numba are imported.

Kernels compile on first use and are cached on disk. :func:`warmup` compiles those of the encoder beforehand.
"""

from __future__ import annotations

import numpy as np

from .digest import digest_fixed, digest_integers, digest_strings
from .geometric import count_values, encode_rows, encode_shared, group_by_value, hazards
from .phantoms import phantom_table, phantom_thresholds, raise_by_phantoms, raise_unsettled

__all__ = ["warmup"]


def warmup() -> None:
    """Compile everything the encoder needs, or load it from the cache, on inputs of one record."""
    data = np.frombuffer(bytearray(b"0"), np.uint8)
    digests = digest_strings(np.array([0, 1], np.int32), data)
    digest_strings(np.array([0, 1], np.int64), data)
    digest_integers(np.array([0], np.int64))
    digest_integers(np.array([0], np.uint64))
    digest_fixed(np.array(["0"]))
    digest_fixed(np.array([b"0"]))
    key = (np.uint64(0), np.uint64(0))
    axis = hazards(3)
    codes = np.zeros((1, 1), np.uint16)
    grouped = np.empty(1, np.uint64)
    starts = group_by_value(digests, codes[0], 1, 1, grouped)
    tasks = np.array([[starts[0], starts[1], 0, 1, 0, 1]])
    levels = np.ones(1, np.uint8)
    encode_rows(*key, grouped, tasks, np.array([0, 1]), *axis, levels, np.ones(1, np.uint8))
    count_values(codes, np.array([0]), np.zeros(1, np.int64))
    encode_shared(*key, digests, codes, np.array([0]), np.ones(1, np.uint8), 0, *axis, levels.reshape(1, 1, 1))
    thresholds = phantom_thresholds(1, 1, 3)
    unsettled = np.zeros(1, np.int64)
    raise_by_phantoms(levels, data, phantom_table(thresholds, 1), unsettled)
    raise_unsettled(levels, data, unsettled, np.zeros(1, np.uint64), thresholds, 1)
