"""Numbers as programs write them: 1234.5, -0.31, .31, 1e6."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ..text import EXACT

if TYPE_CHECKING:
    from ...arrays import Floats

# Stata and SAS write .31 for 0.31.
NUMBER = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def as_numbers(counts: Iterable[tuple[Any, int]]) -> dict[float, int] | None:
    """The counts by number.

    None if a value is not a finite number, or a text such as 007 that would change.
    """
    counts = [*counts]
    quick = _at_once([value for value, _ in counts])
    if quick is not None:
        return summed(quick, (count for _, count in counts))
    numbers: dict[float, int] = {}
    for value, count in counts:
        text = isinstance(value, str) and NUMBER.fullmatch(value)
        if not text and (isinstance(value, bool) or not isinstance(value, int | float | Decimal)):
            return None
        number = float(value)
        if not math.isfinite(number):
            return None
        if abs(number) >= EXACT and not isinstance(value, float):
            # Double precision tells such whole numbers not apart.
            with suppress(ValueError):
                number = int(value) if int(value) == Decimal(value) else number
        numbers[number] = numbers.get(number, 0) + count
    return numbers


def summed(numbers: Floats, counts: Iterable[int]) -> dict[float, int]:
    """Records by number.

    Args:
        numbers: the numbers, of which some may be there several times [shape=(n,), float64].
        counts: records that have each.
    """
    records = np.fromiter(counts, np.int64, len(numbers))
    distinct, places = np.unique(numbers, return_inverse=True)
    if len(distinct) < len(numbers):
        numbers, records = distinct, np.bincount(places, records).astype(np.int64)
    return dict(zip(numbers.tolist(), records.tolist(), strict=True))


def _at_once(values: Sequence[Any]) -> Floats | None:
    """Values as numbers, if all are finite ones in double precision, or texts of such below 2**53; None of others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {*map(type, values)}
    if kinds == {float}:
        numbers: Floats = np.array(values)
        return numbers if np.isfinite(numbers).all() else None
    if kinds != {str} or not NUMBER.fullmatch(values[0]):
        return None
    texts = pa.array(values, pa.large_string())
    if not pc.all(pc.match_substring_regex(texts, f"^({NUMBER.pattern})$")).as_py():
        return None
    numbers = texts.cast(pa.float64()).to_numpy()
    return numbers if (np.abs(numbers) < EXACT).all() else None
