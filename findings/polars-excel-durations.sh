#!/usr/bin/env bash
# polars: a duration goes to a workbook as a bare number of days.
#
# Expected: write_excel writes 35 hours as a number with the format [h]:mm:ss, as XlsxWriter, which it calls, does for a timedelta of
# Python, or refuses it.
# Seen: the cell is 1.458333333333333 with the format General, and so a number to whoever reads it. A date beside it has a format.
# Versions: polars 2.1.0, XlsxWriter 3.3.1, openpyxl 3.1.5. Seen since 2026-11-29.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check polars==2.1.0 XlsxWriter==3.3.1 openpyxl==3.1.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import openpyxl
import polars
import xlsxwriter

stay, day = datetime.timedelta(hours=35), datetime.date(2020, 3, 1)
polars.DataFrame({"stay": [stay], "day": [day]}).write_excel("t.xlsx")
_, (number, date) = openpyxl.load_workbook("t.xlsx").active.iter_rows()
assert number.number_format == "General", number.number_format
assert abs(number.value - 35 / 24) < 1e-9, number.value
assert date.value.date() == day, date.value
with xlsxwriter.Workbook("t.xlsx") as book:
    book.add_worksheet().write(0, 0, stay, book.add_format({"num_format": "[h]:mm:ss"}))
assert openpyxl.load_workbook("t.xlsx").active["A1"].value == stay
print("polars writes 35 hours to a workbook as the bare number 1.4583, and a date beside it as a date.")
PYTHON
