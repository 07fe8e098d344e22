"""Columns come back with the values and the types that they came with, from every kind of table."""

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from vertimrf import Attribute, Schema, Synthesizer, draft_schema, write_table
from vertimrf.columns.private import PrivateDomain
from vertimrf.columns.read import read_attribute
from vertimrf.errors import SchemaError
from vertimrf.plan.sdv import sections_of
from vertimrf.server.rows import decode_pieces, with_holders
from vertimrf.tables.sources import open_pieces, read_arrow
from vertimrf.tables.table import encode_columns

N = 600
RNG = np.random.default_rng(5)
BIG, SECOND = 1 << 60, dt.timedelta(seconds=1)
SHADES = ["small", "medium", "large"]


def some(values):
    """The values, each about equally often, in any order."""
    return [values[i] for i in RNG.integers(0, len(values), N)]


def decimals():
    return [Decimal(int(cents)).scaleb(-2) for cents in RNG.integers(-50_000, 50_000, N)]


def shades(ordered, used=SHADES):
    places = pa.array(some([SHADES.index(shade) for shade in used]), pa.int8())
    return pa.DictionaryArray.from_arrays(places, pa.array(SHADES), ordered=ordered)


def moments(unit, zone=None):
    return (
        pa.array(RNG.integers(0, 10**9, N), pa.int64())
        .cast(pa.timestamp("s", zone))
        .cast(pa.timestamp(unit, zone))
    )


# Columns by what they are. Every row of each table is drawn once, for all sources.
COLUMNS = {
    "whole beyond 2**53": pa.array(some([9_007_199_254_740_992 + i for i in range(4)])),
    "whole at 2**60": pa.array(some([BIG + i for i in range(4)])),
    "many at 2**60": pa.array((BIG + RNG.integers(0, 1000, N)).tolist()),
    "hashes": pa.array(some(RNG.integers(-(1 << 62), 1 << 62, 90).tolist())),
    "int8": pa.array(some([-3, 0, 4]), pa.int8()),
    "int16": pa.array(RNG.integers(-500, 500, N), pa.int16()),
    "int32": pa.array(RNG.integers(0, 10**6, N), pa.int32()),
    "uint8": pa.array(RNG.integers(0, 250, N), pa.uint8()),
    "uint16": pa.array(RNG.integers(0, 60_000, N), pa.uint16()),
    "uint32": pa.array(some([0, 1, 4_000_000_000]), pa.uint32()),
    "uint64": pa.array(some([2**63, 2**63 + 1, 5]), pa.uint64()),
    "float16": pa.array(some([0.1, 2.5, 7.0]), pa.float64()).cast(pa.float16()),
    "float32": pa.array(np.round(RNG.random(N), 3)).cast(pa.float32()),
    "float64": pa.array(RNG.normal(size=N)),
    "decimal": pa.array(decimals(), pa.decimal128(10, 2)),
    "whole decimal": pa.array(some([Decimal(3), Decimal(2**60 + 1)]), pa.decimal128(38, 0)),
    "boolean": pa.array(some([True, False])),
    "text of digits": pa.array(some(["10001", "10002", "60601"])),
    "text of NA": pa.array(some(["NA", "DE", "", "nan"])),
    "text of days": pa.array([f"20{i % 100:02}-0{1 + i % 9}-{10 + i % 19}" for i in range(N)]),
    "dictionary": shades(False),
    "ordered": shades(True, ["small", "large"]),
    "duration[s]": pa.array(some([60, 3600, 90]), pa.duration("s")),
    "duration[us]": pa.array(RNG.integers(0, 10**5, N) * 10**6, pa.duration("us")),
    "date": pa.array(RNG.integers(0, 15_000, N), pa.int32()).cast(pa.date32()),
    "time[us]": pa.array(RNG.integers(0, 86_400, N) * 10**6, pa.time64("us")),
    "timestamp[ms]": moments("ms"),
    "timestamp[us]": moments("us"),
    "timestamp[us] of Vienna": moments("us", "Europe/Vienna"),
    "written day": pa.array(
        [20_000_000 + 10_000 * (i % 20) + 101 + 100 * (i % 12) + i % 28 for i in range(N)],
        pa.int32(),
    ),
}
ALL = pa.table(COLUMNS)


