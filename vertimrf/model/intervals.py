"""Combine estimates from several draws of a model to one, with its interval.

Estimates q_1 .. q_m are from synthetic tables of :meth:`vertimrf.Model.draws`. These tables are
synthetic populations of redrawn models. So the variance B between them contains the sampling of
people and the noise of the measurements, and the variance of the mean estimate is

    T = (1 + 1/m) B,    with a t distribution of m - 1 degrees of freedom

(Raghunathan, Reiter and Rubin, 2003, for populations that are released whole). For tables that are
simple random samples of their model, they subtract the mean variance U that an analysis of one
table states, which can give a negative T. Rows here follow their model more closely than such
samples. Therefore nothing is subtracted, and intervals may be a little too wide.

Noise only adds to the sampling error of as many people as a table has rows. So T is at least U.

A fit is biased: it ends before it follows the noise, and no count falls below zero. Draws have this
bias twice. An estimate from rows of the model itself has it once, so that the difference corrects
it (bootstrap bias correction; Efron and Tibshirani, 1993, chapter 10). The second bias is not quite
the first, as the model has lost dependence already. So T also contains the variance of a uniform
distribution as wide as the correction (JCGM 100:2008, 4.3.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arguments import NUMBER, shown
from ..arrays import Floats
from ..errors import ModelError


@dataclass(frozen=True, eq=False)
class Combined:
    """An estimate from several draws.

    Attributes:
        estimate: the estimate, or one for each coefficient [shape=() or (k,), float64].
        standard_error: its standard error [shape of ``estimate``, float64].
        degrees_of_freedom: of the t distribution of (estimate - truth) / standard error.
    """

    estimate: Floats
    standard_error: Floats
    degrees_of_freedom: int

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Limits between which the truth lies with a probability.

        Args:
            level: the probability, between 0 and 1.

        Returns:
            Lower and upper limits [shape of ``estimate``, float64].

        Raises:
            ModelError: the level is not between 0 and 1.
        """
        from scipy import special

        if not (NUMBER.fits(level) and 0 < level < 1):
            raise ModelError(f"The level of an interval is between 0 and 1, not {shown(level)}.")
        half = self.standard_error * special.stdtrit(self.degrees_of_freedom, (1 + level) / 2)
        return self.estimate - half, self.estimate + half


def combine(
    estimates: Sequence[npt.ArrayLike] | Floats,
    variances: Sequence[npt.ArrayLike] | Floats,
    released: npt.ArrayLike | None = None,
) -> Combined:
    """Combine the estimates from several draws of a model (:meth:`vertimrf.Model.draws`).

    See the module for the rule. Errors of the model itself, such as a dependence that it lacks, are
    in no variance: :meth:`vertimrf.Model.trust` tells what is known.

    Args:
        estimates: one of each draw [shape=(m,)], or its coefficients [shape=(m, k)].
        variances: squared standard errors that the analysis of each draw states [as ``estimates``].
        released: recommended: the estimate from several times as many rows of the model itself (its ``sample``),
            which corrects the bias of the fit [shape=() or (k,)]. None corrects nothing.

    Returns:
        The estimate, its standard error and degrees of freedom.

    Raises:
        ModelError: fewer than two draws, shapes that differ, numbers that are not finite, or a
            negative variance.
    """
    q, u = (_numbers(values) for values in (estimates, variances))
    if q.shape != u.shape or q.ndim not in (1, 2) or len(q) < 2:
        raise ModelError(
            f"Estimates have the shape {q.shape} and variances {u.shape}; give both of two or more draws, as (m,) or (m, k)."
        )
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise ModelError("Estimates must be finite, and variances finite and not negative.")
    m = len(q)
    total = np.maximum((1 + 1 / m) * q.var(axis=0, ddof=1), u.mean(axis=0))
    mean = q.mean(axis=0)
    centre = mean if released is None else 2 * _numbers(released) - mean
    if centre.shape != mean.shape or not np.isfinite(centre).all():
        raise ModelError(
            "The released estimate has other coefficients than the draws, or is not finite."
        )
    return Combined(centre, np.sqrt(total + np.square(centre - mean) / 12), m - 1)


def _numbers(values: npt.ArrayLike | Sequence[npt.ArrayLike]) -> Floats:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            "Estimates and variances must be numbers, as many of every draw: give arrays of them."
        ) from None
