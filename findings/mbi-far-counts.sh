#!/usr/bin/env bash
# mbi: a count of 1 beside one of twenty million is fitted as hundreds, in double precision, too.
#
# Expected: a table of six cells, measured whole with a standard deviation of 1, is fitted within noise, at least in double precision.
# Seen: mirror descent, the usual estimator, ends at 2,855 for the cell of 1 in single precision, which is JAX's default, and at 915
# with jax_enable_x64. LBFGS gives 2 in double precision, and more than 10,000 in single.
# Versions: mbi 2.0.0, jax 0.10.2. Seen since 2026-11-29.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check mbi==2.0.0 jax==0.10.2 jaxlib==0.10.2
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import warnings

warnings.simplefilter("ignore")
import jax
import mbi
import numpy as np

counts = np.array([2e7, 1.0, 5.0, 3e6, 1.0, 2.0])
domain = mbi.Domain(["a", "b"], [3, 2])
measurements = [mbi.LinearMeasurement(counts, ("a", "b"), stddev=1.0)]
found = {}
for precise in (False, True):
    jax.config.update("jax_enable_x64", precise)
    for kind in (mbi.estimation.MirrorDescent, mbi.estimation.LBFGS):
        model = kind().estimate(domain, measurements, known_total=float(counts.sum()))
        found[kind.__name__, precise] = float(np.ravel(model.project(("a", "b")).values)[1])
assert found["MirrorDescent", False] > 1000, found
assert found["MirrorDescent", True] > 300, found
assert found["LBFGS", False] > 10_000, found
assert found["LBFGS", True] < 4, found
one, two, three, four = (round(number) for number in found.values())
print(f"mbi fits a count of 1 beside 20,000,000 as {one:,} by mirror descent and {two:,} by LBFGS; in double precision as {three:,} and {four:,}.")
PYTHON
