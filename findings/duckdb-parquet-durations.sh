#!/usr/bin/env bash
# DuckDB and pyarrow: neither reads the durations that the other writes to Parquet.
#
# Expected: 35 hours are a duration in DuckDB and in pyarrow, whoever wrote the file. Both have such a type and exchange it in memory.
# Seen: pyarrow writes a count (Parquet has no such type for it) and keeps the type beside the file's schema. DuckDB
# reads a BIGINT without a unit. DuckDB's INTERVAL is Parquet's INTERVAL, which pyarrow reads as 12 bytes.
# Versions: duckdb 2.0.1, pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

stay = datetime.timedelta(hours=35)
held = pa.table({"stay": pa.array([stay], pa.duration("us"))})
arrow_rows = duckdb.sql("SELECT stay FROM held")
assert [str(t) for t in arrow_rows.types] == ["INTERVAL"], arrow_rows.types
pq.write_table(held, "arrow.parquet")
rows = duckdb.sql("FROM 'arrow.parquet'")
assert [str(t) for t in rows.types] == ["BIGINT"], rows.types
assert rows.fetchall() == [(126_000_000_000,)]

duckdb.sql("COPY (SELECT INTERVAL 35 HOURS AS stay) TO 'duck.parquet'")
assert duckdb.sql("FROM 'duck.parquet'").fetchall() == [(stay,)]
read = pq.read_table("duck.parquet").column("stay")
assert str(read.type) == "fixed_size_binary[12]", read.type
print("Of 35 hours in Parquet, DuckDB reads pyarrow's as a BIGINT, and pyarrow reads DuckDB's as 12 bytes.")
PYTHON
