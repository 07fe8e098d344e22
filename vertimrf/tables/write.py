"""Write tables to files, of the kind that their names say."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv

from ..arguments import FLAG, MANY, PATH, instance, maybe, takes
from ..columns.cell_types import for_csv
from ..errors import OutputError, TableError
from ..files.results import opened, save
from ..kernels.jit import in_slices
from ..privacy.label import PrivacyLabel
from .arrow import LABEL_FILE, LABEL_KEY, one_line
from .csv_safe import without_formulas
from .programs.register import PROGRAMS, codebook, program_of
from .programs.register import write as write_for

LOG = logging.getLogger(__name__)
# What tables' names end in, besides those for a program.
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")
# Those of files whose metadata have the label.
LABELLED = (".parquet", ".arrow", ".feather")
# Least rows of CSV that a thread formats.
CSV_ROWS = 1 << 12
NO_HEADER = pa.csv.WriteOptions(include_header=False)


def check_output(path: str | os.PathLike[str], *, csv_safe: bool = False) -> str:
    """The file suffix that determines the format of :func:`write_table`.

    Raises:
        TableError: no format belongs to the name, or ``csv_safe`` has no meaning for it.
    """
    name = Path(path).name
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            if csv_safe and not _is_csv(suffix):
                raise _no_formulas(path)
            return suffix
    program = program_of(path)
    if program is None:
        raise TableError(
            f"{path} has no known table suffix; use .csv, .csv.gz, .parquet or .arrow, or .sav, .dta, .xpt or .xlsx."
        )
    if csv_safe:
        raise _no_formulas(path)
    return program[0]


def check_size(path: str | os.PathLike[str], rows: int, columns: int) -> None:
    """Check before the work that a file of this kind has room for a table of so many rows and columns.

    Raises:
        TableError: it has not.
    """
    program = PROGRAMS.get(Path(path).suffix)
    if program is not None:
        program.check(path, rows, columns)


def as_many_as_fit(
    pieces: Iterable[pa.Table], path: str | os.PathLike[str], asked: int | None
) -> Iterator[pa.Table]:
    """Pieces of synthetic rows without those that a file of this kind has no room for, which a warning counts.

    Rows are in random order, so that the first ones are a sample, too. Where nobody asked for a number of rows, it is known only when the
    budget is spent: so rows are left out, and the table is not refused.

    Args:
        pieces: the rows.
        path: the file.
        asked: rows that were asked for; None: as many as there seem to be records.
    """
    program = PROGRAMS.get(Path(path).suffix)
    most = None if program is None or asked is not None else program.rows
    left, out = 0, 0
    for piece in pieces:
        kept = piece if most is None else piece.slice(0, max(most - left, 0))
        left, out = left + kept.num_rows, out + piece.num_rows - kept.num_rows
        if kept.num_rows or not piece.num_rows:
            yield kept
    if out and program is not None:
        LOG.warning(
            "%s, for %s: a file has at most %s rows; %s more are left out.",
            *(path, program.name, f"{left:,}", f"{out:,}"),
        )


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether a file is called as a table that :func:`write_table` writes."""
    return os.fspath(path).endswith((*SUFFIXES, *PROGRAMS))


def _no_formulas(path: str | os.PathLike[str]) -> TableError:
    return TableError(
        f"csv_safe (--csv-safe) has no meaning for {path}, whose texts no program takes for formulas: leave it out."
    )


def table_files(path: str, *, csv_safe: bool = False) -> list[str]:
    """The files that :func:`write_table` writes: the table, and the label beside one that has no place for it.

    Raises:
        TableError: as from :func:`check_output`.
    """
    suffix = check_output(path, csv_safe=csv_safe)
    return [path] if suffix in LABELLED else [path, path + LABEL_FILE]


def _is_csv(suffix: str) -> bool:
    return suffix.startswith(".csv")


