"""Published CarEst on Adult's shape, beside the same in vectorised NumPy: pytest benchmarks/bench_estimate.py.

15 attributes in 8 bins, 7 at one party and 8 at the other, 2000 shared keys; all 56 cross-party pairs, and triples.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.estimation import in_numpy
from vertimrf.published.shared_keys_estimate import estimate_cells, published_estimates
from vertimrf.sketches.parameters import SharedKeyPlan

ROWS, PHANTOMS, KEYS, ATTRIBUTES, BINS = 45_222, 3000, 2000, 15, 8
PLAN = SharedKeyPlan(PHANTOMS, 9, 22, KEYS, (BINS,) * ATTRIBUTES)
PAIRS = [(a, b) for a in range(7) for b in range(7, ATTRIBUTES)]
TRIPLES = [t for t in itertools.combinations(range(ATTRIBUTES), 3) if t[0] < 7 <= t[2]][:56]


@pytest.fixture(scope="module")
def levels() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    items = ROWS // BINS + PHANTOMS
    drawn = np.ceil(-np.log2(-np.expm1(np.log(rng.random((ATTRIBUTES, BINS, KEYS))) / items)))
    return list(np.clip(drawn, PLAN.floor, PLAN.ceiling).astype(np.uint8))


@pytest.mark.parametrize("marginals", [PAIRS, TRIPLES], ids=["pairs", "triples"])
@pytest.mark.parametrize("how", ["numpy", "cells", "measurements"])
def test_published(benchmark: Any, levels: list[np.ndarray], how: str, marginals: list[tuple[int, ...]]) -> None:
    """``cells``: arrays of counts and errors, as NumPy's; ``measurements``: the whole call, with its checked results."""
    found = published_estimates(PLAN, range(ATTRIBUTES), [None] * ATTRIBUTES, levels, marginals, ROWS)
    for one, other in zip(found, in_numpy(levels, marginals, PHANTOMS, ROWS), strict=True):
        # NumPy's formula knows nothing of the ceiling.
        np.testing.assert_allclose(one.counts, other, atol=0.2 * one.sigma.max())
    if how == "numpy":
        benchmark(in_numpy, levels, marginals, PHANTOMS, ROWS)
    elif how == "cells":
        benchmark(lambda: estimate_cells(PLAN, np.concatenate(levels), [BINS] * ATTRIBUTES, marginals, ROWS))
    else:
        benchmark(published_estimates, PLAN, range(ATTRIBUTES), [None] * ATTRIBUTES, levels, marginals, ROWS)
