"""Events and their composition: against closed forms, enumeration, and dp-accounting."""

import decimal
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from builders import event_from_json
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from oracles import by_pld, enumerated_sketches
from scipy import stats

from vertimrf.errors import PrivacyError
from vertimrf.privacy import accountant
from vertimrf.privacy.accountant import by_renyi, calibrate, cumulative, delta, epsilon
from vertimrf.privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    ThresholdEvent,
)
from vertimrf.privacy.losses import LossGrid

DELTA = 1 / 21_574
ONE_OF_EACH = [
    GaussianEvent(30.0, count=5),
    SketchEvent(6326, 9, 20, 4096),
    GeometricEvent(40.0, 2, 3),
    GRREvent(0.05, (2, 5, 9)),
]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def gaussian_delta(epsilon, mu):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )


def hockey_stick(p, q, at):
    """max over sets of P(S) - e^at Q(S), for each ``at``."""
    return np.maximum(p[None] - np.exp(at)[:, None] * q[None], 0.0).sum(axis=1)


def dp_accounting_pld(p, q, step, times):
    """The pair (P, Q) and its reverse as dp-accounting's pessimistic distributions, composed with themselves."""
    both = []
    for one, other in ((p, q), (q, p)):
        loss = np.log(one / other)
        at = np.arange(math.floor(loss.min() / step) - 1, math.ceil(loss.max() / step) + 2)
        both.append(
            pld_pmf.create_pmf_pessimistic_connect_dots(
                step,
                at.astype(int),
                hockey_stick(one, other, at * step),
            )
        )
    return privacy_loss_distribution.PrivacyLossDistribution(*both).self_compose(times)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("gamma", [1.0, 0.5])
@pytest.mark.parametrize("phantoms, floor, ceiling", [(50, 2, 9), (3, 0, 6), (200, 5, 12)])
def test_sketch_atoms_are_those_of_an_enumeration(d, gamma, phantoms, floor, ceiling):
    event = SketchEvent(phantoms, floor, ceiling, 1, gamma, d)
    absent, present = enumerated_sketches(event)
    log_p, log_ratio = event.atoms
    p, q = np.exp(log_p), np.exp(log_p + log_ratio)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert q.sum() == pytest.approx(1, abs=1e-12)
    at = np.linspace(-1, 8, 40)
    np.testing.assert_allclose(
        hockey_stick(p, q, at), hockey_stick(absent, present, at), atol=1e-12
    )
    np.testing.assert_allclose(
        hockey_stick(q, p, at), hockey_stick(present, absent, at), atol=1e-12
    )


@pytest.mark.parametrize("count", [1000, 131_072, pytest.param(1 << 22, marks=pytest.mark.slow)])
def test_composition_over_millions_is_never_below_the_exact_binomial(count):
    """A query with losses +a and -a only: its composed loss is binomial, so that every delta is known exactly."""
    loss = 0.3 / math.sqrt(count)
    event = GeometricEvent(1 / loss, count=count)
    k = np.arange(count + 1)
    total = (2 * k - count) * loss
    log_p = stats.binom.logpmf(k, count, 1 / (1 + math.exp(-loss)))
    for at in (1e-3, 1e-5, 1e-7):
        ours = by_pld([event], at)[0]
        above = total > ours
        exact = float((np.exp(log_p[above]) * -np.expm1(ours - total[above])).sum())
        # What the grid and the allowance for rounding overstate; nothing is understated.
        assert 0.85 * at < exact < at * (1 + 1e-9)


