"""Measured tables that models are timed on: Adult's pairs under noise, and a tree over the attributes of a census."""

import itertools
from dataclasses import dataclass

import numpy as np

from vertimrf.kernels.contingency import all_pairs, contingency
from vertimrf.model.clique_budget import CliqueBudget
from vertimrf.model.fit import FitOptions, fit
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.measurement import Measurement

SIGMA = 50.0
# Values of the 81 attributes of the 1940 census extract in mbi's own benchmarks (public: IPUMS).
CENSUS = tuple(
    np.fromstring(
        """
    3 40 40 113 15 2 130 5 8 11 8 2 3 3 65 14 2 2 3 17 6 2 88 13 6 4 12 10 6 5 6 80 83 31 34 31
    32 6 6 8 10 2 8 2 23 23 13 23 4 12 3 4 8 112 118 109 111 7 9 20 8 37 3 43 65 104 101 95 101
    5 9 45 28 6 4 4 4 2 4 5 3
    """,
        int,
        sep=" ",
    ).tolist()
)


@dataclass(frozen=True)
class Problem:
    """A table's domain and noisy marginals of it."""

    sizes: tuple[int, ...]
    total: float
    measurements: list[Measurement]

    def tree(self):
        pairs = {p for m in self.measurements for p in itertools.combinations(m.attributes, 2)}
        return junction_tree(self.sizes, pairs)

    def fit(self, warm=None, **options):
        return fit(
            self.sizes, self.measurements, self.total, warm=warm, options=FitOptions(**options)
        )


def measure_pairs(codes, sizes, limit, count):
    """All one-way marginals and the pairs of highest true R-score that keep cliques within a limit, with noise."""
    n = codes.shape[1]
    rng = np.random.default_rng(1)
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    tables = dict(zip(pairs, all_pairs(codes, sizes, pairs), strict=True))
    score = {p: np.abs(t - np.outer(t.sum(1), t.sum(0)) / n).sum() for p, t in tables.items()}
    budget = CliqueBudget(sizes, limit)
    kept = []
    for pair in sorted(pairs, key=lambda p: -score[p]):
        if len(kept) < count and budget.try_edges([pair]):
            kept.append(pair)
    measurements = []
    for attributes in [(i,) for i in range(len(sizes))] + kept:
        table = contingency(codes, sizes, attributes).astype(np.float64)
        table += rng.normal(size=table.shape) * SIGMA
        measurements.append(Measurement(attributes, (None,) * len(attributes), table, SIGMA))
    return Problem(sizes, float(n), measurements)


def census_codes(records):
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, size, records).astype(np.uint16) for size in CENSUS])


def census_model(records):
    """A fitted model of 80 marginals that form a tree over the attributes, no clique above 5e5 cells."""
    rng = np.random.default_rng(1)
    measurements = []
    order = rng.permutation(len(CENSUS))
    for i in range(1, len(order)):
        a, b = sorted((int(order[i]), int(order[rng.integers(max(0, i - 6), i)])))
        shape = CENSUS[a], CENSUS[b]
        truth = rng.dirichlet(np.full(shape[0] * shape[1], 0.3)).reshape(shape) * records
        noisy = truth + SIGMA * rng.normal(size=shape)
        measurements.append(Measurement((a, b), (None, None), noisy, SIGMA))
    return Problem(CENSUS, records, measurements).fit(steps=2)
