"""Decode the codes of synthetic rows to values of the original types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import Flags, Floats, Integers
from ..errors import TableError
from ..plan.attribute import Attribute
from ..plan.defaults import HOLDERS_COLUMN
from ..plan.equations import Equation, Rule
from ..plan.rules import Order, times
from ..plan.schema import Schema
from .ordered import coded_numbers, keep_order

# Rows that are decoded at a time.
PIECE_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class Span:
    """Limits between which all numbers of a column are drawn.

    Attributes:
        low, high: the limits. Where numbers are multiples of a step, they count steps, and ``high``
            is excluded.
        counts: records of each bin, which decide the density inside bins [shape=(bins,)].
    """

    low: float
    high: float
    counts: npt.NDArray[np.number]


NO_SPANS: Mapping[int, Span] = {}


def decode_pieces(
    codes: npt.NDArray[np.integer],
    attributes: Sequence[Attribute],
    rng: np.random.Generator,
    spans: Mapping[int, Span] = NO_SPANS,
    rules: Sequence[Rule] = (),
    absent: Flags | None = None,
) -> Iterator[pa.Table]:
    """Decode codes to values of the original types, in pieces, at least one.

    Values take several times the memory of codes.

    Args:
        codes: one row per attribute [shape=(d, n), integer].
        attributes: domain of each row.
        rng: draws numbers inside bins.
        spans: by position, the limits of a numeric attribute.
        rules: rules of the schema, which the values keep. No attribute of an order has a limit.
        absent: values that no rule has to consider [shape=(d, n), bool]. Sums of them are missing.

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
    computed = {rule: rule.attribute(attributes) for rule in rules if isinstance(rule, Equation)}
    absent = np.broadcast_to(np.False_, codes.shape) if absent is None else absent
    # The density inside bins follows from the counts of all rows.
    inside = [
        spans[place]
        if place in spans
        else Span(
            -np.inf, np.inf, np.bincount(row, minlength=attribute.size)[: len(attribute.edges) - 1]
        )
        if attribute.kind == "numeric"
        else None
        for place, (attribute, row) in enumerate(zip(attributes, codes, strict=True))
    ]

    def again(place: int, row: npt.NDArray[np.integer]) -> Floats:
        span = inside[place]
        assert span is not None
        return _drawn(attributes[place], row, span, rng)

    for first in range(0, max(codes.shape[1], 1), PIECE_ROWS):
        rows = slice(first, first + PIECE_ROWS)
        piece = codes[:, rows]

        drawn = [
            None if span is None else _drawn(attribute, row, span, rng)
            for attribute, row, span in zip(attributes, piece, inside, strict=True)
        ]
        if orders:
            keep_order(orders, attributes, piece, absent[:, rows], drawn, again, rng)
        columns = {
            attribute.name: _decoded(attribute, row, numbers)
            for attribute, row, numbers in zip(attributes, piece, drawn, strict=True)
        }
        for equation, attribute in computed.items():
            terms = {
                term.name: np.where(away, np.nan, coded_numbers(term, row, numbers))
                for term, row, numbers, away in zip(
                    attributes, piece, drawn, absent[:, rows], strict=True
                )
                if term.name in equation.columns
            }
            columns[equation.name] = _typed(attribute, equation.total(terms, attribute))
        yield pa.table(columns)


def decode_rows(
    codes: npt.NDArray[np.integer],
    schema: Schema,
    rng: np.random.Generator,
    party_sets: Sequence[Sequence[str]],
    holders: npt.NDArray[np.integer] | None,
    spans: Mapping[int, Span] = NO_SPANS,
) -> Iterator[pa.Table]:
    """Decode the rows of a schema in pieces, with the parties that hold them.

    Args:
        codes, rng, spans: as for :func:`decode_pieces`.
        schema: attributes and parties.
        party_sets, holders: as for :func:`with_holders`; no holders where all parties hold all rows.

    Yields:
        Arrow tables of successive rows.
    """
    first = 0
    absent = None
    if holders is not None and schema.rules:
        known = [
            [any(schema.party_names[i] in parties for i in holding) for parties in party_sets]
            for holding in schema.holders
        ]
        absent = ~np.array(known)[:, holders]
    for piece in decode_pieces(codes, schema.attributes, rng, spans, schema.rules, absent):
        rows = slice(first, first + piece.num_rows)
        yield piece if holders is None else with_holders(piece, schema, party_sets, holders[rows])
        first = rows.stop


def _drawn(
    attribute: Attribute,
    row: npt.NDArray[np.integer],
    span: Span,
    rng: np.random.Generator,
) -> Floats:
    """Numbers of a numeric attribute, NaN where they are missing [shape=(n,), float64]."""
    numbers = np.full(len(row), np.nan)
    known = row < len(attribute.edges) - 1
    numbers[known] = numbers_inside(attribute, row[known].astype(np.int64), span, rng)
    return numbers


