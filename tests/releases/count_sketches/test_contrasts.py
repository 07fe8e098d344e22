"""Groups that are published as contrasts, and presence: cells are unbiased, and their noise is as large as stated."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from builders import counted_groups
from oracles import crossed

from vertimrf.releases.count_sketches.encoding import STEPS, CountSketchEncoder, adding, code_steps
from vertimrf.releases.count_sketches.intersections import estimate_cells, estimate_overlapping
from vertimrf.releases.count_sketches.parameters import CountSketches

RECORDS, RELEASES = 3000, 300
ALL = slice(None)
# Five groups of two values and one of three; four of the former are contrasts.
PLAN = CountSketches(
    repetitions=128,
    buckets=32,
    variance=40.0,
    bits=4,
    sizes=(2, 2, 2, 2, 3, 2),
    contrasts=(0, 1, 2, 3),
)
# Rows of their codes.
ROWS = (1, 1, 1, 1, 3, 2)
# The same with groups whose noise is smaller than others'.
WEIGHED = replace(PLAN, weights=(1, 3, 5, 1, 3, 7))
# Three parties: two of a contrast and presence each, and one of three values, and of two as contrasts.
PRESENCE = replace(
    PLAN,
    repetitions=256,
    sizes=(2, 1, 2, 1, 3, 2),
    contrasts=(0, 2, 5),
    weights=(3, 1, 3, 1, 3, 3),
)


@dataclass
class World:
    """Groups of a plan, the party that publishes each, and the records that each party holds."""

    plan: CountSketches
    parties: tuple
    people: tuple = (ALL,) * 3

    def table(self, rng):
        """Columns that depend on each other, uneven."""
        base = rng.random(RECORDS)
        columns = []
        for i, size in enumerate(self.plan.sizes):
            mixed = np.where(rng.random(RECORDS) < 0.5, base, rng.random(RECORDS))
            uneven = np.minimum((mixed**1.4 * size).astype(int), size - 1)
            columns.append(uneven if i % 2 else rng.integers(0, size, RECORDS))
        for one, other, share in ((0, -1, 0.7), (2, 4, 0.4)):
            same = np.minimum(columns[other], 1)
            columns[one] = np.where(rng.random(RECORDS) < share, same, columns[one])
        return np.array(columns, np.uint16)

    def release(self, codes, rng):
        """The groups, published once more."""
        digests, secret = rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32)
        groups = []
        for group, party in enumerate(self.parties):
            rows = self.people[party]
            some = counted_groups(
                self.plan, codes[[group], rows], digests[rows], secret, rng, [group]
            )
            groups += some
        return groups

    def estimate(self, groups):
        """Cells, and how many records parties have in common, if they hold different people."""
        held = np.array([len(range(RECORDS)[rows]) for rows in self.people], float)
        if (held == RECORDS).all():
            return estimate_cells(self.plan, groups, RECORDS), None
        held = held[: max(self.parties) + 1]
        return estimate_overlapping(self.plan, groups, self.parties, held, np.zeros(len(held)))

    def pairs(self):
        """Groups of two values or more, two at a time."""
        told = [group for group, size in enumerate(self.plan.sizes) if size > 1]
        return list(itertools.combinations(told, 2))

    def block(self, cells, i, j):
        first = np.cumsum([0, *self.plan.sizes])
        return cells[first[i] : first[i + 1], first[j] : first[j + 1]]

    def truth(self, codes, i, j):
        """Cells of the records that both groups' parties hold."""
        both = np.logical_and(
            *(
                np.isin(np.arange(RECORDS), np.arange(RECORDS)[self.people[self.parties[g]]])
                for g in (i, j)
            )
        )
        return crossed(codes[[i, j]][:, both], [self.plan.sizes[g] for g in (i, j)])

    def residual(self, cells, codes, i, j):
        return self.block(cells.counts, i, j) - self.truth(codes, i, j)


