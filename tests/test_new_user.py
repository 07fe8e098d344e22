"""The path of a new user, as the pages say it, has no dead end."""

import dataclasses
import datetime
import hashlib
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import temporal
from commands import good, refused, run
from pages import Figures, contradictions

import vertimrf
from vertimrf import Attribute, Schema, Synthesizer
from vertimrf.errors import ModelError, SchemaError
from vertimrf.model.fit import FitOptions
from vertimrf.plan import value_files
from vertimrf.plan.verdict import verdict
from vertimrf.tables.conditions import allowed

NOTE = "the schema does not have it: column 'note'"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table as people have it: with ids, and a column that a draft leaves out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 3000)
    smoker = np.where(rng.random(3000) < 0.9 - age / 125, "yes", "no")
    note = [f"Seen by {name:x}" for name in rng.integers(0, 1 << 60, 3000)]
    people = pd.DataFrame({"age": age, "smoker": smoker, "ward": age // 25, "note": note})
    people.to_csv("people.csv", index_label="key")
    return tmp_path


def test_a_draft_that_leaves_a_column_out_serves_every_command(folder, caplog):
    pytest.importorskip("jinja2")
    assert "column 'note' has 3,000 distinct values" in good(
        "schema draft people.csv --id key --out s.toml"
    )
    out = "--epsilon 1 --out made.csv --model m --json r.json"
    for words in (
        "check people.csv --schema s.toml --id key",
        f"synthesize people.csv --schema s.toml --id key {out}",
        "evaluate --real people.csv --synthetic made.csv --schema s.toml --id key",
        "report m r.json --real people.csv --id key --out page.html",
    ):
        assert good(words).count(NOTE) == 1, words
    # One table has no other to be joined with, so it needs no id.
    good("evaluate --real people.csv --synthetic made.csv")
    caplog.clear()
    Synthesizer(Schema.load("s.toml"), id="key").fit("people.csv", epsilon=1.0)
    assert [NOTE in line for line in caplog.messages] == [True]
    caplog.clear()
    vertimrf.synthesize("people.csv", "key", 1.0)
    assert sum("'note'" in line for line in caplog.messages) == 1


def test_the_domains_that_a_run_chose_serve_its_evaluation(folder):
    (folder / "s.toml").write_text(
        """
[[party]]
name = "clinic"
[[party.attribute]]
name = "smoker"
values = "private"
[[party.attribute]]
name = "note"
values = "private"
[[party.attribute]]
name = "ward"
codes = 4
[[impossible]]
note = "nobody"
ward = 1
"""
    )
    assert "is ready for s.toml" in good("check people.csv --schema s.toml")
    out = good("synthesize people.csv --schema s.toml --epsilon 4 --out made.csv")
    assert "domain of 'note' found nothing" in out
    assert set(pd.read_csv("made.csv")["note"]) == {"other"}
    assert "no" in Schema.load("made.csv.schema.toml").attributes[0].values
    for schema in ("", "--schema s.toml"):
        assert "2-way TVD" in good("evaluate --real people.csv --synthetic made.csv", schema)


def test_a_column_of_three_values_names_no_record(folder):
    assert "only 4 ids" in refused("schema draft people.csv --id ward --out s.toml")
    good("schema draft people.csv --drop note --drop ward --out s.toml")
    assert "only 4 ids" in refused("check people.csv --schema s.toml --id ward")
    # A release that stopped for it would depend on records. Its holder is told.
    made = "synthesize people.csv --schema s.toml --id ward --epsilon 1 --out made.csv --even-if-useless"
    assert "only 4 ids" in good(made)


def test_a_column_that_another_party_holds_is_left_out_as_in_the_run(folder):
    people = pd.read_csv("people.csv")
    people[["key", "ward"]].to_csv("insurer.csv", index=False)
    people.to_csv("hospital.csv", index=False)
    good("schema draft people.csv --id key --drop ward --name hospital --out h.toml")
    good("schema draft insurer.csv --id key --name insurer --out i.toml")
    good("schema merge h.toml i.toml --out s.toml")
    tables = "hospital.csv insurer.csv --id key --schema s.toml"
    said = good(f"synthesize {tables} --epsilon 4 --out made.csv")
    assert "does not have it: column 'ward', 'note'" in said
    real = "--real hospital.csv --real insurer.csv"
    said = good(f"evaluate {real} --id key --synthetic made.csv --schema s.toml")
    assert "does not have it: column 'ward', 'note'" in said


@pytest.fixture(scope="module")
def hotel():
    """A model of hotel bookings: a price in bins, a country with `other`, nights, a date, a number without a step."""
    rng = np.random.default_rng(0)
    price = np.round(rng.gamma(4, 30, 4000), 2).clip(0, 400)
    bookings = pd.DataFrame(
        {
            "adr": price,
            "score": rng.normal(price / 200, 1),
            "country": rng.choice(["PRT", "ESP", "FRA", "ITA"], 4000, p=[0.5, 0.2, 0.2, 0.1]),
            "nights": rng.integers(1, 8, 4000),
            "day": pd.Timestamp(2019, 1, 1) + pd.to_timedelta(rng.integers(0, 365, 4000), "D"),
        }
    )
    schema = Schema.of(
        {
            "hotel": [
                Attribute.numeric("adr", [0, 50, 90, 130, 200, 401], resolution=0.01),
                Attribute.numeric("score", np.linspace(-4, 4, 9), clamp=True),
                Attribute.categorical("country", ["PRT", "ESP", "FRA", "other"], other="other"),
                Attribute.categorical("nights", range(1, 8), ordered=True),
                temporal("day", "date", ["2019-01-01", "2019-07-01", "2020-01-01"]),
            ]
        }
    )
    return Synthesizer(schema).fit(bookings, epsilon=8.0).model


@pytest.fixture
def saved(hotel, tmp_path, monkeypatch):
    """The model as a file in this folder."""
    monkeypatch.chdir(tmp_path)
    hotel.save("hotel.vmrf")


@pytest.fixture(scope="module")
def everything(hotel):
    """Many of its rows."""
    return hotel.sample(200_000, seed=1).to_pandas()


def drawn(*conditions):
    """Rows that the command draws under conditions."""
    where = [word for condition in conditions for word in ("--where", [condition])]
    good("sample hotel.vmrf --rows 2000 --seed 1 --out drawn.parquet", *where)
    return pd.read_parquet("drawn.parquet")


def test_rows_are_drawn_between_limits_and_from_a_few_countries(hotel, saved):
    assert drawn("adr>=100")["adr"].min() >= 100
    assert drawn("adr=100..200")["adr"].between(100, 200).all()
    assert drawn("adr > 100", "adr<= 200")["adr"].between(100.01, 200).all()
    assert set(drawn("country=PRT|ESP")["country"]) == {"PRT", "ESP"}
    assert set(drawn("nights=2..3", "country=PRT", "country=other")["nights"]) == {2, 3}
    days = drawn("day=2019-06-20..2019-07-09")["day"].astype(str)
    assert days.between("2019-06-20", "2019-07-09").all()
    assert days.min() < "2019-07-01" <= days.max()
    # The same in Python, as a schema states limits.
    rows = hotel.sample(500, given={"adr": {"above": 100, "to": np.int64(200)}, "nights": [2, 3]})
    assert 100 < min(rows["adr"].to_pylist()) <= max(rows["adr"].to_pylist()) <= 200


@pytest.mark.parametrize(
    "column, limits",
    [
        ("adr", {"from": 100, "to": 140}),
        ("adr", {"above": 57.5}),
        ("score", {"from": 0.25, "below": 1.1}),
        ("nights", {"below": 3}),
    ],
)
def test_rows_within_limits_are_those_that_a_draw_without_them_has(
    hotel, everything, column, limits
):
    low = limits.get("from", limits.get("above", -np.inf))
    high = limits.get("to", limits.get("below", np.inf))
    inside = everything[everything[column].between(low, high)]
    if "below" in limits:
        inside = inside[inside[column] < limits["below"]]
    rows = hotel.sample(50_000, given={column: limits}, seed=2).to_pandas()
    share = len(inside) / len(everything)
    # Independent draws would err by these standard errors; both draws are closer to the model.
    assert hotel.sample(given={column: limits}).num_rows / hotel.field.total == pytest.approx(
        share, abs=5 * np.sqrt(share * (1 - share) / 200_000) + 1 / hotel.field.total
    )
    for name in ("adr", "score", "nights"):
        error = inside[name].std() * np.sqrt(1 / len(rows) + 1 / len(inside))
        # Inside the bins of other columns the density follows the rows drawn, see the next bound.
        slack = 0.0 if name in (column, "nights") else 0.02 * inside[name].std()
        assert abs(rows[name].mean() - inside[name].mean()) < 5 * error + slack


@pytest.mark.usefixtures("saved")
def test_a_condition_that_no_row_can_have_is_refused_with_what_is_near():
    for condition, said in (
        ("country=PTR", "holds 'PTR', outside the schema; the nearest values are 'PRT'"),
        ("country=PRT|ITA", "holds 'ITA', outside the schema"),
        ("town=Wien", "no attribute 'town'"),
        ("nights=12", "holds '12', outside the schema; the nearest values are 7, 6, 5"),
        ("score=9", "holds '9', outside the schema; the bounds are -4 to 4"),
        ("score>=9", "leaves no number; the bounds are -4 to 4"),
        ("country>=3", "'country' has no numbers"),
        ("day>=soon", "'soon' is no date"),
        ("adr>=cheap", "'cheap' is no number"),
        ("nights=", "'nights' has no missing values"),
        ("=3", "takes COLUMN=VALUE"),
        ("adr", "takes COLUMN=VALUE"),
    ):
        words = "sample hotel.vmrf --rows 20 --out none.csv --where", [condition]
        assert said in refused(*words), condition
    for twice in ("adr>=1 --where adr>2 --where adr>=3", "nights=2 --where nights>=3"):
        assert "asks twice" in refused(f"sample hotel.vmrf --out none.csv --where {twice}")


@pytest.mark.parametrize("pair", [(2, 3), slice(2, 3)])
def test_a_pair_that_may_be_a_range_is_refused_with_how_to_write_it(hotel, pair):
    with pytest.raises(
        SchemaError, match=r'write \{"from": 2, "to": 3\} for the range, or \[2, 3\]'
    ):
        hotel.sample(5, given={"nights": pair})
    assert hotel.sample(5, given={"country": ("PRT", "ESP")}).num_rows == 5


def test_a_marginal_has_labels_and_is_drawn_beside_the_truth(hotel, everything):
    figures = pytest.importorskip("matplotlib.figure")
    names = ["nights", "country"]
    labels = hotel.labels(names)
    assert labels == [tuple("1234567"), ("PRT", "ESP", "FRA", "other")]
    figure = hotel.plot("nights", real=everything)
    assert isinstance(figure, figures.Figure)
    bars = [group for group in figure.axes[0].containers if hasattr(group, "patches")]
    model, true = ([bar.get_height() for bar in group.patches] for group in bars)
    np.testing.assert_allclose(model, hotel.marginal("nights"))
    assert true == everything["nights"].value_counts().sort_index().tolist()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == [*labels[0]]
    maps = hotel.plot(names, real=everything).axes
    crossed = pd.crosstab(everything["nights"], everything["country"])[[*labels[1]]]
    for axes, table in zip(maps[:2], (hotel.marginal(names), crossed), strict=True):
        np.testing.assert_allclose(np.asarray(axes.images[0].get_array()), table)
    with pytest.raises(ModelError, match="one column or of two, not of 3"):
        hotel.plot([*names, "day"])
    with pytest.raises(SchemaError, match=r"The real table.*nights"):
        hotel.plot("nights", real=everything[["day"]])


def people():
    """A frame in a notebook."""
    rng = np.random.default_rng(0)
    smoker = rng.choice(["no", "yes"], 3000)
    return pd.DataFrame({"smoker": smoker, "age": rng.integers(0, 100, 3000)})


def test_a_notebook_goes_from_a_frame_to_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = people()
    draft = vertimrf.draft_schema(frame)
    assert repr(draft) == "<Draft of <Schema of 2 attributes: party1 2, NOT PUBLIC>>"
    synthesizer = vertimrf.Synthesizer(draft.schema).fit(frame, epsilon=1.0)
    rows = synthesizer.sample(num_rows=2000)
    for made in (rows, rows.to_pandas()):
        assert vertimrf.evaluate(frame, made)["tvd"]["2"] < 0.5
    exact = vertimrf.evaluate(frame, rows, schema=synthesizer.schema)
    assert exact["records"] == {"real": 3000, "synthetic": 2000}
    # Files: text beside numbers.
    frame.to_csv("people.csv", index=False)
    assert vertimrf.draft_schema("people.csv").schema == draft.schema
    assert vertimrf.evaluate("people.csv", rows)["records"]["real"] == 3000
    trial = vertimrf.synthesize(frame, epsilon=1.0, schema=draft.schema)
    assert trial.model.sample(10, given={"smoker": "yes"}).num_rows == 10
    pytest.importorskip("jinja2")
    for made in (synthesizer, trial):
        vertimrf.write_report(made, "page.html", real=frame)
        assert "smoker" in (tmp_path / "page.html").read_text()


def test_what_a_notebook_shows_is_a_line(tmp_path):
    frame, keys = people(), {name: vertimrf.PrivateKey.new(name) for name in ("h", "i", None)}
    smoker = Attribute.categorical("smoker", frame["smoker"].unique())
    wards = Attribute.integer("ward", 4, missing=True)
    schema = Schema.of({"h": [smoker], "i": [wards]})
    public = vertimrf.PublicKeys.of([key.offer for key in keys.values()], ["h", "i"])
    planning = vertimrf.PlanOptions(expected_records=3000)
    plan = vertimrf.make_plan(schema, epsilon=1.0, planning=planning, public_keys=public)
    party = vertimrf.Party(plan, "h", vertimrf.Secret.new(), key=keys["h"])
    records = party.encode(frame.reset_index(names="id"), id="id")
    age = {"name": "age", "bins": "private"}
    synthesizer = Synthesizer(Schema.of({"h": [smoker]}))
    unfitted = repr(synthesizer)
    trial = vertimrf.synthesize(frame, epsilon=1.0, schema=schema.of({"h": [smoker]}))
    shown = [
        (smoker, "<smoker: 2 values>"),
        (wards, "<ward: codes 0 to 3, or missing>"),
        (schema, "<Schema of 2 attributes: h 1, i 1>"),
        (vertimrf.OpenSchema.from_json({"party": [{"name": "h", "attribute": [age]}]}), "age"),
        (
            vertimrf.Impossible.of(age={"below": 15}, smoker="yes"),
            "age below 15 and smoker = 'yes'",
        ),
        (plan, f"<Plan {plan.fingerprint[:9]}: epsilon 1, "),
        (plan.ledger(), " events; Private (add or remove one record): epsilon "),
        (public, "<PublicKeys of <Offer of 'h'>, <Offer of 'i'> and <Offer of the server>>"),
        (party, "<Party 'h' of <Plan "),
        (vertimrf.Server(plan), "<Server of <Plan "),
        (records, "<Table of 1 attributes, 3,000 records>"),
        (party.run(records), "<Message of party 0: "),
        (synthesizer.fit(frame, epsilon=1.0), "<Synthesizer of <Model of 1 attributes, "),
        (trial, " rows of <Model of 1 attributes, "),
        (trial.result, " rows of <Plan "),
    ]
    assert "call fit" in unfitted
    for value, words in shown:
        line = repr(value)
        assert words in line, line
        assert len(line) < 160
        assert not any(word in line for word in ("\n", "array(", " at 0x")), line


def test_mistakes_in_a_notebook_are_told_in_a_sentence():
    frame, smoker = people(), Attribute.categorical("smoker", ["no", "yes"])
    schema = Schema.of({"h": [smoker]})
    fitted = Synthesizer(schema).fit(frame, epsilon=1.0)
    for mistake, words in (
        (lambda: Synthesizer("schema.toml"), "The schema is a str; give a Schema"),
        (lambda: Synthesizer(schema).fit(frame, epsilon="1"), "above 0, not '1'"),
        (lambda: Synthesizer(schema).fit([1], epsilon=1.0), "is not a table"),
        (lambda: Synthesizer(schema).sample(10), "has not been fitted"),
        (lambda: fitted.sample(2.5), "num_rows (--rows), is 2.5; give a whole number such as 2."),
        (
            lambda: fitted.sample(1e3),
            "num_rows (--rows), is 1000.0; give a whole number such as 1000.",
        ),
        (lambda: fitted.sample(0), "num_rows (--rows), is 0; give at least 1, or leave it out"),
        (lambda: fitted.sample(1 << 32), "4,294,967,295 are the most; draw several times"),
        (lambda: fitted.sample(10, given="smoker=yes"), "write values by column"),
        (lambda: fitted.sample(10, given={"smoker": "pipe"}), "the nearest values are"),
        (lambda: vertimrf.evaluate(frame, frame, schema="s.toml"), "the complete schema"),
        (lambda: vertimrf.evaluate([frame, frame], frame), "the complete schema"),
        (lambda: vertimrf.write_report(Synthesizer(schema), "x.html"), "has not been fitted"),
    ):
        with pytest.raises(vertimrf.VertiMRFError, match=re.escape(words)):
            mistake()


def messy(path, encoding="cp1252", delimiter=";"):
    """A table as offices export them: no number and no date as a computer would write it."""
    rng = np.random.default_rng(0)
    days = pd.Timestamp(2019, 1, 1) + pd.to_timedelta(rng.integers(0, 700, 1500), "D")
    price = rng.gamma(4, 300, 1500)
    table = pd.DataFrame(
        {
            "customer": 10_000 + rng.permutation(1500),
            "phone": rng.integers(43_660_000_000, 43_669_999_999, 1500),
            "day": days.strftime("%d/%m/%Y"),
            "seen": days.strftime("%d.%m.%Y 14:30"),
            "paid": [f"${value:,.0f}" for value in price],
            "rate": [f"{value}%" for value in rng.integers(0, 40, 1500)],
            "area": [f"{value:,.1f}".replace(",", " ").replace(".", ",") for value in price],
            "zip": [f"{value:05}" for value in rng.integers(100, 130, 1500)],
            "smoker": rng.choice(["Y", "y", "n "], 1500),
            "town": rng.choice(["Málaga", "Wien", "Köln"], 1500),
        }
    )
    table.to_csv(path, index=False, sep=delimiter, encoding=encoding)
    return table.assign(price=price, days=days)


def test_an_export_of_an_office_goes_from_file_to_report(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    table = messy("office.csv")
    said = good("schema draft office.csv --out s.toml")
    for words in (
        "column 'customer' has another whole number in nearly every record",
        "column 'phone' has another whole number in nearly every record",
        "column 'day' has dates as %d/%m/%Y",
        "column 'paid' has numbers such as '$",
        "read with the decimal mark ','",
        "column 'smoker' has the values 'Y' and 'y'",
        "cells are separated by ';'",
        "is not UTF-8: read as cp1252, as the draft says",
    ):
        assert words in said, words
    schema = Schema.load("s.toml")
    by_name = {attribute.name: attribute for attribute in schema.attributes}
    assert set(table).difference(by_name) == {"customer", "phone", "price", "days"}
    assert by_name["zip"].values[0] == "00100"
    assert by_name["town"].values == ("Köln", "Málaga", "Wien")
    assert [by_name[name].format for name in ("day", "seen", "paid", "rate", "area")] == [
        *("%d/%m/%Y", "%d.%m.%Y %H:%M", "$#,##0", "0%", "# ##0,0"),
    ]
    assert "is ready for s.toml" in good("check office.csv --schema s.toml")
    made = "--epsilon 5 --plain --out made.csv --model m --json r.json"
    good("synthesize office.csv --schema s.toml", made)
    rows = pd.read_csv("made.csv", parse_dates=["day"])
    assert rows["paid"].mean() == pytest.approx(table["price"].mean(), rel=0.1)
    assert rows["area"].mean() == pytest.approx(table["price"].mean(), rel=0.1)
    assert abs((rows["day"].mean() - table["days"].mean()).days) < 40
    good("sample m --out as_it_came.csv")
    as_it_came = pd.read_csv("as_it_came.csv")
    assert as_it_came["paid"].str.startswith("$").all()
    assert as_it_came["day"].str.fullmatch(r"\d\d/\d\d/\d{4}").all()
    for name in ("made", "as_it_came"):
        compared = good(f"evaluate --real office.csv --synthetic {name}.csv --schema s.toml")
        assert "3-way TVD" in compared
    good("report m r.json --real office.csv --encoding cp1252 --out page.html")
    # Beside what is private the page says what for.
    page = (tmp_path / "page.html").read_text()
    told = Figures(page).told
    assert contradictions(page) == []
    for subject in ("single columns", "three columns together"):
        assert {(subject, "predicted"), (subject, "truth")} <= told.keys()


def test_dates_that_may_be_of_two_kinds_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"day": ["01/02/2019", "03/04/2019"] * 9, "x": [1, 2] * 9}).to_csv("d.csv")
    said = good("schema draft d.csv --out s.toml")
    assert (
        "has dates that may be %d/%m/%Y or %m/%d/%Y: say dates='day-first' or 'month-first' (--dates)"
        in said
    )
    assert "day" not in Schema.load("s.toml").names
    for order, format, first in (
        ("day", "%d/%m/%Y", "2019-02-01"),
        ("month", "%m/%d/%Y", "2019-01-02"),
    ):
        good(f"schema draft d.csv --dates {order}-first --out {order}.toml")
        day = Schema.load(f"{order}.toml").attributes[0]
        assert (day.format, day.value_text(day.edges[0])) == (format, first)


@pytest.mark.parametrize(
    "cells, format, numbers",
    [
        (["$1,200", "$950", "-$3"], "$#,##0", [1200, 950, -3]),
        (["1 234,5", "7,25", "-3"], "# ##0,#", [1234.5, 7.25, -3]),
        (["1.234,5 €", "7 €", "0,5€"], "#.##0 €", [1234.5, 7, 0.5]),
        (["1\u202f234", "2\u00a0345", "3"], "#\u202f##0", [1234, 2345, 3]),
        (["\u22121.5", "20", "+3"], "0;\u22120", [-1.5, 20, 3]),
    ],
)
def test_numbers_as_people_write_them(tmp_path, cells, format, numbers):
    pd.DataFrame({"x": cells * 5}).to_csv(tmp_path / "p.csv", index=False)
    draft = vertimrf.draft_schema(tmp_path / "p.csv")
    (attribute,) = draft.schema.attributes
    assert attribute.format == format
    assert (attribute.edges[0], max(numbers)) == (
        min(numbers),
        pytest.approx(attribute.edges[-1], abs=1),
    )
    # A number that is written in another way, and a text, do not fit.
    odd = pd.DataFrame({"x": [*cells, "1,2,3", "12 dogs", "1.2.3"]})
    synthesizer = Synthesizer(draft.schema).fit(odd, epsilon=1.0)
    assert synthesizer.dropped.records == 3


def test_times_of_day_as_people_write_them(tmp_path):
    times = {
        "at": ["6:53", "23:05"],
        "until": ["6:53 PM", "12:05 AM"],
        "sum": [str(10**25), str(10**25 + 1)],
    }
    pd.DataFrame({name: cells * 9 for name, cells in times.items()}).to_csv(tmp_path / "t.csv")
    draft = vertimrf.draft_schema(tmp_path / "t.csv")
    at, until = draft.schema.attributes[-2:]
    assert (at.calendar, at.format) == ("time", "%-H:%M")
    assert (until.calendar, until.format) == ("time", "%-I:%M %p")
    codes = [
        one.encoder("x")(pa.chunked_array([pa.array(times[one.name])])).tolist()
        for one in (at, until)
    ]
    assert codes == [[0, 1], [1, 0]]
    assert "'sum' has whole numbers of more than 64 bits that no decimal tells apart" in str(
        draft.flags[-1]
    )


def test_a_format_is_part_of_the_schema_and_never_guessed_at_a_release(tmp_path):
    days = temporal("day", "date", ["2019-01-01", "2019-12-31"])
    frame = pd.DataFrame({"day": ["31/12/2019", "2019-05-05"] * 50})
    assert Synthesizer(Schema.of({"h": [days]})).fit(frame, epsilon=1.0).dropped.records == 50
    written = dataclasses.replace(days, format="%d/%m/%Y")
    schema = Schema.of({"h": [written]})
    assert Synthesizer(schema).fit(frame, epsilon=1.0).dropped.records == 0
    schema.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml") == schema
    price = Attribute.numeric("price", [0, 10, 2000], format=".")
    for attribute, cell, fitting in (
        (price, "0,567", "1.5"),
        (dataclasses.replace(price, format=","), "1.5", "0,567"),
        (dataclasses.replace(days, format="%Y-%d-%m"), "2019-05-31", "2019-31-05"),
    ):
        frame = pd.DataFrame({attribute.name: [cell] * 50})
        # Of a table of which no record fits, nothing is made.
        frame.loc[50] = [fitting]
        fitted = Synthesizer(Schema.of({"h": [attribute]})).fit(frame, epsilon=1.0)
        assert fitted.dropped.records == 50, cell
    for wrong in ({"format": "dd/mm"}, {"format": 3}, {"calendar": "date", "format": "$"}):
        with pytest.raises(vertimrf.VertiMRFError, match="decimal mark"):
            dataclasses.replace(days, **wrong)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_a_draft_names_the_encoding(tmp_path, caplog, name, encoding):
    frame = pd.DataFrame({"town": ["Málaga", "Köln"] * 9, "x": [1, 2] * 9})
    frame.to_csv(tmp_path / name, index=False, encoding=encoding)
    schema = vertimrf.draft_schema(tmp_path / name).schema
    assert schema.attributes[0].values == ("Köln", "Málaga")
    assert (f"read as {encoding}, as the draft says" in caplog.text) == (encoding != "utf-8")
    assert f'encoding = "{encoding}"' in schema.to_toml()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_says_what_separates_cells(tmp_path, delimiter):
    frame = pd.DataFrame({"a, b": ["x;y|z", "u"] * 9, "c": [1, 2] * 9, "d": [3, 4] * 9})
    frame.to_csv(tmp_path / "t.csv", index=False, sep=delimiter)
    assert vertimrf.draft_schema(tmp_path / "t.csv").schema.names == ("a, b", "c", "d")


def test_a_draft_is_short_and_is_signed_off_domain_by_domain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    town = [f"Town {i}" for i in rng.integers(0, 200, 3000)]
    pd.DataFrame({"town": town, "age": rng.integers(18, 100, 3000)}).to_csv("p.csv", index=False)
    good("schema draft p.csv --out s.toml")
    text = (tmp_path / "s.toml").read_text()
    # 200 towns and 17 edges.
    assert max(map(len, text.splitlines())) <= 120
    assert text.count("\n") < 45
    assert Schema.load("s.toml") == vertimrf.draft_schema("p.csv").schema
    said = good("check p.csv --schema s.toml")
    assert "Bounds of column 'age' are the least or greatest number of the table" in said
    assert "The domain of column 'town', 'age' was read off data" in said

    def saved(text):
        (tmp_path / "s.toml").write_text(text)
        return Schema.load("s.toml")

    # Without its first lines the draft is no more public than before.
    assert text.count("public = false\n") == 1
    bare = text.replace("public = false\n", "")
    assert not saved(bare).public
    assert not saved(bare.replace('source = "data"', 'source = "codebook"', 1)).public
    assert "column 'age' was read off data" in good("check p.csv --schema s.toml")
    signed = bare.replace('source = "data"', 'source = "codebook"')
    assert saved(signed).public
    said = good("check p.csv --schema s.toml")
    assert "read off" not in said
    assert "Bounds of column 'age' are the least or greatest" in said
    assert not saved(f"public = false\n{signed}").public
    # The owner may sign all at once, and the file then keeps that.
    schema = saved(f"public = true\n{bare}")
    assert schema.public
    schema.save("again.toml")
    assert Schema.load("again.toml").public
    # A bound from public knowledge reveals nothing.
    wide = re.sub(r"edges = \[.*?\]", "bounds = [0, 120]\nbins = 12", signed, flags=re.DOTALL)
    assert saved(wide).public
    assert "least or greatest" not in good("check p.csv --schema s.toml")
    with pytest.raises(vertimrf.VertiMRFError, match="write where the domain is from"):
        saved(text.replace('source = "data"', 'source = ""'))


HOSPITAL = """
[[party]]
name = "hospital"
[[party.attribute]]
name = "smoker"
values = ["no", "yes"]
"""
INSURER = """
[[party]]
name = "insurer"
[[party.attribute]]
name = "ward"
codes = 4
"""


@pytest.fixture
def two(folder):
    """A hospital that writes B000123, and an insurer that writes 123.0 for the same person."""
    people = pd.read_csv("people.csv")
    key = [f"B{key:06d}" for key in people["key"]]
    people.assign(key=key)[["key", "smoker"]].to_csv("hospital.csv", index=False)
    people.assign(key=people["key"].astype(float))[["key", "ward"]].to_csv(
        "insurer.csv", index=False
    )
    return folder


def test_ids_written_in_two_ways_are_refused_before_there_is_a_plan(two):
    for name in ("hospital", "insurer"):
        good(f"schema draft {name}.csv --id key --name {name} --out {name}.toml")
    said = refused("schema merge hospital.toml insurer.toml --out s.toml")
    assert "'A000000' at hospital, and '9.9' at insurer" in said
    assert not (two / "s.toml").exists()
    # Forms are drafted from the data like domains, and released in the same way.
    assert "public = false" in (two / "hospital.toml").read_text()
    assert "the form of ids" in good("schema draft hospital.csv --id key --out h.toml")
    # So its owner signs it off in the same way, and no merge hides that nobody did.
    text = (two / "h.toml").read_text().replace("public = false\n", "")
    signed = text.replace('\nsource = "data"', '\nsource = "codebook"')
    (two / "h.toml").write_text(signed)
    assert not Schema.load("h.toml").public
    said = good("check hospital.csv --schema h.toml --id key")
    assert (
        "The form of ids 'A000000' was read off data: name its public source as ids_source" in said
    )
    (two / "other.toml").write_text(INSURER)
    assert "drafted from data" in good("schema merge h.toml other.toml --out joint.toml")
    assert not Schema.load("joint.toml").public
    (two / "h.toml").write_text(signed.replace('ids_source = "data"', 'ids_source = "card"'))
    assert Schema.load("h.toml").public
    assert "read off" not in good("check hospital.csv --schema h.toml --id key")
    with pytest.raises(vertimrf.VertiMRFError, match="ids_source is empty"):
        dataclasses.replace(Schema.load("h.toml"), ids_source="")
    # No character of an id is copied.
    assert "B0" not in (two / "hospital.toml").read_text()
    said = good("schema draft hospital.csv insurer.csv --id key --out both.toml")
    assert "ids of different forms, 'A000000' at party1, '9.9' at party2" in said
    assert Schema.load("both.toml").ids is None


def test_check_says_how_many_ids_do_not_fit(two):
    (two / "hospital.toml").write_text(f'ids = "A000000"{HOSPITAL}')
    (two / "insurer.toml").write_text(INSURER)
    said = good("schema merge hospital.toml insurer.toml --out s.toml")
    assert "insurer.toml does not state the form of its ids" in said
    assert "is ready" in good("check hospital.csv --schema s.toml --name hospital --id key")
    said = refused("check insurer.csv --schema s.toml --name insurer --id key")
    assert "3,000 of 3,000 ids do not have the form 'A000000'" in said
    assert "The form of ids: '9.9'" in said
    (two / "none.toml").write_text(HOSPITAL + INSURER)
    said = good("check insurer.csv --schema none.toml --name insurer --id key")
    assert "does not state the form of ids" in said
    assert "vertimrf align" in said


def begin(folder, schema):
    """Both parties and the server, up to the plan, whose fingerprint it gives."""
    (folder / "x").mkdir()
    (folder / "s.toml").write_text(schema)
    good("run server server --schema s.toml --epsilon 1 --expected-records 3000 --exchange x")
    for name in ("hospital", "insurer"):
        good(f"run party {name} --name {name} --table {name}.csv --id key --exchange x")
    good("run server server")
    for name in ("hospital", "insurer"):
        good(f"run party {name}")
    return json.loads(good("status server --json -"))["plan"]


def test_the_form_of_ids_is_shown_where_the_fingerprint_is(two):
    fingerprint = begin(two, f'ids = "A000000"{HOSPITAL}{INSURER}')
    form = "of the form 'A000000'"
    for words in ("inspect server/plan", "status hospital"):
        assert form in good(words), words
    assert "3,000 of 3,000 ids do not have" in refused("check insurer")
    assert f"{form}. " in good(f"accept hospital {fingerprint} --anyway")


def to_messages(fingerprint):
    """From the plan to both messages at the server."""
    for name in ("hospital", "insurer"):
        good(f"accept {name} {fingerprint} --anyway")
    good("run party hospital")
    run("run server server")
    good("run party insurer")
    assert "waits for the server to say whether ids match" in good("status insurer")


def test_after_a_bad_match_every_role_says_so_and_names_the_remedy(two):
    to_messages(begin(two, HOSPITAL + INSURER))
    assert "align" in refused("run server server")
    bad = "FAR FEWER people in common than the plan expects"
    for name in ("hospital", "insurer"):
        assert bad in good(f"run party {name} --wait")
    for role in ("hospital", "insurer", "server"):
        said = good(f"status {role}")
        assert bad in said
        assert "vertimrf align" in said
    # In one process, the end of the run says it.
    tables = "hospital.csv insurer.csv --id key --schema s.toml --epsilon 1 --out made.csv"
    assert "align" in refused(f"synthesize {tables}")


def test_a_party_name_that_the_run_does_not_have_is_refused_at_once_at_both_sides(two):
    (two / "s.toml").write_text(HOSPITAL + INSURER)
    good("run server server --schema s.toml --epsilon 1 --expected-records 3000 --exchange x")
    start = "--table hospital.csv --id key --exchange x"
    said = refused(f"run party clinic --name hospitl {start}")
    assert "'hospitl' is no party of this run, whose parties are 'hospital', 'insurer'" in said
    assert "'hospitl' is no party of this run" in good("status clinic")
    # Nothing of it went to the others.
    assert not (two / "x" / "parties").exists()
    good(f"run party hospital --name hospital {start}")
    # A party that came before the server is named there.
    (two / "x" / "parties" / "hospitl").mkdir()
    said = good("run server server")
    assert "x/parties/hospitl is of no party of this run" in said
    assert "x/parties/hospitl is of no party of this run" in good("status server")
    (two / "x" / "parties" / "hospitl").rmdir()
    good("run server server")
    assert "no party of this run" not in good("status server")


@pytest.mark.parametrize("content", [b"", b"[", b'{"a": 1}'])
def test_a_list_of_parties_that_somebody_broke_stops_nobody(two, content):
    (two / "x" / "server").mkdir(parents=True)
    (two / "x" / "server" / "of.parties").write_bytes(
        content + hashlib.sha256(content).digest() if content else content
    )
    good("run party h --name hospital --table hospital.csv --id key --exchange x")


def test_edits_of_the_settings_show_in_every_status(two):
    begin(two, HOSPITAL + INSURER)
    for role in ("hospital", "server"):
        assert "Edited" not in good(f"status {role}")
    path = two / "hospital" / "run.toml"
    path.write_text(path.read_text().replace("id_format = []", 'id_format = ["strip"]'))
    edited = "Edited: run.toml has id_format = ['strip']; the run began with []."
    assert edited in good("status hospital")
    assert edited in good("run party hospital")
    assert json.loads(good("status hospital --json -"))["edited"]
    path = two / "server" / "run.toml"
    path.write_text(path.read_text().replace("epsilon = 1.0", "epsilon = 2.0"))
    assert "run.toml has epsilon = 2.0; the run began with 1.0" in good("status server")
    path.with_name("run.toml.first").write_text("epsilon =")
    assert "run.toml.first cannot be read" in refused("status server")


def test_check_names_all_that_is_wrong_in_one_pass(folder):
    people = pd.read_csv("people.csv").head(100)
    people["key"] = [[key] for key in people["key"]]
    people.drop(columns="ward").assign(smoker="perhaps").to_parquet("odd.parquet")
    (folder / "s.toml").write_text(
        HOSPITAL + INSURER.partition("\n[[party.attribute]]")[2].join(["\n[[party.attribute]]", ""])
    )
    said = refused("check odd.parquet --schema s.toml --id key")
    for problem in ("ids are of the type list", "lacks the column 'ward'", "holds 'perhaps'"):
        assert problem in said, problem


def test_a_ledger_fits_a_terminal(folder):
    names = [f"{name}_of_the_county_with_a_long_name" for name in ("hospital", "insurer")]
    schema = HOSPITAL.replace("hospital", names[0]) + INSURER.replace("insurer", names[1])
    (folder / "s.toml").write_text(schema)
    said = good("plan --schema s.toml --epsilon 1 --expected-records 3000")
    table = said[said.index("party  ") :].partition("\nTotal:")[0].splitlines()
    assert len(table) > 8
    assert max(map(len, table)) <= 100
    # Nothing is lost by it.
    for word in ("one-way", "marginal", "county", "discrete", "Gaussian", "sketches"):
        assert word in " ".join(table)


def test_a_condition_is_written_as_in_a_schema_whatever_the_format_of_the_data():
    price = Attribute.numeric("price", [0, 10, 2000], format=",")
    day = temporal("day", "date", ["2019-01-01", "2019-03-01", "2020-01-01"], format="%Y-%d-%m")
    code = Attribute.integer("code", 5)
    for attribute, value, codes in (
        (price, "1500", [1]),
        (price, "1,500", [0]),
        (day, datetime.date(2019, 1, 5), [0]),
        (code, np.array([1, 2]), [1, 2]),
    ):
        assert allowed(attribute, value, lambda: np.ones(2))[0].tolist() == codes
    with pytest.raises(vertimrf.VertiMRFError, match=r"'1\.500' may be 1\.5, or 1500 as column"):
        allowed(price, "1.500", lambda: np.ones(2))
    with pytest.raises(vertimrf.VertiMRFError, match="not values of one kind"):
        allowed(code, 2**70, lambda: np.ones(5))


def test_a_draft_states_the_form_that_an_id_format_leaves():
    tables = [
        pd.DataFrame({"id": ids, name: [1, 2]})
        for name, ids in (("a", ["07", "08"]), ("b", [7, 8]))
    ]
    read = vertimrf.ReadOptions(id_format=("unpad",))
    assert vertimrf.draft_schema(tables, "id").schema.ids is None
    assert vertimrf.draft_schema(tables, "id", read=read).schema.ids == "9"
    with pytest.raises(vertimrf.VertiMRFError, match="give each table one"):
        vertimrf.draft_schema(tables, "id", names=["a", "a"])


def test_metadata_of_sdv_is_a_schema_and_can_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    days = pd.Timestamp(2019, 1, 1) + pd.to_timedelta(rng.integers(0, 365, 4000), "D")
    guests = pd.DataFrame(
        {
            "guest_email": [f"{number}@example.org" for number in range(4000)],
            "has_rewards": rng.random(4000) < 0.3,
            "room_type": rng.choice(["BASIC", "DELUXE", "SUITE"], 4000, p=[0.6, 0.3, 0.1]),
            "amenities_fee": rng.gamma(2, 10, 4000).round(2),
            "nights": rng.integers(1, 15, 4000),
            "checkin_date": days.strftime("%d %b %Y"),
            "billing_address": "Main Street 1",
        }
    )
    guests.loc[::9, "amenities_fee"] = np.nan
    guests.to_csv("guests.csv", index=False)
    # As SDV documents it.
    columns = {
        "guest_email": {"sdtype": "email", "pii": True},
        "has_rewards": {"sdtype": "boolean"},
        "room_type": {"sdtype": "categorical"},
        "amenities_fee": {"sdtype": "numerical", "computer_representation": "Float"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "checkin_date": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "billing_address": {"sdtype": "address", "pii": True},
    }
    table = {"primary_key": "guest_email", "columns": columns, "column_relationships": []}
    for metadata in (
        {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", **table},
        {"METADATA_SPEC_VERSION": "V1", "tables": {"guests": table}, "relationships": []},
    ):
        (tmp_path / "metadata.json").write_text(json.dumps(metadata))
        assert "is ready" in good("check guests.csv --schema metadata.json")
    out = "--epsilon 20 --out made.csv"
    said = good(f"synthesize guests.csv --schema metadata.json {out}")
    assert "does not have it: column 'guest_email', 'billing_address'" in said
    # Nothing was read off the data but with noise.
    assert "NOT PRIVATE" not in said
    made = pd.read_csv("made.csv", parse_dates=["checkin_date"])
    assert made["room_type"].eq("BASIC").mean() == pytest.approx(0.6, abs=0.05)
    assert made["amenities_fee"].mean() == pytest.approx(20, rel=0.15)
    assert (made["nights"].dropna() % 1 == 0).all()
    assert abs((made["checkin_date"].mean() - days.mean()).days) < 20
    # The way back: what SDV needs to read such a table.
    good("schema merge made.csv.schema.toml --out made.sdv.json")
    written = json.loads((tmp_path / "made.sdv.json").read_text())
    assert written["METADATA_SPEC_VERSION"] == "V2"
    kept = {name: said for name, said in columns.items() if "pii" not in said}
    # SDV 2 has no types of numbers, but their decimals.
    kept["amenities_fee"], kept["nights"] = (
        {"sdtype": "numerical"},
        {"sdtype": "numerical", "decimal_places": 0},
    )
    assert written["tables"]["table"]["columns"] == kept
    assert written["relationships"] == []
    # A plan needs the domains, and says what finds them.
    said = refused("plan --schema made.sdv.json --epsilon 1 --expected-records 4000")
    assert "`vertimrf schema domains` finds it" in said
    for wrong, words in (
        ({"tables": {"a": table, "b": table}}, "must describe one table"),
        ({}, "lists no columns"),
        ({"columns": {"x": {"sdtype": "datetime"}}}, "no datetime_format of column 'x'"),
        ({"columns": {"x": 3}}, "no sdtype of column 'x'"),
    ):
        with pytest.raises(vertimrf.VertiMRFError, match=words):
            vertimrf.OpenSchema.from_json({"METADATA_SPEC_VERSION": "V1", **wrong})


def test_values_that_differ_by_case_or_spaces_alone_count_as_one_unless_both_are_listed(tmp_path):
    smoker = ["Y"] * 700 + ["y"] * 300 + [" y "] * 100 + ["n "] * 900 + ["N"] * 50 + ["NA"] * 9
    frame = pd.DataFrame({"smoker": smoker})
    frame.to_csv(tmp_path / "p.csv", index=False)
    draft = vertimrf.draft_schema(tmp_path / "p.csv")
    assert draft.schema.attributes[0].values == ("Y", "n ")
    assert "count as one; list both if they are two" in str(draft.flags[0])
    made = Synthesizer(draft.schema).fit(frame, epsilon=5.0).sample(2000, seed=0).to_pandas()
    assert made["smoker"].eq("Y").mean() == pytest.approx(1100 / 2059, abs=0.05)

    def left_out(*values, other=None):
        schema = Schema.of({"h": [Attribute.categorical("smoker", values, other=other)]})
        return Synthesizer(schema).fit(frame.dropna(), epsilon=5.0).dropped.records

    # The nine that are missing do not fit. A spelling between two listed ones is neither.
    assert left_out("Y", "N") == 9
    assert left_out("Y", "y", "N") == 109
    assert left_out("Y", "y", "other", other="other") == 9
    # A column of true and false takes them as any office writes them.
    flags = pd.DataFrame({"x": ["TRUE ", "false", "True"] * 50})
    schema = Schema.of({"h": [Attribute.categorical("x", [False, True])]})
    assert Synthesizer(schema).fit(flags, epsilon=5.0).dropped.records == 0


def test_a_long_list_of_values_is_a_file_beside_the_draft(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    towns = [f"Town {i}, {'é' * 30}" for i in range(200)]
    frame = pd.DataFrame({"Town / city": rng.choice(towns, 4000), "ward": rng.choice(9, 4000)})
    frame.to_csv("p.csv", index=False)
    for schema in ("s.toml", "s2.json"):
        good(f"schema draft p.csv --out {schema}")
        path = tmp_path / f"{schema.partition('.')[0]}.Town_city.txt"
        assert path.read_text().splitlines() == sorted(towns)
        assert Schema.load(schema) == vertimrf.draft_schema("p.csv").schema
        assert f'"{path.name}"' in (tmp_path / schema).read_text()
    assert len((tmp_path / "s.toml").read_text()) < 400
    # Its owner edits it in any editor, and every command reads it.
    path.rename("s.Town_city.txt")
    edited = "\ufeff" + "\r\n".join([*sorted(towns), "Elsewhere"])
    (tmp_path / "s.Town_city.txt").write_text(edited, newline="")
    good("check p.csv --schema s.toml")
    assert "Town / city (201), ward (9)" in good("inspect s.toml")
    good("synthesize p.csv --schema s.toml --epsilon 5 --out made.csv")
    # What goes to others is one file.
    good("schema merge s.toml --out all.toml")
    (tmp_path / "s.Town_city.txt").rename("kept.txt")
    assert "Elsewhere" in Schema.load("all.toml").attributes[0].values
    assert "Cannot read the list of values s.Town_city.txt" in refused("inspect s.toml")
    # SDV's metadata names no value, so no list is written; nor is one that a reader would change.
    good("schema draft p.csv --out bare.sdv.json")
    assert not list(tmp_path.glob("bare*.txt"))
    marked = Schema.of({"a": [Attribute.categorical("c", ["\ufeffx", *map(str, range(200))])]})
    marked.save("marked.toml", lists_apart=True)
    # Columns whose names give the same file name have a file each.
    columns = [Attribute.categorical(n, [f"{n}{i}" for i in range(200)]) for n in ("d d", "d/d")]
    Schema.of({"a": columns}).save("two.toml", lists_apart=True)
    assert Schema.load("two.toml") == Schema.of({"a": columns})
    assert Schema.load("marked.toml") == marked
    # A draft does not replace a list that may be edited.
    (tmp_path / "t.Town_city.txt").write_text("mine\n")
    assert "t.Town_city.txt exists" in refused("schema draft p.csv --out t.toml")
    assert (tmp_path / "t.Town_city.txt").read_text() == "mine\n"
    assert not (tmp_path / "t.toml").exists()


def test_a_schema_of_another_party_names_no_file_of_its_reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part").mkdir()
    for secret in (tmp_path / "secrets.txt", tmp_path / "part" / "passwords.txt"):
        secret.write_text("hunter2\nhunter3\n")
    (tmp_path / "part" / "h.link.txt").symlink_to(tmp_path / "secrets.txt")
    (tmp_path / "part" / "h.big.txt").write_bytes(b"x\n" * (1 << 25) + b"x")
    (tmp_path / "part" / "h.odd.txt").write_bytes(b"\xff\n")
    for name in ("../secrets.txt", "passwords.txt", "h./../../secrets.txt", "h.\\n.txt"):
        section = f'[[party]]\nname = "h"\n[[party.attribute]]\nname = "x"\nvalues = "{name}"\n'
        (tmp_path / "part" / "h.toml").write_text(section)
        assert "is called h.COLUMN.txt" in refused("schema merge part/h.toml --out s.toml"), name
    for name, words in (
        ("h.link.txt", "Too many levels of symbolic links"),
        ("h.big.txt", "has more than"),
        ("h.odd.txt", "no text in UTF-8"),
        ("h.none.txt", "No such file"),
    ):
        section = f'[[party]]\nname = "h"\n[[party.attribute]]\nname = "x"\nvalues = "{name}"\n'
        (tmp_path / "part" / "h.toml").write_text(section)
        assert words in refused("schema merge part/h.toml --out s.toml"), name
    assert not (tmp_path / "s.toml").exists()


def test_the_lists_of_a_schema_are_limited_together(tmp_path, monkeypatch):
    monkeypatch.setattr(value_files, "MAX_JSON", 5)
    attributes = [{"name": name, "values": "h.v.txt"} for name in "ab"]
    (tmp_path / "h.json").write_text(
        json.dumps({"party": [{"name": "p", "attribute": attributes}]})
    )
    (tmp_path / "h.v.txt").write_text("x\ny\n")
    with pytest.raises(SchemaError, match="has more than"):
        Schema.load(tmp_path / "h.json")


@pytest.mark.parametrize(
    "options, wrong, words",
    [
        (
            vertimrf.PlanOptions,
            {"expected_records": "x"},
            "expected_records is of type str; give a whole number, or None.",
        ),
        (
            vertimrf.PlanOptions,
            {"shares": (0.5, 0.5)},
            "give a list of 3 of which each is a number",
        ),
        (
            vertimrf.PlanOptions,
            {"records_per_person": True},
            "is of type bool; give a whole number.",
        ),
        (vertimrf.ReadOptions, {"delimiter": 3}, "delimiter is of type int; give text."),
        (FitOptions, {"progress": 3}, "progress is of type int; give a function, or None."),
        (
            vertimrf.EvaluationOptions,
            {"marginals": 2.5},
            "marginals is of type float; give a whole number.",
        ),
        (
            vertimrf.RunOptions,
            {"rows": "all"},
            "rows is of type str; give a whole number, or None.",
        ),
        (vertimrf.RunOptions, {"progress": print}, "give a Progress."),
    ],
)
def test_an_option_of_a_wrong_type_is_told_in_a_sentence(options, wrong, words):
    with pytest.raises(vertimrf.VertiMRFError, match=re.escape(words)):
        options(**wrong)


def test_numbers_of_numpy_are_numbers_in_options():
    vertimrf.PlanOptions(expected_records=np.int64(3000), delta=np.float64(1e-9))
    vertimrf.EvaluationOptions(ways=range(2, 4), seed=np.int32(3))
    vertimrf.RunOptions(rows=np.uint32(10))
    vertimrf.PlanOptions(workload={("a", "b"): 1, ("c",): 2.0}, shares=np.array([0.2, 0.5, 0.3]))


def test_a_verdict_names_as_many_columns_as_there_are():
    columns = [Attribute.integer(name, 40) for name in "abcd"]
    for several, words in (
        (1, "Useless: a column is predicted to be wrong"),
        (2, "Useless: two columns together are predicted to be wrong"),
        (4, "Useless: three columns together are predicted to be wrong"),
    ):
        planning = vertimrf.PlanOptions(expected_records=100, even_if_useless=True)
        schema = Schema.of({"h": columns[:several]})
        plan = vertimrf.make_plan(schema, epsilon=0.1, planning=planning)
        assert str(verdict(plan)).startswith(words)
        assert ("three columns" in " ".join(verdict(plan).errors.lines())) == (several > 2)


def test_texts_of_another_encoding_are_named(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    town = ["Wien", "Graz"] * 120_000 + ["Köln", "Málaga"] * 20
    pd.DataFrame({"town": town}).to_csv("t.csv", index=False, encoding="cp1252")
    # The first megabyte does not tell.
    (flag,) = vertimrf.draft_schema("t.csv").flags
    assert r"has texts such as 'K\\xf6ln', with bytes of another encoding" in str(flag)
    good("schema draft t.csv --encoding cp1252 --out s.toml")
    assert "of another encoding" not in good("check t.csv --schema s.toml")
    part = (tmp_path / "s.toml").read_text()
    assert 'encoding = "cp1252"' in part
    (tmp_path / "s.toml").write_text(part.replace('encoding = "cp1252"', ""))
    said = refused("check t.csv --schema s.toml")
    assert r"40 texts of column 'town' have bytes of another encoding, read as \xNN" in said


def test_a_long_list_of_parties_does_not_fill_the_screen(two):
    parties = "".join(
        HOSPITAL.replace("hospital", f"clinic{i}").replace("smoker", f"x{i}") for i in range(60)
    )
    (two / "s.toml").write_text(parties)
    start = "--epsilon 1 --expected-records 100000 --exchange x --even-if-useless"
    good(f"run server server --schema s.toml {start}")
    said = refused("run party c --name clinic --table hospital.csv --id key --exchange x")
    assert "'clinic0', 'clinic1', 'clinic10', 'clinic11', 'clinic12' and 55 more" in said