def _decoded(
    attribute: Attribute, row: npt.NDArray[np.integer], numbers: Floats | None
) -> pa.Array:
    """One column's values; a numeric attribute has ``numbers``."""
    if numbers is not None:
        return _typed(attribute, numbers)
    present = pa.array(row.astype(np.int64), mask=attribute.missing & (row == attribute.size - 1))
    return (
        pa.array(list(attribute.values)).take(present)
        if attribute.kind == "categorical"
        else present
    )


def with_holders(
    table: pa.Table,
    schema: Schema,
    party_sets: Sequence[Sequence[str]],
    holders: npt.NDArray[np.integer],
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


def numbers_inside(
    attribute: Attribute,
    codes: Integers,
    span: Span,
    rng: np.random.Generator,
) -> Floats:
    """Draw numbers inside the bins of a numeric attribute [shape=(n,), float64].

    The density inside a bin is linear. It keeps the bin's count and stays between the densities of
    the neighbours; it is constant if both neighbours are higher or both are lower (van Leer's
    limiter). A constant density would widen the tails.
    """
    bounds = bounds_of(attribute)
    tilt = _tilts(bounds, span.counts)
    low, high = (below[codes] for below in _below(bounds, tilt, span))
    u, tilt = low + (high - low) * rng.random(len(codes)), tilt[codes]
    share = 2 * u / (1 - tilt + np.sqrt((1 - tilt) ** 2 + 4 * tilt * u))
    numbers = bounds[codes] + np.diff(bounds)[codes] * share
    if attribute.step:
        first = np.maximum(bounds[codes], span.low)
        last = np.minimum(bounds[codes + 1], span.high) - 1
        numbers = times(np.clip(np.floor(numbers), first, last), attribute.step)
    if attribute.calendar is not None or attribute.integral:
        return numbers
    # Rounding may reach the upper edge, which belongs to the next bin.
    edges = np.array(attribute.edges)
    last_bin = codes == len(edges) - 2
    first, below = (
        edges[codes],
        np.where(last_bin, edges[-1], np.nextafter(edges[codes + 1], -np.inf)),
    )
    if not attribute.step:
        first, below = np.maximum(first, span.low), np.minimum(below, span.high)
    clipped: Floats = np.clip(numbers, first, below)
    return clipped


def _typed(attribute: Attribute, numbers: Floats) -> pa.Array:
    """Numbers of an attribute as its declared type, null where they are NaN [length n]."""
    missing = np.isnan(numbers)
    if attribute.calendar is None and not attribute.integral:
        return pa.array(numbers, mask=missing)
    whole = pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)
    if attribute.calendar is None:
        return whole
    if attribute.calendar == "timestamp":
        return whole.cast(pa.timestamp("s", tz=attribute.timezone))
    return whole.cast(pa.int32()).cast(
        pa.date32() if attribute.calendar == "date" else pa.time32("s")
    )


def bounds_of(attribute: Attribute) -> Floats:
    """Where the bins of a numeric attribute begin, and the end of the last one.

    A multiple of the step represents all numbers up to the next multiple: bounds then count steps.
    """
    if not attribute.step:
        return np.array(attribute.edges)
    multiples = [attribute.multiples(code) for code in range(len(attribute.edges) - 1)]
    return np.array([*(low for low, _ in multiples), multiples[-1][1] + 1], float)


def shares_inside(attribute: Attribute, span: Span) -> Floats:
    """Share of each bin's records that are drawn between limits [shape=(bins,), float64]."""
    bounds = bounds_of(attribute)
    low, high = _below(bounds, _tilts(bounds, span.counts), span)
    return high - low


def _tilts(bounds: Floats, counts: npt.NDArray[np.number]) -> Floats:
    """By bin: the density inside it rises from 1 - tilt to 1 + tilt times its mean."""
    width, middle = np.diff(bounds), (bounds[1:] + bounds[:-1]) / 2
    density = counts / width
    # The density beyond the bounds is 0.
    beside = np.concatenate([[0], density, [0]])
    at = np.concatenate([bounds[:1], middle, bounds[-1:]])
    fall, rise = density - beside[:-2], beside[2:] - density
    slope = (beside[2:] - beside[:-2]) / (at[2:] - at[:-2]) * width / 2
    limit = np.minimum(np.minimum(np.abs(fall), np.abs(rise)), np.abs(slope))
    tilt: Floats = np.where(fall * rise > 0, np.sign(fall) * limit, 0) / np.where(
        density > 0, density, 1
    )
    return tilt


def _below(bounds: Floats, tilt: Floats, span: Span) -> list[Floats]:
    """Share of each bin's records below either limit [each shape=(bins,), float64]."""
    places = [
        np.clip((limit - bounds[:-1]) / np.diff(bounds), 0, 1) for limit in (span.low, span.high)
    ]
    return [place * (1 - tilt * (1 - place)) for place in places]
