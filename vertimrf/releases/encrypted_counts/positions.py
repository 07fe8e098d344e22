"""Positions of records among encrypted rows, and the digest of a set of ids.

A position is the rank of a keyed digest of the record's id. Parties with the same ids and the same
key give every record the same position.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Int32s, Integral, Words
from ...kernels.multiset import record_sum


def place(values: Integral, digests: Words, capacity: int) -> Int32s:
    """Values by position: in the order of the records' digests, -1 where there is no record.

    Of more records than ``capacity``, those with the lowest digests are kept. They are a random
    sample, since the digests are keyed, and the same one at all parties with the same ids.

    Args:
        values: values of the records' groups, -1 for a blank [shape=(groups, n), integer].
        digests: keyed digests of the ids [shape=(n,), uint64].
        capacity: number of positions.

    Returns:
        [shape=(groups, capacity), int32]
    """
    out = np.full((len(values), capacity), -1, np.int32)
    kept = np.argsort(digests, kind="stable")[:capacity]
    out[:, : kept.size] = values[:, kept]
    return out


def population_digest(key: bytes, digests: Words) -> bytes:
    """A keyed digest of a set of ids [16 bytes].

    It is the same at two parties if they have the same ids, and with a chance of 2^-128 if not
    (:mod:`vertimrf.kernels.multiset`). Whoever has the key can try sets of ids against it, so it is
    shown to nobody: parties compare it hidden (:mod:`.comparison`).

    Args:
        key: key of the parties, for this purpose alone [at least 16 bytes].
        digests: keyed digests of the ids, in any order [shape=(n,), uint64].
    """
    return record_sum(key, digests, np.empty((0, digests.size), np.uint16)).to_bytes(16, "little")
