"""Columns as other tools write them: from the file or frame, over a draft and codes, to rows with the values that were meant."""

import datetime as dt
import json
import uuid
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf import draft_schema
from vertimrf.columns.calendar import to_number
from vertimrf.columns.cells import EVERY_DIGIT
from vertimrf.columns.column import Attribute
from vertimrf.columns.notations import epoch
from vertimrf.columns.notations.durations import DAYS, HOURS, ISO, MINUTES, PATTERNS, Durations
from vertimrf.columns.notations.epoch import PER_SECOND, Epoch
from vertimrf.columns.notations.moments import ZONED, Moments
from vertimrf.columns.notations.register import named, of_moments
from vertimrf.columns.read import read_attribute
from vertimrf.columns.text import MISSING
from vertimrf.errors import SchemaError
from vertimrf.server.rows import decode_pieces
from vertimrf.tables.arrow import Pieces
from vertimrf.tables.before_1900 import BelowZero
from vertimrf.tables.codebook import Variable, remarks, told_apart
from vertimrf.tables.databases import _numeric
from vertimrf.tables.ids import IdKeys, digested
from vertimrf.tables.infer import read_arrow
from vertimrf.tables.objects import _only_numbers, from_objects, of_one_type
from vertimrf.tables.read_options import ReadOptions
from vertimrf.tables.sources import open_pieces

N = 700
RNG = np.random.default_rng(7)
HOURS_200 = RNG.integers(0, 200, N)
STAYS = HOURS_200 * 3600
SECONDS = 1_483_228_800 + RNG.integers(0, 10**8, N)
UTC_MOMENTS = [dt.datetime.fromtimestamp(int(s), dt.UTC) for s in SECONDS]
BORN = [dt.date(1850, 1, 1) + dt.timedelta(days=int(day)) for day in RNG.integers(0, 40_000, N)]


def drafted(source, **read):
    """The only attribute of a table's draft, its column, and what the draft says."""
    options = ReadOptions(**read)
    draft = draft_schema(source, read=options)
    (attribute,) = draft.schema.attributes
    return attribute, read_arrow(source, options)[attribute.name], [*map(str, draft.flags)]


def rows_of(attribute, column):
    """The numbers that are read, and synthetic rows of their codes, which are read as the same codes."""
    codes = attribute.encoder("x")(column)
    assert (codes >= 0).all()
    numbers, missing = attribute.numbers(column, "x")
    assert not missing.any()
    (rows,) = decode_pieces(codes[None], [attribute], np.random.default_rng(1))
    made = rows[attribute.name]
    assert (attribute.encoder("x")(made) == codes).all()
    back, _ = attribute.numbers(made, "x")
    assert numbers.min() <= back.min() <= back.max() <= numbers.max()
    return numbers, made


def spss(folder, form, cells):
    path = folder / "t.sav"
    package = pytest.importorskip("pyreadstat")
    package.write_sav(pd.DataFrame({"x": cells}), str(path), variable_format={"x": form})
    return str(path)


@pytest.mark.parametrize("form", ["TIME8", "DTIME12", "TIME11.2", "MTIME8"])
def test_spss_durations_are_of_any_length(tmp_path, form):
    attribute, column, _ = drafted(spss(tmp_path, form, STAYS + 0.0))
    assert column.type == pa.duration("us")
    numbers, made = rows_of(attribute, column)
    assert (numbers == STAYS).all()
    assert made.type == pa.duration("us")
    assert max(made.to_pylist()) > dt.timedelta(days=5)


def test_spss_durations_beyond_all_and_missing_ones_cost_their_cell_alone(tmp_path):
    cells = np.where(np.arange(N) % 7 == 0, np.nan, -3600.0 - STAYS)
    _, column, _ = drafted(spss(tmp_path, "DTIME12", cells))
    read = [None if x is None else x.total_seconds() for x in column.to_pylist()]
    assert read == [None if np.isnan(x) else x for x in cells]
    path = spss(tmp_path, "TIME8", [1e300, 3600.0, np.nan])
    assert open_pieces(path).whole()["x"].to_pylist() == [dt.timedelta(hours=1), None]


def test_spss_times_of_day_are_read_under_a_schema_that_says_so(tmp_path):
    path = spss(tmp_path, "TIME8", [27_960.0, 0.0, 86_400.0, -1.0, np.nan])
    clock = read_attribute({"name": "x", "bounds": [dt.time(0), dt.time(23, 59)], "bins": "hour"})
    codes = clock.encoder("x")(read_arrow(path)["x"])
    assert codes.tolist() == [7, 0, -2, -2, -1]


def test_sas_durations_are_of_any_length(tmp_path):
    path = str(tmp_path / "t.xpt")
    package = pytest.importorskip("pyreadstat")
    package.write_xport(pd.DataFrame({"x": STAYS + 0.0}), path, variable_format={"x": "TIME8."})
    attribute, column, _ = drafted(path)
    assert (rows_of(attribute, column)[0] == STAYS).all()


def workbook(folder, cells, form):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    path, book = folder / "t.xlsx", openpyxl.Workbook()
    book.active.append(["other", "x"])
    for i, cell in enumerate(cells, 2):
        book.active.append([1, cell])
        book.active.cell(i, 2).number_format = form
    book.save(path)
    return str(path)


