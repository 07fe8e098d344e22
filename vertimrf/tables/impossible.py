"""Records with impossible combinations. Only the party that holds them finds and counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..arrays import Codes, Flags, Integral
from ..plan.impossible import Combination
from ..plan.schema import Schema


def ruled_out(schema: Schema, party: str) -> dict[str, tuple[Combination, ...]]:
    """Impossible combinations of one party's attributes, by their text in the schema.

    One rule may stand for several combinations. Attributes are numbered as the rows of the party's
    codes. Combinations with other parties' attributes are left out.
    """
    mine = schema.combinations_at(party)
    return {
        text: tuple(mine[number] for number in numbers)
        for text, numbers in schema.stated.items()
        if numbers[0] in mine
    }


def possible(codes: Codes | Sequence[Integral], combinations: Iterable[Combination]) -> Flags:
    """Which records have none of some impossible combinations.

    Args:
        codes: encoded records, one row per attribute [shape=(d, n), uint16].
        combinations: codes that cannot occur together; attributes are rows.

    Returns:
        A mark per record [shape=(n,), bool].
    """
    kept = np.ones(len(codes[0]), bool)
    for combination in combinations:
        broken = np.ones(len(kept), bool)
        for place, codes_of in combination:
            broken &= np.isin(codes[place], np.array(codes_of, np.uint16))
        kept &= ~broken
    return kept
