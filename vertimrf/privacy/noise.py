"""Privacy noise: a function of a key and of the exact numbers that it is added to.

The same key and the same numbers always give the same noise, so that a release which is made again, from a copy or a backup, is
the same bytes. Numbers that differ anywhere give noise that is independent, so that the difference of two releases shows
nothing: a draw's key is HMAC-SHA512, under the noise's key, of SHA-256 over all draws up to this one, each with its law, its
parameter and SHA-256 of its numbers. (RFC 6979 makes the nonce of a signature of its message in this way.) To whom the key is
unknown the noise is random as far as HMAC and ChaCha20 are pseudo-random functions and SHA-256 has no collisions.

A party's key comes from its private key, the plan and its whole table (``party/party.py``). Who has none takes a fresh one from
the operating system.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from .sampler import Stream, discrete_gaussian, two_sided_geometric

__all__ = ["FixedNoise", "KeyedNoise", "Noise", "SystemNoise"]

Integers = npt.NDArray[np.int64]


class Noise(Protocol):
    """Where a party's privacy noise comes from."""

    @property
    def private(self) -> bool:
        """Whether a release made with it is private."""

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """Integer values of any shape plus independent discrete Gaussian noise of parameter ``sigma``."""

    def geometrics(self, values: Integers, scale: float) -> Integers:
        """Integer values of any shape, each plus two-sided geometric noise, P(x) proportional to exp(-|x| / scale)."""

    def stream(self, exact: bytes) -> Callable[[int], bytes]:
        """A function that gives so many further random bytes, for noise that is added to what ``exact`` is a digest of."""


class KeyedNoise:
    """Noise under a key.

    Args:
        key: secret [32 bytes]; for one release, or one search for domains.
    """

    private = True

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._draws = hashlib.sha256(b"vertimrf noise 1")

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """See :class:`Noise`."""
        exact = np.ascontiguousarray(values, np.int64)
        drawn = discrete_gaussian(self._draw("gaussian", sigma, exact), exact.size, sigma)
        return exact + drawn.reshape(exact.shape)

    def geometrics(self, values: Integers, scale: float) -> Integers:
        """See :class:`Noise`."""
        exact = np.ascontiguousarray(values, np.int64)
        drawn = two_sided_geometric(self._draw("geometric", scale, exact), exact.size, scale)
        return exact + drawn.reshape(exact.shape)

    def stream(self, exact: bytes) -> Callable[[int], bytes]:
        """See :class:`Noise`."""
        return self._draw("bytes", 0.0, np.frombuffer(exact, np.uint8)).take

    def _draw(self, law: str, parameter: float, exact: npt.NDArray[np.integer]) -> Stream:
        """The stream of the next draw."""
        what = repr((law, float(parameter).hex(), exact.shape)).encode()
        numbers = exact.astype(exact.dtype.newbyteorder("<"), copy=False)
        # Two digests of fixed length a draw: no two sequences of draws read alike.
        self._draws.update(hashlib.sha256(what).digest() + hashlib.sha256(numbers.data).digest())
        return Stream(hmac.digest(self._key, self._draws.digest(), "sha512"))


class SystemNoise(KeyedNoise):
    """Noise under a fresh key from the operating system."""

    def __init__(self) -> None:
        super().__init__(os.urandom(32))


class FixedNoise(KeyedNoise):
    """Noise under a key that anybody knows, for tests: whatever is made with it is marked as not private.

    Args:
        seed: numbers the keys.
    """

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__(hashlib.sha256(b"vertimrf fixed noise %d" % seed).digest())
