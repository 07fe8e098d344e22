"""Timestamps as whole numbers since 1970-01-01 UTC: 1656057600 (seconds), 1656057600000 (milliseconds)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .moments import Moments

if TYPE_CHECKING:
    import pyarrow as pa

    from ...arrays import Flags, Floats, Integers

# Units in a second by format: the codes of d3-format, of which C has the first.
PER_SECOND = {"%s": 1, "%Q": 1000}
# Seconds that people mean, from 2004 to 2030. Numbers of people are rarely so: those of telephones in North America begin at 2,010,000,000.
USUAL = (1.1e9, 1.9e9)
# Records of earlier years have numbers of 9 and of 10 digits, which numbers of people do not.
EARLY = 6e8


@dataclass(frozen=True)
class Epoch(Moments):
    """Timestamps as numbers of seconds or milliseconds. Texts of ISO 8601 are none."""

    @property
    def is_usual(self) -> bool:
        """See :class:`Moments`."""
        return False

    @property
    def width(self) -> int:
        """See :class:`Moments`."""
        return 0

    def number(self, text: str) -> float:
        """See :class:`Moments`."""
        whole = text.strip()
        digits = whole.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            return np.nan
        return int(whole) / PER_SECOND[self.pattern or "%s"]

    def written(self, values: pa.Array) -> pa.Array:
        """See :class:`Notation`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ticks = pc.multiply(values, PER_SECOND[self.pattern or "%s"])
        return pc.round(ticks).cast(pa.int64()).cast(pa.string())


def seen(values: Floats | Integers) -> str | None:
    """The format of whole numbers that are times since 1970; None if they are something else.

    Args:
        values: the distinct values, ascending and finite, at least one [shape=(k,)].
    """
    for format, each in PER_SECOND.items():
        low, high = float(values[0]) / each, float(values[-1]) / each
        early = EARLY <= low < 1e9 <= high
        whole: Flags = values % 1 == 0
        # Consecutive numbers count something.
        counting = float(values[-1]) - float(values[0]) < 1.5 * len(values)
        if (early or low >= USUAL[0]) and high < USUAL[1] and whole.all() and not counting:
            return format
    return None
