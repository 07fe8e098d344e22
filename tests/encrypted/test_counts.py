"""The three steps: exact tables without noise, the law of the noise with it, and answers that show their plaintext alone."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import ALPHA, chi_square
from scipy import stats

from vertimrf.encrypted import counts
from vertimrf.encrypted.counts import check_ciphertexts, encrypt_rows, open_sums, sum_rows
from vertimrf.encrypted.packing import Layout
from vertimrf.encrypted.paillier import PrivateKey, as_bytes
from vertimrf.errors import MessageError
from vertimrf.privacy.noise import FixedNoise
from vertimrf.progress import Silent

KEY = PrivateKey._of_bits(256)


class Told(Silent):
    def __init__(self):
        self.steps = []

    def advance(self, done, of, unit=""):
        self.steps.append((done, of, unit))


def tables(packer, sizes, selector, others):
    """Exact tables, cell by cell."""
    return [
        np.array([[((s == v) & (p == w)).sum() for w in range(wide)] for v in range(high)])
        for s, high in zip(selector, others, strict=True)
        for p, wide in zip(packer, sizes, strict=True)
    ]


def three_steps(
    packer,
    selector,
    others,
    layout,
    noise=None,
    key=KEY,
):
    rows = encrypt_rows(key, packer, layout)
    assert rows.shape == (layout.capacity, layout.ciphertexts, layout.ciphertext_bytes)
    if noise is None:
        noise = np.zeros((sum(others), layout.counters), np.int64)
    answers = sum_rows(key.public, rows, selector, others, noise, layout)
    assert answers.shape == (sum(others), layout.ciphertexts, layout.ciphertext_bytes)
    return open_sums(key, answers, others, layout)


def draw(rng, sizes, rows):
    return np.array([rng.integers(-1, size, rows) for size in sizes], np.int32)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_tables_without_noise_are_exact(data):
    """Blanks, one row, domains of one value, several ciphertexts of a row, many groups."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    others = data.draw(st.lists(st.sampled_from([1, 2, 3, 8, 30]), min_size=1, max_size=4))
    rows = data.draw(st.integers(1, 40))
    layout = Layout(tuple(sizes), rows, data.draw(st.sampled_from([0.0, 3.0, 1e6])), 256)
    packer, selector = draw(rng, sizes, rows), draw(rng, others, rows)
    found = three_steps(packer, selector, others, layout)
    for one, other in zip(found, tables(packer, sizes, selector, others), strict=True):
        assert one.dtype == np.int64
        assert (one == other).all()


def test_no_record_at_all():
    layout = Layout((2, 3), 4, 1.0, 256)
    blank = np.full((2, 4), -1, np.int32)
    assert not any(table.any() for table in three_steps(blank, blank[:1], (2,), layout))


@pytest.mark.parametrize("threads", [1, 2])
def test_many_rows_in_several_pieces_and_processes(threads, monkeypatch):
    """Small groups are joined where their cells are few, and work is cut into pieces."""
    for name, value in (("ROWS_ENCRYPTED", 40), ("ROWS_ADDED", 43), ("VALUES", 3)):
        monkeypatch.setattr(counts, name, value)
    rng, sizes, others = np.random.default_rng(7), (20, 5), (2, 3, 40, 12, 1, 1)
    layout = Layout(sizes, 350, 2.0, 256)
    packer, selector = draw(rng, sizes, 350), draw(rng, others, 350)
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    try:
        found = three_steps(packer, selector, others, layout)
    finally:
        numba.set_num_threads(before)
    wanted = tables(packer, sizes, selector, others)
    assert all((one == other).all() for one, other in zip(found, wanted, strict=True))


def test_noise_of_every_counter_is_in_its_table():
    rng, sizes, others = np.random.default_rng(3), (4, 3), (2, 5)
    layout = Layout(sizes, 30, 5.0, 128)
    assert layout.ciphertexts == 1
    key = PrivateKey._of_bits(128)
    packer, selector = draw(rng, sizes, 30), draw(rng, others, 30)
    noise = rng.integers(-layout.offset, layout.offset + 1, (7, 7))
    found = three_steps(packer, selector, others, layout, noise, key)
    parts = [part for rows in np.split(noise, [2]) for part in np.split(rows, [4], axis=1)]
    for one, exact, part in zip(found, tables(packer, sizes, selector, others), parts, strict=True):
        assert (one - exact == part).all()


def test_opened_counts_have_the_law_of_the_selectors_noise():
    """A chi-square test against the discrete Gaussian on 2,400 counters."""
    sigma, sizes, others = 1.5, (30,), (80,)
    layout, rng = Layout(sizes, 20, sigma, 256), np.random.default_rng(4)
    packer, selector = draw(rng, sizes, 20), draw(rng, others, 20)
    noise = FixedNoise(1).gaussian(np.zeros((80, 30), np.int64), sigma)
    (found,) = three_steps(packer, selector, others, layout, noise)
    drawn = found - tables(packer, sizes, selector, others)[0]
    values = np.arange(-layout.offset, layout.offset + 1)
    weights = np.exp(-(values**2) / (2 * sigma**2))
    seen = (drawn.reshape(-1, 1) == values).sum(0)
    assert chi_square(seen, weights / weights.sum()) > ALPHA


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


def test_too_few_or_too_many_rows_or_answers_are_refused(rows):
    check_ciphertexts(rows, 6, LAYOUT, KEY.public, "The file")
    for wrong in (rows[1:], np.concatenate([rows, rows[:1]]), np.repeat(rows, 2, axis=1)):
        with pytest.raises(
            MessageError, match=r"The file has .* ciphertexts, and this plan has \(6, 1\)"
        ):
            check_ciphertexts(wrong, 6, LAYOUT, KEY.public, "The file")


@pytest.mark.parametrize("number", [0, KEY.public.square, KEY.p], ids=["zero", "large", "factor"])
def test_a_number_that_is_no_ciphertext_is_refused(rows, number):
    wrong = rows.copy()
    wrong[4, 0] = as_bytes([number], LAYOUT.ciphertext_bytes)[0]
    with pytest.raises(MessageError, match="The file has a number that is no ciphertext"):
        check_ciphertexts(wrong, 6, LAYOUT, KEY.public, "The file")
    for short in (wrong[..., 1:], wrong[..., :0]):
        with pytest.raises(MessageError, match="The file has a number that is no ciphertext"):
            check_ciphertexts(short, 6, LAYOUT, KEY.public, "The file")


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
