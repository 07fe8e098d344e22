"""Numbers as programs write them: 1234.5, -0.31, .31, 1e6."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Any

from ..text import EXACT

# Stata and SAS write .31 for 0.31.
NUMBER = re.compile(r"-?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def as_numbers(counts: Iterable[tuple[Any, int]]) -> dict[float, int] | None:
    """The counts by number.

    None if a value is not a finite number, or a text such as 007 that would change.
    """
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
