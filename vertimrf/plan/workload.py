"""The workload: marginals that matter most to the users of the result.

A workload is public and part of the plan. Its marginals enter the graphs of the parties and of the
model first, and have a part of the budget for themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from ..arrays import Fields, Ints, Pair, Texts
from ..errors import PlanError, first
from ..files.convert import from_json
from .analyses import listed, needed
from .options import Wanted
from .schema import MAX_NAMED, Schema

# Relevance of a marginal that shares no pair of attributes with the workload. It keeps the
# remaining columns usable. Not tuned.
MIN_RELEVANCE = 0.1
# Limits that keep a plan of somebody else quick to read: analyses, columns of a marginal, and
# weights from 1 / MAX_WEIGHT to MAX_WEIGHT.
MAX_ANALYSES, MAX_COLUMNS, MAX_WEIGHT = 100, 24, 1e6


class _Asked(msgspec.Struct):
    """A part of a workload as files have it."""

    asked: str
    weight: float


@dataclass(frozen=True)
class Workload:
    """Marginals with weights. An empty workload gives all marginals the same weight.

    Attributes:
        marginals: attributes (increasing positions) and weight of each marginal.
        asked: what was asked for, in the user's words, with weights. The marginals follow from it.
    """

    marginals: tuple[tuple[Ints, float], ...] = ()
    asked: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, schema: Schema, wanted: Wanted, max_cells: float = math.inf) -> Workload:
        """Make a workload of analyses.

        Args:
            schema: the attributes.
            wanted: analyses as text (:mod:`.analyses`), or marginals as sequences of attribute names;
                either with a weight each, or all with a weight of 1. None: no workload.
            max_cells: most cells of a marginal.

        Raises:
            PlanError: an analysis is not clear, a marginal has no attributes, repeats one or has too
                many cells or columns, a weight is out of range, or there are too many analyses.
            SchemaError: an unknown attribute.
        """
        marginals: dict[Ints, float] = {}
        asked: dict[str, float] = {}
        weighted = _weighted(wanted)
        if len(weighted) > MAX_ANALYSES:
            raise PlanError(
                f"The workload has {len(weighted):,} analyses, and {MAX_ANALYSES} are the most: leave some out."
            )
        for each, weight in weighted:
            text = _text(each)
            if not isinstance(each, str):
                for name in each:
                    schema.index(name)
            if not 1 / MAX_WEIGHT <= weight <= MAX_WEIGHT:
                raise PlanError(
                    f"The workload's weight of {text} must be from {1 / MAX_WEIGHT:g} to {MAX_WEIGHT:,.0f}, not {weight}."
                )
            asked[text] = asked.get(text, 0.0) + float(weight)
            for attributes in needed(text, schema):
                cells = math.prod(schema.sizes[a] for a in attributes)
                if cells > max_cells:
                    raise PlanError(
                        f"The workload's {text!r} needs the marginal {_named(schema, attributes)} of {cells:,} cells, more than "
                        f"tau = {max_cells:,}: leave a column out, cut bins, or raise tau (--tau)."
                    )
                if len(attributes) > MAX_COLUMNS:
                    raise PlanError(
                        f"The workload's {text!r} needs a marginal of {len(attributes)} columns, and {MAX_COLUMNS} are the most: leave columns out."
                    )
                marginals[attributes] = marginals.get(attributes, 0.0) + float(weight)
        return cls(tuple(marginals.items()), tuple(asked.items()))

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """The pairs of attributes within marginals."""
        return frozenset(
            itertools.chain(*(itertools.combinations(some, 2) for some, _ in self.marginals))
        )

    @property
    def attributes(self) -> frozenset[int]:
        """The attributes of its pairs."""
        return frozenset(itertools.chain(*self.pairs))

    def relevance(self, attributes: Sequence[int]) -> float:
        """The weight of a marginal in structure search, between MIN_RELEVANCE and 1.

        It is the largest of weight / largest weight * p over the marginals of the workload, where p
        is the share of this marginal's pairs of attributes that lie in the marginal of the
        workload. It is at least MIN_RELEVANCE, and 1 if the workload is empty.

        Args:
            attributes: positions of the marginal's attributes.
        """
        if not self.marginals:
            return 1.0
        pairs = max(math.comb(len(attributes), 2), 1)
        most = max(weight for _, weight in self.marginals)
        inside = (
            weight * math.comb(len({*marginal} & {*attributes}), 2) / pairs
            for marginal, weight in self.marginals
        )
        return max(*inside, MIN_RELEVANCE * most) / most

    def part(self, columns: Sequence[int]) -> Workload:
        """The workload of one party.

        Args:
            columns: positions of the party's attributes. The result numbers attributes by their
                place here.
        """
        place = {attribute: i for i, attribute in enumerate(columns)}
        inside = [
            (tuple(place[a] for a in attributes if a in place), weight)
            for attributes, weight in self.marginals
        ]
        return Workload(tuple((attributes, weight) for attributes, weight in inside if attributes))

    @cached_property
    def asked_for(self) -> frozenset[Ints]:
        """The marginals, without their weights."""
        return frozenset(attributes for attributes, _ in self.marginals)

    def needs(self, attributes: Ints) -> bool:
        """Whether attributes are one of the marginals, or a pair within one."""
        return attributes in self.asked_for or attributes in self.pairs

    def in_order(self) -> Iterator[Ints]:
        """What enters a graph first: each marginal, and then its pairs, for where it does not fit."""
        for attributes, _ in self.marginals:
            yield attributes
            yield from itertools.combinations(attributes, 2)

    def across(self, schema: Schema) -> frozenset[int]:
        """The attributes of its pairs of which no party holds both."""
        apart = (pair for pair in self.pairs if not schema.at_one_party(pair))
        return frozenset(itertools.chain(*apart))

    def in_words(self, schema: Schema) -> Texts:
        """A sentence on each analysis: its marginals, and the user's words."""
        out = []
        for text, _ in self.asked:
            marginals = needed(text, schema)
            named = first([_named(schema, attributes) for attributes in marginals], MAX_NAMED)
            split = [some for some in marginals if len(some) > 2 and not schema.at_one_party(some)]
            across = "; across parties, three and more columns come from their pairs" * bool(split)
            out.append(f"Marginals that matter most: {', '.join(named)} (asked: {text}{across}).")
        return tuple(out)

    def to_json(self) -> list[Fields]:
        """JSON-able form."""
        return [{"asked": text, "weight": weight} for text, weight in self.asked]

    @classmethod
    def from_json(cls, data: Any, schema: Schema) -> Workload:
        """Read :meth:`to_json`'s form back.

        Raises:
            PlanError: the data is no workload of this schema.
        """
        given = from_json(data, list[_Asked], "The workload", "have it made again", PlanError)
        return cls.of(schema, {each.asked: each.weight for each in given})


def _text(wanted: str | Sequence[str]) -> str:
    """The text of an analysis, or of a list of columns.

    Raises:
        PlanError: a list is empty, or repeats a column.
    """
    if isinstance(wanted, str):
        return wanted
    if not wanted or len(set(wanted)) < len(wanted):
        raise PlanError(
            f"A marginal of the workload is {wanted!r}: name one or more different attributes, as a list."
        )
    return listed(wanted)


def _weighted(wanted: Wanted) -> Sequence[tuple[str | Sequence[str], float]]:
    if isinstance(wanted, Mapping):
        return tuple(wanted.items())
    if isinstance(wanted, str):
        wanted = [wanted]
    return [(each, 1.0) for each in wanted or ()]


def _named(schema: Schema, attributes: Sequence[int]) -> str:
    return " × ".join(schema.names[a] for a in attributes)
