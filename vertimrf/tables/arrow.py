"""Arrow tables out of files and data frames, and into files."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..errors import MessageError, TableError
from ..files.atomic import MOST_KEY, read_bytes, replacing, write_text
from ..files.canonical import parse_json
from ..privacy.standing import UNSTATED, Standing

__all__ = ["COMMAS", "CsvFormat", "Source", "check_output", "read_arrow", "read_batches", "read_standing", "write_table"]

Source = Any  # a path, or any object that read_arrow turns into an Arrow table
# Where a table states its standing: under this key of its metadata, or, if its format has none, in a file of this ending.
STANDING_KEY = b"vertimrf.standing"
STANDING_FILE = ".standing.json"


@dataclass(frozen=True)
class CsvFormat:
    """How CSV files are written.

    Attributes:
        delimiter: between cells, one character.
        encoding: of text, a name that Python's codecs know.

    Raises:
        TableError: neither of them.
    """

    delimiter: str = ","
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise TableError(f"The delimiter of a CSV file is one ASCII character, not {self.delimiter!r}.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise TableError(f"There is no encoding {self.encoding!r}; give a name such as utf-8 or latin-1.") from None


COMMAS = CsvFormat()


def read_arrow(source: Source, csv: CsvFormat = COMMAS) -> pa.Table:
    """Read a table.

    Args:
        source: the path of a CSV (plain or gzipped), Parquet or Arrow IPC/Feather file, told apart by content; or a
            pandas or polars frame, lazy ones too, a DuckDB relation, an Arrow table or record batch, or any object with
            ``__arrow_c_stream__`` or ``__dataframe__``.
        csv: how a CSV file is written.

    Returns:
        The Arrow table. Columns of a CSV file are text, so that 007 stays 007; a schema says what they mean.

    Raises:
        TableError: missing file, or not a table.
    """
    if isinstance(source, str | os.PathLike):
        return read_file(Path(source), csv)
    table = from_object(source)
    check_names(table.column_names, "The table")
    return table


def from_object(source: Source) -> pa.Table:
    """An Arrow table out of an object in memory."""
    if isinstance(source, pa.Table):
        return source
    source = executed(source)
    try:
        if type(source).__module__.partition(".")[0] == "pandas":
            # A named index is a column to whoever named it; the default one is not.
            return pa.Table.from_pandas(source, preserve_index=any(name is not None for name in source.index.names))
        if hasattr(source, "__arrow_c_stream__") or isinstance(source, pa.RecordBatch):
            return pa.table(source)
        if hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return from_dataframe(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(f"The {type(source).__name__} cannot be read as a table ({one_line(error)}).") from None
    raise TableError(
        f"A {type(source).__name__} is not a table; pass a file, an Arrow table, a pandas or polars frame, or a DuckDB relation."
    )


def executed(source: Source) -> Source:
    """What a query that has not run yet yields, a lazy frame of polars or a relation of DuckDB; anything else as it is."""
    package = type(source).__module__.partition(".")[0].lstrip("_")
    try:
        if package == "polars" and type(source).__name__ == "LazyFrame":
            return source.collect()
        if package == "duckdb" and hasattr(source, "fetch_arrow_table"):
            # All at once: the stream of a relation keeps its connection from other queries until it is read to the end.
            return source.to_arrow_table() if hasattr(source, "to_arrow_table") else source.fetch_arrow_table()
    except Exception as error:  # whatever the query's engine calls it
        raise TableError(f"The {type(source).__name__} cannot be read as a table ({one_line(error)}).") from None
    return source


def read_file(path: Path, csv: CsvFormat) -> pa.Table:
    """An Arrow table out of a file."""
    kind = file_kind(path)
    try:
        if kind == "parquet":
            table = pa.parquet.read_table(path)
        elif kind == "arrow":
            with pa.memory_map(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
                # Offsets and indices that lead elsewhere, which nobody else looks at.
                table.validate(full=True)
        else:
            with open_csv(path, csv) as reader:
                table = reader.read_all()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read as a table ({one_line(error)}).") from None
    check_names(table.column_names, str(path))
    return table


def file_kind(path: Path) -> str:
    """ "parquet", "arrow" or "csv", by the first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(6)
    except FileNotFoundError:
        raise TableError(f"There is no file {path}.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}).") from None
    kind = "parquet" if head.startswith(b"PAR1") else "arrow" if head == b"ARROW1" else "csv"
    named = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}.get(path.suffix, kind)
    if named != kind:
        raise TableError(f"{path} is not a table: its name says {named}, its content does not.")
    if not head:
        raise TableError(f"{path} is empty; a table needs a header and records.")
    return kind


