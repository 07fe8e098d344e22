#!/usr/bin/env bash
# DuckDB: the largest of ordered categories depends on the frame that holds them.
#
# Expected: `max` of ordered categories low < mid < high is "high", or is alphabetical, for every kind of frame.
# Seen: a pandas Categorical comes as ENUM, and the maximum of low, mid, high is "high". The same column as an ordered Arrow
# dictionary or as a polars Enum comes as VARCHAR, so the maximum is "mid", as the alphabet has it.
# Versions: duckdb 2.0.1, pandas 3.1.1, polars 2.1.0, pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

order = ["low", "mid", "high"]
of_pandas = pd.DataFrame({"level": pd.Categorical(order, order, ordered=True)})
of_arrow = pa.table({"level": pa.array(of_pandas["level"])})
of_polars = pl.DataFrame({"level": pl.Series(order, dtype=pl.Enum(order))})
assert of_arrow.schema.field("level").type.ordered
assert of_polars["level"].max() == "high"


def largest(name):
    relation = duckdb.sql(f"SELECT max(level) AS level FROM {name}")
    return str(duckdb.sql(f"SELECT level FROM {name}").types[0]), relation.fetchall()[0][0]


assert largest("of_pandas") == ("ENUM('low', 'mid', 'high')", "high"), largest("of_pandas")
assert largest("of_arrow") == ("VARCHAR", "mid"), largest("of_arrow")
assert largest("of_polars") == ("VARCHAR", "mid"), largest("of_polars")
print("DuckDB finds high the largest in a pandas frame, and mid in the same column of Arrow and of polars.")
PYTHON
