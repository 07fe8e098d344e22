"""Columns that people have, and what must hold of the rows that are made of them: values that occur, on their grid, of their type.

All columns of one kind of source are one table, with one holder, a drafted schema and epsilon 1 (a few epsilon 8, for shares).
"""

import datetime as dt
import decimal
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vertimrf import PlanOptions, RunOptions, draft_schema, synthesize

N = 4000
RNG = np.random.default_rng(7)
DAY_0 = dt.date(2019, 1, 1)


def pick(values, *shares):
    """Values at random, of the last ones in equal parts."""
    rest = 1 - sum(shares)
    left = len(values) - len(shares)
    chances = [*shares, *[rest / left] * left]
    at = RNG.choice(len(values), N, p=np.array(chances) / sum(chances))
    return [values[i] for i in at.tolist()]


def with_heaps(values, *heaps):
    """Values, of which shares are replaced by single values."""
    drawn, begin = RNG.random(N), 0.0
    for value, share in heaps:
        values = np.where((drawn >= begin) & (drawn < begin + share), value, values)
        begin += share
    return values


def days(numbers):
    return [(DAY_0 + dt.timedelta(days=int(day))) for day in numbers]


def ymd(numbers, format="%Y%m%d"):
    return [int(day.strftime(format)) for day in days(numbers)]


def codes(count, low, high):
    listed = np.sort(RNG.choice(np.arange(low, high), count, replace=False))
    weights = RNG.permutation(1 / np.arange(5, count + 5))
    return listed[RNG.choice(count, N, p=weights / weights.sum())]


def instants(minutes):
    return [
        f"{dt.datetime(2022, 3, 1) + dt.timedelta(minutes=int(m)):%Y-%m-%d %H:%M:%S}"
        for m in minutes
    ]


