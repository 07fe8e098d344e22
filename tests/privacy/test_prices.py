"""What a plan's events cost, each computed here a second time from what the mechanisms do: in high precision, or by hand."""

import itertools
import math
from functools import partial

import mpmath
import numpy as np
import pytest
from builders import schema_of
from msgspec.structs import replace
from oracles import enumerated_sketches
from planning import plan_with

from vertimrf.errors import PrivacyError
from vertimrf.plan.local_plan import SCORE_GRID, SCORE_SENSITIVITY
from vertimrf.privacy.accountant import ORDERS, by_renyi, delta, epsilon
from vertimrf.privacy.count_sketch import backward_renyi_of
from vertimrf.privacy.events import (
    CountSketchEvent,
    GaussianEvent,
    GeometricEvent,
    GRREvent,
    SketchEvent,
    under_replacement,
)
from vertimrf.releases.scheduled_pairs.planning import CEILING_ABOVE_PHANTOMS, FLOOR_BELOW_PHANTOMS

# Three parties: two that have to choose a local graph, and one of a single attribute.
SIZES = {"one": (6, 5, 4, 7), "two": (5, 7, 6, 5, 3), "three": (4,)}


plan_of = partial(
    plan_with,
    schema_of(**SIZES),
    delta=1e-5,
    expected_records=3000,
    nonce="prices",
    keys=1 << 10,
    tau=3000,
)


@pytest.fixture(scope="module")
def plan():
    return plan_of(encoder="scheduled-pairs")


def hockey_stick(pairs, at):
    """The larger of both directions' sums of max(p - e^at q, 0)."""
    factor = mpmath.exp(at)
    return max(
        sum(max(p - factor * q, 0) for p, q in pairs), sum(max(q - factor * p, 0) for p, q in pairs)
    )


def discrete_gaussian(sigma, sensitivity):
    """Probabilities of every answer without and with a record, to 40 digits."""
    reach = 16 * math.ceil(sigma) + sensitivity
    mass = {
        x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
        for x in range(-2 * reach, 2 * reach + 1)
    }
    total = sum(mass.values())
    return [(mass[x] / total, mass[x - sensitivity] / total) for x in range(-reach, reach + 1)]


@pytest.mark.parametrize(
    "sigma, sensitivity, count, at",
    [
        (2.0, 1, 1, 0.0),
        (2.0, 1, 1, 0.5),
        (2.0, 3, 1, 1.0),
        (0.7, 1, 1, 1.5),
        (40.0, 33, 1, 0.8),
        (2.0, 1, 2, 0.5),
        (0.7, 2, 2, 3.0),
    ],
)
def test_gaussian_queries_cost_what_their_law_says(sigma, sensitivity, count, at):
    with mpmath.workdps(40):
        pairs = one = [
            (p, q)
            for p, q in discrete_gaussian(sigma, sensitivity)
            if p + q > mpmath.mpf(10) ** -18
        ]
        for _ in range(count - 1):
            pairs = [(p * r, q * s) for p, q in pairs for r, s in one]
        exact = float(hockey_stick(pairs, at))
    assert exact <= delta([GaussianEvent(sigma, sensitivity, count)], at) <= exact * 1.01 + 1e-9


def two_sketches(event):
    """Probabilities of every pair of levels of the two sketches that a record touches under a key, without it and with it."""
    return [*zip(*(map(mpmath.mpf, law) for law in enumerated_sketches(event)), strict=True)]


