#!/usr/bin/env bash
# Numba: an unsigned number plus a signed one is signed as scalars, and a float as arrays.
#
# Expected: uint64 + int64 is float64 in compiled code, as NumPy has it, for elements as for arrays; and `x + 1` and `x // 2` of an
# unsigned element stay unsigned, as in NumPy.
# Seen: elements become int64. Above 2^63, `x + 1` and `x // 2` are negative, and `x % 3` is wrong for the unsigned number. The sum
# of two arrays, in the same function, is float64. With `np.uint64(1)` in place of `1` the number stays unsigned.
# Versions: numba 0.68.1, numpy 2.4.6 (0.61.2 and 0.65.1 do the same). Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check numba==0.68.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import numba
import numpy as np


@numba.njit
def compiled(x, y):
    return x[0] + y[0], x[0] + 1, x[0] // 2, x[0] % 3, x[0] + np.uint64(1), x + y


big = 2**63 + 1
x, y = np.array([big], np.uint64), np.array([1], np.int64)
both, one, half, rest, unsigned, arrays = compiled(x, y)
assert both == one == big + 1 - 2**64, (both, one)
assert half == (big - 2**64) // 2, half
assert rest == (big - 2**64) % 3 != big % 3, rest
assert unsigned == big + 1, unsigned
assert arrays.dtype == np.float64, arrays.dtype
assert x[0] + 1 == big + 1, "NumPy keeps the unsigned type"
assert type(x[0] + y[0]) is np.float64, "NumPy makes a float of both"
print("In Numba, an unsigned element of 2^63 + 1 plus 1 is negative, and the sum of the same two arrays is a float.")
PYTHON
