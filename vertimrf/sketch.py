"""``Sketch``: a set of record ids as geometric levels, to merge and to intersect, for other front ends."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

import numba
import numpy as np
import numpy.typing as npt

from .arrays import Bytes, Floats
from .errors import MessageError, PlanError, PrivacyError
from .kernels.geometric import encode_rows, hazards
from .kernels.intersections import joint_histograms, solve_intersections
from .sketches.encoder import GUESS_MARGIN, cut_blocks
from .tables.ids import record_digests

KEY_BYTES, MARK_BYTES = 32, 8
# Levels lie in 1 .. CEILING, which serves sets of up to some 2^CEILING records.
CEILING, MAX_KEYS = 30, 1 << 24


@lru_cache(maxsize=1)
def _axis() -> tuple[Floats, Floats, Floats]:
    """The hazard axis, and the logarithm of P(level <= l) for l = 1 .. CEILING."""
    log_cdf = np.log1p(-(2.0 ** -np.arange(1, CEILING + 1)))
    # The ceiling stands for all levels above it.
    log_cdf[-1] = 0.0
    return (*hazards(CEILING), log_cdf)


def _derived(key: bytes, purpose: bytes, size: int = 16) -> bytes:
    return hashlib.blake2b(key, digest_size=size, person=purpose).digest()


@dataclass(frozen=True, eq=False)
class Sketch:
    """The highest geometric level of a set of records under each of many hash keys.

    Two sketches with the same key tell the size of the intersection of their sets.

    A sketch is **not private**: whoever has the key sees whether a record may be in the set, and the
    number of records is exact. It must stay with those who may see the set. What is published needs
    phantoms: :class:`vertimrf.sketches.encoder.SketchEncoder` joins them, and the plan's ledger has
    their price.

    Attributes:
        levels: the levels, 1 to 30 [shape=(keys,), uint8, read-only].
        records: number of records in the set.
        mark: a digest of the key [8 bytes].

    Raises:
        MessageError: the parts are no sketch.
    """

    levels: Bytes = field(repr=False)
    records: int
    mark: bytes = field(repr=False)

    def __post_init__(self) -> None:
        levels = np.require(self.levels, None, ["C"])
        if levels.dtype != np.uint8 or levels.ndim != 1 or not levels.size:
            raise MessageError(
                f"The levels of a sketch are one row of uint8, not {levels.ndim}-dimensional {levels.dtype} of {levels.size}."
            )
        if not 1 <= levels.min() <= levels.max() <= CEILING:
            raise MessageError(f"A sketch holds a level outside 1 .. {CEILING}: it is damaged.")
        if type(self.records) is not int or self.records < 0:
            raise MessageError(f"A sketch is of 0 records or more, not {self.records!r}.")
        if type(self.mark) is not bytes or len(self.mark) != MARK_BYTES:
            raise MessageError(f"The mark of a sketch has {MARK_BYTES} bytes, not {self.mark!r}.")
        levels = levels.view()
        levels.flags.writeable = False
        object.__setattr__(self, "levels", levels)

    @classmethod
    def encode(cls, ids: npt.ArrayLike, key: bytes, keys: int = 4096) -> Sketch:
        """Sketch a set of records.

        Args:
            ids: the records' ids, each once: integers or text [shape=(n,)]. 42 is the id "42".
            key: a secret that all whose sketches are compared share, and that nobody knows who can
                choose an id [32 bytes].
            keys: number of hash keys. Errors fall with its square root.

        Returns:
            The sketch; the order of the ids does not matter.

        Raises:
            TableError: ids of another type or shape.
            PrivacyError: the key is not 32 bytes.
            PlanError: the number of keys is out of range.
        """
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise PrivacyError(
                f"The key of sketches is {KEY_BYTES} bytes; draw it with secrets.token_bytes({KEY_BYTES})."
            )
        if type(keys) is not int or not 1 <= keys <= MAX_KEYS:
            raise PlanError(f"A sketch has 1 to {MAX_KEYS:,} keys, not {keys!r}.")
        digests = record_digests(_derived(key, b"vertimrf ids"), np.asarray(ids))
        secret = np.frombuffer(_derived(key, b"vertimrf levels"), "<u8").astype(np.uint64)
        # A guess of the lowest level that all keys reach decides the speed, not the levels.
        stop = int(np.log2(max(digests.size / (np.log(keys) + GUESS_MARGIN), 2.0)))
        tasks = np.array(
            [
                (0, digests.size, block, size, first, min(stop, CEILING - 1))
                for block, (first, size) in enumerate(cut_blocks(keys))
            ]
        )
        workers = min(numba.get_num_threads(), len(tasks))
        shares = np.arange(workers + 1) * len(tasks) // workers
        levels = np.ones(keys, np.uint8)
        start, per_length, _ = _axis()
        minima = np.ones(len(tasks), np.uint8)
        encode_rows(secret[0], secret[1], digests, tasks, shares, start, per_length, levels, minima)
        return cls(levels, digests.size, _derived(key, b"vertimrf mark", MARK_BYTES))

    def merge(self, other: Sketch) -> Sketch:
        """The sketch of both sets' records. Pieces of a set in any order give the same sketch.

        Args:
            other: a sketch of other records, with the same key and number of keys.

        Raises:
            MessageError: the sketches have different keys.
        """
        self._check_like(other)
        records = self.records + other.records
        return Sketch(np.maximum(self.levels, other.levels), records, self.mark)

    def intersection(self, other: Sketch) -> tuple[float, float]:
        """Estimate how many records both sets have.

        Args:
            other: a sketch with the same key and number of keys.

        Returns:
            The number, between 0 and the smaller set's, and its standard error.

        Raises:
            MessageError: the sketches have different keys.
        """
        self._check_like(other)
        # Copies that can be written: a kernel compiles anew for arrays that cannot.
        left, right = np.array([self.levels]), np.array([other.levels])
        histograms = joint_histograms(left, right, 1, CEILING)
        one, two, exact = np.array([[self.records], [other.records], [0]], np.float64)
        counts, errors = solve_intersections(
            histograms, one, two, exact, exact, float(one[0] + two[0]), 0.0, _axis()[2]
        )
        least = min(self.records, other.records)
        return min(max(float(counts[0, 0]), 0.0), float(least)), float(errors[0, 0])

    def _check_like(self, other: Sketch) -> None:
        if not isinstance(other, Sketch) or other.mark != self.mark:
            raise MessageError("Only sketches with the same key can be put together.")
        if other.levels.size != self.levels.size:
            raise MessageError(
                f"The sketches have {self.levels.size:,} and {other.levels.size:,} keys; encode both with as many."
            )