def test_excel_durations_are_of_any_length(tmp_path):
    cells = [dt.timedelta(hours=int(hour)) for hour in HOURS_200]
    path = workbook(tmp_path, cells, "[h]:mm:ss")
    draft = draft_schema(path, drop=["other"])
    (attribute,) = draft.schema.attributes
    numbers, made = rows_of(attribute, read_arrow(path)["x"])
    assert (numbers == STAYS).all()
    assert max(made.to_pylist()) > dt.timedelta(days=5)


def test_excel_dates_before_1900_are_dates(tmp_path):
    path = workbook(tmp_path, BORN, "yyyy-mm-dd")
    draft = draft_schema(path, drop=["other"])
    (attribute,) = draft.schema.attributes
    column = read_arrow(path)["x"]
    assert column.to_pylist() == BORN
    _, made = rows_of(attribute, column)
    assert made.type == pa.date32()


def test_day_zero_is_a_date_where_its_format_is_that_of_a_date(tmp_path):
    """openpyxl writes 1899-12-30 as 0, as LibreOffice does."""
    early = [dt.date(1899, 12, 30), dt.date(1850, 1, 1), dt.date(1950, 1, 1)]
    path = workbook(tmp_path, [early[i % 3] for i in range(30)], "yyyy-mm-dd")
    assert read_arrow(path)["x"].to_pylist() == [early[i % 3] for i in range(30)]
    path = workbook(tmp_path, [dt.time(), dt.time(8)] * 15, '[$-409]hh:mm:ss" o day"')
    assert read_arrow(path)["x"].to_pylist() == [dt.time(), dt.time(8)] * 15


@pytest.mark.parametrize("days", [-700_000, -1e9])
def test_a_day_that_python_does_not_have_costs_its_own_record(tmp_path, days):
    column = read_arrow(workbook(tmp_path, [*BORN, days], "yyyy-mm-dd"))["x"]
    assert column.to_pylist()[:-1] == [born.isoformat() for born in BORN]
    assert float(column[-1].as_py()) == days


def test_midnight_in_a_workbook_of_another_kind_stays_midnight(tmp_path):
    """Its sheets are named in another way, which no cell decides."""
    workbook(tmp_path, BORN, "yyyy-mm-dd")
    with (
        zipfile.ZipFile(tmp_path / "t.xlsx") as old,
        zipfile.ZipFile(tmp_path / "u.xlsx", "w") as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"/spreadsheetml/2006/main", b"/spreadsheetml/other"))
    assert BelowZero(tmp_path / "u.xlsx", "Sheet").cell(1, 1) == dt.time()


def test_midnight_in_a_workbook_stays_midnight(tmp_path):
    path = workbook(tmp_path, [dt.time(i % 3) for i in range(30)], "hh:mm:ss")
    assert read_arrow(path)["x"].to_pylist() == [dt.time(i % 3) for i in range(30)]
    assert BelowZero(tmp_path / "t.xlsx", "Sheet").cell(1, 1) == dt.time()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_of_frames_and_parquet_keep_their_unit(tmp_path, unit):
    cells = pa.array(STAYS).cast(pa.duration("s")).cast(pa.duration(unit))
    pq.write_table(pa.table({"x": cells}), tmp_path / "t.parquet")
    attribute, column, _ = drafted(str(tmp_path / "t.parquet"))
    numbers, made = rows_of(attribute, column)
    assert (numbers == STAYS).all()
    assert made.type == pa.duration(unit)


# Texts of durations, by how a minute more than so many hours is written.
WRITTEN = {
    HOURS: lambda s: f"{s // 3600}:{s // 60 % 60:02}:{s % 60:02}",
    MINUTES: lambda s: f"{s // 3600}:{s // 60 % 60:02}",
    DAYS: lambda s: str(pd.Timedelta(seconds=s)),
    ISO: lambda s: f"P{s // 86_400}DT{s // 3600 % 24}H{s // 60 % 60}M",
}


@pytest.mark.parametrize("form", WRITTEN)
def test_texts_of_durations_are_durations(tmp_path, form):
    cells = [WRITTEN[form](int(s) + 60) for s in STAYS]
    pd.DataFrame({"x": cells}).to_csv(tmp_path / "t.csv", index=False)
    attribute, column, flags = drafted(str(tmp_path / "t.csv"))
    assert attribute.format == form
    assert any("has durations such as" in flag for flag in flags)
    assert read_attribute(attribute.to_json()) == attribute
    numbers, made = rows_of(attribute, column)
    assert (numbers == STAYS + 60).all()
    again = Durations(form)
    assert all(again.text(again.number(text)) == text for text in made.to_pylist())


def test_a_day_that_ends_at_24_00_has_no_durations(tmp_path):
    cells = ["24:00" if i % 50 == 0 else f"{i % 24:02}:{i % 60:02}" for i in range(N)]
    assert Durations.recognise(dict.fromkeys(cells, 1), None) is None


