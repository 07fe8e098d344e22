"""Columns that people have, and what must hold of the rows that are made of them: values that occur, on their grid, of their type.

Of each kind of shape that a draft recognises one column goes the whole way; which shapes there are is tested in ``test_recognise``.
A few columns are one table, with one holder, a drafted schema and epsilon 1.
"""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vertimrf import PlanOptions, RunOptions, draft_schema, synthesize
from vertimrf.columns.draft import draft_attribute

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
    "age": (np.minimum(RNG.integers(17, 91, N), 85), {"most": 85, "step": 1, "heaps": [85]}),
    "capped": (
        days(np.minimum(RNG.integers(0, 800, N), 665)),
        {"most": dt.date(2020, 10, 27), "heaps": [dt.date(2020, 10, 27)]},
    ),
    "ymd": (ymd(RNG.integers(0, 1500, N)), {"format": "%Y%m%d"}),
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
        {"are": ["08:00", "13:30", "18:00"]},
    ),
    "occupation": (codes(150, 1000, 9800), {"listed": True}),
    "cents": (np.round(with_heaps(GAMMA, (0, 0.15)), 2), {"step": 0.01, "heaps": [0]}),
    "five thousand": (
        with_heaps(np.round(RNG.gamma(2, 1500, N), 2), (5000, 0.2)),
        {"heaps": [5000]},
    ),
    "firsts": (
        [dt.date(1990 + m // 12, m % 12 + 1, 1) for m in RNG.integers(0, 360, N)],
        {"format": "%Y-%m-01"},
    ),
    "fridays": (days(3 + 7 * RNG.integers(0, 300, N)), {"weekday": 4}),
    "quarter hours": (instants(15 * RNG.integers(0, 5000, N)), {"minutes": 15}),
    "99": (np.round(RNG.lognormal(4, 1, N)) + 0.99, {"step": 1, "offset": 0.99}),
    "hhmm": ([int(100 * (m // 60) + m % 60) for m in RNG.integers(0, 1440, N)], {"format": "%H%M"}),
    "singles": (SINGLE, {"single step": 0.1}),
    "vat": (pick(["19 %", "0 %", "7 %"], 0.6), {"are": ["0 %", "19 %", "7 %"]}),
    "comma": (pick(["1,5", "2,5", "3,5"]), {"are": ["1,5", "2,5", "3,5"]}),
}


def steps_of(kind, scale):
    return pa.array([scale * i for i in RNG.integers(0, 3000, N).tolist()]).cast(kind)


# Columns of an Arrow table, as a Parquet file has them.
TYPED: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "many beyond": (
        pa.array([2**60 + 7 * i for i in RNG.integers(0, 3000, N).tolist()]),
        {"whole step": (2**60, 7)},
    ),
    "durations": (steps_of(pa.duration("s"), 60), {"minutes of a duration": True}),
    "tenths": (
        pa.array(np.round(RNG.integers(0, 9000, N) / 10, 1).astype(np.float32)),
        {"single step": 0.1},
    ),
    "read tenths": (pa.array(SINGLE), {"single step": 0.1}),
    "region": (pa.array(pick(["NA", "DE", "FR", ""], 0.25)), {"listed": True, "heaps": ["NA"]}),
}


def pieces(items, size):
    items = list(items)
    return [items[i : i + size] for i in range(0, len(items), size)]


def made(source, seed):
    schema = draft_schema(source, "id").schema
    options = RunOptions(seed=seed)
    planning = PlanOptions(even_if_useless=True, expected_records=N)
    return synthesize(source, "id", 1.0, schema=schema, planning=planning, options=options).table


@pytest.fixture(scope="module")
def from_csv(tmp_path_factory):
    """Of each column, the true values and those of the rows; a few columns a run."""
    out = {}
    for seed, names in enumerate(pieces(CASES, 6)):
        frame = pd.DataFrame({name: CASES[name][0] for name in names})
        frame.insert(0, "id", np.arange(N))
        path = tmp_path_factory.mktemp("csv") / "t.csv"
        frame.to_csv(path, index=False)
        rows = made(path, seed)
        out |= {name: (frame[name].tolist(), rows[name]) for name in names}
    return out


@pytest.fixture(scope="module")
def from_arrow():
    out = {}
    for seed, names in enumerate(pieces(TYPED, 6)):
        table = pa.table({"id": np.arange(N), **{name: TYPED[name][0] for name in names}})
        rows = made(table, seed)
        out |= {name: (table[name], rows[name]) for name in names}
    return out


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_csv_file(from_csv, name):
    true, column = from_csv[name]
    found = column.drop_null().to_pylist()
    assert len(found) > 0.4 * N
    check_values(found, true, CASES[name][1])


@pytest.mark.parametrize("name", TYPED)
def test_rows_of_an_arrow_table(from_arrow, name):
    true, column = from_arrow[name]
    assert column.type == true.type
    found = column.drop_null().to_pylist()
    assert len(found) > 0.4 * N
    check_values(found, true.to_pylist(), TYPED[name][1])


def check_values(found, true, must):
    if "listed" in must:
        assert {*map(str, found)} <= {*map(str, true)}
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
    if "whole step" in must:
        first, step = must["whole step"]
        assert {(value - first) % step for value in found} == {0}
        assert min(true) <= min(found) <= max(found) <= max(true)
    if "minutes of a duration" in must:
        assert {value.total_seconds() % 60 for value in found} == {0}
    if "weekday" in must:
        assert {value.weekday() for value in found} == {must["weekday"]}
    if "minutes" in must:
        assert {value.minute % must["minutes"] for value in found} == {0}
    for value in must.get("heaps", ()):
        shares = [np.mean([one == value for one in values]) for values in (true, found)]
        # Six columns share epsilon 1 of 4,000 records.
        assert shares[1] == pytest.approx(shares[0], abs=0.05)


def test_whole_numbers_of_64_bits_are_listed_to_the_least():
    values = [-(2**63), 0, 2**63 - 1]
    draft = draft_schema({"x": np.array(values * 20)})
    assert draft.schema.attributes[0].values == tuple(values)


@pytest.mark.parametrize("end, flags", [("1", 1), ("0", 0)])
def test_decimals_that_are_one_in_double_precision_are_named(end, flags):
    # The second is another decimal, or the same with another zero.
    texts = ["1234567890123456.780", f"1234567890123456.780{end}", "3"]
    csv = pa.array(texts * 20)
    said: list[tuple[str, str]] = []
    draft_attribute("x", pa.chunked_array([csv]), lambda *one: said.append(one), None, False)
    assert sum("more digits than double precision" in problem for problem, _ in said) == flags
