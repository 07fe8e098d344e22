"""The three steps: tables are exact but for the noise, of values and of contrasts, and answers show their plaintext alone."""

import itertools
import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vertimrf.errors import MessageError
from vertimrf.kernels import jit
from vertimrf.progress import Silent
from vertimrf.releases.encrypted_counts import counts
from vertimrf.releases.encrypted_counts.counts import encrypt_rows, open_sums, sum_rows
from vertimrf.releases.encrypted_counts.packing import Layout, counters_of
from vertimrf.releases.encrypted_counts.paillier import PrivateKey

KEY = PrivateKey._of_bits(256)


class Told(Silent):
    def __init__(self):
        self.steps = []

    def advance(self, done, of, unit=""):
        self.steps.append((done, of, unit))


def one_hot(codes, sizes, contrasts):
    """What each row adds to each counter [shape=(rows, counters)]."""
    out = []
    for group, (row, size) in enumerate(zip(codes, sizes, strict=True)):
        each = (row[:, None] == np.arange(size)).astype(int)
        out.append(each[:, :1] - each[:, 1:] if group in contrasts else each)
    return np.concatenate(out, axis=1)


def check(layout, others, theirs=(), noise=None, seed=0, key=KEY):
    """Take the three steps with random rows, of which some are blank: tables are exact, and have each counter's noise."""
    rng, rows, sums = np.random.default_rng(seed), layout.capacity, counters_of(others, theirs)
    packer, selector = (
        np.array([rng.integers(-1, size, rows) for size in sizes], np.int32)
        for sizes in (layout.sizes, others)
    )
    if noise is None:
        noise = rng.integers(-layout.reach, layout.reach + 1, (sum(sums), layout.counters))
    encrypted = encrypt_rows(key, packer, layout)
    assert encrypted.shape == (rows, layout.ciphertexts, layout.ciphertext_bytes)
    answers = sum_rows(key.public, encrypted, selector, others, noise, layout, contrasts=theirs)
    assert answers.shape == (sum(sums), layout.ciphertexts, layout.ciphertext_bytes)
    exact = one_hot(selector, others, theirs).T @ one_hot(packer, layout.sizes, layout.contrasts)
    split = [
        np.split(part, np.cumsum(layout.rows)[:-1], 1)
        for part in np.split(exact + noise, np.cumsum(sums)[:-1])
    ]
    for one, wanted in zip(
        open_sums(key, answers, sums, layout), itertools.chain(*split), strict=True
    ):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, wanted)


def contrasts_of(data, sizes):
    """Some groups of two values."""
    two = [group for group, size in enumerate(sizes) if size == 2]
    return tuple(group for group in two if data.draw(st.booleans()))


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_tables_are_exact_but_for_the_noise(data):
    """Blanks, one row, domains of one value, several ciphertexts of a row, many groups, contrasts on either side."""
    sizes = data.draw(st.lists(st.integers(1, 40) | st.just(2), min_size=1, max_size=4))
    others = data.draw(st.lists(st.sampled_from([1, 2, 2, 3, 8, 30]), min_size=1, max_size=4))
    mine, theirs = contrasts_of(data, sizes), contrasts_of(data, others)
    rows, sigma = data.draw(st.integers(1, 40)), data.draw(st.sampled_from([0.0, 3.0, 1e6]))
    signed = bool(mine or theirs) or data.draw(st.booleans())
    layout = Layout(tuple(sizes), rows, sigma, 256, mine, signed)
    check(layout, others, theirs, seed=data.draw(st.integers(0, 2**32)))


@pytest.mark.parametrize("sign", [0, 1])
def test_every_row_on_one_side_fits(sign):
    layout = Layout((2,), 40, 2.0, 256, (0,), signed=True)
    codes = np.full((1, 40), sign, np.int32)
    noise = np.full((1, 1), (1 - 2 * sign) * layout.reach)
    answers = sum_rows(
        KEY.public, encrypt_rows(KEY, codes, layout), codes, (2,), -noise, layout, contrasts=(0,)
    )
    assert open_sums(KEY, answers, (1,), layout)[0].item() == 40 - noise.item()


@pytest.mark.parametrize("threads", [1, 2])
def test_many_rows_in_several_pieces_and_processes(threads, monkeypatch):
    """Small groups are joined where their cells are few, and work is cut into pieces."""
    for name, value in (("ROWS_ENCRYPTED", 40), ("ROWS_ADDED", 43), ("VALUES", 3)):
        monkeypatch.setattr(counts, name, value)
    with jit.threads(min(threads, numba.config.NUMBA_NUM_THREADS)):
        check(Layout((20, 5), 350, 2.0, 256), (2, 3, 40, 12, 1, 1))


def test_equal_rows_have_different_ciphertexts():
    layout = Layout((2, 60), 50, 30.0, 256)
    assert layout.ciphertexts > 1
    rows = encrypt_rows(KEY, np.zeros((2, 50), np.int32), layout)
    assert (
        len({row.tobytes() for row in rows.reshape(-1, layout.ciphertext_bytes)})
        == 50 * layout.ciphertexts
    )
    again = encrypt_rows(KEY, np.zeros((2, 50), np.int32), layout)
    assert not (rows == again).all(axis=-1).any()


