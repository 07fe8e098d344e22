"""Everything about a table that can go wrong in a run, found before anything is released."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import SchemaError, TableError
from ..plan.plan import Plan
from ..tables.ids import check_distinct, digest_ids, format_ids, id_shapes
from ..tables.impossible import impossible_records
from ..tables.table import check_columns, encode_columns

__all__ = ["Check", "check_space", "check_table"]

# More or fewer records than the plan expects, by this factor, cost accuracy: it chose noise and keys for as many.
FEW_OR_MANY = 2.0
SHAPES = 6


@dataclass(frozen=True)
class Check:
    """What was found; exact, so for the party's own eyes.

    Attributes:
        problems: what stops a run; a sentence each.
        notes: what somebody should look at.
        facts: what was found in order.
    """

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    facts: tuple[str, ...]


def check_table(table: pa.Table, id: str, plan: Plan, party: str, where: str, id_format: Sequence[str] = ()) -> Check:
    """Hold a table against a plan: ids, columns, and every cell.

    Args:
        table: the party's table.
        id: its id column.
        plan: the agreed plan.
        party: the party's name in it.
        where: names the table in sentences.
        id_format: as for :func:`vertimrf.tables.table.encode_table`.

    Raises:
        SchemaError: the plan has no such party.
        TableError: no such id format.
    """
    problems, notes, facts = [], [], []
    attributes = plan.schema.part(party)
    try:
        check_columns(table.column_names, id, attributes, where)
    except SchemaError as error:
        problems.append(str(error))
    encoded = []
    for attribute in attributes:
        if attribute.name in table.column_names:
            try:
                encoded.append(encode_columns(table, [attribute], where, id if id in table.column_names else None))
            except SchemaError as error:
                problems.append(str(error))
    if len(encoded) == len(attributes):
        problems += impossible_records(np.concatenate(encoded), plan.schema, party, where)
    facts.append(f"{table.num_rows:,} records, {len(attributes)} attributes in the plan.")
    if not table.num_rows:
        problems.append(f"{where} has no records.")
    elif not 1 / FEW_OR_MANY <= table.num_rows / plan.expected_records <= FEW_OR_MANY:
        notes.append(
            f"The plan expects {plan.expected_records:,} records, and noise and keys are chosen for as many: with "
            f"{table.num_rows:,} it stays private, but another plan would be more accurate."
        )
    if id not in table.column_names:
        problems.append(f"{where} has no id column {id!r}.")
    elif table.num_rows:
        try:
            column = f"{where}, id column {id!r}"
            written = format_ids(table[id], id_format, column)
            check_distinct(digest_ids(written, column), table[id], column)
        except TableError as error:
            problems.append(str(error))
        else:
            shapes = id_shapes(written)
            listed = ", ".join(f"{shape} ({count:,})" for shape, count in list(shapes.items())[:SHAPES])
            facts.append(f"Ids are distinct; their shapes: {listed}{', ...' if len(shapes) > SHAPES else ''}.")
            if len(shapes) > 1:
                notes.append("Ids have several shapes; `vertimrf align` tells whether the other parties write them the same way.")
    return Check(tuple(problems), tuple(notes), tuple(facts))


def check_space(folder: Path, needed: float) -> str | None:
    """What is wrong with writing so many bytes to a folder; None if nothing is."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder} cannot be used ({error.strerror}); name another folder."
    if free < needed:
        return f"{folder} has {free / 1e6:,.0f} MB left, and {needed / 1e6:,.0f} MB are needed; make room or name another folder."
    return None
