"""Sampling by rounded counts: its stated bound, its randomness, its independence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from vertimrf.errors import ModelError, NoMassError
from vertimrf.kernels.contingency import contingency
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.model.sample import sample


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


def test_seeds() -> None:
    model = random_model(6, SIZES, SETS)
    a, b, c = (sample(model, 1000, np.random.default_rng(s)) for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@pytest.mark.parametrize("rows", [0, -1, 1 << 32])
def test_bad_row_counts(rows: int) -> None:
    model = random_model(0, SIZES, SETS)
    with pytest.raises(ModelError, match="rows"):
        sample(model, rows, np.random.default_rng(0))


def brute_force(model: MarkovRandomField) -> np.ndarray:
    logs = np.zeros(model.sizes)
    for f in model.factors:
        logs += f.logs.reshape([model.sizes[a] if a in f.attributes else 1 for a in range(len(model.sizes))])
    joint = np.exp(logs)
    return joint / joint.sum()


@pytest.mark.parametrize("given", [{0: [2]}, {6: [0], 5: [1, 6]}, {0: [4, 1], 3: [2], 4: [0]}, {a: [0] for a in range(7)}])
def test_conditionals_are_exact(given: dict[int, list[int]]) -> None:
    model = random_model(5, SIZES, SETS)
    joint = brute_force(model)
    kept = joint[np.ix_(*(given.get(a, range(size)) for a, size in enumerate(SIZES)))]
    restricted = model.restricted(given)
    assert restricted.total == pytest.approx(kept.sum(), rel=1e-9)
    for attributes in [(0,), (0, 2), (1, 5), (3, 4, 6), (0, 3, 5)]:
        truth = kept.sum(axis=tuple(a for a in range(7) if a not in attributes))
        assert np.allclose(restricted.marginal(attributes), truth, rtol=1e-9)


def test_rows_on_conditions() -> None:
    model = random_model(6, SIZES, SETS)
    codes = sample(model, 20_000, np.random.default_rng(0), {5: [6, 2], 1: [3]})
    assert set(codes[5]) <= {2, 6}
    assert set(codes[1]) == {3}
    expected = model.marginal((5, 1, 0))[[2, 6]][:, 3]
    found = np.stack([np.bincount(codes[0][codes[5] == v], minlength=5) for v in (2, 6)])
    # Attributes far apart in the tree meet at random: five standard errors of independent draws.
    wanted = 20_000 * expected / expected.sum()
    assert (np.abs(found - wanted) < 5 * np.sqrt(wanted)).all()


def test_conditions_without_mass_or_meaning() -> None:
    tree = junction_tree((3, 3), [(0, 1)])
    logs = np.zeros((3, 3))
    logs[0, 1] = -2000.0
    model = MarkovRandomField(tree, 1.0, [Factor((0, 1), logs)])
    with pytest.raises(NoMassError, match="attribute 1 has one of the codes"):
        model.restricted({0: [0], 1: [1]})
    for wrong in ({0: [3]}, {0: []}, {0: [1, 1]}, {2: [0]}):
        with pytest.raises(ModelError):
            sample(model, 1, np.random.default_rng(0), wrong)
