"""Synthetic rows in values of the original kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TableError
from ..plan.attribute import Attribute
from ..plan.defaults import HELD_BY
from ..plan.schema import Schema

__all__ = ["decode", "decode_pieces", "with_holders"]

# Rows that are decoded at a time.
PIECE_ROWS = 1 << 18


def decode(
    codes: npt.NDArray[np.integer], attributes: Sequence[Attribute], rng: np.random.Generator
) -> pa.Table:
    """Turn codes back into the original kind of values.

    Args:
        codes: one row per attribute [shape=(d, n), integer].
        attributes: their domains.
        rng: draws numbers inside bins.

    Returns:
        An Arrow table: text, numbers or true/false as declared; codes of integer attributes as they are; numeric values inside
        their bin, whole ones where the attribute is integral, multiples of its resolution, dates and times where it says so;
        missing values null. Encoding the result gives back ``codes``.

    Raises:
        TableError: a code is outside its attribute's domain.
    """
    return pa.concat_tables(decode_pieces(codes, attributes, rng))


def decode_pieces(
    codes: npt.NDArray[np.integer],
    attributes: Sequence[Attribute],
    rng: np.random.Generator,
    holding: Callable[[pa.Table, slice], pa.Table] = lambda piece, rows: piece,
) -> Iterator[pa.Table]:
    """As :func:`decode`, piece by piece, one at least: values take several times the memory of codes.

    Args:
        codes, attributes, rng: as there.
        holding: makes more of each piece, told which rows it has.

    Raises:
        TableError: a code is outside its attribute's domain.
    """
    for attribute, row in zip(attributes, codes, strict=True):
        if len(row) and not (row.min() >= 0 and row.max() < attribute.size):
            raise TableError(
                f"Attribute {attribute.name!r} has the codes 0 to {attribute.size - 1}, not {row.min()} to {row.max()}."
            )
    # The shape inside bins is that of all rows.
    counts = [
        np.bincount(row, minlength=attribute.size)[: len(attribute.edges) - 1]
        if attribute.kind == "numeric"
        else np.empty(0, np.int64)
        for attribute, row in zip(attributes, codes, strict=True)
    ]
    for first in range(0, max(codes.shape[1], 1), PIECE_ROWS):
        rows = slice(first, first + PIECE_ROWS)
        columns = {
            attribute.name: _decoded(attribute, row[rows], own, rng)
            for attribute, row, own in zip(attributes, codes, counts, strict=True)
        }
        yield holding(pa.table(columns), rows)


def _decoded(
    attribute: Attribute,
    row: npt.NDArray[np.integer],
    counts: npt.NDArray[np.integer],
    rng: np.random.Generator,
) -> pa.Array:
    """One column's values; ``counts`` are those of a numeric attribute's bins in all rows."""
    missing = (row == attribute.size - 1) if attribute.missing else np.zeros(len(row), bool)
    # Missing cells get some valid code, with a null over it below.
    present = np.where(missing, 0, row).astype(np.int64)
    if attribute.kind == "categorical":
        return pa.array(list(attribute.values)).take(pa.array(present, mask=missing))
    # Missing cells are drawn no number.
    held = present[~missing]
    values = (
        pa.array(held)
        if attribute.kind == "integer"
        else numbers_inside(attribute, held, counts, rng)
    )
    return values.take(pa.array(np.cumsum(~missing) - 1, mask=missing)) if missing.any() else values


def with_holders(
    table: pa.Table, schema: Schema, holders: Sequence[Sequence[str]], held: npt.NDArray[np.integer]
) -> pa.Table:
    """Rows of people that not every party holds: null where none does, and a last column that says who does.

    Args:
        table: as :func:`decode` gives it.
        schema: attributes and parties.
        holders: sets of parties, by name.
        held: which of them each row's is, by number [shape=(rows,)].
    """
    columns = {}
    for party, names in schema.parties:
        absent = pa.array(~np.array([party in own for own in holders])[held])
        for name in names:
            columns[name] = pc.if_else(absent, pa.scalar(None, table[name].type), table[name])
    columns = {name: columns[name] for name in table.column_names}
    return pa.table(
        {**columns, HELD_BY: pa.array(["+".join(own) for own in holders]).take(pa.array(held))}
    )


def numbers_inside(
    attribute: Attribute,
    codes: npt.NDArray[np.int64],
    counts: npt.NDArray[np.integer],
    rng: np.random.Generator,
) -> pa.Array:
    """Numbers inside the bins of a numeric attribute, of the kind it declares [length n].

    Inside a bin the density is a line that keeps the bin's count and stays between its neighbours' densities, level where both
    are higher or both are lower (van Leer's limiter): evenly filled, the long last bins of a tail would widen it.
    """
    bins = len(attribute.edges) - 1
    if attribute.step:
        # A multiple of the step stands for all numbers up to the next.
        low, high = np.array([attribute.multiples(code) for code in range(bins)]).T
        bounds = np.append(low, high[-1] + 1).astype(float)
        steps = np.floor(drawn_inside(bounds, codes, counts, rng)).astype(np.int64)
        steps = np.clip(steps, low[codes], high[codes])
    else:
        bounds = np.array(attribute.edges)
    if attribute.calendar is not None:
        whole = steps * int(attribute.step)
        return (
            pa.array(whole)
            .cast(pa.int32() if attribute.calendar != "timestamp" else pa.int64())
            .cast(arrow_type(attribute))
        )
    if attribute.integral:
        return pa.array(steps)
    # 3 * 0.1 is 0.30000000000000004.
    numbers = (
        np.round(steps * attribute.step, 12)
        if attribute.step
        else drawn_inside(bounds, codes, counts, rng)
    )
    # Rounding may reach the upper edge, which belongs to the next bin.
    edges = np.array(attribute.edges)
    below = np.where(codes == bins - 1, edges[-1], np.nextafter(edges[codes + 1], -np.inf))
    return pa.array(np.clip(numbers, edges[codes], below))


def arrow_type(attribute: Attribute) -> pa.DataType:
    """What dates, times of day and timestamps are in Arrow."""
    if attribute.calendar == "timestamp":
        return pa.timestamp("s", tz=attribute.timezone)
    return pa.date32() if attribute.calendar == "date" else pa.time32("s")


def drawn_inside(
    bounds: npt.NDArray[np.float64],
    codes: npt.NDArray[np.int64],
    counts: npt.NDArray[np.integer],
    rng: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """A number inside the bin of every code [shape=(n,)]; bin i is from bounds[i] to bounds[i + 1], and of all numbers
    ``counts[i]`` lie in it.
    """
    width, middle = np.diff(bounds), (bounds[1:] + bounds[:-1]) / 2
    density = counts / width
    # Beyond the bounds there is nothing.
    beside = np.concatenate([[0], density, [0]])
    at = np.concatenate([bounds[:1], middle, bounds[-1:]])
    fall, rise = density - beside[:-2], beside[2:] - density
    slope = (beside[2:] - beside[:-2]) / (at[2:] - at[:-2]) * width / 2
    limit = np.minimum(np.minimum(np.abs(fall), np.abs(rise)), np.abs(slope))
    # The density inside goes from 1 - tilt to 1 + tilt times its mean.
    tilt = np.where(fall * rise > 0, np.sign(fall) * limit, 0) / np.where(density > 0, density, 1)
    u, tilt = rng.random(len(codes)), tilt[codes]
    share = 2 * u / (1 - tilt + np.sqrt((1 - tilt) ** 2 + 4 * tilt * u))
    return bounds[codes] + width[codes] * share
