"""Events: what each mechanism of a run may reveal about one record, as exact privacy-loss distributions.

Neighbouring tables differ by adding or removing one record. Every event gives the same three things: its loss distribution
on a grid, in both directions and never optimistic; its Rényi divergences; and ``rho``, its weight in zCDP units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from ..errors import PrivacyError
from .count_sketch import RARE, REACH, backward_renyi, excess, forward_renyi, log_sum, ratio_law
from .person_sketch import MIN_BUCKETS, MIN_VARIANCE_PER_VALUE, person_excess, person_law, person_renyi

__all__ = [
    "CountSketchEvent",
    "Event",
    "GRREvent",
    "GaussianEvent",
    "GeometricEvent",
    "LossGrid",
    "SketchEvent",
    "ThresholdEvent",
    "event_from_json",
    "event_to_json",
    "under_replacement",
]

Floats = npt.NDArray[np.float64]

# Noise values on either side that a Gaussian's loss is computed from one by one.
MAX_NOISE_POINTS = 1 << 13
# Standard deviations of a Gaussian's noise that are covered, and the probability of what lies beyond.
GAUSSIAN_REACH, BEYOND_REACH = 12.0, 4e-33
# Losses that have less than this probability may always count as infinite.
MIN_RARE = 1e-30
# A law whose masses lack more than this to 1 lacks more than rounding errors.
LACKING = 1e-11
# Points of one event's grid; losses further up count as infinite.
MAX_POINTS = 1 << 25
# Bounds within which every formula here keeps its digits; all are far beyond any use.
MIN_SCALE, MAX_SCALE = 1e-6, 1e100
MIN_EPSILON, MAX_EPSILON = 1e-12, 1e4
MAX_REPETITIONS = 10**9
MAX_PHANTOMS = 10**12
MAX_SENSITIVITY = 10**9
MAX_LEVEL = 1 << 16
# Outcomes of a sketch event, and sums of a count sketch's noise, that are computed one by one.
MAX_ATOMS = 1 << 17
MAX_SUMS, MAX_PERSON_SUMS = 160_000, 20_000
MAX_ATTRIBUTES = 10_000
MIN_COUNT_VARIANCE, MAX_COUNT_VARIANCE, MAX_GROUPS_PER_VARIANCE = 4.0, 1e6, 8.0
MAX_BUCKETS = 1 << 15
# Records of a person that count sketches are priced for.
MAX_PERSON_RECORDS = 64


@dataclass(frozen=True, eq=False)
class LossGrid:
    """A privacy-loss distribution on multiples of a grid step.

    Attributes:
        lowest: index of the first grid point (the loss is index * step).
        mass: probability of each grid point [float64].
        lost: probability of an infinite loss. It is not what ``mass`` lacks to 1, which tells nothing below 1e-16.
    """

    lowest: int
    mass: Floats
    lost: float = 0.0


class Event(Protocol):
    """A mechanism that reads the data, repeated ``count`` times with independent randomness."""

    @property
    def count(self) -> int: ...

    @property
    def rho(self) -> float:
        """All repetitions together, in zCDP units (half the variance of the privacy loss); sets shares and first guesses."""

    @property
    def spread(self) -> float:
        """Standard deviation of one repetition's privacy loss; sets the grid."""

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        """One repetition's losses, a record added and a record removed, on multiples of ``step``. Losses of a probability of
        about ``rare`` may count as infinite."""

    def renyi(self, orders: Floats) -> Floats:
        """Rényi divergence of all repetitions at each order, the larger direction."""


