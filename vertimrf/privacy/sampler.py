"""Discrete Gaussian and two-sided geometric noise, and choices, drawn by inverting their distributions.

A draw is a function of one uniform number U in [0, 1). First, 64 bits of U are read. They determine
nearly every draw by a table in double precision, whose errors are far below the margin around each
of its thresholds. If U lies within a margin, 192 further bits of U are read and the thresholds are
computed to 100 digits. So a draw depends neither on the floating-point arithmetic of the machine
nor on the margin: it is the value given by 256 bits of U.

The total variation distance of one draw from the exact law is below 2^-230. It has three
sources: thresholds are rounded to 2^-256; the Gaussian is cut at 19 standard deviations; and wide
Gaussians are sums of narrow ones (:func:`discrete_gaussian`). 2^50 draws together add less than
2^-130 to delta at an epsilon of 30. This is far below what the accountant adds for rounding.
"""

from __future__ import annotations

import bisect
import hmac
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from ..arrays import Integers, Words
from ..errors import PrivacyError

FIRST_BITS, FURTHER_BYTES = 64, 24
BITS = FIRST_BITS + 8 * FURTHER_BYTES
DIGITS = 100
# Draws of larger scales might not fit in 64 bits.
MAX_SCALE = 2.0**56
# Gaussians up to this parameter are drawn from a table. A wider one is STEP times a narrower one
# plus one of parameter FINE.
MAX_TABLE, STEP, FINE = 256, 32, 128
# Standard deviations covered by the double-precision table (the rest lies within the margin) and by
# the exact one.
REACH, EXACT_REACH = 9, 19
# Margin around thresholds in double precision. Sums of at most 2^12 terms have errors below 2^-40.
MARGIN = 2.0**-38
# Relative and absolute margin for logarithms.
LOG_MARGIN = 2.0**-46
# Most candidates of a choice, and the margin around their cumulative probabilities.
MAX_CANDIDATES, CHOICE_MARGIN = 1 << 22, 2.0**-28


