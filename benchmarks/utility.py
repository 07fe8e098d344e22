"""What synthetic rows are good for, by the measures that people judge them by: the tables of benchmarks/results/utility.md.

Rows of two parties (the paper's split), of Centralized and of whatever peers' files are given, each beside the real rows, by all
that `vertimrf evaluate --utility LABEL` measures (vertimrf/utility/) and by how far correlations are off.

    python benchmarks/utility.py adult --label income --epsilon 0.8 [--seeds 5] [--rows AIM=FILE ...] [--data FOLDER]
        [--store FILE] [--smoke] [--json FILE] [--page benchmarks/results/utility.md]

--smoke takes the generated table, whatever else is asked for.

FILE is a CSV file of synthetic rows, integer codes by column name; of several with one NAME every seed takes another. CatBoost
and SDMetrics have their columns where they are installed. What a store has is not measured again: it is of one version of the
library, and of one set of files.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.datasets import Codes, Dataset
from benchmarks.reproduce.methods import METHODS
from benchmarks.reproduce.report import table
from benchmarks.reproduce.splits import PAPER_SPLITS, deal
from benchmarks.results import put_between
from benchmarks.verdict import SMOKE, Verdict, arguments, conclude, show
from vertimrf.moments import compare_correlations
from vertimrf.plan.attribute import Attribute
from vertimrf.utility.figures import utility
from vertimrf.utility.trees import CATBOOST, SCIKIT

TWO, CENTRAL, REAL, AIM = "two parties", "Centralized", "real rows", "AIM"
# What has an order, and correlations; the rest are categories. Of data sets that are not listed, everything.
ORDERED = {"adult": ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")}
# Heads of the table, each with its figure's name and digits.
COLUMNS = {
    "AUC, scikit-learn": ("scikit-learn auc", 4),
    "AUC, CatBoost": ("CatBoost auc", 4),
    "accuracy, scikit-learn": ("scikit-learn accuracy", 4),
    "propensity": ("propensity", 3),
    "k-marginal, pairs": ("k-marginal 2", 1),
    "k-marginal, triples": ("k-marginal 3", 1),
    "SDMetrics quality": ("quality", 4),
    "correlations off by": ("correlations", 4),
}

Figures = dict[str, float]
# Synthetic rows of a seed.
Rows = Callable[[int], Codes]


def read_rows(path: Path, data: Dataset) -> Codes:
    """Synthetic rows of a file, in a data set's order of attributes.

    Raises:
        ValueError: a column is missing, or has other values than the domain's codes.
    """
    import pyarrow.csv

    given = pyarrow.csv.read_csv(path)
    rows = []
    for name, size in zip(data.names, data.sizes, strict=True):
        if name not in given.column_names:
            raise ValueError(f"{path} has no column {name}; its columns are named as those of {data.name}.")
        values = given[name].to_numpy()
        if not np.isin(values, np.arange(size)).all():
            raise ValueError(f"{path}: column {name} has other values than the codes 0 to {size - 1}.")
        rows.append(values.astype(np.uint16))
    return np.stack(rows)


def sources(data: Dataset, epsilon: float, given: Mapping[str, Sequence[Path]]) -> dict[str, Rows]:
    """What makes rows, by name.

    Raises:
        OSError, ValueError: a file of rows cannot be read, or is of another table.
    """

    def made(method: str) -> Rows:
        split = deal(PAPER_SPLITS[data.name])

        def rows(seed: int) -> Codes:
            return METHODS[method].synthesize(data.codes, data.sizes, split, epsilon, 1 / data.records, seed).codes

        return rows

    def read(paths: Sequence[Path]) -> Rows:
        tables = [read_rows(path, data) for path in paths]
        return lambda seed: tables[seed % len(tables)]

    return {
        TWO: made("count-sketches"), CENTRAL: made("centralized"), **{name: read(paths) for name, paths in given.items()}
    }  # fmt: skip


def attributes_of(data: Dataset) -> list[Attribute]:
    """Domains as the judges take them; the synthesis takes all codes as ordered."""
    return [
        Attribute.integer(name, size)
        if name in ORDERED.get(data.name, data.names)
        else Attribute.categorical(name, [str(code) for code in range(size)])
        for name, size in zip(data.names, data.sizes, strict=True)
    ]


def judged(data: Dataset, rows: Codes, label: str, seed: int) -> tuple[Figures, Figures]:
    """Figures of synthetic rows, and those of real ones: trees of other real rows, and as many rows drawn from the real ones."""
    found = utility(data.codes, rows, attributes_of(data), label, seed)
    drawn = data.codes[:, np.random.default_rng(seed).integers(data.records, size=data.records)]
    return (
        _flat(found, "synthetic", "synthetic") | {"propensity": found["propensity"], "correlations": _correlations(data, rows)},
        _flat(found, "real", "resampled") | {"correlations": _correlations(data, drawn)},
    )


def _flat(found: dict[str, Any], trained: str, compared: str) -> Figures:
    out = {
        f"{name} {measure}": found["trees"][name][trained][measure]
        for name, measure in itertools.product((SCIKIT, CATBOOST), ("auc", "accuracy"))
        if name in found["trees"]
    }
    out |= {f"k-marginal {k}": score for k, score in found["k_marginal"][compared].items()}
    return out | ({"quality": found["quality"][compared]["score"]} if "quality" in found else {})


def _correlations(data: Dataset, rows: Codes) -> float:
    """Mean absolute difference of the correlations of every two ordered attributes' codes."""
    ordered = [i for i, attribute in enumerate(attributes_of(data)) if attribute.ordered]
    real, synthetic = (
        {data.names[i]: codes[i].astype(np.float64) for i in ordered} for codes in (data.codes, rows)
    )
    pairs = compare_correlations(real, synthetic)
    return float(np.mean([abs(pair["real"] - pair["synthetic"]) for pair in pairs]))


