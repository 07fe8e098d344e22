"""Parities in count sketches: what they tell of marginals of three and four attributes across parties, and how well.

Noise comes from the system's entropy. Twelve runs were off by standard deviations of 0.0009 (pairs), 0.0021 (three attributes),
0.0069 (four), and 0.0030 (three, of people in common); bounds are five times that or more.
"""

import itertools

import numpy as np
import pytest
from builders import dealt, schema_of
from planning import plan_with
from roles import messages_of, run_server

from vertimrf.releases.scheduled_pairs.intersections import outer_measurement

ROWS = 20_000
SCHEMA = schema_of(one=(2, 2, 2, 2), two=(2, 2, 2))


def records(seed):
    """Codes [shape=(7, ROWS)]: x4 is nearly the parity of x0 and x2, x5 of x1, x3 and x6, and the rest coins."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=(7, ROWS), dtype=np.uint16)
    kept = rng.random((2, ROWS)) < 0.8
    codes[4] = np.where(kept[0], codes[0] ^ codes[2], codes[4])
    codes[5] = np.where(kept[1], codes[1] ^ codes[3] ^ codes[6], codes[5])
    return codes


def run(codes, people=(slice(None), slice(None)), seed=0):
    plan = plan_with(SCHEMA, epsilon=4.0, delta=1e-5, expected_records=ROWS, nonce=f"{seed:032x}")
    assert sum(group.parity for group in plan.groups) == 6 + 3
    messages = messages_of(plan, dealt(SCHEMA, codes, people=people))
    return run_server(plan, messages, rows=ROWS, seed=seed)


def contrast(codes, attributes):
    """Part of records with an even number of ones, less that with an odd one."""
    return 1 - 2 * float((codes[list(attributes)].sum(axis=0) % 2).mean())


@pytest.mark.slow
def test_three_and_four_attributes_that_no_pair_tells_of_are_told():
    codes = records(0)
    result = run(codes)
    assert {(0, 2, 4), (1, 3, 5, 6)} <= set(result.crossing)
    for attributes, bound in (((0, 2, 4), 0.012), ((1, 3, 5, 6), 0.04)):
        assert contrast(codes, attributes) == pytest.approx(0.8, abs=0.02)
        assert contrast(result.codes, attributes) == pytest.approx(
            contrast(codes, attributes), abs=bound
        )
    # What stands beside them is not touched.
    for attributes in itertools.combinations(range(7), 2):
        assert contrast(result.codes, attributes) == pytest.approx(
            contrast(codes, attributes), abs=0.008
        )


@pytest.mark.slow
def test_people_whom_one_party_alone_holds_are_no_part_of_them():
    """Of 20,000 people either party holds 17,000, and 14,000 are in common."""
    codes = records(2)
    result = run(codes, people=(slice(0, 17_000), slice(3_000, None)))
    both = codes[:, 3_000:17_000]
    assert contrast(result.codes, (0, 2, 4)) == pytest.approx(contrast(both, (0, 2, 4)), abs=0.018)


@pytest.mark.parametrize("left, right", [((0, 2), (1,)), ((0, 1), (2, 3)), ((1, 2, 3), (0,))])
def test_a_measurement_is_the_contrast_of_all_attributes_and_nothing_else(left, right):
    """Noise of a known size in the values' counts: the squares of what is measured come to the directions that it has."""
    rng = np.random.default_rng(3)
    d = len(left) + len(right)
    truth = rng.random((2,) * d) * 100
    parities = [
        np.indices((2,) * len(attributes)).sum(axis=0).ravel() % 2 for attributes in (left, right)
    ]
    by_side = truth.transpose([*left, *right]).reshape(2 ** len(left), 2 ** len(right))
    exact = np.zeros((2, 2))
    np.add.at(exact, (parities[0][:, None], parities[1][None, :]), by_side)
    squares = []
    for _ in range(2000):
        # What count sketches tell of two contrasts: one number, shared out over four cells.
        noise = 7.0 * rng.standard_normal() / 2 * np.array([[1, -1], [-1, 1]])
        m = outer_measurement(
            (left, right),
            tuple(tuple(np.arange(2) for _ in attributes) for attributes in (left, right)),
            exact + noise,
            np.full((2, 2), 7.0),
            (True, True),
        )
        assert m.attributes == tuple(range(d))
        assert m.dimensions == pytest.approx(1)
        squares.append(m.squares(truth))
    # The square of one normal variable: mean 1, standard error sqrt(2 / 2000); five of those.
    assert np.mean(squares) == pytest.approx(1, abs=0.16)
    # Whatever lies along fewer attributes is not measured.
    beside = rng.random((2,) * (d - 1))[None] * np.ones((2,) * d)
    assert m.squares(truth + beside) == pytest.approx(m.squares(truth))
