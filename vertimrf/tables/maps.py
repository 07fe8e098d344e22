"""Columns that others decide: of each value of the one the other has a single value, or is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Integers
from ..columns.column import Attribute
from ..columns.listed import ByValue
from ..plan.impossible import MISSING, Condition, Impossible
from .alike import EACH, FIRST

# Most pairs of values of a map, and most listed columns among which maps are searched for.
MAX_VALUES, MAX_COLUMNS = 4096, 128
# A map is likely if chance would have its values agree with a probability of no more than exp(-SURE).
SURE = 30.0
# Parts of a table whose first records are compared first.
PARTS = 40


@dataclass(frozen=True, eq=False)
class _Column:
    """A column of few values, or whether a column is missing.

    Attributes:
        name: of the column.
        attribute: its domain; None if only whether it is missing counts.
        first: codes of the records that are compared first [shape=(m,), int64].
    """

    name: str
    attribute: Attribute | None
    first: Integers

    def condition(self, codes: Sequence[int]) -> Condition:
        """That the column has one of some codes."""
        if self.attribute is None:
            return Condition(self.name, missing=codes[0] == 1)
        return Condition(self.name, tuple(self._value(code) for code in codes))

    def _value(self, code: int) -> Any:
        assert isinstance(self.attribute, ByValue)
        return MISSING if code == self.attribute.present else self.attribute.listed[code]


def maps(
    table: pa.Table, attributes: Sequence[Attribute]
) -> Iterator[tuple[str, str, tuple[Impossible, ...]]]:
    """Columns that another column decides, each by the one of fewest values.

    Args:
        table: the records.
        attributes: drafts of the columns.

    Yields:
        The decided column, what it is, and the combinations of values that no record has.
    """
    few = _some(table.select([a.name for a in attributes]))
    listed = [a for a in attributes if isinstance(a, ByValue) and a.size <= MAX_VALUES]
    columns = [_Column(a.name, a, _codes(a, few)) for a in listed[:MAX_COLUMNS]]
    absent = {a.name: a for a in attributes if a.missing}
    whether = [
        column
        for column in (_Column(name, None, _missing(a, few)) for name, a in absent.items())
        if 0 < column.first.sum() < len(column.first)
    ]
    codes: dict[tuple[str, bool], Integers] = {}

    def every(column: _Column) -> Integers:
        key = column.name, column.attribute is None
        if key not in codes:
            codes[key] = (
                _missing(absent[column.name], table)
                if column.attribute is None
                else _codes(column.attribute, table)
            )
        return codes[key]

    sizes = {id(c): 2 if c.attribute is None else c.attribute.size for c in [*columns, *whether]}
    decided: set[tuple[str, str]] = set()
    for made in [*columns, *whether]:
        for by in sorted([*columns, *whether], key=lambda c: sizes[id(c)]):
            if by.name == made.name or (by.name, made.name) in decided:
                continue
            if sizes[id(by)] * sizes[id(made)] > MAX_VALUES or not _decides(by.first, made.first):
                continue
            if by.attribute is None and made.attribute is not None:
                continue
            pairs = _map(every(by), every(made))
            if pairs is not None and _likely(every(by), every(made)):
                decided |= {(by.name, made.name), (made.name, by.name)}
                yield made.name, *_stated(by, made, pairs)
                break


def _codes(attribute: Attribute, table: pa.Table) -> Integers:
    """A column's codes, that of missing values last [shape=(n,), int64]."""
    codes = attribute.encoder("The table")(table[attribute.name]).astype(np.int64)
    return np.where(codes < 0, attribute.present, codes)


def _missing(attribute: Attribute, table: pa.Table) -> Integers:
    """1 where a column is missing, and else 0 [shape=(n,), int64]."""
    absent: Integers = (_codes(attribute, table) == attribute.present).astype(np.int64)
    return absent


def _some(table: pa.Table) -> pa.Table:
    """Records of all parts of a table, which are compared first."""
    # Arrow takes single rows of some types alone.
    starts = np.unique(np.arange(PARTS) * table.num_rows // PARTS).tolist()
    return pa.concat_tables([table.slice(start, FIRST // PARTS) for start in starts])


def _decides(by: Integers, made: Integers) -> bool:
    """Whether equal codes of the first have equal codes of the second."""
    return _map(by, made) is not None


def _map(by: Integers, made: Integers) -> dict[int, int] | None:
    """The code of the second for each code of the first; None if there are several."""
    last = np.zeros(int(by.max()) + 1, np.int64)
    last[by] = made
    if (last[by] != made).any():
        return None
    return {int(code): int(last[code]) for code in np.unique(by)}


def _likely(by: Integers, made: Integers) -> bool:
    """Whether chance seldom has records of equal codes agree so often."""
    counts = np.bincount(by)
    shares = np.bincount(made) / len(made)
    agreeing = float(np.square(shares).sum())
    repeated = float((counts[counts > 0] - 1).sum())
    several = np.bincount(made, minlength=2).min() >= EACH or made.max() > 1
    return bool(several and agreeing < 1 and -math.log(agreeing) * repeated >= SURE)


def _stated(
    by: _Column, made: _Column, pairs: dict[int, int]
) -> tuple[str, tuple[Impossible, ...]]:
    """What a decided column is, and the combinations that no record has."""
    out = []
    for code in sorted(set(pairs.values())):
        others = [one for one, its in pairs.items() if its != code]
        if others:
            out.append(Impossible((made.condition([code]), by.condition(others))))
    if made.attribute is None:
        return (
            f"is missing exactly if {by.name!r} has certain values"
            if by.attribute is not None
            else f"is missing exactly if {by.name!r} is",
            tuple(out),
        )
    return f"has one value for each value of {by.name!r}", tuple(out)
