"""One odd cell costs its record, in every kind of table: the others encode as if it were not there."""

import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import math
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from builders import KEYS, temporal
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import siphash

from vertimrf import (
    Attribute,
    OpenSchema,
    ReadOptions,
    Schema,
    VertiMRFError,
    draft_schema,
    write_table,
)
from vertimrf.errors import TableError
from vertimrf.party.check import check_table
from vertimrf.party.private_domains import find_domains
from vertimrf.privacy.noise import FixedNoise
from vertimrf.tables.columns import encode_table
from vertimrf.tables.dropped import NO_VALUE
from vertimrf.tables.ids import shown
from vertimrf.tables.objects import TYPES, from_objects
from vertimrf.tables.sources import open_pieces

DAY = datetime.date(2020, 1, 3)
MOMENT = datetime.datetime(2020, 1, 3, 12)
# Attributes, and cells that fit them.
FITTING = {
    "whole": (Attribute.integer("x", 4), [0, 1, 2, 3]),
    "number": (Attribute.numeric("x", [-1, 0, 0.5, 7]), [-1.0, 0.25, 3.0, 7.0]),
    "flag": (Attribute.categorical("x", [False, True]), [True, False]),
    "flags as codes": (Attribute.integer("x", 2), [True, False]),
    "text": (Attribute.categorical("x", ["a", "b", "7"]), ["a", "b"]),
    "listed": (Attribute.categorical("x", [1, 2, 5]), [1, 2, 5]),
    "decimal": (Attribute.numeric("x", [0, 1, 2]), [Decimal("0.50"), Decimal("1.5")]),
    "date": (temporal("x", "date", ["2020-01-01", "2020-01-03", "2020-02-01"]), [DAY]),
    "dates written": (
        temporal("x", "date", ["2020-01-01", "2020-02-01"], format="%Y-%d-%m"),
        [DAY],
    ),
    "moment": (temporal("x", "timestamp", ["2020-01-01", "2020-02-01"]), [MOMENT]),
    "zoned": (
        temporal("x", "timestamp", ["2020-01-01", "2020-02-01"], timezone="Asia/Tokyo"),
        [MOMENT.replace(tzinfo=datetime.UTC)],
    ),
    "time": (temporal("x", "time", ["10:00", "11:00"]), [datetime.time(10, 30)]),
}
ROWS = 12


class Unprintable:
    """An object that answers nothing."""

    def __raise(self, *_):
        raise RuntimeError("no")

    __hash__ = __eq__ = __str__ = __repr__ = __bool__ = __len__ = __iter__ = __raise


class Colour(enum.Enum):
    RED = 1


# Cells that fit none of the attributes.
ODD = {
    "huge": 10**30,
    "huge, negative": -(10**30),
    "too long to print": 10**5000,
    "64 bits": 2**63,
    "surrogate": "\ud800",
    "text": "odd",
    "bytes": b"odd",
    "no text": b"\xff\xfe",
    "list": [1, 2],
    "nested": {"a": [{"b": {1}}]},
    "tuple": (1, (2,)),
    "set": {3, 4},
    "array": np.arange(3),
    "class": Colour.RED,
    "fraction": fractions.Fraction(1, 3),
    "complex": 1j,
    "unprintable": Unprintable(),
    "decimal": Decimal("99.75"),
    "decimal, huge": Decimal("1e400"),
    "decimal, endless": Decimal("1e999999"),
    "decimal, none": Decimal("NaN"),
    "decimal, signal": Decimal("sNaN"),
    "decimal, infinite": Decimal("Infinity"),
    "infinite": math.inf,
    "nothing": None,
    "not a number": math.nan,
    "not a time": pd.NaT,
    "not there": pd.NA,
    "far date": datetime.date.max,
    "far moment": datetime.datetime.max,
    "first moment": datetime.datetime.min,
    "zone": datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=14))),
    "time with a zone": datetime.time(1, tzinfo=datetime.UTC),
    "difference": datetime.timedelta.max,
    "uuid": uuid.UUID(int=7 << 124),
    "NumPy's date": np.datetime64("20000-01-01"),
    "NumPy's number": np.float32(88.5),
}
# As ids, these are as good as any: text, or the digits of a whole number.
IDS = {
    "huge": "1" + "0" * 30,
    "huge, negative": "-1" + "0" * 30,
    "64 bits": str(2**63),
    "surrogate": "\\ud800",
    "text": "odd",
    "bytes": "odd",
    "no text": "\\xff\\xfe",
    "uuid": str(uuid.UUID(int=7 << 124)),
}


