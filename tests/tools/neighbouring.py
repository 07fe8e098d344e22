"""Drawn tables with odd cells, in every format that is read, for ``tests/tools/neighbours.py``.

What is public of a table (types of its columns, encoding, separator) is drawn once for both of two
neighbours. What a record holds is drawn for this record alone.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib.util
import json
import math
import random
import sqlite3
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet

from vertimrf import ReadOptions, Schema

# Names that a file without a header gave its columns, so that earlier code can be tried too.
NAMES = [f"column{i}" for i in range(1, 9)]
SCHEMA = Schema.from_json(
    {
        "party": [
            {
                "name": "one",
                "attribute": [
                    {"name": NAMES[1], "values": ["f", "m"], "missing": True},
                    {"name": NAMES[2], "values": [1, 2.5, 30], "missing": True},
                    {"name": NAMES[3], "codes": 4, "missing": True},
                    {"name": NAMES[4], "bounds": [0, 100], "bins": 5, "missing": True},
                    {
                        "name": NAMES[5],
                        "bounds": [date(2020, 1, 1), date(2020, 12, 31)],
                        "bins": 4,
                        "missing": True,
                    },
                    {
                        "name": NAMES[6],
                        "bounds": [date(2020, 1, 1), date(2020, 12, 31)],
                        "bins": 4,
                        "format": "%Y%m%d",
                        "missing": True,
                    },
                    {
                        "name": NAMES[7],
                        "bounds": [datetime(2020, 1, 1), datetime(2020, 12, 31)],
                        "bins": 4,
                        "calendar": "timestamp",
                        "clamp": True,
                        "missing": True,
                    },
                ],
            }
        ]
    }
)
DAY, MOMENT = date(2020, 3, 4), datetime(2020, 3, 4, 5, 6)
# Usual cells by column, and odd ones of any.
USUAL = [
    None,
    ["f", "m"],
    [1, 2.5, 30],
    [0, 1, 2, 3],
    [0, 17.5, 99, 100],
    [DAY, date(2020, 9, 30)],
    [20200304, 20201231],
    [MOMENT, datetime(2020, 12, 30)],
]
TEXTS = [
    *("", "NA", "nan", "x", " F", "m ", "1", "1.0", " 1", "1.5", "-1", "1e400", "inf", "１", "0x1"),
    *("2020-03-04", "20200304", "2020-03-04 05:06:00", "2020-03-04T05:06:00+02:00", "true", "True"),
    *(
        "a,b",
        "a;b",
        "a|b\tc",
        'q"q',
        '"q"',
        "two\nlines",
        "\r",
        "é",
        "😀",
        "\u2028",
        "\\xff",
        "%PDF-",
    ),
    *("PAR1", "ORC", "BZh91AY&SY", "ASCII SPSS PORT FILE", "SQLite format 3", "<html>", "ustar"),
    *("DUCK", '{"a": 1}', "[1]", "=1+1", "#N/A", "$1,200", "13%", "9" * 30, "NULL", "'", "﻿"),
    *("y" * 3000, "0001", "(0, 1]", "1_000", "-0", "+1", "1d", ".", "1.", "\t1", "P1D"),
]
NUMBERS = [-1, 0.5, 7, 1e9, 2**40, -0.0, 1e300, math.inf, -math.inf, math.nan, 20200304, 20201232]
MOMENTS = [
    *(DAY, date(1, 1, 1), date(9999, 12, 31), MOMENT, datetime(1700, 1, 1), datetime(2020, 3, 4)),
    *(MOMENT.replace(tzinfo=UTC), datetime(2400, 1, 1), time(3, 4), timedelta(days=1, hours=2)),
]
OBJECTS = [
    *(None, pd.NA, pd.NaT, True, False, b"f", b"\xff", 2**63, 2**70, -(2**70), Decimal("2.5")),
    *(Decimal("NaN"), Decimal("1e99"), UUID(int=7), [1], {"a": 1}, (), object(), 1j),
    *(pd.Interval(0, 1), pd.Period("2020-01"), pd.Timestamp(2020, 3, 4), pd.Timedelta(5)),
]
# Cells of a column of an Arrow type.
INSTANTS = [None, *(m for m in MOMENTS if isinstance(m, datetime) and m.tzinfo is None)]
TYPED = {
    "string": [None, *TEXTS],
    "large_string": [None, *TEXTS],
    "int64": [None, 0, 1, 2, 30, -5, 2**62, 20200304, 20201232],
    "int8": [None, 0, 1, 2, 30],
    "uint64": [None, 0, 1, 2**64 - 1],
    "double": [None, *map(float, [0, 1, 2, 30, 2**40]), 2.5, 0.1, math.nan, math.inf, 20200304.0],
    "float": [None, 0.0, 1.0, 2.5, math.nan, math.inf],
    "bool": [None, True, False],
    "date32": [None, DAY, date(1, 1, 1), date(9999, 12, 31)],
    "timestamp[us]": INSTANTS,
    "timestamp[ns]": [t for t in INSTANTS if t is None or 1700 <= t.year < 2200],
    "zoned": [None, MOMENT.replace(tzinfo=UTC)],
    "time64[us]": [None, time(3, 4)],
    "duration[us]": [None, timedelta(seconds=30), timedelta(seconds=2.5), timedelta(days=10**6)],
    "decimal": [None, *map(Decimal, ["1", "2.5", "30", "99999.99"])],
    "dictionary": [None, "f", "m", "1", "x"],
    "binary": [None, b"f", b"\xff", b""],
    "list": [None, [1], []],
    "null": [None],
}
SPECIAL = {
    "zoned": pa.timestamp("us", "UTC"),
    "decimal": pa.decimal128(10, 2),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "list": pa.list_(pa.int64()),
    "date32": pa.date32(),
}
# Types by column that it may well have.
FITTING = [
    ["string", "int64", "large_string"],
    ["string", "dictionary", "null"],
    ["int64", "double", "string", "decimal", "float"],
    ["int64", "double", "int8", "string", "null"],
    ["double", "int64", "string", "float", "duration[us]"],
    ["date32", "timestamp[us]", "string", "double", "null"],
    ["int64", "double", "string", "date32"],
    ["timestamp[us]", "timestamp[ns]", "string", "date32", "zoned", "double"],
]
ROWS = 8
# Encodings in which a character may have several bytes, or shift what later ones mean; and what begins one.
LONGER = {
    **dict.fromkeys(["euc_kr", "cp949", "johab"], (b"\xa4\xd4", b"\x88", b"\xfe")),
    **dict.fromkeys(["gbk", "gb18030", "big5", "big5hkscs"], (b"\x81", b"\x810", b"\xfe")),
    **dict.fromkeys(["shift_jis", "cp932", "euc_jp"], (b"\x81", b"\x8f\xa1", b"\xfe")),
    **dict.fromkeys(["iso2022_jp", "iso2022_kr"], (b"\x1b$B", b"\x1b$", b"\x0e")),
    "hz": (b"~", b"~{", b"~{0"),
    "utf-7": (b"+", b"+A"),
}


@dataclass(frozen=True)
class Pair:
    """Two neighbours to be made.

    Attributes:
        seed: all that is public of both follows from it.
        rows: records, each a list of cells; of the first table.
        place: which of them the second lacks.
    """

    seed: int
    rows: list
    place: int

    def tables(self):
        """The rows of both."""
        return self.rows, self.rows[: self.place] + self.rows[self.place + 1 :]

    @property
    def public(self):
        """A source of what is public; the same each time."""
        return random.Random(self.seed)


def drawn_objects(rng, odd=0.1, pool=(*TEXTS, *NUMBERS, *MOMENTS, *OBJECTS)):
    """Records of cells of any type; often a column has the same oddity throughout but for a cell."""
    only = {c: rng.choice([None, math.nan]) for c in range(1, 8) if rng.random() < 0.3}
    rows = []
    for i in range(ROWS):
        cells = [
            rng.choice(pool)
            if rng.random() < odd
            else only.get(c, rng.choice(usual))
            if rng.random() < 0.8
            else rng.choice(usual)
            for c, usual in list(enumerate(USUAL))[1:]
        ]
        rows.append([_id(rng, i, pool), *cells])
    return rows


def _id(rng, i, pool):
    draw = rng.random()
    if draw < 0.06:
        return rng.choice(pool)
    return f"p{i if draw < 0.95 else rng.randrange(ROWS)}"


def kinds_of(public):
    """Arrow types of the columns."""
    return [
        public.choice(fitting) if public.random() < 0.95 else public.choice([*TYPED])
        for fitting in FITTING
    ]


@functools.cache
def usual_cells(at, kind):
    """Cells of a type that fit a column; any of the type where there are none."""
    texts = [cell for usual in (USUAL[at] or []) for cell in (usual, str(usual))]
    fitting = []
    for cell in texts:
        with contextlib.suppress(pa.ArrowException, ArithmeticError, TypeError, ValueError):
            fitting += pa.array([cell], type_of(kind)).to_pylist()
    return [None, *fitting] if fitting else TYPED[kind]


def drawn_typed(rng, kinds):
    """Records of cells of some types."""
    rows = []
    for i in range(ROWS):
        cells = [
            rng.choice(usual_cells(at, kind) if rng.random() < 0.9 else TYPED[kind])
            for at, kind in enumerate(kinds)
        ]
        if rng.random() < 0.9 and kinds[0] in ("string", "large_string", "int64"):
            cells[0] = i if kinds[0] == "int64" else f"p{i}"
        rows.append(cells)
    return rows


def type_of(kind):
    """An Arrow type."""
    return SPECIAL.get(kind) or pa.type_for_alias(kind)


def arrow_table(rows, kinds):
    """An Arrow table of these types."""
    types = [*map(type_of, kinds)]
    columns = [*zip(*rows, strict=True)] or [()] * len(kinds)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], NAMES)


def text_of(cell):
    """A cell as a text file has it."""
    if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell:
        return ""
    return cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)


def quoted(text, delimiter):
    """A cell of a CSV file."""
    odd = any(mark in text for mark in (delimiter, '"', "\n", "\r"))
    return '"' + text.replace('"', '""') + '"' if odd else text


def csv_line(row, delimiter, encoding, rng):
    """A record of a CSV file, which may be damaged: but for a quote that nothing closes."""
    cells = [quoted(text_of(cell), delimiter) for cell in row]
    if (draw := rng.random()) < 0.08:
        cells = cells[:-1] if draw < 0.04 else [*cells, "x"]
    line = delimiter.join(cells).encode(encoding, "replace")
    if encoding == "utf-8" and rng.random() < 0.05:
        # Not in the id, by which records of neighbours are compared.
        line = line[:9] + line[9:].replace(b"0", b"\xff", 1)
    if encoding in LONGER and rng.random() < 0.4 and not line.endswith(b'"'):
        line += rng.choice(LONGER[encoding])
    return line


def csv_file(folder, rows, pair, header):
    """A CSV file, with or without a header."""
    public = pair.public
    delimiter, stated = public.choice(",;\t|"), public.random() < 0.5
    longer = public.choice([*LONGER])
    encoding = public.choice(["utf-8", "utf-8", "latin-1", "utf-16-le", longer, longer])
    end = public.choice([b"\n", b"\r\n"]).decode().encode(encoding)
    # What a record looks like follows from itself, wherever it stands.
    lines = [csv_line(row, delimiter, encoding, random.Random(repr(row[0]))) for row in rows]
    read = {"encoding": encoding}
    if header:
        lines.insert(0, delimiter.join(NAMES).encode(encoding))
        read |= {"delimiter": delimiter} if stated else {}
    else:
        read |= {"no_header": True}
        if "columns" in {each.name for each in fields(ReadOptions)}:
            read |= {"columns": tuple(NAMES), "delimiter": delimiter}
    content, packed = b"".join(line + end for line in lines), public.random() < 0.2
    path = folder / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    return path, ReadOptions(**read)


def json_value(cell):
    """A cell as JSON has it."""
    if isinstance(cell, bool | str | list | dict) or cell is None:
        return cell
    if isinstance(cell, int | float) and math.isfinite(cell):
        return cell
    return text_of(cell) or None


def json_file(folder, rows, pair):
    """JSON lines, of which some are damaged."""
    lines = []
    for row in rows:
        rng = random.Random(repr(row[0]))
        line = {n: json_value(c) for n, c in zip(NAMES, row, strict=True) if rng.random() < 0.95}
        text = json.dumps(line).encode()
        odd = [
            text[:-3],
            b"[1]",
            b"{}",
            b"",
            text.replace(b"column2", b"\xff", 1),
            text + b"}",
            b"PK\3\4",
            b"1",
        ]
        lines.append(rng.choice(odd) if rng.random() < 0.12 else text)
    packed = pair.public.random() < 0.2
    content = b"".join(line + b"\n" for line in lines)
    path = folder / ("t.jsonl.gz" if packed else "t.jsonl")
    path.write_bytes(gzip.compress(content) if packed else content)
    return path, ReadOptions()


def typed_file(folder, rows, pair, write, name):
    """A file of an Arrow table."""
    path = folder / name
    write(arrow_table(rows, kinds_of(pair.public)), path)
    return path, ReadOptions()


def arrow_stream(table, path):
    """An Arrow stream."""
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def orc(table, path):
    """An ORC file. Types that it lacks, or of which a cell may refuse the file, are texts."""

    def lacked(kind):
        timed = pa.types.is_temporal(kind) and not pa.types.is_date(kind)
        return timed or kind in (pa.null(), pa.uint64()) or pa.types.is_dictionary(kind)

    kinds = [pa.string() if lacked(field.type) else field.type for field in table.schema]
    pa.orc.write_table(table.cast(pa.schema(zip(table.column_names, kinds, strict=True))), path)


def workbook(folder, rows, pair):
    """A spreadsheet of Excel."""
    import openpyxl

    def cell(value):
        if isinstance(value, str):
            return openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", value)
        if isinstance(value, datetime):
            return value.replace(tzinfo=None) if value.year > 1900 else None
        if isinstance(value, bool | date | time | timedelta) or value is None:
            return value if not isinstance(value, date) or value.year > 1900 else None
        finite = isinstance(value, int | float) and math.isfinite(value)
        return value if finite else text_of(value)

    book = openpyxl.Workbook()
    for row in (NAMES, *rows):
        book.active.append([*map(cell, row)])
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx", ReadOptions()


def statistics_file(folder, rows, pair, reader, writer, name):
    """A file of SPSS, Stata or SAS, read in this process: the child that reads it takes a second to start."""
    import pyreadstat

    from vertimrf.tables.apart import statistics

    public = pair.public
    kinds = ["string", *(public.choice(["string", "double", "date32"]) for _ in NAMES[1:])]
    columns = {}
    for at, (column, kind) in enumerate(zip(NAMES, kinds, strict=True)):
        cells = [_of_kind(row[at], kind) for row in rows]
        columns[column] = pd.Series(cells, dtype="float64" if kind == "double" else object)
    path = folder / name
    getattr(pyreadstat, writer)(pd.DataFrame(columns), str(path))
    return statistics(reader, "a file", path), ReadOptions()


def _of_kind(cell, kind):
    """A cell, or what is nearest to it in a column of a kind."""
    if kind == "string":
        return text_of(cell).replace("\0", "").replace("﻿", "")[:200]
    if kind == "double":
        number = isinstance(cell, int | float) and math.isfinite(cell)
        return float(cell) if number else math.nan
    return cell if type(cell) is date and cell.year > 1600 else None


def frame(folder, rows, pair, kind):
    """A data frame of pandas, whose types pandas finds, or of objects; or arrays by name."""
    columns = {n: [row[i] for row in rows] for i, n in enumerate(NAMES)}
    if kind == "arrays":
        return columns, ReadOptions()
    if kind == "objects":
        return pd.DataFrame(
            {n: pd.Series(c, dtype=object) for n, c in columns.items()}
        ), ReadOptions()
    made = {}
    for name, cells in columns.items():
        # Numbers that pandas itself would round beside a missing one stay objects.
        large = any(isinstance(cell, int) and abs(cell) > 2**53 for cell in cells)
        made[name] = pd.Series(cells, dtype=object if large else None)
    return pd.DataFrame(made), ReadOptions()


def polars_frame(folder, rows, pair):
    """A data frame of polars, some of its columns of objects."""
    import polars as pl

    table = arrow_table(rows, kinds_of(pair.public))
    return pl.from_arrow(table), ReadOptions()


def inferred(folder, rows, pair):
    """An Arrow table, or one in Parquet, whose types Arrow finds in the cells, where it can."""
    columns = []
    for at in range(len(NAMES)):
        cells = [row[at] for row in rows]
        try:
            columns.append(pa.array(cells))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            columns.append(pa.array([text_of(cell) for cell in cells]))
    return pa.table(columns, NAMES), ReadOptions()


QUERY = "SELECT * FROM people"


def duckdb_file(folder, rows, pair):
    """A database of DuckDB."""
    import duckdb

    table = arrow_table(rows, kinds_of(pair.public))
    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.from_arrow(table).create("people")
    return f"duckdb:{folder}/t.duckdb", ReadOptions(query=QUERY)


def sqlite_file(folder, rows, pair):
    """A database of SQLite, whose cells have types of their own."""
    (folder / "t.sqlite").unlink(missing_ok=True)

    def cell(value):
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return value
        plain = isinstance(value, float | str | bytes) and value == value
        return value if plain else text_of(value) or None

    with contextlib.closing(sqlite3.connect(folder / "t.sqlite")) as file, file:
        kinds = pair.public.choices(["", "INTEGER", "TEXT", "REAL", "BLOB"], k=len(NAMES))
        declared = ", ".join(f"{n} {k}" for n, k in zip(NAMES, kinds, strict=True))
        file.execute(f"CREATE TABLE people ({declared})")
        marks = ",".join("?" * len(NAMES))
        file.executemany(f"INSERT INTO people VALUES ({marks})", [[*map(cell, r)] for r in rows])
    return f"sqlite:{folder}/t.sqlite", ReadOptions(query=QUERY)


IN_POSTGRESQL = {
    "string": "text", "int64": "bigint", "double": "double precision", "date32": "date",
    "timestamp[us]": "timestamp", "zoned": "timestamptz", "bool": "boolean", "numeric": "numeric",
    "interval": "interval",
}  # fmt: skip
FITTING_POSTGRESQL = [
    *(["string"], ["int64", "numeric"], ["int64", "double"], ["double", "numeric", "interval"]),
    *(["date32"], ["int64", "double"], ["timestamp[us]", "zoned"]),
]
# The first is a usual one.
CELLS_OF_POSTGRESQL = {
    "string": ["'f'", "'m'", "'1'", "''", "'x'", "'2020-03-04'"],
    "int64": ["1", "0", "20200304", "-9223372036854775808"],
    "double": ["1", "2.5", "'nan'", "'infinity'", "1e300"],
    "date32": ["'2020-03-04'", "'infinity'", "'0001-01-01 BC'", "'99999-01-01'"],
    "timestamp[us]": ["'2020-03-04 05:06'", "'-infinity'", "'290000-01-01'"],
    "zoned": ["'2020-03-04 05:06+00'", "'infinity'"],
    "bool": ["true", "false"],
    "numeric": ["1", "2.5", "'nan'", "'infinity'", "1e200", "123456789012345678901234567890.5"],
    "interval": ["'30 seconds'", "'1 month'", "'2 days 3 hours'", "'100000 years'"],
}


def postgresql_table(folder, rows, pair, address):
    """A table of PostgreSQL."""
    import adbc_driver_postgresql.dbapi as adbc

    public = pair.public
    kinds = [
        "string",
        *(
            public.choice(usual if public.random() < 0.95 else [*IN_POSTGRESQL])
            for usual in FITTING_POSTGRESQL
        ),
    ]
    declared = ", ".join(f"{n} {IN_POSTGRESQL[k]}" for n, k in zip(NAMES, kinds, strict=True))

    def cell(row, at):
        if at == 0:
            return "'" + text_of(row[0]).replace("'", "''").replace("\0", "") + "'"
        rng = random.Random(f"{row[0]!r} {at}")
        usual = rng.random() < 0.8
        return rng.choice(["NULL", *CELLS_OF_POSTGRESQL[kinds[at]][: 1 if usual else None]])

    values = ", ".join(f"({', '.join(cell(row, at) for at in range(len(NAMES)))})" for row in rows)
    with adbc.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS people")
        cursor.execute(f"CREATE TABLE people ({declared})")
        if values:
            cursor.execute(f"INSERT INTO people VALUES {values}")
        connection.commit()
    return address, ReadOptions(query=QUERY)


def objects(rng, public):
    """Records of objects."""
    return drawn_objects(rng)


def plain_objects(rng, public):
    """Records of objects without those that a program would have had to round."""
    return drawn_objects(rng, pool=(*TEXTS, *NUMBERS, *MOMENTS, None, True, b"f"))


def alike(rng, public):
    """Records whose cells in a column are of one kind, but for missing ones and, at times, another."""
    pools = [
        public.choice([TEXTS, NUMBERS[:9], [DAY], [MOMENT], [True, False], usual])
        for usual in USUAL[1:]
    ]
    return [
        [
            f"p{i}",
            *(
                rng.choice([None, rng.choice(pool)]) if rng.random() < 0.9 else None
                for pool in pools
            ),
        ]
        for i in range(ROWS)
    ]


def typed(rng, public):
    """Records of cells of the table's types."""
    return drawn_typed(rng, kinds_of(public))


