"""Count sketches: every value of every group under the same secret buckets and signs, with discrete Gaussian noise.

A party's table has, for each value, repetitions x buckets sums of its records' signs; of some groups of two values for their
contrast, in which they take part with one sign or the other. What is published of a sum and its noise is a few bits: how many
steps it lies from zero, a step being a fixed part of its standard deviation as the party's own released marginals tell it. The
server knows as much, so that steps need not be sent.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from ..errors import MessageError, PlanError, PrivacyError, TableError
from ..kernels.count_sketch import (
    NoiseTable,
    add_noise,
    add_records,
    noise_table,
    quantise,
    settle_noise,
)
from ..progress import Progress, Silent
from .encoder import check_distinct, checked_records
from .parameters import CountSketchPlan

__all__ = [
    "COUNTING_VERSION",
    "STEPS",
    "CountSketchEncoder",
    "adding",
    "code_steps",
    "number_sigmas",
]

# Names the hash and the layout of the published codes; the golden fingerprint of the tests belongs to it.
COUNTING_VERSION = 1
# Width of a code in standard deviations, by bits: the uniform quantisers that lose least of a Gaussian (Max, 1960).
STEPS = {1: 1.0, 2: 0.9957, 3: 0.5860, 4: 0.3352}
# Twice a counter and its noise have to fit into 32 bits.
MAX_RECORDS = (1 << 30) - (1 << 16)
# Counters that are given noise at a time.
NOISE_CHUNK = 1 << 20

Floats = npt.NDArray[np.float64]


def code_steps(plan: CountSketchPlan, sizes: Floats, weight: int = 1) -> Floats:
    """Width of a code for each number of a group in a bucket.

    Args:
        plan: the sketches' parameters.
        sizes: records that add to each number as released figures tell (:func:`adding`) [shape=(rows,)]; they set how well codes
            are used, no more.
        weight: of the group.

    Returns:
        [shape=(rows,), float64]
    """
    out: Floats = STEPS[plan.bits] * number_sigmas(plan, np.maximum(sizes, 0.0), weight)
    return out


def number_sigmas(plan: CountSketchPlan, sizes: Floats, weight: int = 1) -> Floats:
    """Standard deviations of a group's numbers, noise and all, to which so many records add [shape=(rows,)]."""
    out: Floats = np.sqrt(weight**2 * sizes / plan.buckets + weight * plan.variance)
    return out


def adding(sizes: Floats, contrasted: bool) -> Floats:
    """Records that add to each number of a group in a bucket: those of a value, or all to a contrast [shape=(rows,)]."""
    return sizes.sum(keepdims=True) if contrasted else sizes


