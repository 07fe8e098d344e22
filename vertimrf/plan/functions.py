"""Functions of one column, which compute another: its logarithm, or how it compares with a number
("lwage = log(wage)", "unemployed = earnings == 0", "y92 = year == 1992").
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats
from ..columns.column import Attribute
from ..errors import SchemaError
from .equations import ROUNDED, Equation, check_numbers, plain_number
from .names import NUMBER, QUOTED, unquoted, written

# How a column is compared with a number. The result is 1 where it is so, and else 0.
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
NAME = rf"(\s*{QUOTED}\s*|[^`<>=*+()!-]+)"
LOGARITHM = re.compile(rf"{NAME}=\s*log\({NAME}\)\s*", re.DOTALL)
COMPARISON = re.compile(rf"{NAME}={NAME}(==|!=|<=|>=|<|>)\s*(-?{NUMBER})\s*", re.DOTALL)


@dataclass(frozen=True)
class Logarithm(Equation):
    """A rule: a column is the natural logarithm of another; it is missing where that is 0 or less."""

    def __str__(self) -> str:
        return f"{written(self.name)} = log({written(self.terms[0][0])})"

    def solved(self, name: str) -> Equation:
        """See :class:`Equation`; nothing else is computed."""
        return self

    def tolerance(self, attributes: Mapping[str, Attribute]) -> float:
        """See :class:`Equation`: logarithms are rounded in tables."""
        return ROUNDED

    def total(self, numbers: Mapping[str, Floats], attribute: Attribute) -> Floats:
        """See :class:`Equation`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(numbers[self.terms[0][0]])
        out: Floats = np.where(np.isfinite(logs), logs, np.nan)
        return out

    def attribute(self, attributes: Iterable[Attribute]) -> Attribute:
        """See :class:`Equation`."""
        term = _number(self, attributes)
        low, high = term.extremes
        if high <= 0:
            raise SchemaError(f"Rule {self}: {term.name!r} has no positive numbers.")
        small = ROUNDED * high if term.digits is None else 10.0**-term.digits
        least = low if low > 0 else min(small, high)
        edges = math.log(least), max(math.log(high), math.log(least) + 1)
        return Attribute.numeric(self.name, edges, clamp=True, missing=term.missing or low <= 0)


@dataclass(frozen=True)
class Comparison(Equation):
    """A rule: a column is 1 where another compares with a number, and else 0.

    Attributes:
        sign: a key of :data:`COMPARED`.
        number: with which the other column is compared.
    """

    sign: str = "=="
    number: float = 0.0

    def __str__(self) -> str:
        sides = written(self.name), written(self.terms[0][0])
        number = "-" * (self.number < 0) + plain_number(abs(self.number))
        return f"{sides[0]} = {sides[1]} {self.sign} {number}"

    def solved(self, name: str) -> Equation:
        """See :class:`Equation`; nothing else is computed."""
        return self

    def total(self, numbers: Mapping[str, Floats], attribute: Attribute) -> Floats:
        """See :class:`Equation`."""
        values = numbers[self.terms[0][0]]
        out: Floats = np.where(np.isnan(values), np.nan, COMPARED[self.sign](values, self.number))
        return out

    def attribute(self, attributes: Iterable[Attribute]) -> Attribute:
        """See :class:`Equation`."""
        term = _number(self, attributes)
        return Attribute.numeric(self.name, (0, 1), integral=True, clamp=True, missing=term.missing)


def parse_function(text: str) -> Equation | None:
    """A logarithm or a comparison; None if a text is neither.

    Raises:
        SchemaError: a column would be computed of itself.
    """
    if match := LOGARITHM.fullmatch(text):
        made: Equation = Logarithm(unquoted(match[1]), ((unquoted(match[2]), 1),))
    elif match := COMPARISON.fullmatch(text):
        terms = ((unquoted(match[2]), 1),)
        made = Comparison(unquoted(match[1]), terms, sign=match[3], number=float(match[4]))
    else:
        return None
    if not made.name or not made.terms[0][0]:
        return None
    if made.name in made.columns:
        raise SchemaError(f"Rule {text.strip()}: it names a column twice.")
    return made


def _number(rule: Equation, attributes: Iterable[Attribute]) -> Attribute:
    """The attribute of a function's column.

    Raises:
        SchemaError: there is none, or it has no numbers.
    """
    named = {attribute.name: attribute for attribute in attributes}
    term = check_numbers(rule, rule.terms[0][0], named)
    if term.instants is not None:
        raise SchemaError(
            f"Rule {rule}: {term.name!r} has dates or times, which have no such function."
        )
    return term
