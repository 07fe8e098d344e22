"""Forecast of time and memory of every role in a run, computed from the plan alone."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Pair
from ..releases.count_sketches.parameters import SIGN
from .local_plan import LocalPlan
from .plan import Plan

# Core seconds, fitted to runs of the paper's tables, a payroll, PISA, and generated tables (two
# cores of a server).
START = 2.5  # the interpreter, libraries, and compiled kernels from the cache
VALUE = 0.2e-6  # a value of a record, read at a party or drawn at the server
MEASURED_CELL = 25e-6  # a cell of a local marginal: its noise at the party, its part in the first fit at the server
MODEL_CELL = 1.1e-6  # a cell of the global cliques, in all fits
OFF_TREE_PAIR, MAX_PAIRS = (
    0.05,
    500,
)  # a pair of attributes: off-tree factors, and picking of rows; no more pairs count
# Share of the work that runs on all cores.
SHARED = 0.6
# Bytes of Python and the libraries; of a record besides its codes; of the rows of a column that the
# server works on at a time.
PROCESS_BYTES, RECORD_BYTES, COLUMN_BYTES = 400e6, 32, 4e6
# Copies of a message while it is packed and sealed, or opened.
COPIES = 4
# Mean size of the cliques of a graph that has grown to its limit, as a share of the limit (0.28 to
# 0.52 on these tables).
FULL = 0.4
# Number of sampled triples of attributes that represent all triples of a party.
SAMPLED_TRIPLES = 2000


@dataclass(frozen=True)
class Forecast:
    """Work and memory of one role.

    Attributes:
        work: core seconds.
        memory: peak memory of the process, in bytes.
    """

    work: float
    memory: float

    @property
    def seconds(self) -> float:
        """Seconds on this machine if it is idle."""
        return self.work * (1 - SHARED + SHARED / (os.cpu_count() or 1))

    def __str__(self) -> str:
        return f"about {max(self.seconds, 1):,.0f} s on {os.cpu_count() or 1} cores and {self.memory / 1e9:.1f} GB"


@dataclass(frozen=True)
class WholeForecast:
    """Work and memory of a run.

    Attributes:
        parties: of each party, from reading its table to its message.
        server: from the messages to the synthetic table.
        trial: of all roles in one process.
        model_cells: cells of the global model's cliques.
    """

    parties: tuple[Forecast, ...]
    server: Forecast
    trial: Forecast
    model_cells: float


def forecast(plan: Plan) -> WholeForecast | None:
    """Forecast the work and memory of every role.

    Forecasts are mostly within a factor of two on an idle machine like the one that the constants
    were measured on. Compiling kernels takes further time.

    Args:
        plan: the plan.

    Returns:
        The forecast; None for encoders that are only for comparison.
    """
    if plan.sketch.compared:
        return None
    records, d = plan.expected_records, len(plan.schema.sizes)
    sketch, groups = plan.sketch, plan.groups_by_party
    parties_of = range(len(plan.local))
    numbers = [sketch.held(groups, party) for party in parties_of]
    parties, fitting = [], 0.0
    for party, (name, local) in enumerate(zip(plan.party_names, plan.local, strict=True)):
        sizes = [plan.schema.sizes[a] for a in plan.schema.varying(name)]
        # Codes of finer cells take as much memory as two columns.
        fine = [plan.schema.fine[a].size for a in plan.fine_of(party)]
        measuring = MEASURED_CELL * (measured_cells(sizes, local, records) + sum(fine))
        fitting += measuring
        signs = sum(
            SIGN * records * shared.repetitions for shared in plan.agreement_of(party).values()
        )
        work = (
            START
            + VALUE * records * len(sizes)
            + measuring
            + signs
            + sketch.encoding_work(groups, party, records)
        )
        memory = PROCESS_BYTES + records * (3 * len(sizes) + 4 * len(fine) + RECORD_BYTES)
        memory += max(
            sketch.width * numbers[party],
            numbers[party] + COPIES * plan.message_size(party),
        )
        parties.append(Forecast(work, memory))
    varying = [size for size in plan.schema.sizes if size > 1]
    cells = model_cells(varying, plan.tau)
    working = fitting + sketch.estimating_work() + MODEL_CELL * cells + VALUE * records * d
    if math.prod(map(float, varying)) > plan.tau:
        working += OFF_TREE_PAIR * min(math.comb(d, 2), MAX_PAIRS)
    largest = max(
        (float(plan.message_size(party)) for party in range(len(plan.local))), default=0.0
    )
    memory = (
        PROCESS_BYTES
        + sum(numbers)
        + max(COPIES * largest, 8 * cells)
        + (4 * records + COLUMN_BYTES) * d
    )
    # A trial starts one process, and keeps the codes of all parties while the server works.
    together = sum(party.work for party in parties) - START * (len(parties) - 1) + working
    rows = d + len(plan.schema.fine)
    most = max([memory + records * (2 * rows + RECORD_BYTES), *(party.memory for party in parties)])
    # All pieces of a party's rows for another, while that one answers them.
    sent: Counter[Pair] = Counter()
    for _, sender, receiver, _, size in sketch.files(groups):
        sent[sender, receiver] += size
    most += max(sent.values(), default=0)
    return WholeForecast(
        tuple(parties), Forecast(START + working, memory), Forecast(together, most), cells
    )


def least_memory(plan: Plan, party: int) -> float:
    """Bytes that a party's tables take under a plan, without its records."""
    widest = sorted(plan.schema.sizes[a] for a in plan.schema.varying(plan.party_names[party]))[-2:]
    pairs = 8.0 * math.prod(widest) if plan.local[party].score_sigma else 0.0
    return max(plan.sketch.width * plan.sketch.held(plan.groups_by_party, party), pairs)


