"""Distances against a slow count in dictionaries, and the choice of marginals."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from builders import KEYS

from vertimrf.errors import PlanError
from vertimrf.plan.schema import Schema
from vertimrf.utility.distances import distance, random_marginals, tvd


def draw(rng, sizes, n):
    return np.stack([rng.integers(size, size=n) for size in sizes]).astype(np.uint16)


def slow_distance(real, synthetic, attributes):
    p, q = (
        Counter(zip(*codes[list(attributes)].tolist(), strict=True)) for codes in (real, synthetic)
    )
    n, m = real.shape[1], synthetic.shape[1]
    return sum(abs(p[cell] / n - q[cell] / m) for cell in p.keys() | q.keys()) / 2


# The last two are beyond int64 when multiplied out: 60,000^4 is about 2^63.5.
@pytest.mark.parametrize(
    "sizes", [(2, 3, 4), (50, 60, 70), (5000, 1, 3), (60_000,) * 4, (65_535,) * 6]
)
def test_distances_agree_with_a_slow_count(sizes):
    rng = np.random.default_rng(1)
    real, synthetic = draw(rng, sizes, 300), draw(rng, sizes, 450)
    # Some common cells also where the domain is huge.
    synthetic[:, :200] = real[:, rng.integers(300, size=200)]
    for way in range(1, len(sizes) + 1):
        for attributes in itertools.combinations(range(len(sizes)), way):
            expected = slow_distance(real, synthetic, attributes)
            assert distance(real, synthetic, sizes, attributes) == pytest.approx(
                expected, abs=1e-12
            )


def test_the_ends_of_the_scale():
    rng = np.random.default_rng(3)
    real = draw(rng, (4, 4, 4, 4), 1000)
    shuffled = real[:, rng.permutation(1000)]
    assert tvd(real, shuffled, (4,) * 4, (1, 2, 3)) == {1: 0.0, 2: 0.0, 3: 0.0}
    assert tvd(np.zeros_like(real), np.ones_like(real), (4,) * 4, (1, 4)) == {1: 1.0, 4: 1.0}


def test_the_mean_is_over_all_marginals_if_they_are_few():
    rng = np.random.default_rng(4)
    sizes = (2, 3, 4, 5)
    real, synthetic = draw(rng, sizes, 60), draw(rng, sizes, 70)
    expected = [
        slow_distance(real, synthetic, pair) for pair in itertools.combinations(range(4), 2)
    ]
    assert tvd(real, synthetic, sizes, (2,))[2] == pytest.approx(np.mean(expected), abs=1e-12)


def test_the_draw_is_distinct_fixed_and_independent_of_other_ways():
    drawn = random_marginals(15, 4, 300)
    assert len(set(drawn)) == 300
    assert all(list(subset) == sorted(set(subset)) and len(subset) == 4 for subset in drawn)
    assert drawn == random_marginals(15, 4, 300)
    assert drawn != random_marginals(15, 4, 300, seed=1)
    # Frozen, so that figures of different versions compare.
    assert (drawn[0], drawn[150], drawn[299]) == ((0, 1, 2, 5), (2, 4, 5, 14), (11, 12, 13, 14))
    rng = np.random.default_rng(5)
    real, synthetic = draw(rng, (3,) * 15, 50), draw(rng, (3,) * 15, 50)
    assert tvd(real, synthetic, (3,) * 15, (3, 4, 5))[4] == tvd(real, synthetic, (3,) * 15, (4,))[4]


@pytest.mark.parametrize("attributes", [12, 60])
def test_subsets_are_equally_likely(attributes):
    # 60 attributes have 487,635 4-way subsets, too many to list: the other branch.
    seeds, each = 60, 50
    counts = np.zeros(attributes)
    for seed in range(seeds):
        for subset in random_marginals(attributes, 4, each, seed):
            counts[list(subset)] += 1
    total = seeds * each
    share = 4 / attributes
    # An attribute is in a subset with probability share; drawing without replacement only shrinks the standard error.
    assert np.abs(counts / total - share).max() < 5 * math.sqrt(share * (1 - share) / total)


def test_marginals_across_parties():
    parties = [0, 0, 0, 1, 1, 2]
    spanning = random_marginals(6, 2, 300, parties=parties)
    expected = [(a, b) for a, b in itertools.combinations(range(6), 2) if parties[a] != parties[b]]
    assert spanning == expected
    triples = list(itertools.combinations(range(6), 3))
    assert random_marginals(6, 3, 300, parties=parties) == [
        triple for triple in triples if triple != (0, 1, 2)
    ]
    some = random_marginals(100, 5, 40, parties=[0] * 99 + [1])
    assert len(some) == 40
    assert all(99 in subset for subset in some)
    rng = np.random.default_rng(6)
    real, synthetic = draw(rng, (3,) * 6, 80), draw(rng, (3,) * 6, 90)
    means = [slow_distance(real, synthetic, pair) for pair in expected]
    assert tvd(real, synthetic, (3,) * 6, (2,), parties=parties)[2] == pytest.approx(
        np.mean(means), abs=1e-12
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((2, 3), "no 3-way marginals of 2 attributes"),
        ((2, 0), "no 0-way marginals"),
        ((2, 2, 0), "at least 1, not 0"),
        ((3, 2, 300, 0, [0, 0, 0]), "no 2-way marginals that span parties"),
        ((3, 1, 300, 0, [0, 0, 1]), "no 1-way marginals that span parties"),
    ],
)
def test_no_marginals_to_choose(arguments, message):
    with pytest.raises(PlanError, match=message):
        random_marginals(*arguments)


@pytest.mark.data
def test_independent_attributes_on_the_papers_data(paper_data):
    # Shuffling every column keeps the one-way marginals and nothing else. Known figure for NLTCS: 0.25.
    from vertimrf.tables.columns import encode_table

    schema = Schema.load(paper_data / "nltcs-domain.json")
    codes = encode_table(
        paper_data / "nltcs.csv.gz", "record_id", schema.attributes, keys=KEYS
    ).codes
    rng = np.random.default_rng(8)
    shuffled = np.stack([rng.permutation(row) for row in codes])
    distances = tvd(codes, shuffled, schema.sizes, (1, 3))
    assert distances[1] == 0
    assert 0.2 < distances[3] < 0.3
