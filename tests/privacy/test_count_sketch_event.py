"""The count sketch's event: against enumeration, exact moments, simulation, and figures computed elsewhere."""

import functools
import itertools
import math

import numpy as np
import pytest
from builders import schema_of
from msgspec.structs import replace
from oracles import by_pld, half_integer_gaussian
from planning import plan_with
from scipy import fft, special
from scipy.stats import chisquare

from vertimrf.errors import PrivacyError
from vertimrf.privacy.accountant import by_renyi
from vertimrf.privacy.count_sketch import (
    _log_power,
    backward_renyi,
    excess,
    fast_length,
    forward_renyi,
    ratio_law,
)
from vertimrf.privacy.events import CountSketchEvent
from vertimrf.releases.count_sketches.encoding import CountSketchEncoder
from vertimrf.releases.count_sketches.parameters import CountSketches


@pytest.mark.parametrize(
    "event, at, low, high",
    [
        (CountSketchEvent(15, 22.5, 1508, 172), 1 / 45_222, 0.5436, 0.546),
        # The limit of many repetitions below, and a published figure rounded up above.
        (CountSketchEvent(16, 24.0, 1795, 145), 1 / 989_818, 0.5532, 0.5585),
        (CountSketchEvent(8, 12.0, 1400, 190), 1 / 21_574, 0.5628, 0.5673),
        (CountSketchEvent(15, 22.5, 150, 17), 1 / 45_222, 0.5417, 0.5640),
    ],
)
def test_epsilon_of_known_parameters(event, at, low, high):
    (cost,) = by_pld([event], at)
    assert low < cost < high
    # Rényi divergences come from moments, apart from the grid, and are looser.
    (renyi,) = by_renyi([event], at)
    assert cost < renyi < 1.3 * cost


@pytest.mark.parametrize(
    "groups, variance, buckets",
    [(15, 22.5, 1508), (2, 4.0, 16), (3, 9.0, 4), (16, 24.0, 2048)],
)
def test_the_law_has_the_exact_moments_and_never_smaller_ones(groups, variance, buckets):
    ratio, mass, lost = ratio_law(groups, variance, buckets, 1e-16)
    assert mass.sum() == pytest.approx(1, abs=1e-10)
    assert (mass * ratio).sum() == pytest.approx(1, abs=1e-10)
    assert lost < 1e-9
    variation = (mass * (ratio - 1) ** 2).sum() * buckets / excess(groups, variance)
    assert 1 <= variation < 1 + 2e-4
    for order in (2, 3, 5):
        exact = forward_renyi(groups, variance, buckets, np.array([float(order)]), 0.01)[0]
        assert (
            exact * (1 - 1e-6)
            < math.log((mass * ratio**order).sum()) / (order - 1)
            < exact * (1 + 4e-4)
        )


