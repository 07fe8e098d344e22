"""LocEnc with count sketches: turn a party's records into noisy counters.

In every repetition a secret hash gives each record a bucket and a sign, the same at all parties. A
value has a row of repetitions x buckets counters, each the sum of the signs of its records in a
bucket, plus discrete Gaussian noise. Some groups of two values have one row for their contrast, to
which records of one value add their sign and from which records of the other subtract it.

A column that is cut in halves and has missing values has one row too: records of the lower half add
their sign s, those of the upper half subtract it, and those without a value add h s, where h = 1 or
-1 is a public function of the column and the counter (a Walsh function, different for each column).
So the row tells the halves apart where h is averaged out, and who has no value where the counter is
multiplied by h (:mod:`.intersections`). What a record does to a counter is as large as before, and
so is the price (:mod:`vertimrf.privacy.count_sketch`).

A few bits of each counter are published: its distance from zero in steps. A step is a fixed part of
the counter's standard deviation, which follows from the party's released marginals, so that the
server can compute it and steps need not be sent.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays import Bytes, Codes, Floats, Int32s, Integers, Words
from ...errors import MessageError, PlanError, TableError
from ...kernels.count_sketch import (
    NoiseTable,
    add_noise,
    add_records,
    noise_table,
    quantise,
    settle_noise,
)
from ...progress import Progress
from ..encoder import Encoder
from ..release import Side
from .parameters import CountSketches

# Version of the hash and of the layout of the codes. The tests' golden fingerprint belongs to it.
COUNTING_VERSION = 1
# Width of a code in standard deviations, by bits: the best uniform quantisers of a Gaussian (Max,
# 1960).
STEPS = {1: 1.0, 2: 0.9957, 3: 0.5860, 4: 0.3352}
# Twice a counter and its noise must fit into 32 bits.
MAX_RECORDS = (1 << 30) - (1 << 16)
# Number of counters to which noise is added at a time.
NOISE_CHUNK = 1 << 20


def code_steps(plan: CountSketches, sizes: Floats, weight: int = 1) -> Floats:
    """Width of a code for each row of a group's counters.

    Args:
        plan: the sketches' parameters.
        sizes: records that add to each row, from released figures (:func:`adding`)
            [shape=(rows,), float64]. Errors in them cost accuracy only.
        weight: the group's weight.

    Returns:
        Units of a counter [shape=(rows,), float64].
    """
    return STEPS[plan.bits] * number_sigmas(plan, np.maximum(sizes, 0.0), weight)


def number_sigmas(plan: CountSketches, sizes: Floats, weight: int) -> Floats:
    """Standard deviation of a group's counters, with their noise.

    Args:
        plan: the sketches' parameters.
        sizes: records that add to each row [shape=(rows,), float64].
        weight: the group's weight.

    Returns:
        Units of a counter [shape=(rows,), float64].
    """
    return np.sqrt(weight**2 * sizes / plan.buckets + weight * plan.variance)


def adding(sizes: Floats, contrasted: bool) -> Floats:
    """Number of records that add to each row of a group's counters.

    Args:
        sizes: records of each value [shape=(values,), float64].
        contrasted: whether the group is published as a contrast, to which all records add.

    Returns:
        [shape=(rows,), float64]
    """
    return sizes.sum(keepdims=True) if contrasted else sizes


class CountSketchEncoder(Encoder):
    """Count sketches of one party.

    Args:
        plan: the public parameters.
        groups: this party's groups, by the plan's numbers; the rows of the codes.
        secret: 32 bytes derived from the parties' shared secret and the plan, the same at all
            parties.

    Raises:
        PlanError: groups that repeat or that the plan does not have.
        PrivacyError: a secret that is not 32 bytes.
    """

    def __init__(self, plan: CountSketches, groups: Sequence[int], secret: bytes) -> None:
        if not all(0 <= group < len(plan.sizes) for group in groups):
            raise PlanError(
                f"The plan has {len(plan.sizes)} groups; it has not all of {list(groups)}."
            )
        self._plan = plan
        self._first_row = np.cumsum([0, *(plan.rows(group) for group in groups)])
        # The first row of each group, whether that row is its contrast, and its alternation.
        layout = [
            (first, group in plan.contrasts, plan.alternation(group))
            for first, group in zip(self._first_row[:-1], groups, strict=True)
        ]
        self._layout = np.array(layout, np.int64).reshape(-1, 3)
        state = np.zeros((plan.repetitions, int(self._first_row[-1]), plan.buckets), np.int32)
        identity = COUNTING_VERSION, asdict(plan), tuple(groups)
        sizes = [plan.sizes[group] for group in groups]
        super().__init__(secret, b"vertimrf count", identity, groups, sizes, state, 1)

    def _encode(self, digests: Words, codes: Codes, progress: Progress) -> None:
        self._count(digests.size)
        log_buckets = self._plan.buckets.bit_length() - 1
        add_records(
            *self._key, digests, codes, self._layout, log_buckets, self._state, progress.advance
        )

    def _join(self, state: npt.NDArray[Any], counts: Integers) -> None:
        self._count(int(counts[0]))
        self._state += state

    def _check_sound(self, least: int, most: int, counts: Integers) -> None:
        if not -counts[0] <= least <= most <= counts[0]:
            raise MessageError(
                f"The encoder's state holds counters beyond its {counts[0]:,} records: it is damaged."
            )

    def result(
        self, sizes: Sequence[Floats], entropy: Callable[[int], bytes] = os.urandom
    ) -> tuple[Bytes, ...]:
        """Add the noise and return the codes to publish.

        This works once: from two results with different noise a reader could average the noise
        away.

        Args:
            sizes: per group, records of each value from released figures [shape=(values,),
                float64]; see :func:`code_steps`.
            entropy: returns a given number of unpredictable bytes: the operating system's, or a
                stream of secret noise derived from :meth:`digest`.

        Returns:
            One table for each group [shape=(rows, repetitions * buckets), uint8]; codes lie below
            2^bits.

        Raises:
            PlanError: sizes that are not the groups'.
            PrivacyError: the result has been taken before.
        """
        self._check_unspent()
        if tuple(len(each) for each in sizes) != self._sizes:
            raise PlanError("Each group needs the size of each of its values.")
        self._spent = True
        plan, state = self._plan, self._state
        self._state = np.empty((0, 0, 0), np.int32)
        weights = [plan.weight(group) for group in self._groups]
        steps = [
            code_steps(plan, adding(np.asarray(each, np.float64), group in plan.contrasts), weight)
            for group, each, weight in zip(self._groups, sizes, weights, strict=True)
        ]
        noise = {weight: noise_table(weight * plan.variance) for weight in set(weights)}
        out = np.empty((state.shape[1], plan.numbers), np.uint8)
        most = max(NOISE_CHUNK, state[:1].size)
        room = [np.empty(most, kind) for kind in (np.int32, np.uint16, np.int64)]
        # Neighbouring groups of one weight have the same noise, and are published together.
        for weight, neighbours in itertools.groupby(range(len(weights)), weights.__getitem__):
            places = list(neighbours)
            rows = slice(self._first_row[places[0]], self._first_row[places[-1] + 1])
            widths = np.concatenate([steps[i] for i in places])
            self._publish(state[:, rows], weight, noise[weight], widths, out[rows], entropy, room)
        return tuple(
            out[begin:end]
            for begin, end in zip(self._first_row[:-1], self._first_row[1:], strict=True)
        )

    def _publish(
        self,
        state: Int32s,
        weight: int,
        noise: NoiseTable,
        steps: Floats,
        out: Bytes,
        entropy: Callable[[int], bytes],
        room: Sequence[npt.NDArray[Any]],
    ) -> None:
        """Add the noise to counters and write their codes.

        Args:
            state: exact counters [shape=(repetitions, rows, buckets), int32].
            weight: weight of their groups.
            noise: law of the noise of this weight.
            steps: width of a code, by row [shape=(rows,), float64].
            out: receives the codes [shape=(rows, repetitions * buckets), uint8].
            entropy: returns a given number of unpredictable bytes.
            room: for the counters of a chunk, their words and the unsettled ones. New memory for each
                chunk would take as long as the noise [all shape=(n,)].
        """
        repetitions, rows, buckets = state.shape
        together = max(NOISE_CHUNK // max(rows * buckets, 1), 1)
        for first in range(0, repetitions, together):
            exact = state[first : first + together]
            counters, words, unsettled = (each[: exact.size] for each in room)
            some = counters.reshape(exact.shape)
            some[:] = exact
            words[:] = np.frombuffer(entropy(2 * words.size), np.uint16)
            count = add_noise(counters, weight, words, noise.settled, unsettled)
            more = np.frombuffer(bytearray(entropy(16 * count)), np.uint64).reshape(-1, 2)
            settle_noise(counters, words, unsettled[:count], more, *noise[1:])
            quantise(
                some,
                steps,
                self._plan.bits,
                out[:, first * buckets : (first + len(some)) * buckets],
            )

    def _count(self, records: int) -> None:
        """Add to the number of records, beyond which no counter can go.

        Raises:
            TableError: more records than counters can hold.
        """
        most = MAX_RECORDS // max((self._plan.weight(group) for group in self._groups), default=1)
        together = int(self._counts[0]) + records
        if together > most:
            raise TableError(
                f"A count sketch's counters hold up to {most:,} records, not {together:,}; use scheduled pairs."
            )
        self._counts[0] = together


def encode(sketch: CountSketches, side: Side) -> tuple[Bytes, ...]:
    """The tables of a party's groups (:meth:`.CrossPartyRelease.encode`)."""
    counter = side.encoded(functools.partial(CountSketchEncoder, sketch, side.groups, side.key))
    out: tuple[Bytes, ...] = counter.result(side.sizes(), side.noise.stream(counter.digest))
    return out
