"""A figure beside the bar it is held to: what every script with bars prints, and the JSON that it writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Verdict", "at_least", "at_most", "conclude", "show"]


@dataclass(frozen=True)
class Verdict:
    """One line of a script's table.

    Attributes:
        name: what was measured, with its unit.
        value: the figure; None where what it needs (a peer, a data set) is missing.
        bar: the bar as people read it, "<= 1.15"; empty where the figure is only stated.
        holds: whether the figure meets its bar; None where there is no bar or no figure.
    """

    name: str
    value: float | None
    bar: str = ""
    holds: bool | None = None

    def __str__(self) -> str:
        shown = "not measured" if self.value is None else f"{self.value:.4g}"
        word = {True: "holds", False: "FAILS", None: ""}[self.holds]
        return f"{shown:>12}  {self.bar:<10} {word:<5} {self.name}"


def at_most(name: str, value: float | None, bar: float) -> Verdict:
    """Held to an upper bar; a figure that is no number does not meet it."""
    return Verdict(name, None if value is None else float(value), f"<= {bar:.4g}", None if value is None else bool(value <= bar))


def at_least(name: str, value: float | None, bar: float) -> Verdict:
    """Held to a lower bar; a figure that is no number does not meet it."""
    return Verdict(name, None if value is None else float(value), f">= {bar:.4g}", None if value is None else bool(value >= bar))


def show(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Print each as it comes; all of them."""
    out = []
    for verdict in verdicts:
        print(verdict, flush=True)
        out.append(verdict)
    return out


def conclude(verdicts: Sequence[Verdict], json_file: Path | None = None) -> int:
    """Say how many bars hold, and write the JSON, a list of {name, value, bar, holds}; the exit code, 1 if a bar fails."""
    judged = [verdict.holds for verdict in verdicts if verdict.holds is not None]
    print(f"{sum(judged)} of {len(judged)} bars hold.")
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")
    return 0 if all(judged) else 1
