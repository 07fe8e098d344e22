"""Tables of several files: folders, partitions, patterns; datasets, dicts and iterators in Python."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from commands import good, refused
from tables.test_sources import CSV, JSON, ROWS, SCHEMA, TABLE, encoded, made

from vertimrf import OpenSchema, draft_schema, evaluate
from vertimrf.errors import TableError
from vertimrf.party.check import check_table
from vertimrf.runs.party_run import PartyRun
from vertimrf.tables.parts import parts_of
from vertimrf.tables.sources import open_pieces, read_arrow


def cut(folder, size=50):
    """The table in Parquet files, whose names are not in the order of time."""
    folder.mkdir(exist_ok=True)
    for first in reversed(range(0, ROWS, size)):
        pa.parquet.write_table(TABLE.slice(first, size), folder / f"part-{first:04}.parquet")
    (folder / "_SUCCESS").write_bytes(b"")
    (folder / ".part.crc").write_bytes(b"crc")
    return folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_bytes(CSV)
    SCHEMA.save(tmp_path / "schema.toml")
    cut(tmp_path / "people")
    return tmp_path


def test_a_folder_is_the_table_of_its_files_in_the_order_of_their_names(folder):
    whole = encoded(folder / "people.csv")
    assert read_arrow(folder / "people").equals(TABLE)
    for source in ("people", "people/*.parquet", "p*/part-*", "**/*.parquet"):
        assert (encoded(folder / source) == whole).all()
        assert (encoded(str(folder / source)) == whole).all()
    table, schema = folder / "people", folder / "schema.toml"
    good(f"schema draft {folder}/people.csv --id id --out {folder}/one.toml")
    good(f"schema draft {table} --id id --out {folder}/draft.toml")
    assert (folder / "draft.toml").read_bytes() == (folder / "one.toml").read_bytes()
    for source in (table, f"{table}/*"):
        good(f"check {source} --schema {schema} --id id")
        compared = f"--synthetic {folder}/people.csv --schema {schema} --ways 1"
        assert "1-way TVD 0.0000" in good(f"evaluate --real {source} {compared}")
    made = f"--schema {schema} --epsilon 2 --seed 1 --out {folder}"
    good(f"synthesize {table} {made}/made.csv")
    assert "is read, and" in refused(f"synthesize {table} {made}/people/made.csv")


def test_files_of_several_kinds_are_one_table(tmp_path):
    half = CSV.splitlines(keepends=True)
    made(tmp_path, "1.csv", b"".join(half[:101]))
    made(tmp_path, "2.jsonl", b"".join(JSON.splitlines(keepends=True)[100:200]))
    pa.parquet.write_table(TABLE.slice(200).select([3, 2, 1, 0]), tmp_path / "3.parquet")
    made(tmp_path.parent, "people.csv", CSV)
    assert (encoded(tmp_path) == encoded(tmp_path.parent / "people.csv")).all()


def test_names_of_folders_are_columns(folder, tmp_path):
    root = tmp_path / "by"
    for sex in ("f", "m", None):
        rows = TABLE.filter(
            pa.array([cell == sex for cell in TABLE["sex"].to_pylist()])
        ).drop_columns("sex")
        where = root / f"sex={sex or '__HIVE_DEFAULT_PARTITION__'}" / "part%2F=1" / "x"
        where.mkdir(parents=True)
        pa.parquet.write_table(rows, where / "a.parquet")
    pieces = open_pieces(root)
    assert pieces.names == ("id", "weight", "visits", "sex", "part/")
    # Rows lie in another order: compare by id.
    assert sorted(map(tuple, encoded(root).T.tolist())) == sorted(
        map(tuple, encoded(folder / "people.csv").T.tolist())
    )
    assert (encoded(root) == encoded(folder / "people.csv")).all()
    (only,) = pieces.read(["sex"])
    assert only["sex"].to_pylist().count(None) == TABLE["sex"].null_count
    assert [
        len(list(open_pieces(root / pattern).names)) for pattern in ("*/*/*", "s*=f/**/*.par*")
    ] == [5, 5]


def test_files_that_are_no_table_together_are_named(folder):
    table = folder / "people"
    made(table, "readme.txt", b"read me\n")
    assert "readme.txt lacks the column 'id', which" in refused(
        f"check {table} --schema {folder}/schema.toml --id id"
    )
    (table / "readme.txt").unlink()
    made(table, "z.csv", b"id,sex,weight,visits,more\n")
    with pytest.raises(
        TableError, match=r"part-0000.parquet lacks the column 'more', which .*z.csv has"
    ):
        read_arrow(table)
    (table / "z.csv").unlink()
    other = TABLE.set_column(3, "visits", pa.array(["1"] * ROWS))
    pa.parquet.write_table(other, table / "z.parquet")
    with pytest.raises(TableError, match="people has a column in several types"):
        read_arrow(table)
    assert len(encoded(table).T) == ROWS
    (table / "id=1").mkdir()
    pa.parquet.write_table(TABLE, table / "id=1" / "a.parquet")
    with pytest.raises(
        TableError, match="has a column 'id' twice, the names of its folders included"
    ):
        read_arrow(table)
    with pytest.raises(TableError, match=r"\*.orc has no files; name a folder"):
        read_arrow(f"{table}/*.orc")


def test_no_link_leads_out_of_a_folder(folder):
    outside = made(
        folder, "outside.parquet", (folder / "people" / "part-0000.parquet").read_bytes()
    )
    link = folder / "people" / "zz.parquet"
    link.symlink_to(outside)
    for source in (folder / "people", folder / "people" / "*"):
        with pytest.raises(
            TableError, match=r"zz.parquet is a link, and links in a table's folder"
        ):
            open_pieces(source)
    assert parts_of(folder / "people" / "part*")
    link.unlink()
    (folder / "people" / "more").symlink_to(folder)
    with pytest.raises(TableError, match="more is a link"):
        open_pieces(folder / "people")
    with pytest.raises(TableError, match="more is a link"):
        open_pieces(folder / "people" / "*" / "*.csv")
    # A link that the user names is no link in the folder.
    (folder / "linked").symlink_to(folder / "people" / "part-0000.parquet")
    assert len(encoded(folder / "linked").T) == 50
    (folder / "whole").symlink_to(folder / "people")
    (folder / "people" / "more").unlink()
    assert len(encoded(folder / "whole").T) == ROWS


def test_a_run_reads_a_folder_and_notices_that_it_was_written(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for source in ("people", "people/*.parquet"):
        run = PartyRun.create(f"{source[-3:-1]}.run", name="one", table=source, id="id")
        assert run.settings.table == str(folder / source)
        before = run.table_as_it_is
        assert before
        assert before == run.table_as_it_is
        pa.parquet.write_table(TABLE.slice(0, 1), folder / "people" / f"new{len(source)}.parquet")
        assert run.table_as_it_is != before
    with pytest.raises(TableError, match=r"no \*\.csv|has no files"):
        PartyRun.create("x.run", name="one", table="people/*.csv", id="id")


def in_python():
    columns = {name: TABLE[name].to_pylist() for name in TABLE.column_names}
    return {
        "dataset": lambda folder: pa.dataset.dataset(folder / "people"),
        "partitioned": lambda folder: pa.dataset.dataset(
            str(folder / "people"), partitioning="hive"
        ),
        "dict": lambda folder: columns,
        "arrays": lambda folder: {
            "id": np.array(columns["id"]),
            "sex": np.array(columns["sex"], object),
            "weight": np.array(columns["weight"], float),
            "visits": TABLE["visits"],
        },
        "iterator": lambda folder: iter(TABLE.to_batches(max_chunksize=70)),
        "generator": lambda folder: (batch for batch in TABLE.to_batches(max_chunksize=70)),
        "reader": lambda folder: TABLE.to_reader(),
        "folder": lambda folder: folder / "people",
    }


@pytest.mark.parametrize("name", in_python())
def test_every_source_of_python_is_taken_by_every_function(folder, name):
    def source():
        return in_python()[name](folder)

    truth = encoded(folder / "people.csv")
    assert (encoded(source()) == truth).all()
    assert draft_schema(source(), "id").schema == draft_schema(folder / "people.csv", "id").schema
    checked = check_table(source(), "id", OpenSchema(SCHEMA, {}), "one", "The table")
    assert checked.problems == ()
    assert f"{ROWS} records, 3 attributes in the schema." in checked.facts
    figures = evaluate(source(), folder / "people.csv", schema=SCHEMA)
    assert figures["records"] == {"real": ROWS, "synthetic": ROWS}
    assert figures["columns"][0]["tvd"] == 0


def test_what_is_no_table_in_python_is_refused():
    for wrong in ({"id": [1], "x": [1, 2]}, {}, iter([]), iter([1]), [1], 3):
        with pytest.raises(TableError):
            read_arrow(wrong)
