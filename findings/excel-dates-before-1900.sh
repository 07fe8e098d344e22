#!/usr/bin/env bash
# openpyxl and calamine: a date before 1900 in a workbook is read as midnight.
#
# Expected: openpyxl refuses to write 1850-01-01, or writes a text, as Excel has no such dates; a reader gives the date, a number or
# an error.
# Seen: openpyxl writes a negative day number with a date format, as LibreOffice 7.4 does too, and reads it back as 1850-01-01.
# calamine gives the time 00:00:00 for it, without an error, so all such birth dates are the same value of another type.
# Versions: openpyxl 3.1.5, python-calamine 0.9.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check openpyxl==3.1.5 python-calamine==0.9.1
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import openpyxl
import python_calamine

dates = [datetime.date(1950, 6, 1), datetime.date(1850, 1, 1), datetime.date(1899, 5, 17)]
book = openpyxl.Workbook()
for date in dates:
    book.active.append([date])
book.save("born.xlsx")

own = [row[0].value.date() for row in openpyxl.load_workbook("born.xlsx").active.iter_rows()]
assert own == dates, own
sheet = python_calamine.CalamineWorkbook.from_path("born.xlsx").get_sheet_by_index(0)
other = [row[0] for row in sheet.to_python()]
assert other == [dates[0], datetime.time(0, 0), datetime.time(0, 0)], other
print("openpyxl writes and reads dates before 1900, and calamine reads each of them as the time 00:00:00.")
PYTHON
