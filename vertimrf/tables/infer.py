"""Draft a schema from private tables, for simulations and for correction by its owners.

No privacy guarantee covers the draft.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import MANY, TEXT, check, each, instance, maybe, takes
from ..arrays import Texts
from ..columns.column import DRAFTED, Attribute
from ..columns.draft import draft_attribute
from ..columns.excluded import Excluded
from ..columns.notations.notation import DateOrder
from ..errors import SchemaError, TableError
from ..plan.schema import Schema
from ..plan.sections import Reading
from .arrow import Pieces, header_doubt
from .codebook import Variable, in_order, remarks
from .columns import without_column
from .csv_file import csv_head, csv_header, encoding_of
from .ids import as_texts, few_ids, format_ids, id_form, id_shapes, named_ids
from .offers import Offer, offers, taken_over
from .parts import Part
from .people import people_of, several_rows
from .read_options import DEFAULT, ReadOptions
from .sources import (
    CSV,
    Source,
    as_found,
    first_file,
    format_of,
    open_pieces,
    read_arrow,
    reading,
    several,
)

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Flag:
    """A column that its owner should check.

    Attributes:
        table: name of the table, or party.
        column: name of the column.
        problem: what is unusual about it.
        done: what the draft does about it.
    """

    table: str
    column: str
    problem: str
    done: str

    def __str__(self) -> str:
        return f"{self.table}: column {self.column!r} {self.problem}: {self.done}."


@dataclass(frozen=True)
class LeftOut:
    """A column that a draft leaves out. It shows no cell.

    Attributes:
        table: name of the table, or party.
        column: name of the column.
        read_as: what its cells were taken for.
        shapes: what cells that did not fit look like: 9 for a digit, A and a for letters.
        keep: what to write to keep it.
    """

    table: str
    column: str
    read_as: str
    shapes: Texts
    keep: str


@dataclass(frozen=True)
class Draft:
    """A drafted schema, and the columns that its owners should check.

    Attributes:
        schema: the schema, marked ``public=False``.
        flags: unusual columns, table by table.
        likely: what holds in every record of a table, and may be a rule.
        left_out: the columns that the schema does not have, besides ids and those that were dropped.
    """

    schema: Schema
    flags: tuple[Flag, ...]
    likely: tuple[Offer, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def with_rules(self) -> Schema:
        """The schema with the likely rules, and without the columns that they compute.

        They hold in the records, as the domains do: whoever takes them over states that they are
        public knowledge.
        """
        return taken_over(self.schema, self.likely)[0]

    def __repr__(self) -> str:
        return "\n".join([f"<Draft of {self.schema}>", *map(str, self.flags), *self.exclusions()])

    def exclusions(self) -> list[str]:
        """The columns that are left out, as lines of a table for their owner; none if there are none."""
        if not self.left_out:
            return []
        head = ("column", "read as", "looks like", "to keep it")
        cells = [
            (
                f"{one.table}: {one.column}",
                one.read_as,
                " or ".join(map(repr, one.shapes)) or "-",
                one.keep,
            )
            for one in self.left_out
        ]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        lines = [
            "  "
            + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *cells)
        ]
        return [f"Left out, {len(cells)}: in a shape, 9 is a digit and a letter is A or a.", *lines]


@takes(TableError, id=maybe(TEXT), names=maybe(each(TEXT)), drop=MANY, read=instance("ReadOptions"))
def draft_schema(
    sources: Source | Sequence[Source],
    id: str | None = None,
    names: Sequence[str] | None = None,
    drop: Iterable[str] = (),
    read: ReadOptions = DEFAULT,
    dates: DateOrder | None = None,
) -> Draft:
    """Draft a schema from the tables, marked ``public=False``.

    Text, and up to 64 distinct numbers, become categorical. Other numbers, dates and times get
    their bounds and up to 16 bins (:mod:`vertimrf.columns.edges`). Missing values become a category
    if there are any. A column of a CSV file that holds only numbers, or only dates or times, is
    treated as these; a text column of another table stays text.

    The following is flagged: forms of ids that differ, so that none is drafted; columns without a
    domain, which are left out; sums of two columns, and dates a short time after others, which rules
    would keep; text with more than 256 values, the rarest of which become "other";
    and columns with the same name and type in several tables, which are treated as one column.

    Args:
        sources: one table per party, or a single one: files or data frames.
        id: the id column, which is left out; None if there is none.
        names: names of the parties; default "party1", "party2", ...
        drop: columns to leave out.
        read: how the tables are read.
        dates: which of day and month comes first, where dates leave it open. By default such a
            column is left out.

    Returns:
        The schema and the flags.

    Raises:
        TableError: a table has no id column or no records, or no table has a column to drop.
        SchemaError: a table has no column with a domain, or two tables have columns of one name and
            different types.
    """
    tables, chosen, reads, headers = _read(sources, id, read)
    dropped = {*_names(drop)}
    if absent := sorted(dropped.difference(*(table.column_names for table in tables))):
        raise TableError(f"No table has the column {absent[0]!r} that is to be dropped.")
    names = names if names is not None else [f"party{i + 1}" for i in range(len(tables))]
    if len(set(names)) != len(tables):
        raise SchemaError(
            f"There are {len(set(names))} names for {len(tables)} tables; give each table one."
        )
    parties: dict[str, list[Attribute]] = {}
    flags: list[Flag] = []
    likely: list[Offer] = []
    left_out: list[LeftOut] = []
    for i, (table, party) in enumerate(zip(tables, names, strict=True)):
        check_ids(table, id, f"Table {i + 1}")
        if id is not None and (several := several_rows(table[id])) is not None:
            flags.append(Flag(party, id, several.found, several.as_id(id)))
        kept = [name for name in table.column_names if name != id and name not in dropped]
        drafted, flagged, offered, without = _attributes(
            tables, chosen, table.select(kept), party, dates
        )
        parties[party] = [in_order(each, headers[i]) for each in drafted]
        known = remarks(headers[i].values())
        flags += [Flag(party, name, *known[name]) for name in kept if name in known]
        flags += flagged
        left_out += without
        likely += offered
        if not parties[party]:
            why = f"; {flags[-1]}" if flags else ""
            raise SchemaError(f"Table {i + 1} has no column with a domain except the id{why}")
    form, differ = (
        (None, ()) if id is None else joint_form(dict(zip(names, tables, strict=True)), id, read)
    )
    schema = Schema.of(parties, public=False)
    schema = replace(schema, reads=tuple(zip(names, map(_reading, reads), strict=True)))
    schema = replace(schema, ids=form, ids_source=None if form is None else DRAFTED)
    return Draft(schema, (*flags, *differ), tuple(likely), tuple(left_out))


def _reading(read: ReadOptions) -> Reading:
    """How a table is read, as a schema has it."""
    return Reading(
        read.id_format,
        read.delimiter,
        read.charset,
        read.lines_before,
        read.no_header,
        read.columns,
    )


def _names(drop: Iterable[str]) -> list[str]:
    names = [*drop]
    check(TableError, {"drop": names}, drop=each(TEXT))
    return names


def _read(
    sources: Source | Sequence[Source], id: str | None, read: ReadOptions
) -> tuple[list[pa.Table], list[bool], list[ReadOptions], list[dict[str, Variable]]]:
    """The tables, whether their types were chosen by somebody, how each is read, and what its header says of columns."""
    tables, chosen, reads, headers = [], [], [], []
    for source in several(sources):
        reads.append(_guessed(source, read))
        # A file is opened once.
        lies = isinstance(source, str | os.PathLike | Part)
        opened = open_pieces(source, reads[-1]) if lies else source
        table = read_arrow(opened, reads[-1])
        chosen.append(not isinstance(opened, Pieces) or opened.typed)
        about = opened.about if isinstance(opened, Pieces) else ()
        headers.append({variable.name: variable for variable in about})
        pieces = named_ids(open_pieces(table), read, id)
        tables.append(table if table.column_names == [*pieces.names] else pieces.whole(None))
    return tables, chosen, reads, headers


def _attributes(
    tables: Sequence[pa.Table],
    chosen: Sequence[bool],
    table: pa.Table,
    party: str,
    dates: DateOrder | None,
) -> tuple[list[Attribute], list[Flag], tuple[Offer, ...], list[LeftOut]]:
    """Draft the attributes of a party's table, one of several tables, with what likely holds of them,
    and the columns that are left out; ``chosen`` says whether their types were.
    """
    attributes: list[Attribute] = []
    flags: list[Flag] = []
    left_out: list[LeftOut] = []
    for name in table.column_names:

        def flag(problem: str, done: str, name: str = name) -> None:
            flags.append(Flag(party, name, problem, done))

        column = table[name]
        namesakes = [other[name] for other in tables if name in other.column_names]
        if len(namesakes) > 1 and len({each.type for each in namesakes}) == 1:
            column = pa.chunked_array([chunk for each in namesakes for chunk in each.chunks])
            flag(
                "is in several tables",
                "treated as one column; rename it in one of them if they differ",
            )
        try:
            if (several := people_of(name, column)) is not None:
                raise Excluded(
                    several.found, "ids of people with several rows", several.remedy(name)
                )
            typed = all(
                t for t, each in zip(chosen, tables, strict=True) if name in each.column_names
            )
            drafted = draft_attribute(name, column, flag, dates, typed)
            attributes.append(replace(drafted, source=DRAFTED))
        except Excluded as reason:
            done = f"left out; {reason.keep}" if several is not None else "left out"
            flag(str(reason), done)
            left_out.append(LeftOut(party, name, reason.read_as, reason.shapes, reason.keep))
    likely = tuple(offers(table, attributes))
    flags += [Flag(party, offer.column, offer.found, offer.done) for offer in likely]
    return attributes, flags, likely, left_out


def joint_form(
    tables: Mapping[str, pa.Table], id: str, read: ReadOptions
) -> tuple[str | None, tuple[Flag, ...]]:
    """The form of the ids in all tables, by party. None, and a flag, if it differs."""
    forms = {
        party: id_form(id_shapes(format_ids(table[id], read.id_format)))
        for party, table in tables.items()
    }
    first, *_ = forms
    if len(set(forms.values())) == 1:
        return forms[first], ()
    written = ", ".join(f"{form!r} at {party}" for party, form in forms.items())
    problem, done = f"has ids of different forms, {written}", "no record may match; write ids alike"
    return None, (Flag(first, id, problem, done),)


def check_ids(table: pa.Table, id: str | None, where: str) -> None:
    """Check that a table has records, and an id column whose values can be record ids.

    Raises:
        TableError: it does not.
    """
    if id is not None and id not in table.column_names:
        raise without_column(where, "id", id, table.column_names)
    column = f"{where}, id column {id!r}"
    if not table.num_rows:
        raise TableError(f"{where} has no records{header_doubt(table.column_names)}.")
    if id is not None and (
        few := few_ids(
            pc.count_distinct(as_texts(table[id], column)).as_py(), table.num_rows, column
        )
    ):
        raise TableError(few)


def _guessed(source: Source, read: ReadOptions) -> ReadOptions:
    """How a file is read: as its header and first bytes suggest, where that is not stated."""
    path = first_file(source)
    if path is None:
        return read
    if format_of(path, read) is CSV:
        with reading(path):
            encoding = encoding_of(csv_head(path, read.no_header))
            if not read.encoding and encoding != read.charset:
                LOG.warning("%s is not UTF-8: read as %s, as the draft says.", path, encoding)
                read = replace(read, encoding=encoding)
            if not read.no_header and not read.delimiter:
                _, delimiter = csv_header(path, read)
                if delimiter != ",":
                    LOG.warning("%s: cells are separated by %r, as in the header.", path, delimiter)
                    read = replace(read, delimiter=delimiter)
    return as_found(source, read)
