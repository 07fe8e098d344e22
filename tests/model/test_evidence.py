"""Marginals that stand out: few of mere noise, and nearly all where nearly all are dependent."""

import math

import numpy as np
import pytest

from vertimrf.model.evidence import NOISE_AMONG, stand_out
from vertimrf.model.measurement import Measurement

SIGMA = 10.0
EVEN = np.full((4, 4), 100.0)


def pairs(rng, count, shift):
    """Noisy pairs, each cell off by ``shift`` standard deviations, up and down in turn."""
    off = SIGMA * shift * np.where(np.indices((4, 4)).sum(axis=0) % 2, 1.0, -1.0)
    return [
        Measurement((0, 1), (None, None), EVEN + off + SIGMA * rng.normal(size=(4, 4)), SIGMA)
        for _ in range(count)
    ]


def seen(measurements):
    return stand_out(measurements, [EVEN] * len(measurements))


def test_of_noise_alone_a_share_of_the_runs_takes_any():
    """With noise alone Benjamini and Hochberg's rate is the chance to take any; 4.5 standard errors of 400 runs."""
    rng = np.random.default_rng(0)
    any_taken = np.mean([seen(pairs(rng, 30, 0.0)).any() for _ in range(400)])
    assert any_taken < NOISE_AMONG + 4.5 * math.sqrt(NOISE_AMONG * (1 - NOISE_AMONG) / 400)


def test_noise_in_the_interaction_alone_is_not_taken_for_dependence():
    """As in estimates across parties: margins are known, and cells have the standard error that they state.

    The 16 cells have 7 degrees of freedom. The bound is that of the test above, for 100 runs.
    """
    rng = np.random.default_rng(2)

    def estimate():
        noise = rng.normal(size=(2, 8))
        noise -= noise.mean(axis=0)
        noise -= noise.mean(axis=1, keepdims=True)
        errors = SIGMA * math.sqrt(7 / 16)
        return Measurement((0, 1), (None, None), 100.0 + SIGMA * noise, errors)

    even = [np.full((2, 8), 100.0)] * 300
    any_taken = np.mean([stand_out([estimate() for _ in even], even).any() for _ in range(100)])
    assert any_taken < NOISE_AMONG + 4.5 * math.sqrt(NOISE_AMONG * (1 - NOISE_AMONG) / 100)


def test_what_is_far_from_the_model_is_taken_among_noise():
    rng = np.random.default_rng(1)
    taken = seen(pairs(rng, 5, 3.0) + pairs(rng, 95, 0.0))
    assert taken[:5].all()
    assert taken[5:].sum() <= 20


def test_many_weak_ones_let_each_other_in():
    """Each has a p-value of about 0.07: too much for one in thirty, not where all are so."""
    rng = np.random.default_rng(2)
    weak = pairs(rng, 30, 0.8)
    assert seen(weak).mean() > 0.8
    alone = Measurement((0, 1), (None, None), EVEN + SIGMA * 1.2, SIGMA)
    exact = [Measurement((0, 1), (None, None), EVEN + SIGMA * 0.9, SIGMA)] * 29
    assert not seen([alone, *exact])[0]


def test_none_of_none():
    assert seen([]).shape == (0,)


@pytest.mark.parametrize("squares", [10.0, 16.0, 30.0, 60.0])
def test_chances_are_those_of_chi_square(squares):
    """Wilson and Hilferty's root is within 2 % of the exact tail above 0.01.

    Noise of the interaction alone has 9 degrees of freedom in 16 cells.
    """
    from scipy.stats import chi2

    from vertimrf.model.evidence import _chance

    m = Measurement((0, 1), (None, None), EVEN + SIGMA * math.sqrt(squares / 16), SIGMA)
    assert _chance(m, m.squares(EVEN)) == pytest.approx(
        chi2.sf(squares * 9 / 16, 9), rel=0.02, abs=2e-4
    )
