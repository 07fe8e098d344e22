"""The encryption: parameters, laws of its randomness, and what it does to a polynomial, against sums over integers."""

import math

import numpy as np
import pytest
from scipy import stats

from vertimrf.errors import MessageError
from vertimrf.releases.encrypted_counts import lattice
from vertimrf.releases.encrypted_counts.lattice import PrivateKey, Randomness
from vertimrf.releases.encrypted_counts.packing import PRIMES, N, Q

# Chance failures are below 1e-6 a test.
ALPHA = 1e-6


def is_prime(n):
    """By trial division."""
    return all(n % d for d in range(2, math.isqrt(n) + 1))


def test_the_modulus_is_the_largest_that_the_proof_names():
    """Bossuat et al. 2024: at most 161 bits at N = 8192, ternary secrets and quantum computers."""
    candidates = (p for p in range((1 << 31) - 2 * N + 1, 0, -2 * N) if is_prime(p))
    assert tuple(next(candidates) for _ in PRIMES) == PRIMES
    assert math.log2(Q) < 155 < 161


def test_public_polynomials_are_uniform_and_follow_from_seed_and_block():
    some = [lattice.public_polynomial(bytes([i]) * 32, block) for i in range(2) for block in (0, 1)]
    assert (some[1] == lattice.public_polynomial(bytes(32), 1)).all()
    for one in range(4):
        for other in range(one):
            assert (some[one] == some[other]).mean() < 0.001
    for row, q in zip(np.concatenate(some, 1), PRIMES, strict=True):
        assert row.max() < q
        for digits in (row >> 23, row & 255):
            assert stats.chisquare(np.bincount(digits, minlength=256)).pvalue > ALPHA


def test_residues_are_drawn_by_rejection(monkeypatch):
    """Words from p on are left out, however many they are."""

    class Hash:
        def __init__(self, data):
            self.skipped = 2 * N

        def digest(self, length):
            words = np.arange(length // 4, dtype=np.uint32)
            return (words + np.uint32(2**31 - self.skipped)).astype("<u4").tobytes()

    monkeypatch.setattr(lattice.hashlib, "shake_128", Hash)
    for row, q in zip(lattice.public_polynomial(bytes(32), 0), PRIMES, strict=True):
        kept = np.arange(2**31 - 2 * N, 2**31 + 20 * N) & (2**31 - 1)
        assert (row == kept[kept < q][:N]).all()


def test_thirds_and_integers_are_uniform():
    drawn = Randomness().thirds(30, 1000)
    assert drawn.dtype == np.int8
    counts = [(drawn == value).sum() for value in (-1, 0, 1)]
    assert sum(counts) == drawn.size
    assert stats.chisquare(counts).pvalue > ALPHA
    numbers = Randomness().integers(4000, 61)
    for bit in range(61):
        ones = sum(number >> bit & 1 for number in numbers)
        assert abs(ones - 2000) < 6 * math.sqrt(1000)
    assert max(numbers) < 1 << 61


def test_bytes_from_255_on_are_no_thirds(monkeypatch):
    random = Randomness(bytes(64))
    monkeypatch.setattr(
        random._stream, "take", lambda count: (bytes([255, 0, 1, 2, 254]) * count)[:count]
    )
    assert set(random.thirds(100).tolist()) == {-1, 0, 1}
    assert random.thirds(8).tolist() == [-1, 0, 1, 1] * 2


def test_randomness_is_fresh_and_goes_on():
    one, other = Randomness(), Randomness()
    assert (one.thirds(N) != other.thirds(N)).any()
    assert (one.errors(N) != one.errors(N)).any()
    keyed = [Randomness(bytes([i]) * 64).errors(N) for i in (0, 0, 1)]
    assert (keyed[0] == keyed[1]).all()
    assert (keyed[0] != keyed[2]).any()


def test_secrets_are_of_their_key_and_slot():
    key = PrivateKey.new()
    secrets = key.secrets(3)
    assert (secrets == PrivateKey(key.seed).secrets(3)).all()
    assert (key.secrets(2) == secrets[:2]).all()
    some = np.concatenate([secrets, PrivateKey.new().secrets(3)])
    assert all((some[i] != some[j]).mean() > 0.6 for i in range(6) for j in range(i))


def constant(row, secret, q):
    """The constant coefficient of b s, from b[k] for every k."""
    return int(row.astype(object) @ secret.astype(object)) % q


def test_an_encryption_is_a_product_and_an_error():
    """Against the definition, at some coefficients: b[k] is the constant coefficient of x^k a s, plus an error."""
    key, errors = PrivateKey.new(), Randomness().errors(2, N)
    secrets, values = key.secrets(2), lattice.public_polynomial(bytes(32), 1)
    found = lattice.with_errors(lattice.transformed(secrets), errors, values)
    a = lattice.with_errors(values[None], 0 * errors[:1])[0]
    for p, q in enumerate(PRIMES):
        for k in (0, 1, 4097, N - 1):
            # The constant coefficients of x^j x^k a: those of x^(j + k) a, and -1 times from x^N = -1 on.
            shifted = np.concatenate([a[p, k:], (q - a[p, :k].astype(np.int64))])
            wanted = (constant(shifted, secrets[1], q) + int(errors[1, k])) % q
            assert found[1, p, k] == wanted


def test_numbers_and_their_residues():
    some = [0, 1, Q - 1, Q // 3, 2**100]
    assert lattice.integers(lattice.residues(some)) == some
    assert lattice.integers(lattice.residues([-1])) == [Q - 1]
    polynomials = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
    data = lattice.as_bytes(polynomials)
    assert data.shape == (2, 3, 16)
    assert (lattice.as_residues(data) == polynomials).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one * 0,
        lambda one: one * 0 + 5,
        lambda one: one * (np.arange(N) == 77),
        lambda one: np.where(np.arange(N) < 9, one[..., :1], one),
        lambda one: np.where(np.arange(N) == 9, np.array(PRIMES)[:, None], one),
    ],
    ids=["zero", "constant", "one term", "nine alike", "no residue"],
)
def test_polynomials_that_are_no_ciphertexts_are_refused(change):
    good = lattice.public_polynomial(bytes(32), 0)
    lattice.check_polynomials(good[None], "It")
    with pytest.raises(MessageError, match=r"It has a .* that is no ciphertext"):
        lattice.check_polynomials(change(good)[None].astype(np.uint32), "It")
    one_prime = good.copy()
    one_prime[3] = change(good)[3]
    with pytest.raises(MessageError, match="that is no ciphertext"):
        lattice.check_polynomials(one_prime[None], "It")


def test_sound_polynomials_are_refused_with_a_chance_below_2_to_the_minus_150():
    repeated = stats.binom.logsf(lattice.MOST_REPEATED - 1, N - 1, 1 / min(PRIMES))
    assert repeated < -150 * math.log(2)


def test_a_private_key_in_a_file():
    key = PrivateKey.new()
    data = key.to_bytes()
    assert PrivateKey.from_bytes(data, "It") == key != PrivateKey.new()
    assert key.seed.hex() not in repr(key)
    assert "seed" not in repr(key)
    with pytest.raises(MessageError, match="It is truncated or altered"):
        PrivateKey.from_bytes(data[:-1], "It")
    with pytest.raises(MessageError, match="It is damaged"):
        PrivateKey.from_bytes(PrivateKey(b"short").to_bytes(), "It")
