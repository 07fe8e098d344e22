"""The workload: marginals that matter most to the users of the result.

A workload is public and part of the plan. Structure search prefers cliques that cover its
marginals, and parties prefer to measure these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..errors import PlanError
from ..files.convert import from_json
from .schema import Schema

__all__ = ["Workload"]

# Relevance of a marginal that shares no pair of attributes with the workload. It keeps the
# remaining columns usable. Not tuned.
MIN_RELEVANCE = 0.1


class _Marginal(msgspec.Struct):
    """A marginal of a workload as files have it."""

    attributes: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class Workload:
    """Marginals with weights. An empty workload gives all marginals the same weight.

    Attributes:
        marginals: attributes (increasing positions) and weight of each marginal.
    """

    marginals: tuple[tuple[tuple[int, ...], float], ...] = ()

    @classmethod
    def of(
        cls, schema: Schema, wanted: Mapping[Sequence[str], float] | Iterable[Sequence[str]] | None
    ) -> Workload:
        """Make a workload from attribute names.

        Args:
            schema: the attributes.
            wanted: marginals as sequences of attribute names, either with a weight each, or all
                with a weight of 1. None: no workload.

        Raises:
            PlanError: a marginal has no attributes or repeats one, or a weight is not above zero.
            SchemaError: an unknown attribute.
        """
        if wanted is None:
            return cls()
        weighted = (
            wanted.items() if isinstance(wanted, Mapping) else [(names, 1.0) for names in wanted]
        )
        marginals: dict[tuple[int, ...], float] = {}
        for names, weight in weighted:
            if isinstance(names, str) or not names or len(set(names)) < len(names):
                raise PlanError(
                    f"A marginal of the workload is {names!r}: name one or more different attributes, as a list."
                )
            if not (math.isfinite(weight) and weight > 0):
                raise PlanError(
                    f"The workload's weight of {', '.join(names)} must be a number above 0, not {weight}."
                )
            attributes = tuple(sorted(schema.index(name) for name in names))
            marginals[attributes] = marginals.get(attributes, 0.0) + float(weight)
        return cls(tuple(sorted(marginals.items())))

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

    def to_json(self, schema: Schema) -> list[dict[str, Any]]:
        """JSON-able form."""
        return [
            {"attributes": [schema.names[a] for a in attributes], "weight": weight}
            for attributes, weight in self.marginals
        ]

    @classmethod
    def from_json(cls, data: Any, schema: Schema) -> Workload:
        """Read :meth:`to_json`'s form back.

        Raises:
            PlanError: the data is no workload of this schema.
        """
        given = from_json(data, list[_Marginal], "The workload", "have it made again", PlanError)
        return cls.of(schema, {marginal.attributes: marginal.weight for marginal in given})
