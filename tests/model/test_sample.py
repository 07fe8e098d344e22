"""Sampling: rounded counts and their stated bound, rows that are weighed and halved evenly, randomness, independence."""

import collections
import itertools

import numpy as np
import pytest
from oracles import joint_of, marginal_of

from vertimrf.errors import ModelError, NoMassError
from vertimrf.kernels.contingency import contingency
from vertimrf.kernels.jit import threads
from vertimrf.model import sample as sample_module
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.markov_random_field import Factor, MarkovRandomField
from vertimrf.model.sample import (
    BATCH,
    MANY,
    MAX_PROPOSED,
    expected_marginals,
    expected_records,
    marginals_of_rows,
    propose,
    sample,
)


def chosen(model, given):
    """Where a table of all combinations meets conditions."""
    return np.ix_(*(given.get(a, range(size)) for a, size in enumerate(model.sizes)))


def random_model(seed, sizes, sets):
    rng = np.random.default_rng(seed)
    factors = [Factor(s, 2 * rng.normal(size=[sizes[a] for a in s])) for s in sets]
    edges = {e for s in sets for e in itertools.combinations(s, 2)}
    return MarkovRandomField(junction_tree(sizes, edges), 1.0, factors)


SIZES = (5, 4, 6, 3, 2, 7, 1)
SETS = [(0, 1, 2), (1, 2, 3), (3, 4), (3, 5), (6,)]


@pytest.mark.parametrize("rows", [1, 2, 100, 5000, 200_001])
@pytest.mark.parametrize("seed", [0, 1])
def test_clique_counts_obey_their_bound(rows, seed):
    model = random_model(seed, SIZES, SETS)
    codes = propose(model, rows, np.random.default_rng(seed))
    assert codes.shape == (len(SIZES), rows)
    assert codes.dtype == np.uint16
    for clique, separator, belief in zip(
        model.tree.cliques, model.tree.separators, model.beliefs, strict=True
    ):
        deviation = contingency(codes, SIZES, clique) - rows * belief
        others = tuple(i for i, a in enumerate(clique) if a not in separator)
        mass = belief.sum(axis=others, keepdims=True)
        handed_down = np.abs(deviation.sum(axis=others, keepdims=True)) * belief / mass
        if not separator:
            handed_down = np.zeros(1)
        # Rounding of sums of 200,000 rows in double precision.
        assert (np.abs(deviation) < 1 + handed_down + 1e-6).all()


def test_samples_are_unbiased_and_rows_in_random_order():
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


def test_attributes_are_independent_given_their_separator():
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
        statistics.append(
            residual.sum()
            / np.sqrt(rows * np.mean((given1 * (1 - given1) * given2 * (1 - given2))[codes[0]]))
        )
    # Each is about standard normal if independent, less spread by rounding; their mean has a standard error of 1 / sqrt(50).
    assert abs(np.mean(statistics)) < 4 / np.sqrt(50)
    assert np.std(statistics) < 1.5


@pytest.mark.parametrize("rows", [0, -1, 1 << 32])
def test_bad_row_counts(rows):
    model = random_model(0, SIZES, SETS)
    with pytest.raises(ModelError, match="rows"):
        sample(model, rows, np.random.default_rng(0))
    with pytest.raises(ModelError, match="rows"):
        propose(model, rows, np.random.default_rng(0))


@pytest.mark.parametrize(
    "given",
    [{0: [2]}, {6: [0], 5: [1, 6]}, {0: [4, 1], 3: [2], 4: [0]}, {a: [0] for a in range(7)}],
)
def test_conditionals_are_exact(given):
    model = random_model(5, SIZES, SETS)
    joint = joint_of(model)
    kept = joint[chosen(model, given)]
    restricted = model.restricted(given)
    assert restricted.total == pytest.approx(kept.sum(), rel=1e-9)
    for attributes in [(0,), (0, 2), (1, 5), (3, 4, 6), (0, 3, 5)]:
        truth = marginal_of(kept, attributes)
        assert np.allclose(restricted.marginal(attributes), truth, rtol=1e-9)


