"""Cells of synthetic rows are written as the cells of the input: 24.06.2022, 7:46 AM, 1,234, (59.22), 12,5 %, 00123."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertimrf import RunOptions, Schema, draft_schema, evaluate, synthesize, write_table
from vertimrf.columns.calendar import to_number
from vertimrf.columns.notations.marked import Marked
from vertimrf.columns.notations.moment_text import as_seen, iso_pattern
from vertimrf.columns.notations.moments import CLOCKS, DATES, TIMES, Moments
from vertimrf.columns.notations.number_pattern import Pattern
from vertimrf.columns.notations.register import named
from vertimrf.columns.notations.worded import Worded
from vertimrf.columns.read import read_attribute
from vertimrf.errors import SchemaError
from vertimrf.named_model import Model
from vertimrf.server.rows import decode_pieces
from vertimrf.tables.conditions import allowed, read_conditions

N = 900
RNG = np.random.default_rng(11)
AMOUNTS = np.round(RNG.gamma(2, 900, N), 2)
SIGNED = np.round(RNG.normal(100, 900, N), 2)
SECONDS = RNG.integers(0, 300 * 86_400, N)
MOMENTS = [dt.datetime(2022, 1, 1) + dt.timedelta(seconds=int(at)) for at in SECONDS]


def german(amount):
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def day(at, form):
    return form.format(at, d=at.day, m=at.month, y=at.year)


# Texts of a CSV file, their format in the schema, and the shape that every synthetic text has.
CASES = {
    "thousands": ([f"{x:,.0f}" for x in AMOUNTS], "#,##0", r"\d{1,3}(,\d{3})*"),
    "cents": ([f"{x:,.2f}" for x in SIGNED], "#,##0.00", r"-?\d{1,3}(,\d{3})*\.\d\d"),
    "german": ([german(x) + " €" for x in SIGNED], "#.##0,00 €", r"-?\d{1,3}(\.\d{3})*,\d\d €"),
    "commas": ([f"{x / 10:.4g}".replace(".", ",") for x in AMOUNTS], "0,#", r"\d+(,\d+)?"),
    "spaces": ([f"{x:,.1f}".translate(str.maketrans(",.", " ,")) for x in AMOUNTS], "# ##0,0", r"\d{1,3}( \d{3})*,\d"),
    "lakhs": (
        [f"{x // 100000:.0f},{x // 1000 % 100:02.0f},{x % 1000:03.0f}" for x in 10**5 + np.floor(AMOUNTS * 99)],
        "#,##,##0",
        r"\d\d?,\d\d,\d{3}",
    ),
    "dollars": ([f"${x:,.0f}" for x in AMOUNTS], "$#,##0", r"\$\d{1,3}(,\d{3})*"),
    "accounts": (
        [f"(${-x:,.2f})" if x < 0 else f"${x:,.2f}" for x in SIGNED],
        "$#,##0.00;($#,##0.00)",
        r"\$\d{1,3}(,\d{3})*\.\d\d|\(\$\d{1,3}(,\d{3})*\.\d\d\)",
    ),
    "last_minus": ([f"{x:,.2f}" if x >= 0 else f"{-x:,.2f}-" for x in SIGNED], "#,##0.00;#,##0.00-", r"\d{1,3}(,\d{3})*\.\d\d-?"),
    "last_sign": ([german(abs(x)) + ("-" if x < 0 else "+") for x in SIGNED], "#.##0,00+;#.##0,00-", r"\d{1,3}(\.\d{3})*,\d\d[+-]"),
    "bare": ([f"{x / 5000:.3f}".replace("0.", ".", 1) for x in SIGNED], "#.000", r"-?\d?\.\d{3}"),
    "weight": ([f"{x / 50:.1f} kg" for x in SIGNED], "0.0 'kg'", r"-?\d+\.\d kg"),
    "warm": ([f"{x / 50:.1f} °C".replace(".", ",") for x in AMOUNTS], "0,0 '°C'", r"\d+,\d °C"),
    "giro": ([german(abs(x)) + (" S" if x < 0 else " H") for x in SIGNED], "#.##0,00 'H';#.##0,00 'S'", r"\d{1,3}(\.\d{3})*,\d\d [HS]"),
    "debit": ([f"{abs(x):,.2f} {'DR' if x < 0 else 'CR'}" for x in SIGNED], "#,##0.00 'CR';#,##0.00 'DR'", r"\d{1,3}(,\d{3})*\.\d\d [CD]R"),
    "swiss": ([f"CHF {x:,.2f}".replace(",", "'") for x in AMOUNTS], "'CHF' #'##0.00", r"CHF \d{1,3}('\d{3})*\.\d\d"),
    "minus_chf": ([f"-CHF {-x:.2f}" if x < 0 else f"CHF {x:.2f}" for x in SIGNED], "'CHF' 0.00;-'CHF' 0.00", r"-?CHF \d+\.\d\d"),
    "kroner": ([f"{x:,.0f} kr".replace(",", "\u00a0") for x in AMOUNTS], "#\u00a0##0 'kr'", r"\d{1,3}(\u00a0\d{3})* kr"),
    "price": ([f"{x:.0f}.-" for x in AMOUNTS], "0'.-'", r"\d+\.-"),
    "percent": ([f"{x % 100:.1f} %" for x in AMOUNTS], "0.0 %", r"\d+\.\d %"),
    "german_day": ([f"{at:%d.%m.%Y}" for at in MOMENTS], "%d.%m.%Y", r"\d\d\.\d\d\.\d{4}"),
    "bare_day": ([f"{at.day}/{at.month}/{at.year}" for at in MOMENTS], "%-d/%-m/%Y", r"[1-9]\d?/[1-9]\d?/2022"),
    "sas_day": ([f"{at:%d%b%Y}".upper() for at in MOMENTS], "%d%^b%Y", r"\d\d[A-Z]{3}2022"),
    "clock": ([f"{at:%H:%M}" for at in MOMENTS], "%H:%M", r"\d\d:\d\d"),
    "bare_clock": ([f"{at:%I:%M %p}".lstrip("0").lower() for at in MOMENTS], "%-I:%M %P", r"[1-9]\d?:\d\d [ap]m"),
    "noon": ([f"{at:%m/%d/%Y %I:%M:%S %p}" for at in MOMENTS], "%m/%d/%Y %I:%M:%S %p", r"\d\d/\d\d/2022 \d\d:\d\d:\d\d [AP]M"),
    "letter_t": ([f"{at:%Y-%m-%dT%H:%M}" for at in MOMENTS], "%Y-%m-%dT%H:%M", r"2022-\d\d-\d\dT\d\d:\d\d"),
    "utc": ([f"{at:%Y-%m-%dT%H:%M:%S}Z" for at in MOMENTS], "%Y-%m-%dT%H:%M:%SZ", r"2022-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    "offset": ([f"{at:%Y-%m-%d %H:%M}+02:00" for at in MOMENTS], "%Y-%m-%d %H:%M%:z", r"202[12]-\d\d-\d\d \d\d:\d\d\+02:00"),
    "ids": ([f"{i % 120:05d}" for i in range(N)], None, r"00\d{3}"),
    "iso": ([f"{at:%Y-%m-%d}" for at in MOMENTS], None, r"2022-\d\d-\d\d"),
    "seconds": ([f"{at:%Y-%m-%d %H:%M:%S}" for at in MOMENTS], None, r"2022-\d\d-\d\d \d\d:\d\d:\d\d"),
    "plain": ([f"{x:.2f}" for x in AMOUNTS], None, r"\d+(\.\d\d?)?"),
}  # fmt: skip


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The input, its schema, and a table of synthetic rows with the codes of the true ones."""
    folder = tmp_path_factory.mktemp("written")
    frame = pd.DataFrame({name: texts for name, (texts, *_) in CASES.items()})
    # Missing cells stay missing.
    frame.loc[::30, "german"] = None
    frame.to_csv(folder / "t.csv", index=False)
    schema = draft_schema(folder / "t.csv", dates="day-first", drop=["noon"]).schema
    american = draft_schema(folder / "t.csv", dates="month-first").schema
    attributes = (*schema.attributes, american.domains["noon"])
    return frame, Schema.of({"a": attributes}, public=False), folder


