"""Read what a query gives from DuckDB, SQLite or PostgreSQL, in batches.

A query stands inside another one, which asks for the columns that are wanted, and databases are
opened to be read. A password comes from `PGPASSWORD` or `.pgpass`: an address that has one is refused, so
that no file, log or error has it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TableError
from .arrow import PIECE_ROWS, Pieces, RecordBatches
from .dropped import Unreadable
from .rows import any_error, batches_of, installed

ADDRESS = re.compile(r"(?i)(duckdb|sqlite|postgres(?:ql)?):(.+)", re.DOTALL)
PASSWORD = re.compile(r"(?i)//[^@]*:[^@]*@|password=")
# Names of columns, and batches of them.
Found = tuple[Sequence[str], Callable[[Unreadable], RecordBatches]]


def database_of(source: object) -> tuple[str, str] | None:
    """The kind of a database and the path of its file or its URI; None if the source is none.

    Raises:
        TableError: the address has a password.
    """
    found = ADDRESS.fullmatch(source) if isinstance(source, str) else None
    if found is None:
        return None
    kind, place = found[1].lower(), found[2]
    if not kind.startswith("postgres"):
        return kind, place
    if PASSWORD.search(place):
        raise TableError(
            "An address of a database has no password, which would be kept with the run: leave it out, and set PGPASSWORD or "
            "write it to ~/.pgpass."
        )
    return "postgresql", f"postgresql:{place}"


@contextlib.contextmanager
def _duckdb(place: str, query: str) -> Iterator[Found]:
    duckdb = installed("duckdb", place, "for DuckDB", "databases")
    folder = os.path.isdir(place)
    with duckdb.connect(*(() if folder else (place, True))) as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET file_search_path = ?", [place if folder else ""])
        found = connection.sql(query)
        newer = hasattr(found, "to_arrow_reader")
        stream = found.to_arrow_reader if newer else found.fetch_record_batch
        reader = stream(PIECE_ROWS // 4)
        yield reader.schema.names, lambda _: reader


@contextlib.contextmanager
def _sqlite(place: str, query: str) -> Iterator[Found]:
    address = f"{Path(place).absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        # As in a CSV file, bytes that are no text stay in their cell.
        connection.text_factory = lambda data: data.decode(errors="backslashreplace")
        rows = connection.execute(query)
        names = [name for name, *_ in rows.description]
        yield names, lambda unreadable: batches_of(rows, names, names, unreadable)


@contextlib.contextmanager
def _postgresql(place: str, query: str) -> Iterator[Found]:
    adbc = installed("adbc_driver_postgresql.dbapi", place, "for PostgreSQL", "databases")
    with adbc.connect(place) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        reader = cursor.fetch_record_batch()
        yield (
            reader.schema.names,
            lambda _: (
                pa.RecordBatch.from_arrays([*map(_plain, batch.columns)], batch.schema.names)
                for batch in reader
            ),
        )


def _plain(column: pa.Array) -> pa.Array:
    """A column of the driver; numbers of any precision, which it gives as text, as 64-bit ones."""
    if not isinstance(column.type, pa.OpaqueType):
        return column
    number = column.type.type_name == "numeric"
    return pc.cast(column.storage, pa.float64()) if number else column.storage


READERS = {"duckdb": _duckdb, "sqlite": _sqlite, "postgresql": _postgresql}


def query_pieces(kind: str, place: str, where: str, query: str | None) -> Pieces:
    """The rows of a query.

    Args:
        kind, place: as from :func:`database_of`.
        where: the address, for errors.
        query: one SELECT statement.

    Raises:
        TableError: there is no query, or it cannot be run.
    """
    if query is None:
        raise TableError(f"{where} is a database: give query='SELECT ...' (--query).")
    inner = f"FROM ({query.strip().rstrip(';')}\n) AS data"

    @contextlib.contextmanager
    def run(columns: str, end: str = "") -> Iterator[Found]:
        with any_error(where), READERS[kind](place, f"SELECT {columns} {inner}{end}") as found:
            yield found

    def batches(columns: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        quoted = ('"' + name.replace('"', '""') + '"' for name in columns)
        with run(", ".join(quoted)) as (_, found):
            yield from found(unreadable)

    # For the names, a database need not make the rows.
    with run("*", " LIMIT 0") as (names, _):
        return Pieces(tuple(names), where, batches)