@pytest.mark.parametrize(
    "phantoms, floor, ceiling, d",
    [(60_000, 12, 23, 2), (60_000, 0, 40, 2), (22_604, 15, 40, 16), (10**9, 26, 60, 2)],
)
def test_rare_levels_keep_their_digits(phantoms, floor, ceiling, d):
    """Against 60-digit decimals: the high levels' tiny masses are differences of numbers close to 1."""
    event = SketchEvent(phantoms, floor, ceiling, 1, attributes_per_key=d)
    with decimal.localcontext(prec=60):
        level = [1 - decimal.Decimal(2) ** -k for k in range(floor, ceiling)] + [decimal.Decimal(1)]
        below = [decimal.Decimal(0), *level[:-1]]
        phantom = [c**phantoms for c in level]
        expected = []
        for i in range(len(level)):
            g = phantom[i] - (phantom[i - 1] if i else 0)
            for s in range(1, d + 1):
                p = math.comb(d, s) * g**s * ((1 - phantom[i]) ** (d - s) if s < d else 1)
                ratio = (
                    below[i] + (level[i] - below[i]) * (phantom[i] / g) ** s
                    if g
                    else decimal.Decimal(0)
                )
                if p > decimal.Decimal("1e-14") and ratio > 0:
                    expected.append((float(p.ln()), float(ratio.ln())))
    ours = np.stack(event.atoms, axis=1)
    ours = ours[np.lexsort((ours[:, 0], ours[:, 1]))]
    for log_p, log_ratio in expected:
        nearest = ours[np.abs(ours - [log_p, log_ratio]).sum(axis=1).argmin()]
        # A mass p is a difference of sums near 1 at the low levels: 1e-16 absolute, whose effect on the loss is as small.
        tolerance = 1e-9 + 1e-15 / math.exp(log_p)
        assert abs(nearest[0] - log_p) < tolerance
        assert abs(nearest[1] - log_ratio) < tolerance


def test_rare_levels_do_not_lengthen_the_grid():
    # A ceiling far above what any level reaches: the price is that of a ceiling where levels end, and memory stays small.
    for phantoms in (6326, 10**9):
        grids = SketchEvent(phantoms, 9, 200, 10**6).losses(1e-4)
        assert max(len(grid.mass) for grid in grids) < 3e6


@pytest.mark.parametrize(
    "events",
    [
        [GaussianEvent(50.0)],
        [GaussianEvent(50.0, count=40)],
        [GaussianEvent(3000.0, count=4096)],
        [GaussianEvent(9.0, count=7)],
        # Wide ones are summed in blocks; narrow ones beside them do not set the grid.
        *([GaussianEvent(sigma, round(sigma / 40), 100)] for sigma in (5e4, 1e5, 1e7)),
        [GaussianEvent(6e5, 100_000, 5), GaussianEvent(2e9, 100_000, 7)],
    ],
)
@pytest.mark.parametrize("at", [1e-3, 1e-6, 1e-9])
def test_gaussians_cost_what_one_gaussian_mechanism_does(events, at):
    """Many Gaussian releases are one (mu = root of the sum of squares); the accountant may only be above its exact value."""
    mu = math.sqrt(2 * sum(event.rho for event in events))
    ours = by_pld(events, at)[-1]
    if ours == 0:
        assert gaussian_delta(0.0, mu) <= at
        return
    # Whole-number noise differs from real noise of the same sigma by about 1 / (12 sigma^2).
    discrete = 1 / min(event.sigma for event in events) ** 2
    assert at * (1 - 3e-2 - discrete) <= gaussian_delta(ours, mu) <= at * (1 + 1e-6 + discrete)


def test_geometric_noise_is_pure_privacy_exactly():
    event = GeometricEvent(10.0, 3)
    # One query: pure epsilon sensitivity / scale, on two points for sensitivity 1.
    assert by_pld([event], 1e-9)[0] == pytest.approx(0.3, rel=0.02)
    assert len(GeometricEvent(10.0).atoms[0]) == 2
    x = np.arange(-400, 401)
    p, q = np.exp(-np.abs(x) / 10.0), np.exp(-np.abs(x - 3) / 10.0)
    p, q = p / p.sum(), q / q.sum()
    theirs = dp_accounting_pld(p, q, event.spread / 50, 50)
    assert by_pld([GeometricEvent(10.0, 3, 50)], 1e-5)[0] == pytest.approx(
        theirs.get_epsilon_for_delta(1e-5), rel=5e-3
    )