def measure(
    data: Dataset, label: str, epsilon: float, made: Mapping[str, Rows], seeds: int, store: Path | None = None
) -> Iterator[tuple[str, list[Figures]]]:
    """Figures of every source, a seed each, as they come; those of real rows last. A store is a file of finished ones."""
    known = {} if store is None or not store.exists() else dict(map(json.loads, store.read_text().splitlines()))

    def once(name: str, rows: Rows, seed: int) -> tuple[Figures, Figures]:
        key = f"{data.name} {label} {epsilon:g} {name} {seed}"
        if key not in known:
            known[key] = judged(data, rows(seed), label, seed)
            if store is not None:
                with store.open("a") as file:
                    file.write(json.dumps([key, known[key]]) + "\n")
        return known[key]

    real: list[Figures] = []
    for name, rows in made.items():
        pairs = [once(name, rows, seed) for seed in range(seeds)]
        # The same for every source: it follows from the seed alone.
        real = [own for _, own in pairs]
        yield name, [own for own, _ in pairs]
    yield REAL, real


def mean(found: Sequence[Figures], figure: str) -> float | None:
    values = [own[figure] for own in found if figure in own]
    return float(np.mean(values)) if values else None


def markdown(found: dict[str, list[Figures]]) -> str:
    """The table as the page shows it; columns without a figure are left out."""

    def cell(own: Sequence[Figures], figure: str, digits: int) -> str:
        values = [one[figure] for one in own if figure in one]
        if not values:
            return "–"
        spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
        return f"{np.mean(values):.{digits}f}{spread}"

    every = [one for own in found.values() for one in own]
    shown = {head: column for head, column in COLUMNS.items() if any(column[0] in one for one in every)}
    lines = [[name, *(cell(own, *column) for column in shown.values())] for name, own in found.items()]
    return table(["rows of", *shown], lines)


def verdicts(found: dict[str, list[Figures]], head: str) -> list[Verdict]:
    """What two parties' rows are held to."""
    out = []
    others = [CENTRAL, *(name for name in found if name.startswith(AIM))]
    for figure, other in itertools.product((f"{SCIKIT} auc", f"{CATBOOST} auc"), others):
        own, theirs = mean(found[TWO], figure), mean(found[other], figure)
        if own is not None and theirs is not None:
            out.append(Verdict(f"{head}{figure} of {TWO}, less that of {other}", own - theirs))
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "name", choices=sorted(PAPER_SPLITS), nargs="?", default="generated", metavar="DATA", help=", ".join(sorted(PAPER_SPLITS))
    )
    parser.add_argument("--label", default="x0", help="the attribute that trees tell from the others")
    parser.add_argument("--epsilon", type=float, default=0.8)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", action="append", default=[], metavar="NAME=FILE", help="rows of a peer; repeat")
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the data sets")
    parser.add_argument("--store", type=Path, help="a file of figures measured so far, to go on from")
    parser.add_argument("--page", type=Path, help="write the table between this file's markers")
    options = parser.parse_args()
    if options.size == SMOKE:
        options.name, options.label, options.seeds = "generated", "x0", 1
    given: dict[str, list[Path]] = {}
    for text in options.rows:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            parser.error(f"--rows takes NAME=FILE, not {text!r}.")
        given.setdefault(name, []).append(Path(path))
    if not datasets.present(options.name, options.data):
        parser.error(f"{options.data} has no {options.name}.csv.gz; give the folder of the data sets with --data.")
    data = datasets.generated(500) if options.size == SMOKE else datasets.load(options.name, options.data)
    if options.label not in data.names:
        parser.error(f"{options.name} has no attribute {options.label!r}; it has {', '.join(data.names)}.")
    found: dict[str, list[Figures]] = {}
    try:
        made = sources(data, options.epsilon, given)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for name, figures in measure(data, options.label, options.epsilon, made, options.seeds, options.store):
        found[name] = figures
        print(f"{name}: " + ", ".join(f"{figure} {mean(figures, figure):.4f}" for figure in figures[0]), flush=True)
    text = f"{markdown(found)}\n\nMeans of {options.seeds} seed{'s' if options.seeds != 1 else ''}, ± their standard deviation."
    print(text)
    if options.page:
        put_between(options.page, f"utility {options.name} {options.label} {options.epsilon:g}", text)
    rows = verdicts(found, f"{options.name}, epsilon {options.epsilon:g}: ")
    sys.exit(conclude(show(rows, "utility", options.size), options.json, options.size))


if __name__ == "__main__":
    main()
