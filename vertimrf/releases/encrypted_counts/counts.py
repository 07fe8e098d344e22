"""The three steps that count records of two parties under encryption (:mod:`.lattice`).

1. The packer encrypts its rows under its own key (:func:`encrypt_rows`).
2. The selector adds, for each of its own values, the rows that have the value, and its own noise
   (:func:`sum_rows`).
3. The packer decrypts the sums (:func:`open_sums`), and adds noise of its own to them.

The selector sees ciphertexts. The packer sees counts with the selector's noise, and nothing else:
what an answer has beside them depends on nothing but chance. Rows of both parties are in the order
of the keyed digests of their ids (:mod:`vertimrf.releases.encrypted_counts.positions`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...arrays import Int32s, Integers, Ints
from ...errors import MessageError
from ...kernels.jit import for_each
from ...kernels.ring import add_marks
from ...progress import SILENT, Progress
from . import lattice
from .lattice import PrivateKey, Randomness, Residues, Small
from .packing import PRIMES, SEED, Layout, N, counters_of

# Sums that are opened together.
OPENED = 64


@dataclass(frozen=True, eq=False)
class Rows:
    """A piece of a packer's encrypted rows.

    Attributes:
        seed: its public seed.
        blocks: some blocks, as :attr:`.Layout.pieces` has them [shape=(blocks, slots, primes, N),
            uint32].
    """

    seed: bytes
    blocks: Residues


@dataclass(frozen=True, eq=False)
class Answers:
    """A selector's encrypted sums.

    Attributes:
        vectors: what the packer's secrets are multiplied by [shape=(sums, primes, N), uint32].
        sums: by sum and slot [shape=(sums, slots, primes), uint32].
    """

    vectors: Residues
    sums: Residues


def encrypt_rows(
    private: PrivateKey,
    codes: Int32s,
    layout: Layout,
    progress: Progress = SILENT,
    piece: int = 0,
) -> Rows:
    """Encrypt a piece of a packer's rows under its own key: step 1.

    Args:
        private: the packer's private key.
        codes: values of its groups, -1 for a blank [shape=(groups, capacity), int32].
        layout: the layout of its counters.
        progress: receives the number of encrypted rows.
        piece: number of the piece.

    Returns:
        The encrypted rows, under a fresh seed.
    """
    if codes.shape[1] != layout.capacity:
        raise ValueError("A packer has a value, or -1, for each of its groups and every row.")
    slots, marks = layout.marks()
    added, moduli = lattice.residues(marks).astype(np.uint32), lattice.ring().moduli
    secrets = lattice.transformed(private.secrets(layout.slots))
    seed, random = lattice.new_seed(), Randomness()
    blocks = layout.pieces[piece]
    out = np.empty((len(blocks), layout.slots, len(PRIMES), N), np.uint32)
    drawn = [random.errors(layout.slots, N) for _ in blocks]
    done, lock = itertools.count(max(blocks[0], 1)), threading.Lock()

    def encrypt(i: int) -> None:
        block, words = blocks[i], out[i]
        words[:] = lattice.with_errors(secrets, drawn[i], lattice.public_polynomial(seed, block))
        if block:
            places = layout.places(codes[:, (block - 1) * N : block * N])
            add_marks(places, slots, added, moduli, words)
            with lock:
                progress.advance(min(next(done) * N, layout.capacity), layout.capacity, "rows")

    for_each(len(blocks), encrypt)
    return Rows(seed, out)


def sum_rows(
    rows: Iterable[Rows],
    codes: Int32s,
    sizes: Sequence[int],
    noise: Callable[[], Integers],
    layout: Layout,
    progress: Progress = SILENT,
    contrasts: Sequence[int] = (),
) -> Answers:
    """Add the packer's rows for every value of a selector, with the selector's noise: step 2.

    Every row takes part in every product, whatever its values and blanks.

    Args:
        rows: all pieces of the packer's rows, in order, checked. One at a time is in memory.
        codes: values of the selector's groups, -1 for a blank [shape=(groups, capacity), int32].
        sizes: number of values of each of the selector's groups.
        noise: gives the noise of every counter, once all rows are added. Its key must depend on
            ``rows``: answers to two sets of rows with the same noise would show their difference
            [shape=(sums, counters), int64].
        layout: the layout of the packer's counters.
        progress: receives the number of added rows.
        contrasts: groups of two values with one sum: rows of the first minus rows of the second.

    Returns:
        The encrypted noisy counters plus the layout's offset.

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
    counted = counters_of(sizes, contrasts)
    random, moduli = Randomness(), np.array(PRIMES)
    vectors = np.zeros((sum(counted), len(PRIMES), N), np.uint32)
    sums = np.zeros((sum(counted), layout.slots, len(PRIMES)), np.int64)
    for blocks, piece in zip(layout.pieces, rows, strict=True):
        for block, words in zip(blocks, piece.blocks, strict=True):
            if block:
                weights = _weights(codes[:, (block - 1) * N : block * N], counted)
            else:
                # Block 0 with random weights is an encryption of zero.
                weights = random.thirds(sum(counted), N)
            lattice.added(vectors, weights, lattice.public_polynomial(piece.seed, block))
            sums = (sums + lattice.weighed(weights, words)) % moduli
            if block:
                progress.advance(min(block * N, layout.capacity), layout.capacity, "rows")
    drawn = noise()
    if len(drawn) != sum(counted):
        raise ValueError("A selector's noise has a row for each of its sums.")
    plaintexts = [plaintext for row in layout.pack(drawn) for plaintext in row]
    flooding = random.integers(sums.shape[0] * sums.shape[1], layout.flooding_bits)
    hidden = [
        layout.scale * plaintext + layout.largest_error + flood
        for plaintext, flood in zip(plaintexts, flooding, strict=True)
    ]
    sums = (sums + lattice.residues(hidden).reshape(sums.shape)) % moduli
    errors = random.errors(sum(counted), N)
    return Answers(lattice.with_errors(vectors, errors), sums.astype(np.uint32))


