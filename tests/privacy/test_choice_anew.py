"""The price of choices derived anew, by brute force over small instances with exact composition.

Only the published formulas are used. A choice has P(i) proportional to exp(u_i / scale), and a record
moves each score by at most its sensitivity (McSherry and Talwar, 2007). All laws of all small
instances are listed, with neighbours in every corner, and compositions are listed outcome by outcome:
later scores may depend on earlier choices. Nothing is drawn.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from vertimrf.privacy.accountant import delta
from vertimrf.privacy.choice import ChoiceEvent

# Exact sums against a grid that may only be above.
ROUNDING = 1e-12


def law(scores, scale):
    """Probabilities of the candidates."""
    weight = np.exp((np.asarray(scores, float) - max(scores)) / scale)
    return weight / weight.sum()


def hockey_stick(p, q, at):
    """Exact delta of two laws at epsilon."""
    return float(np.maximum(p - math.exp(at) * q, 0).sum())


def pairs(candidates, most, sensitivity, scale):
    """Laws of all scores up to ``most``, and of their neighbours in the corners."""
    for scores in itertools.product(range(most + 1), repeat=candidates - 1):
        here = law((0, *scores), scale)
        for moves in itertools.product((-sensitivity, sensitivity), repeat=candidates):
            yield here, law(np.add((0, *scores), moves), scale)


@functools.cache
def stated(scale, sensitivity, count, at):
    return delta([ChoiceEvent(scale, sensitivity, count)], at)


@pytest.mark.parametrize(
    "candidates, sensitivity, scale",
    [(2, 1, 1.0), (2, 1, 4.0), (3, 1, 2.0), (3, 2, 3.0), (4, 1, 1.5)],
)
def test_no_instance_costs_more_than_one_choice_states(candidates, sensitivity, scale):
    whole = 2 * sensitivity / scale
    for share in (0.05, 0.3, 0.7, 0.95):
        at = share * whole
        worst = max(hockey_stick(p, q, at) for p, q in pairs(candidates, 6, sensitivity, scale))
        assert worst <= stated(scale, sensitivity, 1, at) + ROUNDING
    # Beyond the range of the losses nothing is left.
    for p, q in pairs(candidates, 6, sensitivity, scale):
        loss = np.log(p / q)
        assert loss.max() - loss.min() <= whole + 1e-9
        assert np.abs(loss).max() <= whole + 1e-9


@pytest.mark.parametrize("whole", [0.2, 1.0, 3.0])
def test_the_price_of_one_choice_is_reached(whole):
    """Two groups of candidates, one moved up and the other down, with the worst share of each.

    With a share w of the raised ones in the first law, the odds change by the range: the law has
    losses t and t - range, where 1 = w exp(-t) + (1 - w) exp(range - t).
    """
    scale = 2 / whole
    for at in (0.1 * whole, 0.5 * whole):
        best = 0.0
        for share in np.linspace(1e-4, 1 - 1e-4, 20_001):
            t = math.log(share + (1 - share) * math.exp(whole))
            # Of the loss t - range nothing counts at epsilon of 0 or more unless t exceeds the range.
            best = max(best, share * max(1 - math.exp(at - t), 0.0))
        # Derived from the bounded range alone: the supremum over two-point laws.
        formula = (1 - math.exp((at - whole) / 2)) ** 2 / (1 - math.exp(-whole))
        assert best == pytest.approx(formula, rel=1e-3)
        given = stated(scale, 1, 1, at)
        assert formula * (1 - 1e-6) <= given <= 1.01 * formula + 1e-9


def adaptive(depth, menu, at, total=0.0):
    """Exact worst delta of choices of which each may depend on all before, by dynamic programming.

    ``max_t sum_i max(p_i - e^at q_i, 0)`` over trees: after outcome i the rest has the epsilon that is
    left, so its weight is that of the likelihood ratio so far.

    Args:
        depth: number of choices.
        menu: pairs of laws that each may be.
        at: epsilon.
        total: loss so far.
    """
    if depth == 0:
        return max(1 - math.exp(at - total), 0.0)
    return max(
        sum(
            p * adaptive(depth - 1, menu, at, total + math.log(p / q))
            for p, q in zip(here, there, strict=True)
        )
        for here, there in menu
    )


@pytest.mark.parametrize("count", [2, 3])
def test_no_tree_of_choices_costs_more_than_their_composition_states(count):
    scale = 2.0
    every = [*pairs(2, 5, 1, scale), *pairs(3, 2, 1, scale)]
    # Those that move apart; of equal pairs of laws one is enough.
    menu = list({tuple(np.round(np.concatenate(pair), 12)): pair for pair in every}.values())
    menu = [pair for pair in menu if np.ptp(np.log(pair[0] / pair[1])) > 0.9]
    menu = menu[:: max(1, len(menu) // (24 if count == 2 else 10))]
    assert len(menu) >= 10
    for at in (0.2, 0.8, 1.4):
        worst = adaptive(count, menu, at)
        assert worst <= stated(scale, 1, count, at) + ROUNDING
        # The bound is one of this size, not a trivial one.
        if at < 1:
            assert worst > 0.3 * stated(scale, 1, count, at)
