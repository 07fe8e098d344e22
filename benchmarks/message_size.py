r"""Accuracy against message size, for every encoder: benchmarks/results/message-size.md comes from here.

Whole runs in one process, as `vertimrf synthesize` makes them: delta 1 / n, two parties, the paper's splits, 3-way TVD over 300
random marginals. Runs that the store has already are not made again, so that it can be filled in bit by bit.

    python benchmarks/message_size.py [--data FOLDER] [--seeds 3] [--only adult ...] [--smoke] [--json FILE]
    python benchmarks/message_size.py --plot benchmarks/results/message-size.svg --page benchmarks/results/message-size.md

FOLDER holds the paper's data sets (benchmarks/datasets.py). The plot needs matplotlib (the extra "experiments").
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.reproduce.report import table
from benchmarks.results import put_between
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, conclude, held, show
from vertimrf.distances import distance, random_marginals
from vertimrf.options import RunOptions
from vertimrf.plan.schema import Schema
from vertimrf.trial import open_tables, synthesize

MARK = "message size"
# The paper's messages: 15 megabits on Adult, for 2000 keys (VertiMRF, its table of communication costs).
PAPERS_MB = 2.0
STORE = Path(__file__).with_suffix(".json")
SPLITS = {"generated": (4, 4), "nltcs": (8, 8), "adult": (8, 7), "br2000": (7, 7), "fire": (8, 7), "pisa": (41, 40)}
COUNT, PAIRS = "count-sketch", "scheduled-pairs"
NAMES = {COUNT: "count sketches", PAIRS: "scheduled pairs", "grr": "randomised response", "published": "published (claim only)"}


@dataclass(frozen=True)
class Case:
    """One run but for its seed; no size where the encoder's messages have one of their own."""

    data: str
    encoder: str
    mb: float | None
    epsilon: float = 0.8


SMOKE_CASE = Case("generated", COUNT, 0.1)
CASES = (
    *(Case("adult", COUNT, mb) for mb in (1, 4, 16, 64)),
    *(Case("nltcs", COUNT, mb) for mb in (0.25, 1, 4)),
    *(Case(data, COUNT, mb) for data in ("br2000", "fire") for mb in (4, 16)),
    *(Case("adult", COUNT, 16, epsilon) for epsilon in (0.2, 3.2)),
    *(Case("adult", PAIRS, mb) for mb in (1, 4, 16, 64)),
    *(Case("nltcs", PAIRS, mb) for mb in (1, 4, 64)),
    *(Case(data, PAIRS, mb) for data in ("br2000", "fire") for mb in (4, 16, 64)),
    *(Case(data, encoder, None) for data in ("nltcs", "adult", "br2000", "fire") for encoder in ("grr", "published")),
    *(Case("pisa", encoder, mb) for encoder, mb in ((COUNT, 16), (PAIRS, 64))),
)


def one_run(case: Case, seed: int, folder: Path) -> dict[str, Any]:
    """3-way TVD, bytes of the largest message, and the ledger's epsilon."""
    data = datasets.load(case.data, folder)
    file, domain = datasets.files(case.data, folder)
    schema, _ = open_tables([file], "record_id", Schema.load(domain), SPLITS[case.data])
    trial = synthesize(
        [file], "record_id", case.epsilon, schema=Schema.load(domain), split=SPLITS[case.data], expected_records=data.records,
        options=RunOptions(seed=seed), delta=1 / data.records, encoder=case.encoder,
        claim_as_published=case.encoder == "published",
        **({} if case.mb is None else {"message_bytes": round(case.mb * 1e6)}),
    )  # fmt: skip
    order = [data.names.index(name) for name in schema.names]
    chosen = random_marginals(len(order), 3)
    tvd = float(np.mean([distance(data.codes[order], trial.result.codes, schema.sizes, own) for own in chosen]))
    return {**asdict(case), "seed": seed, "tvd": tvd, "message_mb": max(trial.message_bytes.values()) / 1e6,
            "spent": trial.ledger.epsilon}  # fmt: skip


def of(runs: Sequence[dict[str, Any]], case: Case) -> list[dict[str, Any]]:
    """A case's runs."""
    return [run for run in runs if all(run[key] == value for key, value in asdict(case).items())]


