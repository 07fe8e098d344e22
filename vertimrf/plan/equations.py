"""Equations of a schema: a column is the sum or difference of others ("total = base + bonus").

The column is no attribute: no party measures it, and synthetic rows have it from the values of the
others. A column of the right side that a table lacks is read from the others by the same equation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats
from ..errors import SchemaError
from .attribute import Attribute
from .names import written

__all__ = ["Equation", "check_numbers", "decimals"]

# Numbers with more decimals have any number of them.
MAX_DECIMALS = 9


@dataclass(frozen=True)
class Equation:
    """A rule: a column is the sum or difference of others. It is missing where one of them is.

    Attributes:
        name: name of the column.
        terms: the other columns, each with 1 if it is added, or -1 if it is subtracted.
    """

    name: str
    terms: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        terms = "".join(f" {'-+'[sign > 0]} {written(name)}" for name, sign in self.terms)
        return f"{written(self.name)} = {terms.removeprefix(' + ')}"

    @property
    def columns(self) -> frozenset[str]:
        """The attributes that the rule names."""
        return frozenset(name for name, _ in self.terms)

    def solved(self, name: str) -> Equation:
        """The equation that gives one of the terms."""
        sign = dict(self.terms)[name]
        others = ((other, -sign * its) for other, its in self.terms if other != name)
        return Equation(name, ((self.name, sign), *others))

    def total(self, numbers: Mapping[str, Floats], attribute: Attribute) -> Floats:
        """The column's numbers, NaN where a term is missing [shape=(n,), float64].

        Args:
            numbers: those of the terms [each shape=(n,), float64].
            attribute: the column's domain, to whose decimals sums are rounded.
        """
        total: Floats = np.sum([sign * numbers[name] for name, sign in self.terms], axis=0)
        digits = _digits(attribute)
        return total if digits is None else np.round(total, digits)

    def attribute(self, attributes: Iterable[Attribute]) -> Attribute:
        """The domain of the column, with one bin from the least to the greatest sum.

        Args:
            attributes: those of the schema.

        Raises:
            SchemaError: a term does not exist, or the terms make no number, date or timestamp.
        """
        named = {attribute.name: attribute for attribute in attributes}
        for name, _ in self.terms:
            check_numbers(self, name, named)
        terms = [named[name] for name, _ in self.terms]
        instants = [term for term in terms if term.calendar is not None]
        digits = [_digits(term) for term in terms if term.calendar is None]
        most = None if None in digits else max(filter(None, digits), default=0)
        net = sum(sign for name, sign in self.terms if named[name].calendar is not None)
        if (
            len({(term.calendar, term.timezone) for term in instants}) > 1
            or net not in (0, 1)
            or (net and (most != 0 or instants[0].calendar == "time"))
        ):
            raise SchemaError(
                f"Rule {self}: its columns do not add up; a number is a sum of numbers or the difference of two dates, times or "
                "timestamps of one zone; a date or timestamp is another one and whole numbers of days or seconds."
            )
        spans = [
            sorted(sign * float(end) for end in (min(span), max(span)))
            for name, sign in self.terms
            for span in [_numbers(named[name])]
        ]
        low, high = (sum(ends) for ends in zip(*spans, strict=True))
        alike = instants if net else [] if instants else terms
        return Attribute(
            self.name,
            "numeric",
            edges=(low, max(high, low + 1)),
            integral=not net and most == 0,
            resolution=None if net or not most else 10.0**-most,
            calendar=instants[0].calendar if net else None,
            timezone=instants[0].timezone if net else None,
            format=next((term.format for term in alike if term.format is not None), None),
            missing=any(term.missing for term in terms),
            clamp=True,
        )


def check_numbers(rule: Any, name: str, named: Mapping[str, Attribute]) -> None:
    """Check that a column of a rule exists and has numbers, dates or times.

    Raises:
        SchemaError: it does not.
    """
    if name not in named:
        raise SchemaError(f"Rule {rule}: there is no attribute {name!r}.")
    if isinstance(_numbers(named[name])[0], str | bool):
        raise SchemaError(f"Rule {rule}: {name!r} has no numbers, dates or times to compare.")


def decimals(number: float) -> int:
    """Decimals of a number, at most 12."""
    return len(f"{number:.12f}".rstrip("0").partition(".")[2])


def _numbers(attribute: Attribute) -> Any:
    """The edges of an attribute, or its values, or its least and greatest code."""
    return attribute.edges or attribute.values or (0, attribute.codes - 1)


def _digits(attribute: Attribute) -> int | None:
    """Decimals of an attribute's numbers; None if they have any number of them."""
    numbers = (attribute.step,) if attribute.edges else _numbers(attribute)
    digits = max(map(decimals, numbers))
    return None if digits > MAX_DECIMALS or (attribute.edges and not attribute.step) else digits
