"""The price of a count sketch for a person with several records, against likelihood ratios drawn at random."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from msgspec.structs import replace
from oracles import by_pld

from vertimrf.errors import PrivacyError
from vertimrf.files.convert import to_json
from vertimrf.privacy import person_sketch
from vertimrf.privacy.accountant import by_renyi
from vertimrf.privacy.accountant import delta as composed_delta
from vertimrf.privacy.accountant import epsilon as composed_epsilon
from vertimrf.privacy.events import CountSketchEvent
from vertimrf.privacy.person_sketch import (
    blocks_of,
    person_excess,
    person_law,
    person_renyi,
    sharing,
    slots,
)

# What two records of a person add to the counters of their buckets, each times its sign: values of two groups, and a contrast.
QUICK = "half"
PATTERNS = {
    "all the same": [[1, 0, 1, 0], [1, 0, 1, 0]],
    "all different": [[1, 0, 1, 0], [0, 1, 0, 1]],
    "half": [[1, 0, 1, 0], [1, 0, 0, 1]],
    "either side of a contrast": [[1, 1, 0], [-1, 0, 1]],
}


def exact_ratio(adds, variance, noise):
    """The likelihood ratio of one repetition, over every bucket and sign of every record.

    Args:
        adds: what records add to the counters of their buckets [shape=(records, counters)].
        noise: of every counter and bucket [shape=(draws, counters, buckets)].
    """
    records, buckets = len(adds), noise.shape[-1]
    total = np.zeros(len(noise))
    for places in itertools.product(range(buckets), repeat=records):
        for signs in itertools.product((1, -1), repeat=records):
            shift = np.zeros(noise.shape[1:])
            for row, bucket, sign in zip(adds, places, signs, strict=True):
                shift[:, bucket] += sign * np.array(row)
            at = np.argwhere(shift)
            inner = noise[:, at[:, 0], at[:, 1]] @ shift[tuple(at.T)] if len(at) else 0.0
            total += np.exp((inner - (shift**2).sum() / 2) / variance)
    return total / (2 * buckets) ** records


def discrete_noise(rng, variance, shape):
    levels = np.arange(-80, 81)
    law = np.exp(-(levels**2) / (2 * variance))
    return rng.choice(levels.astype(float), shape, p=law / law.sum())


def check_dominated(ratio, event, close):
    """Delta of ratios that were drawn, in both directions, is below the price up to five standard errors, and where they are
    of equal records not far below."""
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / math.sqrt(len(ratio))
    priced, mass, lost = event.law()
    assert lost < 1e-11
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    for epsilon in (0.0, 0.03, 0.1, 0.3, 0.6):
        for true, price in (
            (
                np.maximum(ratio - math.exp(epsilon), 0),
                np.maximum(priced - math.exp(epsilon), 0) @ mass,
            ),
            (
                np.maximum(1 - math.exp(epsilon) * ratio, 0),
                np.maximum(1 - math.exp(epsilon) * priced, 0) @ mass,
            ),
        ):
            assert true.mean() - 5 * true.std() / math.sqrt(len(true)) <= price + 1e-12
            assert not (close and epsilon == 0) or true.mean() > 0.9 * price


@pytest.mark.parametrize(
    "pattern",
    [pytest.param(p, marks=() if p == QUICK else pytest.mark.slow) for p in PATTERNS],
)
@pytest.mark.parametrize("variance", [4.0, pytest.param(8.0, marks=pytest.mark.slow)])
def test_the_priced_law_dominates_the_true_one_whatever_values_two_records_have(variance, pattern):
    """2000 draws of the noise, every way to place two records summed up."""
    adds = PATTERNS[pattern]
    noise = discrete_noise(np.random.default_rng(1), variance, (2000, len(adds[0]), 64))
    ratio = exact_ratio(adds, variance, noise)
    check_dominated(ratio, CountSketchEvent(2, variance, 64, 1, 2), pattern == "all the same")


def test_the_priced_law_dominates_that_of_three_records_of_equal_values():
    """40,000 draws. The ratio by how the records share buckets: none, two, all three."""
    rng = np.random.default_rng(2)
    groups, variance, buckets = 3, 12.0, 64
    sums = discrete_noise(rng, variance, (40_000, groups, buckets)).sum(axis=1)
    one, two, three = (
        np.exp(-m * m * groups / (2 * variance)) * np.cosh(m * sums / variance) for m in (1, 2, 3)
    )
    first, squares, cubes = one.sum(axis=1), (one**2).sum(axis=1), (one**3).sum(axis=1)
    apart = first**3 - 3 * first * squares + 2 * cubes
    # Two share: with equal signs they shift by two, else not at all.
    pair = (two + 1) / 2
    shared = 3 * (pair.sum(axis=1) * first - (pair * one).sum(axis=1))
    together = (three / 4 + 3 * one / 4).sum(axis=1)
    check_dominated(
        (apart + shared + together) / buckets**3,
        CountSketchEvent(groups, variance, buckets, 1, 3),
        True,
    )


def test_the_priced_law_dominates_that_of_five_records_without_a_common_value():
    """40,000 draws: what they do is independent, a product of five single ratios."""
    rng = np.random.default_rng(3)
    groups, variance, buckets = 2, 14.0, 64
    ratio = np.ones(40_000)
    for _ in range(5):
        sums = discrete_noise(rng, variance, (40_000, groups, buckets)).sum(axis=1)
        ratio *= np.exp(-groups / (2 * variance)) * np.cosh(sums / variance).mean(axis=1)
    check_dominated(ratio, CountSketchEvent(groups, variance, buckets, 1, 5), False)


def two_at_a_party(sums, groups, variance):
    """Likelihood ratios of a party's counters for all places and signs of two records [shape=(draws, 2 buckets, 2 buckets)]."""
    alone = np.exp(np.concatenate([sums, -sums], axis=1) / variance - groups / (2 * variance))
    buckets = sums.shape[1]
    same = np.kron([[1, -1], [-1, 1]], np.eye(buckets))
    return alone[:, :, None] * alone[:, None] * np.exp(-groups * same / variance)


