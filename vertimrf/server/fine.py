"""How values are spread inside bins, from the parties' fine marginals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Floats
from ..message import Message
from ..model.local_marginal import one_way_counts
from ..plan.plan import Plan
from .parts import PartModel


def shapes_inside(
    plan: Plan, messages: Sequence[Message], parts: Sequence[PartModel]
) -> dict[int, Floats]:
    """Spread the records that models have in a bin over its finer cells.

    Of a shared column the first party's fine marginal counts.

    Args:
        plan: the plan.
        messages: of all parties.
        parts: the models of all people of the result.

    Returns:
        By position in the schema, the records of each finer cell (:meth:`.Attribute.shape`).
    """
    out: dict[int, Floats] = {}
    for message in sorted(messages, key=lambda message: message.party):
        one_way = one_way_counts(message.marginals)
        for a, noisy in zip(plan.fine_of(message.party), message.fine, strict=True):
            held = [part.field for part in parts if part.holds(plan.schema, (a,))]
            counts: Floats = sum((field.marginal((a,)) for field in held), np.zeros(1))
            # A party's people may be more than those of the result.
            scale = float(counts.sum() / max(one_way[a].sum(), 1.0))
            if a not in out:
                sigma = scale * plan.local[message.party].fine_sigma
                out[a] = plan.schema.attributes[a].shape(
                    counts, scale * noisy.astype(np.float64), sigma
                )
    return out
