"""Records that the schema calls impossible: counted at their holder, for nobody else's eyes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..errors import SchemaError
from ..plan.impossible import Combination
from ..plan.schema import Schema

__all__ = ["breaking", "check_possible", "impossible_records"]

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


def impossible_records(codes: Codes, schema: Schema, party: str, where: str) -> list[str]:
    """A sentence for every impossible combination that some of a party's records have; combinations with other parties'
    attributes are not looked at.

    Args:
        codes: the party's records, encoded against its part of the schema [shape=(d, n), uint16].
        schema: of all parties.
        party: whose records these are.
        where: names the table.
    """
    out = []
    for number, combination in schema.combinations_at(party).items():
        broken = breaking(codes, combination)
        if count := int(broken.sum()):
            first = f"row {int(np.argmax(broken)) + 1}"
            out.append(
                f"{where}: {count:,} record{'s' if count > 1 else ''} ({f'the first is {first}' if count > 1 else first}) "
                f"{'have' if count > 1 else 'has'} what the schema says cannot be: {schema.impossible[number]}; correct the "
                f"record{'s' if count > 1 else ''}, or leave the combination out of the schema."
            )
    return out


def check_possible(codes: Codes, schema: Schema, party: str, where: str) -> None:
    """Refuse a table with records that the schema calls impossible; arguments as for :func:`impossible_records`.

    Raises:
        SchemaError: there are some.
    """
    if found := impossible_records(codes, schema, party, where):
        raise SchemaError(found[0])
