"""Files that are written here open in the programs that they are for: `pytest -m elsewhere`, seconds; skipped where a program is absent."""

import csv
import io
import re
import shutil
import subprocess

import pyarrow as pa
import pytest

from vertimrf.tables.codebook import Variable
from vertimrf.tables.programs.register import write
from vertimrf.tables.write import write_table

from .test_programs import TABLE

pytestmark = [pytest.mark.elsewhere, pytest.mark.timeout(300)]

# What a program is told of columns that have a codebook.
ABOUT = [
    Variable("rating", "How it was", ((1.0, "good"), (2.0, "bad"), (8.0, "refused")), "nominal", ((8.0, 9.0),)),
    Variable("level", labels=((1.0, "low"), (2.0, "high")), level="ordinal"),
]  # fmt: skip
CODED = pa.table({"rating": ["good", "bad", None], "level": ["high", "low", "low"]})
HAVEN = """
d <- switch(sub(".*[.]", "", f), sav = haven::read_sav(f, user_na = TRUE), dta = haven::read_dta(f), xpt = haven::read_xpt(f))
for (n in names(d)) {
  x <- d[[n]]
  labels <- attr(x, "labels")
  cat(n, class(x)[1], paste(format(as.vector(unclass(x)), digits = 15, trim = TRUE), collapse = ";"),
    paste(names(labels), labels, sep = "=", collapse = ";"), paste(attr(x, "na_range"), collapse = "-"), "\\n", sep = "|")
}
"""


def called(folder, *words, text=None):
    """What a program prints; the test is skipped if it is not here."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed.")
    done = subprocess.run(
        [*map(str, words)], cwd=folder, input=text, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
    return done.stdout + done.stderr


def in_haven(path):
    """By column: class, cells, labels and the range of missing codes in R."""
    asked = 'quit(status = !requireNamespace("haven", quietly = TRUE))'
    if shutil.which("Rscript") is None or subprocess.run(["Rscript", "-e", asked]).returncode:
        pytest.skip("R with haven is not installed.")
    printed = called(path.parent, "Rscript", "-e", f"f <- '{path.name}'{HAVEN}")
    lines = [line.split("|") for line in printed.splitlines() if line.count("|") >= 4]
    return {
        name: (kind, cells, labels, missing) for name, kind, cells, labels, missing, *_ in lines
    }


@pytest.mark.parametrize("suffix", [".sav", ".dta", ".xpt"])
def test_r_has_the_types_and_cells(tmp_path, suffix):
    write_table(TABLE, tmp_path / f"t{suffix}")
    found = in_haven(tmp_path / f"t{suffix}")
    assert [*found] == TABLE.column_names
    assert found["whole"][:2] == ("numeric", "1;2;NA;5")
    assert found["number"][1] == "0.50;NA;2.25;-1.00"
    assert found["town"][1].split(";")[0] == "Łódź"
    # Days since 1970, and seconds.
    assert found["day"][:2] == ("Date", "-7247;18321;NA;2932896")
    assert found["moment"][:2] == ("POSIXct", "1583048769;NA;1583048769;NA")
    assert found["stay"][1] == "126000;NA;0;1"
    assert found["clock"][1] == "0;86399;NA;28800"
    assert found["stay"][0] == found["clock"][0] == ("numeric" if suffix == ".dta" else "hms")
    if suffix != ".xpt":
        assert found["truth"][:3] == ("haven_labelled", "1;0;NA;1", "false=0;true=1")
        assert found["grade"][:3] == ("haven_labelled", "1;2;NA;1", "b=1;a=2")


def test_r_has_labels_and_missing_codes(tmp_path):
    with (tmp_path / "t.sav").open("wb") as sink:
        write(CODED, tmp_path / "t.sav", sink, ABOUT)
    found = in_haven(tmp_path / "t.sav")
    assert found["rating"] == ("haven_labelled_spss", "1;2;NA", "good=1;bad=2;refused=8", "8-9")
    assert found["level"][:3] == ("haven_labelled", "2;1;1", "low=1;high=2")


def test_pspp_has_types_labels_levels_and_missing_codes(tmp_path):
    write_table(TABLE, tmp_path / "t.sav")
    with (tmp_path / "coded.sav").open("wb") as sink:
        write(CODED, tmp_path / "coded.sav", sink, ABOUT)
    script = """SET LOCALE='UTF-8'.
GET FILE='t.sav'.
DISPLAY DICTIONARY.
SAVE TRANSLATE /OUTFILE='t.csv' /TYPE=CSV /FIELDNAMES /CELLS=LABELS.
GET FILE='coded.sav'.
DISPLAY DICTIONARY.
"""
    (tmp_path / "script.sps").write_text(script)
    printed = called(tmp_path, "pspp", "script.sps")
    known = re.sub(r"[ |]+", " ", printed)
    assert "whole 1 Scale Input 8 Right F8.0" in known
    assert "grade 5 Ordinal" in known
    # Cells that are too long go on in the next line.
    assert "rating 1 How Nominal Input 8 Right F8.0 F8.0 8 THRU \n it 9" in known
    assert "8[a] refused" in known
    assert "a. User-missing value" in known
    rows = [*csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text()))]
    assert [row["town"].strip() for row in rows] == ["Łódź", "", "=1+1", "a"]
    assert [row["grade"] for row in rows] == ["b", "a", " ", "b"]
    assert rows[0]["day"] == "02/28/1950"
    assert rows[0]["moment"] == "03/01/2020 07:46:09"


def test_gretl_opens_files_of_stata_spss_and_excel(tmp_path):
    """It has fewer readers in common with others: release 118 of Stata is the latest that it knows."""
    for suffix in (".dta", ".sav", ".xlsx"):
        write_table(TABLE.select(["whole", "number"]), tmp_path / f"t{suffix}")
        (tmp_path / "script.inp").write_text(f"open t{suffix} --quiet\nstore {tmp_path}/t.csv\n")
        called(tmp_path, "gretlcli", "-b", "script.inp")
        rows = [*csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text()))]
        assert [row["whole"] for row in rows] == ["1", "2", "NA", "5"]
        assert [float(row["number"]) for row in rows if row["number"] != "NA"] == [0.5, 2.25, -1]


def test_libreoffice_has_the_cells_of_a_workbook(tmp_path):
    write_table(TABLE, tmp_path / "t.xlsx")
    # Comma, double quotes, UTF-8; texts and dates as they are shown.
    form = "csv:Text - txt - csv (StarCalc):44,34,76,1"
    called(tmp_path, "soffice", f"-env:UserInstallation=file://{tmp_path}/home", "--headless", "--convert-to", form, "t.xlsx")  # fmt: skip
    rows = [*csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text(encoding="utf-8")))]
    assert [row["town"] for row in rows] == ["Łódź", "", "=1+1", "a"]
    assert [row["truth"] for row in rows] == ["TRUE", "FALSE", "", "TRUE"]
    assert [row["day"] for row in rows] == ["1950-02-28", "2020-02-29", "", "9999-12-31"]
    assert rows[0]["moment"] == "2020-03-01 07:46:09"
    assert rows[0]["stay"] == "35:00:00"
