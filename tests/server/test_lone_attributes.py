"""Whole runs of parties that hold one attribute of two values each: pairs come out, and so does who is where.

Noise comes from the system's entropy; bounds are more than twice what twenty runs had at most (0.0013 and 0.015).
"""

from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with
from roles import messages_of

from vertimrf import RunOptions, Server
from vertimrf.errors import MessageError
from vertimrf.trial import run_protocol
from vertimrf.utility.distances import tvd

PEOPLE = 12_000
SCHEMA = schema_of(one=(2,), two=(2,), three=(2,))
SIZES = (2, 2, 2)


@pytest.fixture(scope="module")
def world():
    """Codes that depend on each other."""
    rng = np.random.default_rng(0)
    first = rng.random(PEOPLE) < 0.3
    second = np.where(rng.random(PEOPLE) < 0.6, first, rng.random(PEOPLE) < 0.5)
    third = np.where(rng.random(PEOPLE) < 0.6, second, rng.random(PEOPLE) < 0.8)
    return np.array([first, second, third])


@pytest.fixture(scope="module")
def plan():
    made = plan_with(SCHEMA, epsilon=4.0, expected_records=PEOPLE, message_bytes=500_000)
    assert [group.size for group in made.groups] == [2, 1] * 3
    assert made.sketch.contrasts == (0, 2, 4)
    return made


def test_of_the_same_people_all_pairs_come_out(world, plan):
    result = run_protocol(plan, dealt(SCHEMA, world), RunOptions(seed=0)).result
    assert result.overlap is None
    assert tvd(world, result.codes, SIZES, (2,), 3, 0)[2] < 0.003


def test_of_different_people_those_in_common_are_found_and_what_they_have(world, plan):
    """All are at the first party; at the others nearly all that have 1 at the first attribute, and six tenths of the rest."""
    rng = np.random.default_rng(1)
    likely = np.where(world[0] > 0, 0.95, 0.6)
    people = [np.arange(PEOPLE), *(np.flatnonzero(rng.random(PEOPLE) < likely) for _ in range(2))]
    common = np.intersect1d(people[1], people[2])
    result = run_protocol(plan, dealt(SCHEMA, world, people=people), RunOptions(seed=0)).result
    assert abs(result.overlap.inner - len(common)) < 5 * result.overlap.inner_error
    assert tvd(world[:, common], result.codes, SIZES, (1,), 3, 0)[1] < 0.05


def of_two_secrets(plan, world):
    """Messages, the last one under a secret of its own."""
    one, other = (messages_of(plan, dealt(SCHEMA, world)) for _ in range(2))
    return [*one[:2], other[2]]


def test_another_secret_is_noticed(world, plan):
    messages = of_two_secrets(plan, world)
    with pytest.raises(MessageError, match="different secrets"):
        Server(plan, RunOptions(seed=0)).read(messages)


def test_without_presence_it_would_not_be(world, plan):
    """What the tests above rest on: a plan of the same contrasts that tell no presence sees nothing of who is where."""
    sketch = replace(plan.sketch, sizes=SIZES, contrasts=(0, 1, 2), weights=())
    silent = replace(plan, groups=plan.groups[::2], sketch=sketch)
    messages = of_two_secrets(silent, world)
    assert Server(silent, RunOptions(seed=0)).read(messages).parts is None