@pytest.mark.parametrize("held", ["nothing in common", "one in common", "any two one in common"])
def test_the_priced_law_dominates_where_parties_hold_different_records_of_a_person(held):
    """Two records at each of two or three parties; 500 draws of the noise, all ways to place all records summed up."""
    rng, variance, buckets, groups = np.random.default_rng(4), 8.0, 64, (1, 1, 1)
    one, two, three = (
        two_at_a_party(
            discrete_noise(rng, variance, (500, moved, buckets)).sum(axis=1), moved, variance
        )
        / (2 * buckets)
        for moved in groups
    )
    if held == "nothing in common":
        ratio = one.sum(axis=(1, 2)) * two.sum(axis=(1, 2)) / (2 * buckets) ** 2
    elif held == "one in common":
        ratio = (one.sum(axis=2) * two.sum(axis=2)).sum(axis=1) / (2 * buckets)
    else:
        ratio = np.einsum("nij,nji->n", one @ two, three)
    parties = 3 if held == "any two one in common" else 2
    check_dominated(ratio, CountSketchEvent(parties, variance, buckets, 1, 2, parties), False)


@pytest.mark.parametrize("parties", [2, 3, 4, 5])
def test_so_many_colours_tell_the_records_of_a_person_apart_at_every_party(parties):
    """Two or three records at each party, drawn from few or many: never more colours than are priced, and at up to three as many."""
    rng = np.random.default_rng(parties)
    for records in (2, 3):
        most = 0
        for _ in range(300):
            pool = rng.integers(records, records * parties + 1)
            held = [rng.permutation(pool)[:records] for _ in range(parties)]
            graph = nx.Graph(
                pair for one in held for pair in itertools.combinations(one.tolist(), 2)
            )
            most = max(most, least_colours(graph))
        assert records <= most <= slots(records, parties)
        assert parties > 3 or most == slots(records, parties)


