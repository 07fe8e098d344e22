"""Scores that others defined, against their definitions."""

import itertools
from collections import Counter

import numpy as np
import pytest

from vertimrf.plan.attribute import Attribute
from vertimrf.utility.scores import k_marginal, quality


def test_a_k_marginal_score_worked_out_by_hand():
    # Real: 000, 000, 110, 111; synthetic: 000, 000, 000, 110.
    real = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]], np.uint16)
    synthetic = np.array([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], np.uint16)
    # First two: 00 has 1/2 and 3/4, 11 has 1/2 and 1/4, so that |p - q| adds up to 1/2. First and last, and likewise second and
    # last: 00 1/2 and 3/4, 10 1/4 and 1/4, 11 1/4 and 0: 1/2. All three: the same.
    assert k_marginal(real, synthetic, (2, 2, 2)) == {"2": 750.0, "3": 750.0}
    # One pair alone is off: 00 and 11 for 01 and 10 leaves every single attribute as it was.
    real = np.array([[0, 1], [0, 1], [0, 0]], np.uint16)
    synthetic = np.array([[0, 1], [1, 0], [0, 0]], np.uint16)
    assert k_marginal(real, synthetic, (2, 2, 2)) == {"2": pytest.approx(2000 / 3), "3": 0.0}
    assert k_marginal(real[:2], real[:2], (2, 2)) == {"2": 1000.0}


def test_the_k_marginal_score_is_the_definition_of_its_code():
    rng = np.random.default_rng(5)
    sizes = (3, 4, 2, 5, 3)
    real, synthetic = (
        np.stack([rng.integers(size, size=n) for size in sizes]).astype(np.uint16)
        for n in (150, 210)
    )
    scores = k_marginal(real, synthetic, sizes)
    for k in (2, 3):
        differences = []
        for chosen in map(list, itertools.combinations(range(5), k)):
            p, q = (
                Counter(zip(*codes[chosen].tolist(), strict=True)) for codes in (real, synthetic)
            )
            differences.append(
                sum(abs(p[cell] / 150 - q[cell] / 210) for cell in p.keys() | q.keys())
            )
        assert scores[str(k)] == pytest.approx((2 - np.mean(differences)) * 500)


def test_quality_of_shapes_worked_out_by_hand():
    pytest.importorskip("sdmetrics.reports", reason="SDMetrics is not installed")
    attributes = [
        Attribute.integer("age", 4),
        Attribute.categorical("job", ["a", "b", "c"]),
        Attribute.integer("size", 2),
    ]
    rng = np.random.default_rng(6)
    real = np.array(
        [
            rng.permutation(np.repeat([0, 1, 2, 3], 50)),
            rng.permutation(np.repeat([0, 1], 100)),
            np.arange(200) % 2,
        ]
    )
    made = np.array(
        [
            rng.permutation(np.repeat([1, 2], 100)),
            rng.permutation(np.repeat([0, 2], 100)),
            np.arange(200) % 2,
        ]
    )
    scores = quality(real.astype(np.uint16), made.astype(np.uint16), attributes)
    # Of an order one less the largest difference of the distribution functions, 1/4; of categories one less the total variation
    # distance, 1/2.
    assert scores is not None
    assert scores["column_shapes"] == pytest.approx((0.75 + 0.5 + 1) / 3)
    # No pair depends on each other in the real table.
    assert "pair_trends" not in scores


def test_quality_of_pairs_and_of_missing_values():
    pytest.importorskip("sdmetrics.reports", reason="SDMetrics is not installed")
    rng = np.random.default_rng(7)
    attributes = [
        Attribute.numeric("x", [0, 1, 2, 3], missing=True),
        Attribute.numeric("y", [0, 1, 2, 3]),
    ]
    x = rng.integers(0, 3, 3000)
    real, made = np.array([x, x]), np.array([x, rng.permutation(x)])
    scores = quality(real.astype(np.uint16), made.astype(np.uint16), attributes)
    # A correlation of 1 for one of 0 within a standard error of 0.02: half the scale.
    assert scores is not None
    assert scores["pair_trends"] == pytest.approx(0.5, abs=0.06)
    assert scores["column_shapes"] == pytest.approx(1)
    # Were what is missing a number, the largest one, it would put the shape off.
    real[0, ::2] = 3
    made[0, 1::2] = 3
    same = quality(np.sort(real).astype(np.uint16), np.sort(real).astype(np.uint16), attributes)
    some = quality(real.astype(np.uint16), made.astype(np.uint16), attributes)
    assert same is not None
    assert some is not None
    assert same["column_shapes"] == pytest.approx(1)
    assert some["column_shapes"] == pytest.approx(1, abs=0.06)


@pytest.mark.usefixtures("bare")
def test_without_sdmetrics_there_is_no_quality():
    codes = np.zeros((1, 5), np.uint16)
    assert quality(codes, codes, [Attribute.integer("x", 2)]) is None
