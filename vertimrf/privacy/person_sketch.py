"""The law of a count sketch's likelihood ratio for a person with several records, bounded tightly.

Each of the person's K records has a bucket and a sign of its own, independent of the others', and adds the sign to its ``groups``
numbers there; two records may share values, or none. Neighbours differ by all K at once. What is computed dominates the law of
the likelihood ratio of one repetition in convex order, whatever values the records have, hence every divergence either way:

1. *Which records share a bucket is told*, and their signs relative to each other: it is the same with and without the person, so
   that telling it only helps. Of K records e more than none share with probability ``P(K balls fill K - e of B boxes)``.
2. *None share* (e = 0; nearly always). The ratio is the mean, over all ways to place K records in different buckets, of the
   product of K single ratios. That is a mean, over permutations of the buckets, of means over B' = floor(B / K) blocks of K
   buckets each; within, all are independent whatever values the records share. So it is dominated by one such mean: of B'
   independent products of K independent single ratios (Hoeffding, 1963, on U-statistics; Jensen).
3. *m share a bucket*: they shift its numbers by a vector of length at most m sqrt(groups), as when all have the same values and
   signs; a shorter shift is the longer one's after scaling and more noise. Then as in 2, with K - e blocks in different buckets.
4. Products of independent ratios are dominated by that of one shift as long as all together, with one sign: multiplying its
   coordinates by further random signs gives the former. That is loose, and serves e >= 2 alone, where the longest shift that is
   possible, (e + 1)^2 + (K - e - 1) records squared, takes the place of all.

A person with fewer records is dominated step by step: fewer factors, more blocks. To first order the price is K^2 times that of
one record, as for any Gaussian noise: K times in epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from .count_sketch import (
    COVERED_EPSILON,
    DRAW_DISTANCE,
    RARE,
    STEPS_PER_SPREAD,
    backward_renyi_of,
    bucket_ratio,
    excess,
    gaussian_sum_error,
    highest_order,
    mean_law,
    mean_log_moments,
    ratio_log_moments,
    reach_of,
)

__all__ = ["MIN_BUCKETS", "MIN_VARIANCE_PER_VALUE", "person_excess", "person_law", "person_renyi", "sharing"]

Floats = npt.NDArray[np.float64]

# Points per standard deviation that products of ratios are taken on, up to so many deviations; beyond, by which factor they grow.
FINE, NEAR, GROWTH = 40.0, 12.0, 1.03
# Steps that the largest ratio is divided into at most, and steps to a block at least.
MAX_STEPS, STEPS_PER_BLOCK = 1 << 17, 256
# Below so many buckets, or so much noise for every group and record, the law has no tails that a grid could hold.
MIN_BUCKETS, MIN_VARIANCE_PER_VALUE = 64, 1.0


def person_excess(groups: int, variance: float, buckets: int, records: int) -> float:
    """Variance of the ratio of one repetition, but for shared buckets; records^2 times a single one's to first order."""
    single = excess(groups, variance)
    return records * math.expm1(records * math.log1p(single)) / buckets


def sharing(buckets: int, records: int) -> Floats:
    """Probability that records in random buckets fill ``records`` - e of them, for e = 0, 1, ... [shape=(records,)]."""
    filled = np.zeros(records + 1)
    filled[0] = 1.0
    used = np.arange(records + 1)
    for _ in range(records):
        filled = filled * used / buckets + np.append(0.0, (filled * (1 - used / buckets))[:-1])
    return filled[:0:-1]


@lru_cache(maxsize=4)
def person_law(groups: int, variance: float, buckets: int, records: int, rare: float = RARE) -> tuple[Floats, Floats, float]:
    """Law of the likelihood ratio of one repetition under Q for ``records`` records, as :func:`~.count_sketch.ratio_law`.

    Args:
        groups: values that a record has.
        variance: kappa.
        buckets: B, at least ``records``.
        records: of the person, 2 or more.
        rare: probability that may be left out, about; at least RARE. The largest ratios are given up, as many as have this
            probability with the person, and less without; as is what lies beyond the window of their mean. It is the probability
            together with that of how records share buckets.
    """
    reach = reach_of(rare / buckets)
    single = bucket_ratio(groups, variance, reach=reach)
    ratios, masses, lost = [], [], 0.0
    for e, chance in enumerate(sharing(buckets, records)):
        given = min(rare / (buckets * chance), 1.0) if chance else 1.0
        if given == 1.0:
            lost += chance
            continue
        if e < 2:
            deviation, mass, given_up = _power(single, records - 2 * e, given)
            if e:
                deviation, mass, more = _product((deviation, mass), bucket_ratio(groups, variance, 2.0, reach), given)
                given_up += more
        else:
            widest = bucket_ratio(groups, variance, math.sqrt(_widest(e, records)), reach)
            deviation, mass, given_up = _cut(*widest, given)
        blocks = buckets // (records - e)
        step = max(math.sqrt(float((mass * deviation**2).sum())) / STEPS_PER_SPREAD, float(deviation[-1]) / MAX_STEPS)
        # On steps that are small beside their number, a mean of ratios, which lie above -1, does not fall below 0.
        step = min(step, blocks / STEPS_PER_BLOCK)
        ratio, convolved, missing = mean_law(deviation, mass, blocks, step, given)
        ratios.append(ratio)
        masses.append(chance * convolved)
        lost += chance * (missing + blocks * (given_up + (records + 1) * 4 * float(special.ndtr(-reach))))
    lost += records * groups * buckets * DRAW_DISTANCE * (1 + math.exp(COVERED_EPSILON))
    ratio, mass = np.concatenate(ratios), np.concatenate(masses)
    mass *= math.exp(records * buckets * gaussian_sum_error(groups, variance))
    order = np.argsort(ratio)
    return ratio[order], mass[order], lost