class Stream:
    """Uniform bits from ChaCha20 under a key, read once from the front.

    Args:
        key: key of this stream only [64 bytes].
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(ChaCha20(key[:32], bytes(16)), None).encryptor()
        self._further = key[32:]
        self._words = 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        return self._cipher.update(bytes(count))

    def words(self, count: int) -> tuple[Words, int]:
        """The next ``count`` words, and the index of the first one for :meth:`number`."""
        first = self._words
        self._words += count
        return np.frombuffer(self.take(8 * count), "<u8").astype(np.uint64, copy=False), first

    def number(self, word: int, place: int) -> int:
        """A word and its 192 further bits (HMAC-SHA256 of its index): U times 2^256."""
        more = hmac.digest(self._further, place.to_bytes(8, "little"), "sha256")[:FURTHER_BYTES]
        return word << (BITS - FIRST_BITS) | int.from_bytes(more, "little")


def discrete_gaussian(stream: Stream, count: int, sigma: float) -> Integers:
    """Independent draws of P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.

    A draw of parameter s above MAX_TABLE is STEP * Y + Z. Z has parameter FINE, and Y has parameter
    sqrt(s^2 - FINE^2) / STEP. The sum has the right law: P(STEP Y + Z = x) is exp(-x^2 / (2 s^2))
    times the sum over y of exp(-(y - c)^2 / (2 t^2)), for a c that depends on x, and t = FINE
    sqrt(s^2 - FINE^2) / (STEP s) > 3.4. By Poisson summation, that sum is the same for all c up to
    a relative difference of 2.1 exp(-2 pi^2 t^2) < 2^-330.

    Args:
        stream: source of uniform bits.
        count: number of draws.
        sigma: above 0, at most MAX_SCALE.

    Returns:
        Draws [shape=(count,), int64].

    Raises:
        PrivacyError: sigma lies outside this range.
    """
    _check_scale(sigma)
    return _gaussian(stream, count, Fraction(sigma) ** 2)


def _gaussian(stream: Stream, count: int, variance: Fraction) -> Integers:
    if variance <= MAX_TABLE**2:
        return _from_table(stream, count, variance)
    wide = _gaussian(stream, count, (variance - FINE**2) / STEP**2)
    return STEP * wide + _from_table(stream, count, Fraction(FINE**2))


def _from_table(stream: Stream, count: int, variance: Fraction) -> Integers:
    words, first = stream.words(count)
    low, high, reach = _thresholds(variance)
    # Number of thresholds that a word has certainly reached, and whether it may have reached
    # another.
    drawn = np.searchsorted(high, words, side="right")
    near = np.searchsorted(low, words, side="right") != drawn
    edge = np.uint64(int(MARGIN * 2**FIRST_BITS))
    near |= (words < edge) | (words > ~edge)
    out = drawn.astype(np.int64) - reach
    for i in np.flatnonzero(near).tolist():
        exact, exact_reach = _exact_thresholds(variance)
        out[i] = bisect.bisect_right(exact, stream.number(int(words[i]), first + i)) - exact_reach
    return out


@lru_cache(maxsize=64)
def _thresholds(variance: Fraction) -> tuple[Words, Words, int]:
    """P(X <= value) minus and plus the margin as words, and the negated lowest value.

    The words are for each value but the highest.
    """
    reach = math.ceil(REACH * math.sqrt(variance))
    mass = np.exp(-0.5 * np.arange(reach + 1, dtype=np.float64) ** 2 / float(variance))
    # P(X >= x) for x = 0 .. reach, unnormalised, summed from the smallest.
    above = np.cumsum(mass[::-1])[::-1]
    total = above[0] + above[1]
    below = np.concatenate([above[:0:-1], total - above[1:]]) / total
    low, high = (
        np.clip((below + margin) * 2.0**FIRST_BITS, 0.0, 2.0**FIRST_BITS - 2048)
        for margin in (-MARGIN, MARGIN)
    )
    return low.astype(np.uint64), high.astype(np.uint64), reach


@lru_cache(maxsize=16)
def _exact_thresholds(variance: Fraction) -> tuple[list[int], int]:
    """floor(2^256 P(X <= value)) for each value but the highest; and the lowest value, negated."""
    reach = math.ceil(EXACT_REACH * math.sqrt(variance)) + 1
    with localcontext() as context:
        context.prec = DIGITS
        # Masses of 0, 1, 2, ... relative to that of 0: 1, q, q^4, q^9, ... with q = exp(-1 / (2
        # variance)).
        power = (Decimal(-variance.denominator) / (2 * Decimal(variance.numerator))).exp()
        ratio = power * power
        masses = [Decimal(1)]
        for _ in range(reach):
            masses.append(masses[-1] * power)
            power *= ratio
        total, below, out = sum(masses) + sum(masses[1:]), Decimal(0), []
        for value in range(-reach, reach):
            below += masses[abs(value)]
            out.append(int(below / total * 2**BITS))
    return out, reach


def two_sided_geometric(stream: Stream, count: int, scale: float) -> Integers:
    """Independent draws of P(x) proportional to exp(-|x| / scale) on the integers.

    Each draw is the difference of two geometric draws.

    Args:
        stream: source of uniform bits.
        count: number of draws.
        scale: above 0, at most MAX_SCALE.

    Returns:
        Draws [shape=(count,), int64].

    Raises:
        PrivacyError: the scale lies outside this range.
    """
    _check_scale(scale)
    return _geometric(stream, count, scale) - _geometric(stream, count, scale)


def _geometric(stream: Stream, count: int, scale: float) -> Integers:
    """Geometric draws, P(G >= k) = exp(-k / scale), as floor(-scale log(U)) [shape=(count,)]."""
    words, first = stream.words(count)
    with np.errstate(divide="ignore"):
        least = -np.log((words.astype(np.float64) + 1) * 2.0**-FIRST_BITS) * scale
        most = -np.log(words.astype(np.float64) * 2.0**-FIRST_BITS) * scale
    low = np.floor(least * (1 - LOG_MARGIN) - LOG_MARGIN * scale)
    high = np.floor(most * (1 + LOG_MARGIN) + LOG_MARGIN * scale)
    settled = low == high
    out = np.where(settled, low, 0.0).astype(np.int64)
    for i in np.flatnonzero(~settled).tolist():
        out[i] = _exact_geometric(stream.number(int(words[i]), first + i), scale)
    return out


def _exact_geometric(number: int, scale: float) -> int:
    """The geometric draw of U = (number + 1/2) / 2^256."""
    with localcontext() as context:
        context.prec = DIGITS
        return int(-Decimal(scale) * (Decimal(2 * number + 1) / 2 ** (BITS + 1)).ln())


def exponential_choice(stream: Stream, scores: Integers, scale: float) -> int:
    """Choose a candidate with a probability proportional to exp(score / scale).

    In double precision a score's weight has a relative error below 2^-42, because weights whose
    logarithm is below -745 are 0; a cumulative sum of n weights has n 2^-53 more. Both are far below
    the margin. Within it, weights are computed to 100 digits.

    Args:
        stream: source of uniform bits.
        scores: a score for each candidate [shape=(n,), int64].
        scale: above 0, at most MAX_SCALE.

    Returns:
        Index of the chosen candidate.

    Raises:
        PrivacyError: there is no candidate, there are more than MAX_CANDIDATES, or the scale lies
            outside its range.
    """
    _check_scale(scale)
    if not 0 < scores.size <= MAX_CANDIDATES:
        raise PrivacyError(
            f"A choice is among 1 to {MAX_CANDIDATES:,} candidates, not {scores.size:,}; choose among fewer columns."
        )
    words, first = stream.words(1)
    below = (int(scores.max()) - scores).astype(np.float64)
    reached = np.cumsum(np.exp(-below / scale))
    uniform = (int(words[0]) + 0.5) * 2.0**-FIRST_BITS
    low, high = (
        int(np.searchsorted(reached, (uniform + margin) * reached[-1], side="right"))
        for margin in (-CHOICE_MARGIN, CHOICE_MARGIN)
    )
    if low == high < scores.size:
        return low
    return _exact_choice(stream.number(int(words[0]), first), scores.tolist(), scale)


def _exact_choice(number: int, scores: list[int], scale: float) -> int:
    """The choice of U = (number + 1/2) / 2^256."""
    with localcontext() as context:
        context.prec = DIGITS
        best, divisor = max(scores), Decimal(scale)
        reached = list(itertools.accumulate((Decimal(s - best) / divisor).exp() for s in scores))
        uniform = Decimal(2 * number + 1) / 2 ** (BITS + 1)
        return bisect.bisect_right(reached, uniform * reached[-1])


def _check_scale(scale: float) -> None:
    if not 0 < scale <= MAX_SCALE:
        raise PrivacyError(
            f"The noise scale must be above 0 and at most {MAX_SCALE:.3g}, not {scale}; choose another epsilon."
        )
