#!/usr/bin/env bash
# pyreadstat: by default, a file for Stata is of the release that only Stata/MP opens.
#
# Expected: write_dta without a version writes what any edition of Stata from some version on opens, as R's haven does: release 118.
# Seen: it writes release 119, which Stata itself writes only for more than 32,767 variables (https://www.stata.com/help.cgi?dta). Stata BE
# and SE refuse it (pyreadstat's issue 152 and haven's 721), and so does gretl. With version=14, it is release 118, and gretl opens it.
# Versions: pyreadstat 1.3.7, pandas 2.3.3, gretl 2022c (Debian). Seen since 2026-11-29.
set -euo pipefail

if ! command -v gretlcli >/dev/null || ! gretlcli --version | grep -q 2022c; then
  echo "gretlcli 2022c is not here"
  exit 3
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pyreadstat==1.3.7 pandas==2.3.3
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import pandas
import pyreadstat
import subprocess

found = {}
for name, options in (("default", {}), ("14", {"version": 14})):
    pyreadstat.write_dta(pandas.DataFrame({"x": [1.0, 2.0]}), f"{name}.dta", **options)
    header = open(f"{name}.dta", "rb").read(60)
    release = int(header.split(b"<release>")[1][:3])
    with open("script.inp", "w") as script:
        script.write(f"open {name}.dta --quiet\n")
    done = subprocess.run(["gretlcli", "-b", "script.inp"], capture_output=True, text=True)
    found[name] = release, "not yet supported" in done.stdout + done.stderr
assert found == {"default": (119, True), "14": (118, False)}, found
print("pyreadstat writes release 119 for a Stata file of one column, which gretl refuses; with version=14, release 118.")
PYTHON
