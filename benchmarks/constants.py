"""Whether the tuning constants are what tables that they were not chosen on would choose.

    python benchmarks/constants.py --store constants.jsonl [--smoke] [--json FILE] [--page benchmarks/results/constants.md]

Every constant of ``CONSTANTS`` is given its present value, a smaller and a larger one, one constant at a time, in whole runs of
the protocol in this process (delta 1/n, the paper's splits, else halves; one party is the paper's Centralized), and judged by the
mean distance (TVD) of 300 three-way marginals, the same ones for every run on a table. Then each table in turn is left out: the
others choose a value, by the geometric mean of their distances, and the one left out says what that choice costs.

Noise comes from the operating system, so that no two runs share it: figures have standard errors, from the spread of equal runs.
The store has a JSON line per finished run, and a later call goes on from there: interrupt it as you like; delete it when the
library has changed. A pass runs every changed value once, and the present ones, which all are compared with, PRESENT times.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import datasets
from benchmarks.reproduce.methods import VertiMRF
from benchmarks.reproduce.report import table
from benchmarks.reproduce.splits import PAPER_SPLITS, Split, deal, even_counts
from benchmarks.reproduce.store import Run, Store
from benchmarks.results import commit, put_between
from benchmarks.verdict import SMOKE, Verdict, arguments, conclude, show
from vertimrf.distances import tvd
from vertimrf.plan.plan import Shares

__all__ = ["CONSTANTS", "Choice", "Constant", "choice", "markdown", "runs"]

TABLES = ("nltcs", "adult", "br2000", "dense", "high-order", "payroll")
HELD_OUT = ("flights",)
MARGINALS = 300
PRESENT = 3
MARK = "constants"
# A difference within so many standard errors is called noise.
NOISE = 2.0


@dataclass(frozen=True)
class Constant:
    """A tuning constant and the values it is compared at.

    Attributes:
        name: of the module's attribute; "Shares.sketches" is the default of a field, and given to the planner instead.
        module: that reads it, by its full name.
        others: values beside the present one.
        crossing: it is of account only where there are several parties.
    """

    name: str
    module: str
    others: tuple[float, ...]
    crossing: bool = False

    @property
    def present(self) -> float:
        """What the library has."""
        return Shares().sketches if self.name == SKETCHES else float(getattr(importlib.import_module(self.module), self.name))

    @property
    def values(self) -> tuple[float, ...]:
        """All that are compared, in increasing order."""
        return tuple(sorted({self.present, *self.others}))

    @contextlib.contextmanager
    def at(self, value: float) -> Iterator[dict[str, Any]]:
        """Runs made within have this value; gives what they are planned with."""
        if self.name == SKETCHES:
            count = Shares().count
            yield {"shares": Shares(count, 1 - count - value, value)}
            return
        module = importlib.import_module(self.module)
        before = getattr(module, self.name)
        setattr(module, self.name, value)
        try:
            yield {}
        finally:
            setattr(module, self.name, before)


SKETCHES = "Shares.sketches"
CONSTANTS = (
    Constant("NOISE_DIRECTIONS", "vertimrf.model.fit", (0.4, 1.0)),
    Constant("TRIPLE_WEIGHT", "vertimrf.party.local_model", (0.1, 0.6)),
    Constant("SCORE_PART", "vertimrf.party.local_model", (0.1, 1.0)),
    Constant("ONE_WAY_SHARE", "vertimrf.plan.planner", (0.04, 0.15)),
    Constant(SKETCHES, "vertimrf.plan.plan", (0.4, 0.6), crossing=True),
    Constant("STANDS_OUT", "vertimrf.model.beyond", (0.5, 3.0)),
    Constant("CELL_PRICE", "vertimrf.server.global_graph", (0.1, 0.3), crossing=True),
)


def runs(
    tables: Sequence[str], held_out: Sequence[str], parties: Sequence[int], epsilon: float, repeats: int
) -> Iterator[Run]:
    """All runs, in the order of what they are worth if they are stopped: a pass over everything, then the next.

    Tables held out run at the present values alone.
    """
    for repeat, m in itertools.product(range(repeats), parties):
        for name in (*tables, *held_out):
            for seed in range(PRESENT * repeat, PRESENT * (repeat + 1)):
                yield run_of(name, m, epsilon, seed)
            if name in tables:
                for constant, value in changed(m):
                    yield run_of(name, m, epsilon, repeat, constant, value)


def changed(parties: int) -> Iterator[tuple[Constant, float]]:
    """One constant at a time at another value, where it is of account."""
    for constant in CONSTANTS:
        if parties > 1 or not constant.crossing:
            yield from ((constant, value) for value in constant.others if value != constant.present)


def run_of(
    name: str, parties: int, epsilon: float, seed: int, constant: Constant | None = None, value: float | None = None
) -> Run:
    options = () if constant is None else ((constant.name, value),)
    return Run("tvd", name, "vertimrf", epsilon, seed, f"m={parties}", options, MARGINALS)


def split_of(data: datasets.Dataset, parties: int) -> Split:
    """The paper's for two parties, where it has one; else as even as can be, in the order of the columns."""
    usual = PAPER_SPLITS.get(data.name) if parties == 2 else None
    return deal(usual or even_counts(len(data.sizes), parties))