def person_renyi(
    law: tuple[Floats, Floats, float], groups: int, variance: float, buckets: int, records: int, orders: Floats, rho: float
) -> Floats:
    """Rényi divergences of one repetition at each order, the larger direction; moments of products are products of moments.

    Beyond the highest order, and always, they are at most those of records that share values and a bucket that is known.
    """
    most = highest_order(orders, rho)
    single, double = (ratio_log_moments(groups, variance, most, weight) for weight in (1.0, 2.0))
    with np.errstate(divide="ignore"):
        chances = np.log(sharing(buckets, records))
    moments = []
    for e, chance in enumerate(chances.tolist()):
        if e < 2:
            one = (records - 2 * e) * single + e * double
        else:
            one = ratio_log_moments(groups, variance, most, math.sqrt(_widest(e, records)))
        moments.append(chance + mean_log_moments(one, buckets // (records - e)))
    log_moments = special.logsumexp(moments, axis=0)
    between = np.interp(orders, np.arange(most + 1), log_moments, right=np.inf)
    known = orders * records**2 * groups / (2 * variance)
    forth = np.minimum(np.maximum(between, 0.0) / (orders - 1), known)
    out: Floats = np.maximum(forth, backward_renyi_of(law, records**2 * groups, variance, orders))
    return out


def _widest(e: int, records: int) -> int:
    """The longest shift, squared, in records, where so many more share buckets than need to."""
    return (e + 1) ** 2 + records - e - 1


def _power(law: tuple[Floats, Floats], exponent: int, rare: float) -> tuple[Floats, Floats, float]:
    """Law of a product of independent ratios of one law; of none it is 1. And what was given up."""
    deviation, mass, given_up = np.zeros(1), np.ones(1), 0.0
    for bit in f"{exponent:b}":
        if len(mass) > 1:
            deviation, mass, more = _product((deviation, mass), (deviation, mass), rare)
            given_up = 2 * given_up + more
        if bit == "1":
            deviation, mass, more = _product((deviation, mass), law, rare)
            given_up += more
    return deviation, mass, given_up


def _product(one: tuple[Floats, Floats], other: tuple[Floats, Floats], rare: float) -> tuple[Floats, Floats, float]:
    """Law of the product of two independent ratios, spread over a grid so that its mean stays; and what was given up."""
    (x, p), (y, q) = one, other
    deviation = (x[:, None] + y + x[:, None] * y).ravel()
    mass = (p[:, None] * q).ravel()
    spread = math.sqrt(float((mass * deviation**2).sum()))
    low, high = float(deviation.min()), float(deviation.max())
    near = np.arange(max(low, -NEAR * spread), min(high, NEAR * spread) + 2 * spread / FINE, spread / FINE)
    beyond = max(math.ceil(math.log(max(high / near[-1], 1.0)) / math.log(GROWTH)), 0)
    grid = np.concatenate([[low] if low < near[0] else [], near, near[-1] * GROWTH ** np.arange(1, beyond + 2)])
    below = np.clip(np.searchsorted(grid, deviation, side="right") - 1, 0, len(grid) - 2)
    above = np.clip((deviation - grid[below]) / (grid[below + 1] - grid[below]), 0.0, 1.0)
    out = np.bincount(below, mass * (1 - above), len(grid)) + np.bincount(below + 1, mass * above, len(grid))
    kept = out > 0
    return _cut(grid[kept], np.asarray(out[kept], np.float64), rare)


def _cut(deviation: Floats, mass: Floats, rare: float) -> tuple[Floats, Floats, float]:
    """A law [deviations increasing] without its largest ratios, and what was given up, with the person and without."""
    above = np.cumsum((mass * (1 + deviation))[::-1])[::-1]
    kept = above >= rare
    return deviation[kept], mass[kept], 0.0 if kept.all() else 2 * rare
