"""LocEnc of scheduled pairs: each key belongs to two attributes of two parties."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numba
import numpy as np

from ...arrays import Bytes, Codes, Floats, Integers, Words
from ...errors import PlanError
from ...kernels.geometric import encode_rows, group_by_value
from ...progress import Progress
from ..encoder import LevelEncoder, cut_blocks, guess_stops
from ..release import Side
from .parameters import ScheduledPairs

# Digests that are grouped at a time, of one or more columns: a quarter of a gibibyte, or one
# column.
GROUPED_RECORDS = 1 << 25
# Columns are encoded in about STAGES stages, so that progress shows, if each worker then has at
# least ROWS_PER_WORKER rows in a stage.
STAGES, ROWS_PER_WORKER = 20, 32


class SketchEncoder(LevelEncoder):
    """Sketches of one party under the scheduled pairs that it takes part in.

    ``result()`` returns one table for each pair of this party, in the plan's order.

    Args:
        plan: the public sketch parameters.
        attributes: this party's groups, by the plan's numbers; the rows of the codes.
        secret: 32 bytes derived from the parties' shared secret and the plan, the same at both
            parties of a pair.

    Raises:
        PlanError: groups that repeat, that are in no pair, or that are both sides of a pair.
        PrivacyError: a secret that is not 32 bytes.
    """

    _purpose = b"vertimrf paired"

    def __init__(self, plan: ScheduledPairs, attributes: Sequence[int], secret: bytes) -> None:
        column = {attribute: i for i, attribute in enumerate(attributes)}
        scheduled = {group for pair in plan.pairs for group in (pair.left, pair.right)}
        for attribute in attributes:
            if attribute not in scheduled:
                raise PlanError(
                    f"No scheduled pair has group {attribute}; leave it out of the encoder."
                )
        sizes = [plan.sizes[attribute] for attribute in attributes]
        rows: list[list[Integers]] = [[] for _ in attributes]
        shapes = []
        first_block = offset = 0
        for number, pair in enumerate(plan.pairs):
            if pair.left in column and pair.right in column:
                raise PlanError(
                    f"Scheduled pair {number} joins two groups of one party, {pair.left} and {pair.right}."
                )
            blocks = cut_blocks(pair.keys)
            for group in (pair.left, pair.right):
                if group not in column:
                    continue
                bins = plan.sizes[group]
                shapes.append((bins, pair.keys))
                for block, (first, keys) in enumerate(blocks, first_block):
                    row = np.empty((bins, 4), np.int64)
                    row[:, 0] = np.arange(bins)
                    row[:, 1:3] = block, keys
                    row[:, 3] = offset + row[:, 0] * pair.keys + first
                    rows[column[group]].append(row)
                offset += bins * pair.keys
            first_block += len(blocks)
        super().__init__(plan, attributes, secret, sizes, shapes)
        # Sketch rows, column after column, each cut into blocks of keys. Per row: value (numbered
        # through all columns), block, keys, and offset in the state [shape=(t, 4)].
        self._first_value = np.cumsum([0, *sizes])
        for first, column_rows in zip(self._first_value, rows, strict=False):
            for row in column_rows:
                row[:, 0] += first
        self._rows = np.concatenate(
            [row for column_rows in rows for row in column_rows] or [np.empty((0, 4), np.int64)]
        )
        self._first_row = np.searchsorted(self._rows[:, 0], self._first_value)
        # A lower bound of each row's levels.
        self._minima = np.full(len(self._rows), self._base, np.uint8)

    def _encode(self, digests: Words, codes: Codes, progress: Progress) -> None:
        workers = numba.get_num_threads()
        n, d = digests.size, len(self._sizes)
        begins, ends = np.empty((2, self._counts.size), np.int64)
        together = max(GROUPED_RECORDS // n, 1)
        if len(self._rows) >= STAGES * ROWS_PER_WORKER * workers:
            together = min(together, -(-d // STAGES))
        for first in range(0, d, together):
            last = min(first + together, d)
            grouped = np.empty((last - first, n), np.uint64)
            for column in range(first, last):
                starts = group_by_value(
                    digests, codes[column], self._sizes[column], grouped[column - first]
                )
                values = slice(self._first_value[column], self._first_value[column + 1])
                begins[values] = starts[:-1] + (column - first) * n
                ends[values] = starts[1:] + (column - first) * n
                self._counts[values] += np.diff(starts)
            some = slice(self._first_row[first], self._first_row[last])
            value, keys = self._rows[some, 0], self._rows[some, 2]
            stops = guess_stops(self._counts[value], keys, self._plan)
            tasks = np.column_stack((begins[value], ends[value], self._rows[some, 1:], stops))
            order, shares = _assign_tasks(_cost(tasks, self._minima[some]), workers)
            minima = self._minima[some][order]
            axis = (self._start, self._per_length)
            encode_rows(
                *self._key, grouped.ravel(), tasks[order], shares, *axis, self._state, minima
            )
            self._minima[some][order] = minima
            progress.advance(int(self._first_row[last]), len(self._rows))


def _cost(tasks: Integers, minima: Bytes) -> Floats:
    """Relative time of each row's task [shape=(t,), float64].

    A record takes one random word, an event about three times that, and a key a little.
    """
    records = tasks[:, 1] - tasks[:, 0]
    keys = tasks[:, 3]
    events = keys * 2.0 ** -np.maximum(tasks[:, 5], minima)
    return records * (1.0 + 3.0 * events) + keys / 50.0


def _assign_tasks(cost: Floats, workers: int) -> tuple[Integers, Integers]:
    """Assign tasks to workers: the longest first, each to the worker with the least work.

    Args:
        cost: relative time of each task [shape=(t,), float64].
        workers: number of workers.

    Returns:
        The order of the tasks [shape=(t,), int64], and where each worker's part of it starts and
        ends [shape=(workers + 1,), int64].
    """
    tasks: list[list[int]] = [[] for _ in range(workers)]
    load = [0.0] * workers
    for task in np.argsort(-cost, kind="stable").tolist():
        w = load.index(min(load))
        tasks[w].append(task)
        load[w] += float(cost[task])
    order = np.array([task for assigned in tasks for task in assigned], np.int64)
    return order, np.cumsum([0, *map(len, tasks)])


def encode(sketch: ScheduledPairs, side: Side) -> tuple[Bytes, ...]:
    """The tables of a party's groups (:meth:`.CrossPartyRelease.encode`)."""
    if not sketch.shapes(side.groups):
        return ()
    encoder = side.encoded(functools.partial(SketchEncoder, sketch, side.groups, side.key))
    out: tuple[Bytes, ...] = encoder.result(side.noise.stream(encoder.digest))
    return out
