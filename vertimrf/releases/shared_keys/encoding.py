"""The paper's encoder (VertiMRF, Algorithm 3): all attributes under every key.

It is here for reproduction. Its privacy is not that of the paper's Theorem 4; the ledger states the
exact value.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numba
import numpy as np

from ...arrays import Bytes, Codes, Integers, Words
from ...errors import PlanError
from ...kernels.geometric import count_values, encode_shared
from ...progress import Progress
from ..encoder import LevelEncoder, cut_blocks, guess_stops
from ..release import Side
from .parameters import SharedKeys


class SharedKeyEncoder(LevelEncoder):
    """Sketches of one party's attributes under shared keys (VertiMRF, Algorithms 1 and 3).

    ``result()`` returns one table for each attribute, in the order of ``attributes``.

    Args:
        plan: the public sketch parameters.
        attributes: this party's attributes, by their place in ``plan.sizes``; the rows of the
            codes.
        secret: 32 bytes derived from the parties' shared secret and the plan, the same at every
            party.

    Raises:
        PlanError: attributes that repeat or that the plan does not have.
        PrivacyError: a secret that is not 32 bytes.
    """

    _purpose = b"vertimrf shared"

    def __init__(self, plan: SharedKeys, attributes: Sequence[int], secret: bytes) -> None:
        for attribute in attributes:
            if not 0 <= attribute < len(plan.sizes):
                raise PlanError(
                    f"The plan has attributes 0 to {len(plan.sizes) - 1}, not {attribute}."
                )
        sizes = [plan.sizes[a] for a in attributes]
        super().__init__(plan, attributes, secret, sizes, [(size, plan.keys) for size in sizes])

    def _encode(self, digests: Words, codes: Codes, progress: Progress) -> None:
        first_row = np.cumsum([0, *self._sizes[:-1]])
        count_values(codes, first_row, self._counts)
        state = self._state.reshape(self._counts.size, -1)
        for block, (first, keys) in enumerate(cut_blocks(state.shape[1])):
            rows = state[:, first : first + keys]
            low = rows.min(axis=1)
            stops = np.maximum(low, guess_stops(self._counts, keys, self._plan).astype(np.uint8))
            self._raise(digests, codes, first_row, stops, block, rows)
            low = rows.min(axis=1)
            while (short := low < stops).any():
                # Some guesses were too high: encode those rows again, from one level lower.
                stops = np.where(short, np.maximum(low, stops - 1), low)
                again = np.where(short, stops, self._plan.ceiling).astype(np.uint8)
                self._raise(digests, codes, first_row, again, block, rows)
                low = rows.min(axis=1)

    def _raise(
        self,
        digests: Words,
        codes: Codes,
        first_row: Integers,
        stops: Bytes,
        block: int,
        rows: Bytes,
    ) -> None:
        tables = np.repeat(np.ascontiguousarray(rows)[None], numba.get_num_threads(), axis=0)
        axis = (self._start, self._per_length)
        encode_shared(*self._key, digests, codes, first_row, stops, block, *axis, tables)
        np.max(tables, axis=0, out=rows)


def encode(sketch: SharedKeys, side: Side) -> tuple[Bytes, ...]:
    """The tables of a party's groups (:meth:`.CrossPartyRelease.encode`)."""
    encoder = side.encoded(functools.partial(SharedKeyEncoder, sketch, side.groups, side.key))
    out: tuple[Bytes, ...] = encoder.result(side.noise.stream(encoder.digest))
    return out