def test_randomised_response_of_a_row_is_the_product_of_its_attributes():
    sizes, local = (2, 3, 7, 4, 1), 0.4
    event = GRREvent(local, sizes)
    theirs = None
    for u in sizes[:-1]:
        q = 1 / (math.exp(local) + u - 1)
        p = np.array([math.exp(local) * q, q, *[q] * (u - 2)])
        one = dp_accounting_pld(p, p[[1, 0, *range(2, u)]], 1e-3, 1)
        theirs = one if theirs is None else theirs.compose(one)
    # All four changing attributes at once: pure epsilon 4 * 0.4, twice the half that Theorem 3 states.
    assert by_pld([event], 1e-12)[0] == pytest.approx(1.6, rel=0.02)
    assert by_pld([event], 1e-2)[0] == pytest.approx(theirs.get_epsilon_for_delta(1e-2), rel=0.02)
    # Many attributes: the exact value beats the sum, and Theorem 3's second bound as well.
    many = GRREvent(0.1, (4,) * 400)
    exact = epsilon([many], 1e-5).epsilon
    assert exact < min(400 * 0.1, 2 * 0.1 * math.sqrt(2 * 400 * math.log(1e5)))


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda e: type(e).__name__)
def test_grids_are_never_optimistic_and_finer_ones_are_tighter(event):
    at = np.linspace(0, 4 * event.spread, 30)

    def profile(step, direction):
        grid = event.losses(step)[direction]
        losses = (np.arange(len(grid.mass)) + grid.lowest) * step
        return (
            np.array([(grid.mass * np.maximum(-np.expm1(a - losses), 0)).sum() for a in at])
            + 1
            - grid.mass.sum()
        )

    for direction in (0, 1):
        fine, coarse = profile(event.spread / 64, direction), profile(event.spread / 8, direction)
        assert (coarse >= fine - 1e-12).all()


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda e: type(e).__name__)
def test_renyi_and_distributions_tell_one_story(event):
    exact, bound = by_pld([event], 1e-6)[0], by_renyi([event], 1e-6)[0]
    assert 0 < exact <= bound * 1.01
    assert 0.999e-6 < delta([event], exact) <= 1e-6 * (1 + 1e-5)
    assert delta([event], exact * 0.99) > delta([event], exact)
    # rho is what the Rényi divergence of order 2 is about twice of.
    assert event.renyi(np.array([2.0]))[0] == pytest.approx(2 * event.rho, rel=0.2)


def test_more_events_cost_more_in_any_order():
    running = [spent.epsilon for spent in cumulative(ONE_OF_EACH, 1e-6)]
    assert running == sorted(running)
    assert epsilon(ONE_OF_EACH, 1e-8).epsilon > running[-1]
    # The order of events does not matter, nor whether equal ones stand together.
    assert epsilon(ONE_OF_EACH[::-1], 1e-6).epsilon == pytest.approx(running[-1], rel=1e-6)
    apart = epsilon([GaussianEvent(30.0, count=2), GaussianEvent(30.0, count=3)], 1e-6).epsilon
    assert apart == pytest.approx(epsilon([GaussianEvent(30.0, count=5)], 1e-6).epsilon, rel=1e-6)


@pytest.mark.parametrize("d", [16, 64, 200])
def test_huge_losses_are_reported_as_large_numbers(d):
    spent = epsilon([SketchEvent(5651, 13, 40, 2000, attributes_per_key=d)], DELTA)
    assert 100 < spent.epsilon < math.inf


def test_huge_losses_beside_tiny_ones_stay_within_memory():
    events = [SketchEvent(5651, 13, 40, 2000, attributes_per_key=16), GaussianEvent(1e5)]
    assert 141 < epsilon(events, DELTA).epsilon < 160


@pytest.mark.parametrize(
    "event, at",
    [
        (SketchEvent(6326, 9, 20, 131_072), 1e-20),
        (GaussianEvent(40.0, count=99), 1e-24),
        (CountSketchEvent(53, 177.4, 4096, 976), 1e-14),
        (GeometricEvent(40.0, 2, 500), 1e-60),
    ],
)
def test_deltas_far_below_double_precision_are_told_by_distributions(event, at):
    spent = epsilon([event], at)
    assert spent.method == "pld"
    assert 0.8 * by_renyi([event], at)[-1] < spent.epsilon < by_renyi([event], at)[-1]
    assert 0.99 * at < delta([event], spent.epsilon) <= at * (1 + 1e-3)


