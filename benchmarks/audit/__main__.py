"""The audit of what leaves a party: record and replay, on neighbouring files.

    python -m benchmarks.audit [--smoke] [--json FILE]

Each kind of release runs on pairs of files that differ by one person. It must show no fault, and each
planted mistake (`faults.py`) must be found. --smoke leaves out most mistakes. docs/audit.md says
what this shows and what it cannot.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
from pathlib import Path

from benchmarks.audit.faults import FAULTS, found
from benchmarks.audit.register import CASES
from benchmarks.verdict import SMOKE, Verdict, arguments, at_least, at_most, finish


def rows(size):
    """A row for each kind of release, and one for the planted mistakes."""
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            outcome = case.audit(Path(folder))
            for fault in outcome.faults:
                print(fault)
            name = f"{case.name}: {outcome.draws} draws"
            yield at_most(f"{name}, faults", len(outcome.faults), 0)
            if outcome.part is not None:
                yield Verdict(
                    f"{name}, largest part of the cost of Gaussian noise used", outcome.part
                )
        some = itertools.islice(FAULTS, 2 if size == SMOKE else None)
        missed = [name for name in some if not found(name, Path(folder))]
        for name in missed:
            print(f"not found: {name}")
        tried = 2 if size == SMOKE else len(FAULTS)
        yield at_least(f"of {tried} planted mistakes found", tried - len(missed), tried)


def main():
    options = arguments(__doc__).parse_args()
    # Tables with records that do not fit are what this is about; each would print a warning.
    logging.disable(logging.WARNING)
    finish(rows(options.size), "", options)


if __name__ == "__main__":
    main()