def least_colours(graph):
    """The chromatic number of a small graph."""
    nodes = list(graph)

    def coloured(number, colours=()):
        if len(colours) == len(nodes):
            return True
        node = nodes[len(colours)]
        taken = {c for other, c in zip(nodes, colours, strict=False) if graph.has_edge(node, other)}
        # Colours that nobody has yet are all alike.
        free = [c for c in range(min(max(colours, default=-1) + 2, number)) if c not in taken]
        return any(coloured(number, (*colours, c)) for c in free)

    return next(number for number in itertools.count(1) if coloured(number))


def test_parties_that_hold_different_records_cost_little_more_if_they_are_two():
    event = CountSketchEvent(8, 200.0, 1024, 100, 2)
    prices = [
        composed_epsilon([replace(event, parties=parties)], 1e-6).epsilon
        for parties in (1, 2, 3, 5)
    ]
    assert prices == sorted(prices)
    assert 1 < prices[1] / prices[0] < 1.02
    assert 1.1 < prices[2] / prices[0] < 1.4
    assert "parties" not in to_json(event)
    # Of one record each party has one bucket, and a permutation of a party's buckets makes it another's.
    for records, bound in ((2, 3 / 64), (3, 3 * 3 / 64)):
        chances = sharing(64, records, 3)
        assert chances.sum() == pytest.approx(1)
        assert 0.9 * bound < chances[1:].sum() <= bound
    # With too few buckets for that many parties, all are one product: records of one colour, of which each party may have
    # one, need blocks of their own.
    assert blocks_of(64, 20, 9, 0) == 1
    assert [blocks_of(64, 5, parties, 0) for parties in (4, 6, 7, 9)] == [6, 1, 1, 1]


@pytest.mark.parametrize("records, shared", [(2, 0), (2, 1), (3, 1), (3, 2)])
def test_no_adversary_who_knows_how_records_share_buckets_learns_more_than_is_priced(
    records, shared, monkeypatch
):
    """All records have equal values and signs, and the adversary is told that they fill ``records - shared`` buckets.

    It computes its likelihood ratio for every noise of three buckets. With all records in one, the price is exact: deltas
    are within 5 %, for what the grid adds. Otherwise a mean over three buckets has one block alone, and the price is far more.
    """
    variance, buckets = 9.0, 3
    # One value each: sums of the noise are half-integers.
    line = np.arange(-36.5, 37.0)
    law = np.exp(-(line**2) / (2 * variance))
    sums = np.stack(np.meshgrid(*[line] * buckets, indexing="ij")).reshape(buckets, -1)
    chance = np.prod(
        np.stack(np.meshgrid(*[law / law.sum()] * buckets, indexing="ij")), axis=0
    ).ravel()

    def shifted(by):
        return np.exp(-(by**2) / (2 * variance)) * np.cosh(by * sums / variance)

    filled = [shared + 1, *[1] * (records - shared - 1)]
    ratio = np.mean(
        [
            np.prod([shifted(by)[b] for by, b in zip(filled, places, strict=True)], axis=0)
            for places in itertools.permutations(range(buckets), len(filled))
        ],
        axis=0,
    )
    assert ratio @ chance == pytest.approx(1)

    monkeypatch.setattr(person_sketch, "sharing", lambda _, k, parties=1: np.eye(k)[shared])
    priced, mass, lost = told = person_law.__wrapped__(1, variance, buckets, records)
    for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
        for true, price in (
            (ratio - math.exp(epsilon), priced - math.exp(epsilon)),
            (1 - math.exp(epsilon) * ratio, 1 - math.exp(epsilon) * priced),
        ):
            exact, stated = np.maximum(true, 0) @ chance, np.maximum(price, 0) @ mass + lost
            assert exact <= stated * (1 + 1e-9) + 1e-15
            assert shared < records - 1 or exact < 1e-9 or stated < 1.05 * exact
    orders = np.array([2.0, 3.0, 5.0, 8.0, 30.0])
    costs = person_renyi(told, 1, variance, buckets, records, orders, 0.5)
    exact = np.log([chance @ ratio**order for order in orders]) / (orders - 1)
    assert (costs > exact * (1 - 1e-9)).all()


