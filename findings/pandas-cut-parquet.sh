#!/usr/bin/env bash
# pandas: intervals go to Parquet, and the intervals that `cut` makes do not.
#
# Expected: what `pandas.cut` returns goes to Parquet and back, since pandas registers an Arrow type for intervals and pyarrow
# writes categories.
# Seen: a column of plain intervals goes there and back. The result of `cut` is a Categorical of intervals: `to_parquet`
# raises ArrowNotImplementedError, because pyarrow cannot decode a dictionary of an extension type.
# Versions: pandas 3.1.1, pyarrow 26.0.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pandas==3.1.1 pyarrow==26.0.1 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import pandas as pd
import pyarrow as pa

cut = pd.cut(pd.Series([1.0, 5.0, 9.0]), [0, 3, 6, 10])
plain = pd.DataFrame({"age": cut.astype(cut.cat.categories.dtype)})
plain.to_parquet("plain.parquet")
assert pd.read_parquet("plain.parquet")["age"].tolist() == cut.tolist()

try:
    cut.to_frame("age").to_parquet("cut.parquet")
except pa.ArrowNotImplementedError as error:
    assert "dictionary" in str(error), error
else:
    raise AssertionError("the result of cut was written")
print("Plain intervals go to Parquet and back. The same intervals as pandas.cut returns them are refused.")
PYTHON
