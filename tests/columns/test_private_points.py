"""Single values that many records share are found with noise, and bins are of the others."""

import numpy as np
import pyarrow as pa
import pytest

from vertimrf.columns.private import PrivateDomain, Search
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
        [*schema.wanted.values()], lambda name: table, epsilon, 1e-13, lambda name: "a"
    )
    (attribute,) = close(schema, findings).attributes
    # Where points are all, the rest of the budget is not spent.
    assert spent_beforehand(findings[0].entries)[0] <= epsilon * (1 + 1e-9)
    return attribute


# At epsilon 1 a value needs about 100 records; the noise has a scale of 3. The shares are 10 % and more.
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
@pytest.mark.parametrize(
    "values, points, asked",
    [
        (ZEROS, {0.0, CAP}, {}),
        (np.where(RNG.random(N) < 0.1, -99999, NORMAL), {-99999.0}, {}),
        (PENCE, {19.99}, {"resolution": 0.01}),
        (np.where(RNG.random(N) < 0.2, 40, np.round(NORMAL)), {40.0}, {"integral": True}),
        (np.minimum(NORMAL, 55), {55.0}, {"bounds": [0, 55]}),
        (NORMAL, set(), {}),
        (np.round(NORMAL), set(), {"integral": True}),
    ],
)
def test_points_are_found_and_bins_are_of_the_rest(values, points, asked, epsilon):
    attribute = found(values, epsilon, **asked)
    assert set(attribute.points) == points
    assert len(attribute.edges) > 8
    # A sentinel widens no bins.
    assert attribute.edges[0] >= -100


def test_points_that_are_all_are_listed():
    attribute = found(RNG.choice([20.0, 40.0, 60.0], N))
    assert attribute.grid == attribute.points == (20.0, 40.0, 60.0)
    assert attribute.size == 3
    assert attribute.clamp


def test_noise_decides_which_values_are_points():
    """Of two values that 400 records have each, noise hides the second."""

    class Hiding(SystemNoise):
        def geometrics(self, values, scale):
            return values - 400 * np.arange(len(values))

    domain = PrivateDomain.from_json({"name": "x", "bins": "private"})
    cells = np.repeat([20.0, 40.0], 400)
    attribute, _ = domain.find(cells, Search(1.0, 1e-13, 1, Hiding()))
    assert attribute.points == (20.0,)


@pytest.mark.parametrize(
    "asked",
    [
        {"calendar": "date"},
        {"calendar": "timestamp", "timezone": "Pacific/Kiritimati"},
        {"calendar": "time"},
        {"integral": True},
        {"resolution": 0.01},
        {},
    ],
)
def test_edges_of_mere_noise_are_edges_that_a_column_can_have(asked):
    """Whether a search ends in an error must not depend on records: no noise leads to one."""
    section = {"name": "x", "bins": "private", **asked}
    domain = PrivateDomain.from_json(section)
    rng = np.random.default_rng(0)

    class Wild(SystemNoise):
        def geometrics(self, values, scale):
            return np.rint(rng.standard_cauchy(len(values)) * 30 * scale).astype(np.int64)

    for _ in range(60):
        cells = np.array([]) if "calendar" in asked else rng.normal(0, 1, 3)
        attribute, _ = domain.find(cells, Search(1.0, 1e-13, 1, Wild()))
        assert attribute is None or attribute.size
