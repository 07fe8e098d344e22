"""Groups: what sketches publish of a party's attributes, each cut into bins.

Everything here follows from public figures, or from what parties have already released.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Fields, Floats, Integers, Ints, Pair
from ..errors import PlanError
from ..files.convert import from_json
from .binning import beside_missing, choose_bins, halves
from .schema import Schema

# Of a group, the map code -> bin of each attribute.
BinMaps = tuple[Integers, ...]


@dataclass(frozen=True)
class Group:
    """What a table of sketches counts: an attribute cut into bins, or a parity of attributes.

    A parity has two values: 0 where an even number of its attributes are in their second bin, and 1
    otherwise. A group of one attribute and one bin shows which records its party has: presence.

    Attributes:
        attributes: strictly increasing indices into the schema, all of one party; one, or those of
            a parity.
        bins: number of bins of each attribute; 2 each for a parity. The party picks the edges from
            its own released one-way marginals.
    """

    attributes: Ints
    bins: Ints

    @property
    def parity(self) -> bool:
        """Whether its values are parities of several attributes."""
        return len(self.attributes) > 1

    @property
    def size(self) -> int:
        """Number of values."""
        return 2 if self.parity else self.bins[0]

    @property
    def shows_attribute(self) -> bool:
        """Whether it shows the values of one attribute: neither a parity nor presence."""
        return not self.parity and self.size > 1

    def sums(self, cells: Floats) -> Floats:
        """Sum the cells of a table of the attributes' bins for each value of the group.

        Args:
            cells: one number for each combination of bins [shape=bins, or flat in row-major order].

        Returns:
            [shape=(values,), float64]
        """
        cells = cells.ravel()
        if not self.parity:
            return cells
        odd = np.indices(self.bins).sum(axis=0).ravel() % 2 == 1
        return np.array([cells[~odd].sum(), cells[odd].sum()])

    def party(self, schema: Schema) -> int:
        """The position of the party that publishes the group.

        Raises:
            PlanError: the group does not fit the schema; it may come from a file.
        """
        attributes = self.attributes
        parties = {
            schema.party_of(a) if isinstance(a, int) and 0 <= a < len(schema.sizes) else -1
            for a in attributes
        }
        where = f"group of {_names(schema, attributes)}"
        if len(parties) != 1 or -1 in parties or list(attributes) != sorted(set(attributes)):
            raise PlanError(f"The {where} is not one party's attributes in order.")
        if len(self.bins) != len(attributes) or not all(
            isinstance(bins, int) and 1 <= bins <= schema.sizes[a]
            for bins, a in zip(self.bins, attributes, strict=False)
        ):
            raise PlanError(f"The bins {self.bins} of the {where} do not fit its domains.")
        if self.parity and set(self.bins) != {2}:
            raise PlanError(f"The {where} is no parity: it takes two bins of each attribute.")
        return parties.pop()

    def to_json(self) -> Fields:
        """A JSON-able form that :meth:`from_json` reads back."""
        return {
            "attributes": self.attributes,
            "bins": self.bins,
            **({"parity": True} if self.parity else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Group:
        """Read a group back; :meth:`party` checks it.

        Raises:
            PlanError: several attributes that are not stated to be a parity, or a parity of one.
        """
        group = from_json(data, cls, "A group of the plan", "have it made again", PlanError)
        if data.get("parity", False) is not group.parity:
            raise PlanError(
                f"The group of attributes {list(group.attributes)} is no parity: a parity takes two "
                "attributes or more, and any other group takes one."
            )
        return group


def _names(schema: Schema, attributes: Sequence[int]) -> str:
    """Attributes by name, also where an index is out of range."""
    names = [
        schema.names[a] if isinstance(a, int) and 0 <= a < len(schema.names) else f"no. {a}"
        for a in attributes
    ]
    return " × ".join(names) if names else "nothing"


def crossing_pairs(schema: Schema) -> list[Pair]:
    """All pairs of attributes that no single party holds, without attributes of one value."""
    varying = [a for a, size in enumerate(schema.sizes) if size > 1]
    return [pair for pair in itertools.combinations(varying, 2) if not schema.at_one_party(pair)]


def cut_groups(
    schema: Schema,
    groups: Sequence[Group],
    one_way: Mapping[int, Floats],
    merged: Mapping[int, Integers],
    halved: Collection[int] = (),
) -> tuple[BinMaps, ...]:
    """Choose the bins of groups from released one-way counts.

    Bins of an attribute with merged values are made of merged values, so that the model has no
    others to distinguish. There may then be fewer bins than the group has room for. Of three bins or
    more, the missing value has one of its own.

    Args:
        schema: the attributes.
        groups: what is published.
        one_way: by attribute, released counts [shape=(size,), float64, records].
        merged: by attribute, the map code -> merged value (:mod:`vertimrf.plan.merging`)
            [shape=(size,), int64].
        halved: attributes that are cut in halves of their values (:func:`.binning.halves`) if they
            have two bins, or three with that of the missing value. Trends tell their values apart
            again.

    Returns:
        Per group and attribute, the map code -> bin [shape=(size,), int64].
    """

    def cut(attribute: int, count: int) -> Integers:
        ordered, missing = (
            schema.attributes[attribute].ordered,
            schema.attributes[attribute].missing,
        )
        # A group of one value tells presence.
        if count == 2 and attribute in halved:
            return halves(one_way[attribute], ordered, missing)
        if attribute not in merged:
            if missing and 3 <= count < len(one_way[attribute]):
                return beside_missing(one_way[attribute], count, ordered, attribute in halved)
            return choose_bins(one_way[attribute], count, ordered)
        values = merged[attribute]
        counts = np.bincount(values, weights=np.maximum(one_way[attribute], 0.0)).astype(np.float64)
        return choose_bins(counts, count, ordered)[values]

    return tuple(
        tuple(
            cut(attribute, count)
            for attribute, count in zip(group.attributes, group.bins, strict=True)
        )
        for group in groups
    )


def released_sizes(
    groups: Sequence[Group],
    bins: Sequence[Sequence[Integers]],
    one_way: Mapping[int, Floats],
) -> list[Floats]:
    """Estimate how many records have each value of groups, from released one-way counts alone.

    The attributes of a parity are taken to be independent. Party and server compute the same
    figures, up to the last bit but one.

    Args:
        groups: what is published.
        bins: per group and attribute, the map code -> bin [shape=(size,), int64].
        one_way: by attribute, released counts [shape=(size,), float64, records].

    Returns:
        Per group, records [shape=(values,), float64].
    """
    out = []
    for group, maps in zip(groups, bins, strict=True):
        counts = [
            np.bincount(
                mapping, weights=np.maximum(one_way[attribute], 0.0), minlength=count
            ).astype(np.float64)
            for attribute, count, mapping in zip(group.attributes, group.bins, maps, strict=True)
        ]
        cells = counts[0]
        for each in counts[1:]:
            cells = np.multiply.outer(cells, each / max(float(each.sum()), 1.0)).ravel()
        out.append(group.sums(cells))
    return out
