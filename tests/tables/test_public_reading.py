"""How a table is read is stated, or shows in what is no record: what an attacker writes into one costs this record alone."""

import gzip
import json
import struct
import sys
from datetime import date, datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from builders import KEYS, rows_of
from commands import good, refused

from vertimrf import Attribute, ReadOptions, Schema, Synthesizer, synthesize
from vertimrf.errors import TableError
from vertimrf.plan.sections import Reading
from vertimrf.tables import csv_file, values
from vertimrf.tables.apart import statistics
from vertimrf.tables.columns import encode_table
from vertimrf.tables.dropped import LONGEST_ROW, NO_VALUE
from vertimrf.tables.read_options import DEFAULT
from vertimrf.tables.sources import open_pieces

X = Attribute.integer("x", 3)
SCHEMA = Schema.of({"one": [X]})
ROWS = [(f"p{i}", i % 3) for i in range(60)]
LINES = [b"%s,%d" % (id.encode(), x) for id, x in ROWS]
STATED = ReadOptions(no_header=True, columns=("id", "x"), delimiter=",")


def kept(source, read=DEFAULT, attributes=(X,)):
    """How many records are kept of a table, and how many are left out."""
    table = encode_table(source, "id", attributes, read, keys=KEYS)
    return table.records, table.dropped.records


def written(path, lines):
    path.write_bytes(b"\n".join([*lines, b""]))
    return path


@pytest.mark.parametrize(
    "first",
    [
        b"q,1,",
        b"q",
        b"q;1",
        b'"q",1,2',
        b"BZh91AY&SY,1,",
        b"\x1f\x8b,1,",
        b"PAR1\x15,1,2",
        b"{}",
        b"",
    ],
)
def test_a_first_record_without_a_header_costs_itself(tmp_path, first):
    """It decided names, their number and the separator: of 61 records, 1 was kept."""
    path = written(tmp_path / "t.csv", [first, *LINES])
    assert kept(path, STATED) == (60, bool(first))
    # The name says how such a file is compressed.
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert kept(packed, STATED) == (60, bool(first))


@pytest.mark.parametrize("missing", ["columns", "delimiter"])
def test_a_file_without_a_header_says_what_is_in_it_or_is_refused(tmp_path, missing):
    stated = {"no_header": True, "columns": ("id", "x"), "delimiter": ","}
    del stated[missing]
    with pytest.raises(TableError, match="nothing is read off a record: state its columns and its"):
        open_pieces(written(tmp_path / "t.csv", LINES), ReadOptions(**stated))
    with pytest.raises(TableError, match="give each a name of its own"):
        ReadOptions(columns=("a", "a"))


def test_a_draft_states_the_columns_and_every_command_keeps_to_them(tmp_path):
    table = written(tmp_path / "t.csv", [line.replace(b",", b";") for line in LINES])
    told = f"schema draft {table} --name one --no-header"
    good(f"{told} --id column1 --out {tmp_path}/names.toml")
    read = Schema.load(tmp_path / "names.toml").reading("one")
    assert read == Reading((), ";", "utf-8", 0, True, ("column1", "column2"))
    good(f"{told} --id id --columns id,x --out {tmp_path}/s.toml")
    words = f"{table} --schema {tmp_path}/s.toml --id id"
    assert "60 records" in good(f"check {words}")
    # An attacker's record, the first of the file.
    written(table, [b"q;1;", *table.read_bytes().split(b"\n")[:-1]])
    assert "1 row has more or fewer cells" in refused(f"check {words}")
    good(f"run party {tmp_path}/run --name one --table {words}")
    made = f"synthesize {words} --epsilon 5 --even-if-useless --out {tmp_path}/made.csv"
    assert "1 record does not fit" in good(made)
    party = f"run party {tmp_path}/other --name one --table {table} --id id --no-header"
    assert "state its columns and its delimiter" in refused(party)
    assert not (tmp_path / "other").exists()


def json_line(id, x):
    return json.dumps({"id": id, "x": x}).encode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "q", "x"',
        b"[1, 2]",
        b'{"id": ["q"], "x": [1]}',
        b'{"id": "\xff", "x": 1}',
        b'{"other": 1}',
        b'{"id": "q", "x": ' + b"9" * 5000 + b"}",
        b'{"id": "' + b"q" * (2 << 20) + b'"',
        b"\x1f\x8b",
        b"PAR1\x15",
    ],
    ids=lambda line: line[:20].decode("latin-1"),
)
@pytest.mark.parametrize("place", [0, 30])
def test_a_line_of_json_costs_itself_wherever_it_stands(tmp_path, line, place):
    """The first megabyte's decided the columns, and a first line the kind of file."""
    lines = [json_line(*row) for row in ROWS]
    lines.insert(place, line)
    assert kept(written(tmp_path / "t.jsonl", lines)) == (60, 1)


