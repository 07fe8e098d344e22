"""The command line: one command per role, plus trials, evaluation and the demo."""

import os

# Has to be set before NumPy is loaded. The products of a run are small, and OpenBLAS's threads
# spin while they wait for each other: half of the accountant's processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from . import machine, party, plan, results, run, schema, trial
from .group import main

__all__ = ["machine", "main", "party", "plan", "results", "run", "schema", "trial"]
