"""Open tables wherever they lie, as streams of Arrow batches: files by content, and data frames.

No record decides what a file is. Its kind shows in its first line, which holds the magic of a binary
file or the header of a text. Files without a header are told by their name (JSON lines) or by what is
stated (a CSV file).
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..arrays import Texts
from ..errors import MessageError, TableError
from ..files.atomic import MAX_KEY, AnyPath, open_regular, read_bytes
from ..files.canonical import json_digest, json_of
from ..privacy.label import UNSTATED, PrivacyLabel
from . import arrow
from .apart import apart
from .arrow import (
    LABEL_FILE,
    LABEL_KEY,
    Pieces,
    RecordBatches,
    check_names,
    check_sound,
    collected,
    from_object,
    no_table,
    object_batches,
    object_columns,
)
from .csv_file import (
    ENDINGS,
    FIRST_LINE,
    MARK,
    compression,
    csv_batches,
    csv_head,
    csv_header,
    csv_names,
)
from .databases import database_of, query_pieces
from .dropped import Unreadable
from .objects import of_one_type
from .parquet import parquet
from .parts import Part, parts_of, together, with_keys
from .polars_frame import POLARS_OWN, types_of
from .read_options import DEFAULT, ReadOptions
from .values import archive, json_keys, json_lines

Source = Any  # a path, or any object that read_arrow turns into an Arrow table
# Bytes at the start of a file that tell its kind.
START = 1 << 12

Sniff = Callable[[bytes], bool]
Batches = Callable[[Sequence[str], Unreadable], RecordBatches]


def read_arrow(source: Source, read: ReadOptions = DEFAULT) -> pa.Table:
    """Read a table whole. What is not stated is read off it, also off records: no release may do so.

    Args:
        source: path of a file of :data:`FORMATS`, distinguished by content; a folder of such files,
            or a pattern that names them (:mod:`vertimrf.tables.parts`); a database
            (:mod:`vertimrf.tables.databases`); or a pandas or polars frame
            (also lazy), a DuckDB relation, a dataset of pyarrow, an Arrow table or record batch, an
            iterator of batches, arrays by name, or any object with ``__arrow_c_stream__`` or
            ``__dataframe__``.
        read: format of a CSV file.

    Returns:
        The Arrow table. Columns of a CSV file are text, so that 007 stays 007; the schema gives
        them meaning.

    Raises:
        TableError: the file is missing, or the source is not a table.
    """
    if (
        isinstance(source, str | os.PathLike | Pieces | Part | Mapping)
        or _is_dataset(source)
        or not POLARS_OWN.isdisjoint(types_of(source))
    ):
        table = open_as_found(source, read).whole(None)
        for i, column in enumerate(table.columns):
            if pa.types.is_union(column.type):
                table = table.set_column(i, table.column_names[i], of_one_type(column))
        return table
    table = from_object(source)
    check_names(table.column_names, "The table")
    return table


def several(sources: Source | Sequence[Source]) -> Sequence[Source]:
    """Tables as a list, of one table or of several. What can be read only once is read now."""
    return [*map(collected, sources if isinstance(sources, list | tuple) else [sources])]


def name_of(source: Source, default: str = "The table") -> str:
    """The name of a table in errors: its path, or the default for an object in memory."""
    if isinstance(source, Pieces):
        return source.where
    return str(source) if isinstance(source, str | os.PathLike | Part) else default


def located(source: AnyPath) -> str:
    """Where a table lies, wherever a command runs: the absolute path of a file, folder or pattern.

    Raises:
        TableError: there is none.
    """
    database = database_of(source)
    if database is not None and database[0] == "postgresql":
        return database[1]
    path = Path(source if database is None else database[1]).absolute()
    if parts_of(path) is None and not path.exists():
        raise TableError(f"There is no table {path}; name the party's file.")
    return str(path) if database is None else f"{database[0]}:{path}"


def written(source: str) -> int | str:
    """When the files of a table were written; empty if there is no table. No cell decides it.

    Of a server's tables nobody knows.
    """
    kind, source = database_of(source) or ("", source)
    if kind == "postgresql":
        return kind
    try:
        # What a database has yet to enter into its file lies beside it.
        beside = [Part(Path(source + end)) for end in ("", "-wal", ".wal")]
        parts = parts_of(Path(source)) or [
            part for part in beside if part is beside[0] or part.path.exists()
        ]
        times = {str(part): part.path.stat().st_mtime_ns for part in parts}
    except (OSError, ValueError, TableError):
        return ""
    return times[source] if [*times] == [source] else json_digest(times).hex()


def open_pieces(source: Source, read: ReadOptions = DEFAULT) -> Pieces:
    """Open anything that :func:`read_arrow` reads as a table in pieces.

    Columns of a CSV file are text. Whether a table is opened depends on no record: see the module.

    Raises:
        TableError: the file is missing, the source is not a table, or it is not stated how to read
            it.
    """
    if isinstance(source, Pieces):
        return source
    if _is_dataset(source):
        return _dataset(source)
    if (database := database_of(source)) is not None:
        return query_pieces(*database, located(source), read.query)
    if not isinstance(source, Part | str | os.PathLike):
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
    if not isinstance(source, Part) and (parts := parts_of(Path(source))) is not None:
        # A file without a byte has no record, and no header either.
        parts = [part for part in parts if part.path.stat().st_size] or parts[:1]
        return together([open_pieces(part, read) for part in parts], str(source))
    path = source.path if isinstance(source, Part) else Path(source)
    if read.query is not None:
        raise TableError(
            f"{path} is no database, so it takes no query (--query): name the table duckdb:FOLDER, and the file in the query."
        )
    format = format_of(path, read)
    what = f"{path} is {format.name} that"
    with reading(what):
        pieces = format.open(path, read)
    check_names(pieces.names, str(path))
    pieces = replace(pieces, batches=functools.partial(_batches, what, pieces.batches))
    return with_keys(pieces, source) if isinstance(source, Part) else pieces


def open_as_found(source: Source, read: ReadOptions = DEFAULT) -> Pieces:
    """As :func:`open_pieces`, for what is no release: what is not stated is read off records."""
    return open_pieces(source, as_found(source, read))


def as_found(source: Source, read: ReadOptions) -> ReadOptions:
    """How a file without a header is read: as its first records suggest, where that is not stated."""
    path = first_file(source)
    if path is None:
        return read
    format = format_of(path, read)
    with reading(path):
        if format is JSON_LINES and not read.columns:
            return replace(read, columns=json_keys(path))
        if format is CSV and read.no_header and not (read.columns and read.delimiter):
            cells, delimiter = csv_header(path, replace(read, no_header=False))
            columns = read.columns or tuple(f"column{i + 1}" for i in range(len(cells)))
            return replace(read, columns=columns, delimiter=delimiter)
    return read


def first_file(source: Source) -> Path | None:
    """The file, or the first of a table of several; None if the source is none."""
    if isinstance(source, Part):
        return source.path
    if not isinstance(source, str | os.PathLike) or database_of(source) is not None:
        return None
    parts = parts_of(Path(source))
    return Path(source) if parts is None else parts[0].path


def _is_dataset(source: Source) -> bool:
    """Whether this is a dataset of pyarrow, whose module takes a second to load."""
    return hasattr(source, "scanner") and type(source).__module__ == "pyarrow._dataset"


def _dataset(source: Any) -> Pieces:
    """A dataset of pyarrow, fragment by fragment, without reading ahead."""

    def batches(columns: Sequence[str], _: Unreadable) -> RecordBatches:
        with reading("The dataset"):
            yield from source.to_batches(
                columns=list(columns),
                batch_size=arrow.PIECE_ROWS // 4,
                batch_readahead=0,
                fragment_readahead=0,
                use_threads=False,
            )

    check_names(source.schema.names, "The dataset")
    return Pieces(tuple(source.schema.names), "The dataset", batches)


def _batches(
    what: str, batches: Batches, columns: Sequence[str], unreadable: Unreadable
) -> RecordBatches:
    with reading(what):
        yield from batches(columns, unreadable)


def _arrow_file(path: Path, read: ReadOptions) -> Pieces:
    def batches(columns: Sequence[str], _: Unreadable) -> RecordBatches:
        with pa.ipc.open_file(str(path)) as file:
            count = file.num_record_batches
        for i in range(count):
            # The file is opened again for each batch, so that pages of earlier batches are
            # released.
            with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
                batch = file.get_batch(i).select(list(columns))
                check_sound(batch)
            yield batch

    with pa.ipc.open_file(str(path)) as file:
        return Pieces(tuple(file.schema.names), str(path), batches)


def _arrow_stream(path: Path, read: ReadOptions) -> Pieces:
    def batches(columns: Sequence[str], _: Unreadable) -> RecordBatches:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
            for whole in stream:
                batch = whole.select(list(columns))
                check_sound(batch)
                yield batch

    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        return Pieces(tuple(stream.schema.names), str(path), batches)


def _orc(path: Path, read: ReadOptions) -> Pieces:
    from pyarrow.orc import ORCFile

    def batches(columns: Sequence[str], _: Unreadable) -> RecordBatches:
        file = ORCFile(str(path))
        for name in columns:
            if _has_instants(file.schema.field(name).type):
                raise TableError(
                    f"Column {name!r} of {path} is a TIMESTAMP, which is not read from ORC: a single one of a year before 1678 or "
                    "after 2261 would refuse the file. Write the column as text or dates, or the table as Parquet."
                )
        for i in range(file.nstripes):
            batch = file.read_stripe(i, columns=list(columns)).select(list(columns))
            check_sound(batch)
            yield batch

    return Pieces(tuple(ORCFile(str(path)).schema.names), str(path), batches)


def _has_instants(kind: pa.DataType) -> bool:
    """Whether cells of a type have timestamps in them."""
    inner = (kind.field(i).type for i in range(kind.num_fields))
    return pa.types.is_timestamp(kind) or any(map(_has_instants, inner))


def _csv(path: Path, read: ReadOptions) -> Pieces:
    return Pieces(
        tuple(csv_names(path, read)), str(path), functools.partial(csv_batches, path, read), False
    )


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        name: what the file is, in words.
        sniff: whether the first line of a file is that of such a one.
        open: opens a file that is. It raises a TableError if the kind is known and not read.
        suffixes: suffixes of such files alone.
        packed: whether a compressed file is read, too.
        named: whether the suffix alone says so, because the first line may be that of another kind.
    """

    name: str
    sniff: Sniff
    open: Callable[[Path, ReadOptions], Pieces]
    suffixes: Texts = ()
    packed: bool = False
    named: bool = False


