"""The event-driven hash: arithmetic, a slow oracle, its law, and independence of everything that must not matter.

Statistical tests have fixed seeds and reject at p < 1e-4 under the exact law.
"""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from oracles import ALPHA, cdf, chi_square, siphash
from scipy import stats

from benchmarks.speed.beside import encode_dense
from vertimrf.kernels import geometric
from vertimrf.kernels.geometric import (
    SHARE,
    TILE,
    encode_rows,
    encode_shared,
    group_by_value,
    hazards,
    raise_row,
)
from vertimrf.kernels.jit import threads
from vertimrf.kernels.phantoms import (
    phantom_table,
    phantom_thresholds,
    raise_by_phantoms,
    raise_unsettled,
)

K0, K1 = np.uint64(0x0123456789ABCDEF), np.uint64(0xFEDCBA9876543210)
KEY = int(K0).to_bytes(8, "little") + int(K1).to_bytes(8, "little")


def some_digests(n, seed):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def row_of(digests, keys, block=0, stop=1, base=1, ceiling=30):
    row = np.full(keys, base, np.uint8)
    work, real = np.empty((3, TILE), np.uint64), np.empty((3, TILE))
    raise_row(K0, K1, digests, block, stop, row, *hazards(ceiling), work, real)
    return row


# --- arithmetic ---


def test_hazards_are_those_of_the_geometric_law():
    start, per_length = hazards(20)
    for level in range(2, 21):
        low = -math.log1p(-(2.0**-level)) if level < 20 else 0.0
        high = -math.log1p(-(2.0 ** -(level - 1)))
        assert start[level] == pytest.approx(low, rel=1e-15)
        assert per_length[level] == pytest.approx(1 / (high - low), rel=1e-12)
    assert start[1] == pytest.approx(math.log(2), rel=1e-15)


def test_gaps_are_minus_the_logarithm():
    getcontext().prec = 50
    random = some_digests(500, 4)
    edges = np.array([0, 1, 2, 2**64 - 1, 2**64 - 2, 2**63, 2**63 - 1, 2**32, 12345], np.uint64)
    near = np.uint64(2**64 - 1) - (random[:200] >> np.uint64(40))
    for word in (random, edges, near, random[:200] >> np.uint64(30)):
        position = np.zeros(len(word))
        work = np.empty((2, len(word)))
        geometric.advance(word, len(word), 1.0, position, *work)
        for u, gap in zip(word.tolist(), position.tolist(), strict=True):
            # A word stands for fractions from word / 2^64 to (word + 1) / 2^64.
            low, high = (-(Decimal(x) / 2**64).ln() for x in (u + 1, max(u, 1)))
            assert low * (1 - Decimal(2) ** -50) <= Decimal(gap) <= high * (1 + Decimal(2) ** -50)


def test_every_position_finds_its_level_and_key():
    keys, ceiling = 1000, 12
    start, per_length = hazards(ceiling)
    rng = np.random.default_rng(5)
    ends = np.append(start[2:], math.log(2))
    position = np.concatenate(
        [
            rng.uniform(0, math.log(2), 5000),
            2.0 ** -rng.uniform(0.6, 40, 5000),
            ends[ends > 0] * (1 - 1e-12),
            ends[ends > 0] * (1 + 1e-12),
            2.0 ** -np.arange(1.0, 20),
            [0.0],
        ]
    )
    position = position[position < start[1]]
    place = np.empty(len(position), np.uint64)
    geometric.locate(position, len(position), start, per_length, keys, place)
    for x, packed in zip(position.tolist(), place.tolist(), strict=True):
        if packed & geometric.ODD == geometric.ODD:
            packed = geometric.settle(x, start, per_length, keys)
        level = next(l for l in range(ceiling, 0, -1) if x < start[l - 1])
        assert packed >> geometric.LEVEL_SHIFT == level
        key = (x - start[level]) / (start[level - 1] - start[level]) * keys
        assert abs((packed & geometric.ODD) - key) <= 1 + 1e-6
        assert 0 <= packed & geometric.ODD < keys


# --- a slow oracle ---


def slow_row(digests, keys, block, base, ceiling):
    """Every event of every record, with nothing skipped, from the definition."""
    row = [base] * keys
    start = [math.inf] + [-math.log1p(-(2.0**-l)) for l in range(1, ceiling)] + [0.0]
    for digest in digests.tolist():
        x, counter = 0.0, 0
        while True:
            message = (
                digest.to_bytes(8, "little")
                + block.to_bytes(4, "little")
                + counter.to_bytes(3, "little")
            )
            x -= math.log1p(-(2**64 - siphash(KEY, message)) / 2**64) / keys
            counter += 1
            if x >= start[1]:
                break
            level = next(l for l in range(ceiling, 0, -1) if x < start[l - 1])
            key = int((x - start[level]) / (start[level - 1] - start[level]) * keys)
            row[key] = max(row[key], level)
    return np.array(row, np.uint8)


@pytest.mark.parametrize("keys, ceiling", [(1, 10), (2, 3), (37, 30), (500, 12), (1000, 2)])
def test_kernel_equals_the_slow_oracle(keys, ceiling):
    for records, base in ((0, 1), (1, 1), (5, 1), (20, min(3, ceiling - 1))):
        digests = some_digests(records, 6 + records)
        expected = slow_row(digests, keys, 9, base, ceiling)
        assert np.array_equal(row_of(digests, keys, 9, base, base, ceiling), expected)


