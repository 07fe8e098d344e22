"""What published codes keep of counters: the groups as the server has them, and the law of their codes."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from ...arrays import Bytes, Floats
from ...kernels.jit import for_each
from ..release import CONTRAST_SIGNS
from .encoding import STEPS, adding, code_steps, number_sigmas
from .parameters import CountSketches

# Correlations at which the correlation of codes is computed. In between it is interpolated.
CORRELATIONS = np.sin(np.linspace(0, 0.5 * math.pi, 80))[:-1]
# Signs of two halves and the missing value in the two rows of an alternating contrast.
ALTERNATING_SIGNS = ((1.0, -1.0, 1.0), (1.0, -1.0, -1.0))
# A Gaussian is integrated on GAUSS_POINTS points, up to GAUSS_REACH standard deviations.
GAUSS_POINTS, GAUSS_REACH = 4001, 8.0


@dataclass(frozen=True, eq=False)
class CountedGroup:
    """A published group with its set sizes.

    Attributes:
        codes: published codes [shape=(rows, counters), uint8]; a row for each value, or one for the
            contrast.
        released: records of each value from its party's released figures, by which the party set
            the steps [shape=(values,), float64].
        sizes: best estimate of the records of each value [shape=(values,), float64].
        sizes_sigma: standard errors of ``sizes`` [shape=(values,), float64].
        contrasted: whether the group is published as a contrast.
        weight: by how much a record moves the counters.
        alternation: number of its Walsh function (:meth:`.CountSketches.alternation`), or 0.
    """

    codes: Bytes
    released: Floats
    sizes: Floats
    sizes_sigma: Floats
    contrasted: bool = False
    weight: int = 1
    alternation: int = 0

    @property
    def signs(self) -> Floats:
        """Signs with which records of each value add to each row [shape=(rows, values), float64]."""
        if self.alternation:
            return np.array(ALTERNATING_SIGNS)
        if self.contrasted:
            return np.array([CONTRAST_SIGNS], np.float64)
        return np.eye(len(self.sizes))


@dataclass(frozen=True, eq=False)
class _Curve:
    """How correlations of codes follow from those of Gaussian counters.

    Attributes:
        of_codes: correlation of the codes for each of CORRELATIONS [shape=(79,), float64].
        gain: correlation of a Gaussian with its own code.
    """

    of_codes: Floats
    gain: float


@functools.cache
def code_curve(bits: int) -> _Curve:
    """Compute the curve for codes of a number of bits."""
    inner = STEPS[bits] * _cuts(bits)
    code, edges, gains, powers = _quantised(bits, inner[None])
    x = np.linspace(-GAUSS_REACH, GAUSS_REACH, GAUSS_POINTS)
    # A point on a cut counts half on either side.
    weight = np.exp(-0.5 * x**2)
    weight /= weight.sum()
    average = 0.5 * (
        code[np.searchsorted(inner, x, side="left")] + code[np.searchsorted(inner, x, side="right")]
    )

    def of_codes(i: int) -> float:
        rho = CORRELATIONS[i]
        below = special.ndtr((edges - rho * x[:, None]) / math.sqrt(1 - rho**2))
        given = np.diff(below, axis=1) @ code
        return float((weight * average * given).sum()) / float(powers[0])

    return _Curve(np.array(for_each(len(CORRELATIONS), of_codes)), float(gains[0]))


def _cuts(bits: int) -> Floats:
    """Where one code ends and the next begins, in steps [shape=(codes - 1,), float64]."""
    half = 1 << (bits - 1)
    return np.arange(1 - half, half, dtype=np.float64)


def _quantised(bits: int, cuts: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """What codes keep of Gaussian counters.

    Args:
        bits: of a code.
        cuts: between codes, in standard deviations [shape=(rows, codes - 1), float64].

    Returns:
        The codes as numbers [shape=(codes,)]; their edges [shape=(rows, codes + 1)]; and per row the
        correlation of a counter with its code, and the mean square of the codes [both
        shape=(rows,)] [all float64].
    """
    code = 2.0 * np.arange(1 << bits, dtype=np.float64) + 1 - (1 << bits)
    edges = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
    power = (np.diff(special.ndtr(edges), axis=1) * code**2).sum(axis=1)
    gain = 2 * np.exp(-0.5 * cuts**2).sum(axis=1) / np.sqrt(2 * math.pi * power)
    return code, edges, gain, power


def code_moments(plan: CountSketches, group: CountedGroup) -> tuple[Floats, Floats]:
    """Gains and mean squares of a group's codes, with the steps that its party used.

    Counters are half-integers: a cut anywhere between two of them is a cut halfway.

    Args:
        plan: the sketches' parameters.
        group: the group.

    Returns:
        Per row the correlation of a counter with its code, relative to that of the best steps; and
        the mean square of its codes [both shape=(rows,), float64].
    """
    sigma = number_sigmas(plan, adding(group.sizes, group.contrasted), group.weight)[:, None]
    steps = code_steps(plan, adding(group.released, group.contrasted), group.weight)[:, None]
    *_, gain, power = _quantised(plan.bits, np.ceil(steps * _cuts(plan.bits) - 0.5) / sigma)
    return gain / code_curve(plan.bits).gain, power