class CountSketchEncoder:
    """Count sketches of one party.

    ``update`` with chunks of any size, in any order, on any number of threads; ``merge`` and ``unmerge`` partial encoders;
    and ``result`` once. Whatever the route, the counters are the same bit for bit.

    Args:
        plan: the public parameters.
        groups: this party's groups, by the plan's numbers; the rows of the codes.
        secret: 32 bytes derived from the parties' shared secret and the plan, the same at all parties.

    Raises:
        PlanError: groups that repeat or that the plan does not have.
        PrivacyError: a secret that is not 32 bytes.
    """

    def __init__(self, plan: CountSketchPlan, groups: Sequence[int], secret: bytes) -> None:
        check_distinct(groups)
        if not all(0 <= group < len(plan.sizes) for group in groups):
            raise PlanError(
                f"The plan has {len(plan.sizes)} groups; it has not all of {list(groups)}."
            )
        if len(secret) != 32:
            raise PrivacyError(
                f"The sketches' secret must be 32 bytes, not {len(secret)}; see vertimrf.secret.derive."
            )
        key = hashlib.blake2b(secret, digest_size=16, person=b"vertimrf count").digest()
        first, second = np.frombuffer(key, "<u8").astype(np.uint64)
        self._key = first, second
        identity = repr((COUNTING_VERSION, asdict(plan), tuple(groups))).encode()
        self._identity = hashlib.blake2b(identity, digest_size=16, key=secret).digest()
        self._plan = plan
        self._groups = tuple(groups)
        self._sizes = tuple(plan.sizes[group] for group in groups)
        self._rows = tuple(plan.rows(group) for group in groups)
        self._first_row = np.cumsum([0, *self._rows])
        # The first row of every group, and whether that is its contrast.
        layout = [
            (first, group in plan.contrasts)
            for first, group in zip(self._first_row[:-1], groups, strict=True)
        ]
        self._layout = np.array(layout, np.int64).reshape(-1, 2)
        self._state = np.zeros((plan.repetitions, int(self._first_row[-1]), plan.buckets), np.int32)
        self._records = 0
        self._spent = False

    def update(
        self,
        digests: npt.NDArray[np.uint64],
        codes: npt.NDArray[np.integer],
        progress: Progress | None = None,
    ) -> None:
        """Take in a chunk of records.

        Args:
            digests: 64-bit digests of the record ids [shape=(n,), uint64].
            codes: values, group-major, in the order of the encoder's groups [shape=(d, n), integers].
            progress: told of how many repetitions have seen the chunk, in words that hold a few.

        Raises:
            TableError: arrays of other shapes or dtypes, a code outside its group's values, or more records than counters hold.
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        digests, codes = checked_records(self._groups, self._sizes, digests, codes)
        self._count(digests.size)
        if digests.size and self._state.size:
            log_buckets = self._plan.buckets.bit_length() - 1
            told = Silent() if progress is None else progress
            add_records(
                *self._key, digests, codes, self._layout, log_buckets, 1, self._state, told.advance
            )

    def merge(self, other: CountSketchEncoder) -> None:
        """Take over what another encoder of the same plan, party and secret has seen; the other one is spent by it.

        Raises:
            PlanError: the other encoder belongs to another plan, party or secret.
            TableError: more records than counters hold.
            PrivacyError: either encoder's result has been taken.
        """
        self._check_like(other)
        self._count(other._records)
        self._state += other._state
        other._spent = True

    def unmerge(self, other: CountSketchEncoder) -> None:
        """Take out what another encoder has seen and this one too; the other one is spent by it.

        Raises:
            PlanError: the other encoder belongs to another plan, party or secret, or has seen more records than this one.
            PrivacyError: either encoder's result has been taken.
        """
        self._check_like(other)
        if other._records > self._records:
            raise PlanError(f"{other._records:,} records cannot be taken out of {self._records:,}.")
        self._records -= other._records
        self._state -= other._state
        other._spent = True

    def state(self) -> bytes:
        """The counters without noise, for another process of the same party to merge.

        They protect nobody: keep them like the table itself.

        Raises:
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        return (
            self._identity
            + self._records.to_bytes(8, "little")
            + self._state.astype("<i4", copy=False).tobytes()
        )

    def merge_state(self, state: bytes) -> None:
        """Take over another process's :meth:`state`, of the same plan, groups and secret.

        Raises:
            MessageError: the bytes are no such state.
            TableError: more records than counters hold.
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        begin = len(self._identity) + 8
        if state[: begin - 8] != self._identity or len(state) != begin + 4 * self._state.size:
            raise MessageError(
                "These bytes are not an encoder's state of the same plan, groups and secret."
            )
        records = int.from_bytes(state[begin - 8 : begin], "little")
        counters = np.frombuffer(state, "<i4", offset=begin).reshape(self._state.shape)
        if counters.size and not -records <= int(counters.min()) <= int(counters.max()) <= records:
            raise MessageError(
                f"The encoder's state holds counters beyond its {records:,} records: it is damaged."
            )
        self._count(records)
        self._state += counters

    def digest(self) -> bytes:
        """Digest of the exact counters, which noise is drawn for [32 bytes]; keep it like the table itself.

        Raises:
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        counters = self._state.astype("<i4", copy=False)
        return hashlib.blake2b(counters.data, digest_size=32, key=self._identity).digest()

    def result(
        self, sizes: Sequence[Floats], entropy: Callable[[int], bytes] = os.urandom
    ) -> tuple[npt.NDArray[np.uint8], ...]:
        """Add the noise and hand out the codes to publish; once, as a second helping of noise would average out the first.

        Args:
            sizes: per group, the records of each value as released figures tell [shape=(values,)]; see :func:`code_steps`.
            entropy: gives that many unpredictable bytes: the operating system's, or a stream of secret noise for :meth:`digest`.

        Returns:
            One table per group [shape=(rows, repetitions * buckets), uint8]; codes lie below 2^bits.

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
        # Neighbours of one weight have the same noise.
        for weight, alike in itertools.groupby(range(len(weights)), weights.__getitem__):
            of_weight = list(alike)
            rows = slice(self._first_row[of_weight[0]], self._first_row[of_weight[-1] + 1])
            own = np.concatenate([steps[i] for i in of_weight])
            self._publish(state[:, rows], weight, noise[weight], own, out[rows], entropy)
        return tuple(
            out[begin:end]
            for begin, end in zip(self._first_row[:-1], self._first_row[1:], strict=True)
        )

    def _publish(
        self,
        state: npt.NDArray[np.int32],
        weight: int,
        noise: NoiseTable,
        steps: Floats,
        out: npt.NDArray[np.uint8],
        entropy: Callable[[int], bytes],
    ) -> None:
        """Add the noise to counters [shape=(repetitions, rows, buckets)] and write their codes [shape=(rows, numbers)]."""
        repetitions, rows, buckets = state.shape
        together = max(NOISE_CHUNK // max(rows * buckets, 1), 1)
        unsettled = np.empty(together * rows * buckets, np.int64)
        for first in range(0, repetitions, together):
            some = np.ascontiguousarray(state[first : first + together])
            counters = some.reshape(-1)
            words = np.frombuffer(bytearray(entropy(2 * counters.size)), np.uint16)
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
        """Note so many records more; no counter can go beyond their number."""
        most = MAX_RECORDS // max((self._plan.weight(group) for group in self._groups), default=1)
        if self._records + records > most:
            raise TableError(
                f"A count sketch's counters hold up to {most:,} records, not {math.fsum((self._records, records)):,.0f}; "
                "use scheduled pairs."
            )
        self._records += records

    def _check_like(self, other: CountSketchEncoder) -> None:
        if type(other) is not type(self) or other._identity != self._identity:
            raise PlanError("Only encoders of the same plan, groups and secret can be merged.")
        if other is self:
            raise PlanError("An encoder cannot be merged with itself.")
        self._check_unspent()
        other._check_unspent()

    def _check_unspent(self) -> None:
        if self._spent:
            raise PrivacyError(
                "This encoder's sketches have been handed out, or merged into another encoder; one plan's hashes may "
                "be published only once, so make a new plan for another release."
            )
