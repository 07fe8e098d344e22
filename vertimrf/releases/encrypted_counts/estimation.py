"""CarEst of encrypted counts: all pairs of groups of different parties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...model.measurement import Measurement
from ..received import CrossParty, Received, named, of_groups
from .parameters import EncryptedCounts


def estimate(sketch: EncryptedCounts, received: Received) -> CrossParty:
    """See :meth:`.CrossPartyRelease.estimate`."""
    return CrossParty(_encrypted_marginals(sketch, received))


def _encrypted_marginals(sketch: EncryptedCounts, received: Received) -> tuple[Measurement, ...]:
    """Measurements of encrypted counts: counts of the sample, scaled to all records.

    The sampling variance of a count T at a share t is T (1 - t) / t. Contrasts of a single bin are
    left out.
    """
    plan, bins, messages = received.plan, received.bins, received.messages
    count = messages[0].count
    share = sketch.sampled(0.0 if count is None else count, plan.count_sigma)
    out = []
    for message in messages:
        for (g, mine), table in zip(plan.counted_pairs(message.party), message.tables, strict=True):
            counts = table / share
            axes = [axis for axis, group in enumerate((g, mine)) if group in sketch.contrasts]
            # A contrast has either sign, and its records are as many as a usual value's.
            records = (
                np.full(counts.shape, received.total / counts.size)
                if axes
                else np.maximum(counts, 0)
            )
            noise = 2 * (sketch.noise(g, mine) / share) ** 2
            errors = np.sqrt(noise + records * (1 - share) / share)
            for axis in axes:
                # As for contrasts of local marginals.
                counts = np.concatenate([counts, -counts], axis) / 2
                errors = np.concatenate([errors, errors], axis) / math.sqrt(2)
            measured = of_groups(plan, bins, (g, mine), counts, errors, sketch.contrasts)
            says = named(plan, measured, "encrypted counts")
            out.append(replace(says, completed=False))
    return tuple(m for m in out if m.dimensions)
