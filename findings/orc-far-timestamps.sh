#!/usr/bin/env bash
# pyarrow: timestamps of the year 9999 are written to ORC and cannot be read back.
#
# Expected: a column of microseconds that pyarrow writes to ORC comes back, since ORC holds seconds and nanoseconds apart; the year 9999
# stands for "no end" in many tables.
# Seen: the file is written without a word. pyarrow reads all ORC timestamps as nanoseconds in 64 bits and raises ArrowInvalid. As a
# date the same day comes back.
# Versions: pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import pyarrow as pa
from pyarrow import orc

day = datetime.date(9999, 12, 31)
moment = datetime.datetime(9999, 12, 31)
orc.write_table(pa.table({"until": pa.array([day])}), "day.orc")
assert orc.read_table("day.orc").column("until").to_pylist() == [day]

orc.write_table(pa.table({"until": pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us"))}), "near.orc")
assert str(orc.read_table("near.orc").schema.field("until").type) == "timestamp[ns]"
orc.write_table(pa.table({"until": pa.array([moment], pa.timestamp("us"))}), "moment.orc")
try:
    orc.read_table("moment.orc")
except pa.ArrowInvalid as error:
    assert "out of range" in str(error), error
else:
    raise AssertionError("the timestamp of the year 9999 was read")
print("pyarrow writes a timestamp of the year 9999 to ORC and refuses to read it; as a date it comes back.")
PYTHON
