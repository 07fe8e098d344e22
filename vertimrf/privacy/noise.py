"""Noise: from OpenDP's samplers and the operating system's entropy; a fixed source exists for tests alone."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FixedNoise", "Noise", "SystemNoise"]

Integers = npt.NDArray[np.int64]

# Steps per sensitivity that scores are rounded to before a selection.
SCORE_STEPS = 1 << 20


class Noise(Protocol):
    """Where a party's privacy noise comes from."""

    @property
    def private(self) -> bool:
        """Whether a release made with it is private."""

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """Integer values of any shape plus independent discrete Gaussian noise of parameter ``sigma``."""

    def select(self, scores: npt.NDArray[np.float64], epsilon: float, sensitivity: float) -> int:
        """Exponential mechanism: index i with probability proportional to exp(epsilon * scores[i] / (2 * sensitivity)).

        Scores are finite, and one record moves each of them, up or down, by at most ``sensitivity``.
        """

    def random_bytes(self, count: int) -> bytes:
        """``count`` bytes that nobody can predict."""


class SystemNoise:
    """OpenDP's exact samplers, seeded by the operating system."""

    private = True

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """See :class:`Noise`; OpenDP's ``make_gaussian`` on integers samples the discrete Gaussian."""
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
        measure = space >> dp.m.then_gaussian(scale=float(sigma))
        flat = np.asarray(values, np.int64).ravel()
        return np.array(measure(flat.tolist()), np.int64).reshape(np.shape(values))

    def select(self, scores: npt.NDArray[np.float64], epsilon: float, sensitivity: float) -> int:
        """See :class:`Noise`; OpenDP's noisy maximum under zero-concentrated divergence adds Gumbel noise.

        Scores are rounded to whole steps of a millionth of the sensitivity, and the noise is for one step more, so that
        neither this rounding nor that of the sums behind the scores can make one record count for more than it should.
        """
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        scale = 2.0 * (SCORE_STEPS + 1) / epsilon
        measure = space >> dp.m.then_noisy_max(dp.zero_concentrated_divergence(), scale=scale)
        steps = np.rint(np.asarray(scores, np.float64) * (SCORE_STEPS / sensitivity))
        return int(measure(steps.astype(np.int64).tolist()))

    def random_bytes(self, count: int) -> bytes:
        """See :class:`Noise`."""
        return os.urandom(count)


class FixedNoise:
    """Repeatable noise, for tests: whatever is made with it is marked as not private.

    Args:
        seed: of the generator.
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """Rounded Gaussian noise."""
        noise = np.rint(self._rng.normal(0.0, sigma, np.shape(values))).astype(np.int64)
        return np.asarray(values, np.int64) + noise

    def select(self, scores: npt.NDArray[np.float64], epsilon: float, sensitivity: float) -> int:
        """See :class:`Noise`."""
        noise = self._rng.gumbel(size=len(scores)) * 2.0 * sensitivity / epsilon
        return int(np.argmax(np.asarray(scores) + noise))

    def random_bytes(self, count: int) -> bytes:
        """See :class:`Noise`."""
        return self._rng.bytes(count)


def _opendp() -> Any:
    """OpenDP with the features this module uses; loaded on first use because it takes a while."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp
