"""How counters share ciphertexts: their width, their order, and how many fit into one.

The packer of a pair of parties has one counter for each value of each of its groups. The counters
of a row stand one after the other in as few plaintexts as they need, each ``width`` bits wide.
Sums of plaintexts are then sums of counters, as long as no counter overflows into the next.

All figures are public. They follow from the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...arrays import Integers
from ...errors import PlanError, PrivacyError

# Bits of a Paillier modulus with a security of 128 bits (NIST SP 800-57, part 1, table 2).
MODULUS_BITS = 3072
# A discrete Gaussian exceeds 12 standard deviations on either side with a probability below
# 2 exp(-72) < 2^-102 (Canonne, Kamath and Steinke 2020, section 2.5). For 2^40 counters the chance
# that any does stays below 2^-62.
TAIL = 12


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
        modulus_bits: bits of the packer's modulus.

    Raises:
        PlanError: a counter does not fit into a plaintext, or there is no counter or row.
    """

    sizes: tuple[int, ...]
    capacity: int
    sigma: float
    modulus_bits: int = MODULUS_BITS
    contrasts: tuple[int, ...] = ()
    signed: bool = False

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
        if not 0 <= self.sigma < math.inf or self.per_ciphertext < 1:
            raise PlanError(
                f"A counter of {self.capacity:,} rows with noise of standard deviation {self.sigma:g} does not fit into "
                f"{self.modulus_bits} bits: raise epsilon."
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

    @property
    def per_ciphertext(self) -> int:
        """Counters in one ciphertext. All plaintexts are below the modulus."""
        return (self.modulus_bits - 1) // self.width

    @cached_property
    def counters(self) -> int:
        """Number of counters of a row."""
        return sum(self.rows)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Number of counters of each group: one for each value, or one for its contrast."""
        return counters_of(self.sizes, self.contrasts)

    @property
    def ciphertexts(self) -> int:
        """Ciphertexts of a row, and of an answer for one value."""
        return -(-self.counters // self.per_ciphertext)

    @property
    def ciphertext_bytes(self) -> int:
        """Bytes of a ciphertext."""
        return 2 * -(-self.modulus_bits // 8)

    @property
    def row_bytes(self) -> int:
        """Bytes of all encrypted rows."""
        return self.capacity * self.ciphertexts * self.ciphertext_bytes

    def answer_bytes(self, values: int) -> int:
        """Bytes of the answers for so many values of the selector."""
        return values * self.ciphertexts * self.ciphertext_bytes

    def places(self, codes: npt.NDArray[np.integer]) -> Integers:
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
            noise: noise of the counters [shape=(values, counters), int64].

        Returns:
            By value, the plaintexts of its ciphertexts.

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
                _joined(row[first : first + self.per_ciphertext], self.width)
                for first in range(0, self.counters, self.per_ciphertext)
            ]
            for row in (noise + self.offset).tolist()
        ]

    def unpack(self, plaintexts: Sequence[int]) -> list[int]:
        """Counters in the plaintexts of one answer, without the offset.

        Args:
            plaintexts: the plaintexts of an answer, in order.

        Returns:
            The counters, or an empty list if the plaintexts have other bits: they were then
            encrypted under another key or by another layout.
        """
        mask = (1 << self.width) - 1
        out: list[int] = []
        for plaintext in plaintexts:
            here = min(self.per_ciphertext, self.counters - len(out))
            if plaintext >> (here * self.width):
                return []
            out += [(plaintext >> (self.width * k)) & mask for k in range(here)]
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


def counters_of(sizes: Sequence[int], contrasts: Sequence[int]) -> tuple[int, ...]:
    """Number of counters of each group: one for each value, or one for its contrast."""
    return tuple(1 if group in contrasts else size for group, size in enumerate(sizes))


def _joined(values: Sequence[int], width: int) -> int:
    """Integers of ``width`` bits as one integer, the first in the lowest bits."""
    return sum(value << (width * k) for k, value in enumerate(values))