def test_conditions_without_mass_or_meaning():
    tree = junction_tree((3, 3), [(0, 1)])
    logs = np.zeros((3, 3))
    logs[0, 1] = -2000.0
    model = MarkovRandomField(tree, 1.0, [Factor((0, 1), logs)])
    with pytest.raises(NoMassError, match="attribute 1 has one of the codes"):
        model.restricted({0: [0], 1: [1]})
    for wrong in ({0: [3]}, {0: []}, {0: [1, 1]}, {2: [0]}):
        with pytest.raises(ModelError):
            sample(model, 1, np.random.default_rng(0), wrong)


def with_beyond(seed, strength=0.7):
    """A chain of four, and factors that close it to a cycle and go across it."""
    rng = np.random.default_rng(seed)
    sizes, chain = (3, 4, 2, 3), [(0, 1), (1, 2), (2, 3)]
    factors = [Factor(s, rng.normal(size=[sizes[a] for a in s])) for s in chain]
    beyond = [
        Factor(s, strength * rng.normal(size=[sizes[a] for a in s])) for s in [(0, 3), (0, 2, 3)]
    ]
    return MarkovRandomField(junction_tree(sizes, chain), 1.0, factors).weighed(beyond)


def raked(model):
    """The joint distribution that rows follow: all factors, then one pass of raking to the tree's own marginals."""
    joint, tree = joint_of(model), joint_of(model.weighed(()))
    alone = [(a,) for a in range(4)]
    for attributes in (*alone, (0, 1), (1, 2), (2, 3), *alone):
        others = tuple(a for a in range(4) if a not in attributes)
        joint = joint * (
            tree.sum(axis=others, keepdims=True) / joint.sum(axis=others, keepdims=True)
        )
    return joint / joint.sum()


def test_what_the_tree_was_fitted_to_holds_in_rows_that_are_weighed():
    model = with_beyond(1, strength=0.4)
    rows = 3 * MANY
    codes = sample(model, rows, np.random.default_rng(1))
    for a, size in enumerate(model.sizes):
        counts, known = np.bincount(codes[a], minlength=size), model.marginal((a,)) * rows
        # They are resampled and picked from five candidates a row: far less than the spread of people.
        assert (np.abs(counts - known) < 0.5 * np.sqrt(known)).all()
    moved = marginal_of(joint_of(model), (3,)) - model.marginal((3,))
    assert np.abs(moved).max() * rows > 20 * np.sqrt(rows)
    for pair in ((0, 1), (1, 2), (2, 3)):
        known = model.marginal(pair) * rows
        far, near = (
            np.abs(table - known).sum()
            for table in (
                marginal_of(joint_of(model), pair) * rows,
                contingency(codes, model.sizes, pair),
            )
        )
        assert near < far / 5


@pytest.mark.parametrize("rows", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 7)), 1000])
def test_rows_follow_the_factors_beyond_the_tree(rows):
    model = with_beyond(0)
    joint = raked(model)
    rng = np.random.default_rng(rows)
    runs = 6000 // rows + 100
    counts = sum(
        contingency(sample(model, rows, rng), model.sizes, (0, 1, 2, 3)) for _ in range(runs)
    ).ravel()
    expected = joint.ravel() * rows * runs
    # Rows of one draw spread less than independent ones would. That weights are of some 4000 rows adds no more than a part
    # in a thousand to a cell.
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 2e-3 * expected + 5).all()
    # The tree alone is told apart from them.
    apart = joint_of(model.weighed(())).ravel() * rows * runs
    assert (np.abs(counts - apart) > 10 * np.sqrt(apart)).any()


@pytest.mark.slow
def test_a_single_row_is_picked_out_of_enough_proposals_to_follow_strong_factors():
    model = with_beyond(0, strength=2.5)
    joint = raked(model)
    rng = np.random.default_rng(1)
    runs = 3000
    counts = sum(
        contingency(sample(model, 1, rng), model.sizes, (0, 1, 2, 3)) for _ in range(runs)
    ).ravel()
    expected = joint.ravel() * runs
    # As above; eight proposals a row would miss by up to a third of a cell.
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected) + 2e-2 * expected + 5).all()


