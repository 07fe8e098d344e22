"""Count sketch kernels: against slow oracles, exact laws, and the algebra of sums."""

import itertools
import math

import numpy as np
import pytest
from oracles import siphash
from scipy import stats

from vertimrf.kernels.count_sketch import (
    UNSETTLED,
    add_noise,
    add_records,
    alternating,
    cross_products,
    noise_table,
    quantise,
    settle_noise,
    words_needed,
)
from vertimrf.kernels.jit import threads

KEY = (np.uint64(3), np.uint64(1 << 60))


# Numbers of Walsh functions by group: of buckets, of repetitions, and of both.
WALSH = (1, 6, 0b1011, 1 << 15, 9)


def table(n, sizes, seed=0):
    rng = np.random.default_rng(seed)
    digests = rng.integers(0, 2**64, n, dtype=np.uint64)
    return digests, np.array([rng.integers(0, size, n) for size in sizes], np.uint16).reshape(
        len(sizes), n
    )


def layout(sizes, contrasts=()):
    """Every group's first row, whether that is its contrast, and the number of its Walsh function, which contrasts of three values
    have; and the rows of all groups together."""
    out, row = [], 0
    for g, size in enumerate(sizes):
        out.append((row, g in contrasts, WALSH[g] if g in contrasts and size == 3 else 0))
        row += 1 if g in contrasts else size
    return np.array(out, np.int64).reshape(-1, 3), row


def sketch(digests, codes, sizes, log_buckets, repetitions, contrasts=()):
    groups, rows = layout(sizes, contrasts)
    state = np.zeros((repetitions, rows, 1 << log_buckets), np.int32)
    add_records(*KEY, digests, codes, groups, log_buckets, state)
    return state


