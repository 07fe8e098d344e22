"""Equations of a schema: a column is the sum, difference or product of others ("total = base + bonus"),
also with a number ("rejected = 1 - approved"), or equal to another. For logarithms and comparisons
see :mod:`vertimrf.plan.functions`.

The column is no attribute: no party measures it, and synthetic rows have it from the values of the
others, which may be computed themselves. A column of the right side that a table lacks is read from the others by the same equation.
"""

from __future__ import annotations

import functools
import graphlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Floats
from ..columns.column import Attribute
from ..columns.partition import decimals
from ..errors import SchemaError
from .names import written

# Most decimals of a product.
DIGITS = 15
# By this part of it a product of decimals may be off that a table has with seven digits.
ROUNDED = 2e-6


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
        constant: the number that is added or, in a product, multiplied with; None without one.
    """

    name: str
    terms: tuple[tuple[str, int], ...]
    product: bool = False
    constant: float | None = None

    def __str__(self) -> str:
        parts = [
            ("*" if self.product else "-+"[sign > 0], written(name)) for name, sign in self.terms
        ]
        if self.constant is not None:
            number = plain_number(abs(self.constant))
            part = "*" if self.product else "-+"[self.constant >= 0], number
            # A number comes first where nothing else can.
            first = self.product or (parts[0][0] == "-" and part[0] == "+")
            parts = [part, *parts] if first else [*parts, part]
        text = "".join(f" {sign} {part}" for sign, part in parts)
        return f"{written(self.name)} = {text[3:] if text[1] in '*+' else text}"

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
        constant = None if self.constant is None else -sign * self.constant
        return Equation(name, ((self.name, sign), *others), constant=constant)

    def tolerance(self, attributes: Mapping[str, Attribute]) -> float:
        """By which part of it a column may differ from the equation: nothing but the rounding of
        decimals, where a table has fewer than a product.

        Args:
            attributes: those of the terms, by name.
        """
        rounded = self.product and not all(attributes[name].digits == 0 for name in self.columns)
        return ROUNDED if rounded else 0.0

    def total(self, numbers: Mapping[str, Floats], attribute: Attribute) -> Floats:
        """The column's numbers, NaN where a term is missing [shape=(n,), float64].

        Args:
            numbers: those of the terms [each shape=(n,), float64].
            attribute: the column's domain, to whose decimals sums are rounded.
        """
        terms = [sign * numbers[name] for name, sign in self.terms]
        if self.constant is not None:
            terms.append(np.full_like(terms[0], self.constant))
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
        digits = [term.digits for term, _ in terms]
        digits += [] if self.constant is None else [decimals(self.constant)]
        known = [0, *filter(None, digits)]
        most = None if None in digits else min(sum(known), DIGITS) if self.product else max(known)
        if (
            (self.product and instants)
            or len({term.instants for term, _ in instants}) > 1
            or net not in (0, 1)
            or (
                net
                and (
                    most not in {term.digits for term, _ in instants}
                    or "time" in (instants[0][0].instants or ())
                )
            )
        ):
            raise SchemaError(
                f"Rule {self}: its columns do not add up; a number is a sum or product of numbers, or the difference of two dates, times or "
                "timestamps of one zone; a date or timestamp is another one and whole numbers of days or seconds."
            )
        ends = [sorted(sign * end for end in term.extremes) for term, sign in terms]
        ends += [] if self.constant is None else [[self.constant] * 2]
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


def computed_domains(
    equations: Iterable[Equation], attributes: Iterable[Attribute]
) -> dict[Equation, Attribute]:
    """The domains of the columns that equations compute, each after those that it is computed of.

    Args:
        equations: which compute different columns.
        attributes: those of the schema.

    Raises:
        SchemaError: a column would be computed of itself; or as :meth:`Equation.attribute`.
    """
    of = {equation.name: equation for equation in equations}
    graph = {name: equation.columns & of.keys() for name, equation in of.items()}
    try:
        order = tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        circle = ", ".join(map(written, error.args[1][1:]))
        raise SchemaError(
            f"The equations of {circle} compute each other; leave one of them out."
        ) from None
    known, out = [*attributes], {}
    for name in order:
        out[of[name]] = of[name].attribute(known)
        known.append(out[of[name]])
    return out


def plain_number(number: float) -> str:
    """A number without an exponent, as rules have it."""
    return np.format_float_positional(number, trim="-")


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
