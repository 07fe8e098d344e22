"""Decode the codes of synthetic rows to values of the original types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Flags, Floats, Integral
from ..columns.column import Attribute
from ..columns.inside import Span
from ..columns.places import Places
from ..errors import TableError
from ..kernels.jit import for_each
from ..plan.defaults import HOLDERS_COLUMN
from ..plan.equations import Equation, Rule, computed_domains
from ..plan.rules import Order
from ..plan.schema import Schema
from .ordered import keep_order

# Rows that are decoded at a time.
PIECE_ROWS = 1 << 18


NO_SPANS: Mapping[int, Span] = {}
NO_SHAPES: Mapping[int, Floats] = {}


def decode_pieces(
    codes: Integral,
    attributes: Sequence[Attribute],
    rng: np.random.Generator,
    spans: Mapping[int, Span] = NO_SPANS,
    rules: Sequence[Rule] = (),
    absent: Flags | None = None,
    shapes: Mapping[int, Floats] = NO_SHAPES,
) -> Iterator[pa.Table]:
    """Decode codes to values of the original types, in pieces, at least one.

    Values take several times the memory of codes.

    Args:
        codes: one row per attribute [shape=(d, n), integer].
        attributes: domain of each row.
        rng: draws numbers inside bins.
        spans: by position, the limits of a numeric attribute.
        rules: rules of the schema, which the values keep. No attribute of an order has a limit.
        absent: values that no party has [shape=(d, n), bool]. Sums of them are missing.
        shapes: by position, how values are spread inside bins (:meth:`.Attribute.shape`).

    Yields:
        Arrow tables of successive rows. Categorical attributes have their declared values, integer
        attributes their codes, numeric attributes values inside the bin (whole numbers, multiples
        of a step, dates or times as declared). Missing values are null. Encoding the tables gives
        ``codes`` again. Columns that equations compute come last.

    Raises:
        TableError: a code is outside its attribute's domain.
    """
    for attribute, row in zip(attributes, codes, strict=True):
        if len(row) and not (row.min() >= 0 and row.max() < attribute.size):
            raise TableError(
                f"Attribute {attribute.name!r} has the codes 0 to {attribute.size - 1}, not {row.min()} to {row.max()}."
            )
    orders = [rule for rule in rules if isinstance(rule, Order)]
    computed = computed_domains((r for r in rules if isinstance(r, Equation)), attributes)
    needed = {name for equation in computed for name in equation.columns}
    absent = np.broadcast_to(np.False_, codes.shape) if absent is None else absent
    # The density inside bins follows from the counts of all rows.
    inside = [
        spans[place]
        if place in spans
        else attribute.span(np.bincount(row, minlength=attribute.size), shapes.get(place))
        for place, (attribute, row) in enumerate(zip(attributes, codes, strict=True))
    ]

    def again(place: int, row: Integral) -> Floats:
        span = inside[place]
        assert span is not None
        return attributes[place].drawn(row, span, rng.random(len(row)))

    places = Places.of(codes, attributes, inside, absent)
    for first in range(0, max(codes.shape[1], 1), PIECE_ROWS):
        rows = slice(first, first + PIECE_ROWS)
        piece = codes[:, rows]
        drawn = [
            None if span is None else attribute.drawn(row, span, at)
            for attribute, row, span, at in zip(
                attributes, piece, inside, places.drawn(piece, absent[:, rows], rng), strict=True
            )
        ]
        if orders:
            keep_order(orders, attributes, piece, absent[:, rows], drawn, again, rng)
        columns = _columns(attributes, piece, drawn)
        terms = {
            term.name: np.where(away, np.nan, term.coded_numbers(row, numbers))
            for term, row, numbers, away in zip(
                attributes, piece, drawn, absent[:, rows], strict=True
            )
            if term.name in needed
        }
        for equation, attribute in computed.items():
            terms[equation.name] = equation.total(terms, attribute)
            columns[equation.name] = attribute.typed(terms[equation.name])
        yield pa.table(columns)


def _columns(
    attributes: Sequence[Attribute], codes: Integral, drawn: Sequence[Floats | None]
) -> dict[str, pa.Array]:
    """The values of all attributes, by name."""
    cells = for_each(len(attributes), lambda i: attributes[i].arrow(codes[i], drawn[i]))
    return {attribute.name: values for attribute, values in zip(attributes, cells, strict=True)}


def decode_rows(
    codes: Integral,
    schema: Schema,
    rng: np.random.Generator,
    party_sets: Sequence[Sequence[str]],
    holders: Integral | None,
    spans: Mapping[int, Span] = NO_SPANS,
    shapes: Mapping[int, Floats] = NO_SHAPES,
) -> Iterator[pa.Table]:
    """Decode the rows of a schema in pieces, with the parties that hold them.

    Args:
        codes, rng, spans, shapes: as for :func:`decode_pieces`.
        schema: attributes and parties.
        party_sets, holders: as for :func:`with_holders`; no holders where all parties hold all rows.

    Yields:
        Arrow tables of successive rows.
    """
    first = 0
    absent = None
    if holders is not None:
        known = [
            [any(schema.party_names[i] in parties for i in holding) for parties in party_sets]
            for holding in schema.holders
        ]
        absent = ~np.array(known)[:, holders]
    for piece in decode_pieces(codes, schema.attributes, rng, spans, schema.rules, absent, shapes):
        rows = slice(first, first + piece.num_rows)
        yield piece if holders is None else with_holders(piece, schema, party_sets, holders[rows])
        first = rows.stop


def with_holders(
    table: pa.Table,
    schema: Schema,
    party_sets: Sequence[Sequence[str]],
    holders: Integral,
) -> pa.Table:
    """Set values to null that no party of a row's set has, and add a last column with the row's
    parties.

    Args:
        table: rows from :func:`decode_pieces`.
        schema: attributes and parties.
        party_sets: sets of parties, by name.
        holders: index of each row's set [shape=(rows,), integer].

    Returns:
        The table with nulls and the last column.
    """
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for party, names in schema.parties:
        absent = pa.array(~np.array([party in parties for parties in party_sets])[holders])
        for name in names:
            columns[name] = pc.if_else(absent, pa.scalar(None, table[name].type), table[name])
    labels = pa.array(["+".join(parties) for parties in party_sets])
    return pa.table({**columns, HOLDERS_COLUMN: labels.take(pa.array(holders))})