def open_csv(path: Path, csv: CsvFormat = COMMAS, block_size: int = 1 << 22) -> pa.csv.CSVStreamingReader:
    """A streaming reader that leaves every cell as text; only cells with nothing between the commas are null."""

    def open_with(types: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            pa.input_stream(path, compression="gzip" if is_gzip(path) else None),
            read_options=pa.csv.ReadOptions(block_size=block_size, encoding=csv.encoding),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True, delimiter=csv.delimiter),
            convert_options=pa.csv.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )

    with open_with({}) as reader:
        names = reader.schema.names
    check_names(names, str(path))
    return open_with(dict.fromkeys(names, pa.string()))


def is_gzip(path: Path) -> bool:
    """Whether a file starts as gzip does."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def check_names(names: Sequence[str], where: str) -> None:
    """Column names must be distinct."""
    for i, name in enumerate(names):
        if name in names[:i]:
            raise TableError(f"{where} has two columns {name!r}; rename or remove one.")


def one_line(error: BaseException) -> str:
    """The first line of an error's text, without the full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def check_output(path: str | os.PathLike[str]) -> str:
    """The format, as a suffix, that :func:`write_table` would write a file in.

    Raises:
        TableError: no format goes with the name.
    """
    name = Path(path).name
    for suffix in (".csv", ".csv.gz", ".parquet", ".arrow", ".feather"):
        if name.endswith(suffix):
            return suffix
    raise TableError(f"{path}: no table format goes with this name; end it in .csv, .csv.gz, .parquet or .arrow.")


def write_table(table: pa.Table, path: str | os.PathLike[str], standing: Standing | None = None) -> None:
    """Write a table, whole or not at all: .parquet, .arrow or .feather, .csv or .csv.gz by suffix.

    Args:
        table: what to write.
        path: where to.
        standing: what the table may claim; Parquet and Arrow files carry it in their schema's metadata, and CSV files, which
            have none, get a file beside them. None for tables that claim nothing.

    Raises:
        TableError: another suffix, or the file cannot be written.
    """
    path = Path(path)
    kind = check_output(path)
    try:
        if standing is not None and not kind.startswith(".csv"):
            stated = json.dumps(standing.to_json()).encode()
            table = table.replace_schema_metadata({**(table.schema.metadata or {}), STANDING_KEY: stated})
        with replacing(path) as draft:
            if kind == ".parquet":
                pa.parquet.write_table(table, draft)
            elif kind in (".arrow", ".feather"):
                with pa.ipc.new_file(str(draft), table.schema) as file:
                    file.write_table(table)
            else:
                with pa.output_stream(draft, compression="gzip" if kind == ".csv.gz" else None) as file:
                    pa.csv.write_csv(table, file)
                if standing is not None:
                    # Before the table is there, which it then never is without; and for this table alone.
                    beside = {"standing": standing.to_json(), "sha256": _sha256(draft)}
                    write_text(f"{path}{STANDING_FILE}", json.dumps(beside) + "\n")
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path} cannot be written ({one_line(error)}).") from None


def read_standing(source: Source) -> Standing:
    """What a table says of itself; without a well-formed word it is not private.

    Args:
        source: as for :func:`read_arrow`.

    Raises:
        TableError: missing file, or not a table.
    """
    try:
        if not isinstance(source, str | os.PathLike):
            return _stated(source.schema) if isinstance(source, pa.Table) else UNSTATED
        path = Path(source)
        kind = file_kind(path)
        if kind == "csv":
            beside = parse_json(read_bytes(f"{path}{STANDING_FILE}", "standing", MessageError, MOST_KEY))
            return Standing.from_json(beside["standing"]) if beside["sha256"] == _sha256(path) else UNSTATED
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
    return UNSTATED if stated is None else Standing.from_json(parse_json(stated))


def read_batches(path: Path, rows: int) -> Iterator[pa.RecordBatch]:
    """Non-empty record batches of a file, of at most ``rows`` records."""
    kind = file_kind(path)
    try:
        if kind == "parquet":
            with pa.parquet.ParquetFile(path) as file:
                found = file.iter_batches(batch_size=rows)
                yield from (batch for batch in found if batch.num_rows)
        else:
            with open_csv(path) if kind == "csv" else pa.ipc.open_file(str(path)) as reader:
                found = reader if kind == "csv" else map(reader.get_batch, range(reader.num_record_batches))
                for piece in found:
                    yield from (piece.slice(start, rows) for start in range(0, piece.num_rows, rows))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read as a table ({one_line(error)}).") from None
