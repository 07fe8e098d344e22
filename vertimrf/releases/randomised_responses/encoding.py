"""The frequency-oracle baseline: every row by generalised randomised response (VertiMRF, 4.2).

All parties send a response for every row, in a secret order that they share, so that the server can
count pairs of responses. The number of rows is therefore public, and the guarantee is about
*replacing* one record.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...arrays import Bytes, Codes, Floats, Words
from ...kernels.prf import fill_words, tail
from ..release import Side
from .parameters import RandomisedResponses


def respond(
    plan: RandomisedResponses,
    attributes: Sequence[int],
    digests: Words,
    codes: Codes,
    key: bytes,
    entropy: Callable[[int], bytes],
) -> tuple[Bytes, ...]:
    """Randomise every value of a party's table, and sort the rows by their keyed digests.

    Args:
        plan: the public parameters.
        attributes: this party's attributes, by their place in ``plan.sizes``; the rows of the
            codes.
        digests: record digests [shape=(n,), uint64].
        codes: the records' values [shape=(d, n), uint16].
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
            word < np.uint64(min(plan.kept(size) * 2.0**64, 2.0**64 - 2048))
            if size > 1
            else np.ones(word.size, bool)
        )
        shift = 1 + other % np.uint64(max(size - 1, 1))
        changed = (column.astype(np.uint64) + np.where(keep, np.uint64(0), shift)) % np.uint64(size)
        out.append(changed.astype(np.uint8)[order][None])
    return tuple(out)


def count_marginal(
    plan: RandomisedResponses, attributes: Sequence[int], responses: Sequence[Bytes]
) -> tuple[Floats, Floats]:
    """Estimate a marginal's counts without bias, and their errors (FO-based CarEst, section 4.2).

    The paper inverts one transition matrix over all tuples of values. It is a Kronecker product of
    one matrix (p - q) I + q J for each attribute, so that its inverse is taken axis by axis, with a
    subtraction and a division.

    The table is fixed and only the responses are random. So the count of a cell v has the exact
    variance

        sum over tuples x of T(x) prod_i K_i(v_i, x_i) - T(v),

    where K_i(v, x) is the second moment of the inverse's entry (v, y) over the responses y to x.
    Its unbiased estimate uses the estimated counts for T, and is kept above the least value that
    any table of n rows has.

    Args:
        plan: the public parameters.
        attributes: at least one, by their place in ``plan.sizes``, each once.
        responses: to the same records, of each attribute, checked [each shape=(1, n) or (n,), uint8].

    Returns:
        Counts, which may be negative, and standard errors, at least that of rounding to whole
        records [both shape=(values of attribute 1, ..., values of attribute l), float64].
    """
    shape = tuple(plan.sizes[attribute] for attribute in attributes)
    flat = np.zeros(responses[0].size, np.int64)
    for size, column in zip(shape, responses, strict=True):
        flat *= size
        flat += column.ravel()
    counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    for axis, size in enumerate(shape):
        kept, other = _probabilities(plan, size)
        counts = (counts - other * counts.sum(axis=axis, keepdims=True)) / (kept - other)
    variance = counts
    least, least_alone = 1.0, 1.0
    for axis, size in enumerate(shape):
        same, different = _second_moments(plan, size)
        variance = (same - different) * variance + different * variance.sum(
            axis=axis, keepdims=True
        )
        least, least_alone = least * min(same, different), least_alone * same
    variance = np.maximum(variance - counts, flat.size * min(least, least_alone - 1))
    return counts, np.sqrt(np.maximum(variance, 1 / 12))


def _probabilities(plan: RandomisedResponses, size: int) -> tuple[float, float]:
    """Probability of the true response, and of each other one."""
    kept = plan.kept(size)
    return (kept, (1 - kept) / (size - 1)) if size > 1 else (1.0, 0.0)


def _second_moments(plan: RandomisedResponses, size: int) -> tuple[float, float]:
    """E[g(v, y)^2] over the responses y to v, and to another value; g is the inverse's entry."""
    kept, other = _probabilities(plan, size)
    on, off = (1 - other) / (kept - other), -other / (kept - other)
    return on**2 * kept + off**2 * (1 - kept), on**2 * other + off**2 * (1 - other)


def encode(sketch: RandomisedResponses, side: Side) -> tuple[Bytes, ...]:
    """The tables of a party's groups (:meth:`.CrossPartyRelease.encode`)."""
    digests, codes = side.gathered()
    # Sorted by digest, so that the responses do not depend on the order of rows.
    order = np.argsort(digests, kind="stable")
    digests, codes = digests[order], np.ascontiguousarray(codes[:, order])
    exact = hashlib.blake2b(digests.tobytes() + codes.tobytes(), digest_size=32).digest()
    return respond(sketch, side.groups, digests, codes, side.key, side.noise.stream(exact))
