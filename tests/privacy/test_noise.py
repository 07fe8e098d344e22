"""Every sampler of privacy noise against its exact distribution, tails included; and noise as a function of key and numbers.

Keys are fixed, so that each test gives the same result every time; a change of the stream fails one by chance once in a million.
"""

import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from vertimrf.errors import PrivacyError
from vertimrf.privacy import sampler
from vertimrf.privacy.events import GaussianEvent, GeometricEvent
from vertimrf.privacy.noise import FixedNoise, KeyedNoise, SystemNoise
from vertimrf.privacy.sampler import Stream, discrete_gaussian, two_sided_geometric

CHANCE = 1e-6
SIGMAS = [0.3, 1.0, 3.0, 25.5, 255.9, 256.1, 5000.0]
SCALES = [0.2, 0.7, 12.0, 900.5]


def stream(number):
    return Stream(bytes([number]) * 64)


def fits(observed, expected):
    """Chi-square goodness of fit, cells of expected count below 8 pooled with their neighbours towards the rare end."""
    order = np.argsort(-expected, kind="stable")
    observed, expected = observed[order], expected[order]
    rare = np.searchsorted(-expected, -8.0)
    if rare < len(expected):
        observed = np.append(observed[:rare], observed[rare:].sum())
        expected = np.append(expected[:rare], expected[rare:].sum())
        if expected[-1] < 8:
            observed = np.append(observed[:-2], observed[-2:].sum())
            expected = np.append(expected[:-2], expected[-2:].sum())
    return (
        len(observed) < 2
        or stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > CHANCE
    )


def counted(drawn, x):
    observed = np.bincount(drawn - x[0], minlength=x.size)
    assert observed.size == x.size
    return observed


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_noise_is_the_discrete_gaussian(sigma):
    draws = 400_000
    drawn = discrete_gaussian(stream(1), draws, sigma)
    x = np.arange(-int(9 * sigma) - 3, int(9 * sigma) + 4)
    pmf = np.exp(-0.5 * (x / sigma) ** 2)
    pmf /= pmf.sum()
    assert fits(counted(drawn, x), draws * pmf)
    # Variance, whose standard error follows from the fourth moment; and how many lie far out.
    second, fourth = (float((pmf * x.astype(float) ** k).sum()) for k in (2, 4))
    assert abs(np.square(drawn.astype(float)).mean() - second) < 5 * np.sqrt(
        (fourth - second**2) / draws
    )
    for far in (3, 4):
        beyond = float(pmf[np.abs(x) > far * sigma].sum())
        assert (
            stats.binomtest(int((np.abs(drawn) > far * sigma).sum()), draws, beyond).pvalue > CHANCE
        )


@pytest.mark.parametrize("sigma", [2.0**20, 1e9, 1e13])
def test_wide_gaussian_noise_is_gaussian_down_to_its_last_digits(sigma):
    """By quantiles, for whole numbers are too many; and by the remainders of small numbers, which are even."""
    draws = 200_000
    drawn = discrete_gaussian(stream(2), draws, sigma)
    cells = np.floor(special.ndtr((drawn + 0.5) / sigma) * 1000).astype(int)
    assert fits(np.bincount(cells, minlength=1000), np.full(1000, draws / 1000))
    for modulus in (2, 7, sampler.STEP, 3 * sampler.STEP):
        assert fits(
            np.bincount(drawn % modulus, minlength=modulus), np.full(modulus, draws / modulus)
        )


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_noise_is_two_sided(scale):
    draws = 400_000
    drawn = two_sided_geometric(stream(3), draws, scale)
    x = np.arange(-int(40 * scale) - 3, int(40 * scale) + 4)
    pmf = np.exp(-np.abs(x) / scale)
    pmf /= pmf.sum()
    assert fits(counted(drawn, x), draws * pmf)
    for far in (4, 8):
        beyond = float(pmf[np.abs(x) > far * scale].sum())
        assert (
            stats.binomtest(int((np.abs(drawn) > far * scale).sum()), draws, beyond).pvalue > CHANCE
        )


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0, 25.5, 255.9])
def test_thresholds_are_those_of_the_exact_law_and_well_within_the_margin(sigma):
    """Of another library's numbers, with 90 digits."""
    exact, exact_reach = sampler._exact_thresholds(Fraction(sigma) ** 2)
    with mpmath.workdps(90):
        mass = [
            mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
            for x in range(exact_reach + 200)
        ]
        total, below = 2 * mpmath.fsum(mass) - mass[0], mpmath.fsum(mass[exact_reach + 1 :])
        for x, threshold in zip(range(-exact_reach, exact_reach), exact, strict=True):
            below += mass[abs(x)]
            assert abs(mpmath.mpf(threshold) - below / total * mpmath.mpf(2) ** 256) < 1.01
        # What lies beyond.
        assert 2 * mpmath.fsum(mass[exact_reach + 1 :]) / total < mpmath.mpf(2) ** -236
    low, high, reach = sampler._thresholds(Fraction(sigma) ** 2)
    eighth = int(sampler.MARGIN / 8 * 2**256)
    edge = int(sampler.MARGIN * 2**256)
    for i, limit in enumerate(exact[exact_reach - reach : exact_reach + reach]):
        if edge < limit < 2**256 - edge:
            assert (int(low[i]) << 192) + 7 * eighth <= limit + (1 << 192)
            assert limit <= (int(high[i]) << 192) - 7 * eighth + (1 << 193)


