#!/usr/bin/env bash
# pyreadstat: an SPSS duration of a day or more, or below zero, is read as a time of day.
#
# Expected: SPSS TIME and DTIME hold durations in seconds, so 35 hours come as a timedelta or as 126000, as in haven and PSPP.
# Seen: they come as datetime.time, modulo 24 hours: 35 hours are 11:00, and minus one hour is 23:00. With
# disable_datetime_conversion=True the seconds come.
# Versions: pyreadstat 1.3.7, pandas 3.1.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pyreadstat==1.3.7 pandas==3.1.1 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datetime

import pandas as pd
import pyreadstat

seconds = [3600.0, 126000.0, -3600.0]
for form in ("TIME8", "DTIME12"):
    pyreadstat.write_sav(pd.DataFrame({"stay": seconds}), "stay.sav", variable_format={"stay": form})
    read, _ = pyreadstat.read_sav("stay.sav")
    assert read["stay"].tolist() == [datetime.time(1), datetime.time(11), datetime.time(23)], read
    raw, _ = pyreadstat.read_sav("stay.sav", disable_datetime_conversion=True)
    assert raw["stay"].tolist() == seconds, raw
print("SPSS durations of 1, 35 and -1 hours are read as 01:00, 11:00 and 23:00 unless conversion is switched off.")
PYTHON
