"""Every sampler of privacy noise against its exact distribution: goodness of fit, tails included."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from vertimrf.privacy.events import GaussianEvent, GeometricEvent
from vertimrf.privacy.noise import FixedNoise, SystemNoise
from vertimrf.sketches.encoder import SketchEncoder
from vertimrf.sketches.parameters import ScheduledPair, SketchPlan

# The operating system's entropy cannot be seeded: each test fails by chance once in a million runs.
CHANCE = 1e-6


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
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > CHANCE


@pytest.mark.parametrize("sigma", [0.4, 3.0, 25.5])
def test_gaussian_noise_is_the_discrete_gaussian(sigma):
    draws = 50_000
    values = np.full((draws // 100, 100), 7, np.int64)
    noise = SystemNoise().gaussian(values, sigma)
    assert noise.shape == values.shape
    assert noise.dtype == np.int64
    x = np.arange(-int(9 * sigma) - 3, int(9 * sigma) + 4)
    pmf = np.exp(-0.5 * (x / sigma) ** 2)
    observed = np.array([(noise - 7 == i).sum() for i in x])
    assert observed.sum() == draws
    assert fits(observed, draws * pmf / pmf.sum())


@pytest.mark.parametrize("scale", [0.7, 12.0])
def test_geometric_noise_is_two_sided(scale):
    draws, noise = 3000, SystemNoise()
    found = np.array([noise.geometric(11, scale) for _ in range(draws)]) - 11
    x = np.arange(-int(40 * scale) - 3, int(40 * scale) + 4)
    pmf = np.exp(-np.abs(x) / scale)
    observed = np.array([(found == i).sum() for i in x])
    assert observed.sum() == draws
    assert fits(observed, draws * pmf / pmf.sum())


def test_gaussian_noise_survives_large_values():
    values = np.array([0, 1 << 40, -(1 << 40)], np.int64)
    assert (np.abs(SystemNoise().gaussian(values, 2.0) - values) < 40).all()


@pytest.mark.parametrize(("phantoms", "floor", "ceiling"), [(1, 0, 6), (3, 1, 8), (6326, 9, 20), (1_000_000, 16, 31)])
def test_phantom_maxima_follow_their_law_into_the_tail(phantoms, floor, ceiling):
    draws = 1_000_000
    plan = SketchPlan(phantoms, floor, ceiling, (ScheduledPair(0, 1, draws // 2, 2, 2),))
    levels = SketchEncoder(plan, [0], bytes(32)).result()[0]
    observed = np.bincount(levels.ravel(), minlength=ceiling + 1)[floor:]
    assert observed.sum() == draws
    x = np.arange(floor, ceiling + 1, dtype=float)
    with np.errstate(divide="ignore"):
        cdf = np.exp(phantoms * np.log1p(-np.exp2(-x)))
    cdf[-1] = 1.0
    assert fits(observed, draws * np.diff(cdf, prepend=0.0))
    # The tail by itself: levels that fewer than one draw in a thousand reaches.
    for level in range(floor + 1, ceiling + 1):
        above = -np.expm1(phantoms * np.log1p(-np.exp2(-(level - 1.0)))) if level > 1 else 1.0
        if above < 1e-3:
            reached = int(observed[level - floor :].sum())
            assert stats.binomtest(reached, draws, above).pvalue > CHANCE


def test_opendp_states_the_zcdp_that_the_ledger_does():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    assert (space >> dp.m.then_gaussian(scale=7.0)).map(d_in=2) == pytest.approx(GaussianEvent(7.0, 2).rho, rel=1e-9)


def test_opendp_states_the_epsilon_of_geometric_noise_that_the_ledger_does():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    assert (space >> dp.m.then_laplace(scale=7.0)).map(d_in=2) == pytest.approx(GeometricEvent(7.0, 2).pure_epsilon, rel=1e-9)


def test_random_bytes_come_from_the_operating_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda count: b"\x07" * count)
    assert SystemNoise().random_bytes(5) == b"\x07" * 5


def test_fixed_noise_repeats_and_says_that_it_is_not_private():
    one, two = FixedNoise(3), FixedNoise(3)
    values = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(one.gaussian(values, 4.0), two.gaussian(values, 4.0))
    assert one.random_bytes(9) == two.random_bytes(9)
    assert SystemNoise.private
    assert not FixedNoise.private
