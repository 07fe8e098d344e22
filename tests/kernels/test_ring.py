"""Products of polynomials against Python's integers, for several sizes, primes and numbers of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vertimrf.kernels import jit
from vertimrf.kernels.ring import (
    add_marks,
    add_products,
    centred_binomial,
    constants,
    order_of_powers,
    weigh,
)
from vertimrf.releases.encrypted_counts import lattice

# Primes that are 1 modulo 256: a small one, and two of the most bits.
SMALL = (257, 2147483137, 2147477249)


def product(one, other, q):
    """A product modulo x^N + 1 and q: the coefficients stand in one integer each, far apart."""
    bits, size = 80, len(one)
    packed = [sum(int(x) << (bits * k) for k, x in enumerate(row)) for row in (one, other)]
    whole, mask = packed[0] * packed[1], (1 << bits) - 1
    digits = [whole >> (bits * k) & mask for k in range(2 * size)]
    return [(low - high) % q for low, high in zip(digits[:size], digits[size:], strict=True)]


def tables(size, primes):
    """Powers of a root and of its inverse with their companions, and 1 / N with its."""
    order, out = order_of_powers(size).tolist(), []
    for q in primes:
        some = (pow(x, (q - 1) // (2 * size), q) for x in range(2, q))
        root = next(x for x in some if pow(x, size, q) == q - 1)
        powers = [[pow(x, k, q) for k in order] for x in (root, pow(root, -1, q))]
        out.append([*powers, [pow(size, -1, q)]])
    columns = [np.array(column, np.uint32) for column in zip(*out, strict=True)]
    return [(column, companions(column, primes)) for column in columns]


def companions(numbers, primes):
    moduli = np.array(primes, np.uint64)[:, None]
    return ((numbers.astype(np.uint64) << np.uint64(32)) // moduli).astype(np.uint32)


def multiplied(small, factor, primes, errors):
    """Products by the kernels: the constant coefficients of x^k times each, plus errors."""
    size, moduli = small.shape[1], np.array(primes, np.uint32)
    roots, inverses, scales = tables(size, primes)
    one = np.ones((len(primes), size), np.uint32)
    values = np.zeros((len(small), len(primes), size), np.uint32)
    at = np.zeros((1, len(primes), size), np.uint32)
    # The factor's values: that of 1 times each of its parts below 2^7.
    for shift in range(0, 31, 7):
        part = (factor >> np.uint32(shift) & np.uint32(127)).astype(np.int8)
        power = np.array([[pow(2, shift, q)] * size for q in primes], np.uint32)
        for p, q in enumerate(primes):
            given = (a[p : p + 1] for a in (power, companions(power, primes), *roots))
            add_products(part[p : p + 1], *given, moduli[p : p + 1], 0, 1, at[:, p : p + 1])
            assert q == moduli[p]
    add_products(
        small, at[0], companions(at[0], primes), *roots, moduli, 0, len(small) * len(primes), values
    )
    out = np.empty_like(values)
    scaling = np.concatenate(scales, 1)
    constants(
        values, one, companions(one, primes), errors, *inverses, scaling, moduli, 0, len(small) * len(primes), out
    )  # fmt: skip
    return out


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_products_are_those_of_integers(data):
    size = data.draw(st.sampled_from([16, 32, 64, 128]))
    primes = data.draw(st.lists(st.sampled_from(SMALL), min_size=1, max_size=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    most = data.draw(st.sampled_from([0, 1, 127]))
    small = rng.integers(-most, most + 1, (2, size)).astype(np.int8)
    # Zeros, largest residues, and any.
    drawn = [[rng.integers(0, q, size), np.zeros(size, int), np.full(size, q - 1)] for q in primes]
    which = data.draw(st.integers(0, 2))
    factor = np.array([one[which] for one in drawn], np.uint32)
    errors = rng.integers(-21, 22, (2, size)).astype(np.int8)
    found = multiplied(small, factor, primes, errors)
    for c, row in enumerate(small):
        for p, q in enumerate(primes):
            b = product([int(x) % q for x in row], factor[p], q)
            wanted = [b[0], *(-b[size - k] for k in range(1, size))]
            assert found[c, p].tolist() == [
                (x + int(e)) % q for x, e in zip(wanted, errors[c], strict=True)
            ]


@pytest.mark.parametrize(
    "threads", [pytest.param(n, marks=pytest.mark.slow) if n == 2 else n for n in (1, 2, 3)]
)
def test_the_whole_ring_for_any_number_of_threads(threads):
    """A random polynomial times small ones, in coefficients of the product with 1 and with 1 + x."""
    rng = np.random.default_rng(5)
    small = rng.integers(-1, 2, (7, lattice.N)).astype(np.int8)
    values, none = lattice.public_polynomial(bytes(32), 3), np.zeros((7, lattice.N), np.int8)
    with jit.threads(threads):
        total = lattice.transformed(small)
        found = lattice.with_errors(total, none, values)
        factor = lattice.with_errors(values[None], none[:1])[0]
    for p, q in ((0, lattice.PRIMES[0]), (4, lattice.PRIMES[4])):
        a = [int(factor[p, 0]), *((-int(x)) % q for x in factor[p, :0:-1])]
        b = product([int(x) % q for x in small[6]], a, q)
        assert found[6, p].tolist() == [b[0], *((-x) % q for x in b[:0:-1])]


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_weighed_sums_are_exact(seed, several, size):
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (several, size)).astype(np.int8)
    rows = rng.integers(0, 2**32, (3, size)).astype(np.uint32)
    out = np.full((several, 3), -7)
    weigh(weights, rows, 1, 3, out)
    assert (out[:, 1:] == (weights.astype(object) @ rows[1:].astype(object).T)).all()
    assert (out[:, 0] == -7).all()


def test_marks_are_added_to_their_slots():
    primes = np.array([17, 257], np.uint32)
    out = np.array([[[3, 16, 5]] * 2, [[0, 0, 256]] * 2], np.uint32)
    out[1, 0, 2] = 16
    places = np.array([[0, 1, -1], [-1, 0, 1]])
    add_marks(places, np.array([0, 1]), np.array([[1, 2], [16, 256]], np.uint32), primes, out)
    assert out.tolist() == [[[4, 0, 5], [5, 18, 5]], [[0, 16, 15], [0, 256, 255]]]


def test_centred_binomials_are_the_coins_of_their_words():
    """Every word against its bits; and the law of 200,000: chi-square at 1e-6."""
    words = np.random.default_rng(0).integers(0, 2**64, 200_000, np.uint64)
    words[:3] = 0, 2**64 - 1, (1 << 21) - 1
    out = np.empty(words.size, np.int8)
    centred_binomial(words, out)
    half = (1 << 21) - 1
    for word, drawn in zip(words[:2000].tolist(), out, strict=False):
        assert drawn == (word & half).bit_count() - (word >> 21 & half).bit_count()
    assert out[:3].tolist() == [0, 0, 21]
    values = np.arange(-9, 10)
    law = stats.binom.pmf(values + 21, 42, 0.5)
    seen = np.array([(out == value).sum() for value in values])
    rest = words.size - seen.sum(), 1 - law.sum()
    expected = words.size * np.append(law, rest[1])
    assert stats.chisquare(np.append(seen, rest[0]), expected).pvalue > 1e-6
