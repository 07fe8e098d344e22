"""CarEst as published: the kernels against a slow count of unions, the estimates against the truth, bad input by name."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from oracles import crossed, highest_levels
from scipy.optimize import brentq

from vertimrf.errors import PlanError
from vertimrf.kernels.jit import threads
from vertimrf.kernels.shared_keys import invert_shares, largest_two, union_shares
from vertimrf.releases.shared_keys.encoding import SharedKeyEncoder
from vertimrf.releases.shared_keys.estimation import cut_law, published_estimates
from vertimrf.releases.shared_keys.parameters import SharedKeys
from vertimrf.tables.ids import record_digests


def simulate(rng, table, plan):
    """Published sketches of every attribute of a contingency table [one array (values, keys) each]."""
    levels = [np.zeros((size, plan.keys), np.int64) for size in table.shape]
    for cell in np.ndindex(table.shape):
        high = highest_levels(rng, int(table[cell]), plan.keys)
        for axis, value in enumerate(cell):
            np.maximum(levels[axis][value], high, out=levels[axis][value])
    for rows in levels:
        for row in rows:
            np.maximum(row, highest_levels(rng, plan.phantoms, plan.keys), out=row)
    return [np.clip(rows, max(plan.floor, 1), plan.ceiling).astype(np.uint8) for rows in levels]


def estimate(plan, table, levels, marginals, **options):
    d = table.ndim
    with threads(1):
        return published_estimates(
            plan, range(d), [None] * d, levels, marginals, float(table.sum()), **options
        )


def slow_levels(levels):
    """Per cell and key, the highest level among the sketches of the other values; 0 where there is none."""
    shape = tuple(len(rows) for rows in levels)
    out = np.zeros((*shape, levels[0].shape[1]), np.int64)
    for cell in np.ndindex(shape):
        for rows, value in zip(levels, cell, strict=True):
            for other in range(len(rows)):
                if other != value:
                    out[cell] = np.maximum(out[cell], rows[other])
    return out


def slow_shares(levels, ceiling):
    return (2.0 ** (ceiling - slow_levels(levels))).sum(axis=-1)


def kernel_shares(levels, marginals, ceiling, slices):
    keys = levels[0].shape[1]
    sizes = np.array([len(rows) for rows in levels])
    first_row = np.concatenate([[0], np.cumsum(sizes)])
    largest, second = np.empty((2, len(levels), keys), np.uint8)
    holder = np.empty((len(levels), keys), np.uint16)
    for i in range(len(levels)):
        largest_two(np.concatenate(levels), first_row, i, i + 1, largest, second, holder)
    members = np.array([a for marginal in marginals for a in marginal])
    first_member = np.cumsum([0, *map(len, marginals)])
    first_cell = np.cumsum([0, *(math.prod(sizes[list(m)]) for m in marginals)])
    out = np.empty(first_cell[-1], np.int64)
    unions = largest, second, holder, sizes, members, first_member, first_cell, ceiling
    cuts = [len(marginals) * i // slices for i in range(slices + 1)]
    for begin, end in itertools.pairwise(cuts):
        union_shares(*unions, begin, end, out)
    return [
        out[a:b].reshape(sizes[list(m)])
        for a, b, m in zip(first_cell, first_cell[1:], marginals, strict=False)
    ]


@pytest.mark.parametrize(
    "keys, lowest, ceiling", [(1, 1, 3), (7, 3, 8), (255, 9, 20), (1025, 1, 30)]
)
def test_shares_equal_a_slow_union_whatever_the_slices(keys, lowest, ceiling):
    rng = np.random.default_rng(keys)
    # Few distinct levels: ties between values and attributes, whose every order must count.
    levels = [
        rng.integers(lowest, min(ceiling, lowest + 4) + 1, (size, keys)).astype(np.uint8)
        for size in (3, 2, 5, 2)
    ]
    marginals = [m for l in range(1, 5) for m in itertools.combinations(range(4), l)]
    result = kernel_shares(levels, marginals, ceiling, 1)
    for marginal, shares in zip(marginals, result, strict=True):
        np.testing.assert_array_equal(shares, slow_shares([levels[i] for i in marginal], ceiling))
    for slices in (2, 3, len(marginals)):
        for one, other in zip(
            result, kernel_shares(levels, marginals, ceiling, slices), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "floor, ceiling, keys",
    [(0, 3, 10), (0, 40, 500), (8, 9, 50), (9, 20, 2000), (12, 30, 10**6)],
)
def test_the_tabulated_law_inverts_the_expected_share(floor, ceiling, keys):
    x = np.arange(max(floor, 1), ceiling + 1)
    cdf = 1 - 2.0**-x

    def expected(log_size):
        p = np.diff(np.append(cdf[:-1] ** np.exp(log_size), 1.0), prepend=0.0)
        return p @ 2.0**-x, p @ 4.0**-x

    low, high, position, log_size, slope, factor, error = cut_law(floor, ceiling, keys)
    assert np.all(np.diff(position) > 0)
    inside = np.linspace(log_size[2], log_size[-3], 40)
    scale = high / 2.0**62
    shares = np.array([expected(v)[0] / scale for v in inside]).astype(np.int64)
    sizes, errors = np.empty((2, 40))
    law = position, log_size, slope, factor, error
    for begin, end in ((0, 13), (13, 40)):
        invert_shares(shares, low, high, scale, *law, begin, end, sizes, errors)
    for v, size, spread in zip(inside, sizes, errors, strict=True):
        mean, square = expected(v)
        h = 1e-3
        first = (expected(v + h)[0] - expected(v - h)[0]) / (2 * h)
        curve = (expected(v + h)[0] - 2 * mean + expected(v - h)[0]) / h**2 - first
        variance = (square - mean**2) / keys
        assert size == pytest.approx(np.exp(v) / (1 - 0.5 * curve / first**3 * variance), rel=5e-3)
        assert spread == pytest.approx(size * np.sqrt(variance) / abs(first), rel=2e-2)
        root = brentq(
            lambda u, mean=mean: expected(u)[0] - mean, log_size[0], log_size[-1], xtol=1e-12
        )
        assert root == pytest.approx(v, abs=1e-6)


def test_where_nothing_is_cut_the_estimate_is_hyperloglogs():
    keys, floor, ceiling, table = 1000, 4, 24, np.array([[3000, 5000], [1000, 7000], [40, 10_000]])
    plan = SharedKeys(2000, floor, ceiling, keys, table.shape)
    levels = simulate(np.random.default_rng(1), table, plan)
    (measured,) = estimate(plan, table, levels, [(0, 1)])
    items = 0.7213 / (1 + 1.079 / keys) * keys / (2.0 ** -slow_levels(levels)).sum(axis=-1)
    np.testing.assert_allclose(
        measured.counts,
        np.maximum(table.sum() - (items - 3 * 2000), 0),
        rtol=0,
        atol=1e-3 * items.max(),
    )
    np.testing.assert_allclose(measured.sigma, 1.04 * items / np.sqrt(keys), rtol=5e-3)


@pytest.mark.parametrize(
    "phantoms, floor, ceiling",
    # Of some 25,000 items: uncut; about half of all levels at the floor; half of them at the ceiling; few distinct levels.
    [(300, 3, 24), (300, 15, 24), (300, 3, 16), (300, 14, 16)],
)
def test_estimates_of_any_order_are_unbiased_with_the_errors_that_they_state(
    phantoms, floor, ceiling
):
    rng = np.random.default_rng(floor * 100 + ceiling)
    table = np.zeros((2, 3, 1, 2), np.int64)
    # Every margin's cell is many errors above 0, so that the clip does not show.
    table[0, 0, 0, 0], table[1, 2, 0, 1], table[1, 1, 0, 0] = 9000, 8000, 7000
    plan = SharedKeys(phantoms, floor, ceiling, 2000, table.shape)
    marginals = [m for l in range(1, 5) for m in itertools.combinations(range(4), l)]
    repetitions = 100
    runs = [
        estimate(plan, table, simulate(rng, table, plan), marginals) for _ in range(repetitions)
    ]
    z = []
    for i, marginal in enumerate(marginals):
        truth = table.sum(axis=tuple(set(range(4)) - set(marginal)))
        if runs[0][i].counts.size == 1:
            assert runs[0][i].counts.ravel() == table.sum()
            continue
        errors = np.array([run[i].counts for run in runs]) - truth
        sigma = np.mean([run[i].sigma for run in runs], axis=0)
        large = truth > 0
        z += list(errors[:, large].mean(axis=0) / sigma[large] * np.sqrt(repetitions))
        # The chi^2 spread of 100 squared errors is 1 +- 0.14; cells share their keys.
        assert 0.65 < (errors[:, large] ** 2).mean() / (sigma[large] ** 2).mean() < 1.35
        # Empty cells come out at 0 or above, never below, and within four errors.
        assert np.all(errors[:, ~large] >= 0)
        assert np.all(errors[:, ~large].mean(axis=0) < 0.8 * sigma[~large])
    # About 30 cells, correlated; fails by chance once in a thousand.
    assert np.abs(z).max() < 4


def test_sketches_of_the_encoder_give_back_its_records():
    rng = np.random.default_rng(8)
    n, sizes = 3000, (2, 3, 4, 2)
    codes = rng.integers(0, 2, (4, n)).astype(np.uint16)
    codes[2] += 2 * codes[0]
    truth = crossed(codes, sizes)
    plan = SharedKeys(60, 4, 20, 4000, sizes)
    tables = []
    # Three parties, each with its own rows' order.
    for mine in ((0,), (1, 3), (2,)):
        encoder = SharedKeyEncoder(plan, mine, bytes(32))
        order = rng.permutation(n)
        encoder.update(
            record_digests(bytes(16), order), np.ascontiguousarray(codes[list(mine)][:, order])
        )
        tables += encoder.result(rng.bytes)
    marginals = [m for l in range(1, 5) for m in itertools.combinations(range(4), l)]
    measured = published_estimates(plan, (0, 1, 3, 2), [None] * 4, tables, marginals, float(n))
    for marginal, one in zip(marginals, measured, strict=True):
        counts = truth.sum(axis=tuple(set(range(4)) - set(marginal)))
        assert one.counts.shape == counts.shape
        # Some 100 cells, which share their keys.
        assert np.all(np.abs(one.counts - counts) < 4.5 * one.sigma)
    # Of a value of the first attribute and one of the third that it excludes.
    assert (
        measured[marginals.index((0, 2))].counts[0, 3]
        < 400
        < measured[marginals.index((0, 2))].counts[1, 3]
    )


def test_one_record_and_attributes_of_one_value():
    rng = np.random.default_rng(4)
    table = np.zeros((1, 2, 1), np.int64)
    table[0, 1, 0] = 1
    plan = SharedKeys(3, 0, 10, 4000, table.shape)
    levels = simulate(rng, table, plan)
    single, pair, triple = estimate(plan, table, levels, [(0,), (0, 2), (0, 1, 2)])
    assert single.counts.tolist() == [1.0]
    assert pair.counts.shape == (1, 1)
    assert single.sigma.tolist() == [0.5]
    assert np.all(np.abs(triple.counts - table) < 4 * triple.sigma)
    assert np.all(triple.counts >= 0)
    assert published_estimates(plan, (), [], [], [], 1.0) == []


def test_threads_and_the_company_of_other_marginals_change_nothing():
    rng = np.random.default_rng(6)
    plan = SharedKeys(40, 3, 20, 70_001, (5, 2, 3))
    levels = [rng.integers(3, 21, (size, plan.keys)).astype(np.uint8) for size in plan.sizes]
    marginals = [(0, 1), (1, 2), (0, 1, 2), (2,)]
    bins = [np.arange(5), None, np.array([0, 0, 1, 2, 2])]
    ours = [(4, 7, 9)[i] for i in range(3)]
    named = [tuple(ours[i] for i in m) for m in marginals]
    with threads(1):
        first = published_estimates(plan, ours, bins, levels, named, 1e5)
    second = published_estimates(plan, ours, bins, levels, named, 1e5)
    alone = [published_estimates(plan, ours, bins, levels, [m], 1e5)[0] for m in named]
    for marginal, *others in zip(named, first, second, alone, strict=True):
        for one in others:
            assert one.attributes == marginal
            np.testing.assert_array_equal(one.counts, others[0].counts)
            np.testing.assert_array_equal(one.sigma, others[0].sigma)
    assert first[1].bins[1] is bins[2]


def test_bad_input_is_one_sentence():
    rng = np.random.default_rng(7)
    plan = SharedKeys(40, 3, 10, 50, (2, 3))
    levels = [rng.integers(3, 11, (size, 50)).astype(np.uint8) for size in plan.sizes]

    def attempt(words, plan=plan, levels=levels, marginals=((0, 1),)):
        with pytest.raises(PlanError, match=words):
            published_estimates(plan, (0, 1), (None, None), levels, marginals, 10.0)

    attempt("overflow", plan=replace(plan, keys=2**31, floor=0, ceiling=40))
    attempt("all alike", plan=replace(plan, floor=0, ceiling=1))
    wide = [np.full((1 << 16, 50), 5, np.uint8)] * 2
    attempt("2\\^31 cells", levels=wide, marginals=((0, 1), (0,)))
