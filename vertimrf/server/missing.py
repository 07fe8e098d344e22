"""Find columns that are missing together, from measured pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Ints
from ..model.couple import together
from ..model.markov_random_field import Factor
from ..model.measurement import BinMap, Measurement, one_way_margins
from ..plan.schema import Schema

# Records with one value of a pair missing may be so many standard errors, and the error so large a
# part of the records with both missing: on the demo they are 0.9 and 0.05, and the truth is 0.
ERRORS, PART = 2.5, 0.08


def missing_together(schema: Schema, measurements: Sequence[Measurement]) -> list[Factor]:
    """Rule out that one column is missing without another, where measurements show no such records.

    Args:
        schema: attributes and parties.
        measurements: noisy marginals.

    Returns:
        A factor for each such pair of columns.
    """
    last = {a: each.present for a, each in enumerate(schema.attributes) if each.missing}
    alone = {}
    for m in one_way_margins(measurements if last else ()):
        (a,), (bins,) = m.attributes, m.bins
        if a in last and (cell := _own_bin(bins, last[a])) is not None:
            alone[a] = m.counts[cell], np.broadcast_to(m.sigma, m.counts.shape)[cell]
    both: dict[Ints, list[tuple[float, float]]] = {}
    for m in measurements:
        if len(m.attributes) == 2 and not m.unknown and set(m.attributes) <= alone.keys():
            cells = [_own_bin(b, last[a]) for a, b in zip(m.attributes, m.bins, strict=True)]
            if None not in cells:
                at = tuple(cells)
                sigma = float(np.broadcast_to(m.sigma, m.counts.shape)[at])
                both.setdefault(m.attributes, []).append((float(m.counts[at]), sigma))
    out = []
    for pair, counted in both.items():
        precision = sum(sigma**-2 for _, sigma in counted)
        count = sum(n * sigma**-2 for n, sigma in counted) / precision
        apart = sum(alone[a][0] for a in pair) - 2 * count
        error = (sum(alone[a][1] ** 2 for a in pair) + 4 / precision) ** 0.5
        if apart <= ERRORS * error and error <= PART * count:
            sizes = [schema.sizes[a] for a in pair]
            out.append(together(pair, sizes, [last[a] for a in pair]))
    return out


def _own_bin(bins: BinMap | None, code: int) -> int | None:
    """The bin of a code that no other code shares; None if there is none."""
    if bins is None:
        return code
    return int(bins[code]) if (bins == bins[code]).sum() == 1 else None