def test_stopping_early_changes_nothing_above_the_stop():
    digests = some_digests(700, 8)
    full = row_of(digests, 900)
    for stop in range(1, 20):
        assert np.array_equal(
            np.maximum(row_of(digests, 900, stop=stop), stop), np.maximum(full, stop)
        )


@pytest.mark.parametrize("n", [0, 1, 5, 1000, 5 * SHARE + 7])
def test_grouping_is_a_stable_sort(n):
    digests = some_digests(n, 9)
    codes = np.random.default_rng(9).integers(0, 7, n).astype(np.uint16)
    for several in (1, 2):
        grouped = np.empty(n, np.uint64)
        with threads(several):
            starts = group_by_value(digests, codes, 8, grouped)
        assert np.array_equal(grouped, digests[np.argsort(codes, kind="stable")])
        assert np.array_equal(starts, np.searchsorted(np.sort(codes), np.arange(9)))


def test_a_wrong_guess_of_where_to_stop_changes_nothing():
    digests = some_digests(300, 10)
    expected = row_of(digests, 400, ceiling=20)
    for guess in (1, 4, 8, 19):
        state, minima = np.ones(400, np.uint8), np.ones(1, np.uint8)
        tasks = np.array([[0, 300, 0, 400, 0, guess]])
        encode_rows(K0, K1, digests, tasks, np.array([0, 1]), *hazards(20), state, minima)
        assert np.array_equal(state, expected)
        assert minima[0] <= state.min()


def test_shared_keys_give_a_record_one_level_in_all_attributes():
    n, keys, sizes = 400, 300, (1, 3, 5)
    digests = some_digests(n, 11)
    rng = np.random.default_rng(11)
    codes = np.stack([rng.integers(0, u, n) for u in sizes]).astype(np.uint16)
    first_row = np.cumsum([0, *sizes[:-1]])
    for workers in (1, 3):
        tables = np.ones((workers, sum(sizes), keys), np.uint8)
        encode_shared(
            K0,
            K1,
            digests,
            codes,
            first_row,
            np.ones(sum(sizes), np.uint8),
            4,
            *hazards(20),
            tables,
        )
        table = tables.max(axis=0)
        for j, u in enumerate(sizes):
            for v in range(u):
                assert np.array_equal(
                    table[first_row[j] + v], row_of(digests[codes[j] == v], keys, 4, ceiling=20)
                )


# --- the law ---


def dense_row(digests, keys, block, ceiling):
    row = np.zeros((1, keys), np.uint8)
    one = np.zeros((1, digests.size), np.uint16)
    encode_dense(K0, K1, digests, one, np.zeros(1, np.int64), ceiling, row)
    return row[0]


@pytest.mark.parametrize("make", [row_of, dense_row])
@pytest.mark.parametrize(
    "records", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 10, 1000))]
)
def test_levels_have_the_law_of_a_maximum_of_geometric_draws(records, make):
    law = np.diff(cdf(np.arange(17), records, 16))
    counts = np.zeros(17, int)
    for block in range(8):
        row = make(some_digests(records, 100 + block), 20_000, block, ceiling=16)
        counts += np.bincount(row, minlength=17)
    assert chi_square(counts[1:], law) > ALPHA


@pytest.mark.slow
def test_numbers_of_keys_above_levels_are_binomial_per_record():
    """Independence across the keys of one stream: under- or over-dispersion of its events would show here."""
    keys, records = 700, 2000
    rows = np.array([row_of(d[None], keys, 2) for d in some_digests(records, 17)])
    for level in (1, 3, 6, 10):
        above = (rows > level).sum(axis=1)
        law = stats.binom(keys, 2.0**-level)
        counts = np.bincount(above, minlength=keys + 1)
        assert chi_square(counts, law.pmf(np.arange(keys + 1))) > ALPHA


# --- phantoms ---


def test_phantom_levels_are_those_of_the_whole_word():
    """Byte by byte, as comparing the 64-bit word with every threshold would have it, thresholds' neighbours included."""
    floor, ceiling = 6, 17
    thresholds = phantom_thresholds(1000, floor, ceiling)
    table = phantom_table(thresholds, floor)
    one = np.uint64(1)
    for word in np.concatenate(
        [thresholds, thresholds - one, thresholds + one, some_digests(200, 20)]
    ):
        level, unsettled = np.ones(1, np.uint8), np.empty(1, np.int64)
        first = np.array([word >> np.uint64(56)], np.uint8)
        left = raise_by_phantoms(level, first, table, unsettled)
        raise_unsettled(
            level, first, unsettled[:left], np.array([word << np.uint64(8)]), thresholds, floor
        )
        assert level[0] == floor + (thresholds <= word).sum()


def test_phantom_thresholds_are_exact():
    getcontext().prec = 80
    for phantoms, floor, ceiling in ((1, 0, 20), (7, 1, 10), (50_000, 6, 17), (10**6, 16, 40)):
        thresholds = phantom_thresholds(phantoms, floor, ceiling).tolist()
        for level, threshold in zip(range(floor, ceiling), thresholds, strict=True):
            assert abs(Decimal(threshold) - (1 - Decimal(2) ** -level) ** phantoms * 2**64) <= 1
