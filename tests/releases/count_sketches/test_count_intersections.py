"""CarEst of count sketches: unbiased, and with the standard errors it says, from real sketches of real tables."""

from dataclasses import replace

import numpy as np
import pytest
from builders import counted_groups
from oracles import crossed

from vertimrf.releases.count_sketches.codes import CountedGroup, code_curve
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.intersections import CORRELATIONS, estimate_cells
from vertimrf.releases.count_sketches.parameters import CountSketches

U = 30


def table(n, groups, rng):
    """Columns that depend on each other from not at all to almost entirely."""
    weights = np.arange(1, U + 1) ** -1.2
    base = rng.choice(U, n, p=weights / weights.sum())
    columns = [
        np.where(rng.random(n) < share, base, rng.integers(0, U, n))
        for share in np.linspace(0, 0.9, groups)
    ]
    return np.array(columns, np.uint16)


def counted(plan, codes, rng, release_error=0.0, size_error=0.0):
    encoder = CountSketchEncoder(plan, range(len(codes)), rng.bytes(32))
    encoder.update(rng.integers(0, 2**64, codes.shape[1], dtype=np.uint64), codes)
    sizes = [np.bincount(c, minlength=U).astype(float) for c in codes]
    released = [np.maximum(s + rng.normal(0, release_error, U), 0) for s in sizes]
    known = [s + rng.normal(0, size_error, U) for s in sizes]
    tables = encoder.result(released, rng.bytes)
    groups = [
        CountedGroup(t, r, k, np.full(U, size_error))
        for t, r, k in zip(tables, released, known, strict=True)
    ]
    truth = np.block([[crossed((a, b), (U, U)) for b in codes] for a in codes]).astype(float)
    return groups, truth


def across(groups):
    """Cells of two groups, each once."""
    return np.kron(np.triu(np.ones((groups, groups)), 1), np.ones((U, U))) > 0


