"""LocMRF: which marginals a party measures, with how much noise, and that they say what the table does."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from builders import dealt, schema_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from oracles import crossed
from planning import plan_with

from vertimrf import Message, Party, Secret
from vertimrf.errors import MessageError
from vertimrf.model.junction_tree import junction_tree
from vertimrf.model.local_marginal import LocalMarginal, first_one_way
from vertimrf.party.local_model import SCORE_ERRORS, choose_marginals, release_local_model
from vertimrf.party.records import count_marginals
from vertimrf.plan.local_plan import MIN_UNIT_SIGMA, SCORE_GRID, LocalPlan
from vertimrf.plan.planner import UNITS, plan_local
from vertimrf.plan.workload import Workload
from vertimrf.privacy.noise import FixedNoise


def plan_of(sizes, rho=0.5, largest_clique=10**5, free=False):
    return plan_local(sizes, rho, largest_clique, free)


def complete(sizes):
    return junction_tree(sizes, itertools.combinations(range(len(sizes)), 2))


def counted(codes, sizes, marginal):
    """What a marginal says of a table: the counts of its values, or of bins of them.

    Of contrasted attributes, of which two values are left: records with an even number of second values, less the others.
    """
    maps = marginal.bins or (None,) * len(marginal.attributes)
    shape = [
        sizes[a] if bins is None else bins.max() + 1
        for a, bins in zip(marginal.attributes, maps, strict=True)
    ]
    rows = [
        codes[a] if bins is None else bins[codes[a]]
        for a, bins in zip(marginal.attributes, maps, strict=True)
    ]
    counts = crossed(rows, shape)
    for axis in marginal.contrasts:
        counts = -np.diff(counts, axis=axis)
    return counts


def errors(codes, sizes, marginals):
    """Differences from the table, in the standard errors that are stated."""
    off = [(m.counts / m.units - counted(codes, sizes, m)) / m.error for m in marginals]
    return np.concatenate([one.ravel() for one in off])


def assert_standard(errors):
    """Mean 0 and variance 1, within five standard errors (1 / sqrt(count), sqrt(2 / count))."""
    assert abs(errors.mean()) < 5 / math.sqrt(errors.size)
    assert abs(errors.var() - 1) < 5 * math.sqrt(2 / errors.size)


@given(
    sizes=st.lists(st.integers(1, 30), min_size=2, max_size=7),
    total=st.floats(1, 1e7),
    rho=st.floats(1e-5, 100),
    free=st.booleans(),
)
@settings(max_examples=60)
def test_units_are_never_overspent_and_every_pair_has_some(sizes, total, rho, free):
    chosen = choose_marginals(complete(sizes), total, plan_of(sizes, rho, free=free))
    assert sum(units for _, units in chosen) <= UNITS
    assert min(units for _, units in chosen) >= 1
    assert len({attributes for attributes, _ in chosen}) == len(chosen)
    assert {attributes for attributes, _ in chosen if len(attributes) == 2} == set(
        itertools.combinations(range(len(sizes)), 2)
    )
    assert free or max(len(attributes) for attributes, _ in chosen) <= 3


@pytest.mark.parametrize("units", [3, 14, 15, 20])
@pytest.mark.parametrize("cliques", ["complete", "none"])
def test_there_are_never_more_marginals_than_units(units, cliques):
    """Six columns have fifteen pairs, in a clique or outside."""
    sizes = (4,) * 6
    pairs = list(itertools.combinations(range(6), 2))
    tree = complete(sizes) if cliques == "complete" else junction_tree(sizes, [])
    plan = structs.replace(plan_of(sizes, 5.0), units=units)
    chosen = choose_marginals(tree, 1e7, plan, scores=dict.fromkeys(pairs, 9e6))
    assert sum(spent for _, spent in chosen) <= units
    assert min(spent for _, spent in chosen) >= 1
    assert len(chosen) >= min(units, 15)


def test_wide_marginals_take_more_units_and_triples_less_where_cliques_are_scarce():
    sizes = (8, 2, 2, 2)
    free = dict(choose_marginals(complete(sizes), 1e6, plan_of(sizes, free=True)))
    scarce = dict(choose_marginals(complete(sizes), 1e6, plan_of(sizes)))
    # Units grow as cells^(2/3), to within a unit.
    assert (free[0, 1] - 1) / (free[1, 2] - 1) == pytest.approx(4 ** (2 / 3), rel=0.02)
    assert (free[1, 2, 3] - 1) / (free[1, 2] - 1) == pytest.approx(2 ** (2 / 3), rel=0.02)
    assert (scarce[1, 2, 3] - 1) / (scarce[1, 2] - 1) == pytest.approx(
        0.25 * 2 ** (2 / 3), rel=0.02
    )
    # Where nothing competes, all attributes together as well.
    assert (0, 1, 2, 3) in free
    assert (0, 1, 2, 3) not in scarce


def test_three_way_marginals_below_the_noise_are_left_out():
    sizes = (12, 12, 12, 2, 2)
    few = choose_marginals(complete(sizes), 3_000, plan_of(sizes, 0.01))
    many = choose_marginals(complete(sizes), 3_000_000, plan_of(sizes, 0.01))
    widest = {attributes: math.prod(sizes[a] for a in attributes) for attributes, _ in many}
    assert (0, 1, 2) in widest
    assert (
        max(
            math.prod(sizes[a] for a in attributes) for attributes, _ in few if len(attributes) == 3
        )
        < widest[0, 1, 2]
    )


def test_marginals_stay_within_the_cliques_of_the_local_graph():
    sizes = (5, 5, 5, 5)
    tree = junction_tree(sizes, [(0, 1), (1, 2), (2, 3)])
    assert {attributes for attributes, _ in choose_marginals(tree, 1e6, plan_of(sizes))} == {
        (0, 1),
        (1, 2),
        (2, 3),
    }


def test_a_pair_that_no_clique_holds_is_measured_last_and_where_its_score_is_worth_the_noise():
    sizes = (5, 5, 5, 50)
    plan = plan_of(sizes, 0.5, largest_clique=125)
    assert plan.score_sigma > 0
    tree = junction_tree(sizes, [(0, 1), (1, 2)])
    scores = {(0, 1): 9e3, (1, 2): 9e3, (0, 2): 5e3, (1, 3): 20.0, (2, 3): 0.0, (0, 3): 9e3}
    chosen = dict(choose_marginals(tree, 1e5, plan, scores=scores))
    # (0, 3) has more cells than a clique may have.
    assert list(chosen) == [(0, 1), (1, 2), (0, 2)]
    without = dict(choose_marginals(tree, 1e5, plan))
    assert all(chosen[attributes] < units for attributes, units in without.items())
    assert sum(chosen.values()) <= plan.units


def wide(scores, workload=None):
    """What a party of 20 attributes measures after its first one-way marginals."""
    sizes = (4,) * 20
    plan = plan_of(sizes, 0.005, largest_clique=4**5)
    tree = junction_tree(sizes, [(a, a + 1) for a in range(19)])
    pairs = itertools.combinations(range(20), 2)
    noisy = {pair: 1e4 * one for pair, one in zip(pairs, scores, strict=True)}
    chosen = dict(choose_marginals(tree, 1e4, plan, workload, noisy))
    assert sum(chosen.values()) <= plan.units
    assert {(a, a + 1) for a in range(19)} <= chosen.keys()
    return plan, {marginal: units for marginal, units in chosen.items() if len(marginal) == 1}


def test_one_way_marginals_are_measured_again_if_scores_show_little_dependence():
    plan, again = wide(np.full(190, 0.01))
    assert list(again) == [(a,) for a in range(20)]
    assert sum(again.values()) > 0.9 * plan.units
    noise = plan.score_sigma / SCORE_GRID / 1e4
    noisy = noise * np.random.default_rng(0).normal(size=190)
    assert sum(wide(noisy)[1].values()) > 0.5 * plan.units
    # Many weak dependences, and a few strong ones among noise that hides their mean.
    assert not wide(np.full(190, 0.5))[1]
    noisy[:9] += 20 * noise
    assert not wide(noisy - noisy.mean())[1]


def test_a_workload_keeps_its_budget_if_scores_show_little_dependence():
    assert not wide(np.zeros(190), Workload((((0, 1), 1.0),)))[1]


def test_bins_and_steps_follow_from_the_first_one_way_marginal():
    first, again = (
        LocalMarginal((0,), np.array([3, 4]), 1.0),
        LocalMarginal((0,), np.array([60, 70]), 9.0, 20),
    )
    pair = LocalMarginal((0, 1), np.ones((2, 2), np.int64), 2.0, 2)
    assert first_one_way([first, pair, again]) == {0: first}


def test_a_score_within_noise_takes_no_units():
    sizes = (5, 5, 5, 50)
    plan = plan_of(sizes, 0.5, largest_clique=125)
    tree = junction_tree(sizes, [(0, 1), (1, 2)])
    # A score of 5,000 records stands out of the noise of the marginal, but not out of its own.
    assert (0, 2) in dict(choose_marginals(tree, 1e5, plan, scores={(0, 2): 5e3}))
    noisy = structs.replace(plan, score_sigma=5e3 * SCORE_GRID / SCORE_ERRORS)
    assert (0, 2) not in dict(choose_marginals(tree, 1e5, noisy, scores={(0, 2): 5e3}))


def test_the_score_of_a_pair_within_a_clique_changes_nothing():
    sizes = (2, 2, 5)
    plan = structs.replace(plan_of(sizes, 0.5, largest_clique=125), contrasts=True)
    without = choose_marginals(complete(sizes), 1e5, plan)
    assert {(0, 1), (0, 1, 2)} <= {attributes for attributes, _ in without}
    assert (
        choose_marginals(complete(sizes), 1e5, plan, scores={(0, 1): 9e4, (0, 2): 9e4, (1, 2): 9e4})
        == without
    )


def released_of(codes, sizes, plan=None, noise=None):
    """What a party releases of a table, by default by the usual plan."""
    counted = partial(count_marginals, codes.astype(np.uint16), sizes)
    return release_local_model(counted, sizes, plan or plan_of(sizes), noise or FixedNoise(1))


def test_released_counts_vary_around_the_truth_as_they_state():
    rng = np.random.default_rng(0)
    sizes = (4, 3, 2)
    codes = np.array([rng.integers(0, s, 700) for s in sizes])
    runs = [released_of(codes, sizes, noise=FixedNoise(seed)) for seed in range(60)]
    for way in (1, 2, 3):
        marginals = [m for released in runs for m in released if len(m.attributes) == way]
        assert_standard(errors(codes, sizes, marginals))


def test_edge_cases_of_the_table():
    # One attribute, no records, all records equal, an attribute of one value, and one of 10^4.
    one = released_of(np.zeros((1, 5)), (3,))
    assert [m.attributes for m in one] == [(0,)]
    empty = released_of(np.zeros((2, 0)), (3, 2))
    assert [m.attributes for m in empty] == [(0,), (1,), (0, 1)]
    equal = released_of(np.ones((3, 90)), (2, 2, 2), plan_of((2, 2, 2), 50.0))
    assert equal[-1].measurement("").counts[1, 1, 1] == pytest.approx(90, abs=10)
    wide = released_of(np.zeros((2, 50)), (1, 10_000))
    assert wide[-1].counts.shape == (1, 10_000)
    # Nothing but one-way marginals where no pair fits a clique.
    narrow = released_of(np.zeros((2, 50)), (100, 100), plan_of((100, 100), largest_clique=50))
    assert [m.attributes for m in narrow] == [(0,), (1,)]


@pytest.mark.parametrize("units", [2, 5])
def test_units_of_noise_add_up_to_a_discrete_gaussian(units):
    """The claim behind LocalPlan: the ratio of probabilities is 1 but for 10 k exp(-pi^2 sigma^2), here below rounding."""
    sigma = MIN_UNIT_SIGMA

    def law(scale, reach):
        x = np.arange(-reach, reach + 1)
        mass = np.exp(-0.5 * (x / scale) ** 2)
        return mass / mass.sum()

    one = law(sigma, 200)
    together = one
    for _ in range(units - 1):
        together = np.convolve(together, one)
    single = law(sigma * math.sqrt(units), 200 * units)
    seen = single > 1e-12
    np.testing.assert_allclose(together[seen], single[seen], rtol=1e-9)


def test_noise_of_a_unit_has_a_least_value():
    assert plan_of((3, 3), rho=1e6).unit_sigma == MIN_UNIT_SIGMA
    assert plan_of((3, 3), rho=0.1).unit_sigma > MIN_UNIT_SIGMA


def messages(plan, codes, seeds=(1,)):
    """The one party's messages about a table, each with other noise."""
    (table,) = dealt(plan.schema, codes)
    return [Party(plan, "one", Secret.new(), FixedNoise(seed)).run(table) for seed in seeds]


