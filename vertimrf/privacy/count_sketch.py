"""The law of a count sketch's likelihood ratio, computed rather than bounded.

One repetition of a count sketch in which a record has ``groups`` values changes by at most the pair (P, Q): Q = groups x buckets
independent discrete Gaussians of variance kappa; P = the same with one random sign added to all groups' numbers in one
random bucket. (The other records' sums do not depend on the record's sign and bucket, nor on the noise: the release is a
randomised function of the noise, or of the noise plus the record; quantising is post-processing.) With S_b the sum of
bucket b's noise, the likelihood ratio is

    L = 1/B sum_b l(S_b),    l(S) = exp(-groups / (2 kappa)) cosh(S / kappa),

under Q a mean of B independent numbers of known law. A group in which a record moves numbers by w, with noise of variance
w kappa, counts for w groups, the sum of whose numbers it publishes: its ratio is exp(s Z / kappa - w / (2 kappa)) as theirs, and
for odd w its noise has the law of the sum of w draws, but for the factor named in :func:`bucket_ratio`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import fft, special

from ..errors import PrivacyError

__all__ = ["backward_renyi", "backward_renyi_of", "excess", "forward_renyi", "log_sum", "ratio_law"]

Floats = npt.NDArray[np.float64]

# Grid steps per standard deviation of a bucket's ratio, whose variance is overstated by less than one part in ten thousand; and
# of the mean over buckets, which matters when there are few.
STEPS_PER_SPREAD, STEPS_PER_MEAN = 50.0, 1000.0
# The noise of a bucket is followed so many standard deviations out at most, beyond the shift that a record makes. What is left,
# and what is left of the mean over buckets, has at least this probability, which counts as an infinite loss.
REACH = 12.0
RARE = 1e-26
# Relative error of a double-precision transform, per power: a third of it is seen against extended precision.
ROUNDING = 1e-16
# A law is convolved weighed by exponentials of the orders whose Chernoff bounds have these exponents: far out is a law of 60.
EXPONENTS = (25.0,)
# The least order of the Chernoff bounds, times a standard deviation; large ratios ask for small ones.
MIN_ORDER = 1e-5
# Distance from the exact law of a draw of noise (see kernels.count_sketch), and the epsilon up to which it is covered: it adds
# 1 + e^epsilon times itself to delta.
DRAW_DISTANCE = 2.0**-127
COVERED_EPSILON = 30.0
# Rényi divergences are computed at whole orders up to one of these, and bounded by their neighbours in between: up to so many
# times the order that is best for so small a delta, which for small budgets is high.
MIN_HIGHEST, MAX_ORDER = 64, 2000
BEYOND_BEST, SMALL_DELTA = 3.0, 1e-15
# The grid that expectations over Gamma laws are taken on: from about 0 in steps of this part to so many times the largest shape.
MIN_SHAPE, GAMMA_STEP, GAMMA_REACH = 1e-3, 0.02, 6.0
TINY = 1e-250
# Numbers of a table that is worked on at once.
MAX_AT_ONCE = 1 << 24
# Points of the law of a mean over buckets.
MAX_WINDOW = 1 << 19
# Points that the other direction's are computed from.
RENYI_POINTS = 2000


def excess(groups: int, variance: float) -> float:
    """Variance of a bucket's ratio, V = cosh(groups / kappa) - 1; the chi-square of a repetition is V / buckets."""
    return 2 * math.sinh(groups / (2 * variance)) ** 2


