"""Everything about a table that can go wrong in a run, found before anything is released."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import PlanError, SchemaError, TableError
from ..plan.attribute import Attribute
from ..plan.forecast import least_memory
from ..plan.plan import Plan
from ..tables.ids import check_distinct, digest_ids, format_ids, id_shapes
from ..tables.impossible import impossible_records
from ..tables.table import check_columns, column_numbers, encode_columns, read_persons
from .persons import beyond

__all__ = ["Check", "check_memory", "check_space", "check_table"]

# More or fewer records than the plan expects, by this factor, cost accuracy: it chose noise and keys for as many.
FEW_OR_MANY = 2.0
SHAPES = 6
# Parts of a column beyond its bounds, and of values that are not listed, that are worth a note.
CLIPPED, MOSTLY_OTHER = 0.05, 0.5


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


def check_table(
    table: pa.Table,
    id: str,
    plan: Plan,
    party: str,
    where: str,
    id_format: Sequence[str] = (),
    person: str | None = None,
) -> Check:
    """Hold a table against a plan: ids, columns, and every cell.

    Args:
        table: the party's table.
        id: its id column.
        plan: the agreed plan.
        party: the party's name in it.
        where: names the table in sentences.
        id_format, person: as for :func:`vertimrf.tables.table.encode_table`.

    Raises:
        SchemaError: the plan has no such party.
        TableError: no such id format.
    """
    problems, notes, facts = [], [], []
    attributes = plan.schema.part(party)
    try:
        check_columns(table.column_names, id, attributes, where, person)
    except SchemaError as error:
        problems.append(str(error))
    encoded = []
    for attribute in attributes:
        if attribute.name in table.column_names:
            try:
                codes = encode_columns(table, [attribute], where, id if id in table.column_names else None)
                encoded.append(codes)
                notes += domain_notes(table, attribute, codes[0], where)
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
    if plan.records_per_person > 1 and person is None:
        problems.append(
            f"The plan is for persons with up to {plan.records_per_person} records: name the column that says whose a record is "
            "(--person)."
        )
    elif person is not None and table.num_rows:
        try:
            dropped, persons = beyond(read_persons(table, person, where), plan.records_per_person)
        except TableError as error:
            problems.append(str(error))
        else:
            facts.append(
                f"{dropped:,} records of {persons:,} persons with more than {plan.records_per_person} will be left out, the same "
                "at every party."
            )
    return Check(tuple(problems), tuple(notes), tuple(facts))


def domain_notes(table: pa.Table, attribute: Attribute, codes: npt.NDArray[np.uint16], where: str) -> list[str]:
    """What somebody should look at although it is no error: bounds that clip much, and values that are mostly `other`."""
    if not len(codes):
        return []
    if attribute.clamp:
        numbers, missing = column_numbers(attribute, table[attribute.name], where)
        present = numbers[~missing]
        beyond_bounds = ((present < attribute.edges[0]) | (present > attribute.edges[-1])).mean() if present.size else 0.0
        if beyond_bounds > CLIPPED:
            low, high = attribute.edge_text(0), attribute.edge_text(len(attribute.edges) - 1)
            return [
                f"{100 * beyond_bounds:.0f} % of column {attribute.name!r} lie beyond the bounds {low} to {high} and count as "
                "the nearest one: means and tails will be off; give it wider bounds."
            ]
    if attribute.other is not None:
        other = float((codes == attribute.values.index(attribute.other)).mean())
        if other > MOSTLY_OTHER:
            return [f"{100 * other:.0f} % of column {attribute.name!r} count as {attribute.other!r}; list more values."]
    return []


def check_memory(plan: Plan, party: int) -> None:
    """Refuse a plan, whoever sent it, that asks a party for tables which this machine's memory does not hold.

    Raises:
        PlanError: it does.
    """
    if not hasattr(os, "sysconf"):
        return
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if (needed := least_memory(plan, party)) > held:
        raise PlanError(
            f"The plan asks {plan.party_names[party]} for tables of {needed / 1e9:,.1f} GB, and this machine has "
            f"{held / 1e9:,.1f} GB of memory: have it planned with fewer keys, wider bins or a smaller message."
        )


def check_space(folder: Path, needed: float) -> str | None:
    """What is wrong with writing so many bytes to a folder; None if nothing is."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"{folder} cannot be used ({error.strerror}); name another folder."
    if free < needed:
        return f"{folder} has {free / 1e6:,.0f} MB left, and {needed / 1e6:,.0f} MB are needed; make room or name another folder."
    return None
