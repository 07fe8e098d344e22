"""Open tables wherever they lie, as streams of Arrow batches: files by content, and data frames."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ..errors import MessageError, TableError
from ..files.atomic import MAX_KEY, open_regular, read_bytes
from ..files.canonical import json_of
from ..privacy.standing import UNSTATED, Standing
from . import arrow
from .arrow import (
    STANDING_FILE,
    STANDING_KEY,
    Pieces,
    check_names,
    check_sound,
    collected,
    from_object,
    object_batches,
    object_columns,
    one_line,
)
from .csv_file import csv_batches, csv_names
from .dropped import Unreadable
from .read_options import DEFAULT, ReadOptions

Source = Any  # a path, or any object that read_arrow turns into an Arrow table
# Bytes of a column of a Parquet file that are read at a time.
READ_BYTES = 1 << 20


def read_arrow(source: Source, read: ReadOptions = DEFAULT) -> pa.Table:
    """Read a table.

    Args:
        source: path of a CSV (plain or gzipped), Parquet or Arrow IPC/Feather file, distinguished
            by content; or a pandas or polars frame (also lazy), a DuckDB relation, an Arrow table
            or record batch, or any object with ``__arrow_c_stream__`` or ``__dataframe__``.
        read: format of a CSV file.

    Returns:
        The Arrow table. Columns of a CSV file are text, so that 007 stays 007; the schema gives
        them meaning.

    Raises:
        TableError: the file is missing, or the source is not a table.
    """
    if isinstance(source, str | os.PathLike | Pieces):
        return open_pieces(source, read).whole(None)
    table = from_object(source)
    check_names(table.column_names, "The table")
    return table


def several(sources: Source | Sequence[Source]) -> Sequence[Source]:
    """Tables as a list, of one table or of several."""
    return sources if isinstance(sources, list | tuple) else [sources]


def name_of(source: Source, default: str = "The table") -> str:
    """The name of a table in errors: its path, or the default for an object in memory."""
    if isinstance(source, Pieces):
        return source.where
    return str(source) if isinstance(source, str | os.PathLike) else default


def open_pieces(source: Source, read: ReadOptions = DEFAULT) -> Pieces:
    """Open anything that :func:`read_arrow` reads as a table in pieces.

    Columns of a CSV file are text.

    Raises:
        TableError: the file is missing, or the source is not a table.
    """
    if isinstance(source, Pieces):
        return source
    if not isinstance(source, str | os.PathLike):
        source = collected(source)
        if columns := object_columns(source):
            names = [name for name, _ in columns]
            check_names(names, "The table")
            batches = functools.partial(object_batches, dict(columns))
            return Pieces(tuple(names), "The table", batches)
        table = read_arrow(source)
        return Pieces(
            tuple(table.column_names),
            "The table",
            lambda columns, _: iter(table.select(list(columns)).to_batches(arrow.PIECE_ROWS)),
        )
    path = Path(source)
    kind = file_kind(path)
    with reading(path):
        if kind == "parquet":
            names = pa.parquet.read_schema(path).names
        elif kind == "arrow":
            with pa.ipc.open_file(str(path)) as file:
                names = file.schema.names
        else:
            names = csv_names(path, read)
    check_names(names, str(path))
    return Pieces(tuple(names), str(path), functools.partial(_file_batches, path, kind, read))


def _file_batches(
    path: Path, kind: str, read: ReadOptions, columns: Sequence[str], unreadable: Unreadable
) -> Iterator[pa.RecordBatch]:
    """Batches of a file, each read on demand."""
    with reading(path):
        if kind == "parquet":
            # A dictionary that is not asked for is made by a cast, which refuses bytes that are no
            # text. Reading ahead would load whole row groups, which may be the whole file.
            asked = [f.name for f in pa.parquet.read_schema(path) if pa.types.is_dictionary(f.type)]
            with pa.parquet.ParquetFile(
                path, read_dictionary=asked, pre_buffer=False, buffer_size=READ_BYTES
            ) as file:
                yield from file.iter_batches(
                    batch_size=arrow.PIECE_ROWS // 4, columns=list(columns)
                )
        elif kind == "arrow":
            with pa.ipc.open_file(str(path)) as file:
                count = file.num_record_batches
            for i in range(count):
                # The file is opened again for each batch, so that pages of earlier batches are
                # released.
                with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
                    batch = file.get_batch(i).select(list(columns))
                    check_sound(batch)
                yield batch
        else:
            yield from csv_batches(path, read, columns, unreadable)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of Arrow and of the file system into a TableError."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise TableError(f"{path} cannot be read as a table ({one_line(error)}).") from None


def file_kind(path: Path) -> str:
    """Kind of a file by its first bytes: "parquet", "arrow" or "csv"."""
    try:
        with open_regular(path) as file:
            head = file.read(6)
    except FileNotFoundError:
        raise TableError(f"There is no file {path}.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}).") from None
    kind = "parquet" if head.startswith(b"PAR1") else "arrow" if head == b"ARROW1" else "csv"
    named = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}.get(
        path.suffix, kind
    )
    if named != kind:
        raise TableError(
            f"{path} is not a table: its suffix says {named}, but its content differs; rename or replace the file."
        )
    if not head:
        raise TableError(f"{path} is empty; a table needs a header and records.")
    return kind


def read_standing(source: Source) -> Standing:
    """Privacy label of a table. A table without a valid label is not private.

    Args:
        source: as for :func:`read_arrow`.

    Returns:
        The label.

    Raises:
        TableError: the file is missing, or is not a table.
    """
    try:
        if not isinstance(source, str | os.PathLike):
            return _stated(source.schema) if isinstance(source, pa.Table) else UNSTATED
        path = Path(source)
        kind = file_kind(path)
        if kind == "csv":
            beside = json_of(
                read_bytes(f"{path}{STANDING_FILE}", "standing", MessageError, MAX_KEY)
            )
            return (
                Standing.from_json(beside["standing"])
                if beside["sha256"] == _sha256(path)
                else UNSTATED
            )
        if kind == "parquet":
            return _stated(pa.parquet.read_schema(path))
        with pa.ipc.open_file(str(path)) as file:
            return _stated(file.schema)
    except (ValueError, KeyError, TypeError, OSError, pa.ArrowException) as error:
        if isinstance(error, TableError):
            raise
        return UNSTATED


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stated(schema: pa.Schema) -> Standing:
    stated = (schema.metadata or {}).get(STANDING_KEY)
    return UNSTATED if stated is None else Standing.from_json(json_of(stated))
