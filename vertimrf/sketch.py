"""``Sketch``: a set of ids in a few kilobytes, to count, merge and compare with others of the same key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from .arguments import DATA, NUMBER, TEXT, shown, takes
from .arrays import Bytes, Floats, Integers, Words
from .errors import MessageError, PlanError, PrivacyError, TableError
from .files import container
from .kernels.geometric import encode_rows, hazards
from .releases.encoder import GUESS_MARGIN, cut_blocks
from .tables.ids import digested, record_digests
from .tables.objects import from_objects

KIND = "sketch"
KEY_BYTES, MARK_BYTES = 32, 8
# Levels lie in 1 .. CEILING, which serves sets of up to 2^(CEILING - 2) ids.
CEILING, MAX_KEYS = 40, 1 << 24
# Scoring ends when no number moves by this part of its standard error. Far from the solution, a
# step changes a number at most by this factor.
SETTLED, FARTHEST, MOST_STEPS = 1e-3, 8.0, 60
# Differences of probabilities below this have lost their digits. Numbers of ids below this are 0.
LEAST, LEAST_COUNT = 1e-14, 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """A set of ids, as the highest geometric level of its ids under each of many hash keys.

    Sketches with the same key tell how many ids each has, and how many two of them have in common
    or together. An id counts once, however often it is given. Sketches are values: methods that
    add ids return another one.

    **Without the key**, sketches tell at most sizes: of their sets, and of what union, intersection
    and difference make of these; small ones exactly. So they tell which sets are equal, and whether
    a set has changed. With the sketch of known ids they tell how many of these are in another set;
    so nobody without the key should have ids of his choice sketched. This rests on a random key,
    and on SipHash-2-4 being a pseudo-random function.

    **With the key**, a sketch tells members. Of a set of fewer ids than a tenth of the number of
    hash keys it tells all: another id passes for one with a probability of at most 1 in 1,000. Of a
    set of any size, 4,096 keys tell some 500 members for certain to whoever has a list ten times as
    long that they are on, and of many other ids that they are absent. So no holder's sketch is
    secret from another holder.

    There is no noise, and no differential privacy: for that see
    :class:`vertimrf.releases.scheduled_pairs.encoding.SketchEncoder`, which joins phantoms whose
    price is in the plan's ledger.

    Attributes:
        levels: the levels, 1 to 40 [shape=(keys,), uint8, read-only].
        mark: a digest of the key [8 bytes].

    Raises:
        MessageError: the parts are no sketch.
    """

    levels: Bytes
    mark: bytes

    def __post_init__(self) -> None:
        try:
            levels = np.require(self.levels, None, ["C"])
        except (TypeError, ValueError):
            levels = np.empty(0, np.uint8)
        if levels.dtype != np.uint8 or levels.ndim != 1 or not 1 <= levels.size <= MAX_KEYS:
            raise MessageError(
                f"The levels of a sketch are one row of uint8, 1 to {MAX_KEYS:,}, not {levels.ndim}-dimensional "
                f"{levels.dtype} of {levels.size:,}."
            )
        if not 1 <= levels.min() <= levels.max() <= CEILING:
            raise MessageError(f"A sketch holds a level outside 1 .. {CEILING}: it is damaged.")
        if 2 * np.count_nonzero(levels == CEILING) > levels.size:
            raise MessageError(
                f"A sketch is full: it is of more than 2^{CEILING - 2} ids, or damaged; sketch parts of the set."
            )
        if type(self.mark) is not bytes or len(self.mark) != MARK_BYTES:
            raise MessageError(
                f"The mark of a sketch has {MARK_BYTES} bytes, not {shown(self.mark)}."
            )
        levels = levels.view()
        levels.flags.writeable = False
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        count, error = self.count()
        tenth, hundredth = (_spread(part) / np.sqrt(self.levels.size) for part in (0.1, 0.01))
        return (
            f"<Sketch of {count:,.0f} ± {error:,.0f} ids, {self.levels.size:,} keys: intersections are good to "
            f"{tenth:.0%} at a tenth of the union, {hundredth:.0%} at a hundredth>"
        )

    @classmethod
    def encode(cls, ids: Any, key: bytes, keys: int = 4096) -> Sketch:
        """Sketch a set of ids.

        Args:
            ids: integers or text, in any order: a list, a NumPy array, or a column of Arrow, pandas
                or polars [shape=(n,)]. 42 is the id "42".
            key: drawn with ``secrets.token_bytes(32)``, the same for all sketches to be compared
                [32 bytes]. A key made from a password can be guessed from any sketch.
            keys: number of hash keys, and of bytes; see :meth:`keys_for`. Errors fall with its
                square root.

        Raises:
            TableError: ids of another type or shape, or missing.
            PrivacyError: the key is not 32 bytes.
            PlanError: the number of keys is out of range.
        """
        if type(keys) is not int or not 1 <= keys <= MAX_KEYS:
            raise PlanError(f"A sketch has 1 to {MAX_KEYS:,} keys, not {shown(keys)}.")
        return cls(np.ones(keys, np.uint8), _mark(key)).update(ids, key)

    def update(self, ids: Any, key: bytes) -> Sketch:
        """The sketch with more ids, which may be in it already.

        Pieces of a set give the levels of the whole, however it is cut.

        Args:
            ids: as for :meth:`encode`.
            key: that of the sketch [32 bytes].

        Raises:
            TableError: as :meth:`encode`.
            PrivacyError: the key is not 32 bytes.
            MessageError: the sketch has another key.
        """
        if _mark(key) != self.mark:
            raise MessageError("The sketch has another key; update it with its own.")
        digests = _digests(_derived(key, b"vertimrf ids"), ids)
        secret = np.frombuffer(_derived(key, b"vertimrf levels"), "<u8").astype(np.uint64)
        levels = self.levels.copy()
        blocks = cut_blocks(levels.size)
        # A guess of the lowest level that all keys reach decides the speed, not the levels.
        guess = int(np.log2(max(digests.size / (np.log(levels.size) + GUESS_MARGIN), 2.0)))
        tasks = np.array(
            [
                (0, digests.size, block, size, first, min(guess, CEILING - 1))
                for block, (first, size) in enumerate(blocks)
            ]
        )
        minima = np.minimum.reduceat(levels, tasks[:, 4])
        workers = min(numba.get_num_threads(), len(tasks))
        shares = np.arange(workers + 1) * len(tasks) // workers
        encode_rows(secret[0], secret[1], digests, tasks, shares, *_axis(), levels, minima)
        return Sketch(levels, self.mark)

    def merge(self, other: Sketch) -> Sketch:
        """The sketch of the union. Order and repetition do not matter.

        Args:
            other: a sketch with the same key and number of keys.

        Raises:
            MessageError: the sketches have different keys.
        """
        self._check_like(other)
        return Sketch(np.maximum(self.levels, other.levels), self.mark)

    def count(self) -> tuple[float, float]:
        """Estimate how many distinct ids the set has, with the standard error."""
        seen = np.bincount(self.levels, minlength=CEILING + 1)[1:]
        counts, covariance = _fit(seen, _laws()[:1, :, -1], np.array([_rough(self.levels)]))
        return float(counts[0]), float(np.sqrt(covariance[0, 0]))

    def union(self, other: Sketch) -> tuple[float, float]:
        """Estimate how many distinct ids two sets have together, with the standard error.

        Args and errors are those of :meth:`merge`. This is up to 1.4 times as precise as the count
        of a merged sketch.
        """
        parts, covariance = self._parts(other)
        return float(parts.sum()), float(np.sqrt(covariance.sum()))

    def intersection(self, other: Sketch) -> tuple[float, float]:
        """Estimate how many ids two sets have in common, with the standard error.

        The error is 0.6 % of the union with 4,096 keys and a tenth of the union in common. Relative
        to the intersection it is 6 % there, 41 % at a hundredth, and smaller for sets of different
        sizes: 11 % for two sets of one size that share a tenth of either, 41 % for a fiftieth. Args
        and errors are those of :meth:`merge`.
        """
        parts, covariance = self._parts(other)
        return float(parts[2]), float(np.sqrt(covariance[2, 2]))

    def jaccard(self, other: Sketch) -> tuple[float, float]:
        """Estimate the intersection as a part of the union, 0 to 1, with the standard error.

        Two empty sets have 1. Args and errors are those of :meth:`merge`.
        """
        parts, covariance = self._parts(other)
        union = parts.sum()
        if not union:
            return 1.0, 0.0
        slope = np.array([0, 0, 1]) - parts[2] / union
        return float(parts[2] / union), float(np.sqrt(slope @ covariance @ slope) / union)

    @staticmethod
    def keys_for(error: float, jaccard: float) -> int:
        """The number of keys for an intersection with a wanted standard error.

        Args:
            error: relative to the intersection, above 0.
            jaccard: the intersection as a part of the union, above 0, at most 1.

        Returns:
            The number for sets of equal sizes, for which it is largest.

        Raises:
            PlanError: out of range, or more keys than a sketch may have.
        """
        if not (NUMBER.fits(error) and NUMBER.fits(jaccard) and error > 0 and 0 < jaccard <= 1):
            raise PlanError(
                f"An error is above 0 and a Jaccard index in 0 .. 1, not {shown(error)} and {shown(jaccard)}."
            )
        keys = np.ceil((_spread(float(jaccard)) / float(error)) ** 2)
        if not keys <= MAX_KEYS:
            raise PlanError(
                f"An error of {error:g} at a Jaccard index of {jaccard:g} takes more than {MAX_KEYS:,} keys; allow a larger error."
            )
        return max(int(keys), 1)

    def to_bytes(self) -> bytes:
        """The sketch as a container (``docs/formats.md``): a byte for each key and some 200 more.

        It is neither encrypted nor signed.
        """
        return container.pack(KIND, {"mark": self.mark.hex()}, {"levels": self.levels})

    @classmethod
    @takes(MessageError, data=DATA, where=TEXT)
    def from_bytes(cls, data: bytes, where: str = "The sketch") -> Sketch:
        """Read and check what :meth:`to_bytes` made. Nothing in it is trusted.

        Args:
            data: the bytes.
            where: name of the file, for errors.

        Raises:
            MessageError: no sketch, of another version, truncated or altered.
        """
        header, arrays = container.unpack(data, KIND, where)
        try:
            if [*header] != ["mark"] or [*arrays] != ["levels"]:
                raise ValueError("it has other fields")
            return cls(arrays["levels"], bytes.fromhex(header["mark"]))
        except MessageError as error:
            raise MessageError(f"{where}: {error}") from None
        except (ValueError, TypeError) as error:
            raise MessageError(f"{where} is no sketch ({error}); have it made again.") from None

    def _parts(self, other: Sketch) -> tuple[Floats, Floats]:
        """Numbers of ids of this set alone, of the other alone and of both, and their covariance."""
        self._check_like(other)
        cells = (self.levels - np.int64(1)) * CEILING + (other.levels - np.int64(1))
        seen = np.bincount(cells, minlength=CEILING**2).reshape(CEILING, CEILING)
        one, two = _rough(self.levels), _rough(other.levels)
        whole = _rough(np.maximum(self.levels, other.levels))
        start = np.array([whole - two, whole - one, one + two - whole])
        return _fit(seen, _laws(), np.maximum(start, whole / self.levels.size))

    def _check_like(self, other: Sketch) -> None:
        if not isinstance(other, Sketch) or other.mark != self.mark:
            raise MessageError("Only sketches with the same key can be put together.")
        if other.levels.size != self.levels.size:
            raise MessageError(
                f"The sketches have {self.levels.size:,} and {other.levels.size:,} keys; encode both with as many."
            )


def _derived(key: bytes, purpose: bytes, size: int = 16) -> bytes:
    return hashlib.blake2b(key, digest_size=size, person=purpose).digest()


def _mark(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise PrivacyError(
            f"The key of sketches is {KEY_BYTES} bytes; draw it with secrets.token_bytes({KEY_BYTES})."
        )
    return _derived(key, b"vertimrf mark", MARK_BYTES)


def _digests(key: bytes, ids: Any) -> Words:
    """Keyed digests of ids, whatever holds them [shape=(n,), uint64]."""
    try:
        if hasattr(ids, "__arrow_c_stream__"):
            column = pa.chunked_array(ids)
        elif hasattr(ids, "__arrow_c_array__"):
            column = pa.chunked_array([pa.array(ids)])
        else:
            given, ids = ids, np.asarray(ids)
            if ids.shape == (0,):
                return np.empty(0, np.uint64)
            if ids.dtype.kind == "f" and all(type(each) is int for each in given):
                # Integers that no one type of NumPy holds.
                ids = np.array(given, object)
            if ids.ndim != 1 or ids.dtype.kind not in "SUO":
                return record_digests(key, ids)
            cells, others = from_objects(ids.tolist())
            if others:
                row, kind = next(iter(others.items()))
                raise TableError(
                    f"Id {row + 1} is of type {kind}; ids are integers of up to 76 digits, text or UUIDs."
                )
            column = pa.chunked_array([cells])
    except TableError:
        raise
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise TableError(f"Ids must be one row of integers or text ({error}).") from None
    digests, present = digested(key, column, "The ids")
    if missing := np.count_nonzero(~present):
        raise TableError(
            f"{missing:,} ids are missing, empty, or neither integers of up to 76 digits nor text; leave them out."
        )
    return digests


@lru_cache(maxsize=1)
def _axis() -> tuple[Floats, Floats]:
    return hazards(CEILING)


@lru_cache(maxsize=1)
def _laws() -> Floats:
    """Log P(no id raises either level above x, y), by one id of the first set alone, of the second
    alone, and of both [shape=(3, levels, levels), float64].
    """
    log_cdf = np.log1p(-(2.0 ** -np.arange(1, CEILING + 1)))
    # The ceiling stands for all levels above it.
    log_cdf[-1] = 0.0
    one, two = np.meshgrid(log_cdf, log_cdf, indexing="ij")
    return np.stack([one, two, np.minimum(one, two)])


def _rough(levels: Bytes) -> float:
    """A first guess of a number of ids: levels exceed its binary logarithm by 1.33 on average."""
    return float(2.0 ** (levels.mean() - 1.33))


def _information(counts: Floats, laws: Floats) -> tuple[Floats, Floats]:
    """Relative slopes of the levels' probabilities by each count, and one key's Fisher information.

    Args:
        counts: numbers of ids [shape=(p,), float64].
        laws: log P(no level above) of one id of each number [shape=(p, levels, ...), float64].

    Returns:
        Slopes [as ``laws``] and information [shape=(p, p), float64].
    """
    below = np.exp(np.tensordot(counts, laws, 1))
    terms = np.concatenate([below[None], below * laws])
    for axis in range(1, terms.ndim):
        terms = np.diff(terms, axis=axis, prepend=0.0)
    slopes = np.where(terms[0] > LEAST, terms[1:] / np.maximum(terms[0], LEAST), 0.0)
    each = slopes.reshape(len(laws), -1)
    return slopes, (each * terms[0].ravel()) @ each.T


def _fit(seen: Integers, laws: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Maximum-likelihood numbers of ids, at least 0, by Fisher scoring.

    Args:
        seen: how many keys have each level, or pair of levels [shape=(levels, ...)].
        laws: as for :func:`_information`.
        start: a first guess, above 0.

    Returns:
        The numbers [shape=(p,), float64], and their covariance [shape=(p, p), float64]. Near 0, the
        covariance is that of a number which one key would show: that no key shows any is no proof.
    """
    counts, keys = start, seen.sum()
    for _ in range(MOST_STEPS):
        slopes, information = _information(counts, laws)
        inverse = np.linalg.pinv(keys * information, hermitian=True)
        score = np.tensordot(slopes, seen, laws.ndim - 1)
        moved = np.clip(counts + inverse @ score, counts / FARTHEST, counts * FARTHEST)
        ended = np.all(np.abs(moved - counts) <= SETTLED * np.sqrt(np.diag(inverse)))
        counts = moved
        if ended:
            break
    least = max(counts.sum(), 1.0) / keys
    _, information = _information(np.maximum(counts, least), laws)
    return np.where(counts > LEAST_COUNT, counts, 0.0), np.linalg.pinv(
        keys * information, hermitian=True
    )


@lru_cache
def _spread(jaccard: float) -> float:
    """Relative standard error of an intersection of sets of equal sizes, times the root of keys."""
    parts = 1e6 * np.array([(1 - jaccard) / 2, (1 - jaccard) / 2, jaccard])
    _, information = _information(np.maximum(parts, 1e-3), _laws())
    return float(np.sqrt(np.linalg.inv(information)[2, 2]) / parts[2])
