"""Paillier's encryption against the textbook's formula, fixed vectors, and python-paillier as an oracle."""

import builtins
import math
import secrets

import gmpy2
import numpy as np
import pytest

from vertimrf.errors import MessageError, RunError
from vertimrf.releases.encrypted_counts.paillier import (
    Masks,
    PrivateKey,
    PublicKey,
    as_bytes,
    numbers,
)

KEY = PrivateKey._of_bits(512)
TOY = PrivateKey(7, 11)
# Made by Python's pow() with r = 0x123456789abcdef0123456789 and the plaintext 123456789.
VECTOR = PrivateKey(0xE8CB33BECB394273, 0xD3D1A3FC8FA19F63)
CIPHERTEXT = 0x8711E74AFB2D7DFD667922C459A4B48018C0252112EEDA35FA03EB424BEFE469


@pytest.fixture(scope="module")
def whole():
    """A key of full size."""
    return PrivateKey.new()


def test_a_fixed_ciphertext_has_its_plaintext():
    assert VECTOR.decrypt(CIPHERTEXT) == 123_456_789


def test_a_ciphertext_is_that_of_the_textbook(monkeypatch):
    r = 0x123456789ABCDEF0123456789
    monkeypatch.setattr(secrets, "randbelow", lambda below: r)
    assert VECTOR.public.encrypt(123_456_789) == CIPHERTEXT


