"""Frames of polars, and their columns of types that Arrow lacks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .objects import Cells, from_objects, of_one_type

# Types of polars that Arrow does not have. Of Python objects Arrow would get addresses alone.
POLARS_WIDE = {"Int128", "UInt128"}
POLARS_OWN = {"Object", *POLARS_WIDE}


def package_of(source: Any) -> str:
    """The package of an object's class."""
    return type(source).__module__.partition(".")[0].lstrip("_")


def types_of(source: Any) -> set[str]:
    """Names of the types of a polars frame's columns; none of any other object."""
    is_frame = package_of(source) == "polars" and hasattr(source, "iter_columns")
    return set(map(str, source.dtypes)) if is_frame else set()


def of_polars(series: Any) -> pa.ChunkedArray:
    """A column of a frame, as one of a type of Arrow."""
    wide = str(series.dtype) in POLARS_WIDE
    cells = from_objects(series.to_list(), True)[0] if wide else series.to_arrow()
    return of_one_type(pa.chunked_array([cells]))


def polars_column(series: Any) -> Cells:
    """A column of a frame, and by row the types of objects that are left out."""
    if str(series.dtype) in POLARS_OWN:
        return from_objects(series.to_list())
    return series.to_arrow(), {}
