"""Tools of Python, each with its own types where it has them."""

import datetime as dt
from decimal import Decimal

from .columns import COLUMNS, IDS, ids
from .tool import CODES, LARGE, Format, Tool, package, rounded, without

MAKERS = {
    "whole": int,
    "decimal": Decimal,
    "float": float,
    "date": dt.date.fromisoformat,
    "moment": dt.datetime.fromisoformat,
    "zoned": dt.datetime.fromisoformat,
    "clock": dt.time.fromisoformat,
    "span": lambda hours: dt.timedelta(hours=int(hours)),
    "truth": "true".__eq__,
    "labelled": int,
    "extended": lambda pay: None if pay[0] == "." else int(pay),
}


def objects(column):
    """The cells of a column as objects of Python."""
    make = MAKERS.get(column.kind, str)
    return [None if cell == "" else make(cell) for cell in column.cells]


def _polars(folder):
    import polars as pl

    kinds = {c.name: pl.Enum(c.values) for c in COLUMNS if c.kind == "ordered"}
    kinds |= {c.name: pl.Categorical for c in COLUMNS if c.kind == "factor"}
    data = {IDS: ids()} | {column.name: objects(column) for column in COLUMNS}
    frame = pl.DataFrame(data, schema_overrides=kinds | {"unsigned": pl.UInt64})
    frame.write_parquet(folder / "table.parquet")
    frame.write_ipc(folder / "table.arrow")
    # A CSV file of polars has no durations.
    frame.drop("stay").write_csv(folder / "table.csv")
    frame.write_ndjson(folder / "table.jsonl")
    frame.write_json(folder / "table.json")
    # Excel has no zones.
    frame.drop("zoned").write_excel(folder / "table.xlsx")


def _pandas_frame():
    import pandas as pd

    data = {IDS: ids()} | {column.name: objects(column) for column in COLUMNS}
    frame = pd.DataFrame(data)
    frame["gaps"] = frame["gaps"].astype("Int64")
    frame["pay"] = frame["pay"].astype("Int64")
    for column in COLUMNS:
        if column.kind in ("ordered", "factor"):
            kind = pd.CategoricalDtype(column.values, column.kind == "ordered")
            frame[column.name] = frame[column.name].astype(kind)
    return frame


def _fastparquet(folder):
    import pandas as pd
    from fastparquet import write

    frame = _pandas_frame()
    # It has decimals as floating-point numbers, and no dates: days are timestamps.
    for column in COLUMNS:
        if column.kind == "decimal":
            frame[column.name] = frame[column.name].astype(float)
        if column.kind == "date" and column.name != "until":
            frame[column.name] = pd.to_datetime(frame[column.name])
    frame = frame.drop(columns=["until", "ends", "clock"])
    write(str(folder / "table.parquet"), frame)
    write(str(folder / "int96.parquet"), frame, times="int96")


def _duckdb(folder):
    import duckdb

    kinds = {
        "whole": "BIGINT", "float": "DOUBLE", "date": "DATE", "moment": "TIMESTAMP", "zoned": "TIMESTAMPTZ", "clock": "TIME",
        "truth": "BOOLEAN", "labelled": "INTEGER",
    }  # fmt: skip
    own = {"tiny": "TINYINT", "small": "SMALLINT", "whole": "INTEGER", "unsigned": "UBIGINT"}
    own |= {"digits": "DECIMAL(20, 4)"}
    with duckdb.connect(str(folder / "table.duckdb")) as connection:
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        parts = [IDS]
        for column in COLUMNS:
            name, kind = column.name, own.get(column.name, kinds.get(column.kind, "VARCHAR"))
            kind = own.get(name, "DECIMAL(12, 2)") if column.kind == "decimal" else kind
            made = f"nullif({name}, '')::{kind}"
            if column.kind == "span":
                made = f"to_hours({name}::INT)"
            if column.kind in ("ordered", "factor"):
                made = f"{name}::ENUM({', '.join(map(repr, column.values))})"
            if column.kind == "extended":
                made = f"TRY_CAST({name} AS INT)"
            parts.append(f"{made} AS {name}")
        base = f"read_csv('{folder}/base.csv', all_varchar = true, allow_quoted_nulls = false)"
        connection.execute(f"CREATE TABLE t AS SELECT {', '.join(parts)} FROM {base}")
        connection.execute(f"COPY t TO '{folder}/table.parquet'")
        connection.execute(f"COPY t TO '{folder}/table.csv'")
        connection.execute(f"COPY t TO '{folder}/table.jsonl'")
        connection.execute(f"COPY t TO '{folder}/table.json' (ARRAY true)")


def _excel_cell(cell):
    """A cell that Excel has: it has no zones, and no numbers of more than 15 digits."""
    if isinstance(cell, dt.datetime) and cell.tzinfo is not None:
        return cell.isoformat(sep=" ")
    if isinstance(cell, Decimal | int) and abs(cell) > 10**15:
        return str(cell)
    return cell


def _openpyxl(folder):
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("data")
    sheet.append([IDS, *(column.name for column in COLUMNS)])
    for row in zip(ids(), *map(objects, COLUMNS), strict=True):
        sheet.append(list(map(_excel_cell, row)))
    book.save(folder / "table.xlsx")