@pytest.mark.parametrize(
    "event, pairs",
    [
        (SketchEvent(50, 2, 9, 1), two_sketches),
        (SketchEvent(3, 0, 6, 1), two_sketches),
        (GaussianEvent(2.0, 3), lambda event: discrete_gaussian(event.sigma, event.sensitivity)),
    ],
    ids=["50 phantoms", "3 phantoms", "a Gaussian"],
)
def test_each_direction_has_a_price_of_its_own(event, pairs):
    """The total takes the larger one; here a record added and a record removed are both held to their laws."""
    step = event.spread / 64
    with mpmath.workdps(40):
        pairs = pairs(event)
        added = [(q, p) for p, q in pairs]
        for direction, grid in zip((added, pairs), event.losses(step), strict=True):
            losses = (np.arange(len(grid.mass)) + grid.lowest) * step
            for at in (-1.0, 0.0, 0.05, 0.5, 2.0):
                exact = float(sum(max(p - mpmath.exp(at) * q, 0) for p, q in direction))
                ours = (
                    float((grid.mass * np.maximum(-np.expm1(at - losses), 0.0)).sum())
                    + 1
                    - float(grid.mass.sum())
                )
                assert exact * (1 - 1e-9) - 1e-12 <= ours <= exact * 1.01 + 1e-4


@pytest.mark.parametrize("blocks", [2, 6, 40])
@pytest.mark.parametrize("sigma, sensitivity", [(2.0, 1), (5.0, 3), (5.0, 20), (12.0, 1)])
def test_noise_that_is_taken_in_blocks_is_never_priced_below_its_law(
    sigma, sensitivity, blocks, monkeypatch
):
    """Wide noise is computed in blocks, which are coarse here, so that an optimistic one would show.

    One step of the grid is so fine that blocks alone make the difference. Deltas of 1e-9 and more are compared.
    """
    monkeypatch.setattr("vertimrf.privacy.events.MAX_NOISE_POINTS", blocks)
    event = GaussianEvent(sigma, sensitivity)
    step = event.spread / 4096
    grid, _ = event.losses(step)
    losses = (np.arange(len(grid.mass)) + grid.lowest) * step
    reach = math.ceil(14 * sigma) + sensitivity
    noise = np.arange(-reach, reach + 1)
    law = np.exp(-(noise**2) / (2 * sigma**2))
    law /= law.sum()
    loss = sensitivity * (2 * noise + sensitivity) / (2 * sigma**2)
    for at in np.linspace(-2, 6, 33) * event.spread:
        exact = float((law * np.maximum(-np.expm1(at - loss), 0.0)).sum())
        ours = float((grid.mass * np.maximum(-np.expm1(at - losses), 0.0)).sum()) + grid.lost
        assert exact < 1e-9 or exact * (1 - 1e-12) <= ours


@pytest.mark.parametrize(
    "event",
    [
        SketchEvent(50, 2, 9, 1),
        SketchEvent(3, 0, 12, 1, attributes_per_key=5),
        CountSketchEvent(3, 4.0, 2, 1),
        CountSketchEvent(1, 9.0, 64, 1, 2),
        GaussianEvent(2.0, 3),
    ],
    ids=lambda event: type(event).__name__,
)
def test_rare_losses_that_are_left_out_count_as_infinite(event):
    """However much may be left out: a hundredth is far more than the accountant ever asks for."""
    step = event.spread / 64
    for exact, cut in zip(event.losses(step), event.losses(step, 1e-2), strict=True):
        for at in (-2.0, 0.0, 0.5, 2.0, 5.0):
            whole, rest = (
                grid.mass
                @ np.maximum(-np.expm1(at - step * (np.arange(len(grid.mass)) + grid.lowest)), 0.0)
                + grid.lost
                for grid in (exact, cut)
            )
            assert whole <= rest + 1e-12


def test_losses_beyond_the_longest_grid_count_as_infinite(monkeypatch):
    monkeypatch.setattr("vertimrf.privacy.losses.MAX_POINTS", 100)
    event = GaussianEvent(1.0)
    step = 0.01
    grid, _ = event.losses(step)
    assert len(grid.mass) <= 102
    assert grid.mass.sum() + grid.lost == pytest.approx(1)
    assert grid.lost > 0.5


