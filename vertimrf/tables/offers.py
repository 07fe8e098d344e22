"""Equations that hold in every record of a table, for its owner to take over into the schema."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ..arrays import Floats
from ..columns.column import Attribute
from ..plan.equations import Equation
from .derived import differ, numbers_of

# Records that a sum is tried in before all of them, and the fewest that a table must have.
TRIED = 64
# Largest difference of two dates, as a part of the range of the earlier one.
SHORT = 0.1


def offers(table: pa.Table, attributes: Sequence[Attribute]) -> Iterator[tuple[Equation, str, str]]:
    """Equations that a table keeps: sums and products of two numbers, and dates a short time after
    others.

    Args:
        table: the records.
        attributes: drafts of its columns.

    Yields:
        Per equation the equation, what its column is in the records, and what to do.
    """
    if table.num_rows < TRIED:
        return
    varying = [a for a in attributes if a.size > 1 + a.missing]
    numbers = {
        a.name: numbers_of(table, a, "The table")
        for a in varying
        if a.instants is None and a.holds_numbers and not a.origin
    }
    names = {_tried(values): name for name, values in numbers.items()}

    def given(total: str, one: str, sign: str, other: str) -> tuple[Equation, str, str]:
        return (
            Equation(total, ((one, 1), (other, 1)), sign == "*"),
            f"is {one!r} {sign} {other!r} in every record",
            "delete its section",
        )

    def equal(values: Floats) -> str | None:
        name = names.get(_tried(values))
        return None if name is None or differ(numbers[name], values).any() else name

    for one, other in itertools.combinations_with_replacement(numbers, 2):
        with np.errstate(over="ignore", invalid="ignore"):
            results = {"*": numbers[one] * numbers[other]}
            if one != other:
                results["+"] = numbers[one] + numbers[other]
        for sign, values in results.items():
            if (name := equal(values)) not in (None, one, other):
                yield given(str(name), one, sign, other)
    dates = [a for a in varying if a.instants and a.instants[0] != "time"]
    for low, high in itertools.permutations(dates, 2):
        if low.instants == high.instants:
            first = numbers_of(table, low, "The table")
            later = numbers_of(table, high, "The table") - first
            if name := equal(later):
                yield given(high.name, low.name, "+", name)
                continue
            later, first = later[~np.isnan(later)], first[~np.isnan(first)]
            longest = later.max(initial=0)
            if 0 < longest <= SHORT * np.ptp(first) and later.min() >= 0:
                unit = "days" if low.instants == ("date", None) else "seconds"
                yield (
                    Equation(high.name, ((low.name, 1), (unit, 1))),
                    f"is at most {longest:g} {unit} after {low.name!r} in every record",
                    f"describe {unit} (bounds = [0, {longest:g}], integral = true) in place of it",
                )


def _tried(numbers: Floats) -> bytes:
    """What equal columns share."""
    some = numbers[:: len(numbers) // TRIED]
    with np.errstate(over="ignore", invalid="ignore"):
        some = np.where(np.abs(some) < 1e300, np.round(some, 6), some)
    return np.nan_to_num(some + 0.0, nan=np.inf, posinf=np.inf).tobytes()