@pytest.mark.parametrize("rows", [1, 3000, 20_000])
def test_proposals_are_picked_as_often_as_their_weights_say_to_less_than_one(rows):
    rng = np.random.default_rng(2)
    sizes, chain = (97, 89, 83), [(0, 1), (1, 2)]
    factors = [Factor(s, rng.normal(size=[sizes[a] for a in s])) for s in chain]
    model = MarkovRandomField(junction_tree(sizes, chain), 1.0, factors)
    model = model.weighed([Factor((0, 2), rng.normal(size=(97, 83)))])
    proposed, weights, places = sample_module._candidates(model, rows, np.random.default_rng(3), ())
    picked = proposed[:, places]
    # The proposals come first of what the generator gives.
    proposals = propose(model, max(rows, sample_module.MIN_WEIGHED), np.random.default_rng(3))
    np.testing.assert_array_equal(weights, sample_module._weights(model, proposals, ()))
    assert weights.sum() == pytest.approx(1)
    assert picked.shape == (3, rows)
    weight = {}
    for row, shares in zip(proposals.T.tolist(), weights, strict=True):
        weight.setdefault(tuple(row), []).append(float(shares))
    counts = collections.Counter(map(tuple, picked.T.tolist()))
    assert counts.keys() <= weight.keys()
    assert all(
        abs(counts[row] - rows * sum(shares)) < len(shares) + 1e-6 for row, shares in weight.items()
    )


@pytest.mark.parametrize(
    "rows, proposed, picked",
    [
        (400, [4000], 1),
        (3, [10 * 64], 1),
        (401, [5 * 401], 1),
        (501, [5 * 250, 5 * 251], 2),
        (1001, [250, 250, 250, 251], 0),
    ],
)
def test_few_rows_have_more_candidates_than_many(rows, proposed, picked, monkeypatch):
    for name, value in (
        ("BATCH", 500),
        ("MANY", 400),
        ("MIN_BATCH", 64),
        ("MAX_PICKED", 1000),
        ("MAX_PROPOSED", 251),
    ):
        monkeypatch.setattr(sample_module, name, value)
    sizes, picks = [], []
    candidates, pick = sample_module._candidates, sample_module.Balance.pick

    def watched(model, wanted, rng, known):
        sizes.append(wanted)
        return candidates(model, wanted, rng, known)

    monkeypatch.setattr(sample_module, "_candidates", watched)
    monkeypatch.setattr(sample_module.Balance, "pick", lambda *a: (picks.append(1), pick(*a))[1])
    assert sample(with_beyond(4), rows, np.random.default_rng(0)).shape == (4, rows)
    assert sorted(sizes) == proposed
    assert len(picks) == picked


@pytest.mark.parametrize("given", [{0: [2, 0]}, {3: [1], 1: [3, 0]}, {0: [1], 3: [2]}])
def test_conditions_hold_for_the_factors_beyond_the_tree(given):
    model = with_beyond(1)
    kept = joint_of(model)[chosen(model, given)]
    share = kept.sum()
    kept /= share
    np.testing.assert_allclose(joint_of(model.restricted(given)), kept, rtol=1e-9)
    # By two lots of 2^18 rows, weights spread: five standard errors of a fourth as many.
    assert abs(expected_records(model, given) / share - 1) < 5 * np.sqrt(1 / share / 2**16)
    assert abs(expected_records(model.weighed(()), given) / share - 1) > 10 * np.sqrt(
        1 / share / 2**16
    )
    rows = 60_000
    codes = sample(model, rows, np.random.default_rng(2), given)
    whole = np.zeros(model.sizes)
    whole[chosen(model, given)] = kept * rows
    counts = contingency(codes, model.sizes, (0, 1, 2, 3))
    assert not counts[whole == 0].any()
    assert (np.abs(counts - whole) <= 5 * np.sqrt(whole)).all()


