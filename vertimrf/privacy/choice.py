"""The price of a choice by the exponential mechanism.

One of several candidates is chosen with a probability proportional to exp(score / scale). One record
moves each score by at most ``sensitivity``.

**The loss lies in an interval of length** epsilon = 2 sensitivity / scale (Durfee and Rogers, 2019,
"bounded range"). Let s and s' be the scores of neighbouring tables, and Z and Z' the sums of
exp(score / scale). The loss of candidate i is (s_i - s'_i) / scale - log(Z / Z'). The first term lies
between -sensitivity / scale and sensitivity / scale, and the second is the same for all candidates.

**A pair that dominates all such choices.** Let P and Q be the laws of a choice from neighbouring
tables, with losses log(P / Q) in [t - epsilon, t]. Since Q is a distribution, t lies in
[0, epsilon]. The hockey-stick divergence at x is the mean over Q of max(P / Q - e^x, 0). This function
of P / Q is convex, and P / Q has the mean 1. So the divergence is largest if P / Q takes the ends of its
interval alone, and is then, for x in [t - epsilon, t] (Dong, Durfee and Rogers, 2020),

    (1 - e^(t - epsilon)) (1 - e^(x - t)) / (1 - e^(-epsilon)).

It is largest at t = (x + epsilon) / 2:

    H(x) = (1 - e^((x - epsilon) / 2))^2 / (1 - e^(-epsilon)),    -epsilon <= x <= epsilon.

Below -epsilon it is 1 - e^x, and above epsilon it is 0. H is the hockey-stick divergence of one pair
of laws: the loss has the density e^((x - epsilon) / 2) / (2 (1 - e^(-epsilon))) on [-epsilon, epsilon]
under P, and e^(-x) times that under Q. Both directions have the same H. A pair whose divergence
bounds those of a mechanism at all x dominates it, also in adaptive composition (Zhu, Dong and Wang,
2022, theorem 10): earlier results may decide what the candidates and their scores are.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Floats
from ..files.convert import Number
from .checks import MAX_REPETITIONS, MAX_SENSITIVITY, check_number, check_whole
from .losses import MIN_RARE, LossGrid, Mechanism, connect_the_dots

# Smallest and largest scale for a sensitivity of 1: a choice costs an epsilon of 2e-9 to 20.
MIN_SCALE, MAX_SCALE = 0.1, 1e9
# Points at which the mean square of the loss is summed.
NODES = 64
# Blocks of losses whose mass moves to their ends. It adds a relative variance of less than 10^-7.
BLOCKS = 1 << 14


class ChoiceEvent(Mechanism, frozen=True, tag="choice"):
    """A choice of one candidate by its score (exponential mechanism; McSherry and Talwar, 2007).

    P(candidate) is proportional to exp(score / scale).

    Attributes:
        scale: by how much a score must grow for the candidate to be e times as likely.
        sensitivity: largest change of a score by one record, in the score's integer units.
        count: number of such choices.
    """

    scale: Number
    sensitivity: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        check_whole("a choice's sensitivity", self.sensitivity, MAX_SENSITIVITY)
        check_whole("a choice event's count", self.count, MAX_REPETITIONS)
        least, most = self.sensitivity * MIN_SCALE, self.sensitivity * MAX_SCALE
        check_number("a choice's scale", self.scale, least, most)

    @property
    def range(self) -> float:
        """Length of the interval that the loss of one choice lies in: its pure epsilon."""
        return 2 * self.sensitivity / self.scale

    @property
    def spread(self) -> float:
        at, weight = np.polynomial.legendre.leggauss(NODES)
        density = weight * np.exp(0.5 * self.range * (at - 1)) / -math.expm1(-self.range)
        return self.range * math.sqrt(0.5 * self.range * float((density * at**2).sum()))

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        # The mass of each block moves to its two ends, so that both measures keep theirs: a share of
        # 1 / (1 + exp(-width / 2)) to the upper end.
        edges = np.linspace(-self.range, self.range, BLOCKS + 1)
        low, width = edges[:-1], np.diff(edges)
        mass = np.exp(0.5 * (low - self.range)) * np.expm1(0.5 * width) / -math.expm1(-self.range)
        upper = mass / (1 + np.exp(-0.5 * width))
        loss = np.append(low, edges[1:])
        grid = connect_the_dots(loss, np.append(mass - upper, upper), step)
        return grid, grid

    def renyi(self, orders: Floats) -> Floats:
        # K(s) = log E exp(s loss) is 0 at 0 and at -1. Its second derivative is at most range^2 / 4
        # (Hoeffding's lemma), so that K(s) <= s (s + 1) range^2 / 8 (Cesar and Rogers, 2021).
        return self.count * np.minimum(orders * self.range**2 / 8, self.range)