def test_no_line_of_json_is_needed(tmp_path):
    empty = written(tmp_path / "t.jsonl", [])
    assert kept(empty) == (0, 0)
    assert open_pieces(empty, ReadOptions(columns=("id",))).names == ("id",)
    with pytest.raises(
        TableError, match=r"write an object on each line of a file whose name ends in \.jsonl"
    ):
        kept(written(tmp_path / "t.txt", [json_line(*row) for row in ROWS]))


@pytest.mark.parametrize("length", [50, 51, 60, 99])
def test_whether_a_line_of_json_is_too_long_follows_from_it_alone(tmp_path, monkeypatch, length):
    """Where blocks end, which other lines decide, let a longer one pass."""
    monkeypatch.setattr(values, "LONGEST_ROW", 50)
    monkeypatch.setattr(values, "BLOCK", 64)
    line = b'{"id": "%s", "x": 1}'
    line = line % (b"q" * (length - len(line) + 2))
    assert len(line) == length
    for before in range(0, 130, 7):
        path = written(tmp_path / "t.jsonl", [*[b""] * before, line, json_line("p", 1)])
        rows, said = rows_of(path, columns=["id"])
        assert (len(rows), len(said)) == ((2, 0) if length <= 50 else (1, 1))
    assert LONGEST_ROW == 1 << 24


@pytest.mark.parametrize(
    "text",
    [
        b"ASCII SPSS PORT FILE",
        b"2DUCK\1\0\0\0\0\0\0\0",
        b"Standard Jet DB",
        b"<html>",
        b'{"a": 1}',
        b"\x1a\n",
        *(b"y" * n + b"ustar" for n in (240, 244, 248)),
    ],
)
def test_a_cell_is_no_magic(tmp_path, text):
    for header in (b"id,x", b"[,id,x", b"A,id,x", b"ORCID,id,x"):
        width = header.count(b",") - 1
        lines = [b"1," * width + line for line in LINES]
        path = written(tmp_path / "t.csv", [header, b"1," * width + text + b",1", *lines])
        assert sum(kept(path)) >= 61 - text.count(b"\n")
        assert kept(path)[0] >= 60


def test_a_header_is_one_line(tmp_path):
    """A record could close its quote."""
    for more in ([], [b'",1']):
        path = written(tmp_path / "t.csv", [b'id,x,"note', *LINES, *more])
        with pytest.raises(TableError, match="has no header: its first row has more than"):
            kept(path)


def test_a_part_without_a_byte_has_no_record(tmp_path):
    written(tmp_path / "1.csv", [b"id,x", *LINES])
    (tmp_path / "0.csv").write_bytes(b"")
    assert kept(tmp_path) == (60, 0)


DAYS = {"name": "x", "bounds": [date(2020, 1, 1), date(2020, 12, 31)], "bins": 4, "missing": True}


def of_days(**more):
    return Schema.from_json({"party": [{"name": "a", "attribute": [DAYS | more]}]}).attributes


@pytest.mark.parametrize(
    "cells, more, out",
    [
        ([np.nan] * 3, {}, 0),
        ([None] * 3, {}, 0),
        ([np.nan, 5.0, np.nan], {}, 1),
        ([date(2020, 3, 4), None, None], {}, 0),
        ([date(2020, 3, 4), np.nan, "x"], {}, 1),
        ([True, None, None], {}, 1),
        ([20200304.0, np.nan, 20200305.0], {"format": "%Y%m%d"}, 0),
        ([20200304.0, 2.5, np.inf], {"format": "%Y%m%d"}, 2),
    ],
)
def test_no_cell_decides_the_type_of_a_column(tmp_path, cells, more, out):
    frame = pd.DataFrame({"id": [1, 2, 3], "x": cells})
    assert kept(frame, attributes=of_days(**more)) == (3 - out, out)
    if len({*map(type, cells)}) == 1:
        frame.to_parquet(tmp_path / "t.parquet")
        assert kept(tmp_path / "t.parquet", attributes=of_days(**more)) == (3 - out, out)


