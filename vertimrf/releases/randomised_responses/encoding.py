"""The frequency-oracle baseline: every row by generalised randomised response (VertiMRF, 4.2).

All parties send a response for every row, in a secret order that they share, so that the server can
count pairs of responses. The number of rows is therefore public, and the guarantee is about
*replacing* one record.

Every id has a row. If its record does not fit, each of its responses is drawn from all values alike, so
that the number of rows says nothing of what records hold. Such a row costs no more than one that fits:
randomised responses to a value v that is itself drawn from all values alike have that law, since the
probabilities of a response, summed over v, are 1. So against any row x the rows' divergence is at most
the mean over v of that between the responses to x and to v, because divergences are jointly convex; and
that of two rows that fit is what :class:`.GRREvent` prices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from ...arrays import Bytes, Int32s, Words
from ...kernels.prf import fill_words, tail
from ..release import Side
from .parameters import RandomisedResponses


def respond(
    plan: RandomisedResponses,
    attributes: Sequence[int],
    digests: Words,
    codes: Int32s,
    key: bytes,
    entropy: Callable[[int], bytes],
) -> tuple[Bytes, ...]:
    """Randomise every value of a party's table, and sort the rows by their keyed digests.

    Args:
        plan: the public parameters.
        attributes: this party's attributes, by their place in ``plan.sizes``; the rows of the
            codes.
        digests: record digests [shape=(n,), uint64].
        codes: the records' values, -1 for a record that does not fit [shape=(d, n), int32].
        key: 16 bytes or more that all parties share and the server does not know; they set the
            order.
        entropy: returns a given number of unpredictable bytes.

    Returns:
        For each attribute, the responses [shape=(1, n), uint8].
    """
    k0, k1 = np.frombuffer(key[:16], "<u8").astype(np.uint64)
    words = np.empty(digests.size, np.uint64)
    fill_words(k0, k1, digests, digests.size, tail(0, 0), words)
    order = np.argsort(words, kind="stable")
    out = []
    for attribute, column in zip(attributes, codes, strict=True):
        size = plan.sizes[attribute]
        word = np.frombuffer(entropy(8 * digests.size), "<u8")
        other = np.frombuffer(entropy(8 * digests.size), "<u8")
        # Both probabilities are exact to about 2^-53, far below the accountant's grid.
        keep = (
            word < np.uint64(min(plan.unchanged(size) * 2.0**64, 2.0**64 - 2048))
            if size > 1
            else np.ones(word.size, bool)
        )
        shift = 1 + other % np.uint64(max(size - 1, 1))
        changed = (column.astype(np.uint64) + np.where(keep, np.uint64(0), shift)) % np.uint64(size)
        responses = np.where(column < 0, other % np.uint64(size), changed)
        out.append(responses.astype(np.uint8)[order][None])
    return tuple(out)


def encode(sketch: RandomisedResponses, side: Side) -> tuple[Bytes, ...]:
    """The tables of a party's groups (:meth:`.CrossPartyRelease.encode`)."""
    digests, codes = side.with_blanks()
    # Sorted by digest, so that the responses do not depend on the order of rows.
    order = np.argsort(digests, kind="stable")
    digests, codes = digests[order], np.ascontiguousarray(codes[:, order])

    def exact() -> bytes:
        return hashlib.blake2b(digests.tobytes() + codes.tobytes(), digest_size=32).digest()

    return respond(sketch, side.groups, digests, codes, side.key, side.noise.stream(exact))
