"""Numbers, dates and times as people write them: each notation reads what it writes, and rows have the numbers that were meant."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertimrf import draft_schema
from vertimrf.columns.notations.marked import MARKS, Marked
from vertimrf.columns.notations.moments import CLOCKS, DATES, TIMES, Moments
from vertimrf.columns.notations.plain import as_numbers
from vertimrf.columns.read import read_attribute
from vertimrf.errors import SchemaError
from vertimrf.server.rows import decode_pieces

N = 600
RNG = np.random.default_rng(5)
AMOUNTS = np.round(RNG.normal(100, 80, N), 2)
WHOLE = RNG.integers(10**4, 10**7, N)
SECONDS = RNG.integers(0, 300 * 86_400, N)
START = dt.datetime(2022, 6, 1)
MOMENTS = [START + dt.timedelta(seconds=int(at)) for at in SECONDS]


def in_lakhs(number):
    """12345678 as 1,23,45,678."""
    head, tail = str(number)[:-3], str(number)[-3:]
    pairs = [head[max(0, end - 2) : end] for end in range(len(head), 0, -2)]
    return ",".join([*reversed(pairs), tail])


def account(amount):
    return f"({-amount:,.2f})" if amount < 0 else f"{amount:,.2f}"


def every_ninth(text, cells):
    return [text if i % 9 == 0 else cell for i, cell in enumerate(cells)]


DAYS = [f"{at:%d/%m/%Y}" for at in MOMENTS]
# Texts of a CSV file, and the values that they stand for.
CASES = {
    "accounting": ([account(x) for x in AMOUNTS], AMOUNTS),
    "dollars": ([account(x).replace("(", "($") for x in AMOUNTS], AMOUNTS),
    "no_zero": ([f"{x / 400:.2f}".replace("0.", ".", 1) for x in AMOUNTS], np.round(AMOUNTS / 400, 2)),
    "lakhs": ([*map(in_lakhs, WHOLE)], WHOLE),
    "unknown": (every_ninth("unknown", [str(i % 41) for i in range(N)]), every_ninth(None, [i % 41 for i in range(N)])),
    "total": (every_ninth("Total", [f"{x:.2f}" for x in AMOUNTS]), every_ninth(None, AMOUNTS.tolist())),
    "dash": (every_ninth("-", [account(x) for x in AMOUNTS]), every_ninth(None, AMOUNTS.tolist())),
    "sas": ([f"{at:%d%b%Y}".upper() for at in MOMENTS], [at.date() for at in MOMENTS]),
    "am_pm": ([f"{at:%m/%d/%Y %I:%M:%S %p}" for at in MOMENTS], MOMENTS),
    "sas_moment": ([f"{at:%d%b%Y:%H:%M:%S}".upper() for at in MOMENTS], MOMENTS),
    "oracle": ([f"{at:%d-%b-%y %I.%M.%S}.000000 {at:%p}".upper() for at in MOMENTS], MOMENTS),
    "log": ([f"{at:%d/%b/%Y:%H:%M:%S}" for at in MOMENTS], MOMENTS),
    "browser": ([f"{at.month}/{at.day}/{at.year}, {at:%I:%M:%S %p}" for at in MOMENTS], MOMENTS),
    "spreadsheet": ([f"{at.month}/{at.day}/{at.year}, {at:%I:%M %p}" for at in MOMENTS], [at.replace(second=0) for at in MOMENTS]),
    "bare_iso": ([f"{at.year}-{at.month}-{at.day}" for at in MOMENTS], [at.date() for at in MOMENTS]),
    "points": ([f"{at:%Y.%m.%d}" for at in MOMENTS], [at.date() for at in MOMENTS]),
    "weekday": ([f"{at:%A, %d %B %Y}" for at in MOMENTS], [at.date() for at in MOMENTS]),
    "uhr": ([f"{at:%H.%M} Uhr" for at in MOMENTS], [at.time().replace(second=0) for at in MOMENTS]),
    "heures": ([f"{at.hour}h{at:%M}" for at in MOMENTS], [at.time().replace(second=0) for at in MOMENTS]),
    "mysql": (every_ninth("0000-00-00", [f"{at:%Y-%m-%d}" for at in MOMENTS]), every_ninth(None, [at.date() for at in MOMENTS])),
    "sap": (every_ninth("00.00.0000", [f"{at:%d.%m.%Y}" for at in MOMENTS]), every_ninth(None, [at.date() for at in MOMENTS])),
    "no_day": (every_ninth("unknown", DAYS), every_ninth(None, [at.date() for at in MOMENTS])),
}  # fmt: skip


def drafted(folder, cells):
    path = folder / "t.csv"
    pd.DataFrame(cells).to_csv(path, index=False)
    draft = draft_schema(str(path))
    return {a.name: a for a in draft.schema.attributes}, [*map(str, draft.flags)]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return drafted(
        tmp_path_factory.mktemp("t"), {name: texts for name, (texts, _) in CASES.items()}
    )


@pytest.mark.parametrize("name", CASES)
def test_rows_have_the_values_that_were_meant(cases, name):
    """A drafted column is read, and synthetic rows of its codes have the values that are in its bins."""
    attribute, (texts, true) = cases[0][name], CASES[name]
    column = pa.chunked_array([pa.array(texts)])
    codes = attribute.encoder("x")(column)
    absent = np.array([value is None for value in true])
    assert ((codes == -1) == absent).all()
    assert (codes[~absent] >= 0).all()
    meant = attribute.as_plain().encoder("x")(pa.chunked_array([pa.array(true)]))
    assert (codes == meant).all()
    codes[absent] = attribute.present
    (rows,) = decode_pieces(codes[None], [attribute.as_plain()], np.random.default_rng(1))
    made = rows[name].to_pylist()
    assert {type(value) for value in made} == {
        type(v.item() if hasattr(v, "item") else v) for v in true
    }
    assert [value is None for value in made] == absent.tolist()
    again = attribute.as_plain().encoder("x")(rows[name])
    assert (np.where(absent, -1, codes) == again).all()
    # Whatever the bins are, their means are those of the records.
    there = np.flatnonzero(~absent)
    spread = pd.Series([true[i] for i in there]), pd.Series([made[i] for i in there])
    assert spread[1].min() >= spread[0].min()
    assert spread[1].max() <= spread[0].max()


@pytest.mark.parametrize(
    "name, words",
    [
        ("mysql", "the text '0000-00-00' in 67 of 600 cells: read as missing"),
        ("unknown", "the text 'unknown' in 67 of 600 cells: read as missing"),
        ("total", "the text 'Total'"),
        ("no_day", "has dates or times, and the text 'unknown'"),
        ("accounting", "has numbers such as '("),
    ],
)
def test_a_draft_says_how_it_reads_a_column(cases, name, words):
    assert any(f"column '{name}' " in flag and words in flag for flag in cases[1])


def test_what_is_no_single_quantity_stays_text(tmp_path):
    cells = {
        "kept": [str(i) for i in range(N)],
        "mixed": [("$" if i % 2 else "€") + f"{abs(x):.2f}" for i, x in enumerate(AMOUNTS)],
        "share": [f"{i % 9}%" if i % 2 else f"${i % 9}" for i in range(N)],
        "grade": [["K", "1", "2", "3", "4"][i % 5] for i in range(N)],
        "list": [f"({1 + i % 4})" for i in range(N)],
        "top": ["85+" if i % 9 == 0 else str(i % 84) for i in range(N)],
        "few": ["unknown" if i % 3 else str(i % 50) for i in range(N)],
    }
    found, flags = drafted(tmp_path, cells)
    assert any("has amounts in $ and €, which are not one quantity" in flag for flag in flags)
    assert any("has amounts in $ and %" in flag for flag in flags)
    assert "mixed" not in found
    assert {found[name].holds_numbers for name in ("grade", "list", "top", "few")} == {False}


def test_missing_texts_of_numbers_are_kept_in_the_schema(cases):
    total = cases[0]["total"]
    assert total.missing_text == ("Total",)
    assert read_attribute(total.to_json()) == total
    # The usual ones are missing, too, and others cost their own record alone.
    codes = total.encoder("x")(
        pa.chunked_array([pa.array(["Total", "NA", "", None, "what", "1.5"])])
    )
    assert codes[:5].tolist() == [-1, -1, -1, -1, -2]
    assert codes[5] >= 0
    with pytest.raises(SchemaError, match="missing_text"):
        read_attribute({"name": "x", "edges": [0, 1], "missing_text": [3]})


@pytest.mark.parametrize(
    "twice, numbers",
    [
        (["1,200.5", "1,200.50"], lambda i: f"{1000 + i:,}.5"),
        (["€5", "€5.00"], lambda i: f"€{10 + i % 90}"),
        (["36:00", "036:00"], lambda i: f"{30 + i}:00"),
    ],
)
def test_a_number_that_is_written_in_two_ways_is_one(tmp_path, twice, numbers):
    cells = {"x": [*twice, *map(numbers, range(N))]}
    found, flags = drafted(tmp_path, cells)
    assert found["x"].holds_numbers
    assert not any("digits" in flag for flag in flags)


def test_numbers_of_a_notation_that_double_precision_merges_are_named(tmp_path):
    cells = {"x": [f"{10**15:,}.{i % 90:02}" for i in range(N)]}
    assert any("more digits than double precision" in flag for flag in drafted(tmp_path, cells)[1])


@given(st.decimals(-(10**9), 10**9, places=2).map(float), st.sampled_from(MARKS))
def test_numbers_are_read_as_they_are_written(number, mark):
    notation = Marked(mark)
    text = notation.text(number)
    (read,) = notation.parsed(pa.chunked_array([pa.array([text])])).tolist()
    assert (read, notation.text(read)) == (number, text)


@given(
    st.integers(-(10**10), 10**10),
    st.sampled_from(MARKS),
    st.sampled_from([in_lakhs, "{:,}".format]),
)
def test_groups_and_brackets_are_read(whole, mark, grouped):
    text = grouped(abs(whole)) if abs(whole) > 999 else str(abs(whole))
    text = text.replace(",", ",.".replace(mark, ""))
    text = f"({text})" if whole < 0 else text
    (read,) = Marked(mark).parsed(pa.chunked_array([pa.array([text])])).tolist()
    assert read == whole


@given(
    st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31, 23, 59, 59)),
    st.sampled_from([*CLOCKS, *(day + time for day in DATES for time in TIMES)]),
)
def test_moments_are_read_as_they_are_written(moment, pattern):
    kind = "time" if pattern in CLOCKS else "timestamp" if ":" in pattern else "date"
    notation = Moments(kind, None, pattern)
    text = moment.strftime(pattern)
    number = notation.number(text)
    assert notation.text(number) == text
    assert notation.parsed(pa.chunked_array([pa.array([text])])).tolist() == [number]


PARTS = st.sampled_from(["00", "01", "12", "23", "24", "29", "31", "59", "60", "7", "-1", "٣٣"])


@given(
    st.sampled_from(["0000", "0001", "1900", "2000", "2022", "9999", "22", "10000"]),
    st.lists(PARTS, min_size=5, max_size=5),
    st.sampled_from(["T", " ", "t", "  ", ""]),
    st.sampled_from(["", ".5", ",5", ".123456", ".1234567", "Z", "+02:00", "-23:59", "+24:00", "+0200", " "]),
    st.sampled_from([None, "UTC", "Europe/Vienna"]),
)  # fmt: skip
def test_texts_of_iso_are_read_alike_at_once_and_one_by_one(year, parts, between, end, zone):
    month, day, hour, minute, second = parts
    date, clock = f"{year}-{month}-{day}", f"{hour}:{minute}:{second}{end}"
    for kind, text in (("date", date), ("time", clock), ("timestamp", date + between + clock)):
        notation = Moments(kind, zone if kind == "timestamp" else None)
        # One at a time, and beside a usual one.
        usual = notation.text(0)
        for texts in ([text], [usual, text], [usual]):
            read = notation.parsed(pa.chunked_array([texts]))
            np.testing.assert_array_equal(read, [*map(notation.number, texts)])


def test_numbers_are_counted_alike_at_once_and_one_by_one():
    cells = ["1.5", "1.50", ".5", "-0", "0", "1e3"]
    counts = [*zip(cells, range(1, 7), strict=True)]
    expected = {1.5: 3, 0.5: 3, 0.0: 9, 1000.0: 6}
    assert as_numbers(counts) == as_numbers([(0.0, 0), *counts]) | {} == expected
    assert as_numbers([(float(text), n) for text, n in counts]) == expected
    for odd in ("007", "1_0", "x", "", "1\n", "inf", "1e999", "٣"):
        assert as_numbers([*counts, (odd, 1)]) is None
    exact = as_numbers([("9007199254740993", 1), ("9007199254740992", 1)])
    assert exact == {9007199254740993: 1, 9007199254740992: 1}


@pytest.mark.parametrize(
    "text, number", [(".31", 0.31), ("-.83", -0.83), ("007", None), (".", None), ("-", None)]
)
def test_a_number_may_lack_its_leading_zero(text, number):
    assert as_numbers([(text, 1)]) == (None if number is None else {number: 1})
