#!/usr/bin/env bash
# gretl: -999 in a CSV file is a missing value, and -999.0 is a number.
#
# Expected: each number of a CSV file is a number, and only empty cells, NA and a dot are missing.
# Seen: the cells -999 and -9999 are missing, in any column and without being told so. -999.0, -998 and -99 are numbers. `store`
# writes NA for the former. So a balance of -999 is lost, and a code for "unknown" is known or not by its notation.
# Versions: gretl 2022c (Debian 12). Seen since 2026-11-28.
set -euo pipefail

case "$(gretlcli --version 2>/dev/null || true)" in
*" 2022c"*) ;;
*) echo "This finding is about gretl 2022c (package gretl of Debian 12), which is not to be had here." >&2; exit 3 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work # gretl writes there
printf 'a,b,c\n-999,-9999,-998\n1.5,2,3\n-999.0,-9999.0,-99\n' >in.csv
printf 'open "%s/in.csv"\nstore "%s/out.csv"\n' "$work" "$work" >copy.inp
gretlcli -b copy.inp >log.txt
python3 - <<'PYTHON'
import csv

with open("out.csv") as file:
    rows = list(csv.reader(file))[1:]
assert rows[0][:2] == ["NA", "NA"] and float(rows[0][2]) == -998, rows
assert [float(cell) for cell in rows[1]] == [1.5, 2, 3], rows
assert [float(cell) for cell in rows[2]] == [-999, -9999, -99], rows
print("gretl takes the cells -999 and -9999 of a CSV file for missing, and -999.0 and -9999.0 for numbers.")
PYTHON
