"""Records with impossible combinations. Only the party that holds them finds and counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..plan.impossible import Combination
from ..plan.schema import Schema
from .dropped import Reason

__all__ = ["Broken", "breaking", "ruled_out"]

Codes = npt.NDArray[np.uint16]


def ruled_out(schema: Schema, party: str) -> dict[str, Combination]:
    """Impossible combinations of one party's attributes, by their text in the schema.

    Attributes are numbered as the rows of the party's codes.

    Combinations with other parties' attributes are left out.
    """
    return {
        str(schema.impossible[number]): combination
        for number, combination in schema.combinations_at(party).items()
    }


def breaking(
    codes: Codes | Sequence[npt.NDArray[np.integer]], combination: Combination
) -> npt.NDArray[np.bool_]:
    """Which records have an impossible combination.

    Args:
        codes: encoded records, one row per attribute [shape=(d, n), uint16].
        combination: codes that cannot occur together; attributes are rows.

    Returns:
        A mark per record [shape=(n,), bool].
    """
    out = np.ones(len(codes[0]), bool)
    for place, codes_of in combination:
        out &= np.isin(codes[place], np.array(codes_of, np.uint16))
    return out


@dataclass(frozen=True)
class Broken:
    """Records with one impossible combination.

    Attributes:
        count: number of records.
        first: row of the first, counted from 0.
    """

    count: int = 0
    first: int = 0

    @classmethod
    def of(cls, marked: npt.NDArray[np.bool_], before: int = 0) -> Broken:
        """Marked records of a piece that follows ``before`` records [shape=(n,), bool]."""
        return cls(int(marked.sum()), before + int(marked.argmax()) if marked.any() else 0)

    def then(self, later: Broken, before: int = 0) -> Broken:
        """These, and those of a piece that follows ``before`` records."""
        return Broken(self.count + later.count, self.first if self.count else before + later.first)

    def reasons(self, combination: str, where: str) -> list[Reason]:
        """Why these records are dropped; ``where`` names the table."""
        if not self.count:
            return []
        several, first = self.count > 1, f"row {self.first + 1}"
        sentence = (
            f"{where}: {self.count:,} record{'s' if several else ''} ({f'the first is {first}' if several else first}) "
            f"{'have' if several else 'has'} what the schema calls impossible: {combination}; correct "
            f"the record{'s' if several else ''}, or leave the combination out of the schema."
        )
        return [Reason("impossible", combination, self.count, sentence)]
