"""Rows that go back into SPSS, Stata, SAS and Excel: types, labels, order, missing codes and formats as the input had them."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from commands import good, refused

from vertimrf import PlanOptions
from vertimrf.errors import TableError
from vertimrf.options import RunOptions
from vertimrf.privacy.label import UNSTATED
from vertimrf.runs.server_run import ServerRun
from vertimrf.tables.codebook import Variable
from vertimrf.tables.programs.register import PROGRAMS
from vertimrf.tables.programs.register import write as write_program
from vertimrf.tables.programs.statistics import shown_as
from vertimrf.tables.sources import read_arrow, read_label
from vertimrf.tables.write import as_many_as_fit, check_output, check_size, write_table

N = 400
RNG = np.random.default_rng(77)
DAYS = [dt.date(2019, 1, 1) + dt.timedelta(days=int(day)) for day in RNG.integers(0, 900, N)]
MOMENTS = [
    dt.datetime(2020, 1, 1) + dt.timedelta(seconds=int(s)) for s in RNG.integers(0, 10**7, N)
]
STAYS = [dt.timedelta(hours=int(hour)) for hour in RNG.integers(0, 200, N)]
LABELS = {
    "answer": {1.0: "yes", 2.0: "no", 3.0: "yes"},
    "level": {1.0: "low", 2.0: "mid", 3.0: "high"},
    "rating": {1.0: "good", 2.0: "bad", 8.0: "refused", 9.0: "unknown"},
    "anchor": {1.0: "never", 7.0: "always"},
}
SPSS_LEVELS = {"answer": "scale", "level": "ordinal", "rating": "nominal", "anchor": "scale"}
SPSS_FORMATS = {"day": "SDATE10", "moment": "DATETIME20", "stay": "DTIME12", "pay": "F10.2"}
MISSING = {"rating": [{"lo": 8.0, "hi": 9.0}]}
TABLE = pa.table(
    {
        "whole": pa.array([1, 2, None, 5], pa.int64()),
        "number": [0.5, None, 2.25, -1.0],
        "truth": [True, False, None, True],
        "town": ["Łódź", None, "=1+1", "a"],
        "grade": pa.DictionaryArray.from_arrays([0, 1, None, 0], ["b", "a"], ordered=True),
        "day": [dt.date(1950, 2, 28), dt.date(2020, 2, 29), None, dt.date(9999, 12, 31)],
        "moment": pa.array([dt.datetime(2020, 3, 1, 7, 46, 9), None] * 2, pa.timestamp("s")),
        "clock": pa.array([dt.time(0), dt.time(23, 59, 59), None, dt.time(8)], pa.time32("s")),
        "stay": pa.array([dt.timedelta(hours=35), None, dt.timedelta(0), dt.timedelta(seconds=1)]),
    }
)  # fmt: skip


def frame():
    pd = pytest.importorskip("pandas")
    codes = {
        "answer": RNG.integers(1, 4, N),
        "level": RNG.integers(1, 4, N),
        "rating": RNG.choice([1, 2, 8, 9], N),
        "anchor": RNG.integers(1, 8, N),
        "pay": np.round(RNG.normal(1000, 100, N), 2),
    }
    cells = {name: cells + 0.0 for name, cells in codes.items()}
    seconds = np.array([(m - dt.datetime(1582, 10, 14)).total_seconds() for m in MOMENTS])
    return pd.DataFrame(cells), seconds


def spss(path):
    """A file of SPSS as its library writes it: an anchored scale, codes that it calls a scale, missing codes, dates and durations."""
    package = pytest.importorskip("pyreadstat")
    table, seconds = frame()
    table["day"] = [(day - dt.date(1582, 10, 14)).days * 86_400.0 for day in DAYS]
    table["moment"] = seconds
    table["stay"] = [stay.total_seconds() for stay in STAYS]
    table["town"] = np.array(["Łódź", "Zürich"])[RNG.integers(0, 2, N)]
    package.write_sav(
        table,
        str(path),
        variable_value_labels=LABELS,
        variable_measure=SPSS_LEVELS,
        variable_format=SPSS_FORMATS,
        missing_ranges=MISSING,
        column_labels={"answer": "What they said"},
    )
    return package


def synthesized(source, made, *options):
    """What a draft says, and rows of the source in a new file."""
    schema = made.parent / "schema.toml"
    drafted = good("schema draft", [str(source)], "--out", schema)
    words = f"--epsilon 1000 --rows {N} --seed 1 --threads 1"
    good("synthesize", [str(source)], words, "--schema", schema, "--out", made, *options)
    return drafted


@pytest.fixture(scope="module")
def of_spss(tmp_path_factory):
    """A folder with a file of SPSS (t.sav), rows of it in another (made.sav), their schema and model, and what the draft says."""
    folder = tmp_path_factory.mktemp("spss")
    spss(folder / "t.sav")
    (folder / "said").write_text(
        synthesized(folder / "t.sav", folder / "made.sav", "--model", folder / "m")
    )
    return folder


def test_spss_rows_go_back_with_labels_levels_missing_codes_and_formats(of_spss):
    import pyreadstat as package

    tmp_path, drafted = of_spss, (of_spss / "said").read_text()
    assert (
        "'anchor' has labels of some values, such as 'never', and the file calls it a scale"
        in drafted
    )
    assert "'answer' has labels" not in drafted
    old, was = package.read_sav(str(tmp_path / "t.sav"), user_missing=True)
    new, now = package.read_sav(str(tmp_path / "made.sav"), user_missing=True)
    assert list(new) == list(old)
    assert now.variable_value_labels == was.variable_value_labels == LABELS
    assert now.missing_ranges == was.missing_ranges == MISSING
    assert {name: now.variable_measure[name] for name in SPSS_LEVELS} == SPSS_LEVELS
    assert now.column_names_to_labels["answer"] == "What they said"
    for name, form in SPSS_FORMATS.items():
        assert now.original_variable_types[name] == form
    assert now.readstat_variable_types == was.readstat_variable_types
    for name in ("answer", "level", "anchor", "town"):
        assert set(new[name]) == set(old[name])
    # What is declared to be missing is missing, whatever its code was.
    assert set(new["rating"].dropna()) == {1.0, 2.0}
    assert new["day"].min() >= min(DAYS)
    assert new["day"].max() <= max(DAYS)
    # The label of privacy lies beside the file.
    assert read_label(tmp_path / "made.sav") != UNSTATED
    assert "not private" in good("inspect", tmp_path / "made.sav").lower()


def test_the_order_of_labels_is_that_of_their_codes(of_spss):
    text = (of_spss / "schema.toml").read_text()
    section = text.split('name = "level"')[1].split("[[")[0]
    assert '"low", "mid", "high"' in section
    assert "ordered = true" in section
    assert "ordered" not in text.split('name = "rating"')[1].split("[[")[0]


def test_stata_rows_go_back_with_labels_and_types(tmp_path):
    package = pytest.importorskip("pyreadstat")
    table, _ = frame()
    codes = table[["answer", "level", "rating", "anchor"]].astype("int32")
    table = table.assign(**codes, day=[(day - dt.date(1960, 1, 1)).days + 0.0 for day in DAYS])
    labels = {name: {int(c): text for c, text in its.items()} for name, its in LABELS.items()}
    package.write_dta(
        table,
        str(tmp_path / "t.dta"),
        variable_value_labels=labels,
        variable_format={"day": "%tdD_m_Y"},
    )
    synthesized(tmp_path / "t.dta", tmp_path / "made.dta")
    old, was = package.read_dta(str(tmp_path / "t.dta"))
    new, now = package.read_dta(str(tmp_path / "made.dta"))
    assert now.variable_value_labels == was.variable_value_labels
    assert now.readstat_variable_types == was.readstat_variable_types
    assert now.original_variable_types["day"] == "%tdD_m_Y"
    for name in labels:
        assert set(new[name]) == set(old[name])


def test_a_model_gets_the_labels_of_a_codebook(of_spss, tmp_path):
    import pyreadstat as package

    words = ("sample", of_spss / "m", "--rows 50 --seed 1 --out", tmp_path / "more.sav")
    good(*words, "--like", of_spss / "t.sav")
    _, meta = package.read_sav(str(tmp_path / "more.sav"))
    assert meta.variable_value_labels == LABELS
    good(*words)
    _, meta = package.read_sav(str(tmp_path / "more.sav"))
    assert meta.variable_value_labels == {}


@pytest.mark.parametrize("suffix", PROGRAMS)
def test_columns_of_each_kind_come_back(tmp_path, suffix):
    pytest.importorskip("xlsxwriter" if suffix == ".xlsx" else "pyreadstat")
    pytest.importorskip("python_calamine")
    path = tmp_path / f"t{suffix}"
    assert write_table(TABLE, path) == 4
    back = read_arrow(path)
    assert back.column_names == TABLE.column_names
    expected = {name: TABLE[name].to_pylist() for name in TABLE.column_names}
    seconds = [None if stay is None else stay.total_seconds() for stay in expected["stay"]]
    clocks = [
        None if c is None else c.hour * 3600.0 + c.minute * 60 + c.second for c in expected["clock"]
    ]
    if suffix in (".sav", ".dta"):
        expected["truth"] = [None if t is None else str(t).lower() for t in expected["truth"]]
    if suffix != ".xlsx":
        expected["clock"] = (
            clocks
            if suffix == ".dta"
            else [c if c is None else dt.timedelta(seconds=c) for c in clocks]
        )
    if suffix == ".dta":
        expected["stay"] = seconds
    for name, cells in expected.items():
        assert back[name].to_pylist() == cells, name


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_categories_have_codes_in_their_order(tmp_path, suffix):
    package = pytest.importorskip("pyreadstat")
    write_table(TABLE, tmp_path / f"t{suffix}")
    _, meta = getattr(package, f"read_{suffix[1:]}")(str(tmp_path / f"t{suffix}"))
    assert meta.variable_value_labels["grade"] == {1: "b", 2: "a"}
    if suffix == ".sav":
        measure = {
            name: meta.variable_measure[name] for name in ("grade", "truth", "town", "number")
        }
        assert measure == {
            "grade": "ordinal",
            "truth": "nominal",
            "town": "nominal",
            "number": "scale",
        }


@pytest.mark.parametrize(
    "suffix, column, sentence",
    [
        (".sav", pa.array([dt.date(1500, 1, 1)]), "has dates before 1582-10-15 or after 9999-12-31"),
        (".sav", pa.array([2**53 + 1]), "has whole numbers beyond 9,007,199,254,740,992"),
        (".dta", pa.array([dt.time(8)]), "has times of day, for which there is no format"),
        (".dta", pa.array([dt.timedelta(1)]), "has durations, for which there is no format"),
        (".dta", pa.array(["x" * 3000]), "has texts of more than 2,045 bytes, which are cut"),
        (".dta", pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("s", "UTC")), "has times of the zone UTC, and no zone"),
        (".xpt", pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("s", "Europe/Berlin")), "zone Europe/Berlin"),
        (".sav", pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 1)]), "has times of less than a millisecond"),
        (".xlsx", pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 1)]), "has times of less than a millisecond"),
        (".sav", pa.array([np.inf]), "has infinite numbers, which are written as missing"),
        (".dta", pa.array([1e308]), "has numbers beyond 8.988e+307, which are written as missing"),
        (".xpt", pa.array([-1e80]), "has numbers beyond 4.523e+74, which are written as missing"),
        (".xlsx", pa.array([dt.date(1850, 1, 1)]), "has dates before 1900-03-01, which are written as texts"),
        (".xlsx", pa.array([10**17 + 1]), "has numbers of more than 15 digits"),
        (".xlsx", pa.array(["x" * 40_000]), "has texts of more than 32,767 characters"),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold_is_said_in_one_sentence(
    tmp_path, caplog, suffix, column, sentence
):
    pytest.importorskip("xlsxwriter" if suffix == ".xlsx" else "pyreadstat")
    write_table(pa.table({"x": column}), tmp_path / f"t{suffix}")
    (record,) = caplog.records
    assert sentence in record.getMessage()
    assert PROGRAMS[suffix].name in record.getMessage()


@pytest.mark.parametrize(
    "suffix, names, found",
    [
        (".sav", ["Alter", "größe", "a b", "with", "A_B"], ["Alter", "größe", "a_b", "with_2", "A_B_2"]),
        (".dta", ["size", "größe", "a b", "long", "x" * 40], ["size", "gr__e", "a_b", "long_2", "x" * 32]),
        (".xpt", ["size", "1st", "SIZE"], ["size", "v_1st", "SIZE_2"]),
    ],
)  # fmt: skip
def test_names_that_a_program_does_not_take_are_changed_and_said(
    tmp_path, caplog, suffix, names, found
):
    package = pytest.importorskip("pyreadstat")
    write_table(pa.table({name: [1.0] for name in names}), tmp_path / f"t{suffix}")
    reader = {".sav": "read_sav", ".dta": "read_dta", ".xpt": "read_xport"}[suffix]
    _, meta = getattr(package, reader)(str(tmp_path / f"t{suffix}"))
    changed = [name for name, new in zip(names, meta.column_names, strict=True) if name != new]
    assert [
        meta.column_names_to_labels[new]
        for name, new in zip(names, meta.column_names, strict=True)
        if name != new
    ] == changed
    assert len(caplog.records) == len(changed)
    assert meta.column_names == found


def test_other_texts_than_labels_get_codes_of_their_own(tmp_path):
    package = spss(tmp_path / "t.sav")
    table = pa.table({"rating": ["good", "other", "5", None]})
    write_table(table, tmp_path / "made.sav", like=[tmp_path / "t.sav"])
    made, meta = package.read_sav(str(tmp_path / "made.sav"), user_missing=True)
    assert made["rating"].tolist()[:3] == [1.0, 10.0, 5.0]
    assert np.isnan(made["rating"][3])
    assert meta.variable_value_labels["rating"] == LABELS["rating"] | {10.0: "other"}


def test_a_file_that_nothing_here_writes_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        Exception, match=r"is a file of Stata: to write it, pip install 'vertimrf\[files\]'"
    ):
        check_output(tmp_path / "t.dta")
    with pytest.raises(
        Exception, match=r"use .csv, .csv.gz, .parquet or .arrow, or .sav, .dta, .xpt or .xlsx"
    ):
        check_output(tmp_path / "t.rds")


def test_more_rows_or_columns_than_a_file_has_are_refused(tmp_path):
    pytest.importorskip("xlsxwriter")
    with pytest.raises(TableError, match=r"at most 1,048,575 rows, .* would have 1,048,576"):
        write_table(pa.table({"x": np.zeros(1_048_576)}), tmp_path / "t.xlsx")
    assert not (tmp_path / "t.xlsx").exists()
    with pytest.raises(TableError, match="Stata has at most 32,767 columns"):
        check_size("t.dta", 1, 32_768)
    check_size("t.dta", 10**9, 32_767)
    check_size("t.csv", 10**9, 10**6)


def test_too_many_rows_are_refused_before_the_budget_is_spent(tmp_path, of_spss, monkeypatch):
    pytest.importorskip("xlsxwriter")
    out, schema = tmp_path / "t.xlsx", of_spss / "schema.toml"
    source, spent = of_spss / "t.sav", []
    monkeypatch.setattr("vertimrf.synthesizer.Synthesizer.fit", lambda *_, **__: spent.append(1))
    for words in ("--rows 1048576", "--expected-records 2000000"):
        said = refused(
            "synthesize", [str(source)], "--epsilon 1", words, "--schema", schema, "--out", out
        )
        assert "A file of Excel has at most 1,048,575 rows" in said
        assert "ask for fewer (--rows), or write Parquet" in said
    with pytest.raises(TableError, match="A file of Excel has at most 1,048,575 rows"):
        ServerRun.create(
            tmp_path / "run",
            schema=schema,
            epsilon=1.0,
            planning=PlanOptions(),
            options=RunOptions(rows=1_048_576),
            out="t.xlsx",
        )
    assert not spent
    assert "at most 1,048,575 rows" in refused("sample", of_spss / "m", "--rows 1048576 --out", out)


def test_rows_that_nobody_asked_for_are_left_out_and_counted(caplog, monkeypatch):
    """How many rows there are follows from noise, and is known only when the budget is spent."""
    pieces = [pa.table({"x": range(start, start + 3)}) for start in (0, 3, 6)]
    monkeypatch.setitem(PROGRAMS, ".xlsx", replace(PROGRAMS[".xlsx"], rows=4))
    kept = pa.concat_tables(as_many_as_fit(pieces, "t.xlsx", None))
    assert kept["x"].to_pylist() == [0, 1, 2, 3]
    (record,) = caplog.records
    assert (
        record.getMessage() == "t.xlsx, for Excel: a file has at most 4 rows; 5 more are left out."
    )
    for path, asked in (("t.xlsx", 9), ("t.sav", None), ("t.csv", None)):
        assert pa.concat_tables(as_many_as_fit(pieces, path, asked)).num_rows == 9
    assert len([*as_many_as_fit([pieces[0].slice(3)], "t.xlsx", None)]) == 1
    assert len(caplog.records) == 1


def test_a_synthesis_of_more_records_than_a_file_has_still_gives_one(
    tmp_path, of_spss, monkeypatch
):
    pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    monkeypatch.setitem(PROGRAMS, ".xlsx", replace(PROGRAMS[".xlsx"], rows=100))
    words = "--epsilon 1000 --seed 1 --threads 1 --schema"
    good(
        "synthesize",
        [str(of_spss / "t.sav")],
        words,
        of_spss / "schema.toml",
        "--out",
        tmp_path / "t.xlsx",
    )
    assert read_arrow(tmp_path / "t.xlsx").num_rows == 100


@pytest.mark.parametrize(
    "suffix, label, meaning",
    [(".sav", 128, 60), (".dta", 80, 16_000), (".xpt", 128, 0)],
)
def test_labels_that_are_too_long_are_cut_and_said(tmp_path, caplog, suffix, label, meaning):
    """Two bytes a letter: readers of SPSS and SAS count bytes, those of Stata count letters of columns' labels."""
    package = pytest.importorskip("pyreadstat")
    long = "ł" * 20_000
    like = Variable("x", about=long, labels=((1.0, long), (2.0, "no")), level="nominal")
    path = tmp_path / f"t{suffix}"
    table = pa.table({"x": [long, "no"]} if meaning else {"x": [1.0, 2.0]})
    with path.open("wb") as sink:
        write_program(table, path, sink, [like])
    reader = {".sav": "read_sav", ".dta": "read_dta", ".xpt": "read_xport"}[suffix]
    _, meta = getattr(package, reader)(str(path))
    assert meta.column_names_to_labels["x"] == "ł" * label
    said = [record.getMessage() for record in caplog.records]
    assert sum("has a label of more than" in sentence for sentence in said) == 1
    if meaning:
        assert meta.variable_value_labels["x"] == {1: "ł" * meaning, 2: "no"}
        assert sum("has labels of values of more than" in sentence for sentence in said) == 1


