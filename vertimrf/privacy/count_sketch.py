"""The exact law of the likelihood ratio of a count sketch.

In one repetition, a record with ``groups`` values changes a count sketch by at most the pair (P,
Q). Q is the law of groups x buckets independent discrete Gaussians of variance kappa. P is the same
with one random sign added to the counters of all groups in one random bucket. The reason is that
the sums of the other records depend neither on this record's sign and bucket nor on the noise. The
release is therefore a randomised function of the noise alone, or of the noise plus the record.
Quantising is post-processing.

Signs by value and counter change nothing. Suppose that a record adds its sign s times c_g(b) to group
g's counter of bucket b, where c_g(b) = 1 or -1 is a function of the record's values and of public
numbers: in a contrast, 1 for one value and -1 for the other; for a missing value that alternates, a
public Walsh function of the group and the counter (:mod:`vertimrf.releases.count_sketches.encoding`).
Multiply the counter of every group g and bucket b by c_g(b). This map is one-to-one, and the record's
values, which are fixed, and public numbers determine it. It takes Q to Q, because the noise of
different counters is independent and symmetric, and the law of noise and record to P. So every
divergence is that of P and Q. The same holds record by record for a person with several: those that
share a bucket still shift its counters by a vector of length at most their number times the root of
the groups. Given the hashes, as a party that sides with the server knows them, a record moves each of
its counters by 1 as before.

Let S_b be the sum of the noise of bucket b, and B the number of buckets. The likelihood ratio is

    L = 1/B sum_b l(S_b),    l(S) = exp(-groups / (2 kappa)) cosh(S / kappa).

Under Q it is a mean of B independent variables of a known law.

In a group of weight w, a record changes counters by w and the noise has variance w kappa. Such a
group counts as w groups whose counters are published as a sum. Its ratio is exp(s Z / kappa - w /
(2 kappa)), the same as theirs. For odd w its noise has the law of the sum of w draws, up to the
factor named in :func:`bucket_ratio`.
"""

from __future__ import annotations

import bisect
import itertools
import math
from functools import cache, lru_cache

import numpy as np
from numpy import fft
from scipy import special

from ..arrays import Floats, Integers
from ..errors import PrivacyError

# Grid steps per standard deviation of a bucket's ratio (its variance is overstated by less than one
# part in ten thousand), and per standard deviation of the mean over buckets, for few buckets.
STEPS_PER_SPREAD, STEPS_PER_MEAN = 50.0, 1000.0
# Standard deviations up to which the noise of a bucket is computed, beyond the shift of a record.
# The probability beyond, also for the mean over buckets, counts as an infinite loss and is at least
# RARE.
REACH = 12.0
RARE = 1e-26
# Relative error of a double-precision transform, per power. A third of it is observed against
# extended precision.
ROUNDING = 1e-16
# Exponents of the Chernoff bounds whose orders tilt the law before it is convolved. Far out, a law
# has 60.
EXPONENTS = (25.0,)
# Smallest order of the Chernoff bounds, times a standard deviation. Large ratios need small orders.
MIN_ORDER = 1e-5
# Distance of a noise draw from its exact law (kernels.count_sketch), and the largest epsilon for
# which it is covered: it adds 1 + e^epsilon times itself to delta.
DRAW_DISTANCE = 2.0**-127
COVERED_EPSILON = 30.0
# Rényi divergences are computed at whole orders up to one of these and bounded by interpolation in
# between: up to BEYOND_BEST times the best order for a delta of SMALL_DELTA.
MIN_HIGHEST, MAX_ORDER = 64, 2000
BEYOND_BEST, SMALL_DELTA = 3.0, 1e-15
# Grid of the expectations over Gamma laws: from MIN_SHAPE in relative steps to a multiple of the
# largest shape.
MIN_SHAPE, GAMMA_STEP, GAMMA_REACH = 1e-3, 0.02, 6.0
TINY = 1e-250
# Largest number of table entries computed at a time.
MAX_AT_ONCE = 1 << 24
# Largest number of points of the law of a mean over buckets.
MAX_WINDOW = 1 << 19
# Number of points from which the backward divergence is computed.
RENYI_POINTS = 2000
# Ratios or deviations, their probabilities, and the most that these lack.
Law = tuple[Floats, Floats, float]


def excess(groups: int, variance: float) -> float:
    """Variance of a bucket's ratio, V = cosh(groups / kappa) - 1.

    The chi-square divergence of a repetition is V / buckets.
    """
    return 2 * math.sinh(groups / (2 * variance)) ** 2