@pytest.mark.parametrize(
    "bits, buckets, variance",
    [
        pytest.param(1, 256, 18.0, marks=pytest.mark.slow),
        pytest.param(2, 16, 40.0, marks=pytest.mark.slow),
        pytest.param(3, 1024, 12.5, marks=pytest.mark.slow),
        (4, 256, 18.0),
    ],
)
def test_errors_are_as_large_as_they_say(bits, buckets, variance):
    """Over 2 * 10^5 cells the spread of error / standard error is 1, to a few of its own errors; so it is among large cells.

    With noise of the system's entropy, over 40 tables one by one, spreads among all cells had a standard deviation of 0.0045,
    means of 0.01 to 0.023; among the fifty large cells of a table 0.11 to 0.13 (spreads of 0.95 to 0.98) and 0.16 to 0.32
    (means of -0.11 to 0.1). Of eight tables they are 2.8 times less: each bound below is four to five of them away.
    """
    tables = 8
    rng = np.random.default_rng(bits)
    plan = CountSketches((1 << 15) // buckets, buckets, variance, bits, (U,) * 8)
    ratios, large = [], []
    for _ in range(tables):
        codes = table(20_000, 8, rng)
        groups, truth = counted(plan, codes, rng, release_error=40.0)
        cells = estimate_cells(plan, groups, 20_000)
        chosen = across(8)
        ratios.append(((cells.counts - truth) / cells.errors)[chosen])
        large.append(((cells.counts - truth) / cells.errors)[chosen & (truth > 500)])
    ratio, above = np.concatenate(ratios), np.concatenate(large)
    assert ratio.size > 25_000 * tables
    assert 0.985 < ratio.std() < 1.015
    # Cells of a value share its numbers: as if there were a thirtieth of them.
    assert abs(ratio.mean()) < 5 * np.sqrt(U / ratio.size)
    assert above.size > 25 * tables
    # Numbers of ten records and less of noise are no Gaussians any more.
    assert 0.75 < above.std() < 1.25
    assert abs(above.mean()) < 0.7


def test_errors_of_sizes_are_part_of_the_error():
    rng = np.random.default_rng(5)
    plan = CountSketches(1 << 10, 256, 8.0, 4, (U,) * 4)
    codes = table(20_000, 4, rng)
    large = across(4)
    ratios = []
    for _ in range(3):
        groups, truth = counted(plan, codes, rng, size_error=400.0)
        cells = estimate_cells(plan, groups, 20_000)
        ratios.append(((cells.counts - truth) / cells.errors)[large & (truth > 300)])
    without = estimate_cells(plan, [replace(g, sizes_sigma=np.zeros(U)) for g in groups], 20_000)
    assert (cells.errors > without.errors)[large & (truth > 300)].all()
    assert 0.6 < np.concatenate(ratios).std() < 1.4


def test_steps_from_sizes_far_off_cost_little_and_bias_nothing():
    """A group's released sizes may be a guess: independent attributes."""
    rng = np.random.default_rng(6)
    plan = CountSketches(128, 256, 18.0, 4, (U,) * 8)
    codes = table(20_000, 8, rng)
    groups, truth = counted(plan, codes, rng, release_error=3000.0)
    cells = estimate_cells(plan, groups, 20_000)
    ratio = ((cells.counts - truth) / cells.errors)[across(8)]
    assert 0.97 < ratio.std() < 1.03


def test_codes_lose_what_quantisers_are_known_to_lose():
    """1 bit: the arcsine law and 2 / pi; 2 to 4 bits: distortions of the best uniform quantisers (Max, 1960)."""
    one = code_curve(1)
    np.testing.assert_allclose(one.of_codes, 2 / np.pi * np.arcsin(CORRELATIONS), atol=2e-3)
    for bits, kept in ((1, 0.6366), (2, 0.8812), (3, 0.9626), (4, 0.9885)):
        curve = code_curve(bits)
        assert curve.gain**2 == pytest.approx(kept, abs=5e-4)
        assert (np.diff(curve.of_codes) > 0).all()


def test_what_all_sums_tell_is_taken_out_of_the_errors():
    """With noise far below the sets, a binary attribute's cell has the error of what its total leaves open."""
    rng = np.random.default_rng(9)
    plan = CountSketches(512, 64, 8.0, 4, (2,) * 6)
    errors, ratios = [], []
    for _ in range(20):
        codes = (rng.random((6, 20_000)) < 0.9).astype(np.uint16)
        digests = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
        groups = counted_groups(plan, codes, digests, rng.bytes(32), rng)
        cells = estimate_cells(plan, groups, 20_000)
        truth = np.block([[crossed((a, b), (2, 2)) for b in codes] for a in codes])
        chosen = np.kron(np.triu(np.ones((6, 6)), 1), np.ones((2, 2))) > 0
        ratios.append(((cells.counts - truth) / cells.errors)[chosen])
        errors.append(cells.errors[1, 3] * np.sqrt(plan.numbers))
        # Rows of a pair add up to the sizes that are known.
        np.testing.assert_allclose(
            cells.counts[:2, 2:4].sum(axis=1), groups[0].sizes, atol=0.02 * 20_000
        )
    # 18,000 records and 512 of noise; sums leave 1,800 and about 512 of them open.
    assert np.mean(errors) < 0.2 * 18_512
    # 300 pairs of an error each, a cell and its neighbours having the same one: its spread is off by 1 / sqrt(600).
    assert 0.85 < np.concatenate(ratios).std() < 1.15


def test_tables_of_other_records_are_told_from_the_codes():
    """Counts take it that records match; what groups have in common does not."""
    rng = np.random.default_rng(10)
    plan = CountSketches(128, 256, 8.0, 4, (U,) * 2)
    codes = table(20_000, 2, rng)
    secret, digests = rng.bytes(32), rng.integers(0, 2**64, (2, 20_000), dtype=np.uint64)
    groups = []
    for group, shared in ((0, 20_000), (1, 5_000)):
        ids = np.where(np.arange(20_000) < shared, digests[0], digests[group])
        groups += counted_groups(plan, codes[[group]], ids, secret, rng, [group])
    cells = estimate_cells(plan, groups, 20_000)
    error = np.sqrt(np.prod(20_000 + cells.noise) / plan.numbers)
    assert abs(cells.common[0, 1] - 5_000) < 4 * error < 5_000
    assert cells.counts[:U, U:].sum() == pytest.approx(20_000, rel=0.02)
