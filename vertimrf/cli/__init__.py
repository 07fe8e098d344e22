"""The command line: one command per role, plus trials, evaluation and the demo."""

from . import machine, party, plan, results, run, schema, trial
from .group import main

__all__ = ["machine", "main", "party", "plan", "results", "run", "schema", "trial"]
