"""What a test from outside found of a release, and bounds of it.

Bounds are Clopper and Pearson's, at a chance of error of 1e-5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

CHANCE = 1e-5


@dataclass(frozen=True)
class Found:
    """What a test from outside found of one kind of release.

    Attributes:
        release: its kind.
        unit: "mu" or "epsilon"; "range" for choices.
        stated: what the ledger states.
        empirical: what was found.
        error: standard error of ``empirical``.
        at_least: a bound that is below the truth but for a chance of 1e-5.
    """

    release: str
    unit: str
    stated: float
    empirical: float
    error: float
    at_least: float

    @property
    def ratio(self) -> float:
        """What was found, as a part of what is stated."""
        return self.empirical / self.stated

    @property
    def broken(self) -> bool:
        """Whether more was found than is stated, beyond chance."""
        return self.at_least > self.stated


def mu_of(name: str, stated: float, one: np.ndarray, other: np.ndarray) -> Found:
    """How far apart the log ratios of two tables are."""
    spread = math.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2)
    empirical = float(one.mean() - other.mean()) / spread
    hits, alarms = int((one > 0).sum()), int((other > 0).sum())
    low = lower(hits, len(one)), 1 - lower(len(other) - alarms, len(other))
    at_least = float(special.ndtri(low[0]) - special.ndtri(low[1]))
    error = math.sqrt(2 / len(one) + empirical**2 / (4 * len(one)))
    return Found(name, "mu", stated, empirical, error, at_least)


def lower(hits: int, tries: int) -> float:
    """A bound of a probability from below, at half of the chance of error."""
    return float(stats.beta.ppf(CHANCE / 2, hits, tries - hits + 1)) if hits else 0.0


def epsilon_of(name: str, stated: float, hits: int, alarms: int, tries: int) -> Found:
    """Epsilon from how often an outcome occurs with a table and its neighbour."""
    low, high = lower(hits, tries), 1 - lower(tries - alarms, tries)
    hit, alarm = max(hits, 0.5), max(alarms, 0.5)
    error = math.sqrt(1 / hit + 1 / alarm)
    at_least = math.log(low / high) if low else -math.inf
    return Found(name, "epsilon", stated, math.log(hit / alarm), error, at_least)
