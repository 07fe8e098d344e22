"""Paillier's additively homomorphic encryption, on gmpy2.

Source: P. Paillier, "Public-key cryptosystems based on composite degree residuosity classes",
EUROCRYPT 1999. With a modulus n = pq, a plaintext m below n is encrypted as (1 + m n) r^n mod n^2.
The product of ciphertexts encrypts the sum of their plaintexts modulo n.

Two sources of the random factor r^n, which hides the plaintext:

* Everybody: r is uniform among the units modulo n (:meth:`PublicKey.encrypt`). A ciphertext is then
  uniform among all ciphertexts of its plaintext, and so is its product with any other ciphertext.
  Even to the holder of the private key, such a product shows its plaintext and nothing else. IND-CPA
  rests on Paillier's assumption alone: n-th residues modulo n^2 cannot be told from other units.
* The holder of the private key, for its rows: (h^n)^e with h = -x^2 mod n, a random unit x and a
  random exponent e of 512 bits, from tables of powers (:class:`Masks`). Source: I. Damgård, M.
  Jurik and J. Nielsen, "A generalization of Paillier's public-key system with applications to
  electronic voting", International Journal of Information Security 9, 2010. Their conditions are
  p = q = 3 mod 4 and gcd(p - 1, q - 1) = 2. Then the units with Jacobi symbol 1 are a cyclic group,
  and h generates it, or a subgroup whose index divides (p - 1)(q - 1) / 4. The restriction to that
  symbol costs nothing, since the symbol of a ciphertext does not depend on its plaintext. Their
  exponent has half as many bits as n, and then the powers of h look random if n is hard to factor
  (Goldreich and Rosen, Journal of Cryptology 16, 2003). A shorter exponent needs one more
  assumption: powers of h with random exponents of 512 bits cannot be told from those with exponents
  of full size. It is the usual one for short exponents (Koshiba and Kurosawa, PKC 2004). The best
  attack known is Pollard's kangaroo, in about 2^256 steps (van Oorschot and Wiener, EUROCRYPT
  1996). Here h is not even published.

Keys and random numbers come from the operating system.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import Bytes
from ...errors import MessageError, RunError
from ...files import container
from .packing import MODULUS_BITS

KIND = "private Paillier key"
# A modulus with a prime factor below this is refused.
SMALL = 1 << 16
# Rounds of the test of primes, of which 24 are BPSW (gmpy2's and GMP's documentation).
ROUNDS = 40
# One byte of the exponent for each row of a table of powers.
EXPONENT_BYTES = 64


def _gmpy2() -> Any:
    """The module gmpy2.

    Raises:
        RunError: it is not installed.
    """
    try:
        import gmpy2
    except ImportError:
        raise RunError(
            "Encrypted counts need gmpy2, which is not installed: pip install 'vertimrf[encrypted]'."
        ) from None
    return gmpy2


@dataclass(frozen=True)
class PublicKey:
    """A public key. :meth:`from_bytes` checks one that came from somebody else.

    Attributes:
        modulus: product of two primes of equal length.
    """

    modulus: int

    @cached_property
    def n(self) -> Any:
        """The modulus, for arithmetic."""
        return _gmpy2().mpz(self.modulus)

    @cached_property
    def square(self) -> Any:
        """The square of the modulus; ciphertexts are below it."""
        return self.n * self.n

    @property
    def ciphertext_bytes(self) -> int:
        """Bytes of a ciphertext."""
        return 2 * -(-self.modulus.bit_length() // 8)

    def to_bytes(self) -> bytes:
        """The modulus, little-endian."""
        return self.modulus.to_bytes(-(-self.modulus.bit_length() // 8), "little")

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> PublicKey:
        """Read and check a public key of somebody else.

        A modulus that passes may still have been made badly on purpose. Only its owner's privacy
        depends on that, except for answers to it: they hide nothing but their plaintexts if the
        modulus has no common divisor with (p - 1)(q - 1), which holds for primes of equal length.

        Args:
            data: the modulus, little-endian.
            where: whose key it is, for errors.

        Raises:
            MessageError: the modulus is of another size, even, prime, a power, or has a small
                factor.
        """
        gmpy2 = _gmpy2()
        n = gmpy2.mpz(int.from_bytes(data, "little"))
        wrong = ""
        if len(data) != MODULUS_BITS // 8 or n.bit_length() != MODULUS_BITS:
            wrong = f"its modulus has {n.bit_length()} bits instead of {MODULUS_BITS}"
        elif gmpy2.gcd(n, gmpy2.primorial(SMALL)) != 1:
            wrong = "its modulus has a small factor"
        elif gmpy2.is_power(n):
            wrong = "its modulus is a power"
        elif gmpy2.is_prime(n, ROUNDS):
            wrong = "its modulus is prime"
        if wrong:
            raise MessageError(
                f"{where} is no Paillier key of this version ({wrong}): ask for another."
            )
        return cls(int(n))

    def encrypt(self, plaintext: int) -> Any:
        """Encrypt a number with a fresh uniform factor.

        Args:
            plaintext: at least 0 and below the modulus.

        Returns:
            The ciphertext, uniform among all ciphertexts of the plaintext.
        """
        residue = _gmpy2().powmod(_random_unit(self.modulus), self.n, self.square)
        return (1 + plaintext * self.n) * residue % self.square

    def add(self, ciphertexts: Iterable[Any]) -> Any:
        """Product of ciphertexts, which encrypts the sum of their plaintexts."""
        product = _gmpy2().mpz(1)
        for ciphertext in ciphertexts:
            product = product * ciphertext % self.square
        return product

    def negated(self, ciphertext: Any) -> Any:
        """Inverse of a ciphertext, which encrypts the negative of its plaintext."""
        return _gmpy2().invert(ciphertext, self.square)

    def check(self, ciphertexts: Bytes, where: str) -> None:
        """Check that numbers are ciphertexts under this key.

        Args:
            ciphertexts: little-endian numbers [shape=(..., ciphertext bytes), uint8].
            where: what they are, for errors.

        Raises:
            MessageError: a number is 0, not below the square of the modulus, or not coprime to it.
        """
        product, wrong = _gmpy2().mpz(1), ciphertexts.shape[-1:] != (self.ciphertext_bytes,)
        for number in () if wrong else numbers(ciphertexts):
            wrong = wrong or not number < self.square
            product = product * number % self.n
        if wrong or _gmpy2().gcd(product, self.n) != 1:
            raise MessageError(
                f"{where} has a number that is no ciphertext under its Paillier key: have it sent again."
            )


@dataclass(frozen=True)
class PrivateKey:
    """A private key, which stays with its owner.

    Attributes:
        p: a prime, 3 modulo 4.
        q: another one of the same length; p - 1 and q - 1 have no common divisor but 2.
    """

    p: int = field(repr=False)
    q: int = field(repr=False)

    @classmethod
    def new(cls) -> PrivateKey:
        """Make a key pair from the operating system's entropy."""
        return cls._of_bits(MODULUS_BITS)

    @classmethod
    def _of_bits(cls, bits: int) -> PrivateKey:
        """Make a key pair of any even size; sizes but ``MODULUS_BITS`` are for tests."""
        while True:
            p, q = _random_prime(bits // 2), _random_prime(bits // 2)
            # As for RSA: primes close to each other are found by Fermat's method (FIPS 186-5,
            # appendix A.1.3).
            apart = abs(p - q) >> max(bits // 2 - 100, 0)
            if p != q and apart and math.gcd(p - 1, q - 1) == 2:
                return cls(p, q)

    @cached_property
    def public(self) -> PublicKey:
        """The public key."""
        return PublicKey(self.p * self.q)

    def to_bytes(self) -> bytes:
        """The content of a private file."""
        size = -(-self.p.bit_length() // 8)
        primes = b"".join(prime.to_bytes(size, "little") for prime in (self.p, self.q))
        return container.pack(
            KIND, {}, {"primes": np.frombuffer(primes, np.uint8).reshape(2, size)}
        )

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> PrivateKey:
        """Read the content of a private file.

        Args:
            data: the content.
            where: name of the file, for errors.

        Raises:
            MessageError: it is no private key, or damaged.
        """
        _, arrays = container.unpack(data, KIND, where)
        primes = arrays.get("primes", np.zeros((0, 0), np.uint8))
        if primes.shape != (2, MODULUS_BITS // 16):
            raise MessageError(f"{where} is no Paillier key of this version; make a new run.")
        p, q = (int.from_bytes(prime.tobytes(), "little") for prime in primes)
        if (p * q).bit_length() != MODULUS_BITS or math.gcd(p, q) > 1 or p & q & 3 != 3:
            raise MessageError(f"{where} is damaged; restore it from a backup, or make a new run.")
        return cls(p, q)

    @cached_property
    def _halves(self) -> tuple[tuple[Any, Any, Any], ...]:
        """By prime: the prime, its square, and the inverse of its (1 + n)^(prime - 1)."""
        gmpy2 = _gmpy2()
        p, q = gmpy2.mpz(self.p), gmpy2.mpz(self.q)
        # (1 + n)^(p - 1) = 1 + n (p - 1) modulo p^2, of which (x - 1) / p is -q modulo p.
        return (p, p * p, gmpy2.invert(-q, p)), (q, q * q, gmpy2.invert(-p, q))

    def decrypt(self, ciphertext: Any) -> int:
        """Decrypt by the Chinese remainder theorem (Paillier 1999, section 7).

        Args:
            ciphertext: coprime to the modulus, as :meth:`PublicKey.check` asks.

        Returns:
            The plaintext, at least 0 and below the modulus.
        """
        gmpy2 = _gmpy2()
        (p, m_p), (q, m_q) = (
            (prime, (gmpy2.powmod(ciphertext, prime - 1, square) - 1) // prime * inverse % prime)
            for prime, square, inverse in self._halves
        )
        return int(m_q + q * ((m_p - m_q) * gmpy2.invert(q, p) % p))


class Masks:
    """Random factors of ciphertexts, for the holder of the private key.

    They do not depend on any data. A factor must not be used twice: the quotient of two ciphertexts
    with the same factor shows the difference of their plaintexts.

    Args:
        private: the private key.
    """

    def __init__(self, private: PrivateKey) -> None:
        gmpy2, n = _gmpy2(), private.public.n
        h = -(_random_unit(private.public.modulus) ** 2) % n
        # Arithmetic modulo p^2 and q^2, each with half the digits of n^2, gives the same powers.
        (_, self._p2, _), (_, self._q2, _) = private._halves
        self._powers = [
            (square, _powers(gmpy2.powmod(h, n, square), square)) for square in (self._p2, self._q2)
        ]
        self._inverse = gmpy2.invert(self._q2, self._p2)

    def __call__(self) -> Any:
        """The next factor, an n-th residue modulo n^2."""
        gmpy2, exponent = _gmpy2(), secrets.token_bytes(EXPONENT_BYTES)
        halves = []
        for square, powers in self._powers:
            power = gmpy2.mpz(1)
            for row, digit in zip(powers, exponent, strict=True):
                power = power * row[digit] % square
            halves.append(power)
        at_p, at_q = halves
        return at_q + self._q2 * ((at_p - at_q) * self._inverse % self._p2)


def _powers(base: Any, square: Any) -> list[list[Any]]:
    """``base`` to the power of every byte at every place of an exponent, by place and byte."""
    out = []
    for _ in range(EXPONENT_BYTES):
        row = [base**0]
        for _ in range(255):
            row.append(row[-1] * base % square)
        base = row[-1] * base % square
        out.append(row)
    return out


def _random_unit(modulus: int) -> Any:
    """A uniform number below a modulus that has no common divisor with it."""
    gmpy2 = _gmpy2()
    while True:
        number = gmpy2.mpz(secrets.randbelow(modulus))
        if gmpy2.gcd(number, modulus) == 1:
            return number


def _random_prime(bits: int) -> int:
    """A uniform prime of so many bits that is 3 modulo 4, with its two highest bits set."""
    gmpy2 = _gmpy2()
    while True:
        candidate = secrets.randbits(bits) | 3 << (bits - 2) | 3
        if gmpy2.is_prime(candidate, ROUNDS):
            return candidate


def numbers(ciphertexts: Bytes) -> Iterable[Any]:
    """Ciphertexts as numbers, from little-endian bytes [shape=(..., ciphertext bytes), uint8]."""
    gmpy2, size = _gmpy2(), ciphertexts.shape[-1]
    data = ciphertexts.tobytes()
    return (
        gmpy2.mpz(int.from_bytes(data[at : at + size], "little"))
        for at in range(0, len(data), size)
    )


def as_bytes(ciphertexts: Iterable[Any], size: int) -> Bytes:
    """Numbers as little-endian bytes [shape=(ciphertexts, size), uint8]."""
    data = b"".join(int(ciphertext).to_bytes(size, "little") for ciphertext in ciphertexts)
    return np.frombuffer(data, np.uint8).reshape(-1, size)
