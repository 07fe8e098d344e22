#!/usr/bin/env bash
# fastparquet: a fixed-length binary value loses the zero bytes at its end, a UUID among them.
#
# Expected: values of a column FIXED_LEN_BYTE_ARRAY(16) have 16 bytes each.
# Seen: they pass through NumPy's type S16, which drops zero bytes at the end. A UUID that ends with a zero byte (one random
# UUID in 256) has 15 bytes, and is no UUID for Python and equal to none. pyarrow reads 16 bytes from the same file.
# Versions: fastparquet 2026.9.0, pandas 3.1.1, numpy 2.3.5; file written by pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check fastparquet==2026.9.0 pandas==3.1.1 numpy==2.3.5 pyarrow==26.0.1
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import uuid

import fastparquet
import pyarrow as pa
import pyarrow.parquet as pq

ids = [uuid.UUID("6f1c2b3a-0000-4000-8000-0000000007ff"), uuid.UUID("6f1c2b3a-0000-4000-8000-000000000700")]
pq.write_table(pa.table({"id": pa.array([i.bytes for i in ids], pa.uuid())}), "ids.parquet")
assert pq.read_table("ids.parquet").column("id").to_pylist() == ids

read = fastparquet.ParquetFile("ids.parquet").to_pandas()["id"].tolist()
assert [len(value) for value in read] == [16, 15], read
assert read[1] == ids[1].bytes[:15]
print("Of two UUIDs in Parquet, fastparquet gives 16 bytes for the one and 15 for the one that ends with a zero byte.")
PYTHON
