"""The price of alternating signs, derived a second time: the exact law of published codes, by what the encoder really adds.

``test_alternating_signs_anew.py`` states what a record does to counters. Here the encoder is asked: under many secrets, what one record
of given values adds in a repetition is one of a few moves, which a secret draws with equal chances (a bucket and a sign). From these
moves, the noise and the cuts of the code, the law of all codes of all repetitions follows as a sum over moves, of the record and of
others, and is compared with what the ledger states for the plan. Nothing is drawn but the secrets that show the moves.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from vertimrf.kernels.count_sketch import quantise
from vertimrf.privacy.accountant import delta
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder, code_steps
from vertimrf.releases.count_sketches.parameters import CountSketches

# Standard deviations of the noise that are listed: beyond is less than 1e-20 of it.
REACH = 10
# Exact sums against a grid that may only be above.
ROUNDING = 1e-12
# A move is missed under so many secrets with a chance of 4 * .75^200 and less.
SECRETS = 200


@functools.cache
def moves(plan, values, first=0):
    """By repetition, all that a record of these values may add to counters [each shape=(groups, buckets)].

    Args:
        plan: the sketches.
        values: of the record, one for each group.
        first: the first secret.
    """
    codes = np.array(values, np.uint16)[:, None]
    seen = [{} for _ in range(plan.repetitions)]
    for secret in range(first, first + SECRETS):
        encoder = CountSketchEncoder(plan, range(len(plan.sizes)), secret.to_bytes(32, "little"))
        encoder.update(np.array([7], np.uint64), codes)
        for found, added in zip(seen, encoder._state, strict=True):
            found[added.tobytes()] = added.copy()
    return [list(found.values()) for found in seen]


@functools.cache
def cells(plan, group, shift):
    """The exact law of the code of a counter to which a record adds a number [shape=(codes,)]."""
    weight = plan.weight(group)
    variance = weight * plan.variance
    reach = math.ceil(REACH * math.sqrt(variance)) + 2 * weight
    at = np.arange(-reach, reach) + 0.5
    mass = np.exp(-((at - weight * shift) ** 2) / (2 * variance))
    # The code that parties run cuts twice the counter.
    code = np.empty((1, at.size), np.uint8)
    doubled = (2 * at).astype(np.int32)[None, None]
    quantise(doubled, code_steps(plan, np.zeros(1), weight), plan.bits, code)
    return np.bincount(code[0], mass / mass.sum(), 1 << plan.bits)


def law(plan, repetition, records):
    """The exact law of all codes of a repetition about some records [shape=(codes^counters,)]."""
    groups = len(plan.sizes)
    drawn = [moves(plan, values, 1000 * i)[repetition] for i, values in enumerate(records)]
    out, ways = 0.0, math.prod(map(len, drawn))
    for some in itertools.product(*drawn):
        total = sum(some, np.zeros((groups, plan.buckets), np.int64))
        laws = [cells(plan, g, int(shift)) for g in range(groups) for shift in total[g]]
        out = out + functools.reduce(np.multiply.outer, laws).ravel() / ways
    return out


def merged(p, q):
    """Two laws with outcomes of one ratio put together: it is the same to 1e-11."""
    p, q = p[(p > 0) | (q > 0)], q[(p > 0) | (q > 0)]
    _, place = np.unique(np.round(np.log(p / q), 11), return_inverse=True)
    return np.bincount(place, p), np.bincount(place, q)


def exact(plan, record, others, at):
    """The larger exact delta of all repetitions together, with the record and without it."""
    p = q = np.ones(1)
    for repetition in range(plan.repetitions):
        here = law(plan, repetition, (*others, record)), law(plan, repetition, others)
        here = merged(*here)
        p, q = merged(
            *(np.outer(all_, one).ravel() for all_, one in zip((p, q), here, strict=True))
        )
    assert (p.sum(), q.sum()) == pytest.approx((1, 1))
    return max(float(np.maximum(a - math.exp(at) * b, 0).sum()) for a, b in ((p, q), (q, p)))


def values_of(plan):
    return itertools.product(*map(range, plan.sizes))


# Groups of two halves and a missing value; besides a plain contrast; with weights.
PLANS = {
    "one group": CountSketches(4, 2, 4.0, 4, (3,), (0,)),
    "two groups": CountSketches(2, 2, 4.0, 3, (3, 3), (0, 1)),
    "beside a contrast": CountSketches(2, 2, 4.0, 3, (3, 2), (0, 1)),
    "weights": CountSketches(2, 2, 4.0, 3, (3, 3), (0, 1), (1, 3)),
}


@pytest.fixture(params=PLANS.values(), ids=PLANS)
def plan(request):
    return request.param


def test_a_record_draws_a_bucket_and_a_sign_whatever_it_holds(plan):
    """It moves one counter of each group by 1, all in one bucket, and a sign turns all of them."""
    kinds = {values: set() for values in values_of(plan)}
    for values in values_of(plan):
        for some in moves(plan, values):
            assert len(some) == 2 * plan.buckets
            assert all((np.abs(added).sum(axis=1) == 1).all() for added in some)
            assert all((added != 0).any(axis=0).sum() == 1 for added in some)
            assert {a.tobytes() for a in some} == {(-a).tobytes() for a in some}
            # Whether the first group and the last one turn alike.
            kinds[values] |= {int(added[0].sum() * added[-1].sum()) for added in some}
    # Who lacks a value has both, by the bucket and the repetition; who has all, one.
    lacking = {values: 2 in values and len(values) > 1 for values in kinds}
    assert {values: len(some) > 1 for values, some in kinds.items()} == lacking


def test_codes_about_one_record_cost_no_more_than_the_ledger_states(plan):
    for at in (0.05, 0.3, 0.8):
        price = delta([plan.event], at)
        found = [exact(plan, record, (), at) for record in values_of(plan)]
        assert max(found) <= price + ROUNDING
        # It is the same whatever the record holds.
        assert found == pytest.approx([found[0]] * len(found), rel=1e-6)
        # Codes of 3 and 4 bits keep most of it.
        assert found[0] > 0.6 * price


def test_other_records_hide_it_whatever_they_hold(plan):
    """Another that has all values, or lacks those that may be missing."""
    at = 0.05
    price = delta([plan.event], at)
    some = (0,) * len(plan.sizes), tuple(size - 1 for size in plan.sizes)
    for record, other in itertools.product(values_of(plan), some):
        assert exact(plan, record, (other,), at) <= price + ROUNDING


def test_signs_that_a_secret_does_not_turn_would_cost_more_than_the_ledger_states(
    plan, monkeypatch
):
    """The comparison notices it: if a record's moves were known but for the bucket, the price would be passed."""
    known = moves

    def up(plan, values, first=0):
        return [[np.abs(added) for added in some] for some in known(plan, values, first)]

    monkeypatch.setitem(globals(), "moves", up)
    assert exact(plan, (0,) * len(plan.sizes), (), 0.3) > delta([plan.event], 0.3)