def _weights(codes: Int32s, counted: Sequence[int]) -> Small:
    """Weights of the rows of a block in every sum, 0 beyond the last row.

    Args:
        codes: values of the selector's groups, -1 for a blank [shape=(groups, rows), int32].
        counted: number of sums of each group; the one of a contrast is the first value's rows less
            the second's.

    Returns:
        [shape=(sums, N), int8]
    """
    out, first = np.zeros((sum(counted), N), np.int8), 0
    for values, count in zip(codes, counted, strict=True):
        rows = np.flatnonzero(values >= 0)
        chosen = values[rows]
        lowered = chosen >= count
        out[first + np.where(lowered, 0, chosen), rows] = np.where(lowered, -1, 1)
        first += count
    return out


def open_sums(
    private: PrivateKey,
    answers: Answers,
    rows: Sequence[int],
    layout: Layout,
    progress: Progress = SILENT,
) -> list[Integers]:
    """Decrypt a selector's answers: step 3. The packer's noise is still to be added.

    Args:
        private: the packer's private key.
        answers: the answers, checked.
        rows: number of sums of each of the selector's groups.
        layout: the layout of the packer's counters.
        progress: receives the number of decrypted sums.

    Returns:
        Tables of counts with the selector's noise [shape=(selector's sums, packer's counters),
        int64], for each of the selector's groups and, within it, for each of the packer's.

    Raises:
        MessageError: the answers are not of this key and layout.
    """
    secrets = private.secrets(layout.slots)
    counters: list[list[int]] = []
    for first in range(0, len(answers.sums), OPENED):
        vectors = answers.vectors[first : first + OPENED]
        masks = lattice.weighed(secrets, vectors).transpose(1, 0, 2)
        opened = (answers.sums[first : first + OPENED] - masks) % np.array(PRIMES)
        counters += [layout.unpack(lattice.integers(one)) for one in opened]
        progress.advance(len(counters), len(answers.sums), "sums")
    if not all(counters):
        raise MessageError(
            "The file of answers was made under another key or for another plan: have it sent again."
        )
    return layout.tables(np.array(counters, np.int64), rows)


def check_rows(rows: Rows, layout: Layout, where: str, piece: int = 0) -> None:
    """Check a piece of another party's rows, before anything is computed of them.

    Args:
        rows: the rows.
        layout: the layout of its counters.
        where: what they are, for errors.
        piece: number of the piece.

    Raises:
        MessageError: they are too few, too many, or no ciphertexts.
    """
    blocks = len(layout.pieces[piece])
    _check_shape(rows.blocks, (blocks, layout.slots, len(PRIMES), N), where)
    if len(rows.seed) != SEED:
        raise MessageError(f"{where} has no seed of {SEED} bytes: have it sent again.")
    for block in rows.blocks:
        lattice.check_polynomials(block, where)


def check_answers(answers: Answers, count: int, layout: Layout, where: str) -> None:
    """Check another party's answers, before anything is computed of them.

    Args:
        answers: the answers.
        count: number of sums.
        layout: the layout of the packer's counters.
        where: what they are, for errors.

    Raises:
        MessageError: they are too few, too many, or no ciphertexts.
    """
    _check_shape(answers.vectors, (count, len(PRIMES), N), where)
    _check_shape(answers.sums, (count, layout.slots, len(PRIMES)), where)
    for vector in answers.vectors:
        lattice.check_polynomials(vector, where)
    lattice.check_residues(answers.sums, where)


def _check_shape(numbers: Residues, wanted: Ints, where: str) -> None:
    if numbers.shape != wanted:
        raise MessageError(
            f"{where} has {numbers.shape} numbers, and this plan has {wanted}: have it sent again."
        )
