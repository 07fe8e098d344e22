"""From runs to the tables of benchmarks/results/peers.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import datasets
from ..reproduce import quoted
from ..reproduce.report import table
from .measure import DONE, FAILED, OVER, Measured
from .peer import Peer

__all__ = ["MARK", "markdown"]

MARK = "peers"
# 3-way TVD of what does not run here, with all data in one place; delta is 1/n in all of them.
QUOTED = {
    "SWIFT (dpsynth)": quoted.SWIFT,
    "MST (dpsynth)": quoted.DPSYNTH_MST,
    "AIM (ported to mbi 2, all fits converged)": quoted.AIM,
    "MST (mbi 2)": quoted.MST,
}


def cell(run: Measured | None) -> str:
    """2-way / 3-way TVD, wall seconds."""
    if run is None:
        return "–"
    if run.outcome == DONE and run.tvd2 is not None and run.tvd3 is not None:
        return f"{run.tvd2:.4f} / {run.tvd3:.4f}, {run.seconds:.0f} s ({run.processor:.0f})"
    return f"over {run.limit:.0f} s" if run.outcome == OVER else "failed"


def order(names: Sequence[str]) -> list[str]:
    """The paper's tables first, in their order."""
    usual = [name for name in datasets.NAMES if name in names]
    return usual + sorted(set(names) - set(usual))


def at_epsilon(runs: Sequence[Measured], peers: Sequence[Peer], epsilon: float) -> str:
    """Mechanisms by tables, what is quoted below what was measured."""
    here = {(run.peer, run.data): run for run in runs if run.epsilon == epsilon}
    data = order([name for _, name in here])
    rows = [
        [peer.title, *(cell(here.get((peer.name, name))) for name in data)]
        for peer in peers
        if any((peer.name, name) in here for name in data)
    ]
    for title, figures in QUOTED.items():
        own = {name: figures[name, epsilon] for name in data if (name, epsilon) in figures}
        if own:
            rows.append([f"*quoted:* {title}", *(f"*{own[name]:g}*" if name in own else "–" for name in data)])
    return f"**ε = {epsilon:g}**\n\n" + table(["mechanism", *data], rows)


def markdown(runs: Sequence[Measured], peers: Sequence[Peer], refused: Mapping[str, str | None]) -> str:
    """All tables.

    Args:
        runs: what was measured.
        peers: in the tables' order.
        refused: of each package that has no script, what pip says when asked for it; None where it would install.
    """
    parts = [at_epsilon(runs, peers, epsilon) for epsilon in sorted({run.epsilon for run in runs})]
    titles = {peer.name: peer.title for peer in peers}
    failed = [run for run in runs if run.outcome == FAILED]
    if failed:
        parts.append("\n".join(f"- {titles[run.peer]} on {run.data}, ε = {run.epsilon:g}: `{run.message}`" for run in failed))
    pins = {peer.environment.name: peer.environment.requirements[0] for peer in peers if peer.environment is not None}
    lines = [[f"`{pin}`", "runs here"] for pin in pins.values()]
    lines += [[f"`{name}`", "installs; no script runs it yet" if said is None else f"`{said}`"] for name, said in refused.items()]
    parts.append(table(["package", "pip"], lines))
    return "\n\n".join(parts)
