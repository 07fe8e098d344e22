"""Total variation distances of marginals of two tables, half the sum of |p - q| of exact counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Codes, Integers, Ints
from ..errors import PlanError
from ..kernels.contingency import contingency
from ..kernels.jit import for_each

# Marginals with at most this many cells, or at most one per record, are counted cell by cell.
# Larger ones go record by record.
FEW_CELLS = 1 << 16
# Up to this many attribute subsets are listed, and some of them chosen. If there are more, subsets
# are drawn until distinct.
LISTED_SUBSETS = 100_000


def distance(
    real: Codes, synthetic: Codes, sizes: Sequence[int], attributes: Sequence[int]
) -> float:
    """Total variation distance, half the sum of |p - q|, of one marginal.

    Args:
        real, synthetic: codes of two tables [each shape=(d, records), uint16].
        sizes: number of codes of every attribute.
        attributes: positions of the marginal's attributes.
    """
    n, m = real.shape[1], synthetic.shape[1]
    cells = math.prod(sizes[i] for i in attributes)
    if cells <= max(FEW_CELLS, n + m):
        p, q = (
            contingency(real, sizes, attributes) / n,
            contingency(synthetic, sizes, attributes) / m,
        )
    else:
        p_counts, q_counts = occupied_counts(real, synthetic, sizes, attributes)
        p, q = p_counts / n, q_counts / m
    return 0.5 * float(np.abs(p - q).sum())


def occupied_counts(
    real: Codes, synthetic: Codes, sizes: Sequence[int], attributes: Sequence[int]
) -> tuple[Integers, Integers]:
    """Counts of the cells that occur in either table.

    Memory grows with the records, not with the domain.

    Args:
        real, synthetic, sizes, attributes: as in :func:`distance`.

    Returns:
        Counts of the real and of the synthetic table [both shape=(cells,), int64].
    """
    n = real.shape[1]
    keys = np.zeros(n + synthetic.shape[1], np.int64)
    span = 1
    for i in attributes:
        # Renumber before the product exceeds int64. One bit is reserved for the number of the
        # table.
        if span * sizes[i] >= 1 << 62:
            occupied, keys = np.unique(keys, return_inverse=True)
            span = len(occupied)
        keys *= sizes[i]
        keys[:n] += real[i]
        keys[n:] += synthetic[i]
        span *= sizes[i]
    # Sorting cell and table as one number is several times faster than np.unique with counts per
    # table.
    keys *= 2
    keys[n:] += 1
    keys.sort()
    last = np.append(np.flatnonzero(np.diff(keys >> 1)), len(keys) - 1)
    both = np.diff(last, prepend=-1)
    second = np.diff(np.cumsum(keys & 1)[last], prepend=0)
    return both - second, second


def random_marginals(
    attributes: int,
    way: int,
    marginals: int = 300,
    seed: int = 0,
    parties: Sequence[int] | None = None,
) -> list[Ints]:
    """Draw distinct random subsets of attributes with equal probability; all subsets if there are
    not more than ``marginals``.

    Args:
        attributes: number of attributes d.
        way: attributes per subset.
        marginals: number of subsets.
        seed: the draw depends on it and on ``way`` alone.
        parties: party of each attribute [length d]; then only subsets that span two or more parties
            count.

    Returns:
        Strictly increasing tuples, sorted.

    Raises:
        PlanError: there is no such subset.
    """

    def spans(subset: Sequence[int]) -> bool:
        return parties is None or len({parties[i] for i in subset}) > 1

    total = math.comb(attributes, way) if way > 0 else 0
    attributes_of = [] if parties is None else [parties.count(party) for party in set(parties)]
    eligible = total - sum(math.comb(count, way) for count in attributes_of)
    if marginals < 1:
        raise PlanError(f"The number of marginals must be at least 1, not {marginals}.")
    if eligible <= 0:
        spanning = "" if parties is None else " that span parties"
        raise PlanError(
            f"There are no {way}-way marginals{spanning} of {attributes} attributes; "
            "ask for fewer attributes per marginal."
        )
    rng = np.random.default_rng([seed, way])
    if total <= LISTED_SUBSETS:
        listed = [
            subset for subset in itertools.combinations(range(attributes), way) if spans(subset)
        ]
        if len(listed) <= marginals:
            return listed
        return [listed[i] for i in sorted(rng.choice(len(listed), marginals, replace=False))]
    drawn: set[Ints] = set()
    while len(drawn) < min(marginals, eligible):
        subset = tuple(sorted(rng.choice(attributes, way, replace=False).tolist()))
        if spans(subset):
            drawn.add(subset)
    return sorted(drawn)


def tvd(
    real: Codes,
    synthetic: Codes,
    sizes: Sequence[int],
    ways: Sequence[int] = (3, 4, 5),
    marginals: int = 300,
    seed: int = 0,
    parties: Sequence[int] | None = None,
) -> dict[int, float]:
    """Mean total variation distance between marginals of two tables.

    Args:
        real: codes [shape=(d, n), uint16].
        synthetic: codes [shape=(d, m), uint16].
        sizes: number of codes of each attribute [length d].
        ways: numbers of attributes per marginal.
        marginals, seed, parties: as in :func:`random_marginals`, per way.

    Returns:
        The mean of 1/2 sum |p - q| per way; 0 means equal marginals, 1 disjoint ones.

    Raises:
        PlanError: a way for which there are no marginals.
    """
    out = {}
    for way in ways:
        subsets = random_marginals(len(sizes), way, marginals, seed, parties)

        def of_marginal(number: int, subsets: Sequence[Ints] = subsets) -> float:
            return distance(real, synthetic, sizes, subsets[number])

        out[way] = math.fsum(for_each(len(subsets), of_marginal)) / len(subsets)
    return out


def usual_ways(attributes: int) -> list[int]:
    """The paper's attributes per marginal (3, 4 and 5), up to the number of attributes."""
    return [way for way in (3, 4, 5) if way <= attributes] or [attributes] * (attributes > 0)
