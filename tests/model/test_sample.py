"""Sampling by rounded counts: its stated bound, its randomness, its independence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vertimrf.errors import ModelError
from vertimrf.kernels.contingency import contingency
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.model.sample import sample, sample_chunks


def random_model(seed: int, sizes: tuple[int, ...], sets: list[tuple[int, ...]]) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    factors = [Factor(s, 2 * rng.normal(size=[sizes[a] for a in s])) for s in sets]
    edges = {e for s in sets for e in itertools.combinations(s, 2)}
    return MarkovRandomField(junction_tree(sizes, edges), 1.0, factors)


SIZES = (5, 4, 6, 3, 2, 7, 1)
SETS = [(0, 1, 2), (1, 2, 3), (3, 4), (3, 5), (6,)]


@pytest.mark.parametrize("rows", [1, 2, 100, 5000, 200_001])
@pytest.mark.parametrize("seed", [0, 1])
def test_clique_counts_obey_their_bound(rows: int, seed: int) -> None:
    model = random_model(seed, SIZES, SETS)
    codes = sample(model, rows, np.random.default_rng(seed))
    assert codes.shape == (len(SIZES), rows)
    assert codes.dtype == np.uint16
    for clique, separator, belief in zip(model.tree.cliques, model.tree.separators, model.beliefs, strict=True):
        deviation = contingency(codes, SIZES, clique) - rows * belief
        others = tuple(i for i, a in enumerate(clique) if a not in separator)
        mass = belief.sum(axis=others, keepdims=True)
        handed_down = np.abs(deviation.sum(axis=others, keepdims=True)) * belief / mass
        if not separator:
            handed_down = np.zeros(1)
        # Rounding of sums of 200,000 rows in double precision.
        assert (np.abs(deviation) < 1 + handed_down + 1e-6).all()


def test_cells_without_probability_stay_empty() -> None:
    tree = junction_tree((3, 3), [(0, 1)])
    logs = np.zeros((3, 3))
    logs[0, 1] = logs[2, 2] = -2000.0
    codes = sample(MarkovRandomField(tree, 1.0, [Factor((0, 1), logs)]), 10_000, np.random.default_rng(0))
    counts = contingency(codes, (3, 3), (0, 1))
    assert counts[0, 1] == counts[2, 2] == 0
    assert counts.sum() == 10_000


def test_samples_are_unbiased_and_rows_in_random_order() -> None:
    model = random_model(2, (3, 4, 3), [(0, 1), (1, 2)])
    rng = np.random.default_rng(3)
    runs = 400
    rows = 25
    counts = np.zeros((3, 4, 3))
    first = np.zeros(3)
    for _ in range(runs):
        codes = sample(model, rows, rng)
        counts += contingency(codes, (3, 4, 3), (0, 1, 2))
        first[codes[0, 0]] += 1
    expected = model.marginal((0, 1, 2)) * rows * runs
    # Independent rows would have this standard error; rounded counts have less. 36 cells: 4.5 of them is far out.
    assert (np.abs(counts - expected) < 4.5 * np.sqrt(expected) + 4.5).all()
    share = model.marginal((0,)) * runs
    assert (np.abs(first - share) < 4.5 * np.sqrt(share)).all()


def test_attributes_are_independent_given_their_separator() -> None:
    # Two leaves on one hub, rows few enough that most groups have one or two.
    sizes = (400, 2, 2)
    model = random_model(4, sizes, [(0, 1), (0, 2)])
    rng = np.random.default_rng(5)
    rows = 4000
    statistics = []
    hub = model.marginal((0,))
    given1 = model.marginal((0, 1))[:, 1] / hub
    given2 = model.marginal((0, 2))[:, 1] / hub
    for _ in range(50):
        codes = sample(model, rows, rng)
        residual = (codes[1] - given1[codes[0]]) * (codes[2] - given2[codes[0]])
        statistics.append(residual.sum() / np.sqrt(rows * np.mean((given1 * (1 - given1) * given2 * (1 - given2))[codes[0]])))
    # Each is about standard normal if independent, less spread by rounding; their mean has a standard error of 1 / sqrt(50).
    assert abs(np.mean(statistics)) < 4 / np.sqrt(50)
    assert np.std(statistics) < 1.5


def test_seeds_and_chunks() -> None:
    model = random_model(6, SIZES, SETS)
    a, b, c = (sample(model, 1000, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    chunks = list(sample_chunks(model, 2500, np.random.default_rng(1), chunk=1000))
    assert [x.shape[1] for x in chunks] == [1000, 1000, 500]
    np.testing.assert_array_equal(chunks[0], a)
    assert (chunks[0] != chunks[1]).any()


@pytest.mark.parametrize("rows", [0, -1, 1 << 32])
def test_bad_row_counts(rows: int) -> None:
    model = random_model(0, SIZES, SETS)
    with pytest.raises(ModelError, match="rows"):
        sample(model, rows, np.random.default_rng(0))
    if rows < 1:
        with pytest.raises(ModelError, match="1 or more"):
            next(sample_chunks(model, rows, np.random.default_rng(0)))
