"""A tight bound on the law of a count sketch's likelihood ratio for a person with several records.

Each of the person's K records has its own bucket and sign, independent of the others. It adds the
sign to its ``groups`` counters in that bucket. Two records may share any values. Neighbouring
tables differ in all K records at once. The computed law dominates that of the likelihood ratio of
one repetition in convex order, whatever values the records have. So it bounds every divergence in
either direction. The steps are:

1. *Reveal which records share a bucket*, and their signs relative to each other. The probabilities
   of these are the same with and without the person, so revealing them can only help the adversary.
   The K records fill K - e buckets with probability ``P(K balls fill K - e of B boxes)``.
2. *No bucket is shared* (e = 0; nearly always). The ratio is the mean, over all ways to place K
   records in different buckets, of the product of K single ratios. It is a mean over permutations
   of the buckets of means over B' = floor(B / K) blocks of K buckets. Within a permutation all
   ratios are independent, whatever values the records share. So the ratio is dominated by one such
   mean: of B' independent products of K independent single ratios (Hoeffding, 1963, on
   U-statistics; Jensen).
3. *m records share a bucket*. They shift its counters by a vector of length at most m sqrt(groups),
   reached when all have the same values and signs. A shorter shift follows from the longer one by
   scaling and more noise (for noise on a lattice, see below). The rest is as in step 2, with K - e different buckets.
4. *Products of independent ratios* are dominated by the ratio of one shift with their total squared
   length and one sign: multiplying its coordinates by further random signs gives the former. This
   bound is loose and is used for e >= 2 only. There the longest possible shift, of (e + 1)^2 + (K -
   e - 1) squared records, replaces all shifts.

*Parties that hold different records of the person.* Each of M parties has up to K records of the
person, some of which another party may not have: it dropped them, or never had them. Step 1 then
reveals who shares a bucket at each party, and the law is that of the largest e of any party, which
exceeds a number with at most M times the probability (the price grows with e). Let records that
some party holds both conflict. Colour them with C colours so that records that conflict differ:
C = K for two parties, 3 K / 2 for three, K sqrt(M) for more (Horák and Tuza, 1990). Then B / C
blocks exist that use no bucket twice at a party, of which each has the law of the person's buckets:
a block gives every colour a bucket of its own, and records of one colour that do not share a bucket
get those of different blocks. A block's ratio is a product of independent single ratios, of records
that add to some of the groups. Their squared lengths are majorised by those of step 2 or 3: the j
largest are at most the j largest there, party by party. A product of independent ratios grows in
convex order if its lengths spread: for two, X and Y normal with the lengths' sum as variance and
their relative difference as correlation, it is proportional to cosh X + cosh Y. The derivative
of the mean of f of it by the correlation is that of f'' sinh X sinh Y / 4 (Plackett, 1954), which
is not negative. Moments of a whole order need none of this: by Hölder's inequality over groups they
are at most those of K records that all parties hold.

*Noise on a lattice.* For normal noise, a shorter shift follows from a longer one, and ratios grow if
their lengths spread. Noise here is discrete. Its moments of whole order are those of a normal, so
that Rényi divergences are as stated. In other convex functions, a sum over a lattice replaces an
integral. Let a shift have the squared length s, and coordinates with the greatest common divisor g.
Log ratios then lie on a grid of step h = g / kappa, and the mean excess of the ratio over t differs
from a normal's by -1/24 to 1/12 of h^2 t p, where p is the density of the log ratio there
(Euler-Maclaurin, leading term). If s grows by D, that excess grows by D t p / (2 kappa). So a shift
is dominated by one that is longer by D >= (2 g^2 + G^2) / (12 kappa), where G is the other's
divisor. In step 3, G = m, and any other shift is shorter by at least 2 (m - 1), or by m^2 where g =
m. As kappa is at least ``groups`` K, hence at least m, the right side is at most m / 4: lengths
decide, and not the lattice. Far out the leading term is not enough; there, and for step 4, all
shifts of few records and groups are compared exactly at the least kappa, and none exceeds its price
(tests/privacy/test_person_lattice.py). So are the lengths of two parties, which only merge: (a, b)
become (a + b, 0). Of three parties and more they also pass from sums of an even number of draws to
sums of an odd number. An even sum can be 0, an odd one cannot, so that the least ratio, exp(-s / (2
kappa)), is less than the priced one, by a factor of cosh(1 / (2 kappa))^K. For them kappa is
priced less LATTICE. That lowers the priced least ratio by more, as long as LATTICE is at least kappa
/ (4 (kappa - LATTICE) ``groups``), and ``groups`` is at least 3 there.

A person with fewer records is dominated step by step: there are fewer factors and more blocks. To
first order the price is K^2 times that of one record, as for Gaussian noise: K times in epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from ..arrays import Floats
from .count_sketch import (
    COVERED_EPSILON,
    DRAW_DISTANCE,
    RARE,
    STEPS_PER_SPREAD,
    Law,
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

# Grid of products of ratios: points per standard deviation, up to NEAR deviations; then the growth
# factor of the steps.
FINE, NEAR, GROWTH = 40.0, 12.0, 1.03
# Most steps of the largest ratio, and fewest steps per block.
MAX_STEPS, STEPS_PER_BLOCK = 1 << 17, 256
# What is subtracted from kappa where three parties or more may hold different records of a person.
LATTICE = 0.25
# With fewer buckets, or less noise per group and record, the tails of the law do not fit on a grid.
MIN_BUCKETS, MIN_VARIANCE_PER_VALUE = 64, 1.0


def person_excess(
    groups: int, variance: float, buckets: int, records: int, parties: int = 1
) -> float:
    """Variance of the ratio of one repetition without shared buckets.

    To first order, it is records^2 times that of one record.

    Args:
        groups, variance, buckets: as in :func:`~.count_sketch.ratio_law`.
        records: largest number of records per person.
        parties: number of parties whose records of a person may differ.
    """
    single = excess(groups, variance)
    return slots(records, parties) * math.expm1(records * math.log1p(single)) / buckets


def slots(records: int, parties: int) -> int:
    """Colours for the records of a person, of which each party has up to ``records``, so that any
    two at one party differ.
    """
    if parties == 3:
        return 3 * records // 2
    return records if parties < 3 else math.isqrt(records**2 * parties)


def blocks_of(buckets: int, records: int, parties: int, e: int) -> int:
    """Number of independent products of which a repetition's ratio is a mean."""
    if parties == 1:
        return buckets // (records - e)
    blocks = buckets // slots(records, parties)
    # Records of one colour take the buckets of different blocks.
    return blocks if blocks >= parties else 1