def coded(frame, attributes):
    columns = [pa.chunked_array([pa.array(frame[a.name], pa.string())]) for a in attributes]
    codes = np.array(
        [a.encoder("x")(column) for a, column in zip(attributes, columns, strict=True)]
    )
    for attribute, row in zip(attributes, codes, strict=True):
        assert (row >= -1).all(), attribute.name
        row[row == -1] = attribute.present
    return codes


@pytest.fixture(scope="module")
def rows(case):
    """Cells of a synthetic CSV file, as texts, and the plain ones."""
    frame, schema, folder = case
    codes = coded(frame, schema.attributes)
    made = []
    for attributes in (schema.attributes, schema.as_plain().attributes):
        (table,) = decode_pieces(codes, attributes, np.random.default_rng(3))
        write_table(table, folder / "s.csv")
        texts = pd.read_csv(folder / "s.csv", dtype=str, keep_default_na=False)
        made.append((table, texts))
    return made


@pytest.mark.parametrize("name", CASES)
def test_cells_are_written_as_they_came(case, rows, name):
    frame, schema, _ = case
    _, format, shape = CASES[name]
    attribute = schema.domains[name]
    assert attribute.format == format
    assert read_attribute(attribute.to_json()) == attribute
    texts = rows[0][1][name]
    odd = [text for text in texts if text and not re.fullmatch(shape, text)]
    assert not odd, odd[:3]
    assert (texts == "").tolist() == frame[name].isna().tolist()
    # They are read as the values that were drawn: those of the plain table.
    column = pa.chunked_array([pa.array(texts.tolist())])
    plain = rows[1][0][name]
    if not attribute.holds_numbers:
        assert texts.tolist() == plain.to_pylist()
        return
    numbers, missing = attribute.numbers(column, "x")
    meant, lacking = attribute.as_plain().numbers(plain, "x")
    assert missing.tolist() == lacking.tolist()
    # Minutes are written without the seconds that are drawn inside them.
    assert np.allclose(numbers[~missing], meant[~missing], rtol=0, atol=1e-9)