def row_name(case: Case) -> str:
    size = "" if case.mb is None else f", {case.mb:g} MB"
    return f"{case.data}, epsilon {case.epsilon:g}, {NAMES[case.encoder]}{size}: 3-way TVD"


def rows(runs: Sequence[dict[str, Any]], cases: Sequence[Case]) -> list[Verdict]:
    """Means of what was run."""
    return [Verdict(row_name(case), float(np.mean([run["tvd"] for run in own]))) for case in cases if (own := of(runs, case))]


def markdown(runs: Sequence[dict[str, Any]]) -> str:
    """All cases with runs, as a table."""
    lines = []
    for case in CASES:
        own = of(runs, case)
        if not own:
            continue
        tvd = np.array([run["tvd"] for run in own])
        spread = f" ± {tvd.std(ddof=1):.4f}" if len(own) > 1 else ""
        row = held(Verdict(row_name(case), float(tvd.mean())), "message_size", FULL)
        size = float(np.mean([run["message_mb"] for run in own]))
        lines.append([
            case.data, f"{case.epsilon:g}", NAMES[case.encoder], f"{size:.3g}", f"{tvd.mean():.4f}{spread}", str(len(own)),
            row.bar.removeprefix("<= "), {True: "yes", False: "no", None: ""}[row.holds],
        ])  # fmt: skip
    return table(["data", "ε", "encoder", "largest message [MB]", "3-way TVD", "runs", "at most", "holds"], lines)


def plot(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """A panel for each of the paper's data sets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    for axes, data in zip(figure.subplots(2, 2).ravel(), ("nltcs", "adult", "br2000", "fire"), strict=True):
        for encoder, name in NAMES.items():
            cases = [case for case in CASES if (case.data, case.encoder, case.epsilon) == (data, encoder, 0.8) and of(runs, case)]
            found = sorted(
                (float(np.mean([r["message_mb"] for r in own])), float(np.mean([r["tvd"] for r in own])),
                 float(np.std([r["tvd"] for r in own], ddof=1)) if len(own) > 1 else 0.0)
                for own in (of(runs, case) for case in cases)
            )  # fmt: skip
            if found:
                axes.errorbar(*np.array(found).T[:2], yerr=np.array(found)[:, 2], marker="o", capsize=3, label=name)
        axes.axvline(PAPERS_MB, color="grey", linestyle=":", label="the paper's, on Adult")
        axes.set(xscale="log", yscale="log", title=f"{data}, ε = 0.8", xlabel="largest message [MB]", ylabel="3-way TVD")
        axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the data sets")
    parser.add_argument("--store", type=Path, default=STORE, help="runs, read and added to")
    parser.add_argument("--seeds", type=int, default=0, help="runs of each case to be had; 0: no new ones")
    parser.add_argument("--only", nargs="+", default=[], help="data:encoder:MB[:epsilon] cases, or parts of them from the left")
    parser.add_argument("--plot", type=Path, help="an SVG or PNG file to draw")
    parser.add_argument("--page", type=Path, help="write the table between this file's markers")
    options = parser.parse_args()
    if options.size == SMOKE:
        with tempfile.TemporaryDirectory() as folder:
            datasets.write(datasets.load("generated"), Path(folder))
            made = [one_run(SMOKE_CASE, 0, Path(folder))]
        sys.exit(conclude(show(rows(made, (SMOKE_CASE,)), "message_size", SMOKE), options.json, SMOKE))
    runs = json.loads(options.store.read_text()) if options.store.exists() else []
    for case in CASES:
        name = f"{case.data}:{case.encoder}:{case.mb}:{case.epsilon}:"
        if options.only and not any(name.startswith(f"{wanted}:") for wanted in options.only):
            continue
        for seed in range(len(of(runs, case)), options.seeds):
            runs.append(one_run(case, seed, options.data))
            print(runs[-1], flush=True)
            options.store.write_text("[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n")
    print(markdown(runs))
    if options.page:
        put_between(options.page, MARK, markdown(runs))
    if options.plot:
        plot(runs, options.plot)
    sys.exit(conclude(show(rows(runs, CASES), "message_size"), options.json))


if __name__ == "__main__":
    main()