@lru_cache(maxsize=4)
def ratio_law(groups: int, variance: float, buckets: int, rare: float = RARE) -> tuple[Floats, Floats, float]:
    """Law of the likelihood ratio of one repetition under Q.

    Each bucket's ratio is spread over its two neighbours on a grid so that its mean stays: the result dominates the exact
    law in convex order, and so does the mean over buckets. Every divergence, in either direction, is then at least the exact
    one: a pessimistic discretisation for a record added and a record removed at once.

    Args:
        groups: values that a record has.
        variance: kappa, at least 4.
        buckets: B.
        rare: probability that may be left out, about; at least RARE. The largest ratios ask for a long grid.

    Returns:
        Ratios [shape=(k,), increasing, above 0], their probabilities under Q (times the ratio: under P), and a bound on the
        probability that is missing or misplaced, in either direction.
    """
    reach = reach_of(rare / buckets)
    deviation, mass = bucket_ratio(groups, variance, reach=reach)
    steps = max(STEPS_PER_SPREAD, STEPS_PER_MEAN / math.sqrt(buckets))
    ratio, convolved, lost = mean_law(deviation, mass, buckets, math.sqrt(excess(groups, variance)) / steps, rare)
    # What lies beyond the reach, with and without the record; and the sampler.
    lost += 4 * buckets * float(special.ndtr(-reach))
    lost += groups * buckets * DRAW_DISTANCE * (1 + math.exp(COVERED_EPSILON))
    return ratio, convolved * math.exp(buckets * gaussian_sum_error(groups, variance)), lost


def gaussian_sum_error(groups: int, variance: float) -> float:
    """Logarithm of a bound on the factor between the law of a sum of discrete Gaussians and a discrete Gaussian (Kairouz, Liu and
    Steinke, 2021)."""
    return 10 * groups * math.exp(-(math.pi**2) * variance)


def reach_of(rare: float) -> float:
    """Standard deviations beyond which a Gaussian's noise has this probability, at most REACH."""
    return min(-float(special.ndtri(rare)), REACH)


def bucket_ratio(groups: int, variance: float, weight: float = 1.0, reach: float = REACH) -> tuple[Floats, Floats]:
    """A bucket's ratio, less 1, of a record that adds ``weight`` times a sign to every group, and its probabilities under Q."""
    # Sums of discrete Gaussians are discrete Gaussians but for a factor: see gaussian_sum_error.
    sigma = math.sqrt(groups * variance)
    last = math.ceil(reach * sigma + weight * groups)
    sums = np.arange(0.5 if groups % 2 else 0.0, last + 1)
    mass = np.exp(-0.5 * (sums / sigma) ** 2)
    if groups % 2 == 0:
        mass[0] /= 2
    mass /= mass.sum()
    tilt = weight * sums / variance
    return np.expm1(tilt + np.log1p(np.exp(-2 * tilt)) - math.log(2) - weight**2 * groups / (2 * variance)), mass


def mean_law(
    deviation: Floats, mass: Floats, buckets: int, step: float, rare: float
) -> tuple[Floats, Floats, float]:
    """Law of the mean over buckets of independent ratios, on a grid of ``step`` for their sum, or of larger steps where there
    would be too many; see :func:`ratio_law`.

    The law is convolved as it stands, and weighed by exp(order x) for a few orders. Rounding errors, which are as large
    everywhere, are then small beside the probabilities far out too. They are added to each result, and of the upper bounds that
    this gives the least is taken. What lies beyond the grid folds back and only adds; it is lost besides.
    """
    # On a grid from the least ratio on, no mean lies below it.
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
            raise PrivacyError("Count sketches of so little noise have no price: take more, or fewer records of a person.")
        if high - low < MAX_WINDOW:
            break
        step *= 2
    size = fft.next_fast_len(high - low + 1, real=True)
    law = np.full(high - low + 1, np.inf)
    middle = float((both * index).sum() / both.sum())
    # Of the sum of all buckets.
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