def test_a_label_of_the_usual_length_is_not_cut(tmp_path, caplog):
    package = pytest.importorskip("pyreadstat")
    write_table(pa.table({"ł" * 80: [1.0]}), tmp_path / "t.dta")
    _, meta = package.read_dta(str(tmp_path / "t.dta"))
    assert [*meta.column_names_to_labels.values()] == ["ł" * 80]
    assert "is cut" not in caplog.text


def test_numbers_beyond_those_of_a_program_are_missing(tmp_path):
    package = pytest.importorskip("pyreadstat")
    largest, lost = float.fromhex("0x1.fffffffffffffp+1022"), np.nan
    table = pa.table({"x": [largest, -largest, 1e308, None, 16.0**62, 1e75]})
    for reader, suffix, expected in (
        (package.read_dta, ".dta", [largest, -largest, lost, lost, 16.0**62, 1e75]),
        (package.read_xport, ".xpt", [lost, lost, lost, lost, 16.0**62, lost]),
    ):
        write_table(table, tmp_path / f"t{suffix}")
        back = reader(str(tmp_path / f"t{suffix}"))[0]["x"].tolist()
        assert back == pytest.approx(expected, rel=1e-13, nan_ok=True)


def test_every_edition_of_stata_opens_a_file(tmp_path):
    """Release 119, which pyreadstat writes by default, is for Stata/MP alone (findings/pyreadstat-stata-release.sh)."""
    pytest.importorskip("pyreadstat")
    write_table(pa.table({"x": [1.0]}), tmp_path / "t.dta")
    assert b"<release>118</release>" in (tmp_path / "t.dta").read_bytes()[:80]