def test_plain_cells_are_numbers_and_iso_dates(rows):
    table, texts = rows[1]
    for name in ("thousands", "dollars"):
        assert pa.types.is_integer(table[name].type)
    for name in (
        "cents",
        "german",
        "accounts",
        "percent",
        "last_minus",
        "weight",
        "giro",
        "debit",
        "swiss",
    ):
        assert pa.types.is_floating(table[name].type)
    for name in ("german_day", "bare_day", "sas_day"):
        assert pa.types.is_date(table[name].type)
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in texts["clock"])


def test_text_columns_of_frames_come_back_in_their_notation():
    texts = {
        "day": [f"{at:%d.%m.%Y}" for at in MOMENTS],
        "clock": [f"{at:%H:%M}" for at in MOMENTS],
        "at": [f"{at:%Y-%m-%d %H:%M}" for at in MOMENTS],
        "zip": [f"{i % 40:04d}" for i in range(N)],
    }
    frame = pd.DataFrame(texts)
    attributes = draft_schema(frame).schema.attributes
    (made,) = decode_pieces(coded(frame, attributes), attributes, np.random.default_rng(0))
    for name, true in texts.items():
        assert pa.types.is_string(made[name].type)
        assert {re.sub(r"\d", "9", text) for text in made[name].to_pylist()} == {
            re.sub(r"\d", "9", text) for text in true
        }


# Fuzz: a number or a moment is written, read and written again.

SPACES = ["", " ", "\u00a0"]
SIGNS = st.sampled_from(["", "$", "€", "£", "¥"])
MARKS = st.sampled_from(
    [(".", ","), (",", "."), (",", " "), (".", "'"), (".", ""), (",", "\u202f")]
)


@st.composite
def patterns(draw):
    (mark, group), sign = draw(MARKS), draw(SIGNS)
    space = draw(st.sampled_from(SPACES)) if sign else ""
    after = draw(st.booleans())
    around = ("", space + sign) if after else (sign + space, "")
    if draw(st.booleans()) and not sign:
        around = ("", draw(st.sampled_from(SPACES)) + "%")
    below = draw(
        st.sampled_from(
            [
                ("-" + around[0], around[1]),
                ("−" + around[0], around[1]),
                ("(" + around[0], around[1] + ")"),
                (around[0] + "-", around[1]),
            ]
        )
    )
    two = draw(st.booleans()) and bool(group)
    return Pattern(mark, group, two, draw(st.booleans()), draw(st.integers(0, 4)), around, below)


@given(
    patterns(), st.decimals(-(10**12), 10**12, places=2).map(float) | st.integers(-(10**17), 10**17)
)
def test_numbers_of_any_pattern_are_read_as_they_are_written(pattern, number):
    again = Pattern.of(str(pattern))
    assert again == pattern
    notation = named(str(pattern))
    assert notation.format == str(pattern)
    (text,) = notation.written(pa.array([number])).to_pylist()
    (read,) = notation.parsed(pa.chunked_array([pa.array([text])])).tolist()
    assert read == float(number)
    exact = number if isinstance(number, int) else read
    assert notation.written(pa.array([exact])).to_pylist() == [text]


