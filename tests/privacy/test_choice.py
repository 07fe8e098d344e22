"""The price of a choice by the exponential mechanism against the laws of choices themselves, and its sampler."""

import itertools
import math

import numpy as np
import pytest
from builders import event_from_json
from scipy import integrate, stats

from vertimrf.errors import PrivacyError
from vertimrf.files.convert import to_json
from vertimrf.privacy import sampler
from vertimrf.privacy.accountant import ORDERS, epsilon
from vertimrf.privacy.accountant import delta as composed_delta
from vertimrf.privacy.choice import ChoiceEvent
from vertimrf.privacy.events import GaussianEvent, under_replacement
from vertimrf.privacy.noise import FixedNoise
from vertimrf.privacy.sampler import Stream, exponential_choice

CHANCE = 1e-6


def law(scores, scale):
    """Probabilities of the candidates."""
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    return weights / weights.sum()


def gap(one, other, at):
    """Hockey-stick divergence, the larger direction."""
    factor = math.exp(at)
    return max(
        float(np.maximum(one - factor * other, 0).sum()),
        float(np.maximum(other - factor * one, 0).sum()),
    )


def neighbours(moved, candidates, rng):
    """Scores of neighbouring tables: at random, or two groups that move apart by as much as they may."""
    scores = rng.integers(-3 * moved, 3 * moved + 1, candidates)
    yield scores, scores + rng.integers(-moved, moved + 1, candidates)
    for up in range(1, candidates):
        change = np.where(np.arange(candidates) < up, moved, -moved)
        yield scores, scores + change
        yield np.zeros(candidates, int), change


@pytest.mark.parametrize("scale, moved", [(2.0, 1), (0.6, 1), (9.0, 2), (3.0, 3), (0.11, 1)])
def test_no_choice_tells_neighbours_apart_better_than_its_price(scale, moved):
    event, rng = ChoiceEvent(scale, moved), np.random.default_rng(5)
    assert event.range == pytest.approx(2 * moved / scale)
    for part in (0.0, 0.2, 0.5, 0.9, 1.0):
        at = part * event.range
        stated = composed_delta([event], at)
        worst = max(
            gap(law(one, scale), law(other, scale), at)
            for candidates in (2, 3, 7, 40)
            for one, other in neighbours(moved, candidates, rng)
        )
        assert worst <= stated * (1 + 1e-9) + 1e-15
        # Some choice among many costs as much, but for the steps between numbers of candidates.
        if part <= 0.5 and event.range < 5:
            assert worst >= 0.97 * stated


@pytest.mark.parametrize("scale", [1.0, 3.0, 10.0])
def test_choices_that_depend_on_earlier_ones_cost_no_more(scale):
    """The second choice's scores are the worst for the outcome of the first: all pairs of splits of the candidates."""
    candidates = 9
    splits = [
        np.where(np.arange(candidates) < up, 1, -1) for up in range(1, candidates)
    ]  # how a record moves the scores
    pairs = [(law(np.zeros(candidates), scale), law(split, scale)) for split in splits]
    for at in (0.0, 0.5 / scale, 1.5 / scale):
        stated = composed_delta([ChoiceEvent(scale, 1, 2)], at)
        for first, second in pairs:
            # By outcome of the first choice, the second that adds most to the divergence.
            total = [0.0, 0.0]
            for p, q in zip(first, second, strict=True):
                for way, (a, b) in enumerate(((p, q), (q, p))):
                    total[way] += max(
                        float(np.maximum(a * pair[way] - math.exp(at) * b * pair[1 - way], 0).sum())
                        for pair in pairs
                    )
            assert max(total) <= stated


@pytest.mark.parametrize("scale, moved", [(2.0, 1), (0.5, 1), (9.0, 4)])
def test_renyi_divergences_are_bounded(scale, moved):
    event, rng = ChoiceEvent(scale, moved, 3), np.random.default_rng(6)
    orders = ORDERS[ORDERS < 100]
    bound = event.renyi(orders) / 3
    for one, other in neighbours(moved, 12, rng):
        for p, q in itertools.permutations((law(one, scale), law(other, scale))):
            exact = np.log(np.exp(np.outer(orders, np.log(p / q))) @ q) / (orders - 1)
            assert (exact <= bound + 1e-9).all()
    # The zCDP of bounded range, and at most the pure epsilon.
    assert bound[0] == pytest.approx(orders[0] * event.range**2 / 8)
    assert event.renyi(np.array([1e6])) == pytest.approx(3 * event.range)


def test_choices_compose_with_other_events():
    choices, counts = ChoiceEvent(80.0, 1, 60), GaussianEvent(120.0, 1, 40)
    both = epsilon([choices, counts], 1e-7).epsilon
    # As a Gaussian of the same variance of the loss, which 60 choices nearly are, and never below it.
    close = epsilon([GaussianEvent(math.sqrt(0.5 / choices.rho)), counts], 1e-7).epsilon
    assert 0.97 * close < both < close * 1.01
    assert choices.rho == pytest.approx(60 * choices.range**2 / 6, rel=1e-3)
    # Beyond its range one choice has no delta.
    one = ChoiceEvent(5.0)
    assert composed_delta([one], 1.02 * one.range) < 1e-9
    assert epsilon([one], 1e-9).epsilon == pytest.approx(one.range, rel=2e-3)