@dataclass(frozen=True)
class GaussianEvent:
    """Integer queries with discrete Gaussian noise (Canonne, Kamath and Steinke, 2020).

    Attributes:
        sigma: noise parameter, in the query's integer units.
        sensitivity: how far one record can move one count, an integer in the same units. A marginal has 1: a record moves
            one cell by 1, and the noise of the other cells cancels from the loss.
        count: number of such queries.
    """

    sigma: float
    sensitivity: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        _check_whole("a Gaussian event's sensitivity", self.sensitivity, MAX_SENSITIVITY)
        _check_whole("a Gaussian event's count", self.count, MAX_REPETITIONS)
        least, most = self.sensitivity * MIN_SCALE, self.sensitivity * MAX_SCALE
        _check_number("a Gaussian event's sigma", self.sigma, least, most)

    @property
    def rho(self) -> float:
        return self.count * 0.5 * (self.sensitivity / self.sigma) ** 2

    @property
    def spread(self) -> float:
        return self.sensitivity / self.sigma

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        reach = float(math.ceil(GAUSSIAN_REACH * self.sigma) + 1)
        if reach <= MAX_NOISE_POINTS:
            noise = np.arange(-reach, reach + 1, dtype=np.float64)
            mass = np.exp(-0.5 * (noise / self.sigma) ** 2)
            mass /= mass.sum()
        else:
            # Blocks of noise values, each split between its least and its largest loss so that both measures keep their mass, or
            # more goes up: a half, and a quarter of how much the logarithms of density and loss rise within the block. The masses
            # are those of the rounded continuous Gaussian, of which the discrete one's exceed none by more than 1 / (24 sigma^2).
            edges = np.linspace(-reach, reach + 1, 2 * MAX_NOISE_POINTS + 1).round()
            z = (edges - 0.5) / self.sigma
            low, high = z[:-1], z[1:]
            mass = np.where(low > 0, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))
            mass *= 1 + 0.05 / self.sigma**2
            noise = np.append(edges[:-1], edges[1:] - 1)
            upper = np.minimum(0.5 + 0.25 * (high - low) * (np.maximum(-low, 0.0) + self.spread), 1.0)
            mass = np.append((1 - upper) * mass, upper * mass)
        loss = self.sensitivity * (2 * noise + self.sensitivity) / (2 * self.sigma**2)
        grid = connect_the_dots(loss, mass, step, BEYOND_REACH)
        return grid, grid

    def renyi(self, orders: Floats) -> Floats:
        return orders * self.rho


@dataclass(frozen=True)
class SketchEvent:
    """Geometric sketches under independent keys, with phantoms, floor and ceiling.

    Under one key a record touches ``attributes_per_key`` sketches with the same level. With m the lowest of the touched
    sketches' levels and s how many lie at m, the likelihood ratio present / absent is F(m-1) + f(m) (G(m)/g(m))^s, with F, f
    the law of one level and G, g that of max(floor, phantoms), both clipped. With no other record present this is exact, and
    any other table is a function of it (post-processing).

    Attributes:
        phantoms: phantom records per sketch.
        floor, ceiling: published levels lie within.
        keys: independent hash keys.
        gamma: a level exceeds k with probability (1 + gamma)^-k.
        attributes_per_key: sketches a record touches under one key: 2 for scheduled pairs, all d for the published encoder.
    """

    phantoms: int
    floor: int
    ceiling: int
    keys: int
    gamma: float = 1.0
    attributes_per_key: int = 2

    def __post_init__(self) -> None:
        _check_whole("a sketch event's number of phantoms", self.phantoms, MAX_PHANTOMS)
        _check_whole("a sketch event's number of keys", self.keys, MAX_REPETITIONS)
        _check_whole("a sketch event's number of attributes per key", self.attributes_per_key, MAX_ATTRIBUTES)
        # Levels start at 1: a ceiling of 1 would publish the same whatever the data.
        if self.attributes_per_key * (self.ceiling - self.floor + 1) > MAX_ATOMS:
            raise PrivacyError(
                f"Sketches of {self.attributes_per_key} attributes per key on levels {self.floor} to {self.ceiling} have too "
                "many outcomes to price: take fewer levels."
            )
        _check_whole("a sketch event's ceiling", self.ceiling, MAX_LEVEL, least=2)
        _check_whole("a sketch event's floor", self.floor, MAX_LEVEL, least=0)
        if not self.floor < self.ceiling:
            raise PrivacyError(f"A sketch's floor {self.floor} must be below its ceiling {self.ceiling}.")
        _check_number("a sketch event's gamma", self.gamma, 1e-6, 1e6)

    @property
    def count(self) -> int:
        return self.keys

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """Log probability under "absent" and log likelihood ratio of every (m, s) that can occur."""
        log_base = math.log1p(self.gamma)
        levels = np.arange(self.floor, self.ceiling + 1, dtype=np.float64)
        # Differences of nearby exponentials are taken through expm1, so that the high levels' tiny masses keep their digits.
        exceeds = np.exp(-levels * log_base)
        exceeds[-1] = 0.0
        pmf = np.concatenate([1 - exceeds[:1], exceeds[:-1] - exceeds[1:]])
        with np.errstate(divide="ignore"):
            log_pmf = np.log(pmf)
            log_cdf = np.log1p(-exceeds)
            log_below = np.concatenate([[-np.inf], log_cdf[:-1]])
            log_phantom_cdf = self.phantoms * log_cdf
            above = -np.expm1(log_phantom_cdf)
            phantom_pmf = np.concatenate([np.exp(log_phantom_cdf[:1]), above[:-1] - above[1:]])
            log_phantom_pmf, log_above = np.log(phantom_pmf), np.log(above)
        # A level that no phantom maximum reaches in double precision has no probability under "absent".
        reached = np.isfinite(log_phantom_pmf)
        d = self.attributes_per_key
        probabilities, ratios = [], []
        for s in range(1, d + 1):
            can = reached & (np.isfinite(log_above) | (s == d))
            ways = math.log(math.comb(d, s))
            others = (d - s) * log_above[can] if s < d else 0.0
            probabilities.append(ways + s * log_phantom_pmf[can] + others)
            high = log_pmf[can] + s * (log_phantom_cdf[can] - log_phantom_pmf[can])
            ratios.append(np.logaddexp(log_below[can], high))
        log_p, log_ratio = np.concatenate(probabilities), np.concatenate(ratios)
        possible = np.isfinite(log_ratio)
        return log_p[possible], log_ratio[possible]

    @cached_property
    def rho(self) -> float:
        log_p, log_ratio = self.atoms
        return float(self.keys * 0.5 * (np.exp(log_p + log_ratio) * log_ratio**2).sum())

    @property
    def spread(self) -> float:
        return math.sqrt(2 * self.rho / self.keys)

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        log_p, log_ratio = self.atoms
        out = []
        for loss, mass in ((log_ratio, np.exp(log_p + log_ratio)), (-log_ratio, np.exp(log_p))):
            lacking = 1 - float(mass.sum())
            lost = rare + (lacking if lacking > LACKING else 0.0)
            out.append(connect_the_dots(*_without_rare(loss, mass, rare), step, lost))
        return out[0], out[1]

    def renyi(self, orders: Floats) -> Floats:
        log_p, log_ratio = self.atoms
        return self.keys * _renyi(log_p + log_ratio, log_ratio, log_p, orders)