def test_a_delta_below_what_counts_as_an_infinite_loss_falls_back_to_renyi():
    events = [CountSketchEvent(53, 177.4, 4096, 976)]
    spent = epsilon(events, 1e-30)
    assert by_pld(events, 1e-30)[-1] == math.inf
    assert (spent.epsilon, spent.method) == (by_renyi(events, 1e-30)[-1], "renyi")


@pytest.mark.parametrize("target, at", [(0.01, 1e-6), (0.5, DELTA), (3.0, 1e-9), (20.0, 1e-3)])
def test_calibration_meets_the_target_from_below(target, at):
    def events_at(rho):
        half = rho / 2
        return [GaussianEvent(math.sqrt(0.5 / half)), GeometricEvent(math.sqrt(10 / half), 1, 10)]

    spent = epsilon(events_at(calibrate(events_at, target, at)), at).epsilon
    assert target * (1 - 1e-3) <= spent <= target


def test_calibration_of_phantoms_comes_as_near_as_whole_numbers_allow():
    def events_at(rho):
        return [SketchEvent(max(round(math.sqrt(4096 * 7 / (2 * rho))), 1), 4, 20, 4096)]

    event = events_at(calibrate(events_at, 1.0, 1e-5))[0]
    assert epsilon([event], 1e-5).epsilon <= 1.0
    assert epsilon([SketchEvent(event.phantoms - 2, 4, 20, 4096)], 1e-5).epsilon > 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianEvent(0.0),
        lambda: GaussianEvent(float("nan")),
        lambda: GaussianEvent(1.0, 0),
        lambda: GaussianEvent(1.0, 1, 0),
        lambda: GeometricEvent(-1.0),
        lambda: GeometricEvent(1.0, 1.5),
        lambda: GRREvent(0.0, (2,)),
        lambda: GRREvent(1.0, ()),
        lambda: GRREvent(1.0, (1, 1)),
        lambda: SketchEvent(0, 9, 20, 100),
        lambda: SketchEvent(10, 9, 20, 0),
        lambda: SketchEvent(10, 20, 9, 100),
        lambda: SketchEvent(10, 9, 9, 100),
        lambda: SketchEvent(10, -1, 9, 100),
        lambda: SketchEvent(10, 1, 9, 100, gamma=0.0),
        lambda: SketchEvent(10, 1, 9, 100, attributes_per_key=0),
        lambda: SketchEvent(float("nan"), 1, 9, 100),
        lambda: SketchEvent(1000.0, 1, 9, 100),
        lambda: SketchEvent(1, 0, 1, 1),
        lambda: SketchEvent(10, 1, 10**7, 100),
        lambda: SketchEvent(10, 1, 9, 100, attributes_per_key=10**9),
        lambda: GaussianEvent(1e-200),
        lambda: GaussianEvent(1.0, True),
        lambda: GaussianEvent(1.0, 1, 10**30),
        lambda: GeometricEvent(1e300, 10**12),
        lambda: GRREvent(1e-300, (2,)),
        lambda: event_from_json({"kind": "gaussian", "sigma": "1"}),
        lambda: event_from_json(
            {"kind": "sketches", "phantoms": 5.0, "floor": 1, "ceiling": 9, "keys": 3}
        ),
        lambda: event_from_json({"kind": "magic"}),
        lambda: event_from_json({"kind": "gaussian", "sigmas": 2}),
        lambda: event_from_json(None),
        lambda: epsilon([], 1e-5),
        lambda: epsilon(ONE_OF_EACH, 0.0),
        lambda: epsilon(ONE_OF_EACH, 1.0),
        lambda: delta(ONE_OF_EACH, -1.0),
        lambda: delta(ONE_OF_EACH, float("nan")),
        lambda: calibrate(lambda rho: [GaussianEvent(1 / math.sqrt(rho))], 0.0, 1e-5),
        lambda: calibrate(lambda rho: [GaussianEvent(1 / math.sqrt(rho))], math.inf, 1e-5),
        lambda: calibrate(lambda rho: [GaussianEvent(1 / math.sqrt(rho))], 1.0, 2.0),
        lambda: calibrate(
            lambda rho: [GaussianEvent(1.0), GaussianEvent(1 / math.sqrt(rho))], 0.5, 1e-5
        ),
    ],
)
def test_bad_input_is_one_sentence(make):
    with pytest.raises(PrivacyError) as caught:
        make()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")


