"""Tables of many marginals over rows against loops over rows, one marginal after the other."""

import numpy as np
import pytest

from vertimrf.model import row_tables
from vertimrf.model.measurement import Measurement
from vertimrf.model.row_tables import RowTables

SIZES = (5, 1, 400, 6, 2, 300)
THIRDS, ENDS = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 1])
HUNDREDS = np.arange(400) // 100


def marginal(attributes, **bins):
    """A marginal of zeros, with bin maps by attribute: a0=..."""
    maps = tuple(bins.get(f"a{a}") for a in attributes)
    shape = [
        SIZES[a] if m is None else int(m.max()) + 1 for a, m in zip(attributes, maps, strict=True)
    ]
    return Measurement(attributes, maps, np.zeros(shape), 1.0)


EMPTY_LAST = Measurement((0, 3), (THIRDS, None), np.zeros((4, 6)), 1.0)
WANTED = {
    "none": [],
    "one attribute": [marginal((2,))],
    "pairs of four": [marginal((a, b)) for a in (0, 1, 3) for b in (3, 4) if a < b],
    "bins that cross": [
        marginal((0, 3), a0=THIRDS),
        marginal((0, 4), a0=ENDS),
        marginal((0,), a0=ENDS),
    ],
    "an empty last bin": [EMPTY_LAST, marginal((0, 4), a0=THIRDS)],
    "bins beside values": [
        marginal((0, 3), a0=THIRDS),
        marginal((0, 4)),
        marginal((1,)),
        marginal((2,)),
    ],
    "three attributes": [marginal((0, 3, 4)), marginal((0, 4)), marginal((1, 3))],
    "more cells than codes": [marginal((2, 5)), marginal((0, 2), a2=HUNDREDS), marginal((4, 5))],
    "the same attributes twice": [marginal((0, 3)), marginal((0, 3), a0=ENDS)],
}


def cells_of(m, codes):
    """The cell of every row in a marginal."""
    rows = [
        codes[a] if bins is None else bins[codes[a]]
        for a, bins in zip(m.attributes, m.bins, strict=True)
    ]
    return np.ravel_multi_index([row.astype(np.int64) for row in rows], m.counts.shape)


@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)
@pytest.mark.parametrize("cells", [1, 40, row_tables.MAX_GROUP])
def test_logs_and_counts_are_those_of_each_marginal(monkeypatch, wanted, cells):
    monkeypatch.setattr(row_tables, "MAX_GROUP", cells)
    rng = np.random.default_rng(0)
    n = 3000
    codes = np.array([rng.integers(0, size, n) for size in SIZES], np.uint16)
    tables = RowTables(wanted)
    places = tables.place(codes)
    theta = [rng.normal(size=m.counts.size) for m in wanted]
    logs, weights = rng.normal(size=n), rng.random(n)
    expected = logs + sum(
        (t[cells_of(m, codes)] for m, t in zip(wanted, theta, strict=True)), np.zeros(n)
    )
    # Each is a sum of at most n doubles of about 1: rounding is below n times 1e-16.
    for _ in range(2):  # Buffers are used again.
        out = logs.copy()
        tables.add_logs(places, np.concatenate([np.zeros(0), *theta]), out)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
        counts = tables.counts(places, weights)
        sums = [np.bincount(cells_of(m, codes), weights, m.counts.size) for m in wanted]
        np.testing.assert_allclose(
            counts, np.concatenate([np.zeros(0), *sums]), rtol=1e-12, atol=1e-12
        )


def test_marginals_share_columns():
    # All pairs of six attributes of three values are within one table of 3^6 cells; of 40 values, no table has two.
    def columns(size):
        pairs = [(a, b) for a in range(6) for b in range(a)]
        tables = RowTables(
            [Measurement((b, a), (None, None), np.zeros((size, size)), 1.0) for a, b in pairs]
        )
        return len(tables.place(np.zeros((6, 1), np.uint16)))

    assert columns(3) == 1
    assert columns(40) == 15
    # Tables of three attributes have three pairs each. No fewer than six of them have all 15.
    assert 6 <= columns(10) <= 8