def _xlsxwriter(folder):
    import xlsxwriter

    # Excel has no dates before 1900.
    with xlsxwriter.Workbook(
        str(folder / "table.xlsx"), {"default_date_format": "yyyy-mm-dd hh:mm:ss"}
    ) as book:
        sheet = book.add_worksheet("data")
        hours = book.add_format({"num_format": "[h]:mm:ss"})
        date, clock = (book.add_format({"num_format": f}) for f in ("yyyy-mm-dd", "hh:mm:ss"))
        kept = [column for column in COLUMNS if column.name != "born"]
        sheet.write_row(0, 0, [IDS, *(column.name for column in kept)])
        sheet.write_column(1, 0, ids())
        for place, column in enumerate(kept, 1):
            form = {"span": hours, "date": date, "clock": clock}.get(column.kind)
            for row, cell in enumerate(map(_excel_cell, objects(column)), 1):
                sheet.write(row, place, cell, form)


def _fastavro(folder):
    import fastavro

    kinds = {
        "whole": "long", "float": "double", "date": {"type": "int", "logicalType": "date"}, "truth": "boolean", "labelled": "int",
        "extended": "int",
    }  # fmt: skip
    kept = [column for column in COLUMNS if column.name != "unsigned" and column.kind in kinds]
    fields = [{"name": column.name, "type": ["null", kinds[column.kind]]} for column in kept]
    schema = {"type": "record", "name": "row", "fields": [{"name": IDS, "type": "string"}, *fields]}
    names = [IDS, *(column.name for column in kept)]
    rows = zip(ids(), *map(objects, kept), strict=True)
    with open(folder / "table.avro", "wb") as file:
        fastavro.writer(file, schema, [dict(zip(names, row, strict=True)) for row in rows])


def _pyreadr(folder):
    import pyreadr

    frame = _pandas_frame()[[IDS, "whole", "ratio", "day", "level", "truth", "zip"]]
    pyreadr.write_rds(str(folder / "table.rds"), frame)
    pyreadr.write_rdata(str(folder / "table.RData"), frame, df_name="table")


EXCEL = CODES | rounded(*LARGE, "ratio", digits=16)
# XlsxWriter counts days before 1900 from another day than other programs (findings/xlsxwriter-dates-before-1900.sh), and polars
# writes durations as plain numbers of days.
POLARS_EXCEL = {
    "born": {"1850-01-01": "1849-12-31", "1899-12-30": "1899-12-29"},
    "stay": {"1": "0.04166666666666666", "35": "1.458333333333333", "199": "8.291666666666666"},
}
ISO_SPANS = {"stay": {"1": "PT3600S", "35": "PT126000S", "199": "PT716400S"}}
POLARS = Tool(
    "polars",
    package("polars", "XlsxWriter"),
    _polars,
    (
        Format("Parquet", "table.parquet", holds=CODES),
        Format("Arrow", "table.arrow", holds=CODES),
        Format(
            "CSV",
            "table.csv",
            holds=CODES | without("stay"),
        ),
        Format("JSON lines", "table.jsonl", holds=CODES | ISO_SPANS),
        Format("JSON", "table.json"),
        Format("XLSX", "table.xlsx", holds=EXCEL | POLARS_EXCEL | without("zoned")),
    ),
)
DUCKDB = Tool(
    "DuckDB",
    package("duckdb"),
    _duckdb,
    (
        Format("a query", "duckdb:{folder}/table.duckdb", ("--query", "SELECT * FROM t"), CODES),
        Format("Parquet", "table.parquet", holds=CODES),
        Format("CSV", "table.csv", holds=CODES),
        Format("JSON lines", "table.jsonl", holds=CODES | rounded("digits")),
        Format("JSON", "table.json"),
        Format("database file", "table.duckdb"),
    ),
)
FASTPARQUET = Tool(
    "fastparquet",
    package("fastparquet", "pandas"),
    _fastparquet,
    (
        Format(
            "Parquet",
            "table.parquet",
            holds=CODES | rounded("digits") | without("until", "ends", "clock"),
        ),
        Format(
            "Parquet, INT96",
            "int96.parquet",
            holds=CODES | rounded("digits") | without("until", "ends", "clock"),
        ),
    ),
)
OPENPYXL = Tool(
    "openpyxl",
    package("openpyxl"),
    _openpyxl,
    (Format("XLSX", "table.xlsx", holds=CODES | rounded("ratio", digits=16)),),
)
XLSXWRITER = Tool(
    "XlsxWriter",
    package("XlsxWriter"),
    _xlsxwriter,
    (
        Format(
            "XLSX",
            "table.xlsx",
            holds=CODES | rounded("ratio", digits=16) | without("born"),
        ),
    ),
)
FASTAVRO = Tool("fastavro", package("fastavro"), _fastavro, (Format("Avro", "table.avro"),))
PYREADR = Tool(
    "pyreadr",
    package("pyreadr"),
    _pyreadr,
    (Format("RDS", "table.rds"), Format("RData", "table.RData")),
)
TOOLS = (POLARS, DUCKDB, FASTPARQUET, OPENPYXL, XLSXWRITER, FASTAVRO, PYREADR)