STATISTICS = {
    "SPSS": ("read_sav", "write_sav", "t.sav"),
    "Stata": ("read_dta", "write_dta", "t.dta"),
    "SAS transport": ("read_xport", "write_xport", "t.xpt"),
}
# By format, how records are drawn, and how a table of them is made.
# Packages that write or read a format, beside those of all tests.
NEEDED = {"XLSX": ("openpyxl", "python_calamine"), **dict.fromkeys(STATISTICS, ("pyreadstat",))}
FORMATS = {
    "CSV": (objects, functools.partial(csv_file, header=True)),
    "CSV without a header": (objects, functools.partial(csv_file, header=False)),
    "JSON lines": (objects, json_file),
    "Parquet": (typed, functools.partial(typed_file, write=pa.parquet.write_table, name="t.parquet")),
    "Arrow file": (typed, functools.partial(typed_file, write=pa.feather.write_feather, name="t.arrow")),
    "Arrow stream": (typed, functools.partial(typed_file, write=arrow_stream, name="t.arrows")),
    "ORC": (typed, functools.partial(typed_file, write=orc, name="t.orc")),
    "Arrow, types found": (alike, inferred),
    "XLSX": (plain_objects, workbook),
    **{
        name: (plain_objects, functools.partial(statistics_file, reader=r, writer=w, name=n))
        for name, (r, w, n) in STATISTICS.items()
    },
    "pandas": (objects, functools.partial(frame, kind="inferred")),
    "pandas, types found": (alike, functools.partial(frame, kind="inferred")),
    "pandas, objects": (objects, functools.partial(frame, kind="objects")),
    "arrays": (objects, functools.partial(frame, kind="arrays")),
    "polars": (typed, polars_frame),
    "DuckDB": (typed, duckdb_file),
    "SQLite": (objects, sqlite_file),
    "PostgreSQL": (plain_objects, postgresql_table),
}  # fmt: skip


def installed():
    """The formats whose packages are installed; the extra `files` and openpyxl give the others."""
    return {name for name in FORMATS if all(map(importlib.util.find_spec, NEEDED.get(name, ())))}
