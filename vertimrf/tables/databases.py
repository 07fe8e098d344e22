"""Read what a query gives from DuckDB, SQLite or PostgreSQL, in batches.

A query is one SELECT, as the database's own parser says. It stands inside another one, which asks
for the columns that are wanted, and databases are opened to be read only.

A password comes from `PGPASSWORD` or `.pgpass`. An address is kept with a run, so it has nothing but
what is listed here as no secret: any other part of it is refused, whatever its name.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TableError
from .arrow import PIECE_ROWS, Pieces, RecordBatches, in_utc
from .dropped import Unreadable
from .objects import NAMES, TYPES
from .rows import any_error, batches_of, installed

ADDRESS = re.compile(r"(?i)(duckdb|sqlite|postgres(?:ql)?):(.+)", re.DOTALL)
# The parts of a PostgreSQL address: user, hosts and ports, database, options.
POSTGRESQL = re.compile(
    r"//(?:(?P<user>[^@/:?#]*)@)?(?P<host>[^@/?#]*)(?:/(?P<name>[^@/:?#]*))?(?:\?(?P<options>[^?#]*))?"
)
# Options of such an address that are no secrets.
OPTIONS = (
    *("application_name", "channel_binding", "connect_timeout", "dbname", "gssencmode", "host"),
    *("hostaddr", "keepalives", "krbsrvname", "passfile", "port", "service", "sslcert", "sslcrl"),
    *("sslkey", "sslmode", "sslrootcert", "target_session_attrs", "user"),
)
# What a value of an address may hold: no password, and no address in it.
PLAIN = re.compile(r"[^@=?&#\s]*")
# An address with a password within a query.
QUERY_PASSWORD = re.compile(r"//[^/\s'\"]*:[^/\s'\"]*@")
# A text so long has at most 15 digits, which double precision holds.
DOUBLE_TEXT = 15
# Types of the cells that it does not hold, and texts of these. Others are rounded.
LARGEST = 2.0**53
LONG = (("exact", r"^-?\d{1,37}(\.\d{1,38})?$"), ("large", r"^-?\d{38,76}$"))
# Names of columns, and batches of them.
Found = tuple[Sequence[str], Callable[[Unreadable], RecordBatches]]


def database_of(source: object) -> tuple[str, str] | None:
    """The kind of a database and the path of its file or its URI; None if the source is none.

    Raises:
        TableError: the address has what may be a password, or is no local file.
    """
    found = ADDRESS.fullmatch(source) if isinstance(source, str) else None
    if found is None:
        return None
    kind, place = found[1].lower(), found[2]
    if not kind.startswith("postgres"):
        if "://" in place or re.match(r"\s*(md|motherduck)\s*:", place, re.IGNORECASE):
            raise TableError(
                f"A {kind} address names a file or folder of this machine: {kind}:FILE."
            )
        return kind, place
    if not _without_secrets(place):
        raise TableError(
            "An address of a database has no password, which would be kept with the run: write postgresql://USER@HOST:PORT/DATABASE, "
            f"with no options but {', '.join(OPTIONS)}, and set PGPASSWORD or write the password to ~/.pgpass."
        )
    return "postgresql", f"postgresql:{place}"


def _without_secrets(place: str) -> bool:
    """Whether an address has only parts that are listed as no secrets, under their plain names."""
    found = POSTGRESQL.fullmatch(place)
    if found is None or ":" in unquote(found["user"] or ""):
        return False
    pairs = [pair.partition("=") for pair in (found["options"] or "").split("&") if pair]
    values = [found["user"], found["host"], found["name"], *(value for _, _, value in pairs)]
    return all(name in OPTIONS for name, _, _ in pairs) and all(
        PLAIN.fullmatch(unquote(value or "")) for value in values
    )


@dataclass(frozen=True)
class Query:
    """A query.

    Attributes:
        own: the statement that the holder wrote.
        whole: the one that is run, with that within it.
    """

    own: str
    whole: str


def _no_select(what: str) -> TableError:
    return TableError(f"The query (--query) has {what}; give one SELECT, which changes nothing.")


def _only_reads(own: set[str], action: int, table: str | None, *_: object) -> int:
    """What SQLite may do for a query: select, read columns, call functions.

    A pragma that is read like a table is refused as well, which newer versions of SQLite do only at its first row. A
    table of the file (``own``) may have such a name.
    """
    reads = (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
    pragma = table is not None and table.startswith("pragma_") and table not in own
    return sqlite3.SQLITE_OK if action in reads and not pragma else sqlite3.SQLITE_DENY


@contextlib.contextmanager
def _duckdb(place: str, query: Query) -> Iterator[Found]:
    duckdb = installed("duckdb", place, "for DuckDB", "databases")
    folder = os.path.isdir(place)
    with duckdb.connect(*(() if folder else (place, True))) as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET file_search_path = ?", [place if folder else ""])
        connection.execute("SET lock_configuration = true")
        kinds = [one.type.name for one in connection.extract_statements(query.own)]
        if kinds != ["SELECT"]:
            raise _no_select(f"{len(kinds)} statements: {', '.join(kinds)}")
        found = in_utc(connection.sql(query.whole))
        newer = hasattr(found, "to_arrow_reader")
        stream = found.to_arrow_reader if newer else found.fetch_record_batch
        reader = stream(PIECE_ROWS // 4)
        yield reader.schema.names, lambda _: reader


@contextlib.contextmanager
def _sqlite(place: str, query: Query) -> Iterator[Found]:
    address = f"{Path(place).absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        # As in a CSV file, bytes that are no text stay in their cell.
        connection.text_factory = lambda data: data.decode(errors="backslashreplace")
        own = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        connection.set_authorizer(functools.partial(_only_reads, own))
        # Its parser takes one statement, and explains a SELECT without running it.
        connection.execute(f"EXPLAIN {query.own}").close()
        rows = connection.execute(query.whole)
        names = [name for name, *_ in rows.description]
        yield names, lambda unreadable: batches_of(rows, names, names, unreadable)


@contextlib.contextmanager
def _postgresql(place: str, query: Query) -> Iterator[Found]:
    adbc = installed("adbc_driver_postgresql.dbapi", place, "for PostgreSQL", "databases")
    with adbc.connect(place) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        # A prepared statement is one statement; within another, it is one that gives rows.
        cursor.adbc_prepare(query.own)
        cursor.execute(query.whole)
        reader = cursor.fetch_record_batch()
        yield (
            reader.schema.names,
            lambda _: (
                pa.RecordBatch.from_arrays([*map(_plain, batch.columns)], batch.schema.names)
                for batch in reader
            ),
        )


def _plain(column: pa.Array) -> pa.Array:
    """A column of the driver; numbers of any precision, which it gives as text, by what they are."""
    if not isinstance(column.type, pa.OpaqueType):
        return column
    return _numeric(column.storage) if column.type.type_name == "numeric" else column.storage


def _numeric(texts: pa.Array) -> pa.Array:
    """Texts of numbers as objects are stored: in double precision where that holds all digits."""
    numbers = pc.cast(texts, pa.float64())
    numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
    kinds = np.full(len(texts), NAMES.index("number"), np.int8)
    children = [pa.array([], kind) for kind in TYPES.values()]
    # So the type of a cell depends on this cell alone.
    for name, pattern in LONG if (pc.max(pc.utf8_length(texts)).as_py() or 0) > DOUBLE_TEXT else ():
        fits = pc.match_substring_regex(texts, pattern)
        exact = pc.cast(pc.if_else(fits, texts, None), TYPES[name])
        # As text, a number in double precision has the digits that tell it from others.
        held = pc.cast(pc.if_else(fits, numbers, None), pa.string()).cast(TYPES[name])
        own = pc.or_(pc.not_equal(held, exact), pc.greater(pc.abs(numbers), LARGEST))
        kinds[pc.and_(own, fits).fill_null(False).to_numpy(zero_copy_only=False)] = NAMES.index(
            name
        )
        children[NAMES.index(name)] = exact
    children[NAMES.index("number")] = numbers
    places = pa.array(np.arange(len(texts), dtype=np.int32))
    return pa.UnionArray.from_dense(pa.array(kinds), places, children, NAMES)


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
    if QUERY_PASSWORD.search(query):
        raise TableError(
            "The query (--query) has an address with a password, and would be kept with the run: leave it out."
        )
    own = query.strip().rstrip(";")
    inner = f"FROM ({own}\n) AS data"

    @contextlib.contextmanager
    def run(columns: str, end: str = "") -> Iterator[Found]:
        asked = Query(own, f"SELECT {columns} {inner}{end}")
        with any_error(where), READERS[kind](place, asked) as found:
            yield found

    def batches(columns: Sequence[str], unreadable: Unreadable) -> RecordBatches:
        quoted = ('"' + name.replace('"', '""') + '"' for name in columns)
        with run(", ".join(quoted)) as (_, found):
            yield from found(unreadable)

    # For the names, a database need not make the rows.
    with run("*", " LIMIT 0") as (names, _):
        return Pieces(tuple(names), where, batches)
