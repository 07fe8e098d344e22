"""The three steps that count records of two parties under encryption.

1. The packer encrypts its rows under its own key (:func:`encrypt_rows`).
2. The selector adds, for each of its own values, the rows that have the value, and its own noise
   (:func:`sum_rows`).
3. The packer decrypts the sums (:func:`open_sums`), and adds noise of its own to them.

The selector sees ciphertexts. The packer sees counts with the selector's noise, and nothing else:
an answer is uniform among the ciphertexts of its plaintext. Rows of both parties are in the order
of the keyed digests of their ids (:mod:`vertimrf.releases.encrypted_counts.positions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...arrays import Bytes, Int32s, Integers
from ...errors import MessageError
from ...progress import SILENT, Progress
from .packing import Layout, counters_of
from .paillier import Masks, PrivateKey, PublicKey, as_bytes, numbers
from .processes import spread

# Work that a process gets at a time, a quarter of a second of it.
ROWS_ENCRYPTED, ROWS_ADDED, VALUES = 512, 4096, 4
# Cells of groups that are added together. Rows of ROWS_ADDED then outnumber the cells.
JOINT_CELLS = 512


def encrypt_rows(
    private: PrivateKey,
    codes: Int32s,
    layout: Layout,
    progress: Progress = SILENT,
) -> Bytes:
    """Encrypt a packer's rows under its own key: step 1.

    Args:
        private: the packer's private key.
        codes: values of its groups, -1 for a blank [shape=(groups, capacity), int32].
        layout: the layout of its counters.
        progress: receives the number of encrypted rows.

    Returns:
        Ciphertexts [shape=(capacity, ciphertexts of a row, bytes), uint8].
    """
    if codes.shape[1] != layout.capacity:
        raise ValueError("A packer has a value, or -1, for each of its groups and every row.")
    places = layout.places(codes)
    pieces = [places[:, at] for at in _slices(layout.capacity, ROWS_ENCRYPTED)]
    done = spread(_Encryption, (private, layout), pieces)
    return _collected(done, layout.capacity, layout, progress, "rows")


class _Encryption:
    """Encrypts rows, given the positions of the counters that they change."""

    def __init__(self, private: PrivateKey, layout: Layout) -> None:
        self._masks, self._square = Masks(private), private.public.square
        # What changes a counter by 1: (1 + n)^m = 1 + m n modulo n^2. Raising comes before lowering.
        at = [divmod(counter, layout.per_ciphertext) for counter in range(layout.counters)]
        raising = [(number, private.public.n << (layout.width * k)) for number, k in at]
        self._moves = raising + [(number, -unit) for number, unit in raising]
        self._ciphertexts, self._bytes = layout.ciphertexts, layout.ciphertext_bytes

    def __call__(self, places: Integers) -> Bytes:
        out = []
        for row in places.T.tolist():
            powers = [1] * self._ciphertexts
            for counter in row:
                if counter >= 0:
                    ciphertext, unit = self._moves[counter]
                    powers[ciphertext] += unit
            out += [power * self._masks() % self._square for power in powers]
        return as_bytes(out, self._bytes)


def sum_rows(
    public: PublicKey,
    rows: Bytes,
    codes: Int32s,
    sizes: Sequence[int],
    noise: Integers,
    layout: Layout,
    progress: Progress = SILENT,
    contrasts: Sequence[int] = (),
) -> Bytes:
    """Add the packer's rows for every value of a selector, with the selector's noise: step 2.

    Every row is multiplied into as many products as every other, whatever its values and blanks.

    Args:
        public: the packer's public key.
        rows: the packer's ciphertexts, checked [shape=(capacity, ciphertexts of a row, bytes), uint8].
        codes: values of the selector's groups, -1 for a blank [shape=(groups, capacity), int32].
        sizes: number of values of each of the selector's groups.
        noise: noise of every counter. Its key must depend on ``rows``: answers to two sets of rows
            with the same noise would show their difference [shape=(sums, counters), int64].
        layout: the layout of the packer's counters.
        progress: receives the number of added rows, and then of encrypted sums.
        contrasts: groups of two values with one sum: rows of the first minus rows of the second.

    Returns:
        Ciphertexts of the noisy counters plus the layout's offset [shape=(sums, ciphertexts of a
        row, bytes), uint8].

    Raises:
        PrivacyError: noise exceeds the layout's offset.
    """
    widths = np.array(sizes)[:, None]
    if (
        codes.shape != (len(sizes), layout.capacity)
        or (codes < -1).any()
        or (codes >= widths).any()
    ):
        raise ValueError("A selector has a value, or -1, for each of its groups and every row.")
    if len(noise) != sum(counters_of(sizes, contrasts)):
        raise ValueError("A selector's noise has a row for each of its sums.")
    added = layout.pack(noise)
    cuts = _slices(layout.capacity, ROWS_ADDED)
    pieces = [(rows[at], codes[:, at]) for at in cuts]
    parts: list[list[list[Any]]] = []
    for at, part in zip(
        cuts, spread(_Addition, (public, tuple(sizes), tuple(contrasts)), pieces), strict=True
    ):
        parts.append(part)
        progress.advance(at.stop, layout.capacity, "rows")
    sums = [
        (list(zip(*products, strict=True)), plaintexts)
        for *products, plaintexts in zip(*parts, added, strict=True)
    ]
    answers = spread(partial, (_answered, public), [sums[at] for at in _slices(len(sums), VALUES)])
    return _collected(answers, len(sums), layout, progress, "sums")


class _Addition:
    """Multiplies rows into the products of the selector's values.

    Small groups are joined: a row is multiplied into the product of its combination of values, and
    these products into those of the values.
    """

    def __init__(
        self, public: PublicKey, sizes: tuple[int, ...], contrasts: tuple[int, ...]
    ) -> None:
        self._public, self._sizes, self._contrasts = public, sizes, contrasts
        self._joined: list[list[int]] = []
        cells = JOINT_CELLS
        for group, size in enumerate(sizes):
            # A blank is one more value.
            cells *= size + 1
            if cells > JOINT_CELLS:
                self._joined.append([])
                cells = size + 1
            self._joined[-1].append(group)

    def __call__(self, piece: tuple[Bytes, Int32s]) -> list[list[Any]]:
        rows, codes = piece
        width, flat = rows.shape[1], list(numbers(rows))
        table = [flat[at : at + width] for at in range(0, len(flat), width)]
        sums: list[list[list[Any]]] = [[[] for _ in range(size)] for size in self._sizes]
        for groups in self._joined:
            cells: dict[tuple[int, ...], list[list[Any]]] = {}
            for row, cell in zip(table, zip(*codes[groups].tolist(), strict=True), strict=True):
                cells.setdefault(cell, []).append(row)
            for cell, chosen in cells.items():
                product = self._product(chosen, width)
                for group, value in zip(groups, cell, strict=True):
                    if value >= 0:
                        sums[group][value].append(product)
        out: list[list[Any]] = []
        for group, chosen in enumerate(sums):
            products = [self._product(some, width) for some in chosen]
            if group in self._contrasts:
                # Dividing by a ciphertext subtracts its plaintext.
                products = [
                    [
                        self._public.add([one, self._public.negated(other)])
                        for one, other in zip(*products, strict=True)
                    ]
                ]
            out += products
        return out

    def _product(self, rows: Sequence[Sequence[Any]], width: int) -> list[Any]:
        """Products of rows, by ciphertext."""
        return [self._public.add(row[k] for row in rows) for k in range(width)]


def _answered(public: PublicKey, piece: Sequence[tuple[list[tuple[Any, ...]], list[int]]]) -> Bytes:
    """Add noise to sums by fresh ciphertexts, whose uniform factors hide which rows were added."""
    return as_bytes(
        (
            public.add([*factors, public.encrypt(plaintext)])
            for products, plaintexts in piece
            for factors, plaintext in zip(products, plaintexts, strict=True)
        ),
        public.ciphertext_bytes,
    )


def open_sums(
    private: PrivateKey,
    answers: Bytes,
    rows: Sequence[int],
    layout: Layout,
    progress: Progress = SILENT,
) -> list[Integers]:
    """Decrypt a selector's answers: step 3. The packer's noise is still to be added.

    Args:
        private: the packer's private key.
        answers: ciphertexts, checked [shape=(sums, ciphertexts of a row, bytes), uint8].
        rows: number of sums of each of the selector's groups.
        layout: the layout of the packer's counters.
        progress: receives the number of decrypted sums.

    Returns:
        Tables of counts with the selector's noise [shape=(selector's sums, packer's counters),
        int64], for each of the selector's groups and, within it, for each of the packer's.

    Raises:
        MessageError: the answers are not of this key and layout.
    """
    cuts = _slices(len(answers), VALUES)
    counters: list[list[int]] = []
    for some in spread(partial, (_opened, private, layout), [answers[at] for at in cuts]):
        counters += some
        progress.advance(len(counters), len(answers), "sums")
    if not all(counters):
        raise MessageError(
            "The file of answers was made under another key or for another plan: have it sent again."
        )
    return layout.tables(np.array(counters, np.int64), rows)


def _opened(private: PrivateKey, layout: Layout, answers: Bytes) -> list[list[int]]:
    """Decrypt answers."""
    return [
        layout.unpack([private.decrypt(number) for number in numbers(answer)]) for answer in answers
    ]


def check_ciphertexts(
    ciphertexts: Bytes, count: int, layout: Layout, public: PublicKey, where: str
) -> None:
    """Check another party's ciphertexts, before anything is computed of them.

    Args:
        ciphertexts: rows or answers [shape=(count, ciphertexts of a row, bytes), uint8].
        count: number of rows or sums.
        layout: the layout of the packer's counters.
        public: the packer's public key.
        where: what they are, for errors.

    Raises:
        MessageError: they are too few, too many, or no ciphertexts under this key.
    """
    if ciphertexts.shape[:2] != (count, layout.ciphertexts):
        raise MessageError(
            f"{where} has {ciphertexts.shape[:2]} ciphertexts, and this plan has {(count, layout.ciphertexts)}: have it sent "
            "again."
        )
    public.check(ciphertexts, where)


def _slices(count: int, length: int) -> list[slice]:
    return [slice(at, min(at + length, count)) for at in range(0, count, length)]


def _collected(
    pieces: Iterator[Bytes], count: int, layout: Layout, progress: Progress, unit: str
) -> Bytes:
    """Rows of ciphertexts from pieces, whose number is reported as they come."""
    out = np.empty((count, layout.ciphertexts, layout.ciphertext_bytes), np.uint8)
    done = 0
    for piece in pieces:
        rows = piece.reshape(-1, *out.shape[1:])
        out[done : done + len(rows)] = rows
        done += len(rows)
        progress.advance(done, count, unit)
    return out
