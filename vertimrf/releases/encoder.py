"""LocEnc with geometric sketches: turn a party's records into noisy sketches (VertiMRF, phase 2).

Under a key every record has a random level with P(level > l) = 2^-l. The sketch of a value is the
highest level among its records and a number of random draws, the phantoms, clipped to a floor and a
ceiling.

:class:`~.scheduled_pairs.encoding.SketchEncoder` encodes scheduled pairs: each key belongs to two attributes of two parties,
so that a record enters two sketches under a key. The paper's encoder, with all attributes under
every key, is :class:`vertimrf.releases.shared_keys.encoding.SharedKeyEncoder`.

All encoders stream. Call ``update`` with chunks of any size, in any order, on any number of
threads; ``merge`` partial encoders; then call ``result`` once, which joins phantoms or noise. The
sketches are the same bit for bit, however the records were divided.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Bytes, Codes, Integers, Integral, Pair, Words
from ..errors import MessageError, PlanError, PrivacyError, TableError
from ..files.convert import to_json
from ..kernels.geometric import hazards
from ..kernels.phantoms import phantom_table, phantom_thresholds, raise_by_phantoms, raise_unsettled
from ..progress import SILENT, Progress
from .scheduled_pairs.parameters import BLOCK_KEYS, ScheduledPairs
from .shared_keys.parameters import SharedKeys

# Version of the hash and of the layout of the levels. The tests' golden fingerprint belongs to it.
ENCODING_VERSION = 1
# A row's final minimum is guessed. The chance that it must be encoded again is about
# exp(-GUESS_MARGIN).
GUESS_MARGIN = 1.5
PHANTOM_CHUNK = 1 << 20


def cut_blocks(keys: int) -> list[Pair]:
    """Cut keys into blocks of nearly equal size, at most BLOCK_KEYS each.

    Args:
        keys: number of keys.

    Returns:
        (first key, number of keys) of each block.
    """
    pieces = -(-keys // BLOCK_KEYS)
    edges = [keys * i // pieces for i in range(pieces + 1)]
    return [(begin, end - begin) for begin, end in itertools.pairwise(edges)]


class Encoder:
    """Base class of all encoders: checks chunks, merges states, and gives its result once.

    Args:
        secret: 32 bytes derived from the parties' shared secret and the plan.
        purpose: separates the keys of different encoders.
        identity: what encoders must have in common to be merged.
        groups: this party's attributes or groups, by the plan's numbers; the rows of the codes.
        sizes: number of values of each of them.
        state: the numbers that records change, before any.
        counts: number of counters of records, which start at 0.

    Raises:
        PlanError: groups that repeat.
        PrivacyError: a secret that is not 32 bytes.
    """

    def __init__(
        self,
        secret: bytes,
        purpose: bytes,
        identity: tuple[object, ...],
        groups: Sequence[int],
        sizes: Sequence[int],
        state: npt.NDArray[Any],
        counts: int,
    ) -> None:
        if len(set(groups)) != len(groups):
            raise PlanError(f"The party's attributes {list(groups)} repeat one; name each once.")
        if len(secret) != 32:
            raise PrivacyError(
                f"The sketches' secret must be 32 bytes, not {len(secret)}; see vertimrf.secret.derive."
            )
        key = hashlib.blake2b(secret, digest_size=16, person=purpose).digest()
        first, second = np.frombuffer(key, "<u8").astype(np.uint64)
        self._key = first, second
        self._identity = hashlib.blake2b(
            repr(identity).encode(), digest_size=16, key=secret
        ).digest()
        self._groups, self._sizes = tuple(groups), tuple(sizes)
        self._state, self._counts = state, np.zeros(counts, np.int64)
        self._spent = False

    def update(
        self,
        digests: Words,
        codes: Integral,
        progress: Progress = SILENT,
    ) -> None:
        """Add a chunk of records.

        Args:
            digests: 64-bit digests of the record ids, from a table or from
                :func:`vertimrf.tables.ids.record_digests` [shape=(n,), uint64].
            codes: the records' values, a row for each of the encoder's attributes or groups
                [shape=(d, n), integer].
            progress: receives how much of the chunk is encoded.

        Raises:
            TableError: arrays of other shapes or dtypes, a code outside its attribute's domain, or
                more records than the state can hold.
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        digests, codes = checked_records(self._groups, self._sizes, digests, codes)
        if digests.size and self._state.size:
            self._encode(digests, codes, progress)

    def merge(self, other: Encoder) -> None:
        """Add the records of another encoder of the same plan, party and secret.

        The other encoder cannot be used afterwards.

        Args:
            other: the encoder whose records are added.

        Raises:
            PlanError: the other encoder belongs to another plan, party or secret.
            TableError: more records than the state can hold.
            PrivacyError: either encoder's result has been taken.
        """
        if type(other) is not type(self) or other._identity != self._identity:
            raise PlanError("Only encoders of the same plan, groups and secret can be merged.")
        if other is self:
            raise PlanError("An encoder cannot be merged with itself.")
        self._check_unspent()
        other._check_unspent()
        self._join(other._state, other._counts)
        other._spent = True

    def state(self) -> bytes:
        """The sketches so far, without phantoms or noise, for another process of the same party to
        merge.

        They are not private: with the secret they show whether a record is in the table. Keep them
        as safe as the table itself.

        Returns:
            Bytes for :meth:`merge_state`.

        Raises:
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        return self._identity + self._counts.astype("<i8").tobytes() + self._stored().tobytes()

    def merge_state(self, state: bytes) -> None:
        """Add the records of another process's :meth:`state`, of the same plan, party and secret.

        Args:
            state: what :meth:`state` returned there.

        Raises:
            MessageError: the bytes are not such a state.
            TableError: more records than the state can hold.
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        begin = len(self._identity)
        end = begin + self._counts.nbytes
        if state[:begin] != self._identity or len(state) != end + self._state.nbytes:
            raise MessageError(
                "These bytes are not an encoder's state of the same plan, groups and secret."
            )
        numbers = np.frombuffer(state, self._stored().dtype, offset=end)
        counts = np.frombuffer(state[begin:end], "<i8")
        if numbers.size:
            self._check_sound(int(numbers.min()), int(numbers.max()), counts)
        self._join(numbers.reshape(self._state.shape), counts)

    def digest(self) -> bytes:
        """Digest of the exact sketches, for keyed noise; keep it as safe as the table.

        Returns:
            32 bytes.

        Raises:
            PrivacyError: the encoder's result has been taken.
        """
        self._check_unspent()
        return hashlib.blake2b(self._stored().data, digest_size=32, key=self._identity).digest()

    def _stored(self) -> npt.NDArray[Any]:
        """The state, little-endian."""
        return self._state.astype(self._state.dtype.newbyteorder("<"), copy=False)

    def _check_unspent(self) -> None:
        if self._spent:
            raise PrivacyError(
                "This encoder's sketches have been handed out, or merged into another encoder; one plan's hashes may "
                "be published only once, so make a new plan for another release."
            )

    def _encode(self, digests: Words, codes: Codes, progress: Progress) -> None:
        """Add checked records to the state."""
        raise NotImplementedError

    def _join(self, state: npt.NDArray[Any], counts: Integers) -> None:
        """Add another encoder's state and counts."""
        raise NotImplementedError

    def _check_sound(self, least: int, most: int, counts: Integers) -> None:
        """Refuse a state with such numbers and counts; raises as :meth:`merge_state`."""
        raise NotImplementedError