def test_to_first_order_the_price_is_that_of_a_gaussian():
    """Many buckets, much noise: a person with k records costs k^2 times as much, k times in epsilon."""
    single = CountSketchEvent(15, 400.0, 2048, 170)
    for records in (2, 4, 8):
        event = CountSketchEvent(15, 400.0 * records, 2048, 170, records)
        assert event.spread == pytest.approx(single.spread, rel=0.02)
        ratio, mass, _ = event.law()
        assert (np.diff(ratio) >= 0).all()
        assert mass @ ratio == pytest.approx(1, abs=1e-9)
        assert mass @ (ratio - 1) ** 2 == pytest.approx(event.spread**2, rel=0.05)
        alone = composed_epsilon([single], 1e-6).epsilon
        assert alone < composed_epsilon([event], 1e-6).epsilon < 1.06 * alone


def test_more_records_cost_more_and_one_costs_what_it_did():
    prices = [
        composed_epsilon([CountSketchEvent(8, 60.0, 512, 60, k)], 1e-6).epsilon
        for k in (1, 2, 3, 5)
    ]
    assert prices == sorted(prices)
    assert prices[0] == composed_epsilon([CountSketchEvent(8, 60.0, 512, 60)], 1e-6).epsilon
    assert 1.8 < prices[1] / prices[0] < 2.6


def test_both_accounts_agree():
    """Rényi divergences are exact moments where distributions are computed: they state a little more, never far less."""
    for records in (2, 5):
        events = [CountSketchEvent(8, 100.0 * records, 1024, 4000, records)]
        pld, renyi = by_pld(events, 1e-7)[0], by_renyi(events, 1e-7)[0]
        assert 0.9 * pld <= renyi < 1.35 * pld
        # Of the law itself, but for what the grid adds.
        ratio, mass, _ = events[0].law()
        orders = np.array([3.0, 8.0, 20.0])
        costs = person_renyi(
            events[0].law(), 8, 100.0 * records, 1024, records, orders, events[0].rho
        )
        direct = np.array([math.log(mass @ ratio**order) / (order - 1) for order in orders])
        assert (costs > 0.97 * direct).all()
        assert costs[-1] < 2 * direct[-1]


def test_how_records_share_buckets():
    """Against all ways to place them, and their number against Stirling's for many."""
    for buckets, records in ((4, 3), (5, 4), (7, 2)):
        filled = [len(set(places)) for places in itertools.product(range(buckets), repeat=records)]
        expected = [np.mean(np.array(filled) == records - e) for e in range(records)]
        assert sharing(buckets, records) == pytest.approx(expected)
    assert sharing(1 << 15, 40).sum() == pytest.approx(1)
    assert person_excess(8, 60.0, 512, 1) == pytest.approx(
        CountSketchEvent(8, 60.0, 512, 60).spread ** 2
    )


def test_the_events_parts_are_checked():
    assert "records" not in to_json(CountSketchEvent(8, 60.0, 512, 60))
    with pytest.raises(
        PrivacyError,
        match="buckets, with several records of a person, must be a whole number of at least 64",
    ):
        CountSketchEvent(8, 60.0, 32, 60, 3)
    with pytest.raises(PrivacyError, match="variance"):
        CountSketchEvent(8, 20.0, 512, 60, 3)
    for records in (0, 65, 2.0, True):
        with pytest.raises(PrivacyError, match="records of a person"):
            CountSketchEvent(8, 60.0, 512, 60, records)
    assert 0 < composed_delta([CountSketchEvent(8, 60.0, 512, 60, 3)], 1.0) < 1