@given(patterns(), st.lists(st.integers(-(10**9), 10**9), min_size=40, max_size=60))
def test_a_pattern_is_seen_in_texts_of_it(pattern, cents):
    # Of all kinds: large and small, below and above 0, with and without decimals.
    numbers = [
        *(Decimal(c).scaleb(-4) for c in cents),
        *map(Decimal, ("-12345.6", "0.5", "7", "1234567")),
    ]
    texts = Marked(pattern.mark, pattern).written(pa.array([*map(float, numbers)])).to_pylist()
    seen = Pattern.seen(dict.fromkeys(texts, 1), pattern.mark)
    assert Marked(seen.mark, seen).written(pa.array([*map(float, numbers)])).to_pylist() == texts


WORDS = st.sampled_from([" kg", " °C", " mg/dl", " p.a.", "kr", " kr", ".-"])
CODES = st.sampled_from(["CHF ", "US$", "Rs. ", "EUR\u00a0"])


@given(patterns(), WORDS | st.none(), CODES | st.none(), st.sampled_from(["", "outer", "debit"]), st.integers(-(10**9), 10**9))  # fmt: skip
def test_numbers_with_words_are_read_as_they_are_written(pattern, after, before, sign, cents):
    usual = Pattern(pattern.mark, pattern.group, pattern.two, pattern.zero, pattern.decimals)
    around = before or "", after or (" H" if before is None else "")
    below = None
    if sign == "debit" and not after:
        around, below = (around[0], " CR"), (around[0], " DR")
    elif sign == "outer" and before:
        below = "-" + around[0], around[1]
    notation = Worded(Marked(usual.mark, usual), around, below)
    assert named(notation.format) == notation
    text = notation.text(cents / 100)
    assert notation.number(text) == cents / 100
    assert notation.text(notation.number(text)) == text
    # Beside a cell without the word, and one of another.
    assert notation.parsed(pa.chunked_array([[text, "x"]])).tolist()[0] == cents / 100
    assert np.isnan(notation.number("5 lb"))


@pytest.mark.parametrize(
    "texts",
    [
        *(["5 kg", "6 lb"], ["007 kg", "8 kg"], ["A12", "A13"], ["5 C", "6 D"], ["Room 1", "Room 2"]),
        *(["12a", "5b"], ["1st", "2nd"], ["5", "6 kg"], ["kg", "5 kg"]),
    ],
)  # fmt: skip
def test_words_that_are_no_unit_are_no_numbers(texts):
    assert Worded.recognise(dict.fromkeys(texts, 1), None) is None


def test_amounts_in_two_currencies_are_named():
    with pytest.raises(SchemaError, match="has amounts in CHF and EUR, which are not one quantity"):
        Worded.recognise({"CHF 5": 1, "EUR 6": 1}, None)


FLAGS = st.sampled_from(
    [{}, {"d": "%-d", "m": "%-m"}, {"b": "%^b", "B": "%^B"}, {"H": "%-H", "I": "%-I", "p": "%P"}]
)


@given(
    st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31, 23, 59, 59)),
    st.sampled_from([*CLOCKS, *(day + time for day in DATES for time in TIMES)]),
    FLAGS,
)
def test_moments_of_any_pattern_are_read_as_they_are_written(moment, pattern, flags):
    for code, flag in flags.items():
        pattern = pattern.replace(f"%{code}", flag)
    kind = (
        "time"
        if pattern.startswith(("%H", "%-H", "%I", "%-I"))
        else "timestamp"
        if ":" in pattern
        else "date"
    )
    notation = Moments(kind, None, pattern)
    value = moment.time() if kind == "time" else moment.date() if kind == "date" else moment
    number = float(np.floor(to_number(kind, value)))
    text = notation.text(number)
    read = notation.number(text)
    assert notation.text(read) == text
    if "%S" in pattern or kind == "date":
        assert read == number