@pytest.mark.parametrize("sigma", [0.3, 3.0, 25.5, 300.0])
def test_where_the_first_bits_do_not_settle_a_draw_all_of_them_do(sigma, monkeypatch):
    """However wide the margin, each draw is the same."""
    expected = discrete_gaussian(stream(5), 3000, sigma)
    with monkeypatch.context() as patched:
        patched.setattr(sampler, "MARGIN", 2.0**-8)
        sampler._thresholds.cache_clear()
        drawn = discrete_gaussian(stream(5), 3000, sigma)
    sampler._thresholds.cache_clear()
    np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("scale", SCALES)
def test_the_same_holds_for_geometric_noise(scale, monkeypatch):
    expected = two_sided_geometric(stream(6), 2000, scale)
    monkeypatch.setattr(sampler, "LOG_MARGIN", 0.2)
    np.testing.assert_array_equal(two_sided_geometric(stream(6), 2000, scale), expected)


class Given(Stream):
    """A stream whose words and further bits are given."""

    def __init__(self, words, further):
        self.given, self.further = np.array(words, np.uint64), further

    def words(self, count):
        return self.given, 0

    def number(self, word, place):
        return word << 192 | self.further


def test_a_number_at_a_threshold_is_above_it_and_one_just_below_is_not():
    exact, reach = sampler._exact_thresholds(Fraction(9))
    inside = [i for i, threshold in enumerate(exact) if 1 < threshold >> 192 < 2**64 - 2]
    assert len(inside) > 50
    for i in inside:
        word, further = exact[i] >> 192, exact[i] & (2**192 - 1)
        assert discrete_gaussian(Given([word], further), 1, 3.0)[0] == i + 1 - reach
        below = (exact[i] - 1) >> 192, (exact[i] - 1) & (2**192 - 1)
        assert discrete_gaussian(Given([below[0]], below[1]), 1, 3.0)[0] == i - reach


def test_draws_that_the_first_bits_do_not_settle_are_independent():
    """Whoever knows one draw at a threshold knows nothing of the next one, nor of one of another stream."""
    streams = [sampler.Stream(bytes([i]) * 64) for i in range(2)]
    further = {stream.number(7, place) - (7 << 192) for stream in streams for place in range(500)}
    assert len(further) == 1000
    assert all(0 <= bits < 2**192 for bits in further)


def test_the_ends_of_the_stream_are_the_farthest_values():
    low, high = (
        discrete_gaussian(Given([word], more), 1, 3.0)[0]
        for word, more in ((0, 0), (2**64 - 1, 2**192 - 1))
    )
    # 19 standard deviations and one more; of the lowest thresholds, those that are 0 in 256 bits count as reached.
    assert high == 58
    assert -high <= low < -3 * 18
    drawn = [
        sampler._geometric(Given([word], more), 1, 2.0)[0]
        for word, more in ((0, 0), (2**64 - 1, 2**192 - 1))
    ]
    # -2 log(2^-257) and -2 log(1 - 2^-257).
    assert drawn == [356, 0]


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 1e18])
def test_noise_of_no_scale_or_of_too_large_a_one_is_refused(scale):
    for law in (discrete_gaussian, two_sided_geometric):
        with pytest.raises(PrivacyError, match=r"above 0 and at most 7\.21e\+16"):
            law(stream(0), 1, scale)


def test_noise_of_hardly_any_scale_is_none():
    assert not discrete_gaussian(stream(0), 1000, 1e-6).any()
    assert not two_sided_geometric(stream(0), 1000, 1e-6).any()


def test_gaussian_noise_survives_large_values():
    values = np.array([0, 1 << 40, -(1 << 40)], np.int64)
    assert (np.abs(SystemNoise().gaussian(values, 2.0) - values) < 40).all()


def test_opendp_states_the_prices_that_the_ledger_does():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    numbers = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    number = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    for mechanism, price in (
        (numbers >> dp.m.then_gaussian(scale=7.0), GaussianEvent(7.0, 2).rho),
        (number >> dp.m.then_laplace(scale=7.0), GeometricEvent(7.0, 2).pure_epsilon),
    ):
        assert mechanism.map(d_in=2) == pytest.approx(price, rel=1e-9)


VALUES = np.arange(600).reshape(20, 30)