@pytest.mark.parametrize("buckets", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_far_out_the_law_is_never_below_sums_without_a_transform(buckets):
    """Sums of products of probabilities, none of them negative, keep all their digits."""
    groups, variance, reach = 3, 9.0, 8
    values = np.arange(-reach * 5, reach * 5 + 1) + 0.5
    mass = np.exp(-(values**2) / (2 * groups * variance))
    mass /= mass.sum()
    one = math.exp(-groups / (2 * variance)) * np.cosh(values / variance)
    half_law, half = mass, one
    for _ in range(int(math.log2(buckets)) - 1):
        half_law, half = np.outer(half_law, half_law).ravel(), np.add.outer(half, half).ravel()
    sums, law = np.add.outer(half, half).ravel() / buckets, np.outer(half_law, half_law).ravel()
    ratio, probabilities, lost = ratio_law(groups, variance, buckets)
    for at in np.linspace(1, 30, 6):
        exact = law @ np.maximum(sums - at, 0)
        ours = probabilities @ np.maximum(ratio - at, 0)
        assert exact * (1 - 1e-9) <= ours + lost
        if exact > 1e-20:
            assert ours < exact * 1.15 + 1e-12


def test_lengths_of_transforms_are_those_of_scipy():
    for least in (*range(1, 2000), 12_345, 1 << 24):
        assert fast_length(least, 30) == fft.next_fast_len(least, real=True)
        assert fast_length(least, 2310) == fft.next_fast_len(least)


def test_moments_by_enumeration_of_all_noises():
    """Two groups, two buckets: every combination of four noises."""
    variance = 4.0
    values, p = half_integer_gaussian(variance)
    sums = np.arange(2 * values[0], 2 * values[-1] + 1)
    law = np.convolve(p, p)
    ratio = math.exp(-2 / (2 * variance)) * np.cosh(sums / variance)
    both = 0.5 * (ratio[:, None] + ratio)
    for order in (2.0, 3.0, 4.0):
        enumerated = math.log((law[:, None] * law * both**order).sum()) / (order - 1)
        assert forward_renyi(2, variance, 2, np.array([order]), 0.01)[0] == pytest.approx(
            enumerated, rel=1e-9
        )
        backwards = math.log((law[:, None] * law * both ** (1 - order)).sum()) / (order - 1)
        bound = backward_renyi(2, variance, 2, np.array([order]), 0.01)[0]
        assert backwards <= bound < backwards * (1 + 3e-3)
    # In between, never below.
    between = math.log((law[:, None] * law * both**2.5).sum()) / 1.5
    assert forward_renyi(2, variance, 2, np.array([2.5]), 0.01)[0] >= between


@pytest.mark.parametrize("groups", [1, 4, 9])
def test_divergences_at_large_orders_are_not_below_those_of_the_law(groups):
    """One bucket: sums of the noise by enumeration. Where moments are not computed, the price is that of a known sign."""
    variance, orders = 4.0, np.array([1.1, 2.0, 8.0, 30.0, 60.0, 100.0, 400.0])
    sums = np.arange(-5000, 5001) + (groups % 2) / 2
    law = -(sums**2) / (2 * groups * variance)
    law -= special.logsumexp(law)
    ratio = np.logaddexp(sums / variance, -sums / variance) - math.log(2) - groups / (2 * variance)
    exact = special.logsumexp(law + orders[:, None] * ratio, axis=1) / (orders - 1)
    stated = forward_renyi(groups, variance, 1, orders, 10.0)
    assert (stated >= exact * (1 - 1e-9)).all()


@pytest.mark.parametrize(
    "groups, variance, buckets", [(15, 36.6, 1024), (16, 50.0, 8192), (8, 400.0, 64)]
)
def test_both_directions_follow_the_chi_square_at_small_orders_and_the_law_at_all(
    groups, variance, buckets
):
    """A repetition's divergences are about order / 2 times its chi-square; and the law, where it resolves them, is no less."""
    orders = np.array([1.5, 2.0, 4.0, 9.5, 20.0])
    square = excess(groups, variance) / buckets
    backwards = backward_renyi(groups, variance, buckets, orders, 0.01)
    forwards = forward_renyi(groups, variance, buckets, orders, 0.01)
    np.testing.assert_allclose(backwards, 0.5 * orders * square, rtol=0.03)
    assert (forwards >= 0.99 * 0.5 * orders * square).all()
    ratio, mass, lost = ratio_law(groups, variance, buckets)
    by_law = np.log([(mass * ratio ** (1 - order)).sum() for order in orders]) / (orders - 1)
    # What the law misplaces is told of it, and may count at the least ratio.
    np.testing.assert_allclose(backwards, by_law, rtol=3e-3, atol=10 * lost)


def test_a_small_budget_has_a_price_however_many_records_there_are():
    """Privacy-loss distributions resolve no delta below 1e-16 a number; moments up to order 2000 do."""
    schema = schema_of(one=(10,) * 8, two=(10,) * 8)
    for records, target in ((10**5, 0.05), (10**5, 0.2), (10**6, 0.1), (10**7, 0.3)):
        ledger = plan_with(schema, epsilon=target, expected_records=records, nonce="small").ledger()
        assert 0.99 * target < ledger.epsilon <= target


def test_powers_of_series_by_recurrence_are_those_by_squaring():
    logs = -0.3 * np.arange(12.0) ** 1.2
    plain = np.polynomial.polynomial.polypow(np.exp(logs), 40)[:12]
    np.testing.assert_allclose(_log_power(logs, 40), np.log(plain), rtol=1e-10)
    np.testing.assert_allclose(
        _log_power(logs, 5),
        np.log(np.polynomial.polynomial.polypow(np.exp(logs), 5)[:12]),
        rtol=1e-10,
    )


def shifts_of(plan, codes):
    """What one record may add to the numbers of a repetition, as the encoder adds it [shape=(ways, numbers)]."""
    encoder = CountSketchEncoder(plan, range(len(plan.sizes)), bytes(range(32)))
    encoder.update(np.array([7], np.uint64), np.array(codes, np.uint16)[:, None])
    counters = np.frombuffer(encoder.state(), "<i4", offset=24).reshape(plan.repetitions, -1)
    ways, times = np.unique(counters, axis=0, return_counts=True)
    # Every bucket and sign about as often.
    assert chisquare(times).pvalue > 1e-4
    return ways


@pytest.mark.parametrize(
    "sizes, contrasts, buckets, weights",
    [
        ((2, 2), (0,), 2, ()),
        ((2, 2), (0, 1), 2, ()),
        ((4, 2), (1,), 1, ()),
        ((4, 2), (), 2, ()),
        ((3, 3), (), 1, (3, 1)),
        ((3, 3), (), 1, (1, 5)),
        ((2, 3), (0,), 1, (3, 3)),
    ],
)
def test_contrasts_and_weights_are_priced_as_the_numbers_that_a_record_adds_to(
    sizes, contrasts, buckets, weights
):
    """P and Q of whole repetitions, point by point over all numbers that a record may touch, for every record that there is; a
    number of a group with a weight moves by it, and has so many times the noise."""
    variance = max(4.0, sum(weights))
    ways = 2 * buckets
    # A record is in one bucket in many repetitions; one bucket is no sketch's, but half of two are its.
    plan = CountSketches(1000, 2, variance, 4, sizes, contrasts, weights=weights)
    groups = len(sizes)
    event = replace(plan.event, buckets=buckets, repetitions=1)
    assert event.groups == (sum(weights) or groups)
    of_number = np.repeat(
        weights or [1] * len(sizes), [2 * plan.rows(group) for group in range(len(sizes))]
    )
    ratio, mass, lost = ratio_law(event.groups, variance, buckets, 1e-12)
    for codes in itertools.product(*map(range, sizes)):
        shifts = of_number * shifts_of(plan, codes)
        assert len(shifts) == 4
        shifts = shifts[[(s.reshape(-1, 2)[:, buckets:] == 0).all() for s in shifts]]
        assert len(shifts) == ways
        reached = np.flatnonzero(shifts.any(axis=0))
        assert len(reached) == groups * buckets
        laws = []
        for weight in of_number[reached]:
            values, p = half_integer_gaussian(weight * variance)
            near = np.abs(values) < 9 * math.sqrt(weight * variance)
            laws.append((values[near], p[near], weight * variance))
        law = functools.reduce(np.multiply.outer, [p for _, p, _ in laws])
        present = np.zeros(law.shape)
        for shift in shifts[:, reached]:
            moved = [
                np.exp((2 * s * values - s * s) / (2 * numbers))
                for s, (values, _, numbers) in zip(shift, laws, strict=True)
            ]
            present += functools.reduce(np.multiply.outer, moved) / ways
        assert (law * present).sum() == pytest.approx(1, abs=1e-9)
        for epsilon in (0.0, 0.1, 0.4, 0.9):
            added = (law * np.maximum(present - math.exp(epsilon), 0)).sum()
            removed = (law * np.maximum(1 - math.exp(epsilon) * present, 0)).sum()
            for exact, priced in (
                (added, mass @ np.maximum(ratio - math.exp(epsilon), 0)),
                (removed, mass @ np.maximum(1 - math.exp(epsilon) * ratio, 0)),
            ):
                assert exact <= priced + lost + 1e-12
                assert exact == pytest.approx(priced, rel=2e-3, abs=2e-5)


@pytest.mark.parametrize(
    "parameters, said",
    [
        ((65, 8.0, 64, 10), "variance must be a number from 8.125"),
        ((2, 3.9, 64, 10), "variance must be a number from 4"),
        ((2, math.nan, 64, 10), "variance must be a number"),
        ((2, math.inf, 64, 10), "variance must be a number"),
        ((2, 1e7, 64, 10), "variance must be a number"),
        ((0, 8.0, 64, 10), "groups must be a whole number"),
        ((2, 8.0, 0, 10), "buckets must be a whole number"),
        ((2, 8.0, 1 << 16, 10), "buckets must be a whole number"),
        ((2, 8.0, 64, 0), "repetitions must be a whole number"),
        ((2, 8.0, 64, 1.5), "repetitions must be a whole number"),
    ],
)
def test_parameters_whose_accounting_would_not_hold_are_refused(parameters, said):
    with pytest.raises(PrivacyError, match=said):
        CountSketchEvent(*parameters)


@pytest.mark.parametrize("one, other", [(8, 7), pytest.param(14, 1, marks=pytest.mark.slow)])
def test_who_goes_by_two_ids_shows_less(one, other):
    """The values of one id have a bucket and sign of their own, and those of the other: two events of fewer groups each."""
    apart = [CountSketchEvent(groups, 36.6, 1024, 318) for groups in (one, other)]
    together = [CountSketchEvent(one + other, 36.6, 1024, 318)]
    for composed in (by_pld, by_renyi):
        assert composed(apart, 1e-6)[-1] < composed(together, 1e-6)[-1]
