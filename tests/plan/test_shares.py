"""Shares of the budget: a forecast from public figures, least where all goes to what can be seen."""

import itertools
import math
from dataclasses import replace

import pytest
from builders import ADULT, schema_of
from planning import plan_with

from vertimrf.plan.defaults import SHARES
from vertimrf.plan.shares import (
    DEPENDENCE,
    EQUAL,
    ONE_WAY_OF_HALVES,
    ONE_WAY_SHARES,
    SKETCH_SHARES,
    USUAL,
    Outlook,
    Shares,
    distances,
    error,
)
from vertimrf.plan.summary import summary
from vertimrf.releases.nothing import NOTHING

ONE_WAY_ALONE = Shares(0.01, 0.99, 0.0, 1.0)


def outlook(columns=((4, 4), (4, 4)), records=10_000, rho=0.01, message_bytes=15_000_000):
    return Outlook(columns, records, rho, 500_000, message_bytes)


def test_one_way_marginals_alone_leave_the_dependence():
    """By hand: sigma = sqrt(4 / (2 * 0.99 * 0.01)) = 14.2 for each of four attributes, so T1 = 4 * 14.2 / (10,000 * 2.507)."""
    sigma = math.sqrt(4 / (2 * 0.99 * 0.01))
    off = 4 * sigma / (10_000 * math.sqrt(2 * math.pi))
    assert off == pytest.approx(0.00227, rel=0.01)
    by_hand = math.sqrt(3 * off**2 + 3 * DEPENDENCE**2)
    assert error(outlook(), ONE_WAY_ALONE) == pytest.approx(by_hand)


def test_a_pair_at_one_party_tells_of_its_attributes_too():
    """By hand, for two attributes of four values: half of the budget 0.02 for both one-way marginals, half for the pair."""
    rho, n = 0.02, 1000
    of_pair = 1 / (2 * 0.5 * rho)
    precision = 2 * 0.5 * rho / 2 + 1 / (4 * of_pair)
    off = 4 / math.sqrt(precision) / (n * math.sqrt(2 * math.pi))
    pair = 16 * math.sqrt(of_pair) / (n * math.sqrt(2 * math.pi))
    left = DEPENDENCE * pair / math.hypot(DEPENDENCE, pair)
    found = error(outlook(((4, 4),), n, rho, 0), Shares(0.0, 1.0, 0.0, 0.5))
    assert found == pytest.approx(math.sqrt(3 * off**2 + 3 * left**2))


def test_contrasts_are_one_counter_each():
    found = error(outlook(((2, 2),), 1000, 0.02, 0), Shares(0.0, 1.0, 0.0))
    off = 2 * math.sqrt(2 / (2 * 0.33 * 0.02)) / (1000 * math.sqrt(2 * math.pi))
    pair = math.sqrt(1 / (2 * 0.67 * 0.02)) / (1000 * math.sqrt(2 * math.pi))
    left = DEPENDENCE * pair / math.hypot(DEPENDENCE, pair)
    assert found == pytest.approx(math.sqrt(3 * off**2 + 3 * left**2))


@pytest.mark.parametrize("shares", [USUAL, ONE_WAY_ALONE, Shares(0.01, 0.69, 0.3, 0.3)])
def test_more_records_and_more_budget_never_raise_it(shares):
    columns = (ADULT[:8], ADULT[8:])
    for more in ("records", "rho"):
        start = outlook(columns, 200, 1e-5)
        errors = [
            error(replace(start, **{more: getattr(start, more) * 4**k}), shares) for k in range(10)
        ]
        assert all(b <= a for a, b in itertools.pairwise(errors))
    best = [
        error(one, one.best()) for one in (outlook(columns, 200 * 4**k, 1e-3) for k in range(8))
    ]
    assert all(b < a for a, b in itertools.pairwise(best))


@pytest.mark.parametrize("parties", [(ADULT,), (ADULT[:8], ADULT[8:])])
def test_little_signal_leaves_one_way_marginals_and_says_so(parties):
    plan = plan_with(
        schema_of(**dict(zip("ab", parties, strict=False))), epsilon=0.1, expected_records=500
    )
    assert plan.sketch == NOTHING
    assert all(local.units == 0 for local in plan.local)
    assert "the result has independent columns: for more than one-way marginals" in summary(plan)


@pytest.mark.parametrize("epsilon", [0.2, 0.8, 3.2])
def test_a_table_of_usual_size_has_the_usual_shares(epsilon):
    schema = schema_of(a=ADULT[:8], b=ADULT[8:])
    options = {"epsilon": epsilon, "expected_records": 45_222, "nonce": "test"}
    plan = plan_with(schema, **options)
    assert plan.digest() == plan_with(schema, shares=SHARES, **options).digest()
    assert "independent" not in summary(plan)


def test_of_equal_forecasts_the_one_with_the_least_noise_of_one_way_marginals_is_taken():
    """20 columns of 2,000 records: the usual shares are not equal to the best."""
    columns = ((7, 12, 3, 7, 4, 4, 9, 5, 6, 2), (9, 6, 4, 15, 4, 5, 3, 4, 6, 10))
    one = outlook(columns, 2000, 0.017)
    errors = {
        (shares := Shares(0.01, 0.99 - across, across, alone)): error(one, shares)
        for across, alone in itertools.product(SKETCH_SHARES, (None, *ONE_WAY_SHARES))
    }
    least = min(errors.values())
    equal = [shares for shares in errors if errors[shares] <= (1 + EQUAL) * least]
    assert USUAL not in equal
    assert one.best() == min(equal, key=lambda shares: sum(distances(one, shares).one_way ** 2))
    assert errors[one.best()] > least


def test_given_shares_are_kept():
    plan = plan_with(schema_of(a=ADULT[:8], b=ADULT[8:]), expected_records=500, shares=SHARES)
    assert plan.groups
    assert all(local.units for local in plan.local)


def test_parties_without_sketches_are_independent_and_the_summary_says_so():
    plan = plan_with(
        schema_of(a=(4, 3), b=(4, 2)),
        expected_records=20_000,
        shares=(0.01, 0.99, 0.0),
    )
    assert "columns of different parties are independent in the result." in summary(plan)


@pytest.mark.parametrize("columns", [((40, 40, 5), (40, 40, 3)), ((40, 40, 5, 40, 40, 3),)])
def test_one_way_marginals_keep_most_of_the_budget_where_most_columns_are_halved(columns):
    """So columns that are independent lose at most a fifth of their precision."""
    sketched = 15_000_000 if len(columns) > 1 else 0
    for rho in (1e-4, 1e-2, 1.0):
        halved = tuple(tuple(size > 5 for size in some) for some in columns)
        some = Outlook(columns, 3000, rho, 125_000, sketched, halved=halved)
        best = some.best()
        assert best.one_way is not None
        assert best.local * best.one_way >= ONE_WAY_OF_HALVES - 1e-12
        assert math.isfinite(error(some, best))
