"""Cut a party's columns into few bins for the pairs that it chooses, by its one-way marginals.

Bins have similar numbers of records, as far as the order of values allows. Records without a value are
a bin of their own if there are more of them than noise alone would count. Party and server get the same
bins from the same released counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Integers, Integral
from .binning import beside_missing, choose_bins, halves
from .merging import mergeable
from .schema import Schema

# Missing values are apart from so many standard deviations of their count's noise on.
APART = 3.0


@dataclass(frozen=True)
class Cutting:
    """How a column is cut into bins.

    Attributes:
        ordered: whether bins are of adjacent values.
        missing: whether the last value stands for records without one.
        kept: whether it keeps its values, because others name these.
    """

    ordered: bool
    missing: bool
    kept: bool

    def bins(self, counts: Integral | Floats, sigma: float, parts: int) -> Integers | None:
        """Cut the column.

        Args:
            counts: released one-way counts [shape=(size,)].
            sigma: standard deviation of their noise.
            parts: number of bins, 2 or more, beside that of missing values.

        Returns:
            The map code -> bin [shape=(size,), int64]; None if each value is a bin.
        """
        alone = self.missing and len(counts) > 2 and bool(counts[-1] > APART * sigma)
        if self.kept or len(counts) - alone <= parts:
            return None
        values = counts.astype(np.float64)
        if alone:
            return beside_missing(values, parts + 1, self.ordered, halved=self.ordered)
        if parts == 2 and self.ordered:
            return halves(values, True, self.missing)
        return choose_bins(values, parts, self.ordered)


def cuttings(schema: Schema, attributes: Sequence[int]) -> list[Cutting]:
    """How a party's columns are cut. Shared ones, and those of structural zeros, keep their values."""
    able = mergeable(schema)
    return [
        Cutting(schema.attributes[a].ordered, schema.attributes[a].missing, a not in able)
        for a in attributes
    ]