def _starts(*magic: bytes) -> Sniff:
    return lambda line: line.startswith(magic)


def _like(pattern: bytes) -> Sniff:
    compiled = re.compile(pattern)
    return lambda line: compiled.match(line) is not None


def _refused(name: str, remedy: str, sniff: Sniff, *suffixes: str) -> Format:
    """A kind of file that is not read."""

    def refuse(path: Path, read: ReadOptions) -> Pieces:
        raise TableError(f"{path} is {name}, which is not read: {remedy}.")

    return Format(name, sniff, refuse, suffixes, named=bool(suffixes))


def _statistics(name: str, function: str, sniff: Sniff, *suffixes: str) -> Format:
    """A kind of file that pyreadstat reads."""
    return Format(name, sniff, functools.partial(apart, function, name), suffixes)


# In pandas, to be written by a user who has it.
PANDAS = "save its table as Parquet, for instance by pandas.{}(...).to_parquet(...)"
# A binary kind of file has a byte that no text has, so that a header may begin with its letters.
FORMATS = (
    Format("a Parquet file", _starts(b"PAR1\x15"), parquet, (".parquet",)),
    Format("an Arrow file", _starts(b"ARROW1\0\0"), _arrow_file, (".arrow", ".feather", ".ipc")),
    Format("an Arrow stream", _starts(b"\xff\xff\xff\xff"), _arrow_stream, (".arrows",)),
    Format("an ORC file", _like(rb"ORC($|.*[\x00-\x08\x0e-\x1f])"), _orc, (".orc",)),
    Format("a ZIP archive", _starts(b"PK\3\4", b"PK\5\6"), archive, (".xlsx", ".ods", ".zip")),
    _refused(
        "an Office file of before 2007, or one with a password",
        "save it as .xlsx, without a password",
        _starts(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ),
    _statistics("an SPSS file", "read_sav", _starts(b"$FL2", b"$FL3"), ".sav", ".zsav"),
    _refused(
        "an SPSS portable file",
        "save it as .sav",
        lambda line: b"ASCII SPSS PORT FILE" in line,
        ".por",
    ),
    _statistics(
        "a Stata file",
        "read_dta",
        # The fourth byte has no meaning: gretl writes 1 there.
        _like(rb"<stata_dta>|[\x69\x6c\x6e-\x73][\x01\x02]\x01[\x00\x01]"),
        ".dta",
    ),
    _statistics(
        "a SAS file",
        "read_sas7bdat",
        _starts(bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0"),
        ".sas7bdat",
    ),
    _statistics("a SAS transport file", "read_xport", _starts(b"HEADER RECORD*******LIB"), ".xpt"),
    _refused("an encrypted Parquet file", "write it without encryption", _starts(b"PARE")),
    _refused(
        "a Feather file of version 1",
        "write it with a newer pyarrow, or as Parquet",
        _starts(b"FEA1\0"),
    ),
    _refused(
        "an SQLite database",
        "name it sqlite:FILE, with query='SELECT ...' (--query)",
        _starts(b"SQLite format 3\0"),
    ),
    _refused(
        "a DuckDB database",
        "name it duckdb:FILE, with query='SELECT ...' (--query)",
        _like(rb"(?s).{8}DUCK.{2}\0{6}"),
    ),
    _refused("an HDF5 file", PANDAS.format("read_hdf"), _starts(b"\x89HDF")),
    _refused("a pickle of Python", PANDAS.format("read_pickle"), _like(rb"\x80[\x02-\x05]")),
    _refused("an array of NumPy", PANDAS.format("DataFrame"), _starts(b"\x93NUMPY")),
    _refused(
        "a file of R",
        "save its table in R as CSV (write.csv) or as Parquet (arrow::write_parquet)",
        _like(rb"RD[XA][23]$"),
        *(".rds", ".rda", ".rdata"),
    ),
    _refused("an Avro file", PANDAS.format("DataFrame.from_records"), _starts(b"Obj\1")),
    _refused("a file of MATLAB", "save its table as CSV (writetable)", _starts(b"MATLAB 5.0")),
    _refused(
        "a database of Access",
        "export the table as CSV",
        _starts(b"\0\1\0\0Standard Jet DB", b"\0\1\0\0Standard ACE DB"),
    ),
    _refused("a PDF document", "export its table as CSV", _starts(b"%PDF-")),
    _refused(
        "an HTML or XML document",
        "export its table as CSV",
        _like(rb"(?i)\s*<(!doctype|html|\?xml)"),
    ),
    _refused("a 7z archive", "unpack it, and name the table in it", _starts(b"7z\xbc\xaf\x27\x1c")),
    _refused("a RAR archive", "unpack it, and name the table in it", _starts(b"Rar!\x1a\7")),
    _refused(
        "a tar archive",
        "unpack it, and name the table in it",
        lambda line: line[257:262] == b"ustar",
    ),
    JSON_LINES := Format(
        "JSON lines", lambda line: False, json_lines, (".jsonl", ".ndjson"), packed=True, named=True
    ),
    _refused(
        "a JSON document",
        "write an object on each line of a file whose name ends in .jsonl, for instance by jq -c '.[]'",
        _like(rb"\s*(\[\s*([\[{]|$)|\{\s*[\"}]|\{\s*$)"),
    ),
    _refused(
        "no text, and no kind of file that is known here",
        "convert it to CSV or Parquet",
        lambda line: not _utf16(line) and b"\0" in line and line.strip(b"\0") != b"",
    ),
    CSV := Format("text", lambda line: True, _csv, packed=True),
)

# The kinds of files whose headers are codebooks.
STATISTICS = [
    format
    for format in FORMATS
    if {".sav", ".dta", ".sas7bdat", ".xpt"}.intersection(format.suffixes)
]


def _utf16(line: bytes) -> bool:
    """Whether a text may be one of UTF-16 or UTF-32, which have zero bytes."""
    return line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or bool(
        re.match(rb"([^\0]\0){2}|(\0[^\0]){2}|([^\0]\0\0\0){2}|(\0\0\0[^\0]){2}", line)
    )


def format_of(path: Path, read: ReadOptions = DEFAULT) -> Format:
    """The kind of a file: by its name or as stated if it has no header, else by its first line.

    Raises:
        TableError: there is no such file, it is empty and needs a header, or its suffix says
            otherwise.
    """
    try:
        with open_regular(path) as file:
            head = file.read(START)
    except FileNotFoundError:
        raise TableError(f"There is no file {path}.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}).") from None
    suffix = Path(path.stem).suffix if path.suffix in ENDINGS else path.suffix
    named = next((each for each in FORMATS if suffix.lower() in each.suffixes), None)
    # A file that has no header begins with a record, of which nothing may be read off.
    if named is not None and named.named:
        return named
    if named is None and read.no_header:
        return CSV
    with reading(path):
        packed = compression(path)
        if packed is not None:
            head = csv_head(path, False)[:START]
    line = FIRST_LINE.match(head.removeprefix(MARK).lstrip(b"\r\n") + b"\n")
    format = next(format for format in FORMATS if format.sniff(b"" if line is None else line[1]))
    if packed is not None and not format.packed:
        raise TableError(
            f"{path} is {format.name}, compressed by {packed}: unpack it, and name the file in it."
        )
    named = next((other for other in FORMATS if path.suffix in other.suffixes), format)
    if named is not format and (format.packed or (named in FORMATS[:2] and format in FORMATS[:2])):
        says = named.suffixes[0] if named in FORMATS[:2] else path.suffix
        raise TableError(
            f"{path} is not a table: its suffix says {says[1:]}, but its content differs; rename or replace the file."
        )
    if not head:
        raise TableError(f"{path} is empty; a table needs a header and records.")
    return format


@contextlib.contextmanager
def reading(what: object) -> Iterator[None]:
    """Turn errors of Arrow and of the file system into a TableError about the subject of its sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise no_table(what, error) from None


def read_label(source: Source) -> PrivacyLabel:
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
        if parts_of(path) is not None:
            return UNSTATED
        format = format_of(path)
        if format.open is parquet:
            from pyarrow.parquet import read_schema

            return _stated(read_schema(path))
        if format.open is not _arrow_file:
            beside = json_of(read_bytes(f"{path}{LABEL_FILE}", "label", MessageError, MAX_KEY))
            return (
                PrivacyLabel.from_json(beside["label"])
                if beside["sha256"] == _sha256(path)
                else UNSTATED
            )
        with pa.ipc.open_file(str(path)) as file:
            return _stated(file.schema)
    except (ValueError, KeyError, TypeError, OSError, pa.ArrowException) as error:
        if isinstance(error, TableError):
            raise
        return UNSTATED


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stated(schema: pa.Schema) -> PrivacyLabel:
    stated = (schema.metadata or {}).get(LABEL_KEY)
    return UNSTATED if stated is None else PrivacyLabel.from_json(json_of(stated))
