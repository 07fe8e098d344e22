"""Counts of columns from one-way marginals and from the margins of chosen pairs."""

import numpy as np
import pytest
from builders import schema_of
from planning import plan_with

from vertimrf.model.local_marginal import first_one_way
from vertimrf.model.measurement import Measurement
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret
from vertimrf.privacy.noise import FixedNoise
from vertimrf.releases.received import RecordCount
from vertimrf.server.column_counts import counted_together
from vertimrf.server.server import Server
from vertimrf.tables.table import Table

SIZE, RECORDS = 6, 900.0
HALVES = np.array([0, 0, 0, 1, 1, 1])
THIRDS = np.array([0, 0, 1, 1, 2, 2])
TRUE = np.array([300.0, 200.0, 150.0, 100.0, 90.0, 60.0])


def alone(counts, sigma=40.0, a=0):
    return Measurement((a,), (None,), np.asarray(counts), sigma, "column")


def pair(bins, counts, sigma, contrasts=()):
    return Measurement((0, 1), (bins, None), np.asarray(counts), sigma, "a pair", contrasts)


def oracle(counts, sigma, rows, found, errors):
    """Weighted least squares of all equations."""
    left = np.concatenate([np.eye(len(counts)) / sigma, rows / errors[:, None]])
    right = np.concatenate([counts / sigma, found / errors])
    return np.linalg.lstsq(left, right, rcond=None)[0]


def test_counts_are_the_least_squares_of_all_that_was_measured():
    rng = np.random.default_rng(0)
    counts = TRUE + rng.normal(0, 40, SIZE)
    halves, thirds = rng.normal(100, 30, (2, 3)), rng.normal(100, 30, (3, 4))
    # A contrast of the column itself, completed as in messages, and one of the other column, which
    # says nothing of this one.
    values = np.array([0, 1])
    difference = rng.normal(0, 30, 5)
    two = alone(np.array([500.0, 300.0]), a=2)
    own = Measurement(
        (2, 3), (values, None), np.stack([difference, -difference]) / 2, 15.0, "own", (0,)
    )
    other = pair(HALVES, np.array([[9.0, -9.0], [5.0, -5.0]]), 10.0, (1,))
    measured = [
        alone(counts),
        pair(HALVES, halves, 20.0),
        pair(THIRDS, thirds, 25.0),
        other,
        two,
        own,
    ]
    got = counted_together(measured, RecordCount(RECORDS, 2.0))
    rows = np.concatenate(
        [np.arange(2)[:, None] == HALVES, np.arange(3)[:, None] == THIRDS, np.ones((1, SIZE))]
    )
    found = np.concatenate([halves.sum(axis=1), thirds.sum(axis=1), [RECORDS]])
    errors = np.array([20 * np.sqrt(3)] * 2 + [25 * 2.0] * 3 + [2.0])
    np.testing.assert_allclose(got[0].counts, oracle(counts, 40.0, rows, found, errors))
    rows = np.array([[1.0, -1.0], [1.0, 1.0]])
    found = np.array([difference.sum(), RECORDS])
    errors = np.array([15 * np.sqrt(2 * 5), 2.0])
    np.testing.assert_allclose(got[4].counts, oracle(two.counts, 40.0, rows, found, errors))
    assert [m for i, m in enumerate(got) if i not in (0, 4)] == [*measured[1:4], own]


def test_halves_are_better_known_from_pairs():
    """A half has an error of 40 sqrt(3/2) = 49 where all records are known, and one of 15 from this pair."""
    rng = np.random.default_rng(1)
    apart = []
    for _ in range(400):
        noisy = TRUE + rng.normal(0, 40, SIZE)
        cells = np.outer(np.bincount(HALVES, TRUE), [0.5, 0.5]) + rng.normal(0, 15, (2, 2))
        (got, _) = counted_together([alone(noisy), pair(HALVES, cells, 15.0)], RecordCount(900, 1))
        apart.append(got.counts[:3].sum() - 650)
    # Half the difference of two sums of error 15 sqrt(2), beside 49 / 40 of that of the values.
    error = (49.0**-2 + 15.0**-2) ** -0.5
    assert np.std(apart) == pytest.approx(error, rel=5 / np.sqrt(800))
    assert abs(np.mean(apart)) < 5 * error / 20


@pytest.mark.parametrize("records, chosen", [(2000, True), (10**6, False)])
def test_the_server_counts_columns_so_where_pairs_were_chosen(records, chosen):
    schema = schema_of(one=(7,) * 16)
    plan = plan_with(schema, expected_records=records, nonce="columns")
    assert (plan.local[0].choices > 0) == chosen
    codes = np.random.default_rng(0).integers(0, 7, (16, 2000)).astype(np.uint16)
    table = Table(schema.part("one"), np.arange(2000, dtype=np.uint64), codes)
    message = Party(plan, "one", Secret.new(), FixedNoise(1)).run(table)
    local = Server(plan).read([message]).local
    sent = first_one_way(message.marginals)
    read = {m.attributes[0]: m for m in reversed(local) if len(m.attributes) == 1}
    same = [np.array_equal(read[a].counts, sent[a].counts / sent[a].units) for a in range(16)]
    assert same == [not chosen] * 16
