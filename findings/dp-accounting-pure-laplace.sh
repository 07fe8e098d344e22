#!/usr/bin/env bash
# dp-accounting: at delta = 0, the Laplace mechanism with epsilon 1 costs infinity.
#
# Expected: the accountant of privacy losses gives epsilon 1 for Laplace noise of scale 1 at delta = 0, since the mechanism is
# (1, 0)-differentially private.
# Seen: it is infinite. The loss distribution leaves out a probability of about 1e-15 and counts it as an infinite loss, so
# delta at epsilon 1 is 1e-15, not 0. From a delta of 1e-14 on, epsilon is 1.
# Versions: dp-accounting 0.6.0, numpy 2.4.6, scipy 1.17.1. Seen since 2026-11-28.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check dp-accounting==0.6.0 numpy==2.4.6 scipy==1.17.1
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import math

import dp_accounting
from dp_accounting import pld


def spent():
    return pld.PLDAccountant().compose(dp_accounting.LaplaceDpEvent(1.0))


assert spent().get_epsilon(0) == math.inf, spent().get_epsilon(0)
assert abs(spent().get_epsilon(1e-14) - 1) < 1e-3, spent().get_epsilon(1e-14)
assert 0 < spent().get_delta(1.0) < 1e-14, spent().get_delta(1.0)
print("Laplace noise of scale 1 costs an infinite epsilon at delta 0, and 1 from delta 1e-14 on.")
PYTHON