@dataclass(frozen=True)
class CountSketchEvent:
    """Count sketches of ``groups`` values of every record, all under the same secret buckets and signs, with discrete Gaussian
    noise; see :mod:`vertimrf.privacy.count_sketch`.

    Attributes:
        groups: values that a record has, of all parties together; one with a weight, as often.
        variance: parameter of the noise of each number, over its weight; at least 4, and so much that the ratios of a bucket have
            a range that a grid can hold.
        buckets: numbers of each value in a repetition.
        repetitions: independent ones.
        records: that a person has at most, which neighbours differ by (:mod:`vertimrf.privacy.person_sketch`).
    """

    groups: int
    variance: float
    buckets: int
    repetitions: int
    records: int = 1

    def __post_init__(self) -> None:
        _check_whole("a count sketch's number of groups", self.groups, MAX_ATTRIBUTES)
        _check_whole("a count sketch's number of buckets", self.buckets, MAX_BUCKETS)
        _check_whole("a count sketch's number of repetitions", self.repetitions, MAX_REPETITIONS)
        least = max(MIN_COUNT_VARIANCE, self.groups / MAX_GROUPS_PER_VARIANCE)
        _check_whole("a count sketch's records of a person", self.records, MAX_PERSON_RECORDS)
        if self.records > 1:
            least = max(least, MIN_VARIANCE_PER_VALUE * self.groups * self.records)
            _check_whole("a count sketch's buckets, with several records of a person,", self.buckets, MAX_BUCKETS, MIN_BUCKETS)
        _check_number("a count sketch's noise variance", self.variance, least, MAX_COUNT_VARIANCE)
        sums = REACH * math.sqrt(self.groups * self.variance) + self.groups
        if sums > (MAX_SUMS if self.records == 1 else MAX_PERSON_SUMS):
            raise PrivacyError(
                f"Count sketches of {self.groups} groups with a noise variance of {self.variance:g} have too many outcomes to "
                "price: take less noise, or fewer groups."
            )

    @property
    def count(self) -> int:
        return self.repetitions

    @property
    def rho(self) -> float:
        return self.repetitions * 0.5 * self.spread**2

    @property
    def spread(self) -> float:
        if self.records > 1:
            return math.sqrt(person_excess(self.groups, self.variance, self.buckets, self.records))
        # With little noise the chi-square is far above the variance of the loss, which is at most that of a known bucket.
        known = self.groups / self.variance
        return math.sqrt(min(excess(self.groups, self.variance) / self.buckets, known * (1 + known / 4)))

    @property
    def law(self) -> tuple[Floats, Floats, float]:
        """Likelihood ratios of a repetition, their probabilities without the record, and what those leave out."""
        return self._law(RARE)

    @property
    def known_hashes(self) -> GaussianEvent:
        """All repetitions against somebody who knows the buckets and signs; exact for one record.

        A record then adds a known w or -w to a known number of every group of weight w. The noise of that number has variance
        w kappa, and what other records add is the same with and without this one. With Z_1, Z_2, ... the noise of the numbers
        that the record moves, each in the direction that it moves it, all of them together have the privacy loss

            sum of (2 w_i Z_i + w_i^2) / (2 w_i kappa) = (2 S + N) / (2 kappa),    S = sum of Z_i,    N = sum of w_i.

        The Z_i are half-integers and all weights are odd, so S is a whole number where N is even; its law is the discrete
        Gaussian of variance N kappa but for a factor of exp(10 N exp(-pi^2 kappa)) (see :func:`~.count_sketch.bucket_ratio`).
        That is the loss of one integer query of sensitivity N with noise of variance N kappa. Where N is odd, 1 is added to it,
        which costs more. Draws have their law but for 2^-144 in each probability, which changes the loss by less than 1e-8, but
        for a probability of 1e-20.

        K records of a person move the numbers most, in Euclidean length, if they share values, buckets and signs: the loss is
        K (2 S + K N) / (2 kappa), that of a sensitivity of K N. A shorter shift follows from this one by scaling and further
        noise, so this bounds the loss at any hashes.
        """
        numbers = self.groups * self.repetitions
        times = -(-self.records * (numbers + 1) // MAX_SENSITIVITY)
        each = -(-numbers // times)
        each += each % 2
        return GaussianEvent(math.sqrt(each * self.variance), self.records * each, times)

    def _law(self, rare: float) -> tuple[Floats, Floats, float]:
        if self.records > 1:
            return person_law(self.groups, self.variance, self.buckets, self.records, rare)
        return ratio_law(self.groups, self.variance, self.buckets, rare)

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        ratio, mass, lost = self._law(max(rare, RARE))
        loss = np.log(ratio)
        return connect_the_dots(loss, mass * ratio, step, lost), connect_the_dots(-loss, mass, step, lost)

    def renyi(self, orders: Floats) -> Floats:
        if self.records > 1:
            return self.repetitions * person_renyi(
                self.law, self.groups, self.variance, self.buckets, self.records, orders, self.rho
            )
        forth = forward_renyi(self.groups, self.variance, self.buckets, orders, self.rho)
        back = backward_renyi(self.groups, self.variance, self.buckets, orders, self.rho)
        out: Floats = self.repetitions * np.maximum(forth, back)
        return out


@dataclass(frozen=True)
class GeometricEvent:
    """Integer counts with two-sided geometric noise, also called discrete Laplace: P(x) proportional to exp(-|x| / scale).

    One record moves one count of each query by at most ``sensitivity``.

    Attributes:
        scale: of the noise, in the query's integer units.
        sensitivity: how far one record can move one count, in the same units.
        count: number of such queries.
    """

    scale: float
    sensitivity: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        # Every noise value within the sensitivity is an atom of its own.
        _check_whole("a geometric event's sensitivity", self.sensitivity, 1 << 20)
        _check_whole("a geometric event's count", self.count, MAX_REPETITIONS)
        least, most = self.sensitivity * MIN_SCALE, self.sensitivity * MAX_SCALE
        _check_number("a geometric event's scale", self.scale, least, most)

    @property
    def pure_epsilon(self) -> float:
        """The largest loss of all queries together: epsilon at a delta of 0."""
        return self.count * self.sensitivity / self.scale

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """Log probability and privacy loss of every noise value, those up to 0 and from the sensitivity on in one each."""
        x = np.arange(self.sensitivity + 1, dtype=np.float64)
        log_norm = math.log1p(math.exp(-1 / self.scale))
        log_p = -x / self.scale - log_norm
        log_p[1:-1] += math.log(-math.expm1(-1 / self.scale))
        return log_p, (self.sensitivity - 2 * x) / self.scale

    @property
    def rho(self) -> float:
        return self.count * 0.5 * self.spread**2

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
        return self.count * _renyi(log_p, loss, log_p - loss, orders)


@dataclass(frozen=True)
class ThresholdEvent:
    """Counts of whatever values occur, with two-sided geometric noise, released where they reach a threshold (a stability
    histogram: Korolova et al., 2009; OpenDP's ``make_laplace_threshold``).

    One person adds up to ``sensitivity`` to all counts together. Values that others have too cost what the noise costs. A value
    that nobody else has may show itself: with k of the person's records it does with probability P(noise >= threshold - k). The
    sum over such values is convex in how the records are dealt to them, hence largest for one value or for as many as records.

    Attributes:
        scale: of the noise.
        threshold: least noisy count that is released.
        sensitivity: how many records one person has at most, each with one value.
    """

    scale: float
    threshold: int
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _check_whole("a threshold event's sensitivity", self.sensitivity, 1 << 20)
        _check_number("a threshold event's scale", self.scale, self.sensitivity * MIN_SCALE, self.sensitivity * MAX_SCALE)
        _check_whole("a threshold event's threshold", self.threshold, 1 << 62, least=self.sensitivity + 1)

    @property
    def count(self) -> int:
        return 1

    @property
    def noise(self) -> GeometricEvent:
        """The counts of values that others have too."""
        return GeometricEvent(self.scale, self.sensitivity)

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at :attr:`exposed`."""
        return self.noise.pure_epsilon

    @property
    def exposed(self) -> float:
        """Probability that a value shows that one person alone has: the delta."""
        one = -(self.threshold - self.sensitivity) / self.scale
        each = math.log(self.sensitivity) - (self.threshold - 1) / self.scale
        return math.exp(max(one, each) - math.log1p(math.exp(-1 / self.scale)))

    @staticmethod
    def least_threshold(scale: float, exposed: float, sensitivity: int = 1) -> int:
        """The least threshold at which no more than ``exposed`` is."""
        spare = -scale * (math.log(exposed) + math.log1p(math.exp(-1 / scale)))
        return max(math.ceil(sensitivity + spare), math.ceil(1 + spare + scale * math.log(sensitivity)), sensitivity + 1)

    @property
    def rho(self) -> float:
        return self.noise.rho

    @property
    def spread(self) -> float:
        return self.noise.spread

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        # What an exposed value adds to any divergence of the noise is at most its probability: an infinite loss.
        added, removed = (replace(grid, lost=grid.lost + self.exposed) for grid in self.noise.losses(step, rare))
        return added, removed

    def renyi(self, orders: Floats) -> Floats:
        # A loss that may be infinite has none.
        return np.full(len(orders), math.inf)


@dataclass(frozen=True)
class GRREvent:
    """Every row published through generalised randomised response, attribute by attribute.

    A value is kept with probability e^eps / (e^eps + u - 1) and otherwise replaced by one of the u - 1 others. As many rows
    go out as records came in, so neighbouring tables differ by *replacing* one record; adding or removing one would show.

    Attributes:
        epsilon: local epsilon of each attribute.
        sizes: number of values of each attribute; those with one value reveal nothing.
    """

    epsilon: float
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        if len(self.sizes) > MAX_ATTRIBUTES:
            raise PrivacyError(f"Randomised responses have up to {MAX_ATTRIBUTES:,} attributes, not {len(self.sizes):,}.")
        _check_number("a randomised response's epsilon", self.epsilon, MIN_EPSILON, MAX_EPSILON)
        for size in self.sizes:
            _check_whole("a randomised response's number of values", size, MAX_LEVEL)
        if not any(size > 1 for size in self.sizes):
            raise PrivacyError("A randomised-response event needs an attribute of at least 2 values.")

    @property
    def count(self) -> int:
        return 1

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """Log probability and loss (a multiple of epsilon, exact) of a row whose values all change with the record."""
        mass = np.ones(1)
        changing = [size for size in self.sizes if size > 1]
        for size in changing:
            other = 1 / (math.exp(self.epsilon) + size - 1) if self.epsilon < 700 else 0.0
            mass = np.convolve(mass, [other, (size - 2) * other, 1 - (size - 1) * other])
        loss = np.arange(-len(changing), len(changing) + 1, dtype=np.float64) * self.epsilon
        possible = mass > 0
        return np.log(mass[possible]), loss[possible]

    @property
    def rho(self) -> float:
        return 0.5 * self.spread**2

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
        return _renyi(log_p, loss, log_p - loss, orders)


def under_replacement(event: Event) -> Event:
    """The event where neighbours differ by replacing one record: a removal and an addition, so twice the sensitivity.

    Raises:
        PrivacyError: sketches, whose two steps have no such form.
    """
    match event:
        case GaussianEvent(sigma=sigma, sensitivity=sensitivity, count=count):
            return GaussianEvent(sigma, 2 * sensitivity, count)
        case GeometricEvent(scale=scale, sensitivity=sensitivity, count=count):
            return GeometricEvent(scale, 2 * sensitivity, count)
        case ThresholdEvent(scale=scale, threshold=threshold, sensitivity=sensitivity):
            return ThresholdEvent(scale, threshold, 2 * sensitivity)
        case GRREvent():
            return event
    raise PrivacyError(f"A {type(event).__name__} has no price for replacing a record; use add or remove.")


def _renyi(log_p: Floats, loss: Floats, log_q: Floats, orders: Floats) -> Floats:
    """Larger of the two Rényi divergences of a finite pair with P = exp(log_p), Q = exp(log_q), loss = log P/Q."""
    out = np.empty(len(orders))
    for i, order in enumerate(orders):
        forth = log_sum(log_q + order * loss) / (order - 1)
        back = log_sum(log_p - order * loss) / (order - 1)
        out[i] = max(forth, back, 0.0)
    return out


def connect_the_dots(loss: Floats, mass: Floats, step: float, lost: float = 0.0) -> LossGrid:
    """Spread each atom over its two neighbouring grid points so that both measures keep their mass.

    This is the pessimistic discretisation of Doroshenko et al. (2022), for a distribution of finitely many losses: far
    tighter under composition than rounding every loss up. ``lost`` is the probability of an infinite loss.
    """
    loss, mass = loss[mass > 0], mass[mass > 0]
    near = loss < loss.min() + step * MAX_POINTS
    if not near.all():
        lost += float(mass[~near].sum())
        loss, mass = loss[near], mass[near]
    index = np.floor(loss / step).astype(np.int64)
    # Rounding may leave the remainder a hair outside one step.
    offset = np.clip(loss - index * step, 0.0, step)
    above = np.expm1(-offset) / math.expm1(-step)
    lowest = int(index.min())
    size = int(index.max()) - lowest + 2
    grid: Floats = np.bincount(index - lowest, weights=mass * (1 - above), minlength=size).astype(np.float64)
    grid += np.bincount(index - lowest + 1, weights=mass * above, minlength=size)
    return LossGrid(lowest, grid, lost)


def _without_rare(loss: Floats, mass: Floats, rare: float) -> tuple[Floats, Floats]:
    """Atoms without the largest losses, as many as together have less than ``rare``: they count as infinite.

    The smallest losses, as many, are raised to the next. Both are never optimistic, and keep the grid short.
    """
    order = np.argsort(loss)
    loss, mass = loss[order], mass[order]
    first = int(np.searchsorted(np.cumsum(mass), rare))
    stop = loss.size - int(np.searchsorted(np.cumsum(mass[::-1]), rare))
    return np.maximum(loss[:stop], loss[first]), mass[:stop]


def _check_whole(what: str, value: int, most: int, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        bound = f"at most {most:,}" if isinstance(value, int) and value > most else f"at least {least}"
        raise PrivacyError(f"{what[0].upper()}{what[1:]} must be a whole number of {bound}, not {value}.")


def _check_number(what: str, value: float, least: float, most: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise PrivacyError(f"{what[0].upper()}{what[1:]} must be a number from {least:g} to {most:g}, not {value}.")


KINDS: Mapping[str, type] = {
    "count-sketch": CountSketchEvent,
    "gaussian": GaussianEvent,
    "geometric": GeometricEvent,
    "grr": GRREvent,
    "sketches": SketchEvent,
    "threshold": ThresholdEvent,
}


def event_to_json(event: Event) -> dict[str, Any]:
    """An event as JSON-able fields with its kind."""
    for kind, cls in KINDS.items():
        if type(event) is cls:
            named = asdict(event)  # type: ignore[call-overload]
            if named.get("records") == 1:
                del named["records"]
            return {"kind": kind, **named}
    raise PrivacyError(f"An event of type {type(event).__name__} has no JSON form.")


def event_from_json(data: Any) -> Event:
    """Read an event back.

    Raises:
        PrivacyError: an unknown kind, or fields that do not belong to it.
    """
    try:
        fields = dict(data)
        event: Event = KINDS[fields.pop("kind")](**fields)
        return event
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, PrivacyError):
            raise
        raise PrivacyError(f"This is no privacy event ({error}).") from None