def read(plan, message, **changes):
    """What the server reads of a message, or of one that was changed."""
    return Message.from_bytes(replace(message, **changes).to_bytes(plan), plan)


def test_a_message_of_more_units_than_the_ledger_has_is_refused():
    plan = plan_with(schema_of(one=(3, 3, 3)), expected_records=500, nonce="units")
    (message,) = messages(plan, np.random.default_rng(0).integers(0, 3, (3, 500)))
    last = message.marginals[-1]
    assert read(plan, message).marginals[-1].units == last.units
    more = replace(last, units=UNITS, sigma=math.sqrt(UNITS) * plan.local[0].unit_sigma)
    sharper = replace(last, units=2 * last.units)
    for bad, words in (
        ((*message.marginals[:-1], more), "ledger"),
        ((*message.marginals[:-1], sharper), "ledger"),
        ((*message.marginals, last), "repeats another"),
        (message.marginals[:2], "one-way"),
        ((*message.marginals[:-1], replace(last, units=0)), "units"),
        ((replace(message.marginals[0], units=2), *message.marginals[1:]), "ledger"),
    ):
        with pytest.raises(MessageError, match=words):
            read(plan, message, marginals=bad)


def test_a_plan_without_larger_marginals_has_no_such_event():
    plan = plan_local((4, 5), 0.5, 10**5, False, one_way=1.0)
    assert plan == LocalPlan(math.sqrt(2), 0.0, 0, 0.0, 10**5, False)