def _window(
    index: npt.NDArray[np.int64], mass: Floats, buckets: int, most: float, rare: float
) -> tuple[int, int, list[float]]:
    """Chernoff bounds that the sum of ``buckets`` indices lies within but for ``rare`` either side, with and without a record;
    and the orders whose bounds have exponents of EXPONENTS, 0 among them. ``most`` is the largest ratio."""
    mean = float((mass * index).sum() / mass.sum())
    centred = index - mean
    orders = np.geomspace(MIN_ORDER, 1e4, 140) / math.sqrt(buckets * float((mass * centred**2).sum()))
    ends, chosen = [], [0.0]
    for sign in (1.0, -1.0):
        log_moment = np.empty(len(orders))
        slope = np.empty(len(orders))
        # One order after the other: of much noise there are many values.
        for i, order in enumerate(orders):
            tilted = sign * order * centred
            top = tilted.max()
            weighed = np.exp(tilted - top) * mass
            total = weighed.sum()
            log_moment[i] = buckets * (top + np.log(total))
            slope[i] = buckets * (sign * centred * weighed).sum() / total
        # With the record, one bucket's law is tilted by its ratio.
        ends.append(float(((log_moment + math.log(most / rare)) / orders).min()))
        exponents = orders * slope - log_moment
        chosen += [sign * float(orders[int(np.argmin(np.abs(exponents - exponent)))]) for exponent in EXPONENTS]
    low = max(math.floor(buckets * mean - ends[1]), buckets * int(index.min()))
    high = min(math.ceil(buckets * mean + ends[0]), buckets * int(index.max()))
    return low, high, list(dict.fromkeys(chosen))


def forward_renyi(groups: int, variance: float, buckets: int, orders: Floats, rho: float) -> Floats:
    """Rényi divergences of P from Q of one repetition at each order, exact at whole orders.

    Moments of a bucket's ratio are exact sums of exponentials (discrete Gaussians have those of Gaussians at whole numbers), and
    those of the mean follow from the B-th power of their generating function. In between, the logarithm of a moment
    is convex; beyond, and always, the divergence is at most that of a record whose bucket and sign are known.

    Args:
        groups, variance, buckets: as in :func:`ratio_law`.
        orders: [shape=(k,)].
        rho: what all repetitions spend (zCDP), about: see :func:`highest_order`.
    """
    known = orders * groups / (2 * variance)
    most = highest_order(orders, rho)
    log_moments = mean_log_moments(ratio_log_moments(groups, variance, most), buckets)
    between = np.interp(orders, np.arange(most + 1), log_moments, right=np.inf)
    out: Floats = np.minimum(np.maximum(between, 0.0) / (orders - 1), known)
    return out


def highest_order(orders: Floats, rho: float) -> int:
    """The whole order up to which moments are computed: epsilon, rho * order + log(1 / delta) / order, is least below it."""
    best = math.sqrt(-math.log(SMALL_DELTA) / max(rho, 1e-12))
    return int(min(max(BEYOND_BEST * best, MIN_HIGHEST), MAX_ORDER, math.ceil(float(orders.max()))))


