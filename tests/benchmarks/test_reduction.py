"""HisRec and UniSam: against the formula cell by cell, their totals, and the errors that they state."""

import itertools

import numpy as np
import pytest
from builders import equal_width

from benchmarks.reproduce.reduction import hisrec, unisam
from vertimrf.model.measurement import Measurement


def binned(rng, sizes, bins):
    maps = tuple(None if b is None else equal_width(s, b) for s, b in zip(sizes, bins, strict=True))
    shape = tuple(s if b is None else b for s, b in zip(sizes, bins, strict=True))
    return Measurement(
        tuple(range(2, 2 + len(sizes))), maps, rng.uniform(-5, 100, shape), 3.0, "sketches"
    )


@pytest.mark.parametrize(
    "sizes, bins",
    [((7,), (3,)), ((5, 4), (2, 3)), ((6, 3, 1), (3, None, 1)), ((4, 2, 5, 3), (2, 2, 2, None))],
)
def test_recovery_is_the_papers_formula_on_any_number_of_axes(sizes, bins):
    rng = np.random.default_rng(len(sizes))
    measured = binned(rng, sizes, bins)
    one_way = {a: rng.uniform(1, 50, s) for a, s in zip(measured.attributes, sizes, strict=True)}
    recovered, even = hisrec(measured, one_way), unisam(measured)
    for cell in itertools.product(*map(range, sizes)):
        expected = uniform = 1.0
        low = []
        for value, attribute, mapping in zip(cell, measured.attributes, measured.bins, strict=True):
            if mapping is None:
                low.append(value)
                continue
            low.append(mapping[value])
            together = mapping == mapping[value]
            expected *= one_way[attribute][value] / one_way[attribute][together].sum()
            uniform /= together.sum()
        assert recovered.counts[cell] == pytest.approx(measured.counts[tuple(low)] * expected)
        assert even.counts[cell] == pytest.approx(measured.counts[tuple(low)] * uniform)
        assert recovered.sigma[cell] == pytest.approx(3.0 * expected)
        assert even.sigma[cell] == pytest.approx(3.0 * uniform)
    for one, how in ((recovered, "HisRec"), (even, "UniSam")):
        assert one.bins == (None,) * len(sizes)
        assert one.source == f"sketches, {how}"
        assert one.counts.sum() == pytest.approx(measured.counts.sum())


def test_bins_without_counts_are_spread_evenly_and_no_error_is_zero():
    measured = Measurement((0,), (np.array([0, 0, 1, 1]),), np.array([10.0, 20.0]), 2.0)
    recovered = hisrec(measured, {0: np.array([-3.0, 0.0, 5.0, -1.0])})
    np.testing.assert_allclose(recovered.counts, [5, 5, 20, 0])
    np.testing.assert_allclose(recovered.sigma, [1, 1, 2, 0.4])
    assert recovered.source == "HisRec"
