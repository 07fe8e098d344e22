"""Tables of every kind: each is read, and gives the records of the same CSV file, or is refused in a sentence that names it."""

import bz2
import contextlib
import datetime
import gzip
import io
import json
import lzma
import pickle
import re
import sqlite3
import struct
import tarfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest
from builders import rows_of
from commands import good, refused
from workbooks import opendocument, workbook, zipped

from vertimrf import Attribute, ReadOptions, Schema
from vertimrf.errors import TableError
from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import IdKeys
from vertimrf.tables.sources import format_of, open_as_found, open_pieces, read_arrow

ROWS = 240
KEYS = IdKeys(*(bytes([i]) * 16 for i in range(3)))
SCHEMA = Schema.of(
    {
        "one": [
            Attribute.categorical("sex", ["f", "m"], missing=True),
            Attribute.numeric("weight", range(0, 101, 20), missing=True),
            Attribute.integer("visits", 4),
        ]
    }
)


def columns():
    rng = np.random.default_rng(1)
    sex = [None if draw == 2 else "fm"[draw] for draw in rng.integers(0, 3, ROWS)]
    weight = [None if draw < 5 else round(draw, 1) for draw in rng.uniform(0, 100, ROWS).tolist()]
    return {
        "id": [f"p{i:04}" for i in range(ROWS)],
        "sex": sex,
        "weight": weight,
        "visits": rng.integers(0, 4, ROWS).tolist(),
    }


TABLE = pa.table(columns())
LINES = TABLE.to_pylist()
CSV = "".join(
    ",".join("" if cell is None else str(cell) for cell in row) + "\n"
    for row in [TABLE.column_names, *(line.values() for line in LINES)]
).encode()
JSON = "".join(
    json.dumps({k: v for k, v in line.items() if v is not None}) + "\n" for line in LINES
).encode()


def arrow_bytes(write):
    sink = io.BytesIO()
    write(TABLE, sink)
    return sink.getvalue()


def ipc(make):
    def write(table, sink):
        with make(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)

    return arrow_bytes(write)


SHEET = [TABLE.column_names, *(list(line.values()) for line in LINES)]


def statistics(writer, **more):
    """A file of a statistics package."""

    def made(path):
        package, pd = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
        getattr(package, writer)(pd.DataFrame(columns()), str(path), **more)

    return made


def labelled(writer, **more):
    """The same with codes for the sexes, and their labels."""

    def made(path):
        package, pd = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
        frame = pd.DataFrame(columns())
        frame["sex"] = frame["sex"].map({"f": 1.0, "m": 2.0})
        labels = {"sex": {1: "f", 2: "m"}}
        getattr(package, writer)(frame, str(path), variable_value_labels=labels, **more)

    return made


def sentinels(path):
    """A file of SPSS in which 999 is declared to be missing."""
    package, pd = pytest.importorskip("pyreadstat"), pytest.importorskip("pandas")
    frame = pd.DataFrame(columns())
    frame["weight"] = frame["weight"].fillna(999.0)
    package.write_sav(
        frame,
        str(path),
        missing_ranges={"weight": [999]},
        variable_value_labels={"weight": {999: "refused"}},
    )


def needs(package, content):
    def made(path):
        pytest.importorskip(package)
        path.write_bytes(content)

    return made


def compressed(kind, content):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, kind) as stream:
        stream.write(content)
    return out.getvalue().to_pybytes()


def parts(folder):
    """The same in two files."""
    folder.mkdir(exist_ok=True)
    header, *rows = CSV.splitlines(keepends=True)
    for i, some in enumerate((rows[:100], rows[100:])):
        (folder / f"part-{i}.csv").write_bytes(b"".join([header, *some]))


def stored(kind):
    """A table of a database, and the words that name it."""

    def made(path):
        path.unlink(missing_ok=True)
        if kind == "sqlite":
            with contextlib.closing(sqlite3.connect(path)) as file, file:
                file.execute("CREATE TABLE people (id, sex, weight, visits)")
                rows = map(list, map(dict.values, LINES))
                file.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        else:
            with pytest.importorskip("duckdb").connect(str(path)) as file:
                file.from_arrow(TABLE).create("people")
        return f"{kind}:{path}"

    return made


