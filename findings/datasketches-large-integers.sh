#!/usr/bin/env bash
# datasketches: from 2^63 on, HLL and theta sketches count whole numbers as floating-point numbers, and CPC sketches do not.
#
# Expected: each sketch of distinct values counts 1,000 consecutive unsigned 64-bit numbers (hashes, ids) as about 1,000.
# Seen: HLL and theta sketches take a number that does not fit the signed type as a float, so 1,000 consecutive
# numbers from 2^63 on are one value. The CPC sketch of the same package counts about 1,000. Below 2^63, all of them do.
# Versions: datasketches 5.2.0 (Python), numpy 2.3.5. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check datasketches==5.2.0 numpy==2.3.5
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import datasketches


def distinct(sketch, first):
    for value in range(first, first + 1000):
        sketch.update(value)
    return sketch.get_estimate()


def hll():
    return datasketches.hll_sketch(12)


def cpc():
    return datasketches.cpc_sketch(12)


theta = datasketches.update_theta_sketch
for make in (hll, cpc, lambda: theta(12)):
    assert 950 < distinct(make(), 2**63 - 1000) < 1050, "the last signed numbers are told apart"
assert round(distinct(hll(), 2**63)) == 1
assert round(distinct(theta(12), 2**63)) == 1
assert 950 < distinct(cpc(), 2**63) < 1050
print("1,000 whole numbers from 2^63 are one value to HLL and theta sketches, and about 1,000 to a CPC sketch.")
PYTHON