EVERYBODY = World(PLAN, (0, 0, 1, 1, 1, 0))
PARTS = World(WEIGHED, (0, 0, 1, 1, 1, 0), (slice(0, 2400), slice(600, 3000), ALL))
PRESENT = World(PRESENCE, (0, 0, 1, 1, 2, 2))
# Who is at each party; every two have 1800 in common or more.
ABSENT = replace(PRESENT, people=(slice(0, 2400), slice(600, 3000), slice(300, 2700)))


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(EVERYBODY, id="all", marks=pytest.mark.slow),
        pytest.param(PARTS, id="parts", marks=pytest.mark.slow),
        pytest.param(PRESENT, id="presence", marks=pytest.mark.slow),
    ],
)
def test_cells_are_unbiased_and_their_noise_is_as_stated(world):
    """Squared residuals in units of errors come to the number of directions that the noise lies in, on average over 300 releases.

    Of contrasts it is how cells differ along their axes; where parties hold different people, sums over the other one's records
    are estimated too. Over 4000 releases to all, pairs had ratios of 0.966 to 1.025: codes have the law
    of Gaussian numbers only nearly. Of two groups of values errors are too large by a few per cent where people differ.
    """
    rng = np.random.default_rng(0)
    codes, plan = world.table(rng), world.plan
    released = [world.estimate(world.release(codes, rng))[0] for _ in range(RELEASES)]
    by_kind = {}
    for i, j in world.pairs():
        left = np.array([world.residual(cells, codes, i, j) for cells in released])
        errors = np.array([world.block(cells.errors, i, j) for cells in released])
        spread = left.std(axis=0) / np.sqrt(RELEASES)
        # What sizes and contrasts tell without noise is exact.
        assert (np.abs(left.mean(axis=0)) < 5 * spread + 1e-6).all(), (i, j)
        contrasts = [axis for axis, group in enumerate((i, j), 1) if group in plan.contrasts]
        for axis in contrasts:
            left = left - left.mean(axis=axis, keepdims=True)
        squares = np.square(left / errors).sum(axis=(1, 2)) / (plan.rows(i) * plan.rows(j))
        by_kind.setdefault(len(contrasts), []).append(squares)
    by_kind.pop(0, None)
    assert set(by_kind) == {1, 2}
    for kind, ratios in by_kind.items():
        # Pairs of a release share groups: the error is of their mean, release by release.
        ratio = np.mean(ratios, axis=0)
        error = ratio.std() / np.sqrt(RELEASES)
        assert error < 0.08
        assert abs(ratio.mean() - 1) < 5 * error + 0.04, (kind, ratio.mean(), error)


def test_noise_of_contrasts_lies_in_one_direction():
    rng = np.random.default_rng(1)
    codes = EVERYBODY.table(rng)
    cells, _ = EVERYBODY.estimate(EVERYBODY.release(codes, rng))
    for pair in EVERYBODY.pairs():
        residual, errors = (
            EVERYBODY.residual(cells, codes, *pair),
            EVERYBODY.block(cells.errors, *pair),
        )
        contrasted = [group in PLAN.contrasts for group in pair]
        # What is left out is known: rows and columns of a contrasted group add up to sizes.
        for axis in np.flatnonzero(contrasted):
            np.testing.assert_allclose(residual.sum(axis=axis), 0, atol=1e-6)
        # All cells of two contrasts share one noise.
        if all(contrasted):
            alike = residual[0, 0] * np.array([[1, -1], [-1, 1]])
            np.testing.assert_allclose(residual, alike, atol=1e-6)
            np.testing.assert_allclose(errors, errors[0, 0])
    # Sums over all records are those of values alone.
    np.testing.assert_array_equal(np.isinf(cells.noise), np.isin(np.arange(6), PLAN.contrasts))


def stated(plan, codes, rng):
    """Errors of all cells."""
    world = World(plan, (0,) * len(plan.sizes))
    return world.estimate(world.release(codes, rng))[0].errors


def test_contrasts_of_pairs_have_less_noise_than_values():
    """Four cells have one noise, that of one number on either side."""
    plan = replace(PLAN, sizes=(2,) * 6, contrasts=())
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, (6, RECORDS)).astype(np.uint16)
    by_values, by_contrasts = (
        stated(replace(plan, contrasts=contrasts), codes, rng)[2:4, 8:10]
        for contrasts in ((), (1, 2, 4, 5))
    )
    # In a number, values have half of the records, and contrasts all; the noise of contrasts has a quarter of the directions.
    for errors, records, least in ((by_values, 1500, 0.5), (by_contrasts * 2, 3000, 0.95)):
        expected = (records + 1280) / np.sqrt(PLAN.numbers)
        assert least < errors.mean() / expected < 1.05


def test_weights_take_noise_from_one_group_to_another():
    """Of values a side's number has its records and the noise over the weight, of contrasts all records."""
    plan = replace(PLAN, sizes=(3, 4, 2, 3), contrasts=(2,), weights=(1, 9, 3, 5), variance=30.0)
    rng = np.random.default_rng(5)
    codes = np.array([rng.integers(0, size, RECORDS) for size in plan.sizes], np.uint16)
    cells = stated(plan, codes, rng)
    first = np.cumsum([0, *plan.sizes])
    errors = [
        count / (2 if g in plan.contrasts else 1)
        for g, count in enumerate((1000, 750, RECORDS, 1000))
    ]
    noise = [plan.variance * plan.buckets / weight for weight in plan.weights]
    # Sums over all records take something out of either side, and codes put something in.
    for i, j in itertools.combinations(range(4), 2):
        at = slice(first[i], first[i + 1]), slice(first[j], first[j + 1])
        sides = [noise[g] + errors[g] for g in (i, j)]
        assert 0.5 < cells[at].mean() / np.sqrt(np.prod(sides) / plan.numbers) < 1.05
    heavy, light = (
        stated(replace(plan, weights=w), codes, rng)[:3, 9:].mean() for w in ((9, 1, 1, 9), ())
    )
    assert heavy / light == pytest.approx((1000 + 960 / 9) / (1000 + 960), rel=0.1)


