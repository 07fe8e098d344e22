"""The audit of what leaves a party: record and replay, on neighbouring files.

    python -m benchmarks.audit [--smoke] [--json FILE]

Each kind of release runs on pairs of files that differ by one person. It must show no fault, and each
planted mistake (`faults.py`) must be found. Then the strongest test tells tables apart from outside
(`tight.py`). --quick has fewer runs of that test, --smoke few, and two mistakes. docs/audit.md says what
this shows and what it cannot.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
from pathlib import Path

from benchmarks.audit.faults import FAULTS, found
from benchmarks.audit.register import CASES
from benchmarks.audit.tight import TIGHT, of_a_tenth, tight
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, at_least, at_most, finish

# Times the runs from outside, and trials and runs with a tenth of the noise, by size.
MORE = {FULL: 4.0, QUICK: 1.0, SMOKE: 0.01}
TENTH = {FULL: (20, 400), QUICK: (4, 200), SMOKE: (1, 20)}


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
        yield from from_outside(size, Path(folder))


def from_outside(size, folder):
    """Rows of what is found from outside, as a part of what is stated, and with a tenth of the noise."""
    for one in tight(folder, MORE[size]):
        words = f"{one.release}, from outside: {one.unit} found / {one.stated:.3g} stated (error {one.error / one.stated:.3f})"
        if one.release in TIGHT and size != SMOKE:
            yield at_least(words, one.ratio, 0.9)
        else:
            yield Verdict(words, one.ratio)
        yield at_most(
            f"{one.release}, {one.unit} at least, but for chance", one.at_least, one.stated
        )
    for name, part in of_a_tenth(folder, *TENTH[size]).items():
        yield Verdict(f"{name}, with a tenth of the noise, found in", part)


def main():
    options = arguments(__doc__, quick="a quarter of the runs from outside").parse_args()
    # Tables with records that do not fit are what this is about; each would print a warning.
    logging.disable(logging.WARNING)
    finish(rows(options.size), "", options)


if __name__ == "__main__":
    main()
