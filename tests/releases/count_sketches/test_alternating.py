"""Contrasts in which missing values alternate: all of the table of three values by three is told, as precisely as stated."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders import counted_groups
from oracles import crossed

from vertimrf.errors import PlanError
from vertimrf.kernels.count_sketch import alternating
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder, adding
from vertimrf.releases.count_sketches.intersections import estimate_cells, estimate_overlapping
from vertimrf.releases.count_sketches.parameters import CountSketches

RECORDS, RELEASES = 3000, 200
# Three alternating groups of two parties, a contrast of two values, and values. The last repetition
# is no multiple of the functions' period.
PLAN = CountSketches(
    repetitions=63,
    buckets=64,
    variance=40.0,
    bits=4,
    sizes=(3, 3, 3, 2, 4),
    contrasts=(0, 1, 2, 3),
    weights=(3, 1, 3, 1, 1),
)
FEW_BUCKETS = replace(PLAN, repetitions=1023, buckets=2, variance=200.0)
PARTIES = (0, 1, 1, 0, 1)


def table(rng):
    """The poor do not answer, and who does not answer one question mostly leaves the next."""
    low, other = rng.standard_normal((2, RECORDS))
    other = 0.6 * low + 0.8 * other
    lacks = low + rng.standard_normal(RECORDS) < -1
    again = np.where(rng.random(RECORDS) < 0.7, lacks, rng.random(RECORDS) < 0.2)
    rare = other + rng.standard_normal(RECORDS) > 2
    codes = [
        np.where(lacks, 2, low > 0),
        np.where(again, 2, other > 0.3),
        np.where(rare, 2, low > 0.2),
        other > 0,
        np.digitize(low, [-1, 0, 1]),
    ]
    return np.array(codes, np.uint16)


def released(plan, codes, rng, people=(slice(None), slice(None))):
    """The groups of both parties, published once."""
    digests, secret = rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32)
    out = []
    for group, party in enumerate(PARTIES):
        rows = people[party]
        out += counted_groups(plan, codes[[group], rows], digests[rows], secret, rng, [group])
    return out


def blocks(plan, cells):
    """The cells of any two groups."""
    first = np.cumsum([0, *plan.sizes])
    for i, j in itertools.combinations(range(len(plan.sizes)), 2):
        yield i, j, cells[:, first[i] : first[i + 1], first[j] : first[j + 1]]


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(PLAN, id="4 bits"),
        pytest.param(replace(PLAN, bits=1), id="1 bit", marks=pytest.mark.slow),
        pytest.param(replace(PLAN, bits=2), id="2 bits", marks=pytest.mark.slow),
        pytest.param(FEW_BUCKETS, id="few buckets", marks=pytest.mark.slow),
    ],
)
def test_cells_are_unbiased_and_their_noise_is_as_stated(plan):
    """Means within five standard errors of 200 releases. Squared residuals come to the directions of the noise: four of nine cells
    for two alternating groups. Their spread over releases gives the tolerance; codes have the law of Gaussian numbers only nearly,
    and errors of one bit are larger than stated by up to 8 % in square."""
    rng = np.random.default_rng(0)
    codes = table(rng)
    found = [estimate_cells(plan, released(plan, codes, rng), RECORDS) for _ in range(RELEASES)]
    counts, errors = (np.array([getattr(c, of) for c in found]) for of in ("counts", "errors"))
    ratios = []
    for (i, j, block), (_, _, error) in zip(
        blocks(plan, counts), blocks(plan, errors), strict=True
    ):
        left = block - crossed(codes[[i, j]], [plan.sizes[g] for g in (i, j)])
        spread = left.std(axis=0) / np.sqrt(RELEASES)
        assert (np.abs(left.mean(axis=0)) < 5 * spread + 1e-6).all(), (i, j)
        free = 1.0
        for axis, group in enumerate((i, j), 1):
            if group in plan.contrasts:
                left = left - left.mean(axis=axis, keepdims=True)
                free *= 1 - 1 / plan.sizes[group]
        if group in plan.contrasts:
            ratios.append(np.square(left / error).sum(axis=(1, 2)) / (left[0].size * free))
    of_release = np.mean(ratios, axis=0)
    error = of_release.std() / np.sqrt(RELEASES)
    assert error < 0.06
    assert abs(of_release.mean() - 1) < 5 * error + 0.08


@pytest.mark.slow
def test_the_four_numbers_of_a_pair_have_the_error_of_one_contrast():
    """By hand: the halves' contrast, who lacks either, and missing together, each ((n + N)^2 / t)^1/2 and uncorrelated. Within five
    standard errors of a deviation over 200 releases, and what 4 bits lose."""
    plan = replace(PLAN, weights=())
    rng = np.random.default_rng(1)
    codes = table(rng)
    cells = np.array(
        [estimate_cells(plan, released(plan, codes, rng), RECORDS).counts for _ in range(RELEASES)]
    )[:, :3, 3:6]
    x, u = np.array([1, -1, 0]), np.array([0, 0, 1])
    told = np.array([[a @ c @ b for a, b in itertools.product((x, u), (x, u))] for c in cells])
    expected = (RECORDS + plan.noise()) / np.sqrt(plan.numbers)
    # Sums of values take out what halves of unequal size have in common with them.
    assert (np.abs(told.std(axis=0) / expected - 1) < 5 / np.sqrt(2 * RELEASES) + 0.06).all()
    assert np.abs(np.corrcoef(told.T)[np.triu_indices(4, 1)]).max() < 5 / np.sqrt(RELEASES)
    truth = crossed(codes[[0, 1]], (3, 3))
    by_hand = [a @ truth @ b for a, b in itertools.product((x, u), (x, u))]
    assert (np.abs(told.mean(axis=0) - by_hand) < 5 * expected / np.sqrt(RELEASES)).all()


def test_parties_with_different_people():
    """Cells are of the records that both hold, also of those who lack a value."""
    rng = np.random.default_rng(2)
    codes, people = table(rng), (slice(0, 2400), slice(600, RECORDS))
    plan = replace(PLAN, sizes=(3, 3, 3, 2, 4), contrasts=(0, 1, 2), repetitions=128)
    held = np.array([2400.0, 2400.0])
    found = []
    for _ in range(100):
        groups = released(plan, codes, rng, people)
        found.append(estimate_overlapping(plan, groups, PARTIES, held, np.zeros(2)))
    counts = np.array([cells.counts for cells, _ in found])
    both = codes[:, 600:2400]
    for i, j, block in blocks(plan, counts):
        if PARTIES[i] != PARTIES[j]:
            left = block - crossed(both[[i, j]], [plan.sizes[g] for g in (i, j)])
            assert (np.abs(left.mean(axis=0)) < 5 * left.std(axis=0) / 10 + 1).all(), (i, j)
    of_values = np.array([common.of_values for _, common in found])[:, :3, 1]
    z = (of_values - np.bincount(both[0], minlength=3)) / [
        c.of_values_errors[:3, 1] for _, c in found
    ]
    assert (np.abs(z.mean(axis=0)) < 5 * z.std(axis=0) / 10).all()
    # Errors of halves are stated without that of all records in common.
    assert abs(z[:, 2].std() - 1) < 5 / np.sqrt(200)


def test_a_record_moves_each_counter_by_one_whatever_its_value():
    """What the proof asks: only the signs of what a record adds follow from its value, and those of a missing value are the Walsh
    function's."""
    digests = np.arange(1, 2, dtype=np.uint64)
    added = []
    for value in range(3):
        encoder = CountSketchEncoder(PLAN, [0], bytes(32))
        encoder.update(digests, np.array([[value]], np.uint16))
        state = np.frombuffer(encoder.state()[-4 * PLAN.numbers :], "<i4")
        assert (np.abs(state.reshape(PLAN.repetitions, -1)).sum(axis=1) == 1).all()
        added.append(state)
    low, high, missing = added
    np.testing.assert_array_equal(low, -high)
    signs = alternating(PLAN.alternation(0), np.arange(PLAN.numbers))
    np.testing.assert_array_equal(missing, low * signs)
    assert PLAN.event.groups == sum(PLAN.weights)
    # All records add to a counter, and set its step.
    np.testing.assert_array_equal(adding(np.array([5.0, 3.0, 2.0]), True), [10.0])


def test_groups_have_functions_of_their_own():
    assert [PLAN.alternation(g) for g in range(5)] == [1, 2, 3, 0, 0]
    assert [PLAN.rows(g) for g in range(5)] == [1, 1, 1, 1, 4]
    few = replace(PLAN, repetitions=1, buckets=2)
    assert [few.alternation(g) for g in range(3)] == [1, 1, 1]
    with pytest.raises(PlanError, match="Contrasts are of groups of 2 or 3 values"):
        replace(PLAN, contrasts=(4,))


def test_groups_of_one_function_say_nothing_of_each_other():
    """With two counters there is one function. The upper half of one and the lower of the other share no counter: the error is that
    of one counter, for three eighths of the rows' variance."""
    plan = replace(PLAN, repetitions=1, buckets=2)
    rng = np.random.default_rng(3)
    cells = estimate_cells(plan, released(plan, table(rng), rng), RECORDS)
    assert np.isfinite(cells.counts[:3, 3:6]).all()
    assert (cells.errors[[0, 1], [4, 3]] > 0.9 * 3 / 8 * RECORDS).all()
