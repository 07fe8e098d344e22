"""Privacy noise: a pseudo-random function of a key and of the exact values to which it is added.

The key of a draw is HMAC-SHA512, under the noise key, of SHA-256 over all draws so far. Each draw
enters with its law, its parameter and SHA-256 of its values. (RFC 6979 derives the nonce of a
signature from its message in this way.) This has two consequences:

* The same key and values always give the same noise. A release that is made again, from a copy or a
  backup, has the same bytes.
* Different values give independent noise. The difference of two releases reveals nothing.

To anyone without the key, the noise is random as far as HMAC and ChaCha20 are pseudo-random
functions and SHA-256 has no collisions.

A party derives its noise key from its private key, the plan and its whole table
(``party/party.py``). Without a private key, the operating system provides a fresh one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable

import numpy as np

from ..arrays import Integers, Integral
from .sampler import Stream, discrete_gaussian, exponential_choice, two_sided_geometric


class KeyedNoise:
    """Noise under a key: the source of the privacy noise of a party.

    Args:
        key: secret key of one release, or of one search for domains [32 bytes].

    Attributes:
        private: whether a release made with this noise is private.
    """

    private = True

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._draws = hashlib.sha256(b"vertimrf noise 1")

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """Add independent discrete Gaussian noise to integers [any shape, int64]."""
        return self._added(discrete_gaussian, "gaussian", values, sigma)

    def geometrics(self, values: Integers, scale: float) -> Integers:
        """Add independent two-sided geometric noise to integers [any shape, int64].

        P(x) is proportional to exp(-|x| / scale).
        """
        return self._added(two_sided_geometric, "geometric", values, scale)

    def choose(self, scores: Integers, scale: float) -> int:
        """Choose a candidate: P(candidate) is proportional to exp(score / scale).

        Args:
            scores: a score for each candidate [shape=(candidates,), int64].
            scale: of the scores, above 0 (:class:`vertimrf.privacy.choice.ChoiceEvent`).

        Returns:
            Index of the chosen candidate.

        Raises:
            PrivacyError: there is no candidate, or the scale is out of range.
        """
        exact = np.ascontiguousarray(scores, np.int64)
        return exponential_choice(self._draw("choice", scale, exact), exact, scale)

    def name(self) -> str:
        """A random text that names a release, the same for a repeated one [16 characters]."""
        return self.stream(lambda: b"name of a release")(8).hex()

    def stream(self, exact: Callable[[], bytes]) -> Callable[[int], bytes]:
        """A function that returns random bytes for noise on values whose digest ``exact`` gives."""
        return self._draw("bytes", 0.0, np.frombuffer(exact(), np.uint8)).take

    def _added(
        self, draw: Callable[..., Integers], law: str, values: Integers, parameter: float
    ) -> Integers:
        """Integers plus independent draws from a law."""
        exact = np.ascontiguousarray(values, np.int64)
        drawn = draw(self._draw(law, parameter, exact), exact.size, parameter)
        return exact + drawn.reshape(exact.shape)

    def _draw(self, law: str, parameter: float, exact: Integral) -> Stream:
        """The random stream of the next draw."""
        what = repr((law, float(parameter).hex(), exact.shape)).encode()
        values = exact.astype(exact.dtype.newbyteorder("<"), copy=False)
        # Two digests of fixed length per draw make the sequence of draws unambiguous.
        self._draws.update(hashlib.sha256(what).digest() + hashlib.sha256(values.data).digest())
        return Stream(hmac.digest(self._key, self._draws.digest(), "sha512"))


class SystemNoise(KeyedNoise):
    """Noise under a fresh key from the operating system."""

    def __init__(self) -> None:
        super().__init__(os.urandom(32))

    def stream(self, exact: Callable[[], bytes]) -> Callable[[int], bytes]:
        """See :class:`KeyedNoise`. Nobody can make a fresh key's noise again, so its values do not matter."""
        return super().stream(lambda: b"")


class FixedNoise(KeyedNoise):
    """Noise under a public key, for tests. Everything made with it is marked as not private.

    Args:
        seed: determines the key.
    """

    private = False

    def __init__(self, seed: int) -> None:
        super().__init__(hashlib.sha256(b"vertimrf fixed noise %d" % seed).digest())
