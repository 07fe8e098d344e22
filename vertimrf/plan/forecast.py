"""What a plan's sketches will take of a machine, told before any data is touched: public figures alone."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from ..sketches.parameters import SketchPlan
from .plan import Plan

__all__ = ["Forecast", "forecast"]

# Core seconds, measured on tables of 48 to 300 attributes and 20,000 to 67,000 records (two cores of a shared server): a record
# under one block of keys; a level that a record draws above where a row stops; a cell of a marginal, and a key of a cell.
SECONDS_PER_WORD = 7e-9
SECONDS_PER_EVENT = 15e-9
SECONDS_PER_CELL = 20e-6
SECONDS_PER_CELL_KEY = 1.1e-9
# What Python and the libraries take by themselves.
PROCESS_BYTES = 300e6
# Keys of a block (see ``vertimrf.sketches.encoder``), and how far below the mean a row's lowest level lies.
BLOCK_KEYS = 1 << 16
MARGIN = 1.5


@dataclass(frozen=True)
class Forecast:
    """Time and memory of one role's part in the sketches.

    Attributes:
        seconds: on all of this machine's cores.
        memory: of the process, bytes; a server's model comes on top, by its cliques.
    """

    seconds: float
    memory: float

    def __str__(self) -> str:
        return f"about {max(self.seconds, 1):,.0f} s on {os.cpu_count() or 1} cores and {self.memory / 1e9:.1f} GB"


def forecast(plan: Plan) -> tuple[list[Forecast], Forecast] | None:
    """Forecasts for every party, LocEnc, and for the server, CarEst; None for a plan without scheduled pairs.

    Within a factor of two on an idle machine of the kind that the figures above were measured on; kernels that still have to be
    compiled, and noise for the local marginals (about 25 microseconds a cell), come on top.
    """
    if not isinstance(plan.sketch, SketchPlan):
        return None
    cores = os.cpu_count() or 1
    records = plan.expected_records
    work = [0.0] * len(plan.local)
    levels = [0] * len(plan.local)
    estimating = 0.0
    for pair in plan.sketch.pairs:
        for group, bins in ((pair.left, pair.left_bins), (pair.right, pair.right_bins)):
            reached = math.log2(max(records / bins / (math.log(pair.keys) + MARGIN), 1))
            stop = min(max(int(reached), plan.sketch.floor, 1), plan.sketch.ceiling - 1)
            seconds = SECONDS_PER_WORD * math.ceil(pair.keys / BLOCK_KEYS) + SECONDS_PER_EVENT * pair.keys * 2.0**-stop
            work[plan.schedule.parties[group]] += records * seconds
            levels[plan.schedule.parties[group]] += bins * pair.keys
        estimating += pair.left_bins * pair.right_bins * (SECONDS_PER_CELL + SECONDS_PER_CELL_KEY * pair.keys)
    parties = []
    for party, name in enumerate(plan.party_names):
        columns = len(plan.schema.party_attributes(name)) + len(plan.schedule.of_party(party))
        # Codes and values of groups, two bytes each; digests, as they are and by value; levels, and packed.
        memory = PROCESS_BYTES + records * (2 * columns + 32) + 1.5 * levels[party]
        parties.append(Forecast(work[party] / cores, memory))
    return parties, Forecast(estimating / cores, PROCESS_BYTES + 1.5 * sum(levels))