READ = {
    "t.csv": CSV,
    "t.tsv": CSV.replace(b",", b"\t"),
    "t.csv.gz": gzip.compress(CSV),
    "t.csv.bz2": bz2.compress(CSV),
    "t.csv.xz": lzma.compress(CSV),
    "t.csv.zst": compressed("zstd", CSV),
    "packed.csv": compressed("lz4", CSV),
    "t.jsonl": JSON,
    "t.jsonl.gz": gzip.compress(JSON),
    "t.parquet": arrow_bytes(pa.parquet.write_table),
    "parquet.csv": arrow_bytes(pa.parquet.write_table),
    "t.arrow": ipc(pa.ipc.new_file),
    "t.feather": arrow_bytes(pa.feather.write_feather),
    "stream.arrow": ipc(pa.ipc.new_stream),
    "t.orc": arrow_bytes(pa.orc.write_table),
    "orc.dat": arrow_bytes(pa.orc.write_table),
    "t.xlsx": needs("python_calamine", workbook(SHEET, [])),
    "t.ods": needs("python_calamine", opendocument(SHEET)),
    "t.sav": statistics("write_sav"),
    "packed.zsav": statistics("write_sav", compress=True),
    "labels.sav": labelled("write_sav"),
    "sentinels.sav": sentinels,
    "t.dta": labelled("write_dta"),
    "old.dta": labelled("write_dta", version=8),
    "t.xpt": statistics("write_xport"),
    "folder": parts,
    "part-*.csv": lambda path: parts(path.parent),
    "rows.duckdb": stored("duckdb"),
    "rows.sqlite": stored("sqlite"),
}
HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(100)
REFUSED = {
    "t.zip": (zipped({"t.csv": CSV}), "is a ZIP archive: unpack it"),
    "zip.csv": (zipped({"t.csv": CSV}), "is a ZIP archive: unpack it"),
    "t.por": (
        b"0" * 200 + b"ASCII SPSS PORT FILE" + b" " * 100,
        "is an SPSS portable file, which is not read: save it as .sav",
    ),
    "t.xls": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "is an Office file of before 2007, or one with a password, which is not read: save it as .xlsx",
    ),
    "two.xlsx": (
        needs("python_calamine", workbook(SHEET, SHEET)),
        "is a spreadsheet of 2 sheets with cells: save the one",
    ),
    "t.parquet.gz": (gzip.compress(READ["t.parquet"]), "is a Parquet file, compressed by gzip: unpack"),
    "t.json": (json.dumps(LINES).encode(), "is a JSON document, which is not read: write an object on each"),
    "pretty.json": (json.dumps(LINES, indent=1).encode(), "is a JSON document, which is not read: write an"),
    "object.json": (json.dumps(columns(), indent=1).encode(), "is a JSON document, which is not read: write"),
    "t.h5": (HDF5, "is an HDF5 file, which is not read: save its table as Parquet"),
    "t.pkl": (pickle.dumps(columns()), "is a pickle of Python, which is not read: save"),
    "t.rds": (gzip.compress(b"X\n\0\0\0\3\0\4"), "is a file of R, which is not read: save its table in R as CSV (write.csv) or as Parquet (arrow::write_parquet)"),
    "r.dat": (b"RDX3\nX\n\0\0\0\3", "is a file of R, which is not read: save its table in R"),
    "jsonlines.csv": (JSON, "is a JSON document, which is not read: write an object on each line of a file whose name"),
    "t.avro": (b"Obj\1\4", "is an Avro file, which is not read"),
    "t.pdf": (b"%PDF-1.7\n", "is a PDF document, which is not read: export its table as CSV"),
    "t.html": (b"<!DOCTYPE html>\n<html>", "is an HTML or XML document, which is not read: export"),
    "old.feather": (b"FEA1" + bytes(8), "is a Feather file of version 1, which is not read: write it"),
    "t.7z": (b"7z\xbc\xaf\x27\x1c\0", "is a 7z archive, which is not read: unpack it"),
    "t.npy": (b"\x93NUMPY\1\0", "is an array of NumPy, which is not read: save its table as Parquet, for instance by pandas.DataFrame(...).to_parquet(...)"),
    "csv.orc": (CSV, "is not a table: its suffix says orc, but its content differs"),
    "csv.parquet": (CSV, "is not a table: its suffix says parquet, but its content differs"),
    "csv.xlsx": (CSV, "is not a table: its suffix says xlsx, but its content differs"),
    "t.bin": (bytes(range(256)) * 4, "is no text, and no kind of file that is known here, which is not read: convert"),
}  # fmt: skip


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("t.csv")
        member.size = len(CSV)
        archive.addfile(member, io.BytesIO(CSV))
    return out.getvalue()


