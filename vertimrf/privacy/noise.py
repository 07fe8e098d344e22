"""Noise: from OpenDP's samplers and the operating system's entropy; a fixed source exists for tests alone."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["FixedNoise", "Noise", "SystemNoise"]

Integers = npt.NDArray[np.int64]
# How cells are shared out to threads: the sampler takes some 15 microseconds for each, and lets go of the GIL.
CELLS_A_PART, PARTS_A_THREAD = 256, 4


class Noise(Protocol):
    """Where a party's privacy noise comes from."""

    @property
    def private(self) -> bool:
        """Whether a release made with it is private."""

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """Integer values of any shape plus independent discrete Gaussian noise of parameter ``sigma``."""

    def random_bytes(self, count: int) -> bytes:
        """``count`` bytes that nobody can predict."""


class SystemNoise:
    """OpenDP's exact samplers, seeded by the operating system.

    Args:
        threads: that share the cells of a marginal.
    """

    private = True

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """See :class:`Noise`; OpenDP's ``make_gaussian`` on integers samples the discrete Gaussian."""
        measurements, domains, metrics = _opendp()
        space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l2_distance(T="i64")
        measure = space >> measurements.then_gaussian(scale=float(sigma))
        flat = np.asarray(values, np.int64).ravel()
        parts = np.array_split(flat, max(min(PARTS_A_THREAD * self._threads, flat.size // CELLS_A_PART), 1))
        with ThreadPoolExecutor(self._threads) as pool:
            drawn = list(pool.map(lambda part: np.array(measure(part.tolist()), np.int64), parts))
        return np.concatenate(drawn).reshape(np.shape(values))

    def geometric(self, value: int, scale: float) -> int:
        """An integer plus two-sided geometric noise, P(x) proportional to exp(-|x| / scale).

        No plan has it; it protects the one count that a plan may be made from. (OpenDP's ``make_laplace`` on integers.)
        """
        measurements, domains, metrics = _opendp()
        space = domains.atom_domain(T="i64"), metrics.absolute_distance(T="i64")
        return int((space >> measurements.then_laplace(scale=float(scale)))(value))

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

    def random_bytes(self, count: int) -> bytes:
        """See :class:`Noise`."""
        return self._rng.bytes(count)


def _opendp() -> tuple[Any, Any, Any]:
    """OpenDP's measurements, domains and metrics; loaded on first use, and without its prelude, which loads scikit-learn."""
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    return measurements, domains, metrics
