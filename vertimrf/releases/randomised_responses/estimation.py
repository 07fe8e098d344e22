"""CarEst of randomised responses: all cross-party pairs; without local models, all pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Bytes, Floats, Integers
from ...errors import MessageError
from ...model.measurement import Measurement
from ...plan.plan import Plan
from ..received import CrossParty, Received
from .parameters import RandomisedResponses

if TYPE_CHECKING:
    from ...message import Message


def estimate(sketch: RandomisedResponses, received: Received) -> CrossParty:
    """See :meth:`.CrossPartyRelease.estimate`."""
    plan, messages = received.plan, received.messages
    _check_rows(plan, messages)
    attributes = [group.attributes[0] for group in plan.groups]
    tables = [table for message in messages for table in message.sketches]
    cuts = [maps[0] for maps in received.bins]
    found = _responses(sketch, attributes, tables, cuts, received)
    return received.of_parties(found)


def count_marginal(
    plan: RandomisedResponses, attributes: Sequence[int], responses: Sequence[Bytes]
) -> tuple[Floats, Floats]:
    """Estimate a marginal's counts without bias, and their errors (FO-based CarEst, section 4.2).

    The paper inverts one transition matrix over all tuples of values. It is a Kronecker product of
    one matrix (p - q) I + q J for each attribute, so that its inverse is taken axis by axis, with a
    subtraction and a division.

    The table is fixed and only the responses are random. So the count of a cell v has the exact
    variance

        sum over tuples x of T(x) prod_i K_i(v_i, x_i) - T(v),

    where K_i(v, x) is the second moment of the inverse's entry (v, y) over the responses y to x.
    Its unbiased estimate uses the estimated counts for T, and is kept above the least value that
    any table of n rows has.

    Args:
        plan: the public parameters.
        attributes: at least one, by their place in ``plan.sizes``, each once.
        responses: to the same records, of each attribute, checked [each shape=(1, n) or (n,), uint8].

    Returns:
        Counts, which may be negative, and standard errors, at least that of rounding to whole
        records [both shape=(values of attribute 1, ..., values of attribute l), float64].
    """
    shape = tuple(plan.sizes[attribute] for attribute in attributes)
    flat = np.zeros(responses[0].size, np.int64)
    for size, column in zip(shape, responses, strict=True):
        flat *= size
        flat += column.ravel()
    counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    for axis, size in enumerate(shape):
        kept, other = _probabilities(plan, size)
        counts = (counts - other * counts.sum(axis=axis, keepdims=True)) / (kept - other)
    variance = counts
    least, least_alone = 1.0, 1.0
    for axis, size in enumerate(shape):
        same, different = _second_moments(plan, size)
        variance = (same - different) * variance + different * variance.sum(
            axis=axis, keepdims=True
        )
        least, least_alone = least * min(same, different), least_alone * same
    variance = np.maximum(variance - counts, flat.size * min(least, least_alone - 1))
    return counts, np.sqrt(np.maximum(variance, 1 / 12))


def _probabilities(plan: RandomisedResponses, size: int) -> tuple[float, float]:
    """Probability of the true response, and of each other one."""
    unchanged = plan.unchanged(size)
    return (unchanged, (1 - unchanged) / (size - 1)) if size > 1 else (1.0, 0.0)


def _second_moments(plan: RandomisedResponses, size: int) -> tuple[float, float]:
    """E[g(v, y)^2] over the responses y to v, and to another value; g is the inverse's entry."""
    kept, other = _probabilities(plan, size)
    on, off = (1 - other) / (kept - other), -other / (kept - other)
    return on**2 * kept + off**2 * (1 - kept), on**2 * other + off**2 * (1 - other)


def _check_rows(plan: Plan, messages: Sequence[Message]) -> None:
    """Refuse randomised responses of different numbers of rows.

    Raises:
        MessageError: two parties have different numbers.
    """
    rows = {plan.party_names[m.party]: table.size for m in messages for table in m.sketches}
    if len(set(rows.values())) > 1:
        stated = ", ".join(f"{name} {count:,}" for name, count in rows.items())
        raise MessageError(
            f"The parties sent different numbers of rows ({stated}); they must encode the same records."
        )


def _responses(
    sketch: RandomisedResponses,
    published: Sequence[int],
    tables: Sequence[Bytes],
    bins: Sequence[Integers],
    received: Received,
) -> list[Measurement]:
    out = []
    for attributes in received.wanted:
        places = [published.index(a) for a in attributes]
        values, errors = count_marginal(sketch, places, [tables[i] for i in places])
        # Rows beyond the records are of ids without a record that fits. One that fits at no party of the
        # marginal counts alike in all its cells; one that fits at some is taken off so, too, which is rough.
        values -= max(tables[places[0]].size - received.total, 0.0) / values.size
        maps = tuple(bins[i] for i in places)
        out.append(Measurement(tuple(attributes), maps, values, errors, "randomised responses"))
    return out
