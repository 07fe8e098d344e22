"""The accountant beside dp-accounting, on ledgers as the planner makes them: pytest benchmarks/bench_accountant.py.

Both compose the same pessimistic privacy-loss distributions. The ledger of scheduled pairs repeats its sketch event millions of
times on a grid fine enough not to add up; ``test_composed_epsilon_agrees`` prints both figures and both times.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

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


@pytest.mark.parametrize("name", LEDGERS)
def test_ours(benchmark: Any, name: str) -> None:
    benchmark.pedantic(lambda: by_pld(LEDGERS[name], DELTA), rounds=3)


@pytest.mark.parametrize("name", LEDGERS)
def test_composed_epsilon_agrees(benchmark: Any, name: str) -> None:
    events = LEDGERS[name]
    start = time.perf_counter()
    ours = float(by_pld(events, DELTA)[-1])
    seconds = time.perf_counter() - start
    other = benchmark.pedantic(lambda: theirs(events, step_of(events)), rounds=1)
    print(f"\n{name}: ours {ours:.4f} in {seconds:.2f} s, dp-accounting {other:.4f}")
    assert ours == pytest.approx(other, rel=2e-3)