def long_message(seed=0):
    """Of a long domain whose values are rare but for two, beside two short ones."""
    records = 4_000
    # Of so many that are expected, no pair is noise alone.
    settings = {"epsilon": 2.0, "delta": 1e-6, "expected_records": 50 * records, "nonce": "long"}
    plan = plan_with(schema_of(one={"long": 200, "b": 3, "c": 2}), **settings)
    rng = np.random.default_rng(seed)
    long = np.where(
        rng.random(records) < 0.7, rng.choice([3, 120], records), rng.integers(0, 200, records)
    )
    codes = np.array(
        [long, (long > 100) + rng.integers(0, 2, records), rng.integers(0, 2, records)]
    )
    return *messages(plan, codes, [seed]), plan, codes


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_the_server_works_out_the_values_that_a_party_has_merged(seed):
    message, plan, _ = long_message(seed)
    back = read(plan, message)
    for sent, came in zip(message.marginals, back.marginals, strict=True):
        concerned = len(sent.attributes) > 1 and 0 in sent.attributes
        assert len(sent.bins) == len(came.bins) == (len(sent.attributes) if concerned else 0)
        for a, b in zip(sent.bins, came.bins, strict=True):
            assert (a is None) == (b is None)
            np.testing.assert_array_equal(0 if a is None else a, 0 if b is None else b)
    pair = next(m for m in back.marginals if m.attributes == (0, 1))
    assert pair.counts.shape == (pair.bins[0].max() + 1, 3)
    assert 3 <= pair.bins[0].max() + 1 < 150
    # What is not rare stays a value of its own.
    assert (pair.bins[0] == pair.bins[0][3]).sum() == (pair.bins[0] == pair.bins[0][120]).sum() == 1


