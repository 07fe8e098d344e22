"""Figures that scripts report, and the bars of ``bars.toml`` that some of them are held to.

A script makes ``Verdict``s and ends with :func:`finish`: :func:`show` holds them to their bars, and :func:`conclude` writes the
JSON and gives the exit code. Every script has two or three sizes: full, ``--quick`` (minutes) where it has one,
and ``--smoke`` (seconds), which only checks that the script runs; nothing is held at that size.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .datasets import FOLDER

BARS = Path(__file__).with_name("bars.toml")
FULL, QUICK, SMOKE = "full", "quick", "smoke"


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

    def __str__(self):
        shown = "not measured" if self.value is None else f"{self.value:.4g}"
        word = {True: "holds", False: "FAILS", None: ""}[self.holds]
        return f"{shown:>12}  {self.bar:<10} {word:<5} {self.name}"


def at_most(name, value, bar):
    """Held to an upper bound that the script computes; a figure that is no number does not meet it."""
    return Verdict(
        name,
        None if value is None else float(value),
        f"<= {bar:.4g}",
        None if value is None else bool(value <= bar),
    )


def at_least(name, value, bar):
    """Held to a lower bound that the script computes; a figure that is no number does not meet it."""
    return Verdict(
        name,
        None if value is None else float(value),
        f">= {bar:.4g}",
        None if value is None else bool(value >= bar),
    )


@dataclass(frozen=True)
class Bar:
    """One bar of ``bars.toml``.

    Attributes:
        name: "section.key" in the file.
        row: name of the rows that it is about; ``*`` stands for any text.
        at_most, at_least: the bar; one of them is None.
        width: by how much a quick run may miss it, for the noise of fewer repetitions.
        quick: whether quick runs are held to it.
        kind: "ratio" (within one run, or moved by no machine) or "absolute".
        machine: what the figure depends on: "any", or the machine of a time, or of a ratio that other work moves.
    """

    name: str
    row: str
    at_most: float | None = None
    at_least: float | None = None
    width: float = 0.0
    quick: bool = True
    kind: str = "ratio"
    machine: str = "any"

    def __post_init__(self):
        if (
            (self.at_most is None) == (self.at_least is None)
            or self.width < 0
            or self.kind not in ("ratio", "absolute")
        ):
            raise ValueError(
                f"{self.name}: a bar has either at_most or at_least, a width of 0 or more, and a kind."
            )

    def about(self, name):
        """Whether it is about a row of this name."""
        return re.fullmatch(re.escape(self.row).replace(r"\*", ".*"), name) is not None

    def bound(self, size):
        """The bar, with the width that quick runs have."""
        width = self.width if size == QUICK else 0.0
        return self.at_most + width if self.at_most is not None else self.at_least - width

    def judge(self, verdict, size):
        """The row with this bar."""
        judge = at_most if self.at_most is not None else at_least
        return judge(verdict.name, verdict.value, self.bound(size))


@functools.cache
def load_bars():
    """All bars by section."""
    sections = tomllib.loads(BARS.read_text())
    return {
        section: tuple(
            Bar(f"{section}.{key}", **fields) for key, fields in bars.get("bars", {}).items()
        )
        for section, bars in sections.items()
    }


def with_bar(verdict, sections, size):
    """A row with the bar that sections of ``bars.toml`` (names, with spaces between) have for it at this size, if any."""
    if size == SMOKE:
        return replace(verdict, bar="", holds=None)
    for bar in (bar for section in sections.split() for bar in load_bars()[section]):
        if (bar.quick or size == FULL) and bar.about(verdict.name):
            return bar.judge(verdict, size)
    return verdict


def show(verdicts, sections="", size=FULL):
    """Print each as it comes, held to the bars of sections of ``bars.toml``; all of them."""
    out = []
    for verdict in verdicts:
        out.append(with_bar(verdict, sections, size))
        print(out[-1], flush=True)
    return out


def conclude(verdicts, json_file=None, size=FULL):
    """Say how many bars hold, and write the JSON, a list of {name, value, bar, holds}; the exit code, 1 if a bar fails."""
    judged = [verdict.holds for verdict in verdicts if verdict.holds is not None]
    if size == SMOKE:
        print(f"{len(verdicts)} rows at smoke size, at which no bar is held.")
    else:
        print(f"{sum(judged)} of {len(judged)} bars hold.")
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")
    return 0 if all(judged) else 1


def finish(verdicts, sections, options):
    """Show the rows, write them where the script's options say so, and end with the exit code."""
    sys.exit(conclude(show(verdicts, sections, options.size), options.json, options.size))


def arguments(doc, quick="", data=""):
    """A parser with what every script has: ``--smoke`` and ``--json``.

    ``--quick`` is there where ``quick`` says what it leaves out, and ``--data`` where ``data`` says whose folder it is.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = parser.add_mutually_exclusive_group()
    if quick:
        sizes.add_argument(
            "--quick", dest="size", action="store_const", const=QUICK, default=FULL, help=quick
        )
    sizes.add_argument(
        "--smoke",
        dest="size",
        action="store_const",
        const=SMOKE,
        default=FULL,
        help="the smallest size, seconds; holds no bar",
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    if data:
        parser.add_argument("--data", type=Path, default=FOLDER, help=f"folder of {data}")
    return parser
