"""Tables: reading, encoding against an obvious oracle, decoding, and what bad input is told."""

import bisect
import gzip
import uuid
import zlib
from collections import Counter
from datetime import date, time
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from builders import KEYS, decode, temporal
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import siphash

from vertimrf import Attribute, ReadOptions, draft_schema, write_table
from vertimrf.columns.text import MISSING_TEXT
from vertimrf.errors import OutputError, SchemaError, TableError
from vertimrf.privacy.label import UNSTATED, PrivacyLabel
from vertimrf.server.rows import decode_pieces
from vertimrf.tables.columns import encode_table
from vertimrf.tables.ids import as_texts, digested, format_ids, id_shapes
from vertimrf.tables.sources import open_pieces, read_arrow, read_label
from vertimrf.tables.table import Table, encode_columns
from vertimrf.tables.write import check_output

PEOPLE = (
    Attribute.numeric("age", [0, 18, 40, 65, 120], integral=True, missing=True),
    Attribute.categorical("sex", ["F", "M"]),
    Attribute.categorical("plan", ["basic", "plus"], other="else", missing=True),
    Attribute.integer("claims", 4),
    Attribute.categorical("smoker", [False, True]),
)
CSV = """plan,id,age,sex,claims,smoker
basic,007,17,F,0,true
,7,40,M,3,False
gold,a é,,M,1,FALSE
NA,"x,""y""\nz",120,F,2,True
"""
# Rows are attributes, in the schema's order and not in the file's.
CODES = [[0, 2, 4, 3], [0, 1, 1, 0], [0, 3, 2, 3], [0, 3, 1, 2], [1, 0, 0, 1]]
IDS = ["007", "7", "a é", 'x,"y"\nz']


def people():
    """The records of CSV, typed."""
    return pa.table(
        {
            "id": IDS,
            "age": [17, 40, None, 120],
            "sex": ["F", "M", "M", "F"],
            "plan": ["basic", None, "gold", None],
            "claims": [0, 3, 1, 2],
            "smoker": [True, False, False, True],
        }
    )


def write(path, content):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sources(folder):
    """The same records in every form that is read."""
    table = people()
    frame = table.to_pandas()
    for suffix in ("parquet", "arrow", "feather", "csv", "csv.gz"):
        write_table(table, folder / f"written.{suffix}")

    class Interchange:
        def __dataframe__(self, **options):
            return table.__dataframe__(**options)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    # The line break inside the quotes is part of an id.
    windows = CSV.replace("\n", "\r\n").replace('y""\r\n', 'y""\n')
    sex = pa.chunked_array(
        [pa.array(part).dictionary_encode() for part in (["F"], ["M", "M", "F"])]
    )
    return {
        "csv": write(folder / "a.csv", CSV),
        "csv path as text": str(write(folder / "b.csv", CSV)),
        "csv, windows": write(folder / "c.csv", b"\xef\xbb\xbf" + windows.encode()),
        "csv, gzip": write(folder / "d.csv.gz", gzip.compress(CSV.encode())),
        **{f"written {path.suffixes}": path for path in sorted(folder.glob("written.*"))},
        "arrow": table,
        "record batch": table.combine_chunks().to_batches()[0],
        "chunks": pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)]),
        "slice": pa.concat_tables([table, table]).combine_chunks().slice(4),
        "pandas": frame,
        "pandas, id as index": frame.set_index("id"),
        "pandas, filtered": pd.concat([frame, frame]).iloc[4:],
        "pandas, categories": frame.astype(
            {"sex": "category", "plan": "category", "claims": "category"}
        ),
        "polars": pl.from_arrow(table),
        "polars, categories": pl.from_arrow(table).with_columns(pl.col("sex").cast(pl.Categorical)),
        "polars, lazy": pl.from_arrow(table).lazy(),
        "duckdb": duckdb.from_arrow(table),
        "stream": Stream(),
        "interchange": Interchange(),
        "text": table.set_column(1, "age", table["age"].cast(pa.string())).set_column(
            4, "claims", table["claims"].cast(pa.large_string())
        ),
        "decimals": table.set_column(1, "age", table["age"].cast(pa.decimal128(24, 2))),
        "dictionary": table.set_column(4, "claims", table["claims"].dictionary_encode()).set_column(
            2, "sex", sex
        ),
    }


def encoded_as(attributes, source, **read):
    """A table whose ids are in the column id."""
    return encode_table(source, "id", attributes, ReadOptions(**read), keys=KEYS)


def test_the_same_records_encode_alike_in_every_form(tmp_path):
    digests = encoded_as(PEOPLE, people()).digests.tolist()
    for form, source in sources(tmp_path).items():
        # Whose codes are contiguous uint16, or else it would be refused.
        table = encoded_as(PEOPLE, source)
        assert table.codes.tolist() == CODES, form
        assert table.digests.dtype == np.uint64, form
        assert table.attributes == PEOPLE, form
        assert table.digests.tolist() == digests, form


