"""CarEst of the paper's encoder: marginals from shared-key sketches (VertiMRF, Algorithm 4).

A record outside a cell has another value of at least one of the cell's attributes. So the count of
a cell is the number of all records less the size of the union of the other values' sketches, which
is estimated from the maximum of their levels under each key.

The union's size M, with phantoms, follows from the mean of 2^-level over the keys. Levels are cut
at the plan's floor and ceiling, which would bias HyperLogLog's formula. So M is the number whose
expected mean under the cut law, P(level <= x) = (1 - 2^-x)^M, equals the observed one, corrected
for the second-order bias of inverting a random mean. Where no level is cut, this is HyperLogLog's
0.7213 / (1 + 1.079 / t) times the harmonic mean, and the standard error of a cell is 1.04 (union +
phantoms) / sqrt(t), whatever the cell's size.

The printed algorithm differs from its text in two places, and this follows the text: the harmonic
mean is of 2^level, with HyperLogLog's constant, not of the levels; and each joined sketch has
phantoms of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ...arrays import Bytes, Floats, Integers, Ints
from ...errors import PlanError
from ...kernels.jit import in_slices
from ...kernels.shared_keys import invert_shares, largest_two, union_shares
from ...model.measurement import Measurement
from ..received import CrossParty, Received
from .parameters import SharedKeys

Bins = Integers | None
# Grid points per unit of the logarithm of the number of items. The relative error of interpolation
# is below 1e-4, far below that of the sketches.
GRID = 4
# Fewest cells worth a thread.
CELLS = 1 << 12


def estimate(sketch: SharedKeys, received: Received) -> CrossParty:
    """See :meth:`.CrossPartyRelease.estimate`."""
    levels = [table for message in received.messages for table in message.sketches]
    attributes = [group.attributes[0] for group in received.plan.groups]
    cuts = [maps[0] for maps in received.bins]
    return received.of_parties(
        published_estimates(sketch, attributes, cuts, levels, received.wanted, received.total)
    )


def published_estimates(
    plan: SharedKeys,
    attributes: Sequence[int],
    bins: Sequence[Bins],
    levels: Sequence[Bytes],
    marginals: Sequence[Ints],
    total: float,
) -> list[Measurement]:
    """Estimate every cell of marginals: the total less the union of other values' records.

    Counts are at least 0.

    Args:
        plan: the sketches' phantoms, floor, ceiling and keys.
        attributes: sketched attributes of all parties, as indices into the schema.
        bins: per sketched attribute, the map code -> published value [shape=(size,), int64], or
            None.
        levels: per sketched attribute, its levels [shape=(values, keys), uint8].
        marginals: attributes of each marginal, as indices into the schema, strictly increasing.
        total: estimated number of records.

    Returns:
        One measurement for each marginal. If every attribute of a marginal has one value, there are
        no other values to count: the cell is the total, and its error is half a record.

    Raises:
        PlanError: the marginals have more than 2^31 cells, or there are so many keys that the sums
            overflow.
    """
    _check_plan(plan)
    row = {attribute: i for i, attribute in enumerate(attributes)}
    sizes = [len(table) for table in levels]
    joined = np.concatenate(levels) if levels else np.empty((0, plan.keys), np.uint8)
    values, sigma, ends = estimate_cells(
        plan, joined, sizes, [[row[a] for a in m] for m in marginals], total
    )
    out = []
    for marginal, begin, end in zip(marginals, [0, *ends], ends, strict=False):
        shape = [sizes[row[a]] for a in marginal]
        maps = tuple(bins[row[a]] for a in marginal)
        counts, errors = values[begin:end].reshape(shape), sigma[begin:end].reshape(shape)
        out.append(Measurement(marginal, maps, counts, errors, "published sketches"))
    return out


def estimate_cells(
    plan: SharedKeys,
    levels: Bytes,
    sizes: Sequence[int],
    marginals: Sequence[Sequence[int]],
    total: float,
) -> tuple[Floats, Floats, list[int]]:
    """Estimate all cells of all marginals.

    Args:
        plan: the sketches' phantoms, floor, ceiling and keys.
        levels: of all attributes, one after another [shape=(all values, keys), uint8].
        sizes: number of values of each attribute.
        marginals: attributes of each marginal, by their place in ``sizes``.
        total: estimated number of records.

    Returns:
        Counts and standard errors of the cells of all marginals, one after another
        [both shape=(cells,), float64], and where each marginal's cells end.

    Raises:
        PlanError: more than 2^31 cells.
    """
    if not marginals:
        return np.empty(0), np.empty(0), []
    members = np.fromiter(itertools.chain.from_iterable(marginals), np.int64)
    starts = np.array([0, *itertools.accumulate(map(len, marginals))])
    values_of = np.array(sizes, np.int64)
    size = values_of[members]
    # An attribute of one value has no other values: it adds nothing to a union.
    counted = size > 1
    if np.multiply.reduceat(size + counted, starts[:-1], dtype=np.float64).sum() >= 1 << 31:
        raise PlanError(
            "The marginals have more than 2^31 cells together; ask for fewer at a time, or for coarser bins."
        )
    ends = np.multiply.reduceat(size, starts[:-1]).cumsum()
    others = np.add.reduceat(size - 1, starts[:-1]).repeat(np.diff(ends, prepend=0))
    first_member = np.concatenate([[0], counted.cumsum()])[starts]
    shape = (len(sizes), plan.keys)
    largest, second, holder = (
        np.empty(shape, np.uint8),
        np.empty(shape, np.uint8),
        np.empty(shape, np.uint16),
    )
    first_row = np.array([0, *itertools.accumulate(sizes)])
    in_slices(
        len(sizes),
        1,
        lambda begin, end: largest_two(levels, first_row, begin, end, largest, second, holder),
    )
    first_cell = np.concatenate([[0], ends])
    shares = np.empty(int(ends[-1]), np.int64)
    unions = largest, second, holder, values_of, members[counted], first_member, first_cell
    in_slices(
        len(marginals),
        1,
        lambda begin, end: union_shares(*unions, plan.ceiling, begin, end, shares),
    )
    items, errors = _invert(plan, shares)
    values = np.maximum(total + plan.phantoms * others - items, 0.0)
    sigma = errors
    if not counted.all():
        alone = others == 0
        values[alone], sigma[alone] = max(total, 0.0), 0.5
    return values, sigma, ends.tolist()


def _check_plan(plan: SharedKeys) -> None:
    if plan.ceiling <= max(plan.floor, 1):
        raise PlanError(
            f"Levels {plan.floor} .. {plan.ceiling} are all alike and count nothing; raise the ceiling."
        )
    if plan.keys << (plan.ceiling - max(plan.floor, 1)) >= 1 << 63:
        raise PlanError(
            f"{plan.keys} keys with levels {plan.floor} .. {plan.ceiling} overflow the exact sums; raise the floor or use "
            "fewer keys."
        )


def _invert(plan: SharedKeys, shares: Integers) -> tuple[Floats, Floats]:
    """Numbers of items and their standard errors, from sums of 2^(ceiling - level)."""
    items, errors = np.empty(shares.size), np.empty(shares.size)
    low, high, *law = cut_law(plan.floor, plan.ceiling, plan.keys)
    top = 2.0**plan.ceiling
    tabulated = low * top, high * top, 1 / plan.keys, *law
    in_slices(
        shares.size,
        CELLS,
        lambda begin, end: invert_shares(shares, *tabulated, begin, end, items, errors),
    )
    return items, errors


def cut_law(
    floor: int, ceiling: int, keys: int
) -> tuple[float, float, Floats, Floats, Floats, Floats, Floats]:
    """Tabulate the mean of 2^-level of the highest of M levels, cut at floor and ceiling.

    By summation by parts the mean is g(M) = 2^-ceiling + sum over floor <= x < ceiling of 2^-(x+1)
    (1 - 2^-x)^M. The grid of M ends where fewer than one key in four is expected off the floor, or
    off the ceiling.

    Args:
        floor: lowest level published; a draw has at least level 1.
        ceiling: highest level published.
        keys: number of keys over which 2^-level is averaged.

    Returns:
        g(infinity), g(0), and on the grid [each shape=(g,), float64]: log((g(0) - g) / (g -
        g(infinity))); log M; the derivative of the second by the first; the factor that removes the
        bias of the M that follows from a mean of ``keys`` levels; and the relative standard error
        of that M.
    """
    levels = np.arange(max(floor, 1), ceiling, dtype=np.float64)
    low, high = 2.0**-ceiling, 2.0 ** -max(floor, 1)
    hazard = -np.log1p(-np.exp2(-levels))
    log_size = np.arange(
        math.log(1 / (4 * keys * hazard[0])),
        math.log(math.log(4 * keys + 1) / hazard[-1]) + 1 / GRID,
        1 / GRID,
    )
    exponent = np.exp(log_size)[:, None] * hazard
    power = np.exp(-exponent)
    weight = np.exp2(-levels - 1)
    off_low, square = power @ weight, power @ (3 * weight**2)
    # At the grid's lower end this and the variance still have half of their digits.
    off_high = weight.sum() - off_low
    # M g' and M^2 g''.
    power *= exponent
    first = -(power @ weight)
    second = (power * exponent) @ weight
    position = np.log(off_high) - np.log(off_low)
    slope = 1 / (-first / off_high - first / off_low)
    # Variance of the mean of 2^-level; the second derivative of the inverse of g is -g'' / g'^3.
    variance = (square - off_low * (2 * low + off_low)) / keys
    bias = -0.5 * second / first**3 * variance
    return low, high, position, log_size, slope, 1 / (1 + bias), np.sqrt(variance) / -first