def column_of(values):
    """Objects as a column of a frame, each as it is."""
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return pd.Series(out, dtype=object)


def polars_of(frame):
    return pl.DataFrame(
        [pl.Series(name, frame[name].tolist(), dtype=pl.Object) for name in frame.columns]
    )


def encoded(source, attribute, id="id", person=None, **read):
    return encode_table(
        source,
        id,
        () if attribute is None else (attribute,),
        ReadOptions(person=person, **read),
        keys=KEYS,
    )


def same(one, other):
    assert one.digests.tolist() == other.digests.tolist()
    assert one.codes.tolist() == other.codes.tolist()
    assert (one.persons is None) == (other.persons is None)
    assert one.persons is None or one.persons.tolist() == other.persons.tolist()


@pytest.mark.parametrize("kind", FITTING)
def test_an_odd_cell_of_a_column_of_objects_costs_its_record(kind):
    attribute, cells = FITTING[kind]
    cells = list(itertools.islice(itertools.cycle(cells), ROWS))
    # As it is typed, and as a column of objects.
    typed = encoded(pa.table({"id": range(ROWS), "x": cells}), attribute)
    assert typed.records == ROWS
    same(encoded(pd.DataFrame({"id": range(ROWS), "x": column_of(cells)}), attribute), typed)
    every = [*cells, *ODD.values()]
    order = np.random.default_rng(0).permutation(len(every))
    frame = pd.DataFrame({"id": order, "x": column_of([every[i] for i in order])})
    for source in (frame, polars_of(frame)):
        table = encoded(source, attribute)
        assert table.dropped.records == len(ODD)
        back = np.argsort(order[order < ROWS])
        same(
            dataclasses.replace(
                table, digests=table.digests[back], codes=table.codes[:, back].copy()
            ),
            typed,
        )


@pytest.mark.parametrize("name", ODD)
def test_a_single_odd_cell_is_counted(name):
    """In a column, as an id, and as a person: with it, the records are those without its row."""
    attribute = FITTING["whole"][0]
    typed = encoded(pd.DataFrame({"id": [1, 2, 3], "x": [0, 1, 2]}), attribute)
    ids, cells = column_of([1, 2, ODD[name], 3]), column_of([0, 1, ODD[name], 2])
    odd_cell = encoded(pd.DataFrame({"id": [1, 2, 9, 3], "x": cells}), attribute)
    odd_id = encoded(pd.DataFrame({"id": ids, "x": [0, 1, 1, 2]}), attribute)
    odd_person = encoded(
        pd.DataFrame({"id": [1, 2, 9, 3], "x": [0, 1, 1, 2], "who": ids}), attribute, person="who"
    )
    assert odd_person.records == 3 + (name in IDS)
    for table in (odd_cell, *([] if name in IDS else [odd_id])):
        same(table, typed)
        assert table.dropped.records == 1
        assert len(table.dropped.lines()) == 2


@pytest.mark.parametrize("written", [[], ["strip"], ["whole", "unpad"]])
@pytest.mark.parametrize("ids", [[1, 2, 3], ["1", "2", "3"], [1.0, 2.0, 3.0]])
def test_ids_of_any_type_are_their_text_beside_odd_ones(ids, written):
    """3 is 3, also as 3.0 or in a column with a text."""
    frame = pd.DataFrame({"id": column_of([*ids, *ODD.values()])})
    table = encoded(frame, None, id_format=written)
    texts = ["1", "2", "3", *(IDS[name] for name in ODD if name in IDS)]
    # "odd" is an id twice.
    assert set(table.digests.tolist()) == {siphash(KEYS.records, text.encode()) for text in texts}
    assert table.dropped.records == len(ODD) - len(IDS) + 1


CELLS = st.sampled_from(
    [
        *(value for name, value in ODD.items() if name != "unprintable"),
        *(1, 0, True, False, 1.0, 0.25),
        "a",
        "1",
        "true",
        "2020-01-03",
        "",
        "NA",
        DAY,
        MOMENT,
        datetime.time(10, 30),
        Decimal("1.50"),
    ]
)


