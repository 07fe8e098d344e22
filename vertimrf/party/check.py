"""Check a party's table against a schema or plan before a release: ids, columns, every cell."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Int32s, Texts, memory
from ..columns.column import DRAFTED
from ..columns.text import UNDECODED
from ..errors import PlanError, SchemaError, TableError, some
from ..plan.forecast import least_memory
from ..plan.id_form import form_pattern
from ..plan.open_schema import OpenSchema
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..tables.arrow import Pieces
from ..tables.columns import Columns, Encoded, extra_columns
from ..tables.derived import breaking, party_table, with_derived
from ..tables.ids import (
    MAX_SHAPES,
    IdKeys,
    as_texts,
    few_ids,
    format_ids,
    id_form,
    id_shapes,
    plain_ids,
)
from ..tables.impossible import ruled_out
from ..tables.read_options import DEFAULT, ReadOptions
from ..tables.sources import Source
from .persons import beyond, naming_errors

# A note is made if the records differ from the plan's by this factor, because noise and keys were
# chosen for the plan's number.
FEW_OR_MANY = 2.0
# A note is made if more than this share of a column lies outside its bounds, or is not among the
# listed values.
CLIPPED, MOSTLY_OTHER = 0.05, 0.5


@dataclass(frozen=True)
class Check:
    """Sentences on a table. They are exact, so only the party may see them.

    Attributes:
        problems: errors that stop a run, and reasons why records would be left out.
        notes: possible mistakes.
        facts: figures that are in order.
    """

    problems: Texts
    notes: Texts
    facts: Texts


def check_table(
    source: Source,
    id: str | None,
    schema: OpenSchema,
    party: str,
    where: str,
    read: ReadOptions = DEFAULT,
    plan: Plan | None = None,
) -> Check:
    """Check a table against a schema, in pieces: ids, columns, and every cell.

    Records that do not fit, which a release silently leaves out, are problems here.

    Args:
        source: the party's table, see :func:`vertimrf.tables.sources.read_arrow`.
        id: name of the id column, if there is one.
        schema: the schema. Cells of private domains are not checked.
        party: name of the party in the schema.
        where: the table's name in sentences.
        read: how the table is read.
        plan: the agreed plan, if there is one.

    Returns:
        Problems, notes and facts.

    Raises:
        SchemaError, TableError: the schema has no such party, or the table cannot be read.
    """
    attributes = schema.schema.part(party)
    source = party_table(source, read, id, [a.name for a in attributes])
    (pieces,) = with_derived([source], schema.schema, [a.name for a in attributes], read)
    ruled = ruled_out(schema.schema, party)
    columns = Columns(id, attributes, where, IdKeys.drawn(), read, ruled)
    problems = [str(error) for error in columns.errors(pieces.names)]
    if plan is not None:
        named = read.person is not None
        problems += map(str, naming_errors(named, plan.records_per_person))
    columns = _present(columns, [name for name in pieces.names if name not in schema.wanted])
    watched, encoded, stopped = _encoded(columns, pieces, schema.schema.ids)
    if encoded is None:
        return Check((*problems, *stopped), (), ())
    problems += stopped
    table = watched.columns.settled(encoded, pieces)
    problems += [reason.sentence for reason in table.dropped.reasons]
    rows = table.records + table.dropped.records
    facts = [
        f"{rows:,} records, {len(attributes)} attributes in the {'plan' if plan else 'schema'}."
    ]
    notes = [*extra_columns([c for c in encoded.extra if c not in schema.wanted], where)]
    notes += [*watched.notes(), *_broken(source, schema.schema, where, read)]
    if table.dropped.records:
        facts.append(
            f"{table.dropped.records:,} of them do not fit, and would be left out; only this party learns that."
        )
    if not rows:
        problems.append(f"{where} has no records.")
    elif plan and not 1 / FEW_OR_MANY <= table.records / plan.expected_records <= FEW_OR_MANY:
        notes.append(
            f"The plan expects {plan.expected_records:,} records, and noise and keys are chosen for as many: with "
            f"{table.records:,} it stays private, but another plan would be more accurate."
        )
    problems += watched.unfit_ids()
    if schema.schema.ids_source == DRAFTED:
        notes.append(
            f"The form of ids {schema.schema.ids!r} was read off data: name its public source as ids_source."
        )
    if (form := id_form(watched.shapes)) is not None:
        facts.append(f"The form of ids: {form!r}.")
        if schema.schema.ids is None and len(schema.schema.parties) > 1:
            notes.append(
                f"The {'plan' if plan else 'schema'} does not state the form of ids, so nothing compares it with the other "
                "parties'; `vertimrf align` compares ids."
            )
    if plan is not None and table.persons is not None and table.records:
        most = plan.records_per_person
        left, persons = beyond(table.persons, most)
        facts.append(
            f"{left:,} records of {persons:,} persons with more than {most} will be left out, the same at every party."
        )
    return Check(tuple(problems), tuple(notes), tuple(facts))


def check_ids(source: Source, id: str, read: ReadOptions = DEFAULT) -> str:
    """Check a table's columns of ids before there is a plan.

    Args:
        source: the party's table.
        id: name of the id column.
        read: how the table is read.

    Returns:
        A sentence for the operator if the first records have too few ids, or their type cannot be
        that of ids; else an empty one. One record can decide that, so it must hold nothing back.

    Raises:
        TableError: the table cannot be read, or lacks the column of record or person ids.
    """
    pieces = party_table(source, read, id, ())
    columns = Columns(id, (), pieces.where, IdKeys.drawn(), read)
    columns.check(pieces.names)
    for piece in pieces.read(columns.wanted, lambda *_: None):
        try:
            if columns.person is not None:
                plain_ids(piece[columns.person], columns.owners)
            ids = as_texts(format_ids(piece[id], read.id_format, columns.ids), columns.ids)
        except TableError as error:
            return str(error)
        # Of a record of a person, the id may be another person's too.
        return (
            "" if columns.person else few_ids(pc.count_distinct(ids).as_py(), len(ids), columns.ids)
        )
    return ""


def _broken(source: Source, schema: Schema, where: str, read: ReadOptions) -> Iterator[str]:
    """Sentences on equations that records do not keep."""
    for equation, broken in breaking(source, schema, read).items():
        if broken.count:
            yield (
                f"{where}: the rule {equation} does not hold in {broken.records}; synthetic rows keep it."
            )


def _encoded(
    columns: Columns, pieces: Pieces, form: str | None
) -> tuple[_Watched, Encoded | None, list[str]]:
    """Encode a table, without its ids if these cannot be read. None if it cannot be read at all."""
    stopped: dict[str, None] = {}
    without = replace(columns, id=None, read=replace(columns.read, person=None))
    for readable in (columns, without):
        watched = _Watched(readable, form)
        try:
            return watched, readable.encode(pieces, watched.take), [*stopped]
        except TableError as error:
            stopped[str(error)] = None
    return watched, None, [*stopped]


def _present(columns: Columns, names: Sequence[str]) -> Columns:
    """The columns that the table has."""
    attributes = tuple(attribute for attribute in columns.attributes if attribute.name in names)
    return replace(
        columns,
        id=columns.id if columns.id in names else None,
        attributes=attributes,
        read=columns.read if columns.person in names else replace(columns.read, person=None),
        # Structural zeros name attributes by position, which has changed if columns are missing.
        impossible=columns.impossible if attributes == columns.attributes else {},
    )


class _Watched:
    """Counts behind the notes, updated by pieces: shapes of ids, ids without the form, clipped
    numbers, and values counted as `other`.
    """

    def __init__(self, columns: Columns, form: str | None) -> None:
        self.columns, self._form = columns, form
        self._unfit = 0
        # Texts with bytes of another encoding, by column.
        self._undecoded: Counter[str] = Counter()
        self._records = 0
        # Rows: cells with a number, cells outside the bounds, and cells that count as `other`.
        self._counts = np.zeros((3, len(columns.attributes)), np.int64)
        # The least and the greatest number.
        self._extremes = np.outer([np.inf, -np.inf], np.ones(len(columns.attributes)))
        self.shapes: Counter[str] = Counter()

    def take(self, piece: pa.Table, codes: Sequence[Int32s]) -> None:
        """Add a piece and the codes of its records."""
        columns = self.columns
        self._records += piece.num_rows
        if columns.id is not None:
            written = format_ids(piece[columns.id], columns.read.id_format, columns.ids)
            if len(self.shapes) < MAX_SHAPES:
                self.shapes += id_shapes(written)
            if self._form is not None:
                texts = as_texts(written, columns.ids).drop_null()
                fit = pc.match_substring_regex(texts, form_pattern(self._form))
                self._unfit += len(texts) - (pc.sum(fit).as_py() or 0)
        for attribute, column_codes, counts, extremes in zip(
            columns.attributes, codes, self._counts.T, self._extremes.T, strict=True
        ):
            if attribute.limits is not None:
                # A column of another type has already been reported.
                with contextlib.suppress(SchemaError):
                    numbers, missing = attribute.numbers(piece[attribute.name], columns.where)
                    present = numbers[~missing]
                    extremes[0] = np.fmin.reduce(present, initial=extremes[0])
                    extremes[1] = np.fmax.reduce(present, initial=extremes[1])
                    counts[0] += len(present)
                    counts[1] += np.count_nonzero(
                        (present < attribute.limits[0]) | (present > attribute.limits[1])
                    )
            elif pa.types.is_string(piece[attribute.name].type):
                odd = pc.match_substring_regex(piece[attribute.name], UNDECODED)
                self._undecoded[attribute.name] += pc.sum(odd).as_py() or 0
            if attribute.other_code is not None:
                counts[2] += np.count_nonzero(column_codes == attribute.other_code)

    def unfit_ids(self) -> list[str]:
        """A sentence about the ids that do not have the form; empty if there are none."""
        if not self._unfit:
            return []
        return [
            f"{self._unfit:,} of {self._records:,} ids do not have the form {self._form!r}, so no other party has them: write "
            "them as it says, perhaps by an id_format."
        ]

    def notes(self) -> list[str]:
        """The notes."""
        out = []
        for attribute, (present, clipped, other) in zip(
            self.columns.attributes, self._counts.T.tolist(), strict=True
        ):
            if attribute.clamp and clipped > CLIPPED * present:
                out.append(
                    f"{100 * clipped / present:.0f} % of column {attribute.name!r} lie beyond the bounds {attribute.bounds_text} "
                    "and count as the nearest one: means and tails will be off; give it wider bounds."
                )
            elif other > MOSTLY_OTHER * self._records:
                share = 100 * other / self._records
                out.append(
                    f"{share:.0f} % of column {attribute.name!r} count as {attribute.other!r}; list more values."
                )
        out += [
            f"{count:,} texts of column {name!r} have bytes of another encoding, read as \\xNN: give the file's encoding (--encoding), perhaps "
            "cp1252."
            for name, count in self._undecoded.items()
            if count
        ]
        revealed = []
        for a, (low, high) in zip(self.columns.attributes, self._extremes.T, strict=True):
            if a.limits is not None:
                ends = a.limits[1], a.limits[1] - a.step
                equal = int(low == a.limits[0]) + bool(np.isclose(high, ends, rtol=1e-12).any())
                # One equal bound is usual, as 0 is, unless it was read off data.
                revealed += [a.name] * (equal > (a.source != DRAFTED))
        if revealed:
            out.append(
                f"Bounds of column {some(revealed)} are the least or greatest number of the table, and reveal it: take them from "
                "public knowledge."
            )
        if drafted := [a.name for a in self.columns.attributes if a.source == DRAFTED]:
            out.append(
                f"The domain of column {some(drafted)} was read off data: name its public source."
            )
        return out


def check_memory(plan: Plan, party: int) -> None:
    """Refuse a plan whose tables at a party exceed this machine's memory.

    Raises:
        PlanError: they do.
    """
    if (needed := least_memory(plan, party)) > memory():
        raise PlanError(
            f"The plan asks {plan.party_names[party]} for tables of {needed / 1e9:,.1f} GB, and this machine has "
            f"{memory() / 1e9:,.1f} GB of memory: have it planned with fewer keys, wider bins or a smaller message."
        )
