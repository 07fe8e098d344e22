#!/usr/bin/env bash
# pyreadstat: a long text and a missing one in a column cannot be written for Stata.
#
# Expected: write_dta writes texts of more than 2,045 bytes as strL, Stata's type for them, beside missing ones; or refuses long texts.
# Seen: a column of long texts is written, and comes back. With one missing text in it, writing fails, and says that a string
# reference was never inserted. With an empty text in its place, which Stata does not tell from it, the column is written.
# Versions: pyreadstat 1.3.7, pandas 2.3.3. Seen since 2026-11-29.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pyreadstat==1.3.7 pandas==2.3.3
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import pandas
import pyreadstat


def written(*texts):
    try:
        pyreadstat.write_dta(pandas.DataFrame({"x": pandas.Series(texts, dtype=object)}), "t.dta")
    except pyreadstat.ReadstatError as error:
        return str(error)
    return pyreadstat.read_dta("t.dta")[0]["x"].tolist() == [text or "" for text in texts]


text = "a letter " * 300
assert written(text, text) is True
assert written("short", None) is True
assert written(text, "") is True
said = written(text, None)
assert said == "A registered string reference was never inserted into any row", said
print("pyreadstat writes texts of 2,700 bytes for Stata, but not beside a missing one.")
PYTHON