@settings(max_examples=50)
@given(st.sampled_from(sorted(FITTING)), st.lists(CELLS, min_size=1, max_size=8), st.data())
def test_what_a_cell_is_read_as_depends_on_it_alone(kind, cells, data):
    attribute = FITTING[kind][0]
    ids = [f"r{i}" for i in range(len(cells))]
    together = encoded(pd.DataFrame({"id": ids, "x": column_of(cells)}), attribute)
    alone = [
        encoded(pd.DataFrame({"id": [id], "x": column_of([cell])}), attribute)
        for id, cell in zip(ids, cells, strict=True)
    ]
    assert together.digests.tolist() == [d for one in alone for d in one.digests.tolist()]
    assert together.codes[0].tolist() == [c for one in alone for c in one.codes[0].tolist()]
    assert together.dropped.records == sum(one.dropped.records for one in alone)
    size = data.draw(st.sampled_from([1, 2, 3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vertimrf.tables.arrow.PIECE_ROWS", size)
        same(encoded(pd.DataFrame({"id": ids, "x": column_of(cells)}), attribute), together)


def test_categories_that_are_objects_are_read_as_objects():
    values = [1, 10**30, "b", (1, 2), "\ud800", None, 1]
    column = pd.Series(pd.Categorical(values))
    frame = pd.DataFrame({"id": range(7), "x": column})
    attribute = Attribute.categorical("x", [1, 2], other=2)
    plain = encoded(frame.assign(x=column_of(values)), attribute)
    same(encoded(frame, attribute), plain)
    assert plain.codes.tolist() == [[0, 1, 1, 1, 0]]
    assert plain.dropped.records == 2


def test_columns_that_nobody_asks_for_cost_nothing():
    frame = pd.DataFrame({"id": [1, 2], "x": [0, 1], "more": column_of([[1], Unprintable()])})
    table = encoded(frame, FITTING["whole"][0])
    assert table.records == 2
    assert table.dropped.records == 0


def test_objects_that_are_no_values_are_told_of():
    frame = pd.DataFrame({"id": [1, 2, 3], "x": column_of([[1], 1, {"a": 1}])})
    assert encoded(frame, FITTING["whole"][0]).dropped.lines() == (
        "2 records do not fit and are left out; this stays here.",
        f"The table: 2 rows have {NO_VALUE} (the first is \"list in 'x'\"); correct them.",
    )
    schema = OpenSchema(Schema.of({"one": [FITTING["whole"][0]]}), {})
    (problem,) = check_table(frame, "id", schema, "one", "t").problems
    assert problem == f"t: 2 rows have {NO_VALUE} (the first is \"list in 'x'\"); correct them."
    with pytest.raises(TableError, match="a row has a cell that is no text, number, date or time"):
        open_pieces(frame).whole(None)


def test_a_draft_of_odd_cells_is_a_draft_or_a_sentence():
    for odd in ODD.values():
        frame = pd.DataFrame({"id": range(40), "x": column_of([*[1, 2, 3] * 13, odd])})
        with contextlib.suppress(VertiMRFError):
            draft_schema(frame, "id")


@pytest.mark.parametrize("asked", [{"values": "private"}, {"bins": "private"}])
def test_a_private_domain_is_found_beside_odd_cells(asked):
    section = {"name": "a", "attribute": [{"name": "x", **asked}]}
    (domain,) = OpenSchema.from_json({"party": [section]}).wanted.values()
    cells = [*[1, 2, 3] * 400, *ODD.values()]
    content = open_pieces(pd.DataFrame({"x": column_of(cells)})).whole()
    (finding,) = find_domains(
        [domain], lambda name: content, 5.0, 1e-6, lambda name: "a", noise=FixedNoise(1)
    )
    assert finding.attribute is not None
    if asked == {"bins": "private"}:
        assert finding.attribute.edges[0] <= 1
    else:
        assert {"1", "2", "3", "other"} <= set(finding.attribute.values)


# Tables whose columns have types: a cell at the edge of its type.


def in_files(folder, table):
    for suffix in ("parquet", "arrow"):
        write_table(table, folder / f"t.{suffix}")
        yield folder / f"t.{suffix}"


def views_of(cells):
    """Texts of any bytes, as views: Arrow's own cast checks them. Early versions cannot make such."""
    array = pa.array(cells).cast(pa.binary_view())
    try:
        return pa.Array.from_buffers(pa.string_view(), len(array), array.buffers())
    except ValueError:
        return None


VIEWS = views_of([b"a", b"\xff", b"\xed\xa0\x80"])
FAR = [2**31 - 1, -(2**31)]
EDGES = {
    "days": (pa.array([18_264, *FAR], pa.int32()).cast(pa.date32()), FITTING["date"][0]),
    "seconds": (
        pa.array([1_578_000_000, 10**15, -(2**63)], pa.timestamp("s")),
        FITTING["moment"][0],
    ),
    "milliseconds": (
        pa.array([1_578_000_000_000, 2**63 - 1, -(2**63)], pa.timestamp("ms")),
        FITTING["moment"][0],
    ),
    "microseconds in a zone": (
        pa.array([1_578_000_000_000_000, 2**63 - 1, -(2**63)], pa.timestamp("us")),
        FITTING["zoned"][0],
    ),
    "nanoseconds with a zone": (
        pa.array([1_578_000_000_000_000_000, 2**63 - 1, -(2**63)], pa.timestamp("ns", "UTC")),
        FITTING["zoned"][0],
    ),
    "times": (pa.array([37_800_000_000, 2**62, -1], pa.time64("us")), FITTING["time"][0]),
    "numbers": (pa.array([0.25, math.inf, math.nan]), FITTING["number"][0]),
    "unsigned": (pa.array([3, 2**64 - 1, 2**63], pa.uint64()), FITTING["whole"][0]),
    "decimals": (
        pa.array([Decimal(2), Decimal(10**37), Decimal(-(10**37))], pa.decimal128(38, 0)),
        FITTING["whole"][0],
    ),
    "broken text": (
        pa.array([b"a", b"\xff", b"\xed\xa0\x80"]).view(pa.string()),
        FITTING["text"][0],
    ),
    **({} if VIEWS is None else {"broken views": (VIEWS, FITTING["text"][0])}),
}


@pytest.mark.parametrize("kind", EDGES)
def test_a_cell_at_the_edge_of_its_type_costs_its_record(tmp_path, kind):
    cells, attribute = EDGES[kind]
    table = pa.table({"id": [1, 2, 3], "x": cells})
    typed = encoded(table.slice(0, 1), attribute)
    assert typed.records == 1
    for source in (table, *(in_files(tmp_path, table) if kind not in ("times", "seconds") else ())):
        with_them = encoded(source, attribute)
        same(with_them, typed)
        assert with_them.dropped.records == 2


def test_far_dates_are_clamped_and_not_wrapped():
    """10**15 seconds wrap to the year 124,790 and others to one inside the bounds, in Arrow's conversion to microseconds."""
    days = temporal("x", "timestamp", ["2020-01-01", "2020-01-02", "2020-02-01"], clamp=True)
    inside = 1_578_000_000
    wrapped = [inside + k * 2**58 // 15_625 for k in (1, 2, -3)]
    cells = pa.array([inside, *wrapped], pa.timestamp("s"))
    assert encoded(pa.table({"id": range(4), "x": cells}), days).codes.tolist() == [[1, 1, 1, 0]]


def test_dictionaries_of_any_kind_are_read(tmp_path):
    attribute = Attribute.categorical("x", ["a", "b", *(f"b{i}" for i in range(200))], missing=True)

    def of(indices, values):
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(values))

    # A null among the values, and more values than an index of eight bits has.
    some = [f"b{i}" for i in range(100)]
    more = [f"b{i}" for i in range(100, 200)]
    for chunks in (
        [of([0, 1, None], ["a", None]), of([0, 1], ["b", "a"])],
        [of(range(100), some), of(range(100), more)],
    ):
        column = pa.chunked_array(chunks)
        plain = column.cast(pa.string())
        ids = range(len(column))
        expected = encoded(pa.table({"id": ids, "x": plain}), attribute)
        assert expected.records == len(column)
        same(encoded(pa.table({"id": ids, "x": column}), attribute), expected)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("values", [[b"a", b"\xff", b"b"], [b"a", b"", b"b"]])
def test_a_dictionary_in_a_file_may_hold_bytes_that_are_no_text(tmp_path, kind, values):
    texts = pa.array(values).view(pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], kind), texts)
    numbers = pa.array([1, 2, 1, 2]).dictionary_encode()
    table = pa.table({"id": range(4), "x": column, "n": numbers})
    attributes = (FITTING["text"][0], Attribute.categorical("n", [1, 2]))
    for path in in_files(tmp_path, table):
        read = encode_table(path, "id", attributes, keys=KEYS)
        assert read.codes.tolist() == [[0, 1, 0], [0, 0, 1]]
        assert read.dropped.records == 1


@pytest.mark.parametrize(
    "kind, cells, fitting",
    [
        ("date", "'2020-01-03'::date, 'infinity', '-infinity'", "date"),
        ("timestamp", "'2020-01-03'::timestamp, 'infinity', '290000-01-01'", "moment"),
        ("hugeint", "3, 170141183460469231731687303715884105727, -1", "whole"),
        ("double", "3, 'nan', 'infinity'", "number"),
        ("varchar", "'a', chr(0), '😀'", "text"),
    ],
)
def test_a_cell_at_the_edge_of_a_type_of_duckdb_costs_its_record(kind, cells, fitting):
    rows = ", ".join(
        f"({i}, ({cell})::{kind})" for i, cell in enumerate(cells.split(", "), start=1)
    )
    table = encoded(duckdb.sql(f"select * from (values {rows}) t(id, x)"), FITTING[fitting][0])
    same(table, encoded(pa.table({"id": [1], "x": table_cell(fitting)}), FITTING[fitting][0]))
    assert table.dropped.records == 2


def table_cell(kind):
    """A cell that fits: the one that DuckDB's rows above begin with."""
    return {"whole": [3], "number": [3.0], "text": ["a"]}.get(kind) or [
        datetime.datetime(2020, 1, 3) if kind == "moment" else DAY
    ]


def test_unions_of_other_engines_are_read_by_type():
    union = duckdb.sql(
        "select * from (values (1, 1::union(a int, b varchar, c int[])), (2, 'b'), (3, [1, 2]), (4, 7)) t(id, x)"
    )
    attribute = Attribute.categorical("x", ["1", "b"])
    table = encoded(union, attribute)
    assert table.codes.tolist() == [[0, 1]]
    assert table.dropped.records == 2
    sparse = pa.UnionArray.from_sparse(
        pa.array([0, 1, 0, 1], pa.int8()), [pa.array(["b", "", "x", ""]), pa.array([0, 1, 0, 2])]
    )
    for start in (0, 1):
        cells = pa.table({"id": range(4), "x": sparse}).slice(start)
        assert encoded(cells, attribute).codes.tolist() == [[1, 0][start:]]
    nothing = pa.table({"id": range(4), "x": sparse}).slice(0, 0)
    assert encoded(nothing, attribute).records == 0


def test_every_type_of_cell_is_stored_as_it_is():
    for name, values in {
        "text": ["a", "1"],
        "whole": [1, np.int8(2), np.uint64(3), Decimal("4.0")],
        "large": [2**63, 10**75, Decimal("1e70")],
        "number": [1.5, np.float32(2), Decimal("0.5")],
        "flag": [True, np.True_],
        "date": [DAY],
        "time": [datetime.time(1, 2, 3, 4)],
        "moment": [MOMENT, pd.Timestamp(MOMENT)],
        "zoned": [pd.Timestamp("2020-01-01", tz="Asia/Tokyo")],
    }.items():
        array, unfit = from_objects(values)
        assert not unfit
        assert array.to_pylist() == values
        kind = array.type if name == "text" else array.type.field(array.type_codes[0].as_py()).type
        assert kind == TYPES[name]
    with decimal.localcontext(decimal.Context(traps=[decimal.InvalidOperation])):
        assert from_objects([Decimal("sNaN")])[0].to_pylist() == [None]


def test_a_cell_of_a_nested_type_that_python_has_no_form_for_is_shown():
    far = pa.array([[10**15]], pa.list_(pa.timestamp("s")))
    assert shown(far[0]) == "'list<item: timestamp[s]>'"


def test_a_complex_number_makes_no_other_number_unreadable():
    """pandas stores all numbers beside a complex one as complex ones."""
    column, unfit = from_objects(pd.Series([1, 2.5, 1j, None]))
    assert column.to_pylist() == [1, 2.5, None, None]
    assert unfit == {2: "complex"}
