"""Privacy events: the exact privacy-loss distribution of each mechanism of a run.

Neighbouring tables differ by adding or removing one record. Every event provides three things: its
loss distribution on a grid, in both directions and never optimistic; its Rényi divergences; and
``rho``, its weight in zCDP units.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from msgspec import structs
from scipy import special

from ..arrays import Floats, Ints
from ..errors import PrivacyError
from ..files.convert import Number
from .checks import MAX_REPETITIONS, MAX_SENSITIVITY, check_number, check_whole
from .choice import ChoiceEvent
from .count_sketch import RARE, REACH, Law, backward_renyi, excess, forward_renyi, ratio_law
from .losses import (
    LACKING,
    MIN_RARE,
    LossGrid,
    Mechanism,
    Symmetric,
    connect_the_dots,
    renyi_divergence,
    without_rare,
)
from .person_sketch import (
    MIN_BUCKETS,
    MIN_VARIANCE_PER_VALUE,
    person_excess,
    person_law,
    person_renyi,
)

# A Gaussian with up to this many noise values on either side is computed value by value; a wider
# one in blocks.
MAX_NOISE_POINTS = 1 << 13
# Standard deviations of Gaussian noise that are covered, and the probability beyond them.
GAUSSIAN_REACH, BEYOND_REACH = 12.0, 4e-33
# Bounds within which every formula here keeps its digits; all are far beyond any use.
MIN_SCALE, MAX_SCALE = 1e-6, 1e100
MIN_EPSILON, MAX_EPSILON = 1e-12, 1e4
MAX_PHANTOMS = 10**12
MAX_LEVEL = 1 << 16
# Largest numbers of outcomes that are computed one by one: of a sketch event, and sums of a count
# sketch's noise.
MAX_ATOMS = 1 << 17
MAX_SUMS, MAX_PERSON_SUMS = 160_000, 20_000
MAX_ATTRIBUTES = 10_000
MIN_COUNT_VARIANCE, MAX_COUNT_VARIANCE, MAX_GROUPS_PER_VARIANCE = 4.0, 1e6, 8.0
MAX_BUCKETS = 1 << 15
# Largest number of records per person for which count sketches have a price.
MAX_PERSON_RECORDS = 64


class GaussianEvent(Mechanism, frozen=True, tag="gaussian"):
    """Integer queries with discrete Gaussian noise (Canonne, Kamath and Steinke, 2020).

    Attributes:
        sigma: noise parameter, in the query's integer units.
        sensitivity: largest change of one count by one record, an integer in the same units. It is
            1 for a marginal: a record changes one cell by 1, and the noise of the other cells
            cancels from the loss.
        count: number of such queries.
    """

    sigma: Number
    sensitivity: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        check_whole("a Gaussian event's sensitivity", self.sensitivity, MAX_SENSITIVITY)
        check_whole("a Gaussian event's count", self.count, MAX_REPETITIONS)
        least, most = self.sensitivity * MIN_SCALE, self.sensitivity * MAX_SCALE
        check_number("a Gaussian event's sigma", self.sigma, least, most)

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
            # The noise values are taken in blocks. Each block's mass is split between its least and
            # its largest loss. To keep both measures, the upper share is at least 1/2 plus a
            # quarter of the rise of the log density and of the loss within the block. Masses are
            # those of the rounded continuous Gaussian; the discrete Gaussian's exceed them by at
            # most a factor of 1 + 1 / (24 sigma^2).
            edges = np.linspace(-reach, reach + 1, 2 * MAX_NOISE_POINTS + 1).round()
            z = (edges - 0.5) / self.sigma
            low, high = z[:-1], z[1:]
            mass = np.where(low > 0, -np.diff(special.ndtr(-z)), np.diff(special.ndtr(z)))
            mass *= 1 + 0.05 / self.sigma**2
            noise = np.append(edges[:-1], edges[1:] - 1)
            upper = np.minimum(
                0.5 + 0.25 * (high - low) * (np.maximum(-low, 0.0) + self.spread), 1.0
            )
            mass = np.append((1 - upper) * mass, upper * mass)
        loss = self.sensitivity * (2 * noise + self.sensitivity) / (2 * self.sigma**2)
        grid = connect_the_dots(loss, mass, step, BEYOND_REACH)
        return grid, grid

    def renyi(self, orders: Floats) -> Floats:
        return orders * self.rho


class SketchEvent(Mechanism, frozen=True, tag="sketches"):
    """Geometric sketches under independent keys, with phantoms, floor and ceiling.

    Under one key, a record enters ``attributes_per_key`` sketches with the same level. Let m be the
    lowest level of these sketches and s the number of them that lie at m. The likelihood ratio
    (record present / absent) is F(m-1) + f(m) (G(m)/g(m))^s. Here F and f are the distribution and
    the mass function of one level; G and g are those of max(floor, phantoms). Both are clipped to
    the published range. The ratio is exact if no other record is present. The sketches of any other
    table are a function of these (post-processing).

    Attributes:
        phantoms: phantom records per sketch.
        floor, ceiling: lowest and highest published level.
        keys: number of independent hash keys.
        gamma: a level exceeds k with probability (1 + gamma)^-k.
        attributes_per_key: sketches that a record enters under one key: 2 for scheduled pairs, all
            d for the published encoder.
    """

    phantoms: int
    floor: int
    ceiling: int
    keys: int
    gamma: Number = 1.0
    attributes_per_key: int = 2

    def __post_init__(self) -> None:
        check_whole("a sketch event's number of phantoms", self.phantoms, MAX_PHANTOMS)
        check_whole("a sketch event's number of keys", self.keys, MAX_REPETITIONS)
        check_whole(
            "a sketch event's number of attributes per key", self.attributes_per_key, MAX_ATTRIBUTES
        )
        # Levels start at 1, so a ceiling of 1 would publish a constant.
        if self.attributes_per_key * (self.ceiling - self.floor + 1) > MAX_ATOMS:
            raise PrivacyError(
                f"Sketches of {self.attributes_per_key} attributes per key on levels {self.floor} to {self.ceiling} have too "
                "many outcomes to price: take fewer levels."
            )
        check_whole("a sketch event's ceiling", self.ceiling, MAX_LEVEL, least=2)
        check_whole("a sketch event's floor", self.floor, MAX_LEVEL, least=0)
        if not self.floor < self.ceiling:
            raise PrivacyError(
                f"A sketch's floor {self.floor} must be below its ceiling {self.ceiling}."
            )
        check_number("a sketch event's gamma", self.gamma, 1e-6, 1e6)

    @property
    def count(self) -> int:
        return self.keys

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """Log probability and log likelihood ratio of every possible (m, s) [both shape=(k,)].

        Probabilities are those without the record.
        """
        log_base = math.log1p(self.gamma)
        levels = np.arange(self.floor, self.ceiling + 1, dtype=np.float64)
        # expm1 keeps the digits of the small masses of high levels.
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
        # Levels that the phantom maximum reaches with probability 0 in double precision have no
        # mass without the record.
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
            out.append(connect_the_dots(*without_rare(loss, mass, rare), step, lost))
        return out[0], out[1]

    def renyi(self, orders: Floats) -> Floats:
        log_p, log_ratio = self.atoms
        return self.keys * renyi_divergence(log_p + log_ratio, log_ratio, log_p, orders)


class CountSketchEvent(Mechanism, frozen=True, tag="count-sketch", omit_defaults=True):
    """Count sketches with discrete Gaussian noise of ``groups`` values of every record.

    All values of a record share the same secret buckets and signs. See
    :mod:`vertimrf.privacy.count_sketch`.

    Attributes:
        groups: number of values of a record, over all parties. A value with weight w counts w
            times.
        variance: noise variance of each counter divided by its weight. It is at least 4, and large
            enough for the likelihood ratios of a bucket to fit on a grid.
        buckets: counters of each value in one repetition.
        repetitions: number of independent repetitions.
        records: largest number of records per person at each party; neighbours differ in all of
            them (:mod:`vertimrf.privacy.person_sketch`).
        parties: number of parties whose records of a person may differ.
    """

    groups: int
    variance: Number
    buckets: int
    repetitions: int
    records: int = 1
    parties: int = 1

    def __post_init__(self) -> None:
        check_whole("a count sketch's number of groups", self.groups, MAX_ATTRIBUTES)
        check_whole("a count sketch's number of buckets", self.buckets, MAX_BUCKETS)
        check_whole("a count sketch's number of repetitions", self.repetitions, MAX_REPETITIONS)
        least = max(MIN_COUNT_VARIANCE, self.groups / MAX_GROUPS_PER_VARIANCE)
        check_whole("a count sketch's records of a person", self.records, MAX_PERSON_RECORDS)
        check_whole("a count sketch's number of parties", self.parties, MAX_ATTRIBUTES)
        if self.records > 1:
            least = max(least, MIN_VARIANCE_PER_VALUE * self.groups * self.records)
            check_whole(
                "a count sketch's buckets, with several records of a person,",
                self.buckets,
                MAX_BUCKETS,
                MIN_BUCKETS,
            )
        check_number("a count sketch's noise variance", self.variance, least, MAX_COUNT_VARIANCE)
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
    def spread(self) -> float:
        if self.records > 1:
            return math.sqrt(
                person_excess(self.groups, self.variance, self.buckets, self.records, self.parties)
            )
        # With little noise the chi-square exceeds the variance of the loss, which is at most that
        # of a known bucket.
        known = self.groups / self.variance
        return math.sqrt(
            min(excess(self.groups, self.variance) / self.buckets, known * (1 + known / 4))
        )

    @property
    def known_hashes(self) -> GaussianEvent:
        """Price of all repetitions against an adversary who knows the buckets and signs.

        It is exact for one record.

        For this adversary, a record adds a known w or -w to a known counter of every group of
        weight w. The noise of that counter has variance w kappa. The other records contribute the
        same with and without this record. Let Z_1, Z_2, ... be the noise of the counters that the
        record changes, each signed in the direction of the change. The privacy loss of all of them
        together is

            sum of (2 w_i Z_i + w_i^2) / (2 w_i kappa) = (2 S + N) / (2 kappa),
            S = sum of Z_i,    N = sum of w_i.

        The Z_i are half-integers and all weights are odd. If N is even, S is therefore an integer.
        Its law is the discrete Gaussian of variance N kappa, up to a factor of exp(10 N exp(-pi^2
        kappa)) (see :func:`~.count_sketch.bucket_ratio`). So the loss is that of one integer query
        of sensitivity N with noise of variance N kappa. If N is odd, 1 is added to it, which costs
        more. The probabilities of a draw are exact to 2^-144. This changes the loss by less than
        1e-8, except with a probability of 1e-20.

        K records of a person change the counters most, in Euclidean length, if they share values,
        buckets and signs. The loss is then K (2 S + K N) / (2 kappa), that of a sensitivity of K N.
        A shorter change follows from this one by scaling and further noise. So this bounds the loss
        at any hashes.
        """
        counters = self.groups * self.repetitions
        times = -(-self.records * (counters + 1) // MAX_SENSITIVITY)
        each = -(-counters // times)
        each += each % 2
        return GaussianEvent(math.sqrt(each * self.variance), self.records * each, times)

    def law(self, rare: float = RARE) -> Law:
        """Likelihood ratios of one repetition, their probabilities, and the probability left out.

        Probabilities are those without the record. About ``rare`` of them may be left out.
        """
        if self.records > 1:
            return person_law(
                self.groups, self.variance, self.buckets, self.records, rare, self.parties
            )
        return ratio_law(self.groups, self.variance, self.buckets, rare)

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        ratio, mass, lost = self.law(max(rare, RARE))
        loss = np.log(ratio)
        return connect_the_dots(loss, mass * ratio, step, lost), connect_the_dots(
            -loss, mass, step, lost
        )

    def renyi(self, orders: Floats) -> Floats:
        if self.records > 1:
            return self.repetitions * person_renyi(
                self.law(), self.groups, self.variance, self.buckets, self.records, orders, self.rho
            )
        forth = forward_renyi(self.groups, self.variance, self.buckets, orders, self.rho)
        back = backward_renyi(self.groups, self.variance, self.buckets, orders, self.rho)
        return self.repetitions * np.maximum(forth, back)


class GeometricEvent(Symmetric, frozen=True, tag="geometric"):
    """Integer counts with two-sided geometric noise (discrete Laplace).

    P(x) is proportional to exp(-|x| / scale).

    Attributes:
        scale: scale of the noise, in the query's integer units.
        sensitivity: largest change of one count of each query by one record, in the same units.
        count: number of such queries.
    """

    scale: Number
    sensitivity: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        # Every noise value up to the sensitivity is a separate atom.
        check_whole("a geometric event's sensitivity", self.sensitivity, 1 << 20)
        check_whole("a geometric event's count", self.count, MAX_REPETITIONS)
        least, most = self.sensitivity * MIN_SCALE, self.sensitivity * MAX_SCALE
        check_number("a geometric event's scale", self.scale, least, most)

    @property
    def pure_epsilon(self) -> float:
        """Epsilon of all queries together at a delta of 0: the largest possible loss."""
        return self.count * self.sensitivity / self.scale

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """Log probability and privacy loss of every noise value.

        Values up to 0 form one atom, those from the sensitivity on another.
        """
        x = np.arange(self.sensitivity + 1, dtype=np.float64)
        log_norm = math.log1p(math.exp(-1 / self.scale))
        log_p = -x / self.scale - log_norm
        log_p[1:-1] += math.log(-math.expm1(-1 / self.scale))
        return log_p, (self.sensitivity - 2 * x) / self.scale


class ThresholdEvent(Mechanism, frozen=True, tag="threshold"):
    """A stability histogram: noisy counts of values that occur, released above a threshold.

    The noise is two-sided geometric (Korolova et al., 2009; OpenDP's ``make_laplace_threshold``).
    One person adds up to ``sensitivity`` to all counts together. Values that other people have as
    well cost the price of the noise. A value that only this person has may be revealed: with k of
    the person's records, this happens with probability P(noise >= threshold - k). The sum over such
    values is convex in the assignment of records to values. So it is largest with one value for all
    records, or with a different value for each.

    Attributes:
        scale: scale of the noise.
        threshold: least noisy count that is released.
        sensitivity: largest number of records per person, each with one value.
    """

    scale: Number
    threshold: int
    sensitivity: int = 1

    def __post_init__(self) -> None:
        # The noise checks scale and sensitivity.
        least = self.noise.sensitivity + 1
        check_whole("a threshold event's threshold", self.threshold, 1 << 62, least)

    @property
    def noise(self) -> GeometricEvent:
        """The event of the counts of values that other people have as well."""
        return GeometricEvent(self.scale, self.sensitivity)

    @property
    def pure_epsilon(self) -> float:
        """Epsilon at a delta of :attr:`exposed`."""
        return self.noise.pure_epsilon

    @property
    def exposed(self) -> float:
        """Probability that a value that only one person has is released: the delta."""
        one = -(self.threshold - self.sensitivity) / self.scale
        each = math.log(self.sensitivity) - (self.threshold - 1) / self.scale
        return math.exp(max(one, each) - math.log1p(math.exp(-1 / self.scale)))

    @staticmethod
    def least_threshold(scale: float, exposed: float, sensitivity: int = 1) -> int:
        """Smallest threshold whose delta is at most ``exposed``.

        Args:
            scale: scale of the noise.
            exposed: largest probability of releasing a value that only one person has.
            sensitivity: largest number of records per person.
        """
        spare = -scale * (math.log(exposed) + math.log1p(math.exp(-1 / scale)))
        return max(
            math.ceil(sensitivity + spare),
            math.ceil(1 + spare + scale * math.log(sensitivity)),
            sensitivity + 1,
        )

    @property
    def spread(self) -> float:
        return self.noise.spread

    def losses(self, step: float, rare: float = MIN_RARE) -> tuple[LossGrid, LossGrid]:
        # Exposed values add at most their probability to any divergence; it counts as an infinite
        # loss.
        added, removed = (
            replace(grid, lost=grid.lost + self.exposed) for grid in self.noise.losses(step, rare)
        )
        return added, removed

    def renyi(self, orders: Floats) -> Floats:
        # A loss that may be infinite has no Rényi divergence.
        return np.full(len(orders), math.inf)


class GRREvent(Symmetric, frozen=True, tag="grr"):
    """All rows published with generalised randomised response, attribute by attribute.

    A value is kept with probability e^eps / (e^eps + u - 1). Otherwise it is replaced by one of the
    u - 1 other values. The number of published rows equals the number of ids, which is public. So
    neighbouring tables differ by *replacing* what one record holds. A record that does not fit has
    responses that are drawn from all values alike, which costs no more.

    Attributes:
        epsilon: local epsilon of each attribute.
        sizes: number of values of each attribute. Attributes with one value reveal nothing.
    """

    epsilon: Number
    sizes: Ints

    def __post_init__(self) -> None:
        if len(self.sizes) > MAX_ATTRIBUTES:
            raise PrivacyError(
                f"Randomised responses have up to {MAX_ATTRIBUTES:,} attributes, not {len(self.sizes):,}."
            )
        check_number("a randomised response's epsilon", self.epsilon, MIN_EPSILON, MAX_EPSILON)
        for size in self.sizes:
            check_whole("a randomised response's number of values", size, MAX_LEVEL)
        if not any(size > 1 for size in self.sizes):
            raise PrivacyError(
                "A randomised-response event needs an attribute of at least 2 values."
            )

    @cached_property
    def atoms(self) -> tuple[Floats, Floats]:
        """Log probability and loss of a row all of whose values differ between the two records.

        Losses are exact multiples of epsilon.
        """
        mass = np.ones(1)
        changing = [size for size in self.sizes if size > 1]
        for size in changing:
            other = 1 / (math.exp(self.epsilon) + size - 1) if self.epsilon < 700 else 0.0
            mass = np.convolve(mass, [other, (size - 2) * other, 1 - (size - 1) * other])
        loss = np.arange(-len(changing), len(changing) + 1, dtype=np.float64) * self.epsilon
        possible = mass > 0
        return np.log(mass[possible]), loss[possible]


# What an event of a ledger can be.
Event: TypeAlias = (
    ChoiceEvent
    | CountSketchEvent
    | GaussianEvent
    | GeometricEvent
    | GRREvent
    | SketchEvent
    | ThresholdEvent
)


def under_replacement(event: Event) -> Event:
    """The event for neighbours that differ by replacing one record.

    This is one removal and one addition, so twice the sensitivity.

    Raises:
        PrivacyError: the event is a sketch, for which there is no such price.
    """
    if isinstance(event, ChoiceEvent | GaussianEvent | GeometricEvent | ThresholdEvent):
        return structs.replace(event, sensitivity=2 * event.sensitivity)
    if isinstance(event, GRREvent):
        return event
    raise PrivacyError(
        f"A {type(event).__name__} has no price for replacing a record; use add or remove."
    )