@given(
    st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9000, 1, 1)),
    st.sampled_from(["Z", "+02:00", "-0330", ""]),
    st.booleans(),
    st.sampled_from("T "),
)
def test_iso_texts_are_written_as_they_came(moment, offset, seconds, between):
    text = (
        f"{moment:%Y-%m-%d}{between}{moment:%H:%M:%S}"
        if seconds
        else f"{moment:%Y-%m-%d}{between}{moment:%H:%M}"
    )
    text += offset
    zone = {"Z": "UTC", "": None, "-0330": "-03:30"}.get(offset, offset)
    notation = Moments("timestamp", zone, iso_pattern("timestamp", [text], zone))
    written = notation.text(notation.number(text))
    # Without a pattern, an offset has a colon.
    assert written == text


@pytest.mark.parametrize(
    "pattern, texts, seen",
    [
        ("%d/%m/%Y", ["1/12/2020", "12/3/2020"], "%-d/%-m/%Y"),
        ("%d/%m/%Y", ["01/12/2020", "12/3/2020"], "%d/%-m/%Y"),
        # Where both are seen, the zero is usual.
        ("%d/%m/%Y", ["01/12/2020", "1/12/2020"], "%d/%m/%Y"),
        ("%d %b %Y", ["1 JAN 2020", "10 FEB 2020"], "%-d %^b %Y"),
        ("%I:%M %p", ["01:30 pm"], "%I:%M %P"),
        ("%Y week %W", ["2020 week 1"], "%Y week %W"),
    ],
)
def test_flags_of_dates_are_seen(pattern, texts, seen):
    assert as_seen(pattern, texts) == seen


@pytest.mark.parametrize(
    "format", ["", "x", "#", "0.0.0", "#,##0,00", "0;0", "0 EUR", "a0", "0;x0", "##0"]
)
def test_what_is_no_pattern_is_refused(format):
    if format == "#":
        assert named(format) == Marked(".", Pattern(".", zero=False))
        return
    with pytest.raises(SchemaError, match="format is"):
        read_attribute({"name": "x", "edges": [0, 1], "format": format})


def test_conditions_may_be_written_as_the_column():
    price = read_attribute(
        {"name": "price", "edges": [0, 1000, 2000, 3000], "format": "#.##0,00 €"}
    )
    born = read_attribute(
        {
            "name": "born",
            "bounds": ["1990-01-01", "2000-01-01"],
            "bins": "year",
            "calendar": "date",
            "format": "%d.%m.%Y",
        }
    )
    schema = Schema.of({"a": [price, born]})

    def codes(*texts):
        given = read_conditions(texts, schema)
        ((name, value),) = given.items()
        return allowed(schema.domains[name], value, lambda: np.ones(10))[0].tolist()

    assert codes("price>=2.000,00 €") == codes("price>=2000") == [2]
    assert codes("price=1.500,00 €") == codes("price=1500") == [1]
    assert codes("born>=01.01.1998") == codes("born>=1998-01-01") == [8, 9]
    assert codes("born=24.12.1991..31.12.1992") == [1, 2]
    assert codes("born=24.12.1991") == codes("born=1991-12-24") == [1]
    with pytest.raises(
        SchemaError,
        match=r"'2.000' may be 2, or 2000 as column 'price' is written; write 2000 or 2,00 €",
    ):
        codes("price>=2.000")


def test_files_frames_and_commands_are_in_the_notation_unless_plain(tmp_path):
    frame = pd.DataFrame({"day": CASES["german_day"][0], "price": CASES["german"][0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = draft_schema(tmp_path / "t.csv").schema
    for plain in (False, True):
        trial = synthesize(
            [tmp_path / "t.csv"],
            None,
            5.0,
            schema=schema,
            options=RunOptions(rows=50, seed=1, plain=plain),
        )
        kinds = [str(kind) for kind in trial.table.schema.types]
        assert kinds == (["date32[day]", "double"] if plain else ["string", "string"])
        write_table(trial.table, tmp_path / "s.csv")
        # Both are compared as what they are.
        figures = evaluate(tmp_path / "t.csv", tmp_path / "s.csv", schema=schema)
        assert figures["records"]["synthetic"] == 50
        assert 0 < figures["numbers"]["price"]["synthetic"]["deviation"] < 2000
        assert figures["values"]["columns"]["day"]["ks"] < 0.3
    model = trial.model
    assert isinstance(model, Model)
    assert re.fullmatch(CASES["german"][2], model.sample(1, seed=0)["price"][0].as_py())
    assert pa.types.is_floating(model.sample(1, seed=0, plain=True)["price"].type)
    assert pa.types.is_date(next(model.draws(2, 5, seed=0, plain=True))["day"].type)