def by_loop(digests, codes, sizes, log_buckets, repetitions, contrasts=()):
    """Counters, one record, repetition and group after the other."""
    _, per_word = words_needed(repetitions, log_buckets)
    out = np.zeros((repetitions, layout(sizes, contrasts)[1], 1 << log_buckets), np.int32)
    for i, digest in enumerate(digests):
        for j in range(repetitions):
            message = (
                int(digest).to_bytes(8, "little") + (j // per_word).to_bytes(4, "little") + bytes(3)
            )
            word = siphash(np.array(KEY, "<u8").tobytes(), message)
            slot = word >> (j % per_word * (log_buckets + 1))
            bucket, sign = slot % (1 << log_buckets), 1 - 2 * (slot >> log_buckets & 1)
            row = 0
            for g, size in enumerate(sizes):
                added = np.eye(size, dtype=int)[codes[g, i]]
                if g in contrasts:
                    counter = (j << log_buckets) + bucket
                    turn = -1 if (counter & WALSH[g]).bit_count() % 2 else 1
                    added = [(1, -1, turn)[codes[g, i]]]
                out[j, row : row + len(added), bucket] += sign * np.array(added)
                row += len(added)
    return out


@pytest.mark.parametrize("log_buckets, repetitions", [(1, 40), (4, 13), (10, 6), (11, 5), (15, 5)])
@pytest.mark.parametrize("contrasts", [(), (1,), (0, 1, 3), (0, 2)])
def test_counters_are_those_of_a_loop_over_records(log_buckets, repetitions, contrasts):
    sizes = (2, 2, 3, 2, 5)
    digests, codes = table(150, sizes, 1)
    digests[::2] |= np.uint64(1 << 63)
    expected = by_loop(digests, codes, sizes, log_buckets, repetitions, contrasts)
    for several in (1, 2):
        with threads(several):
            counters = sketch(digests, codes, sizes, log_buckets, repetitions, contrasts)
        np.testing.assert_array_equal(counters, expected)


@pytest.mark.parametrize("sizes", [(3, 3, 3, 2, 5), (3, 3, 2, 3, 3)])
def test_alternating_contrasts_side_by_side_are_those_of_a_loop(sizes):
    digests, codes = table(150, sizes, 2)
    contrasts = [g for g, size in enumerate(sizes) if size < 5]
    expected = by_loop(digests, codes, sizes, 4, 13, contrasts)
    np.testing.assert_array_equal(sketch(digests, codes, sizes, 4, 13, contrasts), expected)


def test_buckets_and_signs_are_uniform_and_independent_from_one_repetition_to_the_next():
    log_buckets, repetitions, n = 3, 32, 40_000
    digests = np.arange(n, dtype=np.uint64)
    codes = np.zeros((1, n), np.uint16)
    both = np.zeros((repetitions, 16))
    for i in range(0, n, 400):
        # One record at a time shows its bucket and sign.
        state = sketch(
            digests[i : i + 1], codes[:, i : i + 1].copy(), (1,), log_buckets, repetitions
        )
        assert (np.abs(state).sum(axis=(1, 2)) == 1).all()
        bucket = np.abs(state[:, 0]).argmax(axis=1)
        both[np.arange(repetitions), 2 * bucket + (state[:, 0].sum(axis=1) > 0)] += 1
    assert stats.chisquare(both.sum(axis=0)).pvalue > 1e-4
    # Sums over all records have the variance of independent signs, in every repetition, and no correlation.
    state = sketch(digests, codes, (1,), log_buckets, repetitions)[:, 0] / math.sqrt(n / 8)
    assert abs((state**2).mean() - 1) < 5 * math.sqrt(2 / state.size)
    correlation = np.corrcoef(state)[np.triu_indices(repetitions, 1)]
    assert np.abs(correlation).max() < 5 / math.sqrt(8)


def test_walsh_functions_are_orthogonal_signs():
    signs = np.array([alternating(number, np.arange(64, 128)) for number in range(64)])
    np.testing.assert_array_equal(signs[0], 1)
    np.testing.assert_array_equal(signs @ signs.T, 64 * np.eye(64))
    large = np.array([0, 1, (1 << 40) + 5])
    by_bits = [-1 if (int(k) & (1 << 40) + 3).bit_count() % 2 else 1 for k in large]
    assert alternating((1 << 40) + 3, large).tolist() == by_bits


def thresholds_of(noise):
    """Where the law steps, as exact fractions of 2^-144."""
    parts = zip(noise.first, noise.high, noise.low, strict=True)
    return [int(f) << 128 | int(h) << 64 | int(lo) for f, h, lo in parts]


@pytest.mark.parametrize("variance", [4.0, 22.5, 900.0])
def test_noise_has_the_exact_law(variance):
    noise = noise_table(variance)
    values = np.arange(noise.lowest, -noise.lowest + 1, 2)
    weights = np.exp(-(values**2.0) / (8 * variance))
    weights /= weights.sum()
    edges = [0, *thresholds_of(noise), 1 << 144]
    law = np.array([(b - a) / 2**144 for a, b in itertools.pairwise(edges)])
    np.testing.assert_allclose(law, weights, rtol=1e-9, atol=1e-43)
    # Draws from all first words, settled or not, follow it.
    draws = 1 << 20
    rng = np.random.default_rng(1)
    counters, words = np.zeros(draws, np.int32), rng.integers(0, 1 << 16, draws).astype(np.uint16)
    unsettled = np.empty(draws, np.int64)
    count = add_noise(counters, 1, words, noise.settled, unsettled)
    assert 0 < count < draws // 20
    assert (noise.settled[words[unsettled[:count]]] == UNSETTLED).all()
    more = rng.integers(0, 2**64, (count, 2), dtype=np.uint64)
    settle_noise(counters, words, unsettled[:count], more, *noise[1:])
    assert (counters % 2 == 1).all()
    common = weights * draws > 20
    seen = np.array([(counters == v).sum() for v in values[common]])
    rest = draws - seen.sum()
    expected = weights[common] * draws
    assert (
        stats.chisquare([*seen, rest + 20], [*expected, draws - expected.sum() + 20]).pvalue > 1e-4
    )


def test_the_words_of_unsettled_draws_decide_as_the_thresholds_say():
    noise = noise_table(4.0)
    thresholds = thresholds_of(noise)
    for threshold in thresholds[10:-10]:
        for word in (threshold - 1, threshold):
            counters, words = np.array([7], np.int32), np.array([word >> 128], np.uint16)
            # The threshold in the middle is where its own first word begins: the word below settles itself.
            unsettled = np.empty(1, np.int64)
            count = add_noise(counters, 1, words, noise.settled, unsettled)
            assert count == 1 or threshold == 1 << 143
            more = np.array([[word >> 64 & (2**64 - 1), word & (2**64 - 1)]], np.uint64)
            settle_noise(counters, words, unsettled[:count], more, *noise[1:])
            assert counters[0] == 14 + noise.lowest + 2 * sum(word >= t for t in thresholds)


@pytest.mark.parametrize("variance", [0.5, 1e7, math.nan])
def test_variances_that_cannot_be_drawn_are_refused(variance):
    with pytest.raises(ValueError, match="variance from 1"):
        noise_table(variance)


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_codes_are_steps_from_zero_and_symmetric(bits):
    rng = np.random.default_rng(2)
    doubled = (2 * rng.integers(-60, 60, (3, 2, 8)) + 1).astype(np.int32)
    doubled[0, 0, :2] = 2**30 - 1, -(2**30) + 1
    steps = np.array([1.303, 6.127])
    out, mirrored = np.empty((2, 2, 24), np.uint8)
    quantise(doubled, steps, bits, out)
    quantise(-doubled, steps, bits, mirrored)
    half = 1 << (bits - 1)
    expected = np.clip(np.floor(doubled / 2 / steps[:, None]), -half, half - 1) + half
    np.testing.assert_array_equal(out, expected.transpose(1, 0, 2).reshape(2, 24))
    np.testing.assert_array_equal(out + mirrored, np.full((2, 24), 2 * half - 1))


@pytest.mark.parametrize("values, columns", [(1, 1), (4, 77), (7, 2048), (10, 3 * 2048 + 5)])
@pytest.mark.parametrize("workers", [1, 2])
def test_products_are_exact(values, columns, workers):
    codes = np.random.default_rng(3).integers(0, 16, (values, columns)).astype(np.uint8)
    codes[0] = 15
    odd = 2 * codes.astype(np.int64) - 15
    with threads(workers):
        np.testing.assert_array_equal(cross_products(codes, 4), (odd @ odd.T) / columns)
