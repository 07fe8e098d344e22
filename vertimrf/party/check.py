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
from ..tables.arrow import COMMAS, CsvFormat, Source, open_pieces
from ..tables.ids import Absent, IdKeys, check_distinct, digested, format_ids, id_shapes, most_shapes
from ..tables.impossible import Broken, count_broken, impossible_records
from ..tables.table import Columns, Uncoded, check_columns, coded, column_encoder, column_numbers, without_person
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
    source: Source,
    id: str,
    plan: Plan,
    party: str,
    where: str,
    id_format: Sequence[str] = (),
    person: str | None = None,
    ignore_extra: bool = False,
    csv: CsvFormat = COMMAS,
) -> Check:
    """Hold a table against a plan, piece by piece: ids, columns, and every cell.

    Args:
        source: the party's table, see :func:`vertimrf.tables.arrow.read_arrow`.
        id: its id column.
        plan: the agreed plan.
        party: the party's name in it.
        where: names the table in sentences.
        id_format, person, ignore_extra, csv: as for :func:`vertimrf.tables.table.encode_table`.

    Raises:
        SchemaError: the plan has no such party.
        TableError: it cannot be read.
    """
    pieces = open_pieces(source, csv)
    attributes = plan.schema.part(party)
    columns = Columns(id, attributes, where, IdKeys.drawn(), tuple(id_format), person)
    names = [name for name in pieces.names if name in columns.wanted or not ignore_extra]
    problems, notes, facts = [], [], []
    try:
        check_columns(names, id, attributes, where, person)
    except SchemaError as error:
        problems.append(str(error))
    cells = [_Cells(attribute, where) for attribute in attributes if attribute.name in names]
    ids = _Ids(columns.keys.records, columns.ids, columns.id_format) if id in names else None
    owners = _Ids(columns.keys.persons, columns.owners) if person in names else None
    combinations = list(plan.schema.combinations_at(party).values()) if len(cells) == len(attributes) else []
    broken = tuple(Broken() for _ in combinations)
    records = 0
    for piece in pieces.read([name for name in columns.wanted if name in names]):
        codes = np.array([each.take(piece, None if ids is None else id, records) for each in cells], np.uint16)
        found = count_broken(codes, combinations)
        broken = tuple(before.then(more, records) for before, more in zip(broken, found, strict=True))
        if ids is not None:
            ids.take(piece[id], records)
        if owners is not None:
            owners.take(piece[person], records)
        records += piece.num_rows
    for each in cells:
        try:
            each.uncoded.check(each.attribute, where)
            notes += each.notes()
        except SchemaError as error:
            problems.append(str(error))
    if combinations and not any(each.uncoded != Uncoded() for each in cells):
        problems += impossible_records(broken, plan.schema, party, where)
    facts.append(f"{records:,} records, {len(attributes)} attributes in the plan.")
    if not records:
        problems.append(f"{where} has no records.")
    elif not 1 / FEW_OR_MANY <= records / plan.expected_records <= FEW_OR_MANY:
        notes.append(
            f"The plan expects {plan.expected_records:,} records, and noise and keys are chosen for as many: with "
            f"{records:,} it stays private, but another plan would be more accurate."
        )
    if ids is None:
        problems.append(f"{where} has no id column {id!r}.")
    elif records:
        try:
            check_distinct(ids.digests(), lambda rows: pieces.cells(id, rows), columns.ids)
        except TableError as error:
            problems.append(str(error))
        else:
            listed = ", ".join(f"{shape} ({count:,})" for shape, count in list(ids.shapes.items())[:SHAPES])
            facts.append(f"Ids are distinct; their shapes: {listed}{', ...' if len(ids.shapes) > SHAPES else ''}.")
            if len(ids.shapes) > 1:
                notes.append("Ids have several shapes; `vertimrf align` tells whether the other parties write them the same way.")
    if plan.records_per_person > 1 and person is None:
        problems.append(
            f"The plan is for persons with up to {plan.records_per_person} records: name the column that says whose a record is "
            "(--person)."
        )
    elif person is not None and records:
        try:
            if owners is None:
                raise without_person(where, person, names)
            dropped, persons = beyond(owners.digests(), plan.records_per_person)
        except TableError as error:
            problems.append(str(error))
        else:
            facts.append(
                f"{dropped:,} records of {persons:,} persons with more than {plan.records_per_person} will be left out, the same "
                "at every party."
            )
    return Check(tuple(problems), tuple(notes), tuple(facts))


class _Ids:
    """A column of ids, taken in piece by piece."""

    def __init__(self, key: bytes, where: str, formats: Sequence[str] = ()) -> None:
        self._key = key
        self._where, self._formats = where, formats
        self._digests: list[npt.NDArray[np.uint64]] = []
        self._absent = Absent()
        self._wrong: TableError | None = None
        self.shapes: dict[str, int] = {}

    def take(self, column: pa.ChunkedArray, before: int) -> None:
        """The next piece, and how many records come before it."""
        if self._wrong is not None:
            return
        try:
            written = format_ids(column, self._formats, self._where)
            digests, absent = digested(self._key, written, self._where)
        except TableError as error:
            self._wrong = error
            return
        self._digests.append(digests)
        self._absent = self._absent.then(absent, before)
        self.shapes = most_shapes(self.shapes, id_shapes(written))

    def digests(self) -> npt.NDArray[np.uint64]:
        """Of all ids. Raises TableError where some are absent, or are no ids."""
        if self._wrong is not None:
            raise self._wrong
        self._absent.check(self._where)
        return np.concatenate(self._digests)


class _Cells:
    """A column of values, taken in piece by piece: what has no code, and what somebody should look at although it is no error,
    bounds that clip much, and values that are mostly `other`."""

    def __init__(self, attribute: Attribute, where: str) -> None:
        self.attribute = attribute
        self.uncoded = Uncoded()
        self._where = f"{where}: column {attribute.name!r}"
        self._encoder = column_encoder(attribute, where)
        self._records = self._present = self._clipped = self._other = 0

    def take(self, piece: pa.Table, id: str | None, before: int) -> npt.NDArray[np.int32]:
        """The codes of the next piece; ``before`` records come before it."""
        attribute = self.attribute
        codes, uncoded = coded(attribute, self._encoder, piece, id, before)
        self.uncoded = self.uncoded.then(uncoded)
        self._records += len(codes)
        if attribute.clamp and not self.uncoded.wrong:
            numbers, missing = column_numbers(attribute, piece[attribute.name], self._where)
            present = numbers[~missing]
            self._present += len(present)
            self._clipped += int(((present < attribute.edges[0]) | (present > attribute.edges[-1])).sum())
        if attribute.other is not None:
            self._other += int((codes == attribute.values.index(attribute.other)).sum())
        return np.maximum(codes, 0)

    def notes(self) -> list[str]:
        """What somebody should look at."""
        attribute = self.attribute
        if self._clipped > CLIPPED * self._present:
            low, high = attribute.edge_text(0), attribute.edge_text(len(attribute.edges) - 1)
            return [
                f"{100 * self._clipped / self._present:.0f} % of column {attribute.name!r} lie beyond the bounds {low} to {high} "
                "and count as the nearest one: means and tails will be off; give it wider bounds."
            ]
        if self._other > MOSTLY_OTHER * self._records:
            share = 100 * self._other / self._records
            return [f"{share:.0f} % of column {attribute.name!r} count as {attribute.other!r}; list more values."]
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
