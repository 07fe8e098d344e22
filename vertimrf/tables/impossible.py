"""Records that the schema calls impossible: found at their holder, for nobody else's eyes."""

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
    """The impossible combinations of one party's attributes, by what the schema calls them; attributes by their row at the party.

    Combinations with other parties' attributes are not among them.
    """
    return {str(schema.impossible[number]): combination for number, combination in schema.combinations_at(party).items()}


def breaking(codes: Codes | Sequence[npt.NDArray[np.integer]], combination: Combination) -> npt.NDArray[np.bool_]:
    """Which records have an impossible combination [shape=(n,)].

    Args:
        codes: encoded records, a row per attribute [shape=(d, n), uint16].
        combination: codes that are ruled out together; attributes by their row.
    """
    out = np.ones(len(codes[0]), bool)
    for place, codes_of in combination:
        out &= np.isin(codes[place], np.array(codes_of, np.uint16))
    return out


@dataclass(frozen=True)
class Broken:
    """Records that have one impossible combination.

    Attributes:
        count: how many.
        first: row of the first, from 0.
    """

    count: int = 0
    first: int = 0

    @classmethod
    def of(cls, marked: npt.NDArray[np.bool_], before: int = 0) -> Broken:
        """Those of a piece that comes after ``before`` records, by which of them have it [shape=(n,)]."""
        return cls(int(marked.sum()), before + int(marked.argmax()) if marked.any() else 0)

    def then(self, later: Broken, before: int = 0) -> Broken:
        """These, and those of a piece that comes after ``before`` records."""
        return Broken(self.count + later.count, self.first if self.count else before + later.first)

    def reasons(self, combination: str, where: str) -> list[Reason]:
        """Why such records are dropped; ``where`` names the table."""
        if not self.count:
            return []
        several, first = self.count > 1, f"row {self.first + 1}"
        sentence = (
            f"{where}: {self.count:,} record{'s' if several else ''} ({f'the first is {first}' if several else first}) "
            f"{'have' if several else 'has'} what the schema says cannot be: {combination}; correct "
            f"the record{'s' if several else ''}, or leave the combination out of the schema."
        )
        return [Reason("impossible", combination, self.count, sentence)]