def test_queries_that_fail_are_told_in_one_sentence():
    for query in (
        pl.LazyFrame({"x": [1]}).select("y"),
        duckdb.sql("select cast(x as int) as x from (values ('a')) t(x)"),
    ):
        with pytest.raises(TableError, match="cannot be read as a table"):
            read_arrow(query)


UUIDS = [uuid.UUID(int=5), uuid.UUID(int=1 << 127)]


def oracle(attribute, value):
    """One value's code, by the definition of the domain; None if it has none."""
    absent = value is None or value != value or (isinstance(value, str) and value in MISSING_TEXT)
    if attribute.kind == "categorical":
        if value in attribute.values:
            return attribute.values.index(value)
        if absent:
            return attribute.size - 1 if attribute.missing else None
        return None if attribute.other is None else attribute.values.index(attribute.other)
    if absent:
        return attribute.size - 1 if attribute.missing else None
    if attribute.kind == "integer":
        return int(value) if value in range(attribute.codes) else None
    low, high = attribute.edges[0], attribute.edges[-1]
    if attribute.clamp:
        value = min(max(value, low), high)
    if not low <= value <= high:
        return None
    return min(bisect.bisect_right(attribute.edges, value), len(attribute.edges) - 1) - 1


ATTRIBUTES = [
    Attribute.numeric("x", [-1, 0, 0.5, 7]),
    Attribute.numeric("x", [-1, 0, 0.5, 7], clamp=True, missing=True),
    Attribute.integer("x", 3),
    Attribute.integer("x", 3, missing=True),
    Attribute.categorical("x", [1, 2, 5], missing=True),
    Attribute.categorical("x", [1, 2, 5], other=2),
]