class _Sink:
    """What Arrow writes to. It counts the bytes, as a pipe knows no position, and may digest them."""

    closed = False

    def __init__(self, file: BinaryIO, digested: bool) -> None:
        self.digest = hashlib.sha256() if digested else None
        self._file, self._size = file, 0

    def write(self, data: Any) -> int:
        if self.digest is not None:
            self.digest.update(data)
        self._size += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Whoever opened the file closes it."""


@takes(OutputError, path=PATH, label=maybe(instance("PrivacyLabel")), csv_safe=FLAG, like=MANY)
def write_table(
    table: pa.Table | Iterable[pa.Table],
    path: str | os.PathLike[str],
    label: PrivacyLabel | None = None,
    *,
    csv_safe: bool = False,
    like: Sequence[Any] = (),
) -> int:
    """Write a table as .parquet, .arrow, .feather, .csv or .csv.gz, or for SPSS (.sav), Stata (.dta), SAS (.xpt) or Excel (.xlsx), by suffix.

    A file is replaced as a whole. A pipe or device gets the table as a stream.

    Args:
        table: the table; or at least one piece of it, all with the same columns.
        path: the file.
        label: privacy label. Parquet and Arrow files carry it in the metadata of their schema; any
            other file gets a file beside it. None for tables without a label.
        csv_safe: put an apostrophe before texts and column names that a spreadsheet would run as
            formulas. Such values are then not the schema's. For CSV files only.
        like: tables, of which files of SPSS, Stata and SAS are codebooks: for these programs, columns get their codes, labels, levels,
            missing codes and formats.

    Returns:
        Number of rows written.

    Raises:
        TableError: the suffix is unknown, ``csv_safe`` has no meaning for it, or writing fails.
        OutputError: it is a link or no file, or its folder is missing or read-only.
    """
    path = Path(path)
    kind = check_output(path, csv_safe=csv_safe)
    if not (isinstance(table, pa.Table) or MANY.fits(table)):
        raise TableError(
            f"A {type(table).__name__} is no table; give an Arrow table, or its pieces."
        )
    pieces = map(_a_piece, [table] if isinstance(table, pa.Table) else table)
    if _is_csv(kind):
        pieces = map(for_csv, pieces)
    if csv_safe:
        pieces = map(without_formulas, pieces)
    first = next(pieces, None)
    if first is None:
        raise TableError("There is no piece of the table; give at least one, which may be empty.")
    schema = first.schema
    if label is not None and kind in LABELLED:
        stated = json.dumps(label.to_json()).encode()
        schema = schema.with_metadata({**(schema.metadata or {}), LABEL_KEY: stated})
    rows = 0
    try:
        with opened(path) as file:
            sink = _Sink(file, kind not in LABELLED and label is not None)
            with _writer(sink, kind, schema, path, like) as writer:
                for piece in itertools.chain([first], pieces):
                    writer.write_table(piece.cast(schema))
                    rows += piece.num_rows
            if label is not None and sink.digest is not None:
                # The label is written before the table, so the table never lacks it, and it holds
                # for this table only.
                beside = {"label": label.to_json(), "sha256": sink.digest.hexdigest()}
                save(f"{path}{LABEL_FILE}", json.dumps(beside) + "\n")
    except (pa.ArrowException, OSError) as error:
        why = getattr(error, "strerror", None) or one_line(error)
        raise TableError(f"{path} cannot be written ({why}).") from None
    return rows


def _a_piece(piece: Any) -> pa.Table:
    if not isinstance(piece, pa.Table):
        raise TableError(f"A piece of the table is a {type(piece).__name__}; give Arrow tables.")
    return piece


@contextlib.contextmanager
def _writer(
    sink: _Sink, kind: str, schema: pa.Schema, path: Path, like: Sequence[Any]
) -> Iterator[Any]:
    """A writer of tables of this schema, piece by piece."""
    if kind not in SUFFIXES:
        whole = _Whole()
        yield whole
        write_for(pa.concat_tables(whole.pieces), path, sink, codebook(like))
        return
    target = pa.PythonFile(sink, "w")
    if kind == ".parquet":
        # With what it reads from networks, it would take a thirtieth of each start.
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(target, schema) as writer:
            yield writer
    elif kind in (".arrow", ".feather"):
        with pa.ipc.new_file(target, schema) as writer:
            yield writer
    else:
        compression = "gzip" if kind == ".csv.gz" else None
        with pa.output_stream(target, compression=compression) as file:
            pa.csv.write_csv(schema.empty_table(), file)
            yield _CsvRows(file)


class _Whole:
    """A writer that keeps all pieces, for what is written as a whole."""

    def __init__(self) -> None:
        self.pieces: list[pa.Table] = []

    def write_table(self, table: pa.Table) -> None:
        self.pieces.append(table)


class _CsvRows:
    """A writer of rows as CSV, which several threads format."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file

    def write_table(self, table: pa.Table) -> None:
        def formatted(begin: int, end: int) -> pa.Buffer:
            out = pa.BufferOutputStream()
            pa.csv.write_csv(table.slice(begin, end - begin), out, NO_HEADER)
            return out.getvalue()

        for rows in in_slices(table.num_rows, CSV_ROWS, formatted):
            self._file.write(rows)
