"""Whole runs in which a column of a party decides another: no row breaks the map, and so do redrawn models.

Noise is fixed, because a run in a hundred leaves a map alone.
"""

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with
from roles import messages_of, run_server

from vertimrf import Secret

PEOPLE = 20_000


@pytest.fixture(scope="module")
def world():
    """A column of ten values, whether it is above six, another that depends on both, and one of the other party's."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 10, PEOPLE)
    other = np.clip(first // 2 + rng.integers(-1, 2, PEOPLE), 0, 4)
    return np.array([first, first > 6, other, rng.integers(0, 3, PEOPLE) * (first > 4)])


@pytest.mark.parametrize("parties", [{"one": (10, 2, 5, 3)}, {"one": (10, 2, 5), "two": (3,)}])
def test_rows_and_redrawn_models_keep_a_map(world, parties):
    schema = schema_of(**parties)
    plan = plan_with(schema, epsilon=4.0, expected_records=PEOPLE)
    messages = messages_of(plan, dealt(schema, world), Secret(bytes(range(32))), fixed=True)
    result = run_server(plan, messages, seed=0)
    assert ((result.codes[0] > 6) != result.codes[1]).mean() < 0.004
    again = result.figures.noise.redrawn(
        result.model, (), [0] * len(result.model.sizes), np.random.default_rng(1)
    )
    for model in (result.model, again):
        counts = model.marginal((0, 1))
        assert (counts == 0).sum() >= 8
        assert counts[:7, 0].sum() + counts[7:, 1].sum() > 0.996 * counts.sum()