def ratio_log_moments(groups: int, variance: float, most: int, weight: float = 1.0) -> Floats:
    """log E l^k for k = 0 to ``most`` of a bucket's ratio l; ``weight`` as in :func:`bucket_ratio`."""
    half = weight**2 * groups / (2 * variance)
    out = np.empty(most + 1)
    every = np.arange(most + 1)
    log_factorial = special.gammaln(every + 1.0)
    for order in range(most + 1):
        i = every[: order + 1]
        log_terms = ((order - 2.0 * i) ** 2 - order) * half - log_factorial[i] - log_factorial[order - i]
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

    By a recurrence of Euler's, as J. C. P. Miller uses it, where it has no negative terms: n a_0 p_n = sum of
    (k (exponent + 1) - n) a_k p_(n-k) over k = 1 to n; otherwise by squaring.
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
    """Logarithm of a sum of exponentials."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _log_product(one: Floats, other: Floats) -> Floats:
    size = len(one)
    lag = np.arange(size)[:, None] - np.arange(size)
    terms = np.where(lag >= 0, one[None, :] + other[np.maximum(lag, 0)], -np.inf)
    top = terms.max(axis=1)
    out: Floats = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return out


def backward_renyi(groups: int, variance: float, buckets: int, orders: Floats, rho: float) -> Floats:
    """Rényi divergences of Q from P of one repetition at each order; pessimistic by a part in a thousand or so.

    With s = order - 1, E L^-s = E exp(phi(T)) for T of the Gamma law of shape s, since L^-s = E exp(-T (L - 1)); and phi(t) =
    B log E exp(-t (l - 1) / B) is that of one bucket, exactly. exp(phi) is convex: T's mass between two points of a grid
    counts as at these, its mean kept, which is more. Ratios are at least exp(-groups / (2 kappa)); so is all beyond the grid.

    Args:
        groups, variance, buckets, orders, rho: as in :func:`forward_renyi`.
    """
    least = groups / (2 * variance)
    out = np.full(len(orders), least)
    useful = orders - 1 <= highest_order(orders, rho)
    shapes = orders[useful] - 1
    end = GAMMA_REACH * float(shapes.max()) + 100.0
    grid = np.append(0.0, np.geomspace(MIN_SHAPE, end, math.ceil(math.log(end / MIN_SHAPE) / GAMMA_STEP)))
    deviation, mass = bucket_ratio(groups, variance)
    # Of much noise there are many values: they are taken a block of the grid at a time.
    rows = max(MAX_AT_ONCE // len(mass), 1)
    blocks = [grid[first : first + rows, None] for first in range(0, len(grid), rows)]
    phi = buckets * np.log1p(np.concatenate([np.expm1(block * (-deviation / buckets)) @ mass for block in blocks]))
    phi = np.maximum(phi, 0.0) + buckets * (10 * groups + 10) * ROUNDING
    with np.errstate(divide="ignore", under="ignore"):
        for i, s in zip(np.flatnonzero(useful), shapes.tolist(), strict=True):
            terms = np.concatenate([_log_gamma_masses(s, grid) + phi, _log_gamma_tail(s, least, end)])
            out[i] = min(max(log_sum(terms[terms > -np.inf]), 0.0) / s, least)
    return out


def _log_gamma_masses(shape: float, grid: Floats) -> Floats:
    """Logarithms of the Gamma law's mass up to the grid's end, each cell's taken to its ends so that its mean stays."""
    a, b = grid[:-1], grid[1:]

    def between(shape: float) -> Floats:
        # Differences of the smaller side, which are relatively precise.
        below, above = special.gammainc(shape, grid), special.gammaincc(shape, grid)
        out: Floats = np.where(b <= shape, np.diff(below), -np.diff(above))
        return out

    mass = between(shape)
    mean = shape * between(shape + 1)
    up = np.clip((mean - a * mass) / (b - a), 0.0, mass)
    logs = np.log(np.append(mass - up, 0.0) + np.append(0.0, up))
    # Where masses leave the range of a double: above the mode the density falls, and its start's counts for a cell, at its end.
    far = (a > shape) & (mass < TINY)
    density = (shape - 1) * np.log(np.maximum(a, MIN_SHAPE)) - a - special.gammaln(shape) + np.log(b - a)
    out: Floats = np.logaddexp(logs, np.append(-np.inf, np.where(far, density, -np.inf)))
    return out


def _log_gamma_tail(shape: float, least: float, end: float) -> Floats:
    """What lies beyond the end, with the least ratio: exp(phi(t)) is at most exp((1 - exp(-least)) t) [shape=(1,)]."""
    rate = math.exp(-least)
    out: Floats = np.log(np.atleast_1d(special.gammaincc(shape, rate * end))) + shape * least
    return out


def backward_renyi_of(law: tuple[Floats, Floats, float], groups: int, variance: float, orders: Floats) -> Floats:
    """Rényi divergences of Q from P at each order, from a law as of :func:`ratio_law`.

    Runs of ratios count as their lowest, and what the law leaves out as the lowest possible, exp(-groups / (2 kappa)).
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
