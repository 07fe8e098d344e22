"""Tell marginals whose dependence stands out from those that noise alone explains.

Among many marginals some are far from independence by noise. The procedure of Benjamini and
Hochberg (1995) takes the marginals with the smallest p-values, as many as let the expected share of
noise among them stay at ``NOISE_AMONG``. If no marginal has dependence, mostly none is taken; if
nearly all have, nearly all are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Flags, Floats
from .measurement import Measurement, squares

# Expected share of marginals of mere noise among those that are taken.
NOISE_AMONG = 0.5


def stand_out(measurements: Sequence[Measurement], expected: Sequence[Floats]) -> Flags:
    """Whether each marginal stands out from a model among all of them.

    Args:
        measurements: the marginals.
        expected: the model's counts [each shaped as its measurement].

    Returns:
        One truth value for each measurement [shape=(measurements,), bool].
    """
    apart = squares(measurements, expected).tolist()
    chances = np.array([_chance(m, each) for m, each in zip(measurements, apart, strict=True)])
    return smallest(chances, NOISE_AMONG, len(chances))


def smallest(chances: Floats, rate: float, every: int) -> Flags:
    """The p-values that the procedure of Benjamini and Hochberg takes.

    Args:
        chances: p-values [shape=(n,), float64].
        rate: expected share of chance among those that are taken.
        every: number of hypotheses, n or more. Those without a p-value have 1.

    Returns:
        Whether each is taken [shape=(n,), bool].
    """
    order = np.argsort(chances, kind="stable")
    limits = rate * np.arange(1, len(order) + 1) / max(every, 1)
    below = np.flatnonzero(chances[order] <= limits)
    out = np.zeros(len(order), np.bool_)
    out[order[: below[-1] + 1 if below.size else 0]] = True
    return out


def upper_tail(mean_square: float, degrees: float) -> float:
    """Probability that a chi-square is as large, by the cube root that is nearly Gaussian (Wilson and
    Hilferty, 1931).

    Args:
        mean_square: the chi-square over its degrees of freedom.
        degrees: of freedom.
    """
    spread = 2 / (9 * degrees)
    return 0.5 * math.erfc((mean_square ** (1 / 3) - 1 + spread) / math.sqrt(2 * spread))


def _chance(m: Measurement, apart: float) -> float:
    """Probability that noise alone is so far from a model (:func:`.squares`).

    The sum of squares has the mean of a chi-square of as many degrees of freedom as there are cells,
    but the spread of fewer: (u - 1) (v - 1) for a pair. Cells of an estimate across parties have no
    noise besides that of the interaction, because they are adjusted to known margins. Noise of a
    counted pair's margins is shared with the model.

    A contrast of a single value is no measurement: nothing is far from any model.
    """
    if not m.dimensions:
        return 1.0
    return upper_tail(apart / m.dimensions, m.directions)
