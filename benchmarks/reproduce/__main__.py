"""Reproduce the paper's experiments (VertiMRF, section 6 and appendix).

Finished runs are lines of OUT/runs.jsonl and are not done again: interrupt it and start it again as you like, and delete the file
to start afresh. Writes OUT/runs.csv, and with --docs a Markdown page and plots.

    python -m benchmarks.reproduce --smoke                         a run or two of every experiment, seconds
    python -m benchmarks.reproduce --quick                         every experiment at a small scale, minutes
    python -m benchmarks.reproduce --docs benchmarks/results       everything, many hours
    python -m benchmarks.reproduce --only bars --page benchmarks/results/accuracy.md --readme README.md
    python -m benchmarks.reproduce --only messages --page benchmarks/results/message-size.md
    python -m benchmarks.reproduce --only utility --page benchmarks/results/utility.md
"""

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from .. import datasets
from ..results import commit, put_between
from ..verdict import FULL, QUICK, SMOKE, conclude, show
from ..verdict import arguments as sized
from . import report
from .execute import execute
from .experiments import EXPERIMENTS, available, full_scale, quick_scale, smoke_scale
from .store import Store

FULL_SEEDS = 5


def pending(scale, names, store):
    """Runs yet to do, and how many there are in all; a run that several experiments ask for counts once."""
    wanted = list(dict.fromkeys(run for name in names for run in EXPERIMENTS[name](scale)))
    return [run for run in wanted if run not in store], len(wanted)


def work(runs, total, store, folder):
    """Do runs, appending each; a run that fails is reported and left for the next time. Returns the failures."""
    failures = []
    begun, revision = time.perf_counter(), commit()
    for i, run in enumerate(runs):
        start = time.perf_counter()
        try:
            result = execute(run, folder)
        except (ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
            failures.append(f"{run.label()}: {error}")
            print(f"FAILED {failures[-1]}", flush=True)
            continue
        store.add(run, result, revision)
        figure = next(
            f"{name} {result[name]:.4f}"
            for name in ("tvd3", "misclassification", "propensity")
            if name in result
        )
        left = (time.perf_counter() - begun) / (i + 1) * (len(runs) - i - 1)
        print(
            f"[{total - len(runs) + i + 1}/{total}] {run.label()}: {figure}, {time.perf_counter() - start:.1f} s"
            f" (about {left / 60:.0f} min left)",
            flush=True,
        )
    return failures


def arguments(argv):
    parser = sized(__doc__, quick="one epsilon, one seed, few marginals; NLTCS or generated data")
    parser.prog = "python -m benchmarks.reproduce"
    parser.add_argument(
        "--data", type=Path, default=datasets.FOLDER, help="folder of NAME.csv.gz files"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("reproduce-results"),
        help="folder of runs.jsonl and runs.csv",
    )
    parser.add_argument("--docs", type=Path, help="folder for experiments.md and its plots")
    parser.add_argument(
        "--page",
        type=Path,
        help="write the tables of bars, messages or utility between this file's markers",
    )
    parser.add_argument(
        "--readme",
        type=Path,
        help="write the README's lines of the bars between this file's markers",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=sorted(EXPERIMENTS),
        help="an experiment; repeat for several",
    )
    parser.add_argument("--seeds", type=int, help="default 5, or 1 with --quick")
    parser.add_argument(
        "--datasets",
        nargs="+",
        choices=(*datasets.NAMES, "generated"),
        metavar="DATA",
        help="of the experiments over all data sets, and of the bars",
    )
    parser.add_argument("--methods", nargs="+", help="leave other methods out of the curves")
    parser.add_argument("--epsilons", nargs="+", type=float, help="of the curves and bars")
    parser.add_argument(
        "--report-only", action="store_true", help="run nothing, write the tables of what there is"
    )
    return parser.parse_args(argv)


def scale_of(options):
    """The scale that the options ask for."""
    if options.size == SMOKE:
        return smoke_scale()
    scale = (
        quick_scale(options.data, options.seeds or 1)
        if options.size == QUICK
        else full_scale(options.seeds or FULL_SEEDS)
    )
    if options.datasets:
        scale = replace(scale, data=tuple(options.datasets))
    if options.methods:
        if unknown := set(options.methods) - set(scale.methods):
            sys.exit(
                f"Unknown or missing method {sorted(unknown)[0]!r}; there are {', '.join(scale.methods)}."
            )
        scale = replace(scale, methods=tuple(m for m in scale.methods if m in options.methods))
    if options.epsilons:
        scale = replace(
            scale, epsilons=tuple(options.epsilons), bar_epsilons=tuple(options.epsilons)
        )
    return scale


def main(argv=None):
    """Run, write, and return the exit code: 1 if a run failed."""
    options = arguments(argv)
    if options.size != SMOKE:
        return run(options)
    with tempfile.TemporaryDirectory() as folder:
        options.out = Path(folder)
        return run(options)


def run(options):
    scale = scale_of(options)
    names = options.only or list(EXPERIMENTS)
    for line in available()[2]:
        print(line)
    store = Store(options.out / "runs.jsonl")
    runs, total = pending(scale, names, store)
    if runs and not options.report_only:
        needed = {run.data for run in runs} - {"generated"}
        if absent := sorted(name for name in needed if not datasets.present(name, options.data)):
            print(
                f"{options.data} has no {absent[0]}.csv.gz; give its folder with --data, or try --quick.",
                file=sys.stderr,
            )
            return 2
    print(f"{total} runs, {total - len(runs)} of them done", flush=True)
    written = [name for name in names if name in report.TABLES]
    if (options.page or options.readme) and (options.size != FULL or len(written) != 1):
        print(
            f"--page takes one full experiment: no --quick, and --only of {', '.join(report.TABLES)}.",
            file=sys.stderr,
        )
        return 2
    if (options.page or options.readme) and (others := store.commits - {commit()}):
        print(
            f"{store.path} has runs of {', '.join(sorted(others))}, and pages are of this commit, {commit()}: give another --out.",
            file=sys.stderr,
        )
        return 2
    failures = [] if options.report_only else work(runs, total, store, options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    report.write_csv(store, options.out / "runs.csv")
    page = report.Page(store, scale)
    if options.docs:
        options.docs.mkdir(parents=True, exist_ok=True)
        images = report.plots(store, scale, options.docs)
        (options.docs / "experiments.md").write_text(report.markdown(store, scale, images))
    else:
        for name in names:
            print("\n" + report.SECTIONS[name][2](page))
    if "bars" in names and options.docs:
        print(report.summary(page))
    if options.page or options.readme:
        # Five seeds and all data sets, as the page says, whatever this call was narrowed to.
        full = full_scale(FULL_SEEDS)
        # Mechanisms of others may fail or take hours: their table has dashes for what was not run.
        missing = len(pending(full, written, store)[0])
        if missing and written != ["peers"]:
            print(f"The pages are left as they are: {missing} runs are missing.", file=sys.stderr)
            return 1
        whole = report.Page(store, full)
        # Of the checkout before its pages change.
        revision = commit()
        if options.page:
            for mark, table in report.TABLES[written[0]].items():
                put_between(options.page, mark, table(whole), revision)
        if options.readme:
            put_between(
                options.readme, "accuracy in short", report.accuracy(whole, short=True), revision
            )
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    verdicts = [
        verdict
        for name in names
        if name in report.VERDICTS
        for verdict in report.VERDICTS[name](page, options.size)
    ]
    missed = conclude(
        show(verdicts, "tvd message_size utility", options.size), options.json, options.size
    )
    return 1 if failures else missed if options.json else 0


if __name__ == "__main__":
    sys.exit(main())
