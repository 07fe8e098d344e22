"""What the proof for persons takes from normal noise, for noise on a lattice: every shift of few records, exactly, at the least noise.

A law dominates another in convex order if the means of all excesses over a threshold, and of all shortfalls, are at least as large.
Between the values that either law takes, these means are straight lines. So they are compared at all values.
"""

import itertools
import math

import numpy as np
import pytest

from vertimrf.privacy import person_sketch
from vertimrf.privacy.count_sketch import bucket_ratio
from vertimrf.privacy.person_sketch import person_law

REACH = 12.0
# Sums of a few thousand doubles below 10^3 have such errors; a mean below the second is compared with it.
ROUNDING, TINY = 1e-12, 1e-20


def ratio_of(shift, variance):
    """Ratios, and their probabilities, of noise that one sign times these whole numbers is added to."""
    line = np.arange(0.5, math.ceil(REACH * math.sqrt(variance)))
    line = np.concatenate([-line[::-1], line])
    law = np.exp(-(line**2) / (2 * variance))
    sums, mass = np.zeros(1), np.ones(1)
    for add in shift:
        every = np.add.outer(sums, add * line).ravel()
        # All are multiples of 1/2.
        sums, place = np.unique(np.rint(2 * every) / 2, return_inverse=True)
        mass = np.bincount(place.ravel(), np.multiply.outer(mass, law / law.sum()).ravel())
    return np.exp(-sum(a * a for a in shift) / (2 * variance)) * np.cosh(sums / variance), mass


def priced(groups, variance, weight=1.0):
    deviation, mass = bucket_ratio(groups, variance, weight, REACH)
    return 1 + deviation, mass


def product(*laws):
    ratio, mass = np.ones(1), np.ones(1)
    for other, its in laws:
        ratio = np.multiply.outer(ratio, other).ravel()
        mass = np.multiply.outer(mass, its).ravel()
    return ratio, mass


def beyond(law, thresholds, sign):
    """Mean excess of a law over thresholds, or with sign -1 its mean shortfall."""
    order = np.argsort(sign * law[0])
    ratio, mass = sign * law[0][order], law[1][order]
    above = np.append(np.cumsum((mass * ratio)[::-1])[::-1], 0.0)
    count = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    first = np.searchsorted(ratio, sign * thresholds, side="right")
    return above[first] - sign * thresholds * count[first]


def exceeds(law, bound):
    """By how much a law exceeds one that should dominate it, at most; beside rounding."""
    values = np.concatenate([law[0], bound[0]])
    thresholds = np.unique(values[:: max(len(values) // 200_000, 1)])
    out = 0.0
    for sign in (1, -1):
        one, other = beyond(law, thresholds, sign), beyond(bound, thresholds, sign)
        out = max(out, float((one - other * (1 + ROUNDING) - TINY).max()))
    return out if out > ROUNDING else 0.0


def parts_of(total):
    """Sets of whole numbers above 0 with a sum, and the empty set: what records of one bucket add to the values of a group."""
    every = (
        itertools.combinations_with_replacement(range(1, total + 1), count)
        for count in range(1, total + 1)
    )
    return [(), *(part for parts in every for part in parts if sum(part) == total)]


@pytest.mark.parametrize("groups, records", [(1, 2), (1, 4), (2, 2), (2, 3), (3, 2)])
def test_a_shorter_shift_is_dominated_by_that_of_equal_records(groups, records):
    """Step 3, for all records that share a bucket, and for as many of them as the plan's least noise allows."""
    variance = max(4.0, groups * records)
    bound = priced(groups, variance, records)
    assert exceeds(ratio_of([records] * groups, variance), bound) == 0
    for one in itertools.combinations_with_replacement(parts_of(records), groups):
        shift = [abs(add) for part in one for add in part]
        assert exceeds(ratio_of(shift, variance), bound) == 0, shift
    # And the comparison sees one that is longer by little.
    assert exceeds(ratio_of([records] * groups + [1], variance), bound) > 1e-4


@pytest.mark.parametrize("filled, groups", [((1, 3), 1), ((2, 2), 2), ((2, 3), 1)])
def test_records_in_several_buckets_are_dominated_by_the_longest_shift(filled, groups):
    """Step 4: all that a person's records do under the largest squared length of as many buckets."""
    records = sum(filled)
    variance, e = max(4.0, groups * records), records - len(filled)
    bound = priced(groups, variance, math.sqrt(person_sketch._widest(e, records)))
    assert exceeds(product(*(priced(groups, variance, m) for m in filled)), bound) == 0


@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)])
def test_lengths_of_two_parties_merge_into_a_longer_one(lengths):
    variance = max(4.0, 2.0 * sum(lengths))
    apart = product(*(priced(length, variance) for length in lengths))
    assert exceeds(apart, priced(sum(lengths), variance)) == 0


def test_of_three_parties_the_lattice_shows_without_what_is_subtracted_from_the_noise():
    """Any two of three parties have one record in common, and each has two. Priced are two records of all."""
    variance, lattice = 6.0, person_sketch.LATTICE
    apart = product(*[priced(2, variance)] * 3)
    assert exceeds(apart, product(*[priced(3, variance)] * 2)) > 1e-6
    assert exceeds(apart, product(*[priced(3, variance - lattice)] * 2)) == 0


def test_three_parties_pay_for_the_lattice_and_two_do_not(monkeypatch):
    """A ratio's variance is that of the noise that is priced: cosh(groups / kappa)^records - 1 over the blocks."""

    def variance_of(parties, variance=24.0, groups=4, buckets=1024):
        ratio, mass, _ = person_law.__wrapped__(groups, variance, buckets, 2, 1e-12, parties)
        return mass @ (ratio - 1) ** 2

    paid = [variance_of(parties) for parties in (2, 3)]
    monkeypatch.setattr(person_sketch, "LATTICE", 0.0)
    free = [variance_of(parties) for parties in (2, 3)]
    assert paid[0] == free[0]
    assert paid[1] / free[1] == pytest.approx((24 / 23.75) ** 2, rel=2e-3)
