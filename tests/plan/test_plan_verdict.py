"""A verdict beforehand: from the plan alone, the same whatever way the plan was made, and a refusal of what is useless."""

import math
from dataclasses import astuple

import numpy as np
import pytest
from builders import ADULT, schema_of
from commands import run
from planning import plan_with

from vertimrf.errors import PlanError
from vertimrf.plan.shares import ONE_WAY_SHARE
from vertimrf.plan.summary import summary
from vertimrf.plan.verdict import (
    BEYOND_NOISE,
    GOOD,
    NO_LINKS,
    ROUGH,
    _outlook,
    _shares,
    least_known,
    links,
    stated,
    verdict,
)

TWO = schema_of(one=ADULT[:8], two=ADULT[8:])
ONE = schema_of(one=ADULT)
USELESS = {"epsilon": 0.1, "expected_records": 500}


def three(schema, **options):
    return verdict(plan_with(schema, **options)).errors.three


@pytest.mark.parametrize("schema", [ONE, pytest.param(TWO, marks=pytest.mark.slow)])
def test_more_budget_and_more_records_lower_the_predicted_error(schema):
    by_epsilon = [
        three(schema, epsilon=e, expected_records=20_000) for e in (0.2, 0.5, 1.0, 3.0, 10.0)
    ]
    by_records = [
        three(schema, epsilon=1.0, expected_records=n) for n in (500, 2000, 10_000, 100_000)
    ]
    for errors in (by_epsilon, by_records):
        assert errors == sorted(errors, reverse=True)
        assert errors[0] > 1.5 * errors[-1]


def test_the_word_follows_the_stated_bounds():
    words = {}
    for n in (500, 20_000, 1_000_000):
        judged = verdict(plan_with(TWO, expected_records=n))
        words[judged.word] = judged.errors.three
    assert words["good"] <= GOOD < words["rough"] <= ROUGH
    assert set(words) == {"good", "rough", "useless"}


def test_pairs_are_named_by_what_is_predicted_of_them():
    many, few = (plan_with(TWO, expected_records=n) for n in (10_000_000, 6000))
    count = math.comb(len(TWO.names), 2)
    about, known = links(many)
    assert about.startswith(f"About 101 of {count} pairs of columns are predicted to be known")
    first = f"{TWO.names[0]} × {TWO.names[1]}"
    assert known.startswith(
        f"{count} of {count} pairs of columns are predicted to be known in their values: {first}, "
    )
    assert known.endswith(f", and {count - 5} more.")
    said = links(few)
    # Pairs with a halved attribute are known by a trend alone; of others, noise decides.
    kinds = ("known by a trend alone", "may not be known")
    numbers = {words: int(line.split()[0]) for line in said for words in kinds if words in line}
    assert few.halved
    assert set(numbers) == set(kinds)
    assert sum(numbers.values()) <= count
    assert all(f"  {line}" in summary(few).splitlines() for line in said)


def test_if_no_pair_can_be_known_this_is_said():
    none = plan_with(ONE, expected_records=100)
    assert links(none) == [NO_LINKS]
    assert f"  {NO_LINKS}" in summary(none).splitlines()
    assert links(plan_with(schema_of(one=(4,)), expected_records=100)) == []


def test_the_least_known_dependence_is_where_noise_seldom_reaches():
    """By simulation: 200,000 draws of noise and of noise on top of that dependence, spread over the directions. The
    limit lies BEYOND_NOISE standard deviations above the mean of noise alone; of the others, about half are above it."""
    rng = np.random.default_rng(0)
    for directions in (1, 4, 25):
        noise = math.sqrt(2 / math.pi)
        signal = least_known(noise, directions) * math.sqrt(2 / math.pi) / noise
        draws = rng.standard_normal((200_000, directions))
        limit = directions + BEYOND_NOISE * math.sqrt(2 * directions)
        assert (np.square(draws).sum(axis=1) > limit).mean() < 0.02
        assert 0.5 < (np.square(draws + signal).sum(axis=1) > limit).mean() < 0.999