def do(run: Run, folder: Path) -> dict[str, float]:
    """A whole run: its mean distance of three-way marginals, and its seconds."""
    data = datasets.load(run.data, folder)
    split = split_of(data, int(run.split.removeprefix("m=")))
    by_name = {constant.name: constant for constant in CONSTANTS}
    with contextlib.ExitStack() as stack:
        planned: dict[str, Any] = {}
        for name, value in run.options:
            planned |= stack.enter_context(by_name[name].at(value))
        start = time.perf_counter()
        made = VertiMRF("vertimrf", "vertimrf").synthesize(
            data.codes, data.sizes, split, run.epsilon, 1 / data.records, run.seed, **planned
        )
        seconds = time.perf_counter() - start
    return {"tvd3": float(tvd(data.codes, made.codes, data.sizes, (3,), run.marginals)[3]), "seconds": seconds}


# What was measured: distances of equal runs, by table, number of parties, and the one constant and value that were not present.
Key = tuple[str, int, str | None, float | None]
Figures = Mapping[Key, Sequence[float]]


def figures_of(store: Store, epsilon: float) -> dict[Key, list[float]]:
    """Distances of a store's runs."""
    out: dict[Key, list[float]] = {}
    for run, result in store.runs():
        if run.epsilon == epsilon:
            name, value = run.options[0] if run.options else (None, None)
            out.setdefault((run.data, int(run.split.removeprefix("m=")), name, value), []).append(result["tvd3"])
    return out


def spreads(figures: Figures) -> dict[tuple[str, int], float]:
    """Standard deviation of the logarithm of a run's distance, per table and number of parties, pooled over all equal runs;
    none where no run was repeated.
    """
    squares: dict[tuple[str, int], float] = {}
    freedom: dict[tuple[str, int], int] = {}
    for (name, parties, *_), values in figures.items():
        logs = np.log(values)
        squares[name, parties] = squares.get((name, parties), 0.0) + float(np.square(logs - logs.mean()).sum())
        freedom[name, parties] = freedom.get((name, parties), 0) + len(values) - 1
    return {case: math.sqrt(squares[case] / count) for case, count in freedom.items() if count}


