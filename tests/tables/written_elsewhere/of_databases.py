"""SQLite and PostgreSQL, through their own programs."""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .columns import COLUMNS, IDS
from .tool import CODES, Format, Tool, called, program, rounded

QUERY = ("--query", "SELECT * FROM t")
KINDS = {
    "whole": "BIGINT",
    "decimal": "NUMERIC(20, 4)",
    "float": "DOUBLE PRECISION",
    "date": "DATE",
    "moment": "TIMESTAMP",
    "zoned": "TIMESTAMPTZ",
    "clock": "TIME",
    "span": "INTERVAL",
    "truth": "BOOLEAN",
    "labelled": "SMALLINT",
    "extended": "INTEGER",
    "ordered": "level",
}
OWN = {"tiny": "SMALLINT", "small": "SMALLINT", "whole": "INTEGER", "unsigned": "NUMERIC"}


def _made(column):
    """An expression for a column of its text, as both databases have it."""
    cell = f"nullif({column.name}, '')"
    if column.kind == "span":
        return f"{cell} || ' hours'"
    if column.kind == "extended":
        return f"CASE WHEN {cell} LIKE '.%' THEN NULL ELSE {cell} END"
    return cell


def _sqlite(folder):
    path = folder / "table.db"
    path.unlink(missing_ok=True)
    # Numbers have a type; dates, times and truth values are texts, or 0 and 1.
    numbers = {
        "whole": "INTEGER",
        "labelled": "INTEGER",
        "extended": "INTEGER",
        "float": "REAL",
        "decimal": "NUMERIC",
    }
    parts, kinds = [IDS], [f"{IDS} TEXT"]
    for column in COLUMNS:
        made = f"{column.name} = 'true'" if column.kind == "truth" else _made(column)
        made = f"{column.name} * 3600" if column.kind == "span" else made
        parts.append(f"{made} AS {column.name}")
        kind = "INTEGER" if column.kind in ("truth", "span") else numbers.get(column.kind, "TEXT")
        kinds.append(f"{column.name} {kind}")
    script = [
        ".import --csv base.csv base",
        f"CREATE TABLE t ({', '.join(kinds)});",
        f"INSERT INTO t SELECT {', '.join(parts)} FROM base;",
        *(".headers on", ".mode csv", ".once table.csv", "SELECT * FROM t;"),
        *(".mode json", ".once table.json", "SELECT * FROM t;"),
    ]
    called(folder, "sqlite3", "table.db", text="\n".join(script))


class _Server:
    """A server of PostgreSQL that listens on a socket in a folder of its own."""

    def __init__(self):
        self.binaries = max(Path("/usr/lib/postgresql").glob("*/bin"))
        # A socket's path has about a hundred characters at most, and root may start no server.
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self.who = {"user": "postgres"} if os.getuid() == 0 else {}
        if self.who:
            shutil.chown(self.folder, "postgres")
        self.run("initdb", "-U", "holder", "-A", "trust", "-E", "UTF8")
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self.run("pg_ctl", "-w", "-o", options, "-l", f"{self.folder}/log", "start")
        atexit.register(self.end)

    def run(self, program, *words):
        words = [f"{self.binaries}/{program}", "-D", f"{self.folder}/data", *words]
        with open(self.folder / "words", "a") as log:
            subprocess.run(words, check=True, stdout=log, stderr=log, cwd="/", **self.who)

    def end(self):
        self.run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)


_server = functools.cache(_Server)


def _postgresql(folder):
    kinds, parts = [f"{IDS} TEXT"], [IDS]
    for column in COLUMNS:
        kind = OWN.get(column.name, KINDS.get(column.kind, "TEXT"))
        kinds.append(f"{column.name} {kind}")
        parts.append(f"({_made(column)})::{kind}")
    texts = ", ".join(f"{name} TEXT" for name in (IDS, *(c.name for c in COLUMNS)))
    script = [
        "SET TimeZone = 'Europe/Berlin';",
        "CREATE TYPE level AS ENUM ('low', 'mid', 'high');",
        f"CREATE TABLE base ({texts});",
        "\\copy base FROM base.csv WITH (FORMAT csv, HEADER, FORCE_NOT_NULL (gaps))",
        f"CREATE TABLE t ({', '.join(kinds)});",
        f"INSERT INTO t SELECT {', '.join(parts)} FROM base;",
        "\\copy t TO table.csv WITH (FORMAT csv, HEADER)",
        "\\copy t TO table.txt WITH (FORMAT text, HEADER)",
    ]
    (folder / "address").unlink(missing_ok=True)
    (folder / "address").symlink_to(_server().folder)
    called(folder, "dropdb", "-h", _server().folder, "-U", "holder", "--if-exists", "cases")
    called(folder, "createdb", "-h", _server().folder, "-U", "holder", "cases")
    words = ["-h", _server().folder, "-U", "holder", "-v", "ON_ERROR_STOP=1", "cases"]
    called(folder, "psql", *words, text="\n".join(script))


# Its integers have 63 bits, and its NUMERIC is floating-point.
DOUBLE = CODES | rounded("digits")
UNSIGNED = rounded("unsigned", digits=15)
SQLITE = Tool(
    "SQLite",
    program("sqlite3", "--version"),
    _sqlite,
    (
        Format("a query", "sqlite:{folder}/table.db", QUERY, DOUBLE | rounded("unsigned")),
        Format("CSV", "table.csv", holds=DOUBLE | UNSIGNED | rounded("ratio", digits=15)),
        Format("JSON", "table.json"),
        Format("database file", "table.db"),
    ),
)
POSTGRESQL = Tool(
    "PostgreSQL",
    program("psql", "--version"),
    _postgresql,
    (
        Format(
            "a query",
            "postgresql://holder@/cases?host={folder}/address",
            QUERY,
            CODES,
        ),
        Format("CSV", "table.csv", holds=CODES),
        Format("text", "table.txt", holds=CODES),
    ),
)
TOOLS = (SQLITE, POSTGRESQL)
