"""How counters share slots: their width, their order, how many fit into one, and the flooding.

The packer of a pair of parties has one counter for each value of each of its groups. The counters
of a row stand one after the other in as few slots as they need, each ``width`` bits wide. Sums of
plaintexts are then sums of counters, as long as no counter overflows into the next. What a slot has
room for beyond its counters is filled by flooding (:mod:`.lattice`).

All figures are public. They follow from the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import Integers, Integral, Ints
from ...errors import PlanError, PrivacyError

# Coefficients of a polynomial, and rows of a block.
N = 1 << 13
# The largest primes below 2^31 that are 1 modulo 2N.
PRIMES = (2147352577, 2147205121, 2147074049, 2146959361, 2146713601)
Q = math.prod(PRIMES)
# The largest error, and the variance of errors.
LARGEST_ERROR, ERROR_VARIANCE = 21, 10.5
# Bytes of a packer's public seed.
SEED = 32
# A discrete Gaussian exceeds 12 standard deviations on either side with a probability below
# 2 exp(-72) < 2^-102 (Canonne, Kamath and Steinke 2020, section 2.5). For 2^40 counters the chance
# that any does stays below 2^-62.
TAIL = 12
# All answers to a packer are within a statistical distance of 2^-43 of ones that depend on noisy
# counts alone, and so those to seven packers within 2^-40.
DISTANCE_BITS = 43
WORD = 4
# Most bytes of a piece of rows, which is one file; a piece has at least one block.
PIECE_BYTES = 1 << 26


@dataclass(frozen=True)
class Layout:
    """The counters of one packer, and their places in its ciphertexts.

    Attributes:
        sizes: number of values of each of the packer's groups.
        capacity: number of encrypted rows; no counter exceeds it without noise.
        sigma: standard deviation of the selector's noise on each counter.
        contrasts: groups of two values with one counter, which the first value raises and the
            second lowers.
        signed: whether sums may be negative, because the packer or a selector has contrasts.
        sums: most sums that all selectors return together.

    Raises:
        PlanError: a counter does not fit into a slot, or there is no counter or row.
    """

    sizes: Ints
    capacity: int
    sigma: float
    contrasts: Ints = ()
    signed: bool = False
    sums: int = 1

    def __post_init__(self) -> None:
        if min(self.sizes, default=0) < 1 or self.capacity < 1:
            raise PlanError(
                "Encrypted counts need a row and a value to count: give every group at least one value, and the plan a "
                "capacity of at least 1."
            )
        if any(self.sizes[group] != 2 for group in self.contrasts) or (
            self.contrasts and not self.signed
        ):
            raise ValueError("Contrasts are of groups of two values, and signed.")
        if not 0 <= self.sigma < math.inf or self.per_slot < 1:
            raise PlanError(
                f"A counter of {self.capacity:,} rows with noise of standard deviation {self.sigma:g} does not fit into "
                f"{Q.bit_length()} bits with what hides it: raise epsilon."
            )

    @property
    def reach(self) -> int:
        """Largest noise of a counter, in either direction."""
        return math.ceil(TAIL * self.sigma)

    @property
    def offset(self) -> int:
        """What is added to every counter so that neither noise nor rows make it negative."""
        return self.reach + self.capacity * self.signed

    @property
    def width(self) -> int:
        """Bits of a counter: it holds the capacity, the offset, and noise as large as the offset."""
        return (self.capacity + 2 * self.offset).bit_length()

    @cached_property
    def per_slot(self) -> int:
        """Counters in one slot: as many as leave room for the flooding; 0 if there is none."""
        spread = math.sqrt(ERROR_VARIANCE * (self.capacity + 2 * N))
        for count in range(Q.bit_length() // self.width, 0, -1):
            answered = self.sums * -(-self.counters // count)
            bits = _flooding(Q >> count * self.width, self.largest_error)
            if bits > 0 and answered * spread <= 2.0 ** (bits - DISTANCE_BITS):
                return count
        return 0

    @cached_property
    def scale(self) -> int:
        """Delta: what a count of 1 in the first counter of a slot is multiplied by."""
        return Q >> self.per_slot * self.width

    @property
    def largest_error(self) -> int:
        """H: the largest error of a sum, in either direction."""
        return LARGEST_ERROR * (self.capacity + 2 * N)

    @property
    def flooding_bits(self) -> int:
        """G: flooding is uniform among integers of so many bits."""
        return _flooding(self.scale, self.largest_error)

    @cached_property
    def counters(self) -> int:
        """Number of counters of a row."""
        return sum(self.rows)

    @cached_property
    def rows(self) -> Ints:
        """Number of counters of each group: one for each value, or one for its contrast."""
        return counters_of(self.sizes, self.contrasts)

    @property
    def above_flooding(self) -> int:
        """What the flooding and all errors together stay below; the scale is no less."""
        return (1 << self.flooding_bits) + 2 * self.largest_error

    @property
    def slots(self) -> int:
        """Slots of a row, and of a sum."""
        return -(-self.counters // self.per_slot)

    @property
    def blocks(self) -> int:
        """Blocks of rows, without block 0."""
        return -(-self.capacity // N)

    @property
    def block_bytes(self) -> int:
        """Bytes of one block of encrypted rows."""
        return self.slots * len(PRIMES) * N * WORD

    @property
    def pieces(self) -> list[range]:
        """Numbers of the blocks in each piece of the rows. The first one begins with block 0."""
        count = max(PIECE_BYTES // self.block_bytes, 1)
        return [
            range(at, min(at + count, self.blocks + 1)) for at in range(0, self.blocks + 1, count)
        ]

    def piece_bytes(self, piece: int) -> int:
        """Bytes of a piece of encrypted rows, and of its public seed."""
        return SEED + len(self.pieces[piece]) * self.block_bytes

    def answer_bytes(self, sums: int) -> int:
        """Bytes of the answers for so many sums of a selector."""
        return sums * (N + self.slots) * len(PRIMES) * WORD

    def marks(self) -> tuple[Integers, list[int]]:
        """What a row adds for a value at each of :meth:`places`: the slot, and the number."""
        at = [divmod(counter, self.per_slot) for counter in range(self.counters)]
        raising = [self.scale << (self.width * place) for _, place in at]
        slots = np.array([slot for slot, _ in at], np.int64)
        return np.tile(slots, 2), raising + [-one for one in raising]

    def places(self, codes: Integral) -> Integers:
        """Positions of the counters that rows change; -1 for a blank.

        Args:
            codes: values of the groups, -1 for a blank [shape=(groups, rows), integer].

        Returns:
            Positions among all counters, plus the number of counters where the counter is lowered
            [shape=(groups, rows), int64].
        """
        sizes, rows = np.array(self.sizes)[:, None], np.array(self.rows)[:, None]
        if len(codes) != len(sizes) or (codes < -1).any() or (codes >= sizes).any():
            raise ValueError("Codes are below the sizes of the layout's groups, or -1.")
        moved = np.where(codes < rows, codes, self.counters) + np.cumsum(rows)[:, None] - rows
        return np.where(codes < 0, -1, moved)

    def pack(self, noise: Integers) -> list[list[int]]:
        """Plaintexts that add noise and the offset to counters.

        Args:
            noise: noise of the counters [shape=(sums, counters), int64].

        Returns:
            By sum, the plaintexts of its slots.

        Raises:
            PrivacyError: noise exceeds its reach, which has a chance below 2^-60.
        """
        if noise.shape[1:] != (self.counters,):
            raise ValueError(f"Noise has a column for each of {self.counters} counters.")
        if (np.abs(noise) > self.reach).any():
            raise PrivacyError(
                f"Noise exceeds {self.reach} on a counter, which has a chance below 2^-60 at the plan's standard deviation "
                f"{self.sigma:g}: nothing is released."
            )
        return [
            [
                _joined(row[first : first + self.per_slot], self.width)
                for first in range(0, self.counters, self.per_slot)
            ]
            for row in (noise + self.offset).tolist()
        ]

    def unpack(self, numbers: Sequence[int]) -> list[int]:
        """Counters in what the slots of one answer open to, without the offset.

        Args:
            numbers: by slot, the plaintext times the scale, plus what is below it.

        Returns:
            The counters, or an empty list if the numbers have other bits: they were then encrypted
            under another key or by another layout.
        """
        mask = (1 << self.width) - 1
        out: list[int] = []
        for number in numbers:
            plaintext, below = divmod(number, self.scale)
            here = min(self.per_slot, self.counters - len(out))
            if plaintext >> (here * self.width) or below >= self.above_flooding:
                return []
            out += [(plaintext >> (self.width * k)) & mask for k in range(here)]
        if max(out) > self.capacity + 2 * self.offset:
            return []
        return [value - self.offset for value in out]

    def tables(self, counters: Integers, rows: Sequence[int]) -> list[Integers]:
        """Tables of every pair of groups, from the counters of all sums of a selector.

        Args:
            counters: counters by the selector's sums, group after group [shape=(sums, counters),
                int64].
            rows: number of sums of each of the selector's groups.

        Returns:
            Tables [shape=(selector's sums, packer's counters), int64], for each of the selector's
            groups and, within it, for each of the packer's.
        """
        parts = np.split(counters, np.cumsum(rows)[:-1])
        return [table for part in parts for table in np.split(part, np.cumsum(self.rows)[:-1], 1)]


def counters_of(sizes: Sequence[int], contrasts: Sequence[int]) -> Ints:
    """Number of counters of each group: one for each value, or one for its contrast."""
    return tuple(1 if group in contrasts else size for group, size in enumerate(sizes))


def _joined(values: Sequence[int], width: int) -> int:
    """Integers of ``width`` bits as one integer, the first in the lowest bits."""
    return sum(value << (width * k) for k, value in enumerate(values))


def _flooding(scale: int, largest_error: int) -> int:
    """Bits of the widest flooding below a scale; negative if there is none."""
    return (scale - 2 * largest_error).bit_length() - 1 if scale > 2 * largest_error else -1
