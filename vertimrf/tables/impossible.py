"""Records that the schema calls impossible: counted at their holder, for nobody else's eyes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..plan.impossible import Combination
from ..plan.schema import Schema

__all__ = ["Broken", "breaking", "count_broken", "impossible_records"]

Codes = npt.NDArray[np.uint16]


def breaking(codes: Codes, combination: Combination) -> npt.NDArray[np.bool_]:
    """Which records have an impossible combination [shape=(n,)].

    Args:
        codes: encoded records [shape=(d, n), uint16].
        combination: codes that are ruled out together; attributes by their row.
    """
    out = np.ones(codes.shape[1], bool)
    for place, ruled_out in combination:
        out &= np.isin(codes[place], np.array(ruled_out, np.uint16))
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

    def then(self, later: Broken, before: int) -> Broken:
        """These, and those of a piece that comes after ``before`` records."""
        return Broken(self.count + later.count, self.first if self.count else before + later.first)


def count_broken(codes: Codes, combinations: Sequence[Combination]) -> tuple[Broken, ...]:
    """Records that have each of these combinations; ``codes`` and combinations as for :func:`breaking`."""
    found = (breaking(codes, combination) for combination in combinations)
    return tuple(Broken(int(marked.sum()), int(marked.argmax()) if len(marked) else 0) for marked in found)


def impossible_records(found: Sequence[Broken], schema: Schema, party: str, where: str) -> list[str]:
    """A sentence for every impossible combination that some of a party's records have; combinations with other parties'
    attributes are not looked at.

    Args:
        found: per combination of ``schema.combinations_at(party)``, the party's records that have it.
        schema: of all parties.
        party: whose records these are.
        where: names the table.
    """
    out = []
    for number, broken in zip(schema.combinations_at(party), found, strict=True):
        if broken.count:
            first = f"row {broken.first + 1}"
            out.append(
                f"{where}: {broken.count:,} record{'s' if broken.count > 1 else ''} "
                f"({f'the first is {first}' if broken.count > 1 else first}) "
                f"{'have' if broken.count > 1 else 'has'} what the schema says cannot be: {schema.impossible[number]}; correct "
                f"the record{'s' if broken.count > 1 else ''}, or leave the combination out of the schema."
            )
    return out
