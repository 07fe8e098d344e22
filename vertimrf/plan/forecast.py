"""What a plan will take of everybody's machine, told before any data is touched: public figures alone."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..sketches.parameters import CountSketchPlan, SketchPlan
from .merging import merging
from .plan import LocalPlan, Plan

__all__ = ["Forecast", "WholeForecast", "forecast", "least_memory", "measured_cells", "model_cells"]

# Core seconds, measured on whole runs of Adult, the demo and generated tables of 110 and 300 attributes (two cores of a busy
# server). Start-up: the interpreter, libraries, and kernels from the cache.
START = 2.5
SECONDS_PER_READ_VALUE = 0.2e-6
# Local marginals: exact noise for a cell; the search among a party's pairs for what to measure; a record counted in a pair.
SECONDS_PER_NOISE = 27e-6
SECONDS_PER_LOCAL_PAIR = 0.6e-3
SECONDS_PER_COUNTED = 1.5e-9
# Scheduled pairs: a record under one block of keys; a level that a record draws above where a row stops; the phantom of a level;
# a cell of a marginal, and a key of a cell.
SECONDS_PER_WORD = 7e-9
SECONDS_PER_EVENT = 15e-9
SECONDS_PER_PHANTOM = 9e-9
SECONDS_PER_CELL = 20e-6
SECONDS_PER_CELL_KEY = 1.1e-9
# Count sketches: a record's sign in one table; the noise of a number; a product of two numbers; a cell of a pair.
SECONDS_PER_SIGN = 2.0e-9
SECONDS_PER_NUMBER = 12e-9
SECONDS_PER_PRODUCT = 0.15e-9
SECONDS_PER_COUNTED_CELL = 1e-6
# Messages: a byte packed and sealed, or opened and unpacked.
SECONDS_PER_BYTE = 9e-9
# Models: a cell of the local cliques and of what is measured of them, in the first fit; a cell of the global cliques, in all
# fits while the graph grows and after; a clique, and a value of a row, in sampling.
SECONDS_PER_FIT = 0.4
SECONDS_PER_LOCAL_CELL = 0.2e-6
SECONDS_PER_MEASURED_CELL = 20e-6
SECONDS_PER_MODEL_CELL = 1.1e-6
SECONDS_PER_CLIQUE = 3e-3
SECONDS_PER_SAMPLED = 40e-9
# Factors beyond the cliques: a row looked up in a table, twice, in every evaluation, about so many of them; tables for each pair
# of attributes; rows at least and at most; and lookups of an evaluation at most, more of tables with few cells for the rows. Rows
# that are halved: drawn for each, a lookup, and how many at most. See ``vertimrf.model.beyond`` and ``vertimrf.model.sample``.
SECONDS_PER_BEYOND = 3.2e-9
EVALUATIONS = 60
TABLES_PER_PAIR = 1.15
ROWS_BEYOND, LEAST_ROWS_BEYOND, MOST_ROWS_BEYOND, MOST_BEYOND = 3.0, 1 << 17, 1 << 18, 1e8
MOST_OF_FEW_CELLS, ROWS_PER_CELL = 4e8, 12
SECONDS_PER_HALVED = 5e-9
DRAWN, BATCH, MOST_HALVED = 8, 1 << 17, 4e8
# How much of the work runs on several cores; the rest waits for one.
SHARED = 0.6
# What Python and the libraries take by themselves.
PROCESS_BYTES = 400e6
# Copies of a message while it is packed and sealed, or opened.
COPIES = 4
# Keys of a block (see ``vertimrf.sketches.encoder``), and how far below the mean a row's lowest level lies.
BLOCK_KEYS = 1 << 16
MARGIN = 1.5
# Values of groups that are worked out at a time (``vertimrf.party.records``), and digests that are put in order of them.
GROUPED_CELLS, GROUPED_DIGESTS = 1 << 26, 1 << 25
# How full the cliques of a graph are that has grown to its limit, on average (0.28 to 0.52 on the tables above).
FULL = 0.4
# Triples that stand for all of a party's.
SAMPLED_TRIPLES = 2000


@dataclass(frozen=True)
class Forecast:
    """What one role's part of a run takes of its machine.

    Attributes:
        work: core seconds.
        memory: of the process at its peak, bytes.
    """

    work: float
    memory: float

    @property
    def seconds(self) -> float:
        """On this machine, were it idle."""
        return self.work * (1 - SHARED + SHARED / (os.cpu_count() or 1))

    def __str__(self) -> str:
        return f"about {max(self.seconds, 1):,.0f} s on {os.cpu_count() or 1} cores and {self.memory / 1e9:.1f} GB"


@dataclass(frozen=True)
class WholeForecast:
    """A run.

    Attributes:
        parties: for each, from reading its table to its message.
        server: from messages to the synthetic table.
        trial: all of them in one process.
        model_cells: of the global model's cliques.
    """

    parties: tuple[Forecast, ...]
    server: Forecast
    trial: Forecast
    model_cells: float


def forecast(plan: Plan) -> WholeForecast | None:
    """Work and memory of every role; None for the encoders that are there for comparison.

    Mostly within a factor of two of what then happens, on an idle machine of the kind that the figures above were measured on.
    Kernels that still have to be compiled come on top.
    """
    if not isinstance(plan.sketch, SketchPlan | CountSketchPlan | None):
        return None
    records = plan.expected_records
    d = len(plan.schema.sizes)
    encoding, estimating = _sketches(plan)
    parties, local_model = [], 0.0
    packed = [float(plan.message_size(party)) for party in range(len(plan.local))]
    held = [_numbers(plan, party) for party in range(len(plan.local))]
    wide = _wide(plan)
    for party, (name, local) in enumerate(zip(plan.party_names, plan.local, strict=True)):
        sizes = [plan.schema.sizes[a] for a in plan.schema.varying(name)]
        measured = measured_cells(sizes, local, records)
        pairs = len(sizes) * (len(sizes) - 1) / 2 if local.score_sigma else 0
        work = START + records * len(sizes) * SECONDS_PER_READ_VALUE + SECONDS_PER_NOISE * measured
        work += pairs * (SECONDS_PER_LOCAL_PAIR + records * SECONDS_PER_COUNTED)
        work += encoding[party] + packed[party] * SECONDS_PER_BYTE
        local_model += SECONDS_PER_MEASURED_CELL * measured
        if local.units:
            local_model += SECONDS_PER_LOCAL_CELL * model_cells(sizes, local.largest_clique)
        work += sum(SECONDS_PER_SIGN * records * sketch.repetitions for sketch in plan.agreement_of(party).values())
        # Codes, two bytes each, once more where values of some are merged, and digests, as they are and sorted; then pieces of
        # groups, and digests by value.
        copies = 2 if merging(plan.schema, name) else 1
        table = records * (2 * copies * len(sizes) + 24) + 2 * min(records * len(plan.schedule.of_party(party)), GROUPED_CELLS)
        if not isinstance(plan.sketch, CountSketchPlan):
            table += 8 * min(records * len(plan.schedule.of_party(party)), max(records, GROUPED_DIGESTS))
        memory = PROCESS_BYTES + table + max(wide * held[party], held[party] + COPIES * packed[party])
        parties.append(Forecast(work, memory))
    varying = [size for size in plan.schema.sizes if size > 1]
    cells = model_cells(varying, plan.tau)
    working = SECONDS_PER_FIT + local_model + estimating + sum(packed) * SECONDS_PER_BYTE
    working += SECONDS_PER_MODEL_CELL * cells + SECONDS_PER_CLIQUE * _cliques(varying, plan.tau)
    pairs = d * (d - 1) / 2
    if math.prod(map(float, varying)) > plan.tau:
        rows = min(max(ROWS_BEYOND * records, LEAST_ROWS_BEYOND), MOST_ROWS_BEYOND)
        cells_of_pair = (sum(varying) ** 2 - sum(size * size for size in varying)) / 2 / max(pairs, 1)
        most_lookups = max(min(rows * rows / ROWS_PER_CELL / max(cells_of_pair, 1), MOST_OF_FEW_CELLS), MOST_BEYOND)
        working += SECONDS_PER_BEYOND * EVALUATIONS * min(rows * pairs * TABLES_PER_PAIR, most_lookups)
    looked_up = DRAWN * records * (pairs + math.comb(d, 3))
    working += SECONDS_PER_SAMPLED * DRAWN / 2 * records * d + SECONDS_PER_HALVED * min(looked_up, MOST_HALVED)
    memory = PROCESS_BYTES + sum(held) + max(COPIES * max(packed, default=0.0), 8 * cells) + 4 * records * d
    memory += 4 * DRAWN * min(records, BATCH) * d
    # A trial starts once, and keeps the codes of all parties while the server works.
    together = sum(party.work for party in parties) - START * (len(parties) - 1) + working
    most = max([memory + records * (2 * d + 32), *(party.memory for party in parties)])
    return WholeForecast(tuple(parties), Forecast(START + working, memory), Forecast(together, most), cells)


def least_memory(plan: Plan, party: int) -> float:
    """Bytes that a party's tables alone take under a plan, however few its records are."""
    widest = sorted(plan.schema.sizes[a] for a in plan.schema.varying(plan.party_names[party]))[-2:]
    pairs = 8.0 * math.prod(widest) if plan.local[party].score_sigma else 0.0
    return max(_wide(plan) * _numbers(plan, party), pairs)


