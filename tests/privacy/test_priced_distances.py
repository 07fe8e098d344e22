"""Constants of samplers that proofs rest on: the whole distance of a draw from its law is no more than is said, or priced.

The law is summed far beyond what a sampler draws, in decimals of more digits than it has bits. So a tail that is cut early, or bits that
are saved, show here, however rare what they change is.
"""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tests.kernels.test_kernels_count_sketch import thresholds_of
from vertimrf.kernels.count_sketch import noise_table
from vertimrf.privacy import sampler
from vertimrf.privacy.count_sketch import DRAW_DISTANCE

# Standard deviations to which laws are summed: the rest is below 2^-300.
FAR = 21


def distance(drawn, whole, variance, first):
    """Total variation distance of a law that is given by whole numbers of ``1 / whole`` from a discrete Gaussian.

    Args:
        drawn: by value, how often it is drawn.
        whole: the sum.
        variance: of the Gaussian, a fraction.
        first: the least value that is drawn; the others follow in steps of one.
    """
    with localcontext() as context:
        context.prec = 140
        exponent = Decimal(-variance.denominator) / (2 * Decimal(variance.numerator))
        beyond = int(FAR * float(variance) ** 0.5) + 1
        values = [first - beyond + i for i in range(len(drawn) + 2 * beyond)]
        masses = [(exponent * (Decimal(v.numerator) / v.denominator) ** 2).exp() for v in values]
        total, gap = sum(masses), Decimal(0)
        for i, mass in enumerate(masses):
            at = i - beyond
            there = drawn[at] if 0 <= at < len(drawn) else 0
            gap += abs(Decimal(there) / Decimal(whole) - mass / total)
        return float(gap / 2)


@pytest.mark.parametrize("variance", [1.0, 4.0, 37.5])
def test_the_noise_of_count_sketches_is_as_near_to_its_law_as_is_priced(variance):
    noise = noise_table(variance)
    edges = [0, *thresholds_of(noise), 1 << 144]
    drawn = [after - before for before, after in itertools.pairwise(edges)]
    first = Fraction(noise.lowest, 2)
    assert distance(drawn, 1 << 144, Fraction(variance), first) < DRAW_DISTANCE


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(123, 7)])
def test_draws_of_the_sampler_are_within_2_to_the_minus_230_of_their_law(variance):
    thresholds, reach = sampler._exact_thresholds.__wrapped__(variance)
    edges = [0, *thresholds, 1 << 256]
    drawn = [after - before for before, after in itertools.pairwise(edges)]
    assert distance(drawn, 1 << 256, variance, Fraction(-reach)) < 2.0**-230


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(2000)])
def test_what_double_precision_settles_is_what_the_exact_thresholds_say(variance):
    """Every exact threshold lies where a draw is not settled, also those that the double-precision table lacks."""
    low, high, reach = sampler._thresholds.__wrapped__(variance)
    exact, exact_reach = sampler._exact_thresholds.__wrapped__(variance)
    edge = int(sampler.MARGIN * 2**sampler.FIRST_BITS)
    for value, threshold in enumerate(exact, -exact_reach):
        word = threshold >> (sampler.BITS - sampler.FIRST_BITS)
        if edge <= word < 2**sampler.FIRST_BITS - edge:
            assert -reach <= value < reach
            assert low[value + reach] <= np.uint64(word) <= high[value + reach]