def test_a_share_of_a_code_weighs_its_records():
    model, given, parts = with_beyond(1), {3: [1], 1: [3, 0]}, {1: [0.25, 1.0]}
    kept = joint_of(model)[chosen(model, given)]
    kept *= np.array([0.25, 1.0])[:, None, None]
    share = kept.sum()
    restricted = model.restricted(given, parts)
    np.testing.assert_allclose(joint_of(restricted), kept / share, rtol=1e-9)
    # By two lots of 2^18 rows, weights spread: five standard errors of a fourth as many.
    error = 5 * np.sqrt(1 / share / 2**16)
    assert abs(expected_records(model, given, parts) / share - 1) < error
    rows = sample(model, 40_000, np.random.default_rng(2), given, shares=parts)
    wanted = kept.sum(axis=(0, 2, 3)) / share * 40_000
    counts = [(rows[1] == code).sum() for code in (3, 0)]
    assert (np.abs(counts - wanted) <= 5 * np.sqrt(wanted)).all()


def test_marginals_of_rows_are_those_of_all_factors():
    model = with_beyond(3)
    joint = raked(model)
    for attributes in ((0, 3), (3, 0), (2,), (1, 3, 0)):
        truth = marginal_of(joint, attributes)
        estimate = marginals_of_rows(model, [attributes])[0]
        assert estimate.sum() == pytest.approx(model.total)
        # Of 2^18 rows whose weights spread: 5 standard errors of a fourth as many.
        assert (np.abs(estimate - truth) < 5 * np.sqrt(truth / 2**16)).all()
        np.testing.assert_array_equal(estimate, marginals_of_rows(model, [attributes])[0])
    # Of many at once: by rows where no clique holds them, binned or not, by the tree where one does.
    bins = np.array([0, 1, 1])
    whole, binned, conditional = expected_marginals(
        model, [(3, 0), (0, 3), (0, 1)], [(None, None), (bins, None), (None, None)]
    )
    np.testing.assert_array_equal(whole, marginals_of_rows(model, [(3, 0)])[0])
    np.testing.assert_allclose(binned, [whole[:, 0], whole[:, 1:].sum(axis=1)], rtol=1e-9)
    np.testing.assert_array_equal(conditional, model.marginal((0, 1)))
    with pytest.raises(ModelError, match="name different ones"):
        marginals_of_rows(model, [(3, 3)])


def test_rare_values_are_drawn_as_often_as_the_model_says():
    """Cells that expect a tenth of a row must not be rounded to none, in every draw."""
    sizes = (6,) * 5
    rng = np.random.default_rng(0)
    chain = [(a, a + 1) for a in range(4)]
    factors = [Factor(s, rng.normal(size=(6, 6)) - np.arange(6.0)) for s in chain]
    model = MarkovRandomField(junction_tree(sizes, chain), 1.0, factors)
    rows, runs = 300, 300
    counts = np.array(
        [[np.bincount(row, minlength=6) for row in sample(model, rows, rng)] for _ in range(runs)],
        np.float64,
    )
    expected = np.stack([model.marginal((a,)) for a in range(5)]) * rows
    assert expected.min() < 1
    spread = np.maximum(counts.std(axis=0), np.sqrt(0.05))
    # Picking prefers rare values a little: by a fraction of a row.
    off = np.abs(counts.mean(axis=0) - expected)
    assert (off < 5 * spread / np.sqrt(runs) + np.minimum(0.6, 0.2 * expected)).all()
    # And yet counts spread less than those of independent rows.
    assert (counts.var(axis=0).sum() / (expected * (1 - expected / rows)).sum()) < 0.25


