r"""Encryption of counts by ring learning with errors (RLWE): the scheme, its proof, its parameters.

R is Z[x] / (x^N + 1), R_q is R modulo q, and q is a product of primes. For a polynomial b, b[k]
stands for the constant coefficient of x^k b; for c in R, the constant coefficient of b c is the sum
of b[k] c_k. A packer has secrets s_1, s_2, ... in R, one for each slot, with coefficients -1, 0, 1.

**The scheme**

1. *Encrypt.* Rows come in blocks of N. For block B = 1, 2, ... and slot c the packer sends

       b_Bc[k] = (a_B s_c + e_Bc)[k] + Delta m_Bc,k        for k = 0, ..., N - 1,

   where m_Bc,k is what row k has in the slot's counters, a_B is expanded from a public seed, and
   the coefficients of e_Bc are errors. Block 0 is made in this way and has no rows (m = 0). Every
   call takes a new seed and new errors, so that the same secrets may encrypt again.
2. *Select.* For a sum, the selector has a weight u_k in {-1, 0, 1} for each row, and counters M_c >=
   0 that hold its own discrete Gaussian noise and an offset. It draws r with coefficients -1, 0, 1,
   errors f, and uniform integers g_c in [0, 2^G), all new for each sum, and answers

       A    = sum_B u_B a_B + r a_0 + f,
       y_c  = sum_B,k u_B,k b_Bc[k] + sum_k r_k b_0c[k] + Delta M_c + H + g_c     (modulo q).

   A sum of coefficients of many polynomials is one sample of LWE: Chillotti, Gama, Georgieva and
   Izabachène (Journal of Cryptology 33, 2020, "sample extraction"). r a_0 + f with the
   r-fold of block 0 is an encryption of zero under a public key: Lyubashevsky, Peikert and Regev
   (EUROCRYPT 2010; "A toolkit for ring-LWE cryptography", EUROCRYPT 2013, section 8.2). g_c is the
   flooding that hides errors: Asharov, Jain, López-Alt, Tromer, Vaikuntanathan and Wichs (EUROCRYPT
   2012), who state the lemma below.
3. *Open.* The constant coefficient of A s_c is subtracted, and floor(. / Delta) taken:

       y_c - (A s_c)[0] = Delta (M_c + sum_B,k u_B,k m_Bc,k) + H + g_c + E_c,
       E_c = sum_B,k u_B,k (e_Bc)[k] + (r e_0c)[0] - (f s_c)[0].

**No sum wraps.** Errors are at most 21 in absolute value (below). So |E_c| <= H = 21 (n + 2N) for a
capacity of n rows, with certainty, and H + g_c + E_c lies in [0, 2^G + 2H). The layout
(:mod:`.packing`) has 2^G + 2H <= Delta, and counters whose sum with all rows and the largest noise
stays below 2^w each, w bits apart, k of them in a slot, with Delta 2^(kw) <= q. So the floor is M_c
plus the sum of rows exactly, and what it drops is H + g_c + E_c. That holds up to n = 2^24 rows and
beyond (tests: `test_packing.py`).

**Statement.** Let neighbours be tables that differ in one record's values at one party (values or a
blank), and fix what all others hold. The view of any coalition of the server and other parties, all
following the protocol, is computationally (epsilon, delta + d)-differentially private, where
(epsilon, delta) is the ledger's for the Gaussian noise that the coalition does not know, and d = (1 +
e^epsilon) 2^-40, which the ledger leaves out. More exactly, the view is indistinguishable from a
function of the noisy counts and the coalition's own tables and randomness (SIM-CDP: Mironov, Pandey,
Reingold and Vadhan, CRYPTO 2009). Noise itself is pseudo-random (:mod:`vertimrf.privacy.noise`).

*Proof*, for a party P outside the coalition.

* P is a *selector*. The coalition has the packer: secrets, errors, rows, a_B, a_0.
  H0: the answers as they are. y_c is (A s_c)[0] + Delta (noisy counts) + H + g_c + E_c modulo q.
  H1: E_c is left out. g_c is independent of everything else. A uniform number in [0, 2^G) and the
  same number plus a constant E are at statistical distance |E| / 2^G. Given u, the three parts of
  E_c have mean 0 and are uncorrelated, because errors are symmetric and independent of the weights.
  So the mean of |E_c| is at most the root of 10.5 (n + 2N). H0 and H1 differ by at most (sums)
  (slots) root(10.5 (n + 2N)) / 2^G, which the layout keeps below 2^-43 for a packer and all its
  selectors, and so below 2^-40 for a run: there are at most seven packers.
  H2: A is uniform. r and f of a sum occur in A alone now, as r a_0 + f, where a_0 is uniform and
  public: RLWE with a small secret (the normal form: Applebaum, Cash, Peikert and Sahai, CRYPTO 2009).
  Sums have one a_0 and secrets of their own: one hybrid for each (Peikert, Vaikuntanathan and Waters,
  CRYPTO 2008, for LWE). The sum over u_B a_B is independent of r and f, so A is uniform.
  The view of H2 is a function of noisy counts: draw A and g_c, and write down y_c. What the packer
  drops when it rounds is H + g_c, which depends on nothing.
* P is a *packer*. The coalition has the selector, which knows u, r, f, g and its own noise.
  H3: P takes what it publishes from the tables, and not from the answers. Nothing changes, because
  the floor is exact with certainty, for every choice of all randomness. The secrets now occur in
  step 1 alone.
  H4: b_Bc is uniform for all B and one c after another. (a_B, a_B s_c + e_Bc) are RLWE samples under
  one s_c; whoever tells the difference solves RLWE, since it can make the other slots itself. Now
  rows are hidden by uniform numbers: nothing depends on the table but published counts, which have
  P's noise.
* P is both: the hybrids of all its answers, and then those of its rows. A second answer to the same
  rows has the same Gaussian noise and new r, f, g, and counts again in H1 and H2. Between parties
  outside the coalition, both views are P's, and less is known.

a_B is SHAKE-128 of a seed, as in FIPS 203, which is taken for a random function; neither party can
choose it. All other randomness is one stream of ChaCha20 under a key from the operating system, for
each file. Secrets are another, under the private key. Nothing is taken modulo a number that does
not divide the range: residues and thirds are drawn by rejection, 2^G is a power of two.

**Parameters.** N = 8192, ternary secrets, and log2 q < 155 with errors of standard deviation 3.24. 128
bits of security need log2 q <= 218 by the Homomorphic Encryption Standard (Albrecht et al., 2018,
table 1), 214 by Bossuat et al., "Security guidelines for implementing homomorphic encryption" (IACR
Communications in Cryptology 1(4), 2024), and 161 by their table for quantum computers. Both are for
errors of standard deviation 3.19. Errors are the ones among 21 bits less the ones among 21 others,
as in SEAL: Alkim, Ducas, Pöppelmann and Schwabe (USENIX Security 2016) show why a centred binomial
may take the place of a Gaussian. A secret has at most 2,049 samples; attacks that gain from more
than 2N of them (Arora and Ge, ICALP 2011) need far more at this width.

**What is not proved.** A party that departs from the protocol may read rows, as under any additive
encryption: it marks them (`benchmarks/attacks/deviation.py`). Polynomials with few values, whose
products tell weights at a glance, are refused; that keeps accidents out, not enemies.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import Bytes, Integers
from ...errors import MessageError
from ...files import container
from ...kernels.jit import in_slices
from ...kernels.ring import add_products, centred_binomial, constants, order_of_powers, weigh
from ...privacy.sampler import Stream
from .packing import PRIMES, SEED, N, Q

Residues = npt.NDArray[np.uint32]
Small = npt.NDArray[np.int8]

KIND = "private key of encrypted counts"
# So many coefficients of a polynomial equal the one before it with a chance below 2^-150.
MOST_REPEATED = 8
# Fewest transforms worth a thread.
SHARE = 8


class Ring(NamedTuple):
    """Tables of the ring, for kernels.

    Attributes:
        moduli: the primes [shape=(primes,), uint32].
        roots, inverses: powers of a root of x^N + 1 and of its inverse, in the kernels' order
            [shape=(primes, N), uint32].
        multiples, inverse_multiples: their companions (:func:`companions`).
        scales: 1 / N and its companion [shape=(primes, 2), uint32].
        one: the transform of the polynomial 1 [shape=(primes, N), uint32].
        one_multiples: its companions.
    """

    moduli: Residues
    roots: Residues
    multiples: Residues
    inverses: Residues
    inverse_multiples: Residues
    scales: Residues
    one: Residues
    one_multiples: Residues


@cache
def ring() -> Ring:
    """The tables, made on first use."""
    order = order_of_powers(N).tolist()
    powers: list[tuple[list[int], list[int]]] = []
    for q in PRIMES:
        some = (pow(x, (q - 1) // (2 * N), q) for x in range(2, q))
        root = next(one for one in some if pow(one, N, q) == q - 1)
        powers.append((_powers(root, order, q), _powers(pow(root, -1, q), order, q)))
    roots, inverses = (np.array(some, np.uint32) for some in zip(*powers, strict=True))
    scales = np.array([[pow(N, -1, q)] for q in PRIMES], np.uint32)
    one = np.ones((len(PRIMES), N), np.uint32)
    return Ring(
        np.array(PRIMES, np.uint32),
        roots,
        companions(roots),
        inverses,
        companions(inverses),
        np.concatenate([scales, companions(scales)], 1),
        one,
        companions(one),
    )


def _powers(root: int, order: list[int], q: int) -> list[int]:
    """Powers of a root in a given order of exponents."""
    out = [1]
    for _ in order[1:]:
        out.append(out[-1] * root % q)
    return [out[i] for i in order]


def companions(residues: Residues) -> Residues:
    """floor(2^32 x / p), by which kernels multiply by x [shape=(primes, any), uint32]."""
    moduli = np.array(PRIMES, np.uint64)[:, None]
    return ((residues.astype(np.uint64) << np.uint64(32)) // moduli).astype(np.uint32)


def public_polynomial(seed: bytes, block: int) -> Residues:
    """The uniform polynomial of a block, by its values at the roots.

    Args:
        seed: the packer's public seed [32 bytes].
        block: number of the block.

    Returns:
        [shape=(primes, N), uint32]
    """
    out = np.empty((len(PRIMES), N), np.uint32)
    for row, q in zip(out, PRIMES, strict=True):
        hashed = hashlib.shake_128(b"vertimrf a %d %d " % (block, q) + seed)
        length = N + N // 16
        kept = np.empty(0, np.uint32)
        while kept.size < N:
            words = np.frombuffer(hashed.digest(4 * length), "<u4") & np.uint32((1 << 31) - 1)
            kept, length = words[words < q], 2 * length
        row[:] = kept[:N]
    return out


class Randomness:
    """Secret random numbers, each used once.

    Args:
        key: key of these numbers only [64 bytes]; None takes one from the operating system.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._stream = Stream(os.urandom(64) if key is None else key)

    def thirds(self, *shape: int) -> Small:
        """Uniform numbers among -1, 0 and 1: bytes below 255 modulo 3."""
        out, done = np.empty(math.prod(shape), np.int8), 0
        while done < out.size:
            some = np.frombuffer(self._stream.take(out.size - done + 64), np.uint8)
            some = some[some < 255][: out.size - done] % 3
            out[done : done + some.size] = some.astype(np.int8) - 1
            done += some.size
        return out.reshape(shape)

    def errors(self, *shape: int) -> Small:
        """Centred binomial numbers of 21 coins."""
        out = np.empty(math.prod(shape), np.int8)
        words = np.frombuffer(self._stream.take(8 * out.size), "<u8")
        centred_binomial(words.astype(np.uint64), out)
        return out.reshape(shape)

    def integers(self, count: int, bits: int) -> list[int]:
        """Uniform integers of so many bits."""
        size = -(-bits // 8)
        data = self._stream.take(count * size)
        return [
            int.from_bytes(data[at : at + size], "little") & ((1 << bits) - 1)
            for at in range(0, len(data), size)
        ]


def new_seed() -> bytes:
    """A seed from the operating system's entropy [32 bytes]."""
    return os.urandom(SEED)


@dataclass(frozen=True)
class PrivateKey:
    """A packer's private key, which stays with its owner.

    Attributes:
        seed: from the operating system [32 bytes].
    """

    seed: bytes = field(repr=False)

    @classmethod
    def new(cls) -> PrivateKey:
        """Make a key from the operating system's entropy."""
        return cls(new_seed())

    def secrets(self, slots: int) -> Small:
        """The secrets of so many slots [shape=(slots, N), int8]."""
        keys = (hmac.digest(self.seed, b"slot %d" % c, "sha512") for c in range(slots))
        return np.array([Randomness(key).thirds(N) for key in keys])

    def to_bytes(self) -> bytes:
        """The content of a private file."""
        return container.pack(KIND, {}, {"seed": np.frombuffer(self.seed, np.uint8)})

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
        seed = arrays.get("seed", np.zeros(0, np.uint8))
        if seed.shape != (SEED,) or seed.dtype != np.uint8:
            raise MessageError(f"{where} is damaged; restore it from a backup, or make a new run.")
        return cls(seed.tobytes())


def added(total: Residues, small: Small, factor: Residues) -> None:
    """Add products of small polynomials by one factor to sums, all by values at the roots.

    Args:
        total: the sums, which change [shape=(polynomials, primes, N), uint32].
        small: coefficients [shape=(polynomials, N), int8].
        factor: values of the factor [shape=(primes, N), uint32].
    """
    tables, multiples = ring(), companions(factor)

    def add(begin: int, end: int) -> None:
        given = (small, factor, multiples, tables.roots, tables.multiples, tables.moduli)
        add_products(*given, begin, end, total)

    in_slices(len(small) * len(PRIMES), SHARE, add)


def transformed(small: Small) -> Residues:
    """Values of small polynomials at the roots [shape=(polynomials, primes, N), uint32]."""
    out = np.zeros((len(small), len(PRIMES), N), np.uint32)
    added(out, small, ring().one)
    return out


def with_errors(values: Residues, errors: Small, factor: Residues | None = None) -> Residues:
    """Products of polynomials by a factor, plus errors: b[k] for every k of each product b.

    Args:
        values: values of the polynomials at the roots [shape=(polynomials, primes, N), uint32].
        errors: one for every coefficient [shape=(polynomials, N), int8].
        factor: values of the factor [shape=(primes, N), uint32]; None means 1.

    Returns:
        [shape=(polynomials, primes, N), uint32]
    """
    tables, out = ring(), np.empty_like(values)
    by, multiples = tables.one, tables.one_multiples
    if factor is not None:
        by, multiples = factor, companions(factor)

    def multiply(begin: int, end: int) -> None:
        inverses = (tables.inverses, tables.inverse_multiples, tables.scales, tables.moduli)
        constants(values, by, multiples, errors, *inverses, begin, end, out)

    in_slices(len(values) * len(PRIMES), SHARE, multiply)
    return out


def weighed(weights: Small, rows: Residues) -> Integers:
    """Sums of rows with weights -1, 0 and 1.

    Args:
        weights: [shape=(sums, N), int8].
        rows: [shape=(polynomials, primes, N), uint32].

    Returns:
        [shape=(sums, polynomials, primes), int64], modulo the primes.
    """
    flat = rows.reshape(-1, N)
    out = np.empty((len(weights), len(flat)), np.int64)
    in_slices(len(flat), SHARE, lambda begin, end: weigh(weights, flat, begin, end, out))
    sums: Integers = out.reshape(len(weights), *rows.shape[:2]) % np.array(PRIMES)
    return sums


def residues(numbers: Any) -> Integers:
    """Python's integers modulo the primes [shape=(..., primes), int64]."""
    exact = np.array(numbers, object)
    return np.stack([(exact % q).astype(np.int64) for q in PRIMES], -1)


def integers(found: Integers) -> list[int]:
    """Integers below Q of their residues [shape=(numbers, primes)] (Chinese remainder theorem)."""
    weights = [Q // q * pow(Q // q, -1, q) for q in PRIMES]
    return [
        sum(x * weight for x, weight in zip(row, weights, strict=True)) % Q
        for row in found.tolist()
    ]


def check_polynomials(polynomials: Residues, where: str) -> None:
    """Check another party's polynomials before anything is computed of them.

    Args:
        polynomials: [shape=(..., primes, N), uint32].
        where: what they are, for errors.

    Raises:
        MessageError: a coefficient is no residue, or a polynomial repeats coefficients.
    """
    check_residues(polynomials.swapaxes(-1, -2), where)
    if ((polynomials[..., 1:] == polynomials[..., :-1]).sum(-1) >= MOST_REPEATED).any():
        raise MessageError(f"{where} has a polynomial that is no ciphertext: have it sent again.")


def check_residues(numbers: Residues, where: str) -> None:
    """Check that numbers are below the primes [shape=(..., primes), uint32].

    Raises:
        MessageError: a number is not.
    """
    if (numbers >= ring().moduli).any():
        raise MessageError(f"{where} has a number that is no ciphertext: have it sent again.")


def as_bytes(numbers: Residues) -> Bytes:
    """Little-endian bytes [shape=(..., 4 times the last axis), uint8]."""
    return np.ascontiguousarray(numbers, "<u4").view(np.uint8)


def as_residues(data: Bytes) -> Residues:
    """The numbers of such bytes."""
    return np.ascontiguousarray(data).view("<u4").astype(np.uint32, copy=False)
