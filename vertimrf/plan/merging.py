"""Domain compression: a party merges values that it measures together in all but one-way marginals.

Of long domains, these are the values whose noisy count is below 3 sigma.

1. A party releases its one-way marginals.
2. It merges values by these marginals. This is post-processing and costs no privacy.
3. It measures larger marginals over the merged values.
4. The server computes the same maps from the message, and spreads merged values by the one-way
   marginals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Integers, Integral
from .binning import merge_light
from .schema import Schema

# Domains with more values are compressed.
LONG_DOMAIN = 64
# Values with fewer standard deviations of a one-way count's noise are merged.
LIGHT_SIGMAS = 3.0


@dataclass(frozen=True)
class Merging:
    """How an attribute's values are merged.

    Attributes:
        ordered: whether only adjacent values are merged.
    """

    ordered: bool


def mergeable(schema: Schema) -> frozenset[int]:
    """Positions of attributes whose values may be merged: not shared, and in no structural zero."""
    linked = {place for combination in schema.combinations for place, _ in combination}
    return frozenset(
        a for a in range(len(schema.sizes)) if len(schema.holders[a]) == 1 and a not in linked
    )


def merging(schema: Schema, party: str) -> dict[int, Merging]:
    """Attributes of a party whose domain is compressed, and how.

    Args:
        schema: the schema.
        party: name of the party.

    Returns:
        By position in the schema.
    """
    attributes, able = schema.attributes, mergeable(schema)
    return {
        a: Merging(attributes[a].ordered)
        for a in schema.party_attributes(party)
        if a in able and schema.sizes[a] > LONG_DOMAIN
    }


def kept_apart(schema: Schema, coarse: Collection[int] = ()) -> frozenset[int]:
    """Positions of the attributes that no party compresses; ``coarse`` ones are merged in pairs."""
    merged = {a for party, _ in schema.parties for a in merging(schema, party)}.union(coarse)
    return frozenset(range(len(schema.sizes))) - merged


def in_order(schema: Schema) -> frozenset[int]:
    """Positions of the attributes whose values have an order."""
    return frozenset(a for a, attribute in enumerate(schema.attributes) if attribute.ordered)


def merged_values(
    one_way: Mapping[int, Integral | Floats],
    sigma: float,
    long: Mapping[int, Merging],
) -> dict[int, Integers]:
    """Merge values of some attributes.

    Party and server get the same maps, because sums of released counts are exact.

    Args:
        one_way: released counts by attribute [shape=(size,)].
        sigma: standard deviation of their noise, from the plan.
        long: the attributes, and how they are merged.

    Returns:
        By attribute, the map code -> merged value [shape=(size,), int64].
    """
    return {
        a: merge_light(one_way[a].astype(np.float64), LIGHT_SIGMAS * sigma, how.ordered)
        for a, how in long.items()
    }
