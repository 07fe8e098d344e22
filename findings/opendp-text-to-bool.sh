#!/usr/bin/env bash
# OpenDP: the text "false" is cast to true.
#
# Expected: the transformation that casts texts to truth values reads "true" and "false", and gives the default, false, for what
# it cannot read, as it gives 0 for a text that is no whole number.
# Seen: each text that is not empty is true: "false", "0" and "no" too.
# Versions: opendp 0.16.0. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check opendp==0.16.0
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import opendp.prelude as dp

dp.enable_features("contrib")
texts = (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
numbers = dp.t.make_cast_default(*texts, TOA=int)
assert numbers(["7", "no number"]) == [7, 0]
truths = dp.t.make_cast_default(*texts, TOA=bool)
seen = truths(["true", "false", "0", "no", ""])
assert seen == [True, True, True, True, False], seen
print("OpenDP casts the texts true, false, 0 and no to true, and only the empty text to false.")
PYTHON