def _wide(plan: Plan) -> int:
    """Bytes of a number while sketches are made: counters have 32 bits until they are cut to codes."""
    return 5 if isinstance(plan.sketch, CountSketchPlan) else 1


def _sketches(plan: Plan) -> tuple[list[float], float]:
    """Core seconds that each party encodes, and the server estimates."""
    records = plan.expected_records
    work = [0.0] * len(plan.local)
    estimating = 0.0
    if isinstance(plan.sketch, SketchPlan):
        for pair in plan.sketch.pairs:
            for group, bins in ((pair.left, pair.left_bins), (pair.right, pair.right_bins)):
                reached = math.log2(max(records / bins / (math.log(pair.keys) + MARGIN), 1))
                stop = min(max(int(reached), plan.sketch.floor, 1), plan.sketch.ceiling - 1)
                seconds = SECONDS_PER_WORD * math.ceil(pair.keys / BLOCK_KEYS) + SECONDS_PER_EVENT * pair.keys * 2.0**-stop
                work[plan.schedule.parties[group]] += records * seconds + SECONDS_PER_PHANTOM * bins * pair.keys
            estimating += pair.left_bins * pair.right_bins * (SECONDS_PER_CELL + SECONDS_PER_CELL_KEY * pair.keys)
    elif isinstance(plan.sketch, CountSketchPlan):
        sketch = plan.sketch
        for party in range(len(plan.local)):
            groups = plan.schedule.of_party(party)
            work[party] = SECONDS_PER_SIGN * records * sketch.repetitions * len(groups)
            work[party] += SECONDS_PER_NUMBER * sum(sketch.rows(g) for g in groups) * sketch.numbers
        squares = sum(sketch.rows(g) for g in range(len(sketch.sizes))) ** 2 / 2
        estimating = squares * (SECONDS_PER_PRODUCT * sketch.numbers + SECONDS_PER_COUNTED_CELL)
    return work, estimating