def clock(seconds):
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def after_days(seconds, between, form="{}"):
    return between.format(seconds // 86_400) + form.format(clock(seconds % 86_400))


def of_postgres(seconds):
    days, rest = divmod(seconds, 86_400)
    text = f"{days} day{'s' * (days != 1)} " * (days > 0) + clock(rest) * (rest > 0 or days == 0)
    return text.strip()


# Texts of durations, as the tools that the comment names write them.
TEXTS = {
    # SPSS and Excel.
    "[hh]:mm:ss": clock,
    "[hh]:mm": lambda s: clock(s)[:-3],
    # Results of races.
    "[m]:ss.00": lambda s: f"{s // 60}:{s % 60:02}.{s % 97:02}",
    "[mm]:ss.0": lambda s: f"{s // 60:02}:{s % 60:02}.{s % 9}",
    # PostgreSQL and DuckDB, Python, SAS, .NET, and Java.
    "[d] day(s) hh:mm:ss": of_postgres,
    "[d] day(s), h:mm:ss": lambda s: str(dt.timedelta(seconds=s)),
    "[d]:hh:mm:ss": lambda s: after_days(s, "{}:"),
    "[d] hh:mm:ss": lambda s: after_days(s, "{} "),
    "[d].hh:mm:ss": lambda s: after_days(s, "{}.") if s >= 86_400 else clock(s),
    "PTnHnMnS": lambda s: "PT" + f"{s // 3600}H" * (s > 3599) + f"{s % 3600 // 60 or 1}M",
}  # fmt: skip


@pytest.mark.parametrize("kind", ["frame", "csv"])
@pytest.mark.parametrize("form", TEXTS)
def test_texts_of_durations_come_back_as_they_came(tmp_path, form, kind):
    stays = STAYS + RNG.integers(0, 3600, N) * (not form.endswith(("mm", "S")))
    stays[0] = 360
    texts = [TEXTS[form](int(stay)) for stay in stays]
    frame = pd.DataFrame({"x": texts})
    frame.to_csv(tmp_path / "t.csv", index=False)
    if len({*texts}) <= 256 and kind == "frame":
        # So few texts of a typed table are categories.
        return
    attribute, column, _ = drafted(frame if kind == "frame" else str(tmp_path / "t.csv"))
    assert attribute.format == form
    assert read_attribute(attribute.to_json()) == attribute
    numbers, made = rows_of(attribute, column)
    assert np.floor(numbers).tolist() == stays.tolist() or form == "PTnHnMnS"
    notation = attribute.notation
    assert [notation.text(number) for number in numbers.tolist()] == texts
    assert all(notation.text(notation.number(text)) == text for text in made.to_pylist())


def test_minutes_and_seconds_may_be_said(tmp_path):
    """26:15 may be hours and minutes, as which a draft reads it, or minutes and seconds."""
    frame = pd.DataFrame({"x": [f"{s // 60}:{s % 60:02}" for s in RNG.integers(60, 9000, 2 * N)]})
    attribute, _, flags = drafted(frame)
    assert attribute.format == MINUTES
    assert any("written as [h]:mm; correct the format" in flag for flag in flags)
    races = read_attribute({"name": "x", "bounds": [0, 9000], "bins": 9, "integral": True, "format": "[m]:ss"})  # fmt: skip
    numbers, _ = races.numbers(read_arrow(frame)["x"], "x")
    assert [races.notation.text(number) for number in numbers.tolist()] == frame["x"].tolist()


def test_long_durations_are_no_telephone_numbers(tmp_path):
    cells = [f"{h}:{m:02}:{s:02}" for h, m, s in zip(500 + np.arange(N), STAYS % 60, STAYS % 59, strict=True)]  # fmt: skip
    pd.DataFrame({"x": cells}).to_csv(tmp_path / "t.csv", index=False)
    assert drafted(str(tmp_path / "t.csv"))[0].format == HOURS


@given(
    st.integers(-(10**12), 10**12),
    st.sampled_from(PATTERNS),
    st.booleans(),
    st.integers(0, 3),
)
def test_durations_of_any_pattern_are_read_as_they_are_written(
    thousandths, pattern, padded, places
):
    if padded:
        pattern = pattern.replace("[h]", "[hh]").replace("[m]", "[mm]")
    exact = places == 0
    if pattern.endswith("ss") and places:
        pattern += "." + "0" * places
    notation = named(pattern)
    assert notation.format == pattern
    text = notation.text(thousandths / 1000)
    assert notation.text(notation.number(text)) == text
    if (exact or places == 3) and pattern[-2:] != "mm":
        assert notation.number(text) == thousandths / 1000


@given(st.integers(-(10**9), 10**9), st.sampled_from([*WRITTEN]))
def test_durations_are_read_as_they_are_written(seconds, form):
    seconds -= seconds % 60 if form == MINUTES else 0
    notation = named(form)
    text = notation.text(seconds)
    assert notation.number(text) == seconds
    assert notation.text(notation.number(text)) == text
    assert notation.parsed(pa.chunked_array([[text, text]])).tolist() == [seconds] * 2


@given(st.integers(-(10**12), 10**12), st.sampled_from([HOURS, DAYS, ISO]))
def test_parts_of_seconds_of_durations_are_kept(thousandths, form):
    notation = Durations(form)
    text = notation.text(thousandths / 1000)
    assert notation.number(text) == thousandths / 1000
    assert notation.text(notation.number(text)) == text


STAMPS = {
    "z": "%Y-%m-%dT%H:%M:%SZ",
    "offset": "%Y-%m-%dT%H:%M:%S+00:00",
    "space": "%Y-%m-%d %H:%M:%S+00:00",
    "utc": "%Y-%m-%d %H:%M:%S UTC",
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "jsonl", "csv"])
@pytest.mark.parametrize("form", STAMPS)
def test_texts_of_times_with_a_zone_are_times(tmp_path, kind, form):
    frame = pd.DataFrame({"x": [at.strftime(STAMPS[form]) for at in UTC_MOMENTS]})
    source = str(tmp_path / f"t.{kind}")
    if kind == "csv":
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        frame.to_parquet(source)
    elif kind == "jsonl":
        frame.to_json(source, orient="records", lines=True)
    else:
        source = frame if kind == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    attribute, column, _ = drafted(source)
    assert attribute.timezone == "UTC"
    numbers, made = rows_of(attribute, column)
    assert (numbers == SECONDS).all()
    notation = attribute.notation
    assert pa.types.is_string(made.type)
    assert all(notation.text(notation.number(text)) == text for text in made.to_pylist())
    assert {dt.datetime.strptime(text, STAMPS[form]) for text in made.to_pylist()}