def test_frequencies_left_out_do_not_show(monkeypatch):
    """All frequencies against the few that are summed."""
    marginals = [
        GaussianEvent(34.0),
        GaussianEvent(180.0, count=37),
        GaussianEvent(6000.0, 33, 600),
    ]
    events = [*marginals, SketchEvent(9000, 9, 20, 200_000)]
    sums = by_pld(events, 1e-5), epsilon(events, 1e-5).epsilon
    monkeypatch.setattr("vertimrf.privacy.accountant.NEGLIGIBLE", 0.0)
    np.testing.assert_allclose(sums[0], by_pld(events, 1e-5), rtol=1e-5)
    assert sums[1] == pytest.approx(epsilon(events, 1e-5).epsilon, rel=1e-5)


def test_past_the_largest_loss_delta_is_next_to_nothing():
    """A mechanism whose loss is bounded has no delta above that bound but the allowance for rounding."""
    for events in (
        [GeometricEvent(10.0)],
        [GeometricEvent(10.0, 1, 3), SketchEvent(100, 0, 12, 50)],
    ):
        most = sum(event.count * 0.1 for event in events if isinstance(event, GeometricEvent))
        most += sum(event.count * 0.05 for event in events if isinstance(event, SketchEvent)) * 100
        assert 0.0 <= delta(events, most + 50.0) < 1e-10
    assert delta([GeometricEvent(10.0)], 0.2) < 1e-10


# Wide events, and narrow ones beside them that do not set the grid: one, many small ones, many repetitions, every kind.
MIXTURES = [
    ([GaussianEvent(3.0)], [GaussianEvent(1e4)]),
    ([GaussianEvent(50.0, count=40)], [GaussianEvent(5e6, count=500)]),
    ([GaussianEvent(40.0, count=4)], [GaussianEvent(3e5, count=1 + i) for i in range(5)]),
    ([SketchEvent(800, 6, 16, 2000)], [GaussianEvent(1e5)]),
    (
        [GeometricEvent(8.0, 2, 2), GaussianEvent(9.0)],
        [SketchEvent(10**9, 2, 40, 10), GeometricEvent(1e5, 2)],
    ),
    ([GRREvent(0.5, (2, 5))], [GRREvent(1e-4, (3, 7)), GaussianEvent(1e6, count=100)]),
    (
        [CountSketchEvent(3, 100.0, 64, 20)],
        [CountSketchEvent(3, 1e5, 32_768, 1), GaussianEvent(1e6)],
    ),
]


@pytest.mark.parametrize(
    "wide, narrow",
    [
        pytest.param(*m, marks=pytest.mark.slow if i in (2, 6) else ())
        for i, m in enumerate(MIXTURES)
    ],
)
def test_grids_overstate_epsilon_and_by_little(wide, narrow, monkeypatch):
    events = wide + narrow
    coarse, alone = by_pld(events, 1e-6)[-1], by_pld(wide, 1e-6)[-1]
    with monkeypatch.context() as patched:
        patched.setattr(accountant, "STEPS_PER_SPREAD", 500.0)
        patched.setattr(accountant, "STEPS_PER_TOTAL", 5000.0)
        fine = by_pld(events, 1e-6)[-1]
    assert alone * (1 - 1e-3) <= coarse <= alone * (1 + 2e-3)
    assert fine * (1 - 1e-6) <= coarse <= fine * (1 + 2e-3)
    assert coarse <= by_renyi(events, 1e-6)[-1] * (1 + 2e-3)


def test_narrow_events_are_never_below_dp_accountings_lower_bound():
    """Losses of both are whole multiples of its step: what it calls optimistic is exact, but for the tails."""

    def lower(scale, count):
        return privacy_loss_distribution.from_discrete_laplace_mechanism(
            1 / scale, 2, pessimistic_estimate=False, value_discretization_interval=1e-4
        ).self_compose(count)

    below = lower(8.0, 12).compose(lower(20_000.0, 3)).get_epsilon_for_delta(1e-6)
    ours = by_pld([GeometricEvent(8.0, 2, 12), GeometricEvent(20_000.0, 2, 3)], 1e-6)[-1]
    assert below * (1 - 1e-9) <= ours <= below * (1 + 2e-3)


