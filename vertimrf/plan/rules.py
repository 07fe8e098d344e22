"""Rules of a schema: orders of two columns ("arrival <= departure"), and equations.

An order is a structural zero for all bins of which no values keep it. Of other bins, rows get values
that keep it (:mod:`vertimrf.server.ordered`). For equations see :mod:`vertimrf.plan.equations`.
"""

from __future__ import annotations

import graphlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Texts
from ..columns.column import Attribute
from ..errors import SchemaError
from .equations import Equation, Rule, check_numbers, computed_domains
from .functions import parse_function
from .impossible import Combination
from .names import NUMBER, QUOTED, unquoted, written

# Limits of rules: characters of one, chains of them, pairs of bins of two columns, and combinations
# that are ruled out in all.
MAX_LENGTH, MAX_CHAINS, MAX_CELLS, MAX_COMBINATIONS = 400, 1000, 1 << 22, 10_000
SIDE = rf"(\s*{QUOTED}\s*|[^`<>=]*)"
ORDER = re.compile(f"{SIDE}(<=|<|>=|>){SIDE}", re.DOTALL)
TERM = rf"(\s*{QUOTED}\s*|[^`<>=*+-]+)"
EQUATION = re.compile(rf"{TERM}=({TERM}(?:(?:[+-]{TERM})*|(?:\*{TERM})+))", re.DOTALL)


@dataclass(frozen=True)
class Order(Rule):
    """A rule: no value of one column is above that of another column in the same record.

    Records without one of the values keep the rule.

    Attributes:
        low: name of the column with the lower values.
        high: name of the column with the higher values.
        strict: whether equal values break the rule.
    """

    low: str
    high: str
    strict: bool = False

    def __str__(self) -> str:
        return f"{written(self.low)} {'<' if self.strict else '<='} {written(self.high)}"

    @property
    def columns(self) -> frozenset[str]:
        """See :class:`Rule`."""
        return frozenset((self.low, self.high))


def parse_rule(text: Any) -> Rule:
    """Read a rule.

    Args:
        text: two columns with <=, <, >= or > between them; or a column, =, and another column, or
            columns and numbers with + or -, or with *, between them; or the logarithm of a column, or
            a comparison of one with a number (:mod:`vertimrf.plan.functions`). Names with other
            characters than letters and digits, and names that are numbers, stand between backticks.

    Raises:
        SchemaError: the text is no rule.

    Example:
        >>> str(parse_rule("departure >= arrival"))
        'arrival <= departure'
        >>> str(parse_rule("rejected = 1-approved"))
        'rejected = 1 - approved'
    """
    text = str(text)[: MAX_LENGTH + 1]
    if len(text) <= MAX_LENGTH and (function := parse_function(text)) is not None:
        return function
    order, equation = ORDER.fullmatch(text), EQUATION.fullmatch(text)
    terms = re.findall(f"([*+-]?){TERM}", equation[2]) if equation else []
    numbers = [(sign, float(term)) for sign, term in terms if re.fullmatch(NUMBER, term.strip())]
    terms = [term for term in terms if not re.fullmatch(NUMBER, term[1].strip())]
    sides = (
        order.group(1, 3)
        if order
        else (equation[1], *(term for _, term in terms))
        if equation
        else ()
    )
    names = [unquoted(side) for side in sides if side.strip()]
    unclear = not sides or len(names) < max(len(sides), 2) or "(" in _bare(sides)
    if len(text) > MAX_LENGTH or unclear:
        raise SchemaError(
            f"The rule {text[:200]!r} is not clear; write two columns and one of <=, <, >=, > between them, as in "
            "arrival <= departure, or an equation, as in total = base + bonus, area = width * height, rejected = 1 - approved, "
            f"lwage = log(wage) or unemployed = earnings == 0, in at most {MAX_LENGTH} characters."
        )
    if order:
        low, high = reversed(names) if order[2].startswith(">") else names
        return Order(low, high, len(order[2]) == 1)
    product = any(sign == "*" for sign, _ in [*terms, *numbers])
    if names[0] in names[1:] or (len(set(names)) < len(names) and not product):
        raise SchemaError(f"Rule {text.strip()}: it names a column twice.")
    signs = [-1 if sign == "-" else 1 for sign, _ in terms]
    constant = None
    if numbers:
        values = [-value if sign == "-" else value for sign, value in numbers]
        constant = math.prod(values) if product else sum(values)
    return Equation(names[0], tuple(zip(names[1:], signs, strict=True)), product, constant)