def test_spss_shows_whole_numbers_without_decimals(tmp_path):
    package = pytest.importorskip("pyreadstat")
    table = pa.table({"a": [1, None], "b": [-(10**12), 5], "c": [True, False], "d": [0.5, 2.0]})
    write_table(table.append_column("e", pa.nulls(2, pa.int64())), tmp_path / "t.sav")
    _, meta = package.read_sav(str(tmp_path / "t.sav"))
    shown = {"a": "F8.0", "b": "F14.0", "c": "F8.0", "d": "F8.2", "e": "F8.0"}
    assert meta.original_variable_types == shown


def test_a_category_that_is_missing_is_missing(tmp_path):
    package = pytest.importorskip("pyreadstat")
    cells = pa.DictionaryArray.from_arrays([0, 1, 2], ["a", None, "b"])
    write_table(pa.table({"x": cells}), tmp_path / "t.sav")
    frame, meta = package.read_sav(str(tmp_path / "t.sav"))
    assert frame["x"].dropna().tolist() == [1.0, 2.0]
    assert meta.variable_value_labels["x"] == {1.0: "a", 2.0: "b"}


def test_apostrophes_before_formulas_are_for_csv_alone(tmp_path):
    pytest.importorskip("xlsxwriter")
    with pytest.raises(Exception, match="no meaning for"):
        check_output(tmp_path / "t.xlsx", csv_safe=True)


@pytest.mark.parametrize(
    "form, kind",
    [("%tdD_m_Y", "date"), ("%tc", "moment"), ("SDATE10", "date"), ("YMDHMS26.6", "moment"), ("DTIME12", "span"), ("F8.2", "number")],
)  # fmt: skip
def test_formats_show_what_their_program_says(form, kind):
    assert shown_as(form) == kind


def test_like_is_read_and_not_replaced(of_spss):
    source = of_spss / "t.sav"
    said = refused("sample", of_spss / "m", "--out", source, "--like", source)
    assert "is read and would be overwritten" in said
