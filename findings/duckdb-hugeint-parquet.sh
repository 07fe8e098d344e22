#!/usr/bin/env bash
# DuckDB: whole numbers of 20 digits are exact in a query, and rounded in a Parquet file.
#
# Expected: DuckDB's CSV reader finds DOUBLE for 20-digit numbers; or it finds HUGEINT, and `COPY TO` keeps the digits (Parquet
# has decimals of 38 digits) or refuses.
# Seen: the reader finds HUGEINT, exact, and two ids that differ in the last digit are two. `COPY TO` Parquet writes DOUBLE
# without a word: there they are one.
# Versions: duckdb 2.0.1, pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import duckdb
import pyarrow.parquet as pq

with open("ids.csv", "w") as file:
    file.write("id\n12345678901234567890\n12345678901234567891\n")
rows = duckdb.read_csv("ids.csv")
assert [str(t) for t in rows.types] == ["HUGEINT"], rows.types
assert rows.fetchall() == [(12345678901234567890,), (12345678901234567891,)]

duckdb.sql("COPY (FROM 'ids.csv') TO 'ids.parquet'")
written = pq.read_table("ids.parquet").column("id")
assert str(written.type) == "double", written.type
assert len(set(written.to_pylist())) == 1, written
print("DuckDB reads two 20-digit ids from CSV exactly, and writes both as one floating-point number to Parquet.")
PYTHON