def _bare(sides: Iterable[str]) -> str:
    """The text of names that are not between backticks."""
    return "".join(side for side in sides if "`" not in side)


def in_order(rules: Iterable[Order]) -> Texts:
    """The columns of rules, each after those that have lower values.

    Raises:
        SchemaError: a column would have to be lower than itself.
    """
    graph: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for rule in rules:
        graph.add(rule.high, rule.low)
    try:
        return tuple(graph.static_order())
    except graphlib.CycleError as error:
        circle = " <= ".join(map(written, error.args[1]))
        raise SchemaError(f"The rules form a circle ({circle}); leave one of them out.") from None


def ruled_out(
    rules: Sequence[Rule], attributes: Sequence[Attribute]
) -> list[tuple[str, Combination]]:
    """The codes of which no values keep the orders among the rules, with the text of these.

    Two columns at the ends of a chain (a <= b <= c) are ruled by it, in records that have all of
    its values.

    Raises:
        SchemaError: as :func:`check_rules`; or there are too many chains or bins.
    """
    check_rules(rules, attributes)
    orders = [rule for rule in rules if isinstance(rule, Order)]
    named = {attribute.name: attribute for attribute in attributes}
    places = {name: place for place, name in enumerate(named)}
    out: list[tuple[str, Combination]] = []
    for number, chain in enumerate(_chains(orders)):
        text = " and ".join(map(str, chain))
        first, last = named[chain[0].low], named[chain[-1].high]
        cells = first.size * last.size
        if number >= MAX_CHAINS or cells > MAX_CELLS or len(out) > MAX_COMBINATIONS:
            raise SchemaError(
                f"Rule {text}: with it the rules take too long to check; use wider bins, or leave rules out."
            )
        least = first.ends()[0]
        for rule in chain:
            least = named[rule.high].nearest(least, strict=rule.strict)
        # How many of the sorted codes end below the least value.
        most = last.ends()[1]
        order = np.argsort(most, kind="stable")
        below = np.searchsorted(most[order], least)
        present = {
            places[rule.low]: tuple(range(named[rule.low].size - 1))
            for rule in chain[1:]
            if named[rule.low].missing
        }
        for count in np.unique(below[below > 0]):
            codes = {
                places[first.name]: tuple(np.flatnonzero(below == count).tolist()),
                places[last.name]: tuple(np.sort(order[:count]).tolist()),
            }
            out.append((text, tuple(sorted((codes | present).items()))))
    return out


def _chains(rules: Sequence[Order]) -> Iterator[tuple[Order, ...]]:
    """Every chain of rules, each of which goes on where the one before ends; short chains first."""
    chains: list[tuple[Order, ...]] = [(rule,) for rule in rules]
    for chain in chains:
        yield chain
        chains += [(*chain, rule) for rule in rules if rule.low == chain[-1].high]


def check_rules(rules: Sequence[Rule], attributes: Sequence[Attribute]) -> None:
    """Check that the columns of rules exist, can be compared and add up, and that no column is
    computed twice, or has a lower value than itself.

    Raises:
        SchemaError: one of these is not so.
    """
    named = {attribute.name: attribute for attribute in attributes}
    computed: dict[str, Equation] = {}
    for rule in rules:
        if isinstance(rule, Equation):
            if rule.name in named or rule.name in computed:
                raise SchemaError(
                    f"Rule {rule}: it computes {rule.name!r}; delete the section of this column, or the other rule that computes it."
                )
            computed[rule.name] = rule
    for rule in rules:
        if isinstance(rule, Order):
            if names := sorted(rule.columns & computed.keys()):
                raise SchemaError(
                    f"Rule {rule}: {names[0]!r} is computed ({computed[names[0]]}), so orders name the columns that it is computed of."
                )
            _check(rule, named)
    computed_domains(computed.values(), attributes)
    in_order(rule for rule in rules if isinstance(rule, Order))


def _check(rule: Order, named: Mapping[str, Attribute]) -> None:
    for name in (rule.low, rule.high):
        check_numbers(rule, name, named)
    kinds = [_kind(named[name]) for name in (rule.low, rule.high)]
    if kinds[0] != kinds[1]:
        raise SchemaError(
            f"Rule {rule}: {rule.low!r} is a {kinds[0]} and {rule.high!r} a {kinds[1]}; both must be of one kind."
        )


def _kind(attribute: Attribute) -> str:
    """What the numbers of an attribute are."""
    calendar, zone = attribute.instants or ("number", None)
    return calendar + " with a zone" * (zone is not None)
