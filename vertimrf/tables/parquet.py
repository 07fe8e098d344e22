"""Open Parquet files, whose headers say more of columns than their types."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from ..files.canonical import json_of
from . import arrow
from .arrow import Pieces, RecordBatches
from .dropped import Unreadable
from .read_options import ReadOptions

# Bytes of a column of a Parquet file that are read at a time.
READ_BYTES = 1 << 20


def parquet(path: Path, read: ReadOptions) -> Pieces:
    """Open a Parquet file."""
    # A dictionary that is not asked for is made by a cast, which refuses bytes that are no text.
    # Reading ahead would load whole row groups, which may be the whole file.
    from pyarrow.parquet import ParquetFile, read_schema

    # Times of 96 bits (INT96), as Spark, Impala and Hive write them, would wrap around outside the years 1678 to 2261 as nanoseconds.
    schema = read_schema(path)
    asked = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    # Batches have the dictionaries in their order, and do not say that it has a meaning.
    in_order = {name for name in asked if schema.field(name).type.ordered}
    spans = _durations(schema)

    def batches(columns: Sequence[str], _: Unreadable) -> RecordBatches:
        with ParquetFile(
            path,
            read_dictionary=asked,
            pre_buffer=False,
            buffer_size=READ_BYTES,
            coerce_int96_timestamp_unit="us",
        ) as file:
            # Each batch costs the same time besides its rows. Of many columns, batches take less memory.
            many = len(columns) * arrow.PIECE_ROWS > arrow.PIECE_CELLS
            rows = arrow.PIECE_ROWS // (4 if many else 2)
            for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                batch = _ordered(batch, in_order) if in_order else batch
                yield _with_durations(batch, spans) if spans else batch

    return Pieces(tuple(schema.names), str(path), batches)


def _ordered(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """A batch in which the dictionaries of some columns say that their order has a meaning."""
    columns = [
        pa.DictionaryArray.from_arrays(column.indices, column.dictionary, ordered=True)
        if name in names and pa.types.is_dictionary(column.type)
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _durations(schema: pa.Schema) -> frozenset[str]:
    """Columns of times of day that are durations, as the file's header says of pandas' columns: fastparquet has no other type for them."""
    try:
        columns = json_of((schema.metadata or {}).get(b"pandas", b"{}"))["columns"]
        spans = {each["name"] for each in columns if each["numpy_type"].startswith("timedelta64")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
    return frozenset(f.name for f in schema if f.name in spans and pa.types.is_time64(f.type))


def _with_durations(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """A batch in which the times of day of some columns are durations."""
    columns = [
        column.cast(pa.int64()).cast(pa.duration(column.type.unit)) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)