def _numbers(plan: Plan, party: int) -> float:
    """Numbers in a party's tables; a byte each, but for their bits in the message."""
    if plan.sketch is None:
        return 0.0
    return float(sum(values * keys for values, keys in plan.sketch.shapes(plan.schedule.of_party(party), 0)))


def _together(sizes: Sequence[int], limit: float) -> float:
    """Attributes of a clique of ``limit`` cells, on average."""
    if not sizes:
        return 0.0
    return min(max(math.log(limit) / max(float(np.mean(np.log(sizes))), 0.1), 1.0), float(len(sizes)))


def _cliques(sizes: Sequence[int], limit: float) -> float:
    """Cliques of a graph grown to its limit: each has one attribute that those before it lack."""
    return len(sizes) - _together(sizes, limit) + 1


def model_cells(sizes: Sequence[int], limit: float) -> float:
    """Cells of all cliques of a graph of these attributes that has grown to its limit."""
    everything = math.prod(map(float, sizes))
    return everything if everything <= limit else max(FULL * limit * _cliques(sizes, limit), float(max(sizes)))


def measured_cells(sizes: Sequence[int], local: LocalPlan, records: float) -> float:
    """Cells of the marginals that a party will measure, nearly: see ``choose_marginals`` in ``vertimrf.party.local_model``."""
    d = len(sizes)
    alone = float(sum(sizes))
    if not local.units or d < 2:
        return alone
    k, cliques = max(_together(sizes, local.largest_clique), 2.0), _cliques(sizes, local.largest_clique)
    in_cliques = min(k * (k - 1) / 2 + max(cliques - 1, 0) * (k - 1), d * (d - 1) / 2)
    order = np.array(sizes, np.float64)
    pairs = ((order.sum() ** 2 - np.square(order).sum()) / (d * (d - 1))) * in_cliques
    triples = min(k * (k - 1) * (k - 2) / 6 + max(cliques - 1, 0) * (k - 1) * (k - 2) / 2, local.units - in_cliques)
    if d < 3 or triples < 1:
        return float(alone + pairs)
    # Smallest first, as far as an average count stands above the noise of what units there are to share.
    rng = np.random.default_rng(0)
    cells = np.sort(np.prod(order[[rng.choice(d, 3, replace=False) for _ in range(SAMPLED_TRIPLES)]], axis=1))
    chosen = np.interp(np.linspace(0, 1, int(triples)), np.linspace(0, 1, SAMPLED_TRIPLES), cells)
    error = local.unit_sigma * np.sqrt((in_cliques + np.arange(1, len(chosen) + 1)) / local.units)
    return float(alone + pairs + chosen[records / chosen >= error].sum())