def test_a_message_whose_marginals_have_other_shapes_is_refused_in_a_sentence():
    message, plan, _ = long_message()
    place = next(i for i, m in enumerate(message.marginals) if m.attributes == (0, 1))
    marginal = message.marginals[place]
    merged = marginal.bins[0].max() + 1
    for shape in ((200, 3), (merged - 1, 3), (merged, 2)):
        bad = (
            *message.marginals[:place],
            replace(marginal, counts=np.zeros(shape, np.int64)),
            *message.marginals[place + 1 :],
        )
        with pytest.raises(
            MessageError, match=rf"marginal{place} has shape .* not \({merged}, 3\)"
        ):
            read(plan, message, marginals=bad)


def test_counts_of_merged_values_vary_around_the_truth_as_they_state():
    runs = (long_message(seed) for seed in range(25))
    assert_standard(
        np.concatenate(
            [
                errors(codes, plan.schema.sizes, [m for m in message.marginals if m.bins])
                for message, plan, codes in runs
            ]
        )
    )


def test_contrasts_are_of_attributes_of_two_values_and_say_what_the_table_does():
    sizes = (2, 3, 2, 2)
    plan = plan_with(schema_of(one=sizes), delta=1e-5, expected_records=2_000, nonce="contrasts")
    plan = replace(plan, local=(structs.replace(plan.local[0], contrasts=True),))
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 2_000)
    codes = np.array(
        [
            a,
            a + rng.integers(0, 2, 2_000),
            rng.integers(0, 2, 2_000),
            a ^ (rng.random(2_000) < 0.2),
        ]
    )
    scores = []
    for message in messages(plan, codes, range(150)):
        back = read(plan, message)
        for sent, m in zip(message.marginals, back.marginals, strict=True):
            np.testing.assert_array_equal(sent.counts, m.counts)
            assert sent.contrasts == m.contrasts
            if len(m.attributes) > 1:
                assert m.contrasts == tuple(
                    i for i, attribute in enumerate(m.attributes) if attribute != 1
                )
            assert m.counts.shape == counted(codes, sizes, m).shape
        scores.append(errors(codes, sizes, back.marginals))
    assert_standard(np.concatenate(scores))


