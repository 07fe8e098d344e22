"""Equations of a schema: a column is the sum, difference or product of others ("total = base + bonus").

The column is no attribute: no party measures it, and synthetic rows have it from the values of the
others. A column of the right side that a table lacks is read from the others by the same equation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats
from ..columns.column import Attribute
from ..errors import SchemaError
from .names import written

# Most decimals of a product.
DIGITS = 15


class Rule:
    """What every synthetic row keeps: an order or an equation of columns."""

    @property
    def columns(self) -> frozenset[str]:
        """The attributes that the rule names."""
        raise NotImplementedError


@dataclass(frozen=True)
class Equation(Rule):
    """A rule: a column is the sum, difference or product of others. It is missing where one of them is.

    Attributes:
        name: name of the column.
        terms: the other columns, each with 1 if it is added, or -1 if it is subtracted.
        product: whether they are multiplied instead. One of them may occur several times.
    """

    name: str
    terms: tuple[tuple[str, int], ...]
    product: bool = False

    def __str__(self) -> str:
        terms = "".join(
            f" {'*' if self.product else '-+'[sign > 0]} {written(name)}"
            for name, sign in self.terms
        )
        return f"{written(self.name)} = {terms[3:] if terms[1] in '*+' else terms}"

    @property
    def columns(self) -> frozenset[str]:
        """See :class:`Rule`."""
        return frozenset(name for name, _ in self.terms)

    def solved(self, name: str) -> Equation:
        """The equation that gives one of the terms; this one if it is a product."""
        if self.product:
            return self
        sign = dict(self.terms)[name]
        others = ((other, -sign * its) for other, its in self.terms if other != name)
        return Equation(name, ((self.name, sign), *others))

    def total(self, numbers: Mapping[str, Floats], attribute: Attribute) -> Floats:
        """The column's numbers, NaN where a term is missing [shape=(n,), float64].

        Args:
            numbers: those of the terms [each shape=(n,), float64].
            attribute: the column's domain, to whose decimals sums are rounded.
        """
        terms = [sign * numbers[name] for name, sign in self.terms]
        total: Floats = (np.prod if self.product else np.sum)(terms, axis=0)
        digits = attribute.digits
        return total if digits is None else np.round(total, digits)

    def attribute(self, attributes: Iterable[Attribute]) -> Attribute:
        """The domain of the column, with one bin from the least to the greatest number.

        Args:
            attributes: those of the schema.

        Raises:
            SchemaError: a term does not exist, or the terms make no number, date or timestamp.
        """
        named = {attribute.name: attribute for attribute in attributes}
        terms = [(check_numbers(self, name, named), sign) for name, sign in self.terms]
        instants = [(term, sign) for term, sign in terms if term.instants is not None]
        net = sum(sign for _, sign in instants)
        digits = [term.digits for term, _ in terms if term.instants is None]
        known = [0, *filter(None, digits)]
        most = None if None in digits else min(sum(known), DIGITS) if self.product else max(known)
        if (
            (self.product and instants)
            or len({term.instants for term, _ in instants}) > 1
            or net not in (0, 1)
            or (net and (most != 0 or "time" in (instants[0][0].instants or ())))
        ):
            raise SchemaError(
                f"Rule {self}: its columns do not add up; a number is a sum or product of numbers, or the difference of two dates, times or "
                "timestamps of one zone; a date or timestamp is another one and whole numbers of days or seconds."
            )
        ends = [sorted(sign * end for end in term.extremes) for term, sign in terms]
        low, high = (
            functools.reduce(_ends, ends) if self.product else map(sum, zip(*ends, strict=True))
        )
        edges, missing = (low, max(high, low + 1)), any(term.missing for term, _ in terms)
        if net:
            return instants[0][0].sums(self.name, edges, missing)
        written_as = [term.format for term, _ in terms if term.format and not instants]
        return Attribute.numeric(
            self.name,
            edges,
            integral=most == 0,
            resolution=10.0**-most if most else None,
            clamp=True,
            missing=missing,
            format=next(iter(written_as), None),
        )


def _ends(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """The least and the greatest product of numbers between two ends each."""
    products = [a * b for a in one for b in other]
    return [min(products), max(products)]


def check_numbers(rule: Any, name: str, named: Mapping[str, Attribute]) -> Attribute:
    """The attribute of a rule, which must have numbers, dates or times.

    Raises:
        SchemaError: there is none, or it has none.
    """
    if name not in named:
        raise SchemaError(f"Rule {rule}: there is no attribute {name!r}.")
    if not named[name].holds_numbers or named[name].origin:
        raise SchemaError(f"Rule {rule}: {name!r} has no numbers, dates or times to compare.")
    return named[name]
