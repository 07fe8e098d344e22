"""Alternating signs in count sketches cost nothing: derived anew by brute force, with exact sums.

In each repetition a record draws a bucket b and a sign s and adds s c_g(b) to the counter of bucket b
of each group g, where c_g(b) is 1 or -1 and public; all counters have independent discrete Gaussian
noise, on half-integers: so no counter is 0. Here every outcome of all counters is listed, for every table of signs, so that the law of what
is published is known exactly. Codes are made of these counters, so nothing published says more.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from vertimrf.privacy.accountant import delta
from vertimrf.privacy.events import CountSketchEvent

VARIANCE = 4.0
# Counters beyond have less than 1e-13 of the law.
REACH = 15


@functools.cache
def discrete_gaussian():
    at = np.arange(-REACH, REACH) + 0.5
    mass = np.exp(-(at**2) / (2 * VARIANCE))
    return mass / mass.sum()


def shifted(by):
    """The law of a counter that a record changes."""
    return np.roll(discrete_gaussian(), by)


def with_record(signs, others=()):
    """Exact law of all counters [one axis each], with a record and, before it, others.

    Args:
        signs: c_g(b) of the record [shape=(groups, buckets)].
        others: the same of further records.
    """
    groups, buckets = signs.shape
    total = np.zeros((2 * REACH,) * (groups * buckets))
    records = (signs, *others)
    draws = [*itertools.product(range(buckets), (-1, 1))]
    for drawn in itertools.product(draws, repeat=len(records)):
        change = np.zeros((groups, buckets), int)
        for (bucket, sign), its in zip(drawn, records, strict=True):
            change[:, bucket] += sign * its[:, bucket]
        laws = [shifted(by) for by in change.ravel()]
        total += functools.reduce(np.multiply.outer, laws) / len(draws) ** len(records)
    return total


def without(groups, buckets, others=()):
    if others:
        return with_record(others[0], others[1:])
    laws = [discrete_gaussian()] * (groups * buckets)
    return functools.reduce(np.multiply.outer, laws)


def deltas(one, other, at):
    """Exact deltas of two laws, adding and removing."""
    return np.array(
        [np.maximum(a - math.exp(at) * b, 0).sum() for a, b in ((one, other), (other, one))]
    )


def all_signs(groups, buckets):
    for flat in itertools.product((1, -1), repeat=groups * buckets):
        yield np.array(flat).reshape(groups, buckets)


@pytest.mark.parametrize("groups, buckets", [(1, 2), (2, 1), (3, 1), (1, 3)])
def test_every_table_of_signs_has_the_divergences_of_none(groups, buckets):
    empty = without(groups, buckets)
    plain = with_record(np.ones((groups, buckets), int))
    for at in (0.0, 0.1, 0.4, 1.0):
        expected = deltas(plain, empty, at)
        for signs in all_signs(groups, buckets):
            found = deltas(with_record(signs), empty, at)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("groups, buckets", [(1, 2), (2, 1), (3, 1)])
def test_the_event_states_no_less_and_hardly_more(groups, buckets):
    empty = without(groups, buckets)
    event = CountSketchEvent(groups, VARIANCE, buckets, 1)
    for at in (0.05, 0.2, 0.5):
        stated = delta([event], at)
        for signs in (*all_signs(groups, buckets),):
            exact = deltas(with_record(signs), empty, at).max()
            assert exact <= stated + 1e-12
            assert stated < 1.02 * exact + 1e-6


def test_two_repetitions_compose_as_stated():
    """Repetitions are independent: the law of the sum of their losses, listed."""
    signs = np.array([[1, -1], [-1, 1]])[:1]
    one, empty = with_record(signs).ravel(), without(1, 2).ravel()
    ratio = np.round(np.log(one / np.maximum(empty, 1e-300)), 9)
    _, place = np.unique(ratio, return_inverse=True)
    p, q = np.bincount(place, one), np.bincount(place, empty)
    event = CountSketchEvent(1, VARIANCE, 2, 2)
    for at in (0.1, 0.4, 0.8):
        both, neither = np.outer(p, p), np.outer(q, q)
        exact = deltas(both, neither, at).max()
        stated = delta([event], at)
        assert exact <= stated + 1e-9
        assert stated < 1.05 * exact + 1e-6


def test_other_records_with_other_signs_hide_more_and_never_less():
    groups, buckets = 2, 1
    mine = np.array([[1], [-1]])
    empty = without(groups, buckets)
    alone = [deltas(with_record(mine), empty, at) for at in (0.0, 0.2, 0.6)]
    for other in all_signs(groups, buckets):
        for twice in ((other,), (other, np.array([[1], [1]]))):
            here, there = with_record(mine, twice), without(groups, buckets, twice)
            for at, most in zip((0.0, 0.2, 0.6), alone, strict=True):
                assert (deltas(here, there, at) <= most + 1e-12).all()


def test_a_sign_that_depends_on_the_drawn_sign_would_cost_more():
    """What the proof needs: c may follow from bucket and values, and not from the record's sign.

    If it did, the sum of the signs would be public: here the counters of two groups would have the
    same sign for one drawn sign alone, and a mean other than 0.
    """
    one = with_record(np.ones((1, 1), int))
    # c = s: the record always adds s s = 1.
    known = shifted(1)
    empty = without(1, 1)
    assert deltas(known, empty, 0.2).max() > 1.5 * deltas(one, empty, 0.2).max()