@settings(max_examples=200)
@given(
    st.sampled_from(ATTRIBUTES),
    st.lists(
        st.none() | st.sampled_from([-1.0, 0, 0.5, 7, 1, 2, 5]) | st.floats(-9, 9),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_encoding_agrees_with_the_definition(attribute, values, as_text):
    expected = [oracle(attribute, value) for value in values]
    cells = [value if value is None else repr(value) for value in values] if as_text else values
    table = pa.table({"x": pa.array(cells, pa.string() if as_text else pa.float64())})
    if None in expected:
        with pytest.raises(SchemaError, match="column 'x'"):
            encode_columns(table, [attribute], "t")
    else:
        assert encode_columns(table, [attribute], "t").tolist() == [expected]


@pytest.mark.parametrize(
    "values, cells, codes",
    [
        # Declared values win over marks of missing ones.
        (["NA", "US", ""], ["NA", "US", "", "null", None], [0, 1, 2, 3, 3]),
        # Large whole numbers are exact.
        ([2**60, 2**60 + 1], [2**60 + 1, 2**60], [1, 0]),
        ([2**60, 2**60 + 1], [str(2**60 + 1), str(2**60)], [1, 0]),
        # Texts keep their zeros.
        (["007", "7", "7.0"], ["7", "007", "7.0"], [1, 0, 2]),
        (["007", "7", "7.0"], [7], [1]),
    ],
)
def test_values_that_look_alike_are_told_apart(values, cells, codes):
    attribute = Attribute.categorical("x", values, missing=True)
    assert encode_columns(pa.table({"x": cells}), [attribute], "t").tolist() == [codes]


def random_codes(rng, attributes, n):
    return np.stack([rng.integers(attribute.size, size=n) for attribute in attributes]).astype(
        np.uint16
    )


WIDE = (
    *PEOPLE,
    Attribute.numeric("tiny", [0.1, np.nextafter(0.1, 1), 0.3, 0.3000001], missing=True),
    Attribute.numeric("whole", [-0.5, 0.5, 2, 2.5, 10], integral=True),
    Attribute.numeric("tenths", [0, 0.3, 0.7, 1, 50], resolution=0.1, missing=True),
    temporal("day", "date", ["1969-12-30", "1970-01-01", "1970-01-02", "2020-02-29"], missing=True),
    temporal(
        "wall", "timestamp", ["2020-03-29 00:00", "2020-03-29 03:30", "2020-03-30"], resolution=60
    ),
    temporal(
        "zoned",
        "timestamp",
        ["2020-03-29 00:00", "2020-03-29 03:30", "2020-03-30"],
        timezone="Europe/Vienna",
    ),
    temporal("clock", "time", ["00:00", "10:30", "23:59:59"], missing=True),
    Attribute.categorical("steps", [0.5, 1.0, 2.25], missing=True, ordered=True),
    Attribute.integer("coded", 300, missing=True),
    Attribute.categorical("number", [-5, 10**12], missing=True),
    Attribute.categorical("text", ["", "NA", "a,b\n", '"', "é"]),
    Attribute.categorical("one", ["only"]),
)


def test_decoded_values_have_the_declared_kinds():
    rng = np.random.default_rng(2)
    codes = random_codes(rng, WIDE, 500)
    table = decode(codes, WIDE, rng)
    assert {field.name: str(field.type) for field in table.schema} == {
        "age": "int64",
        "sex": "string",
        "plan": "string",
        "claims": "int64",
        "smoker": "bool",
        "tiny": "double",
        "whole": "int64",
        "tenths": "double",
        "day": "date32[day]",
        "wall": "timestamp[s]",
        "zoned": "timestamp[s, tz=Europe/Vienna]",
        "clock": "time32[s]",
        "steps": "double",
        "coded": "int64",
        "number": "int64",
        "text": "string",
        "one": "string",
    }
    for i, attribute in enumerate(WIDE):
        assert (
            table[attribute.name].null_count
            == (attribute.missing * (codes[i] == attribute.size - 1)).sum()
        )


def test_numbers_are_even_inside_a_bin_on_its_own():
    rng = np.random.default_rng(3)
    n = 40_000
    attributes = (
        Attribute.numeric("x", [0, 1, 5]),
        Attribute.numeric("k", [0, 1, 5], integral=True),
    )
    x, k = (
        column.to_numpy() for column in decode(np.ones((2, n), np.uint16), attributes, rng).columns
    )
    assert x.min() >= 1
    assert x.max() < 5
    # Mean 3 of U(1, 5), with standard error 4 / sqrt(12 n); five of them.
    assert abs(x.mean() - 3) < 5 * 4 / np.sqrt(12 * n)
    # The closed last bin holds 1, 2, 3, 4, 5, each with share 1/5 and standard error 0.4 / sqrt(n).
    shares = np.bincount(k, minlength=6) / n
    assert shares[0] == 0
    assert np.abs(shares[1:] - 0.2).max() < 5 * 0.4 / np.sqrt(n)


def test_numbers_slope_towards_the_fuller_neighbour():
    """Counts 300, 200, 100 in bins of one: the middle one's density falls from 250 to 150; its mean is 1.5 - 1/24."""
    rng = np.random.default_rng(4)
    codes = np.repeat(np.array([[0, 1, 2]], np.uint16), [30_000, 20_000, 10_000], axis=1)
    x = decode(codes, [Attribute.numeric("x", [0, 1, 2, 3])], rng)["x"].to_numpy()
    middle = x[codes[0] == 1]
    # Standard deviation inside 0.29: five standard errors are 0.010.
    assert abs(middle.mean() - (1.5 - 1 / 24)) < 0.010
    # The first is highest of all, and level; the last falls towards nothing.
    assert abs(x[codes[0] == 0].mean() - 0.5) < 5 * 0.29 / np.sqrt(30_000)
    assert 2.35 < x[codes[0] == 2].mean() < 2.45


LOOKS = {
    "body mass index": lambda rng, n: np.round(np.exp(rng.normal(np.log(27.5), 0.23, n)), 1),
    "systolic pressure": lambda rng, n: np.round(95 + rng.gamma(3, 9, n)),
    "income": lambda rng, n: np.round(np.exp(rng.normal(10.3, 0.9, n)), 2),
    "capital gain": lambda rng, n: np.where(
        rng.random(n) < 0.92, 0, np.round(np.exp(rng.normal(8.8, 1, n)))
    ),
    "age": lambda rng, n: rng.integers(18, 90, n).astype(float),
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "delay": lambda rng, n: np.round(
        np.where(rng.random(n) < 0.7, rng.normal(-5, 8, n), rng.exponential(60, n))
    ),
    "u-shaped": lambda rng, n: rng.beta(0.3, 0.3, n),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_table_keeps_its_moments_through_drafted_bins(name):
    """Means to 2 % of a standard deviation, standard deviations to 2 %: no noise here, so this is what binning costs."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values = LOOKS[name](rng, 30_000)
    draft = draft_schema([pa.table({"id": range(len(values)), "x": values})], "id")
    (attribute,) = draft.schema.attributes
    codes = encode_columns(pa.table({"x": values}), [attribute], "t")
    back = decode(codes, [attribute], rng)["x"].to_numpy()
    assert attribute.size <= 17
    assert abs(back.mean() - values.mean()) < 0.02 * values.std()
    assert abs(back.std() / values.std() - 1) < 0.02


def test_dates_and_times_of_every_kind_of_file(tmp_path):
    zone = "America/New_York"
    attributes = [
        temporal("day", "date", ["2020-01-01", "2020-01-02", "2020-02-01"]),
        temporal(
            "at",
            "timestamp",
            ["2020-01-01", "2020-01-01 12:00", "2020-01-02"],
            timezone=zone,
            missing=True,
        ),
        temporal("clock", "time", ["00:00", "12:00", "23:59:59"]),
    ]
    aware = pa.array(
        [
            pd.Timestamp("2020-01-01 11:59:59", tz=zone),
            pd.Timestamp("2020-01-01 12:00", tz=zone),
            None,
        ]
    )
    table = pa.table(
        {
            "day": pa.array([date(2020, 1, 1), date(2020, 1, 2), date(2020, 2, 1)]),
            "at": aware.cast(pa.timestamp("ns", zone)),
            "clock": pa.array([time(11, 59, 59), time(12), time(23, 59, 59)]),
        }
    )
    wanted = [[0, 1, 1], [0, 1, 2], [0, 1, 1]]
    assert encode_columns(table, attributes, "t").tolist() == wanted
    # Elsewhere the same moments; without a zone, moments there; at midnight, days.
    other = table.set_column(1, "at", aware.cast(pa.timestamp("ms", "Asia/Tokyo")))
    assert encode_columns(other, attributes, "t").tolist() == wanted
    wall = pa.array([pd.Timestamp("2020-01-01 11:59:59"), pd.Timestamp("2020-01-01 12:00"), None])
    naive = table.set_column(1, "at", wall).set_column(
        0, "day", table["day"].cast(pa.timestamp("us"))
    )
    assert encode_columns(naive, attributes, "t").tolist() == wanted
    path = tmp_path / "t.csv"
    path.write_text(
        "day,at,clock\n2020-01-01,2020-01-01T11:59:59,11:59:59\n2020-01-02,2020-01-01 17:00+00:00,12:00\n2020-02-01,NA,23:59:59\n"
    )
    assert encode_columns(read_arrow(path), attributes, "t").tolist() == wanted


# Ids, with bars between them.
AS_STORED = " Ab1|007|12.0|-3.00|x.0|0|000|0x|1.5"


@pytest.mark.parametrize(
    "formats, written",
    [
        ("", AS_STORED),
        ("strip", "Ab1|007|12.0|-3.00|x.0|0|000|0x|1.5"),
        ("lower", " ab1|007|12.0|-3.00|x.0|0|000|0x|1.5"),
        ("whole", " Ab1|007|12|-3|x.0|0|000|0x|1.5"),
        ("unpad", " Ab1|7|12.0|-3.00|x.0|0|0|x|1.5"),
        ("unpad whole lower strip", "ab1|7|12|-3|x.0|0|0|x|1.5"),
    ],
)
def test_ids_written_another_way(formats, written):
    ids = pa.chunked_array([[*AS_STORED.split("|"), None]])
    assert format_ids(ids, formats.split()).to_pylist() == [*written.split("|"), None]


def ids_of(ids, formats):
    """A table of ids alone, in these formats."""
    return encoded_as((), pa.table({"id": ids}), id_format=formats)


def test_formats_have_names_and_may_make_two_ids_one():
    with pytest.raises(
        TableError, match="no id format 'upper'; choose among strip, lower, whole, unpad"
    ):
        format_ids(pa.chunked_array([["a"]]), ["upper"])
    # Two ways of writing one person: the table names a person twice.
    twice = ids_of(["7", "007"], ["unpad"])
    assert "1 record repeats an id" in twice.dropped.reasons[0].sentence
    assert twice.digests.tolist() == [siphash(KEYS.records, b"7")]


# Ids as they are stored, and their texts.
WRITTEN = {
    "text": (pa.array(["a", "7", "x y"]), ["a", "7", "x y"]),
    "large text": (pa.array(["a", "7"], pa.large_string()), ["a", "7"]),
    "views": (pa.array(["a", "7"], pa.string_view()), ["a", "7"]),
    "words": (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    "bytes": (pa.array([b"7", b"007"]), ["7", "007"]),
    "whole": (pa.array([0, -3, 2**63 - 1, -(2**63)]), ["0", "-3", f"{2**63 - 1}", f"-{2**63}"]),
    "short": (pa.array([7, -3], pa.int16()), ["7", "-3"]),
    "unsigned": (pa.array([5, 2**64 - 1], pa.uint64()), ["5", f"{2**64 - 1}"]),
    "floats": (pa.array([7.0, -3.0, 2.0**53]), ["7", "-3", f"{2**53}"]),
    "halves": (pa.array([1.0, 2.0], pa.float32()), ["1", "2"]),
    "decimals": (pa.array([Decimal(12), Decimal(10**25)]), ["12", f"{10**25}"]),
    "uuids": (pa.array([some.bytes for some in UUIDS], pa.uuid()), [str(some) for some in UUIDS]),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_ids_have_the_digest_of_their_text(kind):
    """However they are stored and cut. A format that changes nothing changes no digest."""
    stored, texts = WRITTEN[kind]
    ids, texts = pa.chunked_array([stored, stored.slice(1)]), [*texts, *texts[1:]]
    assert as_texts(ids, "ids").to_pylist() == texts
    expected = [siphash(KEYS.records, text.encode()) for text in texts]
    for written in (ids, format_ids(ids, ["strip"])):
        assert digested(KEYS.records, written, "ids")[0].tolist() == expected


@pytest.mark.parametrize(
    "ids, words",
    [
        (pa.chunked_array([[True]]), "ids are of the type bool"),
        (pa.chunked_array([[Decimal("1.5")]]), "ids are of the type decimal128"),
    ],
)
def test_no_format_lets_ids_pass_that_are_none(ids, words):
    for formats in (["strip"], ["whole", "unpad"]):
        table = ids_of(ids, formats)
        assert (table.records, table.dropped.records) == (0, 1)
        assert words in table.dropped.reasons[0].sentence


@pytest.mark.parametrize(
    "ids, stay",
    [
        (pa.chunked_array([[7.5, 8.0]]), [1]),
        (pa.chunked_array([[2.0**53 + 2, 1.0]]), [1]),
        (pa.chunked_array([[b"\xff", b"u"]]), [1]),
        (pa.chunked_array([pa.array([b"", b"\xff", b"u"]).view(pa.string())]), [1, 2]),
    ],
)
def test_single_ids_that_cannot_be_written_another_way_are_none(ids, stay):
    for formats in (["strip"], ["whole", "unpad"]):
        encoded = ids_of(ids, formats)
        assert encoded.records == len(stay)
        assert encoded.dropped.records == len(ids) - len(stay)


def test_missing_uuids_are_missing_texts():
    some = uuid.UUID(int=9)
    ids = pa.chunked_array([pa.array([None, some.bytes], pa.uuid())])
    assert as_texts(ids, "ids").to_pylist() == [None, str(some)]
    assert id_shapes(pa.chunked_array([[b"\xff", b"a"]])) == {"a": 1}


def test_shapes_of_ids_tell_no_id():
    ids = ["5", "57", "007", "00", "a-12", "Bé12", " x", "12.0", None, "李"]
    shapes = ["0", "00", "Z00", "Z0", "a-00", "Aa00", " a", "00.0", "w"]
    assert id_shapes(pa.chunked_array([ids])) == Counter(shapes)


DAYS = temporal("x", "date", ["2020-01-01", "2020-01-04"])


@pytest.mark.parametrize(
    "column, attribute, message",
    [
        (["2020-01-05"], DAYS, "the bounds are 2020-01-01 to 2020-01-04"),
        (["soon"], DAYS, "holds 'soon', outside"),
        ([5], DAYS, "holds int64 cells, but the schema says date"),
        (
            [5.5],
            temporal("x", "time", ["10:00", "11:00"]),
            "holds double cells, but the schema says time",
        ),
        (
            [pd.Timestamp("2020-01-02", tz="UTC")],
            temporal("x", "timestamp", ["2020-01-01", "2020-01-04"]),
            "but the schema says timestamp without a time zone",
        ),
    ],
)
def test_cells_that_are_no_such_date(column, attribute, message):
    with pytest.raises(SchemaError, match=message):
        encode_columns(pa.table({"x": column}), [attribute], "t")


def test_decoding_refuses_codes_without_a_value():
    with pytest.raises(TableError, match="'claims' has the codes 0 to 3, not 0 to 4"):
        decode(np.array([[0, 4]]), [PEOPLE[3]], np.random.default_rng(0))


def test_decoding_no_records():
    table = decode(np.empty((len(WIDE), 0), np.uint16), WIDE, np.random.default_rng(0))
    assert table.num_rows == 0
    assert table.column_names == [attribute.name for attribute in WIDE]


def cell(**columns):
    return pa.table({"id": pa.array(range(3)), **columns})


X = (Attribute.categorical("x", ["a", "b"]),)
# What no record is to blame for: refused.
BAD_TABLES = [
    (cell(), X, SchemaError, "people lacks the column 'x'"),
    (pa.table({"x": ["a"]}), X, TableError, "people has no id column 'id'; its columns are 'x'"),
    (
        pa.table({"id": [1], "x": ["a"]}),
        (*X, Attribute.integer("id", 5)),
        SchemaError,
        "'id' is an attribute",
    ),
    (
        pa.table([pa.array([1]), pa.array([2]), pa.array([3])], ["id", "x", "x"]),
        X,
        TableError,
        "two columns 'x'",
    ),
    ([1, 2], X, TableError, "A list is not a table"),
    (None, X, TableError, "A NoneType is not a table"),
]
# Records that do not fit: dropped. Which of them stay, and what is said.
UNFIT = [
    # Writers make a column's type of its cells.
    (cell(x=[[1], [2], [3]]), X, [], "column 'x' holds list"),
    (
        cell(x=pd.to_datetime(["2020-01-01"] * 3)),
        (Attribute.numeric("x", [0, 2]),),
        [],
        "cells, but the schema says numeric",
    ),
    (
        cell(x=[None, 5.0, None]),
        (temporal("x", "date", ["2020-01-01", "2020-01-04"], missing=True),),
        [0, 2],
        "holds double cells, but the schema says date",
    ),
    (
        pa.table({"id": [True, False, True], "x": ["a"] * 3}),
        X,
        [],
        "ids are of the type bool",
    ),
    (
        cell(x=["a", "c", "c"]),
        X,
        [0],
        "'x' holds 'c', outside the schema, in 2 records (the first is id 1)",
    ),
    (
        cell(x=["a", "b", None]),
        X,
        [0, 1],
        "'x' has 1 record (id 2) without a value; set missing = true",
    ),
    (cell(x=["a", "", "NA"]), X, [0], "'x' has 2 records (the first is id 1) without a value"),
    (
        cell(x=[0, 1, 2]),
        (Attribute.integer("x", 2),),
        [0, 1],
        "holds 2, outside the schema, in 1 record (id 2)",
    ),
    (cell(x=[0, 1, 0.5]), (Attribute.integer("x", 2),), [0, 1], "'x' holds 0.5"),
    (cell(x=["0", "1_0", "1"]), (Attribute.integer("x", 99),), [0, 2], "'x' holds '1_0'"),
    (
        cell(x=["0", "9" * 5000, "1"]),
        (Attribute.categorical("x", [0, 1]),),
        [0, 2],
        "'x' holds '99",
    ),
    (
        cell(x=[0.0, -1.0, 2.5]),
        (Attribute.numeric("x", [0, 2]),),
        [0],
        "holds -1.0, outside the schema, in 2",
    ),
    (
        cell(x=["1", "abc", "2"]),
        (Attribute.numeric("x", [0, 2], clamp=True),),
        [0, 2],
        "'x' holds 'abc'",
    ),
    (
        pa.table({"id": ["u", "v", "u", "w", "v", "u"], "x": ["a"] * 6}),
        X,
        [0, 1, 3],
        "3 records repeat an id that another has",
    ),
    (
        pa.table({"id": ["u", "v", "u", "w", "v", "u"], "x": ["b", "a"] * 3}),
        X,
        [1, 3, 5],
        "(such as 'u', 'v')",
    ),
    (
        pa.table({"id": [1, 1], "x": ["z", "b"]}),
        X,
        [1],
        "'x' holds 'z', outside the schema, in 1 record (id 1)",
    ),
    (
        pa.table({"id": [1, 1], "x": ["b", "a"]}),
        X,
        [1],
        "1 record repeats an id that another has (such as 1)",
    ),
    (
        pa.table({"id": [1, *[None] * 4], "x": ["a"] * 5}),
        X,
        [0],
        "4 records have no id (row 2, 3, 4, ...)",
    ),
    (pa.table({"id": ["u", ""], "x": ["a"] * 2}), X, [0], "1 record has no id (row 2)"),
    (pa.table({"id": pa.nulls(2), "x": ["a"] * 2}), X, [], "2 records have no id"),
    (pa.table({"id": [1.5, 2], "x": ["a"] * 2}), X, [1], "1 record has no id (row 1)"),
    (pa.table({"id": [1.0, float("inf")], "x": ["a"] * 2}), X, [0], "1 record has no id (row 2)"),
    (cell(x=["y\n" * 99] * 3), X, [], "..., outside the schema, in 3 records"),
    (pa.table({"id": ["u\nv"] * 2, "x": ["a"] * 2}), X, [0], r"'u\nv'"),
    (pd.DataFrame({"id": [1, 2, 3], "x": ["a", 5, b"b"]}), X, [0, 2], "holds 5, outside"),
    (pa.table({"id": pa.array([b"u", b"\xff"]).view(pa.string()), "x": ["a", "a"]}), X, [0, 1], ""),
    (
        cell(x=pa.array([b"a", b"\xe9", b"b"]).view(pa.string())),
        X,
        [0, 2],
        r"holds '\\xe9', outside the schema",
    ),
]


@pytest.mark.parametrize(
    "table, attributes, kind, message", BAD_TABLES, ids=[case[-1] for case in BAD_TABLES]
)
def test_bad_tables_are_told_apart(table, attributes, kind, message):
    with pytest.raises(kind) as caught:
        encode_table(table, "id", attributes, name="people", keys=KEYS)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "table, attributes, stay, message", UNFIT, ids=[case[-1] for case in UNFIT]
)
def test_records_that_do_not_fit_are_dropped_and_told_of(
    table, attributes, stay, message, monkeypatch
):
    rows = read_arrow(table)
    every = encode_table(
        rows.select(["id"]).take(pa.array(stay, pa.int64())), "id", (), keys=KEYS
    ).digests
    lines = []
    for size in (1000, 2, 1):
        in_pieces_of(size, monkeypatch)
        encoded = encode_table(table, "id", attributes, name="people", keys=KEYS)
        assert encoded.digests.tolist() == every.tolist()
        assert encoded.codes.shape == (len(attributes), len(stay))
        assert (encoded.codes < max(attribute.size for attribute in attributes)).all()
        assert encoded.dropped.records == rows.num_rows - len(stay)
        lines.append(encoded.dropped.lines())
    assert lines[0] == lines[1] == lines[2]
    assert message in " ".join(lines[0])
    assert not any("\n" in line for line in lines[0])
    if stay == list(range(rows.num_rows)):
        assert lines[0] == ()


BAD_FILES = [
    ("empty.csv", b"", "is empty"),
    ("colon.csv", b"id:x\n1:a\n", "has no id column 'id'; its columns are 'id:x'"),
    ("twice.csv", b"id,x,x\n1,a,b\n", "two columns 'x'"),
    (
        "bytes.csv",
        bytes(range(128, 256)) + b"\n" + bytes(range(128, 256)),
        "has no id column 'id'; its columns are",
    ),
]


@pytest.mark.parametrize("name, content, message", BAD_FILES, ids=[case[0] for case in BAD_FILES])
def test_bad_files_are_named(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(TableError) as caught:
        encoded_as(X, path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_absent_files_are_named(tmp_path):
    with pytest.raises(TableError, match=r"There is no file .*absent\.csv"):
        read_arrow(tmp_path / "absent.csv")
    with pytest.raises(TableError, match="has no files; name a folder"):
        read_arrow(tmp_path)


def in_pieces_of(rows, monkeypatch):
    monkeypatch.setattr("vertimrf.tables.arrow.PIECE_ROWS", rows)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "arrow", "frame"])
@pytest.mark.parametrize("rows", [4, 8, 1000])
def test_pieces_are_the_whole(tmp_path, suffix, rows, monkeypatch):
    rng = np.random.default_rng(6)
    n = 100
    table = decode(random_codes(rng, WIDE, n), WIDE, rng).append_column(
        "id", pa.array([f"r{i}" for i in range(n)])
    )
    table = table.append_column("who", pa.array(rng.integers(0, 40, n)))
    path = tmp_path / f"table.{suffix}"
    if suffix == "frame":
        path = table.to_pandas()
    else:
        write_table(table, path)
    whole = encoded_as(WIDE, table, person="who")
    in_pieces_of(rows, monkeypatch)
    assert [piece.num_rows for piece in open_pieces(path).read()] == [
        min(rows, n - start) for start in range(0, n, rows)
    ]
    encoded = encoded_as(WIDE, path, person="who")
    assert (encoded.codes == whole.codes).all()
    assert (encoded.digests == whole.digests).all()
    assert (encoded.persons == whole.persons).all()
    assert [cell.as_py() for cell in open_pieces(path).cells("id", [0, 41, 99])] == [
        "r0",
        "r41",
        "r99",
    ]


def test_wide_tables_are_read_in_fewer_rows(monkeypatch):
    monkeypatch.setattr("vertimrf.tables.arrow.PIECE_CELLS", 60)
    table = pa.table({f"x{i}": range(100) for i in range(6)})
    assert {piece.num_rows for piece in open_pieces(table).read()} == {10}
    assert {piece.num_rows for piece in open_pieces(table).read(["x0", "x5"])} == {30, 10}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_what_is_said_of_late_pieces_names_rows_of_the_table(tmp_path, suffix, monkeypatch):
    in_pieces_of(4, monkeypatch)

    def message(**columns):
        ids = columns.pop("id", [f"r{i}" for i in range(30)])
        write_table(pa.table({"id": ids, "x": ["a"] * 30} | columns), tmp_path / f"t.{suffix}")
        person = "who" if "who" in columns else None
        encoded = encoded_as(X, tmp_path / f"t.{suffix}", person=person)
        return " ".join(encoded.dropped.lines())

    ids = [f"r{i % 21}" for i in range(30)]
    assert "9 records repeat an id that another has (such as 'r0', 'r1', 'r2')" in message(id=ids)
    holes = [None if i in (9, 17, 21, 28) else f"r{i}" for i in range(30)]
    assert "4 records have no id (row 10, 18, 22, ...)" in message(id=holes)
    assert "4 records have no id (row 10, 18, 22, ...)" in message(who=holes)
    assert "holds 'z', outside the schema, in 2 records (the first is id 'r13')" in message(
        x=["a"] * 13 + ["z"] * 2 + ["a"] * 15
    )
    assert "1 record (id 'r29') without a value" in message(x=["a"] * 29 + [None])


def test_rows_without_ids_are_numbered_through_the_whole_table(
    monkeypatch,
):
    in_pieces_of(4, monkeypatch)
    table = pa.table({"x": ["a"] * 10 + ["z"]})
    encoded = encode_table(table, None, X, keys=KEYS)
    assert "in 1 record (row 11)" in encoded.dropped.reasons[0].sentence
    assert encoded.records == 10
    assert encode_table(table.slice(0, 10), None, X, keys=KEYS).digests.tolist() == list(range(10))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "arrow"])
def test_tables_are_decoded_and_written_in_pieces(tmp_path, suffix, monkeypatch):
    codes = random_codes(np.random.default_rng(2), WIDE, 3000)
    whole, path = decode(codes, WIDE, np.random.default_rng(3)), tmp_path / f"t.{suffix}"
    monkeypatch.setattr("vertimrf.server.rows.PIECE_ROWS", 207)
    pieces = list(decode_pieces(codes, WIDE, np.random.default_rng(3)))
    assert [piece.num_rows for piece in pieces] == [207] * 14 + [102]
    assert {piece.schema for piece in pieces} == {whole.schema}
    assert write_table(iter(pieces), path, PRIVATE) == 3000
    assert (encode_columns(read_arrow(path), WIDE, "t") == codes).all()
    assert read_label(path) == PRIVATE


def test_numbers_in_pieces_are_spread_by_the_shape_of_all_rows(
    monkeypatch,
):
    """Bins that a piece alone would take for even: the mean inside the middle one follows the slope of all rows."""
    attribute = Attribute.numeric("x", [0, 1, 2, 3])
    codes = np.repeat(np.array([2, 1, 0], np.uint16), [30_000, 20_000, 10_000])[None]
    monkeypatch.setattr("vertimrf.server.rows.PIECE_ROWS", 5_000)
    x = decode(codes, [attribute], np.random.default_rng(4))["x"].to_numpy()
    middle = x[(x >= 1) & (x < 2)]
    # Density from 1 - 1/4 to 1 + 1/4: the mean is 1 + 1/2 + 1/24; five standard errors of 20,000 numbers.
    assert abs(middle.mean() - (1.5 + 1 / 24)) < 5 * 0.29 / np.sqrt(20_000)


def test_output_names():
    for name in ("a.csv", "a.b.csv.gz", "a.parquet", "a.arrow", "a.feather"):
        assert name.endswith(check_output(name))
    for name in ("a", "a.txt", "a.gz", "a.parquet.gz"):
        with pytest.raises(TableError, match="no known table suffix"):
            check_output(name)


def test_failed_writes_leave_nothing(tmp_path):
    with pytest.raises(TableError, match="cannot be written"):
        write_table(pa.table({"x": [[1]]}), tmp_path / "nested.csv")
    with pytest.raises(OutputError, match="its folder does not exist"):
        write_table(pa.table({"x": [1]}), tmp_path / "absent" / "a.csv")
    assert not list(tmp_path.iterdir())


def test_tables_check_their_shape():
    good = np.zeros((1, 2), np.uint16)
    for codes in (good.T, good.astype(np.int64), np.zeros((1, 4), np.uint16)[:, ::2]):
        with pytest.raises(TableError, match="needs C-contiguous uint16 codes"):
            Table(X, np.arange(2, dtype=np.uint64), codes)


PRIVATE = PrivacyLabel(0.55, 1e-6, notes=("seconds follow the data",))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "arrow", "feather"])
def test_a_table_carries_its_label(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_table(people(), path)
    assert read_label(path) == UNSTATED
    write_table(people(), path, PRIVATE)
    assert read_label(path) == PRIVATE
    assert read_arrow(path).num_rows == 4
    # A table that replaces it by other means does not inherit what it said.
    write_table(people().slice(1), path)
    assert read_label(path) == UNSTATED
    with pytest.raises(TableError, match="no file"):
        read_label(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    "stated", ["", "{}", "[1]", '{"label": 1}', "[" * 100_000, '{"label": {}, "sha256": "0"}']
)
def test_a_table_whose_label_is_malformed_is_not_private(tmp_path, stated):
    write_table(people(), tmp_path / "t.csv", PRIVATE)
    (tmp_path / "t.csv.label.json").write_text(stated)
    assert not read_label(tmp_path / "t.csv").private
    table = people().replace_schema_metadata({"vertimrf.label": stated})
    write_table(table, tmp_path / "t.parquet")
    assert not read_label(tmp_path / "t.parquet").private
    assert not read_label(table).private
    assert not read_label(table.to_pandas()).private
