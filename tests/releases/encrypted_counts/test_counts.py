"""The three steps: tables are exact but for the noise, of values and of contrasts, and answers show their plaintext alone."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vertimrf.errors import MessageError
from vertimrf.kernels import jit
from vertimrf.progress import Silent
from vertimrf.releases.encrypted_counts import lattice, packing
from vertimrf.releases.encrypted_counts.counts import (
    Answers,
    check_answers,
    check_rows,
    encrypt_rows,
    open_sums,
    sum_rows,
)
from vertimrf.releases.encrypted_counts.lattice import PrivateKey
from vertimrf.releases.encrypted_counts.packing import PRIMES, Layout, N, counters_of

KEY = PrivateKey.new()


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


def check(layout, others, theirs=(), seed=0):
    """Take the three steps with random rows, of which some are blank: tables are exact, and have each counter's noise."""
    rng, rows, sums = np.random.default_rng(seed), layout.capacity, counters_of(others, theirs)
    packer, selector = (
        np.array([rng.integers(-1, size, rows) for size in sizes], np.int32)
        for sizes in (layout.sizes, others)
    )
    noise = rng.integers(-layout.reach, layout.reach + 1, (sum(sums), layout.counters))
    encrypted = [
        encrypt_rows(KEY, packer, layout, piece=piece) for piece in range(len(layout.pieces))
    ]
    for piece, one in enumerate(encrypted):
        check_rows(one, layout, "It", piece)
    answers = sum_rows(encrypted, selector, others, lambda: noise, layout, contrasts=theirs)
    check_answers(answers, sum(sums), layout, "It")
    exact = one_hot(selector, others, theirs).T @ one_hot(packer, layout.sizes, layout.contrasts)
    split = [
        np.split(part, np.cumsum(layout.rows)[:-1], 1)
        for part in np.split(exact + noise, np.cumsum(sums)[:-1])
    ]
    for one, wanted in zip(
        open_sums(KEY, answers, sums, layout), itertools.chain(*split), strict=True
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
    """Blanks, one row, domains of one value, several slots of a row, many groups, contrasts on either side."""
    sizes = data.draw(st.lists(st.integers(1, 40) | st.just(2), min_size=1, max_size=4))
    others = data.draw(st.lists(st.sampled_from([1, 2, 2, 3, 8, 30]), min_size=1, max_size=4))
    mine, theirs = contrasts_of(data, sizes), contrasts_of(data, others)
    rows, sigma = data.draw(st.integers(1, 40)), data.draw(st.sampled_from([0.0, 3.0, 1e6]))
    signed = bool(mine or theirs) or data.draw(st.booleans())
    layout = Layout(tuple(sizes), rows, sigma, mine, signed, sum(others))
    check(layout, others, theirs, seed=data.draw(st.integers(0, 2**32)))


@pytest.mark.parametrize("rows", [N - 1, N, N + 1, 3 * N + 5])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_of_several_blocks(rows, threads, monkeypatch):
    """In pieces of two blocks, of which the first one has block 0."""
    layout = Layout((20, 2), rows, 2.0, (1,), True, 6)
    monkeypatch.setattr(packing, "PIECE_BYTES", 2 * layout.block_bytes)
    with jit.threads(threads):
        assert len(layout.pieces) == 1 + layout.blocks // 2
        check(layout, (2, 5), (0,))


@pytest.mark.parametrize("sign", [0, 1])
def test_every_row_on_one_side_fits(sign):
    layout = Layout((2,), 40, 2.0, (0,), signed=True)
    codes = np.full((1, 40), sign, np.int32)
    noise = np.full((1, 1), (1 - 2 * sign) * layout.reach)
    answers = sum_rows(
        [encrypt_rows(KEY, codes, layout)], codes, (2,), lambda: -noise, layout, contrasts=(0,)
    )
    assert open_sums(KEY, answers, (1,), layout)[0].item() == 40 - noise.item()


def test_rows_that_are_encrypted_again_have_nothing_in_common():
    """A key that encrypts two tables with one seed would show where they differ."""
    layout, codes = Layout((2, 60), 50, 30.0), np.zeros((2, 50), np.int32)
    one, again = (encrypt_rows(KEY, codes, layout) for _ in range(2))
    assert one.seed != again.seed
    assert (one.blocks == again.blocks).mean() < 0.001
    # Neither have two rows, two slots and two blocks.
    words = one.blocks.reshape(-1)
    assert np.unique(words).size > 0.99 * words.size


def errors_of(rows, layout, plain):
    """What rows have beside their secrets' products and plaintexts [shape=(blocks, slots, N)]."""
    secrets = lattice.transformed(KEY.secrets(layout.slots))
    found = []
    for block, words in enumerate(rows.blocks):
        masks = lattice.with_errors(
            secrets,
            np.zeros((layout.slots, N), np.int8),
            lattice.public_polynomial(rows.seed, block),
        )
        rest = words.astype(np.int64) - masks - (plain if block else 0)
        rest %= np.array(PRIMES)[:, None]
        centred = np.where(rest > (1 << 30), rest - np.array(PRIMES)[:, None], rest)
        # An error is the same integer modulo every prime.
        assert (centred == centred[:, :1]).all()
        found.append(centred[:, 0])
    return np.array(found)


def test_errors_of_rows_are_centred_binomial_and_independent():
    """In block 0 too, and the same for rows with and without a value: chi-square at 1e-6, correlations within 6 errors."""
    layout = Layout((30,), N, 30.0)
    assert layout.slots > 2
    rows = encrypt_rows(KEY, np.full((1, N), -1, np.int32), layout)
    drawn = errors_of(rows, layout, 0)
    values = np.arange(-8, 9)
    law = stats.binom.pmf(values + 21, 42, 0.5)
    for block in drawn:
        seen = np.array([(block == value).sum() for value in values])
        rest = block.size - seen.sum(), block.size * (1 - law.sum())
        expected = np.append(block.size * law, rest[1])
        assert stats.chisquare(np.append(seen, rest[0]), expected).pvalue > 1e-6
    flat = drawn.reshape(-1, N).astype(float)
    correlations = np.corrcoef(flat)[~np.eye(len(flat), dtype=bool)]
    assert np.abs(correlations).max() < 6 / np.sqrt(N)
    one = encrypt_rows(KEY, np.zeros((1, N), np.int32), layout)
    marks = lattice.residues([layout.scale])[0]
    plain = np.zeros((layout.slots, len(PRIMES), N), np.int64)
    plain[0] = marks[:, None]
    assert abs(errors_of(one, layout, plain)[1].var() / 10.5 - 1) < 6 * np.sqrt(
        2 / (layout.slots * N)
    )


def selected(rows, codes, layout, sums):
    """A selector's answers without noise, and what is in their vectors beside the selected rows' [shape=(sums, primes, N)]."""
    noise = np.zeros((sums, layout.counters), np.int64)
    answers = sum_rows([rows], codes, (sums,), lambda: noise, layout)
    weights = (codes[0] == np.arange(sums)[:, None]).astype(np.int8)
    total = np.zeros_like(answers.vectors)
    for block in range(1, len(rows.blocks)):
        here = np.zeros((sums, N), np.int8)
        part = weights[:, (block - 1) * N : block * N]
        here[:, : part.shape[1]] = part
        lattice.added(total, here, lattice.public_polynomial(rows.seed, block))
    exact = lattice.with_errors(total, np.zeros((sums, N), np.int8))
    moduli = np.array(PRIMES)[:, None]
    return answers, (answers.vectors.astype(np.int64) - exact) % moduli


def by_block_zero(rest, rows):
    """Coefficients of a polynomial b, given b[k], divided by the public polynomial of block 0 [shape=(sums, primes, N)]."""
    # b[k] for every k, of b(x^-1): as coefficients, x^-k stands at place k with its sign.
    inverse = np.array(
        [[pow(int(x), -1, q) for x in row] for row, q in zip(lattice.public_polynomial(rows.seed, 0), PRIMES, strict=True)],
        np.uint32,
    )  # fmt: skip
    moduli = np.array(PRIMES)[:, None]
    coefficients = np.concatenate([rest[..., :1], (-rest[..., :0:-1]) % moduli], -1)
    values = np.zeros(rest.shape, np.uint32)
    for shift in range(0, 31, 7):
        digits = (coefficients >> shift & 127).astype(np.int8)
        power = np.array([[pow(2, shift, q)] * N for q in PRIMES], np.uint32)
        for p in range(len(PRIMES)):
            part = np.zeros_like(values)
            lattice.added(part, digits[:, p], power)
            values[:, p] = (values[:, p].astype(np.int64) + part[:, p]) % PRIMES[p]
    found = lattice.with_errors(values, np.zeros((len(rest), N), np.int8), inverse)
    return np.minimum(found, np.array(PRIMES)[:, None] - found)


def test_answers_have_encryptions_of_zero_that_are_all_different():
    """A selector's vectors beside the selected rows: r a + f with an r and an f of their own, also for equal and empty sums.

    Without r they would be errors; without f the quotient by a would be small; with one r or f for all sums the difference.
    """
    layout, codes = Layout((3,), 40, 3.0, sums=3), np.full((1, 40), 1, np.int32)
    rows = encrypt_rows(KEY, codes, layout)
    found = [selected(rows, codes, layout, 3)[1] for _ in range(2)]
    moduli = np.array(PRIMES)[:, None]
    every = np.concatenate(found)
    some = [*every, *((every[i] - every[j]) % moduli for i in range(6) for j in range(i))]
    for rest in some:
        small = np.minimum(rest, moduli - rest)
        # Uniform numbers below p / 2: a share of 2^-5 is below 2^25.
        assert abs((small < 2**25).mean() - 2.0**-5) < 0.005
    quotients = by_block_zero(np.array([*some[:3], *some[6:9]]), rows)
    assert abs((quotients < 2**25).mean() - 2.0**-5) < 0.005


def below_scale(layout, answers):
    """What is below the scale in each opened number [shape=(sums * slots,)]."""
    masks = lattice.weighed(KEY.secrets(layout.slots), answers.vectors).transpose(1, 0, 2)
    opened = (answers.sums - masks) % np.array(PRIMES)
    return [number % layout.scale for number in lattice.integers(opened.reshape(-1, len(PRIMES)))]


@pytest.mark.parametrize("values", [0, 1, 200])
def test_what_an_answer_has_beside_its_plaintext_is_uniform_over_the_whole_flooding(values):
    """Whether all rows are selected or none, and in every sum and slot anew: chi-square of the highest byte, at 1e-6.

    Bits above the largest error, and differences, are those of uniform numbers.
    """
    layout = Layout((60,), 300, 3.0, sums=400)
    rows = encrypt_rows(KEY, np.zeros((1, 300), np.int32), layout)
    noise = np.zeros((400, 60), np.int64)
    codes = np.random.default_rng(0).integers(-1, values, (1, 300)).astype(np.int32)
    numbers = below_scale(layout, sum_rows([rows], codes, (400,), lambda: noise, layout))
    assert layout.slots > 5
    assert len(set(numbers)) == len(numbers) == 400 * layout.slots
    flooding = [number - layout.largest_error for number in numbers]
    for bits in (layout.flooding_bits, layout.largest_error.bit_length() + 12):
        high = np.bincount([(one >> (bits - 8)) & 255 for one in flooding], minlength=256)
        assert stats.chisquare(high).pvalue > 1e-6
    # One flooding for several slots or sums would cancel.
    size = 1 << layout.flooding_bits
    for step in (1, layout.slots):
        differences = [(x - y) % size for x, y in itertools.pairwise(flooding[::step])]
        high = np.bincount([one >> (layout.flooding_bits - 4) for one in differences], minlength=16)
        assert stats.chisquare(high).pvalue > 1e-6


def test_progress_is_told_in_rows_and_sums():
    layout, told = Layout((2,), 2 * N + 10, 1.0, sums=70), Told()
    rows = encrypt_rows(KEY, np.zeros((1, layout.capacity), np.int32), layout, told)
    added = [(done, 2 * N + 10, "rows") for done in (N, 2 * N, 2 * N + 10)]
    assert told.steps == added
    noise, told = np.zeros((70, 2), np.int64), Told()
    codes = np.zeros((1, layout.capacity), np.int32)
    answers = sum_rows([rows], codes, (70,), lambda: noise, layout, told)
    assert told.steps == added
    told = Told()
    open_sums(KEY, answers, (70,), layout, told)
    assert told.steps == [(done, 70, "sums") for done in (64, 70)]


LAYOUT = Layout((2, 3), 6, 1.0, sums=4)
CODES = np.zeros((1, 6), np.int32)
NOISE = np.zeros((4, 5), np.int64)


@pytest.fixture(scope="module")
def rows():
    return encrypt_rows(KEY, np.zeros((2, 6), np.int32), LAYOUT)


def test_answers_under_another_key_are_refused(rows):
    answers = sum_rows([rows], CODES, (4,), lambda: NOISE, LAYOUT)
    with pytest.raises(MessageError, match="under another key or for another plan"):
        open_sums(PrivateKey.new(), answers, (4,), LAYOUT)


def test_shapes_of_others_files_are_those_of_the_plan(rows):
    answers = sum_rows([rows], CODES, (4,), lambda: NOISE, LAYOUT)
    for wrong in (
        replace(rows, blocks=rows.blocks[1:]),
        replace(rows, blocks=np.repeat(rows.blocks, 2, axis=1)),
        replace(rows, blocks=rows.blocks[..., 1:]),
        replace(rows, seed=bytes(31)),
        replace(rows, blocks=rows.blocks | np.uint32(1 << 31)),
        replace(rows, blocks=rows.blocks * np.uint32([[[[1]]], [[[0]]]])),
    ):
        with pytest.raises(MessageError, match="It has "):
            check_rows(wrong, LAYOUT, "It")
    for wrong in (
        Answers(answers.vectors[1:], answers.sums),
        Answers(answers.vectors, answers.sums[1:]),
        Answers(answers.vectors, answers.sums[:, :, 1:]),
        Answers(answers.vectors * np.uint32([[[1]]] * 3 + [[[0]]]), answers.sums),
        Answers(answers.vectors, answers.sums | np.uint32(0x7FFFFFFF)),
    ):
        with pytest.raises(MessageError, match="It has "):
            check_answers(wrong, 4, LAYOUT, "It")


@pytest.mark.parametrize("codes", [[[4] * 6], [[-2] * 6], [[0] * 5], [[0] * 6] * 2])
def test_a_selectors_codes_fit_its_groups(rows, codes):
    with pytest.raises(ValueError, match="A selector has a value"):
        sum_rows([rows], np.array(codes, np.int32), (4,), lambda: NOISE, LAYOUT)


def test_codes_and_noise_fit_the_layout(rows):
    with pytest.raises(ValueError, match="A packer has a value"):
        encrypt_rows(KEY, np.zeros((2, 5), np.int32), LAYOUT)
    for wrong in (lambda: NOISE[1:], lambda: NOISE[:, 1:]):
        with pytest.raises(ValueError, match="oise has a"):
            sum_rows([rows], CODES, (4,), wrong, LAYOUT)