def test_an_answer_depends_on_its_plaintext_alone():
    """The packer knows the private key and all random factors of its rows, and learns the sum.

    In a toy modulus, the same rows are added in two ways that have one sum. Both answers are uniform over the 60 ciphertexts
    of that sum, whichever rows were added: chi-square on 60 residues and 3,000 answers, a chance failure of 1e-5.
    """
    key, layout = PrivateKey(7, 11), Layout((1, 1), 3, 0.0, 7)
    assert (layout.width, layout.per_ciphertext) == (2, 3)
    rows = encrypt_rows(key, np.array([[0, 0, -1], [-1, -1, 0]], np.int32), layout)
    noise = np.zeros((1, 2), np.int64)
    residues = [c for c in range(77**2) if math.gcd(c, 77) == 1 and key.decrypt(c) == 1 + (1 << 2)]
    assert len(residues) == 60
    for selector in ([0, -1, 0], [-1, 0, 0]):
        codes = np.array([selector], np.int32)
        answers = [
            int.from_bytes(
                sum_rows(key.public, rows, codes, (1,), noise, layout).tobytes(), "little"
            )
            for _ in range(3000)
        ]
        seen = np.array([answers.count(residue) for residue in residues])
        assert seen.sum() == 3000
        assert stats.chisquare(seen).pvalue > 1e-5


def test_answers_of_one_file_have_factors_of_their_own():
    """The packer knows the factors of its rows, and so the quotient of two sums if they had a factor in common.

    Both residues of two sums together, in the smallest modulus: chi-square on 64 pairs, a chance failure of 1e-5.
    """
    key, layout = PrivateKey(3, 5), Layout((1,), 1, 0.0, 4)
    rows = encrypt_rows(key, np.zeros((1, 1), np.int32), layout)
    residues = [c for c in range(225) if math.gcd(c, 15) == 1 and key.decrypt(c) == 1]
    pairs = [
        sum_rows(
            key.public, rows, np.zeros((2, 1), np.int32), (1, 1), np.zeros((2, 1), int), layout
        )
        for _ in range(3000)
    ]
    seen = [tuple(residues.index(pair[i, 0, 0]) for i in (0, 1)) for pair in pairs]
    assert len(residues) == 8
    counts = np.bincount([8 * one + other for one, other in seen], minlength=64)
    assert stats.chisquare(counts).pvalue > 1e-5


def test_progress_is_told_in_rows_and_sums(monkeypatch):
    monkeypatch.setattr(counts, "ROWS_ENCRYPTED", 4)
    monkeypatch.setattr(counts, "ROWS_ADDED", 8)
    layout, told = Layout((2,), 10, 1.0, 256), Told()
    rows = encrypt_rows(KEY, np.zeros((1, 10), np.int32), layout, told)
    assert told.steps == [(done, 10, "rows") for done in (4, 8, 10)]
    noise, told = np.zeros((9, 2), np.int64), Told()
    answers = sum_rows(KEY.public, rows, np.zeros((1, 10), np.int32), (9,), noise, layout, told)
    added = [(done, 10, "rows") for done in (8, 10)]
    assert told.steps == added + [(done, 9, "sums") for done in (4, 8, 9)]
    told = Told()
    open_sums(KEY, answers, (9,), layout, told)
    assert told.steps == [(done, 9, "sums") for done in (4, 8, 9)]


LAYOUT = Layout((2, 3), 6, 1.0, 256)
CODES = np.zeros((1, 6), np.int32)
NOISE = np.zeros((4, 5), np.int64)


@pytest.fixture(scope="module")
def rows():
    return encrypt_rows(KEY, np.zeros((2, 6), np.int32), LAYOUT)


def test_answers_under_another_key_are_refused(rows):
    """Under this key they are random plaintexts, with bits above the counters."""
    other = PrivateKey._of_bits(256)
    noise = np.zeros((40, 5), np.int64)
    strange = encrypt_rows(other, np.zeros((2, 6), np.int32), LAYOUT)
    answers = sum_rows(other.public, strange, CODES, (40,), noise, LAYOUT)
    answers[..., -1] = 0
    with pytest.raises(MessageError, match="under another key or for another plan"):
        open_sums(KEY, answers, (40,), LAYOUT)


@pytest.mark.parametrize("codes", [[[4] * 6], [[-2] * 6], [[0] * 5], [[0] * 6] * 2])
def test_a_selectors_codes_fit_its_groups(rows, codes):
    with pytest.raises(ValueError, match="A selector has a value"):
        sum_rows(KEY.public, rows, np.array(codes, np.int32), (4,), NOISE, LAYOUT)


def test_codes_and_noise_fit_the_layout(rows):
    with pytest.raises(ValueError, match="A packer has a value"):
        encrypt_rows(KEY, np.zeros((2, 5), np.int32), LAYOUT)
    for wrong in (NOISE[1:], NOISE[:, 1:]):
        with pytest.raises(ValueError, match="oise has a"):
            sum_rows(KEY.public, rows, CODES, (4,), wrong, LAYOUT)
