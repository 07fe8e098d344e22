"""Single values that many records share are found with noise, and nothing else is."""

import numpy as np
import pyarrow as pa
import pytest

from vertimrf.columns.partition import Lattice
from vertimrf.columns.private_points import BITS, find_points, rounds_of
from vertimrf.party.private_domains import close, find_domains
from vertimrf.plan.open_schema import OpenSchema
from vertimrf.privacy.ledger import spent_beforehand
from vertimrf.privacy.noise import SystemNoise

N = 16_000
CAP = 25862.3203125
RNG = np.random.default_rng(1)
NORMAL, LARGE = RNG.normal(50, 10, N), RNG.lognormal(9, 1, N)
ZEROS = np.where(RNG.random(N) < 0.3, 0.0, np.minimum(LARGE, CAP))
PENCE = np.where(RNG.random(N) < 0.2, 19.99, np.round(RNG.lognormal(3, 1, N), 2))


def found(values, epsilon=1.0, **asked):
    section = {"name": "x", "bins": "private", **asked}
    schema = OpenSchema.from_json({"party": [{"name": "a", "attribute": [section]}]})
    table = pa.table({"x": values})
    findings = find_domains(
        [*schema.wanted.values()], lambda name: table, epsilon, 1e-6, lambda name: "a"
    )
    (attribute,) = close(schema, findings).attributes
    # Where points are all, the rest of the budget is not spent.
    assert spent_beforehand(findings[0].entries)[0] <= epsilon * (1 + 1e-9)
    return attribute


# A share of 10 % is 1,600 records; noise of 200 records or less would have to be 8 scales high.
@pytest.mark.parametrize(
    "values, points, asked",
    [
        (ZEROS, {0.0, CAP}, {}),
        (np.where(RNG.random(N) < 0.1, -99999, NORMAL), {-99999.0}, {}),
        (np.where(RNG.random(N) < 0.1, np.inf, NORMAL), None, {}),
        (PENCE, {19.99}, {"resolution": 0.01}),
        (np.where(RNG.random(N) < 0.2, 40, np.round(NORMAL)), {40.0}, {"integral": True}),
        (np.minimum(NORMAL, 55), {55.0}, {"bounds": [0, 55]}),
        (NORMAL, set(), {}),
        (np.round(NORMAL), set(), {"integral": True}),
    ],
)
def test_points_are_found_and_bins_are_of_the_rest(values, points, asked):
    attribute = found(values, **asked)
    if points is not None:
        assert set(attribute.points) == points
    assert len(attribute.edges) > 8
    # A sentinel widens no bins: they are of the values beside it.
    assert attribute.edges[0] >= -100


def test_points_that_are_all_are_listed():
    attribute = found(RNG.choice([20.0, 40.0, 60.0], N))
    assert attribute.grid == attribute.points == (20.0, 40.0, 60.0)
    assert attribute.size == 3
    assert attribute.clamp


def test_noise_is_no_point():
    """The noise of half a million cells exceeds what is needed with a probability below 1e-3 each time."""
    noise = SystemNoise()
    for _ in range(20):
        counts = []

        def histogram(edges, part, without, counts=counts):
            counts.append(len(edges))
            return noise.geometrics(np.zeros(len(edges) - 1, np.int64), 30.0), 30.0

        assert find_points(histogram, [(0.0, 8.0), (16.0, 32.0)], Lattice(), 0.3, 1000.0)[0] == {}
        assert counts[0] > 2**BITS


@pytest.mark.parametrize("lattice", [Lattice(), Lattice(0.01), Lattice(1.0, 0.5)])
def test_any_double_is_found_without_noise(lattice):
    rng = np.random.default_rng(2)
    for _ in range(20):
        point = float(rng.normal() * 10.0 ** rng.integers(-3, 6))
        if lattice.step:
            point = float(lattice.value(round(lattice.place(point))))
        ranges = [(point - 5.5 * abs(point) - 3, point), (point, point + 0.5 * abs(point) + 7)]
        ranges = [(low, high) for low, high in ranges if low < high]

        def histogram(edges, part, without, point=point):
            counts = np.zeros(len(edges) - 1, np.int64)
            counts[np.searchsorted(edges, point, side="right") - 1] = 1000
            return counts, 1.0

        points, spent = find_points(histogram, ranges, lattice, 0.3, 1000.0)
        assert [*points] == [point]
        assert 0 < spent <= 0.3 * (1 + 1e-9)
        assert rounds_of(ranges, lattice) <= 4