@lru_cache(maxsize=4)
def ratio_law(groups: int, variance: float, buckets: int, rare: float = RARE) -> Law:
    """Law of the likelihood ratio of one repetition under Q.

    The ratio of each bucket is spread over its two neighbours on a grid so that its mean is kept.
    The result dominates the exact law in convex order, and so does the mean over buckets. Hence
    every divergence, in either direction, is at least the exact one. The discretisation is
    pessimistic for adding and for removing a record at once.

    Args:
        groups: number of values of a record.
        variance: kappa, at least 4.
        buckets: B.
        rare: approximate probability that may be left out, at least RARE. The largest ratios need a
            long grid.

    Returns:
        Ratios [shape=(k,), float64, increasing, above 0], their probabilities under Q [shape=(k,),
        float64], and a bound on the missing or misplaced probability in either direction.
        Probabilities under P are those under Q times the ratio.

    Raises:
        PrivacyError: the noise is too small to have a price.
    """
    reach = reach_of(rare / buckets)
    deviation, mass = bucket_ratio(groups, variance, reach=reach)
    steps = max(STEPS_PER_SPREAD, STEPS_PER_MEAN / math.sqrt(buckets))
    ratio, convolved, lost = mean_law(
        deviation, mass, buckets, math.sqrt(excess(groups, variance)) / steps, rare
    )
    # The probability beyond the reach, with and without the record, and the distance of the
    # sampler.
    lost += 4 * buckets * float(special.ndtr(-reach))
    lost += groups * buckets * DRAW_DISTANCE * (1 + math.exp(COVERED_EPSILON))
    return ratio, convolved * math.exp(buckets * gaussian_sum_error(groups, variance)), lost


def gaussian_sum_error(groups: int, variance: float) -> float:
    """Log of a bound on the density ratio of a sum of discrete Gaussians and a discrete Gaussian.

    Source: Kairouz, Liu and Steinke (2021).
    """
    return 10 * groups * math.exp(-(math.pi**2) * variance)


def reach_of(rare: float) -> float:
    """Standard deviations beyond which a Gaussian has this probability, at most REACH."""
    return min(-float(special.ndtri(rare)), REACH)


def bucket_ratio(
    groups: int, variance: float, weight: float = 1.0, reach: float = REACH
) -> tuple[Floats, Floats]:
    """A bucket's likelihood ratio minus 1, and its probabilities under Q.

    Args:
        groups: number of values of a record.
        variance: kappa.
        weight: the record adds this times a sign to every group.
        reach: standard deviations of the noise that are covered.

    Returns:
        Ratios minus 1, and their probabilities [both shape=(k,), float64].
    """
    # Up to a factor (gaussian_sum_error), a sum of discrete Gaussians is a discrete Gaussian.
    sigma = math.sqrt(groups * variance)
    last = math.ceil(reach * sigma + weight * groups)
    sums = np.arange(0.5 if groups % 2 else 0.0, last + 1)
    mass = np.exp(-0.5 * (sums / sigma) ** 2)
    if groups % 2 == 0:
        mass[0] /= 2
    mass /= mass.sum()
    tilt = weight * sums / variance
    return np.expm1(
        tilt + np.log1p(np.exp(-2 * tilt)) - math.log(2) - weight**2 * groups / (2 * variance)
    ), mass


