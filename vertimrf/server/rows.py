"""Synthetic rows in values of the original kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import TableError
from ..plan.schema import Attribute

__all__ = ["decode"]


def decode(codes: npt.NDArray[np.integer], attributes: Sequence[Attribute], rng: np.random.Generator) -> pa.Table:
    """Turn codes back into the original kind of values.

    Args:
        codes: one row per attribute [shape=(d, n), integer].
        attributes: their domains.
        rng: draws numbers inside bins.

    Returns:
        An Arrow table: text, whole numbers or true/false as declared; codes of integer attributes as they are; numeric
        values uniform inside their bin, whole ones where the attribute is integral; missing values null. Encoding the
        result gives back ``codes``.

    Raises:
        TableError: a code is outside its attribute's domain.
    """
    columns = {}
    for attribute, row in zip(attributes, codes, strict=True):
        if len(row) and not (row.min() >= 0 and row.max() < attribute.size):
            raise TableError(
                f"Attribute {attribute.name!r} has the codes 0 to {attribute.size - 1}, not {row.min()} to {row.max()}."
            )
        missing = (row == attribute.size - 1) if attribute.missing else np.zeros(len(row), bool)
        # Missing cells get some valid code, with a null over it below.
        present = np.where(missing, 0, row).astype(np.int64)
        if attribute.kind == "categorical":
            column = pa.array(list(attribute.values)).take(pa.array(present, mask=missing))
        else:
            values = present if attribute.kind == "integer" else numbers_inside(attribute, present, rng)
            column = pa.array(values, mask=missing)
        columns[attribute.name] = column
    return pa.table(columns)


def numbers_inside(attribute: Attribute, codes: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Uniform numbers inside the bins of a numeric attribute; int64 if it is integral, else float64 [shape=(n,)]."""
    if attribute.integral:
        low, high = np.array([attribute.whole_range(code) for code in range(len(attribute.edges) - 1)]).T
        whole: npt.NDArray[np.int64] = rng.integers(low[codes], high[codes], endpoint=True)
        return whole
    edges = np.array(attribute.edges)
    low, high = edges[codes], edges[codes + 1]
    # Rounding may reach the upper edge, which belongs to the next bin.
    numbers: npt.NDArray[np.float64] = np.minimum(low + (high - low) * rng.random(len(codes)), np.nextafter(high, low))
    return numbers
