#!/usr/bin/env bash
# XlsxWriter: a date before 1900 is another day to other programs.
#
# Expected: XlsxWriter refuses 1850-01-01, or writes the day number that openpyxl writes for it, as it does for later dates.
# Seen: it writes -18261, and openpyxl -18260; openpyxl reads the former as 31 December 1849. From 1 March 1900 on both write the same.
# XlsxWriter counts days before March 1900 from 31 December 1899, also those below zero, openpyxl from 30 December 1899.
# Versions: XlsxWriter 3.3.1, openpyxl 3.1.5. Seen since 2026-11-29.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check XlsxWriter==3.3.1 openpyxl==3.1.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import openpyxl
import xlsxwriter

days = [datetime.date(1850, 1, 1), datetime.date(1900, 3, 1)]
with xlsxwriter.Workbook("t.xlsx") as book:
    form = book.add_format({"num_format": "yyyy-mm-dd"})
    book.add_worksheet().write_column(0, 0, days, form)
read = [cell.value.date() for (cell,) in openpyxl.load_workbook("t.xlsx").active.iter_rows()]
assert read == [datetime.date(1849, 12, 31), datetime.date(1900, 3, 1)], read
book = openpyxl.Workbook()
book.active.append(days)
book.save("t.xlsx")
(row,) = openpyxl.load_workbook("t.xlsx").active.iter_rows(values_only=True)
assert [cell.date() for cell in row] == days, row
print("XlsxWriter writes 1850-01-01 to a workbook, and openpyxl reads 1849-12-31.")
PYTHON