@pytest.mark.parametrize("key", [KEY, VECTOR], ids=["512 bits", "128 bits"])
def test_plaintexts_of_every_size_come_back(key):
    n = key.public.modulus
    for plaintext in (0, 1, 12345, n // 2, n - 1, *(secrets.randbelow(n) for _ in range(10))):
        assert key.decrypt(key.public.encrypt(plaintext)) == plaintext


def test_every_ciphertext_of_a_toy_modulus_has_its_plaintext():
    """All (1 + m n) r^n are different, are all units, and decrypt to m."""
    n, units = 77, [r for r in range(77) if math.gcd(r, 77) == 1]
    ciphertexts = {(1 + m * n) * pow(r, n, n * n) % (n * n): m for m in range(n) for r in units}
    assert sorted(ciphertexts) == [c for c in range(n * n) if math.gcd(c, n) == 1]
    assert all(TOY.decrypt(c) == m for c, m in ciphertexts.items())


def test_products_encrypt_sums():
    n = KEY.public.modulus
    plaintexts = [secrets.randbelow(n) for _ in range(20)]
    product = KEY.public.add([KEY.public.encrypt(m) for m in plaintexts])
    assert KEY.decrypt(product) == sum(plaintexts) % n
    assert KEY.decrypt(KEY.public.add([])) == 0


def test_python_paillier_reads_these_ciphertexts_and_the_other_way_round():
    phe = pytest.importorskip("phe.paillier")
    public = phe.PaillierPublicKey(KEY.public.modulus)
    private = phe.PaillierPrivateKey(public, KEY.p, KEY.q)
    one, two = secrets.randbits(400), secrets.randbits(400)
    mine, theirs = KEY.public.encrypt(one), public.raw_encrypt(two)
    assert private.raw_decrypt(int(mine)) == one
    assert KEY.decrypt(theirs) == two
    assert private.raw_decrypt(int(KEY.public.add([mine, theirs]))) == one + two
    masked = (1 + two * KEY.public.n) * Masks(KEY)() % KEY.public.square
    assert private.raw_decrypt(int(masked)) == two
    added = public.encrypt(3) + phe.EncryptedNumber(public, int(KEY.public.encrypt(4)))
    assert private.decrypt(added) == 7


def test_a_key_of_full_size(whole):
    p, q = whole.p, whole.q
    assert whole.public.modulus.bit_length() == 3072
    assert p % 4 == q % 4 == 3
    assert math.gcd(p - 1, q - 1) == 2
    assert gmpy2.is_prime(p, 50)
    assert gmpy2.is_prime(q, 50)
    assert p.bit_length() == q.bit_length() == 1536
    assert whole != PrivateKey.new()
    assert whole.decrypt(whole.public.encrypt(5) * Masks(whole)()) == 5
    assert PublicKey.from_bytes(whole.public.to_bytes(), "It") == whole.public
    assert whole.public.ciphertext_bytes == 768


def test_primes_of_keys_are_as_the_masks_need_them():
    for key in [PrivateKey._of_bits(128) for _ in range(20)]:
        assert key.p % 4 == key.q % 4 == 3
        assert math.gcd(key.p - 1, key.q - 1) == 2
        assert key.public.modulus.bit_length() == 128


def test_masks_are_different_encryptions_of_zero():
    masks = Masks(KEY)
    some = [masks() for _ in range(50)]
    assert [KEY.decrypt(mask) for mask in some] == [0] * 50
    assert len(set(some)) == 50
    assert all(gmpy2.jacobi(mask, KEY.public.n) == 1 for mask in some)
    # Another process has a base of its own.
    assert masks._powers[0][1][0][1] != Masks(KEY)._powers[0][1][0][1]


def test_a_mask_is_a_power_of_the_base_by_the_bytes_of_a_random_exponent(
    monkeypatch,
):
    masks, exponent = Masks(KEY), secrets.token_bytes(64)
    monkeypatch.setattr(secrets, "token_bytes", lambda size: exponent[:size])
    e, mask = int.from_bytes(exponent, "little"), masks()
    for square, powers in masks._powers:
        base = powers[0][1]
        assert mask % square == pow(int(base), e, int(square))
    assert 0 <= mask < KEY.public.square


def test_masks_of_a_toy_modulus_are_all_residues_with_jacobi_symbol_one():
    wanted = {
        pow(r, 77, 77**2) for r in range(1, 77) if math.gcd(r, 77) == 1 and gmpy2.jacobi(r, 77) == 1
    }
    seen = {int(masks()) for masks in [Masks(TOY) for _ in range(40)] for _ in range(100)}
    assert seen == wanted


def test_encryption_is_uniform_over_the_ciphertexts_of_a_plaintext():
    """60 residues, 6,000 draws: chi-square with 59 degrees of freedom, a chance failure of 1e-5."""
    from scipy import stats

    drawn = [int(TOY.public.encrypt(5)) for _ in range(6000)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.size == 60
    assert stats.chisquare(counts).pvalue > 1e-5


def test_a_private_key_in_a_file(whole):
    data = whole.to_bytes()
    assert PrivateKey.from_bytes(data, "It") == whole
    assert str(whole.p) not in repr(whole)
    with pytest.raises(MessageError, match="It is truncated or altered"):
        PrivateKey.from_bytes(data[:-1], "It")
    with pytest.raises(MessageError, match="It is no Paillier key of this version"):
        PrivateKey.from_bytes(KEY.to_bytes(), "It")
    p, q = whole.p, whole.q
    for wrong in (
        PrivateKey(p, p),
        PrivateKey(p - p % 28 + 7, q - q % 28 + 7),
        PrivateKey(p, q + 2),
    ):
        with pytest.raises(MessageError, match="It is damaged"):
            PrivateKey.from_bytes(wrong.to_bytes(), "It")


def prime(bits):
    return int(gmpy2.next_prime(secrets.randbits(bits) | 3 << (bits - 2)))


@pytest.mark.parametrize(
    "modulus, sentence",
    [
        (lambda n: n >> 1, "3071 bits instead of 3072"),
        (lambda n: n << 8, "3080 bits instead of 3072"),
        (lambda n: n - 1, "has a small factor"),
        (lambda n: 65521 * (n // 65521), "has a small factor"),
        (lambda n: int(gmpy2.next_prime(n)), "is prime"),
        (lambda n: prime(1536) ** 2, "is a power"),
        (lambda n: 0, "0 bits instead of 3072"),
    ],
    ids=["short", "long", "even", "small factor", "prime", "power", "zero"],
)
def test_a_modulus_that_is_none_is_refused(whole, modulus, sentence):
    data = modulus(whole.public.modulus).to_bytes(385, "little")
    data = data if data[384] else data[:384]
    with pytest.raises(MessageError, match=f"The key of 'a' is no Paillier key.*{sentence}"):
        PublicKey.from_bytes(data, "The key of 'a'")


@pytest.mark.parametrize(
    "wrong",
    [lambda key: 0, lambda key: key.public.square, lambda key: key.p, lambda key: key.p * key.q],
    ids=["zero", "too large", "a factor", "the modulus"],
)
def test_a_number_that_is_no_ciphertext_is_refused(wrong):
    public = KEY.public
    good = [public.encrypt(m) for m in range(5)]
    public.check(as_bytes(good, public.ciphertext_bytes), "It")
    bad = as_bytes([*good, wrong(KEY)], public.ciphertext_bytes)
    with pytest.raises(MessageError, match="It has a number that is no ciphertext"):
        public.check(bad, "It")
    with pytest.raises(MessageError, match="It has a number that is no ciphertext"):
        public.check(bad[:5, :-1], "It")


def test_numbers_as_bytes_and_back():
    some = [0, 1, 255, 256, (1 << 80) - 1]
    data = as_bytes(some, 10)
    assert data.shape == (5, 10)
    assert list(numbers(data)) == some


def test_without_gmpy2_there_is_one_sentence(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "gmpy2":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RunError, match=r"need gmpy2.*pip install 'vertimrf\[encrypted\]'"):
        PrivateKey.new()
