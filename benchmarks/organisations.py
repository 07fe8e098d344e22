"""A run between organisations: over a network, through kills and full disks, and against damaged files; each against its bar.

    python benchmarks/organisations.py [--quick | --smoke] [--only PART]... [--json FILE]

network: three parties over Flower and TLS on the loopback interface, every role its own process and folder (`network.py`).
kills: SIGKILL and full disks at points spread over every role's life (`kills.py`). fuzz: damaged files of all kinds (`fuzz.py`).
Run it on an otherwise idle machine. Every part has a process and a time limit of its own. --quick ends within two minutes: 10⁵
records instead of 10⁶, 16 kills instead of 208, 800 damaged files instead of 10⁵. --smoke has 4 kills and 4 full disks alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.limited import end_cleanly, limited, tell
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, conclude, show


def network_rows(size: str) -> Iterator[Verdict]:
    """Three parties, a server and what is between them."""
    if importlib.util.find_spec("flwr") is None:
        yield Verdict("network", None, "flwr is not installed")
        return
    from benchmarks.network import rows

    yield from rows(1_000_000 if size == FULL else 100_000)


def kill_rows(size: str) -> Iterator[Verdict]:
    """The kill matrix: by role and fault, at how many points the run went on as if nothing had happened; then the bars."""
    from benchmarks.kills import FULL, KILL, VICTIMS, kill_matrix, verdicts

    kills, full = {FULL: (208, 80), QUICK: (16, 4), SMOKE: (4, 4)}[size]
    outcomes = kill_matrix(kills, full=full)
    for fault in (KILL, FULL):
        for victim in VICTIMS:
            played = [outcome for outcome in outcomes if (outcome.fault, outcome.victim) == (fault, victim)]
            well = sum(outcome.survived for outcome in played)
            name = f"{fault} at {len(played)} points of the {victim}'s life: survived"
            yield Verdict(name, well, f">= {len(played)}", well == len(played))
    yield from verdicts(outcomes)


def fuzz_rows(size: str) -> Iterator[Verdict]:
    """How damaged files were read, by what came of it; then the bars."""
    from benchmarks.fuzz import fuzz, verdicts

    counts = fuzz(100_000 if size == FULL else 800, seed=time.time_ns() % 2**32)
    came = Counter[str]()
    for (_, outcome), count in counts.outcomes.items():
        came[outcome] += count
    for outcome, count in came.most_common():
        yield Verdict(f"damaged files: {outcome}", count)
    yield from verdicts(counts)


@dataclass(frozen=True)
class Part:
    """What is measured in a process of its own.

    Attributes:
        work: from the size, the verdicts.
        limit: seconds after which it is ended.
        sizes: that have it.
    """

    work: Callable[[str], Iterator[Verdict]]
    limit: float
    sizes: tuple[str, ...] = (FULL, QUICK, SMOKE)


PARTS = {
    "network": Part(network_rows, 1200, (FULL, QUICK)),
    "kills": Part(kill_rows, 1800),
    "fuzz": Part(fuzz_rows, 3600, (FULL, QUICK)),
}


def main() -> None:
    parser = arguments(__doc__, quick="two minutes: fewer records, kills and damaged files")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be repeated")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    end_cleanly()
    if options.part:
        tell(PARTS[options.part].work(options.size))
        return
    given = [] if options.size == FULL else [f"--{options.size}"]
    chosen = options.only or [name for name, part in PARTS.items() if options.size in part.sizes]
    verdicts = (
        verdict
        for name in chosen
        for verdict in limited(name, [sys.executable, __file__, "--part", name, *given], PARTS[name].limit)
    )
    sys.exit(conclude(show(verdicts, "organisations", options.size), options.json, options.size))


if __name__ == "__main__":
    main()
