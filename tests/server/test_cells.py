"""Contrasts of halves: what many noisy cells of a pair across parties tell together."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from builders import schema_of
from scipy import special

from vertimrf.model.copula import normal_tables
from vertimrf.model.measurement import Measurement, contrasted
from vertimrf.server.cells import of_halves

RECORDS, SIGMA, DRAWS = 5000.0, 60.0, 300
SCHEMA = schema_of(one=(6,), two=(8,))
MARGINS = [np.array([500, 900, 1100, 1000, 800, 700.0]), np.full(8, 625.0)]
FIELD = SimpleNamespace(marginal=lambda attributes: MARGINS[attributes[0]], total=RECORDS)


def population(correlation):
    """Counts of two Gaussian variables with these margins."""
    edges = [
        np.concatenate([[-12], special.ndtri(np.cumsum(m)[:-1] / RECORDS), [12]]) for m in MARGINS
    ]
    for inner in edges:
        inner[np.abs(inner) < 1e-9] = 1e-9
    return RECORDS * normal_tables(*edges, np.array([correlation]))[0]


def measured(table, rng):
    return Measurement((0, 1), (None, None), table + SIGMA * rng.standard_normal((6, 8)), SIGMA)


def test_halves_have_the_contrast_of_their_cells_and_its_error():
    """By hand: the halves are the lower and upper three and four values. Squared errors in units of their variance have a
    mean of 1 up to 4.42 sqrt(2 / 300) = 0.36 with a chance of 1e-5."""
    table, rng = population(0.8), np.random.default_rng(0)
    halved = table.reshape(2, 3, 2, 4).sum(axis=(1, 3))
    true = contrasted(halved, (0, 1))
    squares = []
    for _ in range(DRAWS):
        (found,) = of_halves(SCHEMA, FIELD, [measured(table, rng)])
        assert [bins.tolist() for bins in found.bins] == [[0] * 3 + [1] * 3, [0] * 4 + [1] * 4]
        np.testing.assert_allclose(np.abs(found.counts), abs(found.counts[0, 0]))
        squares.append((((found.counts - true) / found.errors)[0, 0]) ** 2)
        # The four cells are one number.
        assert found.dimensions == pytest.approx(1)
        assert found.squares(halved) == pytest.approx(squares[-1])
    assert abs(np.mean(squares) - 1) < 4.42 * math.sqrt(2 / DRAWS)


def test_halves_that_noise_may_explain_are_left_out():
    """Beyond three standard errors are 0.8 of 300 by chance, and more than 7 with a chance of 2e-6."""
    rng = np.random.default_rng(1)
    table = population(0.0)
    found = [of_halves(SCHEMA, FIELD, [measured(table, rng)]) for _ in range(DRAWS)]
    assert sum(map(len, found)) <= 7


def test_only_pairs_of_ordered_cells_that_were_counted_have_halves():
    m = measured(population(0.8), np.random.default_rng(2))
    assert len(of_halves(SCHEMA, FIELD, [m, m])) == 2
    assert not of_halves(SCHEMA, FIELD, [replace(m, trend=True), replace(m, contrasts=(0,))])
    one, two = SCHEMA.attributes
    named = SimpleNamespace(ordered=False, size=6, missing=False)
    assert not of_halves(SimpleNamespace(attributes=(named, two)), FIELD, [m])
    assert one.ordered