def mean_law(deviation: Floats, mass: Floats, buckets: int, step: float, rare: float) -> Law:
    """Law of the mean over buckets of independent ratios; see :func:`ratio_law`.

    The law is convolved as it is, and weighted by exp(order x) for a few orders. Rounding errors
    are equally large everywhere, so weighting keeps them small relative to the probabilities in the
    tails. Each result plus its rounding errors is an upper bound; the least of these bounds is
    returned. Probability beyond the grid folds back, which only adds to the bounds; it also counts
    as lost.

    Args:
        deviation, mass: ratios minus 1, and their probabilities [both shape=(k,), float64].
        buckets: number of ratios.
        step: grid step of their sum; it is doubled until the grid is short enough.
        rare: probability that may be left out.

    Returns:
        Ratios, their probabilities, and the lost probability, as :func:`ratio_law`.

    Raises:
        PrivacyError: the noise is too small to have a price.
    """
    # The grid starts at the least ratio, so no mean lies below it.
    least = float(deviation.min())
    while True:
        place = (deviation - least) / step
        below = np.floor(place)
        above = place - below
        index = np.concatenate([below, below + 1]).astype(np.int64)
        both = np.concatenate([mass * (1 - above), mass * above])
        index, both = index[both > 0], both[both > 0]
        low, high, orders = _window(index, both, buckets, 1 + float(deviation.max()) + step, rare)
        if not low <= high:
            raise PrivacyError(
                "These count sketches have too little noise for a price; use more, or fewer records per person."
            )
        if high - low < MAX_WINDOW:
            break
        step *= 2
    size = fast_length(high - low + 1, 2 * 3 * 5)
    law = np.full(high - low + 1, np.inf)
    middle = float((both * index).sum() / both.sum())
    # Centred sums over all buckets.
    sums = np.arange(low, high + 1) - buckets * middle
    for order in orders:
        tilted = order * (index - middle)
        top = float(tilted.max())
        weighed = both * np.exp(tilted - top)
        total = float(weighed.sum())
        spread = np.bincount(index % size, weighed / total, size)
        spectrum = fft.rfft(spread) ** buckets
        convolved = np.roll(fft.irfft(spectrum, size), -low)[: high - low + 1]
        error = (buckets + 10) * ROUNDING * 2 * float(np.abs(spectrum).sum()) / size
        log_scale = buckets * (top + math.log(total)) - order * sums
        with np.errstate(over="ignore"):
            np.minimum(law, (np.maximum(convolved, 0.0) + error) * np.exp(log_scale), out=law)
    return 1 + least + np.arange(low, high + 1) * step / buckets, law, 4 * rare


def fast_length(least: int, primes: int) -> int:
    """Least length of at least this that has no prime factor but those of ``primes``.

    A Fourier transform of such a length is fast. SciPy's ``next_fast_len`` would take 0.05 s to import.
    """
    return next(n for n in itertools.count(least) if pow(primes, 32, n) == 0)


def _window(
    index: Integers, mass: Floats, buckets: int, most: float, rare: float
) -> tuple[int, int, list[float]]:
    """Chernoff bounds of the sum of ``buckets`` indices, and orders to tilt the law by.

    These are 0 and the orders whose bounds have exponents of EXPONENTS.

    The sum lies outside the bounds with a probability of at most ``rare`` on either side, with and
    without a record. ``most`` is the largest ratio.
    """
    mean = float((mass * index).sum() / mass.sum())
    centred = (index - mean).astype(np.float64)
    spread = math.sqrt(buckets * float((mass * centred**2).sum()))
    orders = np.geomspace(MIN_ORDER, 1e4, 140).astype(np.float64) / spread
    # With the record, the law of one bucket is tilted by its ratio.
    rarest = math.log(most / rare)
    above, highest = _bounds(centred, mass, buckets, orders, rarest)
    below, lowest = _bounds(-centred, mass, buckets, orders, rarest)
    low = max(math.floor(buckets * mean - below), buckets * int(index.min()))
    high = min(math.ceil(buckets * mean + above), buckets * int(index.max()))
    return low, high, list(dict.fromkeys([0.0, *highest, *(-order for order in lowest)]))


def _bounds(
    gaps: Floats, mass: Floats, buckets: int, orders: Floats, rarest: float
) -> tuple[float, list[float]]:
    """The least Chernoff bound of the sum of ``buckets`` gaps, at a log probability of -``rarest``,
    and the orders whose exponents are nearest to EXPONENTS.
    """

    # Large noise has many values, so orders are computed one at a time, and as few as can be.
    @cache
    def at(i: int) -> tuple[float, float]:
        """The bound by one order, and its exponent, which grows with the order."""
        tilted = orders[i] * gaps
        top = tilted.max()
        weighed = np.exp(tilted - top) * mass
        total = weighed.sum()
        log_moment = buckets * (top + np.log(total))
        slope = buckets * (gaps * weighed).sum() / total
        return float((log_moment + rarest) / orders[i]), float(orders[i] * slope - log_moment)

    def near(exponent: float) -> range:
        """The last order of a smaller exponent, and the next; all if none has as large a one."""
        every = range(len(orders))
        place = bisect.bisect_left(every, exponent, key=lambda i: at(i)[1])
        return every[max(place - 1, 0) : place + 1] if place < len(orders) else every

    # The bound falls with the order up to this exponent, and rises beyond.
    least = min(at(i)[0] for i in near(rarest))
    nearest = (min((abs(at(i)[1] - e), i) for i in near(e))[1] for e in EXPONENTS)
    return least, [float(orders[i]) for i in nearest]