def test_spans_of_pandas_are_texts_beside_anything():
    attribute = (Attribute.categorical("x", ["(0, 1]", "2020-01"]),)
    spans = [pd.Interval(0, 1), pd.Period("2020-01"), "y"]
    for cells, out in ((spans[:1], 0), (spans[1:2], 0), (spans, 1)):
        frame = pd.DataFrame({"id": range(len(cells)), "x": cells})
        assert kept(frame, attributes=attribute) == (len(cells) - out, out)
        assert kept(frame.set_index("x"), attributes=attribute) == (len(cells) - out, out)


def test_a_month_decides_about_no_other_interval():
    seconds = Attribute.numeric("x", [0, 100])
    spans = pa.array([(0, 0, 30 * 10**9), (1, 0, 0), (0, 10**6, 0)], pa.month_day_nano_interval())
    for n in (1, 2, 3):
        table = pa.table({"id": range(n), "x": spans[:n]})
        assert kept(table, attributes=(seconds,)) == (1, n - 1)
    month = Attribute.numeric("x", [2591999, 2592001])
    assert kept(pa.table({"id": range(3), "x": spans}), attributes=(month,)) == (1, 2)


def test_what_is_finer_than_microseconds_is_cut_in_every_column():
    fine = [pd.Timedelta(5), pd.Timedelta(seconds=1)]
    for cells in (fine, [*fine, "x"]):
        frame = pd.DataFrame({"id": range(len(cells)), "x": cells})
        assert kept(frame) == (2, len(cells) - 2)


def test_a_derived_column_of_a_wrong_type_costs_its_records():
    """An equation's terms are read cell by cell too."""
    schema = Schema.from_json(
        {
            "rules": ["y = x + z"],
            "party": [{"name": "a", "attribute": [{"name": n, "codes": 3} for n in "xz"]}],
        }
    )
    from vertimrf.tables.derived import party_table, with_derived

    table = pa.table({"id": [1, 2], "x": [1, 2], "y": [datetime(2020, 1, 1)] * 2})
    (pieces,) = with_derived([party_table(table, ReadOptions(), "id", "xz")], schema, "xz")
    assert kept(pieces, attributes=schema.attributes) == (0, 2)


def test_a_table_of_which_no_record_fits_is_refused_where_its_holder_alone_sees_it(tmp_path):
    """A wrong separator left one row, a code of 0 and the word "Good"."""
    SCHEMA.save(tmp_path / "s.toml")
    bad = written(tmp_path / "t.csv", [b"id,x", *(b"%s,7" % id.encode() for id, _ in ROWS)])
    words = f"--schema {tmp_path}/s.toml --id id --epsilon 1 --out {tmp_path}/made.csv"
    printed = refused(f"synthesize {bad} {words}")
    assert f"No record of {bad} fits the schema, so nothing is made of it" in printed
    assert "x (outside, 60)" in printed
    assert not (tmp_path / "made.csv").exists()
    with pytest.raises(TableError, match="No record of"):
        Synthesizer(SCHEMA, id="id").fit(bad, epsilon=1.0)
    both = Schema.of({"one": [X], "two": [Attribute.integer("y", 2)]})
    other = pa.table({"id": [id for id, _ in ROWS], "y": [1] * len(ROWS)})
    with pytest.raises(TableError, match="No record of"):
        synthesize([str(bad), other], id="id", epsilon=1.0, schema=both)


def test_a_type_that_no_attribute_has_is_told_of_by_a_check(tmp_path):
    SCHEMA.save(tmp_path / "s.toml")
    pq.write_table(pa.table({"id": ["a", "b"], "x": [[1], [2]]}), tmp_path / "t.parquet")
    printed = refused(f"check {tmp_path}/t.parquet --schema {tmp_path}/s.toml --id id")
    assert "column 'x' holds list<element: int64> cells, but the schema says" in printed
    assert printed.count("holds list") == 1


