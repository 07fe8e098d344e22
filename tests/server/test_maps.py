"""Maps among noisy pairs, and what chosen pairs tell beside trends."""

import numpy as np
import pytest

from vertimrf import Attribute, Schema
from vertimrf.model.fit import fit
from vertimrf.model.measurement import Measurement
from vertimrf.model.trend import without_noise
from vertimrf.server.local_pairs import read_pairs
from vertimrf.server.maps import Margin, decided, of_map

RECORDS = 3500


def year_and_dummy(exceptions=0.0):
    """Counts of seven years, and of a dummy of the fourth with some exceptions in that year."""
    table = np.zeros((7, 2))
    table[:, 0] = 500
    table[3] = 500 * exceptions, 500 * (1 - exceptions)
    return table


def contrast(table, sigma, rng):
    """The measurement of differences of both columns, completed as in messages."""
    difference = table[:, 0] - table[:, 1] + rng.normal(0, sigma, len(table))
    counts = np.stack([difference, -difference], axis=1) / 2
    return Measurement((0, 1), (None, None), counts, sigma / np.sqrt(2), "a pair", (1,))


def margins(table, error=1.0):
    return [Margin(table.sum(axis=1 - a), np.ones(table.shape[a]), error) for a in (0, 1)]


def test_a_year_decides_its_dummy_though_noise_puts_records_elsewhere():
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = year_and_dummy()
        held = decided(contrast(table, 90.0, rng), margins(table))
        np.testing.assert_array_equal(held, table > 0)


@pytest.mark.parametrize("exceptions", [0.5, 1.0])
def test_a_year_of_which_half_has_the_dummy_decides_nothing(exceptions):
    """With a tenth of the noise it would be seen to have exceptions; with so much, to be no map."""
    rng = np.random.default_rng(1)
    table = year_and_dummy(exceptions)
    assert all(decided(contrast(table, 60.0, rng), margins(table)) is None for _ in range(20))


def test_the_counts_of_a_map_are_those_of_both_columns():
    table = year_and_dummy()
    both = margins(table)
    more = [Margin(both[0].counts + 20, both[0].values, 10.0), both[1]]
    m = contrast(table, 90.0, np.random.default_rng(0))
    counts, errors = of_map(m, np.outer(more[0].counts, both[1].counts) / RECORDS, table > 0, more)
    assert counts[table == 0].max() < 1e-3
    assert errors[table == 0].max() < 0.1 * errors[table > 0].min()
    # The dummy's count is ten times as precise.
    assert counts[3, 1] == pytest.approx(500 + 20 / 101, abs=0.5)


def read(schema, table, contrasts=(), sigma=60.0, error=40.0):
    """A pair as it is read, by exact margins and exact cells of a stated error."""
    one_way = [Measurement((a,), (None,), table.sum(axis=1 - a), error, "column") for a in (0, 1)]
    field = fit(schema.sizes, one_way, float(table.sum()))
    pair = Measurement((0, 1), (None, None), table, sigma, "a pair", contrasts)
    *_, last = read_pairs(schema, field, [*one_way, pair], float(table.sum()))
    return last


def test_who_lacks_a_value_is_kept_where_values_have_no_trend():
    """Staff is known in the first three years alone, and does not depend on them then."""
    schema = Schema.of(
        {"one": [Attribute.integer("year", 7), Attribute.numeric("staff", range(5), missing=True)]}
    )
    table = np.zeros((7, 5))
    table[:3, :4], table[3:, 4] = 125, 500
    found = read(schema, table)
    assert found.counts[:3, -1].sum() < 0.15 * 1500
    assert found.counts[3:, -1].sum() > 0.85 * 2000


def test_a_chosen_pair_without_dependence_is_known_to_have_none():
    """A fit does not follow it; off the tree it is evidence against what others imply."""
    schema = Schema.of({"one": [Attribute.integer("a", 5), Attribute.integer("b", 5)]})
    found = read(schema, np.full((5, 5), 140.0))
    assert found.attributes == (0, 1)
    assert not without_noise([found], 3.0)
    assert without_noise([found, read(schema, np.eye(5) * 700)], 3.0)


def test_an_error_of_a_rare_columns_margin_is_no_dependence():
    """Both are mostly 0. A count of 3,400 for 3,300 moves the expected contrast as a link would."""
    schema = Schema.of({"one": [Attribute.integer("a", 2), Attribute.integer("b", 12)]})
    rare = np.array([0.97, *[0.03 / 11] * 11])
    table = RECORDS * np.outer([0.97, 0.03], rare)
    one_way = [
        Measurement((0,), (None,), np.array([0.97, 0.03]) * RECORDS + [-90, 90], 40.0, "a"),
        Measurement((1,), (None,), rare * RECORDS, 40.0, "b"),
    ]
    field = fit(schema.sizes, one_way, float(RECORDS))
    halves = np.array([0, *[1] * 11])
    cells = np.stack([table[:, 0], table[:, 1:].sum(axis=1)], axis=1)
    number = cells[0, 0] - cells[0, 1] - cells[1, 0] + cells[1, 1]
    counts = number / 4 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    pair = Measurement((0, 1), (None, halves), counts, 20.0, "a pair", (0, 1))
    *_, found = read_pairs(schema, field, [*one_way, pair], float(RECORDS))
    assert not without_noise([found], 3.0)