class LevelEncoder(Encoder):
    """Base class of both encoders of levels: merges by the maximum, and joins phantoms.

    Args:
        plan: the public sketch parameters.
        attributes, secret, sizes: as for :class:`Encoder`.
        shapes: (values, keys) of each published table, in publishing order.
    """

    _purpose: bytes

    def __init__(
        self,
        plan: ScheduledPairs | SharedKeys,
        attributes: Sequence[int],
        secret: bytes,
        sizes: Sequence[int],
        shapes: Sequence[Pair],
    ) -> None:
        self._plan = plan
        # The flat state holds the published tables, each values x keys, one after another.
        self._shapes = tuple(shapes)
        self._start, self._per_length = hazards(plan.ceiling)
        self._base = max(plan.floor, 1)
        state = np.full(sum(size * keys for size, keys in shapes), self._base, np.uint8)
        identity = ENCODING_VERSION, self._purpose, to_json(plan), tuple(attributes)
        # Counts are of each value so far, attribute after attribute; used to guess final levels.
        super().__init__(secret, self._purpose, identity, attributes, sizes, state, sum(sizes))

    def _join(self, state: npt.NDArray[Any], counts: Integers) -> None:
        np.maximum(self._state, state, out=self._state)
        self._counts += counts

    def _check_sound(self, least: int, most: int, counts: Integers) -> None:
        if not self._base <= least <= most <= self._plan.ceiling:
            raise MessageError(
                "The encoder's state holds levels outside the plan's floor and ceiling: it is damaged."
            )

    def result(self, entropy: Callable[[int], bytes] = os.urandom) -> tuple[Bytes, ...]:
        """Join the phantoms and return the levels to publish.

        This works once: two results with different phantoms would show which levels come from
        records.

        Args:
            entropy: returns a given number of unpredictable bytes: the operating system's, or a
                stream of secret noise derived from :meth:`digest`.

        Returns:
            One table for each sketched attribute, in publishing order [shape=(values, keys),
            uint8]; levels lie between floor and ceiling.

        Raises:
            PrivacyError: the result has been taken before.
        """
        self._check_unspent()
        self._spent = True
        state, self._state = self._state, np.empty(0, np.uint8)
        thresholds = phantom_thresholds(self._plan.phantoms, self._plan.floor, self._plan.ceiling)
        table = phantom_table(thresholds, self._plan.floor)
        unsettled = np.empty(min(state.size, PHANTOM_CHUNK), np.int64)
        for begin in range(0, state.size, PHANTOM_CHUNK):
            levels = state[begin : begin + PHANTOM_CHUNK]
            words = np.frombuffer(bytearray(entropy(levels.size)), np.uint8)
            count = raise_by_phantoms(levels, words, table, unsettled)
            more = np.frombuffer(bytearray(entropy(8 * count)), np.uint64)
            raise_unsettled(levels, words, unsettled[:count], more, thresholds, self._plan.floor)
        edges = np.cumsum([0, *(size * keys for size, keys in self._shapes)])
        tables = zip(itertools.pairwise(edges), self._shapes, strict=True)
        return tuple(state[begin:end].reshape(shape) for (begin, end), shape in tables)