def forward_renyi(groups: int, variance: float, buckets: int, orders: Floats, rho: float) -> Floats:
    """Rényi divergences of P from Q for one repetition, exact at whole orders.

    The moments of a bucket's ratio are exact sums of exponentials, because discrete Gaussians have
    the moment generating function of Gaussians at integers. The moments of the mean follow from the
    B-th power of their generating function. Between whole orders, the log moment is convex, so
    interpolation is an upper bound. At all orders, the divergence is at most that of a record whose
    bucket and sign are known.

    Args:
        groups, variance, buckets: as in :func:`ratio_law`.
        orders: orders above 1 [shape=(k,), float64].
        rho: approximate zCDP cost of all repetitions; see :func:`highest_order`.

    Returns:
        Divergences [shape=(k,), float64].
    """
    known = orders * groups / (2 * variance)
    most = highest_order(orders, rho)
    log_moments = mean_log_moments(ratio_log_moments(groups, variance, most), buckets)
    between = np.interp(orders, np.arange(most + 1), log_moments, right=np.inf)
    return np.minimum(np.maximum(between, 0.0) / (orders - 1), known)


def highest_order(orders: Floats, rho: float) -> int:
    """Largest whole order at which moments are computed.

    Epsilon, rho * order + log(1 / delta) / order, is smallest below it.
    """
    best = math.sqrt(-math.log(SMALL_DELTA) / max(rho, 1e-12))
    return int(min(max(BEYOND_BEST * best, MIN_HIGHEST), MAX_ORDER, math.ceil(float(orders.max()))))


def ratio_log_moments(groups: int, variance: float, most: int, weight: float = 1.0) -> Floats:
    """Log E l^k of a bucket's ratio l for k = 0 to ``most`` [shape=(most + 1,)].

    Args:
        groups, variance: as in :func:`ratio_law`.
        most: largest k.
        weight: as in :func:`bucket_ratio`.
    """
    half = weight**2 * groups / (2 * variance)
    out = np.empty(most + 1)
    every = np.arange(most + 1)
    log_factorial = special.gammaln(every + 1.0)
    for order in range(most + 1):
        i = every[: order + 1]
        log_terms = (
            ((order - 2.0 * i) ** 2 - order) * half - log_factorial[i] - log_factorial[order - i]
        )
        out[order] = log_sum(log_terms) + log_factorial[order] - order * math.log(2)
    return out


def mean_log_moments(log_moments: Floats, buckets: int) -> Floats:
    """Logarithms of the moments of a mean of independent numbers, from those of one of them."""
    k = np.arange(len(log_moments))
    power = _log_power(log_moments - special.gammaln(k + 1), buckets)
    out: Floats = power + special.gammaln(k + 1) - k * math.log(buckets)
    return out


def _log_power(log_series: Floats, exponent: int) -> Floats:
    """Logarithms of the coefficients of a power series of positive terms to a power.

    By a recurrence of Euler's, as J. C. P. Miller uses it, where it has no negative terms: n a_0
    p_n = sum of (k (exponent + 1) - n) a_k p_(n-k) over k = 1 to n; otherwise by squaring.
    """
    if exponent >= len(log_series):
        out = np.empty(len(log_series))
        out[0] = exponent * log_series[0]
        times = np.arange(len(log_series)) * (exponent + 1.0)
        for n in range(1, len(out)):
            terms = np.log(times[1 : n + 1] - n) + log_series[1 : n + 1] + out[n - 1 :: -1]
            out[n] = log_sum(terms) - math.log(n) - log_series[0]
        return out
    result: Floats | None = None
    while exponent:
        if exponent & 1:
            result = log_series if result is None else _log_product(result, log_series)
        exponent >>= 1
        if exponent:
            log_series = _log_product(log_series, log_series)
    assert result is not None
    return result