@pytest.mark.parametrize("closed", [False, True])
def test_pairs_are_nearer_to_the_model_than_those_of_rows_that_are_not_evened_out(
    closed,
):
    model = with_beyond(4) if closed else with_beyond(4).weighed(())
    joint = raked(model) if closed else joint_of(model)
    rows, runs = 2000, 40
    rng = np.random.default_rng(5)

    def off(codes):
        pairs = itertools.combinations(range(4), 2)
        distances = ((contingency(codes, model.sizes, p), marginal_of(joint, p)) for p in pairs)
        return sum(float(np.abs(counts - rows * truth).sum()) for counts, truth in distances)

    plain = [
        off(np.stack(np.unravel_index(rng.choice(joint.size, rows, p=joint.ravel()), model.sizes)))
        for _ in range(runs)
    ]
    evened = [off(sample(model, rows, rng)) for _ in range(runs)]
    assert np.mean(evened) < 0.6 * np.mean(plain)
    if not closed:
        walked = [off(propose(model, rows, rng)) for _ in range(runs)]
        # Means of 40 runs: the tree's own pairs are exact to a row already, the others are not.
        assert np.mean(evened) < np.mean(walked)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("rows", [MANY // 3, MANY, BATCH + 5, MAX_PROPOSED + 5])
def test_draws_do_not_depend_on_threads_and_tell_how_far_they_are(rows, closed):
    model = with_beyond(6) if closed else with_beyond(6).weighed(())
    drawn, steps = [], []
    for number in (1, 2, 3):
        with threads(number):
            steps.append([])
            drawn.append(
                sample(
                    model,
                    rows,
                    np.random.default_rng(1),
                    progress=lambda *step: steps[-1].append(step),
                )
            )
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])
    for step in steps:
        assert len(step) == (2 if rows > BATCH else 1)
        assert step[-1] == (rows, rows)
        assert step == sorted(step)


def test_slices_draw_what_one_slice_draws(monkeypatch):
    model = random_model(0, SIZES, SETS)
    whole = propose(model, 10_000, np.random.default_rng(1))
    monkeypatch.setattr(sample_module, "SLICE", 100)
    with threads(2):
        sliced = propose(model, 10_000, np.random.default_rng(1))
    np.testing.assert_array_equal(whole, sliced)


@pytest.mark.parametrize("sizes", [(1,), (5,), (1, 1), (2, 1, 3)])
@pytest.mark.parametrize("rows", [1, 2, 9, 1000])
def test_the_smallest_models(sizes, rows):
    tree = junction_tree(sizes, [])
    model = MarkovRandomField(
        tree, 1.0, [Factor((a,), np.zeros(size)) for a, size in enumerate(sizes)]
    )
    codes = sample(model, rows, np.random.default_rng(0))
    assert codes.shape == (len(sizes), rows)
    assert codes.dtype == np.uint16
    for row, size in zip(codes, sizes, strict=True):
        assert np.abs(np.bincount(row, minlength=size) - rows / size).max() < 2 + 5 * np.sqrt(
            rows / 64
        )


def test_long_domains_are_drawn_without_tables_of_their_pairs():
    sizes = (60_000, 50_000, 2)
    rng = np.random.default_rng(0)
    logs = rng.normal(size=sizes[0])
    factors = [
        Factor((0,), logs),
        Factor((1,), np.zeros(sizes[1])),
        Factor((0, 2), np.zeros((60_000, 2))),
    ]
    tilt = Factor((1, 2), np.where(np.arange(100_000).reshape(50_000, 2) % 3 == 0, 1.0, 0.0))
    model = MarkovRandomField(junction_tree(sizes, [(0, 2)]), 1.0, factors).weighed([tilt])
    codes = sample(model, 5000, rng)
    tilted = (codes[1].astype(int) * 2 + codes[2]) % 3 == 0
    share = np.e / (np.e + 2)
    assert abs(tilted.mean() - share) < 5 * np.sqrt(share * (1 - share) / 5000)


def test_impossible_rows_stay_away_whatever_lies_beyond_the_tree():
    tree = junction_tree((3, 3, 2), [(0, 1)])
    logs = np.zeros((3, 3))
    logs[0, 1] = logs[2, 2] = -1e30
    # Factors beyond the tree ask for what cannot be.
    ask = np.zeros((3, 3))
    ask[0, 1] = ask[2, 2] = 50.0
    model = MarkovRandomField(tree, 1.0, [Factor((0, 1), logs), Factor((2,), np.zeros(2))])
    model = model.weighed([Factor((0, 1), ask), Factor((1, 2), np.arange(6.0).reshape(3, 2))])
    for rows in (1, 10, 20_000):
        counts = contingency(sample(model, rows, np.random.default_rng(rows)), (3, 3, 2), (0, 1))
        assert counts[0, 1] == counts[2, 2] == 0
        assert counts.sum() == rows
