"""Which columns are missing together is told from noisy pairs, and only where noise leaves little doubt."""

import numpy as np
import pytest

from vertimrf import Attribute, Schema
from vertimrf.model.couple import APART
from vertimrf.model.measurement import Measurement
from vertimrf.server.missing import missing_together

SIGMA = 20.0
SCHEMA = Schema.of(
    {
        "one": [Attribute.integer("a", 3, missing=True), Attribute.integer("b", 2, missing=True)],
        "two": [Attribute.integer("c", 2, missing=True), Attribute.integer("d", 4)],
    }
)


def measured(pair, both, apart=0, bins=(None, None), sigma=SIGMA):
    """Two columns of 20,000 records: so many are missing in both, and so many in the first alone."""
    sizes = [SCHEMA.sizes[a] for a in pair]
    table = np.zeros(sizes)
    table[:-1, :-1] = (20_000 - both - apart) / table[:-1, :-1].size
    table[-1, -1], table[-1, :-1] = both, apart / (sizes[1] - 1)
    alone = [Measurement((a,), (None,), table.sum(axis=1 - i), sigma) for i, a in enumerate(pair)]
    for axis, kept in enumerate(bins):
        if kept is not None:
            table = np.stack(
                [table.take(np.flatnonzero(kept == b), axis).sum(axis) for b in (0, 1)], axis
            )
    return [*alone, Measurement(pair, bins, table, sigma)]


@pytest.mark.parametrize(
    "measurements, found",
    [
        (measured((0, 1), 1000), True),
        # The error of records apart is 47: 2.5 of them are 117.
        (measured((0, 1), 1000, apart=110), True),
        (measured((0, 1), 1000, apart=135), False),
        # It is more than 8 % of those missing in both.
        (measured((0, 1), 550), False),
        # Two measurements of the pair leave less doubt.
        (measured((0, 1), 550) + measured((0, 1), 550)[2:], True),
        # Columns that are never missing are no pair.
        (measured((2, 3), 1000), False),
        # A bin that missing values share with others says nothing; one of their own does.
        (measured((0, 1), 1000, bins=(np.array([0, 0, 1, 1]), None)), False),
        (measured((0, 1), 1000, bins=(np.array([1, 1, 1, 0]), None)), True),
    ],
)
def test_pairs_whose_measured_counts_show_no_record_apart(measurements, found):
    factors = missing_together(SCHEMA, measurements)
    assert [f.attributes for f in factors] == [(0, 1)] * found
    for f in factors:
        missing = np.arange(4)[:, None] == 3, np.arange(3) == 2
        np.testing.assert_array_equal(f.logs, np.where(missing[0] != missing[1], APART, 0))