KINDS = ["sav", "dta", "xport"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_a_file_of_statistics_may_have_any_bytes(tmp_path, kind):
    """One refused the file."""
    package, path = pytest.importorskip("pyreadstat"), tmp_path / "t"
    frame = pd.DataFrame(
        {
            "id": ["aaaaqq", "bé", "c"],
            "x": [1.0, 2.0, 0.0],
            "ä"[: kind != "xport"] or "y": ["é", "f", "g"],
        }
    )
    getattr(package, f"write_{kind}")(frame, str(path))
    path.write_bytes(path.read_bytes().replace(b"aaaaqq", b"aa\xff\xffqq"))
    rows, said = rows_of(statistics(f"read_{kind}", "a file", path))
    assert [row["id"] for row in rows] == ["aa\\xff\\xffqq", "bé", "c"]
    assert rows[0]["y" if kind == "xport" else "ä"] == "é"
    assert not said


@pytest.mark.parametrize(
    "kind, origin", [("sav", datetime(1582, 10, 14)), ("dta", datetime(1960, 1, 1))]
)
def test_a_date_of_a_file_of_statistics_that_is_none_costs_itself(tmp_path, kind, origin):
    """It refused the file."""
    package, path = pytest.importorskip("pyreadstat"), tmp_path / "t"
    days = [date(2020, 1, 1 + i) for i in range(9)]
    getattr(package, f"write_{kind}")(pd.DataFrame({"id": range(9), "x": days}), str(path))
    since = datetime(2020, 1, 4) - origin
    number = struct.pack("<d", since.total_seconds() if kind == "sav" else since.days)
    assert path.read_bytes().count(number) == 1
    path.write_bytes(path.read_bytes().replace(number, struct.pack("<d", 1e15)))
    rows, said = rows_of(statistics(f"read_{kind}", "a file", path))
    assert [row["x"] for row in rows] == [*days[:3], *days[4:]]
    assert [(text, count) for _, text, count in said] == [("row 4", 1)]


def test_a_mark_at_the_start_of_a_block_is_a_cell(tmp_path, monkeypatch):
    """Where blocks begin, other rows decide."""
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    for before in range(70):
        lines = [b"id,x", b"p" * (before + 1) + b",1", "\ufeffq,2".encode(), b"r,2"]
        rows, said = rows_of(written(tmp_path / "t.csv", lines))
        assert [row["id"] for row in rows][1:] == ["\ufeffq", "r"]
        assert not said


@pytest.mark.parametrize("cells", [[b"1", b"2", None], [b"1", b"f", b"2"], [b"1", b"\xff", b"2"]])
def test_a_column_of_bytes_is_one_of_texts(cells):
    """One that is no number made all of them none."""
    number = (Attribute.numeric("x", [0, 5], missing=True),)
    listed = (Attribute.categorical("x", ["1", "2"], missing=True),)
    for attributes in (number, listed):
        for column in (pa.array(cells), pa.array(cells, pa.large_binary())):
            left = sum(cell in (b"f", b"\xff") for cell in cells)
            table = pa.table({"id": range(3), "x": column})
            assert kept(table, attributes=attributes) == (3 - left, left)


class PanicException(BaseException):
    """What code in Rust raises where it fails, by its name."""


@pytest.mark.parametrize("year", [2020, 2400])
@pytest.mark.parametrize("inside", [False, True])
def test_whether_a_file_of_orc_is_refused_follows_from_its_types(tmp_path, year, inside):
    """Its reader refuses all of a file of which one timestamp is far away."""
    day, path = datetime(year, 1, 1), str(tmp_path / "t.orc")
    times = pa.array([day] * 60, pa.timestamp("us"))
    at = pa.StructArray.from_arrays([times], ["t"]) if inside else times
    rows = pa.table({"id": [id for id, _ in ROWS], "x": [x for _, x in ROWS], "at": at})
    pa.orc.write_table(rows, path)
    assert kept(path) == (60, 0)
    with pytest.raises(TableError, match=r"Column 'at' of .* is a TIMESTAMP, which is not read"):
        kept(path, attributes=(X, Attribute.integer("at", 3)))


def test_a_cell_of_a_workbook_that_makes_its_reader_panic_costs_its_own_record(
    tmp_path, monkeypatch
):
    rows = [["id", "x"], ["a", "1"], None, ["c", "3"]]

    class Rows:
        def __init__(self):
            self.left = iter(rows)

        def __iter__(self):
            return self

        def __next__(self):
            row = next(self.left)
            if row is None:
                raise PanicException
            return row

    sheet = SimpleNamespace(total_height=4, start=(0, 0), iter_rows=Rows)
    book = SimpleNamespace(sheet_names=["s"], get_sheet_by_name=lambda name: sheet)
    calamine = SimpleNamespace(CalamineWorkbook=SimpleNamespace(from_path=lambda path: book))
    monkeypatch.setitem(sys.modules, "python_calamine", calamine)
    out = []
    pieces = values.workbook(tmp_path / "t.xlsx", ReadOptions())
    table = pa.Table.from_batches(pieces.batches(("id", "x"), lambda *told: out.append(told)))
    assert table["id"].to_pylist() == ["a", "c"]
    assert out == [(NO_VALUE, "row 3", 1)]
    rows[0] = None
    with pytest.raises(TableError, match="its first row, which has the names"):
        values.workbook(tmp_path / "t.xlsx", ReadOptions())
