"""Columns of a schema's equations in tables: derived where they are absent, and compared."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pyarrow as pa

from ..arrays import Flags, Floats
from ..columns.column import Attribute
from ..errors import SchemaError
from ..plan.equations import Equation
from ..plan.schema import Schema
from .arrow import Pieces, RecordBatches
from .dropped import Tally, Unreadable
from .ids import named_ids
from .read_options import DEFAULT, ReadOptions
from .sources import Source, open_pieces

# Numbers are equal if they differ by no more than this, or by this part of them: the error of
# floating point.
ABSOLUTE, RELATIVE = 1e-9, 1e-12


def as_stated(read: ReadOptions, schema: Schema, party: str) -> ReadOptions:
    """How a party's table is read: as options say, and where they have their defaults, as the schema."""
    stated = msgspec.to_builtins(schema.reading(party))
    return replace(
        read,
        **{key: its for key, its in stated.items() if getattr(read, key) == getattr(DEFAULT, key)},
    )


def party_table(
    source: Source, read: ReadOptions, id: str | None, columns: Iterable[str]
) -> Pieces:
    """Open a party's table, with the ids that several of its columns have together.

    Everything that decides how its records are read is public: what is stated, the schema's columns,
    and what the file has beside its records.

    Args:
        source: anything that :func:`vertimrf.tables.sources.open_pieces` opens.
        read: how it is read.
        id: column of record ids, or None.
        columns: the schema's, for a table whose rows name their cells.
    """
    parts = [part for name in (id, read.person) if name is not None for part in name.split(",")]
    pieces = open_pieces(source, read).asked([*parts, *columns])
    return named_ids(pieces, read, id, read.person)


def opened(
    sources: Sequence[Source], schema: Schema | None, read: ReadOptions, party: str | None = None
) -> tuple[Sequence[Source], ReadOptions]:
    """The tables of a schema's parties, or of one, each read :func:`as_stated`, and how ids are.

    Ids of all are normalised alike.
    """
    parties = [party] if party or schema is None else schema.party_names
    if schema is None or len(sources) != len(parties):
        return sources, read
    reads = [as_stated(read, schema, str(name)) for name in parties]
    formats = tuple({name for each in reads for name in each.id_format})
    tables = [
        source if each == read else open_pieces(source, each)
        for source, each in zip(sources, reads, strict=True)
    ]
    return tables, replace(read, id_format=formats)


def with_derived(
    sources: Sequence[Source],
    schema: Schema,
    wanted: Collection[str],
    read: ReadOptions = DEFAULT,
) -> list[Pieces]:
    """Open tables, with the numbers that all of them lack and an equation gives from columns of one.

    A derived cell is missing if one of the cells that it is derived from is no number.

    Args:
        sources: anything that :func:`vertimrf.tables.sources.read_arrow` reads.
        schema: attributes and equations.
        wanted: the columns to derive. Other columns that equations compute are left out.
        read: how the tables are read.
    """
    tables = [open_pieces(source, read) for source in sources]
    absent = set(wanted).difference(*(pieces.names for pieces in tables))
    computed = {equation.name for equation in schema.equations}.difference(wanted)
    out = []
    for pieces in tables:
        for rule in schema.equations:
            for one in (rule, *map(rule.solved, sorted(rule.columns))):
                if (
                    one.name in absent.difference(pieces.names)
                    and one.columns.issubset(pieces.names)
                    and schema.domains[one.name].instants is None
                ):
                    batches = functools.partial(_batches, pieces, one, schema.domains)
                    pieces = replace(pieces, names=(*pieces.names, one.name), batches=batches)
        names = tuple(name for name in pieces.names if name not in computed)
        out.append(replace(pieces, names=names))
    return out


def _batches(
    pieces: Pieces,
    equation: Equation,
    domains: Mapping[str, Attribute],
    columns: Sequence[str],
    unreadable: Unreadable,
) -> RecordBatches:
    """Batches of a table and the column that an equation gives."""
    if equation.name not in columns:
        yield from pieces.batches(columns, unreadable)
        return
    needed = {*columns, *equation.columns} - {equation.name}
    for piece in pieces.read(sorted(needed), unreadable):
        total = pa.array(_total(equation, piece, domains, pieces.where), from_pandas=True)
        yield from piece.append_column(equation.name, total).select(list(columns)).to_batches()


def _total(
    equation: Equation, table: pa.Table, domains: Mapping[str, Attribute], where: str
) -> Floats:
    """The sum of an equation, NaN where a term is no number [shape=(n,), float64]."""
    numbers = {name: numbers_of(table, domains[name], where) for name in equation.columns}
    return equation.total(numbers, domains[equation.name])


def numbers_of(table: pa.Table, attribute: Attribute, where: str) -> Floats:
    """A column as numbers [shape=(n,), float64]; NaN if it has a type without any."""
    name = attribute.name
    try:
        return attribute.numbers(table[name], f"{where}: column {name!r}")[0]
    except SchemaError:
        return np.full(table.num_rows, np.nan)


def breaking(source: Source, schema: Schema, read: ReadOptions = DEFAULT) -> dict[Equation, Tally]:
    """By equation, the records of a table that do not keep it.

    Equations of which the table lacks a column are left out.
    """
    pieces = open_pieces(source, read)
    out: dict[Equation, Tally] = {}
    for equation in schema.equations:
        columns, before = [equation.name, *equation.columns], 0
        if set(columns).issubset(pieces.names):
            out[equation] = Tally()
            for piece in pieces.read(columns, lambda *_: None):
                stated = numbers_of(piece, schema.domains[equation.name], pieces.where)
                total = _total(equation, piece, schema.domains, pieces.where)
                broken = differ(stated, total, equation.tolerance(schema.domains))
                out[equation] = out[equation].then(Tally.of(broken, before))
                before += piece.num_rows
    return out


def differ(one: Floats, other: Floats, tolerance: float = 0.0) -> Flags:
    """Which numbers differ by more than the error of floating point; NaN equals NaN.

    Args:
        one, other: the numbers [each shape=(n,), float64].
        tolerance: by which they may differ besides: a part of them or, below 1, a number.
    """
    relative, absolute = RELATIVE + tolerance, ABSOLUTE + tolerance
    out: Flags = ~np.isclose(one, other, relative, absolute, equal_nan=True)
    return out
