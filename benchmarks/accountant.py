"""The accountant beside dp-accounting, on ledgers as the planner makes them.

    python benchmarks/accountant.py [--smoke] [--json FILE]

Both compose the same pessimistic privacy-loss distributions. The ledger of scheduled pairs repeats its sketch event millions of
times on a grid fine enough not to add up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dp_accounting.pld import pld_pmf, privacy_loss_distribution

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.verdict import SMOKE, Verdict, arguments, conclude, show
from vertimrf.privacy.accountant import by_pld
from vertimrf.privacy.events import Event, GaussianEvent, SketchEvent

DELTA = 1e-5
LEDGERS: dict[str, list[Event]] = {
    "one sketch event, 131,072 keys": [SketchEvent(6326, 9, 20, 131_072)],
    "a plan: counts, marginals, 4 million keys": [
        GaussianEvent(300.0),
        GaussianEvent(120.0, count=8),
        GaussianEvent(4000.0, count=4096),
        GaussianEvent(130.0, count=7),
        GaussianEvent(4000.0, count=4096),
        SketchEvent(40_000, 11, 22, 4_000_000),
    ],
}


def theirs(events: list[Event], step: float) -> float:
    """The same distributions, composed by dp-accounting."""
    total = None
    for event in events:
        sides = []
        for grid in event.losses(step):
            mass = grid.mass[: grid.mass.nonzero()[0][-1] + 1]
            pmf = pld_pmf.DensePLDPmf(step, grid.lowest, mass, max(1 - float(mass.sum()), 0.0), True)
            sides.append(pmf)
        one = privacy_loss_distribution.PrivacyLossDistribution(*sides).self_compose(event.count)
        total = one if total is None else total.compose(one)
    assert total is not None
    return float(total.get_epsilon_for_delta(DELTA))


def step_of(events: list[Event]) -> float:
    """A grid as fine as ours needs: the narrowest loss in a dozen steps."""
    return min(event.spread for event in events) / 13


def rows(smoke: bool) -> Iterator[Verdict]:
    """Both figures and times of each ledger; at smoke size of the first one."""
    for name, events in list(LEDGERS.items())[: 1 if smoke else None]:
        start = time.perf_counter()
        ours = float(by_pld(events, DELTA)[-1])
        between = time.perf_counter()
        other = theirs(events, step_of(events))
        end = time.perf_counter()
        yield Verdict(f"{name}: epsilon", ours)
        yield Verdict(f"{name}: off dp-accounting's by, relative", abs(ours / other - 1))
        yield Verdict(f"{name}: s", between - start)
        yield Verdict(f"{name}: dp-accounting's time, times ours", (end - between) / (between - start))


def main() -> None:
    options = arguments(__doc__).parse_args()
    verdicts = show(rows(options.size == SMOKE), "accountant", options.size)
    sys.exit(conclude(verdicts, options.json, options.size))


if __name__ == "__main__":
    main()
