"""The frequency-oracle baseline (VertiMRF, section 4.2): every row through generalised randomised response.

Both parties send as many rows as they hold, in an order that only they can tell, so that the server can count pairs of
responses. The number of rows is therefore public, and the guarantee is about *replacing* one record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .errors import PlanError
from .kernels.prf import fill_words, tail
from .privacy.events import GRREvent

__all__ = ["ResponsePlan", "count_pair", "respond"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ResponsePlan:
    """Public parameters of the randomised responses.

    Attributes:
        epsilon: local epsilon of each attribute.
        sizes: number of values of each attribute, of all parties; at most 16.

    Raises:
        PlanError: parameters that no response can have.
    """

    epsilon: float
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise PlanError(f"Randomised responses need an epsilon above 0, not {self.epsilon}.")
        for attribute, size in enumerate(self.sizes):
            if not 1 <= size <= 16:
                raise PlanError(f"Attribute {attribute} has {size} values; randomised responses take 1 to 16.")

    @property
    def event(self) -> GRREvent:
        """The privacy event of all responses of one record."""
        return GRREvent(self.epsilon, self.sizes)

    def kept(self, size: int) -> float:
        """Probability that a value out of ``size`` is reported as it is: e^eps / (e^eps + size - 1)."""
        return 1 / (1 + (size - 1) * math.exp(-self.epsilon))

    def claimed_epsilon(self, delta: float) -> float:
        """What the paper states for d attributes: the smaller of d eps / 2 and 2 eps sqrt(2 d log(1 / delta)) (Theorem 3).

        Its halves come from taking a replacement for two steps although the number of rows is published: the exact value of
        :attr:`event` at delta = 0 is d eps.
        """
        d = len(self.sizes)
        return min(d * self.epsilon / 2, 2 * self.epsilon * math.sqrt(2 * d * math.log(1 / delta)))


def respond(
    plan: ResponsePlan,
    attributes: Sequence[int],
    digests: npt.NDArray[np.uint64],
    codes: npt.NDArray[np.uint16],
    key: bytes,
    entropy: Callable[[int], bytes],
) -> tuple[npt.NDArray[np.uint8], ...]:
    """Randomise every value of a party's table, and put the rows into the order of their keyed digests.

    Args:
        plan: the public parameters.
        attributes: this party's attributes, by their place in ``plan.sizes``; the rows of the codes.
        digests: record digests [shape=(n,), uint64].
        codes: [shape=(d, n), uint16].
        key: 16 or more bytes that all parties share and the server does not know; gives the order.
        entropy: gives that many unpredictable bytes. Only the operating system's make the result private.

    Returns:
        Per attribute, the responses [shape=(1, n), uint8].
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
        # Both are exact to about 2^-53, far below what the accountant's grid resolves.
        keep = word < np.uint64(min(plan.kept(size) * 2.0**64, 2.0**64 - 2048)) if size > 1 else np.ones(word.size, bool)
        shift = 1 + other % np.uint64(max(size - 1, 1))
        changed = (column.astype(np.uint64) + np.where(keep, np.uint64(0), shift)) % np.uint64(size)
        out.append(changed.astype(np.uint8)[order][None])
    return tuple(out)


def count_pair(
    plan: ResponsePlan, left: int, right: int, responses: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]
) -> tuple[Floats, Floats]:
    """Unbiased counts of a pair of attributes, and their standard errors.

    Args:
        plan: the public parameters.
        left, right: the attributes, by their place in ``plan.sizes``.
        responses: theirs, row by row of the same records [shape=(1, n)].

    Returns:
        Two arrays [shape=(left values, right values), float64].
    """
    u, w = plan.sizes[left], plan.sizes[right]
    flat = responses[0].ravel().astype(np.int64) * w + responses[1].ravel()
    seen = np.bincount(flat, minlength=u * w).reshape(u, w).astype(np.float64)
    back_left, back_right = _inverse(plan, u), _inverse(plan, w)
    # Responses are multinomial: leaving their negative covariances out errs to the large side.
    variance = back_left**2 @ np.maximum(seen, 1.0) @ back_right.T**2
    return back_left @ seen @ back_right.T, np.sqrt(variance)


def _inverse(plan: ResponsePlan, size: int) -> Floats:
    """Inverse of the response matrix: p on the diagonal, q elsewhere, columns summing to 1 [shape=(size, size)]."""
    p = plan.kept(size)
    q = (1 - p) / max(size - 1, 1)
    return (np.eye(size) - q) / (p - q) if size > 1 else np.ones((1, 1))
