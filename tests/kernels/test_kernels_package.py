"""What importing and warming up the kernels costs: NumPy and Numba, and no compilation left for later."""

from __future__ import annotations

import json
import os
import subprocess
import sys

LIST_PACKAGES = """
import json, sys
{imports}
files = {{name.partition(".")[0]: getattr(m, "__file__", None) or "" for name, m in list(sys.modules.items())}}
names = {{name for name, file in files.items() if "site-packages" in file}}
print(json.dumps(sorted(names)))
"""

COUNT_COMPILATIONS = """
import importlib, json, os, sys
import numba
from vertimrf import kernels
modules = [importlib.import_module("vertimrf.kernels." + m) for m in ("digest", "geometric", "phantoms", "prf")]
def compiled():
    return {f"{m.__name__}.{n}": len(f.signatures) for m in modules for n, f in vars(m).items() if hasattr(f, "signatures")}
import_time = sum(compiled().values())
kernels.warmup()
before = compiled()
import numpy as np
from vertimrf.published.shared_keys import SharedKeyEncoder
from vertimrf.sketches.encoder import SketchEncoder
from vertimrf.sketches.parameters import ScheduledPair, SharedKeyPlan, SketchPlan
from vertimrf.tables.ids import record_digests
codes = np.zeros((2, 50), np.uint16)
frozen = np.arange(50)
frozen.flags.writeable = False
for plan, make in (
    (SketchPlan(2, 1, 9, (ScheduledPair(0, 2, 70_000, 2, 2), ScheduledPair(1, 2, 9, 2, 2))), SketchEncoder),
    (SharedKeyPlan(2, 1, 9, 70_000, (2, 2)), SharedKeyEncoder),
):
    encoder = make(plan, (0, 1), bytes(32))
    for ids in (frozen, frozen.astype(np.uint64), frozen.astype(str), frozen.astype("S")):
        encoder.update(record_digests(ids), codes)
    encoder.result()
print(json.dumps([import_time, before == compiled()]))
"""


def run(script: str, **environment: str) -> list:
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    return json.loads(done.stdout)


def test_kernels_import_numpy_and_numba_alone() -> None:
    alone = run(LIST_PACKAGES.format(imports="import numpy, numba"))
    assert run(LIST_PACKAGES.format(imports="import vertimrf.kernels")) == alone


def test_warmup_compiles_all_that_encoding_needs_and_imports_compile_nothing() -> None:
    assert run(COUNT_COMPILATIONS) == [0, True]