def checked_records(
    attributes: Sequence[int],
    sizes: Sequence[int],
    digests: Words,
    codes: Integral,
) -> tuple[Words, Codes]:
    """Check a chunk of records and convert it to what the kernels expect.

    Args:
        attributes: attributes or groups, for error messages.
        sizes: number of values of each.
        digests: digests of the record ids [shape=(n,), uint64].
        codes: values of the records [shape=(d, n), integer].

    Returns:
        Contiguous digests [shape=(n,), uint64] and codes [shape=(d, n), uint16].

    Raises:
        TableError: arrays of other shapes or dtypes, or a code outside its attribute's domain.
    """
    digests, codes = np.asarray(digests), np.asarray(codes)
    if digests.dtype != np.uint64 or digests.ndim != 1:
        raise TableError(
            f"Record digests must be one row of uint64, not {digests.ndim}-dimensional {digests.dtype}; "
            "make them from ids with vertimrf.tables.ids.record_digests."
        )
    if codes.ndim != 2 or codes.dtype.kind not in "iu":
        raise TableError(
            f"Codes must be a two-dimensional integer array, one row per attribute, not {codes.ndim}-dimensional "
            f"{codes.dtype}; encode the table against its schema first."
        )
    if codes.shape != (len(sizes), digests.size):
        raise TableError(
            f"Codes have shape {codes.shape}, but {len(sizes)} attributes and {digests.size} digests ask for "
            f"{(len(sizes), digests.size)}: one row per attribute, one column per record."
        )
    for attribute, size, row in zip(attributes, sizes, codes, strict=True):
        if row.size and not 0 <= int(row.min()) <= int(row.max()) < size:
            bad = int(np.flatnonzero((row < 0) | (row >= size))[0])
            raise TableError(
                f"Attribute {attribute} holds code {int(row[bad])} in record {bad} of the chunk, outside its "
                f"domain 0..{size - 1}; correct the record, or widen the domain in the schema and plan again."
            )
    return np.require(digests, None, ["C", "W"]), np.require(codes, np.uint16, ["C", "W"])


def guess_stops(
    counts: Integers,
    keys: Integers | int,
    plan: ScheduledPairs | SharedKeys,
) -> Integers:
    """Guess a level that all sketches of a row reach; it changes the speed, never the result.

    Args:
        counts: number of records of each row [shape=(r,), int64].
        keys: number of sketches of each row, one number or an array [shape=(r,), int64].
        plan: for its floor and ceiling.

    Returns:
        [shape=(r,), int64]
    """
    ratio = np.maximum(counts / (np.log(keys) + GUESS_MARGIN), 1.0)
    return np.clip(np.log2(ratio).astype(np.int64), max(plan.floor, 1), plan.ceiling - 1)