def noises(noise, values=VALUES, sigma=40.0, scale=30.0, exact=lambda: b"levels"):
    """One draw after the other, as noise alone."""
    gaussian = noise.gaussian(values, sigma) - values
    geometric = noise.geometrics(values, scale) - values
    return [
        gaussian.ravel(),
        geometric.ravel(),
        np.frombuffer(noise.stream(exact)(600), np.uint8).astype(int),
    ]


def unrelated(one, other):
    """Whether two samples of noise have no correlation, and are equal no more often than independent ones.

    Equal by chance are 1 in 142 (Gaussian of 40), 1 in 120 (geometric of 30) and 1 in 256 of 600; 25 are more than six standard
    deviations beyond. A correlation has a standard deviation of 0.041.
    """
    return (one == other).sum() < 25 and abs(np.corrcoef(one, other)[0, 1]) < 0.2


def test_the_same_key_and_numbers_give_the_same_noise():
    one, two = (noises(KeyedNoise(b"k" * 32)) for _ in range(2))
    for mine, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    # However the numbers lie in memory.
    turned = np.asfortranarray(VALUES.astype(np.int32))
    np.testing.assert_array_equal(
        KeyedNoise(b"k" * 32).gaussian(turned, 40.0) - VALUES, one[0].reshape(VALUES.shape)
    )


def test_another_key_gives_unrelated_noise():
    assert all(map(unrelated, noises(KeyedNoise(b"k" * 32)), noises(KeyedNoise(b"l" * 32))))


@pytest.mark.parametrize("what", ["a number", "a shape", "a scale"])
def test_one_number_that_differs_gives_unrelated_noise_everywhere_from_there_on(what):
    """Also where numbers are the same, and in all later draws, so that nobody sees where two tables differ."""
    other, more = VALUES.copy(), {}
    if what == "a number":
        other[13, 7] += 1
    elif what == "a shape":
        other = other.reshape(30, 20)
    else:
        more["sigma"] = np.nextafter(40.0, 41.0)
    assert all(
        map(unrelated, noises(KeyedNoise(b"k" * 32)), noises(KeyedNoise(b"k" * 32), other, **more))
    )


def test_other_levels_get_unrelated_bytes_and_so_does_what_follows():
    one, two = KeyedNoise(b"k" * 32), KeyedNoise(b"k" * 32)
    first, second = (
        np.frombuffer(noise.stream(exact)(600), np.uint8).astype(int)
        for noise, exact in ((one, lambda: b"a"), (two, lambda: b"b"))
    )
    assert unrelated(first, second)
    assert all(map(unrelated, noises(one), noises(two)))


def test_the_same_draw_again_is_another_one():
    noise = KeyedNoise(b"k" * 32)
    assert all(map(unrelated, noises(noise), noises(noise)))


def test_draws_of_two_laws_are_unrelated():
    """Whoever knows a count and its Gaussian noise knows nothing of geometric noise on the same count. Five standard errors."""
    zeros = np.zeros(4000, np.int64)
    gaussian = KeyedNoise(bytes(32)).gaussian(zeros, 30.0)
    geometric = KeyedNoise(bytes(32)).geometrics(zeros, 30.0)
    assert abs(np.corrcoef(gaussian, geometric)[0, 1]) < 5 / np.sqrt(len(zeros))


def test_a_stream_goes_on():
    one, two = (KeyedNoise(b"k" * 32).stream(lambda: b"levels") for _ in range(2))
    assert one(10) + one(0) + one(23) == two(33)


def test_noise_is_the_same_in_every_version():
    """What parties release again after an upgrade has to be the same bytes."""
    noise = KeyedNoise(bytes(range(32)))
    assert noise.gaussian(np.arange(6).reshape(2, 3), 100.0).ravel().tolist() == GOLDEN[0]
    assert noise.gaussian(np.arange(3), 1e6).tolist() == GOLDEN[1]
    assert noise.geometrics(np.arange(4), 100.0).tolist() == GOLDEN[2]
    assert noise.stream(lambda: b"levels")(8).hex() == GOLDEN[3]


GOLDEN = (
    [-79, -8, -88, -10, 121, -137],
    [-1316336, -922570, -1210626],
    [-33, -81, 92, 28],
    "1283bfb4a839d3c4",
)


def test_system_noise_has_a_fresh_key(monkeypatch):
    assert all(map(unrelated, noises(SystemNoise()), noises(SystemNoise())))
    # It asks for no digest of what it is added to.
    assert len(SystemNoise().stream(None)(600)) == 600
    monkeypatch.setattr(os, "urandom", lambda count: b"\x07" * count)
    np.testing.assert_array_equal(noises(SystemNoise())[0], noises(KeyedNoise(b"\x07" * 32))[0])


def test_fixed_noise_repeats_and_says_that_it_is_not_private():
    for mine, theirs in zip(noises(FixedNoise(3)), noises(FixedNoise(3)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert all(map(unrelated, noises(FixedNoise(3)), noises(FixedNoise(4))))
    assert SystemNoise.private
    assert KeyedNoise.private
    assert not FixedNoise.private