@given(
    st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)),
    st.sampled_from([*ZONED, "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S%:z", None]),
    st.sampled_from(["UTC", "+02:00", "-09:30"]),
)
def test_moments_of_a_zone_are_read_as_they_are_written(moment, pattern, zone):
    zone = "UTC" if pattern and ("UTC" in pattern or pattern.endswith("Z")) else zone
    second = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
    second -= second % 60 if pattern and "%S" not in pattern else 0
    notation = Moments("timestamp", zone, pattern)
    text = notation.text(second)
    assert notation.number(text) == second
    assert notation.text(notation.number(text)) == text


MICRO = RNG.integers(0, 10**6, N)
# Parts of a second as texts, their format, and the microseconds that they mean.
FRACTIONS = {
    "log": ("{0:%Y-%m-%d %H:%M:%S},{2:03}", "%Y-%m-%d %H:%M:%S,%3f", 1000),
    "z": ("{0:%Y-%m-%dT%H:%M:%S}.{2:03}Z", "%Y-%m-%dT%H:%M:%S.%3fZ", 1000),
    "micro": ("{0:%Y-%m-%d %H:%M:%S}.{1:06}+02:00", "%Y-%m-%d %H:%M:%S.%6f%:z", 1),
    "nano": ("{0:%Y-%m-%d %H:%M:%S}.{1:06}000", "%Y-%m-%d %H:%M:%S.%9f", 1),
    "tenths": ("{0:%d.%m.%Y %H:%M:%S}.{3}", "%d.%m.%Y %H:%M:%S.%1f", 100_000),
    "noon": ("{0:%m/%d/%Y %I:%M:%S}.{2:03} {0:%p}", "%m/%d/%Y %I:%M:%S.%3f %p", 1000),
    "clock": ("{0:%H:%M:%S}.{2:03}", "%H:%M:%S.%3f", 1000),
    "shortest": ("{0:%Y-%m-%d %H:%M:%S}.{4}", "%Y-%m-%d %H:%M:%S.%-f", 1000),
    "optional": ("{0:%Y-%m-%dT%H:%M:%S}{5}", "%Y-%m-%dT%H:%M:%S%.f", 100_000),
    "plain": ("{0:%Y-%m-%d %H:%M:%S}{5}", None, 100_000),
}


def fractions(form):
    text, _, each = FRACTIONS[form]
    micro = MICRO - MICRO % each
    return [
        text.format(
            at,
            part,
            part // 1000,
            part // 100_000,
            f"{part:06}".rstrip("0") or "0",
            f".{part // 100_000}" * (part > 0),
        )
        for at, part in zip(UTC_MOMENTS, micro.tolist(), strict=True)
    ]


