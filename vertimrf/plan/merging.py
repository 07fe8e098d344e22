"""Domain compression: a party merges the values of long domains whose noisy count is below 3 sigma.

1. A party releases its one-way marginals.
2. It merges rare values of long domains by these marginals. This is post-processing and costs no
   privacy.
3. It measures larger marginals over the merged values, because those of rare values would be noise
   alone.
4. The server computes the same maps from the message, and spreads merged values by the one-way
   marginals.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..arrays import Floats, Integers
from .binning import merge_light
from .schema import Schema

# Domains with more values are compressed.
LONG_DOMAIN = 64
# Values with fewer standard deviations of a one-way count's noise are merged.
LIGHT_SIGMAS = 3.0


def merging(schema: Schema, party: str) -> dict[int, bool]:
    """Attributes of a party whose domain is compressed, and whether they are ordered.

    These have long domains, are not shared, and are in no structural zero.

    Args:
        schema: the schema.
        party: name of the party.

    Returns:
        By position in the schema, whether the attribute is ordered.
    """
    linked = {place for combination in schema.combinations for place, _ in combination}
    return {
        a: schema.attributes[a].ordered
        for a in schema.party_attributes(party)
        if schema.sizes[a] > LONG_DOMAIN and len(schema.holders[a]) == 1 and a not in linked
    }


def kept_apart(schema: Schema) -> frozenset[int]:
    """Positions of the attributes that no party compresses."""
    merged = {a for party, _ in schema.parties for a in merging(schema, party)}
    return frozenset(range(len(schema.sizes))) - merged


def merged_values(
    one_way: Mapping[int, npt.NDArray[np.integer] | Floats],
    sigma: float,
    long: Mapping[int, bool],
) -> dict[int, Integers]:
    """Merge the rare values of some attributes.

    Party and server get the same maps, because sums of released counts are exact.

    Args:
        one_way: released counts by attribute [shape=(size,)].
        sigma: standard deviation of their noise, from the plan.
        long: the attributes, and whether they are ordered.

    Returns:
        By attribute, the map code -> merged value [shape=(size,), int64].
    """
    return {
        a: merge_light(one_way[a].astype(np.float64), LIGHT_SIGMAS * sigma, ordered)
        for a, ordered in long.items()
    }