GAMMA = RNG.gamma(2, 200, N)
# Columns of a CSV file. ``listed``: values are all true ones. ``step``: they are multiples of it beyond the offset.
# ``heaps``: values whose shares are true ones, within 0.03.
SINGLE = np.round(RNG.integers(0, 9000, N) / 10, 1).astype(np.float32).astype(float)
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "vat": (pick(["19 %", "0 %", "7 %"], 0.6), {"are": [0, 7, 19]}),
    "age": (np.minimum(RNG.integers(17, 91, N), 85), {"most": 85, "step": 1, "heaps": [85]}),
    "score": (
        with_heaps(RNG.integers(0, 71, N), (99, 0.286)),
        {"most": 99, "listed": True, "heaps": [99]},
    ),
    "capped": (
        days(np.minimum(RNG.integers(0, 800, N), 665)),
        {"most": dt.date(2020, 10, 27), "heaps": [dt.date(2020, 10, 27)]},
    ),
    "thousands": (pick(["1,000", "2,000", "3,000"]), {"are": [1000, 2000, 3000]}),
    "dollars": (pick(["$1,000", "$2,500", "$10,000"]), {"are": [1000, 2500, 10000]}),
    "comma": (pick(["1,5", "2,5", "3,5"]), {"are": [1.5, 2.5, 3.5]}),
    "ymd": (ymd(RNG.integers(0, 1500, N)), {"format": "%Y%m%d"}),
    "two days": (pick(days([0, 2]), 0.66), {"listed": True}),
    "quarters": (
        pick(
            [
                dt.date(2020, 3, 31),
                dt.date(2020, 6, 30),
                dt.date(2020, 9, 30),
                dt.date(2020, 12, 31),
                dt.date(2021, 3, 31),
                dt.date(2021, 6, 30),
            ]
        ),
        {"listed": True},
    ),
    "clock": (
        pick(["08:00", "13:30", "18:00"]),
        {"are": [dt.time(8), dt.time(13, 30), dt.time(18)]},
    ),
    "two times": (pick(["2022-03-01 10:00:00", "2022-03-02 11:30:00"], 0.75), {"listed": True}),
    "occupation": (codes(150, 1000, 9800), {"listed": True}),
    "naics": (codes(120, 111_000, 930_000), {"listed": True}),
    "county": (codes(100, 1001, 56_000), {"listed": True}),
    "zeros": (with_heaps(np.round(GAMMA), (0, 0.15)), {"step": 1, "heaps": [0]}),
    "cents": (np.round(with_heaps(GAMMA, (0, 0.15)), 2), {"step": 0.01, "heaps": [0]}),
    "floats": (with_heaps(GAMMA, (0, 0.15)), {"heaps": [0]}),
    "five thousand": (
        with_heaps(np.round(RNG.gamma(2, 1500, N), 2), (5000, 0.2)),
        {"heaps": [5000]},
    ),
    "bytes": (
        with_heaps(np.floor(1 + RNG.pareto(0.8, N) * 1000), (0, 0.5)),
        {"heaps": [0], "step": 1},
    ),
    "firsts": (
        [dt.date(1990 + m // 12, m % 12 + 1, 1) for m in RNG.integers(0, 360, N)],
        {"format": "%Y-%m-01"},
    ),
    "fridays": (days(3 + 7 * RNG.integers(0, 300, N)), {"weekday": 4}),
    "quarter hours": (instants(15 * RNG.integers(0, 5000, N)), {"minutes": 15}),
    "fives": (5 * RNG.integers(0, 400, N), {"step": 5}),
    "thousand": (1000 * np.round(RNG.lognormal(5, 1, N)), {"step": 1000}),
    "99": (np.round(RNG.lognormal(4, 1, N)) + 0.99, {"step": 1, "offset": 0.99}),
    "halves": (RNG.integers(0, 400, N) / 2, {"step": 0.5}),
    "fourths": (RNG.integers(0, 900, N) / 4, {"step": 0.25}),
    "yyyymm": (
        [int(100 * (1990 + m // 12) + m % 12 + 1) for m in RNG.integers(0, 360, N)],
        {"format": "%Y%m"},
    ),
    "hhmm": ([int(100 * (m // 60) + m % 60) for m in RNG.integers(0, 1440, N)], {"format": "%H%M"}),
    "tens": (10 * np.round(RNG.lognormal(8, 0.8, N)), {"step": 10}),
    "hundreds": (100 * np.round(RNG.lognormal(6, 0.8, N)), {"step": 100}),
    "offsets": (
        pick(["2022-03-01T10:00:00+01:00", "2022-03-01T10:00:00+02:00"]),
        {"flag": "offsets"},
    ),
    "country": (pick(["NA", "DE", "FR"], 0.25), {"flag": "'NA'", "listed": True}),
    "singles": (SINGLE, {"single step": 0.1}),
    "far": (
        np.concatenate([[1e308, -1e308], RNG.normal(size=N - 2)]),
        {"flag": "far beyond", "most": 10},
    ),
}


def steps_of(kind, scale):
    return pa.array([scale * i for i in RNG.integers(0, 3000, N).tolist()]).cast(kind)


WHOLE = pa.array(RNG.integers(0, 4, N))
# Columns of an Arrow table, as a Parquet file has them. ``left out``: the draft names the column and why.
TYPED: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "beyond doubles": (
        pa.array([2**53 + i for i in WHOLE.to_pylist()]),
        {"are": [2**53 + i for i in range(4)]},
    ),
    "far beyond": (
        pa.array([2**60 + i for i in WHOLE.to_pylist()]),
        {"are": [2**60 + i for i in range(4)]},
    ),
    "many beyond": (
        pa.array([2**60 + 7 * i for i in RNG.integers(0, 3000, N).tolist()]),
        {"whole step": (2**60, 7)},
    ),
    "seven durations": (
        pa.array([600 * i for i in RNG.integers(0, 7, N).tolist()]).cast(pa.duration("s")),
        {"listed": True},
    ),
    "durations": (steps_of(pa.duration("s"), 60), {"minutes of a duration": True}),
    "decimal": (
        pa.array(
            [decimal.Decimal(i) / 100 for i in RNG.integers(0, 90_000, N).tolist()],
            pa.decimal128(9, 2),
        ),
        {"step": 0.01},
    ),
    "small": (pa.array(RNG.integers(0, 256, N), pa.uint8()), {"step": 1}),
    "tenths": (
        pa.array(np.round(RNG.integers(0, 9000, N) / 10, 1).astype(np.float32)),
        {"single step": 0.1},
    ),
    "read tenths": (pa.array(SINGLE), {"single step": 0.1}),
    "half": (pa.array(np.float16(RNG.integers(0, 250, N) / 4)), {"step": 0.25}),
    "dictionary": (pa.array(pick(["a", "b", "c"])).dictionary_encode(), {"listed": True}),
    "digits": (pa.array([f"{i:05d}" for i in RNG.integers(10_001, 10_090, N)]), {"listed": True}),
    "binary": (pa.array([b"A", b"B"] * (N // 2)), {"left out": "binary"}),
    "nanoseconds": (pa.array(RNG.integers(0, 10**15, N), pa.timestamp("ns")), {}),
    "zone": (
        pa.array(60 * RNG.integers(0, 50_000, N), pa.timestamp("s", "+02:00")),
        {"minutes": 1},
    ),
    "region": (pa.array(pick(["NA", "DE", "FR", ""], 0.25)), {"listed": True, "heaps": ["NA"]}),
}
FRAME: dict[str, tuple[Any, dict[str, Any]]] = {
    "size": (
        pd.Categorical(
            pick(["small", "medium", "large"], 0.5),
            ["small", "medium", "large", "huge"],
            ordered=True,
        ),
        {"ordered": ["small", "medium", "large", "huge"]},
    ),
    "elapsed": (
        pd.to_timedelta(60 * RNG.integers(0, 3078, N), "s"),
        {"minutes of a duration": True},
    ),
    "cut": (pd.cut(RNG.normal(size=N), 4), {"interval": True}),
}


def pieces(items, size):
    items = list(items)
    return [items[i : i + size] for i in range(0, len(items), size)]


@dataclass(frozen=True)
class Made:
    true: Any
    rows: Any
    flags: str


def made(source, true, seed):
    draft = draft_schema(source, "id")
    options = RunOptions(seed=seed)
    planning = PlanOptions(even_if_useless=True, expected_records=N)
    rows = synthesize(source, "id", 1.0, schema=draft.schema, planning=planning, options=options)
    return Made(true, rows.table, "\n".join(map(str, draft.flags)))


@pytest.fixture(scope="module")
def from_csv(tmp_path_factory):
    """Of each column, what the rows have; a few columns a run."""
    out = {}
    for seed, names in enumerate(pieces(CASES, 6)):
        frame = pd.DataFrame({name: CASES[name][0] for name in names})
        frame.insert(0, "id", np.arange(N))
        path = tmp_path_factory.mktemp("csv") / "t.csv"
        frame.to_csv(path, index=False)
        whole = made(path, frame, seed)
        for name in names:
            out[name] = whole
    return out


@pytest.fixture(scope="module")
def from_arrow():
    out = {}
    for seed, names in enumerate(pieces(TYPED, 6)):
        table = pa.table({"id": np.arange(N), **{name: TYPED[name][0] for name in names}})
        out |= dict.fromkeys(names, made(table, table, seed))
    frame = pd.DataFrame(
        {"id": np.arange(N), **{name: values for name, (values, _) in FRAME.items()}}
    )
    return out | dict.fromkeys(FRAME, made(frame, frame, 9))


def texts(values):
    return {str(value) for value in values}


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_csv_file(from_csv, name):
    whole, (_, must) = from_csv[name], CASES[name]
    column = whole.rows[name].drop_null()
    found, true = column.to_pylist(), whole.true[name].tolist()
    assert len(found) > 0.4 * N
    check_values(found, true, must)
    if "flag" in must:
        assert any(must["flag"] in line and name in line for line in whole.flags.splitlines()), (
            whole.flags
        )


@pytest.mark.parametrize("name", TYPED)
def test_rows_of_an_arrow_table(from_arrow, name):
    whole, (true, must) = from_arrow[name], TYPED[name]
    if "left out" in must:
        assert name not in whole.rows.column_names
        assert f"{name!r} holds {must['left out']}" in whole.flags
        return
    column = whole.rows[name].drop_null()
    assert column.type == true.type
    assert len(column) > 0.4 * N
    check_values(column.to_pylist(), true.to_pylist(), must)
    if "whole step" in must:
        first, step = must["whole step"]
        assert {(value - first) % step for value in column.to_pylist()} == {0}
        assert min(true.to_pylist()) <= min(column.to_pylist())
        assert max(column.to_pylist()) <= max(true.to_pylist())
    if "minutes of a duration" in must:
        assert {value.total_seconds() % 60 for value in column.to_pylist()} == {0}


@pytest.mark.parametrize("name", FRAME)
def test_rows_of_a_data_frame(from_arrow, name):
    whole, must = from_arrow[name], FRAME[name][1]
    if "interval" in must:
        assert name in whole.rows.column_names or f"column {name!r}" in whole.flags
        return
    column = whole.rows[name]
    if "ordered" in must:
        assert column.type.ordered
        assert column.chunk(0).dictionary.to_pylist() == must["ordered"]
        assert set(column.to_pylist()) <= set(must["ordered"])
    else:
        assert {value.total_seconds() % 60 for value in column.to_pylist()} == {0}
        assert column.null_count == 0


def check_values(found, true, must):
    if "listed" in must:
        assert texts(found) <= texts(true)
    if "are" in must:
        assert sorted(set(found)) == must["are"]
    if "most" in must:
        assert max(found) <= must["most"]
    if "step" in must:
        steps = (np.array(found, float) - must.get("offset", 0)) / must["step"]
        assert np.abs(steps - np.round(steps)).max() < 1e-6
        assert min(found) >= min(true)
        assert max(found) <= max(true)
    if "single step" in must:
        nearest = np.round(np.array(found) / must["single step"]) * must["single step"]
        assert (np.float32(np.round(nearest, 6)) == np.array(found)).all()
    if "format" in must:
        width = len(dt.datetime(2020, 1, 1).strftime(must["format"]))
        for value in set(found):
            text = f"{value:0{width}d}" if isinstance(value, int) else str(value)
            assert dt.datetime.strptime(text, must["format"]).strftime(must["format"]) == text
    if "weekday" in must:
        assert {value.weekday() for value in found} == {must["weekday"]}
    if "minutes" in must:
        assert {value.minute % must["minutes"] for value in found} == {0}
    for value in must.get("heaps", ()):
        shares = [np.mean([one == value for one in values]) for values in (true, found)]
        # Six columns share epsilon 1 of 4,000 records.
        assert shares[1] == pytest.approx(shares[0], abs=0.05)