def database(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (id, sex)")
    connection.commit()
    connection.close()


REFUSED["t.tar"] = tar(), "is a tar archive, which is not read: unpack"
REFUSED["t.tar.gz"] = gzip.compress(tar()), "is a tar archive, compressed by gzip: unpack"
REFUSED["t.sqlite"] = database, "is an SQLite database"


def made(folder, name, content):
    path = folder / name
    if callable(content):
        return content(path) or path
    path.write_bytes(content)
    return path


def read_by(source):
    """How a database is read."""
    return ReadOptions(query="SELECT * FROM people" if ":" in str(source) else None)


def words(source):
    """A table and how it is read, on the command line."""
    query = read_by(source).query
    return [str(source), *(["--query", query] if query else [])]


def encoded(source):
    """The codes of a table by digest."""
    table = encode_table(source, "id", SCHEMA.attributes, read=read_by(source), keys=KEYS)
    return table.codes[:, np.argsort(table.digests)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    SCHEMA.save(folder / "schema.toml")
    (folder / "people.csv").write_bytes(CSV)
    good(f"schema draft {folder}/people.csv --id id --out {folder}/draft.toml")
    return folder


# 30 sources, with those of tests/tables/test_databases.py on a server of PostgreSQL beside them.
@pytest.mark.parametrize("name", READ)
def test_a_table_of_every_kind_gives_the_records_of_the_csv_file(folder, name):
    path = made(folder, name, READ[name])
    assert (encoded(path) == encoded(folder / "people.csv")).all()
    assert len(encoded(path).T) == ROWS
    good("schema draft", words(path), f"--id id --out {folder / name}.toml")
    assert Schema.load(f"{folder / name}.toml") == Schema.load(folder / "draft.toml")
    good("check", words(path), f"--schema {folder}/schema.toml --id id")
    compared = f"--synthetic {folder}/people.csv --schema {folder}/schema.toml --ways 1"
    printed = good("evaluate --real", words(path), compared)
    assert "1-way TVD 0.0000" in printed


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_table_is_refused_by_what_it_is(folder, name):
    content, sentence = REFUSED[name]
    path = made(folder, name, content)
    with pytest.raises(TableError) as caught:
        read_arrow(path)
    assert str(caught.value).startswith(f"{path} {sentence}")


def test_every_command_refuses_a_file_that_is_no_table(folder):
    content, sentence = REFUSED["t.zip"]
    path = made(folder, "t.zip", content)
    for command in (
        f"schema draft {path} --id id --out {folder}/none.toml",
        f"check {path} --schema {folder}/schema.toml --id id",
        f"synthesize {path} --schema {folder}/schema.toml --epsilon 1 --out {folder}/none.csv",
        f"evaluate --real {path} --synthetic {folder}/people.csv --schema {folder}/schema.toml",
    ):
        assert f"Error: {path} {sentence}" in refused(command)
    assert not (folder / "none.toml").exists()


def test_a_missing_package_is_named(folder, monkeypatch):
    path = made(folder, "needs.sav", b"$FL2" + bytes(100))
    (folder / "absent").mkdir()
    (folder / "absent" / "pyreadstat.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(folder / "absent")
    with pytest.raises(
        TableError, match=r"needs.sav is an SPSS file: to read it, pip install 'verti"
    ):
        open_pieces(path)


TORN = {
    "t.sav": b"$FL2",
    "t.dta": b"<stata_dta>",
    "t.xpt": b"HEADER RECORD*******LIB",
    "t.sas7bdat": bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\0",
    "t.xlsx": b"PK\3\4",
    "t.orc": b"ORC\x08",
    "t.parquet": b"PAR1\x15",
    "t.arrow": b"ARROW1\0\0",
    "t.csv.gz": gzip.compress(CSV)[:300],
    "t.csv.zst": READ["t.csv.zst"][:300],
}


@pytest.mark.parametrize("name", TORN)
def test_damaged_files_end_in_a_sentence(folder, name):
    if name in ("t.sav", "t.dta", "t.xpt", "t.sas7bdat"):
        pytest.importorskip("pyreadstat")
    path = made(folder, f"torn-{name}", TORN[name] + b"and then nothing")
    told = f"torn-{name} (is [^(]* that )?cannot be read as a table|torn-{name} is a ZIP archive"
    with pytest.raises(TableError, match=told):
        read_arrow(path)


def test_an_archive_of_an_unknown_version_is_one(folder):
    # Version 7.0 is needed to unpack the entry, says its header.
    content = zipped({"t.csv": CSV}).replace(b"PK\1\2\x14\3\x14", b"PK\1\2\x14\3\x46")
    with pytest.raises(TableError, match=r"new.zip is a ZIP archive: unpack it"):
        open_pieces(made(folder, "new.zip", content))


def test_a_line_that_is_no_object_costs_itself(tmp_path):
    text = b'{"id": 1, "a": "x", "b": [1]}\n\n[1]\n{"id": 2, "a": {"c": 1}}\nno\n{"id": "3", "d": 1}\n{"id": 4, "a": "y"}'
    path = made(tmp_path, "t.jsonl", text)
    assert open_as_found(path).names == ("id", "a", "d")
    rows, said = rows_of(path, columns=["id", "a", "d"])
    assert [row["id"] for row in rows] == [1, "3", 4]
    assert [count for _, _, count in said] == [1, 1, 1]
    with pytest.raises(TableError, match=r"a row has a text that is no JSON object \('\[1\]'\)"):
        read_arrow(path)


def test_long_lines_of_json_are_cut_like_long_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("vertimrf.tables.values.BLOCK", 16)
    monkeypatch.setattr("vertimrf.tables.values.LONGEST_ROW", 40)
    lines = ['{"id": 1}', '{"id": "' + 90 * "x" + '"}', '{"id": 2}', '{"id": "' + 90 * "y" + '"}']
    path = made(tmp_path, "t.jsonl", "\n".join(lines).encode())
    rows, said = rows_of(path, columns=["id"])
    assert [row["id"] for row in rows] == [1, 2]
    assert len(said) == 2


@pytest.mark.parametrize("name", ["t.jsonl", "t.xlsx", "t.sav"])
def test_no_row_is_lost_between_batches(folder, name):
    """Batches of readers of rows have 1 << 15 of them."""
    rows, path = (1 << 15) + 3, folder / f"long-{name}"
    if name == "t.sav":
        pytest.importorskip("pyreadstat").write_sav(pd.DataFrame({"x": range(rows)}), path)
    elif name == "t.xlsx":
        pytest.importorskip("python_calamine")
        path.write_bytes(workbook([["x"], *([n] for n in range(rows))]))
    else:
        path.write_text("".join(f'{{"x": {n}}}\n' for n in range(rows)))
    table = read_arrow(path)
    assert table["x"].to_pylist() == list(range(rows))


def test_a_file_that_crashes_its_reader_is_one_sentence(folder):
    """A variable's number beyond all variables, which crashes pyreadstat."""
    path = folder / "crashing.sav"
    frame = pd.DataFrame({"id": range(9), "sex": [1.0, 2.0, 9.0] * 3})
    pytest.importorskip("pyreadstat").write_sav(
        frame, path, variable_value_labels={"sex": {1: "f", 2: "m"}}
    )
    # A record of kind 4 has a count and so many variables, to which labels belong.
    content, mark = path.read_bytes(), struct.pack("<ii", 4, 1)
    at = content.index(mark) + len(mark)
    path.write_bytes(content[:at] + struct.pack("<i", 4096) + content[at + 4 :])
    printed = refused(f"schema draft {path} --id id --out {folder}/crashing.toml")
    assert (
        f"{path} is an SPSS file that cannot be read as a table (it is damaged, and its reader crashed)"
        in printed
    )
    assert not (folder / "crashing.toml").exists()


@pytest.mark.parametrize(
    "deed, seconds, why",
    [
        (
            "time.sleep(30)",
            2.0,
            "it is damaged, and its reader gave nothing for 2 seconds): save it",
        ),
        # 64 GB that nobody writes to, which the system gives without a limit: private, of no file, no swap kept.
        ("mmap.mmap(-1, 1 << 36, flags=0x4022)", 60.0, "[Errno 12] Cannot allocate memory"),
    ],
)
def test_a_reader_has_so_much_time_and_memory(folder, tmp_path, monkeypatch, deed, seconds, why):
    path = made(folder, "endless.dta", b"<stata_dta>")
    text = f"import mmap, time\ndef read_dta(*_, **__):\n    {deed}\n    raise ValueError('done')\n"
    (tmp_path / "pyreadstat.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("vertimrf.tables.apart.SECONDS", seconds)
    with pytest.raises(
        TableError, match=re.escape(f"{path} is a Stata file that cannot be read as a table ({why}")
    ):
        open_pieces(path)


@pytest.mark.parametrize("kind", ["dta", "sav", "xport"])
def test_a_file_without_rows_is_a_table_without_rows(tmp_path, kind):
    """Not one of batches without end."""
    package = pytest.importorskip("pyreadstat")
    getattr(package, f"write_{kind}")(pd.DataFrame({"x": np.arange(0.0)}), tmp_path / "t")
    table = read_arrow(tmp_path / "t")
    assert (table.column_names, table.num_rows) == (["x"], 0)


def test_cells_of_json_keep_their_types(tmp_path):
    lines = [
        {"id": 1, "a": 2**60 + 1, "b": 1.5, "c": True, "d": "007", "e": 1},
        {"id": 2, "e": "x", "b": 2},
    ]
    path = made(tmp_path, "t.jsonl", "\n".join(map(json.dumps, lines)).encode())
    table = read_arrow(path)
    assert [str(kind) for kind in table.schema.types] == [
        *("int64", "int64", "double", "bool", "large_string", "large_string")
    ]
    assert table["a"][0].as_py() == 2**60 + 1
    assert table["e"].to_pylist() == ["1", "x"]


def test_dates_of_a_spreadsheet_are_dates(tmp_path):
    pytest.importorskip("python_calamine")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "day", "", "at"], [1, datetime.date(2020, 1, 2), None, datetime.time(3, 4)]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    table = read_arrow(tmp_path / "t.xlsx")
    assert table.column_names == ["id", "day", "at"]
    assert [str(kind) for kind in table.schema.types] == ["double", "date32[day]", "time64[us]"]


@pytest.mark.parametrize(
    "head, kind",
    [
        (b"q\1\1\1\x15\0\xf0\0\0\0Written by gretl", "a Stata file"),
        (b"\x8b\x70\xdc\xfb\xdb\xb5\4\xc4DUCK\xe7\3" + bytes(30), "a DuckDB database"),
    ],
)
def test_files_as_gretl_and_newer_duckdb_write_them_are_known(tmp_path, head, kind):
    # The fourth byte of Stata's header is not used, and DuckDB's version has two bytes.
    assert format_of(made(tmp_path, "table", head)).name == kind
