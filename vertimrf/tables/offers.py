"""Likely rules: what holds in every record of a table, for its owner to take over into the schema.

Every search compares a few hundred records first, and all records only where these agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..arrays import Floats
from ..columns.column import Attribute
from ..errors import SchemaError
from ..plan.equations import Equation, Rule, plain_number
from ..plan.functions import Comparison, Logarithm
from ..plan.impossible import Impossible
from ..plan.rules import Order
from ..plan.schema import Schema
from .alike import Alike
from .derived import numbers_of
from .maps import maps

# Fewest records of a table whose rules are searched for.
TRIED = 64
# Largest difference of two dates, as a part of the range of the earlier one.
SHORT = 0.1
# An order is likely if as many records as these would break it, were the columns independent, and as
# this part of all.
BROKEN, BROKEN_SHARE = 50.0, 0.02
# Most columns that shares of all records may have, as one-of dummies.
MAX_DUMMIES = 12


@dataclass(frozen=True)
class Offer:
    """A likely rule.

    Attributes:
        column: the column that it is told of.
        found: what the column is in the records.
        done: what to do to take it over.
        rules: equations and orders.
        impossible: combinations that no record has.
        adopted: whether it can be taken over as it is.
    """

    column: str
    found: str
    done: str
    rules: tuple[Rule, ...] = ()
    impossible: tuple[Impossible, ...] = ()
    adopted: bool = True

    @property
    def computed(self) -> frozenset[str]:
        """Columns that the rules compute."""
        return frozenset(rule.name for rule in self.rules if isinstance(rule, Equation))

    @property
    def named(self) -> frozenset[str]:
        """All other columns of the rules."""
        names = {name for rule in self.rules for name in rule.columns}
        return frozenset(
            names.union(c.attribute for one in self.impossible for c in one.conditions)
        )


def taken_over(schema: Schema, offers: Iterable[Offer]) -> tuple[Schema, list[Offer]]:
    """A schema with likely rules, and without the columns that they compute.

    A rule that does not go with those before it is left out: it computes a column that they compute
    or that an order or a combination names, names one that they compute in an order or combination, or
    would have columns compute each other.

    Args:
        schema: a draft.
        offers: the likely rules, those that come first having precedence.

    Returns:
        The schema, and the rules that were taken over.
    """
    done: list[Offer] = []
    for offer in offers:
        if offer.adopted:
            try:
                schema = _with(schema, offer)
            except SchemaError:
                continue
            done.append(offer)
    return schema, done


def _with(schema: Schema, offer: Offer) -> Schema:
    """A schema with one likely rule.

    Raises:
        SchemaError: it does not go with the schema.
    """
    parties = tuple(
        (party, tuple(name for name in names if name not in offer.computed))
        for party, names in schema.parties
    )
    return replace(
        schema,
        attributes=tuple(a for a in schema.attributes if a.name not in offer.computed),
        parties=parties,
        rules=tuple(dict.fromkeys((*schema.rules, *offer.rules))),
        impossible=tuple(dict.fromkeys((*schema.impossible, *offer.impossible))),
    )


def offers(table: pa.Table, attributes: Sequence[Attribute]) -> Iterator[Offer]:
    """Likely rules that a table keeps.

    Args:
        table: the records.
        attributes: drafts of its columns.

    Yields:
        Per rule what its column is in the records, and what to do; rules that compute columns first.
    """
    if table.num_rows < TRIED:
        return
    varying = [a for a in attributes if a.size > 1 + a.missing]
    numbers = {
        a.name: numbers_of(table, a, "The table")
        for a in varying
        if a.holds_numbers and not a.origin
    }
    plain = [a for a in varying if a.name in numbers and a.instants is None]
    alike = Alike.of(numbers, plain, table.num_rows)
    computed: set[str] = set()
    below: set[tuple[str, str]] = set()
    found = itertools.chain(_equal(alike), _compared(alike), _combined(alike), _one_of(alike))
    for offer in found:
        if not offer.computed & computed:
            computed |= offer.computed
            below |= {(name, made) for made in offer.computed for name in offer.named}
            yield offer
    for offer in _dates(numbers, varying, alike):
        below |= {(name, made) for made in offer.computed for name in offer.named}
        yield offer
    kept = [a for a in varying if a.name not in computed]
    for column, found_as, impossible in maps(table, kept):
        yield _of_cells(column, found_as, impossible)
    yield from _orders(numbers, kept, below)


def _offer(equation: Equation, found: str) -> Offer:
    """An equation to take over."""
    done = f'delete its section, and write rules = ["{equation}"] if this is a rule; every synthetic row keeps it'
    return Offer(equation.name, f"is {found} in every record", done, (equation,))


def _of_cells(column: str, found: str, impossible: tuple[Impossible, ...]) -> Offer:
    """Combinations to take over."""
    done = f"`schema draft --rules` writes {len(impossible)} impossible combinations; every synthetic row keeps to them"
    return Offer(column, found, done, impossible=impossible)


def _equal(alike: Alike) -> Iterator[Offer]:
    """Columns that equal others, or differ from them by a constant or a constant factor."""
    for name, other, sign, shift, factor in alike.lines():
        if factor is not None:
            equation = Equation(name, ((other, 1),), True, factor)
            yield _offer(equation, f"{plain_number(factor)} * {other!r}")
            continue
        equation = Equation(name, ((other, sign),), constant=shift or (None if sign > 0 else 0.0))
        yield _offer(equation, str(equation).partition(" = ")[2].replace(other, repr(other)))


def _compared(alike: Alike) -> Iterator[Offer]:
    """Columns of 0 and 1 that tell how another column compares with a number."""
    for name, other, sign, number in alike.comparisons():
        equation = Comparison(name, ((other, 1),), sign=sign, number=number)
        yield _offer(equation, f"1 where {other!r} {sign} {plain_number(number)}, and else 0,")


def _combined(alike: Alike) -> Iterator[Offer]:
    """Logarithms, products and sums of two columns."""
    for name, other in alike.logarithms():
        yield _offer(Logarithm(name, ((other, 1),)), f"the logarithm of {other!r}")
    for sign in "*+":
        for name, one, other in alike.pairs(sign):
            equation = Equation(name, ((one, 1), (other, 1)), sign == "*")
            yield _offer(equation, f"{one!r} {sign} {other!r}")


def _one_of(alike: Alike) -> Iterator[Offer]:
    """Columns of 0 and 1 of which each record has exactly one 1."""
    for names in alike.partitions(MAX_DUMMIES):
        made, *rest = names
        equation = Equation(made, tuple((name, -1) for name in rest), constant=1.0)
        apart = tuple(Impossible.of(**{a: 1, b: 1}) for a, b in itertools.combinations(rest, 2))
        found = f"is 1 in exactly the records in which {', '.join(map(repr, rest))} are 0, and no two of these are 1"
        yield Offer(
            made,
            found,
            f'`schema draft --rules` writes rules = ["{equation}"] and {len(apart)} impossible combinations; delete its section',
            (equation,),
            apart,
        )


def _dates(
    numbers: Mapping[str, Floats], varying: Sequence[Attribute], alike: Alike
) -> Iterator[Offer]:
    """Dates a short time after others."""
    dates = [a for a in varying if a.instants and a.instants[0] != "time"]
    for low, high in itertools.permutations(dates, 2):
        if low.instants != high.instants:
            continue
        first = numbers[low.name]
        digits = max(low.digits or 0, high.digits or 0)
        later = np.round(numbers[high.name] - first, digits)
        if (name := alike.equal(later)) is not None:
            yield _offer(
                Equation(high.name, ((low.name, 1), (name, 1))), f"{low.name!r} + {name!r}"
            )
            continue
        later, first = later[~np.isnan(later)], first[~np.isnan(first)]
        longest = later.max(initial=0)
        if 0 < longest <= SHORT * np.ptp(first) and later.min() >= 0:
            unit = "days" if low.instants == ("date", None) else "seconds"
            grid = f"resolution = {10.0**-digits:g}" if digits else "integral = true"
            equation = Equation(high.name, ((low.name, 1), (unit, 1)))
            yield Offer(
                high.name,
                f"is at most {longest:.10g} {unit} after {low.name!r} in every record",
                f"describe {unit} (bounds = [0, {longest:.10g}], {grid}) in place of it, and write "
                f'rules = ["{equation}"] if this is a rule; every synthetic row keeps it',
                (equation,),
                adopted=False,
            )


def _orders(
    numbers: Mapping[str, Floats], varying: Sequence[Attribute], known: set[tuple[str, str]]
) -> Iterator[Offer]:
    """Columns that are never above others, although independent ones often would be."""
    kinds: dict[object, list[Attribute]] = {}
    for a in varying:
        if a.name in numbers and a.present > 2:
            kinds.setdefault(a.instants, []).append(a)
    for some in kinds.values():
        alike = Alike.of(numbers, some, len(numbers[some[0].name]))
        found = alike.orders(BROKEN_SHARE, BROKEN)
        for low, high in found:
            between = any((low, name) in found and (name, high) in found for name in alike.names)
            if not between and (low, high) not in known:
                order = Order(low, high)
                done = f'write rules = ["{order}"] if this is a rule; every synthetic row keeps it'
                yield Offer(high, f"is never below {low!r}", done, (order,))