def log_sum(logs: Floats) -> float:
    """Logarithm of a sum of exponentials [logs: shape=(k,), float64]."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _log_product(one: Floats, other: Floats) -> Floats:
    size = len(one)
    lag = np.arange(size)[:, None] - np.arange(size)
    terms = np.where(lag >= 0, one[None, :] + other[np.maximum(lag, 0)], -np.inf)
    top = terms.max(axis=1)
    out: Floats = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return out


def backward_renyi(
    groups: int, variance: float, buckets: int, orders: Floats, rho: float
) -> Floats:
    """Rényi divergences of Q from P for one repetition, pessimistic by about one in a thousand.

    Let s = order - 1, and let T have the Gamma law of shape s. Since L^-s = E exp(-T (L - 1)), E
    L^-s = E exp(phi(T)), where phi(t) = B log E exp(-t (l - 1) / B) is exact from one bucket.
    exp(phi) is convex. So moving the mass of T between two grid points to these points, with its
    mean kept, can only increase the expectation. Ratios are at least exp(-groups / (2 kappa)),
    which bounds the part beyond the grid.

    Args:
        groups, variance, buckets, orders, rho: as in :func:`forward_renyi`.

    Returns:
        Divergences [shape=(k,), float64].
    """
    least = groups / (2 * variance)
    out = np.full(len(orders), least)
    useful = orders - 1 <= highest_order(orders, rho)
    shapes = orders[useful] - 1
    end = GAMMA_REACH * float(shapes.max()) + 100.0
    grid = np.append(
        0.0, np.geomspace(MIN_SHAPE, end, math.ceil(math.log(end / MIN_SHAPE) / GAMMA_STEP))
    )
    deviation, mass = bucket_ratio(groups, variance)
    # Large noise has many values: compute one block of the grid at a time.
    rows = max(MAX_AT_ONCE // len(mass), 1)
    blocks = [grid[first : first + rows, None] for first in range(0, len(grid), rows)]
    phi = buckets * np.log1p(
        np.concatenate([np.expm1(block * (-deviation / buckets)) @ mass for block in blocks])
    )
    phi = np.maximum(phi, 0.0) + buckets * (10 * groups + 10) * ROUNDING
    with np.errstate(divide="ignore", under="ignore"):
        for i, s in zip(np.flatnonzero(useful), shapes.tolist(), strict=True):
            terms = np.concatenate(
                [_log_gamma_masses(s, grid) + phi, _log_gamma_tail(s, least, end)]
            )
            out[i] = min(max(log_sum(terms[terms > -np.inf]), 0.0) / s, least)
    return out


def _log_gamma_masses(shape: float, grid: Floats) -> Floats:
    """Logs of the Gamma law's mass at the grid points.

    Each cell's mass moves to its ends so that its mean is kept.
    """
    a, b = grid[:-1], grid[1:]

    def between(shape: float) -> Floats:
        # Differences of the smaller tail are relatively precise.
        below, above = special.gammainc(shape, grid), special.gammaincc(shape, grid)
        out: Floats = np.where(b <= shape, np.diff(below), -np.diff(above))
        return out

    mass = between(shape)
    mean = shape * between(shape + 1)
    up = np.clip((mean - a * mass) / (b - a), 0.0, mass)
    logs = np.log(np.append(mass - up, 0.0) + np.append(0.0, up))
    # Masses below the range of a double: above the mode the density falls, so its value at the
    # start bounds the cell.
    far = (a > shape) & (mass < TINY)
    density = (
        (shape - 1) * np.log(np.maximum(a, MIN_SHAPE)) - a - special.gammaln(shape) + np.log(b - a)
    )
    out: Floats = np.logaddexp(logs, np.append(-np.inf, np.where(far, density, -np.inf)))
    return out


def _log_gamma_tail(shape: float, least: float, end: float) -> Floats:
    """Log of the part beyond the end, at the least ratio [shape=(1,)].

    exp(phi(t)) is at most exp((1 - exp(-least)) t).
    """
    rate = math.exp(-least)
    out: Floats = np.log(np.atleast_1d(special.gammaincc(shape, rate * end))) + shape * least
    return out


def backward_renyi_of(law: Law, groups: int, variance: float, orders: Floats) -> Floats:
    """Rényi divergences of Q from P, from a law as returned by :func:`ratio_law`.

    A run of ratios counts as its lowest. The lost probability counts as the lowest possible ratio,
    exp(-groups / (2 kappa)).

    Args:
        law: the law.
        groups, variance: as in :func:`ratio_law`.
        orders: orders above 1 [shape=(k,), float64].

    Returns:
        Divergences [shape=(k,), float64].
    """
    ratio, mass, lost = law
    least = groups / (2 * variance)
    starts = np.arange(0, len(ratio), -(-len(ratio) // RENYI_POINTS))
    log_mass = np.log(np.append(np.add.reduceat(mass, starts), lost))
    loss = np.append(-np.log(ratio[starts]), least)
    terms = log_mass + (orders[:, None] - 1) * loss
    top = terms.max(axis=1)
    log_moment = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    out: Floats = np.minimum(np.maximum(log_moment, 0.0) / (orders - 1), least)
    return out
