#!/usr/bin/env bash
# PSPP, polars and DuckDB: a date goes through CSV and comes out with month and day exchanged.
#
# Expected: PSPP writes a column of format DATE11 to CSV as it shows it (01-DEC-2016) or as 2016-12-01, and what reads it
# gives 1 December or a text.
# Seen: PSPP writes 12/01/2016, month first. DuckDB and polars (`try_parse_dates`) take dates with slashes for day first where all
# days are below 13, and give 12 January. pandas gives 1 December.
# Versions: PSPP 1.6.2 (Debian 12), duckdb 2.0.1, polars 2.1.0, pandas 3.1.1. Seen since 2026-11-28.
set -euo pipefail

case "$(pspp --version 2>/dev/null || true)" in
*" 1.6.2"*) ;;
*) echo "This finding is about PSPP 1.6.2 (package pspp of Debian 12), which is not to be had here." >&2; exit 3 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 numpy==2.3.5
cd "$work"
cat >dates.sps <<'SPSS'
DATA LIST LIST /seen (DATE11) n (F3.0).
BEGIN DATA
01-DEC-2016 1
05-FEB-2020 2
END DATA.
SAVE TRANSLATE /OUTFILE="dates.csv" /TYPE=CSV /FIELDNAMES.
SPSS
pspp -o log.txt dates.sps
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import duckdb
import pandas as pd
import polars as pl

with open("dates.csv") as file:
    assert file.read().split() == ["seen,n", "12/01/2016,1", "02/05/2020,2"]
exchanged = [datetime.date(2016, 1, 12), datetime.date(2020, 5, 2)]
by_duckdb = [row[0] for row in duckdb.read_csv("dates.csv").fetchall()]
assert by_duckdb == exchanged, by_duckdb
by_polars = pl.read_csv("dates.csv", try_parse_dates=True)["seen"].to_list()
assert by_polars == exchanged, by_polars
by_pandas = pd.to_datetime(pd.read_csv("dates.csv")["seen"]).dt.date.tolist()
assert by_pandas == [datetime.date(2016, 12, 1), datetime.date(2020, 2, 5)], by_pandas
print("PSPP writes 1 December 2016 to CSV as 12/01/2016, which DuckDB and polars read as 12 January.")
PYTHON
