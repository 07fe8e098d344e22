"""What every mechanism states: its cost, and its privacy losses on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import numpy as np

from ..arrays import Floats
from .count_sketch import log_sum

# Losses with less than this probability may count as infinite.
MIN_RARE = 1e-30
# Masses that fall short of 1 by more than this lack more than rounding errors.
LACKING = 1e-11
# Largest number of points of one event's grid; higher losses count as infinite.
MAX_POINTS = 1 << 25


@dataclass(frozen=True, eq=False)
class LossGrid:
    """A privacy-loss distribution on multiples of a grid step.

    Attributes:
        lowest: index of the first grid point; its loss is index * step.
        mass: probability of each grid point [shape=(k,), float64].
        lost: probability of an infinite loss. It is stored because 1 - sum(mass) has no digits
            below 1e-16.
    """

    lowest: int
    mass: Floats
    lost: float = 0.0


class Mechanism(
    msgspec.Struct, frozen=True, dict=True, tag_field="kind", forbid_unknown_fields=True
):
    """A mechanism that reads the data, repeated with independent randomness.

    In JSON its fields follow its ``kind``. Every event has these members:

    - ``count``: number of repetitions.
    - ``rho``: weight of all repetitions in zCDP units, half the variance of the privacy loss. Used
      for shares and first guesses.
    - ``spread``: standard deviation of the privacy loss of one repetition. It determines the grid
      step.
    - ``losses(step, rare)``: loss distributions of one repetition when a record is added and when
      it is removed, as :class:`LossGrid`. ``step`` is the grid step in units of the privacy loss.
      Losses with a probability of about ``rare`` may count as infinite.
    - ``renyi(orders)``: Rényi divergences of all repetitions, the larger direction
      [shape=(k,), float64], for orders above 1 [shape=(k,), float64].
    """

    @property
    def count(self) -> int:
        return 1

    @property
    def rho(self) -> float:
        return self.count * 0.5 * self.spread**2

    @property
    def spread(self) -> float:
        raise NotImplementedError


class Symmetric(Mechanism, frozen=True):
    """A mechanism with few outcomes, whose loss has the same distribution in both directions.

    ``atoms`` has the log probability and the loss of every outcome [both shape=(k,), float64].
    """

    @property
    def atoms(self) -> tuple[Floats, Floats]:
        raise NotImplementedError

    @property
    def spread(self) -> float:
        log_p, loss = self.atoms
        return math.sqrt(float((np.exp(log_p) * loss**2).sum()))

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        log_p, loss = self.atoms
        grid = connect_the_dots(loss, np.exp(log_p), step)
        return grid, grid

    def renyi(self, orders: Floats) -> Floats:
        log_p, loss = self.atoms
        return self.count * renyi_divergence(log_p, loss, log_p - loss, orders)


def renyi_divergence(log_p: Floats, loss: Floats, log_q: Floats, orders: Floats) -> Floats:
    """Larger of the two Rényi divergences of P = exp(log_p) and Q = exp(log_q); loss = log P/Q."""
    out = np.empty(len(orders))
    for i, order in enumerate(orders):
        forth = log_sum(log_q + order * loss) / (order - 1)
        back = log_sum(log_p - order * loss) / (order - 1)
        out[i] = max(forth, back, 0.0)
    return out


def connect_the_dots(loss: Floats, mass: Floats, step: float, lost: float = 0.0) -> LossGrid:
    """Spread each atom over its two neighbouring grid points so that both measures keep their mass.

    This is the pessimistic discretisation of Doroshenko et al. (2022). Under composition it is far
    tighter than rounding every loss up.

    Args:
        loss, mass: losses and their probabilities [both shape=(k,), float64].
        step: grid step.
        lost: probability of an infinite loss.
    """
    loss, mass = loss[mass > 0], mass[mass > 0]
    near = loss < loss.min() + step * MAX_POINTS
    if not near.all():
        lost += float(mass[~near].sum())
        loss, mass = loss[near], mass[near]
    index = np.floor(loss / step).astype(np.int64)
    # Rounding may place the offset slightly outside one step.
    offset = np.clip(loss - index * step, 0.0, step)
    above = np.expm1(-offset) / math.expm1(-step)
    lowest = int(index.min())
    size = int(index.max()) - lowest + 2
    grid: Floats = np.bincount(index - lowest, weights=mass * (1 - above), minlength=size).astype(
        np.float64
    )
    grid += np.bincount(index - lowest + 1, weights=mass * above, minlength=size)
    return LossGrid(lowest, grid, lost)


def without_rare(loss: Floats, mass: Floats, rare: float) -> tuple[Floats, Floats]:
    """Remove the largest losses, up to a total probability of ``rare``.

    The caller counts them as infinite.

    The smallest losses, up to the same probability, are raised to the next one. Neither change is
    optimistic, and both keep the grid short.
    """
    order = np.argsort(loss)
    loss, mass = loss[order], mass[order]
    first = int(np.searchsorted(np.cumsum(mass), rare))
    stop = loss.size - int(np.searchsorted(np.cumsum(mass[::-1]), rare))
    return np.maximum(loss[:stop], loss[first]), mass[:stop]