def test_the_mean_square_of_the_loss_is_that_of_its_law():
    for scale in (0.1, 0.7, 40.0, 1e6):
        event = ChoiceEvent(scale)
        x = np.linspace(-event.range, event.range, 400_001)
        density = np.exp(0.5 * (x - event.range)) / (-2 * math.expm1(-event.range))
        assert integrate.trapezoid(density, x) == pytest.approx(1, rel=1e-6)
        exact = math.sqrt(integrate.trapezoid(density * x**2, x))
        assert event.spread == pytest.approx(exact, rel=1e-6)


def test_replacement_json_and_bad_parameters():
    event = ChoiceEvent(40.0, 3, 7)
    assert under_replacement(event) == ChoiceEvent(40.0, 6, 7)
    assert event_from_json(to_json(event)) == event
    for wrong, words in (
        ({"scale": 0.0}, "a choice's scale"),
        ({"scale": math.nan}, "a choice's scale"),
        ({"scale": 0.2, "sensitivity": 3}, "a choice's scale"),
        ({"scale": 2.0, "sensitivity": 0}, "a choice's sensitivity"),
        ({"scale": 2.0, "count": 0}, "a choice event's count"),
    ):
        with pytest.raises(PrivacyError, match=words[2:]):
            ChoiceEvent(**wrong)


def stream(number):
    return Stream(bytes([number]) * 64)


@pytest.mark.parametrize(
    "scores, scale",
    [
        ([0, 1, 3, -500, 2], 2.0),
        ([7], 0.3),
        ([10**15, 10**15 + 40, 10**15 - 3], 25.5),
        (list(range(300)), 40.0),
    ],
)
def test_candidates_are_chosen_as_often_as_their_scores_say(scores, scale):
    draws, bits = 20_000, stream(11)
    chosen = [exponential_choice(bits, np.array(scores), scale) for _ in range(draws)]
    observed, expected = np.bincount(chosen, minlength=len(scores)), draws * law(scores, scale)
    rare = expected < 8
    assert (observed[expected < 1e-100] == 0).all()
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum() + 1e-9)
    assert ((expected - observed) ** 2 / np.maximum(expected, 8)).sum() < stats.chi2.isf(
        CHANCE, len(expected)
    )


def test_choices_within_the_margin_are_the_same_computed_exactly(monkeypatch):
    rng = np.random.default_rng(3)
    cases = [
        (rng.integers(-50, 50, rng.integers(1, 40)), float(rng.uniform(0.3, 80)))
        for _ in range(300)
    ]
    quick = [exponential_choice(stream(4), scores, scale) for scores, scale in cases]
    monkeypatch.setattr(sampler, "CHOICE_MARGIN", 1.0)
    asked = []
    exact = sampler._exact_choice
    monkeypatch.setattr(sampler, "_exact_choice", lambda *a: asked.append(a) or exact(*a))
    assert [exponential_choice(stream(4), scores, scale) for scores, scale in cases] == quick
    assert len(asked) == len(cases)


def test_an_exact_choice_is_the_inverse_of_the_cumulative_law():
    scores, scale = [3, 0, 5], 2.0
    reached = np.cumsum(law(scores, scale))
    for share, candidate in itertools.product((0.01, 0.5, 0.99), range(3)):
        low = reached[candidate - 1] if candidate else 0.0
        at = low + share * (reached[candidate] - low)
        assert sampler._exact_choice(int(at * 2**53) << 203, scores, scale) == candidate
    assert sampler._exact_choice(2**256 - 1, scores, scale) == 2
    assert sampler._exact_choice(0, scores, scale) == 0


def test_a_choice_is_a_function_of_key_and_scores():
    scores = np.arange(1000)
    first = [FixedNoise(1).choose(scores, 1e6) for _ in range(3)]
    assert len(set(first)) == 1
    moved = {FixedNoise(1).choose(scores + shift, 1e6) for shift in range(20)}
    keyed = {FixedNoise(seed).choose(scores, 1e6) for seed in range(20)}
    assert len(moved) > 15 < len(keyed)
    noise = FixedNoise(1)
    assert len({noise.choose(scores, 1e6) for _ in range(20)}) > 15


def test_a_choice_among_nothing_is_refused():
    with pytest.raises(PrivacyError, match=r"among 1 to .* candidates, not 0"):
        FixedNoise(1).choose(np.array([], np.int64), 1.0)
    with pytest.raises(PrivacyError, match="noise scale"):
        FixedNoise(1).choose(np.array([1]), 0.0)


def test_the_margin_is_beyond_the_errors_of_double_precision():
    """Cumulative probabilities in double precision differ from those computed to 100 digits by far less."""
    rng = np.random.default_rng(8)
    for scale in (0.5, 30.0):
        scores = rng.integers(-300, 300, 2000)
        quick = np.cumsum(np.exp(-(scores.max() - scores) / scale))
        exact = np.cumsum(np.exp(-(scores.max() - scores).astype(np.longdouble) / scale))
        error = np.abs(quick / quick[-1] - exact / exact[-1]).max()
        assert error < 2.0**-10 * sampler.CHOICE_MARGIN