@dataclass(frozen=True, eq=False)
class Choice:
    """What tables say of a constant's values.

    Attributes:
        name: of the constant.
        values: compared; ``present``: which of them the library has.
        tables: that have been run at all values.
        logs: logarithm of a table's distance over that at the present value, mean over numbers of parties
            [shape=(tables, values)].
        errors: standard errors of ``logs``, same shape; NaN where unknown.
    """

    name: str
    values: tuple[float, ...]
    present: float
    tables: tuple[str, ...]
    logs: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """Geometric means over tables [shape=(values,)]."""
        return np.exp(self.logs.mean(axis=0))

    @property
    def ratio_errors(self) -> npt.NDArray[np.float64]:
        """Their standard errors, by noise; not those of another choice of tables [shape=(values,)]."""
        return self.ratios * np.sqrt(np.square(self.errors).sum(axis=0)) / len(self.tables)

    @cached_property
    def chosen(self) -> npt.NDArray[np.intp]:
        """Position of the value that the other tables choose, for every table left out [shape=(tables,)]."""
        others = (self.logs.sum(axis=0) - self.logs) / max(len(self.tables) - 1, 1)
        return others.argmin(axis=1)

    @property
    def cost(self) -> npt.NDArray[np.float64]:
        """Distance on the table left out at the value chosen by the others, over its least [shape=(tables,)]."""
        return np.exp(self.logs[np.arange(len(self.tables)), self.chosen] - self.logs.min(axis=1))

    @property
    def left_out(self) -> tuple[float, float]:
        """Geometric mean over tables left out of the distance at the others' choice over that at the present value, and its
        standard error.
        """
        every = np.arange(len(self.tables))
        ratio = math.exp(self.logs[every, self.chosen].mean())
        return ratio, ratio * math.sqrt(np.square(self.errors[every, self.chosen]).sum()) / len(every)

    @property
    def verdict(self) -> str:
        """One sentence."""
        here = self.values.index(self.present)
        other = sorted(set(self.chosen.tolist()) - {here})
        if not other:
            return "the present one, whichever table is left out"
        kept = int((self.chosen == here).sum())
        often = f"the present one for {kept} of {len(self.tables)} tables, else " if kept else ""
        said = []
        for j in other:
            gain, error = 1 - self.ratios[j], self.ratio_errors[j]
            by = f"{self.values[j]:g}, {'better' if gain > 0 else 'worse'} by {abs(gain):.1%}"
            if math.isnan(error):
                said.append(f"{by}, of unknown standard error")
            elif abs(gain) <= NOISE * error:
                said.append(f"{by}, within noise")
            else:
                said.append(f"**{by}, beyond noise**")
        return often + "; ".join(said)


def choice(constant: Constant, figures: Figures, tables: Sequence[str]) -> Choice | None:
    """What figures say of a constant; None where fewer than two tables have been run at all of its values."""
    noise, values, rows = spreads(figures), constant.values, {}
    for name in tables:
        logs, variances = [], []
        for parties in sorted({m for own, m, *_ in figures if own == name}):
            keys = [(name, parties, *((None, None) if v == constant.present else (constant.name, v))) for v in values]
            if all(key in figures for key in keys):
                found = np.array([np.log(figures[key]).mean() for key in keys])
                runs_made = np.array([len(figures[key]) for key in keys])
                here = values.index(constant.present)
                logs.append(found - found[here])
                variance = noise.get((name, parties), math.nan) ** 2 * (1 / runs_made + 1 / runs_made[here])
                variance[here] = 0.0
                variances.append(variance)
        if logs:
            rows[name] = np.mean(logs, axis=0), np.sqrt(np.sum(variances, axis=0)) / len(variances)
    if len(rows) < 2:
        return None
    logs_of, errors_of = zip(*rows.values(), strict=True)
    return Choice(constant.name, values, constant.present, tuple(rows), np.array(logs_of), np.array(errors_of))


def bold(text: str, when: bool) -> str:
    return f"**{text}**" if when else text


def plus_minus(value: float, error: float) -> str:
    return f"{value:.3f}" if math.isnan(error) else f"{value:.3f} ± {error:.3f}"


