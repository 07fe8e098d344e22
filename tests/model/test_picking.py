"""Balanced marginals: joint tables that contain them, their counts, and picks in blocks."""

import itertools
import math

import numpy as np
import pytest

from vertimrf.kernels.contingency import contingency
from vertimrf.kernels.jit import threads
from vertimrf.model import picking
from vertimrf.model.picking import Balance, _groups, balanced_marginals, stems_of

SIZES = (3, 2, 4, 1, 6, 5)
EVERY = [m for way in (1, 2, 3) for m in itertools.combinations(range(6), way) if 3 not in m]


@pytest.mark.parametrize(
    "most, grouped", [(1, True), (24, True), (1 << 16, True), (1 << 16, False)]
)
def test_every_marginal_is_in_one_joint_table_of_bounded_size(most, grouped, monkeypatch):
    monkeypatch.setattr(picking, "MAX_GROUPED", len(EVERY) - (not grouped))
    groups = _groups(SIZES, EVERY, most)
    assert sorted(itertools.chain(*(inside for _, inside in groups))) == sorted(EVERY)
    for group, inside in groups:
        assert all(set(marginal) <= set(group) for marginal in inside)
        assert math.prod(SIZES[a] for a in group) <= most or group in EVERY
    assert not grouped or (len(groups) == 1) == (most == 1 << 16)


@pytest.mark.parametrize("most", [1, 60, 1 << 16])
def test_counts_are_those_of_every_marginal(most):
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, size, 500) for size in SIZES], np.uint16)
    weights = rng.random(500)
    balance = Balance(SIZES, EVERY, most)
    _, _, tables, cells = stems_of(SIZES, EVERY)
    expected = np.zeros(cells)
    for first, strides in tables.values():
        where = first + sum(codes[a].astype(int) * stride for a, stride in strides.items())
        np.add.at(expected, where, weights)
    np.testing.assert_allclose(balance.shares(codes, weights), expected, rtol=1e-12)
    equal = balance.shares(codes, np.full(500, 1 / 500))
    np.testing.assert_allclose(balance.shares(codes, None), equal, rtol=1e-12)


def test_blocks_give_the_same_rows_on_any_threads_and_leave_gaps_as_one_does(monkeypatch):
    rng, size, candidates = np.random.default_rng(1), 8000, 4
    monkeypatch.setattr(picking, "MIN_BLOCKS", size)
    monkeypatch.setattr(picking, "ROUND", 1000)
    rows = np.array([rng.integers(0, n, candidates * size) for n in SIZES], np.uint16)
    marginals = balanced_marginals(SIZES, size, 1, candidates)
    balance = Balance(SIZES, marginals, rows.shape[1])
    expected = size * balance.shares(rows, None)

    def off(places):
        assert sorted(places % size) == list(range(size))
        every = contingency(rows, SIZES, (0, 2, 5)) / candidates
        return float(np.abs(contingency(rows[:, places], SIZES, (0, 2, 5)) - every).mean())

    alone = balance.pick(rows, size, expected, 1)
    several = []
    for number in (1, 2, 3):
        with threads(number):
            several.append(balance.pick(rows, size, expected, 4))
    np.testing.assert_array_equal(several[0], several[1])
    np.testing.assert_array_equal(several[0], several[2])
    assert (several[0] != alone).any()
    # Independent rows are off by 0.8 standard deviations of about 11 rows a cell.
    assert off(np.arange(size)) > 7
    assert off(alone) < 3
    assert off(several[0]) < 3.5
