"""Accuracy of the whole protocol on real tables, as a user runs it: the README's accuracy table comes from here.

Every run is one `vertimrf synthesize` and one `vertimrf evaluate` in processes of their own, so that seconds and memory include
start-up and whatever compiling is left to do.

    python -m benchmarks.accuracy --data FOLDER [--seeds 5] [--quick] [--json FILE] [--readme README.md]

FOLDER holds NAME.csv.gz (record_id, integer codes) and NAME-domain.json for nltcs, adult, br2000 and fire, the
paper's data sets.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .reproduce.quoted import AIM, BARS, CELL_SECONDS, MST
from .reproduce.report import put_between, table

MARK = "accuracy"


@dataclass(frozen=True)
class Case:
    """One row of the table: a data set, its split, the target, and what there is to compare with."""

    name: str
    split: str
    records: int
    epsilon: float
    note: str = ""

    @property
    def bar(self) -> float | None:
        return BARS.get((self.name, self.epsilon))

    @property
    def comparison(self) -> str:
        quoted = [(what, figures.get((self.name, self.epsilon))) for what, figures in (("MST", MST), ("AIM", AIM))]
        parts = [f"central {what}: {figure:g}" for what, figure in quoted if figure is not None]
        return "; ".join(parts + [self.note] * bool(self.note))


CASES = (
    Case("nltcs", "8,8", 21_574, 0.8, "paper, two parties: 0.052–0.074"),
    Case("nltcs", "8,8", 21_574, 0.2),
    Case("adult", "8,7", 45_222, 0.8),
    Case("br2000", "7,7", 38_000, 0.8),
    Case("fire", "8,7", 305_119, 0.8),
)
# Of any process.
MEMORY_GIB = 8.0


def command(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "vertimrf.cli", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def one_run(case: Case, data: Path, seed: int, folder: Path) -> dict[str, float]:
    """Seconds of the synthesis, its epsilon, and 3-way TVD over 300 random marginals."""
    table, domain = data / f"{case.name}.csv.gz", data / f"{case.name}-domain.json"
    out, report, distance = folder / "out.csv", folder / "report.json", folder / "tvd.json"
    start = time.perf_counter()
    command("synthesize", table, "--id", "record_id", "--schema", domain, "--split", case.split, "--epsilon", case.epsilon,
            "--delta", 1 / case.records, "--seed", seed, "--out", out, "--json", report)  # fmt: skip
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


def measure(case: Case, data: Path, seeds: int) -> dict[str, object]:
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
        "bar": case.bar,
        "comparison": case.comparison,
        "holds": (case.bar is None or float(np.mean(tvd)) <= case.bar) and max(run["seconds"] for run in runs) <= CELL_SECONDS,
    }


def markdown(rows: list[dict[str, object]]) -> str:
    """The table as the README shows it."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default, help="folder of the data sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed, without fire")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--readme", type=Path, help="write the table between this file's markers")
    options = parser.parse_args()
    if not (options.data / "nltcs.csv.gz").exists():
        print(f"{options.data} has no nltcs.csv.gz; give the folder of the data sets with --data.", file=sys.stderr)
        sys.exit(2)
    rows = []
    for case in CASES:
        if options.quick and case.name == "fire":
            continue
        rows.append(measure(case, options.data, 1 if options.quick else options.seeds))
        print(json.dumps(rows[-1]), flush=True)
    print(markdown(rows))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"largest memory of any run: {peak:.2f} GiB")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "peak_gib": peak}, indent=1) + "\n")
    if options.readme:
        put_between(options.readme, MARK, markdown(rows) + f"\n\nLargest memory of any run: {peak:.1f} GiB.")
    if not all(row["holds"] for row in rows) or peak > MEMORY_GIB:
        sys.exit(1)


if __name__ == "__main__":
    main()