def test_reports_have_the_verdicts_figures():
    plan = plan_with(TWO, expected_records=20_000)
    errors = verdict(plan).errors
    out = stated(plan)
    assert out["verdict"] == str(verdict(plan))
    assert out["predicted"]["three"] == errors.three
    assert out["predicted"]["correlation"] == errors.correlation
    alone = stated(plan_with(schema_of(one=(3, 4)), expected_records=20_000))["predicted"]
    # Of two columns there are no three, and nothing across parties; JSON has no NaN.
    assert not {"three", "across", "correlation"}.intersection(alone)
    assert all(map(math.isfinite, alone.values()))


def test_a_useless_plan_is_refused_with_what_would_help():
    with pytest.raises(PlanError) as refused:
        plan_with(TWO, **USELESS, even_if_useless=False)
    sentence = str(refused.value)
    assert sentence.startswith("Useless: three columns together are predicted to be wrong for")
    assert "of the records, counted in bins" in sentence
    for remedy in ("half the bins", "half the columns", "epsilon 0.4", "2,000 records"):
        assert remedy in sentence
    assert sentence.endswith("even_if_useless=True (--even-if-useless).")
    assert plan_with(TWO, **USELESS).expected_records == 500


def test_a_remedy_is_what_the_changed_plan_is_predicted_to_give():
    """Up to the difference between a plan's noise and the shares of the budget: calibrated sketches are not quite Gaussian."""
    remedies = dict(verdict(plan_with(TWO, epsilon=0.2, expected_records=20_000)).remedies)
    more = three(TWO, epsilon=0.2, expected_records=80_000)
    stronger = three(TWO, epsilon=0.8, expected_records=20_000, delta=1e-9)
    assert remedies["80,000 records"] == pytest.approx(more, rel=0.1)
    assert remedies["epsilon 0.8"] == pytest.approx(stronger, rel=0.1)


def test_one_way_marginals_alone_are_no_better_than_independent_columns():
    judged = verdict(plan_with(ONE, **USELESS))
    assert judged.word == "useless"
    assert judged.errors.three == pytest.approx(judged.independent, rel=0.05)


def test_of_one_column_there_is_no_independence_to_compare_with():
    judged = verdict(plan_with(schema_of(one=(8,)), expected_records=10_000))
    assert judged.word == "good"
    assert judged.errors.three < 0.01


def test_parties_with_one_column_do_not_change_the_shares_of_the_others():
    """A party's only column takes all of its budget, which is no share of another party's pairs."""
    wide = schema_of(wide=(3000,) * 3, **{f"p{i}": (3,) for i in range(12)})
    plan = plan_with(wide, expected_records=10**10)
    assert _shares(plan, _outlook(plan)).one_way == pytest.approx(ONE_WAY_SHARE)
    assert all(map(math.isfinite, astuple(verdict(plan).errors)))


@pytest.mark.parametrize("encoder", ["encrypted", "scheduled-pairs"])
def test_every_encoder_for_use_has_a_verdict(encoder):
    plan = plan_with(TWO, expected_records=50_000, encoder=encoder)
    usual = three(TWO, epsilon=1.0, expected_records=50_000)
    assert verdict(plan).errors.three == pytest.approx(usual, rel=0.5)


def test_encoders_for_comparison_have_none():
    assert verdict(plan_with(TWO, **USELESS | {"encoder": "grr"})) is None


def test_the_command_shows_the_figures_then_refuses_and_writes_nothing(tmp_path):
    schema, out = tmp_path / "schema.toml", tmp_path / "plan.json"
    ONE.save(schema)
    asked = [
        *("plan", "--schema", str(schema), "--epsilon", "0.1", "--expected-records", "500"),
        *("--out", str(out)),
    ]
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "Predicted error:" in refused.output
    # Figures across parties are left out.
    assert "nan" not in refused.output
    assert "--even-if-useless" in refused.output
    assert not out.exists()
    run(*asked, "--even-if-useless")
    assert out.exists()


def test_pairs_scatter_around_any_model_by_the_roots_of_their_counts():
    """By hand: 0.3 times the root of cells / records, which no epsilon lowers."""
    schema = schema_of(one=(16,) * 3, two=(16,) * 3)
    for records in (10_000, 160_000):
        errors = verdict(plan_with(schema, expected_records=records, epsilon=50.0)).errors
        least = 0.3 * 16 / math.sqrt(records)
        assert least < errors.within < 1.5 * least
        assert least < errors.across < 1.5 * least