def sharing(buckets: int, records: int, parties: int = 1) -> Floats:
    """Probability that K records in random buckets fill K - e of them, for e = 0, 1, ...
    [shape=(records,)].

    With several parties it is a bound: that of the largest e, of K records at each of them.
    """
    filled = np.zeros(records + 1)
    filled[0] = 1.0
    used = np.arange(records + 1)
    for _ in range(records):
        filled = filled * used / buckets + np.append(0.0, (filled * (1 - used / buckets))[:-1])
    more = np.minimum(parties * np.cumsum(filled[1:])[::-1], 1.0)
    return filled[:0:-1] if parties == 1 else more - np.append(more[1:], 0.0)


@lru_cache(maxsize=4)
def person_law(
    groups: int,
    variance: float,
    buckets: int,
    records: int,
    rare: float = RARE,
    parties: int = 1,
) -> Law:
    """Law of the likelihood ratio of one repetition under Q for ``records`` records, as
    :func:`~.count_sketch.ratio_law`.

    Args:
        groups: number of values of a record.
        variance: kappa.
        buckets: B, at least ``records``.
        records: number of records of the person, 2 or more.
        rare: approximate probability that may be left out, at least RARE. It is the probability
            together with that of how records share buckets. The largest ratios are left out up to
            this probability with the person (and a smaller one without), and everything beyond the
            window of their mean.
        parties: number of parties whose records of a person may differ.

    Returns:
        Ratios [shape=(k,), float64, increasing], their probabilities under Q [shape=(k,), float64],
        and a bound on the missing or misplaced probability.

    Raises:
        PrivacyError: the noise is too small to have a price.
    """
    reach = reach_of(rare / buckets)
    priced = variance - LATTICE * (parties > 2)
    single = bucket_ratio(groups, priced, reach=reach)
    ratios, masses, lost = [], [], 0.0
    for e, chance in enumerate(sharing(buckets, records, parties)):
        given = min(rare / (buckets * chance), 1.0) if chance else 1.0
        if given == 1.0:
            lost += chance
            continue
        if e < 2:
            deviation, mass, given_up = _power(single, records - 2 * e, given)
            if e:
                deviation, mass, more = _product(
                    (deviation, mass), bucket_ratio(groups, priced, 2.0, reach), given
                )
                given_up += more
        else:
            widest = bucket_ratio(groups, priced, math.sqrt(_widest(e, records)), reach)
            deviation, mass, given_up = _cut(*widest, given)
        blocks = blocks_of(buckets, records, parties, e)
        step = max(
            math.sqrt(float((mass * deviation**2).sum())) / STEPS_PER_SPREAD,
            float(deviation[-1]) / MAX_STEPS,
        )
        # Ratios minus 1 lie above -1. With steps that are small relative to their number, their
        # mean stays above 0.
        step = min(step, blocks / STEPS_PER_BLOCK)
        ratio, convolved, missing = mean_law(deviation, mass, blocks, step, given)
        ratios.append(ratio)
        masses.append(chance * convolved)
        lost += chance * (
            missing + blocks * (given_up + (records + 1) * 4 * float(special.ndtr(-reach)))
        )
    lost += records * groups * buckets * DRAW_DISTANCE * (1 + math.exp(COVERED_EPSILON))
    ratio, mass = np.concatenate(ratios), np.concatenate(masses)
    mass *= math.exp(records * buckets * gaussian_sum_error(groups, variance))
    order = np.argsort(ratio)
    return ratio[order], mass[order], lost


