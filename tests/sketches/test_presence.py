"""Groups of one value tell presence: parties that have contrasts alone besides say with them who is there."""

import itertools

import numpy as np
import pytest
from builders import counted_groups
from oracles import crossed

from vertimrf.sketches.count_intersections import estimate_cells, estimate_overlapping
from vertimrf.sketches.count_sketch import CountSketchEncoder
from vertimrf.sketches.parameters import CountSketchPlan

# Three parties: two of a contrast and presence each, and one of three values, and of two as contrasts.
SIZES, PARTIES = (2, 1, 2, 1, 3, 2), (0, 0, 1, 1, 2, 2)
PLAN = CountSketchPlan(
    repetitions=256,
    buckets=32,
    variance=40.0,
    bits=4,
    sizes=SIZES,
    contrasts=(0, 2, 5),
    weights=(3, 1, 3, 1, 3, 3),
)
RECORDS, RELEASES = 3000, 300
FIRST = np.cumsum([0, *SIZES])
PAIRS = [(0, 2), (0, 4), (0, 5), (2, 4), (2, 5)]
# Who is at each party, where that is not everybody; every two have 1500 in common or more.
HELD = (slice(0, 2400), slice(600, 3000), slice(300, 2700))


def table(rng):
    """Columns that depend on each other, uneven."""
    third = rng.integers(0, 3, RECORDS)
    first = np.where(rng.random(RECORDS) < 0.6, third == 0, rng.random(RECORDS) < 0.3)
    second = np.where(rng.random(RECORDS) < 0.5, first, rng.random(RECORDS) < 0.8)
    last, nothing = np.where(rng.random(RECORDS) < 0.7, second, third > 1), np.zeros(RECORDS)
    return np.array([first, nothing, second, nothing, third, last], np.uint16)


def release(codes, rng, people=(slice(None),) * 3):
    digests, secret = rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32)
    groups = []
    for group, party in enumerate(PARTIES):
        rows = people[party]
        groups += counted_groups(PLAN, codes[[group], rows], digests[rows], secret, rng, [group])
    return groups


def block(cells, i, j):
    return cells[FIRST[i] : FIRST[i + 1], FIRST[j] : FIRST[j + 1]]


def exact(codes, i, j, rows=slice(None)):
    return crossed(codes[[i, j], rows], (SIZES[i], SIZES[j]))


def common(one, other):
    return slice(max(one.start, other.start), min(one.stop, other.stop))


def test_cells_are_unbiased_and_their_noise_is_as_stated():
    """As without presence: squared residuals against errors, over 300 releases."""
    rng = np.random.default_rng(0)
    codes = table(rng)
    residuals, squares = {pair: [] for pair in PAIRS}, {pair: [] for pair in PAIRS}
    for _ in range(RELEASES):
        cells = estimate_cells(PLAN, release(codes, rng), RECORDS)
        for i, j in PAIRS:
            left = block(cells.counts, i, j) - exact(codes, i, j)
            residuals[i, j].append(left)
            for axis, group in enumerate((i, j)):
                if group in PLAN.contrasts:
                    left = left - left.mean(axis=axis, keepdims=True)
            directions = np.prod(
                [1 if group in PLAN.contrasts else SIZES[group] for group in (i, j)]
            )
            squares[i, j].append(np.square(left / block(cells.errors, i, j)).sum() / directions)
    for pair in PAIRS:
        left = np.array(residuals[pair])
        assert (
            np.abs(left.mean(axis=0)) < 5 * left.std(axis=0) / np.sqrt(RELEASES) + 1e-6
        ).all(), pair
        error = np.std(squares[pair]) / np.sqrt(RELEASES)
        assert abs(np.mean(squares[pair]) - 1) < 5 * error + 0.04, pair


def test_records_in_common_are_told_within_their_errors():
    """The same people at all parties: the covariance of two sums is how many there are, with the error that follows."""
    rng = np.random.default_rng(1)
    codes = table(rng)
    estimates = np.array(
        [estimate_cells(PLAN, release(codes, rng), RECORDS).common for _ in range(100)]
    )
    cells = estimate_cells(PLAN, release(codes, rng), RECORDS)
    np.testing.assert_array_equal(np.isinf(cells.noise), [True, False, True, False, False, True])
    for i, j in itertools.combinations((1, 3, 4), 2):
        expected = np.sqrt((np.prod(RECORDS + cells.noise[[i, j]]) + RECORDS**2) / PLAN.numbers)
        # The mean of 100 and their spread, each within five standard errors.
        assert abs(estimates[:, i, j].mean() - RECORDS) < 5 * expected / 10
        assert abs(estimates[:, i, j].std() / expected - 1) < 5 / np.sqrt(200)


def test_different_people_are_told_and_counted():
    """Who is where depends on the columns."""
    rng = np.random.default_rng(2)
    # The first ones, whom the second party lacks, mostly have 1 at the first; so have those whom the first lacks at the second.
    codes = table(rng)
    codes[0, :600] |= rng.random(600) < 0.8
    codes[2, 2400:] |= rng.random(600) < 0.8
    records = np.array([2400.0, 2400.0, 2400.0])
    residuals, estimates = {pair: [] for pair in PAIRS}, []
    for _ in range(RELEASES):
        cells, overlaps = estimate_overlapping(
            PLAN, release(codes, rng, HELD), PARTIES, records, np.zeros(3)
        )
        estimates.append(
            [
                (overlaps.records[p, q], overlaps.errors[p, q])
                for p, q in itertools.combinations(range(3), 2)
            ]
        )
        for i, j in PAIRS:
            rows = common(HELD[PARTIES[i]], HELD[PARTIES[j]])
            left = block(cells.counts, i, j) - exact(codes, i, j, rows)
            residuals[i, j].append(left / np.hypot(block(cells.errors, i, j), 1))
    counts, errors = np.moveaxis(np.array(estimates), 2, 0)
    truth = [1800, 2100, 2100]
    z = (counts - truth) / errors
    assert (np.abs(z.mean(axis=0)) < 5 / np.sqrt(RELEASES)).all()
    assert (np.abs(z.std(axis=0) - 1) < 5 / np.sqrt(2 * RELEASES)).all()
    for pair in PAIRS:
        mean = np.mean(residuals[pair], axis=0)
        assert (np.abs(mean) < 5 * np.std(residuals[pair], axis=0) / np.sqrt(RELEASES)).all(), (
            pair,
            mean,
        )


@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 1000)])
def test_presence_is_the_sum_of_any_other_groups_values(rows):
    """Who is there adds up to the same, whatever attribute it is told by; a contrast does not."""
    rng = np.random.default_rng(3)
    codes, digests = table(rng), rng.integers(0, 2**64, RECORDS, dtype=np.uint64)

    def counters(group):
        encoder = CountSketchEncoder(PLAN, [group], bytes(32))
        encoder.update(digests[rows], codes[[group], rows])
        flat = np.frombuffer(encoder.state()[-4 * PLAN.numbers * PLAN.rows(group) :], "<i4")
        return flat.reshape(PLAN.repetitions, PLAN.rows(group), PLAN.buckets).sum(axis=1)

    sums = counters(4)
    np.testing.assert_array_equal(counters(1), sums)
    assert sums.any(axis=1).all()
    assert (codes[0, rows] == 0).all() == (counters(0) == sums).all()