def test_errors_of_sizes_are_part_of_the_errors_of_contrasts():
    rng = np.random.default_rng(3)
    groups = EVERYBODY.release(EVERYBODY.table(rng), rng)
    known, unsure = (
        EVERYBODY.estimate([replace(g, sizes_sigma=np.full(len(g.sizes), sigma)) for g in groups])[
            0
        ]
        for sigma in (0.0, 200.0)
    )
    for i, j in EVERYBODY.pairs():
        more, less = (EVERYBODY.block(cells.errors, i, j) for cells in (unsure, known))
        assert (more > less).all()
    np.testing.assert_allclose(unsure.counts, known.counts)


def test_a_contrast_has_one_row_to_which_a_record_adds_by_its_weight():
    rng = np.random.default_rng(4)
    groups = EVERYBODY.release(EVERYBODY.table(rng), rng)
    assert [len(group.codes) for group in groups] == list(ROWS)
    assert PLAN.shapes(range(6)) == [group.codes.shape for group in groups]
    assert [PLAN.rows(group) for group in range(6)] == list(ROWS)
    assert PLAN.event.groups == 6
    assert WEIGHED.event.groups == 20


def test_steps_of_contrasts_are_set_by_all_records():
    sizes = np.array([900.0, 100.0])
    np.testing.assert_array_equal(adding(sizes, True), [1000.0])
    np.testing.assert_array_equal(adding(sizes, False), sizes)
    np.testing.assert_allclose(
        code_steps(PLAN, adding(sizes, True)), STEPS[4] * np.sqrt(1000 / 32 + 40)
    )


# --- presence ---


@pytest.mark.slow
def test_records_in_common_are_told_within_their_errors():
    """The same people at all parties: the covariance of two sums is how many there are, with the error that follows."""
    rng = np.random.default_rng(1)
    codes = PRESENT.table(rng)
    released = [PRESENT.estimate(PRESENT.release(codes, rng))[0] for _ in range(100)]
    estimates, noise = np.array([cells.common for cells in released]), released[0].noise
    np.testing.assert_array_equal(np.isinf(noise), [True, False, True, False, False, True])
    for i, j in itertools.combinations((1, 3, 4), 2):
        expected = np.sqrt((np.prod(RECORDS + noise[[i, j]]) + RECORDS**2) / PRESENCE.numbers)
        # The mean of 100 and their spread, each within five standard errors.
        assert abs(estimates[:, i, j].mean() - RECORDS) < 5 * expected / 10
        assert abs(estimates[:, i, j].std() / expected - 1) < 5 / np.sqrt(200)


@pytest.mark.slow
def test_different_people_are_told_and_counted():
    """Who is where depends on the columns."""
    rng = np.random.default_rng(2)
    # The first ones, whom the second party lacks, mostly have 1 at the first; so have those whom the first lacks at the second.
    codes = ABSENT.table(rng)
    codes[0, :600] |= rng.random(600) < 0.8
    codes[2, 2400:] |= rng.random(600) < 0.8
    released = [ABSENT.estimate(ABSENT.release(codes, rng)) for _ in range(RELEASES)]
    two = np.triu_indices(3, 1)
    z = np.array(
        [(told.records[two] - [1800, 2100, 2100]) / told.errors[two] for _, told in released]
    )
    assert (np.abs(z.mean(axis=0)) < 5 / np.sqrt(RELEASES)).all()
    assert (np.abs(z.std(axis=0) - 1) < 5 / np.sqrt(2 * RELEASES)).all()
    for pair in ABSENT.pairs():
        off = np.array(
            [
                ABSENT.residual(cells, codes, *pair)
                / np.hypot(ABSENT.block(cells.errors, *pair), 1)
                for cells, _ in released
            ]
        )
        assert (np.abs(off.mean(axis=0)) < 5 * off.std(axis=0) / np.sqrt(RELEASES)).all(), pair


@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 1000)])
def test_presence_is_the_sum_of_any_other_groups_values(rows):
    """Who is there adds up to the same, whatever attribute it is told by; a contrast does not."""
    rng = np.random.default_rng(3)
    codes, digests = PRESENT.table(rng), rng.integers(0, 2**64, RECORDS, dtype=np.uint64)
    codes[0, 0] = 0

    def counters(group):
        encoder = CountSketchEncoder(PRESENCE, [group], bytes(32))
        encoder.update(digests[rows], codes[[group], rows])
        flat = np.frombuffer(encoder.state()[-4 * PRESENCE.numbers * PRESENCE.rows(group) :], "<i4")
        return flat.reshape(PRESENCE.repetitions, PRESENCE.rows(group), -1).sum(axis=1)

    sums = counters(4)
    np.testing.assert_array_equal(counters(1), sums)
    assert sums.any(axis=1).all()
    assert (codes[0, rows] == 0).all() == (counters(0) == sums).all()