def _together(sizes: Sequence[int], limit: float) -> float:
    """Mean number of attributes of a clique of ``limit`` cells."""
    if not sizes:
        return 0.0
    return min(
        max(math.log(limit) / max(float(np.mean(np.log(sizes))), 0.1), 1.0), float(len(sizes))
    )


def _cliques(sizes: Sequence[int], limit: float) -> float:
    """Number of cliques of a graph that has grown to its limit.

    Each clique has one attribute that the earlier ones lack.
    """
    return len(sizes) - _together(sizes, limit) + 1


def model_cells(sizes: Sequence[int], limit: float) -> float:
    """Cells of all cliques of a graph of these attributes that has grown to its limit."""
    everything = math.prod(map(float, sizes))
    return (
        everything
        if everything <= limit
        else max(FULL * limit * _cliques(sizes, limit), float(max(sizes)))
    )


def measured_cells(sizes: Sequence[int], local: LocalPlan, records: float) -> float:
    """Approximate number of cells of the marginals that a party measures.

    The party chooses them with ``choose_marginals`` in :mod:`vertimrf.party.local_model`.
    """
    d = len(sizes)
    alone = float(sum(sizes))
    if not local.units or d < 2:
        return alone
    k, cliques = (
        max(_together(sizes, local.largest_clique), 2.0),
        _cliques(sizes, local.largest_clique),
    )
    in_cliques = min(k * (k - 1) / 2 + max(cliques - 1, 0) * (k - 1), d * (d - 1) / 2)
    order = np.array(sizes, np.float64)
    pairs = ((order.sum() ** 2 - np.square(order).sum()) / (d * (d - 1))) * in_cliques
    triples = min(
        k * (k - 1) * (k - 2) / 6 + max(cliques - 1, 0) * (k - 1) * (k - 2) / 2,
        local.units - in_cliques,
    )
    if d < 3 or triples < 1:
        return float(alone + pairs)
    # The smallest marginals come first, as long as a mean count exceeds the noise of the shared
    # units.
    rng = np.random.default_rng(0)
    cells = np.sort(
        np.prod(order[[rng.choice(d, 3, replace=False) for _ in range(SAMPLED_TRIPLES)]], axis=1)
    )
    chosen = np.interp(np.linspace(0, 1, int(triples)), np.linspace(0, 1, SAMPLED_TRIPLES), cells)
    error = local.unit_sigma * np.sqrt((in_cliques + np.arange(1, len(chosen) + 1)) / local.units)
    return float(alone + pairs + chosen[records / chosen >= error].sum())
