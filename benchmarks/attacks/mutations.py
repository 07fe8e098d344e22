"""Mistakes that once went unnoticed: each is made in a copy of the package, and the tests have to object.

All others, named and systematic, are played by ``benchmarks/mutants.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mutants import play
from ..verdict import Verdict, at_least

__all__ = ["rows"]

ONCE_UNNOTICED = (
    "the ledger prices one sketch a key instead of two",
    "the ledger drops the other parties' R-scores and larger marginals",
    "the R-score's sensitivity is halved",
    "the first phantom byte is the same in every chunk",
    "all pairs share hashes",
)


def rows() -> Iterator[Verdict]:
    """Per mistake, whether a test objects (1) or none does (0)."""
    for name, killed in play(ONCE_UNNOTICED):
        yield at_least(f"mutant noticed: {name}", float(killed), 1)
