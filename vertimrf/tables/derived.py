"""Columns of equations: numbers that a table lacks, and columns that equations compute."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..arrays import Flags, Floats
from ..plan.attribute import Attribute
from ..plan.equations import Equation
from ..plan.schema import Schema
from .arrow import Pieces, Source, Unreadable, open_pieces
from .read_options import DEFAULT, ReadOptions
from .table import column_numbers

__all__ = ["breaking", "computed_numbers", "differ", "with_derived"]

# Sums count as equal that differ by no more than this, and this part of them: floating point has
# so much error.
ABSOLUTE, RELATIVE = 1e-9, 1e-12


def with_derived(source: Source, schema: Schema, read: ReadOptions = DEFAULT) -> Pieces:
    """Open a table without the columns that equations compute, and with the numbers that it lacks
    and an equation gives.

    A cell of these columns is missing if one of the cells that it is computed of is no number.

    Args:
        source: anything that :func:`vertimrf.tables.arrow.read_arrow` reads.
        schema: attributes and equations.
        read: how the table is read.
    """
    pieces = open_pieces(source, read)
    domains = {attribute.name: attribute for attribute in (*schema.attributes, *schema.computed)}
    for equation in schema.equations:
        for name in equation.columns.difference(pieces.names):
            solved = equation.solved(name)
            if domains[name].calendar is None and solved.columns.issubset(pieces.names):
                batches = functools.partial(_batches, pieces, solved, domains)
                pieces = replace(pieces, names=(*pieces.names, name), batches=batches)
    computed = {equation.name for equation in schema.equations}
    return replace(pieces, names=tuple(name for name in pieces.names if name not in computed))


def _batches(
    pieces: Pieces,
    equation: Equation,
    domains: Mapping[str, Attribute],
    columns: Sequence[str],
    unreadable: Unreadable | None,
) -> Iterator[pa.RecordBatch]:
    """Batches of a table and the column that an equation gives."""
    if equation.name not in columns:
        yield from pieces.batches(columns, unreadable)
        return
    needed = dict.fromkeys([*columns, *equation.columns])
    del needed[equation.name]
    for piece in pieces.read(list(needed), unreadable):
        numbers = _numbers(piece, [domains[name] for name in equation.columns], pieces.where)
        total = pa.array(equation.total(numbers, domains[equation.name]), from_pandas=True)
        yield from piece.append_column(equation.name, total).select(list(columns)).to_batches()


def _numbers(table: pa.Table, attributes: Iterable[Attribute], where: str) -> dict[str, Floats]:
    """Columns as numbers, by name."""
    return {
        attribute.name: column_numbers(
            attribute, table[attribute.name], f"{where}: column {attribute.name!r}"
        )[0]
        for attribute in attributes
    }


def computed_numbers(
    source: Source, schema: Schema, read: ReadOptions = DEFAULT
) -> dict[str, Floats]:
    """The numbers of a table's columns that equations compute, as the table has them, by name."""
    pieces = open_pieces(source, read)
    here = [attribute for attribute in schema.computed if attribute.name in pieces.names]
    columns = [_numbers(piece, here, pieces.where) for piece in pieces.read([a.name for a in here])]
    return {a.name: np.concatenate([numbers[a.name] for numbers in columns]) for a in here}


def breaking(source: Source, schema: Schema, read: ReadOptions = DEFAULT) -> dict[Equation, int]:
    """By equation, the number of records of a table whose columns differ from it.

    Equations with a column that the table lacks are left out.
    """
    pieces = open_pieces(source, read)
    domains = {attribute.name: attribute for attribute in (*schema.attributes, *schema.computed)}
    out: dict[Equation, int] = {}
    for equation in schema.equations:
        names = [equation.name, *equation.columns]
        if set(names).issubset(pieces.names):
            out[equation] = 0
            for piece in pieces.read(names, lambda *_: None):
                numbers = _numbers(piece, [domains[name] for name in names], pieces.where)
                total = equation.total(numbers, domains[equation.name])
                out[equation] += np.count_nonzero(differ(numbers[equation.name], total))
    return out


def differ(one: Floats, other: Floats) -> Flags:
    """Which numbers differ by more than errors of floating point; NaN equals NaN."""
    out: Flags = ~np.isclose(one, other, RELATIVE, ABSOLUTE, equal_nan=True)
    return out
