"""Accuracy of the whole protocol on real tables, as a user runs it: the table in benchmarks/results/accuracy.md comes from here,
and three lines of it that stand in the README.

Every run is one `vertimrf synthesize` and one `vertimrf evaluate` in processes of their own, so that seconds and memory include
start-up and whatever compiling is left to do.

    python benchmarks/accuracy.py [--data FOLDER] [--seeds 5] [--quick | --smoke] [--json FILE]
        [--page benchmarks/results/accuracy.md] [--readme README.md]

FOLDER holds the paper's data sets (benchmarks/datasets.py): nltcs, adult, br2000 and fire.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.reproduce.quoted import AIM, MST
from benchmarks.reproduce.report import table
from benchmarks.results import put_between
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, at_most, conclude, show

MARK = "accuracy"
SMOKE_RECORDS = 1000
# What the README shows: one line a data set that others have figures of, at the epsilon most used.
SHORT_MARK, SHORT = "accuracy in short", {("nltcs", 0.8), ("adult", 0.8), ("br2000", 0.8)}


@dataclass(frozen=True)
class Case:
    """One row of the table: a data set, its split, the target, and what there is to compare with."""

    name: str
    split: str
    epsilon: float
    note: str = ""

    def records(self, folder: Path) -> int:
        return SMOKE_RECORDS if self is SMOKE_CASE else datasets.load(self.name, folder).records

    @property
    def comparison(self) -> str:
        quoted = [(what, figures.get((self.name, self.epsilon))) for what, figures in (("MST", MST), ("AIM", AIM))]
        parts = [f"central {what}: {figure:g}" for what, figure in quoted if figure is not None]
        return "; ".join(parts + [self.note] * bool(self.note))


CASES = (
    Case("nltcs", "8,8", 0.8, "paper, two parties: 0.052–0.074"),
    Case("nltcs", "8,8", 0.2),
    Case("adult", "8,7", 0.8),
    Case("br2000", "7,7", 0.8),
    Case("fire", "8,7", 0.8),
)
SMOKE_CASE = Case("generated", "4,4", 0.8)


def command(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "vertimrf", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def one_run(case: Case, data: Path, seed: int, folder: Path) -> dict[str, float]:
    """Seconds of the synthesis, its epsilon, and 3-way TVD over 300 random marginals."""
    table, domain = datasets.files(case.name, data)
    records = case.records(data)
    out, report, distance = folder / "out.csv", folder / "report.json", folder / "tvd.json"
    start = time.perf_counter()
    command("synthesize", table, "--id", "record_id", "--schema", domain, "--split", case.split, "--epsilon", case.epsilon,
            "--delta", 1 / records, "--seed", seed, "--out", out, "--json", report)  # fmt: skip
    seconds = time.perf_counter() - start
    command("evaluate", "--real", table, "--synthetic", out, "--id", "record_id", "--schema", domain, "--ways", 3,
            "--json", distance)  # fmt: skip
    figures = json.loads(report.read_text())
    return {
        "seconds": seconds,
        "epsilon": figures["epsilon"],
        "tvd": json.loads(distance.read_text())["tvd"]["3"],
        "message_mb": max(figures["message_bytes"].values()) / 1e6,
    }


def measure(case: Case, data: Path, seeds: int) -> dict[str, Any]:
    """Mean and spread over seeds of one row."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [one_run(case, data, seed, Path(folder)) for seed in range(seeds)]
    tvd = [run["tvd"] for run in runs]
    return {
        "data": case.name,
        "split": case.split,
        "epsilon": case.epsilon,
        "spent": max(run["epsilon"] for run in runs),
        "tvd": float(np.mean(tvd)),
        "spread": float(np.std(tvd, ddof=1)) if seeds > 1 else None,
        "seconds": float(np.median([run["seconds"] for run in runs])),
        "slowest": max(run["seconds"] for run in runs),
        "message_mb": runs[0]["message_mb"],
        "seeds": seeds,
        "comparison": case.comparison,
    }


def verdicts(case: Case, row: dict[str, Any]) -> list[Verdict]:
    """What a row is held to, and what else it says."""
    head = f"{case.name}, epsilon {case.epsilon:g}, count sketches: "
    return [
        Verdict(f"{head}3-way TVD", row["tvd"]),
        *([] if row["spread"] is None else [Verdict(f"{head}its standard deviation over {row['seeds']} seeds", row["spread"])]),
        at_most(f"{head}epsilon spent", row["spent"], case.epsilon),
        Verdict(f"{head}seconds, median", row["seconds"]),
        Verdict(f"{head}seconds, slowest", row["slowest"]),
        Verdict(f"{head}largest message [MB]", row["message_mb"]),
    ]


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table as pages show it."""
    head = ["data, split", "ε", "3-way TVD", "seconds, median", "largest message", "for comparison"]
    lines = []
    for row in rows:
        spread = "" if row["spread"] is None else f" ± {row['spread']:.4f}"
        seeds = f"{row['seeds']} seed{'s' if row['seeds'] != 1 else ''}"
        lines.append([
            f"{row['data']}, {row['split']}", f"{row['epsilon']}", f"{row['tvd']:.4f}{spread} ({seeds})", f"{row['seconds']:.1f}",
            f"{row['message_mb']:.1f} MB", f"{row['comparison']}",
        ])  # fmt: skip
    return table(head, lines)


def main() -> None:
    parser = arguments(__doc__, quick="one seed, without fire")
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the data sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", type=Path, help="write the table between this file's markers")
    parser.add_argument("--readme", type=Path, help="write its lines for the README between this file's markers")
    options = parser.parse_args()
    if options.size == SMOKE:
        with tempfile.TemporaryDirectory() as folder:
            datasets.write(datasets.generated(SMOKE_RECORDS), Path(folder))
            rows = verdicts(SMOKE_CASE, measure(SMOKE_CASE, Path(folder), 1))
        sys.exit(conclude(show(rows, "tvd", SMOKE), options.json, SMOKE))
    cases = [case for case in CASES if not (options.size == QUICK and case.name == "fire")]
    if absent := [case.name for case in cases if not datasets.present(case.name, options.data)]:
        print(f"{options.data} has no {absent[0]}.csv.gz; give the folder of the data sets with --data.", file=sys.stderr)
        sys.exit(2)
    rows, found = [], []
    for case in cases:
        rows.append(measure(case, options.data, options.seeds if options.size == FULL else 1))
        found += show(verdicts(case, rows[-1]), "tvd accuracy", options.size)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    found += show([Verdict("largest memory of any run [GiB]", peak)], "tvd accuracy", options.size)
    print(markdown(rows))
    if options.page:
        put_between(options.page, MARK, markdown(rows) + f"\n\nLargest memory of any run: {peak:.1f} GiB.")
    if options.readme:
        put_between(options.readme, SHORT_MARK, markdown([row for row in rows if (row["data"], row["epsilon"]) in SHORT]))
    sys.exit(conclude(found, options.json, options.size))


if __name__ == "__main__":
    main()