def test_what_rounding_may_hide_is_added():
    """Delta stays an upper bound if every entry of the spectrum is off by the error that it states, all in one direction."""
    for events in (
        [GaussianEvent(40.0, count=64)],
        [GaussianEvent(4000.0, count=4096), GaussianEvent(300.0, count=30)],
    ):
        mu = math.sqrt(2 * sum(event.rho for event in events))
        loss = accountant._compose(accountant._losses(events, 1e-60)[0], 1e-2)
        for at in np.linspace(0, 8, 20):
            epsilon = mu * at + mu**2 / 2
            z = loss.tilt + 1j * loss.frequencies
            worst = (np.exp(-1j * loss.frequencies * epsilon) / (z * (z + 1))).conj()
            off = loss.spectrum - 0.01 * worst / abs(worst)
            wrong = replace(loss, spectrum=off, error=0.01)
            exact = gaussian_delta(epsilon, mu)
            assert exact <= wrong.delta(epsilon)
        # The bound is not loose: where rounding is small, little is added.
        near = mu * 3 + mu**2 / 2
        assert loss.delta(near) == pytest.approx(gaussian_delta(near, mu), rel=5e-2)


def test_what_is_cut_off_counts_as_infinite():
    grid = LossGrid(0, np.array([1 - 1e-13, *[0.0] * 998, 1e-13]))
    loss = accountant.Loss.of(GRREvent(50.0, (2,)), grid, 0.05, 1e-9)
    assert loss.mass.size < 1000
    assert loss.lost == pytest.approx(1e-13, abs=0)
    assert float(loss.mass.sum()) == pytest.approx(1 - 1e-13)


def test_lost_masses_count_as_often_as_an_event_is_repeated():
    """Beyond every loss there is what may be infinite: of an exposed value its probability, of count sketches the sampler's."""
    exposed = ThresholdEvent(4.0, 60)
    assert delta([exposed], 100.0) == pytest.approx(exposed.exposed, rel=1e-3)
    sketches = [CountSketchEvent(3, 9.0, 64, repetitions) for repetitions in (1, 1000)]
    lost = [delta([event], 500.0) for event in sketches]
    assert lost[0] >= sketches[0].law()[2] > 0
    assert lost[1] == pytest.approx(1000 * lost[0], rel=0.1)
    # And with what a person's records may hide.
    person = CountSketchEvent(3, 60.0, 64, 10, 2)
    assert delta([person], 500.0) >= 10 * person.law()[2] > 0


def test_what_reveals_nothing_costs_nothing():
    """Every level beyond the floor underflows: no loss is left at all, and no grid follows from it."""
    nothing = SketchEvent(1000, 1000, 1001, 10, gamma=1e6)
    assert nothing.spread == 0
    assert epsilon([nothing], 1e-6).epsilon == 0
    alone, both = (epsilon([*more, GaussianEvent(3.0)], 1e-6).epsilon for more in ([], [nothing]))
    assert both == pytest.approx(alone, rel=1e-4)


def test_losses_are_composed_once_only_if_all_are_the_same_in_both_directions():
    symmetric = [event for event in ONE_OF_EACH if not isinstance(event, SketchEvent)]
    assert len(accountant._losses(symmetric, DELTA)) == 1
    added, removed = accountant._losses(ONE_OF_EACH, DELTA)
    assert not np.array_equal(added[1].mass, removed[1].mass)


def test_the_worse_of_adding_and_removing_a_record_counts(monkeypatch):
    """Adding is the worse of a count sketch's; a mechanism whose directions change places costs the same."""
    event = CountSketchEvent(groups=2, variance=4.0, buckets=16, repetitions=100)
    spent, losses = epsilon([event], 1e-5), CountSketchEvent.losses
    monkeypatch.setattr(
        CountSketchEvent, "losses", lambda self, step, cut: losses(self, step, cut)[::-1]
    )
    assert epsilon([event], 1e-5) == spent