@pytest.mark.parametrize("form", FRACTIONS)
def test_parts_of_a_second_are_kept(tmp_path, form):
    texts, (_, format, each) = fractions(form), FRACTIONS[form]
    frame = pd.DataFrame({"x": texts})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source in (str(tmp_path / "t.csv"), frame):
        attribute, column, flags = drafted(source)
        assert not any("second" in flag for flag in flags)
        assert read_attribute(attribute.to_json()) == attribute
        assert attribute.format == format
        assert attribute.resolution == each / 1e6
        numbers, made = rows_of(attribute, column)
        assert (np.rint(numbers % 1 * 1e6) == MICRO - MICRO % each).all()
        notation = attribute.notation
        assert [notation.text(notation.number(text)) for text in texts] == texts
        back, _ = attribute.numbers(made, "x")
        assert len({*np.rint(back % 1 * 1e6).tolist()}) > 5
        if attribute.is_text:
            written = made.to_pylist()
            assert all(notation.text(notation.number(text)) == text for text in written)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_parts_of_a_second_of_typed_columns_are_kept(unit):
    times = pa.array(SECONDS * 10**6 + MICRO - MICRO % 1000).cast(pa.timestamp("us"))
    clocks = pc.subtract(times, pc.floor_temporal(times, unit="day")).cast(pa.int64())
    table = pa.table(
        {
            "at": times.cast(pa.timestamp(unit)),
            "clock": clocks.cast(pa.time64("us")).cast(pa.time32("ms") if unit == "ms" else pa.time64(unit)),
        }
    )  # fmt: skip
    for attribute in draft_schema(table).schema.attributes:
        assert attribute.resolution == 0.001
        numbers, made = rows_of(attribute, table[attribute.name])
        assert made.type == table[attribute.name].type
        assert (np.rint(numbers % 1 * 1000) == MICRO // 1000).all()
        assert pa.types.is_integer(made.type) is False
        plain = read_attribute(attribute.to_json() | {"type": None})
        assert plain.typed(numbers).type in (pa.timestamp("ms"), pa.time32("ms"))
        assert (plain.numbers(pa.chunked_array([plain.typed(numbers)]), "x")[0] == numbers).all()


def test_milliseconds_since_1970_are_kept(tmp_path):
    frame = pd.DataFrame({"x": SECONDS * 1000 + MICRO // 1000})
    attribute, column, _ = drafted(frame)
    assert (attribute.format, attribute.resolution) == ("%Q", 0.001)
    numbers, made = rows_of(attribute, column)
    assert (np.rint(numbers * 1000) == frame["x"]).all()
    assert len({cell % 1000 for cell in made.to_pylist()}) > 100


@given(
    st.datetimes(dt.datetime(1678, 1, 1), dt.datetime(2255, 1, 1)),
    st.sampled_from([*(f for _, f, _ in FRACTIONS.values()), "%H:%M:%S.%f"]),
)
def test_parts_of_seconds_of_any_pattern_are_read_as_they_are_written(moment, pattern):
    # Double precision has microseconds until 2106, and ten of them after that.
    kind = "time" if pattern and pattern.startswith("%H") else "timestamp"
    zone = (
        "+02:00" if pattern and "%:z" in pattern else "UTC" if pattern and "Z" in pattern else None
    )
    notation = Moments(kind, zone, pattern)
    number = to_number(kind, moment.time() if kind == "time" else moment, zone)
    text = notation.text(number)
    read = notation.number(text)
    assert notation.text(read) == text
    if (pattern is None or "%-f" in pattern or "6f" in pattern) and abs(number) < 2**32:
        assert read == number


def test_a_stay_between_times_with_milliseconds_has_them(tmp_path):
    stays = RNG.integers(1, 10**8, N)
    first = pa.array(SECONDS * 1000 + MICRO // 1000).cast(pa.timestamp("ms"))
    last = pc.add(first, pa.array(stays).cast(pa.duration("ms")))
    table = pa.table({"first": first, "last": last, "stay": stays / 1000})
    draft = draft_schema(table)
    (equation,) = draft.with_rules().equations
    assert str(equation) in ("last = first + stay", "stay = last - first")
    computed = equation.attribute(draft.schema.attributes)
    assert computed.digits == 3
    far = pa.table({"first": first, "last": pc.add(first, pa.scalar(5001, pa.duration("ms")))})
    flags = [*map(str, draft_schema(far).flags)]
    assert any("bounds = [0, 5.001], resolution = 0.001" in flag for flag in flags)


@pytest.mark.parametrize(
    "calendar, resolution", [("date", 0.5), ("time", 1e-7), ("timestamp", 1 / 3), ("time", 0)]
)
def test_a_resolution_that_times_cannot_have_is_refused(calendar, resolution):
    bounds = {"date": ["2020-01-01", "2021-01-01"], "time": ["00:00:00", "23:00:00"]}
    ends = bounds.get(calendar, bounds["date"])
    with pytest.raises(SchemaError, match="resolution is"):
        read_attribute(
            {"name": "x", "bounds": ends, "bins": 4, "calendar": calendar, "resolution": resolution}
        )


def test_microseconds_of_far_years_are_cut_to_milliseconds():
    far = [dt.datetime(2990, 1, 1) + dt.timedelta(days=i, microseconds=123_456) for i in range(N)]
    attribute, column, _ = drafted(pa.table({"x": pa.array(far, pa.timestamp("us"))}))
    assert attribute.resolution == 86_400 or attribute.digits <= 3
    rows_of(attribute, column)


@pytest.mark.parametrize("each", [1, 1000])
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_numbers_of_seconds_since_1970_are_times(tmp_path, each, kind):
    frame = pd.DataFrame({"x": SECONDS * each})
    frame.to_csv(tmp_path / "t.csv", index=False)
    attribute, column, flags = drafted(frame if kind == "frame" else str(tmp_path / "t.csv"))
    assert (attribute.calendar, attribute.timezone) == ("timestamp", "UTC")
    assert any("has timestamps as numbers" in flag for flag in flags)
    assert read_attribute(attribute.to_json()) == attribute
    numbers, made = rows_of(attribute, column)
    assert (numbers == SECONDS).all()
    assert made.type == pa.int64()
    assert min(made.to_pylist()) >= SECONDS.min() * each


@pytest.mark.parametrize(
    "numbers, format",
    [
        (SECONDS, "%s"),
        (SECONDS * 1000, "%Q"),
        (789_652_009 + RNG.integers(0, 638_131_993, N), "%s"),
        # Telephone numbers, provider numbers (NPI), numbers that count up, and social security numbers.
        (2_012_000_000 + RNG.integers(0, 10**9, N), None),
        (1_003_000_000 + RNG.integers(0, 989_000_000, N), None),
        (1_600_000_000 + np.arange(N), None),
        (RNG.integers(10**6, 899_000_000, N), None),
    ],
)
def test_numbers_of_people_are_no_times(numbers, format):
    assert epoch.seen(np.unique(numbers)) == format


@given(st.integers(-(10**11), 10**11), st.sampled_from([*PER_SECOND]))
def test_seconds_since_1970_are_read_as_they_are_written(second, format):
    notation = of_moments("timestamp", "UTC", format)
    assert isinstance(notation, Epoch)
    text = notation.text(second)
    assert notation.number(text) == second
    assert text == str(second * PER_SECOND[format])


def test_small_counts_are_no_times_of_day():
    counts = np.where(RNG.random(20_002) < 0.6, 0, RNG.geometric(0.1, 20_002) - 1)
    attribute, column, flags = drafted(pd.DataFrame({"x": counts}))
    assert attribute.instants is None
    assert not any("times as numbers" in flag for flag in flags)
    assert (rows_of(attribute, column)[0] == counts).all()


def test_int96_dates_far_away_do_not_wrap(tmp_path):
    far = [dt.datetime(9999, 12, 31), dt.datetime(1066, 10, 14)]
    days = [far[i] if i < 2 else dt.datetime(2000, 1, 1) + dt.timedelta(days=i) for i in range(N)]
    table = pa.table({"x": pa.array(days, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    attribute, column, _ = drafted(str(tmp_path / "t.parquet"))
    assert column.to_pylist() == days
    rows_of(attribute, column)
    clamped = read_attribute(
        {"name": "x", "bounds": [days[2], days[-1]], "bins": 4, "clamp": True, "calendar": "timestamp"}
    )  # fmt: skip
    assert clamped.encoder("x")(column)[:2].tolist() == [3, 0]


def test_two_codes_with_one_label_are_two_values(tmp_path):
    package = pytest.importorskip("pyreadstat")
    codes = RNG.integers(1, 4, N)
    package.write_sav(
        pd.DataFrame({"x": codes + 0.0}),
        str(tmp_path / "t.sav"),
        variable_value_labels={"x": {1.0: "yes", 2.0: "no", 3.0: "yes"}},
        variable_measure={"x": "nominal"},
    )
    attribute, column, _ = drafted(str(tmp_path / "t.sav"))
    names = {1: "yes (1)", 2: "no", 3: "yes (3)"}
    assert column.to_pylist() == [names[code] for code in codes]
    (rows,) = decode_pieces(
        attribute.encoder("x")(column)[None], [attribute], np.random.default_rng(1)
    )
    assert rows["x"].to_pylist() == column.to_pylist()
    assert told_apart({"a": "A", "b": "B"}) == {"a": "A", "b": "B"}


@pytest.mark.parametrize("kind", ["relation", "query"])
def test_times_of_duckdb_with_an_offset_are_those_of_utc(tmp_path, kind):
    duckdb = pytest.importorskip("duckdb")
    place = str(tmp_path / "t.duckdb")
    made = f"""SELECT (['12:00:00+00', '12:00:00+01', '00:30:00+02'])[1 + (i % 3)::INT]::TIMETZ AS "x""y" FROM range({N}) r(i)"""
    with duckdb.connect(place) as connection:
        connection.execute(f"CREATE TABLE t AS {made}")
    if kind == "query":
        attribute, column, _ = drafted(f"duckdb:{place}", query="SELECT * FROM t")
    else:
        relation = duckdb.sql(made)
        attribute, column = drafted(relation)[:2]
    numbers, _ = rows_of(attribute, column)
    assert numbers[:3].tolist() == [12 * 3600, 11 * 3600, 22.5 * 3600]


def test_uuid_ids_have_the_digests_of_their_texts(tmp_path):
    ids = [str(uuid.UUID(int=(i + 1) * 7919 * 2**70 + i)) for i in range(50)]
    column = pa.array([uuid.UUID(one).bytes for one in ids], pa.uuid())
    pq.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
    key = IdKeys.drawn().records
    texts = digested(key, pa.chunked_array([ids]), "x")[0]
    for one in (
        pa.chunked_array([column]),
        read_arrow(str(tmp_path / "t.parquet"))["x"],
        read_arrow(pd.DataFrame({"x": [*map(uuid.UUID, ids)]}))["x"],
    ):
        assert (digested(key, one, "x")[0] == texts).all()


@pytest.mark.parametrize("type", ["Int128", "UInt128"])
def test_wide_numbers_of_polars_are_read(type):
    pl = pytest.importorskip("polars")
    ids = [12_345_678_901_234_567_890 + i for i in range(50)]
    frame = pl.DataFrame({"x": pl.Series(ids, dtype=getattr(pl, type))})
    assert [*map(int, read_arrow(frame)["x"].to_pylist())] == ids
    key = IdKeys.drawn().records
    texts = digested(key, pa.chunked_array([[*map(str, ids)]]), "x")[0]
    assert (digested(key, read_arrow(frame)["x"], "x")[0] == texts).all()


def test_infinity_among_words_is_a_word(tmp_path):
    makers = ["Infinity", "Acura", "Ford"]
    pd.DataFrame({"x": [makers[i % 3] for i in range(N)]}).to_csv(tmp_path / "t.csv", index=False)
    attribute, column, flags = drafted(str(tmp_path / "t.csv"))
    assert flags == []
    codes = attribute.encoder("x")(column)
    (rows,) = decode_pieces(codes[None], [attribute], np.random.default_rng(1))
    assert rows["x"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("format", ["%Y%m%d%H%M%S", "%Y%m%d%H%M"])
@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_moments_that_are_written_as_numbers_are_moments(tmp_path, format, kind):
    frame = pd.DataFrame({"x": [int(at.strftime(format)) for at in UTC_MOMENTS]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    attribute, column, flags = drafted(frame if kind == "frame" else str(tmp_path / "t.csv"))
    assert (attribute.calendar, attribute.format) == ("timestamp", format)
    assert any("has timestamps as numbers" in flag for flag in flags)
    numbers, made = rows_of(attribute, column)
    assert (numbers == SECONDS - (SECONDS % 60 if format[-1] == "M" else 0)).all()
    assert made.type == pa.int64()
    assert all(dt.datetime.strptime(str(cell), format) for cell in made.to_pylist())


def test_numbers_of_14_digits_that_are_no_moments_are_ids():
    frame = pd.DataFrame({"x": 20_210_101_000_000 + RNG.integers(0, 10**10, N), "y": 1})
    (left,) = draft_schema(frame).left_out
    assert (left.read_as, left.shapes) == ("ids or telephone numbers", ("9" * 14,))
    # No minute has 61 seconds.
    minutes = [int(at.strftime("%Y%m%d%H%M")) for at in UTC_MOMENTS]
    frame["x"] = np.array(minutes) * 100 + RNG.integers(0, 100, N)
    (left,) = draft_schema(frame).left_out
    assert left.read_as == "ids or telephone numbers"


def test_durations_that_fastparquet_writes_as_times_of_day_are_durations(tmp_path):
    """Its header says so of the frame's columns; a column of times of day stays that."""
    stays = pa.array(STAYS * 10**6, pa.int64()).cast(pa.time64("us"))
    said = [
        {"name": name, "numpy_type": kind}
        for name, kind in (("x", "timedelta64[ns]"), ("y", "object"))
    ]
    metadata = {b"pandas": json.dumps({"columns": said}).encode()}
    table = pa.table({"x": stays, "y": pa.array([dt.time(i % 24) for i in range(N)])})
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "t.parquet")
    read = read_arrow(str(tmp_path / "t.parquet"))
    assert read.schema.types == [pa.duration("us"), pa.time64("us")]
    assert [stay.total_seconds() for stay in read["x"].to_pylist()] == STAYS.tolist()
    pq.write_table(table.replace_schema_metadata({b"pandas": b"[1"}), tmp_path / "t.parquet")
    assert read_arrow(str(tmp_path / "t.parquet")).schema.types[1] == pa.time64("us")


def test_times_with_digits_after_the_second_are_times_of_day(tmp_path):
    clocks = [f"{hour:02}:15:00.000000000" for hour in RNG.integers(0, 24, N)]
    (tmp_path / "t.csv").write_text("\n".join(["x", *clocks, ""]))
    attribute, column, _ = drafted(str(tmp_path / "t.csv"))
    assert attribute.instants == ("time", None)
    numbers, _ = attribute.numbers(column, "x")
    assert numbers.tolist() == [int(clock[:2]) * 3600 + 900 for clock in clocks]


def test_numbers_of_any_precision_keep_their_digits():
    """PostgreSQL's NUMERIC, which its driver gives as text."""
    large = [2**64 - 1, 0, 7, 2**63] * 100
    exact = ["1234567890123456.7801", "1234567890123456.7811"] * 200
    table = pa.table(
        {
            "large": pa.chunked_array([_numeric(pa.array(map(str, large)))]),
            "exact": pa.chunked_array([_numeric(pa.array(exact))]),
            "short": pa.chunked_array([_numeric(pa.array(["0.10", None, "19.99", "NaN"] * 100))]),
        }
    )
    pieces = Pieces(
        tuple(table.column_names),
        "t",
        lambda names, _: iter(table.select(list(names)).to_batches()),
    )
    draft = draft_schema(pieces)
    whole, *_ = draft.schema.attributes
    assert whole.values == (0, 7, 2**63, 2**64 - 1)
    assert whole.encoder("x")(table["large"]).tolist() == [3, 0, 1, 2] * 100
    assert any("more digits than double precision tells apart" in str(flag) for flag in draft.flags)
    short = next(a for a in draft.schema.attributes if a.name == "short")
    assert (short.values, short.missing) == ((0.1, 19.99), True)
    assert short.encoder("x")(table["short"]).tolist() == [0, -1, 1, -1] * 100
    read = of_one_type(table["exact"])
    assert set(map(str, read.to_pylist())) == set(exact)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(10**45), 10**45), st.integers(0, 45)), min_size=1, max_size=8)
)
def test_each_number_of_any_precision_is_read_on_its_own(parts):
    """Whatever stands beside it: else a record would decide how others are read. All digits count that the types hold."""
    texts = [format(Decimal(whole).scaleb(-places, EVERY_DIGIT), "f") for whole, places in parts]
    together = _numeric(pa.array(texts))
    alone = [_numeric(pa.array([text])) for text in texts]
    assert together.to_pylist() == [cell.to_pylist()[0] for cell in alone]
    for text, cell in zip(texts, alone, strict=True):
        before, _, after = text.lstrip("-").partition(".")
        if len(after) <= 38 and len(before) <= (37 if after else 76):
            (value,) = cell.to_pylist()
            assert Decimal(repr(value) if isinstance(value, float) else value) == Decimal(text)


def test_decimals_of_a_frame_keep_their_digits():
    """As objects of Python: those that double precision holds are numbers in it."""
    cells = [Decimal("1234567890123456.7801"), Decimal("0.10"), Decimal(7), None]
    column = pa.chunked_array([from_objects(cells, True)[0]])
    assert of_one_type(column).to_pylist() == cells
    attribute = Attribute.categorical("x", ["1234567890123456.7801", "0.1", "7"])
    assert attribute.encoder("x")(column).tolist() == [0, 1, 2, MISSING]


def test_numbers_of_any_precision_are_listed_as_texts():
    """As a draft advises: their texts have no zeros at the end."""
    texts = ["1234567890123456.7801", "12345678901234567890", "7", "0.1", "1" + "0" * 40]
    attribute = Attribute.categorical("x", texts)
    column = _numeric(pa.array([*texts, "12345678901234567890.000", "NaN", None]))
    codes = attribute.encoder("x")(pa.chunked_array([column]))
    assert codes.tolist() == [0, 1, 2, 3, 4, 1, MISSING, MISSING]


def test_numbers_too_long_for_any_type_are_numbers_in_double_precision():
    column = _numeric(pa.array(["9" * 50 + ".5", "0." + "0" * 60 + "1", "1.5", None]))
    assert of_one_type(pa.chunked_array([column])).to_pylist() == [1e50, 1e-61, 1.5, None]
    column = _numeric(pa.array(["12345678901234567.5", "-Infinity", "1.5"]))
    assert of_one_type(pa.chunked_array([column])).to_pylist() == [
        12345678901234567.5,
        -np.inf,
        1.5,
    ]


def test_numbers_that_double_precision_holds_are_no_objects():
    """A column of them is taken over as it is, also cut into slices."""
    column = pa.chunked_array(
        [
            _numeric(pa.array(["0.5", None, "2", "3.25"])).slice(1),
            _numeric(pa.array([], pa.string())),
        ]
    )
    assert _only_numbers(column).to_pylist() == of_one_type(column).to_pylist() == [None, 2.0, 3.25]
    mixed = pa.chunked_array([from_objects([1.5, "a"], True)[0]])
    assert _only_numbers(mixed) is None


@pytest.mark.parametrize(
    "labels, level, missing, coded",
    [
        ({1: "yes", 2: "no", 3: "yes"}, "scale", (), True),
        ({1: "good", 2: "bad", 8: "refused", 9: "unknown"}, "scale", ((8, 9),), True),
        ({1: "never", 7: "always"}, "scale", (), False),
        ({98: "98 or more"}, "scale", (), False),
        ({0.5: "half", 1.5: "more"}, "scale", (), False),
        ({1: "never", 7: "always"}, "nominal", (), True),
        ({1: "never", 7: "always"}, "unknown", (), True),
        ({9: "unknown"}, "nominal", ((9, 9),), False),
        ({"a": "refused"}, "scale", (), False),
    ],
)
def test_labels_without_gaps_make_codes_of_a_scale(labels, level, missing, coded):
    variable = Variable("x", labels=tuple(labels.items()), level=level, missing=missing)
    assert variable.coded == coded
    assert bool(variable.texts) == coded
    values = {code for code in labels if not any(low <= code <= high for low, high in missing)}
    assert variable.unread == (not coded and bool(values))
    assert bool(remarks([variable])) == variable.unread


EVERY_DAY = np.datetime64("2015-01-05") + RNG.integers(0, 2800, 2000)
WORKDAYS = np.datetime64("2015-01-05") + 7 * RNG.integers(0, 400, 2000) + RNG.integers(0, 5, 2000)
ANY_TIME, OFFICE = (RNG.integers(a * 3600, b * 3600, 2000) for a, b in ((0, 24), (9, 15)))


@pytest.mark.parametrize(
    "days, seconds, lost",
    [
        (EVERY_DAY, None, None),
        (WORKDAYS, None, "days of the week"),
        (EVERY_DAY, ANY_TIME, None),
        (EVERY_DAY, OFFICE, "hours of the day"),
        (WORKDAYS, OFFICE, "days of the week and hours of the day"),
    ],
)
def test_drafts_say_which_days_and_hours_bins_lose(days, seconds, lost):
    """Saturdays' matches at 15:30 are on any day and at 02:15 in rows."""
    moments = days if seconds is None else days.astype("datetime64[s]") + seconds
    _, _, flags = drafted(pd.DataFrame({"x": moments.astype("datetime64[s]")}))
    said = [flag for flag in flags if "far more records" in flag]
    assert [flag.split(" at some ")[1].split(" than ")[0] for flag in said] == [lost] * (
        lost is not None
    )
    # Bins of days and hours keep them, and few records tell nothing.
    assert not any(
        "far more records" in flag for flag in drafted(pd.DataFrame({"x": moments[:300]}))[2]
    )
    minutes = (ANY_TIME % 360 + 540) * 60
    hours = np.datetime64("2015-01-05T00", "s") + minutes
    assert not drafted(pd.DataFrame({"x": hours}))[2]
