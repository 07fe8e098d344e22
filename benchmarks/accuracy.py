"""Accuracy of the whole protocol on real tables, as a user runs it: the README's accuracy table comes from here.

Every run is one `vertimrf synthesize` and one `vertimrf evaluate` in processes of their own, so that seconds and memory include
start-up and whatever compiling is left to do.

    python benchmarks/accuracy.py --data FOLDER [--seeds 5] [--quick] [--json FILE] [--readme README.md]

FOLDER holds NAME.csv.gz (record_id, integer codes) and NAME-domain.json for nltcs, adult and fire, the paper's data sets.
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

MARK = "accuracy"


@dataclass(frozen=True)
class Case:
    """One row of the table: a data set, its split, the target, and the bars it is held to."""

    name: str
    split: str
    records: int
    epsilon: float
    tvd_bar: float | None
    seconds_bar: float | None
    note: str


CASES = (
    Case("nltcs", "8,8", 21_574, 0.8, 0.020, None, "paper, two parties: 0.052–0.074; central MST: 0.145; central AIM: 0.0057"),
    Case("nltcs", "8,8", 21_574, 0.2, 0.030, None, "central MST: 0.143; central AIM: 0.0147"),
    Case("adult", "8,7", 45_222, 0.8, 0.080, 180, "central MST: 0.079; central AIM: 0.042"),
    Case("br2000", "7,7", 38_000, 0.8, None, None, "central MST: 0.057; central AIM: 0.026"),
    Case("fire", "8,7", 305_119, 0.8, None, 480, "must end within 8 minutes and 8 GiB"),
)


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
        "spread": float(np.std(tvd, ddof=1)) if seeds > 1 else 0.0,
        "seconds": float(np.median([run["seconds"] for run in runs])),
        "slowest": max(run["seconds"] for run in runs),
        "message_mb": runs[0]["message_mb"],
        "seeds": seeds,
        "tvd_bar": case.tvd_bar,
        "seconds_bar": case.seconds_bar,
        "note": case.note,
        "holds": (case.tvd_bar is None or np.mean(tvd) <= case.tvd_bar)
        and (case.seconds_bar is None or max(run["seconds"] for run in runs) <= case.seconds_bar),
    }


def markdown(rows: list[dict[str, object]]) -> str:
    """The table as the README shows it."""
    lines = [
        "| data, split | ε | 3-way TVD, mean ± s.d. | seconds, median | largest message | for comparison |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['data']}, {row['split']} | {row['epsilon']} | {row['tvd']:.4f} ± {row['spread']:.4f} "
            f"({row['seeds']} seeds) | {row['seconds']:.1f} | {row['message_mb']:.1f} MB | {row['note']} |"
        )
    return "\n".join(lines)


def put_into(readme: Path, mark: str, text: str) -> None:
    """Replace what stands between the README's markers of a table."""
    content = readme.read_text()
    begin, end = f"<!-- table: {mark} -->", f"<!-- end: {mark} -->"
    head, rest = content.split(begin)
    readme.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default, help="folder of the data sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed, without fire")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--readme", type=Path, help="write the table between this file's markers")
    options = parser.parse_args()
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
        put_into(options.readme, MARK, markdown(rows) + f"\n\nLargest memory of any run: {peak:.1f} GiB.")
    if not all(row["holds"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