def test_contrasts_of_the_wrong_shape_or_size_are_refused():
    plan = plan_with(schema_of(one=(2, 2, 2)), delta=1e-5, expected_records=100, nonce="contrasts")
    (message,) = messages(plan, np.zeros((3, 100), np.uint16))
    *singles, marginal = message.marginals[:4]
    assert marginal.counts.shape == (1, 1)
    # Another shape, and as many records as no plan expects, of either sign.
    far = np.full((1, 1), marginal.units * 10**9)
    for counts, said in (
        (np.zeros((2, 2), np.int64), r"marginal3 has shape .* not \(1, 1\)"),
        (far, "marginal 3 has counts"),
        (-far, "marginal 3 has counts"),
    ):
        wrong = (*singles, replace(marginal, counts=counts), *message.marginals[4:])
        with pytest.raises(MessageError, match=said):
            read(plan, message, marginals=wrong)


def test_a_holder_of_all_columns_measures_contrasts_where_all_have_two_values():
    def contrasts(**parties):
        plan = plan_with(schema_of(**parties), expected_records=1_000)
        return [local.contrasts for local in plan.local]

    assert contrasts(one=(2, 2, 2)) == [True]
    assert contrasts(one=(2, 1, 2)) == [True]
    assert contrasts(one=(2, 3, 2)) == [False]
    assert contrasts(one=(2, 2, 2), two=(2,)) == [False, False]


def test_contrasts_that_larger_marginals_do_not_tell_again_get_the_most_units():
    plan = plan_local([2] * 6, 0.5, 10**5, free=True, alone=True)
    units = dict(choose_marginals(complete([2] * 6), 1e5, plan))
    assert sum(units.values()) <= UNITS
    pairs = {attributes: n for attributes, n in units.items() if len(attributes) == 2}
    triples = {attributes: n for attributes, n in units.items() if len(attributes) == 3}
    assert len(pairs) == 15
    assert len(triples) == 20
    assert min(pairs.values()) > 5 * max(triples.values())


@pytest.mark.parametrize("units", [31, 40, 70, 200])
@pytest.mark.parametrize("size", [3, 6])
def test_a_message_spends_no_more_units_than_the_ledger_prices(size, units):
    """Of 12 columns there are 66 pairs: more than some plans have units. Pairs are chosen or not."""
    plan = plan_with(schema_of(one=(size,) * 12), expected_records=1000, tau=1000, nonce="units")
    plan = replace(plan, local=(structs.replace(plan.local[0], units=units),))
    (priced,) = (e.event.count for e in plan.ledger().entries if e.kind == "larger marginals")
    assert priced == units
    (message,) = messages(plan, np.random.default_rng(0).integers(0, size, (12, 1000)))
    larger = [m for m in message.marginals if m.sigma != plan.local[0].one_way_sigma]
    assert 0 < sum(m.units for m in larger) <= units
    for m in larger:
        assert m.sigma == pytest.approx(math.sqrt(m.units) * plan.local[0].unit_sigma)
    assert len(read(plan, message).marginals) == len(message.marginals)