def test_backward_divergences_count_what_is_left_out_as_the_largest_loss():
    """The adversary's worst case of a lost tenth: the least ratio that noise allows has all of it."""
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    ratio, mass = np.array([0.9, 1.0, 1.2]), np.array([0.2, 0.5, 0.2])
    least = math.exp(-3 / (2 * 4.0))
    moments = [mass @ ratio ** (1 - order) + 0.1 * least ** (1 - order) for order in orders]
    stated = backward_renyi_of((ratio, mass, 0.1), 3, 4.0, orders)
    np.testing.assert_allclose(stated, np.log(moments) / (orders - 1))


@pytest.mark.parametrize("sensitivity, count", [(1, 1), (3, 1), (1, 3), (2, 2)])
def test_pure_epsilon_is_the_largest_loss_of_all_queries_together(sensitivity, count):
    """What was spent beforehand adds by it, so that no outcome of the queries may tell more."""
    event = GeometricEvent(2.5, sensitivity, count)
    one = [abs(answer - sensitivity) - abs(answer) for answer in range(-9, 10)]
    largest = max(sum(losses) for losses in itertools.product(one, repeat=count))
    assert event.pure_epsilon == pytest.approx(largest / 2.5)


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_renyi_divergences_are_those_of_the_laws(order):
    """The accountant takes the smaller of two totals, so neither may be below its law."""

    def divergence(pairs):
        both = (
            sum(p * (p / q) ** (order - 1) for p, q in way if p)
            for way in (pairs, [(q, p) for p, q in pairs])
        )
        return float(max(mpmath.log(total) / (order - 1) for total in both))

    with mpmath.workdps(40):
        sketches, gaussian = (
            divergence(two_sketches(SketchEvent(50, 2, 9, 1))),
            divergence(discrete_gaussian(2.0, 3)),
        )
    assert SketchEvent(50, 2, 9, 7).renyi(np.array([order]))[0] == pytest.approx(
        7 * sketches, rel=1e-9
    )
    assert (
        5 * gaussian
        <= GaussianEvent(2.0, 3, 5).renyi(np.array([order]))[0]
        == pytest.approx(order * 5 * 9 / 8)
    )


