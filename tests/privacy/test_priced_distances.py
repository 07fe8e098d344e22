"""Constants of samplers that proofs rest on: the whole distance of a draw from its law is no more than is said, or priced.

The law is summed far beyond what a sampler draws, in decimals of more digits than it has bits. So a tail that is cut early, or bits that
are saved, show here, however rare what they change is.
"""

import itertools
from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from tests.kernels.test_kernels_count_sketch import thresholds_of
from vertimrf.kernels.count_sketch import noise_table
from vertimrf.privacy import accountant, sampler
from vertimrf.privacy.count_sketch import COVERED_EPSILON, DRAW_DISTANCE, ratio_law
from vertimrf.privacy.events import BEYOND_REACH, GAUSSIAN_REACH, GaussianEvent, SketchEvent

# Words beside a threshold: double precision has 53 bits of 64.
NEAR = [
    *range(-3, 4),
    *(sign * (1 << bits) + d for bits in range(3, 13) for sign in (-1, 1) for d in (-1, 0)),
]


class Given(sampler.Stream):
    """A stream whose words and further bits are given."""

    def __init__(self, words, further):
        self.given, self.further = np.array(words, np.uint64), further

    def words(self, count):
        return self.given, 0

    def number(self, word, place):
        return word << (sampler.BITS - sampler.FIRST_BITS) | self.further


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


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 50.0, 3e4])
def test_what_double_precision_settles_of_a_geometric_draw_is_what_all_bits_say(scale):
    """At each threshold, and among the words that double precision cannot tell from its own."""
    words, thresholds = [], {}
    with localcontext() as context:
        context.prec = 120
        for k in [*range(1, 40), *range(100, 2000, 97)]:
            threshold = int((Decimal(-k) / Decimal(scale)).exp() * 2**sampler.BITS - Decimal("0.5"))
            if threshold >> (sampler.BITS - sampler.FIRST_BITS):
                thresholds[k] = threshold
    for k, threshold in thresholds.items():
        for number, drawn in ((threshold, k), (threshold + 1, k - 1)):
            word, further = divmod(number, 1 << (sampler.BITS - sampler.FIRST_BITS))
            assert sampler._geometric(Given([word], further), 1, scale)[0] == drawn
        words += [(threshold >> (sampler.BITS - sampler.FIRST_BITS)) + d for d in NEAR]
    some = [word for word in words if 0 < word < 2**sampler.FIRST_BITS - 1]
    assert len(some) > 40
    for further in (0, (1 << (sampler.BITS - sampler.FIRST_BITS)) - 1):
        stream = Given(some, further)
        exact = [sampler._exact_geometric(stream.number(word, 0), scale) for word in some]
        assert sampler._geometric(stream, len(some), scale).tolist() == exact


@pytest.mark.parametrize("sigma", [257.0, 300.5, 2.0**20])
def test_a_wide_draw_has_its_law_wherever_the_narrow_ones_meet(sigma):
    """The law of the sum of two draws, as its sampler writes it, is the wide one up to a relative difference of 2^-300."""
    wide, fine = Fraction(sigma) ** 2, Fraction(sampler.FINE**2)
    rest = (wide - fine) / sampler.STEP**2
    with localcontext() as context:
        context.prec = 150

        def mass(x, variance):
            at = Fraction(x) ** 2 / (2 * variance)
            return (Decimal(-at.numerator) / Decimal(at.denominator)).exp()

        ratios = []
        for x in (0, 1, sampler.STEP // 2 - 1, sampler.STEP // 2, sampler.STEP + 3):
            middle = round(x / sampler.STEP)
            around = range(middle - 150, middle + 151)
            both = sum(mass(y, rest) * mass(x - sampler.STEP * y, fine) for y in around)
            ratios.append(both / mass(x, wide))
        assert max(ratios) / min(ratios) - 1 < Decimal(2) ** -300


@pytest.mark.parametrize("sigma", [0.7, 2.0, 11.3, 90.0])
def test_what_lies_beyond_the_priced_gaussian_is_what_counts_as_infinite(sigma):
    reach = int(np.ceil(GAUSSIAN_REACH * sigma) + 1)
    with mpmath.workdps(60):
        masses = [
            mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
            for x in range(reach + int(40 * sigma) + 40)
        ]
        total = 2 * mpmath.fsum(masses) - masses[0]
        assert 2 * mpmath.fsum(masses[reach + 1 :]) / total <= BEYOND_REACH


def test_a_draw_of_count_sketches_costs_its_distance_at_every_epsilon_that_is_covered():
    """A mechanism that is this far from another one has 1 + exp(epsilon) times the distance in its delta."""
    law = ratio_law(3, 9.0, 128)
    assert COVERED_EPSILON >= 30
    assert law[2] >= 3 * 128 * 2.0**-127 * (1 + np.exp(30.0))


@pytest.mark.parametrize("count", [1, 1000, 1 << 20])
def test_what_counts_for_rounding_is_at_least_what_double_precision_rounds(count):
    """Each factor of a moment's power is rounded once at least."""
    (loss,) = accountant._losses([GaussianEvent(40.0 * count**0.5, count=count)], 1e-9)[0]
    assert accountant._compose([loss], 1e-9).error >= count * np.finfo(float).eps / 2


@pytest.mark.parametrize("lacking", [1e-3, 1e-6, 1e-9])
def test_outcomes_that_a_law_lacks_count_as_infinite_losses(lacking):
    masses = np.array([0.4, 0.6 - lacking])
    law = SimpleNamespace(
        atoms=(np.log(masses), np.array([0.1, np.log((1 - 0.4 * np.exp(0.1)) / 0.6)]))
    )
    for grid in SketchEvent.losses(law, 1e-3):
        assert grid.lost > 0.9 * lacking
