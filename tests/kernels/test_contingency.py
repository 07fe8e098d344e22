"""Counting kernels against numpy's histograms."""

import itertools

import numpy as np
import pytest
from builders import ADULT

from vertimrf.kernels import contingency as module
from vertimrf.kernels.contingency import all_pairs, contingency
from vertimrf.kernels.jit import threads


def table(rng, sizes, n):
    return np.stack([rng.integers(0, s, n).astype(np.uint16) for s in sizes])


def oracle(codes, sizes, attributes):
    edges = [np.arange(sizes[a] + 1) for a in attributes]
    return np.histogramdd([codes[a] for a in attributes], bins=edges)[0].astype(np.int64)


@pytest.mark.parametrize("n", [0, 1, 2, 4095, 4096, 4097, 20_001])
def test_marginals(n):
    sizes = (3, 1, 5, 2, 300)
    codes = table(np.random.default_rng(n), sizes, n)
    for attributes in [(0,), (4,), (1,), (0, 2), (2, 0), (4, 2, 0), (0, 1, 2, 3)]:
        counts = contingency(codes, sizes, attributes)
        assert counts.dtype == np.int64
        if n:
            np.testing.assert_array_equal(counts, oracle(codes, sizes, attributes))
        else:
            assert counts.shape == tuple(sizes[a] for a in attributes)
            assert counts.sum() == 0


@pytest.mark.parametrize("n", [1, 100, 30_000])
def test_all_pairs(n):
    sizes = (3, 1, 5, 2, 60, 16, 7, 41)
    codes = table(np.random.default_rng(3), sizes, n)
    pairs = list(itertools.permutations(range(len(sizes)), 2))[::3]
    for pair, counts in zip(pairs, all_pairs(codes, sizes, pairs), strict=True):
        np.testing.assert_array_equal(counts, contingency(codes, sizes, pair))
        assert counts.flags.c_contiguous


def test_no_pairs():
    assert all_pairs(np.zeros((2, 5), np.uint16), (2, 2), []) == []


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr(module, "SHARE", 1000)
    sizes = (4, 6, 3)
    codes = table(np.random.default_rng(4), sizes, 50_001)
    for count in (1, 2):
        with threads(count):
            np.testing.assert_array_equal(
                contingency(codes, sizes, (0, 1, 2)), oracle(codes, sizes, (0, 1, 2))
            )


def test_joint_tables_hold_every_pair_within_the_limit():
    pairs = set(itertools.combinations(range(15), 2))
    joints = module.joints(ADULT, pairs, module.JOINT_CELLS)
    assert all(np.prod([ADULT[a] for a in joint]) <= module.JOINT_CELLS for joint, _ in joints)
    assert sorted(pairs) == sorted(pair for joint, served in joints for pair in served)
    assert all(set(pair) <= set(joint) for joint, served in joints for pair in served)


def test_codes_outside_the_domain_are_refused():
    codes = np.array([[0, 3], [0, 1]], np.uint16)
    with pytest.raises(ValueError, match="Attribute 0 has code 3"):
        contingency(codes, (3, 2), (0, 1))
    with pytest.raises(ValueError, match="only 3 values"):
        all_pairs(codes, (3, 2), [(1, 0)])