def expected_events(plan):
    """The run's events, counted from what each party does: name -> [(noise, sensitivity, how many)]."""
    out = {}
    for (name, sizes), local in zip(SIZES.items(), plan.local, strict=True):
        d = len(sizes)
        out[name] = [(local.one_way_sigma, 1, d)]
        if d > 1:
            # An R-score is half of an L1 norm of differences, in steps of 1/16 record: half of 1 + 3 records, and a step for
            # rounding.
            out[name] += [
                (local.score_sigma, 16 * (1 + 3) // 2 + 1, d * (d - 1) // 2),
                (local.unit_sigma, 1, local.units),
            ]
    out["one"].insert(0, (plan.count_sigma, 1, 1))
    return out


def test_every_party_pays_for_its_whole_local_model(plan):
    assert SCORE_GRID == 16
    assert SCORE_SENSITIVITY == 33
    ledger = {
        name: [e.event for e in plan.entries() if e.party == name]
        for name in (*SIZES, "all parties")
    }
    for name, events in expected_events(plan).items():
        assert sorted((e.sigma, e.sensitivity, e.count) for e in ledger[name]) == sorted(events)
    assert sum(map(len, ledger.values())) == len(plan.entries()) == 9
    assert all(units > 0 for units in (plan.local[0].units, plan.local[1].units))


def test_the_total_is_that_of_all_events(plan):
    events = [
        GaussianEvent(*event) for entries in expected_events(plan).values() for event in entries
    ]
    sketch = plan.sketch
    keys = sum(pair.keys for pair in sketch.pairs)
    events.append(
        SketchEvent(sketch.phantoms, sketch.floor, sketch.ceiling, keys, attributes_per_key=2)
    )
    assert plan.ledger().epsilon == pytest.approx(epsilon(events, plan.delta).epsilon, rel=1e-6)
    # And no event is for nothing.
    whole = by_renyi(events, plan.delta)[-1]
    assert all(
        by_renyi(events[:i] + events[i + 1 :], plan.delta)[-1] < whole for i in range(len(events))
    )


def test_shared_keys_cost_what_all_attributes_under_one_key_tell():
    plan = plan_of(encoder="published", claim_as_published=True, keys=500)
    (event,) = [entry.event for entry in plan.entries() if entry.party == "all parties"]
    attributes = sum(map(len, SIZES.values()))
    assert (event.keys, event.attributes_per_key) == (500, attributes)
    with mpmath.workdps(40):
        level = [1 - mpmath.mpf(2) ** -l for l in range(event.floor, event.ceiling)] + [
            mpmath.mpf(1)
        ]
        phantom, pairs = [c**event.phantoms for c in level], []
        for m in range(len(level)):
            below = (phantom[m - 1], level[m - 1]) if m else (0, 0)
            g, f = phantom[m] - below[0], level[m] - below[1]
            for s in range(1, attributes + 1):
                # s of the sketches at the lowest level m, the others above it.
                absent = (
                    mpmath.binomial(attributes, s) * g**s * (1 - phantom[m]) ** (attributes - s)
                )
                pairs.append((absent, absent * (below[1] + f * (phantom[m] / g) ** s)))
        assert float(sum(q for _, q in pairs)) == pytest.approx(1)
        exact = {at: float(hockey_stick(pairs, at)) for at in (0.01, 1.0, 5.0)}
    for at, least in exact.items():
        assert least <= delta([replace(event, keys=1)], at) <= least * 1.01 + 1e-9


def test_under_replacement_a_record_counts_twice_in_every_query():
    plan = plan_of(encoder="grr")
    for name, events in expected_events(plan).items():
        ledger = [e.event for e in plan.entries() if e.party == name]
        assert sorted((e.sigma, e.sensitivity, e.count) for e in ledger) == sorted(
            (s, 2 * d, n) for s, d, n in events
        )
    (event,) = [entry.event for entry in plan.entries() if entry.party == "all parties"]
    assert event == GRREvent(plan.sketch.epsilon, tuple(group.size for group in plan.groups))
    assert len(event.sizes) == sum(map(len, SIZES.values()))
    assert 0.97 < plan.ledger().epsilon <= 1.0
    assert under_replacement(GeometricEvent(9.0, 2, 3)) == GeometricEvent(9.0, 4, 3)
    with pytest.raises(PrivacyError, match="no price for replacing"):
        under_replacement(SketchEvent(50, 2, 9, 100))


@pytest.mark.parametrize("phantoms", [2, 10, 50, 100, 1000, 6326, 100_000, 1_000_000])
def test_a_person_under_two_ids_is_no_worse_off_than_under_one(phantoms):
    """Whose ids differ between two parties touches one sketch under either of two hashes, not two under one.

    Under a single key that can be worse at one epsilon, by a few per cent. In Rényi divergence, which adds up over keys, it is
    better at every order that decides an epsilon, with the levels that the planner chooses; and over a run's keys by far.
    """
    level = math.log2(phantoms)
    floor = max(int(level) - FLOOR_BELOW_PHANTOMS, 0)
    both = SketchEvent(phantoms, floor, round(level) + CEILING_ABOVE_PHANTOMS, 1 << 14)
    apart = replace(both, attributes_per_key=1)
    orders = ORDERS[ORDERS <= 100]
    assert np.all(2 * apart.renyi(orders) <= both.renyi(orders))
    assert epsilon([apart, apart], 1e-6).epsilon < 0.6 * epsilon([both], 1e-6).epsilon


def test_releases_under_one_plans_hashes_cost_more_than_as_many_plans():
    """For count sketches, too: less than if the hashes were known."""
    single = CountSketchEvent(4, 12.0, 64, 256)
    double = replace(single, groups=8)
    known = GaussianEvent(math.sqrt(8 * 12.0), 8, 256)
    costs = [epsilon(events, 1e-5).epsilon for events in ([single] * 2, [double], [known])]
    assert costs == sorted(costs)
    assert costs[1] > 1.2 * costs[0]
