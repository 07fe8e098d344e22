"""Whether every bar of ``bars.toml`` holds: runs the commands, reads the figures that they report, says what holds and misses.

    python benchmarks/bars.py [--quick] [--only NAME]... [--record]

NAME is a section of bars.toml or one of its bars. A bar that misses is known if the table of known misses in
benchmarks/results/accuracy.md names it, with the reason. A ratio slips if it is more than 1.5 times worse than its bar, and than
the figures of a known miss; ratios of kind "absolute" or of one machine do not slip. The exit code is 3 if a ratio slips, otherwise
2 if a command fails, and otherwise 1 if a bar misses that is not known, or a command gives no row for one (only where the paper's
data sets are beside the checkout; elsewhere their bars are "not measured"). Rows that a command holds to a bound of its own are
judged as well; they have the name of their section and of the row.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.results import commit
from benchmarks.verdict import BARS, FULL, QUICK, Verdict, load_bars

ROOT = Path(__file__).resolve().parents[1]
KNOWN = ROOT / "benchmarks" / "results" / "accuracy.md"
TREND = KNOWN.with_name("trend.csv")
# How many times worse than its bar a ratio slips.
SLIP = 1.5
# A command that takes longer hangs.
LIMIT = {FULL: 24 * 3600, QUICK: 1200}


@dataclass(frozen=True)
class Outcome:
    """One bar, or one row that a script judged itself.

    Attributes:
        name: "section.key", or "section: row".
        row: the figure's name; empty where there is none.
        value, bar, holds: as in a verdict; ``holds`` is None where the figure could not be measured.
        known: whether a miss is listed.
        slips: whether it is a ratio that misses its bar, and the figures of a listed miss, by more than ``SLIP`` times.
    """

    name: str
    row: str
    value: float | None
    bar: str
    holds: bool | None
    known: bool
    slips: bool = False

    @property
    def bad(self):
        return self.holds is False and not self.known

    def __str__(self):
        word = {True: "held", False: "MISSED", None: "not measured"}[self.holds]
        if self.known:
            word = (
                "held, though listed as a miss"
                if self.holds
                else "missed, as listed"
                if self.holds is False
                else word
            )
        word = "SLIPS" if self.slips else word
        value = "" if self.value is None else f"{self.value:.4g} "
        return f"{word:<18} {self.name}: {value}({self.bar}) {self.row}"


def known_misses(page=KNOWN):
    """By names in the first column of the table under "Known misses": the figures of the second before its bar in brackets."""
    section = re.split(r"(?m)^## ", page.read_text().split("## Known misses", 1)[1])[0]
    return {
        name: [float(figure) for figure in re.findall(r"\d+(?:\.\d+)?", figures)]
        for name, figures in re.findall(r"(?m)^\| `([^`]+)` \|([^|(]*)", section)
    }


def stops(bar):
    """Whether a bar is of a ratio that other work on the machine does not move far."""
    return (bar.kind, bar.machine) == ("ratio", "any")


def slips(bar, verdict, size, listed):
    """Whether a row is a ratio that misses its bar, and listed figures, by more than ``SLIP`` times."""
    if not stops(bar) or verdict.value is None:
        return False
    if bar.at_most is not None:
        most = max([bar.bound(size), *listed])
        return not verdict.value <= most + (SLIP - 1) * abs(most)
    least = min([bar.bound(size), *listed])
    return not verdict.value >= least - (1 - 1 / SLIP) * abs(least)


def rows_of(command, limit, **environment):
    """Rows that a command reports, what went wrong, if anything, and the seconds that its threads worked."""
    with tempfile.TemporaryDirectory() as folder:
        out, said = Path(folder) / "rows.json", Path(folder) / "said"
        name, *words = shlex.split(command.format(tmp=folder))
        assert name == "python"
        with said.open("wb") as file:
            begin = time.perf_counter()
            process = subprocess.Popen(
                [sys.executable, *words, "--json", str(out)],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=file,
                env={**os.environ, **environment},
            )
            late = threading.Timer(limit, process.kill)
            # It must not keep an interrupted program alive.
            late.daemon = True
            late.start()
            _, status, used = os.wait4(process.pid, 0)
            late.cancel()
        code, worked = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        if out.exists():
            return [Verdict(**row) for row in json.loads(out.read_text())], "", worked
        if code == 2 and not datasets.FOLDER.is_dir():
            return [], "", worked
        if code == -signal.SIGKILL and time.perf_counter() - begin >= limit:
            return [], f"did not end within {limit:g} s", worked
        return [], (said.read_text().strip().splitlines() or [f"exit code {code}"])[-1], worked


def judged(bars, rows, size, known):
    """Every bar against its rows."""
    for bar in bars:
        mine = [row for row in rows if bar.about(row.name)]
        bound = bar.judge(Verdict("", None), size).bar
        if not mine:
            yield Outcome(
                bar.name,
                "no such row",
                None,
                bound,
                False if datasets.FOLDER.is_dir() else None,
                bar.name in known,
            )
        for row in mine:
            verdict = bar.judge(row, size)
            yield Outcome(
                bar.name,
                row.name,
                verdict.value,
                verdict.bar,
                verdict.holds,
                bar.name in known,
                slips(bar, verdict, size, known.get(bar.name, ())),
            )


def judged_by_script(section, rows, known):
    """Rows with a bound that the script computed."""
    every = [bar for bars in load_bars().values() for bar in bars]
    for row in rows:
        if (row.bar or row.holds is not None) and not any(bar.about(row.name) for bar in every):
            name = f"{section}: {row.name}"
            yield Outcome(
                name,
                "",
                row.value,
                row.bar,
                row.holds,
                any(name.startswith(start) for start in known),
            )


def record(outcomes, processor, path):
    """Write the trend's line of this commit: the worst row of every bar, and each section's processor seconds. Draw all lines."""
    figures = dict(processor)
    for one in outcomes:
        if one.row and one.value is not None:
            worse = max if one.bar.startswith("<") else min
            figures[one.name] = worse(figures.get(one.name, one.value), one.value)
    lines = {}
    if path.exists():
        with path.open(newline="") as file:
            lines = {line["commit"]: line for line in csv.DictReader(file)}
    revision, today = commit(), datetime.date.today().isoformat()
    lines[revision] = {"commit": revision, "date": today} | {
        name: f"{value:.4g}" for name, value in figures.items()
    }
    with path.open("w", newline="") as file:
        names = dict.fromkeys(name for line in lines.values() for name in line)
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines.values())
    draw(list(lines.values()), path.with_suffix(".svg"))


def draw(lines, path):
    """Ratios that may slip over the trend's lines, in times of their bars (above 1: worse); a panel a section."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "vertimrf"
    import matplotlib.pyplot as plt

    panels = {}
    for section, bars in load_bars().items():
        for bar in filter(stops, bars):
            values = np.array([float(line.get(bar.name) or "nan") for line in lines])
            # A share of none has no place on a logarithmic axis.
            values[values == 0] = np.nan
            if not np.isnan(values).all():
                worse = values / bar.at_most if bar.at_least is None else bar.at_least / values
                panels.setdefault(section, []).append((bar.name.split(".")[1], worse))
    rows = -(-len(panels) // 3)
    figure, axes = plt.subplots(
        rows, 3, figsize=(13, 3 * rows), squeeze=False, layout="constrained"
    )
    for axis, (section, curves) in zip(axes.flat, panels.items(), strict=False):
        for name, worse in curves:
            axis.plot([line["commit"] for line in lines], worse, marker=".", label=name)
        axis.axhline(1, color="black", linewidth=0.5)
        axis.set(title=section, yscale="log", ylabel="times its bar")
        axis.tick_params("x", rotation=90)
        axis.legend(fontsize="small")
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def chosen(only, size):
    """Sections with their commands and bars at a size."""
    sections = tomllib.loads(BARS.read_text())
    names = {*sections, *(bar.name for bars in load_bars().values() for bar in bars)}
    if unknown := set(only) - names:
        sys.exit(f"bars.toml has no section or bar {sorted(unknown)[0]!r}.")
    for section, bars in load_bars().items():
        mine = [
            bar
            for bar in bars
            if (bar.quick or size == FULL) and (not only or section in only or bar.name in only)
        ]
        if (mine or section in only or not (only or bars)) and size in sections[section]:
            yield section, sections[section][size], mine


def measured(sections, size):
    """Sections with their bars and what :func:`rows_of` gives, as they come; prints what each took.

    Quick runs of those that measure no time, or whose times are far below their bars, go two at a time, after the others.
    """
    together = {
        name
        for name, section in tomllib.loads(BARS.read_text()).items()
        if size == QUICK and section.get("together")
    }

    def run(section, command, bars):
        begin = time.perf_counter()
        # Two threads for linear algebra would wait for each other.
        environment = {"OPENBLAS_NUM_THREADS": "1"} if section in together else {}
        rows, error, worked = rows_of(command, LIMIT[size], **environment)
        taken = f"{time.perf_counter() - begin:.0f} s, {worked:.0f} s of processors"
        print(f"# {section}: {command}, {taken}, load {os.getloadavg()[0]:.1f}", flush=True)
        return section, bars, rows, error, worked

    sections = list(sections)
    yield from (run(*one) for one in sections if one[0] not in together)
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(lambda one: run(*one), [one for one in sections if one[0] in together])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="the commands of minutes, five together"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="this section or bar; may be repeated",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write this commit's line of benchmarks/results/trend.csv and draw all lines, with matplotlib",
    )
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    known, outcomes, failed = known_misses(), [], 0
    # A shell that starts it in the background has it ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processor = {}
    try:
        for section, bars, rows, error, worked in measured(chosen(options.only, size), size):
            processor[f"{section}: processor s"] = worked
            if error:
                failed += 1
                print(f"FAILED             {section}: {error}", flush=True)
                continue
            names = (
                []
                if options.only and section not in options.only
                else judged_by_script(section, rows, known)
            )
            for outcome in (*judged(bars, rows, size, known), *names):
                outcomes.append(outcome)
                print(outcome, flush=True)
    except KeyboardInterrupt:
        failed += 1
        print("FAILED             the others: interrupted before they were measured", flush=True)
    if options.record:
        record(outcomes, processor, TREND)
    met, missed = (sum(outcome.holds is value for outcome in outcomes) for value in (True, False))
    new, slipped = (sum(getattr(one, how) for one in outcomes) for how in ("bad", "slips"))
    print(
        f"{met} held, {missed} missed, {new} of them not listed in benchmarks/results/accuracy.md; {slipped} slipped; {failed} commands failed."
    )
    return 3 if slipped else 2 if failed else 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
