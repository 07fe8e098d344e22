"""Consistency enforcement: the paper's two steps against a slow rendering, agreement at the end, edge cases."""

import numpy as np
import pytest
from builders import equal_width
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.reproduce.consistency import enforce
from vertimrf.model.measurement import Measurement


def papers_two_steps(values, rows, columns, sweeps):
    """Section 6.2 for a pair, cell by cell."""
    table = np.maximum(values, 0) / np.maximum(values, 0).sum()
    local = [np.maximum(m, 0) / np.maximum(m, 0).sum() for m in (rows, columns)]
    for _ in range(sweeps):
        for axis in (0, 1):
            other = table.shape[1 - axis]
            margin = table.sum(axis=1 - axis)
            mean = (local[axis] + margin) / 2
            for i in range(table.shape[0]):
                for j in range(table.shape[1]):
                    v = (i, j)[axis]
                    table[i, j] += (mean[v] - margin[v]) / other
            local[axis] = mean
            table = np.maximum(table, 0)
            table /= table.sum()
    return table


def alone(values, margins, total, **limits):
    """One unbinned table brought to agree with its own margins."""
    axes = tuple(range(values.ndim))
    (enforced,) = enforce(
        [Measurement(axes, (None,) * values.ndim, values, 1.0)], margins, total, **limits
    )
    return enforced.counts


def test_pairs_follow_the_paper_step_by_step():
    rng = np.random.default_rng(0)
    values = rng.normal(20, 30, (4, 3))
    rows, columns = rng.normal(80, 60, 4), rng.normal(100, 60, 3)
    for sweeps in (1, 2, 5):
        table = alone(values, {0: rows, 1: columns}, 300.0, tolerance=0.0, sweeps=sweeps)
        np.testing.assert_allclose(
            table, 300 * papers_two_steps(values, rows, columns, sweeps), atol=1e-9
        )


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_tables_of_any_order_end_consistent(seed, shape):
    rng = np.random.default_rng(seed)
    values = rng.normal(10, 30, shape)
    margins = {a: np.abs(rng.normal(10, 20, size)) for a, size in enumerate(shape)}
    table = alone(values, margins, 500.0, tolerance=1e-6)
    assert table.min() >= 0
    assert table.sum() == pytest.approx(500)
    # Once more changes nothing.
    again = alone(
        table,
        {a: table.sum(axis=tuple(set(range(len(shape))) - {a})) for a in margins},
        500.0,
        tolerance=1e-6,
    )
    assert np.abs(again - table).sum() <= 500 * 1e-5


def test_many_measurements_agree_with_each_other_whatever_their_order_and_bins():
    rng = np.random.default_rng(4)
    sizes = (6, 4, 5)
    two, three = equal_width(6, 2), equal_width(6, 3)
    coarse = equal_width(5, 2)
    measurements = [
        Measurement((0, 1), (two, None), rng.normal(60, 30, (2, 4)), 30.0),
        Measurement((0, 2), (three, coarse), rng.normal(60, 30, (3, 2)), 30.0),
        Measurement((0, 1, 2), (None, None, coarse), rng.normal(10, 9, (6, 4, 2)), 9.0),
    ]
    margins = {a: rng.uniform(20, 100, s) for a, s in enumerate(sizes)}
    enforced = enforce(measurements, margins, 500.0, tolerance=1e-8, sweeps=20_000)
    first, second, third = (m.counts for m in enforced)
    # Of attribute 0 in two and three bins, of attribute 2 in two, and of attribute 1.
    bins = np.eye(2)[two]
    np.testing.assert_allclose(first.sum(axis=1), bins.T @ third.sum(axis=(1, 2)), atol=1e-3)
    np.testing.assert_allclose(
        second.sum(axis=1), np.eye(3)[three].T @ third.sum(axis=(1, 2)), atol=1e-3
    )
    np.testing.assert_allclose(second.sum(axis=0), third.sum(axis=(0, 1)), atol=1e-3)
    np.testing.assert_allclose(first.sum(axis=0), third.sum(axis=(0, 2)), atol=1e-3)
    turned = enforce(measurements[::-1], margins, 500.0, tolerance=1e-8, sweeps=20_000)[::-1]
    for one, other in zip(enforced, turned, strict=True):
        np.testing.assert_allclose(one.counts, other.counts, atol=1e-6)


def test_a_table_without_counts_takes_after_its_margins():
    table = alone(np.zeros((2, 2)), {0: np.array([1.0, 3.0]), 1: np.array([1.0, 1.0])}, 8.0)
    np.testing.assert_allclose(table.sum(), 8)
    assert table[1].sum() > table[0].sum()
    np.testing.assert_array_equal(alone(np.array([[3.0]]), {}, 5.0), [[5.0]])