def markdown(figures: Figures, tables: Sequence[str], epsilon: float, commits: Iterable[str] = ()) -> str:
    """The page's tables; ``commits`` are of the library that was measured."""
    choices = [found for constant in CONSTANTS if (found := choice(constant, figures, tables)) is not None]
    repeated = [len(own) for (name, _, constant, _), own in figures.items() if name in tables and constant is not None]
    least = min(repeated, default=0)
    of_each = f"{least}" if least == max(repeated, default=0) else f"{least} to {max(repeated)}"
    values = [
        [
            f"`{c.name}`",
            ", ".join(bold(f"{v:g}", v == c.present) for v in c.values),
            *(
                "1" if v == c.present else plus_minus(ratio, error)
                for v, ratio, error in zip(c.values, c.ratios, c.ratio_errors, strict=True)
            ),
            plus_minus(*c.left_out) if (c.chosen != c.values.index(c.present)).any() else "1",
            c.verdict,
        ]
        for c in choices
    ]
    named = [name for name in tables if any(name in c.tables for c in choices)]
    costs = [[f"`{c.name}`", *(cost_cell(c, name) for name in named)] for c in choices]
    spread = spreads(figures)
    base = [
        [name, str(m), str(len(own)), f"{np.mean(own):.4f}", f"{spread[name, m]:.1%}" if (name, m) in spread else "–",
         "yes" if name in tables else "no"]
        for (name, m, constant, _), own in sorted(figures.items(), key=lambda item: (item[0][0] not in tables, item[0][:2]))
        if constant is None
    ]  # fmt: skip
    measured = ", ".join(sorted(commits))
    head = ["constant", "values (present)", "smaller", "middle", "larger", "left out", "what the others choose"]
    return "\n\n".join(
        [
            f"ε = {epsilon:g}, {of_each} run{'s' if of_each != '1' else ''} of every changed value. Ratios of distances, "
            "geometric means over tables, ± one standard error by noise. *Left out*: the distance on the table left out at the "
            "value that the others choose, over that at the present one." + (f" Library at {measured}." if measured else ""),
            table(head, values),
            "For every table left out: what the others choose, and the distance at that over the least of the three. The least "
            "of noisy figures is too low, so that these costs are too high.",
            table(["constant", *named], costs),
            "Distances at the present values; s.d. is that of one run's distance, over the runs of this table with equal values; "
            "a table that is not asked had no part in any choice.",
            table(["table", "parties", "runs", "3-way TVD", "s.d.", "asked"], base),
        ]
    )


def cost_cell(choice: Choice, name: str) -> str:
    if name not in choice.tables:
        return "–"
    row = choice.tables.index(name)
    value = choice.values[choice.chosen[row]]
    return f"{bold(f'{value:g}', value == choice.present)}: {choice.cost[row]:.3f}"


def work(wanted: Sequence[Run], store: Store, folder: Path, do: Callable[[Run, Path], dict[str, float]] = do) -> None:
    """Do what the store lacks, appending each."""
    left, revision = [run for run in dict.fromkeys(wanted) if run not in store], commit()
    for i, run in enumerate(left):
        result = do(run, folder)
        store.add(run, result, revision)
        print(f"[{i + 1}/{len(left)}] {run.label()}: {result['tvd3']:.4f}, {result['seconds']:.1f} s", flush=True)


def main(argv: list[str] | None = None) -> None:
    parser = arguments(__doc__)
    known = (*datasets.NAMES, *datasets.GENERATED, "flights")
    parser.add_argument("--tables", nargs="+", choices=known, default=list(TABLES), metavar="TABLE", help="that are asked")
    parser.add_argument(
        "--held-out", nargs="*", choices=known, default=list(HELD_OUT), metavar="TABLE", help="run at the present values alone"
    )
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--epsilon", type=float, default=0.8)
    parser.add_argument("--repeats", type=int, default=2, help="runs of every value; 0 shows what the store has")
    parser.add_argument("--data", type=Path, default=datasets.FOLDER, help="folder of the data sets")
    parser.add_argument("--store", type=Path, default=Path("constants.jsonl"), metavar="FILE", help="finished runs")
    parser.add_argument("--page", type=Path, help="write the tables between its marks")
    options = parser.parse_args(argv)
    if options.size == SMOKE:
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder) / "runs.jsonl")
            work(list(runs(("generated",), (), (2,), options.epsilon, 1))[PRESENT - 1 : PRESENT + 2], store, options.data)
            rows = [Verdict(f"{run.label()}: 3-way TVD", result["tvd3"]) for run, result in store.runs()]
        sys.exit(conclude(show(rows, "", SMOKE), options.json, SMOKE))
    for name in (*options.tables, *options.held_out):
        if not datasets.present(name, options.data):
            print(f"{options.data} has no {name}.csv.gz; give the folder of the data sets with --data.", file=sys.stderr)
            sys.exit(2)
    store = Store(options.store)
    with contextlib.suppress(KeyboardInterrupt):
        work(list(runs(options.tables, options.held_out, options.parties, options.epsilon, options.repeats)), store, options.data)
    text = markdown(figures_of(store, options.epsilon), options.tables, options.epsilon, store.commits)
    print(text)
    if options.page is not None:
        put_between(options.page, MARK, text)


if __name__ == "__main__":
    main()
