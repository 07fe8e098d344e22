#!/usr/bin/env bash
# fastparquet: a duration goes to Parquet as a time of day.
#
# Expected: 35 hours of pandas (timedelta64) are written as a count with the unit beside it, as pyarrow does, or refused, because
# Parquet has no such type.
# Seen: the column is TIME in microseconds, which is a time of day, and holds 126000000000. fastparquet reads 35 hours back. pyarrow
# reads time64, whose Python value is 11:00.
# Versions: fastparquet 2026.9.0, pandas 2.3.3, pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check fastparquet==2026.9.0 pandas==2.3.3 pyarrow==26.0.1
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import fastparquet
import pandas as pd
import pyarrow.parquet as pq

stay = pd.Timedelta(hours=35)
fastparquet.write("stay.parquet", pd.DataFrame({"stay": [stay]}))
assert fastparquet.ParquetFile("stay.parquet").to_pandas()["stay"].tolist() == [stay]

read = pq.read_table("stay.parquet").column("stay")
assert str(read.type) == "time64[us]", read.type
assert read.to_pylist() == [datetime.time(11)], read
print("fastparquet writes 35 hours to Parquet as a time of day, which pyarrow gives as 11:00.")
PYTHON