def person_renyi(
    law: Law,
    groups: int,
    variance: float,
    buckets: int,
    records: int,
    orders: Floats,
    rho: float,
) -> Floats:
    """Rényi divergences of one repetition, the larger direction.

    Moments of products of independent ratios are products of moments. At all orders the divergence
    is at most that of records that share their values and a known bucket.

    Args:
        law: from :func:`person_law`.
        groups, variance, buckets, records: as there.
        orders: orders above 1 [shape=(k,), float64].
        rho: approximate zCDP cost of all repetitions; see :func:`~.count_sketch.highest_order`.

    Returns:
        Divergences [shape=(k,), float64].
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
    """Largest squared shift, in records, if ``e`` records share buckets beyond the necessary."""
    return (e + 1) ** 2 + records - e - 1


def _power(law: tuple[Floats, Floats], exponent: int, rare: float) -> Law:
    """Law of a product of independent ratios of one law, and the probability given up.

    The empty product is 1.
    """
    deviation, mass, given_up = np.zeros(1), np.ones(1), 0.0
    for bit in f"{exponent:b}":
        if len(mass) > 1:
            deviation, mass, more = _product((deviation, mass), (deviation, mass), rare)
            given_up = 2 * given_up + more
        if bit == "1":
            deviation, mass, more = _product((deviation, mass), law, rare)
            given_up += more
    return deviation, mass, given_up


def _product(one: tuple[Floats, Floats], other: tuple[Floats, Floats], rare: float) -> Law:
    """Law of the product of two independent ratios on a grid, and the probability given up.

    The grid keeps the mean.
    """
    (x, p), (y, q) = one, other
    deviation = (x[:, None] + y + x[:, None] * y).ravel()
    mass = (p[:, None] * q).ravel()
    spread = math.sqrt(float((mass * deviation**2).sum()))
    low, high = float(deviation.min()), float(deviation.max())
    near = np.arange(
        max(low, -NEAR * spread), min(high, NEAR * spread) + 2 * spread / FINE, spread / FINE
    )
    beyond = max(math.ceil(math.log(max(high / near[-1], 1.0)) / math.log(GROWTH)), 0)
    grid = np.concatenate(
        [[low] if low < near[0] else [], near, near[-1] * GROWTH ** np.arange(1, beyond + 2)]
    )
    below = np.clip(np.searchsorted(grid, deviation, side="right") - 1, 0, len(grid) - 2)
    above = np.clip((deviation - grid[below]) / (grid[below + 1] - grid[below]), 0.0, 1.0)
    out = np.bincount(below, mass * (1 - above), len(grid)) + np.bincount(
        below + 1, mass * above, len(grid)
    )
    kept = out > 0
    return _cut(grid[kept], np.asarray(out[kept], np.float64), rare)


def _cut(deviation: Floats, mass: Floats, rare: float) -> Law:
    """A law without its largest ratios, and the probability given up with and without the person.

    Deviations must increase.
    """
    above = np.cumsum((mass * (1 + deviation))[::-1])[::-1]
    kept = above >= rare
    return deviation[kept], mass[kept], 0.0 if kept.all() else 2 * rare