def from_parquet(path):
    pa.parquet.write_table(ALL, path / "t.parquet")
    return str(path / "t.parquet")


def from_feather(path):
    with pa.ipc.new_file(path / "t.arrow", ALL.schema) as file:
        file.write_table(ALL)
    return str(path / "t.arrow")


def from_pandas(_):
    return ALL.to_pandas()


def from_polars(_):
    return pytest.importorskip("polars").from_arrow(ALL)


def from_duckdb(_):
    table = ALL.drop_columns(["float16", "ordered", "dictionary"])
    known = {name: table[name] for name in table.column_names}
    return pytest.importorskip("duckdb").from_arrow(pa.table(known))


SOURCES = {
    "Parquet": from_parquet,
    "Arrow file": from_feather,
    "Arrow": lambda _: ALL,
    "pandas": from_pandas,
    "polars": from_polars,
    "DuckDB": from_duckdb,
}


@pytest.fixture(scope="module", params=SOURCES)
def read(request, tmp_path_factory):
    """A source, what is read of it, its draft, and synthetic rows with the codes of the true ones."""
    source = SOURCES[request.param](tmp_path_factory.mktemp("types"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        draft = draft_schema(source)
    true = read_arrow(source)
    _, synthetic = coded(source, draft.schema.attributes, seed=1)
    return request.param, true, draft, synthetic


def coded(source, attributes, seed=0):
    """Codes of a source's cells, and rows that are drawn of them."""
    codes = encode_columns(open_pieces(source).whole(None), attributes, "x")
    (rows,) = decode_pieces(codes, attributes, np.random.default_rng(seed))
    return codes, rows


def plainest(kind):
    """A type, without what no reader of a table notices."""
    if pa.types.is_dictionary(kind):
        return ("dictionary", plainest(kind.value_type), kind.ordered)
    if pa.types.is_interval(kind):
        return pa.duration("us")
    return "text" if str(kind).endswith(("string", "string_view")) else kind


@pytest.mark.parametrize("name", COLUMNS)
def test_types_come_back(read, name):
    source, true, draft, synthetic = read
    if name not in true.column_names:
        pytest.skip(f"{source} has no such type")
    assert name in synthetic.column_names, [
        str(flag) for flag in draft.flags if flag.column == name
    ]
    assert plainest(synthetic[name].type) == plainest(true[name].type)
    assert synthetic[name].null_count == 0
    # DuckDB's intervals have no order in Python.
    true = ALL if pa.types.is_interval(true[name].type) else true
    values, found = (set(table[name].to_pylist()) for table in (true, synthetic))
    if len(values) <= 64 or "hashes" in name:
        assert found == values
    else:
        # Whole days and numbers lie between the others.
        assert min(values) <= min(found)
        assert max(found) <= max(values)


def test_whole_numbers_beyond_doubles_are_read_and_written_exactly(tmp_path):
    edges = {"name": "x", "edges": [BIG, BIG + 10, BIG + 1003], "integral": True}
    grid = {"name": "x", "grid": [BIG, BIG + 1, BIG + 7]}
    steps = {"name": "x", "edges": [BIG + 1, BIG + 10], "resolution": 3, "offset": 2.0}
    for parts, values in (
        (edges, [BIG + 9, BIG + 11]),
        (steps, [BIG + 4, BIG + 7]),
        (grid, [BIG + 1, BIG + 7]),
    ):
        attribute = read_attribute(parts)
        assert attribute == read_attribute(attribute.to_json())
        assert attribute.to_json() == parts
        column = pa.chunked_array([pa.array(values)])
        texts = pa.chunked_array([pa.array([str(value) for value in values])])
        for cells in (column, texts):
            assert attribute.typed(attribute.numbers(cells, "x")[0]).to_pylist() == values
    assert attribute.codes_of(BIG + 7) == [2]
    schema = Schema.of({"a": [attribute]})
    assert Schema.from_json(schema.to_json()) == schema
    for wrong, sentence in (
        ({"grid": [5, BIG]}, "lie more than 2\\*\\*53 apart"),
        ({"grid": [0.5, BIG]}, "others that are not whole"),
        ({"grid": [1 << 70]}, "64 bits or fewer"),
        ({"edges": [0, 1], "resolution": 10**400}, "resolution is 1000"),
    ):
        with pytest.raises(SchemaError, match=sentence):
            read_attribute({"name": "x", **wrong})


def test_a_column_of_no_rules_is_not_summed():
    a = read_attribute({"name": "a", "edges": [BIG, BIG + 10], "integral": True})
    b = Attribute.numeric("b", (0, 10), integral=True)
    with pytest.raises(SchemaError, match="'a' has no numbers"):
        Schema.of({"p": [a, b]}, rules=["a <= b"])


@pytest.mark.parametrize(
    "parts, sentence",
    [
        ({"values": ["a"], "type": "int8"}, "type is 'int8'; use one of dictionary"),
        ({"values": [1, 300], "type": "int8"}, "does not hold all of its values"),
        ({"values": [0.5], "type": "int8"}, "does not hold all of its values"),
        ({"edges": [-1, 5], "integral": True, "type": "uint8"}, "does not hold all"),
        ({"edges": [0, 5], "type": "int32"}, "does not hold all of its values"),
        ({"edges": [0, 500], "resolution": 0.001, "type": "decimal(5, 2)"}, "have 3 decimals"),
        ({"edges": [0, 5], "type": "decimal(99, 2)"}, "a decimal has 1 to 38 digits"),
        ({"edges": [0, 5], "type": "int128"}, "use one of int8"),
        ({"edges": [0, 5], "type": ["int8"]}, "use one of int8"),
        ({"codes": 300, "type": "uint8"}, "does not hold all of its values"),
        (
            {"edges": ["2020-01-01", "2020-02-01"], "calendar": "date", "type": "int32"},
            "use one of date64, string",
        ),
    ],
)
def test_types_that_do_not_fit_are_refused(parts, sentence):
    with pytest.raises(SchemaError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        read_attribute({"name": "x", **parts})


def test_a_type_is_kept_in_schemas_and_by_sdv():
    attribute = read_attribute({"name": "x", "edges": [0, 5], "integral": True, "type": "uint8"})
    assert read_attribute(attribute.to_json()).type == "uint8"
    # Where parties hold one column, it may have two types.
    plain = Attribute.numeric("x", (0, 5), integral=True)
    assert Schema.of({"a": [plain], "b": [attribute]}).names == ("x",)
    assert "type" not in Attribute.numeric("x", (0, 5)).to_json()
    # That of SDV 1; SDV 2 has no types.
    said = {"sdtype": "numerical", "computer_representation": "UInt8"}
    (domain,) = sections_of({"columns": {"x": said}})["party"][0]["attribute"]
    assert domain["type"] == "uint8"
    assert domain["integral"]


def test_rows_of_some_parties_have_types_too():
    schema = Schema.of(
        {
            "a": [
                read_attribute(
                    {"name": "x", "values": SHADES, "ordered": True, "type": "dictionary"}
                )
            ],
            "b": [Attribute.integer("y", 2)],
        }
    )
    (table,) = decode_pieces(
        np.array([[0, 2, 1], [0, 1, 1]]), schema.attributes, np.random.default_rng(0)
    )
    held = with_holders(table, schema, [("a", "b"), ("b",)], np.array([0, 1, 0]))
    assert held["x"].to_pylist() == ["small", None, "medium"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "cut": pd.cut(rng.normal(size=N), [-9, 0, 1, 9]),
            "bytes": [b"A", b"B"] * (N // 2),
            "finer": pd.to_datetime(rng.integers(0, 10**18, N)),
            "offset": pd.to_datetime(rng.integers(0, 10**9, N) * 10**9).tz_localize("+02:00"),
            "far": [1e308, -1e308, *rng.normal(size=N - 2)],
            "country": some(["NA", "DE", "AT"]),
        }
    )


def test_odd_columns_of_frames_are_read_or_left_out_and_named(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draft = draft_schema(frame)
    named = {attribute.name: attribute for attribute in draft.schema.attributes}
    assert named["cut"].values == ("(-9, 0]", "(0, 1]", "(1, 9]")
    assert named["cut"].ordered
    assert named["country"].values == ("AT", "DE", "NA")
    assert named["offset"].timezone == "+02:00"
    flags = {flag.column: str(flag) for flag in draft.flags}
    assert "holds binary cells" in flags["bytes"]
    assert "bytes" not in named
    assert "far beyond all others" in flags["far"]
    _, rows = coded(frame, draft.schema.attributes)
    assert not any(rows[name].null_count for name in rows.column_names)
    assert rows["finer"].type == pa.timestamp("ns")
    assert rows["offset"].type == pa.timestamp("ns", "+02:00")


def test_cells_of_csv_files_have_no_types_and_the_draft_says_what_it_takes_for_missing(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(
        {
            "zip": some(["10001", "60601"]),
            "country": some(["NA", "DE", "AT", "FR"]),
            "big": some([BIG, BIG + 1, BIG + 2]),
            "score": some(["NA", "1", "2"]),
            "at": some(["2020-01-01 10:00:00+01:00", "2020-07-01 10:00:00+02:00"]),
            "ratio": ["-inf", *map(str, range(N - 1))],
            "fixed": some(["2020-01-01 10:00:00+02:00", "2020-01-02 10:00:00+02:00"]),
        }
    ).to_csv(path, index=False)
    draft = draft_schema(str(path))
    named = {attribute.name: attribute for attribute in draft.schema.attributes}
    assert named["zip"].values == (10001, 60601)
    assert named["big"].values == (BIG, BIG + 1, BIG + 2)
    assert named["country"].values == ("AT", "DE", "FR")
    assert named["country"].missing
    assert all(attribute.type is None for attribute in draft.schema.attributes)
    assert named["fixed"].timezone == "+02:00"
    flags = {flag.column: str(flag) for flag in draft.flags}
    assert flags.keys() == {"country", "at", "ratio"}
    assert (named["ratio"].clamp, named["ratio"].integral) == (True, True)
    assert "'NA'" in flags["country"]
    assert "list it among the values" in flags["country"]
    assert "offsets +01:00 and +02:00" in flags["at"]
    kept = Attribute.categorical("country", ["AT", "DE", "FR", "NA"])
    assert (kept.encoder("x")(pa.chunked_array([pa.array(["NA", ""])])) == [3, -1]).all()


@pytest.mark.parametrize("text", [".", "n/a", "#N/A", "<NA>"])
def test_numbers_of_csv_files_may_lack_values_as_other_programs_write_them(tmp_path, text):
    path = tmp_path / "t.csv"
    cells = [text if i % 4 == 0 else str(i % 97 / 2) for i in range(N)]
    pd.DataFrame({"pay": cells, "note": [text, *(["a"] * (N - 1))]}).to_csv(path, index=False)
    pay, note = draft_schema(str(path)).schema.attributes
    assert (pay.holds_numbers, pay.missing) == (True, True)
    read = pay.encoder("x")(pa.chunked_array([pa.array([text, "0.5"])]))
    assert read[0] == -1 != read[1]
    assert note.values == ("a",)
    # Listed, they are values.
    kept = Attribute.categorical("note", ["a", text])
    assert (kept.encoder("x")(pa.chunked_array([pa.array([text])])) == [1]).all()


def test_a_draft_names_the_texts_for_which_numbers_are_taken_for_text(tmp_path):
    path, some = tmp_path / "t.csv", [str(i % 97) for i in range(N)]
    unknown = ["under 5" if i % 4 == 0 else cell for i, cell in enumerate(some)]
    zips = [cell.rjust(2, "0") for cell in some]
    pd.DataFrame({"pay": unknown, "zip": zips}).to_csv(path, index=False)
    (flag,) = [str(flag) for flag in draft_schema(str(path)).flags]
    assert "'pay' has numbers, and the text 'under 5' in some cells" in flag


def test_a_csv_file_has_plain_cells_whatever_the_types(tmp_path):
    table = pa.table(
        {
            "f": pa.array([0.1, 2.0]).cast(pa.float16()),
            "d": pa.array([90, 60], pa.int64()).cast(pa.duration("s")).cast(pa.duration("ns")),
            "t": pa.array([0, 1], pa.timestamp("s")).cast(pa.timestamp("us")),
            "x": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    write_table(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [
        '0.1,90,1970-01-01 00:00:00,"a"',
        '2,60,1970-01-01 00:00:01,"b"',
    ]


def test_a_schema_says_which_texts_are_missing():
    cells = pa.chunked_array([pa.array(["a", "?", "NA", None])])
    for texts, codes in ((None, [0, 1, -1, -1]), (["?"], [0, -1, 1, -1]), ([], [0, 1, 1, -1])):
        parts = {"name": "x", "values": ["a", "b"], "other": "b", "missing_text": texts}
        attribute = read_attribute({key: part for key, part in parts.items() if part is not None})
        assert attribute.encoder("x")(cells).tolist() == codes
        assert read_attribute(attribute.to_json()) == attribute
    for wrong in (
        {"values": ["a"], "missing_text": [1]},
        {"codes": 2, "missing_text": ["?"]},
        {"values": ["a"], "missing_text": "?"},
    ):
        with pytest.raises(SchemaError, match="missing_text"):
            read_attribute({"name": "x", **wrong})


def test_texts_that_are_not_listed_are_values_of_a_frame_even_if_they_say_missing():
    frame = pd.DataFrame({"x": ["NA", *[f"v{i}" for i in range(300) for _ in range(5)]]})
    draft = draft_schema(frame)
    (attribute,) = draft.schema.attributes
    assert "NA" not in attribute.values
    assert not attribute.missing
    assert encode_columns(read_arrow(frame), [attribute], "x")[0, 0] == attribute.other_code


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32()])
def test_narrow_numbers_are_the_decimals_that_they_stand_for(kind):
    column = pa.array([0.1, 0.7] * 20).cast(kind)
    (attribute,) = draft_schema(pa.table({"x": column})).schema.attributes
    assert attribute.values == (0.1, 0.7)
    # The double next to the narrow number is below the edge.
    binned = Attribute.numeric("x", (0, 0.7, 1))
    assert encode_columns(pa.table({"x": column}), [binned], "x")[0, :2].tolist() == [0, 1]


def test_doubles_of_single_precision_are_the_decimals_that_they_stand_for():
    """0.699999988 is 0.7, which begins a bin."""
    column = pa.array(np.array([0.1, 0.7], np.float32).astype(float))
    binned = Attribute.numeric("x", (0, 0.7, 1), type="float32 as double")
    assert encode_columns(pa.table({"x": column}), [binned], "x")[0].tolist() == [0, 1]


def test_categories_of_polars_keep_their_order_and_unused_ones_stay():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": pl.Series(["hi", "lo"] * 20, dtype=pl.Enum(["lo", "mid", "hi"]))})
    (attribute,) = draft_schema(frame).schema.attributes
    assert (attribute.values, attribute.ordered) == (("lo", "mid", "hi"), True)
    assert encode_columns(read_arrow(frame), [attribute], "x")[0, :2].tolist() == [2, 0]


def test_the_order_of_categories_is_kept_by_a_parquet_file(tmp_path):
    cells = pd.Categorical(some(SHADES[:2]), categories=SHADES, ordered=True)
    named = pd.Categorical(some(SHADES), categories=SHADES)
    frame = pd.DataFrame({"size": cells, "name": named})
    # Several pieces, in row groups that have a dictionary each.
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=N // 4)
    draft = draft_schema(tmp_path / "t.parquet")
    assert draft.schema.attributes == draft_schema(frame).schema.attributes
    size, name = draft.schema.attributes
    assert size.ordered
    assert list(size.values) == SHADES
    assert not name.ordered
    _, rows = coded(tmp_path / "t.parquet", draft.schema.attributes)
    assert rows.to_pandas()["size"].tolist() == list(cells)
    assert rows["size"].type.ordered
    made = rows.to_pandas()["size"]
    assert (made.min(), made.max()) == ("small", "medium")


def test_durations_among_objects_are_seconds():
    frame = pd.DataFrame({"x": pd.Series([SECOND * 90, SECOND * 60, None] * 20, dtype=object)})
    (attribute,) = draft_schema(frame).schema.attributes
    assert (attribute.values, attribute.missing) == ((60, 90), True)
    codes = encode_columns(open_pieces(frame).whole(None), [attribute], "x")
    assert codes[0, :3].tolist() == [1, 0, 2]
    assert attribute.arrow(codes[0, :3], None).to_pylist() == [SECOND * 90, SECOND * 60, None]


def test_a_private_domain_beyond_its_type_has_none():
    parts = {"name": "x", "bins": "private", "integral": True, "type": "uint8"}
    domain = PrivateDomain.from_json(parts)
    assert domain.binned((0.0, 9.0, 255.0), ()).type == "uint8"
    assert domain.binned((-4.0, 9.0, 255.0), ()).type is None


def test_cells_of_a_csv_file_come_back_as_they_were_written(tmp_path):
    write_table(ALL, tmp_path / "t.csv")
    draft = draft_schema(tmp_path / "t.csv")
    _, synthetic = coded(tmp_path / "t.csv", draft.schema.attributes, seed=1)
    write_table(synthetic, tmp_path / "s.csv")
    true, found = (read_arrow(tmp_path / name) for name in ("t.csv", "s.csv"))
    flagged = {"text of NA", "timestamp[us] of Vienna", "written day"}
    assert {flag.column for flag in draft.flags} == flagged
    assert found.column_names == ALL.column_names
    for name in set(ALL.column_names) - {"text of NA", "timestamp[us] of Vienna"}:
        cells, again = (set(table[name].to_pylist()) for table in (true, found))
        if len(cells) <= 90:
            assert again == cells, name
        else:
            assert {len(cell.split(".")[0]) for cell in again} <= {
                len(cell.split(".")[0]) for cell in cells
            }


def test_days_as_numbers_beside_missing_ones_are_read():
    days = [20_190_101 + 100 * (i % 12) + i % 28 for i in range(N)]
    frame = pd.DataFrame({"x": [np.nan, *map(float, days)]})
    (attribute,) = draft_schema(frame).schema.attributes
    assert (attribute.format, attribute.type) == ("%Y%m%d", "int64")
    _, rows = coded(frame, [attribute])
    assert rows["x"][0].as_py() is None
    assert 20_190_101 <= rows["x"][1].as_py() <= 20_191_228


def test_numbers_that_no_whole_number_of_arrow_is_are_listed_as_they_are():
    large, tall = Decimal(10**40), [1e300, 5.0]
    table = pa.table(
        {
            "wide": pa.array([large, Decimal(3)] * 20, pa.decimal256(60, 0)),
            "narrow": pa.array([Decimal("1.5"), Decimal("0.5")] * 20, pa.decimal32(5, 2)),
            "tall": tall * 20,
        }
    )
    attributes = draft_schema(table).schema.attributes
    assert [a.values for a in attributes] == [(3.0, 1e40), (0.5, 1.5), (5.0, 1e300)]
    codes, rows = coded(table, attributes)
    assert codes[:, :2].tolist() == [[1, 0], [1, 0], [1, 0]]
    assert rows["narrow"].type == pa.decimal128(5, 2)


def test_a_synthesizer_without_a_schema_keeps_the_types(tmp_path):
    frame = ALL.select(["decimal", "ordered", "text of digits", "uint8"]).to_pandas()
    rows = Synthesizer().fit(frame, epsilon=5.0).sample(50, seed=0)
    assert rows["decimal"].type == pa.decimal128(5, 2)
    assert rows["ordered"].type.ordered
    assert set(rows["text of digits"].to_pylist()) <= {"10001", "10002", "60601"}
    assert rows["uint8"].type == pa.uint8()
    # Cells of a CSV file have none.
    write_table(ALL.select(["text of digits", "uint8"]), tmp_path / "t.csv")
    rows = Synthesizer().fit(tmp_path / "t.csv", epsilon=5.0).sample(50, seed=0)
    assert rows.schema.types == [pa.int64(), pa.int64()]


@pytest.mark.parametrize("shape", ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%H:%M:%S", "%d.%m.%Y"])
def test_texts_that_are_times_come_back_as_texts(shape):
    start = dt.datetime(2020, 1, 1)
    texts = [(start + SECOND * 50_000 * i).strftime(shape) for i in range(N)]
    frame = pd.DataFrame({"x": texts})
    (attribute,) = draft_schema(frame).schema.attributes
    codes, rows = coded(frame, [attribute])
    assert rows["x"].type == pa.string()
    assert len({len(text) for text in rows["x"].to_pylist()}) == 1
    again = encode_columns(rows, [attribute.as_found(rows[attribute.name])], "x")
    assert (again == codes).all()


def test_ordered_categories_of_days_are_days():
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-03"] * 20), ordered=True)
    (attribute,) = draft_schema(pd.DataFrame({"x": days})).schema.attributes
    assert attribute.calendar == "timestamp"
