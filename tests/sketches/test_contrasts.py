"""Groups of count sketches that are published as contrasts: cells are unbiased, and their noise is as large as stated."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from builders import counted_groups
from oracles import crossed

from vertimrf.errors import PlanError
from vertimrf.sketches.count_intersections import (
    estimate_cells,
    estimate_overlapping,
)
from vertimrf.sketches.count_sketch import STEPS, CountSketchEncoder, adding, code_steps
from vertimrf.sketches.parameters import CountSketchPlan

# Five groups of two values and one of three; four of the former are contrasts.
SIZES, CONTRASTS = (2, 2, 2, 2, 3, 2), (0, 1, 2, 3)
# Rows of their codes.
ROWS = (1, 1, 1, 1, 3, 2)
PLAN = CountSketchPlan(
    repetitions=128, buckets=32, variance=40.0, bits=4, sizes=SIZES, contrasts=CONTRASTS
)
# The same with groups whose noise is smaller than others'.
WEIGHED = replace(PLAN, weights=(1, 3, 5, 1, 3, 7))
RECORDS, RELEASES = 3000, 300
FIRST = np.cumsum([0, *SIZES])


def table(rng, records=RECORDS):
    """Columns that depend on each other, uneven."""
    base = rng.random(records)
    columns = []
    for i, size in enumerate(SIZES):
        mixed = np.where(rng.random(records) < 0.5, base, rng.random(records))
        columns.append(
            np.minimum((mixed**1.4 * size).astype(int), size - 1)
            if i % 2
            else rng.integers(0, size, records)
        )
    columns[0] = np.where(rng.random(records) < 0.7, columns[1], columns[0])
    columns[2] = np.where(rng.random(records) < 0.4, columns[3], columns[2])
    return np.array(columns, np.uint16)


def block(table_of_cells, i, j):
    return table_of_cells[FIRST[i] : FIRST[i + 1], FIRST[j] : FIRST[j + 1]]


PAIRS = list(itertools.combinations(range(len(SIZES)), 2))
# Two parties, the second one's groups being two of contrasts, one of three values and one of two.
PARTIES = (0, 0, 1, 1, 1, 0)


def contrasts_in(pair):
    """How many of two groups are contrasts."""
    return sum(group in CONTRASTS for group in pair)


def released(estimate, plan, codes, rng):
    """Of several releases of one table, by pair of groups: residuals and errors [each shape=(releases, values, values)]."""
    residuals, errors = {pair: [] for pair in PAIRS}, {pair: [] for pair in PAIRS}
    for _ in range(RELEASES):
        cells, truth = estimate(plan, codes, rng)
        for i, j in PAIRS:
            residuals[i, j].append(block(cells.counts, i, j) - truth(i, j))
            errors[i, j].append(block(cells.errors, i, j))
    return {p: np.array(r) for p, r in residuals.items()}, {
        p: np.array(e) for p, e in errors.items()
    }


def of_all(plan, codes, rng):
    digests = rng.integers(0, 2**64, RECORDS, dtype=np.uint64)
    cells = estimate_cells(plan, counted_groups(plan, codes, digests, rng.bytes(32), rng), RECORDS)
    return cells, lambda i, j: crossed(codes[[i, j]], (SIZES[i], SIZES[j]))


HELD = (slice(0, 2400), slice(600, 3000))


def of_parts(plan, codes, rng):
    digests, secret = rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32)
    groups = []
    for group, party in enumerate(PARTIES):
        groups += counted_groups(
            plan, codes[[group], HELD[party]], digests[HELD[party]], secret, rng, [group]
        )
    records = np.array([2400.0, 2400.0])
    cells, _ = estimate_overlapping(plan, groups, PARTIES, records, np.zeros(2))
    shared = slice(600, 2400)

    def truth(i, j):
        rows = shared if PARTIES[i] != PARTIES[j] else HELD[PARTIES[i]]
        return crossed(codes[[i, j], rows], (SIZES[i], SIZES[j]))

    return cells, truth


@pytest.mark.parametrize("estimate, plan", [(of_all, PLAN), (of_parts, WEIGHED)])
def test_cells_are_unbiased_and_their_noise_is_as_stated(estimate, plan):
    """Squared residuals in units of errors come to the number of directions that the noise lies in, on average over 300 releases.

    Of contrasts it is how cells differ along their axes; where parties hold different people, sums over the other one's records
    are estimated too. Over 4000 releases to all, pairs had ratios of 0.966 to 1.025: codes have the law
    of Gaussian numbers only nearly. Of two groups of values errors are too large by a few per cent where people differ.
    """
    rng = np.random.default_rng(0)
    residuals, errors = released(estimate, plan, table(rng), rng)
    by_kind = {}
    for pair, left in residuals.items():
        spread = left.std(axis=0) / np.sqrt(RELEASES)
        # What sizes and contrasts tell without noise is exact.
        assert (np.abs(left.mean(axis=0)) < 5 * spread + 1e-6).all(), pair
        for axis, group in enumerate(pair, 1):
            if group in CONTRASTS:
                left = left - left.mean(axis=axis, keepdims=True)
        squares = np.square(left / errors[pair]).sum(axis=(1, 2))
        by_kind.setdefault(contrasts_in(pair), []).append(squares / (ROWS[pair[0]] * ROWS[pair[1]]))
    assert set(by_kind) == {0, 1, 2}
    del by_kind[0]
    for name, ratios in by_kind.items():
        # Pairs of a release share groups: the error is of their mean, release by release.
        ratio = np.mean(ratios, axis=0)
        error = ratio.std() / np.sqrt(RELEASES)
        assert error < 0.08
        assert abs(ratio.mean() - 1) < 5 * error + 0.04, (name, ratio.mean(), error)


def test_noise_of_contrasts_lies_in_one_direction():
    rng = np.random.default_rng(1)
    codes = table(rng)
    cells, truth = of_all(PLAN, codes, rng)
    for i, j in PAIRS:
        residual = block(cells.counts, i, j) - truth(i, j)
        # What is left out is known: rows and columns of a contrasted group add up to sizes.
        if i in CONTRASTS:
            np.testing.assert_allclose(residual.sum(axis=0), 0, atol=1e-6)
        if j in CONTRASTS:
            np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-6)
        # All cells of two contrasts share one noise.
        if contrasts_in((i, j)) == 2:
            np.testing.assert_allclose(
                residual, residual[0, 0] * np.array([[1, -1], [-1, 1]]), atol=1e-6
            )
            np.testing.assert_allclose(block(cells.errors, i, j), block(cells.errors, i, j)[0, 0])
    # Sums over all records are those of values alone.
    np.testing.assert_array_equal(np.isinf(cells.noise), np.isin(np.arange(len(SIZES)), CONTRASTS))


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


def stated(plan, codes, rng):
    """Errors of all cells."""
    digests = rng.integers(0, 2**64, RECORDS, dtype=np.uint64)
    groups = counted_groups(plan, codes, digests, rng.bytes(32), rng)
    return estimate_cells(plan, groups, RECORDS).errors


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
    codes = table(rng)
    groups = counted_groups(
        PLAN, codes, rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32), rng
    )
    known = estimate_cells(PLAN, groups, RECORDS)
    unsure = estimate_cells(
        PLAN, [replace(g, sizes_sigma=np.full(len(g.sizes), 200.0)) for g in groups], RECORDS
    )
    for i, j in PAIRS:
        assert (block(unsure.errors, i, j) > block(known.errors, i, j)).all()
    np.testing.assert_allclose(unsure.counts, known.counts)


def test_codes_of_contrasts_have_one_row():
    rng = np.random.default_rng(4)
    groups = counted_groups(
        PLAN, table(rng), rng.integers(0, 2**64, RECORDS, dtype=np.uint64), rng.bytes(32), rng
    )
    assert [len(group.codes) for group in groups] == list(ROWS)
    assert PLAN.shapes(range(6)) == [group.codes.shape for group in groups]


def test_a_record_adds_to_one_number_of_every_group_as_often_as_its_weight():
    assert PLAN.event.groups == 6
    assert WEIGHED.event.groups == 20
    assert [PLAN.rows(group) for group in range(6)] == list(ROWS)


def test_steps_of_contrasts_are_set_by_all_records():
    sizes = np.array([900.0, 100.0])
    np.testing.assert_array_equal(adding(sizes, True), [1000.0])
    np.testing.assert_array_equal(adding(sizes, False), sizes)
    np.testing.assert_allclose(
        code_steps(PLAN, adding(sizes, True)), STEPS[4] * np.sqrt(1000 / 32 + 40)
    )


def test_encoders_of_contrasts_add_up():
    rng = np.random.default_rng(5)
    codes, digests = table(rng), rng.integers(0, 2**64, RECORDS, dtype=np.uint64)

    def fed(rows):
        encoder = CountSketchEncoder(PLAN, range(6), bytes(32))
        encoder.update(digests[rows], codes[:, rows])
        return encoder

    whole, one = fed(slice(None)), fed(slice(0, 1000))
    one.merge(fed(slice(1000, None)))
    assert one.state() == whole.state()
    # A plan with other contrasts is another.
    with pytest.raises(PlanError, match="same plan"):
        whole.merge(CountSketchEncoder(replace(PLAN, contrasts=(0,)), range(6), bytes(32)))
